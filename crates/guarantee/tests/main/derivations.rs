//! Derivations down whole hierarchies, and what they say.

use crate::sketch::{Sketch, figure_1, guarantee};
use talea_guarantee::derivation::{Derivation, Failure, NotDerived, derive};
use talea_guarantee::hierarchy::Hierarchy;

fn failure(hierarchy: &Hierarchy) -> Failure {
    match derive(hierarchy) {
        Err(NotDerived::Failed(failure)) => *failure,
        other => panic!("{other:?}"),
    }
}

fn label(derivation: &Derivation, parent: &str, child: &str) -> String {
    derivation.between(parent, child).expect("it is labelled").label.to_string()
}

/// Sections 2.2 and 5.3 of the paper.
#[test]
fn the_paper_s_example_explains_itself() {
    let derivation = derive(&figure_1()).expect("it composes correctly");
    let explanation = derivation.explain_thread("voice").expect("it is satisfied").to_string();
    assert_eq!(
        explanation,
        "\
PS -> voice: PSBE 0.4 58ms  (sfq: of 0.5 the fraction 0.8, behind by (0.8 × 2 × 10ms + 0.8 × 10ms) / 0.5 + 10ms)
  PS takes it as: PSBE 0.5 10ms  (Theorem 4: RESBH x y and RESBS x y are PSBE x/y 2(x/y)(y - x))
    J -> PS: RESBS 10ms 20ms  (join: it runs whenever this parent runs it, and possibly more, so it has no maximum)
      RES -> J: RESBH 10ms 20ms  (reservation: asked for and admitted: the sum of amount/period is at most 1, here 43/66)
        FP -> RES: ALL  (fixed-priority: it has the highest priority)
          processor: ALL  (what the root is given)
"
    );
    let json = serde_json::to_value(&derivation).expect("JSON");
    assert_eq!(json["edges"][0]["guarantee"]["type"], "ALL");
    assert_eq!(json["threads"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_join_without_a_choice_takes_what_serves_everybody() {
    let either = |requires| {
        Sketch::new()
            .scheduler("root", "fixed-priority")
            .scheduler("res", "reservation")
            .scheduler("lot", "lottery")
            .scheduler("join", "join")
            .thread("t", requires)
            .edge("root", "res", "p1")
            .edge("res", "lot", "RESBH 10 20")
            .edge("res", "join", "RESBH 2 20")
            .edge("lot", "join", "w1")
            .edge("join", "t", "")
            .0
    };
    assert_eq!(label(&derive(&either("PS 0.5")).unwrap(), "join", "t"), "PS 0.5");
    assert_eq!(label(&derive(&either("RESBS 2 20")).unwrap(), "join", "t"), "RESBS 2ms 20ms");
    let nothing = failure(&either("RESBS 3 20"));
    assert_eq!(nothing.alternatives, 2);
    assert!(nothing.to_string().contains("t: it requires RESBS 3ms 20ms, but receives RESBS 2ms 20ms"));
}

#[test]
fn several_processors_reach_several_children() {
    let hierarchy = Sketch::new()
        .processors(3)
        .scheduler("root", "fixed-priority")
        .scheduler("hard", "reservation")
        .scheduler("fair", "sfs")
        .thread("control", "RESBH 1 2")
        .thread("a", "PS 1")
        .thread("b", "PS 0.5")
        .thread("c", "PS 0.5")
        .edge("root", "hard", "p9")
        .edge("root", "fair", "p8")
        .edge("root", "fair", "p7")
        .edge("hard", "control", "RESBH 1 2")
        .edge("fair", "a", "w100")
        .edge("fair", "b", "w1")
        .edge("fair", "c", "w1")
        .0;
    let derivation = derive(&hierarchy).expect("three processors");
    let explanation = derivation.explain_thread("a").expect("it is satisfied");
    assert_eq!(explanation.to_string().matches("processor: ALL").count(), 2);
    let two = Hierarchy { processors: 2.try_into().unwrap(), ..hierarchy };
    // The lower of the two edges into it carries nothing then, and every processor has to be promised.
    let finding = failure(&two).findings.remove(0).to_string();
    assert_eq!(finding, "fair: it is given ALL and NULL, and accepts only PS or RESU");
}

#[test]
fn a_scheduler_of_one_processor_takes_no_two() {
    let two = Sketch::new()
        .processors(2)
        .scheduler("root", "fixed-priority")
        .scheduler("res", "reservation")
        .thread("t", "RESBH 5 10")
        .edge("root", "res", "p1")
        .edge("res", "t", "RESBH 5 10");
    assert!(derive(&two.0).is_ok());
    let root = Sketch::new().processors(2).scheduler("res", "reservation");
    let error = derive(&root.0).expect_err("a reservation scheduler has one processor").to_string();
    assert!(error.contains("2 processors") && error.contains("fixed-priority"), "{error}");
}

#[test]
fn a_failure_says_why() {
    let why = |asked: &str, requires: &str| {
        let sketch = Sketch::new().scheduler("res", "reservation").thread("t", requires);
        failure(&sketch.edge("res", "t", asked).0).to_string()
    };
    assert_eq!(
        why("RESBH 5 53", "RESCS 5 100"),
        "t: it requires RESCS 5ms 100ms, but receives RESBH 5ms 53ms, which is RESCS 5ms 101ms (Theorem 1: RESBH x y \
         and RESBS x y are RESCS x (2y - x + c), for any c of zero or more)"
    );
    assert_eq!(
        why("RESBH 5 53", "RESCH 5 53"),
        "t: it requires RESCH 5ms 53ms, but receives RESBH 5ms 53ms; RESBH is not convertible to RESCH (Theorem 2: \
         neither RESBH x y nor RESBS x y is a hard continuous reservation, unless x = y)"
    );
    assert_eq!(why("RESBH 5 53", "RESBH 6 53"), "t: it requires RESBH 6ms 53ms, but receives RESBH 5ms 53ms");
    let over = Sketch::new().scheduler("res", "reservation").thread("a", "").thread("b", "");
    let over = over.edge("res", "a", "RESBH 2 3").edge("res", "b", "RESBH 1 2").0;
    assert_eq!(failure(&over).to_string(), "res: its children ask for about 116.667 % of its processor");
}

#[test]
fn everybody_who_fails_is_named_and_what_is_below_is_not() {
    let hierarchy = Sketch::new()
        .scheduler("root", "lottery")
        .scheduler("res", "reservation")
        .thread("a", "PS 0.6")
        .thread("b", "PS 0.2")
        .thread("below", "RESBH 1 2")
        .edge("root", "a", "w1")
        .edge("root", "res", "w1")
        .edge("root", "b", "w1")
        .edge("res", "below", "RESBH 1 2")
        .0;
    let failure = failure(&hierarchy);
    let failing: Vec<&str> = failure.findings.iter().map(|finding| finding.node.as_str()).collect();
    assert_eq!(failing, ["a", "res"]);
    assert_eq!(failure.derived.threads.len(), 1);
    assert_eq!(failure.findings[1].problem.word(), "unacceptable");
    let json = serde_json::to_value(&failure).expect("JSON");
    assert_eq!(json["findings"][0]["problem"]["reason"], "requirement");
}

/// Reservations and requirements below a slower processor count its time; shares do not.
#[test]
fn time_below_a_slower_processor_is_its_own() {
    let hierarchy = Sketch::new()
        .scheduler("slow", "bss-i")
        .scheduler("res", "reservation")
        .scheduler("lot", "lottery")
        .scheduler("fair", "sfq")
        .thread("r", "RESBH 10 20")
        .thread("s", "PS 0.25")
        .thread("f", "")
        .edge("slow", "res", "RESU 0.5")
        .edge("slow", "lot", "RESU 0.25")
        .edge("slow", "fair", "RESU 0.25")
        .edge("res", "r", "RESBH 10 20")
        .edge("lot", "s", "w1")
        .edge("fair", "f", "w1")
        .0;
    let derivation = derive(&hierarchy).expect("it composes correctly");
    let below = derivation.between("res", "r").expect("it is labelled");
    assert_eq!(below.label.absolute(), guarantee("RESBH 5 20"));
    assert_eq!(label(&derivation, "lot", "s"), "PS 0.25");
    // q in q/r, so 2 q (1 - r) behind, in the formula with one thread.
    assert_eq!(label(&derivation, "fair", "f"), "PSBE 0.25 110ms");
}

/// No scheduler's guarantee depends on anything but what it is given: a hierarchy thousands deep is no problem.
#[test]
fn a_deep_hierarchy_is_derived_and_explained() {
    let mut sketch = Sketch::new().scheduler("s0", "stride").thread("t", "");
    for level in 1..2000 {
        sketch = sketch.scheduler(&format!("s{level}"), "stride");
        sketch = sketch.edge(&format!("s{}", level - 1), &format!("s{level}"), "w1");
    }
    let hierarchy = sketch.edge("s1999", "t", "w1").0;
    let derivation = derive(&hierarchy).expect("stride over stride");
    assert_eq!(derivation.explain_thread("t").expect("it is satisfied").steps.len(), 2000 + 2);
}

/// Joins above joins share their parents; what has been told is not told again.
#[test]
fn shared_parents_are_explained_once() {
    let mut sketch = Sketch::new().processors(2).scheduler("root", "fixed-priority").thread("t", "PS 0.1");
    sketch = sketch.scheduler("l0", "sfs").edge("root", "l0", "p1").edge("root", "l0", "p2");
    for level in 1..20 {
        let (above, own) = (format!("l{}", level - 1), format!("l{level}"));
        sketch = sketch.scheduler(&own, "sfs").edge(&above, &own, "w1").edge(&above, &own, "w1");
    }
    let hierarchy = sketch.edge("l19", "t", "w1").0;
    let derivation = derive(&hierarchy).expect("two of everything");
    let explanation = derivation.explain_thread("t").expect("it is satisfied");
    assert!(explanation.steps.len() < 200, "{} steps", explanation.steps.len());
}
