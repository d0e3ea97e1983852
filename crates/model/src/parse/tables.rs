//! The tables of a file as a builder, with the section of each item to find it again.

use super::chain::read_chain;
use super::channel::read_qos;
use super::execution::execution;
use super::hierarchy::Members;
use super::ports::Ports;
use super::section::{Findings, Given, Item, Section, entry_wanted};
use super::trigger::{ReadTrigger, read_arrivals, read_trigger};
use super::values::wrong_type;
use super::{Finding, MemberLines};
use crate::builder::{LinkBuilder, SubtaskBuilder, SystemBuilder, TaskBuilder};
use crate::channel::SubscriptionOwner;
use crate::description::{Description, Overhead, Strategy};
use crate::execution::Execution;
use crate::inheritance::{Deadline, StatedCriticality};
use crate::keys::{FILE, Kind};
use crate::operation::OperationAddress;
use crate::problem::Lines;
use crate::validate::{TIME_LIMIT, misplaced_strategy};
use crate::{Place, System, ThreadWork, Violation};
use std::ops::Range;
use talea_time::{Duration, Work};
use toml::de::{DeTable, DeValue};

/// Stands in for a worst case that could not be read; breaks no rule.
const SOME_WORK: Work = Work::from_nanos(1);

/// Where each item stands.
pub(super) struct Tables<'t> {
    system: Option<Section<'t>>,
    overhead: Option<Section<'t>>,
    nodes: Vec<Section<'t>>,
    /// Those of which it is clear whom they join.
    links: Vec<Section<'t>>,
    channels: Vec<Section<'t>>,
    tasks: Vec<TaskSections<'t>>,
    chains: Vec<Section<'t>>,
    members: Members<'t>,
}

struct TaskSections<'t> {
    own: Section<'t>,
    /// The table of its trigger, if that is one.
    trigger: Option<Section<'t>>,
    ports: Ports<'t>,
    subtasks: Vec<SubtaskSections<'t>>,
}

struct SubtaskSections<'t> {
    own: Section<'t>,
    ports: Ports<'t>,
}

impl<'t> TaskSections<'t> {
    /// The table of a subtask, or of the task if that is all of it, and its ports.
    fn subtask(&self, subtask: usize) -> (&Section<'t>, &Ports<'t>) {
        let sections = self.subtasks.get(subtask);
        sections.map_or((&self.own, &self.ports), |sections| (&sections.own, &sections.ports))
    }
}

impl<'t> Tables<'t> {
    /// Reads all tables of a document. What cannot be read is in `findings`.
    pub(super) fn read(document: &'t DeTable<'t>, findings: &mut Findings) -> (SystemBuilder, Self) {
        let file = Section::open(&FILE, Item::File, document, 0..0, findings);
        let system = one(&file, "system", Item::System, findings);
        let mut builder = System::builder("");
        if let Some(section) = &system {
            builder = read_system(section, findings);
        }
        if system.is_none() {
            findings.unread.insert(Place::System("name"));
        }
        let overhead = one(&file, "overhead", Item::Overhead, findings);
        if let Some(section) = &overhead {
            builder = builder.overhead(read_overhead(section, findings));
        }
        let nodes = many(&file, "node", Item::Node, findings);
        for section in &nodes {
            let name = section.text("name", findings).unwrap_or_default();
            builder = builder.node(name, section.cpus("cpus", findings).unwrap_or_else(|| vec![0]));
        }
        let sections = many(&file, "link", Item::Link, findings);
        let mut links = Vec::new();
        for section in sections {
            if let Some(link) = read_link(&section, findings) {
                builder = builder.link(link);
                links.push(section);
            }
        }
        let channels = many(&file, "channel", Item::Channel, findings);
        for section in &channels {
            let name = section.text("name", findings).unwrap_or_default();
            builder = builder.channel(name, read_qos(section, findings));
        }
        let mut tasks = Vec::new();
        for (index, own) in many(&file, "task", Item::Task, findings).into_iter().enumerate() {
            // Of a task that something else releases it is the operation's, whose jobs take the events.
            let is_released_otherwise = own.has("period") || own.has("trigger");
            let alone = SubscriptionOwner::Operation(OperationAddress { task: index, subtask: 0 });
            let subscriber = if is_released_otherwise { alone } else { SubscriptionOwner::Task(index) };
            let ports = Ports::open(&own, (index, 0), subscriber, findings);
            let subtasks = many(&own, "subtask", |subtask| Item::Subtask(index, subtask), findings);
            let subtasks = subtasks.into_iter().enumerate();
            let subtasks = subtasks
                .map(|(subtask, own)| {
                    let address = OperationAddress { task: index, subtask };
                    let subscriber = SubscriptionOwner::Operation(address);
                    SubtaskSections { own, ports: Ports::open(&own, (index, subtask), subscriber, findings) }
                })
                .collect();
            let (trigger, released_by) = read_trigger(&own, index, findings);
            let sections = TaskSections { own, trigger, ports, subtasks };
            builder = builder.task(read_task(&sections, released_by, findings));
            tasks.push(sections);
        }
        let chains = many(&file, "chain", Item::Chain, findings);
        builder =
            chains.iter().fold(builder, |builder, section| builder.chain(read_chain(section, findings)));
        let (builder, members) = Members::read(&file, builder, findings);
        let is_absent = |name: &&str| matches!(file.given(name).1, Given::Nothing);
        if ["task", "thread", "scheduler"].iter().all(is_absent) {
            findings.miss_whole("[[task]] is missing", "write [[task]] and below it name, period and wcet");
        }
        (builder, Tables { system, overhead, nodes, links, channels, tasks, chains, members })
    }

