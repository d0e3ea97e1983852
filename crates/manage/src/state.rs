//! What the lock protects: the hierarchy, the members, and who is raised where.
//!
//! The hierarchy says who is to run; [`State::bring`] makes it so on one place, from whatever there is now. So nothing is
//! lost if several changes come before somebody brings them about, and bringing about what is already so costs nothing.
//!
//! *Who may.* A thread that raises another above itself on its own processor is preempted in the same call. It must not
//! hold the lock then. Controllers and the sentinels that stand in for others are [`Caller::Above`] everybody they raise.
//! A sentinel in its own place raises a thread only [`Level::Beside`] itself, and gives way after the lock is free.

mod dispatch;

use crate::managed_run::ManagedRun;
use crate::member::{Managed, Member, MemberId, Off};
use crate::member_jobs::MemberJobs;
use crate::priorities::{Heirs, Level, Priorities};
use crate::progress::Progress;
use crate::sleep_word::SleepWord;
use crate::slices::Account;
use crate::wakeups::Traced;
use rustix::io::Errno;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use talea_linux::Tid;
use talea_linux::sched::own_switches;
use talea_model::Slices;
use talea_policy::arrangement::ChangeCause;
use talea_policy::hierarchy::{Above, Engine, VpId, VpState};
use talea_policy::job::Job;
use talea_recording::kernel::{WakeUp, WakeWatch};
use talea_time::{Duration, Instant, Work};

/// A raise asked for from another processor takes this long to arrive at most; only then is a granted thread that is not
/// running surely blocked. Interrupts between processors take some 10 µs.
const ARRIVAL: Duration = Duration::from_micros(200);

/// Who brings a decision about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// At [`Level::Urgent`] or beyond.
    Above,
    /// The sentinel of the place, at its own level.
    Sentinel,
}

/// What remains to be done without the lock, because it lets another thread run.
#[derive(Clone)]
pub(crate) enum After {
    /// Nothing.
    Nothing,
    /// The granted thread stands behind the sentinel in the sentinel's own queue.
    GiveWay,
    /// The granted thread sleeps on its word.
    Wake(Arc<SleepWord>),
    /// The caller has made itself [`Level::Urgent`] and goes back.
    StepDown,
    /// Nobody is granted the processor.
    Idle,
}

/// Why a sentinel in its own place thinks that it runs because the granted thread does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// It has run at its own priority up to the moment in which it took the lock.
    OwnPriority,
    /// It may have inherited somebody else's.
    None,
}

/// What a sentinel that runs in its own place finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// Nobody was granted the processor.
    Nobody,
    /// The granted member blocked; the hierarchy knows now.
    Released,
    /// It can run, and will as soon as the sentinel lets it, it has come from another processor, or it is handed the lock.
    Arriving,
}

/// What has happened, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Times that a member was granted a processor.
    pub grants: u64,
    /// Times that a processor was taken from a member that could still use it.
    pub revocations: u64,
    /// Times that a sentinel found the granted member blocked.
    pub blocks: u64,
    /// Of these, own threads that blocked otherwise than by their handle and were not traced.
    pub stalls: u64,
    /// Wake-ups of members that the kernel told: those on which somebody may have to act.
    pub wakeups: u64,
    /// Times that the kernel dropped wake-ups, so that threads had to be looked at.
    pub lost: u64,
    /// Members that were found runnable by looking, without a wake-up having been told.
    pub found: u64,
    /// Times that a thread's priority could not be changed at once, because Linux lent it that of a deadline thread that waits
    /// for a lock of it. It is changed within [`crate::LOOK_EVERY`] of the end of that; what it runs until then is the kernel's
    /// decision.
    pub lent: u64,
    /// Times that a processor was left to ordinary threads for a moment, so that the kernel takes it for no longer.
    pub slices: u64,
    /// Threads and processes that programs have created.
    pub born: u64,
    /// Threads of managed processes beyond the limit, which stay ordinary ones.
    pub unmanaged_threads: u64,
}

struct Place {
    cpu: u16,
    /// The member whose threads are raised here.
    raised: Option<u32>,
    /// When that was done from above.
    raised_at: Option<Instant>,
}

