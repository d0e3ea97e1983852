//! The times of a chain by their definitions, from all records at once: back from each completion to its sample, and forward from each
//! sample to the completions that have seen it.

use std::collections::BTreeMap;
use talea_record::event::{Complete, Deliver, JobOrNone, Publish, Receive, Release, Take};
use talea_record::{
    ChainEntry, CountedValues, HopEntry, JobId, Metadata, OperationEntry, Record, ReleasedBy,
};
use talea_time::Instant;

#[derive(Debug, Default)]
pub struct Times {
    /// Shortest first.
    pub times: Vec<i64>,
    pub missed: u64,
}

#[derive(Debug)]
pub struct Defined {
    pub latency: Times,
    pub reaction: Times,
    pub age: Times,
    pub samples: u64,
    pub used: u64,
    pub unused: u64,
    pub without_sample: u64,
}

/// All that is asked of the records.
#[derive(Default)]
struct Facts {
    /// By operation and instance: nominal release, completion, and place among the records.
    completions: BTreeMap<(usize, u64), (i64, i64, usize)>,
    /// By input and instance of the job that took: who wrote the newest.
    taken: BTreeMap<(usize, u64), Option<JobId>>,
    /// By output: the jobs that published, in their order, and when.
    published: BTreeMap<usize, Vec<(u64, Instant)>>,
    /// By operation and instance: where its release stands, and its nominal arrival.
    releases: BTreeMap<(usize, u64), (usize, Instant)>,
    /// By operations from and to, and instance of the second: where the message stands, and of which instance of the first it told.
    messages: BTreeMap<(usize, usize, u64), (usize, u64)>,
    /// By operation: its node.
    nodes: Vec<usize>,
    /// By operation and instance: the jobs that pushed the events that it took.
    delivered: BTreeMap<(usize, u64), Vec<JobId>>,
}

impl Facts {
    fn of(metadata: &Metadata, records: &[Record]) -> Self {
        let node = |operation: &OperationEntry| metadata.lanes[operation.lane].node;
        let nodes = metadata.operations.iter().map(node).collect();
        let mut facts = Facts { nodes, ..Facts::default() };
        let mut last: BTreeMap<u32, JobId> = BTreeMap::new();
        for (place, record) in records.iter().enumerate() {
            if let Some(Complete { job, nominal, .. }) = Complete::read(record) {
                let times = (nominal.as_nanos(), record.time.as_nanos(), place);
                facts.completions.insert((job.operation.index(), job.instance), times);
            } else if let Some(Release { job, nominal, .. }) = Release::read(record) {
                facts.releases.insert((job.operation.index(), job.instance), (place, nominal));
            } else if let Some(Receive { job, from: JobOrNone(Some(from)), .. }) = Receive::read(record) {
                let between = (from.operation.index(), job.operation.index(), job.instance);
                facts.messages.insert(between, (place, from.instance));
            } else if let Some(Take { job, from, input, .. }) = Take::read(record) {
                // Who takes none goes on with what has been taken before.
                let newest = from.or(last.get(&input).copied());
                last.extend(newest.map(|from| (input, from)));
                facts.taken.insert((input as usize, job.instance), newest);
            } else if let Some(Deliver { job, from: Some(from), .. }) = Deliver::read(record) {
                facts.delivered.entry((job.operation.index(), job.instance)).or_default().push(from);
            } else if let Some(Publish { job, output, .. }) = Publish::read(record) {
                facts.published.entry(output as usize).or_default().push((job.instance, record.time));
            }
        }
        facts
    }

    /// Whether the operation at this place of the chain and the next are on different nodes.
    fn are_apart(&self, chain: &ChainEntry, before: usize) -> bool {
        self.nodes[chain.operations[before]] != self.nodes[chain.operations[before + 1]]
    }

