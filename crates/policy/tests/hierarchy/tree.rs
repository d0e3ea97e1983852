//! Hierarchies of fixed-priority schedulers over lanes, and which lanes must run in them.

use proptest::prelude::*;
use talea_policy::discipline::Discipline;
use talea_policy::hierarchy::{Engine, Parameters, SchedulerId};
use talea_policy::lane::LaneQueue;
use talea_policy::scheduler::{FixedPriority, LaneScheduler};
use talea_policy::strategy::LaneRules;

/// A scheduler and everything below it; children highest first.
#[derive(Clone, Debug)]
pub enum Tree {
    Lane {
        discipline: Discipline,
        rules: LaneRules,
    },
    /// `width`: the most processors it asks for at a time, one own VP each.
    Fixed {
        width: usize,
        children: Vec<Tree>,
    },
}

/// Trees of the given number of fixed-priority levels below the root, which is one too.
pub fn trees(levels: u32) -> impl Strategy<Value = Tree> {
    let lane = (crate::lane::disciplines(), crate::lane::rules())
        .prop_map(|(discipline, rules)| Tree::Lane { discipline, rules })
        .boxed();
    let below = (0..levels).fold(lane.clone(), |below, _| {
        let fixed = (1..=4usize, proptest::collection::vec(below, 1..6))
            .prop_map(|(width, children)| Tree::Fixed { width, children });
        prop_oneof![2 => fixed, 1 => lane.clone()].boxed()
    });
    proptest::collection::vec(below, 1..5).prop_map(|children| Tree::Fixed { width: usize::MAX, children })
}

/// The engine for `tree` as the root on `processors` processors, and its lanes in order of priority.
pub fn build(tree: &Tree, processors: usize) -> (Engine, Vec<SchedulerId>) {
    let mut engine = Engine::new(processors);
    let root = engine.add_root(Box::new(FixedPriority::new()));
    let mut lanes = Vec::new();
    let Tree::Fixed { children, .. } = tree else { panic!("the root is a fixed-priority scheduler") };
    add_children(&mut engine, root, children, &mut lanes);
    (engine, lanes)
}

fn add_children(engine: &mut Engine, parent: SchedulerId, children: &[Tree], lanes: &mut Vec<SchedulerId>) {
    let mut priority = 0;
    let mut next = || {
        priority -= 1;
        (parent, Parameters::Priority(priority))
    };
    for child in children {
        match child {
            Tree::Lane { discipline, rules } => {
                let queue = LaneQueue::new(*discipline, *rules, 8);
                let scheduler = Box::new(LaneScheduler::new(queue));
                lanes.push(engine.add(scheduler, &[next()]).expect("priorities are distinct"));
            }
            Tree::Fixed { width, children } => {
                let own: Vec<_> = (0..*width).map(|_| next()).collect();
                let id = engine.add(Box::new(FixedPriority::new()), &own).expect("priorities are distinct");
                add_children(engine, id, children, lanes);
            }
        }
    }
}

/// Marks in `runs` which lanes must run on `processors` processors when `backlog[i]` says how many jobs the
/// `i`-th lane of the tree has: at every scheduler the higher child takes what it can use before the lower
/// gets anything, a lane can use one processor and a scheduler one per own VP.
pub fn expected(tree: &Tree, processors: usize, backlog: &[usize]) -> Vec<bool> {
    let mut runs = Vec::new();
    give(tree, processors, backlog, &mut runs);
    runs
}

fn give(tree: &Tree, processors: usize, backlog: &[usize], runs: &mut Vec<bool>) {
    match tree {
        Tree::Lane { .. } => runs.push(processors > 0),
        Tree::Fixed { children, .. } => {
            let mut left = processors;
            for child in children {
                let share = usable(child, &backlog[runs.len()..]).min(left);
                left -= share;
                give(child, share, backlog, runs);
            }
        }
    }
}

/// How many processors `tree`, whose lanes are the first of `backlog`, can use.
fn usable(tree: &Tree, backlog: &[usize]) -> usize {
    match tree {
        Tree::Lane { .. } => usize::from(backlog[0] > 0),
        Tree::Fixed { width, children } => {
            let mut first = 0;
            let mut sum = 0;
            for child in children {
                sum += usable(child, &backlog[first..]);
                first += lanes_in(child);
            }
            sum.min(*width)
        }
    }
}

fn lanes_in(tree: &Tree) -> usize {
    match tree {
        Tree::Lane { .. } => 1,
        Tree::Fixed { children, .. } => children.iter().map(lanes_in).sum(),
    }
}

/// Discipline and rules of every lane, in the order of [`build`].
pub fn lane_kinds(tree: &Tree) -> Vec<(Discipline, LaneRules)> {
    match tree {
        Tree::Lane { discipline, rules } => vec![(*discipline, *rules)],
        Tree::Fixed { children, .. } => children.iter().flat_map(lane_kinds).collect(),
    }
}
