//! What passive entities hold, for people and as JSON.

use serde_json::{Map, Value as Json, json};
use talea_record::declaration::Value;
use talea_record::stream::passive::{HistogramReading, Reading};

/// On one line.
pub fn line(reading: &Reading) -> String {
    match reading {
        Reading::Counter(count) => count.to_string(),
        Reading::Gauge(number) => number.to_string(),
        Reading::Histogram(histogram) => {
            let inside: Vec<String> = histogram.inside.iter().map(u64::to_string).collect();
            let HistogramReading { lower, width, below, above, .. } = histogram;
            format!("{below} below {lower}, by {width}: [{}], {above} above", inside.join(" "))
        }
        Reading::Object(None) => "nothing yet".into(),
        Reading::Object(Some(fields)) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {value}")).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}

/// `{"kind": "counter", "value"}`, `{"kind": "gauge", "value"}`, `{"kind": "histogram", "lower", "width", "below", "inside", "above"}` or
/// `{"kind": "object", "fields"}`, which is null while nothing was set.
pub fn json(reading: &Reading) -> Map<String, Json> {
    let value = match reading {
        Reading::Counter(value) => json!({ "kind": "counter", "value": value }),
        Reading::Gauge(value) => json!({ "kind": "gauge", "value": value }),
        Reading::Histogram(HistogramReading { lower, width, below, inside, above }) => json!({
            "kind": "histogram", "lower": lower, "width": width, "below": below, "inside": inside, "above": above,
        }),
        Reading::Object(fields) => {
            let fields = fields.as_ref().map(|fields| {
                fields.iter().map(|(name, value)| (name.clone(), field(value))).collect::<Map<_, _>>()
            });
            json!({ "kind": "object", "fields": fields })
        }
    };
    let Json::Object(map) = value else { unreachable!("each is an object") };
    map
}

/// Instants and lengths of time are nanoseconds; numbers that JSON does not have are null.
fn field(value: &Value) -> Json {
    match value {
        Value::Unsigned(number) => json!(number),
        Value::Signed(number) | Value::Instant(number) | Value::Duration(number) => json!(number),
        Value::Float(number) => json!(number),
        Value::Bool(flag) => json!(flag),
        Value::Job(job) => json!({ "operation": job.operation.index(), "instance": job.instance }),
        Value::Text(text) => json!(text),
        Value::Bytes(_) | Value::CutBytes(_) => json!(value.to_string()),
        Value::Missing => Json::Null,
    }
}
