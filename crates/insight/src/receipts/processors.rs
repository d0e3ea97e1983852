//! Where the kernel withholds a processor from whom it was granted to.
//!
//! | [`GrantedBy`] | Who is to have a processor | Who may have it instead |
//! |---|---|---|
//! | `Schedulers` | the threads below the edge that was granted it | the infrastructure, and the sentinel |
//! | `Kernel` | the threads of the run that lost it although they could go on, and a release thread that is due | every thread of the run |
//!
//! The kernel's switches say who has it. A [`MOMENT`] between the two is the way from a decision to the switch; so it is known only then
//! that a time of withholding has begun, and it is told with the instant at which it did.

use super::MOMENT;
use crate::hierarchy::EdgeState;
use std::collections::{HashMap, HashSet};
use talea_record::event::{Member, Switch};
use talea_record::{MemberRole, Record};
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

/// By whom it is said who is to have a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantedBy {
    /// Schedulers of a hierarchy, by the records of their decisions.
    Schedulers,
    /// The kernel, by the priorities of the run's threads: between lanes, and where it decides for a hierarchy.
    Kernel,
}

/// When a thread that could go on has a right to a processor, where the kernel decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// Always.
    Whenever,
    /// While the reservation that the kernel keeps for it is not used up.
    WhileReserved,
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
    /// It has the processor from whoever had it rightly, and decides who has it next.
    Infrastructure,
    Sentinel,
    /// A member's, or any other of the machine; the idle thread is 0.
    Thread(u32),
}

impl Occupant {
    /// The thread, 0 of one that is not known by number.
    fn thread(self) -> u32 {
        match self {
            Occupant::Thread(thread) => thread,
            Occupant::Unknown | Occupant::Infrastructure | Occupant::Sentinel => 0,
        }
    }
}

