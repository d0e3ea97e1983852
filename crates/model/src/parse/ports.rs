//! What operations exchange: the entries of `outputs`, `inputs` and `events`, and `subscription`.

use super::channel::{SubscriptionSections, read_publication, read_subscription};
use super::section::{Findings, Item, Section};
use super::tables::many;
use super::values::{Misfit, Reading, found, integer, one_of, wrong_type};
use crate::builder::{InputBuilder, OutputBuilder, PublicationBuilder, SubscriptionBuilder};
use crate::channel::SubscriptionOwner;
use crate::keys::Key;
use crate::ports::{FieldValues, Full, Output, Take};
use crate::suggest::known_words;
use talea_time::Duration;
use toml::Spanned;
use toml::de::DeValue;

/// The forms of a field that are tables.
const FORMS: [&str; 2] = ["uniform", "list"];

/// Any number that a field can hold.
const NUMBERS: std::ops::RangeInclusive<i128> = i64::MIN as i128..=i64::MAX as i128;

/// Where the ports of an operation stand.
pub(super) struct Ports<'t> {
    pub outputs: Vec<Section<'t>>,
    pub inputs: Vec<Section<'t>>,
    pub events: Vec<Section<'t>>,
    pub subscription: Option<SubscriptionSections<'t>>,
}

impl<'t> Ports<'t> {
    /// Takes the entries in the table of a subtask, or of a task that has one; with whose a subscription there is.
    pub(super) fn open(
        own: &Section<'t>,
        (task, subtask): (usize, usize),
        subscriber: SubscriptionOwner,
        findings: &mut Findings,
    ) -> Self {
        Ports {
            outputs: many(own, "outputs", |output| Item::Output(task, subtask, output), findings),
            inputs: many(own, "inputs", |input| Item::Input(task, subtask, input), findings),
            events: many(own, "events", |event| Item::Publication(task, subtask, event), findings),
            subscription: SubscriptionSections::open(own, subscriber, findings),
        }
    }

    pub(super) fn read_outputs(&self, findings: &mut Findings) -> impl Iterator<Item = OutputBuilder> {
        self.outputs.iter().map(|section| read_output(section, findings))
    }

    pub(super) fn read_inputs(&self, findings: &mut Findings) -> impl Iterator<Item = InputBuilder> {
        self.inputs.iter().map(|section| read_input(section, findings))
    }

    pub(super) fn read_events(&self, findings: &mut Findings) -> impl Iterator<Item = PublicationBuilder> {
        self.events.iter().map(|section| read_publication(section, findings))
    }

    pub(super) fn read_subscription(&self, findings: &mut Findings) -> Option<SubscriptionBuilder> {
        self.subscription.as_ref().map(|sections| read_subscription(sections, findings))
    }
}

fn read_output(section: &Section<'_>, findings: &mut Findings) -> OutputBuilder {
    let output = OutputBuilder::new(section.text("name", findings).unwrap_or_default());
    let bytes = section.integer("bytes", findings).map_or(Output::BYTES_LIMIT, |bytes| bytes as u32);
    let fields = section.other("fields", findings, fields).unwrap_or_default();
    fields.into_iter().fold(output.bytes(bytes), |output, (name, values)| output.field(name, values))
}

/// The fields in the order in which they are written.
pub(super) fn fields(key: &Key, value: &Spanned<DeValue<'_>>) -> Reading<Vec<(String, FieldValues)>> {
    let DeValue::Table(table) = value.get_ref() else { return Err(wrong_type(key, value)) };
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let field = |(name, value): (&Spanned<_>, _)| {
        let name: &std::borrow::Cow<'_, str> = name.get_ref();
        Ok((name.to_string(), field(key, name, value)?))
    };
    entries.into_iter().map(field).collect()
}

