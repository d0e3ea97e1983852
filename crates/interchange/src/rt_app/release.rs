//! What releases a thread: its round of steps as frames, each a piece of work and the time to the next.
//!
//! A round is cut where the thread waits to be released: at its timers, else at its sleeps, else where it
//! is suspended. The piece after the last cut and the piece before the first are one frame, because the
//! round repeats:
//!
//! ```text
//! run a, timer p, run b, timer q          frames (a, p) (b, q), the first at the start
//! timer p, run a                          frame (a, p), the first p after the start
//! ```

use super::thread::{Policy, Step, Thread};
use crate::Effect;
use crate::reading::Reading;
use std::collections::HashSet;
use std::rc::Rc;
use talea_time::{Duration, Work};

/// One job of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub work: Work,
    /// The names it resumes, in order.
    pub resumes: Vec<Rc<str>>,
    /// From its release to that of the next frame; zero if others release it.
    pub gap: Duration,
}

impl Frame {
    /// Whether nothing happens at its release.
    pub fn is_empty(&self) -> bool {
        self.work == Work::ZERO && self.resumes.is_empty()
    }
}

/// What releases a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Release {
    /// Time does: the frames in turn, the first one `offset` after the start.
    Periodic { offset: Duration, frames: Vec<Frame> },
    /// Whoever resumes `name` does, the frames in turn.
    Resumed { name: Rc<str>, frames: Vec<Frame> },
    /// Nothing that a description knows.
    Unknown,
}

/// Where a round is cut.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Timer,
    Sleep,
    Suspend,
    Yield,
    /// Nowhere: the round itself is the frame.
    Round,
}

/// What releases `thread`; what is lost by that is in `reading`.
pub(super) fn release_of(thread: &Thread, policy: Policy, reading: &mut Reading<'_>) -> Release {
    let has = |wanted: fn(&Step) -> bool| thread.round.iter().any(wanted);
    let is_suspend = |step: &Step| matches!(step, Step::Suspend(_));
    let reserved = thread.attributes.period.filter(|_| policy == Policy::Deadline);
    let cut = if has(|step| matches!(step, Step::Timer(_))) {
        Cut::Timer
    } else if thread.round.first().is_some_and(is_suspend) {
        Cut::Suspend
    } else if has(|step| matches!(step, Step::Sleep(_))) {
        Cut::Sleep
    } else if has(is_suspend) {
        Cut::Suspend
    } else if reserved.is_some() && has(|step| matches!(step, Step::Yield)) {
        Cut::Yield
    } else {
        Cut::Round
    };
    note_other_waits(thread, cut, reading);
    let label = thread.label();
    let mut lose = |effect, what: &'static str| {
        reading.lose(effect, thread.span.clone(), &label, "", what);
    };
    let pieces = Pieces::of(thread, cut);
    if pieces.resumes_early {
        lose(Effect::Approximated, "resumes others before its work ends; they are released at its end");
    }
    let repeats = |frame: &Frame| {
        let mut seen = HashSet::new();
        !frame.resumes.iter().all(|name| seen.insert(name))
    };
    if pieces.frames.iter().any(repeats) {
        lose(Effect::Approximated, "resumes the same threads twice in one round; here once");
    }
    if pieces.first_differs {
        lose(Effect::Approximated, "does less in its first round; here all rounds are alike");
    }
    match cut {
        Cut::Timer => pieces.periodic(Duration::ZERO),
        Cut::Sleep => {
            lose(
                Effect::Approximated,
                "sleeps after its work, so its period grows with its response; the period is work and sleep",
            );
            pieces.periodic(Duration::ZERO)
        }
        Cut::Suspend => {
            let name = pieces.name.clone().expect("a round is cut there");
            Release::Resumed { name, frames: pieces.frames }
        }
        Cut::Yield => pieces.periodic(reserved.unwrap_or_default()),
        Cut::Round if pieces.frames.iter().all(Frame::is_empty) || thread.waits => {
            lose(
                Effect::Lost,
                "is released by nothing that a description knows; the whole thread is left out",
            );
            Release::Unknown
        }
        Cut::Round => {
            match reserved {
                Some(_) => {
                    lose(Effect::Approximated, "never waits; its reservation's period is taken for its own")
                }
                None => {
                    lose(Effect::Assumed, "never waits; its work is released again as soon as it could end")
                }
            }
            pieces.periodic(reserved.unwrap_or_default())
        }
    }
}

