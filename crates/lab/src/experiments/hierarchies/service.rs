//! Which thread wanted the processor, was granted it, and had it: from the records of a run, and the kernel's if there are any.
//!
//! The records of jobs say what a thread *wanted*, those of decisions what it was *granted*, and the kernel's switches what it *had*. What
//! was withheld is what [`talea_insight::receipts`] say. That a thread had the processor is the kernel's word alone, so
//! whoever judges by that shares no notion with the schedulers.
//!
//! The systems of the experiment have one processor.

use talea_insight::EdgeState;
use talea_insight::receipts::{self, DISAGREEMENT};
use talea_record::event::Typed;
use talea_record::{Metadata, Record, Sink};
use talea_time::{Duration, Instant};

/// From when to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spell {
    /// When it begins.
    pub from: Instant,
    /// When it ends.
    pub to: Instant,
}

impl Spell {
    /// How long it is.
    pub fn length(&self) -> Duration {
        self.to - self.from
    }

    /// How much of `spells` lies in it.
    pub fn common(&self, spells: &[Spell]) -> Duration {
        let common = |spell: &Spell| {
            let (from, to) = (self.from.max(spell.from), self.to.min(spell.to));
            if from < to { (to - from).as_nanos() } else { 0 }
        };
        Duration::from_nanos(spells.iter().map(common).sum())
    }
}

/// The length of all together.
pub fn total(spells: &[Spell]) -> Duration {
    Duration::from_nanos(spells.iter().map(|spell| spell.length().as_nanos()).sum())
}

/// What is known of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: String,
    /// When it had something to do.
    pub wanted: Vec<Spell>,
    /// When the hierarchy granted it the processor.
    pub granted: Vec<Spell>,
    /// When it had it.
    pub received: Vec<Spell>,
}

/// How it is known which thread had the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Evidence {
    /// Every context switch was recorded.
    Switches,
    /// The recorded switches contradict the threads' own clocks, so some are missing. What was received is taken to be what was
    /// granted, and withheld time is unknown.
    Contradicted,
    /// By what the hierarchy decided: in virtual time that is what happens; on real threads it is what should have.
    Decisions,
}

/// What a run's records tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The whole run.
    pub run: Spell,
    /// The threads, in file order.
    pub accounts: Vec<Account>,
    /// When the kernel withheld the processor from a thread that was granted it.
    pub withheld: Vec<Spell>,
    /// Stretches of time in which the host of a virtual machine took so much of the processor.
    pub stolen: Vec<(Spell, Duration)>,
    /// How `received` is known.
    pub evidence: Evidence,
    /// Records that were lost.
    pub lost: u64,
}

impl Service {
    /// The same, unless it contradicts what the threads' own clocks say that they received, in nanoseconds.
    #[must_use]
    pub fn verified(mut self, clock: impl Fn(&str) -> Option<i64>) -> Self {
        let most = self.run.length().as_nanos() / DISAGREEMENT;
        let differs = |account: &Account| {
            clock(&account.name).is_some_and(|ns| (ns - total(&account.received).as_nanos()).abs() > most)
        };
        if self.evidence == Evidence::Switches && self.accounts.iter().any(differs) {
            self.evidence = Evidence::Contradicted;
            self.withheld.clear();
            for account in &mut self.accounts {
                account.received = account.granted.clone();
            }
        }
        self
    }

    /// The thread called `name`.
    ///
    /// # Panics
    /// If there is none.
    pub fn account(&self, name: &str) -> &Account {
        self.accounts.iter().find(|account| account.name == name).expect("the system has this thread")
    }
}

/// Something that is on and off.
#[derive(Clone, Debug, Default)]
struct Track {
    since: Option<Instant>,
    spells: Vec<Spell>,
}

impl Track {
    fn begin(&mut self, at: Instant) {
        self.since.get_or_insert(at);
    }

    fn end(&mut self, at: Instant) {
        let Some(from) = self.since.take() else { return };
        match self.spells.last_mut() {
            Some(last) if last.to == from => last.to = at,
            _ if from < at => self.spells.push(Spell { from, to: at }),
            _ => {}
        }
    }

