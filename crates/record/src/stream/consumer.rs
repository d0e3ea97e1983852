//! Following a stream: from the process that writes it or from another one.
//!
//! A [`Consumer`] has a bit in the stream's switches (see [`talea_ring::control`]), a cursor in each ring, and a filter
//! that leaves out what only others asked for. Another process maps the control pages to write there and everything
//! else to read only. All rings a stream will ever have are in the file from its beginning, so threads that appear
//! later are followed like the others.
//!
//! **Exactness.** What is chosen holds from the records on that are written after [`ConsumerSlot::select`] has returned, and
//! not for records that were written before it was called; in between either may be the case.

use crate::directory::{Directory, DirectoryError};
use crate::layout::Header;
use crate::live::LiveFile;
use crate::live::process::{Liveness, Owner, is_dead};
use crate::mapping::Mapping;
use crate::passive::{self, Reading, words_of};
use crate::read::control_pages;
use crate::ring::{DrawingMemory, RingFile, RingReader, StreamDrawer, live_readers, open_readers};
use crate::selection::{Choices, EventFilter, RingFilter};
use crate::selection::{Later, Resolved, Selection, SelectionError};
use crate::{Merge, Sink, TraceError, TraceFile};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use talea_ring::control::{Bit, Control, OPERATOR};
use talea_ring::region::Region;
use talea_time::Instant;
use thiserror::Error;

/// Where a consumer begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With what is written from now on.
    Now,
    /// With the oldest records that the rings still hold.
    Oldest,
}

/// Why a stream cannot be followed.
#[derive(Debug, Error)]
pub enum AttachError {
    /// The file cannot be read as a trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The file cannot be opened for switching.
    #[error(
        "it cannot be opened for switching: {0}; a stream can be followed by the user whose process writes it"
    )]
    Control(io::Error),
    /// The file is a log, which nobody writes any more.
    #[error("this is a log of a run, not a stream; read it with `talea trace show`")]
    NotAStream,
    /// All slots are taken.
    #[error(
        "the stream has {} consumers, as many as it can have; end one of them",
        talea_ring::control::CONSUMERS
    )]
    Full,
    /// The selection names what is not there.
    #[error(transparent)]
    Selection(#[from] SelectionError),
    /// The directory is damaged.
    #[error("the directory of the stream is damaged: {0}")]
    Directory(#[from] DirectoryError),
}

/// The control pages and directory of a stream, as a process sees them that may switch.
#[derive(Debug)]
pub(crate) struct ControlPages {
    control: Arc<Mapping>,
    control_bytes: Range<u64>,
    content: Arc<Mapping>,
    directory_bytes: Range<u64>,
}

impl ControlPages {
    pub fn of_live(live: &LiveFile) -> Self {
        ControlPages {
            control: Arc::clone(&live.mapping),
            control_bytes: live.regions().control.clone(),
            content: Arc::clone(&live.mapping),
            directory_bytes: live.regions().directory.clone(),
        }
    }

    /// Of an opened stream.
    pub fn open(path: &Path, header: &Header, content: &Arc<Mapping>) -> Result<Self, AttachError> {
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(AttachError::Control)?;
        Self::of_file(&file, header, content).map_err(AttachError::Control)
    }

    fn of_file(file: &File, header: &Header, content: &Arc<Mapping>) -> io::Result<Self> {
        let bytes = header.regions.control.clone();
        let control = Arc::new(Mapping::writable_part(file, bytes.clone())?);
        Ok(ControlPages {
            control,
            control_bytes: 0..bytes.end - bytes.start,
            content: Arc::clone(content),
            directory_bytes: header.regions.directory.clone(),
        })
    }

    pub fn control(&self) -> Control<'_, AtomicU64> {
        Control::new(self.control.part(self.control_bytes.clone()))
    }

    pub fn region(&self) -> Region<'_, AtomicU64> {
        Region::new(self.content.part(self.directory_bytes.clone()))
    }

    /// Chooses for `bit`, and gives what was chosen to `announce` before anything is switched on, and again after
    /// everything is.
    pub fn choose(
        &self,
        bit: Bit,
        selection: &Selection,
        directory: &mut Directory,
        mut announce: impl FnMut(&Directory, &Resolved),
    ) -> Result<(), AttachError> {
        directory.refresh(&self.region())?;
        let resolved = selection.resolve(directory)?;
        announce(directory, &resolved);
        self.control().apply(bit, &resolved.switches);
        announce(directory, &resolved);
        Ok(())
    }
}

