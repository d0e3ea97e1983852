//! Inherited deadlines: each instance has that of a job which published or pushed what releases it.

use super::arrivals::firsts;
use super::judge::Judge;
use super::report::Rule;
use std::collections::VecDeque;
use talea_model::{OperationId, System, Trigger};
use talea_record::JobId;
use talea_record::event::Release;
use talea_time::{Duration, Instant};

/// Deadlines that are remembered: more than can be under way at any time.
const REMEMBERED: usize = 1 << 14;

/// A deadline that is handed on, and when.
#[derive(Clone, Copy, Debug)]
struct HandedOn {
    at: Instant,
    due: Instant,
}

/// What a first subtask has of those that release its task.
#[derive(Debug)]
struct Heir {
    /// The deadlines of the jobs that have published or pushed for it, in this order, but for those that an instance had, and those before.
    handed_on: VecDeque<HandedOn>,
    /// By how much one may be released before another although it was handed on later; none where that may be any time.
    slack: Option<Duration>,
}

/// A job whose deadline nobody has handed on: right if a program has pushed the event that releases it.
#[derive(Clone, Copy, Debug)]
struct Unexplained {
    told: Release,
    at: Instant,
}

/// What is known of the deadlines that tasks may inherit.
#[derive(Debug)]
pub(super) struct Inheritance {
    /// By operation, of those whose jobs hand their deadlines on: instances that were released, and when they are due.
    jobs: Vec<Option<VecDeque<(u64, Instant)>>>,
    /// By operation, of the first ones of tasks that inherit.
    heirs: Vec<Option<Heir>>,
    /// By publication: the heirs of those that push there.
    of_publications: Vec<Vec<OperationId>>,
    /// By task, whether a job had an event which a program has pushed.
    hears_programs: Vec<bool>,
    unexplained: VecDeque<Unexplained>,
}

impl Inheritance {
    pub fn new(system: &System, is_simulated: bool, tolerance: Duration) -> Self {
        let inherits = |task: &usize| system.tasks[*task].inherits_deadline;
        let publications = system.publications().iter();
        let heirs_of = |tasks: &mut dyn Iterator<Item = usize>| {
            tasks.filter(inherits).flat_map(|task| firsts(system, task)).collect::<Vec<OperationId>>()
        };
        let of_publications: Vec<Vec<OperationId>> = publications
            .map(|site| heirs_of(&mut site.released().map(|subscriber| subscriber.task)))
            .collect();
        let mut jobs = vec![None; system.operations().len()];
        let publications = system.publications().iter().map(|site| site.operation).zip(&of_publications);
        let pushing = publications.filter(|(_, heirs)| !heirs.is_empty()).map(|(operation, _)| operation);
        let outputs = system.outputs().iter().filter(|output| output.triggers.iter().any(inherits));
        for operation in pushing.chain(outputs.map(|output| output.operation)) {
            jobs[operation.index()] = Some(VecDeque::new());
        }
        let mut heirs: Vec<Option<Heir>> = system.operations().iter().map(|_| None).collect();
        for first in (0..system.tasks.len()).filter(inherits).flat_map(|task| firsts(system, task)) {
            let slack = slack(system, first, is_simulated).map(|slack| slack + tolerance);
            heirs[first.index()] = Some(Heir { handed_on: VecDeque::new(), slack });
        }
        let hears_programs = vec![false; system.tasks.len()];
        Inheritance { jobs, heirs, of_publications, hears_programs, unexplained: VecDeque::new() }
    }

    /// A job was released.
    pub fn see(&mut self, told: &Release) {
        // Operations that were declared while the run lasted hand nothing on.
        if let Some(Some(jobs)) = self.jobs.get_mut(told.job.operation.index()) {
            remember(jobs, (told.job.instance, told.deadline));
        }
    }

    /// The job published a value at `at` that releases the task.
    pub fn published(&mut self, system: &System, job: JobId, task: usize, at: Instant) {
        if let Some(due) = self.due(job) {
            for first in firsts(system, task) {
                self.hand_on(first, HandedOn { at, due });
            }
        }
    }

    /// The job pushed an event of the publication of this number at `at`.
    pub fn pushed(&mut self, job: JobId, publication: usize, at: Instant) {
        if let Some(due) = self.due(job) {
            for place in 0..self.of_publications[publication].len() {
                self.hand_on(self.of_publications[publication][place], HandedOn { at, due });
            }
        }
    }

