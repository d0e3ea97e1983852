//! What has to come of several events and over time.

use super::values::{Misfit, Reading, elements, found, integer, sample, time, wrong_type};
use crate::channel::Condition;
use crate::keys::Key;
use crate::suggest::known_words;
use std::ops::RangeInclusive;
use talea_event::{Collect, TypePattern};
use talea_time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The keys of which a table has exactly one, with what may stand beside it.
const FORMS: [(&str, &[&str]); 13] = [
    ("all", &["collect", "within"]),
    ("any", &[]),
    ("in_order", &["within"]),
    ("count", &["of", "within"]),
    ("unless", &["within"]),
    ("every", &[]),
    ("after", &[]),
    ("types", &[]),
    ("filter", &[]),
    ("not", &[]),
    ("all_of_one", &[]),
    ("source", &[]),
    ("mask", &["value"]),
];

/// What sources, masks and their values may be.
const WORDS: RangeInclusive<u32> = 0..=u32::MAX;

/// What may be counted up to.
const COUNTS: RangeInclusive<u32> = 2..=Condition::EVENTS_MOST as u32;

/// How deep conditions may be nested.
const DEPTH_LIMIT: usize = 16;

type Value<'t> = Spanned<DeValue<'t>>;

pub(super) fn read(key: &'static Key, value: &Value<'_>) -> Reading<Condition> {
    condition(key, value, 1)
}

fn condition(key: &'static Key, value: &Value<'_>, depth: usize) -> Reading<Condition> {
    let misfit = |message: String, remedy: String| Misfit { span: value.span(), message, remedy };
    if depth > DEPTH_LIMIT {
        let message = format!("\"{}\" is nested more than {DEPTH_LIMIT} deep", key.name);
        return Err(misfit(message, "let a task publish what part of it has come".into()));
    }
    let table = match value.get_ref() {
        DeValue::String(pattern) => return Ok(Condition::of_types([types(key, value, pattern)?])),
        DeValue::Table(table) => table,
        DeValue::Array(_) => {
            let message = format!("\"{}\" has a list where one condition belongs", key.name);
            return Err(misfit(
                message,
                "write { any = [...] }, { all = [...] } or { in_order = [...] }".into(),
            ));
        }
        _ => return Err(wrong_type(key, value)),
    };
    let given: Vec<&(&str, &[&str])> = FORMS.iter().filter(|(form, _)| table.contains_key(*form)).collect();
    let (form, beside) = match given[..] {
        [(form, beside)] => (*form, *beside),
        _ => {
            if let Some((name, _)) = table.iter().find(|(name, _)| !is_known(name.get_ref())) {
                return Err(unknown(key, name, FORMS.map(|(form, _)| form)));
            }
            let forms: Vec<&str> = given.iter().map(|(form, _)| *form).collect();
            let message = match forms[..] {
                [] => format!("a table of \"{}\" says nothing that has to come", key.name),
                _ => format!("a table of \"{}\" has {} at once", key.name, forms.join(" and ")),
            };
            let known = FORMS.map(|(form, _)| form).join(", ");
            return Err(misfit(message, format!("give exactly one of {known}; nest the others")));
        }
    };
    if let Some((name, _)) =
        table.iter().find(|(name, _)| name.get_ref() != form && !beside.contains(&name.get_ref().as_ref()))
    {
        let known: Vec<&str> = beside.iter().copied().chain([form]).collect();
        return match is_known(name.get_ref()) {
            true => Err(Misfit {
                span: name.span(),
                message: format!("\"{}\" does not go with {form}", name.get_ref()),
                remedy: match beside {
                    [] => "remove it".into(),
                    beside => format!("remove it; {form} goes with {}", beside.join(" and ")),
                },
            }),
            false => Err(unknown(key, name, known)),
        };
    }
    let within = || table.get("within").map(|within| limit(key, "within", within)).transpose();
    let content = &table[form];
    let inner = || condition(key, content, depth + 1).map(Box::new);
    let parts = || -> Reading<Vec<Condition>> {
        let each = |part| condition(key, part, depth + 1);
        let parts = list(key, form, content)?;
        parts.iter().map(each).collect()
    };
    Ok(match form {
        "all" => Condition::All { parts: parts()?, collect: collect(key, table)?, within: within()? },
        "any" => Condition::Any(parts()?),
        "in_order" => Condition::InOrder { parts: parts()?, within: within()? },
        "count" => {
            let Some(of) = table.get("of") else {
                let message = format!("count in \"{}\" has no of", key.name);
                let remedy = "write what is counted, as { count = 3, of = \"Robot/Battery\" }";
                return Err(misfit(message, remedy.into()));
            };
            let part = Box::new(condition(key, of, depth + 1)?);
            Condition::Times { part, count: number(key, form, content, &COUNTS)?, within: within()? }
        }
        "unless" => {
            let Some(within) = within()? else {
                let message = format!("unless in \"{}\" has no within", key.name);
                let remedy = "write how long the condition may fail to come, as { unless = \"Robot/Alive\", within = \"1s\" }";
                return Err(misfit(message, remedy.into()));
            };
            Condition::Unless { part: inner()?, within }
        }
        "every" => Condition::Every(limit(key, form, content)?),
        "after" => Condition::After(limit(key, form, content)?),
        "types" => {
            let pattern = |element: &Value<'_>| types(key, element, &text(key, form, element)?);
            let patterns: Reading<Vec<TypePattern>> = list(key, form, content)?.iter().map(pattern).collect();
            Condition::of_types(patterns?)
        }
        "filter" => Condition::Matching(text(key, form, content)?),
        "not" => Condition::Not(inner()?),
        "all_of_one" => Condition::AllOfOne(parts()?),
        "source" => Condition::Source(number(key, form, content, &WORDS)?),
        _ => {
            let Some(of) = table.get("value") else {
                let message = format!("mask in \"{}\" has no value", key.name);
                return Err(misfit(
                    message,
                    "write what the bits of the mask are, as { mask = 7, value = 3 }".into(),
                ));
            };
            Condition::Masked {
                mask: number(key, form, content, &WORDS)?,
                value: number(key, "value", of, &WORDS)?,
            }
        }
    })
}