/// Where a consumer reads and switches.
#[derive(Debug)]
pub(crate) struct Source {
    pages: ControlPages,
    readers: Vec<RingReader>,
    /// The same rings, for their positions.
    places: Vec<RingReader>,
}

impl Source {
    pub fn of_live(live: &Arc<LiveFile>) -> Self {
        let readers = || live_readers(live);
        Source { pages: ControlPages::of_live(live), readers: readers(), places: readers() }
    }

    pub fn open(path: &Path, header: &Header, content: &Arc<Mapping>) -> Result<Self, AttachError> {
        let pages = ControlPages::open(path, header, content)?;
        let readers = || open_readers(content, header);
        Ok(Source { pages, readers: readers(), places: readers() })
    }
}

/// A consumer's place in a stream: what it wants. Dropping it switches off what nobody else wants.
#[derive(Debug)]
pub struct ConsumerSlot {
    pages: ControlPages,
    bit: Bit,
    /// This process; another one that was forked off does not own the slot.
    pid: u32,
    directory: Directory,
    choices: Arc<Choices>,
    chosen: Resolved,
    /// For the rings' positions; these are never read from.
    rings: Vec<RingReader>,
}

impl ConsumerSlot {
    /// Whether somebody has made the stream's file shorter: what is read from now on means nothing.
    pub fn is_cut(&self) -> bool {
        self.pages.control.is_cut() || self.pages.content.is_cut()
    }

    /// Chooses anew, while the stream goes on.
    ///
    /// # Errors
    /// If the selection names what is not there, or the directory is damaged; the old choice holds then.
    pub fn select(&mut self, selection: &Selection) -> Result<(), AttachError> {
        let before = EventFilter::new(&self.directory, &self.chosen.switches, self.chosen.later);
        let (rings, choices) = (&self.rings, &self.choices);
        let positions = || rings.iter().map(RingReader::written).collect();
        let mut passing = Some(before);
        let mut chosen = None;
        self.pages.choose(self.bit, selection, &mut self.directory, |directory, resolved| {
            let new = EventFilter::new(directory, &resolved.switches, resolved.later);
            match passing.take() {
                Some(old) => choices.push(positions(), old.or(&new)),
                None => choices.push(positions(), new),
            }
            chosen = Some(resolved.clone());
        })?;
        self.chosen = chosen.expect("a choice was announced");
        Ok(())
    }

    /// Whether the stream goes on: it has not ended, and its process is there. What was written before it ended can
    /// still be read afterwards.
    pub fn liveness(&self) -> Liveness {
        let control = self.pages.control();
        match control.has_ended() || is_dead(control.writer()) {
            true => Liveness::Dead,
            false => Liveness::Alive,
        }
    }

    /// The process that was to end the stream and has not, because it is gone.
    pub fn gone(&self) -> Option<u32> {
        let control = self.pages.control();
        // It may end the stream and be gone between two looks.
        let is_gone = is_dead(control.writer()) && !control.has_ended();
        Owner::from_word(control.writer()).filter(|_| is_gone).map(Owner::pid)
    }

    /// The recorder that the process was told of follows the stream now, and has switched on what it wants.
    pub fn attend(&self) {
        self.pages.control().attend();
    }

    /// The recorder has chosen by the directory as [`Self::directory`] last showed it; or, with `later` being
    /// [`Later::Wanted`], what is registered from now on needs no choice.
    pub fn note_choice(&self, later: Later) {
        let bytes = match later {
            Later::Wanted => u64::MAX,
            Later::Unwanted => self.directory.used() as u64,
        };
        self.pages.control().choose_by(bytes);
    }

    /// Events that found no ring.
    pub fn unringed(&self) -> u64 {
        self.pages.control().unringed()
    }

    /// The instant of the latest record in any of its rings.
    pub fn latest(&self) -> Option<Instant> {
        self.rings.iter().filter_map(RingReader::latest).max()
    }

    /// The instant from which arrivals of the run count; `None` until its process knows it.
    pub fn run_start(&self) -> Option<Instant> {
        self.pages.control().run_start().map(Instant::from_nanos)
    }

    /// The families there are now.
    ///
    /// # Errors
    /// If the directory is damaged.
    pub fn directory(&mut self) -> Result<&Directory, DirectoryError> {
        self.directory.refresh(&self.pages.region())?;
        Ok(&self.directory)
    }
}

