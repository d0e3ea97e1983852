//! The tables of chains.

use super::section::{Findings, Section};
use crate::builder::ChainBuilder;
use talea_time::Duration;

pub(super) fn read_chain(section: &Section<'_>, findings: &mut Findings) -> ChainBuilder {
    let name = section.text("name", findings).unwrap_or_default();
    let path = section.names("path", findings).unwrap_or_default();
    let limits: [(&'static str, fn(ChainBuilder, Duration) -> ChainBuilder); 3] = [
        ("latency", ChainBuilder::latency),
        ("reaction", ChainBuilder::reaction),
        ("age", ChainBuilder::age),
    ];
    limits.into_iter().fold(ChainBuilder::new(name, path), |chain, (key, set)| {
        match section.time(key, findings) {
            Some(limit) => set(chain, limit),
            None => chain,
        }
    })
}
