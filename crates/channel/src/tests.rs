use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use talea_time::Duration;

const CAPACITY: usize = 3;

fn at(nanos: i64) -> Instant {
    Instant::from_nanos(nanos)
}

fn stamp(instance: u64, visible_at: i64) -> Stamp {
    Stamp { instance, visible_at: at(visible_at) }
}

fn reader(take: Take, capacity: usize) -> Reader {
    Reader { take, capacity, when_full: WhenFull::DropOldest }
}

fn port(readers: &[Reader]) -> (OutputPort<u64>, Vec<InputPort<u64>>) {
    OutputPort::new(readers, Handling::NONE, || u64::MAX)
}

/// The job of this instance writes and publishes a value that says whose it is.
fn publish(output: &mut OutputPort<u64>, stamp: Stamp) -> Vec<Dropped> {
    *output.value() = 100 + stamp.instance;
    let mut all = Vec::new();
    assert_eq!(
        output.publish(stamp.instance, Visible::To(stamp.visible_at), &mut |dropped| all.push(dropped)),
        Published::New
    );
    all
}

fn take(input: &mut InputPort<u64>, instance: u64, as_of: Instant) -> Vec<u64> {
    let taken = input.take(Moment { instance, as_of });
    let values: Vec<u64> = input
        .values()
        .map(|(value, stamp)| {
            assert_eq!(*value, 100 + stamp.instance, "a value comes with its stamp");
            stamp.instance
        })
        .collect();
    assert_eq!(
        (taken.values, taken.newest.map(|newest| newest.instance)),
        (values.len(), values.last().copied())
    );
    values
}

#[test]
fn the_latest_stays_until_there_is_a_newer_one() {
    let (mut output, mut inputs) = port(&[reader(Take::Latest, 1)]);
    let input = &mut inputs[0];
    assert_eq!(take(input, 0, Instant::MAX), []);
    publish(&mut output, stamp(0, 0));
    publish(&mut output, stamp(1, 0));
    for job in 1..3 {
        assert_eq!(take(input, job, Instant::MAX), [1]);
        input.leave();
    }
    assert_eq!(input.connection().dropped(), 1, "the one that nobody took");
}

#[test]
fn what_is_visible_later_is_not_there_yet() {
    let (mut output, mut inputs) = port(&[reader(Take::Latest, 4), reader(Take::Each, 4)]);
    for instance in 0..3 {
        publish(&mut output, stamp(instance, 10 * (instance as i64 + 1)));
    }
    assert_eq!(take(&mut inputs[0], 0, at(9)), []);
    assert_eq!(take(&mut inputs[0], 1, at(20)), [1]);
    assert_eq!(take(&mut inputs[1], 0, at(20)), [0, 1]);
    inputs[1].leave();
    assert_eq!(take(&mut inputs[1], 1, at(30)), [2]);
    assert_eq!(take(&mut inputs[0], 2, at(30)), [2]);
}

#[test]
fn each_instance_finds_its_own_though_jobs_pass_each_other() {
    let (mut output, mut inputs) = port(&[reader(Take::Instance, CAPACITY)]);
    let input = &mut inputs[0];
    for instance in [2, 0, 1] {
        publish(&mut output, stamp(instance, 0));
    }
    for instance in [1, 2, 0] {
        assert_eq!(take(input, instance, Instant::MAX), [instance]);
        input.leave();
        assert_eq!(take(input, instance, Instant::MAX), [], "it is there once");
        input.leave();
    }
    // Jobs that never come leave values behind, which make room.
    for instance in 3..20 {
        publish(&mut output, stamp(instance, 0));
        assert_eq!(take(input, instance + 100, Instant::MAX), []);
        input.leave();
    }
    assert_eq!(input.connection().overtaken(), 17 - CAPACITY as u64);
    assert_eq!(take(input, 19, Instant::MAX), [19]);
}

