//! `talea trace explain`.

mod intervals;

use super::{named, open, unreadable, warn_of_beginning, warn_of_damage};
use crate::cli::draft::{self, Draft, Readers};
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::options::distinct;
use crate::cli::output::tell;
use crate::cli::output::{self, Sheet, wrap};
use clap::Args;
use intervals::{after_arrival, intervals};
use std::path::{Path, PathBuf};
use talea_figure::response;
use talea_insight::explain::{
    ExplainError, Explanation, Explanations, MOST, Measure, Outcome, Question, Subject, Total, Unexplainable,
    Which, explain, explain_chains, limited,
};
use talea_model::OperationId;
use talea_record::{
    Damage, Event, JobId, Metadata, Origin, RecordedEvents, Sink, SkipReason, TraceError, TraceFile,
};
use talea_time::{Duration, Instant};

/// Explanations of missed deadlines that one reads at once.
const FEW: usize = 5;

/// Say why jobs took as long as they did: of every missed deadline, or of one job
///
/// The response time, from the instant at which the job should have been released to its completion, is divided without gaps into
/// late release, waiting for other jobs, being preempted by others, dispatching, and its own execution. Events that were not recorded
/// leave parts unexplained; the trace that `talea run --out` writes has all of them but those of the kernel.
///
/// With --chain, the longest way of data along a cause-effect chain is divided in the same manner: from the sample on, through each job
/// that handed it on and the time between them, to the completion that used it. Limits of chains that were exceeded are explained behind
/// the missed deadlines.
///
/// In a hierarchy of schedulers the time in which others were served says whose turn it was, and below which scheduler; the time in
/// which nobody above asked for a processor is beyond what is kept for the job's thread or lanes. Of a hierarchy that was lowered to
/// the kernel, threads of higher, the same and lower priorities of the kernel are told apart. What its reservations and ordinary
/// threads do is untold, and where it schedules unseen, its switches have to be recorded (--kernel switches).
#[derive(Args)]
#[command(after_help = "\
Examples:
  talea trace explain out/trace.talea  # every missed deadline, the worst first
  talea trace explain ofp  # of a program that runs
  talea trace explain out/trace.talea --worst  # the slowest instance of every task
  talea trace explain out/trace.talea --chain 'imu to drive'  # the oldest data that the drive acted on
  talea trace explain out/trace.talea --task navigation --job 12 --svg navigation12.svg")]
