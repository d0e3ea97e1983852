//! What SimSo's files become.

use crate::files::{accepted, changes, example, named, names, settings};
use talea_interchange::{Format, Translated, export};
use talea_model::{Execution, LaneDispatch, Late, Laxity, Overrun, Strategy};
use talea_time::{Duration, Work};

fn ms(ms: i64) -> Duration {
    Duration::from_millis(ms)
}

/// The import of these elements.
fn simulation(attributes: &str, inside: &str) -> Translated<talea_model::Description> {
    accepted(Format::SimSo, &format!("<simulation {attributes}>{inside}</simulation>"))
}

const EDF: &str =
    "<sched class=\"simso.schedulers.EDF\"/><processors><processor name=\"CPU 1\" id=\"1\"/></processors>";

fn task(id: u8, more: &str) -> String {
    let required = if more.contains("WCET") { "" } else { "WCET=\"1\"" };
    format!(
        "<task name=\"t{id}\" id=\"{id}\" abort_on_miss=\"no\" period=\"10\" deadline=\"10\" {required} {more}/>"
    )
}

#[test]
fn a_file_of_the_graphical_editor() {
    let Translated { value, losses } = example("mixer.xml");
    assert_eq!(names(&value), ["TASK-T1", "TASK-T2", "stir"]);
    assert_eq!(
        (value.strategy, value.lane_dispatch, value.late),
        (Strategy::Edf, LaneDispatch::Preemptive, Late::None)
    );
    assert_eq!(value.overhead.switch, Work::from_nanos(5_000), "saving and loading, a cycle a nanosecond");
    let second = named(&value, "TASK-T2");
    assert_eq!(
        (second.period, second.deadline, second.phase),
        (ms(35), ms(30), Duration::from_micros(2_500))
    );
    assert_eq!(named(&value, "TASK-T1").overrun, Overrun::Abort);
    assert_eq!(named(&value, "stir").subtasks[0].wcet, Work::from_millis(16), "written 1.6e1");
    assert_eq!(
        changes(&losses),
        ["approximated task \"TASK T1\", name", "approximated task \"TASK T2\", name"]
    );
    assert_eq!(settings(&losses), ["duration"]);
}

#[test]
fn chains_dates_and_distributions() {
    let Translated { value, losses } = example("bottling.xml");
    assert_eq!(names(&value), ["line", "alarm"]);
    let line = named(&value, "line");
    assert_eq!(line.deadline, ms(50), "20 and 30 add up");
    let steps: Vec<_> = line.subtasks.iter().map(|step| (step.name.as_str(), &step.after[..])).collect();
    let expected: [(&str, &[usize]); 2] = [("fill", &[]), ("cap", &[0])];
    assert_eq!(steps, expected);
    assert_eq!(line.subtasks[0].exec, Execution::Constant(Work::from_millis(6)));
    assert!(matches!(line.subtasks[1].exec, Execution::Uniform(..)));
    let alarm = named(&value, "alarm");
    assert_eq!((alarm.phase, alarm.period), (ms(30), Duration::from_micros(60_500)), "the shortest distance");
    assert!(alarm.criticality > line.criticality);
    assert_eq!(value.nodes[0].cpus, [0, 1]);
    assert_eq!(
        changes(&losses),
        [
            "lost the simulation, cache",
            "approximated the simulation, processors",
            "lost processor \"front\", name",
            "lost processor \"front\", cache",
            "lost processor \"back\", name",
            "lost processor \"back\", speed",
            "approximated task \"line fill\", deadline",
            "approximated task \"line fill\", priority",
            "approximated task \"line cap\", ACET",
            "approximated task \"alarm\", list_activation_dates",
            "approximated task \"alarm\", abort_on_miss",
            "approximated task \"alarm\", priority",
            "lost task \"alarm\", color",
            "lost task \"orphan\", ",
        ]
    );
}

#[test]
fn schedulers_are_strategies() {
    let strategy = |class: &str| {
        let imported = simulation(
            "",
            &format!("<sched {class}/><processors><processor/></processors><tasks>{}</tasks>", task(1, "")),
        );
        (imported.value.strategy, imported.value.laxity, imported.losses.len())
    };
    let declared = Laxity::Declared;
    assert_eq!(strategy("class=\"simso.schedulers.RM\""), (Strategy::Rms, declared, 0));
    assert_eq!(strategy("className=\"../EDF_mono.py\""), (Strategy::Edf, declared, 0));
    assert_eq!(strategy("class=\"simso.schedulers.LLF\""), (Strategy::Mlf, Laxity::Remaining, 0));
    assert_eq!(strategy("class=\"simso.schedulers.PD2\""), (Strategy::RmsMlf, declared, 1));
    assert_eq!(strategy(""), (Strategy::RmsMlf, declared, 1));
}

