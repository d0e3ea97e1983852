//! The schedulers of the hierarchy, by what they promise: alone, and composed as in the literature.

mod figure1;
mod join;
mod reservation;
mod share;
mod workload;
