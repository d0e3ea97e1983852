//! What each figure of a report takes: without these events it is not known, however many records there are.

use super::Report;
use serde_json::{Map, Value};
use talea_record::{Event, Origin, RecordedEvents};

/// A figure of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Instances and jobs released.
    Released,
    /// Completed.
    Completed,
    /// Completed in time.
    Met,
    /// Not in time.
    Missed,
    /// Skipped.
    Skipped,
    /// Aborted.
    Aborted,
    /// How often jobs were preempted.
    Preemptions,
    /// From release to completion.
    Response,
    /// How late releases were.
    Lateness,
    /// Jobs that began, and how many were in the lane.
    Started,
    /// Processor time of jobs.
    Used,
    /// How often a job got a processor.
    Switches,
    /// Times of chains.
    Chains,
    /// Events that were pushed.
    Pushed,
    /// Events that were delivered.
    Delivered,
    /// Events that were lost.
    EventsLost,
    /// How long events were on the way.
    Delay,
}

impl Figure {
    /// Whether it takes that somebody sees jobs get and lose processors.
    fn takes_switches(self) -> bool {
        matches!(self, Figure::Preemptions | Figure::Used | Figure::Switches)
    }

    /// Whether a trace tells what this figure takes.
    pub fn is_known(self, recorded: &RecordedEvents) -> bool {
        recorded.has_all(self.needs())
    }

    fn needs(self) -> &'static [Event] {
        match self {
            Figure::Released | Figure::Lateness => &[Event::RELEASE],
            Figure::Completed | Figure::Met | Figure::Response => &[Event::COMPLETE],
            Figure::Missed => &[Event::RELEASE, Event::COMPLETE, Event::ABORT],
            Figure::Skipped => &[Event::SKIP],
            Figure::Aborted => &[Event::ABORT],
            Figure::Preemptions => &[Event::PREEMPT],
            Figure::Started => &[Event::START],
            Figure::Used => {
                &[Event::START, Event::PREEMPT, Event::WAIT, Event::RESUME, Event::COMPLETE, Event::ABORT]
            }
            Figure::Switches => &[Event::START, Event::RESUME],
            Figure::Pushed => &[Event::PUSH],
            Figure::Delivered => &[Event::DELIVER],
            Figure::EventsLost => &[Event::EVENT_LOST],
            Figure::Delay => &[Event::PUSH, Event::DELIVER],
            Figure::Chains => &[Event::RELEASE, Event::COMPLETE, Event::ABORT, Event::PUBLISH, Event::TAKE],
        }
    }
}

/// The figures by the keys that they have in JSON.
const KEYS: [(&str, &[Figure]); 32] = [
    ("offered", &[Figure::Released, Figure::Skipped]),
    ("released", &[Figure::Released]),
    ("completed", &[Figure::Completed]),
    ("met", &[Figure::Met]),
    ("missed", &[Figure::Missed]),
    ("skipped", &[Figure::Skipped]),
    ("aborted", &[Figure::Aborted]),
    ("unfinished", &[Figure::Missed]),
    ("preemptions", &[Figure::Preemptions]),
    ("response_ns", &[Figure::Response]),
    ("worst_lateness_ns", &[Figure::Response]),
    ("release_lateness_ns", &[Figure::Lateness]),
    ("jobs", &[Figure::Started]),
    ("max_queue", &[Figure::Started]),
    ("busy_ns", &[Figure::Used]),
    ("utilisation", &[Figure::Used]),
    ("job_switches", &[Figure::Switches]),
    ("samples_with_critical_failure", &[Figure::Missed, Figure::Skipped]),
    ("mean_effectiveness", &[Figure::Missed, Figure::Skipped]),
    ("mean_efficiency", &[Figure::Missed, Figure::Skipped]),
    ("latency", &[Figure::Chains]),
    ("reaction", &[Figure::Chains]),
    ("age", &[Figure::Chains]),
    ("samples", &[Figure::Chains]),
    ("used", &[Figure::Chains]),
    ("unused", &[Figure::Chains]),
    ("without_sample", &[Figure::Chains]),
    ("pushed", &[Figure::Pushed]),
    ("delivered", &[Figure::Delivered]),
    ("discarded", &[Figure::EventsLost]),
    ("expired", &[Figure::EventsLost]),
    ("delay_ns", &[Figure::Delay]),
];

impl Report {
    /// Whether the lanes of the node share its processors in the kernel, where no job sees another one take its place: real
    /// threads without real-time priorities. How often their jobs got and lost processors, and for how long they had them, is not
    /// known then.
    pub fn shares_unseen(&self, node: &str) -> bool {
        let has_lanes = || self.lanes.iter().any(|lane| lane.node == node && lane.discipline != "thread");
        self.origin == (Origin::Threads { realtime: false }) && has_lanes()
    }

    /// The report as JSON, in which figures that nobody knows are null: those that the trace does not tell, and those of
    /// [processors that are shared unseen](Self::shares_unseen).
    pub fn to_json(&self, recorded: &RecordedEvents) -> Value {
        let mut report = serde_json::to_value(self).expect("names are texts, and numbers are finite");
        let is_told = |figure: Figure| figure.is_known(recorded);
        for section in ["tasks", "operations", "lanes", "nodes", "chains", "subscriptions"] {
            let entries = report[section].as_array_mut().into_iter().flatten();
            entries.filter_map(Value::as_object_mut).for_each(|entry| conceal(entry, is_told));
        }
        report["samples"].as_object_mut().into_iter().for_each(|samples| conceal(samples, is_told));
        let is_seen = |figure: Figure| !figure.takes_switches();
        let nodes_of = [
            ("operations", self.operations.iter().map(|one| self.lanes[one.lane].node.as_str()).collect()),
            ("lanes", self.lanes.iter().map(|lane| lane.node.as_str()).collect()),
            ("nodes", self.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>()),
        ];
        for (section, nodes) in nodes_of {
            let entries = report[section].as_array_mut().into_iter().flatten().zip(nodes);
            let unseen = entries.filter(|(_, node)| self.shares_unseen(node));
            unseen.filter_map(|(entry, _)| entry.as_object_mut()).for_each(|entry| conceal(entry, is_seen));
        }
        report
    }
}

fn conceal(entry: &mut Map<String, Value>, is_known: impl Fn(Figure) -> bool) {
    for (key, figures) in KEYS {
        if let Some(value) = entry.get_mut(key)
            && !figures.iter().all(|figure| is_known(*figure))
        {
            *value = Value::Null;
        }
    }
}
