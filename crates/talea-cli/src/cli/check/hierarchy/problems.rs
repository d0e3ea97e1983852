//! Which schedulers and threads do not receive what they need or are refused, why, and what would help.

use crate::cli::failure::path_shown;
use std::path::Path;
use talea_check::hierarchy::{HierarchyCheck, Refusal};
use talea_guarantee::remedy::{Advice, Counsel, Effect, Remedy, Search};
use talea_model::MemberLines;

/// How many problems are listed, and for how many of them there is advice. Advice that solves all of them comes first.
const LISTED: usize = 20;
const ADVISED: usize = 6;

/// How many remedies are shown where there is one problem, and for each of several; the nearest come first.
const REMEDIES: usize = 5;
const REMEDIES_EACH: usize = 3;

/// Everything that is wrong with a hierarchy, and what would help.
pub(super) fn text(check: &HierarchyCheck, (file, lines): (&Path, &MemberLines)) -> String {
    let mut text = vec!["\nwhy not".to_string()];
    let findings = check.findings.iter().map(|finding| format!("  {finding}"));
    let refusals =
        check.refusals.iter().map(|refusal| format!("  {}{}", place(refusal, file, lines), refusal.reason));
    text.extend(findings.chain(refusals).take(LISTED));
    let problems = check.findings.len() + check.refusals.len();
    if problems > LISTED {
        text.push(format!("  … and {} more with --json", problems - LISTED));
    }
    if check.alternatives > 1 {
        text.push(format!(
            "  ({} ways to decide which parents joins take from were tried)",
            check.alternatives
        ));
    }
    let room = ADVISED - check.refusals.len().min(ADVISED / 2);
    text.extend(check.advice.iter().flat_map(|counsel| advised(counsel, room)));
    let room = ADVISED - check.findings.len().min(room);
    text.extend(permitted(&check.refusals, room));
    text.join("\n")
}

/// The file and the line with the name of the child that a scheduler refuses.
fn place(refusal: &Refusal, file: &Path, lines: &MemberLines) -> String {
    let line = refusal.child.as_deref().and_then(|child| lines.of_name(child));
    line.map_or_else(String::new, |line| format!("{}:{line}: ", path_shown(file)))
}

/// Changes that solve all problems, and then those for each of the first `room` problems by itself.
fn advised(counsel: &Counsel, room: usize) -> Vec<String> {
    let [only] = &counsel.each[..] else { return advised_each(counsel, room) };
    let mut lines = vec![format!("\nwhat would help {}, the nearest change first", only.node)];
    lines.extend(listed(only.remedies.iter().map(Remedy::to_string), only.search, REMEDIES));
    lines
}

fn advised_each(counsel: &Counsel, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(for_all) = &counsel.everybody {
        lines.push("\nwhat would help everybody at once, the nearest change first".into());
        lines.extend(listed(for_all.remedies.iter().map(Remedy::words), for_all.search, REMEDIES));
    }
    let (advised, left_out) = counsel.each.split_at(room.min(counsel.each.len()));
    let others = counsel.each.len() - 1;
    for Advice { node, remedies, search } in advised {
        let own = remedies.iter().filter(|remedy| remedy.effect != Effect::Holds);
        let own: Vec<String> = own.map(|remedy| of_one(remedy, others)).collect();
        match own.is_empty() && !remedies.is_empty() {
            true => lines.push(format!("\nwhat would help {node} alone: nothing that was tried")),
            false => {
                lines.push(format!("\nwhat would help {node} alone, the nearest change first"));
                lines.extend(listed(own.into_iter(), *search, REMEDIES_EACH));
            }
        }
    }
    if !left_out.is_empty() {
        lines.push(format!("\n… and what would help {} more with --json", left_out.len()));
    }
    lines
}

/// What mends one problem, and what that does to the `others` if not nothing.
fn of_one(remedy: &Remedy, others: usize) -> String {
    match remedy.effect {
        Effect::OthersRemain(remaining) if remaining == others => remedy.words(),
        _ => remedy.to_string(),
    }
}

fn listed(remedies: impl ExactSizeIterator<Item = String>, search: Search, at_most: usize) -> Vec<String> {
    let count = remedies.len();
    let mut lines: Vec<String> = remedies.take(at_most).map(|remedy| format!("  {remedy}")).collect();
    if count == 0 && search != Search::NotBegun {
        lines.push("  no single change that was tried".into());
    }
    if count > at_most {
        lines.push(format!("  … {} more with --json", count - at_most));
    }
    match search {
        Search::Finished => {}
        Search::CutShort => {
            lines.push("  (the hierarchy is so large that not everything was tried)".into());
        }
        Search::NotBegun => {
            lines.push("  (nothing was tried: all effort went into the problems before)".into());
        }
    }
    lines
}

/// What would help the children that schedulers refuse.
fn permitted(refusals: &[Refusal], room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for refusal in refusals.iter().take(room) {
        let whom = refusal.child.as_ref().map_or_else(String::new, |child| format!(" {child}"));
        lines.push(format!("\nwhat would help{whom}\n  {}", refusal.remedy));
    }
    if refusals.len() > room {
        lines.push(format!("\n… and what would help {} more with --json", refusals.len() - room));
    }
    lines
}
