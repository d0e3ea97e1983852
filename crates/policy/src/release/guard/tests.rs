use super::*;
use proptest::prelude::*;
use talea_model::{Excess, SubtaskBuilder, TaskBuilder};
use talea_time::Work;

const PERIOD: i64 = 100;

fn at(ns: i64) -> Instant {
    Instant::from_nanos(ns)
}

/// Tasks of two subtasks each, all on one node, with the bound 30 and the deadline 1000.
fn guards(syncs: &[Synchronisation]) -> Guards {
    let mut builder = System::builder("guards").node("one", [0]);
    for (index, sync) in syncs.iter().enumerate() {
        let subtask = |name: &str| SubtaskBuilder::new(name).wcet(Work::from_nanos(10)).on("one");
        let first = subtask("first");
        let first = if sync.needs_bounds() { first.bound(Duration::from_nanos(30)) } else { first };
        builder = builder.task(
            TaskBuilder::new(format!("task{index}"), Duration::from_nanos(PERIOD))
                .deadline(Duration::from_nanos(1000))
                .sync(*sync)
                .subtask(first)
                .subtask(subtask("second")),
        );
    }
    let system = builder.build().expect("the description is sound");
    Guards::of_node(&system, 0, &ResponseBounds::of(&system).expect("bounds are given"))
}

/// Instance `instance` is signalled at `ns`; its task arrives every period.
fn signal(instance: u64, ns: i64) -> Signal {
    let deadline = at(1000 + PERIOD * instance as i64);
    Signal { instance, deadline, at: at(ns), not_before: at(PERIOD * instance as i64 + 30), way: Way::Local }
}

/// Lets through what is due first, if anything is by `now`.
fn pop_due(guards: &mut Guards, now: i64) -> Option<Release> {
    let due = guards.next_due(at(now))?;
    Some(guards.let_through(due.place))
}

/// What is let through up to `now`: instance and instant.
fn popped(guards: &mut Guards, now: i64) -> Vec<(u64, i64)> {
    std::iter::from_fn(|| pop_due(guards, now))
        .map(|release| (release.signal.instance, release.at.as_nanos()))
        .collect()
}

#[test]
fn what_is_withdrawn_has_never_come() {
    let mut guards = guards(&[Synchronisation::ReleaseGuard, Synchronisation::ReleaseGuard]);
    for (instance, ns) in [(0, 40), (1, 50), (2, 60)] {
        _ = guards.signal(0, signal(instance, ns));
    }
    _ = guards.signal(1, signal(0, 45));
    assert_eq!(popped(&mut guards, 60), [(0, 40), (0, 45)]);
    assert_eq!(guards.next_due(at(139)), None);
    let due = guards.next_due(at(140)).expect("the guard opens");
    assert_eq!((due.place, due.signal.instance, due.is_held, due.waiting), (0, 1, true, 2));
    guards.withdraw(due.place);
    assert_eq!(popped(&mut guards, 140), [(2, 140)], "the next one goes in its place");
    assert_eq!(guards.signal(0, signal(3, 150)), Taken::Until(at(240)));
    guards.withdraw(0);
    assert_eq!((guards.next(), popped(&mut guards, 1000)), (Instant::MAX, vec![]));
    assert_eq!(guards.signal(0, signal(4, 1001)), Taken::Until(at(1001)));
}

#[test]
fn a_release_is_for_an_event_that_has_no_other() {
    let events = |all, come_by_then| WaitingEvents { all, come_by_then };
    assert!(events(1, 1).need(0, 1));
    assert!(!events(0, 0).need(0, 3), "all have expired");
    assert!(!events(1, 1).need(1, 1), "a job is released for it");
    assert!(!events(2, 0).need(0, 3), "those that wait came later, and have releases of their own");
    assert!(events(2, 0).need(0, 2), "one of them came in the place of another one");
    assert!(events(2, 1).need(0, 5));
}

#[test]
fn rules_1_and_2_keep_releases_a_period_apart() {
    let mut guards = guards(&[Synchronisation::ReleaseGuard]);
    assert_eq!(guards.next(), Instant::MAX);
    assert_eq!(guards.signal(0, signal(0, 40)), Taken::Until(at(40)), "the guard is open at first");
    assert_eq!(popped(&mut guards, 40), [(0, 40)]);
    assert_eq!(guards.signal(0, signal(1, 110)), Taken::Until(at(140)));
    assert_eq!((guards.next(), popped(&mut guards, 139)), (at(140), vec![]));
    assert_eq!(guards.signal(0, signal(2, 139)), Taken::Until(at(240)), "it waits behind the other");
    assert_eq!(popped(&mut guards, 150), [(1, 140)], "to the rule it was released when the guard opened");
    guards.idle_point(at(160));
    assert_eq!(popped(&mut guards, 239), [], "idle points are nothing to these rules");
    assert_eq!(popped(&mut guards, 300), [(2, 240)]);
    assert_eq!(guards.signal(0, signal(3, 400)), Taken::Until(at(400)), "a late signal moves the guard");
    assert_eq!(popped(&mut guards, 400), [(3, 400)]);
    assert_eq!(guards.signal(0, signal(4, 410)), Taken::Until(at(500)));
}

