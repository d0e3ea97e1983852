//! Whatever a file says that the model accepts, the check answers and does not panic.
//!
//! The examples with random words and numbers in the places of their own. A failure names the seed, and `TALEA_SEED` repeats it alone;
//! `TALEA_SYSTEMS` asks for more.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use talea_check::machine::check_on;
use talea_check::{CheckError, check};
use talea_model::Machine;
use talea_policy::strategy::plan_lanes_of;

/// Systems looked at in one run of the tests.
const SYSTEMS: u64 = 80;

const EXAMPLES: [&str; 9] = [
    include_str!("../../../../examples/mixed.toml"),
    include_str!("../../../../examples/figure-1.toml"),
    include_str!("../../../../examples/ofp.toml"),
    include_str!("../../../../examples/partitions.toml"),
    include_str!("../../../../examples/resource-kernel.toml"),
    include_str!("../../../../examples/release-guards.toml"),
    include_str!("../../../../examples/service-classes.toml"),
    include_str!("../../../../examples/shares.toml"),
    include_str!("../../../../examples/two-nodes.toml"),
];

const MACHINE: &str = "[machine]\nkernel = \"x\"\nreal_time = true\nlongest_stall = \"1ms\"\n[[costs]]\nload = \"idle\"\nswitch = \"2us\"\n\
                       queue = \"1us\"\ntimer = \"9us\"\nmessage = \"1us\"\n\
                       push = \"1us\"\nfilter = \"1us\"\ndelivery = \"1us\"\n[[withheld]]\nby = \"fair-server\"\namount = \"50ms\"\nperiod = \"1s\"\n";

#[test]
fn no_file_makes_the_check_panic() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let only = number("TALEA_SEED");
    let systems = number("TALEA_SYSTEMS").unwrap_or(SYSTEMS);
    let machine = Machine::parse(MACHINE).expect("a profile");
    let mut checked = 0;
    for seed in only.map_or(0..systems, |seed| seed..seed + 1) {
        let text = mutated(seed);
        let Ok(parsed) = talea_model::parse("mutated", &text, Path::new(".")) else { continue };
        let system = parsed.system;
        let answer = catch_unwind(AssertUnwindSafe(|| {
            let ideal = check(&system);
            if !matches!(ideal, Err(CheckError::Lanes(_))) {
                let plans = plan_lanes_of(&system).expect("the check has lanes, too");
                let _ = check_on(&system, &plans, &machine);
            }
        }));
        assert!(answer.is_ok(), "seed {seed}\n{text}");
        checked += 1;
    }
    assert!(only.is_some() || checked * 10 >= systems, "only {checked} of {systems} are systems");
}

/// An example with some numbers and words changed.
fn mutated(seed: u64) -> String {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let mut text = EXAMPLES[random.random_range(0..EXAMPLES.len())].to_string();
    let kinds = [
        "fixed-priority",
        "reservation",
        "cbs",
        "soft-cbs",
        "tbs",
        "resource-kernel",
        "rialto",
        "spring",
        "bss-i",
        "pshed",
        "proportional-share",
        "sfq",
        "eevdf",
        "stride",
        "lottery",
        "time-sharing",
        "round-robin",
        "limit",
        "join",
        "lanes",
        "sfs",
    ];
    for _ in 0..random.random_range(1..6) {
        match random.random_range(0..10) {
            0..=5 => replace_number(&mut text, &mut random),
            6 => {
                let (from, to) = (random.random_range(0..kinds.len()), random.random_range(0..kinds.len()));
                text = text.replacen(
                    &format!("kind = \"{}\"", kinds[from]),
                    &format!("kind = \"{}\"", kinds[to]),
                    1,
                );
            }
            7 => {
                let costs = ["1ns", "3us", "2ms", "200d"][random.random_range(0..4)];
                if !text.contains("[overhead]") {
                    text += &format!(
                        "\n[overhead]\nswitch = \"{costs}\"\ntimer = \"{costs}\"\nqueue = \"1us\"\n"
                    );
                }
            }
            8 => {
                let strategies = ["rms", "edf", "mlf", "muf", "rms+mlf", "criticality"];
                let (from, to) = (random.random_range(0..6), random.random_range(0..6));
                text = text.replace(&format!("\"{}\"", strategies[from]), &format!("\"{}\"", strategies[to]));
            }
            _ => text = text.replacen("cpus = [0]", "cpus = [0, 1]", 1),
        }
    }
    text
}

/// Another number in the place of one that stands before a unit of time or behind a sign of equality.
fn replace_number(text: &mut String, random: &mut Pcg64Mcg) {
    let starts: Vec<usize> = text
        .char_indices()
        .filter(|(at, c)| {
            c.is_ascii_digit()
                && !text[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-')
        })
        .map(|(at, _)| at)
        .collect();
    if starts.is_empty() {
        return;
    }
    let start = starts[random.random_range(0..starts.len())];
    let end = text[start..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| start + length);
    let number: u64 = match random.random_range(0..5) {
        0 => random.random_range(0..3),
        1 => random.random_range(0..100),
        2 => random.random_range(0..100_000),
        3 => 999_999_937,
        _ => random.random_range(1..20),
    };
    text.replace_range(start..end, &number.to_string());
}
