//! Running hierarchies whose description changes: what an engine has become is what the description says, and what is refused
//! leaves no trace.

use proptest::prelude::*;
use std::num::NonZeroU32;
use talea_guarantee::guarantee::Guarantee;
use talea_model::{
    Plan, PlanEntry, Request, SchedulerBuilder, SchedulerKind, Setting, System, TaskBuilder, ThreadBuilder,
    ThreadWork,
};
use talea_policy::arrangement::live::{Change, Insistence, Live, Refused, Stake};
use talea_policy::arrangement::{self, ChangeAuthor, ChangeCause, ChangeReason, Watch, arrange};
use talea_policy::hierarchy::{Above, Engine, Parameters};
use talea_policy::job::Job;
use talea_policy::strategy::plan_lanes_of;
use talea_time::{Duration, Instant, Work};

fn guarantee(text: &str) -> Guarantee {
    text.parse().unwrap()
}

fn share(weight: u32) -> Request {
    Request::share(NonZeroU32::new(weight).unwrap())
}

fn reservation(text: &str) -> Request {
    Request::Guarantee(guarantee(text))
}

/// Figure 1 of Regehr and Stankovic, in small: reservations first, shares below a join, and a background.
fn system() -> System {
    let scheduler = SchedulerBuilder::new;
    let thread = |name| ThreadBuilder::new(name, ThreadWork::CpuBound);
    System::builder("live")
        .node("local", [0])
        .scheduler(scheduler("FP", SchedulerKind::FIXED_PRIORITY))
        .scheduler(scheduler("RES", SchedulerKind::RESERVATION).under("FP", Request::Priority(3)))
        .scheduler(
            scheduler("J", SchedulerKind::JOIN)
                .under("RES", reservation("RESBH 10ms 20ms"))
                .under("FP", Request::Priority(2)),
        )
        .scheduler(scheduler("PS", SchedulerKind::PROPORTIONAL_SHARE).under("J", Request::Nothing))
        .scheduler(scheduler("BG", SchedulerKind::ROUND_ROBIN).under("FP", Request::Priority(1)))
        .thread(
            thread("video").requires(guarantee("RESBH 5ms 33ms")).under("RES", reservation("RESBH 5ms 33ms")),
        )
        .thread(thread("words").with_share("PS", 1))
        .thread(thread("voice").requires(guarantee("PSBE 0.4 60ms")).with_share("PS", 4))
        .thread(thread("idle").under("BG", Request::Nothing))
        .build()
        .unwrap()
}

/// A hierarchy that runs, with its clock.
struct Running {
    engine: Engine,
    live: Live,
    watch: Watch,
    now: Instant,
}

impl Running {
    fn new(system: &System) -> Self {
        let plan = &plan_lanes_of(system).unwrap()[0];
        let mut arrangement = arrange(system, 0, plan, 8).unwrap().unwrap();
        let mut live = Live::new(system, 0, &arrangement).unwrap();
        let mut watch = arrangement.watch(system, Duration::ZERO);
        for leaf in std::mem::take(&mut arrangement.leaves) {
            let vp = arrangement.add_thread(system, &leaf).unwrap();
            let (parent, name) =
                (&*system.schedulers[leaf.scheduler].name, &*system.threads[leaf.thread].name);
            live.joined(name, vp);
            let cx = arrangement.engine.context();
            watch.hold((parent, name), leaf.promise, vp, &cx, ChangeCause::DESCRIBED);
        }
        Running { engine: arrangement.engine, live, watch, now: Instant::ZERO }
    }

