//! Traces for other programs.
//!
//! | Room | For |
//! |---|---|
//! | [`csv`] | tables |
//! | [`perfetto`] | the Perfetto UI |

pub mod csv;
pub mod perfetto;
