//! Hierarchies that are changed while real threads run below them, from the process and through the socket.

use crate::hog;
use crate::programs::{eventually, stage};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use talea_linux::clock::MonotonicClock;
use talea_linux::sched;
use talea_manage::control::protocol::{
    Answer, Command, EdgeRequest, Force, Listing, Outcome, ParentRequest, Program, Row,
};
use talea_manage::control::{
    Client, CommandHandler, Governor, OwnThread, Piece, Reason, ServeError, Server, Sockets,
};
use talea_manage::{
    Admission, AdmitError, Blocks, ManagedRun, ManagedSet, Marks, Options, Parking, RunRecorder, WatchedEdge,
};
use talea_model::{
    ChildProcesses, Request, SchedulerBuilder, SchedulerKind, System, TaskBuilder, ThreadBuilder, ThreadWork,
};
use talea_policy::arrangement::live::{Change, Insistence, Live, Refused};
use talea_policy::arrangement::{ChangeAuthor, ChangeCause, Watch, arrange};
use talea_policy::strategy::plan_lanes_of;
use talea_record::event::{self, ChangeReason, EdgeChange};
use talea_record::stream::{Operator, Switching};
use talea_record::{
    ChangeKind, DecidedBy, EdgeEntry, EdgeNumbers, Metadata, NodeEntry, RingFile, Switches, TraceFile,
};
use talea_time::{Clock, Duration, Work};

fn share(weight: u32) -> Request {
    Request::share(weight.try_into().unwrap())
}

/// Shares at the root; "voice" requires some.
fn shares() -> System {
    let thread = |name| ThreadBuilder::new(name, ThreadWork::CpuBound);
    System::builder("shares")
        .node("local", [0])
        .scheduler(SchedulerBuilder::new("PS", SchedulerKind::PROPORTIONAL_SHARE))
        .thread(thread("words").with_share("PS", 1))
        .thread(thread("voice").requires("PSBE 0.4 60ms".parse().unwrap()).with_share("PS", 4))
        .build()
        .unwrap()
}

/// Reservations before a background.
fn reservations() -> System {
    System::builder("reservations")
        .node("local", [0])
        .scheduler(SchedulerBuilder::new("FP", SchedulerKind::FIXED_PRIORITY))
        .scheduler(SchedulerBuilder::new("RES", SchedulerKind::RESERVATION).under("FP", Request::Priority(2)))
        .scheduler(SchedulerBuilder::new("BG", SchedulerKind::ROUND_ROBIN).under("FP", Request::Priority(1)))
        .thread(ThreadBuilder::new("idle", ThreadWork::CpuBound).under("BG", Request::Nothing))
        .build()
        .unwrap()
}

/// The system on real threads, all of them hogs.
fn govern(system: &System, options: &Options) -> Arc<Governor> {
    let plan = &plan_lanes_of(system).unwrap()[0];
    let arrangement = arrange(system, 0, plan, 8).unwrap().unwrap();
    let live = Live::new(system, 0, &arrangement).unwrap();
    let mut set = ManagedSet::prepare(arrangement.engine, options).unwrap();
    let mut members = Vec::new();
    for leaf in &arrangement.leaves {
        let name = &*system.threads[leaf.thread].name;
        let (parent, parameters) = (leaf.parent, leaf.parameters);
        let admission = Admission { name, parent, parameters, parking: Parking::WorkConserving, edge: None };
        let (member, _) = set.spawn(admission, Blocks::ByHandle, hog).unwrap();
        members.push((name.to_owned(), member));
    }
    Arc::new(Governor::new(set, live, members))
}

