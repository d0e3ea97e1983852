//! The kernel stream against threads that keep their own books.
//!
//! Two threads on one processor hand a token to and fro and read the clock before they give it away and after they get
//! it. What the kernel says must agree with that, in order and in number. Where the kernel withholds its events, a test
//! says so on standard error and passes.

use crate::kernel_support::*;
use std::collections::BTreeMap;
use std::io::Write as _;
use talea_record::*;
use talea_recording::kernel::*;
use talea_recording::recording::{Recording, RecordingOptions};
use talea_recording::*;
use talea_time::{Duration, Instant};

#[test]
fn every_hand_over_is_a_switch_between_two_readings_of_the_clock() {
    let Some(cpu) = a_processor() else { return };
    let players = Players::new(cpu);
    let Some(stream) = open(&options(cpu, &[KernelEvent::Switches])) else { return };
    let hand_overs = players.play(500, Pace::Free);
    let (records, totals) = finish(stream);
    assert_eq!(totals.lost_in_all(), 0, "{totals:?}");

    assert_in_order(&records);
    assert_passed_on(&of(&records, Event::SWITCH));
    let records = with_unseen_arrivals(&records);
    let switches = of(&records, Event::SWITCH);
    assert!(switches.iter().all(|record| record.cpu == cpu && record.source == Record::KERNEL));
    assert_eq!(hand_overs.len(), 1000);
    for hand_over in &hand_overs {
        let between: Vec<_> = switches.iter().filter(|record| hand_over.contains(record.time)).collect();
        let left = between.iter().position(|record| from(record) == hand_over.from);
        let arrived = between.iter().rposition(|record| to(record) == hand_over.to);
        let (Some(left), Some(arrived)) = (left, arrived) else { panic!("{hand_over:?}: {between:?}") };
        assert!(left <= arrived, "{hand_over:?}: {between:?}");
    }
    let pids = |record: &Record| (record.words[1] as u32, (record.words[1] >> 32) as u32);
    let own = std::process::id();
    let direct = switches.iter().filter(|r| (from(r), to(r)) == (players.tids[0], players.tids[1]));
    assert!(direct.map(|record| pids(record)).all(|pids| pids == (own, own)));
}

#[test]
fn a_wake_up_has_its_waker_its_target_and_its_processor() {
    let Some(cpu) = a_processor() else { return };
    let players = Players::new(cpu);
    let Some(stream) = open(&options(cpu, &[KernelEvent::Switches, KernelEvent::Wakeups])) else { return };
    let hand_overs = players.play(50, Pace::WhenTheOtherSleeps);
    let (records, totals) = finish(stream);
    assert_eq!(totals.lost_in_all(), 0, "{totals:?}");

    assert_in_order(&records);
    let records = with_unseen_arrivals(&records);
    let wakeups = of(&records, Event::WAKEUP);
    for hand_over in &hand_overs {
        let mine = |record: &&&Record| woken(record) == hand_over.to && hand_over.contains(record.time);
        let [wakeup] = wakeups.iter().filter(mine).collect::<Vec<_>>()[..] else {
            panic!("{hand_over:?} has not one wake-up: {wakeups:?}")
        };
        assert_eq!((wakeup.words[0] >> 32) as u32, hand_over.from);
        assert_eq!(wakeup.words[1] as u16, cpu, "it is pinned there");
        assert_eq!(wakeup.arg, WakeContext::Thread as u16);
        assert!((100..140).contains(&(wakeup.words[1] >> 32)), "an ordinary thread: {wakeup:?}");
        let arrival = of(&records, Event::SWITCH)
            .into_iter()
            .find(|record| to(record) == hand_over.to && hand_over.contains(record.time));
        assert!(arrival.is_some_and(|arrival| wakeup.time <= arrival.time), "woken before it runs");
    }
}

