//! Where the kernel withholds a processor from whom it was granted to.
//!
//! The decisions say who is to have a processor, the kernel's switches who has it. A [`MOMENT`] between the two is the way from a
//! decision to the switch; so it is known only then that a time of withholding has begun, and it is told with the instant at which it did.

use super::MOMENT;
use crate::hierarchy::EdgeState;
use std::collections::{HashMap, HashSet};
use talea_record::MemberRole;
use talea_record::event::Member;
use talea_time::{Duration, Instant, Work};

/// A time for which a processor was withheld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spell {
    /// The processor, by its Linux number.
    pub cpu: u16,
    /// The thread that had it at first; 0 is the idle thread.
    pub thread: u32,
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
}

impl Spell {
    /// How long it is.
    pub fn length(&self) -> Duration {
        self.to - self.from
    }
}

/// A time of withholding has begun or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It has begun.
    Withheld,
    /// It has ended.
    Given(Spell),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Occupant {
    /// No switch has been told yet.
    Unknown,
    Sentinel,
    /// A member's, or any other of the machine; the idle thread is 0.
    Thread(u32),
}

impl Occupant {
    /// The thread, 0 of one that is not known by number.
    fn thread(self) -> u32 {
        match self {
            Occupant::Thread(thread) => thread,
            Occupant::Unknown | Occupant::Sentinel => 0,
        }
    }
}

#[derive(Debug)]
struct Site {
    cpu: u16,
    /// The edge to members who are to have the processor.
    granted: Option<usize>,
    /// Who has it, but for the infrastructure.
    occupant: Occupant,
    /// Whose time is counted, and from when.
    counted: Option<(u32, Instant)>,
    /// Since when it has been withheld.
    since: Option<Instant>,
    /// Who had it then.
    withholder: u32,
    is_certain: bool,
}

/// What is granted beside what is given, on all processors of a node.
#[derive(Debug)]
pub(super) struct Processors {
    sites: Vec<Site>,
    /// The edges to members, by their threads. Lanes may be served by several threads, and stand below several schedulers.
    members: HashMap<u32, Vec<usize>>,
    /// They have a processor where who is granted it does not want it.
    sentinels: HashSet<u32>,
    /// They preempt everybody for a moment.
    infrastructure: HashSet<u32>,
    received: HashMap<u32, Work>,
    now: Instant,
    /// When the first thread was introduced.
    begun: Option<Instant>,
    turns: Vec<(Instant, u16, Turn)>,
}

impl Processors {
    pub fn new(cpus: &[u16]) -> Self {
        let site = |&cpu| Site {
            cpu,
            granted: None,
            occupant: Occupant::Unknown,
            counted: None,
            since: None,
            withholder: 0,
            is_certain: false,
        };
        Processors {
            sites: cpus.iter().map(site).collect(),
            members: HashMap::new(),
            sentinels: HashSet::new(),
            infrastructure: HashSet::new(),
            received: HashMap::new(),
            now: Instant::ZERO,
            begun: None,
            turns: Vec::new(),
        }
    }

    /// Nothing more comes of what was before `at`.
    pub fn advance(&mut self, at: Instant) {
        if at <= self.now {
            return;
        }
        for site in &mut self.sites {
            match (site.since, site.is_withheld(&self.members)) {
                (None, true) => {
                    site.since = Some(self.now);
                    site.withholder = site.occupant.thread();
                }
                (Some(_), false) => self.turns.extend(site.give(self.now)),
                _ => {}
            }
            if let Some(since) = site.since.filter(|since| !site.is_certain && at - *since > MOMENT) {
                site.is_certain = true;
                self.turns.push((since, site.cpu, Turn::Withheld));
            }
        }
        self.now = at;
    }

    /// Everything ends now.
    pub fn close(&mut self) {
        let now = self.now;
        self.turns.extend(self.sites.iter_mut().filter_map(|site| site.give(now)));
    }

