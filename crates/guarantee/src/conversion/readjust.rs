//! Weights that several processors can honour.

use crate::exact::Ratio;
use num_traits::{One, Zero};

/// The fraction of all `processors` together that each weight stands for, once no thread is to have more than one of
/// them (Chandra et al. 2000): from the greatest weight down, a thread that would have more gets exactly one,
/// and the others divide the remaining processors.
///
/// The fractions are at most `1 / processors` each; their sum is 1 unless there are fewer threads than processors.
pub fn readjust(weights: &[Ratio], processors: usize) -> Vec<Ratio> {
    let processor = |count: usize| Ratio::from_integer(count.into());
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|one, other| weights[*other].cmp(&weights[*one]));
    let mut fractions = vec![Ratio::zero(); weights.len()];
    let mut sum: Ratio = weights.iter().sum();
    let mut left = processors;
    let mut feasible = order.as_slice();
    while let [first, rest @ ..] = feasible {
        if left == 0 || &weights[*first] * processor(left) <= sum {
            break;
        }
        fractions[*first] = Ratio::one() / processor(processors);
        sum -= &weights[*first];
        left -= 1;
        feasible = rest;
    }
    for thread in feasible {
        fractions[*thread] = &weights[*thread] / &sum * processor(left) / processor(processors);
    }
    fractions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::ratio;

    fn fractions(weights: &[u64], processors: usize) -> Vec<Ratio> {
        let weights: Vec<Ratio> = weights.iter().map(|weight| ratio(*weight, 1)).collect();
        readjust(&weights, processors)
    }

    fn of(readjusted: &[u64]) -> Vec<Ratio> {
        let sum = readjusted.iter().sum();
        readjusted.iter().map(|weight| ratio(*weight, sum)).collect()
    }

    #[test]
    fn readjusted_weights_as_computed_elsewhere() {
        assert_eq!(fractions(&[2, 100, 50, 10, 3, 1], 2), of(&[2, 66, 50, 10, 3, 1]));
        assert_eq!(fractions(&[3, 2, 100, 50, 1], 3), of(&[3, 2, 6, 6, 1]));
        assert_eq!(fractions(&[1, 3, 50, 3, 50, 100, 10], 4), of(&[1, 3, 17, 3, 17, 17, 10]));
        assert_eq!(fractions(&[10, 50, 100, 100, 50], 2), of(&[10, 50, 100, 100, 50]));
    }

    #[test]
    fn nobody_has_more_than_one_processor() {
        assert_eq!(fractions(&[7], 1), [ratio(1, 1)]);
        assert_eq!(fractions(&[7, 7], 4), [ratio(1, 4), ratio(1, 4)]);
        assert_eq!(fractions(&[1, 9], 2), [ratio(1, 2), ratio(1, 2)]);
        assert_eq!(fractions(&[1, 1, 2], 3), vec![ratio(1, 3); 3]);
    }
}
