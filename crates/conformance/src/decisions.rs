//! Whether a scheduler's decisions hold together, whatever its threads do and whenever, also while it takes another's place or another
//! takes its.

use crate::Machine;
use crate::events::{self, Act, Lengths, Player};
use crate::forest::{self, ParameterDraws, Tree};
use crate::promises::cases;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use talea_guarantee::scheduler::{Parameter, Values};
use talea_model::{SchedulerKind, Setting, System};
use talea_policy::arrangement::arrange;
use talea_policy::arrangement::live::{Change, Insistence, Live};
use talea_policy::hierarchy::Switch;
use talea_policy::strategy::plan_lanes_of;
use talea_time::{Duration, Instant};

/// In which times are drawn: a tenth of a millisecond.
const UNIT: Duration = Duration::from_micros(100);

/// What happens at one instant.
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// A thread does something.
    Act(Act),
    /// A scheduler takes the place of another.
    Replace(Replacement),
}

/// A scheduler of this kind takes the place of another, or one of another kind takes the place of one of this.
#[derive(Clone, Copy, Debug)]
struct Replacement {
    /// Which scheduler, modulo how many there are.
    who: usize,
    /// What it becomes; none for the kind that is tested.
    by: Option<SchedulerKind>,
    /// What is said of it.
    parameters: ParameterDraws,
}

/// What happens, and how long nothing does after that.
type Round = (Vec<Deed>, i64);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let lengths = Lengths { deadline: 1..200, wcet: 0..60, start: 0..100, length: 1..200, work: 1..60 };
    let replacement = (0..16usize, prop::option::of(forest::kinds()), forest::parameter_draws());
    let deed = prop_oneof![
        15 => events::acts_with_gaps(lengths).prop_map(Deed::Act),
        1 => replacement.prop_map(|(who, by, parameters)| Deed::Replace(Replacement { who, by, parameters })),
    ];
    prop::collection::vec((prop::collection::vec(deed, 0..5), 0..150i64), 1..40)
}

/// The values of each parameter that schedulers of the kind have had.
#[derive(Default)]
struct Exercised(RefCell<BTreeMap<&'static str, HashSet<String>>>);

impl Exercised {
    fn note(&self, tree: &Tree, kind: SchedulerKind) {
        let mut values = self.0.borrow_mut();
        tree.parameters_of(kind, &mut |parameters| {
            let quantum =
                parameters.quantum(kind).map(|quantum| (Parameter::QUANTUM.name, Setting::Time(quantum)));
            for (name, setting) in parameters.settings(kind).into_iter().chain(quantum) {
                values.entry(name).or_default().insert(setting.to_string());
            }
        });
    }

    /// Fails if a parameter has had one value only, though it takes several.
    fn check(&self, kind: SchedulerKind) {
        for (name, values) in self.0.borrow().iter() {
            let parameter = kind.parameter(name).expect("it is declared");
            let takes_one = matches!(parameter.values, Values::Integer { min, max } if min == max)
                || matches!(parameter.values, Values::Word([_]));
            assert!(takes_one || values.len() > 1, "{kind} was tried with {name} = {values:?} only");
        }
    }
}

/// Fails unless the books of everybody agree at every decision, and the same events give the same ones.
pub(crate) fn check(kind: SchedulerKind, number: u32) {
    let config = ProptestConfig { failure_persistence: None, ..cases(number) };
    let (number, replaced, exercised) = (config.cases, Cell::new(0), Exercised::default());
    let outcome = TestRunner::new(config).run(&(forest::trees_with(kind), rounds()), |(tree, rounds)| {
        // With some of what can be said of it, a scheduler may have less room for children.
        let tree = if Play::new(&tree, kind).is_ok() { tree } else { tree.with_presets() };
        exercised.note(&tree, kind);
        let play = || Play::new(&tree, kind).map(|play| play.all(&rounds));
        let first = play().map_err(|refusal| TestCaseError::fail(format!("{refusal}\n{}", tree.drawn())))?;
        replaced.set(replaced.get() + first.1);
        prop_assert_eq!(Some(first), play().ok(), "the same events give other decisions\n{}", tree.drawn());
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{kind}: {error}"));
    if number >= 20 {
        exercised.check(kind);
    }
    assert!(
        replaced.get() > 0 || number < 20 || kind.chooses_parent(),
        "no {kind} scheduler took the place of another in {number} hierarchies"
    );
}

struct Play {
    player: Player,
    live: Live,
    kind: SchedulerKind,
    /// Replacements in which the kind was there before or afterwards.
    replaced: u32,
}

impl Play {
    fn new(tree: &Tree, kind: SchedulerKind) -> Result<Self, String> {
        let system: System = tree.system_on(&[0]);
        let plans = plan_lanes_of(&system).expect("there are no tasks");
        let arranged = arrange(&system, 0, &plans[0], 1).map_err(|error| error.to_string())?;
        let mut arrangement = arranged.expect("the node has a hierarchy");
        let mut live = Live::new(&system, 0, &arrangement).map_err(|error| error.to_string())?;
        let (mut threads, mut planners) = (Vec::new(), Vec::new());
        for leaf in std::mem::take(&mut arrangement.leaves) {
            let vp = arrangement.add_thread(&system, &leaf).map_err(|error| error.to_string())?;
            live.joined(&system.threads[leaf.thread].name, vp);
            threads.push(vp);
            planners.push((leaf.parent, vp));
        }
        let player = Player::new(Machine::new(arrangement.engine), threads, planners, UNIT);
        Ok(Play { player, live, kind, replaced: 0 })
    }

    /// Every decision that was made, and how often somebody was replaced.
    fn all(mut self, rounds: &[Round]) -> (Vec<(Instant, Switch)>, u32) {
        for (deeds, gap) in rounds {
            for deed in deeds {
                match deed {
                    Deed::Act(act) => self.player.act(*act),
                    Deed::Replace(replacement) => self.replace(*replacement),
                }
            }
            let machine = &mut self.player.machine;
            machine.settle();
            let until = machine.now + UNIT * *gap;
            while machine.now < until {
                let timer = machine.engine.next_timer().unwrap_or(Instant::MAX);
                assert!(timer > machine.now, "a timer that is due has been fired");
                machine.advance(timer.min(until), |_, _, _| {});
                machine.settle();
            }
        }
        (self.player.machine.log, self.replaced)
    }

    /// Puts one scheduler in the place of another, as a running hierarchy does; what is refused leaves no trace.
    fn replace(&mut self, Replacement { who, by, parameters }: Replacement) {
        let schedulers = &self.live.system().schedulers;
        let replaced = &schedulers[who % schedulers.len()];
        let (name, before, kind) = (replaced.name.clone(), replaced.kind, by.unwrap_or(self.kind));
        let children: Vec<String> =
            self.live.blueprint().children(&name).map(|(post, _)| post.name.clone()).collect();
        let mut settings = forest::settings(kind, &children);
        settings.extend(parameters.settings(kind));
        let quantum = parameters.quantum(kind);
        let request =
            |(place, child): (usize, &String)| (child.clone(), forest::beside(kind, children.len(), place));
        let children = children.iter().enumerate().map(request).collect();
        let change = Change::Replace { name, kind, quantum, settings, children };
        let Ok(planned) = self.live.plan(&change, Insistence::Forced) else { return };
        let machine = &mut self.player.machine;
        let Ok(renewed) = self.live.carry_out(&planned, &mut machine.engine, machine.now) else { return };
        self.live.adopt(planned, renewed);
        self.replaced += u32::from(before == self.kind || kind == self.kind);
    }
}
