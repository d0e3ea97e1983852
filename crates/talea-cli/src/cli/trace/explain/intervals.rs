//! The intervals of one response, in the order of time: all of them, or of many the longest and the rest folded in between.

use crate::cli::output::wrap_beside;
use talea_insight::explain::{Explanation, Explanations, Interval};
use talea_time::{Duration, Instant};

/// Intervals that are listed one by one.
const SHOWN: usize = 30;
/// Of more than that, how many of the longest stand on a line of their own. What is between two of them takes one line, so there
/// are about as many lines as for [`SHOWN`].
const LONGEST: usize = 15;

/// Neighbours that read the same, such as of two hops.
type Alike<'a> = &'a [Interval];

/// A table of the intervals, in lines.
pub fn intervals(answer: &Explanations, one: &Explanation) -> Vec<String> {
    let list: Vec<Alike<'_>> = one.intervals.chunk_by(|first, second| first.cause == second.cause).collect();
    let row = |from: Instant, length: Duration, what: &str| {
        let length = length.rounded().to_string();
        wrap_beside(&format!("  {:>12}  {length:>10}  ", after_arrival(one, from)), what)
    };
    let head = |what: &str| format!("  {:>12}  {:>10}  {what}", "after", "for");
    let single = |alike: &Alike<'_>| row(alike[0].from, length(alike), &what(answer, alike[0]));
    if list.len() <= SHOWN {
        return std::iter::once(head("what")).chain(list.iter().map(single)).collect();
    }
    let title = format!("what, the {LONGEST} longest of {} one by one; --json lists all", list.len());
    let rows = folded(&list).into_iter().map(|run| match run {
        [alike] => single(alike),
        _ => {
            let sum = run.iter().map(|alike| length(alike)).sum();
            let most = run.iter().map(|alike| length(alike)).max().unwrap_or(Duration::ZERO);
            row(run[0][0].from, sum, &format!("{} shorter ones, up to {}", run.len(), most.rounded()))
        }
    });
    std::iter::once(head(&title)).chain(rows).collect()
}

/// The list in runs, of which each of the [`LONGEST`] is one, of equals the first, and all between two of them are one.
fn folded<'a, 'b>(list: &'a [Alike<'b>]) -> Vec<&'a [Alike<'b>]> {
    let mut order: Vec<usize> = (0..list.len()).collect();
    order.sort_by_key(|index| std::cmp::Reverse(length(list[*index])));
    let mut is_long = vec![false; list.len()];
    order.iter().take(LONGEST).for_each(|index| is_long[*index] = true);
    let mut runs = Vec::new();
    let mut rest = list;
    for same in is_long.chunk_by(|first, second| !first && !second) {
        let (run, later) = rest.split_at(same.len());
        runs.push(run);
        rest = later;
    }
    runs
}

fn length(alike: Alike<'_>) -> Duration {
    Interval { to: alike[alike.len() - 1].to, ..alike[0] }.length()
}

fn what(answer: &Explanations, interval: Interval) -> String {
    let cause = interval.cause;
    let who = cause.job().map_or_else(|| answer.blamed_name(cause.blamed()), |job| answer.job_name(job));
    format!("{} {who}", cause.kind().words()).trim_end().to_owned()
}

/// How long after the arrival something was: to the microsecond, for rows that are close together, where that is coarser than
/// three digits.
pub fn after_arrival(one: &Explanation, at: Instant) -> String {
    let after_ns = at.as_nanos().saturating_sub(one.arrival.as_nanos());
    if after_ns < 1_000_000 {
        return Duration::from_nanos(after_ns).rounded().to_string();
    }
    format!("{}.{:03}ms", after_ns / 1_000_000, after_ns / 1_000 % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_insight::explain::{Cause, Stage};

    #[test]
    fn the_longest_stand_alone_and_nothing_is_left_out() {
        // Every third is long, and the longest is the last.
        let lengths_ns = (0..90).map(|index| if index % 3 == 2 { 1_000 + index } else { 1 });
        let mut from_ns = 0;
        let intervals: Vec<Interval> = lengths_ns
            .map(|length_ns| {
                let (from, to) = (Instant::from_nanos(from_ns), Instant::from_nanos(from_ns + length_ns));
                from_ns += length_ns;
                Interval { from, to, hop: 0, stage: Stage::Begun, cause: Cause::Execution }
            })
            .collect();
        let list: Vec<Alike<'_>> = intervals.chunks(1).collect();
        let runs = folded(&list);
        assert_eq!(runs.concat(), list);
        let alone: Vec<i64> =
            runs.iter().filter(|run| run.len() == 1).map(|run| length(run[0]).as_nanos() - 1_000).collect();
        assert_eq!(alone, (15..30).map(|third| 3 * third + 2).collect::<Vec<i64>>());
        assert_eq!(runs.len(), 2 * LONGEST, "and one run before each");
    }
}
