//! What holds of any text, whoever sends it: tests draw texts for it, and so does the fuzz target `etcl_parse`.

use crate::endless::Endless;
use allocation_counter::measure;
use talea_etcl::syntax::{Expression, Literal, Node, Path, Root, Selector, StepKind};
use talea_etcl::{
    Constraint, Event, Filterable, Limits, Part, PartOutcome, Problem, ProblemKind, Program, Span,
};
use talea_time::Instant;

/// Limits of which each has one that many texts are beyond.
const NARROW: [Limits; 5] = [
    Limits { length_bytes: 20, ..Limits::DEFAULT },
    Limits { nodes: 6, ..Limits::DEFAULT },
    Limits { depth: 2, ..Limits::DEFAULT },
    Limits { string_bytes: 2, ..Limits::DEFAULT },
    Limits { identifier_bytes: 3, ..Limits::DEFAULT },
];
const FEW_STEPS: Limits = Limits { evaluation_steps: 50, ..Limits::DEFAULT };

/// Reads, compiles, evaluates and explains it within usual limits, the greatest ones and narrower ones.
///
/// # Panics
/// Something is not as the crate says.
pub fn hold(text: &str) {
    let [usual, greatest] = [Limits::DEFAULT, Limits::GREATEST].map(|limits| hold_within(text, limits));
    let Some(usual) = usual else { return };
    let greatest = greatest.unwrap_or_else(|| panic!("{text:?} is refused within wider limits"));
    assert_eq!(usual.expression(), greatest.expression(), "{text:?}");
    explains(&usual, &Event::new("a", "b", "c"));
    for limits in NARROW {
        if let Some((constraint, _)) = parsed(text, limits) {
            assert_eq!(constraint.expression(), usual.expression(), "{text:?} within {limits:?}");
        }
    }
    hold_within(text, FEW_STEPS);
}

/// The constraint, and as it is printed, unless that is too long; `None` with a problem that says why not.
fn parsed(text: &str, limits: Limits) -> Option<(Constraint, Option<Constraint>)> {
    let constraint = match Constraint::parse_within(text, limits) {
        Ok(constraint) => constraint,
        Err(problem) => {
            told(text, &problem);
            let is_of_parsing = matches!(problem.kind, ProblemKind::Syntax | ProblemKind::Limit);
            assert!(is_of_parsing, "{text:?}: {problem:?}");
            return None;
        }
    };
    let mut extent = Extent::default();
    extent.add(constraint.expression(), 1);
    extent.is_within(text, &limits);

    // Printed, it may be longer, and is the same within the limits otherwise.
    let printed = constraint.to_string();
    let limits_of_printed = Limits { length_bytes: Limits::GREATEST.length_bytes, ..limits };
    let again = (printed.len() <= limits_of_printed.length_bytes).then(|| {
        let again = Constraint::parse_within(&printed, limits_of_printed);
        again.unwrap_or_else(|problem| panic!("{text:?} is printed as {printed:?}: {problem}"))
    });
    if let Some(again) = &again {
        assert_eq!(again.expression(), constraint.expression(), "{text:?} is printed as {printed:?}");
        assert_eq!(again.to_string(), printed, "{text:?}");
    }
    Some((constraint, again))
}

/// The constraint; what it says, it says within its steps, and what is printed of it says the same.
fn hold_within(text: &str, limits: Limits) -> Option<Constraint> {
    let (constraint, printed) = parsed(text, limits)?;
    let endless = Endless::new(40);
    if let Some(program) = compiled::<Endless>(&constraint, &limits) {
        _ = evaluated(text, &program, &endless);
        let (looked_at, most) = (endless.looked_at(), u64::from(program.steps()));
        // It was evaluated twice.
        assert!(looked_at <= 2 * most, "{text:?} looks {looked_at} times at events in two of {most} steps");
    }
    let event = Event::new("a", "b", "c");
    let program = compiled::<Event>(&constraint, &limits);
    let outcome = |program: &Option<Program<Event>>, text: &str| {
        program.as_ref().map(|program| evaluated(text, program, &event).map_err(|fault| fault.kind))
    };
    if let Some(printed) = printed {
        let text_of_printed = printed.text();
        let program_of_printed = compiled::<Event>(&printed, &limits);
        let (one, other) = (outcome(&program, text), outcome(&program_of_printed, text_of_printed));
        assert_eq!(one, other, "{text:?} and {text_of_printed:?}");
    }
    Some(constraint)
}

/// The problem has words and a remedy, and a place within the text, which its line and column are of.
fn told(text: &str, problem: &Problem) {
    within(text, problem.span);
    assert!(!problem.message.is_empty() && !problem.remedy.is_empty(), "{problem:?}");
    let place = problem.span.line_and_column(text);
    assert_eq!((problem.line, problem.column), place, "{text:?}: {problem:?}");
}

fn within(text: &str, span: Span) {
    assert!(text.get(span.range()).is_some(), "{span:?} is outside of {text:?}, or within a letter of it");
}

