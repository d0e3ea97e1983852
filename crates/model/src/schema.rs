//! The JSON Schema of system files, generated from the declarations the reader uses.

use crate::description::Criticality;
use crate::hierarchy::SchedulerKind;
use crate::inheritance::INHERITED;
use crate::keys::{CPUS, FILE, INPUT, Key, Kind, Literal, Presence, TASK, THREAD, Table, UNDER, most_tables};
use crate::reference::same_code;
use crate::validate::NAME_BYTES_LIMIT;
use serde_json::{Map, Value, json};
use talea_event::Collect;
use talea_event::qos::PropertyName;

/// The JSON Schema (draft 2020-12) of system files, for editors and other tools.
///
/// Everything it refuses the reader refuses too. The reader refuses more: rules that relate several
/// values, such as names that must exist.
pub fn json_schema() -> Value {
    let mut schema = table(&FILE);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Talea system file");
    schema["anyOf"] = json!([{ "required": ["task"] }, { "required": ["thread"] }]);
    schema["$defs"] = json!({
        "time": time(),
        "name": name(),
        "execution": execution(),
        "guarantee": guarantee(),
        "work": work(),
        "plan": plan(),
        "output": output_name(),
        "fields": fields(),
        "condition": condition(),
        "arrivals": arrivals(),
    });
    schema
}

