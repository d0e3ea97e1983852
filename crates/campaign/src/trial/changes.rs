//! Hierarchies on real threads that are changed while they run, with programs among their threads, some of which were there before.

use super::threads::{GONE, MARK, nothing_is_left, verify, wait};
use super::{Fault, in_folder};
use crate::draw::{self, Size, one_of};
use crate::{Counts, Surroundings};
use rand::{Rng, RngExt};
use rustix::process::{Signal, kill_process_group};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use talea_linux::sched::{self, Policy};
use talea_linux::{Tid, affinity};
use talea_model::{Description, System, ThreadWork};

/// What a run may take until it can be controlled.
const READY: Duration = Duration::from_secs(5);

/// Programs that compute, sleep and fork, by themselves and beside each other.
const PROGRAMS: [&str; 4] =
    ["while :; do :; done", "while :; do sleep 0.003; done", "while :; do (: | :); done", "sleep 0.1"];

const KINDS: [&str; 8] =
    ["fixed-priority", "round-robin", "proportional-share", "reservation", "eevdf", "sfq", "stride", "edf"];

pub fn attempt(seed: u64, around: &Surroundings, counts: &mut Counts) -> Result<(), Fault> {
    let drawn = draw::system(seed, Size::Small).filter(|system| !system.schedulers.is_empty());
    let rng = &mut draw::numbers(!seed);
    let system = drawn.and_then(|system| with_programs(&system, rng));
    let (Some(talea), Some(system)) = (&around.talea, system) else {
        counts.refused += 1;
        return Ok(());
    };
    let text = system.to_toml();
    let mut made = Vec::new();
    let tried = in_folder(|folder| judge(seed, (talea, folder), (&system, &text), rng, (counts, &mut made)));
    tried.map_err(|what| {
        let changes: String = made.iter().map(|change| format!("# talea ctl {change}\n")).collect();
        Fault::new(what, changes + &text)
    })
}

/// The same system, in which programs are in place of some of its threads.
fn with_programs(system: &System, rng: &mut impl Rng) -> Option<System> {
    let mut description = Description::clone(system);
    for thread in &mut description.threads {
        if rng.random_ratio(1, 3) {
            let program = ["sh", "-c", one_of(rng, &PROGRAMS)];
            thread.work = ThreadWork::Command(program.map(String::from).to_vec());
        }
    }
    System::new(description).ok()
}

fn judge(
    seed: u64,
    (talea, folder): (&Path, &Path),
    (system, text): (&System, &str),
    rng: &mut impl Rng,
    (counts, made): (&mut Counts, &mut Vec<String>),
) -> Result<(), String> {
    let (file, out) = (folder.join("drawn.toml"), folder.join("out"));
    fs::write(&file, text).expect("the folder is ours");
    let mark = format!("{}-{seed}", std::process::id());
    let said = folder.join("said");
    let mut run = Command::new(talea)
        .args(["run", "--no-lower", "--for", "500ms", "--out"])
        .args([&out, &file])
        .env(MARK, &mark)
        .stdout(Stdio::null())
        .stderr(fs::File::create(&said).expect("the folder is ours"))
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", talea.display()))?;
    let address = |node: usize| match system.nodes.len() {
        1 => system.name.clone(),
        _ => format!("{}.{}", system.name, system.nodes[node].name),
    };
    let first = any_node(system, rng);
    let since = Instant::now();
    let mut is_ready = false;
    while !is_ready && since.elapsed() < READY && matches!(run.try_wait(), Ok(None)) {
        is_ready = control(talea, &[&address(first), "list"])?.status.success();
    }
    let neighbours = Neighbours::start(folder)?;
    let mut members = BTreeMap::new();
    let changes = if is_ready { rng.random_range(1..=8) } else { 0 };
    for number in 0..changes {
        let node = if rng.random_ratio(2, 3) { first } else { any_node(system, rng) };
        let change = change(system, node, (number, &neighbours), rng);
        let name = address(node);
        made.push(format!("{name} {}", change.join(" ")));
        let arguments: Vec<&str> = std::iter::once(&*name).chain(change.iter().map(|word| &**word)).collect();
        let output = control(talea, &arguments)?;
        match output.status.code() {
            Some(0) => {
                counts.hold("changes made", 1);
                neighbours.judge(&change, &mut members)?;
            }
            Some(1 | 2) => counts.hold("changes refused", 1),
            code => return Err(format!("ctl {change:?} ends with {code:?}: {}", words(&output))),
        }
    }
    let is_killed = rng.random_ratio(1, 4);
    if is_killed {
        let _gone_already = run.kill();
    }
    let ended = wait(&mut run)?;
    let said = fs::read_to_string(said).unwrap_or_default();
    if said.contains("panicked at") {
        return Err(format!("a panic: {said}"));
    }
    nothing_is_left(&mark)?;
    neighbours.are_as_before()?;
    match (is_killed, ended.code()) {
        (true, _) => Ok(()),
        (false, Some(0 | 1)) => {
            accounts_agree(&out.join("result.json"))?;
            verify(talea, (&file, &out.join("trace.talea")), counts)
        }
        (false, Some(2)) => {
            counts.refused += 1;
            Ok(())
        }
        (false, code) => Err(format!("it ended with {code:?}: {said}")),
    }
}

