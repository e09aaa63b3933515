//! Answers clients: receives their files, and takes part in their measurements.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anabranch_proto::Delivery;
use sha2::{Digest, Sha256};
use tempfile::NamedTempFile;
use tokio::sync::mpsc;

use super::{Control, Failure, Heard, Plan, hear, hex, perf, say, unexpected};
use crate::{Association, is_printable};

/// Deliveries that wait for the disk.
const AHEAD: usize = 32;

/// A directory that files are received into.
///
/// A client names a file, without directories and not hidden; what is there already stays as it is. A file is
/// written under another name and gets its own when it is complete and its hash is right. All files together
/// have at most so many bytes.
#[derive(Clone, Debug)]
pub struct Inbox {
    directory: PathBuf,
    /// Bytes that may still be received.
    room: Arc<Mutex<u64>>,
}

/// A file that was received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// Where it is.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
}

/// What a client wanted and got.
#[derive(Clone, PartialEq, Debug)]
pub enum Served {
    /// A file came.
    File(Received),
    /// A file did not come: its name, the bytes that arrived of those announced, and why. Nothing is kept of it.
    NoFile {
        /// What the client called it.
        name: String,
        /// Bytes that arrived.
        arrived: u64,
        /// Bytes that were announced.
        size: u64,
        /// What was wrong.
        why: String,
    },
    /// A measurement, with the bytes received and sent.
    Measured(u64, u64),
    /// It ended the association without a wish.
    Nothing,
}

impl Inbox {
    /// Files go into `directory`, which must be there, and have at most `room` bytes together.
    pub fn new(directory: &Path, room: u64) -> io::Result<Inbox> {
        if !directory.metadata()?.is_dir() {
            return Err(io::Error::from(io::ErrorKind::NotADirectory));
        }
        Ok(Inbox { directory: directory.to_owned(), room: Arc::new(Mutex::new(room)) })
    }

    /// Takes room for a file, and opens it under a temporary name.
    fn open(&self, name: &str, size: u64) -> Result<Place, String> {
        let path = self.directory.join(plain(name)?);
        if path.symlink_metadata().is_ok() {
            return Err("there is a file of this name".to_owned());
        }
        let file = tempfile::Builder::new().prefix(".anabranch-").tempfile_in(&self.directory);
        let file = file.map_err(|error| format!("no file can be made: {error}"))?;
        let room = Room::take(&self.room, size)?;
        Ok(Place { path, size, file, room })
    }
}

/// Bytes of the inbox that a file takes: given back unless it is kept.
struct Room {
    of: Arc<Mutex<u64>>,
    bytes: u64,
}

impl Room {
    fn take(of: &Arc<Mutex<u64>>, bytes: u64) -> Result<Room, String> {
        let mut left = of.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.checked_sub(bytes).ok_or_else(|| format!("there is room for {left} bytes"))?;
        Ok(Room { of: Arc::clone(of), bytes })
    }

    fn keep(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        *self.of.lock().unwrap_or_else(PoisonError::into_inner) += self.bytes;
    }
}

/// Where a file is going to be.
struct Place {
    path: PathBuf,
    size: u64,
    file: NamedTempFile,
    room: Room,
}

impl Place {
    /// Writes what arrives; with its hash and how much it was, once the sender is gone.
    fn write(mut self, mut pieces: mpsc::Receiver<Delivery>) -> (Place, io::Result<String>) {
        let mut hash = Sha256::new();
        while let Some(delivery) = pieces.blocking_recv() {
            for piece in &delivery.pieces {
                hash.update(piece);
                if let Err(error) = self.file.write_all(piece) {
                    return (self, Err(error));
                }
            }
        }
        let flushed = self.file.flush();
        (self, flushed.map(|()| hex(&hash.finalize())))
    }

