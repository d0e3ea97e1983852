//! Long texts and bytes of programs' events in every format, and what is shown where a part is missing.

use parquet::file::reader::{FileReader, SerializedFileReader};
use talea_export::{CtfExport, CtfSummary, Listing, ParquetExport, PerfettoExport, export_csv};
use talea_record::declaration::*;
use talea_record::event::EventPart;
use talea_record::*;
use talea_samples::*;
use talea_time::Instant;

const START: i64 = RUN_START_NS;
const SAID: Event = Event(0x4700);
const FRAME: Event = Event(0x4701);

fn names() -> NameSpace {
    let entry = |event: Event, name: &'static str, fields: Vec<Field>| EventEntry {
        number: event.0 as u8,
        name: name.into(),
        about: "".into(),
        fields: fields.into(),
    };
    let message = Field::new("message", FieldKind::LongText(60), Part::Arg);
    let data = Field::new("data", FieldKind::LongBytes(60), Part::Arg);
    let line = Field::new("line", FieldKind::U64, Part::Second);
    let events = vec![entry(SAID, "said", vec![message, line]), entry(FRAME, "frame", vec![data])];
    let mut names = NameSpace::default();
    let family = Family { number: 0x47, name: "log".into(), about: "".into(), events: events.into() };
    names.add(family).unwrap();
    names
}

/// The records of an event with these bytes, as a ring has them.
fn event(event: Event, bytes: &[u8], is_cut: bool, after: i64) -> Vec<Record> {
    let time = at(START + after);
    let word = |part: &[u8], place: usize| {
        std::array::from_fn(|byte| part.get(place * 8 + byte).copied().unwrap_or(0))
    };
    let part = |(part, number): (&[u8], u16)| {
        let [first, second, third] = [0, 1, 2].map(|place| word(part, place));
        EventPart { first, second, third, bytes: bytes.len() as u16, number }.at(time, 1)
    };
    let mut records: Vec<Record> = bytes.chunks(24).zip(1..).map(part).collect();
    let arg = bytes.len() as u16 | u16::from(is_cut) << 15;
    let source = Record::NO_WRITER;
    records.push(Record { time, causal: 0, words: [0, 17], event, source, cpu: 1, arg });
    records
}

/// A text of three parts, one that was cut, an empty one, bytes, bytes that were cut, and a text without its second part.
fn records() -> Vec<Record> {
    let mut torn = event(SAID, "a text of which the second of three parts is missing".as_bytes(), false, 60);
    torn.remove(1);
    [
        event(SAID, "/größe/of a topic; with = and \"quotes\" and a\nline".as_bytes(), false, 10),
        event(SAID, "this one is cut".as_bytes(), true, 20),
        event(SAID, b"", false, 30),
        event(FRAME, &[0xab; 26], false, 40),
        event(FRAME, &[1, 2], true, 50),
        torn,
    ]
    .concat()
}

#[test]
fn lines_and_json_show_them() {
    let (metadata, names) = (metadata(), names());
    let listing = Listing::new(&metadata, &names);
    let (mut lines, mut values) = (Vec::new(), Vec::new());
    for record in records() {
        if record.is_part() {
            listing.learn(&record);
            continue;
        }
        let line = listing.line(&record);
        lines.push(line.split_once("  message=").or(line.split_once("  data=")).unwrap().1.to_owned());
        let json: serde_json::Value = serde_json::from_str(&listing.json(&record)).unwrap();
        let fields = &json["fields"];
        values.push(fields.get("message").or(fields.get("data")).unwrap().clone());
    }
    let bytes = "ab".repeat(26);
    assert_eq!(
        lines,
        [
            "\"/größe/of a topic; with = and \\\"quotes\\\" and a\\nline\" line=17",
            "\"this one is cut…\" line=17",
            "\"\" line=17",
            &bytes,
            "0102…",
            "- line=17",
        ]
    );
    let expected = serde_json::json!([
        "/größe/of a topic; with = and \"quotes\" and a\nline",
        "this one is cut…",
        "",
        bytes,
        "0102…",
        null
    ]);
    assert_eq!(serde_json::Value::from(values), expected);
}

#[test]
fn tables_have_a_row_for_each_event_and_none_for_parts() {
    let mut bytes = Vec::new();
    export_csv(&metadata(), &names(), records(), &mut bytes).unwrap();
    let mut reader = csv::Reader::from_reader(&bytes[..]);
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    let fields: Vec<&str> = rows.iter().map(|row| &row[16]).collect();
    let digits = format!("data={}", "ab".repeat(26));
    assert_eq!(
        fields,
        [
            "message=/größe/of a topic\\; with \\= and \"quotes\" and a\\nline;line=17",
            "message=this one is cut…;line=17",
            "message=;line=17",
            &digits,
            "data=0102…",
            "message=;line=17",
        ]
    );

    let mut export = ParquetExport::new(&metadata(), &names(), Vec::new()).unwrap();
    records().into_iter().for_each(|record| export.record(record));
    let reader = SerializedFileReader::new(bytes::Bytes::from(export.finish().unwrap())).unwrap();
    let cell = |name: &str| -> Vec<String> {
        let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
        rows.map(|row| row.get_column_iter().find(|(column, _)| *column == name).unwrap().1.to_string())
            .collect()
    };
    let messages = cell("field_message");
    assert_eq!(messages.len(), 6);
    assert!(messages[0].contains("größe/of a topic; with = and"), "{messages:?}");
    assert_eq!(messages[1..], ["\"this one is cut…\"", "\"\"", "null", "null", "null"]);
    assert_eq!(cell("field_data")[4], "\"0102…\"");
}

#[test]
fn exports_for_other_programs_have_them() {
    let mut perfetto = PerfettoExport::new(&metadata(), &names(), &[], Vec::new());
    records().into_iter().for_each(|record| perfetto.record(record));
    let perfetto = perfetto.finish(Instant::from_nanos(START + 100)).unwrap();

    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("ctf");
    let mut ctf = CtfExport::create(&folder, &metadata(), &names()).unwrap();
    records().into_iter().for_each(|record| ctf.record(record));
    assert_eq!(ctf.finish().unwrap(), CtfSummary { events: 6, raised: 0 });
    let ctf = std::fs::read(folder.join("cpu_1")).unwrap();

    let digits = "ab".repeat(26);
    for text in ["größe/of a topic; with = and", "this one is cut…", &digits, "0102…"] {
        for (export, name) in [(&perfetto, "perfetto"), (&ctf, "ctf")] {
            let found = export.windows(text.len()).filter(|window| *window == text.as_bytes()).count();
            assert_eq!(found, 1, "{text} in {name}");
        }
    }
    let torn = b"a text of which";
    assert!(![perfetto, ctf].iter().any(|export| export.windows(torn.len()).any(|window| window == torn)));
}
