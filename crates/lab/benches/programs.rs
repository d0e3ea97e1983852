//! What a program loses that runs below a scheduler and whose threads wake each other, beside the same program as real-time threads of their own.
//!
//! `cargo bench -p talea-lab --bench programs [-- --json] [--quick]`
//!
//! The program is this one again: two of its threads send each other a byte over two pipes, on one processor, and it writes down how long each
//! round trip took, in means of two hundred. Its reservation is 47 ms in 50 ms, so what is measured is not what it is promised.

use std::error::Error;
use std::fs;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use talea_linux::affinity;
use talea_linux::sched::{self, Policy};
use talea_measure::{Effort, Report, Role, Samples};
use talea_runtime::{Executive, JudgeBy, Lower, Operations, RunOptions};

/// Round trips of which the mean is one sample: some two milliseconds.
const BATCH: u32 = 200;
/// The first words of this program as that which is measured.
const AS_PROGRAM: &str = "--exchange";
/// That of granted threads of a hierarchy.
const PRIORITY: u8 = 12;
/// A program that says nothing within this time has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// How the program runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Alone,
    Managed(JudgeBy),
}

const WAYS: [(&str, Way); 3] = [
    ("SCHED_FIFO alone", Way::Alone),
    ("member, judged by grants", Way::Managed(JudgeBy::Grants)),
    ("member, judged by receipts", Way::Managed(JudgeBy::Received)),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [AS_PROGRAM, batches, out] => exchange(batches, Path::new(out)),
        _ => talea_measure::main(measured),
    }
}

/// The program: exchanges bytes, then writes how many nanoseconds a round trip took in each batch.
fn exchange(batches: &str, out: &Path) -> ExitCode {
    let Ok(batches) = batches.parse::<u32>() else { return ExitCode::from(2) };
    let written = exchanged(batches).and_then(|lines| {
        // It is there as a whole or not at all.
        let whole = out.with_extension("whole");
        fs::write(&whole, lines)?;
        fs::rename(whole, out)
    });
    if written.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn exchanged(batches: u32) -> std::io::Result<String> {
    let ((mut here, mut to_there), (there, to_here)) = {
        let ((there, to_there), (here, to_here)) = (pipe()?, pipe()?);
        ((here, to_there), (there, to_here))
    };
    let answering = std::thread::spawn(move || answer(there, to_here));
    let mut lines = String::new();
    let mut byte = [0];
    for _ in 0..batches {
        let began = Instant::now();
        for _ in 0..BATCH {
            to_there.write_all(&byte)?;
            here.read_exact(&mut byte)?;
        }
        lines += &format!("{}\n", began.elapsed().as_nanos() / u128::from(BATCH));
    }
    drop(to_there);
    answering.join().expect("it does not panic");
    Ok(lines)
}

fn answer(mut from: PipeReader, mut to: PipeWriter) {
    let mut byte = [0];
    while from.read_exact(&mut byte).is_ok() && to.write_all(&byte).is_ok() {}
}

/// Turns in which the ways alternate, and batches in each.
fn amounts(effort: Effort) -> (usize, u32) {
    match effort {
        Effort::Smoke => (1, 2),
        Effort::Quick => (4, 100),
        Effort::Full => (20, 200),
    }
}

fn measured(effort: Effort) -> Report {
    let (turns, batches) = amounts(effort);
    let mut report = Report::new(true);
    let mut all = WAYS.map(|_| Samples::new());
    let mut medians = WAYS.map(|_| Vec::with_capacity(turns));
    for turn in 0..turns {
        for step in 0..WAYS.len() {
            let place = (turn + step) % WAYS.len();
            match of_one_run(WAYS[place].1, batches) {
                Ok(mut taken) => {
                    taken.iter().for_each(|ns| all[place].add(talea_time::Duration::from_nanos(*ns)));
                    taken.sort_unstable();
                    medians[place].push(taken[taken.len() / 2] as f64);
                }
                Err(error) => {
                    eprintln!("not measuring programs: {error}");
                    return report;
                }
            }
        }
    }
    for (place, ((name, way), samples)) in WAYS.into_iter().zip(all).enumerate() {
        let (role, note) = match way {
            Way::Alone => (Role::Floor, String::new()),
            Way::Managed(_) => {
                // What disturbs for a while disturbs a turn of each, so turns are compared.
                let mut ratios: Vec<f64> =
                    medians[place].iter().zip(&medians[0]).map(|(one, alone)| one / alone).collect();
                ratios.sort_by(f64::total_cmp);
                (Role::Subject, format!("{:.3} of alone in the median turn", ratios[ratios.len() / 2]))
            }
        };
        let group = "round trip over pipes between two threads of a program that has a reservation, same CPU";
        report.add_with_note(group, name, role, samples, note);
    }
    report
}

/// How many nanoseconds a round trip took in each batch of a program.
fn of_one_run(way: Way, batches: u32) -> Result<Vec<i64>, Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let out = folder.path().join("batches");
    let program = std::env::current_exe()?;
    let words = [
        program.to_str().ok_or("this program's path is no text")?,
        AS_PROGRAM,
        &batches.to_string(),
        out.to_str().ok_or("the folder's path is no text")?,
    ];
    // Interrupts and other programs' threads tend to be on the first one.
    let cpu = *affinity::allowed()?.last().ok_or("no processor")?;
    match way {
        Way::Alone => alone(words, cpu)?,
        Way::Managed(judge) => managed(words, cpu, judge, &out)?,
    }
    let lines = fs::read_to_string(&out).map_err(|_| "the program has not said how long it took")?;
    Ok(lines.lines().map(str::parse).collect::<Result<_, _>>()?)
}

fn alone([program, arguments @ ..]: [&str; 4], cpu: u16) -> Result<(), Box<dyn Error>> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null());
    // What is started has the policy and the processor of who starts it.
    let started = std::thread::spawn(move || {
        affinity::set(None, &[cpu]).map_err(|error| error.to_string())?;
        sched::set_self(Policy::Fifo(PRIORITY)).map_err(|error| error.to_string())?;
        command.spawn().map_err(|error| error.to_string())
    });
    let status = started.join().expect("starting does not panic")?.wait()?;
    if status.success() { Ok(()) } else { Err(format!("the program ended: {status}").into()) }
}

fn managed(words: [&str; 4], cpu: u16, judge: JudgeBy, out: &Path) -> Result<(), Box<dyn Error>> {
    let run = words.map(|word| format!("{word:?}")).join(", ");
    let text = format!(
        "[system]\nname = \"pipes\"\n\n[[node]]\nname = \"one\"\ncpus = [{cpu}]\n\n\
         [[scheduler]]\nname = \"RES\"\nkind = \"reservation\"\n\n\
         [[thread]]\nname = \"pipes\"\nrun = [{run}]\n\
         under = [{{ scheduler = \"RES\", guarantee = \"RESBH 47ms 50ms\" }}]\n"
    );
    let parsed =
        talea_model::parse("pipes", &text, Path::new(".")).map_err(|problems| problems.to_string())?;
    let options = RunOptions { lower: Lower::Never, judge, ..RunOptions::default() };
    let prepared = Executive::prepare(&parsed.system, Operations::synthetic(), options)?;
    let stop = prepared.stop_handle();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            while !out.exists() && began.elapsed() < PATIENCE {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.stop();
        });
        prepared.run()
    })?;
    Ok(())
}
