//! Events as bytes: byte for byte as the documentation says, there and back, and whatever strangers may send.

mod bodies;
mod held_bytes;
mod random;
mod vectors;

use proptest::prelude::*;
use random::{message, values};
use talea_wire::{Body, Encoding, Limits, Message, Problem, WireError};
use vectors::vectors;

#[test]
fn events_are_written_and_read_as_the_documentation_says() {
    for (bytes, message) in vectors() {
        assert_eq!(message.encode(), bytes);
        assert_eq!(Message::decode(&bytes, &Limits::default()), Ok(message));
    }
}

/// Whatever single byte is another one, and wherever the bytes end, it is an error or another event, which has these bytes.
#[test]
fn damaged_events_are_refused_or_are_other_events() {
    let limits = Limits::default();
    for (_, message) in vectors() {
        let sound = message.encode();
        for end in 0..sound.len() {
            let error = Message::decode(&sound[..end], &limits).expect_err("it is cut off");
            assert!(error.at <= end, "{error}");
        }
        let longer = [&sound[..], b"\0"].concat();
        let expected = WireError { at: sound.len(), problem: Problem::Trailing(1) };
        assert_eq!(Message::decode(&longer, &limits), Err(expected));
        for (at, value) in (0..sound.len()).flat_map(|at| (0..=255).map(move |value| (at, value))) {
            let mut bytes = sound.clone();
            bytes[at] = value;
            match Message::decode(&bytes, &limits) {
                Ok(other) => assert_eq!(other.encode(), bytes),
                Err(error) => assert!(error.at <= bytes.len(), "{error}"),
            }
        }
    }
}

fn problem(bytes: &[u8], limits: &Limits) -> Problem {
    Message::decode(bytes, limits).expect_err("there is a problem").problem
}

#[test]
fn each_problem_is_named() {
    let limits = Limits::default();
    let header = |flags: u8, more: &[u8]| {
        let head = [&b"\x01R\x01B"[..], more].concat();
        [&b"TE\x01"[..], &[flags, 0, head.len() as u8], &head, b"\0\0"].concat()
    };
    let cases: [(Vec<u8>, &str); 14] = [
        (b"XY\x01".to_vec(), "byte 0: this is no event, which begins with 54 45"),
        (
            b"TE\x02".to_vec(),
            "byte 2: the event is of version 2, and version 1 alone is read here; update the reader",
        ),
        (b"TE\x01\x00\x80".to_vec(), "byte 3: the event has parts that are not known here (flags 0x8000)"),
        (header(1, b"\0"), "byte 10: the name of the event is there and says nothing"),
        (header(2, b"\0"), "byte 10: the source is outside of its range"),
        (header(2, b"\x81\0"), "byte 10: the source is no number in its shortest form"),
        (header(4, b"\x80\x80\x08"), "byte 10: the priority is outside of its range"),
        (header(64, b"\x02"), "byte 10: the reliability is outside of its range"),
        (header(0, b"\0"), "byte 5: the header says that it has 5 bytes, and has 4"),
        (b"TE\x01\0\0\x04\x01\xff\x01B\0\0".to_vec(), "byte 7: the domain is no UTF-8"),
        (b"TE\x01\0\0\x04\x01R\x01B\x06\0".to_vec(), "byte 10: a body of kind 0x06 is not known here"),
        (
            b"TE\x01\0\0\x04\x01R\x01B\0\x01\0".to_vec(),
            "byte 11: the length of a body that is none is outside of its range",
        ),
        (
            b"TE\x01\0\0\x04\x01R\x01B\xff\0\0".to_vec(),
            "byte 10: the name of an encoding is there and says nothing",
        ),
        (b"TE\x01\0\0\x04\x01R".to_vec(), "byte 8: the event ends in the middle of the type"),
    ];
    for (bytes, expected) in cases {
        let error = Message::decode(&bytes, &limits).expect_err(expected);
        assert_eq!(error.to_string(), expected);
    }
    // Properties: the flags' high byte.
    let properties = |more: &[u8]| {
        let head = [&b"\x01R\x01B"[..], more].concat();
        [&b"TE\x01\0\x02"[..], &[head.len() as u8], &head, b"\0\0"].concat()
    };
    assert_eq!(problem(&properties(b"\0"), &limits), Problem::Empty("the filterable data"));
    assert_eq!(problem(&properties(b"\x02\x01a\0\x01a\x01"), &limits), Problem::Duplicate("a".into()));
    assert_eq!(problem(&properties(b"\x01\x01a\x0b"), &limits), Problem::Kind { what: "a value", kind: 11 });
    let label = b"\x01\x01a\x09\x01t\x01r\x02\x01x\x01x\x00";
    assert_eq!(problem(&properties(label), &limits), Problem::Duplicate("x".into()));
    let label = b"\x01\x01a\x09\x01t\x01r\x02\x01x\x01y\x02";
    assert_eq!(problem(&properties(label), &limits), Problem::Range("a label's number"));
    // What the reader allows.
    let most = |what, has, most| Problem::Limit { what, has, most };
    let deep = [&b"\x01\x01a"[..], &b"\x06\x01".repeat(16), b"\x00"].concat();
    assert_eq!(problem(&properties(&deep), &limits), most("values within values", 17, 16));
    assert_eq!(
        problem(&properties(&deep), &Limits { bytes: 20, ..limits }),
        most("bytes of an event", 48, 20)
    );
    let few = Limits { properties: 1, name_bytes: 2, ..limits };
    let two = b"\x02\x01a\0\x01b\0";
    assert_eq!(problem(&properties(two), &few), most("the number of properties", 2, 1));
    assert_eq!(problem(&properties(b"\x01\x03abc\0"), &few), most("the name of a property", 3, 2));
    // More is promised than there is: nothing is made for it.
    let endless = b"\x01\x01a\x06\xff\xff\x3f\0";
    assert_eq!(problem(&properties(endless), &limits), Problem::End("a value"));
}

