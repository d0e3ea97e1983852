//! Records as they stand in a file, without those that cannot be. In a log, these may have been what others follow from, so
//! [`Event::LOST`] records stand in their place.

use super::TraceError;
use crate::damage::{Damage, Ending, Place, Rules, Screen};
use crate::event::{LossCause, Lost};
use crate::log::{Closing, Disorder, SEALED, Seal, from_bytes};
use crate::merge::RecordSource;
use crate::ring::RingReader;
use crate::{Event, Record};
use crc32fast::Hasher;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use talea_time::Instant;

/// A ring of a file.
#[derive(Debug)]
pub(super) struct ScreenedRing {
    ring: RingReader,
    number: u16,
    screen: Screen,
    /// The next record has been found fit.
    is_fit: bool,
    damage: Damage,
}

impl ScreenedRing {
    pub fn new(ring: RingReader, number: usize, rules: &Arc<Rules>) -> Self {
        let screen = Screen::new(rules);
        ScreenedRing { ring, number: number as u16, screen, is_fit: false, damage: Damage::default() }
    }

    pub fn damage(&self) -> &Damage {
        &self.damage
    }
}

impl RecordSource for ScreenedRing {
    fn peek(&mut self) -> Option<Record> {
        loop {
            let record = self.ring.peek()?;
            if self.is_fit {
                return Some(record);
            }
            let fault = self.screen.check(&record, self.ring.ahead());
            self.screen.note_parts_alone(Place::Ring(self.number), &mut self.damage);
            match fault {
                None => self.is_fit = true,
                Some(fault) => {
                    self.damage.note(Place::Ring(self.number), fault);
                    self.ring.take();
                }
            }
        }
    }

    fn take(&mut self) -> Option<Record> {
        self.peek()?;
        self.is_fit = false;
        self.ring.take()
    }
}

/// The records of a log.
#[derive(Debug)]
pub(super) struct LogReader {
    file: Arc<File>,
    screen: Screen,
    damage: Damage,
    disorder: Disorder,
    gap: Gap,
    /// What is to be read into the buffer yet, to the end of the last whole record.
    rest: Range<u64>,
    buffer: Vec<u8>,
    /// Bytes of the buffer already delivered.
    used: usize,
    /// Of the records since the last seal.
    sum: Hasher,
    since_seal: u64,
    sealed_up_to: u64,
}

/// Records that were left out one after the other.
#[derive(Debug)]
struct Gap {
    rules: Arc<Rules>,
    records: u64,
    /// The time of the last record before them.
    since: Option<Instant>,
    /// Whether the kernel's events are among the records.
    hears_kernel: bool,
    /// What is to be delivered.
    due: VecDeque<Record>,
}

impl Gap {
    /// A record that is fit comes next.
    fn pass(&mut self, record: &Record) {
        self.hears_kernel |= record.event.family() == Event::SWITCH.family();
        self.since = Some(record.time);
        self.due.push_back(*record);
    }

    /// What was left out before `time` is lost; false if nothing was. How many of the kernel's records are among them, and on which
    /// processors, nobody knows.
    fn close(&mut self, time: Instant) -> bool {
        if self.records == 0 {
            return false;
        }
        let since = self.since;
        let lost = |records, ring, cpu| {
            Lost { records, since, ring, cause: LossCause::Damaged.into() }.at(time, cpu)
        };
        self.due.push_back(lost(std::mem::take(&mut self.records), Record::DAMAGED, Record::NO_CPU));
        if self.hears_kernel {
            self.due.extend(self.rules.cpus.iter().map(|cpu| lost(0, Record::KERNEL, *cpu)));
        }
        true
    }
}

const BUFFER_BYTES: u64 = 1024 * Record::BYTES as u64;

