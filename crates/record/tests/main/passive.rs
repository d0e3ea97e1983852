//! Counters, histograms and objects: updated by threads, read from outside.

use crate::declared::{on_a_thread, publish};
use talea_record::declaration::Value;
use talea_record::stream::passive::{HistogramReading, Reading};
use talea_record::stream::*;
use talea_record::*;

talea_record::family! {
    /// What the camera does.
    pub camera {
        /// Pictures taken.
        counter pictures;
        /// A picture was taken.
        taken(number: u32);
        /// From the trigger to the picture.
        histogram delay(lower: -10, width: 10, buckets: 3);
        /// Where it looks.
        object pose: Pose {
            /// To the side.
            pan: f64,
            tilt: f32,
            zoom: i8,
        }
        /// Something that has the name of a keyword.
        counter(value: u64);
    }
}

/// Nothing but passive entities.
mod quiet {
    talea_record::family! {
        /// It tells nothing by itself.
        pub silent {
            /// Once or more.
            counter times;
        }
    }
}

fn reading(published: &Stream, name: &str) -> Reading {
    TraceFile::open(published.path()).unwrap().reading(name).unwrap()
}

#[test]
fn counts_are_kept_whether_or_not_anybody_looks_and_objects_while_wanted() {
    let published = publish(1);
    let stream = &published.stream;
    camera::FAMILY.register().unwrap();
    on_a_thread("passive", || {
        let _local = stream.attach_thread("passive").unwrap();
        let update = || {
            camera::pictures.add(2);
            [-11, -10, 0, 9, 20, 21].into_iter().for_each(|value| camera::delay.add(value));
            camera::pose.set(camera::Pose { pan: 0.5, tilt: -1.0, zoom: -3 });
        };
        update();
        assert_eq!(reading(stream, "camera.pictures"), Reading::Counter(2), "nobody has asked for it");
        assert_eq!(reading(stream, "camera.pose"), Reading::Object(None), "nobody wants it");
        let selection = "camera.pictures,camera.delay,camera.pose".parse().unwrap();
        let consumer = TraceFile::attach(stream.path(), "reader", &selection, Start::Now).unwrap();
        update();
        update();
        drop(consumer);
        update();
        assert_eq!(reading(stream, "camera.pictures"), Reading::Counter(8));
        let histogram = HistogramReading { lower: -10, width: 10, below: 4, inside: vec![4, 8, 0], above: 8 };
        assert_eq!(reading(stream, "camera.delay"), Reading::Histogram(histogram.clone()));
        let fields = [("pan", Value::Float(0.5)), ("tilt", Value::Float(-1.0)), ("zoom", Value::Signed(-3))];
        let fields = fields.map(|(name, value)| (name.to_owned(), value)).to_vec();
        assert_eq!(reading(stream, "camera.pose"), Reading::Object(Some(fields)));
        assert_eq!(camera::pictures.get(), Some(8));
        assert_eq!(camera::delay.get(), Some(histogram));
        assert_eq!(camera::pose.get(), Some(camera::Pose { pan: 0.5, tilt: -1.0, zoom: -3 }));
    });
    assert_eq!(camera::pictures.get(), None, "this thread has no stream");
}

#[test]
fn looking_resets_only_when_asked() {
    let published = publish(1);
    let stream = &published.stream;
    camera::FAMILY.register().unwrap();
    let mut operator = Operator::open(stream.path()).unwrap();
    operator.switch(&"camera".parse().unwrap(), Switching::On).unwrap();
    on_a_thread("reset", || {
        let _local = stream.attach_thread("reset").unwrap();
        camera::pictures.add(7);
        camera::delay.add(3);
    });
    assert_eq!(reading(stream, "camera.pictures"), Reading::Counter(7));
    assert_eq!(operator.take("camera.pictures").unwrap(), Reading::Counter(7));
    assert_eq!(reading(stream, "camera.pictures"), Reading::Counter(0));
    let Reading::Histogram(taken) = operator.take("camera.delay").unwrap() else { panic!() };
    assert_eq!(taken.inside, [0, 1, 0]);
    let message = |name: &str| operator.take(name).unwrap_err().to_string();
    let messages = ["camera.picture", "camera.taken"].map(message);
    assert_eq!(messages[0], "there is no \"camera.picture\"; did you mean \"camera.pictures\"?");
    assert_eq!(messages[1], "\"camera.taken\" is an event, which is followed and not read");
}

/// Threads without a writer have no ring for it, but their stream's counters.
#[test]
fn a_lazy_thread_counts_without_taking_a_ring() {
    let published = publish(1);
    quiet::silent::FAMILY.register().unwrap();
    let mut operator = Operator::open(published.stream.path()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..1000).for_each(|_| quiet::silent::times.add(1)));
        }
    });
    assert_eq!(operator.take("silent.times").unwrap(), Reading::Counter(4000));
    let rings = TraceFile::open(published.stream.path()).unwrap().rings();
    assert_eq!(rings[1].state(), RingState::Unused);
}

