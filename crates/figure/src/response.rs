//! One explained response time as a picture: the instance's own jobs, and below them the jobs that ran instead.

use crate::drawing::{SMALL, TEXT, UNSEEN, shortened, svg};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use talea_insight::explain::{Blamed, Explanation, Explanations, Kind, Outcome};
use talea_time::Instant;

/// What is drawn in one colour.
const GROUPS: [(&str, RGBColor); 12] = [
    ("own execution", RGBColor(0, 114, 178)),
    ("higher lane or priority, others' turns", RGBColor(213, 94, 0)),
    ("same lane or priority", RGBColor(230, 159, 0)),
    ("lower lane or priority", RGBColor(204, 121, 167)),
    ("dispatching", RGBColor(0, 158, 115)),
    ("before the release", RGBColor(86, 180, 233)),
    ("idle, waking up", RGBColor(190, 190, 190)),
    ("others, interrupts", RGBColor(100, 80, 60)),
    ("uncertain", RGBColor(240, 228, 66)),
    UNSEEN,
    ("beyond what is kept", RGBColor(120, 120, 190)),
    ("left in slices", RGBColor(150, 150, 90)),
];

fn group(kind: Kind) -> usize {
    match kind {
        Kind::Execution => 0,
        Kind::Higher | Kind::KernelHigher => 1,
        Kind::Ahead
        | Kind::RunsToCompletion
        | Kind::NoSlot
        | Kind::LateGoesLast
        | Kind::Behind
        | Kind::Earlier
        | Kind::KernelEqual
        | Kind::Peer => 2,
        Kind::Lower | Kind::KernelLower | Kind::Lent => 3,
        Kind::Switch | Kind::Queue | Kind::Release | Kind::Delivery | Kind::Dispatch => 4,
        Kind::Jitter | Kind::Releaser | Kind::Timer | Kind::Releasing | Kind::Handover | Kind::Guard => 5,
        Kind::NextSample | Kind::PeriodEnd | Kind::UntilRead => 6,
        Kind::Message | Kind::Lost | Kind::Left => 5,
        Kind::WakeUp | Kind::Idle | Kind::Room | Kind::Serial | Kind::Blocked => 6,
        Kind::Companion | Kind::Program | Kind::Interrupt | Kind::Withheld => 7,
        Kind::Uncertain
        | Kind::Unheard
        | Kind::Unclear
        | Kind::Condensed
        | Kind::Unrecorded
        | Kind::KernelUntold => 8,
        Kind::Shared => 9,
        Kind::Turn => 1,
        Kind::UsedUp => 10,
        Kind::LeftInSlices => 11,
    }
}

const LEFT: i32 = 210;
const WIDTH: f64 = 820.0;
const TOP: i32 = 74;
const ROW: i32 = 34;
/// Others that are drawn; what the rest did is in the rows of the instance itself.
const OTHERS: usize = 10;

/// The picture of one explanation.
struct Strip<'a> {
    answer: &'a Explanations,
    one: &'a Explanation,
    /// The operations that ran instead, the one with the longest time first.
    others: Vec<Blamed>,
    /// Where the drawing begins, in milliseconds after the arrival: there, or where the recording begins.
    from_ms: f64,
    /// Milliseconds drawn.
    span_ms: f64,
}

/// An explanation as SVG: a row per job of the critical path, then a row for each that ran instead.
///
/// # Errors
/// What cannot be drawn, which nothing in it is.
pub fn draw(answer: &Explanations, one: &Explanation) -> Result<String, Box<dyn Error>> {
    let blamed = one.totals.iter().map(|total| total.blamed).filter(|blamed| {
        // An idle processor has no row.
        !matches!(blamed, Blamed::Nobody | Blamed::Thread(0))
    });
    let mut others: Vec<Blamed> = Vec::new();
    for blamed in blamed {
        if !others.contains(&blamed) && others.len() < OTHERS {
            others.push(blamed);
        }
    }
    let end_ms = since_ms(one, one.due().map_or(one.end, |due| due.max(one.end)));
    let from_ms = since_ms(one, answer.begins.min(one.end)).max(0.0);
    let strip = Strip { answer, one, others, from_ms, span_ms: ((end_ms - from_ms) * 1.04).max(1e-6) };
    strip.draw()
}

fn since_ms(one: &Explanation, at: Instant) -> f64 {
    at.as_nanos().saturating_sub(one.arrival.as_nanos()) as f64 / 1e6
}

