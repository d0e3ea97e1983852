//! `talea check`.

mod hierarchy;
mod machine;
mod protocols;

use super::draft::{Draft, Readers};
use super::failure::{Failure, Verdict};
use super::lowering;
use super::options::{FailOn, SystemOptions, lanes_of, positive};
use super::output::{self, Lines, Sheet, wrap};
use crate::cli::output::tell;
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use talea_check::advice::{Advice, Ranked, advise};
use talea_check::machine::MachineCheck;
use talea_check::sensitivity::{Sensitivity, sensitivity};
use talea_check::{self as check, ChainCheck, ChainTimeCheck, Check, CheckReport, NodeCheck, TaskCheck};
use talea_model::{Criticality, MemberLines, Strategy, Synchronisation, System, ThreadWork};
use talea_policy::strategy::Plan;
use talea_time::Duration;

/// Prove or refute that a system's deadlines hold, before it runs
///
/// For every task, a bound on its response time is computed: no run of the described system takes longer, whatever the phases, as
/// long as no job executes for longer than the file says. If the bound is within the deadline, the verdict is "holds". If not, the
/// worst case is simulated: if a deadline is missed there, the verdict is "misses", and else "open", for bounds are pessimistic.
///
/// For every [[chain]], bounds on its latency, reaction time and data age are computed and held against the limits that it has: one that
/// is not kept for sure is "open". Chains of critical tasks count like critical tasks.
///
/// On nodes with [[scheduler]] tables, the check derives from the root down how much processor time every scheduler and thread is
/// promised. If one of them receives less than it needs, the check shows where, why, and the smallest changes that would help. It
/// also says which part of the hierarchy `talea run` would hand over to the kernel on this machine, and warns of programs and
/// processes that are not there.
///
/// The file is validated first; all its problems are shown at once.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 all deadlines and limits of chains hold; 1 one does not, or is open (--fail-on says of which tasks and threads); 2 bad input.

Examples:
  talea check examples/ofp.toml --strategy muf
  talea check examples/ofp.toml --sensitivity
  talea check examples/ofp.toml --advise --for 60s
  talea check examples/ofp.toml --plot ofp.svg
  talea check examples/ofp.toml --machine this
  talea check examples/figure-1.toml --explain --plot hierarchy.svg")]
pub struct Options {
    #[command(flatten)]
    system: SystemOptions,
    /// Say beside what holds on an ideal machine what holds on one that costs and withholds something: its profile, as `talea doctor
    /// --measure` writes it, or "this" for the one that this runs on, which is measured for a second. The exit status is about that machine
    #[arg(long, value_name = "FILE|this")]
    machine: Option<PathBuf>,
    /// Show what every bound is made of, and how every thread's guarantee follows from what the schedulers above it receive
    #[arg(long)]
    explain: bool,
    /// Show by how much execution times may grow and periods shrink before a deadline is in danger; limits of chains are not looked at
    #[arg(long)]
    sensitivity: bool,
    /// Analyse and simulate every strategy on this system, and rank them; compare the protocols that release subtasks with predecessors
    #[arg(long)]
    advise: bool,
    /// How much virtual time --advise simulates for each strategy
    #[arg(long = "for", value_name = "TIME", default_value = "60s", value_parser = positive, requires = "advise")]
    duration: Duration,
    /// Draw every task's bound, part by part, beside its deadline; of a system with schedulers, draw their tree with all guarantees
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// For which tasks a verdict other than "holds" makes the exit status 1; with hard and any, threads that receive less than they
    /// require do, too; with any, bursts of threads that are not sure to be in time
    #[arg(long, value_name = "WHICH", value_enum, default_value_t = FailOn::Hard)]
    fail_on: FailOn,
    /// Print the result as JSON instead
    #[arg(long)]
    json: bool,
}

/// Everything that was asked for.
struct Answer {
    check: Check,
    sensitivity: Option<Sensitivity>,
    advice: Option<Advice>,
    /// What holds on the machine that was asked about.
    machine: Option<MachineCheck>,
}