#[test]
fn updates_allocate_nothing() {
    let published = publish(1);
    camera::FAMILY.register().unwrap();
    let mut operator = Operator::open(published.stream.path()).unwrap();
    operator.switch(&"camera".parse().unwrap(), Switching::On).unwrap();
    on_a_thread("bound", || {
        let _local = published.stream.attach_thread("bound").unwrap();
        let count = allocation_counter::measure(|| {
            for n in 0..1000 {
                camera::pictures.add(1);
                camera::delay.add(n);
                camera::pose.set(camera::Pose { pan: n as f64, tilt: 0.0, zoom: 0 });
            }
        });
        assert_eq!((count.count_total, camera::pictures.get()), (0, Some(1000)));
    });
}

#[test]
fn an_object_is_copied_whole_while_it_is_replaced() {
    let published = publish(1);
    camera::FAMILY.register().unwrap();
    let mut operator = Operator::open(published.stream.path()).unwrap();
    operator.switch(&"camera.pose".parse().unwrap(), Switching::On).unwrap();
    let trace = TraceFile::open(published.stream.path()).unwrap();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _local = published.stream.attach_thread("writer").unwrap();
            for n in (0..100i8).cycle() {
                let value = f64::from(n);
                camera::pose.set(camera::Pose { pan: value, tilt: value as f32, zoom: n });
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        let mut copies = 0;
        while copies < 2_000 {
            let Reading::Object(Some(fields)) = trace.reading("camera.pose").unwrap() else { continue };
            let [Value::Float(pan), Value::Float(tilt), Value::Signed(zoom)] =
                [0, 1, 2].map(|at| fields[at].1.clone())
            else {
                panic!("{fields:?}")
            };
            assert_eq!((pan, pan as i64), (tilt, zoom), "of one update");
            copies += 1;
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// They have numbers of Talea's own, of which there are so many, and take none of the program's.
#[test]
fn counters_that_are_made_while_a_program_runs_are_read_by_name() {
    use talea_record::stream::passive::made;
    const COUNTERS: [(&str, &str); 2] = [("came", "Those that came."), ("went", "Those that went.")];
    const GAUGES: [(&str, &str); 2] = [("there", "Those that are there."), ("owed", "What is owed.")];
    let published = publish(1);
    let stream = &published.stream;
    let first = made("made-first", "Counts.", &COUNTERS, &GAUGES).unwrap();
    let [came, went] = &first.counters;
    on_a_thread("made", || {
        let _local = stream.attach_thread("made").unwrap();
        came.add(3);
        went.add(1);
        came.add(2);
    });
    let read = |name: &str| reading(stream, name);
    assert_eq!(
        (read("made-first.came"), read("made-first.went")),
        (Reading::Counter(5), Reading::Counter(1))
    );
    gauges_rise_and_fall_and_nobody_takes_them(stream, &first.gauges);
    let again = made("made-first", "Counts.", &COUNTERS, &GAUGES).unwrap_err();
    assert!(matches!(again, RegisterError::Family { .. }), "{again}");

    let made = (0..100).map(|number| made(&format!("made-{number}"), "Counts.", &COUNTERS, &[]));
    let refused: Vec<RegisterError> = made.filter_map(Result::err).collect();
    assert_eq!(refused.len(), 53, "with the first one there are 48");
    assert!(matches!(refused[0], RegisterError::Numbers { .. }), "{}", refused[0]);
    let opened = TraceFile::open(stream.path()).unwrap();
    let space = opened.name_space().unwrap();
    let numbers: Vec<u8> =
        (0..47).map(|number| space.family(&format!("made-{number}")).unwrap().number).collect();
    assert!(numbers.iter().all(|number| (0x10..0x40).contains(number)), "{numbers:?}");
    quiet::silent::FAMILY.register().unwrap();
}

/// They say how many there are: all threads together, below nothing, too, and taking leaves them.
fn gauges_rise_and_fall_and_nobody_takes_them(stream: &Stream, [there, owed]: &[passive::Gauge; 2]) {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..1000 {
                    assert!(there.add(3).is_some() && there.add(-2) == there.add(0));
                }
                assert!(owed.add(-1).is_some());
                assert!(owed.get().is_some_and(|owed| owed < 0));
            });
        }
    });
    let mut operator = Operator::open(stream.path()).unwrap();
    for _ in 0..2 {
        assert_eq!(operator.take("made-first.there").unwrap(), Reading::Gauge(4000));
        assert_eq!(reading(stream, "made-first.owed"), Reading::Gauge(-4));
    }
}
