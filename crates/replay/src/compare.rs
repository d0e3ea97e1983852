//! Holding a value against the recorded one.

use crate::report::What;

/// Bytes that are shown from the first that differs on.
const SHOWN: usize = 16;

/// What differs, if anything does.
pub(crate) fn compare(recorded: &[u8], now: &[u8]) -> Option<What> {
    if recorded == now {
        return None;
    }
    let at = recorded.iter().zip(now).take_while(|(then, now)| then == now).count();
    let shown = |bytes: &[u8]| bytes[at..bytes.len().min(at + SHOWN)].to_vec();
    let (recorded_length, length) = (recorded.len(), now.len());
    Some(What::Bytes { at, recorded: shown(recorded), now: shown(now), recorded_length, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_byte_that_differs_is_found_also_behind_the_shorter_one() {
        assert_eq!(compare(&[1, 2], &[1, 2]), None);
        let what = |at, recorded: &[u8], now: &[u8], recorded_length, length| {
            Some(What::Bytes { at, recorded: recorded.into(), now: now.into(), recorded_length, length })
        };
        assert_eq!(compare(&[1, 2, 3], &[1, 7, 3]), what(1, &[2, 3], &[7, 3], 3, 3));
        assert_eq!(compare(&[1, 2, 3], &[1, 2]), what(2, &[3], &[], 3, 2));
        assert_eq!(compare(&[], &[1; 40]), what(0, &[], &[1; 16], 0, 40));
    }
}
