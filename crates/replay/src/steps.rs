//! The life of jobs, in the order in which it is to be done again.

use std::collections::{BTreeMap, HashMap, VecDeque};
use talea_operation::PushAnswer;
use talea_record::JobId;
use talea_record::event::Dates;
use talea_time::{Duration, Instant};

/// How long after a value became visible its bytes are waited for: who writes them has lost them before, for want of room.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long after a job's end it is waited for word of what it published: its thread may lack a processor between the two, and what it records
/// then comes behind later records of others.
const SETTLING: Duration = Duration::from_secs(2);

/// Something that a job did.
#[derive(Debug)]
pub(crate) enum Step {
    /// It began.
    Begin {
        job: JobId,
        at: Instant,
    },
    Take {
        job: JobId,
        taken: Taken,
    },
    End(End),
    /// Records are lost, of whichever jobs.
    Gap,
}

/// So many values of an input, the newest of this instance, if there was one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Its number among those of the system.
    pub input: usize,
    pub newest: Option<u64>,
    pub values: usize,
}

/// A job ended.
#[derive(Debug)]
pub(crate) struct End {
    pub job: JobId,
    pub at: Instant,
    pub dates: Dates,
    pub how: Ending,
    /// What it took only then: the simulator lets a job that passes another one of its operation wait for the ports until it is called.
    pub taken: Vec<Taken>,
    /// What it published, by output, as far as it is known.
    pub published: BTreeMap<u32, Recorded>,
    /// The events that it took, or what it read from outside, if that is kept.
    pub beside: Option<Recorded>,
    /// What it pushed, as far as that is known.
    pub pushes: Pushes,
    /// From when on readers saw that.
    pub visible: Instant,
    /// Inputs that never had it.
    pub dropped: Vec<u32>,
    /// Whether word of all that it published has come, if the trace did not end before.
    pub is_settled: bool,
}

/// What there is in the trace of what a job pushed into channels whose events are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pushes {
    /// By publication, how many events it pushed, as the job itself has told.
    told: BTreeMap<u32, usize>,
    /// What it pushed or wanted to, in its order.
    pub kept: Vec<KeptPush>,
    /// By publication, of how many it is known that they are not kept.
    lost: BTreeMap<u32, usize>,
}

/// What is kept of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeptPush {
    pub publication: u32,
    /// Which of the pushes of the job it is.
    pub number: u16,
    /// The event, empty if there was no room for it.
    pub bytes: Vec<u8>,
    /// How that was answered, where it is not always the same and the trace says it.
    pub answer: Option<PushAnswer>,
}

impl KeptPush {
    /// Whether the job has told of it as of an event.
    fn is_event(&self) -> bool {
        !self.bytes.is_empty() && matches!(self.answer, None | Some(PushAnswer::Pushed { .. }))
    }
}

impl Pushes {
    /// How many of the events of this publication are not there, or not yet.
    pub fn missing(&self, publication: u32) -> usize {
        self.lost(publication).max(self.told(publication).saturating_sub(self.kept(publication)))
    }

