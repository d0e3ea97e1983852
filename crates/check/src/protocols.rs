//! Which synchronisation protocol for this system?
//!
//! The protocols differ in when a subtask with predecessors is released, and so in how much interference it makes for others and
//! how late it is itself (Sun and Liu 1996). Every protocol is analysed with the lanes that the system has; what it takes to run it is
//! said beside it.

use super::tasks_that_hold;
use serde::Serialize;
use talea_analysis::Effort;
use talea_analysis::system::{SystemBounds, analyse, with_response_bounds};
use talea_model::{Synchronisation, System};
use talea_policy::strategy::Plan;
use talea_time::Duration;

/// How the protocols serve the system.
#[derive(Clone, Debug, Serialize)]
pub struct ProtocolAdvice {
    /// Names of the tasks that have subtasks with predecessors, or whose bound depends on the protocol; the bounds below are theirs.
    pub tasks: Vec<String>,
    /// Their deadlines.
    pub deadlines_ns: Vec<i64>,
    /// Best first.
    pub ranking: Vec<RankedProtocol>,
    /// Which one makes all deadlines with the least effort, or comes closest, in a sentence.
    pub conclusion: String,
}

/// The system under one protocol.
#[derive(Clone, Debug, Serialize)]
pub struct RankedProtocol {
    /// The protocol, of all tasks.
    pub sync: Synchronisation,
    /// Longest time from arrival to completion of each of the tasks, where it has a bound.
    pub bounds_ns: Vec<Option<i64>>,
    /// Critical tasks in all.
    pub critical: usize,
    /// Critical tasks that are sure to hold.
    pub critical_proved: usize,
    /// Other tasks in all.
    pub soft: usize,
    /// Other tasks that are sure to hold.
    pub soft_proved: usize,
    /// Why it cannot be used, if so.
    pub unusable: Option<String>,
    /// What it takes, and what is to be known about its bounds.
    pub remarks: Vec<&'static str>,
}

impl RankedProtocol {
    /// Whether every task is sure to hold.
    pub fn proves_all(&self) -> bool {
        self.unusable.is_none() && self.critical_proved == self.critical && self.soft_proved == self.soft
    }
}

/// What a protocol takes to run, least first.
fn remark(sync: Synchronisation) -> &'static str {
    match sync {
        Synchronisation::Greedy => "needs nothing; delays add up along a chain and become jitter for others",
        Synchronisation::ReleaseGuard => "needs a timer per subtask, neither bounds nor synchronised clocks",
        Synchronisation::ReleaseGuardIdle => {
            "as release-guard; averages are shorter, for guards are reset whenever the node is idle"
        }
        Synchronisation::ReleaseGuardIdleOne => {
            "as release-guard; at an idle point one waiting instance passes"
        }
        Synchronisation::ModifiedPhaseModification => {
            "needs a response bound of every subtask; averages are as long as the worst case"
        }
        Synchronisation::PhaseModification => {
            "needs response bounds, synchronised clocks and periodic first releases; averages are as long as the worst case"
        }
    }
}

/// That of guards that are reset in lanes for which nobody has proved it harmless.
const OPEN: &str = "whether resetting guards at idle points can do harm in non-preemptive lanes by deadline or laxity is an open \
                    question; the bounds do not count on guards keeping releases apart";

/// What is to be known about the protocol of a task.
pub(super) fn remarks(system: &System, bounds: &SystemBounds, task: usize) -> Vec<String> {
    let described = &system.tasks[task];
    let mut remarks = Vec::new();
    if bounds.counts_idle_points_as_open(task) {
        remarks.push(format!("{}: {OPEN}", described.sync));
    }
    let has_successors = system.operations_of(task).iter().any(|operation| !operation.successors.is_empty());
    if described.sync == Synchronisation::PhaseModification
        && described.jitter > Duration::ZERO
        && has_successors
    {
        remarks.push(format!(
            "{}: releases of successors count from the arrival, so that the bound of the first subtask includes the jitter of {}",
            described.sync, described.jitter
        ));
    }
    let planned = system.operations_of(task).iter().filter(|operation| !operation.successors.is_empty());
    for operation in planned.filter(|_| described.sync.needs_bounds()) {
        let (Some(given), Ok(proved)) =
            (system.subtask(operation.id).bound, bounds.until_known(system, operation.id))
        else {
            continue;
        };
        if given < proved {
            remarks.push(format!(
                "{}: its bound of {given} is not proved, only {proved} is; a job that takes longer is counted, and its \
                 successor waits for it",
                operation.name
            ));
        }
    }
    remarks
}

