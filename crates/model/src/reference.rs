//! The reference page of system files, generated from the declarations that the reader uses.

use crate::hierarchy::SchedulerKind;
use crate::inheritance::INHERITED;
use crate::keys::{CPUS, FILE, Key, Kind, Literal, Presence, Table};
use std::fmt::Write as _;
use talea_guarantee::conversion::table::Conversion;
use talea_guarantee::guarantee::Kind as Guarantee;
use talea_guarantee::scheduler::{Affects, Alike, Asks, Children, Intake, Parameter, Preset, Values};

/// What stands before the tables.
const HEAD: &str = "\
# The system file, key by key

A system file is [TOML](https://toml.io). Unknown keys are errors, and all problems of a file are shown at once. An editor completes and
checks keys with the JSON Schema that `talea schema` prints. [The glossary](glossary.md) explains terms, [policies](policies.md) how
schedulers decide, [guarantees](guarantees.md) what they promise each other.

Times are texts with a unit, `ns`, `us`, `ms`, `s`, `min` or `h`, such as `\"2.5ms\"`. Names are texts. Guarantees are texts such as
`\"RESBH 5ms 33ms\"`.
";

/// The reference page of system files, in Markdown: every table and key, and every kind of scheduler.
pub fn reference() -> String {
    let mut page = String::from(HEAD);
    describe(&FILE, &mut page, &mut Vec::new());
    let _ = write!(page, "{SCHEDULERS}\n{}\n", same_code());
    for kind in SchedulerKind::in_files() {
        scheduler(kind, &mut page);
    }
    page
}

/// Which kinds are one code under several names, as a sentence.
pub(crate) fn same_code() -> String {
    let mut others: Vec<(&str, Vec<&str>)> = Vec::new();
    for kind in SchedulerKind::in_files() {
        let Some(Alike::Code(other)) = kind.alike else { continue };
        match others.iter_mut().find(|(known, _)| *known == other) {
            Some((_, names)) => names.push(kind.name()),
            None => others.push((other, vec![kind.name()])),
        }
    }
    let others = others.into_iter().map(|(other, names)| format!("{} that of {other}", names.join(" and ")));
    format!(
        "Some kinds are the code of another one under a second name: {}.",
        others.collect::<Vec<_>>().join(", ")
    )
}

/// What schedulers accept and give, what their children ask for and when they are admitted: a table in Markdown in the order of the
/// published one. Kinds that agree in all of it share a row.
pub fn conversions() -> String {
    let mut rows: Vec<(Vec<String>, [String; 3])> = Vec::new();
    for kind in SchedulerKind::in_derivations().into_iter().filter(|kind| kind.place < u8::MAX) {
        let name = match kind.children {
            Children::One => format!("`{}` (one child)", kind.name()),
            _ => format!("`{}`", kind.name()),
        };
        let conversions: Vec<String> = kind.conversions.iter().map(ToString::to_string).collect();
        let admission = kind.admission.map_or(String::new(), |test| test.to_string());
        let cells = [conversions.join(", ").replace("->", "→"), asked(kind.asks), admission];
        match rows.iter_mut().find(|(_, known)| *known == cells) {
            Some((names, _)) => names.push(name),
            None => rows.push((vec![name], cells)),
        }
    }
    let mut table = String::from(
        "| Scheduler (`kind`) | Accepts → gives | Children ask for | They are admitted while |\n|---|---|---|---|\n",
    );
    for (names, cells) in rows {
        let _ = writeln!(table, "| {} | {} |", names.join(", "), cells.join(" | "));
    }
    table
}

/// What a child asks for, in a few words.
fn asked(asks: Asks) -> String {
    let guarantee = |kind: &Guarantee| match kind {
        Guarantee::Resu => "`RESU r`".to_owned(),
        kind => format!("`{kind} x y`"),
    };
    let any = |kinds: &[Guarantee]| kinds.iter().map(guarantee).collect::<Vec<_>>().join(" or ");
    match asks {
        Asks::Nothing | Asks::NoChildren => String::new(),
        Asks::Priority => "a priority of their own".into(),
        Asks::Level => "a level, or nothing".into(),
        Asks::Share => "a share".into(),
        Asks::WarpedShare => "a share, perhaps with a warp".into(),
        Asks::Guarantee(kinds) => any(kinds),
        Asks::GuaranteeOrJobs(kinds) => format!("{}, or nothing", any(kinds)),
        Asks::AtMost(kind) => format!("{}, or nothing", guarantee(&kind)),
    }
}

/// A table with its keys, and the tables below it, each once.
fn describe(table: &'static Table, page: &mut String, seen: &mut Vec<&'static str>) {
    if seen.contains(&table.header) {
        return;
    }
    seen.push(table.header);
    let title = if table.header.is_empty() { "The file".into() } else { heading(table) };
    let _ = write!(
        page,
        "\n## {title}\n\n{}\n\n| Key | Type | If it is left out | Meaning | Example |\n|---|---|---|---|---|\n",
        table.doc
    );
    for key in table.known() {
        let cells = [format!("`{}`", key.name), kind(key), presence(key), key.doc.into(), example(key)];
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(page, "| {} |", cells.join(" | "));
    }
    for key in table.known() {
        if let Kind::One(below) | Kind::Many(below) | Kind::WordOr(_, below) = key.kind {
            describe(below, page, seen);
        }
    }
}

fn heading(table: &Table) -> String {
    match table.header.split_once('"') {
        Some((words, key)) if table.is_inline() => {
            let (first, rest) = words.split_at(1);
            format!("{}{rest}`{}`", first.to_uppercase(), key.trim_end_matches('"'))
        }
        _ => format!("`{}`", table.header),
    }
}

fn kind(key: &Key) -> String {
    let words = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
        words.join(", ")
    };
    match &key.kind {
        Kind::Name => "name".into(),
        Kind::Title => "name of one or several words".into(),
        Kind::OutputName => "name of an output, with that of its operation".into(),
        Kind::OperationNames => "list of names of operations".into(),
        Kind::Fields => "table of whole numbers, `{ uniform = [least, greatest] }` or `{ list = [numbers] }`".into(),
        Kind::ChannelName => "name of a channel".into(),
        Kind::Properties => "table of [properties](notification.md#quality-of-service)".into(),
        Kind::EventType => "type of events".into(),
        Kind::EventTypes => "list of types of events".into(),
        Kind::Constraint => "[constraint](notification.md#filters)".into(),
        Kind::Condition => "[condition](notification.md#conditions)".into(),
        Kind::Arrivals => "`\"none\"`, or `{ periodic = time, jitter = time }`, `{ sporadic = mean }`, `{ poisson = mean }`, \
                           `{ list = [times] }`, `{ file = \"file\" }`"
            .into(),
        Kind::WordOr(word, _) => format!("`\"{word}\"`, or a table"),
        Kind::NodeName => "name of a node".into(),
        Kind::TwoNodes => "list of the names of two nodes".into(),
        Kind::Share => "number, 0 to 1".into(),
        Kind::SubtaskNames => "list of names of subtasks".into(),
        Kind::Time => "time".into(),
        Kind::Word(known) => words(&known()),
        Kind::Deadline => format!("time, or `\"{INHERITED}\"`"),
        Kind::Join => "`\"all\"`, `\"first\"`, or a whole number".into(),
        Kind::OneOf(known) => words(known),
        Kind::Scheduler => "[kind of scheduler](#kinds-of-schedulers)".into(),
        Kind::Criticality => format!(
            "0 to 4, or `\"very-low\"`, `\"low\"`, `\"medium\"`, `\"high\"`, `\"very-high\"`, or `\"{INHERITED}\"`"
        ),
        Kind::Integer { min, max } => format!("whole number, {min} to {max}"),
        Kind::Cpus => format!("list of whole numbers, {} to {}", CPUS.start(), CPUS.end()),
        Kind::Execution => {
            "time, or `{ uniform = [least, greatest] }`, `{ list = [times] }`, `{ trace = \"file\" }`".into()
        }
        Kind::SchedulerName => "name of a scheduler".into(),
        Kind::LanesName => "name of a scheduler of kind `lanes`".into(),
        Kind::Guarantee => "guarantee".into(),
        Kind::Work => "`\"cpu-bound\"`, or `{ burst = execution time, period = time }`".into(),
        Kind::Command => "list of texts".into(),
        Kind::One(_) => "table".into(),
        Kind::Many(table) if table.is_inline() => "list of tables".into(),
        Kind::Many(_) => "tables".into(),
        Kind::Plan => {
            "list of `{ start = time, duration = time, child = name }`, or `{ file = \"file\" }`".into()
        }
        Kind::Later(_) | Kind::Former(_) => unreachable!("it cannot be written"),
    }
}

