//! What channels of a program hand on in jobs, and what jobs push there, on its way to who records it: as bytes, in pieces of one size.
//!
//! Whoever hands on or pushes an event makes bytes of it at once, for events are of pools of the program, whose room is the program's own. Jobs neither
//! allocate nor wait: what finds no room in the mailbox is recorded as lost.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea_channel::mailbox::{MailReceiver, MailSender, mailbox};
use talea_linux::clock::MonotonicClock;
use talea_model::PublicationId;
use talea_operation::{KeptEvent, PushedBytes, TakenPart};
use talea_record::values::{KeptOf, MOST_BYTES};
use talea_record::{JobId, ValueLoss};
use talea_time::{Clock, Instant};

/// Bytes in a piece.
const PIECE: usize = 200;
/// Pieces that wait to be recorded at most: some 4 MiB.
const PIECES: usize = 1 << 14;

/// Some bytes of what is kept of a job.
struct Piece {
    job: JobId,
    of: KeptOf,
    /// When it was sent, by which its job had begun.
    at: Instant,
    is_last: bool,
    length: usize,
    bytes: [u8; PIECE],
}

/// Where jobs put it.
pub(crate) struct KeptEvents {
    mail: MailSender<Piece>,
    /// What could not be sent.
    lost: Arc<AtomicU64>,
}

/// Where it comes out.
pub(crate) struct KeptEventsEnd {
    mail: MailReceiver<Piece>,
    lost: Arc<AtomicU64>,
    /// What is not to be recorded yet.
    later: VecDeque<Piece>,
    /// What has begun and is not whole.
    begun: HashMap<Begun, Vec<u8>>,
}

/// A job, and which of its pushes as which publication; none: what it was handed.
type Begun = (JobId, Option<(u32, u16)>);

impl KeptEvents {
    /// Both ends. The only allocation of who sends.
    pub fn new() -> (Self, KeptEventsEnd) {
        let ((sender, mail), lost) = (mailbox(PIECES), Arc::default());
        let sender = KeptEvents { mail: sender, lost: Arc::clone(&lost) };
        (sender, KeptEventsEnd { mail, lost, later: VecDeque::new(), begun: HashMap::new() })
    }

    /// Sends what has these bytes, of which more comes unless `is_last`. False if there is no room for all of it.
    fn send(&self, (job, of): (JobId, KeptOf), bytes: &[u8], is_last: bool) -> bool {
        let at = MonotonicClock.now();
        let pieces = bytes.len().div_ceil(PIECE).max(usize::from(is_last));
        (0..pieces).all(|piece| {
            let part = bytes.get(piece * PIECE..).unwrap_or_default();
            let length = part.len().min(PIECE);
            let mut bytes = [0; PIECE];
            bytes[..length].copy_from_slice(&part[..length]);
            let is_last = is_last && piece + 1 == pieces;
            self.mail.push(Piece { job, of, at, is_last, length, bytes }).is_ok()
        })
    }
}

impl KeptEventsEnd {
    /// What jobs were handed, and what they pushed, that could not be sent.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Calls `each` with all that is whole and was sent by this instant.
    pub fn take_all(&mut self, as_of: Instant, each: &mut dyn FnMut(JobId, KeptOf, &[u8])) {
        self.later.extend(std::iter::from_fn(|| self.mail.pop()));
        while let Some(piece) = self.later.pop_front_if(|piece| piece.at <= as_of) {
            let of_push = match piece.of {
                KeptOf::Pushed { publication, number } => Some((publication, number)),
                KeptOf::Output(_) | KeptOf::Taken => None,
            };
            let bytes = self.begun.entry((piece.job, of_push)).or_default();
            bytes.extend_from_slice(&piece.bytes[..piece.length]);
            if piece.is_last
                && let Some(bytes) = self.begun.remove(&(piece.job, of_push))
            {
                each(piece.job, piece.of, &bytes);
            }
        }
    }
}

/// What of a job cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unkept {
    /// What it was handed.
    Taken(ValueLoss),
    /// An event that it pushed.
    Pushed(PublicationId, ValueLoss),
}

/// What has been sent of a job.
#[derive(Default)]
pub(crate) struct JobKeeping {
    /// Bytes of what it was handed.
    taken: Cell<usize>,
    /// Whether some of that is lost.
    has_lost: Cell<bool>,
    /// How often it has pushed.
    pushes: Cell<u16>,
}

impl JobKeeping {
    /// Sends what is kept of the job; says what is lost of it, once.
    pub fn keep(
        &self,
        to: &KeptEvents,
        job: JobId,
        event: KeptEvent,
        bytes: Option<&[u8]>,
    ) -> Option<Unkept> {
        let lost = self.send(to, job, event, bytes);
        if lost.is_some() {
            to.lost.fetch_add(1, Ordering::Relaxed);
        }
        lost
    }

    fn send(&self, to: &KeptEvents, job: JobId, event: KeptEvent, bytes: Option<&[u8]>) -> Option<Unkept> {
        match event {
            KeptEvent::Taken(_) if self.has_lost.get() => None,
            KeptEvent::Taken(part) => {
                let taken = self.taken.get() + bytes.map_or(0, <[u8]>::len);
                self.taken.set(taken);
                let why = match bytes.filter(|_| taken <= MOST_BYTES) {
                    None => ValueLoss::TooLong,
                    Some(bytes) if to.send((job, KeptOf::Taken), bytes, part == TakenPart::Last) => {
                        return None;
                    }
                    Some(_) => ValueLoss::NoRoom,
                };
                self.has_lost.set(true);
                Some(Unkept::Taken(why))
            }
            KeptEvent::Pushed(publication) => {
                let number = self.pushes.get();
                self.pushes.set(number.saturating_add(1));
                let of = KeptOf::Pushed { publication: publication.index() as u32, number };
                match bytes.filter(|_| number < PushedBytes::LAST) {
                    None => Some(Unkept::Pushed(publication, ValueLoss::TooLong)),
                    Some(bytes) if to.send((job, of), bytes, true) => None,
                    Some(_) => Some(Unkept::Pushed(publication, ValueLoss::NoRoom)),
                }
            }
        }
    }
}
