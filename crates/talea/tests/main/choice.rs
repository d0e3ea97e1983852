//! Who goes on is chosen from instance to instance: by values, which release tasks, and by events, several types of which release one.

use std::sync::{Arc, Mutex};
use talea::notification::declared::{EventPorts, JobEvents};
use talea::notification::qos::QosSettings;
use talea::notification::{Content, Filterable};
use talea::run::Operations;
use talea::{
    Duration, InputBuilder, OutputBuilder, PublicationBuilder, Report, RtMode, Run, Strategy,
    SubscriptionBuilder, System, TaskBuilder, Work,
};

/// What has been packed, from which side, of which part.
type Packed = Arc<Mutex<Vec<(Side, u64)>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

#[derive(Clone, Copy, Default, Filterable)]
#[filterable(crate = "talea::notification::etcl")]
struct Part {
    number: u64,
}

impl Content for Part {}

/// Parts are sorted to the left or to the right, and packed wherever they come from.
fn system() -> System {
    let side = |name: &str, event: &str| {
        TaskBuilder::triggered_by(name, format!("sort.{name}").as_str())
            .deadline(Duration::from_millis(9))
            .wcet(Work::from_micros(50))
            .input(InputBuilder::new("part").from(format!("sort.{name}").as_str()).each().capacity(256))
            .event(PublicationBuilder::new("parts", event))
    };
    let sort = TaskBuilder::new("sort", Duration::from_millis(3)).wcet(Work::from_micros(50));
    let pack = TaskBuilder::triggered_by("pack", SubscriptionBuilder::new("parts").types(["Part/*"]));
    System::builder("sorting")
        .strategy(Strategy::Rms)
        .node("n", [0])
        .channel("parts", QosSettings::new().max_events(256))
        .task(sort.output(OutputBuilder::new("left")).output(OutputBuilder::new("right")))
        .task(side("left", "Part/Left"))
        .task(side("right", "Part/Right"))
        .task(pack.deadline(Duration::from_millis(9)).wcet(Work::from_micros(50)))
        .build()
        .expect("sound")
}

/// Every third part goes to the right.
fn operations(packed: &Packed) -> Operations {
    let packed = Arc::clone(packed);
    let side = |operations: Operations, name: &'static str, event: &'static str| {
        operations.with_ports(name, move |ports| {
            let (part, publication) = (ports.input::<u64>("part"), ports.publication::<Part>(event));
            // A job that begins late takes what later ones were released for as well.
            move |job| {
                for number in job.all(part) {
                    assert!(job.push(publication, |part, _| part.number = *number));
                }
            }
        })
    };
    let sorting = Operations::synthetic().with_ports("sort", |ports| {
        let (left, right) = (ports.output::<u64>("left"), ports.output::<u64>("right"));
        move |job| match job.instance() % 3 {
            2 => job.set(right, job.instance()),
            _ => job.set(left, job.instance()),
        }
    });
    let sides = side(side(sorting, "left", "Part/Left"), "right", "Part/Right");
    sides.with_ports("pack", move |ports| {
        ports.subscription();
        move |job| {
            let delivery = job.event().expect("it was released by one");
            let number = delivery.event().content::<Part>().expect("a part").number;
            let side =
                if delivery.event().header().event_type.name() == "Left" { Side::Left } else { Side::Right };
            packed.lock().expect("nobody panics").push((side, number));
        }
    })
}

/// Each part was packed once, from the side to which it was sorted, and nobody was released for another one.
fn judge(packed: &Packed, report: &Report) {
    let mut packed = packed.lock().expect("nobody panics").clone();
    assert!(packed.len() >= 3, "{}", packed.len());
    packed.sort_by_key(|(_, number)| *number);
    assert!(packed.windows(2).all(|pair| pair[0].1 < pair[1].1), "{packed:?}");
    let side = |number: u64| if number % 3 == 2 { Side::Right } else { Side::Left };
    assert!(packed.iter().all(|(from, number)| *from == side(*number)), "{packed:?}");
    let released = |name: &str| {
        let task = report.tasks.iter().find(|task| task.name == name);
        task.expect("a task").released
    };
    let to_the_right = released("sort") / 3;
    assert!(released("right") <= to_the_right && released("left") <= released("sort") - to_the_right);
}

#[test]
fn an_operation_chooses_in_each_instance_who_goes_on_in_virtual_time() {
    let packed = Packed::default();
    let length = Duration::from_millis(300);
    let simulated = talea::simulation::simulate_operations(&system(), operations(&packed), length);
    judge(&packed, &simulated.expect("it runs"));
}

#[test]
fn an_operation_chooses_in_each_instance_who_goes_on_on_threads() {
    let (packed, system) = (Packed::default(), system());
    let run = Run::new(&system).operations(operations(&packed)).realtime(RtMode::Warn);
    let outcome = run.duration(Duration::from_millis(300)).run().expect("it runs");
    assert!(outcome.mishaps.panics.is_empty(), "{:?}", outcome.mishaps.panics);
    judge(&packed, &outcome.report);
}
