//! How much of the processors a system takes at most: what a kernel that withholds a part of each period goes by.
//!
//! In a window of length W a task is executed whose instance was released before its end and not done before its beginning. With a response
//! bound R these are at most ceil((W + R) / T) instances. On one processor the first of them takes most if all its C lie in the window, at its
//! very end, and the others come as early as they can: with N = floor((W + R - C) / T), N C + min(C, W + R - C - N T) (Bertogna, Cirinei and
//! Lipari 2009, who count the work of a task in a window so).
//!
//! Below a maximum of x in y nobody takes more than x for each y that the window touches. Nor more than x at its beginning, where a period
//! ends, x at its end, where one begins, and x / y of the time between: periods that begin anew on waking, as those of reservations do, are
//! shorter, but no more than x / y of their length has been taken in them then. On one processor these two amounts take 2 x of the window.
//! And nobody takes more than there is: the node's processors for the length of the window.
//!
//! A thread without a response bound of its own may have one all the same: if every scheduler on some way down to it keeps the processor as long
//! as a child wants it, then the processor is never idle while the thread waits. So it waits for no longer than all the work of the node can last:
//! L, the least window that holds what all on the node take in it.
//!
//! Nor does a task need a response bound that has at most one instance under way, as those that arrive meanwhile are skipped: what is under way
//! when the window begins was released before all that is released in it, and counts as one more period. Where arrivals abort instead, the job
//! that is aborted may still be about to end, which is another one.
//!
//! In the long run nobody takes more than arrives: C in each T, whatever piles up, and x in y below a maximum.

use super::model::{Events, InterruptKind};
use super::place::{Below, Edge};
use super::release::Entry;
use super::{Obstacle, SystemBounds, model};
use std::collections::BTreeSet;
use talea_model::{Overrun, System};
use talea_time::Duration;

/// What the threads of a node take of its processors at most, in any window of a length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// None if it has no bound.
    pub most: Option<Duration>,
    /// The tasks and threads because of which there is none: those that are never done, or of whose jobs no bound is known how many pile up.
    pub endless: Vec<String>,
    /// What arrives in such a window in the long run, which may be more than there is; none if somebody is never done.
    pub in_the_long_run: Option<Duration>,
}

impl SystemBounds {
    /// What is taken of the processors of `node` in any window of this length, costs included, as long as responses keep to their bounds.
    pub fn taken(&self, system: &System, node: usize, window: Duration) -> Taken {
        let system = &system.with_threads_as_tasks();
        let mut endless = BTreeSet::new();
        let window = window.as_nanos().unsigned_abs();
        let backlog = self.longest_backlog(system, node);
        let taking = Taking { bounds: self, system, window, counted: Counted::Most { backlog } };
        let arriving = Taking { counted: Counted::LongRun, ..taking };
        let there_is = u128::from(window) * system.nodes[node].cpus.len() as u128;
        let most = taking.all(node, &mut endless).and_then(|all| i64::try_from(all.min(there_is)).ok());
        // Where some never end, it is they.
        let never_end = endless.iter().any(|(ends, _)| !ends);
        let named = endless.into_iter().filter(|(ends, _)| !(never_end && *ends)).map(|(_, name)| name);
        let long_run = arriving.all(node, &mut BTreeSet::new()).and_then(|all| i64::try_from(all).ok());
        Taken {
            most: most.map(Duration::from_nanos),
            endless: named.collect(),
            in_the_long_run: long_run.map(Duration::from_nanos),
        }
    }

    /// How long the work of a node can last while somebody waits for whom the processor is never idle.
    pub(super) fn longest_backlog(&self, system: &System, node: usize) -> Option<u64> {
        /// Longer ones are of no use, and a load just below a whole processor makes them as long as one likes.
        const LONGEST: u64 = 100_000_000_000;
        /// Each round looks at every edge.
        const LOOKS: usize = 5_000_000;
        let rounds = (LOOKS / self.edges.all.len().max(1)).clamp(10, 10_000);
        let mut window = 1;
        for _ in 0..rounds {
            // What comes later in the window is counted by its release.
            let counted = Counted::Most { backlog: Some(0) };
            let taking = Taking { bounds: self, system, window, counted };
            let needed = u64::try_from(taking.all(node, &mut BTreeSet::new())?).ok()?;
            match needed {
                needed if needed <= window => return Some(window),
                needed if needed > LONGEST => return None,
                needed => window = needed,
            }
        }
        None
    }
}

