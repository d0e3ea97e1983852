//! Single pieces of work, which threads ask planning schedulers for: time constraints of Rialto, guarantees of Spring.

use super::governor::{Governor, Reason};
use talea_policy::arrangement::live::Refused;
use talea_policy::hierarchy::{Constraint, Message, Refusal};
use talea_time::{Duration, Instant, Work};

/// One piece of work that a thread has to do, as seen from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When it begins at the earliest.
    pub after: Duration,
    /// When it has to be done.
    pub within: Duration,
    /// Its worst-case execution time.
    pub work: Work,
}

impl Governor {
    /// Asks the scheduler above a thread, one that plans (Rialto, Spring), to see to it that `piece` is done. What is accepted is done in
    /// time, if it is no more than was said; it is over by itself at its deadline, or when that much has been received.
    ///
    /// # Errors
    /// [`Reason::Constraint`] if it is not accepted, and what speaks against the name.
    pub fn constrain(&self, name: &str, piece: Piece) -> Result<(), Reason> {
        self.tell(name, |now| {
            let (start, deadline) = (now + piece.after, now + piece.within);
            Message::Constrain(Constraint { start, deadline, work: piece.work })
        })
    }

    /// What was accepted for the thread last is done before its time, so that others can have what is left of it.
    ///
    /// # Errors
    /// [`Reason::NothingAccepted`] if there is nothing to end, which is so too if the piece has just ended by itself; and what speaks
    /// against the name.
    pub fn end_constraint(&self, name: &str) -> Result<(), Reason> {
        self.tell(name, |_| Message::EndConstraint).map_err(|reason| match reason {
            Reason::Constraint(Refusal::NothingAccepted { .. }) => Reason::NothingAccepted(name.into()),
            other => other,
        })
    }

    /// Tells the scheduler above a thread something.
    fn tell(&self, name: &str, message: impl FnOnce(Instant) -> Message) -> Result<(), Reason> {
        let mut inner = self.lock();
        inner.prune_departed();
        inner.live.removal(name).map_err(Refused::Edit)?;
        let (place, thread) = (inner.live.place(name), inner.live.thread(name));
        let Some(thread) = thread else { return Err(Reason::NoThread(name.into())) };
        let Some(place) = place else { return Err(Reason::Left(name.into())) };
        let set = inner.set.as_ref().ok_or(Reason::Ended)?;
        let told = set.govern(|engine, _, now| engine.message(place.parent, Some(thread), message(now), now));
        Ok(told?)
    }
}