/// The program, which takes no more than the limits have; or `None`, with a problem that says why not.
fn compiled<T: Filterable>(constraint: &Constraint, limits: &Limits) -> Option<Program<T>> {
    match constraint.compile_with_warnings::<T>() {
        Ok((program, warnings)) => {
            warnings.iter().for_each(|warning| told(constraint.text(), warning));
            assert!(
                program.steps() <= limits.evaluation_steps,
                "{:?}: {}",
                constraint.text(),
                program.steps()
            );
            assert!(program.stack() <= limits.depth, "{:?}: {}", constraint.text(), program.stack());
            assert!(program.steps_with_numbers(3) <= program.steps(), "{:?}", constraint.text());
            Some(program)
        }
        Err(problem) => {
            told(constraint.text(), &problem);
            assert_ne!(problem.kind, ProblemKind::Syntax, "{:?}: {problem:?}", constraint.text());
            None
        }
    }
}

/// What it says of the event: without allocating, at a place within the text if that is a fault, and the same once more.
pub fn evaluated<T: Filterable>(
    text: &str,
    program: &Program<T>,
    event: &T,
) -> Result<bool, talea_etcl::Fault> {
    let mut outcome = Ok(false);
    let allocated = measure(|| outcome = program.evaluate(event, Instant::from_nanos(5)));
    assert_eq!(allocated.count_total, 0, "{text:?} allocates");
    if let Err(fault) = outcome {
        within(text, fault.span);
        assert!(!fault.to_string().is_empty());
    }
    assert_eq!(program.evaluate(event, Instant::from_nanos(5)), outcome, "{text:?}");
    outcome
}

/// The explanation says of the whole what the evaluation does, and its parts stand within the text.
pub fn explains(constraint: &Constraint, event: &Event) {
    let text = constraint.text();
    let now = Instant::from_nanos(5);
    let Ok(parts) = constraint.explain(event, now) else { return };
    parts.iter().for_each(|part| within(text, part.span));
    let mut next = parts.iter();
    stops_where_it_is_decided(constraint.expression(), &mut next);
    assert_eq!(next.len(), 0, "{text:?} has fewer parts than {parts:?}");
    let Ok(program) = constraint.compile::<Event>() else { return };
    let said = match &parts[0].outcome {
        PartOutcome::Value(value) => match &**value {
            "TRUE" => Some(true),
            "FALSE" => Some(false),
            _ => None,
        },
        _ => None,
    };
    assert_eq!(said, program.evaluate(event, now).ok(), "{text:?}: {parts:?}");
}

/// Of a chain of `and` or `or` no operand is evaluated behind the one that decides, and each is that stands before it.
fn stops_where_it_is_decided<'p>(part: &Expression, parts: &mut impl Iterator<Item = &'p Part>) -> &'p Part {
    let explained = parts.next().expect("each part is explained");
    assert_eq!((&explained.text, explained.span), (&part.to_string(), part.span));
    let goes_on_with = match part.node {
        Node::And(_) => "TRUE",
        Node::Or(_) => "FALSE",
        _ => "",
    };
    let mut is_reached = explained.outcome != PartOutcome::Skipped;
    for operand in part.operands() {
        let operand = stops_where_it_is_decided(operand, parts);
        if !goes_on_with.is_empty() {
            assert_eq!(operand.outcome != PartOutcome::Skipped, is_reached, "{operand:?} of {explained:?}");
            is_reached &= operand.outcome == PartOutcome::Value(goes_on_with.into());
        }
    }
    explained
}

/// How large an expression is, counted from outside.
#[derive(Debug, Default)]
struct Extent {
    nodes: usize,
    depth: usize,
    steps_of_path: usize,
    string_bytes: usize,
    name_bytes: usize,
}

impl Extent {
    fn add(&mut self, expression: &Expression, depth: usize) {
        self.nodes += 1;
        self.depth = self.depth.max(depth);
        match &expression.node {
            Node::In(_, path) | Node::Path(path) | Node::Exist(path) | Node::Default(path) => self.path(path),
            Node::Literal(Literal::Text(text)) => self.string_bytes = self.string_bytes.max(text.len()),
            _ => {}
        }
        expression.operands().into_iter().for_each(|operand| self.add(operand, depth + 1));
    }

    fn path(&mut self, path: &Path) {
        self.nodes += path.steps.len();
        self.steps_of_path = self.steps_of_path.max(path.steps.len());
        let names = path.steps.iter().filter_map(|step| match &step.kind {
            StepKind::Member(name) | StepKind::Pick(name) => Some(name),
            _ => None,
        });
        let root = match &path.root {
            Root::Dollar(name) | Root::Bare(name) => Some(name),
            Root::Event => None,
        };
        self.name_bytes = names.chain(root).map(String::len).max().unwrap_or(0).max(self.name_bytes);
        for step in &path.steps {
            if let StepKind::Arm(Selector::Text(text)) = &step.kind {
                self.string_bytes = self.string_bytes.max(text.len());
            }
        }
    }

    fn is_within(&self, text: &str, limits: &Limits) {
        let fits = text.len() <= limits.length_bytes
            && self.nodes <= limits.nodes
            && self.depth.max(self.steps_of_path) <= limits.depth
            && self.string_bytes <= limits.string_bytes
            && self.name_bytes <= limits.identifier_bytes;
        assert!(fits, "{text:?} is accepted within {limits:?} with {self:?}");
    }
}
