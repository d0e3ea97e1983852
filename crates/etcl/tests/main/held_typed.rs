//! What holds of a constraint on a type of a program's own: what is known of the type when it is compiled gives no other answer than looking
//! the same data up in an event. Tests draw tapes for it, and so does the fuzz target `etcl_typed`.

use crate::drawn::tree;
use crate::held_evaluation::Said;
use crate::held_text::evaluated;
use crate::judge::{Datum, ENUMS, World};
use crate::tape::Tape;
use talea_etcl::{Constraint, Filterable, Limits, View};

/// The first of [`ENUMS`].
#[derive(Clone, Copy, Filterable)]
#[filterable(id = "IDL:test/Color:1.0")]
enum Color {
    #[filterable(rename = "RED")]
    Red,
    #[filterable(rename = "GREEN")]
    Green,
    #[filterable(rename = "BLUE")]
    Blue,
}

/// The second one.
#[derive(Clone, Copy, Filterable)]
#[filterable(id = "IDL:test/Grade:1.0")]
enum Grade {
    #[filterable(rename = "LOW")]
    Low,
    #[filterable(rename = "RED")]
    Red,
}

/// What may be absent is the last member, so that positions are the same where it is not there.
#[derive(Filterable)]
#[filterable(id = "IDL:test/S:1.0")]
struct S {
    value: i64,
    a: Color,
    b: Option<f64>,
}

/// An event of a program's own, with the names that are drawn.
#[derive(Filterable)]
struct Typed<A, B, C, D, V> {
    a: A,
    b: B,
    c: C,
    d: D,
    value: V,
}

/// What can be drawn, and is known to the second evaluator.
trait Drawn {
    fn drawn(tape: &mut Tape) -> Self;

    /// It; nothing if it is absent.
    fn datum(&self) -> Option<Datum>;
}

impl Drawn for i64 {
    fn drawn(tape: &mut Tape) -> Self {
        let any = tape.number().cast_signed();
        tape.pick(&[0, 1, 2, -1, 3, i64::MAX, i64::MIN, any])
    }

    fn datum(&self) -> Option<Datum> {
        Some(Datum::Int(*self))
    }
}

impl Drawn for u64 {
    fn drawn(tape: &mut Tape) -> Self {
        let any = tape.number();
        tape.pick(&[0, 1, 2, 7, u64::MAX, any])
    }

    fn datum(&self) -> Option<Datum> {
        Some(Datum::Uint(*self))
    }
}

impl Drawn for f64 {
    fn drawn(tape: &mut Tape) -> Self {
        let any = f64::from_bits(tape.number());
        tape.pick(&[0.0, 1.0, -0.0, 0.5, 9007199254740993.0, f64::NAN, f64::INFINITY, any])
    }

    fn datum(&self) -> Option<Datum> {
        Some(Datum::Float(*self))
    }
}

impl Drawn for bool {
    fn drawn(tape: &mut Tape) -> Self {
        tape.below(2) == 1
    }

    fn datum(&self) -> Option<Datum> {
        Some(Datum::Bool(*self))
    }
}

impl Drawn for String {
    fn drawn(tape: &mut Tape) -> Self {
        tape.pick(&["", "a", "ab", "aab", "ö", "RED"]).into()
    }

    fn datum(&self) -> Option<Datum> {
        Some(Datum::Str(self.clone()))
    }
}

impl Drawn for Color {
    fn drawn(tape: &mut Tape) -> Self {
        tape.pick(&[Color::Red, Color::Green, Color::Blue])
    }

    fn datum(&self) -> Option<Datum> {
        Some(Datum::Enum(0, *self as usize))
    }
}

impl Drawn for Grade {
    fn drawn(tape: &mut Tape) -> Self {
        tape.pick(&[Grade::Low, Grade::Red])
    }

    fn datum(&self) -> Option<Datum> {
        Some(Datum::Enum(1, *self as usize))
    }
}

