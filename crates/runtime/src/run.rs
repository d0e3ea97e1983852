//! The run as a whole: start, wait, end, result.

use crate::alarms::Alarms;
use crate::collector::{Collected, Collector, OnFinished};
use crate::control::Control;
use crate::dispatcher::Dispatcher;
use crate::error::PrepareError;
use crate::hierarchy_node::HierarchyNode;
use crate::keeping::ValueWriting;
use crate::lane::SteppedLanesSetUp;
use crate::options::{RunOptions, Start, StopHandle};
use crate::outcome::{
    BoundOverrun, EarlyArrivals, HierarchyOutcome, Mishaps, NodeSpin, Outcome, Stopped, ThreadAttributes,
};
use crate::store::Store;
use crate::threads::{EndedThreads, RunThreads};
use crate::triggering::{ExternalTrigger, TriggerError, open_descriptor, open_trigger};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use talea_insight::Report;
use talea_insight::accounting::HierarchyReport;
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::Raised;
use talea_linux::stop::Slept;
use talea_time::{Clock, Duration, Instant};

/// The threads that take part.
pub(crate) struct Participants {
    /// The threads of all nodes that have lanes, but for lanes in hierarchies.
    pub threads: RunThreads,
    /// The nodes that have hierarchies.
    pub hierarchies: Vec<HierarchyNode>,
    /// Where others are told what the channels of nodes without hierarchies count.
    pub controls: Vec<Control>,
}

/// A run with all its threads waiting at the start. Dropping it ends them.
pub struct Prepared {
    participants: Participants,
    dispatcher: Dispatcher,
    stepped: Option<SteppedLanesSetUp>,
    keeping: Option<ValueWriting>,
    store: Store,
    options: RunOptions,
    realtime: bool,
    missing: Vec<String>,
    on_finished: Option<OnFinished>,
    /// What is done in place of running it.
    replay: Option<Box<dyn FnOnce() -> Outcome + Send>>,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("realtime", &self.realtime).finish_non_exhaustive()
    }
}

/// How the threads of a process ended.
pub(crate) struct Ended {
    pub stopped: Stopped,
    pub threads: Vec<ThreadAttributes>,
    pub spin: Vec<NodeSpin>,
    pub mishaps: Mishaps,
    pub hierarchies: Vec<HierarchyOutcome>,
}

impl Participants {
    fn attributes(&self) -> Vec<ThreadAttributes> {
        let mut all = self.threads.attributes();
        all.extend(self.hierarchies.iter().flat_map(HierarchyNode::attributes));
        all
    }

    /// Waits for the end, or until all of them have ended before.
    fn wait(&self, end: Instant) -> Stopped {
        let stop = &self.threads.shared.stop;
        let are_over = || !self.hierarchies.is_empty() && self.hierarchies.iter().all(HierarchyNode::is_over);
        loop {
            let now = MonotonicClock.now();
            // A hierarchy may end by itself: its guardian was killed, for one.
            let look = if self.hierarchies.is_empty() { end } else { end.min(now.saturating_add(LOOK)) };
            match stop.sleep_until(look) {
                Slept::Stopped => return Stopped::Interrupted,
                Slept::Due if look == end => return Stopped::Completed,
                // They also end at the end, which may have come before this thread looks, however late it wakes up.
                Slept::Due if are_over() && MonotonicClock.now() < end => return Stopped::Failed,
                Slept::Due => {}
            }
        }
    }
}

/// How often a run looks whether its hierarchies have ended by themselves.
const LOOK: Duration = Duration::from_millis(50);

impl Prepared {
    pub(crate) fn new(
        participants: Participants,
        (dispatcher, stepped, keeping): (Dispatcher, Option<SteppedLanesSetUp>, ValueWriting),
        store: Store,
        options: RunOptions,
        realtime: bool,
        missing: Vec<String>,
    ) -> Self {
        let keeping = Some(keeping);
        Prepared {
            participants,
            dispatcher,
            stepped,
            keeping,
            store,
            options,
            realtime,
            missing,
            on_finished: None,
            replay: None,
        }
    }

    /// In place of being run, it is replayed so.
    pub(crate) fn replay_with(&mut self, replay: Box<dyn FnOnce() -> Outcome + Send>) {
        self.replay = Some(replay);
    }

    /// Whether the program has been asked for a replay, which [`run`](Self::run) does and ends the process.
    pub fn is_replay(&self) -> bool {
        self.replay.is_some()
    }

    /// Hands every finished job to `callback` during the run, some tens of milliseconds after its end, on
    /// an ordinary thread.
    #[must_use]
    pub fn on_finished(mut self, callback: OnFinished) -> Self {
        self.on_finished = Some(callback);
        self
    }

