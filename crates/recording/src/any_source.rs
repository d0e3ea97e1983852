//! Rings and the kernel's processors, as sources of one merge.

use crate::kernel::KernelSource;
use talea_record::{Record, RecordSource, RingReader};

/// A ring or a processor of the kernel stream, for merging both.
#[derive(Debug)]
pub enum AnySource {
    /// A ring.
    Ring(Box<RingReader>),
    /// What the kernel tells of a processor.
    Kernel(Box<KernelSource>),
}

impl From<RingReader> for AnySource {
    fn from(reader: RingReader) -> Self {
        AnySource::Ring(Box::new(reader))
    }
}

impl RecordSource for AnySource {
    #[inline]
    fn peek(&mut self) -> Option<Record> {
        match self {
            AnySource::Ring(reader) => reader.peek(),
            AnySource::Kernel(source) => source.peek(),
        }
    }
    #[inline]
    fn take(&mut self) -> Option<Record> {
        match self {
            AnySource::Ring(reader) => reader.take(),
            AnySource::Kernel(source) => source.take(),
        }
    }
}

impl From<KernelSource> for AnySource {
    fn from(source: KernelSource) -> Self {
        AnySource::Kernel(Box::new(source))
    }
}
