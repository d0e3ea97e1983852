//! What jobs read of the descriptor that releases their task: kept as bytes, and handed to the same job again.
//!
//! ```text
//!   (asked, answer, bytes)…   of each call: how many bytes it had room for (4 bytes, little-endian), how many it was given (4 bytes), and these
//!   (asked, refusal)…         or why it was given none: the highest bit of the answer is set then
//! ```

use talea_channel::{Codec, Handling, KeptEnd, Output, OutputPort, Visible};
use talea_time::Instant;
use thiserror::Error;

/// Why a job was given no bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotRead {
    /// Nothing is there, or not yet.
    #[error("nothing is there to be read")]
    Nothing,
    /// No descriptor releases the task: its arrivals are drawn, as in simulations, or the program triggers it.
    #[error("no descriptor releases the task")]
    NoDescriptor,
    /// The system refuses with this error number.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    Failed(i32),
    /// The job is replayed, and nothing is recorded that it could be given.
    #[error("the job is replayed, and what it read is not recorded")]
    Unrecorded,
}

/// What comes before the bytes of a call.
const HEAD: usize = 8;
/// Bytes of a job for which there is room at most: no record has more.
const MOST_BYTES: usize = 64 << 10;
/// Calls of a job for which there is room at least.
const CALLS: usize = 16;
/// A call was refused.
const REFUSED: u32 = 1 << 31;
/// No descriptor; below are error numbers of the system, and 0, which is none, for nothing.
const NO_DESCRIPTOR: u32 = REFUSED | 1 << 30;

/// What one job has read, call by call; in a slot of a connection, and used again.
#[derive(Debug)]
struct Calls {
    bytes: Vec<u8>,
    /// Whether there was room for all of them.
    are_whole: bool,
}

impl Calls {
    const CODEC: Codec<Calls> = Codec {
        encode: |calls, to| {
            let to = to.get_mut(..calls.bytes.len()).filter(|_| calls.are_whole)?;
            to.copy_from_slice(&calls.bytes);
            Some(calls.bytes.len())
        },
        decode: |_, _| false,
    };

    /// Bytes for a job that reads so many.
    fn room(most: usize) -> usize {
        most.min(MOST_BYTES) + CALLS * HEAD
    }

    /// With room for a job that reads so many bytes.
    fn with_room(most: usize) -> Self {
        Calls { bytes: Vec::with_capacity(Calls::room(most)), are_whole: true }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.are_whole = true;
    }

    /// A call with this buffer was answered so. Does not allocate.
    fn note(&mut self, buffer: &[u8], answer: Result<usize, NotRead>) {
        let (word, bytes) = match answer {
            Ok(length) => (length as u32, &buffer[..length]),
            Err(NotRead::Nothing) => (REFUSED, &[][..]),
            Err(NotRead::NoDescriptor) => (NO_DESCRIPTOR, &[][..]),
            Err(NotRead::Failed(error)) => (REFUSED | error.unsigned_abs() & !NO_DESCRIPTOR, &[][..]),
            Err(NotRead::Unrecorded) => {
                self.are_whole = false;
                return;
            }
        };
        self.are_whole &= self.bytes.capacity() - self.bytes.len() >= HEAD + bytes.len();
        if self.are_whole {
            self.bytes.extend_from_slice(&(buffer.len() as u32).to_le_bytes());
            self.bytes.extend_from_slice(&word.to_le_bytes());
            self.bytes.extend_from_slice(bytes);
        }
    }
}

/// One call, as it was recorded.
fn first_call(from: &[u8]) -> Option<(Again<'_>, &[u8])> {
    let (asked, rest) = from.split_first_chunk::<4>()?;
    let (word, rest) = rest.split_first_chunk::<4>()?;
    let (asked, word) = (u32::from_le_bytes(*asked) as usize, u32::from_le_bytes(*word));
    let refused = |why| Some((Again { asked, answer: Err(why) }, rest));
    match word {
        REFUSED => refused(NotRead::Nothing),
        NO_DESCRIPTOR => refused(NotRead::NoDescriptor),
        word if word & REFUSED != 0 => refused(NotRead::Failed(i32::try_from(word & !REFUSED).ok()?)),
        length => {
            let (bytes, rest) = rest.split_at_checked(length as usize)?;
            Some((Again { asked, answer: Ok(bytes) }, rest))
        }
    }
}

/// How a call was answered.
struct Again<'a> {
    /// What it had room for.
    asked: usize,
    answer: Result<&'a [u8], NotRead>,
}

/// What a replayed job is answered.
#[derive(Debug, Default)]
struct Answers {
    /// What is left of what was recorded.
    bytes: Vec<u8>,
    place: usize,
    /// Whether it has asked otherwise than it did then.
    has_diverged: bool,
}

impl Answers {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, NotRead> {
        let Some((Again { asked, answer }, rest)) = first_call(&self.bytes[self.place..]) else {
            self.has_diverged = true;
            return Err(NotRead::Unrecorded);
        };
        self.place = self.bytes.len() - rest.len();
        self.has_diverged |= asked != buffer.len();
        let bytes = answer?;
        let length = bytes.len().min(buffer.len());
        buffer[..length].copy_from_slice(&bytes[..length]);
        Ok(length)
    }
}

/// What an operation reads of the descriptor that releases its task.
pub(crate) struct Reading {
    /// Bytes that a job reads at most.
    most: usize,
    /// Where it goes, while it is kept.
    port: Option<OutputPort<Calls>>,
    /// What the job that began last is answered, in a replay.
    again: Option<Answers>,
}