    /// A violated rule with its place in the text.
    pub(super) fn locate(&self, violation: Violation, lines: &Lines<'_>) -> Finding {
        let span = self.span(violation.place);
        let mut remedy = violation.remedy;
        let related = violation.related.filter(|place| !self.is_left_out_beside(*place, violation.place));
        let related = related.and_then(|place| self.span(place));
        if let (Some(related), Some(span)) = (related, &span) {
            let line = lines.line(related.start);
            if line != lines.line(span.start) {
                remedy = format!("{remedy}; see line {line}");
            }
        }
        let message = match violation.place {
            Place::PlanEntry(scheduler, entry) => {
                let sections = self.members.schedulers.get(scheduler);
                let ahead = sections.map_or(String::new(), |sections| sections.plan_entry(entry).1);
                format!("{ahead}{}", violation.message)
            }
            _ => violation.message,
        };
        Finding { severity: violation.severity, span, message, remedy }
    }

    /// Whether the key of `related` was left out in the very table of `place`, so that there is nothing to see.
    fn is_left_out_beside(&self, related: Place, place: Place) -> bool {
        let (Some((section, key)), Some((own, _))) = (self.stand(related), self.stand(place)) else {
            return false;
        };
        !section.has(key) && section.header() == own.header()
    }

    /// A strategy that is written down where no node has lanes is a misunderstanding, even if it is the default.
    pub(super) fn check_strategy(&self, description: &Description, findings: &mut Findings) {
        let Some(system) = &self.system else { return };
        let is_stated = matches!(system.given("strategy").1, Given::Value(_));
        if let Some(violation) = misplaced_strategy(description).filter(|_| is_stated)
            && description.strategy == Strategy::DEFAULT
        {
            findings.error(system.span("strategy"), violation.message, violation.remedy);
        }
    }

    /// The lines on which schedulers and threads stand.
    pub(super) fn member_lines(&self, description: &Description, lines: &Lines<'_>) -> MemberLines {
        let line = |place| self.span(place).map_or(0, |span| lines.line(span.start));
        let schedulers = description.schedulers.iter().enumerate();
        let schedulers =
            schedulers.map(|(index, one)| (one.name.clone(), line(Place::Scheduler(index, "name"))));
        let threads = description.threads.iter().enumerate();
        let threads = threads.map(|(index, one)| (one.name.clone(), line(Place::Thread(index, "name"))));
        let key = |work: &ThreadWork| match work {
            ThreadWork::CpuBound | ThreadWork::Bursts { .. } => "work",
            ThreadWork::Command(_) => "run",
            ThreadWork::Process { .. } => "pid",
            ThreadWork::Thread(_) => "tid",
        };
        let work = description.threads.iter().enumerate();
        MemberLines {
            work: work.map(|(index, one)| line(Place::Thread(index, key(&one.work)))).collect(),
            names: schedulers.chain(threads).collect(),
        }
    }

    fn span(&self, place: Place) -> Option<Range<usize>> {
        if let Place::PlanEntry(scheduler, entry) = place {
            return Some(self.members.schedulers.get(scheduler)?.plan_entry(entry).0);
        }
        self.stand(place).map(|(section, key)| section.span(key))
    }

    /// The table in which a subscription stands, and the ports there.
    fn subscriber(&self, owner: SubscriptionOwner) -> Option<(&Section<'t>, &Ports<'t>)> {
        let sections = self.tasks.get(owner.task())?;
        Some(match owner {
            SubscriptionOwner::Task(_) => (&sections.own, &sections.ports),
            SubscriptionOwner::Operation(OperationAddress { subtask, .. }) => sections.subtask(subtask),
        })
    }

