//! Steal time: what a hypervisor took of processors while a response lasted.

use super::Explanation;
use std::collections::BTreeMap;
use talea_record::event::Typed;
use talea_record::{Metadata, Record, Sink};
use talea_time::{Duration, Instant};

/// That so much was taken of a processor in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stretch {
    cpu: u16,
    from: Instant,
    to: Instant,
    amount: Duration,
}

/// All that a trace tells of it.
#[derive(Clone, Debug, Default)]
pub(super) struct StealTimes(Vec<Stretch>);

impl Sink for StealTimes {
    fn record(&mut self, record: Record) {
        if let Typed::Steal(steal) = record.typed() {
            let (cpu, amount) = (record.cpu, steal.amount);
            self.0.push(Stretch { cpu, from: steal.from, to: steal.to, amount });
        }
    }
}

impl StealTimes {
    /// The most that can have been taken of a processor on which jobs of the response may have been: all of what was taken in the stretches that touch
    /// it.
    pub fn during(&self, metadata: &Metadata, explanation: &Explanation) -> Duration {
        let lanes = explanation.hops.iter().map(|hop| metadata.operations[hop.job.operation.index()].lane);
        let nodes: Vec<usize> = lanes.map(|lane| metadata.lanes[lane].node).collect();
        let is_of_it = |cpu: u16| nodes.iter().any(|node| metadata.nodes[*node].cpus.contains(&cpu));
        let mut by_processor: BTreeMap<u16, Duration> = BTreeMap::new();
        for stretch in &self.0 {
            let (from, to) = (stretch.from.max(explanation.arrival), stretch.to.min(explanation.end));
            if from < to && is_of_it(stretch.cpu) {
                *by_processor.entry(stretch.cpu).or_insert(Duration::ZERO) += stretch.amount.min(to - from);
            }
        }
        by_processor.into_values().max().unwrap_or(Duration::ZERO)
    }
}
