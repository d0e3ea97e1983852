//! Drawings as pixels.
//!
//! The letters are those of DejaVu Sans, which comes with the program: a picture looks the same on a machine without
//! any fonts. An SVG leaves the choice of a sans-serif font to the program that shows it.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::register_font;
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind};
use std::error::Error;
use std::sync::Once;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum RasterError {
    /// The drawing library refused something.
    #[error("the picture cannot be drawn: {0}")]
    Drawing(Box<dyn Error>),
    /// The picture cannot be encoded.
    #[error("the picture cannot be encoded: {0}")]
    Encoding(#[from] png::EncodingError),
}

/// Pixels of the picture per unit of the drawing: sharp on paper at half a column's width.
const SCALE: u32 = 2;
/// Dots, along each axis, of whose colours a pixel is the mean, so that edges are smooth.
const DOTS: u32 = 2;
/// Bytes of a colour.
const CHANNELS: usize = 3;

/// What is drawn on.
pub type Area<'a> = DrawingArea<Enlarged<BitMapBackend<'a>>, Shift>;

/// What `draw` draws on an area of `size` units, as PNG.
///
/// # Errors
/// See [`RasterError`].
pub fn png(
    size: (u32, u32),
    draw: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<Vec<u8>, RasterError> {
    register_fonts();
    let (width, height) = (size.0 * SCALE, size.1 * SCALE);
    let (wide, high) = (width * DOTS, height * DOTS);
    let mut dots = vec![0; wide as usize * high as usize * CHANNELS];
    let bitmap = BitMapBackend::with_buffer(&mut dots, (wide, high));
    draw(&Enlarged { inner: bitmap, factor: SCALE * DOTS }.into_drawing_area())
        .map_err(RasterError::Drawing)?;
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&means(&dots, width as usize, height as usize))?;
    writer.finish()?;
    Ok(bytes)
}

/// A picture of `width` times `height` pixels, of which each is the mean of [`DOTS`] times [`DOTS`] of `dots`.
fn means(dots: &[u8], width: usize, height: usize) -> Vec<u8> {
    const SIDE: usize = DOTS as usize;
    let row_bytes = width * SIDE * CHANNELS;
    let mut pixels = Vec::with_capacity(width * height * CHANNELS);
    let mut sums = vec![0; width * CHANNELS];
    for rows in dots.chunks_exact(row_bytes * SIDE) {
        sums.fill(0);
        for row in rows.chunks_exact(row_bytes) {
            for (of_pixel, sum) in row.chunks_exact(SIDE * CHANNELS).zip(sums.chunks_exact_mut(CHANNELS)) {
                for dot in of_pixel.chunks_exact(CHANNELS) {
                    for channel in 0..CHANNELS {
                        sum[channel] += u32::from(dot[channel]);
                    }
                }
            }
        }
        pixels.extend(sums.iter().map(|sum| (sum / (DOTS * DOTS)) as u8));
    }
    pixels
}

/// Names the letters that come with the program, once per process.
fn register_fonts() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        for (style, font) in
            [(FontStyle::Normal, dejavu::sans::regular()), (FontStyle::Bold, dejavu::sans::bold())]
        {
            assert!(register_font("sans-serif", style, font).is_ok(), "DejaVu Sans is a font");
        }
    });
}

/// A backend in whose units everything is `factor` times as large: coordinates, line widths and letters.
pub struct Enlarged<Backend> {
    inner: Backend,
    factor: u32,
}

impl<Backend> Enlarged<Backend> {
    fn point(&self, (x, y): BackendCoord) -> BackendCoord {
        (x * self.factor as i32, y * self.factor as i32)
    }

    fn points<Path: IntoIterator<Item = BackendCoord>>(&self, path: Path) -> Vec<BackendCoord> {
        path.into_iter().map(|point| self.point(point)).collect()
    }

    fn style<Style: BackendStyle>(&self, style: &Style) -> ShapeStyle {
        let stroke_width = style.stroke_width() * self.factor;
        ShapeStyle { color: with_alpha(style.color()), filled: false, stroke_width }
    }
}

