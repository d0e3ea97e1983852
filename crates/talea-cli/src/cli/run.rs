//! `talea run`.

mod hierarchy;

use super::artefacts::{self, Reserved, TRACE};
use super::failure::Failure;
use super::options::{ResultOptions, SystemOptions, absentees, lanes_of, planned, positive, who_decides};
use super::progress;
use crate::cli::output::tell;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc;
use talea_insight::accounting::NodeReport;
use talea_linux::timer::Tail;
use talea_model::System;
use talea_policy::strategy::Plan;
use talea_runtime::cluster::{MemberError, Membership, run_cluster};
use talea_runtime::doctor;
use talea_runtime::{
    EarlyArrivals, Executive, JudgeBy, Leaving, Links, LostNodes, LostValues, Lower, Operations, Outcome,
    RtMode, RunOptions, Slicing, Stopped, leaving_of, limits,
};
use talea_time::Duration;

/// Of jobs that found no room.
pub(super) const TOO_MANY_IN_FLIGHT: &str =
    "jobs were skipped or aborted because too many instances were in flight";
/// Of signals under protocols that build on response bounds: the worst was for this instance of the operation, and late by so much.
pub(super) fn later_than_bounds(worst: Option<(&str, u64, Duration)>) -> String {
    let what = "signals came later than the response bounds had promised by which successors are released";
    let to = |(operation, instance, by): (&str, u64, Duration)| {
        format!(", at worst that to {operation} #{instance}, by {}", by.rounded())
    };
    what.to_owned() + &worst.map_or(String::new(), to)
}

/// Of values under logical execution time.
pub(super) const AFTER_THEIR_PERIOD: &str =
    "values were published after the end of their period, for their job was late";
/// Of predecessors.
pub(super) const LATE_FOR_JOINS: &str =
    "predecessors were done after their successor had been released without them (`join`)";

/// Run a system on real threads of this machine
///
/// The strategy of the file sorts the operations of tasks into lanes: queues of jobs, each served by one thread with a SCHED_FIFO
/// priority of its own. The work is synthetic: each job uses as much processor time as the file says. A system of several nodes
/// runs as one process per node, which start together. Ctrl-C ends the run and shows the results so far.
///
/// A node with [[scheduler]] tables runs its threads under that hierarchy of schedulers. Commands of [[thread]] tables are started
/// when the run begins and end with it; what they print goes to standard error. The node's tasks run below its
/// schedulers of kind "lanes". A hierarchy needs real-time priorities: without them the run is refused.
///
/// While a hierarchy runs, its guarantees (how much processor time each thread and scheduler is promised) are checked against what
/// the schedulers grant and, if the kernel's context switches may be read, against what the threads receive of it. A hierarchy for
/// which the kernel has equivalent settings (priorities, round robin, deadline reservations) is handed over to the kernel, in short
/// "lowered". Its guarantees are not checked then, and `talea ctl` cannot change it. The result says what was lowered, or why not.
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea run examples/ofp.toml --for 10s
  talea run examples/figure-1.toml --for 10s    # a hierarchy of schedulers
  talea run examples/mixed.toml --for 10s       # tasks and programs in one hierarchy
  talea run examples/priorities.toml --for 10s  # a hierarchy that the kernel runs by itself
  talea run examples/two-nodes.toml --impose-links  # messages between nodes take as long as the file says
  talea run examples/ofp.toml --rt strict --strategy muf --out out/muf")]
