//! What strangers hand in: files with mistakes and traces with altered bytes.

use super::Fault;
use crate::Counts;
use crate::draw::{self, Size, one_of};
use rand::{Rng, RngExt};
use std::path::Path;
use talea_check::Check;
use talea_insight::accounting::Accounting;
use talea_insight::explain::{Question, Which, explain};
use talea_interchange::{Format, export, import};
use talea_model::{System, parse};
use talea_policy::strategy::plan_lanes_of;
use talea_record::log::LogWriter;
use talea_record::read::TraceFile;
use talea_record::{Record, Sink};
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

/// Mistakes in one file.
const MISTAKES: usize = 3;
const SIMULATED: Duration = Duration::from_millis(60);

/// A system file with mistakes is refused with problems, or is a system that can be checked and simulated.
pub fn files(seed: u64, counts: &mut Counts) -> Result<(), Fault> {
    let Some(system) = draw::system(seed, Size::Large) else {
        counts.refused += 1;
        return Ok(());
    };
    let rng = &mut draw::numbers(!seed);
    let mut text = system.to_toml();
    for _ in 0..rng.random_range(1..=MISTAKES) {
        text = mistaken(&text, rng);
    }
    match parse("drawn.toml", &text, Path::new(".")) {
        Ok(parsed) => {
            counts.hold("sound systems", 1);
            survives(&parsed.system);
        }
        Err(problems) => {
            counts.refused += 1;
            counts.hold("problems", problems.list().len() as u64);
            if let Some(problem) = problems.list().iter().find(|problem| problem.message.is_empty()) {
                return Err(Fault::new(format!("a problem without words: {problem:?}"), text));
            }
        }
    }
    for format in [Format::RtApp, Format::SimSo, Format::Csv] {
        imported(format, &system, rng, counts)?;
    }
    Ok(())
}

/// A file of another program with mistakes is refused with problems, or is a system.
fn imported(format: Format, system: &System, rng: &mut impl Rng, counts: &mut Counts) -> Result<(), Fault> {
    let mut text = export(format, system).value;
    for _ in 0..rng.random_range(0..=MISTAKES) {
        text = mistaken(&text, rng);
    }
    match import(format, "drawn", &text) {
        Ok(translated) => match System::new(translated.value) {
            Ok(_) => counts.hold("sound imports", 1),
            Err(faults) => {
                return Err(Fault::new(format!("what was imported is no system: {faults:?}"), text));
            }
        },
        Err(problems) => counts.hold("problems of imports", problems.list().len() as u64),
    }
    Ok(())
}

fn survives(system: &System) {
    let Ok(plans) = plan_lanes_of(system) else { return };
    let _verdict = Check::new(system, &plans, &mut |_, _| ());
    let Ok(mut simulation) = Simulation::new(system) else { return };
    let mut accounting = Accounting::new(&simulation.metadata().clone(), Duration::from_secs(1));
    // A period of a nanosecond is a system, too: as many steps as a moment has.
    let shortest = system
        .tasks
        .iter()
        .map(|task| task.period)
        .chain(system.schedulers.iter().filter_map(|s| s.quantum))
        .min();
    let length = SIMULATED.min(shortest.unwrap_or(SIMULATED) * 1_000);
    simulation.advance(Instant::ZERO + length, &mut accounting);
}

fn mistaken(text: &str, rng: &mut impl Rng) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        return text.into();
    }
    let place = rng.random_range(0..lines.len());
    match rng.random_range(0..7) {
        0 => drop(lines.remove(place)),
        1 => lines.insert(place, lines[rng.random_range(0..lines.len())].clone()),
        2 => lines.swap(place, (place + 1) % text.lines().count()),
        3 => lines[place] = renumbered(&lines[place], rng),
        4 => lines[place].push(one_of(rng, &['"', '[', '}', '\u{7}', 'µ', '#'])),
        5 => lines[place] = lines[place].replace("ms", one_of(rng, &["ns", "s", "h", "", "kg"])),
        _ => {
            let cut = lines[place].char_indices().nth(rng.random_range(0..20)).map_or(0, |(index, _)| index);
            lines[place].truncate(cut);
        }
    }
    lines.join("\n")
}

/// The first number of the line as another one.
fn renumbered(line: &str, rng: &mut impl Rng) -> String {
    let number = one_of(
        rng,
        &["0", "1", "-1", "3", "1000", "9223372036854775807", "1e9", "0.5", "99999999999999999999"],
    );
    let Some(start) = line.find(|char: char| char.is_ascii_digit()) else { return line.into() };
    let end = line[start..].find(|char: char| !char.is_ascii_digit()).map_or(line.len(), |end| start + end);
    format!("{}{number}{}", &line[..start], &line[end..])
}

/// A trace with altered bytes is read, or an error says why not.
pub fn traces(seed: u64, counts: &mut Counts) -> Result<(), Fault> {
    let simulation = draw::system(seed, Size::Small).and_then(|system| Simulation::new(&system).ok());
    let Some(mut simulation) = simulation else {
        counts.refused += 1;
        return Ok(());
    };
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let path = folder.path().join("trace.talea");
    let mut log = LogWriter::create(&path, simulation.metadata()).expect("a new file");
    simulation.advance(Instant::ZERO + SIMULATED, &mut log);
    simulation.finish(&mut log);
    log.finish().expect("the file has room");
    let mut bytes = std::fs::read(&path).expect("it was written");
    let rng = &mut draw::numbers(!seed);
    for _ in 0..rng.random_range(1..=MISTAKES) {
        alter(&mut bytes, rng);
    }
    std::fs::write(&path, &bytes).expect("the file is ours");
    match TraceFile::open(&path) {
        Ok(trace) => {
            counts.hold("readable traces", 1);
            ask(&trace);
        }
        Err(error) if error.to_string().is_empty() => {
            return Err(Fault::new("an error without words", bytes));
        }
        Err(_) => counts.refused += 1,
    }
    Ok(())
}

fn alter(bytes: &mut Vec<u8>, rng: &mut impl Rng) {
    if bytes.is_empty() {
        return;
    }
    // The header and the tables are small beside the records, and as likely to be hit.
    let end = if rng.random_ratio(1, 2) { bytes.len().min(4_096) } else { bytes.len() };
    let place = rng.random_range(0..end);
    match rng.random_range(0..4) {
        0 => bytes[place] ^= 1 << rng.random_range(0..8),
        1 => bytes[place] = one_of(rng, &[0, 0xff, 0x7f, 0x80]),
        2 => bytes.truncate(place),
        _ => {
            let end = (place + 8).min(bytes.len());
            rng.fill(&mut bytes[place..end]);
        }
    }
}

/// Everything that a reader may ask.
fn ask(trace: &TraceFile) {
    let metadata = trace.metadata();
    let mut accounting = Accounting::new(metadata, Duration::from_secs(1));
    let Ok(_replayed) = trace.replay(&mut accounting) else { return };
    let last = accounting.last();
    drop(accounting.finish(last));
    let question = Question { which: Which::Failed, task: None, limit: 10 };
    let _answer = explain(metadata, question, |sink| trace.replay(sink).map(|_| ()));
    let mut count = Count(0);
    let _names = trace.name_space();
    let _again = trace.replay(&mut count);
}

struct Count(u64);

impl Sink for Count {
    fn record(&mut self, _record: Record) {
        self.0 += 1;
    }
}
