//! No job of lanes in a hierarchy and no burst of a thread takes longer than its bound.
//!
//! Random hierarchies of all kinds, some of which do not compose, with threads that are always behind, never, or just so; with and without costs;
//! on one processor and on two, and with tasks that go to another node and come back. A failure names the seed, and `TALEA_SEED` repeats it alone. `TALEA_SYSTEMS` asks for more.

use crate::responses::Responses;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;
use std::path::Path;
use talea_analysis::Effort;
use talea_analysis::system::{self, Obstacle, SystemBounds};
use talea_model::System;
use talea_policy::strategy::plan_lanes_of;
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

/// Systems looked at in one run of the tests.
const SYSTEMS: u64 = 600;

/// How long each is simulated: a hundred periods or more.
const SIMULATED: Duration = Duration::from_millis(12);

/// Steps that suffice.
const ENOUGH: u64 = 4_000_000;

#[test]
fn no_simulated_response_in_a_hierarchy_exceeds_its_bound() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let only = number("TALEA_SEED");
    let systems = number("TALEA_SYSTEMS").unwrap_or(SYSTEMS);
    let seeds = only.map_or(0..systems, |seed| seed..seed + 1);
    let mut seen = Seen::default();
    for seed in seeds {
        let text = Draw::new(seed).system();
        let parsed = talea_model::parse("drawn", &text, Path::new("."));
        let system = parsed.unwrap_or_else(|problems| panic!("seed {seed}: {problems:?}\n{text}")).system;
        let plans = plan_lanes_of(&system).expect("operations have periods and execution times");
        let bounds = system::analyse(&system, &plans, &mut Effort::new(ENOUGH)).expect("small numbers");
        let Ok(mut simulation) = Simulation::new(&system) else {
            seen.refused += 1;
            continue;
        };
        let mut responses = Responses::of(&system.with_threads_as_tasks());
        simulation.advance(Instant::ZERO + SIMULATED, &mut responses);
        let late = responses.beyond(&bounds);
        assert!(late.is_empty(), "seed {seed}: {:?} of {}\n{text}", late.first(), late.len());
        let lost = responses.lost_although_held(&system, &bounds);
        assert!(lost.is_empty(), "seed {seed}: tasks {lost:?} lose instances\n{text}");
        parts_add_up(&bounds, seed);
        seen.count(&system, &bounds, &responses);
    }
    if only.is_none() && systems >= SYSTEMS {
        seen.suffices();
    }
}

fn parts_add_up(bounds: &SystemBounds, seed: u64) {
    for bound in &bounds.operations {
        if let Ok(response) = &bound.response {
            let parts: i64 = bounds.parts(bound.operation).iter().map(|part| part.time.as_nanos()).sum();
            assert_eq!(parts, response.window.as_nanos(), "seed {seed}: {bound:?}");
        }
    }
}

/// That the systems drawn say something.
#[derive(Default)]
struct Seen {
    refused: u64,
    /// By what they stand in: bounded operations, and those that came within a fifth of the bound.
    bounded: BTreeMap<String, (u64, u64)>,
    obstacles: BTreeMap<String, u64>,
    /// Bounded operations in one of several places for lanes.
    beside_others: u64,
}

impl Seen {
    fn count(&mut self, system: &System, bounds: &SystemBounds, responses: &Responses) {
        let threads = system.with_threads_as_tasks();
        let costs = if system.overhead.switch > talea_time::Work::ZERO { "with costs" } else { "free" };
        for (index, bound) in bounds.operations.iter().enumerate() {
            let what = match threads.thread_of_task(threads.operations()[index].task) {
                Some(_) => "thread",
                None => "task",
            };
            match &bound.response {
                Ok(response) => {
                    let processors = system.nodes[0].cpus.len();
                    if what == "task" && system.lanes_on(0).count() > 1 {
                        self.beside_others += 1;
                    }
                    let (all, near) =
                        self.bounded.entry(format!("{what} on {processors}, {costs}")).or_default();
                    *all += 1;
                    *near +=
                        u64::from(responses.worst[index].as_nanos() * 5 >= response.bound.as_nanos() * 4);
                }
                Err(obstacle) => {
                    let named = match obstacle {
                        Obstacle::Switches(_) => "switches".into(),
                        other => format!("{other:?}"),
                    };
                    *self.obstacles.entry(named).or_default() += 1;
                }
            }
        }
    }