fn presence(key: &Key) -> String {
    match &key.presence {
        Presence::Required => "**required**".into(),
        Presence::Optional => "nothing".into(),
        Presence::Default(literal) => format!("`{}`", written(literal)),
        Presence::DefaultFrom(words) => (*words).into(),
    }
}

fn written(literal: &Literal) -> String {
    match literal {
        Literal::Text(text) => format!("\"{text}\""),
        Literal::Integer(number) => number.to_string(),
        Literal::Integers(numbers) => format!("{numbers:?}"),
    }
}

/// A line as it could stand in a file.
fn example(key: &Key) -> String {
    let value = match &key.kind {
        Kind::One(table) => match table.entry() {
            Some(_) => "{ channel = \"health\", types = [\"Robot/*\"] }".into(),
            None => return format!("`{}`", table.header),
        },
        Kind::Many(table) if !table.is_inline() => return format!("`{}`", table.header),
        Kind::Many(_) if key.name == "outputs" => "[{ name = \"state\", bytes = 64 }]".into(),
        Kind::Many(_) if key.name == "inputs" => {
            "[{ name = \"state\", from = \"imu.estimate.state\" }]".into()
        }
        Kind::Many(_) if key.name == "events" => {
            "[{ channel = \"health\", type = \"Robot/Battery\" }]".into()
        }
        Kind::Many(_) if key.name == "priority_by" => {
            "[{ filter = \"charge < 5\", priority = 9 }, { priority = 1 }]".into()
        }
        Kind::Many(_) if key.name == "timeout_by" => {
            "[{ filter = \"charge < 5\", timeout = \"5ms\" }, { timeout = \"1s\" }]".into()
        }
        Kind::Many(_) => "[{ scheduler = \"FP\", priority = 2 }]".into(),
        Kind::Title => "\"stop to actuator\"".into(),
        Kind::OutputName => "\"imu.estimate.state\"".into(),
        Kind::OperationNames => "[\"imu.estimate\", \"control\"]".into(),
        Kind::Fields => "{ temperature = { uniform = [20, 90] } }".into(),
        Kind::ChannelName => "\"health\"".into(),
        Kind::Properties => "{ OrderPolicy = \"Priority\", MaxEventsPerConsumer = 8 }".into(),
        Kind::EventType => "\"Robot/Battery\"".into(),
        Kind::EventTypes => "[\"Robot/*\"]".into(),
        Kind::Constraint => "\"charge < 20\"".into(),
        Kind::Condition => "{ all = [\"Robot/Tilt\", \"Robot/Battery\"], within = \"100ms\" }".into(),
        Kind::Arrivals => "{ sporadic = \"20ms\" }".into(),
        Kind::WordOr(word, _) => format!("\"{word}\""),
        Kind::Name => format!("\"{}\"", if key.name == "name" { "navigation" } else { key.name }),
        Kind::NodeName => "\"local\"".into(),
        Kind::TwoNodes => "[\"control\", \"vision\"]".into(),
        Kind::Share => "0.001".into(),
        Kind::SubtaskNames => "[\"left\", \"right\"]".into(),
        Kind::Time if matches!(key.presence, Presence::Default(_)) => "\"20us\"".into(),
        Kind::Time | Kind::Deadline => "\"50ms\"".into(),
        Kind::Join => "\"first\"".into(),
        Kind::Word(known) => known().last().map(|word| format!("\"{word}\"")).unwrap_or_default(),
        Kind::OneOf(known) => known.last().map(|word| format!("\"{word}\"")).unwrap_or_default(),
        Kind::Scheduler => "\"reservation\"".into(),
        Kind::Criticality => "\"high\"".into(),
        Kind::Integer { min, max } => 7.clamp(*min, *max).to_string(),
        Kind::Cpus => "[0, 1]".into(),
        Kind::Execution => "{ uniform = [\"1ms\", \"4ms\"] }".into(),
        Kind::SchedulerName => "\"RES\"".into(),
        Kind::LanesName => "\"flight\"".into(),
        Kind::Guarantee => "\"RESBH 5ms 33ms\"".into(),
        Kind::Work => "{ burst = \"5ms\", period = \"33ms\" }".into(),
        Kind::Command => "[\"xz\", \"-9\", \"big.tar\"]".into(),
        Kind::Plan => "[{ start = \"0ms\", duration = \"5ms\", child = \"video\" }]".into(),
        Kind::Later(_) | Kind::Former(_) => unreachable!("it cannot be written"),
    };
    format!("`{} = {value}`", key.name)
}

