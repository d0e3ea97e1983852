//! What is advised helps, and is the nearest of its kind.

use crate::sketch::{Sketch, figure_1};
use proptest::prelude::*;
use std::collections::HashSet;
use talea_guarantee::derivation::{Derivation, Failure, NotDerived, derive};
use talea_guarantee::hierarchy::Hierarchy;
use talea_guarantee::proviso::{Doubt, Proviso, provisos};
use talea_guarantee::remedy::{
    Advice, Change, Counsel, Effect, Refusal, Remedy, Ruling, Search, advise, counsel,
};

fn advice(hierarchy: &Hierarchy) -> Advice {
    let Err(NotDerived::Failed(failure)) = derive(hierarchy) else { panic!("it was to fail") };
    let advice = advise(hierarchy, &failure);
    advice.remedies.iter().for_each(|remedy| assert_helps(hierarchy, remedy, &advice.node));
    advice
}

fn with(hierarchy: &Hierarchy, changes: &[Change]) -> Hierarchy {
    let mut changed = hierarchy.clone();
    changes.iter().for_each(|change| change.apply(&mut changed));
    changed
}

fn below(hierarchy: &Hierarchy, node: &str) -> HashSet<String> {
    let mut names = HashSet::new();
    let mut open = vec![node.to_string()];
    while let Some(node) = open.pop() {
        open.extend(hierarchy.edges.iter().filter(|edge| edge.parent == node).map(|edge| edge.child.clone()));
        names.insert(node);
    }
    names
}

/// Neither the node, nor who is below it, nor who was sure to receive what it needs before rests on what is not known to be kept.
/// Returns how many others do, but for those who rest on such.
fn doubted(
    hierarchy: &Hierarchy,
    remedy: &Remedy,
    node: &str,
    before: &Failure,
    after: &Derivation,
) -> usize {
    let old: HashSet<String> =
        provisos(hierarchy, &before.derived).into_iter().map(|proviso| proviso.child).collect();
    let threads = before.derived.threads.iter().map(|thread| &thread.name);
    let served: HashSet<&String> =
        threads.chain(before.derived.schedulers.iter().map(|scheduler| &scheduler.name)).collect();
    let (changed, concerned) = (with(hierarchy, &remedy.changes), below(hierarchy, node));
    let doubts = provisos(&changed, after);
    for Proviso { child, .. } in &doubts {
        assert!(!concerned.contains(child), "{remedy}: {child} is not sure");
        assert!(!served.contains(child) || old.contains(child), "{remedy}: {child} was sure");
    }
    doubts.iter().filter(|doubt| !matches!(doubt.reason, Doubt::Rests { .. })).count()
}

/// The remedy does what it says, and takes nothing from those who have what they need.
fn assert_helps(hierarchy: &Hierarchy, remedy: &Remedy, node: &str) {
    let Err(NotDerived::Failed(before)) = derive(hierarchy) else { panic!("it was to fail") };
    match (remedy.effect, derive(&with(hierarchy, &remedy.changes))) {
        (Effect::Holds, Ok(after)) => assert_eq!(doubted(hierarchy, remedy, node, &before, &after), 0),
        (Effect::OthersRemain(others), Ok(after)) => {
            assert_eq!(doubted(hierarchy, remedy, node, &before, &after), others);
        }
        (Effect::OthersRemain(others), Err(NotDerived::Failed(failure))) => {
            let doubted = doubted(hierarchy, remedy, node, &before, &failure.derived);
            assert_eq!(failure.findings.len() + doubted, others);
            for finding in &failure.findings {
                assert_ne!(finding.node, node, "{remedy}");
                let served = before.derived.threads.iter().map(|thread| &thread.name);
                let served = served.chain(before.derived.schedulers.iter().map(|scheduler| &scheduler.name));
                assert!(!served.into_iter().any(|served| *served == finding.node), "{remedy}: {finding}");
            }
        }
        (effect, derived) => panic!("{remedy}: {effect:?}, but {derived:?}"),
    }
}

/// Advice about all problems, tried.
fn counselled(hierarchy: &Hierarchy) -> Counsel {
    let Err(NotDerived::Failed(failure)) = derive(hierarchy) else { panic!("it was to fail") };
    let counsel = counsel(hierarchy, &failure, &mut |_| Ruling::default(), &mut |_, _| {});
    assert_eq!(counsel.everybody.is_some(), failure.findings.len() > 1);
    for remedy in counsel.everybody.iter().flat_map(|for_all| &for_all.remedies) {
        let changed = with(hierarchy, &remedy.changes);
        let after = derive(&changed).unwrap_or_else(|failure| panic!("{remedy}: {failure}"));
        assert_eq!((remedy.effect, provisos(&changed, &after)), (Effect::Holds, Vec::new()), "{remedy}");
    }
    assert_eq!(counsel.each.len(), failure.findings.len());
    for (advice, finding) in counsel.each.iter().zip(&failure.findings) {
        assert_eq!(advice.node, finding.node);
        advice.remedies.iter().for_each(|remedy| assert_helps(hierarchy, remedy, &advice.node));
    }
    counsel
}

