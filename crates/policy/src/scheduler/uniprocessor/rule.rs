//! What tells one scheduler of one processor from another.

use super::Clients;
use crate::hierarchy::{Constraint, Context, Message, Parameters, Refusal, Spent};
use talea_time::{Instant, Work};

/// The child that has the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stint {
    /// Its place.
    pub place: usize,
    /// What it has received since it was elected.
    pub used: Work,
}

/// What tells one scheduler from another.
///
/// Whoever ran has been charged before anything else is told, and [`Rule::refresh`] comes before every election.
pub trait Rule: Clone + Send + 'static {
    /// What it keeps of each child.
    type Account: Clone + Send;

    /// The kind, for messages: "round-robin".
    fn kind(&self) -> &'static str;

    /// A child asks to be scheduled under `given`.
    ///
    /// # Errors
    /// Admission control and unacceptable parameters.
    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<Self::Account>,
        given: Parameters,
    ) -> Result<Self::Account, Refusal>;

    /// The child at `place` asks for other parameters. Without an own version, none may change.
    ///
    /// # Errors
    /// As [`Rule::admit`]; nothing has changed.
    fn change(
        &mut self,
        _cx: &Context<'_>,
        _clients: &mut Clients<Self::Account>,
        _place: usize,
        given: Parameters,
    ) -> Result<(), Refusal> {
        Err(Refusal::NotUnderstood { scheduler: self.kind(), message: Message::Change(given) })
    }

    /// The child at `place` asks for a guarantee for one piece of work. Without an own version, none gives any.
    ///
    /// # Errors
    /// The work cannot be guaranteed; nothing has changed.
    fn constrain(
        &mut self,
        _cx: &Context<'_>,
        _clients: &mut Clients<Self::Account>,
        _place: usize,
        constraint: Constraint,
    ) -> Result<(), Refusal> {
        Err(Refusal::NotUnderstood { scheduler: self.kind(), message: Message::Constrain(constraint) })
    }

    /// What was accepted last for the child at `place` is done. Without an own version, nothing is ever accepted.
    ///
    /// # Errors
    /// This scheduler does not accept pieces of work, or there is none to end.
    fn end_constraint(
        &mut self,
        _clients: &mut Clients<Self::Account>,
        _place: usize,
    ) -> Result<(), Refusal> {
        Err(Refusal::NotUnderstood { scheduler: self.kind(), message: Message::EndConstraint })
    }

    /// A child has joined or left.
    fn regroup(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>) {}

    /// The child at `place` wants the processor from now on.
    fn woke(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>, _place: usize) {}

    /// The child at `place` does not want the processor any more.
    fn slept(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>, _place: usize) {}

    /// Whether the job behind the child at `place` is another one than it has asked a guarantee for, and it asks for each. Without an own
    /// version, none does.
    fn asks_for(&self, _cx: &Context<'_>, _clients: &Clients<Self::Account>, _place: usize) -> bool {
        false
    }

    /// The child at `place`, which wants the processor, wants it for such another job from now on.
    fn job_changed(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>, _place: usize) {}

    /// The child at `place`, a thread that has not slept, has done its job and wants the processor for the next one. Without an own version,
    /// only one that asks for a guarantee for each job asks again: who accounts for what a child receives, and not for its jobs, has
    /// nothing to do.
    fn job_followed(&mut self, cx: &Context<'_>, clients: &mut Clients<Self::Account>, place: usize) {
        if self.asks_for(cx, clients, place) {
            self.job_changed(cx, clients, place);
        }
    }

    /// The child at `place` has received `used`, which is above zero.
    fn ran(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>, _place: usize, _used: Work) {}

    /// The stint is over, in which the child received something. It may be elected again.
    fn stint_over(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>, _stint: Stint) {}

    /// How much the child at `place` has had in its current period, and when that ends. Without an own version, nobody has periods in which
    /// more would be too much.
    fn spent(
        &self,
        _cx: &Context<'_>,
        _clients: &Clients<Self::Account>,
        _place: usize,
    ) -> Option<(Work, Instant)> {
        None
    }

    /// The child at `place`, which has just registered, comes from a scheduler whose place this one takes, where it has `spent` this much.
    fn carry_over(
        &mut self,
        _cx: &Context<'_>,
        _clients: &mut Clients<Self::Account>,
        _place: usize,
        _spent: Spent,
    ) {
    }

    /// Brings to now whatever changes with time alone.
    fn refresh(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>) {}

    /// How long a child with this account keeps the processor once it is elected. Without an own version, until the next notification.
    fn slice(&self, _account: &Self::Account) -> Option<Work> {
        None
    }

    /// Whether the child keeps the processor without an election. It has received something since it was elected. Without an own
    /// version, it does for its [slice](Rule::slice).
    fn keeps(&self, _cx: &Context<'_>, clients: &Clients<Self::Account>, stint: Stint) -> bool {
        self.slice(clients.account(stint.place)).is_some_and(|slice| stint.used < slice)
    }

    /// Who is to have the processor: the place of a child that wants it, or nobody.
    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Self::Account>,
        incumbent: Option<usize>,
    ) -> Option<usize>;

    /// Whether there is a child to elect.
    fn wants(&self, cx: &Context<'_>, clients: &Clients<Self::Account>) -> bool {
        clients.wanting(cx).next().is_some()
    }

    /// When to decide again if no child does anything until then. Without an own version, when the [slice](Rule::slice) of the child
    /// is over that has the processor.
    fn next(
        &self,
        cx: &Context<'_>,
        clients: &Clients<Self::Account>,
        stint: Option<Stint>,
    ) -> Option<Instant> {
        let stint = stint?;
        let slice = self.slice(clients.account(stint.place))?;
        Some(cx.now() + (slice - stint.used).at_full_speed())
    }

    /// The earliest deadline of what the children want, for a parent that is a uniformly slower processor.
    fn deadline(&self, _cx: &Context<'_>, _clients: &Clients<Self::Account>) -> Option<Instant> {
        None
    }

    /// Panics if the accounts contradict each other.
    fn check_invariants(&self, _cx: &Context<'_>, _clients: &Clients<Self::Account>) {}
}
