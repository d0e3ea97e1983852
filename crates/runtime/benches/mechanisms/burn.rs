//! By how much synthetic work exceeds what it was asked for.

use super::{Effort, Stage};
use talea_linux::burn::Burner;
use talea_linux::clock::thread_cpu_time;
use talea_linux::thread::spawn;
use talea_measure::{Report, Role, Samples};
use talea_time::{Duration, Work};

const STACK: usize = 256 * 1024;

const WORKS: [(&str, Work); 3] = [
    ("burn of 5us", Work::from_nanos(5_000)),
    ("burn of 100us", Work::from_nanos(100_000)),
    ("burn of 2ms", Work::from_nanos(2_000_000)),
];

pub fn measure(stage: &Stage, effort: Effort, report: &mut Report) {
    let thread = spawn("burn", stage.policy(50), &[stage.here], STACK, move || {
        let burner = Burner::calibrate();
        let mut reading = Samples::new();
        let mut burns = WORKS.map(|(name, work)| (name, work, Samples::new()));
        for _ in 0..effort.releases {
            reading.add(excess(Work::ZERO, || Work::ZERO));
            for (_, work, samples) in &mut burns {
                samples.add(excess(*work, || burner.burn(*work, || false)));
            }
        }
        (reading, burns)
    });
    let thread = thread.expect("the policy was tried before");
    let (reading, burns) = thread.join().expect("measuring does not panic");
    let group = "synthetic work: processor time beyond what was asked for";
    report.add(group, "one reading of the CPU clock", Role::Floor, reading);
    for (name, _, samples) in burns {
        report.add(group, name, Role::Subject, samples);
    }
}

/// What the thread consumed beyond `work`, with the reading that shows it.
fn excess(work: Work, burn: impl FnOnce() -> Work) -> Duration {
    let start = thread_cpu_time();
    burn();
    Duration::from_nanos((thread_cpu_time() - start - work).as_nanos())
}
