//! `talea trace record`.

mod buffers;
mod summary;
mod workload;

use super::named;
use super::place::TracePlace;
use crate::cli::failure::path_shown;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::options::{distinct, positive};
use crate::cli::output::tell;
use crate::cli::{Outcome, interrupt};
use buffers::{KERNEL_BUFFER, at_least_two, size};
use clap::{ArgGroup, Args};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use summary::summarise;
use talea_linux::clock::MonotonicClock;
use talea_linux::sched::{Policy, set_self};
use talea_record::TraceFile;
use talea_record::stream::{
    Directory, Liveness, RECORDER, RING_RECORDS, RINGS, Selection, SelectionError, Start, StreamDirectory,
    UnknownName, announcement, attend, descends_from, waits_for_this_process,
};
use talea_recording::kernel::{KernelEvent, KernelOptions, KernelPart, KernelScope, KernelStream, preflight};
use talea_recording::recording::{Recording, RecordingError, RecordingOptions};
use talea_time::{Clock, Duration, Instant};
use workload::{ReportedEnds, Workload};

/// Record programs and the kernel from outside into one trace
///
/// The programs are a command that is started here with everything it starts, or programs that run already (--attach), as far as
/// they publish a stream of events, which every `talea run` does. Events of the kernel, such as context switches, have the same clock
/// and are merged in. The recording ends with the command or the programs, after --for, or with Ctrl-C.
#[derive(Args)]
#[command(
    group(ArgGroup::new("whom").required(true).args(["attach", "command"])),
    after_help = "\
Examples:
  talea trace record --out ofp.talea -- talea run examples/ofp.toml --for 10s
  talea trace record --attach two-nodes --kernel off --for 5s
  talea trace record --attach ofp --events job,nav --kernel off --for 5s --out ofp.talea
  talea trace record --kernel switches,wakeups,interrupts -- ./my-program
  talea trace record --ring-records 131072 --priority 90 --fail-on-loss -- ./my-program
  talea trace record --kernel switches,wakeups --kernel-buffer 32M -- perf bench sched pipe

A command's programs wait until they are followed, so that their first events are recorded (TALEA_RECORDER in the environment
tells them). The environment variables TALEA_RING_RECORDS and TALEA_RINGS do for any program what --ring-records and --rings do.

Exit status: 0 fine; 1 the command failed, or with --fail-on-loss something was lost; 2 usage error, or the recording is incomplete.

`talea trace list` shows the programs that can be attached to, `talea doctor` what the kernel grants."
)]
pub struct Options {
    /// The trace to write
    #[arg(long, short, value_name = "FILE", default_value = "recording.talea")]
    out: PathBuf,
    /// Follow this program from now on, by process number or name, or the file of its stream; by the name of a program of several
    /// processes, all of them; can be given several times
    #[arg(long, value_name = "PID|NAME|FILE", help_heading = "What to record")]
    attach: Vec<PathBuf>,
    /// What to record of the programs: families or single events, such as job,dispatch.cost,-job.preempt, or complete, or
    /// 'job.re*'. They may be declared after the recording begins. When a run begins and ends is always recorded
    #[arg(
        long,
        alias = "event",
        value_name = "SELECTION",
        default_value = "all",
        allow_hyphen_values = true,
        help_heading = "What to record"
    )]
    events: Selection,
    /// What to record of the kernel: off, auto (context switches, wake-ups and names of threads, if permitted), or a list of
    /// switches, wakeups, interrupts, syscalls and names, separated by commas
    #[arg(long, value_name = "EVENTS", default_value = "auto", help_heading = "What to record")]
    kernel: KernelChoice,
    /// Stop after this long [default: with the command or the programs]
    #[arg(long = "for", value_name = "TIME", value_parser = positive)]
    duration: Option<Duration>,
    /// Room in each ring of the command's programs, in records of 40 bytes; rounded up to a power of two [default: as the program says]
    #[arg(long, value_name = "NUMBER", requires = "command", value_parser = at_least_two, help_heading = "Buffers")]
    ring_records: Option<usize>,
    /// Rings for threads of the command's programs that come while they run [default: as the program says]
    #[arg(long, value_name = "NUMBER", requires = "command", help_heading = "Buffers")]
    rings: Option<usize>,
    /// The kernel's buffer for each processor, such as 16M [default: 8M, or 512K where the kernel grants no more]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Buffers")]
    kernel_buffer: Option<u64>,
    /// Memory for what has been taken out of rings and buffers and is not in the trace yet
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size, help_heading = "Buffers")]
    memory: u64,
    /// Empty rings and buffers at this real-time priority (SCHED_FIFO), above that of threads that would keep the recorder from running
    #[arg(long, value_name = "1..99", value_parser = clap::value_parser!(u8).range(1..=99), help_heading = "Buffers")]
    priority: Option<u8>,
    /// Exit with status 1 if anything was lost
    #[arg(long)]
    fail_on_loss: bool,
    /// The command to run and record
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What to record of the kernel.
#[derive(Clone, Debug)]
enum KernelChoice {
    Off,
    Auto,
    These(BTreeSet<KernelEvent>),
}

