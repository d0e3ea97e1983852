//! The robot of `examples/robot.toml` with code: what its sensors measure goes from operation to operation, its control loop acts on the
//! latest of it, and an operator stops it over a socket. The operator's words and what the parts have to say of themselves are events of channels.
//!
//! `cargo run --release --example robot [-- TIME [ADDRESS [TRACE]]]`, such as `10s 127.0.0.1:7777 robot.trace`; five seconds, that address and no
//! trace unless given. Meanwhile
//! `echo stop | nc -u -w0 127.0.0.1 7777` stops the robot, and `echo go | …` lets it drive on. What was recorded in the trace is replayed by
//! `talea replay robot.trace -- target/release/examples/robot`.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::net::UdpSocket;
use std::path::Path;
use std::sync::mpsc;
use talea::notification::declared::{EventPorts, JobEvents, Publication};
use talea::notification::{Content, Filterable};
use talea::run::{KeptOutputs, Operations, Output, OutputKind, Ports};
use talea::{Duration, Instant, JobContext, Run};

/// What the scanner sees: distances in metres, one a degree.
#[derive(Default, Serialize, Deserialize)]
struct Scan(Vec<f32>);

/// Where something stands in the way: angle in degrees, distance in metres.
#[derive(Default, Serialize, Deserialize)]
struct Obstacles(Vec<(u16, f32)>);

/// Where the robot is, in metres and radians.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Pose {
    x: f32,
    heading: f32,
}

/// What the inertial unit measures: acceleration ahead in m/s², turning in rad/s.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Inertia {
    ahead: f32,
    turning: f32,
}

/// How the robot moves: speed in m/s, turning in rad/s.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct State {
    speed: f32,
    turning: f32,
}

/// A word of the operator's, as an event.
#[derive(Clone, Copy, Default, Filterable, Serialize, Deserialize)]
#[filterable(crate = "talea::notification::etcl")]
struct Spoken {
    stop: bool,
    /// When it came, in nanoseconds of the run's clock.
    at: i64,
}

/// How a part of the robot is, as an event.
#[derive(Clone, Copy, Default, Filterable, Serialize, Deserialize)]
#[filterable(crate = "talea::notification::etcl")]
struct Diagnosis {
    /// From 0, all is well, to 2, it must not go on like this.
    level: i16,
    /// What was measured.
    value: f32,
}

impl Content for Spoken {}
impl Content for Diagnosis {}

/// What the operator said last.
#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
enum Word {
    #[default]
    Go,
    /// It came at this instant.
    Stop(Instant),
}

/// What the drive is to do.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Command {
    /// Nothing, since the operator said so.
    Halt(Word),
    /// Drive ahead with this acceleration, in m/s².
    Accelerate(f32),
}

impl Default for Command {
    fn default() -> Self {
        Command::Halt(Word::Go)
    }
}

/// Where the operator's words come in.
const OPERATOR: &str = "127.0.0.1:7777";

/// What happened, for people.
enum Said {
    Stopped { after: Duration },
    DrivesOn,
    Pose { x: f32, heading: f32 },
    NotWell { what: String, level: i16, value: f32 },
}

/// Opens an output whose values can be recorded, so that a drive can be replayed.
fn kept<T>(ports: &mut Ports<'_>, name: &str, value: impl FnMut() -> T + 'static) -> Output<T>
where
    T: Serialize + DeserializeOwned + Send + Sync + 'static,
{
    ports.output_of(name, OutputKind::any().serialized(), value)
}

