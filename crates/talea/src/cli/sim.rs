//! `talea sim`.

use super::failure::Failure;
use super::options::{ResultOptions, SystemOptions, plans, positive};
use super::{artefacts, progress};
use clap::Args;
use std::sync::atomic::{AtomicBool, Ordering};
use talea_sim::{DispatchRecords, Simulation};
use talea_time::{Duration, Instant};
use talea_trace::{Accounting, Sink};

/// Run a system in virtual time, deterministically: the same file and seed give the same bytes.
///
/// The policies are the objects that decide on real threads. Memory does not grow with simulated time unless a
/// trace or schedule is written.
#[derive(Args)]
#[command(after_help = "Example:\n  talea sim examples/ofp.toml --for 1min --strategy muf --json")]
pub struct Options {
    #[command(flatten)]
    system: SystemOptions,
    /// Virtual time to simulate
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = positive)]
    duration: Duration,
    #[command(flatten)]
    results: ResultOptions,
}

pub fn main(options: &Options) -> super::Outcome {
    let system = options.system.read()?;
    plans(&system)?;
    // A trace that is kept is to explain itself; statistics need only the jobs.
    let dispatch =
        if options.results.out.is_some() { DispatchRecords::Kept } else { DispatchRecords::Dropped };
    let simulation = Simulation::new(&system).map_err(|error| Failure::new(error, ""))?;
    let mut simulation = simulation.with_dispatch(dispatch);
    artefacts::ensure_writable(&options.results, &options.system.system)?;
    let mut files = artefacts::Files::create(&options.results, simulation.metadata())?;
    let mut accounting = Accounting::new(simulation.metadata(), options.results.sample);
    let interrupted = super::interrupt::flag()?;
    let reached;
    {
        let mut sink = (&mut accounting, &mut files);
        let end = Instant::ZERO + options.duration;
        advance(&mut simulation, end, &interrupted, &mut sink);
        reached = simulation.now();
        simulation.finish(&mut sink);
    }
    let stopped = if interrupted.load(Ordering::Relaxed) { "interrupted" } else { "completed" };
    let report = accounting.finish(reached);
    let run = serde_json::json!({ "mode": "sim", "seed": system.seed, "stopped": stopped });
    let heading = format!(
        "{}: {} simulated under {}, {} lanes, seed {}{}",
        system.name,
        Duration::from_nanos(report.duration_ns),
        system.strategy,
        system.lane_dispatch,
        system.seed,
        if stopped == "interrupted" { " (interrupted)" } else { "" },
    );
    files.finish(&options.results, &heading, &run, &report)?;
    Ok(super::verdict(&report, options.results.fail_on))
}

/// Advances with progress until the end or an interrupt.
fn advance(simulation: &mut Simulation, end: Instant, interrupted: &AtomicBool, sink: &mut impl Sink) {
    const STEPS: i64 = 1_000;
    let bar = progress::bar("simulating", STEPS as u64);
    let length = i128::from((end - Instant::ZERO).as_nanos());
    simulation.advance_while(end, sink, |now| {
        bar.set_position((i128::from(now.as_nanos()) * i128::from(STEPS) / length) as u64);
        !interrupted.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
}
