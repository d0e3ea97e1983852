//! Whether the kernel, to which hierarchies were lowered, ran their threads by the real-time priorities that these were given.
//!
//! ```text
//!   higher   ├── runs ──┤ waits: preempted there, or woken for it   ├── runs
//!   lower               ├── has the processor: wrong, beyond the tolerance ──┤
//! ```
//!
//! A thread that could go on comes before every thread of a lower priority of the same node on the processor where it waits. That is said by the
//! kernel's switches and wake-ups; of the run's own word only whose the threads are is taken. The time of interrupts is not counted. Not judged are
//! threads of one priority, ordinary ones, which have what real-time throttling keeps from the others, and reservations of the kernel's, of which no record
//! tells that they are used up.
//!
//! Where switches were lost, who could go on is unknown from the last record of that processor on, so what was found since then is taken back.

use std::collections::{BTreeMap, HashMap};
use talea_record::event::{Lost, Switch, Thread, Typed, Wakeup};
use talea_record::{KernelPolicy, Metadata, Record};
use talea_time::{Duration, Instant};

/// Findings that are kept until the end, for a loss can make them doubtful.
const MOST: usize = 1 << 12;

/// A thread with a real-time priority of the kernel's.
#[derive(Clone, Copy, Debug)]
struct Member {
    lane: usize,
    node: usize,
    priority: u8,
}

/// What is known of a processor.
#[derive(Clone, Copy, Debug, Default)]
struct Site {
    /// The thread that has it, once a switch has told; [`Record::UNSEEN_THREAD`] if the kernel does not say which.
    thread: Option<u32>,
    /// How many interrupt handlers are on top of it, and since when.
    interrupts: u32,
    interrupted: Option<Instant>,
    /// When the kernel told of it last.
    told: Option<Instant>,
}

/// A member that could go on and has no processor.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    cpu: u16,
    wrong: Option<Wrong>,
}

/// Members of a lower priority have the processor.
#[derive(Clone, Copy, Debug)]
struct Wrong {
    since: Instant,
    /// The first of them.
    by: u32,
    /// Whether others had it after that one.
    further: bool,
    /// Time of interrupts since then.
    interrupted: Duration,
}

/// Threads of a lower priority had a processor for too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    /// From when on.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
    /// What happened, as a sentence.
    pub text: String,
}

/// Judges the kernel on all nodes to which hierarchies were lowered.
#[derive(Debug)]
pub(super) struct Lowered<'a> {
    metadata: &'a Metadata,
    /// What lasts for no longer is the way from one thread to the next.
    pub tolerance: Duration,
    members: HashMap<u32, Member>,
    sites: HashMap<u16, Site>,
    waiting: BTreeMap<u32, Waiting>,
    /// By node: whether its run has begun and is not over.
    is_under_way: Vec<bool>,
    /// How often a member had to wait, but for those of which that is not known any more.
    pub cases: u64,
    /// In the order in which they were over, the first [`MOST`] of them.
    findings: Vec<Finding>,
    /// Those beyond.
    pub unlisted: u64,
    /// Records of the kernel that were lost.
    pub lost: u64,
    /// When the last record was made.
    now: Instant,
}

impl<'a> Lowered<'a> {
    pub fn new(metadata: &'a Metadata, tolerance: Duration) -> Self {
        Lowered {
            metadata,
            tolerance,
            members: HashMap::new(),
            sites: HashMap::new(),
            waiting: BTreeMap::new(),
            is_under_way: vec![false; metadata.nodes.len()],
            cases: 0,
            findings: Vec::new(),
            unlisted: 0,
            lost: 0,
            now: metadata.start,
        }
    }

