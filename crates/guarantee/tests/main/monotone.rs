//! A stronger root breaks nothing; and whole derivations against simulated schedulers.

use crate::sketch::{Sketch, guarantee};
use crate::supply::{Supply, whole};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use talea_guarantee::derivation::{Derivation, NotDerived, derive};
use talea_guarantee::exact::{Ratio, Share, Span};
use talea_guarantee::guarantee::{Guarantee, Hardness, Kind, Reservation};
use talea_guarantee::hierarchy::{Edge, Hierarchy, Scheduler, Thread};
use talea_guarantee::label::Label;
use talea_guarantee::request::Request;
use talea_guarantee::scheduler::{Algorithm, Demand, Intake, SchedulerKind};

/// Whether joins say whose guarantee they take.
#[derive(Clone, Copy, PartialEq)]
pub enum Joins {
    Decided,
    Open,
}

/// A source of small numbers, all taken from one random sequence.
struct Dice<'d>(std::slice::Iter<'d, u8>);

impl Dice<'_> {
    fn below(&mut self, limit: usize) -> usize {
        self.0.next().map_or(0, |number| usize::from(*number) % limit)
    }
}

fn share_of(hundredths: usize) -> Share {
    Share::new(Ratio::new(hundredths.into(), 100.into())).expect("at most a hundred")
}

fn reservation(kind: Kind, dice: &mut Dice<'_>) -> Guarantee {
    let (continuity, hardness) = kind.reservation().expect("a reservation");
    let (amount, period) = (1 + dice.below(8) as u64, 20 << dice.below(3) as u64);
    let (amount, period) = (Span::from_millis(amount), Span::from_millis(period));
    Reservation::new(continuity, hardness, amount, period).expect("it fits").into()
}

fn request(parent: &Algorithm, position: usize, dice: &mut Dice<'_>) -> Request {
    match parent.kind().demand() {
        Demand::Nothing => Request::Nothing,
        Demand::Priority => Request::Priority(-i32::try_from(position).expect("few children")),
        Demand::Weight => Request::Weight(NonZeroU32::new(1 + dice.below(5) as u32).expect("not zero")),
        Demand::Guarantee([Kind::Resu]) => Request::Guarantee(Guarantee::Resu(share_of(5 + dice.below(40)))),
        Demand::Guarantee(kinds) | Demand::GuaranteeIfAny(kinds) => {
            Request::Guarantee(reservation(kinds[dice.below(kinds.len())], dice))
        }
        // Without a request a limit gives all it has, and then more is not the same maximum.
        Demand::AtMost(kind) => Request::Guarantee(reservation(kind, dice)),
    }
}

/// What a thread may require: mostly little.
fn requirement(dice: &mut Dice<'_>) -> Option<Guarantee> {
    let kinds = [Kind::Resbh, Kind::Resbs, Kind::Resch, Kind::Rescs];
    match dice.below(6) {
        0 => None,
        1 => Some(Guarantee::Ps(share_of(1 + dice.below(20)))),
        2 => {
            let error = Span::from_millis(1 + dice.below(200) as u64);
            Some(Guarantee::Psbe { share: share_of(1 + dice.below(10)), error })
        }
        3 => Some(Guarantee::Resu(share_of(1 + dice.below(20)))),
        _ => {
            let kind = kinds[dice.below(4)];
            Some(reservation(kind, dice))
        }
    }
}

/// A random hierarchy: schedulers under earlier ones, then threads.
pub fn hierarchy(numbers: &[u8], joins: Joins) -> Hierarchy {
    let mut dice = Dice(numbers.iter());
    let every = Algorithm::every(&Span::from_millis(2));
    let mut hierarchy = Sketch::new().0;
    let mut children: BTreeMap<usize, usize> = BTreeMap::new();
    let mut add = |hierarchy: &mut Hierarchy, parent: usize, child: &str, dice: &mut Dice<'_>| {
        let count = children.entry(parent).or_default();
        let Scheduler { name, algorithm } = &hierarchy.schedulers[parent];
        if algorithm.kind().has_one_child() && *count > 0 {
            return false;
        }
        let request = request(algorithm, *count, dice);
        hierarchy.edges.push(Edge { parent: name.clone(), child: child.into(), request });
        *count += 1;
        true
    };
    for number in 0..3 + dice.below(6) {
        let name = format!("s{number}");
        let mut algorithm = every[dice.below(every.len())].clone();
        let wanted = if algorithm.kind().intake == Intake::Several { 1 + dice.below(2) } else { 1 };
        let mut parents = BTreeSet::new();
        for _ in 0..wanted.min(number) {
            let parent = dice.below(number);
            if add(&mut hierarchy, parent, &name, &mut dice) {
                parents.insert(format!("s{parent}"));
            }
        }
        if algorithm.kind() == SchedulerKind::JOIN && matches!(joins, Joins::Decided) {
            algorithm = Algorithm::join(parents.first().cloned());
        }
        if number == 0 || !parents.is_empty() {
            hierarchy.schedulers.push(Scheduler { name, algorithm });
        } else {
            break;
        }
    }
    for number in 0..6 {
        let (name, requires) = (format!("t{number}"), requirement(&mut dice));
        let parent = dice.below(hierarchy.schedulers.len());
        if add(&mut hierarchy, parent, &name, &mut dice) {
            hierarchy.threads.push(Thread { name, requires });
        }
    }
    // A limit keeps the reservation that it is given, and makes one of more only as its child asks: without a child it cannot.
    for place in 0..hierarchy.schedulers.len() {
        let name = format!("c{place}");
        if hierarchy.schedulers[place].algorithm.kind() == SchedulerKind::LIMIT
            && add(&mut hierarchy, place, &name, &mut dice)
        {
            hierarchy.threads.push(Thread { name, requires: None });
        }
    }
    hierarchy
}

