//! Serves clients: receives their files and takes part in their measurements.

use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

use super::delay::Clock;
use super::inbox::{AHEAD, Inbox, Piece, Received};
use super::{Control, Failure, Inbound, Plan, hear, in_thread, patiently, perf, say, unexpected};
use crate::Association;

/// The period over which a transfer must not be too slow. It is longer than the detection of a failed path.
const PACE: Duration = Duration::from_secs(120);
/// How long a client that was told of a failure may continue before it is aborted.
const LINGER: Duration = Duration::from_secs(10);

/// The outcome of a client's request.
#[derive(Clone, PartialEq, Debug)]
pub enum Served {
    /// A file was received.
    File(Received),
    /// A file was not received: its name, the bytes that arrived and the bytes announced, and the reason. Nothing of
    /// it is kept.
    NoFile {
        /// The name that the client gave.
        name: String,
        /// Bytes that arrived.
        arrived: u64,
        /// Bytes that were announced.
        size: u64,
        /// The reason.
        why: String,
    },
    /// A measurement, with the bytes received and sent.
    Measured(u64, u64),
    /// The client closed the association without a request.
    Nothing,
}

/// Serves the client at the other end, and waits for the end of the association. Files are received only with an
/// inbox.
pub async fn serve(association: &Association, inbox: Option<&Inbox>) -> Result<Served, Failure> {
    let served = converse(association, inbox).await;
    if let Err(Failure::Confused(_) | Failure::Silent(_) | Failure::Endless(_)) = served {
        association.abort();
    }
    let closed = patiently(association, async { Ok(association.close().await?) }).await;
    if let Err(Failure::Silent(_)) = closed {
        association.abort();
    }
    served
}

async fn converse(association: &Association, inbox: Option<&Inbox>) -> Result<Served, Failure> {
    let clock = Clock::new();
    let mut heard = hear(association).await?;
    while let Some(Inbound::Said(Control::Clock { .. })) = heard {
        say(association, &Control::Clock { now: clock.now() }).await?;
        heard = hear(association).await?;
    }
    match heard {
        None => Ok(Served::Nothing),
        Some(Inbound::Said(Control::SendFile { name, size })) => {
            receive(association, inbox, name, size).await
        }
        Some(Inbound::Said(Control::Measure(plan))) => partner(association, &plan, clock).await,
        Some(Inbound::Said(other)) => Err(unexpected(&other)),
        Some(Inbound::Data(_)) => Err(Failure::Confused("data before a wish".to_owned())),
    }
}

async fn receive(
    association: &Association,
    inbox: Option<&Inbox>,
    name: String,
    size: u64,
) -> Result<Served, Failure> {
    let place = match inbox {
        Some(inbox) => {
            let (inbox, name, peer) = (inbox.clone(), name.clone(), peer(association));
            in_thread(move || inbox.open(&name, size, peer)).await
        }
        None => Err("no files are received here".to_owned()),
    };
    let place = match place {
        Ok(place) => place,
        Err(why) => {
            say(association, &Control::Refused { why: why.clone() }).await?;
            linger(association).await;
            return Ok(Served::NoFile { name, arrived: 0, size, why });
        }
    };
    say(association, &Control::Go {}).await?;
    let (sender, pieces) = mpsc::channel(AHEAD);
    let writing = tokio::spawn(place.write(pieces));
    let slowest = inbox.map_or(0, |inbox| inbox.slowest);
    let (arrived, ended) = collect(association, sender, size, slowest).await;
    let written = writing.await.unwrap_or_else(|error| Err(error.to_string()));
    // The answer of the disk is checked first: it may explain why no more data was accepted.
    let judged = match (written, ended) {
        (Ok(received), _) => Ok(received),
        (Err(_), Err(failure)) => Err(failure.to_string()),
        (Err(why), Ok(())) => Err(why),
    };
    let failed = judged.as_ref().err().cloned();
    if say(association, &Control::Verdict { received: arrived, failed }).await.is_ok() {
        match judged {
            Ok(_) => wait_for_the_end(association).await,
            Err(_) => linger(association).await,
        }
    }
    Ok(match judged {
        Ok(received) => Served::File(received),
        Err(why) => Served::NoFile { name, arrived, size, why },
    })
}

