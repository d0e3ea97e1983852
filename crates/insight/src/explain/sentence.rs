//! The one sentence: what dominated, and what would help.

use super::cause::length;
use super::{Blamed, Cause, Explanation, Explanations, Kind, Outcome, Standing, Subject, TakenEvent};
use talea_record::{Event, JobId, Metadata, Origin, Record, RecordedEvents, SkipReason};
use talea_time::{Duration, Instant};

impl Explanations {
    /// The name of what an explanation is about: `nav #12`, or `nav.filter #12` for a job.
    pub fn name(&self, subject: Subject) -> String {
        match subject {
            Subject::Instance { task, number } => format!("{} #{number}", self.metadata.tasks[task].name),
            Subject::Job(job) => self.metadata.job_name(job),
            Subject::Way { chain, measure, number } => {
                let entry = &self.metadata.chains[chain];
                let last = self.metadata.operations.get(entry.operations.last().copied().unwrap_or(0));
                let last = last.map_or("?", |last| last.name.as_str());
                format!("{} of chain \"{}\", to {last} #{number}", measure.words(), entry.name)
            }
        }
    }

    /// The name of a job.
    pub fn job_name(&self, job: JobId) -> String {
        self.metadata.job_name(job)
    }

    /// Who is to blame, by name; empty for nobody in particular.
    pub fn blamed_name(&self, blamed: Blamed) -> String {
        match blamed {
            Blamed::Nobody => String::new(),
            Blamed::Operation(index) => self
                .metadata
                .operations
                .get(index)
                .map_or_else(|| format!("operation {index}"), |entry| entry.name.clone()),
            Blamed::Thread(0) => "nobody".into(),
            Blamed::Thread(Record::UNSEEN_THREAD) => "a thread that is not observed".into(),
            Blamed::Thread(thread) => match self.threads.get(&thread) {
                Some(name) => format!("{name} ({thread})"),
                None => format!("thread {thread}"),
            },
            Blamed::Interrupt(interrupt) => interrupt.to_string(),
            Blamed::Edge(edge) => self.edge_name(edge),
            Blamed::EdgeTo { edge, last } => {
                let child = self.metadata.edges.get(last).map_or("?", |entry| &entry.child);
                format!("{}, for {child}", self.edge_name(edge))
            }
            Blamed::EdgeFor { edge, operation } => {
                let name = self.blamed_name(Blamed::Operation(operation));
                match self.metadata.edges.get(edge) {
                    Some(entry) if entry.child != name => format!("{}, for {name}", self.edge_name(edge)),
                    _ => self.edge_name(edge),
                }
            }
        }
    }

    /// What a job took of a channel, in words.
    pub fn event_text(&self, event: &TakenEvent) -> String {
        let job = self.job_name(event.job);
        let what = match event.publication.map(|publication| &self.metadata.publications[publication]) {
            Some(entry) => format!("{} from channel {}", entry.event_type, entry.channel),
            None => "an event".into(),
        };
        match event.from {
            Some(from) => format!("{job} took {what}, pushed by {}", self.job_name(from)),
            None => format!("{job} took {what}, pushed by the program"),
        }
    }

    /// What the dominant cause of a response time is and what would help.
    pub fn sentence(&self, explanation: &Explanation) -> String {
        if let Outcome::Skipped { reason } = explanation.outcome {
            return self.skipped(explanation, reason);
        }
        if let Some(stranding) = explanation.stranding {
            return self.stranded(explanation, stranding);
        }
        if let Some(refused) = explanation.refused() {
            return format!(
                "{} was given up when it was to be released, for more instances of it waited for that, or were in flight, than there is room for; \
                 see why they wait, or release it less often.",
                self.job_name(refused)
            );
        }
        let Some(dominant) = self.dominant(explanation) else {
            return "It took no time.".into();
        };
        let whole_ns = explanation.response().as_nanos().max(1);
        let percent = (dominant.sum.as_nanos() as f64 / whole_ns as f64 * 100.0).round();
        format!(
            "{percent:.0} % of the response, {}, was {}{}; {}.{}{}",
            dominant.sum.rounded(),
            dominant.what(&self.metadata),
            match self.is_used_up_meanwhile(&dominant, explanation) {
                true => String::new(),
                false => enough(explanation, &dominant),
            },
            self.remedy(&dominant, explanation),
            self.released_late(explanation),
            self.stolen_text(explanation),
        )
    }

