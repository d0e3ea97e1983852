//! `talea sim`.

use super::failure::Failure;
use super::options::{ResultOptions, SystemOptions, lanes_of, planned, positive, who_decides};
use super::run::{
    AFTER_THEIR_PERIOD, LATE_FOR_JOINS, TOO_MANY_IN_FLIGHT, later_than_bounds, of_early_arrivals,
    of_lost_values,
};
use super::{artefacts, progress, report};
use crate::cli::output::tell;
use clap::Args;
use std::sync::atomic::{AtomicBool, Ordering};
use talea_insight::accounting::HierarchyReport;
use talea_insight::{Accounting, Report};
use talea_model::{Node, OperationId, Scheduler, System};
use talea_policy::release::guard;
use talea_record::Sink;
use talea_runtime::EarlyArrivals;
use talea_sim::{DispatchRecords, Mishaps, Simulation};
use talea_time::{Duration, Instant};

/// Run a system in virtual time
///
/// The scheduling code is that of `talea run`; only the clock and the processors are simulated. The same file, seed and options
/// always give the same results, byte for byte. Real-time priorities are not needed.
#[derive(Args)]
#[command(after_help = "Example:\n  talea sim examples/ofp.toml --for 1min --strategy muf --json")]
pub struct Options {
    #[command(flatten)]
    system: SystemOptions,
    /// How much virtual time to simulate
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = positive)]
    duration: Duration,
    #[command(flatten)]
    results: ResultOptions,
}

pub fn main(options: &Options) -> super::Outcome {
    let system = options.system.read()?;
    let plans = lanes_of(&system)?;
    let system = planned(&system, &plans)?;
    note_programs(&system);
    effort(&system, options.duration).iter().for_each(|note| tell!("{note}"));
    // A trace that is kept is to explain itself; statistics need only the jobs.
    let dispatch =
        if options.results.out.is_some() { DispatchRecords::Kept } else { DispatchRecords::Dropped };
    let simulation = Simulation::with_plans(&system, &plans).map_err(|error| Failure::new(error, ""))?;
    let kept = options.results.kept(&system)?;
    let simulation = simulation.with_dispatch(dispatch).with_kept_values(&system, &kept);
    let mut simulation = simulation.map_err(|error| Failure::new(error, ""))?;
    warn_of_shortcomings(&simulation, &system);
    let system_file = &options.system.system;
    let mut files = artefacts::Files::create(&options.results, system_file, simulation.metadata())?;
    let mut accounting = Accounting::new(simulation.metadata(), options.results.sample);
    let interrupted = super::interrupt::flag()?;
    let reached;
    let hierarchies;
    let mishaps;
    {
        let mut both;
        let sink: &mut dyn Sink = if files.are_any() {
            both = (&mut accounting, &mut files);
            &mut both
        } else {
            &mut accounting
        };
        let end = Instant::ZERO + options.duration;
        advance(&mut simulation, end, &interrupted, sink);
        reached = simulation.now();
        hierarchies = promises(&mut simulation, &system);
        mishaps = simulation.mishaps();
        warn_of(&mishaps, &system);
        simulation.finish(sink);
    }
    let stopped = if interrupted.load(Ordering::Relaxed) { "interrupted" } else { "completed" };
    let report = Report { hierarchies, ..accounting.finish(reached) };
    let Mishaps {
        late_signals,
        overflows,
        bound_overruns,
        worst_overrun,
        early_arrivals,
        late_values,
        lost_values,
    } = mishaps;
    let worst_overrun = worst_overrun.map(|worst| {
        let (operation, late_ns) = (name_of(&system, worst.operation), worst.by.as_nanos());
        serde_json::json!({ "operation": operation, "instance": worst.instance, "late_ns": late_ns })
    });
    let early_arrivals = early(&early_arrivals, &system);
    let mishaps = serde_json::json!({
        "late_signals": late_signals, "overflows": overflows, "bound_overruns": bound_overruns,
        "worst_overrun": worst_overrun, "early_arrivals": early_arrivals, "late_values": late_values, "lost_values": lost_values,
    });
    let run =
        serde_json::json!({ "mode": "sim", "seed": system.seed, "stopped": stopped, "mishaps": mishaps });
    let heading = format!(
        "{}: {} simulated under {}, seed {}{}",
        system.name,
        Duration::from_nanos(report.duration_ns),
        who_decides(&system),
        system.seed,
        if stopped == "interrupted" { " (interrupted)" } else { "" },
    );
    files.finish(&options.results, &heading, &run, &report)?;
    report::not_known_to_be_kept(&system, &report).iter().for_each(|note| tell!("{note}"));
    Ok(super::verdict(&report, options.results.fail_on))
}

