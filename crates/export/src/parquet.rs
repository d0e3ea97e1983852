//! Export as Parquet: a row per record, a typed column per field.
//!
//! The columns of the [CSV](super::csv) export up to `word1`, `pid` and `tid` come first, with the same meaning: `time_ns`, `event`,
//! `arg`, `source`, `causal`, `word0` and `word1` in every row, the others where the event has them. Behind them is a
//! column `field_NAME` for every name that a field of any declared event has, filled in the rows of the events that
//! have it. (Lanes, nodes, and the job that an event is about stand in the columns before.)
//!
//! | Field | Column |
//! |---|---|
//! | number without sign | UINT64 |
//! | number with sign, duration, instant (nanoseconds, from the start) | INT64 |
//! | number with a fraction | DOUBLE |
//! | true or false | BOOLEAN |
//! | text, another job (`operation#instance`), names of operations and codes | UTF-8 |
//!
//! So `SELECT field_cost FROM 'trace.parquet' WHERE event = 'cost'` is all there is to it, and columns that nobody
//! asks for cost next to nothing. Where two events use a name for different types, each type has its column: the
//! first declared keeps the name, the others have the type behind it (`field_value_double`).
//!
//! Rows come in groups of [`GROUP_ROWS`], compressed with Snappy. The file's key-value metadata say which system, strategy
//! and clock it was, and `talea.start_ns`, from which times count.

mod column;

use super::decode::{Decoder, ShownKind};
use super::table::EventTable;
use ::parquet::basic::Compression;
use ::parquet::errors::ParquetError as LibraryError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::writer::SerializedFileWriter;
use ::parquet::schema::types::Type as SchemaType;
use column::{Cell, Column, Kind};
use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use talea_record::{Definition, Metadata, NameSpace, Origin, Record, Sink};
use thiserror::Error;

/// Rows of a group, which is what memory holds at one time.
pub const GROUP_ROWS: usize = 122_880;

/// Writing the file failed.
#[derive(Debug, Error)]
#[error("cannot write Parquet: {0}")]
pub struct ParquetError(#[from] LibraryError);

/// Writes a Parquet file from records.
pub struct ParquetExport<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    decoder: Decoder,
    columns: Vec<Column>,
    /// By event, the columns of its fields in their order.
    columns_of: EventTable<Vec<usize>>,
    rows: usize,
    /// The first failure, after which nothing more is written.
    failure: Option<LibraryError>,
}

/// The columns that every trace has, in the order in which [`ParquetExport::push`] fills them.
const FIXED: [(&str, Kind); 18] = [
    ("time_ns", Kind::Required(ShownKind::Signed)),
    ("event", Kind::Required(ShownKind::Text)),
    ("family", Kind::Optional(ShownKind::Text)),
    ("node", Kind::Optional(ShownKind::Text)),
    ("cpu", Kind::Optional(ShownKind::Unsigned)),
    ("lane", Kind::Optional(ShownKind::Text)),
    ("task", Kind::Optional(ShownKind::Text)),
    ("subtask", Kind::Optional(ShownKind::Text)),
    ("job", Kind::Optional(ShownKind::Unsigned)),
    ("release_ns", Kind::Optional(ShownKind::Signed)),
    ("deadline_ns", Kind::Optional(ShownKind::Signed)),
    ("arg", Kind::Required(ShownKind::Unsigned)),
    ("source", Kind::Required(ShownKind::Unsigned)),
    ("causal", Kind::Required(ShownKind::Unsigned)),
    ("word0", Kind::Required(ShownKind::Unsigned)),
    ("word1", Kind::Required(ShownKind::Unsigned)),
    ("pid", Kind::Optional(ShownKind::Unsigned)),
    ("tid", Kind::Optional(ShownKind::Unsigned)),
];