    fn suffices(&self) {
        println!("{} refused; bounded: {:?}; not: {:?}", self.refused, self.bounded, self.obstacles);
        assert!(self.beside_others >= 60, "{} operations beside other lanes are bounded", self.beside_others);
        let wanted = [
            ("task on 1, free", 80),
            ("task on 1, with costs", 25),
            ("task on 2, with costs", 10),
            ("thread on 1, free", 30),
            ("thread on 1, with costs", 10),
        ];
        for (what, least) in wanted {
            let (all, near) = self.bounded.get(what).copied().unwrap_or_default();
            assert!(
                all >= least && near * 20 >= all,
                "{what}: {all} were bounded, and {near} came near that"
            );
        }
    }
}

/// A system file under way.
struct Draw {
    random: Pcg64Mcg,
    text: String,
    names: usize,
    /// The schedulers of kind `lanes`, of which each operation of the node names one.
    lanes: Vec<String>,
    processors: usize,
    /// Whether some tasks go to another node, of lanes alone, and come back.
    has_neighbour: bool,
}

/// What a scheduler asks of its children.
#[derive(Clone, Copy)]
enum Asked {
    Nothing,
    Priority,
    Share,
    Reservation(&'static str),
}

/// Kinds with what they ask; those that promise something come more than once.
const KINDS: [(&str, Asked); 22] = [
    ("fixed-priority", Asked::Priority),
    ("fixed-priority", Asked::Priority),
    ("reservation", Asked::Reservation("RESBH")),
    ("reservation", Asked::Reservation("RESBH")),
    ("reservation", Asked::Reservation("RESBH")),
    ("cbs", Asked::Reservation("RESBH")),
    ("soft-cbs", Asked::Reservation("RESBS")),
    ("tbs", Asked::Reservation("RESBS")),
    ("resource-kernel", Asked::Reservation("RESBH")),
    ("resource-kernel", Asked::Reservation("RESBS")),
    ("rialto", Asked::Reservation("RESCS")),
    ("proportional-share", Asked::Share),
    ("proportional-share", Asked::Share),
    ("sfq", Asked::Share),
    ("sfq", Asked::Share),
    ("eevdf", Asked::Share),
    ("eevdf", Asked::Share),
    ("stride", Asked::Share),
    ("lottery", Asked::Share),
    ("time-sharing", Asked::Nothing),
    ("round-robin", Asked::Nothing),
    ("limit", Asked::Reservation("RESBH")),
];

impl Draw {
    fn new(seed: u64) -> Self {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let processors = if random.random_range(0..6) == 0 { 2 } else { 1 };
        let has_neighbour = random.random_range(0..4) == 0;
        Draw { random, text: String::new(), names: 0, lanes: Vec::new(), processors, has_neighbour }
    }

    fn system(mut self) -> String {
        let strategy = ["rms", "edf", "mlf", "muf", "rms+mlf"][self.random.random_range(0..5)];
        let cpus = if self.processors == 2 { "[0, 1]" } else { "[0]" };
        let seed = self.random.random_range(0..1000);
        if self.random.random_range(0..3) > 0 {
            self.text += "[overhead]\n";
            for (name, most) in [("switch", 4), ("queue", 3), ("timer", 8)] {
                self.text += &format!("{name} = \"{}us\"\n", self.random.random_range(0..=most));
            }
        }
        self.text += &format!("[[node]]\nname = \"n\"\ncpus = {cpus}\n");
        if self.has_neighbour {
            self.text += "[[node]]\nname = \"m\"\ncpus = [7]\n";
        }
        // Schedulers of one processor cannot be the root of two.
        let root = if self.processors == 2 { 0 } else { self.random.random_range(0..21) };
        self.scheduler(KINDS[root], "", 0);
        if self.has_neighbour {
            let node = "\n[[scheduler]]\nnode = \"n\"\n";
            self.text = self.text.replace("\n[[scheduler]]\n", node);
            self.text += "[[task]]\nname = \"there\"\nperiod = \"400us\"\n[[task.subtask]]\nname = \"x\"\nnode = \"m\"\nwcet = \"90us\"\n";
        }
        if !self.lanes.is_empty() {
            (0..self.random.random_range(1..4 + self.lanes.len())).for_each(|index| self.task(index));
        }
        let lanes = match !self.lanes.is_empty() || self.has_neighbour {
            true => format!("strategy = \"{strategy}\"\nlane_dispatch = \"nonpreemptive\"\n"),
            false => String::new(),
        };
        format!("[system]\nname = \"drawn\"\nseed = {seed}\n{lanes}{}", self.text)
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("x{}", self.names)
    }

