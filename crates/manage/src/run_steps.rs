//! What a run does to the members: arrivals become wake-ups, decisions become records.

use crate::managed_run::{Due, EndedRun};
use crate::member::{Body, Managed, Member, Received};
use crate::member_jobs::MemberJobs;
use crate::sleep_word::Notified;
use crate::state::State;
use talea_policy::arrangement::{ChangeCause, Counts};
use talea_policy::hierarchy::{Occupant, VpState};
use talea_policy::job::Job;
use talea_record::JobId;
use talea_time::Instant;

impl State {
    /// What the run has due at `now`.
    pub(crate) fn come_due(&mut self, now: Instant) {
        if self.is_broken() {
            return;
        }
        while let Some(due) = self.run.as_mut().and_then(|run| run.due(now)) {
            match due {
                Due::Start => self.begin(),
                Due::Arrival(slot) => self.arrive(slot, now),
                Due::End => self.close(now),
            }
        }
    }

    /// The run begins: accounts are opened, and the first jobs expected.
    fn begin(&mut self) {
        let Some(run) = &mut self.run else { return };
        run.begin();
        self.introduce_threads();
        let Some(run) = &mut self.run else { return };
        for (slot, member) in self.members.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            member.open_account();
            if let Some(jobs) = member.jobs.as_ref().and_then(MemberJobs::as_thread) {
                run.expect(slot as u32, jobs);
                // Of a program nobody knows when it has something to do.
                if matches!(member.body, Body::Own { .. }) {
                    let (tolerance, start) = (run.watch.tolerance(), run.start);
                    run.watch.judge_work(member.vp, Counts::Grants, tolerance, start);
                }
            }
        }
    }

    fn arrive(&mut self, slot: u32, now: Instant) {
        let Some(run) = &mut self.run else { return };
        let Some(member) = self.members[slot as usize].as_mut() else { return };
        let Some(jobs) = member.jobs.as_mut().and_then(MemberJobs::as_thread_mut) else { return };
        let is_idle = jobs.current().is_none();
        let number = jobs.arrive();
        run.released(jobs, number, now);
        run.expect(slot, jobs);
        if !is_idle {
            return;
        }
        run.watch.work_arrives(member.vp, now);
        match member.sleep_word().map(|sleep_word| sleep_word.notify()) {
            Some(Notified::Sleeper) => self.notified(slot, now),
            Some(Notified::Later | Notified::Ended) => {}
            None => {
                member.set_going();
                self.request(slot, now);
            }
        }
    }

    /// Ends the run at `now`, or at its planned end if that has passed.
    pub(crate) fn close(&mut self, now: Instant) {
        if self.run.as_ref().is_none_or(|run| run.is_over()) {
            return;
        }
        // The last decisions take processors from jobs, too, and give them some.
        self.decide(now);
        let Some(run) = &mut self.run else { return };
        run.close(now);
        let context = self.engine.context();
        let of = |member: &mut Member| Received::of(member, context.service(member.vp));
        let received = self.members.iter_mut().flatten().map(of).collect();
        let own = self.members.iter_mut().flatten().filter(|member| member.sleep_word().is_some());
        let number = |member: &Member| member.threads.first().map(Managed::number);
        let clocks = own.filter_map(|member| Some((number(member)?, member.received()))).collect();
        let (kept, start) = (run.watch.kept(&context), run.start);
        let ((end, planned_end), undefined) = (run.ends(), run.undefined());
        run.ended_run = Some(EndedRun { kept, received, clocks, start, end, planned_end, undefined });
    }

    /// Has the hierarchy decide, and notes what it did.
    pub(crate) fn decide(&mut self, now: Instant) {
        if self.is_broken() {
            return;
        }
        self.engine.settle(now);
        if self.run.is_some() {
            self.note_switches(now);
        }
    }

    fn note_switches(&mut self, now: Instant) {
        for index in 0..self.engine.switches().len() {
            let switch = self.engine.switches()[index];
            let place = switch.processor.index();
            let slot = |occupant: Option<Occupant>| occupant.and_then(|at| self.slot_of(at.thread()));
            let (from, to) = (slot(switch.from), slot(switch.to));
            let next = to.and_then(|slot| self.members[slot as usize].as_ref()?.jobs.as_ref());
            let by = next.and_then(MemberJobs::current);
            let Some(run) = &mut self.run else { return };
            let from = from.and_then(|slot| self.members[slot as usize].as_mut()?.jobs.as_mut());
            if let Some(who) = from
                && let Some(job) = who.lose(place)
            {
                run.lost(who.lane(), Some(place), (job, by), now);
            }
        }
        // All who lose a processor before anybody gets one, for some go from one to another.
        for index in 0..self.engine.switches().len() {
            let switch = self.engine.switches()[index];
            let place = switch.processor.index();
            let to = switch.to.and_then(|occupant| self.slot_of(occupant.thread()));
            let Some(run) = &mut self.run else { return };
            let to = to.and_then(|slot| self.members[slot as usize].as_mut()?.jobs.as_mut());
            if let Some(who) = to
                && let Some(gained) = who.gain(place)
            {
                run.gained(who, place, gained, now);
            }
        }
        self.begin_followed(now);
        self.note_decisions(now);
        if let Some(run) = &mut self.run {
            run.tell_found(now);
        }
    }

    /// The next job begins of a thread that has kept its processor.
    fn begin_followed(&mut self, now: Instant) {
        let (Some(slot), Some(run)) = (self.followed.take(), &mut self.run) else { return };
        let Some(member) = self.members.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        if let (VpState::Running(processor), Some(who)) =
            (self.engine.context().state(member.vp), &mut member.jobs)
            && let Some(gained) = who.gain(processor.index())
        {
            run.gained(who, processor.index(), gained, now);
        }
    }

    pub(crate) fn note_decisions(&mut self, now: Instant) {
        if self.run.as_mut().is_some_and(|run| run.note_changes()) {
            self.introduce_threads();
        }
        if let Some(run) = &mut self.run {
            self.engine.transitions().for_each(|transition| run.judge(transition, now));
        }
    }

    /// An own thread has done its job. If the next has arrived already, the hierarchy hears of that.
    pub(crate) fn complete(&mut self, slot: u32, now: Instant) {
        let Some(run) = &mut self.run else { return };
        let Some(jobs) = jobs(&mut self.members, slot).and_then(MemberJobs::as_thread_mut) else {
            return;
        };
        let Some((number, place)) = jobs.complete() else { return };
        run.completed(jobs, number, place, now);
        if jobs.current().is_some() {
            return self.follow(slot, now);
        }
        let vp = self.members[slot as usize].as_ref().map(|member| member.vp);
        if let (Some(vp), Some(run)) = (vp, &mut self.run) {
            run.watch.work_is_done(vp, now);
        }
    }

    /// The number of the job that an own thread is to do.
    pub(crate) fn current_job(&self, slot: u32) -> Option<u64> {
        self.members.get(slot as usize)?.as_ref()?.jobs.as_ref()?.as_thread()?.current()
    }

    /// A lane that sleeps is woken for `job`.
    pub(crate) fn offer_to_sleeper(&mut self, slot: u32, job: Job) {
        if let Some(lane) = jobs(&mut self.members, slot).and_then(MemberJobs::as_lane_mut) {
            lane.offer(job);
        }
    }

    /// A job is released into a lane whose thread is awake. If it has begun none, and this one `precedes` the one that the hierarchy was asked
    /// for, the hierarchy is asked for this one. Returns whether it was.
    pub(crate) fn offer_before(
        &mut self,
        slot: u32,
        job: Job,
        precedes: impl FnOnce(&Job) -> bool,
        now: Instant,
    ) -> bool {
        let lane = jobs(&mut self.members, slot).and_then(MemberJobs::as_lane_mut);
        let is_first = lane.is_some_and(|lane| lane.waits_for(precedes));
        is_first && self.offer(slot, job, now)
    }

    /// A lane's thread is about to begin `job`. Returns whether the hierarchy had to be told, which may have other plans then.
    pub(crate) fn offer(&mut self, slot: u32, job: Job, now: Instant) -> bool {
        let Some(member) = self.members.get_mut(slot as usize).and_then(Option::as_mut) else { return false };
        let (vp, tag) = (member.vp, member.vp.index() as u32);
        let Some(lane) = member.jobs.as_mut().and_then(MemberJobs::as_lane_mut) else { return false };
        let is_other = lane.offer(job);
        let is_known = self.engine.context().state(vp) != VpState::Waiting;
        if self.is_broken() || !is_other || !is_known || !self.engine.asks_by_jobs(vp) {
            return false;
        }
        self.engine.change_job(vp, Job { tag, ..job }, now);
        true
    }

    /// A lane's thread begins `job`. Returns whether it has a processor for it.
    pub(crate) fn begin_in_lane(&mut self, slot: u32, job: JobId) -> bool {
        let lane = jobs(&mut self.members, slot).and_then(MemberJobs::as_lane_mut);
        lane.is_none_or(|lane| lane.begin(job))
    }

    /// The job of a lane's thread has ended.
    pub(crate) fn end_in_lane(&mut self, slot: u32) {
        if let Some(lane) = jobs(&mut self.members, slot).and_then(MemberJobs::as_lane_mut) {
            lane.end();
        }
    }

    /// A member leaves. A program has then done what it was to do; a thread of our own has not, and gives up all that waits for it.
    pub(crate) fn leave(&mut self, member: &mut Member, cause: ChangeCause, now: Instant) {
        let Some(run) = &mut self.run else { return };
        run.let_go(member.vp, now, cause);
        let Some(jobs) = member.jobs.as_mut().and_then(MemberJobs::as_thread_mut) else { return };
        while let Some((number, place)) = jobs.complete() {
            match member.body {
                Body::Own { .. } => run.aborted(jobs, number, place, now),
                Body::Opaque { .. } => run.completed(jobs, number, place, now),
            }
        }
    }
}

fn jobs(members: &mut [Option<Member>], slot: u32) -> Option<&mut MemberJobs> {
    members.get_mut(slot as usize)?.as_mut()?.jobs.as_mut()
}
