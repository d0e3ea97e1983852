//! Whether a scheduler can keep all the reservations that its children ask for.

use crate::exact::{Ratio, Share, Span};
use crate::notation::print_ratio;
use num_traits::{One, Zero};
use std::fmt;
use thiserror::Error;

/// How a scheduler decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// The sum of amount/period is at most 1: exact for EDF (Liu and Layland 1973).
    Utilisation,
    /// Each amount is served by the end of its period when all begin together, shorter periods first: exact for
    /// rate-monotonic priorities (Joseph and Pandya 1986).
    RateMonotonic,
    /// The sum of amount/period is at most 1, with every period shortened to a power of two of a common one, so that
    /// each reservation has its slots at the same offsets in each of its periods. Sufficient.
    PowersOfTwo,
    /// Every period divides the next longer one, and the sum of amount/period is at most 1 (Atlas and Bestavros 1998).
    Harmonic,
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Test::Utilisation => "the sum of amount/period is at most 1",
            Test::RateMonotonic => "every amount is served within its period at rate-monotonic priorities",
            Test::PowersOfTwo => {
                "the sum is at most 1 with periods shortened to powers of two of a common one"
            }
            Test::Harmonic => "periods divide each other and the sum of amount/period is at most 1",
        })
    }
}

/// Why a scheduler cannot admit all its children. Children are numbered in the order of their edges.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Overload {
    /// Together they ask for more than there is.
    #[error("its children ask for {} of its processor", percent(.load))]
    Load {
        /// Sum of what they ask for.
        load: Ratio,
    },
    /// Together they ask for more than the share that there is.
    #[error("its children ask for {}, and it receives {}", percent(.load), percent(.share))]
    BeyondShare {
        /// Sum of what they ask for.
        load: Ratio,
        /// What there is.
        share: Ratio,
    },
    /// In the long run there is enough, but not by each deadline.
    #[error("{due} of its children may be due within {within}, of which it surely receives {supplied}")]
    Short {
        /// Sum of the amounts.
        due: Span,
        /// From when the first of their periods begin to the end of the last.
        within: Span,
        /// What it receives in any interval of that length at least.
        supplied: Span,
    },
    /// One of them does not get its amount within its period.
    #[error(
        "{amount} may take {response} at its rate-monotonic priority, longer than its period of {period}"
    )]
    Late {
        /// The child.
        child: usize,
        /// What it asks for.
        amount: Span,
        /// In which period.
        period: Span,
        /// How long it takes, or a time after which it is known to be too late.
        response: Span,
    },
    /// It would take too long to find out.
    #[error(
        "whether {amount} every {period} fits would take too long to find out; make the periods more alike"
    )]
    Undecided {
        /// The child.
        child: usize,
        /// What it asks for.
        amount: Span,
        /// In which period.
        period: Span,
    },
    /// They fit only if periods were not shortened.
    #[error(
        "its children ask for {} of its processor, and for {} with periods shortened to powers of two of a common one",
        percent(.load),
        percent(.shortened)
    )]
    Shortened {
        /// Sum of what they ask for.
        load: Ratio,
        /// The same with shorter periods.
        shortened: Ratio,
    },
    /// A period does not divide the next longer one.
    #[error("the period {shorter} does not divide the period {longer}")]
    NotHarmonic {
        /// A period.
        shorter: Span,
        /// The next longer one.
        longer: Span,
    },
}

fn percent(load: &Ratio) -> String {
    let hundredfold = load * Ratio::from_integer(100.into());
    let thousandths = (&hundredfold * Ratio::from_integer(1000.into())).ceil();
    let rounded = thousandths / Ratio::from_integer(1000.into());
    format!("{}{} %", if rounded == hundredfold { "" } else { "about " }, print_ratio(&rounded))
}

/// One reservation: amount and period.
pub type Claim<'a> = (&'a Span, &'a Span);

/// What a scheduler surely receives: of any interval of length t in which it wants to run at least `share * t - error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Supply {
    share: Ratio,
    error: Ratio,
}

impl Supply {
    /// All of a processor.
    pub fn whole() -> Self {
        Supply { share: Ratio::one(), error: Ratio::zero() }
    }

