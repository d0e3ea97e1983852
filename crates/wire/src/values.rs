//! Properties and values of structured events.

use crate::problem::{Problem, WireError};
use crate::read::Reader;
use crate::write::Writer;
use std::sync::Arc;
use talea_etcl::{Node, OwnedEnum, OwnedEnumType, OwnedStruct, OwnedUnion, OwnedValue, Properties};

const FALSE: u8 = 0;
const TRUE: u8 = 1;
const INTEGER: u8 = 2;
const UNSIGNED: u8 = 3;
const FLOAT: u8 = 4;
const TEXT: u8 = 5;
const SEQUENCE: u8 = 6;
const LIST: u8 = 7;
const STRUCT: u8 = 8;
const ENUM: u8 = 9;
const UNION: u8 = 10;

/// How many bytes these properties have.
pub fn properties_len(properties: &Properties) -> usize {
    Writer::count(|writer| write_properties(writer, properties))
}

/// How many bytes this value has.
pub fn value_len(value: &OwnedValue) -> usize {
    Writer::count(|writer| write_value(writer, value))
}

pub(crate) fn write_properties(writer: &mut Writer<'_>, properties: &Properties) {
    writer.number(properties.len() as u64);
    for (name, value) in properties.iter() {
        writer.text(name);
        write_value(writer, value);
    }
}

fn write_values(writer: &mut Writer<'_>, values: &[OwnedValue]) {
    writer.number(values.len() as u64);
    values.iter().for_each(|value| write_value(writer, value));
}

pub(crate) fn write_value(writer: &mut Writer<'_>, value: &OwnedValue) {
    match value {
        OwnedValue::Boolean(value) => writer.byte(if *value { TRUE } else { FALSE }),
        OwnedValue::Integer(value) => {
            writer.byte(INTEGER);
            writer.signed(*value);
        }
        OwnedValue::Unsigned(value) => {
            writer.byte(UNSIGNED);
            writer.number(*value);
        }
        OwnedValue::Float(value) => {
            writer.byte(FLOAT);
            writer.bytes(&value.to_bits().to_le_bytes());
        }
        OwnedValue::Text(text) => {
            writer.byte(TEXT);
            writer.text(text);
        }
        OwnedValue::Sequence(elements) => {
            writer.byte(SEQUENCE);
            write_values(writer, elements);
        }
        OwnedValue::List(properties) => {
            writer.byte(LIST);
            write_properties(writer, properties);
        }
        OwnedValue::Struct(value) => {
            writer.byte(STRUCT);
            writer.optional(value.type_name.as_deref());
            writer.optional(value.repository_id.as_deref());
            write_properties(writer, &value.members);
        }
        OwnedValue::Enum(label) => {
            writer.byte(ENUM);
            writer.text(label.type_name().unwrap_or_default());
            writer.text(label.repository_id().unwrap_or_default());
            writer.number(label.len() as u64);
            (0..label.len()).for_each(|place| writer.text(label.name_at(place).unwrap_or_default()));
            writer.number(u64::from(label.ordinal()));
        }
        OwnedValue::Union(union) => {
            writer.byte(UNION);
            writer.optional(union.type_name.as_deref());
            writer.optional(union.repository_id.as_deref());
            write_value(writer, &union.discriminator);
            write_values(writer, &union.selectors);
            writer.text(&union.member);
            writer.byte(u8::from(union.is_default_arm));
            write_value(writer, &union.value);
        }
    }
}

/// Properties within as many values as `depth` says.
pub(crate) fn read_properties(reader: &mut Reader<'_>, depth: usize) -> Result<Properties, WireError> {
    let count = reader.count(reader.limits.properties, "the number of properties")?;
    let began = reader.at();
    // Each has three bytes at least, or two if its name is empty.
    let mut pairs = Vec::with_capacity(count.min(reader.left() / 2));
    for _ in 0..count {
        let name = reader.name("the name of a property")?.to_owned();
        pairs.push((name, read_value(reader, depth)?));
    }
    Properties::new(pairs).map_err(|double| WireError { at: began, problem: Problem::Duplicate(double.0) })
}

