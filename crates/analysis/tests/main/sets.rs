//! Task sets for the properties.

use proptest::prelude::*;
use std::cmp::Ordering;
use talea_analysis::utilisation::compare_with_one;
use talea_analysis::{Effort, Task};
use talea_time::{Duration, Work};

/// A task of so many nanoseconds.
pub fn task(period: i64, wcet: i64, deadline: i64, jitter: i64) -> Task {
    Task::new(Duration::from_nanos(period), Work::from_nanos(wcet))
        .and_then(|task| task.with_deadline(Duration::from_nanos(deadline)))
        .and_then(|task| task.with_jitter(Duration::from_nanos(jitter)))
        .expect("the numbers are a task")
}

/// The least common multiple of the periods.
pub fn hyperperiod(tasks: &[Task]) -> i64 {
    tasks.iter().fold(1, |multiple, task| num_integer::lcm(multiple, task.period().as_nanos()))
}

/// Longer than any response of [`few`] tasks: those above one leave at least 1/12 of the processor idle.
pub const LONGEST_WINDOW: i64 = 300;

/// Two or three tasks of a few nanoseconds whose utilisation is at most 1; jitter below `jitter_end`.
pub fn tiny(jitter_end: i64) -> impl Strategy<Value = Vec<Task>> {
    let numbers = (2_i64..7, 1_i64..4, 1_i64..10, 0..jitter_end);
    let one = numbers.prop_map(|(period, wcet, deadline, jitter)| {
        task(period, wcet.min(period), deadline.max(wcet), jitter)
    });
    prop::collection::vec(one, 2..4).prop_filter("overload", |tasks| {
        compare_with_one(tasks, &mut Effort::default()).unwrap() != Ordering::Greater
    })
}

/// Two or three tasks of a few nanoseconds that fill the processor exactly; jitter below `jitter_end`.
pub fn full(jitter_end: i64) -> impl Strategy<Value = Vec<Task>> {
    const HYPERPERIOD: i64 = 12;
    let numbers = (prop::sample::select(vec![3_i64, 4, 6]), 1_i64..3, 1_i64..40, 0..jitter_end);
    let last = (1_i64..40, 0..jitter_end, 0_usize..3);
    (prop::collection::vec(numbers, 1..3), last).prop_filter_map("overload", |(numbers, last)| {
        let mut rest = HYPERPERIOD;
        let mut tasks = Vec::new();
        for (period, wcet, deadline, jitter) in numbers {
            rest -= wcet * HYPERPERIOD / period;
            tasks.push(task(period, wcet, deadline.max(wcet), jitter));
        }
        let (deadline, jitter, place) = last;
        if rest > 0 {
            let filling = task(HYPERPERIOD, rest, deadline.max(rest), jitter);
            tasks.insert(place.min(tasks.len()), filling);
        }
        (rest >= 0).then_some(tasks)
    })
}

/// [`tiny`] or [`full`].
pub fn few(jitter_end: i64) -> impl Strategy<Value = Vec<Task>> {
    prop_oneof![3 => tiny(jitter_end), 1 => full(jitter_end)]
}

/// Up to twelve tasks of up to some hundred nanoseconds, of any utilisation.
pub fn small() -> impl Strategy<Value = Vec<Task>> {
    let numbers = (5_i64..200, 1_i64..30, 3_i64..300, prop_oneof![2 => Just(0_i64), 1 => 0_i64..60]);
    let one = numbers.prop_map(|(period, wcet, deadline, jitter)| task(period, wcet, deadline, jitter));
    prop::collection::vec(one, 1..12)
}
