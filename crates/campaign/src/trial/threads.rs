//! The command on real threads: what it records obeys the rules, and nothing of it is left, however it ends.

use super::{Fault, in_folder};
use crate::draw::{self, Size, one_of};
use crate::{Counts, Surroundings};
use rand::RngExt;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// In the environment of everything that a trial starts.
pub(super) const MARK: &str = "TALEA_CAMPAIGN_TRIAL";
/// What a run that is killed may take until nothing of it is left.
pub(super) const GONE: Duration = Duration::from_secs(1);
/// A run of some hundred milliseconds is over by then, on any machine.
const OVER: Duration = Duration::from_secs(60);

pub fn attempt(seed: u64, around: &Surroundings, counts: &mut Counts) -> Result<(), Fault> {
    let (Some(talea), Some(system)) = (&around.talea, draw::system(seed, Size::Small)) else {
        counts.refused += 1;
        return Ok(());
    };
    let text = system.to_toml();
    in_folder(|folder| judge(seed, (talea, folder), &text, counts)).map_err(|what| Fault::new(what, text))
}

fn judge(seed: u64, (talea, folder): (&Path, &Path), text: &str, counts: &mut Counts) -> Result<(), String> {
    let (file, out) = (folder.join("drawn.toml"), folder.join("out"));
    fs::write(&file, text).expect("the folder is ours");
    let rng = &mut draw::numbers(!seed);
    let kill = rng.random_ratio(1, 3).then(|| Duration::from_micros(rng.random_range(0..400_000)));
    let mark = format!("{}-{seed}", std::process::id());
    let command = one_of(rng, &["200ms", "300ms"]);
    // Every other one records what is needed to replay it.
    let keeping: &[&str] = one_of(rng, &[&[], &["--keep-values", "all"]]);
    let mut run = Command::new(talea)
        .args(["run", "--for", command])
        .args(keeping)
        .arg("--out")
        .args([&out, &file])
        .env(MARK, &mark)
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.join("said")).expect("the folder is ours"))
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", talea.display()))?;
    if let Some(after) = kill {
        std::thread::sleep(after);
        let _gone_already = run.kill();
    }
    let ended = wait(&mut run)?;
    let said = fs::read_to_string(folder.join("said")).unwrap_or_default();
    if said.contains("panicked at") {
        return Err(format!("a panic: {said}"));
    }
    counts.hold(if kill.is_some() { "killed runs" } else { "whole runs" }, 1);
    nothing_is_left(&mark)?;
    match (kill, ended.code()) {
        (Some(_), _) => Ok(()),
        // Misses are an answer, too.
        (None, Some(0 | 1)) => {
            let trace = out.join("trace.talea");
            verify(talea, (&file, &trace), counts)?;
            if keeping.is_empty() { Ok(()) } else { replay(talea, (&file, &trace), counts) }
        }
        (None, Some(2)) => {
            counts.refused += 1;
            Ok(())
        }
        (None, code) => Err(format!("it ended with {code:?}: {said}")),
    }
}

