//! What a trace can tell: which events it has, so that what was not recorded is not taken for what did not happen.
//!
//! A recording notes what it was asked for ([`Metadata::recorded`]). The log of a run itself has everything. Of rings nobody
//! says what they were asked for when, so this goes by what there is: what ended had begun, what began had been released.
//! The kernel's events are told where any of their kind is there.

use crate::directory::{Directory, builtin_switch};
use crate::event::builtin;
use crate::selection::{Selection, SelectionError};
use crate::{Contents, Event, Metadata, Origin};
use serde::Serialize;
use std::collections::BTreeSet;

/// Which events a trace tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedEvents {
    /// The builtin events that it lacks, by number.
    missing: BTreeSet<u16>,
    beginning: Beginning,
}

/// Whether a trace has its run from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Beginning {
    /// It does.
    Recorded,
    /// It began with the run under way.
    UnderWay,
    /// Nobody can say.
    Unknown,
}

/// What dispatching on real threads leaves in every trace that has it.
const OF_DISPATCHING: [Event; 4] = [Event::COST, Event::WAKE, Event::SLEEP, Event::TIMER];
/// More records than this of jobs are not without any of an event that all of them have, even if some were lost.
const FEW: u64 = 64;
/// Told of jobs beside their lives: what guards hold at the end, and how long some of those that are posted execute.
const BESIDE_LIVES: [Event; 2] = [Event::HELD, Event::JOB_WCET];
/// What is recorded unasked: what was lost, whose a ring is, and the bytes of events that were asked for.
const UNASKED: [Event; 3] = [Event::LOST, Event::THREAD, Event::PART];
/// What traces of old do not tell, and are not the worse for it: there was no such event, or there need not be any.
const LATER: [Event; 5] = [Event::MESSAGE_LOST, Event::NODE_LEFT, Event::STEAL, Event::HELD, Event::JOB_WCET];
/// What says who has which processor.
const OF_KERNEL: [Event; 2] = [Event::SWITCH, Event::IRQ_ENTER];

impl RecordedEvents {
    /// What a trace with these `contents` tells.
    pub fn of(metadata: &Metadata, contents: &Contents) -> Self {
        let mut missing: BTreeSet<u16> = match &metadata.recorded {
            Some(_) => unasked(metadata).map(|event| event.0).collect(),
            None => absent(metadata, contents).iter().map(|event| event.0).collect(),
        };
        missing.extend(OF_KERNEL.iter().filter(|event| contents.count(**event) == 0).map(|event| event.0));
        let asked_for_beginning = !missing.contains(&Event::RUN_START.0);
        let beginning = match contents.count(Event::RUN_START) {
            0 if asked_for_beginning => Beginning::UnderWay,
            0 => Beginning::Unknown,
            _ => Beginning::Recorded,
        };
        RecordedEvents { missing, beginning }
    }

    /// Of a trace that has everything.
    pub fn everything() -> Self {
        RecordedEvents { missing: BTreeSet::new(), beginning: Beginning::Recorded }
    }

    /// Whether the trace has every record of `event` that the run wrote, but for lost ones.
    pub fn has(&self, event: Event) -> bool {
        !self.missing.contains(&event.0)
    }

    /// Whether it has all of these.
    pub fn has_all(&self, events: &[Event]) -> bool {
        events.iter().all(|event| self.has(*event))
    }

    /// Whether it has the run from its beginning.
    pub fn beginning(&self) -> Beginning {
        self.beginning
    }

    /// The names of those of `events` that it lacks, as `job.start`.
    pub fn missing(&self, events: &[Event]) -> Vec<String> {
        events.iter().filter(|event| !self.has(**event)).map(|event| name_of(*event)).collect()
    }

    /// The names of the events of jobs' lives that it lacks.
    pub fn missing_of_jobs(&self) -> Vec<String> {
        let of_lives: Vec<Event> =
            of_jobs().into_iter().filter(|event| !BESIDE_LIVES.contains(event)).collect();
        self.missing(&of_lives)
    }

    /// How to have the events of these names recorded next time, as options of `talea trace record`.
    pub fn options_for(names: &[String]) -> String {
        let of = |family: &str| names.iter().any(|name| name.starts_with(&format!("{family}.")));
        let beside: Vec<&str> =
            ["dispatch", "hls", "port", "event"].into_iter().filter(|family| of(family)).collect();
        let events = format!("--events {}", [&["run", "job"], &beside[..]].concat().join(","));
        let kernel = if of("kernel") { Some("--kernel switches,interrupts") } else { None };
        let others = !of("kernel") || !beside.is_empty() || of("job") || of("run");
        let parts = others.then_some(events.as_str()).into_iter().chain(kernel);
        parts.collect::<Vec<_>>().join(" ")
    }
}

