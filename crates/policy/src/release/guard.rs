//! Guards: how long a synchronisation protocol holds a subtask back after its join (Sun and Liu 1996).
//!
//! Every subtask with predecessors has a guard, unless its task is released greedily. What is signalled waits there, first come first served,
//! until the guard opens; each opening lets one instance through, so that no two are released at one instant.
//!
//! | Protocol | The guard opens |
//! |---|---|
//! | release guard | a period after the release before (rules 1 and 2) |
//! | … with idle points | also at an idle point of the node, all guards at once (rule 3) |
//! | … with idle points, one at a time | also at an idle point, that of the instance that was signalled first and still waits |
//! | phase modification | at the task's arrival and the response bounds of all subtasks before |
//! | modified phase modification | at the release of the predecessor and its response bound |
//!
//! What releases a task from outside, or by a value of another task, is a signal as well, to the guards of its first subtasks. These keep what
//! is declared of such arrivals: with the distance `s` and the burst `b`, at most `b - 1 + ceil(t / s)` releases in any time `t`
//! ([`Separation`]). What comes too early waits, is dropped, or is let through and counted.
//!
//! An *idle point* of a node is an instant at which nothing that was released earlier on it is unfinished. Whoever drives the guards sees to that.
//!
//! A release happens, to the rules, when the guard opens or the signal comes, whichever is later, and not when a thread gets around to it. So
//! neither what a thread is late by nor how often it is adds up: nothing drifts.

use super::bounds::ResponseBounds;
use std::collections::VecDeque;
use talea_model::{Excess, OperationId, Separation, Synchronisation, System};
use talea_time::{Duration, Instant};

/// Instances that may wait at a guard beside those that its bounds make wait; more are refused.
const ROOM: usize = 128;
/// The most that have room besides where bounds are many periods long: memory is there before the run. Who finds no room is refused and counted.
const ROOM_FOR_BOUNDS: usize = 64 * 1024;

/// Releases of one operation are at least this far apart, whatever the protocol.
const AN_INSTANT: Duration = Duration::from_nanos(1);

/// Of a job for whose timer nobody has to wait: one that has expired long ago.
pub const NO_TIMER: Instant = Instant::from_nanos(i64::MIN);

/// An instance whose predecessors are done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signal {
    /// Number of the instance.
    pub instance: u64,
    /// Its absolute deadline.
    pub deadline: Instant,
    /// When the last signal that it needed came.
    pub at: Instant,
    /// Under modified phase modification: the latest of its predecessors' releases and bounds.
    pub not_before: Instant,
    /// Whether a message brought that signal.
    pub way: Way,
}

/// How a signal comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the node itself.
    Local,
    /// As a message from another node.
    Message,
}

/// What becomes of a signal.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The instance waits at the guard, which lets it through at this instant, or earlier at an idle point.
    Until(Instant),
    /// As many wait as there is room for. The instance is not released; the refusal is counted.
    Refused,
    /// It came earlier than is declared, and such instances are dropped. It is not released; that is counted.
    Dropped,
}

/// An instance that a guard lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The operation.
    pub operation: OperationId,
    /// The instance.
    pub signal: Signal,
    /// When it is released.
    pub at: Instant,
}

/// An instance that waits first at a guard that opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The place of the guard.
    pub place: usize,
    /// The operation.
    pub operation: OperationId,
    /// The instance.
    pub signal: Signal,
    /// Whether the guard has kept it from being released when it came.
    pub is_held: bool,
    /// How many wait there, with this one.
    pub waiting: usize,
}

/// What waits for the jobs of a task that events release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WaitingEvents {
    /// Events that wait, and may be delivered.
    pub all: usize,
    /// Those of them that came no later than the release in question.
    pub come_by_then: usize,
}

impl WaitingEvents {
    /// Whether they need a release, before which so many jobs have been released that have taken none yet, and with which `waiting` instances wait to be
    /// released. If not, what it was for has expired: a job would find no event, or one that has a release of its own.
    pub fn need(&self, released: usize, waiting: usize) -> bool {
        self.come_by_then > released || self.all >= released + waiting
    }
}

