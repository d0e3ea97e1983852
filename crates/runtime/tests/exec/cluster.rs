//! Nodes as processes. The processes are this test binary again, started with one of the ignored tests.
//!
//! How far another process has got cannot be waited for without its help, so it leaves a file when it is there and
//! the test looks for that, for as long as no machine needs.

use super::*;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;
use talea_event::qos::QosSettings;
use talea_measure::eventually;
use talea_model::{
    EventTake, InputBuilder, Late, LinkBuilder, LossRate, OperationId, OutputBuilder, PublicationBuilder,
    SubscriptionBuilder, SubtaskBuilder,
};
use talea_policy::demand::{MessageWay, Passage};
use talea_record::LossReason;
use talea_record::event::{Deliver, MessageLost, NodeLeft, Receive, Send};
use talea_runtime::cluster::{ClusterError, Membership, run_cluster};
use talea_runtime::{
    JobContext, Links, LostNodes, Mishaps, OutputKind, Ports, StopHandle, Stopped, SyntheticValue,
};

/// Tells a member what to do besides its jobs.
const CASE: &str = "TALEA_TEST_CASE";
/// Where members leave their process numbers, and the run's directory.
const PLACE: &str = "TALEA_TEST_PLACE";
/// The directory of a run, as its members are told.
const DIRECTORY: &str = "TALEA_CLUSTER_DIRECTORY";

/// Back and forth between two processes, instance by instance, however late they are.
fn ping_pong() -> System {
    rally([])
}

/// The same, with a way there that promises much and a way back that promises nothing.
fn rally_with_promises() -> System {
    let there = LinkBuilder::from_to("one", "two").delay(ms(60_000));
    rally([there, LinkBuilder::from_to("two", "one")])
}

/// The same, over links that delay and lose messages in both directions.
fn rally_over_lossy_links() -> System {
    rally([lossy_link()])
}

/// The system of a case.
fn system_of(case: &str) -> System {
    match case {
        "promised" => rally_with_promises(),
        "imposed" => rally_over_lossy_links(),
        "values" | "unread" => rally_with_values(),
        "taken" => collecting(),
        _ => ping_pong(),
    }
}

/// The options of a case, of coordinator and members alike.
fn options_of(case: &str) -> RunOptions {
    let links = if matches!(case, "imposed" | "values") { Links::Impose } else { Links::Judge };
    RunOptions { links, ..options(RtMode::Warn, duration_of(case)) }
}

fn step(name: &str, node: &str) -> SubtaskBuilder {
    SubtaskBuilder::new(name).wcet(Work::from_nanos(100_000)).on(node)
}

fn rally(links: impl IntoIterator<Item = LinkBuilder>) -> System {
    let steps = [
        step("serve", "one"),
        step("left", "two").after(["serve"]),
        step("right", "two").after(["serve"]),
        step("catch", "one").after(["left", "right"]),
    ];
    rally_of(steps, links)
}

/// The same, over lossy links, handing values on.
fn rally_with_values() -> System {
    let value = |name: &str, from: &str| InputBuilder::new(name).from(from);
    let (served, passed) = (|| value("served", "rally.serve.served"), || OutputBuilder::new("passed"));
    let steps = [
        step("serve", "one").output(OutputBuilder::new("served")),
        step("left", "two").after(["serve"]).input(served()).output(passed()),
        step("right", "two").after(["serve"]).input(served()).output(passed()),
        step("catch", "one")
            .after(["left", "right"])
            .input(value("left", "rally.left.passed"))
            .input(value("right", "rally.right.passed")),
    ];
    rally_of(steps, [lossy_link()])
}

