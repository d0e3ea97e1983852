//! What a run is asked for.

use crate::lowering::Band;
use talea_insight::Samples;
use talea_linux::stop::StopFlag;
use talea_linux::timer::Tail;
use talea_model::System;
use talea_operation::{KeptOutputs, PostingRoom};
use talea_record::stream::Selection;
use talea_time::{Duration, Instant};
use thiserror::Error;

/// How much the run insists on real-time scheduling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RtMode {
    /// Real-time priorities, locked memory and every attribute as asked for, or no run at all.
    Strict,
    /// As much of it as the process is permitted; what is missing is listed as a warning.
    #[default]
    Warn,
    /// Ordinary threads; nothing is asked for.
    Off,
}

impl RtMode {
    /// Every mode, in the order of the documentation.
    pub const ALL: [RtMode; 3] = [RtMode::Strict, RtMode::Warn, RtMode::Off];

    /// The text that stands for this mode.
    pub const fn keyword(self) -> &'static str {
        match self {
            RtMode::Strict => "strict",
            RtMode::Warn => "warn",
            RtMode::Off => "off",
        }
    }
}

impl std::fmt::Display for RtMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.keyword())
    }
}

/// A text that names no [`RtMode`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{0}\" is none of strict, warn, off")]
pub struct UnknownRtMode(String);

impl std::str::FromStr for RtMode {
    type Err = UnknownRtMode;
    fn from_str(text: &str) -> Result<Self, UnknownRtMode> {
        RtMode::ALL.into_iter().find(|mode| mode.keyword() == text).ok_or_else(|| UnknownRtMode(text.into()))
    }
}

/// Whether hierarchies of schedulers become plain settings of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Lower {
    /// Where the kernel does the same, see [`crate::lowering::hierarchy`]. Such a node cannot be controlled while it runs,
    /// and what it promises is not judged.
    #[default]
    WherePossible,
    /// The infrastructure schedules all of them.
    Never,
}

/// By what the promises of hierarchies of schedulers are judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JudgeBy {
    /// By what was received of what was granted, where the kernel's switches may be seen.
    #[default]
    Received,
    /// By what was granted alone: switches are not looked at.
    Grants,
}

/// What the delay, jitter and loss of a system's links mean to a run of several processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Messages go as fast as the machine lets them, and those that take longer than their link promises are counted.
    #[default]
    Judge,
    /// Messages are delayed and lost as in a simulation with the system's seed: the same ones, by as much. Those that take longer by more
    /// than [`RunOptions::tolerance`] are counted.
    Impose,
}

/// What becomes of a run of several processes when the process of a node ends early.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LostNodes {
    /// The others are ended, too.
    #[default]
    EndRun,
    /// The others go on without it: they learn that it has left, and what they would send to it is refused and counted.
    GoOn,
}

/// The instant from which arrivals count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// This long after [`Prepared::run`](crate::Prepared::run) is called.
    After(Duration),
    /// At this instant of CLOCK_MONOTONIC, the same for all processes of a run.
    At(Instant),
}

/// Stops a run from another thread.
#[derive(Clone, Debug)]
pub struct StopHandle(StopFlag);

impl Default for StopHandle {
    fn default() -> Self {
        Self::new()
    }
}

impl StopHandle {
    /// A handle for [`RunOptions::stop`]; [`Prepared::stop_handle`](crate::Prepared::stop_handle) is that of a prepared run.
    pub fn new() -> Self {
        StopHandle(StopFlag::new())
    }

    /// That of a run which this flag ends.
    pub(crate) fn of(flag: StopFlag) -> Self {
        StopHandle(flag)
    }

    pub(crate) fn flag(&self) -> StopFlag {
        self.0.clone()
    }

    /// Whether the run was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }

    /// Ends the run: operations under way are told, and [`Prepared::run`](crate::Prepared::run) returns with the results so far
    /// when they have returned. May be called more than once, and from a signal handler.
    pub fn stop(&self) {
        self.0.stop();
    }
}

/// Whether the threads of hierarchies leave processors unused for moments, before the kernel takes them for longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slicing {
    /// They do where they may take more than the kernel leaves real-time threads, and everybody receives what they need of what is left then.
    WherePromised,
    /// They do where the kernel keeps a part from real-time threads.
    WhereLimited,
    /// They do not: what the kernel takes it takes at a time.
    Never,
}

