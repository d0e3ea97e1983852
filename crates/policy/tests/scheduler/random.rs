//! Whatever threads do in whatever hierarchy: nobody is lost, nobody runs twice, nothing is left undone.

use super::compositions::{Branch, branches, build, is_work_conserving, kinds, kinds_in, parameters};
use super::script::{at, ns, work};
use crate::hierarchy::Machine;
use proptest::prelude::*;
use talea_conformance::events::{self, Act, Lengths, Player};
use talea_policy::hierarchy::{Engine, Parameters, ProcessorId, Switch, VpId};
use talea_policy::job::Job;
use talea_policy::scheduler::{Announcing, FixedPriority};
use talea_time::Instant;

type Round = (Vec<Act>, i64);

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let act = events::acts_with_gaps(Lengths {
        deadline: 1..40,
        wcet: 0..6,
        start: 0..10,
        length: 1..30,
        work: 1..6,
    });
    proptest::collection::vec((proptest::collection::vec(act, 0..5), 0..12i64), 1..40)
}

struct Play {
    player: Player,
    /// With the branch that each is in.
    threads: Vec<(VpId, usize)>,
}

impl Play {
    fn new(branches: &[Branch], processors: usize) -> Self {
        let hierarchy = build(branches, processors);
        let (threads, planners) = (hierarchy.threads, hierarchy.planners);
        let acting = threads.iter().map(|(thread, _)| *thread).collect();
        Play { player: Player::new(Machine::new(hierarchy.engine), acting, planners, ns(1)), threads }
    }

    /// Every branch in which somebody wants a processor has one, as far as there are any.
    fn check_conservation(&self, branches: &[Branch]) {
        let mut wanting: Vec<usize> = self
            .threads
            .iter()
            .filter(|(thread, _)| self.player.machine.wants(*thread))
            .map(|(_, branch)| *branch)
            .collect();
        wanting.dedup();
        let kinds = branches.iter().flat_map(kinds_in);
        let conserving = kinds.clone().all(|kind| is_work_conserving(kind) && kind.name() != "join");
        let machine = &self.player.machine;
        let busy = machine.running().flatten().count();
        let is_there = |place: &usize| !machine.engine.is_away(ProcessorId::from_index(*place as u16));
        let there = (0..machine.engine.processors()).filter(is_there).count();
        assert!(busy <= there, "what was taken away nobody has");
        if conserving {
            let asked = wanting.len().min(machine.engine.processors());
            // Who asks for some processors is given no others while these are away.
            let away = machine.engine.processors() - there;
            assert!(busy >= asked.saturating_sub(away) && busy <= asked, "no processor idles in vain");
        }
    }

    fn play(mut self, branches: &[Branch], rounds: &[Round]) -> Vec<(Instant, Switch)> {
        for (acts, gap) in rounds {
            acts.iter().for_each(|act| self.player.act(*act));
            self.player.machine.settle();
            self.check_conservation(branches);
            let until = self.player.machine.now + ns(*gap);
            while self.player.machine.now < until {
                let timer = self.player.machine.engine.next_timer().unwrap_or(Instant::MAX);
                assert!(timer > self.player.machine.now, "a timer that is due has been fired");
                self.player.machine.advance(timer.min(until), |_, _, _| {});
                self.player.machine.settle();
                self.check_conservation(branches);
            }
        }
        self.player.machine.log
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn one_scheduler_of_any_kind(branch in branches(0), rounds in rounds()) {
        let branches = [branch];
        Play::new(&branches, 1).play(&branches, &rounds);
    }

    #[test]
    fn several_on_several_processors(
        branches in proptest::collection::vec(branches(0), 1..4), processors in 1..=3usize, rounds in rounds(),
    ) {
        Play::new(&branches, processors).play(&branches, &rounds);
    }

    #[test]
    fn hierarchies_three_deep(
        branches in proptest::collection::vec(branches(2), 1..3), processors in 1..=2usize, rounds in rounds(),
    ) {
        Play::new(&branches, processors).play(&branches, &rounds);
    }

    #[test]
    fn the_same_events_give_the_same_switches(
        branches in proptest::collection::vec(branches(1), 1..3), rounds in rounds(),
    ) {
        let first = Play::new(&branches, 1).play(&branches, &rounds);
        prop_assert_eq!(first, Play::new(&branches, 1).play(&branches, &rounds));
    }
}

/// Once every thread has had its turn, deciding does not allocate, whatever the scheduler.
#[test]
fn deciding_does_not_allocate() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..300 {
        let kind = kinds().new_tree(&mut runner).expect("kinds are never rejected").current();
        seen.insert(kind.name());
        let count = if matches!(kind.name(), "join" | "limit") { 1 } else { 4 };
        let mut engine = Engine::new(2);
        let root = engine.add_root(Box::new(FixedPriority::new()));
        let scheduler = kind.build(Announcing::Deadlines).expect("parameters are in range");
        let parent = engine.add(scheduler, &[(root, Parameters::Priority(1))]).expect("free");
        let threads: Vec<VpId> = (0..count)
            .map(|place| engine.add_thread(parent, parameters(&kind, place, count)).expect("parameters fit"))
            .collect();
        let mut instant = 0;
        let mut round = |engine: &mut Engine| {
            for thread in &threads {
                let (release, tag) = (at(instant), thread.index() as u32);
                let deadline = release + ns(20);
                let job = Job { release, deadline, wcet: work(3), rank: 0, number: instant as u64, tag };
                engine.request(*thread, job, release);
                let _ = engine.settle(release);
                instant += 1;
            }
            for _ in 0..4 {
                instant += 2;
                engine.fire_timers(at(instant));
                let _ = engine.settle(at(instant));
            }
            for thread in &threads {
                instant += 1;
                engine.release(*thread, at(instant));
                let _ = engine.settle(at(instant));
            }
        };
        round(&mut engine);
        let allocations = allocation_counter::measure(|| (0..50).for_each(|_| round(&mut engine)));
        assert_eq!(allocations.count_total, 0, "{kind:?}");
    }
    assert_eq!(seen.len(), 23, "every kind was among them: {seen:?}");
}