impl FromStr for KernelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(KernelChoice::Off),
            "auto" => Ok(KernelChoice::Auto),
            list => {
                let events: Result<BTreeSet<KernelEvent>, _> = list.split(',').map(str::parse).collect();
                let mut events = events.map_err(|error| error.to_string())?;
                // Without names, a reader would not know the threads.
                events.insert(KernelEvent::Names);
                Ok(KernelChoice::These(events))
            }
        }
    }
}

/// How often what has been taken out of rings is written, and new streams are looked for.
const LOOK: Duration = Duration::from_millis(5);
/// How long a command may take to register its families before it is said which are not there.
const PATIENCE: Duration = Duration::from_secs(1);
/// Looks between two at whether followed programs go on.
const CHECK_EVERY: u64 = 4;

pub fn main(options: &Options) -> Outcome {
    if !options.command.is_empty() {
        refuse_impossible(&options.events)?;
    }
    let directory = named::directory()?;
    refuse_among_streams(&options.out, &directory)?;
    let mut place = TracePlace::check(&options.out)?;
    let name = options.command.first().map_or_else(
        || options.attach.iter().map(path_shown).collect::<Vec<_>>().join(","),
        |command| PathBuf::from(command).file_name().unwrap_or(command).to_string_lossy().into_owned(),
    );
    let mut session = Session {
        recording: Some(begin(options, &name)?),
        directory,
        events: options.events.clone(),
        seen: BTreeSet::new(),
        first_followed: None,
        warned_of: Vec::new(),
        refused: None,
    };
    let stop = interrupt::flag()?;
    let attached = session.attach(&options.attach, &options.out)?;
    let access = session.record_kernel(options)?;
    let mut command = Workload::start(&options.command, &environment(options, &session.directory))?;
    place.keep();
    match &command {
        Some(command) => {
            session.recording.iter_mut().for_each(|recording| recording.count_in(command.id()));
            session.record_process(access, command.id());
        }
        None => session.recording.iter_mut().for_each(Recording::expect_no_more),
    }
    if let [pid] = attached[..] {
        session.record_process(access, pid);
    }
    let followed = session.follow(command.as_mut(), options.duration, &stop);
    // Whatever happened, a command started here does not stay behind.
    let reported = if followed.is_ok() { ReportedEnds::Failures } else { ReportedEnds::All };
    let verdict = command.map_or(Ok(Verdict::Fine), |command| command.finish(reported))?;
    followed.map_err(|error| incomplete(options, &error))?;
    session.warn_of_unknown();
    match session.conclude(options)? {
        Completeness::Lossy if options.fail_on_loss => Ok(Verdict::Negative),
        Completeness::Lossy | Completeness::Whole => Ok(verdict),
    }
}

