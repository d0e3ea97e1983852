//! No file content makes reading panic, and each kind of damage has its message.

use proptest::prelude::*;
use std::fs;
use std::path::Path;
use talea_record::*;
use talea_samples::*;

fn log_bytes() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    let mut log = LogWriter::create(&path, &metadata()).unwrap();
    (0..20).for_each(|n| log.record(numbered(n)));
    log.finish().unwrap();
    fs::read(&path).unwrap()
}

fn ring_bytes() -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let mut file = RingFile::create(&path, &metadata(), &writers(2), 16).unwrap();
    let mut writer = file.writer(0);
    (0..20).for_each(|n| writer.record(numbered(n)));
    drop(writer);
    fs::read(&path).unwrap()
}

/// Opens a file of these bytes and reads everything in it.
fn read(bytes: &[u8]) -> Result<Vec<Record>, TraceError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, bytes).unwrap();
    let mut records = Vec::new();
    TraceFile::open(&path)?.replay(&mut records)?;
    Ok(records)
}

fn damaged(bytes: &[u8], at: usize, with: &[u8]) -> TraceError {
    let mut bytes = bytes.to_vec();
    bytes[at..at + with.len()].copy_from_slice(with);
    read(&bytes).unwrap_err()
}

#[test]
fn each_damage_has_its_message() {
    let (log, rings) = (log_bytes(), ring_bytes());
    let cut = |length: usize| read(&log[..length]).unwrap_err();
    let json = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let at = log.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        damaged(&log, at, to.as_bytes())
    };
    let cases = [
        (
            read(b"").unwrap_err(),
            "the file is empty; was the run that should have written it killed before it began?",
        ),
        (read(b"time,event\n").unwrap_err(), "this is not a Talea trace"),
        (
            read(&[0; 4096]).unwrap_err(),
            "the trace is not complete from its creation; if the run has only just begun, try again",
        ),
        (cut(60), "the trace is cut off: it has 60 bytes of at least 128"),
        (cut(200), "the trace is cut off: it has 200 bytes of at least"),
        (damaged(&log, 8, &[9]), "the trace has format version 9, but this Talea reads versions 3 to 5"),
        (damaged(&log, 8, &[2]), "the trace has format version 2, but"),
        // Who follows and who writes such a stream expect families to be switched on by each other.
        (damaged(&rings, 8, &[2]), "the trace has format version 2, but"),
        (damaged(&log, 12, &[7]), "the head of the trace is damaged: kind"),
        (damaged(&log, 16, &[41]), "the head of the trace is damaged: record size"),
        (damaged(&log, 20, &[1]), "the head of the trace is damaged: number or capacity of rings"),
        (damaged(&rings, 24, &[17]), "the head of the trace is damaged: number or capacity of rings"),
        (damaged(&rings, 26, &[1]), "the head of the trace is damaged: number or capacity of rings"),
        (damaged(&rings, 24, &[0, 1]), "the trace is cut off"),
        (
            damaged(&rings, 24, &[0, 0, 0, 0, 0, 0, 0, 128]),
            "the head of the trace is damaged: capacity of rings",
        ),
        (damaged(&log, 32, &[9]), "the head of the trace is damaged: metadata offset"),
        (damaged(&log, 48, &[9]), "the head of the trace is damaged: data offset"),
        (damaged(&rings, 56, &[9]), "the head of the trace is damaged: ring stride or padding"),
        (damaged(&log, 64, b"sundial\0"), "the trace uses an unknown clock \"sundial"),
        (damaged(&log, 128, b"["), "the metadata of the trace are damaged: "),
        (
            json("\"lane\":1", "\"lane\":7"),
            "the metadata of the trace are damaged: entry 1 of operations refers to entry 7 of a table of 2",
        ),
    ];
    for (error, expected) in cases {
        assert!(error.to_string().starts_with(expected), "{error}\n{expected}");
    }
}

#[test]
fn traces_of_the_versions_before_are_read() {
    for mut bytes in [log_bytes(), ring_bytes()] {
        assert_eq!(bytes[8], 5, "this version's own");
        let records = read(&bytes).unwrap();
        for version in [3, 4] {
            bytes[8] = version;
            assert_eq!(read(&bytes).unwrap(), records);
        }
    }
}

/// Where a region of a file of rings begins: 80 the control pages, 96 the directory.
fn region(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// A file of rings whose directory has this entry and no other.
fn with_entry(entry: &str) -> Vec<u8> {
    let mut bytes = ring_bytes();
    let directory = region(&bytes, 96);
    let padded = entry.len().next_multiple_of(8);
    bytes[directory..directory + 8].copy_from_slice(&(8 + padded as u64).to_le_bytes());
    bytes[directory + 8..directory + 16].copy_from_slice(&(entry.len() as u64).to_le_bytes());
    bytes[directory + 16..directory + 16 + entry.len()].copy_from_slice(entry.as_bytes());
    bytes
}

/// The names of the families that a file of these bytes has itself.
fn families(bytes: &[u8]) -> Result<Vec<String>, TraceError> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    fs::write(&path, bytes).unwrap();
    let entries = TraceFile::open(&path)?.directory()?;
    Ok(entries.entries().iter().map(|entry| entry.family.name.clone().into_owned()).collect())
}

fn entry(number: u8, switch: usize, event: &str, passive: &str) -> String {
    let event = format!("{{\"number\":0,\"name\":\"e\",\"about\":\"\",\"fields\":[{event}]}}");
    let family = format!("{{\"number\":{number},\"name\":\"f\",\"about\":\"\",\"events\":[{event}]}}");
    format!("{{\"family\":{family},\"switch\":{switch},\"passive\":[{passive}]}}")
}