    /// Takes a record.
    pub fn take(&mut self, record: &Record) {
        let now = record.time;
        self.now = now;
        match record.typed() {
            Typed::RunStart(start) => {
                self.is_under_way.get_mut(usize::from(start.node)).into_iter().for_each(|is| *is = true);
            }
            Typed::RunEnd(end) => self.end(usize::from(end.node)),
            Typed::NodeLeft(left) => self.end(left.left as usize),
            Typed::Thread(thread) => self.meet(thread),
            Typed::Switch(switch) => self.switch(record.cpu, switch, now),
            Typed::Wakeup(wakeup) => self.wake(wakeup, now),
            Typed::IrqEnter(_) => {
                let site = self.sites.entry(record.cpu).or_default();
                site.interrupts = site.interrupts.saturating_add(1);
                site.interrupted.get_or_insert(now);
            }
            Typed::IrqExit(_) => self.leave_interrupt(record.cpu, now),
            Typed::Lost(lost) if lost.is_of_kernel() => return self.lose(record.cpu, lost),
            _ => {}
        }
        if record.source == Record::KERNEL {
            self.sites.entry(record.cpu).or_default().told = Some(now);
        }
    }

    fn meet(&mut self, thread: Thread) {
        let Some(lane) = thread.lane.map(usize::from) else { return };
        let Some(entry) = self.metadata.lanes.get(lane) else { return };
        if self.metadata.nodes[entry.node].decided_by.is_ours() {
            return;
        }
        if let Some(KernelPolicy::RealTime(priority)) = self.metadata.kernel_policy(lane) {
            self.members.insert(thread.tid, Member { lane, node: entry.node, priority });
        }
    }

    /// What happens to the node's threads after its run is nobody's to judge.
    fn end(&mut self, node: usize) {
        self.is_under_way.get_mut(node).into_iter().for_each(|is| *is = false);
        let Lowered { members, waiting, .. } = self;
        let is_of_node =
            |thread: &u32, _: &mut Waiting| members.get(thread).is_none_or(|member| member.node == node);
        let over: Vec<(u32, Waiting)> = waiting.extract_if(.., is_of_node).collect();
        for (thread, Waiting { cpu, wrong }) in over {
            wrong.into_iter().for_each(|wrong| self.conclude(thread, cpu, wrong, self.now));
        }
    }

    /// What was found in the whole trace, which may be one without the run's end.
    pub fn finish(&mut self) -> Vec<Finding> {
        (0..self.is_under_way.len()).for_each(|node| self.end(node));
        std::mem::take(&mut self.findings)
    }

    fn switch(&mut self, cpu: u16, switch: Switch, now: Instant) {
        let (from, to) = (switch.from_tid, switch.to_tid);
        for thread in [from, to] {
            if let Some(Waiting { cpu, wrong: Some(wrong) }) = self.waiting.remove(&thread) {
                self.conclude(thread, cpu, wrong, now);
            }
        }
        self.sites.entry(cpu).or_default().thread = Some(to);
        if switch.preempted.0 {
            self.wait(from, cpu);
        }
        self.look(now);
    }

    /// A thread that still has a processor does not wait.
    fn wake(&mut self, wakeup: Wakeup, now: Instant) {
        let has = |site: &Site| site.thread == Some(wakeup.tid);
        if let Ok(cpu) = u16::try_from(wakeup.target_cpu)
            && !self.sites.values().any(has)
            && !self.waiting.contains_key(&wakeup.tid)
        {
            self.wait(wakeup.tid, cpu);
            self.look(now);
        }
    }

    fn wait(&mut self, thread: u32, cpu: u16) {
        let node = self.members.get(&thread).map(|member| member.node);
        if node.is_some_and(|node| self.is_under_way[node]) {
            self.waiting.insert(thread, Waiting { cpu, wrong: None });
            self.cases += 1;
        }
    }

    /// Who waits for a processor that one of a lower priority has?
    fn look(&mut self, now: Instant) {
        let mut over = Vec::new();
        for (thread, Waiting { cpu, wrong }) in &mut self.waiting {
            let own = self.members[thread];
            let is_lower = |other: &u32| {
                let other = self.members.get(other);
                other.is_some_and(|other| other.node == own.node && other.priority < own.priority)
            };
            let by = self.sites.get(cpu).and_then(|site| site.thread).filter(is_lower);
            match (wrong.as_mut(), by) {
                (Some(known), Some(by)) => known.further |= known.by != by,
                (Some(_), None) => over.extend(wrong.take().map(|wrong| (*thread, *cpu, wrong))),
                (None, Some(by)) => {
                    *wrong = Some(Wrong { since: now, by, further: false, interrupted: Duration::ZERO });
                }
                (None, None) => {}
            }
        }
        over.into_iter().for_each(|(thread, cpu, wrong)| self.conclude(thread, cpu, wrong, now));
    }

