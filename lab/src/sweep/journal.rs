//! The journal of a sweep: one line for each finished run, written as it finishes.
//!
//! Every line ends in a checksum. A process that is killed leaves at most one incomplete line, which is cut off. Any
//! other line with a wrong checksum means that the file was damaged. Before a table is written its digest is
//! recorded, so that a table that somebody has changed is noticed and not overwritten.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Sweep, SweepError};

/// The open journal. It is locked, so that two processes cannot write to the same directory.
pub(super) struct Journal {
    directory: PathBuf,
    file: File,
    /// The digests of all tables that were ever written.
    tables: Vec<String>,
    /// The sweep, from the last line that describes it.
    description: Option<String>,
}

/// A finished run of a sweep.
#[derive(Clone, PartialEq, Debug)]
pub struct FinishedRun {
    /// The number of its cell.
    pub cell: usize,
    /// The number of its seed in the cell, from 0.
    pub n: u64,
    /// The value of each measure; NaN if the run has none.
    pub values: Box<[f64]>,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

const NAME: &str = "runs.journal";
const NEW: &str = "runs.journal.new";
/// The number of hexadecimal digits of a line's checksum.
const CHECK: usize = 8;

impl Journal {
    /// Opens the journal in `directory`, or begins one if the directory is new or empty. `keep` receives every run in
    /// it, and reports a run that does not belong here.
    pub(super) fn open(
        sweep: &Sweep,
        directory: &Path,
        mut keep: impl FnMut(FinishedRun) -> Result<(), String>,
    ) -> Result<Journal, SweepError> {
        let path = directory.join(NAME);
        let failed = |error| SweepError::Output { file: path.clone(), error };
        if directory.is_file() {
            return Err(refused(directory, "this is a file, and a sweep is kept in a directory"));
        }
        std::fs::create_dir_all(directory)
            .map_err(|error| SweepError::Output { file: directory.to_owned(), error })?;
        let heading = heading(sweep)?;
        if !path.exists() {
            begin(&heading, directory)?;
        }
        let file = OpenOptions::new().read(true).append(true).open(&path).map_err(failed)?;
        locked(file.try_lock(), directory)?;
        let Contents { tables, description, whole } =
            contents(&file, &heading, directory, sweep.measures.len(), &mut keep)?;
        file.set_len(whole).map_err(failed)?;
        let mut journal = Journal { directory: directory.to_owned(), file, tables, description };
        journal.check_tables()?;
        journal.describe(sweep)?;
        Ok(journal)
    }

    /// Calls `keep` with every run in the journal of `directory`, in which nothing is changed.
    pub(super) fn read(
        sweep: &Sweep,
        directory: &Path,
        mut keep: impl FnMut(FinishedRun) -> Result<(), String>,
    ) -> Result<(), SweepError> {
        let file = existing(directory)?;
        locked(file.try_lock_shared(), directory)?;
        contents(&file, &heading(sweep)?, directory, sweep.measures.len(), &mut keep).map(drop)
    }

    /// Records the description of the sweep, so that [`super::merge`] needs no other file; again when `seeds` or
    /// similar keys change.
    fn describe(&mut self, sweep: &Sweep) -> Result<(), SweepError> {
        let description = sweep.description();
        if self.description.as_ref() == Some(&description) {
            return Ok(());
        }
        self.write(&format!("sweep {description}"))?;
        self.description = Some(description);
        Ok(())
    }

    /// The description of the sweep in the journal of `directory`.
    pub(super) fn description(directory: &Path) -> Result<String, SweepError> {
        let mut found = None;
        let file = existing(directory)?;
        for line in BufReader::new(file).split(b'\n').map_while(Result::ok) {
            let entry = checked(&[line, b"\n".to_vec()].concat()).map(str::to_owned);
            found = entry.and_then(|entry| entry.strip_prefix("sweep ").map(str::to_owned)).or(found);
        }
        let why =
            || format!("`{NAME}` does not describe its sweep; run the sweep in this directory once more");
        found.ok_or_else(|| SweepError::Directory { directory: directory.to_owned(), why: why() })
    }

