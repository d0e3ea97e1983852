//! Nodes that left the run before its end, and the instances that this cut off.

use super::Accounting;
use super::operation::OperationState;
use super::window::Stage;
use talea_record::event::NodeLeft;
use talea_time::Instant;

impl Accounting {
    /// One of the nodes that are left has heard of it: what the node was doing has ended by then.
    #[cold]
    pub(super) fn leave(&mut self, left: NodeLeft, time: Instant) {
        let Some(node) = self.nodes.get_mut(left.left as usize) else {
            self.unknown += 1;
            return;
        };
        if node.left.is_some() {
            return;
        }
        node.left = Some(time);
        for lane in self.lanes.iter_mut().filter(|lane| lane.node == left.left) {
            while lane.running > 0 {
                lane.leave_processor(time.as_nanos());
            }
        }
    }

    /// By task, its instances that did not complete and had something to do on a node that has left.
    pub(super) fn cut_off(&mut self) -> Vec<u64> {
        let mut cut_off = vec![0; self.tasks.len()];
        if self.nodes.iter().all(|node| node.left.is_none()) {
            return cut_off;
        }
        for (index, task) in self.tasks.iter().enumerate() {
            let gone = |operation: &&mut OperationState| {
                operation.task as usize == index
                    && self.nodes[self.lanes[operation.lane as usize].node as usize].left.is_some()
            };
            let mut gone: Vec<&mut OperationState> = self.operations.iter_mut().filter(gone).collect();
            let unresolved = task.window.iter().filter(|instance| instance.stage != Stage::Resolved);
            let numbers = unresolved.map(|instance| instance.number);
            cut_off[index] = numbers
                .filter(|number| gone.iter_mut().any(|operation| operation.is_unfinished(*number)))
                .count() as u64;
        }
        cut_off
    }
}
