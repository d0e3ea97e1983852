//! Schedulers that pass on, take away or give nothing.

use super::{Accepted, Converted, Grounds, Offer, Output, Refused, accept, bounded};
use crate::exact::{Ratio, Share, Span};
use crate::guarantee::{Continuity, Guarantee, Hardness, Kind};
use crate::label::Label;
use crate::request::Request;
use crate::rewrite::{Choice, Rewritten, Rule};
use num_traits::One;

fn as_it_is(input: usize) -> Accepted {
    Accepted { input, steps: Vec::new() }
}

pub(super) fn no_promise() -> Output {
    Output { label: Label::real(Guarantee::Null), grounds: Grounds::Nothing }
}

/// any -> (any, NULL+): nothing comes between the highest child and what the scheduler is given; any other child may
/// find it taken for ever.
///
/// With m whole processors, the m highest children each find one free of higher ones. With the same share with bounded error of each of m,
/// the child below r others waits only while m - r of them are missing at once, for at most an (m - r)-th of what is missing of all.
///
/// # Errors
/// None; the signature is that of all conversions.
pub fn fixed_priority(&Offer { given, requests, .. }: &Offer<'_>) -> Result<Converted, Refused> {
    let priority = |child: &usize| match requests[*child] {
        Request::Priority(priority) => *priority,
        other => panic!("a graph has priorities under a fixed-priority scheduler, not {other}"),
    };
    let mut order: Vec<usize> = (0..requests.len()).collect();
    order.sort_by_key(|child| std::cmp::Reverse(priority(child)));
    let is_alike = given.iter().all(|label| label == &given[0]);
    let shared = bounded(&given[0]).filter(|_| is_alike && given.len() > 1);
    let whole = *given[0].guarantee() == Guarantee::All && is_alike;
    let served = if whole || shared.is_some() { given.len() } else { 1 };
    let best = given.iter().position(|label| *label.guarantee() != Guarantee::Null).unwrap_or(0);
    let mut outputs: Vec<Output> = requests
        .iter()
        .map(|_| Output { grounds: Grounds::LowerPriority { processors: given.len() }, ..no_promise() })
        .collect();
    let mut accepted = Vec::new();
    for (rank, child) in order.into_iter().take(served).enumerate() {
        let input = if served > 1 { rank } else { best };
        let label = match shared {
            Some((share, error)) => beside_higher(share, error, (given.len(), rank)),
            None => given[input].clone(),
        };
        let grounds = Grounds::HighestPriority { rank, processors: given.len() };
        outputs[child] = Output { label, grounds };
        accepted.push(as_it_is(input));
    }
    Ok(Converted { accepted, outputs })
}

/// What is left of m processors with this share and error each for a child below `rank` others.
fn beside_higher(share: &Share, error: &Span, (processors, rank): (usize, usize)) -> Label {
    let count = |count: usize| Ratio::from_integer(count.into());
    let times = count(processors) / count(processors - rank);
    let missing = (Ratio::one() - share.ratio()) * &times;
    match Share::new(Ratio::one() - missing) {
        Some(share) if !share.is_none() => Label::real(Guarantee::Psbe {
            share,
            error: error.scaled(&times).expect("times is more than nothing"),
        }),
        _ => Label::real(Guarantee::Null),
    }
}

/// The child gets no less than any one parent gives it, but possibly more, so a maximum is lost.
///
/// # Errors
/// None; the signature is that of all conversions.
pub fn join(&Offer { given, taken, requests, .. }: &Offer<'_>) -> Result<Converted, Refused> {
    let label = given[taken].softened();
    let grounds = Grounds::Joined { softened: label != given[taken] };
    let outputs = vec![Output { label, grounds }; requests.len()];
    Ok(Converted { accepted: vec![as_it_is(taken)], outputs })
}

/// RESBS -> RESBH: the child is stopped when the amount of the period is used.
///
/// A child may ask for less than there is; without a request it gets all of it.
///
/// # Errors
/// What it is given is no basic reservation and holds none of that amount.
pub fn limit(&Offer { given, requests, .. }: &Offer<'_>) -> Result<Converted, Refused> {
    let refused = || Refused::unacceptable(given, &[Kind::Resbs]);
    let wanted = requests.first().and_then(|request| match request {
        Request::Guarantee(Guarantee::Reservation(wanted)) => Some(wanted),
        _ => None,
    });
    let (soft, steps) = match wanted {
        None => accept(&given[0], &[Kind::Resbs]).ok_or_else(refused)?,
        Some(wanted) => {
            let soft = wanted.as_kind(Continuity::Basic, Hardness::Soft);
            let goal = given[0].wanted(&soft.into());
            let steps = given[0].reach(&goal).ok_or_else(refused)?;
            (steps.last().map_or(&given[0], |step| &step.label).clone(), steps)
        }
    };
    let hard = soft.guarantee().as_reservation().expect("RESBS is a reservation");
    let hard = hard.as_kind(Continuity::Basic, Hardness::Hard);
    let output = Output { label: Label::paced(hard, soft.pace()), grounds: Grounds::Limited };
    Ok(Converted { accepted: vec![Accepted { input: 0, steps }], outputs: vec![output; requests.len()] })
}

/// NULL -> NULL+: nobody is promised anything.
///
/// # Errors
/// None; the signature is that of all conversions.
pub fn nothing(&Offer { given, requests, .. }: &Offer<'_>) -> Result<Converted, Refused> {
    let give_up = |(input, label): (usize, &Label)| {
        let step = label.rewrite(Kind::Null, &Choice::default()).expect("everything becomes NULL");
        let steps = Some(step).filter(|step: &Rewritten| step.rule != Rule::Same);
        Accepted { input, steps: steps.into_iter().collect() }
    };
    let accepted = given.iter().enumerate().map(give_up).collect();
    Ok(Converted { accepted, outputs: vec![no_promise(); requests.len()] })
}
