//! `talea check`.

use super::failure::Verdict;
use super::options::{SystemOptions, plans};
use super::output::{self, Sheet};
use clap::Args;
use talea_model::System;
use talea_policy::strategy::{Lane, Plan};

/// Validate a system; show the lanes its strategy makes and how much each of them uses.
///
/// All problems of the file are shown at once, each with its place and what to write instead.
#[derive(Args)]
#[command(after_help = "Example:\n  talea check examples/ofp.toml --strategy muf")]
pub struct Options {
    #[command(flatten)]
    system: SystemOptions,
    /// Print the result as JSON instead
    #[arg(long)]
    json: bool,
}

pub fn main(options: &Options) -> super::Outcome {
    let system = options.system.read()?;
    let plans = plans(&system)?;
    if options.json {
        output::json(&as_json(&system, &plans))?;
    } else {
        output::print(&text(&system, &plans))?;
    }
    Ok(Verdict::Fine)
}

fn text(system: &System, plans: &[Plan]) -> String {
    let mut parts = vec![format!(
        "{}: {} tasks, {} operations, {} nodes; {} with {} lanes, laxity {}, late work {}",
        system.name,
        system.tasks.len(),
        system.operations().len(),
        system.nodes.len(),
        system.strategy,
        system.lane_dispatch,
        system.laxity,
        match system.late {
            talea_model::Late::Last => "last",
            talea_model::Late::None => "where its key puts it",
        },
    )];
    for (index, plan) in plans.iter().enumerate() {
        let node = &system.nodes[index];
        let cpus: Vec<String> = node.cpus.iter().map(ToString::to_string).collect();
        parts.push(format!(
            "\nnode {} (cpu {}): worst-case utilisation {:.1} %",
            node.name,
            cpus.join(", "),
            system.utilisation(index) * 100.0 / node.cpus.len() as f64,
        ));
        let mut sheet = Sheet::new(4, &["level", "lane", "order", "operations", "used", "with those above"]);
        let mut above = 0.0;
        for lane in &plan.lanes {
            let used = lane.utilisation(system);
            above += used;
            sheet.row(vec![
                lane.level.to_string(),
                lane.label.clone(),
                lane.discipline.to_string(),
                members(system, lane),
                format!("{:.1} %", used * 100.0),
                format!("{:.1} %", above * 100.0),
            ]);
        }
        parts.push(sheet.render());
        parts.extend(plan.warnings.iter().map(|warning| format!("warning: {warning}")));
        let lanes = plan.lanes.len();
        if lanes > 0 && lanes < node.cpus.len() {
            parts.push(format!(
                "warning: {lanes} lane(s) on {} processors: a lane is served by one processor at a time, so the \
                 others stay idle; give each processor a node of its own, or use a strategy with more lanes",
                node.cpus.len()
            ));
        }
    }
    parts.push("\nvalid; whether deadlines hold is shown by `talea sim` and `talea run`".into());
    parts.join("\n")
}

/// The names of a lane's operations, shortened where a task's subtasks follow each other.
fn members(system: &System, lane: &Lane) -> String {
    const NAMES: usize = 6;
    let names: Vec<&str> =
        lane.members.iter().map(|id| system.operations()[id.index()].name.as_str()).collect();
    match names.len() {
        count if count <= NAMES => names.join(", "),
        count => format!("{}, … {} more", names[..NAMES].join(", "), count - NAMES),
    }
}

fn as_json(system: &System, plans: &[Plan]) -> serde_json::Value {
    let lane = |lane: &Lane| {
        let names: Vec<&str> =
            lane.members.iter().map(|id| system.operations()[id.index()].name.as_str()).collect();
        serde_json::json!({
            "level": lane.level, "label": lane.label, "discipline": lane.discipline,
            "operations": names, "utilisation": lane.utilisation(system),
        })
    };
    let node = |(index, plan): (usize, &Plan)| {
        serde_json::json!({
            "node": system.nodes[index].name, "cpus": system.nodes[index].cpus,
            "utilisation": system.utilisation(index),
            "lanes": plan.lanes.iter().map(lane).collect::<Vec<_>>(),
            "warnings": plan.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    };
    serde_json::json!({
        "system": system.name, "strategy": system.strategy, "lane_dispatch": system.lane_dispatch,
        "laxity": system.laxity, "late": system.late,
        "nodes": plans.iter().enumerate().map(node).collect::<Vec<_>>(),
    })
}
