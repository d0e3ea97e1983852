//! The kernel's switches on the processors of a set: recorded by programs in the kernel, or as events of perf where these are refused.
//!
//! With the programs, who is behind one edge is one group: switches among the threads of a program are not recorded, whose two look-ups are
//! all that they cost. For what is received it does not matter which of them has the processor.

use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet, VecDeque};
use talea_linux::clock::MonotonicClock;
use talea_linux::watch::{Group, Inherit, SwitchReader, Switched, ThreadWatch};
use talea_record::event::{EdgeChange, Flag, Lost, Member, Switch, Typed};
use talea_record::{ChangeKind, MemberRole, Record, Sink};
use talea_recording::kernel::{KernelEvent, KernelOptions, KernelScope, KernelStream, Processors};
use talea_time::{Clock, Instant};

/// By what a set's switches are told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "means", rename_all = "kebab-case")]
pub enum ToldBy {
    /// By programs in the kernel, which record switches between members.
    #[default]
    Programs,
    /// By an event of perf for each switch, which costs about a microsecond.
    Events {
        /// Why there are no programs.
        reason: String,
    },
}

enum Source {
    Watch(Watched),
    Events { stream: KernelStream, lost: u64 },
}

/// The kernel's switches on the processors of a set.
pub struct SwitchStream {
    source: Source,
    told_by: ToldBy,
}

impl SwitchStream {
    /// Opens it.
    ///
    /// # Errors
    /// The kernel's refusals with their remedies, in a line each.
    pub fn open(cpus: &[u16]) -> Result<Self, String> {
        let reason = match ThreadWatch::open(cpus) {
            Ok((watch, reader, _events)) => {
                let source = Source::Watch(Watched::new(watch, reader));
                return Ok(SwitchStream { source, told_by: ToldBy::Programs });
            }
            Err(reason) => reason.to_string(),
        };
        let options = KernelOptions {
            scope: KernelScope::Machine,
            processors: Processors::These(cpus.iter().copied().collect()),
            events: [KernelEvent::Switches].into(),
            ..KernelOptions::default()
        };
        let stream = KernelStream::open(&options, MonotonicClock.now());
        let stream = stream.map_err(|error| format!("{reason}\n{error}"))?;
        Ok(SwitchStream { source: Source::Events { stream, lost: 0 }, told_by: ToldBy::Events { reason } })
    }

    /// By what they are told.
    pub fn told_by(&self) -> &ToldBy {
        &self.told_by
    }

    /// What is told of members: who a thread is, and that nobody is behind an edge any more.
    pub(crate) fn note(&mut self, told: &Typed) {
        let Source::Watch(watched) = &mut self.source else { return };
        match *told {
            Typed::Member(Member { tid, edge: Some(edge), role, .. })
                if role.known() == Some(MemberRole::Scheduled) =>
            {
                watched.introduce(tid, edge);
            }
            Typed::EdgeChange(EdgeChange { edge, what, .. }) if what == ChangeKind::Removed => {
                watched.removed(edge.into());
            }
            _ => {}
        }
    }

    /// These threads are behind no edge any more, which [`Self::note`] is told later: from now on switches between them are recorded.
    pub(crate) fn part(&mut self, threads: impl Iterator<Item = u32>) {
        if let Source::Watch(watched) = &mut self.source {
            threads.for_each(|tid| watched.watch.leave(tid));
        }
    }

    /// Takes the switches before `horizon`, in the order of time, and returns how many have been lost so far. Those that are missing are
    /// later than what was taken so many looks [before](Self::looks_until_certain).
    pub(crate) fn poll(&mut self, horizon: Instant, switches: &mut VecDeque<Record>) -> u64 {
        match &mut self.source {
            Source::Watch(watched) => watched.poll(horizon, switches),
            Source::Events { stream, lost } => {
                stream.poll(horizon, &mut Without { switches, lost });
                *lost
            }
        }
    }

    /// After so many looks it is certain that nothing is missing up to one. The programs' record says at once that it was overwritten;
    /// perf says that its buffer was full with the next event that has room, which the look after the next finds.
    pub(crate) fn looks_until_certain(&self) -> usize {
        match &self.source {
            Source::Watch(_) => 0,
            Source::Events { .. } => 2,
        }
    }

    /// Takes all that is left, and returns how many were lost.
    pub(crate) fn finish(self, switches: &mut VecDeque<Record>) -> u64 {
        match self.source {
            Source::Watch(mut watched) => watched.poll(Instant::MAX, switches),
            Source::Events { stream, mut lost } => {
                // What it has recorded by now is delivered, whatever becomes of the stop.
                let _stopped = stream.finish(&mut Without { switches, lost: &mut lost });
                lost
            }
        }
    }
}