fn for_all(counsel: &Counsel) -> Vec<String> {
    let for_all = counsel.everybody.as_ref().expect("several problems");
    assert_eq!(for_all.search, Search::Finished);
    for_all.remedies.iter().map(Remedy::words).collect()
}

fn texts(hierarchy: &Hierarchy) -> Vec<String> {
    advice(hierarchy).remedies.iter().map(ToString::to_string).collect()
}

/// Whether the nearest remedy is `first`, and `others` are there too.
fn assert_advice(hierarchy: &Hierarchy, first: &str, others: &[&str]) {
    let texts = texts(hierarchy);
    assert_eq!(texts.first().map(String::as_str), Some(first), "{texts:#?}");
    for other in others {
        assert!(texts.iter().any(|text| text == other), "{texts:#?} lacks {other}");
    }
}

fn under_reservation(asked: &str, requires: &str) -> Hierarchy {
    Sketch::new().scheduler("res", "reservation").thread("t", requires).edge("res", "t", asked).0
}

#[test]
fn a_nanosecond_is_enough_where_it_is_missing() {
    assert_advice(
        &under_reservation("RESBH 5 53", "RESCS 5 100.999999"),
        "let t ask res for RESBH 5ms 52.999999ms instead of RESBH 5ms 53ms",
        &[
            "let t ask res for RESBH 5.000001ms 53ms instead of RESBH 5ms 53ms",
            "let t require RESCS 5ms 101ms instead of RESCS 5ms 100.999999ms",
        ],
    );
}

#[test]
fn what_is_required_is_asked_for() {
    assert_advice(
        &under_reservation("RESBH 5 53", "RESBH 6 53"),
        "let t ask res for RESBH 6ms 53ms instead of RESBH 5ms 53ms",
        &["let t require RESBH 5ms 53ms instead of RESBH 6ms 53ms"],
    );
    assert_advice(
        &under_reservation("RESBH 5 53", "PS 0.2"),
        "let t ask res for RESBH 5ms 25ms instead of RESBH 5ms 53ms",
        &["let t ask res for RESBH 10.6ms 53ms instead of RESBH 5ms 53ms"],
    );
    // Nothing gives a hard continuous reservation, so only a softer one is left.
    let continuous = texts(&under_reservation("RESBH 5 53", "RESCH 5 106"));
    assert_eq!(continuous[0], "let t require RESCS 5ms 106ms instead of RESCH 5ms 106ms");
}

#[test]
fn the_largest_reservation_that_fits() {
    let over = |kind: &str, a: &str, b: &str| {
        let sketch = Sketch::new().scheduler("res", kind).thread("a", a).thread("b", "");
        sketch.edge("res", "a", a).edge("res", "b", b).0
    };
    assert_advice(
        &over("reservation", "RESBH 6 10", "RESBH 9 10"),
        "let b ask res for RESBH 4ms 10ms instead of RESBH 9ms 10ms",
        &[
            "let b ask res for RESBH 9ms 22.5ms instead of RESBH 9ms 10ms",
            "let a ask res for RESBH 1ms 10ms instead of RESBH 6ms 10ms, and let a require RESBH 1ms 10ms instead \
             of RESBH 6ms 10ms",
        ],
    );
    // EDF takes what rate-monotonic priorities do not.
    assert_advice(
        &over("resource-kernel", "RESBH 3 6", "RESBH 4 9"),
        "let b ask res for RESBH 4ms 10ms instead of RESBH 4ms 9ms",
        &["make res a reservation scheduler instead of resource-kernel"],
    );
    assert_advice(
        &over("bss-i", "RESU 0.6", "RESU 0.41"),
        "let b ask res for RESU 0.4 instead of RESU 0.41",
        &[],
    );
}

