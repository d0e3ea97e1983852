//! Streams within one process: consumers, switching, publishing, finding.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use talea_record::ring::DrawingMemory;
use talea_record::stream::publish::{FindError, KEPT_DEAD, PlaceError, PublishError};
use talea_record::stream::*;
use talea_record::stream::{RegisterError, register};
use talea_record::*;
use talea_samples::*;

const SHAPE: RingShape<'static> = RingShape { writers: &[], spare: 3, capacity: 64, later: 0 };

fn selection(text: &str) -> Selection {
    text.parse().unwrap()
}

fn drained(consumer: &mut Consumer) -> Vec<Record> {
    let mut out = Vec::new();
    consumer.drain(&mut out);
    out
}

/// Writes the events that anybody wants, as a program does.
fn emit(writer: &mut RingWriter, directory: &Directory, events: &[Event], time: i64) {
    for event in events {
        if writer.is_wanted(directory.switch(*event).unwrap()) {
            writer.record(talea_samples::event(event.0, time));
        }
    }
}

#[test]
fn two_consumers_see_what_each_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let file = RingFile::create_shaped(&path, &metadata(), SHAPE).unwrap();
    let known = Directory::default();
    let mut writer = file.claim("w").unwrap();
    let mut jobs = file.attach("jobs", &selection("job"), Start::Now).unwrap();
    let mut switches = TraceFile::attach(&path, "switches", &selection("kernel.switch"), Start::Now).unwrap();
    let all = [Event::START, Event::SWITCH, Event::IRQ_ENTER, Event::LOST];
    emit(&mut writer, &known, &all, 1);
    assert_eq!(writer.written(), 2, "nobody wants the others");
    assert_eq!(drained(&mut jobs), [event(Event::START.0, 1)]);
    assert_eq!(drained(&mut switches), [event(Event::SWITCH.0, 1)]);

    switches.select(&selection("kernel,job.start")).unwrap();
    emit(&mut writer, &known, &all, 2);
    drop(jobs);
    emit(&mut writer, &known, &[Event::START, Event::COMPLETE], 3);
    let seen = [(Event::START, 2), (Event::SWITCH, 2), (Event::IRQ_ENTER, 2), (Event::START, 3)];
    assert_eq!(drained(&mut switches), seen.map(|(number, time)| event(number.0, time)));

    drop(switches);
    emit(&mut writer, &known, &all, 4);
    assert_eq!(writer.written(), 6, "nobody wants anything");
}

/// What waits in the rings was written under the old choice, and is delivered under it.
#[test]
fn a_choice_holds_for_what_is_written_under_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let file = RingFile::create_shaped(&path, &metadata(), SHAPE).unwrap();
    let mut writer = file.claim("w").unwrap();
    let mut consumer = file.attach("c", &selection("job"), Start::Now).unwrap();
    let mut write = |time| {
        writer.record(event(Event::START.0, time));
        writer.record(event(Event::SWITCH.0, time));
    };
    write(1);
    consumer.select(&selection("kernel")).unwrap();
    write(2);
    assert_eq!(drained(&mut consumer), [event(Event::START.0, 1), event(Event::SWITCH.0, 2)]);
    let error = consumer.select(&selection("job,kernle")).unwrap_err();
    assert_eq!(error.to_string(), "there is no family or event \"kernle\"; did you mean \"kernel\"?");
    write(3);
    assert_eq!(drained(&mut consumer), [event(Event::SWITCH.0, 3)], "the old choice holds");
    let seen = |start| drained(&mut file.attach("late", &selection("job"), start).unwrap());
    assert_eq!(seen(Start::Now), []);
    assert_eq!(seen(Start::Oldest), [1, 2, 3].map(|time| event(Event::START.0, time)));
}

#[test]
fn each_consumer_counts_its_own_losses() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let file = RingFile::create_shaped(&path, &metadata(), RingShape { capacity: 8, ..SHAPE }).unwrap();
    let mut writer = file.claim("w").unwrap();
    let mut quick = file.attach("quick", &selection("job"), Start::Now).unwrap();
    let mut slow = TraceFile::attach(&path, "slow", &selection("job"), Start::Now).unwrap();
    let mut seen = Vec::new();
    for time in 0..20 {
        writer.record(event(Event::START.0, time));
        quick.drain(&mut seen);
    }
    assert_eq!((seen.len(), quick.lost()), (20, 0));
    let late = drained(&mut slow);
    assert_eq!((late[0].event, late[0].words[0], late.len(), slow.lost()), (Event::LOST, 13, 8, 13));
    let afterwards = file.attach("after", &selection("job"), Start::Oldest).unwrap();
    assert_eq!(afterwards.lost(), 0, "what was gone before it came is not its loss");
}

