//! Values of which it is not known what they were.

use std::collections::BTreeSet;
use talea_model::{InputSite, OutputId, System};

/// Instances that are remembered of an output: more than any input holds.
const MOST: usize = 1 << 16;

/// The values that nobody recorded. What is handed on in their place is what the code publishes now, which may be something else; so a job that takes
/// one of them proves nothing if it differs.
#[derive(Debug)]
pub(crate) struct Unverified {
    /// By output, the instances.
    instances: Vec<BTreeSet<u64>>,
    /// By input, the newest that was taken.
    taken: Vec<Option<u64>>,
}

impl Unverified {
    pub fn of(system: &System) -> Self {
        let instances = system.outputs().iter().map(|_| BTreeSet::new()).collect();
        Unverified { instances, taken: vec![None; system.inputs().len()] }
    }

    /// The output publishes such a value.
    pub fn publish(&mut self, output: OutputId, instance: u64) {
        let instances = &mut self.instances[output.index()];
        instances.insert(instance);
        if instances.len() > MOST {
            instances.pop_first();
        }
    }

    /// So many values are taken of the input, the newest of this instance. Returns whether all of them were recorded.
    pub fn take(&mut self, site: &InputSite, newest: u64, values: usize) -> bool {
        let instances = &self.instances[site.output.index()];
        let before = self.taken[site.id.index()].replace(newest);
        let is_one_of_several = before.is_none_or(|before| before < newest) && values > 1;
        let oldest = match is_one_of_several {
            true => before.map_or(0, |before| before + 1),
            false => newest,
        };
        instances.range(oldest..=newest).next().is_none()
    }
}
