//! A controller as a program: the system from a file, its operations as closures.
//!
//! `cargo run --example embed`

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use talea::{Duration, Run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let system = talea::read("examples/hello.toml".as_ref())?.system;
    let sum = Arc::new(AtomicU64::new(0));
    let total = Arc::clone(&sum);
    let outcome = Run::new(&system)
        .operation("blink", move |job| {
            total.fetch_add(job.instance(), Ordering::Relaxed);
        })
        .on_finished(|job| println!("{} {}: {} in {}", job.operation, job.instance, job.met(), job.response))
        .duration(Duration::from_secs(1))
        .run()?;
    println!("sum {}; {} jobs met their deadline", sum.load(Ordering::Relaxed), outcome.report.tasks[0].met);
    Ok(())
}
