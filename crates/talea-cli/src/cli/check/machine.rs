//! What holds on a machine, beside what holds on an ideal one.

use crate::cli::failure::Failure;
use crate::cli::output::{Sheet, wrap};
use std::path::Path;
use talea_check::machine::{CountedCosts, MachineCheck, check_on};
use talea_check::{Check, Verdict};
use talea_model::{Machine, SLICE, System};
use talea_policy::strategy::Plan;
use talea_runtime::doctor::{Thoroughness, measure};
use talea_time::Duration;

/// The word for the machine that this runs on.
const THIS: &str = "this";

/// Checks `system` on the machine of a profile, or on this one.
pub fn check(named: &Path, system: &System, plans: &[Plan]) -> Result<MachineCheck, Failure> {
    let machine = if named == Path::new(THIS) { this()? } else { read(named)? };
    check_on(system, plans, &machine)
        .map_err(|error| Failure::new(error, "shorten the execution times or overheads of the longest task"))
}

fn this() -> Result<Machine, Failure> {
    let bar = crate::cli::progress::bar("measured", 2);
    let machine = measure(Thoroughness::Quick, |done, _| {
        bar.set_position(done as u64);
        true
    });
    bar.finish_and_clear();
    machine.ok_or_else(|| {
        Failure::new(
            "this machine cannot be measured",
            "`talea doctor` says what is permitted; or name a profile",
        )
    })
}

fn read(file: &Path) -> Result<Machine, Failure> {
    const WRITE: &str =
        "`talea doctor --measure --out FILE` writes a profile; \"this\" stands for this machine";
    let shown = file.display();
    Machine::read(file).map_err(|error| Failure::new(format!("{shown}: {error}"), WRITE))
}

/// The machine, and the two verdicts on every task and thread beside each other.
pub fn show(ideal: &Check, machine: &MachineCheck) -> String {
    let time = |ns: i64| Duration::from_nanos(ns).to_string();
    let CountedCosts { switch_ns, queue_ns, timer_ns, message_ns } = machine.costs;
    let mut parts = vec![wrap(&format!(
        "\non the machine (Linux {}): a switch costs {}, the queue {}, a timer {}, a message {}; the longest stall seen was {}, with \
         which no bound counts",
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
    for (name, (ideal_bound, bound_here), (ideal, here)) in rows {
        sheet.row(vec![
            name.clone(),
            bound(ideal_bound),
            super::word(ideal).into(),
            bound(bound_here),
            super::word(here).into(),
        ]);
    }
    parts.push(sheet.render());
    parts.push(wrap(&conclusion(ideal, machine)));
    parts.join("\n")
}

fn conclusion(ideal: &Check, machine: &MachineCheck) -> String {
    let said = |holds: bool| if holds { "holds" } else { "does not hold, or is not sure to," };
    let verdict = format!(
        "\nit {} on an ideal machine and {} on this one",
        said(ideal.holds()),
        said(machine.holds() && ideal.composes())
    );
    let why: Vec<String> = machine
        .report
        .tasks
        .iter()
        .zip(&ideal.report.tasks)
        .filter(|(here, ideal)| here.verdict != Verdict::Holds && ideal.verdict == Verdict::Holds)
        .map(|(here, _)| format!("{}: {}", here.name, here.why.as_deref().unwrap_or_default()))
        .collect();
    if why.is_empty() { verdict } else { format!("{verdict}; {}", why.join("; ")) }
}
