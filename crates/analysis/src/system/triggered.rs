//! When tasks are released that values of other tasks or something outside trigger.
//!
//! Everything is seen from the *arrival*: the instant at which something outside happens or the value is published that triggers. Deadlines
//! count from there.
//!
//! * **From outside**, with the separation s and the burst b: b - 1 + ceil(D / s) = ceil((D + (b - 1) s) / s), so that the arrivals are those of
//!   a task of period s that may be *bunched* by (b - 1) s: k + 1 of them take at least k s - (b - 1) s. What keeps to that finds the guard
//!   open; only those that come at the same instant follow each other a nanosecond apart, which is at most b - 1 nanoseconds.
//! * **By every n-th value** of a task of period P whose operation completes at most R after its arrival: the completions, in their order, lie
//!   within R of the arrivals, in their order, so that k + 1 triggers take at least k n P - R: period n P, bunched by R (and by what the
//!   producer's arrivals are bunched). The best case is taken as zero. Some values that do not count (`on = "change"`, overruns) only make it fewer.
//! * **With a separation** s <= n P, a guard holds releases apart: for others they are a task of period s, bunched by (b - 1) s. Trigger i is
//!   let through at the latest of signal(j) + (i - j - b + 1) s over the j up to i - b, and of its own signal. With the signals bunched by J,
//!   signal(i) >= signal(j) + (i - j) n P - J, so that it waits for at most J - (b n P - s), for the difference shrinks as i - j grows.
//!   With s > n P it waits longer every time: the guard is overloaded.
//!
//! * **By events** of several operations: what each pushes as above, and all of it together ([`Curve::merged`]); of a conjunction or sequence that
//!   of its rarest part, and one more, for what it needs of that may have come before; of timers their period, for one that waits whether something
//!   comes begins anew after it has come true. Filters, discarding and expiring only make it fewer.
//!
//! * **With an inherited deadline** everything is seen from the arrival of the job that releases, which is the task's own arrival then: arrivals are
//!   bunched as those of the producer are, and each release is up to R after its arrival. (Such a task has no guard.)
//!
//! A guard protects the others whatever happens before it. Where it may hold arrivals back without end, the task itself has no bound, and
//! everything behind the guard counts from the release.

use super::Obstacle;
use super::release::{Completion, Releases};
use std::collections::HashMap;
use talea_model::{
    Arrivals, Excess, OperationId, OutsideArrivals, Overrun, Subscription, System, TIME_LIMIT, Task, Trigger,
};

/// What releases the first subtasks of a task, on one node.
#[derive(Debug)]
pub(super) struct Triggered {
    source: Source,
    /// How long a message from the producer travels.
    shortest: u64,
    longest: u64,
    guard: Option<Guard>,
    /// Whether arrival and deadline are those of the job that releases it.
    inherits: bool,
}

#[derive(Debug)]
enum Source {
    /// Something outside, which keeps to this; none where nothing is known of it.
    Outside(Option<Curve>),
    /// Values of this operation, of which one triggers in each period.
    Values { producer: usize, period: u64 },
    /// Events of operations, each of which pushes one in its period.
    Events(Arrivals<(usize, u64)>),
}

/// k + 1 events take at least k periods, less what they may be bunched by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Curve {
    pub period: u64,
    pub bunched: u64,
}

impl Curve {
    /// The one that is bunched more.
    pub fn or_more(self, other: Curve) -> Curve {
        Curve { period: self.period, bunched: self.bunched.max(other.bunched) }
    }

    /// The most that comes within a time, both ends included; none if that cannot be counted.
    pub fn most_in(self, time: u64) -> Option<u64> {
        (time.checked_add(self.bunched)? / self.period).checked_add(1)
    }

    /// What comes of several together: in any time D as many of each as ceil((D + b) / P), which is at most D / P + (b + P - 1) / P.
    fn merged(curves: impl Iterator<Item = Curve> + Clone) -> Option<Curve> {
        let period = curves.clone().map(|curve| curve.period).reduce(merged_period)?;
        let (of, all) =
            (u128::from(period), curves.map(|curve| (u128::from(curve.period), u128::from(curve.bunched))));
        let share = |(each, bunched): (u128, u128)| {
            Some(of.checked_mul(bunched.checked_add(each)? - 1)?.div_ceil(each))
        };
        let sum = all.map(share).try_fold(0_u128, |sum, share| sum.checked_add(share?))?;
        // One more than this is the least integer above, and what a single curve comes to is that curve.
        Some(Curve { period, bunched: u64::try_from((sum + 1).saturating_sub(of)).ok()? })
    }

