//! The kinds that speak of one processor.

use super::{Complaint, offsets, same};
use serde::Deserialize;
use std::collections::BTreeMap;
use talea_analysis::critical_set::critical_set;
use talea_analysis::edf::{Verdict, demand as processor_demand, nonpreemptive, qpa, response};
use talea_analysis::fixed_priority::{self, Response};
use talea_analysis::utilisation::{hyperbolic, liu_layland, total};
use talea_analysis::{Effort, Task, TaskError};
use talea_time::{Duration, Work};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case<E> {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "kind")]
    _kind: String,
    #[serde(rename = "source")]
    _source: String,
    tasks: Vec<TaskRow>,
    /// Highest first.
    priority_order: Option<Vec<String>>,
    expect: E,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskRow {
    id: String,
    period_ns: i64,
    wcet_ns: i64,
    deadline_ns: i64,
    #[serde(default)]
    jitter_ns: i64,
    #[serde(default)]
    blocking_ns: i64,
}

impl TaskRow {
    fn task(&self) -> Result<Task, Complaint> {
        let invalid = |error: TaskError| Complaint::Unreadable(format!("task {}: {error}", self.id));
        Task::new(Duration::from_nanos(self.period_ns), Work::from_nanos(self.wcet_ns))
            .and_then(|task| task.with_deadline(Duration::from_nanos(self.deadline_ns)))
            .and_then(|task| task.with_jitter(Duration::from_nanos(self.jitter_ns)))
            .and_then(|task| task.with_blocking(Duration::from_nanos(self.blocking_ns)))
            .map_err(invalid)
    }
}

impl<E> Case<E> {
    fn tasks(&self) -> Result<Vec<Task>, Complaint> {
        self.tasks.iter().map(TaskRow::task).collect()
    }

