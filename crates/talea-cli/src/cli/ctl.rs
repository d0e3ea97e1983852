//! `talea ctl`: live control of running hierarchies.

mod asks;
mod show;

use super::Outcome as CommandOutcome;
use super::failure::{Failure, Verdict};
use super::output;
use asks::{Asked, Wish, child, tie};
use clap::{Args, Subcommand};
use serde_json::json;
use talea_guarantee::guarantee::Guarantee;
use talea_manage::control::protocol::{
    Answer, Child, Command, Insistence, Outcome, ParentRequest, Program, VERSION,
};
use talea_manage::control::{Client, ClientError, Controllable, FindError, Sockets};
use talea_model::{ChildProcesses, SchedulerKind};
use talea_time::Duration;

/// Look at a running hierarchy of schedulers, and change it while it runs
///
/// The run is one of `talea run` with a system that has [[scheduler]] tables or [[channel]]s, started by the same user; or a program that tells what its
/// channels count. Where there is no hierarchy of schedulers only `statistics` is answered. Every change is checked
/// first: if a thread would no longer receive what it requires, the change is refused with the reason and the smallest change that
/// would be possible. A change is made as a whole or not at all.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = false,
    after_help = "\
Examples:
  talea ctl                  # the runs that can be controlled
  talea ctl multimedia list
  talea ctl multimedia replace PS --kind sfq --quantum 5ms
  talea ctl multimedia add-thread build --under PS --share 1 -- xz -9 big.tar
  talea ctl 4711 reserve build --under RES --guarantee \"RESBH 2ms 40ms\"
  talea ctl 4711 release build
  talea ctl 4711 remove build

Exit status: 0 done; 1 refused; 2 usage error, or no run, thread or scheduler of that name."
)]
pub struct Options {
    /// The run, by process number, name or PID.NAME; without it, all runs that can be controlled are shown
    #[arg(value_name = "PID|NAME")]
    run: Option<String>,
    #[command(subcommand)]
    action: Option<Action>,
    /// Print the answer as JSON instead
    #[arg(long, global = true)]
    json: bool,
    /// Make the change even if threads then receive less than they require, or if it takes in process 1, a thread of the kernel, the
    /// leader of the run's session or a process that has started the run; what a scheduler has no room for is refused all the same
    #[arg(long, global = true)]
    force: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Show the hierarchy: what each thread and scheduler is promised, and what it has received
    #[command(after_help = "Example:\n  talea ctl multimedia list")]
    List,
    /// Add a scheduler without children
    #[command(
        after_help = "Example:\n  talea ctl multimedia add-scheduler BG --kind round-robin --under \"FP=priority 0\""
    )]
    AddScheduler {
        /// The name of the new scheduler
        name: String,
        #[command(flatten)]
        new: NewScheduler,
        #[command(flatten)]
        place: Places,
    },
    /// Add a thread: a command to start, or a process or thread that runs already
    #[command(after_help = "\
