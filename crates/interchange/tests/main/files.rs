//! The example files, and reading them.

use std::path::PathBuf;
use talea_interchange::{Effect, Format, Loss, Problems, Translated, import};
use talea_model::{Description, Task};

/// Every example with its format.
pub const EXAMPLES: [(Format, &str); 7] = [
    (Format::RtApp, "gripper.json"),
    (Format::RtApp, "conveyor.json"),
    (Format::RtApp, "reservations.json"),
    (Format::SimSo, "mixer.xml"),
    (Format::SimSo, "bottling.xml"),
    (Format::Csv, "plant.csv"),
    (Format::Csv, "arm.csv"),
];

pub fn text(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    std::fs::read_to_string(path).expect("the example is there")
}

/// An example, imported.
pub fn example(name: &str) -> Translated<Description> {
    let (format, _) = EXAMPLES.into_iter().find(|(_, known)| *known == name).expect("an example");
    import(format, name, &text(name)).unwrap_or_else(|rejected| panic!("{rejected}"))
}

pub fn accepted(format: Format, text: &str) -> Translated<Description> {
    import(format, "x", text).unwrap_or_else(|rejected| panic!("{rejected}"))
}

/// The text of all problems.
pub fn rejected(format: Format, text: &str) -> Problems {
    import(format, "x", text).expect_err("the text is wrong")
}

pub fn named<'a>(description: &'a Description, task: &str) -> &'a Task {
    let found = description.tasks.iter().find(|known| known.name == task);
    found.unwrap_or_else(|| panic!("no task {task} in {:?}", names(description)))
}

pub fn names(description: &Description) -> Vec<&str> {
    description.tasks.iter().map(|task| task.name.as_str()).collect()
}

/// The losses that change the meaning, as `effect subject, key`.
pub fn changes(losses: &[Loss]) -> Vec<String> {
    let changing = losses.iter().filter(|loss| loss.effect.changes_meaning());
    changing.map(|loss| format!("{} {}, {}", loss.effect, loss.subject, loss.key)).collect()
}

/// The losses that do not.
pub fn settings(losses: &[Loss]) -> Vec<String> {
    let settings = losses.iter().filter(|loss| loss.effect == Effect::Setting);
    settings.map(|loss| loss.key.to_string()).collect()
}