/// A channel on each of two nodes, and who takes all that waits there: an operation by itself, and one that the other node's releases.
fn collecting() -> System {
    let push = |name: &str, node: &str, channel: &str| {
        let event = PublicationBuilder::new(channel, format!("T/{node}"));
        TaskBuilder::new(name, ms(2)).subtask(step("s", node).event(event))
    };
    let all = |channel: &str| SubscriptionBuilder::new(channel).take(EventTake::All);
    system(Strategy::Edf)
        .late(Late::None)
        .node("one", [0])
        .node("two", [0])
        .channel("here", QosSettings::new())
        .channel("there", QosSettings::new())
        .task(push("first", "one", "here"))
        .task(push("second", "two", "there"))
        .task(TaskBuilder::new("alone", ms(20)).subtask(step("s", "one").subscription(all("here"))))
        .task(
            TaskBuilder::new("behind", ms(20))
                .subtask(step("ask", "one"))
                .subtask(step("answer", "two").after(["ask"]).subscription(all("there"))),
        )
        .build()
        .expect("a system")
}

#[test]
fn operations_of_each_process_take_all_that_waits_on_their_node() {
    let _alone = alone();
    let clustered = run_case("taken", &StopHandle::new());
    let outcome = clustered.outcome.expect("it runs");
    let ran = Ran { outcome, records: clustered.records, system: collecting() };
    let mut taken: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for Deliver { job, from, .. } in ran.records.iter().filter_map(Deliver::read) {
        let from = from.expect("a job has pushed it");
        let pushed_by = if ran.name(job) == "alone.s" { "first.s" } else { "second.s" };
        assert_eq!(ran.name(from), pushed_by, "a channel is within one node");
        taken.entry(ran.name(job)).or_default().push((job.instance, from.instance));
    }
    assert_eq!(taken.keys().copied().collect::<Vec<_>>(), ["alone.s", "behind.answer"]);
    for (name, taken) in &taken {
        let events: Vec<u64> = taken.iter().map(|(_, event)| *event).collect();
        assert_eq!(events, (0..events.len() as u64).collect::<Vec<_>>(), "{name}: all, in their order");
        let most = taken.chunk_by(|one, other| one.0 == other.0).map(<[_]>::len).max();
        assert!(events.len() > 50 && most > Some(5), "{name}: {taken:?}");
    }
}

fn lossy_link() -> LinkBuilder {
    let loss = LossRate::from_share(0.2).expect("a share");
    LinkBuilder::others().delay(ms(2)).jitter(ms(4)).loss(loss)
}

fn rally_of(
    steps: impl IntoIterator<Item = SubtaskBuilder>,
    links: impl IntoIterator<Item = LinkBuilder>,
) -> System {
    let task = TaskBuilder::new("rally", ms(5)).deadline(ms(50));
    let task = steps.into_iter().fold(task, TaskBuilder::subtask);
    let system = system(Strategy::Edf).late(Late::None).node("one", [0]).node("two", [0]);
    links.into_iter().fold(system.task(task), |system, link| system.link(link)).build().expect("a system")
}