pub struct Options {
    /// The trace: a file, or a program that runs, by process number or name
    #[arg(value_name = "PID|NAME|FILE")]
    trace: PathBuf,
    /// Only this task; with --job also a subtask, as task.subtask
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// The instance of the task with this number, whether it missed its deadline or not; the first is 0
    #[arg(long, value_name = "NUMBER", requires = "task", conflicts_with = "worst")]
    job: Option<u64>,
    /// The longest way of data along this chain instead of a job: of each of its times that has a limit, or of --time
    #[arg(long, value_name = "CHAIN", conflicts_with_all = ["task", "job", "worst", "limit"])]
    chain: Option<String>,
    /// Which time of the chain: latency, reaction or age
    #[arg(long, value_name = "TIME", requires = "chain", value_parser = measure)]
    time: Option<Measure>,
    /// Of every task the instance with the longest response time, whether it missed its deadline or not
    #[arg(long)]
    worst: bool,
    /// Explain at most this many jobs, up to 1000 [default: 5, or with --worst one of every task]
    #[arg(long, value_name = "NUMBER", value_parser = limit)]
    limit: Option<usize>,
    /// Print the explanations as JSON instead
    #[arg(long)]
    json: bool,
    /// Draw the first job that is explained
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

pub fn main(options: &Options) -> crate::cli::Outcome {
    let path = named::file(&options.trace)?;
    let trace = open(&path)?;
    let metadata = trace.metadata();
    refuse_what_has_no_system(&path, metadata)?;
    let wanted = wanted(options, metadata)?;
    if let Some(svg) = &options.svg {
        distinct(svg, &path)?;
    }
    let (answer, damage) = answer(&trace, &wanted).map_err(|error| match error {
        ExplainError::Replay(error) => unreadable(&path, &error),
        ExplainError::Unexplainable(why) => {
            let Unexplainable::Incomplete { missing } = &why;
            let help = format!("record with {}, or leave --events out", RecordedEvents::options_for(missing));
            Failure::new(format!("{}: {why}", path_shown(&path)), help)
        }
    })?;
    warn_of_beginning(metadata, &answer.recorded);
    warn_of_damage(&path, &damage);
    let question = answer.question;
    if let (Which::Chains, Some(name), []) = (question.which, &options.chain, answer.list.as_slice()) {
        return Err(Failure::new(
            format!("no data came to the end of chain \"{name}\" in the trace"),
            "`talea trace stats` counts the samples of chains",
        ));
    }
    if let (Which::This(subject), []) = (question.which, answer.list.as_slice()) {
        return Err(Failure::new(
            format!("the trace does not tell of {}", answer.name(subject)),
            "`talea trace show` lists the jobs it tells of",
        ));
    }
    let counts = &answer.counts;
    if counts.met + counts.failed() + counts.in_flight == 0 && answer.list.is_empty() {
        tell!(
            "note: the trace tells of no job{}",
            if question.task.is_some() { " of this task" } else { "" }
        );
    }
    if let Some(svg) = &options.svg {
        draw(svg, &path, &question, &answer)?;
    }
    if options.json {
        output::json(&answer)?;
    } else {
        print(&answer)?;
    }
    Ok(Verdict::Fine)
}

/// Programs by themselves have no jobs.
pub(super) fn refuse_what_has_no_system(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    if !metadata.has_system() {
        return Err(Failure::new(
            format!("{} holds no system, only records of programs or of the kernel", path_shown(path)),
            "there are no jobs to explain; `talea trace stats` shows what there is",
        ));
    }
    Ok(())
}

/// Draws the first explanation beside the trace at `path`.
fn draw(svg: &Path, path: &Path, question: &Question, answer: &Explanations) -> Result<(), Failure> {
    let first = answer.list.first().ok_or_else(|| {
        let (why, help) = match question.which {
            Which::Failed => (none_failed(answer), "name a --job, or ask for the --worst"),
            _ => (scoped(answer).none(), "`talea trace show` lists the jobs it tells of"),
        };
        Failure::new(format!("{why}, so there is nothing to draw"), help)
    })?;
    // A skipped instance has no time to draw; the one in its way has.
    let drawn = first.because.as_deref().unwrap_or(first);
    draft::remove_on_interrupt()?;
    let draft = Draft::create(svg, Readers::Like(path))?;
    let picture = response::draw(answer, drawn).map_err(|error| Failure::file("draw", svg, error))?;
    draft.complete(svg, &picture)
}

/// What is asked for.
enum Wanted {
    Jobs(Question),
    /// Of chains, by their indices.
    Chains(Vec<(usize, Measure)>),
}

fn answer(trace: &TraceFile, wanted: &Wanted) -> Result<(Explanations, Damage), ExplainError<TraceError>> {
    let mut damage = Damage::default();
    let mut replay = |mut sink: &mut dyn Sink| {
        damage = trace.replay(&mut sink)?.damage;
        Ok::<(), TraceError>(())
    };
    let metadata = trace.metadata();
    let answer = match wanted {
        Wanted::Chains(chains) => explain_chains(metadata, chains, replay)?,
        Wanted::Jobs(question) => {
            let mut answer = explain(metadata, *question, &mut replay)?;
            let limits = exceeded(metadata, *question);
            if !limits.is_empty() {
                add_exceeded(&mut answer, explain_chains(metadata, &limits, &mut replay));
            }
            answer
        }
    };
    Ok((answer, damage))
}

/// The limits of chains that may be exceeded, where everything is asked for that was missed.
fn exceeded(metadata: &Metadata, question: Question) -> Vec<(usize, Measure)> {
    if (question.which, question.task) != (Which::Failed, None) {
        return Vec::new();
    }
    let has_limit = |(chain, measure): &(usize, Measure)| measure.limit(&metadata.chains[*chain]).is_some();
    let all = (0..metadata.chains.len()).flat_map(|chain| Measure::ALL.map(|measure| (chain, measure)));
    all.filter(has_limit).collect()
}

/// Adds the ways that were longer than their limits, behind the jobs. A trace that does not tell of values tells of no way.
fn add_exceeded(answer: &mut Explanations, ways: Result<Explanations, ExplainError<TraceError>>) {
    if let Ok(Explanations { list, threads, counts, .. }) = ways {
        let exceeded = list.into_iter().filter(|way| way.outcome == Outcome::Missed);
        let room = answer.question.limit.saturating_sub(answer.list.len());
        answer.counts.limits = counts.limits;
        answer.list.extend(exceeded.take(room));
        answer.threads.extend(threads);
    }
}

fn measure(text: &str) -> Result<Measure, String> {
    match text {
        "latency" => Ok(Measure::Latency),
        "reaction" => Ok(Measure::Reaction),
        "age" => Ok(Measure::Age),
        _ => Err("give latency, reaction or age".into()),
    }
}

fn wanted(options: &Options, metadata: &Metadata) -> Result<Wanted, Failure> {
    let Some(name) = &options.chain else { return question(options, metadata).map(Wanted::Jobs) };
    let chain = metadata.chains.iter().position(|chain| chain.name == *name).ok_or_else(|| {
        let names: Vec<&str> = metadata.chains.iter().map(|chain| chain.name.as_str()).collect();
        let help = match names.is_empty() {
            true => "its system has none; describe them in [[chain]] tables".into(),
            false => format!("choose one of: {}", names.join(", ")),
        };
        Failure::new(format!("the trace has no chain \"{name}\""), help)
    })?;
    let measures = options.time.map_or_else(|| limited(metadata, chain), |measure| vec![measure]);
    Ok(Wanted::Chains(measures.into_iter().map(|measure| (chain, measure)).collect()))
}

fn question(options: &Options, metadata: &Metadata) -> Result<Question, Failure> {
    let limit = options.limit.unwrap_or(if options.worst { MOST } else { FEW });
    let Some(name) = &options.task else {
        let which = if options.worst { Which::Worst } else { Which::Failed };
        return Ok(Question { which, task: None, limit });
    };
    let task = metadata.tasks.iter().position(|task| task.name == *name);
    if let Some(number) = options.job {
        let operation = metadata.operations.iter().position(|operation| operation.name == *name);
        let subject = match (task, operation) {
            (Some(task), _) => Subject::Instance { task, number },
            (None, Some(index)) => {
                Subject::Job(JobId { operation: OperationId::from_index(index), instance: number })
            }
            (None, None) => return Err(unknown_task(name, metadata)),
        };
        return Ok(Question { which: Which::This(subject), task: None, limit });
    }
    let task = task.ok_or_else(|| unknown_task(name, metadata))?;
    let which = if options.worst { Which::Worst } else { Which::Failed };
    Ok(Question { which, task: Some(task), limit })
}

pub(super) fn unknown_task(name: &str, metadata: &Metadata) -> Failure {
    let names: Vec<&str> = metadata.task_names().collect();
    let choices = format!("choose one of: {}; with --job also task.subtask", names.join(", "));
    Failure::new(format!("the trace has no task \"{name}\""), choices)
}

fn print(answer: &Explanations) -> Result<(), Failure> {
    let mut lines = output::Lines::new();
    lines.prose(&heading(answer))?;
    for one in &answer.list {
        lines.line("")?;
        for line in text(answer, one, summary(answer, one)) {
            lines.line(&line)?;
        }
        if let Some(because) = &one.because {
            lines.line("")?;
            for line in text(answer, because, summary_up_to(answer, because, one.outcome)) {
                lines.line(&line)?;
            }
        }
    }
    for line in losses(answer) {
        lines.prose(&format!("\n{line}"))?;
    }
    let gaps = gaps(answer);
    if !gaps.is_empty() {
        lines.line("")?;
    }
    gaps.iter().try_for_each(|gap| lines.prose(gap))?;
    lines.finish()
}

/// What records that were lost have to do with the answer.
fn losses(answer: &Explanations) -> Vec<String> {
    let mut lines = Vec::new();
    if answer.lost.programs > 0 {
        lines.push(format!(
            "warning: {} records of the run were lost; what happened then is marked uncertain, and instances that were \
             released or ended then may be missing or counted as unfinished",
            answer.lost.programs
        ));
    }
    if answer.lost.kernel > 0 {
        lines.push(format!(
            "warning: {} records of the kernel were lost; other programs and interrupts of that time are not told apart from \
             execution and waiting",
            answer.lost.kernel
        ));
    }
    lines
}

/// What the answer leaves open because it was not recorded.
fn gaps(answer: &Explanations) -> Vec<String> {
    let gaps = answer.gaps();
    let names: Vec<String> = gaps.iter().flat_map(|(_, missing)| missing.clone()).collect();
    let mut lines: Vec<String> = gaps
        .iter()
        .map(|(what, missing)| format!("not known, for want of {}: {what}", missing.join(", ")))
        .collect();
    // What no event would tell has no name of one.
    let names: Vec<String> = names.into_iter().filter(|name| name.contains('.')).collect();
    if !names.is_empty() {
        lines.push(format!("to have it, record with {}", RecordedEvents::options_for(&names)));
    }
    let is_real = matches!(answer.metadata.origin, Origin::Threads { .. });
    if is_real && !answer.recorded.has(Event::SWITCH) {
        lines.push(
            "the kernel's events are not recorded: other programs and interrupts are within execution and waiting \
             (--kernel switches,interrupts)"
                .into(),
        );
    }
    lines
}

/// The number of explanations asked for.
fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number @ 1..=MOST) => Ok(number),
        Ok(0) => Err("give at least 1".into()),
        _ => Err(format!("give a number up to {MOST}, and ask for others with --task or --job")),
    }
}

