//! Synchronisation protocols on threads: the guards of a node belong to its release thread alone.
//!
//! Whoever completes the join of a guarded job (a lane's thread, or the receiver of messages) claims its entry in the job table, pushes its tag
//! into the inbox of the release thread, and rings. The release thread lets the job wait at its guard, and releases it into its lane when that
//! opens: by its timer, or at an idle point. That nothing is unfinished on a node is known by a count of its released jobs; whoever ends the
//! last of them notes when that was, and rings if anything waits. No step of this locks or allocates.

use crate::flow::{JobFlow, Shared};
use crate::guard_post::GuardPost;
use crate::job_table::{Abort, InFlight};
use crate::layout::OperationSite;
use std::cell::RefCell;
use std::sync::atomic::Ordering;
use talea_linux::ready::Ready;
use talea_linux::stop::{Slept, StopFlag};
use talea_linux::timer::Interruption;
use talea_model::Overrun;
use talea_policy::release::guard::{Due, Guards, Signal, Taken, Way};
use talea_record::event::{Dates, Guard, Held, Open};
use talea_record::{JobId, SkipReason};
use talea_ring::inbox::Receiver;
use talea_time::{Clock, Duration, Instant};

/// How long a descriptor is left alone that was ready while there was no room for another instance.
const LANES_LET_GO: Duration = Duration::from_millis(1);

/// The guards of a node, with the release thread.
pub(crate) struct GuardKeeper {
    pub node: usize,
    pub guards: Guards,
    pub inbox: Receiver,
    /// Tasks whose descriptors have been found ready; preallocated, as each is told of once until it is armed again.
    pub ready: RefCell<Vec<Ready>>,
    /// Tasks whose descriptors were ready too early, and when these are looked at again; preallocated, as each waits once.
    pub again: Vec<(Instant, usize)>,
}

/// What ends the sleep of a release thread that keeps guards: a signal, an idle point, the stop.
pub(crate) struct Call<'a> {
    post: &'a GuardPost,
    inbox: &'a Receiver,
    stop: &'a StopFlag,
    is_holding: bool,
    /// Tasks whose descriptors have been found ready.
    ready: &'a RefCell<Vec<Ready>>,
}

impl Interruption for Call<'_> {
    fn sleep_until(&self, until: Instant) -> Slept {
        self.post.sleep_until(until, || self.is_there(), |found| self.ready.borrow_mut().push(found))
    }

    fn is_there(&self) -> bool {
        let is_idle = self.is_holding && self.post.has_idle_point();
        is_idle || self.inbox.has_number() || self.stop.is_stopped() || !self.ready.borrow().is_empty()
    }
}

impl GuardKeeper {
    /// What interrupts the release thread before the next release.
    pub fn call<'a>(&'a self, shared: &'a Shared) -> Call<'a> {
        let post = shared.guard_post(self.node);
        let is_holding = self.guards.next() != Instant::MAX;
        post.set_holding(is_holding);
        Call { post, inbox: &self.inbox, stop: &shared.stop, is_holding, ready: &self.ready }
    }

    /// When the next guard opens, or a descriptor is to be looked at again.
    pub fn next(&self) -> Instant {
        self.again.iter().map(|(at, _)| *at).fold(self.guards.next(), Instant::min)
    }

    /// Tasks whose descriptors are ready arrive at `now`. To be called before what has been signalled is taken in.
    pub fn arrive_ready(&mut self, flow: &mut JobFlow, shared: &Shared, now: Instant) {
        for Ready { number, is_hung_up } in self.ready.get_mut().drain(..) {
            let task = number as usize;
            shared.triggering[task].begin_ready(shared.layout.triggered(task).firsts.len(), is_hung_up);
            // Once more after the last has been read, so that the operation sees the end.
            if flow.arrive_by_trigger(shared, task, (now, None), now).is_left_out {
                // A lane has not let go yet of a job that has ended, and may need the processor for that.
                shared.triggering[task].undo_ready();
                self.again.push((now.saturating_add(LANES_LET_GO), task));
            }
        }
    }

    /// Descriptors that were ready too early are looked at again, if the time for that has come by `now`.
    fn look_again(&mut self, shared: &Shared, now: Instant) {
        self.again.retain(|(at, task)| {
            if *at <= now {
                shared.arm_descriptor(*task);
            }
            *at > now
        });
    }

    /// An instance that was held at the guard at `place` is not released. What a descriptor was ready for is there still, and would be too
    /// early until the guard lets another through.
    fn skip(
        &mut self,
        (flow, shared): (&mut JobFlow, &Shared),
        (place, site): (usize, &OperationSite),
        signal: &Signal,
        (why, now): (SkipReason, Instant),
    ) {
        let Signal { instance, deadline, at, .. } = *signal;
        withdraw(shared, site, instance);
        if !shared.layout.stands_for_node(site.id) {
            return;
        }
        flow.skip_instance(shared, (site.id, instance), Dates { nominal: at, deadline }, why, now);
        let triggering = &shared.triggering[site.task];
        if triggering.descriptor.get().is_some() {
            triggering.undo_ready();
            self.again.push((self.guards.conforms_from(place), site.task));
        }
    }

