//! The schedulers of the hierarchy: what holds for all of them, what each promises, and what compositions of them do in
//! the literature.

mod carried;
mod composed;
mod compositions;
mod exchange;
mod figure1;
mod join;
mod lanes_of_jobs;
mod promises;
mod random;
mod reconfigure;
mod reservation;
mod script;
mod share;
mod shares;
mod spring;
mod workload;