fn counter(switch: usize, place: usize) -> String {
    format!(
        "{{\"name\":\"c\",\"about\":\"\",\"kind\":{{\"kind\":\"counter\"}},\"switch\":{switch},\"place\":{place}}}"
    )
}

#[test]
fn each_damage_of_a_directory_has_its_message() {
    assert_eq!(families(&with_entry(&entry(0x40, 256, "", &counter(257, 8)))).unwrap(), ["f"]);
    let error = |bytes: &[u8]| families(bytes).unwrap_err().to_string();
    let of = |text: String| error(&with_entry(&text));
    let word = |offset: usize, value: u64| {
        let mut bytes = with_entry(&entry(0x40, 256, "", ""));
        let at = region(&bytes, 96) + offset;
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        error(&bytes)
    };
    let misfit = "{\"name\":\"x\",\"kind\":\"u64\",\"place\":{\"part\":\"first\",\"shift\":8}}";
    let place = "family \"f\" has a number, switches or places that it cannot have";
    let histogram =
        counter(257, 8).replace("\"counter\"", "\"histogram\",\"lower\":0,\"width\":0,\"buckets\":4");
    let cases = [
        (word(0, u64::MAX), "entry 0 reaches beyond its end"),
        (word(0, 12), "entry 0 reaches beyond its end"),
        (word(8, u64::MAX), "entry 0 reaches beyond its end"),
        (word(8, 1 << 17), "entry 0 reaches beyond its end"),
        (of("{".into()), "entry 0: EOF while parsing"),
        (of("[]".into()), "entry 0: invalid length 0"),
        (of(entry(0x01, 256, "", "")), place),
        (of(entry(0x05, 256, "", "")), place),
        (of(entry(0x10, 256, "", "")), place),
        (of(entry(0x40, 3, "", "")), place),
        (of(entry(0x40, 1792, "", "")), place),
        (of(entry(0x40, usize::MAX, "", "")), place),
        (
            of(entry(0x40, 256, misfit, "")),
            "field \"x\" of event \"e\" does not fit into its part of the record",
        ),
        (of(entry(0x40, 256, "", &counter(9, 8))), place),
        (of(entry(0x40, 256, "", &counter(257, 4))), place),
        (of(entry(0x40, 256, "", &counter(257, 1 << 17))), place),
        (of(entry(0x40, 256, "", &histogram)), place),
        (
            damaged(&ring_bytes(), 80, &[1]).to_string(),
            "the head of the trace is damaged: place of the control pages",
        ),
        (
            damaged(&ring_bytes(), 120, &[1]).to_string(),
            "the head of the trace is damaged: place of the control pages",
        ),
    ];
    for (error, expected) in cases {
        let expected = if expected.starts_with("the head") {
            expected.to_owned()
        } else {
            format!("the directory of the trace is damaged: {expected}")
        };
        assert!(error.starts_with(&expected), "{error}\n{expected}");
    }
}

#[test]
fn a_missing_file_is_an_operating_error() {
    assert!(matches!(TraceFile::open(Path::new("/no/such/file")), Err(TraceError::Io(_))));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&bytes);
        let mut disguised = b"TALEATRC\x02\0\0\0".to_vec();
        disguised.extend(bytes);
        let _ = read(&disguised);
    }

    /// Whatever stands in control pages, directory and passive area, following, listing and switching end in an answer.
    #[test]
    fn mutated_streams_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>()), 1..12),
        passive in prop::sample::select(vec!["", "counter", "histogram", "object"]),
    ) {
        use talea_record::stream::{Operator, Selection, Start, StreamDirectory, Switching};
        let kind = match passive {
            "histogram" => "\"histogram\",\"lower\":0,\"width\":3,\"buckets\":4",
            "object" => "\"object\",\"fields\":[{\"name\":\"x\",\"kind\":\"f32\"}]",
            _ => "\"counter\"",
        };
        let entity = if passive.is_empty() { String::new() } else { counter(257, 8).replace("\"counter\"", kind) };
        let mut bytes = with_entry(&entry(0x40, 256, "", &entity));
        let (control, directory) = (region(&bytes, 80), region(&bytes, 96));
        // The control pages, the used part of the directory, and the beginning of the passive area.
        let places: Vec<usize> = (control..directory + 256)
            .chain(directory + (256 << 10)..directory + (256 << 10) + 128)
            .step_by(8)
            .collect();
        for (at, value) in changes {
            let at = places[at.index(places.len())];
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let place = tempfile::tempdir().unwrap();
        let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
        let path = streams.path().join("1.damaged");
        fs::write(&path, &bytes).unwrap();
        prop_assert_eq!(streams.list().unwrap().len(), 1);
        let _ = TraceFile::open(&path).unwrap().reading("f.c");
        if let Ok(mut operator) = Operator::open(&path) {
            let _ = operator.switch(&Selection::all(), Switching::On);
            let _ = operator.take("f.c");
        }
        if let Ok(mut consumer) = TraceFile::attach(&path, "c", &Selection::all(), Start::Oldest) {
            consumer.drain(&mut Vec::new());
        }
    }

    #[test]
    fn mutated_files_never_panic(
        log in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        near_head in any::<bool>(),
        length in any::<prop::sample::Index>(),
    ) {
        let mut bytes = if log { log_bytes() } else { ring_bytes() };
        let range = if near_head { 128 } else { bytes.len() };
        for (at, value) in changes {
            bytes[at.index(range)] = value;
        }
        let _ = read(&bytes);
        bytes.truncate(length.index(bytes.len() + 1));
        let _ = read(&bytes);
    }
}
