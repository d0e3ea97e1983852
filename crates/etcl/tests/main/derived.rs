//! Types of one's own, by the macro.

use std::sync::Arc;
use talea_etcl::{Constraint, FaultKind, Filterable, Node, ProblemKind, Value};
use talea_time::{Duration, Instant};

#[derive(Filterable)]
#[filterable(id = "IDL:Plant/Severity:1.0")]
#[expect(dead_code, reason = "nothing is minor here")]
enum Severity {
    Minor,
    #[filterable(rename = "MAJOR")]
    Major,
    Critical,
}

#[derive(Filterable)]
struct Place {
    hall: u8,
    room: Option<u32>,
}

#[derive(Filterable)]
enum Cause {
    Unknown,
    Code(i32),
    Text(String),
}

#[derive(Filterable)]
#[filterable(id = "IDL:Plant/Alarm:1.0")]
struct Alarm {
    severity: Severity,
    other: Option<Severity>,
    place: Place,
    others: Vec<Place>,
    cause: Cause,
    #[filterable(rename = "label")]
    text: Arc<str>,
    r#type: &'static str,
    values: [f32; 3],
    count: u64,
    after: Duration,
    is_new: bool,
    next: Option<Box<Alarm>>,
    #[filterable(skip)]
    #[expect(dead_code, reason = "it is left out")]
    secret: std::cell::Cell<u8>,
}

#[derive(Filterable)]
struct Pair<T, const LENGTH: usize> {
    head: T,
    rest: [T; LENGTH],
}

#[derive(Filterable)]
struct Borrowed<'a> {
    name: &'a str,
    parts: &'a [u16],
}

fn alarm(next: Option<Box<Alarm>>) -> Alarm {
    Alarm {
        severity: Severity::Major,
        other: Some(Severity::Critical),
        place: Place { hall: 2, room: None },
        others: vec![Place { hall: 3, room: Some(17) }],
        cause: Cause::Code(-4),
        text: "hot bearing".into(),
        r#type: "pump",
        values: [0.5, 1.5, 2.5],
        count: u64::MAX,
        after: Duration::from_micros(3),
        is_new: true,
        next,
        secret: 0.into(),
    }
}

fn evaluated(text: &str) -> Result<bool, FaultKind> {
    let program = Constraint::parse(text).and_then(|constraint| constraint.compile::<Alarm>());
    let program = program.unwrap_or_else(|problem| panic!("{text}: {problem}"));
    let alarm = alarm(Some(Box::new(alarm(None))));
    program.evaluate(&alarm, Instant::from_nanos(9)).map_err(|fault| fault.kind)
}

#[test]
fn fields_are_members_by_name_and_by_position() {
    for text in [
        "is_new and $is_new and $.is_new and $.10",
        "$place.hall == 2 and $.2.0 == 2 and $.place.0 + 1 == 3",
        "$others._length == 1 and $others[0].room == 17 and $values[2] == 2.5 and 1.5 in $values",
        "'bear' ~ label and type == 'pump'",
        "count == 18446744073709551615 and after == 3000 and $curtime == 9",
        "$next.place.hall == 2 and not exist $next.next and exist $next",
        "not exist $place.room and exist $others[0].room",
        "$._type_id == 'Alarm' and $._repos_id == 'IDL:Plant/Alarm:1.0' and $place._type_id == 'Place'",
        "$severity._type_id == 'Severity' and $severity._repos_id == 'IDL:Plant/Severity:1.0'",
    ] {
        assert_eq!(evaluated(text), Ok(true), "{text}");
    }
    assert_eq!(evaluated("$place.room == 1"), Err(FaultKind::Missing));
    assert_eq!(evaluated("$others[1].hall == 1"), Err(FaultKind::Index { length: 1 }));
}

#[test]
fn labels_are_known_when_a_constraint_is_compiled() {
    for text in [
        "severity == MAJOR",
        "MAJOR == $severity",
        "severity >= Minor and severity < Critical",
        "$severity == 1",
    ] {
        assert_eq!(evaluated(text), Ok(true), "{text}");
    }
    assert_eq!(evaluated("other > severity"), Ok(true));
    assert_eq!(evaluated("$next.other == Critical"), Ok(true));
}

