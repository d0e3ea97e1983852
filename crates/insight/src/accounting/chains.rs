//! How long values take along cause-effect chains: latency, reaction time and data age (Dürr et al. 2019, Günzel et al. 2021).
//!
//! A **sample** is a job of a chain's first operation, taken at its nominal release. Each job of a later operation carries the sample of
//! the value that it used, so following a chain is handing a sample on from job to job:
//!
//! ```text
//! first operation completes      its job is a sample
//! successor is released          carries the sample of the same instance of the operation before, if that was done, and had been heard of over a link
//! job takes values of an input   carries the sample of the job that wrote the newest of them; if there are none, of the newest that a job of
//!                                the operation took by it before; of several inputs with values of one writer, of the newest of all
//! job is released by values      carries the sample of the job that published the releasing one; over a link the message tells which
//! job takes an event             carries the sample of the job that pushed it, or the newest of those if it takes several
//! job is aborted                 carries nothing on
//! ```
//!
//! When a job of the last operation completes with a sample, three times are known:
//! * **data age**: from the sample to this completion, whichever completion it is;
//! * **latency**: the same, of the first completion that used this sample;
//! * **reaction time**: from the newest sample that an *earlier* completion had used to the first completion that used a newer one. An event
//!   just after that sample is not in it, nor in anything that came out before this completion, so this is the longest that any event
//!   outside waited for it. Samples in between that were overwritten, or whose jobs were aborted, make it longer, as they should. A chain
//!   whose first task is released from outside samples each event when it arrives, so its reaction time is its latency.
//!
//! Per operation of a chain the samples of the latest [`Slots::COUNT`] instances are kept; more, up to [`Slots::MOST`], when one is missed, as over links
//! on which more values are under way.

use super::distribution::{Distribution, Precision, Recorder};
use crate::releasing::{Messages, Publications, ReleaseRule, are_apart};
use serde::{Deserialize, Serialize};
use talea_record::event::{Complete, Deliver, JobOrNone, Publish, Receive, Release, Take};
use talea_record::{ChainEntry, Event, HopEntry, JobId, Metadata, Record, ReleasedBy};
use talea_time::Duration;

/// What came of a chain of operations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainReport {
    /// Its name.
    pub name: String,
    /// From a sample to the completion that was the first to use it.
    pub latency: ChainTimes,
    /// From the newest sample that was used before to the first completion that used a newer one.
    pub reaction: ChainTimes,
    /// From the sample that a completion used to that completion.
    pub age: ChainTimes,
    /// Jobs of the first operation that completed.
    pub samples: u64,
    /// Samples that a completion of the last operation used.
    pub used: u64,
    /// Samples older than the newest used one that no completion used: overwritten, dropped, taken together with a newer one, or carried by a job
    /// that was aborted.
    pub unused: u64,
    /// Completions of the last operation that used no sample: none was there yet, or what led to it is not in the records.
    pub without_sample: u64,
}

/// One of the times of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChainTimes {
    /// The limit, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_ns: Option<i64>,
    /// How many were beyond the limit; a reaction counts as well that has not come by the end although its limit has passed.
    pub missed: u64,
    /// All of them.
    pub time_ns: Option<Distribution>,
}

impl ChainReport {
    /// Whether the last operation has completed, and never with a sample.
    pub fn never_comes_through(&self) -> bool {
        self.used == 0 && self.without_sample > 0
    }

    /// Whether one of its times has a limit.
    pub fn has_limits(&self) -> bool {
        [&self.latency, &self.reaction, &self.age].into_iter().any(|times| times.limit_ns.is_some())
    }

    /// How many times were beyond their limits.
    pub fn missed(&self) -> u64 {
        self.latency.missed + self.reaction.missed + self.age.missed
    }
}

/// A job of a chain's first operation. Later ones are newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sample {
    nominal_ns: i64,
    /// Its instance.
    number: u64,
}

