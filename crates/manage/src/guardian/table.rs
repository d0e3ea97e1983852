//! What the guardian shares with the process that it guards: all zeroes is the empty table. What is done with an entry is the
//! same in both processes, so all of it is async-signal-safe.

use crate::origin::{Binding, MASK_WORDS, Mask, Origin};
use crate::priorities::Ordinary;
use rustix::io::Errno;
use std::sync::atomic::{AtomicI32, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use talea_linux::cgroup::KILL;
use talea_linux::signal_safe::{Text, numbers_of, remove_folder, stat_field, write_to};

/// Threads that fit the table.
pub const THREADS_MAX: usize = 16_384;
/// Held processes and groups that fit the table.
pub(crate) const HELD_MAX: usize = 128;
/// Programs that fit the table.
pub const PROGRAMS_MAX: usize = 512;
/// Of the path of a cgroup.
pub(super) const PATH_MAX: usize = 400;
/// Of that of a file in one.
const FILE_MAX: usize = PATH_MAX + 32;
/// The field of a `stat` that says when a process began.
const START: usize = 22;

/// The key of an entry that somebody is filling.
const CLAIMED: i32 = i32::MIN;

/// An entry of a table, free while its key is 0.
pub(super) trait Entry {
    /// Written last.
    fn key(&self) -> &AtomicI32;
}

/// Entries of a table, of which those in use are found without a look at all that there is room for: the warden looks for them every few
/// milliseconds, and the room is larger than a processor's caches.
pub(super) struct Entries<E, const ROOM: usize> {
    /// Those from here on never were in use.
    unused_from: AtomicUsize,
    entries: [E; ROOM],
}

impl<E: Entry, const ROOM: usize> Entries<E, ROOM> {
    /// All that were in use so far.
    fn touched(&self) -> &[E] {
        &self.entries[..self.unused_from.load(Ordering::Acquire)]
    }

    /// Fills the entry with this key, or one that is free. False if there is none.
    pub fn fill(&self, key: i32, fill: impl FnOnce(&E)) -> bool {
        let claim = |entry: &E| {
            entry.key().compare_exchange(0, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_ok()
        };
        let known = self.touched().iter().find(|entry| entry.key().load(Ordering::Acquire) == key);
        let entry = known.or_else(|| {
            let position = self.entries.iter().position(claim)?;
            self.unused_from.fetch_max(position + 1, Ordering::AcqRel);
            Some(&self.entries[position])
        });
        let Some(entry) = entry else { return false };
        fill(entry);
        entry.key().store(key, Ordering::Release);
        true
    }

    pub fn clear(&self, key: i32) {
        for entry in self.touched() {
            let _another = entry.key().compare_exchange(key, 0, Ordering::AcqRel, Ordering::Relaxed);
        }
    }

    /// All entries that are in use, with their keys.
    pub fn used(&self) -> impl Iterator<Item = (i32, &E)> {
        self.touched().iter().filter_map(|entry| match entry.key().load(Ordering::Acquire) {
            0 | CLAIMED => None,
            key => Some((key, entry)),
        })
    }
}

/// A thread, and what it had.
pub(super) struct ThreadEntry {
    tid: AtomicI32,
    /// 1: it should have what it had, and will as soon as the kernel lets it.
    owed: AtomicU8,
    policy: AtomicI32,
    mask: [AtomicU64; MASK_WORDS],
}

/// A program, and what its threads had.
pub(super) struct ProgramEntry {
    process: AtomicI32,
    before: [AtomicU64; MASK_WORDS],
    lent: [AtomicU64; MASK_WORDS],
    /// 1 for [`Binding::ToAll`].
    binding: AtomicU8,
    since: AtomicU64,
}

/// The leader of a command's group.
pub(super) struct CommandEntry {
    leader: AtomicI32,
    /// When it began, by which it is told from another that has its number.
    start: AtomicU64,
    /// The cgroup that it was started in, ended by 0; empty if there is none.
    folder: [AtomicU8; PATH_MAX],
}

/// Somebody who may be held.
pub(super) struct HeldEntry {
    /// As [`crate::signal_target::SignalTarget::as_raw`].
    whom: AtomicI32,
    /// The cgroup that it is held in, ended by 0; empty if it is held by a signal.
    folder: [AtomicU8; PATH_MAX],
    /// The cgroup to which its processes go back.
    home: [AtomicU8; PATH_MAX],
}

pub(super) struct Table {
    /// The warden's thread; 0 before there is one, and nothing to give back.
    pub warden: AtomicI32,
    pub threads: Entries<ThreadEntry, THREADS_MAX>,
    pub programs: Entries<ProgramEntry, PROGRAMS_MAX>,
    pub commands: Entries<CommandEntry, PROGRAMS_MAX>,
    pub held: Entries<HeldEntry, HELD_MAX>,
}

impl Entry for ThreadEntry {
    fn key(&self) -> &AtomicI32 {
        &self.tid
    }
}

impl Entry for ProgramEntry {
    fn key(&self) -> &AtomicI32 {
        &self.process
    }
}

impl Entry for CommandEntry {
    fn key(&self) -> &AtomicI32 {
        &self.leader
    }
}

impl Entry for HeldEntry {
    fn key(&self) -> &AtomicI32 {
        &self.whom
    }
}

impl ThreadEntry {
    pub fn owe(&self) {
        self.owed.store(1, Ordering::Relaxed);
    }

    pub fn is_owed(&self) -> bool {
        self.owed.load(Ordering::Relaxed) == 1
    }

    pub fn note(&self, before: Ordinary, mask: Mask) {
        self.owed.store(0, Ordering::Relaxed);
        self.policy.store(before.number(), Ordering::Relaxed);
        store(&self.mask, mask);
    }

    /// Gives everything back.
    ///
    /// # Errors
    /// The thread keeps its priority.
    pub fn restore(&self, tid: i32) -> Result<(), Errno> {
        let restored = Ordinary::from_number(self.policy.load(Ordering::Relaxed)).restore(tid);
        load(&self.mask).give_to(tid);
        restored
    }
}

impl ProgramEntry {
    pub fn note(&self, origin: &Origin) {
        store(&self.before, origin.before);
        store(&self.lent, origin.lent);
        self.binding.store(u8::from(origin.binding == Binding::ToAll), Ordering::Relaxed);
        self.since.store(origin.since, Ordering::Relaxed);
    }

    pub fn origin(&self) -> Origin {
        Origin {
            before: load(&self.before),
            lent: load(&self.lent),
            binding: match self.binding.load(Ordering::Relaxed) {
                0 => Binding::ToOne,
                _ => Binding::ToAll,
            },
            since: self.since.load(Ordering::Relaxed),
        }
    }
}

impl CommandEntry {
    /// The path fits.
    pub fn note(&self, leader: i32, folder: &[u8]) {
        self.start.store(stat_field(leader, START).unwrap_or(0), Ordering::Relaxed);
        let bytes = folder.iter().chain(&[0]);
        self.folder.iter().zip(bytes).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
    }

    /// Kills whatever is in the cgroup. Waits for nobody but those who change cgroups just then.
    pub fn kill_cgroup(&self) {
        let folder = text(&self.folder);
        if !folder.bytes().is_empty() {
            write_to(&folder.with(b"/").with(KILL.as_bytes()), b"1");
        }
    }

    /// Kills the group unless its number is that of another by now: as long as anybody is in it, it is nobody else's. Waits for a leader that is kept
    /// from running in the middle of an exec.
    pub fn kill_group(&self, leader: i32) {
        let start = stat_field(leader, START);
        if start.is_none_or(|start| start == self.start.load(Ordering::Relaxed)) {
            // SAFETY: the call takes numbers.
            unsafe { libc::kill(-leader, libc::SIGKILL) };
        }
    }
}

impl HeldEntry {
    /// False if a path is too long.
    #[must_use]
    pub fn note(&self, paths: Option<(&[u8], &[u8])>) -> bool {
        let (folder, home) = paths.unwrap_or_default();
        if !fits(folder) || !fits(home) {
            return false;
        }
        let store = |to: &[AtomicU8], from: &[u8]| {
            to.iter().zip(from.iter().chain(&[0])).for_each(|(to, from)| to.store(*from, Ordering::Relaxed));
        };
        store(&self.folder, folder);
        store(&self.home, home);
        true
    }

    /// Lets the held processes of this entry go, and back to the cgroup that they came from. True if nothing of it is left.
    pub fn let_go(&self, whom: i32) -> bool {
        let folder = text(&self.folder);
        if folder.bytes().is_empty() {
            // SAFETY: the call takes numbers.
            unsafe { libc::kill(whom, libc::SIGCONT) };
            return true;
        }
        write_to(&text(&self.folder).with(b"/cgroup.freeze"), b"0");
        let home = text(&self.home).with(b"/cgroup.procs");
        numbers_of(&text(&self.folder).with(b"/cgroup.procs"), |process| {
            write_to(&home, Text::<16>::empty().with_number(process).bytes());
        });
        remove_folder(&folder)
    }
}

/// Whether a path can be noted.
pub(super) fn fits(path: &[u8]) -> bool {
    path.len() < PATH_MAX
}

fn text(path: &[AtomicU8; PATH_MAX]) -> Text<FILE_MAX> {
    let bytes = path.iter().map(|byte| byte.load(Ordering::Relaxed)).take_while(|byte| *byte != 0);
    bytes.fold(Text::empty(), |text, byte| text.with(&[byte]))
}

fn store(to: &[AtomicU64; MASK_WORDS], mask: Mask) {
    to.iter().zip(mask.0).for_each(|(to, from)| to.store(from, Ordering::Relaxed));
}

fn load(from: &[AtomicU64; MASK_WORDS]) -> Mask {
    let mut mask = [0_u64; MASK_WORDS];
    mask.iter_mut().zip(from).for_each(|(to, from)| *to = from.load(Ordering::Relaxed));
    Mask(mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Row(AtomicI32);

    impl Entry for Row {
        fn key(&self) -> &AtomicI32 {
            &self.0
        }
    }

    #[test]
    fn whatever_is_in_use_is_found_wherever_it_is() {
        let table = Entries {
            unused_from: AtomicUsize::new(0),
            entries: std::array::from_fn::<Row, 4, _>(|_| Row(AtomicI32::new(0))),
        };
        let keys = || table.used().map(|(key, _)| key).collect::<Vec<i32>>();
        let fill = |key| table.fill(key, |_| ());
        assert!(keys().is_empty());
        assert!([1, 2, 3].map(fill).iter().all(|is_filled| *is_filled));
        table.clear(2);
        table.clear(7);
        assert_eq!(keys(), [1, 3]);
        assert!(fill(3) && keys() == [1, 3], "one that is known is filled in its place");
        assert!(fill(4) && keys() == [1, 4, 3], "one that was given up is filled again");
        assert!(fill(5) && !fill(6), "there is no more room");
        assert_eq!(keys(), [1, 4, 3, 5], "the last one, too");
        // Somebody fills an entry: it is nobody's until its key is there.
        table.clear(5);
        table.fill(8, |_| assert_eq!(keys(), [1, 4, 3]));
        assert_eq!(keys(), [1, 4, 3, 8]);
    }
}
