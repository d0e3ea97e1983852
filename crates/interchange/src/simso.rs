//! SimSo: periodic tasks on identical processors, simulated under a scheduler class, described in XML.
//!
//! # From SimSo
//!
//! Times are decimal milliseconds; costs are cycles, of which `cycles_per_ms` make a millisecond.
//!
//! | SimSo | description |
//! |---|---|
//! | a periodic task: `period`, `deadline`, `activationDate`, `WCET` | a task: period, deadline, phase, wcet |
//! | `followed_by` and the aperiodic tasks it leads to | a chain of subtasks; their deadlines add up |
//! | a sporadic task with a list of dates | a task of their shortest distance, the first date its phase |
//! | `etm` `wcet` | every job takes its wcet |
//! | `etm` `acet`, without and with a deviation | every job takes the ACET; uniform with the same mean and deviation |
//! | `abort_on_miss` | overrun `abort`, otherwise `queue` |
//! | the processors, `cs_overhead` and `cl_overhead` | one node `local` with processors 0, 1, …; the switch overhead |
//! | `EDF`, `RM`, `LLF` and their variants | `edf`, `rms`, `mlf`, preemptive |
//! | `FP` with the field `priority` | `rms` if the priorities are by rate, `criticality` if there are at most five |
//! | caches, speeds, migration, other costs, other fields | listed as lost |
//!
//! A chain whose tasks are all called `TASK SUBTASK` gets both names.
//!
//! # To SimSo
//!
//! The same backwards. All nodes become one set of processors. Graphs become chains in topological order. A
//! task's deadline is split among its subtasks in proportion to their wcet, because SimSo counts the deadline
//! of each from its own activation. Uniform and listed execution times become a normal distribution of the same
//! mean and deviation; constant ones above the wcet are cut off there.

mod attributes;
mod chains;
mod document;
mod execution;
mod export;
mod import;
mod schedulers;
mod task;
mod writer;

pub use export::export;
pub use import::import;
