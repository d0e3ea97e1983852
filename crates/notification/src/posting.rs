//! The jobs by which consumers have their events: declared, posted, and what they do.

use crate::consumer::{Consumer, Offered};
use crate::delivery::Delivery;
use crate::place::{Place, WeakPlace};
use crate::shared::Shared;
use crate::work::{Calling, Due, LaneWork, ServedLane, Server, Work};
use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use talea_event::TypePattern;
use talea_operation::{
    ChannelTask, Declaration, JobContext, KeptEvent, NotPosted, Post, Posted, PostedCode, TRY_AGAIN,
    TakenPart,
};
use talea_policy::release::guard::WaitingEvents;
use talea_time::{Duration, Instant};

/// Posts a job for an event that waits: its priority says the lane, and when it expires is the deadline. `released` is the instant of the push, for the first
/// job that is posted for it.
///
/// # Errors
/// It is a job that is replayed.
#[inline]
pub(crate) fn post(
    consumer: &Consumer,
    place: &Place,
    via: &mut impl Post,
    (not_before, priority, expires): (Instant, i16, Instant),
    (now, released): (Instant, &mut Option<Instant>),
) -> Result<(), InReplay> {
    let (Some(work), Some(workplace)) = (consumer.work.get(), place.get()) else { return Ok(()) };
    let is_task = consumer.task.is_some();
    if not_before > now {
        work.without_job.fetch_add(usize::from(is_task), Ordering::Relaxed);
        work.wake_at(workplace, Due { at: not_before, priority });
        return Ok(());
    }
    let deadline = Some(expires).filter(|expires| *expires != Instant::MAX);
    // Before it is posted, for it may begin at once.
    let server = work.server(priority);
    let posted = Posted { deadline, ..Posted::new(server.take_on()) };
    work.outstanding.fetch_add(1, Ordering::Relaxed);
    let released = released.take();
    let done =
        if consumer.may_be_called_here() { via.post_here(posted, released) } else { via.post_work(posted) };
    if let Err(refused) = done {
        server.refused();
        work.refused();
        if refused == NotPosted::Replayed {
            return Err(InReplay);
        }
        // The run has not begun, or as many jobs wait as there is room for, of which one does what this one would have done. Should these begin
        // before the event is seen, there is one more.
        work.without_job.fetch_add(usize::from(is_task), Ordering::Relaxed);
        work.wake_at(workplace, Due { at: now.saturating_add(TRY_AGAIN), priority });
    }
    Ok(())
}

/// Nobody delivers what waits for the consumer, who is to [forget](Consumer::forget_waiting) it when no lock is held.
#[derive(Clone, Copy)]
pub(crate) struct InReplay;

/// A job of the consumer is to look at this instant.
pub(crate) fn wake_at(consumer: &Consumer, place: &Place, due: Due) {
    if let (Some(work), Some(workplace)) = (consumer.work.get(), place.get()) {
        work.wake_at(workplace, due);
    }
}

/// What jobs that have begun have taken, where the code is called when they end, in the order in which they began.
type Reserved = Arc<Mutex<VecDeque<Vec<Delivery>>>>;

/// A job of a consumer begins whose code is called when it ends, of this server of this of its lanes.
fn begin_job(consumer: &Consumer, (lane, server): (usize, usize), reserved: &Reserved, now: Instant) {
    let Some(work) = consumer.work.get() else { return };
    work.begin_apart((lane, server));
    let taken = consumer.take_for_later(now, |priority| work.is_of(priority, lane));
    reserved.lock().unwrap_or_else(PoisonError::into_inner).push_back(taken);
}

