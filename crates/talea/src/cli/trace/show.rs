//! `talea trace show`.

use super::{name_space, open, unreadable, warn_of_cut};
use crate::cli::failure::{Failure, Verdict};
use crate::cli::output;
use clap::Args;
use std::path::PathBuf;
use talea_trace::{Event, Listing, Metadata, NameSpace, Record};

/// Print records, one per line
#[derive(Args)]
#[command(after_help = "\
Records must satisfy all filters given; a filter given several times asks for any of its values.

Examples:
  talea trace show out/trace.talea --limit 20
  talea trace show out/trace.talea --task navigation --event start --event complete
  talea trace show out/trace.talea --family kernel --family dispatch
  talea trace show out/trace.talea --json | jq 'select(.fields.cost > 10000)'")]
pub struct Options {
    /// The trace
    trace: PathBuf,
    /// Print at most this many records
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    /// Print only records of jobs of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Print only records of this family of events
    #[arg(long, value_name = "FAMILY")]
    family: Vec<String>,
    /// Print only records of this event, named EVENT or FAMILY:EVENT
    #[arg(long, value_name = "EVENT")]
    event: Vec<String>,
    /// Print each record as one line of JSON
    #[arg(long)]
    json: bool,
}

/// What records must be to be printed.
struct Filter<'a> {
    metadata: &'a Metadata,
    /// Index of the task.
    task: Option<usize>,
    /// Numbers of families; empty for all.
    families: Vec<u8>,
    /// Empty for all.
    events: Vec<Event>,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let trace = open(&options.trace)?;
    let names = name_space(&trace, &options.trace)?;
    let filter = Filter::new(trace.metadata(), &names, options)?;
    let listing = Listing::new(trace.metadata(), &names);
    let records = trace.records().map_err(|error| unreadable(&options.trace, &error))?;
    warn_of_cut(&records);
    let mut lines = output::Lines::new();
    let mut left = options.limit.unwrap_or(usize::MAX);
    for record in records {
        let record = record.map_err(|error| unreadable(&options.trace, &error))?;
        if left == 0 {
            break;
        }
        if filter.lets_through(&record) {
            lines.line(&if options.json { listing.json(&record) } else { listing.line(&record) })?;
            left -= 1;
        }
    }
    lines.finish()?;
    Ok(Verdict::Fine)
}

impl<'a> Filter<'a> {
    fn new(metadata: &'a Metadata, names: &NameSpace, options: &Options) -> Result<Self, Failure> {
        let task = match &options.task {
            None => None,
            Some(name) => {
                let tasks = || metadata.tasks.iter().map(|task| task.name.clone());
                Some(tasks().position(|task| task == *name).ok_or_else(|| unknown("task", name, tasks()))?)
            }
        };
        let family = |name: &String| {
            let found = names.family(name).map(|family| family.number);
            let all = || names.families().iter().map(|family| family.name.clone().into_owned());
            found.ok_or_else(|| unknown("family", name, all()))
        };
        let families = options.family.iter().map(family).collect::<Result<_, _>>()?;
        let mut events = Vec::new();
        for name in &options.event {
            let known = events_called(names, name);
            if known.is_empty() {
                return Err(unknown("event", name, all_events(names)));
            }
            events.extend(known);
        }
        Ok(Filter { metadata, task, families, events })
    }

    fn lets_through(&self, record: &Record) -> bool {
        let operation = || self.metadata.operations.get(record.job().operation.index());
        let about_job =
            || record.event.is_job() || record.event == Event::SEND || record.event == Event::RECEIVE;
        let of_task = |task| about_job() && operation().is_some_and(|entry| entry.task == task);
        self.task.is_none_or(of_task)
            && (self.families.is_empty() || self.families.contains(&(record.event.0 >> 8).to_le_bytes()[0]))
            && (self.events.is_empty() || self.events.contains(&record.event))
    }
}

/// The events that `name`, with or without its family's, means.
fn events_called(names: &NameSpace, name: &str) -> Vec<Event> {
    let families = names.families().iter();
    families
        .flat_map(|family| family.events.iter().map(move |entry| (family, entry)))
        .filter(|(family, entry)| entry.name == name || format!("{}:{}", family.name, entry.name) == name)
        .map(|(family, entry)| family.event(entry))
        .collect()
}

fn all_events(names: &NameSpace) -> impl Iterator<Item = String> {
    let families = names.families().iter();
    families
        .flat_map(|family| family.events.iter().map(move |entry| format!("{}:{}", family.name, entry.name)))
}

fn unknown(what: &str, name: &str, known: impl Iterator<Item = String>) -> Failure {
    let known: Vec<String> = known.collect();
    Failure::new(
        format!("the trace has no {what} \"{name}\""),
        format!("choose one of: {}", known.join(", ")),
    )
}
