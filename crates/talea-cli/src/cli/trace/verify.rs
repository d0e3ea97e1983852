//! `talea trace verify`.

use super::{named, open, promises, unreadable, warn_of_damage};
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::machine;
use crate::cli::options::{SystemOptions, planned, plans};
use crate::cli::output::{self, Sheet};
use clap::Args;
use std::path::PathBuf;
use talea_insight::verify::{
    Basis, Certainty, Coverage, Judged, OtherSystem, Rule, RuleReport, Unjudgeable, UnrecordedEvents,
    Verifier, VerifyReport, default_overhead, default_tolerance,
};
use talea_record::{Contents, Metadata, Origin, TraceFile};
use talea_time::Duration;

/// Check that a run obeyed the scheduling rules of its system, from its trace
///
/// The rules are about lanes (no lower lane runs while a higher one has jobs), the order in each lane, preemption, releases,
/// precedence and overruns. A trace of another system is refused; one of the same system under another strategy has violations. A
/// trace that lacks events of jobs is refused, a rule for which the trace has no case is shown as not judged, and one that rests on events which
/// the recording left out as unknown, with their names.
///
/// Of a trace of a hierarchy of schedulers, its decisions are judged instead: whether they could be made, whether jobs executed only where
/// they were given a processor, and whether the guarantees that are recorded as broken were broken, and no others. Where only some nodes have
/// a hierarchy, the lanes and guards of the others are judged as well, by the rules above. What the kernel decides, to which a hierarchy was
/// lowered, is held against the priorities that it was given where its switches were recorded, and else not judged. Of lanes below schedulers everything is judged but when they have a processor: order, preemption, releases, precedence
/// and overruns.
#[derive(Args)]
#[command(after_help = "\
Real threads take time to wake up. So in their traces the rules lanes, idle and order are violated only by a wrong state that \
lasts longer than --tolerance, and the rule overrun by an instance that is ended or skipped that much late. Since every real \
release is late, the rule release is violated by early ones only, and by guards that opened late. The default of 200us is a rule of \
thumb: the table says how many wrong states it let pass and how long the longest of them was. Simulated traces are judged to the nanosecond. A lane's thread that has a \
processor without a job while one is ready dispatches; that is overhead up to --overhead, and beyond it violates the rule dispatching.

Every instance that had to arrive must be released or skipped in the trace, and every successor released (the rule arrivals). Around \
lost records, before a recording began, and for the last 100ms of a run on threads, what is missing is unknown, neither obeyed nor \
violated; where records were lost, so is the verdict. docs/verification.md lists what changes of a trace are found, and which are not.

Which thread really had a processor is known only if the kernel's context switches were recorded, too (talea trace record). Without \
them, a processor may look idle or taken by a lower lane while the kernel withholds it, as real-time throttling does: what the \
rules idle and lanes find in a trace of real threads, and order in preemptive lanes, is then shown as possible, not as a violation. And while jobs of several \
lanes have begun on one processor, the rule lanes is not judged. In other lanes order is possible where the lane lost its processor \
before it told what it had chosen.

Exit status: 0 no certain violation; 1 there is one; 2 bad input, a trace that cannot be judged, or a damaged one whose rest shows \
no violation.

Examples:
  talea trace verify examples/ofp.toml out/trace.talea
  talea trace verify examples/ofp.toml out/trace.talea --tolerance 50us --overhead 100us --json
  talea trace verify examples/ofp.toml ofp --machine machine.toml  # a run that goes on")]