/// The system on real threads whose run is recorded in this file.
fn govern_recorded(system: &System, options: &Options, path: &Path) -> Arc<Governor> {
    let plan = &plan_lanes_of(system).unwrap()[0];
    let mut arrangement = arrange(system, 0, plan, 8).unwrap().unwrap();
    let live = Live::new(system, 0, &arrangement).unwrap();
    let scheduler = |index: usize| system.schedulers[index].name.clone();
    let between = arrangement.edges.iter().map(|edge| (scheduler(edge.parent), scheduler(edge.child)));
    let to_threads = arrangement
        .leaves
        .iter()
        .map(|leaf| (scheduler(leaf.scheduler), system.threads[leaf.thread].name.clone()));
    let entry = |(parent, child)| EdgeEntry { node: 0, parent, child, guarantee: "NULL".into() };
    let (switches, decided_by) = (Switches::Recorded, DecidedBy::Ours);
    let mut metadata = Metadata::bare("recorded");
    metadata.nodes =
        vec![NodeEntry { name: "local".into(), cpus: options.cpus.clone(), switches, decided_by }];
    metadata.edges = between.chain(to_threads).map(entry).collect();
    let mut rings = RingFile::create(path, &metadata, &["hierarchy".into()], 1 << 16).unwrap();
    let recorder = RunRecorder::new(rings.writer(0), 0, options.cpus.clone(), Marks::Both);
    let mut watch = Watch::new(Duration::ZERO);
    watch.tell();
    arrangement.watch_by(&mut watch, system);
    let run = ManagedRun::new(recorder, watch, EdgeNumbers::of(&metadata, 0), options.members_max);
    let mut set = ManagedSet::prepare(arrangement.engine, options).unwrap();
    set.set_run(run);
    let mut members = Vec::new();
    for leaf in &arrangement.leaves {
        let name = &*system.threads[leaf.thread].name;
        let (promise, cause) = (leaf.promise.as_ref(), ChangeCause::DESCRIBED);
        let edge = Some(WatchedEdge { parent: &system.schedulers[leaf.scheduler].name, promise, cause });
        let (parent, parameters, parking) = (leaf.parent, leaf.parameters, Parking::WorkConserving);
        let admission = Admission { name, parent, parameters, parking, edge };
        let (member, _) = set.spawn(admission, Blocks::ByHandle, hog).unwrap();
        members.push((name.to_owned(), member));
    }
    let start = MonotonicClock.now();
    set.begin_run(start, start + Duration::from_secs(60));
    Arc::new(Governor::new(set, live, members))
}

fn end(governor: &Governor) {
    assert_eq!(governor.retire().unwrap().stop().unwrap().cause, None);
}

fn row(listing: &Listing, name: &str) -> Row {
    listing.rows.iter().find(|row| row.name == name).expect("it is listed").clone()
}

fn granted(governor: &Governor, name: &str) -> i64 {
    row(&governor.list().unwrap(), name).granted_ns
}

/// Everybody named receives processor time from now on.
fn all_receive(governor: &Governor, names: &[&str]) {
    let before: Vec<i64> = names.iter().map(|name| granted(governor, name)).collect();
    let more = |(name, before): (&&str, &i64)| granted(governor, name) > before + 20_000_000;
    eventually("everybody receives", || names.iter().zip(&before).all(more));
}

fn replace(name: &str, kind: SchedulerKind) -> Change {
    Change::Replace { name: name.into(), kind, quantum: None, settings: Vec::new(), children: Vec::new() }
}

/// What a listing says of the hierarchy itself.
fn shape(governor: &Governor) -> Vec<(String, String, Option<String>, Option<String>)> {
    let rows = governor.list().unwrap().rows.into_iter();
    rows.map(|row| (row.name, row.kind, row.asks, row.guarantee)).collect()
}

#[test]
fn shares_become_eevdf_while_their_threads_run() {
    let Some((_alone, options)) = stage(1) else { return };
    let governor = govern(&shares(), &options);
    all_receive(&governor, &["words", "voice"]);
    let before = (granted(&governor, "words"), granted(&governor, "voice"));
    governor.change(&replace("PS", SchedulerKind::EEVDF), Insistence::Careful).unwrap();
    let listing = governor.list().unwrap();
    assert_eq!(row(&listing, "PS").kind, "eevdf");
    assert_eq!(row(&listing, "voice").asks.as_deref(), Some("share 4"));
    let after = (granted(&governor, "words"), granted(&governor, "voice"));
    assert!(after.0 >= before.0 && after.1 >= before.1, "accounts go on: {before:?} {after:?}");
    all_receive(&governor, &["words", "voice"]);
    end(&governor);
}