    /// As who runs the threads does it: one that goes goes first, one that comes comes last.
    fn change(&mut self, change: &Change, insistence: Insistence) -> Result<(), Refused> {
        let planned = self.live.plan(change, insistence)?;
        let cause = ChangeCause::careful(ChangeAuthor::Program, change.reason());
        let mut tried = self.engine.clone();
        if let Change::RemoveThread { name } = change {
            let vp = self.live.thread(name).unwrap();
            if tried.context().state(vp) != talea_policy::hierarchy::VpState::Waiting {
                tried.release(vp, self.now);
            }
            tried.remove_thread(vp);
        }
        let renewed = self.live.carry_out(&planned, &mut tried, self.now)?;
        if let Change::AddThread { name, .. } = change {
            let place = self.live.place_of(&planned, name).unwrap();
            let added = tried.add_thread(place.parent, place.parameters);
            let who = name.clone();
            let vp = added
                .map_err(|refusal| talea_policy::arrangement::live::StepError::Refused { who, refusal })?;
            self.live.adopt(planned.clone(), renewed.clone());
            self.live.joined(name, vp);
            self.engine = tried;
            self.live.hold(&mut self.watch, &self.engine, &planned, &renewed, cause);
            return Ok(());
        }
        self.engine = tried;
        self.live.adopt(planned.clone(), renewed.clone());
        self.live.hold(&mut self.watch, &self.engine, &planned, &renewed, cause);
        Ok(())
    }

    fn careful(&mut self, change: &Change) -> Result<(), Refused> {
        self.change(change, Insistence::Careful)
    }

    /// Every edge by names, with the kind above and what is asked.
    fn structure(&self) -> Vec<(String, String, &'static str, Parameters)> {
        let name_of = |id| {
            let posts = &self.live.blueprint().schedulers;
            let post = posts.iter().find(|post| self.live.scheduler(&post.name) == Some(id));
            post.map(|post| post.name.clone()).expect("every scheduler is described")
        };
        let mut edges = Vec::new();
        for edge in self.engine.edges() {
            let Above::Scheduler(above) = edge.above else { continue };
            let child = match edge.below {
                talea_policy::hierarchy::Below::Scheduler(id) => name_of(id),
                talea_policy::hierarchy::Below::Thread => {
                    let own = self.live.threads().find(|(_, vp)| *vp == edge.vp);
                    own.expect("every thread is described").0.to_owned()
                }
            };
            edges.push((name_of(above), child, self.engine.kind(above).unwrap(), edge.parameters));
        }
        edges.sort_by(|one, other| (&one.0, &one.1).cmp(&(&other.0, &other.1)));
        edges
    }

    /// A change of what threads want, and time for it to have effects.
    fn stir(&mut self, roll: u32) {
        let threads: Vec<_> = self.live.threads().map(|(_, vp)| vp).collect();
        self.now += Duration::from_micros(i64::from(roll % 7000));
        while let Some(due) = self.engine.next_timer().filter(|due| *due <= self.now) {
            self.engine.fire_timers(due.max(self.engine.context().now()));
            self.engine.settle(self.engine.context().now());
        }
        for (index, vp) in threads.into_iter().enumerate() {
            let state = self.engine.context().state(vp);
            let acts = roll >> (index % 20) & 1 == 1;
            match state {
                talea_policy::hierarchy::VpState::Waiting if acts => {
                    let (now, tag) = (self.now, vp.index() as u32);
                    let deadline = now + Duration::from_millis(10);
                    let job = Job { release: now, deadline, wcet: Work::ZERO, rank: 0, number: 0, tag };
                    self.engine.request(vp, job, now);
                }
                talea_policy::hierarchy::VpState::Waiting => {}
                _ if acts && roll.is_multiple_of(3) => _ = self.engine.release(vp, self.now),
                _ => {}
            }
        }
        self.engine.settle(self.now);
        for transition in self.engine.transitions().collect::<Vec<_>>() {
            self.watch.note(transition, self.now, |_, _| {});
        }
        self.engine.check_invariants();
    }

    fn guarantee(&self, child: &str) -> String {
        let (derivation, _) = self.live.derivation();
        let edge = derivation.edges.iter().find(|edge| edge.child == child).unwrap();
        edge.label.to_string()
    }
}

