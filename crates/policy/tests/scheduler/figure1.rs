//! The hierarchy of Regehr and Stankovic, *HLS*, 2001, Figure 1, with the guarantees of its Figure 3.
//!
//! ```text
//!             fixed priority
//!             │2      │1
//!        reservations │
//!     5/33 │    10/20│ │
//!        video      join
//!                     │
//!             proportional share (10 ms)
//!               1 │        4 │
//!                word      voice
//! ```

use super::workload::{Demand, Workload, fair, hard, ms, reservation};
use talea_policy::hierarchy::{Engine, Parameters, VpId};
use talea_policy::scheduler::{FixedPriority, Join};

const LENGTH_MS: i64 = 6600;

/// The figure after 6.6 s, with a thread of priority `between` the two ways to the join.
struct Figure {
    load: Workload,
    video: VpId,
    word: VpId,
    voice: VpId,
    between: VpId,
}

fn figure(between: Demand) -> Figure {
    let mut engine = Engine::new(1);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let res = engine.add(Box::new(hard()), &[(root, Parameters::Priority(3))]).expect("free");
    let video = engine.add_thread(res, reservation(5, 33)).expect("15 %");
    let parents = [(res, reservation(10, 20)), (root, Parameters::Priority(1))];
    let join = engine.add(Box::new(Join::new(0)), &parents).expect("50 % more");
    let share = engine.add(Box::new(fair(10)), &[(join, Parameters::None)]).expect("alone");
    let word = engine.add_thread(share, Parameters::Weight(1)).expect("a weight");
    let voice = engine.add_thread(share, Parameters::Weight(4)).expect("a weight");
    let other = engine.add_thread(root, Parameters::Priority(2)).expect("free");
    let frames = Demand::Periodic { burst: ms(5), period: ms(33) };
    let threads = [(video, frames), (word, Demand::Endless), (voice, Demand::Endless), (other, between)];
    let load = Workload::new(engine, &threads).run(ms(LENGTH_MS));
    Figure { load, video, word, voice, between: other }
}

impl Figure {
    /// RESBH 5,33; PSBE 0.1,22; PSBE 0.4,58 (Regehr and Stankovic, section 5.3).
    fn check_guarantees(&self) {
        assert_eq!(self.load.per_period(self.video, ms(33), ms(LENGTH_MS)), (ms(5), ms(5)));
        let word = self.load.share_error(self.word, 10, ms(LENGTH_MS));
        let voice = self.load.share_error(self.voice, 40, ms(LENGTH_MS));
        assert!(word <= ms(22), "the word processor's share is off by {word}");
        assert!(voice <= ms(58), "the voice recognition's share is off by {voice}");
    }

    fn total_ms(&self, thread: VpId) -> i64 {
        self.load.received(thread, ms(0), ms(LENGTH_MS)).as_nanos() / 1_000_000
    }
}

#[test]
fn slack_goes_to_the_proportional_share() {
    let figure = figure(Demand::Periodic { burst: ms(1), period: ms(LENGTH_MS) });
    figure.check_guarantees();
    let shared = LENGTH_MS - 1 - 5 * LENGTH_MS / 33;
    assert_eq!(figure.total_ms(figure.word) + figure.total_ms(figure.voice), shared);
    assert!((figure.total_ms(figure.word) - shared / 5).abs() <= 20);
}

/// With all slack taken the join lives on its reservation alone, and the guarantees are tight.
#[test]
fn guarantees_hold_without_slack() {
    let figure = figure(Demand::Endless);
    figure.check_guarantees();
    let half = LENGTH_MS / 2;
    assert_eq!(figure.total_ms(figure.word) + figure.total_ms(figure.voice), half);
    assert_eq!(figure.total_ms(figure.between), LENGTH_MS - half - 5 * LENGTH_MS / 33);
}

#[test]
fn guarantees_hold_while_slack_comes_and_goes() {
    for (burst, period) in [(7, 13), (31, 57), (90, 210)] {
        figure(Demand::Periodic { burst: ms(burst), period: ms(period) }).check_guarantees();
    }
}
