//! What a run does to the members: arrivals become wake-ups, decisions become records.

use super::course::{Due, Finale};
use super::member::{Body, Member};
use super::seat::Notified;
use super::set::Received;
use super::state::State;
use talea_policy::hierarchy::Occupant;
use talea_time::Instant;
use talea_trace::Event;

impl State {
    /// What the run has due at `now`.
    pub(super) fn come_due(&mut self, now: Instant) {
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
            if let Some(part) = &member.part {
                course.expect(slot as u32, part);
            }
        }
    }

    fn arrive(&mut self, slot: u32, now: Instant) {
        let Some(course) = &mut self.course else { return };
        let Some(member) = self.members[slot as usize].as_mut() else { return };
        let Some(part) = &mut member.part else { return };
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
    pub(super) fn close(&mut self, now: Instant) {
        let Some(course) = &mut self.course else { return };
        if course.is_over() {
            return;
        }
        self.engine.settle(now);
        self.engine.transitions().for_each(|transition| course.judge(transition, now));
        course.close(now, &self.engine.context());
        let context = self.engine.context();
        let of = |member: &mut Member| Received::of(member, context.service(member.vp));
        let received = self.members.iter_mut().flatten().map(of).collect();
        course.finale = Some(Finale { kept: course.watch.kept(&context), received });
    }

    /// Has the hierarchy decide, and notes what it did.
    pub(super) fn decide(&mut self, now: Instant) {
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
            let next = to.and_then(|slot| self.members[slot as usize].as_ref()?.part.as_ref());
            let by = next.and_then(|part| Some(part.id(part.current()?).pack()));
            let Some(course) = &mut self.course else { return };
            let from = from.and_then(|slot| self.members[slot as usize].as_mut()?.part.as_mut());
            if let Some(part) = from
                && let Some(number) = part.alight(place)
            {
                course.alighted(part, place, number, by, now);
            }
        }
        // All who lose a processor before anybody gets one, for some go from one to another.
        for index in 0..self.engine.switches().len() {
            let switch = self.engine.switches()[index];
            let place = switch.processor.index();
            let to = switch.to.and_then(|occupant| self.slot_of(occupant.thread));
            let Some(course) = &mut self.course else { return };
            let to = to.and_then(|slot| self.members[slot as usize].as_mut()?.part.as_mut());
            if let Some(part) = to
                && let Some(boarded) = part.board(place)
            {
                course.boarded(part, place, boarded, now);
            }
        }
        if let Some(course) = &mut self.course {
            self.engine.transitions().for_each(|transition| course.judge(transition, now));
        }
    }

    /// An own thread has done its job. If the next has arrived already, the hierarchy hears of that.
    pub(super) fn complete(&mut self, slot: u32, now: Instant) {
        let Some(course) = &mut self.course else { return };
        let member = self.members.get_mut(slot as usize).and_then(Option::as_mut);
        let Some(part) = member.and_then(|member| member.part.as_mut()) else { return };
        let Some((number, place)) = part.complete() else { return };
        course.ended(Event::COMPLETE, part, number, place, now);
        if part.current().is_some() {
            self.renew(slot, now);
        }
    }

    /// The number of the job that an own thread is to do.
    pub(super) fn current_job(&self, slot: u32) -> Option<u64> {
        self.members.get(slot as usize)?.as_ref()?.part.as_ref()?.current()
    }

    /// A member leaves. A program has then done what it was to do; a thread of our own has not.
    pub(super) fn leave(&mut self, member: &mut Member, now: Instant) {
        let Some(course) = &mut self.course else { return };
        course.let_go(member.vp, now);
        let event = match member.body {
            Body::Own { .. } => Event::ABORT,
            Body::Opaque { .. } => Event::COMPLETE,
        };
        if let Some(part) = &mut member.part
            && let Some((number, place)) = part.complete()
        {
            course.ended(event, part, number, place, now);
        }
    }
}