fn replace(name: &str, kind: SchedulerKind, children: &[(&str, Request)]) -> Change {
    let children = children.iter().map(|(name, request)| ((*name).into(), request.clone())).collect();
    Change::Replace { name: name.into(), kind, quantum: None, settings: Vec::new(), children }
}

#[test]
fn shares_become_eevdf_without_another_word() {
    let system = System::builder("flat")
        .node("local", [0])
        .scheduler(SchedulerBuilder::new("PS", SchedulerKind::PROPORTIONAL_SHARE))
        .thread(ThreadBuilder::new("words", ThreadWork::CpuBound).with_share("PS", 1))
        .thread(
            ThreadBuilder::new("voice", ThreadWork::CpuBound)
                .requires(guarantee("PSBE 0.4 60ms"))
                .with_share("PS", 4),
        )
        .build()
        .unwrap();
    let mut running = Running::new(&system);
    running.stir(!0);
    running.careful(&replace("PS", SchedulerKind::EEVDF, &[])).unwrap();
    let ps = running.live.scheduler("PS").unwrap();
    assert_eq!(running.engine.kind(ps), Some("eevdf"));
    running.stir(0b1011);
    let edges: Vec<_> = running.structure().into_iter().filter(|edge| edge.0 == "PS").collect();
    let asked: Vec<_> = edges.iter().map(|edge| (&*edge.1, edge.3)).collect();
    assert_eq!(asked, [("voice", Parameters::Weight(4)), ("words", Parameters::Weight(1))]);
}

/// Round robin promises nobody a share, and "voice" requires one.
#[test]
fn what_breaks_a_requirement_is_refused_with_the_reason_and_a_remedy() {
    let mut running = Running::new(&system());
    let before = (running.structure(), running.live.system().clone());
    let change = replace("PS", SchedulerKind::ROUND_ROBIN, &[]);
    let Err(Refused::Broken(broken)) = running.careful(&change) else { panic!("it breaks a promise") };
    assert_eq!(broken.stake, Stake::Promises);
    assert_eq!(broken.findings.len(), 1, "{broken:?}");
    assert!(broken.findings[0].starts_with("voice: it requires PSBE 0.4 60ms, but receives"), "{broken:?}");
    assert!(broken.remedy.is_some(), "{broken:?}");
    assert_eq!((running.structure(), running.live.system().clone()), before);
    running.change(&change, Insistence::Forced).unwrap();
    assert_eq!(running.engine.kind(running.live.scheduler("PS").unwrap()), Some("round-robin"));
}

#[test]
fn admission_is_not_forced() {
    let mut running = Running::new(&system());
    let before = running.structure();
    let more = Change::Ask { name: "video".into(), of: None, request: reservation("RESBH 20ms 33ms") };
    for insistence in [Insistence::Careful, Insistence::Forced] {
        let Err(Refused::Broken(broken)) = running.change(&more, insistence) else { panic!("too much") };
        assert_eq!(broken.stake, Stake::Admission);
        assert!(broken.findings[0].starts_with("RES: "), "{broken:?}");
        assert_eq!(running.structure(), before);
    }
    let less = Change::Ask { name: "video".into(), of: None, request: reservation("RESBH 6ms 33ms") };
    // A maximum is part of what is required.
    let Err(Refused::Broken(broken)) = running.careful(&less) else { panic!("hard is hard") };
    assert!(broken.findings[0].starts_with("video: it requires RESBH 5ms 33ms"), "{broken:?}");
}

