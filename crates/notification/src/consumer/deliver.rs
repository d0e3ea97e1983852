//! What waits for a consumer is handed on: by its jobs, or to the consumer itself.

use super::{Call, ConcurrentCode, Connection, Consumer, Inner, Serial, SerialCode, Turn};
use crate::delivery::Delivery;
use crate::gone::Gone;
use crate::grouped::Grouped;
use crate::kept::{EVENT_BYTES, OfCall};
use crate::queue::From;
use crate::work::{Calling, Due, Miss};
use std::cmp::Reverse;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use talea_event::Outcome;
use talea_operation::{EventNote, JobContext, KeptEvent, TakenEvent, TakenPart};
use talea_policy::release::guard::WaitingEvents;
use talea_time::{Duration, Instant};

impl Consumer {
    /// In a job of the consumer, of a server of one of its lanes: hands on what is due at `now`, of events whose priorities are of the job's lane; of a consumer that takes several at
    /// once, of all.
    pub fn deliver(&self, calling: &Calling<'_, '_>, now: Instant, is_of: impl Fn(i16) -> bool) -> Turn {
        self.pass_time(now);
        match &self.call {
            Call::Pull | Call::Jobs => Turn { delivered: 0, left: 0, due: None },
            Call::Serial(turns) => {
                let (mut turn, waited) = turns.wait_for(calling.job, &self.counts.waited_for_serial);
                self.deliver_serially(&mut turn.serial, calling, waited.unwrap_or(now), is_of)
            }
            Call::Concurrent(code) => {
                let mut gone = Gone::default();
                let mut inner = self.drained(now, &mut gone);
                let Some(delivery) = self.take_one(&mut inner, &is_of) else {
                    return self.turn(0, &inner);
                };
                drop(inner);
                drop(gone);
                self.call_concurrently(&code.load(), delivery, calling, now);
                self.turn(1, &self.inner.lock())
            }
        }
    }

    /// A job of the consumer begins at `now`, whose code is called when it ends: takes what it hands on [then](Self::deliver_taken).
    pub fn take_for_later(&self, now: Instant, is_of: impl Fn(i16) -> bool) -> Vec<Delivery> {
        self.pass_time(now);
        let (mut gone, mut taken) = (Gone::default(), Vec::new());
        let mut inner = self.drained(now, &mut gone);
        match &self.call {
            Call::Pull | Call::Jobs => {}
            Call::Serial(_) => self.take_batch(&mut inner, &mut taken, now, is_of),
            Call::Concurrent(_) => taken.extend(self.take_one(&mut inner, is_of)),
        }
        taken
    }

    /// In a job of the consumer, which has taken these when it began: hands them on.
    pub fn deliver_taken(&self, calling: &Calling<'_, '_>, mut taken: Vec<Delivery>) -> Turn {
        let (delivered, began) = (taken.len(), calling.job.started());
        match &self.call {
            Call::Pull | Call::Jobs => {}
            Call::Serial(_) if taken.is_empty() => {}
            Call::Serial(turns) => {
                self.call_serially(&mut turns.lock.lock().code, &mut taken, calling, began);
            }
            Call::Concurrent(code) => {
                let code = code.load();
                taken.drain(..).for_each(|delivery| self.call_concurrently(&code, delivery, calling, began));
            }
        }
        self.turn(delivered, &self.inner.lock())
    }

    fn deliver_serially(
        &self,
        Serial { code, batch }: &mut Serial,
        calling: &Calling<'_, '_>,
        now: Instant,
        is_of: impl Fn(i16) -> bool,
    ) -> Turn {
        let mut gone = Gone::default();
        let mut inner = self.drained(now, &mut gone);
        self.take_batch(&mut inner, batch, now, is_of);
        let delivered = batch.len();
        if delivered == 0 {
            return self.turn(0, &inner);
        }
        drop(inner);
        drop(gone);
        self.call_serially(code, batch, calling, now);
        self.turn(delivered, &self.inner.lock())
    }

    /// Takes what a job hands on at once, of events of its lane; where that is several, of all. The inner part has been
    /// drained.
    fn take_batch(
        &self,
        inner: &mut Inner,
        batch: &mut Vec<Delivery>,
        now: Instant,
        is_of: impl Fn(i16) -> bool,
    ) {
        let settings = self.settings.load();
        let most = settings.qos.max_batch as usize;
        if is_batch_due(inner, (most, settings.qos.pacing), now, now) {
            let of_lane = |priority| most > 1 || is_of(priority);
            batch.extend(std::iter::from_fn(|| self.take_one(inner, of_lane)).take(most));
            inner.batch_since = None;
        }
    }

