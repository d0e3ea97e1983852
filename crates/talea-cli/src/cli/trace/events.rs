//! Which events of a trace are asked for.

use crate::cli::failure::Failure;
use clap::Args;
use std::collections::BTreeSet;
use talea_record::stream::{Later, Selection};
use talea_record::{Event, NameSpace};

/// The option that says so.
#[derive(Args)]
pub(super) struct EventFilter {
    /// Only records of these events: families or events, such as job,dispatch.cost,-job.preempt, or complete, or 'job.re*' [default: all]
    #[arg(
        long,
        alias = "event",
        value_name = "SELECTION",
        allow_hyphen_values = true,
        help_heading = "Filters"
    )]
    events: Vec<Selection>,
}

impl EventFilter {
    /// Whether nothing was asked for, which is everything.
    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events that were asked for; none for all.
    pub(super) fn chosen(&self, names: &NameSpace) -> Result<Option<Events>, Failure> {
        Events::of(&self.events, names)
    }
}

/// Events that were asked for.
pub(super) struct Events {
    declared: BTreeSet<Event>,
    /// Whether events that no family declares are as well.
    others: Later,
    /// All that a family declares.
    known: BTreeSet<Event>,
}

impl Events {
    /// What any of these chooses; none if there are none.
    fn of(selections: &[Selection], names: &NameSpace) -> Result<Option<Self>, Failure> {
        let declared = |selection: &Selection| {
            let events = selection.events(names);
            events.map_err(|error| Failure::new(error, choices(names)))
        };
        let known = declared(&Selection::all())?;
        let mut events = Events { declared: BTreeSet::new(), others: Later::Unwanted, known };
        for selection in selections {
            events.declared.extend(declared(selection)?);
            if selection.later() == Later::Wanted {
                events.others = Later::Wanted;
            }
        }
        Ok((!selections.is_empty()).then_some(events))
    }

    pub(super) fn contain(&self, event: Event) -> bool {
        self.declared.contains(&event) || self.others == Later::Wanted && !self.known.contains(&event)
    }
}

fn choices(names: &NameSpace) -> String {
    let families = names.families().iter();
    let events = families
        .flat_map(|family| family.events.iter().map(move |entry| format!("{}.{}", family.name, entry.name)));
    format!("choose of: {}", events.collect::<Vec<_>>().join(", "))
}
