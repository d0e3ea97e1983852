//! What the runtime's mechanisms cost, each beside the floor that the machine sets.
//!
//! `cargo bench -p talea-runtime --bench mechanisms [-- --json] [--quick]`
//!
//! Figures of different runs on a shared machine differ more than the mechanisms do; within a run the
//! subject and its floor alternate, so that their ratio holds. Real-time threads are used where they are
//! permitted, and the result says whether they were.

mod burn;
#[cfg(feature = "peers")]
mod copper;
mod enqueue;
mod handover;
mod kernel;
mod outside;
mod release;
mod wake;

use std::process::ExitCode;
use talea_linux::sched::{self, Policy};
use talea_linux::{affinity, memory};
use talea_measure::Report;

/// How much is measured: numbers of samples.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Effort {
    repetitions: u32,
    batches: u32,
    wakes: u32,
    releases: u32,
    /// Times that everything about the kernel stream alternates.
    kernel_turns: u32,
}

const FULL: Effort =
    Effort { repetitions: 5, batches: 20_000, wakes: 2_000, releases: 1_000, kernel_turns: 40 };
/// Enough to see that everything runs.
const SMOKE: Effort = Effort { repetitions: 1, batches: 20, wakes: 10, releases: 100, kernel_turns: 1 };
const QUICK: Effort = Effort { repetitions: 2, batches: 2_000, wakes: 300, releases: 200, kernel_turns: 8 };

impl Effort {
    fn of(effort: talea_measure::Effort) -> Self {
        match effort {
            talea_measure::Effort::Smoke => SMOKE,
            talea_measure::Effort::Quick => QUICK,
            talea_measure::Effort::Full => FULL,
        }
    }
}

/// Where threads go and what they are.
struct Stage {
    /// The CPU of the measuring thread.
    here: u16,
    /// Another one, if there is one.
    there: Option<u16>,
    /// Whether SCHED_FIFO is permitted.
    real_time: bool,
}

impl Stage {
    fn find() -> Self {
        let allowed = affinity::allowed().expect("the CPUs of this process can be read");
        let permitted = std::thread::spawn(|| sched::set_self(Policy::Fifo(50))).join();
        let real_time = match permitted.expect("asking does not panic") {
            Ok(()) => true,
            Err(error) => {
                eprintln!("measuring with ordinary threads: {error}");
                false
            }
        };
        if let Err(error) = memory::lock_all() {
            eprintln!("measuring with pageable memory: {error}");
        }
        // Interrupts and other programs' threads tend to be on the first CPU.
        let (&here, others) = allowed.split_last().expect("a process has a CPU");
        Stage { here, there: others.first().copied(), real_time }
    }

    /// FIFO at `priority` where that is permitted.
    fn policy(&self, priority: u8) -> Policy {
        if self.real_time { Policy::Fifo(priority) } else { Policy::Other }
    }
}

fn main() -> ExitCode {
    talea_measure::main(|effort| {
        let (effort, stage) = (Effort::of(effort), Stage::find());
        let mut report = Report::new(stage.real_time);
        enqueue::measure(&stage, effort, &mut report);
        handover::measure(effort, &mut report);
        wake::measure(&stage, effort, &mut report);
        release::measure(&stage, effort, &mut report);
        outside::measure(&stage, effort, &mut report);
        burn::measure(&stage, effort, &mut report);
        kernel::measure(&stage, effort, &mut report);
        report
    })
}
