//! Recording from outside: what processes tell, and what the kernel saw of the processors.
//!
//! | Module | What it does |
//! |---|---|
//! | [`kernel`] | the kernel's own events: switches, wake-ups, interrupts, system calls, names |
//! | [`recording`] | several processes and the kernel, followed from outside, as one log |

#![deny(unsafe_code)]

mod any_source;
pub mod kernel;
pub mod recording;

pub use any_source::AnySource;
pub use kernel::{KernelError, KernelOptions, KernelSource, KernelStream};