/// One that schedulers decide about.
fn any_node(system: &System, rng: &mut impl Rng) -> usize {
    system.schedulers[rng.random_range(0..system.schedulers.len())].node
}

fn control(talea: &Path, arguments: &[&str]) -> Result<Output, String> {
    let output =
        Command::new(talea).arg("ctl").args(arguments).output().map_err(|error| error.to_string())?;
    match words(&output) {
        said if said.contains("panicked at") => Err(format!("ctl {arguments:?}: {said}")),
        _ => Ok(output),
    }
}

fn words(output: &Output) -> String {
    [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat()
}

/// Processes that were there before a run: a shell that spins, and its child that does, too.
struct Neighbours {
    shell: Child,
    child: Tid,
    /// The processors on which they may run.
    cpus: Vec<u16>,
}

impl Neighbours {
    fn start(folder: &Path) -> Result<Self, String> {
        let note = folder.join("child");
        let spin = "while :; do :; done";
        let script = format!(
            "ulimit -t 20; ({spin}) & echo $! > '{0}.new'; mv '{0}.new' '{0}'; {spin}",
            note.display()
        );
        let mut command = Command::new("sh");
        let mut shell =
            command.args(["-c", &script]).process_group(0).spawn().map_err(|error| error.to_string())?;
        let child = loop {
            if let Ok(text) = fs::read_to_string(&note) {
                break text.trim().parse().ok().and_then(Tid::from_raw);
            }
            if !matches!(shell.try_wait(), Ok(None)) {
                break None;
            }
            std::thread::yield_now();
        };
        let child = child.ok_or("the shell does not start")?;
        let cpus = affinity::get(Some(child)).map_err(|error| error.to_string())?;
        Ok(Neighbours { shell, child, cpus })
    }

    fn all(&self) -> [Tid; 2] {
        [Tid::from_child(&self.shell), self.child]
    }

    /// The processes themselves are ordinary ones as soon as nobody schedules them any more.
    fn judge(&self, change: &[String], members: &mut BTreeMap<String, Tid>) -> Result<(), String> {
        let words = || change.iter().map(String::as_str);
        let name = words().filter(|word| !word.starts_with("--")).nth(1).unwrap_or_default();
        if words().next() == Some("add-thread")
            && let Some(at) = words().position(|word| ["--pid", "--tid"].contains(&word))
        {
            let process = change[at + 1].parse().ok().and_then(Tid::from_raw);
            members.insert(name.to_owned(), process.expect("a number of a process"));
        } else if words().next() == Some("remove")
            && let Some(process) = members.remove(name)
            && members.is_empty()
        {
            is_ordinary(process).map_err(|what| format!("{change:?}: {what}"))?;
        }
        Ok(())
    }

    /// All that they had they have back, a moment after the end of a run that was killed.
    fn are_as_before(&self) -> Result<(), String> {
        let since = Instant::now();
        while self.differ().is_err() && since.elapsed() < GONE {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.differ()
    }

    fn differ(&self) -> Result<(), String> {
        for process in self.all() {
            is_ordinary(process)?;
            let cpus = affinity::get(Some(process)).map_err(|error| format!("process {process}: {error}"))?;
            if cpus != self.cpus {
                return Err(format!(
                    "process {process} may run on {cpus:?} after the run, and {:?} before",
                    self.cpus
                ));
            }
        }
        Ok(())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        let _gone_already = kill_process_group(Tid::from_child(&self.shell), Signal::KILL);
        let _waited_for = self.shell.wait();
    }
}

fn is_ordinary(process: Tid) -> Result<(), String> {
    match sched::get(Some(process)) {
        Ok(Policy::Other) => Ok(()),
        found => {
            Err(format!("process {process}, which nobody schedules any more, is not as it was: {found:?}"))
        }
    }
}

/// What the kernel accounts for a thread does not contradict what its edges are said to have received.
fn accounts_agree(result: &Path) -> Result<(), String> {
    /// Less is a matter of when which clock was read.
    const MUCH_NS: i64 = 60_000_000;
    let Ok(text) = fs::read(result) else { return Ok(()) };
    let result: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let list = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let reports = list(&result["report"]["hierarchies"]);
    for hierarchy in list(&result["run"]["hierarchies"]) {
        let report = reports.iter().find(|report| report["node"] == hierarchy["node"]);
        let edges = list(&report.map_or(Value::Null, |report| report["edges"].clone()));
        for member in list(&hierarchy["members"]) {
            let of = |edge: &&Value| edge["child"] == member["thread"];
            let sum = |field: &dyn Fn(&Value) -> Option<i64>| {
                edges.iter().filter(of).filter_map(field).sum::<i64>()
            };
            let withheld = sum(&|edge| edge["receipts"]["withheld_ns"].as_i64());
            let granted = member["granted_ns"].as_i64().unwrap_or(0);
            let by_kernel = member["received_ns"].as_i64().unwrap_or(0);
            if granted > MUCH_NS && withheld > granted / 2 && by_kernel > granted - granted / 10 {
                return Err(format!(
                    "{}: {withheld} of {granted} ns that were granted count as withheld, and the kernel accounts {by_kernel}",
                    member["thread"]
                ));
            }
        }
    }
    Ok(())
}

/// A change of the hierarchy of `node`, which may be refused.
fn change(
    system: &System,
    node: usize,
    (number, neighbours): (usize, &Neighbours),
    rng: &mut impl Rng,
) -> Vec<String> {
    let schedulers = system.schedulers.iter().filter(|scheduler| scheduler.node == node);
    let mut schedulers: Vec<String> = schedulers.map(|scheduler| scheduler.name.clone()).collect();
    let threads = system.threads.iter().filter(|thread| thread.node == node);
    let mut threads: Vec<String> = threads.map(|thread| thread.name.clone()).collect();
    // What may have been added before.
    schedulers.extend((0..number).map(|before| format!("s{before}")));
    threads.extend((0..number).map(|before| format!("x{before}")));
    let (scheduler, thread) = (any(rng, &schedulers), any(rng, &threads));
    let asks = asks(rng);
    let guarantee = || ["--guarantee".to_owned(), "RESBS 1ms 20ms".to_owned()].to_vec();
    let said = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let mut change = match rng.random_range(0..11) {
        0 => [said(&["remove", &thread])].concat(),
        1 => [said(&["move", &thread, "--under", &scheduler]), asks].concat(),
        2 => [said(&["reserve", &thread, "--under", &scheduler]), guarantee()].concat(),
        3 => said(&["release", &thread]),
        4 => [said(&["change", &thread]), asks].concat(),
        5 => said(&["replace", &scheduler, "--kind", one_of(rng, &KINDS), "--quantum", "2ms"]),
        6 => {
            let under =
                format!("{scheduler}{}", one_of(rng, &["", "=priority 1", "=share 2", "=RESBS 3ms 20ms"]));
            let name = format!("s{number}");
            said(&["add-scheduler", &name, "--kind", one_of(rng, &KINDS), "--under", &under])
        }
        7 => said(&["list"]),
        8 | 9 => {
            let process = one_of(rng, &neighbours.all()).to_string();
            let which: &[&str] =
                one_of(rng, &[&["--pid"] as &[&str], &["--children", "later", "--pid"], &["--tid"]]);
            let start = said(&["add-thread", &format!("x{number}"), "--under", &scheduler]);
            [start, asks, said(which), vec![process]].concat()
        }
        _ => {
            let name = format!("x{number}");
            let start = said(&["add-thread", &name, "--under", &scheduler]);
            [start, asks, said(&["--", "sh", "-c", one_of(rng, &PROGRAMS)])].concat()
        }
    };
    if rng.random_ratio(1, 3) && change[0] != "list" {
        change.insert(1, "--force".into());
    }
    change
}

/// What is asked of the scheduler above.
fn asks(rng: &mut impl Rng) -> Vec<String> {
    let asks: &[&str] = match rng.random_range(0..4) {
        0 => &["--share", "2"],
        1 => &["--priority", "1"],
        2 => &["--guarantee", "RESBS 1ms 20ms"],
        _ => &[],
    };
    asks.iter().map(ToString::to_string).collect()
}

fn any(rng: &mut impl Rng, names: &[String]) -> String {
    match names.len() {
        0 => "nobody".into(),
        count => names[rng.random_range(0..count)].clone(),
    }
}