    /// Names and tasks, highest priority first.
    fn by_priority(&self) -> Result<(Vec<String>, Vec<Task>), Complaint> {
        let missing = |what: String| Complaint::Unreadable(what);
        let order = self.priority_order.clone().ok_or_else(|| missing("no priority_order".into()))?;
        let row = |id: &String| self.tasks.iter().find(|row| row.id == *id);
        let task = |id| row(id).ok_or_else(|| missing(format!("no task {id}")))?.task();
        let tasks = order.iter().map(task).collect::<Result<Vec<Task>, Complaint>>()?;
        if tasks.len() != self.tasks.len() {
            return Err(missing("priority_order does not list every task once".into()));
        }
        Ok((order, tasks))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Responses {
    wcrt_ns: BTreeMap<String, Option<i64>>,
    schedulable: bool,
}

pub(super) fn preemptive_priorities(case: &Case<Responses>, effort: &mut Effort) -> Result<(), Complaint> {
    let (names, tasks) = case.by_priority()?;
    let responses = fixed_priority::preemptive::response_times(&tasks, effort)?;
    same_responses(&case.expect, names, &responses)?;
    let schedulable = fixed_priority::preemptive::schedulable(&tasks, effort)?;
    same("schedulable", &case.expect.schedulable, &schedulable)
}

pub(super) fn nonpreemptive_priorities(case: &Case<Responses>, effort: &mut Effort) -> Result<(), Complaint> {
    let (names, tasks) = case.by_priority()?;
    let responses = fixed_priority::nonpreemptive::response_times(&tasks, effort)?;
    same_responses(&case.expect, names, &responses)?;
    let schedulable = fixed_priority::nonpreemptive::schedulable(&tasks, effort)?;
    same("schedulable", &case.expect.schedulable, &schedulable)
}

fn same_responses(
    expect: &Responses,
    names: Vec<String>,
    responses: &[Option<Response>],
) -> Result<(), Complaint> {
    let worst = |response: &Option<Response>| response.map(|response| response.worst.as_nanos());
    let got: BTreeMap<String, Option<i64>> = names.into_iter().zip(responses.iter().map(worst)).collect();
    for (name, response) in &got {
        let expected = expect.wcrt_ns.get(name);
        same(&format!("wcrt_ns of {name}"), &expected, &Some(response))?;
    }
    same("wcrt_ns", &expect.wcrt_ns, &got)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Bounds {
    utilisation: String,
    /// Rounded to 12 places.
    ll_bound: f64,
    ll_pass: bool,
    hyperbolic_product: String,
    hyperbolic_pass: bool,
}

pub(super) fn utilisation_bounds(case: &Case<Bounds>, effort: &mut Effort) -> Result<(), Complaint> {
    let (tasks, expect) = (case.tasks()?, &case.expect);
    same("utilisation", &expect.utilisation, &total(&tasks, effort)?.to_string())?;
    let twelve_places = |bound: f64| format!("{bound:.12}");
    let bound = liu_layland::bound(tasks.len());
    same("ll_bound", &twelve_places(expect.ll_bound), &twelve_places(bound))?;
    same("ll_pass", &expect.ll_pass, &liu_layland::holds(&tasks, effort)?)?;
    let product = hyperbolic::product(&tasks, effort)?.to_string();
    same("hyperbolic_product", &expect.hyperbolic_product, &product)?;
    same("hyperbolic_pass", &expect.hyperbolic_pass, &hyperbolic::holds(&tasks, effort)?)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Demand {
    utilisation: String,
    schedulable: bool,
    first_failing_t_ns: Option<i64>,
    busy_period_ns: Option<i64>,
    qpa_visited_ns: Vec<i64>,
}

pub(super) fn demand(case: &Case<Demand>, effort: &mut Effort) -> Result<(), Complaint> {
    let (tasks, expect) = (case.tasks()?, &case.expect);
    same("utilisation", &expect.utilisation, &total(&tasks, effort)?.to_string())?;
    let verdict = processor_demand::test(&tasks, effort)?;
    same("schedulable", &expect.schedulable, &verdict.is_schedulable())?;
    same("first_failing_t_ns", &expect.first_failing_t_ns, &missed(verdict))?;
    let busy_period = processor_demand::busy_period(&tasks, effort)?.map(Duration::as_nanos);
    same("busy_period_ns", &expect.busy_period_ns, &busy_period)?;
    let mut visited = Vec::new();
    let verdict = qpa::visit(&tasks, effort, |time| visited.push(time.as_nanos()))?;
    same("qpa_visited_ns", &expect.qpa_visited_ns, &visited)?;
    same("schedulable, as QPA has it", &expect.schedulable, &verdict.is_schedulable())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NonPreemptive {
    schedulable: bool,
    first_failing_t_ns: Option<i64>,
    witness_offsets_ns: Option<Vec<i64>>,
    worst_response_all_offsets_ns: Option<Vec<i64>>,
}

pub(super) fn nonpreemptive_demand(case: &Case<NonPreemptive>, effort: &mut Effort) -> Result<(), Complaint> {
    let (tasks, expect) = (case.tasks()?, &case.expect);
    let verdict = nonpreemptive::first_failure(&tasks, effort)?;
    same("schedulable", &expect.schedulable, &verdict.is_schedulable())?;
    same("first_failing_t_ns", &expect.first_failing_t_ns, &missed(verdict))?;
    let quick = nonpreemptive::test(&tasks, effort)?;
    same("schedulable, without the first failure", &expect.schedulable, &quick.is_schedulable())?;
    if let Some(witness) = &expect.witness_offsets_ns {
        let got = offsets::lead_to_a_miss(&tasks, witness).map_err(Complaint::Unreadable)?;
        let outcome =
            |misses| format!("{witness:?} {}", if misses { "lead to a miss" } else { "lead to no miss" });
        same("witness_offsets_ns", &outcome(true), &outcome(got))?;
    }
    if let Some(expected) = &expect.worst_response_all_offsets_ns {
        let seen = offsets::worst_of_all(&tasks).map_err(Complaint::Unreadable)?;
        same("worst_response_all_offsets_ns", expected, &seen)?;
        never_exceeded(&tasks, &seen, effort)?;
    }
    Ok(())
}

/// Complains if a response was longer than its bound. It may be shorter: the bound holds for both orders of equal
/// deadlines.
fn never_exceeded(tasks: &[Task], seen: &[i64], effort: &mut Effort) -> Result<(), Complaint> {
    let bounds = response::nonpreemptive(tasks, effort)?;
    for (index, seen) in seen.iter().enumerate() {
        let bound = bounds.as_ref().map(|bounds| bounds[index].worst.as_nanos());
        let holds = bound.is_none_or(|bound| bound >= *seen);
        let at = format!("the bound of response {index}, {bound:?}, against {seen} in a simulation");
        same(&at, &true, &holds)?;
    }
    Ok(())
}

fn missed(verdict: Verdict) -> Option<i64> {
    match verdict {
        Verdict::Miss { deadline } => Some(deadline.as_nanos()),
        Verdict::Schedulable | Verdict::Overloaded => None,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Critical {
    period_order: Vec<String>,
    critical_set: Vec<String>,
    critical_utilisation: String,
}

pub(super) fn critical(case: &Case<Critical>, effort: &mut Effort) -> Result<(), Complaint> {
    let set = critical_set(&case.tasks()?, effort)?;
    let names = |tasks: &[usize]| tasks.iter().map(|task| case.tasks[*task].id.clone()).collect::<Vec<_>>();
    same("period_order", &case.expect.period_order, &names(&set.by_period))?;
    same("critical_set", &case.expect.critical_set, &names(set.members()))?;
    same("critical_utilisation", &case.expect.critical_utilisation, &set.utilisation.to_string())
}