/// How far a job that carries a sample is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It has the sample and has not completed.
    Begun,
    Completed,
    /// It is a sample, and a completion of the last operation used it.
    Used,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// [`Slots::EMPTY`] if there is none.
    instance: u64,
    sample: Sample,
    stage: Stage,
    /// The instance of the operation before that handed the sample on; [`Slots::EMPTY`] for a sample itself.
    from: u64,
}

/// The samples that the latest instances of an operation carry, by instance.
#[derive(Debug)]
struct Slots(Box<[Slot]>);

impl Slots {
    const COUNT: usize = 1024;
    const MOST: usize = 1 << 16;
    /// Instances have 44 bits.
    const EMPTY: u64 = u64::MAX;

    fn new() -> Self {
        Self::of(Self::COUNT)
    }

    fn of(count: usize) -> Self {
        let sample = Sample { number: 0, nominal_ns: 0 };
        Slots(
            vec![Slot { instance: Self::EMPTY, sample, stage: Stage::Begun, from: Self::EMPTY }; count]
                .into(),
        )
    }

    #[inline]
    fn at(&mut self, instance: u64) -> &mut Slot {
        let count = self.0.len();
        &mut self.0[instance as usize % count]
    }

    /// What the instance carries. If a later one has taken its place, more are kept from now on.
    fn carried(&mut self, instance: u64) -> Option<Slot> {
        let slot = *self.at(instance);
        if slot.instance == instance {
            return Some(slot);
        }
        let is_missed = slot.instance != Self::EMPTY && slot.instance > instance;
        if is_missed && self.0.len() < Self::MOST {
            let more = Self::of(2 * self.0.len());
            let kept = std::mem::replace(self, more);
            let kept = kept.0.iter().filter(|slot| slot.instance != Self::EMPTY);
            kept.for_each(|slot| *self.at(slot.instance) = *slot);
        }
        None
    }

    #[inline]
    fn put(&mut self, instance: u64, sample: Sample, stage: Stage, from: u64) {
        *self.at(instance) = Slot { instance, sample, stage, from };
    }

    #[inline]
    fn get(&mut self, instance: u64) -> Option<&mut Slot> {
        Some(self.at(instance)).filter(|slot| slot.instance == instance)
    }

    fn forget(&mut self, instance: u64) {
        if let Some(slot) = self.get(instance) {
            slot.instance = Self::EMPTY;
        }
    }
}

/// How a job of an operation of a chain comes to its sample.
#[derive(Debug)]
enum Source {
    /// It is one.
    First,
    Successor {
        /// What came over the link, if the operation before is on another node, and that is told.
        messages: Option<Messages>,
    },
    Events,
    Reads {
        /// By input: who wrote the newest value that the last job had which found one.
        last: Box<[(usize, Option<u64>)]>,
    },
    Triggers {
        rule: ReleaseRule,
        publications: Publications,
        messages: Messages,
    },
}

#[derive(Debug)]
struct Step {
    source: Source,
    slots: Slots,
}

#[derive(Debug)]
struct Times {
    limit_ns: Option<i64>,
    missed: u64,
    recorder: Recorder,
}

impl Times {
    fn new(limit: Option<Duration>, precision: Precision) -> Self {
        Times { limit_ns: limit.map(Duration::as_nanos), missed: 0, recorder: Recorder::new(precision) }
    }

    #[inline]
    fn record(&mut self, ns: i64) {
        self.recorder.record(ns);
        self.missed += u64::from(self.is_beyond(ns));
    }

    fn is_beyond(&self, ns: i64) -> bool {
        self.limit_ns.is_some_and(|limit_ns| ns > limit_ns)
    }

    fn report(&self) -> ChainTimes {
        let Times { limit_ns, missed, recorder } = self;
        ChainTimes { limit_ns: *limit_ns, missed: *missed, time_ns: recorder.distribution() }
    }
}

/// What an event outside that the first operation samples is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sampling {
    /// It happens at any time, and the next sample sees it.
    Rated,
    /// It releases the first operation.
    ByEvents,
}

