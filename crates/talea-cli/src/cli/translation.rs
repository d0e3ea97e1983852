//! What `talea import` and `talea export` share: where the result goes, and how losses are shown.

use super::draft::{Draft, Readers};
use super::failure::{Failure, Verdict};
use super::options::distinct;
use super::output;
use crate::cli::failure::path_shown;
use crate::cli::output::tell;
use clap::Args;
use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use talea_interchange::{Effect, Loss, Origin, Translated};

/// Where a translation goes.
#[derive(Args)]
pub struct Destination {
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "out")]
    force: bool,
    /// Write nothing if the other format cannot express everything
    #[arg(long)]
    strict: bool,
}

impl Destination {
    /// Refuses a file that is there already, unless that is meant, and the input in any case.
    pub fn ensure_free(&self, input: &Path) -> Result<(), Failure> {
        let Some(out) = &self.out else { return Ok(()) };
        distinct(out, input)?;
        if out.is_dir() {
            return Err(Failure::new(format!("{} is a folder", path_shown(out)), "name a file in it"));
        }
        if !self.force && out.is_file() {
            let message = format!("{} exists already", path_shown(out));
            return Err(Failure::new(message, "choose another name, or replace it with --force"));
        }
        Ok(())
    }

    /// Writes the `text` of a translation to the file or to standard output, unless it is to be strict and
    /// something is lost.
    pub fn deliver<T>(&self, translated: &Translated<T>, text: &str) -> super::Outcome {
        if self.strict && !translated.is_faithful() {
            tell!("nothing is written, because something is lost and --strict was given");
            return Ok(Verdict::Negative);
        }
        match &self.out {
            None => output::print(text.trim_end())?,
            Some(out) => {
                Draft::create(out, Readers::Usual)?.complete(out, text)?;
            }
        }
        Ok(Verdict::Fine)
    }
}

/// Lists losses on standard error. What only concerns one run is a note.
pub fn show_losses(file: &str, losses: &[Loss]) {
    for group in groups(losses) {
        let kind = if group.effect.changes_meaning() { "warning" } else { "note" };
        let place = group.place.map_or(String::new(), |(line, column)| format!("{line}:{column}:"));
        tell!("{file}:{place} {kind}: {group}");
    }
}

/// Losses that say the same of several items.
pub struct Group<'a> {
    effect: Effect,
    what: &'a str,
    /// Line and column of the first.
    place: Option<(usize, usize)>,
    /// The items and their keys, each once.
    items: Vec<(&'a str, Vec<&'a str>)>,
}

/// The losses by what they say, in the order of the first of each.
pub fn groups(losses: &[Loss]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut numbers = HashMap::new();
    for loss in losses {
        let number = *numbers.entry((loss.effect, loss.what.as_ref())).or_insert_with(|| {
            let place = match &loss.origin {
                Origin::Text(location) => Some((location.line, location.column)),
                Origin::Model(_) => None,
            };
            groups.push(Group { effect: loss.effect, what: &loss.what, place, items: Vec::new() });
            groups.len() - 1
        });
        let items = &mut groups[number].items;
        match items.last_mut() {
            Some((subject, keys)) if *subject == loss.subject => {
                if !keys.contains(&loss.key.as_ref()) {
                    keys.push(&loss.key);
                }
            }
            _ => items.push((&loss.subject, vec![&loss.key])),
        }
    }
    groups
}

/// How many items a line names.
const NAMED: usize = 4;

/// `lost: task "a", lock; task "b", lock: operations hold no locks`.
impl fmt::Display for Group<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items = self.items.iter().take(NAMED).map(|(subject, keys)| {
            let keys: Vec<&str> = keys.iter().copied().filter(|key| !key.is_empty()).collect();
            if keys.is_empty() { (*subject).to_owned() } else { format!("{subject}, {}", keys.join(", ")) }
        });
        let items = items.collect::<Vec<_>>().join("; ");
        let more = match self.items.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        write!(f, "{}: {items}{more}: {}", self.effect, self.what)
    }
}
