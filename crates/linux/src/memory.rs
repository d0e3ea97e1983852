//! Memory that is there when it is needed: locked, so that it is never paged out, and touched
//! beforehand, so that no page fault interrupts a real-time thread.

use libc::{c_int, c_void};
use rustix::io::Errno;
use rustix::mm::{MlockAllFlags, mlock, mlockall, munlockall};
use rustix::process::{Resource, getrlimit};
use std::hint::black_box;
use std::ops::Range;
use thiserror::Error;

/// Why the memory of the process could not be locked. Nothing is locked then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LockError {
    /// The process may lock no, or not enough, memory.
    #[error(
        "locking memory was refused: RLIMIT_MEMLOCK is {limit} and CAP_IPC_LOCK is missing; raise it \
         (`ulimit -l unlimited`, systemd LimitMEMLOCK=infinity, or \"@realtime - memlock unlimited\" in \
         /etc/security/limits.conf)"
    )]
    Limit {
        /// The limit in force, in words.
        limit: String,
    },
    /// The kernel refused for another reason.
    #[error("the kernel refused to lock memory: {0}")]
    Os(Errno),
}

/// Locks everything the process has mapped and will map, and keeps freed heap in the process, so
/// that memory once touched stays.
///
/// All of it is populated at once, except the tables that only unwinding reads, after a panic: an eighth of a program, which is
/// locked as it is read.
///
/// Mapping stays possible afterwards, but each new mapping is populated at once and counts against
/// the limit: create threads with the stack they need and not more.
///
/// # Errors
/// See [`LockError`].
pub fn lock_all() -> Result<(), LockError> {
    let all = |flags| {
        mlockall(flags).map_err(|errno| match errno {
            Errno::PERM | Errno::NOMEM | Errno::AGAIN => LockError::Limit { limit: memlock_limit() },
            other => LockError::Os(other),
        })
    };
    all(MlockAllFlags::CURRENT | MlockAllFlags::ONFAULT)?;
    populate()?;
    // This concerns what is mapped from now on, and leaves the rest as it is.
    all(MlockAllFlags::FUTURE)?;
    keep_heap();
    Ok(())
}

/// Populates what is mapped, unwinding tables apart.
fn populate() -> Result<(), LockError> {
    let tables = unwinding_tables();
    let maps = std::fs::read_to_string("/proc/self/maps")
        .map_err(|error| LockError::Os(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    for mapped in maps.lines().filter_map(accessible) {
        let mut start = mapped.start;
        for table in tables.iter().filter(|table| mapped.start <= table.start && table.end <= mapped.end) {
            populate_part(start..table.start);
            start = table.end;
        }
        populate_part(start..mapped.end);
    }
    Ok(())
}

/// The addresses of a line of `/proc/self/maps`, if they may be accessed.
fn accessible(line: &str) -> Option<Range<usize>> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let address = |text| usize::from_str_radix(text, 16).ok();
    (rest.starts_with('r')).then_some(address(start)?..address(end)?)
}

/// Populates these pages and locks them. What cannot be populated, such as pages of the kernel's own, stays as it is.
fn populate_part(pages: Range<usize>) {
    if !pages.is_empty() {
        // SAFETY: locking pages changes nothing that a program sees of them, mapped or not.
        let _ = unsafe { mlock(std::ptr::without_provenance_mut(pages.start), pages.len()) };
    }
}

/// Whole pages that hold nothing but unwinding tables, in order: in each object that is loaded, from the index of the tables
/// (`.eh_frame_hdr`) to the end of the segment, where linkers put them behind the constants.
fn unwinding_tables() -> Vec<Range<usize>> {
    unsafe extern "C" fn note(object: *mut libc::dl_phdr_info, _: usize, found: *mut c_void) -> c_int {
        // SAFETY: the loader hands over a description that lives during the call, and what `unwinding_tables` gave it.
        let (object, found) = unsafe { (&*object, &mut *found.cast::<Vec<Range<usize>>>()) };
        // SAFETY: the loader's table has that many headers.
        let headers = unsafe { std::slice::from_raw_parts(object.dlpi_phdr, object.dlpi_phnum.into()) };
        let range = |header: &libc::Elf64_Phdr| {
            let start = (object.dlpi_addr + header.p_vaddr) as usize;
            start..start + header.p_memsz as usize
        };
        let index = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME).map(range);
        let segments = headers
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags == libc::PF_R)
            .map(range);
        if let Some(index) = index {
            let around = segments.filter(|segment| segment.contains(&index.start));
            found.extend(
                around.map(|segment| index.start.next_multiple_of(PAGE)..segment.end.next_multiple_of(PAGE)),
            );
        }
        0
    }
    let mut found: Vec<Range<usize>> = Vec::new();
    // SAFETY: the callback takes its last argument for what it is, and does not unwind.
    unsafe { libc::dl_iterate_phdr(Some(note), (&raw mut found).cast()) };
    found.sort_by_key(|table| table.start);
    found
}

/// Takes back [`lock_all`]; freed heap stays in the process.
///
/// # Errors
/// [`LockError::Os`] where the kernel refuses.
pub fn unlock_all() -> Result<(), LockError> {
    munlockall().map_err(LockError::Os)
}

/// RLIMIT_MEMLOCK in words.
pub fn memlock_limit() -> String {
    match getrlimit(Resource::Memlock).current {
        None => "unlimited".into(),
        Some(bytes) => format!("{} KiB", bytes / 1024),
    }
}

/// Without this the allocator returns the top of the heap, and large blocks always, to the kernel
/// and later faults fresh pages in.
fn keep_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt has no precondition; it takes the allocator's own lock.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, -1);
        libc::mallopt(libc::M_MMAP_MAX, 0);
    }
}

const PAGE: usize = 4096;

/// Touches the next `bytes` (rounded up to pages) below the caller's frame on the calling thread's
/// stack, so that they are mapped.
///
/// # Panics
/// If the stack has less than that and 16 KiB left: growing into the guard page would end the
/// process without a word.
pub fn prefault_stack(bytes: usize) {
    let left = stack_left();
    assert!(bytes.saturating_add(16 * 1024) <= left, "prefaulting {bytes} bytes of a stack with {left} left");
    touch(bytes.div_ceil(PAGE));
}

/// One page a call; the page is written and used after the inner call, so that neither the array
/// nor the recursion can be optimised away.
#[inline(never)]
fn touch(pages: usize) {
    if pages > 0 {
        let mut page = [0u8; PAGE];
        black_box(&mut page);
        touch(pages - 1);
        black_box(&mut page);
    }
}

/// How much of the calling thread's stack lies below the current frame, in bytes.
fn stack_left() -> usize {
    let local = 0u8;
    let here = &raw const *black_box(&local) as usize;
    // SAFETY: `attributes` is written by pthread_getattr_np before anything reads it, its result is
    // checked, and it is destroyed once. The stack address is compared, never dereferenced.
    let lowest = unsafe {
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        let code = libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr());
        assert_eq!(code, 0, "a thread can read its own attributes");
        let (mut lowest, mut size) = (std::ptr::null_mut(), 0);
        let code = libc::pthread_attr_getstack(attributes.as_ptr(), &mut lowest, &mut size);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        assert_eq!(code, 0, "the attributes of a running thread have a stack");
        lowest as usize
    };
    here.saturating_sub(lowest)
}
