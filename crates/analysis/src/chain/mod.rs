//! End-to-end bounds for chains of subtasks on several processors, under preemptive fixed priorities.
//!
//! * [`sa_pm`]: for releases that stay a period apart: release guards and (modified) phase modification.
//! * [`sa_ds`]: for greedy releases, by jitter that grows along the chain.
//! * [`holistic`]: the same with message delays and best cases taken off the jitter.
//!
//! A chain may be a graph: a subtask is released when all its predecessors have completed. The bounds are sufficient,
//! not exact: they assume that all subtasks on a processor can be released together. The instances of one subtask run in
//! the order of their arrivals, so messages must not overtake each other.

pub mod holistic;
mod jitter;
pub mod sa_ds;
pub mod sa_pm;

use crate::task::{Task, TaskError};
use talea_time::{Duration, Work};
use thiserror::Error;

/// One step of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtask {
    /// The processor it runs on; any number.
    pub processor: usize,
    /// Its priority there: a smaller number is higher, and equal ones delay each other.
    pub priority: u32,
    /// Longest execution time of one job, above zero.
    pub wcet: Work,
    /// Shortest execution time of one job; zero if unknown. Only [`holistic`] uses it.
    pub bcet: Work,
    /// Longest delay by work of lower priority on its processor.
    pub blocking: Duration,
    /// Longest time from the completion of its last predecessor until it can be released: the message's delay.
    pub delay: Duration,
    /// Its predecessors' positions in the chain, all smaller than its own. Without any it is released when the chain
    /// is.
    pub after: Vec<usize>,
}

/// A task made of subtasks. Its instances arrive at least a period apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Least separation of two arrivals.
    pub period: Duration,
    /// Longest time from the arrival to the release of the first subtasks.
    pub jitter: Duration,
    /// Its subtasks, predecessors first.
    pub subtasks: Vec<Subtask>,
}

/// Chains that satisfy the rules of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chains {
    /// By chain and position.
    chains: Vec<Chain>,
    /// All subtasks, chain after chain.
    steps: Vec<Step>,
    /// Steps by processor and then priority; equal ones in the order of the chains.
    by_priority: Vec<usize>,
}

/// A subtask among all.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    chain: usize,
    processor: usize,
    priority: u32,
    bcet: u64,
    delay: u64,
    /// Steps, not positions.
    after: Vec<usize>,
    /// Without the jitter that depends on others.
    task: Task,
}

/// Why chains cannot be analysed. Positions count from 0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChainError {
    /// A chain has no subtask.
    #[error("chain {chain} has no subtasks")]
    Empty {
        /// Its position.
        chain: usize,
    },
    /// A number of a subtask or of its chain is outside the model.
    #[error("chain {chain}, subtask {subtask}: {cause}")]
    Number {
        /// The chain's position.
        chain: usize,
        /// The subtask's position in it.
        subtask: usize,
        /// Which number.
        cause: TaskError,
    },
    /// The shortest execution time is negative or longer than the longest.
    #[error(
        "chain {chain}, subtask {subtask}: a shortest execution time of {bcet} is not between 0 and the longest"
    )]
    BestCase {
        /// The chain's position.
        chain: usize,
        /// The subtask's position in it.
        subtask: usize,
        /// The shortest execution time.
        bcet: Work,
    },
    /// A delay is negative.
    #[error("chain {chain}, subtask {subtask}: a delay of {delay} is negative")]
    Delay {
        /// The chain's position.
        chain: usize,
        /// The subtask's position in it.
        subtask: usize,
        /// The delay.
        delay: Duration,
    },
    /// A predecessor does not stand before its successor.
    #[error("chain {chain}, subtask {subtask}: its predecessor {predecessor} does not stand before it")]
    Predecessor {
        /// The chain's position.
        chain: usize,
        /// The subtask's position in it.
        subtask: usize,
        /// The predecessor's position.
        predecessor: usize,
    },
}

/// End-to-end bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// By chain and position, as the analysis defines it. `None` where no bound was found.
    pub subtasks: Vec<Vec<Option<Duration>>>,
    /// By chain: from the arrival of an instance until all its subtasks have completed. `None` where no bound was
    /// found.
    pub end_to_end: Vec<Option<Duration>>,
}

