//! What jobs take is handed to who keeps it, as far as that has room.

use std::cell::RefCell;
use talea_model::{OperationId, PublicationBuilder, SubscriptionBuilder, System, TaskBuilder};
use talea_notification::declared::{Room, connect, numbered_push, parts_of_push};
use talea_notification::qos::QosSettings;
use talea_operation::{EventNote, JobServices, KeptBytes, Moment, NotPosted, Operation, Operations, Posted};
use talea_time::{Duration, Instant, Work};

const ROOM: usize = 2;

fn system() -> System {
    let task = TaskBuilder::new("push", Duration::from_millis(1)).wcet(Work::from_micros(1));
    let take = TaskBuilder::triggered_by("take", SubscriptionBuilder::new("c").types(["T/One"]));
    System::builder("kept")
        .channel("c", QosSettings::new())
        .task(task.event(PublicationBuilder::new("c", "T/One").bytes(8)))
        .task(take.deadline(Duration::from_millis(1)).wcet(Work::from_micros(1)))
        .build()
        .expect("sound")
}

/// Posts go nowhere: the test takes what was pushed. What is told is noted.
#[derive(Default)]
struct Pushing(RefCell<Vec<EventNote>>);

impl JobServices for Pushing {
    fn clock(&self) -> Instant {
        Instant::ZERO
    }

    fn is_to_stop(&self) -> bool {
        false
    }

    fn post(&self, _posted: Posted) -> Result<u64, NotPosted> {
        Ok(0)
    }

    fn note(&self, note: EventNote, _at: Instant) {
        self.0.borrow_mut().push(note);
    }
}

/// The operations `push` and `take`, connected with so much room for what is taken and pushed.
fn operations(taken: usize, pushed: usize) -> [Operation; 2] {
    let system = system();
    let is_taker = |operation: OperationId| if system.takes_events(operation) { taken } else { 0 };
    let room = Room { taken: &is_taker, pushed: &|_| pushed, ..Room::NONE };
    let assembled =
        connect(&system, Operations::synthetic(), room).operations.assemble(&system).expect("sound");
    let operations: Vec<Operation> = assembled.operations.into_iter().flatten().collect();
    operations.try_into().unwrap_or_else(|_| panic!("there are two"))
}

#[test]
fn what_is_not_taken_in_time_is_told_and_nothing_else_suffers() {
    let [mut push, mut take] = operations(ROOM, 0);
    assert!(push.keep_events().is_none(), "it takes none");
    let mut end = take.keep_events().expect("synthetic events are bytes");
    let mut not_kept = Vec::new();
    // More than all slots, so that events go round.
    for instance in 0..20 {
        push.push_events(&Pushing::default(), instance);
        let (mut taken, mut notes) = (0, Vec::new());
        let moment = Moment { instance, as_of: Instant::ZERO };
        take.take_events(moment, |_| taken += 1, |note| notes.push(note));
        assert_eq!(taken, 1, "a job has its event whether or not it is kept");
        if notes.contains(&EventNote::NotKept) {
            not_kept.push(instance);
        }
        take.leave(instance);
        if instance == 9 {
            let mut kept = Vec::new();
            end.take_all(Instant::MAX, &mut [0; 1 << 10], &mut |stamp, bytes| {
                assert!(matches!(bytes, KeptBytes::Bytes([_, ..])));
                kept.push(stamp.instance);
            });
            assert_eq!(kept, [0, 1]);
        }
    }
    let expected: Vec<u64> = (2..10).chain(12..20).collect();
    assert_eq!((not_kept, end.connection().dropped()), (expected, 16));
}

#[test]
fn pushes_are_numbered_and_told_of_when_they_are_not_recorded_in_time() {
    let [mut push, mut take] = operations(0, ROOM);
    assert!(take.keep_pushes().is_empty(), "it pushes nothing");
    let mut ends = push.keep_pushes();
    let (publication, Some(mut end)) = ends.pop().expect("it pushes as one publication") else {
        panic!("synthetic events are bytes")
    };
    for round in 0..3 {
        let services = Pushing::default();
        (0..4).for_each(|job| push.push_events(&services, 4 * round + job));
        let is_told = |note: &EventNote| *note == EventNote::PushNotKept(publication);
        assert_eq!(services.0.borrow().iter().filter(|note| is_told(note)).count(), 4 - ROOM);
        let mut kept = Vec::new();
        end.take_all(Instant::MAX, &mut [0; 1 << 10], &mut |stamp, bytes| {
            let KeptBytes::Bytes(bytes) = bytes else { panic!("there is room for its bytes") };
            let (number, event) = numbered_push(bytes).expect("it has a number");
            let (header, content) = parts_of_push(event).expect("it is an event");
            assert!(!header.is_empty() && number == 0 && parts_of_push(&event[1..]).is_none());
            kept.push((stamp.instance, content.last().copied()));
        });
        let expected = [0, 1].map(|job| (4 * round + job, Some((4 * round + job) as u8)));
        assert_eq!(kept, expected, "the content of a synthetic event is the number of its job");
    }
}

#[test]
fn without_room_nothing_is_kept() {
    let [_, mut take] = operations(0, 0);
    assert!(take.events_are_bytes() && take.keep_events().is_none());
}

/// A job that another one passes has its event still when it goes on, and gives it back when it never does.
#[test]
fn whoever_is_passed_keeps_its_event_until_it_leaves() {
    let [mut push, mut take] = operations(0, 0);
    let mut begin = |instance| {
        let mut taken = Vec::new();
        take.take_events(Moment { instance, as_of: Instant::ZERO }, |event| taken.push(event.from), |_| ());
        if instance == 1 {
            // The one before it is aborted.
            take.leave_events(0);
        }
        taken.len()
    };
    (0..2).for_each(|instance| push.push_events(&Pushing::default(), instance));
    assert_eq!([begin(0), begin(1), begin(1)], [1, 1, 0], "the last one has what it had");
    (2..40).for_each(|instance| push.push_events(&Pushing::default(), instance));
    assert_eq!(begin(0), 1, "it begins anew, with another event");
}