    /// Whether whoever had turns in between took nothing away: what is promised on the way is all that can be had there.
    fn is_used_up_meanwhile(&self, dominant: &Dominant, explanation: &Explanation) -> bool {
        dominant.kind == Kind::Turn && self.is_capped_beside(dominant.blamed, explanation)
    }

    /// What a hypervisor took meanwhile, which is in the causes and is none of them.
    fn stolen_text(&self, explanation: &Explanation) -> String {
        match self.stolen(explanation) {
            stolen if stolen > Duration::ZERO => format!(
                " The host of this virtual machine may have had a processor of it for up to {} meanwhile (steal time): nothing went on there \
                 then, and that is in the times above.",
                stolen.rounded()
            ),
            _ => String::new(),
        }
    }

    /// Where the time of the deadline went before the job was released, if that was after others.
    fn released_late(&self, explanation: &Explanation) -> String {
        let (Start::Successor(job), false) = (self.start(explanation), explanation.outcome == Outcome::Met)
        else {
            return String::new();
        };
        let left = length(explanation.arrival, explanation.deadline);
        let when = match left {
            left if left > Duration::ZERO => format!("{} before", left.rounded()),
            late => format!("{} after", (-late).rounded()),
        };
        let task = self.metadata.operations[job.operation.index()].task;
        let whole = self.name(Subject::Instance { task, number: job.instance });
        format!(" It was released {when} its deadline: {whole} as a whole tells of the time up to then.")
    }

    /// With what the response begins.
    fn start(&self, explanation: &Explanation) -> Start {
        match explanation.subject {
            Subject::Job(job) if !self.metadata.operations[job.operation.index()].predecessors.is_empty() => {
                Start::Successor(job)
            }
            Subject::Job(_) | Subject::Instance { .. } | Subject::Way { .. } => Start::Arrival,
        }
    }

    /// The greatest class of causes. From an arrival on, the job's own execution is it only if nothing went wrong or if that
    /// alone is longer than the deadline allows. The deadline of a job released after others allows whatever they left of it,
    /// against which nothing is to be held.
    fn dominant(&self, explanation: &Explanation) -> Option<Dominant> {
        let allowed = match self.start(explanation) {
            Start::Arrival => Some(length(explanation.arrival, explanation.deadline)),
            Start::Successor(_) => None,
        };
        let mut classes: Vec<Dominant> = Vec::new();
        for part in self.parts(explanation) {
            match classes.iter_mut().find(|class| class.class == Class::of(part.kind)) {
                Some(class) => {
                    class.sum += part.sum;
                    class.parts.push(part);
                }
                None => {
                    let Part { kind, blamed, sum, .. } = part;
                    let (class, name) = (Class::of(kind), part.name.clone());
                    classes.push(Dominant { class, kind, blamed, name, sum, parts: vec![part] });
                }
            }
        }
        let met = explanation.outcome == Outcome::Met;
        let exceeds = |cause: &Dominant| allowed.is_some_and(|allowed| cause.sum > allowed);
        let counts = |cause: &Dominant| met || allowed.is_none() || !cause.kind.is_own() || exceeds(cause);
        let hopeless = |cause: &Dominant| cause.kind == Kind::Execution && exceeds(cause);
        classes.sort_by_key(|cause| (!hopeless(cause), !counts(cause), std::cmp::Reverse(cause.sum)));
        classes.into_iter().next()
    }

