//! Reading inputs up to a limit.
//!
//! A file that somebody names may be anything: a device that never ends, a pipe into which nobody writes, a folder, a socket. So what is
//! opened is looked at before it is read, pipes and devices are read up to the limit, and a pipe with a name in the file system has to say
//! something within [`PATIENCE`]. What a shell makes for `<(command)`, and a terminal, may take as long as they want: whoever started the
//! command sees it wait.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::{File, FileType, OpenOptions};
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::time::Duration;
use thiserror::Error;

/// The most bytes that are read of a text file.
pub const FILE_BYTES_LIMIT: u64 = 16 << 20;

/// How long a pipe with a name may be silent.
pub const PATIENCE: Duration = Duration::from_secs(5);

const MIB: u64 = 1 << 20;

/// Why a file is not text that can be used. The path is not part of the message; the caller knows it.
#[derive(Debug, Error)]
pub enum ReadError {
    /// There is none.
    #[error("there is no such file")]
    Absent,
    /// Its permissions.
    #[error("the file may not be read")]
    Denied,
    /// It is a folder.
    #[error("this is a directory")]
    Folder,
    /// It is a socket.
    #[error("this is a socket, which cannot be read like a file")]
    Socket,
    /// It is a pipe or a device, where only a file will do.
    #[error("this is a pipe or a device, and a file is needed")]
    NoFile,
    /// It is a pipe in which nothing came for [`PATIENCE`].
    #[error("this is a pipe, and nobody wrote to it for {} s", PATIENCE.as_secs())]
    Silent,
    /// It has more than the limit.
    #[error("the file has {}; at most {} MiB are read", size(*has), limit / MIB)]
    TooLarge {
        /// The bytes that it has, if that is known.
        has: Option<u64>,
        /// The most that are read.
        limit: u64,
    },
    /// It is text in another encoding.
    #[error("the file is UTF-16, not UTF-8")]
    Utf16,
    /// It is no text, or text in another encoding.
    #[error("the file is not UTF-8: line {line}, byte {place} of the line is {byte:#04x}")]
    NotUtf8 {
        /// The line, from 1.
        line: usize,
        /// The byte in the line, from 1.
        place: usize,
        /// That byte.
        byte: u8,
    },
    /// Anything else.
    #[error("the file cannot be read: {0}")]
    Io(io::Error),
}

fn size(has: Option<u64>) -> String {
    has.map_or_else(|| "more".into(), |bytes| format!("{:.1} MiB", bytes as f64 / MIB as f64))
}

impl ReadError {
    /// What to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            ReadError::Absent => "check the path",
            ReadError::Denied => "check its permissions",
            ReadError::Folder => "name the file in it",
            ReadError::Socket | ReadError::NoFile => "name a file",
            ReadError::Silent => "name a file, or start what writes into the pipe first",
            ReadError::TooLarge { .. } => "check that this is the file you mean",
            ReadError::Utf16 => "save it as UTF-8",
            ReadError::NotUtf8 { .. } => "save it as UTF-8; only text can be read",
            ReadError::Io(_) => "check the path and the device",
        }
    }
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::NotFound => ReadError::Absent,
            ErrorKind::PermissionDenied => ReadError::Denied,
            ErrorKind::IsADirectory => ReadError::Folder,
            _ => ReadError::Io(error),
        }
    }
}

/// The text of the file at `path`, which has at most [`FILE_BYTES_LIMIT`] bytes.
///
/// # Errors
/// See [`ReadError`].
pub fn text(path: &Path) -> Result<String, ReadError> {
    text_up_to(path, FILE_BYTES_LIMIT)
}

/// The same of a file that may have `limit` bytes.
///
/// # Errors
/// See [`ReadError`].
pub fn text_up_to(path: &Path, limit: u64) -> Result<String, ReadError> {
    let bytes = bytes_up_to(path, limit)?;
    String::from_utf8(bytes).map_err(|error| not_utf8(error.as_bytes(), error.utf8_error().valid_up_to()))
}

/// The text that comes through standard input, however long that takes: at most [`FILE_BYTES_LIMIT`] bytes.
///
/// # Errors
/// See [`ReadError`].
pub fn standard_input() -> Result<String, ReadError> {
    let mut bytes = Vec::new();
    io::stdin().lock().take(FILE_BYTES_LIMIT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_LIMIT {
        return Err(ReadError::TooLarge { has: None, limit: FILE_BYTES_LIMIT });
    }
    String::from_utf8(bytes).map_err(|error| not_utf8(error.as_bytes(), error.utf8_error().valid_up_to()))
}

/// The bytes of the file at `path`, which has at most `limit`.
///
/// # Errors
/// See [`ReadError`].
pub fn bytes_up_to(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let mut file = open(path)?;
    let found = file.metadata()?;
    if found.is_file() && found.len() > limit {
        return Err(ReadError::TooLarge { has: Some(found.len()), limit });
    }
    let mut bytes = Vec::new();
    // Pipes and devices do not say how long they are, and some never end.
    if found.is_file() || file.is_terminal() {
        file.take(limit + 1).read_to_end(&mut bytes)?;
    } else {
        let patience = (found.file_type().is_fifo() && has_name(&file)).then_some(PATIENCE);
        read_slowly(&mut file, limit + 1, patience, &mut bytes)?;
    }
    match bytes.len() as u64 > limit {
        true => Err(ReadError::TooLarge { has: None, limit }),
        false => Ok(bytes),
    }
}

/// Opens a file that is to be read piece by piece, and nothing but a file: opening waits for nobody.
///
/// # Errors
/// See [`ReadError`].
pub fn file(path: &Path) -> Result<File, ReadError> {
    let file = open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(ReadError::NoFile),
    }
}

