//! Events of channels: arrows from where they are pushed to the jobs that take them, which say how long they were on the way.

use super::messages::DebugAnnotation;
use super::packets::{Flow, Mark, Packets, Subscriber, Track, annotation, typed};
use crate::decode::{Shown, since};
use std::collections::{BTreeMap, VecDeque};
use talea_record::event::{Deliver, EventsLost, Push};
use talea_record::{EventLossReason, JobId, Metadata, PublicationEntry, Record, Typed};
use talea_time::Instant;

/// Events of a publication whose push is remembered until they are taken: the latest ones.
const REMEMBERED: usize = 1024;

/// What was pushed at the place in the trace that has been reached.
#[derive(Default)]
pub(super) struct Channels {
    /// By publication: who pushed, and when.
    pushed: BTreeMap<usize, VecDeque<(JobId, Instant)>>,
}

impl Channels {
    /// Shows a record of an event, if what it is about is known.
    pub fn record(&mut self, metadata: &Metadata, record: &Record, out: &mut Packets) {
        let shown = match record.typed() {
            Typed::Push(push) => self.push(metadata, record.time, push),
            Typed::Deliver(deliver) => self.deliver(metadata, record.time, deliver),
            Typed::EventsLost(lost) => lost_of(metadata, lost),
            _ => None,
        };
        if let Some((lane, mark)) = shown.filter(|(lane, _)| *lane < metadata.lanes.len()) {
            out.instant(record.time, Track::Lane { lane, slot: 0 }, mark);
        }
    }

    fn push(&mut self, metadata: &Metadata, time: Instant, push: Push) -> Option<(usize, Mark)> {
        let (index, from) = (push.publication as usize, push.job);
        let entry = metadata.publications.get(index)?;
        let pushed = self.pushed.entry(index).or_default();
        if pushed.len() == REMEMBERED {
            pushed.pop_front();
        }
        pushed.push_back((from, time));
        let flow = |to: Subscriber| Flow::Event { publication: index, to, from };
        let released = entry.subscribers.iter().map(|task| flow(Subscriber::Task(*task)));
        let takers = entry.takers.iter().map(|operation| flow(Subscriber::Operation(*operation)));
        let flows = match entry.operation {
            Some(_) => released.chain(takers).collect(),
            None => vec![flow(Subscriber::Anybody)],
        };
        let name = format!("push: {} #{}", entry.event_type, from.instance);
        let annotations = Vec::from_iter(channel_of(entry));
        let mark = Mark { name, category: "push", annotations, flows };
        Some((push.lane.into(), mark))
    }

    fn deliver(&self, metadata: &Metadata, time: Instant, deliver: Deliver) -> Option<(usize, Mark)> {
        let Deliver { job, from, publication, lane, .. } = deliver;
        let operation = job.operation.index();
        let task = metadata.operations.get(operation)?.task;
        let mut mark = Mark { name: "deliver".into(), category: "deliver", ..Mark::default() };
        if let Some(index) = publication.map(|publication| publication as usize) {
            let entry = metadata.publications.get(index)?;
            mark.name = format!("deliver: {}", entry.event_type);
            mark.annotations.extend(channel_of(entry));
            if let Some(from) = from {
                mark.name += &format!(" #{}", from.instance);
                let mut pushed = self.pushed.get(&index).into_iter().flatten().rev();
                let at = pushed.find(|(other, _)| *other == from).map(|(_, at)| *at);
                mark.annotations.extend(at.map(|at| annotation("delay_ns", since(time, at))));
                let to = match entry.operation {
                    Some(_) if entry.takers.contains(&operation) => Subscriber::Operation(operation),
                    Some(_) => Subscriber::Task(task),
                    None => Subscriber::Anybody,
                };
                mark.flows.push(Flow::Event { publication: index, to, from });
            }
        }
        Some((lane.into(), mark))
    }
}

/// The channel of events that a program pushes, which no operation's name says.
fn channel_of(entry: &PublicationEntry) -> Option<DebugAnnotation> {
    entry.operation.is_none().then(|| typed("channel", Shown::Text(entry.channel.as_str().into())))
}

fn lost_of(metadata: &Metadata, lost: EventsLost) -> Option<(usize, Mark)> {
    let entry = metadata.operations.get(lost.operation as usize)?;
    let why = match lost.why.known() {
        Some(EventLossReason::Discarded) => "discarded",
        Some(EventLossReason::Expired) => "expired",
        None => "lost",
    };
    let name = format!("{why}: {} for {}", lost.events, entry.name);
    Some((entry.lane, Mark { name, category: "lost", ..Mark::default() }))
}
