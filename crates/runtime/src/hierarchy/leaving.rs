//! What a hierarchy leaves of its processors to ordinary threads, and what its promises are derived from then.
//!
//! Linux keeps a part of each second from real-time threads that would take all of it, usually in one piece that is longer than many periods.
//! A hierarchy may leave that part unused in small slices instead. It then has less to promise, and all the time: so it does where it may take
//! more than the kernel leaves, and where with the slices everybody still receives what they need.

use crate::options::Slicing;
use std::collections::BTreeSet;
use talea_analysis::Effort;
use talea_analysis::system::{NodeLoad, load};
use talea_guarantee::derivation::{Finding, NotDerived, derive};
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::hierarchy::Hierarchy;
use talea_guarantee::proviso::provisos;
use talea_manage::Slices;
use talea_model::{Machine, System};
use talea_policy::strategy::Plan;

/// Whether a node leaves its processors unused for moments.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaving {
    /// It does not, and need not: nothing is kept from it, or nobody asked.
    Nothing,
    /// It does, as often as it would take more.
    Slices(Slices),
    /// It would take more than the kernel leaves, and with slices somebody would not receive what they need: the kernel takes its part at
    /// a time of its own.
    Declined {
        /// Who would not, and why.
        finding: String,
    },
}

impl Leaving {
    /// What the root of the hierarchy is given of each processor.
    pub fn given(&self) -> Guarantee {
        match self {
            Leaving::Slices(slices) => slices.given(),
            Leaving::Nothing | Leaving::Declined { .. } => Guarantee::All,
        }
    }

    /// What is left unused, if anything.
    pub fn slices(&self) -> Option<Slices> {
        match self {
            Leaving::Slices(slices) => Some(*slices),
            Leaving::Nothing | Leaving::Declined { .. } => None,
        }
    }
}

/// What every node of `system` leaves on this machine as it is set now, if it has a hierarchy, and the kernel has not that been lowered to.
pub fn leaving(
    system: &System,
    plans: &[Plan],
    slicing: Slicing,
    is_lowered: impl Fn(usize) -> bool,
) -> Vec<Leaving> {
    let limits = crate::doctor::limits();
    leaving_on((&limits, Slices::usual()), (system, plans), slicing, is_lowered)
}

/// The same on a machine that keeps this from real-time threads, unless these slices are left.
fn leaving_on(
    (limits, usual): (&Machine, Option<Slices>),
    (system, plans): (&System, &[Plan]),
    slicing: Slicing,
    is_lowered: impl Fn(usize) -> bool,
) -> Vec<Leaving> {
    let usual = usual.filter(|_| slicing != Slicing::Never);
    let hierarchy = |node: usize| system.hierarchy(node).filter(|_| !is_lowered(node));
    let hierarchies: Vec<Option<Hierarchy>> = (0..system.nodes.len()).map(hierarchy).collect();
    let Some(slices) = usual.filter(|_| hierarchies.iter().any(Option::is_some)) else {
        return vec![Leaving::Nothing; hierarchies.len()];
    };
    let load = load(system, plans, limits, &mut Effort::new(EFFORT));
    // Of whom nothing is known it is not known that they leave enough.
    let leaves_enough = |node: usize| {
        let load = load.as_ref().ok().and_then(|load| load.get(node));
        load.is_some_and(|load: &NodeLoad| !load.is_beyond() && !load.is_near())
    };
    let of_node = |(node, hierarchy): (usize, Option<Hierarchy>)| match hierarchy {
        Some(hierarchy) if slicing == Slicing::WhereLimited || !leaves_enough(node) => {
            match (lost_by(&hierarchy, slices), slicing) {
                (Some(finding), Slicing::WherePromised) => Leaving::Declined { finding },
                _ => Leaving::Slices(slices),
            }
        }
        _ => Leaving::Nothing,
    };
    hierarchies.into_iter().enumerate().map(of_node).collect()
}

/// Steps of the analysis; beyond them nothing is known of the load.
const EFFORT: u64 = 50_000_000;

/// Who receives what they need of whole processors, and would not with the slices.
fn lost_by(hierarchy: &Hierarchy, slices: Slices) -> Option<String> {
    let of_slices = Hierarchy { given: slices.given(), ..hierarchy.clone() };
    let before = names(&findings(hierarchy));
    let lost = findings(&of_slices).into_iter().find(|finding| !before.contains(&finding.node));
    lost.map(|finding| finding.to_string()).or_else(|| doubted(hierarchy, &of_slices))
}

fn names(findings: &[Finding]) -> BTreeSet<String> {
    findings.iter().map(|finding| finding.node.clone()).collect()
}

fn findings(hierarchy: &Hierarchy) -> Vec<Finding> {
    match derive(hierarchy) {
        Err(NotDerived::Failed(failure)) => failure.findings,
        Ok(_) => Vec::new(),
        Err(NotDerived::Malformed(faults)) => panic!("a validated system has sound hierarchies: {faults:?}"),
    }
}

/// A promise that would not be known to be kept any more.
fn doubted(hierarchy: &Hierarchy, of_slices: &Hierarchy) -> Option<String> {
    let provisos = |hierarchy| match derive(hierarchy) {
        Ok(derivation) => provisos(hierarchy, &derivation),
        Err(_) => Vec::new(),
    };
    let before: BTreeSet<usize> = provisos(hierarchy).iter().map(|proviso| proviso.edge).collect();
    provisos(of_slices).iter().find(|proviso| !before.contains(&proviso.edge)).map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plans::plans;
    use std::path::Path;
    use talea_linux::throttling::OrdinaryPart;
    use talea_model::{Mechanism, Withheld};
    use talea_time::{Duration, Work};

    /// On a machine that keeps 50 ms of each second.
    fn usually(system: &str, slicing: Slicing) -> Vec<Leaving> {
        let part = OrdinaryPart { amount: Work::from_millis(50), period: Duration::from_secs(1) };
        let limits = Machine {
            kernel: "6.6".into(),
            real_time: true,
            costs: Vec::new(),
            withheld: vec![Withheld { by: Mechanism::Throttling, amount: part.amount, period: part.period }],
            longest_stall: Duration::ZERO,
        };
        let system = talea_model::parse("test.toml", system, Path::new(".")).expect("it is sound").system;
        let system = system.with_threads_as_tasks();
        let plans = plans(&system).expect("there is a plan");
        leaving_on((&limits, Slices::leaving(part)), (&system, &plans), slicing, |_| false)
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
        assert_eq!(left[0].given().to_string(), "PSBE 0.94 470us");
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
        assert_eq!(finding, "root: it is given PSBE 0.94 470us, and accepts only ALL or RESU");
        assert_eq!(left[0].given(), Guarantee::All);
    }
}
