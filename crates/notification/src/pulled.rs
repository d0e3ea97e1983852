//! Suppliers that are pulled (`PullSupplier`): a job of the channel asks them for events, at a pace that is declared.
//!
//! ```text
//!            ┌──────── suspend ────────┐
//!            ▼                         │
//!   Suspended ──── resume ───► Active ─┴─ the pace's instant ──► ask ──► push ──► next instant
//!                                 │                               │
//!                                 └── dropped, removed, Gone, panic ──► Closed
//! ```
//! The instants are those of the pace, however long the turns take: one that is over when a turn ends is skipped, and counted. Who connects it has all
//! of it; the work knows it weakly, so that it is gone when it is dropped, or when the turn ends in which that happened.

use crate::connect::ConnectError;
use crate::connected::NotNow;
use crate::consumer::Connection;
use crate::event::Event;
use crate::place::{Place, WeakPlace};
use crate::shared::{Shared, Unbound};
use crate::supplier::{PushError, Supplier, SupplierBuilder, SupplierHandle};
use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use talea_linux::pi_lock::PiLock;
use talea_operation::{Declaration, JobContext, PostedCode, PostedOperation};
use talea_time::{Duration, Instant, Work};

/// What a supplier says that is asked for an event. A panic is [`Supplied::Gone`].
#[derive(Clone, Debug)]
pub enum Supplied {
    /// This one. It is asked again in the same turn, if that has room.
    Event(Event),
    /// None now: it is asked again when its turn comes.
    Nothing,
    /// There will be none any more: it is disconnected (`Disconnected`).
    Gone,
}

/// When a supplier is asked, for how many events, and in which lane.
#[derive(Clone, Debug)]
#[must_use]
pub struct PullPace {
    every: Duration,
    most: usize,
    work: Option<Declaration>,
}

impl PullPace {
    /// It is asked once in this time, from when it is connected on, for one event.
    pub fn every(period: Duration) -> Self {
        PullPace { every: period, most: 1, work: None }
    }

    /// It is asked for so many events in each turn at most, one after the other until it has none.
    pub fn up_to(mut self, events: usize) -> Self {
        self.most = events;
        self
    }

    /// It is asked in the lane of this work. The name in the declaration is the operation's. Without any, the [pool](crate::ThreadPool) of its
    /// channel says where: the lane for the supplier's priority; without that as well the work is called `channel.supplier`, is due when the next turn
    /// comes, and takes 100 µs at most.
    pub fn lane(mut self, work: Declaration) -> Self {
        self.work = Some(work);
        self
    }

    fn problem(&self) -> Option<&'static str> {
        match self {
            PullPace { every, .. } if *every <= Duration::ZERO => Some("between two turns there is time"),
            PullPace { most: 0, .. } => Some("a turn asks for one event at least"),
            _ => None,
        }
    }
}

/// What became of a supplier's turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PullStatistics {
    /// Turns in which it was asked.
    pub turns: u64,
    /// Turns that were left out, since one before them lasted until their instant or beyond.
    pub skipped: u64,
    /// Events that it gave.
    pub pulled: u64,
    /// Turns in which it had none to begin with.
    pub empty: u64,
    /// Turns that ended with an event which the channel [rejected](PushError::Rejected), and which is pushed first when the next turn comes.
    pub rejected: u64,
    /// Events that were refused for what they are or ask for; nobody has them.
    pub refused: u64,
}

#[derive(Default)]
struct Counts {
    turns: AtomicU64,
    skipped: AtomicU64,
    pulled: AtomicU64,
    empty: AtomicU64,
    rejected: AtomicU64,
    refused: AtomicU64,
}

fn add(count: &AtomicU64, more: u64) {
    count.fetch_add(more, Ordering::Relaxed);
}

/// Code that is asked for an event.
type PullCode = Box<dyn FnMut(&JobContext<'_>) -> Supplied + Send>;

/// Who is asked, and what is known of its turns.
struct Source {
    supplier: Supplier,
    code: PullCode,
    /// What the channel rejected.
    kept: Option<Event>,
    /// The instant of the turn, if the one before it was that of the pace.
    planned: Option<Instant>,
}

/// Whether there are more turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Next,
    Last,
}

/// A supplier that is pulled.
struct Pulled {
    handle: SupplierHandle,
    every: Duration,
    most: usize,
    /// None when it is gone. Jobs alone have it, of which there is one at a time.
    source: PiLock<Option<Source>>,
    operation: OnceLock<PostedOperation>,
    is_suspended: AtomicBool,
    has_failed: AtomicBool,
    counts: Counts,
}

