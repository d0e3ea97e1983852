//! Changing what a set is while it runs: the hierarchy above its members, and who is one.

use crate::definitions;
use crate::hold::{Hold, Parking};
use crate::member::{Body, Managed, Member};
use crate::member::{MemberId, Received};
use crate::options::AdmitError;
use crate::set::ManagedSet;
use crate::state::State;
use std::sync::PoisonError;
use talea_policy::arrangement::{ChangeCause, Watch};
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

/// The means of holding a member, or of letting it go for good, made and not in force.
#[must_use]
pub(crate) struct PreparedHold {
    member: MemberId,
    hold: Option<Hold>,
}

impl ManagedSet {
    /// Lets `act` look at the hierarchy, and at the watch over its promises if there is one, or change them, in one instant,
    /// under the dispatcher's lock. What it decides about processors is brought about afterwards.
    pub fn govern<R>(&self, act: impl FnOnce(&mut Engine, Option<&mut Watch>, Instant) -> R) -> R {
        let result = self.shared.tell(|state, now| {
            state.engine.advance(now);
            let (engine, watch) = state.engine_and_watch();
            let result = act(engine, watch, now);
            state.refresh_offers(now);
            result
        });
        self.tell_definitions();
        result
    }

    /// Tells whoever follows the run what has come to the hierarchy.
    pub(crate) fn tell_definitions(&self) {
        let mut state = self.shared.state.lock_patiently();
        let Some((definer, definitions)) = state.run.as_mut().and_then(|run| run.definitions()) else {
            return;
        };
        drop(state);
        let lost = definitions::enter(&definer, &definitions);
        if let Some(run) = &mut self.shared.state.lock_patiently().run {
            run.defined(lost);
        }
    }

    /// Tells whoever follows the run that there is a scheduler of this name and kind from now on.
    pub(crate) fn define_scheduler(&self, name: &str, kind: &str) {
        if let Some(run) = &mut self.shared.state.lock_patiently().run {
            run.define_scheduler(name, kind);
        }
        self.tell_definitions();
    }

    /// Who is a member now, by name.
    pub fn members(&self) -> Vec<(String, MemberId)> {
        let state = self.shared.state.lock_patiently();
        let member = |(slot, member): (usize, &Option<Member>)| {
            let member = member.as_ref()?;
            Some((member.name.clone(), MemberId { slot: slot as u32, vp: member.vp, serial: member.serial }))
        };
        state.members.iter().enumerate().filter_map(member).collect()
    }

    /// Whether the member is one still.
    pub fn is_member(&self, member: MemberId) -> bool {
        self.shared.state.lock_patiently().holds(member)
    }

    /// Whether a member may use processors that nobody else wants; none if it has left.
    pub fn parking(&self, member: MemberId) -> Option<Parking> {
        let mut state = self.shared.state.lock_patiently();
        let own = state.member_of(member)?;
        Some(if own.hold.is_some() { Parking::Held } else { Parking::WorkConserving })
    }

    /// Lets a member use processors that nobody else wants from now on, or not, with all processes that belong to it.
    ///
    /// # Errors
    /// [`AdmitError::CannotHold`], [`AdmitError::OutOfReach`] and [`AdmitError::TooMany`]: nothing has changed.
    pub fn set_parking(&self, member: MemberId, parking: Parking) -> Result<(), AdmitError> {
        if let Some(restraint) = self.restraint(member, parking)? {
            self.impose(restraint);
        }
        Ok(())
    }

    /// What it takes to let a member use such processors or not; nothing if that is so already. Nobody is held before it is
    /// [imposed](Self::impose), and dropping it undoes it.
    ///
    /// # Errors
    /// As for [`Self::set_parking`].
    pub(crate) fn restraint(
        &self,
        member: MemberId,
        parking: Parking,
    ) -> Result<Option<PreparedHold>, AdmitError> {
        let mut state = self.shared.state.lock_patiently();
        let ended = state.ended;
        let Some(own) = state.member_of(member).filter(|_| !ended) else { return Ok(None) };
        match (parking, own.hold.is_some()) {
            (Parking::WorkConserving, false) | (Parking::Held, true) => return Ok(None),
            (Parking::WorkConserving, true) => return Ok(Some(PreparedHold { member, hold: None })),
            (Parking::Held, false) => {}
        }
        if let Body::Own { .. } = own.body {
            return Ok(Some(PreparedHold {
                member,
                hold: Some(Hold::by_signal(self.shared.state.progress())),
            }));
        }
        let (name, whom, known) = (own.name.clone(), own.body.whom(), own.processes());
        drop(state);
        let hold = self.hold_of(&name, whom, known)?;
        Ok(Some(PreparedHold { member, hold: Some(hold) }))
    }

    /// Puts a restraint in force.
    pub(crate) fn impose(&self, PreparedHold { member, hold }: PreparedHold) {
        let before = self.shared.tell(|state, _| match state.holds(member) && !state.ended {
            true => state.hold_by(member.slot, hold),
            false => hold,
        });
        // Whoever is held is let go.
        drop(before);
    }

    /// Takes a member out for this `cause`, and makes `change` of the hierarchy in the same instant: both or, if the change is refused, neither.
    /// `change` is called twice, first with a copy. The member's threads get their ordinary scheduling back and go on; an own
    /// thread's handle says that it has ended.
    ///
    /// # Errors
    /// See [`NotDismissed`].
    pub fn dismiss<R, E>(
        &self,
        member: MemberId,
        cause: ChangeCause,
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
            let removed = state.expel(member, cause, now);
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
        // Whoever is held is let go first, and goes back to his cgroup last, for that may wait for others' forks.
        let mut hold = member.hold.take();
        hold.iter_mut().for_each(Hold::let_go);
        if let (Ok(auditor), Body::Opaque { .. }) = (&self.auditor, &member.body) {
            auditor.part(member.all_threads().map(Managed::number));
        }
        member.restore_threads(&self.guardian);
        member.set_going();
        if let Some(sleep_word) = member.sleep_word() {
            sleep_word.end();
        }
        if let Some(wakeups) = &self.wakeups {
            let mut chooser = wakeups.lock().unwrap_or_else(PoisonError::into_inner);
            let traced = self.shared.state.lock_patiently().traced();
            // More than is needed is no harm: wake-ups of strangers are ignored.
            let _more_than_needed = chooser.choose(traced);
        }
        if let Some(unbinding) = member.unbinding() {
            self.shared.unbindings.begin(unbinding, &self.guardian, |process| self.shared.is_apart(process));
        }
        drop(hold);
    }
}

impl State {
    /// The hierarchy, and the watch over it.
    fn engine_and_watch(&mut self) -> (&mut Engine, Option<&mut Watch>) {
        (&mut self.engine, self.run.as_mut().map(|run| &mut run.watch))
    }
}
