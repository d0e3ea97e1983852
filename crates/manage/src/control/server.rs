//! The server: takes requests from the control socket, on one thread of ordinary priority.
//!
//! *Clients cannot disturb.* The thread waits for nobody in particular: it reads what has arrived, understands and does one request
//! of each client in turn, and writes what a client has room for ([`connection`](super::connection)). There are [`CLIENTS`] at a time. When one more
//! calls, the one that has said nothing whole for the longest is dismissed, so those who are silent, who send or read slowly, and who call
//! and leave, hold up nobody. A request has a greatest length and has to arrive in time; answers that nobody reads are given up. None of it is
//! on the way of a decision: a request takes the dispatcher's lock when it is understood and judged, and for as long as one change takes.

use super::connection::{Connection, Line, PATIENCE, REQUEST_BYTES};
use super::protocol::{Command, Insistence, Outcome, Request, VERSION};
use super::sockets::Sockets;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use serde::Deserialize;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use talea_linux::sched::{self, Policy};
use talea_policy::arrangement::ChangeAuthor;
use talea_record::stream::publish::PlaceError;
use thiserror::Error;

/// Clients at a time.
const CLIENTS: usize = 64;
/// Callers that are let in before those who are there have their turn.
const CALLERS: usize = 16;
/// How long nobody is let in when that has failed: there were no descriptors left.
const PAUSE: Duration = Duration::from_millis(50);
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
    /// Does it. `author` is who asks.
    fn handle(&self, command: Command, insistence: Insistence, author: ChangeAuthor) -> Outcome;
}

/// A control socket with its server; dropping it ends both.
pub struct Server {
    path: PathBuf,
    /// Written to when the thread is to end.
    stop: OwnedFd,
    serving: Option<JoinHandle<()>>,
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
        listener.set_nonblocking(true).map_err(io)?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|error| io(error.into()))?;
        let stopping = stop.try_clone().map_err(io)?;
        let mut server = Server { path: path.clone(), stop, serving: None };
        let serving = Builder::new().name("control".into()).stack_size(STACK);
        let desk = Desk { listener, stopping, governor, clients: Vec::new(), closed_until: None };
        server.serving = Some(serving.spawn(move || desk.serve()).map_err(io)?);
        Ok(server)
    }

    /// The socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let called = rustix::io::write(&self.stop, &1u64.to_ne_bytes());
        let _removed = fs::remove_file(&self.path);
        // Where the call did not come through, the thread is left to itself.
        if let (Ok(_), Some(serving)) = (called, self.serving.take()) {
            let _ended = serving.join();
        }
    }
}

/// What the thread of the server has before it.
struct Desk {
    listener: UnixListener,
    stopping: OwnedFd,
    governor: Arc<dyn CommandHandler>,
    /// No more than [`CLIENTS`].
    clients: Vec<Connection>,
    /// Nobody is let in until then.
    closed_until: Option<Instant>,
}

impl Desk {
    fn serve(mut self) {
        // The thread that started it may be urgent; serving is not.
        let _ordinary = sched::set_self(Policy::Other);
        while self.wait() == Call::Clients {
            let now = Instant::now();
            self.let_in();
            for client in &mut self.clients {
                // An answer makes room for the next request.
                client.send(Instant::now());
                if !client.is_answering() {
                    client.receive();
                }
                match client.next_line() {
                    Some(Line::Whole(line)) => {
                        let outcome = handle(&*self.governor, &line, client.author());
                        client.answer(outcome, Instant::now());
                    }
                    Some(Line::TooLong) => {
                        let most = format!("a request is one line of at most {REQUEST_BYTES} bytes");
                        client.dismiss(Outcome::Misstated(most), Instant::now());
                    }
                    None => {}
                }
            }
            // What somebody said while a request was done is still to be heard.
            self.clients.retain(|client| !client.is_over(now));
        }
    }

    /// Waits until somebody calls, says something or has room for an answer, until one has been silent for too long, or for the end.
    fn wait(&mut self) -> Call {
        let now = Instant::now();
        let oldest = self.clients.iter().map(Connection::silent_since).min();
        let mut until = oldest.map(|since| since + PATIENCE);
        self.closed_until = self.closed_until.filter(|opens| *opens > now);
        until = [until, self.closed_until].into_iter().flatten().min();
        // One that has asked several things at once has its turn after the others.
        if self.clients.iter().any(|client| client.has_request() && !client.is_answering()) {
            until = Some(now);
        }
        let patience = until.map(|until| until.saturating_duration_since(now));
        let patience = patience.map(|patience| Timespec::try_from(patience).expect("some seconds"));
        let wants = |client: &Connection| if client.is_answering() { PollFlags::OUT } else { PollFlags::IN };
        let callers = if self.closed_until.is_some() { PollFlags::empty() } else { PollFlags::IN };
        let mut asked =
            vec![PollFd::new(&self.stopping, PollFlags::IN), PollFd::new(&self.listener, callers)];
        asked.extend(self.clients.iter().map(|client| PollFd::new(client.stream(), wants(client))));
        match poll(&mut asked, patience.as_ref()) {
            Ok(_) if asked[0].revents().is_empty() => Call::Clients,
            Err(rustix::io::Errno::INTR) => Call::Clients,
            Ok(_) | Err(_) => Call::End,
        }
    }

    fn let_in(&mut self) {
        for _ in 0..CALLERS {
            if self.closed_until.is_some() {
                return;
            }
            match self.listener.accept() {
                Ok((stream, _)) => {
                    let Ok(client) = Connection::new(stream, Instant::now()) else { continue };
                    self.make_room();
                    self.clients.push(client);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                // The client may have gone again; or there are no descriptors left.
                Err(_) => self.closed_until = Some(Instant::now() + PAUSE),
            }
        }
    }

    /// The client that has sent no whole request for the longest is disconnected.
    fn make_room(&mut self) {
        if self.clients.len() < CLIENTS {
            return;
        }
        let clients = self.clients.iter().enumerate();
        let silent = clients.min_by_key(|(_, client)| (client.has_request(), client.silent_since()));
        if let Some((place, _)) = silent {
            self.clients.swap_remove(place).dismiss(Outcome::Busy, Instant::now());
        }
    }
}

/// What the server is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Clients,
    End,
}

fn handle(governor: &dyn CommandHandler, line: &[u8], author: ChangeAuthor) -> Outcome {
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
        Ok(request) => governor.handle(request.command, request.insistence, author),
        Err(message) => Outcome::Misstated(message),
    }
}
