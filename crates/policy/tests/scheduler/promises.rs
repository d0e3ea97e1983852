//! What schedulers that admit promise to whom they admitted, whatever the others do.

use super::compositions::PREEMPTIVE;
use super::script::{Piece, Script, at, endless, ns, periodic, work};
use proptest::prelude::*;
use talea_policy::discipline::Discipline;
use talea_policy::hierarchy::{
    Constraint, Enforcement, Engine, Fraction, Message, Parameters, SchedulerId, VpId,
};
use talea_policy::scheduler::{Announcing, Config, Configuration, Exhaustion, Requests, config};

const UNTIL: i64 = 2_000;

fn engine(kind: impl Into<Configuration>) -> (Engine, SchedulerId) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(kind.into().build(Announcing::Nothing).expect("parameters are in range"));
    (engine, root)
}

fn reservation(budget: i64, period: i64) -> Parameters {
    Parameters::Reservation { budget: work(budget), period: ns(period) }
}

fn part(numerator: i64, denominator: i64) -> Fraction {
    Fraction::new(numerator, denominator).expect("above zero")
}

/// Jobs at any time, short and long.
fn bursts() -> impl Strategy<Value = Vec<Piece>> {
    proptest::collection::vec((0..60i64, 1..40i64, 1..60i64), 1..30).prop_map(|steps| {
        let mut arrival = 0;
        let piece = |(gap, work, deadline)| {
            arrival += gap;
            Piece { arrival, work, deadline: arrival + deadline }
        };
        steps.into_iter().map(piece).collect()
    })
}

