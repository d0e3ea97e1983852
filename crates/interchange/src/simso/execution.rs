//! SimSo's execution times: the worst case, or a normal distribution cut off there.

use talea_model::Execution;
use talea_time::Work;

/// What jobs of a normal distribution take, as near as a description can say it: constant without a
/// deviation, otherwise uniform with the same mean and deviation, as far as that is between zero and `wcet`.
pub(super) fn from_normal(mean: Work, deviation: Work, wcet: Work) -> Execution {
    let mean = mean.min(wcet);
    if deviation == Work::ZERO {
        return Execution::Constant(mean);
    }
    // A uniform distribution of half-width h deviates by h / sqrt(3).
    let half = (deviation.as_nanos() as f64 * 3.0_f64.sqrt()).round() as i64;
    let low = mean.as_nanos().saturating_sub(half).max(0);
    let high = mean.as_nanos().saturating_add(half).min(wcet.as_nanos());
    Execution::Uniform(Work::from_nanos(low), Work::from_nanos(high))
}

/// Mean and standard deviation of execution times.
pub(super) fn moments(exec: &Execution) -> (Work, Work) {
    match exec {
        Execution::Constant(work) => (*work, Work::ZERO),
        Execution::Uniform(low, high) => {
            let mean = low.as_nanos() + (high.as_nanos() - low.as_nanos()) / 2;
            let deviation = (high.as_nanos() - low.as_nanos()) as f64 / 12.0_f64.sqrt();
            (Work::from_nanos(mean), Work::from_nanos(deviation.round() as i64))
        }
        Execution::List(works) => {
            let count = works.len() as i128;
            let sum: i128 = works.iter().map(|work| i128::from(work.as_nanos())).sum();
            let mean = (sum / count) as i64;
            let squares = works.iter().map(|work| ((work.as_nanos() - mean) as f64).powi(2)).sum::<f64>();
            let deviation = (squares / count as f64).sqrt();
            (Work::from_nanos(mean), Work::from_nanos(deviation.round() as i64))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: i64) -> Work {
        Work::from_millis(ms)
    }

    #[test]
    fn a_uniform_distribution_keeps_its_moments_both_ways() {
        let uniform = Execution::Uniform(ms(2), ms(8));
        let (mean, deviation) = moments(&uniform);
        assert_eq!((mean, deviation.as_nanos()), (ms(5), 1_732_051));
        let Execution::Uniform(low, high) = from_normal(mean, deviation, ms(9)) else { panic!("uniform") };
        assert!((low.as_nanos() - 2_000_000).abs() <= 1 && (high.as_nanos() - 8_000_000).abs() <= 1);
    }

    #[test]
    fn no_job_is_negative_or_longer_than_its_worst_case() {
        assert_eq!(from_normal(ms(5), ms(5), ms(6)), Execution::Uniform(Work::ZERO, ms(6)));
        assert_eq!(from_normal(ms(7), Work::ZERO, ms(6)), Execution::Constant(ms(6)));
        let far = Work::from_nanos(i64::MAX);
        assert_eq!(from_normal(far, far, ms(6)), Execution::Uniform(Work::ZERO, ms(6)));
    }

    #[test]
    fn a_list_has_moments() {
        let list = Execution::List([ms(1), ms(3)].into());
        assert_eq!(moments(&list), (ms(2), ms(1)));
    }
}
