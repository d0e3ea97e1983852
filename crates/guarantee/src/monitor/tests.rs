//! Against the definitions, on every short pattern of supply and on random ones.

use super::*;
use crate::exact::{Ratio, Share, ratio};
use proptest::prelude::*;

fn reservation(continuity: Continuity, hardness: Hardness, amount: u64, period: u64) -> Guarantee {
    let (amount, period) = (Span::from_nanos(amount), Span::from_nanos(period));
    Reservation::new(continuity, hardness, amount, period).expect("it fits").into()
}

/// A stretch of demand with a nanosecond of service wherever `supply` says so.
fn judge(guarantee: &Guarantee, tolerance: i64, supply: &[bool]) -> Tally {
    let mut monitor = Monitor::new(guarantee, Duration::from_nanos(tolerance), Instant::ZERO);
    for (at, served) in supply.iter().enumerate() {
        let standing = if *served { Standing::Running } else { Standing::Ready };
        monitor.note(Instant::from_nanos(at as i64), standing, &mut |_| {});
    }
    monitor.note(Instant::from_nanos(supply.len() as i64), Standing::Waiting, &mut |_| {});
    *monitor.tally()
}

fn received(window: &[bool]) -> u64 {
    window.iter().filter(|served| **served).count() as u64
}

/// The definition of a basic reservation, for the windows within the stretch.
fn holds_in_periods(supply: &[bool], period: usize, holds: impl Fn(u64) -> bool) -> bool {
    (0..period).any(|phase| {
        let windows = supply.get(phase..).unwrap_or(&[]).chunks_exact(period);
        windows.map(received).all(&holds)
    })
}

/// The definition of a continuous one.
fn holds_everywhere(supply: &[bool], length: usize, holds: impl Fn(u64) -> bool) -> bool {
    supply.windows(length).map(received).all(holds)
}

/// The definition of a share with an error.
fn is_never_behind(supply: &[bool], share: &Ratio, error: u64) -> bool {
    let spans = (0..supply.len()).flat_map(|from| (from..=supply.len()).map(move |to| (from, to)));
    spans.into_iter().all(|(from, to)| {
        let owed = share * Ratio::from_integer((to - from).into()) - Ratio::from_integer(error.into());
        Ratio::from_integer(received(&supply[from..to]).into()) >= owed
    })
}

#[test]
fn every_pattern_of_twelve_is_judged_as_the_definitions_say() {
    for pattern in 0..1_u32 << 12 {
        let supply: Vec<bool> = (0..12).map(|at| pattern >> at & 1 == 1).collect();
        for (amount, period) in [(1, 2), (1, 3), (2, 3), (2, 4), (3, 5), (5, 5)] {
            for hardness in [Hardness::Hard, Hardness::Soft] {
                let fits = |got: u64| got >= amount && (hardness == Hardness::Soft || got <= amount);
                let basic = reservation(Continuity::Basic, hardness, amount, period);
                let broken = judge(&basic, 0, &supply).violations > 0;
                let holds = holds_in_periods(&supply, period as usize, fits);
                assert_eq!(broken, !holds, "{basic} on {pattern:012b}");
                let continuous = reservation(Continuity::Continuous, hardness, amount, period);
                let broken = judge(&continuous, 0, &supply).violations > 0;
                let holds = holds_everywhere(&supply, period as usize, fits);
                assert_eq!(broken, !holds, "{continuous} on {pattern:012b}");
            }
        }
    }
}