    /// The causes, the greatest first, subtasks of one task taken together.
    fn parts(&self, explanation: &Explanation) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for total in &explanation.totals {
            let name = self.blamed_name(total.blamed);
            let task = match total.blamed {
                Blamed::Operation(index) => self.metadata.operations.get(index).map(|entry| entry.task),
                _ => None,
            };
            let same = |other: &&mut Part| other.kind == total.kind && other.task == task;
            match parts.iter_mut().find(same).zip(task) {
                Some((known, task)) => {
                    known.sum += total.sum();
                    known.name.clone_from(&self.metadata.tasks[task].name);
                }
                None => {
                    parts.push(Part { kind: total.kind, blamed: total.blamed, task, name, sum: total.sum() })
                }
            }
        }
        parts.sort_by_key(|part| std::cmp::Reverse(part.sum));
        parts
    }

    fn skipped(&self, explanation: &Explanation, reason: SkipReason) -> String {
        match (reason, &explanation.because) {
            (SkipReason::Overrun, Some(because)) => {
                let inner = self.sentence(because);
                format!(
                    "It was not released, for {} was still unfinished {} after its release. Of that one: {inner}",
                    self.name(because.subject),
                    because.response().rounded(),
                )
            }
            (SkipReason::Overrun, None) => {
                "It was not released, for a job before it was unfinished; the records of that job are not in the trace.".into()
            }
            (SkipReason::Merged, Some(because)) => format!(
                "It was merged with {}, which had arrived {} before and not begun, and stands for both{}. Of that one up to then: {}",
                explanation.stands_for_it.map_or_else(
                    || self.name(because.subject),
                    |Standing { task, number, .. }| self.name(Subject::Instance { task, number })
                ),
                because.response().rounded(),
                explanation.stands_for_it.map_or_else(String::new, |standing| fate(explanation.end, standing)),
                self.sentence(because),
            ),
            (SkipReason::Merged, None) => {
                "It was merged with one before it, which had not begun and stands for both; the records of that one are not in the trace.".into()
            }
            (SkipReason::Early, _) => {
                "It was not released, for it came earlier than the separation and the burst declare, and what does is dropped.".into()
            }
            (SkipReason::Expired, _) => {
                "It was not released, for its event had expired when the guard that keeps releases apart opened.".into()
            }
            (SkipReason::Full, because) => {
                let oldest = because.as_ref().map_or(String::new(), |because| {
                    format!(", such as {}: {}", self.name(because.subject), self.sentence(because))
                });
                format!("It was not released, for more instances were in flight than the tables hold{oldest}")
            }
        }
    }
}

/// What became, from `merged` on, of an instance that stands for another one.
fn fate(merged: Instant, Standing { began, end, outcome, .. }: Standing) -> String {
    let later = |at: Instant| format!("{} later", length(merged, at).rounded());
    let began = match began {
        Some(at) => format!("it began {}", later(at)),
        None => "it did not begin".into(),
    };
    let ended = match (outcome, end) {
        (Outcome::Unfinished, _) | (_, None) => "and was unfinished at the end of the trace".into(),
        (Outcome::Met, Some(end)) => format!("and was done in time {}", later(end)),
        (Outcome::Missed, Some(end)) => format!("and was done {}, after its deadline", later(end)),
        (Outcome::Aborted, Some(end)) => format!("and was aborted {}", later(end)),
        (Outcome::Skipped { .. }, Some(end)) => format!("and was skipped {}", later(end)),
    };
    format!(": {began} {ended}")
}

impl Explanations {
    /// Whether the first job is of a task without a period, whose arrivals a guard keeps apart, and that is what took the most of its guards' time.
    fn held_as_too_early(&self, explanation: &Explanation) -> bool {
        let held = |is_first: bool| -> Duration {
            let held = explanation.intervals.iter().filter(|interval| interval.cause == Cause::Guard);
            held.filter(|interval| (interval.hop == 0) == is_first).map(|interval| interval.length()).sum()
        };
        let first = explanation.hops.first().map(|hop| &self.metadata.operations[hop.job.operation.index()]);
        let is_without_period = first.is_some_and(|first| {
            first.predecessors.is_empty() && !self.metadata.tasks[first.task].released_by.is_period()
        });
        is_without_period && held(true) >= held(false)
    }

