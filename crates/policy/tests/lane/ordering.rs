//! The laws of the orders inside a lane, each against its defining formula evaluated at `now`.

use super::{at, disciplines, job, rules, work};
use proptest::prelude::*;
use std::cmp::Ordering;
use talea_model::{LaneDispatch, Late, Laxity};
use talea_policy::discipline::Discipline;
use talea_policy::job::Job;
use talea_policy::lane::{JobOrder, LaneQueue};
use talea_policy::strategy::LaneRules;
use talea_time::{Instant, Work};

/// The order in which a lane serves `jobs` that all wait at `now` and take no time.
fn order(discipline: Discipline, rules: LaneRules, jobs: &[Job], now: Instant) -> Vec<Job> {
    let mut queue = LaneQueue::new(discipline, rules, 4);
    jobs.iter().for_each(|job| queue.push(*job));
    std::iter::from_fn(|| {
        let next = queue.elect(now, Work::ZERO)?;
        queue.remove(next.tag);
        Some(next)
    })
    .collect()
}

/// Whether `a` is served before `b`.
fn precedes(discipline: Discipline, rules: LaneRules, a: &Job, b: &Job, now: Instant) -> bool {
    order(discipline, rules, &[*a, *b], now)[0] == *a
}

fn jobs(count: u32) -> impl Strategy<Value = Vec<Job>> {
    (0..count).map(job).collect::<Vec<_>>()
}

fn is_late(discipline: Discipline, job: &Job, now: Instant) -> bool {
    match discipline {
        Discipline::Fifo => false,
        Discipline::Deadline => job.deadline <= now,
        Discipline::Laxity => (job.deadline - now).as_nanos() - job.wcet.as_nanos() <= 0,
    }
}

proptest! {
    #[test]
    fn of_two_jobs_one_is_first_whatever_order_they_are_announced_in(
        discipline in disciplines(), rules in rules(), pair in jobs(2), now in 0..16i64,
    ) {
        let forward = precedes(discipline, rules, &pair[0], &pair[1], at(now));
        let backward = precedes(discipline, rules, &pair[1], &pair[0], at(now));
        prop_assert_ne!(forward, backward);
        prop_assert_eq!(forward, JobOrder::new(discipline, rules).precedes(&pair[0], &pair[1], at(now)));
    }

    #[test]
    fn before_is_transitive(
        discipline in disciplines(), rules in rules(), three in jobs(3), now in 0..16i64,
    ) {
        let before = |a: usize, b: usize| precedes(discipline, rules, &three[a], &three[b], at(now));
        for [a, b, c] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            prop_assert!(!(before(a, b) && before(b, c)) || before(a, c));
        }
    }

    #[test]
    fn a_lane_serves_by_its_pairwise_order(
        discipline in disciplines(),
        rules in rules(),
        (sorted, shuffled) in jobs(6).prop_flat_map(|jobs| (Just(jobs.clone()), Just(jobs).prop_shuffle())),
        now in 0..16i64,
    ) {
        let served = order(discipline, rules, &shuffled, at(now));
        prop_assert_eq!(&served, &order(discipline, rules, &sorted, at(now)));
        for pair in served.windows(2) {
            prop_assert!(precedes(discipline, rules, &pair[0], &pair[1], at(now)));
        }
    }

    /// Who asks before a job is in the lane is told what the lane would do if it were.
    #[test]
    fn a_job_precedes_those_that_wait_if_the_lane_would_choose_it(
        discipline in disciplines(), rules in rules(), jobs in jobs(6), now in 0..16i64,
    ) {
        let (job, others) = jobs.split_first().expect("there are six");
        let mut queue = LaneQueue::new(discipline, rules, 6);
        others.iter().for_each(|other| queue.push(*other));
        // The elected one does not wait.
        let elected = queue.elect(at(now), Work::ZERO).expect("there are five");
        let waiting: Vec<Job> = others.iter().filter(|other| other.tag != elected.tag).copied().collect();
        let first = order(discipline, rules, &[&[*job], &waiting[..]].concat(), at(now))[0];
        prop_assert_eq!(queue.precedes_waiting(job, at(now)), first == *job);
    }

    #[test]
    fn urgency_orders_as_the_definition_at_any_instant(
        pair in jobs(2), executed in [0..6i64, 0..6i64], now in -20..40i64,
    ) {
        let definition = |discipline, laxity, which: usize| {
            let job = &pair[which];
            let until_deadline = job.deadline.as_nanos() - now;
            match (discipline, laxity) {
                (Discipline::Fifo, _) => job.release.as_nanos(),
                (Discipline::Deadline, _) => until_deadline,
                (Discipline::Laxity, Laxity::Declared) => until_deadline - job.wcet.as_nanos(),
                (Discipline::Laxity, Laxity::Remaining) => {
                    until_deadline - (job.wcet.as_nanos() - executed[which])
                }
            }
        };
        for discipline in [Discipline::Fifo, Discipline::Deadline, Discipline::Laxity] {
            for laxity in Laxity::ALL.iter().copied() {
                let urgency = |which: usize| discipline.urgency(&pair[which], work(executed[which]), laxity);
                let defined = |which| definition(discipline, laxity, which);
                prop_assert_eq!(urgency(0).cmp(&urgency(1)), defined(0).cmp(&defined(1)));
            }
        }
    }

    /// Waiting never changes who is first, except that a job may become late.
    #[test]
    fn the_order_is_constant_while_jobs_wait(
        discipline in disciplines(), rules in rules(), waiting in jobs(5), now in 0..16i64, later in 0..16i64,
    ) {
        let rules = LaneRules { late: Late::None, ..rules };
        let now_order = order(discipline, rules, &waiting, at(now));
        prop_assert_eq!(now_order, order(discipline, rules, &waiting, at(now + later)));
    }

    #[test]
    fn no_timely_job_waits_behind_a_late_one(
        discipline in disciplines(), rules in rules(), waiting in jobs(6), now in 0..16i64,
    ) {
        let rules = LaneRules { late: Late::Last, ..rules };
        let lateness: Vec<bool> = order(discipline, rules, &waiting, at(now))
            .iter()
            .map(|job| is_late(discipline, job, at(now)))
            .collect();
        prop_assert!(lateness.is_sorted(), "{:?}", lateness);
    }

    /// Without lateness in play, `late = "last"` changes nothing; in both groups the same key decides.
    #[test]
    fn lateness_only_splits_the_order_in_two(
        discipline in disciplines(), rules in rules(), waiting in jobs(6), now in 0..16i64,
    ) {
        let plain = order(discipline, LaneRules { late: Late::None, ..rules }, &waiting, at(now));
        let split = order(discipline, LaneRules { late: Late::Last, ..rules }, &waiting, at(now));
        let (late, mut timely): (Vec<Job>, Vec<Job>) =
            plain.into_iter().partition(|job| is_late(discipline, job, at(now)));
        timely.extend(late);
        prop_assert_eq!(split, timely);
    }

    #[test]
    fn equal_urgency_falls_back_to_release_then_member_then_number(
        discipline in disciplines(), rules in rules(), a in job(0), tag in 1..9u32, later in 0..3i64,
        now in 0..16i64,
    ) {
        // The same urgency by construction, under every discipline that does not look at the release.
        let later = if discipline == Discipline::Fifo { 0 } else { later };
        let release = at(a.release.as_nanos() + later);
        let b = Job { release, rank: tag % 3, number: u64::from(tag / 3), tag, ..a };
        let expected = (a.release, a.rank, a.number).cmp(&(b.release, b.rank, b.number));
        prop_assert_eq!(precedes(discipline, rules, &a, &b, at(now)), expected == Ordering::Less);
    }
}