/// Compares all protocols in the lanes of `plans`; `None` if no subtask has predecessors.
pub(super) fn compare(system: &System, plans: &[Plan], effort: u64) -> Option<ProtocolAdvice> {
    let has_order =
        |task: &usize| system.tasks[*task].subtasks.iter().any(|subtask| !subtask.after.is_empty());
    let chains: Vec<usize> = (0..system.tasks.len()).filter(has_order).collect();
    if chains.is_empty() {
        return None;
    }
    let mut examined: Vec<(Synchronisation, Result<SystemBounds, String>)> = Vec::new();
    for &sync in Synchronisation::ALL {
        examined.push((sync, examine(&system.with_synchronisation(sync), plans, effort)));
    }
    let bound = |bounds: &Result<SystemBounds, String>, task: usize| {
        bounds.as_ref().ok()?.tasks[task].response.ok().map(|bound| bound.as_nanos())
    };
    let depends = |task: &usize| {
        let mut all =
            examined.iter().filter(|(_, bounds)| bounds.is_ok()).map(|(_, bounds)| bound(bounds, *task));
        let first = all.next();
        all.any(|other| Some(other) != first)
    };
    let shown: Vec<usize> =
        (0..system.tasks.len()).filter(|task| chains.contains(task) || depends(task)).collect();
    let mut ranking: Vec<RankedProtocol> = examined
        .iter()
        .map(|(sync, bounds)| {
            ranked(system, *sync, bounds, shown.iter().map(|task| bound(bounds, *task)).collect())
        })
        .collect();
    let deadlines_ns: Vec<i64> = shown.iter().map(|task| system.tasks[*task].deadline.as_nanos()).collect();
    ranking.sort_by(|a, b| {
        let proved = |ranked: &RankedProtocol| (ranked.critical_proved, ranked.soft_proved);
        let tightest = |ranked: &RankedProtocol| tightest(ranked, &deadlines_ns);
        (a.unusable.is_some().cmp(&b.unusable.is_some()))
            .then(proved(b).cmp(&proved(a)))
            // Among those that prove everything the one that takes least, which the sort leaves in front.
            .then(if a.proves_all() {
                std::cmp::Ordering::Equal
            } else {
                tightest(a).total_cmp(&tightest(b))
            })
    });
    let conclusion = conclusion(&ranking);
    let tasks = shown.iter().map(|task| system.tasks[*task].name.clone()).collect();
    Some(ProtocolAdvice { tasks, deadlines_ns, ranking, conclusion })
}

fn examine(system: &System, plans: &[Plan], effort: u64) -> Result<SystemBounds, String> {
    let planned =
        with_response_bounds(system, plans, &mut Effort::new(effort)).map_err(|error| error.to_string())?;
    analyse(&planned, plans, &mut Effort::new(effort)).map_err(|error| error.to_string())
}

fn ranked(
    system: &System,
    sync: Synchronisation,
    bounds: &Result<SystemBounds, String>,
    bounds_ns: Vec<Option<i64>>,
) -> RankedProtocol {
    let critical = |task: &usize| system.tasks[*task].criticality.is_critical();
    let all = 0..system.tasks.len();
    let hold = bounds.as_ref().map(|bounds| tasks_that_hold(system, bounds)).unwrap_or_default();
    let proved = |task: &usize| hold.get(*task).copied().unwrap_or(false);
    let is_open =
        bounds.as_ref().is_ok_and(|bounds| all.clone().any(|task| bounds.counts_idle_points_as_open(task)));
    RankedProtocol {
        sync,
        bounds_ns,
        critical: all.clone().filter(critical).count(),
        critical_proved: all.clone().filter(critical).filter(proved).count(),
        soft: all.clone().filter(|task| !critical(task)).count(),
        soft_proved: all.clone().filter(|task| !critical(task)).filter(proved).count(),
        unusable: bounds.as_ref().err().cloned(),
        remarks: std::iter::once(remark(sync)).chain(is_open.then_some(OPEN)).collect(),
    }
}

