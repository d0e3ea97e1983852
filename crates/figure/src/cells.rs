//! A map of what becomes of every combination of values on four axes.
//!
//! Two axes make a field of blocks, the two others the cells of each block, so that every combination has its own place (stacked dimensions,
//! LeBlanc, Ward and Wittels 1990). Cells of one kind beside each other are drawn as one rectangle.

use crate::drawing::{COLOURS, SMALL, TEXT};
use crate::raster::{self, RasterError};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use talea_text::printable_lines;

/// An axis and the values on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellAxis {
    /// What varies along it.
    pub label: String,
    /// Its values.
    pub values: Vec<String>,
}

/// What can become of a combination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellKind {
    /// What the legend calls it.
    pub name: String,
    /// Index of its colour; white if there is none.
    pub colour: Option<usize>,
}

/// A map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellMap {
    /// Heading.
    pub title: String,
    /// A second line, smaller: the conditions.
    pub conditions: String,
    /// The axes: across the blocks, up the blocks, across each block, up each block.
    pub axes: [CellAxis; 4],
    /// What can become of a combination.
    pub kinds: Vec<CellKind>,
    /// The places of combinations on the axes, each with the number of its kind.
    pub cells: Vec<([usize; 4], usize)>,
    /// The one that is pointed out.
    pub marked: Option<[usize; 4]>,
}

const CELL: i32 = 8;
const GAP: i32 = 5;
const LEFT: i32 = 110;
const TOP: i32 = 92;
/// For the values and the label of the axis below, and the explanation of a block.
const BELOW: i32 = 108;

type Area<Backend> = DrawingArea<Backend, Shift>;

