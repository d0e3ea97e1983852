//! Schedules, listings and the Perfetto trace of one small run.

use crate::support::*;
use std::collections::BTreeMap;
use talea_model::OperationId;
use talea_trace::*;

const START: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;

fn ms(value: i64) -> i64 {
    START + value * MS
}

/// `nav` preempts `route.plan`, `route.draw` runs on the other processor at the same time as another job
/// of its lane and is late, one instance is skipped, one aborted, one never ends.
fn small_run() -> Vec<Record> {
    let nav =
        |event, time, k: i64, arg| job(event, ms(time), 0, k as u64, [ms(10 * k), ms(10 * k + 10)], arg);
    let plan = |event, time, k: i64| job(event, ms(time), 1, k as u64, [ms(20 * k), ms(20 * k + 20)], 1);
    let draw = |event, time| Record { cpu: 1, ..job(event, ms(time), 2, 0, [ms(15), ms(20)], 2) };
    let by_nav = JobId { operation: OperationId::from_index(0), instance: 1 }.pack();
    vec![
        run_event(Event::RUN_START, START),
        nav(Event::SKIP, 0, 0, 1),
        plan(Event::RELEASE, 0, 0),
        plan(Event::START, 0, 0),
        nav(Event::RELEASE, 10, 1, 0),
        Record { words: [by_nav, 0], ..plan(Event::PREEMPT, 10, 0) },
        nav(Event::START, 10, 1, 1),
        nav(Event::COMPLETE, 12, 1, 0),
        plan(Event::RESUME, 12, 0),
        plan(Event::COMPLETE, 15, 0),
        draw(Event::RELEASE, 15),
        draw(Event::START, 15),
        // Preempted and resumed in one instant: one segment.
        draw(Event::PREEMPT, 17),
        draw(Event::RESUME, 17),
        plan(Event::RELEASE, 20, 1),
        plan(Event::START, 20, 1),
        draw(Event::COMPLETE, 23),
        plan(Event::ABORT, 25, 1),
        nav(Event::RELEASE, 30, 3, 0),
        nav(Event::START, 30, 3, 1),
        run_event(Event::RUN_END, ms(45)),
    ]
}

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
fn a_job_taken_unseen_or_migrated_is_still_accounted_for() {
    let mut segments = Segments::new(&metadata());
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
    let found: Vec<_> =
        out.iter().map(|s| (s.start.as_nanos(), s.end.as_nanos(), s.job.operation.index())).collect();
    assert_eq!(found, [(ms(0), ms(2), 1), (ms(2), ms(3), 0), (ms(3), ms(6), 1)]);
}

#[test]
fn lines_for_people() {
    let lines: Vec<_> = small_run().iter().map(|record| format_record(&metadata(), record)).collect();
    let line = |index: usize| lines[index].split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(line(0), "0.000000000 mission - - run-start");
    assert_eq!(line(1), "0.000000000 mission cpu0 10ms skip nav #0 the job before is unfinished");
    assert_eq!(line(2), "0.000000000 mission cpu0 20ms release route.plan #0 due in 20.0ms");
    assert_eq!(line(5), "0.010000000 mission cpu0 20ms preempt route.plan #0 by nav #1");
    assert_eq!(line(7), "0.012000000 mission cpu0 10ms complete nav #1 after 2.00ms, met with 8.00ms left");
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
fn nothing_that_shows_records_panics_at_nonsense() {
    let mut perfetto = PerfettoExport::new(&metadata(), Vec::new());
    let mut schedule = ScheduleCsv::new(&metadata(), Vec::new());
    let extremes = [0, 1, START as u64, i64::MAX as u64, i64::MIN as u64, u64::MAX];
    let mut records = Vec::new();
    for event in (0..0x10).chain(0x100..0x110).chain(0x200..0x210).chain(0x300..0x310) {
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

/// A protobuf message as a list of fields, by nothing but the wire format.
#[derive(Clone, Debug)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a varint is whole");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let mut take = |length: usize| {
            let (taken, rest) = bytes.split_at(length);
            bytes = rest;
            taken.to_vec()
        };
        let field = match key & 7 {
            1 => Field::Number(u64::from_le_bytes(take(8).try_into().unwrap())),
            0 => Field::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (taken, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(taken.to_vec())
            }
            other => panic!("wire type {other} is not used"),
        };
        fields.push((key >> 3, field));
    }
    fields
}

