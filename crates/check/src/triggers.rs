//! What the bounds of triggered tasks count with.

use talea_analysis::system::{breaks_declaration, lossy_trigger};
use talea_model::{Excess, Separation, System, Trigger};

/// What is to be known about the trigger of a task.
pub(super) fn remarks(system: &System, task: usize) -> Vec<String> {
    let described = &system.tasks[task];
    let (Some(trigger), separation) = (&described.trigger, described.separation) else { return Vec::new() };
    let mut remarks = Vec::new();
    if let (Trigger::External { .. }, Some(Separation { separation, burst, excess })) = (trigger, separation)
    {
        let at_once = match burst {
            1 => String::new(),
            _ => format!(", of which {burst} may come at once"),
        };
        let sooner = match excess {
            Excess::Defer => {
                "what comes sooner waits at its guard, which protects the others, and its own response is longer by that"
            }
            Excess::Drop => "what comes sooner releases nothing",
            Excess::Count => {
                "what comes sooner is released all the same, and then no bound of lanes below or beside it holds"
            }
        };
        remarks.push(format!(
            "its response counts from its arrival, and on arrivals at least {separation} apart{at_once}; {sooner}"
        ));
    }
    if let Some((from, to)) = lossy_trigger(system, task) {
        let name = |id: talea_model::OperationId| &system.operations()[id.index()].name;
        remarks.push(format!(
            "the message from {} to {} may be lost, and then it is not released",
            name(from),
            name(to)
        ));
    }
    remarks
}

/// Why a triggered task may not serve all that triggers it, although it is in time.
pub(super) fn may_leave_out(system: &System, task: usize) -> String {
    let described = &system.tasks[task];
    match described.separation {
        _ if breaks_declaration(system, task) => {
            "the arrivals in the file may come faster than its separation and burst declare, and what comes too early is not served \
             in time"
                .into()
        }
        Some(Separation { excess: Excess::Drop, .. }) => {
            "it is in time, but what triggers it may come sooner than its separation allows, and is dropped then".into()
        }
        Some(_) if described.overrun == talea_model::Overrun::Queue => {
            "it is in time, but more arrivals may wait at its guard than there is room for".into()
        }
        _ => format!(
            "it is in time, but may still be unfinished when it is triggered again, and its overrun policy ({}) leaves that out",
            described.overrun
        ),
    }
}
