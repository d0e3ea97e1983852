//! Who runs next is decided by a hierarchy of small schedulers (Regehr and Stankovic, *HLS*, 2001,
//! sections 6 and 7).
//!
//! ```text
//!              machine              one root VP per processor, granted whenever it is requested
//!                 │
//!          fixed priority           a scheduler: child of its own VPs, parent of others
//!            ╱    │    ╲
//!         lane  lane  lane          leaves of a Kokyu composition
//!         ╱ ╲     │     │
//!       thread … thread thread      a thread is a leaf VP: unblock = request, block = release
//! ```
//!
//! A *virtual processor* (VP) links a child to its parent. **The parent owns the child's VP state** and
//! changes it only through the actions of its [`Decision`]s, which the [`Engine`] applies:
//!
//! ```text
//!              1 request                    2 grant
//!   Waiting ─────────────────▶ Ready ─────────────────▶ Running(processor)
//!      ▲  ▲                     │  ▲                        │    │
//!      │  └──── 4 release ──────┘  └────── 3 revoke ────────┘    │
//!      └─────────────────────── 5 release ───────────────────────┘
//! ```
//!
//! 1, 4 and 5 come from the child (or, for a thread, from outside), 2 and 3 from the parent. A grant is
//! answered at once by granting to a child or by releasing; a revoke cannot be refused.
//!
//! One external notification in, a fixed point of internal ones, a list of processor switches out. The fixed
//! point is a loop over an explicit stack, so it neither recurses nor, once its buffers have grown to the
//! depth of the hierarchy, allocates. Consequences of one action are finished before the next action of the
//! same decision begins, exactly as with the nested calls of the original. A request or release that these have made already is
//! not made again.
//!
//! **Deadlines travel upwards.** A uniformly slower processor is defined between the deadlines that its child
//! announces while running (section 4.2). A thread's deadline is its job's; a scheduler says its own with
//! [`Action::Announce`], which stores it where a parent finds a thread's and tells the parent if it may
//! matter. The original has its messages for that; here it is an action, because it belongs to a decision and
//! has to arrive before the request that follows in the same decision. Schedulers without deadlines ignore it.
//!
//! **So do jobs**, for schedulers that guarantee single ones: lanes pass on whose job they want the processor for, by
//! [`Action::PassJob`], and whoever is above them finds it by [`Context::behind`]. Schedulers that guarantee none ignore it.
//!
//! **Everything can change while it runs** (section 5.4): schedulers and threads come, go and move, parameters change, and a
//! scheduler gives its place to another kind. Each change is made in one instant or, if anybody refuses, not at all. What
//! has to be undone if a later part is refused is not done but rehearsed: on copies of the schedulers that may refuse.

mod admission;
mod custody;
mod decision;
mod engine;
mod fixed_point;
mod inspect;
mod membership;
mod reconfigure;
mod replace;
mod supply;
mod vp;

pub use admission::{Fraction, Load, Shortage, Whose};
pub use decision::{Action, Decision, SPARE, Wake};
pub use engine::{Engine, Occupant, Switch, Transition, Trigger};
pub use inspect::{Above, Below, Edge};
pub use reconfigure::ReconfigureError;
pub use replace::Replacement;
pub use vp::{Context, ProcessorId, VpId, VpState};

use talea_guarantee::scheduler::article;
use talea_time::{Duration, Instant, Work};

/// A scheduler of an [`Engine`]: its seat, and how many sat there before.
///
/// Seats are used again and ids are not, so the id of a scheduler that was removed names nobody. A scheduler that is
/// replaced keeps its id, for it keeps its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchedulerId {
    seat: u32,
    generation: u32,
}

impl SchedulerId {
    /// The seat's number, for tables indexed by scheduler.
    pub const fn index(self) -> usize {
        self.seat as usize
    }
}

/// What a child asks of a parent when it registers, or later by message: the edge of the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameters {
    /// Nothing in particular.
    None,
    /// A priority; larger is higher.
    Priority(i32),
    /// A relative share.
    Weight(u32),
    /// A relative share with a head start: `warp` of virtual time.
    WarpedWeight {
        /// The share.
        weight: u32,
        /// How much earlier than its virtual time says it is served.
        warp: Duration,
    },
    /// A relative share that is asked for in requests of `request` of processor time each.
    Requests {
        /// The share.
        weight: u32,
        /// Processor time per request: short requests are served sooner and more often.
        request: Work,
    },
    /// `budget` of processor time in every `period`.
    Reservation {
        /// Amount.
        budget: Work,
        /// Per this much time.
        period: Duration,
    },
    /// A reserve of a resource kernel: `budget` in every `period`, within `deadline` of its start.
    Reserve {
        /// Amount.
        budget: Work,
        /// Per this much time.
        period: Duration,
        /// How long after the start of a period the budget has been received; at most `period`.
        deadline: Duration,
        /// What becomes of the child once the budget is used up.
        enforcement: Enforcement,
    },
    /// A processor of this fraction of the speed of the whole one.
    Rate(Fraction),
    /// The process with this number in an explicit plan.
    Process(u32),
    /// Nothing; but each of its jobs asks, when it arrives, for a [`Constraint`]: what remains of its worst case, by its deadline. A job
    /// that is refused goes without. A scheduler asks for the job behind it, which it passes on, each time that it is another one.
    Jobs,
}