pub fn main(options: &Options) -> super::Outcome {
    if let Some(plot) = &options.plot {
        super::options::distinct(plot, &options.system.system)?;
        can_be_written(plot)?;
    }
    let (system, lines) = options.system.read_with_lines()?;
    refuse_without_work(options, &system)?;
    let plans = lanes_of(&system)?;
    let answer = answer(options, &system, &plans)?;
    if let Some(plot) = &options.plot {
        let drawn = match answer.check.hierarchies.is_empty() {
            true => talea_figure::bounds::draw(&answer.check.report),
            false => talea_figure::hierarchy::draw(&system.name, &answer.check.hierarchies),
        };
        let drawn = drawn.map_err(|error| Failure::file("draw", plot, error))?;
        Draft::create(plot, Readers::Usual)?.complete(plot, &drawn)?;
    }
    if options.json {
        output::json(&as_json(options, (&system, &lines), &plans, &answer))?;
    } else {
        show(options, (&system, &lines), &plans, &answer)?;
    }
    let asked = |report: &CheckReport| match options.fail_on {
        FailOn::Hard => report.critical == check::Verdict::Holds,
        FailOn::Any => report.all == check::Verdict::Holds,
        FailOn::Never => true,
    };
    let composes = answer.check.composes() || options.fail_on == FailOn::Never;
    let on_machine = answer.machine.as_ref().is_none_or(|machine| {
        asked(&machine.report) && (machine.findings.is_empty() || options.fail_on == FailOn::Never)
    });
    let fine = asked(&answer.check.report) && composes && on_machine;
    Ok(if fine { Verdict::Fine } else { Verdict::Negative })
}

/// The ranking compares strategies, which sort tasks, and margins are of what has periods.
fn refuse_without_work(options: &Options, system: &System) -> Result<(), Failure> {
    let bursts = system.threads.iter().any(|thread| matches!(thread.work, ThreadWork::Bursts { .. }));
    let (option, wanted) = match () {
        () if options.advise && system.tasks.is_empty() => {
            ("--advise", "ranks strategies by what they make of tasks, and")
        }
        () if options.sensitivity && system.tasks.is_empty() && !bursts => {
            ("--sensitivity", "finds margins of tasks and of threads with bursts, and")
        }
        () => return Ok(()),
    };
    Err(Failure::new(
        format!("{option} {wanted} the file has none"),
        "leave it out; where a hierarchy does not compose, the check itself says what would help",
    ))
}

/// Finds out whether a picture can be put there, before the work is done.
fn can_be_written(plot: &Path) -> Result<(), Failure> {
    let folder = plot.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if plot.is_dir() {
        let this = std::io::ErrorKind::IsADirectory.into();
        return Err(Failure::uncreated("the picture", plot, &this));
    }
    std::fs::metadata(folder).map(drop).map_err(|error| Failure::uncreated("the picture", plot, &error))
}

fn answer(options: &Options, system: &System, plans: &[Plan]) -> Result<Answer, Failure> {
    let bar = super::progress::bar("advice", 0);
    let checked = Check::new(system, plans, &mut |done, searches| {
        bar.set_length(searches as u64);
        bar.set_position(done as u64);
    });
    bar.finish_and_clear();
    let check = checked.map_err(|error| {
        Failure::new(error, "shorten the execution times or overheads of the longest task")
    })?;
    let sensitivity = options.sensitivity.then(|| {
        let bar = super::progress::bar("margins", 2 + 2 * system.tasks.len() as u64);
        let found = sensitivity(system, |done, _| bar.set_position(done as u64));
        bar.finish_and_clear();
        found
    });
    let advice = if options.advise { Some(ranked(options, system)?) } else { None };
    let machine = options.machine.as_deref().map(|named| machine::check(named, system, plans)).transpose()?;
    Ok(Answer { check, sensitivity, advice, machine })
}