impl Chains {
    /// Chains, if they satisfy the rules of the model.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn new(chains: Vec<Chain>) -> Result<Self, ChainError> {
        let mut steps = Vec::new();
        for (index, chain) in chains.iter().enumerate() {
            if chain.subtasks.is_empty() {
                return Err(ChainError::Empty { chain: index });
            }
            let first = steps.len();
            for position in 0..chain.subtasks.len() {
                steps.push(step(chain, (index, position), first)?);
            }
        }
        let mut by_priority: Vec<usize> = (0..steps.len()).collect();
        by_priority.sort_by_key(|&step| (steps[step].processor, steps[step].priority));
        Ok(Chains { chains, steps, by_priority })
    }

    /// The chains.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// The steps on the processor of `step` with its priority or a higher one, without itself.
    fn interfering(&self, step: usize) -> impl Iterator<Item = usize> {
        let Step { processor, priority, .. } = self.steps[step];
        let place = |index: &usize| (self.steps[*index].processor, self.steps[*index].priority);
        let begin = self.by_priority.partition_point(|index| place(index).0 < processor);
        let end = self.by_priority.partition_point(|index| place(index) <= (processor, priority));
        self.by_priority[begin..end].iter().copied().filter(move |&other| other != step)
    }

    /// Values of all steps, by chain and position.
    fn by_chain<T>(&self, values: Vec<T>) -> Vec<Vec<T>> {
        let mut values = values.into_iter();
        self.chains.iter().map(|chain| values.by_ref().take(chain.subtasks.len()).collect()).collect()
    }
}

fn step(chain: &Chain, (index, position): (usize, usize), first: usize) -> Result<Step, ChainError> {
    let subtask = &chain.subtasks[position];
    let number = |cause| ChainError::Number { chain: index, subtask: position, cause };
    let task = Task::new(chain.period, subtask.wcet)
        .and_then(|task| task.with_blocking(subtask.blocking))
        .and_then(|task| task.with_jitter(chain.jitter))
        .map_err(number)?;
    if let Some(&predecessor) = subtask.after.iter().find(|&&predecessor| predecessor >= position) {
        return Err(ChainError::Predecessor { chain: index, subtask: position, predecessor });
    }
    let bcet = u64::try_from(subtask.bcet.as_nanos()).ok().filter(|_| subtask.bcet <= subtask.wcet);
    let delay = u64::try_from(subtask.delay.as_nanos());
    Ok(Step {
        chain: index,
        processor: subtask.processor,
        priority: subtask.priority,
        bcet: bcet.ok_or(ChainError::BestCase { chain: index, subtask: position, bcet: subtask.bcet })?,
        delay: delay.map_err(|_| ChainError::Delay {
            chain: index,
            subtask: position,
            delay: subtask.delay,
        })?,
        after: subtask.after.iter().map(|predecessor| first + predecessor).collect(),
        task,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn subtask(processor: usize, priority: u32, wcet: i64, after: &[usize]) -> Subtask {
        Subtask {
            processor,
            priority,
            wcet: Work::from_nanos(wcet),
            bcet: Work::ZERO,
            blocking: Duration::ZERO,
            delay: Duration::ZERO,
            after: after.to_vec(),
        }
    }

    pub(super) fn chain(period: i64, subtasks: Vec<Subtask>) -> Chain {
        Chain { period: Duration::from_nanos(period), jitter: Duration::ZERO, subtasks }
    }

    #[test]
    fn chains_outside_the_model_are_refused() {
        let refused = |chain: Chain| Chains::new(vec![chain]).unwrap_err();
        assert_eq!(refused(chain(10, vec![])), ChainError::Empty { chain: 0 });
        let backwards = chain(10, vec![subtask(0, 0, 1, &[]), subtask(0, 0, 1, &[1])]);
        assert_eq!(refused(backwards), ChainError::Predecessor { chain: 0, subtask: 1, predecessor: 1 });
        let idle = chain(10, vec![subtask(0, 0, 0, &[])]);
        let cause = TaskError::Wcet(Work::ZERO);
        assert_eq!(refused(idle), ChainError::Number { chain: 0, subtask: 0, cause });
        let bcet = Work::from_nanos(2);
        let hasty = chain(10, vec![Subtask { bcet, ..subtask(0, 0, 1, &[]) }]);
        assert_eq!(refused(hasty), ChainError::BestCase { chain: 0, subtask: 0, bcet });
        let delay = Duration::from_nanos(-1);
        let early = chain(10, vec![Subtask { delay, ..subtask(0, 0, 1, &[]) }]);
        assert_eq!(refused(early), ChainError::Delay { chain: 0, subtask: 0, delay });
    }

    #[test]
    fn equal_priorities_interfere_with_each_other_but_not_with_themselves() {
        let chains = Chains::new(vec![
            chain(10, vec![subtask(0, 1, 1, &[]), subtask(1, 1, 1, &[0])]),
            chain(10, vec![subtask(0, 1, 1, &[])]),
            chain(10, vec![subtask(0, 2, 1, &[])]),
        ])
        .unwrap();
        let interfering = |step| chains.interfering(step).collect::<Vec<_>>();
        assert_eq!(interfering(0), [2]);
        assert!(interfering(1).is_empty());
        assert_eq!(interfering(2), [0]);
        assert_eq!(interfering(3), [0, 2]);
    }
}
