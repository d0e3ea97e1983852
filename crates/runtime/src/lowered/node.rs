//! A lowered node: its programs get their settings, and what came of all its threads.

use super::control::RefusingHandler;
use super::program::{Extent, Post, Program, give_back};
use super::warden::{Account, Warden};
use crate::control::Control;
use crate::flow::Shared;
use crate::hierarchy::{HierarchyError, HierarchyParts, early_end, numbers};
use crate::lowering::hierarchy::{PartAccount, Settings, ThreadSetting};
use crate::outcome::{HierarchyOutcome, MemberOutcome, ParkingOutcome, ScheduledBy, ThreadAttributes};
use std::collections::HashMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use talea_guarantee::derivation::derive;
use talea_linux::Tid;
use talea_linux::sched::Policy;
use talea_linux::thread::{JoinHandle, spawn};
use talea_manage::Priorities;
use talea_manage::command::{self, Started};
use talea_manage::guardian::{Guardian, PROGRAMS_MAX};
use talea_manage::keeper::Keeper;
use talea_manage::{AdmitError, ForeignChanges, SetError, Target};
use talea_model::{System, ThreadWork};
use talea_policy::arrangement::{Blueprint, Kept};
use talea_record::RingWriter;
use talea_time::{Instant, Work};

const STACK: usize = 256 * 1024;

/// What came of an own thread, which is a lane of the run.
pub(crate) struct OwnThread {
    /// Index into the description's threads.
    pub thread: usize,
    /// As the kernel has it.
    pub policy: Policy,
    pub received: Work,
}

/// The names of the rings that a lowered node writes beside those of its lanes: its programs'.
pub(crate) fn rings_of(system: &System, node: usize) -> Vec<String> {
    let threads = system.threads_on(node).map(|thread| &system.threads[thread]);
    threads.filter(|thread| thread.work.is_program()).map(|thread| thread.name.clone()).collect()
}

/// A lowered node with its programs. Dropping it ends it, and the run.
pub(crate) struct LoweredNode {
    node: String,
    number: usize,
    shared: Arc<Shared>,
    /// The node's threads by name, in file order, with their indices.
    roles: Vec<(String, usize)>,
    /// From the start to the planned end.
    span: (Instant, Instant),
    /// Tells the warden of the start.
    begin: Option<SyncSender<Instant>>,
    warden: Option<JoinHandle<Account>>,
    guardian: Option<Arc<Guardian>>,
    keeper: Option<Arc<Keeper>>,
    commands: Vec<Started>,
    /// Until the warden has them.
    programs: Vec<Program>,
    /// Of programs.
    attributes: Vec<ThreadAttributes>,
    lowering: Vec<PartAccount>,
    blueprint: Blueprint,
    control: Control,
}

impl LoweredNode {
    /// Gives the programs of the node these settings. Records go to `rings`, see [`rings_of`].
    ///
    /// # Errors
    /// A program is not there, or the kernel does not give it the policy. Nobody is left over.
    pub fn set_up(
        parts: &HierarchyParts<'_>,
        (settings, lowering): (&Settings, Vec<PartAccount>),
        rings: Vec<RingWriter>,
        shared: &Arc<Shared>,
    ) -> Result<Self, HierarchyError> {
        let node = parts.system.nodes[parts.node].name.clone();
        let hierarchy = parts.system.hierarchy(parts.node).expect("a lowered node has a hierarchy");
        let derivation = derive(&hierarchy).expect("what does not compose is not lowered");
        let handler = Arc::new(RefusingHandler { node: node.clone() });
        let mut lowered = LoweredNode {
            node,
            number: parts.node,
            shared: Arc::clone(shared),
            roles: Vec::new(),
            span: (Instant::ZERO, Instant::MAX),
            begin: None,
            warden: None,
            guardian: None,
            keeper: None,
            commands: Vec::new(),
            programs: Vec::new(),
            attributes: Vec::new(),
            lowering,
            blueprint: Blueprint::new(parts.system, parts.node, &derivation)?,
            control: Control::of_hierarchy((parts.system, parts.node), handler, parts.channels),
        };
        lowered.take_in(parts, settings, rings)?;
        Ok(lowered)
    }

