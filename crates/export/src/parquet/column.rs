//! One column of a group of rows on its way to the file.

use super::LibraryError;
use crate::decode::{Shown, ShownKind};
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::column::writer::ColumnWriter;
use ::parquet::data_type::ByteArray;
use ::parquet::file::writer::SerializedColumnWriter;
use ::parquet::schema::types::Type as SchemaType;
use std::collections::HashMap;

/// Whether every row has a value, and the values' type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Every row has one.
    Required(ShownKind),
    /// Rows without a value are null.
    Optional(ShownKind),
}

/// A value in a row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell<'a> {
    Null,
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
    Text(&'a str),
}

/// A column.
#[derive(Debug)]
pub(super) struct Column {
    name: String,
    kind: Kind,
    values: Values,
    /// By row, 1 if it has a value; shorter than the rows where the last ones have none. Not kept for required columns.
    levels: Vec<i16>,
}

#[derive(Debug)]
enum Values {
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Bools(Vec<bool>),
    Texts(Texts),
}

/// Texts, each of which is kept once however many rows of the group have it.
#[derive(Debug, Default)]
struct Texts {
    rows: Vec<ByteArray>,
    known: HashMap<Box<str>, ByteArray>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        let shared = match self.known.get(text) {
            Some(shared) => shared.clone(),
            None => {
                let shared = ByteArray::from(text);
                self.known.insert(text.into(), shared.clone());
                shared
            }
        };
        self.rows.push(shared);
    }

    fn clear(&mut self) {
        self.rows.clear();
        self.known.clear();
    }
}

/// What tells columns of one name and different types apart.
pub(super) fn suffix(kind: ShownKind) -> &'static str {
    match kind {
        ShownKind::Unsigned => "uint64",
        ShownKind::Signed => "int64",
        ShownKind::Float => "double",
        ShownKind::Bool => "boolean",
        ShownKind::Text => "text",
    }
}

impl Column {
    /// An empty column.
    pub fn new(name: &str, kind: Kind) -> Self {
        let values = match kind.shown() {
            ShownKind::Unsigned | ShownKind::Signed => Values::Integers(Vec::new()),
            ShownKind::Float => Values::Floats(Vec::new()),
            ShownKind::Bool => Values::Bools(Vec::new()),
            ShownKind::Text => Values::Texts(Texts::default()),
        };
        Column { name: name.to_owned(), kind, values, levels: Vec::new() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its entry in the schema.
    pub fn schema(&self) -> Result<SchemaType, LibraryError> {
        let (physical, logical) = match self.kind.shown() {
            ShownKind::Unsigned => (Physical::INT64, Some(LogicalType::integer(64, false))),
            ShownKind::Signed => (Physical::INT64, Some(LogicalType::integer(64, true))),
            ShownKind::Float => (Physical::DOUBLE, None),
            ShownKind::Bool => (Physical::BOOLEAN, None),
            ShownKind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = match self.kind {
            Kind::Required(_) => Repetition::REQUIRED,
            Kind::Optional(_) => Repetition::OPTIONAL,
        };
        SchemaType::primitive_type_builder(&self.name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition)
            .build()
    }

    /// Takes the value of row `row`, which is later than those before.
    pub fn push(&mut self, row: usize, cell: Cell<'_>) {
        match (&mut self.values, cell) {
            (_, Cell::Null) => return,
            (Values::Integers(values), Cell::Unsigned(value)) => values.push(value as i64),
            (Values::Integers(values), Cell::Signed(value)) => values.push(value),
            (Values::Floats(values), Cell::Float(value)) => values.push(value),
            (Values::Bools(values), Cell::Bool(value)) => values.push(value),
            (Values::Texts(texts), Cell::Text(value)) => texts.push(value),
            (_, cell) => unreachable!("column {} has another type than {cell:?}", self.name),
        }
        if let Kind::Optional(_) = self.kind {
            self.levels.resize(row, 0);
            self.levels.push(1);
        }
    }

    /// Writes its `rows` values and forgets them.
    pub fn write(
        &mut self,
        rows: usize,
        writer: &mut SerializedColumnWriter<'_>,
    ) -> Result<(), LibraryError> {
        let levels = match self.kind {
            Kind::Required(_) => None,
            Kind::Optional(_) => {
                self.levels.resize(rows, 0);
                Some(&self.levels[..])
            }
        };
        match (&mut self.values, writer.untyped()) {
            (Values::Integers(values), ColumnWriter::Int64ColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            (Values::Floats(values), ColumnWriter::DoubleColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            (Values::Bools(values), ColumnWriter::BoolColumnWriter(writer)) => {
                writer.write_batch(values, levels, None)?;
                values.clear();
            }
            (Values::Texts(texts), ColumnWriter::ByteArrayColumnWriter(writer)) => {
                writer.write_batch(&texts.rows, levels, None)?;
                texts.clear();
            }
            _ => unreachable!("the schema gives column {} another type", self.name),
        }
        self.levels.clear();
        Ok(())
    }
}

impl Kind {
    fn shown(self) -> ShownKind {
        match self {
            Kind::Required(kind) | Kind::Optional(kind) => kind,
        }
    }
}

impl<'a> From<Option<&'a str>> for Cell<'a> {
    fn from(text: Option<&'a str>) -> Self {
        text.map_or(Cell::Null, Cell::Text)
    }
}

impl From<Option<u64>> for Cell<'_> {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Cell::Null, Cell::Unsigned)
    }
}

impl From<Option<i64>> for Cell<'_> {
    fn from(number: Option<i64>) -> Self {
        number.map_or(Cell::Null, Cell::Signed)
    }
}

impl<'a> From<&'a Shown<'_>> for Cell<'a> {
    fn from(value: &'a Shown<'_>) -> Self {
        match value {
            Shown::Absent => Cell::Null,
            Shown::Unsigned(value) => Cell::Unsigned(*value),
            Shown::Signed(value) => Cell::Signed(*value),
            Shown::Float(value) => Cell::Float(*value),
            Shown::Bool(value) => Cell::Bool(*value),
            Shown::Text(text) => Cell::Text(text),
        }
    }
}
