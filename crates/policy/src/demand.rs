//! Seeded demand: what each job of synthetic work needs, and what each message meets on its way, the same in every run of a system.
//!
//! Every draw is a function of the seed, the drawer and the job's number, not of the order in which draws
//! happen. So all strategies, the simulator and the real threads face the identical demand, which is what
//! makes them comparable (Gill et al., section 3.2, use one seed for every strategy).

use talea_model::{Execution, FieldValues, LossRate, OperationId, Route, System};
use talea_time::{Duration, Work};

/// The execution time that synthetic work of `operation` takes in `instance`.
pub fn execution(system: &System, operation: OperationId, instance: u64) -> Work {
    let stream = stream(system.seed, Purpose::Execution, operation.index());
    execution_from(&system.subtask(operation).exec, stream, instance)
}

/// How long after its arrival `instance` of `task` is released.
pub fn release_jitter(system: &System, task: usize, instance: u64) -> Duration {
    release_jitter_from(system.tasks[task].jitter, stream(system.seed, Purpose::Jitter, task), instance)
}

/// What a stream of draws is for; streams of different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Execution times of an operation.
    Execution,
    /// Release jitter of a task.
    Jitter,
    /// The time that messages of an operation take.
    Travel,
    /// Which messages of an operation are lost.
    Loss,
    /// Fields of an output's values.
    Value,
    /// When something outside releases a task.
    Outside,
    /// Fields of events.
    Event,
    /// Fields of the headers of events.
    EventHeader,
}

/// The key of the stream that `index` (of an operation or a task) draws from.
pub fn stream(seed: u64, purpose: Purpose, index: usize) -> u64 {
    let purpose = match purpose {
        Purpose::Execution => 1,
        Purpose::Jitter => 2,
        Purpose::Travel => 3,
        Purpose::Loss => 4,
        Purpose::Value => 5,
        Purpose::Outside => 6,
        Purpose::Event => 7,
        Purpose::EventHeader => 8,
    };
    mix(mix(seed) ^ mix(purpose << 32 | index as u64))
}

/// [`execution`] with the stream found beforehand, for loops.
#[inline]
pub fn execution_from(exec: &Execution, stream: u64, instance: u64) -> Work {
    match exec {
        Execution::Constant(work) => *work,
        Execution::Uniform(low, high) => {
            Work::from_nanos(uniform(stream, instance, low.as_nanos(), high.as_nanos()))
        }
        Execution::List(list) => list[(instance % list.len() as u64) as usize],
    }
}

/// The number of a synthetic field in the value of `instance`.
#[inline]
pub fn field_from(values: &FieldValues, stream: u64, instance: u64) -> i64 {
    match values {
        FieldValues::Constant(number) => *number,
        FieldValues::Uniform(low, high) => uniform(stream, instance, *low, *high),
        FieldValues::List(list) => list[(instance % list.len() as u64) as usize],
    }
}

/// An exponentially distributed time with this mean, in whole nanoseconds.
pub fn exponential_from(mean: Duration, stream: u64, instance: u64) -> Duration {
    // In (0, 1], so that the logarithm is finite.
    let uniform = ((draw(stream, instance) >> 11) + 1) as f64 / (1u64 << 53) as f64;
    Duration::from_nanos((-uniform.ln() * mean.as_nanos() as f64) as i64)
}

/// [`release_jitter`] with the stream found beforehand, for loops.
#[inline]
pub fn release_jitter_from(jitter: Duration, stream: u64, instance: u64) -> Duration {
    if jitter == Duration::ZERO {
        return jitter;
    }
    Duration::from_nanos(uniform(stream, instance, 0, jitter.as_nanos()))
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrives this long after it was sent.
    Arrives(Duration),
    /// It never arrives.
    Lost,
}

/// The way of the messages from one operation to one of its successors.
#[derive(Clone, Copy, Debug)]
pub struct MessageWay {
    route: Route,
    travel: u64,
    loss: u64,
}

