//! Bodies in encodings that strangers read, too.

use serde::{Deserialize, Serialize};
use talea_wire::{Body, Encoding, Limits, encode_body, encode_body_into};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Battery {
    cell: u8,
    charge: f64,
    name: String,
}

fn battery() -> Battery {
    Battery { cell: 3, charge: 11.5, name: "left".into() }
}

/// What ROS 2 has for this on the wire, JSON as anybody writes it, and postcard's varints.
#[test]
fn bodies_are_as_strangers_write_them() {
    let cdr: &[u8] = b"\x00\x01\x00\x00\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\x27\x40\x05\0\0\0left\0";
    let big: &[u8] = b"\x00\x00\x00\x00\x03\0\0\0\0\0\0\0\x40\x27\0\0\0\0\0\0\0\0\0\x05left\0";
    let json: &[u8] = br#"{"cell":3,"charge":11.5,"name":"left"}"#;
    let postcard: &[u8] = b"\x03\0\0\0\0\0\0\x27\x40\x04left";
    for (encoding, bytes) in [(Encoding::Cdr, cdr), (Encoding::Json, json), (Encoding::Postcard, postcard)] {
        assert_eq!(encode_body(encoding, &battery()).expect("it can be said"), bytes, "{encoding}");
        let mut room = [0; 64];
        let mut written = 0;
        let value = battery();
        let counted = allocation_counter::measure(|| {
            written = encode_body_into(encoding, &value, &mut room).expect("there is room");
        });
        assert_eq!((&room[..written], counted.count_total), (bytes, 0), "{encoding}");
        assert!(encode_body_into(encoding, &value, &mut room[..written - 1]).is_err(), "{encoding}");
        assert_eq!(Body { encoding, bytes }.read_as::<Battery>().expect("a battery"), battery());
        for end in 0..bytes.len() {
            let cut = Body { encoding, bytes: &bytes[..end] }.read_as::<Battery>();
            // The zero behind a text of CDR says nothing.
            assert!(cut.is_err() || encoding == Encoding::Cdr && end == bytes.len() - 1, "{encoding} {end}");
        }
    }
    assert_eq!(
        Body { encoding: Encoding::Cdr, bytes: big }.read_as::<Battery>().expect("a battery"),
        battery()
    );
}

#[test]
fn what_cannot_be_read_says_why() {
    let read = |encoding, bytes: &'static [u8]| {
        Body { encoding, bytes }.read_as::<Battery>().expect_err("it cannot").to_string()
    };
    assert!(read(Encoding::Raw, b"").starts_with("raw bytes is not an encoding that serde reads"));
    assert!(read(Encoding::Named("protobuf"), b"").starts_with("protobuf is not"));
    assert!(read(Encoding::Cdr, b"\0\x07\0\0").contains("its encapsulation [00, 07, 00, 00] is neither"));
    assert!(
        read(Encoding::Postcard, b"\x03\0\0\0\0\0\0\x27\x40\x04left!").contains("1 bytes follow the value")
    );
    assert!(read(Encoding::Json, b"{}").contains("missing field"));
    let value = Body { encoding: Encoding::Value, bytes: b"\x01\x01" }.value(&Limits::default());
    assert_eq!(value.unwrap_err().to_string(), "byte 1: 1 bytes follow the event");
    assert!(Body::raw(b"\x01").value(&Limits::default()).is_err());
}
