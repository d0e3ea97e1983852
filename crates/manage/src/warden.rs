//! The warden: looks around every [`LOOK_EVERY`] for what nobody tells.
//!
//! Members that have gone are taken out, new threads of managed processes taken in, up to a limit. Threads that block where
//! nothing is traced are found runnable again. And when the set ends, in whatever way, the warden gives everybody back what they
//! had. Each of these is bounded by the limits of the set, so it may outrank everybody.

use crate::beginning::Beginnings;
use crate::definitions::Unnamed;
use crate::guardian::Guardian;
use crate::hold::Hold;
use crate::keeper::Keeper;
use crate::member::{Body, Managed, Member, Off, Scope, bind};
use crate::member::{Departed, Received};
use crate::naming::Naming;
use crate::options::STACK;
use crate::origin::Origin;
use crate::priorities::{self, Heirs, Ordinary, Priorities, Turns};
use crate::shared::Shared;
use crate::unbinding::Unbinding;
use crate::wakeups::Chooser;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use talea_linux::Tid;
use talea_linux::cgroup::Freeze;
use talea_linux::proc::{self, Activity, is_gone, is_thread_gone};
use talea_linux::sched::Policy;
use talea_linux::thread::spawn;
use talea_policy::arrangement::ChangeCause;
use talea_policy::hierarchy::VpState;
use talea_time::Duration;

/// How often the warden looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Rounds between two looks at what is traced as well, at new threads, and at the guardian.
const ROUNDS: u32 = 5;

pub(crate) struct Warden<'a> {
    pub shared: &'a Shared,
    pub guardian: &'a Guardian,
    pub keeper: &'a Keeper,
    pub chooser: Option<&'a Mutex<Chooser>>,
    pub departed: &'a Mutex<Departed>,
    pub threads_max: usize,
    /// Threads to be looked at, with the slots of their members.
    pub looks: Vec<(u32, Tid)>,
    /// Threads whose settings are looked at, with what they were set to.
    pub settings: Vec<(u32, Managed)>,
    /// Of each look the first of those that come next, where there are more than it is for.
    pub first: Firsts,
    pub beginnings: Beginnings,
    /// Threads to be named. Filled under the lock: preallocated.
    pub unnamed: Vec<Unnamed>,
    pub naming: Option<Naming>,
}

/// Whose turn it is in each look.
#[derive(Default)]
pub(crate) struct Firsts {
    sleepers: usize,
    doubtful: usize,
    settings: usize,
}

/// Threads that are looked at in a round: about half a millisecond.
pub(crate) const LOOKS_MAX: usize = 64;
/// Threads whose settings are looked at together with the lock held.
const CHANGED: usize = 8;
/// Threads of a command that are raised and lowered together before anybody looks which of them sleep.
const DOUBTFUL: usize = 4;

/// A member that may have more threads by now.
struct Growing {
    slot: u32,
    /// See [`life_of`].
    life: Tid,
    scope: Scope,
    origin: Origin,
    elders: Arc<HashSet<Tid>>,
    /// Whether what it starts is held with it, where it is held.
    holds_heirs: bool,
}

