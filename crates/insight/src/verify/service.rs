//! What each job received: on which processor, in which order, and whether that is what it demands.
//!
//! This looks at the records of one job alone and knows neither lanes nor schedulers, so it holds for every node. In virtual time a job
//! executes for exactly as long as the description and the seed say, unless mechanisms have costs, which the job's time has in it. On real
//! threads a description does not say how long the code of an operation takes, so there it is not judged.

use super::instances::Progress;
use super::judge::{Judge, Known};
use super::length;
use super::report::Rule;
use std::collections::BTreeMap;
use talea_model::System;
use talea_policy::demand::{self, Purpose};
use talea_record::event::Typed;
use talea_record::{Event, JobId, Origin, Record};
use talea_time::{Duration, Instant, Work};

/// What is known of a job that was released and has not ended.
#[derive(Clone, Copy, Debug)]
struct Service {
    /// What its release said; none if that has not come.
    dates: Option<(Instant, Instant)>,
    begun: bool,
    /// It is known from its beginning, so that what it received is all that it did.
    is_whole: bool,
    /// Since when it has a processor, and which.
    running: Option<(Instant, u16)>,
    received: Work,
}

/// Jobs under way, by packed job.
#[derive(Debug)]
pub(super) struct Services {
    jobs: BTreeMap<u64, Service>,
    /// Whether mechanisms take time of the jobs.
    has_costs: bool,
    /// Something was lost: of a job of which nothing is known nothing can be said.
    has_loss: bool,
}

/// More jobs than that under way are those whose ends were lost.
const LIMIT: usize = 1 << 16;

impl Services {
    pub fn new(system: &System) -> Self {
        let has_costs = system.overhead.costs().any(|(_, cost)| cost > Work::ZERO);
        Services { jobs: BTreeMap::new(), has_costs, has_loss: false }
    }

    /// What was under way is not known any more.
    pub fn forget(&mut self) {
        self.jobs.clear();
        self.has_loss = true;
    }
}