/// When a guard opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// A period after the release before, and at idle points.
    Separation { period: Duration, idle: AtIdlePoints },
    /// This long after the nominal arrival, which is `deadline` before the instance's deadline.
    Phase { offset: Duration, deadline: Duration },
    /// As the signal says.
    Timer,
    /// As is declared of what comes from outside. The guard opens for the next one as soon as that keeps to it.
    Sporadic(Separation),
}

/// What an idle point does to a guard that holds releases apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AtIdlePoints {
    Nothing,
    Opens,
    OpensForOne,
}

/// When a guard opens that was to open at `opens` and let an instance through at `at`, in which order the bucket of a virtual scheduling
/// algorithm (ITU-T I.371, GCRA) fills: with the distance `s` and the burst `b` the next conforms from `max(opens + (b - 1) s, at) - (b - 2) s` on.
fn opens_after(separation: &Separation, opens: Instant, at: Instant) -> Instant {
    let Separation { separation: distance, burst, .. } = *separation;
    let times = |count: i64| distance.checked_mul(count).unwrap_or(Duration::MAX);
    let (ahead, back) = (times(i64::from(burst) - 1), i64::from(burst) - 2);
    let full = opens.saturating_add(ahead).max(at);
    if back < 0 { full.saturating_add(distance) } else { full.saturating_add(-times(back)) }
}

/// The guard of one operation.
#[derive(Clone, Debug)]
struct Guard {
    operation: OperationId,
    rule: Rule,
    /// When it opens for the first that waits; under phase modification only the floor of that.
    opens: Instant,
    /// The release before.
    last: Option<Instant>,
    /// Preallocated.
    waiting: VecDeque<Signal>,
    room: usize,
    refused: u64,
    overruns: u64,
    worst_overrun: Option<BoundOverrun>,
    excess: u64,
}

impl Guard {
    fn new(system: &System, operation: OperationId, bounds: &ResponseBounds) -> Self {
        let described = &system.operations()[operation.index()];
        let task = &system.tasks[described.task];
        if let (true, Some(separation)) = (described.predecessors.is_empty(), task.separation) {
            // One more than events may wait: should it be full, one of the releases is for none of them.
            let events = match &task.trigger {
                Some(talea_model::Trigger::Events(subscription)) => {
                    system.subscription_qos(subscription).max_events as usize + 1
                }
                _ => 0,
            };
            let room = ROOM.max(separation.burst as usize).max(events);
            return Guard::of_rule(operation, Rule::Sporadic(separation), room);
        }
        let period = task.period;
        let offset = bounds.offset(operation);
        let separation = |idle| Rule::Separation { period, idle };
        let rule = match task.sync {
            Synchronisation::Greedy => unreachable!("nothing is held back"),
            Synchronisation::ReleaseGuard => separation(AtIdlePoints::Nothing),
            Synchronisation::ReleaseGuardIdle => separation(AtIdlePoints::Opens),
            Synchronisation::ReleaseGuardIdleOne => separation(AtIdlePoints::OpensForOne),
            Synchronisation::PhaseModification => Rule::Phase { offset, deadline: task.deadline },
            Synchronisation::ModifiedPhaseModification => Rule::Timer,
        };
        // What is signalled at once waits for as long as its bounds last.
        let of_bounds = usize::try_from(offset.as_nanos() / period.as_nanos()).unwrap_or(ROOM_FOR_BOUNDS);
        let room = ROOM + of_bounds.min(ROOM_FOR_BOUNDS);
        Guard::of_rule(operation, rule, room)
    }

    fn of_rule(operation: OperationId, rule: Rule, room: usize) -> Self {
        let opens = Instant::from_nanos(i64::MIN);
        let waiting = VecDeque::with_capacity(room);
        Guard {
            operation,
            rule,
            opens,
            last: None,
            waiting,
            room,
            refused: 0,
            overruns: 0,
            worst_overrun: None,
            excess: 0,
        }
    }

    /// The first instant at which another instance may be released at all.
    fn apart(&self) -> Instant {
        self.last.map_or(Instant::from_nanos(i64::MIN), |last| last.saturating_add(AN_INSTANT))
    }

