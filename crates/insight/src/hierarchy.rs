//! Where the edges of hierarchies stand, by the records of what their schedulers decided, and whose turn it is.
//!
//! An edge stands between a scheduler and who is below it: a scheduler, a thread or lanes. Who is below waits, is
//! ready or has a processor. Of who wants a processor and has none, the way up to the root says why:
//!
//! ```text
//!   FP ── RES ── video      ready     running      RES served another: that one's turn
//!                           ready     no child runs, RES itself is ready      ask the same of RES
//!                           ready     no child runs, RES wants nothing        what RES keeps for video is used up
//!                                     a processor is away from the root         it is left to the kernel in slices
//! ```

use std::collections::HashMap;
use talea_record::event::{ChangeKind, Flag, Trigger, Typed};
use talea_record::{Event, Metadata, Origin, Record};

/// What tells whose turn it was in a hierarchy.
pub(crate) const DECISIONS: [Event; 4] =
    [Event::VP_REQUEST, Event::VP_GRANT, Event::VP_REVOKE, Event::VP_RELEASE];

/// Where an edge stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EdgeState {
    /// Nothing has been heard of it since the trace began, or since records were lost.
    #[default]
    Unknown,
    /// Who is below wants no processor.
    Waiting,
    /// It wants one and has none.
    Ready,
    /// It has this one, by its Linux number.
    Running(u16),
}

impl EdgeState {
    /// The edge that a record of a decision is about, and the state into which that brings it.
    pub fn told_by(record: &Record) -> Option<(usize, EdgeState)> {
        let (edge, state) = match record.typed() {
            Typed::VpRequest(request) => (request.edge, EdgeState::Ready),
            Typed::VpGrant(grant) => (grant.edge, EdgeState::Running(record.cpu)),
            Typed::VpRevoke(revoke) => (revoke.edge, EdgeState::Ready),
            Typed::VpRelease(release) => (release.edge, EdgeState::Waiting),
            Typed::EdgeChange(change) if change.what == ChangeKind::Removed => {
                (change.edge, EdgeState::Waiting)
            }
            _ => return None,
        };
        Some((usize::from(edge), state))
    }
}

/// Why who stands at the place of a lane or thread has a processor, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It was given one.
    Granted,
    /// It wants none.
    NotWanted,
    /// A scheduler above it has one and gave it to who is below this edge.
    Others(usize),
    /// The scheduler above this edge, on the way up from it, wants none for who is below.
    NotAsked(usize),
    /// The processor is left to the kernel in slices.
    LeftInSlices,
    /// The records do not tell.
    Unknown,
}

#[derive(Debug)]
struct Edge {
    node: usize,
    state: EdgeState,
    /// Who is below was revoked a processor because this one is left to the kernel, and neither has been given one since nor has the root got it back.
    left: Option<u16>,
    /// The scheduler above, by number.
    group: usize,
    /// The scheduler below; none below whom there are threads or lanes.
    below: Option<usize>,
}

/// A scheduler.
#[derive(Debug)]
struct Group {
    /// The edges to who is below it.
    edges: Vec<usize>,
    /// The edges to it; none to a root.
    above: Vec<usize>,
}

/// The edges of all nodes.
#[derive(Debug)]
pub(crate) struct Hierarchies {
    edges: Vec<Edge>,
    groups: Vec<Group>,
    /// By lane: the edges to it, or of a lane to those of its node.
    of_lane: Vec<Vec<usize>>,
    /// By node.
    has_any: Vec<bool>,
    /// By node: whether its schedulers' decisions are recorded; not where the kernel decides, to which the hierarchy was lowered.
    has_decisions: Vec<bool>,
    /// Nodes whose run has begun on threads, and whose schedulers have not told yet who is there: they may begin later than lanes do.
    awaited: Vec<usize>,
    on_threads: bool,
    /// By node: the processors that are left to the kernel now.
    away: Vec<Vec<u16>>,
}

