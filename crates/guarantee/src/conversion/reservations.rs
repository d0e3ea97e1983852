//! Schedulers that give what they are asked for, if they can admit it: reservations and slower processors.

use super::admission::{Supply, Test, admit};
use super::structural::no_promise;
use super::{Accepted, Converted, Grounds, Offer, Output, Refused, accept, bounded};
use crate::exact::{Ratio, Share, Span};
use crate::guarantee::{Guarantee, Kind};
use crate::label::Label;
use crate::request::Request;

/// ALL -> B+, RESU -> B+, where B is what the children ask for; who asks for nothing is given nothing. Below a slower processor amounts
/// and rates count its time, and so does the admission test.
///
/// # Errors
/// What is given is no processor, or what is asked for is not admitted.
pub fn reserve(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let own = &offer.given[0];
    let pace = match own.absolute() {
        Guarantee::All => Share::whole(),
        Guarantee::Resu(rate) => rate,
        _ => return Err(Refused::unacceptable(offer.given, &[Kind::All, Kind::Resu])),
    };
    let test = offer.admission();
    let accepted = Accepted { input: 0, steps: Vec::new() };
    admitted(offer, &Supply::whole(), &pace, accepted, |load| Grounds::Admitted {
        test,
        load,
        pace: pace.clone(),
    })
}

/// ALL -> B+, RESU -> B+, PSBE -> B+: the same for schedulers that serve what they have admitted in the order of deadlines or periods, and
/// when they are interrupted go on where they were. So what is due by each deadline has to fit into what a share with bounded error
/// surely holds until then. A plan by the clock needs the processor at instants of its own, and is not served by this.
///
/// # Errors
/// What is given holds no share with bounded error, or what is asked for is not admitted.
pub fn reserve_of_share(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let refused = || Refused::unacceptable(offer.given, &[Kind::All, Kind::Resu, Kind::Psbe]);
    if matches!(offer.given[0].guarantee(), Guarantee::All | Guarantee::Resu(_)) {
        return reserve(offer);
    }
    let test = offer.admission();
    let (label, steps) = accept(&offer.given[0], &[Kind::Psbe]).ok_or_else(refused)?;
    let (share, error) = bounded(&label).expect("it was accepted as PSBE");
    if share.is_none() || test == Test::PowersOfTwo {
        return Err(refused());
    }
    let grounds = |load| Grounds::AdmittedOfShare { test, load, share: share.clone(), error: error.clone() };
    admitted(offer, &Supply::bounded(share, error), &Share::whole(), Accepted { input: 0, steps }, grounds)
}

/// What the children ask for, if it is admitted.
fn admitted(
    offer: &Offer<'_>,
    supply: &Supply,
    pace: &Share,
    accepted: Accepted,
    grounds: impl Fn(Ratio) -> Grounds,
) -> Result<Converted, Refused> {
    let second = Span::from_nanos(1_000_000_000);
    let asked: Vec<Option<&Guarantee>> = offer
        .requests
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
    let load = admit(offer.admission(), &borrowed, supply)?;
    let output = |asked: &Option<&Guarantee>| match asked {
        Some(asked) => Output { label: Label::paced((*asked).clone(), pace), grounds: grounds(load.clone()) },
        None => no_promise(),
    };
    Ok(Converted { accepted: vec![accepted], outputs: asked.iter().map(output).collect() })
}

/// ALL -> NULL+, RESU -> NULL+, PSBE -> NULL+: who is admitted is told job by job, so what is admitted here promises nobody anything. A job longer than
/// its allowance never is, and one that is not runs in the background, where the allowance is no maximum either.
///
/// # Errors
/// As [`reserve_of_share`].
pub fn admitted_job_by_job(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let admitted = reserve_of_share(offer)?;
    Ok(Converted { outputs: vec![no_promise(); offer.requests.len()], ..admitted })
}

/// ALL -> PS+, RESU -> PS+, PSBE -> PS+: of what the children ask for the share is kept, in the long run. By earliest deadline a child that always wants
/// the processor has its amount by each deadline of its own; but who goes on with a later deadline had something ahead of its time, and may
/// wait for as long afterwards.
///
/// # Errors
/// As [`reserve_of_share`].
pub fn reserve_on_average(offer: &Offer<'_>) -> Result<Converted, Refused> {
    let mut reserved = reserve_of_share(offer)?;
    for output in &mut reserved.outputs {
        output.label = Label::real(Guarantee::Ps(output.label.absolute_share()));
    }
    Ok(reserved)
}
