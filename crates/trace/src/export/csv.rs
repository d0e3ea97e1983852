//! Export as CSV: a row per record.

use crate::schedule::ScheduleError;
use crate::show::{lane_label, node_name, since};
use crate::{Event, Metadata, Record};
use std::io::Write;
use talea_time::Instant;

/// Writes records as CSV, with names where the metadata have them:
/// `time_ns,event,node,cpu,lane,task,subtask,job,release_ns,deadline_ns,arg,causal,word0,word1`. Times count
/// from [`Metadata::start`]; what an event does not have is empty; the last three columns are raw.
///
/// # Errors
/// The first failure to write.
pub fn export_csv(
    metadata: &Metadata,
    records: impl IntoIterator<Item = Record>,
    output: impl Write,
) -> Result<(), ScheduleError> {
    let mut writer = ::csv::Writer::from_writer(output);
    writer.write_record([
        "time_ns",
        "event",
        "node",
        "cpu",
        "lane",
        "task",
        "subtask",
        "job",
        "release_ns",
        "deadline_ns",
        "arg",
        "causal",
        "word0",
        "word1",
    ])?;
    for record in records {
        let job = record.event.is_job().then(|| record.job());
        let operation =
            job.map(|job| job.operation.index()).filter(|index| *index < metadata.operations.len());
        let task = operation.map(|index| &metadata.tasks[metadata.operations[index].task].name);
        let has_words = matches!(record.event, Event::RELEASE | Event::COMPLETE | Event::SKIP | Event::ABORT);
        let instant = |word: u64| has_words.then(|| since(Instant::from_nanos(word as i64), metadata.start));
        let event = record.event.name().map_or_else(|| format!("{:#06x}", record.event.0), str::to_owned);
        writer.serialize((
            since(record.time, metadata.start),
            event,
            node_name(metadata, &record),
            (record.cpu != Record::NO_CPU).then_some(record.cpu),
            lane_label(metadata, &record),
            task,
            operation.map(|index| crate::schedule::subtask_name(metadata, index)),
            job.map(|job| job.instance),
            instant(record.words[0]),
            instant(record.words[1]),
            record.arg,
            record.causal,
            record.words[0],
            record.words[1],
        ))?;
    }
    writer.flush().map_err(::csv::Error::from)?;
    Ok(())
}