/// A plan is given over the socket's words, and replaces a scheduler whose threads run on in their entries.
#[test]
fn shares_become_a_plan_while_their_threads_run() {
    let Some((_alone, options)) = stage(1) else { return };
    let governor = govern(&shares(), &options);
    let ask = |settings: &[(&str, &str)]| {
        let said = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        let (name, kind, settings) = ("PS".into(), "explicit-plan".into(), said.collect());
        let command = Command::Replace { name, kind, quantum: None, settings, children: Vec::new() };
        CommandHandler::handle(&*governor, command, Insistence::Forced, ChangeAuthor::Program)
    };
    let refused = |settings: &[(&str, &str)]| match ask(settings) {
        Outcome::Refused(refusal) => refusal.reasons.join("; "),
        Outcome::Misstated(message) => message,
        other => panic!("{other:?}"),
    };
    assert!(refused(&[]).contains("lacks its plan"));
    let unknown = "a scheduler of kind explicit-plan has no \"paln\"; did you mean \"plan\"?";
    assert_eq!(refused(&[("paln", "")]), unknown);
    assert!(refused(&[("plan", "0ms,5ms")]).starts_with("plan: line 1: there are 3 columns"));
    let mistakes = refused(&[("plan", "0ms,5,words\n5ms,5ms,")]);
    assert_eq!(mistakes.lines().count(), 3, "all are said: {mistakes}");
    let words = "0ms, 10ms, words";
    assert!(refused(&[("plan", words), ("cycle", "30ms")]).contains("\"voice\" never runs"));
    assert!(
        refused(&[("plan", "0ms, 1us, words\n5ms, 5ms, voice")])
            .contains("an entry of a plan of 1us is too short")
    );
    assert_eq!(row(&governor.list().unwrap(), "PS").kind, "proportional-share");

    let plan = "start, duration, child\n0ms, 5ms, words\n10ms, 10ms, voice";
    assert!(matches!(ask(&[("plan", plan), ("cycle", "25ms")]), Outcome::Done(_)));
    assert_eq!(row(&governor.list().unwrap(), "PS").kind, "explicit-plan");
    all_receive(&governor, &["words", "voice"]);
    // Who goes leaves its entries behind, and a scheduler of shares takes the place again.
    governor.remove("words", Insistence::Forced).unwrap();
    all_receive(&governor, &["voice"]);
    let share = |name: &str| (name.to_owned(), Request::share(1.try_into().unwrap()));
    let back = Change::Replace {
        name: "PS".into(),
        kind: SchedulerKind::PROPORTIONAL_SHARE,
        quantum: None,
        settings: Vec::new(),
        children: vec![share("voice")],
    };
    governor.change(&back, Insistence::Forced).unwrap();
    all_receive(&governor, &["voice"]);
    end(&governor);
}

