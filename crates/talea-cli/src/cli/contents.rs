//! What a trace holds, as tables: records by event, and which threads used the processors.

use super::output::{Sheet, length};
use talea_insight::machine::MachineReport;
use talea_record::LossCause;
use talea_record::contents::ContentsReport;
use talea_record::event::Coded;
use talea_time::Duration;

/// Threads and interrupts listed one by one.
const LISTED: usize = 20;

/// Records by event.
pub fn text(contents: &ContentsReport) -> String {
    let mut sheet = Sheet::new(1, &["event", "records", "per second"]);
    for event in &contents.events {
        let rate = event.per_second.map_or("-".into(), |rate| format!("{rate:.1}"));
        sheet.row(vec![event.name.clone(), event.records.to_string(), rate]);
    }
    let duration = Duration::from_nanos(contents.duration_ns).rounded();
    let mut text = format!("{}\n{} records in {duration}", sheet.render(), contents.records);
    let lost = contents.lost;
    if lost.sum() > 0 {
        text.push_str(&format!(
            "\nwarning: {} records of programs and {} of the kernel were lost ({}); the numbers are of what is left",
            lost.programs,
            lost.kernel,
            causes(contents)
        ));
    }
    text
}

/// Why records were lost, as `5 overwritten, 3 no-ring`.
fn causes(contents: &ContentsReport) -> String {
    let name = |cause: LossCause| LossCause::CODES.label(cause.code().into()).unwrap_or("unknown");
    let counts = contents.lost_by_cause.iter().map(|(cause, count)| format!("{count} {}", name(*cause)));
    counts.collect::<Vec<_>>().join(", ")
}

/// Processors, threads and interrupts.
pub fn machine(machine: &MachineReport) -> String {
    let whole_ns = machine.duration_ns.max(1) as f64;
    let share = |ns: i64| if ns == 0 { "-".into() } else { format!("{:.1} %", ns as f64 / whole_ns * 100.0) };
    let mut sheet =
        Sheet::new(1, &["processor", "threads", "interrupts", "idle", "not observed", "unknown", "switches"]);
    for processor in &machine.processors {
        sheet.row(vec![
            processor.cpu.to_string(),
            share(processor.threads_ns),
            share(processor.interrupts_ns),
            share(processor.idle_ns),
            share(processor.unobserved_ns),
            share(processor.unknown_ns),
            processor.switches.to_string(),
        ]);
    }
    let mut parts = vec![sheet.render(), threads(machine, &share)];
    if !machine.interrupts.is_empty() {
        parts.push(interrupts(machine));
    }
    parts.join("\n\n")
}

fn threads(machine: &MachineReport, share: &dyn Fn(i64) -> String) -> String {
    let mut sheet = Sheet::new(1, &["thread", "time", "of a processor", "got one", "preempted"]);
    for thread in machine.threads.iter().take(LISTED) {
        let name = thread.name.as_deref().unwrap_or("thread");
        sheet.row(vec![
            format!("{name} ({})", thread.thread),
            length(thread.ns),
            share(thread.ns),
            thread.switches.to_string(),
            thread.preempted.to_string(),
        ]);
    }
    let rest = machine.threads.iter().skip(LISTED);
    let (count, ns) = rest
        .fold((0, machine.other_threads_ns), |(count, ns), thread| (count + 1, ns.saturating_add(thread.ns)));
    if count > 0 || ns > 0 {
        sheet.row(vec![format!("{count} more"), length(ns), share(ns), String::new(), String::new()]);
    }
    sheet.render()
}

fn interrupts(machine: &MachineReport) -> String {
    let mut sheet = Sheet::new(1, &["interrupt", "times", "time"]);
    for interrupt in machine.interrupts.iter().take(LISTED) {
        sheet.row(vec![interrupt.interrupt.clone(), interrupt.count.to_string(), length(interrupt.ns)]);
    }
    sheet.render()
}
