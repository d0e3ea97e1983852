//! A guarantee that is a maximum is one on an idle processor, too.

use super::{endless, eventually, flat, hog, reservation, stage};
use talea_policy::hierarchy::Fraction;
use talea_policy::scheduler::Kind;
use talea_runtime::managed::{Admission, Blocks, Held, ManagedSet, MemberId, Parking, Received};
use talea_time::Duration;

/// What the only member has received, over how much time, from now on for some periods.
fn measure(set: &ManagedSet) -> (Received, Duration) {
    let (from, before) = set.received();
    let mut last = None;
    eventually("half a second has passed", || {
        let (to, mut now) = set.received();
        let mut own = now.pop().expect("one member");
        own.work -= before[0].work;
        own.granted -= before[0].granted;
        last = Some((own, to - from));
        to - from >= Duration::from_millis(500)
    });
    last.expect("measured")
}

/// 5 ms in 20 ms, and nobody else: held, it receives a quarter; where it may run on, it would receive nearly everything.
fn capped(take_in: impl Fn(&mut ManagedSet, Admission<'_>) -> MemberId) {
    let Some((_alone, options)) = stage(1) else { return };
    let (engine, root) = flat(&Kind::Reservation { capacity: Fraction::ONE });
    let mut set = ManagedSet::prepare(engine, &options).unwrap();
    let (name, parameters) = ("capped", reservation(5, 20));
    let admission = Admission { name, parent: root, parameters, parking: Parking::Held };
    let member = take_in(&mut set, admission);
    let (received, over) = measure(&set);
    let share = received.work.as_nanos() as f64 / over.as_nanos() as f64;
    assert!(share < 0.35, "{share} of a quarter: {received:?}");
    eventually("it has received something", || set.received().1[0].work.as_nanos() > 20_000_000);
    eventually("it is seen held", || set.held(member) == Held::Yes);
    eventually("it is seen let go", || set.held(member) == Held::No);
    set.stop().unwrap();
}

#[test]
fn an_own_thread_is_held() {
    capped(|set, admission| set.spawn(admission, Blocks::ByHandle, hog).unwrap().0);
}

#[test]
fn a_program_is_held() {
    capped(|set, admission| set.command(admission, &mut endless()).unwrap());
}