fn member_command(case: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command
        .args(["exec::cluster::as_member", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(CASE, case);
    command
}

/// All runs but one are ended by what happens in them.
fn duration_of(case: &str) -> i64 {
    match case {
        "planned" | "promised" => 100,
        "imposed" | "values" | "unread" | "taken" => 500,
        _ => 60_000,
    }
}

#[test]
#[ignore = "run by the tests below in processes of their own"]
fn as_member() {
    let Some(membership) = Membership::from_environment() else { return };
    let case = std::env::var(CASE).expect("the test says which case this is");
    let node = membership.node().to_owned();
    let extra = {
        let (case, node) = (case.clone(), node.clone());
        move |context: &JobContext<'_>| match (case.as_str(), node.as_str(), context.instance()) {
            ("killed" | "survived", "two", 20) => {
                // SAFETY: ends this process, which is what the test is about.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            }
            ("orphaned" | "stopped", "two", 5) | ("whole", "one", 10) | ("survived", "one", 200) => {
                leave_pid()
            }
            _ => {}
        }
    };
    let operation = match (node.as_str(), case.as_str()) {
        ("two", _) => "rally.left",
        // After the other node has gone, nothing is caught.
        (_, "survived") => "rally.serve",
        _ => "rally.catch",
    };
    let operations = match case.as_str() {
        "values" => passing_values_on(),
        "taken" => Operations::synthetic(),
        "unread" => refusing_values(),
        _ => Operations::synthetic().with(operation, extra),
    };
    if case == "mute" && node == "two" {
        let directory = PathBuf::from(std::env::var_os(DIRECTORY).expect("a member's"));
        let _mute = UnixStream::connect(directory.join("control")).expect("the coordinator listens");
        leave_pid();
        // Until the coordinator ends this process.
        loop {
            std::thread::park();
        }
    }
    if case == "refused" && node == "two" {
        let wrong = Operations::synthetic().with("raly.left", |_| ());
        membership.run(&ping_pong(), wrong, options(RtMode::Warn, duration_of(&case))).expect_err("refused");
        return;
    }
    let result = membership.run(&system_of(&case), operations, options_of(&case));
    if case != "orphaned" {
        result.expect("the member takes part");
    }
}

/// What is served goes to the other node and comes back from both branches there. An operation that finds something else panics.
fn passing_values_on() -> Operations {
    fn plain<T: bytemuck::Pod>() -> OutputKind<T> {
        OutputKind::any().plain()
    }
    let pass_on = |by: u64| {
        move |ports: &mut Ports<'_>| {
            let served = ports.input::<u64>("served");
            let passed = ports.output_of::<[u64; 2]>("passed", plain(), Default::default);
            move |job: &JobContext<'_>| {
                let served = *job.get(served).expect("served");
                assert_eq!(served, job.instance());
                job.set(passed, [served, by]);
            }
        }
    };
    Operations::synthetic()
        .with_ports("rally.serve", |ports| {
            let served = ports.output_of::<u64>("served", plain(), Default::default);
            move |job: &JobContext<'_>| job.set(served, job.instance())
        })
        .with_ports("rally.left", pass_on(1))
        .with_ports("rally.right", pass_on(2))
        .with_ports("rally.catch", |ports| {
            let passed = ["left", "right"].map(|name| ports.input::<[u64; 2]>(name));
            move |job: &JobContext<'_>| {
                for (passed, by) in passed.into_iter().zip(1..) {
                    assert_eq!(job.get(passed), Some(&[job.instance(), by]));
                }
            }
        })
}

/// What `serve` sends cannot be decoded; the others are synthetic.
fn refusing_values() -> Operations {
    let encode = |_: &SyntheticValue, to: &mut [u8]| (!to.is_empty()).then_some(1);
    let refused = OutputKind::<SyntheticValue>::any().encoded(encode, |_, _| false);
    Operations::synthetic().with_ports("rally.serve", |ports| {
        let served = ports.output_of("served", refused, SyntheticValue::default);
        move |job: &JobContext<'_>| drop(job.write(served))
    })
}

/// Says that this process has got so far.
fn leave_pid() {
    let place = PathBuf::from(std::env::var_os(PLACE).expect("the test says where"));
    let directory = std::env::var(DIRECTORY).expect("a member's");
    std::fs::write(place.join("directory"), directory).expect("writable");
    std::fs::write(place.join("pid"), std::process::id().to_string()).expect("writable");
}

struct Clustered {
    outcome: Result<talea_runtime::Outcome, ClusterError>,
    records: Vec<Record>,
}

fn run_case(case: &str, stop: &StopHandle) -> Clustered {
    run_by(case, stop, |_| member_command(case))
}

/// Tells the members where to leave their numbers.
fn run_placed(case: &str, stop: &StopHandle, place: &Path) -> Clustered {
    run_by(case, stop, |_| {
        let mut command = member_command(case);
        command.env(PLACE, place);
        command
    })
}

