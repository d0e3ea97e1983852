//! Text from elsewhere: files that people name, and names that others chose.
//!
//! * [`read`]: the one way of reading an input. It reads no more than a limit, waits for no pipe that stays silent, and says what is wrong
//!   with what is no text.
//! * [`printable()`]: the one way of showing what others wrote. A name of a program, of a trace or of a file may contain anything, also what
//!   makes a terminal clear its screen, change its title or overwrite a line that was printed before.
//! * [`links`]: where is written what goes to a place that is a link.

#![forbid(unsafe_code)]

pub mod links;
pub mod printable;
pub mod read;

pub use printable::{is_hidden, printable, printable_lines, printable_styled};
pub use read::{FILE_BYTES_LIMIT, ReadError};
