//! Random systems across everything that Talea has, held against judges that share as little as possible with what they judge.
//!
//! Single features have property tests of their own. What was wrong so far stood where features cross, so a trial here draws all of them
//! at once and does what a user does: it writes a file, checks it, simulates it, runs it, and asks of the trace what happened.
//!
//! | Trial | What is drawn | What must hold |
//! |---|---|---|
//! | [`Kind::Simulated`] | nodes with lanes or hierarchies, tasks, threads, protocols, links, costs, processors | the bounds of the check, the rules, the promises by two judges, exact explanations, the same records again |
//! | [`Kind::Files`] | system files, and files of rt-app, SimSo and CSV tables, with mistakes | a verdict or problems with lines, never a panic |
//! | [`Kind::Traces`] | traces with altered bytes | an answer or an error, never a panic |
//! | [`Kind::Constraints`] | constraints on events with mistakes | a problem with a place, or an answer to each event, which what is printed gives, too |
//! | [`Kind::Events`] | events as bytes, altered | an event of these bytes or an error, never a panic |
//! | [`Kind::Threads`] | small systems on real threads, some killed at any moment | the rules in what was recorded, and nothing left running |
//! | [`Kind::Replays`] | small systems with channels on real threads, with code and a channel of the program | a replay hands the code what it had, and names the job that does otherwise |
//! | [`Kind::Bounds`] | small systems on real threads | no response is longer than the check says of this machine, but for what nobody had |
//! | [`Kind::Changes`] | hierarchies with programs on real threads, and what `talea ctl` changes meanwhile | every change made or refused, the rules, nothing left running |
//!
//! A trial is a function of its seed; a finding names it, so that it can be repeated alone.

#![forbid(unsafe_code)]

mod draw;
mod trial;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use trial::Fault;

/// What can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Kind {
    /// Systems, checked and simulated.
    Simulated,
    /// System files with mistakes.
    Files,
    /// Traces with altered bytes.
    Traces,
    /// Constraints on events with mistakes, a hundred each.
    Constraints,
    /// Events as bytes, altered, a hundred each.
    Events,
    /// Runs on real threads.
    Threads,
    /// Programs on real threads of this process, replayed.
    Replays,
    /// Runs on real threads against the bounds of this machine.
    Bounds,
    /// Hierarchies on real threads, with programs among them, changed while they run.
    Changes,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 9] = [
        Kind::Simulated,
        Kind::Files,
        Kind::Traces,
        Kind::Constraints,
        Kind::Events,
        Kind::Threads,
        Kind::Replays,
        Kind::Bounds,
        Kind::Changes,
    ];

    /// How it is called.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Simulated => "simulated",
            Kind::Files => "files",
            Kind::Traces => "traces",
            Kind::Constraints => "constraints",
            Kind::Events => "events",
            Kind::Threads => "threads",
            Kind::Replays => "replays",
            Kind::Bounds => "bounds",
            Kind::Changes => "changes",
        }
    }
}

/// What trials of one kind came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Trials made.
    pub trials: u64,
    /// Those of which what was drawn was refused, with a reason.
    pub refused: u64,
    /// What was held against something, by name: bounds, promises, explanations, records.
    pub held: Vec<(&'static str, u64)>,
}

impl Counts {
    fn hold(&mut self, what: &'static str, count: u64) {
        match self.held.iter_mut().find(|(name, _)| *name == what) {
            Some((_, sum)) => *sum += count,
            None => self.held.push((what, count)),
        }
    }

    /// How much was held against something of this name.
    pub fn of(&self, what: &str) -> u64 {
        self.held.iter().find(|(name, _)| *name == what).map_or(0, |(_, count)| *count)
    }
}

/// Something that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The kind of trial.
    pub kind: Kind,
    /// Its seed.
    pub seed: u64,
    /// What does not hold.
    pub what: String,
    /// The system, as a file, or the bytes that were tried.
    pub input: Vec<u8>,
}

/// Where trials find what they need.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The command, for runs on threads.
    pub talea: Option<PathBuf>,
    /// The profile of this machine, for bounds.
    pub machine: Option<PathBuf>,
}

/// Makes the trial of this kind and seed.
///
/// # Errors
/// What does not hold, or a panic.
pub fn attempt(
    kind: Kind,
    seed: u64,
    around: &Surroundings,
    counts: &mut Counts,
) -> Result<(), Box<Finding>> {
    counts.trials += 1;
    // Each panic is a finding, said with its input.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        PLACE.with(|last| *last.borrow_mut() = place);
    }));
    let outcome = catch_unwind(AssertUnwindSafe(|| match kind {
        Kind::Simulated => trial::simulated::attempt(seed, counts),
        Kind::Files => trial::inputs::files(seed, counts),
        Kind::Traces => trial::inputs::traces(seed, counts),
        Kind::Constraints => trial::strangers::constraints(seed, counts),
        Kind::Events => trial::strangers::events(seed, counts),
        Kind::Threads => trial::threads::attempt(seed, around, counts),
        Kind::Replays => trial::replays::attempt(seed, counts),
        Kind::Bounds => trial::bounds::attempt(seed, around, counts),
        Kind::Changes => trial::changes::attempt(seed, around, counts),
    }));
    let fault = match outcome {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(fault)) => fault,
        Err(panic) => Fault {
            what: format!("a panic at {}: {}", PLACE.take(), text_of(&*panic)),
            input: draw::system(seed, draw::Size::Large)
                .map(|system| system.to_toml().into_bytes())
                .unwrap_or_default(),
        },
    };
    Err(Box::new(Finding { kind, seed, what: fault.what, input: fault.input }))
}

std::thread_local! {
    /// Where this thread panicked last.
    static PLACE: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a text".into())
}
