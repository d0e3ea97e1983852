//! What jobs were told, and are told again.

use crate::steps::Pushes;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use talea_notification::declared::answered_push;
use talea_operation::{
    EventNote, JobServices, KeptEvent, NotPosted, Posted, PushAnswer, PushedBytes, ReplayWorkplace,
};
use talea_record::event::{Answer, Coded};
use talea_record::{CallOutcome, JobId, PostOutcome, Question};
use talea_time::{Instant, Work};

/// What a job was told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// What time it was, by the number of the question. Of those asked most often not all are recorded.
    times: BTreeMap<u64, Instant>,
    /// The question, counted from 0, that was the first to be told to stop.
    stop: Option<u64>,
    /// When it was released, if that is no nominal release.
    pub released: Option<Instant>,
    /// The longest that it executes, if it was posted with an execution time of its own.
    pub wcet: Option<Work>,
    /// When its code had returned and it waited for room, of a job of a simulation.
    pub returned: Option<Instant>,
    /// From when on the newest values of inputs were visible to it, where that was not when they were published.
    visible_at: Vec<(u64, Instant)>,
    /// What it posted, in this order.
    pub posts: Vec<RecordedPost>,
    /// With what handle it was posted, if it was.
    pub handle: Option<u64>,
    /// The job that posted it, if one did; and those that pushed what a channel of the program has handed to it.
    pub came_from: Vec<JobId>,
    /// Of a job of a consumer: what its code was handed, call by call.
    pub handed: Vec<Vec<HandedEvent>>,
    /// And what it said of that, by the number of the call; none where the trace is newer than this.
    pub outcomes: BTreeMap<u64, Option<CallOutcome>>,
    /// When it said the first and the last of that.
    pub calls: Option<(Instant, Instant)>,
}

/// An event that the code of a consumer was handed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandedEvent {
    /// As what it was published, by the number in the trace.
    pub publication: Option<u32>,
    /// The job that pushed it, if one did.
    pub from: Option<JobId>,
}

/// A job that a job posted, or wanted to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordedPost {
    pub job: JobId,
    pub handle: u64,
    /// What came of it; none where the trace is newer than this.
    pub outcome: Option<PostOutcome>,
    /// Of one that was refused, the longest that it would have executed. Traces of before do not tell.
    pub refused_wcet: Option<Work>,
}

/// A job that a job posts when it is called again.
#[derive(Clone, Debug)]
pub(crate) struct PostNow {
    /// The operation.
    pub operation: String,
    pub handle: u64,
    /// When it is due, if the job says so.
    pub deadline: Option<Instant>,
    /// The longest that it executes, likewise.
    pub wcet: Option<Work>,
}

/// An event that a job pushes into a channel of the program when it is called again.
#[derive(Clone, Debug)]
pub(crate) struct PushNow {
    /// The name of the publication.
    pub publication: String,
    /// Which of these pushes of the job it is, from 0.
    pub number: u16,
    /// None if it is longer than what is kept.
    pub bytes: Option<Vec<u8>>,
}

/// What a job does when it is called again.
#[derive(Debug)]
pub(crate) struct Done {
    /// What it posts.
    pub posts: Vec<PostNow>,
    /// What it pushes into channels of the program.
    pub pushes: Vec<PushNow>,
    /// What it says of what it is handed, call by call.
    pub outcomes: Vec<CallOutcome>,
}

impl Answers {
    /// It was told, or said, this at that instant.
    pub fn take(&mut self, answer: Answer, at: Instant) {
        match answer.what.known() {
            Some(Question::Time) => {
                self.times.insert(answer.question, Instant::from_nanos(answer.answer as i64));
            }
            Some(Question::Stop) => self.stop = Some(answer.question),
            Some(Question::Release) => self.released = Some(Instant::from_nanos(answer.answer as i64)),
            Some(Question::Visible) => {
                self.visible_at.push((answer.question, Instant::from_nanos(answer.answer as i64)));
            }
            Some(Question::Outcome) => {
                let outcome = u16::try_from(answer.answer).ok().and_then(CallOutcome::from_code);
                self.outcomes.insert(answer.question, outcome);
                self.calls = Some((self.calls.map_or(at, |(first, _)| first), at));
            }
            Some(Question::RefusedWcet) => {
                let is_it = |post: &&mut RecordedPost| {
                    post.job.operation.index() as u64 == answer.question
                        && matches!(post.outcome, Some(PostOutcome::Full | PostOutcome::NotRunning))
                };
                if let Some(post) = self.posts.last_mut().filter(is_it) {
                    let wcet = i64::try_from(answer.answer).map(Work::from_nanos);
                    post.refused_wcet = wcet.ok().or(post.refused_wcet);
                }
            }
            None => {}
        }
    }

