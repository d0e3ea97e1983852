//! Values that operations have published, and what jobs have taken and pushed besides, as records: the first says whose it is and how long, those
//! behind it have the bytes.

use crate::event::{PushKept, Typed, Value, ValuePart};
use crate::parts;
use crate::{JobId, Record, Sink};
use std::collections::BTreeMap;
use talea_time::Instant;

/// The longest value that is kept.
pub const MOST_BYTES: usize = 64 * 1024;

const WORD: usize = 8;

/// What the bytes are that are kept of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptOf {
    /// The value that it published on this output.
    Output(u32),
    /// The events that it took, or what it read of the descriptor that released it.
    Taken,
    /// An event that it pushed; without bytes, one for which there was no room.
    Pushed {
        /// As what it is published.
        publication: u32,
        /// Which of the pushes of the job it is, from 0.
        number: u16,
    },
}

/// A value that was published, or what a job took or pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptValue {
    /// The job.
    pub job: JobId,
    /// What it is.
    pub of: KeptOf,
    /// Its bytes, as the kind of the output, or of the events, made them.
    pub bytes: Vec<u8>,
}

/// How many records a value of so many bytes takes.
pub fn records_of(bytes: usize) -> usize {
    1 + bytes.saturating_sub(WORD).div_ceil(parts::BYTES)
}

/// Writes a value at `time`. Nobody else writes values of the same `node` meanwhile.
///
/// # Panics
/// If it has more than [`MOST_BYTES`].
pub fn write(sink: &mut impl Sink, (job, of): (JobId, KeptOf), bytes: &[u8], node: u16, time: Instant) {
    assert!(bytes.len() <= MOST_BYTES, "{} bytes are more than are kept", bytes.len());
    let (head, rest) = bytes.split_at(bytes.len().min(WORD));
    let (length, [head, ..]) = (bytes.len() as u32, parts::words(head));
    let value = |output| Value { job, output, bytes: length, head, node }.at(time, Record::NO_CPU);
    sink.record(match of {
        KeptOf::Output(output) => value(Some(output)),
        KeptOf::Taken => value(None),
        KeptOf::Pushed { publication, number } => {
            PushKept { job, publication, bytes: length, head, node, number }.at(time, Record::NO_CPU)
        }
    });
    for (part, number) in rest.chunks(parts::BYTES).zip(1..) {
        let [first, second, third] = parts::words(part);
        let part = ValuePart { first, second, third, node, number };
        sink.record(part.at(time, Record::NO_CPU));
    }
}

/// Reads values of any number of nodes out of a stream of records.
#[derive(Debug, Default)]
pub struct ValueReader {
    /// What has begun and is not whole yet, by node.
    begun: BTreeMap<u16, Begun>,
    damaged: u64,
}

#[derive(Debug)]
struct Begun {
    value: KeptValue,
    /// All that it will have.
    bytes: usize,
    parts: u16,
}

impl ValueReader {
    /// Takes the next record; returns the value that is whole with it.
    pub fn take(&mut self, record: &Record) -> Option<KeptValue> {
        let begin = |job, of, bytes: u32, head: [u8; WORD]| {
            let bytes = bytes as usize;
            let value = KeptValue { job, of, bytes: head[..bytes.min(WORD)].to_vec() };
            Begun { value, bytes, parts: 0 }
        };
        let (node, begun) = match record.typed() {
            Typed::Value(Value { job, output, bytes, head, node }) => {
                (node, begin(job, output.map_or(KeptOf::Taken, KeptOf::Output), bytes, head))
            }
            Typed::PushKept(PushKept { job, publication, bytes, head, node, number }) => {
                (node, begin(job, KeptOf::Pushed { publication, number }, bytes, head))
            }
            Typed::ValuePart(ValuePart { first, second, third, node, number }) => {
                let mut begun = self.begun.remove(&node)?;
                if number != begun.parts + 1 {
                    self.damaged += 1;
                    return None;
                }
                begun.parts = number;
                parts::append(&mut begun.value.bytes, begun.bytes, [first, second, third]);
                (node, begun)
            }
            _ => return None,
        };
        if begun.value.bytes.len() == begun.bytes {
            self.damaged += u64::from(self.begun.remove(&node).is_some());
            return Some(begun.value);
        }
        let lost = match begun.bytes <= MOST_BYTES {
            true => self.begun.insert(node, begun).is_some(),
            false => true,
        };
        self.damaged += u64::from(lost);
        None
    }

    /// Values so far of which records are missing.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use talea_model::OperationId;

    fn kept(instance: u64, bytes: Vec<u8>) -> KeptValue {
        let job = JobId { operation: OperationId::from_index(3), instance };
        // Of each kind some, by the instance.
        let of = match instance % 3 {
            0 => KeptOf::Output(7),
            1 => KeptOf::Taken,
            _ => KeptOf::Pushed { publication: 4, number: instance as u16 },
        };
        KeptValue { job, of, bytes }
    }

    fn written(value: &KeptValue, node: u16) -> Vec<Record> {
        let mut records = Vec::new();
        write(&mut records, (value.job, value.of), &value.bytes, node, Instant::from_nanos(9));
        assert_eq!(records.len(), records_of(value.bytes.len()));
        records
    }

    #[test]
    fn values_without_bytes_and_of_the_greatest_length_come_back() {
        for length in [0, 1, 7, 8, 9, 31, 32, 33, MOST_BYTES] {
            let value = kept(length as u64, (0..length).map(|byte| byte as u8 | 1).collect());
            let mut reader = ValueReader::default();
            let read: Vec<_> = written(&value, 0).iter().filter_map(|record| reader.take(record)).collect();
            assert_eq!((read, reader.damaged()), (vec![value], 0));
        }
    }

    #[test]
    fn a_value_of_which_a_record_is_missing_is_counted_and_no_other_one_suffers() {
        let (value, next) = (kept(1, (0..100).collect()), kept(2, vec![5; 40]));
        for missing in 0..records_of(100) {
            let mut records = written(&value, 0);
            records.remove(missing);
            records.extend(written(&next, 0));
            let mut reader = ValueReader::default();
            let read: Vec<_> = records.iter().filter_map(|record| reader.take(record)).collect();
            assert_eq!(read, std::slice::from_ref(&next));
            // Without its first record it is not known to be one.
            assert_eq!(reader.damaged(), u64::from(missing > 0));
        }
    }

    proptest! {
        #[test]
        fn values_of_several_nodes_may_be_interleaved(
            values in proptest::collection::vec((0u16..3, proptest::collection::vec(any::<u8>(), 0..90)), 1..12),
            order in proptest::collection::vec(any::<proptest::sample::Index>(), 100),
        ) {
            let mut by_node: Vec<Vec<Record>> = vec![Vec::new(); 3];
            let mut expected: Vec<KeptValue> = Vec::new();
            for (instance, (node, bytes)) in values.into_iter().enumerate() {
                let value = kept(instance as u64, bytes);
                by_node[usize::from(node)].extend(written(&value, node));
                expected.push(value);
            }
            let (mut reader, mut read, mut order) = (ValueReader::default(), Vec::new(), order.iter().cycle());
            while by_node.iter().any(|records| !records.is_empty()) {
                let left: Vec<usize> = (0..3).filter(|node| !by_node[*node].is_empty()).collect();
                let node = *order.next().expect("it has no end").get(&left);
                read.extend(reader.take(&by_node[node].remove(0)));
            }
            read.sort_by_key(|value| value.job.instance);
            prop_assert_eq!((read, reader.damaged()), (expected, 0));
        }
    }
}
