//! A running hierarchy as a list, from the root down.

use super::protocol::{Listing, Row};
use crate::{ManagedSet, MemberId};
use std::collections::{BTreeMap, HashSet};
use talea_guarantee::proviso::Proviso;
use talea_model::{Request, Scheduler, Under};
use talea_policy::arrangement::Kept;
use talea_policy::arrangement::live::Live;
use talea_policy::hierarchy::{Edge, VpState};
use talea_time::Work;

/// What the engine and the watch say of one edge.
#[derive(Clone, Debug, Default)]
struct Reading {
    state: Option<&'static str>,
    granted: Work,
    /// What of that was withheld, if anybody knows.
    withheld: Option<Work>,
    kept: Option<Kept>,
}

pub(super) fn listing(set: &ManagedSet, live: &Live, members: &BTreeMap<String, MemberId>) -> Listing {
    let system = live.system();
    let node = &system.nodes[live.node()];
    let (_, failure) = live.derivation();
    let readings = readings(set, live);
    let (_, received) = set.received();
    let used: BTreeMap<&str, Work> =
        received.iter().map(|received| (received.name.as_str(), received.work)).collect();
    let provisos = live.provisos();
    let list = List { live, members, readings: &readings, used: &used, provisos: &provisos };
    Listing {
        system: system.name.clone(),
        node: node.name.clone(),
        cpus: node.cpus.clone(),
        rows: list.rows(),
        findings: failure.map_or_else(Vec::new, |failure| failure.lines().map(Into::into).collect()),
    }
}

/// By parent and child; the root has no parent.
type Readings = BTreeMap<(Option<String>, String), Reading>;

/// Looks at all edges in one instant.
fn readings(set: &ManagedSet, live: &Live) -> Readings {
    let receipts = set.receipts();
    set.govern(|engine, watch, _| {
        let mut kept: BTreeMap<(String, String), Kept> = BTreeMap::new();
        let mut withheld: BTreeMap<(String, String), Work> = BTreeMap::new();
        for (number, edge) in watch.map(|watch| watch.so_far()).into_iter().flatten().enumerate() {
            let ends = (edge.parent.clone(), edge.child.clone());
            // Later entries of an edge are of what is promised now.
            let edge = match receipts.get(number) {
                None => edge,
                Some(receipts) => {
                    let before = withheld.entry(ends.clone()).or_insert(Work::ZERO);
                    *before = Work::from_nanos(before.as_nanos() + receipts.withheld_ns);
                    edge.with_receipts(*receipts)
                }
            };
            kept.insert(ends, edge);
        }
        let mut readings = Readings::new();
        for post in live.blueprint().posts() {
            let name = post.name.as_str();
            if post.under.is_empty() {
                let root = live.scheduler(name).and_then(|id| engine.parents(id).next());
                readings.insert((None, name.into()), root.as_ref().map(reading).unwrap_or_default());
            }
            for tie in &post.under {
                let edge = live.edge(engine, &tie.parent, name).and_then(|vp| engine.edge(vp));
                let mut reading = edge.as_ref().map(reading).unwrap_or_default();
                let ends = (tie.parent.clone(), name.to_owned());
                reading.kept = kept.remove(&ends);
                reading.withheld = withheld.remove(&ends);
                readings.insert((Some(tie.parent.clone()), name.into()), reading);
            }
        }
        readings
    })
}

fn reading(edge: &Edge) -> Reading {
    let state = match edge.state {
        VpState::Waiting => "waiting",
        VpState::Ready => "ready",
        VpState::Running(_) => "running",
    };
    Reading { state: Some(state), granted: edge.service, withheld: None, kept: None }
}

struct List<'a> {
    live: &'a Live,
    members: &'a BTreeMap<String, MemberId>,
    readings: &'a Readings,
    used: &'a BTreeMap<&'a str, Work>,
    provisos: &'a [Proviso],
}

impl List<'_> {
    fn rows(&self) -> Vec<Row> {
        let system = self.live.system();
        let is_root =
            |scheduler: &&Scheduler| scheduler.node == self.live.node() && scheduler.under.is_empty();
        let root = system.schedulers.iter().find(is_root).expect("a hierarchy has a root");
        let mut rows = vec![self.row(0, &root.name, Some(root), None)];
        let mut listed = HashSet::from([root.name.as_str()]);
        let mut open = self.children(&root.name, 1);
        open.reverse();
        while let Some((depth, name, under)) = open.pop() {
            let scheduler = system.schedulers.iter().find(|scheduler| scheduler.name == name);
            let mut row = self.row(depth, name, scheduler, Some(under));
            if scheduler.is_some() && !listed.insert(name) {
                row.kind = "elsewhere".into();
            } else if scheduler.is_some() {
                let below = self.children(name, depth + 1);
                open.extend(below.into_iter().rev());
            }
            rows.push(row);
        }
        rows
    }

    /// Who is under a scheduler, with the edge.
    fn children(&self, parent: &str, depth: usize) -> Vec<(usize, &str, &Under)> {
        let system = self.live.system();
        let at = system.schedulers.iter().position(|scheduler| scheduler.name == parent);
        let schedulers =
            system.schedulers.iter().map(|scheduler| (scheduler.name.as_str(), &scheduler.under));
        let threads = system.threads.iter().map(|thread| (thread.name.as_str(), &thread.under));
        let edges =
            schedulers.chain(threads).flat_map(|(name, under)| under.iter().map(move |under| (name, under)));
        edges
            .filter(|(_, under)| Some(under.scheduler) == at)
            .map(|(name, under)| (depth, name, under))
            .collect()
    }

    fn row(&self, depth: usize, name: &str, scheduler: Option<&Scheduler>, under: Option<&Under>) -> Row {
        let system = self.live.system();
        let parent = under.map(|under| system.schedulers[under.scheduler].name.clone());
        let unread = Reading::default();
        let reading = self.readings.get(&(parent.clone(), name.to_owned())).unwrap_or(&unread);
        let post = self.live.blueprint().post(name);
        let promise =
            post.zip(parent.as_deref()).and_then(|(post, parent)| post.tie(parent)?.promise.as_ref());
        let thread = system.threads.iter().find(|thread| thread.name == name);
        let is_own = |proviso: &&Proviso| Some(&proviso.parent) == parent.as_ref() && proviso.child == name;
        let proviso = self.provisos.iter().find(is_own).map(|proviso| proviso.reason.to_string());
        Row {
            proviso,
            depth,
            name: name.into(),
            kind: scheduler.map_or("thread".into(), |scheduler| scheduler.kind.to_string()),
            quantum: scheduler.and_then(|scheduler| scheduler.quantum),
            parent,
            asks: under
                .filter(|under| under.request != Request::Nothing)
                .map(|under| under.request.to_string()),
            guarantee: match (promise, under) {
                (Some(promise), Some(_)) => promise.derived().map(ToString::to_string),
                (None, Some(_)) => None,
                (None, None) => Some("ALL".into()),
                (Some(_), None) => unreachable!("the root has no parent to promise it anything"),
            },
            requires: thread.and_then(|thread| thread.requires.as_ref()).map(ToString::to_string),
            state: reading.state.map(Into::into),
            granted_ns: reading.granted.as_nanos(),
            received_ns: reading
                .withheld
                .map(|withheld| (reading.granted.as_nanos() - withheld.as_nanos()).max(0)),
            used_ns: self.members.get(name).and_then(|_| self.used.get(name)).map(|used| used.as_nanos()),
            judged: reading.kept.as_ref().and_then(Kept::judged),
            violations: reading.kept.as_ref().map_or(0, |kept| kept.broken().0),
        }
    }
}