#[test]
fn rule_3_opens_all_guards_at_an_idle_point() {
    let mut guards = guards(&[Synchronisation::ReleaseGuardIdle; 3]);
    for place in 0..3 {
        assert_eq!(guards.signal(place, signal(0, 10)), Taken::Until(at(10)));
    }
    assert_eq!(popped(&mut guards, 10), [(0, 10); 3]);
    guards.idle_point(at(10));
    for place in 0..2 {
        assert_eq!(guards.signal(place, signal(1, 20)), Taken::Until(at(110)), "that was before the release");
        assert_eq!(guards.signal(place, signal(2, 20)), Taken::Until(at(210)));
    }
    guards.idle_point(at(50));
    assert_eq!(popped(&mut guards, 50), [(1, 50), (1, 50)], "one of each operation at a time");
    assert_eq!(guards.next(), at(150));
    guards.idle_point(at(50));
    assert_eq!(popped(&mut guards, 50), [], "the same idle point opens it once");
    assert_eq!(
        guards.signal(2, signal(1, 60)),
        Taken::Until(at(60)),
        "nothing waited there at the idle point"
    );
    guards.idle_point(at(70));
    assert_eq!(popped(&mut guards, 70), [(1, 60), (2, 70), (2, 70)]);
}

#[test]
fn one_at_a_time_the_first_that_was_signalled_is_let_through() {
    let mut guards = guards(&[Synchronisation::ReleaseGuardIdleOne; 2]);
    for place in 0..2 {
        assert_eq!(guards.signal(place, signal(0, 10)), Taken::Until(at(10)));
    }
    assert_eq!(popped(&mut guards, 10), [(0, 10), (0, 10)]);
    assert_eq!(guards.signal(1, signal(1, 20)), Taken::Until(at(110)));
    assert_eq!(guards.signal(0, signal(1, 30)), Taken::Until(at(110)));
    guards.idle_point(at(40));
    guards.idle_point(at(40));
    assert_eq!((popped(&mut guards, 40), guards.next()), (vec![(1, 40)], at(110)));
    guards.idle_point(at(50));
    assert_eq!(popped(&mut guards, 50), [(1, 50)]);
    guards.idle_point(at(60));
    assert_eq!(guards.signal(0, signal(2, 70)), Taken::Until(at(150)), "the idle point let nobody through");
}

#[test]
fn phases_and_timers_follow_their_bounds_and_count_overruns() {
    for sync in [Synchronisation::PhaseModification, Synchronisation::ModifiedPhaseModification] {
        let mut guards = guards(&[sync]);
        assert_eq!(guards.signal(0, signal(0, 12)), Taken::Until(at(30)));
        assert_eq!(popped(&mut guards, 29), []);
        assert_eq!(popped(&mut guards, 35), [(0, 30)]);
        assert_eq!(guards.counts(), Counts::default());
        assert_eq!(guards.signal(0, signal(1, 145)), Taken::Until(at(145)), "later than promised");
        assert_eq!(popped(&mut guards, 145), [(1, 145)]);
        let worst_overrun = {
            let operation = guards.operations().next().expect("one");
            Some(BoundOverrun { operation, instance: 1, by: Duration::from_nanos(15) })
        };
        assert_eq!(guards.counts(), Counts { bound_overruns: 1, worst_overrun, ..Counts::default() });
    }
}

/// A thread that keeps guards may see a signal before it is told of an idle point that was earlier.
#[test]
fn nobody_passes_by_an_idle_point_that_was_before_the_signal() {
    let mut guards = guards(&[Synchronisation::ReleaseGuardIdleOne; 2]);
    for place in 0..2 {
        assert_eq!(guards.signal(place, signal(0, 10)), Taken::Until(at(10)));
    }
    assert_eq!(popped(&mut guards, 10), [(0, 10); 2]);
    assert_eq!(guards.signal(0, signal(1, 45)), Taken::Until(at(110)));
    guards.idle_point(at(41));
    assert_eq!(popped(&mut guards, 50), [], "the node was idle before the signal, and may be no longer");
    guards.idle_points(at(41), at(44));
    assert_eq!(popped(&mut guards, 50), []);
    assert_eq!(guards.signal(1, signal(1, 48)), Taken::Until(at(110)));
    guards.idle_points(at(41), at(50));
    assert_eq!(popped(&mut guards, 50), [(1, 45)], "it still was when the first was signalled");
}