impl Drop for ConsumerSlot {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            self.pages.control().release(self.bit);
        }
    }
}

/// Follows a stream.
#[derive(Debug)]
pub struct Consumer {
    slot: ConsumerSlot,
    readers: Merge,
}

impl Consumer {
    pub(crate) fn new(
        source: Source,
        name: &str,
        selection: &Selection,
        from: Start,
    ) -> Result<Self, AttachError> {
        let (slot, readers) = attach(source, name, selection, from)?;
        Ok(Consumer { slot, readers: Merge::new(readers) })
    }

    /// The same consumer, which sees a THREAD record before the first record of each thread, whether or not it has asked for them. To be
    /// said before anything is read.
    #[must_use]
    pub fn announcing(self) -> Self {
        let readers = self.readers.into_readers().into_iter().map(RingReader::announcing);
        Consumer { readers: Merge::new(readers.collect()), ..self }
    }

    /// Chooses anew, while the stream goes on.
    ///
    /// # Errors
    /// As [`ConsumerSlot::select`].
    pub fn select(&mut self, selection: &Selection) -> Result<(), AttachError> {
        self.slot.select(selection)
    }

    /// The families there are now.
    ///
    /// # Errors
    /// If the directory is damaged.
    pub fn directory(&mut self) -> Result<&Directory, DirectoryError> {
        self.slot.directory()
    }

    /// As [`ConsumerSlot::liveness`].
    pub fn liveness(&self) -> Liveness {
        self.slot.liveness()
    }

    /// As [`ConsumerSlot::is_cut`].
    pub fn is_cut(&self) -> bool {
        self.slot.is_cut()
    }

    /// Delivers what was written before `horizon`, in order of time; see [`Merge::poll`].
    pub fn poll(&mut self, horizon: Instant, sink: &mut impl Sink) -> u64 {
        self.readers.poll(horizon, sink)
    }

    /// Delivers everything there is; see [`Merge::drain`].
    pub fn drain(&mut self, sink: &mut impl Sink) -> u64 {
        self.readers.drain(sink)
    }

    /// Records that were overwritten before this consumer came to them, wanted or not. Each gap is in the stream, too,
    /// as a [`crate::Event::LOST`].
    pub fn lost(&self) -> u64 {
        self.readers.lost()
    }

    /// The slot and the readers apart, to merge the rings of several streams. The readers see what the slot chooses, while
    /// it is there.
    pub fn into_parts(self) -> (ConsumerSlot, Vec<RingReader>) {
        (self.slot, self.readers.into_readers())
    }

    /// As [`Self::into_parts`], with readers of what a [`StreamDrawer`] copies out of the rings, and the drawer. It is to make no
    /// pass any more when the slot has been dropped.
    pub fn into_drawn(self, memory: &DrawingMemory) -> (ConsumerSlot, StreamDrawer, Vec<RingReader>) {
        let (slot, readers) = self.into_parts();
        let pages = (&slot.pages.control, &slot.pages.control_bytes);
        let (drawer, readers) = StreamDrawer::new(readers, pages, slot.bit, memory);
        (slot, drawer, readers)
    }
}

fn attach(
    source: Source,
    name: &str,
    selection: &Selection,
    from: Start,
) -> Result<(ConsumerSlot, Vec<RingReader>), AttachError> {
    let Source { pages, readers: rings, places } = source;
    let bit = pages.control().claim(Owner::current().word(), name, is_dead).ok_or(AttachError::Full)?;
    let mut slot = ConsumerSlot {
        directory: Directory::default(),
        choices: Choices::new(),
        chosen: Resolved { switches: Default::default(), later: Later::Unwanted },
        rings: places,
        pid: std::process::id(),
        pages,
        bit,
    };
    let begin = |ring: RingReader| match from {
        Start::Now => {
            let written = ring.written();
            ring.starting_at(written)
        }
        Start::Oldest => ring.starting_at_oldest(),
    };
    // The cursors stand before anything is switched on, so that nothing of it is missed.
    let readers =
        rings.into_iter().map(|ring| begin(ring).filtered(RingFilter::new(&slot.choices))).collect();
    let mut chosen = None;
    slot.pages
        .choose(slot.bit, selection, &mut slot.directory, |_, resolved| chosen = Some(resolved.clone()))?;
    slot.chosen = chosen.expect("a choice was announced");
    // The first choice holds for what the rings hold already, too.
    let filter = EventFilter::new(&slot.directory, &slot.chosen.switches, slot.chosen.later);
    slot.choices.push(vec![0; slot.rings.len()], filter);
    Ok((slot, readers))
}