    /// The publications as which it pushed events that are to be there, or are known not to be.
    pub fn publications(&self) -> impl Iterator<Item = u32> + '_ {
        self.told.keys().chain(self.lost.keys()).copied()
    }

    /// Whether it may be one for which there was no room that is not kept: then it is not known what the job was told.
    pub fn may_lack_a_refusal(&self) -> bool {
        let is_beyond = |of: &u32| self.lost(*of) + self.kept(*of) > self.told(*of);
        self.lost.keys().any(is_beyond)
    }

    /// How many of its events of this publication are there.
    fn kept(&self, publication: u32) -> usize {
        self.kept.iter().filter(|push| push.publication == publication && push.is_event()).count()
    }

    fn told(&self, publication: u32) -> usize {
        self.told.get(&publication).copied().unwrap_or(0)
    }

    fn lost(&self, publication: u32) -> usize {
        self.lost.get(&publication).copied().unwrap_or(0)
    }

    /// Whether nothing more is to come.
    fn are_whole(&self) -> bool {
        self.told.keys().all(|publication| self.missing(*publication) == self.lost(*publication))
    }

    /// The job has pushed an event, whose bytes are to come.
    pub fn tell(&mut self, publication: u32) {
        *self.told.entry(publication).or_default() += 1;
    }

    /// The bytes of one do not come.
    pub fn lose(&mut self, publication: u32) {
        *self.lost.entry(publication).or_default() += 1;
    }

    /// This is one that it pushed.
    pub fn keep(&mut self, push: KeptPush) {
        let place = self.kept.partition_point(|before| before.number <= push.number);
        self.kept.insert(place, push);
    }
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Completed,
    /// Aborted when it had begun: what it wrote was forgotten.
    Aborted,
    /// It was aborted before it began.
    Unbegun,
}

/// What there is in the trace of a value that a job published, or of what it took beside values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Its bytes have not come yet.
    Awaited,
    /// These are its bytes.
    Bytes(Vec<u8>),
    /// They do not come.
    Unrecorded,
}

/// Why bytes do not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// There was no room for the value when it was published, so others that were published before may still come.
    NeverTaken,
    /// The value was taken in its turn, and not written.
    Taken,
}

/// Steps that are not done yet.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pending: VecDeque<Step>,
    /// The number of the first of them, counted from the first of all.
    first: u64,
    /// Numbers of the ends among them.
    ends: HashMap<JobId, u64>,
    /// By output, the jobs whose values have not come, in the order in which they published.
    awaited: HashMap<u32, VecDeque<JobId>>,
    /// What jobs took beside values that have not ended.
    beside: HashMap<JobId, Recorded>,
    /// What jobs pushed that have not ended.
    pushes: HashMap<JobId, Pushes>,
    /// The instant of the last record.
    now: Option<Instant>,
}

impl Steps {
    pub fn push(&mut self, mut step: Step) {
        if let Step::End(end) = &mut step {
            self.ends.insert(end.job, self.first + self.pending.len() as u64);
            end.pushes = self.pushes.remove(&end.job).unwrap_or_default();
            let beside = self.beside.remove(&end.job);
            if end.beside.is_some() && beside.is_some() {
                end.beside = beside;
            }
        }
        self.pending.push_back(step);
    }

    /// The job took values.
    pub fn take(&mut self, job: JobId, taken: Taken) {
        match self.end_of(job) {
            Some(end) => end.taken.push(taken),
            None => self.push(Step::Take { job, taken }),
        }
    }

    /// Time has come to this.
    pub fn reach(&mut self, now: Instant) {
        self.now = self.now.max(Some(now));
    }

    /// The job has published on the output, for readers from `visible` on, and its bytes are to come if `is_kept`.
    pub fn publish(&mut self, job: JobId, output: u32, visible: Instant, is_kept: bool) {
        let Some(end) = self.end_of(job) else { return };
        end.visible = visible;
        // The simulator tells of the value before it says that it is published.
        if end.published.contains_key(&output) {
            return;
        }
        let published = if is_kept { Recorded::Awaited } else { Recorded::Unrecorded };
        end.published.insert(output, published);
        if is_kept {
            self.awaited.entry(output).or_default().push_back(job);
        }
    }

    /// An input never has the value of the job.
    pub fn drop_value(&mut self, job: JobId, input: u32) {
        if let Some(end) = self.end_of(job) {
            end.dropped.push(input);
        }
    }

    /// These are the bytes of a value.
    pub fn receive(&mut self, job: JobId, output: u32, bytes: Vec<u8>) {
        self.pass(job, output);
        self.settle(job, output, Recorded::Bytes(bytes));
    }

