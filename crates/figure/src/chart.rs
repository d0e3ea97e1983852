//! Charts of points over two axes, drawn in the same way as SVG and as PNG.

use crate::drawing::{COLOURS, SMALL};
use crate::raster::{self, RasterError};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::error::Error;
use talea_text::printable_lines;

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: String,
    /// Value at its beginning.
    pub from: f64,
    /// Value at its end.
    pub to: f64,
    /// How values lie along it.
    pub scale: Scale,
    /// Marked values and what is written there, instead of round numbers.
    pub ticks: Option<Vec<(f64, String)>>,
}

/// How values lie along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps are equal differences.
    Linear,
    /// Equal steps are equal factors; values must be above 0.
    Logarithmic,
}

/// What a point looks like. Shapes differ besides colours, so that print and colour-blind readers can tell them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A filled disc.
    Disc,
    /// A ring, which lets a point below it be seen.
    Ring,
    /// A diagonal cross.
    Cross,
    /// A filled triangle.
    Triangle,
    /// A filled square.
    Square,
}

/// Whether points are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// By straight lines, in their order.
    Line,
    /// Not at all.
    No,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it.
    pub name: String,
    /// Index of its colour.
    pub colour: usize,
    /// What its points look like.
    pub mark: Mark,
    /// Whether they are joined.
    pub joined: Joined,
    /// The points.
    pub points: Vec<(f64, f64)>,
}

/// What stands at the right of a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Margin {
    /// Nothing.
    Empty,
    /// How often each height occurs, by series, with the mean as a line.
    Distributions,
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// Heading.
    pub title: String,
    /// A second line, smaller: the conditions.
    pub conditions: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// What is drawn, the first one lowest.
    pub series: Vec<Series>,
    /// What stands at the right.
    pub margin: Margin,
}

const SIZE: (u32, u32) = (900, 540);
const LEFT: i32 = 84;
const TOP: i32 = 96;
const BOTTOM: i32 = 466;
const TITLE: (&str, i32) = ("sans-serif", 18);
/// Rows that a distribution is counted in.
const ROWS: usize = 46;

type Area<Backend> = DrawingArea<Backend, Shift>;

impl Axis {
    /// A linear axis over all `values` and a little more, with round numbers.
    pub fn over(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let values: Vec<f64> = values.collect();
        let from = values.iter().copied().reduce(f64::min).unwrap_or(0.0);
        let to = values.iter().copied().reduce(f64::max).unwrap_or(1.0);
        let margin = if to > from { (to - from) * 0.06 } else { from.abs().max(1.0) * 0.02 };
        Axis { label: label.into(), from: from - margin, to: to + margin, scale: Scale::Linear, ticks: None }
    }

    /// Where `value` is, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => (value - self.from) / (self.to - self.from),
            Scale::Logarithmic => (value / self.from).ln() / (self.to / self.from).ln(),
        }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        self.ticks.clone().unwrap_or_else(|| round_ticks(self.from, self.to))
    }
}

/// Round numbers between `from` and `to`, about six of them.
fn round_ticks(from: f64, to: f64) -> Vec<(f64, String)> {
    let rough = (to - from) / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power).into_iter().find(|step| *step >= rough);
    let step = step.unwrap_or(10.0 * power);
    let places = (-step.log10().floor()).max(0.0) as usize;
    let first = (from / step).ceil() as i64;
    let last = (to / step).floor() as i64;
    (first..=last)
        .map(|number| number as f64 * step)
        .map(|value| (value, format!("{value:.places$}")))
        .collect()
}

