//! Schedulers that give what they are asked for, if they can admit it: reservations and slower processors.

use super::admission::{Test, admit};
use super::{Accepted, Converted, Grounds, Output, Refused};
use crate::exact::{Share, Span};
use crate::guarantee::{Guarantee, Kind};
use crate::hierarchy::Request;
use crate::label::Label;

/// ALL -> B+, RESU -> B+, where B is what the children ask for. Below a slower processor amounts and rates count its
/// time, and so does the admission test.
pub(super) fn reserve(given: &[Label], test: Test, requests: &[&Request]) -> Result<Converted, Refused> {
    let own = &given[0];
    let pace = match own.absolute() {
        Guarantee::All => Share::whole(),
        Guarantee::Resu(rate) => rate,
        _ => return Err(Refused::unacceptable(given, &[Kind::All, Kind::Resu])),
    };
    let second = Span::from_nanos(1_000_000_000);
    let asked: Vec<&Guarantee> = requests
        .iter()
        .map(|request| match request {
            Request::Guarantee(guarantee) => guarantee,
            other => panic!("a graph has guarantees under a reservation scheduler, not {other}"),
        })
        .collect();
    let claims: Vec<(Span, Span)> = asked
        .iter()
        .map(|asked| match asked {
            Guarantee::Reservation(asked) => (asked.amount().clone(), asked.period().clone()),
            // A rate has no period; any will do.
            other => (&second * &other.share(), second.clone()),
        })
        .collect();
    let borrowed: Vec<_> = claims.iter().map(|(amount, period)| (amount, period)).collect();
    let load = admit(test, &borrowed)?;
    let output = |asked: &&Guarantee| Output {
        label: Label::paced((*asked).clone(), &pace),
        grounds: Grounds::Admitted { test, load: load.clone(), pace: pace.clone() },
    };
    let outputs = asked.iter().map(output).collect();
    Ok(Converted { accepted: vec![Accepted { input: 0, steps: Vec::new() }], outputs })
}