impl Pulled {
    /// A turn, in a job.
    fn run(&self, place: &WeakPlace, job: &JobContext<'_>) {
        let mut source = self.source.lock();
        let Some(own) = &mut *source else { return };
        if self.is_suspended.load(Ordering::Acquire) {
            // Whoever resumes it posts a job.
            own.planned = None;
            return;
        }
        let planned = own.planned.unwrap_or(job.started());
        add(&self.counts.turns, 1);
        // Also where a filter fails that an event meets: a supplier whose turns have stopped is not to pass for an active one.
        let turn = catch_unwind(AssertUnwindSafe(|| self.ask(own, job))).unwrap_or_else(|_| {
            self.has_failed.store(true, Ordering::Release);
            Turn::Last
        });
        if turn == Turn::Last {
            let gone = source.take();
            drop(source);
            // Dropping it may run code of the program, and fail as the code does.
            _ = catch_unwind(AssertUnwindSafe(|| drop(gone)));
            return;
        }
        // An extra turn, upon being resumed, is beside those of the pace.
        let is_extra = planned > job.started();
        let next = if is_extra { planned } else { self.next(planned, job.services().clock()) };
        own.planned = Some(next);
        drop(source);
        self.post_at(place, next);
    }

    /// Asks for events and pushes them, as many as a turn has.
    fn ask(&self, source: &mut Source, job: &JobContext<'_>) -> Turn {
        let Source { supplier, code, kept, .. } = source;
        for asked in 0..self.most {
            if !self.handle.is_connected() {
                return Turn::Last;
            }
            let event = match kept.take() {
                Some(event) => event,
                None => match code(job) {
                    Supplied::Event(event) => {
                        add(&self.counts.pulled, 1);
                        event
                    }
                    Supplied::Nothing => {
                        add(&self.counts.empty, u64::from(asked == 0));
                        return Turn::Next;
                    }
                    Supplied::Gone => return Turn::Last,
                },
            };
            match supplier.push(job, &event) {
                Ok(_) => {}
                Err(PushError::Rejected) => {
                    add(&self.counts.rejected, 1);
                    *kept = Some(event);
                    return Turn::Next;
                }
                Err(PushError::Closed | PushError::NotConnected) => return Turn::Last,
                Err(
                    PushError::Qos(_) | PushError::TooManyTypes | PushError::Limit(_) | PushError::Header(_),
                ) => {
                    add(&self.counts.refused, 1);
                }
            }
        }
        Turn::Next
    }

    /// The instant of the next turn after one that was planned for this one and is over now.
    fn next(&self, planned: Instant, now: Instant) -> Instant {
        let every = self.every.as_nanos();
        let late = (now - planned).as_nanos().max(0);
        let skipped = late / every;
        add(&self.counts.skipped, skipped.unsigned_abs());
        planned.saturating_add(Duration::from_nanos(every.saturating_mul(skipped.saturating_add(1))))
    }

    fn post_at(&self, place: &WeakPlace, at: Instant) {
        if let Some(operation) = self.operation.get() {
            place.with(|workplace| workplace.post_at(at, *operation));
        }
    }
}

/// Declares the work of a supplier, and posts its first turn.
///
/// # Errors
/// It cannot be declared.
fn begin(pulled: &Arc<Pulled>, work: Declaration, place: &Place) -> Result<(), Box<dyn Error + Send + Sync>> {
    let workplace = place.get().expect("it is known where work is posted");
    let (own, weak) = (Arc::downgrade(pulled), place.weak());
    let code = PostedCode::new(move |job: &JobContext<'_>| {
        if let Some(pulled) = own.upgrade() {
            pulled.run(&weak, job);
        }
    });
    let operation = workplace.declare(Declaration { is_of_channel: true, ..work }, code)?;
    _ = pulled.operation.set(operation);
    workplace.post_at(workplace.now(), operation);
    Ok(())
}

/// How long a turn executes at most where nothing says so.
const DEFAULT_WCET: Work = Work::from_micros(100);