    /// This is what a job took beside values, which ends later or has ended.
    pub fn receive_beside(&mut self, job: JobId, beside: Recorded) {
        match self.end_of(job) {
            Some(end) => end.beside = Some(beside),
            None => drop(self.beside.insert(job, beside)),
        }
    }

    /// What a job pushed, which ends later or has ended.
    pub fn pushes_of(&mut self, job: JobId) -> &mut Pushes {
        match self.ends.get(&job).map(|place| (*place - self.first) as usize) {
            Some(place) => match &mut self.pending[place] {
                Step::End(end) => &mut end.pushes,
                Step::Begin { .. } | Step::Take { .. } | Step::Gap => {
                    unreachable!("there is the end of a job")
                }
            },
            None => self.pushes.entry(job).or_default(),
        }
    }

    /// The bytes of a value do not come.
    pub fn miss(&mut self, job: JobId, output: u32, why: Missing) {
        match why {
            Missing::Taken => self.pass(job, output),
            Missing::NeverTaken => {
                if let Some(awaited) = self.awaited.get_mut(&output) {
                    awaited.retain(|other| *other != job);
                }
            }
        }
        self.settle(job, output, Recorded::Unrecorded);
    }

    /// Values of an output come in the order in which they were published: with this one, those before it do not come any more.
    fn pass(&mut self, job: JobId, output: u32) {
        let Some(awaited) = self.awaited.get_mut(&output) else { return };
        let Some(place) = awaited.iter().position(|other| *other == job) else { return };
        let before: Vec<JobId> = awaited.drain(..=place).filter(|other| *other != job).collect();
        before.into_iter().for_each(|other| self.settle(other, output, Recorded::Unrecorded));
    }

    fn settle(&mut self, job: JobId, output: u32, value: Recorded) {
        if let Some(end) = self.end_of(job) {
            end.published.insert(output, value);
        }
    }

    fn end_of(&mut self, job: JobId) -> Option<&mut End> {
        let place = self.ends.get(&job)? - self.first;
        match self.pending.get_mut(place as usize) {
            Some(Step::End(end)) => Some(end),
            _ => unreachable!("there is the end of a job"),
        }
    }

