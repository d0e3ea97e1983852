//! What the keeper shares with the process for which it starts programs, mapped at the same address in both: all zeroes is what there is before
//! anything has been asked for.

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU32, Ordering};
use talea_linux::signal_safe::Text;

/// Programs that one keeper has at a time.
pub(crate) const PROGRAMS_MAX: usize = 512;
/// Of the path of a cgroup, with its end.
pub(super) const PATH_MAX: usize = 400;
/// What a program is told by arguments and environment, with the tables that point to it.
const TEXT_MAX: usize = 1 << 20;

/// What is asked of the keeper, by a letter each.
pub(super) mod ask {
    /// To start a program.
    pub const START: u8 = b's';
    /// To end the program of one slot.
    pub const END: u8 = b'e';
    /// To end all programs, with whatever they have started.
    pub const END_ALL: u8 = b'a';
}

/// How far a program is: 0 → [`READY`] → [`GO`], or [`FAILED`].
pub(super) const READY: u32 = 1;
pub(super) const GO: u32 = 2;
pub(super) const FAILED: u32 = 3;

/// One program.
pub(super) struct Slot {
    /// Its first process; 0 if there is none.
    pub process: AtomicI32,
    /// The program waits on this word.
    pub word: AtomicU32,
    /// The number under which it has the listener of its filter before it begins; -1 if it has no filter.
    pub listener: AtomicI32,
    /// Why it has no filter, or has not become the program.
    pub errno: AtomicI32,
    /// How it ended, as `wait` tells it.
    pub status: AtomicI32,
    /// 1: it had ended when its end was asked for.
    pub had_ended: AtomicU8,
    /// Its cgroup, ended by 0; empty if it has none.
    pub folder: [AtomicU8; PATH_MAX],
}

impl Slot {
    /// Whether neither a process nor a cgroup is left of its program.
    pub fn is_free(&self) -> bool {
        self.process.load(Ordering::Acquire) == 0 && self.folder[0].load(Ordering::Relaxed) == 0
    }

    pub fn set_folder(&self, path: &[u8]) {
        let bytes = path.iter().chain(&[0]);
        self.folder.iter().zip(bytes).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
    }

    pub fn folder(&self) -> Text<{ PATH_MAX + 32 }> {
        text(&self.folder)
    }
}

/// A path as it is kept here.
pub(super) fn text<const N: usize>(path: &[AtomicU8; PATH_MAX]) -> Text<N> {
    let bytes = path.iter().map(|byte| byte.load(Ordering::Relaxed)).take_while(|byte| *byte != 0);
    bytes.fold(Text::empty(), |text, byte| text.with(&[byte]))
}

/// What is to be started. The pointers point into the region, so they are good in both processes.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub slot: usize,
    pub program: *const libc::c_char,
    pub arguments: *const *const libc::c_char,
    pub environment: *const *const libc::c_char,
    /// Where it starts; null for where the keeper is.
    pub directory: *const libc::c_char,
    /// Bytes of the region's text, from its beginning, in which all of this is.
    pub length: usize,
    /// Whether its calls are to be filtered.
    pub filtered: bool,
}

pub(super) struct Region {
    /// Written by whoever asks, before it asks; read by the keeper before it answers.
    pub request: UnsafeCell<Request>,
    /// The cgroup of version 1 in which programs are, ended by 0.
    pub cpuset: [AtomicU8; PATH_MAX],
    pub slots: [Slot; PROGRAMS_MAX],
    text: UnsafeCell<Aligned>,
}

/// Begins where a pointer may stand.
#[repr(C, align(16))]
struct Aligned([u8; TEXT_MAX]);

impl Region {
    /// Writes texts and a table that points to them. None if there is no room: arguments and environment are longer than the kernel
    /// usually takes, too.
    ///
    /// # Safety
    /// Nobody else writes or reads the text meanwhile.
    pub unsafe fn write(&self, lists: [&[CString]; 2], singles: [Option<&CString>; 2]) -> Option<Written> {
        let base = self.text.get().cast::<u8>();
        let pointers = lists.iter().map(|list| list.len() + 1).sum::<usize>();
        let mut table = base.cast::<*const libc::c_char>();
        let mut at = pointers * size_of::<*const libc::c_char>();
        if at > TEXT_MAX {
            return None;
        }
        let mut put = |text: &CString| {
            let bytes = text.as_bytes_with_nul();
            let place = at;
            at += bytes.len();
            if at > TEXT_MAX {
                return None;
            }
            // SAFETY: it fits, and nobody else uses the text.
            unsafe {
                let to = base.add(place);
                to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                Some(to.cast_const().cast::<libc::c_char>())
            }
        };
        let mut tables = [std::ptr::null(); 2];
        for (list, begin) in lists.into_iter().zip(&mut tables) {
            *begin = table.cast_const();
            for text in list.iter().map(Some).chain([None]) {
                let pointer = match text {
                    Some(text) => put(text)?,
                    None => std::ptr::null(),
                };
                // SAFETY: the table has been left room for at the beginning, which is aligned as the region is.
                unsafe {
                    table.write(pointer);
                    table = table.add(1);
                }
            }
        }
        let mut written = [std::ptr::null(); 2];
        for (single, place) in singles.into_iter().zip(&mut written) {
            if let Some(text) = single {
                *place = put(text)?;
            }
        }
        let [arguments, environment] = tables;
        let [program, directory] = written;
        Some(Written { program, arguments, environment, directory, length: at })
    }

    /// The same request with what it points to in memory of this process alone: the text is that of the next program as soon as this one says
    /// that it waits. None if there is no memory. Async-signal-safe.
    ///
    /// # Safety
    /// Nobody writes the text meanwhile, which is what was written for this request.
    pub unsafe fn with_own_text(&self, request: &Request) -> Option<Request> {
        let (protection, flags) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the kernel's choice, as long as what is copied. Texts and tables lie within that length, and
        // tables end with a null.
        unsafe {
            let own = libc::mmap(std::ptr::null_mut(), request.length, protection, flags, -1, 0);
            if own == libc::MAP_FAILED {
                return None;
            }
            let (own, shared) = (own.cast::<u8>(), self.text.get().cast::<u8>().cast_const());
            own.copy_from_nonoverlapping(shared, request.length);
            let text = |text: *const libc::c_char| match text.is_null() {
                true => text,
                false => own.offset(text.cast::<u8>().offset_from(shared)).cast_const().cast(),
            };
            let table = |table: *const *const libc::c_char| {
                let own = own.offset(table.cast::<u8>().offset_from(shared)).cast::<*const libc::c_char>();
                let mut entry = own;
                while !(*entry).is_null() {
                    *entry = text(*entry);
                    entry = entry.add(1);
                }
                own.cast_const()
            };
            Some(Request {
                program: text(request.program),
                arguments: table(request.arguments),
                environment: table(request.environment),
                directory: text(request.directory),
                ..*request
            })
        }
    }
}

/// Where things have been written.
pub(super) struct Written {
    pub program: *const libc::c_char,
    pub arguments: *const *const libc::c_char,
    pub environment: *const *const libc::c_char,
    pub directory: *const libc::c_char,
    /// How many bytes of the text they take together.
    pub length: usize,
}
