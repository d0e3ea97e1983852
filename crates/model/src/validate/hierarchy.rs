//! Rules about schedulers and threads, each by itself and under its parents; what they make together is in
//! [`shape`](super::shape).

use super::plan::{self, Missing};
use super::times::{Least, TIME_LIMIT, execution_misfit, violation_of};
use super::{Place, Spelling, Violation, check_name, shape};
use crate::description::Description;
use crate::hierarchy::{
    Asks, LEAST_RUN_QUANTUM, Request, Scheduler, SchedulerKind, Setting, Thread, ThreadWork, Under,
    own_parameters,
};
use std::collections::{HashMap, HashSet};
use talea_guarantee::exact::Span;
use talea_guarantee::guarantee::{Guarantee, Reservation};
use talea_guarantee::scheduler::{Preset, Values};
use talea_time::Duration;

/// The most schedulers and threads a system may have together.
pub const HIERARCHY_LIMIT: usize = 10_000;

/// The most words and bytes a command may have.
const COMMAND_LIMIT: usize = 1 << 16;

/// A scheduler or a thread, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Member {
    Scheduler(usize),
    Thread(usize),
}

impl Member {
    pub(super) fn place(self, key: &'static str) -> Place {
        match self {
            Member::Scheduler(scheduler) => Place::Scheduler(scheduler, key),
            Member::Thread(thread) => Place::Thread(thread, key),
        }
    }

    pub(super) fn edge(self, edge: usize, key: &'static str) -> Place {
        match self {
            Member::Scheduler(scheduler) => Place::SchedulerUnder(scheduler, edge, key),
            Member::Thread(thread) => Place::ThreadUnder(thread, edge, key),
        }
    }

    pub(super) fn under(self, description: &Description) -> &[Under] {
        match self {
            Member::Scheduler(scheduler) => &description.schedulers[scheduler].under,
            Member::Thread(thread) => &description.threads[thread].under,
        }
    }

    pub(super) fn node(self, description: &Description) -> usize {
        match self {
            Member::Scheduler(scheduler) => description.schedulers[scheduler].node,
            Member::Thread(thread) => description.threads[thread].node,
        }
    }

    pub(super) fn name(self, description: &Description) -> &str {
        match self {
            Member::Scheduler(scheduler) => &description.schedulers[scheduler].name,
            Member::Thread(thread) => &description.threads[thread].name,
        }
    }

    /// `scheduler "res"`.
    pub(super) fn label(self, description: &Description) -> String {
        let what = match self {
            Member::Scheduler(_) => "scheduler",
            Member::Thread(_) => "thread",
        };
        format!("{what} \"{}\"", self.name(description))
    }
}

/// Every scheduler, then every thread.
pub(super) fn members(description: &Description) -> impl Iterator<Item = Member> + use<> {
    let schedulers = (0..description.schedulers.len()).map(Member::Scheduler);
    schedulers.chain((0..description.threads.len()).map(Member::Thread))
}

pub(super) fn check(description: &Description, missing: Missing, found: &mut Vec<Violation>) {
    if description.schedulers.is_empty() && description.threads.is_empty() {
        return;
    }
    let count = description.schedulers.len() + description.threads.len();
    if count > HIERARCHY_LIMIT {
        found.push(Violation::error(
            Place::Whole,
            format!("the system has {count} schedulers and threads, more than {HIERARCHY_LIMIT}"),
            "describe it as several systems",
        ));
        return;
    }
    check_names(description, found);
    check_parents_exist(description, found);
    for (index, scheduler) in description.schedulers.iter().enumerate() {
        check_name("scheduler", &scheduler.name, Spelling::OneWord, Place::Scheduler(index, "name"), found);
        check_parameters(description, index, scheduler, found);
    }
    for (index, thread) in description.threads.iter().enumerate() {
        check_name("thread", &thread.name, Spelling::OneWord, Place::Thread(index, "name"), found);
        check_thread(index, thread, found);
    }
    for member in members(description) {
        check_node(description, member, found);
        for (edge, under) in member.under(description).iter().enumerate() {
            check_request(description, member, edge, under, found);
        }
    }
    plan::check(description, missing, found);
    shape::check(description, found);
}

