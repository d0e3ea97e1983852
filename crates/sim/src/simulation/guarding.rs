//! Synchronisation protocols in virtual time: what completes a join is released at once, or waits at a guard of its node.

use super::Simulation;
use crate::node::Slot;
use talea_model::{Synchronisation, System};
use talea_operation::LostValues;
use talea_policy::release::bounds::{MissingBound, ResponseBounds};
use talea_policy::release::guard::{BoundOverrun, Due, EarlyArrivals, Guards, NO_TIMER, Signal, Taken, Way};
use talea_record::{JobId, Sink, SkipReason};
use talea_time::{Instant, Work};

/// What is no part of the schedule in a whole simulation, and of which a good one has none, by the names that it has in a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mishaps {
    /// Signals to subtasks that had gone on without them.
    pub late_signals: u64,
    /// Instances that were not released, because too many of their operation waited.
    pub overflows: u64,
    /// Signals that came later than response bounds had promised.
    pub bound_overruns: u64,
    /// The worst of these.
    pub worst_overrun: Option<BoundOverrun>,
    /// Arrivals that came earlier than is declared of their tasks.
    pub early_arrivals: Vec<EarlyArrivals>,
    /// Values that were published after the end of their period, under logical execution time.
    pub late_values: u64,
    /// Values of connections that no job had.
    pub lost_values: Vec<LostValues>,
}

/// The guards of all nodes.
pub(super) struct Guarding {
    /// By node.
    pub guards: Vec<Guards>,
    /// By operation: its place among the guards of its node, if it is not released greedily.
    pub places: Vec<Option<u32>>,
    pub bounds: ResponseBounds,
    /// Whether there is any guard at all.
    pub is_needed: bool,
    /// What has been signalled in this step: its node, the place of its guard, and the job.
    signalled: Vec<(u32, u32, JobId)>,
    pub late: u64,
}

impl Guarding {
    /// # Errors
    /// A protocol lacks a response bound.
    pub fn new(system: &System) -> Result<Self, MissingBound> {
        let bounds = ResponseBounds::of(system)?;
        let nodes = 0..system.nodes.len();
        let guards: Vec<Guards> = nodes.map(|node| Guards::of_node(system, node, &bounds)).collect();
        let mut places = vec![None; system.operations().len()];
        for of_node in &guards {
            for (place, operation) in of_node.operations().enumerate() {
                places[operation.index()] = Some(place as u32);
            }
        }
        let is_needed = guards.iter().any(|guards| !guards.is_empty());
        Ok(Guarding { guards, places, bounds, is_needed, signalled: Vec::new(), late: 0 })
    }
}

impl Simulation {
    /// What went otherwise than it should have, up to now.
    pub fn mishaps(&self) -> Mishaps {
        let mishaps = Mishaps {
            late_signals: self.guarding.late,
            late_values: self.values.as_ref().map_or(0, |values| values.late),
            lost_values: self.values.as_ref().map_or_else(Vec::new, |values| values.lost()),
            early_arrivals: self.guarding.guards.iter().flat_map(Guards::early_arrivals).collect(),
            ..Mishaps::default()
        };
        self.guarding.guards.iter().map(Guards::counts).fold(mishaps, |sum, of_node| Mishaps {
            overflows: sum.overflows + of_node.refused,
            bound_overruns: sum.bound_overruns + of_node.bound_overruns,
            worst_overrun: BoundOverrun::worst([sum.worst_overrun, of_node.worst_overrun]),
            ..sum
        })
    }

    /// When the timer of a job that is done expires, if its successors wait for it.
    pub(super) fn timer_of(&self, slot: &Slot) -> Instant {
        let state = &self.operations[slot.id.operation.index()];
        if state.sync != Synchronisation::ModifiedPhaseModification {
            return NO_TIMER;
        }
        let released = match state.predecessors {
            // The calendar does not know what a trigger releases.
            0 if self.triggered.get(state.task as usize).is_some_and(Option::is_some) => slot.released,
            0 => self.calendar.release(state.task as usize, slot.id.instance),
            _ => slot.nominal,
        };
        released.saturating_add(self.guarding.bounds.bound(slot.id.operation))
    }

    /// All that `job` needs of its predecessors is done.
    pub(super) fn go_on(
        &mut self,
        job: JobId,
        deadline: Instant,
        not_before: Instant,
        way: Way,
        sink: &mut dyn Sink,
    ) {
        if self.operations[job.operation.index()].predecessors == 0 && self.merge(job, deadline, sink) {
            return;
        }
        let Some(place) = self.guarding.places[job.operation.index()] else {
            let (now, cost) = (self.now, self.cost_of(way));
            // What has no predecessors has a trigger, or nobody would signal it.
            return match self.operations[job.operation.index()].predecessors {
                0 => self.release_triggered(job, (now, deadline), cost, sink),
                _ => self.release(job, now, deadline, cost, sink),
            };
        };
        let node = self.operations[job.operation.index()].node as usize;
        let signal = Signal { instance: job.instance, deadline, at: self.now, not_before, way };
        match self.guarding.guards[node].signal(place as usize, signal) {
            Taken::Until(_) => {
                self.nodes[node].signal(job, self.now, sink);
                // Whether it waits is known when the step is known to be an idle point or none.
                self.guarding.signalled.push((node as u32, place, job));
                self.agenda.concern(node, self.now);
            }
            Taken::Refused if self.operations[job.operation.index()].predecessors > 0 => {
                self.refuse(job, deadline, sink);
            }
            taken => {
                let task = self.operations[job.operation.index()].task as usize;
                let why = if taken == Taken::Refused { SkipReason::Full } else { SkipReason::Early };
                let triggered = self.triggered[task].as_ref().expect("a task with a trigger");
                // One record stands for the whole instance, unless each guard hears of it by a message of its own.
                if triggered.stands_for_all(job.operation) || triggered.comes_from_elsewhere(job.operation) {
                    let instance = (job.instance, self.now, deadline);
                    self.skip_triggered(job.operation, instance, why, sink);
                }
            }
        }
    }