fn is_known(name: &str) -> bool {
    FORMS.iter().any(|(form, beside)| name == *form || beside.contains(&name))
}

fn unknown<'k>(
    key: &Key,
    name: &Spanned<std::borrow::Cow<'_, str>>,
    known: impl IntoIterator<Item = &'k str> + Clone,
) -> Misfit {
    let message = format!("unknown key \"{}\" in \"{}\"", name.get_ref(), key.name);
    Misfit { span: name.span(), message, remedy: known_words(name.get_ref(), known) }
}

fn types(key: &Key, value: &Value<'_>, pattern: &str) -> Reading<TypePattern> {
    pattern.parse().map_err(|error| Misfit {
        span: value.span(),
        message: format!("\"{}\": {error}", key.name),
        remedy: "write Domain/Name, Domain/Begin* or Domain".into(),
    })
}

fn text(key: &Key, form: &str, value: &Value<'_>) -> Reading<String> {
    value.get_ref().as_str().map(str::to_owned).ok_or_else(|| Misfit {
        span: value.span(),
        message: format!("{form} in \"{}\" holds {} where a text belongs", key.name, found(value.get_ref())),
        remedy: format!("write it in quotes, as in {}", sample(key)),
    })
}

fn list<'v, 't>(key: &Key, form: &str, value: &'v Value<'t>) -> Reading<&'v [Value<'t>]> {
    let misfit =
        |message: String, remedy: &str| Misfit { span: value.span(), message, remedy: remedy.into() };
    match elements(key, value) {
        Ok([]) => {
            Err(misfit(format!("{form} in \"{}\" is empty", key.name), "list what has to come, or remove it"))
        }
        Ok(all) => Ok(all),
        Err(_) => {
            let message = format!("{form} in \"{}\" is a list, not {}", key.name, found(value.get_ref()));
            Err(misfit(message, &format!("write {form} = [...]")))
        }
    }
}

/// A time within the table, which messages call by its own key.
fn limit(key: &Key, name: &str, value: &Value<'_>) -> Reading<Duration> {
    match value.get_ref() {
        DeValue::String(_) | DeValue::Integer(_) | DeValue::Float(_) => {
            time(key, value).map_err(|misfit| of_part(key, name, misfit))
        }
        other => Err(Misfit {
            span: value.span(),
            message: format!("{name} in \"{}\" is a time with a unit, not {}", key.name, found(other)),
            remedy: format!("write {name} = \"50ms\""),
        }),
    }
}

fn number(key: &Key, name: &str, value: &Value<'_>, meant: &RangeInclusive<u32>) -> Reading<u32> {
    let remedy = || format!("write a whole number from {} to {}", meant.start(), meant.end());
    match value.get_ref() {
        // Whether the condition makes sense is asked of all at once, when all is read.
        DeValue::Integer(_) => integer(key, value, 0..=u32::MAX.into())
            .map(|number| number as u32)
            .map_err(|misfit| Misfit { remedy: remedy(), ..of_part(key, name, misfit) }),
        other => Err(Misfit {
            span: value.span(),
            message: format!("{name} in \"{}\" is a whole number, not {}", key.name, found(other)),
            remedy: remedy(),
        }),
    }
}

fn of_part(key: &Key, name: &str, misfit: Misfit) -> Misfit {
    let own = format!("\"{}\"", key.name);
    Misfit { message: misfit.message.replacen(&own, &format!("{name} in {own}"), 1), ..misfit }
}

fn collect(key: &'static Key, table: &DeTable<'_>) -> Reading<Collect> {
    let Some(value) = table.get("collect") else { return Ok(Collect::First) };
    let written = text(key, "collect", value)?;
    let known = Collect::ALL.iter().copied();
    known.clone().find(|collect| collect.keyword() == written).ok_or_else(|| {
        let words: Vec<&str> = known.map(Collect::keyword).collect();
        Misfit {
            span: value.span(),
            message: format!("collect in \"{}\" cannot be \"{written}\"", key.name),
            remedy: known_words(&written, words),
        }
    })
}
