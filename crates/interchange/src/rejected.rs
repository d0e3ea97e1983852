//! Why a file could not be imported.

use std::fmt;
use talea_model::{Problem, Severity};

/// All problems of a file that could not be imported, by position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    source_name: String,
    text: String,
    list: Vec<Problem>,
}

impl Rejected {
    pub(crate) fn new(source_name: &str, text: &str, list: Vec<Problem>) -> Self {
        assert!(!list.is_empty(), "a file is rejected for a reason");
        Rejected { source_name: source_name.into(), text: text.into(), list }
    }

    /// A problem with the file as a whole, of which there is no text to show.
    pub(crate) fn whole_file(
        source_name: &str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        let problem = Problem { severity: Severity::Error, location: None, message, remedy };
        Self::new(source_name, "", vec![problem])
    }

    /// The name of the file, as it was given.
    pub fn source_name(&self) -> &str {
        &self.source_name
    }

    /// The text that the spans index; empty if the file could not be read as text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The problems by position, those about the file as a whole first; at least one is an error. Warnings
    /// are about words that were ignored and look misspelt.
    pub fn list(&self) -> &[Problem] {
        &self.list
    }
}

impl std::error::Error for Rejected {}

/// For each problem `file:line:column: error: message`, and the remedy on a line of its own.
impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.list.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{}", problem.in_file(&self.source_name))?;
        }
        Ok(())
    }
}