Examples:
  talea ctl multimedia add-thread build --under PS --share 1 -- xz -9 big.tar
  talea ctl multimedia add-thread player --under RES --guarantee \"RESBH 5ms 33ms\" --pid 4711
  talea ctl multimedia add-thread decoder --under FP --priority 3 --tid 4713")]
    AddThread {
        /// The name of the new thread
        name: String,
        #[command(flatten)]
        place: OneParent,
        /// The guarantee that it must receive, such as "PSBE 0.4 60ms"; later changes that would break it are refused
        #[arg(long, value_name = "GUARANTEE")]
        requires: Option<Guarantee>,
        #[command(flatten)]
        there: There,
        /// A command, which is started in the folder and with the environment of the run
        #[arg(
            last = true,
            required_unless_present_any = ["pid", "tid"],
            conflicts_with_all = ["pid", "tid"],
            value_name = "COMMAND"
        )]
        command: Vec<String>,
    },
    /// Remove a thread, which goes on as an ordinary process, or a scheduler without children
    #[command(after_help = "Example:\n  talea ctl multimedia remove build")]
    Remove {
        /// The thread or scheduler
        name: String,
    },
    /// Put a thread, or a scheduler with all below it, under another scheduler
    #[command(after_help = "Example:\n  talea ctl multimedia move build --under PS --share 1")]
    Move {
        /// The thread or scheduler
        name: String,
        #[command(flatten)]
        place: Places,
    },
    /// Move a thread under a scheduler of reservations, until `release`
    #[command(
        after_help = "Example:\n  talea ctl multimedia reserve build --under RES --guarantee \"RESBH 2ms 40ms\""
    )]
    Reserve {
        /// The thread
        name: String,
        #[command(flatten)]
        place: OneParent,
    },
    /// Change what a thread or scheduler asks of the scheduler above it
    #[command(after_help = "Example:\n  talea ctl multimedia change build --guarantee \"RESBH 1ms 40ms\"")]
    Change {
        /// The thread or scheduler that asks
        name: String,
        /// The scheduler above, if there are several
        #[arg(long, value_name = "SCHEDULER")]
        of: Option<String>,
        #[command(flatten)]
        asked: Asked,
    },
    /// Move a thread back to where it was before `reserve`
    #[command(after_help = "Example:\n  talea ctl multimedia release build")]
    Release {
        /// The thread
        name: String,
    },
    /// Ask a scheduler that plans (rialto, spring) for one piece of work of a thread below it
    #[command(after_help = "Example:\n  talea ctl multimedia constrain decoder --work 5ms --within 30ms")]
    Constrain {
        /// The thread
        name: String,
        /// The worst case of the piece, as processor time
        #[arg(long, value_name = "TIME")]
        work: Duration,
        /// How long from now it has to be done
        #[arg(long, value_name = "TIME")]
        within: Duration,
        /// How long from now it begins at the earliest
        #[arg(long, value_name = "TIME", default_value = "0ms")]
        after: Duration,
    },
    /// End the piece of work asked for last before its time
    #[command(after_help = "Example:\n  talea ctl multimedia end-constraint decoder")]
    EndConstraint {
        /// The thread
        name: String,
    },
    /// Show what channels count, and who is connected, by the names of the notification service's monitoring
    ///
    /// Of a run, the [[channel]]s of its system file; of a program, those that it tells of (MonitorServer). Numbers are as they are now, times in nanoseconds; --json has mean, sum of squares, least and greatest of
    /// all that anybody has read as well.
    #[command(after_help = "\
Examples:
  talea ctl plant statistics
  talea ctl plant statistics plant/motion/OldestEvent plant/motion/ConsumerNames")]
    Statistics {
        /// A statistic, or a factory or channel of which all are meant; everything if nothing is named
        #[arg(value_name = "NAME")]
        names: Vec<String>,
    },
    /// Replace a scheduler by one of another kind, or with another quantum
    ///
    /// The threads and schedulers below it run on and keep what they ask for, unless --child says otherwise.
    #[command(after_help = "\
Examples:
  talea ctl multimedia replace PS --kind sfq --quantum 5ms
  talea ctl shares replace PS --kind reservation --child \"encoder=RESBH 20ms 40ms\" \\
    --child \"indexer=RESBH 75ms 200ms\" --child \"editor=RESBH 5ms 50ms\"
  talea ctl shares replace PS --kind explicit-plan --set plan=@examples/shares-plan.csv --set cycle=40ms")]
    Replace {
        /// The scheduler to replace
        scheduler: String,
        #[command(flatten)]
        new: NewScheduler,
        /// What a child asks the new scheduler for, if something else than before: "words=share 2", "words=priority 3",
        /// "words=RESBH 1ms 40ms" or "words=nothing"; can be given several times
        #[arg(long = "child", value_name = "NAME=REQUEST", value_parser = child)]
        children: Vec<Child>,
    },
}

/// A scheduler to come.
#[derive(Args)]
struct NewScheduler {
    /// The kind of scheduler, such as fixed-priority, proportional-share, eevdf or reservation (docs/policies.md has all)
    #[arg(long, value_parser = kind)]
    kind: String,
    /// How long it lets a child run before it chooses anew, for kinds that have a quantum [default: that of the scheduler that it replaces,
    /// else 10ms]
    #[arg(long, value_name = "TIME")]
    quantum: Option<Duration>,
    /// What else is said of it, as the keys of system files: effort=1000; a value can be the text of a file: plan=@plan.csv
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
}

/// One parent.
#[derive(Args)]
struct OneParent {
    /// The scheduler above
    #[arg(long, value_name = "SCHEDULER")]
    under: String,
    #[command(flatten)]
    asked: Asked,
}

/// One parent or, for joins, several.
#[derive(Args)]
struct Places {
    /// The scheduler above; for a scheduler of kind join several times, as "RES=RESBH 10ms 20ms" or "FP=priority 2"
    #[arg(long, required = true, value_name = "SCHEDULER[=REQUEST]", value_parser = tie)]
    under: Vec<(String, Option<Wish>)>,
    #[command(flatten)]
    asked: Asked,
}

