//! Synchronisation protocols on threads: the guards of a node belong to its release thread alone.
//!
//! Whoever completes the join of a guarded job (a lane's thread, or the receiver of messages) claims its entry in the job table, pushes its tag
//! into the inbox of the release thread, and rings. The release thread lets the job wait at its guard, and releases it into its lane when that
//! opens: by its timer, or at an idle point. That nothing is unfinished on a node is known by a count of its released jobs; whoever ends the
//! last of them notes when that was, and rings if anything waits. No step of this locks or allocates.

use crate::flow::{JobFlow, Shared};
use crate::guard_post::GuardPost;
use crate::job_table::{Abort, InFlight};
use talea_linux::stop::{Slept, StopFlag};
use talea_linux::timer::Interruption;
use talea_policy::release::guard::{Guards, Signal, Taken, Way};
use talea_record::JobId;
use talea_record::event::Guard;
use talea_ring::bell::Waited;
use talea_ring::inbox::Receiver;
use talea_time::{Clock, Instant};

/// The guards of a node, with the release thread.
pub(crate) struct GuardKeeper {
    pub node: usize,
    pub guards: Guards,
    pub inbox: Receiver,
}

/// What ends the sleep of a release thread that keeps guards: a signal, an idle point, the stop.
pub(crate) struct Call<'a> {
    post: &'a GuardPost,
    inbox: &'a Receiver,
    stop: &'a StopFlag,
    is_holding: bool,
}

impl Interruption for Call<'_> {
    fn sleep_until(&self, until: Instant) -> Slept {
        let until = std::time::Duration::from_nanos(until.as_nanos().max(0).unsigned_abs());
        match self.post.bell.wait_until(until, || self.is_there()) {
            Waited::Due => Slept::Due,
            Waited::HadWork | Waited::Rung => Slept::Stopped,
        }
    }

    fn is_there(&self) -> bool {
        let is_idle = self.is_holding && self.post.has_idle_point();
        is_idle || self.inbox.has_number() || self.stop.is_stopped()
    }
}

impl GuardKeeper {
    /// What interrupts the release thread before the next release.
    pub fn call<'a>(&'a self, shared: &'a Shared) -> Call<'a> {
        let post = shared.guard_post(self.node);
        let is_holding = self.guards.next() != Instant::MAX;
        post.set_holding(is_holding);
        Call { post, inbox: &self.inbox, stop: &shared.stop, is_holding }
    }

    /// When the next guard opens.
    pub fn next(&self) -> Instant {
        self.guards.next()
    }

    /// Lets what has been signalled wait, and opens guards for an idle point. To be called before anything is released by `now`.
    pub fn take_in(&mut self, flow: &mut JobFlow, shared: &Shared, now: Instant) {
        // An idle point that was noted before a signal came opens guards for it, too, whichever is seen first.
        while let Some(tag) = self.inbox.pop() {
            let operation = shared.operation_of(tag);
            let InFlight { instance, release: at, deadline } = shared.jobs.in_flight(tag);
            let not_before = shared.timers.expiry(tag);
            let signal = Signal { instance, deadline, at, not_before, way: Way::Local };
            let site = shared.layout.operation(operation);
            let place = site.guard.expect("only guarded jobs come here");
            let job = JobId { operation, instance };
            match self.guards.signal(place, signal) {
                Taken::Until(until) if until > now => {
                    flow.recorder.put_if_wanted(now, Guard { job, until, lane: site.lane as u16 });
                }
                Taken::Until(_) => {}
                Taken::Refused => {
                    let local = site.local.expect("an operation of this process");
                    assert_eq!(shared.jobs.abort(local, instance), Abort::Waiting, "nobody knows of the job");
                    shared.jobs.forget(tag, instance);
                    flow.refuse(shared, job, deadline, now);
                }
            }
        }
        if let Some(idle_point) = shared.guard_post(self.node).take_idle_point(now) {
            self.guards.idle_point(idle_point);
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
        while let Some(release) = self.guards.pop_due(now) {
            let Signal { instance, deadline, .. } = release.signal;
            let job = InFlight { instance, release: release.at, deadline };
            flow.release_held(shared, release.operation, job, clock.now());
            count += 1;
        }
        count
    }
}
