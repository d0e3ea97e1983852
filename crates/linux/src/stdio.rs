//! Where programs that a run starts print.

use std::os::fd::AsFd;
use std::process::Stdio;

/// The standard error of this process, for standard output has the results.
pub fn standard_error() -> Stdio {
    match std::io::stderr().as_fd().try_clone_to_owned() {
        Ok(descriptor) => descriptor.into(),
        Err(_) => Stdio::null(),
    }
}
