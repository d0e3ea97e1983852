//! Attributes of SimSo's elements as values.

use crate::Effect;
use crate::names::shown;
use crate::number::nanoseconds;
use crate::reading::Reading;
use roxmltree::Node;
use std::ops::Range;
use talea_time::Duration;

/// Nanoseconds in SimSo's unit of time.
const MS: i64 = 1_000_000;

/// An element whose attributes are read.
pub(super) struct Element<'a, 't> {
    node: Node<'a, 't>,
    /// How messages call it.
    pub label: String,
}

impl<'a, 't> Element<'a, 't> {
    pub fn new(node: Node<'a, 't>, label: String) -> Self {
        Element { node, label }
    }

    /// The name in the start tag.
    pub fn span(&self) -> Range<usize> {
        let start = self.node.range().start + 1;
        start..start + self.node.tag_name().name().len()
    }

    /// The stretch of an attribute, or of the element without it.
    pub fn span_of(&self, key: &str) -> Range<usize> {
        self.node.attribute_node(key).map_or(self.span(), |attribute| attribute.range())
    }

    pub fn text(&self, key: &str) -> Option<&'a str> {
        self.node.attribute(key)
    }

    /// An attribute that must be there.
    pub fn required(&self, key: &'static str, example: &str, reading: &mut Reading<'_>) -> Option<&'a str> {
        let text = self.text(key);
        if text.is_none() {
            let message = format!("{} has no {key}", self.label);
            reading.error(self.span(), message, format!("write {key}=\"{example}\""));
        }
        text
    }

    /// A time in milliseconds that must be there.
    pub fn required_time(&self, key: &'static str, reading: &mut Reading<'_>) -> Option<Duration> {
        self.required(key, "10.0", reading)?;
        self.time(key, reading)
    }

    /// A time in milliseconds, if it is there and one.
    pub fn time(&self, key: &'static str, reading: &mut Reading<'_>) -> Option<Duration> {
        self.time_of(key, self.text(key)?, reading)
    }

    /// One time out of the attribute `key`.
    pub fn time_of(&self, key: &'static str, text: &str, reading: &mut Reading<'_>) -> Option<Duration> {
        match nanoseconds(text, MS) {
            Ok(time) => {
                let duration = Duration::from_nanos(time.ns);
                if time.rounded {
                    let what = format!("is finer than a nanosecond and becomes {duration}");
                    reading.lose(Effect::Approximated, self.span_of(key), &self.label, key, what);
                }
                Some(duration)
            }
            Err(fault) => {
                let message = format!("{}: the {key} {} {fault}", self.label, shown(text));
                reading.error(self.span_of(key), message, "write milliseconds, such as 10 or 2.5");
                None
            }
        }
    }

    /// A whole number, if it is there and one.
    pub fn integer(&self, key: &'static str, reading: &mut Reading<'_>) -> Option<i64> {
        let text = self.text(key)?;
        let number = text.trim().parse();
        if number.is_err() {
            let message = format!("{}: the {key} {} is not a whole number", self.label, shown(text));
            reading.error(self.span_of(key), message, "write one, such as 1");
        }
        number.ok()
    }

    /// A number of cycles as time. SimSo cuts off fractions.
    pub fn cycles(
        &self,
        key: &'static str,
        cycles_per_ms: i64,
        reading: &mut Reading<'_>,
    ) -> Option<Duration> {
        let text = self.text(key)?;
        match nanoseconds(text, 1) {
            Ok(cycles) => {
                let ns = i128::from(cycles.ns) * i128::from(MS) / i128::from(cycles_per_ms);
                Some(Duration::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX)))
            }
            Err(fault) => {
                let message = format!("{}: the {key} {} {fault}", self.label, shown(text));
                reading.error(self.span_of(key), message, "write a number of cycles, such as 0");
                None
            }
        }
    }

    /// Reports attributes that are none of `known`; those of `fields` have a meaning for a scheduler only.
    pub fn note_unknown(&self, known: &[&str], fields: &[&str], reading: &mut Reading<'_>) {
        for attribute in self.node.attributes() {
            let name = attribute.name();
            if known.contains(&name) {
                continue;
            }
            if fields.contains(&name) {
                let what = "is a field for a scheduler of one's own, which no strategy reads";
                reading.lose(Effect::Lost, attribute.range(), &self.label, name.to_owned(), what);
            } else {
                reading.ignore(attribute.range(), &self.label, name, "SimSo", known.iter().copied());
            }
        }
    }
}
