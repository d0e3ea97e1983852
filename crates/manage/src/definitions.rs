//! Definitions of what comes to a hierarchy while its run lasts, and the records that wait for them.
//!
//! A definition has to be in the stream before the first record that has its number. It is queued under the dispatcher's lock, where the
//! number is given, and entered without it, for that may wait for memory. What is recorded in between is kept here, in order:
//!
//! ```text
//!   under the lock        without it            under the lock
//!   queue ──────────────► take, enter ────────► entered: records go on
//!      └── records wait ────────────────────────┘
//! ```
//!
//! No record waits for the definition of a thread: it has its number from the kernel. Whose it is has to be asked of the kernel, which is not done under
//! the lock either: the warden does that (`naming`).

use talea_record::ring::Definer;
use talea_record::{Definition, Record};
use talea_time::Instant;

/// Records that wait at most. More than this while a definition is entered go on before it; none is lost.
const WAITING: usize = 512;
/// Threads that wait at most for being named, which is done every 10 ms. More than this are lost.
pub(crate) const UNNAMED: usize = 256;

/// Enters definitions into a stream, and returns how many there was no room for: readers find records of edges that nobody defined, and
/// count them.
pub(crate) fn enter(definer: &Definer, definitions: &[Definition]) -> u64 {
    definitions.iter().filter(|definition| definer.define(definition).is_err()).count() as u64
}

/// A thread that records speak of from an instant on, and of which nothing but its number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unnamed {
    pub tid: u32,
    pub since: Instant,
}

/// What readers have yet to be told of.
#[derive(Debug)]
pub(crate) struct Definitions {
    queued: Vec<Definition>,
    /// How many callers have taken definitions and not entered all of them.
    entering: usize,
    /// Preallocated: records are written under the lock.
    waiting: Vec<Record>,
    /// Preallocated: threads begin under the lock.
    unnamed: Vec<Unnamed>,
    /// Definitions for which there was no number or no room.
    lost: u64,
}

impl Definitions {
    pub fn new() -> Self {
        let (waiting, unnamed) = (Vec::with_capacity(WAITING), Vec::with_capacity(UNNAMED));
        Definitions { queued: Vec::new(), entering: 0, waiting, unnamed, lost: 0 }
    }

    /// A definition is to be entered.
    pub fn queue(&mut self, definition: Definition) {
        self.queued.push(definition);
    }

    /// A thread is to be named and defined.
    pub fn meet(&mut self, thread: Unnamed) {
        if self.unnamed.iter().any(|known| known.tid == thread.tid) {
            return;
        }
        match self.unnamed.len() < UNNAMED {
            true => self.unnamed.push(thread),
            false => self.lose(),
        }
    }