/// The largest part of its deadline that a bound takes; infinite if one is missing.
fn tightest(ranked: &RankedProtocol, deadlines_ns: &[i64]) -> f64 {
    let part = |(bound, deadline): (&Option<i64>, &i64)| {
        bound.map_or(f64::INFINITY, |bound| bound as f64 / *deadline as f64)
    };
    ranked.bounds_ns.iter().zip(deadlines_ns).map(part).fold(0.0, f64::max)
}

fn conclusion(ranking: &[RankedProtocol]) -> String {
    let best = &ranking[0];
    let proving: Vec<String> =
        ranking.iter().filter(|ranked| ranked.proves_all()).map(|ranked| ranked.sync.to_string()).collect();
    match proving.len() {
        0 => format!(
            "no protocol makes all deadlines sure; {} proves most: {} of {} critical and {} of {} other tasks",
            best.sync, best.critical_proved, best.critical, best.soft_proved, best.soft
        ),
        count if count == ranking.len() => {
            format!("every protocol makes all deadlines sure; {} takes least", best.sync)
        }
        _ => format!("all deadlines are sure under {}; {} takes least", proving.join(", "), best.sync),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::{Strategy, SubtaskBuilder, TaskBuilder};
    use talea_policy::strategy::plan_system;
    use talea_time::Work;

    /// A chain over two nodes that disturbs a task on the second one; greedily its jitter makes that task late.
    fn system(deadline: i64) -> System {
        let ns = Duration::from_nanos;
        let step = |name, node, wcet| SubtaskBuilder::new(name).on(node).wcet(Work::from_nanos(wcet));
        let early = TaskBuilder::new("early", ns(8)).on("a").wcet(Work::from_nanos(2));
        let chain =
            TaskBuilder::new("chain", ns(10)).subtask(step("first", "a", 4)).subtask(step("second", "b", 4));
        let victim =
            TaskBuilder::new("victim", ns(40)).deadline(ns(deadline)).on("b").wcet(Work::from_nanos(6));
        let builder = System::builder("s").strategy(Strategy::Rms).node("a", [0]).node("b", [1]);
        builder.task(early).task(chain).task(victim).build().expect("it is valid")
    }

    fn advice(system: &System) -> Option<ProtocolAdvice> {
        compare(system, &plan_system(system).expect("it has lanes"), 10_000_000)
    }

    #[test]
    fn the_protocol_that_takes_least_among_those_that_prove_all_is_first() {
        let advice = advice(&system(12)).expect("it has a chain");
        assert_eq!(advice.tasks, ["chain", "victim"], "the one whose bound depends on it is there too");
        assert_eq!(advice.ranking[0].sync, Synchronisation::ReleaseGuard);
        let greedy = advice.ranking.last().expect("there are six");
        assert_eq!(greedy.sync, Synchronisation::Greedy);
        assert_eq!(advice.ranking[0].bounds_ns, [Some(10), Some(10)]);
        assert_eq!(greedy.bounds_ns, [Some(10), Some(14)]);
        assert!(
            advice.conclusion.starts_with("all deadlines are sure under release-guard,"),
            "{}",
            advice.conclusion
        );
    }

    #[test]
    fn greedy_release_takes_least_if_it_is_enough() {
        let advice = advice(&system(40)).expect("it has a chain");
        assert_eq!(advice.ranking[0].sync, Synchronisation::Greedy);
        assert_eq!(advice.conclusion, "every protocol makes all deadlines sure; greedy takes least");
    }

    #[test]
    fn a_system_without_chains_has_nothing_to_choose() {
        let task = TaskBuilder::new("t", Duration::from_nanos(9)).wcet(Work::from_nanos(1));
        assert!(advice(&System::builder("s").task(task).build().expect("it is valid")).is_none());
    }
}
