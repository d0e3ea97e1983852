//! Explanations and accounts from records of dispatching and of the kernel, written by hand.

mod in_part;
mod lowered;
mod shared;

use std::convert::Infallible;
use talea_insight::explain::{
    Blamed, ExplainError, Explanation, Explanations, Kind, Question, Stage, Subject, Which, explain,
};
use talea_insight::usage::WithheldBy;
use talea_insight::*;
use talea_record::*;
use talea_samples::{job, metadata, run_event};
use talea_time::{Duration, Instant};

const START: i64 = 1_000_000_000;
const LANE_THREAD: u64 = 70;
const STRANGER: u64 = 99;

/// The metadata with one processor, and the first task released by the clock.
fn one_processor() -> Metadata {
    let mut metadata = metadata();
    metadata.nodes[0].cpus = vec![0];
    metadata
}

fn record(event: Event, after: i64, source: u16, words: [u64; 2], arg: u16) -> Record {
    Record { time: Instant::from_nanos(START + after), causal: 0, words, event, source, cpu: 0, arg }
}

fn nav(event: Event, after: i64) -> Record {
    job(event, START + after, 0, 0, [START, START + 10_000_000], 1)
}

fn switch(after: i64, from: u64, to: u64) -> Record {
    record(Event::SWITCH, after, Record::KERNEL, [from | to << 32, 0], 0)
}

fn cost(after: i64, ns: u64, lane: u16, kind: CostKind) -> Record {
    record(Event::COST, after, lane, [ns, 1], kind as u16)
}

fn name(thread: u64, text: &[u8; 8]) -> Record {
    let words = [u64::from_le_bytes(*text), 0];
    Record { causal: thread, ..record(Event::THREAD_NAME, 0, Record::KERNEL, words, 0) }
}

/// One job of `nav`: late timer, wake-up, queueing, an interrupt and a stranger while it runs.
fn told() -> Vec<Record> {
    vec![
        run_event(Event::RUN_START, START),
        record(Event::THREAD, 0, 0, [LANE_THREAD, 0], ThreadRole::Lane as u16),
        name(STRANGER, b"backup\0\0"),
        switch(0, STRANGER, 0),
        record(Event::SLEEP, 0, 0, [0, 0], 0),
        record(Event::TIMER, 60, 0, [START as u64, START as u64 + 40], 0),
        nav(Event::RELEASE, 80),
        switch(130, 0, LANE_THREAD),
        record(Event::WAKE, 140, 0, [0, 0], 0),
        cost(200, 50, 0, CostKind::Queue),
        nav(Event::START, 210),
        record(Event::IRQ_ENTER, 300, Record::KERNEL, [24, 0], InterruptKind::Device as u16),
        record(Event::IRQ_EXIT, 330, Record::KERNEL, [24, 0], InterruptKind::Device as u16),
        switch(400, LANE_THREAD, STRANGER),
        switch(600, STRANGER, LANE_THREAD),
        switch(700, LANE_THREAD, 0),
        switch(720, 0, LANE_THREAD),
        nav(Event::COMPLETE, 1_000),
        switch(1_010, LANE_THREAD, 0),
        run_event(Event::RUN_END, START + 2_000),
    ]
}

/// The same switch by a thread that could have gone on.
fn preempted(after: i64, from: u64, to: u64) -> Record {
    Record { arg: 1, ..switch(after, from, to) }
}

/// The same with ten microseconds for each nanosecond: what lasts for less than a quarter of a millisecond is not withheld.
fn stretched(mut records: Vec<Record>) -> Vec<Record> {
    let stretched = |ns: i64| START + (ns - START) * SCALE;
    for record in &mut records {
        record.time = Instant::from_nanos(stretched(record.time.as_nanos()));
        if record.event == Event::TIMER {
            record.words = record.words.map(|word| stretched(word as i64) as u64);
        }
    }
    records
}

/// Nanoseconds of a stretched trace for each of those as it is written down.
const SCALE: i64 = 10_000;