/// Guarantees and stronger ones.
fn stronger() -> impl Strategy<Value = (Guarantee, Guarantee)> {
    let pairs = [
        ("NULL", "PS 0.5"),
        ("PS 0.3", "PS 0.5"),
        ("PS 0.3", "PSBE 0.3 20"),
        ("PSBE 0.3 20", "PSBE 0.4 20"),
        ("PSBE 0.3 20", "PSBE 0.6 30"),
        ("PSBE 0.3 20", "ALL"),
        ("RESU 0.4", "RESU 0.5"),
        ("RESU 0.4", "ALL"),
        ("PS 0.4", "RESU 0.4"),
        ("RESBS 5 20", "RESBS 9 20"),
        ("RESBS 5 20", "RESBS 18 20"),
        ("RESBS 5 20", "RESCS 5 20"),
        ("RESBS 5 20", "RESBH 5 20"),
        ("RESBH 5 20", "RESCH 5 20"),
        ("RESBS 5 20", "ALL"),
        ("RESCS 5 20", "RESCS 5 15"),
        ("RESCS 5 20", "ALL"),
        ("NULL", "ALL"),
    ];
    prop::sample::select(pairs.to_vec()).prop_map(|(weak, strong)| (guarantee(weak), guarantee(strong)))
}

fn derived(hierarchy: &Hierarchy, given: &Guarantee) -> Option<(Derivation, bool)> {
    match derive(&Hierarchy { given: given.clone(), ..hierarchy.clone() }) {
        Ok(derivation) => Some((derivation, true)),
        Err(NotDerived::Failed(failure)) => Some((failure.derived, false)),
        Err(NotDerived::Malformed(_)) => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Whoever is served by the weaker root is served by the stronger one, and every edge promises as much.
    #[test]
    fn a_stronger_root_breaks_nothing(
        numbers in prop::collection::vec(any::<u8>(), 120),
        (weak, strong) in stronger(),
    ) {
        let hierarchy = hierarchy(&numbers, Joins::Decided);
        let (Some((less, _)), Some((more, _))) = (derived(&hierarchy, &weak), derived(&hierarchy, &strong)) else {
            return Err(TestCaseError::reject("it makes no sense"));
        };
        for thread in &less.threads {
            let still = more.threads.iter().any(|other| other.name == thread.name);
            prop_assert!(still, "{} loses by {strong} instead of {weak} in {hierarchy:#?}", thread.name);
        }
        for scheduler in &less.schedulers {
            let still = more.schedulers.iter().any(|other| other.name == scheduler.name);
            prop_assert!(still, "{} loses by {strong} instead of {weak} in {hierarchy:#?}", scheduler.name);
        }
        for edge in &less.edges {
            let other = more.edges.iter().find(|other| other.edge == edge.edge).expect("it is still labelled");
            let hard = |label: &Label| {
                label.guarantee().as_reservation().is_some_and(|own| own.hardness() == Hardness::Hard)
            };
            // A maximum in the time of a faster processor is another maximum.
            if !(hard(&edge.label) && edge.label.pace() != other.label.pace()) {
                let as_much = other.label.reach(&edge.label).is_some();
                prop_assert!(as_much, "{} was {} and is {}", edge.child, edge.label, other.label);
            }
        }
    }

    /// The same where joins take what serves everybody.
    #[test]
    fn a_stronger_root_leaves_joins_a_choice(
        numbers in prop::collection::vec(any::<u8>(), 120),
        (weak, strong) in stronger(),
    ) {
        let mut hierarchy = hierarchy(&numbers, Joins::Open);
        // So that everybody is served by the weaker root, only those remain who are.
        let Some((less, _)) = derived(&hierarchy, &weak) else {
            return Err(TestCaseError::reject("it makes no sense"));
        };
        for thread in &mut hierarchy.threads {
            if !less.threads.iter().any(|served| served.name == thread.name) {
                thread.requires = None;
            }
        }
        if let Some((_, true)) = derived(&hierarchy, &weak) {
            let (_, all) = derived(&hierarchy, &strong).expect("it makes sense");
            prop_assert!(all, "{strong} instead of {weak} breaks {hierarchy:#?}");
        }
    }

    /// Every derivation can be explained down to the root, and written.
    #[test]
    fn every_edge_explains_itself(numbers in prop::collection::vec(any::<u8>(), 120)) {
        let hierarchy = hierarchy(&numbers, Joins::Open);
        if let Some((derivation, _)) = derived(&hierarchy, &Guarantee::All) {
            for edge in &derivation.edges {
                let explanation = derivation.explain(edge.edge).expect("it is labelled");
                prop_assert_eq!(&explanation.steps[0].guarantee, &edge.label);
                let rootless = explanation.steps.last().expect("steps").guarantee.guarantee().clone();
                prop_assert!(rootless == Guarantee::All || rootless == Guarantee::Null || explanation.to_string().contains("as above"));
            }
            serde_json::to_string(&derivation).expect("JSON");
        }
    }
}

/// EDF with budgets for always busy children: who is served in each slot, none for idle.
fn reservations(claims: &[(u64, u64)], slots: u64) -> Vec<Option<usize>> {
    let mut budgets: Vec<u64> = vec![0; claims.len()];
    let serve = |slot: u64| {
        for (budget, (amount, period)) in budgets.iter_mut().zip(claims) {
            if slot.is_multiple_of(*period) {
                *budget = *amount;
            }
        }
        let deadline = |child: &usize| (slot / claims[*child].1 + 1) * claims[*child].1;
        let ready = (0..claims.len()).filter(|child| budgets[*child] > 0);
        let served = ready.min_by_key(deadline);
        if let Some(child) = served {
            budgets[child] -= 1;
        }
        served
    };
    (0..slots).map(serve).collect()
}

/// The shape of the paper's first figure with other numbers, run and held against its derivation.
fn run_figure_1(
    hard: (u64, u64),
    joined: (u64, u64),
    quantum: u64,
    weights: &[u32],
    idle: &[bool],
) -> Result<(), TestCaseError> {
    let mut sketch = Sketch::new()
        .scheduler("FP", "fixed-priority")
        .scheduler("RES", "reservation")
        .scheduler("J", "join")
        .scheduler_with("PS", Algorithm::new(SchedulerKind::SFQ, &Span::from_nanos(quantum)))
        .thread("hard", "")
        .edge("FP", "RES", "p2")
        .edge("FP", "J", "p1")
        .edge("RES", "hard", &format!("RESBH {}ns {}ns", hard.0, hard.1))
        .edge("RES", "J", &format!("RESBH {}ns {}ns", joined.0, joined.1))
        .edge("J", "PS", "");
    for (number, weight) in weights.iter().enumerate() {
        sketch =
            sketch.thread(&format!("t{number}"), "").edge("PS", &format!("t{number}"), &format!("w{weight}"));
    }
    let Ok(derivation) = derive(&sketch.0) else { return Err(TestCaseError::reject("not admitted")) };
    let slots = 12 * hard.1 * joined.1;
    let served = reservations(&[hard, joined], slots);
    // Idle time goes to the join, or to the other thread.
    let of_join = |(slot, served): (usize, &Option<usize>)| match served {
        Some(child) => *child == 1,
        None => idle[slot % idle.len()],
    };
    let supply = Supply(served.iter().enumerate().map(of_join).collect());
    let only = |child: usize| Supply(served.iter().map(|served| *served == Some(child)).collect());
    let label =
        |parent: &str, child: &str| derivation.between(parent, child).expect("labelled").label.clone();
    prop_assert!(only(0).keeps(label("RES", "hard").guarantee()));
    prop_assert!(only(1).keeps(label("RES", "J").guarantee()));
    prop_assert!(supply.keeps(label("J", "PS").guarantee()));
    let weights: Vec<u64> = weights.iter().map(|weight| u64::from(*weight)).collect();
    let threads = crate::conversions::fair_queuing(&supply, quantum as usize, &weights, supply.0.len());
    for (number, served) in threads.iter().enumerate() {
        let label = label("PS", &format!("t{number}"));
        let Guarantee::Psbe { share, error } = label.guarantee() else { panic!("{label}") };
        let behind = crate::conversions::shortfall(served, share.ratio());
        prop_assert!(behind <= *error.nanos(), "t{number} is {behind} behind, promised {label}");
        prop_assert!(behind <= whole(slots));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn derived_guarantees_hold_in_a_simulation(
        hard in (1_u64..5, 4_u64..9),
        joined in (1_u64..5, 4_u64..9),
        quantum in 1_u64..5,
        weights in prop::collection::vec(1_u32..5, 1..4),
        idle in prop::collection::vec(any::<bool>(), 1..9),
    ) {
        run_figure_1(hard, joined, quantum, &weights, &idle)?;
    }
}