#[test]
fn another_scheduler_or_another_place() {
    let flawed = Sketch::new()
        .scheduler("ts", "time-sharing")
        .scheduler("res", "reservation")
        .thread("t", "RESBH 6 10")
        .edge("ts", "res", "")
        .edge("res", "t", "RESBH 6 10")
        .0;
    let advice = texts(&flawed);
    let fixed = "make ts a fixed-priority scheduler instead of time-sharing, and let res ask ts for priority 1 instead of nothing";
    assert!(advice.iter().any(|text| text == fixed), "{advice:#?}");
    let second = Sketch::new()
        .scheduler("fp", "fixed-priority")
        .scheduler("res", "reservation")
        .scheduler("lot", "lottery")
        .thread("t", "PS 1/2")
        .edge("fp", "res", "p5")
        .edge("fp", "lot", "p3")
        .edge("lot", "t", "w1")
        .0;
    let advice = texts(&second);
    let moved = "put lot under res instead of fp, asking for RESBH 5ms 10ms";
    assert!(advice.iter().any(|text| text == moved), "{advice:#?}");
    let unbounded = Sketch::new()
        .scheduler("l", "lottery")
        .thread("a", "PSBE 0.1 1000")
        .thread("b", "")
        .edge("l", "a", "w1")
        .edge("l", "b", "w1")
        .0;
    let advice = texts(&unbounded);
    assert!(advice.iter().any(|text| text == "make l an eevdf scheduler instead of lottery (quantum 10ms)"));
}

/// Of so much in every interval of the period, whenever the limit's own begins.
#[test]
fn a_limit_makes_hard_what_a_join_made_soft() {
    let soft = Sketch::new()
        .scheduler("fp", "fixed-priority")
        .scheduler("res", "reservation")
        .scheduler("j", "join")
        .thread("t", "RESBH 11 42")
        .edge("fp", "res", "p2")
        .edge("fp", "j", "p1")
        .edge("res", "j", "RESBH 11 42")
        .edge("j", "t", "")
        .0;
    assert_advice(
        &soft,
        "put a limit \"t-limit\" between j and t, which asks it for RESBH 11ms 42ms, and let j ask res for RESBH 11ms 26.5ms \
             instead of RESBH 11ms 42ms",
        &["let t require RESBS 11ms 42ms instead of RESBH 11ms 42ms"],
    );
}

#[test]
fn parameters_far_above_are_found() {
    let mut more = figure_1();
    more.threads[2].requires = Some("PSBE 0.45 55".parse().expect("a share"));
    assert_advice(
        &more,
        "let J ask RES for RESBH 10ms 17.777777ms instead of RESBH 10ms 20ms",
        &[
            "let J ask RES for RESBH 11.25ms 20ms instead of RESBH 10ms 20ms",
            "let voice require PSBE 0.4 58ms instead of PSBE 0.45 55ms",
        ],
    );
    let mut shorter = figure_1();
    shorter.threads[1].requires = Some("PSBE 0.1 18".parse().expect("a share"));
    let advice = texts(&shorter);
    assert!(advice.iter().any(|text| text.starts_with("give PS a quantum of")), "{advice:#?}");
}

#[test]
fn other_problems_are_counted() {
    let two = Sketch::new()
        .scheduler("res", "reservation")
        .thread("a", "RESBH 2 10")
        .thread("b", "RESBH 3 10")
        .edge("res", "a", "RESBH 1 10")
        .edge("res", "b", "RESBH 1 10")
        .0;
    let advice = advice(&two);
    assert_eq!(advice.remedies[0].effect, Effect::OthersRemain(1));
    let text = advice.remedies[0].to_string();
    assert_eq!(
        text,
        "let a ask res for RESBH 2ms 10ms instead of RESBH 1ms 10ms (one other problem remains)"
    );
}

#[test]
fn what_mends_all_at_once_goes_as_far_as_the_most_demanding_needs() {
    let mut two = figure_1();
    two.threads[1].requires = Some("PSBE 0.1 18".parse().expect("a share"));
    two.threads[2].requires = Some("PSBE 0.4 50".parse().expect("a share"));
    let counsel = counselled(&two);
    let quantum = "give PS a quantum of 7.777777ms instead of 10ms";
    assert!(for_all(&counsel).iter().any(|text| text == quantum), "{counsel:#?}");
    // That is what the one needs; the other is content with less, which mends only itself.
    let voice = &counsel.each[1];
    let own = "give PS a quantum of 8.095238ms instead of 10ms (one other problem remains)";
    assert_eq!(voice.node, "voice");
    assert!(voice.remedies.iter().any(|remedy| remedy.to_string() == own), "{voice:#?}");
    assert_eq!(counsel, counselled(&two), "the same advice each time");
}

#[test]
fn who_has_too_much_gives_some_to_all_others() {
    let mut sketch = Sketch::new().scheduler("ps", "stride").thread("greedy", "").edge("ps", "greedy", "w60");
    for thread in ["a", "b", "c"] {
        sketch = sketch.thread(thread, "PS 0.1").edge("ps", thread, "w2");
    }
    let counsel = counselled(&sketch.0);
    assert_eq!(for_all(&counsel)[0], "let greedy ask ps for share 14 instead of share 60");
}