/// The lane's thread is held off when `nav` is due and again when it runs; in between it sleeps by itself.
fn held_off() -> Vec<Record> {
    const RELEASE: u64 = 8;
    vec![
        run_event(Event::RUN_START, START - 100),
        record(Event::THREAD, -100, 0, [LANE_THREAD, 0], ThreadRole::Lane as u16),
        record(Event::THREAD, -100, Record::NO_LANE, [RELEASE, 0], ThreadRole::Release as u16),
        switch(-90, 0, LANE_THREAD),
        preempted(-20, LANE_THREAD, STRANGER),
        preempted(10, STRANGER, 0),
        preempted(40, 0, RELEASE),
        record(Event::TIMER, 60, 0, [START as u64, START as u64 + 40], 0),
        nav(Event::RELEASE, 80),
        switch(100, RELEASE, LANE_THREAD),
        nav(Event::START, 110),
        preempted(400, LANE_THREAD, 0),
        preempted(600, 0, LANE_THREAD),
        switch(700, LANE_THREAD, 0),
        preempted(720, 0, LANE_THREAD),
        nav(Event::COMPLETE, 1_000),
        switch(1_010, LANE_THREAD, 0),
        run_event(Event::RUN_END, START + 2_000),
    ]
}

/// What stretched records say, as they are written down.
fn shrunk(pieces: Vec<(i64, i64, Stage, Kind)>) -> Vec<(i64, i64, Stage, Kind)> {
    pieces.into_iter().map(|(from, to, stage, kind)| (from / SCALE, to / SCALE, stage, kind)).collect()
}

/// Whoever has it: a stranger first, and then nobody.
#[test]
fn a_processor_is_withheld_while_a_thread_could_go_on() {
    let records = stretched(held_off());
    let answer = explained(&records, 0);
    use Stage::{Begun, Coming, Waiting};
    assert_eq!(
        shrunk(list(&answer.list[0])),
        [
            (0, 10, Coming, Kind::Withheld),
            (10, 40, Coming, Kind::Withheld),
            (40, 80, Coming, Kind::Releasing),
            (80, 100, Waiting, Kind::Release),
            (100, 110, Waiting, Kind::Dispatch),
            (110, 400, Begun, Kind::Execution),
            (400, 600, Begun, Kind::Withheld),
            (600, 700, Begun, Kind::Execution),
            (700, 720, Begun, Kind::Blocked),
            (720, 1_000, Begun, Kind::Execution),
        ]
    );
    let withheld = answer.list[0].totals.iter().filter(|total| total.kind == Kind::Withheld);
    let by: Vec<_> = withheld.map(|total| (answer.blamed_name(total.blamed), total.intervals)).collect();
    assert_eq!(by, [("nobody".into(), 2), (format!("thread {STRANGER}"), 1)]);
    let mut usage = Usage::new(&one_processor());
    records.into_iter().for_each(|record| usage.record(record));
    let node = &usage.finish().nodes[0];
    assert_eq!((node.withheld_ns, node.error_ns), (Some((60 + 200) * SCALE), 0));
    let by: Vec<_> = node.withheld.iter().map(|taken| (taken.by, taken.ns / SCALE)).collect();
    assert_eq!(by, [(WithheldBy::Nobody, 30 + 200), (WithheldBy::Thread(STRANGER as u32), 30)]);
    assert_eq!(node.programs_ns, Some(30 * SCALE));
    assert_eq!(node.idle_ns, Some((10 + 30 + 200 + 20 + 990) * SCALE));
}

/// What is over within a moment is the way from one thread to the next.
#[test]
fn what_is_over_within_a_moment_is_not_withheld() {
    let answer = explained(&held_off(), 0);
    let pieces = list(&answer.list[0]);
    assert!(pieces.iter().all(|piece| piece.3 != Kind::Withheld), "{pieces:?}");
    assert!(pieces.contains(&(400, 600, Stage::Begun, Kind::Idle)), "it is not blocked: {pieces:?}");
    let mut usage = Usage::new(&one_processor());
    held_off().into_iter().for_each(|record| usage.record(record));
    let node = &usage.finish().nodes[0];
    assert_eq!((node.withheld_ns, node.programs_ns, node.error_ns), (Some(0), Some(30), 0));
}

