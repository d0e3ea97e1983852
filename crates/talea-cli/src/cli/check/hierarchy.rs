//! What `talea check` says about hierarchies of schedulers.

mod problems;

use crate::cli::options;
use crate::cli::output::{Sheet, wrap};
use std::path::Path;
use talea_check::hierarchy::{Child, Composition, HierarchyCheck, Row, Sibling, State, rows};
use talea_model::{MemberLines, Overhead, System};
use talea_runtime::lowering::hierarchy::{Lowering, lower_hierarchy};
use talea_runtime::lowering::machine::Machine;

/// Deeper rows are not indented further.
const DEEPEST: usize = 24;

/// How many threads --explain explains on each node.
const EXPLAINED: usize = 100;

/// The hierarchy of a node with the guarantee on every edge, and what to change if it does not compose.
pub fn show(system: &System, check: &HierarchyCheck, file: (&Path, &MemberLines)) -> String {
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
    let rule = |(index, rule): (usize, &String)| wrap(&legible(&format!("  [{}] {rule}", index + 1)));
    parts.extend(rules.0.iter().enumerate().map(rule));
    match check.verdict {
        Composition::Composes => {}
        Composition::OnPaper => parts.push(wrap(&legible(&doubts(check)))),
        Composition::Refused | Composition::Fails => parts.push(wrap(&legible(&problems::text(check, file)))),
    }
    parts.join("\n")
}

/// What `talea run` would do with the hierarchy on this machine; nothing if it cannot be run.
pub fn lowering(system: &System, check: &HierarchyCheck) -> Option<Lowering> {
    let node = system.nodes.iter().position(|node| node.name == check.node)?;
    lower_hierarchy(system, node, &Machine::examine(&system.nodes[node].cpus))
}

/// Programs and processes that are not on this machine, in a sentence each, with its place in the file.
pub fn absentees(
    (file, lines): (&Path, &MemberLines),
    system: &System,
    check: &HierarchyCheck,
) -> Vec<String> {
    let node = system.nodes.iter().position(|node| node.name == check.node);
    node.map_or_else(Vec::new, |node| options::absentees(file, system, lines, node))
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

    /// `PSBE 0.5 10ms (Theorem 4), …` with marks instead of the reasons.
    fn in_short(&mut self, taken: &str) -> String {
        let mut short = |step: &str| match step.trim_end_matches(')').split_once(" (") {
            Some((guarantee, reason)) => format!("{guarantee} {}", self.mark(reason)),
            None => step.into(),
        };
        taken.split("), ").map(&mut short).collect::<Vec<_>>().join(", ")
    }
}

fn cells(row: &Row, rules: &mut Rules) -> Vec<String> {
    let kind = match row.child {
        Child::Scheduler(kind) => kind.into(),
        Child::Elsewhere(kind) => format!("{kind} (elsewhere)"),
        Child::Thread => "thread".into(),
        Child::Lanes => "lanes of tasks".into(),
    };
    let not_derived = if row.state == State::Refused { "not admitted" } else { "not derived" };
    let receives = row.receives.as_ref().map_or_else(|| not_derived.into(), ToString::to_string);
    let uses = match row.state {
        State::Served => rules.in_short(&row.taken),
        State::Failed => "not enough".into(),
        State::Unknown | State::Refused => String::new(),
    };
    vec![
        format!("{}{}", branch(row), row.name),
        kind,
        row.asks.clone(),
        legible(&receives),
        legible(&uses),
        [rules.mark(&row.because), rules.mark(&row.proviso)].join(" ").trim_end().to_string(),
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

/// The guarantees that are not known to be kept, and what to do about them.
fn doubts(check: &HierarchyCheck) -> String {
    let mut lines = vec!["\nwhat is not known to be kept".to_string()];
    for proviso in &check.provisos {
        lines.push(format!("  {proviso}"));
    }
    let mut remedies: Vec<&str> =
        check.provisos.iter().filter_map(|proviso| proviso.reason.remedy()).collect();
    remedies.dedup();
    lines.push("\nwhat would help".into());
    lines.extend(remedies.iter().map(|remedy| format!("  {remedy}")));
    lines.join("\n")
}

/// Where the guarantee of every thread comes from, of those as well that require more.
pub fn explanation(check: &HierarchyCheck) -> String {
    let mut lines = vec![format!("\nwhere the guarantees on node {} come from", check.node)];
    let threads = &check.hierarchy.threads;
    for thread in threads.iter().take(EXPLAINED) {
        let explained = check.derivation.explain_thread(&thread.name);
        lines.push(
            explained.map_or_else(|| shortfall(check, &thread.name), |explained| explained.to_string()),
        );
    }
    let more = threads.len().saturating_sub(EXPLAINED);
    if more > 0 {
        lines.push(format!("… {more} more threads"));
    }
    legible(lines.join("\n").trim_end())
}

/// Where that comes from which a thread receives, and which is less than it requires.
fn shortfall(check: &HierarchyCheck, thread: &str) -> String {
    let edge = check.derivation.edges.iter().find(|edge| edge.child == thread);
    match edge.and_then(|edge| check.derivation.explain(edge.edge)) {
        Some(explained) => format!("{thread} does not receive what it requires\n{explained}"),
        None => format!("{thread} receives nothing that could be derived\n"),
    }
}

/// One line for all of them. What is derived is about mechanisms that cost nothing.
pub fn conclusion(checks: &[HierarchyCheck], costs: &Overhead) -> String {
    // Lanes require nothing, and what becomes of their tasks is said with these.
    let is_thread = |check: &HierarchyCheck, name: &str| check.lanes.iter().all(|lanes| lanes != name);
    let threads_of = |check: &HierarchyCheck| {
        check.hierarchy.threads.iter().filter(|thread| is_thread(check, &thread.name)).count()
    };
    let threads: usize = checks.iter().map(threads_of).sum();
    let sure: usize =
        checks.iter().map(|check| sure(check).filter(|name| is_thread(check, name)).count()).sum();
    let not: Vec<&HierarchyCheck> =
        checks.iter().filter(|check| check.verdict != Composition::Composes).collect();
    let [only] = not[..] else {
        return match not.len() {
            0 if *costs == Overhead::default() => format!(
                "every scheduler and all {threads} threads receive what they are promised, whatever the threads do"
            ),
            0 => format!(
                "every scheduler and all {threads} threads receive what they are promised as far as the costs in [overhead] leave it \
                 to them: these come out of it, and are not in the derivation (`talea sim` judges with them)"
            ),
            some => format!(
                "{some} hierarchies do not compose: {sure} of {threads} threads are sure to receive what they need"
            ),
        };
    };
    let why = match only.verdict {
        Composition::Composes | Composition::Fails => "does not compose",
        Composition::OnPaper => "composes by the published table only",
        Composition::Refused => "is refused by its schedulers",
    };
    format!(
        "the hierarchy of node {} {why}: {sure} of {threads} threads are sure to receive what they need",
        only.node
    )
}

/// The threads that are sure to receive what they need: none if a scheduler refuses a child.
fn sure(check: &HierarchyCheck) -> impl Iterator<Item = &str> {
    let is_doubted = |edge: usize| check.provisos.iter().any(|proviso| proviso.edge == edge);
    let threads = check.derivation.threads.iter().filter(|_| check.refusals.is_empty());
    threads.filter(move |thread| !is_doubted(thread.edge)).map(|thread| thread.name.as_str())
}
