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

/// With and without a bound, and where it says that no two meet.
#[test]
fn what_a_bound_means_where_instances_are_merged_is_said() {
    let remarks = |wcet: &str, overrun: &str| {
        let text = format!(
            "[system]\nname = \"s\"\n[[node]]\nname = \"a\"\ncpus = [0]\n\
             [[task]]\nname = \"busy\"\nperiod = \"10ms\"\ndeadline = \"60ms\"\nwcet = \"{wcet}\"\noverrun = \"{overrun}\"\n\
             [[task]]\nname = \"side\"\nperiod = \"100ms\"\nwcet = \"20ms\"\n"
        );
        let system = talea_model::parse("s.toml", &text, Path::new(".")).expect("a system").system;
        let report = check(&system).expect("small numbers").report;
        (report.tasks[0].bound_ns.is_some(), report.tasks[0].remarks.join("; "))
    };
    let (has_bound, remark) = remarks("7ms", "merge");
    assert!(has_bound && remark.contains("its bound is that of the instances that are executed"), "{remark}");
    let (has_bound, remark) = remarks("12ms", "merge");
    assert!(!has_bound && remark.starts_with("each arrival counts as a job"), "{remark}");
    assert_eq!(remarks("7ms", "queue"), (true, String::new()));
    let alone = "[system]\nname = \"s\"\n[[node]]\nname = \"a\"\ncpus = [0]\n\
                 [[task]]\nname = \"busy\"\nperiod = \"10ms\"\nwcet = \"7ms\"\noverrun = \"merge\"\n";
    let system = talea_model::parse("s.toml", alone, Path::new(".")).expect("a system").system;
    let report = check(&system).expect("small numbers").report;
    assert!(report.tasks[0].remarks[0].starts_with("no two of its instances are merged"));
}
