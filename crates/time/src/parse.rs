//! Durations as text: a decimal number and a unit, without a space: `50ms`, `1.5s`, `250us`.

use thiserror::Error;

/// Why a text is not a duration. Nothing has been consumed or changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseDurationError {
    /// The text is empty.
    #[error("a duration is a number with a unit, such as \"50ms\"; this is empty")]
    Empty,
    /// A number stands alone; guessing its unit would be a silent default.
    #[error("\"{0}\" has no unit; write \"{0}ms\", or one of ns, us, ms, s, min, h")]
    MissingUnit(String),
    /// The unit is none of the known ones.
    #[error("unknown unit \"{0}\"; the units are ns, us, ms, s, min, h")]
    UnknownUnit(String),
    /// The part before the unit is not a plain decimal number.
    #[error("\"{0}\" does not start with a decimal number such as 50 or 1.5")]
    NotANumber(String),
    /// Durations in descriptions are never negative.
    #[error("\"{0}\" is negative; a duration is zero or more")]
    Negative(String),
    /// More digits after the point than nanoseconds can hold.
    #[error("\"{0}\" is finer than a nanosecond, the resolution of all times")]
    TooFine(String),
    /// More than 64 bits of nanoseconds.
    #[error("\"{0}\" is longer than 292 years, the range of all times")]
    TooLong(String),
}

/// The units of time, longest first, each with how many nanoseconds it has.
pub const UNITS: [(&str, i64); 7] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];

/// Parses a duration into nanoseconds, exactly or not at all.
pub(crate) fn nanos(text: &str) -> Result<i64, ParseDurationError> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseDurationError::Empty);
    }
    if text.starts_with('-') {
        return Err(ParseDurationError::Negative(text.into()));
    }
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = unit.trim_start();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |part: &str| part.replace('_', "");
    let (whole, fraction) = (digits(whole), digits(fraction));
    if whole.is_empty() || fraction.contains('.') || (number.contains('.') && fraction.is_empty()) {
        return Err(ParseDurationError::NotANumber(text.into()));
    }
    if unit.is_empty() {
        return Err(ParseDurationError::MissingUnit(text.into()));
    }
    let Some(&(_, unit_ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(ParseDurationError::UnknownUnit(unit.into()));
    };
    let too_long = || ParseDurationError::TooLong(text.into());
    let whole: i64 = whole.parse().map_err(|_| too_long())?;
    let mut ns = whole.checked_mul(unit_ns).ok_or_else(too_long)?;
    let mut place_ns = unit_ns;
    let mut remainder_of_place = 0;
    for digit in fraction.bytes() {
        let digit = i64::from(digit - b'0');
        // A minute or an hour divides by ten to a remainder only below a nanosecond.
        remainder_of_place += place_ns % 10;
        place_ns /= 10;
        if digit != 0 && (place_ns == 0 || remainder_of_place != 0) {
            return Err(ParseDurationError::TooFine(text.into()));
        }
        ns = ns.checked_add(digit * place_ns).ok_or_else(too_long)?;
    }
    Ok(ns)
}

const HOUR_NS: u64 = 3_600_000_000_000;

/// The shortest exact text in the largest unit of which `ns` holds at least one; hours, if it is whole ones.
pub(crate) fn exact(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let magnitude = ns.unsigned_abs();
    let (unit, unit_ns) = match magnitude {
        0 => return "0s".into(),
        n if n.is_multiple_of(HOUR_NS) => ("h", HOUR_NS),
        n if n >= 1_000_000_000 => ("s", 1_000_000_000),
        n if n >= 1_000_000 => ("ms", 1_000_000),
        n if n >= 1_000 => ("us", 1_000),
        _ => ("ns", 1),
    };
    let (whole, rest) = (magnitude / unit_ns, magnitude % unit_ns);
    if rest == 0 {
        return format!("{sign}{whole}{unit}");
    }
    let places = unit_ns.ilog10() as usize;
    let fraction = format!("{rest:0places$}");
    format!("{sign}{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

/// Three significant digits, for tables.
pub(crate) fn rounded(ns: i64) -> String {
    let magnitude = ns.unsigned_abs() as f64;
    let (unit, unit_ns) = match magnitude {
        m if m >= 999.5e6 => ("s", 1e9),
        m if m >= 999.5e3 => ("ms", 1e6),
        m if m >= 999.5 => ("us", 1e3),
        m if m < 0.5 => return "0".into(),
        _ => return format!("{ns}ns"),
    };
    let value = magnitude / unit_ns;
    let places = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{value:.places$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_every_unit_exactly() {
        for (text, ns) in [
            ("50ms", 50_000_000),
            ("1.5s", 1_500_000_000),
            ("250us", 250_000),
            ("250µs", 250_000),
            ("7ns", 7),
            ("2min", 120_000_000_000),
            ("0.5h", 1_800_000_000_000),
            ("1_000ms", 1_000_000_000),
            (" 3 ms ", 3_000_000),
            ("0s", 0),
            ("0.000000001s", 1),
        ] {
            assert_eq!(nanos(text), Ok(ns), "{text}");
        }
    }

    #[test]
    fn refuses_with_the_reason() {
        use ParseDurationError::*;
        assert_eq!(nanos(""), Err(Empty));
        assert_eq!(nanos("50"), Err(MissingUnit("50".into())));
        assert_eq!(nanos("50m"), Err(UnknownUnit("m".into())));
        assert_eq!(nanos("ms"), Err(NotANumber("ms".into())));
        assert_eq!(nanos("1.ms"), Err(NotANumber("1.ms".into())));
        assert_eq!(nanos("1.2.3ms"), Err(NotANumber("1.2.3ms".into())));
        assert_eq!(nanos("-1ms"), Err(Negative("-1ms".into())));
        assert_eq!(nanos("0.5ns"), Err(TooFine("0.5ns".into())));
        assert_eq!(nanos("0.0000000001s"), Err(TooFine("0.0000000001s".into())));
        assert_eq!(nanos("300000000000s"), Err(TooLong("300000000000s".into())));
    }

    #[test]
    fn rounds_for_tables() {
        for (ns, text) in [
            (0, "0"),
            (999, "999ns"),
            (1_234, "1.23us"),
            (45_000, "45.0us"),
            (999_600, "1.00ms"),
            (123_456_789, "123ms"),
            (-1_500_000, "-1.50ms"),
        ] {
            assert_eq!(rounded(ns), text);
        }
    }

    proptest! {
        #[test]
        fn exact_text_reads_back(ns in 0i64..) {
            prop_assert_eq!(nanos(&exact(ns)), Ok(ns));
        }
    }
}
