//! What records say: every builtin event is declared once, in [`builtin`], with typed fields.
//!
//! | Writing | `Release { job, lane, nominal, deadline }.at(time, cpu)` |
//! |---|---|
//! | Reading one event | `Release::read(&record)` |
//! | Reading several | `match record.typed() { Typed::Release(release) => …, Typed::Lost(lost) => …, _ => … }` |
//! | Reading all alike | [`Record::dates`], [`Record::lane`], [`Record::node`], [`Event::is_about_job`], the [name space](crate::namespace) |
//!
//! A new field is a line of its event's declaration; a new event is a block. Where a field stands is written down there, for old
//! traces are read by it.

pub mod builtin;
mod codes;
mod declare;
mod field;
mod layout;

use crate::record::{Event, JobId, Record};
use talea_guarantee::monitor::{self, Bound};
use talea_model::{OperationId, PublicationId};
use talea_time::{Duration, Instant, Work};

pub use builtin::*;
pub use codes::{
    CallOutcome, ChangeAuthor, ChangeKind, ChangeReason, Codes, CostKind, DropReason, EventLossReason,
    InterruptKind, LossCause, LossReason, MemberRole, PostOutcome, Question, RunOutcome, SkipReason,
    ThreadRole, Trigger, ValueLoss, ViolationSide, WakeContext,
};
pub use field::{Code, Coded, FieldType, Flag, JobOrNone, Meaning, WordType};

/// An event with typed fields.
pub trait BuiltinEvent: Copy {
    /// Its number.
    const EVENT: Event;

    /// Puts the fields into a record in which nothing stands.
    fn fill(self, record: &mut Record);

    /// The record of this at `time` on `cpu`, which may be [`Record::NO_CPU`].
    #[inline]
    fn at(self, time: Instant, cpu: u16) -> Record {
        let (event, source) = (Self::EVENT, Record::NO_LANE);
        let mut record = Record { time, causal: 0, words: [0; 2], event, source, cpu, arg: 0 };
        self.fill(&mut record);
        record
    }
}

/// Nominal release and deadline of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dates {
    /// Its nominal release.
    pub nominal: Instant,
    /// Its absolute end-to-end deadline, as records have it.
    pub deadline: Instant,
}

impl Deliver {
    /// A job of a lane takes its event of this number, which was published so, by a job of that operation and instance.
    pub fn of(
        (job, number, lane): (JobId, u32, u16),
        publication: Option<PublicationId>,
        from: Option<(OperationId, u64)>,
    ) -> Self {
        let publication = publication.map(|publication| publication.index() as u32);
        let from = from.map(|(operation, instance)| JobId { operation, instance });
        Deliver { job, from, publication, number, lane }
    }
}

impl Answer {
    /// A guard held the job until then.
    pub fn release(job: JobId, at: Instant, lane: u16) -> Self {
        let answer = at.as_nanos().max(0).unsigned_abs();
        Answer { job, answer, question: 0, lane, what: Question::Release.into() }
    }

    /// The newest value of this input, which came from another node, was visible from then on.
    pub fn visible(job: JobId, input: u32, at: Instant, lane: u16) -> Self {
        let answer = at.as_nanos().max(0).unsigned_abs();
        Answer { job, answer, question: input.into(), lane, what: Question::Visible.into() }
    }
}

impl Answer {
    /// In this call of the job, from 0, the code of a consumer said this of what it was handed.
    pub fn outcome(job: JobId, (call, outcome): (u32, CallOutcome), lane: u16) -> Self {
        let answer = u64::from(outcome.code());
        Answer { job, answer, question: call.into(), lane, what: Question::Outcome.into() }
    }

    /// The job wanted to post one of this operation, which executes this long at most, and was refused.
    pub fn refused_wcet(job: JobId, operation: OperationId, wcet: Work, lane: u16) -> Self {
        let (answer, question) = (wcet.as_nanos().max(0).unsigned_abs(), operation.index() as u64);
        Answer { job, answer, question, lane, what: Question::RefusedWcet.into() }
    }
}

