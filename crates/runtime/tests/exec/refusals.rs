//! What cannot run is refused with a remedy.

use super::*;
use talea_model::LaneDispatch;
use talea_runtime::PrepareError;
use talea_runtime::lowering::{Band, LoweringError};

fn refusal(system: &System, options: RunOptions) -> PrepareError {
    let _alone = alone();
    Executive::prepare(system, Operations::synthetic(), options).expect_err("it is refused")
}

#[test]
fn a_cpu_that_is_not_there() {
    let system =
        system(Strategy::Edf).node("far", [0, 1000]).task(task("job", 10, 1)).build().expect("a system");
    for rt in RtMode::ALL {
        let error = refusal(&system, options(rt, 10));
        let PrepareError::MissingCpus { node, missing, available } = &error else { panic!("{error}") };
        assert_eq!((node.as_str(), missing.as_slice()), ("far", &[1000][..]));
        assert!(!available.is_empty() && error.to_string().contains("may use only"), "{error}");
    }
}

#[test]
fn more_lanes_than_priorities() {
    let tasks = (1..=5).map(|n| task(&format!("t{n}"), 10 * n, 1));
    let system = tasks.fold(system(Strategy::Rms), SystemBuilder::task).build().expect("a system");
    let narrow = RunOptions { band: Band { top: 5, bottom: 1 }, ..options(RtMode::Off, 10) };
    let error = refusal(&system, narrow);
    let PrepareError::Lowering { source, .. } = &error else { panic!("{error}") };
    assert_eq!(*source, LoweringError::TooFewPriorities { lanes: 5, needed: 5, available: 4 });
}

#[test]
fn a_preemptive_lane_on_two_cpus() {
    let system = system(Strategy::Edf)
        .node("wide", [0, 1])
        .lane_dispatch(LaneDispatch::Preemptive)
        .task(task("job", 10, 1))
        .build()
        .expect("a system");
    let error = refusal(&system, options(RtMode::Off, 10));
    assert!(error.to_string().contains("one node per cpu"), "{error}");
}