    /// Stops the run; for a signal handler or another thread.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle::of(self.participants.threads.shared.stop.clone())
    }

    /// The way in for work that the description of the system does not have; there is room for none unless
    /// [`RunOptions::posting`] says so.
    pub fn dispatcher(&self) -> Dispatcher {
        self.dispatcher.clone()
    }

    /// The means by which the program releases the task of this name, which is triggered from outside. There is one for each task; without
    /// one, and without a [descriptor](Self::descriptor), arrivals are drawn as the description says.
    ///
    /// # Errors
    /// [`TriggerError`].
    pub fn trigger(&self, task: &str) -> Result<ExternalTrigger, TriggerError> {
        open_trigger(&self.participants.threads.shared, self.dispatcher.system(), task)
    }

    /// Releases the task of this name, which is triggered from outside, whenever the descriptor can be read. It is not looked at again before
    /// the job that this released has ended; the job is to read what is there. Once the other side has closed it and all is read, the task
    /// is released a last time, for the end, and the run's [`Mishaps::ended_descriptors`] name it.
    ///
    /// # Errors
    /// [`TriggerError`]; the descriptor is closed then.
    pub fn descriptor(&self, task: &str, descriptor: impl Into<OwnedFd>) -> Result<(), TriggerError> {
        let shared = &self.participants.threads.shared;
        open_descriptor(shared, self.dispatcher.system(), task, descriptor.into())
    }

    /// The lanes that the caller steps, once: all that are not below other schedulers if [`RunOptions::stepped`] is set, else none. One
    /// thread steps all of them.
    pub fn lanes(&mut self) -> Option<SteppedLanesSetUp> {
        self.stepped.take()
    }

    /// The start epoch of this process among those of its node, if there are other processes.
    pub(crate) fn epoch(&self) -> Option<u64> {
        self.participants.threads.shared.link.as_ref().map(|link| link.transport.own().epoch)
    }

    /// Whether every lane has a real-time priority.
    pub fn is_realtime(&self) -> bool {
        self.realtime
    }

    /// What was asked for and not granted, each with its remedy.
    pub fn missing(&self) -> &[String] {
        &self.missing
    }

    /// The threads, with their attributes as the kernel has them.
    pub fn threads(&self) -> Vec<ThreadAttributes> {
        self.participants.attributes()
    }

    /// Runs until the planned duration is over or the run is stopped. Blocks; a running operation that does
    /// not return when it is told delays the end.
    ///
    /// # Errors
    /// If the log cannot be created. Nothing has run then.
    ///
    /// # Panics
    /// If a thread of the runtime panicked; panics of operations do not come here.
    pub fn run(mut self) -> Result<Outcome, PrepareError> {
        if let Some(replay) = self.replay.take() {
            return Ok(replay());
        }
        // From here on the start comes nearer.
        let raised = self.raise();
        let start = match self.options.start {
            Start::After(delay) => MonotonicClock.now().saturating_add(delay),
            Start::At(instant) => instant,
        };
        let mut metadata = self.store.metadata.clone();
        metadata.start = start;
        let log = self.options.keep_log.clone();
        let consumer = self.store.consumer.take().expect("nodes of one process are collected there");
        let values = match self.keeping.take() {
            Some(ValueWriting::Collector(values)) => Some(values),
            other => {
                self.keeping = other;
                None
            }
        };
        let collector = Collector::new(
            metadata,
            (vec![consumer], values),
            self.options.samples(),
            log.as_deref(),
            self.on_finished.take(),
        )?;
        let collecting = collector.start(log).map_err(PrepareError::Collector)?;
        let mut ended = self.run_threads(start, raised);
        let collected = collecting.finish();
        ended.mishaps.values_unkept += collected.values_unkept;
        Ok(outcome(ended, collected, self.realtime, self.missing))
    }

    /// Tasks whose descriptors have ended.
    fn ended_descriptors(&self) -> Vec<String> {
        let tasks = self.dispatcher.system().tasks.iter();
        let with_ends = tasks.zip(&self.participants.threads.shared.triggering);
        with_ends
            .filter(|(_, triggering)| triggering.has_ended())
            .map(|(task, _)| task.name.clone())
            .collect()
    }

    /// What came earlier than declared, in the order of the tasks.
    fn early_arrivals(&self) -> Vec<EarlyArrivals> {
        let tally = &self.participants.threads.shared.tally;
        let mut early =
            std::mem::take(&mut *tally.early_arrivals.lock().unwrap_or_else(PoisonError::into_inner));
        early.sort_unstable_by_key(|early| early.operation.index());
        early.into_iter().map(|early| EarlyArrivals::of(self.dispatcher.system(), early)).collect()
    }

    /// The calling thread above all lanes, so that nobody whose run has begun keeps it from beginning the rest.
    pub(crate) fn raise(&self) -> Option<Raised> {
        self.realtime.then(|| Raised::to(self.options.band.top)).flatten()
    }

    /// Runs the threads from `start` to their end. Who calls is raised until all have begun.
    pub(crate) fn run_threads(&mut self, start: Instant, raised: Option<Raised>) -> Ended {
        self.store.rings().set_run_start(start);
        let end = self.options.duration.map_or(Instant::MAX, |duration| start.saturating_add(duration));
        self.participants.hierarchies.iter_mut().for_each(|hierarchy| hierarchy.begin(start, end));
        let shared = &self.participants.threads.shared;
        let alarms = shared.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        alarms.iter().for_each(Alarms::forget_releases);
        let channels = shared.triggering.iter().filter_map(|triggering| triggering.channel.get());
        channels.for_each(|channel| channel.begin(start));
        alarms.iter().for_each(|alarms| alarms.begin(start));
        drop(alarms);
        shared.gate.open(start);
        let late_begin_ns = (MonotonicClock.now() - start).as_nanos().max(0);
        drop(raised);
        let stopped = self.participants.wait(end);
        // Before the hierarchies end, which wait for the jobs of their lanes.
        self.participants.threads.shared.shut_down();
        let threads = self.participants.attributes();
        // Those with schedulers go on until they are ended, so a job that does not return must not keep them.
        let nodes = self.participants.hierarchies.drain(..).enumerate();
        let (lowered, managed): (Vec<_>, Vec<_>) = nodes.partition(|(_, node)| node.is_lowered());
        let mut hierarchies: BTreeMap<_, _> =
            managed.into_iter().map(|(place, node)| (place, node.end(&[]))).collect();
        let EndedThreads { spin, own } = self.participants.threads.end();
        // Who answers there is an ordinary thread, which may not have had a processor while the others went on.
        self.participants.controls.clear();
        hierarchies.extend(lowered.into_iter().map(|(place, node)| (place, node.end(&own))));
        // All that publish have ended.
        let values_unkept = match self.keeping.take() {
            Some(ValueWriting::OwnThread(thread)) => thread.finish(),
            Some(ValueWriting::Collector(_)) | None => 0,
        };
        let tally = &self.participants.threads.shared.tally;
        let link = self.participants.threads.shared.link.as_ref();
        if let Some(link) = link.filter(|_| stopped != Stopped::Failed) {
            // What goes on without this node would have to know.
            link.transport.leave_silently();
        }
        let (slow_messages, slowest) = link.map_or((0, Duration::ZERO), |link| link.promises.late());
        let counts = link.map(|link| link.transport.counts()).unwrap_or_default();
        let worst_overrun = tally.worst_overrun.lock().unwrap_or_else(PoisonError::into_inner).take();
        let worst_overrun = worst_overrun.map(|worst| BoundOverrun {
            operation: self.participants.threads.shared.layout.operation(worst.operation).name.to_string(),
            instance: worst.instance,
            late_ns: worst.by.as_nanos(),
        });
        let mishaps = Mishaps {
            values_unsent: tally.values_unsent.load(Ordering::Relaxed),
            values_unread: tally.values_unread.load(Ordering::Relaxed),
            values_unkept,
            late_values: tally.late_values.load(Ordering::Relaxed),
            triggers_refused: tally.triggers_refused.load(Ordering::Relaxed),
            early_arrivals: self.early_arrivals(),
            ended_descriptors: self.ended_descriptors(),
            lost_values: self.participants.threads.shared.lost_values(),
            lost_on_links: counts.lost,
            unheld: counts.unheld,
            overflows: tally.overflows.load(Ordering::Relaxed),
            late_signals: tally.late.load(Ordering::Relaxed),
            bound_overruns: tally.bound_overruns.load(Ordering::Relaxed),
            worst_overrun,
            slow_messages,
            slowest_excess_ns: slowest.as_nanos(),
            late_begin_ns,
            unsent: tally.unsent.load(Ordering::Relaxed),
            to_left: tally.to_left.load(Ordering::Relaxed),
            slot_shortages: tally.slot_shortages.load(Ordering::Relaxed),
            panics: std::mem::take(&mut *tally.panics.lock().unwrap_or_else(PoisonError::into_inner)),
            lost_nodes: Vec::new(),
        };
        Ended { stopped, threads, spin, mishaps, hierarchies: hierarchies.into_values().collect() }
    }
}

/// Puts the parts of a result together.
pub(crate) fn outcome(ended: Ended, collected: Collected, realtime: bool, missing: Vec<String>) -> Outcome {
    let edges = |hierarchy: &HierarchyOutcome| HierarchyReport {
        node: hierarchy.node.clone(),
        edges: hierarchy.edges.clone(),
        ended_early: hierarchy.ended_early.clone(),
    };
    let hierarchies = ended.hierarchies.iter().map(edges).collect();
    Outcome {
        report: Report { hierarchies, ..collected.report },
        hierarchies: ended.hierarchies,
        stopped: ended.stopped,
        realtime,
        missing,
        threads: ended.threads,
        spin: ended.spin,
        mishaps: ended.mishaps,
        late_records: collected.late,
        log: collected.log,
        log_failure: collected.log_failure,
    }
}