pub struct Options {
    #[command(flatten)]
    system: SystemOptions,
    /// How long the run takes
    #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = positive)]
    duration: Duration,
    /// Run until Ctrl-C
    #[arg(long, conflicts_with = "duration")]
    forever: bool,
    /// What to do about real-time priorities: strict refuses to run without them, warn runs without and says so, off does not ask
    /// for them
    #[arg(long, value_name = "MODE", default_value_t = RtMode::Warn)]
    rt: RtMode,
    /// While it runs, lift what the kernel keeps from real-time threads, on all processors (needs root). A real-time thread that
    /// never sleeps, of whatever program, then takes its processor for good. What could not be lifted is said. Afterwards it is put back, by the next `talea` command at the latest
    #[arg(long)]
    unthrottle: bool,
    /// Do not hand hierarchies of schedulers over to the kernel even if it has equivalent settings: guarantees are checked,
    /// and `talea ctl` can change the hierarchy
    #[arg(long)]
    no_lower: bool,
    /// Do not leave the kernel's part of each processor unused in small slices where a hierarchy may take more than the kernel
    /// leaves it: guarantees are derived from whole processors, and the kernel takes its part at a time of its own
    #[arg(long)]
    no_slices: bool,
    /// By what the guarantees of a hierarchy are judged: received, which takes looking at each switch of the kernel,
    /// or grants, which believes that the kernel gave what the hierarchy granted
    #[arg(long, value_name = "WHAT", default_value = "received", value_parser = judge_by)]
    judge: JudgeBy,
    /// How long to spin before each release, to be on time: off, adaptive (as long as the timer was late recently), or
    /// a time up to 1ms, such as 50us
    #[arg(long, value_name = "TAIL", default_value = "adaptive", value_parser = tail)]
    tail: Tail,
    /// By how much a thread may receive less than its guarantee before that counts as broken, since a real machine always
    /// switches some microseconds late
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = positive)]
    tolerance: Duration,
    /// How many threads a preemptive lane has, that is how many of its jobs can be started and unfinished, 1 to 256
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    slots: u16,
    /// Impose the delay, jitter and loss of the [[link]] tables on the messages between nodes, by the seed of the system: the run
    /// loses the same messages as `talea sim` and delays the others by as much. Without it messages go as fast as the machine lets
    /// them, and those that take longer than their link promises are counted
    #[arg(long)]
    impose_links: bool,
    /// When the process of a node ends early, let the other nodes go on without it
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    results: ResultOptions,
}

fn tail(text: &str) -> Result<Tail, String> {
    const LONGEST: Duration = Duration::from_millis(1);
    match text {
        "off" => Ok(Tail::Off),
        "adaptive" => Ok(Tail::default()),
        _ => match positive(text) {
            Ok(tail) if tail <= LONGEST => Ok(Tail::Fixed(tail)),
            Ok(_) => {
                Err(format!("at most {LONGEST}: a longer tail only takes the processor away from the lanes"))
            }
            Err(error) => Err(format!("give off, adaptive, or a time: {error}")),
        },
    }
}

pub fn main(options: Options) -> super::Outcome {
    let (system, lines) = options.system.read_with_lines()?;
    let plans = lanes_of(&system)?;
    let system = planned(&system, &plans)?;
    if options.impose_links && system.links.is_empty() {
        let help = "describe delay, jitter and loss in [[link]] tables, or leave --impose-links out";
        return Err(Failure::new(format!("system \"{}\" has no links to impose", system.name), help));
    }
    if let Some(membership) = Membership::from_environment() {
        return take_part(membership, &system, &options);
    }
    options.results.kept(&system)?;
    let absent =
        (0..system.nodes.len()).flat_map(|node| absentees(&options.system.system, &system, &lines, node));
    let absent: Vec<String> = absent.collect();
    if !absent.is_empty() {
        return Err(Failure::new(absent.join("\n       "), ""));
    }
    let _lifted = options.unthrottle.then(super::limits::lift);
    warn_of_limits(&system, &plans, &run_options(&options));
    let mut reserved = Reserved::create(&options.results, &options.system.system)?;
    let kept = kept_trace(&options.results)?;
    let mut run_options = run_options(&options);
    run_options.keep_log = kept.as_ref().map(|kept| kept.path.clone());
    let stop = run_options.stop.clone();
    // Before anybody can find the run, so that no signal is too early.
    super::interrupt::on_interrupt(move || stop.stop())?;
    let outcome = start(&system, &options, run_options)?;

    show(&system, &options, &outcome, &mut reserved)?;
    if let Some(failure) = &outcome.log_failure {
        return Err(Failure::new(
            format!("the trace is incomplete: {failure}"),
            "what was written before can be read; there is no schedule of it",
        ));
    }
    if let Some(kept) = &kept {
        reserved.schedules_from(&kept.path)?;
    }
    artefacts::tell_folder(&options.results)?;
    // Whatever deadlines are to be forgiven: it did not do what it was to do.
    let is_whole = outcome.hierarchies.iter().all(|hierarchy| hierarchy.ended_early.is_none());
    match is_whole {
        true => Ok(super::verdict(&outcome.report, options.results.fail_on)),
        false => Ok(super::Verdict::Negative),
    }
}