#[test]
fn one_more_share_is_less_for_the_others() {
    let mut running = Running::new(&system());
    let before = running.guarantee("words");
    let add = Change::AddThread {
        name: "sums".into(),
        work: ThreadWork::CpuBound,
        requires: None,
        under: "PS".into(),
        request: share(1),
    };
    // 4 of 6 parts still are more than 2/5, but later than 60 ms.
    let Err(Refused::Broken(broken)) = running.careful(&add) else { panic!("voice has no room") };
    assert!(broken.findings[0].starts_with("voice: "), "{broken:?}");
    running.change(&add, Insistence::Forced).unwrap();
    assert_ne!(running.guarantee("words"), before);
    running.careful(&Change::RemoveThread { name: "sums".into() }).unwrap();
    assert_eq!(running.guarantee("words"), before);
}

/// What a change has made of edges, as "added FP to BG", and what for.
fn told(running: &mut Running) -> Vec<(String, ChangeReason)> {
    let changes: Vec<_> = running.watch.told().collect();
    let name = |vp| {
        let (parent, child, _) = running.watch.edges().nth(running.watch.edge_of(vp)?)?;
        Some(format!("{parent} to {child}"))
    };
    let of = |change: &arrangement::Change| {
        let (what, cause) = match change {
            arrangement::Change::Held { parent, child, cause, .. } => {
                (format!("added {parent} to {child}"), cause)
            }
            arrangement::Change::Altered { vp, cause, .. } => {
                (format!("altered {}", name(*vp).unwrap()), cause)
            }
            // What has stood there is not to be found any more.
            arrangement::Change::LetGo { cause, .. } => ("removed".into(), cause),
        };
        assert_eq!(cause.by, ChangeAuthor::Program);
        (what, cause.why)
    };
    changes.iter().map(of).collect()
}

#[test]
fn every_edge_that_a_change_touches_says_what_for() {
    let mut running = Running::new(&system());
    running.watch.tell();
    let of = |why, edges: &[&str]| edges.iter().map(|edge| ((*edge).to_owned(), why)).collect::<Vec<_>>();
    // The same is promised, whoever asks for what.
    let ask = Change::Ask { name: "RES".into(), of: None, request: Request::Priority(9) };
    running.careful(&ask).unwrap();
    assert_eq!(told(&mut running), of(ChangeReason::RequestChanged, &["altered FP to RES"]));
    running.careful(&replace("BG", SchedulerKind::FIFO, &[])).unwrap();
    let told_of_replacement = told(&mut running);
    assert!(told_of_replacement.contains(&("altered FP to BG".into(), ChangeReason::SchedulerReplaced)));
    assert!(
        told_of_replacement.iter().any(|(edge, _)| edge.ends_with("BG to idle")),
        "{told_of_replacement:?}"
    );
    // Shares of others become smaller for the same reason.
    let add = Change::AddThread {
        name: "sums".into(),
        work: ThreadWork::CpuBound,
        requires: None,
        under: "PS".into(),
        request: share(1),
    };
    running.change(&add, Insistence::Forced).unwrap();
    let edges = ["removed", "added PS to words", "removed", "added PS to voice", "added PS to sums"];
    assert_eq!(told(&mut running), of(ChangeReason::ThreadAdded, &edges));
    running
        .careful(&Change::Move { name: "sums".into(), under: vec![("BG".into(), Request::Nothing)] })
        .unwrap();
    let told_of_move = told(&mut running);
    assert!(told_of_move.contains(&("added BG to sums".into(), ChangeReason::Moved)), "{told_of_move:?}");
    assert!(told_of_move.iter().all(|(_, why)| *why == ChangeReason::Moved));
}

/// Who leaves by itself is no more in the description, and its name is free.
#[test]
fn who_has_left_is_forgotten() {
    let mut running = Running::new(&system());
    let vp = running.live.thread("words").unwrap();
    running.engine.remove_thread(vp);
    running.live.left("words");
    assert!(running.live.system().threads.iter().all(|thread| thread.name != "words"));
    running.careful(&replace("PS", SchedulerKind::LOTTERY, &[])).unwrap_err();
    running.careful(&replace("PS", SchedulerKind::SFQ, &[])).unwrap();
    let again = Change::AddThread {
        name: "words".into(),
        work: ThreadWork::CpuBound,
        requires: None,
        under: "BG".into(),
        request: Request::Nothing,
    };
    running.careful(&again).unwrap();
    running.stir(!0);
}