    fn call_serially(
        &self,
        code: &mut SerialCode,
        batch: &mut Vec<Delivery>,
        calling: &Calling<'_, '_>,
        now: Instant,
    ) {
        self.note_taken(calling.job, batch, now);
        let outcome = self.call(calling, batch, || code(batch, calling.job));
        self.settle(outcome, batch.drain(..), now);
        self.tidy();
    }

    fn call_concurrently(
        &self,
        code: &ConcurrentCode,
        delivery: Delivery,
        calling: &Calling<'_, '_>,
        now: Instant,
    ) {
        self.note_taken(calling.job, std::slice::from_ref(&delivery), now);
        let outcome = self.call(calling, std::slice::from_ref(&delivery), || code(&delivery, calling.job));
        self.settle(outcome, std::iter::once(delivery), now);
        self.tidy();
    }

    /// Calls the consumer's code with these, and then tells of each that was late, unless it is to be tried again. A panic of either is a failure.
    fn call(
        &self,
        calling: &Calling<'_, '_>,
        deliveries: &[Delivery],
        code: impl FnOnce() -> Outcome,
    ) -> Outcome {
        let outcome = self.call_and_tell(calling, deliveries, code);
        calling.answered(outcome);
        outcome
    }

    fn call_and_tell(
        &self,
        &Calling { job, by, .. }: &Calling<'_, '_>,
        deliveries: &[Delivery],
        code: impl FnOnce() -> Outcome,
    ) -> Outcome {
        let outcome = catch_unwind(AssertUnwindSafe(code)).unwrap_or(Outcome::Fail);
        let Some(on_miss) = self.on_miss.as_ref().filter(|_| outcome != Outcome::Retry) else {
            return outcome;
        };
        // As an answer to the job, so that a replay tells the same of the same deliveries.
        let (operation, instance, ended) = (job.operation(), job.instance(), job.now());
        let tell = |delivery| {
            let due = by.due(delivery);
            if ended > due {
                on_miss(&Miss { operation, instance, delivery, due, lateness: ended - due });
            }
        };
        let told = catch_unwind(AssertUnwindSafe(|| deliveries.iter().for_each(tell)));
        told.map_or(Outcome::Fail, |()| outcome)
    }

    /// Has recorded what the job takes, which looked at `now`: then, unless some of it was pushed later.
    fn note_taken(&self, job: &JobContext<'_>, deliveries: &[Delivery], now: Instant) {
        let was_there = deliveries.iter().all(|delivery| delivery.pushed <= now);
        let at = if was_there { now } else { job.services().clock() };
        let events = deliveries.iter().flat_map(|delivery| {
            let from = delivery.by.job();
            delivery.pushed_events().map(move |event| (event, from))
        });
        for (number, (event, from)) in (0..).zip(events) {
            // An event that a description declares, and a program has pushed on, is the program's here.
            let publication = self.publications.of(event.event_type());
            job.note(EventNote::Taken { event: TakenEvent { publication, from }, number }, at);
        }
        if job.services().keeps_events() {
            self.keep_taken(job, deliveries);
        }
    }

    /// Has recorded what the job is handed in this call. Does not allocate.
    #[cold]
    fn keep_taken(&self, job: &JobContext<'_>, deliveries: &[Delivery]) {
        let mut bytes = [0; EVENT_BYTES];
        let of_call = std::iter::once(OfCall::First).chain(std::iter::repeat(OfCall::Further));
        for (delivery, of_call) in deliveries.iter().zip(of_call) {
            let length = self.publications.kinds.encode_delivery(delivery, of_call, &mut bytes);
            let kept = length.map(|length| &bytes[..length]);
            job.services().keep(KeptEvent::Taken(TakenPart::More), kept);
        }
    }

    /// Whether its code is called one delivery at a time, in whichever lanes.
    pub fn is_called_by_turns(&self) -> bool {
        matches!(self.call, Call::Serial(_))
    }

    /// In a job that is replayed: hands to the code what it was handed then, which has these bytes. False if they cannot be read, and nothing was done.
    pub fn deliver_again(&self, calling: &Calling<'_, '_>, from: &[u8]) -> bool {
        let Ok(calls) = self.publications.kinds.decode_calls(from) else { return false };
        for deliveries in &calls {
            // What comes of it is in the trace: which events it is handed later. What it says is compared with what it said then.
            match &self.call {
                Call::Pull | Call::Jobs => return false,
                Call::Serial(turns) => {
                    let code = &mut turns.lock.lock().code;
                    self.call(calling, deliveries, || code(deliveries, calling.job));
                }
                Call::Concurrent(code) => {
                    let code = code.load();
                    for delivery in deliveries {
                        self.call(calling, std::slice::from_ref(delivery), || code(delivery, calling.job));
                    }
                }
            }
        }
        true
    }

