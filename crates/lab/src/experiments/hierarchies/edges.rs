//! What was derived for every edge of a hierarchy, and whether it was kept.
//!
//! Each guarantee is checked twice. The run's own monitors check what the hierarchy *granted*: whether the schedulers keep their promises.
//! For threads, the same monitor then checks what they *received* according to the kernel's switches, which is what matters to a user.
//! Where the two differ, the kernel has withheld the processor, or was slow.

use super::runs::Run;
use super::service::{Account, Service, Spell};
use super::setting::{Picture, TOLERANCE};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{Monitor, Standing, Violation};
use talea_policy::arrangement::{Breach, Kept};
use talea_time::{Duration, Instant};

/// A run of one of the figures.
#[derive(Clone, Debug)]
pub struct FigureTrial {
    /// Which.
    pub picture: Picture,
    /// The run.
    pub run: Run,
    /// Its edges.
    pub edges: Vec<Edge>,
}

/// An edge.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Edge {
    /// What was derived, and what came of it by what was granted.
    #[serde(flatten)]
    pub kept: Kept,
    /// What came of it by what the thread received; of edges to threads.
    pub received: Option<Received>,
}

/// What a thread received, judged by what it was promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Received {
    /// Processor time.
    pub received_ns: i64,
    /// Windows judged.
    pub judged: u64,
    /// How many of them broke the promise.
    pub broken: u64,
    /// Of these, the ones during which, or in the period before which, the kernel withheld the processor.
    pub broken_withheld: u64,
    /// The greatest amount by which it was broken, and the window.
    pub worst: Option<Breach>,
}

impl Edge {
    /// Whether the promise, if it can be judged, was kept by what was granted.
    pub fn is_kept_as_granted(&self) -> Option<bool> {
        self.kept.judged.map(|_| self.kept.violations == 0)
    }
}

impl FigureTrial {
    /// What came of the edges of `picture` in `run`.
    pub fn of(picture: Picture, run: Run) -> Self {
        let edges = run.kept.iter().map(|kept| edge(kept, &run.service)).collect();
        FigureTrial { picture, run, edges }
    }

    /// Edges that can be judged.
    pub fn judged(&self) -> usize {
        self.edges.iter().filter(|edge| edge.kept.judged.is_some()).count()
    }
}

fn edge(kept: &Kept, service: &Service) -> Edge {
    let account = service.accounts.iter().find(|account| account.name == kept.child);
    let guarantee: Guarantee =
        kept.guarantee.parse().expect("a promise is told in the notation that is read");
    let received = account.map(|account| judge(account, &guarantee, service));
    Edge { kept: kept.clone(), received }
}

/// When something begins or ends, and what.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Wants,
    WantsNoMore,
    Loses,
    Gets,
}

fn judge(account: &Account, guarantee: &Guarantee, service: &Service) -> Received {
    let mut changes: Vec<(Instant, Change)> = Vec::new();
    let mut add = |spells: &[Spell], begin, end| {
        changes.extend(spells.iter().flat_map(|spell| [(spell.from, begin), (spell.to, end)]));
    };
    add(&account.wanted, Change::Wants, Change::WantsNoMore);
    add(&account.received, Change::Gets, Change::Loses);
    changes.sort_unstable();
    let mut monitor = Monitor::new(guarantee, TOLERANCE, service.run.from);
    let (mut wants, mut has, mut broken_withheld) = (false, false, 0);
    let mut hear = |broken: Violation| broken_withheld += u64::from(is_withheld(&broken, service));
    for (at, change) in changes {
        match change {
            Change::Wants => wants = true,
            Change::WantsNoMore => wants = false,
            Change::Gets => has = true,
            Change::Loses => has = false,
        }
        // Of several changes at one instant the last one counts.
        let standing = match (wants, has) {
            (false, _) => Standing::Waiting,
            (true, false) => Standing::Ready,
            (true, true) => Standing::Running,
        };
        monitor.note(at, standing, &mut hear);
    }
    monitor.note(service.run.to, Standing::Waiting, &mut hear);
    let tally = monitor.tally();
    Received {
        received_ns: super::service::total(&account.received).as_nanos(),
        judged: tally.judged,
        broken: tally.violations,
        broken_withheld,
        worst: tally.worst.map(Breach::from),
    }
}

/// Whether the kernel withheld the processor in the window or in the time of equal length before it: what was granted then has
/// been used up by the account of the schedulers.
fn is_withheld(broken: &Violation, service: &Service) -> bool {
    let length = broken.to - broken.from;
    let from = Instant::from_nanos((broken.from.as_nanos() - length.as_nanos()).max(0));
    Spell { from, to: broken.to }.common(&service.withheld) > Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::hierarchies::service::Evidence;

    fn ms(from: i64, to: i64) -> Spell {
        let at = |ms| Instant::from_nanos(ms * 1_000_000);
        Spell { from: at(from), to: at(to) }
    }

    fn judged(received: Vec<Spell>, withheld: Vec<Spell>, guarantee: &str) -> Received {
        let run = ms(0, 330);
        let account =
            Account { name: "video".into(), wanted: vec![run], granted: received.clone(), received };
        let accounts = vec![account.clone()];
        let service =
            Service { run, accounts, withheld, stolen: Vec::new(), evidence: Evidence::Switches, lost: 0 };
        judge(&account, &guarantee.parse().expect("a guarantee"), &service)
    }

    fn every_33() -> Vec<Spell> {
        (0..10).map(|period| ms(33 * period + period % 3, 33 * period + period % 3 + 5)).collect()
    }

    #[test]
    fn what_is_received_is_judged_by_the_monitor_of_runs() {
        let kept = judged(every_33(), Vec::new(), "RESBH 5ms 33ms");
        assert_eq!((kept.broken, kept.received_ns), (0, 50_000_000));
        assert!(kept.judged > 0);
        let mut holed = every_33();
        holed.remove(5);
        let broken = judged(holed.clone(), Vec::new(), "RESBH 5ms 33ms");
        assert_eq!((broken.broken, broken.broken_withheld), (1, 0));
        let excused = judged(holed, vec![ms(165, 190)], "RESBH 5ms 33ms");
        assert_eq!((excused.broken, excused.broken_withheld), (1, 1));
    }

    #[test]
    fn nothing_promised_is_not_judged() {
        assert_eq!(judged(Vec::new(), Vec::new(), "NULL").broken, 0);
    }
}
