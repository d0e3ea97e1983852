//! The records of a log in the order of time, those included that came when later ones had been written.

use super::TraceError;
use super::screened::LogReader;
use crate::Record;
use crate::damage::{DISORDER, Damage};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use talea_time::{Duration, Instant};

/// A log of which records are held back for as long as an earlier one may follow; where all are in order, for no time at all.
#[derive(Debug)]
pub(super) struct OrderedLog {
    reader: LogReader,
    /// How far a record can be behind a later one that stands before it.
    disorder: Option<Duration>,
    /// Held back: by their time, and by their place in the file where times are equal.
    waiting: BinaryHeap<Reverse<Waiting>>,
    latest: Instant,
    read: u64,
    /// The end of the file has come, or something that cannot be read.
    ended: bool,
    failure: Option<TraceError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Waiting {
    record: Record,
    place: u64,
}

impl Waiting {
    fn key(&self) -> (Instant, u64) {
        (self.record.time, self.place)
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl OrderedLog {
    pub fn new(reader: LogReader) -> Self {
        OrderedLog {
            // What is further behind is damage, and left out.
            disorder: reader.disorder().bound().map(|bound| bound.min(DISORDER)),
            reader,
            waiting: BinaryHeap::new(),
            latest: Instant::from_nanos(i64::MIN),
            read: 0,
            ended: false,
            failure: None,
        }
    }

    pub fn damage(&self) -> &Damage {
        self.reader.damage()
    }

    /// The next record in the order of time.
    pub fn next(&mut self) -> Option<Result<Record, TraceError>> {
        let Some(disorder) = self.disorder else { return self.reader.next() };
        while !self.ended
            && self.waiting.peek().is_none_or(|first| first.0.may_be_passed(self.latest, disorder))
        {
            self.read_one();
        }
        match self.waiting.pop() {
            Some(Reverse(first)) => Some(Ok(first.record)),
            None => self.failure.take().map(Err),
        }
    }

    fn read_one(&mut self) {
        match self.reader.next() {
            Some(Ok(record)) => {
                self.latest = self.latest.max(record.time);
                self.waiting.push(Reverse(Waiting { record, place: self.read }));
                self.read += 1;
            }
            other => {
                self.ended = true;
                self.failure = other.and_then(Result::err);
            }
        }
    }
}

impl Waiting {
    /// Whether an earlier record may follow in the file behind one of the time `latest`.
    fn may_be_passed(&self, latest: Instant, disorder: Duration) -> bool {
        self.record.time.saturating_add(disorder) > latest
    }
}
