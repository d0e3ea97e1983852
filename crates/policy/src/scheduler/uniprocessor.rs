//! What all schedulers have in common that give one processor at a time to one of several children: asking
//! for the processor, passing it on, charging whoever ran, giving it back.
//!
//! A [`Rule`] is what remains to be said: how to admit a child, what waking, running and blocking do to its
//! account, and who is to run. Rules see no processors and no own VPs.
//!
//! ```text
//!   request ─▶ charge ─▶ Rule::woke  ─┐
//!   release ─▶ charge ─▶ Rule::slept ─┤                     ┌─ request, grant, switch, revoke, release
//!   grant, timer ──────▶ charge ──────┴─▶ refresh ─▶ elect ─┴─ next timer, announced deadline
//! ```
//!
//! *Stints.* A child that is elected begins a stint, which lasts until another is elected in its place, it
//! blocks or the processor is taken away. A rule with a quantum lets the child keep the processor until its
//! stint has lasted that long; one that orders by deadlines elects anew every time. A stint in which nothing was
//! received is no stint: several events can fall on one instant, and the choice is free until time has
//! passed. For the same reason a request only asks for a choice at the scheduling point.

use crate::hierarchy::{
    Action, Constraint, Context, Decision, Message, Parameters, ProcessorId, Refusal, Scheduler, VpId,
    VpState, Wake,
};
use talea_time::{Instant, Work};

/// A child and its account.
#[derive(Clone, Debug)]
pub struct Client<A> {
    vp: VpId,
    /// Service it had received when it was charged last.
    charged: Work,
    /// What the rule keeps of it.
    pub account: A,
}

impl<A> Client<A> {
    /// The child.
    pub fn vp(&self) -> VpId {
        self.vp
    }
}

/// The children in the order of registration, which is also the order of ties.
#[derive(Clone, Debug)]
pub struct Clients<A> {
    list: Vec<Client<A>>,
    /// Place in the list by VP number.
    places: Vec<u32>,
}

impl<A> Default for Clients<A> {
    fn default() -> Self {
        Clients { list: Vec::new(), places: Vec::new() }
    }
}

impl<A> Clients<A> {
    /// Where `vp` stands.
    pub fn place(&self, vp: VpId) -> usize {
        self.places[vp.index()] as usize
    }

    /// The account at `place`.
    pub fn account(&self, place: usize) -> &A {
        &self.list[place].account
    }

    /// The account at `place`, to change it.
    pub fn account_mut(&mut self, place: usize) -> &mut A {
        &mut self.list[place].account
    }

    /// The child at `place`.
    pub fn vp(&self, place: usize) -> VpId {
        self.list[place].vp
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All accounts.
    pub fn accounts(&self) -> impl Iterator<Item = &A> {
        self.list.iter().map(|client| &client.account)
    }

    /// All accounts, to change them.
    pub fn accounts_mut(&mut self) -> impl Iterator<Item = &mut A> {
        self.list.iter_mut().map(|client| &mut client.account)
    }

    /// The children that want a processor, running or not, with their places.
    pub fn wanting(&self, cx: &Context<'_>) -> impl Iterator<Item = (usize, &A)> {
        let wants = |client: &Client<A>| cx.state(client.vp) != VpState::Waiting;
        let wanting = self.list.iter().enumerate().filter(move |(_, client)| wants(client));
        wanting.map(|(place, client)| (place, &client.account))
    }

    /// Whether the child at `place` wants a processor.
    pub fn wants(&self, cx: &Context<'_>, place: usize) -> bool {
        cx.state(self.list[place].vp) != VpState::Waiting
    }

    pub(super) fn add(&mut self, cx: &Context<'_>, vp: VpId, account: A) {
        self.list.push(Client { vp, charged: cx.service(vp), account });
        self.index();
    }

    pub(super) fn remove(&mut self, vp: VpId) {
        self.list.remove(self.place(vp));
        self.index();
    }

    fn index(&mut self) {
        let most = self.list.iter().map(|client| client.vp.index() + 1).max().unwrap_or(0);
        self.places.resize(most.max(self.places.len()), u32::MAX);
        for (place, client) in self.list.iter().enumerate() {
            self.places[client.vp.index()] = place as u32;
        }
    }

    /// What the child at `place` has received since this was asked last.
    pub(super) fn charge(&mut self, cx: &Context<'_>, place: usize) -> Work {
        let client = &mut self.list[place];
        let service = cx.service(client.vp);
        let used = service - client.charged;
        client.charged = service;
        used
    }
}

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
pub trait Rule: Send {
    /// What it keeps of each child.
    type Account: Send;

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

    /// A child has joined or left.
    fn regroup(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>) {}

    /// The child at `place` wants the processor from now on.
    fn woke(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>, _place: usize) {}

