//! Values of the kinds that keys take, with a message and a remedy for everything else.

use super::section::{Findings, Given, Section};
use crate::OperationId;
use crate::description::{Criticality, Join};
use crate::hierarchy::SchedulerKind;
use crate::inheritance::{Deadline, INHERITED, StatedCriticality};
use crate::keys::{CPUS, Key, Kind, Literal};
use crate::keyword::UnknownKeyword;
use crate::link::LossRate;
use crate::suggest::{known_words, nearest, time_fault};
use std::ops::Range;
use std::str::FromStr;
use talea_guarantee::scheduler::UnknownKind;
use talea_time::Duration;
use toml::Spanned;
use toml::de::{DeInteger, DeValue};

/// What is wrong with a value, and what to write.
pub(super) struct Misfit {
    pub span: Range<usize>,
    pub message: String,
    pub remedy: String,
}

pub(super) type Reading<T> = Result<T, Misfit>;

/// A value for `key`, for remedies.
pub(super) fn sample(key: &Key) -> &'static str {
    match &key.kind {
        Kind::Name => "\"a-name\"",
        Kind::Title => "\"cause to effect\"",
        Kind::NodeName => "\"the-node\"",
        Kind::OutputName => "\"task.output\"",
        Kind::OperationNames => "[\"the-cause\", \"the-effect\"]",
        Kind::Fields => "{ temperature = { uniform = [20, 90] } }",
        Kind::ChannelName => "\"the-channel\"",
        Kind::Properties => "{ OrderPolicy = \"Priority\" }",
        Kind::EventType => "\"Robot/Battery\"",
        Kind::EventTypes => "[\"Robot/*\"]",
        Kind::Constraint => "\"charge < 20\"",
        Kind::Condition => "{ all = [\"Robot/Tilt\", \"Robot/Battery\"], within = \"100ms\" }",
        Kind::Arrivals => "{ sporadic = \"20ms\" }",
        Kind::SchedulerName => "\"the-scheduler-above\"",
        Kind::LanesName => "\"the-lanes\"",
        Kind::Guarantee => "\"RESBH 5ms 33ms\"",
        Kind::Work => "\"cpu-bound\" or work = { burst = \"5ms\", period = \"33ms\" }",
        Kind::Plan => "[{ start = \"0ms\", duration = \"5ms\", child = \"a-thread\" }]",
        Kind::Command => "[\"program\", \"argument\"]",
        Kind::TwoNodes => "[\"one-node\", \"another-node\"]",
        Kind::Share => "0.01",
        Kind::SubtaskNames => "[\"the-subtask-before\"]",
        Kind::Time if key.name == "period" => "\"50ms\"",
        Kind::Deadline => "\"50ms\"",
        Kind::Time => "\"1ms\"",
        Kind::Scheduler => "\"fixed-priority\"",
        Kind::Join => "\"first\"",
        Kind::Word(_) | Kind::OneOf(_) => "\"...\"",
        Kind::Criticality => "\"high\"",
        Kind::Integer { .. } => "1",
        Kind::Cpus => "[0]",
        Kind::Execution => "\"5ms\" or exec = { uniform = [\"1ms\", \"5ms\"] }",
        Kind::One(_) | Kind::Many(_) | Kind::WordOr(..) | Kind::Later(_) | Kind::Former(_) => "...",
    }
}

/// What a value of `kind` is called, with its article.
fn called(kind: &Kind) -> &'static str {
    match kind {
        Kind::Name | Kind::Title => "a text",
        Kind::OutputName => "the name of an output",
        Kind::OperationNames => "a list of names of operations",
        Kind::Fields => "a table of fields",
        Kind::ChannelName => "the name of a channel",
        Kind::Properties => "a table of properties",
        Kind::EventType => "a type of events, Domain/Name",
        Kind::EventTypes => "a list of types of events",
        Kind::Constraint => "a constraint as a text",
        Kind::Condition => "a type of events, or a table such as { all = [types] }",
        Kind::Arrivals => "\"none\", or a table with periodic, sporadic, poisson, list or file",
        Kind::WordOr(..) => "a word or a table",
        Kind::NodeName => "the name of a node",
        Kind::SchedulerName => "the name of a scheduler",
        Kind::LanesName => "the name of a scheduler of kind lanes",
        Kind::Guarantee => "a guarantee as a text",
        Kind::Work => "\"cpu-bound\", or a table with burst and period",
        Kind::Plan => "a list of entries, or a table with file",
        Kind::Command => "a list of texts, the program and its arguments",
        Kind::TwoNodes => "a list of the names of two nodes",
        Kind::Share => "a number from 0 to 1",
        Kind::SubtaskNames => "a list of names of subtasks",
        Kind::Time => "a time with a unit",
        Kind::Deadline => "a time with a unit, or \"inherited\"",
        Kind::Join => "\"all\", \"first\" or a whole number",
        Kind::Word(_) | Kind::OneOf(_) | Kind::Scheduler => "a text",
        Kind::Criticality => {
            "a number from 0 to 4, a name from \"very-low\" to \"very-high\", or \"inherited\""
        }
        Kind::Integer { .. } => "a whole number",
        Kind::Cpus => "a list of processor numbers",
        Kind::Execution => "a time, or a table with uniform, list or trace",
        Kind::One(_) => "one table",
        Kind::Many(_) => "a list of tables",
        Kind::Later(_) | Kind::Former(_) => "nothing this version knows",
    }
}

