//! Hierarchies drawn as in the paper: schedulers as boxes, threads with rounded corners, the guarantee on each edge.
//!
//! The leaves stand side by side in the order of the tree, schedulers in the middle above what hangs from them, and everything as far
//! below the root as its longest way from there, so that edges only go down. The further parents of a join have a column of their own
//! for the edge to it.

use crate::drawing::{SMALL, TEXT, svg};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::HashMap;
use std::error::Error;
use talea_check::hierarchy::{Child, Composition, HierarchyCheck, Row, State, rows};

/// Rows drawn at most for each hierarchy: those nearest the root in the order of the tree.
const ROWS: usize = 300;

const BLUE: RGBColor = RGBColor(0, 114, 178);
const GREEN: RGBColor = RGBColor(0, 158, 115);
const RED: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(148, 148, 148);

/// From one level to the next, and the height of a box.
const LEVEL: i32 = 104;
const BOX: i32 = 40;
const MARGIN: i32 = 24;
const HEADING: i32 = 44;

/// Width of a letter of the small font, as a renderer without that font may have it.
const LETTER: i32 = 8;

/// Draws the hierarchies, one below the other, as SVG.
///
/// # Errors
/// What cannot be drawn, which nothing in it is.
pub fn draw(system: &str, checks: &[HierarchyCheck]) -> Result<String, Box<dyn Error>> {
    let pictures: Vec<Picture> = checks.iter().map(Picture::new).collect();
    let width = pictures.iter().map(|picture| picture.width).max().unwrap_or(0).max(480) + 2 * MARGIN;
    let height: i32 = pictures.iter().map(|picture| picture.height).sum::<i32>() + MARGIN;
    svg((width as u32, height as u32), |root| {
        let mut top = 0;
        for (check, picture) in checks.iter().zip(&pictures) {
            picture.draw(root, &heading(system, check, picture.left_out), top)?;
            top += picture.height;
        }
        Ok(())
    })
}

fn heading(system: &str, check: &HierarchyCheck, left_out: usize) -> String {
    let verdict = match check.verdict {
        Composition::Composes => "everybody receives what it needs".into(),
        Composition::Fails => {
            let failing: Vec<&str> =
                check.findings.iter().map(|finding| finding.node.as_str()).take(4).collect();
            format!("not enough for {}", failing.join(", "))
        }
        Composition::OnPaper => "not everything is known to be kept".into(),
        Composition::Refused => "a scheduler refuses it".into(),
    };
    let left_out = match left_out {
        0 => String::new(),
        rows => format!("; {rows} more edges are left out"),
    };
    format!("{system}, node {}: {verdict}{left_out}", check.node)
}

/// A scheduler or thread, or the bend of an edge to one that hangs elsewhere, with its place; x is its middle.
struct Place {
    row: usize,
    x: i32,
    level: i32,
    width: i32,
}

/// One edge that is drawn, by the places of its ends and of its bend, which is that of its row.
struct Line {
    parent: usize,
    child: usize,
    own: usize,
}

struct Picture {
    rows: Vec<Row>,
    places: Vec<Place>,
    lines: Vec<Line>,
    width: i32,
    height: i32,
    left_out: usize,
}

impl Picture {
    fn new(check: &HierarchyCheck) -> Self {
        let mut rows = rows(check);
        let left_out = rows.len().saturating_sub(ROWS);
        rows.truncate(ROWS);
        let place = |(row, shown): (usize, &Row)| Place { row, x: 0, level: 0, width: width_of(shown) };
        let mut places: Vec<Place> = rows.iter().enumerate().map(place).collect();
        let is_bend = |row: &Row| matches!(row.child, Child::Elsewhere(_));
        let boxes = rows.iter().enumerate().filter(|(_, row)| !is_bend(row));
        let of_name: HashMap<&str, usize> = boxes.map(|(place, row)| (row.name.as_str(), place)).collect();
        let (mut lines, mut way) = (Vec::new(), Vec::new());
        for (own, row) in rows.iter().enumerate() {
            way.truncate(row.depth);
            // Where the end of an edge has been left out, the edge leads to its bend.
            let child = of_name.get(row.name.as_str()).copied().unwrap_or(own);
            if let Some(parent) = way.last() {
                lines.push(Line { parent: *parent, child, own });
            }
            way.push(own);
        }
        set_levels(&mut places, &lines);
        let width = set_columns(&mut places, &lines, &rows);
        let levels = places.iter().map(|place| place.level).max().unwrap_or(0);
        let height = HEADING + MARGIN + levels * LEVEL + BOX;
        Picture { rows, places, lines, width, height, left_out }
    }

