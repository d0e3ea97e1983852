//! What a record may say by itself, by its event's declaration and the tables of its file.

use super::{DISORDER, Fault};
use crate::declaration::{Extent, Part};
use crate::event::{Meaning, Typed};
use crate::record::JobId;
use crate::values::MOST_BYTES;
use crate::{Event, MemberRole, Metadata, NameSpace, Record};
use talea_time::{Duration, Instant};

/// Linux knows no processor of a greater number.
const PROCESSORS: u16 = 8_192;

/// What the tables and the families of a file allow.
#[derive(Debug)]
pub(crate) struct Rules {
    /// By event number: the greatest length of its long field, 0 without one.
    declared: Vec<Option<u16>>,
    start: Instant,
    nodes: usize,
    lanes: usize,
    edges: usize,
    outputs: usize,
    inputs: usize,
    publications: usize,
    /// Of all nodes.
    pub cpus: Vec<u16>,
    /// Phase and period of each operation's task; what is posted, or released by a trigger, has neither.
    arrivals: Vec<Option<(Duration, Duration)>>,
}

impl Rules {
    /// Of a file with these tables and families.
    pub fn new(metadata: &Metadata, names: &NameSpace) -> Self {
        let mut declared = vec![None; usize::from(u16::MAX) + 1];
        for family in names.families() {
            for entry in family.events.iter() {
                let bound = entry.fields.iter().find_map(|field| field.kind.bound());
                declared[usize::from(family.event(entry).0)] = Some(bound.unwrap_or(0));
            }
        }
        let arrival = |operation: &crate::OperationEntry| {
            let task = &metadata.tasks[operation.task];
            let is_periodic = !task.activity.is_posted() && task.released_by.is_period();
            is_periodic.then_some((task.phase, task.period))
        };
        Rules {
            declared,
            start: metadata.start,
            nodes: metadata.nodes.len(),
            lanes: metadata.lanes.len(),
            edges: metadata.edges.len(),
            outputs: metadata.outputs.len(),
            inputs: metadata.inputs.len(),
            publications: metadata.publications.len(),
            cpus: metadata.nodes.iter().flat_map(|node| node.cpus.iter().copied()).collect(),
            arrivals: metadata.operations.iter().map(arrival).collect(),
        }
    }

    /// Whether an event that is declared has a long field.
    pub fn has_long(&self, event: Event) -> bool {
        self.declared[usize::from(event.0)].is_some_and(|longest| longest > 0)
    }

    /// What is wrong with the record by itself.
    pub fn check(&self, record: &Record) -> Option<Fault> {
        let Some(longest) = self.declared[usize::from(record.event.0)] else {
            return Some(Fault::Event(record.event));
        };
        if longest > 0 && Extent::from_bits(record.arg).bytes() > usize::from(longest) {
            return Some(Fault::Value);
        }
        if record.cpu != Record::NO_CPU && record.cpu >= PROCESSORS {
            return Some(Fault::Processor(record.cpu));
        }
        if record.event.family() == Event::SWITCH.family() && record.source != Record::KERNEL {
            return Some(Fault::Source(record.source));
        }
        let mut found = None;
        record.check_numbers(|part, meaning, number| {
            // From a wrong source the rest is wrong, too.
            if !matches!(found, Some(Fault::Source(_))) && !self.knows(meaning, number) {
                let fault = match (part, meaning) {
                    (Part::Source, _) => Fault::Source(number as u16),
                    (_, Meaning::Job) => Fault::Operation(JobId::numbers(number).0),
                    (_, Meaning::Operation) => Fault::Operation(number as usize),
                    _ => Fault::Value,
                };
                found = found.filter(|_| part != Part::Source).or(Some(fault));
            }
        });
        found.or_else(|| match record.event {
            event if event.is_job() => self.check_job(record),
            Event::LOST
            | Event::COST
            | Event::VIOLATION
            | Event::WITHHELD
            | Event::UNAUDITED
            | Event::MEMBER
            | Event::JOB_WCET
            | Event::VALUE
            | Event::STEAL => check_together(record),
            _ => None,
        })
    }

