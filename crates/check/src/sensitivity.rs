//! By how much execution times may grow, and periods shrink, before the verdict on a system changes.
//!
//! Bisection over the whole analysis: every factor is a system of its own, sorted into lanes anew. In FIFO lanes bounds
//! grow with execution times and shrink with periods; in deadline and laxity lanes, and where a strategy sorts by
//! period, an order may change on the way. The answer is therefore a factor that holds next to one that does
//! not, but a larger one may hold again.
//!
//! Threads that run in bursts have margins too; they hold if each burst is done when the next one comes.

use super::tasks_that_hold;
use serde::Serialize;
use std::collections::HashSet;
use std::convert::Infallible;
use talea_analysis::Effort;
use talea_analysis::sensitivity::{Factor, largest_factor, shortest_period};
use talea_analysis::system::{analyse, hold};
use talea_model::{Description, Execution, OperationId, System, Task, ThreadWork};
use talea_policy::strategy::plan_lanes_of;
use talea_time::{Duration, Work};

/// Steps that the analysis of one variant may take.
const EFFORT: u64 = 5_000_000;

/// Steps that all variants together may take: some seconds. What is left then is not computed.
const TOGETHER: u64 = 500_000_000;

/// Steps that making one operation's variant is worth: describing, validating, sorting into lanes.
const VARIANT: u64 = 200;

/// Factors are found to this many parts per million.
const RESOLUTION_PPM: u64 = 1_000;

/// No factor beyond this one is tried.
const LARGEST: u64 = 1_000;

/// The margins of a system. Factors are in parts per million of the declared execution times, to a thousandth.
#[derive(Clone, Debug, Serialize)]
pub struct Sensitivity {
    /// What must hold for the margins of single tasks.
    pub protected: Vec<String>,
    /// Largest factor for all execution times with which every critical task holds; `None` without critical tasks, or
    /// if not even a thousandth does.
    pub critical_ppm: Option<u64>,
    /// Largest factor for all execution times with which every task holds.
    pub all_ppm: Option<u64>,
    /// The first tasks by number, then the first threads with bursts; all of them, unless that was too costly.
    pub tasks: Vec<Margin>,
    /// How many of them were left out because the search was too costly.
    pub left_out: usize,
}

/// The margins of one task.
#[derive(Clone, Debug, Serialize)]
pub struct Margin {
    /// Its name.
    pub name: String,
    /// Largest factor for its own execution times with which the protected tasks and it hold.
    pub wcet_ppm: Option<u64>,
    /// Its shortest period with which they do, to a thousandth of the present one; of a task with a trigger its shortest separation. A deadline
    /// equal to the period goes with it, unless a task inherits it that others release as well.
    pub shortest_period_ns: Option<i64>,
    /// Whether it has a period or a separation that could be another. Others come as often as what triggers them.
    pub has_period: bool,
}

/// What a margin may be of, by number among the tasks and the threads behind them.
struct Subjects<'a> {
    system: &'a System,
    /// Tasks, and threads that run in bursts.
    of_interest: Vec<usize>,
}

impl<'a> Subjects<'a> {
    fn new(system: &'a System) -> Self {
        let tasks = system.tasks.len();
        let bursts = |thread: &usize| matches!(system.threads[*thread].work, ThreadWork::Bursts { .. });
        let threads = (0..system.threads.len()).filter(bursts).map(|thread| tasks + thread);
        Subjects { system, of_interest: (0..tasks).chain(threads).collect() }
    }

    fn all(&self) -> usize {
        self.system.tasks.len() + self.system.threads.len()
    }

    fn name(&self, subject: usize) -> &str {
        match self.system.tasks.get(subject) {
            Some(task) => &task.name,
            None => &self.system.threads[subject - self.system.tasks.len()].name,
        }
    }
}

