//! Pictures made of SVG.
//!
//! The letters are drawn with DejaVu Sans, which comes with the program: a picture looks the same on a machine without
//! any fonts. The SVG itself leaves the choice of a sans-serif font to whoever shows it.

use resvg::{tiny_skia, usvg};
use std::sync::Arc;

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum RasterError {
    /// The drawing is not SVG.
    #[error("the drawing cannot be read: {0}")]
    Unreadable(#[from] usvg::Error),
    /// The drawing has no size or too large a one.
    #[error("the drawing's size does not make a picture")]
    Size,
    /// The picture cannot be encoded.
    #[error("the picture cannot be encoded: {0}")]
    Encoding(String),
}

/// Pixels per unit of the drawing: sharp on paper at half a column's width.
const SCALE: f32 = 2.0;

/// The drawing as PNG.
///
/// # Errors
/// See [`RasterError`].
pub fn png(svg: &str) -> Result<Vec<u8>, RasterError> {
    let mut fonts = usvg::fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    let options = usvg::Options { fontdb: Arc::new(fonts), ..usvg::Options::default() };
    let tree = usvg::Tree::from_str(svg, &options)?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or(RasterError::Size)?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).ok_or(RasterError::Size)?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|cause| RasterError::Encoding(cause.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dark_pixels(png: &[u8]) -> usize {
        let pixels = tiny_skia::Pixmap::decode_png(png).expect("a picture");
        pixels.pixels().iter().filter(|pixel| pixel.alpha() > 128 && pixel.red() < 128).count()
    }

    #[test]
    fn letters_are_drawn_without_fonts_of_the_system() {
        let drawing = |text: &str| {
            format!(
                "<svg xmlns='http://www.w3.org/2000/svg' width='200' height='40'>\
                 <text x='5' y='30' font-family='sans-serif' font-size='24'>{text}</text></svg>"
            )
        };
        let picture = png(&drawing("talea")).expect("a picture");
        assert_eq!(&picture[1..4], b"PNG");
        assert!(dark_pixels(&picture) > 500, "{}", dark_pixels(&picture));
        assert_eq!(dark_pixels(&png(&drawing("")).expect("a picture")), 0);
    }

    #[test]
    fn what_is_not_svg_is_refused() {
        assert!(matches!(png("<svg"), Err(RasterError::Unreadable(_))));
    }
}
