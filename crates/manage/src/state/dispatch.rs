//! What becomes of what happens to members: scheduling points are ended, and what the hierarchy decided is made so.

use super::{After, Caller, State};
use crate::hold::Hold;
use crate::member::{Body, Member, Off};
use crate::priorities::{self, Heirs, Level, Priorities};
use crate::slices::Turn;
use rustix::io::Errno;
use std::sync::Arc;
use talea_linux::Tid;
use talea_policy::hierarchy::{ProcessorId, VpId, VpState};
use talea_record::event::Flag;
use talea_time::{Duration, Instant};

impl State {
    /// Ends the scheduling point: timers that are due, and those who wanted to reconsider. Says when the controller is wanted, if
    /// that is earlier than its timer is due.
    pub fn settle(&mut self, now: Instant) -> Option<Instant> {
        if self.broken {
            return None;
        }
        self.hear(now);
        self.come_due(now);
        self.turn_slices(now);
        let next = loop {
            match self.engine.next_timer() {
                Some(due) if due <= now => self.engine.fire_timers(now),
                next => break next,
            }
        };
        self.decide(now);
        // Settling may set a timer.
        let next = self.engine.next_timer().or(next);
        let arrival = self.run.as_ref().and_then(|run| run.next());
        let slice = self.note_use(now);
        let next = [next, arrival, slice].into_iter().flatten().min();
        let earlier = next.filter(|next| self.armed.is_none_or(|armed| *next < armed));
        if earlier.is_some() {
            self.armed = earlier;
        }
        earlier
    }

    /// Takes processors away from the hierarchy that have been used for so long that the kernel would take them for longer, and gives back
    /// those of which enough has been left.
    fn turn_slices(&mut self, now: Instant) {
        for place in 0..self.accounts.len() {
            let processor = ProcessorId::from_index(place as u16);
            match self.accounts[place].turn(now) {
                Some(Turn::Leave) => {
                    self.totals.slices += 1;
                    self.tell_supply(place, Flag(false), now);
                    self.engine.take_away(processor, now);
                }
                Some(Turn::Resume) => {
                    self.tell_supply(place, Flag(true), now);
                    self.engine.give_back(processor, now);
                }
                None => {}
            }
        }
    }

    /// Records that a slice begins or ends, after what was decided before it in this scheduling point.
    fn tell_supply(&mut self, place: usize, given: Flag, now: Instant) {
        self.note_decisions(now);
        self.run.iter_mut().for_each(|run| run.supply(place, given, now));
    }

    /// Nobody who decides has the place's processor any more either, if it is to be left. Says for when the timer is to be set, if for earlier.
    pub fn note_left(&mut self, place: usize, now: Instant) -> Option<Instant> {
        let account = self.accounts.get_mut(place)?;
        let next = account.begin(now).then(|| account.next()).flatten()?;
        let is_earlier = self.armed.is_none_or(|armed| next < armed);
        is_earlier.then(|| *self.armed.insert(next))
    }

    /// Notes which processors are used from now on. Says when one is to be taken away or given back.
    fn note_use(&mut self, now: Instant) -> Option<Instant> {
        let State { accounts, engine, .. } = self;
        let notes = accounts.iter_mut().enumerate().filter_map(|(place, account)| {
            account.note(now, engine.running(ProcessorId::from_index(place as u16)).is_some());
            account.next()
        });
        notes.min()
    }

    /// The member whose virtual processor this is.
    pub fn slot_of(&self, vp: VpId) -> Option<u32> {
        self.by_vp.get(vp.index()).copied().flatten()
    }

    /// Who is to be raised on `place`.
    fn wanted(&self, place: usize) -> Option<u32> {
        let occupant = self.engine.running(ProcessorId::from_index(place as u16));
        occupant.and_then(|occupant| self.slot_of(occupant.thread()))
    }

    /// Whether the member may not use its processor: another one is granted it, it is left to the kernel for a moment, or nobody is granted it and
    /// the member may not use an idle one. The last of these is so before the member is held: a thread that waits for the lock is held after it has
    /// given it back.
    pub fn is_displaced(&self, slot: u32) -> bool {
        let member = self.members.get(slot as usize).and_then(Option::as_ref).filter(|_| !self.ended);
        let Some(member) = member.filter(|member| member.place < self.places()) else { return false };
        let is_away = self.engine.is_away(ProcessorId::from_index(member.place as u16));
        is_away
            || match self.wanted(member.place) {
                Some(granted) => granted != slot,
                None => member.hold.is_some(),
            }
    }

