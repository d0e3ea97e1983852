//! The machine that is asked about: this one, or one of which somebody has a profile.

use crate::cli::failure::Failure;
use std::path::Path;
use talea_model::Machine;
use talea_runtime::doctor::{Thoroughness, measure};

/// The word for the machine that this runs on.
const THIS: &str = "this";

/// The machine of a profile, or this one, which is measured for a second.
pub fn named(named: &Path) -> Result<Machine, Failure> {
    if named == Path::new(THIS) { this() } else { read(named) }
}

fn this() -> Result<Machine, Failure> {
    let bar = crate::cli::progress::bar("measured", 2);
    let machine = measure(Thoroughness::Quick, |done, _| {
        bar.set_position(done as u64);
        true
    });
    bar.finish_and_clear();
    machine.ok_or_else(|| {
        Failure::new(
            "this machine cannot be measured",
            "`talea doctor` says what is permitted; or name a profile",
        )
    })
}

fn read(file: &Path) -> Result<Machine, Failure> {
    const WRITE: &str =
        "`talea doctor --measure --out FILE` writes a profile; \"this\" stands for this machine";
    let shown = file.display();
    Machine::read(file).map_err(|error| Failure::new(format!("{shown}: {error}"), WRITE))
}