#[test]
fn two_are_never_released_at_one_instant() {
    let mut guards = guards(&[Synchronisation::PhaseModification]);
    for instance in 0..2 {
        assert_eq!(guards.signal(0, signal(instance, 500)), Taken::Until(at(500)));
    }
    assert_eq!(popped(&mut guards, 500), [(0, 500)]);
    assert_eq!(popped(&mut guards, 501), [(1, 501)]);
}

#[test]
fn what_finds_no_room_is_refused_and_counted() {
    let mut guards = guards(&[Synchronisation::ReleaseGuard]);
    for instance in 0..ROOM as u64 {
        assert!(matches!(guards.signal(0, signal(instance, 0)), Taken::Until(_)));
    }
    assert_eq!(guards.signal(0, signal(999, 0)), Taken::Refused);
    assert_eq!(guards.counts().refused, 1);
    assert_eq!(popped(&mut guards, 0), [(0, 0)]);
    assert!(matches!(guards.signal(0, signal(999, 0)), Taken::Until(_)));
    assert_eq!(popped(&mut guards, i64::MAX - 1).len(), ROOM);
}

#[test]
fn a_missing_bound_is_named() {
    let chain = |bound| {
        let first = SubtaskBuilder::new("first").wcet(Work::from_nanos(10));
        let first = if bound { first.bound(Duration::from_nanos(30)) } else { first };
        let task = TaskBuilder::new("task", Duration::from_nanos(100))
            .sync(Synchronisation::PhaseModification)
            .subtask(first)
            .subtask(SubtaskBuilder::new("second").wcet(Work::from_nanos(10)));
        System::builder("chain").task(task).build().expect("the description is sound")
    };
    let missing = ResponseBounds::of(&chain(false)).expect_err("there is no bound");
    assert!(
        missing
            .to_string()
            .starts_with("task \"task\": sync = \"phase-modification\" releases what follows \"task.first\"")
    );
    let system = chain(true);
    let bounds = ResponseBounds::of(&system).expect("the last needs none");
    let [first, second] = [0, 1].map(|index| system.operations()[index].id);
    assert_eq!(
        (bounds.bound(first), bounds.offset(second)),
        (Duration::from_nanos(30), Duration::from_nanos(30))
    );
}

/// What happens next to a node's guards.
#[derive(Clone, Copy, Debug)]
enum Step {
    Signal(usize),
    IdlePoint,
    Wait(i64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        (0..3usize).prop_map(Step::Signal),
        Just(Step::IdlePoint),
        (0..PERIOD).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 0..120)
}

/// The rules as they stand in the paper, with a loop over every instant.
#[derive(Default)]
struct Plain {
    guard: [i64; 3],
    last: [Option<i64>; 3],
    waiting: [Vec<u64>; 3],
    released: [Vec<(u64, i64)>; 3],
}

impl Plain {
    fn instant(&mut self, now: i64, is_idle: bool) {
        for place in 0..3 {
            if is_idle && self.last[place] != Some(now) {
                self.guard[place] = self.guard[place].min(now);
            }
            if !self.waiting[place].is_empty() && self.guard[place] <= now && self.last[place] != Some(now) {
                let instance = self.waiting[place].remove(0);
                self.released[place].push((instance, now));
                self.last[place] = Some(now);
                self.guard[place] = now + PERIOD;
            }
        }
    }
}