#[test]
fn threads_are_known_by_name_whether_older_or_younger_than_the_stream() {
    let Some(cpu) = a_processor() else { return };
    let older = Players::new(cpu);
    let Some(stream) = open(&KernelOptions {
        processors: Processors::Online,
        events: [KernelEvent::Names].into(),
        ..options(cpu, &[])
    }) else {
        return;
    };
    let mut younger = [0, 0];
    std::thread::Builder::new()
        .name("named-later".into())
        .spawn(|| {
            // The name is set by the thread itself; one without a name of its own has its creator's.
            let nameless = std::thread::spawn(thread_number).join().unwrap();
            (thread_number(), nameless)
        })
        .unwrap()
        .join()
        .map(|(named, nameless)| younger = [named, nameless])
        .unwrap();
    let (records, _) = finish(stream);

    let mut names: BTreeMap<u32, String> = BTreeMap::new();
    for record in of(&records, Event::THREAD_NAME) {
        names.insert(record.causal as u32, text(record));
    }
    let pid_of = |tid| {
        let record = records.iter().find(|r| r.event == Event::THREAD_NAME && r.causal as u32 == tid);
        record.map(|record| (record.causal >> 32) as u32)
    };
    for (tid, name) in older.tids.iter().zip(["ping", "pong"]) {
        assert_eq!(names.get(tid).map(String::as_str), Some(name));
        assert_eq!(pid_of(*tid), Some(std::process::id()));
    }
    for tid in younger {
        assert_eq!(names.get(&tid).map(String::as_str), Some("named-later"));
        assert_eq!(pid_of(tid), Some(std::process::id()));
        let exit = of(&records, Event::THREAD_EXIT).into_iter().find(|record| record.words[0] as u32 == tid);
        assert_eq!(exit.map(|record| (record.words[0] >> 32) as u32), Some(std::process::id()));
    }
    assert_in_order(&records);
}

#[test]
fn a_recording_has_the_names_of_threads_that_are_created_and_what_comes_after() {
    let Some(cpu) = a_processor() else { return };
    let Some(stream) = open(&KernelOptions {
        processors: Processors::Online,
        events: [KernelEvent::Names].into(),
        ..options(cpu, &[])
    }) else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("recorded.talea");
    let mut recording = Recording::new(&file, "names", RecordingOptions::default()).unwrap();
    let (control, sources) = stream.split();
    recording.hear(control, sources);
    let create = || {
        let code = || std::thread::spawn(thread_number).join().unwrap();
        std::thread::Builder::new().name("creator".into()).spawn(code).unwrap().join().unwrap()
    };
    let nameless: Vec<u32> = (0..50).map(|_| create()).collect();
    let recorded = recording.finish().unwrap();

    let mut records = Vec::new();
    TraceFile::open(&file).unwrap().replay(&mut records).unwrap();
    assert_eq!(recorded.kernel.map(|kernel| kernel.records), Some(records.len() as u64));
    let names = of(&records, Event::THREAD_NAME);
    for tid in nameless {
        let name = names.iter().find(|record| record.causal as u32 == tid).map(|record| text(record));
        assert_eq!(name.as_deref(), Some("creator"));
    }
}

#[test]
fn what_a_small_buffer_cannot_hold_is_counted_where_it_is_missing() {
    let Some(cpu) = a_processor() else { return };
    let players = Players::new(cpu);
    let small = KernelOptions { buffer_bytes: 1, ..options(cpu, &[KernelEvent::Switches]) };
    let Some(mut stream) = open(&small) else { return };
    // A switch makes two events of 24 bytes in the buffer, which is one page.
    let held = (rustix::param::page_size() / 24) as u64;
    let first_round = players.play(1000, Pace::Free);
    let mut records = Vec::new();
    stream.poll(now(), &mut records);
    assert!(of(&records, Event::LOST).is_empty(), "the kernel tells a loss with the next event");
    let before_the_gap = records.len();
    players.play(1, Pace::Free);
    stream.poll(now(), &mut records);
    let gap = &records[before_the_gap..];
    let lost = gap.first().expect("there was room for more");
    assert_eq!((lost.event, lost.cpu, lost.source), (Event::LOST, cpu, Record::KERNEL));
    assert!(lost.words[0] >= 2 * 2000 - held, "{lost:?}");
    assert!(gap[1].event == Event::SWITCH && gap[1].time >= lost.time, "the one that was told with the loss");
    assert!(first_round.last().unwrap().end < lost.time, "the time after the gap");

    players.play(1000, Pace::Free);
    let told = lost.words[0];
    let (rest, totals) = finish(stream);
    let last = rest.last().unwrap();
    assert_eq!((last.event, last.cpu), (Event::LOST, cpu), "lost at the end, where no event followed");
    assert!(last.words[0] >= 2 * 2000 - held, "{last:?}");
    let all: u64 = of(&rest, Event::LOST).iter().map(|record| record.words[0]).sum();
    assert_eq!(totals.lost, [(cpu, told + all)]);
    assert_eq!(totals.records, (records.len() + rest.len()) as u64);
    assert_in_order(&records);
}