impl Hierarchies {
    /// What tells whose turn it is, all of which it takes to know.
    pub const EVENTS: [Event; 7] = [
        Event::VP_REQUEST,
        Event::VP_GRANT,
        Event::VP_REVOKE,
        Event::VP_RELEASE,
        Event::NEXT_JOB,
        Event::EDGE_CHANGE,
        Event::SUPPLY,
    ];

    /// Of a run with these tables; nothing has been heard yet.
    pub fn new(metadata: &Metadata) -> Self {
        Hierarchies::with_lanes(metadata, metadata)
    }

    /// The same with lanes as these other tables number them, which are of the same nodes.
    pub fn with_lanes(metadata: &Metadata, lanes: &Metadata) -> Self {
        let mut numbers: HashMap<(usize, &str), usize> = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut to: HashMap<(usize, &str), Vec<usize>> = HashMap::new();
        let mut has_any = vec![false; metadata.nodes.len()];
        for (index, edge) in metadata.edges.iter().enumerate() {
            let number = *numbers.entry((edge.node, &edge.parent)).or_insert_with(|| {
                groups.push(Group { edges: Vec::new(), above: Vec::new() });
                groups.len() - 1
            });
            groups[number].edges.push(index);
            to.entry((edge.node, &edge.child)).or_default().push(index);
            has_any[edge.node] = true;
        }
        let edges = metadata.edges.iter().map(|edge| Edge {
            node: edge.node,
            state: EdgeState::Unknown,
            left: None,
            group: numbers[&(edge.node, edge.parent.as_str())],
            below: numbers.get(&(edge.node, edge.child.as_str())).copied(),
        });
        for (scheduler, number) in &numbers {
            groups[*number].above = to.get(scheduler).cloned().unwrap_or_default();
        }
        let of_lane = lanes.lanes.iter().map(|lane| {
            let name = lanes.place_name(lane);
            name.and_then(|name| to.get(&(lane.node, name))).cloned().unwrap_or_default()
        });
        let away = vec![Vec::new(); metadata.nodes.len()];
        let has_decisions = metadata.nodes.iter().map(|node| node.decided_by.is_ours()).collect();
        Hierarchies {
            edges: edges.collect(),
            groups,
            of_lane: of_lane.collect(),
            has_any,
            has_decisions,
            awaited: Vec::new(),
            on_threads: matches!(metadata.origin, Origin::Threads { .. }),
            away,
        }
    }

    /// The node's schedulers decide from now on: who has not asked for anything before waits.
    fn begin(&mut self, node: usize) {
        let of_node = self.edges.iter_mut().filter(|edge| edge.node == node);
        of_node
            .filter(|edge| edge.state == EdgeState::Unknown)
            .for_each(|edge| edge.state = EdgeState::Waiting);
    }

    /// The same if they have only begun to tell.
    fn tell(&mut self, node: usize) {
        if let Some(place) = self.awaited.iter().position(|awaited| *awaited == node) {
            self.awaited.swap_remove(place);
            self.begin(node);
        }
    }

    /// Whether schedulers, not lanes alone, decide on the node.
    pub fn decide_on(&self, node: usize) -> bool {
        self.has_any[node]
    }

    /// Takes a record into account.
    pub fn apply(&mut self, record: &Record) {
        if let Some((edge, state)) = EdgeState::told_by(record) {
            if edge < self.edges.len() {
                self.tell(self.edges[edge].node);
                self.edges[edge].state = state;
                self.note_left(edge, record);
            }
            return;
        }
        match record.typed() {
            Typed::RunStart(start) if self.has_decisions.get(usize::from(start.node)) == Some(&true) => {
                match self.on_threads {
                    true => self.awaited.push(usize::from(start.node)),
                    false => self.begin(usize::from(start.node)),
                }
            }
            Typed::Member(member) if member.edge.is_some() => self.tell(usize::from(member.node)),
            Typed::Supply(supply) if usize::from(supply.node) < self.away.len() => {
                self.supply(usize::from(supply.node), record.cpu, supply.given);
            }
            Typed::Lost(lost) if !lost.is_of_kernel() => {
                for edge in &mut self.edges {
                    (edge.state, edge.left) = (EdgeState::Unknown, None);
                }
                self.awaited.clear();
                self.away.iter_mut().for_each(Vec::clear);
            }
            _ => {}
        }
    }