    fn scheduler(&mut self, (kind, asked): (&str, Asked), under: &str, depth: usize) {
        let name = self.name();
        self.text += &format!("[[scheduler]]\nname = \"{name}\"\nkind = \"{kind}\"\n{under}");
        let quantum = self.random.random_range(5..60);
        if matches!(asked, Asked::Share) || matches!(kind, "time-sharing" | "round-robin") {
            self.text += &format!("quantum = \"{quantum}us\"\n");
        }
        let children = match kind {
            "limit" => 1,
            _ => self.random.random_range(2..=4),
        };
        let mut left = 100;
        for child in 0..children {
            let request = match asked {
                Asked::Nothing => String::new(),
                Asked::Priority => format!(", priority = {}", children - child),
                Asked::Share => format!(", share = {}", self.random.random_range(1..5)),
                Asked::Reservation(word) => {
                    let period = self.random.random_range(20..200);
                    let percent = self.random.random_range(5..=left.clamp(6, 60));
                    let amount = (period * percent / 100).max(1);
                    left -= amount * 100 / period + 1;
                    if left < 0 {
                        break;
                    }
                    format!(", guarantee = \"{word} {amount}us {period}us\"")
                }
            };
            let under = format!("under = [{{ scheduler = \"{name}\"{request} }}]\n");
            self.child(&under, depth);
        }
    }

    fn child(&mut self, under: &str, depth: usize) {
        match self.random.random_range(0..10) {
            0..=2 if self.lanes.len() < 3 => {
                let name = self.name();
                self.lanes.push(name.clone());
                self.text += &format!("[[scheduler]]\nname = \"{name}\"\nkind = \"lanes\"\n{under}");
            }
            3 | 4 if depth < 3 => {
                let kind = KINDS[self.random.random_range(0..KINDS.len())];
                self.scheduler(kind, under, depth + 1);
            }
            5 | 6 => {
                let name = self.name();
                self.text += &format!("[[thread]]\nname = \"{name}\"\nwork = \"cpu-bound\"\n{under}");
            }
            _ => {
                let name = self.name();
                let period = self.random.random_range(30..300);
                let burst = match self.random.random_range(0..4) {
                    // Always behind.
                    0 => period,
                    _ => (period * self.random.random_range(1..40) / 100).max(1),
                };
                let least = self.random.random_range(1..=burst);
                let burst = match self.random.random_range(0..3) {
                    0 => format!("{{ uniform = [\"{least}us\", \"{burst}us\"] }}"),
                    _ => format!("\"{burst}us\""),
                };
                self.text += &format!(
                    "[[thread]]\nname = \"{name}\"\nwork = {{ burst = {burst}, period = \"{period}us\" }}\n{under}"
                );
            }
        }
    }

    fn task(&mut self, index: usize) {
        let period = self.random.random_range(100..1_500);
        let wcet = (period * self.random.random_range(1..15) / 100).max(1);
        let phase = self.random.random_range(0..period);
        let criticality = ["low", "high"][self.random.random_range(0..2)];
        let overrun = ["queue", "queue", "skip-next", "abort"][self.random.random_range(0..4)];
        self.text += &format!(
            "[[task]]\nname = \"t{index}\"\nperiod = \"{period}us\"\nphase = \"{phase}us\"\ncriticality = \"{criticality}\"\n\
             overrun = \"{overrun}\"\n"
        );
        if self.has_neighbour {
            for (name, node, part) in [("a", "n", 4), ("b", "m", 3), ("c", "n", 4)] {
                let wcet = (wcet / part).max(1);
                let lanes = if node == "n" { self.in_lanes() } else { String::new() };
                self.text += &format!(
                    "[[task.subtask]]\nname = \"{name}\"\nnode = \"{node}\"\n{lanes}wcet = \"{wcet}us\"\n"
                );
            }
        } else if self.random.random_range(0..3) == 0 {
            let half = (wcet / 2).max(1);
            let (a, b) = (self.in_lanes(), self.in_lanes());
            self.text += &format!(
                "[[task.subtask]]\nname = \"a\"\n{a}wcet = \"{half}us\"\n[[task.subtask]]\nname = \"b\"\n{b}wcet = \"{half}us\"\n"
            );
        } else {
            let lanes = self.in_lanes();
            self.text += &format!("{lanes}wcet = \"{wcet}us\"\n");
        }
    }

    /// The key that says in which lanes an operation is.
    fn in_lanes(&mut self) -> String {
        let lanes = &self.lanes[self.random.random_range(0..self.lanes.len())];
        format!("lanes = \"{lanes}\"\n")
    }
}
