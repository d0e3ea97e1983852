//! Every command on damaged traces: no panic, no memory or time without end, and a word about what is wrong.

use crate::support::{Done, example, run, traced, within};
use std::fs;
use std::process::{Command, Stdio};

/// The command with these arguments, with memory for what it should need and no more.
fn confined(arguments: &[&str]) -> Done {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v 2000000; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_talea")]);
    command.args(arguments).stdin(Stdio::null());
    let done: Done = command.output().expect("there is a shell").into();
    assert!((0..=2).contains(&done.status), "{arguments:?}: {} {}", done.status, done.stderr);
    done
}

/// What every reader makes of the trace: what it prints, and whether it says that something is wrong.
fn readings(system: &str, trace: &str, csv: &str) -> Vec<(String, bool)> {
    let commands: [&[&str]; 6] = [
        &["show", trace, "--json"],
        &["stats", trace, "--jobs", "--json"],
        &["explain", trace, "--worst", "--json"],
        &["explain", trace, "--json"],
        &["verify", system, trace, "--json"],
        &["export", trace, "--csv", csv],
    ];
    let one = |command: &[&str]| {
        let done = confined(&[&["trace"], command].concat());
        let mut text = done.stdout;
        if command[0] == "export" {
            text = fs::read_to_string(csv).unwrap_or_default();
        }
        (text, ["error: ", "warning: ", "note: "].iter().any(|word| done.stderr.contains(word)))
    };
    commands.into_iter().map(one).collect()
}

/// Numbers that look like any others, the same in every run.
fn scattered(count: usize) -> impl Iterator<Item = u64> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::from_fn(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some(state >> 20)
    })
    .take(count)
}

#[test]
fn a_trace_with_changed_bytes_is_told_or_reads_the_same() {
    let system = example("two-nodes.toml");
    let (place, trace) = traced(&["sim", &system, "--for", "100ms"]);
    let csv = within(&place, "out.csv");
    let whole = readings(&system, &trace, &csv);
    assert!(whole.iter().all(|(text, is_told)| !text.is_empty() && !is_told), "{whole:?}");
    let bytes = fs::read(&trace).expect("there");
    let data = u64::from_le_bytes(bytes[48..56].try_into().expect("a word")) as usize;
    for (round, number) in scattered(36).enumerate() {
        // Mostly in the records, now and then in the head and the tables.
        let begin = if round % 4 == 0 { 128 } else { data };
        let end = if round % 4 == 0 { 2_000 } else { bytes.len() };
        let mut changed = bytes.clone();
        for step in 0..1 + round % 3 {
            changed[begin + (number as usize + step * 1_013) % (end - begin)] ^= (number >> 8) as u8 | 1;
        }
        if round % 6 == 5 {
            changed.truncate(data + (number as usize) % (bytes.len() - data));
        }
        fs::write(&trace, &changed).expect("writable");
        let _ = fs::remove_file(&csv);
        for (reading, whole) in readings(&system, &trace, &csv).iter().zip(&whole) {
            assert!(reading.1 || reading.0 == whole.0, "round {round}: {}", reading.0);
        }
    }
}

#[test]
fn a_damaged_trace_is_no_proof() {
    let system = example("hello.toml");
    let (_place, trace) = traced(&["sim", &system, "--for", "1s"]);
    run(&["trace", "verify", &system, &trace]).exits(0);
    let mut bytes = fs::read(&trace).expect("there");
    let data = u64::from_le_bytes(bytes[48..56].try_into().expect("a word")) as usize;
    // The lane of the eleventh record.
    bytes[data + 10 * talea_record::Record::BYTES + 35] ^= 0x40;
    fs::write(&trace, &bytes).expect("writable");
    let done = run(&["trace", "verify", &system, &trace]);
    assert!(done.stderr.contains("1 record cannot be and is left out, the first at byte"), "{}", done.stderr);
    assert!(done.status != 0, "{}", done.stdout);
    for command in ["show", "stats", "explain"] {
        let done = run(&["trace", command, &trace]).exits(0);
        assert!(done.stderr.contains("another checksum than when written"), "{}", done.stderr);
    }
}
