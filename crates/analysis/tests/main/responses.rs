//! The longest response of every operation that a simulation shows.

use std::collections::HashMap;
use talea_analysis::system::SystemBounds;
use talea_model::System;
use talea_record::event::Typed;
use talea_record::{Event, Record, Sink, SkipReason};
use talea_time::{Duration, Instant};

/// The longest responses seen, from the arrival of the task's instance.
pub struct Responses {
    arrivals: Vec<(Instant, Duration)>,
    /// By operation, of tasks with a trigger: the relative deadline, by which the arrival is known from the record.
    triggered: Vec<Option<Duration>>,
    /// Of those, when jobs arrived.
    arrived: HashMap<(usize, u64), Instant>,
    pub worst: Vec<Duration>,
    /// By operation: whether a job of its was skipped or aborted.
    pub lost: Vec<bool>,
    /// How often jobs waited for room.
    pub waits: u64,
    /// Unfinished jobs: operation and instance.
    released: HashMap<(usize, u64), Instant>,
    last: Instant,
}

impl Responses {
    pub fn of(system: &System) -> Self {
        let arrivals = system.operations().iter().map(|operation| {
            let task = system.task_of(operation.id);
            (Instant::ZERO + task.phase, task.period)
        });
        Responses {
            arrivals: arrivals.collect(),
            triggered: system
                .operations()
                .iter()
                .map(|operation| {
                    let task = system.task_of(operation.id);
                    task.trigger.is_some().then_some(task.deadline)
                })
                .collect(),
            arrived: HashMap::new(),
            worst: vec![Duration::ZERO; system.operations().len()],
            lost: vec![false; system.operations().len()],
            waits: 0,
            released: HashMap::new(),
            last: Instant::ZERO,
        }
    }

    fn arrival(&self, operation: usize, instance: u64) -> Instant {
        if self.triggered[operation].is_some() {
            return self.arrived[&(operation, instance)];
        }
        let (first, period) = self.arrivals[operation];
        first + period * i64::try_from(instance).unwrap()
    }

    /// Tasks that are said to hold and lose instances all the same.
    pub fn lost_although_held(&self, system: &System, bounds: &SystemBounds) -> Vec<usize> {
        let loses = |task: &usize| {
            system.operations_of(*task).iter().any(|operation| self.lost[operation.id.index()])
        };
        (0..system.tasks.len()).filter(|task| bounds.holds(system, *task)).filter(loses).collect()
    }

    pub fn beyond(&self, bounds: &SystemBounds) -> Vec<String> {
        let mut beyond = Vec::new();
        for (operation, bound) in bounds.operations.iter().enumerate() {
            let Ok(response) = &bound.response else { continue };
            if self.worst[operation] > response.bound {
                beyond.push(format!(
                    "operation {operation} took {} of {}",
                    self.worst[operation], response.bound
                ));
            }
            for (&(other, instance), _) in self.released.iter().filter(|((other, _), _)| *other == operation)
            {
                let waited = self.last - self.arrival(other, instance);
                if waited > response.bound {
                    beyond
                        .push(format!("operation {other} is not done after {waited} of {}", response.bound));
                }
            }
        }
        beyond
    }
}

impl Sink for Responses {
    fn record(&mut self, record: Record) {
        self.last = record.time;
        if matches!(record.event, Event::RUN_START | Event::RUN_END) {
            return;
        }
        let job = record.job();
        let (operation, instance) = (job.operation.index(), job.instance);
        match record.event {
            Event::WAIT => self.waits += 1,
            Event::RELEASE => {
                self.released.insert((operation, instance), record.time);
                if let (Some(relative), Typed::Release(release)) = (self.triggered[operation], record.typed())
                {
                    self.arrived.insert((operation, instance), release.deadline.saturating_add(-relative));
                }
            }
            Event::COMPLETE => {
                self.released.remove(&(operation, instance));
                let response = record.time - self.arrival(operation, instance);
                self.worst[operation] = self.worst[operation].max(response);
            }
            Event::ABORT => {
                self.released.remove(&(operation, instance));
                self.lost[operation] = true;
            }
            // The instance that it is merged with stands for it, and arrived before it.
            Event::SKIP if record.arg == SkipReason::Merged as u16 => {}
            Event::SKIP => self.lost[operation] = true,
            _ => {}
        }
    }
}
