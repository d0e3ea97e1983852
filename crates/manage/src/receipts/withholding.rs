//! Where the kernel withholds a processor from whom it was granted to.
//!
//! ```text
//!   granted    ├────── frames ──────┤├── background ──┤
//!   has it     ├── frames ──┤ nobody      ├─── bg. ───┤
//!   withheld                ├─────────────┤
//! ```
//!
//! The decisions say who is to have a processor, the kernel's switches who has it. A [`MOMENT`] between the two is the way from a
//! decision to the switch; so it is known only then that a spell has begun, and it is told with the instant at which it did.

use std::collections::{HashMap, HashSet};
use talea_policy::hierarchy::{Transition, VpId, VpState};
use talea_time::{Duration, Instant, Work};

/// What is withheld for no longer is the way from a decision to the switch, or one of the infrastructure's threads. Waking an idle
/// processor of a virtual machine takes some 150 µs.
pub(super) const MOMENT: Duration = Duration::from_micros(250);

/// Threads that are no members, by the kernel's numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Infrastructure {
    /// They have a processor where whoever is granted it does not want it.
    pub sentinels: HashSet<u32>,
    /// They preempt everybody for a moment.
    pub helpers: HashSet<u32>,
}

/// A spell of withholding has begun or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// By this thread's having the processor, by the kernel's number.
    Withheld(u32),
    Given,
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
    /// The member that is to have the processor.
    granted: Option<VpId>,
    /// Who has it, but for helpers.
    occupant: Occupant,
    /// Whose time is counted, and from when.
    counted: Option<(VpId, Instant)>,
    /// Since when it has been withheld.
    since: Option<Instant>,
    /// Who had it then.
    withholder: u32,
    is_certain: bool,
}

/// What is granted beside what is given, on all processors of a set.
#[derive(Debug)]
pub(super) struct Withholding {
    infrastructure: Infrastructure,
    sites: Vec<Site>,
    /// Members by their threads.
    members: HashMap<u32, VpId>,
    received: HashMap<VpId, Work>,
    now: Instant,
    begun: Option<Instant>,
    turns: Vec<(Instant, usize, Turn)>,
}

impl Withholding {
    pub fn new(cpus: &[u16], infrastructure: Infrastructure) -> Self {
        let site = |&cpu| Site {
            cpu,
            granted: None,
            occupant: Occupant::Unknown,
            counted: None,
            since: None,
            withholder: 0,
            is_certain: false,
        };
        Withholding {
            infrastructure,
            sites: cpus.iter().map(site).collect(),
            members: HashMap::new(),
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
        for (place, site) in self.sites.iter_mut().enumerate() {
            let withheld = site.is_withheld(&self.members);
            match (site.since, withheld) {
                (None, true) => {
                    site.since = Some(self.now);
                    site.withholder = site.occupant.thread();
                }
                (Some(_), false) => {
                    site.since = None;
                    if std::mem::take(&mut site.is_certain) {
                        self.turns.push((self.now, place, Turn::Given));
                    }
                }
                _ => {}
            }
            if let Some(since) = site.since.filter(|since| !site.is_certain && at - *since > MOMENT) {
                site.is_certain = true;
                self.turns.push((since, place, Turn::Withheld(site.withholder)));
            }
        }
        self.now = at;
    }

    /// Turns that have become certain, each with the instant at which it was. None that comes later is earlier than a moment before
    /// the instant to which time was [advanced](Self::advance).
    pub fn turns(&mut self) -> impl Iterator<Item = (Instant, usize, Turn)> {
        self.turns.drain(..)
    }

    /// The run begins.
    pub fn begin(&mut self) {
        self.begun = Some(self.now);
        self.received.clear();
        for site in &mut self.sites {
            site.counted = site.counted.map(|(vp, _)| (vp, self.now));
        }
    }

    /// A virtual processor comes into another state.
    pub fn decided(&mut self, Transition { vp, state, .. }: Transition) {
        if !self.members.values().any(|member| *member == vp) {
            return;
        }
        for site in self.sites.iter_mut().filter(|site| site.granted == Some(vp)) {
            site.granted = None;
        }
        if let VpState::Running(processor) = state
            && let Some(site) = self.sites.get_mut(processor.index())
        {
            site.granted = Some(vp);
        }
    }

    /// A thread belongs to the member behind `vp`.
    pub fn introduce(&mut self, thread: u32, vp: VpId) {
        self.members.insert(thread, vp);
    }

    /// The kernel gives a processor to the thread `to`, or to nobody knows whom.
    pub fn switched(&mut self, cpu: u16, to: Option<u32>) {
        let Some(at) = self.sites.iter().position(|site| site.cpu == cpu) else { return };
        self.settle(at);
        let site = &mut self.sites[at];
        site.counted = to.and_then(|to| self.members.get(&to)).map(|vp| (*vp, self.now));
        site.occupant = match to {
            None => Occupant::Unknown,
            Some(to) if self.infrastructure.helpers.contains(&to) => return,
            Some(to) if self.infrastructure.sentinels.contains(&to) => Occupant::Sentinel,
            Some(to) => Occupant::Thread(to),
        };
    }

    fn settle(&mut self, at: usize) {
        if let Some((vp, since)) = self.sites[at].counted.replace_since(self.now) {
            let received = self.received.entry(vp).or_insert(Work::ZERO);
            *received = Work::from_nanos(received.as_nanos() + (self.now - since).as_nanos());
        }
    }

    /// What the threads behind every virtual processor have had since the run began.
    pub fn received(&mut self) -> &HashMap<VpId, Work> {
        (0..self.sites.len()).for_each(|at| self.settle(at));
        &self.received
    }

    /// From the beginning of the run up to now.
    pub fn length(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| self.now - begun)
    }
}

/// Time that is counted up to an instant, and on from there.
trait Counted {
    fn replace_since(&mut self, now: Instant) -> Option<(VpId, Instant)>;
}

impl Counted for Option<(VpId, Instant)> {
    fn replace_since(&mut self, now: Instant) -> Option<(VpId, Instant)> {
        let before = *self;
        if let Some((_, since)) = self {
            *since = now;
        }
        before
    }
}

impl Site {
    fn is_withheld(&self, members: &HashMap<u32, VpId>) -> bool {
        let Some(granted) = self.granted else { return false };
        match self.occupant {
            Occupant::Unknown | Occupant::Sentinel => false,
            Occupant::Thread(thread) => members.get(&thread) != Some(&granted),
        }
    }
}