/// Whether anything was lost.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Completeness {
    Whole,
    Lossy,
}

/// A recording whose rings are emptied at the priority that was asked for.
fn begin(options: &Options, name: &str) -> Result<Recording, Failure> {
    let priority = options.priority;
    let prepare = move || {
        if let Some(priority) = priority
            && let Err(error) = set_self(Policy::Fifo(priority))
        {
            tell!("warning: rings are emptied without a real-time priority: {error}");
        }
    };
    let recording_options = RecordingOptions { memory: options.memory, prepare: Box::new(prepare) };
    Recording::new(&options.out, name, recording_options)
        .map_err(|error| Failure::new(format!("cannot create the recorder's thread: {error}"), ""))
}

/// What the command is told by its environment.
fn environment(options: &Options, directory: &StreamDirectory) -> Vec<(&'static str, String)> {
    let mut environment = vec![(RECORDER, announcement(directory.path()))];
    environment.extend(options.ring_records.map(|number| (RING_RECORDS, number.to_string())));
    environment.extend(options.rings.map(|number| (RINGS, number.to_string())));
    environment
}

/// Why the recording ended before what it was of, and what there is of it.
fn incomplete(options: &Options, error: &RecordingError) -> Failure {
    let out = path_shown(&options.out);
    let left = match TraceFile::open(&options.out) {
        Ok(_) => format!("what was written before is in {out} and can be read"),
        Err(_) => format!("there is nothing to be read in {out}"),
    };
    Failure::new(format!("the recording is incomplete: {error}"), left)
}

const SEE: &str =
    "while a program runs, `talea trace list` shows it, and `talea trace list NAME` what it can tell";

/// Families of Talea are known before the command starts; those of its own are not.
fn refuse_impossible(events: &Selection) -> Result<(), Failure> {
    let (_, unknown) = events.known_in(&Directory::default());
    let is_impossible = |unknown: &&UnknownName| matches!(unknown.error, SelectionError::Entity { .. });
    match unknown.iter().find(is_impossible) {
        Some(unknown) => Err(Failure::new(&unknown.error, SEE)),
        None => Ok(()),
    }
}

fn note_no_stream(options: &Options) {
    let program = options.command.first().map_or_else(String::new, path_shown);
    tell!("note: no stream was followed, for {program} published none; it tells nothing of its own");
    tell!(
        "  help: --kernel auto records when its threads ran; a Rust program publishes a stream with \
         talea_record::stream::Stream::publish, and `talea run` does"
    );
}

/// The folder of streams is for streams: a recording there would replace one, or be taken for one.
fn refuse_among_streams(out: &Path, directory: &StreamDirectory) -> Result<(), Failure> {
    // Where a link leads, it would go.
    let place = out.canonicalize().unwrap_or_else(|_| out.into());
    let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), directory.path().canonicalize()) {
        (Ok(folder), Ok(streams)) if folder == streams => Err(Failure::new(
            format!("{} would be among the streams of running programs", path_shown(out)),
            "choose another folder",
        )),
        _ => Ok(()),
    }
}

/// Whether the kernel's events of the whole machine are recorded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum KernelAccess {
    /// As far as they were asked for.
    AsAsked,
    /// They are not permitted; those of single processes may be.
    Refused,
}

/// A recording and what it follows.
struct Session {
    /// None after it could not be written any more.
    recording: Option<Recording>,
    directory: StreamDirectory,
    events: Selection,
    /// Streams that have been looked at, followed or not.
    seen: BTreeSet<PathBuf>,
    /// When the first stream of a command was followed.
    first_followed: Option<Instant>,
    /// Names that no stream has, of which the user has been warned.
    warned_of: Vec<String>,
    /// Why a stream was not followed.
    refused: Option<String>,
}