proptest! {
    /// Every history is as the plain rules have it; first come is first served, and rules 1 and 2 keep a period between releases.
    #[test]
    fn guards_do_what_the_rules_say(steps in steps(), with_rule_3: bool) {
        let sync = if with_rule_3 { Synchronisation::ReleaseGuardIdle } else { Synchronisation::ReleaseGuard };
        let mut guards = guards(&[sync; 3]);
        let (mut plain, mut released) = (Plain::default(), <[Vec<(u64, i64)>; 3]>::default());
        let (mut now, mut numbers) = (0, [0; 3]);
        for step in steps {
            let mut is_idle = false;
            match step {
                Step::Signal(place) => {
                    prop_assert_ne!(guards.signal(place, signal(numbers[place], now)), Taken::Refused);
                    plain.waiting[place].push(numbers[place]);
                    numbers[place] += 1;
                }
                Step::IdlePoint => {
                    guards.idle_point(at(now));
                    is_idle = with_rule_3;
                }
                Step::Wait(length) => {
                    (now..now + length).for_each(|instant| plain.instant(instant, false));
                    now += length;
                }
            }
            plain.instant(now, is_idle);
            while let Some(release) = pop_due(&mut guards, now) {
                let place = release.operation.index() / 2;
                released[place].push((release.signal.instance, release.at.as_nanos()));
            }
            prop_assert_eq!(&released, &plain.released);
        }
        for (of_one, count) in released.iter().zip(numbers) {
            prop_assert!(of_one.iter().map(|(instance, _)| *instance).eq(0..of_one.len() as u64));
            prop_assert!(of_one.len() <= count as usize);
            let apart = of_one.windows(2).map(|pair| pair[1].1 - pair[0].1);
            let least_apart = if with_rule_3 { 1 } else { PERIOD };
            prop_assert!(apart.min().is_none_or(|least| least >= least_apart));
        }
    }
}

/// A guard of a task that something outside releases, with the separation 100, by this burst and excess.
fn sporadic(burst: u32, excess: Excess) -> Guards {
    let task = TaskBuilder::external("outside", Duration::from_nanos(PERIOD))
        .burst(burst)
        .excess(excess)
        .deadline(Duration::from_nanos(1000))
        .wcet(Work::from_nanos(10));
    let system = System::builder("guards").task(task).build().expect("the description is sound");
    Guards::of_node(&system, 0, &ResponseBounds::of(&system).expect("none is needed"))
}

#[test]
fn what_comes_from_outside_waits_is_dropped_or_counted() {
    let arrivals = [0, 10, 20, 130, 500, 500, 500];
    let take = |excess| {
        let mut guards = sporadic(2, excess);
        let mut released = Vec::new();
        for (instance, at) in arrivals.into_iter().enumerate() {
            released.extend(popped(&mut guards, at - 1));
            let taken = guards.signal(0, signal(instance as u64, at));
            assert_eq!(
                taken == Taken::Dropped,
                excess == Excess::Drop && [2, 6].contains(&instance),
                "{instance}"
            );
            released.extend(popped(&mut guards, at));
        }
        released.extend(popped(&mut guards, 10_000));
        (
            released.iter().map(|(_, at)| *at).collect::<Vec<_>>(),
            guards.early_arrivals().map(|early| early.arrivals).sum(),
        )
    };
    assert_eq!(take(Excess::Defer), (vec![0, 10, 100, 200, 500, 501, 600], 3));
    assert_eq!(take(Excess::Drop), (vec![0, 10, 130, 500, 501], 2));
    assert_eq!(take(Excess::Count), (vec![0, 10, 20, 130, 500, 501, 502], 3));
}

proptest! {
    /// Whatever comes, what is let through keeps to the declaration in every window, and no sooner and no later than it has to.
    #[test]
    fn deferred_releases_keep_to_the_burst_and_separation(
        burst in 1u32..5,
        gaps in prop::collection::vec(0i64..150, 1..60),
    ) {
        let mut guards = sporadic(burst, Excess::Defer);
        let (mut now, mut released) = (0, Vec::new());
        for (instance, gap) in gaps.iter().enumerate() {
            now += gap;
            released.extend(popped(&mut guards, now));
            let _ = guards.signal(0, signal(instance as u64, now));
        }
        released.extend(popped(&mut guards, i64::from(u32::MAX)));
        prop_assert_eq!(released.len(), gaps.len(), "none is lost");
        // At most burst - 1 + ceil(t / 100) in any time t: the k-th after one comes no earlier than (k - burst + 1) separations later. A
        // release waits an instant for the one before it at most.
        let times: Vec<i64> = released.iter().map(|(_, at)| *at).collect();
        for (first, at) in times.iter().enumerate() {
            for (ahead, later) in times[first..].iter().enumerate().skip(burst as usize) {
                let least = (ahead as i64 - i64::from(burst) + 1) * PERIOD;
                prop_assert!(later - at + i64::from(burst) >= least, "{} after {}", later, at);
            }
        }
        // A bucket of tokens, filled one in 100, is another way to say it: a release waits only while it is empty.
        let (mut full_at, mut arrivals) = (0i64, 0);
        for (gap, (_, at)) in gaps.iter().zip(&released) {
            arrivals += gap;
            let conforms = full_at - (i64::from(burst) - 1) * PERIOD;
            let expected = arrivals.max(conforms);
            prop_assert!((expected..=expected + i64::from(burst)).contains(at), "{} is not {}", at, expected);
            full_at = full_at.max(*at) + PERIOD;
        }
    }
}
