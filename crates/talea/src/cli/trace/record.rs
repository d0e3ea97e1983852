//! `talea trace record`.

use crate::cli::artefacts;
use crate::cli::failure::{Failure, Verdict};
use crate::cli::options::positive;
use crate::cli::{Outcome, interrupt};
use clap::{ArgGroup, Args};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use talea_runtime::sys::clock::MonotonicClock;
use talea_time::{Clock, Duration, Instant};
use talea_trace::kernel::{KernelEvent, KernelOptions, KernelStream, KernelTotals, preflight};
use talea_trace::recording::{Recorded, Recording};
use talea_trace::stream::publish::Listed;
use talea_trace::stream::{Liveness, Selection, Start, StreamDirectory, descends_from};

/// Record what programs and the kernel tell, from outside, into one trace.
///
/// Follows the streams that Talea programs publish: those of a command started here and of everything it starts, or of
/// programs that run already. The kernel's events are merged in on the same clock. The recording ends with the command,
/// with the programs, after --for, or with Ctrl-C.
#[derive(Args)]
#[command(
    group(ArgGroup::new("whom").required(true).args(["attach", "command"])),
    after_help = "\
Examples:
  talea trace record --out ofp.talea -- talea run examples/ofp.toml --for 10s
  talea trace record --attach ofp --events job,nav --kernel off --for 5s --out ofp.talea
  talea trace record --kernel switches,wakeups,interrupts -- ./my-program

`talea trace list` shows the programs that can be attached to, `talea doctor` what the kernel grants."
)]
pub struct Options {
    /// The trace to write
    #[arg(long, short, value_name = "FILE", default_value = "recording.talea")]
    out: PathBuf,
    /// Follow this program, by process number or name; can be given several times
    #[arg(long, value_name = "PID|NAME")]
    attach: Vec<String>,
    /// What to record of the programs: families or single events, such as job,dispatch.cost,-job.preempt
    #[arg(long, value_name = "SELECTION", default_value = "all")]
    events: Selection,
    /// What to record of the kernel: off, auto (switches, wake-ups and names if permitted), or a list of switches,
    /// wakeups, interrupts, syscalls and names
    #[arg(long, value_name = "EVENTS", default_value = "auto")]
    kernel: KernelChoice,
    /// Stop after this long
    #[arg(long = "for", value_name = "TIME", value_parser = positive)]
    duration: Option<Duration>,
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
                // Threads without names help nobody.
                events.insert(KernelEvent::Names);
                Ok(KernelChoice::These(events))
            }
        }
    }
}

/// How often streams are read and new ones looked for.
const LOOK: Duration = Duration::from_millis(5);
/// How long a command may take to end after it was told.
const GRACE: Duration = Duration::from_secs(5);
/// Looks between two searches for new streams.
const SEARCH_EVERY: u32 = 4;

pub fn main(options: &Options) -> Outcome {
    artefacts::create(&options.out)?;
    let directory = StreamDirectory::of_user().map_err(|error| Failure::new(error, ""))?;
    let name = options.command.first().map_or_else(
        || options.attach.join(","),
        |command| PathBuf::from(command).file_name().unwrap_or(command).to_string_lossy().into_owned(),
    );
    let mut session = Session {
        recording: Recording::new(&options.out, &name),
        directory,
        events: options.events.clone(),
        seen: BTreeSet::new(),
        attached: Vec::new(),
    };
    let stop = interrupt::flag()?;
    session.attach(&options.attach)?;
    session.hear_kernel(&options.kernel)?;
    let mut child = start(&options.command)?;
    let followed = session.follow(child.as_mut(), options.duration, &stop);
    // Whatever happened, a command started here does not stay behind.
    let status = child.map(finish).transpose()?;
    followed?;
    let recorded = session.recording.finish().map_err(|error| Failure::new(error, ""))?;
    tell(options, &recorded);
    Ok(status.map_or(Verdict::Fine, verdict))
}

/// A recording and what it follows.
struct Session {
    recording: Recording,
    directory: StreamDirectory,
    events: Selection,
    /// Streams that have been looked at, followed or not.
    seen: BTreeSet<PathBuf>,
    attached: Vec<String>,
}

impl Session {
    fn attach(&mut self, targets: &[String]) -> Result<(), Failure> {
        for target in targets {
            let help = "`talea trace list` shows what runs";
            let found = self.directory.find(target).map_err(|error| Failure::new(error, help))?;
            if found.liveness == Liveness::Dead {
                return Err(Failure::new(
                    format!("process {} of stream \"{}\" has ended", found.pid, found.name),
                    format!("what it left can be read: `talea trace show {}`", found.path.display()),
                ));
            }
            let followed = self.recording.follow(&found.path, &self.events, Start::Oldest);
            followed.map_err(|error| Failure::new(error, help))?;
            self.attached.push(target.clone());
        }
        Ok(())
    }

