//! Decimal numbers as times.

use std::fmt;

/// Why a text is not a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberFault {
    NotANumber,
    NotFinite,
    Negative,
    TooLarge,
}

/// The end of a sentence that begins with the text.
impl fmt::Display for NumberFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NumberFault::NotANumber => "is not a decimal number",
            NumberFault::NotFinite => "is not a finite number",
            NumberFault::Negative => "is negative",
            NumberFault::TooLarge => "is longer than 292 years, the range of all times",
        })
    }
}

/// A time read from a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nanoseconds {
    pub ns: i64,
    /// Whether the number stands for a fraction of a nanosecond more or less than `ns`.
    pub rounded: bool,
}

/// Digits of a number that are looked at; with 24 the product with any unit fits 128 bits.
const DIGITS: usize = 24;

/// Reads a decimal number, perhaps with an exponent, of units of `unit_ns` nanoseconds, rounded to the
/// nearest nanosecond.
pub(crate) fn nanoseconds(text: &str, unit_ns: i64) -> Result<Nanoseconds, NumberFault> {
    let text = text.trim();
    let (negative, magnitude) = match text.strip_prefix('-') {
        Some(magnitude) => (true, magnitude),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if ["nan", "inf", "infinity"].iter().any(|word| word.eq_ignore_ascii_case(magnitude)) {
        return Err(NumberFault::NotFinite);
    }
    let (mantissa, exponent) = match magnitude.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
        None => (magnitude, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !is_digits(whole) || !is_digits(fraction) {
        return Err(NumberFault::NotANumber);
    }
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Ok(Nanoseconds { ns: 0, rounded: false });
    }
    if negative {
        return Err(NumberFault::Negative);
    }
    let (used, unused) = digits.split_at(digits.len().min(DIGITS));
    let significand: i128 = used.parse().map_err(|_| NumberFault::NotANumber)?;
    let power = exponent - fraction.len() as i64 + unused.len() as i64;
    let cut = unused.bytes().any(|digit| digit != b'0');
    let scaled = significand * i128::from(unit_ns);
    if power >= 0 {
        let factor = 10_i128.checked_pow(power as u32).filter(|_| power < 40);
        let ns = factor.and_then(|factor| scaled.checked_mul(factor)).ok_or(NumberFault::TooLarge)?;
        return within_range(ns, cut);
    }
    // A divisor beyond the range is greater than twice any product above.
    let Some(divisor) = (power > -39).then(|| 10_i128.pow(power.unsigned_abs() as u32)) else {
        return Ok(Nanoseconds { ns: 0, rounded: true });
    };
    let (quotient, remainder) = (scaled / divisor, scaled % divisor);
    let up = i128::from(remainder >= divisor - remainder);
    within_range(quotient + up, cut || remainder != 0)
}

fn within_range(ns: i128, rounded: bool) -> Result<Nanoseconds, NumberFault> {
    let ns = i64::try_from(ns).map_err(|_| NumberFault::TooLarge)?;
    Ok(Nanoseconds { ns, rounded })
}

/// An exponent; beyond a million it makes no difference.
fn read_exponent(text: &str) -> Result<i64, NumberFault> {
    const FAR: i64 = 1_000_000;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberFault::NotANumber);
    }
    let magnitude = digits.parse().map_or(FAR, |exponent: i64| exponent.min(FAR));
    Ok(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// `ns` as milliseconds, exactly, with at least one digit after the point: `4.5`, `68.0`.
pub(crate) fn milliseconds(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let magnitude = ns.unsigned_abs();
    let fraction = format!("{:06}", magnitude % 1_000_000);
    let fraction = fraction.trim_end_matches('0');
    format!("{sign}{}.{}", magnitude / 1_000_000, if fraction.is_empty() { "0" } else { fraction })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn numbers_are_read_exactly_or_rounded_and_said_so() {
        let exact = |ns| Ok(Nanoseconds { ns, rounded: false });
        let rounded = |ns| Ok(Nanoseconds { ns, rounded: true });
        for (text, expected) in [
            ("4.5", exact(4_500_000)),
            ("68", exact(68 * MS)),
            (".25", exact(250_000)),
            ("3.", exact(3 * MS)),
            ("1e-05", exact(10)),
            ("1.5E+2", exact(150 * MS)),
            ("-0.0", exact(0)),
            ("0e999999999999", exact(0)),
            ("0.1000000", exact(100_000)),
            ("12.34567891", rounded(12_345_679)),
            ("0.30000000000000004", rounded(300_000)),
            ("1e-400", rounded(0)),
            ("0.0000005", rounded(1)),
            ("9999999999999999999999999e-25", rounded(MS)),
        ] {
            assert_eq!(nanoseconds(text, MS), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        use NumberFault::*;
        for (text, fault) in [
            ("", NotANumber),
            (".", NotANumber),
            ("1,5", NotANumber),
            ("1.2.3", NotANumber),
            ("0x10", NotANumber),
            ("1e", NotANumber),
            ("1e1.5", NotANumber),
            ("--1", NotANumber),
            ("nan", NotFinite),
            ("-Infinity", NotFinite),
            ("-1", Negative),
            ("1e30", TooLarge),
            ("1e400", TooLarge),
            ("9999999999999999999999999999999999", TooLarge),
        ] {
            assert_eq!(nanoseconds(text, MS), Err(fault), "{text}");
        }
    }

    proptest! {
        #[test]
        fn milliseconds_read_back(ns in 0i64..) {
            prop_assert_eq!(nanoseconds(&milliseconds(ns), MS), Ok(Nanoseconds { ns, rounded: false }));
        }

        #[test]
        fn no_text_panics(text in ".{0,40}", number in "[-+]?[0-9]{0,40}[.]?[0-9]{0,40}([eE][-+]?[0-9]{0,12})?") {
            let _ = nanoseconds(&text, 3_600_000_000_000);
            let _ = nanoseconds(&number, 3_600_000_000_000);
        }
    }
}
