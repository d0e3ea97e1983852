//! An explicit plan: who runs when, for how long, given by the application (Niehaus et al., KURT).
//!
//! ```text
//!   KURT's modes      normal: time sharing    focused: the plan    mixed:  fixed priority
//!                                                                           ╱        ╲
//!                                                                       the plan   time sharing
//! ```
//!
//! An entry names a process, a time and a duration. When it is *due* and nothing planned is running, the process has the processor until it blocks or
//! has received the duration. What is late runs as soon as possible, for its whole duration, in the order of time and then of the
//! list. A process that does not want the processor when its turn comes may still come until the duration has passed; then
//! the entry is forfeited.
//!
//! A process that wants the processor without an entry that is due is served in [`Gaps`] or not at all. Explicit entries never
//! yield.
//!
//! ALL becomes what the plan says, as far as entries do not overlap. Costs a look at the entries that are due per notification; a plan of
//! any length costs the same.
//!
//! Do not use it where arrivals are not known beforehand.

use super::configuration::boxed;
use super::uniprocessor::{Clients, Rule, Stint, Uniprocessor};
use super::{Announcing, KindError, Row};
use crate::hierarchy::{Context, Parameters, Refusal, Scheduler};
use talea_guarantee::scheduler::Parameter;
use talea_model::{Plan, SchedulerKind};
use talea_time::{Duration, Instant, Work};

/// `duration` for `process` from `start` after the beginning of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanEntry {
    /// When.
    pub start: Duration,
    /// Who: the number that a child registers with.
    pub process: u32,
    /// How much processor time.
    pub duration: Work,
}

/// What happens after the last entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// Nothing.
    Once,
    /// The plan begins again this long after it began, which is later than its last start.
    Every(Duration),
}

/// Who runs in the gaps between entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Nobody of this scheduler; the processor is released.
    Released,
    /// Processes that want it, as *event-driven* ones: in the order in which they began to, until the next entry is due.
    EventDriven,
}

/// When a plan begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// At this instant, whoever is there.
    At(Instant),
    /// When the first process wants the processor.
    FirstRequest,
}

impl From<Instant> for Beginning {
    fn from(origin: Instant) -> Self {
        Beginning::At(origin)
    }
}

/// Why a plan cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Nothing to do.
    #[error("a plan needs an entry")]
    Empty,
    /// The list is not in order of time.
    #[error("entry {entry} starts at {start}, before the one ahead of it")]
    Unordered {
        /// Its position, from 0.
        entry: usize,
        /// When it starts.
        start: Duration,
    },
    /// An entry starts before the plan or takes no time.
    #[error("entry {entry} needs a start of at least 0 and a duration above 0")]
    Entry {
        /// Its position, from 0.
        entry: usize,
    },
    /// The plan begins again before its last entry has started.
    #[error("a plan whose last entry starts at {last} cannot repeat every {period}")]
    Repeat {
        /// The last start.
        last: Duration,
        /// The period asked for.
        period: Duration,
    },
}

/// The rule. Children register with [`Parameters::Process`].
#[derive(Clone, Debug)]
pub struct ExplicitPlan {
    entries: Vec<PlanEntry>,
    repeat: Repeat,
    gaps: Gaps,
    /// When the current pass began; nothing before the first.
    origin: Option<Instant>,
    /// The first entry that is not yet over; the one in progress if it has begun.
    next: usize,
    /// What is left of it, once it is in progress.
    progress: Option<Progress>,
    /// The last one that was over because its process went to sleep.
    relinquished: Option<Relinquished>,
    forfeited: u64,
}

/// An entry whose process went to sleep. It goes on if the process wants the processor again at that same instant, and has not slept at all.
#[derive(Clone, Copy, Debug)]
struct Relinquished {
    at: Instant,
    next: usize,
    origin: Option<Instant>,
    progress: Progress,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    left: Work,
    /// When it is forfeited if the process has not run until then.
    forfeit: Instant,
    has_run: bool,
}

/// A process.
#[derive(Clone, Copy, Debug)]
pub struct Planned {
    process: u32,
    /// Since when it wants the processor.
    since: Instant,
}