/// The last thread may leave: what is left is a hierarchy still.
#[test]
fn a_hierarchy_outlives_its_threads() {
    let mut running = Running::new(&system());
    for name in ["video", "words", "voice", "idle"] {
        running.stir(0xffff);
        running.careful(&Change::RemoveThread { name: name.into() }).unwrap();
    }
    running.careful(&Change::RemoveScheduler { name: "PS".into() }).unwrap();
    assert_eq!(running.structure().len(), 4);
    running.stir(0);
}

#[test]
fn names_that_mean_nothing_are_told_from_refusals() {
    let mut running = Running::new(&system());
    let missing = running.careful(&Change::RemoveThread { name: "vidoe".into() }).unwrap_err();
    assert_eq!(missing.to_string(), "there is no thread \"vidoe\"; there is video, words, voice, idle");
    let root = running.careful(&Change::RemoveScheduler { name: "FP".into() }).unwrap_err();
    assert!(root.to_string().contains("root"), "{root}");
    let children = running.careful(&Change::RemoveScheduler { name: "PS".into() }).unwrap_err();
    assert!(children.to_string().contains("words, voice"), "{children}");
    let unfit = running.careful(&replace("PS", SchedulerKind::RESERVATION, &[])).unwrap_err();
    assert!(unfit.to_string().contains("\"words\" asks for share 1"), "{unfit}");
    let circle = Change::Move {
        name: "J".into(),
        under: vec![("PS".into(), share(1)), ("FP".into(), Request::Priority(2))],
    };
    assert!(matches!(running.careful(&circle), Err(Refused::Rules(_))));
}

// Random changes.

const SCHEDULERS: [&str; 8] = ["FP", "RES", "J", "PS", "BG", "n0", "n1", "n2"];
const THREADS: [&str; 7] = ["video", "words", "voice", "idle", "t0", "t1", "t2"];

fn kind(roll: u32) -> SchedulerKind {
    let kinds: Vec<SchedulerKind> =
        SchedulerKind::in_files().into_iter().filter(|kind| *kind != SchedulerKind::LANES).collect();
    kinds[roll as usize % kinds.len()]
}

/// Something that a scheduler of the kind understands, mostly.
fn request(kind: SchedulerKind, roll: u32) -> Request {
    use talea_model::Asks;
    let amounts = [("1ms", "20ms"), ("2ms", "40ms"), ("5ms", "33ms"), ("3ms", "10ms"), ("9ms", "10ms")];
    let (amount, period) = amounts[roll as usize % amounts.len()];
    match kind.asks {
        _ if roll.is_multiple_of(13) => share(1 + roll % 5),
        Asks::Nothing | Asks::NoChildren => Request::Nothing,
        Asks::Priority => Request::Priority((roll % 50) as i32),
        Asks::Level => Request::Priority((roll % 16) as i32),
        Asks::Share | Asks::WarpedShare => share(1 + roll % 5),
        Asks::Guarantee(kinds) if kinds[0] == talea_guarantee::guarantee::Kind::Resu => {
            reservation(["RESU 0.1", "RESU 0.3", "RESU 0.5"][roll as usize % 3])
        }
        Asks::GuaranteeOrJobs(_) if roll.is_multiple_of(5) => Request::Nothing,
        Asks::Guarantee(kinds) | Asks::GuaranteeOrJobs(kinds) => {
            reservation(&format!("{} {amount} {period}", kinds[roll as usize % kinds.len()]))
        }
        Asks::AtMost(kind) => reservation(&format!("{kind} {amount} {period}")),
    }
}

