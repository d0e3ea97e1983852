//! The `talea` command as its users meet it: the real program, its output and its exit status.
//!
//! Nothing here depends on how fast the machine is. Runs on real threads use `--rt off` or accept what they are
//! granted, and where a run has to have begun, its trace file is waited for.

mod bare;
mod channels;
mod checked;
mod cluster;
mod consistent;
mod controlled;
mod counted;
mod damaged;
mod errors;
mod examples;
mod explained;
mod exported;
mod filtered;
mod flow;
mod hierarchies;
mod hostile;
mod interchange;
mod interrupt;
mod lab;
mod late;
mod lowered;
mod memory;
mod mutated;
mod named;
mod new;
mod partial;
mod real;
mod recording;
mod replayed;
mod room;
mod ruled;
mod shared;
mod simulated;
mod support;
mod trace;
mod unrecorded;
mod verified;
mod widths;
