//! Sets of processors as nodes: threads with the same set share a node.

use super::thread::Thread;
use crate::Effect;
use crate::names::mended;
use crate::reading::Reading;
use std::collections::{BTreeSet, HashMap};
use talea_model::{NODE_LIMIT, Node};

/// The nodes made so far.
pub(super) struct Nodes {
    nodes: Vec<Node>,
    of_set: HashMap<BTreeSet<u16>, usize>,
    /// What threads that name no processor run on.
    everywhere: Vec<u16>,
    /// Whether that has been said.
    assumed: bool,
}

impl Nodes {
    /// No nodes yet. Threads that name no processor will run on all that others name.
    pub fn of(threads: &[Thread]) -> Self {
        let named = threads.iter().filter_map(|thread| thread.attributes.cpus.as_ref());
        let named: BTreeSet<u16> = named.flatten().copied().collect();
        let everywhere = if named.is_empty() { vec![0] } else { named.into_iter().collect() };
        Nodes { nodes: Vec::new(), of_set: HashMap::new(), everywhere, assumed: false }
    }

    /// The node of a thread.
    pub fn node_of(&mut self, thread: &Thread, reading: &mut Reading<'_>) -> usize {
        let cpus = match &thread.attributes.cpus {
            Some(cpus) => cpus,
            None => {
                if !self.assumed {
                    let what = format!(
                        "may run on every processor in rt-app; a node needs its own: cpus = {:?}; the same goes for \
                         all others without \"cpus\"",
                        self.everywhere
                    );
                    reading.lose(Effect::Assumed, thread.span.clone(), &thread.label(), "cpus", what);
                }
                self.assumed = true;
                &self.everywhere
            }
        };
        let set: BTreeSet<u16> = cpus.iter().copied().collect();
        if let Some(node) = self.of_set.get(&set) {
            return *node;
        }
        let node = self.nodes.len();
        if node == NODE_LIMIT {
            let message =
                format!("with {} the file has more than {NODE_LIMIT} sets of processors", thread.label());
            reading.error(thread.span.clone(), message, "give threads the same \"cpus\"");
        }
        self.nodes.push(Node { name: name_of(cpus), cpus: cpus.clone() });
        self.of_set.insert(set, node);
        node
    }

    /// All nodes; the only one is called as in a system file without nodes.
    pub fn into_nodes(mut self) -> Vec<Node> {
        if let [only] = self.nodes.as_mut_slice() {
            only.name = ONLY.into();
        }
        let mut taken = crate::names::Taken::default();
        for node in &mut self.nodes {
            node.name = taken.unique(&mended(&node.name, "node"));
        }
        self.nodes
    }
}

/// What a system's only node is called.
pub(super) const ONLY: &str = "local";

/// The name of the node of these processors: `cpu3`, `cpus-0-2-5to9`.
pub(super) fn name_of(cpus: &[u16]) -> String {
    if let [cpu] = cpus {
        return format!("cpu{cpu}");
    }
    let sorted: BTreeSet<u16> = cpus.iter().copied().collect();
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for cpu in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let texts = ranges.into_iter().map(|(first, last)| match last - first {
        0 => format!("-{first}"),
        1 => format!("-{first}-{last}"),
        _ => format!("-{first}to{last}"),
    });
    mended(&format!("cpus{}", texts.collect::<String>()), "cpus")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_called_by_their_processors() {
        assert_eq!(name_of(&[3]), "cpu3");
        assert_eq!(name_of(&[2, 0]), "cpus-0-2");
        assert_eq!(name_of(&[0, 1, 4, 5, 6, 7]), "cpus-0-1-4to7");
        assert!(crate::names::is_valid(&name_of(&(0..1000).step_by(2).collect::<Vec<_>>())));
    }
}
