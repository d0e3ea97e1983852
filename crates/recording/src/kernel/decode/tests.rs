use super::*;
use crate::kernel::options::KernelScope;
use proptest::prelude::*;
use talea_record::InterruptKind;

const CPU: u16 = 3;
const WAKING: u16 = 375;
const MIGRATE: u16 = 371;
const IRQ_ENTRY: u16 = 225;
const SYS_ENTER: u16 = 443;
const SYS_EXIT: u16 = 442;

fn halves(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

fn tracepoints() -> Arc<[Tracepoint]> {
    let at = |offset, size| FieldAt { offset, size };
    let mut all = vec![
        Tracepoint {
            id: WAKING,
            meaning: Meaning::Wakeup { tid: at(24, 4), priority: at(28, 4), cpu: at(32, 4) },
        },
        Tracepoint { id: MIGRATE, meaning: Meaning::Move { tid: at(12, 4), cpu: at(24, 4) } },
        Tracepoint {
            id: IRQ_ENTRY,
            meaning: Meaning::Interrupt { edge: Edge::Enter, kind: InterruptKind::Device, number: at(8, 4) },
        },
        Tracepoint { id: SYS_ENTER, meaning: Meaning::SyscallEnter { number: at(8, 8) } },
        Tracepoint { id: SYS_EXIT, meaning: Meaning::SyscallExit { number: at(8, 8), result: at(16, 8) } },
    ];
    all.sort_by_key(|tracepoint| tracepoint.id);
    all.into()
}

struct Bench {
    decoder: Decoder,
    queue: VecDeque<Record>,
}

impl Bench {
    fn new(view: View) -> Self {
        Self::leaving_out(view, &[])
    }

    fn leaving_out(view: View, own: &[u32]) -> Self {
        let decoder = Decoder::new(CPU, view, tracepoints(), own.into());
        Bench { decoder, queue: VecDeque::new() }
    }

    fn feed(&mut self, kind: u32, misc: u16, body: &[u8]) -> Result<(), Undecodable> {
        self.decoder.decode(Raw { kind, misc, body }, &mut self.queue)
    }

    /// The records since the last call.
    fn records(&mut self) -> Vec<Record> {
        self.queue.drain(..).collect()
    }
}

/// Numbers one after the other, as the kernel lays them out.
#[derive(Clone, Default)]
struct Bytes(Vec<u8>);

impl Bytes {
    fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }
    fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_ne_bytes());
        self
    }
    /// The stamp of an event that belongs to a thread.
    fn owned(self, (tid, pid): (u32, u32), time: u64, stream: u64) -> Self {
        self.u32(pid).u32(tid).u64(time).u64(stream)
    }
    /// Tracepoint `id`, hit by thread `by`.
    fn raw(self, id: u16, flags: u8, by: u32, fields: &[u32]) -> Self {
        let mut data = Vec::from(id.to_ne_bytes());
        data.extend([flags, 0]);
        data.extend(by.to_ne_bytes());
        data.extend(fields.iter().flat_map(|field| field.to_ne_bytes()));
        let mut all = self.u32(data.len() as u32);
        all.0.extend(data);
        all
    }
}

fn bytes() -> Bytes {
    Bytes::default()
}

/// A side of a switch on a whole processor, which names the other thread.
fn side((tid, pid): (u32, u32), time: u64) -> Vec<u8> {
    bytes().u32(pid).u32(tid).u64(time).0
}

const LEAVES: u16 = SWITCH_OUT;
const ARRIVES: u16 = 0;

fn waking(stamp: Bytes, flags: u8, by: u32, [tid, prio, cpu]: [u32; 3]) -> Vec<u8> {
    stamp.raw(WAKING, flags, by, &[0, 0, 0, 0, tid, prio, cpu]).0
}

fn threads(record: &Record) -> [u32; 2] {
    assert_eq!(record.event, Event::SWITCH);
    [record.words[0] as u32, (record.words[0] >> 32) as u32]
}

