//! SimSo's tasks as plain values.

use super::attributes::Element;
use super::document::{Simulation, declared_fields, elements, note_elements};
use crate::Effect;
use crate::names::{did_you_mean, shown};
use crate::reading::Reading;
use crate::settings::task_label;
use roxmltree::Node;
use std::ops::Range;
use talea_time::{Duration, Work};

/// What releases a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Periodic,
    /// Another task does.
    Aperiodic,
    Sporadic,
}

/// One `task` element.
pub(super) struct SimTask {
    pub span: Range<usize>,
    pub label: String,
    pub id: i64,
    pub name: String,
    pub kind: Kind,
    pub period: Duration,
    pub deadline: Duration,
    pub phase: Duration,
    pub wcet: Work,
    pub acet: Work,
    pub deviation: Work,
    pub abort_on_miss: bool,
    pub followed_by: Option<i64>,
    pub dates: Vec<Duration>,
    pub priority: Option<i64>,
}

const TASK: &[&str] = &[
    "name",
    "id",
    "task_type",
    "periodic",
    "abort_on_miss",
    "period",
    "activationDate",
    "list_activation_dates",
    "deadline",
    "base_cpi",
    "instructions",
    "mix",
    "WCET",
    "ACET",
    "preemption_cost",
    "et_stddev",
    "followed_by",
    "stack",
    "priority",
];

/// Reads the tasks of a `tasks` element.
pub(super) fn read_tasks(node: Node<'_, '_>, simulation: &mut Simulation, reading: &mut Reading<'_>) {
    note_elements(node, &["task", "field"], "the tasks", reading);
    let fields = declared_fields(node);
    for task in elements(node, "task") {
        let name = task.attribute("name").unwrap_or_default();
        let element = Element::new(task, task_label(&name.escape_debug().to_string()));
        element.note_unknown(TASK, &fields, reading);
        simulation.tasks.extend(read_task(&element, reading));
    }
}

fn read_task(element: &Element<'_, '_>, reading: &mut Reading<'_>) -> Option<SimTask> {
    for key in ["instructions", "preemption_cost", "stack"] {
        // What SimSo writes if there is nothing to say.
        let is_neutral = |text: &str| text.is_empty() || text.trim().parse() == Ok(0.0_f64);
        if element.text(key).is_some_and(|text| !is_neutral(text)) {
            let what = "is for the models of caches and preemption costs, which operations do not have";
            reading.lose(Effect::Lost, element.span_of(key), &element.label, key, what);
        }
    }
    let kind = read_kind(element, reading);
    let name = element.required("name", "T1", reading);
    let id = element.required("id", "1", reading).and_then(|_| element.integer("id", reading));
    let period = match kind {
        Kind::Periodic => element.required_time("period", reading),
        // SimSo asks for it and does not use it.
        Kind::Aperiodic | Kind::Sporadic => Some(element.time("period", reading).unwrap_or_default()),
    };
    let deadline = element.required_time("deadline", reading);
    let wcet = element.required_time("WCET", reading);
    let dates = read_dates(element, reading);
    Some(SimTask {
        span: element.span(),
        label: element.label.clone(),
        phase: element.time("activationDate", reading).unwrap_or_default(),
        acet: element.time("ACET", reading).unwrap_or_default().as_work(),
        deviation: element.time("et_stddev", reading).unwrap_or_default().as_work(),
        followed_by: element.integer("followed_by", reading),
        priority: element.integer("priority", reading),
        abort_on_miss: element.text("abort_on_miss").is_none_or(|text| text == "yes"),
        name: name?.to_owned(),
        id: id?,
        kind,
        period: period?,
        deadline: deadline?,
        wcet: wcet?.as_work(),
        dates,
    })
}

fn read_kind(element: &Element<'_, '_>, reading: &mut Reading<'_>) -> Kind {
    match (element.text("task_type"), element.text("periodic")) {
        (Some("Periodic"), _) => Kind::Periodic,
        (Some("APeriodic"), _) => Kind::Aperiodic,
        (Some("Sporadic"), _) => Kind::Sporadic,
        (None, Some("no")) => Kind::Aperiodic,
        (None, _) => Kind::Periodic,
        (Some(other), _) => {
            let message = format!("{}: the task_type {} is unknown", element.label, shown(other));
            let remedy = did_you_mean(
                other,
                ["Periodic", "APeriodic", "Sporadic"],
                "write Periodic, APeriodic or Sporadic",
            );
            reading.error(element.span_of("task_type"), message, remedy);
            Kind::Periodic
        }
    }
}

fn read_dates(element: &Element<'_, '_>, reading: &mut Reading<'_>) -> Vec<Duration> {
    let key = "list_activation_dates";
    let text = element.text(key).unwrap_or_default();
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut dates: Vec<_> = text.split(',').filter_map(|date| element.time_of(key, date, reading)).collect();
    dates.sort_unstable();
    dates
}