impl ExplicitPlan {
    /// A plan with this beginning.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn new(
        entries: Vec<PlanEntry>,
        repeat: Repeat,
        gaps: Gaps,
        beginning: impl Into<Beginning>,
    ) -> Result<Self, PlanError> {
        let origin = match beginning.into() {
            Beginning::At(origin) => Some(origin),
            Beginning::FirstRequest => None,
        };
        let last = entries.last().ok_or(PlanError::Empty)?.start;
        for (entry, this) in entries.iter().enumerate() {
            if this.start < Duration::ZERO || this.duration <= Work::ZERO {
                return Err(PlanError::Entry { entry });
            }
            if entry > 0 && this.start < entries[entry - 1].start {
                return Err(PlanError::Unordered { entry, start: this.start });
            }
        }
        match repeat {
            Repeat::Every(period) if period <= last => Err(PlanError::Repeat { last, period }),
            _ => Ok(ExplicitPlan {
                entries,
                repeat,
                gaps,
                origin,
                next: 0,
                progress: None,
                relinquished: None,
                forfeited: 0,
            }),
        }
    }

    /// A scheduler by this plan.
    pub fn scheduler(self) -> Uniprocessor<Self> {
        Uniprocessor::new(self)
    }

    /// Entries whose process did not want the processor.
    pub fn forfeited(&self) -> u64 {
        self.forfeited
    }

    fn due(&self) -> Option<Instant> {
        self.entries.get(self.next).zip(self.origin).map(|(entry, origin)| origin + entry.start)
    }

    fn entry_over(&mut self) {
        self.progress = None;
        self.next += 1;
        if let Repeat::Every(period) = self.repeat
            && self.next == self.entries.len()
        {
            self.next = 0;
            self.origin = self.origin.map(|origin| origin + period);
        }
    }

    /// The place of the process whose entry is in progress.
    fn planned(&self, clients: &Clients<Planned>) -> Option<usize> {
        self.progress?;
        let process = self.entries[self.next].process;
        clients.accounts().position(|account| account.process == process)
    }
}

impl Rule for ExplicitPlan {
    type Account = Planned;

    fn kind(&self) -> &'static str {
        SchedulerKind::EXPLICIT_PLAN.name()
    }

    fn admit(
        &mut self,
        cx: &Context<'_>,
        clients: &Clients<Planned>,
        given: Parameters,
    ) -> Result<Planned, Refusal> {
        let Parameters::Process(process) = given else {
            return Err(Refusal::unacceptable(self.kind(), "the number of a process in the plan", given));
        };
        let is_planned = self.entries.iter().any(|entry| entry.process == process);
        if is_planned && clients.accounts().any(|other| other.process == process) {
            return Err(Refusal::Taken { scheduler: self.kind(), given });
        }
        Ok(Planned { process, since: cx.now() })
    }

    fn woke(&mut self, cx: &Context<'_>, clients: &mut Clients<Planned>, place: usize) {
        clients.account_mut(place).since = cx.now();
        self.origin.get_or_insert(cx.now());
        let process = clients.account(place).process;
        let is_its =
            |entry: &Relinquished| entry.at == cx.now() && self.entries[entry.next].process == process;
        if let Some(entry) = self.relinquished.take_if(|entry| is_its(entry)) {
            // What has begun meanwhile has not run.
            (self.next, self.origin, self.progress) = (entry.next, entry.origin, Some(entry.progress));
        }
    }

    fn slept(&mut self, cx: &Context<'_>, clients: &mut Clients<Planned>, place: usize) {
        if let Some(progress) = self.progress.filter(|progress| progress.has_run)
            && self.planned(clients) == Some(place)
        {
            let (at, next, origin) = (cx.now(), self.next, self.origin);
            self.relinquished = Some(Relinquished { at, next, origin, progress });
            self.entry_over();
        }
    }

    fn ran(&mut self, _cx: &Context<'_>, clients: &mut Clients<Planned>, place: usize, used: Work) {
        if self.planned(clients) == Some(place)
            && let Some(progress) = &mut self.progress
        {
            progress.left -= used;
            progress.has_run = true;
            if progress.left <= Work::ZERO {
                self.entry_over();
            }
        }
    }

    fn refresh(&mut self, cx: &Context<'_>, clients: &mut Clients<Planned>) {
        // Entries that are due begin; those that nobody has come for end.
        while self.due().is_some_and(|due| due <= cx.now()) {
            let left = self.entries[self.next].duration;
            let begun = Progress { left, forfeit: cx.now() + left.at_full_speed(), has_run: false };
            let progress = *self.progress.get_or_insert(begun);
            let comes = self.planned(clients).is_some_and(|place| clients.wants(cx, place));
            if comes || progress.has_run || cx.now() < progress.forfeit {
                return;
            }
            self.forfeited += 1;
            self.entry_over();
        }
    }

    fn elect(
        &mut self,
        cx: &Context<'_>,
        clients: &mut Clients<Planned>,
        _incumbent: Option<usize>,
    ) -> Option<usize> {
        let planned = self.planned(clients).filter(|place| clients.wants(cx, *place));
        match (planned, self.gaps) {
            (Some(place), _) => Some(place),
            (None, Gaps::Released) => None,
            (None, Gaps::EventDriven) => {
                clients.wanting(cx).min_by_key(|(_, account)| account.since).map(|(place, _)| place)
            }
        }
    }

    fn wants(&self, cx: &Context<'_>, clients: &Clients<Planned>) -> bool {
        match self.gaps {
            Gaps::Released => self.planned(clients).is_some_and(|place| clients.wants(cx, place)),
            Gaps::EventDriven => clients.wanting(cx).next().is_some(),
        }
    }

    fn next(&self, cx: &Context<'_>, clients: &Clients<Planned>, stint: Option<Stint>) -> Option<Instant> {
        let Some(progress) = self.progress else { return self.due() };
        let runs = stint.is_some_and(|stint| self.planned(clients) == Some(stint.place));
        if runs {
            return Some(cx.now() + progress.left.at_full_speed());
        }
        (!progress.has_run).then_some(progress.forfeit).filter(|forfeit| *forfeit > cx.now())
    }
}