    /// In a replay nobody delivers what is pushed now: it is gone, so that it takes no room from what is pushed later.
    #[cold]
    pub fn forget_waiting(&self) {
        self.discard_all(None, |delivery| {
            self.queued.fetch_sub(1, Ordering::Relaxed);
            self.load.remove(delivery);
        });
    }

    fn take_one(&self, inner: &mut Inner, is_of: impl Fn(i16) -> bool) -> Option<Delivery> {
        if self.connection() != Connection::Active {
            return None;
        }
        inner.queue.pop_of(is_of)
    }

    fn turn(&self, delivered: usize, inner: &Inner) -> Turn {
        Turn { delivered, left: inner.queue.len(), due: self.due(inner) }
    }

    /// What is to do next for which nobody has posted a job.
    pub(super) fn due(&self, inner: &Inner) -> Option<Due> {
        if inner.queue.held().is_empty() && inner.batch_since.is_none() && self.grouped.is_none() {
            return None;
        }
        let settings = self.settings.load();
        let (priority, pacing) = (settings.qos.priority, settings.qos.pacing);
        let held = inner.queue.held().iter().map(|one| Due { at: one.not_before, priority: one.priority });
        let batch = inner.batch_since.zip(pacing).map(|(since, pacing)| {
            let first = inner.queue.iter().next().map_or(priority, |delivery| delivery.priority);
            Due { at: since.saturating_add(pacing), priority: first }
        });
        let condition = self.grouped.as_ref().and_then(Grouped::due).map(|at| Due { at, priority });
        // Of those that are due at once the most urgent one: its job sees the others.
        held.chain(batch).chain(condition).min_by_key(|due| (due.at, Reverse(due.priority)))
    }

    /// Events of sets that nobody has any more are free for their suppliers.
    pub fn tidy(&self) {
        if let Some(grouped) = &self.grouped {
            grouped.tidy();
        }
    }

    /// What the code has said of these.
    fn settle(&self, outcome: Outcome, deliveries: impl Iterator<Item = Delivery>, now: Instant) {
        let counts = &self.counts;
        for mut delivery in deliveries {
            match outcome {
                Outcome::Ok => {
                    counts.deliver(now - delivery.pushed);
                    self.gone(&delivery, &counts.delivered);
                }
                Outcome::Discard => self.gone(&delivery, &counts.refused),
                Outcome::Fail => self.gone(&delivery, &counts.failed),
                Outcome::Retry => {
                    counts.retried.fetch_add(1, Ordering::Relaxed);
                    delivery.not_before = now.saturating_add(self.settings.load().qos.retry);
                    if delivery.expires < delivery.not_before {
                        self.gone(&delivery, &counts.expired);
                        continue;
                    }
                    // Also where it may be tried again at once: by another job.
                    let mut gone = Gone::default();
                    self.place(&mut self.inner.lock(), delivery, From::Later, &mut gone);
                }
            }
        }
        // Who was disconnected meanwhile keeps nothing that is to be tried again.
        if outcome == Outcome::Fail || self.connection() == Connection::Closed {
            self.close();
        }
    }

    /// Takes the next event, of a consumer that takes them itself.
    pub fn try_take(&self, now: Instant) -> Option<Delivery> {
        self.pass_time(now);
        let mut gone = Gone::default();
        let mut inner = self.drained(now, &mut gone);
        let taken = self.take_one(&mut inner, |_| true);
        drop(inner);
        drop(gone);
        self.has_taken(taken.as_slice(), now);
        taken
    }

    /// A job takes up to so many of those that wait, in their order.
    pub fn take_for_job(&self, most: usize, now: Instant, events: &mut Vec<Delivery>) {
        // The time of the condition of a task is passed by who releases it.
        if self.task.is_none() {
            self.pass_time(now);
        }
        let before = events.len();
        let mut gone = Gone::default();
        let mut inner = self.drained(now, &mut gone);
        events.extend(std::iter::from_fn(|| self.take_one(&mut inner, |_| true)).take(most));
        drop(inner);
        self.has_taken(&events[before..], now);
    }

    /// The first of several jobs that are to have the same event takes it. It counts as one that waits until it is [given up](Self::give_place_up), but is
    /// neither discarded nor expires. Not taken are any if so many are gone that they are to be dropped first, when the
    /// caller has given its own lock back.
    pub fn take_in_its_place(&self, now: Instant, gone: &mut Gone<'_>) -> Result<Option<Delivery>, ManyGone> {
        let mut inner = self.inner.lock();
        if !self.drain(&mut inner, now, gone) {
            return Err(ManyGone);
        }
        let Some(taken) = self.take_one(&mut inner, |_| true) else { return Ok(None) };
        inner.queue.keep_place();
        drop(inner);
        self.counts.deliver(now - taken.pushed);
        Ok(Some(taken))
    }

