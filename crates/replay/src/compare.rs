//! Holding a value, or an event, against the recorded one.

use crate::report::What;
use talea_notification::declared::parts_of_push;
use talea_time::Work;

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

/// What differs of a push, if anything does: its turn among all that the job pushes, and its bytes, none if there was no room for it.
pub(crate) fn compare_pushes((turn, recorded): (u16, &[u8]), (turn_now, now): (u16, &[u8])) -> Option<What> {
    match (recorded.is_empty(), now.is_empty()) {
        (true, false) => return Some(What::NothingThen),
        (false, true) => return Some(What::NothingNow),
        (true, true) | (false, false) => {}
    }
    let bytes = match (parts_of_push(recorded), parts_of_push(now)) {
        (Some((header, content)), Some((header_now, content_now))) => {
            let of_header = compare(header, header_now).map(|what| match what {
                What::Bytes { at, recorded, now, .. } => What::Header { at, recorded, now },
                what => what,
            });
            of_header.or_else(|| compare(content, content_now))
        }
        _ => compare(recorded, now),
    };
    bytes.or((turn != turn_now).then_some(What::Turn { recorded: turn, now: turn_now }))
}

/// A job that is posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ComparedPost<'a> {
    /// The operation.
    pub operation: &'a str,
    pub handle: u64,
    /// When it is due, in nanoseconds after the start of the run, if that is known.
    pub due: Option<i64>,
    /// The longest that it executes, likewise.
    pub wcet: Option<Work>,
}

/// What differs of a post, if anything does, between then and now; with the panic of the job that posts, if there was one now.
pub(crate) fn compare_posts(
    recorded: Option<ComparedPost<'_>>,
    now: Option<ComparedPost<'_>>,
    panicked: Option<&str>,
) -> Option<What> {
    let (Some(recorded), Some(now)) = (recorded, now) else {
        let as_panic = |message: &str| What::Panicked { message: message.to_owned() };
        return match (recorded, now) {
            (None, Some(_)) => Some(What::NothingThen),
            (Some(_), None) => Some(panicked.map_or(What::NothingNow, as_panic)),
            _ => None,
        };
    };
    if recorded.operation != now.operation {
        let [recorded, now] = [recorded, now].map(|post| post.operation.to_owned());
        return Some(What::OtherOperation { recorded, now });
    }
    if recorded.handle != now.handle {
        return Some(What::Handle { recorded: recorded.handle, now: now.handle });
    }
    let due = recorded.due.zip(now.due).filter(|(then, now)| then != now);
    let wcet = recorded.wcet.zip(now.wcet).filter(|(then, now)| then != now);
    due.map(|(recorded_ns, now_ns)| What::Due { recorded_ns, now_ns })
        .or(wcet.map(|(then, now)| What::Wcet { recorded_ns: then.as_nanos(), now_ns: now.as_nanos() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_pushes_header_content_and_turn_are_told_apart() {
        let push = |header: &[u8], content: &[u8]| {
            let part = |bytes: &[u8]| [&(bytes.len() as u32).to_le_bytes(), bytes].concat();
            [part(header), part(content)].concat()
        };
        let one = push(&[1, 2], &[3, 4]);
        let compared = |turn, bytes: &[u8]| compare_pushes((0, &one), (turn, bytes));
        assert_eq!(compared(0, &one), None);
        assert_eq!(compared(2, &one), Some(What::Turn { recorded: 0, now: 2 }));
        let of_header = What::Header { at: 1, recorded: vec![2], now: vec![] };
        assert_eq!(compared(2, &push(&[1], &[7])), Some(of_header));
        let of_content = compared(0, &push(&[1, 2], &[3, 5]));
        assert!(matches!(of_content, Some(What::Bytes { at: 1, .. })), "{of_content:?}");
        assert_eq!(compared(0, &[]), Some(What::NothingNow));
        assert_eq!(compare_pushes((0, &[]), (0, &one)), Some(What::NothingThen));
        assert_eq!(compare_pushes((0, &[]), (0, &[])), None);
    }

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
