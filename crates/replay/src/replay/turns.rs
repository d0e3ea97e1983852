//! Turns: a job takes what it took then, is called, and hands on what it handed on then.

use super::Replay;
use super::replayed::{Begun, Replayed, TakenBeside};
use crate::answers::{Answering, Answers, RecordedAnswers};
use crate::report::NotCalled;
use crate::steps::{End, Ending, KeptPush, Recorded, Step, Taken};
use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use talea_model::{OperationId, System};
use talea_operation::{HandedAgain, Reach, Stamp};
use talea_policy::demand;
use talea_policy::job::Job;
use talea_record::{JobId, Metadata};

impl Replay {
    pub(super) fn go_on(&mut self, is_over: bool) {
        while let Some(step) = self.steps.next(is_over) {
            match step {
                Step::Begin { job, at } => {
                    self.begun.insert(job, Begun { started: at, is_intact: true });
                }
                Step::Take { job, taken } => self.take(job, taken),
                Step::End(end) => self.end(end),
                Step::Gap => {
                    self.has_gaps = true;
                    self.operations.iter_mut().flatten().for_each(|replayed| replayed.is_on_track = false);
                }
            }
        }
    }

    pub(super) fn take(&mut self, job: JobId, Taken { input, newest, values }: Taken) {
        let site = &self.system.inputs()[input];
        let Some(replayed) = &mut self.operations[job.operation.index()] else { return };
        if replayed.holder.is_some_and(|holder| holder != job) {
            replayed.operation.put_back();
        }
        replayed.holder = Some(job);
        let Some(newest) = newest else { return };
        let visible_at = self.answers.get(&job).and_then(|answers| answers.visible_at(input));
        let is_there = replayed.operation.take_again(site.index, newest, values, visible_at);
        let is_verified = self.unverified.take(site, newest, values);
        if let Some(begun) = self.begun.get_mut(&job) {
            begun.is_intact &= is_there && is_verified;
        }
    }

    /// The job has ended, and so those have their turn that came from it and ended before.
    pub(super) fn end(&mut self, end: End) {
        let mut ended = VecDeque::from([end]);
        while let Some(end) = ended.pop_front() {
            let job = end.job;
            if let Some(by) = self.awaited_by(job) {
                self.waiting_for.insert(job, by);
                self.held_back.entry(job.operation).or_default().push(by);
                self.posted_within.entry(by).or_default().push(end);
                continue;
            }
            self.end_in_turn(end);
            for end in self.posted_within.remove(&job).into_iter().flatten() {
                self.waiting_for.remove(&end.job);
                self.held_back.entry(end.job.operation).or_default().retain(|by| *by != job);
                ended.push_back(end);
            }
        }
    }

    /// What the code of the operation keeps is not known to be what it kept then, nor that of those with which it is called by turns.
    pub(super) fn leave_track(&mut self, operation: OperationId) {
        let Some(replayed) = &mut self.operations[operation.index()] else { return };
        replayed.is_on_track = false;
        let Some(turns) = replayed.turns else { return };
        let of_turns = |replayed: &&mut Replayed| replayed.turns == Some(turns);
        let others = self.operations.iter_mut().flatten().filter(of_turns);
        others.for_each(|other| other.is_on_track = false);
    }

    /// The job of those that have begun and not had their turn that was called before this one, of which the code is the same.
    fn called_before(&self, job: JobId) -> Option<JobId> {
        let turns = |job: JobId| self.operations[job.operation.index()].as_ref()?.turns;
        let first_call = |job: JobId| Some(self.answers.get(&job)?.calls?.0);
        let (own, called) = (turns(job)?, first_call(job)?);
        let before = self.begun.keys().copied().filter(|other| turns(*other) == Some(own));
        let before = before.filter_map(|other| Some((first_call(other).filter(|at| *at < called)?, other)));
        before.max().map(|(_, other)| other)
    }