    /// The table in which something stands, and its key there.
    fn stand(&self, place: Place) -> Option<(&Section<'t>, &'static str)> {
        Some(match place {
            Place::Whole | Place::PlanEntry(..) => return None,
            Place::System(key) => (self.system.as_ref()?, key),
            Place::Overhead(key) => (self.overhead.as_ref()?, key),
            Place::Node(node, key) => (self.nodes.get(node)?, key),
            Place::Link(link, key) => (self.links.get(link)?, key),
            Place::Task(task, key) => (&self.tasks.get(task)?.own, key),
            Place::Subtask(task, subtask, key) => (self.tasks.get(task)?.subtask(subtask).0, key),
            Place::Output(task, subtask, output, key) => {
                let (own, ports) = self.tasks.get(task)?.subtask(subtask);
                ports.outputs.get(output).map_or((own, "outputs"), |section| (section, key))
            }
            Place::Input(task, subtask, input, key) => {
                let (own, ports) = self.tasks.get(task)?.subtask(subtask);
                ports.inputs.get(input).map_or((own, "inputs"), |section| (section, key))
            }
            Place::Channel(channel, key) => (self.channels.get(channel)?, key),
            Place::Publication(task, subtask, event, key) => {
                let (own, ports) = self.tasks.get(task)?.subtask(subtask);
                ports.events.get(event).map_or((own, "events"), |section| (section, key))
            }
            Place::Subscription(owner, key) => {
                let (own, ports) = self.subscriber(owner)?;
                let subscription = ports.subscription.as_ref();
                subscription.map_or((own, "subscription"), |subscription| (&subscription.own, key))
            }
            Place::PriorityBy(owner, entry, key) => {
                (self.subscriber(owner)?.1.subscription.as_ref()?.priorities.get(entry)?, key)
            }
            Place::TimeoutBy(owner, entry, key) => {
                (self.subscriber(owner)?.1.subscription.as_ref()?.timeouts.get(entry)?, key)
            }
            Place::Trigger(task, key) => {
                let sections = self.tasks.get(task)?;
                sections.trigger.as_ref().map_or((&sections.own, "trigger"), |section| (section, key))
            }
            Place::Chain(chain, key) => (self.chains.get(chain)?, key),
            Place::Scheduler(scheduler, key) => (&self.members.schedulers.get(scheduler)?.own, key),
            Place::Thread(thread, key) => (&self.members.threads.get(thread)?.own, key),
            Place::SchedulerUnder(member, edge, key) => {
                (self.members.schedulers.get(member)?.edge(edge), key)
            }
            Place::ThreadUnder(member, edge, key) => (self.members.threads.get(member)?.edge(edge), key),
        })
    }
}

fn read_system(section: &Section<'_>, findings: &mut Findings) -> SystemBuilder {
    let mut builder = System::builder(section.text("name", findings).unwrap_or_default());
    if let Some(strategy) = section.word("strategy", findings) {
        builder = builder.strategy(strategy);
    }
    if let Some(dispatch) = section.word("lane_dispatch", findings) {
        builder = builder.lane_dispatch(dispatch);
    }
    if let Some(laxity) = section.word("laxity", findings) {
        builder = builder.laxity(laxity);
    }
    if let Some(late) = section.word("late", findings) {
        builder = builder.late(late);
    }
    if let Some(sync) = section.word("sync", findings) {
        builder = builder.sync(sync);
    }
    if let Some(seed) = section.integer("seed", findings) {
        builder = builder.seed(seed as u64);
    }
    builder
}

/// A link; `None` if it is not clear whom it joins, which is reported.
fn read_link(section: &Section<'_>, findings: &mut Findings) -> Option<LinkBuilder> {
    let unsaid = |key| matches!(section.given(key).1, Given::Nothing);
    let names = (
        section.two_nodes("between", findings),
        section.text("from", findings),
        section.text("to", findings),
    );
    let link = match names {
        (Some([one, other]), None, None) => LinkBuilder::between(one, other),
        (None, Some(from), Some(to)) => LinkBuilder::from_to(from, to),
        (None, None, None) if unsaid("between") && unsaid("from") && unsaid("to") => LinkBuilder::others(),
        (between, from, to) => {
            let missing = match (unsaid("between"), unsaid("from"), unsaid("to")) {
                (false, true, true) | (true, false, false) => return None,
                (true, false, true) => "names \"from\" and no \"to\"",
                (true, true, false) => "names \"to\" and no \"from\"",
                _ => "names nodes with \"between\" and with \"from\" or \"to\"",
            };
            let key = if between.is_some() || from.is_none() && to.is_none() { "between" } else { "from" };
            let remedy = "write between = [\"one\", \"other\"] for both ways, or from and to for one";
            findings.error(section.span(key), format!("the link {missing}"), remedy);
            return None;
        }
    };
    Some(
        link.delay(section.time("delay", findings).unwrap_or_default())
            .jitter(section.time("jitter", findings).unwrap_or_default())
            .loss(section.share("loss", findings).unwrap_or_default()),
    )
}