impl Drawn for S {
    fn drawn(tape: &mut Tape) -> Self {
        S { value: Drawn::drawn(tape), a: Drawn::drawn(tape), b: Drawn::drawn(tape) }
    }

    fn datum(&self) -> Option<Datum> {
        let members = [("value", self.value.datum()), ("a", self.a.datum()), ("b", self.b.datum())];
        Some(Datum::Struct(Some("S".into()), there(members)))
    }
}

impl<T: Drawn> Drawn for Option<T> {
    fn drawn(tape: &mut Tape) -> Self {
        (tape.below(3) > 0).then(|| T::drawn(tape))
    }

    fn datum(&self) -> Option<Datum> {
        self.as_ref().and_then(T::datum)
    }
}

impl<T: Drawn> Drawn for Vec<T> {
    fn drawn(tape: &mut Tape) -> Self {
        tape.list(3, T::drawn)
    }

    fn datum(&self) -> Option<Datum> {
        Some(Datum::Seq(self.iter().filter_map(T::datum).collect()))
    }
}

/// Those of the members that are not absent.
fn there<const COUNT: usize>(members: [(&str, Option<Datum>); COUNT]) -> Vec<(String, Datum)> {
    members.into_iter().filter_map(|(name, datum)| Some((name.to_owned(), datum?))).collect()
}

/// Draws data of one of three types and a constraint, and holds what is said of them against what the second evaluator does; `None` if
/// the constraint asks for what only events have.
///
/// # Panics
/// They differ.
pub fn hold(mut tape: Tape) -> Option<Said> {
    match tape.below(3) {
        0 => hold_of::<i64, Option<f64>, Vec<u64>, S, Color>(tape),
        1 => hold_of::<Color, String, Option<S>, Vec<String>, u64>(tape),
        _ => hold_of::<bool, Option<Grade>, u64, Vec<S>, Color>(tape),
    }
}

fn hold_of<A, B, C, D, V>(mut tape: Tape) -> Option<Said>
where
    A: Drawn + View,
    B: Drawn + View,
    C: Drawn + View,
    D: Drawn + View,
    V: Drawn + View,
    Typed<A, B, C, D, V>: Filterable,
{
    let tape = &mut tape;
    let typed = Typed::<A, B, C, D, V> {
        a: Drawn::drawn(tape),
        b: Drawn::drawn(tape),
        c: Drawn::drawn(tape),
        d: Drawn::drawn(tape),
        value: Drawn::drawn(tape),
    };
    let Typed { a, b, c, d, value } = &typed;
    let members =
        [("a", a.datum()), ("b", b.datum()), ("c", c.datum()), ("d", d.datum()), ("value", value.datum())];
    let name = String::new;
    let (domain, kind, event) = (name(), name(), name());
    let world = World { domain, kind, event, header: Vec::new(), data: there(members), rest: None, now: 5 };
    let tree = tree(tape, &world, 2);
    let text = tree.to_string();
    let is_of_events = ["header", "filterable_data", "remainder_of_body", "type_name", "domain_name"];
    if is_of_events.iter().any(|name| text.contains(name)) {
        return None;
    }
    let expected = world.judge(&tree).ok();
    let constraint = Constraint::parse_within(&text, Limits { depth: 64, ..Limits::GREATEST });
    let constraint = constraint.unwrap_or_else(|problem| panic!("{text}: {problem}"));
    let program = match constraint.compile::<Typed<A, B, C, D, V>>() {
        Ok(program) => program,
        // What is refused may not have a result with any data, so not with these.
        Err(problem) => {
            assert_eq!(expected, None, "{text}: {problem} in {world:?}, of {ENUMS:?}");
            return Some(Said::Refused);
        }
    };
    let result = evaluated(&text, &program, &typed);
    assert_eq!(result.ok(), expected, "{text}: {result:?} on {world:?}, of {ENUMS:?}");
    Some(match expected {
        Some(true) => Said::True,
        Some(false) => Said::False,
        None => Said::Fault,
    })
}
