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
use talea_model::{OperationId, PublicationId};
use talea_operation::{KeptEvent, PushedBytes, TakenPart};
use talea_record::values::{KeptOf, MOST_BYTES};
use talea_record::{JobId, ValueLoss};
use talea_time::{Clock, Instant};

/// Bytes in a piece.
const PIECE: usize = 200;
/// Pieces that wait to be recorded at most: some 4 MiB.
const PIECES: usize = 1 << 14;

/// So many jobs of an operation can have something under way at once. Jobs do that only where one preempts another in the midst, so they are fewer.
const BEGUN: usize = 16;

/// Some bytes of what is kept of a job.
struct Piece {
    job: JobId,
    of: KeptOf,
    /// When it was sent, by which its job had begun.
    at: Instant,
    /// How many bytes were sent before these.
    from: usize,
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
    /// What has begun and is not whole, of each operation in the order in which something came last, at most [`BEGUN`] of each kind: the rest of some
    /// never comes, for there was no room for it.
    begun: HashMap<(OperationId, IsPush), VecDeque<Begun>>,
}

/// Whether it is of an event that a job pushes, and not of what one was handed.
type IsPush = bool;

/// What has come of something that is not whole.
struct Begun {
    job: JobId,
    of: KeptOf,
    bytes: Vec<u8>,
}

impl KeptEvents {
    /// Both ends. The only allocation of who sends.
    pub fn new() -> (Self, KeptEventsEnd) {
        let ((sender, mail), lost) = (mailbox(PIECES), Arc::default());
        let sender = KeptEvents { mail: sender, lost: Arc::clone(&lost) };
        (sender, KeptEventsEnd { mail, lost, later: VecDeque::new(), begun: HashMap::new() })
    }

