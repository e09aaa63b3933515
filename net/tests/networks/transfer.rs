//! A transfer from host `a` to host `b` while links fail, and what was seen of it.

#![allow(unreachable_pub, reason = "part of one test file")]

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use anabranch_net::{Association, Carrier, Endpoint, Event, Extensions, Message, Options, PathReport};
use anabranch_proto::{Config, Parameters, Policies, PolicySpec};
use bytes::Bytes;

use crate::network::{Cut, Network, address};

const PORT: u16 = 5000;
const UDP: u16 = 9899;
/// How often the paths are looked at.
const GLANCE: Duration = Duration::from_millis(5);

/// What is to happen.
#[derive(Clone, Debug)]
pub struct Plan {
    pub bytes: u64,
    /// Bytes of a message: a number, and what follows from it.
    pub message: usize,
    /// How long the sender waits between messages.
    pub pause: Duration,
    pub rto_min: Duration,
    pub sack_delay: Duration,
    pub pf_max_retrans: Option<u32>,
    pub mtu_discovery: bool,
    /// The largest packet of each end, in bytes.
    pub mtu: [u32; 2],
    /// The receive buffer of both ends, in bytes.
    pub receive_buffer: u32,
    /// How long the receiver waits before it reads the next message.
    pub reader_rests: Duration,
    /// SCTP directly on IP, instead of in UDP.
    pub raw: bool,
    /// Rules and mechanisms of both ends, with their choices.
    pub choices: &'static [(&'static str, &'static str)],
    /// The policy of retransmissions of both ends, if not the default, and the policies that it can be.
    pub retransmit: Option<&'static str>,
    pub policies: Policies,
    /// What both ends offer.
    pub extensions: Extensions,
    /// The first link loses every so many packets on the way there.
    pub losses: Option<u32>,
    pub steps: Vec<Step>,
}

/// A link fails, or is mended.
#[derive(Clone, Debug)]
pub struct Step {
    /// From the first message on.
    pub at: Duration,
    pub link: usize,
    pub how: Cut,
    pub mended: bool,
}

impl Default for Plan {
    fn default() -> Self {
        Plan {
            bytes: 0,
            message: 5000,
            pause: Duration::ZERO,
            rto_min: Duration::from_millis(200),
            sack_delay: Duration::from_millis(20),
            pf_max_retrans: None,
            mtu_discovery: false,
            mtu: [1500; 2],
            receive_buffer: Config::default().receive_buffer,
            reader_rests: Duration::ZERO,
            raw: false,
            choices: &[],
            retransmit: None,
            policies: Policies::default(),
            extensions: Extensions::default(),
            losses: None,
            steps: Vec::new(),
        }
    }
}

/// What was seen.
pub struct Course {
    /// When each step was taken.
    pub steps: Vec<Instant>,
    began: Instant,
    ended: Instant,
    events: Vec<(Instant, Event)>,
    glances: Vec<(Instant, Vec<PathReport>)>,
}

impl Course {
    pub fn seconds(&self) -> f64 {
        (self.ended - self.began).as_secs_f64()
    }

    /// When such an event first happened.
    pub fn event(&self, wanted: &Event) -> Option<Instant> {
        self.events.iter().find(|(_, event)| event == wanted).map(|(at, _)| *at)
    }

    /// When more was acknowledged on a path than at a moment before.
    pub fn delivers(&self, path: usize, after: Instant) -> Option<Instant> {
        let before = self.delivered(path, after);
        let more = |(at, paths): &&(Instant, Vec<PathReport>)| *at > after && paths[path].delivered > before;
        self.glances.iter().find(more).map(|(at, _)| *at)
    }

    /// Bytes acknowledged on a path up to a moment.
    pub fn delivered(&self, path: usize, until: Instant) -> u64 {
        let before = self.glances.iter().take_while(|(at, _)| *at <= until).last();
        before.and_then(|(_, paths)| paths.get(path)).map_or(0, |path| path.delivered)
    }

    /// The primary's RTO just before a step.
    pub fn rto_before_step(&self, step: usize) -> Duration {
        let before = self.glances.iter().take_while(|(at, _)| *at < self.steps[step]).last();
        before.expect("it was looked at").1[0].rto
    }

    /// The DATA chunk limit of a path when it was last looked at.
    pub fn last_pmdcs(&self, path: usize) -> u32 {
        self.glances.last().expect("it was looked at").1[path].pmdcs
    }

    /// The most timeouts in a row of a path up to a moment.
    pub fn most_errors(&self, path: usize, until: Instant) -> u32 {
        let before = self.glances.iter().take_while(|(at, _)| *at <= until);
        before.map(|(_, paths)| paths[path].errors).max().unwrap_or(0)
    }

    /// When the last message was acknowledged.
    pub fn ended(&self) -> Instant {
        self.ended
    }

    pub fn was_down(&self, path: usize) -> bool {
        self.glances.iter().any(|(_, paths)| !paths[path].up)
    }
}

/// Moves the plan's bytes; every message must arrive once, in order and unchanged.
pub fn transfer(network: &Arc<Network>, plan: &Plan) -> Course {
    let (ready, listening) = mpsc::channel();
    let count = plan.bytes / plan.message as u64;
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            network.enter(1);
            in_runtime(receive(plan, count, ready))
        });
        let sender = scope.spawn(move || {
            network.enter(0);
            listening.recv().expect("the other end is there");
            in_runtime(send(plan, count, network))
        });
        let course = sender.join();
        // If the sender has failed, its message says more.
        let course = course.expect("the sender is content");
        receiver.join().expect("the receiver is content");
        course
    })
}

