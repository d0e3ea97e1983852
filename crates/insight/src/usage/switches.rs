//! What going from one thread of a run to another costs, from what the threads and the kernel say.
//!
//! ```text
//!             its last record               its first record
//!   one thread ──────┤          SWITCH          ├────── another one
//!                    └── out ──────┴──── in ────┘
//! ```
//!
//! No record of the run has this: a thread cannot measure its own going. Of a thread that is preempted in a job neither half
//! is seen, for what it records last and first is the job's, so the sum is a lower bound. Interrupts in between have an
//! account of their own.

use std::collections::HashMap;
use talea_time::Instant;

/// What is known of the switches under way, by processor.
#[derive(Debug, Default)]
pub(super) struct Switches(HashMap<u16, Processor>);

#[derive(Debug, Default)]
struct Processor {
    /// The last record of the thread that has it, since it has it.
    last: Option<Instant>,
    /// When a thread got it that has not told of its arrival.
    arriving: Option<Instant>,
}

impl Switches {
    /// The thread on the processor tells that it was at work at `now`. Returns since when it has the processor, if it has not
    /// told anything since.
    pub fn saw_active(&mut self, cpu: u16, now: Instant) -> Option<Instant> {
        let processor = self.0.entry(cpu).or_default();
        processor.last = Some(now);
        processor.arriving.take()
    }

    /// The processor goes to another thread at `now`. Returns when the thread that gives it away told something last, if it
    /// is one of the run's.
    pub fn switch(&mut self, cpu: u16, now: Instant, from: ThreadOwner, to: ThreadOwner) -> Option<Instant> {
        let processor = self.0.entry(cpu).or_default();
        processor.arriving = (to == ThreadOwner::Run).then_some(now);
        processor.last.take().filter(|_| from == ThreadOwner::Run)
    }

    /// Records of the kernel about the processor were lost.
    pub fn forget(&mut self, cpu: u16) {
        self.0.remove(&cpu);
    }
}

/// Whose a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadOwner {
    Run,
    Others,
}
