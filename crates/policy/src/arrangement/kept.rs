//! What came of promises, by all who judge them.

use super::Promise;
use serde::{Deserialize, Serialize};
use talea_guarantee::due::Sums;
use talea_guarantee::guarantee::Guarantee;
use talea_guarantee::monitor::{Bound, Violation};
use talea_time::{Instant, Work};

/// What came of an edge's promise. Times are in nanoseconds; instants are on the run's clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The scheduler above.
    pub parent: String,
    /// The scheduler or thread below.
    pub child: String,
    /// The guarantee, in time of the real processor; `NULL` where nothing was promised.
    pub guarantee: String,
    /// On what grounds.
    pub basis: Basis,
    /// Time for which the child wanted a processor; none where nobody saw that.
    pub wanted_ns: Option<i64>,
    /// Time for which it had one: that for which it was granted one, less what [`Self::receipts`] know to have been withheld.
    pub received_ns: i64,
    /// Windows judged, or times without service of a share with an error. `None` if the guarantee cannot be judged by what is
    /// seen: slower processors, shares in the long run, nothing.
    pub judged: Option<u64>,
    /// How many of them broke the promise by what was granted: the hierarchy's own fault.
    pub violations: u64,
    /// The violation of the greatest amount.
    pub worst: Option<Breach>,
    /// The same judged by what was received. None where nobody saw that, and in virtual time where nothing costs anything: there
    /// what is granted is received.
    #[serde(default)]
    pub receipts: Option<Receipts>,
    /// The same by the work that arrived and what was received of it, whatever the schedulers took for demand. None where nobody knows the
    /// work: of schedulers, and of threads whose jobs are not the run's.
    #[serde(default)]
    pub sums: Option<Sums>,
    /// By how much more than was granted a thread that is held to a maximum received by the kernel's account. None where that kept to what
    /// was granted, or nobody asked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceeded_ns: Option<i64>,
    /// Whether that is because the thread was held late: the kernel kept whoever was to hold it from that for so long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_held_late: bool,
}

/// What became of a promise on a machine that did not always do what the hierarchy decided, or not for nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipts {
    /// Of what was granted, what the machine withheld.
    pub withheld_ns: i64,
    /// Windows judged by what was received. They are others than those judged by what was granted, for what is withheld ends and begins them,
    /// too. None if the guarantee cannot be judged by what is seen, and in results of earlier versions.
    #[serde(default)]
    pub judged: Option<u64>,
    /// In how many of them less was received than promised, or more.
    pub violations: u64,
    /// The violation of the greatest amount.
    pub worst: Option<Breach>,
    /// What was received is known up to here alone, where not all was seen of the rest: nothing is judged by that.
    #[serde(default)]
    pub known_until_ns: Option<i64>,
}

/// Whether a promise was kept, and if not, who broke it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody saw what was wanted, or not all of what was received.
    NotJudged,
    /// Nothing that could be judged is promised.
    NotJudgeable,
    /// There was no window to judge.
    Untested,
    /// It was.
    Kept,
    /// The hierarchy did not grant what was promised.
    NotGranted,
    /// It was granted, and some of it was withheld: by the machine's kernel or, in virtual time, by what mechanisms cost.
    Withheld,
    /// It is a maximum, of which no more was granted, and more received: the thread ran where or when nobody let it.
    Exceeded,
    /// The same, for the kernel kept whoever was to hold the thread from it.
    HeldLate,
}

/// Why a guarantee is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// It was derived.
    Derived,
    /// It could not be, but the thread requires it.
    Required,
    /// Nothing is promised.
    Nothing,
}

/// A window in which a promise was not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breach {
    /// Where the window begins.
    pub from_ns: i64,
    /// Where it ends.
    pub to_ns: i64,
    /// What was received in it.
    pub received_ns: i64,
    /// What was promised for it.
    pub promised_ns: i64,
    /// Whether that was the least or the most.
    pub bound: Side,
}

/// Which side of a promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// It was a minimum.
    Least,
    /// It was a maximum.
    Most,
}

impl From<Violation> for Breach {
    fn from(violation: Violation) -> Self {
        Breach {
            from_ns: violation.from.as_nanos(),
            to_ns: violation.to.as_nanos(),
            received_ns: violation.received.as_nanos(),
            promised_ns: violation.promised.as_nanos(),
            bound: match violation.bound {
                Bound::Least => Side::Least,
                Bound::Most => Side::Most,
            },
        }
    }
}