impl Reading {
    pub fn new(most: usize) -> Self {
        Reading { most, port: None, again: None }
    }

    /// Bytes that are kept of a job at most.
    pub fn most_kept(&self) -> usize {
        Calls::room(self.most)
    }

    /// From now on, what jobs read comes to this end, too, of which there is room for so many.
    pub fn keep(&mut self, room: usize) -> Option<Box<dyn KeptEnd>> {
        let (most, handling) = (self.most, Handling { same: None, codec: Some(Calls::CODEC) });
        let (port, _no_readers, end) = OutputPort::kept(&[], handling, room, move || Calls::with_room(most));
        self.port = Some(port);
        end
    }

    /// A job begins.
    pub fn begin(&mut self) {
        if let Some(port) = &mut self.port {
            port.value().clear();
        }
    }

    /// Hands a job, which begins, again what was recorded; none if that is not known. False if these bytes are none.
    pub fn begin_again(&mut self, recorded: Option<&[u8]>) -> bool {
        let bytes = recorded.unwrap_or_default();
        let mut rest = bytes;
        while let Some((_, behind)) = first_call(rest) {
            rest = behind;
        }
        let are_calls = rest.is_empty();
        let bytes = if are_calls { bytes.to_vec() } else { Vec::new() };
        self.again = Some(Answers { bytes, place: 0, has_diverged: false });
        are_calls
    }

    /// Whether a replayed job has asked otherwise than it did.
    pub fn has_diverged(&self) -> bool {
        self.again.as_ref().is_some_and(|again| again.has_diverged)
    }

    /// A job reads: `read` does so where it is not replayed.
    pub fn read(
        &mut self,
        buffer: &mut [u8],
        read: impl FnOnce(&mut [u8]) -> Result<usize, NotRead>,
    ) -> Result<usize, NotRead> {
        if let Some(again) = &mut self.again {
            return again.read(buffer);
        }
        let answer = read(buffer);
        if let Some(port) = &mut self.port {
            port.value().note(buffer, answer);
        }
        answer
    }

    /// The job of this instance is over, which began at `started`. Whether there was room for what it has read, if that is kept.
    pub fn end(&mut self, instance: u64, started: Instant) -> bool {
        let Some(port) = &mut self.port else { return true };
        let mut has_room = true;
        port.publish(instance, Visible::To(started), &mut |_| has_room = false);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a job reads with these calls that are answered so, as it is recorded.
    fn recorded(most: usize, calls: &[(usize, Result<&[u8], NotRead>)]) -> Option<Vec<u8>> {
        let mut all = Calls::with_room(most);
        for (asked, answer) in calls {
            let mut buffer = vec![0; *asked];
            let answer = answer.map(|bytes| {
                buffer[..bytes.len()].copy_from_slice(bytes);
                bytes.len()
            });
            all.note(&buffer, answer);
        }
        let mut bytes = vec![0; 1 << 10];
        let length = (Calls::CODEC.encode)(&all, &mut bytes)?;
        bytes.truncate(length);
        Some(bytes)
    }

    fn again(bytes: Option<&[u8]>) -> Reading {
        let mut reading = Reading::new(8);
        assert!(reading.begin_again(bytes));
        reading
    }

    fn read(reading: &mut Reading, asked: usize) -> Result<Vec<u8>, NotRead> {
        let mut buffer = vec![0; asked];
        let answer = reading.read(&mut buffer, |_| unreachable!("it is replayed"));
        answer.map(|length| buffer[..length].to_vec())
    }

    #[test]
    fn each_call_is_answered_again_as_it_was() {
        let failed = NotRead::Failed(104);
        let calls: [(usize, Result<&[u8], NotRead>); 5] = [
            (4, Ok(b"go")),
            (4, Ok(b"")),
            (8, Err(NotRead::Nothing)),
            (1, Err(NotRead::NoDescriptor)),
            (2, Err(failed)),
        ];
        let bytes = recorded(8, &calls).expect("there is room");
        let mut reading = again(Some(&bytes));
        for (asked, answer) in calls {
            assert_eq!(read(&mut reading, asked), answer.map(<[u8]>::to_vec));
        }
        assert!(!reading.has_diverged());
        assert_eq!(read(&mut reading, 4), Err(NotRead::Unrecorded));
        assert!(reading.has_diverged());

        let mut shorter = again(Some(&bytes));
        assert_eq!(read(&mut shorter, 1), Ok(b"g".to_vec()));
        assert!(shorter.has_diverged(), "it had room for more");
        assert_eq!(read(&mut again(None), 1), Err(NotRead::Unrecorded));
    }

    #[test]
    fn more_than_there_is_room_for_is_not_recorded_in_part() {
        let full = [(200, Ok(&[7; 136][..]))];
        assert!(recorded(8, &full).is_none() && recorded(16, &full).is_some());
        assert!(recorded(8, &[full[0], (1, Err(NotRead::Nothing))]).is_none());
    }

    #[test]
    fn bytes_that_are_no_calls_are_refused() {
        let bytes = recorded(8, &[(4, Ok(b"go")), (4, Err(NotRead::Nothing))]).expect("there is room");
        for length in 0..bytes.len() {
            let are_calls = Reading::new(8).begin_again(Some(&bytes[..length]));
            assert_eq!(are_calls, [0, 10].contains(&length), "{length} bytes");
        }
    }
}
