//! `talea trace enable` and `talea trace disable`.

use crate::cli::failure::{Failure, Verdict};
use crate::cli::{Outcome, output};
use clap::Args;
use talea_trace::stream::{Liveness, Operator, Selection, StreamDirectory, Switching};

/// Switch events of a running program on or off from outside.
///
/// What is switched on is written into the program's rings, whether or not anybody follows; `talea trace list` names the
/// file, which `talea trace show` reads. Whoever follows a program switches on what it wants by itself, and what it wants stays on.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea trace enable ofp dispatch
  talea trace enable 4711 nav.fix,job
  talea trace disable ofp all")]
pub struct Options {
    /// The program, by process number or name
    #[arg(value_name = "PID|NAME")]
    stream: String,
    /// Families or single events, such as dispatch,nav.fix,-dispatch.cost, or all
    #[arg(value_name = "SELECTION")]
    events: Selection,
}

pub fn main(options: &Options, switching: Switching) -> Outcome {
    let help = "`talea trace list` shows what runs, and `talea trace list NAME` what it can tell";
    let directory = StreamDirectory::of_user().map_err(|error| Failure::new(error, ""))?;
    let found = directory.find(&options.stream).map_err(|error| Failure::new(error, help))?;
    if found.liveness == Liveness::Dead {
        return Err(Failure::new(format!("process {} of \"{}\" has ended", found.pid, found.name), help));
    }
    let mut operator = Operator::open(&found.path).map_err(|error| Failure::new(error, help))?;
    operator.switch(&options.events, switching).map_err(|error| Failure::new(error, help))?;
    let on = operator.switched_on().map_err(|error| Failure::new(error, ""))?;
    let what = if on.is_empty() { "nothing".into() } else { on.join(", ") };
    output::print(&format!("switched on by hand in {}.{}: {what}", found.pid, found.name))?;
    Ok(Verdict::Fine)
}