pub(crate) struct State {
    pub engine: Engine,
    pub priorities: Priorities,
    pub members: Vec<Option<Member>>,
    pub totals: Totals,
    /// When the controller's timer is due.
    pub armed: Option<Instant>,
    /// The first refusal of what the kernel permitted before.
    pub failure: Option<Errno>,
    /// Everything has been given back: nobody is raised any more.
    pub ended: bool,
    /// Somebody panicked, maybe in the middle of a decision: the hierarchy is asked for nothing any more.
    broken: bool,
    /// By place, if something is to be left to ordinary threads.
    accounts: Vec<Account>,
    /// The run that the members have parts in, if there is one.
    pub run: Option<Box<ManagedRun>>,
    places: Vec<Place>,
    /// Members by the number of their virtual processor.
    by_vp: Vec<Option<u32>>,
    /// Members by thread.
    by_tid: HashMap<u32, u32>,
    /// Processes that are members by themselves, or will be: nobody's children are they.
    apart: HashSet<u32>,
    /// A command was lowered, which may have created a thread in that moment: the holder of the lock settles once more.
    pub recheck: bool,
    /// Tells which threads begin, are woken and end; none if that is not permitted.
    pub watch: Option<WakeWatch>,
    /// Who has gone on with its next job since the last decision: that job begins where the thread is left its processor.
    pub followed: Option<u32>,
    hard: usize,
    /// Members that there have been.
    admitted: u64,
}

impl State {
    pub fn new(
        engine: Engine,
        priorities: Priorities,
        (cpus, slices): (&[u16], Option<Slices>),
        members_max: usize,
    ) -> Self {
        let began = engine.context().now();
        let account = |slices| cpus.iter().map(move |_| Account::new(slices, began));
        let place = |&cpu| Place { cpu, raised: None, raised_at: None };
        State {
            engine,
            priorities,
            members: Vec::with_capacity(members_max),
            totals: Totals::default(),
            armed: None,
            failure: None,
            ended: false,
            broken: false,
            accounts: slices.into_iter().flat_map(account).collect(),
            run: None,
            places: cpus.iter().map(place).collect(),
            by_vp: Vec::new(),
            by_tid: HashMap::new(),
            apart: HashSet::new(),
            recheck: false,
            watch: None,
            followed: None,
            hard: 0,
            admitted: 0,
        }
    }

    /// A thread of the infrastructure panicked. Nobody waits on a word any more, should it have been the warden.
    pub fn give_up(&mut self) {
        (self.ended, self.broken) = (true, true);
        self.members.iter().flatten().filter_map(Member::sleep_word).for_each(|sleep_word| sleep_word.end());
    }

    pub fn is_broken(&self) -> bool {
        self.broken
    }

    pub fn places(&self) -> usize {
        self.places.len()
    }

    // Members.

    /// Where the next member goes.
    pub fn free_slot(&mut self) -> u32 {
        match self.members.iter().position(Option::is_none) {
            Some(free) => free as u32,
            None => {
                self.members.push(None);
                self.members.len() as u32 - 1
            }
        }
    }

    /// Adds a member, which is Waiting, at a free slot. Returns its serial number.
    pub fn add(&mut self, slot: u32, mut member: Member) -> u64 {
        self.admitted += 1;
        member.serial = self.admitted;
        let vp = member.vp.index();
        if self.by_vp.len() <= vp {
            self.by_vp.resize(vp + 1, None);
        }
        self.by_vp[vp] = Some(slot);
        self.hard += usize::from(member.hold.is_some());
        self.members[slot as usize] = Some(member);
        self.index_member(slot);
        self.admitted
    }

    /// The member of this name, if it is one still.
    pub fn member_of(&mut self, id: MemberId) -> Option<&mut Member> {
        let member = self.members.get_mut(id.slot as usize)?.as_mut();
        member.filter(|member| member.serial == id.serial)
    }

    pub fn holds(&self, id: MemberId) -> bool {
        let member = self.members.get(id.slot as usize).and_then(Option::as_ref);
        member.is_some_and(|member| member.serial == id.serial)
    }

    /// [Removes](Self::remove) a member if it is one still. A program of which there may be something left is an ordinary one then.
    pub fn expel(&mut self, id: MemberId, cause: ChangeCause, now: Instant) -> Option<Member> {
        if !self.holds(id) {
            return None;
        }
        let member = self.remove(id.slot, cause, now)?;
        member.come_down();
        Some(member)
    }

