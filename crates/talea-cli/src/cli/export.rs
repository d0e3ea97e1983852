//! `talea export`.

use super::failure::{Failure, read_system};
use super::translation::{Destination, show_losses};
use crate::cli::failure::path_shown;
use clap::Args;
use std::path::PathBuf;
use talea_interchange::Format;

/// Write a system for rt-app, for SimSo or as a CSV table
///
/// What the format cannot express is listed on standard error. A system without such losses comes back unchanged with
/// `talea import`.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea export examples/ofp.toml --to rt-app --out ofp.json
  talea export examples/ofp.toml --to csv | column -s, -t

Exit status: 0 fine; 1 something is lost and --strict was given; 2 usage or input error.")]
pub struct Options {
    /// The system file
    system: PathBuf,
    /// The format: rt-app, simso or csv [default: what the extension of --out says]
    #[arg(long, value_name = "FORMAT")]
    to: Option<Format>,
    #[command(flatten)]
    destination: Destination,
}

pub fn main(options: &Options) -> super::Outcome {
    let format = options.to.or_else(|| Format::of_path(options.destination.out.as_deref()?));
    let format = format.ok_or_else(|| {
        Failure::new("it is not said what to export to", "add --to rt-app, --to simso or --to csv")
    })?;
    options.destination.ensure_free(&options.system)?;
    let system = read_system(&options.system)?.system;
    if system.tasks.is_empty() {
        return Err(Failure::new(
            "the file has no task, and other formats know nothing but tasks",
            "export a file with tasks; schedulers and threads cannot be carried over",
        ));
    }
    let exported = talea_interchange::export(format, &system);
    show_losses(&path_shown(&options.system), &exported.losses);
    options.destination.deliver(&exported, &exported.value)
}
