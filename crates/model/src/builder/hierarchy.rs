//! Schedulers and threads under construction, with their parents by name.

use super::{LanesNames, NodeNames};
use crate::hierarchy::*;
use crate::suggest::known_words;
use crate::{Place, Violation};
use std::collections::HashMap;
use std::num::NonZeroU32;
use talea_guarantee::guarantee::Guarantee;
use talea_time::Duration;

/// A scheduler under construction.
#[derive(Clone, Debug)]
pub struct SchedulerBuilder {
    name: String,
    kind: SchedulerKind,
    node: Option<String>,
    quantum: Option<Duration>,
    takes: Option<String>,
    settings: Settings,
    under: Vec<(String, Request)>,
}

impl SchedulerBuilder {
    /// Begins a scheduler: the root of its node unless it is put [under](Self::under) another, with its kind's own presets: a
    /// quantum of 10 ms if it has one.
    pub fn new(name: impl Into<String>, kind: SchedulerKind) -> Self {
        let (quantum, name, settings) = (kind.preset_quantum(), name.into(), Settings::of(kind));
        SchedulerBuilder { name, kind, node: None, quantum, takes: None, settings, under: Vec::new() }
    }

    /// The node of the root, by name; needed if the system has several.
    pub fn on(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// Another quantum.
    pub fn quantum(mut self, quantum: Duration) -> Self {
        self.quantum = Some(quantum);
        self
    }

    /// Another value of a parameter that the kind declares.
    pub fn set(mut self, parameter: &'static str, setting: Setting) -> Self {
        self.settings.set(parameter, setting);
        self
    }

    /// The parent whose guarantee the child of a join takes, by name.
    pub fn takes(mut self, parent: impl Into<String>) -> Self {
        self.takes = Some(parent.into());
        self
    }

    /// Puts it under a scheduler, of which it asks for something.
    pub fn under(mut self, scheduler: impl Into<String>, request: Request) -> Self {
        self.under.push((scheduler.into(), request));
        self
    }

    /// Puts it under a scheduler of shares.
    ///
    /// # Panics
    /// If the share is zero.
    pub fn with_share(self, scheduler: impl Into<String>, share: u32) -> Self {
        self.under(scheduler, Request::share(NonZeroU32::new(share).expect("a share is above zero")))
    }
}

/// A thread under construction.
#[derive(Clone, Debug)]
pub struct ThreadBuilder {
    name: String,
    work: ThreadWork,
    requires: Option<Guarantee>,
    under: Vec<(String, Request)>,
}

impl ThreadBuilder {
    /// Begins a thread, which has to be put [under](Self::under) a scheduler.
    pub fn new(name: impl Into<String>, work: ThreadWork) -> Self {
        ThreadBuilder { name: name.into(), work, requires: None, under: Vec::new() }
    }

    /// What it has to receive.
    pub fn requires(mut self, guarantee: Guarantee) -> Self {
        self.requires = Some(guarantee);
        self
    }

    /// Puts it under a scheduler, of which it asks for something.
    pub fn under(mut self, scheduler: impl Into<String>, request: Request) -> Self {
        self.under.push((scheduler.into(), request));
        self
    }

    /// Puts it under a scheduler of shares.
    ///
    /// # Panics
    /// If the share is zero.
    pub fn with_share(self, scheduler: impl Into<String>, share: u32) -> Self {
        self.under(scheduler, Request::share(NonZeroU32::new(share).expect("a share is above zero")))
    }
}

/// All schedulers and threads.
#[derive(Clone, Debug, Default)]
pub(super) struct HierarchyBuilder {
    pub(super) schedulers: Vec<SchedulerBuilder>,
    pub(super) threads: Vec<ThreadBuilder>,
}

/// Stands in for a parent that does not exist.
const NOBODY: usize = usize::MAX;

impl HierarchyBuilder {
    /// In whose lanes subtasks may say that they are.
    pub(super) fn lanes(&self) -> LanesNames {
        let mut lanes = LanesNames { numbers: HashMap::new(), names: Vec::new() };
        for (index, scheduler) in self.schedulers.iter().enumerate() {
            lanes.numbers.entry(scheduler.name.clone()).or_insert(index);
            if scheduler.kind == SchedulerKind::LANES {
                lanes.names.push(scheduler.name.clone());
            }
        }
        lanes
    }

