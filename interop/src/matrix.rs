//! The matrix: every row, with every peer in both roles.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use anabranch_proto::Duration;

use crate::addresses;
use crate::bench::{Bench, Done, Role, Stop};
use crate::paths;
use crate::peer::dcsctp::Dcsctp;
use crate::peer::foreign::{Foreign, Program};
use crate::peer::machine::Machine;
use crate::peer::{Make, Peer, has_no};
use crate::rows::{ROWS, Row, Run, Wrong};

/// A foreign stack.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stack {
    Usrsctp,
    Dcsctp,
    /// The Linux kernel's.
    Linux,
}

impl Stack {
    pub const ALL: [Stack; 3] = [Stack::Usrsctp, Stack::Linux, Stack::Dcsctp];

    pub fn name(self) -> &'static str {
        match self {
            Stack::Usrsctp => "usrsctp",
            Stack::Dcsctp => "dcsctp",
            Stack::Linux => "linux",
        }
    }
}

impl Role {
    pub const ALL: [Role; 2] = [Role::Server, Role::Client];

    pub fn name(self) -> &'static str {
        match self {
            Role::Server => "server",
            Role::Client => "client",
        }
    }
}

/// One thing to try.
#[derive(Copy, Clone)]
pub struct Case {
    pub stack: Stack,
    pub row: &'static Row,
    pub role: Role,
}

impl Case {
    pub fn name(&self) -> String {
        format!("{}/{}/{}", self.stack.name(), self.row.name, self.role.name())
    }
}

impl Case {
    /// Where the stack breaks its RFC in this row.
    fn wrong(&self) -> Option<Wrong> {
        self.row.wrong.filter(|wrong| wrong.stack == self.stack)
    }
}

/// How long a row is tried that cannot pass.
const IN_VAIN: Duration = Duration::from_secs(3);

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Passed,
    /// With the peer's own words.
    NotOffered(String),
    /// It cannot pass, for the peer breaks its RFC here: where.
    PeerWrong(String),
    Failed(String),
    Skipped(String),
}

pub struct Entry {
    pub case: Case,
    pub outcome: Outcome,
    /// Of our time, in seconds.
    pub seconds: f64,
}

impl Entry {
    pub fn failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_))
    }

    pub fn skipped(&self) -> bool {
        matches!(self.outcome, Outcome::Skipped(_))
    }
}

/// Every case whose name is wanted.
pub fn plan(wanted: impl Fn(&str) -> bool) -> Vec<Case> {
    let of_row = |row| {
        let of_stack = move |stack| Role::ALL.map(|role| Case { stack, row, role });
        Stack::ALL.into_iter().flat_map(of_stack)
    };
    ROWS.iter().flat_map(of_row).filter(|case| wanted(&case.name())).collect()
}

/// The stacks that have to be built or booted, or why that is not possible here.
pub struct Stacks {
    usrsctp: Result<Program, String>,
    linux: Result<Program, String>,
    /// The programs are in it.
    _folder: Option<tempfile::TempDir>,
}

impl Stacks {
    /// Those that the plan asks for.
    pub fn new(wanted: impl Fn(Stack) -> bool) -> Stacks {
        let none = || Err("not wanted".to_owned());
        let folder = match tempfile::tempdir() {
            Ok(folder) => folder,
            Err(error) => {
                let why = format!("no temporary folder: {error}");
                return Stacks { usrsctp: Err(why.clone()), linux: Err(why), _folder: None };
            }
        };
        let make = |stack, made: &dyn Fn() -> Result<Program, String>| {
            if !wanted(stack) {
                return none();
            }
            let made = made();
            if let Err(why) = &made {
                eprintln!("skipped: interop: {}: {why}", stack.name());
            }
            made
        };
        let usrsctp = make(Stack::Usrsctp, &|| {
            build("peer.c", &["-lusrsctp", "-lpthread"], folder.path()).map(Program::Usrsctp)
        });
        let linux = make(Stack::Linux, &|| {
            let program = build("kernel.c", &[], folder.path())?;
            Ok(Program::Linux(Arc::new(Machine::boot(&program)?)))
        });
        Stacks { usrsctp, linux, _folder: Some(folder) }
    }

    /// `None`: the stack is a library.
    pub fn program(&self, stack: Stack) -> Option<&Result<Program, String>> {
        match stack {
            Stack::Usrsctp => Some(&self.usrsctp),
            Stack::Linux => Some(&self.linux),
            Stack::Dcsctp => None,
        }
    }
}