#[test]
fn reading_beside_the_writer_tears_no_record_and_counts_every_gap() {
    let Some(cpu) = a_processor() else { return };
    let players = Players::new(cpu);
    // One page, whose end records span again and again.
    let small = KernelOptions { buffer_bytes: 1, ..options(cpu, &[KernelEvent::Switches]) };
    let Some(mut stream) = open(&small) else { return };
    let mut records = Vec::new();
    let game = std::thread::spawn(move || players.play(3000, Pace::Free));
    while !game.is_finished() {
        stream.poll(now(), &mut records);
    }
    let hand_overs = game.join().unwrap();
    let (rest, totals) = finish(stream);
    records.extend(rest);
    assert_eq!(totals.undecodable, 0);
    assert_in_order(&records);
    let told: u64 = of(&records, Event::LOST).iter().map(|record| record.words[0]).sum();
    assert_eq!(told, totals.lost_in_all());
    let switches = of(&records, Event::SWITCH).len() as u64;
    assert!(2 * switches + told >= 2 * hand_overs.len() as u64, "{switches} switches, {told} lost");
    for part in records.split(|record| record.event == Event::LOST) {
        assert_passed_on(&of(part, Event::SWITCH));
    }
}

#[test]
fn own_threads_are_followed_without_any_privilege() {
    let Some(cpu) = a_processor() else { return };
    without_capabilities(move || {
        let players = Players::new(cpu);
        let own = KernelOptions {
            scope: KernelScope::Process(std::process::id()),
            events: [KernelEvent::Switches, KernelEvent::Names].into(),
            buffer_bytes: 4 * SMALL_BUFFER,
            ..options(cpu, &[])
        };
        let Some(stream) = open(&own) else { return };
        assert!(stream.control().caveats()[0].contains("own threads"));
        let hand_overs = players.play(200, Pace::Free);
        let younger = std::thread::spawn(move || {
            pin(cpu);
            thread_number()
        });
        let younger = younger.join().unwrap();
        let (records, totals) = finish(stream);
        assert_eq!(totals.lost_in_all(), 0, "{totals:?}");

        assert_in_order(&records);
        let switches = of(&records, Event::SWITCH);
        for record in &switches {
            assert!((from(record) == UNSEEN) != (to(record) == UNSEEN), "{record:?}");
        }
        for hand_over in &hand_overs {
            let between: Vec<_> = switches.iter().filter(|record| hand_over.contains(record.time)).collect();
            let left = between.iter().position(|record| from(record) == hand_over.from);
            let arrived = between.iter().rposition(|record| to(record) == hand_over.to);
            assert!(left.is_some() && arrived.is_some() && left < arrived, "{hand_over:?}");
        }
        // A thread born after the opening is followed too, up to its end.
        let ends = of(&records, Event::THREAD_EXIT);
        assert!(ends.iter().any(|record| record.words[0] as u32 == younger), "{ends:?}");
        let last = switches.iter().rfind(|record| [from(record), to(record)].contains(&younger));
        assert_eq!(last.map(|record| to(record)), Some(UNSEEN), "it is gone");
    });
}

