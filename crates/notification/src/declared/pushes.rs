//! What jobs push, as bytes: for who records it, and to be held against what the same jobs push again.
//!
//! ```text
//!   number             which of the pushes of the job it is, from 0 (2 bytes, little-endian); only on the way to who records it
//!   (header, content)  as of events that are taken; nothing if there was no room for the event
//! ```

use crate::event::Event;
use crate::kept::{Contents, behind_length, encode_event};
use std::sync::Arc;
use talea_channel::{Codec, Handling, KeptEnd, Output, OutputPort, Visible};
use talea_model::PublicationId;
use talea_operation::PushedBytes;
use talea_time::Instant;

/// One push, in a slot of a connection, and used again.
pub(super) struct Pushed {
    contents: Arc<Contents>,
    number: u16,
    /// None if there was no room for it.
    event: Option<Event>,
}

impl Pushed {
    const CODEC: Codec<Pushed> = Codec {
        encode: |pushed, to| {
            let (number, rest) = to.split_first_chunk_mut()?;
            *number = pushed.number.to_le_bytes();
            let event = pushed.event.as_ref();
            let length = event.map_or(Some(0), |event| encode_event(&*pushed.contents, event, rest))?;
            // The last number is that of all that come behind, too.
            (pushed.number < PushedBytes::LAST).then_some(number.len() + length)
        },
        decode: |_, _| false,
    };
}

/// Which push of which job it is.
#[derive(Clone, Copy)]
pub(super) struct PushPlace {
    pub instance: u64,
    pub number: u16,
    /// An instant at which that job had begun.
    pub begun: Instant,
}

/// What is done with the pushes of one publication beside pushing them.
#[derive(Default)]
pub(super) enum PushKeeping {
    #[default]
    Nothing,
    /// They go to who records them.
    Port(OutputPort<Pushed>),
    /// They are made bytes of at once, with the help of `buffer`, which has room for as many as are kept.
    AtOnce { buffer: Vec<u8>, pushed: Vec<PushedBytes> },
}

/// What has to be known of a publication to keep what is pushed.
#[derive(Clone, Copy)]
pub(super) struct Keeper<'a> {
    pub contents: &'a Arc<Contents>,
    pub publication: PublicationId,
}

impl PushKeeping {
    /// Events that may be held at once for who records them, when there is to be room for so many.
    pub fn held(room: usize) -> usize {
        if room == 0 { 0 } else { 2 * room + 1 }
    }

    /// From now on they go to the end that is returned, with room for so many; none if they are never bytes.
    pub fn keep(
        &mut self,
        Keeper { contents, publication }: Keeper<'_>,
        room: usize,
    ) -> Option<Box<dyn KeptEnd>> {
        if !contents.has(publication) {
            return None;
        }
        let slot = || Pushed { contents: Arc::clone(contents), number: 0, event: None };
        let handling = Handling { same: None, codec: Some(Pushed::CODEC) };
        let (port, _no_readers, end) = OutputPort::kept(&[], handling, room, slot);
        *self = PushKeeping::Port(port);
        end
    }

    /// An event is pushed; none: there was no room for it. Returns whether there is room for who records that. Neither allocates nor waits, but where
    /// bytes are made of it at once.
    pub fn take(&mut self, keeper: Keeper<'_>, place: PushPlace, event: Option<&Event>) -> bool {
        match self {
            PushKeeping::Nothing => true,
            PushKeeping::Port(port) => {
                let slot = port.value();
                (slot.number, slot.event) = (place.number, event.cloned());
                let mut has_room = true;
                port.publish(place.instance, Visible::To(place.begun), &mut |_| has_room = false);
                has_room
            }
            PushKeeping::AtOnce { buffer, pushed } => {
                let length = event.map_or(Some(0), |event| encode_event(&**keeper.contents, event, buffer));
                let length = length.filter(|_| place.number < PushedBytes::LAST);
                let bytes = length.map(|length| buffer[..length].to_vec());
                pushed.push(PushedBytes { publication: keeper.publication, number: place.number, bytes });
                true
            }
        }
    }
}

/// The number of a push and its bytes, from what a [kept end](talea_operation::EventEnds::keep_pushes) gives. None if these are none.
pub fn numbered_push(from: &[u8]) -> Option<(u16, &[u8])> {
    let (number, event) = from.split_first_chunk()?;
    Some((u16::from_le_bytes(*number), event))
}

/// The header and the content in the bytes of an event that a job pushed. None if these are none.
pub fn parts_of_push(mut from: &[u8]) -> Option<(&[u8], &[u8])> {
    let header = behind_length(&mut from)?;
    let content = behind_length(&mut from)?;
    from.is_empty().then_some((header, content))
}