    /// What the protocol plans for an instance, whatever else waits.
    fn planned(&self, signal: &Signal) -> Instant {
        match self.rule {
            Rule::Separation { .. } => self.opens,
            Rule::Sporadic(Separation { excess: Excess::Count, .. }) => signal.at,
            Rule::Sporadic(_) => self.opens,
            Rule::Phase { offset, deadline } => {
                (signal.deadline.saturating_add(-deadline)).saturating_add(offset)
            }
            Rule::Timer => signal.not_before,
        }
    }

    /// When the first that waits is released; never if none does.
    fn due(&self) -> Instant {
        let due = |signal: &Signal| self.planned(signal).max(self.apart()).max(signal.at);
        self.waiting.front().map_or(Instant::MAX, due)
    }

    /// When the one that waits behind `ahead` others is released, as far as is known by now.
    fn due_of(&self, ahead: usize) -> Instant {
        match self.rule {
            Rule::Separation { period, .. } => {
                let after = period.checked_mul(ahead as i64).unwrap_or(Duration::MAX);
                self.due().saturating_add(after)
            }
            Rule::Sporadic(separation) => {
                let (mut opens, mut last) = (self.opens, self.apart());
                for signal in self.waiting.iter().take(ahead) {
                    let at = opens.max(last).max(signal.at);
                    (opens, last) = (opens_after(&separation, opens, at), at.saturating_add(AN_INSTANT));
                }
                opens.max(last).max(self.waiting[ahead].at)
            }
            Rule::Phase { .. } | Rule::Timer => {
                let signal = &self.waiting[ahead];
                self.planned(signal).max(signal.at).max(self.due())
            }
        }
    }

    /// From when on a signal comes no earlier than is declared, after all that waits has been let through.
    fn conforms_from(&self, separation: &Separation) -> Instant {
        let open = |opens: Instant, waiting: &Signal| {
            let at = if separation.excess == Excess::Count { waiting.at } else { opens.max(waiting.at) };
            opens_after(separation, opens, at)
        };
        self.waiting.iter().fold(self.opens, open)
    }

    fn idle(&self) -> AtIdlePoints {
        match self.rule {
            Rule::Separation { idle, .. } => idle,
            Rule::Phase { .. } | Rule::Timer | Rule::Sporadic(_) => AtIdlePoints::Nothing,
        }
    }

    /// Whether an idle point at `now` came after the release before, so that it is not the one at which that took place.
    fn has_rested(&self, now: Instant) -> bool {
        self.last.is_none_or(|last| last < now)
    }

    /// An idle point opens it.
    fn open(&mut self, now: Instant) {
        if self.has_rested(now) {
            self.opens = self.opens.min(now);
        }
    }

    /// The instance that waits first is released at `at`.
    fn let_through(&mut self, at: Instant) -> Release {
        let signal = self.waiting.pop_front().expect("an instance waits");
        self.last = Some(at);
        match self.rule {
            Rule::Separation { period, .. } => self.opens = at.saturating_add(period),
            Rule::Sporadic(separation) => self.opens = opens_after(&separation, self.opens, at),
            Rule::Phase { .. } | Rule::Timer => {}
        }
        Release { operation: self.operation, signal, at }
    }
}

/// What guards have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instances that found no room to wait.
    pub refused: u64,
    /// Signals that came after the instant that response bounds had promised.
    pub bound_overruns: u64,
    /// The latest of these against its promise; the first of several.
    pub worst_overrun: Option<BoundOverrun>,
}

/// Instances that came earlier than is declared of what releases their task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyArrivals {
    /// The first operation of the task.
    pub operation: OperationId,
    /// How many.
    pub arrivals: u64,
    /// What became of them.
    pub excess: Excess,
}

/// A signal that came later than response bounds had promised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundOverrun {
    /// What waited for it.
    pub operation: OperationId,
    /// The instance of that.
    pub instance: u64,
    /// By how much it was late.
    pub by: Duration,
}

impl BoundOverrun {
    /// The worse of two, if there are any; the first if both are as late.
    pub fn worst(both: [Option<Self>; 2]) -> Option<Self> {
        both.into_iter().flatten().rev().max_by_key(|overrun| overrun.by)
    }
}

