//! The bytes of long fields as records.
//!
//! An event with a [long field](crate::declaration::LongText) is several records of one ring, one after the other and of the same instant:
//!
//! ```text
//!  part 1, 24 bytes | part 2, 24 bytes | ... | last part, and zeros behind its bytes | the event, with the extent of its long field
//! ```
//! The event comes last, and is there when its own record is: of a writer that was killed before there is no event, and whoever reads records
//! in their order has the bytes when the event comes, and need not hold it back. While the event is in its ring, its
//! [source](crate::Record::source) says how many parts it has, so that a reader that has lost some of them knows.
//!
//! The parts are not those of kept values ([`crate::values`]), although they carry bytes as these do. Of a kept value, which no other writer of
//! its node disturbs, the record that says whose it is comes first; threads of a program write at the same time, and a reader of values
//! would take the parts of their events for its own.

use crate::event::EventPart;
use crate::{Event, Record};
use talea_time::Instant;

const WORD: usize = size_of::<u64>();
/// Bytes in a part.
pub(crate) const BYTES: usize = 3 * WORD;
/// The source of an event with a long field in its ring, with the number of its parts in the low byte.
const MARK: u16 = 0xfe00;

/// How many parts so many bytes take.
#[inline]
pub(crate) const fn parts_of(bytes: usize) -> usize {
    bytes.div_ceil(BYTES)
}

/// The source of an event in its ring that has a long field of so many bytes.
#[inline]
pub(crate) const fn mark(bytes: usize) -> u16 {
    MARK | parts_of(bytes) as u16
}

/// How many parts an event of a program has, as its source says in its ring.
#[inline]
pub(crate) const fn marked(source: u16) -> usize {
    if source & 0xff00 == MARK { (source & 0xff) as usize } else { 0 }
}

/// The words of a part of at most [`BYTES`], with zeros behind the last byte.
#[inline]
pub(crate) fn words(part: &[u8]) -> [[u8; WORD]; 3] {
    let mut padded = [0; BYTES];
    padded[..part.len()].copy_from_slice(part);
    whole_words(&padded)
}

#[inline]
fn whole_words(part: &[u8; BYTES]) -> [[u8; WORD]; 3] {
    let (words, _) = part.as_chunks();
    [words[0], words[1], words[2]]
}

/// Appends the bytes of a part to those before it, which are `all` with the last part.
pub(crate) fn append(bytes: &mut Vec<u8>, all: usize, words: [[u8; WORD]; 3]) {
    for word in words {
        let length = all.saturating_sub(bytes.len()).min(WORD);
        bytes.extend_from_slice(&word[..length]);
    }
}

/// The records before an event that has these bytes.
#[inline]
pub(crate) fn records(bytes: &[u8], time: Instant, cpu: u16) -> impl Iterator<Item = Record> {
    let all = bytes.len() as u16;
    // Parts that are full are copied without asking how long they are.
    let (full, rest) = bytes.as_chunks();
    let last = (!rest.is_empty()).then(|| words(rest));
    full.iter().map(whole_words).chain(last).zip(1..).map(move |([first, second, third], number)| {
        EventPart { first, second, third, bytes: all, number }.at(time, cpu)
    })
}

/// Gathers the bytes of long fields out of records in their order.
#[derive(Clone, Debug, Default)]
pub struct EventParts {
    time: Instant,
    bytes: Vec<u8>,
    /// As many as there will be.
    all: usize,
    /// Of the latest part.
    number: u16,
}

impl EventParts {
    /// Takes the next record; false if it is a part that does not follow the one before.
    pub fn learn(&mut self, record: &Record) -> bool {
        let Some(EventPart { first, second, third, bytes, number }) = EventPart::read(record) else {
            return true;
        };
        if number == 1 {
            self.bytes.clear();
            (self.time, self.all, self.number) = (record.time, bytes.into(), 0);
        }
        let follows = self.time == record.time
            && self.all == usize::from(bytes)
            && self.bytes.len() < self.all
            && self.number.checked_add(1) == Some(number);
        if follows {
            self.number = number;
            append(&mut self.bytes, self.all, [first, second, third]);
        } else {
            self.forget();
        }
        follows
    }

    /// The bytes of a long field of the event that comes next; `None` if some of them are missing.
    pub fn of(&self, event: &Record) -> Option<&[u8]> {
        let all = crate::declaration::Extent::from_bits(event.arg).bytes();
        let is_whole = self.bytes.len() == self.all && self.all == all && self.time == event.time;
        (all == 0 || is_whole).then(|| &self.bytes[..all.min(self.bytes.len())])
    }

    /// Whether there are parts.
    pub(crate) fn has_any(&self) -> bool {
        self.number > 0
    }

    /// Whether there is one and no more.
    pub(crate) fn is_first(&self) -> bool {
        self.number == 1
    }

    /// Their event has come, or will not.
    pub(crate) fn forget(&mut self) {
        self.bytes.clear();
        (self.all, self.number) = (0, 0);
    }
}

impl Record {
    /// Whether the record is a part of the event behind it, which no listing shows by itself.
    #[inline]
    pub fn is_part(&self) -> bool {
        self.event == Event::PART
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: Event = Event(0x4000);

    fn written(bytes: &[u8], time: i64) -> Vec<Record> {
        let time = Instant::from_nanos(time);
        let mut all: Vec<Record> = records(bytes, time, 3).collect();
        let (source, arg) = (mark(bytes.len()), bytes.len() as u16);
        all.push(Record { time, causal: 0, words: [0; 2], event: EVENT, source, cpu: 3, arg });
        assert_eq!(marked(source), all.len() - 1);
        all
    }

    #[test]
    fn bytes_of_every_length_come_back() {
        for length in [0, 1, 7, 8, 23, 24, 25, 48, 255, 256] {
            let bytes: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            let mut parts = EventParts::default();
            let records = written(&bytes, 9);
            assert!(records.iter().all(|record| parts.learn(record)), "{length}");
            assert_eq!(parts.of(records.last().unwrap()), Some(&bytes[..]));
        }
    }

    #[test]
    fn an_event_of_which_a_part_is_missing_doubled_or_moved_has_no_bytes() {
        let whole = written(&[7; 100], 9);
        let bytes_of = |records: &[Record]| {
            let mut parts = EventParts::default();
            let fitting = records.iter().filter(|record| parts.learn(record)).count();
            (parts.of(records.last().unwrap()).map(<[u8]>::len), fitting == records.len())
        };
        assert_eq!(bytes_of(&whole), (Some(100), true));
        for place in 0..whole.len() - 1 {
            let mut less = whole.clone();
            less.remove(place);
            assert_eq!(bytes_of(&less).0, None, "without part {place}");
            let mut more = whole.clone();
            more.insert(place, whole[place]);
            // The first part may begin anew.
            assert_eq!(bytes_of(&more).0.is_some(), place == 0, "part {place} twice");
        }
        let (mut moved, earlier) = (whole.clone(), written(&[1; 100], 8));
        moved[2] = earlier[2];
        assert_eq!(bytes_of(&moved), (None, false));
        // Whole parts of another event.
        let of_other = [&earlier[..earlier.len() - 1], &whole[whole.len() - 1..]].concat();
        assert_eq!(bytes_of(&of_other).0, None);
    }
}
