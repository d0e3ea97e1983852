//! A processor that decides anew at every unit of time, written apart from the analyses.

use talea_analysis::Task;

/// Who goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The task that stands first in the list.
    Priority,
    /// The earliest absolute deadline; among equal ones the examined task goes last.
    Deadline,
}

/// When a running job may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dispatch {
    Preemptive,
    NonPreemptive,
}

/// Arrivals of one task: the first at `offset - jitter`, then every period.
///
/// Its jobs are released at their arrival, but not before `gate` as far as the jitter allows.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    pub offset: i64,
    pub gate: i64,
}

struct Job {
    task: usize,
    arrival: i64,
    release: i64,
    deadline: i64,
    left: i64,
}

/// The longest response of `examined` among jobs that arrive before `horizon`.
pub fn worst_response(
    tasks: &[Task],
    arrivals: &[Arrivals],
    order: Order,
    dispatch: Dispatch,
    examined: usize,
    horizon: i64,
) -> i64 {
    let mut jobs = Vec::new();
    for (task, (numbers, Arrivals { offset, gate })) in tasks.iter().zip(arrivals).enumerate() {
        let jitter = numbers.jitter().as_nanos();
        let mut arrival = offset - jitter;
        while arrival < horizon {
            jobs.push(Job {
                task,
                arrival,
                release: arrival.max((*gate).min(arrival + jitter)),
                deadline: arrival + numbers.deadline().as_nanos(),
                left: numbers.wcet().as_nanos(),
            });
            arrival += numbers.period().as_nanos();
        }
    }
    jobs.sort_by_key(|job| std::cmp::Reverse(job.release));
    let rank = |job: &Job| match order {
        Order::Priority => (0, job.task as i64, job.arrival),
        Order::Deadline => (job.deadline, i64::from(job.task == examined), job.arrival),
    };
    let (mut worst, mut now) = (0, 0);
    let (mut ready, mut running): (Vec<Job>, Option<Job>) = (Vec::new(), None);
    while !jobs.is_empty() || !ready.is_empty() || running.is_some() {
        while let Some(job) = jobs.pop_if(|job| job.release <= now) {
            ready.push(job);
        }
        if dispatch == Dispatch::Preemptive {
            ready.extend(running.take());
        }
        if running.is_none() {
            let first = (0..ready.len()).min_by_key(|&index| rank(&ready[index]));
            running = first.map(|index| ready.swap_remove(index));
        }
        now += 1;
        let Some(mut job) = running.take() else { continue };
        job.left -= 1;
        if job.left > 0 {
            running = Some(job);
        } else if job.task == examined {
            worst = worst.max(now - job.arrival);
        }
    }
    worst
}

/// The longest response of `examined` over every vector of offsets from 0 to below the period, all gates at `gate`.
pub fn worst_over_offsets(
    tasks: &[Task],
    order: Order,
    dispatch: Dispatch,
    examined: usize,
    horizon: i64,
    gate: i64,
) -> i64 {
    let mut arrivals = vec![Arrivals { offset: 0, gate }; tasks.len()];
    let mut worst = 0;
    loop {
        worst = worst.max(worst_response(tasks, &arrivals, order, dispatch, examined, horizon));
        let following = (0..tasks.len()).find(|task| {
            arrivals[*task].offset += 1;
            let wrapped = arrivals[*task].offset >= tasks[*task].period().as_nanos();
            if wrapped {
                arrivals[*task].offset = 0;
            }
            !wrapped
        });
        if following.is_none() {
            return worst;
        }
    }
}