    /// Gives the file its name, unless another has it.
    fn keep(self) -> Result<Received, String> {
        let kept = self.file.persist_noclobber(&self.path);
        kept.map_err(|error| format!("the file cannot be given its name: {}", error.error))?;
        self.room.keep();
        Ok(Received { path: self.path, size: self.size })
    }
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

/// Does what the client at the other end wishes, and waits for the end of the association. Files are received
/// only with an inbox.
pub async fn serve(association: &Association, inbox: Option<&Inbox>) -> Result<Served, Failure> {
    let served = converse(association, inbox).await;
    if let Err(Failure::Confused(_) | Failure::Silent(_)) = served {
        association.abort();
    }
    let _ = association.close().await;
    served
}

async fn converse(association: &Association, inbox: Option<&Inbox>) -> Result<Served, Failure> {
    match hear(association).await? {
        None => Ok(Served::Nothing),
        Some(Heard::Said(Control::SendFile { name, size })) => receive(association, inbox, name, size).await,
        Some(Heard::Said(Control::Measure(plan))) => partner(association, &plan).await,
        Some(Heard::Said(other)) => Err(unexpected(&other)),
        Some(Heard::Data(_)) => Err(Failure::Confused("data before a wish".to_owned())),
    }
}

async fn receive(
    association: &Association,
    inbox: Option<&Inbox>,
    name: String,
    size: u64,
) -> Result<Served, Failure> {
    let place = match inbox {
        Some(inbox) => inbox.open(&name, size),
        None => Err("no files are received here".to_owned()),
    };
    let place = match place {
        Ok(place) => place,
        Err(why) => {
            say(association, &Control::Refused { why: why.clone() }).await?;
            wait_for_the_end(association).await;
            return Ok(Served::NoFile { name, arrived: 0, size, why });
        }
    };
    say(association, &Control::Go {}).await?;
    let (sender, pieces) = mpsc::channel(AHEAD);
    let writing = tokio::task::spawn_blocking(move || place.write(pieces));
    let (arrived, ended) = collect(association, sender, size).await;
    let written = writing.await.map_err(|error| Failure::Confused(error.to_string()));
    let judged = match (written, ended) {
        (_, Err(why)) => Err(why.to_string()),
        (Err(why), _) => Err(why.to_string()),
        (Ok((place, hash)), Ok(sha256)) => judge(place, hash, arrived, &sha256),
    };
    let failed = judged.as_ref().err().cloned();
    let told = say(association, &Control::Verdict { received: arrived, failed }).await;
    if told.is_ok() {
        wait_for_the_end(association).await;
    }
    Ok(match judged {
        Ok(received) => Served::File(received),
        Err(why) => Served::NoFile { name, arrived, size, why },
    })
}

/// The client shuts down when it has heard the last word.
async fn wait_for_the_end(association: &Association) {
    while let Ok(Some(_)) = hear(association).await {}
}

/// Hands the data of a file of `size` bytes on to whoever writes it; how much arrived, and the hash that it
/// should have.
async fn collect(
    association: &Association,
    sender: mpsc::Sender<Delivery>,
    size: u64,
) -> (u64, Result<String, Failure>) {
    let mut arrived = 0;
    loop {
        match hear(association).await {
            Ok(Some(Heard::Data(delivery))) => {
                arrived += delivery.len() as u64;
                if arrived > size {
                    return (arrived, Err(Failure::Confused("more bytes than announced".to_owned())));
                }
                // If it cannot be written, that is told at the end.
                let _ = sender.send(delivery).await;
            }
            Ok(Some(Heard::Said(Control::End { sha256 }))) => return (arrived, Ok(sha256)),
            Ok(Some(Heard::Said(other))) => return (arrived, Err(unexpected(&other))),
            Ok(None) => return (arrived, Err(Failure::Stopped)),
            Err(failure) => return (arrived, Err(failure)),
        }
    }
}

fn judge(place: Place, hash: io::Result<String>, arrived: u64, sha256: &str) -> Result<Received, String> {
    match hash {
        Err(error) => Err(format!("the file cannot be written: {error}")),
        Ok(_) if arrived != place.size => Err(format!("{arrived} bytes of {} have arrived", place.size)),
        Ok(hash) if !hash.eq_ignore_ascii_case(sha256) => {
            Err("the hash of what arrived is another".to_owned())
        }
        Ok(_) => place.keep(),
    }
}

async fn partner(association: &Association, plan: &Plan) -> Result<Served, Failure> {
    if let Err(why) = plan.check() {
        say(association, &Control::Refused { why: why.clone() }).await?;
        wait_for_the_end(association).await;
        return Err(Failure::Refused(why));
    }
    say(association, &Control::Go {}).await?;
    let received = perf::take(association).await?;
    let sent = perf::give(association, plan).await?;
    let (bytes, cpu, shares) = (sent.bytes, sent.cpu[0], sent.shares);
    say(association, &Control::Measured { bytes, cpu, shares }).await?;
    wait_for_the_end(association).await;
    Ok(Served::Measured(received.bytes, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn room_is_taken_and_given_back() {
        let directory = tempfile::tempdir().expect("a place for files");
        let inbox = Inbox::new(directory.path(), 100).expect("a directory");
        let first = inbox.open("a", 60).expect("there is room");
        assert!(inbox.open("b", 60).is_err());
        drop(first);
        let second = inbox.open("b", 60).expect("there is room again");
        second.keep().expect("nobody has the name");
        assert!(inbox.open("c", 41).is_err() && inbox.open("c", 40).is_ok());
        assert!(inbox.open("b", 1).is_err(), "nothing is overwritten");
        std::os::unix::fs::symlink("/nowhere", directory.path().join("link")).expect("a link");
        assert!(inbox.open("link", 1).is_err(), "nor written through");
        let names: Vec<_> = std::fs::read_dir(directory.path()).expect("it is there").collect();
        assert_eq!(names.len(), 2, "and temporary files go");
    }
}
