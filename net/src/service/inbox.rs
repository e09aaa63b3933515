//! The directory for received files: allowed names, room, and when a file counts as received.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anabranch_proto::Delivery;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tokio::sync::mpsc;

use super::{hex, in_thread};
use crate::{is_printable, source};

/// The prefix of the names of unfinished files.
const PREFIX: &str = ".anabranch-";
/// The largest number of files in the directory, so that empty files cannot fill it without end. Tests have no time for
/// that many.
const MOST_FILES: u64 = if cfg!(test) { 40 } else { 100_000 };
/// The shortest interval between two counts of the directory.
const RECOUNT: Duration = Duration::from_secs(1);
/// The number of deliveries of a transfer that may wait for the disk.
pub(super) const AHEAD: usize = 32;
/// The default of the smallest rate of a transfer, bytes per second.
const SLOWEST: u64 = 1000;

/// A directory that files are received into.
///
/// - A client names a file, without directories and not hidden. An existing file is never overwritten.
/// - A file is written under a temporary name. It gets its own name, and counts as received, when it is complete, its
///   hash is right, and the file and its name are on the disk.
/// - All files together have a limit in bytes, which includes files that existed before. Room is taken by bytes that
///   have arrived, not by announced bytes. A transfer that is too slow is ended. One source has a limit of its own, and
///   the same share of the number of files.
#[derive(Clone, Debug)]
pub struct Inbox {
    directory: PathBuf,
    /// The limit for all files together, bytes.
    room: u64,
    /// The limit for one source, bytes.
    share: u64,
    /// The smallest rate of a transfer, bytes per second.
    pub(super) slowest: u64,
    used: Arc<Mutex<Used>>,
}

/// A number of files, and their bytes.
#[derive(Copy, Clone, Default, Debug)]
struct Held {
    files: u64,
    bytes: u64,
}

impl Held {
    fn add(&mut self, more: Held) {
        self.files += more.files;
        self.bytes += more.bytes;
    }
}

/// The used room.
#[derive(Debug)]
struct Used {
    /// The files in the directory.
    there: Held,
    /// When they were counted.
    counted: Instant,
    /// Files that were received and still existed at the last count: their sources and sizes.
    received: BTreeMap<String, (IpAddr, u64)>,
    /// The same files, by source.
    of_sources: BTreeMap<IpAddr, Held>,
    /// Unfinished files and their bytes that have arrived, by source.
    unfinished: BTreeMap<IpAddr, Held>,
}

/// A file that was received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
}

impl Inbox {
    /// An inbox in `directory`, which must exist, with a limit of `room` bytes. Unfinished files of programs that
    /// ended without removing them are deleted.
    pub fn new(directory: &Path, room: u64) -> io::Result<Inbox> {
        sweep(directory)?;
        let mut used = Used {
            there: Held::default(),
            counted: Instant::now(),
            received: BTreeMap::new(),
            of_sources: BTreeMap::new(),
            unfinished: BTreeMap::new(),
        };
        used.count(directory)?;
        let used = Arc::new(Mutex::new(used));
        Ok(Inbox { directory: directory.to_owned(), room, share: room, slowest: SLOWEST, used })
    }

    /// Limits each source to `bytes`, and to the same share of the number of files: an IPv4 address, or an IPv6 network
    /// of 64 bits.
    pub fn share(self, bytes: u64) -> Inbox {
        Inbox { share: bytes, ..self }
    }

    /// Ends transfers that are slower than this number of bytes per second over two minutes.
    pub fn slowest(self, bytes: u64) -> Inbox {
        Inbox { slowest: bytes, ..self }
    }

