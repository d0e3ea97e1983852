//! Records as text for people.

use crate::{Event, JobId, Metadata, Record, SkipReason};
use talea_time::{Duration, Instant};

/// One line without its end: time since [`Metadata::start`] in seconds, node, processor, lane, event,
/// job, and what the event tells besides.
pub fn format_record(metadata: &Metadata, record: &Record) -> String {
    let seconds = since(record.time, metadata.start) as f64 / 1e9;
    let event = record.event.name().map_or_else(|| format!("event {:#06x}", record.event.0), str::to_owned);
    let node = node_name(metadata, record).unwrap_or("-");
    let cpu = if record.cpu == Record::NO_CPU { "-".into() } else { format!("cpu{}", record.cpu) };
    let lane = lane_label(metadata, record).unwrap_or("-");
    let mut line = format!("{seconds:>16.9}  {node:<10} {cpu:<5} {lane:<14} {event:<9}");
    if record.event.is_job() {
        line.push_str(&format!(" {}", job_name(metadata, record.job())));
    }
    let detail = detail(metadata, record);
    if !detail.is_empty() {
        line.push_str("  ");
        line.push_str(&detail);
    }
    line
}

fn detail(metadata: &Metadata, record: &Record) -> String {
    let [first, second] = record.words;
    let length = |ns: i64| Duration::from_nanos(ns).rounded().to_string();
    let to_deadline = since(Instant::from_nanos(second as i64), record.time);
    let after_release = since(record.time, Instant::from_nanos(first as i64));
    match record.event {
        Event::RUN_START if first != 0 => {
            format!("planned for {}", length(since(Instant::from_nanos(first as i64), record.time)))
        }
        Event::LOST => format!("{first} records of ring {}", record.source),
        Event::RELEASE if after_release > 0 => {
            format!("due in {}, released {} late", length(to_deadline), length(after_release))
        }
        Event::RELEASE => format!("due in {}", length(to_deadline)),
        Event::START => format!("{} in the lane", record.arg),
        Event::PREEMPT if first != u64::MAX => format!("by {}", job_name(metadata, JobId::unpack(first))),
        Event::COMPLETE => {
            let verdict = match metadata.operations.get(record.job().operation.index()) {
                Some(operation) if operation.is_last && to_deadline < 0 => {
                    format!(", MISSED by {}", length(to_deadline.saturating_neg()))
                }
                Some(operation) if operation.is_last => format!(", met with {} left", length(to_deadline)),
                _ => String::new(),
            };
            format!("after {}{verdict}", length(after_release))
        }
        Event::SKIP => match skip_reason(record.arg) {
            Some(SkipReason::Overrun) => "the job before is unfinished".into(),
            Some(SkipReason::Full) => "too many instances in flight".into(),
            None => format!("reason {}", record.arg),
        },
        Event::ABORT if record.arg == 1 => format!("while running, after {}", length(after_release)),
        Event::ABORT => format!("while waiting, after {}", length(after_release)),
        event if event.name().is_none() => {
            format!(
                "causal {:#x}, words {first:#x} {second:#x}, source {}, arg {}",
                record.causal, record.source, record.arg
            )
        }
        _ => String::new(),
    }
}

/// `nav.filter #12`.
pub(crate) fn job_name(metadata: &Metadata, job: JobId) -> String {
    match metadata.operations.get(job.operation.index()) {
        Some(operation) => format!("{} #{}", operation.name, job.instance),
        None => format!("operation {} #{}", job.operation.index(), job.instance),
    }
}

fn skip_reason(arg: u16) -> Option<SkipReason> {
    [SkipReason::Overrun, SkipReason::Full].into_iter().find(|reason| *reason as u16 == arg)
}

pub(crate) fn node_name<'a>(metadata: &'a Metadata, record: &Record) -> Option<&'a str> {
    let source = usize::from(record.source);
    let node = match record.event {
        Event::RUN_START | Event::RUN_END => source,
        event if event.is_job() => metadata.lanes.get(source)?.node,
        _ => return None,
    };
    Some(&metadata.nodes.get(node)?.name)
}

pub(crate) fn lane_label<'a>(metadata: &'a Metadata, record: &Record) -> Option<&'a str> {
    let lane = metadata.lanes.get(usize::from(record.source)).filter(|_| record.event.is_job())?;
    Some(&lane.label)
}

/// `later - earlier` in nanoseconds; records of damaged files may be centuries apart.
pub(crate) fn since(later: Instant, earlier: Instant) -> i64 {
    later.as_nanos().saturating_sub(earlier.as_nanos())
}