#[derive(Debug)]
struct Chain {
    name: String,
    sampling: Sampling,
    /// Its operations, in their order.
    operations: Vec<usize>,
    steps: Vec<Step>,
    latency: Times,
    reaction: Times,
    age: Times,
    samples: u64,
    used: u64,
    without_sample: u64,
    /// The newest sample that a completion of the last operation has used.
    newest_used: Option<Sample>,
    /// Completed samples that are newer and have left their slots.
    newer_gone: u64,
    /// The longest times, if they are asked for.
    worst: Option<WorstWays>,
}

/// The jobs that handed a sample on to the job `instance` of the last operation, by their instances, as far as they are known.
fn way(steps: &mut [Step], instance: u64) -> Option<Vec<u64>> {
    let mut way = vec![instance];
    for step in steps[1..].iter_mut().rev() {
        let from = step.slots.get(*way.last().expect("it has one"))?.from;
        way.push(from);
    }
    way.reverse();
    Some(way)
}

/// One of the three times of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// From a sample to the first completion that used it.
    Latency,
    /// From the newest sample that was used before to the first completion that used a newer one.
    Reaction,
    /// From a sample to a completion that used it.
    Age,
}

impl Measure {
    /// All of them.
    pub const ALL: [Measure; 3] = [Measure::Latency, Measure::Reaction, Measure::Age];

    /// What it is called.
    pub fn words(self) -> &'static str {
        match self {
            Measure::Latency => "latency",
            Measure::Reaction => "reaction time",
            Measure::Age => "data age",
        }
    }

    /// The limit that a chain sets on it.
    pub fn limit(self, chain: &ChainEntry) -> Option<Duration> {
        match self {
            Measure::Latency => chain.latency,
            Measure::Reaction => chain.reaction,
            Measure::Age => chain.age,
        }
    }
}

/// The way of a sample along a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// From when on the time counts.
    pub from_ns: i64,
    /// When the sample was taken.
    pub sample_ns: i64,
    /// When the job that used it completed.
    pub end_ns: i64,
    /// The instances of the chain's operations, in their order.
    pub instances: Vec<u64>,
}

/// The ways of a chain that took longest.
#[derive(Debug, Default)]
struct WorstWays([Option<Way>; 3]);

impl WorstWays {
    /// A time ended; `way` finds the jobs.
    fn note(
        &mut self,
        measure: Measure,
        (from_ns, sample_ns, end_ns): (i64, i64, i64),
        way: impl FnOnce() -> Option<Vec<u64>>,
    ) {
        let worst = &mut self.0[measure as usize];
        let length_ns = |from_ns: i64, end_ns: i64| end_ns.saturating_sub(from_ns);
        if worst
            .as_ref()
            .is_none_or(|worst| length_ns(from_ns, end_ns) > length_ns(worst.from_ns, worst.end_ns))
            && let Some(instances) = way()
        {
            *worst = Some(Way { from_ns, sample_ns, end_ns, instances });
        }
    }
}

impl Chain {
    fn new(entry: &ChainEntry, metadata: &Metadata, precision: Precision) -> Self {
        let of_hop = |(place, hop): (usize, &HopEntry)| match hop {
            HopEntry::Successor { inputs } if inputs.is_empty() => {
                let are_apart = are_apart(metadata, entry.operations[place], entry.operations[place + 1]);
                let are_told = are_apart && metadata.tells_messages();
                Source::Successor { messages: are_told.then(Messages::new) }
            }
            HopEntry::Events | HopEntry::TakenEvents => Source::Events,
            HopEntry::Reads { inputs } | HopEntry::Successor { inputs } => {
                Source::Reads { last: inputs.iter().map(|input| (*input, None)).collect() }
            }
            HopEntry::Triggers { every, on, .. } => {
                let ends = (entry.operations[place], entry.operations[place + 1]);
                let rule = ReleaseRule::of(metadata, ends, *every, *on);
                Source::Triggers { rule, publications: Publications::new(), messages: Messages::new() }
            }
        };
        let sources = std::iter::once(Source::First).chain(entry.hops.iter().enumerate().map(of_hop));
        let first = &metadata.tasks[metadata.operations[entry.operations[0]].task];
        Chain {
            name: entry.name.clone(),
            sampling: match first.released_by {
                ReleasedBy::Outside => Sampling::ByEvents,
                ReleasedBy::Period | ReleasedBy::Values | ReleasedBy::Events => Sampling::Rated,
            },
            operations: entry.operations.clone(),
            steps: sources.map(|source| Step { source, slots: Slots::new() }).collect(),
            latency: Times::new(entry.latency, precision),
            reaction: Times::new(entry.reaction, precision),
            age: Times::new(entry.age, precision),
            samples: 0,
            used: 0,
            without_sample: 0,
            newest_used: None,
            newer_gone: 0,
            worst: None,
        }
    }

