//! Trace records.
mod metadata;
mod record;
pub use metadata::*;
pub use record::*;

/// Whatever takes records as they happen: a ring, a file, the accounting, or several of them.
pub trait Sink {
    /// Takes one record. Records of one writer come in the order of their time.
    fn record(&mut self, record: Record);
}