fn read_overhead(section: &Section<'_>, findings: &mut Findings) -> Overhead {
    Overhead::of(|key| section.time(key, findings).unwrap_or_default().as_work())
}

fn read_task(sections: &TaskSections<'_>, trigger: ReadTrigger, findings: &mut Findings) -> TaskBuilder {
    let own = &sections.own;
    let name = own.text("name", findings).unwrap_or_default();
    // The longest time stands in for one that cannot be read: everything fits into it.
    let mut time = |key| match own.time(key, findings) {
        None if own.has(key) => Some(TIME_LIMIT),
        time => time,
    };
    let (period, separation) = (time("period"), time("separation"));
    let subscription = sections.ports.read_subscription(findings);
    let is_released_otherwise = period.is_some() || !matches!(trigger, ReadTrigger::Absent);
    let (trigger, taken) = match (subscription, is_released_otherwise) {
        (Some(subscription), false) => (ReadTrigger::Given(subscription.into()), None),
        (None, false) if own.has("subscription") => (ReadTrigger::Unread, None),
        (taken, _) => (trigger, taken),
    };
    let (period, trigger) = match trigger {
        ReadTrigger::Absent if period.is_none() => {
            let remedy = "add period = \"50ms\", or a trigger such as trigger = { output = \"task.output\" }, or a subscription";
            findings.miss(own, "period", remedy);
            (Some(TIME_LIMIT), None)
        }
        ReadTrigger::Absent => (period, None),
        ReadTrigger::Unread => (period.or(Some(TIME_LIMIT)), None),
        ReadTrigger::Given(trigger) => (period, Some(trigger)),
    };
    let mut task = TaskBuilder::released(name, period, trigger)
        .phase(own.time("phase", findings).unwrap_or_default())
        .jitter(own.time("jitter", findings).unwrap_or_default());
    match own.deadline("deadline", findings) {
        Some(Deadline::After(deadline)) => task = task.deadline(deadline),
        Some(Deadline::Inherited) => task = task.inherit_deadline(),
        None if own.has("deadline") => task = task.deadline(TIME_LIMIT),
        None => {}
    }
    if let Some(separation) = separation {
        task = task.separation(separation);
    }
    if let Some(burst) = own.integer("burst", findings) {
        task = task.burst(burst as u32);
    }
    if let Some(excess) = own.word("excess", findings) {
        task = task.excess(excess);
    }
    if let Some(arrivals) = read_arrivals(own, findings) {
        task = task.arrivals(arrivals);
    }
    if let Some(communication) = own.word("communication", findings) {
        task = task.communication(communication);
    }
    match own.criticality("criticality", findings) {
        Some(StatedCriticality::Own(criticality)) => task = task.criticality(criticality),
        Some(StatedCriticality::Inherited) => task = task.inherit_criticality(),
        None => {}
    }
    if let Some(importance) = own.integer("importance", findings) {
        task = task.importance(importance as i32);
    }
    if let Some(overrun) = own.word("overrun", findings) {
        task = task.overrun(overrun);
    }
    if let Some(sync) = own.word("sync", findings) {
        task = task.sync(sync);
    }
    if !matches!(own.given("wcet").1, Given::Nothing) {
        task = task.wcet(read_wcet(own, findings));
    }
    if let Some(exec) = read_exec(own, findings) {
        task = task.exec(exec);
    }
    if let Some(node) = own.text("node", findings) {
        task = task.on(node);
    }
    if let Some(lanes) = own.text("lanes", findings) {
        task = task.in_lanes(lanes);
    }
    task = sections.ports.read_outputs(findings).fold(task, TaskBuilder::output);
    task = sections.ports.read_inputs(findings).fold(task, TaskBuilder::input);
    task = sections.ports.read_events(findings).fold(task, TaskBuilder::event);
    task = taken.into_iter().fold(task, TaskBuilder::subscription);
    sections.subtasks.iter().fold(task, |task, subtask| task.subtask(read_subtask(subtask, findings)))
}

