//! How much memory runs and simulations of small and large systems take, seen from outside.
//!
//! The limits are those of an optimised build: 64 MiB for a thousand tasks and 24 MiB for ten. Its code and the libraries
//! are 17 MiB of that. Those of a build for tests are several times as large, so what is held here is everything else: the
//! most that is resident at a time less what is mapped from programs.

use crate::support::{folder, talea, write};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::read_to_string;
use std::process::Stdio;

/// Beside code and libraries, in KiB.
const LIMIT_OF_THOUSAND: u64 = 46 << 10;
const LIMIT_OF_TEN: u64 = 7 << 10;

/// A system of so many tasks at seven rates from 100 Hz to 1 Hz on so many nodes, which together need a third of a
/// processor.
fn system(tasks: usize, nodes: usize, lines: &str) -> String {
    let mut text = format!("[system]\nname = \"memory-{tasks}-{nodes}\"\n{lines}\n");
    let mut line = |content: String| writeln!(text, "{content}").expect("text grows");
    (0..nodes).for_each(|node| line(format!("[[node]]\nname = \"n{node}\"\ncpus = [0]")));
    for (task, period_ms) in (0..tasks).zip([10, 20, 50, 100, 200, 500, 1000].into_iter().cycle()) {
        let wcet_us = (period_ms * 300 / tasks).max(1);
        line(format!("[[task]]\nname = \"t{task}\"\nnode = \"n{}\"", task % nodes));
        line(format!("period = \"{period_ms}ms\"\nwcet = \"{wcet_us}us\""));
    }
    text
}

/// What a command's processes have had at most, added up, in KiB.
#[derive(Debug)]
struct Taken {
    /// Resident, less what is mapped from programs.
    resident: u64,
    /// The same without what processes share.
    own: u64,
}

/// What a command has taken when it has ended.
fn taken(arguments: &[&str]) -> Taken {
    let mut command = talea(arguments);
    // Nobody reads before the end what would fill a pipe.
    let mut running =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the command starts");
    let mut of_processes = BTreeMap::new();
    let status = loop {
        let processes = processes_of(running.id());
        for &process in &processes {
            let Some(now) = resident(process, &processes) else { continue };
            let most = of_processes.entry(process).or_insert(Taken { resident: 0, own: 0 });
            *most = Taken { resident: most.resident.max(now.resident), own: most.own.max(now.own) };
        }
        if let Some(status) = running.try_wait().expect("it is ours") {
            break status;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    };
    assert!(status.success(), "{status}");
    let sum = |of: fn(&Taken) -> u64| of_processes.values().map(of).sum();
    Taken { resident: sum(|taken| taken.resident), own: sum(|taken| taken.own) }
}

/// A process and those that it has started.
fn processes_of(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = read_to_string(path).unwrap_or_default();
    let children = children.split_whitespace().map(|child| child.parse().expect("a process"));
    std::iter::once(process).chain(children.flat_map(processes_of)).collect()
}

/// What a process has now, both figures from one look; `None` if it has ended. The high-water mark counts pages of programs, too,
/// and those mapped at another instant cannot be taken off it. A peak between two looks is not seen. Streams of other processes than
/// `ours` do not count: who begins looks at those that were left behind, of which there are many beside other tests.
fn resident(process: u32, ours: &[u32]) -> Option<Taken> {
    let mappings = read_to_string(format!("/proc/{process}/smaps")).ok()?;
    let (mut own, mut shared, mut is_counted) = (0, 0, false);
    for line in mappings.lines() {
        let mut words = line.split_whitespace();
        let (first, second) = (words.next()?, words.next()?);
        let kib = || second.parse::<u64>().expect("an amount in KiB");
        match first {
            "Anonymous:" => own += kib(),
            "Rss:" if is_counted => shared += kib(),
            _ if first.ends_with(':') => {}
            // Addresses, access, offset, device, inode and path.
            _ => is_counted = words.nth(3).is_some_and(|path| is_shared_memory(path, ours)),
        }
    }
    Some(Taken { resident: own + shared, own })
}

/// Whether this is a file in memory, and no stream of a process that is not among `ours`. A stream is named by its process.
fn is_shared_memory(path: &str, ours: &[u32]) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let process = name.split('.').next().and_then(|number| number.parse().ok());
    let is_in_memory = path.starts_with("/dev/shm/") || path.starts_with("/memfd:");
    is_in_memory && process.is_none_or(|process| ours.contains(&process))
}

fn takes(command: &str, system: &str) -> Taken {
    let place = folder();
    let file = write(&place, "system.toml", system);
    taken(&[command, &file, "--for", "2s", "--fail-on", "never"])
}

fn takes_less(command: &str, system: &str, limit: u64) {
    let taken = takes(command, system);
    assert!(
        taken.own > 0 && taken.resident < limit,
        "{command} took {taken:?} KiB beside programs, of {limit}"
    );
}

#[test]
fn a_run_of_ten_tasks_takes_little() {
    takes_less("run", &system(10, 1, ""), LIMIT_OF_TEN);
}

#[test]
fn a_run_of_a_thousand_tasks_takes_little_by_rate_and_by_deadline() {
    for strategy in ["rms", "edf"] {
        takes_less("run", &system(1000, 1, &format!("strategy = \"{strategy}\"")), LIMIT_OF_THOUSAND);
    }
}

/// Five processes, each of which has the description of the whole system and a stack for each thread.
#[test]
fn a_run_of_a_thousand_tasks_on_four_nodes_takes_little_beside_rings() {
    const LIMIT: u64 = 96 << 10;
    let taken = takes("run", &system(1000, 4, ""));
    assert!(taken.own > 0 && taken.own < LIMIT, "it took {taken:?} KiB of its own, of {LIMIT}");
}

#[test]
fn a_simulation_takes_little() {
    takes_less("sim", &system(10, 1, ""), LIMIT_OF_TEN);
    takes_less("sim", &system(1000, 4, ""), LIMIT_OF_THOUSAND);
    // Of so many operations percentiles are finest.
    takes_less("sim", &system(512, 1, ""), LIMIT_OF_THOUSAND);
}
