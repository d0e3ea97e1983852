//! A program's own scheduler: named by a system file, checked, simulated, run, and put in the place of another while it runs.
//!
//! `cargo run -p talea --example own_scheduler`; meanwhile `talea ctl own-scheduler replace shares --kind weighted-turns` does what the
//! program does here itself.

mod weighted_turns;

use std::collections::BTreeMap;
use std::thread;
use talea::run::control::protocol::{Command, Insistence};
use talea::run::control::{Client, Sockets};
use talea::{Duration, Run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let own = talea::schedulers::register(&weighted_turns::ROW)?;
    let system = talea::read("examples/own_scheduler/system.toml".as_ref())?.system;

    let check = talea::check(&system)?;
    println!("{own} keeps what is required of it: {}", check.holds());

    let simulated = talea::simulate(&system, Duration::from_secs(10))?;
    for task in &simulated.tasks {
        println!("simulated: {} was released {} times", task.name, task.released);
    }

    let replacing = thread::spawn(|| {
        for kind in ["stride", "weighted-turns"] {
            thread::sleep(std::time::Duration::from_millis(700));
            println!(
                "{kind} takes over: {}",
                replace("shares", kind).unwrap_or_else(|error| error.to_string())
            );
        }
    });
    let outcome = Run::new(&system).duration(Duration::from_secs(2)).run()?;
    replacing.join().expect("it does not panic");
    for promise in outcome.hierarchies.iter().flat_map(|hierarchy| &hierarchy.edges) {
        println!("run: {} of {} received {} ns", promise.child, promise.parent, promise.received_ns);
    }
    Ok(())
}

/// Asks the run of this process to put a scheduler of this kind in the place of another, as `talea ctl` does.
fn replace(name: &str, kind: &str) -> Result<String, Box<dyn std::error::Error>> {
    let run = Sockets::of_user()?.find(&std::process::id().to_string())?;
    let (name, kind) = (name.into(), kind.into());
    let command =
        Command::Replace { name, kind, quantum: None, settings: BTreeMap::new(), children: Vec::new() };
    Ok(format!("{:?}", Client::of(&run).ask(&command, Insistence::Careful)?))
}
