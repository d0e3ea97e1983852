//! The same lanes below other schedulers: whatever stands above them, they keep their orders.
//!
//! ```text
//!   root: fixed priority ─┬─ 2 ─ reserved ─┬─ lanes   15 ms in every 20 ms, and not more
//!                         │                └─ ticker  short bursts
//!                         └─ 1 ─ rest                 longer bursts
//! ```

use super::{Clock, Observation};
use talea_guarantee::guarantee::Guarantee;
use talea_linux::sched::{Policy, set_self};
use talea_model::{
    Description, Execution, Request, Scheduler, SchedulerKind, Settings, System, Thread, ThreadWork, Under,
};
use talea_time::{Duration, Work};

/// A clock on which every node has such a hierarchy.
pub struct Below<C>(pub C);

impl<C: Clock> Clock for Below<C> {
    fn name(&self) -> String {
        format!("{}, lanes below schedulers", self.0.name())
    }

    fn run(&self, system: &System, until: &[String]) -> Observation {
        self.0.run(&hung_up(system), until)
    }
}

/// Why threads cannot do that with this system, if they cannot.
pub fn obstacle(system: &System) -> Option<String> {
    let mut cpus: Vec<u16> = system.nodes.iter().flat_map(|node| node.cpus.clone()).collect();
    let all = cpus.len();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.len() < all {
        return Some("two hierarchies need two processors".into());
    }
    let asked = std::thread::spawn(|| set_self(Policy::Fifo(13))).join().expect("nothing panics");
    asked.err().map(|error| error.to_string())
}

fn hung_up(system: &System) -> System {
    let mut description: Description = (**system).clone();
    for node in 0..description.nodes.len() {
        hang_up(&mut description, node);
    }
    System::new(description).unwrap_or_else(|violations| panic!("{violations:?}"))
}

fn hang_up(description: &mut Description, node: usize) {
    let named = |name: &str| format!("{name}-{node}");
    let scheduler = |name: &str, kind, under: Vec<Under>| Scheduler {
        name: named(name),
        node,
        kind,
        quantum: None,
        takes: None,
        settings: Settings::of(kind),
        under,
    };
    let bursts = |name: &str, burst_ms, period_ms, under| Thread {
        name: named(name),
        node,
        work: ThreadWork::Bursts {
            burst: Execution::Constant(Work::from_millis(burst_ms)),
            period: Duration::from_millis(period_ms),
        },
        requires: None,
        under: vec![under],
    };
    let root = description.schedulers.len();
    let under = |scheduler, request| Under { scheduler, request };
    let reserved = |amount: &str| {
        let guarantee: Guarantee = amount.parse().expect("a guarantee");
        under(root + 1, Request::Guarantee(guarantee))
    };
    let priority = |priority| under(root, Request::Priority(priority));
    description.schedulers.extend([
        scheduler("root", SchedulerKind::FIXED_PRIORITY, Vec::new()),
        scheduler("reserved", SchedulerKind::RESERVATION, vec![priority(2)]),
        scheduler("lanes", SchedulerKind::LANES, vec![reserved("RESBH 15ms 20ms")]),
    ]);
    description
        .threads
        .extend([bursts("ticker", 1, 20, reserved("RESBH 2ms 20ms")), bursts("rest", 4, 30, priority(1))]);
}
