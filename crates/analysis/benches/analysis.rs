//! How fast the analyses are, next to the textbook's algorithms in plain Python on the same task sets.
//!
//! `cargo bench -p talea-analysis --bench analysis [-- --json] [--quick]`
//!
//! Task sets are random but seeded: periods from 1 ms to 1 s with every order of magnitude alike, to the nanosecond;
//! utilisations drawn by UUniFast (Bini and Buttazzo 2005); deadlines are periods under fixed priorities, and from half
//! of the period up under EDF, nine tenths at the highest load. The peer reads them from a file, and its answers must be the same.

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use std::fmt::Write as _;
use std::process::{Command, ExitCode};
use talea_analysis::edf::{nonpreemptive, qpa};
use talea_analysis::sensitivity::{Growth, largest_growth};
use talea_analysis::{Effort, Task, fixed_priority};
use talea_time::{Duration, Work};

struct Repetitions {
    own: usize,
    peer: usize,
    tasks: usize,
}

const FULL: Repetitions = Repetitions { own: 25, peer: 3, tasks: 1000 };
const QUICK: Repetitions = Repetitions { own: 5, peer: 1, tasks: 1000 };
/// Enough to see that everything runs.
const SMOKE: Repetitions = Repetitions { own: 1, peer: 1, tasks: 50 };

/// One analysis of one task set.
struct Subject {
    name: String,
    tasks: Vec<Task>,
    /// Its name in the peer, if that has it.
    peer: Option<&'static str>,
    /// The answers as numbers.
    analyse: fn(&[Task]) -> Vec<i64>,
}

fn main() -> ExitCode {
    let (mut repetitions, mut json, mut quick) = (SMOKE, false, false);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--bench" => repetitions = FULL,
            "--quick" => quick = true,
            "--json" => json = true,
            unknown => {
                eprintln!("unknown argument {unknown}; this takes --quick and --json");
                return ExitCode::from(2);
            }
        }
    }
    if quick {
        repetitions = QUICK;
    }
    let subjects = subjects(repetitions.tasks);
    let peer = match peer(&subjects, repetitions.peer) {
        Ok(peer) => peer,
        Err(reason) => {
            eprintln!("SKIPPED: the comparison with Python: {reason}");
            subjects.iter().map(|_| None).collect()
        }
    };
    let mut agree = true;
    for (subject, peer) in subjects.iter().zip(peer) {
        let (seconds, answers) = measure(subject, repetitions.own);
        if peer.as_ref().is_some_and(|(_, theirs)| *theirs != answers) {
            eprintln!("{}: the answers differ from the peer's", subject.name);
            agree = false;
        }
        report(subject, seconds, peer.map(|(seconds, _)| seconds), json);
    }
    if agree { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn subjects(count: usize) -> Vec<Subject> {
    let mut random = Pcg64::seed_from_u64(20);
    let mut subjects = Vec::new();
    for percent in [70, 90] {
        subjects.push(Subject {
            name: format!("{count} tasks, {percent} % load: response times, preemptive fixed priorities"),
            tasks: by_rate(task_set(&mut random, count, percent, 100)),
            peer: Some("fp"),
            analyse: |tasks| {
                let found = fixed_priority::preemptive::response_times(tasks, &mut Effort::default());
                let found = found.expect("affordable");
                found.iter().map(|response| response.expect("no overload").worst.as_nanos()).collect()
            },
        });
    }
    subjects.push(Subject {
        name: format!("{count} tasks, 70 % load: response times, non-preemptive fixed priorities"),
        tasks: by_rate(task_set(&mut random, count, 70, 100)),
        peer: None,
        analyse: |tasks| {
            let found = fixed_priority::nonpreemptive::response_times(tasks, &mut Effort::default());
            let found = found.expect("affordable");
            found.iter().map(|response| response.expect("no overload").worst.as_nanos()).collect()
        },
    });
    for (percent, deadline_percent) in [(70, 50), (90, 50), (98, 90)] {
        subjects.push(Subject {
            name: format!("{count} tasks, {percent} % load: EDF by QPA"),
            tasks: task_set(&mut random, count, percent, deadline_percent),
            peer: Some("qpa"),
            analyse: |tasks| {
                let verdict = qpa::test(tasks, &mut Effort::default()).expect("affordable");
                vec![i64::from(verdict.is_schedulable())]
            },
        });
    }
    subjects.push(Subject {
        name: format!("{count} tasks, 70 % load: non-preemptive EDF"),
        tasks: task_set(&mut random, count, 70, 50),
        peer: None,
        analyse: |tasks| {
            let verdict = nonpreemptive::test(tasks, &mut Effort::default()).expect("affordable");
            vec![i64::from(verdict.is_schedulable())]
        },
    });
    let few = count.min(100);
    subjects.push(Subject {
        name: format!("{few} tasks, 70 % load: how much each can grow, preemptive fixed priorities"),
        tasks: by_rate(task_set(&mut random, few, 70, 100)),
        peer: None,
        analyse: |tasks| {
            let growth = |index| {
                let effort = &mut Effort::default();
                largest_growth(tasks, Growth::Only(index), |tasks| {
                    fixed_priority::preemptive::schedulable(tasks, effort)
                })
            };
            let largest = (0..tasks.len()).map(|index| growth(index).expect("affordable"));
            largest.map(|factor| factor.map_or(0, |factor| factor.ppm() as i64)).collect()
        },
    });
    subjects
}

/// `count` tasks with a total utilisation of `percent`, and deadlines of at least `deadline_percent` of the period.
fn task_set(random: &mut Pcg64, count: usize, percent: u32, deadline_percent: i64) -> Vec<Task> {
    let mut rest = f64::from(percent) / 100.0;
    let shares = (0..count).map(|index| {
        let left = (count - index - 1) as f64;
        let following = if left > 0.0 { rest * random.random::<f64>().powf(left.recip()) } else { 0.0 };
        let share = rest - following;
        rest = following;
        let period = (1e6 * 10_f64.powf(random.random_range(0.0..3.0))) as i64;
        let wcet = ((share * period as f64) as i64).max(1);
        let deadline = period * random.random_range(deadline_percent..=100) / 100;
        Task::new(Duration::from_nanos(period), Work::from_nanos(wcet))
            .and_then(|task| task.with_deadline(Duration::from_nanos(deadline)))
            .expect("the numbers are a task")
    });
    shares.collect()
}

/// Rate-monotonic priorities.
fn by_rate(mut tasks: Vec<Task>) -> Vec<Task> {
    tasks.sort_by_key(Task::period);
    tasks
}

/// Median processor time in seconds, and the answers.
fn measure(subject: &Subject, repetitions: usize) -> (f64, Vec<i64>) {
    let mut answers = Vec::new();
    let mut times: Vec<f64> = (0..repetitions)
        .map(|_| {
            let start = processor_time_s();
            answers = (subject.analyse)(std::hint::black_box(&subject.tasks));
            processor_time_s() - start
        })
        .collect();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], answers)
}