/// Waiting at other places than those where the round is cut is part of the job and lost.
fn note_other_waits(thread: &Thread, cut: Cut, reading: &mut Reading<'_>) {
    let mut lose = |key: &'static str, what: &'static str| {
        reading.lose(Effect::Lost, thread.span.clone(), &thread.label(), key, what);
    };
    let has = |wanted: fn(&Step) -> bool| thread.round.iter().any(wanted);
    if cut != Cut::Sleep && has(|step| matches!(step, Step::Sleep(_))) {
        lose("sleep", "an operation does not sleep in the middle of its work");
    }
    if cut != Cut::Yield && has(|step| matches!(step, Step::Yield)) {
        lose("yield", "an operation keeps its place until it ends");
    }
    let mut names = thread.round.iter().filter_map(|step| match step {
        Step::Suspend(name) => Some(name),
        _ => None,
    });
    let first = names.next();
    if (cut != Cut::Suspend && first.is_some()) || names.any(|name| Some(name) != first) {
        lose(
            "suspend",
            "an operation is released once, by its predecessors or by time, and not resumed later",
        );
    }
}

/// A round cut into frames.
struct Pieces {
    frames: Vec<Frame>,
    /// When the first frame is released, from the start.
    offset: Duration,
    /// The name that the thread is suspended under.
    name: Option<Rc<str>>,
    /// Whether something is resumed before the work of its frame ends.
    resumes_early: bool,
    /// Whether the first job lacks the piece after the last cut.
    first_differs: bool,
}

impl Pieces {
    fn of(thread: &Thread, cut: Cut) -> Pieces {
        let mut pieces = vec![Frame::default()];
        // For each cut the time that passes between the release before it and the one after it.
        let mut gaps = Vec::new();
        // Whether anything stands in a piece, be it work of no length.
        let mut occupied = vec![false];
        let mut name: Option<Rc<str>> = None;
        let mut resumes_early = false;
        for step in &thread.round {
            let piece = pieces.last_mut().expect("there is a first one");
            if matches!(step, Step::Run(_) | Step::Resume(_)) {
                occupied[gaps.len()] = true;
            }
            let gap = match step {
                Step::Run(work) => {
                    resumes_early |= !piece.resumes.is_empty() && *work > Work::ZERO;
                    piece.work += *work;
                    continue;
                }
                Step::Resume(name) => {
                    piece.resumes.push(name.clone());
                    continue;
                }
                Step::Timer(period) if cut == Cut::Timer => *period,
                Step::Sleep(time) if cut == Cut::Sleep => *time,
                Step::Yield if cut == Cut::Yield => Duration::ZERO,
                Step::Suspend(own) if cut == Cut::Suspend && name.as_ref().is_none_or(|name| name == own) => {
                    name = Some(own.clone());
                    Duration::ZERO
                }
                _ => continue,
            };
            gaps.push(gap);
            pieces.push(Frame::default());
            occupied.push(false);
        }
        if gaps.is_empty() {
            return Pieces {
                frames: pieces,
                offset: Duration::ZERO,
                name,
                resumes_early,
                first_differs: false,
            };
        }
        let mut last = pieces.pop().expect("one more than cuts");
        let first_differs = cut != Cut::Suspend && !last.is_empty() && !pieces[0].is_empty();
        let first_is_empty = !occupied[0] && occupied[gaps.len()];
        resumes_early |= !last.resumes.is_empty() && pieces[0].work > Work::ZERO;
        last.work += pieces[0].work;
        last.resumes.append(&mut pieces[0].resumes);
        pieces[0] = last;
        for (frame, gap) in pieces.iter_mut().zip(gaps) {
            // A sleep begins when the work ends, unless somebody is in the way.
            frame.gap = if cut == Cut::Sleep { gap + frame.work.at_full_speed() } else { gap };
        }
        let mut offset = Duration::ZERO;
        if first_is_empty {
            offset = if cut == Cut::Sleep {
                pieces[0].gap - pieces[0].work.at_full_speed()
            } else {
                pieces[0].gap
            };
            pieces.rotate_left(1);
        }
        Pieces { frames: pieces, offset, name, resumes_early, first_differs }
    }

