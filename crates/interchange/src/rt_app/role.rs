//! What a thread is in the description: the head of tasks, a subtask that others release, or nothing.

use super::release::{Frame, Release};
use super::thread::Thread;
use crate::Effect;
use crate::reading::Reading;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;
use talea_model::Execution;
use talea_time::{Duration, Work};

/// How many tasks the frames of one thread may become.
const FRAMES_APART: usize = 64;

/// What a thread is in the description.
#[derive(Debug)]
pub(super) enum Role {
    /// Time releases it: a task, or several that share its round.
    Head(Vec<Start>),
    /// Whoever resumes the name does.
    Follower { name: Rc<str>, job: Job },
    /// Left out.
    Nothing,
}

/// A task that begins with a thread.
#[derive(Debug)]
pub(super) struct Start {
    pub period: Duration,
    pub phase: Duration,
    /// The number of the job, if the jobs of a round are tasks of their own.
    pub number: Option<usize>,
    pub job: Job,
}

/// What a thread does when it is released.
#[derive(Debug)]
pub(super) struct Job {
    /// The worst case and the execution times; `None` if it does no work.
    pub work: Option<(Work, Execution)>,
    /// The names it resumes, each once.
    pub resumes: Vec<Rc<str>>,
}

/// The role of a thread that is released by `release`.
pub(super) fn role_of(thread: &Thread, release: Release, reading: &mut Reading<'_>) -> Role {
    match release {
        Release::Unknown => Role::Nothing,
        Release::Resumed { name, frames } => {
            if frames.iter().any(|frame| frame.resumes != frames[0].resumes) {
                let what = "resumes others in some of its rounds only; here in all of them";
                reading.lose(Effect::Approximated, thread.span.clone(), &thread.label(), "resume", what);
            }
            Role::Follower { name, job: job_of(thread, &frames) }
        }
        Release::Periodic { offset, frames } => {
            Role::Head(starts(thread, thread.delay + offset, &frames, reading))
        }
    }
}

/// What of a head becomes a task: all frames as one, if they come at equal distances and resume the same
/// threads, otherwise each for itself.
fn starts(thread: &Thread, phase: Duration, frames: &[Frame], reading: &mut Reading<'_>) -> Vec<Start> {
    let first = &frames[0];
    let together = |period| vec![Start { period, phase, number: None, job: job_of(thread, frames) }];
    if frames.iter().all(|frame| frame.gap == first.gap && frame.resumes == first.resumes) {
        return together(first.gap);
    }
    let mut lose = |what: String| {
        reading.lose(Effect::Approximated, thread.span.clone(), &thread.label(), "", what);
    };
    let active = frames.iter().filter(|frame| !frame.is_empty()).count();
    if active > FRAMES_APART {
        lose(format!(
            "has a round of {active} different jobs, more than the {FRAMES_APART} that become tasks; they are one \
             task of their shortest distance"
        ));
        let gaps = frames.iter().map(|frame| frame.gap).filter(|gap| *gap > Duration::ZERO);
        return together(gaps.min().unwrap_or(first.gap));
    }
    if active > 1 {
        lose(format!(
            "has a round of {active} different jobs; each is a task of the whole round's period with a phase, and \
             they no longer wait for each other"
        ));
    }
    let period = frames.iter().fold(Duration::ZERO, |sum, frame| sum + frame.gap);
    let mut starts = Vec::new();
    let mut phase = phase;
    for frame in frames {
        if !frame.is_empty() {
            let number = (active > 1).then_some(starts.len() + 1);
            let job = job_of(thread, std::slice::from_ref(frame));
            starts.push(Start { period, phase, number, job });
        }
        phase += frame.gap;
    }
    starts
}

/// The frames of a thread as one job: the budget of its reservation is what it promises, otherwise the
/// longest piece of work.
fn job_of(thread: &Thread, frames: &[Frame]) -> Job {
    let works: Vec<Work> = frames.iter().map(|frame| frame.work).collect();
    let longest = works.iter().copied().max().unwrap_or_default();
    let wcet = thread.attributes.runtime.map_or(longest, Duration::as_work);
    let exec = match works.as_slice() {
        [first, rest @ ..] if rest.iter().all(|work| work == first) => Execution::Constant(*first),
        _ => Execution::List(Arc::from(works)),
    };
    let mut seen = HashSet::new();
    let names = frames.iter().flat_map(|frame| &frame.resumes);
    let resumes = names.filter(|name| seen.insert(Rc::clone(name))).cloned().collect();
    let work = (wcet > Work::ZERO).then_some((wcet, exec));
    Job { work, resumes }
}