fn read_subtask(sections: &SubtaskSections<'_>, findings: &mut Findings) -> SubtaskBuilder {
    let section = &sections.own;
    let name = section.text("name", findings).unwrap_or_default();
    let mut subtask = SubtaskBuilder::new(name).wcet(read_wcet(section, findings));
    if let Some(exec) = read_exec(section, findings) {
        subtask = subtask.exec(exec);
    }
    if let Some(node) = section.text("node", findings) {
        subtask = subtask.on(node);
    }
    if let Some(lanes) = section.text("lanes", findings) {
        subtask = subtask.in_lanes(lanes);
    }
    if let Some(after) = section.names("after", findings) {
        subtask = subtask.after(after);
    }
    if let Some(join) = section.join("join", findings) {
        subtask = subtask.join(join);
    }
    if let Some(bound) = section.time("bound", findings) {
        subtask = subtask.bound(bound);
    }
    subtask = sections.ports.read_outputs(findings).fold(subtask, SubtaskBuilder::output);
    subtask = sections.ports.read_inputs(findings).fold(subtask, SubtaskBuilder::input);
    subtask = sections.ports.read_events(findings).fold(subtask, SubtaskBuilder::event);
    sections.ports.read_subscription(findings).into_iter().fold(subtask, SubtaskBuilder::subscription)
}

fn read_wcet(section: &Section<'_>, findings: &mut Findings) -> Work {
    section.time("wcet", findings).map_or(SOME_WORK, Duration::as_work)
}

fn read_exec(section: &Section<'_>, findings: &mut Findings) -> Option<Execution> {
    findings.with_traces(|findings, traces| {
        section.other("exec", findings, |key, value| execution(key, value, traces))
    })
}

/// The one table under `name`.
pub(super) fn one<'t>(
    parent: &Section<'t>,
    name: &'static str,
    item: Item,
    findings: &mut Findings,
) -> Option<Section<'t>> {
    let (key, given) = parent.given(name);
    let Kind::One(declaration) = key.kind else { unreachable!("\"{name}\" is declared as a table") };
    let Given::Value(value) = given else { return None };
    match value.get_ref() {
        DeValue::Table(table) => Some(Section::open(declaration, item, table, value.span(), findings)),
        _ => {
            let remedy = match declaration.entry() {
                Some(entry) => format!("write {name} = {entry}"),
                None => format!("write the header with single brackets, {}", declaration.header),
            };
            findings.error(value.span(), wrong_type(key, value).message, remedy);
            None
        }
    }
}

/// The tables of the list under `name`.
pub(super) fn many<'t>(
    parent: &Section<'t>,
    name: &'static str,
    item: impl Fn(usize) -> Item,
    findings: &mut Findings,
) -> Vec<Section<'t>> {
    let (key, given) = parent.given(name);
    let Kind::Many(declaration) = key.kind else {
        unreachable!("\"{name}\" is declared as a list of tables")
    };
    let Given::Value(value) = given else { return Vec::new() };
    let place = parent.item.place(name);
    let mut refuse = |span, message, remedy| {
        findings.unread.insert(place);
        findings.error(span, message, remedy);
    };
    match value.get_ref() {
        DeValue::Array(list) if list.is_empty() => {
            let message = format!("the list \"{name}\" is empty");
            let remedy = match declaration.is_inline() {
                true => entry_wanted(name, declaration),
                false => format!("write {} tables, or leave it out", declaration.header),
            };
            refuse(value.span(), message, remedy);
            Vec::new()
        }
        DeValue::Array(list) => {
            let mut sections = Vec::with_capacity(list.len());
            for element in list.iter() {
                match element.get_ref() {
                    DeValue::Table(table) => {
                        let item = item(sections.len());
                        sections.push(Section::open(declaration, item, table, element.span(), findings));
                    }
                    _ => {
                        let message = format!("an element of \"{name}\" is not a table");
                        findings.unread.insert(place);
                        let remedy = match declaration.is_inline() {
                            true => format!("write {}", declaration.entry().unwrap_or_default()),
                            false => format!("write {} tables", declaration.header),
                        };
                        findings.error(element.span(), message, remedy);
                    }
                }
            }
            sections
        }
        _ if declaration.is_inline() => {
            let entry = declaration.entry().unwrap_or_default();
            let remedy = format!("write a list of tables, {name} = [{entry}]");
            refuse(value.span(), wrong_type(key, value).message, remedy);
            Vec::new()
        }
        _ => {
            let remedy = format!("write the header with double brackets, {}", declaration.header);
            refuse(value.span(), wrong_type(key, value).message, remedy);
            Vec::new()
        }
    }
}