    /// Keeps a finished run.
    pub(super) fn append(&mut self, run: &FinishedRun) -> Result<(), SweepError> {
        if let Some(why) = &run.failed {
            let why = serde_json::Value::from(why.as_str());
            return self.write(&format!("failed {} {} {why}", run.cell, run.n));
        }
        self.write(&format!("run {} {}{}", run.cell, run.n, words(&run.values)))
    }

    /// Replaces the table `name` of the directory with what `fill` writes, in one step.
    pub(super) fn write_table(
        &mut self,
        name: &str,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), SweepError> {
        let (path, new) = (self.directory.join(name), self.directory.join(format!("{name}.new")));
        let failed = |error| SweepError::Output { file: path.clone(), error };
        let mut file =
            Digesting { file: BufWriter::new(File::create(&new).map_err(failed)?), digest: Sha256::new() };
        fill(&mut file).and_then(|()| file.flush()).map_err(failed)?;
        let digest = format!("{name} {}", hexadecimal(&file.digest.finalize()));
        if !self.tables.contains(&digest) {
            self.write(&format!("table {digest}"))?;
            self.tables.push(digest);
        }
        std::fs::rename(&new, &path).map_err(failed)
    }

    /// Writes a line in one call, so that a killed process leaves at most the beginning of a line.
    fn write(&mut self, entry: &str) -> Result<(), SweepError> {
        let line = line(entry);
        self.file
            .write_all(line.as_bytes())
            .map_err(|error| SweepError::Output { file: self.directory.join(NAME), error })
    }

    /// Existing tables must be as they were written.
    fn check_tables(&self) -> Result<(), SweepError> {
        for name in super::tables::NAMES {
            let path = self.directory.join(name);
            let text = match std::fs::read(&path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(SweepError::Output { file: path, error }),
            };
            if !self.tables.contains(&format!("{name} {}", digest(&text))) {
                let why = format!(
                    "`{name}` is not as the sweep wrote it; remove it to have it written again, or choose another directory"
                );
                return Err(SweepError::Directory { directory: self.directory.clone(), why });
            }
        }
        Ok(())
    }
}

/// What a journal has besides its runs.
#[derive(Default)]
struct Contents {
    tables: Vec<String>,
    description: Option<String>,
    /// The bytes of the complete lines.
    whole: u64,
}

/// Reads the journal of `directory`, whose first line must be `heading`, and calls `keep` with every run in it.
fn contents(
    file: &File,
    heading: &str,
    directory: &Path,
    measures: usize,
    keep: &mut impl FnMut(FinishedRun) -> Result<(), String>,
) -> Result<Contents, SweepError> {
    let failed = |error| SweepError::Input { file: directory.join(NAME), error };
    let mut contents = Contents::default();
    let mut reader = BufReader::new(file);
    let (mut line, mut number) = (Vec::new(), 0);
    while reader.read_until(b'\n', &mut line).map_err(failed)? > 0 {
        number += 1;
        if line.last() != Some(&b'\n') && number > 1 {
            break;
        }
        contents.whole += line.len() as u64;
        let fault = || refused(directory, &damaged(number));
        let entry = checked(&line).ok_or_else(fault)?;
        match number {
            1 => expect(entry, heading).map_err(|why| refused(directory, &why))?,
            _ => contents.take(entry, measures, keep).ok_or_else(fault)?,
        }
        line.clear();
    }
    match number {
        0 => Err(refused(directory, &damaged(1))),
        _ => Ok(contents),
    }
}

impl Contents {
    /// Takes a line; `None` if it is damaged.
    fn take(
        &mut self,
        entry: &str,
        measures: usize,
        keep: &mut impl FnMut(FinishedRun) -> Result<(), String>,
    ) -> Option<()> {
        match entry.split_once(' ')? {
            ("run", run) => keep(read_run(run)?).ok()?,
            ("failed", run) => keep(read_failed(run, measures)?).ok()?,
            ("sweep", description) => self.description = Some(description.to_owned()),
            ("table", digest) => self.tables.push(digest.to_owned()),
            _ => return None,
        }
        Some(())
    }
}

/// The journal of a directory that a sweep has written.
fn existing(directory: &Path) -> Result<File, SweepError> {
    let path = directory.join(NAME);
    File::open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound if !directory.exists() => {
            SweepError::Input { file: directory.to_owned(), error }
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            refused(directory, "this is not the directory of a sweep (`--out`): it holds no `runs.journal`")
        }
        _ => SweepError::Input { file: path, error },
    })
}