    /// The level of who is raised on `place`.
    pub fn granted_at(&self, place: usize) -> Option<Level> {
        let raised = self.places[place].raised?;
        self.members[raised as usize].as_ref().map(Member::level)
    }

    /// Whether somebody has to bring a decision about on `place`.
    pub fn differs(&self, place: usize) -> bool {
        let wanted = self.wanted(place);
        wanted != self.places[place].raised
            || wanted
                .is_some_and(|slot| self.members[slot as usize].as_ref().is_some_and(|member| member.lags))
            || (wanted.is_none() && self.hard > 0 && self.holdable(place).next().is_some())
    }

    /// The members on an idle place that have to be held.
    fn holdable(&self, place: usize) -> impl Iterator<Item = u32> + '_ {
        let here = move |(slot, member): (usize, &Option<Member>)| {
            let member = member.as_ref().filter(|member| member.place == place)?;
            let free = member.hold.as_ref().is_some_and(|hold| !hold.is_engaged());
            let is_ready = self.engine.context().state(member.vp) == VpState::Ready;
            let sleeps = member.sleep_word().is_some_and(|sleep_word| sleep_word.is_asleep());
            (free && is_ready && !sleeps).then_some(slot as u32)
        };
        self.members.iter().enumerate().filter_map(here)
    }

    /// Makes what the hierarchy decided for `place` so.
    pub fn bring(&mut self, place: usize, caller: Caller, now: Instant) -> After {
        if self.ended {
            return After::Nothing;
        }
        loop {
            let (before, wanted) = (self.places[place].raised, self.wanted(place));
            if before == wanted {
                let Some(slot) = wanted else {
                    self.hold_idle(place);
                    return After::Idle;
                };
                if self.member(slot).lags {
                    self.totals.grants -= 1;
                    return self.raise(place, slot, caller);
                }
                return After::Nothing;
            }
            // The new one first: it queues behind the old one, and no sentinel gets in between.
            let after = match wanted {
                Some(slot) => {
                    self.member(slot).draw_order();
                    self.raise(place, slot, caller)
                }
                None => After::Idle,
            };
            if let Some(slot) = before {
                self.lower(slot);
            }
            self.places[place].raised = wanted;
            self.places[place].raised_at = (caller == Caller::Above).then_some(now);
            match wanted {
                Some(slot) if self.member(slot).is_gone() => {
                    // Found out by raising it. The warden, which collects members that are gone, takes it out.
                    let vp = self.member(slot).vp;
                    self.places[place].raised = None;
                    self.engine.release(vp, now);
                    self.decide(now);
                    if let After::StepDown = after {
                        return self.bring(place, Caller::Above, now).or_step_down();
                    }
                }
                Some(_) => return after,
                None => {
                    self.hold_idle(place);
                    return after;
                }
            }
        }
    }

    fn raise(&mut self, place: usize, slot: u32, caller: Caller) -> After {
        let (priorities, cpu) = (self.priorities, self.places[place].cpu);
        self.totals.grants += 1;
        let member = self.member(slot);
        let was_held = member.hold.as_mut().is_some_and(Hold::disengage);
        if was_held && matches!(member.body, Body::Opaque { .. }) {
            member.wake_all();
        }
        member.bind(place, cpu);
        let lagged = std::mem::take(&mut member.lags);
        let sleeper = member.sleep_word().filter(|sleep_word| sleep_word.grant()).map(Arc::clone);
        let (result, after) = match (caller, sleeper) {
            (Caller::Above, sleeper) => {
                let result = member.move_to(priorities, Level::Granted);
                sleeper.iter().for_each(|sleep_word| sleep_word.wake_up());
                (result, After::Nothing)
            }
            // Raising one that sleeps preempts nobody.
            (Caller::Sentinel, Some(sleep_word)) => {
                (member.move_to(priorities, Level::Granted), After::Wake(sleep_word))
            }
            (Caller::Sentinel, None) if member.threads.len() == 1 => {
                (member.move_to(priorities, Level::Beside), After::GiveWay)
            }
            // Several that take turns in our queue would let us run between them.
            (Caller::Sentinel, None) => {
                (rise(priorities).and_then(|()| member.move_to(priorities, Level::Granted)), After::StepDown)
            }
        };
        self.note_moved(result);
        if lagged {
            let turned = self.member(slot).take_turns(priorities);
            self.note_moved(turned);
        }
        after
    }

    fn lower(&mut self, slot: u32) {
        let priorities = self.priorities;
        if let Some(member) = self.members[slot as usize].as_mut() {
            self.totals.revocations += 1;
            member.lags = false;
            self.recheck |= member.heirs == Heirs::Alike;
            let result = member.move_to(priorities, Level::Parked);
            self.note_moved(result);
        }
    }

    /// Brings threads where the kernel did not let them be brought before. For the warden.
    pub fn move_owed(&mut self, now: Instant) {
        if self.ended {
            return;
        }
        let priorities = self.priorities;
        for slot in 0..self.members.len() {
            let Some(member) = self.members[slot].as_mut().filter(|member| member.owes()) else { continue };
            // Those that still cannot be moved have been counted.
            let moved = member.move_owed(priorities).map(|_| 0);
            // Nobody is told at once of the wake-up of a thread that has more than it should.
            let is_awake = member.off() == Off::Elsewhere && member.is_runnable();
            self.note_moved(moved);
            if is_awake && self.is_waiting(slot as u32) {
                self.request(slot as u32, now);
            }
        }
    }

    /// Forgets threads of which their members have missed that they have gone, and hands each to `each`: their numbers may be others' now.
    pub fn forget_gone(&mut self, mut each: impl FnMut(Tid)) {
        let State { members, by_tid, run, .. } = self;
        for (slot, member) in members.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            let vp = member.vp;
            for tid in member.take_gone() {
                let number = tid.as_raw_nonzero().get() as u32;
                if by_tid.get(&number) == Some(&(slot as u32)) {
                    by_tid.remove(&number);
                    run.iter_mut().for_each(|run| run.forget(number, vp));
                }
                each(tid);
            }
        }
    }

    /// These threads have gone.
    pub fn miss(&mut self, threads: &[(u32, Tid)]) {
        for &(slot, tid) in threads {
            self.members[slot as usize].iter_mut().for_each(|member| member.miss(tid));
        }
    }

    /// What somebody else has changed of these threads is put back.
    pub fn put_back(&mut self, threads: &[(u32, Tid)]) {
        if self.ended {
            return;
        }
        let priorities = self.priorities;
        for &(slot, tid) in threads {
            let Some(member) = self.members[slot as usize].as_mut() else { continue };
            let put_back = member.put_back(priorities, tid);
            self.note_moved(put_back.map(|()| 0));
        }
    }

    /// Notes what came of moving threads: how many could not be moved yet.
    pub fn note_moved(&mut self, moved: Result<u64, Errno>) {
        match moved {
            Ok(lent) => self.totals.lent += lent,
            Err(errno) => _ = self.failure.get_or_insert(errno),
        }
    }

    /// Holds those that may not use an idle processor.
    fn hold_idle(&mut self, place: usize) {
        while self.hard > 0 {
            let Some(slot) = self.holdable(place).next() else { return };
            let member = self.member(slot);
            let thread = member.threads.first().map(|thread| thread.tid);
            member.hold.iter_mut().for_each(|hold| hold.engage(thread));
        }
    }

    /// Gives the member other means of being held, or none. Returns those that it had.
    pub fn hold_by(&mut self, slot: u32, hold: Option<Hold>) -> Option<Hold> {
        self.hard += usize::from(hold.is_some());
        let member = self.member(slot);
        let before = std::mem::replace(&mut member.hold, hold);
        member.held_late += before.as_ref().map_or(Duration::ZERO, Hold::late);
        self.hard -= usize::from(before.is_some());
        before
    }

    /// Takes the means of holding everybody away.
    pub fn free_all(&mut self) -> Vec<Hold> {
        self.hard = 0;
        self.members.iter_mut().flatten().filter_map(|member| member.hold.take()).collect()
    }
}

/// Raises the calling sentinel, which holds the dispatcher's lock, so that the members whom it grants do not preempt it.
///
/// If the controller, a deadline thread, waits for that lock, the kernel refuses: [`priorities::LENT`]. But then the sentinel runs with
/// the controller's priority, above all that is managed, for as long as it holds the lock, for the controller waits without a
/// timeout. (A signal takes the controller away for a moment. Whoever preempts the sentinel then does so until the controller
/// has come back to wait, or anybody else that outranks them does.) So it may act as if it had risen. When it has given the lock
/// back it finds itself in its own place, and stepping down from there changes nothing.
fn rise(priorities: Priorities) -> Result<(), Errno> {
    match priorities::set_self(priorities, Level::Urgent) {
        Ok(()) | Err(priorities::LENT) => Ok(()),
        Err(errno) => Err(errno),
    }
}

impl After {
    fn or_step_down(self) -> After {
        match self {
            After::Nothing | After::Idle => After::StepDown,
            other => other,
        }
    }
}
