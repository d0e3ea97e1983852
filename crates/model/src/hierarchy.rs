//! The vocabulary of scheduler hierarchies (Regehr and Stankovic 2001): plain values, like the rest of a description.
//!
//! A node is scheduled either by lanes, into which the strategy sorts its operations, or by a hierarchy: schedulers and
//! threads, each under one scheduler or, for those that take several virtual processors, under several. Tasks have a
//! place in a hierarchy too: a scheduler of kind [`lanes`](SchedulerKind::LANES) is all lanes of the tasks that name it, with the
//! virtual processor that it is given in the place of a whole one.

use crate::execution::Execution;
use crate::keyword::keywords;
use crate::plan::{Plan, PlanError};
use crate::suggest::known_words;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::remedy::LEAST_QUANTUM_NS;
use talea_guarantee::scheduler::{Parameter, Preset, Values};
use talea_time::Duration;

pub use talea_guarantee::scheduler::{Asks, SchedulerKind};

/// Shorter quanta are described, checked and simulated, but not run: to hand a processor from one real thread to another takes some
/// 5 µs, a tenth of this.
pub const LEAST_RUN_QUANTUM: Duration = Duration::from_nanos(LEAST_QUANTUM_NS as i64);

/// A scheduler of a node's hierarchy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scheduler {
    /// Unique among schedulers and threads.
    pub name: String,
    /// Index into [`crate::Description::nodes`], the same for all of a hierarchy.
    pub node: usize,
    /// What it is.
    pub kind: SchedulerKind,
    /// How long it lets a child run before it chooses anew, for the kinds that [have one](SchedulerKind::has_quantum):
    /// above zero. What exactly it means, the policy says.
    pub quantum: Option<Duration>,
    /// Of a join, whose guarantee its child takes, as an index into the schedulers; left open, whichever is enough.
    pub takes: Option<usize>,
    /// What else its kind lets be said of it.
    pub settings: Settings,
    /// Who schedules it; nobody at the root, which is given the node's processors.
    pub under: Vec<Under>,
}

/// The values of a scheduler's parameters beside its quantum and the parent whose guarantee it takes: one for each that its kind
/// declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings(BTreeMap<&'static str, Setting>);

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Setting {
    /// A time.
    Time(Duration),
    /// A whole number.
    Integer(i64),
    /// A word.
    Word(&'static str),
    /// When which child runs.
    Plan(Plan),
}

impl Settings {
    /// What a scheduler of this kind is where nothing is said.
    pub fn of(kind: SchedulerKind) -> Self {
        let preset = |parameter: &Parameter| {
            let setting = match parameter.preset {
                Preset::Nanos(nanos) => Setting::Time(Duration::from_nanos(nanos)),
                Preset::Integer(number) => Setting::Integer(number),
                Preset::Word(word) => Setting::Word(word),
                Preset::Open(_) | Preset::Required => return None,
            };
            Some((parameter.name, setting))
        };
        Settings(own_parameters(kind).filter_map(preset).collect())
    }

    /// Sets the parameter of this name, whether the kind has it or not.
    pub fn set(&mut self, name: &'static str, setting: Setting) {
        self.0.insert(name, setting);
    }

    /// The same with these values.
    pub fn with(mut self, said: &[(&'static str, Setting)]) -> Self {
        said.iter().for_each(|(name, setting)| self.set(name, setting.clone()));
        self
    }

    /// Every value with the name of its parameter, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Setting)> {
        self.0.iter().map(|(name, setting)| (*name, setting))
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.0.get(name)
    }
}

impl Setting {
    /// The value of a parameter as it is written beside a quantum, in a request say: `20ms`, `7`, `firm`, or a plan as a table.
    ///
    /// # Errors
    /// What is wrong, and what to write.
    pub fn read(parameter: &Parameter, text: &str) -> Result<Setting, String> {
        let wrong = |why: String| format!("{} cannot be \"{text}\": {why}", parameter.name);
        match parameter.values {
            Values::Time => text.parse().map(Setting::Time).map_err(|error| wrong(format!("{error}"))),
            Values::Integer { min, max } => {
                let number = text.parse().ok().filter(|number| (min..=max).contains(number));
                number
                    .map(Setting::Integer)
                    .ok_or_else(|| wrong(format!("write a whole number from {min} to {max}")))
            }
            Values::Word(words) => words
                .iter()
                .find(|word| **word == text)
                .map(|word| Setting::Word(word))
                .ok_or_else(|| wrong(known_words(text, words.iter().copied()))),
            Values::Plan => {
                text.parse().map(Setting::Plan).map_err(|error: PlanError| match error.faults.len() {
                    1 => format!("{}: {error}", parameter.name),
                    more => {
                        let lines = error.to_string().replace('\n', "\n  ");
                        format!("{} has {more} mistakes:\n  {lines}", parameter.name)
                    }
                })
            }
            Values::Parent => Err(format!("{} cannot be changed", parameter.name)),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Setting::Time(time) => write!(f, "{time}"),
            Setting::Integer(number) => write!(f, "{number}"),
            Setting::Word(word) => f.write_str(word),
            Setting::Plan(plan) => write!(f, "a plan of {} entries", plan.entries().len()),
        }
    }
}

/// The parameters of a kind that have no field of their own in [`Scheduler`].
pub(crate) fn own_parameters(kind: SchedulerKind) -> impl Iterator<Item = &'static Parameter> {
    let fields = [Parameter::QUANTUM.name, Parameter::TAKES.name];
    kind.declaration().parameters.iter().filter(move |parameter| !fields.contains(&parameter.name))
}

/// A thread of a node's hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Unique among schedulers and threads.
    pub name: String,
    /// Index into [`crate::Description::nodes`].
    pub node: usize,
    /// What it does.
    pub work: ThreadWork,
    /// What it has to receive, if it is not content with whatever it is given.
    pub requires: Option<Guarantee>,
    /// Who schedules it: one scheduler.
    pub under: Vec<Under>,
}