    /// Opens a file for `size` bytes from `peer` under a temporary name. There is room for them now, but room is
    /// taken only as they arrive.
    pub(super) fn open(&self, name: &str, size: u64, peer: IpAddr) -> Result<IncomingFile, String> {
        let name = plain(name)?.to_owned();
        let path = self.directory.join(&name);
        if path.symlink_metadata().is_ok() {
            return Err("there is a file of this name".to_owned());
        }
        let room = Room::of_a_file(self, source(peer), size)?;
        let free = free(&self.directory).map_err(|error| no_paths(&error))?;
        if size > free {
            return Err(format!("the disk has room for {free} bytes"));
        }
        let file = tempfile::Builder::new().prefix(PREFIX).tempfile_in(&self.directory);
        let file = file.map_err(|error| no_paths(&error))?;
        // While the file is locked, no other process deletes it.
        file.as_file().try_lock().map_err(|_| "the file cannot be locked".to_owned())?;
        Ok(IncomingFile { directory: self.directory.clone(), name, path, size, file, room })
    }

    /// The used room, if `more` of a source still fits.
    fn fits(&self, source: IpAddr, more: Held) -> Result<MutexGuard<'_, Used>, String> {
        let mut used = self.lock();
        if self.judge(&used, source, more).is_err() && used.counted.elapsed() >= RECOUNT {
            // Somebody may have added or removed files.
            used.count(&self.directory).map_err(|error| no_paths(&error))?;
        }
        self.judge(&used, source, more).map(|()| used)
    }

    fn judge(&self, used: &Used, source: IpAddr, more: Held) -> Result<(), String> {
        let (all, own) = (used.all(), used.of(source));
        let left = self.room.saturating_sub(all.bytes);
        let share = self.share.saturating_sub(own.bytes);
        match more {
            more if more.files > MOST_FILES.saturating_sub(all.files) => {
                Err("there are too many files".to_owned())
            }
            more if more.files > self.share_of_files().saturating_sub(own.files) => {
                Err("there are too many files from one source".to_owned())
            }
            more if more.bytes > left => Err(format!("there is room for {left} bytes")),
            more if more.bytes > share => Err(format!("there is room for {share} bytes from one source")),
            _ => Ok(()),
        }
    }

    /// The largest number of files of one source.
    fn share_of_files(&self) -> u64 {
        let share = u128::from(MOST_FILES) * u128::from(self.share) / u128::from(self.room.max(1));
        u64::try_from(share).unwrap_or(MOST_FILES).clamp(1, MOST_FILES)
    }

    fn lock(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Used {
    /// Counts the files in the directory.
    fn count(&mut self, directory: &Path) -> io::Result<()> {
        (self.there, self.counted) = (Held::default(), Instant::now());
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Files that disappear during the count are not counted.
            if let Ok(metadata) = entry.metadata()
                && metadata.is_file()
                && !name.starts_with(PREFIX)
            {
                self.there.add(Held { files: 1, bytes: metadata.len() });
                names.insert(name);
            }
        }
        self.received.retain(|name, _| names.contains(name));
        self.of_sources.clear();
        for (source, bytes) in self.received.values() {
            self.of_sources.entry(*source).or_default().add(Held { files: 1, bytes: *bytes });
        }
        Ok(())
    }

    fn all(&self) -> Held {
        let mut all = self.there;
        self.unfinished.values().for_each(|unfinished| all.add(*unfinished));
        all
    }

    fn of(&self, source: IpAddr) -> Held {
        let mut own = self.of_sources.get(&source).copied().unwrap_or_default();
        own.add(self.unfinished.get(&source).copied().unwrap_or_default());
        own
    }
}

/// The room that an unfinished file occupies. It is released unless the file is kept.
pub(super) struct Room {
    of: Inbox,
    source: IpAddr,
    bytes: u64,
}

impl Room {
    /// The room of a file of which nothing has arrived, if all of it would fit now.
    fn of_a_file(of: &Inbox, source: IpAddr, size: u64) -> Result<Room, String> {
        let mut used = of.fits(source, Held { files: 1, bytes: size })?;
        used.unfinished.entry(source).or_default().files += 1;
        drop(used);
        Ok(Room { of: of.clone(), source, bytes: 0 })
    }

