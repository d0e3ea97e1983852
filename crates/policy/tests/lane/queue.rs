//! The lane's queue against the list that is scanned.

use super::{LaneModel, at, disciplines, job, rules, work};
use proptest::prelude::*;
use talea_model::{LaneDispatch, Late, Laxity};
use talea_policy::discipline::Discipline;
use talea_policy::job::Job;
use talea_policy::lane::{LaneQueue, Ties};
use talea_policy::strategy::LaneRules;
use talea_time::{Instant, Work};

/// What can happen to a lane. Instants and lengths are small so that ties and lateness are frequent.
#[derive(Clone, Debug)]
enum Step {
    /// A job is released.
    Push { deadline: i64, wcet: i64, rank: u32 },
    /// The lane chooses.
    Elect,
    /// Time passes while the chosen job runs, or while the lane has no processor if nobody is chosen.
    Run(i64),
    /// Time passes while the lane has no processor.
    Wait(i64),
    /// The chosen job completes.
    Complete,
    /// Some job is aborted, counted from the oldest.
    Abort(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..14i64, 1..6i64, 0..3u32).prop_map(|(deadline, wcet, rank)| Step::Push { deadline, wcet, rank }),
        5 => Just(Step::Elect),
        4 => (0..4i64).prop_map(Step::Run),
        1 => (0..4i64).prop_map(Step::Wait),
        2 => Just(Step::Complete),
        1 => (0..6usize).prop_map(Step::Abort),
    ];
    proptest::collection::vec(step, 1..80)
}

struct Bench {
    queue: LaneQueue,
    model: LaneModel,
    now: Instant,
    chosen: Option<u32>,
    pushed: u32,
}

impl Bench {
    fn new(discipline: Discipline, rules: LaneRules, ties: Ties) -> Self {
        Bench {
            queue: LaneQueue::new(discipline, rules, 4).with_ties(ties),
            model: LaneModel::new(discipline, rules, ties),
            now: Instant::ZERO,
            chosen: None,
            pushed: 0,
        }
    }

    fn executed(&self) -> Work {
        self.chosen.and_then(|tag| self.model.executed(tag)).unwrap_or(Work::ZERO)
    }

    fn apply(&mut self, step: &Step) {
        match *step {
            Step::Push { deadline, wcet, rank } => {
                let deadline = at(self.now.as_nanos() + deadline);
                let number = u64::from(self.pushed);
                let (release, tag) = (self.now, self.pushed);
                let job = Job { release, deadline, wcet: work(wcet), rank, number, tag };
                self.pushed += 1;
                self.queue.push(job);
                self.model.push(job);
            }
            Step::Elect => {
                let elected = self.queue.elect(self.now, self.executed());
                assert_eq!(elected, self.model.choose(self.now));
                self.chosen = elected.map(|job| job.tag);
                assert_eq!(self.queue.current().map(|progress| progress.job), elected);
            }
            Step::Run(length) => {
                self.now = at(self.now.as_nanos() + length);
                if let Some(tag) = self.chosen {
                    self.model.run(tag, work(length));
                    self.assert_choice_stands();
                }
            }
            Step::Wait(length) => {
                self.charge();
                self.chosen = None;
                self.now = at(self.now.as_nanos() + length);
            }
            Step::Complete => {
                self.charge();
                if let Some(tag) = self.chosen.take() {
                    self.remove(tag);
                }
            }
            Step::Abort(which) => {
                let Some(tag) = self.model.entries.get(which).map(|entry| entry.job.tag) else {
                    return;
                };
                self.charge();
                self.chosen = self.chosen.filter(|chosen| *chosen != tag);
                self.remove(tag);
                if self.chosen.is_none() {
                    // A processor whose job went away asks the lane at once.
                    self.apply(&Step::Elect);
                }
            }
        }
    }

    fn charge(&mut self) {
        if let Some(tag) = self.chosen {
            self.queue.charge(tag, self.model.executed(tag).expect("the chosen job is unfinished"));
        }
    }

    fn remove(&mut self, tag: u32) {
        let removed = self.queue.remove(tag).expect("the lane holds it");
        let modelled = self.model.remove(tag).expect("the model holds it");
        assert_eq!((removed.job, removed.executed), (modelled.job, modelled.executed));
        assert_eq!(self.queue.remove(tag), None, "a job leaves once");
    }