    /// The job is called, of which the code is called by turns: false if others were called between calls of this one, which are made one behind the other here.
    fn takes_its_turn(&mut self, job: JobId, answers: &Answers) -> bool {
        let turns = |job: JobId| self.operations[job.operation.index()].as_ref()?.turns;
        let Some((own, (first, last))) = turns(job).zip(answers.calls) else { return true };
        let is_between = |other: &JobId| {
            let calls = self.answers.get(other).and_then(|answers| answers.calls);
            turns(*other) == Some(own) && calls.is_some_and(|(called, _)| called > first && called < last)
        };
        let is_alone = !self.begun.keys().any(is_between);
        let before = self.turns.insert(own, last);
        is_alone && before.is_none_or(|before| before <= first)
    }

    /// The job whose turn this one awaits: that which the last one of its operation awaits that ended before, since jobs of an operation are called in their
    /// order; else one from which it came and that has not had its turn, or one that was called before it. None that waits for this one itself.
    fn awaited_by(&self, job: JobId) -> Option<JobId> {
        let waits_for_it = |by: &JobId| {
            std::iter::successors(Some(*by), |job| self.waiting_for.get(job).copied())
                .any(|other| other == job)
        };
        let held = self.held_back.get(&job.operation).into_iter().flatten().rev().copied();
        let came_from = self.answers.get(&job).map(|answers| &answers.came_from).into_iter().flatten();
        let from = came_from.copied().filter(|by| self.begun.contains_key(by));
        held.chain(from).chain(self.called_before(job)).find(|by| !waits_for_it(by))
    }

    pub(super) fn end_in_turn(&mut self, end: End) {
        end.taken.iter().for_each(|taken| self.take(end.job, *taken));
        let (begun, answers) =
            (self.begun.remove(&end.job), self.answers.remove(&end.job).unwrap_or_default());
        self.dates.remove(&end.job);
        if let Some(workplace) = &self.workplace {
            workplace.reach(end.at);
            self.take_declared();
        }
        if self.is_posted(end.job)
            && let Some(why) = self.reason_not_to_call(&end, &answers)
        {
            return self.leave_out(&end, why);
        }
        if !self.takes_its_turn(end.job, &answers) {
            self.leave_track(end.job.operation);
        }
        let Some(replayed) = &mut self.operations[end.job.operation.index()] else { return };
        // That of a job whose beginning was lost, too: it is as if nothing was known of what it took.
        let Begun { started, mut is_intact } = begun.unwrap_or(Begun { started: end.at, is_intact: false });
        let is_outside = replayed.is_outside();
        let operation = &mut replayed.operation;
        if let (Some(handed), Some(Recorded::Bytes(bytes))) = (&replayed.handed, &end.beside) {
            handed.hand(bytes.clone());
        } else if let Some(beside) = &end.beside {
            is_intact &= match (replayed.taken, beside) {
                (TakenBeside::Reads, Recorded::Bytes(bytes)) => operation.read_again(Some(bytes)),
                (TakenBeside::Reads, Recorded::Awaited | Recorded::Unrecorded) => {
                    operation.read_again(None);
                    false
                }
                (_, Recorded::Bytes(bytes)) => operation.take_events_again(end.job.instance, bytes),
                (_, Recorded::Awaited | Recorded::Unrecorded) => false,
            };
        }
        let is_done = match end.how {
            Ending::Completed => true,
            // Simulations call code when its job has done its work, and after that it may wait for room.
            Ending::Aborted | Ending::Unbegun if self.is_simulated => answers.returned.is_some(),
            Ending::Aborted => true,
            Ending::Unbegun => false,
        };
        let is_called = is_done && !is_outside;
        let posting = (self.workplace.as_ref(), self.tables.keeps_posts);
        let described = self.system.publications().len();
        let pushes = RecordedAnswers::of(&end.pushes, described, self.keeps_push_answers);
        let returned = answers.returned.unwrap_or(end.at);
        let answering = Answering::new(&answers, returned, posting, &pushes);
        is_intact &= !end.pushes.may_lack_a_refusal();
        let is_refused = |push: &&KeptPush| (push.publication as usize) < described && push.bytes.is_empty();
        let refused = end.pushes.kept.iter().filter(is_refused);
        operation.refuse_again(refused.map(|push| push.number).collect());
        let panicked = if is_called {
            self.report.called += 1;
            let job = job_of(&self.system, &self.tables, &end, &answers);
            let name = self.tables.operations[end.job.operation.index()].name.as_str();
            let handle = answers.handle.unwrap_or(0);
            // What the code keeps is its own business, as in a run.
            let code = AssertUnwindSafe(|| operation.call(&answering, name, &job, started, handle));
            let panicked = catch_unwind(code).err().map(text_of);
            if end.how == Ending::Completed {
                operation.push_events(&answering, end.job.instance);
            }
            panicked
        } else {
            self.report.outside += u64::from(is_done && is_outside);
            None
        };
        if replayed.holder == Some(end.job) {
            operation.leave(end.job.instance);
            replayed.holder = None;
        } else {
            operation.leave_events(end.job.instance);
        }
        let is_answered = answering.has_known() && !operation.has_read_otherwise();
        let keeps_track = !is_called || is_intact && is_answered;
        let pushed = operation.pushed();
        let was_read = replayed.handed.as_ref().is_none_or(HandedAgain::was_read);
        let done = answering.done();
        if !keeps_track {
            self.leave_track(end.job.operation);
        }
        if is_called && !was_read && panicked.is_none() {
            self.report.called -= 1;
            return self.leave_out(&end, NotCalled::Unreadable);
        }
        self.settle_pushes(&end, is_called, pushed, panicked.as_deref());
        self.settle_program_pushes(&end, is_called, &done.pushes, panicked.as_deref());
        if is_called {
            self.settle_posts(&end, &answers.posts, &done.posts, panicked.as_deref());
            self.settle_outcomes(&end, &answers, &done.outcomes);
        }
        if self.is_posted(end.job) {
            return;
        }
        if end.how != Ending::Completed {
            if let Some(replayed) = &mut self.operations[end.job.operation.index()] {
                replayed.operation.discard();
            }
            return;
        }
        self.settle_outputs(&end, is_called, panicked);
        self.publish(&end);
    }

