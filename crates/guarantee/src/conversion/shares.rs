//! Proportional-share schedulers. Their shares are parts of the real processor wherever they stand, also below a
//! uniformly slower one.

use super::{Accepted, Converted, Grounds, Offer, Output, Refused, accept, bounded, readjust};
use crate::exact::{Ratio, Share, Span};
use crate::guarantee::{Continuity, Guarantee, Hardness, Kind, Reservation};
use crate::label::Label;
use crate::rewrite::{Choice, Rewritten, Rule};
use num_traits::Zero;
use std::num::NonZeroU32;

/// Each child's part of the sum of the weights.
fn fractions(weights: &[NonZeroU32]) -> Vec<Share> {
    let sum: u64 = weights.iter().map(|weight| u64::from(weight.get())).sum();
    let part = |weight: &NonZeroU32| Ratio::new(weight.get().into(), sum.into());
    weights.iter().map(|weight| Share::new(part(weight)).expect("a part of the sum")).collect()
}

/// A uniformly slower processor as a share with bounded error, for a scheduler that announces the end of each
/// quantum as a deadline: between two such ends lie q/r of time and at least q of service, which is a basic
/// reservation.
///
/// The paper believes in this conversion without a proof and without parameters (section 5.1). This is one with both.
fn by_quantum_deadlines(given: &Label, quantum: &Span) -> Option<(Label, Vec<Rewritten>)> {
    let Guarantee::Resu(rate) = given.absolute() else { return None };
    if rate.is_none() {
        return None;
    }
    let (basic, soft) = (Continuity::Basic, Hardness::Soft);
    let reservation = Reservation::new(basic, soft, quantum.clone(), quantum / &rate).ok()?;
    let ends = Rewritten { rule: Rule::QuantumDeadlines, label: Label::real(reservation) };
    let share = ends.label.rewrite(Kind::Psbe, &Choice::default()).ok()?;
    Some((share.label.clone(), vec![ends, share]))
}

/// PS -> PS+, PSBE -> PSBE+, RESU -> PSBE+.
///
/// The formula of Goyal, Guo and Vin as the paper has it: of PSBE s d, with quantum q and T children of which this
/// one has the fraction r of the weights, it gets PSBE (s r) (r T q / s + r d / s + q).
///
/// # Errors
/// What is given is neither a share nor a slower processor.
pub fn start_time_fair(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let (given, quantum, weights) = (&offer.given[0], offer.quantum(), offer.weights());
    let with_error = accept(given, &[Kind::Psbe]).or_else(|| by_quantum_deadlines(given, quantum));
    // The formula divides by the share, and a share of nothing promises nothing.
    let usable = with_error.filter(|(label, _)| !label.absolute_share().is_none());
    let Some((input, steps)) = usable else {
        return in_the_long_run(offer).map_err(|refused| match refused {
            Refused::Unacceptable { given, .. } => {
                Refused::unacceptable(&given, &[Kind::Psbe, Kind::Resu, Kind::Ps])
            }
            other => other,
        });
    };
    let (share, error) = bounded(&input).expect("it was accepted as PSBE");
    let threads = weights.len() as u64;
    let output = |fraction: Share| {
        let queue = &(quantum * threads) * &fraction;
        let behind = &(&(&queue + &(error * &fraction)) / share) + quantum;
        let grounds = Grounds::StartTimeFair {
            share: share.clone(),
            error: error.clone(),
            quantum: quantum.clone(),
            threads,
            fraction: fraction.clone(),
        };
        let guarantee = Guarantee::Psbe { share: share * &fraction, error: behind };
        Output { label: Label::real(guarantee), grounds }
    };
    let outputs = fractions(&weights).into_iter().map(output).collect();
    Ok(Converted { accepted: vec![Accepted { input: 0, steps }], outputs })
}

/// ALL -> PSBE+, RESU -> PSBE+, PSBE -> PSBE+: behind by at most a quantum of the service that the scheduler itself receives
/// (Stoica et al. 1996), and by its fraction of what that service is behind.
///
/// The quantum is the error that the paper gives. It bounds the lag, which counts from when a thread became ready; in a
/// window that begins when the thread is ahead of its share, it can be twice as far behind.
///
/// # Errors
/// What is given is neither a processor nor a share with bounded error.
pub fn eevdf(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let (given, quantum, weights) = (offer.given, offer.quantum(), offer.weights());
    let own = &given[0];
    let accepted = accept(own, &[Kind::Psbe]).or_else(|| by_quantum_deadlines(own, quantum));
    let refused = || Refused::unacceptable(given, &[Kind::All, Kind::Resu, Kind::Psbe]);
    let (input, steps) = accepted.ok_or_else(refused)?;
    let (share, error) = bounded(&input).expect("it was accepted as PSBE");
    let output = |fraction: Share| {
        let guarantee = Guarantee::Psbe { share: share * &fraction, error: quantum + &(error * &fraction) };
        let grounds =
            Grounds::Eevdf { share: share.clone(), error: error.clone(), quantum: quantum.clone(), fraction };
        Output { label: Label::real(guarantee), grounds }
    };
    let outputs = fractions(&weights).into_iter().map(output).collect();
    Ok(Converted { accepted: vec![Accepted { input: 0, steps }], outputs })
}

/// PS -> PS+, RESU -> PS+.
///
/// # Errors
/// What is given is neither a share nor a slower processor.
pub fn in_the_long_run(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let (given, weights) = (offer.given, offer.weights());
    let refused = || Refused::unacceptable(given, &[Kind::Ps, Kind::Resu]);
    let (input, steps) = accept(&given[0], &[Kind::Ps]).ok_or_else(refused)?;
    let share = input.absolute_share();
    let output = |fraction: Share| Output {
        label: Label::real(Guarantee::Ps(&share * &fraction)),
        grounds: Grounds::Fraction { share: share.clone(), fraction },
    };
    let outputs = fractions(&weights).into_iter().map(output).collect();
    Ok(Converted { accepted: vec![Accepted { input: 0, steps }], outputs })
}

/// PS+ -> PS+, RESU+ -> PS+: the sum of the shares, divided by weights that are first made feasible, so that nobody is
/// promised more than one of p processors.
///
/// Whenever k of the p are there, a fraction of at most 1/p is at most one processor's k-th part, so the sum can be
/// divided whether or not the processors come and go together.
///
/// # Errors
/// One of what is given is neither a share nor a slower processor.
pub fn surplus_fair(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let (given, weights) = (offer.given, offer.weights());
    let mut accepted = Vec::new();
    let mut sum = Ratio::zero();
    for (input, label) in given.iter().enumerate() {
        let refused = || Refused::unacceptable(given, &[Kind::Ps, Kind::Resu]);
        let (share, steps) = accept(label, &[Kind::Ps]).ok_or_else(refused)?;
        sum += share.absolute_share().ratio();
        accepted.push(Accepted { input, steps });
    }
    let processors = given.len();
    let weights: Vec<Ratio> = weights.iter().map(|weight| Ratio::from_integer(weight.get().into())).collect();
    let output = |fraction: Ratio| {
        let share = Share::new(&sum * &fraction).expect("a p-th part of p processors at most");
        let grounds = Grounds::Surplus { sum: sum.clone(), processors, fraction };
        Output { label: Label::real(Guarantee::Ps(share)), grounds }
    };
    let outputs = readjust(&weights, processors).into_iter().map(output).collect();
    Ok(Converted { accepted, outputs })
}
