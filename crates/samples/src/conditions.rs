//! Drawn conditions over several events and over time.

use talea_model::{Collect, Condition};
use talea_time::Duration;

/// Draws whole numbers below a bound, which is more than 0.
pub type Draw<'d> = &'d mut dyn FnMut(usize) -> usize;

fn one_of<T: Clone>(draw: Draw<'_>, all: &[T]) -> T {
    all[draw(all.len())].clone()
}

/// A condition in which each of these, of which there is one at least, stands once and may be handed on; its times are of the order of `time`.
pub fn nested(draw: Draw<'_>, leaves: &[Condition], time: Duration) -> Condition {
    let (first, others) = leaves.split_at(draw(leaves.len()));
    if !first.is_empty() {
        let parts = vec![nested(draw, first, time), nested(draw, others, time)];
        return several(draw, parts, time);
    }
    match others {
        [alone] => beside(draw, alone, time),
        _ => several(draw, others.to_vec(), time),
    }
}

fn several(draw: Draw<'_>, parts: Vec<Condition>, time: Duration) -> Condition {
    let within = (draw(3) == 0).then(|| time * one_of(draw, &[1, 7]));
    match draw(3) {
        0 => Condition::Any(parts),
        1 => Condition::All { parts, collect: one_of(draw, Collect::ALL), within },
        _ => Condition::InOrder { parts, within },
    }
}

/// One of them, which time may go with.
fn beside(draw: Draw<'_>, leaf: &Condition, time: Duration) -> Condition {
    let time = time * one_of(draw, &[2, 10, 43]);
    let leaf = leaf.clone();
    match draw(9) {
        0 => Condition::any([leaf, Condition::every(time)]),
        1 => Condition::any([leaf.clone(), Condition::unless_within(time, leaf)]),
        2 => Condition::all(Collect::Latest, [Condition::every(time), leaf]),
        3 => Condition::in_order([Condition::after(time), leaf]),
        4 => Condition::times(one_of(draw, &[2, 3]), leaf),
        5 => Condition::times(2, leaf).within(time),
        _ => leaf,
    }
}
