//! Recording from outside: what several processes and the kernel tell, as one log.
//!
//! A [`Recording`] follows streams that processes publish and the kernel's events, merges them on their common clock
//! and writes a log like any other. It can begin before there is anything to follow: what it records until it knows
//! the tables of the run waits in memory, at most [`PENDING_MAX`] records and [`PENDING_FOR`] long.
//!
//! ```text
//!             older than DRAFT_AFTER               tables known, or waited for long enough
//!  waiting  -------------------------->  draft  -------------------------------------------->  log
//!           --------------------------------------------------------------------------------->
//! ```
//! **A recorder that is killed** leaves what it had written: each poll writes out what has settled, so that the latest
//! records, some [`SETTLING`] and the time between two polls, are missing. What waits for tables is written as a draft
//! without them, which is replaced in one step when they come, so that no more than [`DRAFT_AFTER`] is missing there.
//!
//! The log says which events it was to have ([`talea_record::Metadata::recorded`]), so that nobody takes what was not asked for
//! as what did not happen.
//!
//! Whatever is asked for, the log says of each ring whose thread has it: when the recorder begins to follow the stream
//! and when a thread takes a ring later. It has the marks of the run, too ([`MARKS`]), and in its head the instant that
//! arrivals count from, which the stream tells even where its mark was written before anybody followed: without it no
//! record would say when anything happened within the run.
//!
//! A program that is killed cannot say that its run has ended. The recorder sees that the process is gone and says it in
//! its place, behind everything that the process wrote ([`RunOutcome::CutOff`](talea_record::RunOutcome::CutOff)).
//!
//! Families that programs register are numbered by each process on its own, so the same number can mean different
//! families in two streams. In the log each family has one number, and the recording translates.

mod drawing;
mod error;
mod output;
mod source;

use crate::any_source::AnySource;
use crate::kernel::{KernelControl, KernelSource, KernelTotals};
use drawing::Drawing;
pub use error::RecordingError;
use output::Output;
use source::{Families, FamilyNumbers, SharedWriters, TranslatedSource};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use talea_record::event::{Lost, Thread};
use talea_record::merge::Merge;
use talea_record::namespace::NameSpaceError;
use talea_record::ring::DrawingMemory;
use talea_record::stream::clock;
use talea_record::stream::{ConsumerSlot, Directory, Later, Liveness, Selection, Start, UnknownName};
use talea_record::{AskedEvents, Event, LossCause, Record, Sink, ThreadRole, TraceFile};
use talea_time::{Duration, Instant};

/// Records that wait in memory while the tables of the run are not known.
pub const PENDING_MAX: usize = 1 << 20;
/// How long records wait there.
pub const PENDING_FOR: Duration = Duration::from_secs(10);
/// How old what waits may become before a draft of the log is written.
pub const DRAFT_AFTER: Duration = Duration::from_millis(500);
/// A record younger than this may be preceded by one that is not written yet.
pub const SETTLING: Duration = Duration::from_millis(50);

/// Recorded of every stream, asked for or not: the times of everything else are counted from one and up to the other.
pub const MARKS: [Event; 2] = [Event::RUN_START, Event::RUN_END];

/// What a recording holds at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Records in the log.
    pub records: u64,
    /// Of these, the records of programs that nobody asked for: whose a ring is, and the [`MARKS`] of the run.
    pub unasked: u64,
    /// Records of programs that were lost, by why.
    pub lost: BTreeMap<LossCause, u64>,
    /// Records that came too late to be put in order as they came. Whoever reads the log has them in order.
    pub late: u64,
    /// Nodes whose runs were cut off: their processes were gone before they had ended them.
    pub cut_off: u64,
    /// What the kernel told, if it was asked.
    pub kernel: Option<KernelTotals>,
}

impl Recorded {
    /// Records of programs and of the kernel that were lost.
    pub fn lost_in_all(&self) -> u64 {
        let kernel = self.kernel.as_ref().map_or(0, KernelTotals::lost_in_all);
        self.lost.values().sum::<u64>().saturating_add(kernel)
    }
}

/// A recording under way.
#[derive(Debug)]
pub struct Recording {
    /// Before the streams, whose slots it uses.
    drawing: Drawing,
    memory: DrawingMemory,
    writers: SharedWriters,
    merge: Merge<TranslatedSource>,
    streams: Vec<Followed>,
    kernel: Option<KernelControl>,
    families: Families,
    output: Output,
    began: Instant,
    /// Records that say whose processes there are.
    counted_in: u64,
}