    /// What `PSBE share error` promises.
    pub fn bounded(share: &Share, error: &Span) -> Self {
        Supply { share: share.ratio().clone(), error: error.nanos().clone() }
    }

    fn is_whole(&self) -> bool {
        self.share.is_one() && self.error.is_zero()
    }

    /// What any interval of this length holds.
    fn within(&self, interval: &Ratio) -> Ratio {
        (&self.share * interval - &self.error).max(Ratio::zero())
    }

    /// The interval that surely holds so much.
    fn time_for(&self, work: &Ratio) -> Ratio {
        (work + &self.error) / &self.share
    }
}

/// The load of the `claims` together, if they are admitted by a scheduler that receives the `supply`, which is no share of nothing.
/// Periods are longer than zero.
///
/// # Errors
/// Why not.
///
/// # Panics
/// If the test is [`Test::PowersOfTwo`], whose plans need the whole processor, and the supply is less.
pub fn admit(test: Test, claims: &[Claim<'_>], supply: &Supply) -> Result<Ratio, Box<Overload>> {
    let load: Ratio = claims.iter().map(|(amount, period)| amount.per(period)).sum();
    if load > supply.share {
        return Err(Box::new(match supply.share.is_one() {
            true => Overload::Load { load },
            false => Overload::BeyondShare { load, share: supply.share.clone() },
        }));
    }
    match test {
        Test::Utilisation if supply.is_whole() => {}
        Test::Utilisation => by_each_deadline(claims, &load, supply)?,
        Test::RateMonotonic => rate_monotonic(claims, supply)?,
        Test::PowersOfTwo => {
            assert!(supply.is_whole(), "a plan needs the whole processor");
            powers_of_two(claims, &load)?;
        }
        Test::Harmonic => harmonic(claims)?,
    }
    Ok(load)
}

/// Steps of one test; the periods of reservations are seldom a thousandfold of each other.
const STEPS_MAX: usize = 20_000;

/// Whether all that is due within any interval fits into what that surely holds: then earliest deadline first serves every amount within its
/// period (Baruah, Mok and Rosier 1990; of a linear supply: Mok, Feng and Chen 2001).
fn by_each_deadline(claims: &[Claim<'_>], load: &Ratio, supply: &Supply) -> Result<(), Box<Overload>> {
    // Beyond this length even the load without gaps fits. With nothing to spare there is no such length.
    let spare = &supply.share - load;
    let enough = (!spare.is_zero()).then(|| &supply.error / &spare);
    let mut ends: Vec<Ratio> = claims.iter().map(|(_, period)| period.nanos().clone()).collect();
    let mut due = Ratio::zero();
    for _ in 0..STEPS_MAX {
        let Some(within) = ends.iter().min().cloned() else { return Ok(()) };
        if enough.as_ref().is_some_and(|enough| within >= *enough) {
            return Ok(());
        }
        for (end, (amount, period)) in ends.iter_mut().zip(claims).filter(|(end, _)| **end == within) {
            due += amount.nanos();
            *end += period.nanos();
        }
        let supplied = supply.within(&within);
        if due > supplied {
            let span = |nanos| Span::new(nanos).expect("no less than nothing");
            return Err(Box::new(Overload::Short {
                due: span(due),
                within: span(within),
                supplied: span(supplied),
            }));
        }
    }
    let (child, (amount, period)) =
        claims.iter().enumerate().max_by_key(|(_, (_, period))| *period).expect("something is due");
    Err(Box::new(Overload::Undecided { child, amount: (*amount).clone(), period: (*period).clone() }))
}

fn rate_monotonic(claims: &[Claim<'_>], supply: &Supply) -> Result<(), Box<Overload>> {
    // The hyperbolic bound of Bini, Buttazzo and Buttazzo (2003) settles the easy ones.
    let product: Ratio = claims.iter().map(|(amount, period)| amount.per(period) + Ratio::one()).product();
    if supply.is_whole() && product <= Ratio::from_integer(2.into()) {
        return Ok(());
    }
    let mut order: Vec<usize> = (0..claims.len()).collect();
    order.sort_by_key(|child| claims[*child].1);
    for (rank, child) in order.iter().enumerate() {
        let higher: Vec<Claim<'_>> = order[..rank].iter().map(|higher| claims[*higher]).collect();
        response(*child, claims[*child], &higher, supply)?;
    }
    Ok(())
}

/// Fails if the amount of a claim is not served within its period below `higher` ones.
fn response(
    child: usize,
    (amount, period): Claim<'_>,
    higher: &[Claim<'_>],
    supply: &Supply,
) -> Result<(), Box<Overload>> {
    let mut response = supply.time_for(amount.nanos());
    for _ in 0..STEPS_MAX {
        let interference =
            |(amount, period): &Claim<'_>| (&response / period.nanos()).ceil() * amount.nanos();
        let next = supply.time_for(&(amount.nanos() + higher.iter().map(interference).sum::<Ratio>()));
        let (amount, period) = (amount.clone(), period.clone());
        match next {
            next if next > *period.nanos() => {
                let response = Span::new(next).expect("a sum of spans");
                return Err(Box::new(Overload::Late { child, amount, period, response }));
            }
            next if next == response => return Ok(()),
            next => response = next,
        }
    }
    Err(Box::new(Overload::Undecided { child, amount: amount.clone(), period: period.clone() }))
}

/// A schedule of harmonic periods, shorter ones first, is the same in every period of each, so the slots of a
/// reservation lie at the same offsets, and any interval as long as its period holds its amount.
fn powers_of_two(claims: &[Claim<'_>], load: &Ratio) -> Result<(), Box<Overload>> {
    let with_base = |(_, base): &Claim<'_>| -> Ratio {
        claims.iter().map(|(amount, period)| amount.nanos() / shortened(period, base)).sum()
    };
    match claims.iter().map(with_base).min() {
        Some(shortened) if shortened > Ratio::one() => {
            Err(Box::new(Overload::Shortened { load: load.clone(), shortened }))
        }
        _ => Ok(()),
    }
}

/// The shortest period to which powers of two of a common one shorten those of the `claims`, for the common one with which
/// they load the processor least: a plan's base. None if nobody claims anything.
pub fn common_base(claims: &[Claim<'_>]) -> Option<Ratio> {
    let with_base = |(_, base): &Claim<'_>| -> (Ratio, Ratio) {
        let load = claims.iter().map(|(amount, period)| amount.nanos() / shortened(period, base)).sum();
        let shortest = claims.iter().map(|(_, period)| shortened(period, base)).min();
        (load, shortest.expect("there is a claim"))
    };
    claims.iter().map(with_base).min().map(|(_, shortest)| shortest)
}

/// The longest `base * 2^k`, for k of either sign, that is no longer than `period`.
fn shortened(period: &Span, base: &Span) -> Ratio {
    let two = Ratio::from_integer(2.into());
    let times = period.per(base);
    let power = |exponent: u64| Ratio::from_integer(num_bigint::BigInt::one() << exponent);
    if times >= Ratio::one() {
        let exponent = times.to_integer().bits() - 1;
        return base.nanos() * power(exponent);
    }
    let inverse = times.recip();
    let exponent = inverse.to_integer().bits() - 1;
    let candidate = base.nanos() / power(exponent);
    if candidate <= *period.nanos() { candidate } else { candidate / two }
}

fn harmonic(claims: &[Claim<'_>]) -> Result<(), Box<Overload>> {
    let mut periods: Vec<&Span> =
        claims.iter().filter(|(amount, _)| !amount.is_zero()).map(|(_, period)| *period).collect();
    periods.sort();
    for pair in periods.windows(2) {
        let times = pair[1].per(pair[0]);
        if !times.denom().is_one() {
            let (shorter, longer) = (pair[0].clone(), pair[1].clone());
            return Err(Box::new(Overload::NotHarmonic { shorter, longer }));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exact::ratio;

    fn claims(numbers: &[(u64, u64)]) -> Vec<(Span, Span)> {
        numbers
            .iter()
            .map(|(amount, period)| (Span::from_millis(*amount), Span::from_millis(*period)))
            .collect()
    }

    fn admitted(test: Test, numbers: &[(u64, u64)]) -> Result<Ratio, Box<Overload>> {
        let claims = claims(numbers);
        admit(
            test,
            &claims.iter().map(|(amount, period)| (amount, period)).collect::<Vec<_>>(),
            &Supply::whole(),
        )
    }

    #[test]
    fn each_test_has_its_border() {
        // The classical set that EDF takes and rate-monotonic priorities do not.
        let classical = [(3, 6), (4, 9)];
        assert_eq!(admitted(Test::Utilisation, &classical), Ok(ratio(17, 18)));
        let late = admitted(Test::RateMonotonic, &classical).expect_err("the second is late");
        assert!(matches!(*late, Overload::Late { child: 1, .. }));
        // Exact, beyond the bounds of Liu and Layland and of Bini.
        assert!(admitted(Test::RateMonotonic, &[(1, 2), (1, 4), (2, 8)]).is_ok());
        assert!(admitted(Test::Utilisation, &[(6, 10), (9, 10)]).is_err());
        assert!(admitted(Test::Utilisation, &[(6, 10), (4, 10)]).is_ok());
    }

    #[test]
    fn of_a_share_each_deadline_is_looked_at() {
        let given = Supply { share: ratio(94, 100), error: ratio(470_000, 1) };
        let admitted = |test, numbers: &[(u64, u64)]| {
            let claims = claims(numbers);
            admit(test, &claims.iter().map(|(amount, period)| (amount, period)).collect::<Vec<_>>(), &given)
        };
        // 0.94 * 10 - 0.47 = 8.93 by the first deadline, 18.33 by the second.
        assert_eq!(admitted(Test::Utilisation, &[(5, 10), (6, 20)]), Ok(ratio(4, 5)));
        assert!(admitted(Test::Utilisation, &[(5, 10), (8, 20)]).is_ok());
        assert!(admitted(Test::RateMonotonic, &[(5, 10), (8, 20)]).is_ok());
        let short = admitted(Test::Utilisation, &[(9, 10)]).expect_err("8.93 are certain");
        assert_eq!(
            short.to_string(),
            "9ms of its children may be due within 10ms, of which it surely receives 8.93ms"
        );
        assert!(admitted(Test::RateMonotonic, &[(9, 10)]).is_err());
        let beyond = admitted(Test::Utilisation, &[(19, 20)]).expect_err("94 % are there");
        assert_eq!(beyond.to_string(), "its children ask for 95 %, and it receives 94 %");
        // In the long run there is exactly enough, by no deadline.
        assert!(admitted(Test::Utilisation, &[(47, 50)]).is_err());
    }

    #[test]
    fn slots_at_the_same_offsets_need_periods_that_are_related() {
        assert!(admitted(Test::PowersOfTwo, &[(5, 10), (10, 20)]).is_ok());
        assert!(admitted(Test::PowersOfTwo, &[(1, 2), (3, 6)]).is_err());
        assert!(admitted(Test::PowersOfTwo, &[(1, 2), (2, 6)]).is_ok());
        assert!(admitted(Test::PowersOfTwo, &[(3, 19), (11, 42)]).is_ok());
        assert!(admitted(Test::PowersOfTwo, &[]).is_ok());
    }

    #[test]
    fn periods_are_shortened_as_little_as_can_be() {
        for (period, base, shorter) in [(19, 19, 19), (42, 19, 38), (19, 42, 10), (21, 42, 21), (80, 10, 80)]
        {
            let got = shortened(&Span::from_nanos(period), &Span::from_nanos(base));
            let expected = if (period, base) == (19, 42) { ratio(21, 2) } else { ratio(shorter, 1) };
            assert_eq!(got, expected, "{period} by powers of {base}");
        }
    }

    #[test]
    fn superperiods_divide_each_other() {
        assert!(admitted(Test::Harmonic, &[(5, 10), (10, 20), (0, 7)]).is_ok());
        let refused = admitted(Test::Harmonic, &[(1, 10), (1, 25)]).expect_err("25 is no multiple of 10");
        assert!(matches!(*refused, Overload::NotHarmonic { .. }));
    }
}