    /// Its spells inside of `run`.
    fn finish(mut self, run: Spell) -> Vec<Spell> {
        self.end(run.to);
        let inside = |spell: Spell| Spell { from: spell.from.max(run.from), to: spell.to.min(run.to) };
        self.spells.into_iter().map(inside).filter(|spell| spell.from < spell.to).collect()
    }
}

struct Member {
    name: String,
    lane: usize,
    /// The edge to it.
    edge: Option<usize>,
    thread: Option<u32>,
    /// Jobs that have arrived and are not done.
    backlog: u64,
    wanted: Track,
    granted: Track,
    received: Track,
}

/// Takes the records of a run in the order of time.
pub struct Ledger {
    members: Vec<Member>,
    receipts: receipts::Ledger,
    cpu: u16,
    has_switches: bool,
    stolen: Vec<(Spell, Duration)>,
    start: Option<Instant>,
    end: Option<Instant>,
    now: Instant,
    lost: u64,
}

impl Ledger {
    /// For a run of a system on one processor.
    pub fn new(metadata: &Metadata) -> Self {
        let edge_to = |name: &str| metadata.edges.iter().position(|edge| edge.child == name);
        let cpu = metadata.nodes[0].cpus[0];
        let member = |operation: &talea_record::OperationEntry| Member {
            name: operation.name.clone(),
            lane: operation.lane,
            edge: edge_to(&operation.name),
            thread: None,
            backlog: 0,
            wanted: Track::default(),
            granted: Track::default(),
            received: Track::default(),
        };
        Ledger {
            members: metadata.operations.iter().map(member).collect(),
            receipts: receipts::Ledger::new(&[cpu], Duration::ZERO),
            cpu,
            has_switches: false,
            stolen: Vec::new(),
            start: None,
            end: None,
            now: Instant::ZERO,
            lost: 0,
        }
    }

    fn of_lane(&mut self, lane: u16) -> Option<&mut Member> {
        self.members.iter_mut().find(|member| member.lane == usize::from(lane))
    }

    /// The processor goes from one thread to another.
    fn switch(&mut self, to: u32, at: Instant) {
        self.has_switches = true;
        for member in &mut self.members {
            match member.thread == Some(to) {
                true => member.received.begin(at),
                false => member.received.end(at),
            }
        }
    }

    /// A decision about an edge.
    fn decided(&mut self, edge: usize, state: EdgeState, at: Instant) {
        let members = self.members.iter_mut().filter(|member| member.edge == Some(edge));
        members.for_each(|member| match state {
            EdgeState::Running(_) => member.granted.begin(at),
            _ => member.granted.end(at),
        });
    }

    /// What is known up to now, in the order of the description's threads.
    pub fn finish(mut self) -> Service {
        let end = self.end.unwrap_or(self.now);
        let run = Spell { from: self.start.unwrap_or(end), to: end };
        let evidence = if self.has_switches { Evidence::Switches } else { Evidence::Decisions };
        let account = |member: Member| {
            let granted = member.granted.finish(run);
            let received = match evidence {
                Evidence::Switches => member.received.finish(run),
                Evidence::Decisions | Evidence::Contradicted => granted.clone(),
            };
            Account { name: member.name, wanted: member.wanted.finish(run), granted, received }
        };
        let withheld = self.receipts.spells().map(|spell| Spell { from: spell.from, to: spell.to }).collect();
        Service {
            run,
            accounts: self.members.into_iter().map(account).collect(),
            withheld,
            stolen: self.stolen,
            evidence,
            lost: self.lost,
        }
    }
}