/// Budgets with periods that make a full processor or less together: the first and the others.
fn budgets() -> impl Strategy<Value = Vec<(i64, i64)>> {
    proptest::collection::vec((1..20i64, 2..60i64), 1..6).prop_map(|wanted| {
        let mut left = 1.0f64;
        let fits = |(budget, period): (i64, i64)| {
            let budget = budget.min((period as f64 * left) as i64);
            left -= budget as f64 / period as f64;
            (budget > 0).then_some((budget, period))
        };
        wanted.into_iter().filter_map(fits).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// RESBH: exactly the budget in every period of a child that always wants more, at whatever times others sleep.
    #[test]
    fn a_hard_reservation_gets_its_budget_and_no_more(
        shares in budgets(), others in proptest::collection::vec(bursts(), 5),
    ) {
        prop_assume!(!shares.is_empty());
        let (mut engine, root) = engine(config::Reservation::hard(Fraction::ONE));
        let threads: Vec<VpId> = shares
            .iter()
            .map(|(budget, period)| engine.add_thread(root, reservation(*budget, *period)).expect("they fit"))
            .collect();
        let jobs = std::iter::once(endless()).chain(others);
        let script = Script::new(engine, threads.into_iter().zip(jobs).collect()).run(UNTIL);
        let (budget, period) = shares[0];
        for start in (0..UNTIL - period).step_by(period as usize) {
            prop_assert_eq!(script.traces[0].received(start, start + period), budget);
        }
        // A child that sleeps may be served at the end of one period, and its next one may begin at once.
        for (trace, (budget, period)) in script.traces.iter().zip(&shares).skip(1) {
            for (start, _) in &trace.supply {
                for length in [*period, period * 3] {
                    let received = trace.received(start.as_nanos(), start.as_nanos() + length);
                    prop_assert!(received * period <= 2 * budget * period + budget * length);
                }
            }
        }
    }

    /// RESBS: at the end of the `k`-th period of a child that always wants more, it has had `k` budgets.
    #[test]
    fn a_soft_reservation_gets_its_budget_at_least(
        shares in budgets(), others in proptest::collection::vec(bursts(), 5),
    ) {
        prop_assume!(!shares.is_empty());
        let soft = config::Reservation { exhaustion: Exhaustion::Postpone, capacity: Fraction::ONE };
        let (mut engine, root) = engine(soft);
        let threads: Vec<VpId> = shares
            .iter()
            .map(|(budget, period)| engine.add_thread(root, reservation(*budget, *period)).expect("they fit"))
            .collect();
        let jobs = std::iter::once(endless()).chain(others);
        let script = Script::new(engine, threads.into_iter().zip(jobs).collect()).run(UNTIL);
        let (budget, period) = shares[0];
        for periods in 1..UNTIL / period {
            prop_assert!(script.traces[0].received(0, period * periods) >= budget * periods);
        }
    }

    /// Requests on a total bandwidth server are done by their deadlines, with the others overrunning what they declared.
    #[test]
    fn requests_of_a_total_bandwidth_server_meet_their_deadlines(
        shares in budgets(), mut own in bursts(), others in proptest::collection::vec(bursts(), 5),
    ) {
        prop_assume!(!shares.is_empty());
        let (budget, period) = shares[0];
        let mut deadline = 0;
        for piece in &mut own {
            // Rounded up where the server's deadline falls between two nanoseconds, and kept in order.
            deadline = deadline.max(piece.arrival * budget) + piece.work * period;
            piece.deadline = (deadline + budget - 1) / budget;
        }
        let (mut engine, root) = engine(config::TotalBandwidth { capacity: Fraction::ONE, requests: Requests::InPieces });
        let threads: Vec<VpId> = shares
            .iter()
            .map(|(budget, period)| engine.add_thread(root, reservation(*budget, *period)).expect("they fit"))
            .collect();
        // Endless work declares nothing, and never ends.
        let jobs = std::iter::once(own).chain([endless()]).chain(others);
        let script = Script::new(engine, threads.into_iter().zip(jobs).collect()).run(UNTIL);
        prop_assert_eq!(script.traces[0].late(UNTIL), Vec::<usize>::new());
    }

    /// RESU: tasks that fit a processor of half the speed meet their deadlines on half a processor, beside children that
    /// announce what they like and never end.
    #[test]
    fn tasks_on_a_slower_processor_meet_their_deadlines(
        tasks in proptest::collection::vec((1..10i64, 10..60i64), 1..4),
        liars in proptest::collection::vec(bursts(), 2),
        // Multiples of which a sixth is whole: less than a nanosecond of a slice is lost.
        slice in (1..6i64).prop_map(|slice| slice * 6),
    ) {
        let mut left = 0.5;
        let fits = |(cost, period): (i64, i64)| {
            let cost = cost.min((period as f64 * left) as i64);
            left -= cost as f64 / period as f64;
            (cost > 0).then_some((cost, period))
        };
        let tasks: Vec<(i64, i64)> = tasks.into_iter().filter_map(fits).collect();
        let (mut engine, root) =
            engine(config::SlowerProcessor { speed: Fraction::ONE, slice: ns(slice) });
        let lane = config::Lane { discipline: Discipline::Deadline, rules: PREEMPTIVE, capacity: 8 };
        let lane = lane.build(Announcing::Deadlines).expect("a lane");
        let lane = engine.add(lane, &[(root, Parameters::Rate(part(1, 2)))]).expect("half");
        let mut threads = Vec::new();
        for (cost, period) in &tasks {
            let thread = engine.add_thread(lane, Parameters::None).expect("a lane takes any");
            threads.push((thread, periodic(*cost, *period, UNTIL)));
        }
        for liar in liars {
            let thread = engine.add_thread(root, Parameters::Rate(part(1, 6))).expect("a sixth");
            threads.push((thread, liar));
        }
        let hog = engine.add_thread(root, Parameters::Rate(part(1, 6))).expect("the last sixth");
        threads.push((hog, endless()));
        let script = Script::new(engine, threads).run(UNTIL);
        for trace in &script.traces[..tasks.len()] {
            prop_assert_eq!(trace.late(UNTIL), Vec::<usize>::new());
        }
        // The hog knows no deadlines: by the end of every slice it has had its rate, and more only while others did not want theirs.
        for slices in 1..UNTIL / slice {
            let received = script.traces.last().expect("the hog").received(0, slices * slice);
            prop_assert!(received >= slices * slice / 6, "{} in {}", received, slices * slice);
        }
    }

    /// The same, one slower processor inside another.
    #[test]
    fn slower_processors_nest(cost in 1..5i64, period in 1..6i64, others in bursts(), slice in 1..30i64) {
        let period = cost * 4 + period;
        let slower = |speed| config::SlowerProcessor { speed, slice: ns(slice) };
        let (mut engine, root) = engine(slower(Fraction::ONE));
        let inner = slower(part(1, 2)).build(Announcing::Deadlines).expect("in range");
        let inner = engine.add(inner, &[(root, Parameters::Rate(part(1, 2)))]).expect("half");
        let task = engine.add_thread(inner, Parameters::Rate(part(1, 2))).expect("a quarter of all");
        let beside = engine.add_thread(inner, Parameters::Rate(part(1, 2))).expect("the other half");
        let outside = engine.add_thread(root, Parameters::Rate(part(1, 2))).expect("the other half");
        let threads = vec![(task, periodic(cost, period, UNTIL)), (beside, others), (outside, endless())];
        let script = Script::new(engine, threads).run(UNTIL);
        prop_assert_eq!(script.traces[0].late(UNTIL), Vec::<usize>::new());
    }

    /// A resource kernel's reserves get their budgets, however late in their periods others claim theirs.
    #[test]
    fn reserves_get_their_budgets(
        reserves in proptest::collection::vec((1..8i64, 10..60i64, 0..10i64), 1..6),
        jobs in proptest::collection::vec(bursts(), 6),
        always in 0..6usize,
    ) {
        let (mut engine, root) = engine(config::ResourceKernel { quantum: work(3) });
        let mut admitted = Vec::new();
        for (place, (budget, period, slack)) in reserves.into_iter().enumerate() {
            let deadline = ns((period - slack).max(budget));
            let enforcement = [Enforcement::Hard, Enforcement::Firm, Enforcement::Soft][place % 3];
            let given = Parameters::Reserve { budget: work(budget), period: ns(period), deadline, enforcement };
            if let Ok(thread) = engine.add_thread(root, given) {
                admitted.push((thread, budget, period, deadline.as_nanos(), enforcement));
            }
        }
        let hog = engine.add_thread(root, Parameters::None).expect("anybody");
        let always = always % admitted.len();
        let job = |(place, jobs)| if place == always { endless() } else { jobs };
        let mut threads: Vec<_> =
            admitted.iter().map(|admitted| admitted.0).zip(jobs.into_iter().enumerate().map(job)).collect();
        threads.push((hog, endless()));
        let script = Script::new(engine, threads).run(UNTIL);
        let (_, budget, period, deadline, enforcement) = admitted[always];
        for start in (0..UNTIL - period).step_by(period as usize) {
            let received = script.traces[always].received(start, start + deadline);
            prop_assert!(received >= budget);
            if enforcement == Enforcement::Hard {
                prop_assert_eq!(script.traces[always].received(start, start + period), budget);
            }
        }
    }

    /// RESCS: every window of the length of the rounded period holds the budget.
    #[test]
    fn rialto_serves_every_window(levels in proptest::collection::vec((0..3u32, 1..16i64), 1..5), others in bursts()) {
        let (mut engine, root) = engine(config::Rialto { base: ns(16), levels: 3, quantum: work(4) });
        let mut threads = Vec::new();
        let mut admitted = Vec::new();
        for (level, budget) in levels {
            let period = 16 << level;
            if let Ok(thread) = engine.add_thread(root, reservation(budget, period + 5)) {
                threads.push((thread, endless()));
                admitted.push((budget, period));
            }
        }
        let beside = engine.add_thread(root, Parameters::None).expect("anybody");
        threads.push((beside, others));
        let script = Script::new(engine, threads).run(UNTIL);
        for (trace, (budget, period)) in script.traces.iter().zip(admitted) {
            for start in 0..500 {
                prop_assert!(trace.received(start, start + period) >= budget);
            }
        }
    }

    /// Accepted time constraints and planned pieces are met, whatever else runs.
    #[test]
    fn accepted_work_is_done_in_time(
        wanted in proptest::collection::vec((0..40i64, 1..40i64, 1..12i64), 1..8), others in bursts(), is_spring: bool,
    ) {
        let kind = match is_spring {
            true => Configuration::from(config::Spring { effort: 100, quantum: work(4) }),
            false => config::Rialto { base: ns(16), levels: 1, quantum: work(4) }.into(),
        };
        let (mut engine, root) = engine(kind);
        let mut threads = Vec::new();
        if !is_spring {
            let reserved = engine.add_thread(root, reservation(6, 16)).expect("it fits");
            threads.push((reserved, endless()));
        }
        let hog = engine.add_thread(root, Parameters::None).expect("anybody");
        threads.push((hog, endless()));
        let beside = engine.add_thread(root, Parameters::None).expect("anybody");
        threads.push((beside, others));
        let before = threads.len();
        for (start, length, amount) in wanted {
            let thread = engine.add_thread(root, Parameters::None).expect("anybody");
            let piece = Piece { arrival: start, work: amount, deadline: start + length };
            let constraint =
                Constraint { start: at(start), deadline: at(piece.deadline), work: work(amount) };
            let answer = engine.message(root, Some(thread), Message::Constrain(constraint), at(0));
            // Who is refused comes all the same, and has no guarantee.
            let deadline = if answer.is_ok() { piece.deadline } else { UNTIL * 2 };
            threads.push((thread, vec![Piece { deadline, ..piece }]));
        }
        let script = Script::new(engine, threads).run(UNTIL);
        for trace in &script.traces[before..] {
            prop_assert_eq!(trace.late(UNTIL), Vec::<usize>::new());
        }
    }

    /// Admitted jobs of statistical rate-monotonic scheduling are done within their periods, and as many are admitted as the
    /// allowances hold.
    #[test]
    fn admitted_jobs_are_done_in_their_periods(
        demands in proptest::collection::vec(proptest::collection::vec(1..12i64, 128), 3),
        allowances in (1..9i64, 1..21i64, 1..31i64).prop_map(|(a, b, c)| [a, b, c]),
    ) {
        let (mut engine, root) = engine(config::StatisticalRateMonotonic { last: 2, quantum: work(3) });
        let periods = [10i64, 20, 60];
        let superperiods = [20i64, 60, 120];
        let mut threads = Vec::new();
        for (place, period) in periods.iter().enumerate() {
            let given = reservation(allowances[place], *period);
            let thread = engine.add_thread(root, given).expect("8/20 + 20/60 + 30/120 is less than 1");
            let pieces = demands[place].iter().enumerate().map(|(job, demand)| {
                let arrival = job as i64 * period;
                Piece { arrival, work: (*demand).min(*period), deadline: arrival + period }
            });
            threads.push((thread, pieces.filter(|piece| piece.arrival < 1_200).collect::<Vec<_>>()));
        }
        let script = Script::new(engine, threads.clone()).run(1_200);
        let mut claimed = [0i64; 3];
        for (place, (_, pieces)) in threads.iter().enumerate() {
            for higher in 0..place {
                claimed[place] += allowances[higher] * (periods[place] / superperiods[higher]);
            }
            let late = script.traces[place].late(1_200);
            // The rule of Atlas and Bestavros, told again; a job behind a late one is released late, so only those before
            // the first late job that was not admitted are judged.
            let (mut left, mut end) = (0, 0);
            for (job, piece) in pieces.iter().enumerate() {
                if piece.arrival >= end {
                    end = (piece.arrival / superperiods[place] + 1) * superperiods[place];
                    left = allowances[place];
                }
                let admitted = piece.work <= left && piece.work <= periods[place] - claimed[place];
                if admitted {
                    left -= piece.work;
                    prop_assert!(!late.contains(&job), "job {} of task {}", job, place);
                } else if late.contains(&job) {
                    break;
                }
            }
        }
    }
}

#[test]
fn admission_says_why_not() {
    let refusal = |kind: Configuration, first: Parameters, second: Parameters| {
        let (mut engine, root) = engine(kind);
        engine.add_thread(root, first).expect("there is room");
        engine.add_thread(root, second).expect_err("there is none").to_string()
    };
    let slower = config::SlowerProcessor { speed: Fraction::ONE, slice: ns(1) };
    assert_eq!(
        refusal(slower.into(), Parameters::Rate(part(3, 5)), Parameters::Rate(part(41, 100))),
        "not admitted: 41 % of the processor are asked for and 40 % are left"
    );
    let statistical = config::StatisticalRateMonotonic { last: 1, quantum: work(1) };
    assert_eq!(
        refusal(statistical.into(), reservation(1, 20), reservation(1, 30)),
        "not admitted: a period of 30ns beside one of 20ns: the longer must be a multiple of the shorter"
    );
    let reserve = |budget, period| Parameters::Reserve {
        budget: work(budget),
        period: ns(period),
        deadline: ns(period),
        enforcement: Enforcement::Hard,
    };
    assert_eq!(
        refusal(config::ResourceKernel { quantum: work(1) }.into(), reserve(5, 10), reserve(4, 12)),
        "not admitted: a reserve of 4ns within 12ns would need more than its period"
    );
    let rialto = config::Rialto { base: ns(16), levels: 2, quantum: work(1) };
    assert_eq!(
        refusal(rialto.into(), reservation(8, 40), reservation(13, 16)),
        "not admitted: 81.25 % of the processor are asked for and 75 % are left"
    );
    let reserved = config::Reservation::hard(Fraction::ONE);
    assert_eq!(
        refusal(reserved.into(), reservation(1, 2), reservation(5, 4)),
        "a reservation scheduler takes a budget above 0 and at most its period, not \
         Reservation { budget: Work(5), period: Duration(4) }"
    );
}