/// Numbers of parents are in range, except where a name without meaning has already been told.
fn check_parents_exist(description: &Description, found: &mut Vec<Violation>) {
    let told: HashSet<Place> = found.iter().map(|violation| violation.place).collect();
    for member in members(description) {
        for (edge, under) in member.under(description).iter().enumerate() {
            let place = member.edge(edge, "scheduler");
            if under.scheduler >= description.schedulers.len() && !told.contains(&place) {
                let message =
                    format!("{} is under a scheduler that does not exist", member.label(description));
                let remedy =
                    format!("the system has {} schedulers, counted from 0", description.schedulers.len());
                found.push(Violation::error(place, message, remedy));
            }
        }
    }
}

/// Schedulers and threads share their names: both can be children.
fn check_names(description: &Description, found: &mut Vec<Violation>) {
    let mut first_use: HashMap<&str, Member> = HashMap::new();
    for member in members(description) {
        let first = *first_use.entry(member.name(description)).or_insert(member);
        if first != member {
            found.push(Violation {
                related: Some(first.place("name")),
                ..Violation::error(
                    member.place("name"),
                    format!("{} exists already", first.label(description)),
                    "give each scheduler and each thread its own name",
                )
            });
        }
    }
}

fn check_parameters(
    description: &Description,
    index: usize,
    scheduler: &Scheduler,
    found: &mut Vec<Violation>,
) {
    let Scheduler { name, kind, quantum, takes, under, .. } = scheduler;
    let place = |key| Place::Scheduler(index, key);
    let mut refuse = |key, message, remedy: &str| {
        let related = Some(place("kind"));
        found.push(Violation { related, ..Violation::error(place(key), message, remedy) });
    };
    match (kind.has_quantum(), quantum) {
        (true, None) => {
            refuse(
                "quantum",
                format!("the {kind} scheduler \"{name}\" lacks its quantum"),
                "give it one, such as 10ms",
            );
        }
        (false, Some(_)) => refuse(
            "quantum",
            format!("scheduler \"{name}\" is of kind {kind}, which has no quantum"),
            "leave it out",
        ),
        (true, Some(_)) | (false, None) => {}
    }
    if takes.is_some() && !kind.chooses_parent() {
        let message =
            format!("scheduler \"{name}\" is of kind {kind}, which does not choose among its parents");
        refuse("takes", message, "leave it out; only a join \"takes\" the guarantee of one of its parents");
    } else if let Some(takes) = takes
        && under.iter().all(|under| under.scheduler != *takes)
    {
        let parents: Vec<String> = under
            .iter()
            .filter_map(|under| description.schedulers.get(under.scheduler))
            .map(|parent| format!("\"{}\"", parent.name))
            .collect();
        let taken = description.schedulers.get(*takes).map_or("?", |taken| taken.name.as_str());
        let message =
            format!("the join \"{name}\" takes the guarantee of \"{taken}\", which is not its parent");
        refuse("takes", message, &format!("name one of its parents, {}", parents.join(", ")));
    }
    check_settings(index, scheduler, found);
    if let Some(quantum) = quantum {
        let owner = || format!("scheduler \"{name}\"");
        found.extend(violation_of(*quantum, Least::AboveZero, place("quantum"), "quantum", owner));
        if *quantum > Duration::ZERO && *quantum < LEAST_RUN_QUANTUM {
            found.push(Violation::warning(
                place("quantum"),
                format!(
                    "the quantum of scheduler \"{name}\", {quantum}, is too short to be run: real threads would spend much of it \
                     on switching, which takes some 5us each time"
                ),
                format!("make it at least {LEAST_RUN_QUANTUM}, unless it is only to be checked or simulated"),
            ));
        }
    }
}