impl OneParent {
    fn tie(&self) -> ParentRequest {
        ParentRequest { scheduler: self.under.clone(), asks: self.asked.asks() }
    }
}

impl Places {
    fn ties(&self) -> Result<Vec<ParentRequest>, Failure> {
        let plain = self.under.iter().filter(|(_, wish)| wish.is_none()).count();
        if self.asked.is_anything() && plain != 1 {
            return Err(Failure::new(
                "--share, --priority and --guarantee say what is asked of one --under, and it is not clear of which",
                "write what is asked of each behind its name: --under \"RES=RESBH 10ms 20ms\" --under \"FP=priority 2\"",
            ));
        }
        let tie = |(scheduler, wish): &(String, Option<Wish>)| ParentRequest {
            scheduler: scheduler.clone(),
            asks: wish.as_ref().map_or_else(|| self.asked.asks(), |wish| wish.0.clone()),
        };
        Ok(self.under.iter().map(tie).collect())
    }
}

/// What runs already.
#[derive(Args)]
struct There {
    /// A running process; all of its threads, and the processes that it has started, are scheduled as one
    #[arg(long)]
    pid: Option<u32>,
    /// Beside --pid: with all processes that it has started (all), or with those that it starts from now on (later)
    #[arg(long, requires = "pid", value_name = "all|later", default_value_t, hide_default_value = false)]
    children: ChildProcesses,
    /// One thread of a running process, without the other threads
    #[arg(long, conflicts_with = "pid")]
    tid: Option<u32>,
}

impl There {
    fn program(&self) -> Option<Program> {
        let process = self.pid.map(|number| Program::Process { number, children: self.children });
        process.or(self.tid.map(Program::Thread))
    }
}

impl Action {
    fn command(&self) -> Result<Command, Failure> {
        Ok(match self {
            Action::List => Command::List,
            Action::AddScheduler { name, new, place } => Command::AddScheduler {
                name: name.clone(),
                kind: new.kind.clone(),
                quantum: new.quantum,
                settings: new.settings.iter().cloned().collect(),
                under: place.ties()?,
            },
            Action::AddThread { name, place, requires, there, command } => Command::AddThread {
                name: name.clone(),
                program: there.program().unwrap_or_else(|| Program::Command(command.clone())),
                requires: requires.clone(),
                under: place.tie(),
            },
            Action::Remove { name } => Command::Remove { name: name.clone() },
            Action::Move { name, place } => Command::Move { name: name.clone(), under: place.ties()? },
            Action::Reserve { name, place } => Command::Reserve { name: name.clone(), under: place.tie() },
            Action::Change { name, of, asked } => {
                Command::Change { name: name.clone(), of: of.clone(), asks: asked.asks() }
            }
            Action::Release { name } => Command::Release { name: name.clone() },
            Action::Constrain { name, work, within, after } => {
                Command::Constrain { name: name.clone(), after: *after, within: *within, work: *work }
            }
            Action::EndConstraint { name } => Command::EndConstraint { name: name.clone() },
            Action::Statistics { names } => Command::Statistics { names: names.clone() },
            Action::Replace { scheduler, new, children } => Command::Replace {
                name: scheduler.clone(),
                kind: new.kind.clone(),
                quantum: new.quantum,
                settings: new.settings.iter().cloned().collect(),
                children: children.clone(),
            },
        })
    }
}

/// The name of a kind of scheduler that can be added to a running hierarchy: any but `lanes`, which can only be part of the system file.
/// Whether the kind exists is decided by the run, whose program may have registered its own.
fn kind(text: &str) -> Result<String, String> {
    if text.parse() == Ok(SchedulerKind::LANES) {
        let known = SchedulerKind::in_files().into_iter().filter(|kind| *kind != SchedulerKind::LANES);
        let known: Vec<&str> = known.map(SchedulerKind::name).collect();
        return Err(format!("it is none of {}", known.join(", ")));
    }
    Ok(text.into())
}

/// A key and its value, which is the text of a file if it begins with `@`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE, such as effort=1000")?;
    let value = match value.strip_prefix('@') {
        Some(path) => talea_text::read::text(path.as_ref())
            .map_err(|error| format!("{path}: {error}; {}", error.remedy()))?,
        None => value.to_owned(),
    };
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