impl Session {
    /// Follows these programs from now on, and returns their processes. What their rings hold from before begins at
    /// another instant in each, and is not to be understood.
    fn attach(&mut self, targets: &[PathBuf], out: &Path) -> Result<Vec<u32>, Failure> {
        let mut processes = Vec::new();
        for target in targets {
            for found in named::streams(target)? {
                // A file that is no stream gets its error from following it.
                if found.liveness == Liveness::Dead && found.content.is_ok() {
                    return Err(Failure::new(
                        format!("process {} of stream \"{}\" has ended", found.pid, found.name),
                        format!("what it left can be read: `talea trace show {}`", path_shown(&found.path)),
                    ));
                }
                if !self.seen.insert(found.path.clone()) {
                    continue;
                }
                distinct(out, &found.path)?;
                if let Some(recording) = &mut self.recording {
                    let followed = recording.follow(&found.path, &self.events, Start::Now);
                    followed.map_err(|error| Failure::new(error, SEE))?;
                }
                processes.push(found.pid);
            }
        }
        Ok(processes)
    }

    /// Records the kernel's events of the whole machine.
    fn record_kernel(&mut self, asked: &Options) -> Result<KernelAccess, Failure> {
        // Large buffers where the kernel grants them, which it does to root, and else those that it grants everybody.
        let large = asked.kernel_buffer.unwrap_or(KERNEL_BUFFER) as usize;
        let mut options = KernelOptions { buffer_bytes: large, ..KernelOptions::default() };
        let is_too_large = |options: &KernelOptions| {
            asked.kernel_buffer.is_none()
                && preflight(options).obstacles.iter().any(|obstacle| obstacle.part == KernelPart::Buffers)
        };
        if !matches!(asked.kernel, KernelChoice::Off) && is_too_large(&options) {
            options.buffer_bytes = KernelOptions::BUFFER_BYTES;
        }
        match &asked.kernel {
            KernelChoice::Off => return Ok(KernelAccess::AsAsked),
            KernelChoice::These(events) => options.events.clone_from(events),
            KernelChoice::Auto => {
                let granted = preflight(&options);
                for obstacle in &granted.obstacles {
                    tell!("note: without the kernel's events: {obstacle}");
                }
                options.events = granted.available.into_iter().collect();
                if !options.events.contains(&KernelEvent::Switches) {
                    return Ok(KernelAccess::Refused);
                }
            }
        }
        let stream = KernelStream::open(&options, MonotonicClock.now())
            .map_err(|error| Failure::new(error, "`--kernel off` records without the kernel's events"))?;
        self.record_events(stream);
        Ok(KernelAccess::AsAsked)
    }

    /// Records the kernel's events of this process alone, if those of the whole machine are not permitted.
    fn record_process(&mut self, access: KernelAccess, pid: u32) {
        let events = [KernelEvent::Switches, KernelEvent::Names].into();
        let options = KernelOptions { scope: KernelScope::Process(pid), events, ..KernelOptions::default() };
        let has_kernel = |recording: &Recording| recording.kernel().is_some();
        if access == KernelAccess::Refused && !self.recording.as_ref().is_some_and(has_kernel) {
            match KernelStream::open(&options, MonotonicClock.now()) {
                Ok(stream) => self.record_events(stream),
                Err(error) => tell!("note: nor of process {pid} alone: {error}"),
            }
        }
    }

    fn record_events(&mut self, stream: KernelStream) {
        stream.control().caveats().iter().for_each(|caveat| tell!("note: {caveat}"));
        let (control, sources) = stream.split();
        if let Some(recording) = &mut self.recording {
            recording.hear(control, sources);
        }
    }