/// Threads of a planning scheduler ask it for pieces of work by a call and over the socket's words; what does not fit is refused.
#[test]
fn a_piece_of_work_is_accepted_or_refused() {
    let Some((_alone, options)) = stage(1) else { return };
    for kind in [SchedulerKind::RIALTO, SchedulerKind::SPRING] {
        let system = System::builder("pieces")
            .scheduler(SchedulerBuilder::new("S", kind))
            .thread(ThreadBuilder::new("one", ThreadWork::CpuBound).under("S", Request::Nothing))
            .thread(ThreadBuilder::new("other", ThreadWork::CpuBound).under("S", Request::Nothing))
            .scheduler(SchedulerBuilder::new("jobs", SchedulerKind::LANES).under("S", Request::Nothing))
            .task(TaskBuilder::new("job", Duration::from_millis(10)).wcet(Work::from_millis(1)))
            .build()
            .unwrap();
        let governor = govern(&system, &options);
        let ms = |ms| Duration::from_millis(ms);
        let piece = |work, within| Piece { after: ms(0), within: ms(within), work: ms(work).as_work() };
        let refused = |name: &str, piece| governor.constrain(name, piece).unwrap_err().to_string();
        assert!(governor.constrain("one", piece(40, 1000)).is_ok());
        assert!(refused("one", piece(1, 1000)).contains("1 "), "one at a time");
        assert!(
            matches!(governor.constrain("other", piece(980, 1000)), Err(Reason::Constraint(_))),
            "{kind}"
        );
        let too_long = "not admitted: it asks for 1ms more than can be done by its deadline, in 4ms";
        assert_eq!(refused("other", piece(5, 4)), too_long, "{kind}");
        assert!(refused("otter", piece(1, 1000)).starts_with("there is no scheduler or thread \"otter\""));
        assert!(refused("jobs", piece(1, 1000)).contains("lanes ask for their jobs"));
        governor.end_constraint("one").unwrap();
        for name in ["one", "other"] {
            let nothing = governor.end_constraint(name).unwrap_err();
            assert!(matches!(nothing, Reason::NothingAccepted(_)), "{kind}: {nothing}");
            let command = Command::EndConstraint { name: name.into() };
            assert!(matches!(
                CommandHandler::handle(&*governor, command, Insistence::Careful, ChangeAuthor::Program),
                Outcome::Misstated(_)
            ));
        }
        let command = Command::Constrain { name: "one".into(), after: ms(10), within: ms(500), work: ms(10) };
        assert!(matches!(
            CommandHandler::handle(&*governor, command.clone(), Insistence::Careful, ChangeAuthor::Program),
            Outcome::Done(_)
        ));
        assert!(matches!(
            CommandHandler::handle(&*governor, command, Insistence::Careful, ChangeAuthor::Program),
            Outcome::Refused(_)
        ));
        all_receive(&governor, &["one", "other"]);
        let turns = replace("S", SchedulerKind::ROUND_ROBIN);
        governor.change(&turns, Insistence::Careful).unwrap();
        assert!(refused("one", piece(1, 1000)).contains("round-robin"));
        end(&governor);
    }
}

#[test]
fn a_replacement_that_breaks_a_requirement_changes_nothing() {
    let Some((_alone, options)) = stage(1) else { return };
    let governor = govern(&shares(), &options);
    let before = shape(&governor);
    let round_robin = replace("PS", SchedulerKind::ROUND_ROBIN);
    let refused = governor.change(&round_robin, Insistence::Careful).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "voice: it requires PSBE 0.4 60ms, but receives NULL; NULL is not convertible to PSBE"
    );
    assert_eq!(shape(&governor), before);
    let done = governor.change(&round_robin, Insistence::Forced).unwrap();
    assert_eq!(done.warnings, [refused.to_string()]);
    let voice = done.promises.iter().find(|promised| promised.child == "voice").expect("its promise is gone");
    assert_eq!((&voice.before.is_some(), &voice.after), (&true, &None), "{voice:?}");
    assert_eq!(voice.requires.as_deref(), Some("PSBE 0.4 60ms"), "it is not promised that");
    all_receive(&governor, &["words", "voice"]);
    end(&governor);
}