    fn cost_of(&self, way: Way) -> Work {
        match way {
            Way::Local => Work::ZERO,
            Way::Message => self.message_cost,
        }
    }

    /// The job never comes, and neither does what follows it.
    fn refuse(&mut self, job: JobId, deadline: Instant, sink: &mut dyn Sink) {
        let state = &mut self.operations[job.operation.index()];
        state.is_lost = true;
        let task = state.task as usize;
        self.nodes[state.node as usize].refuse(job, deadline, self.now, sink);
        self.lose(task, job.instance);
    }

    /// The run ends: what guards of a node hold is told, of instances whose arrival nothing else tells.
    pub(super) fn end_guards(&mut self, node: usize, sink: &mut dyn Sink) {
        let mut held = vec![0; self.operations.len()];
        while let Some(due) = self.guarding.guards[node].next_due(Instant::MAX) {
            let Due { place, operation, signal, .. } = due;
            let state = &self.operations[operation.index()];
            if state.predecessors > 0 {
                self.guarding.guards[node].let_through(place);
                continue;
            }
            let triggered = self.triggered[state.task as usize].as_ref();
            // One record stands for the whole instance, unless each guard hears of it by a message of its own.
            let is_told = triggered.is_some_and(|triggered| {
                triggered.stands_for_all(operation) || triggered.comes_from_elsewhere(operation)
            });
            let (instance, now) = ((signal.instance, signal.at, signal.deadline), self.now);
            if !self.is_for_an_event(&due, held[operation.index()]) {
                self.guarding.guards[node].withdraw(place);
                self.skip_triggered(operation, instance, SkipReason::Expired, sink);
                continue;
            }
            self.guarding.guards[node].let_through(place);
            held[operation.index()] += 1;
            if is_told {
                let job = JobId { operation, instance: signal.instance };
                self.nodes[node].hold_at_end(job, (signal.at, signal.deadline), now, sink);
            }
        }
    }

    /// Whether an event still waits for the release, where so many are to be released before that have not been, and as far as events release the task.
    fn is_for_an_event(&self, due: &Due, before: usize) -> bool {
        let state = &self.operations[due.operation.index()];
        let (Some(workplace), Some(values), 0) = (&self.workplace, &self.values, state.predecessors) else {
            return true;
        };
        let waiting = workplace.waiting(state.task as usize, due.signal.at, self.now);
        let released = state.outstanding as usize - values.begun(due.operation) + before;
        waiting.is_none_or(|waiting| waiting.need(released, due.waiting))
    }

    /// Lets through the guards of all nodes that this step concerns what is due.
    pub(super) fn pass_guards(&mut self, sink: &mut dyn Sink) {
        let now = self.now;
        let mut due = self.agenda.first_due(now);
        while let Some(node) = due {
            if !self.guarding.guards[node].is_empty() {
                let mut is_told = false;
                loop {
                    // What is let through may abort what was unfinished.
                    if !is_told && self.nodes[node].is_idle_point(now) {
                        self.guarding.guards[node].idle_point(now);
                        is_told = true;
                    }
                    let Some(due) = self.guarding.guards[node].next_due(now) else { break };
                    if due.is_held && !self.is_for_an_event(&due, 0) {
                        self.guarding.guards[node].withdraw(due.place);
                        let instance = (due.signal.instance, due.signal.at, due.signal.deadline);
                        self.skip_triggered(due.operation, instance, SkipReason::Expired, sink);
                        continue;
                    }
                    let release = self.guarding.guards[node].let_through(due.place);
                    let Signal { instance, deadline, way, at, .. } = release.signal;
                    if at < now && !self.nodes[node].is_idle_point(now) {
                        self.nodes[node].interrupt(now, sink);
                    }
                    let job = JobId { operation: release.operation, instance };
                    match self.operations[job.operation.index()].predecessors {
                        0 => self.release_triggered(job, (at, deadline), self.cost_of(way), sink),
                        _ => self.release(job, release.at, deadline, self.cost_of(way), sink),
                    }
                }
            }
            due = self.agenda.due_after(node, now);
        }
        let Guarding { guards, signalled, .. } = &mut self.guarding;
        for (node, place, job) in signalled.drain(..) {
            if let Some(until) = guards[node as usize].until(place as usize, job.instance) {
                self.nodes[node as usize].hold(job, until, now, sink);
            }
        }
    }
}