fn table(table: &Table) -> Value {
    let mut properties = Map::new();
    for key in table.known() {
        properties.insert(key.name.into(), property(key));
    }
    let required: Vec<_> =
        table.known().filter(|key| matches!(key.presence, Presence::Required)).map(|key| key.name).collect();
    let mut schema = json!({
        "type": "object",
        "description": table.doc,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if std::ptr::eq(table, &TASK) {
        let own = ["wcet", "exec", "node", "lanes", "outputs", "inputs", "events"]
            .map(|key| json!({ "required": [key] }));
        let released_otherwise = json!({ "oneOf": one_of(&["period", "trigger"]) });
        schema["allOf"] = json!([
            { "oneOf": [
                { "required": ["wcet"], "not": { "required": ["subtask"] } },
                { "required": ["subtask"], "not": { "anyOf": own } },
            ] },
            // Beside these it is that of the operation, which is a task of one subtask.
            { "oneOf": [
                { "allOf": [released_otherwise, { "not": { "required": ["subtask", "subscription"] } }] },
                { "required": ["subscription"], "not": { "anyOf": one_of(&["period", "trigger"]) } },
            ] },
        ]);
        schema["dependentRequired"] = json!({
            "burst": ["separation"],
            "excess": ["separation"],
            "arrivals": ["trigger", "separation"],
        });
    }
    if std::ptr::eq(table, &INPUT) {
        schema["dependentRequired"] = json!({ "capacity": ["take"], "full": ["take"], "limit": ["full"] });
    }
    if std::ptr::eq(table, &THREAD) {
        schema["oneOf"] = one_of(&["work", "run", "pid", "tid"]);
        schema["dependentRequired"] = json!({ "children": ["pid"] });
    }
    if std::ptr::eq(table, &UNDER) {
        let requests = ["priority", "share", "guarantee"];
        let mut forms = one_of(&requests);
        let nothing = json!({ "not": { "anyOf": requests.map(|key| json!({ "required": [key] })) } });
        forms.as_array_mut().expect("a list of forms").push(nothing);
        schema["oneOf"] = forms;
        schema["dependentRequired"] = json!({ "warp": ["share"] });
    }
    schema
}

fn properties() -> Value {
    let value = |property: &PropertyName| json!({ "type": ["string", "integer", "boolean"], "description": property.allowed() });
    let all = PropertyName::ALL.iter().map(|property| (property.to_string(), value(property)));
    json!({ "type": "object", "properties": all.collect::<Map<_, _>>(), "additionalProperties": false })
}

fn one_of(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({ "required": [key] })).collect()
}

fn property(key: &Key) -> Value {
    let mut schema = match &key.kind {
        Kind::Name | Kind::NodeName | Kind::SchedulerName | Kind::LanesName | Kind::ChannelName => {
            json!({ "$ref": "#/$defs/name" })
        }
        Kind::Title => title(),
        Kind::OutputName => json!({ "$ref": "#/$defs/output" }),
        Kind::OperationNames => {
            let operation = json!({ "type": "string", "pattern": r"^[^\s.]+(\.[^\s.]+)?$" });
            json!({ "type": "array", "items": operation, "minItems": 2, "uniqueItems": true })
        }
        Kind::Fields => json!({ "$ref": "#/$defs/fields" }),
        Kind::Properties => properties(),
        Kind::EventType => json!({ "type": "string", "pattern": r"^[^/*]+/[^/*]+$" }),
        Kind::EventTypes => {
            json!({ "type": "array", "items": { "type": "string" }, "minItems": 1, "uniqueItems": true })
        }
        Kind::Constraint => json!({ "type": "string" }),
        Kind::Condition => json!({ "$ref": "#/$defs/condition" }),
        Kind::Arrivals => json!({ "$ref": "#/$defs/arrivals" }),
        Kind::WordOr(word, inner) => json!({ "oneOf": [{ "const": word }, table(inner)] }),
        Kind::Guarantee => json!({ "$ref": "#/$defs/guarantee" }),
        Kind::Work => json!({ "$ref": "#/$defs/work" }),
        Kind::Command => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
        Kind::TwoNodes => {
            json!({ "type": "array", "items": { "$ref": "#/$defs/name" }, "minItems": 2, "maxItems": 2 })
        }
        Kind::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        Kind::SubtaskNames => {
            json!({ "type": "array", "items": { "$ref": "#/$defs/name" }, "uniqueItems": true })
        }
        Kind::Time => json!({ "$ref": "#/$defs/time" }),
        Kind::Word(known) => json!({ "enum": known() }),
        Kind::Deadline => json!({ "oneOf": [{ "const": INHERITED }, { "$ref": "#/$defs/time" }] }),
        Kind::Join => json!({ "oneOf": [{ "enum": ["all", "first"] }, { "type": "integer", "minimum": 1 }] }),
        Kind::OneOf(words) => json!({ "enum": words }),
        Kind::Scheduler => json!({ "enum": scheduler_kinds() }),
        Kind::Criticality => json!({ "enum": criticalities() }),
        Kind::Integer { min, max } => {
            json!({ "type": "integer", "minimum": number(*min), "maximum": number(*max) })
        }
        Kind::Cpus => json!({
            "type": "array",
            "items": { "type": "integer", "minimum": number(*CPUS.start()), "maximum": number(*CPUS.end()) },
            "minItems": 1,
            "uniqueItems": true,
        }),
        Kind::Execution => json!({ "$ref": "#/$defs/execution" }),
        Kind::Plan => json!({ "$ref": "#/$defs/plan" }),
        Kind::One(inner) => table(inner),
        Kind::Many(inner) => many(inner),
        Kind::Later(_) | Kind::Former(_) => unreachable!("keys of other versions are not in the schema"),
    };
    schema["description"] = json!(match (&key.presence, &key.kind) {
        (Presence::DefaultFrom(default), _) => format!("{} Default: {default}.", key.doc),
        (_, Kind::Scheduler) => format!("{} {}", key.doc, same_code()),
        _ => key.doc.to_owned(),
    });
    if let Presence::Default(literal) = &key.presence {
        schema["default"] = match literal {
            Literal::Text(text) => json!(text),
            Literal::Integer(integer) => json!(integer),
            Literal::Integers(integers) => json!(integers),
        };
    }
    schema
}

fn many(inner: &Table) -> Value {
    let mut schema = json!({ "type": "array", "items": table(inner), "minItems": 1 });
    if let Some(most) = most_tables(inner) {
        schema["maxItems"] = json!(most);
    }
    schema
}

/// JSON numbers of this library are 64 bits wide, which every declared range fits.
fn number(value: i128) -> Value {
    match u64::try_from(value) {
        Ok(natural) => json!(natural),
        Err(_) => json!(i64::try_from(value).expect("declared ranges fit 64 bits")),
    }
}

/// The names of all kinds, then their synonyms.
fn scheduler_kinds() -> Vec<&'static str> {
    let kinds = SchedulerKind::in_files();
    let synonyms = kinds.iter().flat_map(|kind| kind.declaration().synonyms).copied();
    kinds.iter().map(|kind| kind.name()).chain(synonyms).collect()
}