fn run_by(case: &str, stop: &StopHandle, command: impl FnMut(&str) -> Command) -> Clustered {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = directory.path().join("log");
    let stop = stop.clone();
    let lost_nodes = if case == "survived" { LostNodes::GoOn } else { LostNodes::EndRun };
    let options = RunOptions { keep_log: Some(log.clone()), stop, lost_nodes, ..options_of(case) };
    let outcome = run_cluster(&system_of(case), &options, command);
    let records = outcome.as_ref().map_or_else(|_| Vec::new(), |_| records_of(&log));
    Clustered { outcome, records }
}

#[test]
fn two_processes_make_one_run() {
    let _alone = alone();
    let stop = StopHandle::new();
    let place = tempfile::tempdir().expect("a temporary directory");
    let stopper = stop_when_there(&place.path().join("pid"), &stop);
    let clustered = run_placed("whole", &stop, place.path());
    stopper.join().expect("it stops");
    let ran =
        Ran { outcome: clustered.outcome.expect("it runs"), records: clustered.records, system: ping_pong() };
    ran.check_lives();
    assert_eq!(ran.outcome.stopped, Stopped::Interrupted);
    assert_eq!(ran.outcome.mishaps, talea_runtime::Mishaps::default());
    let caught = ran.count(Event::COMPLETE, "rally.catch");
    assert!(caught >= 10, "the eleventh had begun, but only {caught} are caught");
    for instance in 0..caught as u64 {
        let sequence = [
            ran.position(Event::COMPLETE, "rally.serve", instance),
            ran.position(Event::COMPLETE, "rally.left", instance).max(ran.position(
                Event::COMPLETE,
                "rally.right",
                instance,
            )),
            ran.position(Event::RELEASE, "rally.catch", instance),
        ];
        assert!(sequence.is_sorted() && sequence[0].is_some(), "{instance}: {sequence:?}");
    }
    assert_eq!(ran.records.iter().filter(|record| record.event == Event::RUN_START).count(), 2);
    assert!(ran.outcome.threads.iter().any(|thread| thread.name == "rcv:two"));
}

#[test]
fn all_members_end_as_planned() {
    let _alone = alone();
    let clustered = run_case("planned", &StopHandle::new());
    let outcome = clustered.outcome.expect("it runs");
    assert_eq!(outcome.stopped, Stopped::Completed);
    assert_eq!(outcome.mishaps, talea_runtime::Mishaps::default());
    let ends = clustered.records.iter().filter(|record| record.event == Event::RUN_END);
    assert_eq!(ends.count(), 2);
}

#[test]
fn messages_that_take_longer_than_their_link_promises_are_counted() {
    let _alone = alone();
    let clustered = run_case("promised", &StopHandle::new());
    let outcome = clustered.outcome.expect("it runs");
    let Mishaps { slow_messages, slowest_excess_ns, .. } = outcome.mishaps;
    let system = rally_with_promises();
    let to_one = |record: &&Record| {
        record.event == Event::RECEIVE
            && system.operations()[record.job().operation.index()].name == "rally.catch"
    };
    let back = clustered.records.iter().filter(to_one).count() as u64;
    assert!(back > 0 && slow_messages == back, "{slow_messages} of {back}, which all took some time");
    assert!((1..60_000_000_000).contains(&slowest_excess_ns));
    let sent = clustered.records.iter().filter(to_one).map(|record| record.words[0] as i64);
    let received = clustered.records.iter().filter(to_one).map(|record| record.time.as_nanos());
    assert!(sent.zip(received).all(|(sent, received)| 0 < sent && sent <= received), "both clocks are one");
}