pub struct Options {
    #[command(flatten)]
    system: SystemOptions,
    /// The trace: a file, or a program that runs, by process number or name
    #[arg(value_name = "PID|NAME|FILE")]
    trace: PathBuf,
    /// How long a wrong state may last before it counts as a violation [default: 0s for simulated traces, 200us for real ones]
    #[arg(long, value_name = "TIME")]
    tolerance: Option<Duration>,
    /// How long a lane's thread may have a processor without a job while one is ready, before the rule dispatching is violated [default: 0s
    /// for simulated traces; for real ones what --machine says, and else 1ms]
    #[arg(long, value_name = "TIME")]
    overhead: Option<Duration>,
    /// The machine of a real run: its profile, as `talea doctor --measure` writes it, or "this" for the one that this runs on. Dispatching may
    /// take there what a switch, the queue, a timer, a message and the events of a job cost, and the longest stall seen
    #[arg(long, value_name = "PROFILE|this", conflicts_with = "overhead")]
    machine: Option<PathBuf>,
    /// List at most this many violations
    #[arg(long, value_name = "NUMBER", default_value_t = 20)]
    limit: usize,
    /// Print the result as JSON instead
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let path = named::file(&options.trace)?;
    let trace = open(&path)?;
    let system = options.system.read()?;
    let metadata = trace.metadata();
    let tolerance = options.tolerance.unwrap_or_else(|| default_tolerance(metadata.origin));
    let overhead = match (&options.machine, metadata.origin) {
        (Some(_), Origin::Simulation { .. }) => {
            return Err(Failure::new(
                "--machine is about runs on threads, and the trace is of a simulation",
                "leave --machine out; what dispatching costs in a simulation its system file says",
            ));
        }
        (Some(machine), Origin::Threads { .. }) => {
            machine::named(machine)?.longest_dispatch(&system).max(tolerance)
        }
        (None, origin) => options.overhead.unwrap_or_else(|| default_overhead(origin)),
    };
    for (name, time) in [("--tolerance", tolerance), ("--overhead", overhead)] {
        if time < Duration::ZERO {
            return Err(Failure::new(
                format!("{name} is negative"),
                "give how long a wrong state may last, such as 50us",
            ));
        }
    }
    if promises::has_hierarchy(metadata) {
        let form = if options.json { promises::Form::Json } else { promises::Form::Text };
        return promises::verify(&path, &trace, &system, (form, options.limit), (tolerance, overhead));
    }
    let plans = plans(&system)?;
    // Where there are no bounds, releases that go by them are unknown.
    let system = planned(&system, &plans).unwrap_or(system);
    let coverage = coverage(options, &trace)?;
    let other = |error: OtherSystem| {
        let (trace, system) = (path_shown(&path), path_shown(&options.system.system));
        Failure::new(
            format!("{trace} and {system}: {error}"),
            "give the system file that the run was made with",
        )
    };
    let verifier = Verifier::new(metadata, &system, &plans, tolerance).map_err(other)?;
    let mut verifier = verifier.with_coverage(coverage).with_overhead(overhead);
    let replayed = trace.replay(&mut verifier).map_err(|error| unreadable(&path, &error))?;
    warn_of_damage(&path, &replayed.damage);
    let report = verifier.finish().with_damage(&replayed.damage);
    if options.json {
        output::json(&report)?;
    } else {
        print(&report, metadata, options.limit)?;
    }
    match (report.count(), report.is_whole()) {
        (0, true) => Ok(Verdict::Fine),
        (0, false) => Err(Failure::new(
            format!("{}: what is left shows no violation, but the trace is damaged", path_shown(&path)),
            "record it anew; of what is damaged nobody can say that it obeyed",
        )),
        _ => Ok(Verdict::Negative),
    }
}

/// What of the run is in the trace, which is read for that once more.
fn coverage(options: &Options, trace: &TraceFile) -> Result<Coverage, Failure> {
    let metadata = trace.metadata();
    let mut contents = Contents::new(metadata);
    trace.replay(&mut contents).map_err(|error| unreadable(&options.trace, &error))?;
    Coverage::of(metadata, &contents).map_err(|error| {
        let (path, system) = (path_shown(&options.trace), path_shown(&options.system.system));
        // What was found by a program's name or number is the program's and no place for a recording.
        let out = if options.trace.is_file() { path.to_string() } else { "trace.talea".into() };
        let record = format!("talea trace record --out {out} -- talea run {system} --for 10s");
        let help = match error {
            Unjudgeable::Incomplete { .. } => format!(
                "record all events of jobs, and when the run began: leave --events out, or give --events job,run:\n        {record}"
            ),
            Unjudgeable::NoSystem => format!("record a run of the system:\n        {record}"),
            Unjudgeable::NoJobs => format!("record a run that is long enough to release jobs:\n        {record}"),
        };
        Failure::new(format!("{path}: {error}"), help)
    })
}

fn print(report: &VerifyReport, metadata: &Metadata, limit: usize) -> Result<(), Failure> {
    let mut lines = output::Lines::new();
    tell(&mut lines, report, metadata, limit)?;
    lines.finish()
}

