//! What programs of the kernel tell at once: a ring whose descriptor becomes readable.
//!
//! The first page is the reader's (how far it has read), the second the kernel's (how far it has written), then come the bytes, twice
//! in a row, so that nothing is cut at the end. Each entry has eight bytes in front of it: its length, and whether it is still being
//! written or was given up. (`kernel/bpf/ringbuf.c`)

use super::BpfError;
use super::map::{Kind, Mapped, create};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::mm::ProtFlags;
use std::sync::atomic::Ordering;

const BUSY: u32 = 1 << 31;
const GIVEN_UP: u32 = 1 << 30;
const HEADER: usize = 8;

/// Entries of `N` words each.
#[derive(Debug)]
pub struct Ring<const N: usize> {
    map: OwnedFd,
    reader: Mapped,
    writer: Mapped,
    page: usize,
    mask: u64,
}

impl<const N: usize> Ring<N> {
    /// Of so many bytes, a power of two of at least a page.
    ///
    /// # Errors
    /// See [`BpfError`].
    pub fn new(bytes: usize) -> Result<Self, BpfError> {
        let page = rustix::param::page_size();
        let map = create(Kind::Ring, (0, 0), bytes, 0)?;
        let reader = Mapped::new(map.as_fd(), (0, page), ProtFlags::READ | ProtFlags::WRITE)?;
        let writer = Mapped::new(map.as_fd(), (page as u64, page + 2 * bytes), ProtFlags::READ)?;
        Ok(Ring { map, reader, writer, page, mask: bytes as u64 - 1 })
    }

    /// Takes what has been told; one caller at a time. Neither waits, allocates nor makes a system call.
    pub fn drain(&self, mut tell: impl FnMut([u64; N])) {
        let position = self.reader.word(0);
        let mut read = position.load(Ordering::Relaxed);
        // The kernel looks at the position when it has finished an entry, and wakes who had read all before: so the position is told
        // before it is found that there is no more.
        while read < self.writer.word(0).load(Ordering::SeqCst) {
            let at = self.page + (read & self.mask) as usize;
            let length = self.writer.half(at).load(Ordering::Acquire);
            if length & BUSY != 0 {
                break;
            }
            let bytes = (length & !GIVEN_UP) as usize;
            if length & GIVEN_UP == 0 && bytes == N * 8 {
                tell(std::array::from_fn(|word| {
                    self.writer.word(at + HEADER + 8 * word).load(Ordering::Relaxed)
                }));
            }
            read += (HEADER + bytes).next_multiple_of(8) as u64;
            position.store(read, Ordering::SeqCst);
        }
    }
}

impl<const N: usize> AsFd for Ring<N> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}