    /// A job of the task has an event that a program pushed.
    pub fn heard_program(&mut self, task: usize) {
        if let Some(hears) = self.hears_programs.get_mut(task) {
            *hears = true;
        }
    }

    /// Records are missing since then.
    pub fn forget(&mut self, since: Option<Instant>) {
        self.unexplained.retain(|unexplained| since.is_some_and(|since| unexplained.at < since));
    }

    fn due(&self, job: JobId) -> Option<Instant> {
        let jobs = self.jobs.get(job.operation.index())?.as_ref()?;
        jobs.iter().rev().find(|(instance, _)| *instance == job.instance).map(|(_, due)| *due)
    }

    fn hand_on(&mut self, first: OperationId, handed_on: HandedOn) {
        if let Some(heir) = &mut self.heirs[first.index()] {
            remember(&mut heir.handed_on, handed_on);
        }
    }
}

impl Heir {
    /// Takes this deadline out, and those that can have no release any more. Returns whether it was there.
    fn takes(&mut self, due: Instant) -> bool {
        let Some(place) = self.handed_on.iter().position(|handed_on| handed_on.due == due) else {
            return false;
        };
        let taken = self.handed_on.remove(place).expect("it stands there");
        if let Some(slack) = self.slack {
            // Where each releases, in this order, those in front of it were left out.
            while self.handed_on.front().is_some_and(|before| before.at.saturating_add(slack) < taken.at) {
                self.handed_on.pop_front();
            }
        }
        true
    }
}

/// By how much what is handed on to a first subtask may come in another order, beside the tolerance.
fn slack(system: &System, first: OperationId, is_simulated: bool) -> Option<Duration> {
    let node = |operation: OperationId| system.subtask(operation).node;
    let task = system.operations()[first.index()].task;
    match &system.tasks[task].trigger {
        Some(Trigger::Output { .. }) => {
            let producer = system.outputs()[system.trigger_output(task)?.index()].operation;
            let (from, to) = (node(producer), node(first));
            match from == to {
                true => Some(Duration::ZERO),
                false => is_simulated.then(|| system.route(from, to).jitter),
            }
        }
        // Whoever pushes on a real thread may be preempted between the record and the push.
        _ => (is_simulated || system.subscribed_by(task).count() == 1).then_some(Duration::ZERO),
    }
}

fn remember<T>(list: &mut VecDeque<T>, value: T) {
    if list.len() == REMEMBERED {
        list.pop_front();
    }
    list.push_back(value);
}

impl Judge<'_> {
    /// An instance of a task was released that inherits its deadline.
    pub(super) fn check_inherited(&mut self, told: Release) {
        let task = self.trace.operations[told.job.operation.index()].task;
        if self.values.is_in_part() || !self.events.is_known() {
            return self.findings.leave_unknown(Rule::Release, 1);
        }
        let heir = self.inheritance.heirs[told.job.operation.index()].as_mut().expect("its task inherits");
        if heir.takes(told.deadline) {
            return;
        }
        let unexplained = &mut self.inheritance.unexplained;
        let hears_events = matches!(self.system.tasks[task].trigger, Some(Trigger::Events(_)));
        if hears_events && unexplained.len() < REMEMBERED {
            return unexplained.push_back(Unexplained { told, at: self.now });
        }
        self.find_disinherited(told);
    }

    /// Those remain that no event of a program can have released: its deadline counts from the push.
    pub(super) fn judge_unexplained(&mut self) {
        for Unexplained { told, at } in std::mem::take(&mut self.inheritance.unexplained) {
            let task = self.trace.operations[told.job.operation.index()].task;
            let latest = told.nominal.saturating_add(self.trace.tasks[task].deadline);
            let earliest = latest.saturating_add(-self.tolerance);
            let is_of_program = self.inheritance.hears_programs[task]
                && (earliest..=latest.saturating_add(self.tolerance)).contains(&told.deadline);
            if !is_of_program {
                self.now = at;
                self.find_disinherited(told);
            }
        }
    }

    fn find_disinherited(&mut self, told: Release) {
        self.find(Rule::Release, told.job, None, || {
            "its deadline is not that of a job that may have released it".into()
        });
    }
}