impl Kept {
    /// What is known of an edge that nobody watches, but for what was received on it.
    pub fn unwatched((parent, child): (&str, &str), promise: Option<&Promise>, received: Work) -> Self {
        let (guarantee, basis) = expected(promise);
        Kept {
            parent: parent.to_owned(),
            child: child.to_owned(),
            guarantee,
            basis,
            wanted_ns: None,
            received_ns: received.as_nanos(),
            judged: None,
            violations: 0,
            worst: None,
            receipts: None,
            sums: None,
            exceeded_ns: None,
            is_held_late: false,
        }
    }

    /// The same, judged by what was received as well.
    #[must_use]
    pub fn with_receipts(mut self, receipts: Receipts) -> Self {
        self.received_ns = (self.received_ns - receipts.withheld_ns).max(0);
        self.receipts = Some(receipts);
        self
    }

    /// The same with instants that count from `start`.
    #[must_use]
    pub fn since(mut self, start: Instant) -> Self {
        let in_receipts = self.receipts.iter_mut().filter_map(|receipts| receipts.worst.as_mut());
        for breach in self.worst.iter_mut().chain(in_receipts) {
            breach.from_ns -= start.as_nanos();
            breach.to_ns -= start.as_nanos();
        }
        let known_until = self.receipts.iter_mut().filter_map(|receipts| receipts.known_until_ns.as_mut());
        known_until.for_each(|until| *until -= start.as_nanos());
        self
    }

    /// Whether it was kept by all that is known.
    pub fn verdict(&self) -> Verdict {
        let withheld = self.receipts.is_some_and(|receipts| receipts.violations > 0);
        let is_unknown = self.receipts.is_some_and(|receipts| receipts.known_until_ns.is_some());
        let is_due = self.sums.is_some_and(|sums| sums.wanted_ns > 0);
        let misses = self.misses_by_sums();
        match (self.judged, self.violations) {
            (_, 0) if self.exceeded_ns.is_some() && self.is_held_late => Verdict::HeldLate,
            (_, 0) if self.exceeded_ns.is_some() => Verdict::Exceeded,
            (Some(_), 0) if misses && self.receipts.is_none_or(|receipts| receipts.withheld_ns == 0) => {
                Verdict::NotGranted
            }
            (Some(_), 0) if misses => Verdict::Withheld,
            (None, _) if self.wanted_ns.is_none() => Verdict::NotJudged,
            (None, _) => Verdict::NotJudgeable,
            (Some(_), 1..) => Verdict::NotGranted,
            (Some(_), 0) if withheld => Verdict::Withheld,
            (Some(_), 0) if is_unknown => Verdict::NotJudged,
            // No window of it ended, but what was due at every instant was received.
            (Some(0), 0) if !is_due => Verdict::Untested,
            (Some(_), 0) => Verdict::Kept,
        }
    }

    /// Whether less was received than was due by the work that arrived, or more than a maximum, in no matter which windows.
    pub fn misses_by_sums(&self) -> bool {
        self.sums.is_some_and(|sums| sums.missing_ns > 0 || sums.excess_ns > 0)
    }

    /// Whether something is promised to somebody who wanted it, and nobody could judge whether it was kept.
    pub fn is_unjudged(&self) -> bool {
        let is_unknown =
            matches!(self.verdict(), Verdict::NotJudged | Verdict::NotJudgeable | Verdict::Untested);
        is_unknown && self.basis != Basis::Nothing && self.wanted_ns != Some(0)
    }

    /// In how many windows it was found broken, and the worst of them: by what was granted, or where this was enough by what was
    /// received. A maximum that was exceeded by the kernel's account was in one window, the whole run.
    pub fn broken(&self) -> (u64, Option<&Breach>) {
        match &self.receipts {
            _ if self.is_exceeded() => (1, None),
            Some(receipts) if self.violations == 0 => (receipts.violations, receipts.worst.as_ref()),
            _ => (self.violations, self.worst.as_ref()),
        }
    }

    /// How many windows were judged, by the same of the two by which [`broken`](Self::broken) counts. None where nobody knows.
    pub fn judged(&self) -> Option<u64> {
        match &self.receipts {
            _ if self.is_exceeded() => Some(1),
            Some(receipts) if self.violations == 0 => {
                receipts.judged.or(self.judged.filter(|_| receipts.violations == 0))
            }
            _ => self.judged,
        }
    }

    fn is_exceeded(&self) -> bool {
        matches!(self.verdict(), Verdict::Exceeded | Verdict::HeldLate)
    }

    /// Whether it was found broken, by whomever.
    pub fn is_broken(&self) -> bool {
        self.is_exceeded() || matches!(self.verdict(), Verdict::NotGranted | Verdict::Withheld)
    }
}