/// What has to be said of a scheduler of the kind: a plan, mostly one for its children, some of whom come later.
fn settings(kind: SchedulerKind, roll: u32, children: &[&str]) -> Vec<(&'static str, Setting)> {
    if kind.parameter("plan").is_none() || roll.is_multiple_of(11) {
        return Vec::new();
    }
    let names = children.iter().copied().chain(["t0", "voice"]);
    let length = Duration::from_millis(1 + i64::from(roll % 5));
    let entry = |(place, child): (usize, &str)| PlanEntry {
        start: length * place as i64,
        duration: length,
        child: child.into(),
    };
    let entries: Vec<PlanEntry> = names.enumerate().map(entry).collect();
    let mut settings = Vec::new();
    if roll.is_multiple_of(2) {
        settings.push(("cycle", Setting::Time(length * (entries.len() as i64 + 1))));
    }
    if roll.is_multiple_of(3) {
        settings.push(("gaps", Setting::Word("event-driven")));
    }
    settings.push(("plan", Setting::Plan(Plan::new(entries))));
    settings
}

#[derive(Clone, Debug)]
struct Roll {
    what: u32,
    who: usize,
    whom: usize,
    roll: u32,
    stir: u32,
}

fn rolls() -> impl Strategy<Value = Vec<Roll>> {
    let roll = (0..12u32, 0..64usize, 0..64usize, any::<u32>(), any::<u32>())
        .prop_map(|(what, who, whom, roll, stir)| Roll { what, who, whom, roll, stir });
    proptest::collection::vec(roll, 1..40)
}

fn drawn(running: &Running, Roll { what, who, whom, roll, .. }: &Roll) -> Change {
    let scheduler = |number: usize| SCHEDULERS[number % SCHEDULERS.len()].to_owned();
    let thread = |number: usize| THREADS[number % THREADS.len()].to_owned();
    let asks = |parent: &str| {
        let known = running.live.system().schedulers.iter().find(|scheduler| scheduler.name == parent);
        request(known.map_or(SchedulerKind::JOIN, |scheduler| scheduler.kind), *roll)
    };
    let under = scheduler(*whom);
    let asked = asks(&under);
    match what {
        0 | 1 => Change::AddScheduler {
            name: format!("n{}", who % 3),
            kind: kind(*roll),
            quantum: None,
            settings: settings(kind(*roll), *roll, &[]),
            under: vec![(under, asked)],
        },
        2 => Change::RemoveScheduler { name: scheduler(*who) },
        3 | 4 => {
            let requires = (roll % 4 == 0).then(|| guarantee("PS 0.1"));
            let (name, work) = (format!("t{}", who % 3), ThreadWork::CpuBound);
            Change::AddThread { name, work, requires, under, request: asked }
        }
        5 => Change::RemoveThread { name: thread(*who) },
        6 => Change::Move { name: thread(*who), under: vec![(under, asked)] },
        7 => Change::Move { name: scheduler(*who), under: vec![(under, asked)] },
        8 => Change::Ask { name: thread(*who), of: None, request: share(1 + roll % 9) },
        9 => Change::Ask { name: scheduler(*who), of: None, request: asks("FP") },
        _ => {
            let (name, kind) = (scheduler(*who), kind(*roll));
            let children: Vec<&str> =
                running.live.blueprint().children(&name).map(|(post, _)| post.name.as_str()).collect();
            let settings = settings(kind, *roll, &children);
            let mut more = *roll;
            let mut next = |child: &str| {
                more = more.wrapping_add(7);
                (child.to_owned(), request(kind, more))
            };
            let children = children.into_iter().map(&mut next).collect();
            Change::Replace { name, kind, quantum: None, settings, children }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 2000, ..ProptestConfig::with_cases(256) })]

    /// After each change that is accepted the engine is what the description would have been arranged as from the start; each
    /// that is refused leaves engine and description as they were. In between threads block and wake up.
    #[test]
    fn an_engine_becomes_what_its_description_says(rolls in rolls()) {
        let mut running = Running::new(&system());
        for roll in rolls {
            let change = drawn(&running, &roll);
            let before = (running.structure(), running.live.system().clone());
            let insistence = if roll.roll.is_multiple_of(2) { Insistence::Careful } else { Insistence::Forced };
            match running.change(&change, insistence) {
                Ok(()) => {
                    let system = running.live.system();
                    if !system.threads.is_empty() {
                        let afresh = Running::new(system);
                        prop_assert_eq!(running.structure(), afresh.structure(), "{:?}", change);
                        prop_assert_eq!(&running.live.blueprint().schedulers.len(), &afresh.live.blueprint().schedulers.len());
                    }
                }
                Err(_) => {
                    prop_assert_eq!(&(running.structure(), running.live.system().clone()), &before);
                }
            }
            running.engine.check_invariants();
            running.stir(roll.stir);
        }
    }
}

