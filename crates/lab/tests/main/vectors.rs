use std::path::Path;
use talea_lab::vectors::{self, Outcome, Tally};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors"))
}

#[test]
fn every_uniprocessor_trace_passes() {
    let results = vectors::run_file(&folder().join("traces_uniproc.json")).expect("readable");
    for result in results.iter().filter(|result| result.outcome != Outcome::Passed) {
        println!("{}: {:?}", result.id, result.outcome);
    }
    assert_eq!(Tally::of(&results), Tally { passed: 39, failed: 0, unsupported: 0 });
}

#[test]
fn what_no_runner_knows_is_unsupported_and_nothing_fails() {
    for file in vectors::files(folder()).expect("readable") {
        let results = vectors::run_file(&file).expect("every file has a known shape");
        let tally = Tally::of(&results);
        assert!(!results.is_empty() && tally.failed == 0, "{}: {tally}", file.display());
    }
}
