//! Giving a scheduler's place to another kind while everything runs (Regehr and Stankovic 2001, section 5.4).
//!
//! ```text
//!   1 its parents rehearse what the new one asks of them, on copies        any refusal: nothing has changed
//!   2 the new one registers every child, which it is shown as waiting      any refusal: it is dropped, the same
//!   3 parents are asked; what the old one had given to children is revoked from them; the old one is not asked, and goes with its timers
//!   4 its VPs are taken into custody; children that want a processor ask the new one, those that ran first, and it decides
//!   5 parents hear what is different from what they knew
//! ```
//!
//! What children have used of amounts in periods that go on is told the new one as they register, so that no maximum is exceeded by replacing.
//!
//! All in one instant, so who runs before and after is not switched. Parents see neither a release nor a request of a VP that both
//! schedulers want, so their accounts and turns are as they were.

use super::membership::check_width;
use super::vp::{Context, Vp, VpId, VpState};
use super::{Engine, Message, Parameters, ReconfigureError, Refusal, Scheduler, SchedulerId, Wake};
use talea_time::Instant;

/// What takes a scheduler's place.
pub struct Replacement<'a> {
    /// The new scheduler, without children.
    pub scheduler: Box<dyn Scheduler>,
    /// What each child asks of it, in the order in which they are registered.
    pub children: &'a [(VpId, Parameters)],
    /// What it asks of its parents, by its own VP, where that is different from what the old one asked.
    pub parents: &'a [(VpId, Parameters)],
}

impl Engine {
    /// Puts another scheduler in the place of `id`. The place keeps its id, its VPs and its children, which keep what they want,
    /// have and have had.
    ///
    /// # Errors
    /// The new scheduler refuses a child, a parent a change, or the lists do not fit; nothing has changed.
    ///
    /// # Panics
    /// If time ran backwards.
    pub fn replace(
        &mut self,
        id: SchedulerId,
        replacement: Replacement<'_>,
        now: Instant,
    ) -> Result<(), ReconfigureError> {
        self.begin_change(now);
        if !self.is_seated(id) {
            return Err(ReconfigureError::NoScheduler(id));
        }
        let Replacement { scheduler: mut new, children, parents } = replacement;
        self.check_lists(id, children, parents)?;
        check_width(new.as_ref(), self.seats[id.index()].own.len())?;
        if parents.is_empty() {
            self.take_in(id, new.as_mut(), children)?;
        } else {
            let mut rehearsal = self.clone();
            rehearsal.ask_parents(parents)?;
            rehearsal.take_in(id, new.as_mut(), children)?;
            self.ask_parents(parents)?;
        }
        let wanting = self.strip(id, children);
        for (child, parameters) in children {
            self.parameters[child.index()] = *parameters;
        }
        self.mark_passing();
        self.forget_wakes(id);
        std::mem::replace(&mut self.seats[id.index()].scheduler, new).deinit();
        self.hand_over(id, wanting);
        Ok(())
    }

    fn check_lists(
        &self,
        id: SchedulerId,
        children: &[(VpId, Parameters)],
        parents: &[(VpId, Parameters)],
    ) -> Result<(), ReconfigureError> {
        let own = &self.seats[id.index()].own;
        let is_child = |vp: &VpId| self.vps.get(vp.index()).is_some_and(|vp| vp.is_below(id));
        for (list, belongs) in
            [(children, &is_child as &dyn Fn(&VpId) -> bool), (parents, &|vp| own.contains(vp))]
        {
            let mut seen = vec![false; self.vps.len()];
            for (vp, _) in list {
                if !belongs(vp) {
                    return Err(ReconfigureError::Stranger(*vp));
                }
                if std::mem::replace(&mut seen[vp.index()], true) {
                    return Err(ReconfigureError::Twice(*vp));
                }
            }
        }
        let missing = self.children(id).find(|edge| children.iter().all(|(vp, _)| *vp != edge.vp));
        missing.map_or(Ok(()), |edge| Err(ReconfigureError::Missing(edge.vp)))
    }

