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
//! same decision begins, exactly as with the nested calls of the original.

mod decision;
mod engine;
mod vp;

pub use decision::{Action, Decision, Wake};
pub use engine::{Engine, Occupant, Switch};
pub use vp::{Context, ProcessorId, VpId, VpState};

use talea_time::{Duration, Work};

/// A scheduler's number in its [`Engine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SchedulerId(pub(crate) u32);

/// What a child asks of a parent when it registers, or later by message: the edge of the hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameters {
    /// Nothing in particular.
    None,
    /// A priority; larger is higher.
    Priority(i32),
    /// A relative share.
    Weight(u32),
    /// `budget` of processor time in every `period`.
    Reservation {
        /// Amount.
        budget: Work,
        /// Per this much time.
        period: Duration,
    },
}

/// A message to a scheduler: from a child about itself, or from outside about the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Change what the child asked for when it registered.
    Change(Parameters),
}

/// Why a scheduler refuses a child or a message. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The scheduler cannot do anything with parameters of this kind.
    #[error("a {scheduler} scheduler takes {wanted}, not {given:?}")]
    Unacceptable {
        /// Kind of the scheduler.
        scheduler: &'static str,
        /// What it takes instead.
        wanted: &'static str,
        /// What it was given.
        given: Parameters,
    },
    /// Another child already has these parameters and only one may.
    #[error("a {scheduler} scheduler has a child with {given:?} already")]
    Taken {
        /// Kind of the scheduler.
        scheduler: &'static str,
        /// What it was given.
        given: Parameters,
    },
    /// Admission control: not enough is left.
    #[error("not admitted: {0}")]
    Admission(String),
}

/// A scheduler of the hierarchy: a state machine that answers every notification with a [`Decision`].
///
/// The eleven entry points of Regehr and Stankovic, Table 3. Nothing here reads a clock: [`Context::now`] is passed in, and the
/// decision says when the scheduler wants its timer. A scheduler knows the states of its children and of its
/// own VPs through the context and never keeps a copy that could disagree.
pub trait Scheduler: Send {
    /// The kind, for messages: "fixed-priority".
    fn kind(&self) -> &'static str;

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

    /// A message from a child, or about the scheduler itself.
    ///
    /// # Errors
    /// The scheduler cannot or will not; nothing has changed.
    fn message(
        &mut self,
        cx: &Context<'_>,
        child: Option<VpId>,
        message: Message,
    ) -> Result<Decision, Refusal>;

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

    /// Called once, after the last child has been unregistered and every own VP is Waiting.
    fn deinit(&mut self) {}

    /// The instant asked for by an earlier [`Decision`] has come.
    fn timer(&mut self, cx: &Context<'_>) -> Decision;

    /// Panics if the scheduler's state contradicts the states of its VPs. For debugging and tests.
    fn check_invariants(&self, cx: &Context<'_>);
}