/// A stream that is followed.
#[derive(Debug)]
struct Followed {
    path: PathBuf,
    slot: ConsumerSlot,
    numbers: Rc<RefCell<FamilyNumbers>>,
    /// Families of its directory that have numbers.
    known: usize,
    choice: Choice,
    /// Place of its first ring among the sources.
    place: usize,
    process: ProcessState,
    /// Events without a ring that the log tells of.
    unringed: u64,
}

/// How a recording is made.
pub struct RecordingOptions {
    /// Bytes of memory for what has been taken out of rings and buffers and not yet been written.
    pub memory: u64,
    /// What the thread that empties rings and buffers does first, such as giving itself a priority.
    pub prepare: Box<dyn FnOnce() + Send>,
}

impl RecordingOptions {
    /// What is enough for some seconds of some million records.
    pub const MEMORY: u64 = 1 << 30;
}

impl Default for RecordingOptions {
    fn default() -> Self {
        RecordingOptions { memory: Self::MEMORY, prepare: Box::new(|| ()) }
    }
}

/// Whether the process of a stream was seen to be gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProcessState {
    Alive,
    Gone,
}

/// What is recorded of a stream.
#[derive(Clone, Debug)]
enum Choice {
    /// What was chosen when it was attached to.
    Fixed,
    /// This, as far as there are families for it.
    Growing { selection: Selection, unknown: Vec<UnknownName> },
}

impl Followed {
    /// Chooses what was asked for and has been registered since.
    fn choose_anew(&mut self) -> Result<(), RecordingError> {
        let Choice::Growing { selection, unknown } = &mut self.choice else { return Ok(()) };
        let failed = |source| RecordingError::Attach { path: self.path.clone(), source };
        let directory = self.slot.directory().map_err(|error| failed(error.into()))?;
        let known;
        (known, *unknown) = selection.known_in(directory);
        self.slot.select(&known).map_err(failed)?;
        self.note_choice();
        Ok(())
    }

    /// Lets the program go on that waits until its families have been chosen by.
    fn note_choice(&self) {
        let later = match &self.choice {
            Choice::Growing { unknown, .. } if !unknown.is_empty() => Later::Unwanted,
            // What comes later is wanted as it is, or was not asked for.
            Choice::Growing { .. } | Choice::Fixed => Later::Wanted,
        };
        self.slot.note_choice(later);
    }
}

impl Recording {
    /// A recording into `path` of something called `name`. The file is created when it is known what is recorded, at
    /// the latest at the end.
    ///
    /// # Errors
    /// If its thread cannot be created.
    pub fn new(path: &Path, name: &str, options: RecordingOptions) -> std::io::Result<Self> {
        let output = Output::new(path, name);
        let (streams, families) = (Vec::new(), Families::default());
        let memory = DrawingMemory::new(options.memory);
        Ok(Recording {
            drawing: Drawing::start(memory.clone(), options.prepare)?,
            memory,
            writers: SharedWriters::default(),
            merge: Merge::new(Vec::new()),
            streams,
            kernel: None,
            families,
            output,
            began: clock::now(),
            counted_in: 0,
        })
    }

    /// The process with this number serves the program that is recorded, whether or not it tells anything itself: what the kernel
    /// tells of its threads is not of other programs.
    pub fn count_in(&mut self, process: u32) {
        let (lane, role) = (None, ThreadRole::Companion.into());
        let thread = Thread { tid: process, pid: process, node: 0, lane, role };
        self.counted_in += 1;
        // Before everything else that there is to be of it.
        self.output.record(thread.at(self.began, Record::NO_CPU));
    }

    /// Removes what a killed recorder into `path` may have left beside it. Only for who knows that no other one is at work.
    pub fn remove_left_behind(path: &Path) {
        // What is not there, or cannot be removed, is replaced when its place is needed.
        let _ = std::fs::remove_file(output::draft_of(path));
    }

    /// Follows the stream at `path`, as a consumer that wants what `selection` chooses. `start` says whether what the
    /// rings hold already belongs to it.
    ///
    /// # Errors
    /// If the stream cannot be followed, does not have what is chosen, or is of another system; the recording goes on
    /// without it.
    pub fn follow(&mut self, path: &Path, selection: &Selection, start: Start) -> Result<(), RecordingError> {
        self.begin_to_follow(path, selection, start, |selection, _| (selection, Choice::Fixed))
    }

    /// As [`Self::follow`], also where the stream has only a part of what is chosen: the rest is recorded from when its
    /// families are registered on and a [poll](Self::poll) has seen that. [`Self::unknown`] has what never came.
    ///
    /// # Errors
    /// As [`Self::follow`], but for names that are not there.
    pub fn follow_as_it_grows(
        &mut self,
        path: &Path,
        selection: &Selection,
        start: Start,
    ) -> Result<(), RecordingError> {
        self.begin_to_follow(path, selection, start, |selection, directory| {
            let (known, unknown) = selection.known_in(directory);
            (known, Choice::Growing { selection, unknown })
        })
    }

