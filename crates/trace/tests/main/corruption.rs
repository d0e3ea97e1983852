//! No file content makes reading panic, and each kind of damage has its message.

use crate::support::*;
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use talea_trace::*;

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
        (damaged(&log, 8, &[9]), "the trace has format version 9, but this Talea reads version 2"),
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