/// What stands before the kinds.
const SCHEDULERS: &str = "
## Kinds of schedulers

What `kind` of a `[[scheduler]]` can be. Under \"Guarantees\" stands left of the arrow what the scheduler must receive at least, and right
of it what it then promises to its children; `RESBH+` is any number of such guarantees, one for each child
([the glossary](glossary.md) explains the notation). Programs that embed Talea can register kinds of their own.
";

fn scheduler(kind: SchedulerKind, page: &mut String) {
    let _ = write!(page, "\n### `{}`\n\n{}\n\n", kind.name(), kind.about);
    if !kind.synonyms.is_empty() {
        let names: Vec<String> = kind.synonyms.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "- Also written: {}", names.join(", "));
    }
    match kind.alike {
        Some(Alike::Code(other)) => {
            let _ = writeln!(page, "- The same code as `{other}` under another name");
        }
        Some(Alike::Promises(other)) => {
            let _ = writeln!(page, "- Promises the same as `{other}`");
        }
        None => {}
    }
    let _ = writeln!(page, "- Each child asks for: {}", asks(kind.asks));
    let _ = writeln!(page, "- Children: {}", children(kind.children));
    if kind.intake == Intake::Several {
        page.push_str("- Takes several processors, or stands under several schedulers\n");
    }
    for parameter in kind.parameters {
        let _ = writeln!(page, "- Parameter {}", described(parameter));
    }
    if !kind.conversions.is_empty() {
        let rows: Vec<String> = kind.conversions.iter().map(|row: &Conversion| format!("`{row}`")).collect();
        let _ = writeln!(page, "- Guarantees: {}", rows.join(", "));
    }
    if let Some(test) = kind.admission {
        let _ = writeln!(page, "- Admits children while {test}");
    }
    let _ = writeln!(page, "- Source: {}", kind.source);
}

