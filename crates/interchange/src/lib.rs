//! What people already have, to and from a system description: rt-app JSON, SimSo XML, and CSV tables.
//!
//! No two of these formats say the same things, so every translation comes with the list of its
//! [`Loss`]es: what the other side has no word for, what was put in its place, and what had to be
//! assumed. Nothing is lost silently. What a format *can* carry survives the way out and back.
//!
//! | Module | Format | What carries over |
//! |---|---|---|
//! | [`rt_app`] | [`Format::RtApp`] | periodic threads, execution lists, chains and trees of subtasks, CPU sets |
//! | [`simso`] | [`Format::SimSo`] | periodic tasks, constant execution times, chains, the number of processors |
//! | [`tabular`] | [`Format::Csv`] | all of nodes, tasks and subtasks; nothing of the system as a whole |
//!
//! Reading is in three steps: text to a tree with positions (by a library where one reads the dialect),
//! tree to plain values with every problem at once, values to a description that the model has checked.
//! What [`import`] returns is always a valid system.

#![forbid(unsafe_code)]

mod format;
mod loss;
mod names;
mod number;
mod priority;
mod reading;
mod recognition;
pub mod rt_app;
mod settings;
pub mod simso;
mod source;
pub mod tabular;

pub use format::{Format, UnknownFormat};
pub use loss::{Effect, Loss, Origin, Translated};
pub use source::read;

use settings::Losses;
pub use talea_model::Problems;
use talea_model::{Description, System};

/// Reads the text of a file in `format`.
///
/// `source_name` stands in messages; without its extension it is also the name of the system, which none
/// of the formats has a place for. The description satisfies every rule of the model ([`System::new`]
/// accepts it).
///
/// # Errors
/// All problems of the text, each with its place and a remedy. XML ends at its first syntax error.
pub fn import(format: Format, source_name: &str, text: &str) -> Result<Translated<Description>, Problems> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        return Err(Problems::whole_file(source_name, "the file is empty", "name a file with tasks in it"));
    }
    match format {
        Format::RtApp => rt_app::import(source_name, text),
        Format::SimSo => simso::import(source_name, text),
        Format::Csv => tabular::import(source_name, text),
    }
}

/// Writes a system in `format`. The text is complete whatever is lost; the losses say what it does not say.
pub fn export(format: Format, system: &System) -> Translated<String> {
    let mut translated = match format {
        Format::RtApp => rt_app::export(system),
        Format::SimSo => simso::export(system),
        Format::Csv => tabular::export(system),
    };
    let mut losses = Losses::new(format);
    losses.compare_releases(system);
    losses.compare_data(system);
    losses.compare_hierarchies(system);
    translated.losses.extend(losses.list);
    translated
}
