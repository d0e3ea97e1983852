//! Synchronisation protocols: random systems, whose traces are held against the rules as they stand in the literature, by a judge that knows
//! signals, ends of jobs and releases, and none of the simulator's guards.

mod triggered;

use crate::explain::{EVERYTHING, explained};
use crate::replay::{metadata, records_with};
use crate::systems::{Scope, systems};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use talea_insight::verify::Verifier;
use talea_model::{OperationId, Synchronisation, System};
use talea_policy::demand::{MessageWay, Passage};
use talea_policy::strategy::plan_system;
use talea_record::{JobId, Record, Sink, Typed};
use talea_sim::DispatchRecords;
use talea_time::Duration;

const UNTIL: i64 = 150;

/// What a guard is by the rules.
#[derive(Default)]
struct Guard {
    opens: i64,
    last: Option<i64>,
    /// Instances, with the earliest instant that bounds allow.
    waiting: VecDeque<(u64, i64)>,
}

struct Rules<'a> {
    system: &'a System,
    guards: BTreeMap<OperationId, Guard>,
    /// By node: released and unfinished.
    unfinished: Vec<BTreeSet<JobId>>,
    released: BTreeMap<JobId, i64>,
    /// Completed jobs in order, and when they were.
    completed: Vec<(JobId, i64)>,
    /// By job: the predecessors that it has heard of, on its node or by a message.
    heard: BTreeMap<JobId, BTreeSet<OperationId>>,
}

impl Rules<'_> {
    fn sync(&self, operation: OperationId) -> Synchronisation {
        self.system.tasks[self.system.operations()[operation.index()].task].sync
    }

    fn node(&self, operation: OperationId) -> usize {
        self.system.subtask(operation).node
    }

    /// A job is done at `now`, of which its successors on the node hear at once.
    fn complete(&mut self, job: JobId, now: i64) {
        self.completed.push((job, now));
        for successor in &self.system.operations()[job.operation.index()].successors {
            if self.node(*successor) == self.node(job.operation) {
                let heard = self.heard.entry(JobId { operation: *successor, ..job }).or_default();
                heard.insert(job.operation);
            }
        }
    }

    /// A message comes to a job at `now`. Of several at one instant the one that was sent first comes first.
    fn receive(&mut self, job: JobId, now: i64) {
        let predecessors = &self.system.operations()[job.operation.index()].predecessors;
        let heard = self.heard.entry(job).or_default();
        let is_it = |(before, at): &&(JobId, i64)| {
            let is_new = before.instance == job.instance
                && predecessors.contains(&before.operation)
                && !heard.contains(&before.operation);
            let arrives =
                || match MessageWay::of(self.system, before.operation, job.operation).passage(job.instance) {
                    Passage::Arrives(time) => at + time.as_nanos() == now,
                    Passage::Lost => false,
                };
            is_new && arrives()
        };
        let (before, _) = self.completed.iter().find(is_it).expect("whoever is done sent it");
        heard.insert(before.operation);
    }

    /// When bounds allow the release of a job that is signalled now.
    fn planned(&self, job: JobId) -> i64 {
        let operation = &self.system.operations()[job.operation.index()];
        let task = &self.system.tasks[operation.task];
        let arrival = (task.phase + task.period * job.instance as i64).as_nanos();
        let bound = |before: &OperationId| self.system.subtask(*before).bound.map_or(0, Duration::as_nanos);
        match task.sync {
            Synchronisation::PhaseModification => arrival + self.offset(job.operation),
            Synchronisation::ModifiedPhaseModification => self.heard[&job]
                .iter()
                .map(|before| self.released[&JobId { operation: *before, ..job }] + bound(before))
                .max()
                .expect("it has heard of a predecessor"),
            _ => i64::MIN,
        }
    }

    /// When enough predecessors are done after the arrival, if they keep their bounds.
    fn offset(&self, operation: OperationId) -> i64 {
        let predecessors = &self.system.operations()[operation.index()].predecessors;
        let bound = |before: &OperationId| self.system.subtask(*before).bound.map_or(0, Duration::as_nanos);
        let mut done: Vec<i64> =
            predecessors.iter().map(|before| self.offset(*before) + bound(before)).collect();
        done.sort_unstable();
        let needed = self.system.subtask(operation).join.needed(done.len());
        needed.checked_sub(1).map_or(0, |last| done[last])
    }

    /// What guards let through at `now`, if idle points open them on these nodes.
    fn expected(&mut self, now: i64, is_idle: &[bool]) -> BTreeSet<JobId> {
        let mut expected = BTreeSet::new();
        let operations: Vec<OperationId> = self.guards.keys().copied().collect();
        for operation in operations {
            let (sync, node) = (self.sync(operation), self.node(operation));
            let period =
                self.system.tasks[self.system.operations()[operation.index()].task].period.as_nanos();
            let guard = self.guards.get_mut(&operation).expect("it is a key");
            if is_idle[node] && sync == Synchronisation::ReleaseGuardIdle && guard.last != Some(now) {
                guard.opens = guard.opens.min(now);
            }
            let Some(&(instance, planned)) = guard.waiting.front() else { continue };
            let opens = if sync.needs_bounds() { planned } else { guard.opens };
            if opens <= now && guard.last != Some(now) {
                guard.waiting.pop_front();
                (guard.last, guard.opens) = (Some(now), now + period);
                expected.insert(JobId { operation, instance });
            }
        }
        expected
    }
}