    /// The trace may end between a job and what it published, or pushed.
    pub(super) fn is_cut(&self, end: &End) -> bool {
        let lane = self.tables.operations[end.job.operation.index()].lane;
        !end.is_settled && !self.ended[self.tables.lanes[lane].node]
    }

    /// The job's number, and when it ended after the start, in nanoseconds.
    pub(super) fn known_as(&self, end: &End) -> (u64, i64) {
        (end.job.instance, end.at.as_nanos().saturating_sub(self.tables.start.as_nanos()))
    }

    pub(super) fn publish(&mut self, end: &End) {
        let Some(replayed) = &mut self.operations[end.job.operation.index()] else { return };
        let sites = self.system.outputs_of(end.job.operation);
        let stamp = Stamp { instance: end.job.instance, visible_at: end.visible };
        let reach = |output: usize, reader: usize| {
            let input = sites[output].readers[reader].index() as u32;
            if end.dropped.contains(&input) { Reach::Not } else { Reach::From(end.visible) }
        };
        replayed.operation.publish_to(stamp, reach, |_, _| (), |_, _| ());
    }
}

/// The job as its code saw it; where its release is not the nominal one, what was recorded of it.
fn job_of(system: &System, tables: &Metadata, end: &End, answers: &Answers) -> Job {
    let JobId { operation, instance } = end.job;
    let described = system.operations().get(operation.index());
    let nominal = end.dates.nominal;
    let release =
        answers.released.unwrap_or_else(|| match described.filter(|one| one.predecessors.is_empty()) {
            Some(first) => nominal.saturating_add(demand::release_jitter(system, first.task, instance)),
            None => nominal,
        });
    let of_posted = || answers.wcet.unwrap_or(tables.operations[operation.index()].wcet);
    let wcet = described.map_or_else(of_posted, |described| system.subtask(described.id).wcet);
    let deadline = end.dates.deadline;
    Job { release, deadline, wcet, rank: 0, number: instance, tag: 0 }
}

fn text_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a text".to_owned())
}
