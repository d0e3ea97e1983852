//! Rules of the language, one by one, where they are easy to get wrong.

use talea_etcl::{Constraint, Event, Fault, FaultKind, Properties};
use talea_time::Instant;

fn evaluated(text: &str) -> Result<bool, Fault> {
    let header: Properties = [("both", 1), ("max", 5)].into_iter().collect();
    let mut data: Properties =
        [("both", 2), ("domain_name", 7), ("big", 0), ("curtime", -1)].into_iter().collect();
    data.insert("big", u64::MAX);
    data.insert("nan", f64::NAN);
    data.insert("infinite", f64::INFINITY);
    data.insert("text", "xäy");
    let event = Event::new("Plant", "Pump", "x").with_variable_header(header).with_filterable_data(data);
    let program = Constraint::parse(text).and_then(|constraint| constraint.compile::<Event>()).expect(text);
    program.evaluate(&event, Instant::from_nanos(1000))
}

fn kind(text: &str) -> FaultKind {
    evaluated(text).expect_err(text).kind
}

#[test]
fn names_are_those_of_the_header_first() {
    assert_eq!(
        evaluated("both == 1 and $both == 1 and $.both == 1 and $.filterable_data(both) == 2"),
        Ok(true)
    );
    // The fixed header has its names with a $ only.
    assert_eq!(
        evaluated("domain_name == 7 and $domain_name == 'Plant' and $.domain_name == 'Plant'"),
        Ok(true)
    );
    assert_eq!(evaluated("curtime == -1 and $curtime == 1000 and $.curtime == 1000"), Ok(true));
    assert_eq!(evaluated("\\max == 5 and $\\max == 5 and $.header.variable_header(\\max) == 5"), Ok(true));
    assert_eq!(kind("filterable_data == 1"), FaultKind::Missing);
    assert_eq!(evaluated("exist $ and exist $.header and not exist header"), Ok(true));
}

#[test]
fn integers_are_checked_and_unsigned_ones_compare_by_value() {
    assert_eq!(kind("9223372036854775807 + 1 > 0"), FaultKind::Overflow);
    assert_eq!(kind("-9223372036854775808 / -1 > 0"), FaultKind::Overflow);
    assert_eq!(kind("big * big > 0"), FaultKind::Overflow);
    assert_eq!(kind("big + 1 > 0"), FaultKind::Overflow);
    assert_eq!(evaluated("big > 9223372036854775807 and big == 18446744073709551615 and -1 < big"), Ok(true));
    assert_eq!(evaluated("big - 1 < big and big / 2 == 9223372036854775807 and big - big == 0"), Ok(true));
    assert_eq!(evaluated("-7 / 2 == -3 and 7 / -2 == -3"), Ok(true));
    assert_eq!(kind("1 / 0 > 0"), FaultKind::DivisionByZero);
    assert_eq!(kind("1.0 / 0 > 0"), FaultKind::DivisionByZero);
}

#[test]
fn floats_are_ieee_numbers() {
    assert_eq!(evaluated("nan != nan and not (nan == nan) and not (nan < 1) and not (nan >= 1)"), Ok(true));
    assert_eq!(evaluated("0.1 + 0.2 != 0.3 and -0.0 == 0 and 1e3 == 1000 and .5 == 0.5"), Ok(true));
    assert_eq!(evaluated("infinite + 1 > 1e308 and infinite == infinite * 2"), Ok(true));
    assert_eq!(kind("1e308 * 10 > 0"), FaultKind::Overflow);
    // Integers become floats, with what they lose.
    assert_eq!(evaluated("9007199254740993 == 9007199254740992.0"), Ok(true));
}

#[test]
fn operators_bind_as_the_grammar_says() {
    assert_eq!(evaluated("2 + 3 * 4 == 14 and 20 - 5 - 5 == 10 and 100 / 5 / 2 == 10"), Ok(true));
    assert_eq!(evaluated("FALSE and FALSE or TRUE"), Ok(true));
    assert_eq!(evaluated("not FALSE == TRUE"), Ok(true));
    assert_eq!(evaluated("'ä' ~ text and '' ~ text and not ('Ä' ~ text)"), Ok(true));
    assert_eq!(evaluated("'z' < 'ä'"), Ok(true), "bytes of UTF-8");
    assert_eq!(evaluated("FALSE < TRUE and TRUE >= TRUE"), Ok(true));
}

#[test]
fn faults_name_the_part() {
    let fault = |text: &str| {
        let fault = evaluated(text).expect_err(text);
        text[fault.span.range()].to_owned()
    };
    assert_eq!(fault("both == 1 and nothing == 3"), "nothing");
    assert_eq!(fault("$.header.fixed_header.0.type_name == 'Pump' and $text.inner.x == 1"), ".inner");
    assert_eq!(fault("both == 1 and (both + text) * 2 > 1"), "both + text");
    assert_eq!(fault("both == 1 and not text"), "text");
    assert_eq!(fault("1 in text"), "text");
}