    /// What would help.
    fn remedy(&self, dominant: &Dominant, explanation: &Explanation) -> String {
        let blamed = &dominant.name;
        match dominant.kind {
            Kind::Higher => format!(
                "shorten {blamed}, move one of the two to another node, or choose a strategy that puts this one higher"
            ),
            Kind::Ahead | Kind::Peer => format!(
                "shorten {blamed}, move one of the two to another node, or choose a strategy that puts them into different lanes"
            ),
            Kind::RunsToCompletion => format!(
                "split {blamed} into shorter subtasks, set lane_dispatch = \"preemptive\", or put the two into different lanes"
            ),
            Kind::NoSlot => "give preemptive lanes more threads with --slots".into(),
            Kind::LateGoesLast => self.late_goes_last(explanation),
            Kind::Behind => "the lane chose before it had taken this job in; it matters only where jobs are as short as that".into(),
            Kind::Earlier => "it was still at an earlier one: the cause is what had kept that one (--job explains it)".into(),
            Kind::Shared => self.shared(),
            Kind::Lower if self.metadata.origin == (Origin::Threads { realtime: false }) => {
                "the lanes' threads had no real-time priority, so lanes did not preempt each other: see `talea doctor`".into()
            }
            Kind::Lower => "a lower lane must not run while a higher one is ready: see `talea trace verify` and `talea doctor`".into(),
            Kind::Switch | Kind::Queue | Kind::Release | Kind::Delivery | Kind::Dispatch => {
                "fewer and longer jobs, or fewer lanes, cost less dispatching".into()
            }
            Kind::Timer | Kind::Releasing if self.is_realtime() => {
                "the release thread has real-time priority; a longer spin tail helps it, and a processor that does not sleep deeply: \
                 see `talea doctor`"
                    .into()
            }
            Kind::Timer | Kind::Releasing => {
                "release threads need real-time priority and a longer spin tail: see `talea doctor`".into()
            }
            Kind::WakeUp | Kind::Idle => {
                "record the kernel's events to see who had the processor, and see `talea doctor` for sleep states and priorities"
                    .into()
            }
            Kind::Unrecorded => self.unrecorded(),
            Kind::Withheld if dominant.blamed == Blamed::Thread(0) => {
                "real-time threads may not have all of a processor: leave it some time, or see \"real-time throttling\" in `talea doctor`"
                    .into()
            }
            // Whoever has real-time priority goes before all threads without, unless the kernel stops it.
            Kind::Companion | Kind::Program | Kind::Withheld if self.is_realtime() => {
                "the run's threads have real-time priority, so the kernel held them back (see \"real-time throttling\" in `talea \
                 doctor`) or this one has more: leave them all of the processor, or keep it off"
                    .into()
            }
            Kind::Companion => {
                "give the lanes real-time priority, or keep the program's other threads off these processors".into()
            }
            Kind::Program | Kind::Withheld => "give the lanes real-time priority, or keep other programs off these processors".into(),
            Kind::Interrupt => "move the interrupt to a processor that no node uses".into(),
            Kind::Message | Kind::Handover => "put the two subtasks on the same node, or make the way shorter".into(),
            Kind::NextSample => {
                "sample more often, or see why samples in between did not come through (overwritten, merged with others, or their jobs aborted)".into()
            }
            Kind::PeriodEnd => "communication = \"implicit\" publishes at completions".into(),
            Kind::UntilRead => {
                "let its reader run more often, or be triggered by the value; where no newer value comes, an older one is used again".into()
            }
            Kind::Lost => "the message never came: see the losses of the link".into(),
            Kind::Left => "the job's node had left the run".into(),
            Kind::Guard if self.held_as_too_early(explanation) => {
                "it came earlier than its separation and burst let through: declare what really comes, see who sends so often, or allow for it in the \
                 deadline"
                    .into()
            }
            Kind::Guard => {
                "the task's synchronisation protocol asks for it: choose another sync, or allow for it in the deadline".into()
            }
            Kind::Jitter => "the description asks for it: reduce the task's jitter, or allow for it in the deadline".into(),
            Kind::Releaser => {
                "the jobs ahead of it on the way took that, and messages between them: explain theirs with --task, or the whole way as a [[chain]] with --chain".into()
            }
            Kind::Turn => self.turn_remedy(dominant.blamed, explanation),
            Kind::UsedUp => self.used_up_remedy(dominant.blamed),
            Kind::KernelHigher => {
                format!("shorten {blamed}, or give this one a higher priority than it")
            }
            Kind::KernelEqual => format!("shorten {blamed}, or give the two priorities of their own"),
            Kind::KernelLower => {
                "the kernel was late to wake its thread or to switch to it: see `talea doctor`".into()
            }
            Kind::KernelUntold => {
                "why the kernel ran one of several reservations or ordinary threads, and when it stopped one, no record tells: `--no-lower` \
                 leaves that to schedulers that tell"
                    .into()
            }
            Kind::LeftInSlices => {
                "the kernel keeps a part of each processor from threads that would take all of it: want less of it, or see `talea run \
                 --unthrottle`"
                    .into()
            }
            Kind::Room => {
                "let the reader take more often, give the input a greater capacity or a smaller limit, or have it drop values (full = \"oldest\")".into()
            }
            Kind::Serial => format!(
                "shorten the call of {blamed}, have the consumer called by one lane alone, or connect it with code that several may call at once (connect_concurrent)"
            ),
            Kind::Lent => format!(
                "shorten the call of {blamed}, or connect its consumer with code that several lanes may call at once (connect_concurrent)"
            ),
            Kind::Execution | Kind::Blocked => self.own_remedy(explanation),
            Kind::Uncertain => "larger rings, or a shorter selection of --events, would lose fewer records".into(),
            Kind::Unheard => {
                "the recording began when the run was under way: record it from its start, as a command of `talea trace record`"
                    .into()
            }
            Kind::Unclear => "the records contradict each other or end too early: see `talea trace verify`".into(),
            Kind::Condensed => "`talea trace show` has every record of that time".into(),
        }
    }

