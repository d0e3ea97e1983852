//! The formats.

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
    fn the_extension_tells_the_format() {
        assert_eq!(Format::of_path("a/b.JSON".as_ref()), Some(Format::RtApp));
        assert_eq!(Format::of_path("a/b.toml".as_ref()), None);
    }
}
