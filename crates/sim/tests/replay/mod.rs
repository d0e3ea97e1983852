//! A judge that replays a run's records against the system and the rules, knowing nothing of how the
//! simulator works.

mod end;
mod judge;

pub use judge::judge;

use talea_model::System;
use talea_policy::strategy::plan_lanes_of;
use talea_record::{Metadata, Origin, Record, Sink};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::Instant;

/// All records, in memory.
#[derive(Default)]
pub struct Everything(pub Vec<Record>);

impl Sink for Everything {
    fn record(&mut self, record: Record) {
        self.0.push(record);
    }
}

/// The records of `system` up to `until`, with the simulation's own invariants checked at every of `slices`
/// on the way.
pub fn records(system: &System, slices: &[i64], until: i64) -> Vec<Record> {
    records_with(system, slices, until, DispatchRecords::Dropped)
}

/// The same, with or without those of dispatching.
pub fn records_with(system: &System, slices: &[i64], until: i64, dispatch: DispatchRecords) -> Vec<Record> {
    let simulation = Simulation::new(system).expect("random systems have no anomalies");
    let mut simulation = simulation.with_dispatch(dispatch);
    let mut everything = Everything::default();
    for slice in slices {
        simulation.advance(Instant::from_nanos(*slice), &mut everything);
        simulation.check_invariants();
    }
    simulation.advance(Instant::from_nanos(until), &mut everything);
    simulation.finish(&mut everything);
    everything.0
}

/// The tables of the system's traces.
pub fn metadata(system: &System) -> Metadata {
    let plans = plan_lanes_of(system).expect("random systems have no anomalies");
    Metadata::new(system, &plans, Origin::Simulation { seed: system.seed }, Instant::ZERO)
}
