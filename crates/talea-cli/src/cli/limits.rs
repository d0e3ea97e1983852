//! Lifting the kernel's limits of real-time threads for a command.

use crate::cli::output::tell;
use talea_linux::unthrottle::{Lifted, lift as lift_limits};

/// Lifts what can be lifted until the result is dropped, and says what could not.
pub fn lift() -> Option<Lifted> {
    let (lifted, unlifted) = lift_limits();
    for limit in unlifted {
        tell!("warning: {} stays: {}", limit.what, limit.why);
    }
    lifted
}
