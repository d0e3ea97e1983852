//! Which of the kernel's events a trace can have.

use super::Finding;
use talea_linux::bpf::BpfError;
use talea_linux::watch::ThreadWatch;
use talea_recording::kernel::{
    KernelEvent, KernelOptions, KernelPart, KernelScope, Obstacle, Preflight, preflight,
};

pub(super) fn examine() -> Vec<Finding> {
    let whole = KernelOptions { events: KernelEvent::ALL.into(), ..KernelOptions::default() };
    let mut findings = everybody(&preflight(&whole));
    let own = KernelOptions {
        scope: KernelScope::Process(std::process::id()),
        events: [KernelEvent::Switches, KernelEvent::Names].into(),
        ..KernelOptions::default()
    };
    findings.push(own_threads(&preflight(&own)));
    findings.push(accounts(&ThreadWatch::open(&[0]).map(drop)));
    findings
}

/// By what it is seen what threads of a hierarchy receive.
fn accounts(opened: &Result<(), BpfError>) -> Finding {
    const NAME: &str = "kernel: accounts of threads";
    match opened {
        Ok(()) => Finding::ok(NAME, "kept by programs at its tracepoints (BPF)"),
        Err(refusal) => Finding::warn(
            NAME,
            format!("no programs at its tracepoints: {refusal}"),
            "without them each switch of a run's hierarchy is an event of perf, if that is permitted, which costs some 0.9 us; \
             `talea run --judge grants` looks at none",
        ),
    }
}

/// What a trace lacks without the event.
const fn meaning(event: KernelEvent) -> (&'static str, &'static str) {
    match event {
        KernelEvent::Switches => ("kernel: context switches", "who had a processor when a job did not"),
        KernelEvent::Wakeups => (
            "kernel: wake-ups",
            "who made a thread ready, and when; a run looks for wake-ups of programs every 10 ms instead, and maxima of programs that start \
             many processes may not hold",
        ),
        KernelEvent::Interrupts => ("kernel: interrupts", "what interrupted a job"),
        KernelEvent::SystemCalls => ("kernel: system calls", "what a job asked of the kernel"),
        KernelEvent::Names => ("kernel: thread names", "what other programs' threads are called"),
    }
}

/// One finding for each kind of event; one for all if nothing can be had.
fn everybody(found: &Preflight) -> Vec<Finding> {
    if let Some(nothing) = found.obstacles.iter().find(|obstacle| obstacle.part == KernelPart::Buffers) {
        return vec![withheld(
            "kernel: events of everybody",
            "anything about other threads than Talea's",
            nothing,
        )];
    }
    KernelEvent::ALL
        .into_iter()
        .map(|event| {
            let (name, lack) = meaning(event);
            match found.obstacles.iter().find(|obstacle| obstacle.part == KernelPart::Events(event)) {
                Some(obstacle) => withheld(name, lack, obstacle),
                None => Finding::ok(name, "those of everybody on every CPU"),
            }
        })
        .collect()
}

fn own_threads(found: &Preflight) -> Finding {
    const NAME: &str = "kernel: own threads";
    match found.obstacles.first() {
        None => Finding::ok(NAME, "when they get a CPU and lose it, and their names"),
        Some(obstacle) => withheld(NAME, "when a thread got a CPU and lost it", obstacle),
    }
}

fn withheld(name: &'static str, lack: &str, obstacle: &Obstacle) -> Finding {
    let Obstacle { found, remedy, .. } = obstacle;
    Finding::warn(name, found.clone(), format!("{remedy}; without it a trace does not tell {lack}"))
}

#[cfg(test)]
mod tests {
    use super::super::Status::{Ok, Warn};
    use super::*;
    use talea_recording::kernel::Cause;

    fn obstacle(part: KernelPart) -> Obstacle {
        Obstacle { part, cause: Cause::Paranoid, found: "it is 2".into(), remedy: "`sysctl x`".into() }
    }

    #[test]
    fn each_kind_of_event_has_a_line_and_its_own_remedy() {
        let wakeups = KernelPart::Events(KernelEvent::Wakeups);
        let found = Preflight { available: vec![], obstacles: vec![obstacle(wakeups)], caveats: vec![] };
        let findings = everybody(&found);
        assert_eq!(findings.iter().map(|f| f.status).collect::<Vec<_>>(), [Ok, Warn, Ok, Ok, Ok]);
        let remedy = findings[1].remedy.as_ref().unwrap();
        assert!(remedy.contains("`sysctl x`") && remedy.contains("made a thread ready"), "{remedy}");
    }

    #[test]
    fn where_nothing_can_be_had_one_line_says_so() {
        let all = [obstacle(KernelPart::Buffers)].into();
        let findings = everybody(&Preflight { available: vec![], obstacles: all, caveats: vec![] });
        assert!(
            matches!(&findings[..], [only] if only.status == Warn && only.found == "it is 2"),
            "{findings:?}"
        );
    }
}