    /// A job of a consumer was handed an event in a call, of which it is this one.
    pub fn hand(&mut self, number: u32, event: HandedEvent) {
        match self.handed.last_mut().filter(|_| number > 0) {
            Some(call) => call.push(event),
            None => self.handed.push(vec![event]),
        }
    }

    /// From when on the newest value of this input of the system was visible to it, if that was recorded: of several times that it took, the last.
    pub fn visible_at(&self, input: usize) -> Option<Instant> {
        let of_input = |(known, _): &&(u64, Instant)| *known == input as u64;
        self.visible_at.iter().rev().find(of_input).map(|(_, instant)| *instant)
    }
}

/// What the pushes of a job into channels of the program were answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordedAnswers {
    /// By which of these pushes it is; of some a trace of before does not say it.
    answers: BTreeMap<u16, Option<PushAnswer>>,
    /// Whether all are there.
    are_whole: bool,
    /// Whether the trace has pushes that went on to nobody, and says of each how it was answered.
    has_all_kinds: bool,
}

impl RecordedAnswers {
    /// Of what the trace has of a job's pushes: those behind the publications of the description, which are so many.
    pub fn of(pushes: &Pushes, described: usize, has_all_kinds: bool) -> Self {
        let of_program = |publication: u32| publication as usize >= described;
        let kept = pushes.kept.iter().filter(|push| of_program(push.publication));
        let missing = |publication| of_program(publication) && pushes.missing(publication) > 0;
        let answers = kept.map(|push| (push.number, push.answer)).collect();
        let are_whole = !pushes.publications().any(missing);
        RecordedAnswers { answers, are_whole, has_all_kinds }
    }
}

/// Tells a job what it was told before.
pub(crate) struct Answering<'a> {
    answers: &'a Answers,
    /// What time it is when no answer is known, as in simulations: when the job had done its work.
    done: Instant,
    times: Cell<u64>,
    stops: Cell<u64>,
    /// Where what it posts has been declared, if that is known.
    workplace: Option<&'a ReplayWorkplace>,
    /// Whether the trace has what jobs posted.
    keeps_posts: bool,
    posted: RefCell<Vec<PostNow>>,
    /// What its pushes into channels of the program were answered.
    pushes: &'a RecordedAnswers,
    /// What it has pushed into channels of the program.
    pushed: RefCell<Vec<PushNow>>,
    /// What it has said of what it was handed, call by call.
    outcomes: RefCell<Vec<CallOutcome>>,
    /// Whether the push that was kept last goes on to nobody, of which the trace does not tell.
    is_untold: Cell<bool>,
    /// Whether it has been told of the time, of a post, or a push, what nobody knows that it was told then.
    was_told_otherwise: Cell<bool>,
}

impl<'a> Answering<'a> {
    pub fn new(
        answers: &'a Answers,
        done: Instant,
        (workplace, keeps_posts): (Option<&'a ReplayWorkplace>, bool),
        pushes: &'a RecordedAnswers,
    ) -> Self {
        let (times, stops) = (Cell::new(0), Cell::new(0));
        let (posted, pushed, outcomes) = (RefCell::default(), RefCell::default(), RefCell::default());
        let (is_untold, was_told_otherwise) = (Cell::new(false), Cell::new(false));
        Answering {
            answers,
            done,
            times,
            stops,
            workplace,
            keeps_posts,
            posted,
            pushes,
            pushed,
            outcomes,
            is_untold,
            was_told_otherwise,
        }
    }

    /// What it has done.
    pub fn done(self) -> Done {
        let (posts, pushes) = (self.posted.into_inner(), self.pushed.into_inner());
        Done { posts, pushes, outcomes: self.outcomes.into_inner() }
    }

    /// Whether it has been told what it was told then: not if it asked the time and that answer is not recorded while another one is, nor if it posted,
    /// or pushed, and what came of that is not known.
    pub fn has_known(&self) -> bool {
        !self.was_told_otherwise.get()
    }
}

impl JobServices for Answering<'_> {
    fn now(&self) -> Instant {
        let question = self.times.replace(self.times.get() + 1);
        let known = self.answers.times.get(&question).copied();
        self.was_told_otherwise.update(|before| before || known.is_none() && !self.answers.times.is_empty());
        known.unwrap_or(self.done)
    }

    fn clock(&self) -> Instant {
        self.done
    }