    /// Takes room for arrived bytes.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), String> {
        let more = Held { files: 0, bytes };
        self.of.fits(self.source, more)?.unfinished.entry(self.source).or_default().add(more);
        self.bytes += bytes;
        Ok(())
    }

    /// The file is now in the directory under this name.
    pub(super) fn keep(self, name: String) {
        let kept = Held { files: 1, bytes: self.bytes };
        let mut used = self.of.lock();
        used.there.add(kept);
        used.of_sources.entry(self.source).or_default().add(kept);
        used.received.insert(name, (self.source, self.bytes));
        drop(used);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let mut used = self.of.lock();
        if let Some(unfinished) = used.unfinished.get_mut(&self.source) {
            unfinished.files -= 1;
            unfinished.bytes -= self.bytes;
            if unfinished.files == 0 {
                used.unfinished.remove(&self.source);
            }
        }
    }
}

/// The place of a file that is being received.
pub(super) struct IncomingFile {
    directory: PathBuf,
    name: String,
    path: PathBuf,
    size: u64,
    file: NamedTempFile,
    room: Room,
}

/// A message to the writer of a file.
pub(super) enum Piece {
    Data(Delivery),
    /// Everything was sent; this is the expected hash.
    End(String),
}

impl IncomingFile {
    /// Writes the pieces and gives the file its name if its size and hash are right. A transfer for which nothing is to
    /// be written takes no thread: threads are few, and senders that dawdle would take them from all others.
    pub(super) async fn write(self, mut pieces: mpsc::Receiver<Piece>) -> Result<Received, String> {
        let mut writing = Box::new(Writing { file: self, hash: Sha256::new(), arrived: 0 });
        let mut arrived = Vec::with_capacity(AHEAD);
        while pieces.recv_many(&mut arrived, AHEAD).await > 0 {
            let batch = std::mem::take(&mut arrived);
            match in_thread(move || writing.append(batch)).await? {
                Written::Part(part) => writing = part,
                Written::Whole(received) => return Ok(received),
            }
        }
        Err("it was not finished".to_owned())
    }

    /// Gives the file its name, unless another file has it. Both are on the disk before the file counts as received.
    /// A file that does not count does not stay.
    fn keep(mut self) -> Result<Received, String> {
        let synced = self.file.flush().and_then(|()| self.file.as_file().sync_all());
        synced.map_err(|error| no_paths(&error))?;
        // Before the file has its name: the system may have no descriptor left.
        let directory = File::open(&self.directory).map_err(|error| no_paths(&error))?;
        self.file.persist_noclobber(&self.path).map_err(|error| no_paths(&error.error))?;
        if let Err(error) = directory.sync_all() {
            let _ = fs::remove_file(&self.path);
            return Err(no_paths(&error));
        }
        self.room.keep(self.name);
        Ok(Received { path: self.path, size: self.size })
    }
}

/// A file of which a part is written.
struct Writing {
    file: IncomingFile,
    hash: Sha256,
    /// Bytes.
    arrived: u64,
}

/// What is there after some pieces were written.
enum Written {
    Part(Box<Writing>),
    Whole(Received),
}

impl Writing {
    fn append(mut self: Box<Self>, pieces: Vec<Piece>) -> Result<Written, String> {
        for piece in pieces {
            match piece {
                Piece::End(sha256) => return self.finish(&sha256).map(Written::Whole),
                Piece::Data(delivery) => {
                    self.file.room.take(delivery.len() as u64)?;
                    self.arrived += delivery.len() as u64;
                    for piece in &delivery.pieces {
                        self.hash.update(piece);
                        self.file.file.write_all(piece).map_err(|error| no_paths(&error))?;
                    }
                }
            }
        }
        Ok(Written::Part(self))
    }

