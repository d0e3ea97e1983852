//! Start offsets under non-preemptive EDF, tried out in the simulator.
//!
//! From the longest offset on, arrivals repeat with the hyperperiod, and the load is at most 1; so what can happen
//! does within a few hyperperiods.

use std::collections::HashMap;
use talea_analysis::Task;
use talea_model::{LaneDispatch, Late, Strategy, System, TaskBuilder};
use talea_record::{Event, JobId, Record, Sink};
use talea_sim::Simulation;
use talea_time::{Duration, Instant};

/// More offset vectors than this are not tried.
const VECTORS_MAX: i64 = 100_000;
const HYPERPERIODS: i64 = 3;

/// Whether a deadline is missed if each task first arrives at its offset, in nanoseconds.
pub(super) fn lead_to_a_miss(tasks: &[Task], offsets: &[i64]) -> Result<bool, String> {
    if tasks.len() != offsets.len() {
        return Err("there is not one offset for each task".into());
    }
    let worst = worst_responses(tasks, offsets)?;
    Ok(worst.iter().zip(tasks).any(|(worst, task)| *worst > task.deadline().as_nanos()))
}

/// The longest response of each task over all offsets below the periods, in nanoseconds.
pub(super) fn worst_of_all(tasks: &[Task]) -> Result<Vec<i64>, String> {
    let periods: Vec<i64> = tasks.iter().map(|task| task.period().as_nanos()).collect();
    let vectors = periods.iter().try_fold(1_i64, |vectors, period| vectors.checked_mul(*period));
    let vectors =
        vectors.filter(|vectors| *vectors <= VECTORS_MAX).ok_or("too many offsets to try them all")?;
    let mut worst = vec![0; tasks.len()];
    for number in 0..vectors {
        let mut rest = number;
        let digit = |period: &i64| {
            let offset = rest % period;
            rest /= period;
            offset
        };
        let offsets: Vec<i64> = periods.iter().map(digit).collect();
        for (worst, seen) in worst.iter_mut().zip(worst_responses(tasks, &offsets)?) {
            *worst = seen.max(*worst);
        }
    }
    Ok(worst)
}

fn worst_responses(tasks: &[Task], offsets: &[i64]) -> Result<Vec<i64>, String> {
    let last = offsets.iter().copied().max().unwrap_or(0);
    let hyperperiod = tasks.iter().try_fold(1_i64, |multiple, task| {
        let period = task.period().as_nanos();
        (multiple / greatest_common_divisor(multiple, period)).checked_mul(period)
    });
    let horizon = hyperperiod
        .and_then(|hyperperiod| hyperperiod.checked_mul(HYPERPERIODS)?.checked_add(last))
        .ok_or("the hyperperiod is too long to be simulated")?;
    let system = system(tasks, offsets)?;
    let mut simulation = Simulation::new(&system).map_err(|error| error.to_string())?;
    let mut responses = Responses { released: HashMap::new(), worst: vec![0; tasks.len()] };
    simulation.advance(Instant::from_nanos(horizon), &mut responses);
    simulation.finish(&mut responses);
    Ok(responses.worst)
}

fn system(tasks: &[Task], offsets: &[i64]) -> Result<System, String> {
    let tasks = tasks.iter().zip(offsets).enumerate().map(|(index, (task, offset))| {
        TaskBuilder::new(format!("task-{index}"), task.period())
            .deadline(task.deadline())
            .phase(Duration::from_nanos(*offset))
            .wcet(task.wcet())
    });
    let builder = System::builder("offsets")
        .strategy(Strategy::Edf)
        .lane_dispatch(LaneDispatch::NonPreemptive)
        .late(Late::None);
    tasks.fold(builder, |builder, task| builder.task(task)).build().map_err(|error| error.to_string())
}

fn greatest_common_divisor(left: i64, right: i64) -> i64 {
    if right == 0 { left } else { greatest_common_divisor(right, left % right) }
}

/// The longest response of each task, whose only operation has its number.
struct Responses {
    released: HashMap<JobId, Instant>,
    worst: Vec<i64>,
}

impl Sink for Responses {
    fn record(&mut self, record: Record) {
        let job = record.job();
        match record.event {
            Event::RELEASE => {
                self.released.insert(job, record.time);
            }
            Event::COMPLETE => {
                let release = self.released.remove(&job).expect("a job completes after its release");
                let worst = &mut self.worst[job.operation.index()];
                *worst = (*worst).max((record.time - release).as_nanos());
            }
            _ => {}
        }
    }
}
