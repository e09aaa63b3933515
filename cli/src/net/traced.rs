//! qlog and Perfetto of a real transfer. The transfer is recorded; afterwards the recording is repeated, and the
//! writers that observe simulated runs observe the repetition. So tracing costs the transfer no more than a recording.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use anabranch_sim::trace::Observer;
use anabranch_sim::{PerfettoWriter, QlogWriter};

use tokio::sync::oneshot;

use super::Transport;
use super::recording::Recording;
use super::replay::observed;
use crate::output::{fail, note, refuse};
use crate::place::{Places, complete, until_complete};
use crate::runtime::Interrupts;

/// The files for other programs.
#[derive(Clone, clap::Args)]
pub(crate) struct Traces {
    /// Write the events of this end to this file as qlog (JSON-SEQ; docs/qlog.md lists the event types)
    #[arg(long, value_name = "FILE")]
    qlog: Option<PathBuf>,
    /// Write this end to this file as a trace that ui.perfetto.dev opens: paths and flows as tracks, blocked time as
    /// slices, windows as counters
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
}

impl Traces {
    pub(super) fn asked(&self) -> bool {
        self.qlog.is_some() || self.perfetto.is_some()
    }

    /// Writes the files from a recording; an error is told, and its exit status returned.
    pub(super) fn write(&self, recording: &Path, title: &str) -> Result<(), u8> {
        if let Some(file) = &self.qlog {
            let mut writer = QlogWriter::new(create("--qlog", file)?, title);
            observed(recording, &mut writer as &mut dyn Observer)?;
            writer.finish().and_then(|()| complete(file)).map_err(|error| unwritten(file, &error))?;
        }
        if let Some(file) = &self.perfetto {
            let mut writer = PerfettoWriter::new(create("--perfetto", file)?, title);
            observed(recording, &mut writer as &mut dyn Observer)?;
            writer.finish().and_then(|()| complete(file)).map_err(|error| unwritten(file, &error))?;
        }
        Ok(())
    }

    /// A file that is asked for.
    fn first(&self) -> Option<&Path> {
        self.qlog.as_deref().or(self.perfetto.as_deref())
    }

    /// Refuses places that cannot be written, and existing files unless --force is given: those of the traces, and
    /// these.
    pub(super) fn check(&self, places: Places) -> Result<(), u8> {
        let places = places.file("--qlog", self.qlog.as_ref()).file("--perfetto", self.perfetto.as_ref());
        places.check()?;
        places.keep(self.force)
    }
}

fn create(option: &str, file: &Path) -> Result<BufWriter<File>, u8> {
    let created = File::create(until_complete(file))
        .map_err(|error| refuse(format!("{option} {}: {error}", file.display())));
    created.map(BufWriter::new)
}

fn unwritten(file: &Path, error: &io::Error) -> u8 {
    fail(format!("cannot write {}: {error}", file.display()))
}

/// A transfer that is recorded: for `anabranch replay`, or only until its traces are written.
pub(super) struct Recorded {
    recording: Recording,
    file: PathBuf,
    /// The first file that was asked for: what the traces are called.
    title: String,
    kept: bool,
}

impl Recorded {
    /// Begins the recording that `--record`, `--qlog` or `--perfetto` needs; the exit status if there can be none.
    pub(super) fn begin(
        record: Option<&PathBuf>,
        traces: &Traces,
        transport: &Transport,
        listening: bool,
    ) -> Result<Option<Recorded>, u8> {
        traces.check(Places::default().file("--record", record))?;
        let Some(first) = record.map(PathBuf::as_path).or(traces.first()) else { return Ok(None) };
        if transport.key.is_some() {
            return Err(refuse("--qlog and --perfetto cannot be used with --key: a recording holds no key"));
        }
        if transport.authenticates()? {
            return Err(refuse(
                "--record, --qlog and --perfetto cannot be used with --set authentication=true: authentication \
                 covers user data, which a recording does not hold",
            ));
        }
        let file = record.map_or_else(|| beside(first), PathBuf::clone);
        match Recording::begin(&file, transport.settings(), listening) {
            Ok(recording) => {
                let (title, kept) = (first.display().to_string(), record.is_some());
                Ok(Some(Recorded { recording, file, title, kept }))
            }
            Err(error) => Err(refuse(format!("{}: {error}", file.display()))),
        }
    }

    /// The tape for the endpoint.
    pub(super) fn tape(&self) -> Recording {
        self.recording.clone()
    }

    /// Ends the recording of a command that returns `status`, if there is one, and writes the traces, until a signal
    /// comes. Returns the exit status.
    pub(super) async fn end(
        recorded: Option<Recorded>,
        traces: &Traces,
        interrupts: &mut Interrupts,
        status: u8,
    ) -> u8 {
        let Some(recorded) = recorded else { return status };
        let temporary = (!recorded.kept).then(|| recorded.file.clone());
        let (tell, told) = oneshot::channel();
        let traces = traces.clone();
        // Not a thread of the runtime, which would wait for its end.
        std::thread::spawn(move || tell.send(recorded.finish(&traces)));
        tokio::select! {
            finished = told => match finished {
                Ok(Ok(())) => status,
                Ok(Err(unwritten)) => unwritten,
                Err(_) => fail("the traces could not be written"),
            },
            signal = interrupts.next() => {
                note("interrupted: the traces are not complete");
                let _ = temporary.map(std::fs::remove_file);
                signal
            }
        }
    }

    /// Ends the recording and writes the traces; the exit status if that fails.
    fn finish(self, traces: &Traces) -> Result<(), u8> {
        if !self.recording.has_begun() {
            // The command has ended before it had an endpoint, and has told why.
            let _ = std::fs::remove_file(&self.file);
            return Ok(());
        }
        let ended = self.recording.finish().map_err(|error| unwritten(&self.file, &error));
        let written = ended.and_then(|()| traces.write(&self.file, &self.title));
        if !self.kept {
            // Nothing depends on the file any more.
            let _ = std::fs::remove_file(&self.file);
        }
        written
    }
}

/// The temporary recording beside a file.
fn beside(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{name}.{}.recording", std::process::id()))
}
