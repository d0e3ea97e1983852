//! Schedulers that give what they are asked for, if they can admit it: reservations and slower processors.

use super::admission::admit;
use super::structural::no_promise;
use super::{Accepted, Converted, Grounds, Offer, Output, Refused};
use crate::exact::{Share, Span};
use crate::guarantee::{Guarantee, Kind};
use crate::label::Label;
use crate::request::Request;

/// ALL -> B+, RESU -> B+, where B is what the children ask for; who asks for nothing is given nothing. Below a slower processor amounts
/// and rates count its time, and so does the admission test.
///
/// # Errors
/// What is given is no processor, or what is asked for is not admitted.
pub fn reserve(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let (given, requests, test) = (offer.given, offer.requests, offer.admission());
    let own = &given[0];
    let pace = match own.absolute() {
        Guarantee::All => Share::whole(),
        Guarantee::Resu(rate) => rate,
        _ => return Err(Refused::unacceptable(given, &[Kind::All, Kind::Resu])),
    };
    let second = Span::from_nanos(1_000_000_000);
    let asked: Vec<Option<&Guarantee>> = requests
        .iter()
        .map(|request| match request {
            Request::Guarantee(guarantee) => Some(guarantee),
            Request::Nothing => None,
            other => panic!("a graph has guarantees under a reservation scheduler, not {other}"),
        })
        .collect();
    let claims: Vec<(Span, Span)> = asked
        .iter()
        .flatten()
        .map(|asked| match asked {
            Guarantee::Reservation(asked) => (asked.amount().clone(), asked.period().clone()),
            // A rate has no period; any will do.
            other => (&second * &other.share(), second.clone()),
        })
        .collect();
    let borrowed: Vec<_> = claims.iter().map(|(amount, period)| (amount, period)).collect();
    let load = admit(test, &borrowed)?;
    let output = |asked: &Option<&Guarantee>| match asked {
        Some(asked) => Output {
            label: Label::paced((*asked).clone(), &pace),
            grounds: Grounds::Admitted { test, load: load.clone(), pace: pace.clone() },
        },
        None => no_promise(),
    };
    let outputs = asked.iter().map(output).collect();
    Ok(Converted { accepted: vec![Accepted { input: 0, steps: Vec::new() }], outputs })
}

/// ALL -> NULL+, RESU -> NULL+: who is admitted is told job by job, so what is admitted here promises nobody anything. A job longer than
/// its allowance never is, and one that is not runs in the background, where the allowance is no maximum either.
///
/// # Errors
/// As [`reserve`].
pub fn admitted_job_by_job(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let admitted = reserve(offer)?;
    Ok(Converted { outputs: vec![no_promise(); offer.requests.len()], ..admitted })
}

/// ALL -> PS+, RESU -> PS+: of what the children ask for the share is kept, in the long run. By earliest deadline a child that always wants
/// the processor has its amount by each deadline of its own; but who goes on with a later deadline had something ahead of its time, and may
/// wait for as long afterwards.
///
/// # Errors
/// As [`reserve`].
pub fn reserve_on_average(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let mut reserved = reserve(offer)?;
    for output in &mut reserved.outputs {
        output.label = Label::real(Guarantee::Ps(output.label.absolute_share()));
    }
    Ok(reserved)
}