/// A guarantee in words, and why it is expected.
pub(super) fn expected(promise: Option<&Promise>) -> (String, Basis) {
    match promise {
        None | Some(Promise::Derived(Guarantee::Null)) => (Guarantee::Null.to_string(), Basis::Nothing),
        Some(Promise::Derived(guarantee) | Promise::Stated(guarantee, _)) => {
            (guarantee.to_string(), Basis::Derived)
        }
        Some(Promise::Required(guarantee)) => (guarantee.to_string(), Basis::Required),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_kept_if_it_was_granted_and_received() {
        let promise = Promise::Derived("RESBS 5ms 10ms".parse().expect("a guarantee"));
        let unwatched = Kept::unwatched(("RES", "video"), Some(&promise), Work::ZERO);
        let untested = Kept { wanted_ns: Some(0), judged: Some(0), ..unwatched };
        assert_eq!(untested.verdict(), Verdict::Untested);
        let breach = Breach { from_ns: 30, to_ns: 40, received_ns: 1, promised_ns: 5, bound: Side::Least };
        let kept = Kept { judged: Some(8), received_ns: 100, ..untested };
        assert_eq!((kept.verdict(), kept.is_broken()), (Verdict::Kept, false));
        let fine = kept.clone().with_receipts(Receipts { withheld_ns: 10, ..Receipts::default() });
        let in_part = Receipts { known_until_ns: Some(1_000), ..Receipts::default() };
        assert_eq!(kept.clone().with_receipts(in_part).verdict(), Verdict::NotJudged);
        assert_eq!(
            kept.clone()
                .with_receipts(in_part)
                .since(Instant::from_nanos(400))
                .receipts
                .unwrap()
                .known_until_ns,
            Some(600)
        );
        assert_eq!((fine.verdict(), fine.received_ns), (Verdict::Kept, 90));
        let withheld = Receipts {
            withheld_ns: 10,
            judged: Some(9),
            violations: 2,
            worst: Some(breach),
            known_until_ns: None,
        };
        let broken = kept.clone().with_receipts(withheld);
        assert_eq!((broken.verdict(), broken.is_broken()), (Verdict::Withheld, true));
        assert_eq!(broken.broken(), (2, Some(&breach)));
        let worst = broken.clone().since(Instant::from_nanos(30)).broken().1.copied().expect("the worst");
        assert_eq!((worst.from_ns, worst.to_ns), (0, 10));
        let exceeded = Kept { exceeded_ns: Some(1_840_000_000), ..kept.clone() };
        assert_eq!((exceeded.verdict(), exceeded.is_broken()), (Verdict::Exceeded, true));
        assert_eq!(exceeded.broken(), (1, None));
        let held_late = Kept { is_held_late: true, ..exceeded };
        assert_eq!(
            (held_late.verdict(), held_late.is_broken(), held_late.broken()),
            (Verdict::HeldLate, true, (1, None))
        );
        let ungranted = Kept { violations: 1, ..broken };
        assert_eq!((ungranted.verdict(), ungranted.broken()), (Verdict::NotGranted, (1, None)));
        assert_eq!(Kept { wanted_ns: None, judged: None, ..kept }.verdict(), Verdict::NotJudged);
    }

    #[test]
    fn windows_are_counted_by_what_those_that_broke_the_promise_are() {
        let promise = Promise::Derived(Guarantee::All);
        let unwatched = Kept::unwatched(("FP", "PL"), Some(&promise), Work::ZERO);
        let granted = Kept { wanted_ns: Some(100), judged: Some(3), ..unwatched };
        let receipts = Receipts { judged: Some(14), violations: 11, ..Receipts::default() };
        let counts = |kept: &Kept| (kept.broken().0, kept.judged());
        assert_eq!(counts(&granted), (0, Some(3)));
        assert_eq!(counts(&granted.clone().with_receipts(receipts)), (11, Some(14)));
        assert_eq!(counts(&granted.clone().with_receipts(Receipts::default())), (0, Some(3)));
        let of_earlier_versions = Receipts { judged: None, ..receipts };
        assert_eq!(counts(&granted.clone().with_receipts(of_earlier_versions)), (11, None));
        let not_granted = Kept { violations: 2, ..granted.clone() };
        assert_eq!(counts(&not_granted.with_receipts(receipts)), (2, Some(3)));
        let exceeded = Kept { exceeded_ns: Some(5), judged: Some(0), ..granted };
        assert_eq!(counts(&exceeded), (1, Some(1)));
    }
}
