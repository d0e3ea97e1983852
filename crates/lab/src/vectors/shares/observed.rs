//! A wrapper around a scheduling rule that logs what happens to the accounts of children.

use std::sync::{Arc, Mutex};
use talea_policy::hierarchy::{Context, Parameters, Refusal};
use talea_policy::scheduler::{Clients, Rule, Stint};
use talea_time::{Instant, Work};

/// What a rule did, for the code that drives the engine.
#[derive(Clone, Debug)]
pub(super) struct Log<E>(Arc<Mutex<Vec<E>>>);

impl<E> Log<E> {
    pub fn new() -> Self {
        Log(Arc::default())
    }

    pub fn add(&self, entry: E) {
        self.0.lock().expect("nobody panics with the log in hand").push(entry);
    }

    pub fn take(&self) -> Vec<E> {
        std::mem::take(&mut self.0.lock().expect("nobody panics with the log in hand"))
    }
}

/// Something happened to the account of the child at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Happening {
    Woke,
    Ran,
    /// The end of a stint in which this much was received.
    StintOver(Work),
}

/// What it was, when, and the account before and after.
#[derive(Clone, Debug)]
pub(super) struct Event<A> {
    pub at: Instant,
    pub place: usize,
    pub happening: Happening,
    pub before: A,
    pub after: A,
}

/// A rule whose doings are logged.
#[derive(Clone)]
pub(super) struct Observed<R: Rule> {
    rule: R,
    log: Log<Event<R::Account>>,
    /// By place: the totals of service at which a quantum ends whatever the rule says.
    boundaries: Vec<Vec<Work>>,
}

impl<R: Rule<Account: Copy>> Observed<R> {
    pub fn new(rule: R, log: &Log<Event<R::Account>>) -> Self {
        Observed { rule, log: log.clone(), boundaries: Vec::new() }
    }

    /// The same, where quanta end with the bursts of the child at each place.
    pub fn with_bursts(mut self, bursts: impl Iterator<Item = Vec<Work>>) -> Self {
        let totals = |bursts: Vec<Work>| {
            let mut total = Work::ZERO;
            bursts
                .into_iter()
                .map(|burst| {
                    total += burst;
                    total
                })
                .collect()
        };
        self.boundaries = bursts.map(totals).collect();
        self
    }

    fn next_boundary(
        &self,
        cx: &Context<'_>,
        clients: &Clients<R::Account>,
        place: usize,
    ) -> Option<Instant> {
        let service = cx.service(clients.vp(place));
        let next = self.boundaries.get(place)?.iter().find(|total| **total > service)?;
        Some(cx.now() + (*next - service).at_full_speed())
    }

    fn tell(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<R::Account>,
        place: usize,
        happening: Happening,
        act: impl FnOnce(&mut R, &mut Clients<R::Account>),
    ) {
        let before = *clients.account(place);
        act(&mut self.rule, clients);
        let after = *clients.account(place);
        self.log.add(Event { at: cx.now(), place, happening, before, after });
    }
}

impl<R: Rule<Account: Copy>> Rule for Observed<R> {
    type Account = R::Account;

    fn kind(&self) -> &'static str {
        self.rule.kind()
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<R::Account>,
        given: Parameters,
    ) -> Result<R::Account, Refusal> {
        self.rule.admit(cx, clients, given)
    }

    fn regroup(&mut self, cx: &Context<'_>, clients: &mut Clients<R::Account>) {
        self.rule.regroup(cx, clients);
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<R::Account>, place: usize) {
        self.tell(cx, clients, place, Happening::Woke, |rule, clients| rule.woke(cx, clients, place));
    }

    fn slept(&mut self, cx: &Context<'_>, clients: &mut Clients<R::Account>, place: usize) {
        self.rule.slept(cx, clients, place);
    }

    fn ran(&mut self, cx: &Context<'_>, clients: &mut Clients<R::Account>, place: usize, used: Work) {
        self.tell(cx, clients, place, Happening::Ran, |rule, clients| rule.ran(cx, clients, place, used));
    }

    fn stint_over(&mut self, cx: &Context<'_>, clients: &mut Clients<R::Account>, stint: Stint) {
        let happening = Happening::StintOver(stint.used);
        self.tell(cx, clients, stint.place, happening, |rule, clients| rule.stint_over(cx, clients, stint));
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<R::Account>) {
        self.rule.refresh(cx, clients);
    }

    fn keeps(&self, cx: &Context<'_>, clients: &Clients<R::Account>, stint: Stint) -> bool {
        let service = cx.service(clients.vp(stint.place));
        let ends = self.boundaries.get(stint.place).is_some_and(|totals| totals.contains(&service));
        !ends && self.rule.keeps(cx, clients, stint)
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<R::Account>,
        incumbent: Option<usize>,
    ) -> Option<usize> {
        self.rule.elect(cx, clients, incumbent)
    }

    fn wants(&self, cx: &Context<'_>, clients: &Clients<R::Account>) -> bool {
        self.rule.wants(cx, clients)
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<R::Account>, stint: Option<Stint>) -> Option<Instant> {
        let boundary = stint.and_then(|stint| self.next_boundary(cx, clients, stint.place));
        self.rule.next(cx, clients, stint).into_iter().chain(boundary).min()
    }

    fn check_invariants(&self, cx: &Context<'_>, clients: &Clients<R::Account>) {
        self.rule.check_invariants(cx, clients);
    }
}
