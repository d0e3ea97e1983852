//! Changing what a set is while it runs: the hierarchy above its members, and who is one.

use super::guardian;
use super::hold::{Hold, Parking};
use super::member::{Body, Member};
use super::options::AdmitError;
use super::set::{ManagedSet, MemberId, Received};
use super::state::State;
use std::sync::PoisonError;
use talea_policy::arrangement::Watch;
use talea_policy::hierarchy::{Engine, VpState};
use talea_time::{Instant, Work};

/// Why a member was not dismissed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDismissed<E> {
    /// It has left already.
    Gone,
    /// What was to happen with it was refused; nothing has changed.
    Refused(E),
}

impl ManagedSet {
    /// Lets `act` look at the hierarchy, and at the watch over its promises if there is one, or change them, in one instant,
    /// under the dispatcher's lock. What it decides about processors is brought about afterwards.
    pub fn govern<R>(&self, act: impl FnOnce(&mut Engine, Option<&mut Watch>, Instant) -> R) -> R {
        self.shared.tell(|state, now| {
            state.engine.advance(now);
            let (engine, watch) = state.engine_and_watch();
            act(engine, watch, now)
        })
    }

    /// Who is a member now, by name.
    pub fn members(&self) -> Vec<(String, MemberId)> {
        let state = self.shared.state.lock_patiently();
        let member = |(slot, member): (usize, &Option<Member>)| {
            let member = member.as_ref()?;
            Some((member.name.clone(), MemberId { slot: slot as u32, vp: member.vp }))
        };
        state.members.iter().enumerate().filter_map(member).collect()
    }

    /// Whether the member is one still.
    pub fn is_member(&self, member: MemberId) -> bool {
        self.shared.state.lock_patiently().holds(member)
    }

    /// Whether a member may use processors that nobody else wants; none if it has left.
    pub fn parking(&self, member: MemberId) -> Option<Parking> {
        let state = self.shared.state.lock_patiently();
        let own = state.members.get(member.slot as usize)?.as_ref().filter(|own| own.vp == member.vp)?;
        Some(if own.hold.is_some() { Parking::Held } else { Parking::WorkConserving })
    }

    /// Lets a member use processors that nobody else wants from now on, or not.
    ///
    /// # Errors
    /// [`AdmitError::CannotHold`] and [`AdmitError::TooMany`]: it may use them still.
    pub fn set_parking(&self, member: MemberId, parking: Parking) -> Result<(), AdmitError> {
        if self.parking(member).is_none_or(|before| before == parking) {
            return Ok(());
        }
        let hold = match parking {
            Parking::WorkConserving => None,
            Parking::Held => self.means_of_holding(member)?,
        };
        let before = self.shared.tell(|state, _| match state.holds(member) {
            true => state.hold_by(member.slot, hold),
            false => hold,
        });
        // Whoever is held is let go.
        drop(before);
        Ok(())
    }

    fn means_of_holding(&self, member: MemberId) -> Result<Option<Hold>, AdmitError> {
        let state = self.shared.state.lock_patiently();
        let own = state.members.get(member.slot as usize).and_then(Option::as_ref);
        let Some(own) = own.filter(|own| own.vp == member.vp) else { return Ok(None) };
        let name = own.name.clone();
        let whom = match &own.body {
            Body::Own { .. } => return Ok(Some(Hold::by_signal())),
            opaque => opaque.whom().ok_or(AdmitError::CannotHold { name: name.clone() })?,
        };
        drop(state);
        let hold = Hold::of(whom);
        match self.guardian.note_held(whom, hold.freezer()) {
            true => Ok(Some(hold)),
            false => {
                let (what, most) = ("processes that can be held", guardian::HELD_MAX);
                Err(AdmitError::TooMany { name, what, most })
            }
        }
    }

    /// Takes a member out, and makes `change` of the hierarchy in the same instant: both or, if the change is refused, neither.
    /// `change` is called twice, first with a copy. The member's threads get their ordinary scheduling back and go on; an own
    /// thread's handle says that it has ended.
    ///
    /// # Errors
    /// See [`NotDismissed`].
    pub fn dismiss<R, E>(
        &self,
        member: MemberId,
        mut change: impl FnMut(&mut Engine, Instant) -> Result<R, E>,
    ) -> Result<R, NotDismissed<E>> {
        let (removed, granted, result) = self.shared.tell(|state, now| {
            if !state.holds(member) {
                return Err(NotDismissed::Gone);
            }
            state.engine.advance(now);
            let mut copy = state.engine.clone();
            if copy.context().state(member.vp) != VpState::Waiting {
                copy.release(member.vp, now);
            }
            copy.remove_thread(member.vp);
            change(&mut copy, now).map_err(NotDismissed::Refused)?;
            let granted = state.engine.context().service(member.vp);
            let removed = state.remove(member.slot, now);
            let result = change(&mut state.engine, now);
            let result = result.unwrap_or_else(|_| panic!("an engine decides as its copy did"));
            Ok((removed.expect("it is a member"), granted, result))
        })?;
        self.give_back(removed, granted);
        Ok(result)
    }

    fn give_back(&self, mut member: Member, granted: Work) {
        let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        departed.push(Received::of(&mut member, granted));
        drop(departed);
        // Whoever is held is let go first.
        drop(member.hold.take());
        member.threads.iter().for_each(|thread| self.guardian.restore(thread.tid));
        if let Body::Opaque { process, .. } = member.body {
            self.guardian.forget(process);
        }
        if let Some(seat) = member.seat() {
            seat.end();
        }
        if let Some(wakeups) = &self.wakeups {
            let mut watch = wakeups.lock();
            let traced = self.shared.state.lock_patiently().traced();
            // More than is needed is no harm: wake-ups of strangers are ignored.
            let _more_than_needed = watch.choose(&traced);
        }
    }
}

impl State {
    /// The hierarchy, and the watch over it.
    fn engine_and_watch(&mut self) -> (&mut Engine, Option<&mut Watch>) {
        (&mut self.engine, self.course.as_mut().map(|course| &mut course.watch))
    }

    fn holds(&self, member: MemberId) -> bool {
        let own = self.members.get(member.slot as usize).and_then(Option::as_ref);
        own.is_some_and(|own| own.vp == member.vp)
    }
}
