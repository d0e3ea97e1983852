//! What hierarchies of schedulers on real threads cost: context switches beside the kernel's own, and changes of what runs beside
//! requests that change nothing.
//!
//! `cargo bench -p talea-lab --bench hierarchies [-- --json] [--quick]`
//!
//! It is measured by what the experiment `s3` measures with; here are the tails, and the floors.

use std::process::ExitCode;
use talea_lab::compare::Observer;
use talea_lab::experiments::hierarchies::hand_over::{self, LEVELS};
use talea_lab::experiments::hierarchies::operations::{self, Measured, Operation, Way};
use talea_linux::affinity;
use talea_measure::{Effort, Report, Role, Samples};
use talea_runtime::StopHandle;
use talea_time::Duration;

/// Nobody watches.
struct Unobserved;

impl Observer for Unobserved {
    fn planned(&mut self, _: usize) {}

    fn starting(&mut self, _: &str, _: Option<StopHandle>) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// Turns in which everything alternates, hand-overs in each, and times that each operation is done.
fn amounts(effort: Effort) -> (usize, u32, usize) {
    match effort {
        Effort::Smoke => (1, 10, 1),
        Effort::Quick => (10, 200, 50),
        Effort::Full => (100, 200, 1_000),
    }
}

fn main() -> ExitCode {
    talea_measure::main(measured)
}

fn measured(effort: Effort) -> Report {
    let (turns, times, cycles) = amounts(effort);
    let mut report = Report::new(true);
    hand_overs(turns, times, &mut report);
    match operations::measure(cycles, &Unobserved) {
        Ok(all) => Way::ALL.into_iter().for_each(|way| changes(way, &all, &mut report)),
        Err(error) => eprintln!("not measuring operations: {error}"),
    }
    report
}

fn hand_overs(turns: usize, times: u32, report: &mut Report) {
    let cpu = affinity::allowed().expect("the CPUs of this process can be read").last().copied().unwrap_or(0);
    let ways: Vec<hand_over::Way> = hand_over::Way::all().collect();
    let mut all: Vec<Samples> = ways.iter().map(|_| Samples::new()).collect();
    let mut medians: Vec<Vec<Option<f64>>> = Vec::with_capacity(turns);
    for turn in 0..turns {
        let mut of_turn = vec![None; ways.len()];
        for step in 0..ways.len() {
            let place = (turn + step) % ways.len();
            let taken = match ways[place].measure(cpu, times) {
                Ok(taken) => taken.unwrap_or_default(),
                Err(error) => return eprintln!("not measuring hand-overs: {error}"),
            };
            of_turn[place] = median(taken.iter().map(|one| one.as_nanos() as f64).collect());
            taken.into_iter().for_each(|one| all[place].add(one));
        }
        medians.push(of_turn);
    }
    let floor = all[0].ns(0.5);
    let sentinel = ways.iter().position(|way| *way == hand_over::Way::Sentinel).expect("it is one of them");
    let over_sentinel = |place: usize| {
        median(medians.iter().filter_map(|of_turn| Some(of_turn[place]? / of_turn[sentinel]?)).collect())
    };
    for (place, (way, samples)) in ways.iter().zip(all).enumerate() {
        let more = samples.ns(0.5) - floor;
        let (role, note) = match way {
            hand_over::Way::Kernel => (Role::Floor, String::new()),
            hand_over::Way::Sentinel => (Role::Subject, format!("{more:+.0} ns")),
            // What disturbs for a while disturbs a turn of each, so turns are compared.
            hand_over::Way::Levels(_) => {
                let ratio = over_sentinel(place).map_or("-".into(), |ratio| format!("{ratio:.2}"));
                (Role::Subject, format!("{more:+.0} ns; {ratio} of the bare sentinel"))
            }
        };
        report.add_with_note(
            "block to the next thread's first instruction, same CPU",
            name(*way),
            role,
            samples,
            note,
        );
    }
}

fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

fn name(way: hand_over::Way) -> &'static str {
    const NAMES: [&str; LEVELS.len()] = ["one scheduler", "2 levels", "4 levels", "8 levels", "16 levels"];
    match way {
        hand_over::Way::Kernel => "kernel alone",
        hand_over::Way::Sentinel => "bare sentinel",
        hand_over::Way::Levels(levels) => {
            let place = LEVELS.iter().position(|of_list| *of_list == levels);
            NAMES[place.expect("all depths are listed")]
        }
    }
}

fn changes(way: Way, all: &[Measured], report: &mut Report) {
    let group = match way {
        Way::Library => "change of a running hierarchy, by the library",
        Way::Socket => "change of a running hierarchy, through the control socket",
    };
    for measured in all.iter().filter(|measured| measured.way == way) {
        let role = if measured.operation == Operation::Refuse { Role::Floor } else { Role::Subject };
        let mut samples = Samples::new();
        measured.ns.iter().for_each(|ns| samples.add(Duration::from_nanos(*ns as i64)));
        report.add(group, measured.operation.title(), role, samples);
    }
}