    /// Takes a member out of the hierarchy. `cause` is who does that, and why.
    pub fn remove(&mut self, slot: u32, cause: ChangeCause, now: Instant) -> Option<Member> {
        let mut member = self.members.get_mut(slot as usize)?.take()?;
        if !self.broken {
            self.leave(&mut member, cause, now);
            if self.engine.context().state(member.vp) != VpState::Waiting {
                self.engine.release(member.vp, now);
            }
            self.engine.remove_thread(member.vp);
        }
        self.by_vp[member.vp.index()] = None;
        self.hard -= usize::from(member.hold.is_some());
        self.places
            .iter_mut()
            .filter(|place| place.raised == Some(slot))
            .for_each(|place| place.raised = None);
        self.by_tid.retain(|_, other| *other != slot);
        Some(member)
    }

    /// Enters the threads of a member that has come or got threads, and records behind which edges they are.
    pub fn index_member(&mut self, slot: u32) {
        let threads = self.members[slot as usize].iter().flat_map(Member::all_threads);
        self.by_tid.extend(threads.map(|thread| (thread.number(), slot)));
        let State { run, members, engine, .. } = self;
        let (Some(run), Some(member)) = (run, &members[slot as usize]) else { return };
        let now = engine.context().now();
        member.all_threads().for_each(|thread| introduce(run, engine, (thread.number(), None), member, now));
    }

    /// Enters one thread of a member.
    pub fn index_thread(&mut self, tid: u32, slot: u32) {
        self.by_tid.insert(tid, slot);
        let State { run, members, engine, .. } = self;
        let (Some(run), Some(member)) = (run, &members[slot as usize]) else { return };
        introduce(run, engine, (tid, None), member, engine.context().now());
    }

    /// Records which threads there are behind which edges.
    pub fn introduce_threads(&mut self) {
        let State { run, members, engine, by_tid, .. } = self;
        let Some(run) = run else { return };
        let now = engine.context().now();
        for (tid, slot) in by_tid {
            members[*slot as usize]
                .iter()
                .for_each(|member| introduce(run, engine, (*tid, None), member, now));
        }
    }

    /// Whose wake-ups are to be told.
    pub fn traced(&self) -> Traced {
        let members = || self.members.iter().flatten();
        let others = members().filter(|member| member.heirs != Heirs::Alike && member.is_traced());
        let others = others.flat_map(|member| &member.threads).map(Managed::number).collect();
        if members().any(|member| member.heirs == Heirs::Alike) {
            Traced::All(others)
        } else {
            Traced::Threads(others)
        }
    }

    /// Whether a thread is a member's.
    pub fn is_managed(&self, tid: u32) -> bool {
        self.by_tid.contains_key(&tid)
    }

    /// Whether a process that a member's has started is no part of that member.
    pub fn is_apart(&self, process: Tid) -> bool {
        let number = process.as_raw_nonzero().get() as u32;
        self.is_managed(number) || self.apart.contains(&number)
    }

    /// These processes will be members by themselves.
    pub fn keep_apart(&mut self, processes: impl IntoIterator<Item = u32>) {
        self.apart.extend(processes);
    }

    /// Takes what the kernel has told since the last time of threads that began, were woken and ended. Makes no system call but for recording.
    pub fn hear(&mut self, now: Instant) {
        let Some(mut watch) = self.watch.take() else { return };
        watch.drain(|told| match told {
            WakeUp::Woken(tid) => self.woken(tid, now),
            WakeUp::Begun { parent, process, thread, at } => {
                self.born(parent, (process, thread), at.min(now))
            }
            WakeUp::Ended(tid) => self.thread_ended(tid),
            // The warden looks at everybody anyway.
            WakeUp::Lost => self.totals.lost += 1,
        });
        self.watch = Some(watch);
    }

    /// A thread has created another.
    fn born(&mut self, parent: u32, (process, thread): (u32, u32), at: Instant) {
        let Some(&slot) = self.by_tid.get(&parent) else { return };
        let Some(member) = self.members[slot as usize].as_mut() else { return };
        let number = |number: u32| i32::try_from(number).ok().and_then(Tid::from_raw);
        if member.heirs == Heirs::Ordinary || self.by_tid.contains_key(&thread) {
            return;
        }
        let (Some(process), Some(tid)) = (number(process), number(thread)) else { return };
        member.born(parent, process, tid);
        if self.places.iter().all(|place| place.raised != Some(slot)) {
            // Its creator was lowered while it created it. Lowering preempts nobody.
            let lowered = member.move_to(self.priorities, Level::Parked);
            self.note_moved(lowered);
        }
        self.by_tid.insert(thread, slot);
        self.totals.born += 1;
        let State { run, members, engine, .. } = self;
        if let (Some(run), Some(member)) = (run, &members[slot as usize]) {
            introduce(run, engine, (thread, Some(parent)), member, at);
        }
    }