#[test]
fn a_job_that_writes_nothing_or_does_not_complete_publishes_nothing() {
    let (mut output, mut inputs) = port(&[reader(Take::Each, 1)]);
    assert_eq!(
        output.publish(0, Visible::To(at(0)), &mut |_| unreachable!("nothing is dropped")),
        Published::Nothing
    );
    *output.value() = 7;
    output.discard();
    assert_eq!(take(&mut inputs[0], 0, Instant::MAX), []);
}

#[test]
fn a_value_that_is_lost_on_its_way_to_one_reader_reaches_the_others() {
    let (mut output, mut inputs) =
        port(&[reader(Take::Each, 2), reader(Take::Each, 2), reader(Take::Each, 2)]);
    *output.value() = 100;
    let mut dropped = Vec::new();
    let reaches = [Reach::Lost, Reach::From(at(5)), Reach::Not];
    output.publish(0, Visible::ToEach(&mut |reader| reaches[reader]), &mut |one| dropped.push(one));
    let lost = |input: &InputPort<u64>| (input.connection().lost(), input.connection().dropped());
    assert_eq!((dropped, lost(&inputs[0]), lost(&inputs[1])), (vec![], (1, 0), (0, 0)));
    assert_eq!(
        (lost(&inputs[2]), take(&mut inputs[2], 0, at(5))),
        ((0, 0), vec![]),
        "it is not meant for it"
    );
    assert_eq!((take(&mut inputs[0], 0, at(5)), take(&mut inputs[1], 0, at(5))), (vec![], vec![0]));
}

#[test]
fn the_value_of_an_instance_is_not_there_before_it_is_visible() {
    let (mut output, mut inputs) = port(&[reader(Take::Instance, 4)]);
    for (instance, visible) in [(0, 9), (1, 3)] {
        *output.value() = 100 + instance;
        output.publish(instance, Visible::To(at(visible)), &mut |dropped| panic!("{dropped:?}"));
    }
    assert_eq!(take(&mut inputs[0], 0, at(5)), [], "it is under way");
    assert_eq!(take(&mut inputs[0], 1, at(5)), [1], "behind it one that has come");
    inputs[0].leave();
    assert_eq!(take(&mut inputs[0], 0, at(9)), [0], "a job that began before may look again");
}

#[test]
fn values_are_compared_with_the_one_before() {
    let (mut output, _inputs) =
        OutputPort::new(&[reader(Take::Each, 1)], Handling { same: Some(u64::eq), codec: None }, || 0);
    let results = [5, 5, 6, 6, 5].map(|value| {
        *output.value() = value;
        output.publish(0, Visible::To(at(0)), &mut |_| ())
    });
    use Published::{New, Same};
    assert_eq!(results, [New, Same, New, Same, New]);
}

#[test]
fn whoever_publishes_learns_of_readers_without_room_that_are_waited_for() {
    let limit = Duration::from_millis(1);
    let waited_for = Reader { when_full: WhenFull::Wait(limit), ..reader(Take::Each, 1) };
    let (mut output, mut inputs) = port(&[reader(Take::Each, 1), waited_for]);
    publish(&mut output, stamp(0, 0));
    output.wait_for_room(&mut |_| unreachable!("nothing is to be published"));
    _ = output.value();
    let mut waits = Vec::new();
    output.wait_for_room(&mut |FullReader { connection, limit, .. }| {
        connection.wait_for_room(std::time::Duration::ZERO);
        waits.push(limit);
    });
    assert_eq!(waits, [limit]);
    let dropped = publish(&mut output, stamp(1, 0));
    assert_eq!(dropped, [Dropped { reader: 0, instance: 0 }, Dropped { reader: 1, instance: 1 }]);
    assert_eq!(take(&mut inputs[1], 0, Instant::MAX), [0]);
    inputs[1].leave();
    _ = output.value();
    output.wait_for_room(&mut |_| unreachable!("there is room"));
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Publish,
    Discard,
    Begin(usize),
    End(usize),
}

fn acts(readers: usize) -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => Just(Act::Publish),
        1 => Just(Act::Discard),
        3 => (0..readers).prop_map(Act::Begin),
        2 => (0..readers).prop_map(Act::End),
    ];
    prop::collection::vec(act, 0..300)
}

