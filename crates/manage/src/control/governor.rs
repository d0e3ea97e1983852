//! The governor: the description of what runs, and how it changes.

use super::listing;
use super::pieces::Piece;
use super::protocol::{Command, Done, Force, Listing, Outcome, ParentRequest, Program, Promised, Refusal};
use super::server::CommandHandler;
use crate::govern::{NotDismissed, PreparedHold};
use crate::{
    Admission, AdmitError, Blocks, Handle, ManagedSet, MemberId, Parking, Target, Waker, WatchedEdge,
};
use crate::{ShortQuantum, command};
use rustix::process::getppid;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::scheduler::{Parameter, UnknownKind};
use talea_guarantee::suggest::known_words;
use talea_linux::Tid;
use talea_linux::proc::{is_kernel_thread, own_session, parent_of, process_of};
use talea_model::{Description, Request, SchedulerKind, Setting, ThreadWork};
use talea_policy::arrangement::live::{
    Change, EditError, Insistence, Live, Moved, Planned, Refused, Renewed, Stake, StepError,
};
use talea_policy::arrangement::{ChangeAuthor, ChangeCause, ChangeReason, Promise};

/// The description of what runs beside the set that runs it. Every change is made by one of its calls, one at a time.
pub struct Governor {
    inner: Mutex<Inner>,
}

pub(super) struct Inner {
    /// None once the set has been taken back.
    pub(super) set: Option<ManagedSet>,
    pub(super) live: Live,
    members: BTreeMap<String, MemberId>,
    /// Who has come since the beginning, and how it is kept from running.
    newcomers: Vec<(String, Parking)>,
    /// How those are kept from running for whom that has changed.
    parked: BTreeMap<String, Parking>,
    /// Where those who reserve were before.
    origins: BTreeMap<String, Vec<(String, Request)>>,
}

/// Why something was not done. Everything is as before.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The change was judged and refused.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The thread cannot be taken in.
    #[error(transparent)]
    Admit(#[from] AdmitError),
    /// Nobody has reserved anything under that name, or where it came from is gone.
    #[error("\"{0}\" has not begun a reservation by `reserve`; move it to where it belongs instead")]
    NothingReserved(String),
    /// Nothing was accepted for it, or that is over by itself.
    #[error("\"{0}\" has no piece of work to end: none was accepted for it, or it is over")]
    NothingAccepted(String),
    /// Its work is this program's own, so nothing that a description says can be started.
    #[error(
        "the work of \"{0}\" is this program's own; add a command or a process, or spawn it in the program"
    )]
    OwnWork(String),
    /// Real threads cannot take turns that short.
    #[error(transparent)]
    ShortQuantum(#[from] ShortQuantum),
    /// Only threads have work to be done.
    #[error(
        "\"{0}\" is a scheduler; time constraints by a call are those of threads, so name a thread; lanes ask for their jobs"
    )]
    NoThread(String),
    /// Whoever schedules it badly loses the machine, or the terminal from which that could be mended.
    #[error("process {number} {why}; parked or held, it could take the machine or this terminal with it")]
    Protected {
        /// The process.
        number: u32,
        /// What it is.
        why: &'static str,
    },
    /// It has left meanwhile.
    #[error("\"{0}\" has left")]
    Left(String),
    /// The scheduler above cannot accept a piece of work, or never does.
    #[error("{0}")]
    Constraint(#[from] talea_policy::hierarchy::Refusal),
    /// The set has ended.
    #[error("the run has ended")]
    Ended,
}

impl Governor {
    /// Governs `set`, which runs what `live` describes; `members` are the description's threads that are in it, by name. Those
    /// who are not are taken off the description.
    ///
    /// # Panics
    /// If a member is not one of the description's.
    pub fn new(set: ManagedSet, live: Live, members: impl IntoIterator<Item = (String, MemberId)>) -> Self {
        let mut inner = Inner {
            set: Some(set),
            live,
            members: BTreeMap::new(),
            newcomers: Vec::new(),
            parked: BTreeMap::new(),
            origins: BTreeMap::new(),
        };
        for (name, member) in members {
            inner.live.joined(&name, member.vp());
            inner.members.insert(name, member);
        }
        let described: Vec<String> =
            inner.live.blueprint().threads.iter().map(|post| post.name.clone()).collect();
        for name in described.iter().filter(|name| !inner.members.contains_key(*name)) {
            inner.live.left(name);
        }
        Governor { inner: Mutex::new(inner) }
    }

