//! A case: a system, the situation it is about, and the orders that follow.

use super::{Clock, Levels, Mark, Observation};
use std::collections::BTreeMap;
use talea_model::System;
use talea_record::{Event, Record};
use talea_time::Duration;

/// Which jobs have an order among each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All of a node; lane by lane where levels are ignored.
    Node,
    /// The instances of each operation.
    Operation,
}

/// What must have come about for the orders to be determined.
#[derive(Clone, Debug)]
pub enum Situation {
    /// On every node each first operation was released before any job began, and each lane held all of its own
    /// when it began the first one.
    AllAtOnce,
    /// The first was, and not after the second, if that was at all.
    Before(Mark, Mark),
    /// None of these completed.
    NoneCompleted(Vec<String>),
    /// The second job completed less than so long after the nominal release of the first.
    CompletedWithin(Duration, [String; 2]),
}

/// The second job is released so long after the first, by their nominal releases.
#[derive(Clone, Debug)]
pub enum Spacing {
    AtLeast(Duration, [String; 2]),
    LessThan(Duration, [String; 2]),
}

/// A small system and what its records must show on every clock.
pub struct Case {
    pub title: String,
    pub system: System,
    pub scope: Scope,
    pub situations: Vec<Situation>,
    /// The order of the jobs in the records of each of these events.
    pub orders: Vec<(Event, Vec<String>)>,
    /// What must be before what.
    pub precedences: Vec<(Mark, Mark)>,
    /// The same between lanes: where priorities are enforced.
    pub between_lanes: Vec<(Mark, Mark)>,
    /// What must not be.
    pub never: Vec<Mark>,
    /// How far apart the nominal releases of two jobs must be.
    pub spacings: Vec<Spacing>,
    /// The run ends when these are over.
    pub until: Vec<String>,
}

/// How often a machine may fail to bring a situation about.
const ATTEMPTS: usize = 20;

/// `a b c` as the jobs `a#0`, `b#0`, `c#0`; a number may be given as in `a#2`.
pub fn jobs(text: &str) -> Vec<String> {
    let job = |word: &str| if word.contains('#') { word.into() } else { format!("{word}#0") };
    text.split_whitespace().map(job).collect()
}

impl Case {
    /// Jobs that all begin and end in this order.
    pub fn in_order(title: String, system: System, order: &str) -> Self {
        let order = jobs(order);
        Case {
            title,
            system,
            scope: Scope::Node,
            situations: Vec::new(),
            until: order.clone(),
            orders: vec![(Event::START, order.clone()), (Event::COMPLETE, order)],
            precedences: Vec::new(),
            between_lanes: Vec::new(),
            never: Vec::new(),
            spacings: Vec::new(),
        }
    }

    pub fn given(mut self, situation: Situation) -> Self {
        self.situations.push(situation);
        self
    }

    /// Runs the case on `clock` until its situation has come about, and compares.
    ///
    /// # Panics
    /// If the records show another order, or the situation never comes about.
    pub fn check(&self, clock: &dyn Clock) {
        let mut obstacle = String::new();
        for _ in 0..ATTEMPTS {
            let observation = clock.run(&self.system, &self.until);
            match self.situations.iter().find(|situation| !situation.holds(&observation)) {
                None => return self.compare(clock, &observation),
                Some(situation) => obstacle = format!("{situation:?}"),
            }
        }
        panic!("{}: {}: in {ATTEMPTS} runs there never was {obstacle}", self.title, clock.name());
    }

    fn compare(&self, clock: &dyn Clock, observation: &Observation) {
        for (event, order) in &self.orders {
            let of_order = observation.of(*event).map(|(job, _)| job).filter(|job| order.contains(job));
            let seen: Vec<String> = of_order.collect();
            assert_eq!(
                self.parts(observation, &seen),
                self.parts(observation, order),
                "{}: {}: order of {}; left is what it was, right what it should be",
                self.title,
                clock.name(),
                event.name().unwrap_or("?"),
            );
        }
        let between_lanes = match observation.levels {
            Levels::Enforced => &self.between_lanes[..],
            Levels::Ignored => &[],
        };
        for (before, after) in self.precedences.iter().chain(between_lanes) {
            let [earlier, later] = [before, after].map(|mark| observation.when(mark));
            assert!(
                earlier.is_some() && later.is_some() && earlier <= later,
                "{}: {}: {before:?} ({earlier:?}) is not before {after:?} ({later:?})",
                self.title,
                clock.name(),
            );
        }
        for mark in &self.never {
            assert_eq!(observation.when(mark), None, "{}: {}: {mark:?} was", self.title, clock.name());
        }
        for spacing in &self.spacings {
            assert!(spacing.holds(observation), "{}: {}: not {spacing:?}", self.title, clock.name());
        }
    }