    /// A processor of the node is left to the kernel from now on, or given back.
    fn supply(&mut self, node: usize, cpu: u16, given: Flag) {
        self.away[node].retain(|away| *away != cpu);
        match given {
            Flag(false) => self.away[node].push(cpu),
            // Who has none from now on waits for something else.
            Flag(true) => {
                let of_node =
                    self.edges.iter_mut().filter(|edge| edge.node == node && edge.left == Some(cpu));
                of_node.for_each(|edge| edge.left = None);
            }
        }
    }

    /// Notes whether who is below the edge has lost its processor by this record because that is left to the kernel.
    fn note_left(&mut self, edge: usize, record: &Record) {
        let Edge { left, node, .. } = &mut self.edges[edge];
        match record.typed() {
            // Somebody else may get the processor of who is below for the one that was taken.
            Typed::VpRevoke(revoke) if revoke.trigger == Trigger::Supply => {
                *left = self.away[*node].last().copied()
            }
            Typed::VpRevoke(_) => {}
            _ => *left = None,
        }
    }

    /// Whether a processor of the node is left to the kernel in a slice although somebody who has none wants one.
    pub fn is_left_in_slice(&self, node: usize, cpu: u16) -> bool {
        let is_wanted =
            |edge: &Edge| edge.state == EdgeState::Ready && self.groups[edge.group].above.is_empty();
        self.away[node].contains(&cpu) && self.edges.iter().any(|edge| edge.node == node && is_wanted(edge))
    }

    /// Why who stands at the place of `lane` has a processor, or none.
    pub fn turn(&self, lane: usize) -> Turn {
        self.turn_of(&self.of_lane[lane], self.edges.len())
    }

    /// Whether the place of `lane` has this processor.
    pub fn has(&self, lane: usize, cpu: u16) -> bool {
        self.of_lane[lane].iter().any(|edge| self.edges[*edge].state == EdgeState::Running(cpu))
    }

    /// Where an edge stands.
    pub fn state(&self, edge: usize) -> EdgeState {
        self.edges[edge].state
    }

    /// How many schedulers there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The scheduler above the edge, by number.
    pub fn group_of(&self, edge: usize) -> usize {
        self.edges[edge].group
    }

    /// The scheduler below the edge; none where a thread or lanes are.
    pub fn group_below(&self, edge: usize) -> Option<usize> {
        self.edges[edge].below
    }

    /// The edges to a scheduler; none to a root.
    pub fn above(&self, group: usize) -> &[usize] {
        &self.groups[group].above
    }

    /// The edges to the place of a lane: to the scheduler that it is under.
    pub fn edges_of_lane(&self, lane: usize) -> &[usize] {
        &self.of_lane[lane]
    }

    /// Whether it is known what the place of `lane` was given.
    pub fn knows(&self, lane: usize) -> bool {
        let edges = &self.of_lane[lane];
        !edges.is_empty() && edges.iter().all(|edge| self.edges[*edge].state != EdgeState::Unknown)
    }

    /// The processor that who is below the edge has.
    pub fn processor(&self, edge: usize) -> Option<u16> {
        match self.edges[edge].state {
            EdgeState::Running(cpu) => Some(cpu),
            _ => None,
        }
    }