    /// A job of the operation at `place` has the sample of a job of the one before, if that carries one.
    fn hand_on(&mut self, place: usize, from: Option<u64>, to: u64) {
        let slot = from.and_then(|from| self.steps[place - 1].slots.carried(from));
        match slot {
            Some(Slot { sample, instance: from, .. }) => {
                self.steps[place].slots.put(to, sample, Stage::Begun, from);
            }
            None => self.steps[place].slots.forget(to),
        }
    }

    /// A job of the operation at `place` took values by `input`, the newest of which `from` wrote. One that took none goes on with what those before it
    /// took, as code that keeps what it has seen does.
    fn take(&mut self, place: usize, input: usize, from: Option<u64>, by: u64) {
        let Source::Reads { last } = &mut self.steps[place].source else {
            unreachable!("values are taken over such hops alone")
        };
        let of_input = last.iter_mut().filter(|(of, _)| *of == input);
        of_input.for_each(|(_, last)| *last = from.or(*last));
        let newest = last.iter().filter_map(|(_, last)| *last).max();
        self.hand_on(place, newest, by);
    }

    /// A job of the operation at `place` took an event that `from` pushed.
    fn deliver(&mut self, place: usize, from: JobId, by: u64) {
        let is_way = matches!(self.steps[place].source, Source::Events)
            && self.operations[place - 1] == from.operation.index();
        // Of several events the newest counts.
        let has_newer = |slot: &mut Slot| slot.from >= from.instance;
        if is_way && !self.steps[place].slots.get(by).is_some_and(has_newer) {
            self.hand_on(place, Some(from.instance), by);
        }
    }

    /// A job of the operation at `place` has heard by a message of `from`.
    fn receive(&mut self, place: usize, from: JobId, by: u64) {
        if place == 0 || self.operations[place - 1] != from.operation.index() {
            return;
        }
        if let Source::Successor { messages: Some(messages) } | Source::Triggers { messages, .. } =
            &mut self.steps[place].source
        {
            messages.note(by, from.instance);
        }
    }

    fn release(&mut self, place: usize, instance: u64, nominal_ns: i64) {
        match &self.steps[place].source {
            Source::Triggers { rule, publications, messages } => {
                let told = messages.heard(instance);
                let from = told.or_else(|| publications.releasing(instance, nominal_ns, *rule));
                self.hand_on(place, from, instance);
            }
            Source::Successor { messages } => {
                let is_heard = messages.as_ref().is_none_or(|messages| messages.heard(instance).is_some());
                let before = self.steps[place - 1].slots.carried(instance);
                let is_done = before.is_some_and(|slot| slot.stage != Stage::Begun);
                self.hand_on(place, (is_heard && is_done).then_some(instance), instance);
            }
            Source::First | Source::Events | Source::Reads { .. } => {}
        }
    }

    fn complete(&mut self, place: usize, instance: u64, nominal_ns: i64, time_ns: i64) {
        if matches!(self.steps[place].source, Source::First) {
            self.sample(Sample { number: instance, nominal_ns });
        }
        let is_last = place + 1 == self.steps.len();
        let slot = self.steps[place].slots.get(instance);
        if let Some(slot) = slot {
            slot.stage = Stage::Completed;
            let sample = slot.sample;
            if is_last {
                self.finish(sample, instance, time_ns);
            }
        } else {
            self.without_sample += u64::from(is_last);
        }
    }