#[test]
fn variants_with_fields_are_arms() {
    for text in [
        "$cause._d == Code and $cause.Code == -4 and $cause.('Code') == -4 and $cause.(1) < 0",
        "not exist $cause.Text and not exist $cause.(2) and not exist $cause.Unknown and not default $cause._d",
        "$cause._type_id == 'Cause'",
    ] {
        assert_eq!(evaluated(text), Ok(true), "{text}");
    }
    assert_eq!(evaluated("$cause.Text == 'x'"), Err(FaultKind::InactiveArm));
    let unknown = Cause::Unknown;
    assert!(unknown.at(0).is_none() && unknown.name_at(0) == Some("Unknown"));
    let text = Cause::Text("x".into());
    assert!(matches!(text.at(0), Some(Value::Text("x"))));
}

#[test]
fn mistakes_are_found_when_a_constraint_is_compiled() {
    let refused = |text: &str| {
        let problem = Constraint::parse(text).expect("it parses").compile::<Alarm>().expect_err(text);
        (problem.kind, problem.to_string())
    };
    let (kind, said) = refused("severty == MAJOR");
    assert_eq!(kind, ProblemKind::Name);
    assert_eq!(said, "line 1, column 1: Alarm has no member severty; did you mean severity?");
    let (_, said) = refused("$place.hal == 2 and is_new");
    assert_eq!(said, "line 1, column 7: Place has no member hal; did you mean hall?");
    let (_, said) = refused("severity == MAJRO");
    assert_eq!(
        said,
        "line 1, column 13: MAJRO is neither a member nor a label of Severity; did you mean MAJOR?"
    );
    let (kind, said) = refused("count < 'a'");
    assert_eq!(kind, ProblemKind::Type);
    assert!(said.starts_with("line 1, column 1: count is an integer and 'a' is a string"), "{said}");
    let (_, said) = refused("$values.x == 1");
    assert!(said.starts_with("line 1, column 8: a sequence has nothing of this kind; write .name"), "{said}");
    assert_eq!(refused("'a' ~ count").0, ProblemKind::Type);
    assert_eq!(refused("1 in count").0, ProblemKind::Type);
    assert_eq!(refused("severity").0, ProblemKind::Type);
    assert_eq!(refused("default $place._d").0, ProblemKind::Type);
    assert_eq!(refused("$.99 == 1").0, ProblemKind::Type);
    // What need not be evaluated is a warning.
    let doubtful = Constraint::parse("is_new or severty == MAJOR or exist $place.hal").expect("it parses");
    let (program, warnings) = doubtful.compile_with_warnings::<Alarm>().expect("it may match");
    assert_eq!(program.evaluate(&alarm(None), Instant::ZERO), Ok(true));
    let columns: Vec<usize> = warnings.iter().map(|warning| warning.column).collect();
    assert_eq!(columns, [11, 43], "{warnings:?}");
}

#[test]
fn types_with_parameters_have_members_too() {
    let program = Constraint::parse("head == 1 and $rest[1] == 3 and $rest._length == 2").expect("it parses");
    let program = program.compile::<Pair<i32, 2>>().expect("it compiles");
    assert_eq!(program.evaluate(&Pair { head: 1, rest: [2, 3] }, Instant::ZERO), Ok(true));
    assert_eq!(program.clone().evaluate(&Pair { head: 2, rest: [2, 3] }, Instant::ZERO), Ok(false));
}

#[test]
fn types_that_borrow_are_filtered_where_they_are() {
    let program = Constraint::parse("name == 'x' and 3 in parts and $parts[0] == 2").expect("it parses");
    let program = program.compile::<Borrowed<'_>>().expect("it compiles");
    let (name, parts) = (String::from("x"), vec![2, 3]);
    assert_eq!(program.evaluate(&Borrowed { name: &name, parts: &parts }, Instant::ZERO), Ok(true));
}