fn ranked(options: &Options, system: &System) -> Result<Advice, Failure> {
    let interrupted = super::interrupt::flag()?;
    let bar = super::progress::bar("strategies", Strategy::ALL.len() as u64);
    let advice = advise(system, options.duration, |strategy| {
        let place = Strategy::ALL.iter().position(|known| *known == strategy).unwrap_or(0);
        bar.set_position(place as u64);
        !interrupted.load(Ordering::Relaxed)
    });
    bar.finish_and_clear();
    if interrupted.load(Ordering::Relaxed) {
        return Err(Failure::new(
            "interrupted: not all strategies were compared",
            "a shorter --for takes less time",
        ));
    }
    Ok(advice)
}

fn show(
    options: &Options,
    (system, member_lines): (&System, &MemberLines),
    plans: &[Plan],
    answer: &Answer,
) -> Result<(), Failure> {
    let mut lines = Lines::new();
    lines.prose(&heading(system))?;
    for check in &answer.check.hierarchies {
        lines.line(&hierarchy::show(system, check, (&options.system.system, member_lines)))?;
        if let Some(lowering) = hierarchy::lowering(system, check) {
            lines.line(&format!("\n{}", lowering::parts(&check.node, &lowering.account())))?;
        }
        if options.explain {
            lines.prose(&hierarchy::explanation(check))?;
        }
    }
    if !answer.check.report.threads.is_empty() {
        lines.line(&threads(&answer.check.report))?;
    }
    if !answer.check.hierarchies.is_empty() {
        let hierarchies = hierarchy::conclusion(&answer.check.hierarchies, &system.overhead);
        let parts: Vec<String> =
            [Some(hierarchies), bursts(&answer.check.report)].into_iter().flatten().collect();
        lines.prose(&format!("\n{}", parts.join("; ")))?;
        let absent = |check| hierarchy::absentees((&options.system.system, member_lines), system, check);
        let absent = answer.check.hierarchies.iter().flat_map(absent);
        absent.for_each(|warning| tell!("warning: {warning}"));
    }
    if !system.tasks.is_empty() {
        show_tasks(options, system, plans, answer, &mut lines)?;
    } else if let Some(sensitivity) = &answer.sensitivity {
        lines.line(&margins(&answer.check.report, sensitivity))?;
    }
    if let Some(machine) = &answer.machine {
        lines.line(&machine::show(&answer.check, machine, !system.channels.is_empty()))?;
    }
    lines.finish()
}

fn show_tasks(
    options: &Options,
    system: &System,
    plans: &[Plan],
    answer: &Answer,
    lines: &mut Lines,
) -> Result<(), Failure> {
    // A node without tasks is worth a line only where lanes are all that a node can have.
    let shown = |index: &usize| system.schedulers.is_empty() || !plans[*index].lanes.is_empty();
    for index in (0..answer.check.report.nodes.len()).filter(shown) {
        let node = &answer.check.report.nodes[index];
        lines.line(&lanes(system, index, node))?;
        for warning in &plans[index].warnings {
            lines.prose(&format!("warning: {warning}"))?;
        }
        lines.line("")?;
    }
    lines.line(&tasks(&answer.check.report))?;
    if !answer.check.report.chains.is_empty() {
        lines.line(&chains(&answer.check.report.chains))?;
    }
    if options.explain {
        lines.prose(&explanation(&answer.check.report))?;
        for chain in &answer.check.report.chains {
            lines.prose(&chain_explanation(chain))?;
        }
    }
    let open: Vec<&TaskCheck> = answer.check.report.tasks.iter().filter(|task| task.why.is_some()).collect();
    let open_times = times_that_are_open(&answer.check.report.chains);
    if !open.is_empty() || !open_times.is_empty() {
        lines.line("\nwhy not")?;
    }
    for task in open {
        lines.prose(&format!("  {}: {}", task.name, task.why.as_deref().unwrap_or_default()))?;
    }
    for (chain, time) in open_times {
        let why = time.why.as_deref().unwrap_or_default();
        lines.prose(&format!("  {}, {}: {why}", chain.name, time.time))?;
    }
    for task in &answer.check.report.tasks {
        for remark in &task.remarks {
            lines.prose(&format!("note: task {}: {remark}", task.name))?;
        }
    }
    if let Some(sensitivity) = &answer.sensitivity {
        lines.line(&margins(&answer.check.report, sensitivity))?;
    }
    if let Some(advice) = &answer.advice {
        lines.line(&ranking(advice))?;
    }
    let has_limits = system.chains.iter().any(|chain| chain.limits().next().is_some());
    if has_limits && (answer.sensitivity.is_some() || answer.advice.is_some()) {
        lines.prose("note: margins and advice look at deadlines only, and not at the limits of chains")?;
    }
    lines.prose(&format!("\n{}", conclusion(&answer.check.report)))
}