impl Parameters {
    /// The weight of a child that asks a `scheduler` of shares for no more than that.
    ///
    /// # Errors
    /// It asks for something else.
    pub fn weight(self, scheduler: &'static str) -> Result<u32, Refusal> {
        match self {
            Parameters::Weight(weight @ 1..) => Ok(weight),
            given => Err(Refusal::unacceptable(scheduler, "a weight above 0", given)),
        }
    }
}

/// What a reserve without budget may still do until the next period (Oikawa and Rajkumar 1999).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enforcement {
    /// Nothing.
    Hard,
    /// Run if nobody else wants to.
    Firm,
    /// Compete with those that have no reserve.
    Soft,
}

/// A message to a scheduler: from a child about itself, or from outside about the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Change what the child asked for when it registered.
    Change(Parameters),
    /// Accept or refuse a piece of work before it is released: a *time constraint* of Rialto, an arriving task
    /// of Spring.
    Constrain(Constraint),
    /// The piece of work that was accepted last is done, or is not needed any more.
    EndConstraint,
    /// The child is about to block in the midst of its job and keeps its place: nobody else below gets what it gives back.
    KeepPlace,
}

impl std::fmt::Display for Message {
    /// What is asked for, as in "takes no …".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Message::Change(_) => "changes of what a child has asked for",
            Message::Constrain(_) => "time constraints",
            Message::EndConstraint => "ends of time constraints",
            Message::KeepPlace => "children that keep their places while they block",
        })
    }
}

/// `work` to be done between `start` and `deadline`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Not before.
    pub start: Instant,
    /// Not after.
    pub deadline: Instant,
    /// Worst-case execution time.
    pub work: Work,
}

/// Why a scheduler refuses a child or a message. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The scheduler cannot do anything with parameters of this kind.
    #[error("{} {scheduler} scheduler takes {wanted}, not {given:?}", article(scheduler))]
    Unacceptable {
        /// Kind of the scheduler.
        scheduler: &'static str,
        /// What it takes instead.
        wanted: &'static str,
        /// What it was given.
        given: Parameters,
    },
    /// Another child already has these parameters and only one may.
    #[error("{} {scheduler} scheduler has a child with {given:?} already", article(scheduler))]
    Taken {
        /// Kind of the scheduler.
        scheduler: &'static str,
        /// What it was given.
        given: Parameters,
    },
    /// The scheduler takes no messages of this kind.
    #[error("{} {scheduler} scheduler takes no {message}", article(scheduler))]
    NotUnderstood {
        /// Kind of the scheduler.
        scheduler: &'static str,
        /// What it was told.
        message: Message,
    },
    /// The child has no piece of work that was accepted and is not over.
    #[error(
        "{} {scheduler} scheduler has nothing to end: no piece of work was accepted, or it is over",
        article(scheduler)
    )]
    NothingAccepted {
        /// Kind of the scheduler.
        scheduler: &'static str,
    },
    /// Admission control: not enough is left.
    #[error("not admitted: {0}")]
    Admission(#[from] Shortage),
    /// The scheduler uses one processor at a time and would be given several.
    #[error(
        "{} {scheduler} scheduler uses one processor at a time and has one parent, not {given}",
        article(scheduler)
    )]
    OneProcessor {
        /// Kind of the scheduler.
        scheduler: &'static str,
        /// Parents, or processors for the root.
        given: usize,
    },
    /// A lane orders jobs, and a scheduler has none.
    #[error("{} {scheduler} scheduler orders jobs, which only threads have", article(scheduler))]
    NotAThread {
        /// Kind of the scheduler.
        scheduler: &'static str,
    },
    /// The scheduler would hang on nothing.
    #[error("{} {scheduler} scheduler needs a parent", article(scheduler))]
    NoParent {
        /// Kind of the scheduler.
        scheduler: &'static str,
    },
    /// The scheduler that was asked has been removed.
    #[error("there is no such scheduler any more")]
    Gone,
    /// Whoever the message is about is no child of the scheduler.
    #[error("{} {scheduler} scheduler was told about a child that is not its own", article(scheduler))]
    NotAChild {
        /// Kind of the scheduler.
        scheduler: &'static str,
    },
}

impl Refusal {
    /// A `scheduler` that takes `wanted` was given something else.
    pub fn unacceptable(scheduler: &'static str, wanted: &'static str, given: Parameters) -> Self {
        Refusal::Unacceptable { scheduler, wanted, given }
    }
}

