//! Traces for other programs and for people.
//!
//! | Module | For |
//! |---|---|
//! | [`csv`], [`schedule`] | tables: spreadsheets |
//! | `parquet`, with the feature of that name | tables with types: pandas, DuckDB |
//! | [`ctf`] | babeltrace2, Trace Compass |
//! | [`perfetto`] | the Perfetto UI |
//! | [`show`] | people, as lines, and scripts, as JSON |

#![forbid(unsafe_code)]

pub mod csv;
pub mod ctf;
mod decode;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod perfetto;
pub mod schedule;
pub mod show;
mod table;
mod threads;

pub use self::csv::export_csv;
pub use self::ctf::{CtfError, CtfExport, CtfSummary};
#[cfg(feature = "parquet")]
pub use self::parquet::{ParquetError, ParquetExport};
pub use self::perfetto::{PerfettoExport, processes_of_nodes};
pub use self::schedule::ScheduleCsv;
pub use self::show::{Listing, format_record};
pub use self::threads::Writers;
