//! Export as CSV: a row per record.
//!
//! ```text
//! time_ns,event,family,node,cpu,lane,task,subtask,job,release_ns,deadline_ns,arg,source,causal,word0,word1,fields,pid,tid
//! ```
//!
//! The columns are the same for every trace, so that files can be put behind each other and old scripts go on
//! working when a program declares new events. What an event does not have is empty.
//!
//! * Times are nanoseconds from [`Metadata::start`]. `deadline_ns` is empty of jobs without a deadline.
//! * `arg` to `word1` are the record as it stands.
//! * `fields` has the event's typed fields by its declaration: `name=value;name=value`, with a backslash before
//!   `;`, `=` and backslashes in names and texts. Lanes, nodes, operations and codes stand by name, jobs as
//!   `operation#instance`, instants as other times do; a value that says "none" is empty.
//! * `pid` and `tid` are of the thread that wrote an event of a program's own.
//!
//! Who wants a column per field, with its type, reads the Parquet export.

use super::decode::{Decoder, push_pairs};
use std::io::Write;
use talea_record::{Metadata, NameSpace, Record};

const COLUMNS: [&str; 19] = [
    "time_ns",
    "event",
    "family",
    "node",
    "cpu",
    "lane",
    "task",
    "subtask",
    "job",
    "release_ns",
    "deadline_ns",
    "arg",
    "source",
    "causal",
    "word0",
    "word1",
    "fields",
    "pid",
    "tid",
];

/// Writes records as CSV, with names where the metadata and the name space have them.
///
/// # Errors
/// The first failure to write.
pub fn export_csv(
    metadata: &Metadata,
    names: &NameSpace,
    records: impl IntoIterator<Item = Record>,
    output: impl Write,
) -> Result<(), ::csv::Error> {
    let decoder = Decoder::new(metadata, names);
    let mut writer = ::csv::Writer::from_writer(output);
    writer.write_record(COLUMNS)?;
    let mut fields = String::new();
    for record in records {
        let row = decoder.row(&record);
        if record.is_part() {
            continue;
        }
        let long = decoder.long(&record);
        fields.clear();
        if let Some(declared) = decoder.event(record.event) {
            push_pairs(&mut fields, declared.values(metadata, &record, long.as_deref()));
        }
        writer.serialize((
            (row.time_ns, row.event, row.family, row.node, row.cpu, row.lane),
            (row.task, row.subtask, row.job, row.release_ns, row.deadline_ns),
            (record.arg, record.source, record.causal, record.words, &fields),
            (row.pid, row.tid),
        ))?;
    }
    writer.flush().map_err(::csv::Error::from)?;
    Ok(())
}
