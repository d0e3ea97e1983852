//! What rt-app's files become.

use crate::files::{accepted, changes, example, named, names, settings};
use talea_interchange::{Format, Translated, export};
use talea_model::{Criticality, Description, Execution, LaneDispatch, Late, Strategy, System};
use talea_time::{Duration, Work};

fn us(us: i64) -> Duration {
    Duration::from_micros(us)
}

fn work(us: i64) -> Work {
    Work::from_nanos(us * 1_000)
}

/// The import of these thread objects under SCHED_FIFO. That they name no processors is known.
fn threads(objects: &str) -> Translated<Description> {
    let global = "\"global\" : { \"default_policy\" : \"SCHED_FIFO\" }";
    let mut imported = accepted(Format::RtApp, &format!("{{ \"tasks\" : {{ {objects} }}, {global} }}"));
    imported.losses.retain(|loss| loss.key != "cpus");
    imported
}

const TIMER: &str = "\"timer\" : { \"ref\" : \"unique\", \"period\" : 10000, \"mode\" : \"absolute\" }";

#[test]
fn threads_that_resume_each_other_are_a_chain() {
    let Translated { value, losses } = example("gripper.json");
    assert_eq!(names(&value), ["camera", "watchdog"]);
    let camera = named(&value, "camera");
    assert_eq!((camera.period, camera.deadline), (us(40_000), us(40_000)));
    let steps: Vec<_> =
        camera.subtasks.iter().map(|step| (step.name.as_str(), step.wcet, &step.after[..])).collect();
    let expected: [(&str, Work, &[usize]); 3] =
        [("camera", work(1_200), &[]), ("pose", work(7_300), &[0]), ("fingers", work(900), &[1])];
    assert_eq!(steps, expected, "both runs of \"pose\" count");
    let cpus = |task: &str, step: usize| &value.nodes[named(&value, task).subtasks[step].node].cpus;
    assert_eq!((cpus("camera", 0), cpus("camera", 2), cpus("watchdog", 0)), (&vec![1], &vec![0], &vec![0]));
    assert_eq!(named(&value, "watchdog").phase, us(500));
    assert_eq!(
        changes(&losses),
        [
            "assumed task \"camera\", policy",
            "approximated task \"pose\", suspend",
            "assumed task \"pose\", policy",
            "lost task \"pose\", lock",
            "lost task \"pose\", unlock",
            "approximated task \"fingers\", suspend",
            "assumed task \"fingers\", policy",
            "assumed task \"watchdog\", policy",
        ]
    );
    assert_eq!(settings(&losses), ["duration", "calibration", "logdir"]);
}

#[test]
fn instances_phases_and_sleeps() {
    let Translated { value, losses } = example("conveyor.json");
    assert_eq!(names(&value), ["belt-1", "belt-2", "belt-3", "sorter", "counter"]);
    assert_eq!(value.strategy, Strategy::Rms, "the priorities are by rate");
    let list = [200, 200, 200, 200, 3_000].map(work);
    assert_eq!(named(&value, "sorter").subtasks[0].exec, Execution::List(list.into()));
    assert_eq!(named(&value, "sorter").subtasks[0].wcet, work(3_000));
    assert_eq!(named(&value, "counter").period, us(100_000), "work and sleep");
    assert_eq!(
        changes(&losses),
        [
            "assumed task \"belt\", cpus",
            "approximated task \"sorter\", timer",
            "approximated task \"sorter\", timer",
            "approximated task \"counter\", ",
            "lost task \"counter\", loop",
        ]
    );
}

#[test]
fn reservations_are_edf_and_nothing_is_lost() {
    let Translated { value, losses } = example("reservations.json");
    assert_eq!(losses, []);
    assert_eq!(
        (value.strategy, value.lane_dispatch, value.late),
        (Strategy::Edf, LaneDispatch::Preemptive, Late::None)
    );
    let audio = named(&value, "audio");
    assert_eq!((audio.period, audio.deadline), (us(5_000), us(4_000)));
    assert_eq!(
        (audio.subtasks[0].wcet, &audio.subtasks[0].exec),
        (work(1_500), &Execution::Constant(work(1_000)))
    );
    let video = &named(&value, "video").subtasks[0];
    assert_eq!((video.wcet, &video.exec), (work(7_000), &Execution::List([5_000, 6_500].map(work).into())));
    assert_eq!(value.nodes.len(), 1, "[0, 1] and [1, 0] are the same processors");
}

