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
/// The other end is given up after so many seconds of silence, because a client may occupy room.
const PATIENCE: u64 = 300;
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
    /// The other end violated the protocol.
    #[error("the other end violates the protocol: {}", printable(.0))]
    Confused(String),
    /// The other end is silent.
    #[error("the other end has said nothing for {0} seconds")]
    Silent(u64),
    /// The other end sends fewer bytes per second than this.
    #[error("the other end sends less than {0} bytes a second")]
    Slow(u64),
}

/// An arriving item: a control message or user data.
enum Inbound {
    Said(Control),
    Data(Delivery),
}

async fn say(association: &Association, control: &Control) -> Result<(), Failure> {
    let payload = serde_json::to_vec(control).unwrap_or_default().into();
    Ok(association.send(Message { stream: 0, ppid: CONTROL, payload, ..Message::default() }).await?)
}

/// The next item; `None` if the other end has finished.
async fn hear(association: &Association) -> Result<Option<Inbound>, Failure> {
    let mut heard = pin!(hear_sometime(association));
    // Usually the item is here already, and no timer is needed.
    if let Poll::Ready(heard) = poll_fn(|context| Poll::Ready(heard.as_mut().poll(context))).await {
        return heard;
    }
    let heard = timeout(Duration::from_secs(PATIENCE), heard).await;
    heard.unwrap_or(Err(Failure::Silent(PATIENCE)))
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
    let said = serde_json::from_slice(&whole);
    said.map(|said| Some(Inbound::Said(said))).map_err(|error| Failure::Confused(error.to_string()))
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
    Failure::Confused(format!("{said:?}"))
}

async fn send_data(association: &Association, stream: u16, payload: Bytes) -> Result<(), Failure> {
    Ok(association.send(Message { stream, ppid: DATA, payload, ..Message::default() }).await?)
}

/// Hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
