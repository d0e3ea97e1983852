//! What operations exchange, triggers and chains are listed among what no format carries.

use talea_interchange::{Format, export};
use talea_model::{
    ChainBuilder, Communication, InputBuilder, OutputBuilder, System, TaskBuilder, TriggerBuilder,
};
use talea_time::{Duration, Work};

fn system() -> System {
    let (ms, work) = (Duration::from_millis, Work::from_micros(100));
    let log = TaskBuilder::triggered_by("log", TriggerBuilder::output("imu.state").every(20));
    System::builder("s")
        .task(TaskBuilder::new("imu", ms(5)).wcet(work).output(OutputBuilder::new("state")))
        .task(
            TaskBuilder::new("control", ms(10))
                .wcet(work)
                .communication(Communication::Let)
                .input(InputBuilder::new("position").from("imu.state")),
        )
        .task(log.deadline(ms(50)).wcet(work))
        .task(TaskBuilder::external("stop", ms(5)).burst(3).wcet(work))
        .chain(ChainBuilder::new("imu to control", ["imu", "control"]))
        .build()
        .expect("the system is sound")
}

#[test]
fn every_format_lists_ports_triggers_and_chains() {
    let system = system();
    for (format, name) in
        [(Format::RtApp, "rt-app"), (Format::SimSo, "SimSo"), (Format::Csv, "a table of tasks")]
    {
        let losses: Vec<String> = export(format, &system).losses.iter().map(ToString::to_string).collect();
        let expected = [
            format!("task \"imu\", outputs: {name} has no word for it (state)"),
            format!("task \"control\", communication: {name} has no word for it (let)"),
            format!("task \"control\", inputs: {name} has no word for it (position)"),
            "task \"log\", trigger: it is released every 100ms, not by values of imu.state".into(),
            "task \"stop\", trigger: it is released every 5ms, not by something outside".into(),
            format!("task \"stop\", separation: {name} has no word for it (burst 3, excess defer)"),
            "chain \"imu to control\", name: only tasks are written".into(),
        ];
        let listed: Vec<&String> = losses.iter().filter(|loss| expected.contains(loss)).collect();
        assert_eq!(listed, expected.iter().collect::<Vec<_>>(), "{losses:?}");
    }
}
