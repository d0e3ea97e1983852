//! Why a command did not do what it was asked to, shown so that the reader knows what to change.

use super::output::{say, shown, tell};
use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::Path;
use talea_interchange::Format;
use talea_model::{Parsed, Problem, Problems, Severity};
use talea_runtime::cluster::Membership;
use talea_text::printable;

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
    /// A file with problems, each shown at its place.
    Problems(Box<Problems>),
    /// Anything else: what is wrong, and what to do about it.
    Message {
        /// What is wrong.
        message: String,
        /// What to do about it; empty if the message says it.
        help: String,
    },
    /// Something that another process says, which has been told.
    SaidElsewhere,
}

impl Failure {
    /// A failure without a place. Its sentences are as long as they are, and have only the ends of lines that are written here.
    pub fn new(message: impl fmt::Display, help: impl Into<String>) -> Self {
        Failure::Message { message: message.to_string(), help: help.into() }
    }

    /// An error on a file or folder.
    pub fn file(doing: &str, path: &Path, cause: impl fmt::Display) -> Self {
        Failure::new(format!("cannot {doing} {}: {cause}", path_shown(path)), "")
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
        Failure::new(format!("cannot make {what} {}: {cause}", path_shown(path)), help)
    }

    /// Prints it to standard error.
    pub fn show(&self) {
        match self {
            Failure::Problems(problems) => {
                show_problems(problems.source_name(), problems.text(), problems.list());
            }
            Failure::Message { message, help } => {
                tell!("error: {message}");
                if !help.is_empty() {
                    tell!("  help: {help}");
                }
            }
            Failure::SaidElsewhere => {}
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Failure::Problems(Box::new(problems))
    }
}

/// Reads a system file and shows its warnings.
pub fn read_system(path: &Path) -> Result<Parsed, Failure> {
    let parsed = talea_model::read(path).map_err(|problems| meant(path, problems))?;
    // The process that started this one for a node of its run has told them.
    let told = if Membership::from_environment().is_some() { &[][..] } else { &parsed.warnings };
    for warning in told {
        tell!("{}", warning.in_file(&path_shown(path)));
    }
    Ok(parsed)
}

/// The path as it is shown, in one line.
pub fn path_shown(path: impl AsRef<Path>) -> String {
    printable(&path.as_ref().display().to_string()).into_owned()
}

/// Why a file is no system file: its problems, unless it is one of another tool.
fn meant(path: &Path, problems: Problems) -> Failure {
    let text = problems.text();
    // A system file begins with none of what those begin with; a problem in one that is called so is a problem.
    let is_ours = text.is_empty() || path.extension().is_some_and(|extension| extension == "toml");
    let of_path = || Format::of_path(path).filter(|_| !is_ours);
    let Some(format) = (if text.is_empty() { None } else { Format::of_text(text) }).or_else(of_path) else {
        return problems.into();
    };
    let (file, name) = (path_shown(path), path.with_extension("toml"));
    let message = format!("{file} is a file of {format} and not a system file");
    Failure::new(
        message,
        format!("make a system file of it first: talea import {file} --out {}", path_shown(&name)),
    )
}

/// How many problems are drawn with their lines; the rest is listed in short form by the model's own limit.
const DRAWN: usize = 20;

fn show_problems(file: &str, text: &str, list: &[Problem]) {
    for problem in list.iter().take(DRAWN) {
        let problem = &folded(file, problem);
        // The renderer has fitted it already.
        say(renderer().render(&[drawn(file, text, problem)]) + "\n");
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
    tell!("{}: {}{warnings}{shown}", printable(file), count(errors, "error"));
}

/// What the renderer writes ahead of a message and of a remedy: `warning: `, and line numbers, a line and `help: `.
const AHEAD: usize = 16;

/// The same problem with its sentences in lines that fit beside what the renderer writes.
fn folded(file: &str, problem: &Problem) -> Problem {
    let fold = |text: &str| super::output::broken_at(&shown(text), super::output::error_width() - AHEAD);
    let message = match problem.location {
        Some(_) => fold(&problem.message),
        None => fold(&format!("{}: {}", printable(file), problem.message)),
    };
    Problem { message, remedy: fold(&problem.remedy), ..problem.clone() }
}

/// Of lines that are longer than the output is wide, the part around the problem is shown.
fn renderer() -> Renderer {
    let is_coloured = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let renderer = if is_coloured { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Unicode).term_width(super::output::error_width())
}

/// The problem with its line, if it has a place, and what to do about it.
fn drawn<'a>(file: &'a str, text: &'a str, problem: &'a Problem) -> Group<'a> {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let help = Level::HELP.message(&problem.remedy);
    match &problem.location {
        Some(location) => {
            let place = AnnotationKind::Primary.span(location.span.clone());
            let snippet = Snippet::source(text).path(printable(file)).annotation(place);
            level.primary_title(&problem.message).element(snippet).element(help)
        }
        None => level.primary_title(&problem.message).element(help),
    }
}
