//! A process killed by SIGKILL leaves everything it wrote.

use crate::support::*;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use talea_trace::*;

const CHILD: &str = "TALEA_TRACE_TEST_CHILD";
const RECORDS: u64 = 5000;
const READY: &str = "all records written";

/// The child's part: this test binary again, with the file's path in the environment. Run as an
/// ordinary test it has nothing to do.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let mut file = RingFile::create(path.as_ref(), &metadata(), &writers(2), 8192).unwrap();
    let mut writer = file.writer(1);
    (0..RECORDS).for_each(|n| writer.record(numbered(n)));
    println!("\n{READY}");
    // Until the parent's signal; a child whose parent died finds its standard input closed.
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_killed_process_leaves_all_its_records() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed::child", "--nocapture"])
        .env(CHILD, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map(Result::unwrap).any(|line| line == READY), "the child failed before it wrote all");
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success());

    let file = TraceFile::open(&path).unwrap();
    assert_eq!(file.rings()[1].state(), RingState::Open);
    let mut records = Vec::new();
    file.replay(&mut records).unwrap();
    assert_eq!(records, (0..RECORDS).map(numbered).collect::<Vec<_>>());
}
