//! What is known of cause-effect chains, and whether it keeps to their limits.

use super::names::{Names, obstacle};
use super::verdict::Verdict;
use serde::Serialize;
use talea_analysis::system::{ChainBounds, ChainObstacle, ChainStep, ChainStepKind, SystemBounds};
use talea_model::{OperationId, System, Take};
use talea_time::Duration;

/// One chain.
#[derive(Clone, Debug, Serialize)]
pub struct ChainCheck {
    /// Its name.
    pub name: String,
    /// The operations along it.
    pub path: Vec<String>,
    /// Whether one of them is of a critical task.
    pub critical: bool,
    /// Verdict about all its limits together; holds if there are none.
    pub verdict: Verdict,
    /// Latency, reaction time and data age, in this order.
    pub times: Vec<ChainTimeCheck>,
    /// What the bound on the reaction time is made of, along the path; empty if there is none.
    pub reaction_steps: Vec<ChainStepCheck>,
}

/// One of the times of a chain.
#[derive(Clone, Debug, Serialize)]
pub struct ChainTimeCheck {
    /// `latency`, `reaction` or `age`.
    pub time: &'static str,
    /// The longest, if it has a bound.
    pub bound_ns: Option<i64>,
    /// Its limit, if it has one.
    pub limit_ns: Option<i64>,
    /// Whether it keeps to it; none without a limit.
    pub verdict: Option<Verdict>,
    /// Why that is not sure, or why there is no bound, in a sentence.
    pub why: Option<String>,
}

/// A part of the bound on a reaction time.
#[derive(Clone, Debug, Serialize)]
pub struct ChainStepCheck {
    /// What passes.
    pub what: String,
    /// How long at most.
    pub time_ns: i64,
}

/// What is known of every chain.
pub(super) fn chain_checks(
    names: &Names<'_>,
    bounds: &SystemBounds,
    found: &[ChainBounds],
) -> Vec<ChainCheck> {
    let system = names.system;
    let of_chain = |(index, found): (usize, &ChainBounds)| {
        let (chain, site) = (&system.chains[index], &system.chain_sites()[index]);
        let limits = [("latency", chain.latency), ("reaction", chain.reaction), ("age", chain.age)];
        let times: Vec<ChainTimeCheck> =
            limits.map(|(key, limit)| time_check(names, bounds, key, found.of_key(key), limit)).into();
        ChainCheck {
            name: chain.name.clone(),
            path: site.operations.iter().map(|operation| names.operation(*operation).to_owned()).collect(),
            critical: is_critical(system, &site.operations),
            verdict: Verdict::together(times.iter().filter_map(|time| time.verdict)),
            times,
            reaction_steps: found.steps.iter().map(|step| step_check(names, step)).collect(),
        }
    };
    found.iter().enumerate().map(of_chain).collect()
}

fn is_critical(system: &System, operations: &[OperationId]) -> bool {
    operations.iter().any(|operation| system.task_of(*operation).criticality.is_critical())
}

fn time_check(
    names: &Names<'_>,
    bounds: &SystemBounds,
    time: &'static str,
    bound: Result<Duration, ChainObstacle>,
    limit: Option<Duration>,
) -> ChainTimeCheck {
    let holds = |limit: Duration| bound.is_ok_and(|bound| bound <= limit);
    let verdict = limit.map(|limit| if holds(limit) { Verdict::Holds } else { Verdict::Open });
    let why = match (bound, limit) {
        (Err(reason), _) => Some(format!("there is no bound: {}", sentence(names, bounds, reason))),
        (Ok(bound), Some(limit)) if bound > limit => {
            Some(format!("it is sure only after {bound}, {} beyond its limit", bound - limit))
        }
        (Ok(_), _) => None,
    };
    ChainTimeCheck {
        time,
        bound_ns: bound.ok().map(Duration::as_nanos),
        limit_ns: limit.map(Duration::as_nanos),
        verdict,
        why,
    }
}