    /// Whether there is what a number stands for.
    #[inline(always)]
    fn knows(&self, meaning: Meaning, number: u64) -> bool {
        // The draft of a recording has records of jobs before it has tables, and programs that are no Talea system have no
        // nodes, and threads all the same.
        let is_one_of = |count: usize| self.nodes == 0 || number < count as u64;
        match meaning {
            // Of the last, older traces may have something else there.
            Meaning::Number | Meaning::Deadline | Meaning::JobOrNone | Meaning::Thread => true,
            Meaning::Job => self.nodes == 0 || JobId::numbers(number).0 < self.arrivals.len(),
            Meaning::Operation => is_one_of(self.arrivals.len()),
            Meaning::Node => is_one_of(self.nodes),
            Meaning::Lane => is_one_of(self.lanes),
            Meaning::Edge => is_one_of(self.edges),
            Meaning::Output => is_one_of(self.outputs),
            Meaning::Input => is_one_of(self.inputs),
            Meaning::Publication => is_one_of(self.publications),
            Meaning::Code(codes) => codes.have(number),
            Meaning::Flag => number <= 1,
        }
    }

    fn check_job(&self, record: &Record) -> Option<Fault> {
        let (index, instance) = record.job_numbers();
        // Without tables there are none.
        let arrivals = self.arrivals.get(index)?;
        if record.time.saturating_add(DISORDER) < self.start {
            return Some(Fault::Time(record.time));
        }
        let number = i64::try_from(instance).unwrap_or(i64::MAX);
        let (phase, period) = arrivals.unwrap_or((Duration::ZERO, Duration::ZERO));
        let since_start = phase.as_nanos().saturating_add(period.as_nanos().saturating_mul(number));
        let arrival = self.start.saturating_add(Duration::from_nanos(since_start));
        // A record from before the start cannot be told from one of a run whose start was set later.
        if record.time >= self.start && arrival > record.time.saturating_add(DISORDER) {
            return Some(Fault::Instance(instance));
        }
        let fits = record.dates().is_none_or(|dates| is_past(dates.nominal, record));
        (!fits).then_some(Fault::Value)
    }
}

/// Whether the numbers of the record fit each other and its time.
fn check_together(record: &Record) -> Option<Fault> {
    let is_past = |instant| is_past(instant, record);
    let is_window = |from: Instant, to: Instant| from <= to && is_past(from) && is_past(to);
    let fits = match record.typed() {
        // No thread writes more than one record a nanosecond.
        Typed::Lost(lost) => {
            let written =
                i64::try_from(lost.records).is_ok_and(|records| is_past(Instant::from_nanos(records)));
            written && lost.since.is_none_or(is_past)
        }
        Typed::Cost(cost) => is_past(Instant::ZERO.saturating_add(cost.cost)),
        Typed::Violation(broken) => broken.side.known().is_some() && is_window(broken.from, broken.to),
        Typed::Withheld(withheld) => is_window(withheld.from, withheld.to),
        Typed::Unaudited(unaudited) => is_past(unaudited.since),
        // It is counted in ticks, so it may seem more than the time in which it was taken.
        Typed::Steal(steal) => steal.amount > Duration::ZERO && is_window(steal.from, steal.to),
        Typed::Member(member) => member.edge.is_some() || member.role != MemberRole::Scheduled,
        Typed::JobWcet(told) => told.wcet > Duration::ZERO,
        Typed::Value(value) => value.bytes as usize <= MOST_BYTES,
        _ => true,
    };
    (!fits).then_some(Fault::Value)
}

/// Whether an instant that the record tells is not after it.
fn is_past(instant: Instant, record: &Record) -> bool {
    instant >= Instant::ZERO && instant <= record.time.saturating_add(DISORDER)
}