/// The guards of one node.
#[derive(Clone, Debug)]
pub struct Guards {
    guards: Vec<Guard>,
    /// Places of guards at which something waits, in no order; preallocated.
    waiting: Vec<u32>,
    /// When the first of them is due.
    next: Instant,
    /// The latest idle point.
    idle_point: Option<Instant>,
    /// The latest idle point at which one was let through.
    one_let_through: Option<Instant>,
}

impl Guards {
    /// The guards of the node at index `node`, in the order of the operations: each operation with predecessors whose task is not released
    /// greedily has one, and so has each first subtask of a task whose triggered releases are to be apart. Guards are known by their places in this order.
    pub fn of_node(system: &System, node: usize, bounds: &ResponseBounds) -> Self {
        let guarded = system.operations().iter().filter(|operation| {
            let task = &system.tasks[operation.task];
            let is_guarded = match operation.predecessors.is_empty() {
                true => task.separation.is_some(),
                false => task.sync != Synchronisation::Greedy,
            };
            is_guarded && system.subtask(operation.id).node == node
        });
        let guards: Vec<Guard> = guarded.map(|operation| Guard::new(system, operation.id, bounds)).collect();
        Guards {
            waiting: Vec::with_capacity(guards.len()),
            guards,
            next: Instant::MAX,
            idle_point: None,
            one_let_through: None,
        }
    }

    /// The operations that have guards, in the order of their places.
    pub fn operations(&self) -> impl Iterator<Item = OperationId> {
        self.guards.iter().map(|guard| guard.operation)
    }

    /// Whether nothing is ever held back here.
    pub fn is_empty(&self) -> bool {
        self.guards.is_empty()
    }

    /// Whether idle points matter to any of the guards.
    pub fn heeds_idle_points(&self) -> bool {
        self.guards.iter().any(|guard| guard.idle() != AtIdlePoints::Nothing)
    }

    /// When the next instance is to be let through; never while none waits.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// What all guards have counted.
    pub fn counts(&self) -> Counts {
        let add = |sum: Counts, guard: &Guard| Counts {
            refused: sum.refused + guard.refused,
            bound_overruns: sum.bound_overruns + guard.overruns,
            worst_overrun: BoundOverrun::worst([sum.worst_overrun, guard.worst_overrun]),
        };
        self.guards.iter().fold(Counts::default(), add)
    }

    /// What came earlier than declared, of each operation of which anything did.
    pub fn early_arrivals(&self) -> impl Iterator<Item = EarlyArrivals> {
        self.guards.iter().filter(|guard| guard.excess > 0).filter_map(|guard| match guard.rule {
            Rule::Sporadic(Separation { excess, .. }) => {
                Some(EarlyArrivals { operation: guard.operation, arrivals: guard.excess, excess })
            }
            _ => None,
        })
    }

    /// The instance that `signal` is about waits at the guard at `place`.
    pub fn signal(&mut self, place: usize, signal: Signal) -> Taken {
        let guard = &mut self.guards[place];
        if guard.waiting.len() == guard.room {
            guard.refused += 1;
            return Taken::Refused;
        }
        if let Rule::Sporadic(separation) = guard.rule {
            let is_early = guard.conforms_from(&separation) > signal.at;
            guard.excess += u64::from(is_early);
            if is_early && separation.excess == Excess::Drop {
                return Taken::Dropped;
            }
        }
        if guard.waiting.is_empty() {
            self.waiting.push(place as u32);
            // A guard at which nothing waits is reset by idle points without being visited.
            if guard.idle() == AtIdlePoints::Opens
                && let Some(idle_point) = self.idle_point
            {
                guard.open(idle_point);
            }
        }
        let planned = guard.planned(&signal);
        let is_planned = matches!(guard.rule, Rule::Phase { .. } | Rule::Timer);
        if is_planned && signal.at > planned {
            guard.overruns += 1;
            let by = Duration::from_nanos(signal.at.as_nanos().saturating_sub(planned.as_nanos()));
            let overrun = BoundOverrun { operation: guard.operation, instance: signal.instance, by };
            guard.worst_overrun = BoundOverrun::worst([guard.worst_overrun, Some(overrun)]);
        }
        guard.waiting.push_back(signal);
        self.next = self.next.min(guard.due());
        Taken::Until(guard.due_of(guard.waiting.len() - 1))
    }

