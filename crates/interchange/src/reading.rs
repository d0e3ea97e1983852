//! What importers of all formats gather while they read: problems, losses, and where each item stands.

use crate::names::{of_system, shown};
use crate::source::Lines;
use crate::{Effect, Loss, Origin, Problems, Translated};
use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use talea_guarantee::suggest::nearest;
use talea_model::{Description, OperationAddress, Place, Problem, Severity, SubscriptionOwner, System};
use talea_text::printable;

/// How many problems are kept; nobody mends more at once.
const PROBLEMS: usize = 1000;

fn shown_text(text: Cow<'static, str>) -> Cow<'static, str> {
    match printable(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(shown) => shown.into(),
    }
}

/// The findings of one import.
pub(crate) struct Reading<'t> {
    pub lines: Lines<'t>,
    source_name: String,
    problems: Vec<Problem>,
    /// Problems beyond those that are kept.
    more: usize,
    losses: Vec<Loss>,
    /// Words that are ignored and look misspelt; they explain what a rejected file lacks.
    misspelt: Vec<Problem>,
}

impl<'t> Reading<'t> {
    pub fn new(source_name: &str, text: &'t str) -> Self {
        Reading {
            lines: Lines::new(text),
            source_name: source_name.into(),
            problems: Vec::new(),
            more: 0,
            losses: Vec::new(),
            misspelt: Vec::new(),
        }
    }

    /// The name that the imported system gets.
    pub fn system_name(&self) -> String {
        of_system(&self.source_name)
    }

    pub fn error(&mut self, span: Range<usize>, message: impl Into<String>, remedy: impl Into<String>) {
        if self.is_full() {
            self.more += 1;
            return;
        }
        // What the file says is quoted in them, and may hold anything.
        let (message, remedy) = (message.into(), remedy.into());
        let [message, remedy] = [message, remedy].map(|text: String| printable(&text).into_owned());
        let location = Some(self.lines.locate(span));
        self.problems.push(Problem { severity: Severity::Error, location, message, remedy });
    }

    /// Whether further problems are only counted, so that nobody needs to find out more about them.
    pub fn is_full(&self) -> bool {
        self.problems.len() == PROBLEMS
    }

    pub fn has_errors(&self) -> bool {
        !self.problems.is_empty()
    }

    pub fn lose(
        &mut self,
        effect: Effect,
        span: Range<usize>,
        subject: &str,
        key: impl Into<Cow<'static, str>>,
        what: impl Into<Cow<'static, str>>,
    ) {
        let origin = Origin::Text(self.lines.locate(span));
        let subject = printable(subject).into_owned();
        let [key, what] = [key.into(), what.into()].map(shown_text);
        self.losses.push(Loss { effect, origin, subject, key, what });
    }

    /// A `word` that `program` ignores, and so does the import.
    pub fn ignore<'k>(
        &mut self,
        span: Range<usize>,
        subject: &str,
        word: &str,
        program: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        let mut what = format!("{program} ignores this");
        if let Some(nearest) = nearest(word, known) {
            what += &format!("; did you mean \"{nearest}\"?");
            if self.misspelt.len() < PROBLEMS {
                let location = Some(self.lines.locate(span.clone()));
                let message = format!("{subject}: {program} ignores {}", shown(word));
                let remedy = format!("did you mean \"{nearest}\"?");
                self.misspelt.push(Problem { severity: Severity::Warning, location, message, remedy });
            }
        }
        self.lose(Effect::Lost, span, subject, shown(word), what);
    }

    /// Ends with the problems found so far.
    pub fn reject<T>(mut self) -> Result<T, Problems> {
        self.problems.append(&mut self.misspelt);
        self.problems.sort_by_key(|problem| problem.location.as_ref().map(|place| place.span.start));
        if self.more > 0 {
            self.problems.push(Problem {
                severity: Severity::Error,
                location: None,
                message: format!("and {} more problems", self.more),
                remedy: "mend these first; is it a file of this format?".into(),
            });
        }
        Err(Problems::new(&self.source_name, self.lines.text, self.problems))
    }

    /// Ends with `description`, if nothing was wrong on the way and it satisfies the rules of the model.
    pub fn finish(
        mut self,
        description: Description,
        origins: &Origins,
    ) -> Result<Translated<Description>, Problems> {
        if self.has_errors() {
            return self.reject();
        }
        match System::new(description) {
            Ok(system) => {
                self.losses.sort_by_key(|loss| match &loss.origin {
                    Origin::Text(location) => location.span.start,
                    Origin::Model(_) => usize::MAX,
                });
                Ok(Translated { value: (*system).clone(), losses: self.losses })
            }
            Err(violations) => {
                for violation in violations {
                    if violation.severity == Severity::Error {
                        let span = origins.of(violation.place);
                        self.error(span, violation.message, violation.remedy);
                    }
                }
                self.reject()
            }
        }
    }
}

/// Where the items of the description stand in the text. An empty key is the item as a whole.
#[derive(Default)]
pub(crate) struct Origins(HashMap<Place, Range<usize>>);

impl Origins {
    pub fn set(&mut self, place: Place, span: Range<usize>) {
        self.0.insert(place, span);
    }

    /// The stretch for `place`, or for the item that it belongs to.
    fn of(&self, place: Place) -> Range<usize> {
        let wider = match place {
            Place::Link(link, _) => [Place::Link(link, ""), Place::Whole],
            Place::Node(node, _) => [Place::Node(node, ""), Place::Whole],
            Place::Task(task, _) => [Place::Task(task, ""), Place::Whole],
            Place::Subtask(task, subtask, _) => [Place::Subtask(task, subtask, ""), Place::Task(task, "")],
            Place::Output(task, subtask, ..)
            | Place::Input(task, subtask, ..)
            | Place::Publication(task, subtask, ..) => {
                [Place::Subtask(task, subtask, ""), Place::Task(task, "")]
            }
            Place::Trigger(task, _) => [Place::Task(task, ""), Place::Whole],
            Place::Subscription(owner, _)
            | Place::PriorityBy(owner, _, _)
            | Place::TimeoutBy(owner, _, _) => {
                let wider = match owner {
                    SubscriptionOwner::Task(_) => Place::Whole,
                    SubscriptionOwner::Operation(OperationAddress { task, subtask }) => {
                        Place::Subtask(task, subtask, "")
                    }
                };
                [wider, Place::Task(owner.task(), "")]
            }
            Place::Channel(channel, _) => [Place::Channel(channel, ""), Place::Whole],
            Place::Chain(chain, _) => [Place::Chain(chain, ""), Place::Whole],
            Place::Scheduler(scheduler, _)
            | Place::PlanEntry(scheduler, _)
            | Place::SchedulerUnder(scheduler, _, _) => [Place::Scheduler(scheduler, ""), Place::Whole],
            Place::Thread(thread, _) | Place::ThreadUnder(thread, _, _) => {
                [Place::Thread(thread, ""), Place::Whole]
            }
            Place::Whole | Place::System(_) | Place::Overhead(_) => [Place::Whole; 2],
        };
        let mut found = [place].into_iter().chain(wider).filter_map(|place| self.0.get(&place));
        found.next().cloned().unwrap_or(0..0)
    }
}