    /// Gives the set back; whatever is wanted afterwards, the run has ended. None if that was done already.
    pub fn retire(&self) -> Option<ManagedSet> {
        self.lock().set.take()
    }

    /// Lets `look` see the set, if it is still governed.
    pub fn with_set<R>(&self, look: impl FnOnce(&ManagedSet) -> R) -> Option<R> {
        self.lock().set.as_ref().map(look)
    }

    /// The threads that have come since the beginning, in that order, also those that have left again.
    pub fn newcomers(&self) -> Vec<(String, Parking)> {
        self.lock().newcomers.clone()
    }

    /// How somebody is or was kept from running at last; none if that is as it was when it came.
    pub fn parking(&self, name: &str) -> Option<Parking> {
        self.lock().parked.get(name).copied()
    }

    /// The description of what runs.
    pub fn description(&self) -> Description {
        let mut inner = self.lock();
        inner.prune_departed();
        (**inner.live.system()).clone()
    }

    /// Who there is, with what they are promised and receive.
    ///
    /// # Errors
    /// [`Reason::Ended`].
    pub fn list(&self) -> Result<Listing, Reason> {
        let mut inner = self.lock();
        inner.prune_departed();
        let Inner { set, live, members, .. } = &*inner;
        Ok(listing::listing(set.as_ref().ok_or(Reason::Ended)?, live, members))
    }

    /// Makes a change. A thread that it adds is a command or a process; own threads are [spawned](Self::spawn).
    ///
    /// # Errors
    /// See [`Reason`].
    pub fn change(&self, change: &Change, insistence: Insistence) -> Result<Done, Reason> {
        self.lock().change(change, Requester::program(insistence), change.reason())
    }

    /// Adds a thread of this process, ready to run, which ends as a member when `run` returns.
    ///
    /// # Errors
    /// See [`Reason`].
    pub fn spawn(
        &self,
        thread: OwnThread<'_>,
        insistence: Insistence,
        run: impl FnOnce(&Handle) + Send + 'static,
    ) -> Result<(Done, Waker), Reason> {
        let OwnThread { name, under, request, requires, blocks } = thread;
        let change = Change::AddThread {
            name: name.into(),
            work: ThreadWork::CpuBound,
            requires,
            under: under.into(),
            request,
        };
        let mut waker = None;
        let done = self.lock().add(&change, name, Requester::program(insistence), |set, admission| {
            let (member, own) = set.spawn(admission, blocks, run)?;
            waker = Some(own);
            Ok(member)
        })?;
        Ok((done, waker.expect("it was spawned")))
    }

    /// Moves somebody under a scheduler and remembers where it was.
    ///
    /// # Errors
    /// See [`Reason`].
    pub fn reserve(
        &self,
        name: &str,
        under: (String, Request),
        insistence: Insistence,
    ) -> Result<Done, Reason> {
        self.lock().reserve(name, under, Requester::program(insistence))
    }

    /// Moves somebody back to where it was before it reserved.
    ///
    /// # Errors
    /// See [`Reason`].
    pub fn release(&self, name: &str, insistence: Insistence) -> Result<Done, Reason> {
        self.lock().release(name, Requester::program(insistence))
    }

    /// Removes a scheduler or lets a thread go, whichever goes by the name.
    ///
    /// # Errors
    /// See [`Reason`].
    pub fn remove(&self, name: &str, insistence: Insistence) -> Result<Done, Reason> {
        self.lock().remove(name, Requester::program(insistence))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        // Whoever panicked has left nothing half done: what is made is made under the dispatcher's lock at once.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread of this process that is to be governed.
#[derive(Clone, Debug)]
pub struct OwnThread<'a> {
    /// Its name.
    pub name: &'a str,
    /// Who schedules it.
    pub under: &'a str,
    /// What it asks for.
    pub request: Request,
    /// What it has to receive.
    pub requires: Option<Guarantee>,
    /// How it is known that it can run again.
    pub blocks: Blocks,
}

/// Who wants a change, and how much.
#[derive(Clone, Copy)]
struct Requester {
    author: ChangeAuthor,
    insistence: Insistence,
}

impl Requester {
    /// The program, by a call.
    fn program(insistence: Insistence) -> Self {
        Requester { author: ChangeAuthor::Program, insistence }
    }

