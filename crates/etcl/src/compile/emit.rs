//! Instructions for each kind of part, which leave its value in the accumulator, or its truth in the flag.

use super::{Compiler, Dead, Fact, is_value};
use crate::program::{Constant, Labelled, Op, Operand, Operator, Origin, Then};
use crate::syntax::{Expression, Literal, Node, Path, Relation};
use crate::value::{Category, Filterable, Form, Kind, Lookup};

/// An operand that needs no instructions of its own, with what is known of it.
type Simple = Result<(Operand, Fact), Box<Dead>>;

impl<T: Filterable> Compiler<'_, T> {
    /// The part as a truth value, in the flag.
    pub(super) fn truth(&mut self, part: &Expression) -> Fact {
        let fact = self.expression(part);
        if is_value(part) {
            self.push(Op::ToFlag, part.span);
        }
        self.expect_boolean(fact, part)
    }

    /// The part as a value, in the accumulator.
    fn value(&mut self, part: &Expression) -> Fact {
        let fact = self.expression(part);
        self.ensure_value(part);
        fact
    }

    pub(super) fn expression(&mut self, expression: &Expression) -> Fact {
        let span = expression.span;
        match &expression.node {
            Node::And(operands) => self.chain(operands, false),
            Node::Or(operands) => self.chain(operands, true),
            Node::Not(operand) => {
                let fact = self.truth(operand);
                self.push(Op::Not, span);
                Fact { constant: fact.constant.map(|constant| !constant), ..fact }
            }
            Node::Compare(relation, left, right) => self.compare(*relation, left, right, expression),
            Node::Substring(left, right) => {
                self.data.is_open = true;
                self.binary(Operator::Substring, left, right, expression)
            }
            Node::Arithmetic(first, rest) => {
                let mut fact = self.value(first);
                let mut left = &**first;
                for (operator, right) in rest {
                    let operator = Operator::Arithmetic(*operator);
                    fact = self.with_right(operator, fact, (left, right), expression);
                    left = right;
                }
                fact
            }
            Node::In(element, path) => self.contained(element, path, expression),
            Node::Literal(literal) => {
                let simple = self.literal(literal);
                self.load(simple, expression)
            }
            Node::Path(path) => {
                let simple = self.at_path(path);
                self.load(simple, expression)
            }
            Node::Exist(path) => self.exist(path, expression),
            Node::Default(path) => match self.path(path) {
                Ok((path, kind)) => {
                    self.push(Op::Default(path), span);
                    let mut fact = Fact::boolean();
                    fact.fails = self.expect_union(kind, expression);
                    fact
                }
                Err(dead) => self.dead(*dead),
            },
        }
    }

    /// Operands of `and`, or of `or` if `stops_at` is true, from left to right.
    fn chain(&mut self, operands: &[Expression], stops_at: bool) -> Fact {
        let (mut jumps, mut fact) = (Vec::new(), Fact::boolean());
        // Whether it is certain that evaluation comes to the next operand.
        let mut is_reached = true;
        let mut constant = Some(!stops_at);
        for (index, operand) in operands.iter().enumerate() {
            let own = self.truth(operand);
            match own.fails {
                Some(problem) if is_reached => fact.fails = fact.fails.or(Some(problem)),
                Some(problem) => self.warnings.push(*problem),
                None => {}
            }
            if is_reached && own.constant == Some(stops_at) {
                constant = Some(stops_at);
            } else if own.constant != Some(!stops_at) && is_reached {
                constant = None;
            }
            is_reached &= own.constant == Some(!stops_at);
            if index + 1 < operands.len() {
                jumps.push(self.code.ops.len());
                self.push(Op::JumpIfFalse(0), operand.span);
            }
        }
        let end = self.code.ops.len() as u16;
        for jump in jumps {
            self.code.ops[jump] = if stops_at { Op::JumpIfTrue(end) } else { Op::JumpIfFalse(end) };
        }
        Fact { constant, ..fact }
    }

    fn compare(
        &mut self,
        relation: Relation,
        left: &Expression,
        right: &Expression,
        whole: &Expression,
    ) -> Fact {
        let operator = Operator::Compare(relation);
        let (Some(left_simple), Some(right_simple)) =
            (self.comparand(left, right), self.comparand(right, left))
        else {
            return self.binary(operator, left, right, whole);
        };
        let (left_fact, right_fact) = match (left_simple, right_simple) {
            (Ok((Operand::Path(path), left_fact)), Ok((Operand::Constant(constant), right_fact))) => {
                let op = self.test(relation, path, constant);
                self.push_with_left(op, whole.span, left.span);
                (left_fact, right_fact)
            }
            (Ok((Operand::Path(left), left_fact)), Ok((Operand::Path(right), right_fact)))
                if [left, right].iter().any(|path| self.may_be_label(*path)) =>
            {
                self.push(Op::Named(relation, left, right), whole.span);
                (left_fact, right_fact)
            }
            (left_simple, right_simple) => {
                let fact = self.load(left_simple, left);
                return self.with_simple(operator, fact, right_simple, (left, right), whole);
            }
        };
        self.combined(operator, (left_fact, right_fact), (left, right), whole)
    }

    /// The comparison of what is at a path with a constant.
    fn test(&self, relation: Relation, path: u16, constant: u16) -> Op {
        let code = &self.code.paths[usize::from(path)];
        match code.origin {
            Origin::At(position) if code.first == code.end => {
                Op::TestAt(relation, position, constant, Then::default())
            }
            Origin::Short(name) if code.first == code.end => {
                Op::TestShort(relation, name, constant, Then::default())
            }
            Origin::Picked(position, name) if code.first == code.end => {
                Op::TestPicked(relation, position, name, constant, Then::default())
            }
            _ => Op::Test(relation, path, constant),
        }
    }

    fn may_be_label(&self, path: u16) -> bool {
        self.code.paths[usize::from(path)].labelled != Labelled::Never
    }

    fn binary(
        &mut self,
        operator: Operator,
        left: &Expression,
        right: &Expression,
        whole: &Expression,
    ) -> Fact {
        let fact = self.value(left);
        self.with_right(operator, fact, (left, right), whole)
    }

    /// Combines the accumulator, of which `fact` is known, with what is on the right.
    fn with_right(
        &mut self,
        operator: Operator,
        fact: Fact,
        operands: (&Expression, &Expression),
        whole: &Expression,
    ) -> Fact {
        let right = operands.1;
        if let Some(simple) = self.simple(right) {
            return self.with_simple(operator, fact, simple, operands, whole);
        }
        self.push(Op::Push, whole.span);
        let right_fact = self.value(right);
        self.push(operator.op(Operand::Stack), whole.span);
        self.combined(operator, (fact, right_fact), operands, whole)
    }

    fn with_simple(
        &mut self,
        operator: Operator,
        fact: Fact,
        right: Simple,
        operands: (&Expression, &Expression),
        whole: &Expression,
    ) -> Fact {
        let right_fact = match right {
            Ok((operand, right_fact)) => {
                self.push(operator.op(operand), whole.span);
                right_fact
            }
            Err(dead) => self.dead(*dead),
        };
        self.combined(operator, (fact, right_fact), operands, whole)
    }

    fn load(&mut self, simple: Simple, expression: &Expression) -> Fact {
        match simple {
            Ok((operand, fact)) => {
                self.push(Op::Load(operand), expression.span);
                fact
            }
            Err(dead) => self.dead(*dead),
        }
    }

    /// An error that is certain.
    fn dead(&mut self, dead: Dead) -> Fact {
        self.code.faults.push(dead.fault);
        self.push(Op::Fail((self.code.faults.len() - 1) as u16), dead.problem.span);
        Fact { category: None, constant: None, fails: Some(dead.problem) }
    }

    /// The operand that a part is, if it is a literal or a path.
    fn simple(&mut self, expression: &Expression) -> Option<Simple> {
        match &expression.node {
            Node::Literal(literal) => Some(self.literal(literal)),
            Node::Path(path) => Some(self.at_path(path)),
            _ => None,
        }
    }

    fn literal(&mut self, literal: &Literal) -> Simple {
        let (constant, category) = constant(literal);
        let mut fact = Fact::of(Some(category));
        if let Literal::Boolean(value) = literal {
            fact.constant = Some(*value);
        }
        Ok((Operand::Constant(self.constant(constant)), fact))
    }

    fn at_path(&mut self, path: &Path) -> Simple {
        self.path(path).map(|(path, kind)| (Operand::Path(path), Fact::of(kind.category())))
    }

    /// The operand of a comparison with `other` that a literal or path is: a bare name may be that of a label.
    fn comparand(&mut self, expression: &Expression, other: &Expression) -> Option<Simple> {
        let (Node::Path(path), Node::Path(opposite)) = (&expression.node, &other.node) else {
            let is_simple = matches!(other.node, Node::Literal(_) | Node::Path(_));
            return if is_simple { self.simple(expression) } else { None };
        };
        let Some(name) = path.bare_name() else { return self.simple(expression) };
        let opposite = self.kind_of(opposite);
        match (T::resolve(name, Form::Bare), opposite) {
            (Lookup::ByName, Some(Kind::Enum(_) | Kind::Dynamic)) => {
                self.data.is_open = true;
                let simple = self.path(path);
                Some(simple.map(|(path, _)| {
                    self.code.paths[usize::from(path)].labelled = Labelled::IfMissing;
                    (Operand::Path(path), Fact::of(None))
                }))
            }
            (Lookup::Absent, Some(Kind::Enum(labels))) => {
                Some(match labels.labels.iter().position(|label| *label == name) {
                    Some(ordinal) => {
                        let constant = self.constant(Constant::Integer(ordinal as i64));
                        Ok((Operand::Constant(constant), Fact::of(Some(Category::Integer))))
                    }
                    None => Err(self.no_label(name, path.span, labels)),
                })
            }
            (Lookup::Absent, Some(Kind::Dynamic)) => {
                self.data.is_open = true;
                let origin = Origin::Short(self.name(name));
                let label = self.add_path(origin, self.code.steps.len(), path.root_span);
                self.code.paths[usize::from(label)].labelled = Labelled::Always;
                Some(Ok((Operand::Path(label), Fact::of(Some(Category::Enum)))))
            }
            _ => self.simple(expression),
        }
    }

    fn contained(&mut self, element: &Expression, path: &Path, whole: &Expression) -> Fact {
        self.data.is_open = true;
        let element_fact = self.value(element);
        let sequence = match self.path(path) {
            Ok((path, kind)) => {
                self.push(Op::In(path), whole.span);
                Fact::of(kind.category())
            }
            Err(dead) => self.dead(*dead),
        };
        self.combined_in(element_fact, sequence, (element, path))
    }

    fn exist(&mut self, path: &Path, whole: &Expression) -> Fact {
        match self.path(path) {
            Ok((path, _)) => {
                self.push(Op::Exist(path), whole.span);
                Fact::boolean()
            }
            Err(dead) => {
                let mut problem = dead.problem;
                problem.message = format!("this is always FALSE: {}", problem.message);
                self.warnings.push(*problem);
                let constant = self.constant(Constant::Boolean(false));
                self.push(Op::Load(Operand::Constant(constant)), whole.span);
                self.push(Op::ToFlag, whole.span);
                Fact { constant: Some(false), ..Fact::boolean() }
            }
        }
    }

    fn constant(&mut self, constant: Constant) -> u16 {
        self.code.constants.push(constant);
        (self.code.constants.len() - 1) as u16
    }

    pub(super) fn name(&mut self, name: &str) -> u16 {
        let known = self.code.names.iter().position(|known| **known == *name);
        known.unwrap_or_else(|| {
            self.code.names.push(name.into());
            self.code.names.len() - 1
        }) as u16
    }
}

fn constant(literal: &Literal) -> (Constant, Category) {
    match literal {
        Literal::Boolean(value) => (Constant::Boolean(*value), Category::Boolean),
        Literal::Integer(value) => (Constant::Integer(*value), Category::Integer),
        Literal::Unsigned(value) => (Constant::Unsigned(*value), Category::Integer),
        Literal::Float(value) => (Constant::Float(*value), Category::Float),
        Literal::Text(text) => (Constant::Text(text.as_str().into()), Category::Text),
    }
}
