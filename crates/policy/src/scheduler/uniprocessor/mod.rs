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

mod clients;
mod rule;

pub use clients::{Client, Clients};
pub use rule::{Rule, Stint};

use crate::hierarchy::{
    Action, Context, Decision, Message, Parameters, ProcessorId, Refusal, Scheduler, Spent, VpId, VpState,
    Wake, Width,
};
use talea_time::{Duration, Instant, Work};

/// Whether a scheduler tells its parent the deadlines of its children.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Announcing {
    /// The parent has no use for them.
    #[default]
    Nothing,
    /// There is a uniformly slower processor above.
    Deadlines,
    /// The same, of a scheduler whose children have no deadlines: it announces the end of a slice, and when that has come the next.
    Slices(Duration),
}

/// A scheduler of one processor at a time, as its [`Rule`] says.
#[derive(Clone)]
pub struct Uniprocessor<R: Rule> {
    rule: R,
    own: Option<VpId>,
    clients: Clients<R::Account>,
    stint: Option<Stint>,
    announcing: Announcing,
    /// When the slice ends that was announced last.
    slice_end: Instant,
}

impl<R: Rule> Uniprocessor<R> {
    /// A scheduler without children.
    pub fn new(rule: R) -> Self {
        let announcing = Announcing::Nothing;
        let slice_end = Instant::ZERO;
        Uniprocessor { rule, own: None, clients: Clients::default(), stint: None, announcing, slice_end }
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
        let mut decision = match cx.state(own) {
            VpState::Running(processor) => self.pass_on(cx, processor),
            VpState::Waiting if self.rule.wants(cx, &self.clients) => Decision::request(own),
            VpState::Ready if !self.rule.wants(cx, &self.clients) => Decision::release(own),
            _ => Decision::NONE,
        };
        if self.announcing != Announcing::Nothing {
            let earliest = self.earliest(cx);
            if !decision.is_empty()
                && matches!(cx.state(own), VpState::Running(_))
                && is_news(cx, own, earliest)
            {
                // Those above who hear of it may take the processor back, and it has to be where it was brought to then.
                return decision.wake(Wake::AtSchedulingPoint);
            }
            decision = announce(cx, own, earliest, decision);
        }
        decision.set_timer(self.next_wake(cx));
        decision
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

    /// Changes what the child at `place` asks for. What it has received so far counts by the old parameters, so a stint of it is
    /// over.
    fn change(&mut self, cx: &Context<'_>, place: usize, given: Parameters) -> Result<(), Refusal> {
        self.charge(cx);
        if self.stint.is_some_and(|stint| stint.place == place) {
            self.end_stint(cx);
            self.stint = Some(Stint { place, used: Work::ZERO });
        }
        self.rule.change(cx, &mut self.clients, place, given)
    }

    /// The deadline to be announced.
    fn earliest(&mut self, cx: &Context<'_>) -> Option<Instant> {
        let Announcing::Slices(length) = self.announcing else {
            return self.rule.deadline(cx, &self.clients);
        };
        if !self.rule.wants(cx, &self.clients) {
            return None;
        }
        if self.slice_end <= cx.now() {
            self.slice_end = cx.now() + length;
        }
        Some(self.slice_end)
    }

    fn next_wake(&self, cx: &Context<'_>) -> Wake {
        let slice = matches!(self.announcing, Announcing::Slices(_)) && self.rule.wants(cx, &self.clients);
        let slice_end = slice.then_some(self.slice_end).filter(|end| *end > cx.now());
        let next = self.rule.next(cx, &self.clients, self.stint).into_iter().chain(slice_end).min();
        next.map_or(Wake::Never, Wake::At)
    }
}

/// The decision, after the parent of `own` has heard of another earliest deadline.
pub(in crate::scheduler) fn announce(
    cx: &Context<'_>,
    own: VpId,
    earliest: Option<Instant>,
    decision: Decision,
) -> Decision {
    if !is_news(cx, own, earliest) {
        return decision;
    }
    let deadline = earliest.unwrap_or(Instant::MAX);
    Decision::NONE.and(Action::Announce(own, deadline)).then(decision).wake(decision.timer())
}

/// Whether the parent of `own` knows another earliest deadline.
fn is_news(cx: &Context<'_>, own: VpId, earliest: Option<Instant>) -> bool {
    earliest.unwrap_or(Instant::MAX) != cx.deadline(own)
}

impl<R: Rule> Scheduler for Uniprocessor<R> {
    fn kind(&self) -> &'static str {
        self.rule.kind()
    }

    fn width(&self) -> Width {
        Width::One
    }

    fn duplicate(&self) -> Box<dyn Scheduler> {
        Box::new(self.clone())
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
        let not_understood = Err(Refusal::NotUnderstood { scheduler: self.kind(), message });
        let Some(child) = child else { return not_understood };
        let place = self.clients.place(child);
        match message {
            Message::KeepPlace => return not_understood,
            Message::Change(given) => {
                // What is refused leaves no trace, not even an account that was charged in two parts instead of one.
                self.clone().change(cx, place, given)?;
                self.change(cx, place, given)?;
            }
            Message::Constrain(constraint) => {
                self.charge(cx);
                self.rule.constrain(cx, &mut self.clients, place, constraint)?;
            }
            Message::EndConstraint => {
                self.charge(cx);
                self.rule.end_constraint(&mut self.clients, place)?;
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

    fn job_followed(&mut self, cx: &Context<'_>, child: VpId, _ran: Work) -> Decision {
        self.charge(cx);
        let place = self.clients.place(child);
        self.rule.job_followed(cx, &mut self.clients, place);
        match cx.state(self.own()) {
            VpState::Running(_) => Decision::NONE.wake(Wake::AtSchedulingPoint),
            _ => self.decide(cx),
        }
    }

    fn job_changed(&mut self, cx: &Context<'_>, child: VpId) -> Decision {
        let place = self.clients.place(child);
        if !self.rule.asks_for(cx, &self.clients, place) {
            return Decision::NONE;
        }
        self.charge(cx);
        self.rule.job_changed(cx, &mut self.clients, place);
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
            let earliest = self.earliest(cx);
            // A deadline that comes at this very instant: its timer, which is replaced here, was to announce it.
            if self.announcing != Announcing::Nothing && is_news(cx, self.own(), earliest) {
                return revoked.wake(Wake::AtSchedulingPoint);
            }
            return revoked.wake(self.next_wake(cx));
        }
        // Nobody has a use for it any more, but the parent is in the middle of its decision.
        revoked.wake(Wake::AtSchedulingPoint)
    }

    fn spent(&mut self, cx: &Context<'_>, child: VpId) -> Option<Spent> {
        self.charge(cx);
        let place = self.clients.place(child);
        let (used, until) = self.rule.spent(cx, &self.clients, place)?;
        Some(Spent { used, until, is_pending: self.clients.wants(cx, place) })
    }

    fn carry_over(&mut self, cx: &Context<'_>, child: VpId, spent: Spent) {
        let place = self.clients.place(child);
        self.rule.carry_over(cx, &mut self.clients, place, spent);
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
