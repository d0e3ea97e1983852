//! The events that each rule rests on, beside those of jobs' lives, where the system has what they tell of.

use super::judge::Judge;
use super::report::{Basis, Rule, UnrecordedEvents};
use crate::hierarchy::Hierarchies;
use talea_model::{Excess, LaneDispatch, Overrun, System, Trigger};
use talea_policy::discipline::Discipline;
use talea_record::Event;

/// What becomes of a rule of which some events were not recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Without {
    /// Nothing can be said: what is right would look wrong, or nothing is seen.
    Unknown,
    /// Not all that is wrong is seen.
    InPart,
    /// What looks wrong may be right.
    Doubtful,
}

/// Some events that a rule rests on.
#[derive(Clone, Copy, Debug)]
struct Ground {
    rule: Rule,
    events: &'static [Event],
    without: Without,
}

const VALUES: &[Event] = &[Event::PUBLISH, Event::TAKE, Event::DROP];
const PUSHES: &[Event] = &[Event::PUSH, Event::DELIVER];
const DELIVERIES: &[Event] = &[Event::BLOCK, Event::UNBLOCK];
const DECISIONS: &[Event] = &Hierarchies::EVENTS;
const SLEEP: &[Event] = &[Event::WAKE, Event::SLEEP];

impl Judge<'_> {
    /// What each rule rests on in this trace.
    fn grounds(&self) -> Vec<Ground> {
        let (trace, system) = (self.trace, self.system);
        let on_threads = !self.is_simulated();
        let mut grounds = Vec::new();
        let mut rest = |is_there: bool, rules: &[Rule], events: &'static [Event], without: Without| {
            let ground = |rule: &Rule| Ground { rule: *rule, events, without };
            grounds.extend(rules.iter().filter(|_| is_there).map(ground));
        };
        let any_task = |is_it: &dyn Fn(&talea_model::Task) -> bool| system.tasks.iter().any(is_it);
        let by_values = |task: &talea_model::Task| matches!(task.trigger, Some(Trigger::Output { .. }));
        let defers = |task: &talea_model::Task| {
            task.separation.is_some_and(|separation| separation.excess == Excess::Defer)
        };
        let waits = trace.inputs.iter().any(|input| input.is_waited_for);
        let has_posted = trace.tasks.iter().any(|task| task.activity.is_posted());
        let is_guarded = system.operations().iter().any(|operation| self.is_guarded(operation.id));
        let any_lane = |is_it: &dyn Fn(&super::judge::Lane) -> bool| self.lanes.iter().any(is_it);
        let is_preemptive =
            any_lane(&|lane: &super::judge::Lane| lane.order.rules.dispatch == LaneDispatch::Preemptive);
        let by_laxity = any_lane(&|lane: &super::judge::Lane| lane.order.discipline == Discipline::Laxity);
        let of_processors = [Rule::Lanes, Rule::Idle, Rule::Dispatching];

        rest(!system.inputs().is_empty(), &[Rule::Values], VALUES, Without::Unknown);
        rest(any_task(&by_values), &[Rule::Triggers], VALUES, Without::InPart);
        rest(waits && !on_threads, &[Rule::Life], VALUES, Without::InPart);
        // Whoever waits for room keeps its lane until somebody takes.
        rest(waits && !on_threads, &of_processors, &[Event::TAKE], Without::Unknown);
        rest(takes_events(system), &[Rule::Events], PUSHES, Without::Unknown);
        let inherits = any_task(&|task| task.inherits_deadline);
        rest(inherits, &[Rule::Release], VALUES, Without::InPart);
        rest(inherits, &[Rule::Release], PUSHES, Without::InPart);
        // On threads alone guards tell what they do.
        rest(on_threads && is_guarded, &[Rule::Release], &[Event::SIGNAL], Without::InPart);
        let is_deferred = any_task(&defers);
        rest(on_threads && is_deferred, &[Rule::Triggers], &[Event::OPEN], Without::Unknown);
        rest(on_threads && is_deferred, &[Rule::Release], &[Event::OPEN], Without::InPart);
        let merges_at_guards = any_task(&|task| task.overrun == Overrun::Merge && task.separation.is_some());
        rest(on_threads && merges_at_guards, &[Rule::Overrun], &[Event::GUARD], Without::InPart);
        rest(merges_at_guards, &[Rule::Overrun], &[Event::HELD], Without::InPart);
        rest(is_deferred, &[Rule::Arrivals], &[Event::HELD], Without::InPart);
        // With the priority of a delivery that waits for it a job goes before its lane's turn.
        let of_deliveries = [Rule::Life, Rule::Lanes, Rule::Idle, Rule::Dispatching, Rule::Order];
        rest(has_posted, &of_deliveries, DELIVERIES, Without::Unknown);
        rest(has_posted && by_laxity, &[Rule::Order], &[Event::JOB_WCET], Without::Unknown);
        rest(on_threads && is_preemptive, &[Rule::Order], &[Event::NO_SLOT], Without::Unknown);
        rest(on_threads, &[Rule::Order], &[Event::TIMER], Without::Doubtful);
        // A lane that schedulers keep off chooses nothing.
        rest(on_threads && self.lanes_decide.contains(&false), &[Rule::Order], DECISIONS, Without::Doubtful);
        // Threads that come and go take instances and bursts with them.
        let has_threads = trace.tasks.iter().any(|task| task.activity.is_thread());
        let leavers = [Rule::Overrun, Rule::Arrivals];
        rest(on_threads && has_threads, &leavers, &[Event::EDGE_CHANGE], Without::Unknown);
        grounds
    }

    /// Which events of what the rules rest on were not recorded, and what that leaves of each rule.
    pub(super) fn unrecorded(&self) -> Vec<UnrecordedEvents> {
        let mut found: Vec<UnrecordedEvents> = Vec::new();
        let recorded = &self.coverage.recorded;
        let mut lacks = |rule: Rule, missing: Vec<String>, basis: Basis| {
            if missing.is_empty() {
                return;
            }
            match found.iter_mut().find(|known| known.rule == rule) {
                Some(known) => {
                    known.basis = known.basis.max(basis);
                    known.events.extend(missing);
                    known.events.sort();
                    known.events.dedup();
                }
                None => found.push(UnrecordedEvents { rule, basis, events: missing }),
            }
        };
        for Ground { rule, events, without } in self.grounds() {
            let basis = match without {
                Without::Unknown => Basis::Unrecorded,
                Without::InPart => Basis::InPart,
                Without::Doubtful => Basis::Doubtful,
            };
            lacks(rule, recorded.missing(events), basis);
        }
        // A thread of which it is recorded that it wakes, and never that it sleeps, seems awake all the time; where neither is, nothing is assumed.
        if !self.is_simulated() && recorded.missing(SLEEP).len() == 1 {
            for rule in [Rule::Lanes, Rule::Idle, Rule::Dispatching] {
                lacks(rule, recorded.missing(SLEEP), Basis::Unrecorded);
            }
        }
        found.sort_by_key(|unrecorded| unrecorded.rule as usize);
        found
    }
}

/// Whether any operation has events of a channel.
fn takes_events(system: &System) -> bool {
    system.operations().iter().any(|operation| system.subscription_of(operation.id).is_some())
}
