//! The formats, and which one a file is in.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A format that descriptions are translated from and to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// The JSON dialect of rt-app and workgen.
    RtApp,
    /// The XML of SimSo's simulations.
    SimSo,
    /// A table with a row per subtask.
    Csv,
}

/// A text that names no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is none of rt-app, simso, csv")]
pub struct UnknownFormat(String);

impl Format {
    /// Every format.
    pub const ALL: &[Format] = &[Format::RtApp, Format::SimSo, Format::Csv];

    /// The text that stands for this format.
    pub const fn keyword(self) -> &'static str {
        match self {
            Format::RtApp => "rt-app",
            Format::SimSo => "simso",
            Format::Csv => "csv",
        }
    }

    /// The extension that its files have.
    pub const fn extension(self) -> &'static str {
        match self {
            Format::RtApp => "json",
            Format::SimSo => "xml",
            Format::Csv => "csv",
        }
    }

    /// The format whose extension `path` has, in any case.
    pub fn of_path(path: &Path) -> Option<Format> {
        let extension = path.extension()?.to_str()?;
        Self::ALL.iter().copied().find(|format| format.extension().eq_ignore_ascii_case(extension))
    }

    /// The format that `text` looks like: an element, an object or a comment, or a row of columns that
    /// tables have.
    pub fn of_text(text: &str) -> Option<Format> {
        let text = text.trim_start_matches('\u{feff}').trim_start();
        if text.starts_with('<') {
            Some(Format::SimSo)
        } else if text.starts_with(['{', '/']) {
            Some(Format::RtApp)
        } else if crate::tabular::looks_like_a_table(text) {
            Some(Format::Csv)
        } else {
            None
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.keyword())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;
    fn from_str(text: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.iter().copied().find(|format| format.keyword() == text);
        known.ok_or_else(|| UnknownFormat(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_and_the_content_tell_the_format() {
        assert_eq!(Format::of_path("a/b.JSON".as_ref()), Some(Format::RtApp));
        assert_eq!(Format::of_path("a/b.toml".as_ref()), None);
        assert_eq!(Format::of_text("\u{feff}\n <?xml version=\"1.0\"?>"), Some(Format::SimSo));
        assert_eq!(Format::of_text("/* a use case */ {"), Some(Format::RtApp));
        assert_eq!(Format::of_text("task,period_ms,wcet_ms\n"), Some(Format::Csv));
        assert_eq!(Format::of_text("[system]\nname = \"x\"\n"), None);
    }
}
