//! Events byte for byte.

use talea_etcl::Properties;
use talea_event::qos::Reliability;
use talea_time::{Duration, Instant};
use talea_wire::{Body, Encoding, Header, Message, Origin};

/// Bytes by hand from the table of the documentation, each part in a line of its own, with what they say.
pub fn vectors() -> Vec<(Vec<u8>, Message<'static>)> {
    let plain = Message::new(Header::new("Robot", "Stop"), Body::NONE);
    let mut full = Message::new(Header::new("R", "B"), Body { encoding: Encoding::Named("x"), bytes: b"yz" });
    full.header = Header {
        event_name: "n",
        source: 300,
        priority: Some(-2),
        timeout: Some(Duration::from_nanos(1_000_000)),
        start: Some(Instant::from_nanos(-1)),
        stop: Some(Instant::from_nanos(64)),
        reliability: Some(Reliability::Persistent),
        origin: Some(Origin { publication: 1, operation: 2, instance: 128 }),
        ..full.header
    };
    let mut data = Properties::default();
    data.insert("a", true);
    data.insert("b", -3i64);
    data.insert("c", 5u64);
    data.insert("d", 1.5);
    data.insert("e", "hi");
    data.insert("f", vec![false.into(), 1i64.into()]);
    let mut nested = Properties::default();
    nested.insert("g", 0u64);
    data.insert("h", nested.clone());
    full.filterable_data = std::borrow::Cow::Owned(data);
    full.variable_header = std::borrow::Cow::Owned(nested);
    vec![
        ([&b"TE\x01\0\0\x0b"[..], b"\x05Robot\x04Stop", b"\x00\x00"].concat(), plain),
        (
            [
                &b"TE\x01\xff\x03\x45"[..],
                b"\x01R\x01B",
                b"\x01n",
                b"\xac\x02",
                b"\x03",
                b"\xc0\x84\x3d",
                b"\x01",
                b"\x80\x01",
                b"\x01",
                b"\x01\x02\x80\x01",
                b"\x01\x01g\x03\x00",
                b"\x07",
                b"\x01a\x01",
                b"\x01b\x02\x05",
                b"\x01c\x03\x05",
                b"\x01d\x04\0\0\0\0\0\0\xf8\x3f",
                b"\x01e\x05\x02hi",
                b"\x01f\x06\x02\x00\x02\x02",
                b"\x01h\x07\x01\x01g\x03\x00",
                b"\xff\x01x\x02yz",
            ]
            .concat(),
            full,
        ),
    ]
}