    fn finish(self: Box<Self>, sha256: &str) -> Result<Received, String> {
        let Writing { file, hash, arrived } = *self;
        if arrived != file.size {
            return Err(format!("{arrived} bytes of {} have arrived", file.size));
        }
        if !hex(&hash.finalize()).eq_ignore_ascii_case(sha256) {
            return Err("the hash of what arrived is another".to_owned());
        }
        file.keep()
    }
}

/// The error of the system without local paths, because a peer will read it.
fn no_paths(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the quota of the disk is used up".to_owned(),
        io::ErrorKind::AlreadyExists => "there is a file of this name".to_owned(),
        kind => {
            // The text of an error that `tempfile` made has a path; its source has none.
            let within = error.source().and_then(|within| within.downcast_ref::<io::Error>());
            let number = error.raw_os_error().or(within.and_then(io::Error::raw_os_error));
            let why =
                number.map_or(kind.to_string(), |number| io::Error::from_raw_os_error(number).to_string());
            format!("the file cannot be written: {why}")
        }
    }
}

/// The free bytes of the file system of `directory` for this program.
fn free(directory: &Path) -> io::Result<u64> {
    let told = rustix::fs::statvfs(directory)?;
    Ok(told.f_bavail.saturating_mul(told.f_frsize))
}

/// Removes unfinished files that no process writes any more.
fn sweep(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX) && entry.file_type()?.is_file();
        // A process that writes one holds its lock.
        if ours && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

