//! Declarations that are not true are found out. In a program of its own, for what is registered here would be drawn by other tests.

#![forbid(unsafe_code)]

use talea::schedulers::{Alike, Conserving, Declaration, Row, Timers, config};
use talea_model::SchedulerKind;

/// A reservation scheduler that claims to keep the processor busy is found out, and one that claims to have no timers.
#[test]
fn a_declaration_that_is_not_true_is_found_out() {
    static BUSY: Declaration = Declaration {
        name: "busy-reservation",
        conserving: Conserving::Always,
        alike: Some(Alike::Promises("reservation")),
        place: u8::MAX,
        ..*SchedulerKind::RESERVATION.declaration()
    };
    static SILENT: Declaration = Declaration {
        name: "silent-round-robin",
        timers: Timers::None,
        place: u8::MAX,
        ..*SchedulerKind::ROUND_ROBIN.declaration()
    };
    static BUSY_ROW: Row =
        Row::new(SchedulerKind::of(&BUSY), |facts| Ok(config::Reservation::hard(facts.speed()).into()));
    static SILENT_ROW: Row = Row::new(SchedulerKind::of(&SILENT), |facts| {
        Ok(config::RoundRobin { quantum: facts.quantum() }.into())
    });
    for (row, why) in [(&BUSY_ROW, "serves nobody"), (&SILENT_ROW, "a timer of")] {
        let refused = std::panic::catch_unwind(|| talea_conformance::check(row)).expect_err("it is not true");
        let message = refused.downcast_ref::<String>().expect("it says why");
        assert!(message.contains(why), "{message}");
    }
}