    /// Whether any instance waits at the guard at `place`.
    pub fn holds_any(&self, place: usize) -> bool {
        !self.guards[place].waiting.is_empty()
    }

    /// From when on a signal to the guard at `place` comes no earlier than is declared of what comes from outside.
    pub fn conforms_from(&self, place: usize) -> Instant {
        let guard = &self.guards[place];
        match &guard.rule {
            Rule::Sporadic(separation) => guard.conforms_from(separation),
            Rule::Separation { .. } | Rule::Phase { .. } | Rule::Timer => Instant::from_nanos(i64::MIN),
        }
    }

    /// When an instance that waits at the guard at `place` is let through, if no idle point comes before; `None` if it does not wait.
    pub fn until(&self, place: usize, instance: u64) -> Option<Instant> {
        let guard = &self.guards[place];
        let position = guard.waiting.iter().rposition(|signal| signal.instance == instance)?;
        Some(guard.due_of(position))
    }

    /// `now` is an idle point of the node.
    pub fn idle_point(&mut self, now: Instant) {
        self.idle_points(now, now);
    }

    /// All instants from `from` to `to` are idle points of the node: who tells of them late tells of all that he has not told of.
    pub fn idle_points(&mut self, from: Instant, to: Instant) {
        self.idle_point = Some(from);
        let mut first: Option<(Instant, u32)> = None;
        for &place in &self.waiting {
            let guard = &mut self.guards[place as usize];
            match guard.idle() {
                AtIdlePoints::Nothing => {}
                AtIdlePoints::Opens => guard.open(from),
                AtIdlePoints::OpensForOne => {
                    let signalled = guard.waiting.front().map_or(Instant::MAX, |signal| signal.at);
                    // Who comes after an idle point does not pass by it.
                    let at = signalled.max(from);
                    let is_held = at <= to && guard.due() > at && guard.has_rested(at);
                    if is_held && first.is_none_or(|earlier| (signalled, place) < earlier) {
                        first = Some((signalled, place));
                    }
                }
            }
        }
        if let Some((signalled, place)) = first
            && self.one_let_through != Some(to)
        {
            self.one_let_through = Some(to);
            self.guards[place as usize].open(signalled.max(from));
        }
        self.find_next();
    }

    /// An instance that is due by `now`: the one that is due first, then by place. It is to be [let through](Self::let_through) or
    /// [withdrawn](Self::withdraw).
    #[inline]
    pub fn next_due(&self, now: Instant) -> Option<Due> {
        if self.next > now {
            return None;
        }
        let order = |place: &u32| (self.guards[*place as usize].due(), *place);
        let place = self.waiting.iter().copied().min_by_key(order)? as usize;
        let guard = &self.guards[place];
        let signal = *guard.waiting.front().expect("an instance waits");
        let is_held = guard.due() > signal.at;
        Some(Due { place, operation: guard.operation, signal, is_held, waiting: guard.waiting.len() })
    }

    /// Lets the instance through that waits first at the guard at `place`.
    ///
    /// # Panics
    /// If none does.
    pub fn let_through(&mut self, place: usize) -> Release {
        let guard = &mut self.guards[place];
        let release = guard.let_through(guard.due());
        self.one_has_left(place);
        release
    }

    /// The instance that waits first at the guard at `place` is not to be released any more: to those behind it, it has not come.
    ///
    /// # Panics
    /// If none waits.
    pub fn withdraw(&mut self, place: usize) {
        self.guards[place].waiting.pop_front().expect("an instance waits");
        self.one_has_left(place);
    }

    fn one_has_left(&mut self, place: usize) {
        if self.guards[place].waiting.is_empty() {
            self.waiting.retain(|with| *with as usize != place);
        }
        self.find_next();
    }

    fn find_next(&mut self) {
        let dues = self.waiting.iter().map(|place| self.guards[*place as usize].due());
        self.next = dues.min().unwrap_or(Instant::MAX);
    }
}

#[cfg(test)]
mod tests;
