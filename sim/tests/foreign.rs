//! A transport from outside the crate: the seam for other people's stacks.

use std::cell::RefCell;
use std::net::SocketAddr;

use anabranch_proto::{Duration, Policies, Time};
use anabranch_sim::foreign::{
    ForeignEnd, ForeignOutput, ForeignPacket, ForeignStage, ForeignTransport, Setup,
};
use anabranch_sim::results::RunResult;
use anabranch_sim::scenario::{Document, Scenario};
use anabranch_sim::{Protocol, RunError, RunOptions, run};
use bytes::Bytes;

const TIMEOUT: Duration = Duration::from_millis(500);

/// Stop and wait: one packet, its acknowledgement, the next packet. A packet's first byte is its number.
#[derive(Default)]
struct StopAndWait {
    /// What each flow was made for.
    setups: RefCell<Vec<Setup>>,
}

impl ForeignTransport for StopAndWait {
    fn name(&self) -> &str {
        "stop-and-wait"
    }
    fn version(&self) -> &str {
        "toy 1"
    }
    fn is_repeatable(&self) -> bool {
        true
    }
    fn is_over_udp(&self) -> bool {
        true
    }
    fn ends(&self, setup: &Setup) -> Result<[Box<dyn ForeignEnd>; 2], String> {
        if setup.packet < 600 {
            return Err("packets under 600 bytes are too small for it".to_owned());
        }
        self.setups.borrow_mut().push(setup.clone());
        let (client, server) = setup.paths[0];
        let addresses = [setup.addresses[0][client], setup.addresses[1][server]];
        let end = |from: usize| End {
            from: addresses[from],
            to: addresses[1 - from],
            sends: from == 0,
            size: setup.packet,
            number: 0,
            waiting: None,
            due: None,
            answer: None,
            read: 0,
            finished: false,
        };
        Ok([Box::new(end(0)), Box::new(end(1))])
    }
}

struct End {
    from: SocketAddr,
    to: SocketAddr,
    sends: bool,
    size: u32,
    /// The number of the next message, sent or expected.
    number: u8,
    waiting: Option<Bytes>,
    /// When the waiting message is sent.
    due: Option<Time>,
    answer: Option<u8>,
    read: usize,
    finished: bool,
}

impl End {
    fn packet(&self, bytes: Bytes, has_data: bool) -> ForeignOutput {
        ForeignOutput::Transmit(ForeignPacket { from: self.from, to: self.to, bytes, has_data })
    }
}

impl ForeignEnd for End {
    fn message_size(&self) -> u32 {
        self.size - 1
    }
    fn start(&mut self, _: Time) {}
    fn handle(&mut self, _: Time, packet: ForeignPacket) {
        let number = packet.bytes[0];
        if !self.sends {
            if number == self.number {
                self.number = self.number.wrapping_add(1);
                self.read = packet.bytes.len() - 1;
            }
            self.answer = Some(number);
        } else if number == self.number && self.waiting.take().is_some() {
            (self.number, self.due) = (self.number.wrapping_add(1), None);
        }
    }
    fn send(&mut self, now: Time, message: &Bytes) -> bool {
        if self.waiting.is_some() {
            return false;
        }
        let bytes = [&[self.number], &message[..]].concat();
        (self.waiting, self.due) = (Some(bytes.into()), Some(now));
        true
    }
    fn finish(&mut self, _: Time) {
        self.finished = true;
    }
    fn poll(&mut self, now: Time) -> ForeignOutput {
        if self.read > 0 {
            return ForeignOutput::Read(std::mem::take(&mut self.read));
        }
        if let Some(number) = self.answer.take() {
            return self.packet(Bytes::copy_from_slice(&[number]), false);
        }
        match (&self.waiting, self.due) {
            (Some(bytes), Some(due)) if due <= now => {
                self.due = Some(now + TIMEOUT);
                self.packet(bytes.clone(), true)
            }
            _ => ForeignOutput::Wait(self.due),
        }
    }
    fn stage(&self) -> ForeignStage {
        match self.sends {
            false => ForeignStage::Idle,
            true if self.finished && self.waiting.is_none() => ForeignStage::Closed,
            true => ForeignStage::Busy,
        }
    }
}

fn scenario(more: &str) -> Scenario {
    let text = format!(
        "seed = 2\n[[link]]\nname = 'a'\nbetween = ['s', 'r']\nrate = '8 Mbit/s'\ndelay = '10 ms'\n{more}\n\
         [[link]]\nname = 'b'\nbetween = ['s', 'r']\nrate = '1 Mbit/s'\n\
         [[flow]]\nname = 'f'\nprotocol = {{ foreign = 'stop-and-wait' }}\nfrom = 's'\nto = 'r'\nsend = '14710 B'\n"
    );
    let document = Document::parse("test.toml", &text).expect("it is TOML");
    document.scenario("test", &Policies::default()).expect("it is a scenario")
}