/// What was found of the lanes.
pub(super) fn tell(
    lines: &mut output::Lines,
    report: &VerifyReport,
    metadata: &Metadata,
    limit: usize,
) -> Result<(), Failure> {
    let listed = report.violations.iter().take(limit);
    for violation in listed {
        let [job, other] = [&violation.job, &violation.other].map(|name| name.as_deref());
        let who = match (job, other) {
            (Some(job), Some(other)) => format!("{job} before {other}: "),
            (Some(job), None) => format!("{job}: "),
            _ => String::new(),
        };
        let length = match violation.duration_ns {
            0 => String::new(),
            ns => format!(", for {}", Duration::from_nanos(ns).rounded()),
        };
        let seconds = violation.at_ns as f64 / 1e9;
        let label = format!("{seconds:>14.9}  {:<14}  ", violation.rule.name());
        let what = format!(
            "{who}{}{length}{}",
            violation.text,
            match (violation.certainty, violation.rule) {
                (Certainty::Certain, _) => "",
                (Certainty::Possible, Rule::Lanes) => ", unless the kernel held the higher lane's thread off",
                (Certainty::Possible, Rule::Order) => ", unless its lane was held off meanwhile",
                (Certainty::Possible, _) => ", unless the kernel held it off",
            }
        );
        lines.line(&output::wrap_beside(&label, &what))?;
    }
    let count = report.count() + report.possible();
    let shown = report.violations.len().min(limit) as u64;
    if count > shown {
        lines.line(&format!("{:>14}  and {} more", "...", count - shown))?;
    }
    if count > 0 {
        lines.line("")?;
    }
    lines.line(&rules(report))?;
    for line in summary(report, metadata) {
        lines.prose(&line)?;
    }
    Ok(())
}

fn rules(report: &VerifyReport) -> String {
    let mut sheet = Sheet::new(
        2,
        &["rule", "verdict", "cases", "violations", "longest", "possible", "longest", "tolerated", "longest"],
    );
    for rule in &report.rules {
        sheet.row(row(rule));
    }
    sheet.render()
}

fn row(rule: &RuleReport) -> Vec<String> {
    let verdict = match rule.judged() {
        Judged::Obeyed => "obeyed",
        Judged::ObeyedInPart => "judged in part",
        Judged::Violated => "violated",
        Judged::PossiblyViolated => "uncertain",
        Judged::NotJudged => "not judged",
        Judged::Unknown => "unknown",
    };
    let count = |count: u64| if count == 0 { "-".into() } else { count.to_string() };
    let length = |ns: i64| if ns == 0 { "-".into() } else { Duration::from_nanos(ns).rounded().to_string() };
    vec![
        rule.rule.name().into(),
        verdict.into(),
        count(rule.cases),
        count(rule.violations),
        length(rule.longest_ns),
        count(rule.possible),
        length(rule.longest_possible_ns),
        count(rule.tolerated),
        length(rule.longest_tolerated_ns),
    ]
}

fn summary(report: &VerifyReport, metadata: &Metadata) -> Vec<String> {
    let tolerance = Duration::from_nanos(report.tolerance_ns);
    let verdict = match report.count() {
        0 if !report.is_whole() => "incomplete, no violation in what is left of a damaged trace".to_string(),
        0 if report.possible() > 0 => {
            format!("no certain violation, {} possible", report.possible())
        }
        0 if report.lost_records > 0 => {
            "unknown, for records were lost; no violation in what could be judged".to_string()
        }
        0 if report.is_partial() => "no violation in what could be judged".to_string(),
        0 => "obeyed".to_string(),
        1 => "1 violation".to_string(),
        count => format!("{count} violations"),
    };
    let count = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let judged = match (report.jobs, report.bursts) {
        (jobs, 0) => count(jobs, "job"),
        (0, bursts) => format!("{} of threads", count(bursts, "burst")),
        (jobs, bursts) => format!("{} and {} of threads", count(jobs, "job"), count(bursts, "burst")),
    };
    let mut lines = vec![format!(
        "{} under {}: {verdict}; {judged}, tolerance {tolerance}",
        report.system, report.strategy
    )];
    if report.strategy != report.strategy_of_trace {
        lines.push(format!("note: the trace was made under {}", report.strategy_of_trace));
    }
    if metadata.origin == (Origin::Threads { realtime: false }) {
        lines.push(
            "note: the threads of this run had no real-time priority, so lanes did not preempt each other"
                .into(),
        );
    }
    lines.extend(notes(report, metadata, tolerance));
    lines
}

/// What the want of events leaves of a rule.
fn unrecorded(UnrecordedEvents { rule, basis, events }: &UnrecordedEvents) -> String {
    let what = match basis {
        Basis::Doubtful => "what is found by the rule {} is possible only",
        Basis::Recorded | Basis::InPart => "not everything is known of the rule {}",
        Basis::Unrecorded => "nothing is known of the rule {}",
    };
    let (what, were) = (what.replace("{}", rule.name()), if events.len() == 1 { "was" } else { "were" });
    format!("note: {what}, for {} {were} not recorded (--events)", events.join(", "))
}

