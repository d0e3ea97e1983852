//! Traces for other programs.
//!
//! | Room | For |
//! |---|---|
//! | [`csv`], [`parquet`] | tables: spreadsheets, pandas, DuckDB |
//! | [`ctf`] | babeltrace2, Trace Compass |
//! | [`perfetto`] | the Perfetto UI |

pub mod csv;
pub mod ctf;
pub(crate) mod decode;
pub mod parquet;
pub mod perfetto;
mod table;
mod threads;
