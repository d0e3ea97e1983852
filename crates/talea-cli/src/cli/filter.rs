//! `talea filter`.

use super::failure::{Failure, Verdict, path_shown};
use super::output;
use crate::cli::output::tell;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use talea_etcl::{Constraint, Event, Fault, Part, PartOutcome, Problem};
use talea_event::StatedTime;
use talea_model::{Location, Problem as FileProblem, Problems, Severity};
use talea_text::{ReadError, printable, read};
use talea_time::Instant;

/// Ask whether an event matches a constraint
///
/// The constraint is an expression of the extended trader constraint language, by which consumers of events say which ones they want:
/// comparisons of the event's properties, joined by and, or and not. The event is a file of JSON with domain_name, type_name,
/// event_name, variable_header, filterable_data and maybe remainder_of_body. Prints true or false; where a part cannot be
/// evaluated, says which and why. StartTime and StopTime in the header, which are in units of 100 ns since 15 October 1582, and
/// Timeout, in units of 100 ns, are seen in nanoseconds, these times since the beginning of 1970 as $curtime is.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea filter \"threshold < 20 and 'bear' ~ text\" --event examples/event.json
  talea filter \"exist priority or severity >= MAJOR\" --event examples/event.json --explain
  talea filter '$domain_name == $.remainder_of_body.plant' --event -

Exit status: 0 it matches; 1 it does not; 2 the constraint is refused or cannot be evaluated on the event, usage or input error.")]
pub struct Options {
    /// The constraint
    #[arg(value_name = "EXPR", allow_hyphen_values = true)]
    expression: String,
    /// File with the event, or - for standard input
    #[arg(long, value_name = "FILE")]
    event: PathBuf,
    /// Show each part of the constraint with its value
    #[arg(long)]
    explain: bool,
    /// What $curtime stands for, in nanoseconds [default: the time since the beginning of 1970]
    #[arg(long, value_name = "NS", allow_hyphen_values = true)]
    now: Option<i64>,
}

pub fn main(options: &Options) -> super::Outcome {
    let text = &options.expression;
    let constraint = Constraint::parse(text).map_err(|problem| refused(text, &problem))?;
    let (program, warnings) =
        constraint.compile_with_warnings::<Event>().map_err(|problem| refused(text, &problem))?;
    for warning in warnings {
        tell!("warning: {CONSTRAINT}, {warning}");
    }
    let event = with_times(event(&options.event)?)?;
    let now = Instant::from_nanos(options.now.unwrap_or_else(since_1970));
    if options.explain {
        let parts = constraint.explain(&event, now).map_err(|problem| refused(text, &problem))?;
        output::print(&explained(&parts))?;
    }
    let matches = program.evaluate(&event, now).map_err(|fault| without_result(text, fault))?;
    if !options.explain {
        output::print(if matches { "true" } else { "false" })?;
    }
    Ok(if matches { Verdict::Fine } else { Verdict::Negative })
}

/// What the constraint is called where a file would have its name.
const CONSTRAINT: &str = "the constraint";

fn since_1970() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn event(path: &Path) -> Result<Event, Failure> {
    let is_standard_input = path == Path::new("-");
    let name = if is_standard_input { "standard input".into() } else { path_shown(path) };
    let unread = |error: ReadError| Failure::new(format!("cannot read {name}: {error}"), error.remedy());
    let text = if is_standard_input { read::standard_input() } else { read::text(path) }.map_err(unread)?;
    Event::from_json(&text).map_err(|problem| {
        let location = Location { span: problem.span, line: problem.line, column: problem.column };
        drawn(&name, &text, location, problem.message, problem.remedy)
    })
}

/// The event with its times as constraints see them in a channel, but for the clock, which is that on the wall.
fn with_times(event: Event) -> Result<Event, Failure> {
    let mut header = event.variable_header().clone();
    for stated in StatedTime::ALL {
        let property = stated.property;
        let Some(value) = header.get(property) else { continue };
        let Some(time) = stated.read(value) else {
            let message = format!("the property {property} in the header of the event {}", stated.range);
            return Err(Failure::new(
                message,
                "channels refuse such events; write a whole number in that range",
            ));
        };
        header.insert(property, time.as_nanos());
    }
    Ok(event.with_variable_header(header))
}

fn drawn(name: &str, text: &str, location: Location, message: String, remedy: String) -> Failure {
    let problem = FileProblem { severity: Severity::Error, location: Some(location), message, remedy };
    Problems::new(name, text, vec![problem]).into()
}

fn refused(text: &str, problem: &Problem) -> Failure {
    let location = Location { span: problem.span.range(), line: problem.line, column: problem.column };
    drawn(CONSTRAINT, text, location, problem.message.clone(), problem.remedy.clone())
}

fn without_result(text: &str, fault: Fault) -> Failure {
    let (line, column) = fault.span.line_and_column(text);
    let location = Location { span: fault.span.range(), line, column };
    drawn(CONSTRAINT, text, location, fault.kind.to_string(), fault.kind.remedy().into())
}

/// A line per part: its value, and the part below those that it stands in. Literals show their values themselves.
fn explained(parts: &[Part]) -> String {
    let lines: Vec<(String, String)> = (0..parts.len())
        .filter(|index| parts[*index].depth == 0 || !parts[*index].is_literal)
        .map(|index| (value(&parts[index].outcome), described(&parts[index..])))
        .collect();
    let width = lines.iter().map(|(value, _)| value.chars().count()).max().unwrap_or(0);
    let line = |(value, part): &(String, String)| {
        let pad = width - value.chars().count();
        format!("{value}{:pad$}  {part}", "")
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The first of these parts. The smallest part with an error has the reason beside it.
fn described(parts: &[Part]) -> String {
    let Part { depth, text, outcome, .. } = &parts[0];
    let mut within = parts[1..].iter().take_while(|part| part.depth > *depth);
    let line = format!("{:indent$}{}", "", printable(text), indent = 2 * depth);
    match outcome {
        PartOutcome::Fault(fault) if !within.any(|part| part.outcome == *outcome) => {
            format!("{line}    ({})", fault.kind)
        }
        _ => line,
    }
}

fn value(outcome: &PartOutcome) -> String {
    match outcome {
        PartOutcome::Value(value) => match value.as_str() {
            "TRUE" => "true".into(),
            "FALSE" => "false".into(),
            other => shortened(other),
        },
        PartOutcome::Label => "label".into(),
        PartOutcome::Fault(_) => "error".into(),
        PartOutcome::Skipped => "-".into(),
    }
}

/// A value in one line of a column of its own, whatever it has.
fn shortened(value: &str) -> String {
    const MOST: usize = 30;
    let value = printable(value);
    if value.chars().count() <= MOST {
        return value.into_owned();
    }
    let start: String = value.chars().take(MOST - 3).collect();
    start + "..."
}
