//! Rules about a hierarchy as a whole: one root per node, no circle, and as many parents and children as each kind takes.

use super::hierarchy::{Member, members};
use super::{Place, Violation};
use crate::composition::Scheduling;
use crate::description::Description;
use crate::hierarchy::{Asks, Request, Scheduler, SchedulerKind};
use std::collections::{BTreeMap, HashMap, HashSet};

/// How many names of a circle a message lists.
const CIRCLE_NAMES: usize = 8;

/// Who is whose child, with what could not be found out left out.
struct Family<'d> {
    description: &'d Description,
    /// Children of each scheduler with the edge's position among the child's, in file order.
    children: Vec<Vec<(Member, usize)>>,
}

pub(super) fn check(description: &Description, found: &mut Vec<Violation>) {
    let mut children = vec![Vec::new(); description.schedulers.len()];
    for member in members(description) {
        for (edge, under) in member.under(description).iter().enumerate() {
            if let Some(children) = children.get_mut(under.scheduler) {
                children.push((member, edge));
            }
        }
    }
    let family = Family { description, children };
    family.check_roots(found);
    family.check_circles(found);
    for member in members(description) {
        family.check_parents(member, found);
    }
    for scheduler in 0..description.schedulers.len() {
        family.check_children(scheduler, found);
    }
    family.check_tasks(found);
}