fn heading(system: &System) -> String {
    let of_hierarchies = format!(
        "{}: {}, {}, {}",
        system.name,
        counted(system.schedulers.len(), "scheduler"),
        counted(system.threads.len(), "thread"),
        counted(system.nodes.len(), "node")
    );
    match (system.schedulers.is_empty(), system.tasks.is_empty()) {
        (true, _) => of_lanes(system),
        (false, true) => of_hierarchies,
        (false, false) => format!(
            "{}; {}, {}",
            of_lanes(system),
            counted(system.schedulers.len(), "scheduler"),
            counted(system.threads.len(), "thread")
        ),
    }
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

fn of_lanes(system: &System) -> String {
    format!(
        "{}: {}, {}, {}; {} with {} lanes, laxity {}, late work {}",
        system.name,
        counted(system.tasks.len(), "task"),
        counted(system.operations().len(), "operation"),
        counted(system.nodes.len(), "node"),
        system.strategy,
        system.lane_dispatch,
        system.laxity,
        match system.late {
            talea_model::Late::Last => "last",
            talea_model::Late::None => "where its key puts it",
        },
    )
}

fn lanes(system: &System, index: usize, node: &NodeCheck) -> String {
    let cpus: Vec<String> = system.nodes[index].cpus.iter().map(ToString::to_string).collect();
    let mut parts = vec![format!(
        "\nnode {} (cpu {}): worst-case utilisation {}",
        node.name,
        cpus.join(", "),
        percent(node.utilisation / node.processors as f64),
    )];
    let mut sheet = Sheet::new(4, &["level", "lane", "order", "operations", "used", "with those\nabove"]);
    for lane in &node.lanes {
        sheet.row(vec![
            lane.level.to_string(),
            lane.label.clone(),
            lane.discipline.clone(),
            shortened(&lane.operations),
            percent(lane.utilisation),
            percent(lane.with_those_above),
        ]);
    }
    parts.push(sheet.render());
    if let Some(set) = &node.critical_set {
        let members = if set.is_empty() { "nothing".into() } else { shortened(set) };
        parts.push(wrap(&format!(
            "overloaded in the worst case; the longest prefix by period that fits: {members} (the critical set of \
             maximum urgency first)"
        )));
    }
    let lanes = node.lanes.len();
    if lanes > 0 && lanes < node.processors {
        parts.push(wrap(&format!(
            "warning: {lanes} lane(s) on {} processors: a lane is served by one processor at a time, so the \
             others stay idle; give each processor a node of its own, or use a strategy with more lanes",
            node.processors
        )));
    }
    parts.join("\n")
}

fn tasks(report: &CheckReport) -> String {
    let headings =
        ["task", "criticality", "released by", "deadline", "longest\nresponse", "left", "verdict", "mostly"];
    let mut sheet = Sheet::new(3, &headings).with_text_last();
    let greedy = |task: &&TaskCheck| task.sync.is_none_or(|sync| sync == Synchronisation::Greedy);
    let all_greedy = report.tasks.iter().filter(|task| !greedy(task)).count() == 0;
    for task in &report.tasks {
        let criticality =
            Criticality::from_level(task.criticality).map_or(String::new(), |level| level.to_string());
        let bound = task.bound_ns.map(|bound| {
            let sign = if task.exact { "" } else { "≤ " };
            format!("{sign}{}", Duration::from_nanos(bound))
        });
        sheet.row(vec![
            task.name.clone(),
            criticality,
            // With blanks, at which the cell may be broken.
            task.sync.filter(|_| !all_greedy).map_or(String::new(), |sync| sync.keyword().replace('-', " ")),
            Duration::from_nanos(task.deadline_ns).to_string(),
            bound.unwrap_or_else(|| "no bound".into()),
            task.slack_ns.map_or("".into(), |slack| Duration::from_nanos(slack).to_string()),
            word(task.verdict).into(),
            task.dominated_by.clone().unwrap_or_default(),
        ]);
    }
    sheet.render()
}

/// The bounds on the times of chains beside their limits.
fn chains(chains: &[ChainCheck]) -> String {
    let mut sheet = Sheet::new(2, &["chain", "time", "longest", "limit", "verdict"]).with_text_last();
    for chain in chains {
        for (place, time) in chain.times.iter().enumerate() {
            let of = match time.time {
                "reaction" => "reaction time",
                "age" => "data age",
                other => other,
            };
            let bound = time.bound_ns.map(|bound| format!("≤ {}", Duration::from_nanos(bound)));
            sheet.row(vec![
                if place == 0 { chain.name.clone() } else { String::new() },
                of.into(),
                bound.unwrap_or_else(|| "no bound".into()),
                time.limit_ns.map_or(String::new(), |limit| Duration::from_nanos(limit).to_string()),
                time.verdict.map_or(String::new(), |verdict| word(verdict).into()),
            ]);
        }
    }
    format!("\n{}", sheet.render())
}

/// The times of chains that have a limit which they are not sure to keep, and those without a bound.
fn times_that_are_open(chains: &[ChainCheck]) -> Vec<(&ChainCheck, &ChainTimeCheck)> {
    let all = chains.iter().flat_map(|chain| chain.times.iter().map(move |time| (chain, time)));
    all.filter(|(_, time)| time.why.is_some()).collect()
}

fn chain_explanation(chain: &ChainCheck) -> String {
    let mut lines = vec![format!("  reaction time of {} ({})", chain.name, chain.path.join(" → "))];
    for step in &chain.reaction_steps {
        lines.push(format!("    {:>12}  {}", Duration::from_nanos(step.time_ns).to_string(), step.what));
    }
    if chain.reaction_steps.is_empty() {
        lines.push("    no bound".into());
    }
    lines.join("\n")
}

/// How long bursts of threads take at most.
fn threads(report: &CheckReport) -> String {
    let mut sheet = Sheet::new(3, &["thread", "burst", "every", "longest\nresponse", "in time", "why not"])
        .with_text_last();
    for thread in &report.threads {
        let bound = thread.bound_ns.map(|bound| format!("≤ {}", Duration::from_nanos(bound)));
        let in_time = if thread.verdict == check::Verdict::Holds { "holds" } else { "open" };
        sheet.row(vec![
            thread.name.clone(),
            Duration::from_nanos(thread.burst_ns).to_string(),
            Duration::from_nanos(thread.period_ns).to_string(),
            bound.unwrap_or_else(|| "no bound".into()),
            in_time.into(),
            thread.why.clone().unwrap_or_default(),
        ]);
    }
    format!("\nbursts, each to be done when the next one begins\n{}", sheet.render())
}

fn word(verdict: check::Verdict) -> &'static str {
    match verdict {
        check::Verdict::Holds => "holds",
        check::Verdict::Misses => "misses",
        check::Verdict::Open => "open",
    }
}