    /// Turns names into indices. Where a name of a parent means nothing, its edge leads nowhere.
    pub(super) fn resolve(
        self,
        nodes: &NodeNames<'_>,
        violations: &mut Vec<Violation>,
    ) -> (Vec<Scheduler>, Vec<Thread>) {
        let mut names = Names { numbers: HashMap::new(), order: Vec::new(), threads: Vec::new() };
        for (index, scheduler) in self.schedulers.iter().enumerate() {
            names.numbers.entry(scheduler.name.clone()).or_insert(index);
            names.order.push(scheduler.name.clone());
        }
        names.threads.extend(self.threads.iter().map(|thread| thread.name.clone()));
        let mut resolved = Vec::with_capacity(self.schedulers.len());
        let mut stated = Vec::with_capacity(self.schedulers.len());
        for (index, scheduler) in self.schedulers.into_iter().enumerate() {
            let SchedulerBuilder { name, kind, node, quantum, takes, settings, under } = scheduler;
            let label = format!("scheduler \"{name}\"");
            let under = names.under(
                &label,
                under,
                |edge| Place::SchedulerUnder(index, edge, "scheduler"),
                violations,
            );
            let takes = takes.and_then(|takes| {
                let place = Place::Scheduler(index, "takes");
                Some(names.find(&label, &takes, place, violations)).filter(|takes| *takes != NOBODY)
            });
            let node = match (node, under.is_empty()) {
                (None, false) => None,
                (node, _) => Some(nodes.find(node.as_deref()).unwrap_or_else(|(fault, remedy)| {
                    let place = Place::Scheduler(index, "node");
                    violations.push(Violation::error(place, format!("{label} {fault}"), remedy));
                    0
                })),
            };
            stated.push(node);
            resolved.push(Scheduler { name, node: 0, kind, quantum, takes, settings, under });
        }
        inherit_nodes(&mut resolved, &stated);
        let threads = self.threads.into_iter().enumerate().map(|(index, thread)| {
            let ThreadBuilder { name, work, requires, under } = thread;
            let label = format!("thread \"{name}\"");
            let under =
                names.under(&label, under, |edge| Place::ThreadUnder(index, edge, "scheduler"), violations);
            let node =
                under.iter().find_map(|under| resolved.get(under.scheduler)).map_or(0, |parent| parent.node);
            Thread { name, node, work, requires, under }
        });
        let threads = threads.collect();
        (resolved, threads)
    }
}

/// Gives every scheduler the node that it states, or else that of its first parent.
fn inherit_nodes(schedulers: &mut [Scheduler], stated: &[Option<usize>]) {
    let mut children = vec![Vec::new(); schedulers.len()];
    for (index, scheduler) in schedulers.iter().enumerate() {
        let known = scheduler.under.iter().map(|under| under.scheduler).find(|parent| *parent != NOBODY);
        if let Some(parent) = known {
            children[parent].push(index);
        }
    }
    let mut open: Vec<usize> = (0..schedulers.len()).filter(|index| stated[*index].is_some()).collect();
    for index in &open {
        schedulers[*index].node = stated[*index].expect("only those are open");
    }
    while let Some(parent) = open.pop() {
        for child in &children[parent] {
            if stated[*child].is_none() {
                schedulers[*child].node = schedulers[parent].node;
                open.push(*child);
            }
        }
    }
}

/// The names that an edge may have.
struct Names {
    numbers: HashMap<String, usize>,
    /// The schedulers' names in file order, so that suggestions are the same on every run.
    order: Vec<String>,
    threads: Vec<String>,
}

impl Names {
    fn under(
        &self,
        label: &str,
        under: Vec<(String, Request)>,
        place: impl Fn(usize) -> Place,
        violations: &mut Vec<Violation>,
    ) -> Vec<Under> {
        let edges = under.into_iter().enumerate();
        let edges = edges.map(|(edge, (name, request))| Under {
            scheduler: self.find(label, &name, place(edge), violations),
            request,
        });
        edges.collect()
    }

    fn find(&self, label: &str, name: &str, place: Place, violations: &mut Vec<Violation>) -> usize {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let (message, remedy) = if self.threads.iter().any(|thread| thread == name) {
            (
                format!("{label} is under \"{name}\", which is a thread and schedules nothing"),
                "name a scheduler".into(),
            )
        } else if self.order.is_empty() {
            (
                format!("{label} is under \"{name}\", but there are no schedulers"),
                "add a [[scheduler]] of that name".into(),
            )
        } else {
            let others = self
                .order
                .iter()
                .map(String::as_str)
                .filter(|other| !label.ends_with(&format!("\"{other}\"")));
            let remedy = match self.order.len() {
                1 if others.clone().next().is_none() => {
                    "leave \"under\" out; this is the only scheduler".into()
                }
                _ => known_words(name, others),
            };
            (format!("{label} is under \"{name}\", which does not exist"), remedy)
        };
        violations.push(Violation::error(place, message, remedy));
        NOBODY
    }
}
