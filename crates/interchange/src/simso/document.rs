//! A SimSo file as plain values.

use super::attributes::Element;
use super::task::{SimTask, read_tasks};
use crate::Effect;
use crate::names::{did_you_mean, shown};
use crate::reading::Reading;
use roxmltree::{Document, Node, ParsingOptions};
use std::ops::Range;
use talea_time::{Duration, Work};

/// How many elements and texts a file may have, so that a small text does not fill the memory.
const NODES: u32 = 1 << 20;

/// How many quotes may stand in one tag: the parser compares each attribute with those before it.
const QUOTES: usize = 1000;

/// What a file says.
pub(super) struct Simulation {
    pub model: TimeModel,
    /// The last word of the scheduler's class or file.
    pub scheduler: Option<(String, Range<usize>)>,
    pub processors: usize,
    pub processors_span: Range<usize>,
    /// Saving one context and loading another.
    pub switch: Work,
    pub duration: Duration,
    pub tasks: Vec<SimTask>,
}

/// How long jobs take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeModel {
    Worst,
    Average,
}

/// Parses the XML. `None` if that failed; the problem is in `reading`.
pub(super) fn parse<'t>(reading: &mut Reading<'t>) -> Option<Document<'t>> {
    let text = reading.lines.text;
    if let Some(start) = crowded_tag(text) {
        let message = format!("a tag has more than {} attributes", QUOTES / 2);
        reading.error(start..start + 1, message, "check that this is the file you mean");
        return None;
    }
    let options = ParsingOptions { nodes_limit: NODES, ..ParsingOptions::default() };
    match Document::parse_with_options(text, options) {
        Ok(document) => Some(document),
        Err(error) => {
            let span = offset(reading, error.pos());
            let remedy = "mend it; SimSo writes such files with \"save\"";
            reading.error(span, format!("this is not well-formed XML: {error}"), remedy);
            None
        }
    }
}

/// Where a tag with too many quotes begins. A `<` stands nowhere but at the beginning of a tag or comment.
fn crowded_tag(text: &str) -> Option<usize> {
    let mut start = 0_usize;
    for piece in text.split_inclusive('<') {
        let is_comment = piece.starts_with("!--");
        if !is_comment && piece.bytes().filter(|byte| matches!(byte, b'"' | b'\'')).count() > QUOTES {
            return Some(start.saturating_sub(1));
        }
        start += piece.len();
    }
    None
}

/// The character at a row and column, both from 1.
fn offset(reading: &Reading<'_>, position: roxmltree::TextPos) -> Range<usize> {
    let text = reading.lines.text;
    let line = text.split_inclusive('\n').take(position.row.saturating_sub(1) as usize).map(str::len).sum();
    let rest: &str = &text[line..];
    let column = rest.char_indices().nth(position.col.saturating_sub(1) as usize);
    let start = line + column.map_or(rest.len(), |(start, _)| start);
    start..text.len().min(start + 1)
}

/// The values of a parsed file.
pub(super) fn read(document: &Document<'_>, reading: &mut Reading<'_>) -> Option<Simulation> {
    let root = document.root_element();
    let whole = Element::new(root, "the simulation".into());
    if root.tag_name().name() != "simulation" {
        let message = format!("the file is a {}, not a simulation", shown(root.tag_name().name()));
        reading.error(whole.span(), message, "name a file that SimSo has saved");
        return None;
    }
    let known = ["duration", "cycles_per_ms", "etm", "use_wcet", "penalty_preemption", "penalty_migration"];
    whole.note_unknown(&known, &[], reading);
    let cycles_per_ms = whole.integer("cycles_per_ms", reading).unwrap_or(1_000_000);
    if cycles_per_ms < 1 {
        let message = format!("a millisecond has {cycles_per_ms} cycles");
        reading.error(whole.span_of("cycles_per_ms"), message, "write cycles_per_ms=\"1000000\"");
        return None;
    }
    note_elements(root, &["sched", "caches", "processors", "tasks"], "the simulation", reading);
    let mut simulation = Simulation {
        model: read_model(&whole, reading),
        scheduler: None,
        processors: 0,
        processors_span: whole.span(),
        switch: Work::ZERO,
        duration: whole.cycles("duration", cycles_per_ms, reading).unwrap_or_default(),
        tasks: Vec::new(),
    };
    if whole.text("duration").is_some() {
        let what = "is that of one simulation; give it to `talea sim` with --for";
        reading.lose(Effect::Setting, whole.span_of("duration"), &whole.label, "duration", what);
    }
    for section in root.children().filter(Node::is_element) {
        match section.tag_name().name() {
            "sched" => read_scheduler(section, cycles_per_ms, &mut simulation, reading),
            "caches" => read_caches(section, reading),
            "processors" => read_processors(section, cycles_per_ms, &mut simulation, reading),
            "tasks" => read_tasks(section, &mut simulation, reading),
            _ => {}
        }
    }
    Some(simulation)
}

pub(super) fn elements<'a, 't: 'a>(
    parent: Node<'a, 't>,
    name: &'static str,
) -> impl Iterator<Item = Node<'a, 't>> {
    parent.children().filter(move |node| node.is_element() && node.tag_name().name() == name)
}

/// Reports elements that SimSo does not look for.
pub(super) fn note_elements(parent: Node<'_, '_>, known: &[&str], label: &str, reading: &mut Reading<'_>) {
    for node in parent.children().filter(Node::is_element) {
        let name = node.tag_name().name();
        if !known.contains(&name) {
            let span = Element::new(node, String::new()).span();
            reading.ignore(span, label, name, "SimSo", known.iter().copied());
        }
    }
}

