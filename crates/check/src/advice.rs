//! Which strategy for this system?
//!
//! No strategy is best for all systems: one that meets most soft deadlines at a moderate load misses hard ones in an overload. So
//! the choice must regard the load, its jitter and what a miss means (Gill, Schmidt and Cytron 2002, sections
//! 5 and 6). Every strategy is analysed *and* simulated on the system as it is, with its jitter and its
//! execution times, and ranked by proved hard deadlines first and soft deadlines second.

use super::protocols::{self, ProtocolAdvice};
use super::score::{Kind, Score};
use super::tasks_that_hold;
use super::witness::time_of;
use serde::Serialize;
use std::cmp::Reverse;
use talea_analysis::Effort;
use talea_analysis::system::{analyse, with_response_bounds};
use talea_insight::Accounting;
use talea_model::{Strategy, System};
use talea_policy::strategy::plan_lanes_of;
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

/// Jobs that each strategy is simulated for at most: in an overload, all of them may wait in memory.
const JOBS: i64 = 1_000_000;

/// Steps that the analysis of one strategy may take.
const EFFORT: u64 = 100_000_000;

/// The strategies, best first, and what about the system decides.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// What about the system decides, in sentences.
    pub environment: Vec<String>,
    /// How long each strategy was simulated.
    pub simulated_ns: i64,
    /// Best first.
    pub ranking: Vec<Ranked>,
    /// How the synchronisation protocols compare under the system's own strategy, if subtasks wait for others.
    pub protocols: Option<ProtocolAdvice>,
}

/// How a strategy serves the system.
#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    /// The strategy.
    pub strategy: Strategy,
    /// Why it cannot be used; the numbers are zero then.
    pub unusable: Option<String>,
    /// Critical tasks in all.
    pub critical: usize,
    /// Critical tasks that are sure to hold.
    pub critical_proved: usize,
    /// Other tasks that are sure to hold.
    pub soft_proved: usize,
    /// Hard deadlines in the simulation.
    pub hard: Score,
    /// Soft deadlines in the simulation.
    pub soft: Score,
    /// Changes of the job on a processor in the simulation.
    pub job_switches: u64,
    /// Why it has this rank.
    pub reason: String,
}

/// Ranks all strategies by analysing each and simulating each for `simulated`, or the time of a million jobs if that is
/// shorter. `go_on` is called with the next strategy, and ends the comparison by returning false; the remaining ones are then left
/// out.
pub fn advise(system: &System, simulated: Duration, mut go_on: impl FnMut(Strategy) -> bool) -> Advice {
    let simulated = simulated.min(time_of(system, JOBS));
    let mut ranking = Vec::new();
    for &strategy in Strategy::ALL {
        if !go_on(strategy) {
            break;
        }
        ranking.push(examine(&system.with_strategy(strategy), simulated, || go_on(strategy)));
    }
    ranking.sort_by_key(|ranked| {
        let soft_permille = 1_000_000 * ranked.soft.met / ranked.soft.offered().max(1);
        (
            ranked.unusable.is_some(),
            ranked.hard.missed + ranked.hard.skipped > 0,
            Reverse(ranked.critical_proved),
            ranked.hard.missed + ranked.hard.skipped,
            Reverse(soft_permille),
            Reverse(ranked.soft_proved),
            ranked.job_switches,
        )
    });
    explain(&mut ranking);
    let protocols = plan_lanes_of(system).ok().and_then(|plans| protocols::compare(system, &plans, EFFORT));
    Advice { environment: environment(system), simulated_ns: simulated.as_nanos(), ranking, protocols }
}