#[test]
fn chains_that_do_not_end_or_begin_are_cut_and_said() {
    let tasks = [
        task(1, "followed_by=\"2\""),
        task(2, "task_type=\"APeriodic\" followed_by=\"3\""),
        task(3, "task_type=\"APeriodic\" followed_by=\"2\""),
        task(4, "followed_by=\"1\""),
        task(5, "followed_by=\"99\""),
        task(6, "followed_by=\"2\""),
        task(7, "task_type=\"Sporadic\""),
    ];
    let Translated { value, losses } = simulation("", &format!("{EDF}<tasks>{}</tasks>", tasks.concat()));
    let steps: Vec<usize> = value.tasks.iter().map(|task| task.subtasks.len()).collect();
    assert_eq!((names(&value), steps), (vec!["t1", "t4", "t5", "t6"], vec![3, 1, 1, 3]));
    assert_eq!(
        changes(&losses),
        [
            "approximated task \"t1\", deadline",
            "approximated task \"t2\", ",
            "lost task \"t3\", followed_by",
            "approximated task \"t3\", ",
            "lost task \"t3\", followed_by",
            "lost task \"t4\", followed_by",
            "lost task \"t5\", followed_by",
            "approximated task \"t6\", deadline",
            "lost task \"t7\", list_activation_dates",
        ]
    );
}

#[test]
fn what_belongs_to_other_models_is_said() {
    let processors = "<processors migration_overhead=\"7\"><processor/></processors>";
    let costs = "<sched class=\"EDF\" overhead=\"5\" overhead_activate=\"0\" colour=\"1\"/>";
    let inside = format!(
        "{costs}{processors}<extra/><tasks>{}</tasks>",
        task(1, "instructions=\"100\" priority=\"3\"")
    );
    let Translated { losses, .. } = simulation("etm=\"cache\" penalty_migration=\"5\"", &inside);
    assert_eq!(
        changes(&losses),
        [
            "lost the simulation, etm",
            "lost the scheduler, overhead",
            "lost the scheduler, \"colour\"",
            "lost the processors, migration_overhead",
            "lost the simulation, \"extra\"",
            "lost task \"t1\", priority",
            "lost task \"t1\", instructions",
        ]
    );
}

#[test]
fn times_finer_than_a_nanosecond_are_rounded_and_said() {
    let Translated { value, losses } =
        simulation("", &format!("{EDF}<tasks>{}</tasks>", task(1, "WCET=\"0.30000000000000004\"")));
    assert_eq!(value.tasks[0].subtasks[0].wcet, Work::from_nanos(300_000));
    assert_eq!(changes(&losses), ["approximated task \"t1\", WCET"]);
}

#[test]
fn a_graph_becomes_a_chain_in_topological_order() {
    let text = "[system]\nname = \"s\"\nstrategy = \"edf\"\nlane_dispatch = \"preemptive\"\nlate = \"none\"\n\
                [[task]]\nname = \"t\"\nperiod = \"10ms\"\ndeadline = \"9ms\"\n\
                [[task.subtask]]\nname = \"last\"\nwcet = \"1ms\"\nafter = [\"left\", \"right\"]\n\
                [[task.subtask]]\nname = \"left\"\nwcet = \"1ms\"\nafter = []\n\
                [[task.subtask]]\nname = \"right\"\nwcet = \"1ms\"\nafter = []\n";
    let system = talea_model::parse("s.toml", text, "".as_ref()).expect("valid").system;
    let exported = export(Format::SimSo, &system);
    assert_eq!(
        changes(&exported.losses),
        [
            "approximated task \"t\", deadline",
            "lost subtask \"last\" of task \"t\", after",
            "lost subtask \"right\" of task \"t\", after",
        ]
    );
    let back = accepted(Format::SimSo, &exported.value).value;
    let after: Vec<_> = named(&back, "t").subtasks.iter().map(|step| step.after.clone()).collect();
    assert_eq!(after, [vec![2], vec![], vec![1]], "left, right, last");
    assert_eq!(named(&back, "t").deadline, ms(9), "the shares add up again");
}