/// Whether the bursts of threads are sure to be in time; nothing where there are none.
fn bursts(report: &CheckReport) -> Option<String> {
    let late = report.threads.iter().filter(|thread| thread.verdict != check::Verdict::Holds);
    let late: Vec<String> = late.map(|thread| thread.name.clone()).collect();
    match (report.threads.len(), late.len()) {
        (0, _) => None,
        (all, 0) => Some(format!("the bursts of {} are in time", counted(all, "thread"))),
        (all, _) => Some(format!(
            "the bursts of {} of {} are not sure to be in time: {}",
            late.len(),
            counted(all, "thread"),
            shortened(&late)
        )),
    }
}

fn explanation(report: &CheckReport) -> String {
    let mut lines = vec!["\nwhat the bounds are made of".to_string()];
    for subtask in report.tasks.iter().flat_map(|task| &task.subtasks) {
        let bound =
            subtask.bound_ns.map_or("no bound".into(), |bound| Duration::from_nanos(bound).to_string());
        lines.push(format!(
            "  {} in lane {} of {}: {bound} ({})",
            subtask.name, subtask.lane, subtask.node, subtask.method
        ));
        if let Some(planned) = subtask.planned_ns {
            lines.push(format!(
                "    {:>12}  after its release, its successors are released",
                Duration::from_nanos(planned).to_string()
            ));
        }
        for part in &subtask.parts {
            let jobs = if part.jobs > 1 { format!("{} × ", part.jobs) } else { String::new() };
            lines.push(format!(
                "    {:>12}  {jobs}{}",
                Duration::from_nanos(part.time_ns).to_string(),
                part.cause
            ));
        }
        match subtask.arrival_ns {
            Some(late) if late < 0 => {
                lines.push(format!(
                    "    {:>12}  released up to this late",
                    Duration::from_nanos(-late).to_string()
                ));
            }
            Some(early) if early > 0 => {
                lines.push(format!(
                    "    {:>12}  it arrives this long after the first of them",
                    Duration::from_nanos(-early).to_string()
                ));
            }
            _ => {}
        }
    }
    lines.join("\n")
}