#[derive(Debug)]
struct Site {
    cpu: u16,
    /// The edge to members who are to have the processor.
    granted: Option<usize>,
    /// Where the kernel decides: the threads of the run that lost it although they could go on, until they have one or sleep.
    preempted: Vec<u32>,
    /// Where the kernel decides: since when no thread of the run has it, and who had it first.
    away: Option<(Instant, u32)>,
    /// From when to when that was, before the thread that has it, unless it was withheld.
    was_away: Option<Spell>,
    /// Who has it, but for the infrastructure while it is withheld.
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
    granted_by: GrantedBy,
    sites: Vec<Site>,
    /// Where the kernel decides: the threads of the run.
    of_run: HashSet<u32>,
    /// Those of them that have a reservation of the kernel's. Whether it is used up when they lose a processor is not told.
    reserved: HashSet<u32>,
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
    pub fn new(cpus: &[u16], granted_by: GrantedBy) -> Self {
        let site = |&cpu| Site {
            cpu,
            granted: None,
            preempted: Vec::new(),
            away: None,
            was_away: None,
            occupant: Occupant::Unknown,
            counted: None,
            since: None,
            withholder: 0,
            is_certain: false,
        };
        Processors {
            granted_by,
            of_run: HashSet::new(),
            reserved: HashSet::new(),
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
            match (site.since, site.is_withheld(&self.members, &self.of_run)) {
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

    /// Since when the first of the processors has been withheld, if only for the moment.
    pub fn open_since(&self) -> Option<Instant> {
        self.sites.iter().filter_map(|site| site.since).min()
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

    /// A thread of the run, by the run's own word.
    pub fn meet(&mut self, thread: u32, right: Right) {
        if self.granted_by == GrantedBy::Kernel {
            self.of_run.insert(thread);
        }
        if right == Right::WhileReserved {
            self.reserved.insert(thread);
        }
    }

    /// The kernel gives a processor to another thread; none if it is not known to which.
    pub fn switched(&mut self, cpu: u16, switch: Option<Switch>) {
        if self.granted_by == GrantedBy::Kernel {
            self.stopped(cpu, switch);
        }
        let Some(at) = self.sites.iter().position(|site| site.cpu == cpu) else { return };
        self.settle(at);
        let site = &mut self.sites[at];
        let to = switch.map(|switch| switch.to_tid).filter(|to| *to != Record::UNSEEN_THREAD);
        site.counted = to.map(|to| (to, self.now));
        site.occupant = match to {
            None => Occupant::Unknown,
            // In the midst of a time of withholding it is there for a moment.
            Some(to) if self.infrastructure.contains(&to) && site.since.is_some() => return,
            Some(to) if self.infrastructure.contains(&to) => Occupant::Infrastructure,
            Some(to) if self.sentinels.contains(&to) => Occupant::Sentinel,
            Some(to) => Occupant::Thread(to),
        };
    }

    /// Where the kernel decides: notes who lost a processor by the switch although it could go on.
    fn stopped(&mut self, cpu: u16, switch: Option<Switch>) {
        let Processors { sites, of_run, reserved, now, .. } = self;
        let moved = |thread: &u32| switch.is_some_and(|at| [at.from_tid, at.to_tid].contains(thread));
        sites.iter_mut().for_each(|site| site.preempted.retain(|thread| !moved(thread)));
        let Some(site) = sites.iter_mut().find(|site| site.cpu == cpu) else { return };
        site.was_away = None;
        let Some(switch) = switch else {
            site.preempted.clear();
            site.away = None;
            return;
        };
        let from = switch.from_tid;
        if switch.preempted.0 && of_run.contains(&from) && !reserved.contains(&from) {
            site.preempted.push(from);
        }
        if of_run.contains(&switch.to_tid) {
            let away = site.away.take().filter(|_| site.since.is_none());
            site.was_away = away.map(|(from, thread)| Spell { cpu, thread, from, to: *now });
        } else {
            site.away.get_or_insert((*now, switch.to_tid));
        }
    }

    /// Where the kernel decides: the release thread that has just been given the processor was to have it at `due`.
    pub fn was_due(&mut self, cpu: u16, due: Instant) {
        let Some(site) = self.sites.iter_mut().find(|site| site.cpu == cpu) else { return };
        let Some(away) = site.was_away.take() else { return };
        let spell = Spell { from: away.from.max(due), ..away };
        if spell.from < spell.to && spell.length() > MOMENT {
            self.turns.push((spell.from, cpu, Turn::Withheld));
            self.turns.push((spell.to, cpu, Turn::Given(spell)));
        }
    }

    /// Where the kernel decides: records were lost, so who could go on is not known any more.
    pub fn forget(&mut self) {
        for site in &mut self.sites {
            site.preempted.clear();
            (site.away, site.was_away) = (None, None);
        }
    }

    fn settle(&mut self, at: usize) {
        let Some((thread, since)) = &mut self.sites[at].counted else { return };
        if self.members.contains_key(thread) {
            let received = self.received.entry(*thread).or_insert(Work::ZERO);
            // Damaged records may tell of centuries.
            *received = received.checked_add((self.now - *since).as_work()).unwrap_or(Work::MAX);
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
    fn is_withheld(&self, members: &HashMap<u32, Vec<usize>>, of_run: &HashSet<u32>) -> bool {
        let Occupant::Thread(thread) = self.occupant else { return false };
        match self.granted {
            Some(granted) => members.get(&thread).is_none_or(|edges| !edges.contains(&granted)),
            None => !self.preempted.is_empty() && !of_run.contains(&thread),
        }
    }

    /// It is withheld no more.
    fn give(&mut self, now: Instant) -> Option<(Instant, u16, Turn)> {
        let (from, is_certain) = (self.since.take()?, std::mem::take(&mut self.is_certain));
        let spell = Spell { cpu: self.cpu, thread: self.withholder, from, to: now };
        is_certain.then_some((now, self.cpu, Turn::Given(spell)))
    }
}
