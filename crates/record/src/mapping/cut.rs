//! Files that somebody makes shorter while they are mapped.
//!
//! The kernel answers an access beyond the new end with SIGBUS, which ends a process that does not expect it: a program that is traced
//! would die of what was done to its trace. So the first mapping installs a handler. Where the access was to one of our mappings, it puts
//! memory of the process's own in the place of what is gone, all zeros, and marks the mapping as cut: the program goes on, what it writes
//! reaches nobody, and who reads asks for the [mark](Watch::is_cut) and says so. Any other SIGBUS goes to whoever had it before.
//!
//! The handler runs in the middle of anything, so it allocates nothing and takes no lock. It walks a list of [`claims`](super::claims).

use super::claims::{Claim, Claims};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::mem::MaybeUninit;
use std::sync::OnceLock;

static LIST: Claims = Claims::new();

/// Who had the signal before.
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// A mapping that is watched, until this is dropped, which is to be before it is unmapped.
#[derive(Debug)]
pub(super) struct Watch(Claim);

impl Watch {
    /// Watches the mapping of so many bytes at `start`.
    pub fn over(start: *mut u8, length: usize) -> Self {
        static HANDLER: OnceLock<()> = OnceLock::new();
        HANDLER.get_or_init(install);
        Watch(LIST.enter(start, length))
    }

    /// Whether a part of the file was gone when somebody wanted it.
    pub fn is_cut(&self) -> bool {
        self.0.is_marked()
    }
}

fn install() {
    // SAFETY: all zeros are a `sigaction` without flags and an empty mask; the handler has the signature that SA_SIGINFO says, and does
    // only what may be done in a handler. `previous` is written where the call succeeds.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        let mut previous = MaybeUninit::zeroed();
        if libc::sigaction(libc::SIGBUS, &raw const action, previous.as_mut_ptr()) == 0 {
            let _first = PREVIOUS.set(previous.assume_init());
        }
    }
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over the description of the signal; the address is there where the code says that it is of an address.
    let address =
        unsafe { ((*info).si_code == libc::BUS_ADRERR).then(|| (*info).si_addr().expose_provenance()) };
    if !address.is_some_and(mend) {
        pass_on(signal, info, context);
    }
}

/// Whether the address was in one of our mappings, which has memory there now.
fn mend(address: usize) -> bool {
    let page = address & !(crate::layout::PAGE_BYTES as usize - 1);
    for range in LIST.ranges() {
        let end = range.start.saturating_add(range.length);
        if !(range.start..end).contains(&address) {
            continue;
        }
        range.mark();
        let place = std::ptr::with_exposed_provenance_mut(page);
        // SAFETY: this is the rest of a mapping of `Mapping`, which is there until its watch has left the list, and whose words are atomics
        // of which every bit pattern is one.
        let mapped = unsafe {
            let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
            mmap_anonymous(place, end - page, access, flags)
        };
        return mapped.is_ok();
    }
    false
}

/// The signal is none of ours: it goes to whoever had it before, or ends the process.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let handler = PREVIOUS.get().map_or(libc::SIG_DFL, |previous| previous.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // The access is made again when this returns, and ends the process then.
        // SAFETY: all zeros are a `sigaction`, and this one asks for the default.
        unsafe {
            let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
            libc::sigaction(signal, &raw const default, std::ptr::null_mut());
        }
        return;
    }
    let has_info = PREVIOUS.get().is_some_and(|previous| previous.sa_flags & libc::SA_SIGINFO != 0);
    let handler = std::ptr::with_exposed_provenance::<()>(handler);
    // SAFETY: whoever installed it said by the flag which of the two it is.
    unsafe {
        if has_info {
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                std::mem::transmute(handler);
            handler(signal, info, context);
        } else {
            let handler: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
            handler(signal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mapping;
    use crate::layout::PAGE_BYTES;
    use std::fs::File;
    use std::sync::atomic::Ordering;

    #[test]
    fn what_is_gone_reads_as_zeros_and_is_marked() {
        let file: File = tempfile::tempfile().unwrap();
        file.set_len(3 * PAGE_BYTES).unwrap();
        let (writer, reader) = (
            Mapping::writable(&file, 3 * PAGE_BYTES).unwrap(),
            Mapping::readable(&file, 3 * PAGE_BYTES).unwrap(),
        );
        let last = writer.words().len() - 1;
        writer.words()[0].store(7, Ordering::Relaxed);
        writer.words()[last].store(8, Ordering::Relaxed);
        assert_eq!(reader.words()[last].load(Ordering::Relaxed), 8);
        assert!(!writer.is_cut() && !reader.is_cut());
        file.set_len(PAGE_BYTES).unwrap();
        assert_eq!(reader.words()[last].load(Ordering::Relaxed), 0);
        assert_eq!(reader.words()[0].load(Ordering::Relaxed), 7, "what is there stays");
        assert!(reader.is_cut() && !writer.is_cut(), "nobody has noticed it there");
        writer.words()[last].store(9, Ordering::Relaxed);
        assert_eq!(writer.words()[last].load(Ordering::Relaxed), 9);
        assert!(writer.is_cut());
        drop((writer, reader));
        // Their places are free for others, which are whole.
        let other = Mapping::readable(&file, PAGE_BYTES).unwrap();
        assert!(!other.is_cut());
    }
}