impl Chart {
    /// The chart as SVG.
    ///
    /// # Errors
    /// The drawing library's.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let mut svg = String::new();
        self.draw(&SVGBackend::with_string(&mut svg, SIZE).into_drawing_area())?;
        Ok(printable_lines(&svg).into_owned())
    }

    /// The chart as PNG.
    ///
    /// # Errors
    /// See [`RasterError`].
    pub fn png(&self) -> Result<Vec<u8>, RasterError> {
        raster::png(SIZE, |root| self.draw(root))
    }

    fn draw<Backend: DrawingBackend>(&self, root: &Area<Backend>) -> Result<(), Box<dyn Error>>
    where
        Backend::ErrorType: 'static,
    {
        root.fill(&WHITE)?;
        self.draw_heading(root)?;
        self.draw_axes(root)?;
        for series in &self.series {
            self.draw_series(root, series)?;
        }
        if self.margin == Margin::Distributions {
            self.draw_distributions(root)?;
        }
        Ok(root.present()?)
    }

    fn right(&self) -> i32 {
        match self.margin {
            Margin::Empty => SIZE.0 as i32 - 30,
            Margin::Distributions => SIZE.0 as i32 - 190,
        }
    }

    fn at(&self, (x, y): (f64, f64)) -> (i32, i32) {
        let across = self.x.place(x) * f64::from(self.right() - LEFT);
        let up = self.y.place(y) * f64::from(BOTTOM - TOP);
        (LEFT + across.round() as i32, BOTTOM - up.round() as i32)
    }

    fn draw_heading<Backend: DrawingBackend>(&self, root: &Area<Backend>) -> Result<(), Box<dyn Error>>
    where
        Backend::ErrorType: 'static,
    {
        let bold = TITLE.into_font().style(FontStyle::Bold).color(&BLACK);
        root.draw(&Text::new(self.title.clone(), (24, 14), bold))?;
        let grey = SMALL.into_font().color(&BLACK.mix(0.65));
        root.draw(&Text::new(self.conditions.clone(), (24, 40), grey))?;
        let mut x = LEFT;
        for series in self.series.iter().filter(|series| !series.name.is_empty()) {
            if series.joined == Joined::Line {
                let line = vec![(x - 6, 70), (x + 18, 70)];
                root.draw(&PathElement::new(line, COLOURS[series.colour].stroke_width(2)))?;
            }
            draw_mark(root, (x + 6, 70), series, 4)?;
            root.draw(&Text::new(series.name.clone(), (x + 26, 65), SMALL.into_font().color(&BLACK)))?;
            x += 54 + 8 * series.name.chars().count() as i32;
        }
        Ok(())
    }

    fn draw_axes<Backend: DrawingBackend>(&self, root: &Area<Backend>) -> Result<(), Box<dyn Error>>
    where
        Backend::ErrorType: 'static,
    {
        let text = SMALL.into_font().color(&BLACK);
        let pale = BLACK.mix(0.12);
        for (value, label) in self.x.ticks() {
            let (x, _) = self.at((value, self.y.from));
            root.draw(&PathElement::new(vec![(x, TOP), (x, BOTTOM)], pale))?;
            let style = text.clone().pos(Pos::new(HPos::Center, VPos::Top));
            root.draw(&Text::new(label, (x, BOTTOM + 8), style))?;
        }
        for (value, label) in self.y.ticks() {
            let (_, y) = self.at((self.x.from, value));
            root.draw(&PathElement::new(vec![(LEFT, y), (self.right(), y)], pale))?;
            let style = text.clone().pos(Pos::new(HPos::Right, VPos::Center));
            root.draw(&Text::new(label, (LEFT - 8, y), style))?;
        }
        let frame = vec![(LEFT, TOP), (LEFT, BOTTOM), (self.right(), BOTTOM)];
        root.draw(&PathElement::new(frame, BLACK.mix(0.7)))?;
        let middle = text.clone().pos(Pos::new(HPos::Center, VPos::Top));
        root.draw(&Text::new(self.x.label.clone(), ((LEFT + self.right()) / 2, BOTTOM + 34), middle))?;
        let upright = SMALL.into_font().transform(FontTransform::Rotate270).color(&BLACK);
        let upright = upright.pos(Pos::new(HPos::Center, VPos::Top));
        root.draw(&Text::new(self.y.label.clone(), (18, (TOP + BOTTOM) / 2), upright))?;
        Ok(())
    }

    fn draw_series<Backend: DrawingBackend>(
        &self,
        root: &Area<Backend>,
        series: &Series,
    ) -> Result<(), Box<dyn Error>>
    where
        Backend::ErrorType: 'static,
    {
        let points: Vec<(i32, i32)> = series.points.iter().map(|point| self.at(*point)).collect();
        if series.joined == Joined::Line {
            root.draw(&PathElement::new(points.clone(), COLOURS[series.colour].stroke_width(2)))?;
        }
        // Many points must leave each other room.
        let size = if points.len() > 150 { 3 } else { 4 };
        points.into_iter().try_for_each(|point| draw_mark(root, point, series, size))
    }

    fn draw_distributions<Backend: DrawingBackend>(&self, root: &Area<Backend>) -> Result<(), Box<dyn Error>>
    where
        Backend::ErrorType: 'static,
    {
        let width = (SIZE.0 as i32 - 24 - self.right() - 20) / self.series.len().max(1) as i32;
        for (index, series) in self.series.iter().enumerate() {
            let left = self.right() + 20 + width * index as i32;
            let counts = self.counts(series);
            let most = counts.iter().copied().max().unwrap_or(1).max(1);
            let height = f64::from(BOTTOM - TOP) / ROWS as f64;
            for (row, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let bottom = BOTTOM - (height * row as f64).round() as i32;
                let top = BOTTOM - (height * (row + 1) as f64).round() as i32;
                let long = (f64::from(width - 14) * *count as f64 / most as f64).ceil() as i32;
                let area = [(left, top + 1), (left + long, bottom)];
                root.draw(&Rectangle::new(area, COLOURS[series.colour].mix(0.75).filled()))?;
            }
            root.draw(&PathElement::new(vec![(left, TOP), (left, BOTTOM)], BLACK.mix(0.4)))?;
            let heights: Vec<f64> = series.points.iter().map(|point| point.1).collect();
            if !heights.is_empty() {
                let mean = heights.iter().sum::<f64>() / heights.len() as f64;
                let (_, y) = self.at((self.x.from, mean));
                let line = vec![(left - 5, y), (left + width - 14, y)];
                root.draw(&PathElement::new(line, BLACK.stroke_width(1)))?;
            }
            let style = SMALL.into_font().color(&BLACK).pos(Pos::new(HPos::Left, VPos::Top));
            root.draw(&Text::new(series.name.clone(), (left, BOTTOM + 8), style))?;
        }
        let grey = SMALL.into_font().color(&BLACK.mix(0.65));
        let middle = self.right() + 24 + width * self.series.len() as i32 / 2;
        let style = grey.pos(Pos::new(HPos::Center, VPos::Top));
        root.draw(&Text::new("how often; line: mean", (middle, BOTTOM + 34), style))?;
        Ok(())
    }

    fn counts(&self, series: &Series) -> [usize; ROWS] {
        let mut counts = [0; ROWS];
        for (_, height) in &series.points {
            let row = (self.y.place(*height) * ROWS as f64).floor().clamp(0.0, (ROWS - 1) as f64);
            counts[row as usize] += 1;
        }
        counts
    }
}

