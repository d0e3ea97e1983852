//! Tasks whose arrivals are merged with an instance that waits.

use std::path::Path;
use talea_check::{Verdict, check};

/// Values come faster than the reader is through with one. What is merged is no miss, and with a separation there is a bound.
#[test]
fn what_is_merged_is_not_missed() {
    let text = |separation: &str| {
        format!(
            "[system]\nname = \"s\"\nstrategy = \"rms\"\n[[node]]\nname = \"a\"\ncpus = [0]\n[[node]]\nname = \"b\"\ncpus = [1]\n\
             [[task]]\nname = \"camera\"\nnode = \"a\"\nperiod = \"5ms\"\nwcet = \"1ms\"\noutputs = [{{ name = \"frame\" }}]\n\
             [[task]]\nname = \"detect\"\nnode = \"b\"\ntrigger = {{ output = \"camera.frame\" }}\noverrun = \"merge\"\n\
             deadline = \"70ms\"\nwcet = \"17ms\"\n{separation}"
        )
    };
    let verdicts = |separation: &str| {
        let system =
            talea_model::parse("s.toml", &text(separation), Path::new(".")).expect("a system").system;
        let report = check(&system).expect("small numbers").report;
        report.tasks.iter().map(|task| task.verdict).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(""), [Verdict::Holds, Verdict::Open], "nothing bounds how much it asks for");
    // 20 ms at the guard, and 17 ms.
    assert_eq!(verdicts("separation = \"20ms\"\n"), [Verdict::Holds; 2]);
}
