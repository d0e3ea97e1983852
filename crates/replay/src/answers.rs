//! What jobs are answered again.

use std::cell::Cell;
use talea_operation::{JobServices, NotPosted, Posted};
use talea_record::Question;
use talea_record::event::Answer;
use talea_time::Instant;

/// What a job was answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// What time it was, question by question.
    times: Vec<Instant>,
    /// The question, counted from 0, that was the first to be told to stop.
    stop: Option<u64>,
}

impl Answers {
    pub fn take(&mut self, answer: Answer) {
        match answer.what.known() {
            Some(Question::Time) if answer.question == self.times.len() as u64 => {
                self.times.push(Instant::from_nanos(answer.answer as i64));
            }
            Some(Question::Stop) => self.stop = Some(answer.question),
            // One before it is lost, and so this is nobody's.
            Some(Question::Time) | None => {}
        }
    }
}

/// Answers a job as it was answered before.
pub(crate) struct Answering<'a> {
    answers: &'a Answers,
    /// What time it is when no answer is known, as in simulations: when the job ended.
    ended: Instant,
    times: Cell<usize>,
    stops: Cell<u64>,
}

impl<'a> Answering<'a> {
    pub fn new(answers: &'a Answers, ended: Instant) -> Self {
        Answering { answers, ended, times: Cell::new(0), stops: Cell::new(0) }
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
        self.answers.times.get(question).copied().unwrap_or(self.ended)
    }

    fn is_to_stop(&self) -> bool {
        let question = self.stops.replace(self.stops.get() + 1);
        self.answers.stop.is_some_and(|first| question >= first)
    }

    fn post(&self, _posted: Posted) -> Result<u64, NotPosted> {
        Err(NotPosted::Replayed)
    }
}