impl Warden<'_> {
    /// Until the set stops; then gives everything back.
    pub fn run(mut self) {
        let mut round = 0;
        while !self.shared.is_stopping() {
            let now = self.shared.now();
            self.shared.stop.sleep_until(now + LOOK_EVERY);
            round = (round + 1) % ROUNDS;
            // Above everybody, so whom it raises does not preempt it.
            let mut state = self.shared.state.lock_patiently();
            state.move_owed(self.shared.now());
            drop(state);
            // What the kernel has told meanwhile is heard.
            self.shared.tell(|_, _| ());
            self.guardian.restore_owed().for_each(drop);
            self.look_at_sleepers(round == 0);
            self.look_at_doubtful();
            self.look_at_settings();
            self.name_threads();
            if round == 0 {
                self.name_again();
                self.collect();
                self.adopt();
                let is_apart = |process| self.shared.is_apart(process);
                self.shared.unbindings.go_on(&self.beginnings, self.guardian, is_apart);
                self.look_at_trouble();
            }
        }
        // Who came last is known, too.
        self.name_threads();
        self.give_back();
    }

    /// Defines threads that records speak of and that nobody has named.
    fn name_threads(&mut self) {
        let mut state = self.shared.state.lock_patiently();
        let Some(run) = state.run.as_mut() else { return };
        self.unnamed.clear();
        self.unnamed.extend(run.unnamed());
        if self.unnamed.is_empty() {
            return;
        }
        let (definer, node) = run.definer();
        drop(state);
        let naming = self.naming.get_or_insert_with(|| Naming::of_node(node));
        let threads = self.unnamed.iter();
        let lost = threads.filter(|thread| !naming.define(&definer, thread.tid, thread.since)).count() as u64;
        self.lose_threads(lost);
    }

    /// Looks whether threads that are known have got another name. What they are called after the run is not told.
    fn name_again(&mut self) {
        let Some(naming) = self.naming.as_mut().filter(|naming| naming.has_named()) else { return };
        let state = self.shared.state.lock_patiently();
        let Some(run) = state.run.as_ref().filter(|run| !run.is_over()) else { return };
        let (definer, _) = run.definer();
        drop(state);
        let lost = naming.look_again(&definer, self.shared.now());
        self.lose_threads(lost);
    }

    fn lose_threads(&self, lost: u64) {
        if lost > 0
            && let Some(run) = &mut self.shared.state.lock_patiently().run
        {
            run.lose_threads(lost);
        }
    }

    /// Those that the hierarchy thinks are blocked, and may not be.
    fn look_at_sleepers(&mut self, at_all: bool) {
        self.looks.clear();
        let state = self.shared.state.lock_patiently();
        for (slot, member) in state.members.iter().enumerate() {
            let Some(member) = member else { continue };
            let is_waiting = state.engine.context().state(member.vp) == VpState::Waiting;
            let is_due = at_all || self.chooser.is_none() || !member.is_traced();
            if is_waiting && is_due && member.off() == Off::Elsewhere {
                self.looks.extend(member.all_threads().map(|thread| (slot as u32, thread.tid)));
            } else if !is_waiting && at_all {
                // A wake-up may have been lost.
                self.looks.extend(member.sleepers().map(|thread| (slot as u32, thread.tid)));
            }
        }
        drop(state);
        limit(&mut self.looks, &mut self.first.sleepers);
        self.looks.retain(|(_, tid)| proc::activity(*tid) == Activity::Runnable);
        if self.looks.is_empty() {
            return;
        }
        self.shared.tell(|state, now| {
            for (slot, tid) in &self.looks {
                let still = state.members[*slot as usize].as_mut().is_some_and(|member| {
                    member.wake(tid.as_raw_nonzero().get() as u32);
                    member.threads.iter().any(|thread| thread.tid == *tid) && member.off() == Off::Elsewhere
                });
                if still && state.is_waiting(*slot) {
                    state.totals.found += 1;
                    state.request(*slot, now);
                }
            }
        });
    }

    /// Those that were there before the set: anybody may have told the kernel to schedule them otherwise, and that is put back. Commands are kept
    /// from calling for it.
    fn look_at_settings(&mut self) {
        self.settings.clear();
        let mut state = self.shared.state.lock_patiently();
        state.forget_gone(|tid| self.guardian.forget(tid));
        let priorities = state.priorities;
        for (slot, member) in state.members.iter().enumerate() {
            let Some(member) = member else { continue };
            if member.heirs == Heirs::Ordinary && matches!(member.body, Body::Opaque { .. }) {
                self.settings.extend(member.threads.iter().map(|thread| (slot as u32, *thread)));
            }
        }
        drop(state);
        limit(&mut self.settings, &mut self.first.settings);
        // Somebody may have moved them in their turn meanwhile: it is seen again with the lock held, and not longer than a decision may wait.
        self.see_settings(priorities, Some(false));
        for threads in self.looks.chunks(CHANGED) {
            self.shared.tell(|state, _| state.put_back(threads));
        }
        self.see_settings(priorities, None);
        if !self.looks.is_empty() {
            self.shared.state.lock_patiently().miss(&self.looks);
        }
    }

    /// Looks which of the threads are scheduled as they were told to be, or not, or have gone.
    fn see_settings(&mut self, priorities: Priorities, wanted: Option<bool>) {
        let Warden { looks, settings, .. } = self;
        looks.clear();
        let found =
            settings.iter().filter(|(_, thread)| thread.is_as_set(priorities, Heirs::Ordinary) == wanted);
        looks.extend(found.map(|(slot, thread)| (*slot, thread.tid)));
    }

    /// Those of a command's threads that sleep are left alone until they are woken, so that raising and lowering the others costs nothing for them.
    fn look_at_doubtful(&mut self) {
        self.looks.clear();
        let mut state = self.shared.state.lock_patiently();
        for (slot, member) in state.members.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            // Who is held looks as if it slept, and wakes when it is let go.
            if member.hold.as_ref().is_some_and(Hold::is_engaged) {
                continue;
            }
            self.looks.extend(member.doubtful(DOUBTFUL).map(|tid| (slot as u32, tid)));
        }
        drop(state);
        limit(&mut self.looks, &mut self.first.doubtful);
        self.looks.retain(|(_, tid)| proc::activity(*tid) == Activity::Blocked);
        if self.looks.is_empty() {
            return;
        }
        let looks = &self.looks;
        self.shared.tell(|state, now| {
            // Who was woken since then has been told, and is not asleep.
            state.hear(now);
            for &(slot, tid) in looks {
                state.members[slot as usize].iter_mut().for_each(|member| member.seen_asleep(tid));
            }
        });
    }

    /// Takes out those whose threads have gone.
    fn collect(&mut self) {
        self.looks.clear();
        let state = self.shared.state.lock_patiently();
        for (slot, member) in state.members.iter().enumerate() {
            if let Some(whom) = member.as_ref().and_then(life_of) {
                self.looks.push((slot as u32, whom));
            }
        }
        drop(state);
        self.looks.retain(|(_, tid)| is_gone(*tid));
        let mut gone = std::mem::take(&mut self.looks);
        // What a command has started may go on without it.
        let state = self.shared.state.lock_patiently();
        let threads = |slot: u32| state.members[slot as usize].iter().flat_map(Member::all_threads);
        let left: Vec<Vec<Tid>> =
            gone.iter().map(|(slot, _)| threads(*slot).map(|thread| thread.tid).collect()).collect();
        drop(state);
        let mut left = left.iter().map(|threads| threads.iter().all(|tid| is_thread_gone(*tid)));
        gone.retain(|_| left.next().expect("one for each"));
        for &(slot, whom) in &gone {
            let removed = self.shared.tell(|state, now| {
                // Its place may be another's by now.
                if state.members[slot as usize].as_ref().and_then(life_of) != Some(whom) {
                    return None;
                }
                let state_of = |member: &Member| state.engine.context().service(member.vp);
                let granted = state.members[slot as usize].as_ref().map(state_of);
                state.remove(slot, ChangeCause::ENDED, now).zip(granted)
            });
            if let Some((mut member, granted)) = removed {
                if member.heirs == Heirs::Ordinary {
                    member.threads.iter().for_each(|thread| self.guardian.forget(thread.tid));
                }
                if let Body::Opaque { process, .. } = member.body {
                    self.guardian.forget_program(process);
                }
                let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
                departed.push(Received::of(&mut member, granted));
            }
        }
        if !gone.is_empty() {
            self.choose();
        }
        self.looks = gone;
    }

    /// Takes in threads that managed processes have created.
    fn adopt(&mut self) {
        self.guardian.sweep();
        let mut state = self.shared.state.lock_patiently();
        let mut known = 0;
        let mut growing_members = Vec::new();
        for (slot, member) in state.members.iter_mut().enumerate() {
            let Some(member) = member else { continue };
            if member.heirs == Heirs::Alike {
                // They are told.
                continue;
            }
            known += member.threads.len();
            let threads: HashSet<Tid> = member.threads.iter().map(|thread| thread.tid).collect();
            if let Body::Opaque { process, scope, origin, elders } = &member.body {
                let (slot, life, scope, origin) = (slot as u32, *process, *scope, **origin);
                let elders = Arc::clone(elders);
                let holds_heirs = member.hold.as_ref().is_none_or(Hold::holds_heirs);
                let growing = Growing { slot, life, scope, origin, elders, holds_heirs };
                let processes = match scope {
                    Scope::Thread => {
                        // Once it has gone, nobody tells what it has received.
                        let process = *process;
                        member.received();
                        vec![process]
                    }
                    Scope::Family | Scope::Process(_) => member.processes(),
                };
                growing_members.push((growing, processes, threads));
            }
        }
        drop(state);
        let mut changed = false;
        let mut beyond = 0;
        for (member, processes, threads) in growing_members {
            let Growing { scope, origin, elders, holds_heirs, .. } = &member;
            // Those of a thread alone are only let run where they could. A child that was taken in by itself is not its parent's any more.
            let beginning = |tid| self.beginnings.of(tid);
            let is_heir = |process: Tid| match scope {
                Scope::Family | Scope::Thread => true,
                Scope::Process(children) => {
                    let is_its = *holds_heirs && !elders.contains(&process);
                    is_its && !self.shared.is_apart(process) && origin.is_heir(process, *children, beginning)
                }
            };
            let family = proc::families(processes, self.threads_max, is_heir);
            let mut own = threads.len();
            let mut all = 0;
            for process in family {
                let is_managed = *scope != Scope::Thread;
                // However many there are, no more are looked at than can be taken in.
                let listed = proc::threads(process, self.threads_max).unwrap_or_default();
                // Its process, or itself, may have been taken in for itself.
                let is_new = |tid: &Tid| !threads.contains(tid) && !self.is_somebodys(*tid);
                for tid in listed.into_iter().filter(is_new) {
                    if is_managed && known < self.threads_max && self.adopt_thread(&member, process, tid) {
                        (known, own) = (known + 1, own + 1);
                        changed = true;
                    } else {
                        // Where the kernel does not tell at once, the next look asks again.
                        let _is_done = member.origin.unbind_young(tid.as_raw_nonzero().get(), beginning);
                    }
                }
                if is_managed {
                    all += proc::thread_count(process).unwrap_or(0);
                }
            }
            beyond += all.saturating_sub(own) as u64;
        }
        self.shared.state.lock_patiently().totals.unmanaged_threads = beyond;
        if changed {
            self.choose();
        }
    }

    fn is_somebodys(&self, tid: Tid) -> bool {
        let number = tid.as_raw_nonzero().get() as u32;
        self.shared.state.lock_patiently().is_managed(number) || self.guardian.has_note(tid)
    }

    /// Takes in a thread of one of the member's processes, which is nobody's.
    fn adopt_thread(&self, member: &Growing, process: Tid, tid: Tid) -> bool {
        let Growing { slot, life, scope, origin, .. } = *member;
        let number = tid.as_raw_nonzero().get() as u32;
        let Ok(policy) = Ordinary::of(tid) else { return false };
        // One that has made itself a real-time thread, or was created by one that had, becomes what the others are.
        let before = policy.unwrap_or(Ordinary::OTHER);
        // Where the kernel does not tell at once, the next look asks again.
        let beginning = |tid| self.beginnings.of(tid);
        let is_child = match process == life || scope == Scope::Family {
            true => Some(true),
            false => origin.has_begun_since(process.as_raw_nonzero().get(), beginning),
        };
        let mask = match scope {
            // It began with the set, and ends with it.
            Scope::Family => Some(origin.before),
            Scope::Process(_) | Scope::Thread => origin.mask_of(tid.as_raw_nonzero().get(), beginning),
        };
        let Some((is_child, mask)) = is_child.zip(mask) else { return false };
        // Somebody may have taken it in meanwhile.
        if is_thread_gone(tid) || self.is_somebodys(tid) || !self.guardian.note(tid, before, mask) {
            return false;
        }
        let adopted = self.shared.tell(|state, now| {
            if state.is_managed(number) {
                return None;
            }
            let (priorities, is_waiting) = (state.priorities, state.is_waiting(slot));
            let (member, cpu) = state.member_and_cpu(slot)?;
            if life_of(member) != Some(life) {
                return None;
            }
            // All of a member's threads take turns from the second on.
            let level = member.level();
            priorities::set(tid, priorities, level, (Turns::RoundRobin, Heirs::Ordinary)).ok()?;
            let _elsewhere = bind(tid, cpu);
            member.adopt((process, is_child), tid, level, cpu);
            member.changes.priorities += u64::from(policy.is_none());
            let group = member.hold.as_ref().and_then(Hold::group);
            let turned = member.take_turns(priorities);
            state.note_moved(turned);
            state.index_thread(number, slot);
            if is_waiting {
                // It has just been created, so it can run.
                state.request(slot, now);
            }
            Some(group)
        });
        match &adopted {
            // By somebody else, for that may wait for others' forks. What comes too late is seen by who judges maxima.
            Some(Some(group)) if tid == process => {
                let group = Arc::clone(group);
                _ = spawn("mover", Policy::Other, &[], STACK, move || group.take(process));
            }
            Some(_) => {}
            None if self.shared.state.lock_patiently().is_managed(number) => {}
            None => self.guardian.forget(tid),
        }
        adopted.is_some()
    }

    fn choose(&self) {
        if let Some(chooser) = self.chooser {
            let mut chooser = chooser.lock().unwrap_or_else(PoisonError::into_inner);
            let traced = self.shared.state.lock_patiently().traced();
            if let Err(error) = chooser.choose(traced) {
                self.shared.begin_stop(Some(format!("wake-ups cannot be watched any more: {error}")));
            }
        }
    }

    fn look_at_trouble(&self) {
        let failure = self.shared.state.lock_patiently().failure;
        if let Some(errno) = failure {
            let cause = format!("the kernel refuses a change of priority that it permitted before: {errno}");
            self.shared.begin_stop(Some(cause));
        }
        if !self.keeper.is_alive() {
            self.shared.begin_stop(Some("the keeper was killed, and the commands with it".into()));
        }
        if !self.guardian.is_alive() {
            self.shared
                .begin_stop(Some("the guardian was killed, so nobody would restore the threads".into()));
        }
    }

    fn give_back(&self) {
        let mut state = self.shared.state.lock_patiently();
        // Sentinels and the controller may have a last round before them.
        state.ended = true;
        let mut holds = state.free_all();
        drop(state);
        // Whoever is held is let go first, and goes back to his cgroup once nobody keeps others from running, for whose forks that may wait.
        holds.iter_mut().for_each(Hold::let_go);
        let mut state = self.shared.state.lock();
        // All of them first: nobody is kept from running any more by whoever is looked at later.
        for member in state.members.iter_mut().flatten() {
            match (&member.cgroup, member.heirs) {
                // It ends next, and until then nobody is kept from doing that.
                (Some(cgroup), Heirs::Alike) => cgroup.freeze(Freeze::On),
                _ => member.restore_threads(self.guardian),
            }
            if let Some(sleep_word) = member.sleep_word() {
                sleep_word.end();
            }
        }
        // From here on nobody schedules, so nothing is judged. Whoever decided last did so under the lock, before now.
        state.close(self.shared.now());
        drop(state);
        self.guardian.restore_all_owed();
        drop(holds);
        let mut state = self.shared.state.lock();
        let unbindings: Vec<Unbinding> =
            state.members.iter_mut().flatten().filter_map(Member::unbinding).collect();
        drop(state);
        self.shared.unbindings.finish(unbindings, self.guardian, |_| false);
    }
}

/// Leaves as many to be looked at as a look is for, others each time.
fn limit<T>(looks: &mut Vec<T>, first: &mut usize) {
    if looks.len() > LOOKS_MAX {
        let begin = *first % looks.len();
        looks.rotate_left(begin);
        looks.truncate(LOOKS_MAX);
        *first = begin + LOOKS_MAX;
    }
}

/// The process or thread with which an opaque member ends.
fn life_of(member: &Member) -> Option<Tid> {
    match member.body {
        Body::Own { .. } => None,
        Body::Opaque { process, scope: Scope::Family | Scope::Process(_), .. } => Some(process),
        Body::Opaque { process, scope: Scope::Thread, .. } => {
            Some(member.threads.first().map_or(process, |thread| thread.tid))
        }
    }
}