    /// The edge at the end of the way that the processor of who is below `edge` goes down: to a thread, or to lanes.
    pub fn last(&self, edge: usize) -> usize {
        let mut last = edge;
        // Damaged tables may go round in circles.
        for _ in 0..self.edges.len() {
            let state = self.edges[last].state;
            let below = self.edges[last].below.map_or(&[][..], |group| &self.groups[group].edges);
            let next = below.iter().find(|below| self.edges[**below].state == state);
            match next {
                Some(next) => last = *next,
                None => break,
            }
        }
        last
    }

    /// Of these edges, all to the same one below. Damaged tables may go round in circles, but for no more than `patience` steps.
    fn turn_of(&self, edges: &[usize], patience: usize) -> Turn {
        let state = |edge: &usize| self.edges[*edge].state;
        if edges.iter().any(|edge| matches!(state(edge), EdgeState::Running(_))) {
            return Turn::Granted;
        }
        let ready = || edges.iter().filter(|edge| state(edge) == EdgeState::Ready);
        if ready().next().is_none() {
            let is_known = !edges.is_empty() && edges.iter().all(|edge| state(edge) == EdgeState::Waiting);
            return if is_known { Turn::NotWanted } else { Turn::Unknown };
        }
        let mut why = Turn::Unknown;
        for edge in ready() {
            let turn = self.turn_above(*edge, patience);
            match (why, turn) {
                // Whoever was served instead says more than that nobody asked.
                (_, Turn::Others(_) | Turn::LeftInSlices) => return turn,
                (Turn::Unknown, _) => why = turn,
                _ => {}
            }
        }
        why
    }

