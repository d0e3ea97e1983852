//! The enforcement of a preemptive lane: the lane's thread, the *controller*, decides, and its jobs run in other threads, *slots*.
//!
//! The kernel has no policy for the order inside the lane, but it preempts between priorities at once.
//! So the lane takes three priorities in a row:
//!
//! | Priority | Who |
//! |---|---|
//! | highest | the controller: has the lane's agent, wakes for each release and completion, decides, sleeps |
//! | middle | *granted*: the slot of the job the queue elected |
//! | lowest | *parked*: slots of jobs that were granted and then outranked, begun or not |
//!
//! ```text
//!            assign + ring        outranked: lower         elected again: raise
//!   (free) ───────────────► granted ─────────────► parked ──────────────────────► granted
//!      ▲                       │ Done
//!      └───────────────────────┘
//! ```
//!
//! A thread whose priority is lowered goes to the *head* of its new level, so parked slots form a stack,
//! last outranked on top. Parking is work-conserving: while the granted job blocks, the top parked job
//! runs. A free slot keeps the priority it has; it sleeps.
//!
//! The queue elects for one processor, so the lane's node has one (see [`crate::lowering`]). It decides at
//! the lane's own releases and completions. A job that was granted a slot keeps it until it ends; when all
//! slots are taken, a newly elected job waits for one of these jobs to end.
//!
//! What a user's operation keeps between its jobs belongs to one of them at a time. The queue may prefer a later job of an
//! operation to an earlier one that has begun, where late jobs stand last. Then the later one lends its turn to the earlier:
//! it is given no slot while the other has one, and that slot is granted in its place. A slot may hold a job that
//! has not begun yet, and goes on by itself while the granted one blocks, so what counts is the slot and not who is granted.
//!
//! Without real-time priorities the kernel cannot do this. There a job that is outranked parks itself at its
//! next cancellation point ([`crate::JobContext::aborted`], which synthetic work passes every 50 µs) until
//! it is granted again. It may end before it comes to one, while the controller decides ([`interruption`]).

mod interruption;
mod slot;

use super::agent::{Elected, Step};
use super::enforcement::Enforcement;
use super::preemption::LanePreemption;
use crate::flow::{JobFlow, Shared};
use crate::job_table::Tag;
use crate::operation::Behaviour;
use crate::recorder::Subject;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_linux::Tid;
use talea_linux::cpu_time::thread_cpu_time_of;
use talea_linux::sched::{Policy, set_thread};
use talea_policy::job::Job;
use talea_record::JobId;
use talea_record::event::NoSlot;
use talea_time::{Instant, Work};

pub(crate) use slot::{SlotCell, SlotThread};

/// Where a slot's thread stands among the lane's priorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Granted,
    Parked,
}

/// A slot as the controller sees it.
pub(crate) struct Slot {
    cell: Arc<SlotCell>,
    tid: Tid,
    level: Level,
    held: Option<Job>,
    /// Its job has been recorded as preempted and not yet as resumed.
    preempted: bool,
}

impl Slot {
    /// A free slot whose thread was created with the granted priority.
    pub fn new(cell: Arc<SlotCell>, tid: Tid) -> Self {
        Slot { cell, tid, level: Level::Granted, held: None, preempted: false }
    }
}

/// The priorities of granted and parked slots, if the run is real-time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotPriorities {
    pub granted: u8,
    pub parked: u8,
}

/// The slots of a lane, as its controller has them.
pub(crate) struct Slots {
    shared: Arc<Shared>,
    lane: usize,
    slots: Vec<Slot>,
    /// Without them the kernel cannot be told whom to run.
    priorities: Option<SlotPriorities>,
    preemption: LanePreemption,
    /// The slot whose job is to run.
    granted: Option<usize>,
}

impl Enforcement for Slots {
    fn run(&mut self, flow: &mut JobFlow, elected: Elected<'_>) -> Step {
        let job = elected.job;
        let held_by = self.slot_of(job.tag);
        let slot = held_by.or_else(|| self.slot_of_operation(&job)).or_else(|| self.assign(&elected));
        let slot = slot.or_else(|| self.make_do(flow, &job, elected.at));
        let slot = slot.expect("where no slot is free, one holds a job");
        if self.granted != Some(slot) {
            self.grant(flow, slot);
        }
        elected.tell_cost(flow);
        Step::Worked
    }

    /// The lane hears of a job when it is released and, from the slot that ran it, when it has ended.
    fn ended(&mut self, tag: Tag) -> Option<Job> {
        let slot = self.slot_of(tag)?;
        if self.granted == Some(slot) {
            self.granted = None;
        }
        let slot = &mut self.slots[slot];
        slot.preempted = false;
        slot.held.take()
    }

    /// At releases and ends alone, and not if the granted job has ended but its thread was interrupted before it could say so. It will say so as soon as
    /// this thread sleeps; lowering it now would delay the release of the job's successors by whatever is elected instead.
    fn may_choose(&self, news: usize) -> bool {
        let granted = self.granted.map(|slot| &self.slots[slot]).filter(|slot| slot.held.is_some());
        news > 0 && !granted.is_some_and(|slot| slot.cell.interruptions.is_over())
    }

    fn has(&self, job: &Job) -> bool {
        self.slot_of(job.tag).is_some()
    }

    fn executed(&self, job: &Job) -> Work {
        let Some(slot) = self.slot_of(job.tag) else { return Work::ZERO };
        let slot = &self.slots[slot];
        if !self.shared.jobs.is_under_way(job.tag, job.number) {
            return Work::ZERO;
        }
        let began_at = Work::from_nanos(slot.cell.began_at.load(Ordering::Acquire));
        let consumed = thread_cpu_time_of(slot.tid).map_or(Work::ZERO, |total| total - began_at);
        consumed.max(Work::from_nanos(1))
    }