/// Opens events likewise.
fn told<T>(ports: &mut Ports<'_>, event_type: &str) -> Publication<T>
where
    T: Content + Filterable + Default + Serialize + DeserializeOwned,
{
    ports.publication_of(event_type, OutputKind::any().serialized())
}

/// Says how the part is; where diagnostics are ordered, the worst comes first.
fn diagnose(job: &JobContext<'_>, part: Publication<Diagnosis>, level: i16, value: f32) {
    // Where there is no room, others wait that say that something is wrong.
    let _ = job.push(part, |diagnosis, header| {
        *diagnosis = Diagnosis { level, value };
        header.priority = Some(level);
    });
}

fn sensors(operations: Operations) -> Operations {
    operations
        .with_ports("lidar.scan", |ports| {
            // Each slot's vector keeps its room, so that nothing allocates.
            let points = kept(ports, "points", || Scan(vec![0.0; 360]));
            move |job: &JobContext<'_>| {
                // Written where it stays: nothing is copied on its way to who reads it.
                let mut scan = job.write(points);
                for (angle, distance) in scan.0.iter_mut().enumerate() {
                    *distance = 4.0 + ((angle as u64 + job.instance()) % 50) as f32 / 10.0;
                }
            }
        })
        .with_ports("lidar.filter", |ports| {
            let points = ports.input::<Scan>("points");
            let obstacles = kept(ports, "obstacles", || Obstacles(Vec::with_capacity(360)));
            move |job: &JobContext<'_>| {
                let Some(scan) = job.get(points) else { return };
                let mut found = job.write(obstacles);
                found.0.clear();
                let near = scan.0.iter().enumerate().filter(|(_, distance)| **distance < 4.5);
                found.0.extend(near.map(|(angle, distance)| (angle as u16, *distance)));
            }
        })
        .with_ports("lidar.localise", |ports| {
            let obstacles = ports.input::<Obstacles>("obstacles");
            let pose = kept(ports, "pose", Pose::default);
            let health = told::<Diagnosis>(ports, "Diagnostics/Pose");
            let mut x = 0.0;
            move |job: &JobContext<'_>| {
                let Some(seen) = job.get(obstacles) else { return };
                x += 0.1;
                job.set(
                    pose,
                    Pose { x, heading: seen.0.first().map_or(0.0, |(angle, _)| f32::from(*angle)) },
                );
                // With few obstacles in sight, the pose is a guess.
                diagnose(job, health, if seen.0.len() < 36 { 1 } else { 0 }, seen.0.len() as f32);
            }
        })
        .with_ports("imu.read", |ports| {
            let sample = kept(ports, "sample", Inertia::default);
            move |job: &JobContext<'_>| {
                let phase = job.instance() as f32 / 40.0;
                job.set(sample, Inertia { ahead: phase.sin(), turning: 0.1 * phase.cos() });
            }
        })
        .with_ports("imu.estimate", |ports| {
            let (sample, state) = (ports.input::<Inertia>("sample"), kept(ports, "state", State::default));
            let health = told::<Diagnosis>(ports, "Diagnostics/Motion");
            let mut speed = 0.0;
            move |job: &JobContext<'_>| {
                let Some(sample) = job.get(sample) else { return };
                speed = 0.99 * speed + 0.005 * sample.ahead;
                job.set(state, State { speed, turning: sample.turning });
                diagnose(job, health, if sample.turning.abs() > 0.0999 { 1 } else { 0 }, sample.turning);
            }
        })
}

