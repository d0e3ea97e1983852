//! Standard output: lines, tables and JSON. A reader that goes away (`| head`) ends the command quietly. And sentences on standard error.
//!
//! Everything that the command prints goes through here, and nothing leaves that a terminal takes for a command: what is
//! [hidden](talea_text::is_hidden) is shown by its number, in JSON as JSON does. So nobody else needs to know where a name came from.

mod json;
mod sheet;
mod wrap;

pub use json::write as write_json;
pub use sheet::Sheet;
pub use wrap::{WIDTH, broken_at, error_width, fold, wrap, wrap_beside, wrap_error};

use super::failure::Failure;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::borrow::Cow;
use std::io::{self, ErrorKind, StdoutLock, Write};
use talea_text::{printable_lines, printable_styled};
use talea_time::Duration;

/// Tells something beside the results: sentences on standard error, in lines that fit it.
macro_rules! tell {
    ($($sentence:tt)*) => {
        $crate::cli::output::say($crate::cli::output::wrap_error(&$crate::cli::output::shown(&format!($($sentence)*))))
    };
}

pub(crate) use tell;

/// The text without what is hidden in it, in the lines that it has.
pub fn shown(text: &str) -> Cow<'_, str> {
    printable_lines(text)
}

/// Prints lines, maybe with colours, on standard error. Where nobody can read them, nobody is told.
pub fn say(lines: impl AsRef<str>) {
    let _unread = writeln!(io::stderr(), "{}", printable_styled(lines.as_ref()));
}

/// Standard output, line by line.
pub struct Lines(io::BufWriter<StdoutLock<'static>>);

impl Lines {
    /// Locks standard output until [finished](Self::finish).
    pub fn new() -> Self {
        Lines(io::BufWriter::new(io::stdout().lock()))
    }

    /// Prints one line.
    pub fn line(&mut self, line: &str) -> Result<(), Failure> {
        check(writeln!(self.0, "{}", shown(line)))
    }

    /// Prints sentences, in lines that fit the [width](wrap::width) of the output.
    pub fn prose(&mut self, text: &str) -> Result<(), Failure> {
        self.line(&wrap(text))
    }

    /// Writes out what is left. Without it a full device would go unnoticed.
    pub fn finish(mut self) -> Result<(), Failure> {
        check(self.0.flush())
    }
}

/// Prints one text.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut lines = Lines::new();
    lines.line(text)?;
    lines.finish()
}

/// Whether standard output has a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// As far as is known.
    There,
    /// The reader went away.
    Gone,
}

/// Prints whole lines at once, for commands that have something to put right before they end.
pub fn print_now(lines: &str) -> Result<Audience, Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(shown(lines).as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Audience::Gone),
        written => check(written).map(|()| Audience::There),
    }
}

/// Whether the reader of standard output has gone away, so that nothing can be written.
pub fn is_gone() -> bool {
    let stdout = io::stdout();
    let mut output = [PollFd::new(&stdout, PollFlags::empty())];
    poll(&mut output, Some(&Timespec::default())).is_ok() && output[0].revents().contains(PollFlags::ERR)
}

/// Prints `value` as indented JSON and nothing else.
pub fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let mut lines = Lines::new();
    match json::write(&mut lines.0, value) {
        Ok(()) => lines.line("")?,
        Err(error) if error.is_io() => check(Err(error.into()))?,
        Err(error) => return Err(Failure::new(error, "")),
    }
    lines.finish()
}

fn check(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => Err(Failure::new(format!("cannot write to standard output: {error}"), "")),
        Ok(()) => Ok(()),
    }
}

/// A length of time to its last digit.
pub fn exact(ns: i64) -> String {
    Duration::from_nanos(ns).to_string()
}

/// A length of time in a cell; none at all is a dash.
pub fn length(ns: i64) -> String {
    if ns == 0 { "-".into() } else { Duration::from_nanos(ns).rounded().to_string() }
}