    fn take_in(
        &mut self,
        parts: &HierarchyParts<'_>,
        settings: &Settings,
        rings: Vec<RingWriter>,
    ) -> Result<(), HierarchyError> {
        let cpus = &parts.system.nodes[parts.node].cpus;
        let mut rings = rings.into_iter();
        let apart: Arc<[u32]> = numbers(parts.system).collect();
        for &ThreadSetting { thread: index, policy, .. } in &settings.threads {
            let thread = &parts.system.threads[index];
            self.roles.push((thread.name.clone(), index));
            if !thread.work.is_program() {
                continue;
            }
            let operation = parts.system.operation_of_thread(index).expect("threads are tasks");
            let guardian = self.guardian(settings)?;
            let (process, extent) = self.start(&thread.name, &thread.work, (&guardian, cpus))?;
            let go = self.commands.last().filter(|_| extent == Extent::Command).map(Started::go);
            let (name, jobs, node) = (thread.name.clone(), parts.jobs_of(operation), parts.node);
            let ring = rings.next().expect("each program has one");
            let (cpus, apart) = (cpus.clone(), Arc::clone(&apart));
            let post = Post { name, process, extent, go, policy, cpus, jobs, node, ring, apart };
            self.programs.push(Program::engage(post, &guardian)?);
        }
        self.attributes.extend(self.programs.iter().flat_map(|program| program.attributes.clone()));
        if !self.programs.is_empty() {
            self.start_warden(settings)?;
        }
        Ok(())
    }

    /// The keeper of the node's programs.
    fn keeper(&mut self, (guardian, cpus): (&Arc<Guardian>, &[u16])) -> Result<Arc<Keeper>, HierarchyError> {
        if let Some(keeper) = &self.keeper {
            return Ok(Arc::clone(keeper));
        }
        let keeper = Keeper::start(guardian, cpus).map_err(SetError::Keeper)?;
        Ok(Arc::clone(self.keeper.insert(Arc::new(keeper))))
    }

    /// The guardian, which is above all threads from which it may have to take something.
    fn guardian(&mut self, settings: &Settings) -> Result<Arc<Guardian>, HierarchyError> {
        if let Some(guardian) = &self.guardian {
            return Ok(Arc::clone(guardian));
        }
        let guardian = Arc::new(Guardian::start(priorities(settings)).map_err(SetError::Guardian)?);
        self.guardian = Some(Arc::clone(&guardian));
        Ok(guardian)
    }

    /// The process of a program, which is started if it is a command.
    fn start(
        &mut self,
        name: &str,
        work: &ThreadWork,
        (guardian, cpus): (&Arc<Guardian>, &[u16]),
    ) -> Result<(Tid, Extent), HierarchyError> {
        let words = match (Target::of(work), work) {
            (Some(target), _) => {
                let (process, tid) = target.find(name)?;
                let extent = match target {
                    Target::Process(_, children) => Extent::Process(children),
                    Target::Thread(_) => Extent::Thread(tid),
                };
                return Ok((process, extent));
            }
            (None, ThreadWork::Command(words)) => words,
            (None, _) => panic!("{name} is no program"),
        };
        let keeper = self.keeper((guardian, cpus))?;
        let mut started = Started::start(name, &command::of_words(words), &keeper).map_err(|source| {
            AdmitError::Command { name: name.to_owned(), command: words[0].clone(), source }
        })?;
        if !started.guard(guardian) {
            let (name, what, most) = (name.to_owned(), "commands", PROGRAMS_MAX);
            return Err(AdmitError::TooMany { name, what, most }.into());
        }
        let process = started.process;
        self.commands.push(started);
        Ok((process, Extent::Command))
    }

