//! One client's connection, of which nothing is ever waited for.
//!
//! ```text
//!   Asking ── a whole line (1) ──▶ Answering ── all of it is written (2) ──▶ Asking
//!      └──────────── too long (3), over (4), silent for too long (5) ────────────▶ gone
//! ```

use super::protocol::{Answer, Outcome, VERSION};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};
use talea_linux::peer;
use talea_policy::arrangement::ChangeAuthor;

/// Longest request.
pub(super) const REQUEST_BYTES: usize = 64 << 10;
/// How long a request may take to arrive, an answer to be read, and a client may be silent.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// A client.
pub(super) struct Connection {
    stream: UnixStream,
    /// As whom it changes the hierarchy.
    author: ChangeAuthor,
    /// What has arrived and was not understood yet; less than a request and what one read brings.
    arrived: Vec<u8>,
    /// Bytes of it in which there is no end of a line.
    searched: usize,
    /// What is left of the answer.
    answer: Vec<u8>,
    written: usize,
    /// Since when it says or reads nothing whole.
    since: Instant,
    end: End,
}

/// Whether more is to come of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Open,
    /// It gets its last answer.
    AfterAnswer,
    Over,
}

/// What a client says.
pub(super) enum Line {
    Whole(Vec<u8>),
    TooLong,
}

impl Connection {
    /// A client that has just called.
    pub fn new(stream: UnixStream, now: Instant) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let peer::Peer { process, user } = peer::of(&stream)?;
        let author = ChangeAuthor::Operator { process, user };
        let (arrived, answer) = (Vec::new(), Vec::new());
        Ok(Connection {
            stream,
            author,
            arrived,
            searched: 0,
            answer,
            written: 0,
            since: now,
            end: End::Open,
        })
    }

    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    pub fn author(&self) -> ChangeAuthor {
        self.author
    }

    /// Whether it has an answer to read before it may ask for more.
    pub fn is_answering(&self) -> bool {
        self.written < self.answer.len()
    }

    /// Whether nothing more comes of it.
    pub fn is_over(&self, now: Instant) -> bool {
        self.end == End::Over || now.saturating_duration_since(self.since) >= PATIENCE
    }

    /// Since when nothing whole has come of it.
    pub fn silent_since(&self) -> Instant {
        self.since
    }

    /// Whether it has said something whole that has not been answered.
    pub fn has_request(&self) -> bool {
        self.arrived[self.searched..].contains(&b'\n')
    }

    /// Takes what has arrived, as far as there is room for it: one that asks faster than it is answered waits.
    pub fn receive(&mut self) {
        let mut chunk = [0; 4096];
        while !self.has_request() && self.arrived.len() <= REQUEST_BYTES {
            match self.stream.read(&mut chunk) {
                Ok(0) => return self.end = End::Over,
                Ok(read) => {
                    self.searched = self.arrived.len();
                    self.arrived.extend_from_slice(&chunk[..read]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.end = End::Over,
            }
        }
    }

    /// The next line, if it is there and the one before was answered.
    pub fn next_line(&mut self) -> Option<Line> {
        if self.is_answering() || self.end != End::Open {
            return None;
        }
        if let Some(end) = self.arrived[self.searched..].iter().position(|byte| *byte == b'\n') {
            let rest = self.arrived.split_off(self.searched + end + 1);
            self.searched = 0;
            return Some(Line::Whole(std::mem::replace(&mut self.arrived, rest)));
        }
        (self.arrived.len() > REQUEST_BYTES).then_some(Line::TooLong)
    }

    /// Begins to answer.
    pub fn answer(&mut self, outcome: Outcome, now: Instant) {
        self.answer =
            serde_json::to_vec(&Answer { version: VERSION, outcome }).expect("an answer is plain values");
        self.answer.push(b'\n');
        (self.written, self.since) = (0, now);
        self.send(now);
    }

    /// Answers for the last time.
    pub fn dismiss(&mut self, outcome: Outcome, now: Instant) {
        self.end = End::AfterAnswer;
        self.answer(outcome, now);
    }

    /// Writes what the client has room for.
    pub fn send(&mut self, now: Instant) {
        while self.is_answering() {
            match self.stream.write(&self.answer[self.written..]) {
                Ok(0) => return self.end = End::Over,
                Ok(written) => self.written += written,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.end = End::Over,
            }
        }
        (self.answer, self.written, self.since) = (Vec::new(), 0, now);
        if self.end == End::AfterAnswer {
            self.end = End::Over;
        }
    }
}