    /// Sends what has these bytes behind so many, and of which more comes unless `is_last`. False if there is no room for all of it.
    fn send(&self, (job, of): (JobId, KeptOf), before: usize, bytes: &[u8], is_last: bool) -> bool {
        let at = MonotonicClock.now();
        let pieces = bytes.len().div_ceil(PIECE).max(usize::from(is_last));
        (0..pieces).all(|piece| {
            let part = bytes.get(piece * PIECE..).unwrap_or_default();
            let length = part.len().min(PIECE);
            let mut bytes = [0; PIECE];
            bytes[..length].copy_from_slice(&part[..length]);
            let (from, is_last) = (before + piece * PIECE, is_last && piece + 1 == pieces);
            self.mail.push(Piece { job, of, at, from, is_last, length, bytes }).is_ok()
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
            let Piece { job, of, from, is_last, length, .. } = piece;
            let begun = self.begun.entry((job.operation, matches!(of, KeptOf::Pushed { .. }))).or_default();
            let place = begun.iter().position(|begun| (begun.job, begun.of) == (job, of));
            let mut bytes =
                place.and_then(|place| begun.remove(place)).map_or_else(Vec::new, |begun| begun.bytes);
            if bytes.len() != from {
                // Its beginning had to make room for others.
                self.lost.fetch_add(u64::from(is_last), Ordering::Relaxed);
                continue;
            }
            bytes.extend_from_slice(&piece.bytes[..length]);
            if is_last {
                each(job, of, &bytes);
                continue;
            }
            if begun.len() == BEGUN {
                begun.pop_front();
            }
            begun.push_back(Begun { job, of, bytes });
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
                let before = self.taken.get();
                let taken = before + bytes.map_or(0, <[u8]>::len);
                self.taken.set(taken);
                let why = match bytes.filter(|_| taken <= MOST_BYTES) {
                    None => ValueLoss::TooLong,
                    Some(bytes) if to.send((job, KeptOf::Taken), before, bytes, part == TakenPart::Last) => {
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
                    Some(bytes) if to.send((job, of), 0, bytes, true) => None,
                    Some(_) => Some(Unkept::Pushed(publication, ValueLoss::NoRoom)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(instance: u64) -> JobId {
        JobId { operation: OperationId::from_index(3), instance }
    }

    fn push(to: &KeptEvents, keeping: &JobKeeping, instance: u64, bytes: &[u8]) -> Option<Unkept> {
        let event = KeptEvent::Pushed(PublicationId::from_index(2));
        keeping.keep(to, job(instance), event, Some(bytes))
    }

    fn hand(to: &KeptEvents, instance: u64, parts: &[(TakenPart, &[u8])]) -> Vec<Option<Unkept>> {
        let keeping = JobKeeping::default();
        let keep = |(part, bytes): &(TakenPart, &[u8])| {
            keeping.keep(to, job(instance), KeptEvent::Taken(*part), Some(bytes))
        };
        parts.iter().map(keep).collect()
    }

    /// What is whole: of which instance, and the bytes.
    fn taken(end: &mut KeptEventsEnd) -> Vec<(u64, Vec<u8>)> {
        let mut all = Vec::new();
        end.take_all(Instant::MAX, &mut |job, _, bytes| all.push((job.instance, bytes.to_vec())));
        all
    }

    #[test]
    fn what_found_no_room_in_its_midst_is_not_kept_for_ever() {
        let (to, mut end) = KeptEvents::new();
        let long = vec![7; 3 * PIECE];
        let no_room = Some(Unkept::Pushed(PublicationId::from_index(2), ValueLoss::NoRoom));
        let rounds = 2 * BEGUN as u64;
        for round in 0..rounds {
            // All but two pieces of the room is taken, so that two of three find some.
            for _ in 0..PIECES - 2 {
                assert_eq!(push(&to, &JobKeeping::default(), 100 * round, &[1]), None);
            }
            assert_eq!(push(&to, &JobKeeping::default(), 100 * round + 1, &long), no_room);
            assert_eq!(taken(&mut end).len(), PIECES - 2);
            // A job is handed something, then fills the room itself by pushing, and is handed more.
            let keeping = JobKeeping::default();
            let hand = |part| keeping.keep(&to, job(100 * round + 2), KeptEvent::Taken(part), Some(&[4]));
            assert_eq!(hand(TakenPart::More), None);
            for _ in 0..PIECES - 1 {
                assert_eq!(push(&to, &keeping, 100 * round + 2, &[1]), None);
            }
            assert_eq!(hand(TakenPart::More), Some(Unkept::Taken(ValueLoss::NoRoom)));
            assert_eq!(taken(&mut end).len(), PIECES - 1);
            assert_eq!(hand(TakenPart::Last), None);
            assert_eq!(taken(&mut end), []);
            assert_eq!(end.lost(), 2 * (round + 1));
        }
        let under_way = |end: &KeptEventsEnd| end.begun.values().map(VecDeque::len).sum::<usize>();
        assert_eq!(under_way(&end), 2 * BEGUN, "of pushes, and of what jobs were handed");
        // What comes then is whole, and nothing else.
        assert_eq!(push(&to, &JobKeeping::default(), 9000, &long), None);
        let parts: [(_, &[u8]); 3] =
            [(TakenPart::More, &[1; PIECE + 1]), (TakenPart::More, &[2]), (TakenPart::Last, &[])];
        assert_eq!(hand(&to, 9001, &parts), [None; 3]);
        let handed = [&[1; PIECE + 1][..], &[2]].concat();
        assert_eq!(taken(&mut end), [(9000, long), (9001, handed)]);
        assert_eq!(under_way(&end), 2 * BEGUN - 2, "these took the places of the oldest, and do not stay");
    }

    #[test]
    fn jobs_of_an_operation_that_preempt_each_other_are_kept_apart() {
        let (to, mut end) = KeptEvents::new();
        let keepings: [JobKeeping; 2] = Default::default();
        let hand = |instance: usize, part, bytes: &[u8]| {
            let event = KeptEvent::Taken(part);
            assert_eq!(keepings[instance].keep(&to, job(instance as u64), event, Some(bytes)), None);
        };
        hand(0, TakenPart::More, &[1; PIECE]);
        hand(1, TakenPart::More, &[2]);
        hand(1, TakenPart::Last, &[3]);
        assert_eq!(taken(&mut end), [(1, vec![2, 3])]);
        hand(0, TakenPart::Last, &[4]);
        assert_eq!(taken(&mut end), [(0, [&[1; PIECE][..], &[4]].concat())]);
        // Of more than can be under way at once the first is lost, and no part of it taken for the whole.
        for instance in 0..=BEGUN {
            let keeping = JobKeeping::default();
            let event = KeptEvent::Taken(TakenPart::More);
            assert_eq!(keeping.keep(&to, job(100 + instance as u64), event, Some(&[5])), None);
            if instance == BEGUN {
                assert_eq!(taken(&mut end), []);
            }
        }
        let rest = |instance: u64| {
            let keeping = JobKeeping::default();
            keeping.taken.set(1);
            keeping.keep(&to, job(instance), KeptEvent::Taken(TakenPart::Last), Some(&[6]))
        };
        assert_eq!([rest(100), rest(101)], [None; 2]);
        assert_eq!((taken(&mut end), end.lost()), (vec![(101, vec![5, 6])], 1));
    }
}
