//! Systems that cross all features: each node has lanes or a hierarchy, in which there may be lanes again.

mod chains;
mod channels;
mod code;
mod conditions;
mod deliveries;
mod events;
mod hierarchy;
mod program;
mod tasks;
mod values;

pub use code::{Called, Calls, Changed, code, with_digests};
pub use deliveries::{Deliveries, loses_order};
pub use events::{constraint, event};
pub use program::{Consumed, Notes, set_up};
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::path::Path;
use talea_model::{
    Description, LaneDispatch, Late, Laxity, Link, LinkEnds, LossRate, Node, Overhead, Route, Strategy,
    System, parse,
};
use talea_time::{Duration, Work};

/// How much is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Up to three nodes, some of two processors.
    Large,
    /// A node or two of one processor each, for which some hundred milliseconds on real threads are enough.
    Small,
}

/// The system of this seed; none if what was drawn is refused.
pub fn system(seed: u64, size: Size) -> Option<System> {
    let system = System::new(description(seed, size)).ok()?;
    if system.tasks.iter().all(|task| task.trigger.is_none()) {
        return Some(system);
    }
    // With the periods of tasks that others release, which follow from these when a file is read.
    parse("drawn.toml", &system.to_toml(), Path::new(".")).ok().map(|read| read.system)
}

/// The small system of this seed, or of one of some that follow from it, that has channels; none if what was drawn is refused, or all of them have none.
pub fn system_with_channels(seed: u64) -> Option<System> {
    let mut drawn =
        (0..8).filter_map(|turn: u32| system(seed ^ u64::from(turn).rotate_left(50), Size::Small));
    drawn.find(|system| !system.channels.is_empty())
}

/// Numbers that follow from a seed.
pub fn numbers(seed: u64) -> Pcg64Mcg {
    Pcg64Mcg::seed_from_u64(seed)
}

/// One of `choices`.
pub fn one_of<T: Copy>(rng: &mut impl Rng, choices: &[T]) -> T {
    choices[rng.random_range(0..choices.len())]
}

fn micros(us: i64) -> Duration {
    Duration::from_micros(us)
}

fn description(seed: u64, size: Size) -> Description {
    let rng = &mut numbers(seed);
    let mut description = Description {
        name: format!("drawn-{seed}"),
        strategy: one_of(rng, Strategy::ALL),
        lane_dispatch: one_of(rng, LaneDispatch::ALL),
        laxity: one_of(rng, Laxity::ALL),
        late: one_of(rng, Late::ALL),
        seed: seed >> 12,
        overhead: overhead(rng),
        nodes: Vec::new(),
        links: Vec::new(),
        channels: Vec::new(),
        tasks: Vec::new(),
        chains: Vec::new(),
        schedulers: Vec::new(),
        threads: Vec::new(),
    };
    let nodes = match size {
        Size::Large => one_of(rng, &[1, 1, 1, 2, 3]),
        Size::Small => one_of(rng, &[1, 1, 2]),
    };
    // Nodes share no processors.
    let mut free = 0..;
    let mut lanes = Vec::new();
    for node in 0..nodes {
        let width = if size == Size::Large { one_of(rng, &[1, 1, 1, 2]) } else { 1 };
        let cpus: Vec<u16> = free.by_ref().take(width).collect();
        description.nodes.push(Node { name: format!("n{node}"), cpus: cpus.clone() });
        if rng.random_ratio(2, 5) || hierarchy::add(&mut description, rng, (node, &cpus)) {
            lanes.push(node);
        }
    }
    if !lanes.is_empty() {
        tasks::add(&mut description, rng, &lanes);
        if rng.random_ratio(1, 3) {
            channels::add(&mut description, rng);
        }
        // By numbers of their own, so that other seeds go on to be what they were.
        let of_values = &mut numbers(seed.rotate_left(16));
        if of_values.random_ratio(1, 3) {
            values::add(&mut description, of_values, size);
        }
        let of_plans = &mut numbers(seed.rotate_left(40));
        if of_plans.random_ratio(1, 4) {
            values::plan(&mut description, of_plans);
        }
        let of_waits = &mut numbers(seed.rotate_left(32));
        if of_waits.random_ratio(1, 3) {
            values::wait(&mut description, of_waits, size);
        }
        let of_conditions = &mut numbers(seed.rotate_left(24));
        if of_conditions.random_ratio(1, 2) {
            conditions::nest(&mut description, of_conditions);
        }
        place(&mut description, rng);
        let of_takers = &mut numbers(seed.rotate_left(4));
        if of_takers.random_ratio(1, 2) {
            channels::take(&mut description, of_takers);
        }
        let of_chains = &mut numbers(seed.rotate_left(48));
        if of_chains.random_ratio(1, 2) {
            chains::read_twice(&mut description, of_chains);
        }
        chains::add(&mut description, of_chains);
        let of_headers = &mut numbers(seed.rotate_left(56));
        if of_headers.random_ratio(1, 2) {
            channels::head(&mut description, of_headers);
            tasks::inherit(&mut description, of_headers);
        }
    }
    description.links = links(rng, nodes);
    description
}

/// Subtasks of nodes that have several schedulers of kind `lanes` are each in the lanes of one of them.
fn place(description: &mut Description, rng: &mut impl Rng) {
    let lanes: Vec<Vec<usize>> =
        (0..description.nodes.len()).map(|node| description.lanes_on(node).collect()).collect();
    for subtask in description.tasks.iter_mut().flat_map(|task| &mut task.subtasks) {
        if let several @ [_, _, ..] = &lanes[subtask.node][..] {
            subtask.lanes = Some(one_of(rng, several));
        }
    }
}

/// Half of the systems have no costs, the others some of each kind.
fn overhead(rng: &mut impl Rng) -> Overhead {
    if rng.random_ratio(1, 2) {
        return Overhead::default();
    }
    let mut cost = || Work::from_micros(one_of(rng, &[0, 0, 3, 10, 40]));
    Overhead::of(|_| cost())
}

fn links(rng: &mut impl Rng, nodes: usize) -> Vec<Link> {
    let mut links = Vec::new();
    for from in 0..nodes {
        for to in from + 1..nodes {
            if rng.random_ratio(1, 3) {
                links.push(Link { ends: LinkEnds::Between(from, to), route: route(rng) });
            }
        }
    }
    if nodes > 1 && rng.random_ratio(1, 2) {
        links.push(Link { ends: LinkEnds::Others, route: route(rng) });
    }
    links
}

fn route(rng: &mut impl Rng) -> Route {
    Route {
        delay: micros(one_of(rng, &[0, 50, 900])),
        jitter: micros(one_of(rng, &[0, 0, 300, 20_000])),
        loss: LossRate::from_share(one_of(rng, &[0.0, 0.0, 0.05])).expect("a share"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_what_is_drawn_is_a_system() {
        for size in [Size::Large, Size::Small] {
            let refusals: Vec<String> = (0..200)
                .filter_map(|seed| System::new(description(seed, size)).err())
                .map(|violations| format!("{:?}", violations.first()))
                .collect();
            assert!(refusals.len() < 60, "{} of 200 {size:?}: {:#?}", refusals.len(), &refusals[..10]);
        }
    }
}