#[test]
fn what_comes_to_light_below_another_problem_is_no_harm() {
    let below = Sketch::new()
        .scheduler("l", "lottery")
        .scheduler("r", "reservation")
        .scheduler("s", "reservation")
        .thread("a", "")
        .thread("b", "RESBS 5 10")
        .edge("l", "r", "w1")
        .edge("l", "s", "w1")
        .edge("r", "a", "RESBH 4 10")
        .edge("s", "b", "RESBH 4 10")
        .0;
    let counsel = counselled(&below);
    let rates = counsel.each[0].remedies.iter().find(|remedy| remedy.words().contains("make l a bss-i"));
    assert_eq!(rates.map(|remedy| remedy.effect), Some(Effect::OthersRemain(1)), "{counsel:#?}");
    // The other scheduler would have what it needs, but what it can give is too little for its thread.
    assert!(counsel.each[1].remedies.iter().all(|remedy| !remedy.words().contains("make l a bss-i")));
}

#[test]
fn problems_without_anything_in_common_are_advised_about_one_by_one() {
    let two = Sketch::new()
        .scheduler("res", "reservation")
        .thread("a", "RESBH 2 10")
        .thread("b", "RESCH 3 10")
        .edge("res", "a", "RESBH 1 10")
        .edge("res", "b", "RESBH 1 10")
        .0;
    let counsel = counselled(&two);
    assert_eq!(for_all(&counsel), Vec::<String>::new());
    assert_eq!(
        counsel.each[0].remedies[0].words(),
        "let a ask res for RESBH 2ms 10ms instead of RESBH 1ms 10ms"
    );
    assert!(counsel.each[1].remedies.iter().all(|remedy| remedy.words().starts_with("let b require")));
}

/// A cbs scheduler below half a processor: a continuous reservation does not follow from its basic one.
fn slower() -> Hierarchy {
    Sketch::new()
        .scheduler("B", "bss-i")
        .scheduler("K", "cbs")
        .thread("t", "RESCS 1 10")
        .edge("B", "K", "RESU 0.5")
        .edge("K", "t", "RESBH 1 10")
        .0
}

#[test]
fn what_is_only_known_from_the_published_table_is_not_advised() {
    let advice = advice(&slower());
    assert!(!advice.remedies.is_empty());
    let rialto = advice.remedies.iter().find(|remedy| remedy.words().contains("rialto"));
    assert_eq!(rialto, None, "rialto does not order by the deadlines that B goes by");
    let nothing = advice.remedies.iter().find(|remedy| remedy.words().contains("for RESU 0 "));
    assert_eq!(nothing, None);
}

/// The judge refuses amounts above a millisecond: the search goes on to what it takes, and offers nothing else.
#[test]
fn what_the_schedulers_refuse_is_not_advised() {
    let kernel = Sketch::new()
        .scheduler("K", "reservation")
        .thread("a", "")
        .thread("b", "")
        .edge("K", "a", "RESBH 6 10")
        .edge("K", "b", "RESBH 6 10")
        .0;
    let Err(NotDerived::Failed(failure)) = derive(&kernel) else { panic!("it was to fail") };
    let mut refused = |hierarchy: &Hierarchy| -> Ruling {
        let is_small = |text: &str| text.starts_with("RESBH 1ms");
        let small = hierarchy.edges.iter().any(|edge| is_small(&edge.request.to_string()));
        let refusal = Refusal { scheduler: "K".into(), child: "b".into() };
        Ruling { refused: if small { Vec::new() } else { vec![refusal] }, effort: 1 }
    };
    let counsel = counsel(&kernel, &failure, &mut refused, &mut |_, _| {});
    let words: Vec<String> = counsel.each[0].remedies.iter().map(Remedy::words).collect();
    assert!(words.iter().all(|words| words.contains("for RESBH 1ms")), "{words:#?}");
}

#[test]
fn no_quantum_is_advised_that_no_run_takes() {
    // The delay is 4ms and 1.8 quanta.
    for (error, expected) in [("4.105", Some("58.333us")), ("4.05", None)] {
        let mut shorter = figure_1();
        shorter.threads[1].requires = Some(format!("PSBE 0.1 {error}").parse().expect("a share"));
        let texts = texts(&shorter);
        let quantum = texts.iter().find_map(|text| text.strip_prefix("give PS a quantum of "));
        let quantum = quantum.and_then(|text| text.split(' ').next());
        assert_eq!(quantum, expected, "{texts:#?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever fails, what is advised helps: `advice` tries it.
    #[test]
    fn what_is_advised_helps(numbers in prop::collection::vec(any::<u8>(), 60)) {
        let hierarchy = crate::monotone::hierarchy(&numbers, crate::monotone::Joins::Open);
        if let Err(NotDerived::Failed(_)) = derive(&hierarchy) {
            advice(&hierarchy);
            counselled(&hierarchy);
        }
    }
}