/// What an explicit plan is made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// In order of time.
    pub entries: Vec<PlanEntry>,
    /// What comes after the last.
    pub repeat: Repeat,
    /// Who runs in between.
    pub gaps: Gaps,
    /// When the plan begins.
    pub beginning: Beginning,
}

impl super::Config for Config {
    fn name(&self) -> &'static str {
        SchedulerKind::EXPLICIT_PLAN.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        let plan = ExplicitPlan::new(self.entries.clone(), self.repeat, self.gaps, self.beginning)?;
        boxed(plan.scheduler(), announcing)
    }
}

/// A configuration whose processes have names: with other names it is another one, even if their numbers are the same.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    config: Config,
    plan: Plan,
}

impl super::Config for Named {
    fn name(&self) -> &'static str {
        self.config.name()
    }

    fn build(&self, announcing: Announcing) -> Result<Box<dyn Scheduler>, KindError> {
        self.config.build(announcing)
    }
}

pub(super) static ROW: Row = Row::new(SchedulerKind::EXPLICIT_PLAN, |facts| {
    let plan = facts.plan(Parameter::PLAN.name);
    let entry = |entry: &talea_model::PlanEntry| PlanEntry {
        start: entry.start,
        process: number(plan, &entry.child),
        duration: entry.duration.as_work(),
    };
    let repeat = facts.optional_time(Parameter::CYCLE.name).map_or(Repeat::Once, Repeat::Every);
    let gaps = match facts.word("gaps") {
        "event-driven" => Gaps::EventDriven,
        _ => Gaps::Released,
    };
    let entries = plan.entries().iter().map(entry).collect();
    let config = Config { entries, repeat, gaps, beginning: Beginning::FirstRequest };
    Ok(Named { config, plan: plan.clone() }.into())
})
.registering(|facts, child, _| Ok(Parameters::Process(number(facts.plan(Parameter::PLAN.name), child))));

/// The number of a child of this name: that of the first entry for it; one that no entry has if there is none.
fn number(plan: &Plan, child: &str) -> u32 {
    let first = plan.entries().iter().position(|entry| entry.child == child);
    first.map_or(u32::MAX, |first| u32::try_from(first).expect("plans have a million entries at most"))
}
