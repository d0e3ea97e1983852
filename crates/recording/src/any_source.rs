//! Rings and the kernel's processors, as sources of one merge.

use crate::kernel::{KernelFeed, KernelSource};
use talea_record::{Record, RecordSource, RingReader};

/// A ring or a processor of the kernel stream, for merging both.
#[derive(Debug)]
pub enum AnySource {
    /// A ring.
    Ring(Box<RingReader>),
    /// What the kernel tells of a processor.
    Kernel(Box<KernelSource>),
    /// The same, after another thread has emptied its buffer.
    KernelFeed(Box<KernelFeed>),
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
            AnySource::KernelFeed(feed) => feed.peek(),
        }
    }
    #[inline]
    fn take(&mut self) -> Option<Record> {
        match self {
            AnySource::Ring(reader) => reader.take(),
            AnySource::Kernel(source) => source.take(),
            AnySource::KernelFeed(feed) => feed.take(),
        }
    }
}

impl From<KernelSource> for AnySource {
    fn from(source: KernelSource) -> Self {
        AnySource::Kernel(Box::new(source))
    }
}

impl From<KernelFeed> for AnySource {
    fn from(feed: KernelFeed) -> Self {
        AnySource::KernelFeed(Box::new(feed))
    }
}
