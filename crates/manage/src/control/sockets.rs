//! Where control sockets are, and who calls them.
//!
//! They are in the folder `control` of the user's [streams](talea_record::stream::publish), under `PID.NAME`, open to the user alone, as the
//! folders above them are: whoever can open the file may control the run.

use super::protocol::{Answer, Command, Insistence, Outcome, Request, VERSION};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, socket_with};
use rustix::process::{Pid, test_kill_process};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use talea_record::stream::StreamDirectory;
use talea_record::stream::publish::PlaceError;
use thiserror::Error;

/// Longest answer that is read.
const ANSWER_BYTES: usize = 64 << 20;
/// How long an answer may take: a change waits for the run's own threads, which go first.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a busy server is asked again.
const INSISTENCE: Duration = Duration::from_secs(15);

/// The folder of the user's control sockets.
#[derive(Clone, Debug)]
pub struct Sockets {
    path: PathBuf,
    /// Others of the user, from when another place was free.
    others: Vec<PathBuf>,
}

/// A run that can be controlled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Controllable {
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its socket.
    pub path: PathBuf,
}

/// Why no run was found.
#[derive(Debug, Error)]
pub enum FindError {
    /// None goes by that name or number.
    #[error("no run \"{name}\" can be controlled; {}", some(.known))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Those that can be, as `PID.NAME`.
        known: Vec<String>,
    },
    /// Several do.
    #[error("\"{name}\" can be any of {}; write one of these", .candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What it may mean, as `PID.NAME`.
        candidates: Vec<String>,
    },
    /// The folder cannot be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The folder cannot be read.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

fn some(known: &[String]) -> String {
    match known.is_empty() {
        true => "none of yours runs a hierarchy or tells what its channels count".into(),
        false => format!("there is {}", known.join(", ")),
    }
}

impl Sockets {
    /// The user's, made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made or is not the user's alone.
    pub fn of_user() -> Result<Self, PlaceError> {
        let streams = StreamDirectory::of_user()?;
        let others = streams.others().iter().map(|other| other.join("control")).collect();
        Ok(Sockets { others, ..Self::at(&streams.path().join("control"))? })
    }

    /// The folder at `path`, made if it is not there.
    ///
    /// # Errors
    /// If it cannot be made or is not the user's alone.
    pub fn at(path: &Path) -> Result<Self, PlaceError> {
        StreamDirectory::at(path)
            .map(|directory| Sockets { path: directory.path().into(), others: Vec::new() })
    }

    /// Where the socket of a run of this process belongs.
    pub(super) fn of_run(&self, name: &str) -> PathBuf {
        self.path.join(format!("{}.{name}", std::process::id()))
    }

    /// The runs that can be controlled, by process and name. What processes have left that are no more is removed.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self) -> Result<Vec<Controllable>, FindError> {
        let io = |source| FindError::Io { path: self.path.clone(), source };
        let mut found = Vec::new();
        let mut entries: Vec<_> = fs::read_dir(&self.path).map_err(io)?.collect();
        entries.extend(self.others.iter().filter_map(|other| fs::read_dir(other).ok()).flatten());
        for entry in entries {
            let path = entry.map_err(io)?.path();
            let Some((pid, name)) = parse(&path) else { continue };
            match is_there(pid) {
                true => found.push(Controllable { pid, name, path }),
                // Whoever else removes it does the same.
                false => _ = fs::remove_file(&path),
            }
        }
        found.sort();
        Ok(found)
    }

    /// The run that `which` means: a process by number, a name, or `PID.NAME`.
    ///
    /// # Errors
    /// See [`FindError`].
    pub fn find(&self, which: &str) -> Result<Controllable, FindError> {
        let all = self.list()?;
        let full = |run: &Controllable| format!("{}.{}", run.pid, run.name);
        let is_meant =
            |run: &&Controllable| run.name == which || run.pid.to_string() == which || full(run) == which;
        let mut meant: Vec<Controllable> = all.iter().filter(is_meant).cloned().collect();
        match meant.len() {
            0 => Err(FindError::Unknown { name: which.into(), known: all.iter().map(full).collect() }),
            1 => Ok(meant.remove(0)),
            _ => {
                Err(FindError::Ambiguous { name: which.into(), candidates: meant.iter().map(full).collect() })
            }
        }
    }
}