impl MessageWay {
    /// The way from the operation `from` to its successor `to`, whose nodes are joined by `route`.
    pub fn new(seed: u64, from: OperationId, to: OperationId, route: Route) -> Self {
        let stream = |purpose| mix(stream(seed, purpose, from.index()) ^ mix(to.index() as u64));
        MessageWay { route, travel: stream(Purpose::Travel), loss: stream(Purpose::Loss) }
    }

    /// The way between these two operations of the system.
    pub fn of(system: &System, from: OperationId, to: OperationId) -> Self {
        let node = |operation| system.subtask(operation).node;
        Self::new(system.seed, from, to, system.route(node(from), node(to)))
    }

    /// What becomes of the message of `instance`.
    #[inline]
    pub fn passage(&self, instance: u64) -> Passage {
        let Route { delay, jitter, loss } = self.route;
        if loss != LossRate::NONE
            && uniform(self.loss, instance, 1, 1_000_000_000) <= i64::from(loss.billionths())
        {
            return Passage::Lost;
        }
        Passage::Arrives(delay + release_jitter_from(jitter, self.travel, instance))
    }

    /// What a message meets at worst and at best.
    pub fn route(&self) -> Route {
        self.route
    }
}

/// The `index`-th draw of `stream`, uniform between `low` and `high`, both included.
fn uniform(stream: u64, index: u64, low: i64, high: i64) -> i64 {
    let count = (i128::from(high) - i128::from(low) + 1) as u128;
    // The high half of the product is uniform up to a bias of count / 2^64.
    low.wrapping_add(((u128::from(draw(stream, index)) * count) >> 64) as i64)
}

/// 64 random bits.
fn draw(stream: u64, index: u64) -> u64 {
    mix(stream.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// The finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): a bijection whose outputs for
/// successive inputs pass as random.
pub(crate) fn mix(word: u64) -> u64 {
    let mut z = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn uniform_draws_reach_both_ends_and_the_mean() {
        let exec = Execution::Uniform(Work::from_nanos(5), Work::from_nanos(9));
        let stream = stream(7, Purpose::Execution, 3);
        let draws: Vec<i64> = (0..10_000).map(|job| execution_from(&exec, stream, job).as_nanos()).collect();
        assert_eq!((draws.iter().min(), draws.iter().max()), (Some(&5), Some(&9)));
        let mean = draws.iter().sum::<i64>() as f64 / draws.len() as f64;
        assert!((6.9..7.1).contains(&mean), "mean {mean}");
    }

    #[test]
    fn messages_keep_what_their_link_promises_and_as_many_are_lost() {
        let loss = LossRate::from_share(0.25).expect("a share");
        let ms = Duration::from_millis;
        let route = Route { delay: ms(2), jitter: ms(3), loss };
        let [from, to, other] = [1, 2, 3].map(OperationId::from_index);
        let way = MessageWay::new(7, from, to, route);
        let passages: Vec<Passage> = (0..10_000).map(|instance| way.passage(instance)).collect();
        let times = passages.iter().filter_map(|passage| match passage {
            Passage::Arrives(time) => Some(*time),
            Passage::Lost => None,
        });
        assert!(times.clone().all(|time| ms(2) <= time && time <= ms(5)));
        assert!((7_300..7_700).contains(&times.count()));
        let again = MessageWay::new(7, from, to, route);
        assert!(
            passages.iter().enumerate().all(|(instance, passage)| again.passage(instance as u64) == *passage)
        );
        let beside = MessageWay::new(7, from, other, route);
        assert!(
            (0..100).any(|instance| beside.passage(instance) != way.passage(instance)),
            "each way draws by itself"
        );
        let direct = MessageWay::new(7, from, to, Route::default());
        assert!((0..100).all(|instance| direct.passage(instance) == Passage::Arrives(Duration::ZERO)));
    }

    proptest! {
        #[test]
        fn draws_stay_in_range(seed: u64, job: u64, low in 0i64..1 << 60, width in 0i64..1 << 60) {
            let drawn = uniform(stream(seed, Purpose::Jitter, 0), job, low, low + width);
            prop_assert!((low..=low + width).contains(&drawn));
        }
    }
}