impl Judge<'_> {
    /// Follows one job. Of one in a lane, the rules of lives have the word about the order of its records.
    pub(super) fn serve(&mut self, record: &Record, has_order: bool) {
        let job = record.job();
        let now = self.now;
        let known = self.services.jobs.get(&record.causal).copied();
        let fresh =
            Service { dates: None, begun: false, is_whole: false, running: None, received: Work::ZERO };
        let service = known.unwrap_or(fresh);
        match record.typed() {
            Typed::Release(release) => {
                if service.dates.is_some() && !has_order {
                    self.find(Rule::Life, job, None, || "it was released twice".into());
                }
                let dates = Some((release.nominal, release.deadline));
                self.remember(job, Service { dates, ..service });
            }
            Typed::Start(_) | Typed::Resume(_) => {
                self.check_processor(record);
                let wrong = match (record.event, service.begun, service.running) {
                    (_, _, Some(_)) => Some("it got a processor while it had one"),
                    (Event::START, true, _) => Some("it began twice"),
                    (Event::RESUME, false, _) => Some("it went on before it had begun"),
                    _ => None,
                };
                if let Some(text) =
                    wrong.filter(|_| !has_order && (known.is_some() || !self.services.has_loss))
                {
                    self.find(Rule::Life, job, None, || text.into());
                }
                let is_whole = service.is_whole || record.event == Event::START;
                self.remember(
                    job,
                    Service { begun: true, is_whole, running: Some((now, record.cpu)), ..service },
                );
            }
            Typed::Preempt(_) | Typed::Wait(_) => {
                let Some(service) = known else { return self.strange(job, has_order) };
                self.check_same_processor(record, service);
                if service.running.is_none() && !has_order {
                    self.find(Rule::Life, job, None, || "it lost a processor that it did not have".into());
                }
                self.remember(job, Service { running: None, received: received(service, now), ..service });
            }
            Typed::Complete(complete) => {
                let Some(service) = known else { return self.strange(job, has_order) };
                self.services.jobs.remove(&record.causal);
                self.check_same_processor(record, service);
                self.check_dates(job, service, complete.nominal, complete.deadline);
                if !has_order && (!service.begun || service.running.is_none() && self.is_simulated()) {
                    match self.is_all_recorded(job) {
                        true => self
                            .find(Rule::Life, job, None, || "it completed without having a processor".into()),
                        false => self.unjudged += 1,
                    }
                }
                self.check_demand(job, service, Ending::Completed);
            }
            Typed::Abort(abort) => {
                let Some(service) = known else { return self.strange(job, has_order) };
                self.services.jobs.remove(&record.causal);
                self.check_dates(job, service, abort.nominal, abort.deadline);
                self.check_demand(job, service, Ending::Before);
            }
            _ => {}
        }
    }

    /// Whether a job of this operation executes nowhere but where it was granted a processor.
    fn is_all_recorded(&self, job: JobId) -> bool {
        let lane = self.expected.operations[job.operation.index()].lane;
        self.trace.nodes[self.expected.lanes[lane].node].switches.are_all_recorded()
    }

    fn remember(&mut self, job: JobId, service: Service) {
        self.services.jobs.insert(job.pack(), service);
        if self.services.jobs.len() > LIMIT {
            self.services.jobs.pop_first();
        }
    }

    /// A job ends or stops of which nothing is known.
    fn strange(&mut self, job: JobId, has_order: bool) {
        if has_order {
            return;
        }
        match self.services.has_loss || !self.is_known_from_the_beginning(job) {
            true => self.unjudged += 1,
            false => self.find(Rule::Life, job, None, || "it was not released, or had ended".into()),
        }
    }

    fn check_processor(&mut self, record: &Record) {
        let job = record.job();
        let node = self.expected.lanes[self.expected.operations[job.operation.index()].lane].node;
        let cpu = record.cpu;
        if cpu != Record::NO_CPU && !self.trace.nodes[node].cpus.contains(&cpu) {
            self.find(Rule::Life, job, None, || format!("it got processor {cpu}, which is not its node's"));
        }
    }

    /// Threads of a node of several processors move between them while they execute.
    fn check_same_processor(&mut self, record: &Record, service: Service) {
        let job = record.job();
        let node = self.expected.lanes[self.expected.operations[job.operation.index()].lane].node;
        let may_move = !self.is_simulated() && self.trace.nodes[node].cpus.len() > 1;
        let Some((_, had)) = service.running.filter(|_| !may_move) else { return };
        let cpu = record.cpu;
        if had != cpu && had != Record::NO_CPU && cpu != Record::NO_CPU {
            self.find(Rule::Life, job, None, || {
                format!("it left processor {cpu}, and had got processor {had}")
            });
        }
    }

    fn check_dates(&mut self, job: JobId, service: Service, nominal: Instant, deadline: Instant) {
        if service.dates.is_some_and(|dates| dates != (nominal, deadline)) {
            self.find(Rule::Life, job, None, || {
                "its end says another arrival or deadline than its release".into()
            });
        }
    }

    /// What the description and the seed say that the job executes, in virtual time.
    fn demand_of(&self, job: JobId) -> Option<Work> {
        let Origin::Simulation { seed } = self.trace.origin else { return None };
        let operation = self.system.operations().get(job.operation.index())?;
        let stream = demand::stream(seed, Purpose::Execution, job.operation.index());
        Some(demand::execution_from(&self.system.subtask(operation.id).exec, stream, job.instance))
    }

    fn check_demand(&mut self, job: JobId, service: Service, ending: Ending) {
        let Some(demand) = self.demand_of(job).filter(|_| service.is_whole) else { return };
        let received = received(service, self.now);
        self.findings.count_case(Rule::Demand);
        let (less, more) = (received < demand, received > demand);
        let apart =
            Duration::from_nanos(received.as_nanos().saturating_sub(demand.as_nanos()).saturating_abs());
        if more && !self.services.has_costs {
            self.find(Rule::Demand, job, None, || {
                format!("it executed for {} more than it demands", apart.rounded())
            });
        } else if less && ending == Ending::Completed {
            self.find(Rule::Demand, job, None, || {
                format!("it completed {} before its demand was served", apart.rounded())
            });
        }
    }

    /// The run is over on the node: nobody executed for longer than it demands, nor ended without a record.
    pub(super) fn judge_unended(&mut self, node: usize) {
        let of_node = |packed: &u64| {
            let index = JobId::unpack(*packed).operation.index();
            self.expected.lanes[self.expected.operations[index].lane].node == node
        };
        let left: Vec<(JobId, Service)> = self
            .services
            .jobs
            .iter()
            .filter(|(packed, service)| of_node(packed) && service.running.is_some())
            .map(|(packed, service)| (JobId::unpack(*packed), *service))
            .collect();
        for (job, service) in left {
            self.check_demand(job, service, Ending::Before);
        }
    }

    /// Whether the trace has the job's release, if there was one.
    fn is_known_from_the_beginning(&self, job: JobId) -> bool {
        match self.known[self.trace.operations[job.operation.index()].task] {
            Known::FromTheBeginning => true,
            Known::From(first) => job.instance >= first,
            Known::AfterLoss(_) | Known::Joining => false,
        }
    }

    /// A job of a thread below schedulers is that far.
    pub(super) fn follow(&mut self, record: &Record) {
        let job = record.job();
        let progress = match record.event {
            Event::RELEASE => Progress::Released,
            Event::COMPLETE => Progress::Completed(self.now),
            Event::ABORT | Event::SKIP => Progress::Aborted(self.now),
            _ => return,
        };
        let task = self.trace.operations[job.operation.index()].task;
        self.instances[task].set(job, progress);
    }
}

/// How a job's time ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Completed,
    /// It was aborted, or the run was over.
    Before,
}

fn received(service: Service, now: Instant) -> Work {
    let running = service.running.map_or(Duration::ZERO, |(since, _)| length(since, now));
    Work::from_nanos(service.received.as_nanos().saturating_add(running.as_nanos().max(0)))
}
