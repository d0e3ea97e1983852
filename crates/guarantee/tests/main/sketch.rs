//! Hierarchies in few words, for tests.

use std::num::NonZeroU32;
use talea_guarantee::exact::Span;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::hierarchy::{Edge, Hierarchy, Scheduler, Thread};
use talea_guarantee::request::Request;
use talea_guarantee::scheduler::Algorithm;

pub fn guarantee(text: &str) -> Guarantee {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// An algorithm by its name; those with a quantum get `quantum_ms`.
pub fn algorithm(name: &str, quantum_ms: u64) -> Algorithm {
    let every = Algorithm::every(&Span::from_millis(quantum_ms));
    every.into_iter().find(|algorithm| algorithm.name() == name).unwrap_or_else(|| panic!("{name}?"))
}

/// A hierarchy under construction.
pub struct Sketch(pub Hierarchy);

impl Sketch {
    pub fn new() -> Self {
        let (schedulers, threads, edges) = (Vec::new(), Vec::new(), Vec::new());
        Sketch(Hierarchy { processors: NonZeroU32::MIN, given: Guarantee::All, schedulers, threads, edges })
    }

    pub fn processors(mut self, processors: u32) -> Self {
        self.0.processors = NonZeroU32::new(processors).expect("some processors");
        self
    }

    /// A scheduler with a quantum of 10 ms if it has one.
    pub fn scheduler(self, name: &str, kind: &str) -> Self {
        self.scheduler_with(name, algorithm(kind, 10))
    }

    pub fn scheduler_with(mut self, name: &str, algorithm: Algorithm) -> Self {
        self.0.schedulers.push(Scheduler { name: name.into(), algorithm });
        self
    }

    pub fn thread(mut self, name: &str, requires: &str) -> Self {
        let requires = (!requires.is_empty()).then(|| guarantee(requires));
        self.0.threads.push(Thread { name: name.into(), requires });
        self
    }

    /// `request`: nothing, `p` and a priority, `w` and a weight, or a guarantee.
    pub fn edge(mut self, parent: &str, child: &str, request: &str) -> Self {
        let number = |from: &str| from.parse::<i32>().expect("a number");
        let request = match request.split_at_checked(1) {
            None => Request::Nothing,
            Some(("p", priority)) => Request::Priority(number(priority)),
            Some(("w", weight)) => {
                Request::Weight(u32::try_from(number(weight)).unwrap().try_into().unwrap())
            }
            Some(_) => Request::Guarantee(guarantee(request)),
        };
        self.0.edges.push(Edge { parent: parent.into(), child: child.into(), request });
        self
    }
}

/// The hierarchy of the paper's first figure, with the guarantees of its third.
pub fn figure_1() -> Hierarchy {
    Sketch::new()
        .scheduler("FP", "fixed-priority")
        .scheduler("RES", "reservation")
        .scheduler("J", "join")
        .scheduler("PS", "sfq")
        .thread("video", "RESBH 5 33")
        .thread("word", "PSBE 0.1 22")
        .thread("voice", "PSBE 0.4 58")
        .edge("FP", "RES", "p2")
        .edge("FP", "J", "p1")
        .edge("RES", "video", "RESBH 5 33")
        .edge("RES", "J", "RESBH 10 20")
        .edge("J", "PS", "")
        .edge("PS", "word", "w1")
        .edge("PS", "voice", "w4")
        .0
}
