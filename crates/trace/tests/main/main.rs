//! Integration tests of the trace: files, processes, and what is computed from records.

mod accounting;
mod allocation;
mod corruption;
mod ctf;
mod damaged;
mod declared;
mod explained;
mod exports;
mod files;
mod kernel;
mod kernel_support;
mod killed;
mod layout;
mod passive;
mod perfetto;
mod recorded;
mod shared;
mod streams;
mod support;
mod tables;