/// Who saw the kernel's switches in place of the reader says so in the stream, later, and even after the end.
#[test]
fn what_was_granted_and_withheld_was_not_executed() {
    let withheld = |after: i64, from: i64, to: i64| {
        let words = [(START + from) as u64, (START + to) as u64];
        record(Event::WITHHELD, after, 0, words, 0)
    };
    let of_run = [
        run_event(Event::RUN_START, START),
        nav(Event::RELEASE, 80),
        nav(Event::START, 110),
        nav(Event::COMPLETE, 1_000),
        withheld(1_500, 300, 500),
        run_event(Event::RUN_END, START + 2_000),
        withheld(2_600, 950, 1_200),
    ];
    let mut usage = Usage::new(&one_processor());
    of_run.iter().for_each(|record| usage.record(*record));
    let report = usage.finish();
    let (node, executed) = (&report.nodes[0], 890 - 200 - 50);
    assert_eq!((node.withheld_ns, node.execution_ns, node.error_ns), (Some(200 + 250), Some(executed), 0));
    assert_eq!(report.operations[0].execution.map(|spread| spread.sum_ns), Some(executed));
    // The kernel's own word counts for more.
    let mut usage = Usage::new(&one_processor());
    told().into_iter().chain([withheld(2_500, 600, 650)]).for_each(|record| usage.record(record));
    let node = &usage.finish().nodes[0];
    assert_eq!((node.execution_ns, node.withheld_ns), (Some(540), Some(50)));
}

/// What keeps the release thread from waking is said where the kernel tells: a stranger, and not its own lateness.
#[test]
fn a_late_release_thread_has_its_reason() {
    let mut records = held_off();
    records.iter_mut().find(|record| record.event == Event::TIMER).expect("it wakes").words[1] += 20;
    let place = records.iter().position(|record| *record == preempted(40, 0, 8)).expect("it is there");
    records.splice(place..=place, [switch(45, 0, 0), switch(50, 0, STRANGER), preempted(55, STRANGER, 8)]);
    let answer = explained(&stretched(records), 0);
    use Kind::{Releasing, Timer, Withheld};
    let coming: Vec<_> =
        shrunk(list(&answer.list[0])).into_iter().filter(|piece| piece.2 == Stage::Coming).collect();
    assert_eq!(
        coming.iter().map(|piece| (piece.0, piece.1, piece.3)).collect::<Vec<_>>(),
        [(0, 10, Withheld), (10, 50, Withheld), (50, 55, Withheld), (55, 60, Timer), (60, 80, Releasing)]
    );
    let withheld = answer.list[0].totals.iter().filter(|total| total.kind == Withheld);
    let by: Vec<_> = withheld.map(|total| (answer.blamed_name(total.blamed), total.coming)).collect();
    let ns = |units: i64| Duration::from_nanos(units * SCALE);
    assert_eq!(by, [("nobody".into(), ns(40)), (format!("thread {STRANGER}"), ns(15))]);
}

/// Threads with real-time priority are not told to have it.
#[test]
fn the_remedy_against_a_program_depends_on_priorities() {
    let mut records = told();
    for record in records.iter_mut().filter(|record| record.event.is_job()) {
        record.words[1] = START as u64 + 700;
    }
    let sentence = |realtime: bool| {
        let metadata = Metadata { origin: Origin::Threads { realtime }, ..one_processor() };
        let answer = explained_of(&metadata, &records, (0, 0));
        answer.sentence(&answer.list[0])
    };
    let (without, with) = (sentence(false), sentence(true));
    assert!(without.contains("other program: backup (99)"), "{without}");
    assert!(without.contains("give the lanes real-time priority"), "{without}");
    assert!(!with.contains("give the lanes") && with.contains("real-time throttling"), "{with}");
}

/// Explains the first instance of a task.
fn explained(records: &[Record], task: usize) -> Explanations {
    explained_from(&one_processor(), records, Subject::Instance { task, number: 0 }).expect("it tells enough")
}

/// Explains one job or instance.
fn explained_from(
    metadata: &Metadata,
    records: &[Record],
    subject: Subject,
) -> Result<Explanations, ExplainError<Infallible>> {
    let replay = |sink: &mut dyn Sink| {
        records.iter().for_each(|record| sink.record(*record));
        Ok(())
    };
    explain(metadata, Question { which: Which::This(subject), task: None, limit: 1 }, replay)
}

/// Explains one job.
fn explained_of(
    metadata: &Metadata,
    records: &[Record],
    (operation, instance): (usize, u64),
) -> Explanations {
    let job = JobId { operation: talea_model::OperationId::from_index(operation), instance };
    explained_from(metadata, records, Subject::Job(job)).expect("it tells enough")
}

fn list(one: &Explanation) -> Vec<(i64, i64, Stage, Kind)> {
    let since = |at: Instant| at.as_nanos() - START;
    one.intervals
        .iter()
        .map(|interval| (since(interval.from), since(interval.to), interval.stage, interval.cause.kind()))
        .collect()
}

