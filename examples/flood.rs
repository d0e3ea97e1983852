//! Writes events as fast as it is told to: for finding out what a recorder loses.
//!
//! `talea trace record --kernel off --fail-on-loss -- cargo run --release --example flood -- --rate 1000000 --threads 2 --for 3s`
//!
//! Each thread writes what is due of its part of the rate every 200 µs. With `--short N` there are N threads, one after the other on each
//! of `--threads`, which write 100 events each and end. At the end it says how many events it has written.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use talea::trace::stream::Stream;

talea::family! {
    /// What the flood writes.
    flood {
        /// An event: its number, counted by its thread, and the thread's number.
        event(number: u64, thread: u32);
    }
}

/// Between two bursts of a thread.
const BURST_EVERY: Duration = Duration::from_micros(200);
/// What each of the short threads writes.
const EVENTS_OF_SHORT: u64 = 100;

struct Options {
    rate: u64,
    threads: u32,
    length: Duration,
    short: u32,
}

impl Options {
    fn read() -> Result<Self, String> {
        let mut options = Options { rate: 1_000_000, threads: 2, length: Duration::from_secs(3), short: 0 };
        let mut arguments = std::env::args().skip(1);
        while let Some(name) = arguments.next() {
            let value = arguments.next().ok_or(format!("{name} needs a value"))?;
            let number = || value.parse::<u64>().map_err(|_| format!("{name}: \"{value}\" is no number"));
            match name.as_str() {
                "--rate" => options.rate = number()?,
                "--threads" => options.threads = number()?.clamp(1, 1000) as u32,
                "--short" => options.short = number()? as u32,
                "--for" => {
                    let length: talea::Duration =
                        value.parse().map_err(|_| format!("--for: \"{value}\" is no length of time"))?;
                    options.length = Duration::from_nanos(length.as_nanos() as u64);
                }
                _ => {
                    return Err(format!(
                        "{name} is not known; there are --rate, --threads, --for and --short"
                    ));
                }
            }
        }
        Ok(options)
    }
}

/// Writes so many events a second for this long, and returns how many.
fn flood(thread: u32, rate: f64, length: Duration) -> u64 {
    let (began, mut written) = (Instant::now(), 0);
    loop {
        let elapsed = began.elapsed().min(length);
        let due = (elapsed.as_secs_f64() * rate) as u64;
        while written < due {
            flood::event(written, thread);
            written += 1;
        }
        if elapsed == length {
            return written;
        }
        std::thread::sleep(BURST_EVERY);
    }
}

fn main() -> ExitCode {
    let options = match Options::read() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let _stream = match Stream::publish("flood") {
        Ok(stream) => stream,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    flood::FAMILY.register().expect("the only family");
    let (began, written, begun) = (Instant::now(), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..options.threads {
            let (written, begun, options) = (&written, &begun, &options);
            scope.spawn(move || {
                if options.short == 0 {
                    let rate = options.rate as f64 / f64::from(options.threads);
                    written.fetch_add(flood(thread, rate, options.length), Ordering::Relaxed);
                    return;
                }
                while begun.fetch_add(1, Ordering::Relaxed) < u64::from(options.short) {
                    let short = move || (0..EVENTS_OF_SHORT).for_each(|number| flood::event(number, thread));
                    std::thread::spawn(short).join().expect("it only writes");
                    written.fetch_add(EVENTS_OF_SHORT, Ordering::Relaxed);
                }
            });
        }
    });
    let (written, took) = (written.into_inner(), began.elapsed());
    println!(
        "{written} events in {:.3} s, {:.0} a second",
        took.as_secs_f64(),
        written as f64 / took.as_secs_f64()
    );
    ExitCode::SUCCESS
}