fn parse(path: &Path) -> Option<(u32, String)> {
    let (pid, name) = path.file_name()?.to_str()?.split_once('.')?;
    Some((pid.parse().ok()?, name.into()))
}

/// Whether there is a process of this number. One that has taken over a number refuses the call.
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Why a request was not answered.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The socket is there and nobody listens.
    #[error("{path}: nobody listens any more: the run has ended or was killed")]
    Ended {
        /// The socket.
        path: PathBuf,
    },
    /// The connection failed.
    #[error("cannot talk to {path}: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The answer is none of this protocol.
    #[error("{path} answers something else than version {VERSION} of the protocol: {source}")]
    Answer {
        /// The socket.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// Somebody who controls a run.
#[derive(Clone, Debug)]
pub struct Client {
    path: PathBuf,
    patience: Duration,
}

impl Client {
    /// A client of the run behind this socket.
    pub fn of(run: &Controllable) -> Self {
        Client { path: run.path.clone(), patience: PATIENCE }
    }

    /// The same, who waits no longer than that for an answer.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Client { patience, ..self }
    }

    /// Has a command done, and waits for the answer. A server with too many clients is asked again for a while.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub fn ask(&self, command: &Command, insistence: Insistence) -> Result<Outcome, ClientError> {
        let began = Instant::now();
        loop {
            let outcome = self.ask_once(command, insistence)?;
            if outcome != Outcome::Busy || began.elapsed() > INSISTENCE {
                return Ok(outcome);
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn ask_once(&self, command: &Command, insistence: Insistence) -> Result<Outcome, ClientError> {
        let io = |source: io::Error| match source.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
                ClientError::Ended { path: self.path.clone() }
            }
            _ => ClientError::Io { path: self.path.clone(), source },
        };
        let until = Instant::now() + self.patience;
        let mut stream = self.connect(until).map_err(io)?;
        stream.set_write_timeout(Some(self.patience)).map_err(io)?;
        let request = Request { version: VERSION, insistence, command: command.clone() };
        let mut line = serde_json::to_vec(&request).expect("a request is plain values");
        line.push(b'\n');
        // Who is too busy answers without reading.
        let written = stream.write_all(&line);
        let mut answer = Vec::new();
        let read = read_line(&mut stream, until, &mut answer);
        if answer.is_empty() {
            written.and(read).map_err(io)?;
            return Err(ClientError::Ended { path: self.path.clone() });
        }
        let answer: Result<Answer, _> = serde_json::from_slice(&answer);
        let path = self.path.clone();
        answer.map(|answer| answer.outcome).map_err(|source| ClientError::Answer { path, source })
    }

    /// Calls the server. One that takes no more calls, as a stopped process does, is not waited for beyond `until`.
    fn connect(&self, until: Instant) -> io::Result<UnixStream> {
        let address = SocketAddrUnix::new(&self.path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        loop {
            match rustix::net::connect(&socket, &address) {
                Ok(()) => break,
                Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
                Err(Errno::AGAIN) => return Err(ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        Ok(stream)
    }
}

/// Reads up to the end of the line, which has come by `until`.
fn read_line(stream: &mut UnixStream, until: Instant, line: &mut Vec<u8>) -> io::Result<()> {
    let mut chunk = [0; 16 << 10];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => {
                line.extend_from_slice(&chunk[..read]);
                if chunk[..read].contains(&b'\n') || line.len() > ANSWER_BYTES {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) => return Err(error),
        }
    }
}