    fn start_warden(&mut self, settings: &Settings) -> Result<(), HierarchyError> {
        let guardian = self.guardian(settings)?;
        let policy = match settings.release {
            Policy::Other => Policy::Other,
            _ => Policy::Fifo(settings.above),
        };
        let shared = Arc::clone(&self.shared);
        // Where it cannot be created, the programs are still here to be given back.
        let (hand_over, handed) = sync_channel(1);
        let (begin, start) = sync_channel(1);
        let node = self.number;
        let serve = move || match handed.recv() {
            Ok(programs) => {
                guardian.note_warden(rustix::thread::gettid());
                let account =
                    Warden { shared, node, start, guardian: Arc::clone(&guardian), programs }.serve();
                guardian.dismiss_warden();
                account
            }
            Err(_) => Account::default(),
        };
        // Not bound to the node's processors, where reservations are above it.
        let thread = spawn("warden", policy, &[], STACK, serve).map_err(SetError::Thread)?;
        hand_over.send(std::mem::take(&mut self.programs)).expect("it waits for them");
        (self.warden, self.begin) = (Some(thread), Some(begin));
        Ok(())
    }

    /// The threads that are no lanes, as the kernel has them.
    pub fn attributes(&self) -> Vec<ThreadAttributes> {
        let warden = self.warden.iter().map(|thread| thread.report().into());
        warden.chain(self.attributes.iter().cloned()).collect()
    }

    /// Threads that have something else than they were to have.
    pub fn not_as_wanted(&self) -> Vec<String> {
        let differs = |thread: &&ThreadAttributes| {
            thread.wanted_policy != thread.actual_policy || thread.wanted_cpus != thread.actual_cpus
        };
        let told = |thread: &ThreadAttributes| {
            format!(
                "{} ({}): {}, wanted {}",
                thread.name, thread.tid, thread.actual_policy, thread.wanted_policy
            )
        };
        self.attributes().iter().filter(differs).map(told).collect()
    }

    /// The run will last from `start` to `end`.
    pub fn begin(&mut self, start: Instant, end: Instant) {
        self.span = (start, end);
        // A warden that is not there any more is found to have panicked at the end.
        self.begin.iter().for_each(|begin| _ = begin.send(start));
    }

    /// Whether it has ended, at the planned end or before.
    pub fn is_over(&self) -> bool {
        self.shared.is_over(self.number)
    }

    /// Ends it, unless it is over, and says what came of it and of the own threads, which have ended.
    ///
    /// # Panics
    /// With what a thread of it panicked with.
    pub fn end(mut self, own: &[OwnThread]) -> HierarchyOutcome {
        let uncontrolled = self.control.closed().map(str::to_owned);
        self.control.close();
        let own: HashMap<usize, &OwnThread> = own.iter().map(|own| (own.thread, own)).collect();
        let (account, exits) = self.end_threads();
        let mut received: HashMap<&str, Work> = HashMap::new();
        for (name, thread) in &self.roles {
            let of_program = || account.programs.iter().find(|program| program.post.name == *name);
            let own = own.get(thread).map(|own| own.received);
            let all = own.or_else(|| of_program().map(|program| program.received));
            received.insert(name, all.unwrap_or(Work::ZERO));
        }
        let of_program = |name: &String| {
            let first = self.attributes.iter().find(|thread| thread.name == *name);
            first.map(|thread| thread.actual_policy.clone())
        };
        let changes_of = |name: &String| {
            let program = account.programs.iter().find(|program| program.post.name == *name);
            program.map_or_else(ForeignChanges::default, |program| program.changes)
        };
        let members = self.roles.iter().map(|(name, thread)| MemberOutcome {
            thread: name.clone(),
            granted_ns: None,
            received_ns: received[name.as_str()].as_nanos(),
            parking: ParkingOutcome::Kernel,
            policy: own.get(thread).map(|own| own.policy.to_string()).or_else(|| of_program(name)),
            exit: exits.iter().find(|(program, _)| program == name).map(|(_, status)| status.clone()),
            calls: calls_of(self.keeper.as_deref(), name),
            changes: changes_of(name),
            excess_ns: None,
            held_late_ns: 0,
        });
        let (start, planned_end) = self.span;
        let end = self.shared.ends[self.number].as_ref().and_then(OnceLock::get);
        let ended_early =
            end.and_then(|end| early_end(end.cause.clone(), (start, end.at.max(start), planned_end)));
        HierarchyOutcome {
            judged_by: None,
            uncontained: self.keeper.as_ref().map(|keeper| keeper.shortcomings()).unwrap_or_default(),
            members: members.collect(),
            edges: edges(&self.blueprint, &received),
            node: self.node.clone(),
            scheduled_by: ScheduledBy::Kernel,
            lowering: self.lowering.clone(),
            grants: 0,
            given: None,
            unsliced: None,
            slices: 0,
            undefined: account.programs.iter().map(|program| program.undefined).sum(),
            untraced: None,
            uncontrolled,
            unmanaged_threads: account.unmanaged_threads,
            ended_early,
            shortcomings: None,
            unrestored: self.guardian.as_ref().and_then(|guardian| guardian.complaint()),
        }
    }

