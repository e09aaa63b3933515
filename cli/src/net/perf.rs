//! `anabranch perf`: measures the way to a listener and back.

use std::net::IpAddr;

use anabranch_net::service::{Direction, Measured, Plan, measure};
use anabranch_net::{Association, Endpoint};
use serde_json::{Map, Value, json};

use super::setup::Client;
use super::{Interrupts, end, in_runtime, leave, paths};
use crate::WRONG_INPUT;
use crate::output::{fail, print, print_json, refuse};

/// What `anabranch perf` takes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    client: Client,
    /// How long each direction sends
    #[arg(long, value_name = "S", default_value_t = 10.0)]
    seconds: f64,
    /// Streams that messages go to in turn
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    streams: u16,
    /// Bytes of a message
    #[arg(long, value_name = "B", default_value_t = 8192, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    message_size: u32,
}

const EXAMPLES: &str = "\
Examples:
  anabranch serve &  anabranch perf --to 127.0.0.1
  anabranch perf --to 192.0.2.1,198.51.100.1 --seconds 5 --streams 4 --json

CPU seconds are those of the two processes, for a gigabyte of user data.

Exit status: 0 done, 2 the input was wrong, 130 interrupted, 1 anything else.";

/// Measures, and returns the exit status.
pub(crate) fn perf(arguments: &Arguments) -> u8 {
    if !(0.0..=3600.0).contains(&arguments.seconds) {
        refuse("--seconds: 0 to 3600 seconds");
        return WRONG_INPUT;
    }
    in_runtime(async |interrupts: &mut Interrupts| match arguments.client.connect(interrupts).await {
        Ok((endpoint, association)) => both_ways(arguments, &endpoint, &association, interrupts).await,
        Err(status) => status,
    })
}

async fn both_ways(
    arguments: &Arguments,
    endpoint: &Endpoint,
    association: &Association,
    interrupts: &mut Interrupts,
) -> u8 {
    let Arguments { seconds, streams, message_size, .. } = *arguments;
    let plan = Plan { seconds, message_size, streams };
    let measured = tokio::select! {
        measured = measure(association, &plan) => Ok(measured),
        signal = interrupts.next() => Err(signal),
    };
    let status = match measured {
        Ok(Ok(measured)) => report(arguments, &measured, endpoint, association),
        Ok(Err(error)) => fail(error),
        Err(signal) => {
            fail("interrupted");
            signal
        }
    };
    end(association, interrupts).await;
    leave(endpoint).await;
    status
}

fn report(arguments: &Arguments, measured: &Measured, endpoint: &Endpoint, association: &Association) -> u8 {
    let (reports, traffic) = (association.paths(), endpoint.traffic());
    if arguments.client.json {
        return print_json(&json!({
            "there": direction(&measured.there),
            "there_by_path": by_path(&measured.there),
            "back": direction(&measured.back),
            "back_by_path": by_path(&measured.back),
            "message_size": arguments.message_size,
            "streams": arguments.streams,
            "paths": reports.iter().map(paths::json).collect::<Vec<_>>(),
            "traffic": paths::traffic(&traffic),
        }));
    }
    let line = |name, direction: &Direction| {
        let (rate, cpu) = (direction.rate() / 1e6, direction.cpu_a_gigabyte());
        let whole = format!("{name:<6} {rate:>10.2} Mbit/s  {:>14} B  {cpu:>6.2} CPU s/GB", direction.bytes);
        let path = |(pair, bytes)| {
            format!("\n       {:>10.2} Mbit/s  by {}", mbit(bytes, direction), pair_name(pair))
        };
        whole + &direction.by_path.iter().map(path).collect::<String>()
    };
    print(&format!(
        "{}\n{}\n{:.1} packets a send\n{}",
        line("there", &measured.there),
        line("back", &measured.back),
        traffic.segments_a_send(),
        paths::table(&reports)
    ))
}

/// Bytes that each path carried, in chunks.
fn by_path(direction: &Direction) -> Value {
    let shares = direction.by_path.iter().map(|(pair, bytes)| (pair_name(pair), (*bytes).into()));
    shares.collect::<Map<_, _>>().into()
}

fn mbit(bytes: &u64, direction: &Direction) -> f64 {
    *bytes as f64 * 8e-6 / direction.seconds.max(f64::MIN_POSITIVE)
}

/// A path by its addresses, the sender's first.
fn pair_name((from, to): &(IpAddr, IpAddr)) -> String {
    format!("{from} → {to}")
}

fn direction(direction: &Direction) -> Value {
    json!({
        "bytes": direction.bytes,
        "seconds": direction.seconds,
        "rate": direction.rate(),
        "cpu": { "here": direction.cpu[0], "there": direction.cpu[1] },
        "cpu_a_gigabyte": direction.cpu_a_gigabyte(),
    })
}
