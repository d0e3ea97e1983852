//! How old the values are that jobs take: a point for each job and input, and beside them how often each age occurs.
//!
//! A value is as old as the sample that it is made of: its age counts from the instant at which the job that wrote it was due for release, to
//! the instant as of which it is taken: when the job begins, and under logical execution time when it arrives.

use crate::chart::{Axis, Chart, Joined, Margin, Mark, Series};
use crate::drawing::COLOURS;
use std::collections::VecDeque;
use talea_record::event::{Release, Take, Typed};
use talea_record::{InputEntry, JobId, Metadata, Record, Sink};
use talea_time::Instant;

/// Jobs of an operation whose releases are remembered: a value is seldom older.
const REMEMBERED: usize = 1024;
const MARKS: [Mark; 5] = [Mark::Disc, Mark::Square, Mark::Triangle, Mark::Cross, Mark::Ring];

/// Takes all records of a trace and makes a chart of the ages in a stretch of it.
#[derive(Debug)]
pub struct Builder<'a> {
    metadata: &'a Metadata,
    from: Instant,
    to: Instant,
    /// By operation: instances and when they were due for release.
    released: Vec<VecDeque<(u64, Instant)>>,
    /// By input: time since the start and age, in milliseconds.
    ages: Vec<Vec<(f64, f64)>>,
}

impl<'a> Builder<'a> {
    /// For jobs that take values from `from` on and before `to`.
    pub fn new(metadata: &'a Metadata, from: Instant, to: Instant) -> Self {
        Builder {
            metadata,
            from,
            to,
            released: vec![VecDeque::new(); metadata.operations.len()],
            ages: vec![Vec::new(); metadata.inputs.len()],
        }
    }

    fn release(&mut self, Release { job, nominal, .. }: Release) {
        if let Some(released) = self.released.get_mut(job.operation.index()) {
            if released.len() == REMEMBERED {
                released.pop_front();
            }
            released.push_back((job.instance, nominal));
        }
    }

    /// When the job was due for release, if that is remembered.
    fn due(&self, job: JobId) -> Option<Instant> {
        let known = self.released.get(job.operation.index())?;
        known.iter().rev().find(|(instance, _)| *instance == job.instance).map(|(_, at)| *at)
    }

    fn take(&mut self, now: Instant, take: Take) {
        let (Some(from), true) = (take.from, self.from <= now && now < self.to) else { return };
        let as_of_arrival =
            self.metadata.inputs.get(take.input as usize).is_some_and(|input| input.as_of_arrival);
        let at = if as_of_arrival { self.due(take.job) } else { Some(now) };
        let (Some(sampled), Some(at)) = (self.due(from), at) else { return };
        let ms = |from: Instant| at.as_nanos().saturating_sub(from.as_nanos()) as f64 / 1e6;
        let point = (ms(self.metadata.start), ms(sampled));
        if let Some(ages) = self.ages.get_mut(take.input as usize) {
            ages.push(point);
        }
    }

    /// What an input is called: as its operation, if that has no other.
    fn name(&self, input: &InputEntry) -> String {
        let is_alone =
            self.metadata.inputs.iter().filter(|other| other.operation == input.operation).count() == 1;
        match self.metadata.operations.get(input.operation) {
            Some(operation) if is_alone => operation.name.clone(),
            _ => input.name.clone(),
        }
    }

    /// The chart; none if no job took a value.
    pub fn finish(self) -> Option<Chart> {
        let inputs = self.metadata.inputs.iter().zip(&self.ages).filter(|(_, points)| !points.is_empty());
        let series: Vec<Series> = inputs
            .enumerate()
            .map(|(index, (input, points))| Series {
                name: self.name(input),
                colour: index % COLOURS.len(),
                mark: MARKS[index % MARKS.len()],
                joined: Joined::Line,
                points: points.clone(),
            })
            .collect();
        let all = || series.iter().flat_map(|series| &series.points);
        all().next()?;
        let x = Axis::over("time since the start of the run (ms)", all().map(|(at, _)| *at));
        let y = Axis::over("age of the newest value (ms)", all().map(|(_, age)| *age).chain([0.0]));
        Some(Chart {
            title: format!("{}: how old the values are that jobs take", self.metadata.system),
            conditions:
                "from the release of the job that wrote the value to the instant as of which it is taken"
                    .into(),
            x,
            y,
            series,
            margin: Margin::Distributions,
        })
    }
}

impl Sink for Builder<'_> {
    fn record(&mut self, record: Record) {
        match record.typed() {
            Typed::Release(release) => self.release(release),
            Typed::Take(take) => self.take(record.time, take),
            _ => {}
        }
    }
}