#[derive(Clone, Copy)]
struct Taking<'a> {
    bounds: &'a SystemBounds,
    system: &'a System,
    window: u64,
    counted: Counted,
}

/// Which work counts.
#[derive(Clone, Copy)]
enum Counted {
    /// The most that can lie in one window.
    Most {
        /// How long those wait at most who have no other bound and for whom the processor is never idle; none if that is not known.
        backlog: Option<u64>,
    },
    /// What arrives in a window on the average, however long it waits.
    LongRun,
}

impl Taking<'_> {
    /// What all on a node take.
    fn all(&self, node: usize, endless: &mut BTreeSet<(bool, String)>) -> Option<u128> {
        let roots = self.bounds.edges.all.iter().filter(|edge| edge.node == node && edge.parent.is_none());
        let below: Vec<Option<u128>> = roots.map(|edge| self.edge(edge, endless)).collect();
        let all = below.into_iter().collect::<Option<Vec<u128>>>()?;
        Some(all.iter().sum::<u128>() + self.timers(node)?)
    }

    /// What is taken by way of an edge.
    fn edge(&self, edge: &Edge, endless: &mut BTreeSet<(bool, String)>) -> Option<u128> {
        let processors = self.system.nodes[edge.node].cpus.len();
        let ceiling = edge.ceiling.map(|(amount, period)| match self.counted {
            Counted::Most { .. } => at_most(amount, period, self.window, processors),
            Counted::LongRun => self.each(period, amount),
        });
        let mut below = BTreeSet::new();
        let wanted = match &edge.below {
            Below::Place(place) => self.place(&self.bounds.model.nodes[*place], &mut below),
            Below::Scheduler(name) => {
                let children = self.bounds.edges.below(name).filter(|child| self.bounds.edges.counts(child));
                let all: Vec<Option<u128>> = children.map(|child| self.edge(child, &mut below)).collect();
                all.into_iter().collect::<Option<Vec<u128>>>().map(|all| all.iter().sum())
            }
        };
        match (wanted, ceiling) {
            (Some(wanted), Some(ceiling)) => Some(wanted.min(ceiling)),
            (None, Some(ceiling)) => Some(ceiling),
            (wanted, None) => {
                endless.extend(below);
                wanted
            }
        }
    }

    /// What the lanes or the thread of a place want.
    fn place(&self, place: &model::Node, endless: &mut BTreeSet<(bool, String)>) -> Option<u128> {
        let model = &self.bounds.model;
        let mut all = Some(0_u128);
        for segment in place.lanes.iter().flat_map(|lane| &lane.segments) {
            let segment = &model.segments[*segment];
            let never_ends = matches!(place.supply, Err(Obstacle::Endless | Obstacle::Unknown));
            let taken = match self.counted {
                Counted::Most { backlog } => self.most_of_segment(place, segment, backlog),
                Counted::LongRun => {
                    (!never_ends).then(|| self.each(segment.period, segment.cost - segment.waits))
                }
            };
            if taken.is_none() {
                endless.insert((!never_ends, self.system.tasks[segment.task].name.clone()));
            }
            all = all.zip(taken).map(|(all, taken)| all + taken);
        }
        let returns = self.interrupts(place, InterruptKind::Return)?;
        all.map(|all| all + returns)
    }

    /// What a segment takes at most; none if no bound is known on how long before the window a job arrived that is executed in it.
    fn most_of_segment(
        &self,
        place: &model::Node,
        segment: &model::Segment,
        backlog: Option<u64>,
    ) -> Option<u128> {
        let solution = &self.bounds.solution;
        let responses = segment.operations.iter().map(|operation| solution.response(*operation));
        let longest = responses.collect::<Option<Vec<i128>>>().and_then(|all| all.into_iter().max());
        let longest = longest.or(backlog.filter(|_| place.may_lag).map(i128::from));
        let longest = longest.map(i128::unsigned_abs).or_else(|| self.of_instances_under_way(segment));
        let reach = longest? + u128::from(solution.bunched(segment));
        Some(self.of_segment(segment, reach, place.processors))
    }

    /// How long before the window instances arrived at most that are executed in it, where an arrival is skipped or aborts the instance before
    /// it if that is unfinished. Only the first subtasks count as unfinished, so of a segment with others any number may be under way.
    fn of_instances_under_way(&self, segment: &model::Segment) -> Option<u128> {
        let [first] = segment.operations.as_slice() else { return None };
        if matches!(segment.entry, Entry::After(_)) {
            return None;
        }
        let periods = match self.system.tasks[segment.task].overrun {
            // Who waits may have arrived at any time before.
            Overrun::Queue | Overrun::Merge => return None,
            Overrun::SkipNext => 1,
            Overrun::Abort => 2,
        };
        let released = self.bounds.solution.releases_of(*first)?;
        Some(u128::from(released.latest) + periods * u128::from(segment.period))
    }

    /// What a segment takes, each of whose arrivals is done within `longest`.
    fn of_segment(&self, segment: &model::Segment, longest: u128, processors: usize) -> u128 {
        let (period, cost) = (u128::from(segment.period), u128::from(segment.cost - segment.waits));
        let reach = u128::from(self.window) + longest;
        if processors > 1 || longest < cost {
            return reach.div_ceil(period) * cost;
        }
        let reach = reach - cost;
        reach / period * cost + (reach % period).min(cost)
    }

    /// This much in each period of the window; no more comes in the long run.
    fn each(&self, period: u64, amount: u64) -> u128 {
        (u128::from(self.window) * u128::from(amount)).div_ceil(u128::from(period))
    }

    /// What interrupts a place takes.
    fn interrupts(&self, place: &model::Node, kind: InterruptKind) -> Option<u128> {
        let (model, solution) = (&self.bounds.model, &self.bounds.solution);
        let of_kind = place.interrupts.iter().filter(|interrupt| interrupt.kind == kind);
        let taken = |interrupt: &model::Interrupt| match (self.counted, interrupt.events) {
            (Counted::Most { .. }, _) => Some(solution.interrupting(model, interrupt)?.through(self.window)),
            (Counted::LongRun, Events::Timer { period, .. }) => Some(self.each(period, interrupt.cost)),
            (Counted::LongRun, Events::Releases(segment)) => {
                Some(self.each(model.segments[segment].period, interrupt.cost))
            }
            (Counted::LongRun, Events::Signals(segment)) => {
                let signals = model.segments[segment].entry.first_signals()?;
                Some(self.each(signals.period, interrupt.cost))
            }
        };
        of_kind.map(taken).sum()
    }

    /// What the timers of a node take, whoever pays for them: as each of its places has them, counted once.
    fn timers(&self, node: usize) -> Option<u128> {
        let place = self.bounds.edges.all.iter().find_map(|edge| match edge.below {
            Below::Place(place) if edge.node == node => Some(&self.bounds.model.nodes[place]),
            _ => None,
        });
        place.map_or(Some(0), |place| self.interrupts(place, InterruptKind::Timer))
    }
}

/// What is taken at most in a window below a maximum of `amount` in `period`.
fn at_most(amount: u64, period: u64, window: u64, processors: usize) -> u128 {
    let (amount, period, window) = (u128::from(amount), u128::from(period), u128::from(window));
    let between = if processors == 1 { window.saturating_sub(2 * amount) } else { window };
    let in_whole_periods = (window / period + 2) * amount;
    in_whole_periods.min(2 * amount + (between * amount).div_ceil(period))
}