pub(super) fn wait(run: &mut Child) -> Result<std::process::ExitStatus, String> {
    let since = Instant::now();
    loop {
        if let Some(status) = run.try_wait().map_err(|error| error.to_string())? {
            return Ok(status);
        }
        if since.elapsed() > OVER {
            let _gone_already = run.kill();
            return Err(format!("it has not ended after {OVER:?}"));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Whether `talea replay` finds nothing that differs: operations are called again with what they were handed on threads, through links and channels.
fn replay(talea: &Path, (file, trace): (&Path, &Path), counts: &mut Counts) -> Result<(), String> {
    if !trace.exists() {
        return Ok(());
    }
    let output = Command::new(talea).args(["replay", "--json"]).arg(trace).arg("--system").arg(file).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = || String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned();
    match output.status.code() {
        Some(0) => {}
        // It has neither outputs nor channels, or no job of theirs has ended.
        Some(2) if said().contains("the trace keeps neither values nor events") => return Ok(()),
        Some(2) if said().contains("nothing was compared") => return Ok(()),
        code => return Err(format!("replay ends with {code:?}: {}", said())),
    }
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let differences = report["differences"].as_array().map_or(0, Vec::len);
    if differences > 0 {
        return Err(format!("replayed, the same description differs: {}", said()));
    }
    let rows = ["outputs", "publications"].into_iter().filter_map(|rows| report[rows].as_array()).flatten();
    let (mut compared, mut unknown) = (0, 0);
    for row in rows {
        compared += row["compared"].as_u64().unwrap_or(0);
        unknown += row["unknown"].as_u64().unwrap_or(0);
    }
    // Only where something is lost it may be unknown what differs.
    let lost = report["lost_records"].as_u64().unwrap_or(0);
    if unknown > 0 && lost == 0 {
        return Err(format!("replayed, not all is known: {}", said()));
    }
    counts.hold("replayed runs", 1);
    counts.hold("values of threads replayed", compared);
    Ok(())
}

/// Whether `talea trace verify` finds nothing in the trace of a run but what is [expected](only_expected).
pub(super) fn verify(talea: &Path, (file, trace): (&Path, &Path), counts: &mut Counts) -> Result<(), String> {
    if !trace.exists() {
        return Ok(());
    }
    let output = Command::new(talea).args(["trace", "verify"]).args([file, trace]).output();
    let output = output.map_err(|error| error.to_string())?;
    counts.hold("verified runs", 1);
    match output.status.code() {
        Some(0) => Ok(()),
        Some(1) if only_expected(talea, (file, trace), counts)? => Ok(()),
        code => {
            let said = [output.stdout, output.stderr].concat();
            Err(format!("verify ends with {code:?}: {}", String::from_utf8_lossy(&said)))
        }
    }
}

/// Whether all that was found are promises of which `talea check` says that they are not known to be kept, and such as were kept by what was
/// granted, and broken by what the kernel withheld, as it says itself: the trace has each of these times. They are counted.
fn only_expected(talea: &Path, (file, trace): (&Path, &Path), counts: &mut Counts) -> Result<bool, String> {
    let answer = |arguments: &[&str], files: &[&Path]| -> Result<Value, String> {
        let output = Command::new(talea).args(arguments).args(files).output();
        let output = output.map_err(|error| error.to_string())?;
        serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
    };
    let mut report = answer(&["trace", "verify", "--json"], &[file, trace])?;
    let checked = answer(&["check", "--json"], &[file])?;
    let doubted = doubted(&checked);
    let mut unknown = 0;
    let edges = report["promises"]["edges"].as_array_mut().into_iter().flatten();
    for edge in edges.filter(|edge| doubted.contains(&named(edge, &edge["node"]))) {
        unknown += edge["broken"].as_u64().unwrap_or(0);
        edge["broken"] = 0.into();
    }
    let sum = |list: &Value, key: &str| {
        list.as_array().map_or(0, |all| all.iter().filter_map(|one| one[key].as_u64()).sum::<u64>())
    };
    let (promises, rules) =
        (&report["promises"]["edges"], [&report["decisions"]["rules"], &report["lanes"]["rules"]]);
    let mistakes = sum(promises, "broken") + rules.map(|rules| sum(rules, "violations")).iter().sum::<u64>();
    let withheld = sum(promises, "withheld");
    if mistakes > 0 || withheld + unknown == 0 {
        return Ok(false);
    }
    counts.hold("promises broken by time withheld", withheld);
    counts.hold("what is not promised", unknown);
    Ok(true)
}

/// Which edge this is of.
fn named(edge: &Value, node: &Value) -> [Value; 3] {
    [node.clone(), edge["parent"].clone(), edge["child"].clone()]
}

/// The edges whose promises are not known to be kept.
fn doubted(checked: &Value) -> Vec<[Value; 3]> {
    let hierarchies = checked["hierarchies"].as_array().into_iter().flatten();
    let edges = hierarchies.flat_map(|hierarchy| {
        let provisos = hierarchy["provisos"].as_array().into_iter().flatten();
        provisos.map(|proviso| named(proviso, &hierarchy["node"]))
    });
    edges.collect()
}

/// Nothing that has this mark is left, after a moment at most.
pub(super) fn nothing_is_left(mark: &str) -> Result<(), String> {
    let since = Instant::now();
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return Ok(());
        }
        if since.elapsed() > GONE {
            let names: Vec<String> = left.iter().map(|pid| format!("{pid} {}", name_of(*pid))).collect();
            left.iter().filter_map(|pid| Pid::from_raw(*pid)).for_each(|pid| {
                let _gone = kill_process(pid, Signal::KILL);
            });
            return Err(format!("{GONE:?} after its end there still are: {}", names.join(", ")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn marked(mark: &str) -> Vec<i32> {
    let entry = format!("{MARK}={mark}");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
    })
    .collect()
}

fn name_of(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().into()
}