    /// The child at `place` does not want the processor any more.
    fn slept(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>, _place: usize) {}

    /// The child at `place` has received `used`, which is above zero.
    fn ran(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>, _place: usize, _used: Work) {}

    /// The stint is over, in which the child received something. It may be elected again.
    fn stint_over(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>, _stint: Stint) {}

    /// Brings to now whatever changes with time alone.
    fn refresh(&mut self, _cx: &Context<'_>, _clients: &mut Clients<Self::Account>) {}

    /// Whether the child keeps the processor without an election. It has received something since it was elected.
    fn keeps(&self, _cx: &Context<'_>, _clients: &Clients<Self::Account>, _stint: Stint) -> bool {
        false
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

    /// When to decide again if no child does anything until then.
    fn next(
        &self,
        _cx: &Context<'_>,
        _clients: &Clients<Self::Account>,
        _stint: Option<Stint>,
    ) -> Option<Instant> {
        None
    }

    /// The earliest deadline of what the children want, for a parent that is a uniformly slower processor.
    fn deadline(&self, _cx: &Context<'_>, _clients: &Clients<Self::Account>) -> Option<Instant> {
        None
    }

    /// Panics if the accounts contradict each other.
    fn check_invariants(&self, _cx: &Context<'_>, _clients: &Clients<Self::Account>) {}
}

/// Whether a scheduler tells its parent the deadlines of its children.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcing {
    /// The parent has no use for them.
    Nothing,
    /// The parent is a uniformly slower processor.
    Deadlines,
}

/// A scheduler of one processor at a time, as its [`Rule`] says.
pub struct Uniprocessor<R: Rule> {
    rule: R,
    own: Option<VpId>,
    clients: Clients<R::Account>,
    stint: Option<Stint>,
    announcing: Announcing,
}

impl<R: Rule> Uniprocessor<R> {
    /// A scheduler without children.
    pub fn new(rule: R) -> Self {
        let announcing = Announcing::Nothing;
        Uniprocessor { rule, own: None, clients: Clients::default(), stint: None, announcing }
    }

    /// The same, which tells its parent as much as `announcing` says.
    pub fn announcing(mut self, announcing: Announcing) -> Self {
        self.announcing = announcing;
        self
    }

    fn own(&self) -> VpId {
        self.own.expect("init comes before everything else")
    }

    /// Charges the child that has the processor.
    fn charge(&mut self, cx: &Context<'_>) {
        if let Some(stint) = &mut self.stint {
            let used = self.clients.charge(cx, stint.place);
            if used > Work::ZERO {
                stint.used += used;
                self.rule.ran(cx, &mut self.clients, stint.place, used);
            }
        }
    }

    fn end_stint(&mut self, cx: &Context<'_>) {
        if let Some(stint) = self.stint.take()
            && stint.used > Work::ZERO
        {
            self.rule.stint_over(cx, &mut self.clients, stint);
        }
    }

    /// Brings the processor, if it is ours, to whom the rule elects, and asks for one or gives it back.
    fn decide(&mut self, cx: &Context<'_>) -> Decision {
        self.rule.refresh(cx, &mut self.clients);
        let own = self.own();
        let decision = match cx.state(own) {
            VpState::Running(processor) => self.pass_on(cx, processor),
            VpState::Waiting if self.rule.wants(cx, &self.clients) => Decision::request(own),
            VpState::Ready if !self.rule.wants(cx, &self.clients) => Decision::release(own),
            _ => Decision::NONE,
        };
        self.with_announcement(cx, decision).wake(self.next_wake(cx))
    }

    fn pass_on(&mut self, cx: &Context<'_>, processor: ProcessorId) -> Decision {
        let before = self.stint.map(|stint| stint.place);
        if let Some(stint) = self.stint
            && stint.used > Work::ZERO
        {
            if self.rule.keeps(cx, &self.clients, stint) {
                return Decision::NONE;
            }
            self.end_stint(cx);
        }
        let chosen = self.rule.elect(cx, &mut self.clients, before);
        self.stint = chosen.map(|place| Stint { place, used: Work::ZERO });
        let vp = |place: usize| self.clients.vp(place);
        match (before, chosen) {
            (Some(old), Some(new)) if old != new => Decision::switch(vp(old), vp(new), processor),
            (Some(_), Some(_)) => Decision::NONE,
            (None, Some(new)) => Decision::grant(vp(new), processor),
            (Some(old), None) => Decision::revoke(vp(old)).and(Action::Release(self.own())),
            (None, None) => Decision::release(self.own()),
        }
    }

    fn next_wake(&self, cx: &Context<'_>) -> Wake {
        self.rule.next(cx, &self.clients, self.stint).map_or(Wake::Never, Wake::At)
    }

    fn with_announcement(&self, cx: &Context<'_>, decision: Decision) -> Decision {
        match self.announcing {
            Announcing::Nothing => decision,
            Announcing::Deadlines => {
                announce(cx, self.own(), self.rule.deadline(cx, &self.clients), decision)
            }
        }
    }
}

/// The decision, after the parent of `own` has heard of another earliest deadline.
pub(super) fn announce(
    cx: &Context<'_>,
    own: VpId,
    earliest: Option<Instant>,
    decision: Decision,
) -> Decision {
    let deadline = earliest.unwrap_or(Instant::MAX);
    if deadline == cx.deadline(own) {
        return decision;
    }
    let news = Decision::NONE.and(Action::Announce(own, deadline)).wake(decision.timer());
    decision.actions().iter().fold(news, |all, action| all.and(*action))
}

impl<R: Rule> Scheduler for Uniprocessor<R> {
    fn kind(&self) -> &'static str {
        self.rule.kind()
    }

    fn register(&mut self, cx: &Context<'_>, child: VpId, given: Parameters) -> Result<(), Refusal> {
        let account = self.rule.admit(cx, &self.clients, given)?;
        self.clients.add(cx, child, account);
        self.rule.regroup(cx, &mut self.clients);
        Ok(())
    }

    fn unregister(&mut self, cx: &Context<'_>, child: VpId) {
        self.charge(cx);
        let gone = self.clients.place(child);
        self.clients.remove(child);
        if let Some(stint) = &mut self.stint {
            stint.place -= usize::from(stint.place > gone);
        }
        self.rule.regroup(cx, &mut self.clients);
    }

    fn request(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        self.charge(cx);
        let place = self.clients.place(child);
        self.rule.woke(cx, &mut self.clients, place);
        match cx.state(self.own()) {
            VpState::Running(_) => Decision::NONE.wake(Wake::AtSchedulingPoint),
            _ => self.decide(cx),
        }
    }

    fn release(&mut self, cx: &Context<'_>, child: VpId, held: Option<ProcessorId>) -> Decision {
        self.charge(cx);
        if held.is_some() {
            self.end_stint(cx);
        }
        let place = self.clients.place(child);
        self.rule.slept(cx, &mut self.clients, place);
        self.decide(cx)
    }

    fn message(
        &mut self,
        cx: &Context<'_>,
        child: Option<VpId>,
        message: Message,
    ) -> Result<Decision, Refusal> {
        let Some(child) = child else {
            return Err(Refusal::NotUnderstood { scheduler: self.kind(), message });
        };
        self.charge(cx);
        let place = self.clients.place(child);
        match message {
            Message::Change(given) => self.rule.change(cx, &mut self.clients, place, given)?,
            Message::Constrain(constraint) => {
                self.rule.constrain(cx, &mut self.clients, place, constraint)?;
            }
        }
        Ok(self.decide(cx))
    }

    fn announced(&mut self, cx: &Context<'_>, _child: VpId) -> Decision {
        self.charge(cx);
        match cx.state(self.own()) {
            VpState::Running(_) => Decision::NONE.wake(Wake::AtSchedulingPoint),
            _ => self.decide(cx),
        }
    }

    fn grant(&mut self, cx: &Context<'_>, _own: VpId, _processor: ProcessorId) -> Decision {
        self.charge(cx);
        self.decide(cx)
    }

    fn revoke(&mut self, cx: &Context<'_>, _own: VpId, _processor: ProcessorId) -> Decision {
        self.charge(cx);
        let running = self.stint.expect("a processor held runs a child").place;
        self.end_stint(cx);
        self.rule.refresh(cx, &mut self.clients);
        let revoked = Decision::revoke(self.clients.vp(running));
        if self.rule.wants(cx, &self.clients) {
            return revoked.wake(self.next_wake(cx));
        }
        // Nobody has a use for it any more, but the parent is in the middle of its decision.
        revoked.wake(Wake::AtSchedulingPoint)
    }

    fn init(&mut self, own: VpId) {
        assert_eq!(self.own.replace(own), None, "a {} scheduler uses one processor", self.rule.kind());
    }

    fn timer(&mut self, cx: &Context<'_>) -> Decision {
        self.charge(cx);
        self.decide(cx)
    }

    fn check_invariants(&self, cx: &Context<'_>) {
        let running = self.stint.and_then(|stint| cx.processor(self.clients.vp(stint.place)));
        assert_eq!(running, cx.processor(self.own()), "a child runs where the own VP does");
        let wants = self.rule.wants(cx, &self.clients);
        assert_eq!(
            wants,
            cx.state(self.own()) != VpState::Waiting,
            "who has a use for a processor asks for one"
        );
        self.rule.check_invariants(cx, &self.clients);
    }
}
