//! How much a system can change before a test fails: bisection in integers.
//!
//! Factors are found to one part in a million, periods to the nanosecond. A search asks the test at most 64 times.
//!
//! The test must be *monotone*: where it holds, it holds for every smaller factor and every longer period. The tests
//! of [`fixed_priority`](crate::fixed_priority), [`edf`](crate::edf), [`chain`](crate::chain) and
//! [`utilisation`](crate::utilisation) are. For a test that is not, such as a simulation, the answer is a value that
//! holds next to one that does not, but not necessarily the last such value.

use crate::task::Task;
use std::fmt;
use std::ops::RangeInclusive;
use talea_time::{Duration, Work};

/// A factor in parts per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Factor(u64);

/// Whose execution times grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// Those of all tasks, by the same factor.
    All,
    /// That of the task with this index.
    Only(usize),
}

impl Factor {
    /// No change.
    pub const ONE: Factor = Factor(1_000_000);

    /// A factor of `ppm` millionths.
    pub const fn from_ppm(ppm: u64) -> Self {
        Factor(ppm)
    }

    /// The factor in millionths.
    pub const fn ppm(self) -> u64 {
        self.0
    }

    /// `work` times the factor, rounded up to nanoseconds; `None` where that is not representable.
    ///
    /// Rounding up keeps a verdict about the result valid for the exact product.
    pub fn of(self, work: Work) -> Option<Work> {
        let product = i128::from(work.as_nanos()) * i128::from(self.0);
        let rounded = product.div_euclid(1_000_000) + i128::from(product.rem_euclid(1_000_000) != 0);
        i64::try_from(rounded).ok().map(Work::from_nanos)
    }
}

/// As a decimal number with six places: `1.250000`.
impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000))
    }
}

/// The largest factor up to `limit` for which `holds`; `None` if it does not hold for a millionth.
///
/// # Errors
/// The first error of `holds`; the search ends there.
pub fn largest_factor<E>(
    limit: Factor,
    mut holds: impl FnMut(Factor) -> Result<bool, E>,
) -> Result<Option<Factor>, E> {
    let found = last(1, limit.0, |ppm| holds(Factor(ppm)))?;
    Ok(found.map(Factor))
}

/// The shortest period in `range`, in nanoseconds, for which `holds`; `None` if it does not hold for the longest.
///
/// # Errors
/// The first error of `holds`; the search ends there.
pub fn shortest_period<E>(
    range: RangeInclusive<Duration>,
    mut holds: impl FnMut(Duration) -> Result<bool, E>,
) -> Result<Option<Duration>, E> {
    let (shortest, longest) = (range.start().as_nanos(), range.end().as_nanos());
    let Ok(steps) = u64::try_from(i128::from(longest) - i128::from(shortest)) else { return Ok(None) };
    let period = |below: u64| Duration::from_nanos(longest.wrapping_sub_unsigned(below));
    Ok(last(0, steps, |below| holds(period(below)))?.map(period))
}

/// The largest factor by which execution times can be multiplied so that `holds` for the tasks; `None` if it does not
/// hold for a millionth.
///
/// Factors that make an execution time longer than its period are not tried: no test holds there.
///
/// # Errors
/// The first error of `holds`; the search ends there.
pub fn largest_growth<E>(
    tasks: &[Task],
    growth: Growth,
    mut holds: impl FnMut(&[Task]) -> Result<bool, E>,
) -> Result<Option<Factor>, E> {
    let grows = |index: usize| growth == Growth::All || growth == Growth::Only(index);
    let growing = tasks.iter().enumerate().filter(|(index, _)| grows(*index));
    let limit = growing.map(|(_, task)| whole_period(task)).min().unwrap_or(Factor::ONE);
    let mut scaled = tasks.to_vec();
    largest_factor(limit, |factor| {
        for (index, task) in tasks.iter().enumerate().filter(|(index, _)| grows(*index)) {
            let wcet = factor.of(task.wcet()).expect("a period is a time");
            scaled[index] = task.with_wcet(wcet).expect("rounding up keeps it above zero");
        }
        holds(&scaled)
    })
}

