//! What a builtin event's records are about, for readers that take all events alike.

use super::Meaning;
use crate::declaration::{Field, FieldKind, Part, Place};

/// Where the records of an event say what they are about, from its declaration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    fields: &'static [Field],
    meanings: &'static [Meaning],
    /// Whether the causal id is a job.
    pub is_about_job: bool,
    /// Index of the lane.
    pub lane: Option<Where>,
    /// Index of the node.
    pub node: Option<Where>,
    /// Nominal release and deadline of the job.
    pub dates: Option<[Place; 2]>,
}

/// Where a number stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where {
    place: Place,
    bits: u32,
}

impl Layout {
    /// That of an event with these fields. The field before a deadline is the nominal release.
    pub const fn of(fields: &'static [Field], meanings: &'static [Meaning]) -> Self {
        let mut layout =
            Layout { fields, meanings, is_about_job: false, lane: None, node: None, dates: None };
        let mut index = 0;
        while index < fields.len() {
            let field = &fields[index];
            assert!(field.fits(), "a field lies within its part");
            let is_causal = matches!(field.place.part, Part::Causal);
            layout.is_about_job |= is_causal && matches!(field.kind, FieldKind::Job);
            let found = Some(Where { place: field.place, bits: field.kind.bits() });
            match meanings[index] {
                Meaning::Lane => layout.lane = found,
                Meaning::Node => layout.node = found,
                Meaning::Deadline => layout.dates = Some([fields[index - 1].place, field.place]),
                Meaning::Number
                | Meaning::Operation
                | Meaning::Edge
                | Meaning::Output
                | Meaning::Input
                | Meaning::Publication
                | Meaning::Job
                | Meaning::JobOrNone
                | Meaning::Code(_)
                | Meaning::Flag
                | Meaning::Thread => {}
            }
            index += 1;
        }
        layout
    }

    /// What the number in the field called `name` stands for.
    pub fn meaning(&self, name: &str) -> Option<Meaning> {
        let place = self.fields.iter().position(|field| field.name == name)?;
        Some(self.meanings[place])
    }
}

impl Where {
    /// The number that stands there.
    #[inline]
    pub fn index(self, record: &crate::Record) -> usize {
        (self.place.raw(record) & (u64::MAX >> (64 - self.bits))) as usize
    }
}