fn read_values(reader: &mut Reader<'_>, depth: usize) -> Result<Vec<OwnedValue>, WireError> {
    let count = reader.count(reader.limits.bytes, "the number of elements")?;
    let mut values = Vec::with_capacity(count.min(reader.left()).min(64));
    for _ in 0..count {
        values.push(read_value(reader, depth)?);
    }
    Ok(values)
}

/// A value within as many others.
pub(crate) fn read_value(reader: &mut Reader<'_>, depth: usize) -> Result<OwnedValue, WireError> {
    let most = reader.limits.depth;
    if depth >= most {
        let (what, has) = ("values within values", depth + 1);
        return Err(reader.problem(Problem::Limit { what, has, most }));
    }
    let began = reader.at();
    let inner = depth + 1;
    Ok(match reader.byte("a value")? {
        FALSE => OwnedValue::Boolean(false),
        TRUE => OwnedValue::Boolean(true),
        INTEGER => OwnedValue::Integer(reader.signed("an integer")?),
        UNSIGNED => OwnedValue::Unsigned(reader.number("an unsigned integer")?),
        FLOAT => {
            OwnedValue::Float(f64::from_bits(u64::from_le_bytes(reader.array("a floating-point number")?)))
        }
        TEXT => OwnedValue::Text(reader.text("a text")?.to_owned()),
        SEQUENCE => OwnedValue::Sequence(read_values(reader, inner)?),
        LIST => OwnedValue::List(read_properties(reader, inner)?),
        STRUCT => {
            let [type_name, repository_id] = read_type(reader)?;
            let members = read_properties(reader, inner)?;
            OwnedValue::Struct(Box::new(OwnedStruct { type_name, repository_id, members }))
        }
        ENUM => OwnedValue::Enum(read_label(reader)?),
        UNION => {
            let [type_name, repository_id] = read_type(reader)?;
            let discriminator = read_value(reader, inner)?;
            let selectors = read_values(reader, inner)?;
            let member = reader.name("the name of an arm")?.to_owned();
            let is_default_arm = reader.number_in(0..=1, "whether an arm is the default one")? == 1;
            let value = read_value(reader, inner)?;
            OwnedValue::Union(Box::new(OwnedUnion {
                type_name,
                repository_id,
                discriminator,
                selectors,
                member,
                is_default_arm,
                value,
            }))
        }
        kind => return Err(WireError { at: began, problem: Problem::Kind { what: "a value", kind } }),
    })
}

fn read_type(reader: &mut Reader<'_>) -> Result<[Option<String>; 2], WireError> {
    let name = reader.optional_name("the name of a type")?.map(str::to_owned);
    Ok([name, reader.optional_name("the identifier of a type")?.map(str::to_owned)])
}

fn read_label(reader: &mut Reader<'_>) -> Result<OwnedEnum, WireError> {
    let name = reader.name("the name of a type")?.to_owned();
    let repository_id = reader.name("the identifier of a type")?.to_owned();
    let began = reader.at();
    let count = reader.count(reader.limits.properties, "the number of labels")?;
    let mut labels: Vec<String> = Vec::with_capacity(count.min(reader.left()));
    for _ in 0..count {
        let label = reader.name("a label")?;
        if labels.iter().any(|known| known == label) {
            return Err(WireError { at: began, problem: Problem::Duplicate(label.to_owned()) });
        }
        labels.push(label.to_owned());
    }
    let at = reader.at();
    let place = reader.count(usize::MAX, "a label's number")?;
    let of = Arc::new(OwnedEnumType { name, repository_id, labels });
    let label = of.labels.get(place).and_then(|label| OwnedEnum::new(Arc::clone(&of), label));
    label.ok_or(WireError { at, problem: Problem::Range("a label's number") })
}