    /// Whoever does not ask to be asked again is right for as long as nothing is added or removed.
    fn assert_choice_stands(&self) {
        let unchanged = self.model.entries.len() == self.queue.len();
        if unchanged && self.chosen.is_some() && !self.queue.wants_reconsideration() {
            let mut queue = self.queue.clone();
            let stays = queue.elect(self.now, self.executed()).map(|job| job.tag);
            assert_eq!(stays, self.model.choose(self.now).map(|job| job.tag));
        }
    }

    fn compare_contents(&self) {
        assert_eq!(self.queue.len(), self.model.entries.len());
        assert_eq!(self.queue.is_empty(), self.model.entries.is_empty());
        let mut held: Vec<u32> = self.queue.iter().map(|progress| progress.job.tag).collect();
        let mut modelled: Vec<u32> = self.model.entries.iter().map(|entry| entry.job.tag).collect();
        held.sort_unstable();
        modelled.sort_unstable();
        assert_eq!(held, modelled);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_queue_chooses_as_the_definition(
        discipline in disciplines(),
        rules in rules(),
        ties in prop_oneof![Just(Ties::LastRan), Just(Ties::MemberOrder)],
        steps in steps(),
    ) {
        let mut bench = Bench::new(discipline, rules, ties);
        for step in &steps {
            bench.apply(step);
            bench.compare_contents();
        }
    }

    /// Who is chosen once and not reconsidered stays right: the lane asks whenever time may change its mind.
    #[test]
    fn a_lane_that_does_not_ask_again_need_not(
        discipline in disciplines(),
        rules in rules(),
        waiting in (0..5u32).map(job).collect::<Vec<_>>(),
        ran in 1..20i64,
    ) {
        let mut queue = LaneQueue::new(discipline, rules, 8);
        waiting.iter().for_each(|job| queue.push(*job));
        let first = queue.elect(at(6), Work::ZERO).expect("it holds five jobs");
        let wants = queue.wants_reconsideration();
        let second = queue.elect(at(6 + ran), work(ran)).expect("it still does");
        prop_assert!(wants || first == second);
    }

    /// Before that instant the lane would choose the same one again, and it is told no instant that does not matter to the elected one.
    #[test]
    fn an_elected_job_stays_the_first_until_it_becomes_late(
        discipline in disciplines(),
        rules in rules(),
        waiting in (0..5u32).map(job).collect::<Vec<_>>(),
        now in 0..16i64,
        later in 1..40i64,
    ) {
        let mut queue = LaneQueue::new(discipline, rules, 8);
        waiting.iter().for_each(|job| queue.push(*job));
        let first = queue.elect(at(now), Work::ZERO).expect("it holds five jobs");
        let until = queue.elected_until(&first, at(now));
        let again = queue.elect(at(now + later), Work::ZERO).expect("it still does");
        prop_assert!(again == first || at(now + later) >= until);
        prop_assert!(until == Instant::MAX || until > at(now) && until <= first.deadline);
    }
}

/// A queue that never holds more than its capacity never allocates.
#[test]
fn a_lane_within_its_capacity_does_not_allocate() {
    let (dispatch, laxity, late) = (LaneDispatch::Preemptive, Laxity::Remaining, Late::Last);
    for discipline in [Discipline::Fifo, Discipline::Deadline, Discipline::Laxity] {
        let mut queue = LaneQueue::new(discipline, LaneRules { dispatch, laxity, late }, 32);
        let allocations =
            allocation_counter::measure(|| (0..1000).for_each(|round| fill_and_drain(&mut queue, round)));
        assert_eq!(allocations.count_total, 0, "{discipline}");
    }
}

/// Thirty-two jobs come and go, some of them late.
fn fill_and_drain(queue: &mut LaneQueue, round: u32) {
    let now = i64::from(round) * 20;
    for offset in 0..32 {
        let deadline = at(now + i64::from(offset * 7 % 13));
        let (number, tag) = (u64::from(round), offset);
        queue.push(Job { release: at(now), deadline, wcet: work(2), rank: offset, number, tag });
    }
    while let Some(job) = queue.elect(at(now + 3), Work::ZERO) {
        queue.remove(job.tag).expect("the elected job is in the lane");
    }
}