/// A name without directories that is not hidden.
fn plain(name: &str) -> Result<&str, String> {
    let odd = |c: char| c == '/' || c == '\\' || !is_printable(c);
    match name {
        _ if name.is_empty() || name.len() > 200 => Err("a name has 1 to 200 bytes".to_owned()),
        _ if name.starts_with('.') => Err("a name does not begin with a dot".to_owned()),
        _ if name.contains(odd) => {
            Err("a name has no directories and only characters that can be seen".to_owned())
        }
        _ => Ok(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn names_stay_in_the_directory() {
        for name in [
            "",
            ".",
            "..",
            "../a",
            "a/b",
            "/etc/passwd",
            ".profile",
            "a\\b",
            "a\nb",
            "a\u{202e}b",
            &"a".repeat(201),
        ] {
            assert!(plain(name).is_err(), "{name:?}");
        }
        assert_eq!(plain("a..b (1).tar.gz"), Ok("a..b (1).tar.gz"));
    }

    fn inbox(room: u64) -> (tempfile::TempDir, Inbox) {
        let directory = tempfile::tempdir().expect("a place for files");
        let inbox = Inbox::new(directory.path(), room).expect("a directory");
        (directory, inbox)
    }

    #[test]
    fn room_is_taken_by_what_arrives_and_given_back() {
        let (directory, inbox) = inbox(100);
        let first = inbox.open("a", 60, PEER).expect("there is room");
        let mut second = inbox.open("b", 60, PEER).expect("nothing has arrived of the first");
        second.room.take(60).expect("there is room");
        assert_eq!(inbox.open("c", 41, PEER).err().as_deref(), Some("there is room for 40 bytes"));
        drop(first);
        second.keep().expect("nobody has the name");
        assert!(inbox.open("c", 41, PEER).is_err() && inbox.open("c", 40, PEER).is_ok());
        assert!(inbox.open("b", 1, PEER).is_err(), "nothing is overwritten");
        let mut third = inbox.open("d", 40, PEER).expect("there is room");
        assert!(third.room.take(40).is_ok() && third.room.take(1).is_err());
        drop(third);
        assert!(inbox.open("d", 40, PEER).is_ok(), "what is not kept takes no room");
        std::os::unix::fs::symlink("/nowhere", directory.path().join("link")).expect("a link");
        assert!(inbox.open("link", 1, PEER).is_err(), "nor written through");
        let names: Vec<_> = fs::read_dir(directory.path()).expect("it is there").collect();
        assert_eq!(names.len(), 2, "and temporary files go");
    }

    #[test]
    fn a_source_has_its_share() {
        let (_directory, inbox) = inbox(100);
        let inbox = inbox.share(50);
        let peer = |text: &str| text.parse::<IpAddr>().expect("an address");
        let mut place = inbox.open("a", 50, peer("2001:db8::1")).expect("there is room");
        place.room.take(50).expect("there is room");
        let refused = inbox.open("b", 1, peer("2001:db8::2")).err();
        assert_eq!(refused.as_deref(), Some("there is room for 0 bytes from one source"));
        assert!(inbox.open("b", 50, peer("2001:db8:1::1")).is_ok());
        place.keep().expect("nobody has the name");
        assert!(inbox.open("b", 1, peer("2001:db8::2")).is_err(), "what was received counts as well");
    }

    #[test]
    fn a_source_has_the_same_share_of_the_files() {
        let (directory, inbox) = inbox(100);
        let inbox = inbox.share(50);
        let other: IpAddr = [127, 0, 0, 2].into();
        let put = |n: u64, peer| inbox.open(&n.to_string(), 0, peer).and_then(IncomingFile::keep);
        for n in 0..MOST_FILES / 2 - 1 {
            put(n, PEER).expect("an empty file");
        }
        let unfinished = inbox.open("unfinished", 0, PEER).expect("the last of its files");
        let many = Err("there are too many files from one source".to_owned());
        assert_eq!(put(MOST_FILES, PEER), many, "an unfinished file counts");
        drop(unfinished);
        put(MOST_FILES, PEER).expect("it was not finished");
        assert_eq!(put(MOST_FILES + 1, PEER), many);
        put(MOST_FILES + 1, other).expect("another source has a share of its own");
        fs::remove_file(directory.path().join("0")).expect("it is there");
        inbox.lock().counted -= RECOUNT;
        put(0, PEER).expect("a file that was taken away makes room");
    }

    #[test]
    fn what_is_there_counts_and_leftovers_go() {
        let directory = tempfile::tempdir().expect("a place for files");
        fs::write(directory.path().join("before"), [0; 60]).expect("a file");
        fs::write(directory.path().join(".anabranch-left"), [0; 60]).expect("a file");
        let inbox = Inbox::new(directory.path(), 100).expect("a directory");
        assert!(!directory.path().join(".anabranch-left").exists(), "nobody writes it");
        assert!(inbox.open("a", 41, PEER).is_err());
        let writing = inbox.open("a", 40, PEER).expect("there is room");
        let again = Inbox::new(directory.path(), 100).expect("a directory");
        assert!(writing.file.path().exists(), "it is being written");
        writing.keep().expect("it was not swept away");
        fs::remove_file(directory.path().join("before")).expect("it is there");
        again.lock().counted -= RECOUNT;
        assert!(again.open("b", 100, PEER).is_ok(), "room comes back when files are taken away");
    }

    #[test]
    fn a_file_that_does_not_count_does_not_stay() {
        let (directory, inbox) = inbox(100);
        let mut place = inbox.open("a", 1, PEER).expect("there is room");
        place.directory = directory.path().join("gone");
        assert!(place.keep().is_err(), "its name may not be on the disk");
        assert_eq!(fs::read_dir(directory.path()).expect("it is there").count(), 0);
    }

    #[test]
    fn a_peer_reads_no_path_of_this_host() {
        let (directory, inbox) = inbox(100);
        fs::remove_dir(directory.path()).expect("it is empty");
        let why = inbox.open("a", 1, PEER).err().expect("there is no directory");
        assert_eq!(why, "the file cannot be written: No such file or directory (os error 2)");
        // An error for which Rust has no kind, as it is and with a path.
        let few = || io::Error::from_raw_os_error(24);
        let within = tempfile::Builder::new().make(|_| Err::<(), _>(few())).expect_err("it has none");
        for error in [few(), within] {
            let why = "the file cannot be written: Too many open files (os error 24)";
            assert_eq!(no_paths(&error), why);
        }
    }
}