pub fn main(options: &Options) -> CommandOutcome {
    let sockets = Sockets::of_user().map_err(|error| Failure::new(error, ""))?;
    let Some(which) = &options.run else {
        if options.action.is_some() {
            return Err(Failure::new(
                "it is not said which run is to be controlled",
                "name it first: talea ctl NAME list; `talea ctl` shows those there are",
            ));
        }
        return all(&sockets.list().map_err(|error| unfound(&error))?, options);
    };
    let run = sockets.find(which).map_err(|error| unfound(&error))?;
    let command = options.action.as_ref().map_or(Ok(Command::List), Action::command)?;
    let insistence = if options.force { Insistence::Forced } else { Insistence::Careful };
    let outcome = Client::of(&run).ask(&command, insistence).map_err(|error| unanswered(&error))?;
    if options.json {
        output::json(&Answer { version: VERSION, outcome: outcome.clone() })?;
    }
    match outcome {
        Outcome::Listing(listing) if !options.json => show::listing(&run, &listing)?,
        Outcome::Done(done) if !options.json => show::done(&done)?,
        Outcome::Statistics(statistics) if !options.json => show::statistics(&statistics)?,
        Outcome::Listing(_) | Outcome::Statistics(_) | Outcome::Done(_) => {}
        Outcome::Refused(refusal) => {
            if !options.json {
                show::refusal(&refusal);
            }
            return Ok(Verdict::Negative);
        }
        Outcome::Misstated(message) => {
            return Err(Failure::new(message, remedy(options.action.as_ref(), which)));
        }
        Outcome::Busy => return Err(Failure::new("too many others control the run", "try again")),
        Outcome::Ended => return Err(Failure::new("the run has ended", "")),
    }
    Ok(Verdict::Fine)
}

/// How long a run may take to say that it can be controlled.
const LISTED_WITHIN: std::time::Duration = std::time::Duration::from_secs(2);

fn all(runs: &[Controllable], options: &Options) -> CommandOutcome {
    // One that is stopped does not keep the others from being listed.
    let asked = |run: &Controllable| {
        Client::of(run).with_patience(LISTED_WITHIN).ask(&Command::List, Insistence::Careful)
    };
    let obeys = |run: &Controllable| why_not(&asked(run));
    if options.json {
        let run = |run: &Controllable| json!({ "pid": run.pid, "name": run.name, "path": run.path, "uncontrolled": obeys(run) });
        output::json(&runs.iter().map(run).collect::<Vec<_>>())?;
        return Ok(Verdict::Fine);
    }
    if runs.is_empty() {
        output::print(
            "nothing to control: no program of yours runs a hierarchy of schedulers or tells what its channels count",
        )?;
        return Ok(Verdict::Fine);
    }
    let mut sheet = output::Sheet::new(3, &["pid", "name", "can be changed"]);
    for run in runs {
        let changed = obeys(run).map_or("yes".into(), |reason| format!("no: {reason}"));
        sheet.row(vec![run.pid.to_string(), run.name.clone(), changed]);
    }
    output::print(&sheet.render())?;
    Ok(Verdict::Fine)
}

/// Why a run that answers like this cannot be looked at and changed, if it cannot.
fn why_not(answer: &Result<Outcome, ClientError>) -> Option<String> {
    match answer {
        Ok(Outcome::Refused(refusal)) => {
            let reason = refusal.reasons.first().map_or("it refuses", String::as_str);
            // What follows the colon is an explanation.
            let (fact, remedy) = (reason.split(':').next().unwrap_or(reason), refusal.remedy.as_deref());
            Some(remedy.map_or(fact.into(), |remedy| format!("{fact}; {remedy}")))
        }
        Ok(Outcome::Ended) => Some("it has ended".into()),
        Ok(_) => None,
        Err(error) => Some(error.to_string()),
    }
}

/// What helps against a misstatement.
fn remedy(action: Option<&Action>, which: &str) -> String {
    match action {
        // What is wrong may be something else than a name; then the message says what to write.
        Some(
            Action::Replace { .. }
            | Action::AddScheduler { .. }
            | Action::EndConstraint { .. }
            | Action::Statistics { .. },
        ) => String::new(),
        _ => format!("`talea ctl {which} list` shows who there is"),
    }
}

fn unfound(error: &FindError) -> Failure {
    let help = match error {
        FindError::Unknown { .. } => "`talea ctl` shows the runs that can be controlled",
        FindError::Ambiguous { .. } | FindError::Place(_) | FindError::Io { .. } => "",
    };
    Failure::new(error, help)
}

fn unanswered(error: &ClientError) -> Failure {
    Failure::new(error, "`talea ctl` shows the runs that can be controlled")
}
