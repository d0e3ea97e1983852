//! Guarantees as text, in the published notation: the kind and its parameters, separated by blanks or commas.
//!
//! ```text
//! RESBH 5ms 33ms      RESBH 5, 33      PSBE 2/5 58ms      RESU 60%      PS 0.25      ALL
//! ```
//!
//! A time without a unit counts milliseconds, as in the paper. Numbers are exact: decimals, or fractions such as
//! `500/3ms`. Printing chooses the shorter of the two, always with a unit, and reads back as the same guarantee.

mod number;

use crate::exact::{Share, Span};
use crate::guarantee::{Guarantee, Kind, Reservation, ReservationError};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use thiserror::Error;

pub(crate) use number::{print_ratio, print_span};

/// Why a text is no guarantee, and where in it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{text}\", column {}: {problem}; {}", self.column(), self.problem.remedy())]
pub struct NotationError {
    text: String,
    at: Range<usize>,
    problem: NotationProblem,
}

impl NotationError {
    /// The bytes of the text that the problem is about; empty at the end where something is missing.
    pub fn at(&self) -> Range<usize> {
        self.at.clone()
    }

    /// The character at which the problem begins, from 1.
    pub fn column(&self) -> usize {
        self.text[..self.at.start].chars().count() + 1
    }

    /// What is wrong.
    pub fn problem(&self) -> &NotationProblem {
        &self.problem
    }
}

/// What is wrong with a guarantee as text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotationProblem {
    /// There is no text.
    #[error("there is no guarantee")]
    Empty,
    /// The first word is no kind of guarantee.
    #[error("unknown guarantee \"{0}\"")]
    UnknownKind(String),
    /// A parameter is missing.
    #[error("{kind} lacks its {}", parameters(*.kind)[*.given].name())]
    Missing {
        /// Kind of the guarantee.
        kind: Kind,
        /// How many parameters there are.
        given: usize,
    },
    /// A word after the last parameter.
    #[error("{kind} takes {}, and this is one more", count(parameters(*.kind).len()))]
    TooMany {
        /// Kind of the guarantee.
        kind: Kind,
    },
    /// A word that is no number.
    #[error("\"{0}\" is not a number")]
    NotANumber(String),
    /// A fraction over zero.
    #[error("\"{0}\" divides by zero")]
    DividesByZero(String),
    /// A number followed by something that is no unit.
    #[error("unknown unit \"{0}\"")]
    UnknownUnit(String),
    /// A share with a unit of time.
    #[error("a share is part of a processor and has no unit \"{0}\"")]
    UnitOfShare(String),
    /// A share above one.
    #[error("{0} is more than a whole processor")]
    AboveWhole(String),
    /// Amount and period do not make a reservation.
    #[error("{0}")]
    Reservation(#[from] ReservationError),
}

impl NotationProblem {
    /// What to write instead.
    pub fn remedy(&self) -> String {
        match self {
            NotationProblem::Empty => format!("write one of {}", kinds()),
            NotationProblem::UnknownKind(word) => match nearest(word) {
                Some(kind) => format!("did you mean {}?", form(kind)),
                None => format!("write one of {}", kinds()),
            },
            NotationProblem::Missing { kind, .. } | NotationProblem::TooMany { kind } => {
                format!("write it as {}", form(*kind))
            }
            NotationProblem::NotANumber(_) => "write a number such as 5, 0.5 or 2/5".into(),
            NotationProblem::DividesByZero(_) => "write a fraction over a positive number".into(),
            NotationProblem::UnknownUnit(_) => {
                "write one of ns, us, ms, s, min, h, or no unit for milliseconds".into()
            }
            NotationProblem::UnitOfShare(_) => "write a number from 0 to 1, or a percentage".into(),
            NotationProblem::AboveWhole(_) => {
                "write a share from 0 to 1; a fraction such as 2/5 or a percentage such as 40% will do".into()
            }
            NotationProblem::Reservation(ReservationError::NoPeriod) => "write a longer period".into(),
            NotationProblem::Reservation(ReservationError::AmountAbovePeriod) => {
                "write the amount first and the period second, as in RESBH 5ms 33ms".into()
            }
        }
    }
}

/// The kind that the author of `word` probably meant.
fn nearest(word: &str) -> Option<Kind> {
    let word = word.to_uppercase();
    let distance = |kind: &Kind| strsim::osa_distance(&word, kind.name());
    Kind::EVERY.into_iter().min_by_key(distance).filter(|kind| distance(kind) <= 1 + word.len() / 5)
}

fn kinds() -> String {
    Kind::EVERY.map(Kind::name).join(", ")
}

fn count(parameters: usize) -> &'static str {
    ["no parameter", "one parameter", "two parameters"][parameters]
}

/// A kind of parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parameter {
    Amount,
    Period,
    Share,
    Error,
}

impl Parameter {
    fn name(self) -> &'static str {
        match self {
            Parameter::Amount => "amount",
            Parameter::Period => "period",
            Parameter::Share => "share",
            Parameter::Error => "error, a time",
        }
    }
}

const fn parameters(kind: Kind) -> &'static [Parameter] {
    match kind {
        Kind::All | Kind::Null => &[],
        Kind::Resu | Kind::Ps => &[Parameter::Share],
        Kind::Resbh | Kind::Resbs | Kind::Resch | Kind::Rescs => &[Parameter::Amount, Parameter::Period],
        Kind::Psbe => &[Parameter::Share, Parameter::Error],
    }
}

/// An example of each kind.
fn form(kind: Kind) -> String {
    let example = |parameter: &Parameter| match parameter {
        Parameter::Amount => " 5ms",
        Parameter::Period => " 33ms",
        Parameter::Share => " 0.4",
        Parameter::Error => " 20ms",
    };
    let parameters: String = parameters(kind).iter().map(example).collect();
    format!("{kind}{parameters}")
}

