//! Exact numbers as text.

use super::NotationProblem;
use crate::exact::{Ratio, Share, Span, ratio};
use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{One, Signed, Zero};
use talea_time::UNITS;

/// Longer words are no numbers that anybody meant.
const LENGTH_MAX: usize = 4096;

/// A share: a number from 0 to 1, or a percentage.
pub(super) fn share(word: &str) -> Result<Share, NotationProblem> {
    let (number, unit) = split(word)?;
    let part = match unit {
        "" => number,
        "%" => number / ratio(100, 1),
        _ => return Err(NotationProblem::UnitOfShare(unit.into())),
    };
    Share::new(part).ok_or_else(|| NotationProblem::AboveWhole(word.into()))
}

/// A time: a number with a unit, or without one in milliseconds.
pub(super) fn span(word: &str) -> Result<Span, NotationProblem> {
    let (number, unit) = split(word)?;
    let unit = if unit.is_empty() { "ms" } else { unit };
    let Some((_, nanos)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(NotationProblem::UnknownUnit(unit.into()));
    };
    Ok(Span::new(number * ratio(nanos.unsigned_abs(), 1)).expect("a number without a sign is not negative"))
}

/// The number that a word begins with, and what follows it.
fn split(word: &str) -> Result<(Ratio, &str), NotationProblem> {
    let wrong = || NotationProblem::NotANumber(word.chars().take(40).collect());
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '/').unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    if number.is_empty() || number.len() > LENGTH_MAX {
        return Err(wrong());
    }
    let (above, below) = number.split_once('/').unwrap_or((number, "1"));
    let (above, below) = (decimal(above).ok_or_else(wrong)?, decimal(below).ok_or_else(wrong)?);
    if below.is_zero() {
        return Err(NotationProblem::DividesByZero(number.into()));
    }
    Ok((above / below, unit))
}

/// `12`, `1.5`; not `.5` nor `1.`.
fn decimal(text: &str) -> Option<Ratio> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if !whole.is_empty() && !fraction.is_empty() => (whole, fraction),
        Some(_) => return None,
        None => (text, ""),
    };
    let digits: BigInt = format!("{whole}{fraction}").parse().ok()?;
    Some(Ratio::new(digits, BigInt::from(10).pow(u32::try_from(fraction.len()).ok()?)))
}

/// A number as a decimal if that is exact and short, else as a fraction.
pub(crate) fn print_ratio(number: &Ratio) -> String {
    const PLACES_MAX: u32 = 6;
    let short = (0..=PLACES_MAX).find(|places| (number * power(*places)).is_integer());
    match short {
        None => format!("{}/{}", number.numer(), number.denom()),
        Some(0) => number.numer().to_string(),
        Some(places) => {
            let digits = (number * power(places)).to_integer();
            let (whole, fraction) = digits.abs().div_rem(power(places).numer());
            let sign = if digits.is_negative() { "-" } else { "" };
            format!("{sign}{whole}.{fraction:0>places$}", places = places as usize)
        }
    }
}

fn power(places: u32) -> Ratio {
    Ratio::from_integer(BigInt::from(10).pow(places))
}

/// A time in the largest unit, up to seconds, of which it has at least one.
pub(crate) fn print_span(span: &Span) -> String {
    if span.is_zero() {
        return "0ms".into();
    }
    let printable = UNITS[2..].iter().filter(|(name, _)| name.is_ascii());
    let in_unit =
        |(name, nanos): &(&'static str, i64)| (*name, span.nanos() / ratio(nanos.unsigned_abs(), 1));
    let units: Vec<_> = printable.map(in_unit).collect();
    let large = units.iter().find(|(_, number)| *number >= Ratio::one());
    let (name, number) = large.or(units.last()).expect("there are units");
    format!("{}{name}", print_ratio(number))
}
