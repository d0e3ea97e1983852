//! Tables of task parameters: CSV with a row per subtask.
//!
//! The first row names the columns, in any order; only `task`, `period` and `wcet` must be there. Cells are
//! separated by commas, semicolons or tabs, whichever the first row has most of. Lines that begin with `#` and
//! empty rows are skipped.
//!
//! | Column | Cell | If empty |
//! |---|---|---|
//! | `task` | its name, on every row of its subtasks | an error |
//! | `period` | time between arrivals | an error |
//! | `deadline` | end-to-end, from the arrival | the period |
//! | `phase` | arrival of the first job | 0 |
//! | `jitter` | greatest delay of a release | 0 |
//! | `criticality` | 0 to 4, or very-low to very-high | medium |
//! | `importance` | a whole number; larger is more important | 0 |
//! | `overrun` | queue, skip-next or abort | queue |
//! | `subtask` | its name | the name of the task, which then has one row |
//! | `node` | the name of a node | the only one, or `local` |
//! | `cpus` | processor numbers of the node, separated by spaces | 0, or one of its own for each of several nodes |
//! | `wcet` | worst-case execution time | an error |
//! | `exec` | `4ms`, `uniform 1ms 4ms` or `list 4ms 1ms 2ms` | the wcet |
//! | `after` | subtasks of the same task, separated by spaces; `[]` for none | the row before of the same task |
//!
//! Times have a unit (`50ms`), or the first row names one for the whole column: `period_ms`, `period (ms)` or
//! `period [ms]`, with numbers in the cells. The first seven columns after the name describe the task; they may
//! stand on any of its rows, and where they stand on several they must agree.
//!
//! A table says nothing about the system as a whole: strategy, seed and costs get their defaults, and the name
//! of the system is that of the file.

mod cells;
mod columns;
mod export;
mod import;
mod rows;

pub(crate) use columns::looks_like_a_table;
pub use export::export;
pub use import::import;