#[test]
fn every_layer_of_records_says_what_it_knows() {
    let answer = explained(&told(), 0);
    let one = &answer.list[0];
    use Stage::{Begun, Coming, Waiting};
    assert_eq!(
        list(one),
        [
            (0, 40, Coming, Kind::Timer),
            (40, 80, Coming, Kind::Releasing),
            (80, 130, Waiting, Kind::WakeUp),
            (130, 150, Waiting, Kind::Dispatch),
            (150, 200, Waiting, Kind::Queue),
            (200, 210, Waiting, Kind::Dispatch),
            (210, 300, Begun, Kind::Execution),
            (300, 330, Begun, Kind::Interrupt),
            (330, 400, Begun, Kind::Execution),
            (400, 600, Begun, Kind::Program),
            (600, 700, Begun, Kind::Execution),
            (700, 720, Begun, Kind::Blocked),
            (720, 1_000, Begun, Kind::Execution),
        ]
    );
    let program = one.totals.iter().find(|total| total.kind == Kind::Program).expect("it ran");
    assert_eq!((program.blamed, program.begun), (Blamed::Thread(STRANGER as u32), Duration::from_nanos(200)));
    assert_eq!(answer.blamed_name(program.blamed), "backup (99)");
    let interrupt = one.totals.iter().find(|total| total.kind == Kind::Interrupt).expect("it came");
    assert_eq!(answer.blamed_name(interrupt.blamed), "line 24");
}

/// That the host has had a processor.
fn stolen(cpu: u16, from: i64, to: i64, ns: i64) -> Record {
    let at = |after: i64| Instant::from_nanos(START + after);
    let steal = event::Steal { amount: Duration::from_nanos(ns), from: at(from), to: at(to) };
    steal.at(at(to), cpu)
}

#[test]
fn what_the_host_took_meanwhile_is_told_beside_the_causes() {
    let told = |steals: &[Record]| {
        let mut records = told();
        records.extend_from_slice(steals);
        records.sort_by_key(|record| record.time);
        let answer = explained(&records, 0);
        let one = &answer.list[0];
        let json: i64 = answer.to_json()["explanations"][0]["stolen_ns_max"].as_i64().expect("a number");
        assert_eq!(json, answer.stolen(one).as_nanos());
        assert_eq!(answer.sentence(one).contains("The host of this virtual machine"), json > 0);
        (json, one.intervals.len())
    };
    assert_eq!(told(&[]), (0, 13));
    // No more than the part of the stretch in which it was under way; on its processor; what the run's end comes before, too.
    assert_eq!(told(&[stolen(0, 100, 900, 500)]), (500, 13));
    assert_eq!(told(&[stolen(0, 900, 5_000, 4_000)]), (100, 13));
    assert_eq!(told(&[stolen(0, 100, 300, 50), stolen(0, 300, 2_500, 70)]), (120, 13));
    assert_eq!(
        told(&[stolen(3, 100, 900, 500), stolen(0, -900, 0, 500), stolen(0, 1_000, 2_000, 500)]),
        (0, 13)
    );
}

#[test]
fn without_the_kernel_less_is_told_and_the_sum_is_the_same() {
    let records: Vec<Record> = told().into_iter().filter(|record| record.event.family() < 3).collect();
    let one = &explained(&records, 0).list[0];
    assert_eq!(one.response(), Duration::from_nanos(1_000));
    let of =
        |kind: Kind| one.totals.iter().find(|total| total.kind == kind).map(|total| total.sum().as_nanos());
    assert_eq!((of(Kind::WakeUp), of(Kind::Queue), of(Kind::Execution)), (Some(60), Some(50), Some(790)));
    assert_eq!((of(Kind::Program), of(Kind::Interrupt)), (None, None));
}

/// Kernel records that are lost take back what the kernel said, not what the jobs say.
#[test]
fn lost_kernel_records_leave_the_jobs() {
    let mut records = told();
    let place = records.iter().position(|record| record.event == Event::IRQ_ENTER).expect("there");
    records.retain(|record| record.event.family() != 3 || record.time.as_nanos() < START + 300);
    records.insert(place, record(Event::LOST, 300, Record::KERNEL, [7, 0], 0));
    let answer = explained(&records, 0);
    assert_eq!(answer.list[0].uncertain(), Duration::ZERO);
    assert_eq!(list(&answer.list[0]).last(), Some(&(210, 1_000, Stage::Begun, Kind::Execution)));
}

