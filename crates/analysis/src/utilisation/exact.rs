//! Sums and products of fractions as long integers.
//!
//! Fractions are combined in pairs, pairs of pairs and so on, so that long numbers meet long numbers only in the last
//! rounds, and reduced once at the end.

use crate::effort::{AnalysisError, Effort};
use crate::task::Task;
use num_bigint::BigUint;
use num_integer::Integer;
use num_rational::BigRational;
use std::cmp::Ordering;

/// A fraction that need not be in lowest terms. The denominator is not zero.
pub(super) struct Fraction {
    numerator: BigUint,
    denominator: BigUint,
}

impl Fraction {
    pub(super) fn compare_with(&self, integer: u32) -> Ordering {
        self.numerator.cmp(&(&self.denominator * integer))
    }

    /// In lowest terms. The cost is that of a binary greatest common divisor.
    pub(super) fn reduced(self, effort: &mut Effort) -> Result<BigRational, AnalysisError> {
        let bits = self.denominator.bits().max(self.numerator.bits());
        effort.spend(bits.saturating_mul(bits / 64 + 1))?;
        Ok(BigRational::new(self.numerator.into(), self.denominator.into()))
    }
}

/// The sum of C/T.
pub(super) fn sum(tasks: &[Task], effort: &mut Effort) -> Result<Fraction, AnalysisError> {
    effort.spend(tasks.len() as u64)?;
    let mut parts: Vec<(u64, u128)> =
        tasks.iter().map(|task| (task.numbers().period, u128::from(task.numbers().wcet))).collect();
    parts.sort_unstable();
    // Tasks of one period need no common denominator.
    parts.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        kept.1 += if same { next.1 } else { 0 };
        same
    });
    let fractions: Vec<Fraction> = parts.iter().map(|(period, wcet)| fraction(*wcet, *period)).collect();
    combined(&fractions, effort, &|left, right| Fraction {
        numerator: &left.numerator * &right.denominator + &right.numerator * &left.denominator,
        denominator: &left.denominator * &right.denominator,
    })
}

/// The product of C/T + 1.
pub(super) fn product_of_successors(tasks: &[Task], effort: &mut Effort) -> Result<Fraction, AnalysisError> {
    effort.spend(tasks.len() as u64)?;
    let fractions: Vec<Fraction> = tasks
        .iter()
        .map(|task| {
            let numbers = task.numbers();
            fraction(u128::from(numbers.wcet) + u128::from(numbers.period), numbers.period)
        })
        .collect();
    let product = combined(&fractions, effort, &|left, right| Fraction {
        numerator: &left.numerator * &right.numerator,
        denominator: &left.denominator * &right.denominator,
    })?;
    // The empty product is 1, where the empty combination is 0.
    if tasks.is_empty() { Ok(fraction(1, 1)) } else { Ok(product) }
}

fn fraction(numerator: u128, denominator: u64) -> Fraction {
    let common = numerator.gcd(&u128::from(denominator));
    Fraction {
        numerator: (numerator / common).into(),
        denominator: (u128::from(denominator) / common).into(),
    }
}

/// `fractions` combined by halves; 0 if there are none.
fn combined(
    fractions: &[Fraction],
    effort: &mut Effort,
    combine: &impl Fn(&Fraction, &Fraction) -> Fraction,
) -> Result<Fraction, AnalysisError> {
    match fractions {
        [] => Ok(fraction(0, 1)),
        [one] => Ok(Fraction { numerator: one.numerator.clone(), denominator: one.denominator.clone() }),
        _ => {
            let (left, right) = fractions.split_at(fractions.len() / 2);
            let left = combined(left, effort, combine)?;
            let right = combined(right, effort, combine)?;
            effort.spend(words(&left).saturating_mul(words(&right)).saturating_mul(3))?;
            Ok(combine(&left, &right))
        }
    }
}

/// Length of the longer part in 64-bit words.
fn words(fraction: &Fraction) -> u64 {
    fraction.numerator.bits().max(fraction.denominator.bits()) / 64 + 1
}
