//! A part of a run's schedule as a picture: a row per lane, a colour per task, a cross per miss. What was added to a hierarchy while the
//! run lasted has a row and a colour from when it first has a processor in that part on. Where several jobs had begun on a
//! processor and it was not recorded which of them ran, the rows of all their lanes show that in a colour of its own.

use crate::drawing::{Owner, Span, TimeLine};
use std::collections::HashMap;
use std::sync::Arc;
use talea_insight::{Runner, Segment, Segments};
use talea_record::{Definition, JobId, Metadata, Record, Sink, Typed};
use talea_time::Instant;

/// Collects from records what the picture shows.
pub struct Builder {
    line: TimeLine,
    segments: Segments,
    start: Instant,
    from: Instant,
    to: Instant,
    rows: Rows,
}

/// In which row what is drawn.
struct Rows {
    /// Names of nodes, where there are several.
    nodes: Option<Vec<String>>,
    /// Row and colour of what was added, by node and name.
    added: HashMap<(usize, Arc<str>), (usize, usize)>,
    /// Lane and task, by operation.
    places: Vec<(usize, usize)>,
    /// Whether the operation's completion may be its task's, by operation.
    is_last: Vec<bool>,
}

impl Builder {
    /// For the stretch of the run between `from` and `to`.
    pub fn new(metadata: &Metadata, from: Instant, to: Instant) -> Self {
        let several = metadata.nodes.len() > 1;
        let rows = Rows {
            nodes: several.then(|| metadata.nodes.iter().map(|node| node.name.clone()).collect()),
            added: HashMap::new(),
            places: metadata.operations.iter().map(|operation| (operation.lane, operation.task)).collect(),
            is_last: metadata.operations.iter().map(|operation| operation.is_last).collect(),
        };
        let row = |lane: &talea_record::LaneEntry| rows.title(lane.node, &lane.label, &lane.discipline);
        let ms = |instant: Instant| instant.saturating_since(metadata.start).as_secs_f64() * 1e3;
        let line = TimeLine {
            title: format!("{} under {}", metadata.system, metadata.strategy),
            rows: metadata.lanes.iter().map(row).collect(),
            kinds: metadata.tasks.iter().map(|task| task.name.clone()).collect(),
            from_ms: ms(from),
            to_ms: ms(to),
            spans: Vec::new(),
            marks: Vec::new(),
        };
        Builder { line, segments: Segments::new(metadata), start: metadata.start, from, to, rows }
    }

    /// The picture of a run whose last record is of instant `end`.
    pub fn finish(self, end: Instant) -> TimeLine {
        let Builder { mut line, segments, start, from, to, mut rows } = self;
        segments.finish(end, |segment| add(&mut line, &mut rows, start, (from, to), &segment));
        line
    }
}

impl Sink for Builder {
    fn record(&mut self, record: Record) {
        let Builder { line, segments, start, from, to, rows } = self;
        segments.feed(&record, |segment| add(line, rows, *start, (*from, *to), &segment));
        let operation = record.job().operation.index();
        let ended = match record.typed() {
            Typed::Abort(_) => true,
            Typed::Complete(complete) => {
                rows.is_last.get(operation) == Some(&true) && record.time > complete.deadline
            }
            _ => false,
        };
        if ended
            && (*from..=*to).contains(&record.time)
            && let Some((lane, _)) = rows.places.get(operation)
        {
            line.marks.push((*lane, record.time.saturating_since(*start).as_secs_f64() * 1e3));
        }
    }

    fn define(&mut self, definition: &Definition) {
        self.segments.define(definition);
        if let Definition::Operation { number, entry, task } = definition
            && let Some(place) = self.rows.places.get_mut(*number)
            && let Some(kind) = self.line.kinds.get_mut(entry.task)
            && entry.lane < self.line.rows.len()
        {
            *place = (entry.lane, entry.task);
            kind.clone_from(&task.name);
        }
    }
}

