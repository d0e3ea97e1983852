//! Records as CSV, as Parquet and as lines, against values worked out by hand and against each other.

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field as Cell, Row};
use std::collections::BTreeMap;
use talea_export::{Listing, ParquetExport, export_csv};
use talea_record::declaration::*;
use talea_record::namespace::*;
use talea_record::*;
use talea_samples::*;

const START: i64 = 1_000_000_000;

fn csv(names: &NameSpace, records: &[Record]) -> Vec<BTreeMap<String, String>> {
    let mut bytes = Vec::new();
    export_csv(&metadata(), names, records.iter().copied(), &mut bytes).unwrap();
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    reader.deserialize().map(|row| row.unwrap()).collect()
}

fn parquet_bytes(names: &NameSpace, records: &[Record]) -> Vec<u8> {
    let mut export = ParquetExport::new(&metadata(), names, Vec::new()).unwrap();
    records.iter().for_each(|record| export.record(*record));
    export.finish().unwrap()
}

fn parquet_rows(names: &NameSpace, records: &[Record]) -> Vec<Row> {
    let reader = SerializedFileReader::new(bytes::Bytes::from(parquet_bytes(names, records))).unwrap();
    reader.get_row_iter(None).unwrap().map(Result::unwrap).collect()
}

/// The columns of a row that are not null.
fn filled(row: &Row) -> BTreeMap<String, Cell> {
    let cells = row.get_column_iter().filter(|(_, cell)| **cell != Cell::Null);
    cells.map(|(name, cell)| (name.clone(), cell.clone())).collect()
}

fn sample() -> Vec<Record> {
    let strange = |number: u16, words| Record {
        event: Event(0x7700 | number),
        words,
        causal: 5,
        arg: 1 << 8,
        source: 3,
        cpu: 1,
        time: at(START + 70),
    };
    vec![
        run_event(Event::RUN_START, START),
        job(Event::COMPLETE, START + 30, 2, 7, [START + 10, START + 25], 0),
        job(Event::SKIP, START + 31, 1, 8, [START, START + 1], SkipReason::Overrun as u16),
        Record { words: [u64::MAX, 0], ..job(Event::PREEMPT, START + 32, 1, 8, [0, 0], 0) },
        Record { words: [1 << 44 | 3, 0], ..job(Event::PREEMPT, START + 32, 1, 8, [0, 0], 0) },
        Record {
            event: Event::COST,
            words: [1234, 2],
            arg: CostKind::Queue as u16,
            source: Record::NO_LANE,
            ..numbered(START as u64 + 40)
        },
        Record {
            event: Event::TIMER,
            words: [START as u64 + 50, START as u64 - 9],
            source: 0,
            ..numbered(START as u64 + 51)
        },
        strange(0, [(-0.5f64).to_bits(), u64::from(f32::INFINITY.to_bits())]),
        strange(1, [0xffff_fff6_fffe_05ff, 1 | 2 << 16 | 3 << 32]),
        strange(4, Text::new("a;b=\\c\nü\"").words()),
        Record { event: Event(0x4444), ..strange(0, [9, 8]) },
        strange(6, [0x0706_0504_0302_0100, u64::MAX]),
        strange(7, [1, 0xff << 56]),
    ]
}

#[test]
fn fields_stand_in_one_column_of_the_csv() {
    let rows = csv(&strange_names(), &sample());
    let get = |row: usize, columns: &[&str]| -> Vec<&str> {
        columns.iter().map(|column| rows[row][*column].as_str()).collect()
    };
    let who = ["time_ns", "event", "family", "node", "cpu", "lane", "task", "subtask", "job"];
    assert_eq!(get(0, &who), ["0", "run-start", "run", "mission", "", "", "", "", ""]);
    assert_eq!(get(0, &["fields"]), ["planned_end=;node=mission"], "an end of 0 is none");
    assert_eq!(get(1, &who), ["30", "complete", "job", "mission", "0", "20ms", "route", "draw", "7"]);
    assert_eq!(get(1, &["release_ns", "deadline_ns"]), ["10", "25"]);
    assert_eq!(get(1, &["fields"]), ["job=route.draw#7;lane=20ms;nominal=10;deadline=25"]);
    assert_eq!(get(2, &["arg", "fields"])[1].rsplit_once(';').unwrap().1, "reason=overrun");
    assert_eq!(get(3, &["fields"]), ["job=route.plan#8;lane=20ms;by="]);
    assert_eq!(get(4, &["fields"]), ["job=route.plan#8;lane=20ms;by=route.plan#3"]);
    assert_eq!(get(5, &["lane", "fields"]), ["", "cost=1234;count=2;node=mission;lane=;kind=queue"]);
    assert_eq!(get(6, &["node", "fields"]), ["mission", "due=50;woken=-9;node=mission"]);
    assert_eq!(get(7, &["event", "fields"]), ["floats \"quoted\\ ü", "f64=-0.5;f32=inf"]);
    assert_eq!(get(8, &["fields"]), ["i8=-1;u8=5;i16=-2;i32=-10;bool=true;u16=2;u32=3;enum=true"]);
    assert_eq!(get(9, &["fields"]), ["text=a\\;b\\=\\\\c\\nü\";event=5"]);
    let raw = ["event", "family", "arg", "source", "causal", "word0", "word1", "fields"];
    assert_eq!(get(10, &raw), ["0x4444", "", "256", "3", "5", "9", "8", ""]);
    assert_eq!(get(11, &["fields"]), ["eight=ffffffffffffffff;also=0001020304050607"]);
    assert_eq!(get(12, &["fields"]), ["sixteen=010000000000000000000000000000ff"]);
}