    /// Whether a guard lets all of it through at once: of those, b + 1 take at least a separation, and no more come in the long run.
    fn conforms(&self, separation: u64, burst: u64) -> bool {
        self.period >= separation
            && u128::from(self.bunched) + u128::from(separation)
                <= u128::from(burst) * u128::from(self.period)
    }
}

#[derive(Clone, Copy, Debug)]
struct Guard {
    separation: u64,
    burst: u64,
    excess: Excess,
    /// Whether what comes while one waits is merged with that one.
    merges: bool,
}

impl Guard {
    fn of(task: &Task) -> Option<Self> {
        let separation = task.separation?;
        Some(Guard {
            separation: separation.separation.as_nanos().unsigned_abs(),
            burst: separation.burst.into(),
            excess: separation.excess,
            merges: task.overrun == Overrun::Merge,
        })
    }

    /// What it lets through.
    fn curve(&self) -> Curve {
        Curve {
            period: self.separation,
            bunched: self.separation.saturating_mul(self.burst.saturating_sub(1)),
        }
    }

    /// How many instances have room at it.
    fn room(&self) -> u64 {
        self.burst.max(128)
    }
}

/// What a guard makes of what comes to it.
struct Held {
    /// How long it holds one back at most; none if without end.
    longest: Option<u64>,
    /// Whether one may be dropped, for being early or for want of room.
    drops: bool,
}

impl Guard {
    fn hold(&self, signals: Option<Curve>) -> Held {
        let between = self.burst.saturating_sub(1);
        let conforms = signals.is_some_and(|signals| signals.conforms(self.separation, self.burst));
        match (self.excess, signals) {
            _ if conforms => Held { longest: Some(between), drops: false },
            (Excess::Drop, _) => Held { longest: Some(between), drops: true },
            // It waits alone, for the guard to open after the last one, or for the next instant.
            (Excess::Defer, _) if self.merges => Held { longest: Some(self.separation.max(1)), drops: false },
            (Excess::Count, _) if self.merges => Held { longest: Some(1), drops: false },
            (Excess::Count, Some(signals)) => {
                Held { longest: Some(signals.bunched / signals.period), drops: false }
            }
            (Excess::Defer, Some(signals)) if signals.period >= self.separation => {
                let open = u128::from(self.burst) * u128::from(signals.period) - u128::from(self.separation);
                let held = u64::try_from(open).map_or(0, |open| signals.bunched.saturating_sub(open));
                let waiting = held / self.separation + 2 + self.burst;
                Held { longest: held.checked_add(between), drops: waiting > self.room() }
            }
            (Excess::Count | Excess::Defer, _) => Held { longest: None, drops: true },
        }
    }
}

impl Triggered {
    /// What releases the first subtask `first`.
    pub fn new(system: &System, task: usize, first: OperationId) -> Self {
        let described = &system.tasks[task];
        let (guard, inherits) = (Guard::of(described), described.inherits_deadline);
        if let Some(Trigger::Events(subscription)) = &described.trigger {
            let pushers = events_of(system, task, subscription, |operation| {
                (operation.index(), released_every(system, system.operations()[operation.index()].task))
            });
            return Triggered { source: Source::Events(pushers), shortest: 0, longest: 0, guard, inherits };
        }
        let Some(output) = system.trigger_output(task) else {
            let source = Source::Outside(outside(described));
            return Triggered { source, shortest: 0, longest: 0, guard, inherits };
        };
        let producer = system.outputs()[output.index()].operation;
        let node = |id| system.subtask(id).node;
        let route = system.route(node(producer), node(first));
        let every = match described.trigger {
            Some(Trigger::Output { every, .. }) => u64::from(every),
            _ => 1,
        };
        let period = released_every(system, system.operations()[producer.index()].task).saturating_mul(every);
        Triggered {
            source: Source::Values { producer: producer.index(), period },
            shortest: route.delay.as_nanos().unsigned_abs(),
            longest: route.longest().as_nanos().unsigned_abs(),
            guard,
            inherits,
        }
    }

