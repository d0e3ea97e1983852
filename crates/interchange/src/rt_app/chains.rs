//! Threads that resume each other, as tasks of subtasks.

use super::role::{Job, Role, Start};
use super::thread::Thread;
use crate::Effect;
use crate::names::shown;
use crate::reading::Reading;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;
use talea_model::{Execution, OperationId};
use talea_time::{Duration, Work};

/// One thread: an object of `instance` 3 is three of them.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    /// Index of its object.
    pub thread: usize,
    /// As in the file, with a number if there are several.
    pub name: String,
}

/// A task before it has names and nodes.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The unit that time releases; it may have no step, if all it does is to resume others.
    pub head: usize,
    /// The number of the job, if those of the head's round are tasks of their own.
    pub number: Option<usize>,
    pub period: Duration,
    pub phase: Duration,
    /// In the order of the file.
    pub steps: Vec<Step>,
}

/// A subtask before it has a name and a node.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub unit: usize,
    pub wcet: Work,
    pub exec: Execution,
    /// Positions in [`Chain::steps`].
    pub after: Vec<usize>,
}

/// All threads of a file and what they are.
pub(super) struct Crew<'a> {
    pub threads: &'a [Thread],
    roles: &'a [Role],
    pub units: Vec<Unit>,
    /// The units that wait to be resumed under a name.
    waiting: HashMap<Rc<str>, Vec<usize>>,
    /// In how many tasks a unit was resumed.
    used: HashMap<usize, usize>,
    /// Names that nobody waits for, each reported once.
    unheard: HashSet<Rc<str>>,
    steps: usize,
    /// How often one unit was found to resume another.
    links: usize,
}

impl<'a> Crew<'a> {
    pub fn new(threads: &'a [Thread], roles: &'a [Role]) -> Self {
        let mut units = Vec::new();
        let mut waiting: HashMap<Rc<str>, Vec<usize>> = HashMap::new();
        for (index, thread) in threads.iter().enumerate() {
            for number in 1..=thread.instances {
                if let Role::Follower { name, .. } = &roles[index] {
                    waiting.entry(Rc::clone(name)).or_default().push(units.len());
                }
                let name = match thread.instances {
                    1 => thread.name.clone(),
                    _ => format!("{}-{number}", thread.name),
                };
                units.push(Unit { thread: index, name });
            }
        }
        let (used, unheard) = (HashMap::new(), HashSet::new());
        Crew { threads, roles, units, waiting, used, unheard, steps: 0, links: 0 }
    }

    /// The tasks of all units that time releases.
    pub fn chains(&mut self, reading: &mut Reading<'_>) -> Vec<Chain> {
        let mut chains = Vec::new();
        for unit in 0..self.units.len() {
            let Role::Head(starts) = &self.roles[self.units[unit].thread] else { continue };
            for start in starts {
                chains.extend(self.grow(unit, start, reading));
            }
            if self.is_too_large() {
                let span = self.thread(unit).span.clone();
                let message = "with this thread the tasks of threads that resume each other grow too large";
                reading.error(span, message, "import parts of the file");
                return chains;
            }
        }
        self.note_unreleased(reading);
        chains
    }

    fn is_too_large(&self) -> bool {
        self.steps > OperationId::LIMIT || self.links > OperationId::LIMIT
    }

