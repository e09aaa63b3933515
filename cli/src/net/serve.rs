//! `anabranch serve`: receives files and takes part in measurements.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_net::service::{Failure, Inbox, Served, serve as converse};
use anabranch_net::{Association, Endpoint, Options, addresses, printable};
use anabranch_proto::Config;
use anabranch_sim::scenario::size;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::log::{Format, Journal};
use super::places::each_once;
use super::setup::refuse_bind;
use super::traced::{Recorded, Traces};
use super::{FAREWELL, Transport, leave};
use crate::FAILED;
use crate::address::ip_address;
use crate::output::{fail, refuse};
use crate::runtime::{Interrupts, in_runtime};

/// The arguments of `anabranch serve`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The local addresses, in order; 0.0.0.0 stands for all IPv4 addresses except loopback, :: for all IPv6 addresses
    #[arg(long, value_name = "ADDR", value_delimiter = ',', default_value = "127.0.0.1", value_parser = ip_address)]
    listen: Vec<IpAddr>,
    #[command(flatten)]
    transport: Transport,
    /// Receive files into this directory, which is created if necessary [default: no files are received]
    #[arg(long, value_name = "DIR")]
    receive_into: Option<PathBuf>,
    /// The largest total size of all files in the directory, with a unit
    #[arg(long, value_name = "SIZE", default_value = "1 GB", requires = "receive_into")]
    max_size: String,
    /// The largest total size of the files of one source [default: --max-size; half of it with --public]
    #[arg(long, value_name = "SIZE", requires = "receive_into")]
    max_size_per_source: Option<String>,
    /// The largest number of simultaneous associations of one source address (IPv6: /64 network)
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    max_per_source: u32,
    /// Serve everyone who can reach these addresses, without authentication
    #[arg(long)]
    public: bool,
    /// The format of log lines
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log: Format,
    /// Print one JSON object per event on standard output; the log goes to standard error
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    traces: Traces,
}

const EXAMPLES: &str = "\
Examples:
  anabranch serve
  anabranch serve --listen 192.0.2.1,198.51.100.1 --public --receive-into inbox/ --max-size '20 GB'
  anabranch serve --listen ::1 --udp 9900
  anabranch serve --key /etc/anabranch/key --listen 0.0.0.0 --receive-into inbox/ --log json
  anabranch serve --json | jq -r 'select(.received) | .received'
  anabranch serve --receive-into inbox/ --qlog served.sqlog --perfetto served.json

Addresses other than loopback need --key or --public. Nothing is encrypted: anyone on the network path can read all,
and without --key can change it.

A file counts as received when it and its name are on the disk. Only bytes that have arrived count towards --max-size.
--qlog and --perfetto are written when the listener ends; a recording stands beside the file until then. Each association is a flow
`transfer-N`, numbered as in the log.
A transfer slower than 1000 bytes per second over two minutes is ended.

Ctrl-C, SIGTERM or SIGHUP ends all associations gracefully. A second signal, or five seconds later, aborts them. Peers are told in
both cases.

Exit status: 130 interrupted, 143 ended by SIGTERM, 129 by SIGHUP, 2 the input was wrong, 1 anything else.";

/// Serves until it is interrupted, and returns the exit status.
pub(crate) fn serve(arguments: &Arguments) -> u8 {
    let (options, inbox) = match read(arguments) {
        Ok(read) => read,
        Err(status) => return status,
    };
    let recorded = match Recorded::begin(None, &arguments.traces, &arguments.transport, true) {
        Ok(recorded) => recorded,
        Err(status) => return status,
    };
    let tape = recorded.as_ref().map(Recorded::tape);
    raise_descriptor_limit();
    in_runtime(async |interrupts: &mut Interrupts| {
        let bound = match tape {
            Some(tape) => Endpoint::record(options, Box::new(tape)),
            None => Endpoint::bind(options),
        };
        let status = match bound {
            Ok(endpoint) => {
                let journal = Journal::begin(arguments.log, arguments.json);
                let status = accept(endpoint, inbox, &journal, interrupts).await;
                journal.finish();
                status
            }
            Err(error) => refuse_bind("--listen", &arguments.transport, &error),
        };
        Recorded::end(recorded, &arguments.traces, interrupts, status).await
    })
}

/// Every file that arrives has a descriptor. The usual limit of 1,024 protects programs that call `select`; two hostile
/// sources could use it up.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    // If the system does not allow it, the limit stays.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn read(arguments: &Arguments) -> Result<(Options, Option<Inbox>), u8> {
    let config = arguments.transport.config()?;
    let known = arguments.public || arguments.transport.key.is_some();
    if let Some(open) = arguments.listen.iter().find(|ip| !ip.to_canonical().is_loopback() && !known) {
        return Err(refuse(format!(
            "--listen {open}: whoever reaches this address could send files here; give --key FILE, or --public \
             if that is wanted"
        )));
    }
    let local = local(&arguments.listen)?;
    let (room, share) = limits(arguments)?;
    let inbox = arguments.receive_into.as_ref().map(|directory| {
        if directory.is_file() {
            let file = directory.display();
            return Err(refuse(format!("--receive-into {file}: this is a file; name a directory")));
        }
        let created = std::fs::create_dir_all(directory);
        let inbox = created.and_then(|()| Inbox::new(directory, room)).map(|inbox| inbox.share(share));
        inbox.map_err(|error| refuse(format!("--receive-into {}: {error}", directory.display())))
    });
    let inbox = inbox.transpose()?;
    let config = Config { port: arguments.transport.port, ..config };
    let carrier = arguments.transport.carrier(arguments.transport.udp);
    let max_per_source = Some(arguments.max_per_source);
    let gso = !arguments.transport.no_gso;
    Ok((Options { config, local, carrier, max_per_source, gso, ..Options::default() }, inbox))
}