impl LogReader {
    /// The records in these bytes of `file`.
    pub fn new(file: &Arc<File>, bytes: Range<u64>, rules: &Arc<Rules>) -> io::Result<Self> {
        let from = bytes.start;
        let cut_bytes = bytes.end.saturating_sub(from) % Record::BYTES as u64;
        let rest = from..bytes.end.max(from) - cut_bytes;
        let last = last_seal(file, rest.clone())?;
        let disorder = last.map_or(Disorder::default(), |(_, seal)| seal.disorder);
        let ending = match last.filter(|(at, _)| at + Record::BYTES as u64 == rest.end) {
            Some((_, Seal { closing: Closing::Last, .. })) => Ending::Whole,
            _ => Ending::Open,
        };
        Ok(LogReader {
            file: Arc::clone(file),
            screen: Screen::new(rules),
            gap: Gap {
                rules: Arc::clone(rules),
                records: 0,
                since: None,
                hears_kernel: false,
                due: VecDeque::new(),
            },
            damage: Damage { cut_bytes, ending, ..Damage::default() },
            disorder,
            rest,
            buffer: Vec::new(),
            used: 0,
            sum: Hasher::new(),
            since_seal: 0,
            sealed_up_to: from,
        })
    }

    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// How far records stand behind later ones, as the last seal says.
    pub fn disorder(&self) -> Disorder {
        self.disorder
    }

    /// The next record that can be.
    pub fn next(&mut self) -> Option<Result<Record, TraceError>> {
        loop {
            if let Some(due) = self.gap.due.pop_front() {
                return Some(Ok(due));
            }
            let at = self.rest.start - (self.buffer.len() - self.used) as u64;
            let bytes = match self.fill() {
                Ok(true) => *self.buffer[self.used..].first_chunk().expect("the buffer holds whole records"),
                Ok(false) => match self.gap.close(self.gap.since?) {
                    true => continue,
                    false => return None,
                },
                Err(error) => return Some(Err(error.into())),
            };
            self.used += Record::BYTES;
            let record = from_bytes(&bytes);
            if let Some(seal) = Seal::of(&record) {
                self.break_seal(seal, at);
                continue;
            }
            self.sum.update(&bytes);
            self.since_seal += 1;
            let ahead = self.ahead();
            let fault = self.screen.check(&record, ahead);
            self.screen.note_parts_alone(Place::Byte(at), &mut self.damage);
            match fault {
                None => {
                    self.damage.pass(&record);
                    self.gap.close(record.time);
                    self.gap.pass(&record);
                }
                Some(fault) => {
                    self.damage.note(Place::Byte(at), fault);
                    self.gap.records += 1;
                }
            }
        }
    }

    /// Sees to it that the buffer has a record, if the file does.
    fn fill(&mut self) -> io::Result<bool> {
        if self.used < self.buffer.len() {
            return Ok(true);
        }
        let length = (self.rest.end - self.rest.start).min(BUFFER_BYTES);
        self.buffer.resize(length as usize, 0);
        self.used = 0;
        if let Err(error) = self.file.read_exact_at(&mut self.buffer, self.rest.start) {
            self.rest.end = self.rest.start;
            self.buffer.clear();
            return Err(error);
        }
        self.rest.start += length;
        Ok(length > 0)
    }

    /// The record after the one that was just taken, if it is there. What cannot be read is told when it is due.
    fn ahead(&mut self) -> Option<Record> {
        if !self.fill().ok()? {
            return None;
        }
        let records = self.buffer[self.used..].as_chunks().0.iter().map(from_bytes);
        records.take(2).find(|record| Seal::of(record).is_none())
    }

    /// Compares a seal with what came since the last one.
    fn break_seal(&mut self, seal: Seal, at: u64) {
        let sum = seal.disorder.sealing(std::mem::take(&mut self.sum));
        let records = std::mem::take(&mut self.since_seal);
        let from = std::mem::replace(&mut self.sealed_up_to, at + Record::BYTES as u64);
        if (records, sum) != (seal.records, seal.sum) {
            self.damage.altered += 1;
            self.damage.first_altered.get_or_insert((from, at));
        }
    }
}

/// The last seal among the records of a log that stand between these bytes, and where it is.
pub(super) fn last_seal(file: &File, records: Range<u64>) -> io::Result<Option<(u64, Seal)>> {
    const REACH: u64 = 2 * (SEALED + 1) * Record::BYTES as u64;
    let length = (records.end - records.start).min(REACH);
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, records.end - length)?;
    let found = bytes.as_chunks().0.iter().enumerate().rev();
    let mut seals = found.filter_map(|(index, bytes)| Some((index, Seal::of(&from_bytes(bytes))?)));
    Ok(seals.next().map(|(index, seal)| (records.end - length + (index * Record::BYTES) as u64, seal)))
}
