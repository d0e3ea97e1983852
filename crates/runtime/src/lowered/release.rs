//! The release thread: lets bursts begin at their absolute instants, and ends the run at its planned end.

use super::shared::{Shared, Waiting};
use crate::recorder::{Recorder, Recording, Subject};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_linux::clock::MonotonicClock;
use talea_linux::stop::Slept;
use talea_manage::ThreadJobs;
use talea_record::ThreadRole;
use talea_time::{Clock, Instant};

pub(super) struct ReleaseThread {
    pub shared: Arc<Shared>,
    /// Own threads' parts with their posts.
    pub sources: Vec<(usize, ThreadJobs)>,
}

impl ReleaseThread {
    /// From the start to the end of the run.
    pub fn serve(mut self, recording: Recording) {
        let mut recorder = recording.begin(ThreadRole::Release, None);
        let mut agenda: BinaryHeap<Reverse<(Instant, usize)>> = BinaryHeap::with_capacity(self.sources.len());
        let shared = Arc::clone(&self.shared);
        let Some(start) = shared.wait(Waiting::Release) else { return };
        let end = shared.end();
        recorder.run_start(start, (end != Instant::MAX).then_some(end));
        for (source, (_, jobs)) in self.sources.iter().enumerate() {
            agenda.push(Reverse((jobs.next_release(start), source)));
        }
        loop {
            let next = agenda.peek().map_or(end, |first| first.0.0.min(end));
            let slept = shared.stop.sleep_until(next);
            let now = MonotonicClock.now();
            if slept == Slept::Stopped || now >= end {
                // First, so that nothing is recorded as done that was not by then.
                shared.stop(None);
                recorder.run_end(now.max(start).min(end));
                return;
            }
            recorder.timer(now, next, now);
            self.release_due(&mut recorder, &mut agenda, start, now);
        }
    }

    fn release_due(
        &mut self,
        recorder: &mut Recorder,
        agenda: &mut BinaryHeap<Reverse<(Instant, usize)>>,
        start: Instant,
        now: Instant,
    ) {
        while let Some(mut first) = agenda.peek_mut() {
            let Reverse((at, source)) = *first;
            if at > now {
                break;
            }
            let (post, jobs) = &mut self.sources[source];
            let number = jobs.arrive();
            *first = Reverse((jobs.next_release(start), source));
            drop(first);
            let subject = Subject { job: jobs.id(number), lane: usize::from(jobs.lane) };
            recorder.put(MonotonicClock.now(), subject.release(jobs.dates(number, start)));
            let post = &self.shared.posts[*post];
            post.arrived.fetch_add(1, Ordering::Release);
            post.bell.ring();
        }
    }
}