/// What was not judged, or not with certainty, and why.
fn notes(report: &VerifyReport, metadata: &Metadata, tolerance: Duration) -> Vec<String> {
    let mut lines = Vec::new();
    let without_case: Vec<&str> = report.without_case().map(Rule::name).collect();
    if !without_case.is_empty() {
        lines.push(format!("note: not judged, for the trace has no case of it: {}", without_case.join(", ")));
    }
    if !report.below_schedulers.is_empty() {
        lines.push(format!(
            "note: not judged on {}, where schedulers say when lanes have a processor: {}",
            report.below_schedulers.join(", "),
            Rule::OF_PROCESSORS.map(Rule::name).join(", ")
        ));
    }
    lines.extend(report.left_open().map(|rule| left_open(report, rule, tolerance)));
    lines.extend(report.unrecorded.iter().map(unrecorded));
    let is_left_out = |rule: &&RuleReport| report.unrecorded.iter().any(|known| known.rule == rule.rule);
    let unknown = report.rules.iter().filter(|rule| rule.unknown > 0 && !is_left_out(rule));
    lines.extend(unknown.map(|rule| {
        let (count, name) = (rule.unknown, rule.rule.name());
        match rule.rule {
            Rule::Release if report.lost_records == 0 => format!(
                "note: of {count} cases of the rule {name} not everything is known, for they rest on signals, idle points or timers that were not \
                 recorded"
            ),
            _ => format!(
                "warning: of {count} cases of the rule {name} nothing is known, for they are where records were lost, or at the very end"
            ),
        }
    }));
    if !report.unheard_nodes.is_empty() {
        lines.push(format!(
            "warning: nothing was recorded of {}; neither its jobs nor what waits for them could be judged",
            report.unheard_nodes.join(", ")
        ));
    }
    if !report.unidentified_nodes.is_empty() {
        lines.push(format!(
            "warning: no record says which of the kernel's threads are those of {}, so lanes and idle were not judged there",
            report.unidentified_nodes.join(", ")
        ));
    }
    if let Origin::Threads { .. } = metadata.origin {
        lines.push(tolerance_note(report, tolerance));
    }
    if matches!(metadata.origin, Origin::Threads { .. }) && !report.has_kernel {
        lines.push(
            "note: the kernel was not recorded, so a processor that it held off cannot be told from an idle one, nor a thread \
             that it held off from one that came too late, and what idle and lanes find is only possible, as what order does in preemptive lanes; record with --kernel switches"
                .into(),
        );
    }
    if report.lost_records > 0 {
        lines.push(format!(
            "warning: {} records were lost; what they would tell is unknown, and no rule was judged by it",
            report.lost_records
        ));
    }
    if report.unjudged > 0 {
        lines.push(format!(
            "warning: {} records about jobs could not be judged, for of what was before them nothing is known",
            report.unjudged
        ));
    }
    lines
}

/// For a rule that needs the kernel's records, what is missing and how to record it.
fn left_open(report: &VerifyReport, rule: &RuleReport, tolerance: Duration) -> String {
    let part = if rule.judged() == Judged::NotJudged { "not judged" } else { "judged in part only" };
    let remedy = if report.has_kernel {
        "the kernel's records of that time do not tell the lanes' threads from others"
    } else {
        "record with --kernel switches to have it judged"
    };
    format!(
        "warning: {} was {part}: for longer than {tolerance} jobs of several lanes had begun on one processor and nobody saw which \
         of them ran, {}, the longest for {}; {remedy}",
        rule.rule.name(),
        times(rule.unseen),
        Duration::from_nanos(rule.longest_unseen_ns).rounded(),
    )
}

fn times(count: u64) -> String {
    if count == 1 { "once".into() } else { format!("{count} times") }
}

/// How many wrong states the tolerance let pass: it is a rule of thumb, so a reader should know how close the verdict was.
fn tolerance_note(report: &VerifyReport, tolerance: Duration) -> String {
    let waking = || report.rules.iter().filter(|rule| rule.rule != Rule::Dispatching);
    let tolerated: u64 = waking().map(|rule| rule.tolerated).sum();
    let longest = waking().map(|rule| rule.longest_tolerated_ns).max().unwrap_or(0);
    let passed = match tolerated {
        0 => "none did".to_string(),
        _ => format!("{tolerated} did, the longest for {}", Duration::from_nanos(longest).rounded()),
    };
    format!(
        "note: lanes, idle and order may be wrong for up to {tolerance} while real threads wake up, and {passed}; \
         --tolerance sets another time; a thread may dispatch for up to {}, which --overhead sets, or --machine",
        Duration::from_nanos(report.overhead_ns)
    )
}
