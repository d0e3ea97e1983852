//! Which parts of a hierarchy are handed over to the kernel, and why others are not.

use super::output::{Sheet, wrap};
use talea_runtime::lowering::hierarchy::PartAccount;

/// Every scheduler and thread with its setting in the kernel; or the reasons why the hierarchy is not handed over, each with the names that
/// it concerns.
pub fn parts(node: &str, parts: &[PartAccount]) -> String {
    if parts.iter().all(|part| part.stays_because.is_none()) {
        let mut sheet = Sheet::new(2, &["scheduler or thread", "the kernel's"]);
        for part in parts {
            sheet.row(vec![part.name.clone(), part.lowered_to.clone().unwrap_or_default()]);
        }
        return format!(
            "node {node}: lowered to the kernel, which does all of it by itself\n{}",
            sheet.render()
        );
    }
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for part in parts {
        let Some(why) = part.stays_because.as_deref() else { continue };
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(&part.name),
            None => reasons.push((why, vec![&part.name])),
        }
    }
    let mut lines = vec![format!("node {node}: not lowered to the kernel; the infrastructure schedules it")];
    lines.extend(reasons.iter().map(|(why, names)| format!("  {}: {why}", names.join(", "))));
    wrap(&lines.join("\n"))
}
