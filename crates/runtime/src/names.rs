//! The names under which others find a run: of its streams, and of its control sockets.

/// Runs of one system in one process that are told apart by name.
pub(crate) const RUNS_AT_ONCE: u32 = 1000;

/// A name with everything replaced that a stream's cannot have, and not too long for a number.
pub(crate) fn plain(name: &str) -> String {
    const BYTES: usize = 56;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).take(BYTES).collect();
    let plain = plain.trim_start_matches('.');
    if plain.is_empty() { "system".into() } else { plain.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_system_has_a_name_for_its_stream() {
        assert_eq!(plain("ofp"), "ofp");
        assert_eq!(plain("flight program/1"), "flight_program_1");
        assert_eq!(plain("..."), "system");
        assert_eq!(plain(&"é".repeat(100)), "_".repeat(56));
    }
}
