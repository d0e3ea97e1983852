//! Schedules and listings of one small run.

use talea_export::*;
use talea_insight::*;
use talea_record::event::{EdgeChange, Flag, Member, Switch};
use talea_record::*;
use talea_samples::*;

const START: i64 = RUN_START_NS;
#[test]
fn the_schedule_of_the_small_run() {
    let mut csv = Vec::new();
    let mut schedule = ScheduleCsv::new(&metadata(), &mut csv);
    small_run().into_iter().for_each(|record| schedule.record(record));
    schedule.finish(at(ms(50))).unwrap();
    let mut lines: Vec<_> = std::str::from_utf8(&csv).unwrap().lines().collect();
    assert_eq!(lines.remove(0), "start_ns,end_ns,node,cpu,task,subtask,job");
    lines.sort_by_key(|line| line.split(',').next().unwrap().parse::<i64>().unwrap());
    let expected = [
        "0,10000000,mission,0,route,plan,0",
        "10000000,12000000,mission,0,nav,nav,1",
        "12000000,15000000,mission,0,route,plan,0",
        "15000000,23000000,mission,1,route,draw,0",
        "20000000,25000000,mission,0,route,plan,1",
        "30000000,45000000,mission,0,nav,nav,3",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn what_was_added_to_a_hierarchy_is_in_the_schedule() {
    let mut metadata = metadata();
    let (name, kind) = ("FP".to_owned(), "fixed-priority".into());
    metadata.schedulers = vec![SchedulerEntry { node: 0, name: name.clone(), kind }];
    let mut csv = Vec::new();
    let mut schedule = ScheduleCsv::new(&metadata, &mut csv);
    let entry = EdgeEntry { node: 0, parent: name, child: "hog".into(), guarantee: "NULL".into() };
    schedule.define(&Definition::Edge { number: 0, entry });
    let role = MemberRole::Scheduled.into();
    let member = Member { tid: 7, started_by: 0, edge: Some(0), node: 0, role };
    let to = |at_ms: i64, from_tid: u32, to_tid: u32| {
        Switch { from_tid, to_tid, from_pid: 0, to_pid: 0, preempted: Flag(false) }.at(at(ms(at_ms)), 1)
    };
    for record in [
        run_event(Event::RUN_START, START),
        member.at(at(START), Record::NO_CPU),
        to(2, 0, 7),
        to(5, 7, 9),
        to(6, 9, 0),
    ] {
        schedule.record(record);
    }
    schedule.finish(at(ms(10))).expect("it is written");
    let text = String::from_utf8(csv).expect("text");
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), ["2000000,5000000,mission,1,hog,hog,"]);
}

#[test]
fn a_job_taken_unseen_or_migrated_is_still_accounted_for() {
    let mut one_processor = metadata();
    one_processor.nodes[0].cpus = vec![0];
    let mut segments = Segments::new(&one_processor);
    let mut out = Vec::new();
    let plan = |event, time, cpu| Record { cpu, ..job(event, ms(time), 1, 0, [ms(0), ms(20)], 0) };
    let nav = |event, time| job(event, ms(time), 0, 0, [ms(0), ms(20)], 0);
    for record in [
        plan(Event::START, 0, 0),
        nav(Event::START, 2),
        nav(Event::COMPLETE, 3),
        plan(Event::RESUME, 3, 0),
        plan(Event::COMPLETE, 6, 1),
        plan(Event::COMPLETE, 7, 0),
    ] {
        segments.feed(&record, |segment| out.push(segment));
    }
    segments.finish(at(ms(9)), |segment| out.push(segment));
    let found: Vec<_> = out
        .iter()
        .map(|s| (s.start.as_nanos(), s.end.as_nanos(), s.job().map(|job| job.operation.index())))
        .collect();
    assert_eq!(found, [(ms(0), ms(2), Some(1)), (ms(2), ms(3), Some(0)), (ms(3), ms(6), Some(1))]);
}

#[test]
fn lines_for_people() {
    let lines: Vec<_> = small_run().iter().map(|record| format_record(&metadata(), record)).collect();
    let line = |index: usize| lines[index].split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(line(0), "0.000000000 mission - - run-start");
    assert_eq!(line(1), "0.000000000 mission cpu0 10ms skip nav #0 the job before is unfinished");
    assert_eq!(line(2), "0.000000000 mission cpu0 20ms release route.plan #0 due in 20.0ms");
    assert_eq!(line(5), "0.010000000 mission cpu0 20ms preempt route.plan #0 by nav #1");
    assert_eq!(line(7), "0.012000000 mission cpu0 10ms complete nav #1 after 2.00ms, met, 8.00ms left");
    assert_eq!(line(9), "0.015000000 mission cpu0 20ms complete route.plan #0 after 15.0ms");
    assert_eq!(line(11), "0.015000000 mission cpu1 20ms start route.draw #0 2 in the lane");
    assert_eq!(
        line(16),
        "0.023000000 mission cpu1 20ms complete route.draw #0 after 8.00ms, MISSED by 3.00ms"
    );
    assert_eq!(line(17), "0.025000000 mission cpu0 20ms abort route.plan #1 while running, after 5.00ms");
    let stranger = Record { event: Event(0x7701), ..numbered(START as u64) };
    let shown = format_record(&metadata(), &stranger);
    assert!(shown.contains("event 0x7701") && shown.contains("words 0x3b9aca00"), "{shown}");
}