    fn sample(&mut self, sample: Sample) {
        let gone = *self.steps[0].slots.at(sample.number);
        if gone.instance != Slots::EMPTY && self.is_newer(&gone) {
            self.newer_gone += 1;
        }
        self.steps[0].slots.put(sample.number, sample, Stage::Completed, Slots::EMPTY);
        self.samples += 1;
    }

    /// Whether it is a sample that is newer than all that the last operation has used.
    fn is_newer(&self, slot: &Slot) -> bool {
        slot.stage == Stage::Completed && self.newest_used.is_none_or(|newest| slot.sample > newest)
    }

    /// The job `instance` of the last operation, which used the sample, completes at `time_ns`.
    fn finish(&mut self, sample: Sample, instance: u64, time_ns: i64) {
        let since_sample_ns = time_ns.saturating_sub(sample.nominal_ns);
        self.age.record(since_sample_ns);
        let used = (sample, instance, time_ns);
        self.note_worst(Measure::Age, sample, used);
        let slot = self.steps[0].slots.get(sample.number);
        let is_first_use = match slot {
            Some(slot) => std::mem::replace(&mut slot.stage, Stage::Used) != Stage::Used,
            // So old that nobody knows; what is newer than all that were used was certainly not.
            None => self.newest_used.is_none_or(|newest| sample > newest),
        };
        if is_first_use {
            self.used += 1;
            self.latency.record(since_sample_ns);
            self.note_worst(Measure::Latency, sample, used);
            if self.sampling == Sampling::ByEvents {
                self.reaction.record(since_sample_ns);
                self.note_worst(Measure::Reaction, sample, used);
            }
        }
        match self.newest_used {
            Some(newest) if sample <= newest => return,
            Some(newest) if self.sampling == Sampling::Rated => {
                self.reaction.record(time_ns.saturating_sub(newest.nominal_ns));
                self.note_worst(Measure::Reaction, newest, used);
            }
            _ => {}
        }
        self.newest_used = Some(sample);
        self.newer_gone = 0;
    }

    /// A time that counts from `since` ended: the job used the sample and completed.
    fn note_worst(
        &mut self,
        measure: Measure,
        since: Sample,
        (sample, instance, end_ns): (Sample, u64, i64),
    ) {
        if let Some(worst) = &mut self.worst {
            let times = (since.nominal_ns, sample.nominal_ns, end_ns);
            worst.note(measure, times, || way(&mut self.steps, instance));
        }
    }

    /// Completed samples that are newer than all that were used, of those that are kept.
    fn newer(&self) -> impl Iterator<Item = Sample> {
        let there = self.steps[0].slots.0.iter().filter(|slot| slot.instance != Slots::EMPTY);
        there.filter(|slot| self.is_newer(slot)).map(|slot| slot.sample)
    }

    /// How long an event has been waiting at `end_ns` that no completion has seen, of those the chain has sampled for certain.
    fn waiting_ns(&self, end_ns: i64) -> Option<i64> {
        let since = match (self.sampling, self.newest_used) {
            (Sampling::Rated, Some(newest)) => Some(newest),
            _ => self.newer().min(),
        };
        since.map(|sample| end_ns.saturating_sub(sample.nominal_ns))
    }

    fn report(&self, end_ns: i64) -> ChainReport {
        let mut reaction = self.reaction.report();
        let is_overdue =
            self.waiting_ns(end_ns).is_some_and(|waiting_ns| self.reaction.is_beyond(waiting_ns));
        reaction.missed += u64::from(is_overdue);
        ChainReport {
            name: self.name.clone(),
            latency: self.latency.report(),
            reaction,
            age: self.age.report(),
            samples: self.samples,
            used: self.used,
            unused: self.samples.saturating_sub(self.used + self.newer_gone + self.newer().count() as u64),
            without_sample: self.without_sample,
        }
    }
}

/// All chains of a system.
#[derive(Debug, Default)]
pub(crate) struct Chains {
    chains: Vec<Chain>,
    /// By operation: chains, and the places of the operation in them.
    of_operation: Vec<Vec<(usize, usize)>>,
    /// By input: chains, and the places in them of the operation that takes by it.
    of_input: Vec<Vec<(usize, usize)>>,
    /// By output: chains, and the places in them of the operation that its values release.
    of_output: Vec<Vec<(usize, usize)>>,
}

