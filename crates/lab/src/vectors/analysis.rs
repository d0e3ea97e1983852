//! `rt-analysis-1`: response times, demand, utilisation bounds, critical sets and end-to-end bounds.

mod chains;
mod offsets;
mod uniprocessor;

use super::{Complaint, Outcome, outcome, same, with};
use serde_json::Value;
use talea_analysis::{AnalysisError, Effort};

/// Computes what the case lists and compares field by field, in the order of `vectors/README.md`.
pub(super) fn judge(case: &Value) -> Outcome {
    let kind = case["kind"].as_str().unwrap_or_default();
    let effort = &mut Effort::default();
    let judged = match kind {
        "fp_rta" => with(case, |case| uniprocessor::preemptive_priorities(&case, effort)),
        "npfp_rta" => with(case, |case| uniprocessor::nonpreemptive_priorities(&case, effort)),
        "utilisation_bounds" => with(case, |case| uniprocessor::utilisation_bounds(&case, effort)),
        "edf_demand" => with(case, |case| uniprocessor::demand(&case, effort)),
        "npedf" => with(case, |case| uniprocessor::nonpreemptive_demand(&case, effort)),
        "muf_critical_set" => with(case, |case| uniprocessor::critical(&case, effort)),
        "chain_bounds" => with(case, |case| chains::bounds(&case, effort)),
        unknown => return Outcome::Unsupported(format!("unknown kind of analysis \"{unknown}\"")),
    };
    outcome(judged)
}

impl From<AnalysisError> for Complaint {
    fn from(error: AnalysisError) -> Self {
        Complaint::Unreadable(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(kind: &str, tasks: Value, expect: Value) -> Value {
        serde_json::json!({"id": "x", "kind": kind, "source": "here", "tasks": tasks, "expect": expect})
    }

    #[test]
    fn a_witness_that_leads_to_no_miss_fails() {
        let tasks = serde_json::json!([
            {"id": "A", "period_ns": 4, "wcet_ns": 1, "deadline_ns": 2},
            {"id": "B", "period_ns": 8, "wcet_ns": 3, "deadline_ns": 8}
        ]);
        let expect = |witness: [i64; 2]| {
            let fields = serde_json::json!({
                "schedulable": false, "first_failing_t_ns": 2, "witness_offsets_ns": witness
            });
            judge(&case("npedf", tasks.clone(), fields))
        };
        assert_eq!(expect([1, 0]), Outcome::Passed);
        let Outcome::Failed(difference) = expect([0, 0]) else { panic!("released together, all is well") };
        assert_eq!(difference.at, "witness_offsets_ns");
    }

    #[test]
    fn what_the_format_does_not_know_is_not_passed() {
        let outcome = judge(&case("astrology", Value::Null, Value::Null));
        assert!(matches!(outcome, Outcome::Unsupported(_)));
        let tasks =
            serde_json::json!([{"id": "A", "period_ns": 4, "wcet_ns": 1, "deadline_ns": 2, "colour": 1}]);
        let outcome = judge(&case("fp_rta", tasks, serde_json::json!({"wcrt_ns": {}, "schedulable": true})));
        assert!(matches!(outcome, Outcome::Failed(difference) if difference.got.contains("colour")));
    }
}
