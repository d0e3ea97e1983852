//! A ring file as the process sees it that writes it.

pub(crate) mod process;
pub(crate) mod registry;
#[expect(unsafe_code, reason = "words are kept beside the mapping that they are in")]
pub(crate) mod slots;

use crate::definition::THREADS_DEFINED_MAX;
use crate::directory::Entry;
use crate::layout::{Header, LATER_CAPACITY, PAGE_BYTES, Regions, place_at};
use crate::mapping::Mapping;
use crate::mapping::fork::Private;
use crate::metadata::ThreadEntry;
use crate::passive::words_of;
use process::{Liveness, Owner};
use registry::RegisterError;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use talea_ring::control::Control;
use talea_ring::header::Place;
use talea_ring::region::Region;

/// How long a program waits for its recorder.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often it looks.
const LOOK: Duration = Duration::from_micros(200);
/// Looks between two at whether the recorder is there.
const LOOKS_PER_CHECK: u32 = 100;

/// A ring file that this process writes, mapped as a whole.
#[derive(Debug)]
pub(crate) struct LiveFile {
    /// Before the mapping, which it is not to outlive.
    _private: Private,
    pub mapping: Arc<Mapping>,
    /// Among all that the process has published, from 1 on; no number is given twice.
    pub number: u64,
    file: File,
    header: Header,
    /// All rings that the head counts: those asked for by name, then the spare ones.
    pub places: Vec<Place>,
    named: usize,
    /// The later rings that have been used, in their order.
    later: Mutex<Vec<LaterRing>>,
    /// The file with all its later rings, for readers in this process.
    whole: OnceLock<Arc<Mapping>>,
    /// The threads that were defined, in their order.
    threads: Mutex<Vec<ThreadEntry>>,
}

/// A later ring, mapped by itself.
#[derive(Debug)]
struct LaterRing {
    /// Before the mapping, which it is not to outlive.
    _private: Private,
    mapping: Arc<Mapping>,
    /// In that mapping.
    place: Place,
}

/// A ring whose writer nobody else has or will have while it is not closed.
#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    /// The memory that it is in.
    pub mapping: Arc<Mapping>,
    /// Where it is in that memory.
    pub place: Place,
}

impl LiveFile {
    /// A file of this head and these rings, of which the first `named` are promised to writers. It is this process's alone:
    /// one that is forked off has memory of its own in its place.
    ///
    /// # Errors
    /// As [`Private::at_fork`].
    pub fn new(
        mapping: Mapping,
        file: File,
        header: &Header,
        places: Vec<Place>,
        named: usize,
    ) -> io::Result<Self> {
        let private = Private::at_fork(&mapping)?;
        let (mapping, header) = (Arc::new(mapping), header.clone());
        let (later, whole) = (Mutex::default(), OnceLock::new());
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(LiveFile {
            _private: private,
            mapping,
            number,
            file,
            header,
            places,
            named,
            later,
            whole,
            threads: Mutex::default(),
        })
    }