fn read_model(whole: &Element<'_, '_>, reading: &mut Reading<'_>) -> TimeModel {
    let is_yes = |text: &str| matches!(text, "true" | "yes");
    let (key, model) = match (whole.text("etm"), whole.text("use_wcet")) {
        (Some(model), _) => ("etm", model),
        (None, Some(flag)) if !is_yes(flag) => ("use_wcet", "cache"),
        _ => return TimeModel::Worst,
    };
    match model {
        "wcet" => TimeModel::Worst,
        "acet" => TimeModel::Average,
        "cache" | "fixedpenalty" => {
            let what = "makes jobs longer by cache misses or preemptions; here every job takes its wcet";
            reading.lose(Effect::Lost, whole.span_of(key), &whole.label, key, what);
            TimeModel::Worst
        }
        other => {
            let message = format!("the execution time model {} is unknown", shown(other));
            let remedy = did_you_mean(
                other,
                ["wcet", "acet", "cache", "fixedpenalty"],
                "write wcet, acet, cache or fixedpenalty",
            );
            reading.error(whole.span_of(key), message, remedy);
            TimeModel::Worst
        }
    }
}

fn read_scheduler(
    node: Node<'_, '_>,
    cycles_per_ms: i64,
    simulation: &mut Simulation,
    reading: &mut Reading<'_>,
) {
    let element = Element::new(node, "the scheduler".into());
    let costs = ["overhead", "overhead_activate", "overhead_terminate"];
    element.note_unknown(&["class", "className", costs[0], costs[1], costs[2]], &[], reading);
    for cost in costs {
        if element.cycles(cost, cycles_per_ms, reading).is_some_and(|time| time > Duration::ZERO) {
            let what = "costs of scheduler calls are not those of lanes; see [overhead]";
            reading.lose(Effect::Lost, element.span_of(cost), &element.label, cost, what);
        }
    }
    for field in elements(node, "field") {
        let what = "is a field for a scheduler of one's own, which no strategy reads";
        let span = Element::new(field, String::new()).span();
        reading.lose(Effect::Lost, span, &element.label, "field", what);
    }
    let class = element.text("class").filter(|class| !class.is_empty()).map(|class| ("class", class));
    let file = element.text("className").filter(|file| !file.is_empty()).map(|file| ("className", file));
    let last = class.or(file).map(|(key, text)| {
        let name = text.rsplit(['/', '\\']).next().unwrap_or(text);
        let name = name.strip_suffix(".py").unwrap_or(name);
        (name.rsplit('.').next().unwrap_or(name).to_owned(), element.span_of(key))
    });
    simulation.scheduler = last;
}

fn read_caches(node: Node<'_, '_>, reading: &mut Reading<'_>) {
    for cache in elements(node, "cache") {
        let what = "operations have no caches";
        let span = Element::new(cache, String::new()).span();
        reading.lose(Effect::Lost, span, "the simulation", "cache", what);
    }
}

fn read_processors(
    node: Node<'_, '_>,
    cycles_per_ms: i64,
    simulation: &mut Simulation,
    reading: &mut Reading<'_>,
) {
    let all = Element::new(node, "the processors".into());
    all.note_unknown(&["migration_overhead"], &[], reading);
    if all.cycles("migration_overhead", cycles_per_ms, reading).is_some_and(|time| time > Duration::ZERO) {
        let what = "operations stay where they began";
        let key = "migration_overhead";
        reading.lose(Effect::Lost, all.span_of(key), &all.label, key, what);
    }
    note_elements(node, &["processor", "field"], &all.label, reading);
    let fields = declared_fields(node);
    simulation.processors_span = all.span();
    let mut switch: Option<Duration> = None;
    for node in elements(node, "processor") {
        let name = node.attribute("name").unwrap_or_default();
        let element = Element::new(node, format!("processor \"{}\"", name.escape_debug()));
        element.note_unknown(&["name", "id", "cl_overhead", "cs_overhead", "speed"], &fields, reading);
        simulation.processors += 1;
        // SimSo calls processors so; any other name says something that is lost.
        if !name.is_empty() && name.strip_prefix("CPU ").is_none_or(|number| number.parse::<u32>().is_err()) {
            let what = "processors have numbers, not names";
            reading.lose(Effect::Lost, element.span_of("name"), &element.label, "name", what);
        }
        if element.text("speed").is_some_and(|speed| speed.trim().parse() != Ok(1.0_f64)) {
            let what = "all processors are equally fast";
            reading.lose(Effect::Lost, element.span_of("speed"), &element.label, "speed", what);
        }
        let save = element.cycles("cs_overhead", cycles_per_ms, reading).unwrap_or_default();
        let load = element.cycles("cl_overhead", cycles_per_ms, reading).unwrap_or_default();
        let cost = save.checked_add(load).unwrap_or(Duration::MAX);
        if switch.is_some_and(|known| known != cost) {
            let what = "differs between processors; the longest counts for all";
            reading.lose(Effect::Approximated, element.span(), &element.label, "cs_overhead", what);
        }
        switch = Some(switch.map_or(cost, |known| known.max(cost)));
        for cache in elements(node, "cache") {
            let span = Element::new(cache, String::new()).span();
            reading.lose(Effect::Lost, span, &element.label, "cache", "operations have no caches");
        }
    }
    simulation.switch = switch.unwrap_or_default().as_work();
}

pub(super) fn declared_fields<'a>(parent: Node<'a, '_>) -> Vec<&'a str> {
    elements(parent, "field").filter_map(|field| field.attribute("name")).collect()
}