/// Why a time has no bound, with names.
fn sentence(names: &Names<'_>, bounds: &SystemBounds, reason: ChainObstacle) -> String {
    let name = |operation: OperationId| names.operation(operation);
    match reason {
        ChainObstacle::NoResponse(operation, reason) => {
            let of_operation = &bounds.operations[operation.index()];
            format!("{} has none, for {}", name(operation), obstacle(names, bounds, of_operation, reason))
        }
        ChainObstacle::Irregular(operation) => {
            format!("nothing says how long it may be until {} is released again", name(operation))
        }
        ChainObstacle::LeftOut(operation) => {
            format!(
                "jobs of {} may be left out, dropped at its guard or by its overrun policy",
                name(operation)
            )
        }
        ChainObstacle::Lost(from, to) => {
            format!("the message from {} to {} may be lost", name(from), name(to))
        }
        ChainObstacle::OutOfOrder(operation) => format!(
            "jobs of {} may complete in another order than they arrive, so that an older value may replace a newer one",
            name(operation)
        ),
        ChainObstacle::Overtaken(from, to) => format!(
            "messages from {} to {} may overtake each other, so that what one of them releases may not see its value yet",
            name(from),
            name(to)
        ),
        ChainObstacle::Dropped(input) if names.system.inputs()[input.index()].take == Take::Latest => {
            format!(
                "values may be dropped before {} sees them: more of them may be under way than the {} that it has room for",
                names.system.inputs()[input.index()].name,
                names.system.room_of_latest(input)
            )
        }
        ChainObstacle::Dropped(input) => format!(
            "values may be dropped: more of them may come between two jobs than the queue of {} has room for; raise its \
             capacity, or write take = \"latest\"",
            names.system.inputs()[input.index()].name
        ),
        ChainObstacle::InTurn(operation) => format!(
            "each job of {} takes one event when it begins, whatever has released it, and nothing says how many wait before it; write \
             take = \"all\", let the events release it, or hand a value to an input with take = \"latest\"",
            name(operation)
        ),
        ChainObstacle::Filtered(operation) => format!(
            "{} has only the events that its filter lets through, and nothing says how often that is",
            name(operation)
        ),
        ChainObstacle::Unchanged(operation) => format!(
            "{} is released by values that differ from the one before, and nothing says how often that is; on = \"value\" counts all",
            name(operation)
        ),
        ChainObstacle::Together(operation) => {
            format!("{} awaits several events", name(operation))
        }
        ChainObstacle::Discarded(operation) => format!(
            "events may be discarded: more of them may wait for {} than MaxEventsPerConsumer says; raise it",
            name(operation)
        ),
        ChainObstacle::Expired(operation) => format!(
            "events may expire before {} takes them, or before its filters have judged them; give them a longer timeout, or none",
            name(operation)
        ),
        ChainObstacle::Reordered(operation) => format!(
            "{} takes events in another order than that in which they come; write OrderPolicy = \"Fifo\"",
            name(operation)
        ),
        ChainObstacle::NotAwaited(operation) => {
            format!(
                "{} may be released before the value is there, by others that it comes after",
                name(operation)
            )
        }
        ChainObstacle::TooCostly | ChainObstacle::Overflow => reason.to_string(),
    }
}

fn step_check(names: &Names<'_>, step: &ChainStep) -> ChainStepCheck {
    let operation = names.operation(step.operation);
    let what = match step.kind {
        ChainStepKind::Sampling => {
            format!("until {operation} samples again, as it has just missed the event")
        }
        ChainStepKind::Response => format!("from that arrival until {operation} is done"),
        ChainStepKind::Gathering => {
            format!("until enough values have come to trigger what leads to {operation}")
        }
        ChainStepKind::Message => format!("the message to {operation}"),
        ChainStepKind::Waiting => format!("until {operation} is released the next time"),
        ChainStepKind::WaitingBehind => {
            format!(
                "until {operation} is released the next time; what it waits for is done before it can run"
            )
        }
    };
    ChainStepCheck { what, time_ns: step.time.as_nanos() }
}