/// The first line of the journal of a sweep.
fn heading(sweep: &Sweep) -> Result<String, SweepError> {
    Ok(format!("anabranch sweep 1 {}", sweep.identity()?))
}

fn refused(directory: &Path, why: &str) -> SweepError {
    SweepError::Directory { directory: directory.to_owned(), why: why.to_owned() }
}

/// Whether the journal could be locked.
fn locked(lock: Result<(), TryLockError>, directory: &Path) -> Result<(), SweepError> {
    match lock {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(refused(directory, "another process is writing this sweep")),
        Err(TryLockError::Error(error)) => Err(SweepError::Input { file: directory.join(NAME), error }),
    }
}

/// Begins the journal of a directory that holds nothing yet.
fn begin(heading: &str, directory: &Path) -> Result<(), SweepError> {
    let failed = |error| SweepError::Output { file: directory.join(NAME), error };
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != NEW {
            let name = name.to_string_lossy();
            let why = format!("holds `{name}` but no sweep; choose a new or empty directory");
            return Err(SweepError::Directory { directory: directory.to_owned(), why });
        }
    }
    let new = directory.join(NEW);
    let written = std::fs::write(&new, line(heading));
    written.and_then(|()| std::fs::rename(&new, directory.join(NAME))).map_err(failed)
}

/// The first line must belong to this sweep.
fn expect(entry: &str, heading: &str) -> Result<(), String> {
    if entry == heading {
        return Ok(());
    }
    let advice = "choose another directory";
    Err(match entry.starts_with("anabranch sweep ") {
        true => format!(
            "holds another sweep: its scenario, `vary`, `measure` or the program's version differ; {advice}"
        ),
        false => format!("`{NAME}` is not the journal of a sweep; {advice}"),
    })
}

fn damaged(line: usize) -> String {
    format!("`{NAME}` is damaged at line {line}; choose another directory, or remove this one to begin again")
}

/// A line with this entry and its checksum.
pub(crate) fn line(entry: &str) -> String {
    format!("{entry} {}\n", &digest(entry.as_bytes())[..CHECK])
}

/// The contents of a complete line, if its checksum is right.
pub(crate) fn checked(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (entry, check) = line.rsplit_once(' ')?;
    (digest(entry.as_bytes())[..CHECK] == *check).then_some(entry)
}

fn read_run(text: &str) -> Option<FinishedRun> {
    let mut words = text.split(' ');
    let (cell, n) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(FinishedRun { cell, n, values: words.map(value).collect::<Option<_>>()?, failed: None })
}

/// The values of a run, each after a space and exact to the bit.
pub(crate) fn words(values: &[f64]) -> String {
    let word = |value: &f64| match value.is_nan() {
        true => " -".to_owned(),
        false => format!(" {:016x}", value.to_bits()),
    };
    values.iter().map(word).collect()
}

/// The value that a word stands for.
pub(crate) fn value(word: &str) -> Option<f64> {
    match word {
        "-" => Some(f64::NAN),
        bits => u64::from_str_radix(bits, 16).ok().map(f64::from_bits),
    }
}

fn read_failed(text: &str, measures: usize) -> Option<FinishedRun> {
    let mut words = text.splitn(3, ' ');
    let (cell, n) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let failed = Some(serde_json::from_str(words.next()?).ok()?);
    Some(FinishedRun { cell, n, values: vec![f64::NAN; measures].into(), failed })
}

pub(crate) fn digest(text: &[u8]) -> String {
    hexadecimal(&Sha256::digest(text))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file, and the digest of what is written to it.
struct Digesting {
    file: BufWriter<File>,
    digest: Sha256,
}

impl Write for Digesting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