fn processor_time_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

type Answers = Vec<Option<(f64, Vec<i64>)>>;

/// Median seconds and answers of the peer, for each subject that it has.
fn peer(subjects: &[Subject], repetitions: usize) -> Result<Answers, String> {
    let mut text = String::new();
    for subject in subjects {
        let Some(name) = subject.peer else { continue };
        text.push_str(name);
        for task in &subject.tasks {
            let (period, wcet) = (task.period().as_nanos(), task.wcet().as_nanos());
            write!(text, " {period} {wcet} {}", task.deadline().as_nanos()).expect("text grows");
        }
        text.push('\n');
    }
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    std::fs::write(file.path(), text).map_err(|error| error.to_string())?;
    let output = Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer.py"))
        .arg(file.path())
        .arg(repetitions.to_string())
        .output()
        .map_err(|error| format!("cannot run python3: {error}"))?;
    if !output.status.success() {
        return Err(format!("python3 failed: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines = text.lines();
    subjects
        .iter()
        .map(|subject| subject.peer.map(|_| answers(lines.next().unwrap_or_default())).transpose())
        .collect()
}

/// Seconds and answers from a line of the peer's.
fn answers(line: &str) -> Result<(f64, Vec<i64>), String> {
    let unreadable = || format!("an answer that is no list of numbers: {line}");
    let mut words = line.split(' ');
    let seconds = words.next().and_then(|word| word.parse().ok()).ok_or_else(unreadable)?;
    let numbers = words.map(str::parse).collect::<Result<Vec<i64>, _>>().map_err(|_| unreadable())?;
    Ok((seconds, numbers))
}

fn report(subject: &Subject, seconds: f64, peer: Option<f64>, json: bool) {
    let name = &subject.name;
    if json {
        let number = |value: Option<f64>| value.map_or("null".into(), |value| format!("{value:e}"));
        println!(
            "{{\"group\":\"analysis\",\"subject\":\"{name}\",\"seconds\":{seconds:e},\"peer_seconds\":{},\"peer_ratio\":{}}}",
            number(peer),
            number(peer.map(|peer| peer / seconds))
        );
    } else {
        let peer = peer.map_or(String::new(), |peer| {
            format!("; Python {:.1} ms, {:.0} times as long", peer * 1e3, peer / seconds)
        });
        println!("{name:<76} {:>9.3} ms{peer}", seconds * 1e3);
    }
}