    fn is_to_stop(&self) -> bool {
        let question = self.stops.replace(self.stops.get() + 1);
        self.answers.stop.is_some_and(|first| question >= first)
    }

    fn post(&self, posted: Posted) -> Result<u64, NotPosted> {
        posted.check()?;
        let Posted { operation, handle, deadline, wcet } = posted;
        let Some(workplace) = self.workplace else {
            self.was_told_otherwise.set(true);
            return Err(NotPosted::Replayed);
        };
        let operation = workplace.posted(operation)?;
        let mut posted = self.posted.borrow_mut();
        let recorded = self.answers.posts.get(posted.len());
        posted.push(PostNow { operation, handle, deadline, wcet });
        match recorded.and_then(|recorded| Some((recorded.job, recorded.outcome?))) {
            Some((job, PostOutcome::Posted)) => Ok(job.instance),
            Some((_, PostOutcome::Full)) => Err(NotPosted::Full),
            Some((_, PostOutcome::NotRunning)) => Err(NotPosted::NotRunning),
            None => {
                // One more than then is a difference that is told.
                let is_one_more = self.keeps_posts && recorded.is_none();
                self.was_told_otherwise.update(|before| before || !is_one_more);
                Err(NotPosted::Replayed)
            }
        }
    }

    // What is pushed in a replay reaches nobody.
    fn note(&self, note: EventNote, _at: Instant) {
        if let EventNote::Answered { outcome, .. } = note {
            self.outcomes.borrow_mut().push(outcome.into());
        }
    }

    fn keeps_events(&self) -> bool {
        self.keeps_posts && self.workplace.is_some()
    }

    fn keep(&self, event: KeptEvent, bytes: Option<&[u8]>) {
        let KeptEvent::Pushed(publication) = event else { return };
        let Some(publication) = self.workplace.and_then(|workplace| workplace.name_of(publication)) else {
            return;
        };
        let (event, answer) = bytes.map(answered_push).unzip();
        let goes_on = matches!(answer.flatten(), None | Some(PushAnswer::Pushed { .. }));
        self.is_untold.set(!self.pushes.has_all_kinds && !goes_on);
        if self.is_untold.get() {
            return;
        }
        let mut pushed = self.pushed.borrow_mut();
        let number = u16::try_from(pushed.len()).unwrap_or(PushedBytes::LAST);
        pushed.push(PushNow { publication, number, bytes: event.map(<[u8]>::to_vec) });
    }

