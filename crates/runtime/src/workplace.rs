//! Where the code of a program has work done that the description of the system does not have: operations are declared, and jobs of them posted
//! at once or at an instant. A thread of its own posts those of an instant; it sleeps until the next one. For channels of the system it has the
//! priority of release threads, for time releases tasks there; for others it is an ordinary one.

use crate::alarms::{Alarms, Instants, NEVER};
use crate::dispatcher::{Dispatcher, NoPoster, WeakDispatcher};
use crate::poster::Poster;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::{Policy, SchedError, set_self};
use talea_model::{OperationId, PublicationId};
use talea_operation::{
    ChannelTask, Declaration, Post, Posted, PostedCode, PostedOperation, ProgramChannel, TRY_AGAIN, Workplace,
};
use talea_time::{Clock, Instant};

/// A run as the place where work is done that was not described. Dropping it ends the thread that posts at instants.
#[derive(Debug)]
pub struct RunWorkplace {
    /// Not kept by it: operations of the run may have suppliers of channels, which keep this.
    dispatcher: WeakDispatcher,
    instants: Arc<Instants>,
    thread: Option<JoinHandle<()>>,
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
        self.workplace_with(Policy::Other).map(|(workplace, _)| workplace)
    }

    /// The same with a thread that has this policy, and why it has not, if it has not.
    pub(crate) fn workplace_with(
        &self,
        policy: Policy,
    ) -> Result<(RunWorkplace, Option<SchedError>), NoPoster> {
        let (_, operations) = self.declarable();
        let shared = Arc::new(Instants::new(self.system(), operations));
        let (told, tell) = std::sync::mpsc::sync_channel(1);
        let (dispatcher, of_thread) = (self.clone(), Arc::clone(&shared));
        let body = move || {
            let poster = dispatcher.poster();
            let (answer, poster) = match poster {
                Ok(poster) if policy == Policy::Other => (Ok(None), Some(poster)),
                Ok(poster) => (Ok(set_self(policy).err()), Some(poster)),
                Err(refused) => (Err(refused), None),
            };
            told.send(answer).expect("who started the thread waits for this");
            if let Some(poster) = poster {
                post_in_time(poster, &of_thread);
            }
        };
        let thread = std::thread::Builder::new().name("alarms".into()).spawn(body);
        let thread = thread.expect("a thread can be created");
        let refused = tell.recv().expect("the thread answers")?;
        self.keep_alarms(Alarms(Arc::clone(&shared)));
        Ok((RunWorkplace { dispatcher: self.weak(), instants: shared, thread: Some(thread) }, refused))
    }
}

/// What is due at an instant.
enum Due {
    /// A job of the declared operation of this number.
    Declared(usize),
    /// What time brings a task of the system.
    Task(usize),
}

/// Posts jobs when their instants have come, until it is over.
fn post_in_time(mut poster: Poster, shared: &Instants) {
    // By task, the jobs for which there was no room.
    let mut lacking = vec![0; shared.releases.len()];
    while !shared.is_over.load(Ordering::Acquire) {
        let now = MonotonicClock.now();
        let declared = shared.instants.iter().enumerate();
        let declared = declared.map(|(place, instant)| (Due::Declared(shared.tasks.len() + place), instant));
        let tasks = shared.releases.iter().enumerate().map(|(task, instant)| (Due::Task(task), instant));
        let tasks = tasks.filter(|_| shared.start.load(Ordering::Acquire) <= now.as_nanos());
        for (due, instant) in declared.chain(tasks) {
            if instant.load(Ordering::Relaxed) > now.as_nanos() {
                continue;
            }
            // The job sees what was done before somebody asked for it; whoever asks from now on asks for another one.
            instant.swap(NEVER, Ordering::AcqRel);
            let is_posted = match due {
                Due::Declared(number) => poster.post_declared(number).is_ok(),
                Due::Task(task) => {
                    let lacking = &mut lacking[task];
                    let channel = poster.shared.triggering[task].channel.get();
                    *lacking += channel.map_or(0, |channel| channel.time_came(now));
                    while *lacking > 0 && poster.release(task).is_ok() {
                        *lacking -= 1;
                    }
                    *lacking == 0
                }
            };
            if !is_posted && !poster.is_over() {
                instant.fetch_min(now.saturating_add(TRY_AGAIN).as_nanos(), Ordering::AcqRel);
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
        code: PostedCode,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        let dispatcher = self.dispatcher.upgrade().ok_or("the run is over")?;
        Ok(dispatcher.declare_code(declaration, code)?)
    }

    fn task(
        &self,
        first: OperationId,
        channel_task: Box<dyn ChannelTask>,
    ) -> Result<PostedOperation, Box<dyn Error + Send + Sync>> {
        let dispatcher = self.dispatcher.upgrade().ok_or("the run is over")?;
        let task = self.instants.tasks[first.index()];
        dispatcher.keep_channel_task(task, channel_task)?;
        Ok(dispatcher.posted(first))
    }

    fn post_at(&self, at: Instant, operation: PostedOperation) {
        let word = self.instants.word(operation.id.index());
        let before = word.fetch_min(at.as_nanos(), Ordering::AcqRel);
        if at.as_nanos() < before {
            self.instants.bell.ring();
        }
    }

    fn publication(&self, channel: ProgramChannel<'_>, event_type: &str) -> Option<PublicationId> {
        self.dispatcher.upgrade()?.publication(channel, event_type)
    }
}

impl Drop for RunWorkplace {
    fn drop(&mut self) {
        Alarms(Arc::clone(&self.instants)).end();
        // The thread itself may be the last to have what keeps this: the run, whose operations have suppliers of channels.
        let is_own = |thread: &JoinHandle<()>| thread.thread().id() == std::thread::current().id();
        if let Some(thread) = self.thread.take().filter(|thread| !is_own(thread)) {
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
