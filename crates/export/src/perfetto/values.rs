//! Values: arrows from where they are published to where they are taken, which say how old they are then.

use super::packets::{Flow, Mark, Packets, Track, annotation};
use crate::decode::since;
use std::collections::VecDeque;
use talea_record::event::{Drop, Publish, Take};
use talea_record::{DropReason, Metadata, Record, Typed};
use talea_time::Instant;

/// Values of an output whose age is known when they are taken: the latest ones.
const REMEMBERED: usize = 1024;

/// What was published at the place in the trace that has been reached.
pub(super) struct Values {
    /// By output: the inputs that read it.
    readers: Vec<Vec<usize>>,
    /// By output: instances of who published, and from when on readers see it.
    published: Vec<VecDeque<(u64, Instant)>>,
}

impl Values {
    pub fn new(metadata: &Metadata) -> Self {
        let mut readers = vec![Vec::new(); metadata.outputs.len()];
        for (index, input) in metadata.inputs.iter().enumerate() {
            readers[input.output].push(index);
        }
        Values { published: vec![VecDeque::new(); readers.len()], readers }
    }

    /// Shows a record of a value, if its output or input is known.
    pub fn record(&mut self, metadata: &Metadata, record: &Record, out: &mut Packets) {
        let Some(lane) = record.lane().filter(|lane| *lane < metadata.lanes.len()) else { return };
        let mark = match record.typed() {
            Typed::Publish(publish) => self.publish(metadata, publish),
            Typed::Take(take) => self.take(metadata, record.time, take),
            Typed::Drop(drop) => dropped(metadata, drop),
            _ => None,
        };
        if let Some(mark) = mark {
            out.instant(record.time, Track::Lane { lane, slot: 0 }, mark);
        }
    }

    fn publish(
        &mut self,
        metadata: &Metadata,
        Publish { job, output, visible, .. }: Publish,
    ) -> Option<Mark> {
        let (index, instance) = (output as usize, job.instance);
        let entry = metadata.outputs.get(index)?;
        let published = &mut self.published[index];
        if published.len() == REMEMBERED {
            published.pop_front();
        }
        published.push_back((instance, visible));
        let flow = |input: &usize| Flow::Value { input: *input, instance };
        Some(Mark {
            name: format!("publish: {} #{instance}", entry.name),
            category: "publish",
            annotations: vec![annotation("visible_ns", since(visible, metadata.start))],
            flows: self.readers[index].iter().map(flow).collect(),
        })
    }

    fn take(&self, metadata: &Metadata, time: Instant, take: Take) -> Option<Mark> {
        let Take { from, input, values, .. } = take;
        let entry = metadata.inputs.get(input as usize)?;
        let mut mark = Mark { name: format!("take: {}", entry.name), category: "take", ..Mark::default() };
        mark.annotations.push(annotation("values", i64::from(values)));
        if let Some(from) = from {
            mark.name.push_str(&format!(" #{}", from.instance));
            let published = self.published[entry.output].iter().rev();
            let visible = published.clone().find(|(instance, _)| *instance == from.instance);
            mark.annotations.extend(visible.map(|(_, visible)| annotation("age_ns", since(time, *visible))));
            mark.flows.push(Flow::Value { input: input as usize, instance: from.instance });
        }
        Some(mark)
    }
}

fn dropped(metadata: &Metadata, Drop { job, input, why, .. }: Drop) -> Option<Mark> {
    let entry = metadata.inputs.get(input as usize)?;
    Some(Mark {
        name: match why.known() {
            Some(DropReason::Link) => format!("lost by a link: {} #{}", entry.name, job.instance),
            Some(DropReason::NoRoom) | None => format!("dropped: {} #{}", entry.name, job.instance),
        },
        category: "drop",
        annotations: Vec::new(),
        flows: vec![Flow::Value { input: input as usize, instance: job.instance }],
    })
}