    fn hear_kernel(&mut self, choice: &KernelChoice) -> Result<(), Failure> {
        let mut options = KernelOptions::default();
        match choice {
            KernelChoice::Off => return Ok(()),
            KernelChoice::These(events) => options.events.clone_from(events),
            KernelChoice::Auto => {
                let granted = preflight(&options);
                for obstacle in &granted.obstacles {
                    eprintln!("note: without the kernel's events: {obstacle}");
                }
                options.events = granted.available.into_iter().collect();
                if !options.events.contains(&KernelEvent::Switches) {
                    return Ok(());
                }
            }
        }
        let stream = KernelStream::open(&options, MonotonicClock.now())
            .map_err(|error| Failure::new(error, "`--kernel off` records without the kernel's events"))?;
        stream.control().caveats().iter().for_each(|caveat| eprintln!("note: {caveat}"));
        let (control, sources) = stream.split();
        self.recording.hear(control, sources);
        Ok(())
    }

    /// Records until there is no more to come.
    fn follow(
        &mut self,
        mut child: Option<&mut Child>,
        duration: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<(), Failure> {
        let mut end = duration.map_or(Instant::MAX, |duration| MonotonicClock.now().saturating_add(duration));
        let mut told = false;
        for look in 0u32.. {
            let over = match &mut child {
                Some(child) => {
                    if look.is_multiple_of(SEARCH_EVERY) {
                        self.search(child.id());
                    }
                    // An interrupt from the terminal reaches the command as well; it is recorded to its end.
                    matches!(child.try_wait(), Ok(Some(_)) | Err(_))
                }
                None => stop.load(Ordering::Relaxed) || self.all_are_over(),
            };
            let now = MonotonicClock.now();
            self.recording.poll(now).map_err(|error| Failure::new(error, ""))?;
            match &child {
                _ if over => return Ok(()),
                Some(child) if now >= end && !told => {
                    interrupt_command(child);
                    (told, end) = (true, now.saturating_add(GRACE));
                }
                _ if now >= end => return Ok(()),
                _ => {}
            }
            std::thread::sleep(std::time::Duration::from_nanos(LOOK.as_nanos() as u64));
        }
        unreachable!("looks are endless")
    }

    /// Follows streams that the command, or what it started, has published since the last search.
    fn search(&mut self, command: u32) {
        // A directory that cannot be read now can be at the next search.
        for (pid, path) in self.directory.published().unwrap_or_default() {
            if self.seen.contains(&path) {
                continue;
            }
            if !descends_from(pid, command) {
                self.seen.insert(path);
                continue;
            }
            match self.recording.follow(&path, &self.events, Start::Oldest) {
                Ok(()) => {}
                Err(error) if error.is_premature() => continue,
                Err(error) => eprintln!("warning: {error}"),
            }
            self.seen.insert(path);
        }
    }

    fn all_are_over(&self) -> bool {
        let lives = |found: Listed| found.liveness == Liveness::Alive;
        !self.attached.iter().any(|target| self.directory.find(target).is_ok_and(lives))
    }
}

fn start(command: &[OsString]) -> Result<Option<Child>, Failure> {
    let Some((program, arguments)) = command.split_first() else { return Ok(None) };
    let child = Command::new(program).args(arguments).spawn();
    child.map(Some).map_err(|error| {
        Failure::new(
            format!("cannot start {}: {error}", program.display()),
            "give the program and its arguments after `--`",
        )
    })
}

/// Tells the command to end, as Ctrl-C would. That it has ended already is as well.
fn interrupt_command(command: &Child) {
    if let Some(pid) = i32::try_from(command.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::INT);
    }
}

/// Waits for the command, which has ended or had its time for that.
fn finish(mut command: Child) -> Result<ExitStatus, Failure> {
    // One that has ended cannot be killed, which is as well.
    let _ = command.kill();
    command.wait().map_err(|error| Failure::new(format!("cannot wait for the command: {error}"), ""))
}

fn verdict(status: ExitStatus) -> Verdict {
    if status.success() {
        return Verdict::Fine;
    }
    eprintln!("note: the command ended with {status}");
    Verdict::Negative
}

/// On standard error, because standard output is the command's.
fn tell(options: &Options, recorded: &Recorded) {
    let kernel = recorded.kernel.as_ref();
    let of_kernel =
        kernel.map_or(String::new(), |totals| format!(", {} of them the kernel's", totals.records));
    eprintln!("{}: {} records{of_kernel}", options.out.display(), recorded.records);
    for (count, what) in [
        (recorded.lost, "records of programs were overwritten before they could be read"),
        (kernel.map_or(0, KernelTotals::lost_in_all), "kernel events were lost"),
        (recorded.late, "records came too late to be put in order"),
    ] {
        if count > 0 {
            eprintln!("warning: {count} {what}; the trace says where");
        }
    }
}