#[test]
fn a_hard_reservation_caps_all_below_it_unless_a_join_has_another_parent() {
    let scheduler = SchedulerBuilder::new;
    let thread = |name| ThreadBuilder::new(name, ThreadWork::CpuBound);
    let hard = || reservation("RESBH 5ms 20ms");
    let system = System::builder("capped")
        .node("local", [0])
        .scheduler(scheduler("FP", SchedulerKind::FIXED_PRIORITY))
        .scheduler(scheduler("RES", SchedulerKind::RESERVATION).under("FP", Request::Priority(2)))
        .scheduler(scheduler("PS", SchedulerKind::PROPORTIONAL_SHARE).under("RES", hard()))
        .scheduler(scheduler("J", SchedulerKind::JOIN).under("RES", hard()).under("FP", Request::Priority(1)))
        .thread(thread("own").under("RES", reservation("RESBH 1ms 20ms")))
        .thread(thread("below").with_share("PS", 1))
        .thread(thread("joined").under("J", Request::Nothing))
        .build()
        .unwrap();
    let arrangement = arrange(&system, 0, &plan_lanes_of(&system).unwrap()[0], 1).unwrap().unwrap();
    let live = Live::new(&system, 0, &arrangement).unwrap();
    let capped = ["RES", "PS", "J", "own", "below", "joined"].map(|name| live.blueprint().is_capped(name));
    assert_eq!(capped, [false, true, false, true, true, false]);
}

/// A reservation below half a processor, which serves by deadlines, as what this says of them needs it.
fn below_a_slower_processor() -> System {
    System::builder("slower")
        .node("local", [0])
        .scheduler(SchedulerBuilder::new("B", SchedulerKind::BSS_I))
        .scheduler(SchedulerBuilder::new("R", SchedulerKind::CBS).under("B", reservation("RESU 0.5")))
        .thread(
            ThreadBuilder::new("sure", ThreadWork::CpuBound)
                .requires(guarantee("RESBS 1ms 10ms"))
                .under("R", reservation("RESBH 1ms 10ms")),
        )
        .thread(ThreadBuilder::new("free", ThreadWork::CpuBound).under("R", reservation("RESBH 1ms 20ms")))
        .build()
        .unwrap()
}

#[test]
fn what_is_not_known_to_be_kept_is_not_promised_to_those_who_require_it() {
    let mut running = Running::new(&below_a_slower_processor());
    assert_eq!(running.live.provisos(), []);
    let kernel = replace("R", SchedulerKind::RESOURCE_KERNEL, &[]);
    let Err(Refused::Broken(broken)) = running.careful(&kernel) else { panic!("it was to be refused") };
    assert_eq!(broken.stake, Stake::Promises);
    let [finding] = &broken.findings[..] else { panic!("{broken:?}") };
    assert!(finding.starts_with("sure from R: ") && finding.contains("not known to keep"), "{finding}");
    assert!(broken.remedy.is_some_and(|remedy| remedy.contains("cbs")));
    let planned = running.live.plan(&kernel, Insistence::Forced).unwrap();
    let doubted: Vec<&str> = planned.newly_doubted.iter().map(|proviso| &*proviso.child).collect();
    assert_eq!(doubted, ["sure", "free"]);
    running.change(&kernel, Insistence::Forced).unwrap();
    assert_eq!(running.live.provisos().len(), 2);
    // What is doubted already is nothing new, and nobody loses by it.
    let less = Change::Ask { name: "free".into(), of: None, request: reservation("RESBH 1ms 40ms") };
    let planned = running.live.plan(&less, Insistence::Careful).unwrap();
    assert_eq!((planned.newly_doubted.len(), planned.provisos.len()), (0, 2));
}

