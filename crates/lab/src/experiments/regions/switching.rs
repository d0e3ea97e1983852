//! What the kernel's records tell of the threads of a run: how often the processor went to the thread of a critical lane, and how
//! long that took.
//!
//! ```text
//!                  its last record               its first record
//!   release thread ───────┤          SWITCH          ├───────────────  thread of a critical lane
//!                         └── out ──────┴──── in ────┘
//! ```
//!
//! **A switch** costs from the last record of the thread that gives the processor away to the first one of the thread that
//! gets it: the wake-up, the way into the kernel, the switch itself and the way out of it. Two parts cannot be seen. A
//! thread that is preempted records nothing when it loses the processor, and none that goes on where it was
//! preempted records that it does. There the other half alone counts, so what is measured is a lower bound. Interrupts and a
//! hypervisor's thefts in between are part of it.
//!
//! For how long the processor was withheld from threads of the run that could go on is said by [`talea_insight::receipts`].
//!
//! The regions have one processor, so there is one sequence of switches.

use std::collections::{HashMap, HashSet};
use talea_record::event::{Switch, Typed};
use talea_record::{Event, Record, ThreadRole};
use talea_time::{Duration, Instant};

/// The number of the builtin family `kernel`.
fn is_of_kernel(event: Event) -> bool {
    event.family() == Event::SWITCH.family()
}

/// What a thread of the run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    CriticalLane,
    Other,
}

/// The processor went to the thread of a critical lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it had it.
    pub at: Instant,
    /// What of the way there can be seen.
    pub cost: Duration,
}

/// A switch to a thread that will tell of its arrival.
#[derive(Clone, Copy, Debug)]
struct Arriving {
    at: Instant,
    out: Duration,
}

/// Follows the threads of a run through the kernel's switches.
#[derive(Debug, Default)]
pub struct Threads {
    roles: HashMap<u32, Role>,
    /// Those that lost the processor while they could go on.
    preempted: HashSet<u32>,
    /// The last record of the thread that has the processor, since it has it.
    last: Option<Instant>,
    arriving: Option<Arriving>,
    has_switches: bool,
}

impl Threads {
    /// Whether the kernel told of any switch.
    pub fn has_switches(&self) -> bool {
        self.has_switches
    }

    /// Takes a record of the run or of the kernel, in the order of time. `is_critical` tells whether all operations of a lane are
    /// critical. Returns what is over with it.
    pub fn take(&mut self, record: &Record, is_critical: impl Fn(usize) -> bool) -> [Option<Arrival>; 2] {
        match record.typed() {
            Typed::Switch(switch) => return self.switch(record.time, switch),
            Typed::Lost(lost) if lost.is_of_kernel() => self.forget(),
            Typed::Thread(thread) => {
                let critical = thread.role == ThreadRole::Lane
                    && thread.lane.is_some_and(|lane| is_critical(usize::from(lane)));
                let role = if critical { Role::CriticalLane } else { Role::Other };
                self.roles.insert(thread.tid, role);
                self.last = Some(record.time);
            }
            _ if !is_of_kernel(record.event) && record.cpu != Record::NO_CPU => {
                self.last = Some(record.time);
                return [self.arrived(Some(record.time)), None];
            }
            _ => {}
        }
        [None; 2]
    }

    fn switch(&mut self, now: Instant, switch: Switch) -> [Option<Arrival>; 2] {
        self.has_switches = true;
        let (from, to) = (switch.from_tid, switch.to_tid);
        // One that loses the processor again before it has told of its arrival has only the way out.
        let before = self.arrived(None);
        let last = self.last.take();
        let could_go_on = switch.preempted.0;
        let leaves = self.roles.contains_key(&from);
        self.preempted.remove(&from);
        if leaves && could_go_on {
            self.preempted.insert(from);
        }
        let Some(role) = self.roles.get(&to).copied() else { return [before, None] };
        let slept = !self.preempted.remove(&to);
        let out = last.filter(|_| leaves && !could_go_on).map_or(Duration::ZERO, |last| now - last);
        let arriving = Arriving { at: now, out };
        let at_once = match role {
            Role::CriticalLane if slept => {
                self.arriving = Some(arriving);
                None
            }
            Role::CriticalLane => Some(Arrival { at: now, cost: out }),
            Role::Other => None,
        };
        [before, at_once]
    }

    fn arrived(&mut self, first: Option<Instant>) -> Option<Arrival> {
        let Arriving { at, out } = self.arriving.take()?;
        let way_in = first.map_or(Duration::ZERO, |first| first - at);
        Some(Arrival { at, cost: out + way_in })
    }