/// Passes the data of a file of `size` bytes to its writer until it is complete or the writer has stopped. Returns
/// the bytes that arrived.
async fn collect(
    association: &Association,
    sender: mpsc::Sender<Piece>,
    size: u64,
    slowest: u64,
) -> (u64, Result<(), Failure>) {
    let mut arrived = 0;
    let mut pace = Pace { since: Instant::now(), bytes: 0 };
    loop {
        let mut heard = pin!(hear(association));
        let heard = loop {
            tokio::select! {
                heard = &mut heard => break heard,
                () = sender.closed() => return (arrived, Ok(())),
                () = sleep_until(pace.since + PACE) => {
                    if let Err(failure) = pace.judge(arrived, slowest) {
                        return (arrived, Err(failure));
                    }
                }
            }
        };
        let (piece, last) = match heard {
            Ok(Some(Inbound::Data(delivery))) => {
                arrived += delivery.len() as u64;
                if arrived > size {
                    return (arrived, Err(Failure::Confused("more bytes than announced".to_owned())));
                }
                (Piece::Data(delivery), false)
            }
            Ok(Some(Inbound::Said(Control::End { sha256 }))) => (Piece::End(sha256), true),
            Ok(Some(Inbound::Said(other))) => return (arrived, Err(unexpected(&other))),
            Ok(None) => return (arrived, Err(Failure::Stopped)),
            Err(failure) => return (arrived, Err(failure)),
        };
        if sender.send(piece).await.is_err() || last {
            return (arrived, Ok(()));
        }
    }
}

/// The bytes that had arrived at the last check of the rate.
struct Pace {
    since: Instant,
    bytes: u64,
}

impl Pace {
    /// Starts a new period; an error if fewer than `slowest` bytes per second have arrived in the last one.
    fn judge(&mut self, arrived: u64, slowest: u64) -> Result<(), Failure> {
        if arrived - self.bytes < slowest * PACE.as_secs() {
            return Err(Failure::Slow(slowest));
        }
        *self = Pace { since: Instant::now(), bytes: arrived };
        Ok(())
    }
}

/// The peer's address on the primary path.
fn peer(association: &Association) -> IpAddr {
    let paths = association.paths();
    let primary = paths.iter().find(|path| path.primary).or(paths.first());
    primary.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |path| path.remote.ip)
}

/// The client shuts down after it has received the last message.
async fn wait_for_the_end(association: &Association) {
    while let Ok(Some(_)) = hear(association).await {}
}

/// A refused client ends soon or is aborted; its data is dropped.
async fn linger(association: &Association) {
    if timeout(LINGER, wait_for_the_end(association)).await.is_err() {
        association.abort();
    }
}

async fn partner(association: &Association, plan: &Plan, clock: Clock) -> Result<Served, Failure> {
    let streams = perf::enough_streams(association, plan).map_err(|error| error.to_string());
    if let Err(why) = plan.check().and(streams) {
        say(association, &Control::Refused { why: why.clone() }).await?;
        linger(association).await;
        return Err(Failure::Refused(why));
    }
    say(association, &Control::Go {}).await?;
    let (received, sent) = perf::partner(association, plan, clock).await?;
    wait_for_the_end(association).await;
    Ok(Served::Measured(received, sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_brings_too_little_is_too_slow() {
        let mut pace = Pace { since: Instant::now(), bytes: 0 };
        assert_eq!(pace.judge(120_000, 1000), Ok(()));
        assert_eq!(pace.judge(239_999, 1000), Err(Failure::Slow(1000)));
        assert_eq!(pace.judge(240_000, 1000), Ok(()));
    }
}