#[test]
fn a_change_of_a_hierarchy_tells_who_made_it_and_why() {
    let mut metadata = metadata();
    let guarantee = "NULL".to_owned();
    metadata.edges = vec![EdgeEntry { node: 0, parent: "FP".into(), child: "nav".into(), guarantee }];
    let line = |event: Record| {
        let line = format_record(&metadata, &event);
        line.split_whitespace().skip(5).collect::<Vec<_>>().join(" ")
    };
    let change = EdgeChange {
        edge: 0,
        what: ChangeKind::Altered.into(),
        by: ChangeAuthor::Operator.into(),
        why: ChangeReason::RequestChanged.into(),
        process: 4711,
        user: 1000,
        forced: Flag(false),
    };
    let told = |change: EdgeChange| line(change.at(at(5), Record::NO_CPU));
    let by_operator = "edge=FP to nav what=altered by=operator why=request-changed process=4711 user=1000";
    assert_eq!(told(change), by_operator);
    assert_eq!(told(EdgeChange { forced: Flag(true), ..change }), format!("{by_operator} forced"));
    let (by, why) = (ChangeAuthor::Member.into(), ChangeReason::Ended.into());
    let ended = EdgeChange { what: ChangeKind::Removed.into(), by, why, process: 0, user: 0, ..change };
    assert_eq!(told(ended), "edge=FP to nav what=removed by=member why=ended");
    let (by, why) = (ChangeAuthor::Unknown.into(), ChangeReason::Unknown.into());
    assert_eq!(told(EdgeChange { by, why, ..ended }), "edge=FP to nav what=removed", "as of older traces");
    let member = Member { tid: 7, started_by: 5, edge: Some(0), node: 0, role: MemberRole::Scheduled.into() };
    let told = |member: Member| line(member.at(at(5), Record::NO_CPU));
    assert_eq!(told(member), "tid=7 edge=FP to nav role=scheduled started_by=5");
    let sentinel = Member { started_by: 0, edge: None, role: MemberRole::Sentinel.into(), ..member };
    assert_eq!(told(sentinel), "tid=7 role=sentinel");
}

#[test]
fn threads_that_were_defined_have_their_names() {
    let mut metadata = metadata();
    let thread = |since: i64, tid: u32, name: &str| ThreadEntry {
        since: at(since),
        tid,
        pid: 70,
        name: name.into(),
        node: 0,
    };
    metadata.threads = vec![thread(5, 7, "player"), thread(9, 7, "drain"), thread(5, 6, "sh")];
    let (edge, role) = (None, MemberRole::Scheduled.into());
    let listing = Listing::new(&metadata, &NameSpace::default());
    let line = |record: Record| listing.line(&record);
    let member = Member { tid: 7, started_by: 6, edge, node: 0, role }.at(at(5), Record::NO_CPU);
    assert!(
        line(member).ends_with("tid=7 (player) pid=70 role=scheduled started_by=6 (sh)"),
        "{}",
        line(member)
    );
    let switch = |time: i64| {
        let (from_tid, to_tid, from_pid, to_pid) = (8, 7, 80, 70);
        Switch { from_tid, to_tid, from_pid, to_pid, preempted: Flag(true) }.at(at(time), 0)
    };
    for (time, name) in [(4, "to_tid=7 "), (8, "to_tid=7 (player) "), (9, "to_tid=7 (drain) ")] {
        assert!(line(switch(time)).contains(name), "{}", line(switch(time)));
    }
    // Numbers stay numbers for scripts.
    let json = serde_json::from_str::<serde_json::Value>(&listing.json(&switch(9))).unwrap();
    assert_eq!((&json["fields"]["to_tid"], &json["fields"]["from_tid"]), (&7.into(), &8.into()));
}

#[test]
fn nothing_that_shows_records_panics_at_nonsense() {
    let mut perfetto = PerfettoExport::new(&metadata(), &NameSpace::default(), &[], Vec::new());
    let mut schedule = ScheduleCsv::new(&metadata(), Vec::new());
    let extremes = [0, 1, START as u64, i64::MAX as u64, i64::MIN as u64, u64::MAX];
    let mut records = Vec::new();
    for event in (0..0x10).chain(0x100..0x110).chain(0x200..0x210).chain(0x300..0x310).chain(0x500..0x510) {
        for word in extremes {
            for source in [0, 7, u16::MAX] {
                let time = at(word as i64);
                let words = [word, !word];
                records.push(Record {
                    time,
                    causal: word,
                    words,
                    event: Event(event),
                    source,
                    cpu: source,
                    arg: source,
                });
            }
        }
    }
    for record in &records {
        perfetto.record(*record);
        schedule.record(*record);
        format_record(&metadata(), record);
    }
    let names = NameSpace::default();
    export_csv(&metadata(), &names, records.iter().copied(), Vec::new()).unwrap();
    let mut parquet = ParquetExport::new(&metadata(), &names, Vec::new()).unwrap();
    let listing = Listing::new(&metadata(), &names);
    let place = tempfile::tempdir().unwrap();
    let mut ctf = CtfExport::create(&place.path().join("ctf"), &metadata(), &names).unwrap();
    for record in records {
        parquet.record(record);
        ctf.record(record);
        listing.line(&record);
        serde_json::from_str::<serde_json::Value>(&listing.json(&record)).unwrap();
    }
    parquet.finish().unwrap();
    ctf.finish().unwrap();
    perfetto.finish(at(0)).unwrap();
    schedule.finish(at(0)).unwrap();
}
