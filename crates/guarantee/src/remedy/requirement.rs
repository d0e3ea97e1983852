//! What a thread could require instead, of what it receives anyway.

use super::Change;
use super::trial::Trial;
use crate::exact::{Ratio, Span};
use crate::guarantee::{Guarantee, Hardness, Kind, Reservation};
use crate::hierarchy::NodeId;
use crate::label::Label;
use crate::rewrite::Choice;
use num_traits::{One, Signed, ToPrimitive};

/// The nearest requirements that are met as things are.
pub(super) fn weaken(trial: &mut Trial<'_, '_>, thread: NodeId, required: &Label, received: &Label) {
    let thread = trial.graph().name(thread).to_string();
    let mut offers = Vec::new();
    match required.guarantee() {
        Guarantee::Reservation(wanted) => reservations(wanted, received, &mut offers),
        Guarantee::Psbe { share, error } => {
            offers.extend(bounded(received).map(|offer| {
                let (own_share, own_error) = (offer.share(), error_of(&offer));
                match &own_share >= share && !own_share.is_none() {
                    // Its own share with the error that this share has.
                    true => {
                        let error = &(&own_error * share) / &own_share;
                        Guarantee::Psbe { share: share.clone(), error }
                    }
                    false => Guarantee::Psbe { error: own_error.max(error.clone()), share: own_share },
                }
            }));
            offers.extend(long_run(received));
        }
        _ => offers.extend(long_run(received)),
    }
    // What it receives is always there to be required, and more than what follows from it and is as far away.
    let weaker = offers.iter().position(|offer| offer.kind() != required.guarantee().kind());
    offers.insert(weaker.unwrap_or(offers.len()), received.guarantee().clone());
    let says_something = |offer: &Guarantee| *offer == Guarantee::Null || !offer.share().is_none();
    for to in offers.into_iter().filter(says_something) {
        let distance = distance(required.guarantee(), &to);
        let from = required.guarantee().clone();
        trial.suggest(distance, vec![Change::Requirement { thread: thread.clone(), from, to }]);
    }
}

fn error_of(guarantee: &Guarantee) -> Span {
    match guarantee {
        Guarantee::Psbe { error, .. } => error.clone(),
        _ => Span::zero(),
    }
}

fn bounded(received: &Label) -> Option<Guarantee> {
    let rewritten = received.rewrite(Kind::Psbe, &Choice::default()).ok()?;
    Some(rewritten.label.guarantee().clone())
}

fn long_run(received: &Label) -> Option<Guarantee> {
    let rewritten = received.rewrite(Kind::Ps, &Choice::default()).ok()?;
    Some(rewritten.label.guarantee().clone())
}

/// The same reservation without a maximum, with the largest amount, and with the shortest period that can be had. A hard
/// one is looked for soft, since no other hard one follows from anything.
fn reservations(wanted: &Reservation, received: &Label, offers: &mut Vec<Guarantee>) {
    let soft = wanted.as_kind(wanted.continuity(), Hardness::Soft);
    let had = |offer: &Guarantee| received.reach(&received.wanted(offer)).is_some();
    if had(&soft.clone().into()) {
        return offers.push(soft.into());
    }
    let make = |amount: u64, period: u64| {
        let (amount, period) = (Span::from_nanos(amount), Span::from_nanos(period));
        Reservation::new(soft.continuity(), soft.hardness(), amount, period).ok().map(Guarantee::from)
    };
    let nanos = |span: &Span| span.nanos().ceil().to_integer().to_u64().filter(|nanos| *nanos < 1 << 62);
    let Some((amount, period)) = nanos(soft.amount()).zip(nanos(soft.period())) else { return };
    let largest = border(amount, 0, |amount| make(amount, period).filter(|offer| had(offer)).is_some());
    offers.extend(largest.filter(|amount| *amount > 0).and_then(|amount| make(amount, period)));
    let farthest = period.saturating_mul(1 << 10);
    let shortest =
        border(period, farthest, |period| make(amount, period).filter(|offer| had(offer)).is_some());
    offers.extend(shortest.and_then(|period| make(amount, period)));
}

/// The value nearest to `near` with which `holds`, if it holds with `far` and from some value on.
fn border(near: u64, far: u64, holds: impl Fn(u64) -> bool) -> Option<u64> {
    let value = |distance: u64| if far > near { near + distance } else { near - distance };
    let (mut fails, mut works) = (0, near.abs_diff(far));
    if works == 0 || !holds(value(works)) {
        return None;
    }
    while works - fails > 1 {
        let middle = fails + (works - fails) / 2;
        match holds(value(middle)) {
            true => works = middle,
            false => fails = middle,
        }
    }
    Some(value(works))
}

/// How much less the one is than the other: the relative loss of share, and the relative growth of period or error.
/// Another kind is farther than any number.
fn distance(required: &Guarantee, offer: &Guarantee) -> Ratio {
    let span = |guarantee: &Guarantee| match guarantee {
        Guarantee::Reservation(reservation) => reservation.period().nanos().clone(),
        Guarantee::Psbe { error, .. } => error.nanos().clone(),
        _ => Ratio::one(),
    };
    let lost = |from: Ratio, to: Ratio| {
        let difference = (&from - to).abs();
        if from.is_positive() { difference / from } else { difference }
    };
    let share = lost(required.share().ratio().clone(), offer.share().ratio().clone());
    let other_kind = match required.kind() == offer.kind() {
        true => lost(span(required), span(offer)),
        false if required.softened().kind() == offer.kind() => {
            lost(span(required), span(offer)) + Ratio::one()
        }
        false => Ratio::from_integer(1_000.into()),
    };
    share + other_kind
}