impl CellMap {
    /// The map as SVG.
    ///
    /// # Errors
    /// The drawing library's.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let mut svg = String::new();
        self.draw(&SVGBackend::with_string(&mut svg, self.size()).into_drawing_area())?;
        Ok(printable_lines(&svg).into_owned())
    }

    /// The map as PNG.
    ///
    /// # Errors
    /// See [`RasterError`].
    pub fn png(&self) -> Result<Vec<u8>, RasterError> {
        raster::png(self.size(), |root| self.draw(root))
    }

    fn length(&self, axis: usize) -> i32 {
        self.axes[axis].values.len() as i32
    }

    fn block(&self) -> (i32, i32) {
        (self.length(2) * CELL, self.length(3) * CELL)
    }

    fn field(&self) -> (i32, i32) {
        let (wide, high) = self.block();
        (self.length(0) * (wide + GAP) - GAP, self.length(1) * (high + GAP) - GAP)
    }

    fn size(&self) -> (u32, u32) {
        let (wide, high) = self.field();
        ((LEFT + wide + 30).max(860) as u32, (TOP + high + BELOW) as u32)
    }

    /// The upper left corner of a block.
    fn corner(&self, across: usize, up: usize) -> (i32, i32) {
        let ((wide, high), (_, field)) = (self.block(), self.field());
        (LEFT + across as i32 * (wide + GAP), TOP + field - (up as i32 + 1) * (high + GAP) + GAP)
    }

    /// The upper left corner of a cell.
    fn place(&self, [across, up, inner_across, inner_up]: [usize; 4]) -> (i32, i32) {
        let (left, top) = self.corner(across, up);
        (left + inner_across as i32 * CELL, top + (self.length(3) - 1 - inner_up as i32) * CELL)
    }

    fn draw<Backend: DrawingBackend>(&self, root: &Area<Backend>) -> Result<(), Box<dyn Error>>
    where
        Backend::ErrorType: 'static,
    {
        root.fill(&WHITE)?;
        self.draw_heading(root)?;
        self.draw_cells(root)?;
        self.draw_axes(root)?;
        if let Some(marked) = self.marked {
            let (left, top) = self.place(marked);
            let around = [(left - 2, top - 2), (left + CELL + 1, top + CELL + 1)];
            root.draw(&Rectangle::new(around, BLACK.stroke_width(2)))?;
        }
        Ok(root.present()?)
    }

    fn draw_heading<Backend: DrawingBackend>(&self, root: &Area<Backend>) -> Result<(), Box<dyn Error>>
    where
        Backend::ErrorType: 'static,
    {
        let bold = TEXT.into_font().style(FontStyle::Bold).color(&BLACK);
        root.draw(&Text::new(self.title.clone(), (24, 14), bold))?;
        let grey = SMALL.into_font().color(&BLACK.mix(0.65));
        root.draw(&Text::new(self.conditions.clone(), (24, 38), grey))?;
        let mut x = 24;
        for kind in &self.kinds {
            let area = [(x, 64), (x + 12, 76)];
            if let Some(colour) = kind.colour {
                root.draw(&Rectangle::new(area, COLOURS[colour].filled()))?;
            }
            root.draw(&Rectangle::new(area, BLACK.mix(0.4)))?;
            root.draw(&Text::new(kind.name.clone(), (x + 18, 63), SMALL.into_font().color(&BLACK)))?;
            x += 40 + 8 * kind.name.chars().count() as i32;
        }
        Ok(())
    }

    /// Beside each other in a block and of one kind: first and last cell of each row's stretches.
    fn stretches(&self) -> Vec<([usize; 4], usize, usize)> {
        let mut sorted = self.cells.clone();
        sorted.sort_unstable_by_key(|([across, up, inner_across, inner_up], _)| {
            (*across, *up, *inner_up, *inner_across)
        });
        let mut stretches: Vec<([usize; 4], usize, usize)> = Vec::new();
        for (place, kind) in sorted {
            match stretches.last_mut() {
                Some((first, last, of))
                    if *of == kind
                        && place[2] == *last + 1
                        && [first[0], first[1], first[3]] == [place[0], place[1], place[3]] =>
                {
                    *last = place[2];
                }
                _ => stretches.push((place, place[2], kind)),
            }
        }
        stretches
    }

    fn draw_cells<Backend: DrawingBackend>(&self, root: &Area<Backend>) -> Result<(), Box<dyn Error>>
    where
        Backend::ErrorType: 'static,
    {
        for (first, last, kind) in self.stretches() {
            let Some(colour) = self.kinds[kind].colour else { continue };
            let (left, top) = self.place(first);
            let right = left + (last - first[2] + 1) as i32 * CELL;
            root.draw(&Rectangle::new([(left, top), (right, top + CELL)], COLOURS[colour].filled()))?;
        }
        let (wide, high) = self.block();
        for across in 0..self.axes[0].values.len() {
            for up in 0..self.axes[1].values.len() {
                let (left, top) = self.corner(across, up);
                let frame = [(left, top), (left + wide, top + high)];
                root.draw(&Rectangle::new(frame, BLACK.mix(0.35)))?;
            }
        }
        Ok(())
    }

    fn draw_axes<Backend: DrawingBackend>(&self, root: &Area<Backend>) -> Result<(), Box<dyn Error>>
    where
        Backend::ErrorType: 'static,
    {
        let text = SMALL.into_font().color(&BLACK);
        let ((wide, high), (field_wide, field_high)) = (self.block(), self.field());
        let bottom = TOP + field_high;
        let below = text.clone().pos(Pos::new(HPos::Center, VPos::Top));
        for (across, value) in self.axes[0].values.iter().enumerate() {
            let (left, _) = self.corner(across, 0);
            root.draw(&Text::new(value.clone(), (left + wide / 2, bottom + 6), below.clone()))?;
        }
        let middle = (LEFT + field_wide / 2, bottom + 28);
        root.draw(&Text::new(self.axes[0].label.clone(), middle, below))?;
        let beside = text.clone().pos(Pos::new(HPos::Right, VPos::Center));
        for (up, value) in self.axes[1].values.iter().enumerate() {
            let (_, top) = self.corner(0, up);
            root.draw(&Text::new(value.clone(), (LEFT - 8, top + high / 2), beside.clone()))?;
        }
        let upright = SMALL.into_font().transform(FontTransform::Rotate270).color(&BLACK);
        let upright = upright.pos(Pos::new(HPos::Center, VPos::Top));
        root.draw(&Text::new(self.axes[1].label.clone(), (18, TOP + field_high / 2), upright))?;
        let grey = SMALL.into_font().color(&BLACK.mix(0.65));
        for (line, (way, axis)) in [("from left to right", 2), ("from below", 3)].into_iter().enumerate() {
            let CellAxis { label, values } = &self.axes[axis];
            let ends = [values.first(), values.last()].map(|value| value.map_or("", String::as_str));
            let words = format!("in each block {way}: {label}, {} to {}", ends[0], ends[1]);
            root.draw(&Text::new(words, (24, bottom + 58 + 20 * line as i32), grey.clone()))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> CellMap {
        let axis = |label: &str, count: usize| CellAxis {
            label: label.into(),
            values: (0..count).map(|value| value.to_string()).collect(),
        };
        let kind = |name: &str, colour| CellKind { name: name.into(), colour };
        CellMap {
            title: "map".into(),
            conditions: "none".into(),
            axes: [axis("a", 2), axis("b", 3), axis("c", 4), axis("d", 5)],
            kinds: vec![kind("nothing", None), kind("something", Some(1))],
            cells: vec![([1, 2, 0, 0], 1), ([1, 2, 1, 0], 1), ([1, 2, 3, 0], 1), ([1, 2, 2, 0], 0)],
            marked: Some([1, 2, 3, 0]),
        }
    }

    #[test]
    fn every_combination_has_a_place_of_its_own() {
        let map = map();
        let mut places = std::collections::BTreeSet::new();
        let (width, height) = map.size();
        for number in 0..2 * 3 * 4 * 5 {
            let place = [number % 2, number / 2 % 3, number / 6 % 4, number / 24];
            let (x, y) = map.place(place);
            assert!(x >= LEFT && y >= TOP && x + CELL < width as i32 && y + CELL < height as i32 - BELOW + 1);
            assert!(places.insert((x, y)), "{place:?}");
        }
        // What is greater is further right and further up.
        assert!(map.place([1, 0, 0, 0]).0 > map.place([0, 0, 3, 0]).0);
        assert!(map.place([0, 1, 0, 0]).1 < map.place([0, 0, 0, 4]).1);
    }

    #[test]
    fn neighbours_of_one_kind_are_one_rectangle() {
        let map = map();
        assert_eq!(map.stretches(), [([1, 2, 0, 0], 1, 1), ([1, 2, 2, 0], 2, 0), ([1, 2, 3, 0], 3, 1)]);
        let svg = map.svg().expect("it can be drawn");
        assert_eq!(svg.matches("#E69F00").count(), 3, "two stretches and the legend: {svg}");
        assert!(map.png().expect("it can be drawn").starts_with(b"\x89PNG"));
    }
}