    /// Whether a message brings the trigger.
    pub fn comes_as_message(system: &System, task: usize, first: OperationId) -> bool {
        let producer = system.trigger_output(task).map(|output| system.outputs()[output.index()].operation);
        producer.is_some_and(|producer| system.subtask(producer).node != system.subtask(first).node)
    }

    /// Whether a guard stands before the task.
    pub fn is_guarded(&self) -> bool {
        self.guard.is_some()
    }

    /// What comes to the guard, or releases at once where there is none; `None` if nothing bounds how much.
    pub fn signals(&self, completion: impl Fn(usize) -> Option<Completion>) -> Option<Curve> {
        let spread = self.longest - self.shortest;
        let completed = |producer| {
            let known = completion(producer)?;
            known.released.bunched.checked_add(known.latest)?.checked_add(spread)
        };
        self.curve(completed)
    }

    /// What comes of producers of which each, by its operation, is bunched so; `None` if nothing bounds how much.
    fn curve(&self, bunched: impl Fn(usize) -> Option<u64>) -> Option<Curve> {
        match &self.source {
            Source::Outside(curve) => *curve,
            Source::Events(arrivals) => curve_of(arrivals, &bunched),
            &Source::Values { producer, period } => Some(Curve { period, bunched: bunched(producer)? }),
        }
    }

    /// The operations of which each may release it.
    fn producers(&self) -> Vec<usize> {
        match &self.source {
            Source::Outside(_) => Vec::new(),
            Source::Values { producer, .. } => vec![*producer],
            Source::Events(arrivals) => {
                arrivals.producers().into_iter().map(|(producer, _)| *producer).collect()
            }
        }
    }

    /// The releases of a task of which arrival and deadline are those of the job that releases it, given what is known of the producers.
    fn inherited(&self, completion: impl Fn(usize) -> Option<Completion>) -> Option<Releases> {
        let Curve { bunched, .. } = self.curve(|producer| Some(completion(producer)?.released.bunched))?;
        let producers: Vec<Completion> =
            self.producers().into_iter().map(completion).collect::<Option<_>>()?;
        let latest = producers.iter().map(|known| known.latest).max()?.checked_add(self.longest)?;
        let held = producers.iter().map(|known| known.released.held).max()?;
        let backlogged = producers.iter().any(|known| known.released.backlogged);
        // Jobs of several complete in any order.
        let in_order =
            matches!(producers.as_slice(), [alone] if alone.in_order) && self.longest == self.shortest;
        let earliest = self.shortest;
        let jitter = (latest - earliest).checked_add(bunched)?;
        Some(Releases { earliest, latest, jitter, in_order, bunched, held, backlogged })
    }

    /// Before anything is known of others.
    pub fn first(&self) -> Releases {
        self.releases(nothing_known).unwrap_or(Releases::PERIODIC)
    }

    /// The same of what comes to the guard.
    pub fn first_signals(&self) -> Option<Curve> {
        self.signals(nothing_known)
    }

    /// The releases, given what is known of the producer; `None` if others have to reckon with any number of them.
    pub fn releases(&self, completion: impl Fn(usize) -> Option<Completion>) -> Option<Releases> {
        if self.inherits {
            return self.inherited(completion);
        }
        let in_order = self.longest == self.shortest;
        let signals = self.signals(&completion);
        let Some(guard) = self.guard else {
            let Curve { bunched: jitter, .. } = signals?;
            let bunched = jitter - (self.longest - self.shortest);
            let (earliest, latest) = (self.shortest, self.longest);
            return Some(Releases { earliest, latest, jitter, in_order, bunched, ..Releases::PERIODIC });
        };
        let is_counted = guard.excess == Excess::Count && !self.is_declared(&completion);
        let passes = if is_counted { signals? } else { guard.curve() };
        let held = guard.hold(signals).longest;
        let latest = held.map_or(Some(0), |held| self.longest.checked_add(held))?;
        let late = if is_counted { held.unwrap_or(0) } else { 0 };
        Some(Releases {
            earliest: 0,
            latest,
            jitter: passes.bunched.checked_add(late)?,
            in_order,
            bunched: passes.bunched,
            held: held.unwrap_or(0),
            backlogged: held.is_none(),
        })
    }