#[test]
fn what_the_kernel_withholds_comes_with_the_way_to_get_it() {
    let Some(cpu) = a_processor() else { return };
    let level: i32 = match std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") {
        Ok(level) => level.trim().parse().unwrap(),
        Err(error) => return skip(&format!("/proc/sys/kernel/perf_event_paranoid: {error}")),
    };
    if level < 1 {
        return skip(&format!("kernel.perf_event_paranoid is {level}: nothing is withheld"));
    }
    without_capabilities(move || {
        let wanted = options(cpu, &KernelEvent::ALL);
        let found = preflight(&wanted);
        assert_eq!(found.available, []);
        let refused = match KernelStream::open(&wanted, now()) {
            Err(KernelError::Refused(refused)) => refused,
            other => panic!("refused by preflight ({found:?}) but {other:?}"),
        };
        assert_eq!(refused, found, "opening says what preflight said");
        assert_eq!(found.obstacles[0].cause, Cause::Paranoid);
        let text = KernelError::Refused(found).to_string();
        assert!(text.contains(&format!("perf_event_paranoid is {level}")), "{text}");
        assert!(
            text.contains("sysctl kernel.perf_event_paranoid=-1") && text.contains("cap_perfmon"),
            "{text}"
        );
    });
}

/// A processor that has much to do can fill its buffer, so what a gap may have swallowed is not judged; and events
/// are switched on and off one after the other, so nothing outside of `begun` and `over` is.
#[test]
fn interrupts_and_system_calls_come_in_pairs_around_their_threads() {
    let Some(cpu) = a_processor() else { return };
    let players = Players::new(cpu);
    let Some(mut stream) = open(&options(cpu, &[KernelEvent::Interrupts, KernelEvent::SystemCalls])) else {
        return;
    };
    let (begun, tids) = (now(), players.tids);
    let mut records = Vec::new();
    let game = std::thread::spawn(move || players.play(20, Pace::Free));
    while !game.is_finished() {
        stream.poll(now(), &mut records);
        stream.control().wait(Duration::from_millis(1));
    }
    let (hand_overs, over) = (game.join().unwrap(), now());
    let (rest, totals) = finish(stream);
    records.extend(rest);
    assert_eq!(totals.undecodable, 0, "{totals:?}");
    assert_in_order(&records);
    let gaps = gaps(&records);
    let whole: Vec<_> = hand_overs.iter().filter(|hand_over| hand_over.is_outside(&gaps)).collect();
    if whole.is_empty() {
        return skip(&format!("the processor has too much to do, events were lost all the time: {totals:?}"));
    }
    // Giving the token away is a write, and it happens between the two readings of the clock.
    let calls = of(&records, Event::SYSCALL_ENTER);
    for hand_over in &whole {
        let is_the_givers =
            |call: &&Record| call.words[1] as u32 == hand_over.from && hand_over.contains(call.time);
        assert!(calls.iter().any(is_the_givers), "{hand_over:?}");
    }
    // The giver's write may return after the token has come; its next one begins later.
    if gaps.is_empty() {
        let of_ping = |exit: &&Record| exit.words[1] as u32 == tids[0] && exit.words[0] == 1;
        let exits = of(&records, Event::SYSCALL_EXIT);
        assert!(exits.iter().any(of_ping), "a token is one byte");
    }
    let judged = records.iter().filter(|record| (begun..over).contains(&record.time));
    assert_interrupts_in_pairs(judged);
}

/// Whoever begins ends before the same begins again. What was under way at the beginning or at a gap is not known.
fn assert_interrupts_in_pairs<'a>(records: impl Iterator<Item = &'a Record>) {
    let mut inside: BTreeMap<(u16, u64), bool> = BTreeMap::new();
    for record in records {
        let interrupt = (record.arg, record.words[0]);
        match (record.event, inside.get(&interrupt)) {
            (Event::LOST, _) => inside.clear(),
            (Event::IRQ_EXIT, Some(false)) => panic!("an interrupt ends that has not begun: {record:?}"),
            (Event::IRQ_EXIT, _) => _ = inside.insert(interrupt, false),
            (Event::IRQ_ENTER, Some(true)) => panic!("interrupts of a kind do not nest: {record:?}"),
            (Event::IRQ_ENTER, _) => _ = inside.insert(interrupt, true),
            _ => {}
        }
    }
}