    pub fn thread(&self, unit: usize) -> &'a Thread {
        &self.threads[self.units[unit].thread]
    }

    fn note_unreleased(&self, reading: &mut Reading<'_>) {
        let used: HashSet<usize> = self.used.keys().map(|unit| self.units[*unit].thread).collect();
        for (index, thread) in self.threads.iter().enumerate() {
            if matches!(self.roles[index], Role::Follower { .. }) && !used.contains(&index) {
                let what = "is resumed by no thread that time releases; the whole thread is left out";
                reading.lose(Effect::Lost, thread.span.clone(), &thread.label(), "", what);
            }
        }
    }

    /// The task of a head and all that it resumes, directly or not. `None` if nothing of it does any work.
    fn grow(&mut self, head: usize, start: &Start, reading: &mut Reading<'_>) -> Option<Chain> {
        let mut growing = Growing::default();
        growing.reached.insert(head);
        let first = self.add(&mut growing, head, &start.job, None);
        self.enqueue(&mut growing, head, first, &start.job.resumes, reading);
        while let Some((name, before)) = growing.queue.pop_front() {
            for index in 0..self.waiting[&name].len() {
                if self.is_too_large() {
                    return None;
                }
                let unit = self.waiting[&name][index];
                self.follow(&mut growing, unit, before, reading);
            }
        }
        if growing.steps.is_empty() {
            let thread = self.thread(head);
            let what = "does no work whose length is known; the whole thread is left out";
            reading.lose(Effect::Lost, thread.span.clone(), &thread.label(), "", what);
            return None;
        }
        let Start { period, phase, number, .. } = *start;
        Some(Chain { head, number, period, phase, steps: growing.in_file_order() })
    }

    /// A unit that is resumed when the step `before` ends.
    fn follow(
        &mut self,
        growing: &mut Growing,
        unit: usize,
        before: Option<usize>,
        reading: &mut Reading<'_>,
    ) {
        let thread = self.thread(unit);
        let mut lose = |what: &'static str| {
            reading.lose(Effect::Approximated, thread.span.clone(), &thread.label(), "suspend", what);
        };
        self.links += 1;
        if !growing.reached.insert(unit) {
            lose("is resumed from several places of one task; it follows the first of them only");
            return;
        }
        let tasks = self.used.entry(unit).or_insert(0);
        *tasks += 1;
        match *tasks {
            1 => {
                lose("loses a resume that comes while it still runs; a subtask is released again afterwards")
            }
            2 => lose("is resumed by several tasks; each has a subtask of its own in its place"),
            _ => {}
        }
        let Role::Follower { job, .. } = &self.roles[self.units[unit].thread] else {
            unreachable!("only followers wait under a name")
        };
        // What a thread without work resumes follows what resumed it.
        let own = self.add(growing, unit, job, before).or(before);
        self.enqueue(growing, unit, own, &job.resumes, reading);
    }

    /// Adds the step of a unit, unless it does no work.
    fn add(&mut self, growing: &mut Growing, unit: usize, job: &Job, before: Option<usize>) -> Option<usize> {
        let (wcet, exec) = job.work.clone()?;
        self.steps += 1;
        growing.steps.push(Step { unit, wcet, exec, after: before.into_iter().collect() });
        Some(growing.steps.len() - 1)
    }

    fn enqueue(
        &mut self,
        growing: &mut Growing,
        unit: usize,
        step: Option<usize>,
        names: &[Rc<str>],
        reading: &mut Reading<'_>,
    ) {
        self.links += names.len();
        for name in names {
            if self.waiting.contains_key(name) {
                growing.queue.push_back((Rc::clone(name), step));
            } else if self.unheard.insert(Rc::clone(name)) {
                let thread = self.thread(unit);
                let what = format!("nothing waits to be resumed as {}", shown(name));
                reading.lose(Effect::Lost, thread.span.clone(), &thread.label(), "resume", what);
            }
        }
    }
}

/// A task while its threads are followed.
#[derive(Default)]
struct Growing {
    steps: Vec<Step>,
    /// The units met.
    reached: HashSet<usize>,
    /// Names to resume, and the step after which.
    queue: VecDeque<(Rc<str>, Option<usize>)>,
}

impl Growing {
    fn in_file_order(self) -> Vec<Step> {
        let mut order: Vec<usize> = (0..self.steps.len()).collect();
        order.sort_by_key(|position| self.steps[*position].unit);
        let mut new_position = vec![0; order.len()];
        for (new, old) in order.iter().enumerate() {
            new_position[*old] = new;
        }
        let mut steps: Vec<Step> = order.iter().map(|old| self.steps[*old].clone()).collect();
        for step in &mut steps {
            step.after.iter_mut().for_each(|before| *before = new_position[*before]);
        }
        steps
    }
}
