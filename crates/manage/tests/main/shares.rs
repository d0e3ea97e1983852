//! Threads receive what their schedulers promise.

use crate::programs::{endless, stage};
use crate::{admission, after, flat, hog, part, proportional, reservation};
use talea_manage::{Blocks, ManagedSet, Options};
use talea_policy::hierarchy::{Fraction, Parameters};
use talea_policy::scheduler::{Announcing, Config, config};
use talea_time::Work;

#[test]
fn two_threads_receive_their_shares() {
    let Some((_alone, options)) = stage(1) else { return };
    let options = Options::on(&options.cpus);
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    for (name, weight) in [("one", 1), ("four", 4)] {
        set.spawn(admission(name, root, Parameters::Weight(weight)), Blocks::ByHandle, hog).unwrap();
    }
    let received = after(&set, Work::from_millis(1_000));
    let share = part(&received, "one");
    assert!((0.1..0.3).contains(&share), "{share} of a fifth: {received:?}");
    let summary = set.stop().unwrap();
    assert_eq!((summary.cause, summary.totals.stalls), (None, 0));
    // They took turns, and left the kernel what it keeps: half a millisecond of each nine.
    assert!(summary.totals.revocations > 50, "{:?}", summary.totals);
    assert!(options.slices.is_none() || summary.totals.slices > 50, "{:?}", summary.totals);
}

#[test]
fn programs_receive_their_shares() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(proportional());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    for (name, weight) in [("one", 1), ("four", 4)] {
        set.command(admission(name, root, Parameters::Weight(weight)), &mut endless()).unwrap();
    }
    let received = after(&set, Work::from_millis(1_000));
    let share = part(&received, "one");
    assert!((0.1..0.3).contains(&share), "{share} of a fifth: {received:?} {:?}", set.totals());
    assert_eq!(set.stop().unwrap().cause, None);
}

/// Fixed priority above, a reservation and its hog below: Regehr's first composition.
#[test]
fn a_reservation_is_honoured_beside_a_hog() {
    let Some((_alone, options)) = stage(1) else { return };
    let (mut engine, root) = flat(config::FixedPriority);
    let reserved = config::Reservation::hard(Fraction::ONE).build(Announcing::Nothing).unwrap();
    let reserved = engine.add(reserved, &[(root, Parameters::Priority(2))]).unwrap();
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    set.spawn(admission("hog", root, Parameters::Priority(1)), Blocks::ByHandle, hog).unwrap();
    set.spawn(admission("reserved", reserved, reservation(6, 20)), Blocks::ByHandle, hog).unwrap();
    let received = after(&set, Work::from_millis(1_000));
    let share = part(&received, "reserved");
    assert!((0.2..0.4).contains(&share), "{share} of 30 %: {received:?}");
    set.stop().unwrap();
}

/// The hierarchy's own account and the kernel's agree where nobody else uses the processor.
#[test]
fn what_was_granted_is_about_what_was_received() {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(config::RoundRobin { quantum: Work::from_millis(2) });
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    for name in ["a", "b"] {
        set.spawn(admission(name, root, Parameters::None), Blocks::ByHandle, hog).unwrap();
    }
    let (from, _) = set.received();
    let after = after(&set, Work::from_millis(500));
    let (to, _) = set.received();
    // Parked threads run while the kernel keeps real-time threads off, so only the grant is bounded by time.
    assert!(after.iter().all(|after| after.granted.at_full_speed() <= to - from), "{after:?}");
    let granted: i64 = after.iter().map(|received| received.granted.as_nanos()).sum();
    assert!(granted >= 400_000_000, "{after:?}");
    set.stop().unwrap();
}

#[test]
fn members_of_two_processors_take_both() {
    let Some((_alone, options)) = stage(2) else { return };
    let mut engine = talea_policy::hierarchy::Engine::new(2);
    let kind = config::SurplusFair { quantum: Work::from_millis(5) };
    let root = engine.add_root(kind.build(Announcing::Nothing).unwrap());
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    // 2 : 1 : 1 of two processors: one whole, two halves.
    for (name, weight) in [("two", 2), ("one", 1), ("other", 1)] {
        set.spawn(admission(name, root, Parameters::Weight(weight)), Blocks::ByHandle, hog).unwrap();
    }
    let received = after(&set, Work::from_millis(1_000));
    let share = part(&received, "two");
    assert!((0.4..0.6).contains(&share), "{share} of a half: {received:?}");
    set.stop().unwrap();
}
