//! Whether a scheduler's decisions hold together, whatever its threads do and whenever.

use crate::Machine;
use crate::forest::{self, Tree};
use crate::promises::cases;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use talea_model::{SchedulerKind, System};
use talea_policy::arrangement::arrange;
use talea_policy::hierarchy::{Constraint, Message, SchedulerId, Switch, VpId};
use talea_policy::job::Job;
use talea_policy::strategy::plan_lanes_of;
use talea_time::{Duration, Instant, Work};

/// What happens at one instant; times are in units of a tenth of a millisecond.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// A thread that does not want a processor wants one.
    Request { thread: usize, deadline: u8, wcet: u8 },
    /// A thread does not want one any more.
    Release { thread: usize },
    /// The same of one that runs.
    Complete { processor: usize },
    /// A thread asks for a guarantee for one piece of work, which may be refused.
    Constrain { thread: usize, start: u8, length: u8, work: u8 },
}

/// What happens, and how long nothing does after that.
type Round = (Vec<Act>, u16);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let act = prop_oneof![
        6 => (0..64usize, 1..200u8, 0..60u8)
            .prop_map(|(thread, deadline, wcet)| Act::Request { thread, deadline, wcet }),
        1 => (0..64usize).prop_map(|thread| Act::Release { thread }),
        3 => (0..4usize).prop_map(|processor| Act::Complete { processor }),
        1 => (0..64usize, 0..100u8, 1..200u8, 1..60u8)
            .prop_map(|(thread, start, length, work)| Act::Constrain { thread, start, length, work }),
    ];
    prop::collection::vec((prop::collection::vec(act, 0..5), 0..150u16), 1..40)
}

/// Fails unless the books of everybody agree at every decision, and the same events give the same ones.
pub(crate) fn check(kind: SchedulerKind, number: u32) {
    let config = ProptestConfig { failure_persistence: None, ..cases(number) };
    let outcome = TestRunner::new(config).run(&(forest::trees_with(kind), rounds()), |(tree, rounds)| {
        let play = || Play::new(&tree).map(|play| play.all(&rounds));
        let first = play().map_err(|refusal| TestCaseError::fail(format!("{refusal}\n{}", tree.drawn())))?;
        prop_assert_eq!(Some(first), play().ok(), "the same events give other decisions\n{}", tree.drawn());
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{kind}: {error}"));
}

struct Play {
    machine: Machine,
    /// The threads with the schedulers above them.
    threads: Vec<(VpId, SchedulerId)>,
    number: u64,
}

fn units(count: impl Into<i64>) -> Duration {
    Duration::from_micros(100 * count.into())
}

impl Play {
    fn new(tree: &Tree) -> Result<Self, String> {
        let system: System = tree.system_on(&[0]);
        let plans = plan_lanes_of(&system).expect("there are no tasks");
        let arranged = arrange(&system, 0, &plans[0], 1).map_err(|error| error.to_string())?;
        let mut arrangement = arranged.expect("the node has a hierarchy");
        let mut threads = Vec::new();
        for leaf in std::mem::take(&mut arrangement.leaves) {
            let vp = arrangement.add_thread(&system, &leaf).map_err(|error| error.to_string())?;
            threads.push((vp, leaf.parent));
        }
        Ok(Play { machine: Machine::new(arrangement.engine), threads, number: 0 })
    }

    /// Every decision that was made.
    fn all(mut self, rounds: &[Round]) -> Vec<(Instant, Switch)> {
        for (acts, gap) in rounds {
            acts.iter().for_each(|act| self.act(*act));
            self.machine.settle();
            let until = self.machine.now + units(*gap);
            while self.machine.now < until {
                let timer = self.machine.engine.next_timer().unwrap_or(Instant::MAX);
                assert!(timer > self.machine.now, "a timer that is due has been fired");
                self.machine.advance(timer.min(until), |_, _, _| {});
                self.machine.settle();
            }
        }
        self.machine.log
    }

    fn act(&mut self, act: Act) {
        let thread = |number: usize| self.threads[number % self.threads.len()];
        match act {
            Act::Request { thread: number, deadline, wcet } => {
                let (thread, _) = thread(number);
                if !self.machine.wants(thread) {
                    let release = self.machine.now;
                    let (deadline, wcet) = (release + units(deadline), units(wcet).as_work());
                    self.number += 1;
                    let tag = thread.index() as u32;
                    let job = Job { release, deadline, wcet, rank: 0, number: self.number, tag };
                    self.machine.request(thread, job);
                }
            }
            Act::Release { thread: number } => {
                let (thread, _) = thread(number);
                if self.machine.wants(thread) {
                    self.machine.release(thread);
                }
            }
            Act::Complete { processor } => {
                let running = self.machine.running().nth(processor).flatten();
                // Who runs may have ended in this round already.
                if let Some(thread) = running.filter(|thread| self.machine.wants(*thread)) {
                    self.machine.release(thread);
                }
            }
            Act::Constrain { thread: number, start, length, work } => {
                let (thread, above) = thread(number);
                let start = self.machine.now + units(start);
                let work: Work = units(work).as_work();
                let constraint = Constraint { start, deadline: start + units(length), work };
                // Refused or not, nobody may be harmed.
                let message = Message::Constrain(constraint);
                let _ = self.machine.engine.message(above, Some(thread), message, self.machine.now);
            }
        }
    }
}