    /// Ends the run, and the programs. Returns them, and how those ended that had ended before.
    fn end_threads(&mut self) -> (Account, Vec<(String, String)>) {
        self.shared.shut_down();
        self.begin = None;
        if let Some(guardian) = &self.guardian {
            give_back(&mut self.programs, guardian);
        }
        let mut panicked = None;
        let account = match self.warden.take().map(JoinHandle::join) {
            None => Account::default(),
            Some(Ok(account)) => account,
            Some(Err(panic)) => {
                self.guardian.iter().for_each(|guardian| guardian.alarm());
                panicked = Some(panic);
                Account::default()
            }
        };
        let exits = command::end_all(&mut self.commands);
        let exits = exits.into_iter().map(|(name, status)| (name, status.to_string())).collect();
        if let Some(panic) = panicked
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
        (account, exits)
    }
}

impl Drop for LoweredNode {
    fn drop(&mut self) {
        let _ended = self.end_threads();
    }
}

fn calls_of(keeper: Option<&Keeper>, name: &str) -> Vec<(String, u64)> {
    let calls = keeper.map(|keeper| keeper.calls(name)).unwrap_or_default();
    calls.into_iter().map(|(call, times)| (call.name().to_owned(), times)).collect()
}

/// Those of a set of which the highest, its own, is above all threads.
fn priorities(settings: &Settings) -> Priorities {
    Priorities::above(settings.above - 3).expect("priorities of lowered threads are in the middle")
}

/// What was received on every edge, in the order of the description. A scheduler receives what all below it do.
fn edges(blueprint: &Blueprint, received: &HashMap<&str, Work>) -> Vec<Kept> {
    let mut below: HashMap<&str, Work> = received.clone();
    for post in blueprint.posts().rev() {
        let own = below.get(post.name.as_str()).copied().unwrap_or(Work::ZERO);
        for tie in &post.under {
            *below.entry(tie.parent.as_str()).or_insert(Work::ZERO) += own;
        }
    }
    let edge = |name: &str, parent: &str, promise| {
        Kept::unwatched((parent, name), promise, below.get(name).copied().unwrap_or(Work::ZERO))
    };
    let mut schedulers: Vec<_> = blueprint.schedulers.iter().collect();
    schedulers.sort_by_key(|post| post.index);
    let posts = schedulers.into_iter().chain(&blueprint.threads);
    posts
        .flat_map(|post| post.under.iter().map(|tie| edge(&post.name, &tie.parent, tie.promise.as_ref())))
        .collect()
}
