//! The matrix: every row, with every peer in both roles.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::bench::{Bench, Done, Role, Stop};
use crate::paths;
use crate::peer::dcsctp::Dcsctp;
use crate::peer::usrsctp::Usrsctp;
use crate::peer::{Make, Peer, has_no};
use crate::rows::{ROWS, Row, Run};

/// A foreign stack.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Stack {
    Usrsctp,
    Dcsctp,
}

impl Stack {
    pub const ALL: [Stack; 2] = [Stack::Usrsctp, Stack::Dcsctp];

    pub fn name(self) -> &'static str {
        match self {
            Stack::Usrsctp => "usrsctp",
            Stack::Dcsctp => "dcsctp",
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

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Passed,
    /// With the peer's own words.
    NotOffered(String),
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

/// Runs them one after the other; says each as it ends, if that is wanted.
pub fn run(plan: &[Case], say: bool, trace: bool) -> Vec<Entry> {
    let program = plan.iter().any(|case| case.stack == Stack::Usrsctp).then(Program::build);
    if let Some(Err(why)) = &program {
        eprintln!("skipped: interop: usrsctp: {why}");
    }
    let mut entries = Vec::new();
    for case in plan {
        let begun = Instant::now();
        let outcome = match &program {
            Some(Err(why)) if case.stack == Stack::Usrsctp => Outcome::Skipped(why.clone()),
            program => attempt(case, program.as_ref().and_then(|program| program.as_ref().ok()), trace),
        };
        let entry = Entry { case: *case, outcome, seconds: begun.elapsed().as_secs_f64() };
        if say {
            print(&entry);
        }
        entries.push(entry);
    }
    entries
}

/// Runs one case; `program` is there if the stack is usrsctp.
fn attempt(case: &Case, program: Option<&Program>, trace: bool) -> Outcome {
    let done = match (case.row.run, program.filter(|_| case.stack == Stack::Usrsctp)) {
        (Run::Bench(row), program) => beside(case, program, trace, row),
        (Run::Paths(_), None) => Err(Stop::from(has_no("more than one address in dcsctp::api::Options"))),
        (Run::Paths(from), Some(program)) => match paths::run(&case.name(), &program.path, case.role, from) {
            Some(done) => done,
            None => return Outcome::Skipped("no network in a box can be made here".to_owned()),
        },
    };
    judge(done, case)
}

fn beside(case: &Case, program: Option<&Program>, trace: bool, row: fn(&mut Bench) -> Done) -> Done {
    let make = Make { extensions: case.row.extensions, authenticated: case.row.authenticated };
    let peer: Box<dyn Peer> = match program {
        Some(program) => Box::new(Usrsctp::new(&program.path, &make)?),
        None => Box::new(Dcsctp::new(&make)?),
    };
    row(&mut Bench::new(peer, &make, case.role, case.row.weather(), trace))
}

/// What a peer does not offer is known beforehand; what it offers beyond that is news as well.
fn judge(done: Done, case: &Case) -> Outcome {
    let expected = !case.row.not_offered.contains(&case.stack);
    match done {
        Ok(()) if expected => Outcome::Passed,
        Ok(()) => Outcome::Failed("it passes, and was not expected to: change rows/mod.rs".to_owned()),
        Err(Stop::NotOffered(why)) if expected => Outcome::Failed(why),
        Err(Stop::NotOffered(why)) => Outcome::NotOffered(why),
        Err(Stop::Failed(why)) => Outcome::Failed(why),
    }
}

fn print(entry: &Entry) {
    let (word, why) = match &entry.outcome {
        Outcome::Passed => ("passed", ""),
        Outcome::NotOffered(why) => ("not offered", why.as_str()),
        Outcome::Failed(why) => ("FAILED", why.as_str()),
        Outcome::Skipped(why) => ("skipped", why.as_str()),
    };
    let colon = if why.is_empty() { "" } else { ": " };
    // Whoever watches sees each at once, through a pipe as well; and may stop to watch.
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{:<44} {:>6.2} s  {word}{colon}{why}", entry.case.name(), entry.seconds);
    let _ = out.flush();
}

/// `peer.c`, built.
pub struct Program {
    pub path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Program {
    /// Builds it; says why that is not possible here.
    fn build() -> Result<Program, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let path = folder.path().join("peer");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/peer.c");
        let mut command = Command::new(&compiler);
        command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", source, "-o"]).arg(&path);
        command.args(["-lusrsctp", "-lpthread"]);
        let output = command.output().map_err(|error| format!("{compiler}: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        match output.status.success() {
            true => Ok(Program { path, _folder: folder }),
            false if said.contains("usrsctp.h") => {
                Err("usrsctp.h is missing (Debian: libusrsctp-dev)".to_owned())
            }
            false => Err(format!("{compiler} peer.c: {said}")),
        }
    }
}
