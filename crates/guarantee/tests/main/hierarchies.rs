//! Hierarchies that make no sense are refused with everything that is wrong with them.

use crate::sketch::{Sketch, algorithm, figure_1};
use talea_guarantee::hierarchy::{Graph, Hierarchy};
use talea_guarantee::scheduler::Algorithm;

fn faults(hierarchy: &Hierarchy) -> Vec<String> {
    Graph::new(hierarchy).expect_err("it makes no sense").iter().map(ToString::to_string).collect()
}

fn assert_fault(sketch: Sketch, message: &str) {
    let faults = faults(&sketch.0);
    assert!(faults.iter().any(|fault| fault.contains(message)), "{faults:?} lacks {message}");
}

fn base() -> Sketch {
    Sketch::new().scheduler("root", "fixed-priority").thread("t", "")
}

#[test]
fn every_fault_says_what_to_do() {
    assert_fault(Sketch::new(), "needs one at its root");
    assert_fault(base(), "nothing schedules the thread \"t\"");
    assert_fault(base().thread("t", "").edge("root", "t", "p1"), "\"t\" names more than one");
    assert_fault(base().edge("rooot", "t", "p1"), "did you mean \"root\"?");
    assert_fault(
        base().thread("u", "").edge("root", "t", "p1").edge("t", "u", "p1"),
        "is a thread and schedules",
    );
    assert_fault(base().scheduler("other", "stride").edge("root", "t", "p1"), "root, other have no parent");
    assert_fault(base().edge("root", "t", "w1"), "a fixed-priority scheduler takes a priority");
    assert_fault(base().edge("root", "t", "RESBH 1 2"), "t asks root for RESBH 1ms 2ms");
    assert_fault(
        base().thread("u", "").edge("root", "t", "p1").edge("root", "u", "p1"),
        "both have priority 1",
    );
    assert_fault(base().edge("root", "t", "p1").edge("root", "t", "p2"), "put a join above it");
    let stride = Sketch::new().scheduler_with("root", algorithm("sfq", 0)).thread("t", "");
    assert_fault(stride.edge("root", "t", "w1"), "quantum of \"root\" is zero");
    let rialto = Sketch::new().scheduler("root", "rialto").thread("t", "");
    assert_fault(rialto.edge("root", "t", "RESBH 1 2"), "takes a guarantee of kind RESCS");
    let join = base().scheduler("j", "join").edge("root", "j", "p1").edge("j", "t", "");
    assert_fault(join.thread("u", "").edge("j", "u", ""), "is a join and has one child, not 2");
    let mut stranger = figure_1();
    stranger.schedulers[2].algorithm = Algorithm::join(Some("PS".into()));
    assert!(faults(&stranger)[0].contains("its parents are FP, RES"), "{:?}", faults(&stranger));
}

#[test]
fn circles_are_found_and_shown() {
    let circle = base()
        .scheduler("a", "time-sharing")
        .scheduler("b", "time-sharing")
        .edge("root", "a", "p1")
        .edge("a", "b", "")
        .edge("b", "a", "")
        .edge("b", "t", "");
    let faults = faults(&circle.0);
    assert_eq!(faults.len(), 1);
    assert!(faults[0].starts_with("a -> b -> a schedule each other") || faults[0].starts_with("b -> a -> b"));
}

#[test]
fn all_faults_are_reported_together() {
    let several = base().thread("u", "").edge("root", "t", "w1").edge("root", "u", "");
    assert_eq!(faults(&several.0).len(), 2);
}

#[test]
fn hierarchies_read_back_from_json() {
    let hierarchy = figure_1();
    let text = serde_json::to_string(&hierarchy).expect("JSON");
    assert_eq!(serde_json::from_str::<Hierarchy>(&text).expect("it was written by us"), hierarchy);
}

#[test]
fn what_is_not_known_is_not_ignored() {
    for (text, message) in [
        (r#"{"name": "s", "kind": "sqf", "quantum_ns": 5}"#, "did you mean \"sfq\"?"),
        (r#"{"name": "s", "kind": "sfq"}"#, "write one, such as 10ms"),
        (r#"{"name": "s", "kind": "lottery", "colour": 5}"#, "unknown field `colour`"),
    ] {
        let text = format!(r#"{{"schedulers": [{text}], "threads": [], "edges": []}}"#);
        let error = serde_json::from_str::<Hierarchy>(&text).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}
