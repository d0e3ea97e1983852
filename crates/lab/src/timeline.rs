//! A stretch of a run's schedule as a picture: a row per lane, a colour per task, a cross per miss.

use crate::figure::{Span, TimeLine};
use talea_time::Instant;
use talea_trace::{Event, Metadata, Record, Segment, Segments, Sink};

/// Collects from records what the picture shows.
pub struct Builder {
    line: TimeLine,
    segments: Segments,
    start: Instant,
    from: Instant,
    to: Instant,
    /// Lane and task, by operation.
    places: Vec<(usize, usize)>,
    /// Whether the operation's completion may be its task's, by operation.
    is_last: Vec<bool>,
}

impl Builder {
    /// For the stretch of the run between `from` and `to`.
    pub fn new(metadata: &Metadata, from: Instant, to: Instant) -> Self {
        let several = metadata.nodes.len() > 1;
        let row = |lane: &talea_trace::LaneEntry| match several {
            true => format!("{}: {} ({})", metadata.nodes[lane.node].name, lane.label, lane.discipline),
            false => format!("{} ({})", lane.label, lane.discipline),
        };
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
        let places = metadata.operations.iter().map(|operation| (operation.lane, operation.task)).collect();
        let is_last = metadata.operations.iter().map(|operation| operation.is_last).collect();
        Builder { line, segments: Segments::new(metadata), start: metadata.start, from, to, places, is_last }
    }

    /// The picture of a run whose last record is of instant `end`.
    pub fn finish(self, end: Instant) -> TimeLine {
        let Builder { mut line, segments, start, from, to, places, .. } = self;
        segments.finish(end, |segment| add(&mut line, &places, start, (from, to), &segment));
        line
    }
}

impl Sink for Builder {
    fn record(&mut self, record: Record) {
        let Builder { line, segments, start, from, to, places, is_last } = self;
        segments.feed(&record, |segment| add(line, places, *start, (*from, *to), &segment));
        let operation = record.job().operation.index();
        let ended = match record.event {
            Event::ABORT => true,
            Event::COMPLETE => {
                is_last.get(operation) == Some(&true) && record.time.as_nanos() > record.words[1] as i64
            }
            _ => false,
        };
        if ended
            && (*from..=*to).contains(&record.time)
            && let Some((lane, _)) = places.get(operation)
        {
            line.marks.push((*lane, record.time.saturating_since(*start).as_secs_f64() * 1e3));
        }
    }
}

fn add(
    line: &mut TimeLine,
    places: &[(usize, usize)],
    start: Instant,
    (from, to): (Instant, Instant),
    segment: &Segment,
) {
    if segment.end < from || segment.start > to {
        return;
    }
    // Only the stretch: a damaged record can put a segment's start anywhere.
    let ms = |instant: Instant| instant.max(from).min(to).saturating_since(start).as_secs_f64() * 1e3;
    if let Some(&(row, kind)) = places.get(segment.job.operation.index()) {
        line.spans.push(Span { row, kind, start_ms: ms(segment.start), end_ms: ms(segment.end) });
    }
}