#[test]
fn writing_an_event_and_reading_one_without_properties_do_not_allocate() {
    let (mut bytes, limits) = ([0; 256], Limits::default());
    for (_, message) in vectors() {
        let mut written = 0;
        let counted =
            allocation_counter::measure(|| written = message.encode_into(&mut bytes).expect("room"));
        assert_eq!((counted.count_total, written), (0, message.encoded_len()));
        let refused = message.encode_into(&mut bytes[..written - 1]).unwrap_err();
        assert_eq!((refused.needed, refused.room), (written, written - 1));
    }
    let (_, plain) = vectors().remove(0);
    let bytes = plain.encode();
    let counted = allocation_counter::measure(|| assert!(Message::decode(&bytes, &limits).is_ok()));
    assert_eq!(counted.count_total, 0);
}

proptest! {
    #[test]
    fn events_come_back_as_they_were((message, remainder) in message()) {
        let limits = Limits::default();
        let bytes = message.encode();
        prop_assert_eq!(bytes.len(), message.encoded_len());
        let read = Message::decode(&bytes, &limits).expect("an event");
        prop_assert_eq!(&read, &message);
        prop_assert_eq!(read.encode(), &bytes[..]);
        // As a structured event, with a value for a body.
        let structured = read.to_structured(&limits).expect("no body, or other bytes").with_remainder_of_body(remainder.clone());
        let body = Message::remainder(&structured).expect("it has one");
        let with_value = Message { body: Body { encoding: Encoding::Value, bytes: &body }, ..read };
        let bytes = with_value.encode();
        let again = Message::decode(&bytes, &limits).expect("an event").to_structured(&limits).expect("a value");
        prop_assert_eq!(again.remainder_of_body(), Some(&remainder));
        prop_assert_eq!(again.variable_header(), structured.variable_header());
        prop_assert_eq!(again.filterable_data(), structured.filterable_data());
    }

    #[test]
    fn whatever_bytes_come_are_an_event_of_these_bytes_or_refused(
        (message, _) in message(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3), 0..6),
    ) {
        let mut bytes = message.encode();
        for (at, value, how) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = value,
                1 => bytes.insert(at, value),
                _ => _ = bytes.remove(at),
            }
        }
        held_bytes::hold(&bytes);
    }

    #[test]
    fn values_come_back_as_they_were(value in values()) {
        let event = talea_etcl::Event::new("d", "t", "").with_remainder_of_body(value.clone());
        let bytes = Message::remainder(&event).expect("it has one");
        let body = Body { encoding: Encoding::Value, bytes: &bytes };
        prop_assert_eq!(body.value(&Limits::default()).expect("a value"), value);
    }
}
