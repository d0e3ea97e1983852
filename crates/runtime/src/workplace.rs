//! Where the code of a program has work done that the description of the system does not have: operations are declared, and jobs of them posted
//! at once or at an instant. An ordinary thread posts those of an instant; it sleeps until the next one.

use crate::dispatcher::{Dispatcher, NoPoster};
use crate::poster::Poster;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::JoinHandle;
use talea_linux::clock::MonotonicClock;
use talea_operation::{Code, Declaration, Post, Posted, PostedOperation, Workplace};
use talea_ring::bell::Bell;
use talea_time::{Clock, Duration, Instant};

/// After how long it is tried again to post a job for which there was no room, or before the run has begun.
const AGAIN: Duration = Duration::from_millis(1);
/// No instant is waited for.
const NEVER: i64 = i64::MAX;

/// A run as the place where work is done that was not described. Dropping it ends the thread that posts at instants.
#[derive(Debug)]
pub struct RunWorkplace {
    dispatcher: Dispatcher,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread shares with who asks for jobs.
#[derive(Debug)]
struct Shared {
    /// By declared operation, the instant at which a job of it is to be posted, in nanoseconds.
    instants: Box<[AtomicI64]>,
    /// The number of the first of these operations.
    first: usize,
    bell: Bell,
    is_over: AtomicBool,
}

impl Shared {
    /// The earliest instant.
    fn next(&self) -> i64 {
        self.instants.iter().map(|instant| instant.load(Ordering::Acquire)).min().unwrap_or(NEVER)
    }
}

impl Dispatcher {
    /// The run as a [`Workplace`]. Takes one of the run's places for [posters](crate::PostingRoom::posters).
    ///
    /// # Errors
    /// As many threads as there is room for have a poster, or had one.
    ///
    /// # Panics
    /// If no thread can be created.
    pub fn workplace(&self) -> Result<RunWorkplace, NoPoster> {
        let (first, operations) = self.declarable();
        let instants = (0..operations).map(|_| AtomicI64::new(NEVER)).collect();
        let shared = Arc::new(Shared { instants, first, bell: Bell::new(), is_over: AtomicBool::new(false) });
        let (told, tell) = std::sync::mpsc::sync_channel(1);
        let (dispatcher, of_thread) = (self.clone(), Arc::clone(&shared));
        let body = move || {
            let poster = dispatcher.poster();
            let (answer, poster) = match poster {
                Ok(poster) => (Ok(()), Some(poster)),
                Err(refused) => (Err(refused), None),
            };
            told.send(answer).expect("who started the thread waits for this");
            if let Some(poster) = poster {
                post_in_time(poster, &of_thread);
            }
        };
        let thread = std::thread::Builder::new().name("alarms".into()).spawn(body);
        let thread = thread.expect("a thread can be created");
        tell.recv().expect("the thread answers")?;
        Ok(RunWorkplace { dispatcher: self.clone(), shared, thread: Some(thread) })
    }
}

/// Posts jobs when their instants have come, until it is over.
fn post_in_time(mut poster: Poster, shared: &Shared) {
    while !shared.is_over.load(Ordering::Acquire) {
        let now = MonotonicClock.now();
        for (place, instant) in shared.instants.iter().enumerate() {
            if instant.load(Ordering::Relaxed) > now.as_nanos() {
                continue;
            }
            // The job sees what was done before somebody asked for it; whoever asks from now on asks for another one.
            instant.swap(NEVER, Ordering::AcqRel);
            let is_posted = poster.post_declared(shared.first + place).is_ok();
            if !is_posted && !poster.is_over() {
                instant.fetch_min(now.saturating_add(AGAIN).as_nanos(), Ordering::AcqRel);
            }
        }
        let next = shared.next();
        let until = std::time::Duration::from_nanos(next.max(0).unsigned_abs());
        let is_woken = || shared.next() < next || shared.is_over.load(Ordering::Acquire);
        _ = shared.bell.wait_until(until, is_woken);
    }
}

impl Workplace for RunWorkplace {
    fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    fn declare(
        &self,
        declaration: Declaration,
        code: Code,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        let mut code = code;
        Ok(self.dispatcher.declare(declaration, move |job| code(job))?)
    }

    fn post_at(&self, at: Instant, operation: PostedOperation) {
        let place = operation.id.index() - self.shared.first;
        let before = self.shared.instants[place].fetch_min(at.as_nanos(), Ordering::AcqRel);
        if at.as_nanos() < before {
            self.shared.bell.ring();
        }
    }
}

impl Drop for RunWorkplace {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Release);
        self.shared.bell.ring();
        if let Some(thread) = self.thread.take() {
            // It calls nothing that is not ours; what it panicked with has been printed.
            _ = thread.join();
        }
    }
}

impl Post for Poster {
    fn now(&self) -> Instant {
        MonotonicClock.now()
    }

    fn post_work(&mut self, posted: Posted) -> Result<u64, talea_operation::NotPosted> {
        self.flow.post(&self.shared, posted)
    }

    fn may_wait(&self) -> bool {
        true
    }
}
