//! Who may not receive more than is promised.

use talea_model::System;
use talea_policy::arrangement::{Arrangement, Leaf, Promise};

/// Whether what the thread receives is bounded from above: by the promise to itself, or because all that the schedulers
/// above it receive is. A scheduler with several parents is bounded if all of them bound it.
pub(super) fn is_capped(system: &System, arrangement: &Arrangement, leaf: &Leaf) -> bool {
    leaf.promise.as_ref().is_some_and(Promise::is_maximum)
        || scheduler_is_capped(system, arrangement, leaf.scheduler)
}

/// The same of a scheduler and all that is below it.
pub(super) fn scheduler_is_capped(system: &System, arrangement: &Arrangement, scheduler: usize) -> bool {
    let under = &system.schedulers[scheduler].under;
    let edge_is_capped = |parent: usize| {
        let mut edges = arrangement.edges.iter();
        let edge = edges.find(|edge| edge.child == scheduler && edge.parent == parent);
        edge.and_then(|edge| edge.promise.as_ref()).is_some_and(Promise::is_maximum)
    };
    !under.is_empty()
        && under.iter().all(|under| {
            edge_is_capped(under.scheduler) || scheduler_is_capped(system, arrangement, under.scheduler)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_policy::arrangement::arrange;
    use talea_policy::strategy::Plan;

    /// The names of the capped threads.
    fn capped(text: &str) -> Vec<String> {
        let system =
            talea_model::parse("test.toml", text, std::path::Path::new(".")).expect("a system").system;
        let plan = Plan { lanes: Vec::new(), warnings: Vec::new() };
        let arrangement = arrange(&system, 0, &plan, 1).expect("arranged").expect("a hierarchy");
        let leaves = arrangement.leaves.iter().filter(|leaf| is_capped(&system, &arrangement, leaf));
        leaves.map(|leaf| system.threads[leaf.thread].name.clone()).collect()
    }

    #[test]
    fn a_hard_reservation_caps_all_below_it_unless_a_join_has_another_parent() {
        let schedulers = "[system]\nname = \"s\"\n\
            [[scheduler]]\nname = \"FP\"\nkind = \"fixed-priority\"\n\
            [[scheduler]]\nname = \"RES\"\nkind = \"reservation\"\nunder = [{ scheduler = \"FP\", priority = 2 }]\n\
            [[scheduler]]\nname = \"PS\"\nkind = \"proportional-share\"\nquantum = \"5ms\"\n\
            under = [{ scheduler = \"RES\", guarantee = \"RESBH 5ms 20ms\" }]\n\
            [[scheduler]]\nname = \"J\"\nkind = \"join\"\n\
            under = [{ scheduler = \"RES\", guarantee = \"RESBH 5ms 20ms\" }, { scheduler = \"FP\", priority = 1 }]\n";
        let threads = "[[thread]]\nname = \"own\"\nwork = \"cpu-bound\"\n\
            under = [{ scheduler = \"RES\", guarantee = \"RESBH 1ms 20ms\" }]\n\
            [[thread]]\nname = \"below\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"PS\", share = 1 }]\n\
            [[thread]]\nname = \"joined\"\nwork = \"cpu-bound\"\nunder = [{ scheduler = \"J\" }]\n";
        assert_eq!(capped(&format!("{schedulers}{threads}")), ["own", "below"]);
    }
}
