//! What a run does to the members: arrivals become wake-ups, decisions become records.

use crate::course::{Due, Finale};
use crate::engagement::Engagement;
use crate::member::Received;
use crate::member::{Body, Member};
use crate::seat::Notified;
use crate::state::State;
use talea_policy::hierarchy::Occupant;
use talea_record::JobId;
use talea_time::Instant;

impl State {
    /// What the run has due at `now`.
    pub(crate) fn come_due(&mut self, now: Instant) {
        if self.is_broken() {
            return;
        }
        while let Some(due) = self.course.as_mut().and_then(|course| course.due(now)) {
            match due {
                Due::Start => self.begin(),
                Due::Arrival(slot) => self.arrive(slot, now),
                Due::End => self.close(now),
            }
        }
    }

    /// The run begins: accounts are opened, and the first jobs expected.
    fn begin(&mut self) {
        let Some(course) = &mut self.course else { return };
        course.begin();
        for (slot, member) in self.members.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            member.open_account();
            if let Some(part) = member.engagement.as_ref().and_then(Engagement::as_thread) {
                course.expect(slot as u32, part);
            }
        }
    }

    fn arrive(&mut self, slot: u32, now: Instant) {
        let Some(course) = &mut self.course else { return };
        let Some(member) = self.members[slot as usize].as_mut() else { return };
        let Some(part) = member.engagement.as_mut().and_then(Engagement::as_thread_mut) else { return };
        let is_idle = part.current().is_none();
        let number = part.arrive();
        course.released(part, number, now);
        course.expect(slot, part);
        if !is_idle {
            return;
        }
        match member.seat().map(|seat| seat.notify()) {
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
        let broken = self.is_broken();
        let Some(course) = &mut self.course else { return };
        if course.is_over() {
            return;
        }
        // What was decided when somebody panicked is judged by nobody.
        if !broken {
            self.engine.settle(now);
            course.note_changes();
            self.engine.transitions().for_each(|transition| course.judge(transition, now));
        }
        course.close(now, &self.engine.context());
        let context = self.engine.context();
        let of = |member: &mut Member| Received::of(member, context.service(member.vp));
        let received = self.members.iter_mut().flatten().map(of).collect();
        let own = self.members.iter_mut().flatten().filter(|member| member.seat().is_some());
        let clocks = own.map(|member| (member.vp, member.received())).collect();
        let (kept, start) = (course.watch.kept(&context), course.start);
        let (end, planned_end) = course.ends();
        course.finale = Some(Finale { kept, received, clocks, start, end, planned_end });
    }

    /// Has the hierarchy decide, and notes what it did.
    pub(crate) fn decide(&mut self, now: Instant) {
        if self.is_broken() {
            return;
        }
        self.engine.settle(now);
        if self.course.is_some() {
            self.note_switches(now);
        }
    }

    fn note_switches(&mut self, now: Instant) {
        for index in 0..self.engine.switches().len() {
            let switch = self.engine.switches()[index];
            let place = switch.processor.index();
            let slot = |occupant: Option<Occupant>| occupant.and_then(|at| self.slot_of(at.thread));
            let (from, to) = (slot(switch.from), slot(switch.to));
            let next = to.and_then(|slot| self.members[slot as usize].as_ref()?.engagement.as_ref());
            let by = next.and_then(Engagement::current);
            let Some(course) = &mut self.course else { return };
            let from = from.and_then(|slot| self.members[slot as usize].as_mut()?.engagement.as_mut());
            if let Some(who) = from
                && let Some(job) = who.alight(place)
            {
                course.alighted(who.lane(), Some(place), (job, by), now);
            }
        }
        // All who lose a processor before anybody gets one, for some go from one to another.
        for index in 0..self.engine.switches().len() {
            let switch = self.engine.switches()[index];
            let place = switch.processor.index();
            let to = switch.to.and_then(|occupant| self.slot_of(occupant.thread));
            let Some(course) = &mut self.course else { return };
            let to = to.and_then(|slot| self.members[slot as usize].as_mut()?.engagement.as_mut());
            if let Some(who) = to
                && let Some(boarded) = who.board(place)
            {
                course.boarded(who, place, boarded, now);
            }
        }
        if let Some(course) = &mut self.course {
            course.note_changes();
            self.engine.transitions().for_each(|transition| course.judge(transition, now));
        }
    }

    /// An own thread has done its job. If the next has arrived already, the hierarchy hears of that.
    pub(crate) fn complete(&mut self, slot: u32, now: Instant) {
        let Some(course) = &mut self.course else { return };
        let Some(part) = engagement(&mut self.members, slot).and_then(Engagement::as_thread_mut) else {
            return;
        };
        let Some((number, place)) = part.complete() else { return };
        course.completed(part, number, place, now);
        if part.current().is_some() {
            self.renew(slot, now);
        }
    }

    /// The number of the job that an own thread is to do.
    pub(crate) fn current_job(&self, slot: u32) -> Option<u64> {
        self.members.get(slot as usize)?.as_ref()?.engagement.as_ref()?.as_thread()?.current()
    }

    /// A lane's thread has begun `job`, just before `now`.
    pub(crate) fn begin_in_lane(&mut self, slot: u32, job: JobId, now: Instant) {
        let Some(lane) = engagement(&mut self.members, slot) else { return };
        let source = lane.lane();
        let may_run = lane.as_lane_mut().is_some_and(|lane| lane.begin(job));
        if let Some(course) = &mut self.course
            && !may_run
        {
            course.alighted(source, None, (job, None), now);
        }
    }

    /// The job of a lane's thread has ended.
    pub(crate) fn end_in_lane(&mut self, slot: u32) {
        if let Some(lane) = engagement(&mut self.members, slot).and_then(Engagement::as_lane_mut) {
            lane.end();
        }
    }

    /// A member leaves. A program has then done what it was to do; a thread of our own has not.
    pub(crate) fn leave(&mut self, member: &mut Member, now: Instant) {
        let Some(course) = &mut self.course else { return };
        course.let_go(member.vp, now);
        if let Some(part) = member.engagement.as_mut().and_then(Engagement::as_thread_mut)
            && let Some((number, place)) = part.complete()
        {
            match member.body {
                Body::Own { .. } => course.aborted(part, number, place, now),
                Body::Opaque { .. } => course.completed(part, number, place, now),
            }
        }
    }
}

fn engagement(members: &mut [Option<Member>], slot: u32) -> Option<&mut Engagement> {
    members.get_mut(slot as usize)?.as_mut()?.engagement.as_mut()
}