pub fn in_runtime<T>(what: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), what).await.expect("it ends") })
}

fn options(plan: &Plan, host: usize, port: u16) -> Options {
    let mut config = Config {
        port,
        extensions: plan.extensions,
        mtu_discovery: plan.mtu_discovery,
        receive_buffer: plan.receive_buffer,
        rehome: true,
        parameters: Parameters {
            rto_initial: plan.rto_min.max(Duration::from_millis(100)),
            rto_min: plan.rto_min,
            rto_max: Duration::from_secs(2),
            path_max_retrans: 2,
            pf_max_retrans: plan.pf_max_retrans,
            heartbeat_interval: Some(Duration::from_millis(500)),
            sack_delay: plan.sack_delay,
            mtu: plan.mtu[host],
            ..Parameters::default()
        },
        ..Config::default()
    };
    for (key, choice) in plan.choices {
        let chosen = config.mechanisms.choose(key, choice).or_else(|_| config.rules.choose(key, choice));
        chosen.expect("a mechanism or a rule, and its choice");
    }
    if let Some(name) = plan.retransmit {
        [config.fast, config.timeout] = [name, name].map(PolicySpec::named);
    }
    let local = (0..2).map(|link| address(host, link)).collect();
    let carrier = match (plan.raw, host) {
        (true, _) => Carrier::Raw,
        (false, 1) => Carrier::Udp(UDP),
        (false, _) => Carrier::Udp(0),
    };
    let policies = plan.policies.clone();
    Options { config, local, carrier, policies, listen: host == 1, ..Options::default() }
}

fn content(number: u64, size: usize) -> Bytes {
    let mut content = number.to_be_bytes().to_vec();
    content.extend((8..size as u64).map(|place| (number.wrapping_mul(31) ^ place) as u8));
    content.into()
}

async fn receive(plan: &Plan, count: u64, ready: mpsc::Sender<()>) {
    let endpoint = Endpoint::bind(options(plan, 1, PORT)).expect("sockets");
    ready.send(()).expect("the sender waits");
    let association = endpoint.accept().await.expect("it is open");
    let (mut arrived, mut parts) = (0, Vec::new());
    while let Some(delivery) = association.recv().await.expect("it lives") {
        let complete = delivery.complete;
        parts.extend_from_slice(&delivery.into_bytes());
        if complete {
            assert!(parts == content(arrived, plan.message), "message {arrived}");
            parts.clear();
            arrived += 1;
            if !plan.reader_rests.is_zero() {
                tokio::time::sleep(plan.reader_rests).await;
            }
        }
    }
    assert_eq!(arrived, count);
    endpoint.close().await;
}

async fn send(plan: &Plan, count: u64, network: &Arc<Network>) -> Course {
    let endpoint = Endpoint::bind(options(plan, 0, 0)).expect("sockets");
    let udp = if plan.raw { 0 } else { UDP };
    let to: Vec<_> = (0..2).map(|link| (address(1, link), udp).into()).collect();
    let association = endpoint.connect(&to, PORT).await.expect("it comes up");
    while !association.paths().iter().all(|path| path.state == anabranch_net::PathState::Active) {
        tokio::time::sleep(GLANCE).await;
    }
    if let Some(every) = plan.losses {
        network.lose(0, every);
    }
    let began = Instant::now();
    let mut course = Course { steps: vec![], began, ended: began, events: vec![], glances: vec![] };
    let mut events = association.events();
    let give = async {
        for number in 0..count {
            let payload = content(number, plan.message);
            let message = Message { stream: 0, ppid: 0, payload, ..Message::default() };
            association.send(message).await.expect("it lives");
            if !plan.pause.is_zero() {
                tokio::time::sleep(plan.pause).await;
            }
        }
        association.close().await.expect("it ends gracefully");
    };
    let steps = take_steps(plan, network, began);
    let mut taken = Vec::new();
    let watch = async {
        loop {
            tokio::select! {
                event = events.recv() => match event {
                    Ok(event) => course.events.push((Instant::now(), event)),
                    Err(_) => std::future::pending().await,
                },
                () = tokio::time::sleep(GLANCE) => course.glances.push(glance(&association)),
            }
        }
    };
    let both = async {
        give.await;
        Instant::now()
    };
    tokio::select! {
        ended = both => course.ended = ended,
        () = watch => {}
    }
    taken.extend(steps.join().expect("the steps can be taken"));
    course.steps = taken;
    endpoint.close().await;
    course
}

fn glance(association: &Association) -> (Instant, Vec<PathReport>) {
    (Instant::now(), association.paths())
}

/// Takes the steps from a thread of its own; when each took effect.
fn take_steps(plan: &Plan, network: &Arc<Network>, began: Instant) -> thread::JoinHandle<Vec<Instant>> {
    let (steps, network) = (plan.steps.clone(), Arc::clone(network));
    thread::spawn(move || {
        let take = |step: &Step| {
            thread::sleep((began + step.at).saturating_duration_since(Instant::now()));
            network.cut(step.link, step.how, step.mended)
        };
        steps.iter().map(take).collect()
    })
}
