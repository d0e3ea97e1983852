//! The command on real threads against what the check says of this machine: no response is longer than its bound.
//!
//! Bounds count with what the mechanisms cost and what the kernel keeps, and with no moment in which a virtual machine stands still. So two
//! threads above all others look at the clock meanwhile: what they came late by, nobody had. Between two looks they see nothing, so a
//! response may be longer by one more stall, as long as the longest that was seen when the machine was measured; these are counted apart. One
//! that is longer by more is a finding if it happens again in three more runs of the same system.

use super::{Fault, in_folder};
use crate::draw::{self, Size};
use crate::{Counts, Surroundings};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use talea_linux::affinity;
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::{self, Policy};
use talea_linux::stop::StopFlag;
use talea_time::{Clock, Duration, Instant};

/// How often each of the two looks.
const LOOK: Duration = Duration::from_millis(2);
/// What a look may take from whoever it preempts.
const COST: Duration = Duration::from_micros(10);
/// What is later than this has been kept from the processor; what is less is a switch.
const STALL: Duration = Duration::from_micros(100);

pub fn attempt(seed: u64, around: &Surroundings, counts: &mut Counts) -> Result<(), Fault> {
    let (Some(talea), Some(machine)) = (&around.talea, &around.machine) else {
        counts.refused += 1;
        return Ok(());
    };
    let Some(system) = draw::system(seed, Size::Small) else {
        counts.refused += 1;
        return Ok(());
    };
    let text = system.to_toml();
    in_folder(|folder| judge(folder, (talea, machine), &text, counts)).map_err(|what| Fault::new(what, text))
}

/// How often a system is run again in which a response was longer than its bound.
const AGAIN: usize = 3;

fn judge(
    folder: &Path,
    (talea, machine): (&Path, &Path),
    text: &str,
    counts: &mut Counts,
) -> Result<(), String> {
    let file = folder.join("drawn.toml");
    fs::write(&file, text).expect("the folder is ours");
    let checked =
        Command::new(talea).arg("check").arg(&file).arg("--machine").arg(machine).arg("--json").output();
    let Some(checked) = report(checked)? else {
        counts.refused += 1;
        return Ok(());
    };
    let stall = Duration::from_nanos(checked["machine"]["longest_stall_ns"].as_i64().unwrap_or_default());
    let bounds = (bounds(&checked["machine"]["report"]), stall);
    let Some(first) = run(talea, &file, &bounds, counts)? else { return Ok(()) };
    for _ in 0..AGAIN {
        if let Some(again) = run(talea, &file, &bounds, &mut Counts::default())? {
            return Err(format!("{first}, and in another run {again}"));
        }
    }
    counts.hold("systems with a response longer than its bound in one run and not in three more", 1);
    Ok(())
}

/// Runs it once. A response that is longer than its bound, if there is one.
fn run(
    talea: &Path,
    file: &Path,
    (bounds, stall): &(BTreeMap<&str, i64>, Duration),
    counts: &mut Counts,
) -> Result<Option<String>, String> {
    let watchers = Watchers::start()?;
    let ran = Command::new(talea)
        .args(["run", "--no-lower", "--for", "400ms", "--json"])
        .arg(file)
        .stdin(Stdio::null())
        .output();
    let missing = watchers.end()?;
    let Some(ran) = report(ran)? else {
        counts.refused += 1;
        return Ok(None);
    };
    counts.hold("runs", 1);
    let mut longer = None;
    for task in list(&ran["report"]["tasks"]) {
        let (Some(name), Some(longest)) = (task["name"].as_str(), task["response_ns"]["max"].as_i64()) else {
            continue;
        };
        match bounds.get(name) {
            None => counts.hold("responses without a bound", 1),
            Some(bound) if longest <= *bound => {
                counts.hold("bounds", 1);
                counts.hold("hundredths of bounds reached", (longest * 100 / bound.max(&1)).unsigned_abs());
            }
            Some(bound) if longest <= bound + within(&missing, *bound).as_nanos() => {
                counts.hold("responses longer than bounds by no more than was withheld from all", 1);
            }
            Some(bound) if longest <= bound + (within(&missing, *bound) + *stall).as_nanos() => {
                counts.hold("longer by less than the longest stall of the profile", 1);
            }
            Some(bound) => {
                let time = |ns: i64| Duration::from_nanos(ns);
                longer = Some(format!(
                    "{name}: a response of {}, bound {}, {} were withheld from all",
                    time(longest),
                    time(*bound),
                    within(&missing, *bound)
                ));
            }
        }
    }
    Ok(longer)
}