/// The largest factor at which an execution time is not longer than its period.
fn whole_period(task: &Task) -> Factor {
    let numbers = task.numbers();
    let ppm = u128::from(numbers.period) * 1_000_000 / u128::from(numbers.wcet);
    Factor(u64::try_from(ppm).unwrap_or(u64::MAX))
}

/// The last number between `first` and `end`, both included, for which `holds`, if it holds up to some number and not
/// beyond.
fn last<E>(first: u64, end: u64, mut holds: impl FnMut(u64) -> Result<bool, E>) -> Result<Option<u64>, E> {
    let (mut low, mut high) = (first, end);
    let mut found = None;
    while low <= high {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            found = Some(middle);
            let Some(above) = middle.checked_add(1) else { break };
            low = above;
        } else {
            let Some(below) = middle.checked_sub(1) else { break };
            high = below;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use crate::fixed_priority::preemptive;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn task(period: i64, wcet: i64) -> Task {
        Task::new(Duration::from_millis(period), Work::from_millis(wcet)).unwrap()
    }

    #[test]
    fn two_harmonic_tasks_can_fill_the_processor() {
        let tasks = [task(10, 2), task(20, 5)];
        let effort = &mut Effort::default();
        let mut largest = |growth| {
            largest_growth(&tasks, growth, |tasks| preemptive::schedulable(tasks, effort)).unwrap().unwrap()
        };
        // 2 f / 10 + 5 f / 20 = 1 for f = 20/9; then 2 f / 10 = 3/4 and 5 f / 20 = 4/5.
        assert_eq!(largest(Growth::All).ppm(), 2_222_222);
        assert_eq!(largest(Growth::Only(0)).to_string(), "3.750000");
        assert_eq!(largest(Growth::Only(1)).to_string(), "3.200000");
    }

    #[test]
    fn the_shortest_period_is_found_to_the_nanosecond() {
        let tasks = [task(10, 2), task(20, 5)];
        let range = Duration::from_nanos(1)..=tasks[0].period();
        let shortest = shortest_period(range, |period| {
            let faster = tasks[0].with_period(period).unwrap().with_deadline(period).unwrap();
            preemptive::schedulable(&[faster, tasks[1]], &mut Effort::default())
        });
        // Seven jobs of 2 ms and one of 5 ms fill 19 ms; with the eighth it would be 21.
        assert_eq!(shortest, Ok(Some(Duration::from_nanos(2_714_286))));
    }

    #[test]
    fn what_never_holds_has_no_factor_and_no_period() {
        let never = |_| Ok::<bool, Infallible>(false);
        assert_eq!(largest_factor(Factor::ONE, never), Ok(None));
        let range = Duration::from_nanos(1)..=Duration::MAX;
        assert_eq!(shortest_period(range, |_| Ok::<bool, Infallible>(false)), Ok(None));
    }

    proptest! {
        #[test]
        fn bisection_finds_the_border_in_few_questions(border: u64, limit in 1_u64..) {
            let mut questions = 0;
            let found = largest_factor(Factor(limit), |factor| {
                questions += 1;
                Ok::<bool, Infallible>(factor.ppm() <= border)
            });
            let expected = border.min(limit);
            prop_assert_eq!(found, Ok((expected > 0).then_some(Factor(expected))));
            prop_assert!(questions <= 64);
        }

        #[test]
        fn factors_round_up(ns in 1_i64..1_000_000_000_000, ppm in 1_u64..10_000_000) {
            let scaled = Factor(ppm).of(Work::from_nanos(ns)).unwrap().as_nanos();
            let exact = i128::from(ns) * i128::from(ppm);
            prop_assert!(i128::from(scaled) * 1_000_000 >= exact);
            prop_assert!((i128::from(scaled) - 1) * 1_000_000 < exact);
        }
    }
}