fn criticalities() -> Vec<Value> {
    let levels = Criticality::ALL.iter().map(|criticality| json!(criticality.level()));
    let names = Criticality::ALL.iter().map(|criticality| json!(criticality.keyword()));
    levels.chain(names).chain([json!(INHERITED)]).collect()
}

fn time() -> Value {
    json!({
        "type": "string",
        "description": "A number and a unit (ns, us, ms, s, min, h), such as \"50ms\" or \"1.5s\".",
        "pattern": r"^\s*_*[0-9][0-9_]*(\.[0-9_]+)?\s*(ns|us|µs|ms|s|min|h)\s*$",
    })
}

fn name() -> Value {
    json!({
        "type": "string",
        "description": "Letters, digits, - and _.",
        "minLength": 1,
        "maxLength": NAME_BYTES_LIMIT,
        "pattern": r"^[^\s.,;:/\\]+$",
    })
}

/// A name of several words.
fn title() -> Value {
    json!({
        "type": "string",
        "minLength": 1,
        "maxLength": NAME_BYTES_LIMIT,
        "pattern": r"^[^\s.,;:/\\]+( [^\s.,;:/\\]+)*$",
    })
}

fn output_name() -> Value {
    json!({
        "type": "string",
        "description": "The names of an operation and of its output, such as \"control.command\" or \"imu.estimate.state\".",
        "pattern": r"^[^\s.]+\.[^\s.]+(\.[^\s.]+)?$",
    })
}

fn fields() -> Value {
    let list = |items: Value| {
        let mut list = json!({ "type": "array", "items": { "type": "integer" } });
        list.as_object_mut().expect("an object").extend(items.as_object().expect("an object").clone());
        list
    };
    json!({
        "type": "object",
        "additionalProperties": { "oneOf": [
            { "type": "integer", "description": "Always this." },
            form("uniform", list(json!({
                "description": "Uniform between the two, both included, drawn from the seed.",
                "minItems": 2, "maxItems": 2,
            }))),
            form("list", list(json!({
                "description": "Job after job has the next of these; after the last the first again.",
                "minItems": 1,
            }))),
        ] },
    })
}

/// What has to come of several events and over time.
fn condition() -> Value {
    let own = || json!({ "$ref": "#/$defs/condition" });
    let time = || json!({ "$ref": "#/$defs/time" });
    let source = || json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
    let parts = |doc: &str| json!({ "type": "array", "items": own(), "minItems": 1, "description": doc });
    let table = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
    let collect: Vec<&str> = Collect::ALL.iter().map(|collect| collect.keyword()).collect();
    json!({
        "oneOf": [
            { "type": "string", "description": "An event of this type, Domain/Name; a * at the end of domain or name stands for any rest." },
            table(json!({ "types": { "type": "array", "items": { "type": "string" }, "minItems": 1 } }), &["types"]),
            table(json!({ "filter": { "type": "string", "description": "An event of which this constraint holds." } }), &["filter"]),
            table(json!({ "source": source() }), &["source"]),
            table(json!({ "mask": source(), "value": source() }), &["mask", "value"]),
            table(json!({ "all_of_one": parts("One event that is all of these.") }), &["all_of_one"]),
            table(json!({ "not": own() }), &["not"]),
            table(json!({ "any": parts("One of these, the first that comes true.") }), &["any"]),
            table(
                json!({ "all": parts("All of these, in whichever order."), "collect": { "enum": collect }, "within": time() }),
                &["all"],
            ),
            table(json!({ "in_order": parts("All of these, one after the other."), "within": time() }), &["in_order"]),
            table(
                json!({ "count": { "type": "integer", "minimum": 2, "maximum": 256 }, "of": own(), "within": time() }),
                &["count", "of"],
            ),
            table(json!({ "after": time() }), &["after"]),
            table(json!({ "every": time() }), &["every"]),
            table(json!({ "unless": own(), "within": time() }), &["unless", "within"]),
        ],
    })
}