/// What a command says of a system that it takes.
fn report(output: std::io::Result<Output>) -> Result<Option<Value>, String> {
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        // A no is an answer, too.
        Some(0 | 1) => {
            serde_json::from_slice(&output.stdout).map(Some).map_err(|error| format!("{error}: {said}"))
        }
        Some(2) => Ok(None),
        code => Err(format!("it ended with {code:?}: {said}")),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The bound of each task and thread that has one.
fn bounds(report: &Value) -> BTreeMap<&str, i64> {
    let all = list(&report["tasks"]).chain(list(&report["threads"]));
    all.filter_map(|one| Some((one["name"].as_str()?, one["bound_ns"].as_i64()?))).collect()
}

/// The most that was missing while a response as long as `bound` lasted and longer by that, on all processors, and a little for each look.
fn within(missing: &Missing, bound: i64) -> Duration {
    let looks = Duration::from_nanos(COST.as_nanos() * (bound / LOOK.as_nanos() + 2));
    missing.iter().fold(looks, |sum, stalls| sum + most_within(stalls, Duration::from_nanos(bound)))
}

/// The greatest sum of stalls that end while a window of this length lasts, which is the longer for them.
fn most_within(stalls: &[(Instant, Duration)], window: Duration) -> Duration {
    let from = |first: usize| {
        let mut sum = Duration::ZERO;
        for (end, late) in &stalls[first..] {
            if *end - stalls[first].0 > window + sum {
                break;
            }
            sum += *late;
        }
        sum
    };
    (0..stalls.len()).map(from).max().unwrap_or_default()
}

/// The ends and lengths of times in which nobody had a processor, for each processor.
type Missing = Vec<Stalls>;

/// Those of one processor.
type Stalls = Vec<(Instant, Duration)>;

/// Threads above all others, one on each processor.
struct Watchers {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<Stalls, String>>>,
}

impl Watchers {
    fn start() -> Result<Self, String> {
        let ended = Arc::new(AtomicBool::new(false));
        let cpus = affinity::allowed().map_err(|error| error.to_string())?;
        let watch = |cpu: u16| {
            let ended = Arc::clone(&ended);
            std::thread::spawn(move || watch(cpu, &ended))
        };
        let threads = cpus.into_iter().map(watch).collect();
        Ok(Watchers { ended, threads })
    }

    fn end(self) -> Result<Missing, String> {
        self.ended.store(true, Ordering::Relaxed);
        let ended = self.threads.into_iter().map(|thread| match thread.join() {
            Ok(stalls) => stalls,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        ended.collect()
    }
}

/// When it came late, and by how much, where that is a stall.
fn watch(cpu: u16, ended: &AtomicBool) -> Result<Stalls, String> {
    affinity::set(None, &[cpu]).map_err(|error| error.to_string())?;
    sched::set_self(Policy::Fifo(99)).map_err(|error| error.to_string())?;
    let (clock, never) = (MonotonicClock, StopFlag::new());
    let mut stalls = Vec::new();
    let mut next = clock.now();
    while !ended.load(Ordering::Relaxed) {
        next += LOOK;
        never.sleep_until(next);
        let now = clock.now();
        if now - next > STALL {
            stalls.push((now, now - next));
            next = now;
        }
    }
    Ok(stalls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_count_within_the_window_that_they_make_longer() {
        let at = |ms: i64, late: i64| (Instant::from_nanos(ms * 1_000_000), Duration::from_millis(late));
        let stalls = [at(10, 1), at(14, 3), at(19, 2), at(100, 4)];
        let most = |ms| most_within(&stalls, Duration::from_millis(ms));
        assert_eq!([1, 3, 50].map(most), [4, 5, 6].map(Duration::from_millis));
        assert_eq!(most_within(&[], Duration::from_secs(1)), Duration::ZERO);
    }
}