#[test]
fn fields_have_typed_columns_in_parquet() {
    let rows = parquet_rows(&strange_names(), &sample());
    let cell = |row: usize, name: &str| filled(&rows[row]).get(name).cloned().unwrap_or(Cell::Null);
    let text = |text: &str| Cell::Str(text.into());
    assert_eq!(cell(1, "time_ns"), Cell::Long(30));
    assert_eq!((cell(1, "task"), cell(1, "subtask")), (text("route"), text("draw")));
    assert_eq!((cell(1, "cpu"), cell(1, "job")), (Cell::ULong(0), Cell::ULong(7)));
    assert_eq!((cell(1, "release_ns"), cell(1, "deadline_ns")), (Cell::Long(10), Cell::Long(25)));
    assert_eq!(cell(2, "field_reason"), text("overrun"));
    assert_eq!((cell(3, "field_by"), cell(4, "field_by")), (Cell::Null, text("route.plan#3")));
    assert_eq!((cell(5, "field_cost"), cell(5, "field_kind")), (Cell::Long(1234), text("queue")));
    assert_eq!((cell(6, "field_due"), cell(6, "field_woken")), (Cell::Long(50), Cell::Long(-9)));
    assert_eq!(
        (cell(7, "field_f64"), cell(7, "field_f32")),
        (Cell::Double(-0.5), Cell::Double(f64::INFINITY))
    );
    assert_eq!((cell(8, "field_i8"), cell(8, "field_enum")), (Cell::Long(-1), Cell::Bool(true)));
    assert_eq!((cell(9, "field_text"), cell(9, "field_event")), (text("a;b=\\c\nü\""), Cell::ULong(5)));
    assert_eq!((cell(10, "event"), cell(10, "family")), (text("0x4444"), Cell::Null));
    assert_eq!(cell(11, "field_also"), text("0001020304050607"));
    assert_eq!(cell(12, "field_sixteen"), text("010000000000000000000000000000ff"));
}

#[test]
fn a_name_with_two_types_has_two_columns() {
    let mut names = NameSpace::default();
    let event = |number, kind| EventEntry {
        number,
        name: format!("e{number}").into(),
        about: "".into(),
        fields: vec![Field::new("cost", kind, Part::First)].into(),
    };
    let events = vec![event(0, FieldKind::F64), event(1, FieldKind::Duration), event(2, FieldKind::F32)];
    names.add(Family { number: 0x40, name: "f".into(), about: "".into(), events: events.into() }).unwrap();
    let record =
        |number: u16, word| Record { event: Event(0x4000 | number), words: [word, 0], ..numbered(1) };
    let rows = parquet_rows(
        &names,
        &[record(0, 2.5f64.to_bits()), record(1, 7), record(2, 1.5f32.to_bits().into())],
    );
    let costs: Vec<_> = rows
        .iter()
        .map(|row| filled(row).into_iter().filter(|(name, _)| name.starts_with("field_")).collect::<Vec<_>>())
        .collect();
    assert_eq!(costs[0], [("field_cost_double".into(), Cell::Double(2.5))]);
    assert_eq!(costs[1], [("field_cost".into(), Cell::Long(7))]);
    assert_eq!(costs[2], [("field_cost_double".into(), Cell::Double(1.5))]);
}

