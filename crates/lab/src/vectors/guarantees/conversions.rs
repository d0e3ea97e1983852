//! Single conversions: rewrites with numbers, the formula of start-time fair queuing, slower processors.

use super::{Complaint, read, same};
use serde::Deserialize;
use serde_json::Value;
use std::num::NonZeroU32;
use talea_guarantee::exact::{Share, Span};
use talea_guarantee::guarantee::{Continuity, Guarantee, Hardness, Kind, Reservation};
use talea_guarantee::label::Label;
use talea_guarantee::request::Request;
use talea_guarantee::rewrite::Choice;
use talea_guarantee::scheduler::{Algorithm, SchedulerKind};

/// Which of the three lists a case is from shows in its fields.
pub(super) fn judge(case: &Value) -> Result<(), Complaint> {
    match case {
        case if case.get("to").is_some() => rewrite(&read(case)?),
        case if case.get("weights").is_some() => formula(&read(case)?),
        case if case.get("interval_ns").is_some() => supply(&read(case)?),
        case => domain(&read(case)?),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rewrite {
    #[serde(rename = "id")]
    _id: String,
    from: Guarantee,
    to: Kind,
    c_ns: Option<Span>,
    period_ns: Option<Span>,
    /// Null where there is no rewrite; but the field has to be there.
    expect: Value,
}

fn rewrite(case: &Rewrite) -> Result<(), Complaint> {
    let slack = case.c_ns.clone().unwrap_or_else(Span::zero);
    let choice = Choice { slack, period: case.period_ns.clone() };
    let expected: Option<Guarantee> = read(&case.expect)?;
    let expected = expected.map_or("not convertible".into(), |guarantee| guarantee.to_string());
    let got = match Label::real(case.from.clone()).rewrite(case.to, &choice) {
        Ok(rewritten) => rewritten.label.to_string(),
        Err(_) => "not convertible".into(),
    };
    same("expect", &expected, &got)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Formula {
    #[serde(rename = "id")]
    _id: String,
    r#in: Guarantee,
    quantum_ns: u64,
    weights: Vec<NonZeroU32>,
    expect: Vec<Guarantee>,
}

fn formula(case: &Formula) -> Result<(), Complaint> {
    let algorithm = Algorithm::new(SchedulerKind::SFQ, &Span::from_nanos(case.quantum_ns));
    let requests: Vec<Request> = case.weights.iter().map(|weight| Request::Weight(*weight)).collect();
    let requests: Vec<&Request> = requests.iter().collect();
    let converted = algorithm.convert(0, &[Label::real(case.r#in.clone())], &requests);
    let outputs = converted.map_err(|refused| Complaint::Unreadable(refused.to_string()))?.outputs;
    same("expect, its length", &case.expect.len(), &outputs.len())?;
    for (thread, (expected, got)) in case.expect.iter().zip(&outputs).enumerate() {
        same(&format!("expect[{thread}]"), expected, got.label.guarantee())?;
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Supply {
    #[serde(rename = "id")]
    _id: String,
    rate: Share,
    interval_ns: Span,
    expect_supply_ns: Span,
}

/// Between two deadlines, a slower processor supplies what a reservation of the whole interval takes of it.
fn supply(case: &Supply) -> Result<(), Complaint> {
    let (basic, soft, all) = (Continuity::Basic, Hardness::Soft, case.interval_ns.clone());
    let whole = Reservation::new(basic, soft, all.clone(), all);
    let whole = whole.map_err(|error| Complaint::Unreadable(error.to_string()))?;
    same("expect_supply_ns", &case.expect_supply_ns, whole.slowed(&case.rate).amount())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Domain {
    #[serde(rename = "id")]
    _id: String,
    rate: Share,
    child_reservation: Guarantee,
    expect_absolute_share: Share,
}

fn domain(case: &Domain) -> Result<(), Complaint> {
    let label = Label::paced(case.child_reservation.clone(), &case.rate);
    same("expect_absolute_share", &case.expect_absolute_share, &label.absolute_share())
}
