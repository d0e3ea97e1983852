//! The tables of chains.

use super::section::{Findings, Section};
use crate::builder::ChainBuilder;

pub(super) fn read_chain(section: &Section<'_>, findings: &mut Findings) -> ChainBuilder {
    let name = section.text("name", findings).unwrap_or_default();
    let mut chain = ChainBuilder::new(name, section.names("path", findings).unwrap_or_default());
    if let Some(limit) = section.time("latency", findings) {
        chain = chain.latency(limit);
    }
    if let Some(limit) = section.time("reaction", findings) {
        chain = chain.reaction(limit);
    }
    if let Some(limit) = section.time("age", findings) {
        chain = chain.age(limit);
    }
    chain
}