    fn thread_ended(&mut self, tid: u32) {
        let Some(slot) = self.by_tid.get(&tid).copied() else { return };
        let Some(member) = self.members[slot as usize].as_mut() else { return };
        if member.heirs == Heirs::Alike {
            member.ended(tid);
            self.by_tid.remove(&tid);
            let vp = member.vp;
            self.run.iter_mut().for_each(|run| run.forget(tid, vp));
        }
    }

    fn member(&mut self, slot: u32) -> &mut Member {
        self.members[slot as usize].as_mut().expect("slots in use are those of members")
    }

    /// Whether the member has no use for a processor, as far as the hierarchy knows.
    pub fn is_waiting(&self, slot: u32) -> bool {
        let member = self.members.get(slot as usize).and_then(Option::as_ref);
        member.is_some_and(|member| self.engine.context().state(member.vp) == VpState::Waiting)
    }

    /// A member and the CPU its threads are bound to.
    pub fn member_and_cpu(&mut self, slot: u32) -> Option<(&mut Member, u16)> {
        let member = self.members.get_mut(slot as usize)?.as_mut()?;
        let cpu = self.places.get(member.place)?.cpu;
        Some((member, cpu))
    }

    // What happens to members.

    /// The member can use a processor; nothing if the hierarchy thinks so already.
    pub fn request(&mut self, slot: u32, now: Instant) {
        let Some(member) = self.members.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        if !self.broken && self.engine.context().state(member.vp) == VpState::Waiting {
            let job = member.take_job(self.run.as_ref().map(|run| run.start), now);
            self.engine.request(member.vp, job, now);
            if let (Some(MemberJobs::Lane(_)), Some(sleep_word)) = (&member.jobs, member.sleep_word()) {
                sleep_word.offers_jobs.store(self.engine.asks_by_jobs(member.vp), Ordering::Relaxed);
            }
        }
    }

    /// The hierarchy may have been changed: tells the threads of lanes whether schedulers above guarantee single jobs, so that they say
    /// which ones they begin. Of what a lane is at already nobody knows what remains, so that asks for nothing.
    pub fn refresh_offers(&mut self, now: Instant) {
        if self.broken {
            return;
        }
        for member in self.members.iter().flatten() {
            let (Some(MemberJobs::Lane(_)), Some(sleep_word)) = (&member.jobs, member.sleep_word()) else {
                continue;
            };
            let (vp, asks) = (member.vp, self.engine.asks_by_jobs(member.vp));
            let asked = sleep_word.offers_jobs.swap(asks, Ordering::Relaxed);
            if asks && !asked && self.engine.context().state(vp) != VpState::Waiting {
                let tag = vp.index() as u32;
                let unknown =
                    Job { release: now, deadline: Instant::MAX, wcet: Work::ZERO, rank: 0, number: 0, tag };
                self.engine.change_job(vp, unknown, now);
            }
        }
    }

    /// The kernel wakes a thread. One whose member is not Waiting blocked unseen; it may do so again before anybody looks, so the
    /// next time that its sentinel misses it it is given another chance.
    pub fn woken(&mut self, tid: u32, now: Instant) {
        let Some(&slot) = self.by_tid.get(&tid) else { return };
        self.totals.wakeups += 1;
        let Some(member) = self.members[slot as usize].as_mut() else { return };
        member.wake(tid);
        match self.engine.context().state(member.vp) {
            VpState::Waiting if member.off() == Off::Elsewhere => self.request(slot, now),
            VpState::Waiting => {}
            _ => member.rewoken = true,
        }
    }

    /// A waker has woken an own thread that slept on its word.
    pub fn notified(&mut self, slot: u32, now: Instant) {
        let Some(member) = self.members.get(slot as usize).and_then(Option::as_ref) else { return };
        if self.engine.context().state(member.vp) == VpState::Waiting {
            return self.request(slot, now);
        }
        // Its sentinel has not missed it yet.
        let place = self.places.iter().position(|place| place.raised == Some(slot));
        if member.jobs.is_some() {
            // The hierarchy has to hear of the new job, which may not be worth a processor.
            if let Some(place) = place {
                self.places[place].raised = None;
            }
            return self.renew(slot, now);
        }
        if let Some(sleep_word) =
            member.sleep_word().filter(|sleep_word| place.is_some() && sleep_word.grant())
        {
            sleep_word.wake_up();
        }
    }

