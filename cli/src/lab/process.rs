//! Runs one command of this program as a process with limits.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anabranch_proto::written;
use tokio::process::{Child, Command};

/// The largest size of each file that a process writes; a capture can be long.
pub(super) const FILE: u64 = 512 << 20;
/// The largest number of bytes shown of a process's output.
const SHOWN: u64 = 256 << 10;

/// The limits of a process.
#[derive(Copy, Clone, Debug)]
pub(super) struct Limits {
    /// Wall-clock time.
    pub(super) time: Duration,
    /// Bytes of data: heap, stacks and what else it can write. Its program code does not count.
    pub(super) memory: u64,
}

/// The output of a process.
#[derive(Debug)]
pub(super) struct Printed {
    /// Its exit status; `None` if a signal ended it.
    pub(super) status: Option<i32>,
    /// Whether it was ended because a file became larger than [`FILE`].
    pub(super) wrote_too_much: bool,
    pub(super) output: String,
    pub(super) errors: String,
}

/// Why a process has no usable output.
#[derive(Debug, thiserror::Error)]
pub(super) enum Ended {
    /// It exceeded the time limit.
    #[error("it took longer than {} and was ended; --time of `anabranch lab` allows more", written(*.0))]
    TooLong(Duration),
    /// It could not be started or watched.
    #[error("it could not be run: {0}")]
    System(#[from] io::Error),
}

/// Runs this program with `arguments` in `directory`, within the limits. Dropping the future ends the process.
pub(super) async fn run(directory: &Path, arguments: &[&str], limits: Limits) -> Result<Printed, Ended> {
    let [output, errors] = ["output.txt", "errors.txt"].map(|name| directory.join(name));
    let mut child = Command::new(std::env::current_exe()?)
        .args(arguments)
        .current_dir(directory)
        // Without memory, a panic that collects its backtrace waits for ever.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(File::create(&output)?)
        .stderr(File::create(&errors)?)
        .kill_on_drop(true)
        .spawn()?;
    limit(&child, limits)?;
    let Ok(ended) = tokio::time::timeout(limits.time, child.wait()).await else {
        child.kill().await?;
        return Err(Ended::TooLong(limits.time));
    };
    let ended = ended?;
    Ok(Printed {
        status: ended.code(),
        wrote_too_much: wrote_too_much(ended),
        output: beginning(&output)?,
        errors: beginning(&errors)?,
    })
}

#[cfg(target_os = "linux")]
fn wrote_too_much(ended: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    ended.signal() == Some(rustix::process::Signal::XFSZ.as_raw())
}

#[cfg(not(target_os = "linux"))]
fn wrote_too_much(_: ExitStatus) -> bool {
    false
}

/// Sets limits after which the kernel ends the process.
#[cfg(target_os = "linux")]
fn limit(child: &Child, limits: Limits) -> io::Result<()> {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let Some(process) = child.id().and_then(|id| Pid::from_raw(id.cast_signed())) else { return Ok(()) };
    let all = [
        (Resource::Data, limits.memory),
        (Resource::Fsize, FILE),
        (Resource::Core, 0),
        (Resource::Cpu, processor_seconds(limits.time)),
    ];
    for (resource, most) in all {
        match prlimit(Some(process), resource, Rlimit { current: Some(most), maximum: Some(most) }) {
            // The process has ended already.
            Err(rustix::io::Errno::SRCH) => break,
            limited => drop(limited?),
        }
    }
    Ok(())
}

/// The processor time that a process can use within a time limit. If this server is killed, nobody else ends its runs.
#[cfg(target_os = "linux")]
fn processor_seconds(time: Duration) -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |processors| processors.get() as u64);
    time.as_secs().saturating_add(1).saturating_mul(processors)
}

/// On other systems no limits can be set on a running process.
#[cfg(not(target_os = "linux"))]
fn limit(_: &Child, _: Limits) -> io::Result<()> {
    let _ = FILE;
    Ok(())
}

fn beginning(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(file)?.take(SHOWN).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
