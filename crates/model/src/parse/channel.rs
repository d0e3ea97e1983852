//! Channels, what operations publish into them and what tasks subscribe to.

use super::section::{Findings, Section};
use super::values::{Misfit, Reading, found, wrong_type};
use crate::builder::{PublicationBuilder, SubscriptionBuilder, TriggerBuilder};
use crate::keys::Key;
use crate::ports::Output;
use crate::suggest::known_words;
use talea_event::qos::{PropertyName, QosError, QosProblem, QosSettings};
use toml::Spanned;
use toml::de::DeValue;

pub(super) fn read_qos(section: &Section<'_>, findings: &mut Findings) -> QosSettings {
    section.other("qos", findings, properties).unwrap_or_default()
}

/// Properties by their standard names.
fn properties(key: &Key, value: &Spanned<DeValue<'_>>) -> Reading<QosSettings> {
    let DeValue::Table(table) = value.get_ref() else { return Err(wrong_type(key, value)) };
    let mut settings = QosSettings::new();
    for (name, value) in table {
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Boolean(flag) => flag.to_string(),
            other => {
                return Err(Misfit {
                    span: value.span(),
                    message: format!("the property {} is {}", name.get_ref(), found(other)),
                    remedy: "write a number, true or false, or a text such as \"Priority\" or \"20ms\""
                        .into(),
                });
            }
        };
        settings = settings.with_text(name.get_ref(), &text).map_err(|problem| {
            let QosProblem { property, error, allowed } = problem;
            match error {
                QosError::BadProperty => Misfit {
                    span: name.span(),
                    message: format!("there is no property \"{property}\""),
                    remedy: known_words(&property, PropertyName::ALL.iter().map(|known| known.as_str())),
                },
                _ => Misfit {
                    span: value.span(),
                    message: format!("the property {property} cannot be \"{text}\""),
                    remedy: allowed,
                },
            }
        })?;
    }
    Ok(settings)
}

/// An entry of `events`.
pub(super) fn read_publication(section: &Section<'_>, findings: &mut Findings) -> PublicationBuilder {
    let text = |key, findings: &mut Findings| section.text(key, findings).unwrap_or_default();
    let publication = PublicationBuilder::new(text("channel", findings), text("type", findings));
    let bytes = section.integer("bytes", findings).map_or(Output::BYTES_LIMIT, |bytes| bytes as u32);
    let fields = section.other("fields", findings, super::ports::fields).unwrap_or_default();
    let mut publication =
        fields.into_iter().fold(publication.bytes(bytes), |built, (name, values)| built.field(name, values));
    if let Some(priority) = section.integer("priority", findings) {
        publication = publication.priority(priority as i16);
    }
    match section.time("timeout", findings) {
        Some(timeout) => publication.timeout(timeout),
        None => publication,
    }
}

/// The table of `subscription`.
pub(super) fn read_subscription(section: &Section<'_>, findings: &mut Findings) -> TriggerBuilder {
    let mut subscription = SubscriptionBuilder::new(section.text("channel", findings).unwrap_or_default());
    if let Some(types) = section.names("types", findings) {
        subscription = subscription.types(types);
    }
    if let Some(filter) = section.text("filter", findings) {
        subscription = subscription.filter(filter);
    }
    if let Some(collect) = section.word("collect", findings) {
        subscription = subscription.all(collect);
    }
    if let Some(within) = section.time("within", findings) {
        subscription = subscription.within(within);
    }
    subscription.qos(read_qos(section, findings)).into()
}