/// What a child has had of its amount in the period that goes on: what a maximum is counted against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// How much.
    pub used: Work,
    /// When the period ends.
    pub until: Instant,
    /// Whether the child wants a processor, so that it is in the middle of the period.
    pub is_pending: bool,
}

/// How many VPs of its own a scheduler can serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One.
    One,
    /// One for each parent, or as the root one for each processor, however many that are.
    Any,
}

/// A scheduler of the hierarchy: a state machine that answers every notification with a [`Decision`].
///
/// The eleven entry points of Regehr and Stankovic, Table 3, one for deadlines and two for jobs. Nothing here reads a clock:
/// [`Context::now`] is passed in, and the decision says when the scheduler wants its timer. A scheduler knows the states of
/// its children and of its own VPs through the context and never keeps a copy that could disagree.
pub trait Scheduler: Send {
    /// The kind, for messages: "fixed-priority".
    fn kind(&self) -> &'static str;

    /// How many own VPs it can serve.
    fn width(&self) -> Width;

    /// The same scheduler once more, which decides as this one would. Changes that concern several schedulers are
    /// rehearsed on copies.
    fn duplicate(&self) -> Box<dyn Scheduler>;

    // From the children.

    /// A new child VP asks to be scheduled under `parameters`. It is Waiting and holds no processor.
    ///
    /// # Errors
    /// Admission control and unacceptable parameters; the child is then not registered.
    fn register(&mut self, cx: &Context<'_>, child: VpId, parameters: Parameters) -> Result<(), Refusal>;

    /// The child goes away. It is Waiting.
    fn unregister(&mut self, cx: &Context<'_>, child: VpId);

    /// The child can use a processor. It has just become Ready.
    fn request(&mut self, cx: &Context<'_>, child: VpId) -> Decision;

    /// The child cannot use a processor any more. It has just become Waiting; `held` is the processor it was
    /// running on, which is this scheduler's again, or `None` if it was Ready.
    fn release(&mut self, cx: &Context<'_>, child: VpId, held: Option<ProcessorId>) -> Decision;

    /// A message from a child, or about the scheduler itself. Most schedulers understand none.
    ///
    /// # Errors
    /// The scheduler cannot or will not; nothing has changed.
    fn message(
        &mut self,
        _cx: &Context<'_>,
        _child: Option<VpId>,
        message: Message,
    ) -> Result<Decision, Refusal> {
        Err(Refusal::NotUnderstood { scheduler: self.kind(), message })
    }

    /// The deadline of `child`, which is not Waiting, is another one now: see [`Context::deadline`].
    fn announced(&mut self, _cx: &Context<'_>, _child: VpId) -> Decision {
        Decision::NONE
    }

    /// The job that `child`, which is not Waiting, wants its processor for is another one now: see [`Context::behind`].
    fn job_changed(&mut self, _cx: &Context<'_>, _child: VpId) -> Decision {
        Decision::NONE
    }

    /// The thread `child`, which is not Waiting, has done its job and wants the processor for the next one, which waits already. It has
    /// not slept: whoever bounds what it is behind keeps its account as it is. [`Context::job`] is the new one; for the one
    /// before it `ran` so long.
    fn job_followed(&mut self, cx: &Context<'_>, child: VpId, _ran: Work) -> Decision {
        self.announced(cx, child)
    }

    // From the parents.

    /// A parent granted `processor` to the own VP `own`, which is Running. The decision must use it for a
    /// child or release it.
    fn grant(&mut self, cx: &Context<'_>, own: VpId, processor: ProcessorId) -> Decision;

    /// A parent took `processor` back; `own` is Ready. The decision must take it from the child that has it.
    /// The parent is in the middle of a decision of its own, so whoever wants to ask another parent now does it
    /// when everything is known, by [`Wake::AtSchedulingPoint`].
    fn revoke(&mut self, cx: &Context<'_>, own: VpId, processor: ProcessorId) -> Decision;

    // From the infrastructure.

    /// Called once, before anything else: a VP that links this scheduler to a parent. Called again for every
    /// further parent or processor.
    fn init(&mut self, own: VpId);

    /// The scheduler is about to be replaced: what `child` has had, up to now, in the period that goes on. None of a scheduler that
    /// gives nobody a maximum in periods.
    fn spent(&mut self, _cx: &Context<'_>, _child: VpId) -> Option<Spent> {
        None
    }

    /// The scheduler takes another's place, from which `child`, which has just registered, has `spent` this much: what it is given until that
    /// period ends is only what is left.
    fn carry_over(&mut self, _cx: &Context<'_>, _child: VpId, _spent: Spent) {}

    /// Called once, after everything else: the scheduler has been removed or replaced. Who is replaced may have
    /// children still, which are another's by now.
    fn deinit(&mut self) {}

    /// The instant asked for by an earlier [`Decision`] has come.
    fn timer(&mut self, cx: &Context<'_>) -> Decision;

    /// Panics if the scheduler's state contradicts the states of its VPs. For debugging and tests.
    fn check_invariants(&self, cx: &Context<'_>);
}
