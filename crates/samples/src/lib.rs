//! A small system's metadata and records about it, for the tests of the crates that write, read and show records; recordings that leave events out; and
//! drawn conditions.

#![forbid(unsafe_code)]

pub mod conditions;
pub mod recordings;

use talea_model::{Criticality, OperationId};
use talea_record::declaration::{EventEntry, Family, Field, FieldKind, Part};
use talea_record::*;
use talea_time::{Duration, Instant, Work};

/// One node with two processors and two lanes; a critical task of one operation (`nav`) and a soft one
/// (`route`) of a chain `plan` → `draw`.
pub fn metadata() -> Metadata {
    let task = |name: &str, ms, criticality| TaskEntry {
        name: name.into(),
        period: Duration::from_millis(ms),
        deadline: Duration::from_millis(ms),
        phase: Duration::ZERO,
        jitter: Duration::ZERO,
        jitter_stream: 0,
        criticality,
        activity: Activity::Task,
        released_by: ReleasedBy::Period,
        inherits_deadline: false,
        keeps_events: false,
    };
    let operation = |name: &str, task, lane, predecessors: &[usize], is_last| OperationEntry {
        name: name.into(),
        task,
        lane,
        wcet: Work::from_millis(2),
        predecessors: predecessors.to_vec(),
        is_last,
        keeps_reads: false,
        is_of_channel: false,
        keeps_events: false,
    };
    let lane = |level, label: &str| LaneEntry {
        node: 0,
        level,
        label: label.into(),
        discipline: "fifo".into(),
        under: None,
    };
    Metadata {
        system: "test".into(),
        strategy: "rms".into(),
        origin: Origin::Threads { realtime: true },
        start: Instant::from_nanos(1_000_000_000),
        nodes: vec![NodeEntry {
            name: "mission".into(),
            cpus: vec![0, 1],
            switches: Switches::default(),
            decided_by: DecidedBy::default(),
        }],
        lanes: vec![lane(0, "10ms"), lane(1, "20ms")],
        tasks: vec![task("nav", 10, Criticality::High), task("route", 20, Criticality::Low)],
        operations: vec![
            operation("nav", 0, 0, &[], true),
            operation("route.plan", 1, 1, &[], false),
            operation("route.draw", 1, 1, &[1], true),
        ],
        schedulers: Vec::new(),
        edges: Vec::new(),
        threads: Vec::new(),
        kernel_policies: Vec::new(),
        outputs: Vec::new(),
        inputs: Vec::new(),
        publications: Vec::new(),
        chains: Vec::new(),
        names_senders: true,
        promise_tolerance: None,
        keeps_posts: false,
        unrecorded: std::collections::BTreeSet::new(),
        recorded: None,
        seed: None,
        realtime_offset_ns: None,
    }
}

/// An instant of so many nanoseconds.
pub fn at(ns: i64) -> Instant {
    Instant::from_nanos(ns)
}

/// A record that carries `n` in every word, at time `n`.
pub fn numbered(n: u64) -> Record {
    let causal = JobId { operation: OperationId::from_index(0), instance: n }.pack();
    let (event, source, cpu, arg) = (Event::START, 0, 0, n as u16);
    Record { time: at(n as i64), causal, words: [n, n], event, source, cpu, arg }
}

/// What a thread of a program says about itself, by which events of source `number` are known to be its own.
pub fn wrote(time: i64, number: u64, tid: u32, pid: u32) -> Record {
    let (lane, role) = (None, talea_record::ThreadRole::Program.into());
    let thread = talea_record::event::Thread { tid, pid, node: 0, lane, role };
    Record { causal: number + 1, ..talea_record::event::BuiltinEvent::at(thread, at(time), Record::NO_CPU) }
}

/// Names for so many writers.
pub fn writers(count: usize) -> Vec<String> {
    (0..count).map(|index| format!("writer {index}")).collect()
}

/// A job event on processor 0, in the lane that [`metadata`] gives the operation. A start has no words: nobody has posted its job.
pub fn job(event: Event, time_ns: i64, operation: usize, instance: u64, words: [i64; 2], arg: u16) -> Record {
    let causal = JobId { operation: OperationId::from_index(operation), instance }.pack();
    let source = u16::from(operation > 0);
    let words = if event == Event::START { [0; 2] } else { words };
    Record { time: at(time_ns), causal, words: words.map(|word| word as u64), event, source, cpu: 0, arg }
}

/// The beginning or end of a run of node 0.
pub fn run_event(event: Event, time_ns: i64) -> Record {
    Record { time: at(time_ns), causal: 0, words: [0, 0], event, source: 0, cpu: Record::NO_CPU, arg: 0 }
}