    /// The sample that the job of the chain's operation at `place` carries.
    fn sample_of(&self, chain: &ChainEntry, place: usize, instance: u64) -> Option<u64> {
        let Some(before) = place.checked_sub(1) else {
            return Some(instance);
        };
        let from = match &chain.hops[before] {
            HopEntry::Successor { inputs } if inputs.is_empty() => {
                let this = self.releases.get(&(chain.operations[place], instance))?.0;
                let other = self.completions.get(&(chain.operations[before], instance))?.2;
                let heard = self.messages.get(&(chain.operations[before], chain.operations[place], instance));
                if other > this || self.are_apart(chain, before) && heard.is_none_or(|heard| heard.0 > this) {
                    return None;
                }
                instance
            }
            HopEntry::Successor { inputs } | HopEntry::Reads { inputs } => {
                let newest_by = |input: &usize| self.taken.get(&(*input, instance)).copied().flatten();
                inputs.iter().filter_map(newest_by).map(|from| from.instance).max()?
            }
            HopEntry::Events | HopEntry::TakenEvents => {
                let of_chain = |from: &&JobId| from.operation.index() == chain.operations[before];
                let delivered = self.delivered.get(&(chain.operations[place], instance))?;
                delivered.iter().filter(of_chain).map(|from| from.instance).max()?
            }
            HopEntry::Triggers { .. } if self.are_apart(chain, before) => {
                self.messages.get(&(chain.operations[before], chain.operations[place], instance))?.1
            }
            HopEntry::Triggers { output, every, on: CountedValues::All } => {
                self.published.get(output)?.get(*every as usize * (instance as usize + 1) - 1)?.0
            }
            // Which values are changes is not told, but the instance arrived with one.
            HopEntry::Triggers { output, on: CountedValues::Changes, .. } => {
                let arrival = self.releases.get(&(chain.operations[place], instance))?.1;
                self.published.get(output)?.iter().find(|(_, at)| *at == arrival)?.0
            }
        };
        self.sample_of(chain, before, from)
    }
}

pub fn by_definition(metadata: &Metadata, chain: &ChainEntry, records: &[Record], until: i64) -> Defined {
    let facts = Facts::of(metadata, records);
    let (first, last) = (chain.operations[0], *chain.operations.last().expect("two at least"));
    let of = |operation: usize| facts.completions.range((operation, 0)..=(operation, u64::MAX));
    let samples: BTreeMap<u64, i64> =
        of(first).map(|((_, instance), (nominal, ..))| (*instance, *nominal)).collect();
    let mut ends: Vec<(usize, i64, Option<u64>)> = of(last)
        .map(|((_, instance), (_, time, place))| {
            (*place, *time, facts.sample_of(chain, chain.operations.len() - 1, *instance))
        })
        .collect();
    ends.sort_unstable();
    let used_by = |sample: u64| ends.iter().find(|(.., used)| *used == Some(sample));
    let ages = ends.iter().filter_map(|(_, time, sample)| Some(time - samples[&(*sample)?]));
    let latencies: Vec<i64> = samples
        .iter()
        .filter_map(|(sample, nominal)| used_by(*sample).map(|(_, time, _)| time - nominal))
        .collect();
    let is_from_outside = metadata.tasks[metadata.operations[first].task].released_by == ReleasedBy::Outside;
    // Newer samples are those of later nominal releases.
    let dated = |sample: u64| (samples[&sample], sample);
    let used: Vec<(usize, i64, (i64, u64))> =
        ends.iter().filter_map(|(place, time, sample)| Some((*place, *time, dated((*sample)?)))).collect();
    let all: Vec<(i64, u64)> = samples.keys().map(|sample| dated(*sample)).collect();
    // The longest wait that each completion ends: of events just after samples, none of those before the first that was used.
    let mut waits: BTreeMap<usize, i64> = BTreeMap::new();
    for sample in all.iter().filter(|sample| used.first().is_some_and(|first| **sample >= first.2)) {
        if let Some((place, time, _)) = used.iter().find(|(.., used)| used > sample) {
            let wait = waits.entry(*place).or_insert(0);
            *wait = (*wait).max(time - sample.0);
        }
    }
    // The longest that an event has been waiting at the end.
    let is_unseen = |sample: &&(i64, u64)| {
        !used.iter().any(|(.., used)| if is_from_outside { used >= *sample } else { used > *sample })
    };
    let waiting = all.iter().filter(is_unseen).min().map(|(nominal, _)| until - nominal);
    let is_overdue = chain.reaction.zip(waiting).is_some_and(|(limit, waiting)| waiting > limit.as_nanos());
    let newest = used.iter().map(|(.., sample)| *sample).max();
    let used = latencies.len() as u64;
    let overtaken = all.iter().filter(|sample| newest.is_some_and(|newest| **sample <= newest)).count();
    let reactions = if is_from_outside { latencies.clone() } else { waits.into_values().collect() };
    let times = |mut times: Vec<i64>, limit: Option<talea_time::Duration>| {
        times.sort_unstable();
        let is_beyond = |ns: &&i64| limit.is_some_and(|limit| **ns > limit.as_nanos());
        Times { missed: times.iter().filter(is_beyond).count() as u64, times }
    };
    let reaction = times(reactions, chain.reaction);
    Defined {
        age: times(ages.collect(), chain.age),
        reaction: Times { missed: reaction.missed + u64::from(is_overdue), ..reaction },
        latency: times(latencies, chain.latency),
        samples: samples.len() as u64,
        used,
        unused: overtaken as u64 - used,
        without_sample: ends.iter().filter(|(.., sample)| sample.is_none()).count() as u64,
    }
}