    fn begin_to_follow(
        &mut self,
        path: &Path,
        asked: &Selection,
        start: Start,
        choose: impl FnOnce(Selection, &Directory) -> (Selection, Choice),
    ) -> Result<(), RecordingError> {
        let failed = |source| RecordingError::Attach { path: path.into(), source };
        let trace = TraceFile::open(path).map_err(|error| failed(error.into()))?;
        let metadata = trace.tables().clone();
        self.output.is_to_have(&metadata, path)?;
        let directory = trace.directory().map_err(|error| failed(error.into()))?;
        let (selection, choice) = choose(asked.with(&MARKS), &directory);
        let events = AskedEvents::of(&selection, &directory).map_err(|error| failed(error.into()))?;
        let asked = asked.known_in(&directory).0.events(directory.name_space());
        let asked = asked.map_err(|error| failed(error.into()))?;
        let unasked: Vec<Event> = MARKS.into_iter().filter(|mark| !asked.contains(mark)).collect();
        let name = self.output.consumer_name();
        let consumer = TraceFile::attach(path, &name, &selection, start).map_err(failed)?;
        let (slot, drawer, readers) = consumer.into_drawn(&self.memory);
        self.drawing.add(drawer);
        let numbers = Rc::new(RefCell::new(FamilyNumbers::default()));
        let place = self.merge.sources().len();
        for reader in readers {
            let numbers = Rc::clone(&numbers);
            let reader = reader.announcing().into();
            self.merge.add(TranslatedSource::new(reader, numbers, &self.writers, unasked.clone()));
        }
        let followed = Followed {
            path: path.into(),
            slot,
            numbers,
            known: 0,
            choice,
            place,
            process: ProcessState::Alive,
            unringed: 0,
        };
        followed.note_choice();
        followed.slot.attend();
        self.streams.push(followed);
        self.output.take_tables(metadata);
        self.output.note_events(events);
        self.look_at_directories()
    }

    /// Names that were asked for and that no stream followed [as it grows](Self::follow_as_it_grows) has had so far, with what
    /// the latest of these says about it.
    pub fn unknown(&self) -> Vec<UnknownName> {
        let mut growing = self.streams.iter().rev().filter_map(|stream| match &stream.choice {
            Choice::Fixed => None,
            Choice::Growing { unknown, .. } => Some(unknown),
        });
        let mut missing = growing.next().cloned().unwrap_or_default();
        for unknown in growing {
            missing.retain(|missing| unknown.iter().any(|unknown| unknown.name == missing.name));
        }
        missing
    }

    /// Records what the kernel tells, too.
    ///
    /// # Panics
    /// If it does so already.
    pub fn hear(&mut self, control: KernelControl, sources: Vec<KernelSource>) {
        assert!(self.kernel.replace(control).is_none(), "one kernel stream tells everything");
        let mut drawers = Vec::with_capacity(sources.len());
        for source in sources {
            let (drawer, feed) = source.into_drawn(&self.memory);
            drawers.push(drawer);
            self.merge.add(TranslatedSource::new(feed.into(), Rc::default(), &self.writers, Vec::new()));
        }
        self.drawing.add_kernel(drawers);
    }

    /// The kernel's events, to wait for them.
    pub fn kernel(&self) -> Option<&KernelControl> {
        self.kernel.as_ref()
    }

    /// Whether any stream is followed.
    pub fn follows_any(&self) -> bool {
        !self.streams.is_empty()
    }

    /// Whether any of the streams goes on.
    pub fn any_goes_on(&self) -> bool {
        self.streams.iter().any(|stream| stream.slot.liveness() == Liveness::Alive)
    }

    /// No further stream will be followed, so the log waits for nothing but the beginning of a run that is prepared.
    pub fn expect_no_more(&mut self) {
        self.output.expect_no_tables();
    }

    /// Records what has settled by `now`. To be called every few milliseconds, or what is taken out of the rings fills the memory.
    ///
    /// # Errors
    /// If the directory of a stream is damaged, or the log cannot be created or written.
    pub fn poll(&mut self, now: Instant) -> Result<(), RecordingError> {
        // What settles now is all there, also where the thread that copies was kept from running.
        self.drawing.catch_up();
        let directories = self.look_at_directories();
        self.look_for_cuts()?;
        directories?;
        self.look_for_start();
        self.look_for_the_gone(now);
        self.merge.poll(now - SETTLING, &mut self.output);
        self.look_for_unringed(now - SETTLING);
        self.output.settle(now);
        self.output.result()
    }

