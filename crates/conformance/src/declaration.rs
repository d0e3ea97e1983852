//! Whether a kind is what its declaration says, as far as that can be seen without running it.

use talea_guarantee::conversion::Refused;
use talea_guarantee::conversion::table::{Accepts, Conversion, Provides};
use talea_guarantee::exact::Span;
use talea_guarantee::guarantee::{Guarantee, Kind};
use talea_guarantee::label::Label;
use talea_guarantee::request::Request;
use talea_guarantee::rewrite::{Cell, cell};
use talea_guarantee::scheduler::{Algorithm, Asks, Demand, Parameter, Scope, Timers};
use talea_model::SchedulerKind;

/// Fails unless the declaration is complete and the conversion does as its row in the table says.
pub fn check(kind: SchedulerKind) {
    assert_eq!(SchedulerKind::named(kind.name), Some(kind), "it is found by its name");
    for synonym in kind.synonyms {
        assert_eq!(SchedulerKind::named(synonym), Some(kind), "it is found as {synonym}");
    }
    assert!(!kind.about.is_empty(), "{kind} does not say what it does");
    assert!(kind.parameters.iter().all(|parameter| !parameter.about.is_empty()), "a parameter of {kind}");
    match kind.timers {
        Timers::Quanta => assert!(kind.has_quantum(), "{kind} has timers for quanta, and no quantum"),
        Timers::Plan => {
            assert!(
                kind.parameter(Parameter::PLAN.name).is_some(),
                "{kind} has timers for a plan, and no plan"
            );
        }
        Timers::Budgets | Timers::BudgetsReceived => {
            let is_asked =
                matches!(kind.asks, Asks::Guarantee(_) | Asks::GuaranteeOrJobs(_) | Asks::AtMost(_));
            assert!(is_asked, "{kind} has timers for budgets, and its children ask for none");
        }
        Timers::None | Timers::Unstated => {}
    }
    if kind.scope == Scope::Files {
        return;
    }
    assert!(!kind.conversions.is_empty(), "{kind} does not say what it accepts and gives");
    let algorithm = Algorithm::new(kind, &Span::from_millis(1));
    let requests = requests(kind.demand());
    Kind::EVERY.into_iter().for_each(|given| converts(&algorithm, given, &requests));
}

/// What a scheduler makes of a guarantee of this kind is of a kind that it says it gives; what it says it accepts it takes.
fn converts(algorithm: &Algorithm, kind: Kind, requests: &[Request]) {
    let given = [Label::real(example(kind))];
    let requests: Vec<&Request> = requests.iter().collect();
    let rows: Vec<&Conversion> =
        algorithm.kind().declaration().conversions.iter().filter(|row| accepts(row, kind)).collect();
    match algorithm.convert(0, &given, &requests) {
        // A reservation of a size of its own is not made of what has no size that would say which.
        Err(Refused::Unacceptable { .. }) => {
            let is_settled = |row: &&Conversion| match row.accepts {
                Accepts::One(wanted) => wanted.reservation().is_none() || kind.reservation().is_some(),
                Accepts::Any | Accepts::Several(_) => true,
            };
            assert!(!rows.iter().any(is_settled), "{algorithm} refuses {kind}, which it says it accepts");
        }
        Err(other) => panic!("{algorithm} of {kind}: {other}"),
        Ok(converted) => {
            assert!(!rows.is_empty(), "{algorithm} takes {kind}, which it does not say");
            assert_eq!(converted.outputs.len(), requests.len(), "{algorithm} says what each child is given");
            for output in &converted.outputs {
                let gives = output.label.guarantee().kind();
                let is_said = rows.iter().any(|row| provides(row, &given[0], gives));
                assert!(is_said, "{algorithm} makes {gives} of {kind}, which it does not say");
            }
        }
    }
}

fn accepts(row: &Conversion, kind: Kind) -> bool {
    match row.accepts {
        Accepts::Any => true,
        Accepts::One(wanted) | Accepts::Several(wanted) => matches!(cell(kind, wanted), Cell::Convertible(_)),
    }
}

fn provides(row: &Conversion, given: &Label, kind: Kind) -> bool {
    match row.provides {
        Provides::HighestThenNull => kind == given.guarantee().kind() || kind == Kind::Null,
        Provides::Softened => kind == given.guarantee().softened().kind(),
        Provides::One(only) => kind == only,
        Provides::Many(kinds) => kinds.contains(&kind),
    }
}

/// One guarantee of each kind.
fn example(kind: Kind) -> Guarantee {
    let text = match kind {
        Kind::All => "ALL",
        Kind::Resu => "RESU 0.5",
        Kind::Resbh => "RESBH 5ms 10ms",
        Kind::Resbs => "RESBS 5ms 10ms",
        Kind::Resch => "RESCH 5ms 10ms",
        Kind::Rescs => "RESCS 5ms 10ms",
        Kind::Psbe => "PSBE 0.5 5ms",
        Kind::Ps => "PS 0.5",
        Kind::Null => "NULL",
    };
    text.parse().expect("a guarantee")
}

/// What children ask for that are admitted together.
fn requests(demand: Demand) -> Vec<Request> {
    let guarantee = |text: &str| Request::Guarantee(text.parse().expect("a guarantee"));
    let weight = Request::Weight(std::num::NonZeroU32::MIN);
    match demand {
        Demand::Nothing | Demand::AtMost(_) => vec![Request::Nothing],
        Demand::Priority => vec![Request::Priority(1), Request::Priority(7), Request::Priority(3)],
        Demand::Weight => vec![weight.clone(), weight],
        Demand::Guarantee([Kind::Resu]) => vec![guarantee("RESU 0.25"), guarantee("RESU 0.75")],
        Demand::Guarantee(kinds) | Demand::GuaranteeIfAny(kinds) => {
            kinds.iter().map(|kind| guarantee(&format!("{kind} 20ms 100ms"))).collect()
        }
    }
}
