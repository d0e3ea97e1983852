//! The VPs of a scheduler that is being replaced: kept from their parents' eyes.
//!
//! The new scheduler has to hear everything from the start: its VPs wait, children request, it requests, it is granted.
//! Its parents have to hear only what is different afterwards. So for the time in between the VPs belong to nobody:
//! the engine answers their requests with what the parents had given the old scheduler, and settles the difference at the end.
//!
//! ```text
//!   parents' view     the new one wants it         the new one does not
//!   Waiting           request, at the end          nothing
//!   Ready             nothing                      release, at the end
//!   Running           granted at once              release, at the end
//! ```

use super::vp::{Top, Vp, VpId, VpState};
use super::{Action, Decision, Engine, SchedulerId};
use talea_time::Instant;

/// A VP that its parent believes to be as it was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Custody {
    vp: VpId,
    /// As the parent knows it.
    known: Vp,
}

impl Engine {
    /// Takes the VPs of `id` into custody, as waiting and without deadline. No child of it runs.
    pub(super) fn begin_custody(&mut self, id: SchedulerId) {
        for place in 0..self.seats[id.index()].own.len() {
            let vp = self.seats[id.index()].own[place];
            let known = self.vps[vp.index()];
            let mut shown = known.laid_aside(self.now);
            shown.top = Top::Custody;
            shown.job.deadline = Instant::MAX;
            shown.behind = None;
            self.vps[vp.index()] = shown;
            self.custody.push(Custody { vp, known });
        }
    }

    /// `id` has asked for `own`, which is Ready by now.
    pub(super) fn request_in_custody(&mut self, id: SchedulerId, own: VpId) -> Decision {
        let kept = self.custody.iter().find(|kept| kept.vp == own).expect("it was taken into custody");
        let VpState::Running(processor) = kept.known.state else { return Decision::NONE };
        self.vps[own.index()].grant(processor, self.now);
        self.processors[processor.index()].holder = Some(id);
        self.notify_grant(id, own, processor)
    }

    /// Gives the VPs of `id` back to their parents, and tells them what is different.
    pub(super) fn end_custody(&mut self, id: SchedulerId) {
        let mut kept = std::mem::take(&mut self.custody);
        let (mut dropped, mut asked) = (Vec::new(), Vec::new());
        for &Custody { vp, known } in &kept {
            let wanted = self.vps[vp.index()].state != VpState::Waiting;
            let own = &mut self.vps[vp.index()];
            own.assume(known.state, self.now);
            (own.top, own.epoch, own.service_at_request) = (known.top, known.epoch, known.service_at_request);
            match (known.state, wanted) {
                (VpState::Waiting, true) => asked.push(vp),
                (state @ (VpState::Ready | VpState::Running(_)), false) => dropped.push((state, vp)),
                _ => {}
            }
            if let (VpState::Running(processor), false) = (known.state, wanted) {
                self.processors[processor.index()].holder = Some(id);
            }
        }
        // First the processors that nobody uses, so that they cannot be taken from who does not have them.
        dropped.sort_by_key(|(state, _)| *state == VpState::Ready);
        for (state, vp) in dropped {
            // Unless another one's release has brought it a processor, for which there was a use.
            if self.vps[vp.index()].state == state {
                self.act(id, Action::Release(vp));
            }
        }
        for &Custody { vp, known } in &kept {
            let deadline = self.vps[vp.index()].job.deadline;
            if deadline != known.job.deadline {
                self.act(id, Action::Announce(vp, deadline));
            }
        }
        for &Custody { vp, known } in &kept {
            if self.vps[vp.index()].behind != known.behind {
                let mut actor = id;
                let decision = self.tell_of_job(vp, &mut actor);
                self.run_to_fixed_point(actor, decision);
            }
        }
        for vp in asked {
            if self.vps[vp.index()].state == VpState::Waiting {
                self.act(id, Action::Request(vp));
            }
        }
        kept.clear();
        self.custody = kept;
    }

    fn act(&mut self, id: SchedulerId, action: Action) {
        self.run_to_fixed_point(id, Decision::NONE.and(action));
    }
}
