//! The service of `anabranch serve` on an association: it receives files and takes part in measurements.
//!
//! The protocol is small and our own. A message with the payload protocol identifier [`CONTROL`] is a JSON object
//! with one key, at most [`LONGEST`] bytes, on stream 0. A message with [`DATA`] is user data. The client begins:
//!
//! ```text
//! → {"send-file":{"name":"a.txt","size":12}}      a name without directories, and bytes
//! → DATA …                                        in order, on stream 0, without waiting for the answer
//! ← {"go":{}}                                     or {"refused":{"why":"…"}}
//! → {"end":{"sha256":"…"}}                        of what was sent, 64 digits
//! ← {"verdict":{"received":12,"failed":null}}     the file has its name, or why it has not; a failure is said at once,
//!                                                 in the middle of the data if need be
//!
//! → {"clock":{"now":…}}                          nanoseconds of the client's clock, a few times
//! ← {"clock":{"now":…}}                          and of the listener's
//! → {"measure":{"seconds":5.0,"message_size":8192,"streams":1,"way":"there-and-back","rate":null}}
//! ← {"go":{}}
//! → DATA …                                        for so long, on every stream in turn; a message of 8 bytes and
//!                                                 more begins with the clock's time when it was handed over
//! → {"sent":{"bytes":…}}
//! ← {"measured":{"bytes":…,"cpu":0.5,"delays":{…}}}
//!                                                 when all has come; CPU seconds of this phase
//! ← DATA …                                        and the same the other way (with "both" at the same time)
//! ← {"sent":{"bytes":…}}
//! → {"measured":{"bytes":…,"cpu":0.5,"delays":{…}}}
//! ← {"measured":{"bytes":…,"cpu":0.5,"shares":[{"from":"192.0.2.1","to":"198.51.100.1","bytes":…}]}}
//!                                                 the listener's side of this phase: what each path carried
//! ```
//!
//! At the end the client shuts the association down. An end that violates these rules is aborted.

mod delay;
mod file;
mod inbox;
mod perf;
mod serve;

pub use delay::{Delays, Quantiles};
pub use file::{Progress, SendError, SentFile, announcement, send_file};
pub use inbox::{Inbox, Received};
pub use perf::{Direction, Measured, PerfDirections, PerfProgress, Plan, Stage, measure};
pub use serve::{Served, serve};

use anabranch_proto::{Delivery, Message};
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

use crate::{Association, Ended, printable};

/// The payload protocol identifier of JSON objects. Unregistered: "anb" and a number.
pub const CONTROL: u32 = 0x616e_6200;
/// The payload protocol identifier of user data.
pub const DATA: u32 = 0x616e_6201;
/// The largest JSON object in bytes.
pub const LONGEST: usize = 4096;
/// The other end is given up after so many seconds of silence, because a client may occupy room. Tests have no time for
/// that.
const PATIENCE: u64 = if cfg!(test) { 2 } else { 300 };
/// Bytes of a message of file data.
const PIECE: usize = 64 << 10;

/// The control messages.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "kebab-case", rename_all_fields = "snake_case", deny_unknown_fields)]
enum Control {
    /// A file is to be sent.
    SendFile { name: String, size: u64 },
    /// A measurement.
    Measure(Plan),
    /// Continue.
    Go {},
    /// Refused.
    Refused { why: String },
    /// The file is complete, and this is its hash.
    End { sha256: String },
    /// The outcome.
    Verdict { received: u64, failed: Option<String> },
    /// The measurement's data is complete.
    Sent { bytes: u64 },
    /// Its result.
    Measured(perf::Report),
    /// A clock's time, in nanoseconds.
    Clock { now: i64 },
}

/// Why a conversation failed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Failure {
    /// The association ended.
    #[error(transparent)]
    Ended(#[from] Ended),
    /// The other end closed before the conversation was complete.
    #[error("the other end stopped in the middle")]
    Stopped,
    /// The other end refused.
    #[error("the other end refuses: {}", printable(.0))]
    Refused(String),
    /// The measurement needs more streams than the two ends have agreed on.
    #[error(
        "{wanted} streams were asked for, and the two ends have agreed on {agreed}: more need outbound_streams at the sender and \
         inbound_streams at the receiver"
    )]
    Streams {
        /// As many as were asked for.
        wanted: u16,
        /// As many as there are.
        agreed: u16,
    },
    /// The other end violated the protocol.
    #[error("the other end violates the protocol: {}", printable(.0))]
    Confused(String),
    /// The other end is silent.
    #[error("the other end has said nothing for {0} seconds")]
    Silent(u64),
    /// The other end is so many seconds late with the end of its data.
    #[error("the other end still sends {0} seconds after the end of the measurement")]
    Endless(u64),
    /// The other end sends fewer bytes per second than this.
    #[error("the other end sends less than {0} bytes a second")]
    Slow(u64),
}

