//! Every rewrite against supply patterns: what keeps the one guarantee keeps the other.

use crate::supply::{Supply, any_supply, basic, whole};
use num_traits::One;
use proptest::prelude::*;
use talea_guarantee::exact::{Ratio, Share, Span};
use talea_guarantee::guarantee::{Continuity, Guarantee, Hardness, Kind, Reservation};
use talea_guarantee::label::Label;
use talea_guarantee::rewrite::{Cell, Choice, cell};

fn reservation(kind: Kind, amount: u64, period: u64) -> Guarantee {
    let (continuity, hardness) = kind.reservation().expect("a kind of reservation");
    let (amount, period) = (Span::from_nanos(amount), Span::from_nanos(period));
    Reservation::new(continuity, hardness, amount, period).expect("the amount fits").into()
}

fn rewritten(from: &Guarantee, to: Kind, choice: &Choice) -> Option<Guarantee> {
    let rewritten = Label::real(from.clone()).rewrite(to, choice).ok()?;
    Some(rewritten.label.guarantee().clone())
}

/// Checks every rewrite of `from` that the supply, which keeps it, can be held against.
fn check_all(from: &Guarantee, supply: &Supply) -> Result<(), TestCaseError> {
    prop_assert!(supply.keeps(from), "{supply:?} was to keep {from}");
    for to in Kind::EVERY.into_iter().filter(|to| *to != Kind::Resu) {
        for slack in 0..3 {
            for period in 1..12 {
                let choice =
                    Choice { slack: Span::from_nanos(slack), period: Some(Span::from_nanos(period)) };
                if let Some(to) = rewritten(from, to, &choice) {
                    prop_assert!(supply.keeps(&to), "{supply:?} keeps {from} but not {to}");
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn what_keeps_a_soft_basic_reservation_keeps_its_rewrites((amount, period, supply) in basic(true)) {
        check_all(&reservation(Kind::Resbs, amount, period), &supply)?;
    }

    #[test]
    fn what_keeps_a_hard_basic_reservation_keeps_its_rewrites((amount, period, supply) in basic(false)) {
        check_all(&reservation(Kind::Resbh, amount, period), &supply)?;
    }

    /// The amount that every interval of some length holds, and all that follows from it.
    #[test]
    fn what_keeps_a_continuous_reservation_keeps_its_rewrites(supply in any_supply(), period in 1_u64..10) {
        let amount = (0..=period).rev().find(|amount| supply.keeps(&reservation(Kind::Rescs, *amount, period)));
        check_all(&reservation(Kind::Rescs, amount.expect("nothing is always held"), period), &supply)?;
        // The same in every period of the pattern is hard.
        let cycle = supply.0.len() as u64;
        let served = supply.0.iter().filter(|served| **served).count() as u64;
        check_all(&reservation(Kind::Resch, served, cycle), &supply)?;
    }

    /// Any supply keeps any share up to its own with the least error that it has.
    #[test]
    fn what_keeps_a_share_keeps_its_rewrites(supply in any_supply(), part in 1_u64..=12) {
        let share = supply.share() * Ratio::new(part.into(), 12.into());
        let error = supply.error(&share);
        check_all(&Guarantee::Psbe { share: Share::new(share).expect("part of a share"), error }, &supply)?;
    }

    /// The same for less of the same kind.
    #[test]
    fn what_keeps_more_keeps_less(
        (amount, period, supply) in basic(true),
        less in 1_u64..30,
        longer in 1_u64..30,
        part in 1_u64..=12,
    ) {
        let own = reservation(Kind::Resbs, amount, period);
        let continuous = rewritten(&own, Kind::Rescs, &Choice::default()).expect("Theorem 1");
        for own in [own.clone(), continuous] {
            if less <= longer {
                let other = reservation(own.kind(), less, longer);
                if Label::real(own.clone()).keeps(&Label::real(other.clone())) {
                    prop_assert!(supply.keeps(&other), "{supply:?} keeps {own} but not {other}");
                }
            }
        }
        let share = |whole: &Ratio| Share::new(whole * Ratio::new(part.into(), 12.into())).expect("a part");
        let own = rewritten(&own, Kind::Psbe, &Choice::default()).expect("Theorem 4");
        let Guarantee::Psbe { share: all, error } = &own else { unreachable!() };
        let smaller = share(all.ratio());
        let other = Guarantee::Psbe { error: &(error * &smaller) / all, share: smaller };
        prop_assert!(Label::real(own.clone()).keeps(&Label::real(other.clone())));
        prop_assert!(supply.keeps(&other), "{supply:?} keeps {own} but not {other}");
    }

    /// Chains of rewrites are rewrites.
    #[test]
    fn what_is_reached_is_kept((amount, period, supply) in basic(true), x in 0_u64..20, y in 1_u64..40) {
        let own = Label::real(reservation(Kind::Resbs, amount, period));
        for kind in [Kind::Resbs, Kind::Rescs] {
            if x <= y {
                let goal = reservation(kind, x, y);
                if let Some(steps) = own.reach(&own.wanted(&goal)) {
                    prop_assert!(supply.keeps(&goal), "{supply:?} keeps {own} but not {goal}: {steps:?}");
                }
            }
        }
    }

    /// A theorem's conclusion grows with its premise.
    #[test]
    fn more_is_rewritten_to_more(amount in 1_u64..20, more in 0_u64..10, beyond in 0_u64..20) {
        let period = amount + more + beyond;
        for kind in [Kind::Resbs, Kind::Rescs] {
            let (small, large) = (reservation(kind, amount, period), reservation(kind, amount + more, period));
            for to in [Kind::Rescs, Kind::Psbe, Kind::Ps] {
                let of = |from: &Guarantee| {
                    Label::real(rewritten(from, to, &Choice::default()).expect("it is in the matrix"))
                };
                prop_assert!(of(&large).keeps(&of(&small)), "{large} to {to} keeps less than {small} to {to}");
            }
        }
    }
}

/// The patterns that show that Theorems 1 and 3 promise no more than there is, and Theorem 4 when it does not.
#[test]
fn the_theorems_are_tight_on_the_worst_patterns() {
    for (amount, period) in (1..8_u64).flat_map(|period| (1..=period).map(move |amount| (amount, period))) {
        // Served at the beginning of one period and at the end of the next.
        let early = (0..period).map(|slot| slot < amount);
        let late = (0..period).map(|slot| slot >= period - amount);
        let worst = Supply(early.chain(late).collect());
        let basic = reservation(Kind::Resbh, amount, period);
        assert!(worst.keeps(&basic));
        let interval = 2 * period - amount;
        assert!(worst.keeps(&reservation(Kind::Rescs, amount, interval)));
        if interval > amount {
            assert!(!worst.keeps(&reservation(Kind::Rescs, amount, interval - 1)), "{amount} {period}");
        }
        let error = rewritten(&basic, Kind::Psbe, &Choice::default());
        let Some(Guarantee::Psbe { share, error }) = error else { panic!("Theorem 4") };
        assert_eq!(worst.error(share.ratio()), error, "{amount} in {period}");
        let regular = Supply((0..period).map(|slot| slot < amount).collect());
        let continuous = reservation(Kind::Resch, amount, period);
        let Some(Guarantee::Psbe { share, error }) = rewritten(&continuous, Kind::Psbe, &Choice::default())
        else {
            panic!("Theorem 3")
        };
        assert_eq!(regular.error(share.ratio()), error, "{amount} in {period}");
    }
}

/// For every cell of the matrix that says no, a supply keeps the one guarantee and none of the other.
#[test]
fn what_the_matrix_denies_has_counterexamples() {
    let pattern = |text: &str| Supply(text.chars().map(|slot| slot == '#').collect());
    // Each with a guarantee that it keeps.
    let witnesses = [
        (Kind::Resbh, reservation(Kind::Resbh, 2, 4), pattern("##....##")),
        (Kind::Resbs, reservation(Kind::Resbs, 2, 4), pattern("##....#####.")),
        (Kind::Resch, reservation(Kind::Resch, 2, 4), pattern("##..")),
        (Kind::Rescs, reservation(Kind::Rescs, 2, 4), pattern("##..###.#.#.")),
        (Kind::All, Guarantee::All, pattern("#")),
    ];
    for (from, guarantee, supply) in witnesses {
        assert!(supply.keeps(&guarantee), "{from}");
        for to in Kind::EVERY.into_iter().filter(|to| matches!(cell(from, *to), Cell::Impossible(_))) {
            let Some((continuity, hardness)) = to.reservation() else { continue };
            // A reservation of the same numbers; ALL has none, so of less than all there is.
            let (amount, period) = match &guarantee {
                Guarantee::Reservation(own) => (own.amount().clone(), own.period().clone()),
                _ => (Span::from_nanos(2), Span::from_nanos(4)),
            };
            let other = Reservation::new(continuity, hardness, amount, period).expect("it fits").into();
            assert!(!supply.keeps(&other), "{supply:?} keeps {guarantee} and {other}");
        }
    }
}

/// Theorem 2 has its one exception.
#[test]
fn a_basic_reservation_of_the_whole_processor_is_continuous_and_hard() {
    let all = Supply(vec![true]);
    for kind in [Kind::Resbh, Kind::Resbs] {
        let hard = rewritten(&reservation(kind, 3, 3), Kind::Resch, &Choice::default());
        assert!(all.keeps(&hard.expect("x = y")));
        assert_eq!(rewritten(&reservation(kind, 2, 3), Kind::Resch, &Choice::default()), None);
    }
}

/// Below a slower processor the gaps are those of the whole one: real time between deadlines is what is promised.
#[test]
fn rewrites_below_a_slower_processor_hold_for_real_supply() {
    let half = Share::new(Ratio::one() / whole(2)).expect("a half");
    for (amount, period) in [(2, 2), (2, 4), (4, 6), (6, 6)] {
        let slow = Label::paced(reservation(Kind::Resbs, amount, period), &half);
        // Half of the amount in real time, early in one period and late in the next.
        let real = amount / 2;
        let early = (0..period).map(|slot| slot < real);
        let late = (0..period).map(|slot| slot >= period - real);
        let supply = Supply(early.chain(late).collect());
        assert!(supply.keeps(&slow.absolute()));
        for to in [Kind::Rescs, Kind::Psbe, Kind::Ps] {
            let rewritten = slow.rewrite(to, &Choice::default()).expect("it is in the matrix");
            assert!(supply.keeps(&rewritten.label.absolute()), "{slow} is not {}", rewritten.label);
        }
        // Taken at its word in slowed time, Theorem 1 would promise this.
        let naive = Label::paced(reservation(Kind::Rescs, amount, 2 * period - amount), &half);
        assert!(!supply.keeps(&naive.absolute()));
    }
}

#[test]
fn hard_means_exactly_and_soft_at_least() {
    let kinds = [(Continuity::Basic, Hardness::Hard), (Continuity::Continuous, Hardness::Soft)];
    assert_eq!(
        kinds.map(|(c, h)| Kind::EVERY.iter().filter(|k| k.reservation() == Some((c, h))).count()),
        [1, 1]
    );
}