/// A run defines the threads that it schedules: nobody else need tell their names.
#[test]
fn threads_that_were_defined_have_their_names() {
    let mut metadata = one_processor();
    let thread = |after: i64, name: &str| {
        let (since, tid) = (Instant::from_nanos(START + after), STRANGER as u32);
        ThreadEntry { since, tid, pid: 5, name: name.into(), node: 0 }
    };
    metadata.threads = vec![thread(300, "player"), thread(5_000, "later")];
    let mut records = told();
    records.retain(|record| record.event != Event::THREAD_NAME);
    let answer = explained_from(&metadata, &records, Subject::Instance { task: 0, number: 0 });
    let answer = answer.expect("it tells enough");
    let program = answer.list[0].totals.iter().find(|total| total.kind == Kind::Program).expect("it ran");
    assert_eq!(answer.blamed_name(program.blamed), "player (99)");
    let mut usage = Usage::new(&metadata);
    records.into_iter().for_each(|record| usage.record(record));
    assert_eq!(usage.finish().nodes[0].programs[0].name.as_deref(), Some("player"));
}

#[test]
fn the_accounts_are_those_of_the_kernel_where_it_tells() {
    let mut usage = Usage::new(&one_processor());
    told().into_iter().for_each(|record| usage.record(record));
    let report = usage.finish();
    let node = &report.nodes[0];
    assert_eq!((node.available_ns, node.error_ns), (2_000, 0));
    assert_eq!(node.execution_ns, Some(540));
    assert_eq!((node.programs_ns, node.interrupts_ns), (Some(200), Some(30)));
    assert_eq!(node.programs[0].name.as_deref(), Some("backup"));
    // From the switch to its first record, and from its last one to the switch.
    let switching = node.costs[0];
    assert_eq!((switching.kind, switching.ns, switching.count), (CostKind::Switch, Some(20), Some(6)));
    // Queueing, and what the lane's thread did before, between and after.
    assert_eq!((node.overhead_ns, node.not_broken_down_ns), (Some(50 + 20 + 10 + 10), 20));
    assert_eq!((node.idle_ns, node.unrecorded_ns), (Some(130 + 20 + 990), 0));
    assert!(report.has_costs && report.has_wakes && report.has_kernel);
}

/// A job that starves for very many intervals has the same totals, and no list without end.
#[test]
fn a_long_starvation_is_condensed() {
    let mut records = vec![run_event(Event::RUN_START, START)];
    // Dispatching is recorded, of which there is hardly any.
    records.extend([Event::COST, Event::WAKE, Event::SLEEP].map(|event| record(event, 0, 1, [0, 0], 1)));
    records.push(job(Event::RELEASE, START, 1, 0, [START, START + 20_000_000], 0));
    let rounds = 20_000;
    for round in 0..rounds {
        let at = START + round * 10;
        let words = [at, at + 1_000];
        let number = round as u64;
        records.push(job(Event::RELEASE, at, 0, number, words, 0));
        records.push(job(Event::START, at, 0, number, words, 1));
        records.push(job(Event::COMPLETE, at + 7, 0, number, words, 0));
    }
    let end = START + rounds * 10;
    records.push(run_event(Event::RUN_END, end));
    let answer = explained(&records, 1);
    let one = &answer.list[0];
    assert_eq!(one.response(), Duration::from_nanos(rounds * 10));
    assert!(one.intervals.len() < 10_000, "{}", one.intervals.len());
    let of =
        |kind: Kind| one.totals.iter().find(|total| total.kind == kind).map(|total| total.sum().as_nanos());
    assert_eq!((of(Kind::Higher), of(Kind::Idle).or(of(Kind::WakeUp))), (Some(rounds * 7), Some(rounds * 3)));
    let higher = one.totals.iter().find(|total| total.kind == Kind::Higher).expect("it ran");
    assert_eq!(higher.intervals, rounds as u64);
}

