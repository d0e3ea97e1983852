//! Types of operands, as far as they are known.

use super::{Compiler, Fact};
use crate::fault::FaultKind;
use crate::problem::{Problem, ProblemKind, Span};
use crate::program::{BYTES_PER_STEP, Operator};
use crate::syntax::{Expression, Literal, Node, Path};
use crate::value::{Category, Filterable, Kind};

/// The string that a part is, if it is written out.
fn text_of(part: &Expression) -> Option<&str> {
    match &part.node {
        Node::Literal(Literal::Text(text)) => Some(text),
        _ => None,
    }
}

impl<T: Filterable> Compiler<'_, T> {
    /// What is known of a part that has to be a boolean.
    pub(super) fn expect_boolean(&self, fact: Fact, part: &Expression) -> Fact {
        let fails = fact.fails.or_else(|| match fact.category {
            Some(found) if found != Category::Boolean => Some(self.unfit(
                part.span,
                format!("expected a boolean; {} is {found}", self.quoted(part.span)),
                FaultKind::NotBoolean { found },
            )),
            _ => None,
        });
        Fact { fails, category: Some(Category::Boolean), ..fact }
    }

    fn unfit(&self, span: Span, message: String, fault: FaultKind) -> Box<Problem> {
        self.problem(ProblemKind::Type, span, message, fault.remedy())
    }

    /// What is known of the result of an operator.
    pub(super) fn combined(
        &mut self,
        operator: Operator,
        (left, right): (Fact, Fact),
        operands: (&Expression, &Expression),
        whole: &Expression,
    ) -> Fact {
        let (left_category, right_category) = (left.category, right.category);
        let fails = left.fails.or(right.fails);
        match operator {
            Operator::Compare(_) => {
                let has_bounded_size = |category: Option<Category>| {
                    category.is_some_and(|category| category.is_number() || category == Category::Boolean)
                };
                if !has_bounded_size(left_category) && !has_bounded_size(right_category) {
                    let may_be_text =
                        |category: Option<Category>| category.is_none_or(|one| one == Category::Text);
                    // Of two strings as many bytes are looked at as the shorter one has.
                    match text_of(operands.0).or(text_of(operands.1)) {
                        Some(text) if may_be_text(left_category) && may_be_text(right_category) => {
                            self.data.written += (text.len() / BYTES_PER_STEP) as u32;
                        }
                        _ => self.data.is_open = true,
                    }
                }
                let own = || match (left_category, right_category) {
                    (Some(left), Some(right)) if !is_comparable(left, right) => Some(self.unfit(
                        whole.span,
                        format!(
                            "{} is {left} and {} is {right}, which cannot be compared",
                            self.quoted(operands.0.span),
                            self.quoted(operands.1.span)
                        ),
                        FaultKind::Incomparable { left, right },
                    )),
                    _ => None,
                };
                Fact { fails: fails.or_else(own), ..Fact::boolean() }
            }
            Operator::Substring => {
                let is_text = |category| category == Category::Text;
                let own =
                    || self.operand("~ takes strings", is_text, (left_category, right_category), operands);
                Fact { fails: fails.or_else(own), ..Fact::boolean() }
            }
            Operator::Arithmetic(operator) => {
                let needs = format!("{} takes numbers", operator.symbol());
                let categories = (left_category, right_category);
                let own = || self.operand(&needs, Category::is_number, categories, operands);
                let fails = fails.or_else(own);
                let category = match categories {
                    (Some(Category::Float), _) | (_, Some(Category::Float)) => Some(Category::Float),
                    (Some(Category::Integer), Some(Category::Integer)) => Some(Category::Integer),
                    _ => None,
                };
                Fact { category, constant: None, fails }
            }
        }
    }

    /// The first operand that is known not to be what an operator takes.
    fn operand(
        &self,
        needs: &str,
        is_fit: fn(Category) -> bool,
        categories: (Option<Category>, Option<Category>),
        operands: (&Expression, &Expression),
    ) -> Option<Box<Problem>> {
        let pairs = [(categories.0, operands.0), (categories.1, operands.1)];
        pairs.into_iter().find_map(|(category, part)| {
            let found = category.filter(|category| !is_fit(*category))?;
            let message = format!("{needs}; {} is {found}", self.quoted(part.span));
            Some(self.unfit(part.span, message, FaultKind::Operand { found }))
        })
    }

    pub(super) fn combined_in(
        &self,
        element: Fact,
        sequence: Fact,
        (part, path): (&Expression, &Path),
    ) -> Fact {
        let unfit = |found: Category, span: Span, needs: &str| {
            let message = format!("{needs}; {} is {found}", self.quoted(span));
            self.unfit(span, message, FaultKind::Operand { found })
        };
        let own = || {
            let not_sequence = sequence.category.filter(|category| *category != Category::Sequence);
            let composite = element.category.filter(|category| !is_plain(*category));
            let not_sequence = not_sequence.map(|found| unfit(found, path.span, "in takes a sequence"));
            not_sequence.or(composite
                .map(|found| unfit(found, part.span, "in looks for a number, string, boolean or label")))
        };
        let fails = element.fails.or(sequence.fails).or_else(own);
        Fact { fails, ..Fact::boolean() }
    }

    pub(super) fn expect_union(&self, kind: Kind, part: &Expression) -> Option<Box<Problem>> {
        let found = kind.category().filter(|category| *category != Category::Union)?;
        let message = format!("default takes a union's discriminator; this is {found}");
        Some(self.unfit(part.span, message, FaultKind::Shape { found }))
    }
}

fn is_plain(category: Category) -> bool {
    category.is_number() || matches!(category, Category::Boolean | Category::Text | Category::Enum)
}

fn is_comparable(left: Category, right: Category) -> bool {
    match (left, right) {
        (Category::Enum, Category::Integer) | (Category::Integer, Category::Enum) => true,
        (left, right) if left.is_number() => right.is_number(),
        (left, right) => left == right && is_plain(left),
    }
}