#[test]
fn what_has_not_settled_waits_in_memory_and_not_in_the_ring() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let file = RingFile::create_shaped(&path, &metadata(), RingShape { capacity: 8, ..SHAPE }).unwrap();
    let mut writer = file.claim("w").unwrap();
    let mut consumer = TraceFile::attach(&path, "c", &selection("job"), Start::Now).unwrap();
    let mut seen = Vec::new();
    for part in 0..10 {
        (part * 5..part * 5 + 5).for_each(|time| writer.record(event(Event::START.0, time)));
        assert_eq!(consumer.poll(at(0), &mut seen), 0, "nothing has settled");
    }
    assert_eq!((consumer.poll(at(50), &mut seen), consumer.lost()), (50, 0));
    assert!(seen.iter().map(|record| record.time.as_nanos()).eq(0..50));
}

#[test]
fn a_family_registered_later_is_found_named_and_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let file = RingFile::create_shaped(&path, &metadata(), SHAPE).unwrap();
    let mut everything = TraceFile::attach(&path, "all", &Selection::all(), Start::Now).unwrap();
    let mut some = TraceFile::attach(&path, "job", &selection("job"), Start::Now).unwrap();
    let opened = TraceFile::open(&path).unwrap();
    let later = family(0x90, "later");
    assert_eq!(opened.name_space().unwrap().family("later"), None);
    let entry = register(&later, &[]).unwrap();
    assert_eq!(register(&later, &[]).unwrap(), entry, "once is enough");
    assert_eq!(opened.name_space().unwrap().family("later"), Some(&later));
    assert_eq!(opened.name_space().unwrap().event(Event(0x9001)).unwrap().1.name, "reset");

    let mut writer = file.claim("w").unwrap();
    let known = opened.directory().unwrap();
    let events = [Event(0x9000), Event(0x9001)];
    emit(&mut writer, &known, &events, 1);
    assert_eq!((drained(&mut everything).len(), drained(&mut some).len()), (2, 0));
    some.select(&selection("later.*,-later.fix")).unwrap();
    emit(&mut writer, &known, &events, 2);
    let unsaid = Record { source: Record::NO_WRITER, ..event(0x9001, 2) };
    assert_eq!(drained(&mut some), [unsaid], "nobody has said who writes");
    let second = RingFile::create_shaped(&directory.path().join("second"), &metadata(), SHAPE).unwrap();
    let mut log = LogWriter::create(&directory.path().join("log"), &metadata()).unwrap();
    log.enter(some.directory().unwrap()).unwrap();
    log.enter(some.directory().unwrap()).unwrap();
    log.record(event(0x9000, 1));
    assert_eq!(log.finish().unwrap(), 1);
    drop(second);
    for name in ["second", "log"] {
        let space = TraceFile::open(&directory.path().join(name)).unwrap().name_space().unwrap();
        assert_eq!(space.family("later"), Some(&later), "{name}");
    }
}

#[test]
fn families_that_cannot_be_are_refused() {
    let refused = |family| register(&family, &[]).unwrap_err();
    assert!(matches!(refused(family(0x3f, "low")), RegisterError::Reserved { .. }));
    assert!(matches!(refused(family(0x91, "job")), RegisterError::Family { .. }));
    register(&family(0x91, "first"), &[]).unwrap();
    let message = refused(family(0x91, "second")).to_string();
    assert!(message.starts_with("family \"second\" (0x91) is there already; give one"), "{message}");
    let twice =
        PassiveDeclaration { name: "fix".into(), about: "".into(), kind: passive::PassiveKind::Counter };
    let error = register(&family(0x92, "third"), &[twice]).unwrap_err();
    assert!(error.to_string().starts_with("\"fix\" occurs twice in family \"third\""), "{error}");
}

