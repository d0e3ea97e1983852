//! Integration tests of the kernel stream and of recordings.

mod allocation;
mod announced;
mod kernel;
mod kernel_support;
mod recorded;
