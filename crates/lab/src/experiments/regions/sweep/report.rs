//! What is written of the settings: a map, tables, claims, every setting.

use super::{Found, Outcome, Shape, Sweep};
use crate::experiments::folder::Folder;
use crate::experiments::{Claim, ExperimentError, Extent, Findings, Verdict};
use crate::table::{Table, percent};
use std::path::Path;
use talea_figure::cells::{CellAxis, CellKind, CellMap};

/// Writes the map, the tables and every setting.
///
/// # Errors
/// [`ExperimentError::Unwritable`].
pub fn publish(sweep: &Sweep, mut folder: Folder, extent: Extent) -> Result<Findings, ExperimentError> {
    let claims = claims(sweep);
    let conditions = conditions(sweep);
    let (totals, by_value) = (totals(sweep), by_value(sweep));
    let unwritable =
        |cause: &dyn std::fmt::Display| ExperimentError::unwritable(Path::new("map"), cause.to_string());
    folder.write("settings.csv", csv(sweep).map_err(|cause| unwritable(&cause))?)?;
    let sections = [
        ("What appears", &totals),
        ("Claims", &super::super::report::claim_table(&claims)),
        ("Where it appears: settings by the value on each axis", &by_value),
    ];
    let document = sections.map(|(title, table)| format!("## {title}\n\n{}\n", table.markdown()));
    let head = format!("# Where the paper's pattern appears\n\n{conditions}.\n\n");
    folder.write("report.md", head + &document.join("\n"))?;
    let json = serde_json::json!({ "conditions": conditions, "claims": claims, "found": counts(sweep) });
    folder
        .write("results.json", serde_json::to_string_pretty(&json).expect("results are plain data") + "\n")?;
    let map = map(sweep);
    folder.write("map.svg", map.svg().map_err(|cause| unwritable(&cause))?)?;
    folder.write("map.png", map.png().map_err(|cause| unwritable(&cause))?)?;
    let table = format!("{conditions}\n\n{}\n\n{}", totals.text(), by_value.text());
    Ok(Findings { table, claims, files: folder.files(), extent })
}

fn of_how_many(sweep: &Sweep) -> String {
    match (sweep.count(), sweep.grid.count()) {
        (tried, all) if tried == all => format!("{all} settings, simulated at measured prices"),
        (tried, all) => format!("{tried} of {all} settings, simulated at measured prices"),
    }
}

fn conditions(sweep: &Sweep) -> String {
    format!("{}, each of twelve regions under RMS, MUF and RMS+MLF", of_how_many(sweep))
}

fn count(sweep: &Sweep, is_counted: impl Fn(&Outcome) -> bool) -> usize {
    sweep.tried().filter(|(_, outcome)| is_counted(outcome)).count()
}

