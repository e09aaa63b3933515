//! Files and measurements over the loopback interface.

#![allow(clippy::disallowed_types, reason = "real networks have real clocks")]

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use anabranch_net::service::{
    CONTROL, DATA, Direction, Failure, Inbox, PerfDirections, PerfProgress, Plan, SendError, Served, measure,
    send_file, serve,
};
use anabranch_net::{Association, Carrier, Endpoint, Message, Options};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PORT: u16 = 5000;

/// A listener that serves one client, a client's endpoint, and their association.
struct Service {
    _client: Endpoint,
    association: Association,
    served: JoinHandle<Result<Served, Failure>>,
}

impl Service {
    async fn new(inbox: Option<Inbox>) -> Service {
        let local: Vec<IpAddr> = vec!["127.0.0.1".parse().expect("an address")];
        let options = Options { local: local.clone(), carrier: Carrier::Udp(0), ..Options::default() };
        let server = Endpoint::bind(options).expect("sockets");
        let to: Vec<SocketAddr> = server.local().into_iter().map(|(place, _)| place).collect();
        let served = tokio::spawn(async move {
            let association = server.accept().await.expect("it is open");
            let served = serve(&association, inbox.as_ref()).await;
            server.close().await;
            served
        });
        let client = Endpoint::bind(Options::towards(&local).expect("routes")).expect("sockets");
        let association = client.connect(&to, PORT).await.expect("it comes up");
        Service { _client: client, association, served }
    }

    async fn say(&self, ppid: u32, text: &str) {
        let payload = text.as_bytes().to_vec().into();
        let said = self.association.send(Message { stream: 0, ppid, payload, ..Message::default() }).await;
        said.expect("it is up");
    }

    /// Closes the client's end; what was served.
    async fn end(self) -> Result<Served, Failure> {
        let _ = self.association.close().await;
        let served = timeout(Duration::from_secs(30), self.served).await;
        served.expect("it takes no half minute").expect("no panic")
    }
}

/// Directories to send from and to receive into.
fn places(room: u64) -> (TempDir, TempDir, Inbox) {
    let (from, to) = (tempfile::tempdir().expect("a place"), tempfile::tempdir().expect("a place"));
    let inbox = Inbox::new(to.path(), room).expect("a directory");
    (from, to, inbox)
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there");
    entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
}