/// Says before the run that it wants more than the kernel leaves real-time threads, if it does.
fn warn_of_limits(system: &System, plans: &[Plan], options: &RunOptions) {
    if options.rt == RtMode::Off {
        return;
    }
    let measure = || doctor::measure(doctor::Thoroughness::Brief, |_, _| true);
    // What makes the analysis impossible, the check tells of; what the run, that tells of it.
    let Ok(beyond) = talea_check::machine::beyond_limits(system, plans, &limits(), measure) else {
        return;
    };
    let leaving = leaving_of(system, options).unwrap_or_default();
    let mut is_held_up = false;
    for load in &beyond {
        let index = system.nodes.iter().position(|node| node.name == load.node);
        match index.and_then(|index| leaving.get(index)) {
            // Nothing is taken from it; how often it left its part it says in the end.
            Some(Leaving::Slices(_)) => continue,
            Some(Leaving::Declined { finding }) => tell!(
                "warning: {load}\n  it does not leave that part in small slices instead, for then somebody would not receive what they \
                 need: {finding}"
            ),
            Some(Leaving::Nothing) | None => tell!("warning: {load}"),
        }
        is_held_up = true;
    }
    if is_held_up {
        tell!(
            "  help: `talea check FILE --machine this` says what holds all the same; --unthrottle lifts the limit where \
             that is permitted"
        );
    }
}

fn judge_by(text: &str) -> Result<JudgeBy, String> {
    match text {
        "received" => Ok(JudgeBy::Received),
        "grants" => Ok(JudgeBy::Grants),
        _ => Err(format!("\"{text}\" is neither received nor grants")),
    }
}

fn run_options(options: &Options) -> RunOptions {
    RunOptions {
        duration: (!options.forever).then_some(options.duration),
        rt: options.rt,
        lower: if options.no_lower { Lower::Never } else { Lower::WherePossible },
        slicing: if options.no_slices { Slicing::Never } else { Slicing::WherePromised },
        judge: options.judge,
        tail: options.tail,
        slots: usize::from(options.slots),
        sample: options.results.sample,
        tolerance: options.tolerance,
        links: if options.impose_links { Links::Impose } else { Links::Judge },
        keep_values: options.results.keep_values.clone().unwrap_or_default(),
        lost_nodes: if options.keep_going { LostNodes::GoOn } else { LostNodes::EndRun },
        ..RunOptions::default()
    }
}

/// One node runs in this process, several in one each.
fn start(system: &System, options: &Options, run_options: RunOptions) -> Result<Outcome, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(error, "");
    if system.nodes.len() == 1 {
        let prepared = Executive::prepare(system, Operations::synthetic(), run_options)
            .map_err(|error| failed(&error))?;
        return with_progress(options, || prepared.run()).map_err(|error| failed(&error));
    }
    let program = std::env::current_exe().map_err(|error| {
        Failure::new(format!("cannot find this program to start the nodes with: {error}"), "")
    })?;
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let command = |_: &str| {
        let mut command = Command::new(&program);
        command.args(&arguments);
        command
    };
    with_progress(options, || run_cluster(system, &run_options, command)).map_err(|error| failed(&error))
}

/// This process is one node of a run that another process of this program coordinates.
fn take_part(membership: Membership, system: &System, options: &Options) -> super::Outcome {
    let node = membership.node().to_string();
    membership
        .run(system, Operations::synthetic(), run_options(options))
        .map(|()| super::Verdict::Fine)
        .map_err(|error| match error {
            MemberError::Prepare(_) => Failure::SaidElsewhere,
            error => Failure::new(format!("node \"{node}\": {error}"), ""),
        })
}

/// Runs `work` beside a progress bar.
fn with_progress<T>(options: &Options, work: impl FnOnce() -> T) -> T {
    const STEPS: u64 = 100;
    let step = std::time::Duration::from_nanos(options.duration.as_nanos() as u64 / STEPS);
    let bar =
        if options.forever { indicatif::ProgressBar::hidden() } else { progress::bar("running", STEPS) };
    let (done, over) = mpsc::channel::<()>();
    std::thread::scope(|scope| {
        // With memory locked, all of a stack takes memory.
        let thread = std::thread::Builder::new().stack_size(256 * 1024);
        let shown = thread.spawn_scoped(scope, move || {
            while over.recv_timeout(step) == Err(mpsc::RecvTimeoutError::Timeout) {
                bar.inc(1);
            }
            bar.finish_and_clear();
        });
        shown.expect("there is room for one more thread");
        let result = work();
        drop(done);
        result
    })
}

