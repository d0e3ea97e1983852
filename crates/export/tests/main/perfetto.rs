//! The Perfetto export, decoded again by nothing but the wire format and the numbers of Perfetto's protos.

use std::collections::BTreeMap;
use talea_export::*;
use talea_record::declaration::*;
use talea_record::namespace::*;
use talea_record::*;
use talea_samples::*;

/// A protobuf message as a list of fields, by nothing but the wire format.
#[derive(Clone, Debug)]
enum Wire {
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

fn fields(mut bytes: &[u8]) -> Vec<(u64, Wire)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let mut take = |length: usize| {
            let (taken, rest) = bytes.split_at(length);
            bytes = rest;
            taken.to_vec()
        };
        let field = match key & 7 {
            1 => Wire::Number(u64::from_le_bytes(take(8).try_into().unwrap())),
            0 => Wire::Number(varint(&mut bytes)),
            2 => {
                let length = varint(&mut bytes) as usize;
                let (taken, rest) = bytes.split_at(length);
                bytes = rest;
                Wire::Bytes(taken.to_vec())
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
        Wire::Number(value) if tag == number => Some(value),
        _ => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

fn parts(message: &[u8], number: u64) -> Vec<Vec<u8>> {
    let of = |(tag, field)| match field {
        Wire::Bytes(value) if tag == number => Some(value),
        _ => None,
    };
    fields(message).into_iter().filter_map(of).collect()
}

fn text(message: &[u8], number: u64) -> Option<String> {
    parts(message, number).pop().map(|bytes| String::from_utf8(bytes).unwrap())
}

/// A trace as the UI shows it.
#[derive(Debug, Default)]
struct Picture {
    /// Names of tracks with those of their parents: `mission/CPU 0`.
    tracks: BTreeMap<u64, String>,
    /// `track begin-end name`, in nanoseconds since the start.
    slices: Vec<String>,
    /// `track time name`.
    instants: Vec<String>,
    /// `track time value`.
    counters: Vec<String>,
    /// The slices and instants on each arrow, as `track time name`, in the order of time.
    flows: BTreeMap<u64, Vec<String>>,
    /// By `track time name`, the annotations of beginnings and instants; by `track time end`, of ends.
    annotations: BTreeMap<String, Vec<(String, String)>>,
}

impl Picture {
    /// Decodes a trace and requires that it is well-formed: parents first, slices nested, all of them ended.
    fn of(bytes: &[u8]) -> Self {
        let mut picture = Picture::default();
        assert!(fields(bytes).iter().all(|(tag, _)| *tag == 1), "a trace is packets");
        let packets = parts(bytes, 1);
        assert_eq!(numbers(&packets[0], 13), [1], "the sequence begins with the first packet");
        assert!(packets[1..].iter().all(|packet| numbers(packet, 13).is_empty()));
        assert!(packets.iter().all(|packet| numbers(packet, 10) == [1]));
        // TracePacket: timestamp = 8, track_event = 11, track_descriptor = 60.
        let mut events = Vec::new();
        for packet in &packets {
            parts(packet, 60).iter().for_each(|track| picture.describe(track));
            for event in parts(packet, 11) {
                let track = numbers(&event, 11)[0];
                assert!(picture.tracks.contains_key(&track), "a track is described before its events");
                events.push((numbers(packet, 8)[0] as i64 - RUN_START_NS, event));
            }
        }
        events.sort_by_key(|(time, _)| *time);
        let mut open: BTreeMap<u64, Vec<(i64, String)>> = BTreeMap::new();
        for (time, event) in &events {
            picture.event(*time, event, &mut open);
        }
        assert!(open.values().all(Vec::is_empty), "every slice ends: {open:?}");
        picture.slices.sort();
        picture
    }

    /// TrackDescriptor: uuid = 1, name = 2, process = 3 (pid = 1, name = 6), parent = 5, counter = 8.
    fn describe(&mut self, track: &[u8]) {
        let process = parts(track, 3).pop();
        let name = process.as_ref().map_or_else(|| text(track, 2), |process| text(process, 6)).unwrap();
        let name = match numbers(track, 5).pop() {
            Some(parent) => format!("{}/{name}", self.tracks.get(&parent).expect("parents come first")),
            None => name,
        };
        self.tracks.insert(numbers(track, 1)[0], name);
    }

    /// TrackEvent: annotations = 4, type = 9, track = 11, name = 23, counter = 30 or 44, flow = 47.
    fn event(&mut self, time: i64, event: &[u8], open: &mut BTreeMap<u64, Vec<(i64, String)>>) {
        let uuid = numbers(event, 11)[0];
        let track = self.tracks[&uuid].clone();
        let name = text(event, 23);
        let place = format!("{track} {time} {}", name.as_deref().unwrap_or("end"));
        match numbers(event, 9)[0] {
            1 => open.entry(uuid).or_default().push((time, name.unwrap())),
            2 => {
                let (begin, name) = open.entry(uuid).or_default().pop().expect("an end has a beginning");
                self.slices.push(format!("{track} {begin}-{time} {name}"));
            }
            3 => self.instants.push(place.clone()),
            4 => {
                let value = numbers(event, 44).pop().map(|bits| f64::from_bits(bits).to_string());
                let value = value.unwrap_or_else(|| (numbers(event, 30)[0] as i64).to_string());
                self.counters.push(format!("{track} {time} {value}"));
            }
            other => panic!("event type {other}"),
        }
        for flow in numbers(event, 47) {
            self.flows.entry(flow).or_default().push(place.clone());
        }
        let annotations: Vec<_> = parts(event, 4).iter().map(|part| annotation(part)).collect();
        if !annotations.is_empty() {
            self.annotations.insert(place, annotations);
        }
    }

    /// The arrows, without those that connect nothing.
    fn arrows(&self) -> Vec<String> {
        let mut arrows: Vec<String> =
            self.flows.values().filter(|ends| ends.len() > 1).map(|ends| ends.join(" > ")).collect();
        arrows.sort();
        arrows
    }
}

/// DebugAnnotation: bool = 2, uint = 3, int = 4, double = 5, string = 6, name = 10.
fn annotation(part: &[u8]) -> (String, String) {
    let number = |tag| numbers(part, tag).pop();
    let value = number(2)
        .map(|value| format!("bool {}", value != 0))
        .or_else(|| number(3).map(|value| format!("uint {value}")))
        .or_else(|| number(4).map(|value| format!("int {}", value as i64)))
        .or_else(|| number(5).map(|bits| format!("double {}", f64::from_bits(bits))))
        .or_else(|| text(part, 6).map(|text| format!("string {text}")))
        .unwrap_or("none".into());
    (text(part, 10).unwrap(), value)
}

fn picture(metadata: &Metadata, names: &NameSpace, records: &[Record], end: i64) -> Picture {
    let mut export = PerfettoExport::new(metadata, names, &[], Vec::new());
    records.iter().for_each(|record| export.record(*record));
    Picture::of(&export.finish(at(end)).unwrap())
}

/// The packets of a trace that have field `number`, and in it.
fn packets(trace: &[u8], number: u64) -> Vec<Vec<u8>> {
    parts(trace, 1).iter().flat_map(|packet| parts(packet, number)).collect()
}

/// Viewers draw their tracks of processors and the states of threads from what the kernel's own tracing would have.
#[test]
fn scheduling_stands_there_as_the_kernel_traces_it() {
    const FTRACE: u64 = 1;
    const TREE: u64 = 2;
    const SWITCH: u64 = 4;
    const WAKING: u64 = 20;
    let [low, high] = Text::new("worker").words();
    let name = Record { event: Event::THREAD_NAME, causal: 70 << 32 | 71, words: [low, high], ..numbered(1) };
    let wakeup = Record { event: Event::WAKEUP, words: [71 | 5 << 32, 1 | 49 << 32], cpu: 0, ..numbered(2) };
    let to = Record { event: Event::SWITCH, words: [71 << 32, 70 << 32], arg: 0, cpu: 1, ..numbered(3) };
    let unseen = u64::from(Record::UNSEEN_THREAD);
    let from = Record { event: Event::SWITCH, words: [71 | unseen << 32, 70], arg: 1, cpu: 1, ..numbered(4) };
    let mut export = PerfettoExport::new(&metadata(), &NameSpace::default(), &[], Vec::new());
    [name, wakeup, to, from].into_iter().for_each(|record| export.record(record));
    let trace = export.finish(at(9)).unwrap();
    let bundles = packets(&trace, FTRACE);
    let cpus: Vec<u64> = bundles.iter().flat_map(|bundle| numbers(bundle, 1)).collect();
    assert_eq!(cpus, [0, 1, 1]);
    let events: Vec<Vec<u8>> = bundles.iter().flat_map(|bundle| parts(bundle, 2)).collect();
    let at_and_by: Vec<_> = events.iter().map(|event| (numbers(event, 1)[0], numbers(event, 2)[0])).collect();
    assert_eq!(at_and_by, [(2, 5), (3, 0), (4, 71)]);
    let waking = &parts(&events[0], WAKING)[0];
    assert_eq!(parts(waking, 1), [b"worker"]);
    assert_eq!([2, 3, 5].map(|field| numbers(waking, field)[0]), [71, 49, 1], "thread, priority, processor");
    let switch = |event: usize| parts(&events[event], SWITCH)[0].clone();
    let said = |event, fields: [u64; 5]| fields.map(|field| numbers(&switch(event), field)[0]);
    const ALL: [u64; 5] = [2, 3, 4, 6, 7];
    assert_eq!(said(1, ALL), [0, 120, 0, 71, 49], "the idle thread can always go on");
    assert_eq!(said(2, ALL), [71, 49, 0, 1 << 22, 120], "preempted, by somebody who is not observed");
    let texts = [1, 2].map(|event| [1, 5].map(|field| parts(&switch(event), field)[0].clone()));
    assert_eq!(texts[0], [b"swapper/1".to_vec(), b"worker".to_vec()]);
    assert_eq!(texts[1], [b"worker".to_vec(), b"not observed".to_vec()]);
    let threads: Vec<_> = packets(&trace, TREE).iter().flat_map(|tree| parts(tree, 2)).collect();
    assert!(
        threads.iter().any(|thread| numbers(thread, 1) == [71] && numbers(thread, 3) == [70]),
        "{threads:?}"
    );
}

/// Nodes are the processes that run them, and events of programs stand on the tracks of their threads.
#[test]
fn processes_and_threads_have_their_real_numbers() {
    const DESCRIPTOR: u64 = 60;
    let of_lane = |tid, pid| {
        let role = ThreadRole::Lane.into();
        event::Thread { tid, pid, node: 0, lane: Some(0), role }.at(at(0), Record::NO_CPU)
    };
    let records = [wrote(0, 0, 81, 80), of_lane(71, 70), wrote(1, 1, 72, 70), {
        Record { event: Event(0x4001), source: 1, cpu: 1, ..numbered(2) }
    }];
    let processes = processes_of_nodes(&metadata(), records);
    assert_eq!(processes, [Some(70)]);
    let mut export = PerfettoExport::new(&metadata(), &NameSpace::default(), &processes, Vec::new());
    records.into_iter().for_each(|record| export.record(record));
    let trace = export.finish(at(9)).unwrap();
    let descriptors = packets(&trace, DESCRIPTOR);
    let pids: Vec<_> =
        descriptors.iter().flat_map(|one| parts(one, 3)).flat_map(|one| numbers(&one, 1)).collect();
    assert_eq!(pids, [70]);
    let threads: Vec<_> = descriptors.iter().flat_map(|one| parts(one, 4)).collect();
    let numbers: Vec<_> = threads.iter().map(|one| (numbers(one, 1)[0], numbers(one, 2)[0])).collect();
    assert_eq!(numbers, [(80, 81), (70, 71), (70, 72)]);
    let picture = Picture::of(&trace);
    let said = format!("{picture:?}");
    assert!(said.contains("program (72)"), "{said}");
}

/// No record of the kernel names it, and none of the run says what it does.
#[test]
fn a_thread_that_was_defined_has_a_track_under_its_node() {
    const DESCRIPTOR: u64 = 60;
    let mut metadata = metadata();
    metadata.threads = vec![
        ThreadEntry { since: at(RUN_START_NS + 4), tid: 77, pid: 70, name: "player".into(), node: 0 },
        ThreadEntry { since: at(RUN_START_NS + 6), tid: 77, pid: 70, name: "drain".into(), node: 0 },
    ];
    let records = [switch(3, 1, 0, 77), switch(4, 1, 77, 0), switch(5, 1, 0, 77), switch(7, 1, 77, 0)];
    let mut export = PerfettoExport::new(&metadata, &NameSpace::default(), &[], Vec::new());
    records.into_iter().for_each(|record| export.record(record));
    let trace = export.finish(at(9)).unwrap();
    let said = format!("{:?}", Picture::of(&trace).tracks);
    assert!(said.contains("mission/drain (77)"), "{said}");
    let descriptors = packets(&trace, DESCRIPTOR);
    let threads: Vec<_> = descriptors.iter().flat_map(|one| parts(one, 4)).collect();
    let last = threads.iter().rev().find(|one| numbers(one, 2) == [77]).expect("it is described");
    assert_eq!(numbers(last, 1), [70]);
    let found = format!("{:?}", Picture::of(&trace).slices);
    for name in ["CPU 1 threads 3-4 thread 77", "CPU 1 threads 5-7 player (77)"] {
        assert!(found.contains(name), "{name} is not in {found}");
    }
}

/// Who and why stand with each change, of which one is that of an edge that came while the run lasted.
#[test]
fn changes_of_a_hierarchy_are_instants_of_their_node() {
    let mut metadata = metadata();
    let edge = |child: &str| {
        let (parent, guarantee) = ("BG".into(), "NULL".into());
        EdgeEntry { node: 0, parent, child: child.into(), guarantee }
    };
    metadata.edges = vec![edge("old"), edge("build")];
    let change = event::EdgeChange {
        edge: 1,
        what: ChangeKind::Added.into(),
        by: ChangeAuthor::Operator.into(),
        why: ChangeReason::ThreadAdded.into(),
        process: 4711,
        user: 1000,
        forced: event::Flag(true),
    };
    let ended = event::EdgeChange {
        what: ChangeKind::Removed.into(),
        by: ChangeAuthor::Member.into(),
        why: ChangeReason::Ended.into(),
        forced: event::Flag(false),
        ..change
    };
    let of = |change: event::EdgeChange, time: i64| change.at(at(RUN_START_NS + time), Record::NO_CPU);
    let nowhere = event::EdgeChange { edge: 9, ..change };
    let records = [of(change, 3), of(ended, 5), of(nowhere, 6)];
    let picture = picture(&metadata, &NameSpace::default(), &records, RUN_START_NS + 9);
    let track = "mission/changes of the hierarchy";
    let expected =
        [format!("{track} 3 added: BG to build (forced)"), format!("{track} 5 removed: BG to build")];
    assert_eq!(picture.instants, expected);
    let said = format!("{:?}", picture.annotations);
    for part in
        ["\"by\", \"string operator\"", "\"why\", \"string thread-added\"", "4711", "1000", "string ended"]
    {
        assert!(said.contains(part), "{part} is not in {said}");
    }
}

#[test]
fn jobs_have_slices_on_processors_and_lanes() {
    let picture = picture(&metadata(), &NameSpace::default(), &small_run(), ms(45));
    let names: Vec<_> = picture.tracks.values().map(String::as_str).collect();
    let expected = [
        "mission",
        "mission/CPU 0",
        "mission/CPU 1",
        "mission/lane 0: 10ms",
        "mission/lane 1: 20ms",
        "mission/lane 1: 20ms (2)",
        "mission/lane 0: 10ms queue",
        "mission/lane 1: 20ms queue",
    ];
    assert_eq!(names, expected);
    let expected = [
        "mission/CPU 0 0-10 route.plan",
        "mission/CPU 0 10-12 nav",
        "mission/CPU 0 12-15 route.plan",
        "mission/CPU 0 20-25 route.plan",
        "mission/CPU 0 30-45 nav",
        "mission/CPU 1 15-23 route.draw",
        "mission/lane 0: 10ms 10-12 nav",
        "mission/lane 0: 10ms 30-45 nav",
        "mission/lane 1: 20ms (2) 20-25 route.plan",
        "mission/lane 1: 20ms 0-15 route.plan",
        "mission/lane 1: 20ms 15-23 route.draw",
    ]
    .map(in_ms);
    assert_eq!(picture.slices, expected);
    let of = |kind: &str| -> Vec<&str> {
        let found = picture.instants.iter().filter(|name| name.contains(kind));
        found.map(|name| name.split_once(": ").unwrap().1).collect()
    };
    let missed = ["20ms 20000000 deadline missed: route.draw #0", "10ms 40000000 deadline missed: nav #3"];
    assert_eq!(of("missed"), missed);
    assert_eq!(of("skip"), ["10ms 0 skip: nav #0"]);
    assert_eq!(of("abort"), ["20ms 25000000 abort: route.plan #1"]);
    assert_eq!(of("release").len(), 5);
    let queue: Vec<_> = picture.counters.iter().map(|counter| counter.rsplit_once(' ').unwrap().1).collect();
    assert_eq!(queue, ["1", "1", "2", "1", "1"]);
    let draw_end = &picture.annotations["mission/lane 1: 20ms 23000000 end"];
    let expected = [("response_ns", "int 8000000"), ("lateness_ns", "int 3000000")];
    assert_eq!(*draw_end, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

/// `track 1-2 name` with the times in milliseconds as nanoseconds.
fn in_ms(slice: &str) -> String {
    let words = slice.split(' ').map(|word| match word.split_once('-') {
        Some((begin, end)) => match (begin.parse::<i64>(), end.parse::<i64>()) {
            (Ok(begin), Ok(end)) => format!("{}-{}", begin * MS, end * MS),
            _ => word.to_owned(),
        },
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn arrows_lead_from_release_to_start_and_from_job_to_successor() {
    let picture = picture(&metadata(), &NameSpace::default(), &small_run(), ms(45));
    let lane = "mission/lane 1: 20ms";
    let expected = [
        "mission/lane 0: 10ms 10000000 release: nav #1 > mission/lane 0: 10ms 10000000 nav".to_owned(),
        "mission/lane 0: 10ms 30000000 release: nav #3 > mission/lane 0: 10ms 30000000 nav".to_owned(),
        format!("{lane} 0 release: route.plan #0 > {lane} 0 route.plan"),
        format!("{lane} 0 route.plan > {lane} 15000000 release: route.draw #0"),
        format!("{lane} 15000000 release: route.draw #0 > {lane} 15000000 route.draw"),
        format!("{lane} 20000000 release: route.plan #1 > {lane} (2) 20000000 route.plan"),
    ];
    assert_eq!(picture.arrows(), expected);
}

#[test]
fn arrows_lead_from_a_value_to_who_takes_it() {
    use talea_record::event::{Publish, Take};
    let mut metadata = metadata();
    metadata.outputs =
        vec![OutputEntry { name: "nav.position".into(), operation: 0, is_kept: false, releases: Vec::new() }];
    metadata.inputs = vec![InputEntry {
        name: "route.plan.position".into(),
        operation: 1,
        output: 0,
        as_of_arrival: false,
        is_waited_for: false,
    }];
    let id =
        |operation, instance| JobId { operation: talea_model::OperationId::from_index(operation), instance };
    let published = Publish { job: id(0, 3), output: 0, visible: at(ms(5)), lane: 0 };
    let taken = Take { job: id(1, 0), from: Some(id(0, 3)), input: 0, values: 1, lane: 1 };
    let records = [published.at(at(ms(5)), 0), taken.at(at(ms(7)), 0)];
    let found = picture(&metadata, &NameSpace::default(), &records, ms(10));
    let arrows = found.arrows();
    let is_it = |arrow: &String| {
        arrow.contains("publish: nav.position #3") && arrow.contains("take: route.plan.position #3")
    };
    assert!(arrows.iter().any(is_it), "{arrows:?}");
}

#[test]
fn arrows_lead_from_an_event_to_the_job_that_takes_it() {
    use talea_record::PublicationEntry;
    use talea_record::event::{Deliver, EventsLost, Push};
    let own = metadata();
    // A task that it releases, and an operation that takes it when something else has released that.
    for (subscribers, takers) in [(vec![own.operations[1].task], vec![]), (vec![], vec![1])] {
        let mut metadata = own.clone();
        metadata.publications = vec![PublicationEntry {
            name: "nav>health Robot/Battery".into(),
            operation: Some(0),
            channel: "health".into(),
            event_type: "Robot/Battery".into(),
            subscribers,
            takers,
            is_kept: false,
        }];
        let id = |operation, instance| JobId {
            operation: talea_model::OperationId::from_index(operation),
            instance,
        };
        let pushed = Push { job: id(0, 3), publication: 0, lane: 0 };
        let taken = Deliver { job: id(1, 0), from: Some(id(0, 3)), publication: Some(0), number: 0, lane: 1 };
        let lost = EventsLost { operation: 1, events: 2, node: 0, why: EventLossReason::Expired.into() };
        let records = [pushed.at(at(ms(5)), 0), taken.at(at(ms(7)), 0), lost.at(at(ms(8)), 0)];
        let found = picture(&metadata, &NameSpace::default(), &records, ms(10));
        let arrows = found.arrows();
        let is_it = |arrow: &String| {
            arrow.contains("push: Robot/Battery #3") && arrow.contains("deliver: Robot/Battery #3")
        };
        assert!(arrows.iter().any(is_it), "{arrows:?}");
        let shown = format!("{found:?}");
        assert!(shown.contains("expired: 2 for") && shown.contains("delay_ns"), "{shown}");
    }
}

/// Who takes what a program pushes is not known beforehand: one arrow leads on from taker to taker. Two jobs of one number are not taken for each other.
#[test]
fn events_of_a_programs_channel_are_shown_with_its_name() {
    use talea_record::event::{Deliver, Push};
    use talea_record::{Definition, PublicationEntry};
    let mut metadata = metadata();
    let number = metadata.publications.len();
    let entry = PublicationEntry {
        name: "motion Arm/Command".into(),
        operation: None,
        channel: "motion".into(),
        event_type: "Arm/Command".into(),
        subscribers: Vec::new(),
        takers: Vec::new(),
        is_kept: false,
    };
    metadata.define(&Definition::Publication { number, entry });
    let id =
        |operation, instance| JobId { operation: talea_model::OperationId::from_index(operation), instance };
    let (publication, lane) = (number as u32, 0);
    let push = |time, operation| Push { job: id(operation, 3), publication, lane }.at(at(ms(time)), 0);
    let take = |time, instance, from| {
        let publication = Some(publication);
        Deliver { job: id(2, instance), from, publication, number: 0, lane: 1 }.at(at(ms(time)), 0)
    };
    let from = Some(id(0, 3));
    let records = [push(5, 0), push(6, 1), take(7, 0, from), take(8, 1, from), take(9, 2, None)];
    let found = picture(&metadata, &NameSpace::default(), &records, ms(10));
    let arrows = found.arrows();
    let of_events: Vec<&String> = arrows.iter().filter(|arrow| arrow.contains("push:")).collect();
    let [arrow] = &of_events[..] else { panic!("{arrows:?}") };
    assert_eq!(arrow.matches("deliver: Arm/Command #3").count(), 2, "{arrow}");
    let shown = format!("{found:?}");
    let delays = ["2000000", "3000000"];
    assert!(delays.iter().all(|delay| shown.contains(delay)), "since the push of that job: {shown}");
    assert!(shown.contains("motion"), "{shown}");
}

/// `plan` on node `mission` tells `draw` on node `display`.
#[test]
fn arrows_cross_nodes_with_the_message() {
    let mut metadata = metadata();
    metadata.nodes.push(NodeEntry {
        name: "display".into(),
        cpus: vec![0],
        switches: Switches::default(),
        decided_by: DecidedBy::default(),
    });
    metadata.lanes.push(LaneEntry {
        node: 1,
        level: 0,
        label: "draw".into(),
        discipline: "fifo".into(),
        under: None,
    });
    metadata.operations[2].lane = 2;
    let plan = |event, time| job(event, RUN_START_NS + time, 1, 4, [RUN_START_NS, RUN_START_NS + 99], 1);
    let draw = |event, time| Record { source: 2, ..job(event, RUN_START_NS + time, 2, 4, [0, 0], 1) };
    let records = [
        plan(Event::RELEASE, 1),
        plan(Event::START, 2),
        plan(Event::COMPLETE, 10),
        Record { words: [2, 0], ..plan(Event::SEND, 11) },
        Record { words: [RUN_START_NS as u64 + 11, 0], ..draw(Event::RECEIVE, 15) },
        draw(Event::RELEASE, 16),
        draw(Event::START, 17),
        draw(Event::COMPLETE, 20),
    ];
    let picture = picture(&metadata, &NameSpace::default(), &records, RUN_START_NS + 30);
    let (from, to) = ("mission/lane 1: 20ms", "display/lane 0: draw");
    let expected = [
        format!("{to} 16 release: route.draw #4 > {to} 17 route.draw"),
        format!("{from} 1 release: route.plan #4 > {from} 2 route.plan"),
        format!(
            "{from} 11 send: route.draw #4 > {to} 15 receive: route.draw #4 > {to} 16 release: route.draw #4"
        ),
        format!("{from} 2 route.plan > {from} 11 send: route.draw #4 > {to} 16 release: route.draw #4"),
    ];
    assert_eq!(picture.arrows(), expected);
    let took = &picture.annotations[&format!("{to} 15 receive: route.draw #4")];
    assert_eq!(*took, [("took_ns".into(), "int 4".into())]);
}

fn after(event: Event, time: i64, words: [u64; 2], cpu: u16) -> Record {
    Record { event, words, cpu, arg: 0, causal: 0, source: 0, time: at(RUN_START_NS + time) }
}

fn named(time: i64, tid: u64, name: &str) -> Record {
    Record {
        causal: tid | 900 << 32,
        ..after(Event::THREAD_NAME, time, Text::new(name).words(), Record::NO_CPU)
    }
}

/// From thread to thread on a processor.
fn switch(time: i64, cpu: u16, from: u64, to: u64) -> Record {
    after(Event::SWITCH, time, [from | to << 32, 900 << 32], cpu)
}

#[test]
fn the_kernel_says_who_really_ran() {
    let lane = Record {
        event: Event::THREAD,
        words: [7 | 900 << 32, 0],
        source: 0,
        arg: ThreadRole::Lane as u16,
        ..numbered(RUN_START_NS as u64)
    };
    let records = [
        lane,
        named(1, 8, "hog"),
        switch(10, 0, 0, 8),
        after(Event::WAKEUP, 12, [7 | 8 << 32, 0], 0),
        switch(13, 0, 8, 7),
        after(Event::IRQ_ENTER, 14, [3, 0], 0),
        after(Event::IRQ_EXIT, 15, [3, 0], 0),
        after(Event::SYSCALL_ENTER, 16, [202, 7], 0),
        switch(17, 0, 7, 0),
        switch(20, 1, 0, 7),
        after(Event::SYSCALL_EXIT, 21, [-4i64 as u64, 7], 1),
        named(22, 7, "lane-10ms"),
        switch(25, 1, 7, u32::MAX.into()),
        switch(26, 1, u32::MAX.into(), 0),
        switch(27, 0, 0, 7),
        // Its leaving processor 0 is lost.
        switch(28, 1, 0, 7),
    ];
    let picture = picture(&metadata(), &NameSpace::default(), &records, RUN_START_NS + 30);
    let thread = "mission/lane-10ms (7)";
    let expected = [
        "Kernel/CPU 0 interrupts 14-15 interrupt 3".to_owned(),
        "Kernel/CPU 0 threads 10-13 hog (8)".to_owned(),
        "Kernel/CPU 0 threads 13-17 lane 10ms (7)".to_owned(),
        "Kernel/CPU 0 threads 27-28 lane-10ms (7)".to_owned(),
        "Kernel/CPU 1 threads 20-25 lane 10ms (7)".to_owned(),
        "Kernel/CPU 1 threads 25-26 not observed".to_owned(),
        "Kernel/CPU 1 threads 28-30 lane-10ms (7)".to_owned(),
        "Other threads/hog (8) 10-13 CPU 0".to_owned(),
        "mission/lane 10ms (7)/lane 10ms (7) system calls 16-21 system call 202".to_owned(),
        format!("{thread} 13-17 CPU 0"),
        format!("{thread} 20-25 CPU 1"),
        format!("{thread} 27-28 CPU 0"),
        format!("{thread} 28-30 CPU 1"),
    ];
    assert_eq!(picture.slices, expected);
    assert_eq!(
        picture.arrows(),
        ["Kernel/CPU 0 threads 12 wake lane 10ms (7) > Kernel/CPU 0 threads 13 lane 10ms (7)"]
    );
}

#[test]
fn dispatching_and_release_lateness_have_tracks() {
    let cost = |time, cost: u64, kind| Record { arg: kind as u16, ..after(Event::COST, time, [cost, 3], 1) };
    let start = RUN_START_NS as u64;
    let records = [
        cost(100, 20, CostKind::Queue),
        // It was preempted meanwhile, so it began no later than the one before ended.
        cost(110, 50, CostKind::Release),
        after(Event::TIMER, 120, [start + 115, start + 112], 0),
    ];
    let picture = picture(&metadata(), &NameSpace::default(), &records, RUN_START_NS + 200);
    let expected = [
        "mission/CPU 1 dispatching 100-110 release",
        "mission/CPU 1 dispatching 80-100 queue",
        "mission/releases 115-120 timer",
    ];
    assert_eq!(picture.slices, expected);
    assert_eq!(picture.counters, ["mission/release lateness 120 5"]);
    let annotations = &picture.annotations["mission/CPU 1 dispatching 100 release"];
    assert_eq!(annotations[0], ("cost_ns".into(), "int 50".into()));
    let annotations = &picture.annotations["mission/releases 115 timer"];
    assert_eq!(annotations[1], ("woken_after_ns".into(), "int -3".into()));
}

#[test]
fn events_of_programs_stand_with_their_thread_and_losses_are_seen() {
    let names = {
        let mut names = strange_names();
        let fields = vec![Field::new("volts", FieldKind::F64, Part::First)];
        let event = EventEntry { number: 1, name: "level".into(), about: "".into(), fields: fields.into() };
        let family =
            Family { number: 0x41, name: "battery".into(), about: "".into(), events: vec![event].into() };
        names.add(family).unwrap();
        names
    };
    let narrow = Record { arg: 1 << 8, ..after(Event(0x7701), 6, [0xffff_fff6_fffe_05ff, 1 | 2 << 16], 1) };
    let release = job(Event::RELEASE, RUN_START_NS + 1, 0, 5, [RUN_START_NS, RUN_START_NS + 99], 1);
    let records = [
        release,
        Record { causal: release.causal, ..after(Event(0x4101), 2, [(-0.5f64).to_bits(), 0], 0) },
        named(3, 8, "sampler"),
        switch(5, 1, 0, 8),
        narrow,
        after(Event(0x7704), 7, Text::new("ü\"").words(), Record::NO_CPU),
        after(Event(0x4444), 8, [9, 8], 0),
        Record { source: 3, ..after(Event::LOST, 9, [17, 0], Record::NO_CPU) },
        Record { source: Record::KERNEL, ..after(Event::LOST, 10, [5, 0], 1) },
    ];
    let picture = picture(&metadata(), &names, &records, RUN_START_NS + 20);
    let expected = [
        "mission/lane 0: 10ms 1 release: nav #5",
        "Program events on CPU 0 2 battery:level",
        "Other threads/sampler (8) 6 größe {strange}:narrow",
        "Program events 7 größe {strange}:text",
        "Program events on CPU 0 8 event 0x4444",
        "Lost records 9 17 records of ring 3 lost",
        "Lost records 10 5 records of the kernel lost on CPU 1",
    ];
    assert_eq!(picture.instants, expected);
    assert_eq!(picture.counters, ["battery:level volts 2 -0.5"]);
    assert_eq!(
        picture.arrows(),
        ["mission/lane 0: 10ms 1 release: nav #5 > Program events on CPU 0 2 battery:level"]
    );
    let shown = |place: &str| -> Vec<String> {
        picture.annotations[place].iter().map(|(name, value)| format!("{name}: {value}")).collect()
    };
    let narrow = shown("Other threads/sampler (8) 6 größe {strange}:narrow");
    assert_eq!(narrow[..5], ["i8: int -1", "u8: uint 5", "i16: int -2", "i32: int -10", "bool: bool true"]);
    assert_eq!(shown("Program events 7 größe {strange}:text"), ["text: string ü\"", "event: uint 0"]);
    assert_eq!(shown("Program events on CPU 0 2 battery:level")[0], "volts: double -0.5");
}
