//! What a trace holds at all: how many records of which event, from when to when, of which nodes.
//!
//! Whoever judges a trace has to know first what is not in it: what was not recorded did not fail to happen.

use crate::event::{self, LossCause, RunEnd, RunStart, Thread, Timer, Typed};
use crate::{Event, Metadata, NameSpace, Record, Sink};
use serde::Serialize;
use std::collections::BTreeMap;
use talea_time::{Duration, Instant};

/// Counts records, in memory that does not grow with them.
#[derive(Debug)]
pub struct Contents {
    /// By event number.
    counts: Vec<u64>,
    /// The first and the last record.
    span: Option<(Instant, Instant)>,
    /// Lost records of programs, and of the kernel.
    lost: Lost,
    /// The same, by why.
    causes: BTreeMap<LossCause, u64>,
    /// By node.
    heard: Vec<bool>,
    /// Whether a lane of the node has a THREAD record.
    identified: Vec<bool>,
    node_of_lane: Vec<usize>,
}

/// Records that were lost before they could be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Lost {
    /// Of programs: of jobs, of dispatching, and what programs declare themselves.
    pub programs: u64,
    /// Of the kernel.
    pub kernel: u64,
}

/// Records of one event.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EventCount {
    /// Its name with its family's, as `job.release`, or its number if no family declares it.
    pub name: String,
    /// How many there are.
    pub records: u64,
    /// The same by second of the trace; `None` of a trace without length.
    pub per_second: Option<f64>,
}

/// What a trace holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContentsReport {
    /// All records.
    pub records: u64,
    /// From the first to the last one.
    pub duration_ns: i64,
    /// What was lost.
    pub lost: Lost,
    /// The same, by why.
    pub lost_by_cause: BTreeMap<LossCause, u64>,
    /// By event, in the order of their numbers.
    pub events: Vec<EventCount>,
}

impl Lost {
    /// Takes what a LOST record tells.
    pub fn add(&mut self, told: event::Lost) {
        let lost = if told.is_of_kernel() { &mut self.kernel } else { &mut self.programs };
        *lost = lost.saturating_add(told.records);
    }

    /// All of them.
    pub fn sum(self) -> u64 {
        self.programs.saturating_add(self.kernel)
    }
}

impl Contents {
    /// Of a trace with `metadata`.
    ///
    /// # Panics
    /// If `metadata` do not pass [`Metadata::check`].
    pub fn new(metadata: &Metadata) -> Self {
        metadata.check().expect("metadata are consistent");
        Contents {
            counts: vec![0; usize::from(u16::MAX) + 1],
            span: None,
            lost: Lost::default(),
            causes: BTreeMap::new(),
            heard: vec![false; metadata.nodes.len()],
            identified: vec![false; metadata.nodes.len()],
            node_of_lane: metadata.lanes.iter().map(|lane| lane.node).collect(),
        }
    }

    /// Records of this event.
    pub fn count(&self, event: Event) -> u64 {
        self.counts[usize::from(event.0)]
    }

    /// Every event that there is a record of, in the order of their numbers, with how many.
    pub fn events(&self) -> impl Iterator<Item = (Event, u64)> {
        let numbered = (0..=u16::MAX).map(Event).zip(self.counts.iter().copied());
        numbered.filter(|(_, count)| *count > 0)
    }

    /// All records.
    pub fn records(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Records about jobs.
    pub fn of_jobs(&self) -> u64 {
        self.events().filter(|(event, _)| event.is_job()).map(|(_, count)| count).sum()
    }

    /// The time of the first record and that of the last one; `None` of an empty trace.
    pub fn span(&self) -> Option<(Instant, Instant)> {
        self.span
    }

    /// From the first record to the last one. Records of damaged files may be centuries apart.
    pub fn duration(&self) -> Duration {
        self.span.map_or(Duration::ZERO, |(first, last)| {
            Duration::from_nanos(last.as_nanos().saturating_sub(first.as_nanos()))
        })
    }

    /// All of it, with names.
    pub fn report(&self, names: &NameSpace) -> ContentsReport {
        let seconds = self.duration().as_nanos() as f64 / 1e9;
        let named = |(event, records): (Event, u64)| EventCount {
            name: match names.event(event) {
                Some((family, entry)) => format!("{}.{}", family.name, entry.name),
                None => format!("{:#06x}, not declared", event.0),
            },
            records,
            per_second: (seconds > 0.0).then_some(records as f64 / seconds),
        };
        ContentsReport {
            records: self.records(),
            duration_ns: self.duration().as_nanos(),
            lost: self.lost,
            lost_by_cause: self.causes.clone(),
            events: self.events().map(named).collect(),
        }
    }

    /// What was lost.
    pub fn lost(&self) -> Lost {
        self.lost
    }

    /// Whether any record is of the node of this index.
    pub fn hears(&self, node: usize) -> bool {
        self.heard.get(node).copied().unwrap_or(false)
    }

    /// Whether the threads that the kernel tells of are known from those of the node's lanes; true where the kernel tells
    /// of none.
    pub fn identifies(&self, node: usize) -> bool {
        self.count(Event::SWITCH) == 0 || self.identified.get(node).copied().unwrap_or(false)
    }

    /// The node that the record is of, if it says so.
    fn node(&self, record: &Record) -> Option<usize> {
        match record.typed() {
            Typed::RunStart(RunStart { node, .. })
            | Typed::RunEnd(RunEnd { node, .. })
            | Typed::Timer(Timer { node, .. }) => Some(usize::from(node)),
            Typed::Thread(thread) => {
                thread.role.known().filter(|role| role.is_of_system()).and(record.node())
            }
            _ => self.node_of_lane.get(record.lane()?).copied(),
        }
    }
}

impl Sink for Contents {
    fn record(&mut self, record: Record) {
        self.counts[usize::from(record.event.0)] += 1;
        // The names of threads that the kernel tells at its start are from before everything.
        let (first, last) = self.span.unwrap_or((record.time, record.time));
        self.span = Some((first.min(record.time), last.max(record.time)));
        if let Some(lost) = event::Lost::read(&record) {
            self.lost.add(lost);
            let cause = lost.cause.known().unwrap_or(LossCause::Overwritten);
            let of_cause = self.causes.entry(cause).or_default();
            *of_cause = of_cause.saturating_add(lost.records);
        }
        if let Some(heard) = self.node(&record).and_then(|node| self.heard.get_mut(node)) {
            *heard = true;
        }
        if let Some(thread) = Thread::read(&record)
            && let Some(node) = thread.lane.and_then(|lane| self.node_of_lane.get(usize::from(lane)))
        {
            self.identified[*node] = true;
        }
    }
}