/// The values of field `number` in a message.
fn numbers(message: &[u8], number: u64) -> Vec<u64> {
    let of = |(tag, field)| match field {
        Field::Number(value) if tag == number => Some(value),
        _ => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

fn parts(message: &[u8], number: u64) -> Vec<Vec<u8>> {
    let of = |(tag, field)| match field {
        Field::Bytes(value) if tag == number => Some(value),
        _ => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

fn text(message: &[u8], number: u64) -> Option<String> {
    parts(message, number).pop().map(|bytes| String::from_utf8(bytes).unwrap())
}

#[test]
fn the_perfetto_trace_decodes_and_its_slices_nest() {
    let mut export = PerfettoExport::new(&metadata(), Vec::new());
    small_run().into_iter().for_each(|record| export.record(record));
    let bytes = export.finish(at(ms(45))).unwrap();
    let whole = fields(&bytes);
    assert!(whole.iter().all(|(tag, _)| *tag == 1), "a trace is packets");
    let packets = parts(&bytes, 1);
    assert_eq!(numbers(&packets[0], 13), [1], "the sequence begins with the first packet");
    assert!(packets.iter().all(|packet| numbers(packet, 10) == [1]));

    // Tracks: TracePacket.track_descriptor = 60; uuid = 1, name = 2, process = 3, parent = 5, counter = 8.
    let mut tracks = BTreeMap::new();
    for packet in &packets {
        for track in parts(packet, 60) {
            let process = parts(&track, 3).pop();
            let name = process.as_ref().map_or_else(|| text(&track, 2), |process| text(process, 6)).unwrap();
            let parent = numbers(&track, 5).pop();
            assert_eq!(process.is_some(), parent.is_none());
            assert!(parent.is_none_or(|parent| tracks.contains_key(&parent)), "parents come first");
            let before = tracks.insert(numbers(&track, 1)[0], name);
            assert_eq!(before, None, "a track is described once");
        }
    }
    let names: Vec<_> = tracks.values().map(String::as_str).collect();
    let expected = [
        "mission",
        "CPU 0",
        "CPU 1",
        "lane 0: 10ms",
        "lane 1: 20ms",
        "lane 1: 20ms (2)",
        "lane 0: 10ms queue",
        "lane 1: 20ms queue",
    ];
    assert_eq!(names, expected);

    // Events: TracePacket.timestamp = 8, track_event = 11; type = 9, track = 11, name = 23, counter = 30,
    // flow = 47, annotations = 4.
    let mut events: Vec<_> = packets
        .iter()
        .flat_map(|packet| parts(packet, 11).into_iter().map(|event| (numbers(packet, 8)[0], event)))
        .collect();
    events.sort_by_key(|(time, _)| *time);
    let mut open: BTreeMap<u64, Option<(u64, String)>> = BTreeMap::new();
    let (mut slices, mut instants, mut counters, mut flows) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (time, event) in &events {
        let track = numbers(event, 11)[0];
        let name = text(event, 23);
        assert!(tracks.contains_key(&track));
        let since = (*time as i64 - START) / MS;
        match numbers(event, 9)[0] {
            1 => {
                let before = open.insert(track, Some((since as u64, name.clone().unwrap()))).flatten();
                assert_eq!(before, None, "one slice at a time on a track");
                flows.extend(numbers(event, 47).into_iter().map(|flow| (flow, name.clone().unwrap())));
            }
            2 => {
                let (begin, name) = open.insert(track, None).flatten().expect("an end has a beginning");
                slices.push(format!("{} {begin}-{since} {name}", tracks[&track]));
            }
            3 => instants.push(format!("{since} {}", name.unwrap())),
            4 => counters.push(numbers(event, 30)[0]),
            other => panic!("event type {other}"),
        }
    }
    assert!(open.values().all(Option::is_none), "every slice ends");
    slices.sort();
    let expected = [
        "CPU 0 0-10 route.plan",
        "CPU 0 10-12 nav",
        "CPU 0 12-15 route.plan",
        "CPU 0 20-25 route.plan",
        "CPU 0 30-45 nav",
        "CPU 1 15-23 route.draw",
        "lane 0: 10ms 10-12 nav",
        "lane 0: 10ms 30-45 nav",
        "lane 1: 20ms (2) 20-25 route.plan",
        "lane 1: 20ms 0-15 route.plan",
        "lane 1: 20ms 15-23 route.draw",
    ];
    assert_eq!(slices, expected);
    let of = |kind: &str| {
        instants.iter().filter(|name| name.contains(kind)).map(String::as_str).collect::<Vec<_>>()
    };
    assert_eq!(of("missed"), ["20 deadline missed: route.draw #0", "40 deadline missed: nav #3"]);
    assert_eq!(of("skip"), ["0 skip: nav #0"]);
    assert_eq!(of("abort"), ["25 abort: route.plan #1"]);
    assert_eq!(of("release").len(), 5);
    assert_eq!(counters, [1, 1, 2, 1, 1]);
    let instance_0: Vec<_> =
        flows.iter().filter(|(flow, _)| *flow == flows[0].0).map(|(_, name)| name.as_str()).collect();
    assert_eq!(instance_0, ["route.plan", "route.draw"]);
    let draw_end =
        events.iter().find(|(time, event)| *time == ms(23) as u64 && !parts(event, 4).is_empty()).unwrap();
    let annotations: Vec<_> =
        parts(&draw_end.1, 4).iter().map(|part| (text(part, 10).unwrap(), numbers(part, 4)[0])).collect();
    assert_eq!(annotations, [("response_ns".into(), 8_000_000), ("lateness_ns".into(), 3_000_000)]);
}
