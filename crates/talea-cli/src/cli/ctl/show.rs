//! What `talea ctl` prints.

use crate::cli::failure::Failure;
use crate::cli::output::tell;
use crate::cli::output::{Lines, Sheet, length};
use std::collections::BTreeMap;
use talea_manage::control::Controllable;
use talea_manage::control::protocol::{Done, Force, Listing, Promised, Refusal, Row, Statistic};

/// Deeper rows are not indented further.
const DEEPEST: usize = 24;

pub fn listing(run: &Controllable, listing: &Listing) -> Result<(), Failure> {
    let cpus: Vec<String> = listing.cpus.iter().map(ToString::to_string).collect();
    let mut lines = Lines::new();
    lines.prose(&format!(
        "{} (process {}), node {} (cpu {})",
        listing.system,
        run.pid,
        listing.node,
        cpus.join(", ")
    ))?;
    let mut promises = Sheet::new(5, &["scheduled by", "kind", "asks for", "promised", "requires"]);
    let mut times = Sheet::new(2, &["time", "state", "granted", "received", "used", "broken"]);
    for index in 0..listing.rows.len() {
        promises.row(promised(&listing.rows, index));
        times.row(had(&listing.rows[index]));
    }
    lines.line(&format!("\n{}\n\n{}", promises.render(), times.render()))?;
    if listing.rows.iter().any(|row| row.proviso.is_some()) {
        lines.line("\n* not known to be kept")?;
    }
    for (row, proviso) in listing.rows.iter().filter_map(|row| Some((row, row.proviso.as_ref()?))) {
        let parent = row.parent.as_deref().unwrap_or_default();
        lines.prose(&format!("  {} from {parent}: {proviso}", row.name))?;
    }
    if !listing.findings.is_empty() {
        lines.line("\nnot enough for")?;
    }
    for finding in &listing.findings {
        lines.prose(&format!("  {finding}"))?;
    }
    lines.finish()
}

/// Statistics of channels, by their names.
pub fn statistics(statistics: &BTreeMap<String, Statistic>) -> Result<(), Failure> {
    let mut sheet = Sheet::new(2, &["statistic", "now"]);
    for (name, statistic) in statistics {
        let now = match statistic {
            Statistic::Number { last, .. } => last.to_string(),
            Statistic::Names(names) => names.join(", "),
        };
        sheet.row(vec![name.clone(), now]);
    }
    crate::cli::output::print(&sheet.render())
}

/// The row of a scheduler or thread with what it is, asks for and is promised.
fn promised(rows: &[Row], index: usize) -> Vec<String> {
    let row = &rows[index];
    let kind = match row.quantum {
        Some(quantum) if row.kind != "elsewhere" => format!("{} {quantum}", row.kind),
        _ => row.kind.clone(),
    };
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    vec![
        format!("{}{}", branch(rows, index), row.name),
        kind,
        optional(&row.asks),
        match (&row.guarantee, &row.proviso) {
            (None, _) => "not derived".into(),
            (Some(guarantee), None) => guarantee.clone(),
            (Some(guarantee), Some(_)) => format!("{guarantee} *"),
        },
        optional(&row.requires),
    ]
}

/// The row of a scheduler or thread with the processor time that it has received.
fn had(row: &Row) -> Vec<String> {
    vec![
        row.name.clone(),
        row.state.clone().unwrap_or_else(|| "not there".into()),
        length(row.granted_ns),
        row.received_ns.map_or_else(String::new, length),
        row.used_ns.map_or_else(String::new, length),
        match row.judged {
            None => String::new(),
            Some(judged) => format!("{} of {judged}", row.violations),
        },
    ]
}

/// The lines that lead to a row of the tree.
fn branch(rows: &[Row], index: usize) -> String {
    let depth = rows[index].depth;
    if depth > DEEPEST {
        return format!("… {depth} levels below … ");
    }
    // Whether another row of this depth follows below the same parent.
    let follows = |depth: usize| {
        let later = rows[index + 1..].iter().find(|row| row.depth <= depth);
        later.is_some_and(|row| row.depth == depth)
    };
    let mut text = String::new();
    for above in 1..depth {
        text.push_str(if follows(above) { "│  " } else { "   " });
    }
    match (depth, follows(depth)) {
        (0, _) => {}
        (_, true) => text.push_str("├─ "),
        (_, false) => text.push_str("└─ "),
    }
    text
}

pub fn done(done: &Done) -> Result<(), Failure> {
    let mut lines = Lines::new();
    lines.line("done")?;
    for promised in &done.promises {
        lines.prose(&format!("  {}", told(promised)))?;
    }
    lines.finish()?;
    for warning in &done.warnings {
        tell!("warning: {warning}");
    }
    Ok(())
}

/// What is promised on an edge now.
fn told(Promised { parent, child, before, after, requires, proviso }: &Promised) -> String {
    let mut line = format!("{parent} promises {child} {}", after.as_deref().unwrap_or("nothing"));
    if let Some(before) = before {
        line += &format!(", not {before} any more");
    }
    if let Some(requires) = requires {
        line += &format!("; {child} requires {requires}");
    }
    if proviso.is_some() {
        line += " (not known to be kept)";
    }
    line
}

pub fn refusal(refusal: &Refusal) {
    tell!("refused, nothing has changed:");
    refusal.reasons.iter().for_each(|reason| tell!("  {reason}"));
    if let Some(remedy) = &refusal.remedy {
        tell!("  help: {remedy}");
    }
    if refusal.force == Force::Helps {
        tell!("  --force does it all the same");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_thread_requires_is_not_told_as_a_promise() {
        let text = |text: &str| Some(text.to_owned());
        let nothing = Promised {
            parent: "RR".into(),
            child: "d".into(),
            before: None,
            after: None,
            requires: text("RESBH 1ms 10ms"),
            proviso: None,
        };
        assert_eq!(told(&nothing), "RR promises d nothing; d requires RESBH 1ms 10ms");
        let before = text("PSBE 0.4 60ms");
        let no_more = Promised { before: before.clone(), ..nothing.clone() };
        let expected = "RR promises d nothing, not PSBE 0.4 60ms any more; d requires RESBH 1ms 10ms";
        assert_eq!(told(&no_more), expected);
        let doubted =
            Promised { after: before, requires: None, proviso: text("it may come late"), ..nothing };
        assert_eq!(told(&doubted), "RR promises d PSBE 0.4 60ms (not known to be kept)");
    }
}