impl Sink for Ledger {
    fn record(&mut self, record: Record) {
        self.receipts.record(record);
        self.now = self.now.max(record.time);
        let (now, cpu) = (self.now, self.cpu);
        if let Some((edge, state)) = EdgeState::told_by(&record) {
            return self.decided(edge, state, now);
        }
        match record.typed() {
            Typed::RunStart(_) => self.start = Some(now),
            Typed::RunEnd(_) => self.end = Some(now),
            Typed::Switch(switch) if record.cpu == cpu => self.switch(switch.to_tid, now),
            Typed::Member(told) => {
                let members = self.members.iter_mut();
                let below = members.filter(|member| {
                    told.edge.is_some() && member.edge == told.edge.map(|edge| edge as usize)
                });
                below.for_each(|member| member.thread = Some(told.tid));
            }
            Typed::Steal(steal) if record.cpu == cpu => {
                self.stolen.push((Spell { from: steal.from, to: steal.to }, steal.amount));
            }
            Typed::Lost(lost) => self.lost += lost.records,
            Typed::Release(release) => {
                if let Some(member) = self.of_lane(release.lane) {
                    member.backlog += 1;
                    member.wanted.begin(now);
                }
            }
            Typed::Complete(_) | Typed::Abort(_) => {
                if let Some(member) = self.of_lane(record.source) {
                    member.backlog = member.backlog.saturating_sub(1);
                    if member.backlog == 0 {
                        member.wanted.end(now);
                    }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::hierarchies::setting::{BACKGROUND, Configuration, RENDERER};
    use talea_policy::strategy::plan_lanes_of;
    use talea_record::event::Member;
    use talea_record::{EdgeEntry, Event, MemberRole, Origin};
    use talea_time::Instant;

    const FRAMES: u32 = 10;
    const OTHERS: u32 = 11;
    const SENTINEL: u32 = 12;
    const CONTROLLER: u32 = 13;
    const IDLE: u32 = 0;

    fn us(us: i64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    fn spell(from: i64, to: i64) -> Spell {
        Spell { from: us(from), to: us(to) }
    }

    struct GivenRecords(Ledger);

    impl GivenRecords {
        fn new() -> Self {
            let system = Configuration::Hard.system().with_threads_as_tasks();
            let plans = plan_lanes_of(&system).expect("there are no lanes");
            let mut metadata = Metadata::new(&system, &plans, Origin::Simulation { seed: 0 }, us(0));
            let edge = |child: &str| {
                let (parent, guarantee) = ("above".into(), "NULL".into());
                EdgeEntry { node: 0, parent, child: child.into(), guarantee }
            };
            metadata.edges = [RENDERER, BACKGROUND].map(edge).into();
            let mut given = GivenRecords(Ledger::new(&metadata));
            given.own(100, Event::RUN_START, 0);
            for (tid, edge, role) in [
                (FRAMES, Some(0), MemberRole::Scheduled),
                (OTHERS, Some(1), MemberRole::Scheduled),
                (SENTINEL, None, MemberRole::Sentinel),
                (CONTROLLER, None, MemberRole::Infrastructure),
            ] {
                let member = Member { tid, started_by: 0, edge, node: 0, role: role.into() };
                given.0.record(member.at(us(100), Record::NO_CPU));
            }
            for lane in [0, 1] {
                given.own(100, Event::RELEASE, lane);
            }
            given
        }

        fn give(&mut self, at: i64, event: Event, source: u16, words: [u64; 2], arg: u16) {
            self.0.record(Record { time: us(at), causal: 0, words, event, source, cpu: 0, arg });
        }

        /// A record of the run, with that of the decision behind it: who is below the edge of the lane's number.
        fn own(&mut self, at: i64, event: Event, lane: u16) {
            self.give(at, event, lane, [0, 0], 0);
            match event {
                Event::START | Event::RESUME => self.give(at, Event::VP_GRANT, lane, [0, 0], 1),
                Event::PREEMPT => self.give(at, Event::VP_REVOKE, lane, [0, 0], 1),
                _ => {}
            }
        }

        fn switch(&mut self, at: i64, to: u32) {
            self.give(at, Event::SWITCH, Record::KERNEL, [u64::from(to) << 32, 0], 1);
        }

        fn finish(mut self, at: i64) -> Service {
            self.own(at, Event::RUN_END, 0);
            self.0.finish()
        }
    }

    #[test]
    fn without_switches_what_is_granted_is_received() {
        let mut given = GivenRecords::new();
        given.own(100, Event::START, 0);
        given.own(1100, Event::PREEMPT, 0);
        given.own(1100, Event::START, 1);
        let service = given.finish(2100);
        assert_eq!(service.evidence, Evidence::Decisions);
        assert_eq!(service.account(RENDERER).received, [spell(100, 1100)]);
        assert_eq!(service.account(BACKGROUND).received, [spell(1100, 2100)]);
        assert_eq!(service.account(BACKGROUND).wanted, [spell(100, 2100)]);
        assert_eq!(service.withheld, []);
    }

    #[test]
    fn what_the_kernel_gives_to_nobody_or_to_others_is_withheld() {
        let mut given = GivenRecords::new();
        given.own(100, Event::START, 0);
        given.switch(105, FRAMES);
        given.switch(500, IDLE);
        // The controller does not end the pause, nor do decisions in it.
        given.switch(700, CONTROLLER);
        given.own(701, Event::PREEMPT, 0);
        given.own(701, Event::START, 1);
        given.switch(705, 77);
        given.switch(1500, OTHERS);
        let service = given.finish(2000);
        assert_eq!(service.evidence, Evidence::Switches);
        assert_eq!(service.withheld, [spell(500, 1500)], "not the 5 µs from decision to switch");
        assert_eq!(service.account(RENDERER).received, [spell(105, 500)]);
        assert_eq!(service.account(RENDERER).granted, [spell(100, 701)]);
        assert_eq!(service.account(BACKGROUND).received, [spell(1500, 2000)]);
    }

    #[test]
    fn an_idle_processor_that_nobody_is_granted_is_not_withheld() {
        let mut given = GivenRecords::new();
        given.own(100, Event::START, 0);
        given.switch(105, FRAMES);
        given.own(600, Event::PREEMPT, 0);
        given.switch(605, SENTINEL);
        given.switch(607, IDLE);
        // Granted while the processor is elsewhere, and from there on withheld.
        given.own(1000, Event::RESUME, 0);
        given.switch(1400, FRAMES);
        assert_eq!(given.finish(2000).withheld, [spell(1000, 1400)]);
    }

    #[test]
    fn a_pause_that_outlasts_the_grant_ends_with_it() {
        let mut given = GivenRecords::new();
        given.own(100, Event::START, 0);
        given.switch(105, FRAMES);
        given.switch(300, IDLE);
        given.own(600, Event::PREEMPT, 0);
        given.own(900, Event::RESUME, 0);
        given.switch(1200, FRAMES);
        assert_eq!(given.finish(2000).withheld, [spell(300, 600), spell(900, 1200)]);
    }

    #[test]
    fn switches_that_contradict_the_clocks_are_not_believed() {
        let service = || {
            let mut given = GivenRecords::new();
            given.own(100, Event::START, 0);
            given.switch(105, FRAMES);
            given.switch(1000, IDLE);
            given.finish(1100)
        };
        let received = 895_000;
        let believed = service().verified(|name| (name == RENDERER).then_some(received + 5_000));
        assert_eq!((believed.evidence, believed.withheld.len()), (Evidence::Switches, 0));
        let doubted = service().verified(|name| (name == RENDERER).then_some(received / 2));
        assert_eq!(doubted.evidence, Evidence::Contradicted);
        assert_eq!(doubted.account(RENDERER).received, [spell(100, 1100)], "what was granted");
        assert_eq!(service().verified(|_| None), service(), "nothing contradicts");
    }

    #[test]
    fn common_time_is_that_of_all_spells() {
        let spells = [spell(0, 10), spell(20, 30), spell(40, 50)];
        assert_eq!(spell(5, 25).common(&spells), Duration::from_micros(10));
        assert_eq!(total(&spells), Duration::from_micros(30));
    }
}