    /// Lets what has been signalled wait, and opens guards for an idle point. To be called before anything is released by `now`.
    pub fn take_in(&mut self, flow: &mut JobFlow, shared: &Shared, now: Instant) {
        self.look_again(shared, now);
        // An idle point that was noted before a signal came opens guards for it, too, whichever is seen first.
        while let Some(tag) = self.inbox.pop() {
            let operation = shared.operation_of(tag);
            let InFlight { instance, release: at, deadline } = shared.jobs.in_flight(tag);
            let not_before = shared.timers.expiry(tag);
            let signal = Signal { instance, deadline, at, not_before, way: Way::Local };
            let site = shared.layout.operation(operation);
            let place = site.guard.expect("only guarded jobs come here");
            let job = JobId { operation, instance };
            // What has no predecessors has a trigger. What waits at a guard counts as waiting where instances are merged, so that is decided before they
            // wait themselves.
            let merges =
                site.predecessors == 0 && shared.layout.triggered(site.task).overrun == Overrun::Merge;
            if let Some(reason) = merges.then(|| flow.overruns(shared, operation, instance)).flatten() {
                self.skip((flow, shared), (place, site), &signal, (reason, now));
                continue;
            }
            let taken = self.guards.signal(place, signal);
            match taken {
                Taken::Until(until) if until > now => {
                    flow.recorder.put_if_wanted(now, Guard { job, until, lane: site.lane as u16 });
                }
                Taken::Until(_) => {}
                Taken::Refused if site.predecessors > 0 => {
                    withdraw(shared, site, instance);
                    flow.refuse(shared, job, deadline, now);
                }
                Taken::Refused => {
                    shared.tally.overflows.fetch_add(1, Ordering::Relaxed);
                    self.skip((flow, shared), (place, site), &signal, (SkipReason::Full, now));
                }
                Taken::Dropped => self.skip((flow, shared), (place, site), &signal, (SkipReason::Early, now)),
            }
        }
        if let Some((from, to)) = shared.guard_post(self.node).take_idle_points(now) {
            self.guards.idle_points(from, to);
        }
    }

    /// Releases what guards let through by `now`, without ringing. Returns how many.
    pub fn release_due(
        &mut self,
        flow: &mut JobFlow,
        shared: &Shared,
        clock: &impl Clock,
        now: Instant,
    ) -> usize {
        let mut count = 0;
        while let Some(due) = self.guards.next_due(now) {
            let site = shared.layout.operation(due.operation);
            if due.is_held && site.predecessors == 0 && !is_for_an_event(shared, site, &due, now) {
                self.guards.withdraw(due.place);
                self.skip((flow, shared), (due.place, site), &due.signal, (SkipReason::Expired, clock.now()));
                continue;
            }
            let release = self.guards.let_through(due.place);
            let Signal { instance, deadline, .. } = release.signal;
            let job = InFlight { instance, release: release.at, deadline };
            // What has no predecessors has a trigger, or nobody would hold it. Whether it is merged was decided when it came.
            let is_decided_now =
                site.predecessors == 0 && shared.layout.triggered(site.task).overrun != Overrun::Merge;
            let left_out =
                if is_decided_now { flow.overruns(shared, release.operation, instance) } else { None };
            if let Some(reason) = left_out {
                let place = site.guard.expect("it was held");
                self.skip((flow, shared), (place, site), &release.signal, (reason, clock.now()));
                continue;
            }
            let now = clock.now();
            // Of what has predecessors the nominal release says it.
            if site.predecessors == 0 {
                let (id, lane) = (JobId { operation: release.operation, instance }, site.lane as u16);
                flow.recorder.put_if_wanted(now, Open { job: id, at: release.at, lane });
            }
            flow.release_held(shared, release.operation, job, now);
            count += 1;
        }
        count
    }

    /// The run is over: what guards hold is told, of instances whose arrival nothing else tells.
    pub fn end(&mut self, flow: &mut JobFlow, shared: &Shared, over: Instant) {
        self.take_in(flow, shared, over);
        while let Some(due) = self.guards.next_due(Instant::MAX) {
            let Due { place, operation, signal, .. } = due;
            let site = shared.layout.operation(operation);
            if site.predecessors > 0 {
                self.guards.let_through(place);
                continue;
            }
            let Signal { instance, deadline, at: nominal, .. } = signal;
            if !is_for_an_event(shared, site, &due, over) {
                self.guards.withdraw(place);
                self.skip((flow, shared), (place, site), &signal, (SkipReason::Expired, over));
                continue;
            }
            self.guards.let_through(place);
            if shared.layout.stands_for_node(site.id) {
                let (job, lane) = (JobId { operation, instance }, site.lane as u16);
                flow.recorder.put(over, Held { job, lane, nominal, deadline });
            }
        }
    }
}

/// Whether an event still waits for the release, as far as events release the task.
fn is_for_an_event(shared: &Shared, site: &OperationSite, due: &Due, now: Instant) -> bool {
    let Some(channel) = shared.triggering[site.task].channel.get() else { return true };
    let local = site.local.expect("an operation of this process");
    let jobs = || shared.jobs.waiting(local, due.signal.instance);
    if channel.waiting(due.signal.at, now).all == 0 {
        return false;
    }
    // Lanes begin jobs and take events meanwhile: what is counted too low leaves a job without an event, and what is counted too high would leave an
    // event without a job. Those that have not come to the guard yet are for events, too.
    let (_, waiting) = jobs();
    let events = channel.waiting(due.signal.at, now);
    let (released, _) = jobs();
    events.need(released, waiting)
}

/// A job that has been signalled, and of which only the release thread knows, never comes.
fn withdraw(shared: &Shared, site: &OperationSite, instance: u64) {
    let local = site.local.expect("an operation of this process");
    assert_eq!(shared.jobs.abort(local, instance), Abort::Waiting, "nobody knows of the job");
    shared.jobs.forget(shared.jobs.tag(local, instance), instance);
}
