//! What random threads do: one generator and one player for all tests that watch decisions.

use crate::Machine;
use proptest::prelude::*;
use std::ops::Range;
use talea_policy::hierarchy::{Constraint, Message, ProcessorId, SchedulerId, VpId};
use talea_policy::job::Job;
use talea_time::Duration;

/// What happens at one instant. Threads, processors and the children that ask for constraints are numbers: the player divides each by how
/// many there are and takes the remainder. Times are in units of the player.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// A thread that does not want a processor wants one.
    Request {
        /// Which.
        thread: usize,
        /// From now.
        deadline: i64,
        /// The worst case of its job.
        wcet: i64,
    },
    /// A thread does not want one any more.
    Release {
        /// Which.
        thread: usize,
    },
    /// A thread that wants a processor has done its job, and goes on with another one that waited.
    Follow {
        /// Which.
        thread: usize,
        /// Of the next job, from now.
        deadline: i64,
        /// The worst case of that.
        wcet: i64,
    },
    /// The same as a release of one that runs.
    Complete {
        /// Where.
        processor: usize,
    },
    /// A thread asks for a guarantee for one piece of work, which may be refused.
    Constrain {
        /// Which of those that may ask.
        thread: usize,
        /// From now.
        start: i64,
        /// From the start.
        length: i64,
        /// The worst case.
        work: i64,
    },
    /// The machine takes a processor away, if it has it.
    TakeAway {
        /// Which.
        processor: usize,
    },
    /// The machine gives it back.
    GiveBack {
        /// Which.
        processor: usize,
    },
}

/// How long the times are that are drawn.
#[derive(Clone, Debug)]
pub struct Lengths {
    /// Of deadlines.
    pub deadline: Range<i64>,
    /// Of worst cases.
    pub wcet: Range<i64>,
    /// Until a constraint starts.
    pub start: Range<i64>,
    /// From its start to its deadline.
    pub length: Range<i64>,
    /// Of its work.
    pub work: Range<i64>,
}

/// Any of them, mostly requests and completions.
pub fn acts(lengths: Lengths) -> impl Strategy<Value = Act> + Clone {
    let Lengths { deadline, wcet, start, length, work } = lengths;
    prop_oneof![
        6 => (0..64usize, deadline.clone(), wcet.clone())
            .prop_map(|(thread, deadline, wcet)| Act::Request { thread, deadline, wcet }),
        3 => (0..64usize, deadline, wcet)
            .prop_map(|(thread, deadline, wcet)| Act::Follow { thread, deadline, wcet }),
        1 => (0..64usize).prop_map(|thread| Act::Release { thread }),
        3 => (0..4usize).prop_map(|processor| Act::Complete { processor }),
        1 => (0..64usize, start, length, work)
            .prop_map(|(thread, start, length, work)| Act::Constrain { thread, start, length, work }),
    ]
}

/// The same on a machine that takes processors away now and then.
pub fn acts_with_gaps(lengths: Lengths) -> impl Strategy<Value = Act> + Clone {
    prop_oneof![
        10 => acts(lengths),
        1 => (0..4usize).prop_map(|processor| Act::TakeAway { processor }),
        1 => (0..4usize).prop_map(|processor| Act::GiveBack { processor }),
    ]
}

/// A machine whose threads act.
pub struct Player {
    /// The machine.
    pub machine: Machine,
    threads: Vec<VpId>,
    /// Who may ask for constraints, and whom.
    planners: Vec<(SchedulerId, VpId)>,
    unit: Duration,
    jobs: u64,
}

impl Player {
    /// These threads act, and these ask for constraints; times are in `unit`s.
    pub fn new(
        machine: Machine,
        threads: Vec<VpId>,
        planners: Vec<(SchedulerId, VpId)>,
        unit: Duration,
    ) -> Self {
        Player { machine, threads, planners, unit, jobs: 0 }
    }

    fn next_job(&mut self, thread: VpId, deadline: i64, wcet: i64) -> Job {
        let now = self.machine.now;
        self.jobs += 1;
        Job {
            release: now,
            deadline: now + self.unit * deadline,
            wcet: (self.unit * wcet).as_work(),
            rank: 0,
            number: self.jobs,
            tag: thread.index() as u32,
        }
    }

    /// Something happens, if it can.
    pub fn act(&mut self, act: Act) {
        let thread = |number: usize| self.threads[number % self.threads.len()];
        let now = self.machine.now;
        match act {
            Act::Request { thread: number, deadline, wcet } => {
                let thread = thread(number);
                if !self.machine.wants(thread) {
                    let job = self.next_job(thread, deadline, wcet);
                    self.machine.request(thread, job);
                }
            }
            Act::Follow { thread: number, deadline, wcet } => {
                let thread = thread(number);
                if self.machine.wants(thread) {
                    let job = self.next_job(thread, deadline, wcet);
                    self.machine.follow(thread, job);
                }
            }
            Act::Release { thread: number } => {
                let thread = thread(number);
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
            Act::TakeAway { processor } => {
                let processor = processor % self.machine.engine.processors();
                self.machine.engine.take_away(ProcessorId::from_index(processor as u16), now);
            }
            Act::GiveBack { processor } => {
                let processor = processor % self.machine.engine.processors();
                self.machine.engine.give_back(ProcessorId::from_index(processor as u16), now);
            }
            Act::Constrain { thread, start, length, work } => {
                let Some((above, thread)) = self.planners.get(thread % self.planners.len().max(1)) else {
                    return;
                };
                let start = now + self.unit * start;
                let (deadline, work) = (start + self.unit * length, (self.unit * work).as_work());
                // Refused or not, nobody may be harmed.
                let message = Message::Constrain(Constraint { start, deadline, work });
                let _ = self.machine.engine.message(*above, Some(*thread), message, now);
            }
        }
    }
}
