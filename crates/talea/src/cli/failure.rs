//! Why a command did not do what it was asked to, shown so that the reader knows what to change.

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::io;
use std::path::Path;
use talea_interchange::Rejected;
use talea_model::{Location, Parsed, Problem, Problems, Severity};

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Everything is fine; exit status 0.
    Fine,
    /// It was done, and the answer is no: a hard deadline missed, a vector failed. Exit status 1.
    Negative,
}

/// A usage or input error; exit status 2.
#[derive(Debug)]
pub enum Failure {
    /// A system file with problems, each shown at its place.
    Problems(Box<Problems>),
    /// A file of another format with problems, each shown at its place.
    Rejected(Box<Rejected>),
    /// Anything else: what is wrong, and what to do about it.
    Message {
        /// What is wrong.
        message: String,
        /// What to do about it; empty if the message says it.
        help: String,
    },
}

impl Failure {
    /// A failure without a place.
    pub fn new(message: impl fmt::Display, help: impl Into<String>) -> Self {
        Failure::Message { message: message.to_string(), help: help.into() }
    }

    /// An error on a file or folder.
    pub fn file(doing: &str, path: &Path, cause: impl fmt::Display) -> Self {
        Failure::new(format!("cannot {doing} {}: {cause}", path.display()), "")
    }

    /// A file or folder that cannot be made.
    pub fn uncreated(what: &str, path: &Path, cause: &io::Error) -> Self {
        let help = match cause.kind() {
            io::ErrorKind::NotFound => "the folder it is to be in does not exist; make it first",
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                "a file is in the way; choose another name, or move the file"
            }
            io::ErrorKind::IsADirectory => "this is a folder; name a file in it",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "choose a place where you may write"
            }
            _ => "",
        };
        Failure::new(format!("cannot make {what} {}: {cause}", path.display()), help)
    }

    /// Prints it to standard error.
    pub fn show(&self) {
        match self {
            Failure::Problems(problems) => {
                let source = NamedSource::new(problems.source_name(), problems.text().to_owned());
                show_problems(&source.with_language("toml"), problems.list());
            }
            Failure::Rejected(rejected) => {
                let source = NamedSource::new(rejected.source_name(), rejected.text().to_owned());
                show_problems(&source, rejected.list());
            }
            Failure::Message { message, help } => {
                eprintln!("error: {message}");
                if !help.is_empty() {
                    eprintln!("  help: {help}");
                }
            }
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Failure::Problems(Box::new(problems))
    }
}

impl From<Rejected> for Failure {
    fn from(rejected: Rejected) -> Self {
        Failure::Rejected(Box::new(rejected))
    }
}

/// Reads a system file and shows its warnings.
pub fn read_system(path: &Path) -> Result<Parsed, Failure> {
    let parsed = talea_model::read(path)?;
    for warning in &parsed.warnings {
        eprintln!("{}", warning.in_file(&path.display().to_string()));
    }
    Ok(parsed)
}

/// How many problems are drawn with their lines; the rest is listed in short form by the model's own limit.
const DRAWN: usize = 20;

fn show_problems(source: &NamedSource<String>, list: &[Problem]) {
    let (file, text) = (source.name(), source.inner());
    for problem in list.iter().take(DRAWN) {
        let source = problem.location.as_ref().filter(|place| is_drawable(text, place)).map(|_| source);
        let drawn = Drawn { problem, file, source };
        let mut text = String::new();
        let handler = miette::GraphicalReportHandler::new_themed(theme()).with_width(110);
        match handler.render_report(&mut text, &drawn) {
            Ok(()) => eprintln!("{text}"),
            Err(fmt::Error) => eprintln!("{}", problem.in_file(file)),
        }
    }
    let errors = list.iter().filter(|problem| problem.severity == Severity::Error).count();
    let warnings = list.len() - errors;
    let more = list.len().saturating_sub(DRAWN);
    let shown = if more > 0 { format!("; the first {DRAWN} are shown") } else { String::new() };
    let count = |count: usize, what: &str| match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    };
    let warnings = if warnings > 0 { format!(", {}", count(warnings, "warning")) } else { String::new() };
    eprintln!("{}: {}{warnings}{shown}", file, count(errors, "error"));
}

/// Whether the line is short enough to be worth drawing.
fn is_drawable(text: &str, location: &Location) -> bool {
    const LONGEST: usize = 400;
    let before = text[..location.span.start].bytes().rev().take(LONGEST).position(|byte| byte == b'\n');
    let after = text[location.span.start..].bytes().take(LONGEST).position(|byte| byte == b'\n');
    let begins = before.is_some() || location.span.start < LONGEST;
    let ends = after.is_some() || text.len() - location.span.start < LONGEST;
    begins && ends
}

fn theme() -> miette::GraphicalTheme {
    use std::io::IsTerminal;
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        miette::GraphicalTheme::unicode()
    } else {
        miette::GraphicalTheme::unicode_nocolor()
    }
}

/// A problem as a diagnostic with its line drawn.
#[derive(Debug)]
struct Drawn<'a> {
    problem: &'a Problem,
    file: &'a str,
    source: Option<&'a NamedSource<String>>,
}

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Some(_) => f.write_str(&self.problem.message),
            None => write!(f, "{}: {}", self.file, self.problem.message),
        }
    }
}

impl std::error::Error for Drawn<'_> {}

impl Diagnostic for Drawn<'_> {
    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.problem.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        Some(Box::new(&self.problem.remedy))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let location = self.problem.location.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::new_with_span(None, location.span.clone()))))
    }
}
