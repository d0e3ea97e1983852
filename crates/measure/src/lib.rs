//! What benchmarks and tests share: how much to measure, subjects beside the floors that the machine sets, tests that are
//! skipped so that it is seen, and waiting for what others do.
//!
//! Figures of different runs on a shared machine differ more than what is measured does. Within one run, subject
//! and floor alternate, so that their ratio holds; that is why every group of a [`Report`] has a floor.

#![forbid(unsafe_code)]

mod report;
mod skipped;
mod waiting;

use report::Format;
pub use report::{Report, Role, Samples};
pub use skipped::{FILE as SKIPPED_FILE, output_of, skip};
use std::process::ExitCode;
pub use waiting::eventually;

/// How much a benchmark measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Enough to see that everything runs, as under `cargo test --benches`.
    Smoke,
    /// Enough for the order of magnitude.
    Quick,
    /// Enough for the tails.
    Full,
}

/// The main function of a benchmark: measures as much as its arguments ask for and prints the report in the format that they name.
pub fn main(measure: impl FnOnce(Effort) -> Report) -> ExitCode {
    match Request::from_arguments(std::env::args().skip(1)) {
        Ok(request) => {
            measure(request.effort).print(request.format);
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// What a benchmark was asked for.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// How much it is to measure.
    effort: Effort,
    /// How it is to print what it found.
    format: Format,
}

impl Request {
    /// Reads the command line: `--quick`, `--json`, and the `--bench` that `cargo bench` adds.
    /// Else what to tell the user.
    fn from_arguments(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut request = Request { effort: Effort::Smoke, format: Format::Table };
        for argument in arguments {
            match argument.as_str() {
                // `cargo bench` says this to every benchmark, `cargo test --benches` to none.
                "--bench" if request.effort != Effort::Quick => request.effort = Effort::Full,
                "--bench" => {}
                "--quick" => request.effort = Effort::Quick,
                "--json" => request.format = Format::JsonLines,
                unknown => return Err(format!("unknown argument {unknown}; this takes --quick and --json")),
            }
        }
        Ok(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_holds_wherever_cargo_puts_its_own_argument() {
        let effort = |arguments: &[&str]| {
            Request::from_arguments(arguments.iter().map(ToString::to_string)).map(|request| request.effort)
        };
        assert_eq!(effort(&[]), Ok(Effort::Smoke));
        assert_eq!(effort(&["--bench"]), Ok(Effort::Full));
        assert_eq!(effort(&["--bench", "--quick"]), Ok(Effort::Quick));
        assert_eq!(effort(&["--quick", "--bench"]), Ok(Effort::Quick));
        assert!(effort(&["--fast"]).is_err());
    }
}