    /// The next step, if all is known of it, or if nothing more will be.
    pub fn next(&mut self, is_over: bool) -> Option<Step> {
        let is_ready = match self.pending.front_mut()? {
            Step::Begin { .. } | Step::Take { .. } | Step::Gap => true,
            Step::End(end) => {
                end.is_settled = self.now.is_some_and(|now| now > end.at.saturating_add(SETTLING));
                let is_there = |published: &Recorded| *published != Recorded::Awaited;
                let is_whole = end.published.values().all(is_there)
                    && end.beside.as_ref().is_none_or(is_there)
                    && end.pushes.are_whole();
                let is_given_up =
                    self.now.is_some_and(|now| now > end.visible.max(end.at).saturating_add(PATIENCE));
                end.is_settled && (is_whole || is_given_up)
            }
        };
        if !is_ready && !is_over {
            return None;
        }
        let step = self.pending.pop_front()?;
        if let Step::End(end) = &step {
            // A trace that was harmed may have two ends of a job.
            if self.ends.get(&end.job) == Some(&self.first) {
                self.ends.remove(&end.job);
            }
            for (output, _) in end.published.iter().filter(|(_, value)| **value == Recorded::Awaited) {
                if let Some(awaited) = self.awaited.get_mut(output) {
                    awaited.retain(|job| *job != end.job);
                }
            }
        }
        self.first += 1;
        Some(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::OperationId;

    fn job(instance: u64) -> JobId {
        JobId { operation: OperationId::from_index(0), instance }
    }

    fn at(seconds: i64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn end(instance: u64) -> Step {
        let dates = Dates { nominal: at(0), deadline: at(9) };
        let (how, published, dropped) = (Ending::Completed, BTreeMap::new(), Vec::new());
        Step::End(End {
            job: job(instance),
            at: at(0),
            dates,
            how,
            taken: Vec::new(),
            published,
            beside: None,
            pushes: Pushes::default(),
            visible: at(0),
            dropped,
            is_settled: false,
        })
    }

    fn published(steps: &mut Steps, is_over: bool) -> Vec<(u64, Recorded)> {
        let mut all = Vec::new();
        while let Some(step) = steps.next(is_over) {
            let Step::End(end) = step else { continue };
            all.push((end.job.instance, end.published[&7].clone()));
        }
        all
    }

    fn of_three() -> Steps {
        let mut steps = Steps::default();
        for instance in 0..3 {
            steps.push(end(instance));
            steps.publish(job(instance), 7, at(0), true);
        }
        steps.reach(at(3));
        steps
    }

    #[test]
    fn a_value_for_which_there_was_no_room_says_nothing_of_those_before_it() {
        let mut steps = of_three();
        steps.miss(job(2), 7, Missing::NeverTaken);
        assert_eq!(published(&mut steps, false), []);
        steps.receive(job(0), 7, vec![1]);
        steps.receive(job(1), 7, vec![2]);
        let expected =
            [(0, Recorded::Bytes(vec![1])), (1, Recorded::Bytes(vec![2])), (2, Recorded::Unrecorded)];
        assert_eq!(published(&mut steps, false), expected);
    }

    #[test]
    fn what_comes_in_its_turn_says_that_those_before_it_do_not_come() {
        for why in [None, Some(Missing::Taken)] {
            let mut steps = of_three();
            match why {
                None => steps.receive(job(1), 7, vec![2]),
                Some(why) => steps.miss(job(1), 7, why),
            }
            let own = if why.is_none() { Recorded::Bytes(vec![2]) } else { Recorded::Unrecorded };
            assert_eq!(published(&mut steps, false), [(0, Recorded::Unrecorded), (1, own)]);
            assert_eq!(published(&mut steps, true), [(2, Recorded::Awaited)]);
            assert!(steps.awaited[&7].is_empty() && steps.ends.is_empty());
        }
    }

    #[test]
    fn the_end_of_a_job_is_due_when_all_is_known_that_it_pushed() {
        let mut steps = Steps::default();
        // One comes before its end, and one of another publication after it.
        steps.pushes_of(job(0)).tell(1);
        let push = |number: u16, bytes: &[u8], answer| KeptPush {
            publication: 2,
            number,
            bytes: bytes.to_vec(),
            answer,
        };
        steps.pushes_of(job(0)).keep(push(2, &[], None));
        steps.push(end(0));
        steps.pushes_of(job(0)).tell(2);
        steps.reach(at(3));
        assert!(steps.next(false).is_none());
        // One that was refused is none that the job has told of.
        steps.pushes_of(job(0)).keep(push(3, &[8], Some(PushAnswer::Rejected)));
        assert!(steps.next(false).is_none());
        let pushed = PushAnswer::Pushed { subscribed: 1, queued: 1, discarded: 0 };
        steps.pushes_of(job(0)).keep(push(1, &[9], Some(pushed)));
        assert!(steps.next(false).is_none());
        steps.pushes_of(job(0)).lose(1);
        let Some(Step::End(end)) = steps.next(false) else { panic!("it is due") };
        assert_eq!([1, 2].map(|publication| end.pushes.missing(publication)), [1, 0]);
        assert!(!end.pushes.may_lack_a_refusal());
        let mut pushes = end.pushes.clone();
        pushes.lose(2);
        assert!(pushes.may_lack_a_refusal());
        assert_eq!(end.pushes.kept.iter().map(|push| push.number).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn a_value_that_does_not_come_is_given_up_in_the_end() {
        let mut steps = of_three();
        steps.reach(at(10));
        assert_eq!(published(&mut steps, false), []);
        steps.reach(at(11));
        assert_eq!(published(&mut steps, false).len(), 3);
        assert!(steps.awaited[&7].is_empty() && steps.ends.is_empty());
    }
}