/// The words of `text` with their places. Blanks separate them, or one comma between two parameters.
fn words(text: &str) -> Vec<(Range<usize>, &str)> {
    let separates = |c: char| c.is_whitespace() || c == ',';
    let mut words = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match start {
            None if !separates(c) => start = Some(at),
            Some(begin) if separates(c) => {
                words.push((begin..at, &text[begin..at]));
                start = None;
            }
            _ => {}
        }
    }
    words
}

impl FromStr for Guarantee {
    type Err = NotationError;

    fn from_str(text: &str) -> Result<Self, NotationError> {
        let fault = |at, problem| NotationError { text: text.into(), at, problem };
        let words = words(text);
        let Some((at, name)) = words.first() else {
            return Err(fault(0..text.len(), NotationProblem::Empty));
        };
        let kind = Kind::named(name)
            .ok_or_else(|| fault(at.clone(), NotationProblem::UnknownKind((*name).into())))?;
        let wanted = parameters(kind);
        let given = &words[1..];
        if let Some((at, _)) = given.get(wanted.len()) {
            return Err(fault(at.clone(), NotationProblem::TooMany { kind }));
        }
        if given.len() < wanted.len() {
            let end = text.trim_end().len();
            return Err(fault(end..end, NotationProblem::Missing { kind, given: given.len() }));
        }
        let span = |index: usize| {
            let (at, word) = &given[index];
            number::span(word).map_err(|problem| fault(at.clone(), problem))
        };
        let share = |index: usize| {
            let (at, word) = &given[index];
            number::share(word).map_err(|problem| fault(at.clone(), problem))
        };
        match kind {
            Kind::All => Ok(Guarantee::All),
            Kind::Null => Ok(Guarantee::Null),
            Kind::Resu => Ok(Guarantee::Resu(share(0)?)),
            Kind::Ps => Ok(Guarantee::Ps(share(0)?)),
            Kind::Psbe => Ok(Guarantee::Psbe { share: share(0)?, error: span(1)? }),
            Kind::Resbh | Kind::Resbs | Kind::Resch | Kind::Rescs => {
                let (continuity, hardness) = kind.reservation().expect("these four are reservations");
                let reservation = Reservation::new(continuity, hardness, span(0)?, span(1)?);
                let at = given[0].0.start..given[1].0.end;
                Ok(reservation.map_err(|error| fault(at, error.into()))?.into())
            }
        }
    }
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Guarantee::All | Guarantee::Null => self.kind().name().into(),
            Guarantee::Resu(share) | Guarantee::Ps(share) => format!("{} {share}", self.kind()),
            Guarantee::Psbe { share, error } => format!("PSBE {share} {error}"),
            Guarantee::Reservation(reservation) => {
                format!("{} {} {}", self.kind(), reservation.amount(), reservation.period())
            }
        };
        f.pad(&text)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&print_span(self))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&print_ratio(self.ratio()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> String {
        text.parse::<Guarantee>().expect("it is a guarantee").to_string()
    }

    #[test]
    fn reads_the_published_notation_and_ours() {
        for (text, canonical) in [
            ("RESBH 5, 33", "RESBH 5ms 33ms"),
            ("RESBS 10,20", "RESBS 10ms 20ms"),
            ("  RESCH\t5ms , 0.033s ", "RESCH 5ms 33ms"),
            ("RESCS 250us 1/3s", "RESCS 250us 1000/3ms"),
            ("PSBE 0.4, 58", "PSBE 0.4 58ms"),
            ("PSBE 15/128 19.9ms", "PSBE 15/128 19.9ms"),
            ("PS 40%", "PS 0.4"),
            ("RESU 2/4", "RESU 0.5"),
            ("PS 1", "PS 1"),
            ("PSBE 1 0", "PSBE 1 0ms"),
            ("ALL", "ALL"),
            ("NULL", "NULL"),
        ] {
            assert_eq!(printed(text), canonical);
        }
    }

    #[test]
    fn says_where_it_is_wrong_and_what_to_write() {
        for (text, message) in [
            ("", "column 1: there is no guarantee; write one of ALL, RESU"),
            ("RESBHS 5 33", "column 1: unknown guarantee \"RESBHS\"; did you mean RESBH 5ms 33ms?"),
            ("ps 1", "column 1: unknown guarantee \"ps\"; did you mean PS 0.4?"),
            ("soon", "column 1: unknown guarantee \"soon\"; write one of"),
            ("RESBH 5", "column 8: RESBH lacks its period; write it as RESBH 5ms 33ms"),
            ("RESBH", "column 6: RESBH lacks its amount"),
            ("PS 0.5 3", "column 8: PS takes one parameter, and this is one more"),
            ("ALL 1", "column 5: ALL takes no parameter"),
            ("RESBH 5x 33", "column 7: unknown unit \"x\"; write one of ns"),
            ("RESBH five 33", "column 7: \"five\" is not a number"),
            ("RESBH -5 33", "column 7: \"-5\" is not a number"),
            ("PS 1/0", "column 4: \"1/0\" divides by zero"),
            ("PS 5ms", "column 4: a share is part of a processor and has no unit \"ms\""),
            ("PS 3/2", "column 4: 3/2 is more than a whole processor"),
            ("RESBH 33 5", "column 7: a processor has no more time than passes"),
            ("RESBH 0 0", "column 7: the period of a reservation is longer than zero"),
        ] {
            let error = text.parse::<Guarantee>().expect_err(text).to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    #[test]
    fn columns_count_characters_and_places_count_bytes() {
        let error = "RESBH 5µs 33ħ".parse::<Guarantee>().expect_err("no unit");
        assert_eq!((error.column(), error.at()), (11, 11..15));
    }
}
