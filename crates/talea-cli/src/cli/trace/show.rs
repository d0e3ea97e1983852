//! `talea trace show`.

use super::events::{EventFilter, Events};
use super::{follow, name_space, named, open, unreadable, warn_of_damage};
use crate::cli::failure::{Failure, Verdict};
use crate::cli::output;
use clap::Args;
use std::path::PathBuf;
use talea_export::Listing;
use talea_record::stream::Selection;
use talea_record::{Event, Metadata, NameSpace, Record};

/// Print records, one per line
///
/// A line has the time since the run began in seconds, then node, processor, lane, event, job, and the fields of the event. Records must
/// satisfy all filters given; a filter given several times asks for any of its values. In a pipe or file, each record is one line, on
/// a terminal that is too narrow several.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea trace show out/trace.talea --limit 20
  talea trace show out/trace.talea --task navigation --events start,complete
  talea trace show out/trace.talea --events kernel,dispatch,-dispatch.cost
  talea trace show out/trace.talea --events 'job.re*' --limit 20
  talea trace show out/trace.talea --json | jq 'select(.fields.cost > 10000)'
  talea trace show ofp  # what the rings of a running program hold
  talea trace show ofp --follow --events job  # until Ctrl-C or the program's end")]
pub struct Options {
    /// The trace: a file, or a program that runs, by process number or name
    #[arg(value_name = "PID|NAME|FILE")]
    trace: PathBuf,
    /// Follow a program from now on: switch on the events that the filters ask for, and print them as they happen
    #[arg(long)]
    follow: bool,
    /// Print at most this many records [default: all]
    #[arg(long, value_name = "NUMBER")]
    pub(super) limit: Option<usize>,
    /// Print only records of jobs of this task
    #[arg(long, value_name = "TASK", help_heading = "Filters")]
    task: Option<String>,
    /// Print only records of this family of events
    #[arg(long, value_name = "FAMILY", help_heading = "Filters")]
    family: Vec<String>,
    #[command(flatten)]
    events: EventFilter,
    /// Print each record as one line of JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// What records must be to be printed.
pub(super) struct Filter<'a> {
    metadata: &'a Metadata,
    /// Index of the task.
    task: Option<usize>,
    /// Numbers of families; empty for all.
    families: Vec<u8>,
    /// None for all.
    events: Option<Events>,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let path = named::file(&options.trace)?;
    if options.follow {
        return follow::main(&path, options);
    }
    let trace = open(&path)?;
    let names = name_space(&trace, &path)?;
    let filter = Filter::new(trace.metadata(), &names, options)?;
    let listing = Listing::new(trace.metadata(), &names);
    let mut records = trace.records().map_err(|error| unreadable(&path, &error))?;
    let mut lines = output::Lines::new();
    let mut left = options.limit.unwrap_or(usize::MAX);
    for record in &mut records {
        let record = record.map_err(|error| unreadable(&path, &error))?;
        if left == 0 {
            break;
        }
        if filter.lets_through(&record) {
            match options.json {
                true => lines.line(&listing.json(&record))?,
                false => lines.line(&output::fold(&listing.line(&record)))?,
            }
            left -= 1;
        } else {
            listing.learn(&record);
        }
    }
    lines.finish()?;
    warn_of_damage(&path, &records.damage());
    Ok(Verdict::Fine)
}

impl<'a> Filter<'a> {
    pub(super) fn new(metadata: &'a Metadata, names: &NameSpace, options: &Options) -> Result<Self, Failure> {
        let task = match &options.task {
            None => None,
            Some(name) => {
                let number = metadata.tasks.iter().position(|task| task.name == *name);
                let names = || metadata.task_names().map(str::to_owned);
                Some(number.ok_or_else(|| unknown("task", name, names()))?)
            }
        };
        let family = |name: &String| {
            let found = names.family(name).map(|family| family.number);
            let all = || names.families().iter().map(|family| family.name.clone().into_owned());
            found.ok_or_else(|| unknown("family", name, all()))
        };
        let families = options.family.iter().map(family).collect::<Result<_, _>>()?;
        let events = options.events.chosen(names)?;
        Ok(Filter { metadata, task, families, events })
    }

    pub(super) fn lets_through(&self, record: &Record) -> bool {
        let operation = || self.metadata.operations.get(record.job().operation.index());
        self.may_let_through(record.event)
            && self.task.is_none_or(|task| operation().is_some_and(|entry| entry.task == task))
    }

    /// Whether there can be records of this event to be printed. Parts are printed with their events.
    fn may_let_through(&self, event: Event) -> bool {
        event != Event::PART
            && (self.task.is_none() || event.is_about_job())
            && (self.families.is_empty() || self.families.contains(&(event.0 >> 8).to_le_bytes()[0]))
            && self.events.as_ref().is_none_or(|events| events.contain(event))
    }

    /// What a program has to write for that: everything if nothing is filtered, or else the events that can pass.
    pub(super) fn selection(&self, names: &NameSpace) -> Selection {
        if self.task.is_none() && self.families.is_empty() && self.events.is_none() {
            return Selection::all();
        }
        let events = names.families().iter().flat_map(|family| {
            family
                .events
                .iter()
                .map(move |entry| (family.event(entry), family.name.as_ref(), entry.name.as_ref()))
        });
        let passing = events.filter(|(event, _, _)| self.may_let_through(*event));
        Selection::of(passing.map(|(_, family, name)| (family, name)))
    }
}

fn unknown(what: &str, name: &str, known: impl Iterator<Item = String>) -> Failure {
    let known: Vec<String> = known.collect();
    Failure::new(
        format!("the trace has no {what} \"{name}\""),
        format!("choose one of: {}", known.join(", ")),
    )
}