/// Where the trace goes while it is needed.
struct Kept {
    path: PathBuf,
    /// Removed with this when it is needed for the schedule only.
    _temporary: Option<tempfile::TempDir>,
}

fn kept_trace(results: &ResultOptions) -> Result<Option<Kept>, Failure> {
    if let Some(folder) = &results.out {
        let path = folder.join(TRACE);
        // The trace is a file of the folder, wherever a link would lead.
        if path.is_symlink() {
            std::fs::remove_file(&path).map_err(|error| Failure::uncreated("the file", &path, &error))?;
        }
        return Ok(Some(Kept { path, _temporary: None }));
    }
    if results.schedule.is_none() {
        return Ok(None);
    }
    let temporary = tempfile::tempdir().map_err(|error| {
        Failure::new(format!("cannot make a temporary folder for the trace: {error}"), "")
    })?;
    Ok(Some(Kept { path: temporary.path().join(TRACE), _temporary: Some(temporary) }))
}

fn show(
    system: &System,
    options: &Options,
    outcome: &Outcome,
    reserved: &mut Reserved,
) -> Result<(), Failure> {
    let realtime = if outcome.realtime { "real-time threads" } else { "ordinary threads (no-rt)" };
    let failures: Vec<String> = outcome.hierarchies.iter().filter_map(hierarchy::failure).collect();
    let first: String = failures.iter().map(|failure| format!("FAILED: {failure}\n\n")).collect();
    let heading = format!(
        "{first}{}: {} on {realtime} under {}{}",
        system.name,
        Duration::from_nanos(outcome.report.duration_ns).rounded(),
        who_decides(system),
        match outcome.stopped {
            Stopped::Completed => "",
            Stopped::Interrupted => " (interrupted)",
            Stopped::Failed => " (ended early)",
        },
    );
    let run = serde_json::json!({
        "mode": "run", "rt": if outcome.realtime { "rt" } else { "no-rt" }, "stopped": outcome.stopped,
        "seed": system.seed, "missing": outcome.missing, "threads": outcome.threads, "spin": outcome.spin,
        "mishaps": outcome.mishaps, "late_records": outcome.late_records,
        "hierarchies": outcome.hierarchies.iter().map(hierarchy::json).collect::<Vec<_>>(),
    });
    let accounts: Vec<String> = outcome.hierarchies.iter().map(hierarchy::accounts).collect();
    let shown = reserved.show(&options.results, &heading, &run, &outcome.report, &accounts);
    failures.iter().for_each(|failure| tell!("error: {failure}"));
    remarks(outcome).iter().for_each(|remark| tell!("{remark}"));
    super::report::not_known_to_be_kept(system, &outcome.report).iter().for_each(|note| tell!("{note}"));
    shown
}

/// Real-time threads get at most 95 % of each second unless the machine is configured otherwise.
const NEARLY_THROTTLED: f64 = 0.93;