#[test]
fn threads_claim_rings_and_give_them_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let file = RingFile::create_shaped(&path, &metadata(), RingShape { spare: 2, ..SHAPE }).unwrap();
    let mut consumer = TraceFile::attach(&path, "c", &selection("job"), Start::Now).unwrap();
    let mut first = file.claim("first").unwrap();
    let _second = file.claim("second").unwrap();
    assert!(file.claim("third").is_none());
    first.record(event(Event::START.0, 1));
    drop(first);
    let mut third = file.claim("third").unwrap();
    assert_eq!(third.written(), 1, "it goes on where the first stopped");
    third.record(event(Event::START.0, 2));
    assert_eq!(drained(&mut consumer), [1, 2].map(|time| event(Event::START.0, time)));
    let names: Vec<_> = TraceFile::open(&path).unwrap().rings().iter().map(RingReader::name).collect();
    assert_eq!(names, ["third", "second"]);
}

/// A thread's record about itself.
fn thread(tid: u32, time: i64) -> Record {
    let (lane, role) = (None, ThreadRole::Program.into());
    event::Thread { tid, pid: 7, node: 0, lane, role }.at(at(time), Record::NO_CPU)
}

#[test]
fn a_ring_is_taken_over_only_when_all_passes_have_read_it_and_later_rings_come_instead() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let shape = RingShape { spare: 1, capacity: 4, later: 2, ..SHAPE };
    let file = RingFile::create_shaped(&path, &metadata(), shape).unwrap();
    let consumer = TraceFile::attach(&path, "c", &Selection::all(), Start::Now).unwrap();
    let (_slot, mut drawer, readers) = consumer.into_drawn(&DrawingMemory::new(1 << 20));
    drawer.pass();
    let unread = |number: u32| {
        let mut writer = file.claim(&format!("t{number}")).unwrap();
        writer.identify(&thread(number, 0));
        writer.record(thread(number, i64::from(number)));
        writer.record(event(0x9000, i64::from(number)));
    };
    // One spare ring, two later ones, which nobody has read meanwhile.
    (1..=3).for_each(unread);
    assert_eq!(TraceFile::open(&path).unwrap().rings().len(), 3);
    drawer.pass();
    (4..=6).for_each(unread);
    drawer.pass();
    let mut merge = Merge::new(readers);
    let mut records = Vec::new();
    merge.drain(&mut records);
    assert_eq!(merge.lost(), 0);
    let seen: Vec<i64> = records.iter().filter(|r| r.event.0 == 0x9000).map(|r| r.time.as_nanos()).collect();
    assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
    // An event has the ring as its source, and the latest THREAD record of that number says who had it.
    let mut who = std::collections::HashMap::new();
    for record in &records {
        match event::Thread::read(record) {
            Some(thread) => _ = who.insert(record.causal, thread.tid),
            None => assert_eq!(who[&(u64::from(record.source) + 1)], record.time.as_nanos() as u32),
        }
    }
    // In this process, too, all rings are seen.
    assert_eq!(file.readers().iter().map(RingReader::written).sum::<u64>(), 12);
    let living = std::array::from_fn::<_, 3, _>(|_| file.claim("living").unwrap());
    assert!(file.claim("one too many").is_none());
    drop(living);
}

#[test]
fn records_of_a_thread_that_is_not_known_are_not_said_to_be_of_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let shape = RingShape { spare: 1, capacity: 4, ..SHAPE };
    let file = RingFile::create_shaped(&path, &metadata(), shape).unwrap();
    let mut consumer = TraceFile::attach(&path, "c", &Selection::all(), Start::Now).unwrap();
    let mut first = file.claim("first").unwrap();
    first.identify(&thread(1, 0));
    first.record(thread(1, 0));
    (1..=6).for_each(|time| first.record(event(0x9000, time)));
    drop(first);
    // Overwrites what said who the first was, but not all that the first wrote.
    let mut second = file.claim("second").unwrap();
    second.identify(&thread(2, 7));
    second.record(event(0x9000, 7));
    let records = drained(&mut consumer);
    let sources: Vec<_> = records.iter().map(|record| (record.event.0, record.source)).collect();
    let unknown = (0x9000, Record::NO_WRITER);
    assert_eq!(sources, [(Event::LOST.0, 0), unknown, unknown, unknown], "the batch begins with the first's");
    second.record(event(0x9000, 8));
    assert_eq!(drained(&mut consumer)[0].source, 0, "the header says who writes from there on");
}

