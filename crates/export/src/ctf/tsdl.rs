//! The metadata of an export in CTF's Trace Stream Description Language.

use super::layout::{Layout, NO_DEADLINE, Type};
use super::packets::StreamClass;
use super::text::{Distinct, comment, literal};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use talea_model::OperationId;
use talea_record::event::Meaning;
use talea_record::{EdgeEntry, Metadata, Origin, Record};

/// Whether the trace has events of the kernel, by which readers choose their views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    /// It has.
    Kernel,
    /// It has none.
    User,
}

/// The metadata file's text.
pub(super) fn text(
    metadata: &Metadata,
    domain: Domain,
    classes: &[StreamClass],
    layouts: &[Layout],
) -> String {
    let clock = Clock::of(metadata);
    let mut text = String::from("/* CTF 1.8 */\n\n");
    integers(&mut text);
    text.push_str(TRACE);
    environment(&mut text, metadata, domain);
    text.push_str(&clock.text());
    enumerations(&mut text, metadata, layouts);
    for class in classes {
        text.push_str(&stream(*class));
        for layout in layouts {
            event(&mut text, layout, *class);
        }
    }
    text
}

/// The clock of the time stamps, whose origin is that of the trace's.
struct Clock {
    description: &'static str,
    /// Of its origin from that of the time of day, if that is known.
    offset_ns: Option<i64>,
}

impl Clock {
    fn of(metadata: &Metadata) -> Self {
        match metadata.origin {
            Origin::Simulation { .. } => {
                Clock { description: "virtual time of the simulation", offset_ns: None }
            }
            Origin::Threads { .. } => {
                Clock { description: "CLOCK_MONOTONIC", offset_ns: metadata.realtime_offset_ns }
            }
        }
    }

    fn text(&self) -> String {
        let description = literal(self.description);
        let is_absolute = self.offset_ns.is_some();
        let offset_ns = self.offset_ns.unwrap_or(0);
        // The second part counts cycles from the first one on, which cannot be less than none.
        let (seconds, cycles) = (offset_ns.div_euclid(1_000_000_000), offset_ns.rem_euclid(1_000_000_000));
        format!(
            "clock {{\n    name = monotonic;\n    description = {description};\n    freq = 1000000000;\n    \
             precision = 1;\n    offset_s = {seconds};\n    offset = {cycles};\n    absolute = {is_absolute};\n}};\n\n\
             typealias integer {{ size = 64; align = 8; signed = false; map = clock.monotonic.value; }} := \
             timestamp_t;\n\n"
        )
    }
}

const TRACE: &str = "\ntrace {
    major = 1;
    minor = 8;
    byte_order = le;
    packet.header := struct {
        integer { size = 32; align = 8; signed = false; base = hexadecimal; } magic;
        uint32_t stream_id;
    };
};\n\n";

fn integers(text: &mut String) {
    for bits in [8, 16, 32, 64] {
        for (signed, name) in [(false, "uint"), (true, "int")] {
            writeln!(
                text,
                "typealias integer {{ size = {bits}; align = 8; signed = {signed}; }} := {name}{bits}_t;"
            )
            .expect("text grows");
        }
    }
    for (name, exponent, mantissa) in [("float32_t", 8, 24), ("float64_t", 11, 53)] {
        writeln!(
            text,
            "typealias floating_point {{ exp_dig = {exponent}; mant_dig = {mantissa}; align = 8; }} := {name};"
        )
        .expect("text grows");
    }
}

fn environment(text: &mut String, metadata: &Metadata, domain: Domain) {
    let mut entries = vec![
        ("domain", literal(if domain == Domain::Kernel { "kernel" } else { "talea" })),
        ("tracer_name", literal("talea")),
        ("tracer_major", env!("CARGO_PKG_VERSION_MAJOR").into()),
        ("tracer_minor", env!("CARGO_PKG_VERSION_MINOR").into()),
        ("tracer_patchlevel", env!("CARGO_PKG_VERSION_PATCH").into()),
        ("system", literal(&metadata.system)),
        ("strategy", literal(&metadata.strategy)),
        ("start_ns", metadata.start.as_nanos().to_string()),
        ("no_deadline", NO_DEADLINE.to_string()),
    ];
    match metadata.origin {
        Origin::Simulation { seed } => {
            entries.push(("origin", literal("simulation")));
            // As text, for numbers in an environment have 63 bits.
            entries.push(("seed", literal(&seed.to_string())));
        }
        Origin::Threads { realtime } => {
            entries.push(("origin", literal("threads")));
            entries.push(("realtime", u8::from(realtime).to_string()));
        }
    }
    text.push_str("env {\n");
    for (key, value) in entries {
        writeln!(text, "    {key} = {value};").expect("text grows");
    }
    text.push_str("};\n\n");
}

/// The names of all values with names, once for each width that occurs.
fn enumerations(text: &mut String, metadata: &Metadata, layouts: &[Layout]) {
    let kinds: BTreeSet<Type> =
        layouts.iter().flat_map(|layout| &layout.members).map(|member| member.kind).collect();
    for kind in kinds {
        match kind {
            Type::Named(meaning, bits) => {
                let values = values(metadata, meaning, bits);
                enumeration(text, &enumeration_name(meaning, bits), bits, values);
            }
            Type::Bool => {
                enumeration(text, "boolean", 8, vec![(0, "false".into()), (1, "true".into())]);
            }
            _ => {}
        }
    }
}