fn margins(report: &CheckReport, sensitivity: &Sensitivity) -> String {
    let factor =
        |ppm: Option<u64>| ppm.map_or("none holds".into(), |ppm| format!("× {:.3}", ppm as f64 / 1e6));
    let mut lines = vec!["\nmargins (factors for execution times, to a thousandth)".to_string()];
    if report.tasks.iter().any(|task| task.critical) {
        lines.push(format!("  all critical tasks hold up to  {}", factor(sensitivity.critical_ppm)));
    }
    if !report.tasks.is_empty() {
        lines.push(format!("  all tasks hold up to           {}", factor(sensitivity.all_ppm)));
    }
    let mut sheet = Sheet::new(1, &["changing only", "execution times", "shortest period"]);
    for margin in &sensitivity.tasks {
        let period = match margin.shortest_period_ns {
            Some(period) => Duration::from_nanos(period).to_string(),
            None if margin.has_period => "none holds".into(),
            None => "has none".into(),
        };
        sheet.row(vec![margin.name.clone(), factor(margin.wcet_ppm), period]);
    }
    lines.push(sheet.render());
    if !sensitivity.protected.is_empty() {
        lines.push(wrap(&format!("  so that it and these hold: {}", shortened(&sensitivity.protected))));
    }
    if sensitivity.left_out > 0 {
        lines.push(format!("  {} tasks are left out: their margins are too costly", sensitivity.left_out));
    }
    lines.join("\n")
}

fn ranking(advice: &Advice) -> String {
    let mut lines = vec!["\nadvice: the choice rests on the circumstances".to_string()];
    lines.extend(advice.environment.iter().map(|fact| wrap(&format!("  {fact}"))));
    let columns = ["", "strategy", "critical proved", "hard missed", "soft met", "soft proved", "switches"];
    let mut sheet = Sheet::new(2, &columns);
    for (place, ranked) in advice.ranking.iter().enumerate() {
        sheet.row(vec![
            (place + 1).to_string(),
            ranked.strategy.to_string(),
            format!("{} of {}", ranked.critical_proved, ranked.critical),
            format!("{} of {}", ranked.hard.missed + ranked.hard.skipped, ranked.hard.offered()),
            format!("{} of {}", ranked.soft.met, ranked.soft.offered()),
            ranked.soft_proved.to_string(),
            ranked.job_switches.to_string(),
        ]);
    }
    lines.push(sheet.render());
    let reason = |ranked: &Ranked| wrap(&format!("  {}: {}", ranked.strategy, ranked.reason));
    lines.extend(advice.ranking.iter().map(reason));
    lines.push(format!(
        "  hard assurance first, soft deadlines second; each strategy simulated for {}",
        Duration::from_nanos(advice.simulated_ns)
    ));
    if let Some(protocols) = &advice.protocols {
        lines.push(protocols::comparison(protocols));
    }
    lines.join("\n")
}