fn examine(system: &System, simulated: Duration, mut go_on: impl FnMut() -> bool) -> Ranked {
    let critical = system.tasks.iter().filter(|task| task.criticality.is_critical()).count();
    let mut ranked = Ranked {
        strategy: system.strategy,
        unusable: None,
        critical,
        critical_proved: 0,
        soft_proved: 0,
        hard: Score::default(),
        soft: Score::default(),
        job_switches: 0,
        reason: String::new(),
    };
    let plans = match plan_lanes_of(system) {
        Ok(plans) => plans,
        Err(anomalies) => {
            ranked.unusable = Some(anomalies.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "));
            return ranked;
        }
    };
    let planned = with_response_bounds(system, &plans, &mut Effort::new(EFFORT));
    let system = match &planned {
        Ok(planned) => planned,
        Err(error) => {
            ranked.unusable = Some(error.to_string());
            return ranked;
        }
    };
    if let Ok(bounds) = analyse(system, &plans, &mut Effort::new(EFFORT)) {
        for (task, holds) in tasks_that_hold(system, &bounds).into_iter().enumerate() {
            let critical = system.tasks[task].criticality.is_critical();
            ranked.critical_proved += usize::from(holds && critical);
            ranked.soft_proved += usize::from(holds && !critical);
        }
    }
    let mut simulation = match Simulation::with_plans(system, &plans) {
        Ok(simulation) => simulation,
        Err(error) => {
            ranked.unusable = Some(error.to_string());
            return ranked;
        }
    };
    let mut accounting = Accounting::new(simulation.metadata(), Duration::from_secs(1));
    simulation.advance_while(Instant::ZERO.saturating_add(simulated), &mut accounting, |_| go_on());
    let end = simulation.now();
    simulation.finish(&mut accounting);
    let report = accounting.finish(end);
    ranked.hard = Score::of(&report, Kind::Hard);
    ranked.soft = Score::of(&report, Kind::Soft);
    ranked.job_switches = report.nodes.iter().map(|node| node.job_switches).sum();
    ranked
}

/// Gives every strategy the reason for its rank, compared with the one above it.
fn explain(ranking: &mut [Ranked]) {
    for place in 0..ranking.len() {
        let (above, rest) = ranking.split_at_mut(place);
        let ranked = &mut rest[0];
        let facts = facts(ranked);
        ranked.reason = match above.last() {
            _ if ranked.unusable.is_some() => ranked.unusable.clone().expect("just asked"),
            None => facts,
            Some(better) => format!("{facts}; behind {}: {}", better.strategy, difference(better, ranked)),
        };
    }
}

fn facts(ranked: &Ranked) -> String {
    let hard = match (ranked.critical, ranked.hard.missed + ranked.hard.skipped) {
        (0, _) => "no task is critical".into(),
        (all, 0) => format!("{} of {all} critical tasks proved, no hard miss seen", ranked.critical_proved),
        (all, missed) => format!(
            "{} of {all} critical tasks proved, {missed} of {} hard deadlines missed",
            ranked.critical_proved,
            ranked.hard.offered()
        ),
    };
    match ranked.soft.offered() {
        0 => hard,
        offered => format!("{hard}; {} of {offered} soft deadlines met", ranked.soft.met),
    }
}

fn difference(better: &Ranked, worse: &Ranked) -> &'static str {
    let lost = |ranked: &Ranked| ranked.hard.missed + ranked.hard.skipped;
    if (lost(better) == 0) != (lost(worse) == 0) {
        "it loses hard deadlines"
    } else if better.critical_proved != worse.critical_proved {
        "fewer critical tasks are proved"
    } else if lost(better) != lost(worse) {
        "more hard deadlines are lost"
    } else if better.soft.met != worse.soft.met {
        "fewer soft deadlines are met"
    } else if better.soft_proved != worse.soft_proved {
        "fewer soft tasks are proved"
    } else if better.job_switches != worse.job_switches {
        "it switches more often"
    } else {
        "nothing tells them apart here; the list's order decides"
    }
}

/// The circumstances on which the choice rests.
fn environment(system: &System) -> Vec<String> {
    let mut facts = Vec::new();
    for (index, node) in system.nodes.iter().enumerate() {
        let processors = node.cpus.len() as f64;
        let worst = system.utilisation(index) / processors;
        let critical: f64 = system
            .operations_on(index)
            .filter(|operation| system.task_of(operation.id).criticality.is_critical())
            .map(|operation| {
                let wcet = system.subtask(operation.id).wcet.as_nanos() as f64;
                wcet / system.task_of(operation.id).period.as_nanos() as f64
            })
            // An empty sum of floating-point numbers is minus zero.
            .fold(0.0, |sum: f64, load| sum + load)
            / processors;
        let consequence = if critical > 1.0 {
            "no strategy can serve even the critical work"
        } else if worst > 1.0 {
            "overload is possible; strategies that look at criticality first (muf, rms+mlf, criticality) keep it \
             away from hard deadlines, those that look at rates or deadlines alone (rms, edf, mlf) do not"
        } else {
            "no overload as long as jobs keep to their worst case; strategies differ in who waits, and those that do \
             not look at criticality (rms, edf, mlf) can still lose a hard deadline shorter than its period"
        };
        facts.push(format!(
            "node {}: worst-case load {:.1} %, of it critical {:.1} %: {consequence}",
            node.name,
            worst * 100.0,
            critical * 100.0
        ));
    }
    let jittery = system.tasks.iter().filter(|task| task.jitter > Duration::ZERO).count();
    let varying = system
        .tasks
        .iter()
        .flat_map(|task| &task.subtasks)
        .filter(|subtask| !matches!(subtask.exec, talea_model::Execution::Constant(_)))
        .count();
    if jittery + varying > 0 {
        facts.push(format!(
            "{jittery} tasks with release jitter, {varying} subtasks of varying execution time: the simulation draws \
             both from the file's seed, the same for every strategy"
        ));
    } else {
        facts.push("no jitter and constant execution times: the simulation repeats itself".into());
    }
    facts
}