/// A thread reserves, changes its reservation and goes back; what cannot be admitted is not.
#[test]
fn a_reservation_begins_changes_and_ends() {
    let Some((_alone, options)) = stage(1) else { return };
    let governor = govern(&reservations(), &options);
    let reservation = |text: &str| Request::Guarantee(text.parse().unwrap());
    let (done, _) = governor
        .spawn(
            OwnThread {
                name: "video",
                under: "BG",
                request: Request::Nothing,
                requires: None,
                blocks: Blocks::ByHandle,
            },
            Insistence::Careful,
            hog,
        )
        .unwrap();
    assert_eq!(done.promises.len(), 1, "{done:?}");
    all_receive(&governor, &["idle", "video"]);
    let under = |text| ("RES".to_owned(), reservation(text));
    let done = governor.reserve("video", under("RESBH 5ms 20ms"), Insistence::Careful).unwrap();
    assert_eq!(done.promises[0].after.as_deref(), Some("RESBH 5ms 20ms"));
    assert_eq!(governor.parking("video"), Some(Parking::Held), "its promise is a maximum now");
    let ask = |text| Change::Ask { name: "video".into(), of: None, request: reservation(text) };
    governor.change(&ask("RESBH 8ms 20ms"), Insistence::Careful).unwrap();
    let before = shape(&governor);
    let more = Change::Move { name: "idle".into(), under: vec![under("RESBH 15ms 20ms")] };
    let refused = governor.change(&more, Insistence::Forced).unwrap_err();
    assert!(refused.to_string().starts_with("RES: "), "admission is not forced: {refused}");
    assert_eq!(shape(&governor), before);
    all_receive(&governor, &["idle", "video"]);
    governor.release("video", Insistence::Careful).unwrap();
    assert_eq!(governor.parking("video"), Some(Parking::WorkConserving));
    assert_eq!(row(&governor.list().unwrap(), "video").parent.as_deref(), Some("BG"));
    assert!(matches!(governor.release("video", Insistence::Careful), Err(Reason::NothingReserved(_))));
    all_receive(&governor, &["idle", "video"]);
    end(&governor);
}

#[test]
fn commands_come_and_go_and_who_is_killed_is_forgotten() {
    let Some((_alone, options)) = stage(1) else { return };
    let governor = govern(&shares(), &options);
    let add = |name: &str, words: &[&str]| Change::AddThread {
        name: name.into(),
        work: ThreadWork::Command(words.iter().map(|word| (*word).into()).collect()),
        requires: None,
        under: "PS".into(),
        request: share(1),
    };
    let endless = ["sh", "-c", "ulimit -t 60; while :; do :; done"];
    let before = shape(&governor);
    let missing = governor.change(&add("none", &["/no/such/program"]), Insistence::Forced).unwrap_err();
    assert!(matches!(missing, Reason::Admit(AdmitError::Command { .. })), "{missing}");
    assert_eq!(shape(&governor), before, "what could not be started is not there");
    governor.change(&add("one", &endless), Insistence::Forced).unwrap();
    governor.change(&add("two", &endless), Insistence::Forced).unwrap();
    all_receive(&governor, &["words", "voice", "one", "two"]);
    let tid = |name: &str| {
        let members = governor.with_set(ManagedSet::members).unwrap();
        let member = members.into_iter().find(|(own, _)| own == name).expect("a member").1;
        governor.with_set(|set| set.threads_of(member)).unwrap()[0]
    };
    let (one, two) = (tid("one"), tid("two"));
    governor.remove("one", Insistence::Forced).unwrap();
    let raw = rustix::process::Pid::from_raw(one as i32).unwrap();
    let policy = sched::get(Some(raw)).unwrap();
    assert_eq!(policy, sched::Policy::Other, "it goes on as an ordinary one");
    rustix::process::test_kill_process(raw).unwrap();
    let two = rustix::process::Pid::from_raw(two as i32).unwrap();
    rustix::process::kill_process(two, rustix::process::Signal::KILL).unwrap();
    eventually("it is missed", || governor.list().unwrap().rows.iter().all(|row| row.name != "two"));
    assert!(governor.description().threads.iter().all(|thread| !["one", "two"].contains(&&*thread.name)));
    all_receive(&governor, &["words", "voice"]);
    end(&governor);
}

