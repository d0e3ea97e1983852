//! What pictures share: colours and letters, bars, time lines and stacks.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use talea_text::printable_lines;

/// Colours that people with common colour-vision deficiencies can tell apart (Okabe and Ito).
pub(crate) const COLOURS: [RGBColor; 9] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
    RGBColor(148, 148, 148),
    RGBColor(240, 228, 66),
    RGBColor(100, 80, 60),
];
pub(crate) const TEXT: (&str, i32) = ("sans-serif", 15);
pub(crate) const SMALL: (&str, i32) = ("sans-serif", 13);

/// Two values, 0 to 100, under one label.
#[derive(Clone, Debug, PartialEq)]
pub struct Bar {
    /// What they belong to.
    pub label: String,
    /// The value drawn above.
    pub upper: f64,
    /// The value drawn below.
    pub lower: f64,
}

/// Pairs of horizontal bars from 0 to 100 as SVG; `names` are those of the upper and the lower bars.
///
/// # Errors
/// What cannot be drawn, which nothing in it is.
pub fn bars(title: &str, names: [&str; 2], bars: &[Bar]) -> Result<String, Box<dyn Error>> {
    let height = 110 + 44 * bars.len() as u32;
    svg((760, height), |root| draw_bars(root, height, title, names, bars))
}

fn draw_bars(
    root: &Area<'_>,
    height: u32,
    title: &str,
    names: [&str; 2],
    bars: &[Bar],
) -> Result<(), Box<dyn Error>> {
    root.draw(&Text::new(title.to_string(), (20, 14), TEXT.into_font().color(&BLACK)))?;
    for (index, name) in names.iter().enumerate() {
        let x = 480 + 120 * index as i32;
        root.draw(&Rectangle::new([(x, 16), (x + 14, 28)], COLOURS[index].filled()))?;
        root.draw(&Text::new(name.to_string(), (x + 20, 15), SMALL.into_font().color(&BLACK)))?;
    }
    let (left, width, top) = (130, 560.0, 50);
    for mark in [0, 25, 50, 75, 100] {
        let x = left + (width * f64::from(mark) / 100.0) as i32;
        let bottom = height as i32 - 40;
        root.draw(&PathElement::new(vec![(x, top), (x, bottom)], BLACK.mix(0.15)))?;
        root.draw(&Text::new(format!("{mark} %"), (x - 12, bottom + 6), SMALL.into_font().color(&BLACK)))?;
    }
    for (index, bar) in bars.iter().enumerate() {
        let y = top + 8 + 44 * index as i32;
        root.draw(&Text::new(bar.label.clone(), (20, y + 8), TEXT.into_font().color(&BLACK)))?;
        for (offset, value) in [(0, bar.upper), (16, bar.lower)] {
            let right = left + (width * value.clamp(0.0, 100.0) / 100.0) as i32;
            let colour = COLOURS[usize::from(offset > 0)];
            root.draw(&Rectangle::new([(left, y + offset), (right, y + offset + 14)], colour.filled()))?;
            let label =
                Text::new(format!("{value:.1}"), (right + 4, y + offset), SMALL.into_font().color(&BLACK));
            root.draw(&label)?;
        }
    }
    Ok(())
}

/// The label and colour of time in which several jobs had begun on a processor and it was not recorded which of them ran.
pub(crate) const UNSEEN: (&str, RGBColor) = ("shared unseen", RGBColor(128, 128, 0));

/// What a span belongs to; decides the colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The kind of this index.
    Kind(usize),
    /// One of several jobs in different rows; it was not recorded which.
    SharedUnseen,
}

impl Owner {
    fn colour(self) -> RGBColor {
        match self {
            Owner::Kind(kind) => COLOURS[kind % COLOURS.len()],
            Owner::SharedUnseen => UNSEEN.1,
        }
    }
}

/// Something that lasted, in one row of a time line.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Index of its row.
    pub row: usize,
    /// What it belongs to.
    pub owner: Owner,
    /// Start in milliseconds.
    pub start_ms: f64,
    /// End in milliseconds.
    pub end_ms: f64,
}

/// A time line: rows of spans between two instants.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeLine {
    /// Heading.
    pub title: String,
    /// Names of the rows, from the top.
    pub rows: Vec<String>,
    /// Names of the kinds, in the order of their indices.
    pub kinds: Vec<String>,
    /// First instant drawn, in milliseconds.
    pub from_ms: f64,
    /// Last instant drawn, in milliseconds.
    pub to_ms: f64,
    /// What is drawn; spans outside are cut.
    pub spans: Vec<Span>,
    /// Instants marked in a row, such as missed deadlines: row, milliseconds.
    pub marks: Vec<(usize, f64)>,
}

