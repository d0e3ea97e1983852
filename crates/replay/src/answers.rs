//! What jobs were told, and are told again.

use std::cell::Cell;
use talea_operation::{EventNote, JobServices, NotPosted, Posted};
use talea_record::Question;
use talea_record::event::Answer;
use talea_time::Instant;

/// What a job was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// What time it was, question by question.
    times: Vec<Instant>,
    /// The question, counted from 0, that was the first to be told to stop.
    stop: Option<u64>,
    /// When it was released, if that is no nominal release.
    pub released: Option<Instant>,
    /// When its code had returned and it waited for room, of a job of a simulation.
    pub returned: Option<Instant>,
    /// From when on the newest values of inputs were visible to it, where that was not when they were published.
    visible_at: Vec<(u64, Instant)>,
}

impl Answers {
    pub fn take(&mut self, answer: Answer) {
        match answer.what.known() {
            Some(Question::Time) if answer.question == self.times.len() as u64 => {
                self.times.push(Instant::from_nanos(answer.answer as i64));
            }
            Some(Question::Stop) => self.stop = Some(answer.question),
            Some(Question::Release) => self.released = Some(Instant::from_nanos(answer.answer as i64)),
            Some(Question::Visible) => {
                self.visible_at.push((answer.question, Instant::from_nanos(answer.answer as i64)));
            }
            // One before it is lost, and so this is nobody's.
            Some(Question::Time) | None => {}
        }
    }

    /// From when on the newest value of this input of the system was visible to it, if that was recorded: of several times that it took, the last.
    pub fn visible_at(&self, input: usize) -> Option<Instant> {
        let of_input = |(known, _): &&(u64, Instant)| *known == input as u64;
        self.visible_at.iter().rev().find(of_input).map(|(_, instant)| *instant)
    }
}

/// Tells a job what it was told before.
pub(crate) struct Answering<'a> {
    answers: &'a Answers,
    /// What time it is when no answer is known, as in simulations: when the job had done its work.
    done: Instant,
    times: Cell<usize>,
    stops: Cell<u64>,
}

impl<'a> Answering<'a> {
    pub fn new(answers: &'a Answers, done: Instant) -> Self {
        Answering { answers, done, times: Cell::new(0), stops: Cell::new(0) }
    }

    /// Whether it asked the time more often than answers were recorded, of which there is one at least.
    pub fn has_run_out(&self) -> bool {
        let known = self.answers.times.len();
        known > 0 && self.times.get() > known
    }
}

impl JobServices for Answering<'_> {
    fn now(&self) -> Instant {
        let question = self.times.replace(self.times.get() + 1);
        self.answers.times.get(question).copied().unwrap_or(self.done)
    }

    fn clock(&self) -> Instant {
        self.done
    }

    fn is_to_stop(&self) -> bool {
        let question = self.stops.replace(self.stops.get() + 1);
        self.answers.stop.is_some_and(|first| question >= first)
    }

    fn post(&self, _posted: Posted) -> Result<u64, NotPosted> {
        Err(NotPosted::Replayed)
    }

    // What is pushed in a replay reaches nobody.
    fn note(&self, _note: EventNote, _at: Instant) {}
}