    /// Registers the children with `new`, which sees all its VPs waiting.
    fn take_in(
        &self,
        id: SchedulerId,
        new: &mut dyn Scheduler,
        children: &[(VpId, Parameters)],
    ) -> Result<(), ReconfigureError> {
        let mut own = self.seats[id.index()].own.clone();
        // Who asks for one of several asks for the first that waits; that should be one that can be had.
        own.sort_by_key(|vp| match self.vps[vp.index()].state {
            VpState::Running(_) => 0,
            VpState::Ready => 1,
            VpState::Waiting => 2,
        });
        let mut shown = self.vps.clone();
        for vp in own.iter().chain(children.iter().map(|(child, _)| child)) {
            shown[vp.index()] = shown[vp.index()].laid_aside(self.now);
        }
        own.into_iter().for_each(|vp| new.init(vp));
        let cx = Context { now: self.now, vps: &shown };
        for &(child, parameters) in children {
            let refused = |refusal| ReconfigureError::Child { child, refusal };
            new.register(&cx, child, parameters).map_err(refused)?;
        }
        // What was used of a period that goes on counts against the new one's maximum, too. A copy is asked, as that charges children.
        let mut old = self.seats[id.index()].scheduler.duplicate();
        for &(child, _) in children {
            if let Some(spent) = old.spent(&self.context(), child).filter(|spent| spent.until > self.now) {
                new.carry_over(&cx, child, spent);
            }
        }
        Ok(())
    }

    fn ask_parents(&mut self, parents: &[(VpId, Parameters)]) -> Result<(), ReconfigureError> {
        for &(own, parameters) in parents {
            let refused = |refusal: Refusal| ReconfigureError::Parent { own, refusal };
            if self.is_root_vp(own) {
                let refusal = Refusal::unacceptable("machine", "no parameters", parameters);
                return Err(refused(refusal));
            }
            let parent = self.parent(own);
            self.message(parent, Some(own), Message::Change(parameters), self.now).map_err(refused)?;
        }
        Ok(())
    }

    /// Takes processors from the children and lets them wait, of which only they would know if they were asked. Returns those
    /// that want a processor, in the order in which the new scheduler is to hear of them.
    fn strip(&mut self, id: SchedulerId, children: &[(VpId, Parameters)]) -> Vec<(VpId, Vp)> {
        let own = self.seats[id.index()].own.clone();
        let held = own.iter().filter_map(|vp| match self.vps[vp.index()].state {
            VpState::Running(processor) => Some(VpState::Running(processor)),
            _ => None,
        });
        let held: Vec<VpState> = held.collect();
        let state_of = |vp: &VpId, vps: &[Vp]| vps[vp.index()].state;
        let all = children.iter().map(|(child, _)| *child);
        let mut wanting: Vec<VpId> =
            all.filter(|child| state_of(child, &self.vps) != VpState::Waiting).collect();
        let rank = |child: &VpId| {
            let state = self.vps[child.index()].state;
            held.iter().position(|held| *held == state).unwrap_or(held.len())
        };
        wanting.sort_by_key(rank);
        for child in &wanting {
            if state_of(child, &self.vps) != VpState::Ready {
                self.take_back(*child);
            }
        }
        let lay_aside = |vp: VpId| {
            let before = self.vps[vp.index()];
            self.vps[vp.index()] = before.laid_aside(self.now);
            (vp, before)
        };
        wanting.into_iter().map(lay_aside).collect()
    }

    /// Lets the new scheduler in the place of `id` decide, from the first request on.
    fn hand_over(&mut self, id: SchedulerId, wanting: Vec<(VpId, Vp)>) {
        let seen = self.transitions.as_ref().map_or(0, Vec::len);
        self.begin_custody(id);
        for (child, before) in wanting {
            // A scheduler below that has several VPs may have asked by another already.
            if self.vps[child.index()].state == VpState::Waiting {
                self.want_again(child, before);
                self.tell_request(child, id);
            }
        }
        // What it would put off to the scheduling point may be what its parents have given already.
        let mut patience = 16 * self.vps.len();
        while self.ask(id) {
            assert!(patience > 0, "schedulers that reconsider come to rest");
            patience -= 1;
        }
        self.forget_transitions(id, seen);
        self.end_custody(id);
        self.set_timer(id, Wake::AtSchedulingPoint);
    }

    /// Forgets what happened to the VPs of `id` in custody: it is made up for at its end.
    fn forget_transitions(&mut self, id: SchedulerId, seen: usize) {
        let Some(transitions) = &mut self.transitions else { return };
        let own = &self.seats[id.index()].own;
        let mut place = 0;
        transitions.retain(|transition| {
            place += 1;
            place <= seen || !own.contains(&transition.vp)
        });
    }
}
