//! What jobs take is handed to who keeps it, as far as that has room.

use talea_model::{OperationId, PublicationBuilder, SubscriptionBuilder, System, TaskBuilder};
use talea_notification::declared::{Room, connect};
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

/// Posts go nowhere: the test takes what was pushed.
struct Pushing;

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

    fn note(&self, _note: EventNote, _at: Instant) {}
}

/// The operations `push` and `take`, connected with so much room for what is kept.
fn operations(room: usize) -> [Operation; 2] {
    let system = system();
    let is_taker = |operation: OperationId| if system.takes_events(operation) { room } else { 0 };
    let room = Room { taken: &is_taker, pushed: &|_| 0 };
    let assembled = connect(&system, Operations::synthetic(), room).assemble(&system).expect("sound");
    let operations: Vec<Operation> = assembled.operations.into_iter().flatten().collect();
    operations.try_into().unwrap_or_else(|_| panic!("there are two"))
}

#[test]
fn what_is_not_taken_in_time_is_told_and_nothing_else_suffers() {
    let [mut push, mut take] = operations(ROOM);
    assert!(push.keep_events().is_none(), "it takes none");
    let mut end = take.keep_events().expect("synthetic events are bytes");
    let mut not_kept = Vec::new();
    // More than all slots, so that events go round.
    for instance in 0..20 {
        push.push_events(&Pushing, instance);
        let (mut taken, mut notes) = (0, Vec::new());
        let moment = Moment { instance, as_of: Instant::ZERO };
        take.take_events(moment, |_| taken += 1, |note| notes.push(note));
        assert_eq!(taken, 1, "a job has its event whether or not it is kept");
        if notes.contains(&EventNote::NotKept) {
            not_kept.push(instance);
        }
        take.leave();
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
fn without_room_nothing_is_kept() {
    let [_, mut take] = operations(0);
    assert!(take.events_are_bytes() && take.keep_events().is_none());
}
