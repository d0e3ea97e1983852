//! `rt-shares-1`: proportional shares and servers, by the schedulers themselves under a virtual clock.
//!
//! Each case becomes an engine with one scheduler. The rows say more than which thread runs when; a wrapper around the rule (`observed`)
//! logs the rest, and ends quanta where the format does.

mod clock;
mod observed;
mod quanta;
mod servers;

use super::{Complaint, Outcome, outcome, same, with};
use serde::Deserialize;
use serde_json::Value;
use talea_policy::scheduler::readjusted;

/// Runs the case and compares everything it lists.
pub(super) fn judge(case: &Value) -> Outcome {
    let algorithm = case["alg"].as_str().unwrap_or_default();
    outcome(match algorithm {
        "SFQ" | "SFQ_WARP" => with(case, |case| quanta::fair_queue(&case)),
        "EEVDF" => with(case, |case| quanta::eevdf(&case)),
        "STRIDE" => with(case, |case| quanta::stride(&case)),
        "LOTTERY" => with(case, |case| quanta::lottery(&case)),
        "LOTTERY_COMPENSATION" => with(case, |case| quanta::compensated_lottery(&case)),
        "CBS" => with(case, |case| servers::constant_bandwidth(&case)),
        "TBS" => with(case, |case| servers::total_bandwidth(&case)),
        "SFS_READJUST" => with(case, |case| surplus_fair(&case)),
        unknown => return Outcome::Unsupported(format!("unknown algorithm \"{unknown}\"")),
    })
}

/// An exact number: `"a/b"` or `"a"`.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Rational {
    numerator: i128,
    denominator: i128,
}

impl Rational {
    fn new(numerator: i128, denominator: i128) -> Self {
        let divisor = divisor(numerator.abs(), denominator).max(1);
        Rational { numerator: numerator / divisor, denominator: denominator / divisor }
    }
}

fn divisor(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { divisor(b, a % b) }
}

impl PartialEq for Rational {
    fn eq(&self, other: &Self) -> bool {
        let (one, other) = (
            Rational::new(self.numerator, self.denominator),
            Rational::new(other.numerator, other.denominator),
        );
        (one.numerator, one.denominator) == (other.numerator, other.denominator)
    }
}

impl TryFrom<String> for Rational {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let (numerator, denominator) = text.split_once('/').unwrap_or((&text, "1"));
        match (numerator.parse(), denominator.parse()) {
            (Ok(numerator), Ok(denominator)) if denominator > 0 => Ok(Rational { numerator, denominator }),
            _ => Err(format!("\"{text}\" is not a rational number")),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Readjustment {
    #[serde(rename = "id")]
    _id: String,
    #[serde(rename = "alg")]
    _alg: String,
    cpus: usize,
    weights: Vec<u32>,
    expect: Feasible,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Feasible {
    phi: Vec<Rational>,
}

fn surplus_fair(case: &Readjustment) -> Result<(), Complaint> {
    if case.cpus == 0 {
        return Err(Complaint::Unreadable("no processors".into()));
    }
    let (phi, parts) = readjusted(&case.weights, case.cpus);
    let phi: Vec<Rational> = phi.into_iter().map(|phi| Rational::new(phi, parts)).collect();
    same("phi", &case.expect.phi, &phi)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rationals_are_compared_by_value() {
        let read = |text: &str| Rational::try_from(text.to_string());
        assert_eq!(read("4/6"), Ok(Rational::new(2, 3)));
        assert_eq!(read("7"), Ok(Rational::new(7, 1)));
        assert!(read("1/0").is_err() && read("x").is_err());
    }

    #[test]
    fn a_wrong_weight_and_an_unknown_algorithm_do_not_pass() {
        let case = |alg: &str, phi: &str| {
            judge(&serde_json::json!({
                "id": "x", "alg": alg, "cpus": 2, "weights": [5, 1, 1], "expect": {"phi": [phi, "1", "1"]}
            }))
        };
        assert_eq!(case("SFS_READJUST", "2"), Outcome::Passed);
        assert!(matches!(case("SFS_READJUST", "5"), Outcome::Failed(_)));
        assert!(matches!(case("ASTROLOGY", "2"), Outcome::Unsupported(_)));
    }
}