/// What the file has instead, with its article.
pub(super) fn found(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time of day",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// The misfit of a value of another type than its kind has.
pub(super) fn wrong_type(key: &Key, value: &Spanned<DeValue<'_>>) -> Misfit {
    Misfit {
        span: value.span(),
        message: format!("\"{}\" is {}, not {}", key.name, called(&key.kind), found(value.get_ref())),
        remedy: format!("write {} = {}", key.name, sample(key)),
    }
}

impl<'t> Section<'t> {
    /// The value of `name` by `read`, or of its default by `literal`. `None` if it is absent without a
    /// default, or cannot be read, which is reported.
    pub(super) fn value<T>(
        &self,
        name: &'static str,
        findings: &mut Findings,
        literal: impl FnOnce(&'static Literal) -> T,
        read: impl FnOnce(&'static Key, &'t Spanned<DeValue<'t>>) -> Reading<T>,
    ) -> Option<T> {
        let (key, given) = self.given(name);
        match given {
            Given::Nothing => None,
            Given::Default(default) => Some(literal(default)),
            Given::Value(value) => match read(key, value) {
                Ok(value) => Some(value),
                Err(Misfit { span, message, remedy }) => {
                    findings.unread.insert(self.item.place(name));
                    findings.error(span, message, remedy);
                    None
                }
            },
        }
    }

    /// A name or a reference to one.
    pub(super) fn text(&self, name: &'static str, findings: &mut Findings) -> Option<String> {
        self.value(name, findings, |_| no_default(name), |key, value| text(key, value).map(str::to_owned))
    }

    /// A time.
    pub(super) fn time(&self, name: &'static str, findings: &mut Findings) -> Option<Duration> {
        self.value(
            name,
            findings,
            |default| word_of(default).parse().expect("declared defaults are times"),
            time,
        )
    }

    /// A word of a closed list.
    pub(super) fn word<T: FromStr>(&self, name: &'static str, findings: &mut Findings) -> Option<T> {
        let parse = |word: &str| word.parse().ok().expect("declared words are words of the type");
        self.value(
            name,
            findings,
            |default| parse(word_of(default)),
            |key, value| word(key, value).map(parse),
        )
    }

    /// A criticality by number or name, or that it is inherited.
    pub(super) fn criticality(
        &self,
        name: &'static str,
        findings: &mut Findings,
    ) -> Option<StatedCriticality> {
        let named =
            |text: &str| StatedCriticality::Own(text.parse().expect("the declared default is a name"));
        self.value(name, findings, |default| named(word_of(default)), criticality)
    }

    /// A whole number in its declared range.
    pub(super) fn integer(&self, name: &'static str, findings: &mut Findings) -> Option<i128> {
        let default = |literal: &Literal| match literal {
            Literal::Integer(integer) => i128::from(*integer),
            _ => no_default(name),
        };
        self.value(name, findings, default, |key, value| {
            let Kind::Integer { min, max } = key.kind else {
                unreachable!("{name} is declared as an integer")
            };
            integer(key, value, min..=max)
        })
    }

    /// Processor numbers.
    pub(super) fn cpus(&self, name: &'static str, findings: &mut Findings) -> Option<Vec<u16>> {
        let default = |literal: &Literal| match literal {
            Literal::Integers(cpus) => cpus.iter().map(|cpu| *cpu as u16).collect(),
            _ => no_default(name),
        };
        self.value(name, findings, default, |key, value| {
            let cpu = |element| integer(key, element, CPUS).map(|cpu| cpu as u16);
            elements(key, value)?.iter().map(cpu).collect()
        })
    }

    /// A list of names.
    pub(super) fn names(&self, name: &'static str, findings: &mut Findings) -> Option<Vec<String>> {
        self.value(
            name,
            findings,
            |_| no_default(name),
            |key, value| {
                elements(key, value)?.iter().map(|element| text(key, element).map(str::to_owned)).collect()
            },
        )
    }

    /// The names of two nodes.
    pub(super) fn two_nodes(&self, name: &'static str, findings: &mut Findings) -> Option<[String; 2]> {
        self.other(name, findings, |key, value| match elements(key, value)? {
            [one, other] => Ok([text(key, one)?.to_owned(), text(key, other)?.to_owned()]),
            names => Err(Misfit {
                span: value.span(),
                message: format!("\"{}\" names {} nodes instead of two", key.name, names.len()),
                remedy: format!(
                    "write {} = {}; each pair of nodes has a link of its own",
                    key.name,
                    sample(key)
                ),
            }),
        })
    }

    /// A share of messages.
    pub(super) fn share(&self, name: &'static str, findings: &mut Findings) -> Option<LossRate> {
        self.value(
            name,
            findings,
            |_| LossRate::NONE,
            |key, value| {
                let written = match value.get_ref() {
                    DeValue::Integer(written) => number(written).map(|number| number as f64),
                    DeValue::Float(written) => written.as_str().replace('_', "").parse().ok(),
                    _ => return Err(wrong_type(key, value)),
                };
                written.and_then(LossRate::from_share).ok_or_else(|| Misfit {
                    span: value.span(),
                    message: format!("\"{}\" is out of range", key.name),
                    remedy: "write a number from 0 to 1 with at most nine digits behind the point".into(),
                })
            },
        )
    }

    /// How many predecessors a subtask waits for.
    pub(super) fn join(&self, name: &'static str, findings: &mut Findings) -> Option<Join> {
        let words = [Join::All, Join::First];
        self.value(
            name,
            findings,
            |_| Join::All,
            |key, value| match value.get_ref() {
                DeValue::String(written) => {
                    words.into_iter().find(|join| join.to_string() == *written.as_ref()).ok_or_else(|| {
                        let known = words.map(|join| join.to_string());
                        no_such_word(key, value, written, &known.each_ref().map(String::as_str))
                    })
                }
                DeValue::Integer(_) => {
                    let count = integer(key, value, 1..=OperationId::LIMIT as i128)?;
                    Ok(Join::Count(count as u32))
                }
                _ => Err(wrong_type(key, value)),
            },
        )
    }

    /// A deadline: a time, or that it is inherited.
    pub(super) fn deadline(&self, name: &'static str, findings: &mut Findings) -> Option<Deadline> {
        self.value(
            name,
            findings,
            |_| no_default(name),
            |key, value| match value.get_ref() {
                DeValue::String(written) if written == INHERITED => Ok(Deadline::Inherited),
                // A word rather than a time that went wrong.
                DeValue::String(written) if written.trim_start().starts_with(char::is_alphabetic) => {
                    let misfit = no_such_word(key, value, written, &[INHERITED]);
                    let is_meant = nearest(written.trim(), [INHERITED]).is_some();
                    let either = || format!("write a time, such as {}, or \"{INHERITED}\"", sample(key));
                    Err(Misfit { remedy: if is_meant { misfit.remedy } else { either() }, ..misfit })
                }
                _ => time(key, value).map(Deadline::After),
            },
        )
    }

    /// A value read by `read`, for a key without a default.
    pub(super) fn other<T>(
        &self,
        name: &'static str,
        findings: &mut Findings,
        read: impl FnOnce(&'static Key, &'t Spanned<DeValue<'t>>) -> Reading<T>,
    ) -> Option<T> {
        self.value(name, findings, |_| no_default(name), read)
    }
}

fn no_default(name: &str) -> ! {
    unreachable!("\"{name}\" is declared with a default of another kind")
}

fn word_of(literal: &Literal) -> &'static str {
    match literal {
        Literal::Text(text) => text,
        _ => unreachable!("the default is declared as a text"),
    }
}

pub(super) fn text<'v>(key: &Key, value: &'v Spanned<DeValue<'_>>) -> Reading<&'v str> {
    value.get_ref().as_str().ok_or_else(|| wrong_type(key, value))
}

/// The elements of a list.
pub(super) fn elements<'v, 'i>(
    key: &Key,
    value: &'v Spanned<DeValue<'i>>,
) -> Reading<&'v [Spanned<DeValue<'i>>]> {
    value.get_ref().as_array().map(|array| &array[..]).ok_or_else(|| wrong_type(key, value))
}

/// A time; a bare number gets its own message because it is the most common mistake.
pub(super) fn time(key: &Key, value: &Spanned<DeValue<'_>>) -> Reading<Duration> {
    let written = match value.get_ref() {
        DeValue::String(text) => text.as_ref(),
        DeValue::Integer(integer) => {
            let number = integer.to_string();
            return Err(unit_missing(key, value.span(), &number));
        }
        DeValue::Float(float) => return Err(unit_missing(key, value.span(), float.as_str())),
        _ => return Err(wrong_type(key, value)),
    };
    written.parse().map_err(|error| {
        let (fault, remedy) = time_fault(error);
        Misfit { span: value.span(), message: format!("\"{}\": {fault}", key.name), remedy }
    })
}

fn unit_missing(key: &Key, span: Range<usize>, number: &str) -> Misfit {
    Misfit {
        span,
        message: format!("\"{}\": the time {number} has no unit", key.name),
        remedy: format!("write \"{number}ms\", or another of the units ns, us, ms, s, min, h"),
    }
}

fn word<'v>(key: &Key, value: &'v Spanned<DeValue<'_>>) -> Reading<&'v str> {
    let Kind::Word(known) = key.kind else { unreachable!("\"{}\" is declared as a word", key.name) };
    let word = text(key, value)?;
    let known = known();
    if known.contains(&word) {
        return Ok(word);
    }
    Err(no_such_word(key, value, word, &known))
}

/// One of the words of a list.
pub(super) fn one_of(key: &Key, value: &Spanned<DeValue<'_>>) -> Reading<&'static str> {
    let Kind::OneOf(words) = key.kind else { unreachable!("\"{}\" is declared as a word", key.name) };
    let written = text(key, value)?;
    words
        .iter()
        .copied()
        .find(|word| *word == written)
        .ok_or_else(|| no_such_word(key, value, written, words))
}

/// A kind of scheduler by its name or a synonym.
pub(super) fn scheduler_kind(key: &Key, value: &Spanned<DeValue<'_>>) -> Reading<SchedulerKind> {
    let written = text(key, value)?;
    written.parse().map_err(|unknown: UnknownKind| Misfit {
        span: value.span(),
        message: format!("\"{}\" cannot be \"{written}\"", key.name),
        remedy: unknown.remedy(),
    })
}

fn no_such_word(key: &Key, value: &Spanned<DeValue<'_>>, written: &str, known: &[&str]) -> Misfit {
    Misfit {
        span: value.span(),
        message: format!("\"{}\" cannot be \"{written}\"", key.name),
        remedy: known_words(written, known.iter().copied()),
    }
}

fn criticality(key: &Key, value: &Spanned<DeValue<'_>>) -> Reading<StatedCriticality> {
    match value.get_ref() {
        DeValue::Integer(_) => {
            let level = integer(key, value, 0..=Criticality::ALL.len() as i128 - 1)?;
            Ok(StatedCriticality::Own(Criticality::from_level(level as u8).expect("the range was checked")))
        }
        DeValue::String(name) if name == INHERITED => Ok(StatedCriticality::Inherited),
        DeValue::String(name) => {
            name.parse().map(StatedCriticality::Own).map_err(|unknown: UnknownKeyword| Misfit {
                span: value.span(),
                message: format!("\"{}\" cannot be \"{name}\"", key.name),
                remedy: Criticality::meant_by(name).map_or_else(
                    || known_words(name, unknown.known.iter().copied().chain([INHERITED])),
                    Into::into,
                ),
            })
        }
        _ => Err(wrong_type(key, value)),
    }
}

pub(super) fn integer(
    key: &Key,
    value: &Spanned<DeValue<'_>>,
    range: std::ops::RangeInclusive<i128>,
) -> Reading<i128> {
    let DeValue::Integer(written) = value.get_ref() else {
        return Err(wrong_type(key, value));
    };
    number(written).filter(|number| range.contains(number)).ok_or_else(|| Misfit {
        span: value.span(),
        message: format!("\"{}\": {written} is out of range", key.name),
        remedy: format!("write a whole number from {} to {}", range.start(), range.end()),
    })
}

fn number(written: &DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(written.as_str(), written.radix()).ok()
}
