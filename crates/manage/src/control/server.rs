//! The server: takes requests from the control socket, with threads of ordinary priority.
//!
//! *Whoever calls cannot disturb.* There are [`CLIENTS`] at a time, others are told that it is busy; a request has
//! [`REQUEST_BYTES`] at most and has to arrive within [`PATIENCE`]; answers that nobody reads are given up. None of it is on the way
//! of a decision: a request takes the dispatcher's lock when it is understood and judged, and for as long as one change takes.

use super::protocol::{Answer, Command, Insistence, Outcome, Request, VERSION};
use super::sockets::Sockets;
use serde::Deserialize;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use talea_linux::sched::{self, Policy};
use talea_record::stream::publish::PlaceError;
use thiserror::Error;

/// Clients at a time.
const CLIENTS: usize = 8;
/// Longest request.
const REQUEST_BYTES: usize = 64 << 10;
/// How long a request may take to arrive, and a client may be silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// Deriving a hierarchy of many levels needs some stack.
const STACK: usize = 2 << 20;

/// Why a run cannot be controlled from outside. It runs all the same.
#[derive(Debug, Error)]
pub enum ServeError {
    /// There is no place for the socket.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The socket cannot be made.
    #[error("the control socket {path} cannot be made: {source}")]
    Io {
        /// Where.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A run of this process has the name.
    #[error("this process has a control socket {0} already")]
    Taken(PathBuf),
}

/// Who does what clients ask for, or says why not.
pub trait CommandHandler: Send + Sync {
    /// Does it.
    fn handle(&self, command: Command, insistence: Insistence) -> Outcome;
}

/// A control socket with its server; dropping it ends both.
pub struct Server {
    path: PathBuf,
    stopping: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    /// Lets whoever may open the socket of the run called `name` control what `governor` has a say in.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(
        sockets: &Sockets,
        name: &str,
        governor: Arc<dyn CommandHandler>,
    ) -> Result<Self, ServeError> {
        let path = sockets.of_run(name);
        let io = |source| ServeError::Io { path: path.clone(), source };
        if path.exists() {
            // One of an earlier process with this number answers no more.
            if UnixStream::connect(&path).is_ok() {
                return Err(ServeError::Taken(path));
            }
            fs::remove_file(&path).map_err(io)?;
        }
        // The folder is closed to others, so nobody gets in before the permissions are set.
        let listener = UnixListener::bind(&path).map_err(io)?;
        fs::set_permissions(&path, Permissions::from_mode(0o600)).map_err(io)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let mut server = Server { path: path.clone(), stopping: Arc::clone(&stopping), listening: None };
        let listening = Builder::new().name("control".into()).stack_size(STACK);
        let listening = listening.spawn(move || listen(&listener, &governor, &stopping)).map_err(io)?;
        server.listening = Some(listening);
        Ok(server)
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Release);
        let called = UnixStream::connect(&self.path);
        let _removed = fs::remove_file(&self.path);
        // Where the call did not come through, the thread is left to itself.
        if let (Ok(_), Some(listening)) = (called, self.listening.take()) {
            let _ended = listening.join();
        }
    }
}

fn listen(listener: &UnixListener, governor: &Arc<dyn CommandHandler>, stopping: &AtomicBool) {
    // Whoever started it may be urgent; serving is not.
    let _ordinary = sched::set_self(Policy::Other);
    let clients = Arc::new(AtomicUsize::new(0));
    while !stopping.load(Ordering::Acquire) {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            // Out of descriptors, or a client that has gone again: it is tried again, not at once.
            Err(_) => {
                std::thread::sleep(Duration::from_millis(50));
                continue;
            }
        };
        if stopping.load(Ordering::Acquire) {
            return;
        }
        let Some(slot) = ClientSlot::take(&clients) else {
            let mut stream = stream;
            let _ = stream.set_nonblocking(true);
            let _gone = answer(&mut stream, Outcome::Busy);
            continue;
        };
        let governor = Arc::clone(governor);
        let serving = Builder::new().name("control/client".into()).stack_size(STACK);
        // Without a thread the client sees the connection end.
        let _served = serving.spawn(move || {
            let _slot = slot;
            // What goes wrong with a client is the client's to find out.
            let _gone = serve(stream, &*governor);
        });
    }
}

/// One of the clients at a time.
struct ClientSlot(Arc<AtomicUsize>);

impl ClientSlot {
    fn take(clients: &Arc<AtomicUsize>) -> Option<Self> {
        let slot = ClientSlot(Arc::clone(clients));
        (clients.fetch_add(1, Ordering::AcqRel) < CLIENTS).then_some(slot)
    }
}

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Answers a client's requests until it goes, is silent for too long or says something else.
fn serve(mut stream: UnixStream, governor: &dyn CommandHandler) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut lines = RequestLines { stream: stream.try_clone()?, pending: Vec::new() };
    while let Some(line) = lines.next()? {
        match line {
            Line::Whole(line) => answer(&mut stream, handle(governor, &line))?,
            Line::TooLong => {
                let most = format!("a request is one line of at most {REQUEST_BYTES} bytes");
                return answer(&mut stream, Outcome::Misstated(most));
            }
        }
    }
    Ok(())
}

fn handle(governor: &dyn CommandHandler, line: &[u8]) -> Outcome {
    /// What is read first: later versions may say all else in another way.
    #[derive(Deserialize)]
    struct Spoken {
        version: u32,
    }
    let read = || -> Result<Request, String> {
        let spoken: Spoken =
            serde_json::from_slice(line).map_err(|error| format!("this is no request: {error}"))?;
        if spoken.version != VERSION {
            return Err(format!("this run speaks version {VERSION} of the protocol, not {}", spoken.version));
        }
        serde_json::from_slice(line).map_err(|error| format!("this is no request: {error}"))
    };
    match read() {
        Ok(request) => governor.handle(request.command, request.insistence),
        Err(message) => Outcome::Misstated(message),
    }
}

fn answer(stream: &mut UnixStream, outcome: Outcome) -> io::Result<()> {
    let mut line =
        serde_json::to_vec(&Answer { version: VERSION, outcome }).expect("an answer is plain values");
    line.push(b'\n');
    stream.write_all(&line)
}

/// What a client sends, line by line.
struct RequestLines {
    stream: UnixStream,
    pending: Vec<u8>,
}

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

impl RequestLines {
    /// The next line; none at the end.
    ///
    /// # Errors
    /// It does not arrive in time, or the connection fails.
    fn next(&mut self) -> io::Result<Option<Line>> {
        let until = Instant::now() + PATIENCE;
        let mut searched = 0;
        loop {
            if let Some(end) = self.pending[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.pending.split_off(searched + end + 1);
                let line = std::mem::replace(&mut self.pending, rest);
                return Ok(Some(Line::Whole(line)));
            }
            if self.pending.len() > REQUEST_BYTES {
                return Ok(Some(Line::TooLong));
            }
            searched = self.pending.len();
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            let mut chunk = [0; 4096];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(read) => self.pending.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