impl<W: Write + Send> ParquetExport<W> {
    /// Begins a file in `output`.
    ///
    /// # Errors
    /// If its beginning cannot be written.
    pub fn new(metadata: &Metadata, names: &NameSpace, output: W) -> Result<Self, ParquetError> {
        let decoder = Decoder::new(metadata, names);
        let mut columns: Vec<Column> = FIXED.iter().map(|(name, kind)| Column::new(name, *kind)).collect();
        let columns_of = field_columns(&decoder, &mut columns);
        let fields = columns.iter().map(|column| column.schema().map(Arc::new)).collect::<Result<_, _>>()?;
        let schema = SchemaType::group_type_builder("record").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("talea {}", env!("CARGO_PKG_VERSION")))
            .set_key_value_metadata(Some(key_values(metadata)))
            .build();
        let writer = SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?;
        Ok(ParquetExport { writer, decoder, columns, columns_of, rows: 0, failure: None })
    }

    /// Writes what is left and returns the output.
    ///
    /// # Errors
    /// The first failure to write.
    pub fn finish(mut self) -> Result<W, ParquetError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure.into());
        }
        self.end_group()?;
        Ok(self.writer.into_inner()?)
    }

    fn push(&mut self, record: &Record) {
        let long = self.decoder.long(record);
        let row = self.decoder.row(record);
        let fixed = [
            Cell::Signed(row.time_ns),
            Cell::Text(&row.event),
            row.family.into(),
            row.node.into(),
            row.cpu.map(u64::from).into(),
            row.lane.into(),
            row.task.into(),
            row.subtask.into(),
            row.job.into(),
            row.release_ns.into(),
            row.deadline_ns.into(),
            Cell::Unsigned(record.arg.into()),
            Cell::Unsigned(record.source.into()),
            Cell::Unsigned(record.causal),
            Cell::Unsigned(record.words[0]),
            Cell::Unsigned(record.words[1]),
            row.pid.map(u64::from).into(),
            row.tid.map(u64::from).into(),
        ];
        for (column, cell) in self.columns.iter_mut().zip(fixed) {
            column.push(self.rows, cell);
        }
        let declared = self.decoder.event(record.event).zip(self.columns_of.get(record.event));
        if let Some((declared, places)) = declared {
            let values = declared.values_beside_row(self.decoder.metadata(), record, long.as_deref());
            for (value, place) in values.zip(places) {
                self.columns[*place].push(self.rows, (&value).into());
            }
        }
        self.rows += 1;
    }

    /// Writes the rows so far as a group.
    fn end_group(&mut self) -> Result<(), LibraryError> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for column in &mut self.columns {
            let mut writer = group.next_column()?.expect("the schema has the same columns");
            column.write(self.rows, &mut writer)?;
            writer.close()?;
        }
        group.close()?;
        self.rows = 0;
        Ok(())
    }
}

impl<W: Write + Send> Sink for ParquetExport<W> {
    fn record(&mut self, record: Record) {
        if self.failure.is_some() {
            return;
        }
        if record.is_part() {
            return self.decoder.learn(&record);
        }
        self.push(&record);
        if self.rows == GROUP_ROWS {
            self.failure = self.end_group().err();
        }
    }

    fn define(&mut self, definition: &Definition) {
        self.decoder.define(definition);
    }
}

/// Appends a column for each name and type of the declared fields, and says which columns an event's fields are in.
fn field_columns(decoder: &Decoder, columns: &mut Vec<Column>) -> EventTable<Vec<usize>> {
    let mut places: BTreeMap<(String, ShownKind), usize> = BTreeMap::new();
    let mut place = |name: &str, kind: ShownKind| {
        *places.entry((name.to_owned(), kind)).or_insert_with(|| {
            let taken = |name: &str| columns.iter().any(|column| column.name() == name);
            let plain = format!("field_{name}");
            let mut free = plain.clone();
            while taken(&free) {
                free = format!("{free}_{}", column::suffix(kind));
            }
            columns.push(Column::new(&free, Kind::Optional(kind)));
            columns.len() - 1
        })
    };
    EventTable::new(decoder.declared().iter().map(|declared| {
        (declared.event, declared.kinds_beside_row().map(|(name, kind)| place(name, kind)).collect())
    }))
}

fn key_values(metadata: &Metadata) -> Vec<KeyValue> {
    let (origin, clock) = match metadata.origin {
        Origin::Simulation { seed } => (format!("simulation with seed {seed}"), "virtual"),
        Origin::Threads { realtime: true } => ("threads".into(), "CLOCK_MONOTONIC"),
        Origin::Threads { realtime: false } => {
            ("threads without real-time priority".into(), "CLOCK_MONOTONIC")
        }
    };
    [
        ("talea.system", metadata.system.clone()),
        ("talea.strategy", metadata.strategy.clone()),
        ("talea.origin", origin),
        ("talea.clock", clock.into()),
        ("talea.start_ns", metadata.start.as_nanos().to_string()),
    ]
    .map(|(key, value)| KeyValue::new(key.to_owned(), value))
    .into()
}