/// Whose instances are counted.
enum Scope<'a> {
    /// Of one task.
    Task(&'a str),
    /// Of all tasks, and all of them were asked about.
    All,
    /// Of all tasks, although one job was asked about.
    AllForOne,
}

fn scoped(answer: &Explanations) -> Scope<'_> {
    match (answer.question.task, answer.question.which) {
        (Some(task), _) => Scope::Task(&answer.metadata.tasks[task].name),
        (None, Which::This(_) | Which::Chains) => Scope::AllForOne,
        (None, Which::Failed | Which::Worst) => Scope::All,
    }
}

impl Scope<'_> {
    /// Behind a noun with "no".
    fn of_any(&self) -> String {
        match self {
            Scope::Task(name) => format!(" of {name}"),
            Scope::All => String::new(),
            Scope::AllForOne => " of any task".into(),
        }
    }

    /// Behind a noun with a number.
    fn of_all(&self) -> String {
        match self {
            Scope::Task(_) | Scope::All => self.of_any(),
            Scope::AllForOne => " of all tasks".into(),
        }
    }

    /// There is none.
    fn none(&self) -> String {
        format!("no instance{} is in the records", self.of_any())
    }
}

/// That none failed, as far as the records tell.
fn none_failed(answer: &Explanations) -> String {
    let counts = &answer.counts;
    let (scope, all) = (scoped(answer), counts.met + counts.failed() + counts.in_flight);
    let of = scope.of_any();
    if answer.lost.programs > 0 {
        format!("no missed deadline{of} is in the records that are left")
    } else if !answer.recorded.missing_of_jobs().is_empty() {
        format!("no missed deadline{of} is in what was recorded")
    } else if all == 0 {
        scope.none()
    } else {
        format!("no deadline{of} was missed")
    }
}