/// Options of a run. `RunOptions::default()` is a good start; change what differs.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// How long the run lasts from its start; `None`: until it is stopped.
    pub duration: Option<Duration>,
    /// How much it insists on real-time scheduling.
    pub rt: RtMode,
    /// Whether the kernel schedules hierarchies of schedulers where it can.
    pub lower: Lower,
    /// By what promises are judged where it does not.
    pub judge: JudgeBy,
    /// The spin tail of the release threads.
    pub tail: Tail,
    /// The SCHED_FIFO priorities it may use.
    pub band: Band,
    /// The instant from which arrivals count.
    pub start: Start,
    /// Instances of one operation that may be in flight, rounded up to a power of two; further ones are
    /// skipped as [`talea_record::SkipReason::Full`]. `None`: 1024, or all that the run has; in a large system less, so that
    /// all of them stay within 131 072 jobs, the windows of all operations spanning about the same time. The own threads
    /// of a lowered hierarchy are operations, too.
    pub window: Option<usize>,
    /// Threads of a preemptive lane, at least one: as many jobs can have been granted the processor and
    /// not be done. A job that would be one more waits for one of them to end.
    pub slots: usize,
    /// Stack of each thread that runs users' operations, in bytes. Other threads have no more than that, nor than 128 KiB.
    pub stack: usize,
    /// Records each thread can write before the collector has read them, rounded up to a power of two. `None`: 16 384, or
    /// less (4 096 at least) where no users' operations run and that is as much as the busiest thread writes in two seconds of what a report is
    /// made from, or of everything where the trace is kept.
    pub ring_records: Option<usize>,
    /// Length of a sample, over which effectiveness is judged (see [`talea_insight::Samples`]).
    pub sample: Duration,
    /// By how much a scheduler of a hierarchy may miss what it promised before that counts as broken. Real machines switch
    /// late.
    pub tolerance: Duration,
    /// Whether hierarchies leave the kernel its part.
    pub slicing: Slicing,
    /// Whether the report lists every sample.
    pub samples: Samples,
    /// Room for work that the description of the system does not have, see [`Dispatcher`](crate::Dispatcher).
    pub posting: PostingRoom,
    /// Whether the lanes have no threads of their own, and the caller steps them, see [`Prepared::lanes`](crate::Prepared::lanes).
    pub stepped: bool,
    /// Where the trace of the run is kept, if it is. Then everything is recorded that threads of the run can tell, what
    /// lies between the jobs as well; otherwise only what the report needs.
    pub keep_log: Option<std::path::PathBuf>,
    /// What of values, of events that jobs take and push, and of what they read from outside is in the trace, if one is kept, so that the run can be replayed.
    pub keep_values: KeptOutputs,
    /// What the links of the system mean to a run of several processes.
    pub links: Links,
    /// What becomes of a run of several processes when one of them ends early.
    pub lost_nodes: LostNodes,
    /// Ends the run, also one that is still being prepared. Copies of these options share it.
    pub stop: StopHandle,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            duration: None,
            rt: RtMode::Warn,
            lower: Lower::WherePossible,
            judge: JudgeBy::Received,
            tail: Tail::Adaptive { budget: 0.02 },
            band: Band::default(),
            start: Start::After(Duration::from_millis(50)),
            window: None,
            slots: 16,
            stack: 512 * 1024,
            ring_records: None,
            sample: Duration::from_secs(1),
            tolerance: Duration::from_millis(1),
            slicing: Slicing::WherePromised,
            samples: Samples::Totals,
            posting: PostingRoom::default(),
            stepped: false,
            keep_log: None,
            keep_values: KeptOutputs::None,
            links: Links::Judge,
            lost_nodes: LostNodes::EndRun,
            stop: StopHandle::new(),
        }
    }
}

impl RunOptions {
    /// What the collector wants of the threads' events: of values that are handed on, where chains are measured by them, and of events of channels.
    pub(crate) fn collected(&self, system: &System) -> Selection {
        if self.keep_log.is_some() {
            return Selection::all();
        }
        let mut families = "run,job,hierarchy".to_owned();
        if !system.chains.is_empty() {
            families.push_str(",port.publish,port.take,dispatch.receive");
        }
        if !system.channels.is_empty() {
            families.push_str(",event");
        }
        families.parse().expect("a selection")
    }

    /// How samples are taken.
    pub(crate) fn samples(&self) -> (Duration, Samples) {
        (self.sample, self.samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_back_from_their_keywords() {
        for mode in RtMode::ALL {
            assert_eq!(mode.keyword().parse(), Ok(mode));
        }
        assert_eq!("on".parse::<RtMode>(), Err(UnknownRtMode("on".into())));
    }
}