impl SupplierBuilder {
    /// Connects it: `code` is asked for events at this pace, in a job of the channel, which pushes them (`obtain_*_pull_consumer`,
    /// `connect_*_pull_supplier`; the question is `try_pull`). It must not wait: a supplier that does is pulled by a thread of the program
    /// ([`Supplier::push_all`]). An event that the channel rejects is kept and pushed first when the next turn comes. If `code` panics, or a
    /// filter that its event meets, the supplier is disconnected. Before there is a run it is not asked.
    ///
    /// # Errors
    /// As [`connect`](Self::connect); the pace makes no sense; or its work cannot be declared.
    pub fn connect_pull(
        self,
        pace: PullPace,
        code: impl FnMut(&JobContext<'_>) -> Supplied + Send + 'static,
    ) -> Result<PullSupplier, ConnectError> {
        if let Some(problem) = pace.problem() {
            return Err(ConnectError::Pace(problem));
        }
        let supplier = self.connect()?;
        let (handle, shared) = (SupplierHandle::clone(&supplier), Arc::clone(supplier.shared()));
        let PullPace { every, most, work } = pace;
        let work = work.unwrap_or_else(|| work_of(&handle, &shared, every));
        let code: PullCode = Box::new(code);
        let pulled = Arc::new(Pulled {
            handle,
            every,
            most,
            source: PiLock::new(Some(Source { supplier, code, kept: None, planned: None })),
            operation: OnceLock::new(),
            is_suspended: AtomicBool::new(false),
            has_failed: AtomicBool::new(false),
            counts: Counts::default(),
        });
        let (own, place) = (Arc::downgrade(&pulled), shared.place.clone());
        let unbound = Unbound {
            number: pulled.handle.id(),
            name: pulled.handle.name().into(),
            begin: Box::new(move || own.upgrade().map_or(Ok(()), |pulled| begin(&pulled, work, &place))),
        };
        let pulled = PullSupplier(pulled);
        shared.when_bound(unbound).map_err(ConnectError::Work)?;
        Ok(pulled)
    }
}

/// The work of a supplier that has not said it: of its channel's pool the lane for its priority, or one of its own.
fn work_of(handle: &SupplierHandle, shared: &Shared, every: Duration) -> Declaration {
    let name = format!("{}.{}", shared.name, handle.name());
    let of_pool =
        shared.topology().pool.as_ref().and_then(|pool| pool.work_for(handle.qos().priority, &name));
    of_pool.unwrap_or_else(|| Declaration::new(&name, every).wcet(DEFAULT_WCET)).period(every)
}

/// A connected supplier that is pulled (`ProxyPullConsumer`, seen from its supplier). Dropping it disconnects it. What can be asked and set is that of
/// its [`SupplierHandle`].
#[must_use = "dropping it disconnects the supplier"]
pub struct PullSupplier(Arc<Pulled>);

impl fmt::Debug for PullSupplier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullSupplier").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl std::ops::Deref for PullSupplier {
    type Target = SupplierHandle;

    fn deref(&self) -> &SupplierHandle {
        &self.0.handle
    }
}

impl PullSupplier {
    /// Whether it is asked. It is closed from when it has said that it is [gone](Supplied::Gone), has [failed](Self::has_failed) or was removed.
    pub fn connection(&self) -> Connection {
        match (self.is_connected(), self.0.is_suspended.load(Ordering::Acquire)) {
            (false, _) => Connection::Closed,
            (true, true) => Connection::Suspended,
            (true, false) => Connection::Active,
        }
    }

    /// Whether its code has panicked, or a filter that its event met, which was its end.
    pub fn has_failed(&self) -> bool {
        self.0.has_failed.load(Ordering::Acquire)
    }

    /// It is not asked from now on (`suspend_connection`). A turn that has begun ends.
    ///
    /// # Errors
    /// It is suspended, or not connected.
    pub fn suspend(&self) -> Result<(), NotNow> {
        if !self.is_connected() {
            return Err(NotNow::NotConnected);
        }
        let was_suspended = self.0.is_suspended.swap(true, Ordering::AcqRel);
        if was_suspended { Err(NotNow::AlreadySuspended) } else { Ok(()) }
    }

    /// It is asked again, now and at its pace from now on (`resume_connection`).
    ///
    /// # Errors
    /// It is not suspended, or not connected.
    pub fn resume(&self) -> Result<(), NotNow> {
        if !self.is_connected() {
            return Err(NotNow::NotConnected);
        }
        if !self.0.is_suspended.swap(false, Ordering::AcqRel) {
            return Err(NotNow::AlreadyActive);
        }
        // What a turn that has just ended plans beside that is later.
        if let (Some(workplace), Some(operation)) = (self.shared().place.get(), self.0.operation.get()) {
            workplace.post_at(workplace.now(), *operation);
        }
        Ok(())
    }

    /// What became of its turns.
    pub fn statistics(&self) -> PullStatistics {
        let Counts { turns, skipped, pulled, empty, rejected, refused } = &self.0.counts;
        let [turns, skipped, pulled, empty, rejected, refused] =
            [turns, skipped, pulled, empty, rejected, refused].map(|count| count.load(Ordering::Relaxed));
        PullStatistics { turns, skipped, pulled, empty, rejected, refused }
    }
}

impl Drop for PullSupplier {
    fn drop(&mut self) {
        // A turn that has begun pushes nothing any more.
        self.disconnect();
    }
}