#[test]
fn what_is_beyond_the_memory_of_a_recorder_is_lost_for_that_cause() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("rings");
    let file =
        RingFile::create_shaped(&path, &metadata(), RingShape { spare: 1, capacity: 8, ..SHAPE }).unwrap();
    let consumer = TraceFile::attach(&path, "c", &Selection::all(), Start::Now).unwrap();
    let (_slot, mut drawer, mut readers) = consumer.into_drawn(&DrawingMemory::new(40));
    let mut writer = file.claim("w").unwrap();
    let mut write = |times: std::ops::Range<i64>| times.for_each(|time| writer.record(event(0x9000, time)));
    write(0..2);
    drawer.pass();
    write(2..20);
    drawer.pass();
    let mut next = || readers[0].take().map(|record| (record.event, record.time.as_nanos()));
    assert_eq!([next(), next(), next()], [Some((Event(0x9000), 0)), Some((Event(0x9000), 1)), None]);
    drawer.pass();
    let lost = event::Lost::read(&readers[0].take().unwrap()).unwrap();
    assert_eq!((lost.records, lost.cause.known()), (11, Some(LossCause::RecorderFull)));
    let rest = std::iter::from_fn(|| readers[0].take()).count();
    assert_eq!(rest, 7);
}

#[test]
fn a_stream_is_published_listed_switched_and_removed() {
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    let mut stream =
        streams.publish("robot", &metadata(), RingShape { writers: &writers(1), ..SHAPE }).unwrap();
    let path = streams.path().join(format!("{}.robot", std::process::id()));
    assert_eq!(stream.path(), path);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(matches!(streams.publish("robot", &metadata(), SHAPE), Err(PublishError::Taken(_))));

    let mut operator = Operator::open(&path).unwrap();
    operator.switch(&selection("job,kernel"), Switching::On).unwrap();
    operator.switch(&selection("job.*,kernel,-kernel.switch"), Switching::Off).unwrap();
    assert_eq!(operator.switched_on().unwrap(), ["kernel.switch"]);
    let switch = builtin_switch(Event::SWITCH);
    drop(operator);
    let mut writer = stream.rings.writer(0);
    assert!(writer.is_wanted(switch), "it stays on though nobody is attached");
    writer.record(numbered(1));

    let consumer = TraceFile::attach(&path, "watcher", &selection("job.start"), Start::Now).unwrap();
    let [found] = <[_; 1]>::try_from(streams.list().unwrap()).unwrap();
    assert_eq!(
        (found.pid, found.name.as_str(), found.liveness),
        (std::process::id(), "robot", Liveness::Alive)
    );
    let content = found.content.unwrap();
    let who = |consumer: &publish::ListedConsumer| (consumer.name.clone(), consumer.wants.clone());
    assert_eq!(
        content.consumers.iter().map(who).collect::<Vec<_>>(),
        [("watcher".into(), vec!["job.start".to_owned()])]
    );
    assert_eq!(content.rings.len(), 1, "spare rings that nobody used are not listed");
    assert_eq!((content.rings[0].name.as_str(), content.rings[0].written), ("writer 0", 1));
    assert_eq!(content.metadata, metadata());
    drop(stream);
    assert!(!path.exists() && streams.list().unwrap().is_empty());
    drop(consumer);
}

#[test]
fn streams_are_found_by_what_tells_them_apart() {
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    let _kept: Vec<_> =
        ["robot", "camera"].map(|name| streams.publish(name, &metadata(), SHAPE).unwrap()).into();
    let find = |which: &str| streams.find(which);
    let pid = std::process::id();
    assert_eq!(find("robot").unwrap().name, "robot");
    assert_eq!(find(&format!("{pid}.camera")).unwrap().name, "camera");
    let error = find(&pid.to_string()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("\"{pid}\" can be any of {pid}.camera, {pid}.robot; write one of these")
    );
    let error = find("robt").unwrap_err();
    assert_eq!(error.to_string(), "there is no stream \"robt\"; did you mean \"robot\"?");
    assert!(matches!(error, FindError::Unknown { .. }));
}