fn enumeration(text: &mut String, name: &str, bits: u8, values: Vec<(u64, String)>) {
    let mut names = Distinct::default();
    writeln!(text, "enum {name} : uint{bits}_t {{").expect("text grows");
    for (value, label) in values {
        writeln!(text, "    {} = {value},", literal(&names.name(label))).expect("text grows");
    }
    text.push_str("};\n\n");
}

/// Every value with its name, and one that says "none" so that no list is empty.
fn values(metadata: &Metadata, meaning: Meaning, bits: u8) -> Vec<(u64, String)> {
    let numbered = |names: Vec<String>| (0..).zip(names).collect::<Vec<_>>();
    let with_none = |names| [numbered(names), vec![(u32::MAX.into(), "none".into())]].concat();
    let of_node = |node: usize| metadata.nodes.get(node).map_or("", |node| &node.name);
    match meaning {
        Meaning::Code(codes) => {
            codes.entries().iter().map(|(value, name)| (u64::from(*value), (*name).to_owned())).collect()
        }
        Meaning::Node => {
            let mut values = numbered(metadata.nodes.iter().map(|node| node.name.clone()).collect());
            values.push((Record::NO_LANE.into(), "none".into()));
            values
        }
        Meaning::Lane => {
            let label = |lane: &talea_record::LaneEntry| match metadata.nodes.len() {
                0 | 1 => lane.label.clone(),
                _ => format!("{}: {}", of_node(lane.node), lane.label),
            };
            let mut values = numbered(metadata.lanes.iter().map(label).collect());
            values.push((Record::NO_LANE.into(), "none".into()));
            values
        }
        Meaning::Operation => {
            let names = metadata.operations.iter().map(|operation| operation.name.clone()).collect();
            let mut values = numbered(names);
            // The operation of a job that is all ones.
            let unknown = OperationId::LIMIT - 1;
            if values.len() <= unknown {
                values.push((unknown as u64, "unknown".into()));
            }
            values
        }
        Meaning::Edge => {
            let mut values = numbered(metadata.edges.iter().map(EdgeEntry::name).collect());
            let nobody = if bits == 16 { u64::from(u16::MAX) } else { u64::from(Record::NO_EDGE) };
            values.push((nobody, "none".into()));
            values
        }
        Meaning::Output => with_none(metadata.outputs.iter().map(|output| output.name.clone()).collect()),
        Meaning::Input => with_none(metadata.inputs.iter().map(|input| input.name.clone()).collect()),
        Meaning::Publication => {
            with_none(metadata.publications.iter().map(|publication| publication.name.clone()).collect())
        }
        Meaning::Number
        | Meaning::Deadline
        | Meaning::Job
        | Meaning::JobOrNone
        | Meaning::Flag
        | Meaning::Thread => {
            unreachable!("a number without names has no enumeration")
        }
    }
}

fn enumeration_name(meaning: Meaning, bits: u8) -> String {
    let name = match meaning {
        Meaning::Node => "node",
        Meaning::Lane => "lane",
        Meaning::Operation => "operation",
        Meaning::Edge => "edge",
        Meaning::Output => "output",
        Meaning::Input => "input",
        Meaning::Publication => "publication",
        Meaning::Code(codes) => codes.name(),
        Meaning::Number
        | Meaning::Deadline
        | Meaning::Job
        | Meaning::JobOrNone
        | Meaning::Flag
        | Meaning::Thread => {
            unreachable!("a number without names has no enumeration")
        }
    };
    format!("{name}_{bits}")
}

fn stream(class: StreamClass) -> String {
    let cpu = match class {
        StreamClass::Processor => "        uint32_t cpu_id;\n",
        StreamClass::Elsewhere => "",
    };
    format!(
        "stream {{
    id = {};
    packet.context := struct {{
        timestamp_t timestamp_begin;
        timestamp_t timestamp_end;
        uint64_t content_size;
        uint64_t packet_size;
        uint64_t packet_seq_num;
        uint64_t events_discarded;
{cpu}    }};
    event.header := struct {{
        uint16_t id;
        timestamp_t timestamp;
    }};
}};\n\n",
        class as u32
    )
}

fn event(text: &mut String, layout: &Layout, class: StreamClass) {
    let (about, name) = (comment(&layout.about), literal(&layout.name));
    writeln!(text, "{about}\nevent {{\n    name = {name};\n    id = {};", layout.event.0)
        .expect("text grows");
    writeln!(text, "    stream_id = {};\n    fields := struct {{", class as u32).expect("text grows");
    for member in &layout.members {
        let kind = match member.kind {
            Type::Unsigned(bits) => format!("uint{bits}_t"),
            Type::Signed(bits) => format!("int{bits}_t"),
            Type::Float(bits) => format!("float{bits}_t"),
            Type::Bool => "enum boolean".into(),
            Type::Text => "string".into(),
            Type::Named(meaning, bits) => format!("enum {}", enumeration_name(meaning, bits)),
        };
        writeln!(text, "        {kind} {};", member.identifier).expect("text grows");
    }
    text.push_str("    };\n};\n\n");
}
