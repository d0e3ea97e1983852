//! What releases a task in place of a period.

use super::execution::Traces;
use super::file;
use super::section::{Findings, Given, Item, Section};
use super::values::{Misfit, Reading, elements, found, time, wrong_type};
use crate::builder::TriggerBuilder;
use crate::keys::{Key, Kind};
use crate::suggest::{known_words, nearest, time_fault};
use crate::trigger::OutsideArrivals;
use std::path::Path;
use std::sync::Arc;
use talea_time::{Duration, ParseDurationError};
use toml::Spanned;
use toml::de::DeValue;

/// What a task says about its trigger.
pub(super) enum ReadTrigger {
    Absent,
    /// Something that cannot be read, which is reported.
    Unread,
    Given(TriggerBuilder),
}

/// The trigger of the task at `index`, and its table if it is one.
pub(super) fn read_trigger<'t>(
    own: &Section<'t>,
    index: usize,
    findings: &mut Findings,
) -> (Option<Section<'t>>, ReadTrigger) {
    let (key, Given::Value(value)) = own.given("trigger") else { return (None, ReadTrigger::Absent) };
    let Kind::WordOr(word, declaration) = key.kind else { unreachable!("\"trigger\" is declared so") };
    let form = declaration.entry().unwrap_or_default();
    let mut refuse = |message: String, remedy: String| {
        findings.unread.insert(own.item.place("trigger"));
        findings.error(value.span(), message, remedy);
        (None, ReadTrigger::Unread)
    };
    match value.get_ref() {
        DeValue::String(written) if written == word => (None, ReadTrigger::Given(TriggerBuilder::external())),
        DeValue::String(written) => refuse(
            format!("\"trigger\" cannot be \"{written}\""),
            match nearest(written, [word]) {
                Some(word) => format!("did you mean \"{word}\"?"),
                None if written.contains('.') => format!("write trigger = {{ output = \"{written}\" }}"),
                None => format!("write \"{word}\" or {form}"),
            },
        ),
        DeValue::Table(table) => {
            let section = Section::open(declaration, Item::Trigger(index), table, value.span(), findings);
            let mut trigger = TriggerBuilder::output(section.text("output", findings).unwrap_or_default());
            if let Some(every) = section.integer("every", findings) {
                trigger = trigger.every(every as u32);
            }
            if let Some(on) = section.word("on", findings) {
                trigger = trigger.on(on);
            }
            (Some(section), ReadTrigger::Given(trigger))
        }
        other => refuse(
            format!("\"trigger\" is \"{word}\" or a table with output, not {}", found(other)),
            format!("write \"{word}\" or {form}"),
        ),
    }
}

/// When something outside happens, if the task says so.
pub(super) fn read_arrivals(own: &Section<'_>, findings: &mut Findings) -> Option<OutsideArrivals> {
    findings.with_traces(|findings, files| {
        own.other("arrivals", findings, |key, value| arrivals(key, value, files))
    })
}

/// The forms that are tables, but for what stands beside periodic.
const FORMS: [&str; 5] = ["periodic", "sporadic", "poisson", "list", "file"];

