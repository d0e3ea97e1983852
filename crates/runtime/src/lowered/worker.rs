//! An own thread: does its bursts one after the other, with no other means than the policy that the kernel has given it.

use super::shared::Shared;
use crate::hierarchy::{PREFAULTED, Workload};
use crate::lowering::hierarchy::Level;
use crate::occupancy::Stay;
use crate::recorder::{Recorder, Recording, Subject};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_linux::clock::{MonotonicClock, thread_cpu_time};
use talea_linux::memory::prefault_stack;
use talea_manage::ThreadJobs;
use talea_record::{JobId, ThreadRole};
use talea_time::{Clock, Instant};

pub(super) struct Worker {
    pub shared: Arc<Shared>,
    /// Its post.
    pub place: usize,
    /// What its jobs are called.
    pub jobs: ThreadJobs,
    pub workload: Workload,
    pub level: Level,
    /// Its stay on the node's processor, where preemption is recorded.
    pub stay: Option<Stay>,
    /// Lanes by operation, for those whom it displaces.
    pub lanes: Arc<[usize]>,
}

impl Worker {
    /// Until the run has ended.
    pub fn serve(mut self, recording: Recording) {
        prefault_stack(PREFAULTED);
        let mut recorder = recording.begin(ThreadRole::Lane, Some(usize::from(self.jobs.lane)));
        let shared = Arc::clone(&self.shared);
        let post = &shared.posts[self.place];
        let before = thread_cpu_time();
        let mut done = 0;
        while !shared.stop.is_stopped() {
            let arrived = post.arrived.load(Ordering::Acquire);
            if arrived == done {
                self.leave(&mut recorder);
                let has_work = || post.arrived.load(Ordering::Acquire) > done || shared.stop.is_stopped();
                post.bell.wait_unless(has_work);
                continue;
            }
            self.begin(&mut recorder, done, arrived - done);
            self.workload.perform(done, || shared.stop.is_stopped());
            if shared.stop.is_stopped() {
                break;
            }
            self.complete(&mut recorder, done);
            done += 1;
            if self.level == Level::Shared && post.arrived.load(Ordering::Acquire) > done {
                // The next burst has its turn after those of others that have waited for longer.
                self.leave(&mut recorder);
                rustix::thread::sched_yield();
            }
        }
        post.received_ns.store((thread_cpu_time() - before).as_nanos(), Ordering::Release);
    }

    fn subject(&self, job: JobId) -> Subject {
        Subject { job, lane: self.lanes[job.operation.index()] }
    }

    /// The first instruction of a job, of which there are `waiting` with it.
    fn begin(&mut self, recorder: &mut Recorder, number: u64, waiting: u64) {
        let now = MonotonicClock.now();
        let job = self.jobs.id(number);
        let displaced = self.stay.as_mut().and_then(|stay| stay.take(&self.shared.processor, job, |_| true));
        if let Some(victim) = displaced {
            recorder.put(now, self.subject(victim).preempt(job));
        }
        let depth = waiting.min(u64::from(u16::MAX)) as u16;
        recorder.put(now, self.subject(job).start(depth));
    }

    fn complete(&mut self, recorder: &mut Recorder, number: u64) {
        let job = self.jobs.id(number);
        let dates = self.jobs.dates(number, self.start());
        recorder.put(MonotonicClock.now(), self.subject(job).complete(dates));
        if self.stay.is_some() {
            self.shared.processor.vacate();
        }
    }

    /// Gives the processor back.
    fn leave(&mut self, recorder: &mut Recorder) {
        let resumed = self.stay.as_mut().and_then(|stay| stay.leave(&self.shared.processor, |_| true));
        if let Some(victim) = resumed {
            recorder.put(MonotonicClock.now(), self.subject(victim).resume());
        }
    }

    fn start(&self) -> Instant {
        self.shared.start()
    }
}