    /// Whether the run's threads were granted real-time priority.
    fn is_realtime(&self) -> bool {
        self.metadata.origin == (Origin::Threads { realtime: true })
    }

    /// Since when the job was late, which is why work in time went before it.
    fn late_goes_last(&self, explanation: &Explanation) -> String {
        let of_kind = |interval: &&super::Interval| interval.cause.kind() == Kind::LateGoesLast;
        let hop = explanation.intervals.iter().find(of_kind).map(|interval| explanation.hops[interval.hop]);
        let since = hop.map_or(explanation.deadline, |hop| {
            let entry = &self.metadata.operations[hop.job.operation.index()];
            match self.metadata.lanes[entry.lane].discipline.as_str() {
                "laxity" => {
                    let wcet = hop.wcet.unwrap_or(entry.wcet);
                    Instant::from_nanos(explanation.deadline.as_nanos().saturating_sub(wcet.as_nanos()))
                }
                _ => explanation.deadline,
            }
        });
        let when = match length(explanation.arrival, since) {
            after if after > Duration::ZERO => format!("from {} after its arrival on", after.rounded()),
            _ => "from its release on".into(),
        };
        format!(
            "it was late {when}, and late work goes behind all work in time: reduce the load, or set late = \"none\""
        )
    }

    fn own_remedy(&self, explanation: &Explanation) -> String {
        match (explanation.outcome, self.start(explanation)) {
            (Outcome::Met, _) if explanation.due().is_none() => {
                "shorten it, or what comes before it, if that is too long; there is no limit".into()
            }
            (Outcome::Met, _) => format!("it had {} to spare", (-explanation.lateness()).rounded()),
            (_, Start::Successor(_)) => "shorten it, or what comes before it".into(),
            (_, Start::Arrival) => {
                let allowed = length(explanation.arrival, explanation.deadline);
                format!("shorten it, or allow it more than {}", allowed.rounded())
            }
        }
    }

    /// Who would have seen which of the jobs ran.
    fn shared(&self) -> String {
        let known = "which of them ran when is not known:";
        let priorities = match self.metadata.origin {
            Origin::Threads { realtime: false } => {
                ", or give the lanes' threads real-time priority (see `talea doctor`)"
            }
            _ => "",
        };
        match self.recorded.has(Event::SWITCH) {
            true => format!(
                "{known} the kernel's records do not tell the lanes' threads of that time from others"
            ),
            false => format!("{known} record the kernel's switches (--kernel switches){priorities}"),
        }
    }

    /// Which events would have told.
    fn unrecorded(&self) -> String {
        let missing: Vec<String> = self.gaps_of_run().into_iter().flat_map(|(_, missing)| missing).collect();
        format!(
            "for want of {} nobody knows what it was: record them with {}",
            missing.join(", "),
            RecordedEvents::options_for(&missing)
        )
    }
}

/// What a response time mostly went into.
struct Dominant {
    class: Class,
    /// The greatest cause of the class.
    kind: Kind,
    /// Who is to blame for that, and their name.
    blamed: Blamed,
    name: String,
    /// Of the whole class.
    sum: Duration,
    /// The causes of the class, the greatest first.
    parts: Vec<Part>,
}

impl Dominant {
    /// Causes of a class that are named.
    const NAMED: usize = 3;

    fn what(&self, metadata: &Metadata) -> String {
        let Some(words) = self.class.words().filter(|_| self.parts.len() > 1) else {
            return format!("{} {}", self.kind.words(), self.name).trim_end().to_owned();
        };
        let named = self.named(metadata);
        let first = named.iter().take(Self::NAMED).map(|(name, sum)| format!("{name} {}", sum.rounded()));
        let mut list = first.collect::<Vec<_>>().join(", ");
        if named.len() > Self::NAMED {
            list.push_str(&format!(" and {} more", named.len() - Self::NAMED));
        }
        format!("{words} ({list})")
    }

