//! Recorded simulations, replayed.

mod answered;
mod delivered;
mod events;
mod outcomes;
mod posted;
mod reading;
mod simulated;

use talea_model::System;
use talea_operation::{KeptOutputs, Operations};
use talea_policy::strategy::plan_lanes_of;
use talea_record::{Metadata, Record, Sink};
use talea_replay::{Replay, ReplayReport};
use talea_sim::Simulation;
use talea_time::Instant;

/// The records of a simulation, kept as `kept` says.
pub(crate) fn recorded(
    system: &System,
    operations: Operations,
    until: i64,
    kept: &KeptOutputs,
) -> (Metadata, Vec<Record>) {
    let plans = plan_lanes_of(system).expect("sorted");
    let simulation = Simulation::with_operations(system, &plans, operations).expect("simulated");
    let mut simulation = simulation.with_kept_values(system, kept).expect("there are such outputs");
    let mut records = Vec::new();
    simulation.advance(Instant::from_nanos(until), &mut records);
    let metadata = simulation.metadata().clone();
    simulation.finish(&mut records);
    (metadata, records)
}

pub(crate) fn replayed(
    system: &System,
    (metadata, records): &(Metadata, Vec<Record>),
    operations: Operations,
) -> ReplayReport {
    let mut replay = Replay::new(system, metadata, operations).expect("it can be replayed");
    records.iter().for_each(|record| replay.record(*record));
    replay.finish()
}