    /// All jobs have begun that were to have the event, which does not wait any more.
    pub fn give_place_up(&self, event: &Delivery) {
        self.inner.lock().queue.give_place_up();
        self.gone(event, &self.counts.delivered);
    }

    /// These do not wait any more, since somebody has them.
    fn has_taken(&self, events: &[Delivery], now: Instant) {
        for delivery in events {
            self.counts.deliver(now - delivery.pushed);
            self.gone(delivery, &self.counts.delivered);
        }
    }

    /// What waits for jobs of the task that has its events, against a release at that instant.
    pub fn waiting_events(&self, release: Instant, now: Instant) -> WaitingEvents {
        let mut gone = Gone::default();
        let inner = self.drained(now, &mut gone);
        let come_by_then = inner.queue.iter().filter(|delivery| delivery.not_before <= release).count();
        WaitingEvents { all: inner.queue.len(), come_by_then }
    }

    /// Takes up to `most` events at once, of a consumer that takes them itself, if as many are there as it has at once or it has waited long enough for
    /// these; returns how many.
    pub fn try_take_sequence(&self, most: usize, now: Instant, events: &mut Vec<Delivery>) -> usize {
        self.pass_time(now);
        let mut gone = Gone::default();
        let mut inner = self.drained(now, &mut gone);
        if most == 0 || !self.has_sequence(&mut inner, most, now) {
            return 0;
        }
        let most = most.min(self.settings.load().qos.max_batch as usize);
        let before = events.len();
        events.extend(std::iter::from_fn(|| self.take_one(&mut inner, |_| true)).take(most));
        inner.batch_since = None;
        drop(inner);
        self.has_taken(&events[before..], now);
        events.len() - before
    }

    /// Whether there are events for a consumer that takes up to `most` of them itself now.
    pub(super) fn has_sequence(&self, inner: &mut Inner, most: usize, now: Instant) -> bool {
        // Time does not count against who may have nothing.
        let first = inner.queue.iter().map(|event| event.not_before).min();
        inner.batch_since = first.filter(|_| self.connection() == Connection::Active);
        let Some(since) = inner.batch_since else { return false };
        let settings = self.settings.load();
        let most = most.min(settings.qos.max_batch as usize);
        is_batch_due(inner, (most, settings.qos.pacing), since, now)
    }

    /// Waits for the next event for so long.
    pub fn take(&self, limit: Duration, now: impl Fn() -> Instant) -> Option<Delivery> {
        let mut taken = None;
        self.wait_until(limit, &now, || {
            taken = self.try_take(now());
            taken.is_some()
        });
        taken
    }

    /// Waits for the next events for so long, of one that takes up to `most` of them at once; returns how many.
    pub fn take_sequence(
        &self,
        most: usize,
        limit: Duration,
        now: impl Fn() -> Instant,
        events: &mut Vec<Delivery>,
    ) -> usize {
        if most == 0 {
            return 0;
        }
        let mut taken = 0;
        self.wait_until(limit, &now, || {
            taken = self.try_take_sequence(most, now(), events);
            taken > 0
        });
        taken
    }

    /// Waits until `take` has taken something, for so long, or until there will be nothing any more.
    fn wait_until(&self, limit: Duration, now: impl Fn() -> Instant, mut take: impl FnMut() -> bool) {
        let end = now().saturating_add(limit);
        // Events that are held come without anybody's doing.
        let next = || self.due(&self.inner.lock()).map_or(end, |due| due.at.min(end));
        let is_closed = || self.connection() == Connection::Closed;
        let mut has_taken = false;
        while !has_taken {
            has_taken = take();
            let until = next();
            if has_taken || is_closed() || now() >= end {
                return;
            }
            let look = || {
                has_taken = take();
                has_taken || is_closed() || next() < until
            };
            self.arrived.wait(until - now(), &now, look);
        }
    }
}

/// As many events are gone as can be before they are dropped.
#[derive(Debug)]
pub(crate) struct ManyGone;

/// Whether as many wait as a batch is to have, or it has been awaited long enough: since it was looked for first, and not before `since`.
fn is_batch_due(
    inner: &mut Inner,
    (most, pacing): (usize, Option<Duration>),
    since: Instant,
    now: Instant,
) -> bool {
    let Some(pacing) = pacing else { return true };
    if inner.queue.len() == 0 {
        inner.batch_since = None;
        return false;
    }
    let since = *inner.batch_since.get_or_insert(since);
    inner.queue.len() >= most || now - since >= pacing
}