#[test]
fn a_flood_of_threads_ends_with_a_clear_refusal() {
    let Some((_alone, mut options)) = stage(1) else { return };
    options.members_max = 6;
    let governor = govern(&reservations(), &options);
    let mut refused = None;
    for number in 0..20 {
        let name = format!("t{number}");
        let (request, blocks) = (Request::Nothing, Blocks::ByHandle);
        let thread = OwnThread { name: &name, under: "BG", request, requires: None, blocks };
        if let Err(reason) = governor.spawn(thread, Insistence::Careful, hog) {
            refused = Some((number, reason.to_string()));
            break;
        }
    }
    assert_eq!(refused, Some((5, "t5: at most 6 members are managed at a time".into())));
    assert_eq!(governor.description().threads.len(), 6);
    all_receive(&governor, &["idle", "t0", "t4"]);
    end(&governor);
}

#[test]
fn somebody_asked_for_the_impossible_says_so() {
    let Some((_alone, options)) = stage(1) else { return };
    let governor = govern(&reservations(), &options);
    let before = shape(&governor);
    let under = ("RES".to_owned(), share(3));
    let moved = Change::Move { name: "idle".into(), under: vec![under] };
    let refused = governor.change(&moved, Insistence::Forced).unwrap_err();
    assert!(matches!(refused, Reason::Refused(Refused::Rules(_))), "{refused}");
    assert!(refused.to_string().contains("asks the reservation scheduler \"RES\" for share 3"), "{refused}");
    let quantum = Some("1ns".parse().unwrap());
    let short = Change::Replace {
        name: "BG".into(),
        kind: SchedulerKind::ROUND_ROBIN,
        quantum,
        settings: vec![],
        children: vec![],
    };
    let refused = governor.change(&short, Insistence::Forced).unwrap_err();
    assert!(matches!(refused, Reason::ShortQuantum(_)), "{refused}");
    assert_eq!(shape(&governor), before);
    end(&governor);
}

/// Changes by a call, through the socket and by a thread that returns are told apart in the records.
#[test]
fn records_tell_who_has_changed_the_hierarchy_and_why() {
    let Some((_alone, options)) = stage(1) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rings");
    let governor = govern_recorded(&reservations(), &options, &path);
    let mut operator = Operator::open(&path).unwrap();
    operator.switch(&"hls".parse().unwrap(), Switching::On).unwrap();
    let sockets = Sockets::at(&folder.path().join("control")).unwrap();
    let _server = Server::start(&sockets, "test", governor.clone()).unwrap();
    let client = Client::of(&sockets.find("test").unwrap());
    all_receive(&governor, &["idle"]);

    let brief = |name| OwnThread {
        name,
        under: "BG",
        request: Request::Nothing,
        requires: None,
        blocks: Blocks::ByHandle,
    };
    governor.spawn(brief("brief"), Insistence::Careful, |_| ()).unwrap();
    let is_there = |name: &str| governor.list().unwrap().rows.iter().any(|row| row.name == name);
    eventually("it has returned", || !is_there("brief"));
    let name = "RES".to_owned();
    let ask = Command::Change { name, of: None, asks: EdgeRequest::Priority(7) };
    assert!(matches!(client.ask(&ask, Insistence::Careful), Ok(Outcome::Done(_))));
    let command = Program::Command(vec!["/nonexistent/program".into()]);
    let under = ParentRequest { scheduler: "BG".into(), asks: EdgeRequest::Nothing };
    let add = Command::AddThread { name: "never".into(), program: command, requires: None, under };
    assert!(matches!(client.ask(&add, Insistence::Careful), Ok(Outcome::Refused(_))));
    governor.change(&replace("BG", SchedulerKind::FIFO), Insistence::Careful).unwrap();
    governor.remove("idle", Insistence::Careful).unwrap();
    governor.with_set(ManagedSet::close_run).unwrap().unwrap();
    end(&governor);

    let trace = TraceFile::open(&path).unwrap();
    let mut metadata = trace.metadata().clone();
    trace.directory().unwrap().definitions().iter().for_each(|definition| metadata.define(definition));
    let mut records = Vec::new();
    trace.replay(&mut records).unwrap();
    let told: Vec<_> = records
        .iter()
        .filter_map(EdgeChange::read)
        .map(|change| {
            let (what, by, why) = (change.what.known(), change.by.known(), change.why.known());
            match by {
                Some(event::ChangeAuthor::Operator) => {
                    let user = rustix::process::getuid().as_raw();
                    assert_eq!((change.process, change.user), (std::process::id(), user));
                }
                _ => assert_eq!((change.process, change.user), (0, 0)),
            }
            (metadata.edges[usize::from(change.edge)].name(), what.unwrap(), by.unwrap(), why.unwrap())
        })
        .collect();
    let expected = [
        ("BG to brief", ChangeKind::Added, event::ChangeAuthor::Program, ChangeReason::ThreadAdded),
        ("BG to brief", ChangeKind::Removed, event::ChangeAuthor::Member, ChangeReason::Ended),
        ("FP to RES", ChangeKind::Altered, event::ChangeAuthor::Operator, ChangeReason::RequestChanged),
        ("FP to BG", ChangeKind::Altered, event::ChangeAuthor::Program, ChangeReason::SchedulerReplaced),
        ("BG to idle", ChangeKind::Altered, event::ChangeAuthor::Program, ChangeReason::SchedulerReplaced),
        ("BG to idle", ChangeKind::Removed, event::ChangeAuthor::Program, ChangeReason::ThreadRemoved),
    ];
    assert_eq!(told, expected.map(|(edge, what, by, why)| (edge.to_owned(), what, by, why)));
}

