//! Tables that programs of the kernel and this process share.

use super::BpfError;
use super::call::{Attributes, Command, call, open};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Of `enum bpf_map_type`.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Hash = 1,
    Array = 2,
    Ring = 27,
}

const SHARED_AS_MEMORY: u32 = 1 << 10;

pub(super) fn create(
    kind: Kind,
    (key_bytes, value_bytes): (usize, usize),
    entries: usize,
    flags: u32,
) -> Result<OwnedFd, BpfError> {
    let mut attributes = Attributes::new(48)
        .u32(0, kind as u32)
        .u32(4, key_bytes as u32)
        .u32(8, value_bytes as u32)
        .u32(12, entries as u32)
        .u32(16, flags)
        .bytes(28, b"talea");
    // SAFETY: there are no addresses among the attributes, and the command makes a descriptor.
    unsafe { open(Command::MapCreate, &mut attributes) }.map_err(|errno| BpfError::of("a map", errno))
}

/// Memory of a map.
#[derive(Debug)]
pub(super) struct Mapped {
    address: NonNull<c_void>,
    length: usize,
}

// SAFETY: it is memory, which is read and written by atomics only; the mapping is nobody else's.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    pub fn new(
        map: BorrowedFd<'_>,
        (offset, length): (u64, usize),
        protection: ProtFlags,
    ) -> Result<Self, BpfError> {
        // SAFETY: the kernel chooses where, so nothing is replaced.
        let address =
            unsafe { mmap(std::ptr::null_mut(), length, protection, MapFlags::SHARED, map, offset) };
        let address = address.map_err(|errno| BpfError::of("mapping a map", errno))?;
        let address = NonNull::new(address).ok_or(BpfError::of("mapping a map", Errno::FAULT))?;
        Ok(Mapped { address, length })
    }

    /// The word at this place, which is inside and a multiple of its size.
    pub fn word(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.length, "inside of the map");
        // SAFETY: it is inside of the mapping, which lives as long as the borrow, aligned, and only written by atomics or single
        // instructions of the kernel.
        unsafe { AtomicU64::from_ptr(self.address.as_ptr().cast::<u8>().add(at).cast()) }
    }

    /// The half word at this place, likewise.
    pub fn half(&self, at: usize) -> &AtomicU32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.length, "inside of the map");
        // SAFETY: as above.
        unsafe { AtomicU32::from_ptr(self.address.as_ptr().cast::<u8>().add(at).cast()) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and all that borrowed from it has ended.
        let _unmapped = unsafe { munmap(self.address.as_ptr(), self.length) };
    }
}

/// So many values of so many words, in memory that programs and this process share. Programs find a value by its number.
#[derive(Debug)]
pub struct Array {
    map: OwnedFd,
    memory: Mapped,
    words: usize,
    values: usize,
}

impl Array {
    /// All words are 0.
    ///
    /// # Errors
    /// See [`BpfError`].
    pub fn new(values: usize, words: usize) -> Result<Self, BpfError> {
        let map = create(Kind::Array, (4, words * 8), values, SHARED_AS_MEMORY)?;
        let length = (values * words * 8).next_multiple_of(rustix::param::page_size());
        let memory = Mapped::new(map.as_fd(), (0, length), ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Array { map, memory, words, values })
    }

    /// A word of a value.
    ///
    /// # Panics
    /// There is no such value or word.
    pub fn word(&self, value: usize, word: usize) -> &AtomicU64 {
        assert!(value < self.values && word < self.words, "a word of the array");
        self.memory.word((value * self.words + word) * 8)
    }

    /// How many values there are.
    pub fn values(&self) -> usize {
        self.values
    }
}

impl AsFd for Array {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}

/// A table by numbers of 32 bits whose values are `T`, which is plain words. All room is there from the beginning.
#[derive(Debug)]
pub struct Table<T> {
    map: OwnedFd,
    values: PhantomData<T>,
}

impl<const N: usize> Table<[u64; N]> {
    /// With room for so many.
    ///
    /// # Errors
    /// See [`BpfError`].
    pub fn new(most: usize) -> Result<Self, BpfError> {
        let map = create(Kind::Hash, (4, N * 8), most, 0)?;
        Ok(Table { map, values: PhantomData })
    }

    /// The value of a key.
    pub fn get(&self, key: u32) -> Option<[u64; N]> {
        let mut value = [0_u64; N];
        let mut attributes = self.attributes(&key).address(16, value.as_mut_ptr().cast_const());
        // SAFETY: key and value live during the call and have the sizes of the map's.
        unsafe { call(Command::MapLookup, &mut attributes) }.is_ok().then_some(value)
    }

    /// The key gets this value.
    ///
    /// # Errors
    /// There is no room ([`Errno::TOOBIG`]).
    pub fn insert(&self, key: u32, value: [u64; N]) -> Result<(), Errno> {
        let mut attributes = self.attributes(&key).address(16, value.as_ptr());
        // SAFETY: key and value live during the call and have the sizes of the map's.
        unsafe { call(Command::MapUpdate, &mut attributes) }.map(drop)
    }

    /// The key has no value any more.
    pub fn remove(&self, key: u32) {
        // SAFETY: the key lives during the call and has the size of the map's.
        let _was_there = unsafe { call(Command::MapDelete, &mut self.attributes(&key)) };
    }

    fn attributes(&self, key: &u32) -> Attributes {
        Attributes::new(32).descriptor(0, self.map.as_fd()).address(8, std::ptr::from_ref(key))
    }
}

impl<T> AsFd for Table<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.map.as_fd()
    }
}