fn draw_mark<Backend: DrawingBackend>(
    root: &Area<Backend>,
    (x, y): (i32, i32),
    series: &Series,
    size: i32,
) -> Result<(), Box<dyn Error>>
where
    Backend::ErrorType: 'static,
{
    let colour = COLOURS[series.colour];
    match series.mark {
        Mark::Disc => root.draw(&Circle::new((x, y), size, colour.filled()))?,
        Mark::Ring => root.draw(&Circle::new((x, y), size + 1, colour.stroke_width(2)))?,
        Mark::Cross => {
            for rise in [-size, size] {
                let line = vec![(x - size, y - rise), (x + size, y + rise)];
                root.draw(&PathElement::new(line, colour.stroke_width(2)))?;
            }
        }
        Mark::Triangle => {
            let corners = vec![(x, y - size - 2), (x + size + 1, y + size), (x - size - 1, y + size)];
            root.draw(&Polygon::new(corners, colour.filled()))?;
        }
        Mark::Square => {
            root.draw(&Rectangle::new([(x - size, y - size), (x + size, y + size)], colour.filled()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_within() {
        let labels = |from, to| {
            round_ticks(from, to).into_iter().map(|(_, label)| label).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(-0.3, 11.3), "0 2 4 6 8 10");
        assert_eq!(labels(0.612, 0.655), "0.62 0.63 0.64 0.65");
        assert_eq!(labels(0.0, 310.0), "0 100 200 300");
    }

    #[test]
    fn points_lie_between_the_axes() {
        let axis = Axis::over("", [4.0, 9.0, 5.0].into_iter());
        assert!(axis.place(4.0) > 0.0 && axis.place(9.0) < 1.0);
        let log = Axis { from: 1.0, to: 100.0, scale: Scale::Logarithmic, ..axis };
        assert!((log.place(10.0) - 0.5).abs() < 1e-12);
        // A value alone, and none at all, still have an axis.
        assert!((Axis::over("", [7.0].into_iter()).place(7.0) - 0.5).abs() < 1e-12);
        assert!(Axis::over("", std::iter::empty()).place(0.5) > 0.0);
    }
}