/// An arriving item: a control message or user data.
enum Inbound {
    Said(Control),
    Data(Delivery),
}

/// Sends a control message. If the other end reads nothing, it finds no room in the send buffer.
async fn say(association: &Association, control: &Control) -> Result<(), Failure> {
    let payload = written(control).into();
    let message = Message { stream: 0, ppid: CONTROL, payload, ..Message::default() };
    patiently(association, async { Ok(association.send(message).await?) }).await
}

/// The next item; `None` if the other end has finished.
async fn hear(association: &Association) -> Result<Option<Inbound>, Failure> {
    hear_within(association, PATIENCE).await
}

/// The next item, which the other end may take so many seconds to send.
async fn hear_within(association: &Association, seconds: u64) -> Result<Option<Inbound>, Failure> {
    let mut heard = pin!(hear_sometime(association));
    // Usually the item is here already, and no timer is needed.
    if let Poll::Ready(heard) = poll_fn(|context| Poll::Ready(heard.as_mut().poll(context))).await {
        return heard;
    }
    let heard = timeout(Duration::from_secs(seconds), heard).await;
    heard.unwrap_or(Err(Failure::Silent(seconds)))
}

/// Waits for something that depends on the other end, as long as it acknowledges data: a slow network is not silent.
async fn patiently<T>(
    association: &Association,
    what: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut what = pin!(what);
    loop {
        let before = association.statistics().acknowledged;
        match timeout(Duration::from_secs(PATIENCE), what.as_mut()).await {
            Ok(done) => return done,
            Err(_) if association.statistics().acknowledged > before => {}
            Err(_) => return Err(Failure::Silent(PATIENCE)),
        }
    }
}

async fn hear_sometime(association: &Association) -> Result<Option<Inbound>, Failure> {
    let Some(first) = association.recv().await? else { return Ok(None) };
    if first.ppid == DATA {
        return Ok(Some(Inbound::Data(first)));
    }
    let mut whole = BytesMut::new();
    let mut part = first;
    loop {
        if part.ppid != CONTROL || part.stream != 0 {
            return Err(Failure::Confused(format!("payload protocol identifier {:#x}", part.ppid)));
        }
        if whole.len() + part.len() > LONGEST {
            return Err(Failure::Confused("something very long".to_owned()));
        }
        let complete = part.complete;
        whole.extend_from_slice(&part.into_bytes());
        if complete {
            break;
        }
        part = association.recv().await?.ok_or(Failure::Stopped)?;
    }
    read(&whole).map(|said| Some(Inbound::Said(said)))
}

fn read(message: &[u8]) -> Result<Control, Failure> {
    serde_json::from_slice(message).map_err(|error| Failure::Confused(error.to_string()))
}

fn written(control: &Control) -> Vec<u8> {
    serde_json::to_vec(control).unwrap_or_default()
}

/// A control message as it is read and written again; the plan of a measurement must be one that can be carried out.
/// For tests with hostile messages.
#[doc(hidden)]
pub fn echoed(message: &[u8]) -> Result<Vec<u8>, Failure> {
    let said = read(message)?;
    if let Control::Measure(plan) = &said {
        plan.check().map_err(Failure::Refused)?;
    }
    Ok(written(&said))
}

/// The next control message, when no data is expected.
async fn answer(association: &Association) -> Result<Control, Failure> {
    said(hear(association).await?)
}

/// The control message of an item, when no data is expected.
fn said(heard: Option<Inbound>) -> Result<Control, Failure> {
    match heard {
        Some(Inbound::Said(Control::Refused { why })) => Err(Failure::Refused(why)),
        Some(Inbound::Said(said)) => Ok(said),
        Some(Inbound::Data(_)) => Err(Failure::Confused("data before its time".to_owned())),
        None => Err(Failure::Stopped),
    }
}

fn unexpected(said: &Control) -> Failure {
    let what = match said {
        Control::SendFile { .. } => "the announcement of a file",
        Control::Measure(_) => "the plan of a measurement",
        Control::Go {} => "the permission to send",
        Control::Refused { .. } => "a refusal",
        Control::End { .. } => "the end of a file",
        Control::Verdict { failed: Some(why), .. } => &format!("the verdict on a file ({why})"),
        Control::Verdict { failed: None, .. } => "the verdict on a file",
        Control::Sent { .. } => "the end of a measurement's data",
        Control::Measured(_) => "the result of a measurement",
        Control::Clock { .. } => "the time of a clock",
    };
    Failure::Confused(format!("{what} at the wrong time"))
}