impl TraceFile {
    /// Opens a stream and follows it as a consumer called `name`, who sees what `selection` chooses.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn attach(
        path: &Path,
        name: &str,
        selection: &Selection,
        from: Start,
    ) -> Result<Consumer, AttachError> {
        Consumer::new(open(path)?, name, selection, from)
    }
}

fn open(path: &Path) -> Result<Source, AttachError> {
    let trace = TraceFile::open(path)?;
    let content = trace.mapping().ok_or(AttachError::NotAStream)?;
    Source::open(path, trace.header(), content)
}

/// Whether the process that publishes the stream at `path` waits for this one to follow it, and the stream can be opened.
pub fn waits_for_this_process(path: &Path) -> bool {
    control_pages(path).is_ok_and(|pages| {
        !pages.is_empty()
            && Control::new(&pages).announced() == Owner::current().word()
            && TraceFile::open(path).is_ok()
    })
}

/// Lets the process that publishes the stream at `path` go on, should it wait for a recorder: this one will not follow it.
pub fn attend(path: &Path) {
    // What cannot be opened waits for nobody any longer than it has to.
    if let Ok(operator) = Operator::open(path) {
        operator.pages.control().attend();
    }
}

/// Whether to switch on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// What is chosen is written from now on, whether or not anybody follows.
    On,
    /// What is chosen is no longer written, unless a consumer wants it.
    Off,
}

/// Switches events of a stream from outside, without following it.
#[derive(Debug)]
pub struct Operator {
    pages: ControlPages,
    /// The passive area, writable.
    area: Mapping,
    directory: Directory,
}

impl Operator {
    /// Opens the stream at `path` for switching.
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn open(path: &Path) -> Result<Self, AttachError> {
        let trace = TraceFile::open(path)?;
        let content = trace.mapping().ok_or(AttachError::NotAStream)?;
        let pages = ControlPages::open(path, trace.header(), content)?;
        let file = OpenOptions::new().read(true).write(true).open(path).map_err(AttachError::Control)?;
        let area = Mapping::writable_part(&file, trace.header().regions.passive.clone());
        Ok(Operator { pages, area: area.map_err(AttachError::Control)?, directory: Directory::default() })
    }

    /// Switches what `selection` chooses on or off. What consumers want stays on.
    ///
    /// # Errors
    /// If the selection names what is not there; nothing is switched then.
    pub fn switch(&mut self, selection: &Selection, switching: Switching) -> Result<(), AttachError> {
        let control = self.pages.control();
        control.reap(Owner::current().word(), is_dead);
        self.directory.refresh(&self.pages.region())?;
        let chosen = selection.resolve(&self.directory)?;
        match switching {
            Switching::On => control.switch_on(OPERATOR, &chosen.switches),
            Switching::Off => control.switch_off(OPERATOR, &chosen.switches),
        }
        Ok(())
    }

    /// Reads the passive entity `name`, as `family.name`, and begins its counts anew. What is added meanwhile is in
    /// this reading or the next. An object is only read.
    ///
    /// # Errors
    /// If there is none of that name, or the directory is damaged.
    pub fn take(&mut self, name: &str) -> Result<Reading, AttachError> {
        self.directory.refresh(&self.pages.region())?;
        let entry = self.directory.passive(name).map_err(TraceError::from)?;
        Ok(passive::take(entry, &self.area.words()[words_of(entry)]))
    }

    /// What the operator has switched on.
    ///
    /// # Errors
    /// If the directory is damaged.
    pub fn switched_on(&mut self) -> Result<Vec<String>, DirectoryError> {
        self.directory.refresh(&self.pages.region())?;
        let wanted = self.pages.control().wanted(OPERATOR);
        let on = self.directory.entities().filter(|(_, _, switch)| wanted.contains(*switch));
        Ok(on.map(|(family, name, _)| format!("{family}.{name}")).collect())
    }
}

impl RingFile {
    /// Follows the rings as a consumer called `name`, who sees what `selection` chooses.
    ///
    /// # Errors
    /// If the selection names what is not there or there are too many consumers.
    pub fn attach(&self, name: &str, selection: &Selection, from: Start) -> Result<Consumer, AttachError> {
        Consumer::new(Source::of_live(self.live()), name, selection, from)
    }
}