    fn draw<B: DrawingBackend>(
        &self,
        root: &DrawingArea<B, Shift>,
        heading: &str,
        top: i32,
    ) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        root.draw(&Text::new(heading.to_string(), (MARGIN, top + 16), TEXT.into_font().color(&BLACK)))?;
        let y = |place: &Place| top + HEADING + place.level * LEVEL;
        for (number, line) in self.lines.iter().enumerate() {
            let path = self.path(line, number as i32, &y);
            let tip = path[path.len() - 1];
            root.draw(&PathElement::new(path, BLACK.mix(0.6)))?;
            let tip = vec![tip, (tip.0 - 4, tip.1 - 8), (tip.0 + 4, tip.1 - 8)];
            root.draw(&Polygon::new(tip, BLACK.mix(0.6)))?;
        }
        for line in &self.lines {
            self.label(root, line, &y)?;
        }
        let boxes =
            self.places.iter().filter(|place| !matches!(self.rows[place.row].child, Child::Elsewhere(_)));
        for place in boxes {
            self.node(root, place, y(place))?;
        }
        Ok(())
    }

    /// Down, across to the column of the edge, and down it; to what hangs elsewhere then across again, just above it.
    fn path(&self, line: &Line, number: i32, y: &dyn Fn(&Place) -> i32) -> Vec<(i32, i32)> {
        let place = |index: usize| &self.places[index];
        let (parent, own, child) = (place(line.parent), place(line.own), place(line.child));
        let (from, column) = (MARGIN + parent.x, MARGIN + own.x);
        let across = y(parent) + BOX + 14;
        let mut path = vec![(from, y(parent) + BOX), (from, across), (column, across)];
        if line.own == line.child {
            path.push((column, y(child)));
        } else {
            // Edges that come from elsewhere stay apart from each other and from the first one.
            let (above, beside) = (10 + 4 * (number % 3), 10 + 6 * (number % 2));
            let (track, end) = (y(child) - above, MARGIN + child.x + beside);
            path.extend([(column, track), (end, track), (end, y(child))]);
        }
        path
    }

    /// The guarantee of an edge, in its column, with white behind it.
    fn label<B: DrawingBackend>(
        &self,
        root: &DrawingArea<B, Shift>,
        line: &Line,
        y: &dyn Fn(&Place) -> i32,
    ) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let (own, row) = (&self.places[line.own], &self.rows[line.own]);
        let text = row.receives.as_ref().map_or("?".into(), ToString::to_string);
        let (x, y) = (MARGIN + own.x, y(own) - 34);
        let half = text.chars().count() as i32 * LETTER / 2;
        root.draw(&Rectangle::new([(x - half, y - 8), (x + half, y + 8)], WHITE.mix(0.85).filled()))?;
        let colour = if row.receives.is_some() { BLACK } else { GREY };
        let style = SMALL.into_font().color(&colour).pos(Pos::new(HPos::Center, VPos::Center));
        root.draw(&Text::new(text, (x, y), style))?;
        Ok(())
    }

    fn node<B: DrawingBackend>(
        &self,
        root: &DrawingArea<B, Shift>,
        place: &Place,
        y: i32,
    ) -> Result<(), Box<dyn Error>>
    where
        B::ErrorType: 'static,
    {
        let row = &self.rows[place.row];
        let colour = match (row.state, &row.child) {
            (State::Failed | State::Refused, _) => RED,
            (State::Unknown, _) => GREY,
            (State::Served, Child::Thread | Child::Lanes) => GREEN,
            (State::Served, _) => BLUE,
        };
        let (left, right) = (MARGIN + place.x - place.width / 2, MARGIN + place.x + place.width / 2);
        let outline = match row.child {
            Child::Thread | Child::Lanes => rounded(left, right, y),
            _ => vec![(left, y), (right, y), (right, y + BOX), (left, y + BOX), (left, y)],
        };
        root.draw(&Polygon::new(outline.clone(), WHITE))?;
        root.draw(&Polygon::new(outline.clone(), colour.mix(0.12)))?;
        root.draw(&PathElement::new(outline, colour.stroke_width(2)))?;
        let middle = |size: (&'static str, i32)| {
            size.into_font().color(&BLACK).pos(Pos::new(HPos::Center, VPos::Center))
        };
        root.draw(&Text::new(row.name.clone(), (MARGIN + place.x, y + 12), middle(TEXT)))?;
        root.draw(&Text::new(what(row), (MARGIN + place.x, y + 29), middle(SMALL)))?;
        Ok(())
    }
}