/// Finds the margins. `progress` learns how many of how many searches are done.
pub fn sensitivity(system: &System, mut progress: impl FnMut(usize, usize)) -> Sensitivity {
    let subjects = Subjects::new(system);
    let tasks_only: Vec<bool> = (0..subjects.all()).map(|subject| subject < system.tasks.len()).collect();
    let mut critical = vec![false; subjects.all()];
    for (critical, task) in critical.iter_mut().zip(&system.tasks) {
        *critical = task.criticality.is_critical();
    }
    let now = holding(system);
    let critical_hold = critical.iter().zip(&now).all(|(critical, holds)| !critical || *holds);
    // What holds must go on to hold; what is critical must begin to.
    let protected = if critical_hold { now } else { critical.clone() };
    let searches = 2 + 2 * subjects.of_interest.len();
    let mut done = 0;
    let mut step = || {
        done += 1;
        progress(done, searches);
    };
    let mut left = TOGETHER;
    let critical_ppm = critical.contains(&true).then(|| growth(system, None, &critical, &mut left)).flatten();
    step();
    let all_ppm = tasks_only.contains(&true).then(|| growth(system, None, &tasks_only, &mut left)).flatten();
    step();
    let mut tasks = Vec::new();
    for &subject in &subjects.of_interest {
        let mut targets = protected.clone();
        targets[subject] = true;
        let wcet_ppm = growth(system, Some(subject), &targets, &mut left);
        step();
        let shortest_period_ns = period(system, subject, &targets, &mut left).map(Duration::as_nanos);
        step();
        if left == 0 {
            break;
        }
        tasks.push(Margin {
            name: subjects.name(subject).into(),
            wcet_ppm,
            shortest_period_ns,
            has_period: system.tasks.get(subject).is_none_or(has_period),
        });
    }
    let left_out = subjects.of_interest.len() - tasks.len();
    let names = (0..subjects.all()).filter(|subject| protected[*subject]);
    Sensitivity {
        protected: names.map(|subject| subjects.name(subject).to_owned()).collect(),
        critical_ppm,
        all_ppm,
        tasks,
        left_out,
    }
}

/// Which tasks hold, and of which threads every burst is done when the next one comes.
fn holding(system: &System) -> Vec<bool> {
    let all = system.tasks.len() + system.threads.len();
    let bounds =
        plan_lanes_of(system).ok().and_then(|plans| analyse(system, &plans, &mut Effort::new(EFFORT)).ok());
    let Some(bounds) = bounds else { return vec![false; all] };
    let of_thread = |(index, thread): (usize, &talea_model::Thread)| match thread.work {
        ThreadWork::Bursts { period, .. } => {
            bounds.tasks[system.tasks.len() + index].response.is_ok_and(|bound| bound <= period)
        }
        _ => false,
    };
    let threads = system.threads.iter().enumerate().map(of_thread);
    tasks_that_hold(system, &bounds).into_iter().chain(threads).collect()
}

/// Whether the changed description is a system in which all `targets` hold, as far as the steps that are `left` say.
fn holds(description: Description, targets: &[bool], left: &mut u64) -> bool {
    let Ok(system) = System::new(description) else { return false };
    let Ok(plans) = plan_lanes_of(&system) else { return false };
    *left = left.saturating_sub(VARIANT * system.operations().len() as u64);
    let mut effort = Effort::new(EFFORT.min(*left));
    let holds = hold(&system, &plans, targets, &mut effort).unwrap_or(false);
    *left -= effort.spent();
    holds
}

/// The largest factor for the execution times of all tasks, or of one task or thread.
fn growth(system: &System, only: Option<usize>, targets: &[bool], left: &mut u64) -> Option<u64> {
    let with = |thousandths: Factor| {
        let factor = Factor::from_ppm(thousandths.ppm() * RESOLUTION_PPM);
        Ok::<bool, Infallible>(match grown(system, only, factor) {
            Some(description) => holds(description, targets, left),
            None => false,
        })
    };
    // A job that alone takes longer than its deadline cannot hold.
    let whole_deadline = |(index, task): (usize, &talea_model::Task)| {
        let grows = targets[index] && only.is_none_or(|only| only == index);
        let longest = task.subtasks.iter().map(|subtask| subtask.wcet.as_nanos()).max().filter(|_| grows)?;
        Some(u64::try_from(task.deadline.as_nanos() / longest.max(1)).unwrap_or(0) + 1)
    };
    let limit =
        system.tasks.iter().enumerate().filter_map(whole_deadline).min().unwrap_or(LARGEST).min(LARGEST);
    let limit = Factor::from_ppm(limit * 1_000_000 / RESOLUTION_PPM);
    let Ok(found) = largest_factor(limit, with);
    found.map(|factor| factor.ppm() * RESOLUTION_PPM)
}