    /// The causes by name, the greatest first; a task that is to blame in several ways is named once.
    fn named(&self, metadata: &Metadata) -> Vec<(String, Duration)> {
        let mut named: Vec<(Option<usize>, String, Duration)> = Vec::new();
        for part in &self.parts {
            let same = named.iter_mut().find(|(task, ..)| task.is_some() && *task == part.task);
            match same.zip(part.task) {
                Some(((_, name, sum), task)) => {
                    *sum += part.sum;
                    name.clone_from(&metadata.tasks[task].name);
                }
                None => {
                    let name = if part.name.is_empty() { part.kind.words() } else { &part.name };
                    named.push((part.task, name.to_owned(), part.sum));
                }
            }
        }
        named.sort_by_key(|(.., sum)| std::cmp::Reverse(*sum));
        named.into_iter().map(|(_, name, sum)| (name, sum)).collect()
    }
}

/// With what a response begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// The arrival of the instance.
    Arrival,
    /// The release of this job, for which others of its instance had to complete.
    Successor(JobId),
}

/// Causes for which the same thing is to blame, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    HigherLanes,
    SameLane,
    LowerLanes,
    Dispatching,
    Release,
    Way,
    Processor,
    Companions,
    Programs,
    Interrupts,
    Turns,
    HigherPriorities,
    SamePriority,
    /// A class of its own.
    Only(Kind),
}

impl Class {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Higher => Class::HigherLanes,
            Kind::Ahead
            | Kind::RunsToCompletion
            | Kind::NoSlot
            | Kind::LateGoesLast
            | Kind::Behind
            | Kind::Peer => Class::SameLane,
            Kind::Earlier | Kind::Lost | Kind::Left => Class::Only(kind),
            Kind::Lower => Class::LowerLanes,
            Kind::Switch | Kind::Queue | Kind::Release | Kind::Delivery | Kind::Dispatch => {
                Class::Dispatching
            }
            Kind::Timer | Kind::Releasing => Class::Release,
            Kind::Message | Kind::Handover => Class::Way,
            Kind::WakeUp | Kind::Idle => Class::Processor,
            Kind::Companion => Class::Companions,
            Kind::Program => Class::Programs,
            Kind::Interrupt => Class::Interrupts,
            Kind::Turn => Class::Turns,
            Kind::KernelHigher => Class::HigherPriorities,
            Kind::KernelEqual => Class::SamePriority,
            Kind::Jitter
            | Kind::Releaser
            | Kind::NextSample
            | Kind::PeriodEnd
            | Kind::UntilRead
            | Kind::UsedUp
            | Kind::KernelLower
            | Kind::KernelUntold
            | Kind::LeftInSlices
            | Kind::Guard
            | Kind::Unrecorded
            | Kind::Withheld
            | Kind::Execution
            | Kind::Shared
            | Kind::Room
            | Kind::Serial
            | Kind::Lent
            | Kind::Blocked
            | Kind::Uncertain
            | Kind::Unheard
            | Kind::Unclear
            | Kind::Condensed => Class::Only(kind),
        }
    }

    /// What happened, where several causes are of the class.
    fn words(self) -> Option<&'static str> {
        Some(match self {
            Class::HigherLanes => "jobs of higher lanes",
            Class::SameLane => "other jobs of the same lane",
            Class::LowerLanes => "jobs of lower lanes, an inversion",
            Class::Dispatching => "dispatching",
            Class::Release => "the release thread",
            Class::Way => "the way between subtasks",
            Class::Processor => "waking up and an idle processor",
            Class::Companions => "the program's other threads",
            Class::Programs => "other programs",
            Class::Interrupts => "interrupts",
            Class::Turns => "the turns of others",
            Class::HigherPriorities => "threads of higher priorities of the kernel",
            Class::SamePriority => "other threads of the same priority of the kernel",
            Class::Only(_) => return None,
        })
    }
}

/// One cause, and the task or thread to blame for it.
struct Part {
    kind: Kind,
    /// Who is to blame for the greatest piece of it.
    blamed: Blamed,
    task: Option<usize>,
    name: String,
    sum: Duration,
}

/// Whether the deadline would have been met without the cause, where it is known what that is.
fn enough(explanation: &Explanation, dominant: &Dominant) -> String {
    if dominant.kind.is_unrecorded() || dominant.kind.is_uncertain() {
        return String::new();
    }
    let lateness = explanation.lateness();
    match explanation.outcome {
        Outcome::Missed if dominant.sum >= lateness => {
            format!(": without it the deadline, missed by {}, would have been met", lateness.rounded())
        }
        Outcome::Missed => {
            format!(", and the deadline was missed by {} more than that", (lateness - dominant.sum).rounded())
        }
        _ => String::new(),
    }
}