    fn leave_interrupt(&mut self, cpu: u16, now: Instant) {
        let site = self.sites.entry(cpu).or_default();
        site.interrupts = site.interrupts.saturating_sub(1);
        let Some(since) = site.interrupted.take_if(|_| site.interrupts == 0) else { return };
        let there = self.waiting.values_mut().filter(|waiting| waiting.cpu == cpu);
        for wrong in there.filter_map(|waiting| waiting.wrong.as_mut()) {
            let length = now.saturating_since(since.max(wrong.since));
            wrong.interrupted = wrong.interrupted.checked_add(length).unwrap_or(Duration::MAX);
        }
    }

    fn conclude(&mut self, thread: u32, cpu: u16, wrong: Wrong, now: Instant) {
        let Wrong { since, by, further, interrupted } = wrong;
        let length = now.saturating_since(since);
        // At the end of the run an interrupt may be under way.
        let under_way = self.sites.get(&cpu).and_then(|site| site.interrupted);
        let under_way = under_way.map_or(Duration::ZERO, |from| now.saturating_since(from.max(since)));
        let excused = [interrupted, under_way].into_iter();
        let most = excused.fold(self.tolerance, |sum, more| sum.checked_add(more).unwrap_or(Duration::MAX));
        if length <= most {
            return;
        }
        let label = |thread: u32| {
            let member = self.members[&thread];
            (&self.metadata.lanes[member.lane].label, member.priority)
        };
        let ((lower, less), (higher, more)) = (label(by), label(thread));
        let further = if further { "and others after it, " } else { "" };
        let text = format!(
            "the kernel ran {lower}, of priority {less}, {further}on processor {cpu} for {} while {higher}, of priority {more}, could go on there",
            length.rounded()
        );
        match self.findings.len() < MOST {
            true => self.findings.push(Finding { from: since, to: now, text }),
            false => self.unlisted += 1,
        }
    }

