//! How much memory runs and simulations of small and large systems take, seen from outside.
//!
//! The limits are those of an optimised build: 64 MiB for a thousand tasks and 24 MiB for ten, of all processes together.
//! Its code and the libraries, which all processes share, are up to 18 MiB of that. Those of a build for tests are several
//! times as large, so what is held here is everything else: the highest resident memory less what is mapped from programs.

use crate::support::{Running, folder, write};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::read_to_string;

/// Of all processes, in KiB.
const CODE: u64 = 18 << 10;
const LIMIT_OF_THOUSAND: u64 = (64 << 10) - CODE;
const LIMIT_OF_TEN: u64 = (24 << 10) - CODE;

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

/// The highest resident memory without mapped programs, in KiB, of all processes of a command together.
fn highest(arguments: &[&str]) -> u64 {
    let mut running = Running::start(arguments);
    let mut of_processes = BTreeMap::new();
    while !running.is_over() {
        for process in processes_of(running.id()) {
            if let Some(resident) = resident(process) {
                of_processes.insert(process, resident);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    running.finish().exits(0);
    of_processes.into_values().sum()
}

/// A process and those that it has started.
fn processes_of(process: u32) -> Vec<u32> {
    let path = format!("/proc/{process}/task/{process}/children");
    let children = read_to_string(path).unwrap_or_default();
    let children = children.split_whitespace().map(|child| child.parse().expect("a process"));
    std::iter::once(process).chain(children.flat_map(processes_of)).collect()
}

/// What a process has had at most, less what is mapped from programs; `None` if it has ended.
fn resident(process: u32) -> Option<u64> {
    let status = read_to_string(format!("/proc/{process}/status")).ok()?;
    let kib = |key: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().trim_end_matches("kB").trim().parse().ok()
    };
    Some(kib("VmHWM:")?.saturating_sub(kib("RssFile:")?))
}

fn takes_less(command: &str, system: &str, limit: u64) {
    let place = folder();
    let file = write(&place, "system.toml", system);
    let taken = highest(&[command, &file, "--for", "2s", "--fail-on", "never"]);
    assert!(taken > 0 && taken < limit, "{command} took {taken} KiB beside programs, of {limit}");
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

#[test]
fn a_run_of_a_thousand_tasks_on_four_nodes_takes_little_in_all_processes() {
    takes_less("run", &system(1000, 4, ""), LIMIT_OF_THOUSAND);
}

#[test]
fn a_simulation_takes_little() {
    takes_less("sim", &system(10, 1, ""), LIMIT_OF_TEN);
    takes_less("sim", &system(1000, 4, ""), LIMIT_OF_THOUSAND);
    // Of so many operations percentiles are finest.
    takes_less("sim", &system(512, 1, ""), LIMIT_OF_THOUSAND);
}
