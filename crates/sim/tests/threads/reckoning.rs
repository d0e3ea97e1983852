//! What the simulation counts.

use super::{add, at, bursts, reservation, thread};
use talea_policy::hierarchy::{Engine, Fraction, Parameters, VpId};
use talea_policy::scheduler::{FixedPriority, Kind};
use talea_sim::threads::{Happening, Load, ThreadSimulation};
use talea_time::{Instant, Work};

/// Round robin over a reservation scheduler with two threads, and two threads beside it.
fn mixed() -> (Engine, Vec<(VpId, Load)>) {
    let mut engine = Engine::new(2);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let reserve = Kind::Reservation { capacity: Fraction::ONE };
    let reserve = add(&mut engine, &reserve, &[(root, Parameters::Priority(1))]);
    let turns = Kind::RoundRobin { quantum: Work::from_millis(7) };
    let turns = add(&mut engine, &turns, &[(root, Parameters::Priority(0))]);
    let threads = vec![
        (thread(&mut engine, reserve, reservation(3, 10)), bursts(3, 10)),
        (thread(&mut engine, reserve, reservation(4, 25)), Load::Endless),
        (thread(&mut engine, turns, Parameters::None), Load::Endless),
        (thread(&mut engine, turns, Parameters::None), bursts(11, 40)),
    ];
    (engine, threads)
}

fn run(switch: Work, slice: i64) -> (ThreadSimulation, Vec<VpId>, Vec<(Instant, Happening)>) {
    let (engine, threads) = mixed();
    let vps = threads.iter().map(|(vp, _)| *vp).collect();
    let mut simulation = ThreadSimulation::new(engine, threads, 1, switch);
    let mut told = Vec::new();
    for end in (slice..=1000).step_by(slice as usize) {
        simulation.advance(at(end), |when, what| told.push((when, what)));
    }
    (simulation, vps, told)
}

#[test]
fn slices_give_the_same_as_one_run() {
    let (whole, vps, at_once) = run(Work::from_nanos(20_000), 1000);
    let (pieces, _, bit_by_bit) = run(Work::from_nanos(20_000), 8);
    assert_eq!(at_once, bit_by_bit);
    assert_eq!(whole.counts(), pieces.counts());
    for vp in vps {
        assert_eq!(whole.tally(vp), pieces.tally(vp));
    }
    whole.engine().check_invariants();
}

/// Both processors are always busy: what is received is all the time there is, switches included.
#[test]
fn every_nanosecond_is_somebodys() {
    for switch in [Work::ZERO, Work::from_nanos(50_000)] {
        let (simulation, vps, told) = run(switch, 1000);
        let received = vps.iter().map(|vp| simulation.tally(*vp).expect("loaded").received);
        let idle: i64 = idle(&told);
        let sum: i64 = received.map(Work::as_nanos).sum();
        assert_eq!(sum + idle, 2 * 1_000_000_000);
        let counts = simulation.counts();
        assert_eq!(counts.switches as usize, told.len());
        assert!(counts.overhead.as_nanos() <= switch.as_nanos() * counts.switches as i64);
        assert_eq!(counts.overhead > Work::ZERO, switch > Work::ZERO);
    }
}

fn idle(told: &[(Instant, Happening)]) -> i64 {
    let mut since = [Some(0_i64); 2];
    let mut idle = 0;
    for (when, happening) in told {
        let Happening::Switch(switch) = happening else { continue };
        let processor = &mut since[switch.processor.index()];
        match switch.to {
            Some(_) => idle += processor.take().map_or(0, |since| when.as_nanos() - since),
            None => *processor = Some(when.as_nanos()),
        }
    }
    idle + since.iter().flatten().map(|since| 1_000_000_000 - since).sum::<i64>()
}

/// A burst that takes longer than its period is late, and so is what queues behind it; nothing is lost.
#[test]
fn late_bursts_queue() {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let slow = thread(&mut engine, root, Parameters::Priority(0));
    let mut simulation = ThreadSimulation::new(engine, vec![(slow, bursts(15, 10))], 1, Work::ZERO);
    simulation.advance(at(95), |_, _| {});
    let tally = simulation.tally(slow).expect("loaded");
    assert_eq!((tally.arrived, tally.met, tally.late), (10, 0, 6));
    assert_eq!(tally.longest_response, at(90) - at(50));
    assert_eq!(tally.received, Work::from_millis(95));
}