// Through the socket.

struct Served {
    governor: Arc<Governor>,
    server: Server,
    client: Client,
    _folder: tempfile::TempDir,
}

fn serve(system: &System, options: &Options) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let sockets = Sockets::at(&folder.path().join("control")).unwrap();
    let governor = govern(system, options);
    let server = Server::start(&sockets, "test", governor.clone()).unwrap();
    let again = Server::start(&sockets, "test", governor.clone());
    assert!(matches!(again, Err(ServeError::Taken(_))));
    let client = Client::of(&sockets.find("test").unwrap());
    Served { governor, server, client, _folder: folder }
}

impl Served {
    fn ask(&self, command: Command) -> Outcome {
        self.client.ask(&command, Insistence::Careful).unwrap()
    }

    fn listing(&self) -> Listing {
        let Outcome::Listing(listing) = self.ask(Command::List) else { panic!("no listing") };
        listing
    }

    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.server.path()).unwrap()
    }
}

#[test]
fn the_socket_is_the_owners_alone_and_goes_with_the_server() {
    let Some((_alone, options)) = stage(1) else { return };
    let served = serve(&shares(), &options);
    let path = served.server.path().to_owned();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
    let Served { governor, server, client, _folder } = served;
    end(&governor);
    assert_eq!(client.ask(&Command::List, Insistence::Careful).unwrap(), Outcome::Ended);
    drop(server);
    assert!(!path.exists());
    client.ask(&Command::List, Insistence::Careful).unwrap_err();
}

#[test]
fn a_client_changes_the_hierarchy_and_is_told_why_not() {
    let Some((_alone, options)) = stage(1) else { return };
    let served = serve(&shares(), &options);
    assert_eq!(served.listing().rows.len(), 3);
    let replace = |kind: SchedulerKind| {
        let (name, quantum, children) = ("PS".into(), Some("5ms".parse().unwrap()), Vec::new());
        let kind = kind.to_string();
        Command::Replace { name, kind, quantum, settings: BTreeMap::new(), children }
    };
    let Outcome::Done(_) = served.ask(replace(SchedulerKind::EEVDF)) else { panic!("it is possible") };
    assert_eq!(row(&served.listing(), "PS").kind, "eevdf");
    let Outcome::Refused(refusal) = served.ask(replace(SchedulerKind::LOTTERY)) else { panic!("it is not") };
    assert!(refusal.reasons[0].starts_with("voice: it requires PSBE 0.4 60ms"), "{refusal:?}");
    assert_eq!(refusal.force, Force::Helps);
    assert!(refusal.remedy.is_some());
    let under = ParentRequest { scheduler: "PS".into(), asks: EdgeRequest::Share(1.try_into().unwrap()) };
    let program = Program::Process { number: 1 << 22, children: ChildProcesses::All };
    let nobody = Command::AddThread { name: "x".into(), program, requires: None, under };
    let Outcome::Refused(refusal) = served.client.ask(&nobody, Insistence::Forced).unwrap() else {
        panic!("there is no such process")
    };
    assert_eq!(refusal.reasons, ["x: there is no process 4194304"]);
    let Outcome::Misstated(message) = served.ask(Command::Remove { name: "wrods".into() }) else {
        panic!("nobody is called that")
    };
    assert_eq!(message, "there is no scheduler or thread \"wrods\"; there is PS, words, voice");
    all_receive(&served.governor, &["words", "voice"]);
    end(&served.governor);
}

