//! Tasks that are released otherwise than by a period: by values of other tasks, or from outside.
//!
//! | What happens | Who notices | What follows |
//! |---|---|---|
//! | a value is published | the thread that ran the job, [`JobFlow::count_value`] | a release, or a signal to the guard that keeps releases apart |
//! | an event is pushed for the task | the thread that pushes it, [`JobFlow::post_task`] | a release, or a signal to the guard |
//! | the program calls | its thread, [`ExternalTrigger::fire`] | a signal to the guard |
//! | a descriptor is ready | the node's release thread | a signal to the guard |
//! | nothing outside is given | the node's release thread draws arrivals | a signal to the guard |
//!
//! What comes from outside always has a guard, which holds it against what is declared. The guards are the release thread's.

use crate::flow::{JobFlow, Release, Shared};
use crate::job_table::InFlight;
use crate::layout::ValueTrigger;
use crate::recorder::Subject;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_linux::clock::MonotonicClock;
use talea_model::{OperationId, Overrun, System};
use talea_policy::release::overrun::{self, OnArrival, Previous};
use talea_record::event::Dates;
use talea_record::{JobId, SkipReason};
use talea_time::{Clock, Instant};
use thiserror::Error;

/// An instance of a task with a trigger that has arrived.
pub(crate) struct Arrived {
    /// Its number.
    pub instance: u64,
    /// Whether neither it is released nor its guards have it.
    pub is_left_out: bool,
}

impl Shared {
    /// The task's descriptor, if it has one that has not ended, is waited for again.
    pub fn arm_descriptor(&self, task: usize) {
        let Some(descriptor) = self.triggering[task].open_descriptor() else { return };
        let Some(first) = self.layout.triggered(task).firsts.first() else { return };
        let post = self.guard_post(self.layout.operation(*first).node);
        let set = post.descriptors().expect("something outside may release tasks of the node");
        // It is the run's own, and open until it ends.
        set.arm(descriptor, task as u32).expect("an open descriptor can be waited for");
    }
}

impl JobFlow {
    /// A value that counts has been published at `at`, by a job that is due at `due`, and what it triggers is released at `now`. Does not ring.
    pub fn count_value(
        &mut self,
        shared: &Shared,
        trigger: &ValueTrigger,
        (at, due): (Instant, Instant),
        now: Instant,
    ) {
        let triggering = &shared.triggering[trigger.task];
        let values = triggering.values.load(Ordering::Relaxed) + 1;
        triggering.values.store(values, Ordering::Relaxed);
        if values.is_multiple_of(trigger.every) {
            self.arrive_by_trigger(shared, trigger.task, (at, Some(due)), now);
        }
    }

    /// An instance of a task with a trigger has arrived at `at`; `due` is when the job is due that releases it, if a job does. It is released
    /// at `now`, or signalled to its guards. Does not ring. Returns its number, and whether it is left out.
    pub fn arrive_by_trigger(
        &mut self,
        shared: &Shared,
        task: usize,
        (at, due): (Instant, Option<Instant>),
        now: Instant,
    ) -> Arrived {
        let triggered = shared.layout.triggered(task);
        let instance = shared.triggering[task].take_number();
        let inherited = due.filter(|_| triggered.inherits);
        let deadline = inherited.unwrap_or(at.saturating_add(triggered.deadline));
        let site = |operation: &OperationId| shared.layout.operation(*operation);
        let local = |operation: &OperationId| site(operation).local.expect("an operation of this process");
        let Some(first) = triggered.firsts.first() else { return Arrived { instance, is_left_out: false } };
        // Nobody else claims the words of this instance, so room that is seen stays.
        let has_room =
            triggered.firsts.iter().all(|operation| shared.jobs.has_room(local(operation), instance));
        if !has_room {
            let is_merged =
                triggered.overrun == Overrun::Merge && shared.jobs.any_waits_before(local(first), instance);
            let reason = if is_merged { SkipReason::Merged } else { SkipReason::Full };
            let dates = Dates { nominal: at, deadline };
            self.skip_instance(shared, (*first, instance), dates, reason, MonotonicClock.now());
            return Arrived { instance, is_left_out: true };
        }
        let is_guarded = site(first).guard.is_some();
        let mut is_left_out = true;
        for operation in &triggered.firsts {
            let released = |release| InFlight { instance, release, deadline };
            // What comes to a guard is decided about there.
            let left_out = if is_guarded { None } else { self.overruns(shared, *operation, instance) };
            if let Some(reason) = left_out {
                if shared.layout.stands_for_node(*operation) {
                    let (id, dates) = ((*operation, instance), Dates { nominal: at, deadline });
                    self.skip_instance(shared, id, dates, reason, MonotonicClock.now());
                }
                continue;
            }
            let fits = if is_guarded {
                self.hold(shared, site(operation), released(at), at)
            } else {
                // Its lane orders it by when it is released, which is not before what was recorded of those that were aborted or left out for it.
                let now = now.max(self.recorder.latest());
                let nominal = if triggered.inherits { now } else { at };
                let release = Release { operation: *operation, nominal, job: released(now) };
                self.release(shared, release, now)
            };
            assert!(fits.is_ok(), "the window had room");
            is_left_out = false;
        }
        Arrived { instance, is_left_out }
    }

