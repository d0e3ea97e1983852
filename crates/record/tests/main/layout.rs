//! Where every field of the builtin events stands: traces of every version are read by it, so it does not change.

use std::fmt::Write;
use talea_record::NameSpace;

#[test]
fn builtin_events_stand_as_they_always_have() {
    let mut listing = String::new();
    for family in NameSpace::default().families() {
        for entry in family.events.iter() {
            let number = family.event(entry).0;
            write!(listing, "{number:#06x} {}.{}", family.name, entry.name).expect("texts grow");
            for field in entry.fields.iter() {
                let (part, shift) = (format!("{:?}", field.place.part).to_lowercase(), field.place.shift);
                write!(listing, ", {}: {} at {part} {shift}", field.name, field.kind).expect("texts grow");
            }
            listing.push('\n');
        }
    }
    assert_eq!(listing, include_str!("layout.txt"));
}