    /// Records until there is no more to come. A command goes on to its end also where the recording cannot.
    fn follow(
        &mut self,
        mut command: Option<&mut Workload>,
        duration: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<(), RecordingError> {
        let mut result = Ok(());
        let end = duration.map_or(Instant::MAX, |duration| MonotonicClock.now().saturating_add(duration));
        for look in 0u64.. {
            let now = MonotonicClock.now();
            let is_to_end = stop.load(Ordering::Relaxed) || now >= end;
            let over = match &mut command {
                Some(command) => {
                    // Whoever has just published a stream waits to be followed.
                    self.search(command.id(), now);
                    if is_to_end {
                        command.ask_to_end(now);
                    }
                    command.is_over()
                }
                None => {
                    let goes_on = || self.recording.as_ref().is_some_and(Recording::any_goes_on);
                    is_to_end || look.is_multiple_of(CHECK_EVERY) && !goes_on()
                }
            };
            if let Some(error) = self.recording.as_mut().and_then(|recording| recording.poll(now).err()) {
                // Without a recording, programs need not write events for it.
                self.recording = None;
                if command.is_some() {
                    tell!("warning: {error}; the command goes on and is not recorded any more");
                }
                result = Err(error);
            }
            if over || self.recording.is_none() && command.is_none() {
                return result;
            }
            std::thread::sleep(std::time::Duration::from_nanos(LOOK.as_nanos() as u64));
        }
        unreachable!("looks are endless")
    }

    /// Follows streams that the command, or what it started, has published since the last search, and says what none
    /// of them has.
    fn search(&mut self, command: u32, now: Instant) {
        // A directory that cannot be read now can be at the next search.
        for (pid, path) in self.directory.published().unwrap_or_default() {
            if self.seen.contains(&path) {
                continue;
            }
            let is_meant = || waits_for_this_process(&path) || descends_from(pid, command);
            let Some(recording) = &mut self.recording else {
                attend(&path);
                self.seen.insert(path);
                continue;
            };
            if !is_meant() {
                self.seen.insert(path);
                continue;
            }
            match recording.follow_as_it_grows(&path, &self.events, Start::Oldest) {
                Ok(()) => _ = self.first_followed.get_or_insert(now),
                Err(error) if error.is_premature() => continue,
                Err(error) => {
                    attend(&path);
                    tell!("warning: {error}");
                    self.refused.get_or_insert(error.to_string());
                }
            }
            self.seen.insert(path);
        }
        if self.first_followed.is_some_and(|first| now - first > PATIENCE) {
            self.warn_of_unknown();
        }
    }

    /// Says which names no stream has, each once.
    fn warn_of_unknown(&mut self) {
        for unknown in self.recording.iter().flat_map(Recording::unknown) {
            if !self.warned_of.contains(&unknown.name) {
                tell!("warning: {}; it is recorded should it be registered", unknown.error);
                self.warned_of.push(unknown.name);
            }
        }
    }

    /// Ends the recording and says what is in it. It is an error if nothing of what was asked for is.
    fn conclude(self, options: &Options) -> Result<Completeness, Failure> {
        let Some(recording) = self.recording else { return Ok(Completeness::Whole) };
        let follows_any = recording.follows_any();
        let unknown = match follows_any {
            true => recording.unknown(),
            // Nothing had what only a program could have had.
            false => options.events.known_in(&Directory::default()).1,
        };
        let recorded = recording.finish().map_err(|error| incomplete(options, &error))?;
        summarise(options, &recorded);
        let unasked = recorded.unasked + recorded.kernel.as_ref().map_or(0, |totals| totals.records);
        let of_programs = recorded.records.saturating_sub(unasked);
        match (self.refused, unknown.first()) {
            (Some(reason), _) if !follows_any => Err(Failure::new(reason, "no program was followed")),
            (_, Some(unknown)) if of_programs == 0 => {
                if !follows_any {
                    note_no_stream(options);
                }
                Err(Failure::new(format!("nothing of the command was recorded: {}", unknown.error), SEE))
            }
            _ => {
                if !follows_any {
                    note_no_stream(options);
                }
                let is_whole = recorded.lost_in_all() == 0;
                Ok(if is_whole { Completeness::Whole } else { Completeness::Lossy })
            }
        }
    }
}
