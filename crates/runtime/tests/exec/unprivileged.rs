//! Without privileges a run still works and says what it lacks; strict mode refuses.

use super::*;
use std::process::Command;
use talea_runtime::PrepareError;

/// Tells the ignored test that it is in a process of its own, whose privileges it may end.
const OWN_PROCESS: &str = "TALEA_TEST_IN_OWN_PROCESS";
/// The user "nobody".
const NOBODY: u32 = 65_534;

#[test]
fn strict_refuses_and_warn_runs_without() {
    let _alone = alone();
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command
        .args(["exec::unprivileged::as_nobody", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(OWN_PROCESS, "yes");
    let output = talea_measure::output_of(&mut command).expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{complained}");
}

#[test]
#[ignore = "run by strict_refuses_and_warn_runs_without, as nobody"]
fn as_nobody() {
    assert!(std::env::var_os(OWN_PROCESS).is_some(), "this test ends its process's privileges");
    // SAFETY: the call takes plain numbers and changes every thread of the process, which runs nothing
    // but this test. Where it is refused the process is not privileged in the first place.
    unsafe { libc::setresuid(NOBODY, NOBODY, NOBODY) };
    let system = system(Strategy::Rms).task(task("job", 10, 1)).build().expect("a system");
    match Executive::prepare(&system, Operations::synthetic(), options(RtMode::Strict, 50)) {
        Err(error @ PrepareError::NotPermitted { .. }) => {
            assert!(error.to_string().contains("rtprio"), "{error}");
        }
        Err(error) => panic!("{error}"),
        Ok(_) => {
            talea_measure::skip("even nobody has real-time priorities here");
            return;
        }
    }
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Warn, 0), ended("job", 3));
    assert!(!ran.outcome.realtime && !ran.outcome.missing.is_empty(), "{:?}", ran.outcome.missing);
    assert!(ran.outcome.threads.iter().all(|thread| thread.actual_policy == "SCHED_OTHER"));
    let ran = run_until(&system, Operations::synthetic(), options(RtMode::Off, 0), ended("job", 3));
    assert!(!ran.outcome.realtime && ran.outcome.missing.is_empty(), "{:?}", ran.outcome.missing);
}