fn readers() -> impl Strategy<Value = Vec<Reader>> {
    let take = prop_oneof![Just(Take::Latest), Just(Take::Each)];
    let when_full = prop_oneof![Just(WhenFull::DropOldest), Just(WhenFull::DropNewest)];
    let reader = (take, 1..4usize, when_full).prop_map(|(take, capacity, when_full)| Reader {
        take,
        capacity,
        when_full,
    });
    prop::collection::vec(reader, 0..4)
}

/// What a reader has, by the definition.
#[derive(Default)]
struct Model {
    queue: VecDeque<u64>,
    has: Vec<u64>,
    is_at_work: bool,
}

proptest! {
    /// Whatever readers do, each has what the definition of its connection gives it, and there is a slot for the next value.
    #[test]
    fn readers_have_what_their_connections_say(
        (readers, acts) in readers().prop_flat_map(|all| (Just(all.clone()), acts(all.len().max(1)))),
    ) {
        let (mut output, mut inputs) = port(&readers);
        let mut models: Vec<Model> = readers.iter().map(|_| Model::default()).collect();
        for (instance, act) in acts.into_iter().enumerate() {
            let instance = instance as u64;
            match act {
                Act::Discard => {
                    *output.value() = 1;
                    output.discard();
                }
                Act::Publish => {
                    let dropped = publish(&mut output, stamp(instance, 0));
                    let mut expected = Vec::new();
                    for (place, (model, reader)) in models.iter_mut().zip(&readers).enumerate() {
                        let is_full = model.queue.len() == reader.capacity;
                        let lost = match reader.when_full {
                            WhenFull::DropNewest if is_full => Some(instance),
                            _ => {
                                model.queue.push_back(instance);
                                if is_full { model.queue.pop_front() } else { None }
                            }
                        };
                        expected.extend(lost.map(|instance| Dropped { reader: place, instance }));
                    }
                    prop_assert_eq!(dropped, expected);
                }
                Act::Begin(place) if models.get(place).is_some_and(|model| !model.is_at_work) => {
                    let model = &mut models[place];
                    model.is_at_work = true;
                    match readers[place].take {
                        Take::Latest => model.has = model.queue.drain(..).next_back().map_or(std::mem::take(&mut model.has), |newest| vec![newest]),
                        _ => model.has = model.queue.drain(..).collect(),
                    }
                    prop_assert_eq!(&take(&mut inputs[place], instance, Instant::MAX), &model.has);
                }
                Act::End(place) if models.get(place).is_some_and(|model| model.is_at_work) => {
                    let model = &mut models[place];
                    model.is_at_work = false;
                    inputs[place].leave();
                    if readers[place].take == Take::Each {
                        model.has.clear();
                    }
                }
                Act::Begin(_) | Act::End(_) => {}
            }
            for (model, input) in models.iter().zip(&inputs) {
                let has: Vec<u64> = input.values().map(|(value, _)| value - 100).collect();
                prop_assert_eq!(&has, &model.has, "what a job has stays while others publish");
            }
        }
    }
}

/// Larger than a word, so that halves of two values would show.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wide([u64; 16]);

