//! Work that no description has: alarms, which come from outside when they come, and what each of them sets off.
//!
//! `cargo run --example posted_work [-- TIME [TRACE]]`, such as `2s alarms.talea`: how long it runs, one second unless given, and where the
//! trace of it is kept, which `talea trace stats`, `show` and `explain` read. `talea replay alarms.talea -- target/debug/examples/posted_work` calls the
//! jobs of the trace again.

use talea::run::{Declaration, KeptOutputs, NotPosted, PostingRoom, RunOptions};
use talea::{Criticality, Duration, Run, Strategy, System, TaskBuilder, Work};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let duration: Duration = std::env::args().nth(1).as_deref().unwrap_or("1s").parse()?;
    let control = TaskBuilder::new("control", Duration::from_millis(5)).wcet(Work::from_millis(1));
    let report = TaskBuilder::new("report", Duration::from_millis(100)).wcet(Work::from_millis(5));
    let system = System::builder("alarms")
        .strategy(Strategy::Criticality)
        .task(control.criticality(Criticality::High))
        .task(report.criticality(Criticality::Low))
        .build()?;

    // All memory for it is taken here: two operations, 16 unfinished jobs of each, one thread that posts.
    let posting = PostingRoom { operations: 2, jobs: 16, posters: 1 };
    let keep_log: Option<std::path::PathBuf> = std::env::args().nth(2).map(Into::into);
    let keep_values = if keep_log.is_some() { KeptOutputs::All } else { KeptOutputs::None };
    let options =
        RunOptions { posting, keep_log, keep_values, duration: Some(duration), ..RunOptions::default() };
    let prepared = Run::new(&system).options(options).prepare()?;
    let dispatcher = prepared.dispatcher();
    let note = Declaration::new("note", Duration::from_millis(50)).criticality(Criticality::Low);
    let note = dispatcher.declare(note, |job| println!("noted: alarm {}", job.handle()))?;
    let alarm = Declaration::new("alarm", Duration::from_millis(2)).criticality(Criticality::High);
    let alarm = dispatcher.declare(alarm, move |job| {
        // Less urgent: another lane, later.
        if let Err(refused) = job.post(note, job.handle()) {
            eprintln!("alarm {} is not noted: {refused}", job.handle());
        }
    })?;

    let outside = std::thread::spawn(move || -> Result<u64, String> {
        let mut poster = dispatcher.poster().map_err(|error| error.to_string())?;
        let mut number = 0;
        loop {
            std::thread::sleep(std::time::Duration::from_millis(20));
            match poster.post(alarm, number) {
                Ok(_) => number += 1,
                // Not begun yet, or over.
                Err(NotPosted::NotRunning) if number == 0 => {}
                Err(NotPosted::NotRunning) => return Ok(number),
                Err(refused) => eprintln!("{refused}"),
            }
        }
    });
    let outcome = prepared.run()?;
    let posted = outside.join().map_err(|_| "the thread that posts panicked")??;
    println!("{posted} alarms");
    for task in &outcome.report.tasks {
        println!("{}: {} of {} in time", task.name, task.met, task.released);
    }
    Ok(())
}