fn simulate(scenario: &Scenario, transport: &StopAndWait) -> Result<RunResult, RunError> {
    run(scenario, RunOptions { foreign: &[transport], extra_polls: true, ..RunOptions::default() })
}

/// Ten packets of 1,500 bytes, each 1.5 ms on the link, and ten answers of 29 bytes, each 29 µs; and the delay for
/// each.
#[test]
fn a_transport_from_outside_carries_a_flow() {
    let transport = StopAndWait::default();
    let result = simulate(&scenario(""), &transport).expect("it runs");
    let flow = &result.flows[0];
    assert_eq!((flow.delivered, flow.packets, flow.outcome), (14_710, 10, "closed"));
    let last = 9.0 * (0.0115 + 0.010_029) + 0.0115;
    assert!((flow.completion.expect("it is complete") - last).abs() < 1e-9, "{:?}", flow.completion);
    let foreign = flow.foreign.as_ref().expect("it was foreign");
    assert_eq!(
        (flow.protocol, &*foreign.name, &*foreign.version),
        (Protocol::Foreign, "stop-and-wait", "toy 1")
    );
    assert_eq!(result.links.iter().map(|link| link.packets).collect::<Vec<_>>(), [10, 10, 0, 0]);
    let setups = transport.setups.borrow();
    let setup = setups.last().expect("it was made");
    assert_eq!((setup.packet, setup.paths.len()), (1472, 2));
    assert_ne!(setup.seeds[0], setup.seeds[1]);
}

#[test]
fn it_meets_the_losses_of_the_link() {
    let scenario = scenario("loss = '20 %'");
    let [first, second] = [(); 2].map(|()| simulate(&scenario, &StopAndWait::default()).expect("it runs"));
    assert_eq!(first, second);
    let flow = &first.flows[0];
    assert_eq!((flow.delivered, flow.outcome), (14_710, "closed"));
    assert!(flow.packets > 10 && flow.completion.is_some_and(|seconds| seconds > 0.5), "{flow:?}");
}

#[test]
fn what_cannot_be_run_is_said() {
    let named = scenario("");
    let error = run(&named, RunOptions::default()).expect_err("no transport is given").to_string();
    assert!(error.contains("built without foreign transports such as `stop-and-wait`"), "{error}");
    let small = scenario("mtu = '600 B'");
    let error = simulate(&small, &StopAndWait::default()).expect_err("it refuses").to_string();
    assert_eq!(error, "flow `f`: packets under 600 bytes are too small for it");
}

/// A stack that makes a mistake.
struct Odd {
    /// Bytes of its messages.
    size: u32,
    /// The deadline that both ends name for ever.
    until: fn(Time) -> Time,
}

impl ForeignTransport for Odd {
    fn name(&self) -> &str {
        "stop-and-wait"
    }
    fn version(&self) -> &str {
        "odd 1"
    }
    fn is_repeatable(&self) -> bool {
        true
    }
    fn is_over_udp(&self) -> bool {
        true
    }
    fn ends(&self, _: &Setup) -> Result<[Box<dyn ForeignEnd>; 2], String> {
        let end = || Box::new(Waiting { size: self.size, until: self.until });
        Ok([end(), end()])
    }
}

struct Waiting {
    size: u32,
    until: fn(Time) -> Time,
}

impl ForeignEnd for Waiting {
    fn message_size(&self) -> u32 {
        self.size
    }
    fn start(&mut self, _: Time) {}
    fn handle(&mut self, _: Time, _: ForeignPacket) {}
    fn send(&mut self, _: Time, _: &Bytes) -> bool {
        false
    }
    fn finish(&mut self, _: Time) {}
    fn poll(&mut self, now: Time) -> ForeignOutput {
        ForeignOutput::Wait(Some((self.until)(now)))
    }
    fn stage(&self) -> ForeignStage {
        ForeignStage::Busy
    }
}

fn mistake(size: u32, until: fn(Time) -> Time) -> String {
    let odd = Odd { size, until };
    let options = RunOptions { foreign: &[&odd], ..RunOptions::default() };
    run(&scenario(""), options).expect_err("it makes a mistake").to_string()
}

#[test]
fn a_stack_without_room_in_its_packets_is_named() {
    let error = mistake(0, |now| now + TIMEOUT);
    assert_eq!(error, "flow `f`: `stop-and-wait` has no room for user data in a packet");
}

#[test]
fn a_stack_that_waits_for_the_past_for_ever_is_named() {
    for until in [|_| Time::ZERO, |now| now] {
        let error = mistake(100, until);
        assert_eq!(error, "flow `f`: `stop-and-wait` waits again and again for a time that has passed");
    }
}