    /// `order` split into those parts that have an order.
    fn parts(&self, observation: &Observation, order: &[String]) -> BTreeMap<String, Vec<String>> {
        let mut parts: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for job in order {
            let name = job.split('#').next().expect("a split has a first part");
            let operations = &observation.metadata.operations;
            let operation =
                operations.iter().find(|operation| operation.name == name).expect("the system has it");
            let lane = &observation.metadata.lanes[operation.lane];
            let entry = &observation.metadata.nodes[lane.node];
            let node = &entry.name;
            // Beside each other lanes have no order among them.
            let levels = if entry.cpus.len() > 1 { Levels::Ignored } else { observation.levels };
            let part = match (self.scope, levels) {
                (Scope::Operation, _) => name.to_string(),
                (Scope::Node, Levels::Enforced) => node.clone(),
                (Scope::Node, Levels::Ignored) => format!("{node} level {}", lane.level),
            };
            parts.entry(part).or_default().push(job.clone());
        }
        parts
    }
}

impl Spacing {
    fn holds(&self, observation: &Observation) -> bool {
        let (Spacing::AtLeast(_, jobs) | Spacing::LessThan(_, jobs)) = self;
        let released = jobs.each_ref().map(|job| observation.nominal_release(job));
        let [Some(first), Some(second)] = released else { return false };
        match self {
            Spacing::AtLeast(least, _) => second - first >= *least,
            Spacing::LessThan(bound, _) => second - first < *bound,
        }
    }
}

impl Situation {
    fn holds(&self, observation: &Observation) -> bool {
        match self {
            Situation::AllAtOnce => all_at_once(observation),
            Situation::Before(before, after) => {
                let [earlier, later] = [before, after].map(|mark| observation.when(mark));
                earlier.is_some() && later.is_none_or(|later| earlier <= Some(later))
            }
            Situation::CompletedWithin(bound, [first, second]) => {
                let released = observation.nominal_release(first);
                let completed = observation.when(&Mark::Completed(second.clone()));
                released.zip(completed).is_some_and(|(from, to)| to - from < *bound)
            }
            Situation::NoneCompleted(jobs) => {
                jobs.iter().all(|job| observation.first(Event::COMPLETE, job).is_none())
            }
        }
    }
}

fn all_at_once(observation: &Observation) -> bool {
    let metadata = &observation.metadata;
    let node_of = |record: &Record| metadata.lanes[usize::from(record.source)].node;
    let is_lane = |source: usize| metadata.lanes[source].discipline != "thread";
    let begun_before = |release: &Record| {
        let of_lanes = |start: &&Record| is_lane(usize::from(start.source));
        let mut starts = observation.of(Event::START).map(|(_, start)| start).filter(of_lanes);
        starts.any(|start| node_of(start) == node_of(release) && start.time < release.time)
    };
    let firsts = metadata.operations.iter().filter(|operation| operation.predecessors.is_empty());
    let firsts = firsts.filter(|operation| is_lane(operation.lane));
    let mut expected = vec![0; metadata.lanes.len()];
    for operation in firsts {
        expected[operation.lane] += 1;
        let release = observation.first(Event::RELEASE, &format!("{}#0", operation.name));
        if release.is_none_or(begun_before) {
            return false;
        }
    }
    // A start record says how many jobs its lane held then.
    expected.iter().enumerate().all(|(lane, count)| {
        let first = observation.of(Event::START).find(|(_, record)| usize::from(record.source) == lane);
        first.is_none_or(|(_, record)| record.arg >= *count)
    })
}