/// What went differently than a good run goes, for standard error.
fn remarks(outcome: &Outcome) -> Vec<String> {
    let mut remarks = Vec::new();
    for missing in &outcome.missing {
        remarks.push(format!("warning: {missing}"));
    }
    if !outcome.missing.is_empty() {
        remarks.push("  help: `talea doctor` tests what is permitted; `--rt off` does not ask for it".into());
    }
    // Who leaves the kernel its part in slices is not held up, and says so below.
    let leaves_slices = |name: &str| outcome.hierarchies.iter().any(|one| one.node == name && one.slices > 0);
    let is_near = |node: &&NodeReport| node.utilisation > NEARLY_THROTTLED && !leaves_slices(&node.name);
    let near_limit: Vec<&NodeReport> =
        outcome.report.nodes.iter().filter(|_| outcome.realtime).filter(is_near).collect();
    for node in &near_limit {
        remarks.push(format!(
            "warning: node {}: {:.1} % of its processors used; Linux keeps real-time threads from part of each second \
             (`talea doctor` shows how much), so near or above 95 % even the highest lane waits now and then",
            node.name,
            node.utilisation * 100.0
        ));
    }
    for node in outcome.report.nodes.iter().filter(|node| node.stolen_ns > 0) {
        remarks.push(format!(
            "note: node {}: the host of this virtual machine took its processors for about {} in all (steal time); what was late then is not \
             the run's doing (`talea trace explain` says of each)",
            node.name,
            Duration::from_nanos(node.stolen_ns as i64).rounded()
        ));
    }
    for spin in outcome.spin.iter().filter(|spin| spin.share() > 0.05) {
        remarks.push(format!(
            "warning: node {}: spinning before releases took {:.1} % of a processor; `--tail off` saves it",
            spin.node,
            spin.share() * 100.0
        ));
    }
    remarks.extend(
        outcome
            .hierarchies
            .iter()
            .flat_map(|one| hierarchy::remarks(one, near_limit.iter().any(|node| node.name == one.node))),
    );
    let mishaps = &outcome.mishaps;
    for lost in &mishaps.lost_nodes {
        remarks.push(format!(
            "warning: node {} ended before the run did, after {} ({}); its results go up to there",
            lost.node,
            Duration::from_nanos(lost.after_ns).rounded(),
            lost.how
        ));
    }
    if mishaps.late_begin_ns > 0 {
        remarks.push(format!(
            "warning: the run began {} behind its start, for whoever begins it had no processor or was kept from it; what was due before that was released \
             late, or not at all",
            Duration::from_nanos(mishaps.late_begin_ns).rounded()
        ));
    }
    for panic in &mishaps.panics {
        remarks.push(format!(
            "warning: {} panicked in job {}: {}",
            panic.operation, panic.instance, panic.message
        ));
    }
    remarks.extend(of_lost_values(&mishaps.lost_values));
    remarks.extend(of_early_arrivals(&mishaps.early_arrivals));
    if mishaps.late_signals > 0 {
        remarks.push(format!("note: {} {LATE_FOR_JOINS}", mishaps.late_signals));
    }
    let worst = mishaps.worst_overrun.as_ref();
    let worst =
        worst.map(|worst| (worst.operation.as_str(), worst.instance, Duration::from_nanos(worst.late_ns)));
    for (count, what) in [
        (mishaps.late_values, AFTER_THEIR_PERIOD),
        (mishaps.values_unsent, "values did not fit into a message to another process, and were not sent"),
        (mishaps.values_unread, "messages brought values that could not be decoded, and were not published"),
        (
            mishaps.values_unkept,
            "values or events were not kept, for they came faster than they could be written or have more than 64 KiB",
        ),
        (mishaps.triggers_refused, "calls of triggers were refused, for too many instances were in flight"),
        (mishaps.overflows, TOO_MANY_IN_FLIGHT),
        (mishaps.bound_overruns, &later_than_bounds(worst)),
        (
            mishaps.slow_messages,
            &format!(
                "messages between nodes took longer than their link promises, the slowest by {}",
                Duration::from_nanos(mishaps.slowest_excess_ns)
            ),
        ),
        (mishaps.unsent, "messages between nodes were lost, for there was no room or no way for them"),
        (
            mishaps.unheld,
            "messages between nodes were lost, for there was no room to hold them until their link delivers them",
        ),
        (mishaps.to_left, "messages were not sent, for the node that they were for had ended"),
        (mishaps.slot_shortages, "times a job of a preemptive lane waited for a thread; raise --slots"),
        (
            outcome.late_records,
            "records came too late for this report, which may be off; the trace has them in order",
        ),
    ] {
        if count > 0 {
            remarks.push(format!("warning: {count} {what}"));
        }
    }
    remarks
}

/// Warns of what came earlier than declared.
pub(super) fn of_early_arrivals(early: &[EarlyArrivals]) -> Vec<String> {
    let of_task = |EarlyArrivals { task, arrivals, excess }: &EarlyArrivals| {
        let fate = match excess.as_str() {
            "defer" => "waited",
            "drop" => "were dropped",
            _ => "were counted, and released at once",
        };
        format!(
            "warning: task {task}: {arrivals} arrivals came earlier than its separation and burst declare, and {fate}"
        )
    };
    early.iter().map(of_task).collect()
}

/// Warns of values that no job had.
pub(super) fn of_lost_values(lost: &[LostValues]) -> Vec<String> {
    let of_input = |lost: &LostValues| {
        let input = lost.input.clone();
        let all = [
            (lost.dropped, "values were dropped, for there was no room for them"),
            (lost.overtaken, "values came after the job of their instance had begun, or for none"),
            (lost.lost, "values were lost on the way, by a link"),
        ];
        let any = all.into_iter().filter(|(count, _)| *count > 0);
        any.map(move |(count, what)| format!("warning: input {input}: {count} {what}"))
    };
    lost.iter().flat_map(of_input).collect()
}