fn field(key: &Key, name: &str, value: &Spanned<DeValue<'_>>) -> Reading<FieldValues> {
    let misfit = |message: String, remedy: String| Misfit { span: value.span(), message, remedy };
    let number = |value| {
        integer(key, value, NUMBERS).map_err(|misfit| Misfit {
            message: format!("a number of field \"{name}\" is a whole number of 64 bits"),
            remedy: "write one without a point and without quotes".into(),
            ..misfit
        })
    };
    let table = match value.get_ref() {
        DeValue::Integer(_) => return number(value).map(|number| FieldValues::Constant(number as i64)),
        DeValue::Table(table) => table,
        other => {
            return Err(misfit(
                format!(
                    "field \"{name}\" is a whole number or a table with uniform or list, not {}",
                    found(other)
                ),
                format!("write {name} = 7, or {name} = {{ uniform = [20, 90] }}"),
            ));
        }
    };
    if let Some((form, _)) = table.iter().find(|(form, _)| !FORMS.contains(&form.get_ref().as_ref())) {
        let message = format!("unknown form \"{}\" of field \"{name}\"", form.get_ref());
        return Err(Misfit { span: form.span(), message, remedy: known_words(form.get_ref(), FORMS) });
    }
    let entries: Vec<_> = table.iter().collect();
    let [(form, content)] = entries[..] else {
        let message = format!("field \"{name}\" has {} forms", entries.len());
        return Err(misfit(message, "give exactly one of uniform, list".into()));
    };
    let DeValue::Array(list) = content.get_ref() else {
        let message =
            format!("{} of field \"{name}\" is a list, not {}", form.get_ref(), found(content.get_ref()));
        return Err(Misfit {
            span: content.span(),
            message,
            remedy: format!("write {} = [20, 90]", form.get_ref()),
        });
    };
    let numbers: Vec<i64> = list.iter().map(|element| Ok(number(element)? as i64)).collect::<Reading<_>>()?;
    match (form.get_ref().as_ref(), &numbers[..]) {
        ("list", _) => Ok(FieldValues::List(numbers.into())),
        (_, [low, high]) => Ok(FieldValues::Uniform(*low, *high)),
        _ => Err(Misfit {
            span: content.span(),
            message: format!("uniform of field \"{name}\" takes two numbers"),
            remedy: "write the least and the greatest: uniform = [20, 90]".into(),
        }),
    }
}

fn read_input(section: &Section<'_>, findings: &mut Findings) -> InputBuilder {
    let mut input = InputBuilder::new(section.text("name", findings).unwrap_or_default())
        .from(section.text("from", findings).unwrap_or_default());
    let take = section.other("take", findings, one_of);
    let is_unread = section.has("take") && take.is_none();
    input = match take {
        Some("instance") => input.instance(),
        Some("latest") => input.latest(),
        Some(_) => input.each(),
        // What depends on it is not reported.
        None if is_unread => input.take(Take::Each { capacity: 1, full: Full::Oldest }),
        None => input,
    };
    if let Some(capacity) = section.integer("capacity", findings) {
        input = input.capacity(capacity as u32);
    }
    match read_full(section, findings) {
        Some(full) => input.full(full),
        None => input,
    }
}

/// What happens to values when the queue is full, with its limit.
fn read_full(section: &Section<'_>, findings: &mut Findings) -> Option<Full> {
    let full = section.other("full", findings, one_of);
    let limit = section.time("limit", findings);
    match full {
        Some("block") => {
            if !section.has("limit") {
                let message = "full = \"block\" without a limit".into();
                findings.error(
                    section.span("full"),
                    message,
                    "add limit = \"1ms\", how long the producer waits at most",
                );
            }
            // A stand-in where there is none, or none that can be read.
            return Some(Full::Block { limit: limit.unwrap_or(Duration::from_nanos(1)) });
        }
        _ if section.has("limit") && (full.is_some() || !section.has("full")) => {
            let message = "a limit without full = \"block\"".into();
            findings.error(section.span("limit"), message, "remove it, or write full = \"block\" beside it");
        }
        _ => {}
    }
    full.map(|full| if full == "oldest" { Full::Oldest } else { Full::Newest })
}