/// Each message is lost, or takes as long, as the simulator has it.
#[test]
fn imposed_links_delay_and_lose_the_messages_that_a_simulation_does() {
    let _alone = alone();
    let clustered = run_case("imposed", &StopHandle::new());
    let system = rally_over_lossy_links();
    let ran = Ran {
        outcome: clustered.outcome.expect("it runs"),
        records: clustered.records,
        system: system.clone(),
    };
    let passage = |from: JobId, to: OperationId| {
        let node = |operation: OperationId| system.subtask(operation).node;
        let route = system.route(node(from.operation), node(to));
        MessageWay::new(system.seed, from.operation, to, route).passage(from.instance)
    };
    let ended =
        ran.records.iter().filter(|record| record.event == Event::RUN_END).map(|record| record.time).min();
    let ended = ended.expect("both say so");
    let (mut lost, mut sent) = (0, HashMap::new());
    for record in ran.records.iter().filter(|record| record.time < ended) {
        if let Some(message) = MessageLost::read(record) {
            let to = OperationId::from_index(message.to as usize);
            assert_eq!(
                (passage(message.job, to), message.why == LossReason::Link),
                (Passage::Lost, true),
                "{message:?}"
            );
            lost += 1;
        } else if let Some(message) = Send::read(record) {
            let to = OperationId::from_index(message.to as usize);
            let Passage::Arrives(time) = passage(message.job, to) else {
                panic!("{message:?} is to be lost")
            };
            assert!(time >= ms(2), "as long as the link takes");
            sent.insert((message.job.instance, to, record.time), time);
        }
    }
    let mut received = 0;
    for record in &ran.records {
        let Some(message) = Receive::read(record) else { continue };
        let (to, at) = (message.job.operation, message.sent.expect("known"));
        if let Some(time) = sent.get(&(message.job.instance, to, at)) {
            assert!(
                record.time - at >= *time,
                "{message:?} comes after {:?}, not {time:?}",
                record.time - at
            );
            received += 1;
        }
    }
    assert!(lost > 0 && received > 0, "{lost} lost, {received} received");
    let Mishaps { lost_on_links, unheld, unsent, .. } = ran.outcome.mishaps;
    assert!(lost_on_links >= lost && (unheld, unsent) == (0, 0), "{:?}", ran.outcome.mishaps);
    assert!((lost..=lost_on_links).contains(&ran.outcome.report.tasks[0].messages_lost));
}

#[test]
fn values_go_from_process_to_process_over_links_that_hold_them() {
    let _alone = alone();
    let Clustered { outcome, records } = run_case("values", &StopHandle::new());
    let ran = Ran { outcome: outcome.expect("it runs"), records, system: rally_with_values() };
    let Mishaps { panics, values_unsent, values_unread, .. } = &ran.outcome.mishaps;
    assert_eq!((&panics[..], *values_unsent, *values_unread), (&[][..], 0, 0));
    assert!(ran.count(Event::COMPLETE, "rally.catch") > 0, "some have come back");
    // Each message has one value, for the one input of whom it tells, or for that of its sender.
    let mut lost: BTreeMap<String, u64> = BTreeMap::new();
    for message in ran.records.iter().filter_map(MessageLost::read) {
        let name = |operation: usize| ran.system.operations()[operation].name.clone();
        let (from, to) = (name(message.job.operation.index()), name(message.to as usize));
        let input = if from == "rally.serve" { "served" } else { from.trim_start_matches("rally.") };
        *lost.entry(format!("{to}.{input}")).or_default() += 1;
    }
    let Mishaps { lost_values, lost_on_links, .. } = &ran.outcome.mishaps;
    let told: BTreeMap<String, u64> = lost_values.iter().map(|one| (one.input.clone(), one.lost)).collect();
    assert_eq!(told.len(), lost_values.len(), "each input is told once: {lost_values:?}");
    assert_eq!(told.values().sum::<u64>(), *lost_on_links, "{lost_values:?}");
    assert!(
        !lost.is_empty() && lost.iter().all(|(input, lost)| told.get(input) >= Some(lost)),
        "{lost:?}, {told:?}"
    );
}

#[test]
fn values_that_cannot_be_decoded_are_counted_and_the_message_is_not_lost() {
    let _alone = alone();
    let Clustered { outcome, records } = run_case("unread", &StopHandle::new());
    let ran = Ran { outcome: outcome.expect("it runs"), records, system: rally_with_values() };
    let Mishaps { panics, values_unsent, values_unread, .. } = &ran.outcome.mishaps;
    assert_eq!((&panics[..], *values_unsent), (&[][..], 0));
    let completed = |operation: &str| ran.count(Event::COMPLETE, operation) as u64;
    assert!((1..=2 * completed("rally.serve")).contains(values_unread), "{values_unread}");
    assert!(completed("rally.catch") > 0, "they are released all the same");
}