/// A job of a consumer, of this server of this of its lanes; with what it has taken already, if it [has begun](begin_job).
fn run(
    consumer: &Consumer,
    (lane, server): (usize, usize),
    place: &WeakPlace,
    job: &JobContext<'_>,
    taken: Option<Vec<Delivery>>,
) {
    let Some(work) = consumer.work.get() else { return };
    let is_of = |priority| work.is_of(priority, lane);
    let calling = Calling::new(job, work.server_of((lane, server)));
    let (_serving, mut turn) = match taken {
        None => {
            let serving = work.begin((lane, server));
            (serving, consumer.deliver(&calling, job.started(), is_of))
        }
        Some(taken) => {
            let serving = work.begun_apart((lane, server));
            (serving, consumer.deliver_taken(&calling, taken))
        }
    };
    let has_delivered = turn.delivered > 0;
    while turn.delivered > 0 && turn.left > work.outstanding.load(Ordering::Relaxed) {
        turn = consumer.deliver(&calling, job.services().clock(), is_of);
    }
    if let Some(due) = turn.due {
        place.with(|workplace| work.wake_at(workplace, due));
    }
    // What was held until now in other lanes, or found no room for a job, has none.
    if work.lanes() > 1
        && turn.left > work.outstanding.load(Ordering::Relaxed)
        && let Some(priority) = consumer.first_of_others(is_of)
    {
        let at = job.services().clock();
        place.with(|workplace| work.wake_at(workplace, Due { at, priority }));
    }
    if job.services().keeps_events() {
        job.services().keep(KeptEvent::Taken(TakenPart::Last), Some(&[]));
    }
    if has_delivered && turn.left > 0 {
        take_from_others(consumer, work, (lane, server), is_of, job);
    }
}

/// The code by which a consumer has its events, of this server of this of its lanes.
fn code_of(consumer: &Arc<Consumer>, server: (usize, usize), channel: &Shared) -> PostedCode {
    let with_place = || (Arc::clone(consumer), channel.place.weak());
    let (own, place) = with_place();
    let whole = PostedCode::new(move |job| run(&own, server, &place, job, None));
    let again = Arc::clone(consumer);
    let whole = match consumer.is_called_by_turns() {
        true => whole.by_turns(Arc::as_ptr(consumer).addr()),
        false => whole,
    };
    let whole = whole.again(move |job, from| {
        let Some(work) = again.work.get() else { return false };
        again.deliver_again(&Calling::new(job, work.server_of(server)), from)
    });
    let reserved = Reserved::default();
    let (own, reserving) = (Arc::clone(consumer), Arc::clone(&reserved));
    let begin = move |now| begin_job(&own, server, &reserving, now);
    let (own, place) = with_place();
    whole.in_two(begin, move |job| {
        let taken = reserved.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        run(&own, server, &place, job, taken);
    })
}

/// A server of a lane that is not the only one and has nothing more to do takes the next event of the lane, although its job waits for another
/// one, which then takes a later event or none.
fn take_from_others(
    consumer: &Consumer,
    work: &Work,
    server: (usize, usize),
    is_of: impl Fn(i16) -> bool,
    job: &JobContext<'_>,
) {
    let Some(server) = work.free_of_several(server) else { return };
    let Some(deadline) = consumer.first_of(is_of, |delivery| server.due(delivery)) else { return };
    let posted = Posted::new(server.take_on()).due(deadline);
    work.outstanding.fetch_add(1, Ordering::Relaxed);
    if job.post_work(posted).is_err() {
        // The event has its own job still.
        server.refused();
        work.refused();
    }
}

/// A consumer whose events release a task.
struct Released {
    consumer: Arc<Consumer>,
    place: WeakPlace,
}

impl ChannelTask for Released {
    fn begin(&self, start: Instant) {
        self.consumer.begin(start);
        self.place.with(|workplace| {
            let Some(work) = self.consumer.work.get() else { return };
            self.consumer.dues(start).into_iter().for_each(|due| work.wake_at(workplace, due));
        });
    }

