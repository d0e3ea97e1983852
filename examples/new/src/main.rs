//! A source, a filter and a sink: what `system.toml` describes, with code.

use talea::run::Operations;
use talea::{Duration, Run, System};

/// The code of the three. It is the same on threads and in virtual time.
pub fn operations() -> Operations {
    Operations::synthetic()
        .with_ports("source", |ports| {
            let raw = ports.output::<f64>("raw");
            move |job| job.set(raw, (job.instance() as f64 / 10.0).sin())
        })
        .with_ports("filter", |ports| {
            let (raw, smooth) = (ports.input::<f64>("raw"), ports.output::<f64>("smooth"));
            let mut mean = 0.0;
            move |job| {
                for value in job.all(raw) {
                    mean += 0.2 * (value - mean);
                }
                job.set(smooth, mean);
            }
        })
        .with_ports("sink", |ports| {
            let smooth = ports.input::<f64>("smooth");
            move |job| {
                if let (Some(value), Some(age)) = (job.get(smooth), job.age(smooth)) {
                    println!("{value:+.3}, published {} ago", age.rounded());
                }
            }
        })
}

/// What `system.toml` describes.
pub fn system() -> Result<System, Box<dyn std::error::Error>> {
    Ok(talea::parse("system.toml", include_str!("../system.toml"), "".as_ref())?.system)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seconds = std::env::args().nth(1).map_or(Ok(2), |seconds| seconds.parse())?;
    let outcome =
        Run::new(&system()?).operations(operations()).duration(Duration::from_secs(seconds)).run()?;
    outcome.missing.iter().for_each(|missing| eprintln!("note: {missing}"));
    for task in &outcome.report.tasks {
        println!("{}: {} of {} in time", task.name, task.met, task.released);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds in virtual time take a moment, and come out the same each time.
    #[test]
    fn every_deadline_is_met() {
        let system = system().expect("the system file is sound");
        let simulated =
            talea::simulation::simulate_operations(&system, operations(), Duration::from_secs(10));
        let report = simulated.expect("the code fits the system file");
        for task in &report.tasks {
            assert_eq!(task.met, task.released, "{}", task.name);
        }
    }
}
