//! What the processes of a run must agree on, and the first thing on which two do not.

use crate::options::{Links, Lower, RunOptions};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use talea_model::System;

/// The system and the options that matter to all, as texts: a system is its file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreement {
    /// Names and values.
    options: Vec<(String, String)>,
    system: String,
}

/// A line of a system file: the item that it describes, its key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line<'a> {
    item: String,
    key: &'a str,
    value: &'a str,
}

impl Agreement {
    pub fn of(system: &System, options: &RunOptions) -> Self {
        let duration = options.duration.map_or("none".into(), |duration| duration.to_string());
        let lowers = matches!(options.lower, Lower::WherePossible);
        let imposes = matches!(options.links, Links::Impose);
        let options = [
            ("duration", duration),
            ("real-time mode", options.rt.keyword().to_string()),
            ("tolerance", options.tolerance.to_string()),
            ("handling of links", if imposes { "imposing" } else { "judging" }.to_string()),
            ("lowering of hierarchies", if lowers { "where possible" } else { "none" }.to_string()),
        ];
        let options = options.map(|(name, value)| (name.to_string(), value));
        Agreement { options: options.into(), system: system.to_toml() }
    }

    /// The first difference, where this process is `self` and the other one `other`; none if they agree.
    pub fn difference(&self, other: &Agreement) -> Option<String> {
        if self == other {
            return None;
        }
        let options = || {
            let both = self.options.iter().zip(&other.options);
            let mut differing = both.filter(|(ours, theirs)| ours != theirs);
            let ((name, ours), (_, theirs)) = differing.next()?;
            Some(format!("its {name} is {theirs} instead of {ours}"))
        };
        let in_system = || difference_of(&lines_of(&self.system), &lines_of(&other.system));
        let order = || "the same items stand in another order".to_string();
        Some(options().or_else(in_system).unwrap_or_else(order))
    }
}

/// The lines of a file that [`System::to_toml`] wrote, each with the item that it stands in.
fn lines_of(text: &str) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    let (mut header, mut item, mut task, mut links) = ("", String::new(), String::new(), 0);
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            header = line.trim_matches(['[', ']']);
            links += usize::from(header == "link");
            item = if header == "link" { format!("link {links}") } else { format!("[{header}]") };
        } else if let Some((key, value)) = line.split_once(" = ") {
            if key == "name" {
                match header {
                    "task.subtask" => item = format!("subtask {value} of {task}"),
                    "system" => {}
                    _ => item = format!("{header} {value}"),
                }
                if header == "task" {
                    task.clone_from(&item);
                }
            }
            lines.push(Line { item: item.clone(), key, value });
        }
    }
    lines
}

fn difference_of(ours: &[Line<'_>], theirs: &[Line<'_>]) -> Option<String> {
    let find = |lines: &[Line<'_>]| -> HashMap<(String, String), String> {
        let entry = |line: &Line<'_>| ((line.item.clone(), line.key.to_string()), line.value.to_string());
        lines.iter().map(entry).collect()
    };
    let (in_ours, in_theirs) = (find(ours), find(theirs));
    let has = |lines: &[Line<'_>], item: &str| lines.iter().any(|line| line.item == item);
    for Line { item, key, value } in ours {
        match in_theirs.get(&(item.clone(), (*key).to_string())) {
            Some(there) if there == value => {}
            Some(there) => return Some(format!("{key} of {item} is {there} there and {value} here")),
            None if has(theirs, item) => return Some(format!("{item} has {key} = {value} here only")),
            None => return Some(format!("{item} is described here only")),
        }
    }
    let extra =
        theirs.iter().find(|line| !in_ours.contains_key(&(line.item.clone(), line.key.to_string())))?;
    Some(match has(ours, &extra.item) {
        true => format!("{} has {} = {} there only", extra.item, extra.key, extra.value),
        false => format!("{} is described there only", extra.item),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::RtMode;
    use talea_model::{LinkBuilder, SubtaskBuilder, TaskBuilder};
    use talea_time::{Duration, Work};

    fn agreement(edit: impl FnOnce(String) -> String, options: &RunOptions) -> Agreement {
        let ms = Duration::from_millis;
        let step = |name: &str, node: &str| SubtaskBuilder::new(name).wcet(Work::from_millis(1)).on(node);
        let task = TaskBuilder::new("t", ms(9)).subtask(step("x", "a")).subtask(step("y", "b"));
        let link = LinkBuilder::between("a", "b").delay(ms(1));
        let other = TaskBuilder::new("u", ms(9)).wcet(Work::from_millis(1)).on("a");
        let system = System::builder("s").node("a", [0]).node("b", [1]).link(link).task(task).task(other);
        let text = edit(system.build().expect("a system").to_toml());
        let system = talea_model::parse("f", &text, "".as_ref()).expect("a system").system;
        Agreement::of(&system, options)
    }

    #[test]
    fn the_first_difference_is_named() {
        let options = RunOptions::default();
        let ours = agreement(|text| text, &options);
        let with = |edit: &dyn Fn(String) -> String| ours.difference(&agreement(edit, &options));
        assert_eq!(with(&|text| text), None);
        let changed = |from: &'static str, to: &'static str| {
            let difference = with(&|text| {
                assert!(text.contains(from), "{text}");
                text.replacen(from, to, 1)
            });
            difference.expect("they differ")
        };
        assert_eq!(
            changed("delay = \"1ms\"", "delay = \"2ms\""),
            "delay of link 1 is \"2ms\" there and \"1ms\" here"
        );
        assert_eq!(changed("seed = 1", "seed = 2"), "seed of [system] is 2 there and 1 here");
        assert_eq!(
            changed(
                "name = \"y\"\nnode = \"b\"\nwcet = \"1ms\"",
                "name = \"y\"\nnode = \"b\"\nwcet = \"3ms\""
            ),
            "wcet of subtask \"y\" of task \"t\" is \"3ms\" there and \"1ms\" here"
        );
        assert_eq!(changed("name = \"u\"", "name = \"v\""), "task \"u\" is described here only");
        let more = "\n[[task]]\nname = \"w\"\nperiod = \"9ms\"\nwcet = \"1ms\"\nnode = \"a\"\n";
        let extended = with(&|text| text + more).expect("they differ");
        assert_eq!(extended, "task \"w\" is described there only");
    }

    #[test]
    fn options_are_compared_before_the_system() {
        let ours = agreement(|text| text, &RunOptions { rt: RtMode::Off, ..RunOptions::default() });
        let other = RunOptions { rt: RtMode::Strict, ..RunOptions::default() };
        let difference = ours.difference(&agreement(|text| text.replace("seed = 1", "seed = 3"), &other));
        assert_eq!(difference.as_deref(), Some("its real-time mode is strict instead of off"));
    }
}