    /// Released by time. `gap` is that of frames without one of their own, whose work is the last resort.
    fn periodic(mut self, gap: Duration) -> Release {
        for frame in &mut self.frames {
            if frame.gap == Duration::ZERO {
                frame.gap = if gap > Duration::ZERO { gap } else { frame.work.at_full_speed() };
            }
        }
        if self.frames.iter().all(|frame| frame.gap == Duration::ZERO) {
            return Release::Unknown;
        }
        Release::Periodic { offset: self.offset, frames: self.frames }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rt_app::thread::Attributes;

    fn thread(round: Vec<Step>) -> Thread {
        Thread {
            name: "t".into(),
            span: 0..0,
            instances: 1,
            delay: Duration::ZERO,
            attributes: Attributes::default(),
            round,
            waits: false,
            is_plain: false,
        }
    }

    fn run(ms: i64) -> Step {
        Step::Run(Work::from_millis(ms))
    }

    fn timer(ms: i64) -> Step {
        Step::Timer(Duration::from_millis(ms))
    }

    fn sleep(ms: i64) -> Step {
        Step::Sleep(Duration::from_millis(ms))
    }

    /// The offset, and work and gap of each frame, in milliseconds.
    fn periodic(round: Vec<Step>) -> (i64, Vec<(i64, i64)>) {
        let mut reading = Reading::new("x.json", "");
        let Release::Periodic { offset, frames } = release_of(&thread(round), Policy::Other, &mut reading)
        else {
            panic!("released by time");
        };
        let ms = |ns: i64| ns / 1_000_000;
        let frame = |frame: &Frame| (ms(frame.work.as_nanos()), ms(frame.gap.as_nanos()));
        (ms(offset.as_nanos()), frames.iter().map(frame).collect())
    }

    #[test]
    fn timers_cut_the_round() {
        assert_eq!(periodic(vec![run(2), timer(10)]), (0, vec![(2, 10)]));
        assert_eq!(periodic(vec![run(1), run(2), timer(10), run(3), timer(20)]), (0, vec![(3, 10), (3, 20)]));
        assert_eq!(periodic(vec![timer(10), run(2)]), (10, vec![(2, 10)]), "the first job waits");
        assert_eq!(periodic(vec![timer(10), run(2), timer(20), run(3)]), (10, vec![(2, 20), (3, 10)]));
        assert_eq!(periodic(vec![run(1), timer(10), run(2)]), (0, vec![(3, 10)]), "the round repeats");
    }

    #[test]
    fn sleeps_cut_it_where_there_is_no_timer() {
        assert_eq!(periodic(vec![run(2), sleep(8)]), (0, vec![(2, 10)]));
        assert_eq!(periodic(vec![sleep(8), run(2)]), (8, vec![(2, 10)]));
        assert_eq!(periodic(vec![run(2), sleep(3), timer(10)]), (0, vec![(2, 10)]), "a timer comes first");
        assert_eq!(periodic(vec![run(2)]), (0, vec![(2, 2)]), "it never waits");
    }

    #[test]
    fn suspended_threads_are_released_by_others() {
        let suspend = |name: &str| Step::Suspend(name.into());
        let resume = |name: &str| Step::Resume(name.into());
        let mut reading = Reading::new("x.json", "");
        let round = vec![suspend("me"), run(1), resume("a"), suspend("me"), run(2)];
        let frame = |ms, resumes: &[&str]| Frame {
            work: Work::from_millis(ms),
            resumes: resumes.iter().map(|name| (*name).into()).collect(),
            gap: Duration::ZERO,
        };
        assert_eq!(
            release_of(&thread(round), Policy::Other, &mut reading),
            Release::Resumed { name: "me".into(), frames: vec![frame(1, &["a"]), frame(2, &[])] }
        );
        let mut waiting = thread(vec![run(1)]);
        waiting.waits = true;
        assert_eq!(release_of(&waiting, Policy::Other, &mut reading), Release::Unknown);
    }
}