/// Somebody else's doubt was there before.
#[test]
fn the_remedy_of_a_doubt_is_about_its_own_cause() {
    let system = System::builder("doubts")
        .node("local", [0])
        .scheduler(SchedulerBuilder::new("B", SchedulerKind::BSS_I))
        .scheduler(
            SchedulerBuilder::new("K", SchedulerKind::RESOURCE_KERNEL).under("B", reservation("RESU 0.25")),
        )
        .thread(ThreadBuilder::new("free", ThreadWork::CpuBound).under("K", reservation("RESBH 1ms 20ms")))
        .scheduler(SchedulerBuilder::new("C", SchedulerKind::CBS).under("B", reservation("RESU 0.5")))
        .scheduler(SchedulerBuilder::new("L", SchedulerKind::LIMIT).under("C", reservation("RESBH 1ms 10ms")))
        .thread(
            ThreadBuilder::new("sure", ThreadWork::CpuBound)
                .requires(guarantee("RESBH 1ms 10ms"))
                .under("L", Request::Nothing),
        )
        .build()
        .unwrap();
    let mut running = Running::new(&system);
    assert_eq!(running.live.provisos().len(), 1);
    let server = replace("C", SchedulerKind::TBS, &[("L", reservation("RESBS 1ms 10ms"))]);
    let Err(Refused::Broken(broken)) = running.careful(&server) else { panic!("it was to be refused") };
    assert!(broken.findings[0].starts_with("sure from L: "), "{broken:?}");
    assert!(broken.remedy.is_some_and(|remedy| remedy.starts_with("let the limit ask")));
}

#[test]
fn tasks_stay_in_their_lanes_when_a_scheduler_before_these_goes() {
    let task = |name: &str, lanes: &str| {
        TaskBuilder::new(name, Duration::from_millis(50)).wcet(Work::from_millis(1)).in_lanes(lanes)
    };
    let system = System::builder("s")
        .scheduler(SchedulerBuilder::new("FP", SchedulerKind::FIXED_PRIORITY))
        .scheduler(
            SchedulerBuilder::new("spare", SchedulerKind::ROUND_ROBIN).under("FP", Request::Priority(9)),
        )
        .scheduler(SchedulerBuilder::new("one", SchedulerKind::LANES).under("FP", Request::Priority(2)))
        .scheduler(SchedulerBuilder::new("other", SchedulerKind::LANES).under("FP", Request::Priority(1)))
        .task(task("a", "other"))
        .task(task("b", "one"))
        .build()
        .unwrap();
    let mut running = Running::new(&system);
    running.careful(&Change::RemoveScheduler { name: "spare".into() }).unwrap();
    let changed = running.live.system();
    let lanes = changed.tasks.iter().map(|task| {
        let scheduler = changed.lanes_with(&task.subtasks[0]).unwrap();
        changed.schedulers[scheduler].name.as_str()
    });
    assert_eq!(lanes.collect::<Vec<_>>(), ["other", "one"]);
    let lanes = running.careful(&Change::RemoveScheduler { name: "one".into() }).unwrap_err();
    assert!(lanes.to_string().contains("\"one\" has the lanes of tasks"), "{lanes}");
}