#[test]
fn names_that_are_paths_and_places_that_are_open_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    for name in ["", "..", "a/b", ".hidden", "a b", &"x".repeat(65)] {
        assert!(matches!(streams.publish(name, &metadata(), SHAPE), Err(PublishError::Name(_))), "{name}");
    }
    let open = place.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(StreamDirectory::at(&open), Err(PlaceError::Open { mode: 0o755, .. })));
    let link = place.path().join("link");
    std::os::unix::fs::symlink(streams.path(), &link).unwrap();
    assert!(matches!(StreamDirectory::at(&link), Err(PlaceError::NotADirectory { .. })));
    assert!(matches!(StreamDirectory::at(&place.path().join("no/such")), Err(PlaceError::Io { .. })));
}

#[test]
fn the_newest_streams_of_the_dead_are_kept() {
    let place = tempfile::tempdir().unwrap();
    let streams = StreamDirectory::at(&place.path().join("streams")).unwrap();
    // No process has so great a number.
    let dead = |index: usize| streams.path().join(format!("{}.gone", 4_194_000 + index));
    let live = streams.publish("living", &metadata(), SHAPE).unwrap();
    let bytes = {
        let mut bytes = fs::read(live.path()).unwrap();
        let control = u64::from_le_bytes(bytes[80..88].try_into().unwrap()) as usize;
        bytes[control..control + 8].copy_from_slice(&4_194_303u64.to_le_bytes());
        bytes
    };
    let start = std::time::SystemTime::now();
    for index in 0..KEPT_DEAD + 3 {
        fs::write(dead(index), &bytes).unwrap();
        let made = start - std::time::Duration::from_secs(100 - index as u64);
        fs::File::options().append(true).open(dead(index)).unwrap().set_modified(made).unwrap();
    }
    let _other = streams.publish("other", &metadata(), SHAPE).unwrap();
    let listed = streams.list().unwrap();
    let names = |liveness| listed.iter().filter(|listed| listed.liveness == liveness).count();
    assert_eq!((names(Liveness::Alive), names(Liveness::Dead)), (2, KEPT_DEAD));
    assert!((0..3).all(|index| !dead(index).exists()), "the oldest are gone");
    assert_eq!(streams.find("living").unwrap().liveness, Liveness::Alive);
}

#[test]
fn a_log_is_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    LogWriter::create(&path, &metadata()).unwrap().finish().unwrap();
    let error = TraceFile::attach(&path, "c", &Selection::all(), Start::Now).unwrap_err();
    assert!(matches!(error, AttachError::NotAStream));
}

/// Everybody may make folders in shared memory, so the place of a user may be taken by another one.
#[test]
fn a_place_that_somebody_else_has_taken_is_passed_over() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    let [taken, free, later] = ["taken", "free", "later"].map(at);
    fs::create_dir(&taken).unwrap();
    // Only root can make what is somebody else's; without it the place is not taken.
    if std::os::unix::fs::chown(&taken, Some(4711), None).is_err() {
        return;
    }
    let places = [taken.clone(), free.clone(), later.clone()];
    let directory = StreamDirectory::first_of(&places).unwrap();
    assert_eq!(directory.path(), free);
    let said = directory.passed_over().unwrap();
    assert!(said.contains("belongs to user 4711") && said.contains("free is used instead"), "{said}");
    // What was published while another place was free is found, too.
    let elsewhere = StreamDirectory::at(&later).unwrap();
    assert_eq!(elsewhere.passed_over(), None);
    let _stream = elsewhere.publish("elsewhere", &metadata(), SHAPE).unwrap();
    let directory = StreamDirectory::first_of(&places).unwrap();
    assert_eq!(directory.find("elsewhere").unwrap().path.parent(), Some(later.as_path()));
    // One's own that others may enter is to be put right, and not passed over.
    let open = at("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(StreamDirectory::first_of(&[open, free]), Err(PlaceError::Open { .. })));
    // Somebody else's link is no directory.
    let link = at("link");
    std::os::unix::fs::symlink(&later, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(4711), None).unwrap();
    let directory = StreamDirectory::first_of(&[link, later.clone()]).unwrap();
    assert_eq!(directory.path(), later);
    let all_taken = StreamDirectory::first_of(&[taken]);
    assert!(matches!(all_taken, Err(PlaceError::Foreign { owner: 4711, .. })));
}