/// Every parameter of the kind has a value that it can have, and no other has one.
fn check_settings(index: usize, scheduler: &Scheduler, found: &mut Vec<Violation>) {
    let Scheduler { name, kind, settings, .. } = scheduler;
    let mut refuse = |key, message, remedy: String| {
        let related = Some(Place::Scheduler(index, "kind"));
        found.push(Violation { related, ..Violation::error(Place::Scheduler(index, key), message, remedy) });
    };
    for parameter in own_parameters(*kind) {
        if settings.get(parameter.name).is_none() && !matches!(parameter.preset, Preset::Open(_)) {
            let message = format!("the {kind} scheduler \"{name}\" lacks its {}", parameter.name);
            refuse(parameter.name, message, format!("give it one: {}", allowed(parameter.values)));
        }
    }
    for (key, setting) in settings.iter() {
        let Some(parameter) = own_parameters(*kind).find(|parameter| parameter.name == key) else {
            let message = format!("scheduler \"{name}\" is of kind {kind}, which has no {key}");
            let with_it = SchedulerKind::in_files().into_iter();
            let with_it: Vec<&str> =
                with_it.filter(|kind| kind.parameter(key).is_some()).map(SchedulerKind::name).collect();
            let remedy = match with_it.as_slice() {
                [] => "leave it out".into(),
                kinds => format!("leave it out; kinds that have one: {}", kinds.join(", ")),
            };
            refuse(key, message, remedy);
            continue;
        };
        let fits = match (parameter.values, setting) {
            (Values::Time, Setting::Time(time)) => *time > Duration::ZERO && *time <= TIME_LIMIT,
            (Values::Integer { min, max }, Setting::Integer(number)) => (min..=max).contains(number),
            (Values::Word(words), Setting::Word(word)) => words.contains(word),
            (Values::Plan, Setting::Plan(_)) => true,
            _ => false,
        };
        if !fits {
            let message = format!("the {key} of scheduler \"{name}\" cannot be {setting}");
            refuse(key, message, format!("write {}", allowed(parameter.values)));
        }
    }
}

/// What a parameter may be, for remedies.
fn allowed(values: Values) -> String {
    match values {
        Values::Time => "a time above zero, such as 10ms".into(),
        Values::Integer { min, max } => format!("a whole number from {min} to {max}"),
        Values::Word(words) => format!("one of {}", words.join(", ")),
        Values::Parent => "the name of one of its parents".into(),
        Values::Plan => {
            "plan = [{ start = \"0ms\", duration = \"5ms\", child = \"...\" }], or plan = { file = \"plan.csv\" }".into()
        }
    }
}

/// Whether the kernel may have given a process or thread this number.
fn can_be_one(number: u32) -> bool {
    number > 0 && i32::try_from(number).is_ok()
}

fn check_thread(index: usize, thread: &Thread, found: &mut Vec<Violation>) {
    let place = |key| Place::Thread(index, key);
    let owner = || format!("thread \"{}\"", thread.name);
    let mut refuse = |key, message: String, remedy: &str| {
        found.push(Violation::error(place(key), message, remedy));
    };
    match &thread.work {
        ThreadWork::CpuBound => {}
        ThreadWork::Bursts { burst, period } => {
            if let Some((fault, remedy)) = execution_misfit(burst) {
                refuse("work", format!("the burst of {} {fault}", owner()), &remedy);
            } else if burst.max().at_full_speed() == Duration::ZERO {
                let message = format!("the burst of {} is zero", owner());
                refuse("work", message, "make it more than zero");
            }
            found.extend(violation_of(*period, Least::AboveZero, place("work"), "period", owner));
        }
        ThreadWork::Command(words) => {
            let length: usize = words.iter().map(|word| word.len() + 1).sum();
            if words.first().is_none_or(String::is_empty) {
                let message = format!("the command of {} is empty", owner());
                refuse(
                    "run",
                    message,
                    "write the program and its arguments, such as run = [\"sleep\", \"10\"]",
                );
            } else if length > COMMAND_LIMIT {
                let message =
                    format!("the command of {} has {length} bytes, more than {COMMAND_LIMIT}", owner());
                refuse("run", message, "put it into a script and run that");
            } else if words.iter().any(|word| word.contains('\0')) {
                let message =
                    format!("the command of {} contains a zero byte, which no argument can", owner());
                refuse("run", message, "remove it");
            }
        }
        ThreadWork::Process { number, .. } if !can_be_one(*number) => {
            let message = format!("{} is process {number}, which cannot be", owner());
            refuse("pid", message, "write the number of a running process");
        }
        ThreadWork::Thread(number) if !can_be_one(*number) => {
            let message = format!("{} is thread {number}, which cannot be", owner());
            refuse("tid", message, "write the number of a thread of a running process");
        }
        ThreadWork::Process { .. } | ThreadWork::Thread(_) => {}
    }
}