    /// Forgets everything except which threads there are.
    fn forget(&mut self) {
        let roles = std::mem::take(&mut self.roles);
        *self = Threads { roles, has_switches: self.has_switches, ..Threads::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIGHER: u32 = 10;
    const HIGH: u32 = 11;
    const LOW: u32 = 12;
    const RELEASE: u32 = 13;
    const IDLE: u32 = 0;
    const COULD_GO_ON: u16 = 1;
    const SLEEPS: u16 = 0;

    fn record(event: Event, ns: i64, words: [u64; 2], source: u16, arg: u16) -> Record {
        Record { time: Instant::from_nanos(ns), causal: 0, words, event, source, cpu: 0, arg }
    }

    struct GivenRecords {
        threads: Threads,
        observed: Vec<Arrival>,
    }

    impl GivenRecords {
        /// Lanes 0 and 1 are critical and lane 2 is not.
        fn new() -> Self {
            let mut given = GivenRecords { threads: Threads::default(), observed: Vec::new() };
            for (lane, thread) in [HIGHER, HIGH, LOW].into_iter().enumerate() {
                let words = [u64::from(thread), 0];
                given.give(record(Event::THREAD, 0, words, lane as u16, ThreadRole::Lane as u16));
            }
            let words = [u64::from(RELEASE), 0];
            given.give(record(Event::THREAD, 0, words, Record::NO_LANE, ThreadRole::Release as u16));
            given
        }

        fn give(&mut self, record: Record) {
            self.observed.extend(self.threads.take(&record, |lane| lane < 2).into_iter().flatten());
        }

        fn switch(&mut self, ns: i64, from: u32, to: u32, arg: u16) {
            let words = [u64::from(from) | u64::from(to) << 32, 0];
            self.give(record(Event::SWITCH, ns, words, Record::KERNEL, arg));
        }

        fn own(&mut self, ns: i64, event: Event) {
            self.give(record(event, ns, [0, 0], 0, 0));
        }

        fn all(&mut self) -> Vec<Arrival> {
            std::mem::take(&mut self.observed)
        }
    }

    fn switch(at: i64, cost: i64) -> Arrival {
        Arrival { at: Instant::from_nanos(at), cost: Duration::from_nanos(cost) }
    }

    #[test]
    fn a_switch_costs_from_the_last_record_of_one_thread_to_the_first_of_the_other() {
        let mut given = GivenRecords::new();
        given.switch(50, IDLE, LOW, SLEEPS);
        given.switch(100, LOW, RELEASE, COULD_GO_ON);
        given.own(105, Event::TIMER);
        given.own(120, Event::COST);
        given.switch(125, RELEASE, HIGH, SLEEPS);
        assert_eq!(given.all(), [], "it has not told of its arrival");
        given.own(131, Event::WAKE);
        assert_eq!(given.all(), [switch(125, 11)]);
        given.own(132, Event::START);
        given.own(200, Event::SLEEP);
        given.switch(203, HIGH, LOW, SLEEPS);
        assert_eq!(given.all(), [], "the lane is not critical");
    }

    #[test]
    fn of_a_thread_that_was_preempted_the_way_out_of_the_other_one_is_seen() {
        let mut given = GivenRecords::new();
        given.switch(100, IDLE, HIGH, SLEEPS);
        given.own(102, Event::START);
        given.switch(110, HIGH, HIGHER, COULD_GO_ON);
        given.own(114, Event::START);
        given.own(150, Event::SLEEP);
        given.switch(153, HIGHER, HIGH, SLEEPS);
        assert_eq!(given.all(), [switch(100, 2), switch(110, 4), switch(153, 3)]);
    }

    #[test]
    fn an_arrival_that_no_record_tells_of_counts_with_its_way_out() {
        let mut given = GivenRecords::new();
        given.switch(100, IDLE, RELEASE, SLEEPS);
        given.own(101, Event::COST);
        given.switch(104, RELEASE, HIGH, SLEEPS);
        given.switch(106, HIGH, RELEASE, COULD_GO_ON);
        assert_eq!(given.all(), [switch(104, 3)]);
    }

    #[test]
    fn after_a_loss_nothing_is_known_but_whose_the_threads_are() {
        let mut given = GivenRecords::new();
        given.switch(100, IDLE, LOW, SLEEPS);
        given.switch(300, LOW, IDLE, COULD_GO_ON);
        given.give(record(Event::LOST, 400, [5, 0], Record::KERNEL, 0));
        given.switch(500, IDLE, HIGH, SLEEPS);
        given.own(503, Event::WAKE);
        assert_eq!(given.all(), [switch(500, 3)]);
    }
}
