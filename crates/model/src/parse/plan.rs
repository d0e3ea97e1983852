//! Explicit plans: entries in the file, or a file of entries.

use super::execution::Traces;
use super::values::{Misfit, Reading, elements, found, time, wrong_type};
use crate::keys::Key;
use crate::plan::table::Table;
use crate::plan::{COLUMNS, Plan, PlanEntry};
use crate::suggest::known_words;
use std::ops::Range;
use talea_time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where the entries of a plan stand.
pub(super) enum Written {
    /// In the system file.
    Here(Vec<Range<usize>>),
    /// In another one, in these lines, counted from 1.
    File { name: String, lines: Vec<usize> },
}

impl Default for Written {
    fn default() -> Self {
        Written::Here(Vec::new())
    }
}

/// What was read of a plan.
pub(super) struct ReadPlan {
    /// The entries, with stand-ins for those that cannot be read; none if none can.
    pub plan: Option<(Plan, Written)>,
    /// What is wrong, and with which entry.
    pub misfits: Vec<(Option<usize>, Misfit)>,
}

impl From<Misfit> for ReadPlan {
    fn from(misfit: Misfit) -> Self {
        ReadPlan { plan: None, misfits: vec![(None, misfit)] }
    }
}

/// Reads a plan. The rules of its entries are looked at with those of the whole description.
pub(super) fn plan(key: &'static Key, value: &Spanned<DeValue<'_>>, files: &Traces) -> ReadPlan {
    let read = match value.get_ref() {
        DeValue::Table(table) => from_file(key, value, table, files),
        _ => elements(key, value).map(|list| from_list(key, value, list)),
    };
    read.unwrap_or_else(ReadPlan::from)
}

const SAMPLE: &str =
    "write { start = \"0ms\", duration = \"5ms\", child = \"...\" } for each time that somebody is to run";

fn from_list(key: &'static Key, value: &Spanned<DeValue<'_>>, list: &[Spanned<DeValue<'_>>]) -> ReadPlan {
    if list.is_empty() {
        let (message, remedy) = ("the list \"plan\" is empty".into(), SAMPLE.into());
        return Misfit { span: value.span(), message, remedy }.into();
    }
    let (mut entries, mut misfits): (Vec<PlanEntry>, _) = (Vec::with_capacity(list.len()), Vec::new());
    for (number, element) in list.iter().enumerate() {
        let mut wrong = Vec::new();
        let read = entry(key, element, &mut wrong);
        entries.push(read.unwrap_or_else(|| PlanEntry::stand_in(entries.last())));
        misfits.extend(wrong.into_iter().map(|misfit| (Some(number), misfit)));
    }
    let places = Written::Here(list.iter().map(Spanned::span).collect());
    ReadPlan { plan: Some((Plan::new(entries), places)), misfits }
}

/// An entry; none if something is `wrong` with it.
fn entry(key: &'static Key, element: &Spanned<DeValue<'_>>, wrong: &mut Vec<Misfit>) -> Option<PlanEntry> {
    let DeValue::Table(table) = element.get_ref() else {
        let message = format!("an entry of \"plan\" is a table, not {}", found(element.get_ref()));
        wrong.push(Misfit { span: element.span(), message, remedy: SAMPLE.into() });
        return None;
    };
    let unknown = table.iter().filter(|(name, _)| !COLUMNS.contains(&name.get_ref().as_ref()));
    wrong.extend(unknown.map(|(name, _)| Misfit {
        span: name.span(),
        message: format!("unknown key \"{}\" in an entry of \"plan\"", name.get_ref()),
        remedy: known_words(name.get_ref(), COLUMNS),
    }));
    // What is absent may be what an unknown key was meant to be.
    let is_misspelt = !wrong.is_empty();
    let part = |name: &str, wrong: &mut Vec<Misfit>| {
        let value = table.get(name);
        if value.is_none() && !is_misspelt {
            let message = format!("an entry of \"plan\" lacks its {name}");
            wrong.push(Misfit { span: element.span(), message, remedy: SAMPLE.into() });
        }
        value
    };
    let [start, duration, child] = COLUMNS.map(|name| part(name, wrong));
    let mut kept = |reading: Reading<Duration>| reading.map_err(|misfit| wrong.push(misfit)).ok();
    let start = start.and_then(|value| kept(time_of(key, "start", value)));
    let duration = duration.and_then(|value| kept(time_of(key, "duration", value)));
    let child = child.and_then(|value| match value.get_ref() {
        DeValue::String(child) => Some(child.to_string()),
        _ => {
            let message = "the child of an entry of \"plan\" is the name of a scheduler or thread below";
            wrong.push(Misfit { span: value.span(), message: message.into(), remedy: SAMPLE.into() });
            None
        }
    });
    if wrong.is_empty() {
        Some(PlanEntry { start: start?, duration: duration?, child: child? })
    } else {
        None
    }
}

/// The time that is this `part` of an entry.
fn time_of(key: &'static Key, part: &str, value: &Spanned<DeValue<'_>>) -> Reading<Duration> {
    match value.get_ref() {
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) => {
            time(key, value).map_err(|misfit| Misfit {
                message: misfit.message.replacen(
                    "\"plan\"",
                    &format!("the {part} of an entry of \"plan\""),
                    1,
                ),
                ..misfit
            })
        }
        _ => Err(Misfit {
            span: value.span(),
            message: format!("the {part} of an entry of \"plan\" is a time with a unit"),
            remedy: SAMPLE.into(),
        }),
    }
}

fn from_file(
    key: &'static Key,
    value: &Spanned<DeValue<'_>>,
    table: &DeTable<'_>,
    files: &Traces,
) -> Reading<ReadPlan> {
    if let Some((name, _)) = table.iter().find(|(name, _)| name.get_ref() != "file") {
        let message = format!("unknown key \"{}\" in \"plan\"", name.get_ref());
        let remedy = "write plan = { file = \"plan.csv\" }, or a list of entries".into();
        return Err(Misfit { span: name.span(), message, remedy });
    }
    let Some(name) = table.get("file") else { return Err(wrong_type(key, value)) };
    let misfit = |message: String, remedy: String| Misfit { span: name.span(), message, remedy };
    let DeValue::String(written) = name.get_ref() else {
        let message = format!("\"plan\": file is the path of a file, not {}", found(name.get_ref()));
        return Err(misfit(message, "write file = \"plan.csv\"".into()));
    };
    let path = files.path(written);
    if !path.exists() {
        let remedy = "write its path relative to the system file".into();
        return Err(misfit(format!("plan \"{written}\": there is no such file"), remedy));
    }
    let fault = |message: String, remedy: String| misfit(format!("plan \"{written}\": {message}"), remedy);
    let text =
        talea_text::read::text(&path).map_err(|error| fault(error.to_string(), error.remedy().into()))?;
    let read = Table::read(&text);
    let misfits =
        read.faults.into_iter().map(|(entry, wrong)| (entry, fault(wrong.to_string(), wrong.remedy)));
    let misfits = misfits.collect();
    let places = Written::File { name: written.to_string(), lines: read.lines };
    let plan = (!read.entries.is_empty()).then(|| (Plan::new(read.entries), places));
    Ok(ReadPlan { plan, misfits })
}