    /// Why the scheduler above the edge gives who is below, and wants a processor, none.
    fn turn_above(&self, edge: usize, patience: usize) -> Turn {
        let Edge { group, left, node, .. } = self.edges[edge];
        let group = &self.groups[group];
        if left.is_some() {
            return Turn::LeftInSlices;
        }
        let siblings = group.edges.iter();
        let served =
            siblings.copied().find(|other| matches!(self.edges[*other].state, EdgeState::Running(_)));
        if let Some(served) = served {
            return Turn::Others(served);
        }
        let above = &group.above;
        if above.is_empty() && !self.away[node].is_empty() {
            return Turn::LeftInSlices;
        }
        match if above.is_empty() || patience == 0 {
            Turn::NotWanted
        } else {
            self.turn_of(above, patience - 1)
        } {
            // It has one itself, and gives it to nobody.
            Turn::NotWanted | Turn::Granted => Turn::NotAsked(edge),
            why => why,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_record::event::{
        LossCause, Lost, Member, RunStart, Supply, Trigger, VpGrant, VpRelease, VpRequest, VpRevoke,
    };
    use talea_record::{DecidedBy, EdgeEntry, LaneEntry, MemberRole, NodeEntry, SchedulerEntry, Switches};
    use talea_time::Instant;

    const EDGES: [(&str, &str); 6] =
        [("FP", "RES"), ("RES", "J"), ("FP", "J"), ("RES", "video"), ("J", "words"), ("J", "lanes")];

    fn hierarchy() -> Hierarchies {
        let mut metadata = Metadata::bare("x");
        metadata.nodes = vec![NodeEntry {
            name: "n".into(),
            cpus: vec![3],
            switches: Switches::Recorded,
            decided_by: DecidedBy::Ours,
        }];
        let edge = |(parent, child): (&str, &str)| {
            let guarantee = "NULL".into();
            EdgeEntry { node: 0, parent: parent.into(), child: child.into(), guarantee }
        };
        metadata.edges = EDGES.map(edge).into();
        let kind = talea_record::LANES.to_owned();
        metadata.schedulers = vec![SchedulerEntry { node: 0, name: "lanes".into(), kind }];
        let place = |label: &str, discipline: &str| LaneEntry {
            node: 0,
            level: 0,
            label: label.into(),
            discipline: discipline.into(),
            under: None,
        };
        metadata.lanes = vec![place("video", "thread"), place("words", "thread"), place("high", "fifo")];
        let mut hierarchy = Hierarchies::new(&metadata);
        hierarchy.edges.iter_mut().for_each(|edge| edge.state = EdgeState::Waiting);
        hierarchy
    }

    #[derive(Clone, Copy)]
    enum Say {
        Request,
        Grant,
        Revoke,
        Release,
        TakeAway,
    }
    use Say::{Grant, Release, Request, Revoke, TakeAway};

    fn supply(hierarchy: &mut Hierarchies, given: bool) {
        hierarchy.apply(&Supply { node: 0, given: Flag(given) }.at(Instant::ZERO, 3));
    }

    fn say(hierarchy: &mut Hierarchies, what: &[(Say, &str, &str)]) {
        for (say, parent, child) in what {
            let edge = EDGES.iter().position(|edge| edge == &(*parent, *child)).expect("an edge") as u16;
            let (at, by, trigger) = (Instant::ZERO, None, Trigger::Thread.into());
            hierarchy.apply(&match say {
                Request => VpRequest { edge, by, trigger }.at(at, Record::NO_CPU),
                Grant => VpGrant { edge, by, trigger }.at(at, 3),
                Revoke => VpRevoke { edge, by, trigger }.at(at, 3),
                Release => VpRelease { edge, by, trigger }.at(at, 3),
                TakeAway => VpRevoke { edge, by, trigger: Trigger::Supply.into() }.at(at, 3),
            });
        }
    }

    #[test]
    fn the_way_up_says_whose_turn_it_is() {
        let mut hierarchy = hierarchy();
        assert_eq!(hierarchy.turn(0), Turn::NotWanted);
        let video = [
            (Request, "RES", "video"),
            (Request, "FP", "RES"),
            (Grant, "FP", "RES"),
            (Grant, "RES", "video"),
        ];
        say(&mut hierarchy, &video);
        assert_eq!(hierarchy.turn(0), Turn::Granted);
        assert!(hierarchy.has(0, 3) && !hierarchy.has(0, 2));
        say(&mut hierarchy, &[(Request, "J", "words"), (Request, "RES", "J"), (Request, "FP", "J")]);
        assert_eq!(hierarchy.turn(1), Turn::Others(3), "RES has a processor and serves video");
        // The reservation of video is used up, and J's turn comes.
        say(&mut hierarchy, &[(Revoke, "RES", "video"), (Grant, "RES", "J"), (Grant, "J", "words")]);
        assert_eq!((hierarchy.turn(0), hierarchy.turn(1)), (Turn::Others(1), Turn::Granted));
        say(&mut hierarchy, &[(Revoke, "J", "words"), (Revoke, "RES", "J"), (Release, "FP", "RES")]);
        say(&mut hierarchy, &[(Grant, "FP", "J"), (Grant, "J", "words")]);
        assert_eq!(hierarchy.turn(0), Turn::NotAsked(3), "RES wants nothing for video");
        say(&mut hierarchy, &[(Request, "J", "lanes")]);
        assert_eq!(hierarchy.turn(2), Turn::Others(4), "lanes stand where the scheduler of their kind does");
    }

    #[test]
    fn what_is_left_to_the_kernel_is_nobodys_turn() {
        let mut hierarchy = hierarchy();
        let served = [
            (Request, "RES", "video"),
            (Request, "FP", "RES"),
            (Grant, "FP", "RES"),
            (Grant, "RES", "video"),
        ];
        say(&mut hierarchy, &served);
        assert!(!hierarchy.is_left_in_slice(0, 3));
        supply(&mut hierarchy, false);
        say(&mut hierarchy, &[(TakeAway, "FP", "RES"), (TakeAway, "RES", "video")]);
        assert_eq!(hierarchy.turn(0), Turn::LeftInSlices);
        assert!(hierarchy.is_left_in_slice(0, 3) && !hierarchy.is_left_in_slice(0, 2));
        // Who comes meanwhile waits for the same.
        say(&mut hierarchy, &[(Request, "FP", "J"), (Request, "J", "words")]);
        assert_eq!(hierarchy.turn(1), Turn::LeftInSlices);
        supply(&mut hierarchy, true);
        say(&mut hierarchy, &[(Grant, "FP", "RES"), (Grant, "RES", "video")]);
        assert_eq!((hierarchy.turn(0), hierarchy.turn(1)), (Turn::Granted, Turn::Others(0)));
        assert!(!hierarchy.is_left_in_slice(0, 3));
        // Nobody wants the processor of which a slice is left.
        supply(&mut hierarchy, false);
        say(&mut hierarchy, &[(TakeAway, "FP", "RES"), (TakeAway, "RES", "video"), (Release, "FP", "RES")]);
        say(&mut hierarchy, &[(Release, "FP", "J")]);
        assert!(!hierarchy.is_left_in_slice(0, 3));
        // Nobody had it when it was taken, and who comes then waits for it.
        say(&mut hierarchy, &[(Request, "FP", "J")]);
        assert!(hierarchy.is_left_in_slice(0, 3));
        assert_eq!(hierarchy.turn(1), Turn::LeftInSlices);
    }

    #[test]
    fn after_a_slice_it_is_the_turn_of_who_is_served() {
        let mut hierarchy = hierarchy();
        say(&mut hierarchy, &[(Request, "RES", "video"), (Request, "FP", "RES"), (Request, "J", "words")]);
        say(&mut hierarchy, &[(Request, "FP", "J"), (Grant, "FP", "RES"), (Grant, "RES", "video")]);
        supply(&mut hierarchy, false);
        say(&mut hierarchy, &[(TakeAway, "FP", "RES"), (TakeAway, "RES", "video")]);
        assert_eq!((hierarchy.turn(0), hierarchy.turn(1)), (Turn::LeftInSlices, Turn::LeftInSlices));
        supply(&mut hierarchy, true);
        assert_eq!(hierarchy.turn(0), Turn::NotAsked(0), "the root has it, and gives it to nobody");
        say(&mut hierarchy, &[(Grant, "FP", "J"), (Grant, "J", "words")]);
        assert_eq!(hierarchy.turn(0), Turn::Others(2), "the slice was before");
        supply(&mut hierarchy, false);
        say(&mut hierarchy, &[(TakeAway, "FP", "J"), (TakeAway, "J", "words")]);
        assert_eq!(hierarchy.turn(0), Turn::LeftInSlices);
    }

    #[test]
    fn nothing_is_known_after_a_loss_until_it_is_heard_of() {
        let mut hierarchy = hierarchy();
        let lost = talea_record::event::Lost {
            records: 3,
            since: None,
            ring: 0,
            cause: talea_record::LossCause::Overwritten.into(),
        };
        hierarchy.apply(&lost.at(Instant::ZERO, Record::NO_CPU));
        assert_eq!(hierarchy.turn(0), Turn::Unknown);
        say(&mut hierarchy, &[(Request, "RES", "video")]);
        assert_eq!(hierarchy.turn(0), Turn::Unknown, "what RES does is not known");
        say(&mut hierarchy, &[(Grant, "RES", "J")]);
        assert_eq!(hierarchy.turn(0), Turn::Others(1));
    }

    #[test]
    fn tables_that_go_round_in_circles_end() {
        let mut metadata = Metadata::bare("x");
        metadata.nodes = vec![NodeEntry {
            name: "n".into(),
            cpus: vec![0],
            switches: Switches::Recorded,
            decided_by: DecidedBy::Ours,
        }];
        let edge = |parent: &str, child: &str| EdgeEntry {
            node: 0,
            parent: parent.into(),
            child: child.into(),
            guarantee: "NULL".into(),
        };
        metadata.edges = vec![edge("a", "b"), edge("b", "a"), edge("b", "t")];
        let (label, discipline) = ("t".into(), "thread".into());
        metadata.lanes = vec![LaneEntry { node: 0, level: 0, label, discipline, under: None }];
        let mut hierarchy = Hierarchies::new(&metadata);
        hierarchy.edges.iter_mut().for_each(|edge| edge.state = EdgeState::Ready);
        assert!(matches!(hierarchy.turn(0), Turn::NotAsked(_)));
    }

    /// A run of several nodes has records of decisions where some of them were lowered to the kernel.
    #[test]
    fn nothing_is_known_of_what_the_kernel_decides() {
        for (decided_by, is_known) in [(DecidedBy::Ours, true), (DecidedBy::Kernel, false)] {
            let mut metadata = Metadata::bare("x");
            let (name, switches) = ("n".into(), Switches::Recorded);
            metadata.nodes = vec![NodeEntry { name, cpus: vec![0], switches, decided_by }];
            let (parent, child, guarantee) = ("FIFO".into(), "t".into(), "NULL".into());
            metadata.edges = vec![EdgeEntry { node: 0, parent, child, guarantee }];
            let (label, discipline) = ("t".into(), "thread".into());
            metadata.lanes = vec![LaneEntry { node: 0, level: 0, label, discipline, under: None }];
            let mut hierarchy = Hierarchies::new(&metadata);
            let start = RunStart { planned_end: None, node: 0 };
            hierarchy.apply(&start.at(Instant::ZERO, Record::NO_CPU));
            let role = MemberRole::Scheduled.into();
            let member = Member { tid: 7, started_by: 0, edge: Some(0), node: 0, role };
            hierarchy.apply(&member.at(Instant::ZERO, Record::NO_CPU));
            assert_eq!(hierarchy.knows(0), is_known, "{decided_by:?}");
        }
    }

    /// Schedulers on threads begin when their node's main thread comes to it; lanes may have taken messages of other nodes before.
    #[test]
    fn nothing_is_known_of_schedulers_on_threads_before_they_tell_who_is_there() {
        let mut metadata = Metadata::bare("x");
        metadata.origin = Origin::Threads { realtime: true };
        let (name, switches) = ("n".into(), Switches::Recorded);
        metadata.nodes = vec![NodeEntry { name, cpus: vec![0], switches, decided_by: DecidedBy::Ours }];
        let edge = |child: &str| EdgeEntry {
            node: 0,
            parent: "FIFO".into(),
            child: child.into(),
            guarantee: "NULL".into(),
        };
        metadata.edges = vec![edge("t"), edge("u")];
        let (label, discipline) = ("t".into(), "thread".into());
        metadata.lanes = vec![LaneEntry { node: 0, level: 0, label, discipline, under: None }];
        let at = Instant::from_nanos;
        let start = RunStart { planned_end: None, node: 0 }.at(at(0), Record::NO_CPU);
        let role = MemberRole::Scheduled.into();
        let member = Member { tid: 7, started_by: 0, edge: Some(1), node: 0, role }.at(at(9), Record::NO_CPU);
        let infrastructure = Member { tid: 8, started_by: 0, edge: None, node: 0, role };
        let infrastructure = infrastructure.at(at(0), Record::NO_CPU);
        let (by, trigger) = (None, Trigger::Thread.into());
        let request = VpRequest { edge: 1, by, trigger }.at(at(9), Record::NO_CPU);
        let knows = |records: &[&Record]| {
            let mut hierarchy = Hierarchies::new(&metadata);
            records.iter().for_each(|record| hierarchy.apply(record));
            hierarchy.knows(0)
        };
        assert!(!knows(&[&start]) && !knows(&[&start, &infrastructure]));
        assert!(knows(&[&start, &member]) && knows(&[&start, &infrastructure, &request]));
        // Of a run that was under way nobody says who has not asked, nor where records were lost.
        assert!(!knows(&[&member]) && !knows(&[&request]));
        let cause = LossCause::Overwritten.into();
        let lost = Lost { records: 1, since: None, ring: 0, cause }.at(at(5), 0);
        assert!(!knows(&[&start, &lost, &member]));
    }
}
