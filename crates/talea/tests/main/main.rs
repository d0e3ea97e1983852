//! The library as programs meet it: the examples, and what the README shows of them.

mod choice;
mod examples;
mod queues_in_lanes;
mod replay;
mod replayed_channels;
mod replayed_times;
mod served;
mod virtual_run;