/// What a child writes beside the scheduler's name.
fn asks(asks: Asks) -> String {
    match asks {
        Asks::NoChildren => "nothing; its threads are tasks of the node".into(),
        asks => asks.wanted(),
    }
}

fn children(children: Children) -> &'static str {
    match children {
        Children::One => "one at most",
        Children::Many => "any number of schedulers and threads",
        Children::Threads => "any number of threads, whose jobs it orders",
        Children::Bursts => "any number of threads with bursts",
        Children::Tasks => "none in the file: tasks are in its lanes",
    }
}

fn described(parameter: &Parameter) -> String {
    let values = match parameter.values {
        Values::Time => "a time above zero".into(),
        Values::Integer { min, max } => format!("a whole number, {min} to {max}"),
        Values::Word(words) => {
            let words: Vec<String> = words.iter().map(|word| format!("`\"{word}\"`")).collect();
            words.join(" or ")
        }
        Values::Parent => "the name of one of its parents".into(),
        Values::Plan => "a list of entries, or `{ file = \"plan.csv\" }`, relative to the system file".into(),
    };
    let preset = match parameter.preset {
        Preset::Nanos(nanos) => format!("`\"{}\"`", talea_time::Duration::from_nanos(nanos)),
        Preset::Integer(number) => format!("`{number}`"),
        Preset::Word(word) => format!("`\"{word}\"`"),
        Preset::Open(words) => words.into(),
        Preset::Required => "the scheduler is refused".into(),
    };
    let affects = match parameter.affects {
        Affects::Guarantees => "",
        Affects::Schedule => " No guarantee depends on it.",
    };
    format!("`{}`: {values}; if it is left out, {preset}. {}{affects}", parameter.name, parameter.about)
}
