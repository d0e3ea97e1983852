//! Whether every deadline of a deadline lane is met, without looking at single tasks.
//!
//! In a window up to t the work whose deadlines lie within it, a started job whose deadline does not, and everything
//! that comes from outside must fit: the processor demand criterion (Baruah, Rosier and Howell 1990; with blocking,
//! George, Rivierre and Spuri 1996), checked backwards as by Zhang and Burns (2009). Only a lane by itself makes it
//! exact: from outside all work counts that arrives, whether or not it is done by t.

use super::search::Arrivals;
use super::{Counted, Found, Interest, View, Worst};
use crate::effort::Effort;
use crate::system::stream::Stream;
use crate::system::{Method, Obstacle};
use crate::utilisation::ONE;
use talea_model::LaneDispatch;
use talea_policy::discipline::Discipline;

/// Every operation with its deadline as bound, if the demand says that all deadlines of the lane are met.
pub(super) fn within_deadlines(view: &View<'_>, effort: &mut Effort) -> Result<Option<Found>, Obstacle> {
    let any_key = view.streams.iter().any(|stream| stream.backlogged);
    if view.lane.discipline != Discipline::Deadline || any_key || !deadlines_are_met(view, effort)? {
        return Ok(None);
    }
    let of_stream = |stream: &Stream| {
        let segment = view.segment(stream);
        let worst = Worst {
            method: Method::Demand,
            completion: segment.deadline,
            arrival: 0,
            counted: Counted::Nothing,
            blocking: None,
            start: None,
        };
        segment.operations.iter().map(move |operation| (*operation, worst.clone()))
    };
    Ok(Some(view.streams.iter().flat_map(of_stream).collect()))
}

/// Whether a demand that does not fit means that an operation exceeds its limit: where all are to meet their deadlines
/// and nothing comes from outside, the criterion is exact. (A switch costs others more than the job itself.)
pub(super) fn decides(view: &View<'_>) -> bool {
    let alone = |stream: &Stream| view.segment(stream).operations.len() == 1 && stream.delay == 0;
    view.lane.discipline == Discipline::Deadline
        && view.outside.is_empty()
        && !view.model.switches_cost
        && view.streams.iter().all(|stream| alone(stream) && stream.bunched == 0)
        && view.operations().all(|operation| matches!(view.goal.interest(operation), Interest::Limit(_)))
}

fn deadlines_are_met(view: &View<'_>, effort: &mut Effort) -> Result<bool, Obstacle> {
    let deadline = |stream: &Stream| i128::from(view.segment(stream).deadline);
    let first = view.streams.iter().map(|stream| deadline(stream) - i128::from(stream.delay)).min();
    let first = first.expect("a lane has members");
    if first <= 0 {
        // A release may be later than its deadline.
        return Ok(false);
    }
    effort.spend(view.cost())?;
    if density_is_at_most_one(view) {
        return Ok(true);
    }
    let mut deadlines = Arrivals::new(first - 1);
    for stream in view.streams {
        deadlines.add_counted(deadline(stream) - i128::from(stream.delay), stream);
    }
    let longest = blocking(view, i128::MIN);
    let busy_period = view.busy_period(longest, effort)?;
    let mut next = deadlines.last_before(i128::from(busy_period) + 1);
    while let Some(at) = next {
        effort.spend(deadlines.cost() + view.cost())?;
        let window = u64::try_from(at).map_err(|_| Obstacle::Overflow)?;
        let due = |stream: &Stream| {
            u128::from(stream.count_arrived_by(at - deadline(stream))) * u128::from(stream.cost)
        };
        let work = view.streams.iter().map(due).sum::<u128>() + view.outside.through(window - 1);
        let supply = view.outside.supply();
        if supply.time_for(work + u128::from(blocking(view, at))) > u128::from(window) {
            return Ok(false);
        }
        // Between the time for the demand and here every deadline is met, for the demand only shrinks.
        let time = supply.time_for(work + u128::from(longest));
        let demand = i128::try_from(time).map_err(|_| Obstacle::Overflow)?;
        next = deadlines.last_before(at.min(demand + 1));
    }
    Ok(true)
}

/// Whether the sum of C / min(D - J, T), J the latest release, is at most 1, where nothing but that counts: then the demand never exceeds the
/// time. It settles without a search what is otherwise longest to decide, a load close to 1.
fn density_is_at_most_one(view: &View<'_>) -> bool {
    let bunched = view.streams.iter().any(|stream| stream.bunched > 0);
    if bunched || !view.outside.is_empty() || view.lane.rules.dispatch == LaneDispatch::NonPreemptive {
        return false;
    }
    let density = |stream: &Stream| {
        let available = view.segment(stream).deadline.saturating_sub(stream.delay).min(stream.period);
        (u128::from(stream.cost) << 64).div_ceil(u128::from(available.max(1)))
    };
    view.streams.iter().map(density).fold(0, u128::saturating_add) <= ONE
}

/// The longest rest of a job that may have started although its deadline is after `at`.
fn blocking(view: &View<'_>, at: i128) -> u64 {
    if view.lane.rules.dispatch == LaneDispatch::Preemptive {
        return 0;
    }
    let later = view
        .streams
        .iter()
        .map(|stream| view.segment(stream))
        .filter(|segment| i128::from(segment.deadline) > at);
    later.map(|segment| (segment.longest - 1).saturating_add(view.outside.burst())).max().unwrap_or(0)
}