/// The description with the times multiplied of all tasks, or of one task or thread; `None` where one cannot be represented.
fn grown(system: &System, only: Option<usize>, factor: Factor) -> Option<Description> {
    let mut description = Description::clone(system);
    let tasks = description.tasks.len();
    for (index, task) in description.tasks.iter_mut().enumerate() {
        if only.is_none_or(|only| only == index) {
            for subtask in &mut task.subtasks {
                subtask.wcet = scaled(subtask.wcet, factor)?;
                subtask.exec = scaled_all(&subtask.exec, factor)?;
            }
        }
    }
    for (index, thread) in description.threads.iter_mut().enumerate() {
        if only == Some(tasks + index)
            && let ThreadWork::Bursts { burst, .. } = &mut thread.work
        {
            *burst = scaled_all(burst, factor)?;
        }
    }
    Some(description)
}

/// A time of zero stays one; others never become zero.
fn scaled(work: Work, factor: Factor) -> Option<Work> {
    if work == Work::ZERO { Some(work) } else { factor.of(work) }
}

fn scaled_all(exec: &Execution, factor: Factor) -> Option<Execution> {
    Some(match exec {
        Execution::Constant(work) => Execution::Constant(scaled(*work, factor)?),
        Execution::Uniform(low, high) => Execution::Uniform(scaled(*low, factor)?, scaled(*high, factor)?),
        Execution::List(list) => {
            Execution::List(list.iter().map(|work| scaled(*work, factor)).collect::<Option<_>>()?)
        }
    })
}

/// Whether a task has a period or a separation of its own.
fn has_period(task: &Task) -> bool {
    task.trigger.is_none() || task.separation.is_some()
}

/// Whether a task inherits the deadline of this one, and may have that of others, which have to have the same.
fn shares_deadline(system: &System, task: usize) -> bool {
    let of = |operation: OperationId| system.operations()[operation.index()].task;
    let releasers = |heir: usize| -> Vec<usize> {
        let output = system.trigger_output(heir).map(|output| system.outputs()[output.index()].operation);
        output.into_iter().chain(system.subscribed_by(heir).map(|(site, _)| site.operation)).map(of).collect()
    };
    let heirs = system.tasks.iter().enumerate().filter(|(_, task)| task.inherits_deadline);
    let heirs: Vec<(usize, Vec<usize>)> = heirs.map(|(heir, _)| (heir, releasers(heir))).collect();
    let mut having = HashSet::from([task]);
    loop {
        let has_it =
            |(_, releasers): &&(usize, Vec<usize>)| releasers.iter().any(|from| having.contains(from));
        let more: Vec<usize> = heirs.iter().filter(has_it).map(|(heir, _)| *heir).collect();
        let known = having.len();
        having.extend(more);
        if having.len() == known {
            break;
        }
    }
    let has_another = |releasers: &Vec<usize>| releasers.iter().any(|from| !having.contains(from));
    heirs.iter().any(|(heir, releasers)| having.contains(heir) && has_another(releasers))
}

/// The shortest period of one task or thread, or separation of a task with a trigger.
fn period(system: &System, subject: usize, targets: &[bool], left: &mut u64) -> Option<Duration> {
    let tasks = system.tasks.len();
    let now = match system.tasks.get(subject) {
        Some(task) if !has_period(task) => return None,
        Some(task) => task.period,
        None => match system.threads[subject - tasks].work {
            ThreadWork::Bursts { period, .. } => period,
            _ => return None,
        },
    };
    let keeps_deadline = subject < tasks && shares_deadline(system, subject);
    let grain = (now.as_nanos() / 1_000).max(1);
    let with = |grains: Duration| {
        let mut description = Description::clone(system);
        if let Some(changed) = description.tasks.get_mut(subject) {
            if changed.deadline == changed.period && !keeps_deadline {
                changed.deadline = grains * grain;
            }
            changed.period = grains * grain;
            if let Some(separation) = &mut changed.separation {
                separation.separation = grains * grain;
            }
        } else if let ThreadWork::Bursts { period, .. } = &mut description.threads[subject - tasks].work {
            *period = grains * grain;
        }
        Ok::<bool, Infallible>(holds(description, targets, left))
    };
    let most = Duration::from_nanos(now.as_nanos() / grain);
    let Ok(found) = shortest_period(Duration::from_nanos(1)..=most, with);
    // The present period need not be a whole number of grains.
    found
        .map(|grains| grains * grain)
        .or_else(|| holds(Description::clone(system), targets, left).then_some(now))
}