/// A box with its corners cut off.
fn rounded(left: i32, right: i32, top: i32) -> Vec<(i32, i32)> {
    const CUT: i32 = 10;
    let bottom = top + BOX;
    vec![
        (left + CUT, top),
        (right - CUT, top),
        (right, top + CUT),
        (right, bottom - CUT),
        (right - CUT, bottom),
        (left + CUT, bottom),
        (left, bottom - CUT),
        (left, top + CUT),
        (left + CUT, top),
    ]
}

fn what(row: &Row) -> String {
    match row.child {
        Child::Scheduler(kind) | Child::Elsewhere(kind) => kind.into(),
        Child::Thread => "thread".into(),
        Child::Lanes => "lanes of tasks".into(),
    }
}

/// Wide enough for its name, its kind and, above it, its guarantee.
fn width_of(row: &Row) -> i32 {
    let letters = row.name.chars().count().max(what(row).chars().count());
    letters as i32 * LETTER + 20
}

/// The number of edges of the longest path from the root; bends are one level below their parents.
fn set_levels(places: &mut [Place], lines: &[Line]) {
    // A way has no more steps than there are places.
    for _ in 0..places.len() {
        let mut changed = false;
        for line in lines {
            let level = places[line.parent].level + 1;
            for end in [line.own, line.child] {
                if places[end].level < level {
                    places[end].level = level;
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
}

/// Gives leaves and bends the next free column and schedulers the middle of what hangs from them; returns the width of it all.
///
/// Places are in the order of the tree: leaves from left to right, and what hangs from a scheduler after it.
fn set_columns(places: &mut [Place], lines: &[Line], rows: &[Row]) -> i32 {
    const GAP: i32 = 16;
    let mut hanging: Vec<Vec<usize>> = vec![Vec::new(); places.len()];
    for line in lines {
        hanging[line.parent].push(line.own);
    }
    let letters = |label: Option<String>| label.map_or(1, |label| label.chars().count()) as i32;
    let label = |place: &Place| letters(rows[place.row].receives.as_ref().map(ToString::to_string)) * LETTER;
    let mut room: Vec<i32> = places.iter().map(|place| place.width.max(label(place))).collect();
    let mut free = 0;
    for index in 0..places.len() {
        match hanging[index][..] {
            [] => {
                places[index].x = free + room[index] / 2;
                free += room[index] + GAP;
            }
            // A scheduler above nothing else has to fit there too.
            [only] => room[only] = room[only].max(room[index]),
            _ => {}
        }
    }
    for index in (0..places.len()).rev() {
        if let (Some(first), Some(last)) = (hanging[index].first(), hanging[index].last()) {
            places[index].x = (places[*first].x + places[*last].x) / 2;
        }
    }
    let sides = |place: &Place| place.width.max(label(place)) / 2;
    let shift = places.iter().map(|place| sides(place) - place.x).max().unwrap_or(0).max(0);
    for place in places.iter_mut() {
        place.x += shift;
    }
    places.iter().map(|place| place.x + sides(place)).max().unwrap_or(0)
}