async fn send_data(association: &Association, stream: u16, payload: Bytes) -> Result<(), Failure> {
    Ok(association.send(Message { stream, ppid: DATA, payload, ..Message::default() }).await?)
}

/// Does what waits for the disk, without blocking other clients.
async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Carrier, Config, Endpoint, Options};
    use anabranch_proto::Parameters;
    use std::net::{IpAddr, Ipv4Addr, SocketAddr};
    use std::time::Instant;

    /// Both ends of an association: the client's and the listener's, whose receive buffer has so many bytes; with their
    /// endpoints.
    async fn pair(receive_buffer: u32) -> (Association, Association, [Endpoint; 2]) {
        let client = Options::towards(&[IpAddr::V4(Ipv4Addr::LOCALHOST)]).expect("routes").config;
        ends(client, Config { receive_buffer, ..Config::default() }).await
    }

    /// As `pair`, with these parameters of the client and the listener.
    async fn ends(client: Config, listener: Config) -> (Association, Association, [Endpoint; 2]) {
        let bind = |config, listen| {
            let (local, carrier) = (vec![IpAddr::V4(Ipv4Addr::LOCALHOST)], Carrier::Udp(0));
            Endpoint::bind(Options { config, local, carrier, listen, ..Options::default() }).expect("sockets")
        };
        let (client, server) = (bind(client, false), bind(listener, true));
        let to: Vec<SocketAddr> = server.local().into_iter().map(|(place, _)| place).collect();
        let (ours, theirs) = tokio::join!(client.connect(&to, 5000), server.accept());
        (ours.expect("it comes up"), theirs.expect("it is open"), [server, client])
    }

    /// What a measurement comes to at both ends.
    async fn measured(plan: &Plan) -> (Result<Measured, Failure>, Result<Served, Failure>) {
        let (ours, theirs, _endpoints) = pair(1 << 20).await;
        let client = async {
            let measured = measure(&ours, plan, &PerfProgress::default()).await;
            let _ = ours.close().await;
            measured
        };
        tokio::join!(client, serve(&theirs, None))
    }

    #[test]
    fn a_message_at_the_wrong_time_is_named_in_words() {
        let verdict = Control::Verdict { received: 1, failed: None };
        let told = "the other end violates the protocol: the verdict on a file at the wrong time";
        assert_eq!(unexpected(&verdict).to_string(), told);
    }

    /// While one end sends, the other has nothing to say, and messages of a low rate come seldom. That is no silence.
    #[tokio::test]
    async fn a_measurement_may_take_longer_than_silence() {
        for (rate, way) in [(100_000, PerfDirections::ThereAndBack), (2_000, PerfDirections::Back)] {
            let seconds = PATIENCE as f64 * 1.5;
            let plan = Plan { seconds, message_size: 1000, way, rate: Some(rate), ..Plan::default() };
            let (measured, served) = measured(&plan).await;
            let measured = measured.expect("it is not given up");
            assert!(measured.back.is_some_and(|back| back.seconds >= seconds), "{way:?}");
            assert!(matches!(served, Ok(Served::Measured(..))), "{way:?}: {served:?}");
        }
    }

    /// An end that goes on sending when its time is over is given up, although it is never silent.
    #[tokio::test]
    async fn a_measurement_has_an_end() {
        let plan = Plan { seconds: 0.1, message_size: 100, ..Plan::default() };
        let endless = async |association: &Association| {
            while send_data(association, 0, Bytes::from_static(&[0; 100])).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let listener = async |theirs: Association| {
            let mut heard = hear(&theirs).await;
            while let Ok(Some(Inbound::Said(Control::Clock { .. }))) = heard {
                say(&theirs, &Control::Clock { now: 0 }).await.expect("it lives");
                heard = hear(&theirs).await;
            }
            say(&theirs, &Control::Go {}).await.expect("it lives");
            endless(&theirs).await;
        };
        let (ours, theirs, _endpoints) = pair(1 << 20).await;
        let client = async {
            let plan = Plan { way: PerfDirections::Back, ..plan };
            let measured = measure(&ours, &plan, &PerfProgress::default()).await;
            ours.abort();
            measured
        };
        let both = async { tokio::join!(client, listener(theirs)).0 };
        let measured = timeout(Duration::from_secs(30), both).await.expect("nobody waits for ever");
        assert_eq!(measured, Err(Failure::Endless(PATIENCE)));

        let (ours, theirs, _endpoints) = pair(1 << 20).await;
        let client = async {
            say(&ours, &Control::Measure(plan)).await.expect("it lives");
            endless(&ours).await;
        };
        let both = async { tokio::join!(serve(&theirs, None), client).0 };
        let served = timeout(Duration::from_secs(30), both).await.expect("nobody waits for ever");
        assert_eq!(served, Err(Failure::Endless(PATIENCE)));
    }

    /// What `measure` makes of a listener that reports on each phase with these entries beside the bytes. It sends
    /// nothing itself.
    async fn measured_with(way: PerfDirections, entries: &str) -> Result<Measured, Failure> {
        let (ours, theirs, _endpoints) = pair(1 << 20).await;
        let report = async |bytes: u64| {
            let report = format!(r#"{{"measured":{{"bytes":{bytes}{entries}}}}}"#);
            say(&theirs, &read(report.as_bytes()).expect("a report")).await.expect("it lives");
        };
        let listener = async {
            loop {
                match hear(&theirs).await {
                    Ok(Some(Inbound::Said(Control::Clock { .. }))) => {
                        say(&theirs, &Control::Clock { now: 0 }).await.expect("it lives");
                    }
                    Ok(Some(Inbound::Said(Control::Measure(plan)))) => {
                        say(&theirs, &Control::Go {}).await.expect("it lives");
                        if plan.way == PerfDirections::Back {
                            say(&theirs, &Control::Sent { bytes: 0 }).await.expect("it lives");
                        }
                    }
                    Ok(Some(Inbound::Said(Control::Sent { bytes }))) => {
                        report(bytes).await;
                        say(&theirs, &Control::Sent { bytes: 0 }).await.expect("it lives");
                    }
                    Ok(Some(Inbound::Said(Control::Measured(_)))) => return report(0).await,
                    Ok(Some(Inbound::Data(_))) => {}
                    _ => return,
                }
            }
        };
        let client = async {
            let plan = Plan { seconds: 0.1, message_size: 1000, way, ..Plan::default() };
            let measured = measure(&ours, &plan, &PerfProgress::default()).await;
            ours.abort();
            measured
        };
        tokio::join!(client, listener).0
    }

    #[tokio::test]
    async fn figures_that_cannot_be_are_no_result() {
        let quantiles = r#"{"min":0.0,"mean":0.0,"p50":0.0,"p95":0.0,"p99":0.0,"max":0.0}"#;
        let delays = |messages: u64, delay: &str| {
            let rest = format!(r#""jitter":{quantiles},"smoothed_jitter":0.0,"uncertainty":0.0"#);
            format!(r#","cpu":0.1,"delays":{{"messages":{messages},"delay":{delay},{rest}}}"#)
        };
        let share = |bytes: u64| {
            format!(r#","cpu":0.0,"shares":[{{"from":"127.0.0.1","to":"127.0.0.1","bytes":{bytes}}}]"#)
        };
        for way in [PerfDirections::ThereAndBack, PerfDirections::Back] {
            for possible in [r#","cpu":0.0"#, r#","cpu":0.25"#, &share(4000)] {
                let measured = measured_with(way, possible).await;
                assert!(measured.is_ok(), "{way:?} {possible}: {measured:?}");
            }
            for time in ["-0.1", "-1e308", "1e308"] {
                let measured = measured_with(way, &format!(r#","cpu":{time}"#)).await;
                assert_eq!(
                    measured,
                    Err(Failure::Confused("CPU seconds that cannot be".to_owned())),
                    "{time}"
                );
            }
            let measured = measured_with(way, &share(u64::MAX)).await;
            assert_eq!(measured, Err(Failure::Confused("bytes of paths that cannot be".to_owned())));
        }
        for lie in [delays(u64::MAX, quantiles), delays(1, &quantiles.replace("0.0}", "1e308}"))] {
            let measured = measured_with(PerfDirections::ThereAndBack, &lie).await;
            assert_eq!(measured, Err(Failure::Confused("delays that cannot be".to_owned())), "{lie}");
        }
    }

    /// A listener cannot have received more of a file than there is.
    #[tokio::test]
    async fn no_more_of_a_file_arrives_than_there_is() {
        let (ours, theirs, _endpoints) = pair(1 << 20).await;
        let directory = tempfile::tempdir().expect("a place");
        let file = directory.path().join("file");
        std::fs::write(&file, [7; 100]).expect("a file");
        let listener = async {
            say(&theirs, &Control::Go {}).await.expect("it lives");
            let verdict = Control::Verdict { received: u64::MAX, failed: Some("no".to_owned()) };
            say(&theirs, &verdict).await.expect("it lives");
        };
        let (sent, ()) = tokio::join!(send_file(&ours, &file, &|_, _| {}), listener);
        let error = sent.expect_err("it is refused");
        assert!(matches!(error, SendError::Verdict { received: 100, .. }), "{error:?}");
    }

    /// Messages of one byte need far more memory than the send buffer counts.
    #[tokio::test]
    async fn a_measurement_holds_so_many_messages_at_most() {
        let (ours, theirs, _endpoints) = pair(1 << 20).await;
        let plan = Plan { seconds: 0.5, message_size: 1, way: PerfDirections::Back, ..Plan::default() };
        let client = async {
            say(&ours, &Control::Measure(plan)).await.expect("it lives");
            tokio::time::sleep(Duration::from_millis(600)).await;
            loop {
                match hear(&ours).await {
                    Ok(Some(Inbound::Said(Control::Sent { bytes }))) => {
                        let report = format!(r#"{{"measured":{{"bytes":{bytes},"cpu":0.0}}}}"#);
                        say(&ours, &read(report.as_bytes()).expect("a report")).await.expect("it lives");
                    }
                    Ok(Some(Inbound::Said(Control::Measured(_)))) => return ours.close().await,
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("the end is too early"),
                    Err(failure) => panic!("{failure}"),
                }
            }
        };
        let (served, closed) = tokio::join!(serve(&theirs, None), client);
        let Ok(Served::Measured(0, given)) = served else { panic!("{served:?}") };
        // What the client's buffer takes, and what waits; some of it was on its way.
        assert!((20_000..40_000).contains(&given) && closed.is_ok(), "{given}");
    }

    /// A client that asks and asks and never reads an answer is given up, as one that says nothing.
    #[tokio::test]
    async fn a_client_that_reads_nothing_is_given_up() {
        let client = Config { port: 0, receive_buffer: 2000, ..Config::default() };
        let parameters = Parameters { send_buffer: Some(2000), ..Parameters::default() };
        let (ours, theirs, _endpoints) = ends(client, Config { parameters, ..Config::default() }).await;
        let asking = async { while say(&ours, &Control::Clock { now: 0 }).await.is_ok() {} };
        let both = async { tokio::join!(serve(&theirs, None), asking) };
        let (served, ()) = timeout(Duration::from_secs(30), both).await.expect("nobody waits for ever");
        assert_eq!(served, Err(Failure::Silent(PATIENCE)));
    }

    /// All of a file is in the send buffer, and a slow network takes longer for it than silence may last.
    #[tokio::test]
    async fn a_file_may_take_longer_than_silence() {
        let (ours, theirs, _endpoints) = pair(8 << 10).await;
        let directory = tempfile::tempdir().expect("a place");
        let file = directory.path().join("file");
        std::fs::write(&file, vec![7; 200_000]).expect("a file");
        let slowly = async {
            let (begun, mut bytes) = (Instant::now(), 0);
            while bytes < 200_000 {
                let part = theirs.recv().await.expect("it lives").expect("it goes on");
                bytes += if part.ppid == DATA { part.len() } else { 0 };
                let due = Duration::from_secs_f64(bytes as f64 / 200_000.0 * PATIENCE as f64 * 1.5);
                tokio::time::sleep(due.saturating_sub(begun.elapsed())).await;
            }
            say(&theirs, &Control::Go {}).await.expect("it lives");
            say(&theirs, &Control::Verdict { received: 200_000, failed: None }).await.expect("it lives");
        };
        let (sent, ()) = tokio::join!(send_file(&ours, &file, &|_, _| {}), slowly);
        assert_eq!(sent.expect("it is not given up").size, 200_000);
    }

    /// More streams than the ends have agreed on are refused by name, by the end that cannot send on them.
    #[tokio::test]
    async fn a_measurement_has_as_many_streams_as_agreed() {
        for way in [PerfDirections::ThereAndBack, PerfDirections::Back] {
            let plan = Plan { seconds: 0.1, streams: 17, way, ..Plan::default() };
            let (measured, _) = measured(&plan).await;
            let why = measured.expect_err("16 are agreed").to_string();
            assert!(why.contains("17 streams were asked for, and the two ends have agreed on 16"), "{why}");
        }
    }
}
