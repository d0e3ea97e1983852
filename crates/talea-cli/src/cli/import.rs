//! `talea import`.

use super::failure::Failure;
use super::translation::{Destination, groups, show_losses};
use crate::cli::failure::path_shown;
use crate::cli::output::tell;
use clap::Args;
use std::path::PathBuf;
use talea_interchange::{Format, Translated};
use talea_model::{Description, System};

/// Make a system file of an rt-app file, a SimSo simulation or a CSV table
///
/// What a system file has no key for, and what had to be assumed, is listed on standard error and in a comment at the top of the
/// result.
#[derive(Args)]
#[command(after_help = "\
Tables have a row per subtask under the columns task, period, deadline, phase, jitter, criticality, \
importance, overrun, subtask, node, cpus, wcet, exec and after; task, period and wcet must be there. \
Times have a unit, or the first row names it: period_ms. Cells of exec: 4ms, uniform 1ms 4ms, list 4ms 1ms; \
of after: names, or [].

Examples:
  talea import examples/ofp.json --out ofp-again.toml
  talea import examples/tasks.csv --strict > tasks.toml

Exit status: 0 fine; 1 something is lost and --strict was given; 2 usage or input error.")]
pub struct Options {
    /// The file
    file: PathBuf,
    /// What format it is in: rt-app, simso or csv [default: what its extension or content says]
    #[arg(long, value_name = "FORMAT")]
    from: Option<Format>,
    #[command(flatten)]
    destination: Destination,
}

pub fn main(options: &Options) -> super::Outcome {
    options.destination.ensure_free(&options.file)?;
    let text = talea_interchange::read(&options.file)?;
    let format = match options.from {
        Some(format) => format,
        None => guess(options, &text)?,
    };
    let name = path_shown(&options.file);
    let imported = talea_interchange::import(format, &name, &text)?;
    show_losses(&name, &imported.losses);
    let system = System::new(imported.value.clone()).map_err(|violations| {
        let lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
        Failure::new(lines.join("\n       "), "")
    })?;
    for warning in system.warnings() {
        tell!("{name}: {}: {}\n  help: {}", warning.severity, warning.message, warning.remedy);
    }
    options.destination.deliver(&imported, &(head(&name, format, &imported) + &system.to_toml()))
}

fn guess(options: &Options, text: &str) -> Result<Format, Failure> {
    if options.file.extension().is_some_and(|extension| extension == "toml") {
        let message = format!("{} is called like a system file", path_shown(&options.file));
        return Err(Failure::new(message, "use it as it is; `talea check` shows what it says"));
    }
    Format::of_path(&options.file).or_else(|| Format::of_text(text)).ok_or_else(|| {
        let message =
            format!("{} does not look like any format that can be imported", path_shown(&options.file));
        Failure::new(message, "say which it is: --from rt-app, --from simso or --from csv")
    })
}

/// Comments for the top of the system file, so that its readers know what it does not say.
fn head(name: &str, format: Format, imported: &Translated<Description>) -> String {
    let mut text = comment(&format!("Imported from {name} ({format})."));
    let groups = groups(&imported.losses);
    if !groups.is_empty() {
        text += &comment("What does not carry over, and what had to be assumed:");
    }
    for group in groups {
        text += &comment(&format!("- {group}"));
    }
    text + "\n"
}

/// One line of comment; a name may contain anything, also the end of a line.
fn comment(text: &str) -> String {
    let line: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("# {line}\n")
}