fn arrivals() -> Value {
    let time = |description: &str| json!({ "$ref": "#/$defs/time", "description": description });
    json!({
        "oneOf": [
            { "const": "none", "description": "Nothing happens outside." },
            {
                "type": "object",
                "properties": {
                    "periodic": time("From one to the next."),
                    "jitter": time("How much later each is at most, shorter than that."),
                },
                "required": ["periodic"],
                "additionalProperties": false,
            },
            form("sporadic", time("The mean distance of arrivals that are at least the separation apart.")),
            form("poisson", time("The mean distance of arrivals without a least distance.")),
            form("list", json!({
                "description": "At these times after the common start, in their order, and then no more.",
                "type": "array", "items": { "$ref": "#/$defs/time" }, "minItems": 1,
            })),
            form("file", json!({
                "description": "A list read from a file, one time per line, with a unit or in seconds; the path is relative to this file.",
                "type": "string", "minLength": 1,
            })),
        ],
    })
}

fn guarantee() -> Value {
    let kinds = talea_guarantee::guarantee::Kind::EVERY.map(talea_guarantee::guarantee::Kind::name).join("|");
    json!({
        "type": "string",
        "description": "A kind of guarantee and its parameters, such as \"RESBH 5ms 33ms\" or \"PS 40%\".",
        "maxLength": 200,
        "pattern": format!(r"^[\s,]*({kinds})([\s,]|$)"),
    })
}

fn work() -> Value {
    json!({
        "oneOf": [
            { "const": "cpu-bound", "description": "It always wants the processor." },
            {
                "type": "object",
                "description": "It wakes up every period and then wants the processor for a burst.",
                "properties": {
                    "burst": { "$ref": "#/$defs/execution", "description": "How much it wants then." },
                    "period": { "$ref": "#/$defs/time", "description": "From one wake-up to the next." },
                },
                "required": ["burst", "period"],
                "additionalProperties": false,
            },
        ],
    })
}

fn plan() -> Value {
    json!({
        "oneOf": [
            {
                "type": "array",
                "description": "The entries in the order of their starts; none begins before the one ahead of it is over.",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {
                        "start": { "$ref": "#/$defs/time", "description": "From the beginning of the plan." },
                        "duration": { "$ref": "#/$defs/time", "description": "How much processor time." },
                        "child": { "$ref": "#/$defs/name", "description": "Who runs: a scheduler or thread below." },
                    },
                    "required": ["start", "duration", "child"],
                    "additionalProperties": false,
                },
            },
            {
                "type": "object",
                "properties": {
                    "file": {
                        "description": "A file with an entry in each line, such as 0ms, 5ms, video: start, duration, child. Its path is \
                                        relative to this file.",
                        "type": "string", "minLength": 1,
                    },
                },
                "required": ["file"],
                "additionalProperties": false,
            },
        ],
    })
}

fn execution() -> Value {
    let time = json!({ "$ref": "#/$defs/time" });
    json!({
        "oneOf": [
            { "$ref": "#/$defs/time", "description": "Every job takes this long." },
            form("uniform", json!({
                "description": "Uniform between the two, both included, drawn from the seed.",
                "type": "array", "items": time, "minItems": 2, "maxItems": 2,
            })),
            form("list", json!({
                "description": "Job after job takes the next of these; after the last the first again.",
                "type": "array", "items": time, "minItems": 1,
            })),
            form("trace", json!({
                "description": "A list read from a file, one time per line; the path is relative to this file.",
                "type": "string", "minLength": 1,
            })),
        ],
    })
}

/// A table that has just this key.
fn form(name: &str, value: Value) -> Value {
    json!({
        "type": "object",
        "properties": { name: value },
        "required": [name],
        "additionalProperties": false,
    })
}