    /// Claims a ring for a thread: a spare one or a later one that nobody has to read any more, or a later one that was never used,
    /// or else any that nobody writes. `None` if all have writers. Allocates, locks and may make system calls.
    pub fn claim(&self) -> Option<Claimed> {
        let finished = self.control().passes_finished();
        let claimed = |mapping: &Arc<Mapping>, place: &Place| {
            place
                .header_in(&**mapping)
                .claim()
                .then(|| Claimed { mapping: Arc::clone(mapping), place: place.clone() })
        };
        let drained = |mapping: &Arc<Mapping>, place: &Place| {
            let is_drained = place.header_in(&**mapping).is_drained(&finished);
            is_drained.then(|| claimed(mapping, place)).flatten()
        };
        let spare = &self.places[self.named..];
        if let Some(claimed) = spare.iter().find_map(|place| drained(&self.mapping, place)) {
            return Some(claimed);
        }
        let mut later = self.later.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claimed) = later.iter().find_map(|ring| drained(&ring.mapping, &ring.place)) {
            return Some(claimed);
        }
        // Where the file system has no room for one more, what is there has to do.
        if later.len() < self.header.later as usize
            && let Ok(ring) = self.open_later(later.len())
        {
            let claimed = claimed(&ring.mapping, &ring.place);
            self.control().add_later_ring();
            later.push(ring);
            return claimed;
        }
        let spare = spare.iter().map(|place| (&self.mapping, place));
        let mut all = spare.chain(later.iter().map(|ring| (&ring.mapping, &ring.place)));
        all.find_map(|(mapping, place)| claimed(mapping, place))
    }

    /// Provides the memory of later ring `number`.
    fn open_later(&self, number: usize) -> io::Result<LaterRing> {
        let bytes = self.header.later_bytes(number);
        reserve(&self.file, bytes.start, bytes.end - bytes.start)?;
        let mapping = Mapping::writable_part(&self.file, bytes.clone())?;
        mapping.prefault(0..bytes.end - bytes.start);
        let private = Private::at_fork(&mapping)?;
        Ok(LaterRing { _private: private, mapping: Arc::new(mapping), place: place_at(0, LATER_CAPACITY) })
    }

    /// The file with its later rings, to be read only, and the head that says what is in it.
    pub fn whole(&self) -> (Arc<Mapping>, Header) {
        let without_later = || (Arc::clone(&self.mapping), Header { later: 0, ..self.header.clone() });
        if self.header.later == 0 {
            return without_later();
        }
        if let Some(whole) = self.whole.get() {
            return (Arc::clone(whole), self.header.clone());
        }
        let bytes = self.header.all_bytes().expect("it was created");
        match Mapping::readable(&self.file, bytes) {
            Ok(mapping) => (Arc::clone(self.whole.get_or_init(|| Arc::new(mapping))), self.header.clone()),
            // Whoever reads sees the rings that threads take first.
            Err(_) => without_later(),
        }
    }

    pub fn control(&self) -> Control<'_, AtomicU64> {
        Control::new(self.mapping.part(self.header.regions.control.clone()))
    }

    pub fn region(&self) -> Region<'_, AtomicU64> {
        Region::new(self.mapping.part(self.header.regions.directory.clone()))
    }

    pub fn regions(&self) -> &Regions {
        &self.header.regions
    }

    /// Provides memory for a family's document and its passive entities, without showing anything.
    pub fn make_room(&self, entry: &Entry, document: &[u8]) -> Result<(), RegisterError> {
        let name = || entry.family.name.clone().into_owned();
        let passive = entry.passive.iter().map(words_of).map(|words| {
            let place = |word: usize| self.header.regions.passive.start + 8 * word as u64;
            place(words.start)..place(words.end)
        });
        self.make_room_for(document).map_err(|error| error.for_family(&name()))?;
        for bytes in passive {
            self.provide(bytes).map_err(|source| RegisterError::Io { name: name(), source })?;
        }
        Ok(())
    }

    /// Provides memory for a document, without showing anything.
    pub fn make_room_for(&self, document: &[u8]) -> Result<(), NoRoom> {
        let region = self.region();
        if document.len() > region.room() {
            return Err(NoRoom::InDirectory);
        }
        let start = self.header.regions.directory.start + region.end() as u64;
        self.provide(start..start + document.len() as u64).map_err(NoRoom::Io)
    }

    fn provide(&self, bytes: Range<u64>) -> io::Result<()> {
        reserve(&self.file, bytes.start, bytes.end - bytes.start)?;
        let page = bytes.start / PAGE_BYTES * PAGE_BYTES;
        self.mapping.prefault(page..bytes.end);
        Ok(())
    }

    /// Waits until `is_done`, if there is a recorder to wait for.
    pub fn wait_for_recorder(&self, is_done: impl Fn(&Control<'_, AtomicU64>) -> bool) {
        let control = self.control();
        let Some(recorder) = Owner::from_word(control.announced()) else { return };
        let began = Instant::now();
        for look in 1u32.. {
            let is_gone = || look.is_multiple_of(LOOKS_PER_CHECK) && recorder.liveness() == Liveness::Dead;
            if is_done(&control) || is_gone() || began.elapsed() > PATIENCE {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether the stream has the thread already, since whenever it was.
    ///
    /// # Errors
    /// [`NoRoom::ForThreads`] if it does not, and has as many as it may have.
    pub fn knows_thread(&self, thread: &ThreadEntry) -> Result<bool, NoRoom> {
        let threads = self.threads();
        let latest = threads.iter().rev().find(|known| known.tid == thread.tid);
        match latest.is_some_and(|known| ThreadEntry { since: known.since, ..thread.clone() } == *known) {
            false if threads.len() == THREADS_DEFINED_MAX => Err(NoRoom::ForThreads),
            known => Ok(known),
        }
    }

    /// The stream has the thread from now on.
    pub fn note_thread(&self, thread: &ThreadEntry) {
        self.threads().push(thread.clone());
    }

    fn threads(&self) -> MutexGuard<'_, Vec<ThreadEntry>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a family for which there is room. Whoever wants everything has its switches on already.
    pub fn enter(&self, document: &[u8]) {
        self.region().append(document);
    }
}

/// Why a document cannot be entered.
#[derive(Debug, thiserror::Error)]
pub enum NoRoom {
    /// The directory is full.
    #[error("the directory of the stream has no room for more definitions")]
    InDirectory,
    /// The directory has all the threads that it may have.
    #[error("the stream has {THREADS_DEFINED_MAX} definitions of threads, and no more are taken")]
    ForThreads,
    /// The file system has no room.
    #[error("cannot enter a definition into the stream: {0}")]
    Io(io::Error),
}

impl NoRoom {
    fn for_family(self, name: &str) -> RegisterError {
        let name = name.to_owned();
        match self {
            NoRoom::InDirectory | NoRoom::ForThreads => RegisterError::Directory(name),
            NoRoom::Io(source) => RegisterError::Io { name, source },
        }
    }
}

/// Reserves the blocks of this part of a file, where its file system can.
fn reserve(file: &File, start: u64, length: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::empty(), start, length) {
        // There the first store to a page of a full disk fails; nothing better is to be had.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}