#[test]
fn both_sides_of_a_switch_are_one_record() {
    let mut bench = Bench::new(View::Processor);
    let sides = [
        (LEAVES | SWITCH_OUT_PREEMPT, side((8, 80), 100)),
        (ARRIVES, side((7, 70), 101)),
        (LEAVES, side((0, 0), 102)),
        (ARRIVES, side((8, 80), 103)),
    ];
    sides.iter().for_each(|(misc, side)| bench.feed(kind::SWITCH_CPU_WIDE, *misc, side).unwrap());
    let words = [halves(7, 8), halves(70, 80)];
    let (time, event, source) = (Instant::from_nanos(100), Event::SWITCH, Record::KERNEL);
    let first = Record { time, causal: 0, words, event, source, cpu: CPU, arg: 1 };
    let words = [halves(8, 0), halves(80, 0)];
    let second = Record { time: Instant::from_nanos(102), words, arg: 0, ..first };
    assert_eq!(bench.records(), [first, second]);
}

#[test]
fn a_gap_is_told_with_its_processor_and_makes_arrivals_unseen() {
    const UNSEEN: u32 = Record::UNSEEN_THREAD;
    let mut bench = Bench::new(View::Processor);
    bench.feed(kind::SWITCH_CPU_WIDE, LEAVES, &side((8, 80), 100)).unwrap();
    bench.feed(kind::LOST, 0, &bytes().u64(1).u64(5).u64(200).0).unwrap();
    bench.feed(kind::SWITCH_CPU_WIDE, ARRIVES, &side((9, 90), 201)).unwrap();
    let records = bench.records();
    assert_eq!(threads(&records[0]), [UNSEEN, 8]);
    assert_eq!((records[1].event, records[1].words[0], records[1].cpu), (Event::LOST, 5, CPU));
    assert_eq!(threads(&records[2]), [9, UNSEEN]);
}

#[test]
fn a_dead_thread_leaves_under_the_number_it_came_with() {
    // Where events belong to threads, the kernel no longer knows it.
    let mut bench = Bench::new(View::Threads);
    bench.feed(kind::SWITCH, ARRIVES, &bytes().owned((7, 70), 100, 1).0).unwrap();
    bench.feed(kind::SWITCH, LEAVES, &bytes().owned((u32::MAX, 70), 110, 1).0).unwrap();
    assert_eq!(threads(&bench.records()[1]), [7, Record::UNSEEN_THREAD]);
}

#[test]
fn threads_alone_come_and_go_and_end() {
    let mut bench = Bench::new(View::Threads);
    let stamp = |thread, time| bytes().owned(thread, time, 1).0;
    bench.feed(kind::SWITCH, 0, &stamp((7, 70), 100)).unwrap();
    bench.feed(kind::SWITCH, SWITCH_OUT, &stamp((7, 70), 110)).unwrap();
    bench.feed(kind::SWITCH, 0, &stamp((7, 70), 120)).unwrap();
    let exit = bytes().u32(70).u32(1).u32(7).u32(1).u64(130).owned((7, 70), 130, 1);
    bench.feed(kind::EXIT, 0, &exit.0).unwrap();
    let records = bench.records();
    const UNSEEN: u32 = Record::UNSEEN_THREAD;
    let switches: Vec<_> = records.iter().filter(|r| r.event == Event::SWITCH).map(threads).collect();
    assert_eq!(switches, [[UNSEEN, 7], [7, UNSEEN], [UNSEEN, 7], [7, UNSEEN]]);
    assert_eq!((records[3].event, records[3].words[0]), (Event::THREAD_EXIT, halves(7, 70)));
}

