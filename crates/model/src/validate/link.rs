//! Rules about links.

use super::times::{Least, violation_of};
use super::{Place, Violation};
use crate::description::Description;
use crate::link::{Link, LinkEnds};
use std::collections::HashMap;

/// Checks that links join two nodes each, none of them in a direction in which another one does, and their times.
pub(super) fn check(description: &Description, found: &mut Vec<Violation>) {
    let mut joined: HashMap<(usize, usize), usize> = HashMap::new();
    let mut others = None;
    for (index, link) in description.links.iter().enumerate() {
        for (key, time) in [("delay", link.route.delay), ("jitter", link.route.jitter)] {
            let owner = || label(description, link);
            found.extend(violation_of(time, Least::Zero, Place::Link(index, key), key, owner));
        }
        let key = key_of(link.ends);
        let mut repeated = None;
        match link.ends {
            LinkEnds::Others => repeated = others.replace(index),
            LinkEnds::Between(a, b) | LinkEnds::FromTo(a, b) if a == b => {
                // A name that means nothing stands for the first node, and has been reported.
                if found.iter().any(|violation| matches!(violation.place, Place::Link(at, _) if at == index))
                {
                    continue;
                }
                found.push(Violation::error(
                    Place::Link(index, key),
                    format!("{} joins it with itself", label(description, link)),
                    "name two nodes; what stays on its node takes no time",
                ));
                continue;
            }
            LinkEnds::Between(..) | LinkEnds::FromTo(..) => {
                for direction in link.ends.directions() {
                    repeated = repeated.or(joined.insert(direction, index));
                }
            }
        }
        if let Some(first) = repeated {
            found.push(Violation {
                related: Some(Place::Link(first, key_of(description.links[first].ends))),
                ..Violation::error(
                    Place::Link(index, key),
                    format!("{} is described already", label(description, link)),
                    "remove one of the two; one link with \"between\" says both ways, two with \"from\" and \"to\" differ",
                )
            });
        }
    }
}

fn key_of(ends: LinkEnds) -> &'static str {
    match ends {
        LinkEnds::Between(..) => "between",
        LinkEnds::FromTo(..) => "from",
        LinkEnds::Others => "delay",
    }
}

/// How messages call a link.
fn label(description: &Description, link: &Link) -> String {
    let name = |node: usize| description.nodes.get(node).map_or("?", |node| &node.name);
    match link.ends {
        LinkEnds::Between(one, other) => {
            format!("the link between \"{}\" and \"{}\"", name(one), name(other))
        }
        LinkEnds::FromTo(from, to) => format!("the link from \"{}\" to \"{}\"", name(from), name(to)),
        LinkEnds::Others => "the link between all other nodes".into(),
    }
}
