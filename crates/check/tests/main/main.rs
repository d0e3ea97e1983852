//! The check as a whole: any file, and machines that cost and withhold something.

#![forbid(unsafe_code)]

mod hostile;
mod machine;
mod merging;
mod sensitivity;
