//! Reads system files: text in, a validated system or all problems at once out.
//!
//! 1. The TOML parser recovers from syntax errors, so that all of them are reported.
//! 2. [`section`] reads each table by its declaration in [`crate::keys`].
//! 3. [`tables`] fills the same builder that programs use, and remembers where each item stands.
//! 4. The rules run on plain values; what they find is mapped back to the text.
//!
//! A value that cannot be read is replaced by one that breaks no rule and its place is remembered, so
//! that one mistake makes one message.

mod chain;
mod channel;
mod condition;
mod execution;
mod file;
mod hierarchy;
mod plan;
mod ports;
mod section;
mod syntax;
mod tables;
mod trigger;
mod values;

pub use file::{FILE_BYTES_LIMIT, read};

use crate::problem::{Lines, Problem, Problems};
use crate::validate::violations_besides;
use crate::{Place, Severity, System, Violation};
use section::{Findings, Unread};
use std::ops::Range;
use std::path::Path;
use tables::Tables;
use talea_text::printable;

/// A system that was read, and what is probably not meant in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The validated system.
    pub system: System,
    /// Problems of severity [`Severity::Warning`], by position.
    pub warnings: Vec<Problem>,
    /// Where the members of its hierarchies stand.
    pub lines: MemberLines,
}

/// The lines of a file on which the members of its hierarchies stand, from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberLines {
    /// By thread: where it says what the thread does.
    work: Vec<usize>,
    /// The names of schedulers and threads.
    names: Vec<(String, usize)>,
}

impl MemberLines {
    /// Where the file says what the thread of this index does.
    pub fn of_work(&self, thread: usize) -> Option<usize> {
        self.work.get(thread).copied()
    }

    /// Where the scheduler or thread has its name.
    pub fn of_name(&self, name: &str) -> Option<usize> {
        self.names.iter().find(|(known, _)| known == name).map(|(_, line)| *line)
    }
}

/// Reads the text of a system file.
///
/// `source_name` stands in messages; paths in the text are relative to `base_dir`.
///
/// # Errors
/// All problems of the text. Where the syntax is broken, only what is certain in spite of it.
pub fn parse(source_name: &str, text: &str, base_dir: &Path) -> Result<Parsed, Problems> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        let remedy = "write a [system] table with a name and at least one [[task]]";
        return Err(Problems::whole_file(source_name, "the file is empty", remedy));
    }
    let lines = Lines::new(text);
    let (document, syntax_errors) = toml::de::DeTable::parse_recoverable(text);
    let syntax_problems = syntax::problems(text, &lines, &syntax_errors);
    let syntax_is_sound = syntax_problems.is_empty();

    let mut findings = Findings::new(base_dir);
    let (builder, tables) = Tables::read(document.get_ref(), &mut findings);
    if !syntax_is_sound {
        // What is absent may stand in the lines that could not be read.
        let certain = syntax::certain_in_spite_of(&syntax_problems, findings.problems, text, &lines);
        let problems = syntax_problems.into_iter().chain(certain).collect();
        return Err(Problems::new(source_name, text, located(problems, &lines)));
    }

    let (description, unresolved) = builder.resolve();
    let mut violations = violations_besides(unresolved, &description);
    violations.retain(|violation| !is_consequence(violation, &findings.unread));
    tables.check_strategy(&description, &mut findings);
    let mut problems = findings.problems;
    problems.append(&mut findings.absences);
    problems.extend(violations.into_iter().map(|violation| tables.locate(violation, &lines)));
    let refused = problems.iter().any(|problem| problem.severity == Severity::Error);
    let problems = located(problems, &lines);
    if refused {
        return Err(Problems::new(source_name, text, problems));
    }
    let members = tables.member_lines(&description, &lines);
    Ok(Parsed { system: System::number(description), warnings: problems, lines: members })
}

/// A problem whose line is not known yet.
#[derive(Clone, Debug)]
struct Finding {
    severity: Severity,
    /// `None` for the file as a whole.
    span: Option<Range<usize>>,
    message: String,
    remedy: String,
}

fn located(mut findings: Vec<Finding>, lines: &Lines<'_>) -> Vec<Problem> {
    findings.sort_by_key(|finding| finding.span.as_ref().map(|span| span.start));
    // What the file says is quoted in them, and may hold anything.
    let locate = |finding: Finding| Problem {
        severity: finding.severity,
        location: finding.span.map(|span| lines.locate(span)),
        message: printable(&finding.message).into_owned(),
        remedy: printable(&finding.remedy).into_owned(),
    };
    findings.into_iter().map(locate).collect()
}

/// Whether a violation only follows from values that could not be read: it is about such a value, or it
/// is a warning, which compares values, about an item that has one. The load of a node is about all.
fn is_consequence(violation: &Violation, unread: &Unread) -> bool {
    if unread.is_empty() {
        return false;
    }
    let of_item = violation.severity == Severity::Warning
        && violation.place.task().is_none_or(|task| unread.concerns_task(task));
    let names_operations = matches!(
        violation.place,
        Place::Input(_, _, _, "from")
            | Place::Trigger(_, "output")
            | Place::Chain(_, "path")
            | Place::Subscription(_, "channel" | "types" | "filter" | "when")
            | Place::PriorityBy(_, _, "filter")
            | Place::TimeoutBy(_, _, "filter")
    );
    let names_channel =
        matches!(violation.place, Place::Publication(_, _, _, "channel") | Place::Subscription(_, "channel"));
    let names_lanes = matches!(violation.place, Place::Subtask(_, _, "lanes"));
    of_item
        || (names_lanes && unread.concerns_lanes())
        || (names_channel && unread.concerns_channels())
        || (names_operations && unread.concerns_operations())
        || unread.contains(violation.place)
        || violation.related.is_some_and(|place| unread.contains(place))
        || (matches!(violation.place, Place::PlanEntry(..)) && unread.concerns_hierarchy())
}