fn counts(sweep: &Sweep) -> serde_json::Value {
    let of = |found: Found| count(sweep, |outcome| outcome.found() == found);
    Found::ALL
        .into_iter()
        .map(|found| (found.name().to_string(), of(found).into()))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn totals(sweep: &Sweep) -> Table {
    let mut table = Table::new(1, &["found", "settings", "%"]);
    for found in Found::ALL {
        let settings = count(sweep, |outcome| outcome.found() == found);
        let share = settings as f64 / sweep.count().max(1) as f64;
        table.row(vec![found.name().into(), settings.to_string(), percent(share)]);
    }
    table
}

/// Of the settings with each value on each axis, how many have what.
fn by_value(sweep: &Sweep) -> Table {
    let headings = ["axis", "value", "settings"].into_iter().chain(Found::ALL.into_iter().map(Found::name));
    let mut table = Table::new(2, &headings.collect::<Vec<_>>());
    for (axis, described) in sweep.grid.axes().into_iter().enumerate() {
        for (place, value) in described.values.into_iter().enumerate() {
            let here: Vec<Found> = sweep
                .tried()
                .filter(|(places, _)| places[axis] == place)
                .map(|(_, outcome)| outcome.found())
                .collect();
            let of = |found| here.iter().filter(|other| **other == found).count().to_string();
            let row = [described.label.to_string(), value, here.len().to_string()];
            table.row(row.into_iter().chain(Found::ALL.into_iter().map(of)).collect());
        }
    }
    table
}

/// Whether the paper's claims that fail in the experiment's own setting hold in others.
fn claims(sweep: &Sweep) -> Vec<Claim> {
    let kept = |outcome: &Outcome| outcome.found() > Found::HardMisses;
    let both = |outcome: &Outcome, holds: fn(&Shape) -> bool| outcome.shapes.iter().all(holds);
    let claim = |statement: &str, holds: &dyn Fn(&Outcome) -> bool| Claim {
        statement: statement.into(),
        verdict: if sweep.count() == 0 { Verdict::Undecided } else { Verdict::of(count(sweep, holds) > 0) },
        figures: figures(sweep, holds),
    };
    vec![
        claim(
            "MUF and RMS+MLF are cyclic over regions 0 to 11 with period four, in some settings (4.1)",
            &|outcome| kept(outcome) && both(outcome, Shape::is_cyclic),
        ),
        claim(
            "MUF and RMS+MLF follow the load jitter more than the load, over regions 0 to 11, in some settings (4.1)",
            &|outcome| kept(outcome) && both(outcome, Shape::follows_jitter),
        ),
        claim("both hold together, in some settings (4.1)", &|outcome| outcome.found() >= Found::Both),
        claim(
            "both hold while RMS grows through region 6, serves most and misses from 8 on, in some settings (4.1)",
            &|outcome| outcome.found() == Found::Whole,
        ),
    ]
}

/// In how many settings, and the one nearest to the experiment's own.
fn figures(sweep: &Sweep, holds: &dyn Fn(&Outcome) -> bool) -> String {
    let ours = sweep.grid.ours();
    let steps =
        |place: &[usize]| place.iter().zip(&ours).map(|(one, other)| one.abs_diff(*other)).sum::<usize>();
    let holding = || sweep.tried().filter(|(_, outcome)| holds(outcome));
    let nearest = holding().min_by_key(|(place, _)| steps(place));
    let nearest = nearest.map(|(place, _)| {
        let values = sweep.grid.axes().into_iter().zip(place);
        let values = values.map(|(axis, place)| format!("{} {}", axis.label, axis.values[place]));
        format!("; nearest to ours: {}", values.collect::<Vec<_>>().join(", "))
    });
    format!("{} of {} settings{}", holding().count(), sweep.count(), nearest.unwrap_or_default())
}

fn map(sweep: &Sweep) -> CellMap {
    let axes = sweep.grid.axes().map(|axis| CellAxis { label: axis.label.into(), values: axis.values });
    let colour = |found| match found {
        Found::HardMisses => Some(6),
        Found::Neither => None,
        Found::Cyclic => Some(4),
        Found::FollowsJitter => Some(7),
        Found::Both => Some(1),
        Found::Whole => Some(5),
    };
    let kind = |found: Found| CellKind { name: found.name().into(), colour: colour(found) };
    let place = |found| Found::ALL.iter().position(|other| *other == found).expect("it is one of them");
    CellMap {
        title: "Where MUF and RMS+MLF are cyclic, and follow the load jitter more than the load".into(),
        conditions: format!("{}; framed: the setting of the other figures", of_how_many(sweep)),
        axes,
        kinds: Found::ALL.into_iter().map(kind).collect(),
        cells: sweep.tried().map(|(at, outcome)| (at, place(outcome.found()))).collect(),
        marked: Some(sweep.grid.ours()),
    }
}

/// Every setting with what was served in each region.
fn csv(sweep: &Sweep) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    let names = ["rms", "muf", "rms+mlf"];
    let mut headings: Vec<String> = sweep
        .grid
        .axes()
        .into_iter()
        .map(|axis| axis.label.replace(' ', "_").replace([':', ','], ""))
        .collect();
    headings.push("found".into());
    for name in &names[1..] {
        let of = ["cycle_share", "cycle_p", "jitter_partial_r2", "load_partial_r2", "rises_with_jitter"];
        headings.extend(of.map(|of| format!("{name}_{of}")));
    }
    for name in names {
        headings.extend((0..12).map(|region| format!("{name}_soft_{region}")));
        headings.extend((0..12).map(|region| format!("{name}_missed_{region}")));
    }
    csv.write_record(&headings)?;
    let axes = sweep.grid.axes();
    for (place, outcome) in sweep.tried() {
        let mut row: Vec<String> =
            axes.iter().zip(place).map(|(axis, place)| axis.values[place].clone()).collect();
        row.push(outcome.found().name().into());
        for Shape { cycle, follows } in &outcome.shapes {
            let figures = [cycle.share, cycle.p, follows.jitter, follows.load];
            row.extend(figures.map(|figure| format!("{figure:.4}")));
            row.push(follows.rises_with_jitter.to_string());
        }
        for served in [&outcome.rms, &outcome.muf, &outcome.hybrid] {
            row.extend(served.soft.map(|soft| format!("{soft:.2}")));
            row.extend(served.missed.map(|missed| format!("{missed:.2}")));
        }
        csv.write_record(&row)?;
    }
    Ok(csv.into_inner()?)
}