    /// Turns that have become certain on processors, each with the instant at which it was. None that comes later is earlier than a
    /// moment before the instant to which time was [advanced](Self::advance).
    pub fn turns(&mut self) -> impl Iterator<Item = (Instant, u16, Turn)> {
        self.turns.drain(..)
    }

    /// Who is below the edge comes into another state.
    pub fn decided(&mut self, edge: usize, state: EdgeState) {
        if !self.members.values().flatten().any(|other| *other == edge) {
            return;
        }
        for site in &mut self.sites {
            if state == EdgeState::Running(site.cpu) {
                site.granted = Some(edge);
            } else if site.granted == Some(edge) {
                site.granted = None;
            }
        }
    }

    /// The edge is none any more.
    pub fn removed(&mut self, edge: usize) {
        self.decided(edge, EdgeState::Waiting);
        self.members.values_mut().for_each(|edges| edges.retain(|other| *other != edge));
    }

    /// Who a thread is. Its time counts from now on. `state` says where the edge stands that it is below.
    pub fn introduce(&mut self, member: Member, state: impl Fn(usize) -> EdgeState) {
        let thread = member.tid;
        self.begun.get_or_insert(self.now);
        match member.role.known() {
            Some(MemberRole::Scheduled) => {
                let Some(edge) = member.edge else { return };
                let (edge, edges) = (edge as usize, self.members.entry(thread).or_default());
                if !edges.contains(&edge) {
                    edges.push(edge);
                    let of_thread = self.sites.iter_mut().filter_map(|site| site.counted.as_mut());
                    of_thread.filter(|(other, _)| *other == thread).for_each(|(_, since)| *since = self.now);
                    self.decided(edge, state(edge));
                }
            }
            Some(MemberRole::Sentinel) => _ = self.sentinels.insert(thread),
            Some(MemberRole::Infrastructure) => _ = self.infrastructure.insert(thread),
            None => {}
        }
    }

    /// The kernel gives a processor to the thread `to`; none if it is not known to which.
    pub fn switched(&mut self, cpu: u16, to: Option<u32>) {
        let Some(at) = self.sites.iter().position(|site| site.cpu == cpu) else { return };
        self.settle(at);
        let site = &mut self.sites[at];
        site.counted = to.map(|to| (to, self.now));
        site.occupant = match to {
            None => Occupant::Unknown,
            Some(to) if self.infrastructure.contains(&to) => return,
            Some(to) if self.sentinels.contains(&to) => Occupant::Sentinel,
            Some(to) => Occupant::Thread(to),
        };
    }

    fn settle(&mut self, at: usize) {
        let Some((thread, since)) = &mut self.sites[at].counted else { return };
        if self.members.contains_key(thread) {
            let received = self.received.entry(*thread).or_insert(Work::ZERO);
            *received += (self.now - *since).as_work();
        }
        *since = self.now;
    }

    /// What every member's thread has had since it was introduced.
    pub fn received(&mut self) -> &HashMap<u32, Work> {
        (0..self.sites.len()).for_each(|at| self.settle(at));
        &self.received
    }

    /// From when the first thread was introduced up to now.
    pub fn length(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| self.now - begun)
    }
}

impl Site {
    fn is_withheld(&self, members: &HashMap<u32, Vec<usize>>) -> bool {
        let Some(granted) = self.granted else { return false };
        match self.occupant {
            Occupant::Unknown | Occupant::Sentinel => false,
            Occupant::Thread(thread) => members.get(&thread).is_none_or(|edges| !edges.contains(&granted)),
        }
    }

    /// It is withheld no more.
    fn give(&mut self, now: Instant) -> Option<(Instant, u16, Turn)> {
        let (from, is_certain) = (self.since.take()?, std::mem::take(&mut self.is_certain));
        let spell = Spell { cpu: self.cpu, thread: self.withholder, from, to: now };
        is_certain.then_some((now, self.cpu, Turn::Given(spell)))
    }
}