    fn answer_push(&self, now: PushAnswer) -> PushAnswer {
        if self.is_untold.get() {
            self.was_told_otherwise.set(true);
            return now;
        }
        let place = self.pushed.borrow().len().checked_sub(1);
        let known = place.and_then(|place| self.pushes.answers.get(&u16::try_from(place).ok()?).copied());
        let then = known.flatten();
        // One more than then is a difference that is told.
        let is_known = then.is_some() || self.pushes.are_whole && known.is_none();
        self.was_told_otherwise.update(|before| before || !is_known);
        then.unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::KeptPush;
    use talea_model::{OperationId, System, TaskBuilder};
    use talea_operation::{Declaration, PostedOperation, PostingRoom, Workplace};
    use talea_policy::strategy::plan_lanes_of;
    use talea_time::{Duration, Work};

    /// A place where one operation is declared.
    fn workplace() -> (ReplayWorkplace, PostedOperation) {
        let task = TaskBuilder::new("task", Duration::from_millis(5)).wcet(Work::from_nanos(1));
        let system = System::builder("posting").task(task).build().expect("a system");
        let plans = plan_lanes_of(&system).expect("sorted");
        let room = PostingRoom { operations: 1, ..PostingRoom::default() };
        let workplace = ReplayWorkplace::new(&system, plans, room);
        let note = Declaration::new("note", Duration::from_millis(5)).wcet(Work::from_nanos(1));
        let note = workplace.declare(note, |_| ());
        (workplace, note.expect("there is room"))
    }

    /// The answer to one post where this was recorded, and whether the job has been told what it was told then.
    fn posted(
        recorded: Option<Option<PostOutcome>>,
        keeps_posts: bool,
        can_declare: bool,
    ) -> (Result<u64, NotPosted>, bool) {
        let (workplace, operation) = workplace();
        let job = JobId { operation: OperationId::from_index(1), instance: 7 };
        let posts = recorded.map(|outcome| RecordedPost { job, handle: 0, outcome, refused_wcet: None });
        let answers = Answers { posts: posts.into_iter().collect(), ..Answers::default() };
        let none = RecordedAnswers::default();
        let answering =
            Answering::new(&answers, Instant::ZERO, (can_declare.then_some(&workplace), keeps_posts), &none);
        let answer = answering.post(Posted::new(operation));
        (answer, answering.has_known())
    }

    #[test]
    fn a_job_that_posts_knows_what_it_was_told_where_that_is_recorded() {
        let outcomes = [
            (PostOutcome::Posted, Ok(7)),
            (PostOutcome::Full, Err(NotPosted::Full)),
            (PostOutcome::NotRunning, Err(NotPosted::NotRunning)),
        ];
        for (outcome, answer) in outcomes {
            assert_eq!(posted(Some(Some(outcome)), true, true), (answer, true));
        }
        // One more than then is a difference by itself.
        assert_eq!(posted(None, true, true), (Err(NotPosted::Replayed), true));
        let unknown = (Err(NotPosted::Replayed), false);
        // An outcome of later, a trace of before, and nowhere to declare anything.
        assert_eq!(posted(Some(None), true, true), unknown);
        assert_eq!(posted(None, false, true), unknown);
        assert_eq!(posted(Some(Some(PostOutcome::Posted)), true, false), unknown);
    }

    /// The answer to one push, of which now comes this, where the trace has these of the job, and whether the job has been told what it was told then.
    fn pushed(
        kept: &[Option<PushAnswer>],
        missing: usize,
        has_all_kinds: bool,
        now: PushAnswer,
    ) -> (PushAnswer, bool) {
        let (workplace, _) = workplace();
        let of_program = talea_operation::ProgramChannel { name: "c", number: 0 };
        let publication = workplace.publication(of_program, "T/A").expect("there is room");
        let mut pushes = Pushes::default();
        for (number, answer) in (0u16..).zip(kept) {
            pushes.tell(0);
            pushes.keep(KeptPush { publication: 0, number, bytes: vec![1], answer: *answer });
        }
        (0..missing).for_each(|_| pushes.lose(0));
        let recorded = RecordedAnswers::of(&pushes, 0, has_all_kinds);
        let answers = Answers::default();
        let answering = Answering::new(&answers, Instant::ZERO, (Some(&workplace), true), &recorded);
        let mut bytes = [0; 8 + PushAnswer::BYTES];
        let length = now.encode(&mut bytes[8..]).expect("there is room");
        answering.keep(KeptEvent::Pushed(publication), Some(&bytes[..8 + length]));
        let answer = answering.answer_push(now);
        (answer, answering.has_known())
    }

    #[test]
    fn a_job_that_pushes_knows_what_it_was_told_where_that_is_recorded() {
        let gone_on = |queued| PushAnswer::Pushed { subscribed: 2, queued, discarded: 0 };
        let now = gone_on(1);
        for then in [gone_on(2), PushAnswer::Rejected, PushAnswer::LeftOut, PushAnswer::Closed] {
            assert_eq!(pushed(&[Some(then)], 0, true, now), (then, true));
        }
        // One more than then is a difference by itself, unless it may be one that is not there.
        assert_eq!(pushed(&[], 0, true, now), (now, true));
        assert_eq!(pushed(&[], 1, true, now), (now, false));
        // A trace of before has what was pushed, and not how that was answered.
        assert_eq!(pushed(&[None], 0, false, now), (now, false));
        assert_eq!(pushed(&[], 0, false, now), (now, true));
        assert_eq!(pushed(&[], 1, false, now), (now, false));
        // And nothing of what went on to nobody: then this may have been so, or not.
        for now in [PushAnswer::LeftOut, PushAnswer::Rejected] {
            assert_eq!(pushed(&[None], 0, false, now), (now, false));
        }
    }

    #[test]
    fn a_job_knows_the_time_as_often_as_it_was_told_then() {
        let times = [(0, 3), (1, 5), (3, 7)].map(|(question, at)| (question, Instant::from_nanos(at)));
        let answers = Answers { times: times.into(), ..Answers::default() };
        let no_pushes = RecordedAnswers::default();
        let answering = Answering::new(&answers, Instant::from_nanos(9), (None, false), &no_pushes);
        let asked = |answering: &Answering<'_>| (answering.now().as_nanos(), answering.has_known());
        // That it was told another time once proves nothing of what it does from then on.
        let told = [(3, true), (5, true), (9, false), (7, false)];
        assert_eq!([0; 4].map(|_| asked(&answering)), told);
        // Simulations record no answers: it is the end of the job.
        let none = Answers::default();
        let answering = Answering::new(&none, Instant::from_nanos(9), (None, false), &no_pushes);
        assert_eq!([0; 2].map(|_| asked(&answering)), [(9, true), (9, true)]);
    }
}
