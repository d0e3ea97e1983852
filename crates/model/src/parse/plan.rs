//! Explicit plans: entries in the file, or a file of entries.

use super::execution::Traces;
use super::file;
use super::values::{Misfit, Reading, elements, found, text, time, wrong_type};
use crate::keys::Key;
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

/// Reads a plan. The rules of its entries are looked at with those of the whole description.
pub(super) fn plan(
    key: &'static Key,
    value: &Spanned<DeValue<'_>>,
    files: &Traces,
) -> Reading<(Plan, Written)> {
    if let DeValue::Table(table) = value.get_ref() {
        return from_file(key, value, table, files);
    }
    let list = elements(key, value)?;
    if list.is_empty() {
        let (message, remedy) = ("the list \"plan\" is empty".into(), SAMPLE.into());
        return Err(Misfit { span: value.span(), message, remedy });
    }
    let entries: Reading<Vec<PlanEntry>> = list.iter().map(|element| entry(key, element)).collect();
    Ok((Plan::new(entries?), Written::Here(list.iter().map(Spanned::span).collect())))
}

const SAMPLE: &str =
    "write { start = \"0ms\", duration = \"5ms\", child = \"...\" } for each time that somebody is to run";

fn entry(key: &'static Key, element: &Spanned<DeValue<'_>>) -> Reading<PlanEntry> {
    let DeValue::Table(table) = element.get_ref() else {
        let message = format!("an entry of \"plan\" is a table, not {}", found(element.get_ref()));
        return Err(Misfit { span: element.span(), message, remedy: SAMPLE.into() });
    };
    if let Some((name, _)) = table.iter().find(|(name, _)| !COLUMNS.contains(&name.get_ref().as_ref())) {
        let message = format!("unknown key \"{}\" in an entry of \"plan\"", name.get_ref());
        return Err(Misfit { span: name.span(), message, remedy: known_words(name.get_ref(), COLUMNS) });
    }
    let part = |name: &str| {
        table.get(name).ok_or_else(|| Misfit {
            span: element.span(),
            message: format!("an entry of \"plan\" lacks its {name}"),
            remedy: SAMPLE.into(),
        })
    };
    let named = |misfit: Misfit, part: &str| Misfit {
        message: misfit.message.replacen("\"plan\"", &format!("the {part} of an entry of \"plan\""), 1),
        remedy: match misfit.remedy.starts_with("write plan") {
            true => SAMPLE.into(),
            false => misfit.remedy,
        },
        ..misfit
    };
    let times = |name: &str| -> Reading<Duration> {
        time(key, part(name)?).map_err(|misfit| match misfit.message.contains(" is a list of entries") {
            true => Misfit {
                message: format!("the {name} of an entry of \"plan\" is a time with a unit"),
                remedy: SAMPLE.into(),
                ..misfit
            },
            false => named(misfit, name),
        })
    };
    let (start, duration) = (times("start")?, times("duration")?);
    let child = part("child")?;
    let child = text(key, child).map_err(|misfit| Misfit {
        message: "the child of an entry of \"plan\" is the name of a scheduler or thread below".into(),
        remedy: SAMPLE.into(),
        ..misfit
    })?;
    Ok(PlanEntry { start, duration, child: child.into() })
}

fn from_file(
    key: &'static Key,
    value: &Spanned<DeValue<'_>>,
    table: &DeTable<'_>,
    files: &Traces,
) -> Reading<(Plan, Written)> {
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
    let text = file::text(&path).map_err(|error| fault(error.message, error.remedy))?;
    let (plan, lines) =
        Plan::with_lines(&text).map_err(|error| fault(error.to_string(), error.remedy.clone()))?;
    Ok((plan, Written::File { name: written.to_string(), lines }))
}
