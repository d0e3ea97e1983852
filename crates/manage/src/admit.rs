//! Taking members in: own threads here, commands and threads of other processes in `attach`.

mod attach;

use crate::guardian::{self, Guardian};
use crate::handle::{Handle, Waker};
use crate::hold::{Hold, Parking};
use crate::member::{Blocks, Body, Departed, Managed, Member, MemberId, Received};
use crate::member_jobs::MemberJobs;
use crate::options::{Admission, AdmitError, STACK};
use crate::origin::Mask;
use crate::priorities::{Level, Ordinary};
use crate::set::ManagedSet;
use crate::shared::Shared;
use crate::sleep_word::{SleepEnd, SleepWord};
use crate::state::State;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use talea_linux::Tid;
use talea_linux::sched::Policy;
use talea_linux::thread::spawn;
use talea_policy::arrangement::ChangeCause;
use talea_policy::hierarchy::VpId;

/// Of what there are too many where no further program can be held.
pub const MORE_TO_HOLD: &str = "processes that can be held";

/// A thread of this process as a member.
pub struct ThreadOptions {
    /// Where it may block.
    pub blocks: Blocks,
    /// What it does in a run, if there is one.
    pub jobs: Option<MemberJobs>,
    /// Its stack, in bytes.
    pub stack: usize,
}

impl ManagedSet {
    /// Creates a thread of this process, ready to run, which ends as a member when `run` returns.
    ///
    /// # Errors
    /// See [`AdmitError`].
    pub fn spawn(
        &mut self,
        admission: Admission<'_>,
        blocks: Blocks,
        run: impl FnOnce(&Handle) + Send + 'static,
    ) -> Result<(MemberId, Waker), AdmitError> {
        let (member, waker) = self.spawn_waiting(admission, blocks, run)?;
        waker.wake();
        Ok((member, waker))
    }

    /// Creates a thread of this process that takes part in the run. What `ready` makes on the thread, before anything
    /// arrives, is handed to `run`.
    ///
    /// # Errors
    /// See [`AdmitError`].
    pub fn admit_thread<R>(
        &mut self,
        admission: Admission<'_>,
        own: ThreadOptions,
        ready: impl FnOnce() -> R + Send + 'static,
        run: impl FnOnce(R, &Handle) + Send + 'static,
    ) -> Result<(MemberId, Waker), AdmitError> {
        self.create(admission, own, ready, run)
    }

    /// The same for a thread that waits for a waker's first call.
    ///
    /// # Errors
    /// See [`AdmitError`].
    pub fn spawn_waiting(
        &mut self,
        admission: Admission<'_>,
        blocks: Blocks,
        run: impl FnOnce(&Handle) + Send + 'static,
    ) -> Result<(MemberId, Waker), AdmitError> {
        let own = ThreadOptions { blocks, jobs: None, stack: STACK };
        self.create(admission, own, || (), |(), handle| run(handle))
    }

    fn create<R>(
        &mut self,
        admission: Admission<'_>,
        own: ThreadOptions,
        ready: impl FnOnce() -> R + Send + 'static,
        run: impl FnOnce(R, &Handle) + Send + 'static,
    ) -> Result<(MemberId, Waker), AdmitError> {
        let ThreadOptions { blocks, jobs, stack } = own;
        let progress = self.shared.state.progress();
        let hold = (admission.parking == Parking::Held).then(|| Hold::by_signal(progress));
        let (id, sleep_word) = self.register(&admission, |slot, vp| {
            let sleep_word = Arc::new(SleepWord::new(slot));
            let body = Body::Own { sleep_word: Arc::clone(&sleep_word), blocks };
            let mut member = Member::new(admission.name.into(), vp, body, Vec::new(), hold);
            member.jobs = jobs;
            (member, sleep_word)
        })?;
        let leaving = LeaveOnExit {
            shared: Arc::clone(&self.shared),
            guardian: Arc::clone(&self.guardian),
            departed: Arc::clone(&self.departed),
            sleep_word: Arc::clone(&sleep_word),
        };
        let handle = Handle::new(Arc::clone(&self.shared), Arc::clone(&sleep_word));
        let place = id.slot as usize % self.options.cpus.len();
        // It runs only to fall asleep, and must not wait for its turn before anybody knows that it wants one.
        let urgent = Policy::Fifo(self.options.priorities.priority(Level::Urgent));
        let own = Arc::clone(&sleep_word);
        let created = spawn(admission.name, urgent, &[self.options.cpus[place]], stack, move || {
            let leaving = leaving;
            own.claim();
            let result = catch_unwind(AssertUnwindSafe(|| {
                let equipment = ready();
                match own.wait() {
                    SleepEnd::Ended => {}
                    SleepEnd::Woken | SleepEnd::AtOnce => run(equipment, &handle),
                }
            }));
            drop(leaving);
            if let Err(panic) = result {
                resume_unwind(panic);
            }
        });
        let thread = match created {
            Ok(thread) => thread,
            Err(error) => {
                self.shared.tell(|state, now| state.expel(id, admission.not_admitted(), now));
                return Err(error.into());
            }
        };
        let seated = self.sleep_word(&admission, (id, place), thread.report().tid, blocks);
        if let Err(error) = seated {
            self.shared.tell(|state, now| state.expel(id, admission.not_admitted(), now));
            self.guardian.restore(thread.report().tid);
            // It sleeps on its word.
            sleep_word.end();
            let _nothing_ran = thread.join();
            return Err(error);
        }
        self.own.push(thread);
        Ok((id, Waker::new(Arc::clone(&self.shared), sleep_word)))
    }

