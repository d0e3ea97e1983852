//! What it costs to ask whether an event matches: three comparisons on the header and the data, as people write them.
//!
//! The floor is the same condition in Rust on a struct. Others are given the expression parsed and the event's values in their own
//! variables beforehand; what it takes them to have an event in these is a row of its own, for a channel would have to do it for each event.

#![forbid(unsafe_code)]

use cel_interpreter::{Context, Program as Cel};
use evalexpr::{ContextWithMutableVariables, HashMapContext, build_operator_tree};
use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant as WallClock;
use talea_etcl::{Constraint, Event, Filterable, Program, Properties};
use talea_measure::{Effort, Report, Role, Samples};
use talea_time::{Duration, Instant};

/// Evaluations per reading of the clock.
const BATCH: u32 = 64;

/// The event as a type of one's own.
#[derive(Filterable)]
struct Reading {
    domain_name: String,
    priority: i32,
    threshold: i64,
    price: f64,
}

const ETCL: &str = "$domain_name == 'Plant' and $priority >= 5 and $threshold < 20";
const SPELLED_OUT: &str = "$domain_name == 'Plant' and $.header.variable_header(priority) >= 5 \
                           and $.filterable_data(threshold) < 20";
const CALCULATED: &str = "($threshold + 5) * 2 < $price * 100 and 'an' ~ $domain_name";
const OTHERS: &str = "domain_name == \"Plant\" && priority >= 5 && threshold < 20";

fn reading() -> Reading {
    Reading { domain_name: "Plant".into(), priority: 7, threshold: 15, price: 2.5 }
}

fn event(reading: &Reading) -> Event {
    let mut header = Properties::default();
    header.insert("timeout", 100);
    header.insert("priority", reading.priority);
    let mut data = Properties::default();
    data.insert("price", reading.price);
    data.insert("unit", "bar");
    data.insert("threshold", reading.threshold);
    Event::new(&*reading.domain_name, "Pump", "overload")
        .with_variable_header(header)
        .with_filterable_data(data)
}

fn compiled<T: Filterable>(text: &str) -> Program<T> {
    Constraint::parse(text).and_then(|constraint| constraint.compile()).expect("it compiles")
}

fn cel_context(reading: &Reading) -> Context<'static> {
    let mut context = Context::default();
    context.add_variable_from_value("domain_name", reading.domain_name.clone());
    context.add_variable_from_value("priority", i64::from(reading.priority));
    context.add_variable_from_value("threshold", reading.threshold);
    context
}

fn evalexpr_context(reading: &Reading) -> HashMapContext {
    let mut context = HashMapContext::new();
    let mut set = |name: &str, value| context.set_value(name.into(), value).expect("a name");
    set("domain_name", evalexpr::Value::from(reading.domain_name.as_str()));
    set("priority", evalexpr::Value::Int(reading.priority.into()));
    set("threshold", evalexpr::Value::Int(reading.threshold));
    context
}

/// Subjects are measured in turns, so that what disturbs the machine disturbs all.
fn measure(effort: Effort, subjects: &mut [&mut dyn FnMut() -> bool]) -> Vec<Samples> {
    let rounds = match effort {
        Effort::Smoke => 5,
        Effort::Quick => 2_000,
        Effort::Full => 20_000,
    };
    let mut samples: Vec<Samples> = subjects.iter().map(|_| Samples::new()).collect();
    for _ in 0..rounds {
        for (subject, samples) in subjects.iter_mut().zip(&mut samples) {
            let start = WallClock::now();
            let matches = (0..BATCH).filter(|_| black_box(subject())).count();
            let taken = Duration::from_nanos(start.elapsed().as_nanos() as i64);
            assert_eq!(matches, BATCH as usize, "the event matches");
            samples.add_batch(taken, BATCH);
        }
    }
    samples
}

fn main() -> ExitCode {
    talea_measure::main(measured)
}

fn measured(effort: Effort) -> Report {
    let mut report = Report::new(false);
    let reading = reading();
    let event = event(&reading);
    let now = Instant::ZERO;
    let typed: Program<Reading> = compiled(ETCL);
    let short: Program<Event> = compiled(ETCL);
    let spelled_out: Program<Event> = compiled(SPELLED_OUT);
    let cel = Cel::compile(OTHERS).expect("it compiles");
    let context = cel_context(&reading);
    let tree = build_operator_tree(OTHERS).expect("it compiles");
    let variables = evalexpr_context(&reading);
    let is_true = |value| value == cel_interpreter::Value::Bool(true);
    let samples = measure(
        effort,
        &mut [
            &mut || {
                let reading = black_box(&reading);
                reading.domain_name == "Plant" && reading.priority >= 5 && reading.threshold < 20
            },
            &mut || typed.evaluate(black_box(&reading), now) == Ok(true),
            &mut || short.evaluate(black_box(&event), now) == Ok(true),
            &mut || spelled_out.evaluate(black_box(&event), now) == Ok(true),
            &mut || cel.execute(black_box(&context)).is_ok_and(is_true),
            &mut || tree.eval_boolean_with_context(black_box(&variables)) == Ok(true),
            &mut || cel.execute(&cel_context(black_box(&reading))).is_ok_and(is_true),
            &mut || tree.eval_boolean_with_context(&evalexpr_context(black_box(&reading))) == Ok(true),
        ],
    );
    let rows = [
        ("compiled Rust, a struct", Role::Floor),
        ("ETCL, a struct", Role::Subject),
        ("ETCL, a structured event", Role::Subject),
        ("ETCL, the same spelled out", Role::Subject),
        ("cel-interpreter", Role::Peer),
        ("evalexpr", Role::Peer),
        ("cel-interpreter, from a struct", Role::Peer),
        ("evalexpr, from a struct", Role::Peer),
    ];
    let medians: Vec<f64> = samples.iter().map(|samples| samples.ns(0.5)).collect();
    for ((name, role), samples) in rows.into_iter().zip(samples) {
        let note = match role {
            Role::Peer => {
                let times = |index: usize| samples.ns(0.5) / medians[index];
                format!("{:.1} times ETCL on a struct, {:.1} on an event", times(1), times(2))
            }
            _ => String::new(),
        };
        report.add_with_note("three comparisons", name, role, samples, note);
    }
    let typed: Program<Reading> = compiled(CALCULATED);
    let calculated: Program<Event> = compiled(CALCULATED);
    let samples = measure(
        effort,
        &mut [
            &mut || {
                let reading = black_box(&reading);
                reading.price * 100.0 > ((reading.threshold + 5) * 2) as f64
                    && reading.domain_name.contains(black_box("an"))
            },
            &mut || typed.evaluate(black_box(&reading), now) == Ok(true),
            &mut || calculated.evaluate(black_box(&event), now) == Ok(true),
        ],
    );
    let rows = [("compiled Rust, a struct", Role::Floor), ("ETCL, a struct", Role::Subject)];
    let rows = rows.into_iter().chain([("ETCL, a structured event", Role::Subject)]);
    for ((name, role), samples) in rows.zip(samples) {
        report.add("a calculation and a substring", name, role, samples);
    }
    report
}