impl Event {
    /// Whether the event is one of a job's life. HELD and JOB_WCET are none: their jobs have not been released.
    pub fn is_job(self) -> bool {
        (Event::RELEASE.0..=Event::WAIT.0).contains(&self.0)
    }

    /// What the number in the event's field called `name` stands for. Those of other families than the builtin ones are numbers.
    pub fn meaning(self, name: &str) -> Meaning {
        self.layout().and_then(|layout| layout.meaning(name)).unwrap_or(Meaning::Number)
    }

    /// Whether the causal id of the event's records is a job.
    #[inline]
    pub fn is_about_job(self) -> bool {
        self.layout().is_some_and(|layout| layout.is_about_job)
    }
}

impl Record {
    /// Nominal release and deadline of the job, where the event tells of them (RELEASE, COMPLETE, SKIP and ABORT do).
    #[inline]
    pub fn dates(&self) -> Option<Dates> {
        let dates = self.event.layout()?.dates?;
        let [nominal, deadline] = dates.map(|place| Instant::from_nanos(place.raw(self) as i64));
        Some(Dates { nominal, deadline })
    }

    /// The deadline of the job, where the event tells of it; `None` of a job that has none.
    ///
    /// What always wants a processor is written as one job of more than two centuries with as much time; descriptions are
    /// limited to ten years, so a deadline more than a century after the nominal release is none.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);
        let Dates { nominal, deadline } = self.dates()?;
        let is_one = deadline.as_nanos().saturating_sub(nominal.as_nanos()) <= NEVER.as_nanos();
        is_one.then_some(deadline)
    }

    /// Index of the lane that the record is about, where the event tells of one. It may be [`Record::NO_LANE`].
    #[inline]
    pub fn lane(&self) -> Option<usize> {
        Some(self.event.layout()?.lane?.index(self))
    }

    /// Index of the node that the record is about, where the event itself tells of one.
    #[inline]
    pub fn node(&self) -> Option<usize> {
        Some(self.event.layout()?.node?.index(self))
    }
}

impl Lost {
    /// Whether they are the kernel's.
    pub fn is_of_kernel(&self) -> bool {
        self.ring == Record::KERNEL
    }

    /// The instant of the last record before them, 0 if there is none or it is unknown.
    pub fn since_or_zero(&self) -> Instant {
        self.since.unwrap_or(Instant::ZERO)
    }
}

/// A length that is longer than can be is as long as can be.
fn length_ns(length: Duration) -> i64 {
    i64::try_from(length.as_nanos() as u64).unwrap_or(i64::MAX)
}

impl Cost {
    /// Its length in nanoseconds; that of a damaged record may be no length.
    pub fn length_ns(&self) -> i64 {
        length_ns(self.cost)
    }
}

impl Violation {
    /// [`Self::amount`] in nanoseconds; that of a damaged record may be no length.
    pub fn amount_ns(&self) -> i64 {
        length_ns(self.amount)
    }

    /// A promise to the edge of this number was found broken.
    pub fn of(edge: usize, violation: &monitor::Violation) -> Self {
        let side = match violation.bound {
            Bound::Least => ViolationSide::Least,
            Bound::Most => ViolationSide::Most,
        };
        Violation {
            amount: violation.amount().at_full_speed(),
            edge: u16::try_from(edge).unwrap_or(u16::MAX),
            from: violation.from,
            to: violation.to,
            side: side.into(),
        }
    }

    /// A promise to the edge of this number was granted and found not to have been received, for the kernel withheld it.
    pub fn withheld(edge: usize, violation: &monitor::Violation) -> Self {
        Violation { side: ViolationSide::Withheld.into(), ..Violation::of(edge, violation) }
    }

    /// A maximum to the edge of this number was granted, and by the kernel's account more received between these instants. Whether that is because it was
    /// held late.
    pub fn exceeded(edge: u16, amount: Duration, (from, to): (Instant, Instant), is_held_late: bool) -> Self {
        let side = if is_held_late { ViolationSide::HeldLate } else { ViolationSide::Exceeded };
        Violation { amount, edge, from, to, side: side.into() }
    }
}