/// What Parquet and CSV say of the same records is the same, cell by cell, across several groups of rows.
#[test]
fn parquet_and_csv_agree_across_groups() {
    let names = strange_names();
    let group = talea_export::parquet::GROUP_ROWS;
    let sample = sample();
    let records: Vec<Record> = sample.iter().cycle().take(2 * group + 5).copied().collect();
    let bytes = parquet_bytes(&names, &records);
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
    let groups: Vec<i64> = reader.metadata().row_groups().iter().map(|group| group.num_rows()).collect();
    assert_eq!(groups, [group as i64, group as i64, 5]);
    let keys = reader.metadata().file_metadata().key_value_metadata().unwrap();
    let start = keys.iter().find(|pair| pair.key == "talea.start_ns").and_then(|pair| pair.value.clone());
    assert_eq!(start, Some(START.to_string()));
    let expected = csv(&names, &sample);
    for number in 0..groups.len() {
        let rows = reader.get_row_group(number).unwrap();
        for (index, row) in rows.get_row_iter(None).unwrap().take(50).enumerate() {
            let csv = &expected[(number * group + index) % expected.len()];
            agree(&filled(&row.unwrap()), csv);
        }
    }
}

/// A row's cells are what the CSV has in its columns, and it has the fields that the CSV lists.
fn agree(row: &BTreeMap<String, Cell>, csv: &BTreeMap<String, String>) {
    for (column, value) in csv.iter().filter(|(column, _)| *column != "fields") {
        let cell = row.get(column).map_or(String::new(), plain);
        assert_eq!(&cell, value, "column {column}");
    }
    let listed = csv["fields"].replace("\\;", "").replace("\\=", "");
    // Lanes, nodes and the job that the event is about have columns of their own.
    let about_job = csv["family"] == "job";
    let has_column = |pair: &&str| {
        let (name, value) = pair.split_once('=').unwrap_or_default();
        let elsewhere = matches!(name, "lane" | "node") || (about_job && name == "job");
        !value.is_empty() && !elsewhere
    };
    let fields = row.keys().filter(|name| name.starts_with("field_")).count();
    assert_eq!(fields, listed.split(';').filter(has_column).count(), "{row:?}");
}

fn plain(cell: &Cell) -> String {
    match cell {
        Cell::Str(text) => text.clone(),
        Cell::ULong(number) => number.to_string(),
        Cell::Long(number) => number.to_string(),
        other => panic!("no other type in the common columns: {other:?}"),
    }
}

#[test]
fn lines_show_typed_fields() {
    let (metadata, names) = (metadata(), strange_names());
    let listing = Listing::new(&metadata, &names);
    let sample = sample();
    let line = |index: usize| listing.line(&sample[index]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(line(5), "0.000000040 mission cpu0 - cost cost=1.23us count=2 kind=queue");
    assert_eq!(line(6), "0.000000051 mission cpu0 - timer due=0.000000050s woken=-0.000000009s");
    assert_eq!(line(7), "0.000000070 - cpu1 - größe {strange}:floats \"quoted\\ ü f64=-0.5 f32=inf");
    assert_eq!(line(9), r#"0.000000070 - cpu1 - größe {strange}:text text="a;b=\\c\nü\"" event=5"#);
    assert_eq!(line(10), "0.000000070 - cpu1 - event 0x4444 causal 0x5, words 0x9 0x8, source 3, arg 256");
    let json = |index: usize| listing.json(&sample[index]);
    assert_eq!(
        json(1),
        "{\"time_ns\":30,\"event\":\"complete\",\"family\":\"job\",\"node\":\"mission\",\"cpu\":0,\"lane\":\"20ms\",\
         \"task\":\"route\",\"subtask\":\"draw\",\"job\":7,\"release_ns\":10,\"deadline_ns\":25,\
         \"fields\":{\"job\":\"route.draw#7\",\"lane\":\"20ms\",\"nominal\":10,\"deadline\":25}}"
    );
    assert_eq!(
        json(7),
        "{\"time_ns\":70,\"event\":\"floats \\\"quoted\\\\ ü\",\"family\":\"größe {strange}\",\"cpu\":1,\"causal\":5,\
         \"fields\":{\"f64\":-0.5,\"f32\":\"inf\"}}"
    );
    assert_eq!(
        json(10),
        "{\"time_ns\":70,\"event\":\"0x4444\",\"cpu\":1,\"causal\":5,\
         \"fields\":{\"word0\":9,\"word1\":8,\"source\":3,\"arg\":256}}"
    );
}