/// What a thread does.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadWork {
    /// It always wants the processor.
    CpuBound,
    /// It wakes up every `period`, from the common start on, and then wants the processor for a burst, to be done when the
    /// next period begins.
    Bursts {
        /// How much each takes.
        burst: Execution,
        /// Above zero.
        period: Duration,
    },
    /// A command with its arguments, started for the run.
    Command(Vec<String>),
    /// A process that is there already, with all of its threads.
    Process {
        /// Its number.
        number: u32,
        /// Which of the processes that it has started are scheduled with it.
        children: ChildProcesses,
    },
    /// One thread of a process that is there already, by its number.
    Thread(u32),
}

impl ThreadWork {
    /// Whether it is what other programs do, of which nothing is known.
    pub fn is_program(&self) -> bool {
        match self {
            ThreadWork::CpuBound | ThreadWork::Bursts { .. } => false,
            ThreadWork::Command(_) | ThreadWork::Process { .. } | ThreadWork::Thread(_) => true,
        }
    }
}

keywords! {
    /// Which of the processes that a process has started, and those of theirs, are scheduled with it.
    #[derive(Default)]
    ChildProcesses {
        /// All of them.
        #[default]
        All = "all",
        /// Those that it starts from then on.
        Later = "later",
    }
}

/// One virtual processor: who gives it, and what is asked of him.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Under {
    /// Index into [`crate::Description::schedulers`].
    pub scheduler: usize,
    /// What is asked for.
    pub request: Request,
}

/// What a child asks of its scheduler.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Request {
    /// Nothing in particular.
    #[default]
    Nothing,
    /// A priority; larger is higher. Under time sharing the level at which it begins, 0 to 15.
    Priority(i32),
    /// A relative share.
    Share {
        /// Beside the shares of its siblings.
        weight: NonZeroU32,
        /// By how much of virtual time it is served earlier than its share says; zero unless latency matters more than
        /// bounds.
        warp: Duration,
    },
    /// A guarantee: a reservation, or a slower processor.
    Guarantee(Guarantee),
}

impl Request {
    /// A share without warp.
    pub const fn share(weight: NonZeroU32) -> Self {
        Request::Share { weight, warp: Duration::ZERO }
    }

    /// Whether it is of this form.
    pub fn fits(&self, asks: Asks) -> bool {
        let is_plain = |warp: &Duration| *warp == Duration::ZERO;
        match (asks, self) {
            (Asks::Nothing | Asks::Level | Asks::AtMost(_) | Asks::GuaranteeOrJobs(_), Request::Nothing)
            | (Asks::Priority, Request::Priority(_))
            | (Asks::WarpedShare, Request::Share { .. }) => true,
            (Asks::Level, Request::Priority(level)) => (0..=15).contains(level),
            (Asks::Share, Request::Share { warp, .. }) => is_plain(warp),
            (Asks::Guarantee(kinds) | Asks::GuaranteeOrJobs(kinds), Request::Guarantee(guarantee)) => {
                kinds.contains(&guarantee.kind())
            }
            (Asks::AtMost(kind), Request::Guarantee(guarantee)) => guarantee.kind() == kind,
            _ => false,
        }
    }

    /// The key that says it in a system file; none for nothing.
    pub const fn key(&self) -> Option<&'static str> {
        match self {
            Request::Nothing => None,
            Request::Priority(_) => Some("priority"),
            Request::Share { .. } => Some("share"),
            Request::Guarantee(_) => Some("guarantee"),
        }
    }
}

/// `priority 3`, as messages have it.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Request::Nothing => f.write_str("nothing"),
            Request::Priority(priority) => write!(f, "priority {priority}"),
            Request::Share { weight, warp: Duration::ZERO } => write!(f, "share {weight}"),
            Request::Share { weight, warp } => write!(f, "share {weight}, warp {warp}"),
            Request::Guarantee(guarantee) => write!(f, "{guarantee}"),
        }
    }
}
