//! What any scheduler has to do, built-in or own, as a test that can be run on one.
//!
//! ```no_run
//! # use talea_model::SchedulerKind;
//! # use talea_policy::scheduler::{Row, config};
//! # static ROW: Row = Row::new(SchedulerKind::FIXED_PRIORITY, |_| Ok(config::FixedPriority.into()));
//! #[test]
//! fn my_scheduler_conforms() {
//!     talea_conformance::check(&ROW);
//! }
//! ```
//!
//! A scheduler conforms if
//!
//! 1. its declaration is complete, and what its conversion makes of any guarantee is what its row in the table of conversions says
//!    (`declaration`);
//! 2. whatever threads do below it, in whatever hierarchy, nobody is lost, nobody runs twice, and the same events give the same
//!    decisions, also when it takes the place of another scheduler or another takes its while threads run (`decisions`, judged by a
//!    [`Machine`] that keeps books of its own);
//! 3. every edge of such hierarchies receives what is derived for it while they are simulated (`promises`), unless the derivation says
//!    itself that this is not known;
//! 4. it is not idle while a child wants to run, and no timer of its own takes the processor from a child, where it declares so (`seen`,
//!    by the records of simulations).
//!
//! The hierarchies are random ([`forest`]): the scheduler is at their root or somewhere below, among all others. Nothing but its
//! declaration is asked what to expect of it.

#![forbid(unsafe_code)]

mod decisions;
mod declaration;
pub mod events;
pub mod forest;
mod machine;
pub mod promises;
mod seen;

pub use machine::Machine;

use talea_model::SchedulerKind;
use talea_policy::scheduler::{self, Row};

/// Random hierarchies for each of the properties, unless `PROPTEST_CASES` says how many.
const CASES: u32 = 100;

/// Checks the scheduler of this row, which is registered first if it is not yet.
///
/// # Panics
/// If it does not conform, with what was seen and, of a random hierarchy, the smallest that shows it.
pub fn check(row: &'static Row) {
    let kind = entered(row);
    declaration::check(kind);
    decisions::check(kind, CASES);
    promises::check(row, CASES);
    seen::check(kind, CASES);
}

fn entered(row: &'static Row) -> SchedulerKind {
    match scheduler::row(row.kind()) {
        Some(known) => {
            assert!(std::ptr::eq(known, row), "another scheduler is called {}", row.kind());
            row.kind()
        }
        None => scheduler::register(row).unwrap_or_else(|error| panic!("{error}")),
    }
}