    /// Makes an own thread that was created its member's.
    fn sleep_word(
        &self,
        admission: &Admission<'_>,
        (id, place): (MemberId, usize),
        tid: Tid,
        blocks: Blocks,
    ) -> Result<(), AdmitError> {
        let mask = Mask::of(tid.as_raw_nonzero().get()).unwrap_or(Mask::ALL);
        if !self.guardian.note(tid, Ordinary::OTHER, mask) {
            return Err(too_many(admission, "threads", guardian::THREADS_MAX));
        }
        let ended = self.shared.tell(|state, _| {
            if let Some(member) = state.member_of(id) {
                member.threads.push(Managed::new(tid, Level::Urgent));
                member.place = place;
                member.open_account();
                state.index_member(id.slot);
            }
            state.ended
        });
        if ended {
            return Err(AdmitError::Ended { name: admission.name.into() });
        }
        if blocks == Blocks::Anywhere { self.choose_wakeups(admission) } else { Ok(()) }
    }

    /// Gives the member a slot and a virtual processor.
    fn register<R>(
        &self,
        admission: &Admission<'_>,
        make: impl FnOnce(u32, VpId) -> (Member, R),
    ) -> Result<(MemberId, R), AdmitError> {
        if self.is_ended() {
            return Err(AdmitError::Ended { name: admission.name.into() });
        }
        let most = self.options.members_max;
        let registered = self.shared.tell(|state, now| {
            if state.members.iter().flatten().count() >= most {
                return Err(too_many(admission, "members", most));
            }
            // A virtual processor may have been another's, to whom belongs what was decided until now.
            state.decide(now);
            let vp = state.engine.add_thread(admission.parent, admission.parameters);
            let vp = vp.map_err(|source| AdmitError::Refused { name: admission.name.into(), source })?;
            let slot = state.free_slot();
            let (member, result) = make(slot, vp);
            let serial = state.add(slot, member);
            let State { engine, run, .. } = state;
            if let (Some(run), Some(edge)) = (run, admission.edge) {
                let (names, promise) = ((edge.parent, admission.name), edge.promise.cloned());
                run.watch.hold(names, promise, vp, &engine.context(), edge.cause);
            }
            Ok((MemberId { slot, vp, serial }, result))
        })?;
        if admission.edge.is_some() {
            self.tell_definitions();
        }
        Ok(registered)
    }

    fn choose_wakeups(&self, admission: &Admission<'_>) -> Result<(), AdmitError> {
        let Some(wakeups) = &self.wakeups else { return Ok(()) };
        let mut chooser = wakeups.lock().unwrap_or_else(PoisonError::into_inner);
        let traced = self.shared.state.lock().traced();
        let chosen = chooser.choose(traced);
        chosen.map_err(|source| AdmitError::Wakeups { name: admission.name.into(), source })
    }
}

/// Takes a thread of our own out when it ends, by return or by panic.
struct LeaveOnExit {
    shared: Arc<Shared>,
    guardian: Arc<Guardian>,
    departed: Arc<Mutex<Departed>>,
    sleep_word: Arc<SleepWord>,
}

impl Drop for LeaveOnExit {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        let now = self.shared.now();
        let slot = self.sleep_word.member;
        // One that was dismissed has left already, and its place may be another's.
        let Some(Some(member)) = state.members.get(slot as usize) else { return };
        if !member.sleep_word().is_some_and(|sleep_word| Arc::ptr_eq(sleep_word, &self.sleep_word)) {
            return;
        }
        let granted = state.engine.context().service(member.vp);
        let mut removed = state.remove(slot, ChangeCause::ENDED, now);
        // While the lock is had: a thread that was told to stop meanwhile does so when it gives the lock back, and nobody else could let it go.
        drop(removed.as_mut().and_then(|member| member.hold.take()));
        drop(state);
        if let Some(mut member) = removed {
            let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
            departed.push(Received::of(&mut member, granted));
        }
        self.sleep_word.end();
        // The sentinel of its processor finds nobody granted as soon as it is an ordinary thread again.
        self.guardian.restore(rustix::thread::gettid());
    }
}

fn number(tid: Tid) -> u32 {
    tid.as_raw_nonzero().get() as u32
}

fn too_many(admission: &Admission<'_>, what: &'static str, most: usize) -> AdmitError {
    AdmitError::TooMany { name: admission.name.into(), what, most }
}
