//! The schedule as CSV: a row per segment.

use std::io::Write;
use talea_insight::schedule::{Runner, Segment, Segments};
use talea_record::{Definition, Metadata, Record, Sink};
use talea_time::{Duration, Instant};

/// Writes the schedule as CSV: `start_ns,end_ns,node,cpu,task,subtask,job`, times counted from
/// [`Metadata::start`], names of nodes, tasks and subtasks, the number of the instance as job. The
/// processor is empty if the records do not name it. Where jobs shared a processor unseen, task and subtask are `?` and the
/// job is empty. What was added to a hierarchy while the run lasted is task and subtask by its name there, without a job. Jobs of operations that the metadata do not know are left out.
pub struct ScheduleCsv<W: Write> {
    segments: Segments,
    rows: Rows<W>,
}

/// Placeholder: several tasks shared the processor unobserved.
const UNSEEN: &str = "?";

struct Rows<W: Write> {
    metadata: Metadata,
    writer: csv::Writer<W>,
    /// In how much of the time that was written nobody saw which job ran.
    unseen: Duration,
    /// The first failure, after which nothing more is written.
    failure: Option<csv::Error>,
}

impl<W: Write> ScheduleCsv<W> {
    /// Writes to `output`, beginning with the line of column names.
    pub fn new(metadata: &Metadata, output: W) -> Self {
        let mut writer = csv::Writer::from_writer(output);
        let failure =
            writer.write_record(["start_ns", "end_ns", "node", "cpu", "task", "subtask", "job"]).err();
        let rows = Rows { metadata: metadata.clone(), writer, unseen: Duration::ZERO, failure };
        ScheduleCsv { segments: Segments::new(metadata), rows }
    }

    /// Writes what is left; jobs that still run lose their processors at `end`. Returns in how much of the written time of
    /// processors nobody saw which job had them.
    ///
    /// # Errors
    /// The first failure to write.
    pub fn finish(self, end: Instant) -> Result<Duration, csv::Error> {
        let mut rows = self.rows;
        self.segments.finish(end, |segment| rows.write(&segment));
        match rows.failure {
            Some(failure) => Err(failure),
            None => Ok(rows.writer.flush().map(|()| rows.unseen)?),
        }
    }
}

impl<W: Write> Rows<W> {
    fn write(&mut self, segment: &Segment) {
        let Rows { metadata, .. } = self;
        let (task, subtask, job) = match &segment.runner {
            Runner::Member(name) => (&**name, &**name, None),
            Runner::SharedUnseen(_) => {
                let length = segment.end.saturating_since(segment.start);
                self.unseen = Duration::from_nanos(self.unseen.as_nanos().saturating_add(length.as_nanos()));
                (UNSEEN, UNSEEN, None)
            }
            Runner::Job(job) => {
                let operation = job.operation.index();
                let Some(entry) = metadata.operations.get(operation) else { return };
                (
                    metadata.tasks[entry.task].name.as_str(),
                    metadata.subtask_name(operation),
                    Some(job.instance),
                )
            }
        };
        if self.failure.is_some() {
            return;
        }
        let since_start = |time: Instant| time.as_nanos().saturating_sub(metadata.start.as_nanos());
        self.failure = self
            .writer
            .serialize((
                since_start(segment.start),
                since_start(segment.end),
                &metadata.nodes[segment.node].name,
                (segment.cpu != Record::NO_CPU).then_some(segment.cpu),
                task,
                subtask,
                job,
            ))
            .err();
    }
}

impl<W: Write> Sink for ScheduleCsv<W> {
    fn record(&mut self, record: Record) {
        let rows = &mut self.rows;
        self.segments.feed(&record, |segment| rows.write(&segment));
    }

    fn define(&mut self, definition: &Definition) {
        self.rows.metadata.define(definition);
        self.segments.define(definition);
    }
}
