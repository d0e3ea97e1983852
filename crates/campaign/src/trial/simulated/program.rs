//! The same systems with a program beside them: what it noted itself is held against records and counts.

use super::{
    Counts, Run, advance, explanations_add_up, is_the_same, obeys_the_rules, promises_are_kept, slices,
};
use crate::draw::{self, Consumed, Notes};
use rand::RngExt;
use std::collections::HashSet;
use talea_check::Check;
use talea_model::System;
use talea_policy::strategy::Plan;
use talea_record::Event;

/// What was posted is released and called once, or refused; what was pushed comes to whom it is for, once, or is counted; and all rules hold.
pub fn holds(
    seed: u64,
    system: &System,
    plans: &[Plan],
    check: &Check,
    counts: &mut Counts,
) -> Result<(), String> {
    let seed = seed.rotate_left(8);
    if plans.iter().all(|plan| plan.lanes.is_empty()) || draw::numbers(!seed).random_ratio(1, 2) {
        return Ok(());
    }
    let said = |what: String| format!("with a program of seed {seed}: {what}");
    judge(seed, system, plans, check, counts).map_err(said)
}

fn judge(
    seed: u64,
    system: &System,
    plans: &[Plan],
    check: &Check,
    counts: &mut Counts,
) -> Result<(), String> {
    let (simulation, program) = draw::set_up(system, plans, seed)?;
    let run = advance(system, simulation, &[]);
    let (simulation, other) = draw::set_up(system, plans, seed)?;
    let slices = slices(seed);
    let again = advance(system, simulation, &slices);
    is_the_same(&run, &again, &slices)?;
    let (notes, consumed) = (program.notes(), program.consumed());
    if notes != other.notes() {
        return Err("the program is told something else when it is simulated in slices".into());
    }
    counts.hold("records with programs", run.records.len() as u64);
    obeys_the_rules(system, plans, &run)?;
    posted_is_called(&notes, &run, counts)?;
    for (consumer, had) in consumed.iter().zip(&notes.had) {
        pushed_is_delivered(&notes, consumer, had, counts)?;
    }
    explanations_add_up(&run, counts)?;
    promises_are_kept(system, check, &run, counts)
}

/// Each job that was posted is released and called once, in the order in which they began, unless it has not ended.
fn posted_is_called(notes: &Notes, run: &Run, counts: &mut Counts) -> Result<(), String> {
    for (operation, posted) in &notes.posted {
        let told = |event: Event| -> Vec<u64> {
            let of = run.records.iter().filter(|record| record.event == event);
            of.map(|record| record.job())
                .filter(|job| job.operation == *operation)
                .map(|job| job.instance)
                .collect()
        };
        let (released, completed) = (told(Event::RELEASE), told(Event::COMPLETE));
        let called = notes.called.get(operation).cloned().unwrap_or_default();
        counts.hold("posted jobs", posted.len() as u64);
        let posted: HashSet<&u64> = posted.iter().collect();
        let of_posted = |instance: &&u64| posted.contains(instance);
        let by_program = released.iter().filter(of_posted).count();
        let each_once = released.iter().collect::<HashSet<_>>().len() == released.len();
        if by_program != posted.len() || !each_once {
            let what = format!("{} jobs of {operation:?} were posted, {by_program} released", posted.len());
            return Err(what);
        }
        if called != completed {
            return Err(format!("{operation:?} was called for {called:?}, and {completed:?} completed"));
        }
    }
    Ok(())
}

/// Each event comes to a consumer that wants it, once, or is counted otherwise, or waits.
fn pushed_is_delivered(
    notes: &Notes,
    consumer: &Consumed,
    had: &[(u64, talea_time::Instant)],
    counts: &mut Counts,
) -> Result<(), String> {
    let Consumed { below, queued, statistics, .. } = consumer;
    let wanted = notes.pushed.iter().filter(|(zone, _)| zone < below).count() as u64;
    let others = notes.pushed.len() as u64 - wanted;
    counts.hold("events of programs", wanted);
    let numbers: Vec<u64> = had.iter().map(|(event, _)| *event).collect();
    if numbers.iter().collect::<HashSet<_>>().len() != numbers.len() {
        return Err(format!("an event came twice: {numbers:?}"));
    }
    if let Some(unwanted) = numbers.iter().find(|event| notes.pushed[**event as usize].0 >= *below) {
        return Err(format!("event {unwanted} came through a filter that does not let it"));
    }
    let at_once: Vec<u64> = numbers.iter().copied().filter(|event| notes.pushed[*event as usize].1).collect();
    if consumer.is_fifo && consumer.is_serial && !at_once.is_sorted() {
        return Err(format!("events came in another order than that in which they were pushed: {numbers:?}"));
    }
    // A delivery that has begun by the end has taken its event, and its code is not called any more.
    let settled = statistics.settled() - statistics.filtered;
    let missing = wanted.checked_sub(settled + *queued as u64);
    if missing.is_none_or(|missing| missing > consumer.servers) || statistics.filtered != others {
        return Err(format!("{wanted} events were for a consumer, and {others} not: {consumer:?}"));
    }
    if statistics.delivered != numbers.len() as u64 {
        return Err(format!("it had {} events: {consumer:?}", numbers.len()));
    }
    Ok(())
}
