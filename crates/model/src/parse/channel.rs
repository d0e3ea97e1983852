//! Channels, what operations publish into them and what tasks subscribe to.

use super::condition;
use super::section::{Findings, Item, Section};
use super::tables::{many, one};
use super::values::{Misfit, Reading, found, wrong_type};
use crate::TIME_LIMIT;
use crate::builder::{PublicationBuilder, SubscriptionBuilder};
use crate::channel::{Mapped, SubscriptionOwner};
use crate::keys::Key;
use crate::ports::Output;
use crate::suggest::known_words;
use std::ops::Range;
use talea_event::qos::{PropertyName, PropertyValue, QosError, QosProblem, QosSettings};
use toml::Spanned;
use toml::de::DeValue;

pub(super) fn read_qos(section: &Section<'_>, findings: &mut Findings) -> QosSettings {
    let mut misfits = Vec::new();
    let read = |key: &'static Key, value: &_| properties(key, value, &mut misfits);
    let settings = section.other("qos", findings, read).unwrap_or_default();
    misfits.into_iter().for_each(|Misfit { span, message, remedy }| findings.error(span, message, remedy));
    settings
}

/// Properties by their standard names: those that can be read, with what is wrong with each of the others.
fn properties(key: &Key, value: &Spanned<DeValue<'_>>, misfits: &mut Vec<Misfit>) -> Reading<QosSettings> {
    let DeValue::Table(table) = value.get_ref() else { return Err(wrong_type(key, value)) };
    let mut settings = QosSettings::new();
    for (name, value) in table {
        match property(name.get_ref(), name.span(), value) {
            Ok((property, value)) => settings = settings.with(property, value),
            Err(misfit) => misfits.push(misfit),
        }
    }
    Ok(settings)
}

fn property(
    name: &str,
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> Reading<(PropertyName, PropertyValue)> {
    let text = match value.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        other => {
            return Err(Misfit {
                span: value.span(),
                message: format!("the property {name} is {}", found(other)),
                remedy: "write a number, true or false, or a text such as \"Priority\" or \"20ms\"".into(),
            });
        }
    };
    let read = PropertyName::named(name).and_then(|property| Ok((property, property.parse(&text)?)));
    read.map_err(|QosProblem { property, error, allowed }| match error {
        QosError::BadProperty => Misfit {
            span,
            message: format!("there is no property \"{property}\""),
            remedy: known_words(&property, PropertyName::ALL.iter().map(|known| known.as_str())),
        },
        _ => Misfit {
            span: value.span(),
            message: format!("the property {property} cannot be \"{text}\""),
            remedy: allowed,
        },
    })
}

/// An entry of `events`.
pub(super) fn read_publication(section: &Section<'_>, findings: &mut Findings) -> PublicationBuilder {
    let text = |key, findings: &mut Findings| section.text(key, findings).unwrap_or_default();
    let publication = PublicationBuilder::new(text("channel", findings), text("type", findings));
    let bytes = section.integer("bytes", findings).map_or(Output::BYTES_LIMIT, |bytes| bytes as u32);
    let fields = section.other("fields", findings, super::ports::fields).unwrap_or_default();
    let publication =
        fields.into_iter().fold(publication.bytes(bytes), |built, (name, values)| built.field(name, values));
    let of_header = section.other("header_fields", findings, super::ports::fields).unwrap_or_default();
    let mut publication =
        of_header.into_iter().fold(publication, |built, (name, values)| built.header_field(name, values));
    if let Some(source) = section.integer("source", findings) {
        publication = publication.source(source as u32);
    }
    if let Some(priority) = section.integer("priority", findings) {
        publication = publication.priority(priority as i16);
    }
    match section.time("timeout", findings) {
        Some(timeout) => publication.timeout(timeout),
        None => publication,
    }
}

/// The table of `subscription`, with the entries of its mapping filters.
pub(super) struct SubscriptionSections<'t> {
    pub own: Section<'t>,
    pub priorities: Vec<Section<'t>>,
    pub timeouts: Vec<Section<'t>>,
}

impl<'t> SubscriptionSections<'t> {
    /// Takes the table, if there is one, and the entries in it, of a task or subtask whose it is.
    pub(super) fn open(
        section: &Section<'t>,
        owner: SubscriptionOwner,
        findings: &mut Findings,
    ) -> Option<Self> {
        let own = one(section, "subscription", Item::Subscription(owner), findings)?;
        let priorities = many(&own, "priority_by", |entry| Item::PriorityBy(owner, entry), findings);
        let timeouts = many(&own, "timeout_by", |entry| Item::TimeoutBy(owner, entry), findings);
        Some(SubscriptionSections { own, priorities, timeouts })
    }
}

pub(super) fn read_subscription(
    SubscriptionSections { own, priorities, timeouts }: &SubscriptionSections<'_>,
    findings: &mut Findings,
) -> SubscriptionBuilder {
    let mut subscription = SubscriptionBuilder::new(own.text("channel", findings).unwrap_or_default());
    if let Some(types) = own.names("types", findings) {
        subscription = subscription.types(types);
    }
    if let Some(filter) = own.text("filter", findings) {
        subscription = subscription.filter(filter);
    }
    if let Some(condition) = own.other("when", findings, condition::read) {
        subscription = subscription.when(condition);
    }
    let mut priority = |entry: &Section<'_>| Mapped {
        filter: entry.text("filter", findings),
        value: entry.integer("priority", findings).unwrap_or_default() as i16,
    };
    subscription = subscription.priority_by(priorities.iter().map(&mut priority).collect::<Vec<_>>());
    // The longest time stands in for one that cannot be read.
    let mut timeout = |entry: &Section<'_>| Mapped {
        filter: entry.text("filter", findings),
        value: entry.time("timeout", findings).unwrap_or(TIME_LIMIT),
    };
    subscription = subscription.timeout_by(timeouts.iter().map(&mut timeout).collect::<Vec<_>>());
    if let Some(take) = own.word("take", findings) {
        subscription = subscription.take(take);
    }
    subscription.qos(read_qos(own, findings))
}
