//! How the synchronisation protocols compare.

use crate::cli::output::{Sheet, wrap};
use talea_check::protocols::ProtocolAdvice;
use talea_time::Duration;

/// The most tasks in the table.
const SHOWN: usize = 16;

/// A table of bounds, a column per protocol, and what each protocol takes.
pub fn comparison(advice: &ProtocolAdvice) -> String {
    let mut lines = vec![
        "\nprotocols: longest end-to-end response if subtasks with predecessors are released by".to_string(),
    ];
    let names = advice.ranking.iter().map(|ranked| ranked.sync.keyword().replace('-', "-\n"));
    let headings: Vec<String> = ["task".into(), "deadline".into()].into_iter().chain(names).collect();
    let mut sheet = Sheet::new(1, &headings.iter().map(String::as_str).collect::<Vec<_>>());
    for (index, name) in advice.tasks.iter().enumerate().take(SHOWN) {
        let deadline = advice.deadlines_ns[index];
        let bound = |bound: Option<i64>| match bound {
            None => "no bound".into(),
            Some(bound) if bound > deadline => format!("{} late", Duration::from_nanos(bound)),
            Some(bound) => Duration::from_nanos(bound).to_string(),
        };
        let bounds = advice.ranking.iter().map(|ranked| bound(ranked.bounds_ns[index]));
        sheet.row(
            [name.clone(), Duration::from_nanos(deadline).to_string()].into_iter().chain(bounds).collect(),
        );
    }
    lines.push(sheet.render());
    if advice.tasks.len() > SHOWN {
        lines.push(format!("  … {} more tasks, with --json", advice.tasks.len() - SHOWN));
    }
    for ranked in &advice.ranking {
        let proved = format!(
            "{} of {} critical and {} of {} other tasks proved",
            ranked.critical_proved, ranked.critical, ranked.soft_proved, ranked.soft
        );
        let facts = match &ranked.unusable {
            Some(reason) => reason.clone(),
            None => format!("{proved}; {}", ranked.remarks.join("; ")),
        };
        lines.push(wrap(&format!("  {}: {facts}", ranked.sync)));
    }
    lines.push(wrap(&format!("  {}", advice.conclusion)));
    lines.join("\n")
}