#[tokio::test]
async fn a_file_arrives_whole_under_its_name() {
    for size in [0, 1, 65_536, 3_000_001] {
        let (from, to, inbox) = places(3_000_001);
        let content: Vec<u8> =
            (0..size as u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(from.path().join("a file"), &content).expect("a file");
        let service = Service::new(Some(inbox)).await;
        let sent = send_file(&service.association, &from.path().join("a file"), &|_, _| {}).await;
        assert_eq!(sent.expect("it arrives").size, size);
        assert!(matches!(service.end().await, Ok(Served::File(received)) if received.size == size));
        assert_eq!(fs::read(to.path().join("a file")).expect("it is there"), content);
        assert_eq!(names(to.path()).len(), 1);
    }
}

/// The data follows the announcement at once. A listener that answers only when data has arrived shows it.
#[tokio::test]
async fn the_data_does_not_wait_for_the_answer_to_the_announcement() {
    let from = tempfile::tempdir().expect("a place");
    let file = from.path().join("f");
    fs::write(&file, "four").expect("a file");
    let local: Vec<IpAddr> = vec!["127.0.0.1".parse().expect("an address")];
    let options = Options { local: local.clone(), carrier: Carrier::Udp(0), ..Options::default() };
    let server = Endpoint::bind(options).expect("sockets");
    let to: Vec<SocketAddr> = server.local().into_iter().map(|(place, _)| place).collect();
    let listener = async {
        let association = server.accept().await.expect("it is open");
        let mut heard = Vec::new();
        for _ in 0..3 {
            heard.push(association.recv().await.expect("it is up").expect("a message").ppid);
        }
        for answer in [r#"{"go":{}}"#, r#"{"verdict":{"received":4,"failed":null}}"#] {
            let payload = answer.as_bytes().into();
            let message = Message { stream: 0, ppid: CONTROL, payload, ..Message::default() };
            association.send(message).await.expect("it is up");
        }
        (association, heard)
    };
    let client = Endpoint::bind(Options::towards(&local).expect("routes")).expect("sockets");
    let sender = async {
        let association = client.connect(&to, PORT).await.expect("it comes up");
        send_file(&association, &file, &|_, _| {}).await
    };
    let both = timeout(Duration::from_secs(30), async { tokio::join!(listener, sender) });
    let ((_association, heard), sent) = both.await.expect("neither end waits for the other");
    assert_eq!(heard, [CONTROL, DATA, CONTROL]);
    assert_eq!(sent.expect("the verdict is good").size, 4);
}

/// The listener gets no byte beyond the announced ones, so it has nothing to complain about.
#[tokio::test]
async fn a_file_that_grows_while_it_is_sent_is_not_blamed_on_a_peer() {
    const SIZE: usize = 8_000_000;
    let (from, to, inbox) = places(SIZE as u64);
    let file = from.path().join("log");
    fs::write(&file, vec![1; SIZE]).expect("a file");
    let grow = |given, _| {
        if given <= 1 << 16 {
            let longer = fs::File::options().append(true).open(&file);
            std::io::Write::write_all(&mut longer.expect("it is there"), b"more").expect("there is room");
        }
    };
    let service = Service::new(Some(inbox)).await;
    let sent = send_file(&service.association, &file, &grow).await;
    let why = sent.expect_err("it is another file now").to_string();
    assert_eq!(why, "the file had 8000000 bytes, and it grew while it was sent");
    let served = service.end().await.expect("the client did nothing wrong");
    assert!(matches!(&served, Served::NoFile { arrived: 8_000_000, .. }), "{served:?}");
    assert!(names(to.path()).is_empty());
}

#[tokio::test]
async fn what_is_there_stays_and_what_is_too_large_does_not_come() {
    let (from, to, inbox) = places(10);
    fs::write(from.path().join("taken"), "new").expect("a file");
    fs::write(from.path().join("large"), "eleven byte").expect("a file");
    fs::write(to.path().join("taken"), "old").expect("a file");
    for (name, why) in [("taken", "there is a file of this name"), ("large", "there is room for 10 bytes")] {
        let service = Service::new(Some(inbox.clone())).await;
        let sent = send_file(&service.association, &from.path().join(name), &|_, _| {}).await;
        assert!(matches!(sent, Err(SendError::Failure(Failure::Refused(said))) if said == why));
        assert!(matches!(service.end().await, Ok(Served::NoFile { why: told, .. }) if told == why));
    }
    let service = Service::new(None).await;
    let sent = send_file(&service.association, &from.path().join("taken"), &|_, _| {}).await;
    assert!(matches!(sent, Err(SendError::Failure(Failure::Refused(_)))));
    assert_eq!(fs::read_to_string(to.path().join("taken")).expect("it is there"), "old");
    assert_eq!(names(to.path()), ["taken"]);
}

/// A client that says what it should not, by hand: nothing is kept, and nothing outside is touched.
#[tokio::test]
async fn a_dishonest_client() {
    let announce = r#"{"send-file":{"name":"f","size":4}}"#;
    let hash = |digits: &str| format!(r#"{{"end":{{"sha256":"{digits}"}}}}"#);
    let wrong = hash(&"0".repeat(64));
    let talks: [&[(u32, &str)]; 8] = [
        &[(CONTROL, r#"{"send-file":{"name":"../f","size":4}}"#)],
        &[(CONTROL, announce), (DATA, "data"), (CONTROL, &wrong)],
        &[(CONTROL, announce), (DATA, "dat"), (CONTROL, &wrong)],
        &[(CONTROL, announce), (DATA, "more data")],
        &[(CONTROL, announce), (DATA, "da")],
        &[(CONTROL, announce), (CONTROL, announce)],
        &[(CONTROL, "nonsense")],
        &[(99, "nonsense")],
    ];
    for talk in talks {
        let (_, to, inbox) = places(100);
        let service = Service::new(Some(inbox)).await;
        for (ppid, text) in talk {
            service.say(*ppid, text).await;
        }
        let served = service.end().await;
        assert!(!matches!(served, Ok(Served::File(_))), "{talk:?}: {served:?}");
        assert_eq!(names(to.path()), Vec::<String>::new(), "{talk:?}");
    }
}

/// The listener says how much of an interrupted file had arrived.
#[tokio::test]
async fn an_interrupted_file() {
    let (_, to, inbox) = places(100);
    let service = Service::new(Some(inbox)).await;
    service.say(CONTROL, r#"{"send-file":{"name":"f","size":40}}"#).await;
    service.say(DATA, "some of it").await;
    let served = service.end().await.expect("the end was graceful");
    let Served::NoFile { name, arrived, size, .. } = served else { panic!("{served:?}") };
    assert_eq!((name.as_str(), arrived, size), ("f", 10, 40));
    assert_eq!(names(to.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_measurement_of_each_kind() {
    for (way, message_size) in [
        (PerfDirections::ThereAndBack, 8192),
        (PerfDirections::Back, 8192),
        (PerfDirections::Both, 8192),
        (PerfDirections::Both, 4),
    ] {
        let service = Service::new(None).await;
        let plan = Plan { seconds: 0.2, message_size, streams: 3, way, rate: None };
        let tally = PerfProgress::default();
        let measured = measure(&service.association, &plan, &tally).await.expect("it is measured");
        assert_eq!(measured.there.is_none(), way == PerfDirections::Back);
        for direction in [&measured.there, &measured.back].into_iter().flatten() {
            let Direction { bytes, seconds, cpu, by_path, delays } = direction;
            assert!(*bytes > 0 && bytes % u64::from(message_size) == 0 && *seconds >= 0.2, "{direction:?}");
            assert!(direction.rate() > 0.0 && cpu.iter().all(|cpu| *cpu > 0.0), "{direction:?}");
            // Data, words and the headers of chunks; every byte has gone by the one path.
            let loopback = IpAddr::from([127, 0, 0, 1]);
            assert!(by_path.len() == 1 && by_path[&(loopback, loopback)] >= *bytes, "{by_path:?}");
            let Some(delays) = delays else {
                assert_eq!(message_size, 4, "too small to carry a time");
                continue;
            };
            assert_eq!(delays.messages, bytes / u64::from(message_size));
            let quantiles = delays.delay;
            let sorted = [quantiles.min, quantiles.p50, quantiles.p95, quantiles.p99, quantiles.max];
            assert!(sorted.is_sorted(), "{delays:?}");
            // One process, one machine: the clocks' difference is found up to the uncertainty.
            assert!(quantiles.min > -delays.uncertainty && quantiles.max < *seconds, "{delays:?}");
            assert!(delays.uncertainty > 0.0 && delays.jitter.max > 0.0, "{delays:?}");
        }
        let bytes = |direction: &Option<Direction>| direction.as_ref().map_or(0, |direction| direction.bytes);
        let bytes = (bytes(&measured.there), bytes(&measured.back));
        assert_eq!(tally.received(), bytes.1);
        assert_eq!(service.end().await, Ok(Served::Measured(bytes.0, bytes.1)));
    }
}

/// Both applications keep to the rate; and plans that mean nothing are refused.
#[tokio::test]
async fn a_measurement_keeps_to_its_rate() {
    let service = Service::new(None).await;
    let plan = Plan { seconds: 0.5, message_size: 1000, rate: Some(800_000), ..Plan::default() };
    let measured =
        measure(&service.association, &plan, &PerfProgress::default()).await.expect("it is measured");
    for direction in [measured.there, measured.back].into_iter().flatten() {
        // A message each 10 ms, the first at once: 50, or fewer on a machine that is late.
        assert!((1000..=50_000).contains(&direction.bytes), "{direction:?}");
    }
    for refused in [
        Plan { streams: 0, ..plan },
        Plan { seconds: 0.0, ..plan },
        Plan { seconds: f64::NAN, ..plan },
        Plan { rate: Some(0), ..plan },
    ] {
        let service = Service::new(None).await;
        let said = measure(&service.association, &refused, &PerfProgress::default()).await;
        assert!(matches!(said, Err(Failure::Refused(_))), "{refused:?}");
    }
}

/// A file that is announced takes no room until it comes; and the client of which there is no room left hears so at
/// once, before it has sent all.
#[tokio::test]
async fn an_announcement_takes_no_room() {
    let (from, to, inbox) = places(100_000);
    let hog = Service::new(Some(inbox.clone())).await;
    hog.say(CONTROL, r#"{"send-file":{"name":"hog","size":90000}}"#).await;
    let go = hog.association.recv().await.expect("it lives").expect("an answer");
    assert_eq!(go.into_bytes(), r#"{"go":{}}"#);
    fs::write(from.path().join("honest"), [1; 90_000]).expect("a file");
    let service = Service::new(Some(inbox)).await;
    let sent = send_file(&service.association, &from.path().join("honest"), &|_, _| {}).await;
    assert_eq!(sent.expect("it arrives").size, 90_000);
    assert!(matches!(service.end().await, Ok(Served::File(_))));
    hog.say(DATA, &"x".repeat(20_000)).await;
    let verdict = hog.association.recv().await.expect("it lives").expect("an answer").into_bytes();
    let verdict = String::from_utf8_lossy(&verdict).into_owned();
    assert!(verdict.contains("there is room for 10000 bytes"), "{verdict}");
    assert!(matches!(hog.end().await, Ok(Served::NoFile { arrived: 20_000, .. })));
    assert_eq!(names(to.path()), ["honest"]);
}

/// Six hundred senders announce a file and send nothing. That takes no thread of those that write files: the next
/// sender's file arrives all the same.
#[tokio::test]
async fn senders_that_dawdle_keep_nobody_waiting() {
    const IDLE: usize = 600;
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("up to the maximum");
    let (from, to, inbox) = places(1 << 30);
    let mut idle = Vec::new();
    for number in 0..IDLE {
        let service = Service::new(Some(inbox.clone())).await;
        let name = format!(r#"{{"send-file":{{"name":"idle {number}","size":10}}}}"#);
        service.say(CONTROL, &name).await;
        idle.push(service);
    }
    fs::write(from.path().join("whole"), [1; 200_000]).expect("a file");
    let service = Service::new(Some(inbox)).await;
    let whole = from.path().join("whole");
    let sent = send_file(&service.association, &whole, &|_, _| {});
    let sent = timeout(Duration::from_secs(20), sent).await.expect("it need not wait for the others");
    assert_eq!(sent.expect("it arrives").size, 200_000);
    assert!(to.path().join("whole").exists());
}

/// Three hundred senders at once: every file arrives, and none waits for long.
#[tokio::test]
async fn three_hundred_senders_at_once() {
    const FILES: usize = 300;
    // Each sender has sockets of its own: more than the thousand files that a process may open by default.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("up to the maximum");
    let (from, to, inbox) = places(1 << 30);
    let local: Vec<IpAddr> = vec!["127.0.0.1".parse().expect("an address")];
    let options = Options { local: local.clone(), carrier: Carrier::Udp(0), ..Options::default() };
    let server = Endpoint::bind(options).expect("sockets");
    let at: Vec<SocketAddr> = server.local().into_iter().map(|(place, _)| place).collect();
    let serving = tokio::spawn(async move {
        for _ in 0..FILES {
            let (association, inbox) = (server.accept().await.expect("it is open"), inbox.clone());
            tokio::spawn(async move { serve(&association, Some(&inbox)).await });
        }
        // It lives as long as its associations are served.
        std::future::pending::<()>().await
    });
    let mut senders = tokio::task::JoinSet::new();
    for number in 0..FILES {
        let client = Endpoint::bind(Options::towards(&local).expect("routes")).expect("sockets");
        let path = from.path().join(format!("file {number}"));
        fs::write(&path, vec![number as u8; 20_000]).expect("a file");
        let at = at.clone();
        senders.spawn(async move {
            let association = client.connect(&at, PORT).await.expect("it comes up");
            let sent = send_file(&association, &path, &|_, _| {}).await;
            let _ = association.close().await;
            sent.map(|file| file.size)
        });
    }
    let sent = timeout(Duration::from_secs(60), senders.join_all()).await.expect("it takes no minute");
    assert!(sent.iter().all(|size| matches!(size, Ok(20_000))), "{sent:?}");
    assert_eq!(names(to.path()).len(), FILES);
    for number in 0..FILES {
        let content = fs::read(to.path().join(format!("file {number}"))).expect("it is there");
        assert!(content == vec![number as u8; 20_000], "file {number}");
    }
    serving.abort();
}
