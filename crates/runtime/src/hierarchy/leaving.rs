//! What the hierarchies of a run leave of their processors, as it was asked and as this machine is set.

use crate::limits::limits;
use crate::options::Slicing;
use talea_analysis::Effort;
use talea_analysis::system::{Leaving, leaving as where_promised, load};
use talea_model::{Machine, System};
use talea_policy::strategy::Plan;

/// Steps of the analysis; beyond them nothing is known of the load.
const EFFORT: u64 = 50_000_000;

/// What every node of `system` leaves on this machine as it is set now, if it has a hierarchy, and the kernel has not that been lowered to.
pub(crate) fn leaving(
    system: &System,
    plans: &[Plan],
    slicing: Slicing,
    is_lowered: impl Fn(usize) -> bool,
) -> Vec<Leaving> {
    leaving_on(&limits(), (system, plans), slicing, is_lowered)
}

/// The same on a machine that keeps this from real-time threads.
fn leaving_on(
    limits: &Machine,
    (system, plans): (&System, &[Plan]),
    slicing: Slicing,
    is_lowered: impl Fn(usize) -> bool,
) -> Vec<Leaving> {
    let is_ruled = |node: &usize| system.hierarchy(*node).is_some() && !is_lowered(*node);
    let nodes = 0..system.nodes.len();
    let Some(slices) = limits.slices().filter(|_| nodes.clone().any(|node| is_ruled(&node))) else {
        return vec![Leaving::Nothing; nodes.len()];
    };
    let mut all = match slicing {
        Slicing::Never => vec![Leaving::Nothing; nodes.len()],
        Slicing::WhereLimited => vec![Leaving::Slices(slices); nodes.len()],
        Slicing::WherePromised => {
            let load = load(system, plans, limits, &mut Effort::new(EFFORT)).unwrap_or_default();
            where_promised(system, &load, slices)
        }
    };
    for node in nodes.filter(|node| !is_ruled(node)) {
        all[node] = Leaving::Nothing;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::plans;
    use std::path::Path;
    use talea_guarantee::guarantee::Guarantee;
    use talea_model::{Mechanism, Withheld};
    use talea_time::{Duration, Work};

    /// On a machine that keeps 50 ms of each second.
    fn usually(system: &str, slicing: Slicing) -> Vec<Leaving> {
        let (amount, period) = (Work::from_millis(50), Duration::from_secs(1));
        let limits = Machine {
            kernel: "6.6".into(),
            real_time: true,
            costs: Vec::new(),
            withheld: vec![Withheld { by: Mechanism::Throttling, amount, period }],
            longest_stall: Duration::ZERO,
        };
        let system = talea_model::parse("test.toml", system, Path::new(".")).expect("it is sound").system;
        let system = system.with_threads_as_tasks();
        let plans = plans(&system).expect("there is a plan");
        leaving_on(&limits, (&system, &plans), slicing, |_| false)
    }

    fn under(kind: &str, asks: &str, work: &str) -> String {
        format!(
            "[system]\nname = \"s\"\n[[scheduler]]\nname = \"root\"\nkind = \"{kind}\"\n\
             [[thread]]\nname = \"t\"\nunder = [{{ scheduler = \"root\"{asks} }}]\n{work}\n"
        )
    }

    const HOG: &str = "work = \"cpu-bound\"";
    const RESERVED: &str = ", guarantee = \"RESBH 5ms 20ms\"";

    #[test]
    fn who_takes_everything_leaves_slices() {
        let left = usually(&under("fixed-priority", ", priority = 1", HOG), Slicing::WherePromised);
        assert_eq!(left[0].given().to_string(), "PSBE 0.93 581.25us");
        assert!(left[0].slices().is_some());
        assert_eq!(
            usually(&under("fixed-priority", ", priority = 1", HOG), Slicing::Never),
            [Leaving::Nothing]
        );
    }

    #[test]
    fn who_leaves_enough_is_given_whole_processors() {
        let reserved = under("reservation", RESERVED, HOG);
        assert_eq!(usually(&reserved, Slicing::WherePromised), [Leaving::Nothing]);
        assert!(usually(&reserved, Slicing::WhereLimited)[0].slices().is_some());
    }

    #[test]
    fn a_plan_by_the_clock_needs_the_processor_and_leaves_none() {
        let rialto = under("rialto", ", guarantee = \"RESCS 19ms 20ms\"", HOG);
        let left = usually(&rialto, Slicing::WherePromised);
        let Leaving::Declined { finding } = &left[0] else { panic!("{left:?}") };
        assert_eq!(finding, "root: it is given PSBE 0.93 581.25us, and accepts only ALL or RESU");
        assert_eq!(left[0].given(), Guarantee::All);
    }
}