const LEFT: i32 = 210;
const WIDTH: f64 = 820.0;
const TOP: i32 = 52;
const ROW: i32 = 34;

/// What is drawn on.
pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A picture of this size as SVG text, in which is no character that XML forbids or that hides. Callers write the file, and report if they
/// cannot.
pub(crate) fn svg(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<String, Box<dyn Error>> {
    let mut text = String::new();
    let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
    root.fill(&WHITE)?;
    draw(&root)?;
    root.present()?;
    drop(root);
    Ok(printable_lines(&text).into_owned())
}

impl TimeLine {
    /// The time line as SVG.
    ///
    /// # Errors
    /// What cannot be drawn, which nothing in it is.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let legend_rows = self.legend().count().div_ceil(5) as i32;
        let bottom = TOP + ROW * self.rows.len() as i32;
        let size = (1060, (bottom + 46 + 22 * legend_rows) as u32);
        svg(size, |root| self.draw_on(root, bottom))
    }

    fn draw_on(&self, root: &Area<'_>, bottom: i32) -> Result<(), Box<dyn Error>> {
        root.draw(&Text::new(self.title.clone(), (20, 14), TEXT.into_font().color(&BLACK)))?;
        self.draw_grid(root, bottom)?;
        for span in &self.spans {
            let (start, end) = (span.start_ms.max(self.from_ms), span.end_ms.min(self.to_ms));
            if start < end {
                let top = TOP + ROW * span.row as i32 + 6;
                // At least a pixel, so that the shortest job is seen.
                let right = self.x(end).max(self.x(start) + 1);
                let area = [(self.x(start), top), (right, top + ROW - 12)];
                root.draw(&Rectangle::new(area, span.owner.colour().filled()))?;
            }
        }
        for &(row, at) in self.marks.iter().filter(|(_, at)| (self.from_ms..=self.to_ms).contains(at)) {
            let (x, y) = (self.x(at), TOP + ROW * row as i32);
            root.draw(&PathElement::new(vec![(x - 4, y + 2), (x + 4, y + 10)], RED.stroke_width(2)))?;
            root.draw(&PathElement::new(vec![(x + 4, y + 2), (x - 4, y + 10)], RED.stroke_width(2)))?;
        }
        for (index, (name, colour)) in self.legend().enumerate() {
            let (x, y) = (20 + 205 * (index as i32 % 5), bottom + 42 + 22 * (index as i32 / 5));
            root.draw(&Rectangle::new([(x, y), (x + 14, y + 12)], colour.filled()))?;
            root.draw(&Text::new(name.to_owned(), (x + 20, y - 1), SMALL.into_font().color(&BLACK)))?;
        }
        Ok(())
    }

    /// Whether there is a span of which it was not recorded whose it was.
    pub fn has_unseen(&self) -> bool {
        self.spans.iter().any(|span| span.owner == Owner::SharedUnseen)
    }

    /// What the colours mean.
    fn legend(&self) -> impl Iterator<Item = (&str, RGBColor)> {
        let kinds = self.kinds.iter().enumerate();
        let kinds = kinds.map(|(index, kind)| (kind.as_str(), Owner::Kind(index).colour()));
        kinds.chain(self.has_unseen().then_some(UNSEEN))
    }

    fn x(&self, ms: f64) -> i32 {
        LEFT + (WIDTH * (ms - self.from_ms) / (self.to_ms - self.from_ms)) as i32
    }

    fn draw_grid(
        &self,
        root: &DrawingArea<SVGBackend<'_>, Shift>,
        bottom: i32,
    ) -> Result<(), Box<dyn Error>> {
        for tick in 0..=10 {
            let ms = self.from_ms + (self.to_ms - self.from_ms) * f64::from(tick) / 10.0;
            let x = self.x(ms);
            root.draw(&PathElement::new(vec![(x, TOP), (x, bottom)], BLACK.mix(0.12)))?;
            // The last one has the unit, and the picture ends behind it.
            let (text, left) =
                if tick == 10 { (format!("{ms:.0} ms"), 26) } else { (format!("{ms:.0}"), 10) };
            root.draw(&Text::new(text, (x - left, bottom + 6), SMALL.into_font().color(&BLACK)))?;
        }
        for (index, row) in self.rows.iter().enumerate() {
            let y = TOP + ROW * index as i32;
            root.draw(&PathElement::new(vec![(LEFT, y), (LEFT + WIDTH as i32, y)], BLACK.mix(0.12)))?;
            root.draw(&Text::new(shortened(row), (20, y + 9), SMALL.into_font().color(&BLACK)))?;
        }
        Ok(())
    }
}

