//! Any bytes as an event, and as a value (`held_bytes.rs` among the tests of `talea-wire`).

#![no_main]

#[path = "../../crates/wire/tests/main/held_bytes.rs"]
mod held_bytes;
#[path = "../../crates/wire/tests/main/vectors.rs"]
mod vectors;

use libfuzzer_sys::fuzz_target;
use std::borrow::Cow;
use talea_etcl::Event;
use talea_wire::{Body, Encoding, Header, Message};

fuzz_target!(
    init: {
        let by_hand = vectors::vectors().into_iter().map(|(bytes, _)| bytes);
        talea_fuzz::seed(by_hand.chain(talea_fuzz::vectors().into_iter().flat_map(|(_, event)| sent(&event))));
    },
    |data: &[u8]| held_bytes::hold(data)
);

/// The event as it is sent, and the remainder of its body as a value.
fn sent(event: &str) -> Vec<Vec<u8>> {
    let event = Event::from_json(event).expect("an event of the vectors");
    let remainder = Message::remainder(&event);
    let body = remainder.as_ref().map_or(Body::NONE, |bytes| Body { encoding: Encoding::Value, bytes });
    let mut message = Message::new(Header::new(event.domain_name(), Event::type_name(&event)), body);
    message.header.event_name = event.event_name();
    message.variable_header = Cow::Borrowed(event.variable_header());
    message.filterable_data = Cow::Borrowed(event.filterable_data());
    [Some(message.encode()), remainder.clone()].into_iter().flatten().collect()
}
