//! Real programs over the simulated links of a scenario, in real time.
//!
//! Each node with a program is a network namespace that has one TUN device for each interface of the node. [`run`]
//! reads the packets of the devices, gives them to [`anabranch_sim::Live`], which carries them through the same links
//! as in a simulation, and writes each to the device where it arrives, at its time. The only clock is here.
//!
//! Nothing has to be removed after a session: a namespace and its devices end with the last process and file that hold
//! them. The programs of a session that is killed by SIGKILL are ended by a process that waits for that (`guard`).

#![allow(clippy::disallowed_types, reason = "programs have real clocks")]

mod carrier;
mod echo;
mod guard;
mod namespace;
mod processes;
mod report;

use std::io;

use anabranch_proto::Policies;
use anabranch_sim::scenario::Scenario;
use anabranch_sim::{Live, RunError};

use carrier::Carrier;
use guard::Guard;
use namespace::Namespace;
use processes::{Processes, Signals};
pub use report::{Ending, FailedProgram, InterfaceReport, Lateness, Report};

/// As `nice` counts.
const HIGHEST_PRIORITY: i32 = -20;

/// A node, and the program that runs there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The node's name.
    pub node: String,
    /// The program and its arguments; `None`: the node is only there.
    pub command: Option<Vec<String>>,
}

/// Why there was no session.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// The scenario cannot carry packets of these nodes.
    #[error(transparent)]
    Scenario(#[from] RunError),
    /// The program is not there.
    #[error("`{0}`: there is no such program; give its path, or add its directory to PATH")]
    NoCommand(String),
    /// Namespaces cannot be made.
    #[error(
        "cannot make a network namespace: {0}; run it as root (sudo), or allow user namespaces (sysctl user.max_user_namespaces)"
    )]
    Namespace(io::Error),
    /// A device cannot be made.
    #[error(
        "cannot make the TUN device `{device}`: {error}; is /dev/net/tun there (modprobe tun) and writable?"
    )]
    Device {
        /// Its name.
        device: String,
        /// The error from the system.
        error: io::Error,
    },
    /// The devices cannot be set up.
    #[error("cannot set up the devices of node `{node}` with `ip` (package iproute2): {error}")]
    Addresses {
        /// The node.
        node: String,
        /// The message of `ip`.
        error: String,
    },
    /// Something else of the system failed.
    #[error("{what}: {error}")]
    System {
        /// The attempted action.
        what: &'static str,
        /// The error from the system.
        error: io::Error,
    },
}

impl ShellError {
    /// Whether the input is wrong, and not the machine.
    pub fn is_input(&self) -> bool {
        matches!(self, ShellError::Scenario(_) | ShellError::NoCommand(_))
    }
}

/// Runs a program at the first node, and those of `beside` before it, over the links of `scenario`. The session ends
/// with the first program, or when a signal asks for it. The flows `left_out` do not run.
///
/// Without root this moves the process into a user namespace of its own, which only a process with a single thread can
/// do.
///
/// # Errors
/// Nodes that do not exist, programs that do not exist, and refusals of the system.
pub fn run(
    scenario: &Scenario,
    (node, command): (&str, &[String]),
    beside: &[Place],
    left_out: &[String],
    policies: Policies,
) -> Result<Report, ShellError> {
    let first = Place { node: node.to_owned(), command: Some(command.to_vec()) };
    let places = &[&[first], beside].concat();
    let commands = places.iter().filter_map(|place| place.command.as_ref());
    commands.map(|command| command.first().map_or("", String::as_str)).try_for_each(processes::find)?;
    let nodes: Vec<String> = places.iter().map(|place| place.node.clone()).collect();
    let live = Live::new(scenario, &nodes, left_out, policies)?;
    namespace::become_able()?;
    let mut namespaces = Vec::new();
    let mut ports: Vec<_> = live.interfaces().iter().map(|_| None).collect();
    for place in places {
        let (namespace, devices) = Namespace::new(&place.node, live.interfaces())?;
        devices.into_iter().for_each(|(interface, device)| ports[interface] = Some(device));
        namespaces.push(namespace);
    }
    let signals = Signals::new().map_err(|error| system("cannot wait for signals", error))?;
    // Links begin to work before the programs do: time zero is now.
    let mut carrier = Carrier::new(live, ports)?;
    let _guard = Guard::begin(&namespaces);
    let mut processes = Processes::start(places, &namespaces)?;
    // The programs have started with the usual priority. Without the right to a higher one, packets are later.
    let _ = rustix::process::setpriority_process(None, HIGHEST_PRIORITY);
    let ending = loop {
        if let Some(ending) = processes.ended(&signals) {
            break Ok(ending);
        }
        if let Err(error) = carrier.step(&signals, processes.deadline()) {
            break Err(system("cannot carry packets", error));
        }
    };
    // However it ended, no program goes on without its network.
    processes.stop(&mut || carrier.step(&signals, processes::soon()).is_ok());
    let dropped = namespaces.iter().map(Namespace::dropped).sum();
    carrier.report(ending?, processes.failed(), dropped)
}

fn system(what: &'static str, error: io::Error) -> ShellError {
    ShellError::System { what, error }
}
