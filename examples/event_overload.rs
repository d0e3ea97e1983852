//! More events than can be handled: what becomes of the few that matter, by how the lanes of their consumers are scheduled.
//!
//! An alarm comes every 10 ms, and a guard has 5 ms for it; a picture comes every 5 ms, and to look at one takes nearly as long. Together they want
//! 125 % of the processor. The same channel, the same consumers, four ways to schedule them:
//!
//! | Way | The guard |
//! |---|---|
//! | first come, first served | waits behind pictures |
//! | MUF | is critical, so it is in a lane above; pictures follow by laxity |
//! | RMS+MLF | is critical, so it is in a lane by rate above those by laxity |
//! | reservation | has its lanes reserved, beside a program that would take the whole processor |
//!
//! ```text
//! cargo run --release --example event_overload                # in virtual time
//! cargo run --release --example event_overload -- --threads   # on real threads, with real-time priorities if that may be
//! ```

use std::error::Error;
use std::path::Path;
use talea::{Criticality, Duration, Report, Run, Strategy, System};

/// Alarms and pictures over one channel.
const EVENTS: &str = r#"
[system]
name = "event-overload"

[[node]]
name = "local"
cpus = [0]

[[channel]]
name = "plant"
qos = { MaxEventsPerConsumer = 4 }

[[task]]
name = "sensor"
period = "10ms"
wcet = "500us"
criticality = "high"
events = [{ channel = "plant", type = "Plant/Alarm" }]

[[task]]
name = "camera"
period = "5ms"
wcet = "500us"
criticality = "low"
events = [{ channel = "plant", type = "Plant/Picture", bytes = 4096 }]

[[task]]
name = "guard"
subscription = { channel = "plant", types = ["Plant/Alarm"] }
deadline = "5ms"
wcet = "2ms"
criticality = "high"

[[task]]
name = "vision"
subscription = { channel = "plant", types = ["Plant/Picture"] }
deadline = "40ms"
wcet = "4500us"
criticality = "low"
"#;

/// The lanes have 3 ms of each 5 ms; a program that never has enough has the rest.
const RESERVATION: &str = r#"
[[scheduler]]
name = "reserved"
kind = "reservation"

[[scheduler]]
name = "lanes"
kind = "lanes"
under = [{ scheduler = "reserved", guarantee = "RESBH 3ms 5ms" }]

[[scheduler]]
name = "rest"
kind = "time-sharing"
quantum = "5ms"
under = [{ scheduler = "reserved", guarantee = "RESBH 500us 5ms" }]

[[thread]]
name = "greedy"
work = "cpu-bound"
under = [{ scheduler = "rest" }]
"#;

fn parsed(text: &str) -> Result<System, Box<dyn Error>> {
    Ok(talea::parse("event_overload.rs", text, Path::new("."))?.system)
}

/// The four ways.
fn systems() -> Result<Vec<(&'static str, System)>, Box<dyn Error>> {
    let scheduled = |strategy, criticality: Option<Criticality>| -> Result<System, Box<dyn Error>> {
        let mut description = (*parsed(EVENTS)?).clone();
        description.strategy = strategy;
        for task in &mut description.tasks {
            task.criticality = criticality.unwrap_or(task.criticality);
        }
        System::new(description).map_err(|faults| format!("{faults:?}").into())
    };
    Ok(vec![
        // One lane for each criticality, first come, first served: nobody has said that anything matters more.
        ("first come, first served", scheduled(Strategy::Criticality, Some(Criticality::High))?),
        ("MUF", scheduled(Strategy::Muf, None)?),
        ("RMS+MLF", scheduled(Strategy::RmsMlf, None)?),
        ("reservation", parsed(&format!("{EVENTS}{RESERVATION}"))?),
    ])
}

fn main() -> Result<(), Box<dyn Error>> {
    let on_threads = match std::env::args().nth(1).as_deref() {
        None => false,
        Some("--threads") => true,
        Some(other) => return Err(format!("{other} is unknown; --threads runs on real threads").into()),
    };
    println!(
        "{:<26} {:>7} {:>6} {:>7} {:>9}   {:>8} {:>9} {:>9}",
        "", "alarms", "late", "lost", "longest", "pictures", "delivered", "discarded"
    );
    for (name, system) in systems()? {
        let length = Duration::from_secs(if on_threads { 3 } else { 60 });
        let report = match on_threads {
            true => Run::new(&system).duration(length).run()?.report,
            false => talea::simulate(&system, length)?,
        };
        print(name, &report);
    }
    Ok(())
}

fn print(name: &str, report: &Report) {
    let task = |name: &str| report.tasks.iter().find(|task| task.name == name).expect("it is in the file");
    let events = |name: &str| {
        let mut subscriptions = report.subscriptions.iter();
        subscriptions.find(|subscription| subscription.task == name).expect("it is in the file")
    };
    let (guard, alarms, pictures) = (task("guard"), events("guard"), events("vision"));
    let longest = guard.response_ns.as_ref().map_or(0, |response| response.max);
    println!(
        "{name:<26} {:>7} {:>6} {:>7} {:>6.1} ms   {:>8} {:>9} {:>9}",
        alarms.pushed,
        guard.missed,
        alarms.discarded + alarms.expired,
        longest as f64 / 1e6,
        pictures.pushed,
        pictures.delivered,
        pictures.discarded,
    );
}
