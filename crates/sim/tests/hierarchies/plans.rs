//! Explicit plans of system files: who runs when is what the plan says.

use crate::replay::Everything;
use std::path::Path;
use talea_model::{System, parse};
use talea_record::{Event, JobId};
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

const END: Instant = Instant::from_nanos(200_000_000);

pub(super) fn system(schedulers: &str, threads: &[(&str, &str, &str)]) -> System {
    let mut text = format!("[system]\nname = \"planned\"\n{schedulers}\n");
    for (name, work, under) in threads {
        text += &format!("[[thread]]\nname = \"{name}\"\nwork = {work}\nunder = [{under}]\n");
    }
    parse("planned.toml", &text, Path::new("")).unwrap_or_else(|problems| panic!("{problems}")).system
}

/// When `thread` runs, in milliseconds: from, to.
pub(super) fn stretches(system: &System, thread: usize) -> Vec<(i64, i64)> {
    let mut records = Everything::default();
    let mut simulation = Simulation::new(system).expect("the hierarchy can be arranged");
    simulation.advance(END, &mut records);
    simulation.check_invariants();
    let ms = |time: Instant| (time - Instant::ZERO).as_nanos() / 1_000_000;
    let mut since = None;
    let mut stretches = Vec::new();
    for record in records.0 {
        if !record.event.is_about_job() || JobId::unpack(record.causal).operation.index() != thread {
            continue;
        }
        match record.event {
            Event::START | Event::RESUME => since = Some(ms(record.time)),
            Event::PREEMPT | Event::COMPLETE => {
                stretches.extend(since.take().map(|from| (from, ms(record.time))));
            }
            _ => {}
        }
    }
    stretches
}

const PLAN: &str = "[[scheduler]]\nname = \"plan\"\nkind = \"explicit-plan\"\nplan = [\n\
    { start = \"0ms\", duration = \"5ms\", child = \"video\" },\n\
    { start = \"8ms\", duration = \"2ms\", child = \"audio\" },\n\
    { start = \"10ms\", duration = \"5ms\", child = \"video\" },\n]\n";

const BOTH: [(&str, &str, &str); 2] = [
    ("video", "\"cpu-bound\"", "{ scheduler = \"plan\" }"),
    ("audio", "\"cpu-bound\"", "{ scheduler = \"plan\" }"),
];

#[test]
fn a_plan_is_followed_once_or_every_cycle() {
    let once = system(PLAN, &BOTH);
    assert_eq!(stretches(&once, 0), [(0, 5), (10, 15)]);
    assert_eq!(stretches(&once, 1), [(8, 10)]);
    let again = system(&format!("{PLAN}cycle = \"50ms\""), &BOTH);
    let every = |parts: &[(i64, i64)]| -> Vec<(i64, i64)> {
        (0..4)
            .flat_map(|pass| parts.iter().map(move |(from, to)| (50 * pass + from, 50 * pass + to)))
            .collect()
    };
    assert_eq!(stretches(&again, 0), every(&[(0, 5), (10, 15)]));
    assert_eq!(stretches(&again, 1), every(&[(8, 10)]));
}

/// KURT's mixed mode: others run in the gaps by another scheduler below a fixed priority; in the event-driven one by the plan's own.
#[test]
fn gaps_are_left_to_others_or_to_its_own() {
    let root = "[[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n[[scheduler]]\nname = \"TS\"\nkind = \"time-sharing\"\n\
        under = [{ scheduler = \"FP\", priority = 1 }]\n";
    let below = format!("{root}{PLAN}cycle = \"20ms\"\nunder = [{{ scheduler = \"FP\", priority = 2 }}]");
    let other = ("other", "\"cpu-bound\"", "{ scheduler = \"TS\" }");
    let mixed = system(&below, &[BOTH[0], BOTH[1], other]);
    let within: Vec<_> = stretches(&mixed, 2).into_iter().filter(|(_, to)| *to <= 40).collect();
    assert_eq!(within, [(5, 8), (15, 20), (25, 28), (35, 40)]);

    let eager = ("eager", "{ burst = \"4ms\", period = \"25ms\" }", "{ scheduler = \"plan\" }");
    let driven = format!("{PLAN}cycle = \"25ms\"\ngaps = \"event-driven\"");
    let greedy = system(&driven, &[BOTH[0], BOTH[1], eager]);
    assert_eq!(stretches(&greedy, 1)[0], (8, 10), "an entry never yields to the gaps");
    assert_eq!(stretches(&greedy, 2), [], "who has wanted to run for longest is first in all gaps");
    let video = ("video", "{ burst = \"5ms\", period = \"25ms\" }", "{ scheduler = \"plan\" }");
    let audio = ("audio", "{ burst = \"1ms\", period = \"25ms\" }", "{ scheduler = \"plan\" }");
    let modest = system(&driven, &[video, audio, eager]);
    assert_eq!(stretches(&modest, 1)[..2], [(5, 6), (30, 31)], "it need not wait for its entry");
    assert_eq!(stretches(&modest, 2)[..2], [(6, 10), (31, 35)]);
}

/// Who comes late has its entry as long as nobody else would have waited for it in vain; then it is forfeited.
#[test]
fn an_entry_is_for_who_comes_in_time() {
    let plan = "[[scheduler]]\nname = \"plan\"\nkind = \"explicit-plan\"\ncycle = \"40ms\"\nplan = [\n\
        { start = \"0ms\", duration = \"5ms\", child = \"frames\" },\n\
        { start = \"20ms\", duration = \"5ms\", child = \"frames\" },\n]\n";
    let frames = ("frames", "{ burst = \"5ms\", period = \"40ms\" }", "{ scheduler = \"plan\" }");
    let seen = stretches(&system(plan, &[frames]), 0);
    assert_eq!(
        seen,
        [(0, 5), (40, 45), (80, 85), (120, 125), (160, 165)],
        "nobody comes for the second entry"
    );
    let long = ("frames", "{ burst = \"8ms\", period = \"40ms\" }", "{ scheduler = \"plan\" }");
    assert_eq!(stretches(&system(plan, &[long]), 0)[..3], [(0, 5), (20, 23), (40, 45)]);
}

/// Below a reservation the plan has the processor when the reservation gives it; what is late is made up, nothing is promised.
#[test]
fn a_plan_below_a_reservation_is_late_and_complete() {
    let schedulers = format!(
        "[[scheduler]]\nname = \"RES\"\nkind = \"reservation\"\n{PLAN}cycle = \"50ms\"\n\
         under = [{{ scheduler = \"RES\", guarantee = \"RESBH 10ms 25ms\" }}]"
    );
    let system = system(&schedulers, &BOTH);
    let total = |thread| stretches(&system, thread).iter().map(|(from, to)| to - from).sum::<i64>();
    assert_eq!((total(0), total(1)), (40, 8));
    let derived =
        talea_guarantee::derivation::derive(&system.hierarchy(0).expect("one")).expect("nothing is required");
    assert_eq!(derived.between("plan", "video").expect("an edge").label.to_string(), "NULL");
    let mut simulation = Simulation::new(&system).expect("sound");
    simulation.advance(END + Duration::from_millis(1), &mut super::Nowhere);
    assert!(simulation.kept(0).expect("a hierarchy").iter().all(|edge| edge.violations == 0));
}