fn heading(answer: &Explanations) -> String {
    let question = answer.question;
    let counts = &answer.counts;
    let all = counts.met + counts.failed() + counts.in_flight;
    let named = [
        (counts.missed, "missed"),
        (counts.aborted, "aborted"),
        (counts.skipped, "skipped"),
        (counts.overdue, "overdue at the end"),
    ];
    let parts: Vec<String> =
        named.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let failed = match counts.failed() {
        0 => none_failed(answer),
        failed => format!(
            "{failed} of {all} instances{} did not end in time ({})",
            scoped(answer).of_all(),
            parts.join(", ")
        ),
    };
    let ways = answer.list.iter().filter(|one| matches!(one.subject, Subject::Way { .. })).count() as u64;
    let shown = answer.list.len() as u64 - ways;
    let rest = match question.which {
        // How others fared has nothing to do with the one that is named.
        Which::This(_) | Which::Chains => {
            return format!("{} under {}", answer.metadata.system, answer.metadata.strategy);
        }
        Which::Failed if counts.failed() > shown => {
            let how = if question.limit < MOST { "--limit" } else { "--task or --job" };
            format!("\nthe {shown} worst; {} more with {how}", counts.failed() - shown)
        }
        Which::Worst if question.task.is_none() && shown == question.limit as u64 => {
            match answer.metadata.tasks.len() as u64 {
                tasks if tasks > shown => {
                    format!("\nthe slowest {shown} of {tasks} tasks; the others with --limit")
                }
                _ => String::new(),
            }
        }
        _ => String::new(),
    };
    let limits = match counts.limits {
        0 => String::new(),
        1 => "; 1 limit of a chain was exceeded".into(),
        limits => format!("; {limits} limits of chains were exceeded"),
    };
    let hidden = match counts.limits - ways {
        0 => String::new(),
        hidden => {
            format!("\n{hidden} of the limits are not explained here: give --chain, or a greater --limit")
        }
    };
    format!("{} under {}: {failed}{limits}{rest}{hidden}", answer.metadata.system, answer.metadata.strategy)
}

/// One explanation below its summary, in lines that fit the output.
fn text(answer: &Explanations, one: &Explanation, summary: String) -> Vec<String> {
    let mut lines = vec![wrap(&summary)];
    lines.push(wrap(&format!("  {}", answer.sentence(one))));
    if one.hops.len() > 1 {
        lines.extend(path(answer, one));
    }
    if !one.events.is_empty() {
        lines.push(String::new());
        lines.extend(one.events.iter().map(|event| wrap(&format!("  {}", answer.event_text(event)))));
    }
    if !one.totals.is_empty() {
        lines.push(String::new());
        lines.extend(totals(answer, one));
        lines.push(String::new());
        lines.extend(intervals(answer, one));
    }
    lines
}