    /// A change that it wants for this reason.
    fn cause(self, why: ChangeReason) -> ChangeCause {
        ChangeCause { by: self.author, why, insistence: self.insistence }
    }
}

impl CommandHandler for Governor {
    fn handle(&self, command: Command, insistence: Insistence, author: ChangeAuthor) -> Outcome {
        let requester = Requester { author, insistence };
        let change = |change: &Change| self.lock().change(change, requester, change.reason());
        let ties = |under: Vec<ParentRequest>| under.into_iter().map(edge).collect();
        let result = match command {
            Command::List => return self.list().map_or_else(|reason| outcome(&reason), Outcome::Listing),
            Command::Statistics { .. } => {
                let none = "this run has a hierarchy and tells no statistics: programs that have channels do";
                return Outcome::Misstated(none.into());
            }
            Command::AddScheduler { name, kind, quantum, settings, under } => {
                let (kind, settings) = match known(&kind, &settings) {
                    Ok(known) => known,
                    Err(unknown) => return unknown,
                };
                let under = ties(under);
                change(&Change::AddScheduler { name, kind, quantum, settings, under })
            }
            Command::AddThread { name, program, requires, under } => {
                let work = match program {
                    Program::Command(words) => ThreadWork::Command(words),
                    Program::Process { number, children } => ThreadWork::Process { number, children },
                    Program::Thread(number) => ThreadWork::Thread(number),
                };
                let (under, request) = edge(under);
                change(&Change::AddThread { name, work, requires, under, request })
            }
            Command::Remove { name } => self.lock().remove(&name, requester),
            Command::Move { name, under } => change(&Change::Move { name, under: ties(under) }),
            Command::Reserve { name, under } => self.lock().reserve(&name, edge(under), requester),
            Command::Change { name, of, asks } => change(&Change::Ask { name, of, request: asks.wish() }),
            Command::Release { name } => self.lock().release(&name, requester),
            Command::Constrain { name, after, within, work } => {
                let piece = Piece { after, within, work: work.as_work() };
                self.constrain(&name, piece).map(|()| Done::default())
            }
            Command::EndConstraint { name } => self.end_constraint(&name).map(|()| Done::default()),
            Command::Replace { name, kind, quantum, settings, children } => {
                let (kind, settings) = match known(&kind, &settings) {
                    Ok(known) => known,
                    Err(unknown) => return unknown,
                };
                let children = children.into_iter().map(|child| (child.name, child.asks.wish())).collect();
                change(&Change::Replace { name, kind, quantum, settings, children })
            }
        };
        result.map_or_else(|reason| outcome(&reason), Outcome::Done)
    }
}

/// A kind and what is said of one scheduler of it.
type Described = (SchedulerKind, Vec<(&'static str, Setting)>);

/// The kind of this name, if this program has one, and what is said of it.
fn known(kind: &str, settings: &BTreeMap<String, String>) -> Result<Described, Outcome> {
    let kind: SchedulerKind =
        kind.parse().map_err(|unknown: UnknownKind| Outcome::Misstated(unknown.to_string()))?;
    let setting = |(key, value): (&String, &String)| {
        let fields = [Parameter::QUANTUM.name, Parameter::TAKES.name];
        let known = kind.declaration().parameters.iter().filter(|known| !fields.contains(&known.name));
        let Some(parameter) = known.clone().find(|known| known.name == key) else {
            let known: Vec<&str> = known.map(|known| known.name).collect();
            return Err(match known.as_slice() {
                [] => format!("a scheduler of kind {kind} has nothing to be set, and so no \"{key}\""),
                known => {
                    let remedy = known_words(key, known.iter().copied());
                    format!("a scheduler of kind {kind} has no \"{key}\"; {remedy}")
                }
            });
        };
        Ok((parameter.name, Setting::read(parameter, value)?))
    };
    let settings: Result<_, String> = settings.iter().map(setting).collect();
    Ok((kind, settings.map_err(Outcome::Misstated)?))
}

fn edge(tie: ParentRequest) -> (String, Request) {
    let wish = tie.asks.wish();
    (tie.scheduler, wish)
}

impl Inner {
    fn change(&mut self, change: &Change, requester: Requester, why: ChangeReason) -> Result<Done, Reason> {
        match change {
            Change::AddThread { name, work: ThreadWork::CpuBound | ThreadWork::Bursts { .. }, .. } => {
                Err(Reason::OwnWork(name.clone()))
            }
            Change::AddThread { name, work, .. } => {
                if let Some(Target::Process(number, _) | Target::Thread(number)) = Target::of(work)
                    && requester.insistence == Insistence::Careful
                    && let Some((number, why)) = protection(number)
                {
                    return Err(Reason::Protected { number, why });
                }
                self.add(change, name, requester, |set, admission| take_in(set, admission, work))
            }
            Change::RemoveThread { name } => self.dismiss(change, name, requester),
            _ => {
                let planned = self.plan(change, requester.insistence)?;
                let done = done(&planned);
                let restraints = self.restraints(&planned)?;
                let set = self.set.as_ref().ok_or(Reason::Ended)?;
                let renewed = carry_out(set, &self.live, &planned, requester.cause(why))?;
                if let Change::AddScheduler { name, kind, .. } | Change::Replace { name, kind, .. } = change {
                    set.define_scheduler(name, &kind.to_string());
                }
                self.live.adopt(planned, renewed);
                self.impose(restraints);
                Ok(done)
            }
        }
    }

    fn reserve(
        &mut self,
        name: &str,
        under: (String, Request),
        requester: Requester,
    ) -> Result<Done, Reason> {
        self.prune_departed();
        let origin = self.place(name);
        let change = Change::Move { name: name.into(), under: vec![under] };
        let done = self.change(&change, requester, ChangeReason::Reserved)?;
        if let Some(origin) = origin {
            self.origins.entry(name.into()).or_insert(origin);
        }
        Ok(done)
    }

    fn release(&mut self, name: &str, requester: Requester) -> Result<Done, Reason> {
        self.prune_departed();
        let Some(under) = self.origins.get(name).cloned() else {
            return Err(Reason::NothingReserved(name.into()));
        };
        let change = Change::Move { name: name.into(), under };
        let done = self.change(&change, requester, ChangeReason::ReservationEnded)?;
        self.origins.remove(name);
        Ok(done)
    }

    fn remove(&mut self, name: &str, requester: Requester) -> Result<Done, Reason> {
        self.prune_departed();
        let change = self.live.removal(name).map_err(Refused::Edit)?;
        self.change(&change, requester, change.reason())
    }

    fn plan(&mut self, change: &Change, insistence: Insistence) -> Result<Planned, Reason> {
        self.prune_departed();
        if self.set.as_ref().is_none_or(ManagedSet::is_ended) {
            return Err(Reason::Ended);
        }
        if let Change::AddScheduler { name, quantum: Some(quantum), .. }
        | Change::Replace { name, quantum: Some(quantum), .. } = change
        {
            ShortQuantum::refuse(name, *quantum)?;
        }
        if let Change::AddScheduler { name, settings, .. } | Change::Replace { name, settings, .. } = change {
            ShortQuantum::refuse_entries(name, settings.iter().map(|(_, setting)| setting))?;
        }
        Ok(self.live.plan(change, insistence)?)
    }

    /// Takes those who have left off the description.
    pub(super) fn prune_departed(&mut self) {
        let Some(set) = &self.set else { return };
        let gone: Vec<String> = self
            .members
            .iter()
            .filter(|(_, member)| !set.is_member(**member))
            .map(|(name, _)| name.clone())
            .collect();
        for name in gone {
            self.forget(&name);
            self.live.left(&name);
        }
    }

    fn forget(&mut self, name: &str) {
        self.members.remove(name);
        self.origins.remove(name);
    }

    /// Where somebody is.
    fn place(&self, name: &str) -> Option<Vec<(String, Request)>> {
        let system = self.live.system();
        let of_thread = system.threads.iter().find(|thread| thread.name == name).map(|thread| &thread.under);
        let of_scheduler = || {
            system
                .schedulers
                .iter()
                .find(|scheduler| scheduler.name == name)
                .map(|scheduler| &scheduler.under)
        };
        let name_of = |index: usize| system.schedulers[index].name.clone();
        let under = of_thread.or_else(of_scheduler)?.iter();
        Some(under.map(|under| (name_of(under.scheduler), under.request.clone())).collect())
    }

    /// Makes room for a thread, takes it in, and undoes the room if that fails.
    fn add(
        &mut self,
        change: &Change,
        name: &str,
        requester: Requester,
        take_in: impl FnOnce(&mut ManagedSet, Admission<'_>) -> Result<MemberId, AdmitError>,
    ) -> Result<Done, Reason> {
        let planned = self.plan(change, requester.insistence)?;
        let (done, cause) = (done(&planned), requester.cause(change.reason()));
        let restraints = self.restraints(&planned)?;
        let set = self.set.as_mut().ok_or(Reason::Ended)?;
        let renewed = carry_out(set, &self.live, &planned, cause)?;
        self.live.adopt(planned, renewed);
        let place = self.live.place(name).expect("it is described");
        let parking = match self.live.blueprint().is_capped(name) {
            true => Parking::Held,
            false => Parking::WorkConserving,
        };
        let (parent, parameters) = (place.parent, place.parameters);
        let edge = Some(WatchedEdge { parent: &place.parent_name, promise: place.promise.as_ref(), cause });
        match take_in(set, Admission { name, parent, parameters, parking, edge }) {
            Ok(member) => {
                self.live.joined(name, member.vp());
                self.members.insert(name.into(), member);
                self.newcomers.push((name.into(), parking));
                self.parked.remove(name);
                self.impose(restraints);
                Ok(done)
            }
            Err(error) => {
                self.undo(name, cause.not_admitted());
                Err(error.into())
            }
        }
    }

    /// Undoes the room that was made for a thread that did not come.
    fn undo(&mut self, name: &str, cause: ChangeCause) {
        let change = Change::RemoveThread { name: name.into() };
        let (Some(set), Ok(planned)) = (&self.set, self.live.plan(&change, Insistence::Forced)) else {
            return self.live.left(name);
        };
        match carry_out(set, &self.live, &planned, cause) {
            Ok(renewed) => self.live.adopt(planned, renewed),
            // Schedulers that are ready for one more stay so; nobody is missing but who did not come.
            Err(_) => self.live.left(name),
        }
    }

    fn dismiss(&mut self, change: &Change, name: &str, requester: Requester) -> Result<Done, Reason> {
        let planned = self.plan(change, requester.insistence)?;
        let (done, cause) = (done(&planned), requester.cause(change.reason()));
        let restraints = self.restraints(&planned)?;
        let member = *self.members.get(name).ok_or_else(|| Reason::Left(name.into()))?;
        let set = self.set.as_ref().ok_or(Reason::Ended)?;
        let dismissed = set.dismiss(member, cause, |engine, now| self.live.carry_out(&planned, engine, now));
        let renewed = dismissed.map_err(|error| match error {
            NotDismissed::Gone => Reason::Left(name.into()),
            NotDismissed::Refused(step) => Refused::Step(step).into(),
        })?;
        self.forget(name);
        self.hold(&planned, &renewed, cause);
        self.live.adopt(planned, renewed);
        self.impose(restraints);
        Ok(done)
    }

    /// What it takes to hold members that will be promised maxima, and to let others go. Whoever could not be held when it came
    /// is not tried again as long as its promise stays a maximum.
    fn restraints(&self, planned: &Planned) -> Result<Vec<(String, Parking, PreparedHold)>, Reason> {
        let set = self.set.as_ref().ok_or(Reason::Ended)?;
        let (before, after) = (self.live.blueprint(), planned.blueprint());
        let changes = |name: &str| match (before.is_capped(name), after.is_capped(name)) {
            (false, true) => Some(Parking::Held),
            (true, false) => Some(Parking::WorkConserving),
            (false, false) | (true, true) => None,
        };
        let mut restraints = Vec::new();
        for (name, member) in &self.members {
            if after.post(name).is_some()
                && let Some(parking) = changes(name)
                && let Some(restraint) = set.restraint(*member, parking)?
            {
                restraints.push((name.clone(), parking, restraint));
            }
        }
        Ok(restraints)
    }

    fn impose(&mut self, restraints: Vec<(String, Parking, PreparedHold)>) {
        let Some(set) = &self.set else { return };
        for (name, parking, restraint) in restraints {
            set.impose(restraint);
            self.parked.insert(name, parking);
        }
    }

    fn hold(&self, planned: &Planned, renewed: &Renewed, cause: ChangeCause) {
        let Some(set) = &self.set else { return };
        set.govern(|engine, watch, _| {
            if let Some(watch) = watch {
                self.live.hold(watch, engine, planned, renewed, cause);
            }
        });
    }
}

/// Makes a plan's steps and holds the schedulers to what they promise then, in one instant.
fn carry_out(
    set: &ManagedSet,
    live: &Live,
    planned: &Planned,
    cause: ChangeCause,
) -> Result<Renewed, Reason> {
    let made = set.govern(|engine, watch, now| {
        let renewed = live.carry_out(planned, engine, now)?;
        if let Some(watch) = watch {
            live.hold(watch, engine, planned, &renewed, cause);
        }
        Ok(renewed)
    });
    made.map_err(|step: StepError| Refused::Step(step).into())
}

/// The process of a thread that should not be taken in by mistake, and why.
fn protection(number: u32) -> Option<(u32, &'static str)> {
    let tid = i32::try_from(number).ok().and_then(Tid::from_raw)?;
    let process = process_of(tid).unwrap_or(tid);
    Some((process.as_raw_nonzero().get() as u32, special(tid, process)?))
}

fn special(tid: Tid, process: Tid) -> Option<&'static str> {
    if is_kernel_thread(tid) {
        return Some("is a thread of the kernel");
    }
    if process == Tid::INIT {
        return Some("starts all others");
    }
    if own_session() == process.as_raw_nonzero().get() {
        return Some("leads the session of this run");
    }
    let mut ancestor = getppid();
    while let Some(above) = ancestor {
        if above == process {
            return Some("has started this run");
        }
        ancestor = parent_of(above);
    }
    None
}

fn take_in(
    set: &mut ManagedSet,
    admission: Admission<'_>,
    work: &ThreadWork,
) -> Result<MemberId, AdmitError> {
    match (Target::of(work), work) {
        (Some(target), _) => set.attach(admission, target),
        (None, ThreadWork::Command(words)) => set.command(admission, &mut command::of_words(words)),
        (None, _) => unreachable!("own work is refused before"),
    }
}

fn done(planned: &Planned) -> Done {
    let text = |promise: &Option<Promise>| promise.as_ref()?.derived().map(ToString::to_string);
    let requires = |promise: &Option<Promise>| match promise {
        Some(Promise::Required(guarantee)) => Some(guarantee.to_string()),
        Some(Promise::Derived(_) | Promise::Stated(..)) | None => None,
    };
    let promised = |moved: &Moved| Promised {
        parent: moved.parent.clone(),
        child: moved.child.clone(),
        before: text(&moved.before),
        after: text(&moved.after),
        requires: requires(&moved.after),
        proviso: planned
            .provisos
            .iter()
            .find(|proviso| proviso.parent == moved.parent && proviso.child == moved.child)
            .map(|proviso| proviso.reason.to_string()),
    };
    let mut warnings: Vec<String> =
        planned.broken.iter().flat_map(|broken| broken.findings.clone()).collect();
    let doubts = planned.newly_doubted.iter().map(ToString::to_string);
    // Those that somebody requires are among the findings.
    let others: Vec<String> = doubts.filter(|doubt| !warnings.contains(doubt)).collect();
    warnings.extend(others);
    let told = planned.promises.iter().filter(|moved| !moved.is_restated());
    Done { promises: told.map(promised).collect(), warnings }
}

fn outcome(reason: &Reason) -> Outcome {
    let in_vain =
        |reasons: Vec<String>| Outcome::Refused(Refusal { reasons, remedy: None, force: Force::InVain });
    match reason {
        Reason::Ended => Outcome::Ended,
        Reason::NothingReserved(_) | Reason::NothingAccepted(_) | Reason::Left(_) => {
            Outcome::Misstated(reason.to_string())
        }
        Reason::Refused(Refused::Edit(error @ EditError::Requests { .. })) => Outcome::Misstated(format!(
            "{error}; on the command line with --child \"NAME=REQUEST\" for each, where REQUEST is written like share 2, priority 3 or \
                 RESBH 1ms 40ms"
        )),
        Reason::Refused(Refused::Edit(
            error @ (EditError::Unknown { .. }
            | EditError::Parents { .. }
            | EditError::WhichParent { .. }
            | EditError::NotUnder { .. }),
        )) => Outcome::Misstated(error.to_string()),
        Reason::Refused(Refused::Broken(broken)) => Outcome::Refused(Refusal {
            reasons: broken.findings.clone(),
            remedy: broken.remedy.clone(),
            force: match broken.stake {
                Stake::Promises => Force::Helps,
                Stake::Admission => Force::InVain,
            },
        }),
        Reason::Protected { .. } => {
            Outcome::Refused(Refusal { reasons: vec![reason.to_string()], remedy: None, force: Force::Helps })
        }
        other => in_vain(other.to_string().lines().map(Into::into).collect()),
    }
}
