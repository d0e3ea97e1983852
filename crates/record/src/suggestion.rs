//! What may have been meant by a name that is not there.

/// What to try instead of a name that is not in what is `listed`.
pub(crate) fn hint(listed: &str, suggestion: &Option<String>) -> String {
    match suggestion {
        Some(name) => format!("; did you mean \"{name}\"?"),
        None => format!("; list the {listed} to see what there is"),
    }
}

/// The name most like `written`, if any is like it.
pub(crate) fn nearest<'a>(written: &str, names: impl Iterator<Item = &'a str>) -> Option<String> {
    let likeness = names.map(|name| (strsim::jaro_winkler(written, name), name));
    let best = likeness.max_by(|a, b| a.0.total_cmp(&b.0));
    best.filter(|(likeness, _)| *likeness > 0.7).map(|(_, name)| name.to_owned())
}
