//! Own schedulers, which files and changes of what runs name like the built-in ones.
//!
//! A scheduler is a [`Rule`] (one processor at a time for one of its children) or a [`Scheduler`] of any shape. Its [`Declaration`] says what
//! is known of it without its code: its name, its parameters, what its children ask for, and what it makes of the guarantees that it is given.
//! Its [`Row`] says how one is made of a description. [`register`]ed, it is found by its name wherever a kind is named: in system files and
//! builders, by `check`, in simulations and runs, and in changes of a running hierarchy (`talea ctl`).
//!
//! Everything that it takes to write one is here, so that `use talea::schedulers::*` will do.
//! `examples/own_scheduler/weighted_turns.rs` is a whole one; the crate `talea-conformance` has the test that any scheduler has to pass.

pub use talea_guarantee::conversion::{self, table};
pub use talea_guarantee::scheduler::{
    Affects, Alike, Asks, BelowSlower, Children, Conserving, Deadlines, Declaration, Intake, Parameter,
    Periods, Plans, Preset, RegisterError, SchedulerKind, Timers, Values,
};
pub use talea_model::{Setting, Settings};
pub use talea_policy::hierarchy::{Context, Decision, Fraction, Parameters, Refusal, Scheduler};
pub use talea_policy::scheduler::{
    Announcing, Clients, Config, Configuration, ConfigureError, Facts, KindError, Row, Rule, Stint,
    Uniprocessor, config, register, rows,
};
pub use talea_time::{Duration, Instant, Work};
