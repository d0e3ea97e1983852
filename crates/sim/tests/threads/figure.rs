//! The hierarchy of Regehr and Stankovic, *HLS*, 2001, Figures 1 and 3: fixed priority over a reservation scheduler, and
//! a join of a reservation with what is left, over a proportional share.

use super::{add, at, bursts, reservation, thread};
use talea_guarantee::guarantee::Guarantee;
use talea_policy::hierarchy::{Engine, Fraction, Parameters, VpId};
use talea_policy::scheduler::{FixedPriority, Kind, WakeUp};
use talea_sim::threads::{Happening, Load, ThreadSimulation};
use talea_time::{Duration, Work};

struct Figure {
    engine: Engine,
    video: VpId,
    word: VpId,
    voice: VpId,
    between: VpId,
}

fn figure() -> Figure {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let reserve =
        add(&mut engine, &Kind::Reservation { capacity: Fraction::ONE }, &[(root, Parameters::Priority(3))]);
    let video = thread(&mut engine, reserve, reservation(5, 33));
    let parents = [(reserve, reservation(10, 20)), (root, Parameters::Priority(1))];
    let join = add(&mut engine, &Kind::Join, &parents);
    let share = Kind::ProportionalShare { quantum: Work::from_millis(10), wake_up: WakeUp::Waits };
    let share = add(&mut engine, &share, &[(join, Parameters::None)]);
    let word = thread(&mut engine, share, Parameters::Weight(1));
    let voice = thread(&mut engine, share, Parameters::Weight(4));
    let between = thread(&mut engine, root, Parameters::Priority(2));
    Figure { engine, video, word, voice, between }
}

fn promise(text: &str) -> Guarantee {
    text.parse().expect("a guarantee")
}

/// With everything taken that is not promised, every promise of the figure is kept, and each is the best: one that is
/// slightly better is broken.
#[test]
fn the_figures_guarantees_are_kept() {
    for (worse, better) in [
        (false, ["RESBH 5 33", "PSBE 0.1 22", "PSBE 0.4 58"]),
        (true, ["RESBS 6 33", "PSBE 0.15 22", "PSBE 0.45 58"]),
    ] {
        let Figure { engine, video, word, voice, between } = figure();
        let threads = [video, word, voice, between].map(|vp| (vp, Load::Endless));
        let mut simulation = ThreadSimulation::new(engine, threads.into(), 1, Work::ZERO);
        for (vp, text) in [video, word, voice].into_iter().zip(better) {
            simulation.monitor(vp, &promise(text), Duration::ZERO);
        }
        let mut broken = 0;
        simulation.advance(at(6600), |_, happening| {
            broken += u64::from(matches!(happening, Happening::Broken(..)))
        });
        let mut kept = |vp| simulation.kept(vp).expect("monitored");
        let tallies = [kept(video), kept(word), kept(voice)];
        assert!(tallies.iter().all(|tally| tally.judged > 50), "{tallies:?}");
        assert_eq!(tallies.map(|tally| tally.violations > 0), [worse; 3], "{tallies:?}");
        // Those of the last moment are found when it is asked for.
        let late = tallies.iter().map(|tally| tally.violations).sum::<u64>() - broken;
        assert!(late <= 3, "{late} were not told");
        assert_eq!(tallies[0].received, Work::from_millis(1000));
        assert_eq!(tallies[1].received + tallies[2].received, Work::from_millis(3300));
    }
}

/// Slack goes to the proportional share, through the join's other parent.
#[test]
fn what_nobody_takes_goes_to_the_share() {
    let Figure { engine, video, word, voice, .. } = figure();
    let threads = vec![(video, bursts(5, 33)), (word, Load::Endless), (voice, Load::Endless)];
    let mut simulation = ThreadSimulation::new(engine, threads, 1, Work::ZERO);
    simulation.advance(at(6600), |_, _| {});
    let received = |vp| simulation.tally(vp).expect("loaded").received;
    assert_eq!(received(word) + received(voice), Work::from_millis(5600));
    assert!((received(voice).as_nanos() - 4 * received(word).as_nanos()).abs() < 60_000_000);
    let frames = simulation.tally(video).expect("loaded");
    assert_eq!((frames.arrived, frames.met, frames.late), (200, 200, 0));
}
