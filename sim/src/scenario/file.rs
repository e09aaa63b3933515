//! Reads files that a user names. A device has no end, so there is a limit.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest size of a file, in bytes.
const LARGEST: u64 = 64 << 20;

/// The text of a file: a scenario, a sweep, a script.
///
/// # Errors
/// What the system says, text that is not UTF-8, and files of more than 64 MiB.
pub fn read_text(file: &Path) -> io::Result<String> {
    text_of(read_bytes(file)?)
}

/// The bytes as text.
///
/// # Errors
/// Bytes that are not UTF-8, with their line.
pub fn text_of(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        io::Error::new(io::ErrorKind::InvalidData, format!("this is not text: line {line} is not UTF-8"))
    })
}

/// The bytes of a file.
///
/// # Errors
/// What the system says, and files of more than 64 MiB.
pub fn read_bytes(file: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = File::open(file)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    within_limit(read).map(|()| bytes)
}

fn within_limit(read: usize) -> io::Result<()> {
    match read as u64 > LARGEST {
        true => Err(io::Error::other(format!(
            "it has more than {} MiB, the limit for such a file",
            LARGEST >> 20
        ))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_end_is_not_read_for_ever_and_bytes_are_no_text() {
        let device = Path::new("/dev/zero");
        for error in [read_text(device).map(drop), read_bytes(device).map(drop)] {
            assert_eq!(
                error.expect_err("it has no end").to_string(),
                "it has more than 64 MiB, the limit for such a file"
            );
        }
        let binary = text_of(b"one\n\xff\n".to_vec()).expect_err("it is no text");
        assert_eq!(binary.to_string(), "this is not text: line 2 is not UTF-8");
        let manifest = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        assert_eq!(read_text(manifest).expect("text").into_bytes(), read_bytes(manifest).expect("bytes"));
    }
}
