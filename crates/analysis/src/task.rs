//! The sporadic task that all analyses speak of.

use talea_time::{Duration, Work};
use thiserror::Error;

/// A sporadic task: its jobs arrive at least a period apart and each needs at most `wcet` of the processor.
///
/// | Symbol | Here | Meaning |
/// |---|---|---|
/// | T | [`period`](Task::period) | least separation of two arrivals |
/// | C | [`wcet`](Task::wcet) | most processor time of one job |
/// | D | [`deadline`](Task::deadline) | from arrival to deadline; by default T, and it may be longer |
/// | J | [`jitter`](Task::jitter) | longest time from arrival to release; by default 0 |
/// | B | [`blocking`](Task::blocking) | longest delay by work of lower urgency outside the analysed model; by default 0 |
///
/// All times are integer nanoseconds. Deadlines and response times count from the arrival. Jobs of one task run in the
/// order of their arrivals, also where the jitter is longer than the period and would let a later one be released first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// At least 1 ns.
    period: Duration,
    /// At least 1 ns; it may exceed the period, which is an overload, not an error.
    wcet: Work,
    /// At least 1 ns.
    deadline: Duration,
    /// Never negative.
    jitter: Duration,
    /// Never negative.
    blocking: Duration,
}

/// A task's times as numbers of nanoseconds, each at most `i64::MAX`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    pub(crate) period: u64,
    pub(crate) wcet: u64,
    pub(crate) deadline: u64,
    pub(crate) jitter: u64,
    pub(crate) blocking: u64,
}

/// Why numbers do not make a task. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TaskError {
    /// The period is zero or negative.
    #[error("a period of {0} is not above zero")]
    Period(Duration),
    /// The execution time is zero or negative.
    #[error("an execution time of {0} is not above zero")]
    Wcet(Work),
    /// The relative deadline is zero or negative.
    #[error("a relative deadline of {0} is not above zero")]
    Deadline(Duration),
    /// The release jitter is negative.
    #[error("a release jitter of {0} is negative")]
    Jitter(Duration),
    /// The blocking time is negative.
    #[error("a blocking time of {0} is negative")]
    Blocking(Duration),
}

impl Task {
    /// A task whose deadline is its period, without jitter and blocking.
    ///
    /// # Errors
    /// [`TaskError::Period`] and [`TaskError::Wcet`] where a number is not above zero.
    pub fn new(period: Duration, wcet: Work) -> Result<Self, TaskError> {
        if period <= Duration::ZERO {
            return Err(TaskError::Period(period));
        }
        let task = Task { period, wcet, deadline: period, jitter: Duration::ZERO, blocking: Duration::ZERO };
        task.with_wcet(wcet)
    }

    /// The same task with another execution time.
    ///
    /// # Errors
    /// [`TaskError::Wcet`] where it is not above zero.
    pub fn with_wcet(self, wcet: Work) -> Result<Self, TaskError> {
        if wcet > Work::ZERO { Ok(Task { wcet, ..self }) } else { Err(TaskError::Wcet(wcet)) }
    }

    /// The same task with another period. The deadline stays what it is.
    ///
    /// # Errors
    /// [`TaskError::Period`] where it is not above zero.
    pub fn with_period(self, period: Duration) -> Result<Self, TaskError> {
        if period > Duration::ZERO { Ok(Task { period, ..self }) } else { Err(TaskError::Period(period)) }
    }

    /// The same task with another deadline, relative to the arrival.
    ///
    /// # Errors
    /// [`TaskError::Deadline`] where it is not above zero.
    pub fn with_deadline(self, deadline: Duration) -> Result<Self, TaskError> {
        if deadline > Duration::ZERO {
            Ok(Task { deadline, ..self })
        } else {
            Err(TaskError::Deadline(deadline))
        }
    }

    /// The same task with release jitter: a job is released at most `jitter` after its arrival.
    ///
    /// # Errors
    /// [`TaskError::Jitter`] where it is negative.
    pub fn with_jitter(self, jitter: Duration) -> Result<Self, TaskError> {
        if jitter >= Duration::ZERO { Ok(Task { jitter, ..self }) } else { Err(TaskError::Jitter(jitter)) }
    }

    /// The same task with blocking: the longest time that its busy period is delayed by work of lower urgency
    /// that the analysis does not find by itself, such as critical sections or non-preemptive parts of others.
    ///
    /// # Errors
    /// [`TaskError::Blocking`] where it is negative.
    pub fn with_blocking(self, blocking: Duration) -> Result<Self, TaskError> {
        if blocking >= Duration::ZERO {
            Ok(Task { blocking, ..self })
        } else {
            Err(TaskError::Blocking(blocking))
        }
    }

    /// Least separation of two arrivals.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Most processor time that one job needs.
    pub fn wcet(&self) -> Work {
        self.wcet
    }

    /// Longest acceptable time from arrival to completion.
    pub fn deadline(&self) -> Duration {
        self.deadline
    }

    /// Longest time from arrival to release.
    pub fn jitter(&self) -> Duration {
        self.jitter
    }

    /// Longest delay by work of lower urgency.
    pub fn blocking(&self) -> Duration {
        self.blocking
    }

    pub(crate) fn numbers(&self) -> Numbers {
        Numbers {
            period: self.period.as_nanos().unsigned_abs(),
            wcet: self.wcet.as_nanos().unsigned_abs(),
            deadline: self.deadline.as_nanos().unsigned_abs(),
            jitter: self.jitter.as_nanos().unsigned_abs(),
            blocking: self.blocking.as_nanos().unsigned_abs(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_deadline_is_the_period_unless_given() {
        let task = Task::new(MS, Work::from_nanos(10)).unwrap();
        assert_eq!((task.deadline(), task.jitter(), task.blocking()), (MS, Duration::ZERO, Duration::ZERO));
        assert_eq!(task.with_deadline(MS * 3).unwrap().deadline(), MS * 3);
    }

    #[test]
    fn numbers_outside_the_model_are_refused() {
        let negative = Duration::from_nanos(-1);
        let task = Task::new(MS, Work::from_nanos(10)).unwrap();
        assert_eq!(Task::new(Duration::ZERO, Work::from_nanos(1)), Err(TaskError::Period(Duration::ZERO)));
        assert_eq!(Task::new(MS, Work::ZERO), Err(TaskError::Wcet(Work::ZERO)));
        assert_eq!(task.with_deadline(Duration::ZERO), Err(TaskError::Deadline(Duration::ZERO)));
        assert_eq!(task.with_jitter(negative), Err(TaskError::Jitter(negative)));
        assert_eq!(task.with_blocking(negative), Err(TaskError::Blocking(negative)));
    }
}
