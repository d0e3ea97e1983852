//! Progress of long work on a terminal; silent in a pipe.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;

/// A bar for `total` steps of `what` on standard error, hidden unless that is a terminal.
pub fn bar(what: &str, total: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} {wide_bar} {percent}% {eta}")
        .expect("the template names known fields");
    ProgressBar::new(total).with_style(style).with_message(what.to_string())
}
