//! `talea trace enable` and `talea trace disable`.

use super::named;
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::{Outcome, output};
use clap::Args;
use std::path::{Path, PathBuf};
use talea_record::stream::publish::Listed;
use talea_record::stream::{Liveness, Operator, Selection, Switching};

// Two commands have these options; what each does stands on its variant.
#[derive(Args)]
pub struct Options {
    /// The program, by process number or name, or the file of its stream; by the name of a program of several processes, all of
    /// them
    #[arg(value_name = "PID|NAME|FILE")]
    stream: PathBuf,
    /// Families or single events, separated by commas, with - before what is left out and * for any letters, such as
    /// dispatch,nav.fix,-dispatch.cost, or complete, or 'job.re*', or all
    #[arg(value_name = "SELECTION")]
    events: Selection,
}

const HELP: &str = "`talea trace list` shows what runs, and `talea trace list NAME` what it can tell";

pub fn main(options: &Options, switching: Switching) -> Outcome {
    let streams = named::streams(&options.stream)?;
    streams.iter().try_for_each(|stream| switch(stream, &options.events, switching))?;
    Ok(Verdict::Fine)
}

fn switch(stream: &Listed, events: &Selection, switching: Switching) -> Result<(), Failure> {
    let Listed { pid, name, path, .. } = stream;
    // First whether it is a stream at all, for no other file may be written to.
    let mut operator = Operator::open(path).map_err(|error| {
        Failure::new(format!("cannot switch events in {}: {error}", path_shown(path)), HELP)
    })?;
    if stream.liveness == Liveness::Dead {
        return Err(Failure::new(format!("process {pid} of \"{name}\" has ended"), HELP));
    }
    operator.switch(events, switching).map_err(|error| Failure::new(error, HELP))?;
    let on = operator.switched_on().map_err(|error| Failure::new(error, ""))?;
    let what = if on.is_empty() { "nothing".into() } else { on.join(", ") };
    output::print(&output::wrap(&format!("switched on by hand in {pid}.{name}: {what}")))?;
    match switching {
        Switching::On => Ok(()),
        Switching::Off => still_on(path, events),
    }
}

/// Says what of `events` others keep on.
fn still_on(path: &Path, events: &Selection) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", path_shown(path)), HELP);
    let listed = Listed::at(path);
    let content = listed.content.as_ref().map_err(|error| failed(error))?;
    let meant = events.names(&content.directory).map_err(|error| failed(&error))?;
    let mut lines = output::Lines::new();
    let mut is_any_on = false;
    // What a dead one wanted is on as well, until the next one comes.
    for consumer in &content.consumers {
        let kept: Vec<&str> =
            consumer.wants.iter().map(String::as_str).filter(|name| meant.contains(*name)).collect();
        if kept.is_empty() {
            continue;
        }
        is_any_on = true;
        let dead = if consumer.liveness == Liveness::Dead { ", which has ended" } else { "" };
        let (name, pid) = (&consumer.name, consumer.pid);
        lines.prose(&format!("still on for \"{name}\" (process {pid}{dead}): {}", kept.join(", ")))?;
    }
    if is_any_on {
        lines.line("an event stays on as long as anybody follows it")?;
    }
    lines.finish()
}