fn arrivals(key: &Key, value: &Spanned<DeValue<'_>>, files: &Traces) -> Reading<OutsideArrivals> {
    let misfit = |message: String, remedy: String| Misfit { span: value.span(), message, remedy };
    let table = match value.get_ref() {
        DeValue::String(word) if word == "none" => return Ok(OutsideArrivals::None),
        DeValue::String(word) => {
            let remedy = match nearest(word, ["none"]) {
                Some(word) => format!("did you mean \"{word}\"?"),
                None => format!("write \"none\", or a table such as {}", super::values::sample(key)),
            };
            return Err(misfit(format!("\"arrivals\" cannot be \"{word}\""), remedy));
        }
        DeValue::Table(table) => table,
        _ => return Err(wrong_type(key, value)),
    };
    let is_known = |name: &str| FORMS.contains(&name) || name == "jitter";
    if let Some((name, _)) = table.iter().find(|(name, _)| !is_known(name.get_ref())) {
        let message = format!("unknown form \"{}\" of \"arrivals\"", name.get_ref());
        return Err(Misfit { span: name.span(), message, remedy: known_words(name.get_ref(), FORMS) });
    }
    let given: Vec<&str> = FORMS.into_iter().filter(|form| table.contains_key(*form)).collect();
    let [form] = given[..] else {
        let count = if given.is_empty() { "no form".into() } else { format!("{} forms", given.len()) };
        let remedy = format!("give exactly one of {}", FORMS.join(", "));
        return Err(misfit(format!("\"arrivals\" has {count}"), remedy));
    };
    let content = &table[form];
    match (form, table.get("jitter")) {
        ("periodic", jitter) => Ok(OutsideArrivals::Periodic {
            period: part(key, form, content)?,
            jitter: jitter.map_or(Ok(Duration::ZERO), |jitter| part(key, "jitter", jitter))?,
        }),
        (_, Some(jitter)) => Err(Misfit {
            span: jitter.span(),
            message: format!("{form} arrivals have no jitter"),
            remedy: "remove it, or write { periodic = \"20ms\", jitter = \"2ms\" }".into(),
        }),
        ("sporadic", None) => Ok(OutsideArrivals::Sporadic { mean: part(key, form, content)? }),
        ("poisson", None) => Ok(OutsideArrivals::Poisson { mean: part(key, form, content)? }),
        ("list", None) => {
            let times: Reading<Vec<Duration>> =
                elements(key, content)?.iter().map(|element| part(key, form, element)).collect();
            Ok(OutsideArrivals::Listed(times?.into()))
        }
        _ => listed_in_file(content, files),
    }
}

/// A time within the table, which messages call by its own key.
fn part(key: &Key, name: &str, value: &Spanned<DeValue<'_>>) -> Reading<Duration> {
    time(key, value).map_err(|misfit| Misfit {
        message: misfit.message.replacen(
            &format!("\"{}\"", key.name),
            &format!("the {name} of \"{}\"", key.name),
            1,
        ),
        ..misfit
    })
}

fn listed_in_file(name: &Spanned<DeValue<'_>>, files: &Traces) -> Reading<OutsideArrivals> {
    let DeValue::String(written) = name.get_ref() else {
        return Err(Misfit {
            span: name.span(),
            message: format!("\"arrivals\": file is the path of a file, not {}", found(name.get_ref())),
            remedy: "write file = \"times.csv\"".into(),
        });
    };
    read_times(&files.path(written)).map(OutsideArrivals::Listed).map_err(|fault| Misfit {
        span: name.span(),
        message: format!("arrivals \"{written}\": {}", fault.message),
        remedy: fault.remedy,
    })
}

/// One time per line, with a unit or in seconds; `#` begins a comment.
fn read_times(path: &Path) -> Result<Arc<[Duration]>, file::Fault> {
    if !path.exists() {
        let remedy = "write its path relative to the system file".into();
        return Err(file::Fault { message: "there is no such file".into(), remedy });
    }
    let text = talea_text::read::text(path)?;
    let mut times: Vec<Duration> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let written = line.split('#').next().unwrap_or("").trim();
        if written.is_empty() {
            continue;
        }
        let fault =
            |message, remedy| Err(file::Fault { message: format!("line {}: {message}", index + 1), remedy });
        match in_seconds(written) {
            Ok(time) if times.last().is_some_and(|last| time < *last) => {
                return fault(
                    format!("{time} stands behind {}", times[times.len() - 1]),
                    "list the times in their order".into(),
                );
            }
            Ok(time) => times.push(time),
            Err(error) => {
                let (message, remedy) = time_fault(error);
                return fault(message, remedy);
            }
        }
    }
    if times.is_empty() {
        let remedy = "write one time per line, such as 5ms or 0.005, or arrivals = \"none\"".into();
        return Err(file::Fault { message: "the file holds no time".into(), remedy });
    }
    Ok(times.into())
}

fn in_seconds(written: &str) -> Result<Duration, ParseDurationError> {
    match written.parse() {
        Err(ParseDurationError::MissingUnit(_)) => format!("{written}s").parse(),
        read => read,
    }
}