fn conclusion(report: &CheckReport) -> String {
    let count = |critical: bool| {
        let of_kind = report.tasks.iter().filter(|task| task.critical == critical);
        let holds = of_kind.clone().filter(|task| task.verdict == check::Verdict::Holds).count();
        (holds, of_kind.count())
    };
    let ((hard, hard_all), (soft, soft_all)) = (count(true), count(false));
    let worst = |critical: bool| {
        let of_kind = report.tasks.iter().filter(|task| task.critical || !critical);
        let mut verdicts =
            of_kind.map(|task| task.verdict).filter(|verdict| *verdict != check::Verdict::Holds);
        verdicts.clone().find(|verdict| *verdict == check::Verdict::Misses).or(verdicts.next())
    };
    let verdict = match worst(hard_all > 0) {
        None if hard_all == 0 => "every task holds",
        None => "every critical task holds",
        Some(_) if hard_all == 0 => "no task is critical, and not every task is sure to hold",
        Some(check::Verdict::Misses) => "a critical task can miss its deadline",
        Some(_) => "a critical task is not sure to hold",
    };
    let tasks =
        format!("{verdict}: {hard} of {hard_all} critical and {soft} of {soft_all} other tasks are proved");
    let limits = report.chains.iter().flat_map(|chain| chain.times.iter().filter_map(|time| time.verdict));
    match (limits.clone().filter(|verdict| *verdict == check::Verdict::Holds).count(), limits.count()) {
        (_, 0) => tasks,
        (kept, all) => format!("{tasks}; {kept} of {all} limits of chains are kept for sure"),
    }
}

/// Names, at most six of them.
fn shortened(names: &[String]) -> String {
    const NAMES: usize = 6;
    match names.len() {
        count if count <= NAMES => names.join(", "),
        count => format!("{}, … {} more", names[..NAMES].join(", "), count - NAMES),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn as_json(
    options: &Options,
    (system, lines): (&System, &MemberLines),
    plans: &[Plan],
    answer: &Answer,
) -> serde_json::Value {
    let mut json = serde_json::json!(answer.check.report);
    json["lane_dispatch"] = serde_json::json!(system.lane_dispatch);
    json["laxity"] = serde_json::json!(system.laxity);
    json["late"] = serde_json::json!(system.late);
    for (index, plan) in plans.iter().enumerate() {
        let warnings: Vec<String> = plan.warnings.iter().map(ToString::to_string).collect();
        json["nodes"][index]["cpus"] = serde_json::json!(system.nodes[index].cpus);
        json["nodes"][index]["warnings"] = serde_json::json!(warnings);
    }
    if !answer.check.hierarchies.is_empty() {
        json["hierarchies"] = serde_json::json!(answer.check.hierarchies);
        for (index, check) in answer.check.hierarchies.iter().enumerate() {
            let absent = hierarchy::absentees((&options.system.system, lines), system, check);
            json["hierarchies"][index]["warnings"] = serde_json::json!(absent);
            if let Some(lowering) = hierarchy::lowering(system, check) {
                json["hierarchies"][index]["lowering"] = serde_json::json!(lowering.account());
            }
        }
    }
    if let Some(sensitivity) = &answer.sensitivity {
        json["sensitivity"] = serde_json::json!(sensitivity);
    }
    if let Some(advice) = &answer.advice {
        json["advice"] = serde_json::json!(advice);
    }
    if let Some(machine) = &answer.machine {
        json["machine"] = serde_json::json!(machine);
    }
    json
}