fn patterns() -> impl Strategy<Value = Vec<bool>> {
    let stretch = (any::<bool>(), 1..9_usize).prop_map(|(served, length)| vec![served; length]);
    proptest::collection::vec(stretch, 0..30).prop_map(|stretches| stretches.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn reservations_are_judged_as_defined(
        supply in patterns(), period in 1..15_u64, part in 0..=15_u64, tolerance in 0..3_i64,
        hardness in prop_oneof![Just(Hardness::Hard), Just(Hardness::Soft)],
    ) {
        let amount = part.min(period);
        let (least, most) = (amount as i64 - tolerance, amount as i64 + tolerance);
        let fits = |got: u64| {
            got as i64 >= least && (hardness == Hardness::Soft || got as i64 <= most)
        };
        let basic = judge(&reservation(Continuity::Basic, hardness, amount, period), tolerance, &supply);
        prop_assert_eq!(basic.violations == 0, holds_in_periods(&supply, period as usize, fits));
        let everywhere = judge(&reservation(Continuity::Continuous, hardness, amount, period), tolerance, &supply);
        prop_assert_eq!(everywhere.violations == 0, holds_everywhere(&supply, period as usize, fits));
        for tally in [basic, everywhere] {
            prop_assert_eq!(tally.wanted.as_nanos(), supply.len() as i64);
            prop_assert_eq!(tally.received.as_nanos() as u64, received(&supply));
            if let Some(worst) = tally.worst {
                let (from, to) = (worst.from.as_nanos() as usize, worst.to.as_nanos() as usize);
                prop_assert_eq!(worst.received.as_nanos() as u64, received(&supply[from..to]));
                prop_assert!(worst.amount().as_nanos() > tolerance);
            }
        }
    }

    #[test]
    fn shares_are_judged_as_defined(
        supply in patterns(), numerator in 0..8_u64, more in 0..8_u64, error in 0..8_u64,
    ) {
        let denominator = numerator + more;
        prop_assume!(denominator > 0);
        let share = ratio(numerator, denominator);
        let promise = Guarantee::Psbe {
            share: Share::new(share.clone()).expect("a part"),
            error: Span::from_nanos(error),
        };
        let tally = judge(&promise, 0, &supply);
        prop_assert_eq!(tally.violations == 0, is_never_behind(&supply, &share, error));
        if let Some(worst) = tally.worst {
            let (from, to) = (worst.from.as_nanos() as usize, worst.to.as_nanos() as usize);
            prop_assert_eq!(worst.received.as_nanos() as u64, received(&supply[from..to]));
        }
    }
}

#[test]
fn nobody_is_held_to_anything_while_nothing_is_wanted() {
    let promise = reservation(Continuity::Basic, Hardness::Soft, 2, 4);
    let mut monitor = Monitor::new(&promise, Duration::ZERO, Instant::ZERO);
    for round in 0..100 {
        monitor.note(Instant::from_nanos(round * 10), Standing::Ready, &mut |_| {});
        monitor.note(Instant::from_nanos(round * 10 + 3), Standing::Waiting, &mut |_| {});
    }
    assert_eq!((monitor.tally().judged, monitor.tally().violations), (0, 0));
    assert_eq!(monitor.tally().wanted, Duration::from_nanos(300));
}

#[test]
fn a_violation_is_reported_once_and_judging_goes_on() {
    let promise = reservation(Continuity::Basic, Hardness::Soft, 5, 10);
    let mut monitor = Monitor::new(&promise, Duration::ZERO, Instant::ZERO);
    let mut told = Vec::new();
    let mut note = |at, standing| {
        monitor.note(Instant::from_nanos(at), standing, &mut |violation| told.push(violation));
    };
    note(0, Standing::Ready);
    for period in 0..10 {
        // Nothing at all in the fifth.
        if period != 4 {
            note(period * 10, Standing::Running);
        }
        note(period * 10 + 5, Standing::Ready);
    }
    note(100, Standing::Waiting);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].promised, Work::from_nanos(5));
    assert!(told[0].from.as_nanos() <= 45 && told[0].to.as_nanos() >= 45, "{told:?}");
}

#[test]
fn a_period_between_nanoseconds_is_judged_by_what_it_implies() {
    let promise = |period: Ratio| -> Guarantee {
        let (amount, period) = (Span::from_nanos(1), Span::new(period).expect("above zero"));
        Reservation::new(Continuity::Basic, Hardness::Soft, amount, period).expect("it fits").into()
    };
    // Every 5/2 ns a nanosecond: every 4 ns hold one.
    let every_fourth: Vec<bool> = (0..40).map(|at| at % 4 == 0).collect();
    assert_eq!(judge(&promise(ratio(5, 2)), 0, &every_fourth).violations, 0);
    let every_fifth: Vec<bool> = (0..40).map(|at| at % 5 == 0).collect();
    assert!(judge(&promise(ratio(5, 2)), 0, &every_fifth).violations > 0);
}

#[test]
fn the_whole_processor_is_never_missing() {
    assert_eq!(judge(&Guarantee::All, 0, &[true, true, true]).violations, 0);
    let tally = judge(&Guarantee::All, 1, &[true, false, true, false, false, true]);
    assert_eq!((tally.violations, tally.worst.map(|worst| worst.amount())), (1, Some(Work::from_nanos(2))));
}
