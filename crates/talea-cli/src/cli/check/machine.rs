//! What holds on a machine, beside what holds on an ideal one.

use crate::cli::failure::Failure;
use crate::cli::machine;
use crate::cli::output::{Sheet, wrap};
use std::path::Path;
use talea_check::machine::{CountedCosts, MachineCheck, check_on};
use talea_check::{Check, CheckReport, Verdict};
use talea_model::{SLICE, System};
use talea_policy::strategy::Plan;
use talea_time::Duration;

/// Checks `system` on the machine of a profile, or on this one.
pub fn check(named: &Path, system: &System, plans: &[Plan]) -> Result<MachineCheck, Failure> {
    check_on(system, plans, &machine::named(named)?)
        .map_err(|error| Failure::new(error, "shorten the execution times or overheads of the longest task"))
}

/// The machine, and the two verdicts on every task and thread beside each other. What events cost is said if the system has channels.
pub fn show(ideal: &Check, machine: &MachineCheck, has_channels: bool) -> String {
    let time = |ns: i64| Duration::from_nanos(ns).to_string();
    let CountedCosts { switch_ns, queue_ns, timer_ns, message_ns, push_ns, filter_ns, delivery_ns } =
        machine.costs;
    let of_events = format!(
        ", an event {} and for each subscription {}, with a filter {}",
        time(push_ns),
        time(delivery_ns),
        time(delivery_ns.saturating_add(filter_ns))
    );
    let of_events = if has_channels { of_events } else { String::new() };
    let mut parts = vec![wrap(&format!(
        "\non the machine (Linux {}): a switch costs {}, the queue {}, a timer {}, a message {}{of_events}; the longest stall seen was \
         {}, with which no bound counts",
        machine.kernel,
        time(switch_ns),
        time(queue_ns),
        time(timer_ns),
        time(message_ns),
        Duration::from_nanos(machine.longest_stall_ns).rounded(),
    ))];
    for (node, sliced) in machine.load.iter().zip(&machine.sliced) {
        parts.push(wrap(&format!("  {node}")));
        if let Some(given) = sliced {
            parts.push(wrap(&format!(
                "  a run leaves that part in slices of {} instead, before the kernel takes it: {given} of each processor",
                SLICE.rounded()
            )));
        }
    }
    parts.extend(machine.findings.iter().map(|finding| wrap(&format!("  {finding}"))));
    let mut sheet = Sheet::new(5, &["", "ideal", "", "this machine", ""]);
    let bound =
        |ns: Option<i64>| ns.map_or("no bound".into(), |ns| format!("≤ {}", Duration::from_nanos(ns)));
    let tasks = ideal.report.tasks.iter().zip(&machine.report.tasks);
    let threads = ideal.report.threads.iter().zip(&machine.report.threads);
    let rows = tasks
        .map(|(ideal, here)| {
            let verdicts = (ideal.verdict, here.verdict);
            (&ideal.name, (ideal.bound_ns, here.bound_ns), verdicts)
        })
        .chain(threads.map(|(ideal, here)| {
            let verdicts = (ideal.verdict, here.verdict);
            (&ideal.name, (ideal.bound_ns, here.bound_ns), verdicts)
        }));
    let mut has_rows = false;
    for (name, (ideal_bound, bound_here), (ideal, here)) in rows {
        has_rows = true;
        sheet.row(vec![
            name.clone(),
            bound(ideal_bound),
            super::word(ideal).into(),
            bound(bound_here),
            super::word(here).into(),
        ]);
    }
    if has_rows {
        parts.push(sheet.render());
    }
    parts.push(wrap(&conclusion(ideal, machine)));
    parts.join("\n")
}

/// What holds on each of the two machines, of everything that has a row, and why that which holds on the ideal one only does not on
/// the other.
fn conclusion(ideal: &Check, machine: &MachineCheck) -> String {
    let composes = ideal.composes();
    let on_ideal = standing(&ideal.report, (!ideal.hierarchies.is_empty()).then_some(composes));
    let here = composes && machine.findings.is_empty();
    let on_machine = standing(&machine.report, (!ideal.hierarchies.is_empty()).then_some(here));
    let tasks = machine.report.tasks.iter().zip(&ideal.report.tasks);
    let tasks = tasks.map(|(here, ideal)| (&here.name, &here.why, [here.verdict, ideal.verdict]));
    let threads = machine.report.threads.iter().zip(&ideal.report.threads);
    let threads = threads.map(|(here, ideal)| (&here.name, &here.why, [here.verdict, ideal.verdict]));
    let lost = tasks.chain(threads).filter(|(_, _, [here, ideal])| here != ideal && *ideal == Verdict::Holds);
    let why = lost.filter_map(|(name, why, _)| why.as_ref().map(|why| format!("\n  {name}: {why}")));
    format!("\nideal machine: {on_ideal}\nthis machine: {on_machine}{}", why.collect::<String>())
}

/// What is sure of the tasks, of the hierarchies if there are any, and of the bursts of threads.
fn standing(report: &CheckReport, composes: Option<bool>) -> String {
    let tasks = (!report.tasks.is_empty()).then(|| super::conclusion(report));
    let guarantees = composes.map(|composes| match composes {
        true => "every hierarchy composes".to_string(),
        false => "not every hierarchy composes".to_string(),
    });
    let parts: Vec<String> = [tasks, guarantees, super::bursts(report)].into_iter().flatten().collect();
    parts.join("; ")
}
