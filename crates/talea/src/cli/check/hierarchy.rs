//! What `talea check` says about hierarchies of schedulers.

use crate::cli::output::Sheet;
use talea_guarantee::remedy::Search;
use talea_lab::check::hierarchy::{Child, Composition, HierarchyCheck, Row, Sibling, State, rows};
use talea_model::System;
use talea_runtime::lowering::hierarchy::{Lowering, lower_hierarchy};
use talea_runtime::lowering::machine::Machine;

/// How many remedies are shown; the nearest come first.
const REMEDIES: usize = 5;

/// Deeper rows are not indented further.
const DEEPEST: usize = 24;

/// How many threads --explain explains on each node.
const EXPLAINED: usize = 100;

/// The hierarchy of a node with the guarantee on every edge, and what to change if it does not compose.
pub fn show(system: &System, check: &HierarchyCheck) -> String {
    let cpus = system.nodes.iter().find(|node| node.name == check.node).map(|node| &node.cpus);
    let cpus: Vec<String> = cpus.into_iter().flatten().map(ToString::to_string).collect();
    let mut parts = vec![format!("\nnode {} (cpu {}): who is promised what", check.node, cpus.join(", "))];
    let headings = ["scheduled by", "kind", "asks for", "receives", "uses it as", "rule"];
    let mut sheet = Sheet::new(headings.len(), &headings);
    let mut rules = Rules::default();
    for row in rows(check) {
        sheet.row(cells(&row, &mut rules));
    }
    parts.push(sheet.render());
    parts.extend(rules.0.iter().enumerate().map(|(index, rule)| format!("  [{}] {rule}", index + 1)));
    if check.verdict == Composition::Fails {
        parts.push(failure(check));
    }
    legible(&parts.join("\n"))
}

/// What `talea run` would do with the hierarchy on this machine; nothing if it cannot be run.
pub fn lowering(system: &System, check: &HierarchyCheck) -> Option<Lowering> {
    let node = system.nodes.iter().position(|node| node.name == check.node)?;
    lower_hierarchy(system, node, &Machine::examine(&system.nodes[node].cpus))
}

/// Programs and processes that are not on this machine, in a sentence each.
pub fn absentees(system: &System, check: &HierarchyCheck) -> Vec<String> {
    let node = system.nodes.iter().position(|node| node.name == check.node);
    node.map_or_else(Vec::new, |node| talea_runtime::absentees(system, node))
}

/// The text with the middle of very long numbers left out.
fn legible(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let digits = rest[start..].bytes().take_while(u8::is_ascii_digit).count();
        let end = start + digits;
        if digits > LONGEST {
            shown.push_str(&rest[..start + LONGEST / 4]);
            shown.push_str(&format!("… ({digits} digits)"));
        } else {
            shown.push_str(&rest[..end]);
        }
        rest = &rest[end..];
    }
    shown + rest
}

/// The rules by which guarantees are given, each once: siblings mostly share one, and whole sentences would make the tree
/// wider than most screens.
#[derive(Default)]
struct Rules(Vec<String>);

impl Rules {
    /// The mark of a rule.
    fn mark(&mut self, rule: &str) -> String {
        if rule.is_empty() {
            return String::new();
        }
        let known = self.0.iter().position(|known| known == rule);
        let index = known.unwrap_or_else(|| {
            self.0.push(rule.into());
            self.0.len() - 1
        });
        format!("[{}]", index + 1)
    }
}

fn cells(row: &Row, rules: &mut Rules) -> Vec<String> {
    let kind = match row.child {
        Child::Scheduler(kind) => kind.into(),
        Child::Elsewhere(kind) => format!("{kind} (elsewhere)"),
        Child::Thread => "thread".into(),
        Child::Lanes => "lanes of tasks".into(),
    };
    let receives = row.receives.as_ref().map(ToString::to_string);
    let uses = match row.state {
        State::Served => row.taken.clone(),
        State::Failed => "not enough".into(),
        State::Unknown => String::new(),
    };
    vec![
        format!("{}{}", branch(row), row.name),
        kind,
        row.asks.clone(),
        legible(&receives.unwrap_or_else(|| "not derived".into())),
        legible(&uses),
        rules.mark(&row.because),
    ]
}

/// The lines that lead to a row of the tree.
fn branch(row: &Row) -> String {
    let Some((own, above)) = row.siblings.split_last() else { return String::new() };
    if row.depth > DEEPEST {
        return format!("… {} levels below … ", row.depth);
    }
    let passing = above.iter().map(|sibling| match sibling {
        Sibling::Follows => "│  ",
        Sibling::Last => "   ",
    });
    let corner = match own {
        Sibling::Follows => "├─ ",
        Sibling::Last => "└─ ",
    };
    passing.chain([corner]).collect()
}

fn failure(check: &HierarchyCheck) -> String {
    let mut lines = vec!["\nwhy not".to_string()];
    lines.extend(check.findings.iter().map(|finding| format!("  {finding}")));
    if check.alternatives > 1 {
        lines.push(format!(
            "  ({} ways to decide which parents joins take from were tried)",
            check.alternatives
        ));
    }
    let Some(advice) = &check.advice else { return lines.join("\n") };
    lines.push(format!("\nwhat would help {}, the nearest change first", advice.node));
    if advice.remedies.is_empty() {
        lines.push("  no single change that was tried".into());
    }
    lines.extend(advice.remedies.iter().take(REMEDIES).map(|remedy| format!("  {remedy}")));
    if advice.remedies.len() > REMEDIES {
        lines.push(format!("  … {} more with --json", advice.remedies.len() - REMEDIES));
    }
    if advice.search == Search::CutShort {
        lines.push("  (the hierarchy is so large that not everything was tried)".into());
    }
    lines.join("\n")
}

/// Where the guarantee of every thread comes from.
pub fn explanation(check: &HierarchyCheck) -> String {
    let mut lines = vec![format!("\nwhere the guarantees on node {} come from", check.node)];
    for thread in check.derivation.threads.iter().take(EXPLAINED) {
        let explained = check.derivation.explain_thread(&thread.name).expect("a thread that is derived");
        lines.push(format!("{explained}"));
    }
    let more = check.derivation.threads.len().saturating_sub(EXPLAINED);
    if more > 0 {
        lines.push(format!("… {more} more threads"));
    }
    legible(lines.join("\n").trim_end())
}

/// One line for all of them.
pub fn conclusion(checks: &[HierarchyCheck]) -> String {
    let failing: Vec<&HierarchyCheck> =
        checks.iter().filter(|check| check.verdict == Composition::Fails).collect();
    // Lanes require nothing, and what becomes of their tasks is said with these.
    let is_thread = |check: &HierarchyCheck, name: &str| check.lanes.as_deref() != Some(name);
    let of = |check: &HierarchyCheck| {
        let threads = check.hierarchy.threads.iter().filter(|thread| is_thread(check, &thread.name));
        let derived = check.derivation.threads.iter().filter(|thread| is_thread(check, &thread.name));
        (threads.count(), derived.count())
    };
    let threads: usize = checks.iter().map(|check| of(check).0).sum();
    let derived: usize = checks.iter().map(|check| of(check).1).sum();
    match failing[..] {
        [] => format!(
            "every scheduler and all {threads} threads receive what they need, whatever the threads do"
        ),
        [only] => format!(
            "the hierarchy of node {} does not compose: {derived} of {threads} threads are sure to receive what they need",
            only.node
        ),
        _ => format!(
            "{} hierarchies do not compose: {derived} of {threads} threads are sure to receive what they need",
            failing.len()
        ),
    }
}
