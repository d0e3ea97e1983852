//! The children of a scheduler with what is kept of each.

use crate::hierarchy::{Constraint, Context, VpId, VpState};
use crate::job::Job;
use talea_time::Work;

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
        match self.list.as_slice() {
            // The table is memory that nothing else needs, and in a deep hierarchy most have one child.
            [only] if only.vp == vp => 0,
            _ => self.places[vp.index()] as usize,
        }
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
    pub fn accounts(&self) -> impl Iterator<Item = &A> + Clone {
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

    /// The place of the child that wants a processor with the least `key`, the first of several.
    pub fn least<K: Ord>(&self, cx: &Context<'_>, key: impl Fn(&A) -> K) -> Option<usize> {
        self.wanting(cx).min_by_key(|(_, account)| key(account)).map(|(place, _)| place)
    }

    /// The job that the child at `place` wants its processor for, if that is known.
    pub(in crate::scheduler) fn job<'a>(&self, cx: &'a Context<'_>, place: usize) -> Option<&'a Job> {
        cx.behind(self.list[place].vp).map(|thread| cx.job(thread))
    }

    /// What the job of the child at `place` asks for: what remains of its worst case, by its deadline. Nothing if that has passed.
    pub(in crate::scheduler) fn constraint(&self, cx: &Context<'_>, place: usize) -> Option<Constraint> {
        let (start, thread) = (cx.now(), cx.behind(self.list[place].vp)?);
        let job = cx.job(thread);
        let work = job.wcet - cx.burst(thread);
        let constraint = Constraint { start, deadline: job.deadline, work };
        (job.deadline > start && work > Work::ZERO).then_some(constraint)
    }

    /// Whether the child at `place` wants a processor.
    pub fn wants(&self, cx: &Context<'_>, place: usize) -> bool {
        cx.state(self.list[place].vp) != VpState::Waiting
    }

    pub(in crate::scheduler) fn add(&mut self, cx: &Context<'_>, vp: VpId, account: A) {
        self.list.push(Client { vp, charged: cx.service(vp), account });
        self.index();
    }

    pub(in crate::scheduler) fn remove(&mut self, vp: VpId) {
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
    pub(in crate::scheduler) fn charge(&mut self, cx: &Context<'_>, place: usize) -> Work {
        let client = &mut self.list[place];
        let service = cx.service(client.vp);
        let used = service - client.charged;
        client.charged = service;
        used
    }
}
