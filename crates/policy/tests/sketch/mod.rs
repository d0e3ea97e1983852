//! Schedulers of other kinds than the crate's, written against its public interface only: evidence that the
//! shape of [`Scheduler`](talea_policy::hierarchy::Scheduler) carries them. Each is complete enough to
//! behave as its theory says, and no more.

mod figure1;
mod join;
mod reservation;
mod share;
mod workload;