    fn time_came(&self, now: Instant) -> usize {
        let Some(work) = self.consumer.work.get() else { return 0 };
        let came = self.consumer.time_came(now);
        work.without_job.fetch_add(came.held, Ordering::Relaxed);
        let still = |without: usize| Some(without.min(came.waiting));
        let without = work.without_job.fetch_update(Ordering::Relaxed, Ordering::Relaxed, still);
        let without = without.unwrap_or_else(|without| without);
        if let Some(due) = came.due {
            self.place.with(|workplace| work.wake_at(workplace, due));
        }
        came.ready + without.saturating_sub(came.waiting)
    }

    fn waiting(&self, release: Instant, now: Instant) -> WaitingEvents {
        self.consumer.waiting_events(release, now)
    }
}

/// When a consumer begins to have its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// It has just been connected.
    Connected,
    /// It was connected before, and its channel is bound to a run now.
    Bound,
}

/// A consumer has what was kept of types that it has subscribed to now and not `before`: what is worth anything still, counted from when it was pushed.
pub(crate) fn offer_retained(consumer: &Consumer, channel: &Shared, before: &BTreeSet<TypePattern>) {
    let retained = channel.topology().retained(consumer.number, before);
    // Where there is no run, what has expired is found when there is.
    let now = channel.place.get().map(|workplace| workplace.now());
    for (event, stated) in retained {
        let now = now.or(stated.pushed).expect("what is retained has been pushed");
        consumer.offer((&event, &stated), now, None, &mut |offered| {
            let due = match *offered {
                Offered::Queued { not_before, priority, .. } => Due { at: not_before, priority },
                Offered::Due(due) => due,
                _ => return,
            };
            wake_at(consumer, &channel.place, due);
        });
    }
}

/// Begins to deliver, if it is known where: declares the work of the consumer, and its condition counts time from now on.
///
/// # Errors
/// The work cannot be declared.
pub(crate) fn begin(
    consumer: &Arc<Consumer>,
    channel: &Shared,
    when: When,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let workplace = channel.place.get();
    // A condition forgets what came before there was a run.
    let is_offered_otherwise = match when {
        When::Connected => workplace.is_none() && consumer.is_grouped(),
        When::Bound => !consumer.is_grouped(),
    };
    let now = workplace.map(|workplace| workplace.now());
    if let Some(now) = now {
        consumer.begin(now);
    }
    if !is_offered_otherwise {
        offer_retained(consumer, channel, &BTreeSet::new());
    }
    let (Some(workplace), Some(now)) = (workplace, now) else { return Ok(()) };
    if let Some(first) = consumer.task {
        let (own, place) = (Arc::clone(consumer), channel.place.weak());
        let released = Box::new(Released { consumer: own, place });
        // Its jobs are those of the task, which the description says when they are due.
        let server = Server::new(workplace.task(first, released)?, Duration::MAX, 1);
        let work = Work::new([ServedLane { least: i16::MIN, servers: [server].into() }].into());
        work.without_job.store(consumer.priorities(Instant::MAX).len(), Ordering::Relaxed);
        _ = consumer.work.set(work);
        consumer.dues(now).into_iter().for_each(|due| wake_at(consumer, &channel.place, due));
        return Ok(());
    }
    let lanes = consumer.take_lanes();
    if lanes.is_empty() {
        return Ok(());
    }
    let mut declared = Vec::with_capacity(lanes.len());
    for (lane, LaneWork { least, servers }) in lanes.into_iter().enumerate() {
        let several = servers.len();
        let declare = |(server, declaration): (usize, Declaration)| {
            let code = code_of(consumer, (lane, server), channel);
            let deadline = declaration.deadline;
            let declaration = Declaration { is_of_channel: true, ..declaration };
            Ok::<_, Box<dyn Error + Send + Sync>>(Server::new(
                workplace.declare(declaration, code)?,
                deadline,
                several,
            ))
        };
        let servers = servers.into_iter().enumerate().map(declare).collect::<Result<_, _>>()?;
        declared.push(ServedLane { least, servers });
    }
    _ = consumer.work.set(Work::new(declared.into()));
    consumer.dues(now).into_iter().for_each(|due| wake_at(consumer, &channel.place, due));
    Ok(())
}