    /// A first subtask of a task with a trigger is to be released: its node decides what becomes of it if jobs of an instance before are
    /// unfinished there. Aborts these, or returns why it is left out, if it is.
    pub fn overruns(&mut self, shared: &Shared, operation: OperationId, instance: u64) -> Option<SkipReason> {
        let task = shared.layout.operation(operation).task;
        let overrun = shared.layout.triggered(task).overrun;
        if overrun == Overrun::Queue {
            return None;
        }
        let triggering = &shared.triggering[task];
        let mut firsts = shared.layout.firsts_beside(operation);
        let (lead, _) = firsts.next().expect("it is one of them itself");
        // Jobs may end while one first subtask after the other is released: what was decided about the instance stays.
        let is_left_out = triggering.decided(lead, instance).unwrap_or_else(|| {
            let is_left_out = self.decide(shared, (operation, overrun), instance);
            triggering.decide(lead, instance, is_left_out);
            is_left_out
        });
        if !is_left_out {
            let place = shared.layout.triggered(task).firsts.iter().position(|first| *first == operation);
            triggering.set_released(place.expect("one of them"), instance);
        }
        is_left_out.then_some(match overrun {
            Overrun::Merge => SkipReason::Merged,
            Overrun::SkipNext | Overrun::Queue | Overrun::Abort => SkipReason::Overrun,
        })
    }

    /// The node of the operation decides what becomes of an instance. Aborts those before, or returns whether it is left out.
    fn decide(
        &mut self,
        shared: &Shared,
        (operation, overrun): (OperationId, Overrun),
        instance: u64,
    ) -> bool {
        let triggering = &shared.triggering[shared.layout.operation(operation).task];
        // Only the last one need be looked at: those before have ended, or have been told to stop.
        let before = |(place, first): (usize, OperationId)| {
            let local = shared.layout.operation(first).local.expect("an operation of this process");
            let last = triggering.released_before(place, instance)?;
            shared.jobs.is_unfinished(local, last).then_some((first, local, last))
        };
        let mut unfinished = shared.layout.firsts_beside(operation).filter_map(before).peekable();
        let previous = match unfinished.peek() {
            // There is one first subtask.
            Some((_, local, last)) if overrun == Overrun::Merge && shared.jobs.is_waiting(*local, *last) => {
                Previous::Waiting
            }
            Some(_) => Previous::Unfinished,
            None => Previous::Done,
        };
        match overrun::decide(overrun, previous) {
            OnArrival::Skip | OnArrival::Merge => return true,
            OnArrival::Release => {}
            OnArrival::AbortPrevious => {
                for (first, local, last) in unfinished {
                    // It has its entry until its lane has dropped it, which no other instance takes before.
                    let InFlight { release, deadline, .. } =
                        shared.jobs.in_flight(shared.jobs.tag(local, last));
                    let nominal = shared.layout.operation(first).nominal_release(release, deadline);
                    self.abort(shared, first, last, Dates { nominal, deadline });
                }
            }
        }
        false
    }

    /// An instance that arrived at `at` is not released.
    pub fn skip_instance(
        &mut self,
        shared: &Shared,
        (first, instance): (OperationId, u64),
        dates: Dates,
        reason: SkipReason,
        now: Instant,
    ) {
        let lane = shared.layout.operation(first).lane;
        let subject = Subject { job: JobId { operation: first, instance }, lane };
        self.recorder.put(now, subject.skip(dates, reason));
    }
}

/// Why a call of a trigger released nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NotTriggered {
    /// The run has not begun, or is over.
    #[error("the run has not begun, or is over")]
    NotRunning,
    /// As many instances of the task as there is room for are unfinished. It is counted.
    #[error("as many instances of the task as there is room for are unfinished")]
    Full,
}

