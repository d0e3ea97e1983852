//! A short campaign, the same every time: that it finds nothing, and that it holds enough against something.

use talea_campaign::{Counts, Kind, Surroundings, attempt};

fn tried(kind: Kind, trials: u64) -> Counts {
    let mut counts = Counts::default();
    for seed in 1..=trials {
        if let Err(finding) = attempt(kind, seed, &Surroundings { talea: None, machine: None }, &mut counts) {
            panic!("{finding:#?}\n{}", String::from_utf8_lossy(&finding.input));
        }
    }
    println!("{counts:?}");
    counts
}

#[test]
fn what_is_said_of_a_simulated_system_agrees() {
    let counts = tried(Kind::Simulated, 80);
    assert!(counts.refused < counts.trials / 2, "{counts:?}");
    assert!(
        ["promises", "explanations", "bounds", "verdicts"].iter().all(|what| counts.of(what) >= 40),
        "{counts:?}"
    );
    let crossed = ["bounds of chains", "ways", "posted jobs", "events of programs"];
    assert!(crossed.iter().all(|what| counts.of(what) >= 20), "{counts:?}");
}

/// What longer campaigns have found.
#[test]
fn what_was_found_once_is_not_found_again() {
    let mut counts = Counts::default();
    // Twice a job that is released when more than 64 later instances have been: its predecessor was forgotten, as another branch was aborted.
    // Then a slice of no length below a slower processor, whose end was taken for a deadline.
    for seed in [1_882_739_858_997_436, 1_882_739_859_001_916, 1_882_742_067_305_836] {
        let around = Surroundings { talea: None, machine: None };
        if let Err(finding) = attempt(Kind::Simulated, seed, &around, &mut counts) {
            panic!("{finding:#?}");
        }
    }
}

#[test]
fn mistaken_files_are_refused_or_are_systems() {
    let counts = tried(Kind::Files, 80);
    assert!(counts.of("sound systems") >= 10 && counts.of("problems") >= 100, "{counts:?}");
}

#[test]
fn mistyped_constraints_are_refused_or_answer() {
    let counts = tried(Kind::Constraints, 60);
    let least =
        [("texts that are refused", 1_000), ("texts that can never hold", 100), ("evaluations", 5_000)];
    assert!(least.iter().all(|(what, least)| counts.of(what) >= *least), "{counts:?}");
}

#[test]
fn altered_bytes_are_events_or_refused() {
    let counts = tried(Kind::Events, 60);
    assert!((1_000..5_000).contains(&counts.of("events")), "{counts:?}");
}

#[test]
fn altered_traces_are_read_or_refused() {
    let counts = tried(Kind::Traces, 100);
    assert!(counts.of("readable traces") >= 20 && counts.refused >= 30, "{counts:?}");
}

#[test]
fn programs_on_threads_are_the_same_again_and_what_does_otherwise_is_named() {
    let counts = tried(Kind::Replays, 16);
    assert!(counts.refused < counts.trials * 3 / 4, "{counts:?}");
    let compared = ["values replayed", "pushes replayed", "answers of consumers replayed"];
    assert!(compared.iter().all(|what| counts.of(what) >= 20), "{counts:?}");
    assert!(counts.of("changes found") >= 8, "{counts:?}");
}
