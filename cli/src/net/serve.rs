//! `anabranch serve`: receives files, and takes part in measurements.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anabranch_net::service::{Failure, Inbox, Served, serve as converse};
use anabranch_net::{Association, Device, Endpoint, Options, addresses, printable};
use anabranch_proto::Config;
use anabranch_sim::scenario::size;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Interrupts, Transport, in_runtime};
use crate::output::{fail, print, refuse};
use crate::{DONE, INTERRUPTED};

/// What `anabranch serve` takes.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The local addresses, in order; 0.0.0.0 or :: for all of this host but loopback
    #[arg(long, value_name = "ADDR", value_delimiter = ',', default_value = "127.0.0.1")]
    listen: Vec<IpAddr>,
    #[command(flatten)]
    transport: Transport,
    /// Receive files into this directory; without it, none are received
    #[arg(long, value_name = "DIR")]
    receive_into: Option<PathBuf>,
    /// Bytes of all files together at most, with a unit
    #[arg(long, value_name = "SIZE", default_value = "1 GB")]
    max_size: String,
    /// Serve whoever can reach these addresses, unauthenticated
    #[arg(long)]
    public: bool,
}

const EXAMPLES: &str = "\
Examples:
  anabranch serve
  anabranch serve --listen 192.0.2.1,198.51.100.1 --public --receive-into inbox/ --max-size '20 GB'
  anabranch serve --listen ::1 --udp 9900

On any address but loopback, --key or --public is needed. Nothing is encrypted: whoever is on the way can read all,
and without --key can change it.

Ctrl-C ends all associations gracefully, a second Ctrl-C at once.

Exit status: 130 interrupted, 2 the input was wrong, 1 anything else.";

/// Serves until it is interrupted, and returns the exit status.
pub(crate) fn serve(arguments: &Arguments) -> u8 {
    let (options, inbox) = match read(arguments) {
        Ok(read) => read,
        Err(status) => return status,
    };
    in_runtime(async |interrupts: &mut Interrupts| match Endpoint::bind(options) {
        Ok(endpoint) => accept(endpoint, inbox, interrupts).await,
        Err(error) => fail(error),
    })
}

fn read(arguments: &Arguments) -> Result<(Options, Option<Inbox>), u8> {
    let config = arguments.transport.config()?;
    let known = arguments.public || arguments.transport.key.is_some();
    if let Some(open) = arguments.listen.iter().find(|ip| !ip.is_loopback() && !known) {
        return Err(refuse(format!(
            "--listen {open}: whoever reaches this address could send files here; give --key FILE, or --public \
             if that is wanted"
        )));
    }
    let mut local = Vec::new();
    for ip in &arguments.listen {
        let expanded = if ip.is_unspecified() { addresses(*ip).map_err(fail)? } else { vec![*ip] };
        local.extend(expanded);
    }
    let room = size(&arguments.max_size)
        .map_err(|hint| refuse(format!("--max-size {}: {hint}", arguments.max_size)))?;
    let inbox = arguments.receive_into.as_ref().map(|directory| {
        Inbox::new(directory, room)
            .map_err(|error| refuse(format!("--receive-into {}: {error}", directory.display())))
    });
    let config = Config { port: arguments.transport.port, ..config };
    let carrier = arguments.transport.carrier(arguments.transport.udp);
    Ok((Options { config, local, carrier, ..Options::default() }, inbox.transpose()?))
}

async fn accept(endpoint: Endpoint, inbox: Option<Inbox>, interrupts: &mut Interrupts) -> u8 {
    for (place, device) in endpoint.local() {
        let device = match device {
            Device::Any => String::new(),
            Device::Bound(name) => format!(" on {name}"),
            Device::Refused(name, why) => format!(", not bound to {name}: {why}"),
        };
        if print(&format!("listening at {place}{device}")) != DONE {
            return INTERRUPTED;
        }
    }
    let (stop, stopping) = watch::channel(false);
    let mut clients = JoinSet::new();
    loop {
        tokio::select! {
            association = endpoint.accept() => {
                clients.spawn(client(association, inbox.clone(), stopping.clone()));
            }
            Some(_) = clients.join_next(), if !clients.is_empty() => {}
            () = interrupts.next() => break,
        }
    }
    let _ = stop.send(true);
    tokio::select! {
        () = async { while clients.join_next().await.is_some() {} } => endpoint.close().await,
        () = interrupts.next() => {}
    }
    INTERRUPTED
}

/// Serves a client, and says how it went.
async fn client(association: Association, inbox: Option<Inbox>, mut stopping: watch::Receiver<bool>) {
    let association = Arc::new(association);
    let from = association.paths().first().map_or("nowhere".to_owned(), |path| path.remote.ip.to_string());
    let ending = Arc::clone(&association);
    let stop = tokio::spawn(async move {
        if stopping.wait_for(|stop| *stop).await.is_ok() {
            let _ = ending.close().await;
        }
    });
    let said = match converse(&association, inbox.as_ref()).await {
        Ok(Served::File(file)) => format!("{from}: received {}, {} bytes", file.path.display(), file.size),
        Ok(Served::NoFile { name, arrived, size, why }) => {
            let (name, why) = (printable(&name), printable(&why));
            format!("{from}: not received {name:?}, {arrived} of {size} bytes had arrived: {why}")
        }
        Ok(Served::Measured(received, sent)) => {
            format!("{from}: measured, {received} B here, {sent} B there")
        }
        Ok(Served::Nothing) | Err(Failure::Stopped) => format!("{from}: ended without a wish"),
        Err(why) => format!("{from}: {why}"),
    };
    stop.abort();
    print(&said);
}