/// Counts what was lost, and keeps the rest.
struct Without<'a> {
    switches: &'a mut VecDeque<Record>,
    lost: &'a mut u64,
}

impl Sink for Without<'_> {
    fn record(&mut self, record: Record) {
        match record.typed() {
            Typed::Lost(Lost { records, .. }) => *self.lost += records,
            _ => self.switches.push_back(record),
        }
    }
}

/// Threads of a program for which there is room at first.
const FEW: usize = 8;

/// Switches that are recorded by programs.
struct Watched {
    watch: ThreadWatch,
    reader: SwitchReader,
    /// Groups by the edges that programs are behind. Threads of this process have a group each, since their own clocks are held against
    /// what they received.
    by_edge: HashMap<u32, Group>,
    /// The threads that were entered into a program's group, some of which may have ended.
    entered: HashMap<Group, HashSet<u32>>,
    /// Those of each processor that are later than what was asked for.
    waiting: Vec<(u16, VecDeque<(Instant, u32)>)>,
    lost: u64,
}

impl Watched {
    fn new(watch: ThreadWatch, reader: SwitchReader) -> Self {
        Watched {
            watch,
            reader,
            by_edge: HashMap::new(),
            entered: HashMap::new(),
            waiting: Vec::new(),
            lost: 0,
        }
    }

    /// A thread that finds no room stays a stranger, whose switches are recorded one by one.
    fn introduce(&mut self, tid: u32, edge: u32) {
        let current = self.watch.group_of(tid);
        if std::fs::exists(format!("/proc/self/task/{tid}")).unwrap_or(false) {
            if let Some(group) = current.is_none().then(|| self.watch.group()).flatten() {
                let _no_room = self.watch.enter(tid, group, Inherit::Nobody);
            }
            return;
        }
        let known = self.by_edge.get(&edge).copied();
        let Some(group) = known.or_else(|| self.watch.group()) else { return };
        self.by_edge.insert(edge, group);
        if current != Some(group) && self.watch.enter(tid, group, Inherit::Nobody).is_ok() {
            let Watched { entered, watch, .. } = self;
            let entered = entered.entry(group).or_default();
            if entered.len() == entered.capacity() {
                entered.retain(|tid| watch.group_of(*tid) == Some(group));
                entered.reserve(entered.len().max(FEW));
            }
            entered.insert(tid);
        }
    }

    /// Nobody is behind the edge any more. What was behind it may be behind several others next.
    fn removed(&mut self, edge: u32) {
        let Some(group) = self.by_edge.remove(&edge) else { return };
        self.by_edge.retain(|_, other| *other != group);
        let entered = self.entered.remove(&group).unwrap_or_default();
        let are_in_it = entered.into_iter().filter(|tid| self.watch.group_of(*tid) == Some(group));
        are_in_it.for_each(|tid| self.watch.leave(tid));
        self.watch.release(group);
    }

    fn poll(&mut self, horizon: Instant, switches: &mut VecDeque<Record>) -> u64 {
        let Watched { reader, waiting, lost, .. } = self;
        reader.drain(|cpu, switched| match switched {
            Switched::To { at, tid, .. } => {
                let place = waiting.iter().position(|(other, _)| *other == cpu).unwrap_or_else(|| {
                    waiting.push((cpu, VecDeque::new()));
                    waiting.len() - 1
                });
                waiting[place].1.push_back((at, tid));
            }
            Switched::Lost(more) => *lost += more,
        });
        let first = |waiting: &[(u16, VecDeque<(Instant, u32)>)]| {
            let fronts =
                waiting.iter().enumerate().filter_map(|(place, (_, all))| Some((all.front()?.0, place)));
            fronts.min().filter(|(at, _)| *at < horizon).map(|(_, place)| place)
        };
        while let Some(place) = first(waiting) {
            let (cpu, all) = &mut waiting[place];
            let Some((at, to_tid)) = all.pop_front() else { break };
            let unseen = Record::UNSEEN_THREAD;
            let (from_tid, from_pid, to_pid) = (unseen, unseen, unseen);
            let switch = Switch { from_tid, to_tid, from_pid, to_pid, preempted: Flag(false) };
            switches.push_back(switch.at(at, *cpu));
        }
        *lost + self.watch.lost().missed
    }
}