#[test]
fn threads_without_processors_share_the_node_of_all() {
    let object = |cpus: &str| format!("{{ {cpus} \"run\" : 1, {TIMER} }}");
    let both =
        [object("\"cpus\" : [1],"), object(""), object("\"cpus\" : [0],"), object("\"cpus\" : [1, 0],")];
    let text = both.iter().enumerate().map(|(index, object)| format!("\"t{index}\" : {object}"));
    let imported =
        accepted(Format::RtApp, &format!("{{ \"tasks\" : {{ {} }} }}", text.collect::<Vec<_>>().join(",")));
    let nodes: Vec<_> = imported.value.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(nodes, ["cpu1", "cpus-0-1", "cpu0"]);
    let placed: Vec<usize> = imported.value.tasks.iter().map(|task| task.subtasks[0].node).collect();
    assert_eq!(placed, [0, 1, 2, 1]);
    assert!(changes(&imported.losses).contains(&"assumed task \"t1\", cpus".to_owned()));
}

#[test]
fn rounds_of_different_jobs_become_tasks_with_phases() {
    let two = TIMER.replace("10000", "20000");
    let Translated { value, losses } =
        threads(&format!("\"a\" : {{ \"delay\" : 3, \"run\" : 1, {TIMER}, \"run\" : 2, {two} }}"));
    assert_eq!(names(&value), ["a-1", "a-2"]);
    for (name, phase, run) in [("a-1", 3, 1), ("a-2", 10_003, 2)] {
        let task = named(&value, name);
        assert_eq!((task.period, task.phase, task.subtasks[0].wcet), (us(30_000), us(phase), work(run)));
    }
    assert_eq!(changes(&losses), ["approximated task \"a\", "]);
}

#[test]
fn a_tick_that_resumes_in_one_of_five_rounds_has_the_period_of_all_five() {
    let tick = format!(
        "\"tick\" : {{ \"phases\" : {{ \"p1\" : {{ \"resume\" : \"out\", {TIMER} }}, \"p2\" : {{ \"loop\" : 4, {TIMER} }} }} }}"
    );
    let Translated { value, .. } =
        threads(&format!("{tick}, \"out\" : {{ \"run\" : 5, \"suspend\" : \"out\" }}"));
    let task = named(&value, "tick");
    assert_eq!((task.period, task.subtasks.len()), (us(50_000), 1), "the tick itself does no work");
    assert_eq!((task.subtasks[0].name.as_str(), task.subtasks[0].wcet), ("out", work(5)));
}

#[test]
fn priorities_become_the_strategy_with_the_same_order() {
    let object = |name: &str, priority: u8, period: u32| {
        format!(
            "\"{name}\" : {{ \"priority\" : {priority}, \"run\" : 1, {} }}",
            TIMER.replace("10000", &period.to_string())
        )
    };
    let by_rate = threads(&format!("{}, {}", object("a", 7, 10), object("b", 5, 20)));
    assert_eq!((by_rate.value.strategy, by_rate.losses.len()), (Strategy::Rms, 0));
    let other = threads(&format!("{}, {}", object("a", 5, 10), object("b", 7, 20)));
    assert_eq!(other.value.strategy, Strategy::Criticality);
    assert!(named(&other.value, "b").criticality > named(&other.value, "a").criticality);
    assert_eq!(other.losses.len(), 2);
    let six: Vec<_> = (1..=6).map(|n| object(&format!("t{n}"), n, 10 * u32::from(n))).collect();
    let unknown = threads(&six.join(", "));
    assert_eq!((unknown.value.strategy, unknown.losses.len()), (Strategy::RmsMlf, 6));
    assert!(unknown.value.tasks.iter().all(|task| task.criticality == Criticality::Medium));
}

#[test]
fn what_nothing_releases_is_left_out_and_said() {
    let Translated { value, losses } = threads(&format!(
        "\"a\" : {{ \"run\" : 1, \"resume\" : \"nobody\", {TIMER} }}, \"b\" : {{ \"suspend\" : \"c\", \"run\" : 1 }}, \
         \"c\" : {{ \"wait\" : \"w\", \"run\" : 1 }}, \"d\" : {{ \"instance\" : 0, \"run\" : 1 }}, \
         \"e\" : {{ \"resume\" : \"f\", {TIMER} }}, \"g\" : {{ \"mem\" : 100, {TIMER} }}"
    ));
    assert_eq!(names(&value), ["a"]);
    assert_eq!(
        changes(&losses),
        [
            "lost task \"a\", resume",
            "lost task \"b\", ",
            "lost task \"c\", ",
            "lost task \"c\", wait",
            "lost task \"d\", instance",
            "lost task \"e\", resume",
            "lost task \"e\", ",
            "lost task \"g\", ",
            "lost task \"g\", mem",
        ]
    );
}