/// Replays the records instant by instant and panics where guarded releases are others than the rules say. Protocols that let one through
/// at idle points are only held to being in order.
fn judge(system: &System, records: &[Record]) {
    let is_judged = |operation: OperationId| {
        let operation = &system.operations()[operation.index()];
        let sync = system.tasks[operation.task].sync;
        let is_guarded = sync != Synchronisation::Greedy && !operation.predecessors.is_empty();
        is_guarded && sync != Synchronisation::ReleaseGuardIdleOne
    };
    let mut rules = Rules {
        system,
        guards: BTreeMap::new(),
        unfinished: vec![BTreeSet::new(); system.nodes.len()],
        released: BTreeMap::new(),
        completed: Vec::new(),
        heard: BTreeMap::new(),
    };
    let mut rest = records;
    // Every instant is looked at: a guard may open when nothing else happens.
    for now in 0..UNTIL {
        let count = rest.iter().take_while(|record| record.time.as_nanos() == now).count();
        let (at_once, later) = rest.split_at(count);
        rest = later;
        let mut released = BTreeSet::new();
        for record in at_once {
            match record.typed() {
                Typed::Complete(complete) => {
                    let node = rules.node(complete.job.operation);
                    rules.unfinished[node].remove(&complete.job);
                }
                Typed::Abort(abort) => {
                    let node = rules.node(abort.job.operation);
                    rules.unfinished[node].remove(&abort.job);
                }
                _ => {}
            }
        }
        let is_idle: Vec<bool> = rules.unfinished.iter().map(BTreeSet::is_empty).collect();
        for record in at_once {
            match record.typed() {
                Typed::Complete(complete) => rules.complete(complete.job, now),
                Typed::Receive(receive) => rules.receive(receive.job, now),
                Typed::Signal(signal) if is_judged(signal.job.operation) => {
                    let planned = rules.planned(signal.job);
                    let guard = rules.guards.entry(signal.job.operation).or_default();
                    guard.waiting.push_back((signal.job.instance, planned));
                }
                Typed::Release(release) => {
                    rules.released.insert(release.job, now);
                    let node = rules.node(release.job.operation);
                    rules.unfinished[node].insert(release.job);
                    if is_judged(release.job.operation) {
                        released.insert(release.job);
                    }
                }
                _ => {}
            }
        }
        assert_eq!(released, rules.expected(now, &is_idle), "at {now}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn guards_let_through_what_the_rules_say(system in systems(Scope { costs: 0, ..Scope::GUARDED })) {
        let records = records_with(&system, &[], UNTIL, DispatchRecords::Kept);
        judge(&system, &records);
    }

    #[test]
    fn traces_with_guards_are_clean_and_explained(system in systems(Scope::GUARDED)) {
        let metadata = metadata(&system);
        let records = records_with(&system, &[], UNTIL, DispatchRecords::Kept);
        let plans = plan_system(&system).expect("no anomalies");
        let mut verifier = Verifier::new(&metadata, &system, &plans, Duration::ZERO).expect("it is the same system");
        records.iter().for_each(|record| verifier.record(*record));
        let report = verifier.finish();
        prop_assert_eq!(report.count(), 0, "{:#?}", report.violations);
        for one in explained(&metadata, &records, EVERYTHING).list {
            let sum: Duration = one.intervals.iter().map(|interval| interval.length()).sum();
            prop_assert_eq!(sum, if one.intervals.is_empty() { Duration::ZERO } else { one.response() });
        }
    }
}
