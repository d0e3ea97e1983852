//! The life of every job: released, begun, completed, in this order and once.

use super::instances::Progress;
use super::judge::{Judge, Known};
use super::order::Ready;
use super::report::Rule;
use super::suspicion::Counting;
use talea_model::LaneDispatch;
use talea_policy::job::Job;
use talea_record::event::{Abort, Block, Release, Wait};
use talea_record::{Event, JobId, Record};
use talea_time::{Instant, Work};

impl Judge<'_> {
    /// Whether the job is of an instance that was under way when the recording began.
    pub(super) fn is_half_known(&mut self, record: &Record) -> bool {
        let job = record.job();
        let entry = &self.trace.operations[job.operation.index()];
        let known = &mut self.known[entry.task];
        let is_release =
            matches!(record.event, Event::RELEASE | Event::SKIP) && entry.predecessors.is_empty();
        if *known == Known::Joining && is_release {
            *known = Known::From(job.instance + 1);
        }
        match *known {
            Known::Joining => true,
            Known::From(first) => self.lost == 0 && job.instance < first,
            Known::FromTheBeginning | Known::AfterLoss(_) => false,
        }
    }

    /// Whether a posted job is released of which it may have been lost how long it executes, by which its lane may order it.
    pub(super) fn is_of_unknown_length(&self, record: &Record) -> bool {
        let job = record.job();
        record.event == Event::RELEASE
            && self.is_posted(self.trace.operations[job.operation.index()].task)
            && self.own_wcets.is_in_doubt(job, record.time)
    }

    /// A job that is not judged has the lane, or leaves it: what it last ran decides between equals.
    pub(super) fn pass_by(&mut self, record: &Record, lane: usize) {
        let job = record.job();
        match record.event {
            Event::START | Event::RESUME => self.lanes[lane].last_ran = Some(job.pack()),
            Event::COMPLETE | Event::ABORT => drop(self.leave(job, lane)),
            _ => {}
        }
    }

    /// Enters a released job; `release` is the instant that the policy orders by.
    /// The job is in its lane, released at some instant from `earliest` to `release`.
    pub(super) fn enter(&mut self, told: Release, lane: usize, (earliest, release): (Instant, Instant)) {
        let job = told.job;
        let operation = job.operation.index();
        let mut rank = self.ranks[operation];
        if self.is_simulated() && self.is_posted(self.trace.operations[operation].task) {
            // Many are posted at one instant there, and come in that order.
            rank = rank.max(self.next_rank);
            self.next_rank = rank.saturating_add(1);
        }
        let policy_job = Job {
            release,
            deadline: told.deadline,
            wcet: self.own_wcets.released(job).unwrap_or(self.expected.operations[operation].wcet),
            rank,
            number: job.instance,
            tag: 0,
        };
        let (service, running) = (Work::ZERO, None);
        let (began, waits) = (None, None);
        let ready = Ready { job: policy_job, released: self.now, earliest, service, running, began, waits };
        self.lanes[lane].ready.insert(job.pack(), ready);
        self.jobs += 1;
    }

    pub(super) fn begin(&mut self, record: &Record, lane: usize) {
        let (job, now) = (record.job(), self.now);
        let Some(ready) = self.lanes[lane].ready.get_mut(&job.pack()) else {
            // Rings are merged by time alone: the release of this very instant may come right after.
            return self.unreleased.push(*record);
        };
        let wrong = match (record.event, ready.began.is_some(), ready.running) {
            (_, _, Some(_)) => Some("it got a processor while it had one"),
            (Event::START, true, _) => Some("it began twice"),
            (Event::RESUME, false, _) => Some("it went on before it had begun"),
            _ => None,
        };
        ready.began.get_or_insert(now);
        let waited = ready.waits.take();
        ready.running = Some(now);
        let lane = &mut self.lanes[lane];
        // A job that goes on in a non-preemptive lane was chosen when it began.
        let is_chosen = record.event == Event::START || lane.order.rules.dispatch == LaneDispatch::Preemptive;
        lane.chosen = is_chosen.then(|| job.pack());
        if let Some(text) = wrong {
            self.find(Rule::Life, job, None, || text.into());
        }
        let went_on_early = waited.is_some_and(|(_, until)| now < until);
        if went_on_early && self.is_simulated() && self.values.tells_of_room() {
            self.find(Rule::Life, job, None, || {
                "it went on before there was room, and before its limit".into()
            });
        }
    }

    /// The job loses its processor.
    pub(super) fn stop(&mut self, job: JobId, lane: usize) {
        let now = self.now;
        let lane = &mut self.lanes[lane];
        let Some(ready) = lane.ready.get_mut(&job.pack()) else { return self.unknown(job) };
        if ready.running.is_none() {
            return self.find(Rule::Life, job, None, || "it lost a processor that it did not have".into());
        }
        ready.service = ready.executed(now);
        ready.running = None;
        // While a higher lane has the processor it keeps nobody of its own lane from it.
        if let Some(known) = lane.misordered.as_mut().filter(|known| known.state.running == Some(job)) {
            known.count(now, Counting::Interrupted);
        }
        if lane.chosen == Some(job.pack()) {
            lane.chosen = None;
        }
    }

    /// The job has done its work and gives up its processor until there is room for what it wrote.
    pub(super) fn wait(&mut self, told: Wait, lane: usize) {
        let Wait { job, input, until, .. } = told;
        self.stop(job, lane);
        let input = self.system.inputs().get(input as usize);
        let limit = input.and_then(|input| input.take.wait_limit());
        let is_reader =
            input.is_some_and(|input| self.system.outputs()[input.output.index()].operation == job.operation);
        let longest = limit.filter(|_| is_reader).map(|limit| self.now.saturating_add(limit));
        if longest.is_none_or(|longest| until > longest) {
            self.find(Rule::Life, job, None, || "it waits for room that nothing lets it wait for".into());
        }
        if let Some(ready) = self.lanes[lane].ready.get_mut(&job.pack()) {
            ready.waits = Some((told.input, until));
        }
    }

    /// The job waits for another one to end a call. That one goes on with its priority, so it has begun, and of both somebody has posted.
    pub(super) fn block(&mut self, Block { job, by, .. }: Block) {
        let Some((lane, ready)) = self.posted_and_under_way(job) else { return };
        self.node_touched[self.lanes[lane].node] = true;
        self.findings.count_case(Rule::Life);
        let other = by.and_then(|by| Some((by, self.ready(by)?)));
        let wrong = match other {
            _ if ready.began.is_none() => "it waits for another delivery and has not begun its own",
            _ if self.occupancy.blocked(lane).is_some() => {
                "it waits for another delivery, and its lane did so already"
            }
            _ if by == Some(job) => "it waits for itself",
            Some((_, other)) if other.began.is_none() => "it waits for a delivery that has not begun",
            Some((by, _)) if !self.is_posted(self.trace.operations[by.operation.index()].task) => {
                "it waits for a job that delivers nothing"
            }
            _ => return,
        };
        self.find(Rule::Life, job, by, || wrong.into());
    }

    /// The job has waited for another one.
    pub(super) fn unblock(&mut self, job: JobId) {
        let Some((lane, _)) = self.posted_and_under_way(job) else { return };
        self.node_touched[self.lanes[lane].node] = true;
        if self.lost == 0 && self.occupancy.blocked(lane).is_none_or(|blocked| blocked.job != job) {
            self.find(Rule::Life, job, None, || {
                "it has waited for another delivery, and did not begin to".into()
            });
        }
    }

    /// A job that a channel may have delivered with, and its lane, unless it is one of which nothing is known.
    fn posted_and_under_way(&mut self, job: JobId) -> Option<(usize, Ready)> {
        let index = job.operation.index();
        let lane = self.expected.operations.get(index)?.lane;
        if self.is_over(lane) {
            return None;
        }
        let known = self.ready(job);
        match known {
            _ if !self.is_posted(self.trace.operations[index].task) => {
                self.find(Rule::Life, job, None, || "it waits as deliveries do, and delivers nothing".into());
            }
            None => self.unknown(job),
            Some(_) => {}
        }
        known.map(|ready| (lane, ready))
    }

    fn ready(&self, job: JobId) -> Option<Ready> {
        let lane = self.expected.operations.get(job.operation.index())?.lane;
        self.lanes[lane].ready.get(&job.pack()).copied()
    }

    /// The job is over. Returns whether it was known.
    pub(super) fn leave(&mut self, job: JobId, lane: usize) -> Option<Ready> {
        let lane = &mut self.lanes[lane];
        let ready = lane.ready.remove(&job.pack());
        if lane.last_ran == Some(job.pack()) {
            lane.last_ran = None;
        }
        if lane.chosen == Some(job.pack()) {
            lane.chosen = None;
        }
        ready
    }

    /// A record about a job of which nothing else is known.
    pub(super) fn unknown(&mut self, job: JobId) {
        let task = self.trace.operations[job.operation.index()].task;
        let is_known = match self.known[task] {
            Known::FromTheBeginning => true,
            Known::From(first) => job.instance >= first,
            Known::AfterLoss(_) | Known::Joining => false,
        };
        if self.lost > 0 || !is_known {
            self.unjudged += 1;
        } else {
            self.find(Rule::Life, job, None, || "it was not released, or had ended".into());
        }
    }

    pub(super) fn complete(&mut self, job: JobId, lane: usize) {
        let Some(ready) = self.leave(job, lane) else { return self.unknown(job) };
        if ready.began.is_none() || ready.running.is_none() && self.is_simulated() {
            self.find(Rule::Life, job, None, || "it completed without having a processor".into());
        }
        self.completes(job);
    }

    pub(super) fn abort(&mut self, abort: Abort, lane: usize) {
        let job = abort.job;
        if self.leave(job, lane).is_none() {
            return self.unknown(job);
        }
        self.check_abort(abort);
        let task = self.trace.operations[job.operation.index()].task;
        self.instances[task].set(job, Progress::Aborted(self.now));
    }
}
