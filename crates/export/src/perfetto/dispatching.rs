//! What lies between the jobs: the cost of dispatching, and how late the release thread was.

use super::jobs::cpu_name;
use super::packets::{Mark, Packets, Track, annotation};
use crate::decode::node_of;
use crate::decode::since;
use std::collections::BTreeMap;
use talea_record::event::{Cost, Timer};
use talea_record::{CostKind, Metadata, Record, Typed};
use talea_time::{Duration, Instant};

const UNIT_NS: i32 = 1;

/// Where the last slice of each track of this module ended.
#[derive(Debug, Default)]
pub(super) struct Dispatching {
    ends: BTreeMap<Track, Instant>,
}

impl Dispatching {
    /// Shows a record, if it is about dispatching.
    pub fn record(&mut self, metadata: &Metadata, record: &Record, out: &mut Packets) {
        let Some(node) = node_of(metadata, record) else { return };
        match record.typed() {
            Typed::Cost(cost) => self.cost(node, record, cost, out),
            Typed::Timer(timer) => self.timer(node, record.time, timer, out),
            _ => {}
        }
    }

    fn cost(&mut self, node: usize, record: &Record, cost: Cost, out: &mut Packets) {
        let track = Track::Dispatching { node, cpu: record.cpu };
        if !out.is_described(track) {
            let name = format!("{} dispatching", cpu_name(record.cpu));
            out.track(track, Some(Track::Node(node)), name);
        }
        let name = match cost.kind.known() {
            Some(CostKind::Switch) => "switch",
            Some(CostKind::Queue) => "queue",
            Some(CostKind::Release) => "release",
            Some(CostKind::Delivery) => "delivery",
            None => "dispatching",
        };
        let cost_ns = cost.length_ns();
        let annotations = vec![annotation("cost_ns", cost_ns), annotation("count", cost.count.into())];
        let mark = Mark { name: name.into(), category: "cost", annotations, flows: Vec::new() };
        let from = record.time.saturating_add(Duration::from_nanos(cost_ns.saturating_neg()));
        self.slice(track, from, record.time, mark, out);
    }

    fn timer(&mut self, node: usize, now: Instant, Timer { due, woken, .. }: Timer, out: &mut Packets) {
        let (track, lateness) = (Track::Releases(node), Track::ReleaseLateness(node));
        if !out.is_described(track) {
            out.track(track, Some(Track::Node(node)), "releases".into());
            out.counter_track(lateness, Some(Track::Node(node)), "release lateness".into(), Some(UNIT_NS));
        }
        let late_ns = since(now, due);
        let annotations =
            vec![annotation("late_ns", late_ns), annotation("woken_after_ns", since(woken, due))];
        let mark = Mark { name: "timer".into(), category: "timer", annotations, flows: Vec::new() };
        self.slice(track, due, now, mark, out);
        out.count(now, lateness, late_ns);
    }

    /// A slice that begins no earlier than the one before on its track ended, for they must not overlap.
    fn slice(&mut self, track: Track, from: Instant, to: Instant, mark: Mark, out: &mut Packets) {
        let end = self.ends.entry(track).or_insert(Instant::from_nanos(0));
        let to = to.max(*end);
        let from = from.max(*end).min(to);
        *end = to;
        out.begin(from, track, mark);
        out.end(to, track, Vec::new());
    }
}