fn summary(answer: &Explanations, one: &Explanation) -> String {
    let name = answer.name(one.subject);
    let at = |instant: Instant| since_start(answer, instant);
    let how = match one.outcome {
        Outcome::Met if one.due().is_none() => "no limit".into(),
        Outcome::Met => format!("met with {} left", (-one.lateness()).rounded()),
        Outcome::Missed => format!("MISSED by {}", one.lateness().rounded()),
        Outcome::Aborted => "ABORTED".into(),
        Outcome::Skipped { reason: SkipReason::Merged } => {
            let when = match one.response() {
                Duration::ZERO => "when it arrived".into(),
                after => format!("{} after it arrived", after.rounded()),
            };
            return format!("{name}: MERGED at {}, {when}", at(one.end));
        }
        Outcome::Skipped { .. } => return format!("{name}: SKIPPED at {}", at(one.end)),
        Outcome::Unfinished if one.lateness() >= Duration::ZERO => {
            format!("UNFINISHED, {} late by then", one.lateness().rounded())
        }
        Outcome::Unfinished => "unfinished".into(),
    };
    format!("{name}: {how}; {} from {} to {}", one.response().rounded(), at(one.arrival), at(one.end))
}

/// The same of an explanation that goes up to an instant at which another instance was skipped because of this one, or merged with it.
fn summary_up_to(answer: &Explanations, one: &Explanation, other: Outcome) -> String {
    let how = match other {
        Outcome::Skipped { reason: SkipReason::Merged } => "not begun",
        _ => "unfinished",
    };
    let [arrival, end] = [one.arrival, one.end].map(|at| since_start(answer, at));
    let (name, response) = (answer.name(one.subject), one.response().rounded());
    format!("{name}, up to then: {how}; {response} from {arrival} to {end}")
}

fn path(answer: &Explanations, one: &Explanation) -> Vec<String> {
    let since = |at: Instant| after_arrival(one, at);
    let optional = |at: Option<Instant>| at.map_or("-".into(), since);
    let mut sheet = Sheet::new(1, &["critical path", "released", "began", "ended"]);
    for hop in &one.hops {
        sheet.row(vec![
            answer.job_name(hop.job),
            optional(hop.is_released.then_some(hop.released)),
            optional(hop.started),
            optional(hop.ended),
        ]);
    }
    std::iter::once(String::new()).chain(sheet.render_indented()).collect()
}

/// A share of the response below which causes stand in one row.
const SMALL: f64 = 0.005;

fn totals(answer: &Explanations, one: &Explanation) -> Vec<String> {
    let mut sheet = Sheet::new(1, &["went into", "before", "waiting", "begun", "total", "share"]);
    let whole_ns = one.response().as_nanos().max(1) as f64;
    // What is too small to matter stands in one row, if it is more than one.
    let is_small = |total: &&Total| total.sum().as_nanos() as f64 / whole_ns < SMALL;
    let small: Vec<&Total> = one.totals.iter().filter(is_small).collect();
    let folded = if small.len() > 1 { small } else { Vec::new() };
    let mut row = |what: &str, [before, waiting, begun]: [Duration; 3]| {
        let length = |length: Duration| match length {
            Duration::ZERO => "-".to_string(),
            length => length.rounded().to_string(),
        };
        let sum = before + waiting + begun;
        let share = format!("{:.1} %", sum.as_nanos() as f64 / whole_ns * 100.0);
        sheet.row(vec![what.into(), length(before), length(waiting), length(begun), length(sum), share]);
    };
    for total in one.totals.iter().take(one.totals.len() - folded.len()) {
        let what = format!("{} {}", total.kind.words(), answer.blamed_name(total.blamed));
        row(what.trim_end(), [total.coming, total.waiting, total.begun]);
    }
    if !folded.is_empty() {
        let sum = |of: fn(&Total) -> Duration| folded.iter().map(|total| of(total)).sum();
        let parts = [sum(|total| total.coming), sum(|total| total.waiting), sum(|total| total.begun)];
        row(&format!("{} smaller ones", folded.len()), parts);
    }
    sheet.render_indented()
}

fn since_start(answer: &Explanations, at: Instant) -> String {
    let ns = at.as_nanos().saturating_sub(answer.metadata.start.as_nanos());
    format!("{:.6} s", ns as f64 / 1e9)
}
