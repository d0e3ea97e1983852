//! Events as an asynchronous stream.
//!
//! Who pushes may be a job with a real-time priority, and the waker of a task runs code of whatever executor there is. So a push raises a signal, and one
//! ordinary thread for all streams of the process calls the wakers.

use crate::connected::PullConsumer;
use crate::consumer::{Connection, Consumer, Outlook};
use crate::delivery::Delivery;
use crate::signal::Signal;
use futures_core::Stream;
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::thread;
use talea_linux::clock::MonotonicClock;
use talea_time::{Clock, Duration, Instant};

/// The events of a consumer as an asynchronous stream, by CLOCK_MONOTONIC. It ends when the channel is destroyed. Dropping it disconnects the consumer.
///
/// The push of an event costs a system call at most; the task is woken by an ordinary thread.
#[must_use = "dropping it disconnects the consumer"]
pub struct EventStream {
    consumer: PullConsumer,
    waiter: Arc<Waiter>,
    /// The last, so that the thread which looks finds the waiter gone.
    _leaving: Leaving,
}

/// Tells the thread to look who is left.
struct Leaving;

impl Drop for Leaving {
    fn drop(&mut self) {
        WAITERS.signal.raise();
    }
}

impl fmt::Debug for EventStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventStream").field("consumer", &self.consumer).finish_non_exhaustive()
    }
}

/// The task that waits for events of a consumer.
struct Waiter {
    consumer: Arc<Consumer>,
    waker: Mutex<Option<Waker>>,
}

impl Waiter {
    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Those who wait, and the thread that wakes them.
#[derive(Default)]
struct Waiters {
    signal: Arc<Signal>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    waiters: Vec<Weak<Waiter>>,
    has_thread: bool,
}

static WAITERS: LazyLock<Waiters> = LazyLock::new(Waiters::default);

/// How long the thread waits when it knows of nothing.
const LONG: Duration = Duration::from_secs(3_600);

impl Waiters {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one, and a thread if there is none.
    fn add(&'static self, waiter: &Arc<Waiter>) -> io::Result<()> {
        let mut state = self.state();
        if !state.has_thread {
            thread::Builder::new().name("talea-streams".into()).spawn(|| self.serve())?;
            state.has_thread = true;
        }
        state.waiters.push(Arc::downgrade(waiter));
        drop(state);
        waiter.consumer.follow(&self.signal);
        Ok(())
    }

    /// Wakes those whose events have come, as long as there are any who may wait.
    fn serve(&self) {
        loop {
            // Before the look, so that whoever comes later is seen at the next one.
            let seen = self.signal.count();
            let waiters: Vec<Arc<Waiter>> = {
                let mut state = self.state();
                state.waiters.retain(|waiter| waiter.strong_count() > 0);
                if state.waiters.is_empty() {
                    state.has_thread = false;
                    return;
                }
                state.waiters.iter().filter_map(Weak::upgrade).collect()
            };
            let now = MonotonicClock.now();
            let mut until = now.saturating_add(LONG);
            for waiter in &waiters {
                if waiter.waker().is_none() {
                    continue;
                }
                match waiter.consumer.outlook(now) {
                    Outlook::Waits(due) => until = until.min(due.unwrap_or(Instant::MAX)),
                    Outlook::Ready | Outlook::Closed => {
                        let waker = waiter.waker().take();
                        // Another's panic is not that of all other streams; the panic hook has told of it.
                        _ = catch_unwind(AssertUnwindSafe(|| waker.into_iter().for_each(Waker::wake)));
                    }
                }
            }
            // Streams that are dropped from here on are gone.
            drop(waiters);
            self.signal.wait(until - now, || MonotonicClock.now(), || self.signal.count() != seen);
        }
    }
}

impl PullConsumer {
    /// All events as an asynchronous stream. Starts an ordinary thread, one for all streams, which wakes tasks.
    ///
    /// # Errors
    /// The thread cannot be made; the consumer is disconnected.
    pub fn into_stream(self) -> io::Result<EventStream> {
        EventStream::new(self)
    }
}

impl EventStream {
    fn new(consumer: PullConsumer) -> io::Result<Self> {
        let waiter = Arc::new(Waiter { consumer: consumer.shared(), waker: Mutex::default() });
        WAITERS.add(&waiter)?;
        Ok(EventStream { consumer, waiter, _leaving: Leaving })
    }

    /// The consumer, to be suspended or asked.
    pub fn consumer(&self) -> &PullConsumer {
        &self.consumer
    }
}

impl Stream for EventStream {
    type Item = Delivery;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Delivery>> {
        // Neither is a lock held while an event is taken, for which others may be dropped, nor while a waker is, which
        // is an executor's.
        if let Some(delivery) = self.consumer.try_pull(MonotonicClock.now()) {
            let former = self.waiter.waker().take();
            drop(former);
            return Poll::Ready(Some(delivery));
        }
        if self.consumer.connection() == Connection::Closed {
            return Poll::Ready(None);
        }
        let waker = context.waker().clone();
        let former = self.waiter.waker().replace(waker);
        if former.is_none() {
            // What came since the look, and when time alone will change something, the thread finds out.
            WAITERS.signal.raise();
        }
        Poll::Pending
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.waiter.consumer.follow_no_more(&WAITERS.signal);
        let former = self.waiter.waker().take();
        drop(former);
    }
}