/// Lengths of time laid end to end, with an instant to compare them with.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    /// What they belong to.
    pub label: String,
    /// Where the first part begins, in milliseconds; 0 is where the response begins.
    pub begin_ms: f64,
    /// Index of the kind and length in milliseconds, in order; none for a length without end.
    pub parts: Vec<(usize, f64)>,
    /// The instant to compare with, such as a deadline.
    pub mark_ms: f64,
    /// A remark at the right.
    pub note: String,
}

/// Pixels from one entry of a legend to the next.
const LEGEND: i32 = 130;

/// As much of a name as fits left of the rows.
pub(crate) fn shortened(name: &str) -> String {
    const LETTERS: usize = 24;
    if name.chars().count() <= LETTERS {
        return name.into();
    }
    name.chars().take(LETTERS - 1).chain(['…']).collect()
}

/// Rows of stacks, each on a scale of its own: a tenth of the row beyond the larger of its end and its mark.
#[derive(Clone, Debug, PartialEq)]
pub struct BuildUp {
    /// Heading.
    pub title: String,
    /// Names of the kinds, in the order of their indices.
    pub kinds: Vec<String>,
    /// What the marks are.
    pub mark: String,
    /// The rows, from the top.
    pub stacks: Vec<Stack>,
}

impl BuildUp {
    /// The rows as SVG.
    ///
    /// # Errors
    /// What cannot be drawn, which nothing in it is.
    pub fn svg(&self) -> Result<String, Box<dyn Error>> {
        let bottom = TOP + ROW * self.stacks.len() as i32;
        svg((1280, (bottom + 60) as u32), |root| self.draw_on(root, bottom))
    }

    fn draw_on(&self, root: &Area<'_>, bottom: i32) -> Result<(), Box<dyn Error>> {
        root.draw(&Text::new(self.title.clone(), (20, 14), TEXT.into_font().color(&BLACK)))?;
        let scales = "every row has a scale of its own".to_string();
        root.draw(&Text::new(scales, (LEFT + WIDTH as i32 - 200, 15), SMALL.into_font().color(&BLACK)))?;
        for (row, stack) in self.stacks.iter().enumerate() {
            self.draw_row(root, TOP + ROW * row as i32, stack)?;
        }
        for (index, kind) in self.kinds.iter().enumerate() {
            let x = 20 + LEGEND * index as i32;
            root.draw(&Rectangle::new([(x, bottom + 22), (x + 14, bottom + 34)], COLOURS[index].filled()))?;
            root.draw(&Text::new(kind.clone(), (x + 20, bottom + 21), SMALL.into_font().color(&BLACK)))?;
        }
        let x = 26 + LEGEND * self.kinds.len() as i32;
        root.draw(&PathElement::new(vec![(x, bottom + 20), (x, bottom + 36)], RED.stroke_width(3)))?;
        root.draw(&Text::new(self.mark.clone(), (x + 14, bottom + 21), SMALL.into_font().color(&BLACK)))?;
        Ok(())
    }

    fn draw_row(
        &self,
        root: &DrawingArea<SVGBackend<'_>, Shift>,
        top: i32,
        stack: &Stack,
    ) -> Result<(), Box<dyn Error>> {
        let end_ms = stack.begin_ms + stack.parts.iter().map(|(_, length)| length).sum::<f64>();
        let first_ms = stack.begin_ms.min(0.0);
        let span_ms = (end_ms.max(stack.mark_ms) - first_ms) * 1.1;
        let x = |ms: f64| LEFT + (WIDTH * (ms - first_ms) / span_ms) as i32;
        let text = |text: String, x: i32| Text::new(text, (x, top + 9), SMALL.into_font().color(&BLACK));
        root.draw(&text(shortened(&stack.label), 20))?;
        root.draw(&PathElement::new(vec![(LEFT, top), (LEFT + WIDTH as i32, top)], BLACK.mix(0.12)))?;
        if stack.parts.is_empty() {
            let area = [(LEFT, top + 7), (LEFT + WIDTH as i32, top + ROW - 7)];
            root.draw(&Rectangle::new(area, RED.mix(0.25).filled()))?;
            root.draw(&text("no bound".into(), LEFT + 10))?;
        }
        let mut at_ms = stack.begin_ms;
        for &(kind, length_ms) in &stack.parts {
            let area = [(x(at_ms), top + 7), (x(at_ms + length_ms).max(x(at_ms) + 1), top + ROW - 7)];
            root.draw(&Rectangle::new(area, COLOURS[kind % COLOURS.len()].filled()))?;
            at_ms += length_ms;
        }
        for (ms, style) in [(0.0, BLACK.stroke_width(1)), (stack.mark_ms, RED.stroke_width(3))] {
            root.draw(&PathElement::new(vec![(x(ms), top + 2), (x(ms), top + ROW - 2)], style))?;
        }
        root.draw(&text(stack.note.clone(), LEFT + WIDTH as i32 + 6))?;
        Ok(())
    }
}
