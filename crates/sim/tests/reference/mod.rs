//! A naive simulator of one node, and the simulator's agreement with it.

mod agreement;
mod naive;