#[test]
fn names_and_births_are_decoded() {
    let mut bench = Bench::new(View::Processor);
    let mut comm = bytes().u32(70).u32(7);
    comm.0.extend(b"fifteen letters\0");
    bench.feed(kind::COMM, 0, &comm.u64(100).0).unwrap();
    let family = |child: u32, parent: u32| bytes().u32(70).u32(70).u32(child).u32(parent).u64(110).u64(110);
    bench.feed(kind::FORK, 0, &family(8, 7).0).unwrap();
    bench.feed(kind::EXIT, 0, &family(7, 7).0).unwrap();
    let words = Text::from_bytes(b"fifteen letters").words();
    let at = |time| Instant::from_nanos(time);
    let [named, born, ended] = bench.records()[..] else { panic!("three records") };
    assert_eq!((named.event, named.causal, named.words), (Event::THREAD_NAME, halves(7, 70), words));
    assert_eq!(born, birth(at(110), CPU, 8, 70, 7));
    assert_eq!((ended.event, ended.words[0]), (Event::THREAD_EXIT, halves(7, 70)));
    assert_eq!(&Text::from_bytes(b"longer than sixteen bytes").padded(), b"longer than sixt");
}

#[test]
fn wake_ups_tell_context_priority_and_the_processor_chosen_last() {
    let mut bench = Bench::new(View::Processor);
    let in_timer = waking(bytes().u64(100), IN_INTERRUPT | IN_SOFT_INTERRUPT, 7, [8, -1_i32 as u32, 0]);
    bench.feed(kind::SAMPLE, 0, &in_timer).unwrap();
    let moved = bytes().u64(101).raw(MIGRATE, 0, 7, &[0, 8, 120, 0, 5]);
    bench.feed(kind::SAMPLE, 0, &moved.0).unwrap();
    let other = bytes().u64(102).raw(MIGRATE, 0, 7, &[0, 9, 120, 0, 6]);
    bench.feed(kind::SAMPLE, 0, &other.0).unwrap();
    let records = bench.records();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].words, [halves(8, 7), halves(5, u32::MAX)]);
    assert_eq!(records[0].arg, WakeContext::Interrupt as u16);
}

#[test]
fn one_wake_up_of_two_followed_threads_is_told_once() {
    let mut bench = Bench::new(View::Threads);
    let wake = |time, stream| waking(bytes().owned((7, 70), time, stream), 0, 7, [8, 120, 0]);
    for (time, stream) in [(100, 1), (101, 2), (200, 1), (201, 2)] {
        bench.feed(kind::SAMPLE, 0, &wake(time, stream)).unwrap();
    }
    // The waker alone is followed: each is one of its own.
    for time in [300, 400] {
        bench.feed(kind::SAMPLE, 0, &wake(time, 1)).unwrap();
    }
    let times: Vec<i64> = bench.records().iter().map(|record| record.time.as_nanos()).collect();
    assert_eq!(times, [100, 200, 300, 400]);
}

#[test]
fn system_calls_and_interrupts_keep_signs() {
    let mut bench = Bench::new(View::Processor);
    let exit = bytes().u64(100).raw(SYS_EXIT, 0, 7, &[35, 0, -4_i32 as u32, u32::MAX]);
    bench.feed(kind::SAMPLE, 0, &exit.0).unwrap();
    let irq = bytes().u64(101).raw(IRQ_ENTRY, 0, 7, &[24]);
    bench.feed(kind::SAMPLE, 0, &irq.0).unwrap();
    let records = bench.records();
    assert_eq!(records[0].words, [-4_i64 as u64, halves(7, 35)]);
    assert_eq!((records[1].words, records[1].arg), ([24, 0], InterruptKind::Device as u16));
}

