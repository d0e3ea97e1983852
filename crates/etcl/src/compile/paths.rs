//! Paths: what their names stand for in the type that a constraint is compiled for, as far as that is known.

use super::{Compiler, Dead};
use crate::fault::FaultKind;
use crate::problem::{ProblemKind, Span};
use crate::program::{Labelled, Origin, PathCode, PathStep};
use crate::syntax::{Path, Root, Selector, Step, StepKind};
use crate::value::{EnumType, Filterable, Form, Kind, Layout, Lookup, VARIABLE_HEADER};

/// The instant of evaluation, whatever the type has.
const CURRENT_TIME: &str = "curtime";

/// How many names a remedy lists.
const LISTED: usize = 8;

/// The root of a path, what is known of the values there, the steps that follow, and where the root stands.
type Beginning<'p> = (Origin, Kind, &'p [Step], Span);

impl<T: Filterable> Compiler<'_, T> {
    /// The path in the pool, and what is known of the values there.
    pub(super) fn path(&mut self, path: &Path) -> Result<(u16, Kind), Box<Dead>> {
        let first = self.code.steps.len();
        let (mut origin, mut kind, mut steps, mut root_span) = self.root(path)?;
        if let (Origin::At(position), Kind::List, [Step { kind: StepKind::Pick(name), span }, rest @ ..]) =
            (origin, kind, steps)
        {
            match T::most_names(usize::from(position)) {
                Some(most) => {
                    self.data.picks += 1;
                    self.data.picked = self.data.picked.saturating_add(most);
                }
                None => self.data.is_open = true,
            }
            self.code.fixed_steps += 1;
            origin = Origin::Picked(position, self.name(name));
            (kind, steps, root_span) = (Kind::Dynamic, rest, root_span.to(*span));
        }
        for step in steps {
            let (step_code, next) = match self.step(kind, step) {
                Ok(resolved) => resolved,
                Err(dead) => {
                    self.code.steps.truncate(first);
                    self.code.step_spans.truncate(first);
                    return Err(dead);
                }
            };
            self.code.steps.push(step_code);
            self.code.step_spans.push(step.span);
            kind = next;
        }
        self.code.fixed_steps += steps.len() as u32;
        Ok((self.add_path(origin, first, root_span), kind))
    }

    pub(super) fn add_path(&mut self, origin: Origin, first: usize, root_span: Span) -> u16 {
        let (first, end) = (first as u16, self.code.steps.len() as u16);
        let path = PathCode { origin, first, end, labelled: Labelled::Never, root_span };
        self.code.paths.push(path);
        (self.code.paths.len() - 1) as u16
    }

    /// What is known of the values at a path, if it leads anywhere.
    pub(super) fn kind_of(&mut self, path: &Path) -> Option<Kind> {
        let (_, mut kind, steps, _) = self.root(path).ok()?;
        for step in steps {
            kind = self.step(kind, step).ok()?.1;
        }
        Some(kind)
    }

    fn root<'p>(&mut self, path: &'p Path) -> Result<Beginning<'p>, Box<Dead>> {
        let steps = &path.steps[..];
        if path.root == Root::Event
            && let Some((position, kind, count)) = shortcut::<T>(steps)
        {
            let span = path.root_span.to(steps[count - 1].span);
            if let [Step { kind: StepKind::Pick(name), span: last }, rest @ ..] = &steps[count..]
                && let Some((position, kind)) = T::picked(position, name)
            {
                return Ok((Origin::At(position as u16), kind, rest, span.to(*last)));
            }
            return Ok((Origin::At(position as u16), kind, &steps[count..], span));
        }
        let (name, form, steps, span) = match (&path.root, steps) {
            (Root::Dollar(name), _) => (name, Form::Dollar, steps, path.root_span),
            (Root::Bare(name), _) => (name, Form::Bare, steps, path.root_span),
            (Root::Event, [Step { kind: StepKind::Member(name), span }, rest @ ..]) => {
                (name, Form::Dotted, rest, path.root_span.to(*span))
            }
            (Root::Event, _) => return Ok((Origin::Whole, Kind::Struct(T::layout), steps, path.root_span)),
        };
        if form != Form::Bare && name == CURRENT_TIME {
            return Ok((Origin::Now, Kind::Integer, steps, span));
        }
        match T::resolve(name, form) {
            Lookup::At(position, kind) => Ok((Origin::At(position as u16), kind, steps, span)),
            Lookup::ByName => {
                self.data.lookups += 1;
                Ok((Origin::Short(self.name(name)), Kind::Dynamic, steps, span))
            }
            Lookup::Absent => {
                let mut dead = self.no_member(name, span, T::layout());
                if T::shortcut(&VARIABLE_HEADER).is_some() {
                    let field = format!("$.{}({name})", VARIABLE_HEADER.join("."));
                    dead.problem.remedy += &format!("; a field of the header is {field}");
                }
                Err(dead)
            }
        }
    }

    fn step(&mut self, kind: Kind, step: &Step) -> Result<(PathStep, Kind), Box<Dead>> {
        let named = |step: &StepKind| match step {
            StepKind::TypeId => Some(PathStep::TypeId),
            StepKind::RepositoryId => Some(PathStep::RepositoryId),
            _ => None,
        };
        Ok(match (kind, &step.kind) {
            (Kind::Struct(layout), StepKind::Member(name)) => match layout().position(name) {
                Some(position) => (PathStep::At(position as u32), (layout().members[position].kind)()),
                None => return Err(self.no_member(name, step.span, layout())),
            },
            (Kind::Struct(layout), StepKind::Position(position)) => {
                let members = layout().members;
                match usize::try_from(*position).ok().and_then(|position| members.get(position)) {
                    Some(member) => (PathStep::At(*position as u32), (member.kind)()),
                    None => {
                        let fault = FaultKind::Index { length: members.len() as u32 };
                        return Err(self.nowhere(fault, step.span));
                    }
                }
            }
            (Kind::Struct(layout), StepKind::RepositoryId) if layout().repository_id.is_none() => {
                return Err(self.nowhere(FaultKind::Unnamed, step.span));
            }
            (Kind::Struct(_) | Kind::Enum(_) | Kind::Union, StepKind::TypeId | StepKind::RepositoryId) => {
                (named(&step.kind).unwrap_or(PathStep::TypeId), Kind::Text)
            }
            (Kind::Sequence(element), StepKind::Index(index)) => (PathStep::Index(*index), element()),
            (Kind::Sequence(_) | Kind::List, StepKind::Length) => (PathStep::Length, Kind::Integer),
            (Kind::List, StepKind::Index(_) | StepKind::Pick(_))
            | (Kind::Union, StepKind::Member(_) | StepKind::Arm(_) | StepKind::Discriminator)
            | (Kind::Dynamic, _) => self.dynamic(&step.kind),
            (kind, _) => {
                let found = kind.category().unwrap_or(crate::value::Category::Struct);
                return Err(self.nowhere(FaultKind::Shape { found }, step.span));
            }
        })
    }

    /// A step from what is looked at in each event.
    fn dynamic(&mut self, step: &StepKind) -> (PathStep, Kind) {
        self.data.is_open = true;
        match step {
            StepKind::Member(name) => (PathStep::Member(self.name(name)), Kind::Dynamic),
            StepKind::Position(position) => (PathStep::Position(*position), Kind::Dynamic),
            StepKind::Index(index) => (PathStep::Index(*index), Kind::Dynamic),
            StepKind::Pick(name) => (PathStep::Pick(self.name(name)), Kind::Dynamic),
            StepKind::Arm(Selector::Default) => (PathStep::DefaultArm, Kind::Dynamic),
            StepKind::Arm(Selector::Number(number)) => (PathStep::ArmOfNumber(*number), Kind::Dynamic),
            StepKind::Arm(Selector::Text(text)) => (PathStep::ArmOfText(self.name(text)), Kind::Dynamic),
            StepKind::Length => (PathStep::Length, Kind::Integer),
            StepKind::Discriminator => (PathStep::Discriminator, Kind::Dynamic),
            StepKind::TypeId => (PathStep::TypeId, Kind::Text),
            StepKind::RepositoryId => (PathStep::RepositoryId, Kind::Text),
        }
    }

    fn nowhere(&self, fault: FaultKind, span: Span) -> Box<Dead> {
        let problem = self.problem(ProblemKind::Type, span, fault.to_string(), fault.remedy());
        Box::new(Dead { problem, fault })
    }

    fn no_member(&self, name: &str, span: Span, layout: &Layout) -> Box<Dead> {
        let names: Vec<&str> = layout.members.iter().map(|member| member.name).collect();
        let message = format!("{} has no member {name}", layout.name);
        let remedy = meant(name, &names, "its members are");
        let problem = self.problem(ProblemKind::Name, span, message, &remedy);
        Box::new(Dead { problem, fault: FaultKind::Missing })
    }

    pub(super) fn no_label(&self, name: &str, span: Span, labels: &EnumType) -> Box<Dead> {
        let message = format!("{name} is neither a member nor a label of {}", labels.name);
        let remedy = meant(name, labels.labels, "its labels are");
        let problem = self.problem(ProblemKind::Name, span, message, &remedy);
        Box::new(Dead { problem, fault: FaultKind::UnknownLabel })
    }
}

/// The position of what the first members of a path lead to by a shorter way, what is known of it, and how many members these are.
fn shortcut<T: Filterable>(steps: &[Step]) -> Option<(usize, Kind, usize)> {
    let member = |step| match step {
        &Step { kind: StepKind::Member(ref name), .. } => Some(name.as_str()),
        _ => None,
    };
    let members: Vec<&str> = steps.iter().map_while(member).collect();
    (2..=members.len()).rev().find_map(|count| {
        let (position, kind) = T::shortcut(&members[..count])?;
        Some((position, kind, count))
    })
}

/// The name that was probably meant, or the names that there are.
fn meant(name: &str, names: &[&str], what: &str) -> String {
    let near = names.iter().map(|known| (strsim::damerau_levenshtein(name, known), known));
    match near.min() {
        Some((distance, known)) if distance <= 1 + name.len() / 4 => format!("did you mean {known}?"),
        _ if names.is_empty() => "there are none".into(),
        _ if names.len() > LISTED => format!("{what} {} and others", names[..LISTED].join(", ")),
        _ => format!("{what} {}", names.join(", ")),
    }
}