    /// Records of a processor were lost since it was heard of last: threads may have gone there, and slept since.
    fn lose(&mut self, cpu: u16, lost: Lost) {
        self.lost = self.lost.saturating_add(lost.records);
        let told = self.sites.get(&cpu).and_then(|site| site.told);
        self.findings.retain(|finding| told.is_some_and(|told| finding.to <= told));
        self.cases = self.cases.saturating_sub(self.waiting.len() as u64);
        self.waiting.clear();
        self.sites.insert(cpu, Site::default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_record::event::{BuiltinEvent, Flag, IrqEnter, IrqExit, NodeLeft, RunEnd, RunStart, Timer};
    use talea_record::{
        DecidedBy, InterruptKind, KernelPolicyEntry, LaneEntry, LossCause, NodeEntry, Origin, RunOutcome,
        Switches, ThreadRole, WakeContext,
    };

    const HIGH: u32 = 71;
    const LOW: u32 = 72;
    const ALIKE: u32 = 73;
    const ORDINARY: u32 = 74;
    const STRANGER: u32 = 99;

    /// One node on two processors, to which threads of these policies were lowered.
    fn metadata() -> Metadata {
        let mut metadata = Metadata::bare("lowered");
        let (switches, decided_by) = (Switches::Recorded, DecidedBy::Kernel);
        metadata.origin = Origin::Threads { realtime: true };
        metadata.nodes = vec![NodeEntry { name: "n".into(), cpus: vec![0, 1], switches, decided_by }];
        let real_time = KernelPolicy::RealTime;
        let policies = [real_time(12), real_time(10), real_time(10), KernelPolicy::Other];
        for (lane, policy) in policies.into_iter().enumerate() {
            let (label, discipline) = (format!("t{lane}"), "thread".into());
            metadata.lanes.push(LaneEntry { node: 0, level: lane, label, discipline, under: None });
            metadata.kernel_policies.push(KernelPolicyEntry { lane, policy });
        }
        metadata
    }

    fn us(us: i64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    struct Told(Vec<Record>);

    impl Told {
        fn new() -> Self {
            let mut told = Told(Vec::new());
            for (lane, tid) in [HIGH, LOW, ALIKE, ORDINARY].into_iter().enumerate() {
                let (lane, role) = (Some(lane as u16), ThreadRole::Lane.into());
                told.tell(0, 0, Thread { tid, pid: 5, node: 0, lane, role });
            }
            told.tell(0, 0, RunStart { planned_end: None, node: 0 });
            told
        }

        fn tell(&mut self, at: i64, cpu: u16, what: impl BuiltinEvent) -> &mut Self {
            self.0.push(what.at(us(at), cpu));
            self
        }

        /// A thread that could go on gives its processor to another one.
        fn stop(&mut self, at: i64, cpu: u16, (from_tid, to_tid): (u32, u32)) -> &mut Self {
            let preempted = Flag(true);
            self.tell(at, cpu, Switch { from_tid, to_tid, from_pid: 5, to_pid: 5, preempted })
        }

        /// A thread sleeps.
        fn sleep(&mut self, at: i64, cpu: u16, (from_tid, to_tid): (u32, u32)) -> &mut Self {
            let preempted = Flag(false);
            self.tell(at, cpu, Switch { from_tid, to_tid, from_pid: 5, to_pid: 5, preempted })
        }

        fn wake(&mut self, at: i64, target_cpu: u32, tid: u32) -> &mut Self {
            let context = WakeContext::Interrupt.into();
            self.tell(at, 0, Wakeup { tid, waker_tid: 0, target_cpu, priority: 87, context })
        }

        fn lose(&mut self, at: i64, cpu: u16) -> &mut Self {
            let cause = LossCause::Overwritten.into();
            self.tell(at, cpu, Lost { records: 7, since: None, ring: Record::KERNEL, cause })
        }

        fn lowered<'a>(&self, metadata: &'a Metadata) -> Lowered<'a> {
            let mut lowered = Lowered::new(metadata, Duration::from_micros(200));
            self.0.iter().for_each(|record| lowered.take(record));
            lowered
        }

        /// From when to when it is wrong, and how often somebody waited.
        fn judged(&self) -> (Vec<(i64, i64)>, u64) {
            let metadata = metadata();
            let mut lowered = self.lowered(&metadata);
            let since = |at: Instant| at.as_nanos() / 1_000;
            (
                lowered.finish().iter().map(|found| (since(found.from), since(found.to))).collect(),
                lowered.cases,
            )
        }
    }

    #[test]
    fn a_lower_priority_has_no_processor_where_a_higher_one_could_go_on() {
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).stop(1_000, 0, (HIGH, LOW)).stop(1_500, 0, (LOW, HIGH));
        assert_eq!(told.judged(), (vec![(1_000, 1_500)], 2));
        // Woken for the processor that the other one has, and not given it.
        let mut told = Told::new();
        told.sleep(10, 1, (0, LOW)).wake(1_000, 1, HIGH).stop(1_300, 1, (LOW, HIGH));
        assert_eq!(told.judged(), (vec![(1_000, 1_300)], 2));
        let mut told = Told::new();
        told.sleep(10, 1, (0, LOW)).wake(1_000, 1, HIGH).stop(1_200, 1, (LOW, HIGH));
        assert_eq!(told.judged(), (vec![], 2), "it takes a while to switch");
        // Two have it one after the other, neither for long.
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).stop(1_000, 0, (HIGH, LOW)).sleep(1_150, 0, (LOW, ALIKE));
        told.stop(1_300, 0, (ALIKE, HIGH));
        assert_eq!(told.judged(), (vec![(1_000, 1_300)], 2));
        let text = &told.lowered(&metadata()).finish()[0].text;
        assert!(text.contains("ran t1, of priority 10, and others after it, on processor 0"), "{text}");
    }

    #[test]
    fn what_is_wrong_up_to_the_end_is_found() {
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).stop(1_000, 0, (HIGH, LOW));
        told.tell(1_200, 0, RunEnd { node: 0, how: RunOutcome::Over.into() });
        assert_eq!(told.judged().0, [], "no longer than a switch may take");
        told.0.pop();
        told.tell(1_300, 0, RunEnd { node: 0, how: RunOutcome::Over.into() }).stop(9_000, 0, (LOW, HIGH));
        assert_eq!(told.judged().0, [(1_000, 1_300)]);
        // A node whose process ended, and a trace that was cut off.
        for _ in 0..2 {
            told.0.pop();
        }
        told.tell(1_400, 0, NodeLeft { epoch: 1, left: 0, node: 0 }).stop(9_000, 0, (LOW, HIGH));
        assert_eq!(told.judged().0, [(1_000, 1_400)]);
        told.0.truncate(told.0.len() - 2);
        told.sleep(1_500, 1, (0, STRANGER));
        assert_eq!(told.judged().0, [(1_000, 1_500)]);
    }

    /// Whoever has a processor and is about to sleep may be woken before it does.
    #[test]
    fn who_has_a_processor_does_not_wait_for_one() {
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).wake(1_000, 1, HIGH).sleep(1_010, 1, (0, LOW));
        told.sleep(5_000, 0, (HIGH, 0)).sleep(6_000, 1, (LOW, 0));
        assert_eq!(told.judged(), (vec![], 0));
        // Once waits who is woken where it waits.
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).stop(1_000, 0, (HIGH, LOW)).wake(1_100, 0, HIGH).stop(
            1_150,
            0,
            (LOW, HIGH),
        );
        assert_eq!(told.judged(), (vec![], 2));
    }

    #[test]
    fn the_priorities_of_several_nodes_are_not_compared() {
        let mut metadata = metadata();
        let of_other = NodeEntry { name: "m".into(), ..metadata.nodes[0].clone() };
        metadata.nodes.push(of_other);
        metadata.lanes[1].node = 1;
        let mut told = Told::new();
        told.tell(5, 0, RunStart { planned_end: None, node: 1 });
        told.sleep(10, 0, (0, HIGH)).stop(1_000, 0, (HIGH, LOW)).stop(5_000, 0, (LOW, HIGH));
        assert_eq!(told.lowered(&metadata).finish(), []);
        // Nor is a node judged that schedulers of ours decide on.
        metadata.lanes[1].node = 0;
        metadata.nodes[0].decided_by = DecidedBy::Ours;
        assert_eq!(told.lowered(&metadata).finish(), []);
        metadata.nodes[0].decided_by = DecidedBy::Kernel;
        assert_eq!(told.lowered(&metadata).finish().len(), 1);
    }

    #[test]
    fn others_may_have_the_processor() {
        for other in [ALIKE, ORDINARY, STRANGER, 0] {
            let mut told = Told::new();
            told.sleep(10, 0, (0, LOW)).stop(1_000, 0, (LOW, other)).stop(5_000, 0, (other, LOW));
            assert_eq!(told.judged().0, [], "{other}");
        }
        // A higher one may have it, and one of a lower priority another processor.
        let mut told = Told::new();
        told.sleep(10, 1, (0, ALIKE)).sleep(10, 0, (0, LOW)).stop(1_000, 0, (LOW, HIGH));
        told.sleep(9_000, 0, (HIGH, LOW));
        assert_eq!(told.judged().0, []);
        // The kernel takes whoever waits to another processor.
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).stop(1_000, 0, (HIGH, LOW)).sleep(1_100, 1, (0, HIGH));
        told.sleep(9_000, 0, (LOW, 0));
        assert_eq!(told.judged().0, []);
    }

    #[test]
    fn who_sleeps_does_not_wait() {
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).sleep(1_000, 0, (HIGH, LOW)).stop(5_000, 0, (LOW, HIGH));
        assert_eq!(told.judged().0, []);
    }

    #[test]
    fn interrupts_are_nobodys_fault() {
        let irq = |at: i64, length: i64| {
            let kind = InterruptKind::Device.into();
            let mut told = Told::new();
            told.sleep(10, 0, (0, LOW)).wake(1_000, 0, HIGH);
            told.tell(at, 0, IrqEnter { irq: 1, kind }).tell(at + length, 0, IrqExit { irq: 1, kind });
            told.stop(1_500, 0, (LOW, HIGH));
            told.judged().0
        };
        assert_eq!(irq(1_100, 350), []);
        assert_eq!(irq(1_100, 250), [(1_000, 1_500)]);
        assert_eq!(irq(900, 350), [(1_000, 1_500)], "100 of it are before");
        // One on top of another one, which goes on for longer; and one on another processor.
        let kind = InterruptKind::Device.into();
        let nested = |cpu: u16| {
            let mut told = Told::new();
            told.sleep(10, 0, (0, LOW)).wake(1_000, 0, HIGH);
            told.tell(1_050, cpu, IrqEnter { irq: 1, kind }).tell(1_100, cpu, IrqEnter { irq: 2, kind });
            told.tell(1_150, cpu, IrqExit { irq: 2, kind }).tell(1_400, cpu, IrqExit { irq: 1, kind });
            told.stop(1_500, 0, (LOW, HIGH));
            told.judged().0
        };
        assert_eq!((nested(0), nested(1)), (vec![], vec![(1_000, 1_500)]));
        // One that is under way at the end of the run.
        let mut told = Told::new();
        told.sleep(10, 0, (0, LOW)).wake(1_000, 0, HIGH).tell(1_150, 0, IrqEnter { irq: 1, kind });
        told.tell(1_500, 0, RunEnd { node: 0, how: RunOutcome::Over.into() });
        assert_eq!(told.judged().0, []);
    }

    #[test]
    fn where_switches_were_lost_nothing_is_known() {
        // It may have gone to the other processor and slept.
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).sleep(20, 1, (0, STRANGER)).stop(1_000, 0, (HIGH, LOW));
        told.lose(4_000, 1).stop(5_000, 0, (LOW, HIGH));
        assert_eq!(told.judged(), (vec![], 1), "one waits after the loss");
        // What was found meanwhile, too, but not what was over before.
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).stop(1_000, 0, (HIGH, LOW)).stop(1_500, 0, (LOW, HIGH));
        told.sleep(1_600, 1, (0, STRANGER)).stop(2_000, 0, (HIGH, LOW)).stop(2_500, 0, (LOW, HIGH));
        assert_eq!(told.judged().0, [(1_000, 1_500), (2_000, 2_500)]);
        // What the run itself tells of the processor says nothing of its switches.
        told.tell(2_600, 1, Timer { due: us(2_600), woken: us(2_600), node: 0 });
        told.lose(4_000, 1);
        assert_eq!(told.judged().0, [(1_000, 1_500)]);
        // Who had the processor before may have left it.
        let mut told = Told::new();
        told.sleep(10, 0, (0, LOW)).lose(4_000, 0).wake(5_000, 0, HIGH).stop(6_000, 0, (STRANGER, HIGH));
        assert_eq!(told.judged(), (vec![], 1));
    }

    #[test]
    fn before_and_after_the_run_nothing_is_judged() {
        let mut told = Told::new();
        told.sleep(10, 0, (0, HIGH)).tell(500, 0, RunEnd { node: 0, how: RunOutcome::Over.into() });
        told.stop(1_000, 0, (HIGH, LOW)).stop(1_500, 0, (LOW, HIGH));
        assert_eq!(told.judged(), (vec![], 0));
        told.0.retain(|record| RunStart::read(record).is_none() && RunEnd::read(record).is_none());
        assert_eq!(told.judged(), (vec![], 0), "a recording that came to the run under way");
    }
}