    fn give_back(&mut self, flow: &mut JobFlow) {
        self.preemption.leave(&self.shared, flow, |_, _| ());
    }

    fn sleep(&mut self, has_work: impl Fn() -> bool) {
        self.shared.port(self.lane).bell().wait_unless(has_work);
    }
}

impl Slots {
    /// All of them are free. `processor` is the index of the word of the node's processor, if preemption is recorded.
    pub fn new(
        shared: &Arc<Shared>,
        lane: usize,
        slots: Vec<Slot>,
        priorities: Option<SlotPriorities>,
        processor: Option<usize>,
    ) -> Self {
        let (shared, preemption) = (Arc::clone(shared), LanePreemption::new(processor));
        Slots { shared, lane, slots, priorities, preemption, granted: None }
    }

    /// The slot that holds the job.
    fn slot_of(&self, tag: Tag) -> Option<usize> {
        self.slots.iter().position(|slot| slot.held.is_some_and(|held| held.tag == tag))
    }

    /// The slot that holds another job of the operation of which `job` is one, if its jobs run one at a time.
    fn slot_of_operation(&self, job: &Job) -> Option<usize> {
        let operation = self.shared.operation_of(job.tag);
        let is_same =
            |slot: &Slot| slot.held.is_some_and(|held| self.shared.operation_of(held.tag) == operation);
        match self.shared.behaviour(operation) {
            Behaviour::Operation { .. } => self.slots.iter().position(is_same),
            Behaviour::Synthetic => None,
        }
    }

    /// Gives the job a free slot, one that need not be raised if there is a choice.
    fn assign(&mut self, elected: &Elected<'_>) -> Option<usize> {
        let job = elected.job;
        let free = |level| self.slots.iter().position(|slot| slot.held.is_none() && slot.level == level);
        let position = free(Level::Granted).or_else(|| free(Level::Parked))?;
        self.slots[position].held = Some(job);
        self.slots[position].cell.interruptions.begin();
        self.slots[position].cell.assignment.put(job.tag, elected.depth());
        Some(position)
    }

    /// The elected job has to wait for a slot: goes on with a job that has one.
    fn make_do(&self, flow: &mut JobFlow, elected: &Job, now: Instant) -> Option<usize> {
        self.shared.tally.slot_shortages.fetch_add(1, Ordering::Relaxed);
        flow.recorder.put_if_wanted(now, NoSlot { job: self.id(elected), lane: self.lane as u16 });
        self.granted.or_else(|| self.slots.iter().rposition(|slot| slot.held.is_some()))
    }

    /// Makes the slot the one that runs.
    fn grant(&mut self, flow: &mut JobFlow, position: usize) {
        let job = self.slots[position].held.expect("a granted slot holds a job");
        let id = self.id(&job);
        let outranked = self.granted.replace(position);
        let has_begun = outranked.is_some_and(|outranked| self.has_begun(outranked));
        // From now on nobody displaces the outranked job, so that it is recorded as displaced once.
        let now = self.preemption.take(&self.shared, flow, id);
        if let Some(outranked) = outranked {
            self.park(flow, outranked, has_begun.then_some((id, now)));
        }
        // A job that began while it was parked, because the granted one blocked, was never preempted.
        let slot = &mut self.slots[position];
        if std::mem::take(&mut slot.preempted) && slot.cell.interruptions.count(now) {
            let subject = Subject { job: id, lane: self.lane };
            if let Some(processor) = self.preemption.processor(&self.shared) {
                processor.goes_on(now);
            }
            flow.recorder.put(now, subject.resume());
        }
        self.set_level(position, Level::Granted);
        let cell = &self.slots[position].cell;
        cell.parked.store(false, Ordering::Release);
        cell.permit.ring();
        cell.bell.ring();
    }

    /// Whether the slot has a job that has begun and not ended.
    fn has_begun(&self, position: usize) -> bool {
        self.slots[position].held.is_some_and(|job| self.shared.jobs.is_under_way(job.tag, job.number))
    }

    /// Lowers the slot. Its job, if it had begun and is not over, is displaced by another one from an instant on.
    fn park(&mut self, flow: &mut JobFlow, position: usize, displaced: Option<(JobId, Instant)>) {
        let Some(job) = self.slots[position].held else { return };
        if let Some((by, now)) = displaced
            && self.slots[position].cell.interruptions.count(now)
        {
            let subject = Subject { job: self.id(&job), lane: self.lane };
            flow.recorder.put(now, subject.preempt(by));
            self.slots[position].preempted = true;
            if let Some(processor) = self.preemption.processor(&self.shared) {
                processor.count_displaced(now);
            }
        }
        self.set_level(position, Level::Parked);
        self.slots[position].cell.parked.store(self.priorities.is_none(), Ordering::Release);
    }

    fn set_level(&mut self, position: usize, level: Level) {
        let slot = &mut self.slots[position];
        if let Some(SlotPriorities { granted, parked }) = self.priorities
            && slot.level != level
        {
            let priority = if level == Level::Granted { granted } else { parked };
            set_thread(slot.tid, Policy::Fifo(priority))
                .expect("a process that created a thread at this priority may set it");
        }
        slot.level = level;
    }

    fn id(&self, job: &Job) -> JobId {
        JobId { operation: self.shared.operation_of(job.tag), instance: job.number }
    }
}