impl Strip<'_> {
    fn draw(&self) -> Result<String, Box<dyn Error>> {
        let rows = self.one.hops.len() + self.others.len();
        let bottom = TOP + ROW * rows.max(1) as i32;
        let used = self.groups();
        let height = bottom + 52 + 22 * used.len().div_ceil(5) as i32;
        svg((1060, height as u32), |root| {
            root.draw(&Text::new(self.title(), (20, 14), TEXT.into_font().color(&BLACK)))?;
            self.draw_grid(root, bottom)?;
            self.draw_spans(root)?;
            self.draw_deadline(root, bottom)?;
            draw_legend(root, &used, bottom)
        })
    }

    fn title(&self) -> String {
        let how = match self.one.outcome {
            Outcome::Met if self.one.due().is_none() => {
                format!("{}, no limit", self.one.response().rounded())
            }
            Outcome::Met => format!("met with {} left", (-self.one.lateness()).rounded()),
            Outcome::Missed => format!("missed by {}", self.one.lateness().rounded()),
            Outcome::Aborted => "aborted".into(),
            Outcome::Skipped { .. } => "skipped".into(),
            Outcome::Unfinished => "unfinished".into(),
        };
        let name = self.answer.name(self.one.subject);
        let recorded = match self.answer.begins {
            begins if begins > self.one.arrival => {
                format!("; recorded from {} after the arrival on", (begins - self.one.arrival).rounded())
            }
            _ => String::new(),
        };
        format!("{name}: {} from arrival to end, {how}{recorded}", self.one.response().rounded())
    }

    /// The groups that occur, in the order of the legend.
    fn groups(&self) -> Vec<usize> {
        let occurs = |index: &usize| self.one.totals.iter().any(|total| group(total.kind) == *index);
        (0..GROUPS.len()).filter(occurs).collect()
    }

    fn x(&self, ms: f64) -> i32 {
        LEFT + (WIDTH * (ms - self.from_ms).max(0.0) / self.span_ms) as i32
    }

    fn draw_grid(
        &self,
        root: &DrawingArea<SVGBackend<'_>, Shift>,
        bottom: i32,
    ) -> Result<(), Box<dyn Error>> {
        let (step_ms, decimals) = step(self.span_ms);
        let first = (self.from_ms / step_ms).ceil() as i64;
        for tick in first..=((self.from_ms + self.span_ms) / step_ms) as i64 {
            let ms = step_ms * tick as f64;
            let x = self.x(ms);
            root.draw(&PathElement::new(vec![(x, TOP), (x, bottom)], BLACK.mix(0.12)))?;
            let unit = if tick == first { " ms" } else { "" };
            let text = format!("{ms:.decimals$}{unit}");
            root.draw(&Text::new(text, (x - 8, bottom + 6), SMALL.into_font().color(&BLACK)))?;
        }
        let own = self.one.hops.iter().map(|hop| self.answer.job_name(hop.job));
        let others = self.others.iter().map(|blamed| match blamed {
            Blamed::Interrupt(interrupt) => format!("interrupt {interrupt}"),
            _ => self.answer.blamed_name(*blamed),
        });
        for (row, name) in own.chain(others).enumerate() {
            let y = TOP + ROW * row as i32;
            let heavy = if row == self.one.hops.len() { 0.6 } else { 0.12 };
            root.draw(&PathElement::new(vec![(20, y), (LEFT + WIDTH as i32, y)], BLACK.mix(heavy)))?;
            root.draw(&Text::new(shortened(&name), (20, y + 9), SMALL.into_font().color(&BLACK)))?;
        }
        Ok(())
    }

    fn draw_spans(&self, root: &DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), Box<dyn Error>> {
        for interval in &self.one.intervals {
            let kind = interval.cause.kind();
            let colour = GROUPS[group(kind)].1;
            let left = self.x(since_ms(self.one, interval.from));
            if interval.to <= self.answer.begins && interval.to < self.one.end {
                continue;
            }
            // At least a pixel, so that the shortest interval is seen.
            let right = self.x(since_ms(self.one, interval.to)).max(left + 1);
            let (top, low) = (TOP + ROW * interval.hop as i32, if kind.is_own() { 6 } else { 12 });
            let area = [(left, top + low), (right, top + ROW - low)];
            root.draw(&Rectangle::new(area, colour.mix(if kind.is_own() { 1.0 } else { 0.45 }).filled()))?;
            let other = self.others.iter().position(|blamed| *blamed == interval.cause.blamed());
            if let Some(row) = other {
                let top = TOP + ROW * (self.one.hops.len() + row) as i32;
                root.draw(&Rectangle::new([(left, top + 6), (right, top + ROW - 6)], colour.filled()))?;
            }
        }
        Ok(())
    }

    fn draw_deadline(
        &self,
        root: &DrawingArea<SVGBackend<'_>, Shift>,
        bottom: i32,
    ) -> Result<(), Box<dyn Error>> {
        let Some(due) = self.one.due() else { return Ok(()) };
        let x = self.x(since_ms(self.one, due));
        if (LEFT..=LEFT + WIDTH as i32).contains(&x) {
            root.draw(&PathElement::new(vec![(x, TOP - 8), (x, bottom)], RED.stroke_width(2)))?;
            let place = (x.min(LEFT + WIDTH as i32 - 50), TOP - 26);
            root.draw(&Text::new("deadline", place, SMALL.into_font().color(&RED)))?;
        }
        Ok(())
    }
}

fn draw_legend(
    root: &DrawingArea<SVGBackend<'_>, Shift>,
    used: &[usize],
    bottom: i32,
) -> Result<(), Box<dyn Error>> {
    for (place, index) in used.iter().enumerate() {
        let (name, colour) = GROUPS[*index];
        let (x, y) = (20 + 205 * (place as i32 % 5), bottom + 42 + 22 * (place as i32 / 5));
        root.draw(&Rectangle::new([(x, y), (x + 14, y + 12)], colour.filled()))?;
        root.draw(&Text::new(name, (x + 20, y - 1), SMALL.into_font().color(&BLACK)))?;
    }
    Ok(())
}

/// A round distance between about ten ticks, and the decimals to print it with.
fn step(span_ms: f64) -> (f64, usize) {
    let magnitude = 10f64.powf((span_ms / 10.0).log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| span_ms / (magnitude * factor) <= 10.0);
    let step_ms = magnitude * factor.unwrap_or(10.0);
    (step_ms, (-step_ms.log10().floor()).max(0.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::step;

    #[test]
    fn ticks_are_round_and_at_most_ten() {
        assert_eq!(step(100.0), (10.0, 0));
        assert_eq!(step(101.0), (20.0, 0));
        assert_eq!(step(0.3), (0.05, 2));
        assert_eq!(step(7.0), (1.0, 0));
    }
}