impl Family<'_> {
    fn check_roots(&self, found: &mut Vec<Violation>) {
        let schedulers = &self.description.schedulers;
        // Without a node of its own a root is in nobody's way.
        let homeless: HashSet<Place> = found.iter().map(|violation| violation.place).collect();
        let mut roots: HashMap<usize, usize> = HashMap::new();
        for (index, scheduler) in schedulers.iter().enumerate() {
            if !scheduler.under.is_empty() || homeless.contains(&Place::Scheduler(index, "node")) {
                continue;
            }
            let first = *roots.entry(scheduler.node).or_insert(index);
            let node = self.description.nodes.get(scheduler.node).map_or("?", |node| node.name.as_str());
            if first != index {
                found.push(Violation {
                    related: Some(Place::Scheduler(first, "name")),
                    ..Violation::error(
                        Place::Scheduler(index, "under"),
                        format!(
                            "schedulers \"{}\" and \"{}\" both have no parent on node \"{node}\"",
                            schedulers[first].name, scheduler.name
                        ),
                        "a node has one root; put the other under it with under = [{ scheduler = \"...\" }]",
                    )
                });
            }
            self.check_root(index, found);
        }
    }

    fn check_root(&self, index: usize, found: &mut Vec<Violation>) {
        let scheduler = &self.description.schedulers[index];
        let name = &scheduler.name;
        let processors = self.description.nodes.get(scheduler.node).map_or(1, |node| node.cpus.len());
        let kind = scheduler.kind;
        let fault = if kind == SchedulerKind::JOIN {
            Some((
                format!("the join \"{name}\" has no parent"),
                "name at least two in its \"under\"; it runs its child whenever one of them runs it",
            ))
        } else if kind == SchedulerKind::LANES {
            let of_node = self.description.schedulers.iter().filter(|other| other.node == scheduler.node);
            Some(match of_node.count() {
                1 => (
                    format!("the lanes \"{name}\" are all there is on their node"),
                    "leave the table out: a node without schedulers is scheduled by lanes",
                ),
                _ => (
                    format!("the lanes \"{name}\" have no parent"),
                    "put them under another scheduler, such as one of kind fixed-priority",
                ),
            })
        } else if processors > 1 && !kind.takes_several() {
            Some((
                format!(
                    "the {kind} scheduler \"{name}\" schedules one processor, but its node has {processors}"
                ),
                "put a fixed-priority or an sfs scheduler above it, or give the node one cpu",
            ))
        } else {
            None
        };
        if let Some((message, remedy)) = fault {
            let related = Some(Place::Scheduler(index, "kind"));
            found.push(Violation {
                related,
                ..Violation::error(Place::Scheduler(index, "under"), message, remedy)
            });
        }
    }

    /// Takes away schedulers without parents, again and again; of what is left each has a parent that is left, so walking
    /// upwards comes round.
    fn check_circles(&self, found: &mut Vec<Violation>) {
        let schedulers = &self.description.schedulers;
        let known = |index: usize| {
            schedulers[index]
                .under
                .iter()
                .map(|under| under.scheduler)
                .filter(|parent| *parent < schedulers.len())
        };
        let mut open: Vec<usize> = (0..schedulers.len()).map(|index| known(index).count()).collect();
        let mut free: Vec<usize> = (0..schedulers.len()).filter(|index| open[*index] == 0).collect();
        while let Some(parent) = free.pop() {
            for (child, _) in &self.children[parent] {
                let Member::Scheduler(child) = *child else { continue };
                open[child] -= 1;
                if open[child] == 0 {
                    free.push(child);
                }
            }
        }
        let mut told = HashSet::new();
        for start in (0..schedulers.len()).filter(|index| open[*index] > 0) {
            let (mut walk, mut seen) = (vec![start], HashMap::from([(start, 0)]));
            let first = loop {
                let last = walk[walk.len() - 1];
                let parent =
                    known(last).find(|parent| open[*parent] > 0).expect("what is left has a parent left");
                if let Some(first) = seen.get(&parent) {
                    break *first;
                }
                seen.insert(parent, walk.len());
                walk.push(parent);
                if told.contains(&parent) {
                    break walk.len();
                }
            };
            let circle = &walk[first..];
            told.extend(walk.iter().copied());
            if !circle.is_empty() {
                self.tell_circle(circle, found);
            }
        }
    }

    fn tell_circle(&self, circle: &[usize], found: &mut Vec<Violation>) {
        let schedulers = &self.description.schedulers;
        let first = *circle.iter().min().expect("a circle has members");
        let from = circle.iter().position(|index| *index == first).expect("it is one of them");
        let around = circle[from..].iter().chain(&circle[..from]);
        let mut names: Vec<&str> =
            around.take(CIRCLE_NAMES).map(|index| schedulers[*index].name.as_str()).collect();
        names.push(if circle.len() > CIRCLE_NAMES { "..." } else { &schedulers[first].name });
        found.push(Violation::error(
            Place::Scheduler(first, "under"),
            format!("schedulers are under each other in a circle: {}", names.join(" under ")),
            "take out one of these edges; guarantees only go down, from the root",
        ));
    }

    fn check_parents(&self, member: Member, found: &mut Vec<Violation>) {
        let under = member.under(self.description);
        let label = member.label(self.description);
        let kind = match member {
            Member::Scheduler(scheduler) => Some(self.description.schedulers[scheduler].kind),
            Member::Thread(_) => None,
        };
        let mut refuse = |edge: Option<usize>, message: String, remedy: &str| {
            let place = edge.map_or(member.place("under"), |edge| member.edge(edge, "scheduler"));
            let related = kind.map(|_| member.place("kind"));
            found.push(Violation { related, ..Violation::error(place, message, remedy) });
        };
        match (kind, under.len()) {
            (None, 0) => {
                refuse(
                    None,
                    format!("nothing schedules {label}"),
                    "put it under a scheduler, under = [{ scheduler = \"...\" }]",
                );
            }
            (Some(kind), 1) if kind == SchedulerKind::JOIN => refuse(
                None,
                format!(
                    "the join \"{}\" has one parent; it joins what several give",
                    member.name(self.description)
                ),
                "name a second one, or put its child where the join is and leave it out",
            ),
            (kind, 2..) if !kind.is_some_and(SchedulerKind::takes_several) => refuse(
                Some(1),
                format!("{label} has {} parents, but takes one virtual processor", under.len()),
                "put a scheduler of kind \"join\" under them, and this under the join",
            ),
            _ => {}
        }
        let mut seen = HashSet::new();
        for (edge, under) in under.iter().enumerate() {
            if under.scheduler < self.children.len() && !seen.insert(under.scheduler) {
                let parent = &self.description.schedulers[under.scheduler].name;
                let remedy = match kind {
                    Some(kind) if kind.takes_several() && kind != SchedulerKind::JOIN => {
                        "name each parent once; for another of its processors put a fixed-priority scheduler between, of \
                         which this is the only child"
                    }
                    _ => "name each parent once",
                };
                refuse(Some(edge), format!("{label} is under \"{parent}\" twice"), remedy);
            }
        }
    }

    fn check_children(&self, index: usize, found: &mut Vec<Violation>) {
        let scheduler = &self.description.schedulers[index];
        let (name, kind, children) = (&scheduler.name, scheduler.kind, &self.children[index]);
        if children.is_empty() && kind != SchedulerKind::LANES {
            found.push(Violation::warning(
                Place::Scheduler(index, "name"),
                format!("scheduler \"{name}\" schedules nothing"),
                "put a scheduler or a thread under it, or remove it",
            ));
        }
        if kind.has_one_child()
            && let [(first, first_edge), (second, edge), ..] = children.as_slice()
        {
            found.push(Violation {
                related: Some(first.edge(*first_edge, "scheduler")),
                ..Violation::error(
                    second.edge(*edge, "scheduler"),
                    format!(
                        "the {kind} scheduler \"{name}\" has {} children, but schedules one",
                        children.len()
                    ),
                    "put a scheduler of several between them and it, such as round-robin",
                )
            });
        }
        if kind.asks == Asks::Priority {
            self.check_priorities(index, found);
        }
    }

    /// Guarantees go to the highest child, so there has to be one.
    fn check_priorities(&self, index: usize, found: &mut Vec<Violation>) {
        let mut first_use: BTreeMap<i32, (Member, usize)> = BTreeMap::new();
        for (member, edge) in &self.children[index] {
            let Request::Priority(priority) = member.under(self.description)[*edge].request else { continue };
            let (first, first_edge) = *first_use.entry(priority).or_insert((*member, *edge));
            if (first, first_edge) == (*member, *edge) {
                continue;
            }
            found.push(Violation {
                related: Some(first.edge(first_edge, "priority")),
                ..Violation::error(
                    member.edge(*edge, "priority"),
                    format!(
                        "{} and {} both have priority {priority} under \"{}\"",
                        first.label(self.description),
                        member.label(self.description),
                        self.description.schedulers[index].name
                    ),
                    "give each its own, or put both under a scheduler of several with that priority",
                )
            });
        }
    }

    /// Tasks on a node with a hierarchy need a place in it, and lanes need tasks.
    fn check_tasks(&self, found: &mut Vec<Violation>) {
        let description = self.description;
        self.check_lanes_named(found);
        // Lanes may be meant by a subtask whose own word is wrong.
        let is_known = found.iter().all(|one| !matches!(one.place, Place::Subtask(_, _, "lanes" | "node")));
        let tasks = description.tasks.iter().flat_map(|task| &task.subtasks);
        let served: HashSet<usize> = tasks.filter_map(|subtask| description.lanes_with(subtask)).collect();
        let is_lanes = |scheduler: &Scheduler| scheduler.kind == SchedulerKind::LANES;
        let schedulers = description.schedulers.iter().enumerate();
        for (index, scheduler) in schedulers.filter(|(_, scheduler)| is_lanes(scheduler)) {
            if !served.contains(&index) && is_known {
                found.push(Violation::warning(
                    Place::Scheduler(index, "name"),
                    format!("the lanes \"{}\" have nothing to do: no task is in them", scheduler.name),
                    "place a task in them, or remove them",
                ));
            }
        }
        for (node, (task, subtask)) in used_by(description) {
            if description.scheduling(node) == Scheduling::Hierarchy
                && description.lanes_on(node).next().is_none()
            {
                found.push(Violation::error(
                    Place::Subtask(task, subtask, "node"),
                    format!(
                        "task \"{}\" runs on node \"{}\", whose schedulers have no place for tasks",
                        self.description.tasks[task].name, self.description.nodes[node].name
                    ),
                    "add a [[scheduler]] of kind \"lanes\" under one of them, or place the task on another node",
                ));
            }
        }
    }

    /// The schedulers of kind `lanes` that subtasks name.
    fn check_lanes_named(&self, found: &mut Vec<Violation>) {
        let description = self.description;
        // One without a node that there is has been told so.
        let unknown: HashSet<Place> = found.iter().map(|violation| violation.place).collect();
        for (index, task) in description.tasks.iter().enumerate() {
            for (position, subtask) in task.subtasks.iter().enumerate() {
                let name = task.operation_name(position);
                let place = Place::Subtask(index, position, "lanes");
                if unknown.contains(&place) || unknown.contains(&Place::Subtask(index, position, "node")) {
                    continue;
                }
                let on_node: Vec<usize> = description.lanes_on(subtask.node).collect();
                let names: Vec<String> = on_node
                    .iter()
                    .map(|lanes| format!("\"{}\"", description.schedulers[*lanes].name))
                    .collect();
                let remedy = match names.is_empty() {
                    true => "remove the key; no scheduler of kind \"lanes\" is on its node".to_owned(),
                    false => format!("write lanes = {}", names.join(" or ")),
                };
                let fault = match subtask.lanes {
                    None if on_node.len() > 1 => {
                        format!(
                            "task \"{name}\" does not name one of the schedulers of kind lanes on its node"
                        )
                    }
                    Some(lanes) if !on_node.contains(&lanes) => match description.schedulers.get(lanes) {
                        Some(other) if other.kind != SchedulerKind::LANES => format!(
                            "task \"{name}\" names \"{}\" for its lanes, which is a scheduler of kind {}",
                            other.name, other.kind
                        ),
                        Some(other) => {
                            format!(
                                "task \"{name}\" is in the lanes \"{}\", which are on another node",
                                other.name
                            )
                        }
                        None => format!(
                            "task \"{name}\" is in the lanes of scheduler number {lanes}, which does not exist"
                        ),
                    },
                    _ => continue,
                };
                found.push(Violation::error(place, fault, remedy));
            }
        }
    }
}

/// The first task and subtask on each node that has one.
fn used_by(description: &Description) -> BTreeMap<usize, (usize, usize)> {
    let mut used = BTreeMap::new();
    for (task_index, task) in description.tasks.iter().enumerate() {
        for (index, subtask) in task.subtasks.iter().enumerate() {
            if subtask.node < description.nodes.len() {
                used.entry(subtask.node).or_insert((task_index, index));
            }
        }
    }
    used
}