/// Runs them one after the other; says each as it ends, if that is wanted.
pub fn run(plan: &[Case], say: bool, trace: bool) -> Vec<Entry> {
    let stacks = Stacks::new(|stack| plan.iter().any(|case| case.stack == stack));
    let mut entries = Vec::new();
    for case in plan {
        let begun = Instant::now();
        let outcome = match stacks.program(case.stack) {
            Some(Err(why)) => Outcome::Skipped(why.clone()),
            Some(Ok(program)) => attempt(case, Some(program), trace),
            None => attempt(case, None, trace),
        };
        let entry = Entry { case: *case, outcome, seconds: begun.elapsed().as_secs_f64() };
        if say {
            print(&entry);
        }
        entries.push(entry);
    }
    entries
}

/// Runs one case; `program` is there unless the stack is a library.
fn attempt(case: &Case, program: Option<&Program>, trace: bool) -> Outcome {
    let done = match (case.row.run, program) {
        (Run::Bench(row), Some(program @ Program::Linux(machine))) => {
            let row = || {
                machine.enter();
                beside(case, Some(program), trace, row)
            };
            let row = thread::scope(|scope| scope.spawn(row).join());
            row.unwrap_or_else(|_| Err(Stop::Failed("it panicked: see above".to_owned())))
        }
        (Run::Bench(row), program) => beside(case, program, trace, row),
        (Run::Paths(_) | Run::Addresses(_), None) => {
            Err(Stop::from(has_no("more than one address in dcsctp::api::Options")))
        }
        (Run::Paths(trial), Some(program)) => match paths::run(&case.name(), program, case.role, trial) {
            Some(done) => done.map(|_| ()),
            None => return no_network(),
        },
        (Run::Addresses(whose), Some(program)) => {
            match addresses::run(&case.name(), program, case.role, whose) {
                Some(done) => done,
                None => return no_network(),
            }
        }
    };
    judge(done, case)
}

fn no_network() -> Outcome {
    Outcome::Skipped("no network in a box can be made here".to_owned())
}

fn beside(case: &Case, program: Option<&Program>, trace: bool, row: fn(&mut Bench) -> Done) -> Done {
    let make = Make { extensions: case.row.extensions, authenticated: case.row.authenticated };
    let peer: Box<dyn Peer> = match program {
        Some(program) => Box::new(Foreign::new(program, &make)?),
        None => Box::new(Dcsctp::new(&make)?),
    };
    let mut bench = Bench::new(peer, &make, case.role, case.row.weather(), trace);
    // What is known to be in vain is not waited for.
    bench.patience = case.wrong().map(|_| IN_VAIN);
    row(&mut bench)?;
    bench.had_its_weather()
}

/// What a peer does not offer is known beforehand; what it offers beyond that is news as well.
fn judge(done: Done, case: &Case) -> Outcome {
    let expected = !case.row.not_offered.contains(&case.stack);
    let unexpected = || Outcome::Failed("it passes, and was not expected to: change rows/mod.rs".to_owned());
    if let Some(wrong) = case.wrong() {
        return match done {
            Ok(()) => unexpected(),
            Err(Stop::Failed(why)) if why.contains(wrong.sign) => Outcome::PeerWrong(wrong.place.to_owned()),
            Err(Stop::Failed(why) | Stop::NotOffered(why)) => {
                Outcome::Failed(format!("{why} (what the peer does wrong shows as: {})", wrong.sign))
            }
        };
    }
    match done {
        Ok(()) if expected => Outcome::Passed,
        Ok(()) => unexpected(),
        Err(Stop::NotOffered(why)) if expected => Outcome::Failed(why),
        Err(Stop::NotOffered(why)) => Outcome::NotOffered(why),
        Err(Stop::Failed(why)) => Outcome::Failed(why),
    }
}

fn print(entry: &Entry) {
    let (word, why) = match &entry.outcome {
        Outcome::Passed => ("passed", ""),
        Outcome::NotOffered(why) => ("not offered", why.as_str()),
        Outcome::PeerWrong(why) => ("peer wrong", why.as_str()),
        Outcome::Failed(why) => ("FAILED", why.as_str()),
        Outcome::Skipped(why) => ("skipped", why.as_str()),
    };
    let colon = if why.is_empty() { "" } else { ": " };
    // Whoever watches sees each at once, through a pipe as well; and may stop to watch.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{:<44} {:>6.2} s  {word}{colon}{why}", entry.case.name(), entry.seconds);
    let _ = out.flush();
}

/// Builds a peer of this folder; says why that is not possible here.
fn build(source: &str, libraries: &[&str], folder: &Path) -> Result<PathBuf, String> {
    let path = folder.join(source.trim_end_matches(".c"));
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut command = Command::new(&compiler);
    command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra"]);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(source)).arg("-o").arg(&path).args(libraries);
    let output = command.output().map_err(|error| format!("{compiler}: {error}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(path),
        false if said.contains("usrsctp.h") => {
            Err("usrsctp.h is missing (Debian: libusrsctp-dev)".to_owned())
        }
        false => Err(format!("{compiler} {source}: {said}")),
    }
}
