//! The programs of a session, and the signals that end it.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

use crate::namespace::Namespace;
use crate::{Ending, FailedProgram, Place, ShellError, system};

/// Programs that are asked to end get so long before they are killed.
const PATIENCE: Duration = Duration::from_secs(2);

/// Signals, as something to wait for.
pub(crate) struct Signals {
    pipe: UnixStream,
    /// The number of the last signal that asked for the end; 0: none.
    asked: Arc<AtomicUsize>,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let (pipe, writer) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let asked = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_usize(signal, asked.clone(), signal as usize)?;
        }
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGCHLD] {
            pipe::register(signal, writer.try_clone()?)?;
        }
        Ok(Signals { pipe, asked })
    }

    /// Readable when a signal has come.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }

    /// Takes the signal that asked for the end, if there was one.
    fn take(&self) -> Option<u8> {
        let mut drained = [0; 64];
        while (&self.pipe).read(&mut drained).is_ok_and(|read| read > 0) {}
        Some(self.asked.swap(0, Ordering::Relaxed)).filter(|asked| *asked > 0).map(|asked| asked as u8)
    }
}

/// Whether there is a program of this name.
pub(crate) fn find(name: &str) -> Result<(), ShellError> {
    let runs = |path: &Path| {
        path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = match name.contains('/') {
        true => runs(Path::new(name)),
        false => std::env::split_paths(&path).any(|directory| runs(&directory.join(name))),
    };
    if found { Ok(()) } else { Err(ShellError::NoCommand(name.to_owned())) }
}

/// The programs: the first one, whose end ends the session, and the others.
pub(crate) struct Processes {
    first: Child,
    others: Vec<Other>,
    /// Those of the others that have failed.
    failed: Vec<FailedProgram>,
    /// Children that this process had before.
    earlier: BTreeSet<Pid>,
    /// The signal that asked for the end, and when programs are killed.
    asked: Option<(u8, Instant)>,
}

/// A program beside the first.
struct Other {
    node: String,
    child: Child,
}

impl Processes {
    /// Starts the programs, those beside the first before it.
    pub(crate) fn start(places: &[Place], namespaces: &[Namespace]) -> Result<Self, ShellError> {
        let with_commands = places.iter().zip(namespaces).filter_map(|(place, namespace)| {
            let (name, arguments) = place.command.as_ref()?.split_first()?;
            let mut command = Command::new(name);
            command.args(arguments).env("ANABRANCH_NODE", &place.node);
            Some((command, namespace, &place.node))
        });
        let mut commands: Vec<_> = with_commands.collect();
        let failed = |error| system("cannot start the program", error);
        let earlier = children();
        // Child processes that a program leaves become children of this process, so that they end with the session.
        prctl::set_child_subreaper(true).map_err(|error| failed(error.into()))?;
        let (mut first, namespace, _) = commands.remove(0);
        let mut others = Vec::new();
        for (mut command, namespace, node) in commands {
            // Standard output is the first program's alone, so that it can be piped.
            let output = io::stderr().as_fd().try_clone_to_owned().map_err(failed)?;
            command.stdin(Stdio::null()).stdout(output).process_group(0);
            match namespace.enter(move || command.spawn()) {
                Ok(child) => others.push(Other { node: node.clone(), child }),
                Err(error) => {
                    end_all(&mut others, Signal::SIGKILL);
                    return Err(failed(error));
                }
            }
        }
        match namespace.enter(move || first.spawn()) {
            Ok(first) => Ok(Processes { first, others, failed: Vec::new(), earlier, asked: None }),
            Err(error) => {
                end_all(&mut others, Signal::SIGKILL);
                Err(failed(error))
            }
        }
    }

    /// How the session has ended, if it has. A signal is passed on to the first program, and the session waits for its
    /// end.
    pub(crate) fn ended(&mut self, signals: &Signals) -> Option<Ending> {
        if let Some(signal) = signals.take() {
            // From a terminal, the program gets Ctrl-C itself, and may have its own use for it.
            let again = self.asked.is_some();
            self.asked.get_or_insert((signal, Instant::now() + PATIENCE));
            if again || i32::from(signal) != SIGINT {
                self.tell_first(Signal::SIGTERM);
            }
        }
        self.others.retain_mut(|other| match other.child.try_wait() {
            Ok(Some(status)) => {
                if !status.success() {
                    self.failed.push(FailedProgram { node: other.node.clone(), status: number(status) });
                }
                false
            }
            _ => true,
        });
        if let Ok(Some(status)) = self.first.try_wait() {
            return Some(self.asked.map_or_else(|| exit(status), |(signal, _)| Ending::Signal(signal)));
        }
        if self.asked.is_some_and(|(_, until)| Instant::now() >= until) {
            self.tell_first(Signal::SIGTERM);
            self.asked = self.asked.map(|(signal, _)| (signal, Instant::now() + PATIENCE));
            let _ = self.first.try_wait();
            let (signal, _) = self.asked?;
            return Some(Ending::Signal(signal));
        }
        None
    }

    /// When [`ended`](Self::ended) is to be asked at the latest.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.asked.map(|(_, until)| until)
    }

    /// Ends all programs; while they end, `carry` goes on carrying their packets.
    pub(crate) fn stop(&mut self, carry: &mut dyn FnMut() -> bool) {
        self.tell_first(Signal::SIGTERM);
        end_all(&mut self.others, Signal::SIGTERM);
        let untold = |pid: &Pid| {
            self.others
                .iter()
                .map(|other| &other.child)
                .chain([&self.first])
                .all(|child| child.id() as i32 != pid.as_raw())
        };
        for orphan in self.left().into_iter().filter(untold) {
            let _ = kill(orphan, Signal::SIGTERM);
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until && !self.left().is_empty() && carry() {}
        // The children of children that end become ours, so it takes several rounds.
        loop {
            let left = self.left();
            if left.is_empty() {
                break;
            }
            for child in left {
                let _ = kill(child, Signal::SIGKILL);
                let _ = waitpid(child, None);
            }
        }
    }

    /// The programs that have failed so far, but for the first.
    pub(crate) fn failed(&self) -> Vec<FailedProgram> {
        self.failed.clone()
    }

    /// The children that have not ended, those that ended children have left among them.
    fn left(&self) -> Vec<Pid> {
        let alive =
            |child: &Pid| matches!(waitpid(*child, Some(WaitPidFlag::WNOHANG)), Ok(WaitStatus::StillAlive));
        children().difference(&self.earlier).copied().filter(alive).collect()
    }

    fn tell_first(&mut self, signal: Signal) {
        if let Ok(None) = self.first.try_wait() {
            let _ = kill(Pid::from_raw(self.first.id() as i32), signal);
        }
    }
}

/// Sends a signal to the process groups of programs beside the first.
fn end_all(others: &mut [Other], signal: Signal) {
    for Other { child, .. } in others {
        if let Ok(None) = child.try_wait() {
            let _ = killpg(Pid::from_raw(child.id() as i32), signal);
        }
    }
}

/// The children of this process.
fn children() -> BTreeSet<Pid> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let numbers = lists.flat_map(|list| list.split_whitespace().map(str::parse).collect::<Vec<_>>());
    numbers.flatten().map(Pid::from_raw).collect()
}

/// A moment to look again at programs that are ending.
pub(crate) fn soon() -> Option<Instant> {
    Some(Instant::now() + Duration::from_millis(20))
}

/// The exit status as a shell reports it.
fn exit(status: ExitStatus) -> Ending {
    Ending::Exit(number(status))
}

fn number(status: ExitStatus) -> u8 {
    let signal = status.signal().map_or(1, |signal| 128 + signal);
    status.code().unwrap_or(signal) as u8
}