    /// Whether what comes keeps to what is declared of it.
    fn is_declared(&self, completion: impl Fn(usize) -> Option<Completion>) -> bool {
        match (&self.source, self.guard) {
            (Source::Outside(curve), Some(guard)) => {
                curve.is_some_and(|curve| curve.conforms(guard.separation, guard.burst))
            }
            // Values are counted with as they come.
            (Source::Values { .. } | Source::Events(_), Some(guard)) => {
                guard.excess != Excess::Count && self.signals(completion).is_some()
            }
            (_, None) => true,
        }
    }

    /// Whether an arrival may release nothing, for being early or for want of room at the guard.
    pub fn may_drop(&self, completion: impl Fn(usize) -> Option<Completion>) -> bool {
        self.guard.is_some_and(|guard| guard.hold(self.signals(completion)).drops)
    }

    /// Why there is no bound where arrivals may be held back without end, or nothing bounds them.
    pub fn obstacle(&self) -> Obstacle {
        let comes_every = match &self.source {
            Source::Outside(_) => return Obstacle::Undeclared,
            Source::Values { period, .. } => Some(*period),
            Source::Events(arrivals) => comes_every_of(arrivals, &|(_, period)| *period),
        };
        match (comes_every, self.guard) {
            (None, _) => Obstacle::Undeclared,
            (Some(period), Some(guard)) if period < guard.separation && !guard.merges => Obstacle::Backlog,
            _ => Obstacle::Waits,
        }
    }
}

/// What comes as often as that, of producers of which each is bunched so; `None` if nothing bounds how much.
fn curve_of(arrivals: &Arrivals<(usize, u64)>, bunched: &impl Fn(usize) -> Option<u64>) -> Option<Curve> {
    match arrivals {
        Arrivals::Of((producer, period)) => Some(Curve { period: *period, bunched: bunched(*producer)? }),
        Arrivals::Any(parts) => {
            let those = parts.iter().filter(|part| part.can_come());
            let curves: Vec<Curve> = those.map(|part| curve_of(part, bunched)).collect::<Option<_>>()?;
            Curve::merged(curves.iter().copied())
        }
        Arrivals::All(parts) => {
            let curves: Vec<Curve> =
                parts.iter().map(|part| curve_of(part, bunched)).collect::<Option<_>>()?;
            // It comes true once for each time that its rarest part does, and once for one that came before.
            let rarest = curves.iter().copied().max_by_key(|curve| curve.period)?;
            let kept = if parts.len() > 1 { rarest.period } else { 0 };
            Some(Curve { bunched: rarest.bunched.checked_add(kept)?, ..rarest })
        }
        // Of k + 1 times there are k * count periods between the first and the last, less what these are bunched by.
        Arrivals::Nth(count, part) => {
            let curve = curve_of(part, bunched)?;
            Some(Curve { period: curve.period.saturating_mul((*count).into()), ..curve })
        }
        Arrivals::Every(period) => Some(Curve { period: period.as_nanos().unsigned_abs(), bunched: 0 }),
        Arrivals::Once => Some(Curve { period: TIME_LIMIT.as_nanos().unsigned_abs(), bunched: 0 }),
    }
}

/// How far apart in the long run that is, of producers of which this is known; none if it never comes.
fn comes_every_of<P>(arrivals: &Arrivals<P>, of: &impl Fn(&P) -> u64) -> Option<u64> {
    match arrivals {
        Arrivals::Of(producer) => Some(of(producer)),
        Arrivals::Any(parts) => {
            parts.iter().filter_map(|part| comes_every_of(part, of)).reduce(merged_period)
        }
        Arrivals::All(parts) => {
            let all: Option<Vec<u64>> = parts.iter().map(|part| comes_every_of(part, of)).collect();
            all?.into_iter().max()
        }
        Arrivals::Nth(count, part) => Some(comes_every_of(part, of)?.saturating_mul((*count).into())),
        Arrivals::Every(period) => Some(period.as_nanos().unsigned_abs()),
        Arrivals::Once => Some(TIME_LIMIT.as_nanos().unsigned_abs()),
    }
}

/// How often a task is released by events of operations, of which this is known.
fn events_of<P>(
    system: &System,
    task: usize,
    subscription: &Subscription,
    of: impl Fn(OperationId) -> P,
) -> Arrivals<P> {
    let sites: Vec<(OperationId, &[usize])> =
        system.subscribed_by(task).map(|(site, leaves)| (site.operation, leaves)).collect();
    subscription.arrivals(|some| {
        let those = sites.iter().filter(|(_, leaves)| leaves.iter().any(|leaf| some.contains(leaf)));
        those.map(|(operation, _)| of(*operation)).collect()
    })
}