/// Why a task cannot be triggered so. Nothing has changed.
#[derive(Debug, Error)]
pub enum TriggerError {
    /// There is no such task, or something else releases it.
    #[error("no task \"{name}\" is triggered from outside{}", list(external))]
    NoSuchTask {
        /// What was asked for.
        name: String,
        /// Those that are.
        external: Vec<String>,
    },
    /// It has a trigger or a descriptor already.
    #[error("task \"{0}\" has a trigger or a descriptor already")]
    Taken(String),
    /// The descriptor cannot be polled: it is closed, or a file.
    #[error(
        "the descriptor for task \"{name}\" cannot be waited for: {source}; give an open socket, pipe, timerfd or eventfd"
    )]
    Unpollable {
        /// The task.
        name: String,
        /// What the system says.
        source: std::io::Error,
    },
}

fn list(names: &[String]) -> String {
    match names {
        [] => "; none is: write trigger = \"external\" in its [[task]]".into(),
        names => format!("; these are: {}", names.join(", ")),
    }
}

/// The task of this name, which something outside releases and nothing that was given yet.
fn external(shared: &Shared, system: &System, name: &str) -> Result<usize, TriggerError> {
    let is_external = |task: usize| {
        let triggered = shared.layout.triggered.get(task).and_then(Option::as_ref);
        triggered.is_some_and(|triggered| triggered.is_external && !triggered.firsts.is_empty())
    };
    let task = system.tasks.iter().position(|task| task.name == name).filter(|task| is_external(*task));
    let Some(task) = task else {
        let external = (0..system.tasks.len()).filter(|task| is_external(*task));
        let external = external.map(|task| system.tasks[task].name.clone()).collect();
        return Err(TriggerError::NoSuchTask { name: name.to_owned(), external });
    };
    match shared.triggering[task].drive() {
        true => Ok(task),
        false => Err(TriggerError::Taken(name.to_owned())),
    }
}

/// The program releases the task of this name from now on.
pub(crate) fn open_trigger(
    shared: &Arc<Shared>,
    system: &System,
    name: &str,
) -> Result<ExternalTrigger, TriggerError> {
    let task = external(shared, system, name)?;
    Ok(ExternalTrigger { shared: Arc::clone(shared), task })
}

/// The task of this name is released whenever the descriptor can be read, from now on.
pub(crate) fn open_descriptor(
    shared: &Shared,
    system: &System,
    name: &str,
    descriptor: OwnedFd,
) -> Result<(), TriggerError> {
    let task = external(shared, system, name)?;
    let first = shared.layout.triggered(task).firsts[0];
    let post = shared.guard_post(shared.layout.operation(first).node);
    let set = post.descriptors().expect("something outside may release tasks of the node");
    if let Err(source) = set.add(&descriptor, task as u32) {
        shared.triggering[task].is_driven.store(false, Ordering::Relaxed);
        return Err(TriggerError::Unpollable { name: name.to_owned(), source: source.into() });
    }
    let is_new = shared.triggering[task].descriptor.set(descriptor).is_ok();
    assert!(is_new, "a task has one descriptor");
    Ok(())
}

/// Releases a task from the program, at each call. There is one for each task.
pub struct ExternalTrigger {
    pub(crate) shared: Arc<Shared>,
    pub(crate) task: usize,
}

impl std::fmt::Debug for ExternalTrigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ExternalTrigger").field("task", &self.task).finish_non_exhaustive()
    }
}

impl ExternalTrigger {
    /// What the task waits for has happened, now. It is released, as soon as the declared separation permits. Neither allocates nor
    /// waits, with a system call at most, to wake the release thread. Returns the number of the instance, which is not released if the
    /// [overrun policy](Overrun) leaves it out or merges it with one that waits.
    ///
    /// # Errors
    /// [`NotTriggered`].
    pub fn fire(&mut self) -> Result<u64, NotTriggered> {
        let ExternalTrigger { shared, task } = self;
        let now = MonotonicClock.now();
        if !shared.gate.has_begun(now) || shared.stop.is_stopped() {
            return Err(NotTriggered::NotRunning);
        }
        let triggered = shared.layout.triggered(*task);
        let triggering = &shared.triggering[*task];
        let instance = triggering.next.load(Ordering::Relaxed);
        let site = |operation: &OperationId| shared.layout.operation(*operation);
        let local = |operation: &OperationId| site(operation).local.expect("an operation of this process");
        if !triggered.firsts.iter().all(|operation| shared.jobs.has_room(local(operation), instance)) {
            shared.tally.triggers_refused.fetch_add(1, Ordering::Relaxed);
            return Err(NotTriggered::Full);
        }
        triggering.next.store(instance + 1, Ordering::Relaxed);
        let deadline = now.saturating_add(triggered.deadline);
        for operation in &triggered.firsts {
            let claimed = shared.jobs.claim(local(operation), InFlight { instance, release: now, deadline });
            shared.guard_post(site(operation).node).push(claimed.expect("the window had room"));
        }
        triggered.firsts.iter().for_each(|operation| shared.guard_post(site(operation).node).ring());
        Ok(instance)
    }
}