#[test]
fn the_kernel_merges_with_rings_on_one_clock() {
    let Some(cpu) = a_processor() else { return };
    let players = Players::new(cpu);
    let Some(stream) = open(&options(cpu, &[KernelEvent::Switches])) else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut file = RingFile::create(
        &directory.path().join("t"),
        &talea_samples::metadata(),
        &talea_samples::writers(1),
        4096,
    )
    .unwrap();
    let hand_overs = players.play(100, Pace::Free);
    let mut writer = file.writer(0);
    for (number, hand_over) in hand_overs.iter().enumerate() {
        writer.record(Record { time: hand_over.end, ..talea_samples::numbered(number as u64) });
    }
    let (mut control, sources) = stream.split();
    let mut merge: Merge<AnySource> = Merge::new(file.readers().into_iter().map(AnySource::from).collect());
    sources.into_iter().for_each(|source| merge.add(source.into()));
    control.stop().unwrap();
    let mut records = Vec::new();
    merge.drain(&mut records);
    assert_in_order(&records);
    assert_eq!(merge.late(), 0);
    let records = with_unseen_arrivals(&records);
    let arrivals = of(&records, Event::START);
    assert_eq!(arrivals.len(), hand_overs.len());
    for (arrival, hand_over) in arrivals.iter().zip(&hand_overs) {
        let at = records.iter().position(|record| record == *arrival).unwrap();
        let switch = records[..at].iter().rfind(|r| r.event == Event::SWITCH && r.cpu == cpu).unwrap();
        assert!(
            to(switch) == hand_over.to || switch.time < hand_over.start,
            "who runs is who wrote: {switch:?}"
        );
    }
}

#[test]
fn waiting_ends_when_a_buffer_fills_and_not_with_each_event() {
    let Some(cpu) = a_processor() else { return };
    let players = Players::new(cpu);
    let busy = KernelOptions { buffer_bytes: SMALL_BUFFER, ..options(cpu, &[KernelEvent::Switches]) };
    let Some(mut stream) = open(&busy) else { return };
    // Each switch takes two events of 24 bytes; a quarter of the buffer is enough.
    players.play(SMALL_BUFFER / 64, Pace::Free);
    assert_eq!(stream.control().wait(Duration::from_secs(60)), Waited::Filled);
    let mut records = Vec::new();
    stream.poll(Instant::from_nanos(i64::MAX), &mut records);
    assert!(records.len() * 48 > SMALL_BUFFER / 4, "{}", records.len());

    // A quarter of this buffer has room for the births and deaths of a thousand threads.
    let calm = KernelOptions { processors: Processors::Online, ..options(cpu, &[KernelEvent::Names]) };
    let Some(stream) = open(&calm) else { return };
    let seen = Players::new(cpu).tids[0];
    assert_eq!(stream.control().wait(Duration::ZERO), Waited::Elapsed);
    let (records, _) = finish(stream);
    assert!(records.iter().any(|r| r.event == Event::THREAD_NAME && r.causal as u32 == seen));
}

#[test]
fn options_that_ask_for_nothing_are_refused() {
    let error = |options: KernelOptions| KernelStream::open(&options, now()).unwrap_err();
    assert!(matches!(error(options(0, &[])), KernelError::NoEvents));
    let nowhere = Processors::These([].into());
    assert!(matches!(
        error(KernelOptions { processors: nowhere, ..KernelOptions::default() }),
        KernelError::NoProcessors
    ));
    let absent = KernelOptions { scope: KernelScope::Process(u32::MAX >> 1), ..KernelOptions::default() };
    match error(absent) {
        KernelError::Refused(found) => assert_eq!(found.obstacles[0].cause, Cause::NoSuchProcess),
        other => panic!("{other}"),
    }
}

fn text(record: &Record) -> String {
    let mut bytes = Vec::new();
    record.words.iter().for_each(|word| bytes.write_all(&word.to_le_bytes()).unwrap());
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').into()
}
