//! A naive simulator of one processor, and the simulator's agreement with it.

mod agreement;
mod naive;
