//! Where the code of a program has work done that the description of the system does not have: operations are declared, and jobs of them posted
//! at once or at an instant. An ordinary thread posts those of an instant; it sleeps until the next one.

use crate::dispatcher::{Dispatcher, NoPoster};
use crate::poster::Poster;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use talea_channel::mailbox::{MailReceiver, MailSender, mailbox};
use talea_linux::clock::MonotonicClock;
use talea_operation::{Code, Declaration, Post, Posted, PostedOperation, Workplace};
use talea_ring::bell::Bell;
use talea_time::{Clock, Duration, Instant};

/// After how long it is tried again to post a job for which there was no room.
const AGAIN: Duration = Duration::from_millis(1);

/// A run as the place where work is done that was not described. Dropping it ends the thread that posts at instants.
#[derive(Debug)]
pub struct RunWorkplace {
    dispatcher: Dispatcher,
    alarms: MailSender<Alarm>,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread shares with who sets alarms.
#[derive(Debug)]
struct Shared {
    bell: Bell,
    is_over: AtomicBool,
}

/// A job that is to be posted at an instant.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    at: Instant,
    operation: PostedOperation,
}

impl Dispatcher {
    /// The run as a [`Workplace`], with room for so many jobs that wait for their instant. Takes one of the run's places for
    /// [posters](crate::PostingRoom::posters).
    ///
    /// # Errors
    /// As many threads as there is room for have a poster, or had one.
    ///
    /// # Panics
    /// If there is to be no room, or no thread can be created.
    pub fn workplace(&self, alarms: usize) -> Result<RunWorkplace, NoPoster> {
        let (sender, receiver) = mailbox(alarms);
        let shared = Arc::new(Shared { bell: Bell::new(), is_over: AtomicBool::new(false) });
        let (told, tell) = std::sync::mpsc::sync_channel(1);
        let (dispatcher, of_thread) = (self.clone(), Arc::clone(&shared));
        let body = move || match dispatcher.poster() {
            Ok(poster) => {
                // Whoever asked waits for the answer.
                _ = told.send(Ok(()));
                drop(told);
                post_in_time(poster, receiver, &of_thread, alarms);
            }
            Err(refused) => _ = told.send(Err(refused)),
        };
        let thread = std::thread::Builder::new().name("alarms".into()).spawn(body);
        let thread = thread.expect("a thread can be created");
        tell.recv().expect("the thread answers")?;
        Ok(RunWorkplace { dispatcher: self.clone(), alarms: sender, shared, thread: Some(thread) })
    }
}

/// Posts jobs when their instants have come, until it is over.
fn post_in_time(mut poster: Poster, mut alarms: MailReceiver<Alarm>, shared: &Shared, room: usize) {
    // One in the heap leaves its place in the mailbox to another one.
    let mut waiting: BinaryHeap<Reverse<(Instant, u64, usize)>> = BinaryHeap::with_capacity(room);
    let mut kept: Vec<Option<Alarm>> = vec![None; room];
    let mut number = 0;
    while !shared.is_over.load(Ordering::Acquire) {
        while waiting.len() < room
            && let Some(alarm) = alarms.pop()
        {
            let place = kept.iter().position(Option::is_none).expect("as many places as alarms wait");
            kept[place] = Some(alarm);
            waiting.push(Reverse((alarm.at, number, place)));
            number += 1;
        }
        let now = MonotonicClock.now();
        match waiting.peek() {
            Some(Reverse((at, _, place))) if *at <= now => {
                let alarm = kept[*place].take().expect("it waits");
                waiting.pop();
                let is_posted = poster.post(alarm.operation, 0).is_ok();
                if !is_posted && !poster.is_over() {
                    // The run has not begun, or there is no room for the job now.
                    let alarm = Alarm { at: now.saturating_add(AGAIN), ..alarm };
                    let place = kept.iter().position(Option::is_none).expect("its own is free");
                    kept[place] = Some(alarm);
                    waiting.push(Reverse((alarm.at, number, place)));
                    number += 1;
                }
            }
            next => {
                let until = next.map_or(Instant::MAX, |Reverse((at, ..))| *at);
                let until = std::time::Duration::from_nanos(until.as_nanos().max(0).unsigned_abs());
                let has_room = waiting.len() < room;
                let is_woken = || has_room && alarms.has_value() || shared.is_over.load(Ordering::Acquire);
                _ = shared.bell.wait_until(until, is_woken);
            }
        }
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

    fn post_at(&self, at: Instant, operation: PostedOperation) -> bool {
        let is_there = self.alarms.push(Alarm { at, operation }).is_ok();
        if is_there {
            self.shared.bell.ring();
        }
        is_there
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