#[test]
fn the_recorder_can_be_left_out_but_not_its_switches() {
    let mut bench = Bench::leaving_out(View::Processor, &[7, 9]);
    bench.feed(kind::SAMPLE, 0, &waking(bytes().u64(100), 0, 7, [8, 120, 0])).unwrap();
    bench.feed(kind::SAMPLE, 0, &waking(bytes().u64(101), 0, 1, [9, 120, 0])).unwrap();
    bench.feed(kind::SAMPLE, 0, &bytes().u64(102).raw(SYS_ENTER, 0, 7, &[1, 0]).0).unwrap();
    assert_eq!(bench.records(), []);
    bench.feed(kind::SAMPLE, 0, &waking(bytes().u64(103), 0, 1, [8, 120, 0])).unwrap();
    bench.feed(kind::SAMPLE, 0, &bytes().u64(104).raw(IRQ_ENTRY, 0, 7, &[24]).0).unwrap();
    bench.feed(kind::SWITCH_CPU_WIDE, ARRIVES, &side((7, 70), 105)).unwrap();
    assert_eq!(bench.records().len(), 3);
}

#[test]
fn a_record_that_was_stamped_before_its_predecessor_is_put_before_it() {
    let mut bench = Bench::new(View::Processor);
    for time in [100, 105, 103, 104, 106, 99] {
        let irq = bytes().u64(time).raw(IRQ_ENTRY, 0, 7, &[24]);
        bench.feed(kind::SAMPLE, 0, &irq.0).unwrap();
    }
    assert!(bench.queue.iter().is_sorted_by_key(|record| record.time));
    assert_eq!(bench.queue.len(), 6);
}

#[test]
fn unknown_kinds_tracepoints_and_lengths_are_counted_not_guessed() {
    let mut bench = Bench::new(View::Processor);
    assert_eq!(bench.feed(99, 0, &[0; 64]), Err(Undecodable));
    let unknown = bytes().u64(100).raw(1, 0, 7, &[0; 16]);
    assert_eq!(bench.feed(kind::SAMPLE, 0, &unknown.0), Err(Undecodable));
    let beyond = bytes().u64(100).u32(u32::MAX);
    assert_eq!(bench.feed(kind::SAMPLE, 0, &beyond.0), Err(Undecodable));
    let after_2262 = side((7, 70), u64::MAX);
    assert_eq!(bench.feed(kind::SWITCH_CPU_WIDE, ARRIVES, &after_2262), Err(Undecodable));
    assert_eq!(bench.records(), []);
}

#[test]
fn every_truncation_of_every_kind_is_survived() {
    let whole = [
        (kind::SWITCH_CPU_WIDE, side((7, 70), 100)),
        (kind::LOST, bytes().u64(1).u64(5).u64(200).0),
        (kind::EXIT, bytes().u32(70).u32(1).u32(7).u32(1).u64(130).u64(130).0),
        (kind::SAMPLE, waking(bytes().u64(100), 0, 7, [8, 120, 0])),
        (kind::SAMPLE, bytes().u64(1).raw(SYS_EXIT, 0, 7, &[35, 0, 1, 0]).0),
    ];
    for (kind, whole) in whole {
        let mut bench = Bench::new(View::Processor);
        bench.feed(kind, ARRIVES, &whole).unwrap();
        for length in 0..whole.len() {
            let shorter = bench.feed(kind, ARRIVES, &whole[..length]);
            // The note of a birth or death has a time and a reserved word more than are looked at.
            assert!(shorter == Err(Undecodable) || kind == kind::EXIT, "kind {kind} of {length} bytes");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        records in prop::collection::vec((0..20_u32, any::<u16>(), prop::collection::vec(any::<u8>(), 0..120)), 0..40),
        scope in prop::sample::select(vec![KernelScope::Machine, KernelScope::Process(1)]),
    ) {
        let mut bench = Bench::new(crate::kernel::assemble::view(scope));
        for (kind, misc, body) in records {
            let before = bench.queue.len();
            let outcome = bench.feed(kind, misc, &body);
            prop_assert!(bench.queue.len() <= before + 2);
            prop_assert!(outcome.is_ok() || bench.queue.len() == before);
        }
        prop_assert!(bench.queue.iter().is_sorted_by_key(|record| record.time));
    }
}