/// All of a hierarchy is on one node.
fn check_node(description: &Description, member: Member, found: &mut Vec<Violation>) {
    let node = member.node(description);
    let Some(own) = description.nodes.get(node) else {
        found.push(Violation::error(
            member.place("node"),
            format!("{} is on node number {node}, which does not exist", member.label(description)),
            format!("the system has {} nodes, counted from 0", description.nodes.len()),
        ));
        return;
    };
    for (edge, under) in member.under(description).iter().enumerate() {
        let Some(parent) = description.schedulers.get(under.scheduler) else { continue };
        let Some(other) = description.nodes.get(parent.node).filter(|_| parent.node != node) else {
            continue;
        };
        found.push(Violation {
            related: Some(Place::Scheduler(under.scheduler, "node")),
            ..Violation::error(
                member.edge(edge, "scheduler"),
                format!(
                    "{} is on node \"{}\", but its parent \"{}\" is on node \"{}\"",
                    member.label(description),
                    own.name,
                    parent.name,
                    other.name
                ),
                "put it under schedulers of its own node; only the root needs to name one",
            )
        });
    }
}

/// The request is one that the parent understands, and its numbers can be scheduled with.
fn check_request(
    description: &Description,
    member: Member,
    edge: usize,
    under: &Under,
    found: &mut Vec<Violation>,
) {
    let Some(parent) = description.schedulers.get(under.scheduler) else { return };
    if !under.request.fits(parent.kind.asks) {
        let place = member.edge(edge, under.request.key().unwrap_or(missing_key(parent.kind)));
        found.push(Violation {
            related: Some(Place::Scheduler(under.scheduler, "kind")),
            ..Violation::error(place, unsuitable(description, member, under, parent), remedy(parent.kind))
        });
        return;
    }
    let fault = match &under.request {
        Request::Guarantee(Guarantee::Reservation(reservation)) => unschedulable(reservation),
        Request::Share { warp, .. } if *warp > TIME_LIMIT || *warp < Duration::ZERO => {
            Some(("warp", format!("a warp of {warp} is out of range"), "stay between 0s and 87600h"))
        }
        _ => None,
    };
    if let Some((key, fault, remedy)) = fault {
        let message = format!("{}: {fault}", member.label(description));
        found.push(Violation::error(member.edge(edge, key), message, remedy));
    }
}

/// The key that a request of this kind of scheduler has.
fn missing_key(kind: SchedulerKind) -> &'static str {
    match kind.asks {
        Asks::Priority | Asks::Level => "priority",
        Asks::Share | Asks::WarpedShare => "share",
        Asks::Guarantee(_) | Asks::GuaranteeOrJobs(_) | Asks::AtMost(_) => "guarantee",
        Asks::Nothing | Asks::NoChildren => "scheduler",
    }
}

fn unsuitable(description: &Description, member: Member, under: &Under, parent: &Scheduler) -> String {
    let (label, name, kind) = (member.label(description), &parent.name, parent.kind);
    match kind.asks {
        Asks::NoChildren => {
            format!("{label} is under \"{name}\", whose threads are the tasks in its lanes")
        }
        _ => format!("{label} asks the {kind} scheduler \"{name}\" for {}", under.request),
    }
}

fn remedy(kind: SchedulerKind) -> String {
    match kind.asks {
        Asks::NoChildren => "put it under another scheduler".into(),
        asks => format!("write {}", asks.wanted()),
    }
}

/// What is wrong with the times of a reservation that a scheduler is to keep.
fn unschedulable(reservation: &Reservation) -> Option<(&'static str, String, &'static str)> {
    let limit = Span::try_from(TIME_LIMIT).expect("ten years are positive");
    let is_whole = |span: &Span| span.nanos().is_integer();
    if reservation.amount().is_zero() {
        return Some((
            "guarantee",
            "a reservation of nothing".into(),
            "reserve more than zero, or ask nobody for it",
        ));
    }
    if reservation.period() > &limit {
        let message = format!("the period of {} is longer than ten years", reservation.period());
        return Some(("guarantee", message, "stay below 87600h"));
    }
    if !is_whole(reservation.amount()) || !is_whole(reservation.period()) {
        let message =
            format!("{} in {} is finer than a nanosecond", reservation.amount(), reservation.period());
        return Some((
            "guarantee",
            message,
            "schedulers count whole nanoseconds; round the amount up or the period down",
        ));
    }
    None
}