/// Whether the guarantees of every node with a hierarchy were kept.
fn promises(simulation: &mut Simulation, system: &System) -> Vec<HierarchyReport> {
    let nodes = system.nodes.iter().enumerate();
    let report = |(index, node): (usize, &Node)| {
        let edges = simulation.kept(index)?;
        Some(HierarchyReport { node: node.name.clone(), edges, ended_early: None })
    };
    nodes.filter_map(report).collect()
}

/// Warns of schedulers and threads that are promised less than they need, as a run does.
fn warn_of_shortcomings(simulation: &Simulation, system: &System) {
    for (index, node) in system.nodes.iter().enumerate() {
        if let Some(shortcomings) = simulation.shortcomings(index) {
            tell!("warning: node {}: {shortcomings}; `talea check` explains it", node.name);
        }
    }
}

/// What came earlier than declared, in the words of a run.
fn early(early: &[guard::EarlyArrivals], system: &System) -> Vec<EarlyArrivals> {
    early.iter().map(|early| EarlyArrivals::of(system, *early)).collect()
}

/// Warns of what did not go as planned, in the words of a run.
fn warn_of(mishaps: &Mishaps, system: &System) {
    let worst = mishaps.worst_overrun;
    let worst = worst.map(|worst| (name_of(system, worst.operation), worst.instance, worst.by));
    let lost = of_lost_values(&mishaps.lost_values);
    for remark in lost.into_iter().chain(of_early_arrivals(&early(&mishaps.early_arrivals, system))) {
        tell!("{remark}");
    }
    for (count, what) in [
        (mishaps.late_values, AFTER_THEIR_PERIOD),
        (mishaps.overflows, TOO_MANY_IN_FLIGHT),
        (mishaps.bound_overruns, &later_than_bounds(worst)),
    ] {
        if count > 0 {
            tell!("warning: {count} {what}");
        }
    }
    if mishaps.late_signals > 0 {
        tell!("note: {} {LATE_FOR_JOINS}", mishaps.late_signals);
    }
}

fn name_of(system: &System, operation: OperationId) -> &str {
    &system.operations()[operation.index()].name
}

/// Notes what is simulated in place of programs.
fn note_programs(system: &System) {
    let programs = system.threads.iter().filter(|thread| thread.work.is_program());
    let programs: Vec<&str> = programs.map(|thread| thread.name.as_str()).collect();
    if !programs.is_empty() {
        tell!(
            "note: what programs do is unknown; simulated as always wanting a processor: {}",
            programs.join(", ")
        );
    }
}

/// Notes of quanta that are so short that the simulation takes long.
fn effort(system: &System, duration: Duration) -> Vec<String> {
    /// Some ten seconds' worth.
    const TURNS: i64 = 20_000_000;
    let of = |scheduler: &Scheduler| {
        let quantum = scheduler.quantum?;
        let turns = duration.as_nanos() / quantum.as_nanos();
        let enough = Duration::from_nanos(duration.as_nanos() / TURNS + 1);
        let shorter = Duration::from_nanos(quantum.as_nanos().saturating_mul(TURNS));
        (turns > TURNS).then(|| {
            format!(
                "note: {duration} are up to {} million quanta of {quantum} of scheduler \"{}\", each of which is simulated; with \
                 a quantum of {enough} or `--for {shorter}` it takes some seconds",
                turns / 1_000_000,
                scheduler.name
            )
        })
    };
    system.schedulers.iter().filter_map(of).collect()
}

/// Advances with progress until the end or an interrupt.
fn advance(simulation: &mut Simulation, end: Instant, interrupted: &AtomicBool, sink: &mut dyn Sink) {
    const STEPS: i64 = 1_000;
    let bar = progress::bar("simulating", STEPS as u64);
    let length = i128::from((end - Instant::ZERO).as_nanos());
    simulation.advance_while(end, sink, |now| {
        bar.set_position((i128::from(now.as_nanos()) * i128::from(STEPS) / length) as u64);
        !interrupted.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::{SchedulerBuilder, SchedulerKind, ThreadBuilder, ThreadWork};

    #[test]
    fn what_takes_long_is_announced_with_what_takes_less() {
        let system = |quantum: Duration| {
            System::builder("short")
                .scheduler(SchedulerBuilder::new("PS", SchedulerKind::PROPORTIONAL_SHARE).quantum(quantum))
                .thread(ThreadBuilder::new("t", ThreadWork::CpuBound).with_share("PS", 1))
                .build()
                .expect("sound")
        };
        let ten = Duration::from_secs(10);
        let notes = effort(&system(Duration::from_nanos(1)), ten);
        let [note] = &notes[..] else { panic!("{notes:?}") };
        assert!(note.contains("10s are up to 10000 million quanta of 1ns of scheduler \"PS\""), "{note}");
        assert!(note.contains("a quantum of 501ns or `--for 20ms`"), "{note}");
        assert_eq!(effort(&system(Duration::from_nanos(501)), ten), Vec::<String>::new());
        assert_eq!(effort(&system(Duration::from_nanos(1)), Duration::from_millis(20)), Vec::<String>::new());
    }
}