/// A family of a program: events `fix` and `reset`. Registered as often as a test wants it.
pub fn family(number: u8, name: &str) -> Family {
    let field = |name: &'static str, kind, part| Field::new(name, kind, part);
    let event = |number, name: &str, fields: Vec<Field>| EventEntry {
        number,
        name: name.to_owned().into(),
        about: "Something happened.".into(),
        fields: fields.into(),
    };
    let fix = vec![
        field("latitude", FieldKind::F64, Part::First),
        field("longitude", FieldKind::F64, Part::Second),
    ];
    let events =
        vec![event(0, "fix", fix), event(1, "reset", vec![field("cause", FieldKind::U32, Part::First)])];
    Family { number, name: name.to_owned().into(), about: "For a test.".into(), events: events.into() }
}

/// A record of event `event` at time `time`.
pub fn event(event: u16, time: i64) -> Record {
    let event = Event(event);
    Record { time: at(time), causal: 0, words: [0; 2], event, source: 0, cpu: Record::NO_CPU, arg: 0 }
}

/// A family with every type of field, names that TSDL cannot hold, and an event without fields.
pub fn strange_family() -> Family {
    use talea_record::declaration::FieldKind::*;
    use talea_record::declaration::Part::*;
    let entry = |number, name: &'static str, fields: Vec<Field>| EventEntry {
        number,
        name: name.into(),
        about: "ends */ a \"comment\"\nor not".into(),
        fields: fields.into(),
    };
    let events = vec![
        entry(0, "floats \"quoted\\ ü", vec![Field::new("f64", F64, First), Field::new("f32", F32, Second)]),
        entry(
            1,
            "narrow",
            vec![
                Field::new("i8", I8, First),
                Field::new("u8", U8, First).shifted(8),
                Field::new("i16", I16, First).shifted(16),
                Field::new("i32", I32, First).shifted(32),
                Field::new("bool", Bool, Second),
                Field::new("u16", U16, Second).shifted(16),
                Field::new("u32", U32, Second).shifted(32),
                Field::new("enum", Bool, Arg).shifted(8),
            ],
        ),
        entry(2, "wide", vec![Field::new("i64", I64, First), Field::new("job", Job, Second)]),
        entry(3, "times", vec![Field::new("at", Instant, First), Field::new("for", Duration, Second)]),
        entry(4, "text", vec![Field::new("text", Text, First), Field::new("event", U64, Causal)]),
        entry(5, "nothing", Vec::new()),
        entry(6, "bytes", vec![Field::new("eight", Bytes8, Second), Field::new("also", Bytes8, First)]),
        entry(7, "many", vec![Field::new("sixteen", Bytes16, First)]),
    ];
    Family { number: 0x77, name: "größe {strange}".into(), about: "".into(), events: events.into() }
}

/// The builtin families and [`strange_family`].
pub fn strange_names() -> NameSpace {
    let mut names = NameSpace::default();
    names.add(strange_family()).unwrap();
    names
}

/// When the runs of [`metadata`] start.
pub const RUN_START_NS: i64 = 1_000_000_000;
/// Nanoseconds of a millisecond.
pub const MS: i64 = 1_000_000;

/// So many milliseconds after [`RUN_START_NS`].
pub fn ms(value: i64) -> i64 {
    RUN_START_NS + value * MS
}

/// `nav` preempts `route.plan`, `route.draw` runs on the other processor at the same time as another job
/// of its lane and is late, one instance is skipped, one aborted, one never ends.
pub fn small_run() -> Vec<Record> {
    let nav =
        |event, time, k: i64, arg| job(event, ms(time), 0, k as u64, [ms(10 * k), ms(10 * k + 10)], arg);
    let plan = |event, time, k: i64| job(event, ms(time), 1, k as u64, [ms(20 * k), ms(20 * k + 20)], 1);
    let draw = |event, time| Record { cpu: 1, ..job(event, ms(time), 2, 0, [ms(15), ms(20)], 2) };
    let by_nav = JobId { operation: OperationId::from_index(0), instance: 1 }.pack();
    vec![
        run_event(Event::RUN_START, RUN_START_NS),
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

/// `route.plan` has begun when `nav` of the higher lane begins, and goes on or ends after it.
pub fn overlapping() -> Vec<Record> {
    let plan = |event, after: i64| {
        job(event, RUN_START_NS + after, 1, 0, [RUN_START_NS, RUN_START_NS + 20_000_000], 1)
    };
    let nav = |event, after: i64| {
        job(event, RUN_START_NS + after, 0, 0, [RUN_START_NS + 100, RUN_START_NS + 10_000_000], 1)
    };
    vec![
        run_event(Event::RUN_START, RUN_START_NS),
        plan(Event::RELEASE, 0),
        plan(Event::START, 10),
        nav(Event::RELEASE, 100),
        nav(Event::START, 120),
        nav(Event::COMPLETE, 700),
        plan(Event::COMPLETE, 1_000),
        run_event(Event::RUN_END, RUN_START_NS + 2_000),
    ]
}