    /// The threads to be named.
    pub fn unnamed(&mut self) -> impl Iterator<Item = Unnamed> + '_ {
        self.unnamed.drain(..)
    }

    /// So many threads could not be defined.
    pub fn lose_threads(&mut self, threads: u64) {
        self.lost += threads;
    }

    /// What was to be defined has no number.
    pub fn lose(&mut self) {
        self.lost += 1;
    }

    /// How many there was no number or no room for.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Takes what is to be entered, after which [`Self::entered`] is called; none if there is nothing.
    pub fn take(&mut self) -> Option<Vec<Definition>> {
        if self.queued.is_empty() {
            return None;
        }
        self.entering += 1;
        Some(std::mem::take(&mut self.queued))
    }

    /// What was taken has been entered, but for so many definitions.
    pub fn entered(&mut self, lost: u64) {
        self.lost += lost;
        self.entering -= 1;
    }

    /// Keeps a record that must not be read yet. Returns whether it did; if not, those that wait are to be written, and then this one.
    #[inline]
    pub fn hold(&mut self, record: Record) -> bool {
        let holds = self.is_pending() && self.waiting.len() < WAITING;
        if holds {
            self.waiting.push(record);
        }
        holds
    }

    #[inline]
    fn is_pending(&self) -> bool {
        self.entering > 0 || !self.queued.is_empty()
    }

    /// The time of the first record that waits.
    pub fn since(&self) -> Option<Instant> {
        self.waiting.first().map(|record| record.time)
    }

    /// The records that need not wait any more.
    pub fn due(&mut self) -> impl Iterator<Item = Record> + '_ {
        let due = if self.is_pending() { 0 } else { self.waiting.len() };
        self.waiting.drain(..due)
    }

    /// All records that wait, whatever they wait for.
    pub fn all(&mut self) -> impl Iterator<Item = Record> + '_ {
        self.waiting.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_record::event::Timer;
    use talea_record::{EdgeEntry, Metadata, RingFile, SchedulerEntry, TraceFile};

    fn record(number: i64) -> Record {
        let at = Instant::from_nanos(number);
        Timer { due: at, woken: at, node: 0 }.at(at, Record::NO_CPU)
    }

    fn numbers(records: impl Iterator<Item = Record>) -> Vec<i64> {
        records.map(|record| record.time.as_nanos()).collect()
    }

    fn edge(number: u16) -> Definition {
        let (parent, child) = ("FP".into(), format!("t{number}"));
        Definition::Edge { number, entry: EdgeEntry { node: 0, parent, child, guarantee: "NULL".into() } }
    }

    fn scheduler(name: &str) -> Definition {
        let (name, kind) = (name.into(), "stride".into());
        Definition::Scheduler { serial: 0, entry: SchedulerEntry { node: 0, name, kind } }
    }

    #[test]
    fn records_wait_until_all_that_is_being_defined_is_entered() {
        let mut definitions = Definitions::new();
        assert!(!definitions.hold(record(1)), "nothing is being defined");
        definitions.queue(edge(4));
        assert_eq!(definitions.since(), None);
        assert!(definitions.hold(record(2)));
        assert_eq!(definitions.since(), Some(Instant::from_nanos(2)));
        let first = definitions.take().expect("one");
        // Somebody else changes the hierarchy meanwhile, and is done first.
        definitions.queue(scheduler("PS"));
        assert!(definitions.hold(record(3)));
        let second = definitions.take().expect("one");
        assert_eq!((first.len(), second.len()), (1, 1));
        definitions.entered(0);
        assert_eq!(numbers(definitions.due()), [0; 0], "the other one is not done");
        assert!(definitions.hold(record(4)));
        definitions.entered(0);
        assert_eq!(numbers(definitions.due()), [2, 3, 4], "in order");
        assert!(!definitions.hold(record(5)) && definitions.take().is_none());
    }

    #[test]
    fn no_record_waits_for_a_thread_and_no_more_than_some_wait_themselves() {
        let mut definitions = Definitions::new();
        let thread = |tid: usize| Unnamed { tid: tid as u32, since: Instant::from_nanos(1) };
        (0..UNNAMED + 2).for_each(|tid| definitions.meet(thread(tid)));
        // Behind another edge, too.
        definitions.meet(thread(3));
        assert!(!definitions.hold(record(2)) && definitions.take().is_none());
        assert_eq!((definitions.unnamed().count(), definitions.lost()), (UNNAMED, 2));
        definitions.meet(thread(3));
        assert_eq!(definitions.unnamed().collect::<Vec<_>>(), [thread(3)]);
    }

    #[test]
    fn what_a_stream_has_no_room_for_is_counted() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join("rings");
        let mut rings = RingFile::create(&path, &Metadata::bare("x"), &["all".into()], 16).expect("rings");
        let (mut definitions, all) = (Definitions::new(), 5_000);
        (0..all).for_each(|number| definitions.queue(edge(number)));
        let taken = definitions.take().expect("some");
        let lost = enter(&rings.writer(0).definer(), &taken);
        definitions.entered(lost);
        let trace = TraceFile::open(&path).expect("a trace");
        let known = trace.directory().expect("whole").definitions().len() as u64;
        assert!(known > 1_000 && lost > 0, "{known} known, {lost} lost");
        assert_eq!((known + lost, definitions.lost()), (u64::from(all), lost));
    }

    #[test]
    fn records_beyond_the_room_go_on_in_order_and_what_is_not_defined_is_counted() {
        let mut definitions = Definitions::new();
        definitions.queue(edge(4));
        let room = definitions.waiting.capacity();
        assert!((0..WAITING as i64).all(|number| definitions.hold(record(number))));
        assert_eq!(definitions.waiting.capacity(), room, "nothing is allocated for it");
        assert!(!definitions.hold(record(-1)));
        assert!(numbers(definitions.all()).iter().copied().eq(0..WAITING as i64));
        definitions.lose();
        definitions.take().expect("one");
        definitions.entered(1);
        assert_eq!(definitions.lost(), 2);
    }
}
