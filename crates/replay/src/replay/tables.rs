//! Holding the tables of a trace against those of the description: whether its records can be understood, and what differs.

use talea_model::System;
use talea_operation::OperationErrors;
use talea_policy::strategy::{NodeAnomaly, plan_lanes_of};
use talea_record::difference::{
    Difference as TableDifference, connection_differences, list_differences, schedule_differences,
};
use talea_record::recorded_events::name_of;
use talea_record::{Event, Metadata};
use thiserror::Error;

/// Why a run cannot be replayed.
#[derive(Debug, Error)]
pub enum ReplayError {
    /// The trace is of another system.
    #[error(
        "the trace is of another system: it has {trace}, and the description has {description}; replay it with what was run then{}",
        besides(differences)
    )]
    OtherSystem {
        /// What the trace has, and the description does not.
        trace: String,
        /// What the description has in its place.
        description: String,
        /// What else differs.
        differences: Vec<TableDifference>,
    },
    /// The description cannot be run, so the trace is not of a run of it.
    #[error("the description cannot be run: {}", .0.iter().map(|one| format!("{}: {}", one.node, one.anomaly)).collect::<Vec<_>>().join("; "))]
    Anomalies(Vec<NodeAnomaly>),
    /// The trace has no values of outputs, no events, neither taken nor pushed, nothing that was read from outside, and not what was posted.
    #[error(
        "the trace keeps neither values nor events; record them with `--keep-values`, or `Run::keep_values`"
    )]
    NoValues,
    /// A recording was not asked for all that jobs were told, and did.
    #[error(
        "the recording left out {}, so jobs cannot be done again as they were; record without `--events`",
        .events.join(", ")
    )]
    LeftOut {
        /// The names of the events.
        events: Vec<String>,
    },
    /// The code does not fit the system: all that is wrong.
    #[error(transparent)]
    Operations(#[from] OperationErrors),
}

/// What jobs are called by again, and held against.
const NEEDED: [Event; 20] = [
    Event::RELEASE,
    Event::START,
    Event::COMPLETE,
    Event::SKIP,
    Event::ABORT,
    Event::WAIT,
    Event::JOB_WCET,
    Event::POST,
    Event::PUBLISH,
    Event::TAKE,
    Event::DROP,
    Event::VALUE,
    Event::VALUE_PART,
    Event::VALUE_LOST,
    Event::ANSWER,
    Event::PUSH,
    Event::DELIVER,
    Event::PUSH_KEPT,
    Event::PUSH_UNKEPT,
    Event::RUN_END,
];

/// Whether the trace was to have all that a replay goes by.
///
/// # Errors
/// [`ReplayError::LeftOut`].
pub(super) fn check_recorded(trace: &Metadata) -> Result<(), ReplayError> {
    let events: Vec<String> =
        NEEDED.into_iter().filter(|event| trace.leaves_out(*event)).map(name_of).collect();
    if events.is_empty() { Ok(()) } else { Err(ReplayError::LeftOut { events }) }
}

/// Holds the tables of the trace against those of the description. Returns what differs and does not keep records from being understood.
pub(super) fn compare_tables(system: &System, trace: &Metadata) -> Result<Vec<TableDifference>, ReplayError> {
    let plans = plan_lanes_of(system).map_err(ReplayError::Anomalies)?;
    let described = Metadata::new(system, &plans, trace.origin, trace.start);
    let mut differences = schedule_differences(trace, &described);
    differences.extend(connection_differences(trace, &described));
    let lists = |metadata: &Metadata| {
        // Behind the operations that are described, there may be places for those that programs declare.
        let operations = metadata.operations.iter().take(described.operations.len());
        let publications = metadata.described_publications();
        [
            ("operation", names(operations.map(|operation| &operation.name))),
            ("output", names(metadata.outputs.iter().map(|output| &output.name))),
            ("input", metadata.inputs.iter().map(|input| metadata.connection(input)).collect()),
            ("publication", names(publications.map(|publication| &publication.name))),
        ]
    };
    for ((what, in_trace), (_, in_description)) in lists(trace).into_iter().zip(lists(&described)) {
        if in_trace == in_description {
            continue;
        }
        let place = in_trace.iter().zip(&in_description).take_while(|(one, other)| one == other).count();
        let shown = |list: &[String]| match list.get(place) {
            Some(name) => format!("{what} \"{name}\""),
            None => format!("no other {what}"),
        };
        let (trace, description) = (shown(&in_trace), shown(&in_description));
        return Err(ReplayError::OtherSystem { trace, description, differences });
    }
    differences.extend(list_differences(trace, &described));
    Ok(differences)
}

fn names<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    names.cloned().collect()
}

/// Differences that are told with a refusal.
const TOLD: usize = 8;

/// What else differs, in words.
fn besides(differences: &[TableDifference]) -> String {
    if differences.is_empty() {
        return String::new();
    }
    let mut told: Vec<String> = differences.iter().take(TOLD).map(ToString::to_string).collect();
    if differences.len() > TOLD {
        told.push(format!("and {} more", differences.len() - TOLD));
    }
    format!(". Besides, {}", told.join("; "))
}