fn answer_to(stream: &mut UnixStream, request: &[u8]) -> Outcome {
    stream.write_all(request).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str::<Answer>(&line).unwrap().outcome
}

#[test]
fn hostile_clients_disturb_nobody() {
    let Some((_alone, options)) = stage(1) else { return };
    let served = serve(&shares(), &options);
    let garbage: [&[u8]; 6] = [
        b"\n",
        b"\xff\xfe\x00 hello\n",
        b"{\"version\":2}\n",
        b"{\"version\":99,\"command\":\"list\"}\n",
        b"{\"version\":2,\"command\":{\"add-thread\":{\"name\":7}}}\n",
        b"{\"version\":2,\"command\":\"list\",\"more\":1}\n",
    ];
    let mut stream = served.connect();
    for request in garbage {
        let outcome = answer_to(&mut stream, request);
        assert!(matches!(outcome, Outcome::Misstated(_)), "{outcome:?}");
    }
    // The same connection is good for something still.
    assert!(matches!(answer_to(&mut stream, b"{\"version\":2,\"command\":\"list\"}\n"), Outcome::Listing(_)));
    // A hundred levels of brackets and more.
    let deep = [b"{\"version\":2,\"command\":".as_slice(), &[b'['; 20_000], b"\n"].concat();
    assert!(matches!(answer_to(&mut stream, &deep), Outcome::Misstated(_)));
    drop(stream);
    // Half a line, and then nothing more.
    let mut half = served.connect();
    half.write_all(b"{\"version\":2,").unwrap();
    half.shutdown(Shutdown::Write).unwrap();
    assert_eq!(half.read(&mut [0; 16]).unwrap(), 0, "there is no answer to half a line");
    // A line without an end.
    let mut endless = served.connect();
    let sent = (0..10 << 10).try_for_each(|_| endless.write_all(&[b'x'; 1024]));
    sent.expect_err("nobody reads ten megabytes");
    drop(endless);
    // Many who say nothing, or not all of it, or ask and do not listen: whoever asks is answered at once, and is not told that it is busy.
    let mut silent: Vec<UnixStream> = (0..100).map(|_| served.connect()).collect();
    silent.iter_mut().step_by(2).for_each(|stream| drop(stream.write_all(b"{\"version\":2,")));
    let deaf: Vec<UnixStream> = (0..20)
        .map(|_| {
            let mut stream = served.connect();
            stream.set_nonblocking(true).unwrap();
            let requests = b"{\"version\":2,\"command\":\"list\"}\n".repeat(2_000);
            let _as_much_as_there_is_room_for = stream.write(&requests);
            stream
        })
        .collect();
    for _ in 0..10 {
        let outcome = answer_to(&mut served.connect(), b"{\"version\":2,\"command\":\"list\"}\n");
        assert!(matches!(outcome, Outcome::Listing(_)), "{outcome:?}");
    }
    assert_eq!(served.listing().rows.len(), 3);
    drop((silent, deaf));
    all_receive(&served.governor, &["words", "voice"]);
    end(&served.governor);
}
