//! What is lost of a flood of events, beside LTTng-UST with at least as much buffer memory.
//!
//! `cargo bench -p talea-recording --bench flood [-- --quick] [-- --rate N]`
//!
//! Two threads of a process write events of two words every 200 µs, together as many a second as the rate says. A [`Recording`] writes
//! them to a log in the same folder as LTTng its trace. Both have the buffers of the rings that these two threads use: 2 × 32 Ki
//! records of 40 bytes here, 2 × 4 × 512 KiB there, which is more. Without LTTng its lines are missing, and it is said why.

mod lttng;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use talea_record::stream::{RECORDER, Selection, Start, Stream, StreamDirectory, announcement};
use talea_record::{TraceFile, TraceKind};
use talea_recording::recording::{Recording, RecordingOptions};

talea_record::family! {
    /// What the flood writes.
    flood {
        /// An event.
        event(number: u64, thread: u64);
    }
}

const THREADS: u32 = 2;
const BURST_EVERY: Duration = Duration::from_micros(200);

/// What became of a flood.
struct Result {
    written: u64,
    lost: u64,
    /// Processor time of the recorder by the length of the flood.
    load: Option<f64>,
}

fn produce(rate: f64, length: Duration) -> u64 {
    let _stream = Stream::publish("flood-bench").expect("a stream");
    flood::FAMILY.register().expect("the only family");
    let one = |thread: u32| {
        let (began, mut written) = (Instant::now(), 0);
        loop {
            let elapsed = began.elapsed().min(length);
            let due = (elapsed.as_secs_f64() * rate / f64::from(THREADS)) as u64;
            while written < due {
                flood::event(written, thread.into());
                written += 1;
            }
            if elapsed == length {
                return written;
            }
            std::thread::sleep(BURST_EVERY);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || one(thread))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it writes")).sum()
    })
}

/// Processor time of this process so far.
fn used() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn with_talea(folder: &Path, rate: u64, length: Duration) -> Result {
    let directory = StreamDirectory::of_user().expect("a place for streams");
    let log = folder.join("flood.talea");
    let mut recording = Recording::new(&log, "flood", RecordingOptions::default()).expect("a thread");
    let before = used();
    let mut child = Command::new(std::env::current_exe().expect("it runs"))
        .args(["--produce", &rate.to_string(), &length.as_millis().to_string()])
        .env(RECORDER, announcement(directory.path()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts");
    let all = Selection::all();
    let mut is_followed = false;
    while child.try_wait().expect("it was started").is_none() {
        if !is_followed {
            let published = directory.published().unwrap_or_default();
            let stream = published.into_iter().find(|(pid, _)| *pid == child.id());
            is_followed = stream
                .is_some_and(|(_, path)| recording.follow_as_it_grows(&path, &all, Start::Oldest).is_ok());
        }
        recording.poll(talea_record::stream::clock::now()).expect("the folder has room");
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().expect("it was started");
    let recorded = recording.finish().expect("the folder has room");
    // What it took to the end: also what had waited in memory.
    let load = (used() - before).as_secs_f64() / length.as_secs_f64();
    let written: u64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("it says a number");
    let trace = TraceFile::open(&log).expect("a log");
    assert_eq!(trace.kind(), TraceKind::Log);
    // The log numbers families anew.
    let event = trace.name_space().expect("a log").family("flood").expect("it was recorded").number;
    let kept = trace.records().expect("a log").flatten().filter(|record| record.event.family() == event);
    let lost = written - kept.count() as u64;
    assert_eq!(lost, recorded.lost_in_all(), "what is not there is counted as lost");
    let _ = std::fs::remove_file(&log);
    Result { written, lost, load: Some(load) }
}

fn show(who: &str, rate: u64, result: &Result) {
    let share = result.lost as f64 / result.written.max(1) as f64 * 100.0;
    let load = result.load.map_or(String::new(), |load| format!(", {:.0} % of a processor", load * 100.0));
    println!(
        "{who:<12} {rate:>9}/s: {:>9} written, {:>9} lost ({share:.2} %){load}",
        result.written, result.lost
    );
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|number| number.parse::<u64>().ok());
    if let (Some("--produce"), Some(rate), Some(ms)) =
        (arguments.first().map(String::as_str), number(1), number(2))
    {
        println!("{}", produce(rate as f64, Duration::from_millis(ms)));
        return ExitCode::SUCCESS;
    }
    // Cargo's test runner asks every benchmark to run for a moment.
    let is_short = arguments.iter().any(|argument| argument == "--quick" || argument == "--test");
    let length = Duration::from_millis(if is_short { 200 } else { 3000 });
    let asked = arguments.iter().position(|argument| argument == "--rate").and_then(|at| number(at + 1));
    let rates = asked.map_or(vec![200_000, 1_000_000, 5_000_000], |rate| vec![rate]);
    let folder = tempfile::tempdir().expect("a temporary folder");
    for rate in rates {
        show("talea", rate, &with_talea(folder.path(), rate, length));
        match lttng::flood(rate, THREADS, length) {
            Ok(result) => show("LTTng-UST", rate, &result),
            Err(reason) => println!("LTTng-UST: skipped: {reason}"),
        }
    }
    ExitCode::SUCCESS
}