/// What is taken for known of producers at first: they complete at once.
fn nothing_known(_: usize) -> Option<Completion> {
    Some(Completion { released: Releases::PERIODIC, latest: 0, response: 0, in_order: true })
}

/// What arrivals from outside keep to: what is declared, unless the file draws others; `None` if those keep to nothing.
fn outside(task: &Task) -> Option<Curve> {
    let guard = Guard::of(task).expect("validation demands a separation of triggers from outside");
    let declared = guard.curve();
    let Some(Trigger::External { arrivals }) = &task.trigger else { return Some(declared) };
    match arrivals {
        OutsideArrivals::None | OutsideArrivals::Sporadic { .. } => Some(declared),
        OutsideArrivals::Periodic { period, jitter } => {
            let length = |time: talea_time::Duration| time.as_nanos().unsigned_abs();
            let drawn = Curve { period: length(*period), bunched: length(*jitter) };
            Some(if drawn.conforms(guard.separation, guard.burst) { declared } else { drawn })
        }
        OutsideArrivals::Poisson { .. } => None,
        OutsideArrivals::Listed(times) => {
            // The virtual scheduling algorithm: each is due a separation after the one before, and may be the burst earlier.
            let mut due = i128::MIN;
            let conforms = times.iter().all(|time| {
                let at = i128::from(time.as_nanos());
                let is_early = at < due.saturating_sub(i128::from(declared.bunched));
                due = due.max(at) + i128::from(guard.separation);
                !is_early
            });
            conforms.then_some(declared)
        }
    }
}

/// Whether what the file draws from outside for a task may come faster than it declares.
pub(super) fn breaks_declaration(task: &Task) -> bool {
    matches!(task.trigger, Some(Trigger::External { .. }))
        && Guard::of(task).is_some_and(|guard| outside(task) != Some(guard.curve()))
}

/// How far apart in the long run what comes from two is, of which each comes so often.
fn merged_period(one: u64, other: u64) -> u64 {
    let (one, other) = (u128::from(one.max(1)), u128::from(other.max(1)));
    u64::try_from((one * other / (one + other)).max(1)).expect("it is less than each of the two")
}

/// How often a task is released in the long run: its period, of a triggered one what is declared, or how often values or events come where no
/// guard stands before it.
pub(super) fn released_every(system: &System, task: usize) -> u64 {
    let mut known: HashMap<usize, u64> = HashMap::new();
    let mut asked = vec![task];
    while let Some(&at) = asked.last() {
        let described = &system.tasks[at];
        let period = described.period.as_nanos().unsigned_abs();
        let counts = described.separation.is_some_and(|separation| separation.excess == Excess::Count);
        let comes_through = described.separation.is_none() || counts;
        let arrivals = match &described.trigger {
            Some(Trigger::Output { .. } | Trigger::Events(_)) if comes_through => arrivals(system, at),
            Some(Trigger::External { .. }) if counts && breaks_declaration(described) => {
                known.insert(at, outside(described).map_or(period, |drawn| drawn.period));
                asked.pop();
                continue;
            }
            _ => None,
        };
        let producers = arrivals.iter().flat_map(Arrivals::producers);
        if let Some((producer, _)) = producers.into_iter().find(|(producer, _)| !known.contains_key(producer))
        {
            asked.push(*producer);
            continue;
        }
        let of = |(producer, every): &(usize, u64)| known[producer].saturating_mul(*every);
        let triggered = arrivals.and_then(|arrivals| comes_every_of(&arrivals, &of));
        known.insert(at, triggered.unwrap_or(period));
        asked.pop();
    }
    known[&task]
}

/// How often a task is triggered: by tasks, with how many of their jobs that takes.
fn arrivals(system: &System, task: usize) -> Option<Arrivals<(usize, u64)>> {
    let task_of = |operation: OperationId| system.operations()[operation.index()].task;
    match (&system.tasks[task].trigger, system.trigger_output(task)) {
        (Some(Trigger::Output { every, .. }), Some(output)) => {
            let producer = system.outputs()[output.index()].operation;
            Some(Arrivals::Of((task_of(producer), u64::from(*every))))
        }
        (Some(Trigger::Events(subscription)), _) => {
            Some(events_of(system, task, subscription, |operation| (task_of(operation), 1)))
        }
        _ => None,
    }
}