fn control(operations: Operations, tell: mpsc::Sender<Said>) -> Operations {
    let (log, doctor) = (tell.clone(), tell.clone());
    operations
        .with_ports("stop", |ports| {
            let mut text = [0; 64];
            // The socket that releases the task. What is read of it is recorded, and there again in a replay.
            let operator = ports.descriptor(text.len());
            let word = told::<Spoken>(ports, "Operator/Word");
            move |job: &JobContext<'_>| {
                // It is ready, or the task would not have been released; without the operator arrivals are drawn, and nothing is there.
                let Ok(length) = job.read(operator, &mut text) else { return };
                let stop = !text[..length].starts_with(b"go");
                let at = job.release().as_nanos();
                let has_room = job.push(word, |spoken, _| *spoken = Spoken { stop, at });
                assert!(has_room, "nobody keeps the operator's words");
            }
        })
        .with_ports("halt", |ports| {
            ports.subscription();
            let word = kept(ports, "word", Word::default);
            move |job: &JobContext<'_>| {
                let Some(spoken) = job.event() else { return };
                let Some(Spoken { stop, at }) = spoken.event().content() else { return };
                job.set(word, if *stop { Word::Stop(Instant::from_nanos(*at)) } else { Word::Go });
            }
        })
        .with_ports("control.step", |ports| {
            let (state, pose) = (ports.input::<State>("state"), ports.input::<Pose>("pose"));
            let (said, command) = (ports.input::<Word>("word"), kept(ports, "command", Command::default));
            move |job: &JobContext<'_>| {
                let word = job.get(said).copied().unwrap_or_default();
                let (State { speed, turning }, Pose { x, heading }) =
                    (job.get(state).copied().unwrap_or_default(), job.get(pose).copied().unwrap_or_default());
                let wanted = 1.0 - 0.01 * (x + heading + turning);
                let ahead = Command::Accelerate(wanted - speed);
                job.set(command, if word == Word::Go { ahead } else { Command::Halt(word) });
            }
        })
        .with_ports("control.drive", move |ports| {
            ports.outside();
            let command = ports.input::<Command>("command");
            let health = told::<Diagnosis>(ports, "Diagnostics/Drive");
            let mut before = Command::default();
            move |job: &JobContext<'_>| {
                let Some(command) = job.get(command) else { return };
                let is_halted = matches!(command, Command::Halt(_));
                diagnose(job, health, if is_halted { 2 } else { 0 }, job.instance() as f32);
                match (before, command) {
                    // A descriptor is looked at when it is ready, so that this is nearly when the word came.
                    (Command::Accelerate(_), Command::Halt(Word::Stop(at))) => {
                        let _ = tell.send(Said::Stopped { after: job.now() - *at });
                    }
                    (Command::Halt(_), Command::Accelerate(_)) => _ = tell.send(Said::DrivesOn),
                    _ => {}
                }
                before = *command;
            }
        })
        .with_ports("log", move |ports| {
            let pose = ports.input::<Pose>("pose");
            move |job: &JobContext<'_>| {
                if let Some(Pose { x, heading }) = job.all(pose).next_back() {
                    let _ = log.send(Said::Pose { x: *x, heading: *heading });
                }
            }
        })
        .with_ports("diagnose", move |ports| {
            ports.subscription();
            let mut told: BTreeMap<(String, i16), u32> = BTreeMap::new();
            move |job: &JobContext<'_>| {
                let Some(delivery) = job.event() else { return };
                let event = delivery.event();
                let Some(Diagnosis { level, value }) = event.content() else { return };
                // It comes again and again; every hundredth is told.
                let what = event.event_type().name().to_owned();
                let count = told.entry((what.clone(), *level)).or_default();
                *count += 1;
                if *count % 100 == 1 {
                    let _ = doctor.send(Said::NotWell { what, level: *level, value: *value });
                }
            }
        })
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let time: Duration = arguments.next().map_or(Ok(Duration::from_secs(5)), |time| time.parse())?;
    let address = arguments.next().unwrap_or_else(|| OPERATOR.to_owned());
    let trace = arguments.next();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/robot.toml");
    let system = talea::read(&file).map_err(|problems| problems.to_string())?.system;

    let (tell, told) = mpsc::channel();
    let operations = control(sensors(Operations::synthetic()), tell);
    let run = Run::new(&system).operations(operations).duration(time);
    let run = trace.iter().fold(run, |run, path| run.keep_trace(path).keep_values(KeptOutputs::All));
    let prepared = run.prepare()?;
    prepared.missing().iter().for_each(|missing| eprintln!("note: {missing}"));
    // Whenever a word has come, the task is released; it is not looked at again before the job that reads it has ended.
    let operator = UdpSocket::bind(&address)?;
    let place = operator.local_addr()?;
    prepared.descriptor("stop", operator)?;
    let way = format!("nc -u -w0 {} {}", place.ip(), place.port());
    println!("drives for {time}; `echo stop | {way}` stops it, and `echo go | …` lets it drive on");
    let telling = std::thread::spawn(move || {
        for said in told {
            match said {
                Said::Stopped { after } => println!("stopped {} after the word", after.rounded()),
                Said::DrivesOn => println!("drives on"),
                Said::NotWell { what, level, value } => {
                    println!("{what} is not well, level {level}: {value}")
                }
                Said::Pose { x, heading } => println!("at {x:.1} m, heading {heading:.0}°"),
            }
        }
    });
    let outcome = prepared.run()?;
    telling.join().expect("it only prints");
    for task in &outcome.report.tasks {
        println!("{}: {} of {} in time", task.name, task.met, task.released);
    }
    match outcome.mishaps.panics.first() {
        None => Ok(()),
        Some(panic) => {
            Err(format!("{} {} panicked: {}", panic.operation, panic.instance, panic.message).into())
        }
    }
}