/// The local addresses, each once.
fn local(listen: &[IpAddr]) -> Result<Vec<IpAddr>, u8> {
    let mut local = Vec::new();
    for ip in listen {
        let found = if ip.is_unspecified() { addresses(*ip).map_err(fail)? } else { vec![*ip] };
        if found.is_empty() {
            return Err(refuse(format!(
                "--listen {ip}: this host has only loopback and link-local addresses"
            )));
        }
        local.extend(found);
    }
    each_once("--listen", &local)
}

/// The limits in bytes: for all files, and for the files of one source.
fn limits(arguments: &Arguments) -> Result<(u64, u64), u8> {
    let bytes =
        |option: &str, text: &str| size(text).map_err(|hint| refuse(format!("{option} {text}: {hint}")));
    let room = bytes("--max-size", &arguments.max_size)?;
    let share = match &arguments.max_size_per_source {
        Some(share) => bytes("--max-size-per-source", share)?,
        None if arguments.public => room / 2,
        None => room,
    };
    Ok((room, share))
}

async fn accept(
    endpoint: Endpoint,
    inbox: Option<Inbox>,
    journal: &Journal,
    interrupts: &mut Interrupts,
) -> u8 {
    for (place, device) in endpoint.local() {
        if !journal.listening(place, &device) {
            return FAILED;
        }
    }
    let (stop, stopping) = watch::channel(Stop::Not);
    let (mut clients, mut ids) = (JoinSet::new(), 1..);
    let signal = loop {
        tokio::select! {
            Some(association) = endpoint.accept() => {
                let id: u64 = ids.next().unwrap_or_default();
                let client = Client { id, association: Arc::new(association), journal: journal.clone() };
                clients.spawn(client.serve(inbox.clone(), stopping.clone()));
            }
            Some(_) = clients.join_next(), if !clients.is_empty() => {}
            signal = interrupts.next() => break signal,
        }
    };
    let _ = stop.send(Stop::Gracefully);
    let ended = async |clients: &mut JoinSet<()>| while clients.join_next().await.is_some() {};
    tokio::select! {
        // Who comes now is told that nobody listens.
        _ = async { tokio::join!(endpoint.close(), ended(&mut clients)) } => {}
        _ = interrupts.next() => {}
        () = sleep(FAREWELL) => {}
    }
    let _ = stop.send(Stop::AtOnce);
    // After an abort nothing more is sent.
    let _ = timeout(Duration::from_secs(1), ended(&mut clients)).await;
    leave(&endpoint).await;
    signal
}

/// How clients are told to end.
#[derive(Copy, Clone, PartialEq)]
enum Stop {
    Not,
    Gracefully,
    AtOnce,
}

/// A client.
struct Client {
    /// The number of its association since the listener started.
    id: u64,
    association: Arc<Association>,
    journal: Journal,
}

impl Client {
    /// Serves the client and reports the outcome.
    async fn serve(self, inbox: Option<Inbox>, mut stopping: watch::Receiver<Stop>) {
        let (id, begun) = (self.id, Instant::now());
        let peer =
            self.association.paths().first().map_or("nowhere".to_owned(), |path| path.remote.ip.to_string());
        self.journal.event("connected", json!({ "id": id, "peer": peer }));
        let ending = Arc::clone(&self.association);
        let stop = tokio::spawn(async move {
            if stopping.wait_for(|stop| *stop != Stop::Not).await.is_ok() {
                tokio::select! {
                    _ = ending.close() => {}
                    _ = stopping.wait_for(|stop| *stop == Stop::AtOnce) => ending.abort(),
                }
            }
        });
        let served = converse(&self.association, inbox.as_ref()).await;
        stop.abort();
        let (said, mut event) = told(&served);
        let span = tracing::info_span!("transfer", id, %peer);
        span.in_scope(|| match &served {
            Ok(Served::File(_) | Served::Measured(..) | Served::Nothing) | Err(Failure::Stopped) => {
                tracing::info!("{said}");
            }
            _ => tracing::warn!("{said}"),
        });
        (event["id"], event["peer"]) = (id.into(), peer.into());
        event["seconds"] = begun.elapsed().as_secs_f64().into();
        self.journal.event("ended", event);
    }
}

/// The outcome as text and as JSON.
fn told(served: &Result<Served, Failure>) -> (String, Value) {
    match served {
        Ok(Served::File(file)) => {
            let (path, bytes) = (file.path.display().to_string(), file.size);
            (format!("received {path}, {bytes} bytes"), json!({ "received": path, "bytes": bytes }))
        }
        Ok(Served::NoFile { name, arrived, size, why }) => {
            // Debug text is in quotation marks and escapes what cannot be printed.
            (
                format!("not received {name:?}, {arrived} of {size} bytes had arrived: {}", printable(why)),
                json!({ "not_received": name, "arrived": arrived, "bytes": size, "why": why }),
            )
        }
        Ok(Served::Measured(received, sent)) => (
            format!("measured: received {received} B, sent {sent} B"),
            json!({ "measured": { "here": received, "there": sent } }),
        ),
        Ok(Served::Nothing) => {
            ("closed without a request".to_owned(), json!({ "why": "closed without a request" }))
        }
        Err(why) => (why.to_string(), json!({ "why": why.to_string() })),
    }
}
