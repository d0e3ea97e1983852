//! What a lane runs: the order of its jobs, and that one which has begun keeps a non-preemptive lane.

use super::judge::{Judge, Lane};
use super::order::{LastRan, Ready};
use super::report::{Certainty, Rule};
use super::suspicion::{Counting, Fault, State, Suspicion};
use talea_model::LaneDispatch;
use talea_record::event::NoSlot;
use talea_record::{JobId, ReleasedBy};
use talea_time::{Instant, Work};

impl Judge<'_> {
    /// Whether the lane runs the job that it should.
    pub(super) fn judge_order(&mut self, index: usize) {
        let lane = &self.lanes[index];
        let mut running = lane.ready.iter().filter(|(_, ready)| ready.running.is_some());
        let (first, second) = (running.next(), running.next());
        let Some((&own, ready)) = first else {
            // Higher lanes have the processor, and the lane has chosen nobody else.
            let is_there = |job: JobId| lane.ready.contains_key(&job.pack());
            let waits = lane.misordered.is_some_and(|known| {
                known.state.running.is_some_and(is_there) && is_there(known.state.waiting)
            });
            if !waits {
                self.suspect_order(index, None);
            }
            return;
        };
        if lane.ready.len() > 1 {
            self.findings.count_case(Rule::Order);
        }
        // A lane is one thread, which says itself what it begins and ends; only slots of a preemptive lane are several.
        let is_one = self.is_simulated() || lane.order.rules.dispatch == LaneDispatch::NonPreemptive;
        if let (Some((&other, _)), true) = (second, is_one) {
            let (job, other) = (JobId::unpack(own), Some(JobId::unpack(other)));
            return self.find(Rule::Life, job, other, || "two jobs of a lane have processors".into());
        }
        let before = Instant::from_nanos(self.now.as_nanos().saturating_sub(self.tolerance.as_nanos()));
        let better = self.better(lane, own, ready, before);
        if lane.order.rules.dispatch == LaneDispatch::Preemptive {
            if self.lacks_slot(index) {
                self.findings.leave_unknown(Rule::Order, u64::from(better.is_some()));
                return self.suspect_order(index, None);
            }
            let running = Some(JobId::unpack(own));
            let wrong = better.map(|waiting| State { what: Fault::Misordered, running, waiting });
            let has_to_choose = std::mem::take(&mut self.lanes[index].has_to_choose) || self.is_simulated();
            let is_known = self.lanes[index].misordered.is_some();
            return self.suspect_order(index, wrong.filter(|_| has_to_choose || is_known));
        }
        if lane.chosen != Some(own) || ready.service > Work::ZERO {
            return;
        }
        if lane.ready.len() > 1 {
            self.findings.count_case(Rule::NonPreemption);
        }
        let within = self.is_within(lane, own);
        let begun = |(job, other): &(&u64, &Ready)| {
            **job != own && other.service > Work::ZERO && within != Some(**job)
        };
        let begun = lane.ready.iter().find(begun);
        if let Some((&other, _)) = begun {
            let (job, other) = (JobId::unpack(own), Some(JobId::unpack(other)));
            let text = "it got the lane of a job that had begun";
            self.find_of_lane(Rule::NonPreemption, Certainty::Certain, (job, other), text);
        } else if let Some(other) = better {
            let job = JobId::unpack(own);
            // It may have been chosen before the lane was kept off.
            let earliest = match self.is_simulated() {
                true => before,
                false => lane.choosing.earliest(self.now, self.tolerance).max(ready.released).min(before),
            };
            let is_certain = self.better(lane, own, ready, earliest).is_some();
            let certainty = if is_certain { Certainty::Certain } else { Certainty::Possible };
            let text = "it got the lane before a job that comes first";
            self.find_of_lane(Rule::Order, certainty, (job, Some(other)), text);
        }
    }

    /// The job that comes first in the lane has to wait for a thread, and any other one may run meanwhile.
    pub(super) fn has_no_slot(&mut self, told: NoSlot) {
        let Some(operation) = self.expected.operations.get(told.job.operation.index()) else { return };
        let index = operation.lane;
        if self.lanes[index].ready.contains_key(&told.job.pack()) {
            self.lanes[index].without_slot = Some(told.job.pack());
            self.suspect_order(index, None);
        }
    }

    /// Whether a job of the lane waits for a thread.
    fn lacks_slot(&mut self, index: usize) -> bool {
        let lane = &mut self.lanes[index];
        let waits = |job: &u64| lane.ready.get(job).is_some_and(|ready| ready.began.is_none());
        lane.without_slot = lane.without_slot.filter(waits);
        lane.without_slot.is_some()
    }

    /// In whose midst the job is executed.
    fn is_within(&self, lane: &Lane, job: u64) -> Option<u64> {
        lane.within.filter(|(_, inner)| *inner == job).map(|(outer, _)| outer)
    }

    /// A violation if both jobs are of the lane.
    fn find_of_lane(
        &mut self,
        rule: Rule,
        certainty: Certainty,
        (job, other): (JobId, Option<JobId>),
        text: &str,
    ) {
        if self.is_unplaced(job, other) {
            self.unjudged += 1;
        } else {
            self.find_with(rule, certainty, (job, other), || text.into());
        }
    }

    /// The job of the lane that should have it instead of `own`, whenever since `earliest` that was chosen, if there is one.
    fn better(&self, lane: &Lane, own: u64, ready: &Ready, earliest: Instant) -> Option<JobId> {
        let in_time = |other: &Ready| other.released <= earliest;
        let preemptive = lane.order.rules.dispatch == LaneDispatch::Preemptive;
        let outranks = |(job, other): (&u64, &Ready), (than, ready): (u64, &Ready)| {
            let last_ran = match lane.last_ran {
                Some(last) if last == than => LastRan::Running,
                Some(last) if last == *job => LastRan::Waiting,
                _ => LastRan::Neither,
            };
            lane.order.outranks(other, ready, last_ran, (earliest, self.now), self.tolerance)
        };
        let within = self.is_within(lane, own);
        let others = || lane.ready.iter().filter(|(job, _)| **job != own && within != Some(**job));
        let may_lend = preemptive && self.may_borrow(own, ready);
        let lends =
            |job: u64, other: &Ready| may_lend && other.began.is_none() && is_same_operation(job, own);
        let is_better = |(job, other): &(&u64, &Ready)| {
            let mut lenders = others().filter(|(lender, of)| lends(**lender, of));
            !lends(**job, other)
                && outranks((job, other), (own, ready))
                && lenders.all(|(lender, of)| outranks((job, other), (*lender, of)))
        };
        let mut rivals = others().filter(|(_, other)| preemptive || in_time(other));
        rivals.find(is_better).map(|(job, _)| JobId::unpack(*job))
    }

    /// Whether later jobs of the operation lend the job their turn in a preemptive lane. What a user's operation keeps between its
    /// jobs belongs to one of them at a time, so no other may begin before it ends; on threads that holds of its ends at channels, too. What is
    /// posted is always a user's; of the operations of a description the trace does not tell.
    fn may_borrow(&self, job: u64, ready: &Ready) -> bool {
        let operation = JobId::unpack(job).operation.index();
        let task = self.trace.operations[operation].task;
        let has_events = || {
            let is_taker = self.trace.tasks[task].released_by == ReleasedBy::Events
                && self.trace.operations[operation].predecessors.is_empty();
            is_taker
                || self.trace.publications.iter().any(|publication| {
                    publication.operation == Some(operation) || publication.takers.contains(&operation)
                })
        };
        ready.began.is_some() && (self.is_posted(task) || !self.is_simulated() && has_events())
    }

    fn suspect_order(&mut self, index: usize, wrong: Option<State>) {
        let now = self.now;
        let known = self.lanes[index].misordered.as_mut();
        match (known, wrong) {
            // It may have been preempted meanwhile.
            (Some(known), Some(new)) if known.state.running == new.running => {
                known.count(now, Counting::Runs)
            }
            _ => {
                let new = wrong.map(|state| Suspicion::new(state, now, Counting::Runs));
                let known = std::mem::replace(&mut self.lanes[index].misordered, new);
                self.conclude(known);
            }
        }
    }
}

fn is_same_operation(one: u64, other: u64) -> bool {
    JobId::unpack(one).operation == JobId::unpack(other).operation
}
