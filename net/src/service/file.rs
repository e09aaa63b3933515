//! Sends a file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::pin::pin;

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::{Control, Failure, PIECE, hear_sometime, hex, patiently, said, say, send_data, unexpected};
use crate::{Association, printable};

/// The number of pieces that are read ahead.
const AHEAD: usize = 8;

/// A file that the other end has received and checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SentFile {
    /// Its name at the other end.
    pub name: String,
    /// Bytes.
    pub size: u64,
    /// Its hash, in hexadecimal digits.
    pub sha256: String,
}

/// Why a file was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// It cannot be read.
    #[error("{0}")]
    File(#[from] io::Error),
    /// The path names no file.
    #[error("the path has no file name")]
    NoName,
    /// The file has become longer while it was sent.
    #[error("the file had {before} bytes, and it grew while it was sent")]
    Grew {
        /// Bytes when it was opened.
        before: u64,
    },
    /// The file has become shorter while it was sent.
    #[error("the file had {before} bytes and has {after} now")]
    Shrank {
        /// Bytes when it was opened.
        before: u64,
        /// Bytes that could be read.
        after: u64,
    },
    /// The conversation failed.
    #[error(transparent)]
    Failure(#[from] Failure),
    /// The other end has ended the transfer.
    #[error("the other end has ended the transfer: {}", printable(.why))]
    Verdict {
        /// Bytes that arrived.
        received: u64,
        /// The reason given by the other end.
        why: String,
    },
}

/// Called with the bytes given to the association so far and the bytes in total.
pub type Progress<'a> = &'a (dyn Fn(u64, u64) + Sync);

/// Bytes of user data that announce a file before its contents.
pub fn announcement(path: &Path, size: u64) -> u64 {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    serde_json::to_vec(&Control::SendFile { name, size }).unwrap_or_default().len() as u64
}

/// Sends the file at `path` under its own name, and waits for the verdict.
pub async fn send_file(
    association: &Association,
    path: &Path,
    progress: Progress<'_>,
) -> Result<SentFile, SendError> {
    let name = path.file_name().and_then(|name| name.to_str()).ok_or(SendError::NoName)?.to_owned();
    let file = File::open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(SendError::NoName);
    }
    let size = metadata.len();
    say(association, &Control::SendFile { name: name.clone(), size }).await?;
    let mut verdict = pin!(verdict(association));
    // The data follows at once: waiting for the answer to the announcement would cost a round trip.
    let sha256 = tokio::select! {
        given = give(association, file, size, progress) => given?,
        // A listener reports at once that it does not accept the file, or cannot accept the rest.
        said = &mut verdict => return judge(said?, name, size, String::new()),
    };
    judge(patiently(association, verdict).await?, name, size, sha256)
}

/// Waits for the answer to the announcement, then for the verdict. A listener has nothing to say while the data is on
/// its way, however long that takes, so its silence is no failure here.
async fn verdict(association: &Association) -> Result<Control, Failure> {
    match said(hear_sometime(association).await?)? {
        Control::Go {} => said(hear_sometime(association).await?),
        other => Err(unexpected(&other)),
    }
}

/// Sends the contents and returns their hash.
async fn give(
    association: &Association,
    file: File,
    size: u64,
    progress: Progress<'_>,
) -> Result<String, SendError> {
    let (sender, mut pieces) = mpsc::channel(AHEAD);
    let reading = tokio::task::spawn_blocking(move || read(file, size, &sender));
    let mut given = 0;
    while let Some(piece) = pieces.recv().await {
        given += piece.len() as u64;
        // A listener that reads nothing leaves no room.
        patiently(association, send_data(association, 0, piece)).await?;
        progress(given, size);
    }
    let (sha256, grew) = reading.await.map_err(io::Error::other)??;
    if grew {
        return Err(SendError::Grew { before: size });
    }
    if given != size {
        return Err(SendError::Shrank { before: size, after: given });
    }
    say(association, &Control::End { sha256: sha256.clone() }).await?;
    Ok(sha256)
}

fn judge(said: Control, name: String, size: u64, sha256: String) -> Result<SentFile, SendError> {
    match said {
        Control::Verdict { received, failed: Some(why) } => {
            Err(SendError::Verdict { received: received.min(size), why })
        }
        Control::Verdict { failed: None, .. } if !sha256.is_empty() => Ok(SentFile { name, size, sha256 }),
        other => Err(unexpected(&other).into()),
    }
}

/// Reads `size` bytes of a file piece by piece. Returns their hash, and whether the file has more: it grew.
fn read(mut file: File, size: u64, pieces: &mpsc::Sender<Bytes>) -> io::Result<(String, bool)> {
    let mut hash = Sha256::new();
    let mut left = size;
    loop {
        let mut piece = Vec::with_capacity(PIECE);
        let read = Read::by_ref(&mut file).take(left.min(PIECE as u64)).read_to_end(&mut piece)?;
        left -= read as u64;
        // If the association is lost, nobody receives the pieces any more.
        if piece.is_empty() || {
            hash.update(&piece);
            pieces.blocking_send(piece.into()).is_err()
        } {
            let more = left == 0 && file.read(&mut [0])? > 0;
            return Ok((hex(&hash.finalize()), more));
        }
    }
}
