//! Rules about explicit plans: each entry by itself, beside the one ahead of it, within the cycle, and for a child that is there.

use super::hierarchy::{Member, members};
use super::times::TIME_LIMIT;
use super::{Place, Violation};
use crate::description::Description;
use crate::hierarchy::{LEAST_RUN_QUANTUM, Scheduler, Setting};
use crate::plan::{ENTRIES_LIMIT, Plan, PlanEntry};
use std::collections::HashSet;
use talea_guarantee::scheduler::Parameter;
use talea_time::Duration;

/// Who may be missing among those whom a plan has entries for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// Nobody.
    Nobody,
    /// Whoever has left a hierarchy that runs: its entries are forfeited until somebody of that name comes.
    Departed,
}

pub(super) fn check(description: &Description, missing: Missing, found: &mut Vec<Violation>) {
    for (index, scheduler) in description.schedulers.iter().enumerate() {
        let Some(Setting::Plan(plan)) = scheduler.settings.get(Parameter::PLAN.name) else { continue };
        // What has no plan by its kind is told so elsewhere.
        if scheduler.kind.parameter(Parameter::PLAN.name).is_none() {
            continue;
        }
        check_entries(index, scheduler, plan, found);
        check_children(description, (index, scheduler), plan, missing, found);
    }
}

fn check_entries(index: usize, scheduler: &Scheduler, plan: &Plan, found: &mut Vec<Violation>) {
    let name = &scheduler.name;
    let whole = Place::Scheduler(index, Parameter::PLAN.name);
    let count = plan.entries().len();
    if count == 0 || count > ENTRIES_LIMIT {
        let message = format!("the plan of scheduler \"{name}\" has {count} entries");
        found.push(Violation::error(whole, message, format!("give it from 1 to {ENTRIES_LIMIT}")));
        return;
    }
    let cycle = match scheduler.settings.get(Parameter::CYCLE.name) {
        Some(Setting::Time(cycle)) => Some(*cycle),
        _ => None,
    };
    let mut before: Option<&PlanEntry> = None;
    for (number, entry) in plan.entries().iter().enumerate() {
        if let Some((fault, remedy)) = misfit(entry, before, cycle) {
            let message = format!("the plan of scheduler \"{name}\": entry {}, {entry}, {fault}", number + 1);
            found.push(Violation::error(Place::PlanEntry(index, number), message, remedy));
        }
        before = Some(entry);
    }
    let shortest = plan.entries().iter().map(|entry| entry.duration).min().expect("there is an entry");
    if Duration::ZERO < shortest && shortest < LEAST_RUN_QUANTUM {
        let message = format!(
            "the plan of scheduler \"{name}\" has an entry of {shortest}, which is too short to be run: real threads would spend \
             much of it on switching, which takes some 5us each time"
        );
        let remedy =
            format!("make it at least {LEAST_RUN_QUANTUM}, unless it is only to be checked or simulated");
        found.push(Violation::warning(whole, message, remedy));
    }
}

/// What is wrong with an entry behind this one, and what to do about it.
fn misfit(
    entry: &PlanEntry,
    before: Option<&PlanEntry>,
    cycle: Option<Duration>,
) -> Option<(String, &'static str)> {
    let range = Duration::ZERO..=TIME_LIMIT;
    if !range.contains(&entry.start) || !range.contains(&entry.duration) {
        return Some(("is out of range".into(), "stay between 0s and 87600h"));
    }
    if entry.duration == Duration::ZERO {
        return Some(("has no duration".into(), "give it one above zero, or leave it out"));
    }
    // One that is out of range itself has been told.
    let before = before.filter(|before| range.contains(&before.start) && range.contains(&before.duration));
    if let Some(before) = before {
        if entry.start < before.start {
            return Some(("starts before the one ahead of it".into(), "sort the entries by their starts"));
        }
        if entry.start < before.start + before.duration {
            let fault = format!("overlaps the one ahead of it, {before}");
            return Some((fault, "let it start when that one is over, or shorten that one"));
        }
    }
    match cycle {
        Some(cycle) if entry.start + entry.duration > cycle => {
            let fault = format!("is not over when the cycle of {cycle} is");
            Some((fault, "make the cycle longer, or the entry shorter"))
        }
        _ => None,
    }
}

fn check_children(
    description: &Description,
    (index, scheduler): (usize, &Scheduler),
    plan: &Plan,
    missing: Missing,
    found: &mut Vec<Violation>,
) {
    let name = &scheduler.name;
    let children: Vec<(Member, usize)> = members(description)
        .flat_map(|member| {
            let under = member.under(description).iter().enumerate();
            under.filter(|(_, under)| under.scheduler == index).map(move |(edge, _)| (member, edge))
        })
        .collect();
    let names: HashSet<&str> = children.iter().map(|(member, _)| member.name(description)).collect();
    let mut told = HashSet::new();
    for (number, entry) in plan.entries().iter().enumerate() {
        let child = entry.child.as_str();
        if missing == Missing::Departed || names.contains(child) || !told.insert(child) {
            continue;
        }
        let message =
            format!("the plan of scheduler \"{name}\" has an entry for \"{child}\", which is not below it");
        let mut known: Vec<&str> = names.iter().copied().collect();
        known.sort_unstable();
        let remedy = match known.as_slice() {
            [] => format!("put a thread or scheduler of that name under \"{name}\""),
            known => crate::suggest::known_words(child, known.iter().copied()),
        };
        found.push(Violation::error(Place::PlanEntry(index, number), message, remedy));
    }
    let released = scheduler.settings.get("gaps") == Some(&Setting::Word("released"));
    let planned: HashSet<&str> = plan.entries().iter().map(|entry| entry.child.as_str()).collect();
    for (member, edge) in children {
        if released && !planned.contains(member.name(description)) {
            let label = member.label(description);
            found.push(Violation {
                related: Some(Place::Scheduler(index, Parameter::PLAN.name)),
                ..Violation::error(
                    member.edge(edge, "scheduler"),
                    format!("{label} never runs: the plan of scheduler \"{name}\" has no entry for it"),
                    "give it one, or set gaps = \"event-driven\", by which it runs while no entry is served",
                )
            });
        }
    }
}