#[test]
fn threads_read_whole_values_and_every_value_is_taken_or_counted_once() {
    const VALUES: u64 = if cfg!(miri) { 50 } else { 50_000 };
    let kinds = [
        reader(Take::Latest, 1),
        reader(Take::Each, 4),
        Reader { when_full: WhenFull::DropNewest, ..reader(Take::Each, 2) },
        reader(Take::Instance, 4),
    ];
    let (mut output, inputs) = OutputPort::new(&kinds, Handling::NONE, || Wide([0; 16]));
    let is_over = AtomicBool::new(false);
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let read = |mut input: InputPort<Wide>, take: Take| {
            let is_over = &is_over;
            move || {
                let (mut had, mut last) = (0, None);
                let mut job = |instance| {
                    input.take(Moment { instance, as_of: Instant::MAX });
                    for (value, stamp) in input.values() {
                        assert_eq!(*value, Wide([stamp.instance; 16]));
                        assert!(
                            last <= Some(stamp.instance) || take == Take::Instance,
                            "in the order of publication"
                        );
                        had += u64::from(last != Some(stamp.instance));
                        last = Some(stamp.instance);
                    }
                    input.leave();
                };
                while !is_over.load(Ordering::Acquire) {
                    (0..8).for_each(&mut job);
                }
                // Everything that is there now, however little fits into one job.
                (0..VALUES).for_each(&mut job);
                let connection = input.connection();
                had + connection.dropped() + connection.overtaken()
            }
        };
        let readers = inputs.into_iter().zip(&kinds);
        let readers: Vec<_> = readers.map(|(input, kind)| scope.spawn(read(input, kind.take))).collect();
        for instance in 0..VALUES {
            *output.value() = Wide([instance; 16]);
            output.publish(instance, Visible::To(at(0)), &mut |_| ());
        }
        is_over.store(true, Ordering::Release);
        readers.into_iter().map(|reader| reader.join().unwrap()).collect()
    });
    assert_eq!(counts, [VALUES; 4], "each value was there for a job, or is counted as lost");
}

/// The end by which values are recorded has each of them, in order, beside readers that take what they like; more than it has room for are dropped and counted.
#[test]
fn values_are_kept_beside_what_readers_do() {
    let codec = Codec::<u64> {
        encode: |value, to| {
            assert_ne!(*value, 108, "it cannot be made bytes of");
            to.get_mut(..8)?.copy_from_slice(&value.to_le_bytes());
            Some(8)
        },
        decode: |_, _| false,
    };
    let handling = Handling { same: None, codec: Some(codec) };
    let (mut output, mut inputs, keeper) =
        OutputPort::kept(&[reader(Take::Latest, 1)], handling, CAPACITY, || u64::MAX);
    let mut keeper = keeper.expect("its values can be bytes");
    let mut kept = |room: usize, as_of: i64| {
        let (mut buffer, mut kept) = ([0; 8], Vec::new());
        keeper.take_all(at(as_of), &mut buffer[..room], &mut |stamp, value| {
            kept.push((
                stamp.instance,
                match value {
                    KeptBytes::Bytes(bytes) => Ok(u64::from_le_bytes(bytes.try_into().expect("eight"))),
                    KeptBytes::TooLong => Err("too long"),
                    KeptBytes::Failed => Err("failed"),
                },
            ));
        });
        kept
    };
    assert_eq!(kept(8, 9), []);
    let dropped: Vec<_> = (0..2).flat_map(|instance| publish(&mut output, stamp(instance, 1))).collect();
    assert_eq!(dropped, [Dropped { reader: 0, instance: 0 }]);
    assert_eq!(take(&mut inputs[0], 9, at(1)), [1]);
    assert_eq!(kept(8, 1), [(0, Ok(100)), (1, Ok(101))]);
    assert_eq!(publish(&mut output, stamp(2, 2)), []);
    assert_eq!(kept(8, 1), [], "it is not visible yet");
    let dropped: Vec<_> = (3..7).flat_map(|instance| publish(&mut output, stamp(instance, 1))).collect();
    let of_keeper = |dropped: &Dropped| (dropped.reader == 1).then_some(dropped.instance);
    assert_eq!(dropped.iter().filter_map(of_keeper).collect::<Vec<_>>(), [5, 6]);
    assert_eq!(kept(7, 2), [2, 3, 4].map(|instance| (instance, Err("too long"))));
    // A panic of the code that makes bytes is one value's.
    (7..10).for_each(|instance| _ = publish(&mut output, stamp(instance, 2)));
    assert_eq!(kept(8, 2), [(7, Ok(107)), (8, Err("failed")), (9, Ok(109))]);

    let (_, _, keeper) = OutputPort::kept(&[], Handling::<u64>::NONE, CAPACITY, || 0);
    assert!(keeper.is_none(), "its values are never bytes");
}
