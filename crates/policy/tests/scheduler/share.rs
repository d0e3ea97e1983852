//! Proportional share by start-time fair queueing.

use super::workload::{Demand, Workload, fair, ms};
use talea_policy::hierarchy::{Engine, Parameters, VpId};
use talea_policy::scheduler::FixedPriority;

fn threads_of_weights<const N: usize>(weights: [u32; N]) -> (Engine, [VpId; N]) {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let parent = [(root, Parameters::Priority(0))];
    let queue = engine.add(Box::new(fair(10)), &parent).expect("free");
    let threads = weights.map(|weight| {
        engine.add_thread(queue, Parameters::Weight(weight)).expect("every weight above 0 is fine")
    });
    (engine, threads)
}

#[test]
fn shares_approach_the_weights() {
    let (engine, threads) = threads_of_weights([1, 2, 3]);
    let load = Workload::new(engine, &threads.map(|thread| (thread, Demand::Endless))).run(ms(6000));
    for (thread, share) in threads.into_iter().zip([1000, 2000, 3000]) {
        let received = load.received(thread, ms(0), ms(6000));
        assert!((ms(share - 20)..=ms(share + 20)).contains(&received), "{received} of {share} ms");
    }
}

/// The error of start-time fair queueing (Regehr and Stankovic, section 5.1) with the whole processor as input: `r T q + q`.
#[test]
fn every_interval_holds_the_share_up_to_the_error() {
    let (engine, [small, large]) = threads_of_weights([1, 4]);
    let load = Workload::new(engine, &[(small, Demand::Endless), (large, Demand::Endless)]).run(ms(5000));
    assert!(load.share_error(small, 20, ms(5000)) <= ms(4 + 10));
    assert!(load.share_error(large, 80, ms(5000)) <= ms(16 + 10));
}

#[test]
fn sleep_earns_no_credit() {
    let (engine, [steady, sleeper]) = threads_of_weights([1, 1]);
    // Wants 400 ms every second: less than its half, but not before the other has had as much.
    let nap = Demand::Periodic { burst: ms(400), period: ms(1000) };
    let load = Workload::new(engine, &[(steady, Demand::Endless), (sleeper, nap)]).run(ms(4000));
    assert_eq!(load.received(sleeper, ms(0), ms(4000)), ms(1600));
    for second in 1..4 {
        let start = ms(1000 * second);
        let received = load.received(steady, start, start + ms(600));
        assert!((ms(280)..=ms(320)).contains(&received), "{received} in the first 600 ms");
    }
}

#[test]
fn a_weight_is_needed() {
    let mut engine = Engine::new(1);
    let queue = engine.add_root(Box::new(fair(10)));
    let refusal = engine.add_thread(queue, Parameters::Weight(0)).unwrap_err();
    assert_eq!(refusal.to_string(), "an sfq scheduler takes a weight above 0, not Weight(0)");
}
