//! The Perfetto export against Perfetto's own schema, which its package for Python has.

use std::path::Path;
use std::process::Command;
use talea_export::PerfettoExport;
use talea_measure::skip;
use talea_record::declaration::Text;
use talea_record::namespace::NameSpace;
use talea_record::{Event, Record, Sink};
use talea_samples::*;

/// Where `cargo xtask test` installs the package.
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/python");

/// What the schema has against the trace. `None`, visibly, if it is not there.
fn faults(trace: &Path) -> Option<Vec<String>> {
    let python =
        |arguments: &[&str]| Command::new("python3").args(arguments).env("PYTHONPATH", PACKAGES).output();
    let probe = python(&[
        "-c",
        "import google.protobuf.unknown_fields, perfetto.protos.perfetto.trace.perfetto_trace_pb2",
    ]);
    if !probe.is_ok_and(|output| output.status.success()) {
        skip("python3 has no package perfetto, which `cargo xtask test` installs below target where it can");
        return None;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/main/perfetto_schema.py");
    let output = python(&[script, trace.to_str().expect("a plain path")]).expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("a list of faults"))
}

/// A small run, the kernel's events beside it, and one record of every builtin event.
fn records() -> Vec<Record> {
    let end = RUN_START_NS as u64 + 50_000_000;
    let [low, high] = Text::new("worker").words();
    let kernel = [
        Record { event: Event::THREAD_NAME, causal: 70 << 32 | 71, words: [low, high], ..numbered(end) },
        Record { event: Event::WAKEUP, words: [71 | 5 << 32, 1 | 49 << 32], cpu: 0, ..numbered(end + 1) },
        Record { event: Event::SWITCH, words: [71 << 32, 70 << 32], cpu: 1, ..numbered(end + 2) },
        Record { event: Event::SWITCH, words: [71, 70], arg: 1, cpu: 1, ..numbered(end + 3) },
    ];
    let names = NameSpace::default();
    let builtin = names.families().iter().flat_map(|family| {
        family.events.iter().map(|event| Event(u16::from(family.number) << 8 | u16::from(event.number)))
    });
    let each = (4u64..).zip(builtin).map(|(after, event)| Record { event, cpu: 1, ..numbered(end + after) });
    small_run().into_iter().chain(kernel).chain(each).collect()
}

#[test]
fn perfettos_schema_has_nothing_against_an_export() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.pftrace");
    let mut export = PerfettoExport::new(&metadata(), &NameSpace::default(), &[], Vec::new());
    let records = records();
    records.iter().for_each(|record| export.record(*record));
    let last = records.last().expect("there are some").time;
    std::fs::write(&path, export.finish(last).expect("written to memory")).expect("written");
    if let Some(faults) = faults(&path) {
        assert_eq!(faults, Vec::<String>::new());
    }
}