impl Metadata {
    /// Whether records of the event may be missing because a recording was not asked for it.
    pub fn leaves_out(&self, event: Event) -> bool {
        let name = name_of(event);
        let is_unasked = |recorded: &BTreeSet<String>| !LATER.contains(&event) && !recorded.contains(&name);
        self.unrecorded.contains(&name) || self.recorded.as_ref().is_some_and(is_unasked)
    }

    /// Whether the records tell of each message from another node that came, and of whom it told.
    pub fn tells_messages(&self) -> bool {
        self.names_senders && !self.leaves_out(Event::RECEIVE)
    }
}

/// What a stream is asked for of Talea's own events by name, but for the kernel's, which no stream has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedEvents {
    /// Those that are chosen, for [`Metadata::recorded`].
    pub events: BTreeSet<String>,
    /// The others, for [`Metadata::unrecorded`].
    pub others: BTreeSet<String>,
}

impl AskedEvents {
    /// Those that `selection` chooses in `directory`.
    ///
    /// # Errors
    /// A name is not there.
    pub fn of(selection: &Selection, directory: &Directory) -> Result<Self, SelectionError> {
        let switches = selection.resolve(directory)?.switches;
        let (events, others) = of_streams().partition(|event| switches.contains(builtin_switch(*event)));
        let names = |events: Vec<Event>| events.into_iter().map(name_of).collect();
        Ok(AskedEvents { events: names(events), others: names(others) })
    }
}

/// The builtin events that streams tell.
fn of_streams() -> impl Iterator<Item = Event> {
    let families = builtin::ALL.iter().filter(|family| family.number != builtin::KERNEL.number);
    families.flat_map(|family| family.events.iter().map(|entry| family.event(entry)))
}

/// The events of jobs, in the order of their numbers.
pub(crate) fn of_jobs() -> Vec<Event> {
    builtin::JOB.events.iter().map(|entry| builtin::JOB.event(entry)).collect()
}

/// The name of a builtin event with its family's.
pub fn name_of(event: Event) -> String {
    let family = builtin::ALL.get(usize::from(event.family())).map_or("", |family| family.name.as_ref());
    format!("{family}.{}", event.name().unwrap_or_default())
}

/// The builtin events of streams that a recording was not asked for. That jobs wait is not missing where none may.
fn unasked(metadata: &Metadata) -> impl Iterator<Item = Event> {
    let may_wait = metadata.inputs.iter().any(|input| input.is_waited_for);
    of_streams().filter(move |event| {
        let is_there = UNASKED.contains(event) || *event == Event::WAIT && !may_wait;
        !is_there && metadata.leaves_out(*event)
    })
}

/// The events that cannot but have happened, and have no record.
///
/// What ended had begun, what began had been released, what goes on was preempted or waited, and no more jobs than lanes are begun and
/// neither ended nor preempted nor wait. Real threads that run jobs sleep, wake, queue them and release them by timers. A few records
/// may be lost together; many are not without any of the others.
fn absent(metadata: &Metadata, contents: &Contents) -> Vec<Event> {
    let count = |event| contents.count(event);
    let few = if contents.lost().programs == 0 { 0 } else { FEW };
    let ended = count(Event::COMPLETE) + count(Event::ABORT);
    let stopped = count(Event::PREEMPT) + count(Event::WAIT);
    let begun_at_most = stopped + metadata.lanes.len() as u64;
    // Threads of hierarchies are dispatched under their set's lock, which leaves no such records.
    let has_lanes = metadata.lanes.iter().any(|lane| !lane.is_thread());
    let on_threads =
        matches!(metadata.origin, Origin::Threads { .. }) && contents.of_jobs() > few && has_lanes;
    let lacks = [
        (Event::RELEASE, count(Event::START) + count(Event::COMPLETE) > few),
        (Event::START, count(Event::COMPLETE) + count(Event::RESUME) > few),
        (Event::PREEMPT, count(Event::RESUME) > count(Event::WAIT) + few),
        (Event::COMPLETE, ended == 0 && count(Event::START) > begun_at_most + few),
    ];
    let of_jobs = lacks.into_iter().filter(|(_, has_to_be)| *has_to_be).map(|(event, _)| event);
    let of_threads = OF_DISPATCHING.into_iter().filter(|_| on_threads);
    // One process receives nothing; where dispatching is not told, neither are messages.
    let messages = (on_threads && count(Event::COST) == 0).then_some(Event::RECEIVE);
    of_jobs.chain(of_threads).chain(messages).filter(|event| count(*event) == 0).collect()
}