impl Rows {
    /// What a row is called.
    fn title(&self, node: usize, what: &str, kind: &str) -> String {
        match &self.nodes {
            Some(nodes) => format!("{}: {what} ({kind})", nodes[node]),
            None => format!("{what} ({kind})"),
        }
    }

    /// Row and colour of what was added, which are there from the first time on.
    fn of_added(&mut self, line: &mut TimeLine, node: usize, name: &Arc<str>) -> (usize, usize) {
        let key = (node, name.clone());
        if let Some(known) = self.added.get(&key) {
            return *known;
        }
        line.rows.push(self.title(node, name, "thread"));
        line.kinds.push(name.to_string());
        let own = (line.rows.len() - 1, line.kinds.len() - 1);
        self.added.insert(key, own);
        own
    }
}

fn add(
    line: &mut TimeLine,
    rows: &mut Rows,
    start: Instant,
    (from, to): (Instant, Instant),
    segment: &Segment,
) {
    if segment.end < from || segment.start > to {
        return;
    }
    // Only the stretch: a damaged record can put a segment's start anywhere.
    let ms = |instant: Instant| instant.max(from).min(to).saturating_since(start).as_secs_f64() * 1e3;
    let span =
        |row: usize, owner: Owner| Span { row, owner, start_ms: ms(segment.start), end_ms: ms(segment.end) };
    let of_job = |job: &JobId| rows.places.get(job.operation.index()).copied();
    match &segment.runner {
        Runner::Job(job) => line.spans.extend(of_job(job).map(|(row, kind)| span(row, Owner::Kind(kind)))),
        Runner::Member(name) => {
            let (row, kind) = rows.of_added(line, segment.node, name);
            line.spans.push(span(row, Owner::Kind(kind)));
        }
        Runner::SharedUnseen(jobs) => {
            line.spans.extend(jobs.iter().filter_map(of_job).map(|(row, _)| span(row, Owner::SharedUnseen)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::Criticality;
    use talea_record::Event;
    use talea_record::{Activity, LaneEntry, NodeEntry, OperationEntry, Origin, ReleasedBy, TaskEntry};
    use talea_time::{Duration, Work};

    const NAMES: [&str; 2] = ["nav", "route"];

    /// Two tasks with a lane each on one processor.
    fn metadata(origin: Origin) -> Metadata {
        let period = Duration::from_millis(10);
        let task = |name: &str| TaskEntry {
            name: name.into(),
            period,
            deadline: period,
            phase: Duration::ZERO,
            jitter: Duration::ZERO,
            jitter_stream: 0,
            criticality: Criticality::High,
            activity: Activity::Task,
            released_by: ReleasedBy::Period,
            inherits_deadline: false,
            keeps_events: false,
        };
        let lane = |level, name: &str| LaneEntry {
            node: 0,
            level,
            label: name.into(),
            discipline: "fifo".into(),
            under: None,
        };
        let operation = |index: usize, name: &str| OperationEntry {
            name: name.into(),
            task: index,
            lane: index,
            wcet: Work::from_millis(2),
            predecessors: Vec::new(),
            is_last: true,
            keeps_reads: false,
            is_of_channel: false,
            keeps_events: false,
        };
        Metadata {
            system: "test".into(),
            strategy: "rms".into(),
            origin,
            start: Instant::from_nanos(0),
            nodes: vec![NodeEntry {
                name: "local".into(),
                cpus: vec![0],
                switches: Default::default(),
                decided_by: Default::default(),
            }],
            lanes: vec![lane(0, NAMES[0]), lane(1, NAMES[1])],
            tasks: NAMES.map(task).into(),
            operations: vec![operation(0, NAMES[0]), operation(1, NAMES[1])],
            schedulers: Vec::new(),
            edges: Vec::new(),
            threads: Vec::new(),
            kernel_policies: Vec::new(),
            outputs: Vec::new(),
            inputs: Vec::new(),
            publications: Vec::new(),
            chains: Vec::new(),
            names_senders: true,
            promise_tolerance: None,
            keeps_posts: false,
            recorded: None,
            unrecorded: std::collections::BTreeSet::new(),
            seed: None,
            realtime_offset_ns: None,
        }
    }

    /// The job of the lower lane runs from 1 ms to 8 ms, that of the higher one begins within it and ends at 5 ms.
    fn picture(origin: Origin) -> TimeLine {
        let ms = |ms: i64| Instant::from_nanos(ms * 1_000_000);
        let mut builder = Builder::new(&metadata(origin), ms(0), ms(10));
        let events =
            [(Event::START, 1, 1), (Event::START, 2, 0), (Event::COMPLETE, 5, 0), (Event::COMPLETE, 8, 1)];
        for (event, at, operation) in events {
            let job = JobId { operation: talea_model::OperationId::from_index(operation), instance: 0 };
            let words = [0, ms(10).as_nanos() as u64];
            let source = operation as u16;
            builder.record(Record { time: ms(at), causal: job.pack(), words, event, source, cpu: 0, arg: 0 });
        }
        builder.finish(ms(10))
    }

    #[test]
    fn what_nobody_saw_is_in_the_rows_of_all_and_has_a_colour_of_its_own() {
        let line = picture(Origin::Threads { realtime: false });
        let shared = |row| Span { row, owner: Owner::SharedUnseen, start_ms: 2.0, end_ms: 5.0 };
        let own = |start_ms, end_ms| Span { row: 1, owner: Owner::Kind(1), start_ms, end_ms };
        assert_eq!(line.spans, [own(1.0, 2.0), shared(1), shared(0), own(5.0, 8.0)]);
        assert!(line.has_unseen() && line.svg().expect("it is drawn").contains("shared unseen"));
    }

    #[test]
    fn what_was_added_to_a_hierarchy_has_a_row_and_a_colour_of_its_own() {
        use talea_record::event::{Flag, Member, Switch};
        use talea_record::{EdgeEntry, MemberRole, SchedulerEntry};
        let ms = |ms: i64| Instant::from_nanos(ms * 1_000_000);
        let mut metadata = metadata(Origin::Threads { realtime: true });
        let (name, kind) = ("FP".to_owned(), "fixed-priority".into());
        metadata.schedulers = vec![SchedulerEntry { node: 0, name: name.clone(), kind }];
        let mut builder = Builder::new(&metadata, ms(0), ms(10));
        let entry = EdgeEntry { node: 0, parent: name, child: "hog".into(), guarantee: "NULL".into() };
        builder.define(&Definition::Edge { number: 0, entry });
        let role = MemberRole::Scheduled.into();
        let member = Member { tid: 7, started_by: 0, edge: Some(0), node: 0, role };
        builder.record(member.at(ms(0), Record::NO_CPU));
        for (at, from_tid, to_tid) in [(1, 0, 7), (3, 7, 9), (4, 9, 7), (6, 7, 0)] {
            let (from_pid, to_pid) = (from_tid, to_tid);
            builder
                .record(Switch { from_tid, to_tid, from_pid, to_pid, preempted: Flag(false) }.at(ms(at), 0));
        }
        let line = builder.finish(ms(10));
        let own = |start_ms, end_ms| Span { row: 2, owner: Owner::Kind(2), start_ms, end_ms };
        assert_eq!(line.spans, [own(1.0, 3.0), own(4.0, 6.0)]);
        assert_eq!((&line.rows[2][..], &line.kinds[2][..]), ("hog (thread)", "hog"));
    }

    #[test]
    fn with_priorities_the_picture_has_no_such_colour() {
        let line = picture(Origin::Threads { realtime: true });
        assert_eq!(line.spans[1], Span { row: 0, owner: Owner::Kind(0), start_ms: 2.0, end_ms: 5.0 });
        assert!(!line.has_unseen() && !line.svg().expect("it is drawn").contains("shared unseen"));
    }
}