impl Chains {
    pub(super) fn new(metadata: &Metadata, precision: Precision) -> Self {
        if metadata.chains.is_empty() {
            return Chains::default();
        }
        let mut of_operation = vec![Vec::new(); metadata.operations.len()];
        let mut of_input = vec![Vec::new(); metadata.inputs.len()];
        let mut of_output = vec![Vec::new(); metadata.outputs.len()];
        for (chain, entry) in metadata.chains.iter().enumerate() {
            for (place, operation) in entry.operations.iter().enumerate() {
                of_operation[*operation].push((chain, place));
            }
            for (place, hop) in entry.hops.iter().enumerate() {
                for input in hop.inputs() {
                    of_input[*input].push((chain, place + 1));
                }
                if let HopEntry::Triggers { output, .. } = hop {
                    of_output[*output].push((chain, place + 1));
                }
            }
        }
        let chains = metadata.chains.iter().map(|entry| Chain::new(entry, metadata, precision)).collect();
        Chains { chains, of_operation, of_input, of_output }
    }

    /// Chains that keep the ways that took longest; their distributions do not matter.
    pub fn of_worst(metadata: &Metadata) -> Self {
        let mut chains = Chains::new(metadata, Precision::Coarse);
        chains.chains.iter_mut().for_each(|chain| chain.worst = Some(WorstWays::default()));
        chains
    }

    /// The way along the chain of this index of which the time was the longest.
    ///
    /// # Panics
    /// If there is no such chain.
    pub fn worst(&self, chain: usize, measure: Measure) -> Option<&Way> {
        self.chains[chain].worst.as_ref()?.0[measure as usize].as_ref()
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chains.is_empty()
    }

    /// A record of a job's life.
    pub fn job_event(&mut self, record: &Record) {
        if !matches!(record.event, Event::RELEASE | Event::COMPLETE | Event::ABORT) {
            return;
        }
        let (operation, instance) = record.job_numbers();
        let Some(places) = self.of_operation.get(operation) else { return };
        let time_ns = record.time.as_nanos();
        for (chain, place) in places {
            let chain = &mut self.chains[*chain];
            if let Some(Complete { nominal, .. }) = Complete::read(record) {
                chain.complete(*place, instance, nominal.as_nanos(), time_ns);
            } else if let Some(Release { nominal, .. }) = Release::read(record) {
                chain.release(*place, instance, nominal.as_nanos());
            } else {
                chain.steps[*place].slots.forget(instance);
            }
        }
    }

    /// A record of values that are handed on, of events, or of messages.
    pub fn port_event(&mut self, record: &Record) {
        if let Some(Deliver { job, from: Some(from), .. }) = Deliver::read(record) {
            for (chain, place) in self.of_operation.get(job.operation.index()).into_iter().flatten() {
                self.chains[*chain].deliver(*place, from, job.instance);
            }
        } else if let Some(Receive { job, from: JobOrNone(Some(from)), .. }) = Receive::read(record) {
            for (chain, place) in self.of_operation.get(job.operation.index()).into_iter().flatten() {
                self.chains[*chain].receive(*place, from, job.instance);
            }
        } else if let Some(Take { job, from, input, .. }) = Take::read(record) {
            for (chain, place) in self.of_input.get(input as usize).into_iter().flatten() {
                let from = from.map(|from| from.instance);
                self.chains[*chain].take(*place, input as usize, from, job.instance);
            }
        } else if let Some(Publish { job, output, .. }) = Publish::read(record) {
            for (chain, place) in self.of_output.get(output as usize).into_iter().flatten() {
                if let Source::Triggers { publications, .. } = &mut self.chains[*chain].steps[*place].source {
                    publications.note(job.instance, record.time.as_nanos());
                }
            }
        }
    }

    pub fn reports(&self, end_ns: i64) -> Vec<ChainReport> {
        self.chains.iter().map(|chain| chain.report(end_ns)).collect()
    }
}
