//! What jobs push into channels, as bytes. Channels themselves are not known here, nor how they make bytes.

use talea_model::PublicationId;

/// What a job pushed, or wanted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushedBytes {
    /// As what it is published.
    pub publication: PublicationId,
    /// Which of the pushes of the job it is, from 0; [the last number](Self::LAST) is that of all others, too, and these are not kept.
    pub number: u16,
    /// The event: its header and what it carries. Empty: there was no room for it. None: it is longer than what is kept.
    pub bytes: Option<Vec<u8>>,
}

impl PushedBytes {
    /// The greatest number.
    pub const LAST: u16 = u16::MAX;
}

/// What a push into a channel of a program was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushAnswer {
    /// It was pushed.
    Pushed {
        /// Consumers that had subscribed to the type.
        subscribed: u32,
        /// Those of them for which the event waited then.
        queued: u32,
        /// Those for which it was discarded.
        discarded: u32,
    },
    /// Filters of its supplier did not let it through, or might have taken longer than it was worth something.
    LeftOut,
    /// It was refused for what the event is itself, as the same one is again.
    Unfit,
    /// The channel had been destroyed.
    Closed,
    /// The supplier had been removed.
    NotConnected,
    /// As many events waited as might, and the channel rejected more.
    Rejected,
    /// The process had too many types.
    TooManyTypes,
}

impl PushAnswer {
    /// As many bytes as one becomes at most.
    pub const BYTES: usize = 1 + 3 * NUMBER;

    /// Those without numbers, in the order of their first bytes, from 1 on.
    const SIMPLE: [PushAnswer; 6] = [
        PushAnswer::LeftOut,
        PushAnswer::Unfit,
        PushAnswer::Closed,
        PushAnswer::NotConnected,
        PushAnswer::Rejected,
        PushAnswer::TooManyTypes,
    ];

    /// Writes it: one byte, and behind 0 its numbers, seven bits to a byte, the lowest first. Returns how many bytes; none if there is no room.
    pub fn encode(self, to: &mut [u8]) -> Option<usize> {
        let simple = PushAnswer::SIMPLE.iter().position(|simple| *simple == self);
        *to.first_mut()? = simple.map_or(0, |place| place as u8 + 1);
        let PushAnswer::Pushed { subscribed, queued, discarded } = self else { return Some(1) };
        [subscribed, queued, discarded].iter().try_fold(1, |end, number| {
            let rest = to.get_mut(end..)?;
            Some(end + write_number(*number, rest)?)
        })
    }

    /// That which has these bytes, and no others.
    pub fn decode(from: &[u8]) -> Option<Self> {
        let (first, mut rest) = from.split_first()?;
        let answer = match usize::from(*first).checked_sub(1) {
            Some(place) => *PushAnswer::SIMPLE.get(place)?,
            None => PushAnswer::Pushed {
                subscribed: read_number(&mut rest)?,
                queued: read_number(&mut rest)?,
                discarded: read_number(&mut rest)?,
            },
        };
        rest.is_empty().then_some(answer)
    }
}

/// Bytes of a number at most.
const NUMBER: usize = 5;

fn write_number(mut number: u32, to: &mut [u8]) -> Option<usize> {
    for (place, byte) in to.iter_mut().enumerate() {
        let more = u8::from(number > 0x7f) << 7;
        *byte = (number & 0x7f) as u8 | more;
        number >>= 7;
        if more == 0 {
            return Some(place + 1);
        }
    }
    None
}

fn read_number(from: &mut &[u8]) -> Option<u32> {
    let mut number = 0u64;
    for place in 0..NUMBER {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return u32::try_from(number).ok();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_the_same_behind_their_bytes() {
        let numbers = [0, 1, 0x7f, 0x80, 0x3fff, 0x4000, 1 << 28, u32::MAX];
        let pushed = numbers.iter().zip(numbers.iter().rev()).map(|(one, other)| PushAnswer::Pushed {
            subscribed: *one,
            queued: *other,
            discarded: one / 3,
        });
        for answer in pushed.chain(PushAnswer::SIMPLE) {
            let mut bytes = [0xee; PushAnswer::BYTES];
            let length = answer.encode(&mut bytes).expect("there is room");
            assert_eq!(PushAnswer::decode(&bytes[..length]), Some(answer));
            for short in 0..length {
                assert_eq!(answer.encode(&mut vec![0; short]), None);
                assert_eq!(PushAnswer::decode(&bytes[..short]), None);
            }
            assert_eq!(PushAnswer::decode(&[&bytes[..length], &[0]].concat()), None);
        }
        assert_eq!(PushAnswer::decode(&[7]), None);
        assert_eq!(PushAnswer::decode(&[0, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0]), None);
    }
}
