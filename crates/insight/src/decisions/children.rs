//! What each scheduler's children have and want, kept up to date record by record, so that judging a scheduler costs what it serves and
//! not what stands below it.

use crate::hierarchy::{EdgeState, Hierarchies};
use std::collections::BTreeSet;

/// The children of one scheduler, by the edges to them.
#[derive(Clone, Debug, Default)]
struct Children {
    /// Those that have a processor; no more than there are processors where everything is in order.
    running: Vec<usize>,
    /// How many have not been heard of.
    unknown: usize,
    /// Those that are ready and whose priority can be judged, by priority.
    ready: BTreeSet<(i32, usize)>,
    /// Something about the scheduler has changed since it was judged.
    touched: bool,
}

/// The children of all schedulers, which are numbered as in [`Hierarchies::group_of`].
#[derive(Debug)]
pub(super) struct AllChildren {
    groups: Vec<Children>,
    /// By edge: its priority, if it has one and no other edge leads to the same child.
    judged: Vec<Option<i32>>,
    touched: Vec<usize>,
}

impl AllChildren {
    /// Of which nothing has been heard.
    pub fn new(hierarchies: &Hierarchies, judged: Vec<Option<i32>>) -> Self {
        let mut all = AllChildren { groups: Vec::new(), judged, touched: Vec::new() };
        all.rebuild(hierarchies);
        all
    }

    /// The states of many edges have changed. What is to be judged still is.
    pub fn rebuild(&mut self, hierarchies: &Hierarchies) {
        self.groups = vec![Children::default(); hierarchies.groups()];
        self.touched.iter().for_each(|group| self.groups[*group].touched = true);
        for edge in 0..self.judged.len() {
            self.enter(hierarchies.group_of(edge), edge, hierarchies.state(edge));
        }
    }

    /// An edge has come from one state into another.
    pub fn change(&mut self, hierarchies: &Hierarchies, edge: usize, before: EdgeState) {
        let (group, after) = (hierarchies.group_of(edge), hierarchies.state(edge));
        let children = &mut self.groups[group];
        match before {
            EdgeState::Unknown => children.unknown -= 1,
            EdgeState::Running(_) => children.running.retain(|other| *other != edge),
            EdgeState::Ready => {
                if let Some(priority) = self.judged[edge] {
                    children.ready.remove(&(priority, edge));
                }
            }
            EdgeState::Waiting => {}
        }
        self.enter(group, edge, after);
    }

    fn enter(&mut self, group: usize, edge: usize, state: EdgeState) {
        let children = &mut self.groups[group];
        match state {
            EdgeState::Unknown => children.unknown += 1,
            EdgeState::Running(_) => children.running.push(edge),
            EdgeState::Ready => children.ready.extend(self.judged[edge].map(|priority| (priority, edge))),
            EdgeState::Waiting => {}
        }
    }

    /// The scheduler is to be judged when the instant is over.
    pub fn touch(&mut self, group: usize) {
        if !std::mem::replace(&mut self.groups[group].touched, true) {
            self.touched.push(group);
        }
    }

    /// Nothing is to be judged.
    pub fn forget_touched(&mut self) {
        self.touched.drain(..).for_each(|group| self.groups[group].touched = false);
    }

    /// A scheduler that is to be judged; each is named once.
    pub fn next_touched(&mut self) -> Option<usize> {
        let group = self.touched.pop()?;
        self.groups[group].touched = false;
        Some(group)
    }

    /// The children that have a processor.
    pub fn running(&self, group: usize) -> &[usize] {
        &self.groups[group].running
    }

    /// Whether all children have been heard of.
    pub fn is_known(&self, group: usize) -> bool {
        self.groups[group].unknown == 0
    }

    /// How many children are ready and can be judged by their priority.
    pub fn ready(&self, group: usize) -> usize {
        self.groups[group].ready.len()
    }

    /// The ready ones of a higher priority than this.
    pub fn ready_above(&self, group: usize, priority: i32) -> impl Iterator<Item = usize> + '_ {
        let ready = &self.groups[group].ready;
        ready.range((priority, usize::MAX)..).filter(move |(own, _)| *own > priority).map(|(_, edge)| *edge)
    }
}