/// The kernel says whose each thread is: those of the run's own process are not other programs.
#[test]
fn other_threads_of_the_run_are_told_from_other_programs() {
    const RUN: u64 = 50;
    let of_process = |stranger: u64| {
        let process = |thread: u64| match thread {
            0 => 0,
            STRANGER => stranger,
            _ => RUN,
        };
        let tell = |mut record: Record| {
            match record.event {
                Event::THREAD => record.words[0] |= RUN << 32,
                Event::SWITCH => {
                    let [from, to] = [record.words[0] & 0xffff_ffff, record.words[0] >> 32].map(process);
                    record.words[1] = from | to << 32;
                }
                _ => {}
            }
            record
        };
        let records: Vec<Record> = told().into_iter().map(tell).collect();
        let mut usage = Usage::new(&one_processor());
        records.iter().for_each(|record| usage.record(*record));
        let kinds: Vec<Kind> =
            explained(&records, 0).list[0].intervals.iter().map(|interval| interval.cause.kind()).collect();
        (usage.finish().nodes.remove(0), kinds)
    };
    let (node, kinds) = of_process(RUN);
    assert_eq!((node.companions_ns, node.programs_ns, node.error_ns), (Some(200), Some(0), 0));
    assert_eq!((node.companions[0].name.as_deref(), node.programs.len()), (Some("backup"), 0));
    assert!(kinds.contains(&Kind::Companion) && !kinds.contains(&Kind::Program), "{kinds:?}");
    let (node, kinds) = of_process(RUN + 1);
    assert_eq!((node.companions_ns, node.programs_ns, node.error_ns), (Some(0), Some(200), 0));
    assert!(kinds.contains(&Kind::Program) && !kinds.contains(&Kind::Companion), "{kinds:?}");
}

/// Without a THREAD record nobody knows the lane's thread from a stranger.
#[test]
fn the_kernel_does_not_override_jobs_of_unknown_threads() {
    let mut usage = Usage::new(&one_processor());
    let mut records = told();
    records.retain(|record| record.event != Event::THREAD);
    records.iter().for_each(|record| usage.record(*record));
    let report = usage.finish();
    let node = &report.nodes[0];
    assert_eq!((node.execution_ns, node.interrupts_ns), (Some(1_000 - 210 - 30), Some(30)));
    // Between its switch and its WAKE record.
    assert_eq!(node.programs_ns, Some(10));
    assert!(!node.has_threads && report.has_kernel);
    let one = &explained(&records, 0).list[0];
    assert_eq!(list(one).last(), Some(&(330, 1_000, Stage::Begun, Kind::Execution)));
}

/// The kernel shows a user only the user's own threads.
#[test]
fn threads_that_are_not_observed_have_an_account_of_their_own() {
    let unseen = u64::from(Record::UNSEEN_THREAD);
    let mut usage = Usage::new(&one_processor());
    for record in told() {
        usage.record(match record.time.as_nanos() - START {
            400 => switch(400, LANE_THREAD, unseen),
            600 => switch(600, unseen, LANE_THREAD),
            _ => record,
        });
    }
    let node = &usage.finish().nodes[0];
    assert_eq!((node.unobserved_ns, node.programs_ns, node.execution_ns), (Some(200), Some(0), Some(540)));
    assert!(node.programs.is_empty() && node.error_ns == 0);
}

/// `late = "last"`: a job that becomes late while it waits goes behind, also behind one that had begun before that.
#[test]
fn late_work_that_went_last_is_said_to_be_late() {
    let mut metadata = one_processor();
    for lane in &mut metadata.lanes {
        lane.discipline = "deadline".into();
    }
    // Two operations of one lane: the first is due 100 ns after its arrival, the other much later.
    let plan = |event, after: i64| job(event, START + after, 1, 0, [START, START + 100], 1);
    let draw = |event, after: i64| job(event, START + after, 2, 7, [START + 20, START + 9_000], 1);
    let records = vec![
        run_event(Event::RUN_START, START),
        plan(Event::RELEASE, 0),
        draw(Event::RELEASE, 20),
        // Out of turn for a reason that the records do not have.
        draw(Event::START, 30),
        draw(Event::PREEMPT, 60),
        plan(Event::START, 60),
        plan(Event::PREEMPT, 120),
        // Chosen again, when the other one was late.
        draw(Event::RESUME, 120),
        draw(Event::COMPLETE, 400),
        plan(Event::RESUME, 400),
        plan(Event::COMPLETE, 420),
        run_event(Event::RUN_END, START + 500),
    ];
    let job = JobId { operation: talea_model::OperationId::from_index(1), instance: 0 };
    let answer = explained_from(&metadata, &records, Subject::Job(job)).expect("it tells enough");
    let one = &answer.list[0];
    let kind = |at: i64| {
        let found = list(one).into_iter().find(|(from, to, _, _)| (*from..*to).contains(&at));
        found.map(|(_, _, _, kind)| kind)
    };
    assert_eq!((kind(40), kind(200)), (Some(Kind::Behind), Some(Kind::LateGoesLast)), "{:#?}", list(one));
    let sentence = answer.sentence(one);
    assert!(sentence.contains("it was late from 100ns after its arrival on"), "{sentence}");
}
