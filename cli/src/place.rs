//! The files and directories that a command writes. They are checked before the work, so that no result is lost because
//! there is no place for it; a file has its name only when it is complete.

use std::io;
use std::path::{Path, PathBuf};

use anabranch_sim::scenario::error::nearest;

use crate::output::refuse;

/// A place that a command is to write, and the option that names it.
struct Place {
    option: &'static str,
    path: PathBuf,
    is_directory: bool,
}

/// The places that a command is to write, and the files that it reads.
#[derive(Default)]
pub(crate) struct Places {
    written: Vec<Place>,
    made: Vec<PathBuf>,
    read: Vec<PathBuf>,
}

impl Places {
    /// Adds a file that the command reads.
    pub(crate) fn reads(mut self, file: &Path) -> Self {
        self.read.push(file.to_owned());
        self
    }

    /// Adds a file that the command writes, if it is asked for.
    pub(crate) fn file(mut self, option: &'static str, path: Option<&PathBuf>) -> Self {
        self.written.extend(path.map(|path| Place { option, path: path.clone(), is_directory: false }));
        self
    }

    /// Adds a directory that the command creates or fills, if it is asked for.
    pub(crate) fn directory(mut self, option: &'static str, path: Option<&PathBuf>) -> Self {
        self.made.extend(path.cloned());
        self.written.extend(path.map(|path| Place { option, path: path.clone(), is_directory: true }));
        self
    }

    /// Adds a directory that the command creates and that may hold other results too.
    pub(crate) fn makes(mut self, path: &Path) -> Self {
        self.made.push(path.to_owned());
        self
    }

    /// Refuses places that cannot be written, that are named twice, or that hold what the command reads.
    pub(crate) fn check(&self) -> Result<(), u8> {
        let fault = self.written.iter().find_map(|place| self.fault(place));
        match fault.or_else(|| self.named_twice()) {
            Some(fault) => Err(refuse(fault)),
            None => Ok(()),
        }
    }

    /// Refuses files that exist and directories that hold something, unless --force is given.
    pub(crate) fn keep(&self, force: bool) -> Result<(), u8> {
        keep(self.written.iter().map(|place| &place.path), force)
    }

    /// Why this place cannot be written, if that is known beforehand.
    fn fault(&self, place: &Place) -> Option<String> {
        let Place { option, path, is_directory } = place;
        let shown = path.display();
        if *is_directory {
            // Directories above it are created as well.
            let above = path.ancestors().map(or_here).find(|above| above.exists())?;
            return match above.is_dir() {
                true => closed(above).map(|why| format!("{option} {shown}: {why}")),
                false => Some(format!(
                    "{option} {shown}: {} is a file; name a directory, or a new one",
                    above.display()
                )),
            };
        }
        if path.is_dir() {
            return Some(format!("{option} {shown}: this is a directory; name a file, for example in it"));
        }
        let above = path.parent().map(or_here)?;
        // A directory that the same command makes is there when the file is written.
        match above.is_dir() {
            // A device or a link is written as it is, without another name beside it.
            true if until_complete(path) == *path => None,
            true => closed(above).map(|why| format!("{option} {shown}: {why}")),
            false if self.made.iter().any(|made| made == above) => None,
            false => {
                Some(format!("{option} {shown}: there is no directory {}; create it first", above.display()))
            }
        }
    }

    fn named_twice(&self) -> Option<String> {
        let regular: Vec<_> = self.written.iter().filter(|place| !is_device(&place.path)).collect();
        for (i, place) in regular.iter().enumerate() {
            let real = real(&place.path);
            let Place { option, path, .. } = place;
            if let Some(file) = self.read.iter().find(|file| self::real(file) == real) {
                let shown = file.display();
                return Some(format!(
                    "{option} would overwrite {shown}, which is read; choose another place"
                ));
            }
            if let Some(other) = regular[..i].iter().find(|other| self::real(&other.path) == real) {
                let (first, shown) = (other.option, path.display());
                return Some(format!("{first} and {option} both name {shown}; give each a place of its own"));
            }
        }
        None
    }
}

/// The directory, which an empty name leaves out where it is the current one.
fn or_here(directory: &Path) -> &Path {
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}

/// Why no file can be made in this directory, if that is so.
fn closed(directory: &Path) -> Option<String> {
    // It has no name and is gone at once.
    let error = tempfile::tempfile_in(directory).err()?;
    let shown = directory.display();
    Some(format!("no file can be made in {shown}: {error}; choose a directory in which you may write"))
}

/// Something that is neither a file nor a directory: a terminal, a pipe, `/dev/null`.
fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
}

/// The place without symbolic links, as far as it exists.
fn real(path: &Path) -> PathBuf {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = whole.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match found.and_then(|(above, real)| Some(real.join(whole.strip_prefix(above).ok()?))) {
        Some(real) => real,
        None => whole,
    }
}

/// The message for a file that cannot be read. It suggests the files beside it whose names are similar.
pub(crate) fn unread(file: &Path, error: &io::Error) -> String {
    let message = format!("{}: {error}", file.display());
    match beside(file).filter(|_| error.kind() == io::ErrorKind::NotFound) {
        Some(near) => format!("{message}; did you mean {}?", near.display()),
        None => message,
    }
}

/// The file beside this one with the nearest name, if one is near enough to be a likely slip.
fn beside(file: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(file.parent().map(or_here)?).ok()?;
    let files = entries.flatten().filter(|entry| !entry.path().is_dir());
    let mut names: Vec<_> = files.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    let near = nearest(file.file_name()?.to_str()?, names.iter().map(String::as_str))?;
    Some(file.with_file_name(near))
}

/// The message for a place that is not to be overwritten.
pub(crate) fn is_there(path: &Path) -> String {
    format!("{} is there already; --force overwrites it", path.display())
}

/// Refuses files that exist and directories that hold something, unless --force is given.
pub(crate) fn keep<'a>(places: impl IntoIterator<Item = &'a PathBuf>, force: bool) -> Result<(), u8> {
    let filled = |place: &&PathBuf| match std::fs::read_dir(place) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => place.exists(),
    };
    match places.into_iter().find(filled) {
        Some(place) if !force => Err(refuse(is_there(place))),
        _ => Ok(()),
    }
}

/// The name under which a file is written until it is complete. What is no plain file keeps its name: a pipe cannot be
/// renamed, and a link would be lost.
pub(crate) fn until_complete(file: &Path) -> PathBuf {
    match std::fs::symlink_metadata(file) {
        Ok(found) if !found.is_file() => file.to_owned(),
        _ => partial(file),
    }
}

/// Gives a file that was written under another name its own.
pub(crate) fn complete(file: &Path) -> io::Result<()> {
    let partial = until_complete(file);
    if partial == file { Ok(()) } else { std::fs::rename(partial, file) }
}

/// Writes a whole file; it has its name only when it is complete.
pub(crate) fn write_whole(file: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    std::fs::write(until_complete(file), contents)?;
    complete(file)
}

/// The name of what is not complete.
pub(crate) fn partial(place: &Path) -> PathBuf {
    let mut name = place.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    place.with_file_name(name)
}