#[test]
fn files_of_the_first_versions_have_periods_instead_of_events() {
    let text = "{ \"resources\" : { \"m\" : { \"type\" : \"mutex\" } }, \"tasks\" : { \"t\" : { \"exec\" : 1000, \
                \"period\" : 20000, \"deadline\" : 8000, \"cpus\" : [0], \"lock_order\" : [\"m\"], \"sleep\" : false } } }";
    let Translated { value, losses } = accepted(Format::RtApp, text);
    let task = named(&value, "t");
    assert_eq!((task.period, task.deadline, task.subtasks[0].wcet), (us(20_000), us(8_000), work(1_000)));
    assert_eq!(
        changes(&losses),
        ["assumed task \"t\", policy", "lost task \"t\", lock_order", "lost task \"t\", sleep"]
    );
    assert_eq!(settings(&losses), ["resources"]);
}

#[test]
fn time_slices_are_no_reservations() {
    let text = format!(
        "{{ \"tasks\" : {{ \"t\" : {{ \"cpus\" : [0], \"dl-runtime\" : 100, \"run\" : 5000, {TIMER} }} }} }}"
    );
    let Translated { value, losses } = accepted(Format::RtApp, &text);
    assert_eq!(named(&value, "t").subtasks[0].wcet, work(5_000));
    assert_eq!(changes(&losses), ["lost task \"t\", dl-runtime", "assumed task \"t\", policy"]);
}

#[test]
fn names_are_mended_and_made_unique() {
    let Translated { value, losses } = threads(&format!(
        "\"mp3.decoder\" : {{ \"run\" : 1, {TIMER} }}, \"a b\" : {{ \"run\" : 1, {TIMER} }}, \"a-b\" : {{ \"run\" : 1, {TIMER} }}"
    ));
    assert_eq!(names(&value), ["mp3", "a-b", "a-b-2"]);
    assert_eq!(value.tasks[0].subtasks[0].name, "decoder");
    assert_eq!(changes(&losses), ["approximated task \"a b\", name", "approximated task \"a-b\", name"]);
}

#[test]
fn a_system_becomes_threads_that_resume_each_other() {
    let text = "[system]\nname = \"s\"\nstrategy = \"rms\"\n[[task]]\nname = \"t\"\nperiod = \"10ms\"\nphase = \"1ms\"\n\
                [[task.subtask]]\nname = \"a\"\nwcet = \"2ms\"\nexec = { list = [\"1ms\", \"2ms\"] }\n\
                [[task.subtask]]\nname = \"b\"\nwcet = \"3ms\"\n";
    let system = talea_model::parse("s.toml", text, "".as_ref()).expect("valid").system;
    let exported = export(Format::RtApp, &system);
    assert_eq!(exported.losses, []);
    let json: serde_json::Value = serde_json::from_str(&exported.value).expect("strict JSON");
    let (a, b) = (&json["tasks"]["t.a"], &json["tasks"]["t.b"]);
    assert_eq!((&a["run"], &a["run1"], &a["dl-runtime"]), (&1000.into(), &2000.into(), &2000.into()));
    assert_eq!(
        (&a["delay"], &a["resume"], &a["timer1"]["period"]),
        (&1000.into(), &"t.b".into(), &10000.into())
    );
    assert_eq!((&b["suspend"], &b["run"], &b["priority"]), (&"t.b".into(), &3000.into(), &98.into()));
    assert_eq!(json["global"]["default_policy"], "SCHED_FIFO");
}

#[test]
fn the_rest_of_a_round_is_not_lost_in_export() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/ofp.toml"))
        .expect("there");
    let system: System = talea_model::parse("ofp.toml", &text, "".as_ref()).expect("valid").system;
    let exported = export(Format::RtApp, &system);
    assert!(!exported.is_faithful());
    let losses = changes(&exported.losses);
    for expected in [
        "approximated task \"navigation\", exec",
        "lost task \"route\", overrun",
        "lost the overhead, switch",
        "approximated the system, strategy",
    ] {
        assert!(losses.iter().any(|loss| loss == expected), "{expected} is not in {losses:?}");
    }
}