fn with_alpha(color: BackendColor) -> RGBAColor {
    let (red, green, blue) = color.rgb;
    RGBAColor(red, green, blue, color.alpha)
}

type Drawn<Backend> = Result<(), DrawingErrorKind<<Backend as DrawingBackend>::ErrorType>>;

impl<Backend: DrawingBackend> DrawingBackend for Enlarged<Backend> {
    type ErrorType = Backend::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        let (width, height) = self.inner.get_size();
        (width / self.factor, height / self.factor)
    }

    fn ensure_prepared(&mut self) -> Drawn<Backend> {
        self.inner.ensure_prepared()
    }

    fn present(&mut self) -> Drawn<Backend> {
        self.inner.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn<Backend> {
        let (corner, side) = (self.point(point), self.factor as i32 - 1);
        self.inner.draw_rect(corner, (corner.0 + side, corner.1 + side), &with_alpha(color), true)
    }

    fn draw_line<Style: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &Style,
    ) -> Drawn<Backend> {
        self.inner.draw_line(self.point(from), self.point(to), &self.style(style))
    }

    fn draw_rect<Style: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &Style,
        fill: bool,
    ) -> Drawn<Backend> {
        let (upper_left, bottom_right) = (self.point(upper_left), self.point(bottom_right));
        self.inner.draw_rect(upper_left, bottom_right, &self.style(style), fill)
    }

    fn draw_path<Style: BackendStyle, Path: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: Path,
        style: &Style,
    ) -> Drawn<Backend> {
        self.inner.draw_path(self.points(path), &self.style(style))
    }

    fn draw_circle<Style: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &Style,
        fill: bool,
    ) -> Drawn<Backend> {
        self.inner.draw_circle(self.point(center), radius * self.factor, &self.style(style), fill)
    }

    fn fill_polygon<Style: BackendStyle, Path: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: Path,
        style: &Style,
    ) -> Drawn<Backend> {
        self.inner.fill_polygon(self.points(corners), &self.style(style))
    }

    fn draw_text<Style: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &Style,
        point: BackendCoord,
    ) -> Drawn<Backend> {
        let font = FontDesc::new(style.family(), style.size() * f64::from(self.factor), style.style());
        let color = with_alpha(style.color());
        let enlarged = TextStyle::from(font.transform(style.transform())).color(&color).pos(style.anchor());
        self.inner.draw_text(text, &enlarged, self.point(point))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixels that are nearer to black than to white.
    fn dark_pixels(png: &[u8]) -> usize {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().expect("a picture");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a small picture")];
        reader.next_frame(&mut pixels).expect("a picture");
        pixels.chunks_exact(CHANNELS).filter(|pixel| pixel[0] < 128).count()
    }

    fn drawn(draw: impl FnOnce(&Area<'_>) -> Result<(), Box<dyn Error>>) -> Vec<u8> {
        let on_white = |root: &Area<'_>| {
            root.fill(&WHITE)?;
            draw(root)
        };
        png((200, 40), on_white).expect("a picture")
    }

    #[test]
    fn letters_are_drawn_without_fonts_of_the_system() {
        let word = |text: &'static str| {
            drawn(|root| {
                let black = ("sans-serif", 24).into_font().color(&BLACK);
                Ok(root.draw(&Text::new(text, (5, 8), black))?)
            })
        };
        let picture = word("talea");
        assert_eq!(&picture[1..4], b"PNG");
        assert!(dark_pixels(&picture) > 500, "{}", dark_pixels(&picture));
        assert_eq!(dark_pixels(&word("")), 0);
    }

    #[test]
    fn shapes_are_enlarged_to_the_pixel() {
        let square = drawn(|root| Ok(root.draw(&Rectangle::new([(10, 10), (20, 20)], BLACK.filled()))?));
        let (side, dark) = ((10 * SCALE) as usize, dark_pixels(&square));
        assert!((side * side..=(side + 1) * (side + 1)).contains(&dark), "{dark}");
    }
}