/// Opening a pipe without a writer would wait for one.
fn open(path: &Path) -> Result<File, ReadError> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        // Only a socket, or a device that is not there, says so.
        Err(_) if is(path, FileType::is_socket) => return Err(ReadError::Socket),
        opened => opened?,
    };
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(ReadError::Folder);
    }
    if file.is_terminal() {
        // A terminal is waited for in `read`.
        rustix::fs::fcntl_setfl(&file, OFlags::empty()).map_err(io::Error::from)?;
    }
    Ok(file)
}

fn is(path: &Path, what: impl Fn(&FileType) -> bool) -> bool {
    std::fs::metadata(path).is_ok_and(|found| what(&found.file_type()))
}

/// Whether a pipe has a name in the file system. Those of a shell's `<(command)` have none.
fn has_name(file: &File) -> bool {
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    link.is_ok_and(|target| target.is_absolute())
}

/// Reads up to `most` bytes of what may have none for the moment.
fn read_slowly(
    file: &mut File,
    most: u64,
    patience: Option<Duration>,
    bytes: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let patience = patience.map(|patience| Timespec::try_from(patience).expect("some seconds"));
    let mut chunk = vec![0; 64 << 10];
    while (bytes.len() as u64) < most {
        let room = chunk.len().min((most - bytes.len() as u64) as usize);
        // A pipe that nobody has opened for writing yet reads as if it had ended, so it is asked first whether there is anything.
        let mut asked = [PollFd::new(&*file, PollFlags::IN)];
        match poll(&mut asked, patience.as_ref()) {
            Ok(0) => return Err(ReadError::Silent),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(io::Error::from(error).into()),
        }
        match file.read(&mut chunk[..room]) {
            Ok(0) => return Ok(()),
            Ok(read) => bytes.extend_from_slice(&chunk[..read]),
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn not_utf8(bytes: &[u8], valid_up_to: usize) -> ReadError {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return ReadError::Utf16;
    }
    let before = &bytes[..valid_up_to];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    ReadError::NotUtf8 { line, place: valid_up_to - line_start + 1, byte: bytes[valid_up_to] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};
    use std::os::unix::net::UnixListener;

    #[test]
    fn what_is_no_file_of_text_is_named() {
        let place = tempfile::tempdir().expect("a folder");
        let at = |name: &str| place.path().join(name);
        std::fs::write(at("text"), "a\nb\n").expect("writable");
        assert_eq!(text(&at("text")).expect("text"), "a\nb\n");
        assert!(matches!(text(&at("none")), Err(ReadError::Absent)));
        assert!(matches!(text(place.path()), Err(ReadError::Folder)));
        std::fs::write(at("bytes"), b"ab\nc\xff").expect("writable");
        let error = text(&at("bytes")).expect_err("no text");
        assert_eq!(error.to_string(), "the file is not UTF-8: line 2, byte 2 of the line is 0xff");
        std::fs::write(at("wide"), b"\xff\xfea\0").expect("writable");
        assert!(matches!(text(&at("wide")), Err(ReadError::Utf16)));
        let _listening = UnixListener::bind(at("socket")).expect("a socket");
        assert!(matches!(text(&at("socket")), Err(ReadError::Socket)));
        assert!(matches!(file(Path::new("/dev/null")), Err(ReadError::NoFile)));
        assert!(file(&at("text")).is_ok());
    }

    #[test]
    fn what_never_ends_is_read_up_to_the_limit() {
        let error = text(Path::new("/dev/zero")).expect_err("endless");
        assert_eq!(error.to_string(), "the file has more; at most 16 MiB are read");
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("sparse");
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("writable");
        let error = text(&path).expect_err("too large");
        assert_eq!(error.to_string(), "the file has 1048576.0 MiB; at most 16 MiB are read");
        assert_eq!(bytes_up_to(Path::new("/dev/null"), 0).expect("empty"), b"");
    }

    #[test]
    fn a_pipe_is_read_to_the_end_of_its_writer() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("pipe");
        mknodat(CWD, &path, Kind::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        assert!(matches!(file(&path), Err(ReadError::NoFile)), "opening it waits for nobody");
        let writer = std::thread::spawn({
            let path = path.clone();
            move || std::fs::write(path, vec![b'a'; 200_000]).expect("somebody reads")
        });
        assert_eq!(text(&path).expect("text").len(), 200_000);
        writer.join().expect("it has written");
    }
}