    /// Ends the recording: takes what is left and completes the log.
    ///
    /// # Errors
    /// As [`Self::poll`]; the log holds what could be written.
    pub fn finish(mut self) -> Result<Recorded, RecordingError> {
        if let Some(kernel) = &mut self.kernel {
            // What it has told until now is there whether or not it stops.
            let _ = kernel.stop();
        }
        self.drawing.catch_up();
        self.look_at_directories()?;
        self.look_for_start();
        self.look_for_the_gone(clock::now());
        self.merge.drain(&mut self.output);
        // What there was no memory for before has some now.
        self.drawing.catch_up();
        self.merge.drain(&mut self.output);
        self.look_for_unringed(clock::now());
        let mut recorded =
            Recorded { late: self.merge.late(), unasked: self.counted_in, ..Recorded::default() };
        recorded.kernel = self.kernel.as_ref().map(KernelControl::totals);
        let unringed = self.streams.iter().map(|stream| stream.unringed).sum();
        for source in self.merge.sources() {
            recorded.unasked += source.unasked();
            if matches!(source.source, AnySource::Ring(_)) {
                for (cause, lost) in &source.counts.lost {
                    *recorded.lost.entry(*cause).or_default() += lost;
                }
            }
        }
        if unringed > 0 {
            recorded.lost.insert(LossCause::NoRing, unringed);
        }
        recorded.cut_off = self.output.cut_off();
        recorded.records = self.output.finish()?;
        Ok(recorded)
    }

    /// A stream of which somebody takes a part away ends the recording: nobody knows what else of it is true.
    fn look_for_cuts(&self) -> Result<(), RecordingError> {
        match self.streams.iter().find(|stream| stream.slot.is_cut()) {
            Some(stream) => Err(RecordingError::Shortened { path: stream.path.clone() }),
            None => Ok(()),
        }
    }

    /// A stream that was published before its run began gets to know when that is.
    fn look_for_start(&mut self) {
        if let Some(start) = self.streams.iter().find_map(|stream| stream.slot.run_start()) {
            self.output.learn_start(start);
        }
    }

    /// Says how many events found no ring since the last time.
    fn look_for_unringed(&mut self, time: Instant) {
        for stream in &mut self.streams {
            let unringed = stream.slot.unringed();
            let records = unringed - std::mem::replace(&mut stream.unringed, unringed);
            if records > 0 {
                let lost =
                    Lost { records, since: None, ring: Record::NO_RING, cause: LossCause::NoRing.into() };
                self.output.record(lost.at(time, Record::NO_CPU));
            }
        }
    }

    /// Says of the runs of processes that are gone that they have ended, should they not have done so themselves.
    fn look_for_the_gone(&mut self, now: Instant) {
        for stream in self.streams.iter_mut().filter(|stream| stream.process == ProcessState::Alive) {
            let Some(pid) = stream.slot.gone() else { continue };
            stream.process = ProcessState::Gone;
            // Everything it wrote is to be there before.
            self.drawing.catch_up();
            // Behind its last record, and not before what has been delivered of others.
            let last = stream.slot.latest().map(|last| last.saturating_add(Duration::from_nanos(1)));
            let time = last.map_or(now - SETTLING, |last| last.max(now - SETTLING));
            let ends = (0..self.output.nodes()).map(|node| output::cut_off(time, node, pid));
            self.merge.source_mut(stream.place).end_marks.extend(ends);
        }
    }

    /// Gives families that have been registered since numbers in the log.
    fn look_at_directories(&mut self) -> Result<(), RecordingError> {
        for stream in &mut self.streams {
            let path = || stream.path.clone();
            let directory = stream
                .slot
                .directory()
                .map_err(|source| RecordingError::Directory { path: path(), source })?;
            let new = &directory.entries()[stream.known..];
            for entry in new.iter().filter(|entry| entry.family.has_records()) {
                let family = &entry.family;
                let error = |source| RecordingError::Family {
                    path: path(),
                    family: family.name.clone().into_owned(),
                    source,
                };
                let taken = || NameSpaceError::Taken {
                    name: family.name.clone().into_owned(),
                    number: family.number,
                };
                let placed = self.families.place(family).ok_or_else(taken).map_err(error)?;
                stream.numbers.borrow_mut().0[usize::from(family.number)] = Some(placed.number);
                self.output.enter(placed).map_err(error)?;
            }
            directory.definitions().iter().for_each(|definition| self.output.define(definition));
            let known = directory.entries().len();
            if known > std::mem::replace(&mut stream.known, known) {
                stream.choose_anew()?;
            }
        }
        Ok(())
    }
}