    /// An own thread has done its job and goes on with the next one, which waits already: it has not slept.
    pub fn follow(&mut self, slot: u32, now: Instant) {
        let Some(member) = self.members.get_mut(slot as usize).and_then(Option::as_mut) else { return };
        if self.broken || self.engine.context().state(member.vp) == VpState::Waiting {
            return self.request(slot, now);
        }
        let job = member.take_job(self.run.as_ref().map(|run| run.start), now);
        self.engine.follow(member.vp, job, now);
        self.followed = Some(slot);
    }

    /// An own thread had slept and was woken before the hierarchy has heard that it slept.
    pub fn renew(&mut self, slot: u32, now: Instant) {
        let Some(vp) = self.members.get(slot as usize).and_then(Option::as_ref).map(|member| member.vp)
        else {
            return;
        };
        if !self.broken && self.engine.context().state(vp) != VpState::Waiting {
            self.engine.release(vp, now);
        }
        self.request(slot, now);
    }

    /// The sentinel of `place` runs in its own place: the thread that was granted the processor is off it.
    ///
    /// Until its threads are lowered, one of them may be woken again. Most of that is told, without waking anybody, and heard when the scheduling
    /// point is [settled](Self::settle). Two things are not told, so the kernel is asked where they can have been: that somebody woke it who has
    /// had the sentinel's processor meanwhile (it would go on before the sentinel does, unless who waits for the lock, whose `progress` this is, has
    /// lent the sentinel its priority), and that somebody woke it on the processor on which it was before it was bound to this one.
    pub fn absent(
        &mut self,
        place: usize,
        (evidence, progress): (Evidence, &Progress),
        now: Instant,
    ) -> Absence {
        self.hear(now);
        let Some(slot) = self.places[place].raised.filter(|_| !self.ended) else { return Absence::Nobody };
        let arriving = self.places[place].raised_at.is_some_and(|at| now - at < ARRIVAL);
        let priorities = self.priorities;
        let member = self.member(slot);
        let off = member.off();
        let may_come = (arriving || evidence == Evidence::None) && off == Off::Elsewhere;
        // In this order: whom the kernel saw asleep on the lock, which the caller has, said so before and cannot take it back meanwhile.
        if may_come && (member.is_runnable() || member.is_in_line()) {
            return Absence::Arriving;
        }
        let again = match off {
            Off::Asleep => false,
            Off::Woken => true,
            Off::Elsewhere => {
                // Nobody is told of the first time that a thread becomes able to run.
                let may_run = std::mem::take(&mut member.rewoken) || member.has_runnable_newborn();
                let switches = own_switches();
                let moved = member.move_to(priorities, Level::Parked);
                let was_away = own_switches() != switches || progress.is_waited_for();
                let may_run = may_run || (was_away && member.is_runnable()) || member.is_woken_elsewhere();
                if !may_run {
                    member.fall_asleep();
                }
                self.note_moved(moved);
                may_run
            }
        };
        let member = self.member(slot);
        (member.rewoken, member.lags) = (false, false);
        let (vp, traced) = (member.vp, member.is_traced());
        self.totals.blocks += 1;
        self.totals.stalls += u64::from(off == Off::Elsewhere && !traced);
        self.places[place].raised = None;
        if self.engine.context().state(vp) != VpState::Waiting {
            self.engine.release(vp, now);
        }
        if again {
            self.request(slot, now);
        }
        Absence::Released
    }
}

/// Records behind which edge a thread of a member is, and which one has started it if that was seen, which is told once.
fn introduce(
    run: &mut ManagedRun,
    engine: &Engine,
    thread: (u32, Option<u32>),
    member: &Member,
    at: Instant,
) {
    match member.jobs {
        Some(MemberJobs::Lane(_)) => introduce_lane(run, engine, thread, member.vp),
        _ => run.introduce(thread, member.vp, at),
    }
}

/// A lane's thread stands below the edges to the scheduler of all lanes, above whose own children nobody is promised anything.
fn introduce_lane(run: &mut ManagedRun, engine: &Engine, thread: (u32, Option<u32>), vp: VpId) {
    if run.watch.edge_of(vp).is_some() {
        return run.introduce(thread, vp, engine.context().now());
    }
    if let Some(Above::Scheduler(parent)) = engine.edge(vp).map(|edge| edge.above) {
        engine.parents(parent).for_each(|above| introduce_lane(run, engine, thread, above.vp));
    }
}
