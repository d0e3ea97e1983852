//! Time constraints: bursts of threads that reserve nothing are accepted one by one, and then done in time.

use super::plans::{stretches, system};
use talea_guarantee::derivation::derive;

/// A reservation for a child that never stops, and two others that never stop either: what is left is not enough for all.
fn below(kind: &str, reserved: &str, guarded: &[(&str, &str)]) -> talea_model::System {
    let scheduler = format!("[[scheduler]]\nname = \"S\"\nkind = \"{kind}\"\nquantum = \"10ms\"");
    let hog = format!("{{ scheduler = \"S\", guarantee = \"{reserved}\" }}");
    let mut threads =
        vec![("hog", "\"cpu-bound\"", hog.as_str()), ("other", "\"cpu-bound\"", "{ scheduler = \"S\" }")];
    threads.extend(guarded.iter().map(|(name, work)| (*name, *work, "{ scheduler = \"S\" }")));
    system(&scheduler, &threads)
}

/// The bursts that are over, each from its release on, in milliseconds; the period in milliseconds.
fn responses(system: &talea_model::System, thread: usize, period: i64) -> Vec<i64> {
    let stretches = stretches(system, thread);
    let passes = 200 / period;
    let end = |pass: i64| {
        let within = stretches.iter().filter(|(from, _)| (pass * period..(pass + 1) * period).contains(from));
        within.map(|(_, to)| to - pass * period).max().unwrap_or(i64::MAX)
    };
    (0..passes).map(end).collect()
}

/// Beside a reservation of half the processor and endless work in turn, a burst of 8 in 20 is always in time by its constraint; in turn,
/// in quanta of 10, it would not be.
#[test]
fn rialto_accepts_what_is_left() {
    let system = below("rialto", "RESCS 5ms 10ms", &[("decoder", "{ burst = \"8ms\", period = \"20ms\" }")]);
    let responses = responses(&system, 2, 20);
    assert!(responses.iter().all(|response| *response <= 20), "{responses:?}");
    let derived = derive(&system.hierarchy(0).expect("one")).expect("nothing is required");
    assert_eq!(derived.between("S", "decoder").expect("an edge").label.to_string(), "NULL");
    assert_eq!(derived.between("S", "hog").expect("an edge").label.to_string(), "RESCS 5ms 10ms");
}

/// What does not fit beside the accepted ones is refused: the first is in time for ever, the second runs in turn.
#[test]
fn who_comes_first_is_accepted_and_keeps_what_it_was_told() {
    for kind in ["rialto", "spring"] {
        let reserved = if kind == "rialto" { "RESCS 5ms 10ms" } else { "RESBH 5ms 20ms" };
        let system = below(
            kind,
            reserved,
            &[
                ("first", "{ burst = \"9ms\", period = \"20ms\" }"),
                ("second", "{ burst = \"9ms\", period = \"20ms\" }"),
            ],
        );
        let first = responses(&system, 2, 20);
        assert!(first.iter().all(|response| *response <= 20), "{kind}: {first:?}");
        assert!(responses(&system, 3, 20).iter().any(|response| *response > 20), "{kind}");
    }
}

/// A piece of Spring's has to fit between slots in one go, which a burst longer than any gap does not.
#[test]
fn spring_refuses_what_fits_into_no_gap() {
    let reserved = "RESBH 4ms 10ms";
    let fits = below("spring", reserved, &[("decoder", "{ burst = \"6ms\", period = \"20ms\" }")]);
    assert!(responses(&fits, 2, 20).iter().all(|response| *response == 10), "in the first gap");
    let long = below("spring", reserved, &[("decoder", "{ burst = \"7ms\", period = \"20ms\" }")]);
    let late = responses(&long, 2, 20);
    assert!(late.iter().any(|response| *response > 10), "{late:?}");
}