#[test]
fn links_are_not_imposed_where_no_messages_go_between_nodes() {
    let options = RunOptions { links: Links::Impose, ..options(RtMode::Off, 100) };
    let refused = Executive::prepare(&rally_over_lossy_links(), Operations::synthetic(), options);
    let Err(error) = refused else { panic!("both nodes are in this process") };
    assert!(error.to_string().contains("in processes of their own"), "{error}");
}

#[test]
fn a_killed_member_ends_the_run_and_is_named() {
    let _alone = alone();
    let clustered = run_case("killed", &StopHandle::new());
    let outcome = clustered.outcome.expect("a run that began has an outcome");
    assert_eq!(outcome.stopped, Stopped::Interrupted);
    let [lost] = &outcome.mishaps.lost_nodes[..] else { panic!("{:?}", outcome.mishaps) };
    assert!(lost.node == "two" && lost.how.contains("SIGKILL"), "{lost:?}");
    let left =
        ping_pong().operations().iter().find(|operation| operation.name == "rally.left").expect("there").id;
    let done = |record: &&Record| record.event == Event::COMPLETE && record.job().operation == left;
    assert_eq!(clustered.records.iter().filter(done).count(), 20, "what it had recorded is there");
}

/// The other node goes on, hears who has left, and sends it nothing more.
#[test]
fn a_node_goes_on_without_a_killed_one_and_says_what_it_could_not_send() {
    let _alone = alone();
    let run = || {
        let stop = StopHandle::new();
        let place = tempfile::tempdir().expect("a temporary directory");
        let stopper = stop_when_there(&place.path().join("pid"), &stop);
        let Clustered { outcome, records } = run_placed("survived", &stop, place.path());
        stopper.join().expect("it stops");
        Ran { outcome: outcome.expect("it runs"), records, system: ping_pong() }
    };
    // A coordinator that does not run for the better part of a second has heard of nothing.
    let ran = run_given(run, |ran| ran.outcome.mishaps.to_left > 0);
    let mishaps = &ran.outcome.mishaps;
    let [lost] = &mishaps.lost_nodes[..] else { panic!("{mishaps:?}") };
    assert!(lost.node == "two" && lost.how.contains("SIGKILL") && lost.after_ns > 100_000_000, "{lost:?}");
    assert_eq!((mishaps.unsent, mishaps.overflows), (0, 0), "what is refused has its own count");
    let left: Vec<NodeLeft> = ran.records.iter().filter_map(NodeLeft::read).collect();
    assert!(matches!(left[..], [NodeLeft { left: 1, node: 0, epoch: 1.. }]), "{left:?}");
    let heard = ran.records.iter().find(|record| record.event == Event::NODE_LEFT).expect("there").time;
    let refused = || ran.records.iter().filter(|record| record.event == Event::MESSAGE_LOST);
    assert_eq!(refused().count() as u64, mishaps.to_left);
    for record in refused() {
        let lost = MessageLost::read(record).expect("one");
        assert!(lost.why == LossReason::Left && ran.name(lost.job) == "rally.serve");
    }
    // Of a job that ended just before that, both messages may be refused just behind it.
    let mut early: Vec<JobId> = refused().filter(|record| record.time < heard).map(Record::job).collect();
    early.dedup();
    assert!(
        early.len() <= 1,
        "{early:?}: {:?}",
        refused().map(|record| record.time - heard).collect::<Vec<_>>()
    );
    let served = |record: &&Record| record.event == Event::SEND && record.time > heard;
    assert_eq!(ran.records.iter().filter(served).count(), 0, "nothing more is sent");
    let report = &ran.outcome.report;
    let (two, rally) = (&report.nodes[1], &report.tasks[0]);
    let noted = two.left_ns.expect("the report says when");
    assert!(noted >= 100_000_000 && report.nodes[0].left_ns.is_none(), "{noted}");
    assert_eq!(rally.messages_lost, mishaps.to_left);
    assert!(
        rally.cut_off >= mishaps.to_left / 2 && rally.completed + rally.cut_off <= rally.released,
        "{rally:?}"
    );
}