/// The job a preemptive lane runs keeps the processor against a newcomer of equal urgency, although the
/// newcomer is an earlier member.
#[test]
fn the_running_job_wins_ties() {
    let rules = LaneRules { dispatch: LaneDispatch::Preemptive, laxity: Laxity::Declared, late: Late::None };
    let job = |tag, release, rank| Job {
        release: at(release),
        deadline: at(20),
        wcet: work(5),
        rank,
        number: 0,
        tag,
    };
    let mut queue = LaneQueue::new(Discipline::Deadline, rules, 4);
    queue.push(job(0, 0, 1));
    assert_eq!(queue.elect(at(0), Work::ZERO).map(|job| job.tag), Some(0));
    queue.push(job(1, 0, 0));
    assert_eq!(queue.elect(at(0), Work::ZERO).map(|job| job.tag), Some(1), "nobody has run yet");
    assert_eq!(queue.elect(at(1), work(1)).map(|job| job.tag), Some(1));
    queue.push(job(2, 1, 0));
    assert_eq!(queue.elect(at(1), work(1)).map(|job| job.tag), Some(1), "it ran last");
}

/// A lane that says which job it wants its processor for chooses before anybody is switched. If the job that still runs ends at that
/// instant, the time that it ran is its own, and not that of the one chosen in its place.
#[test]
fn who_is_chosen_before_the_switch_is_not_charged_for_who_ran() {
    let rules = LaneRules { dispatch: LaneDispatch::Preemptive, laxity: Laxity::Remaining, late: Late::None };
    let job = |tag, deadline, wcet| Job {
        release: at(0),
        deadline: at(deadline),
        wcet: work(wcet),
        rank: 0,
        number: 0,
        tag,
    };
    let mut queue = LaneQueue::new(Discipline::Laxity, rules, 4);
    queue.push(job(0, 20, 4));
    assert_eq!(queue.elect(at(0), Work::ZERO).map(|job| job.tag), Some(0));
    queue.push(job(1, 21, 3));
    queue.charge(0, work(3));
    assert_eq!(
        queue.elect_tag(at(3)),
        Some(1),
        "its laxity is less than what is left to the job that has run"
    );
    queue.charge(0, work(3));
    assert_eq!(queue.remove(0).expect("it is there").executed, work(3));
    queue.push(job(2, 23, 4));
    assert_eq!(queue.elect_tag(at(3)), Some(1));
    assert_eq!(queue.current().expect("it was chosen").executed, Work::ZERO);
}