#[test]
fn a_stop_reaches_all_members() {
    let _alone = alone();
    let stop = StopHandle::new();
    let place = tempfile::tempdir().expect("a temporary directory");
    let stopper = stop_when_there(&place.path().join("pid"), &stop);
    match run_placed("stopped", &stop, place.path()).outcome {
        Ok(outcome) => {
            assert_eq!(outcome.stopped, Stopped::Interrupted);
            assert!(outcome.mishaps.lost_nodes.is_empty(), "{:?}", outcome.mishaps);
        }
        Err(error) => assert!(matches!(error, ClusterError::Stopped), "{error}"),
    }
    stopper.join().expect("it stops");
}

#[test]
fn a_member_that_connects_and_says_nothing_does_not_hold_up_a_stop() {
    let _alone = alone();
    let stop = StopHandle::new();
    let place = tempfile::tempdir().expect("a temporary directory");
    let stopper = stop_when_there(&place.path().join("pid"), &stop);
    let error = run_placed("mute", &stop, place.path()).outcome.expect_err("one member never gets ready");
    assert!(matches!(error, ClusterError::Stopped), "{error}");
    stopper.join().expect("it stops");
}

/// Stops the run when a member has left its number, or when patience is at its end.
fn stop_when_there(pid: &Path, stop: &StopHandle) -> JoinHandle<()> {
    let (pid, stop) = (pid.to_owned(), stop.clone());
    std::thread::spawn(move || {
        let waited = std::panic::catch_unwind(|| eventually("the process has begun", || pid.exists()));
        stop.stop();
        waited.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    })
}

#[test]
fn what_one_member_refuses_ends_all() {
    let _alone = alone();
    let error = run_case("refused", &StopHandle::new()).outcome.expect_err("one member cannot prepare");
    assert!(error.to_string().contains("did you mean \"rally.left\"?"), "{error}");
    let dies = |_: &str| Command::new("false");
    let error = run_cluster(&ping_pong(), &options(RtMode::Warn, 100), dies).expect_err("no member");
    assert!(matches!(&error, ClusterError::Ended { .. }), "{error}");
}

#[test]
#[ignore = "run by no_member_outlives_its_coordinator in a process of its own"]
fn as_coordinator() {
    if std::env::var_os(PLACE).is_some() {
        let _ = run_case("orphaned", &StopHandle::new());
    }
}

#[test]
fn no_member_outlives_its_coordinator() {
    let _alone = alone();
    let place = tempfile::tempdir().expect("a temporary directory");
    let mut coordinator = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["exec::cluster::as_coordinator", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(PLACE, place.path())
        .env("TMPDIR", place.path())
        .stdout(Stdio::null())
        .spawn()
        .expect("it starts");
    let pid = place.path().join("pid");
    let mut member = String::new();
    eventually("the member has begun", || {
        member = std::fs::read_to_string(&pid).unwrap_or_default();
        assert!(coordinator.try_wait().expect("ours").is_none(), "it ended before its member began");
        !member.is_empty()
    });
    coordinator.kill().expect("it can be killed");
    coordinator.wait().expect("it has ended");
    eventually("the member ends with its coordinator", || has_ended(&member));
    let directory = std::fs::read_to_string(place.path().join("directory")).expect("left before the number");
    eventually("its directory is removed", || !Path::new(&directory).exists());
}

/// Whether the process is gone, or would be if whoever inherited it had asked how it ended.
fn has_ended(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('Z'))
}
