//! Random events.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::borrow::Cow;
use std::sync::Arc;
use talea_etcl::{OwnedEnum, OwnedEnumType, OwnedStruct, OwnedUnion, OwnedValue, Properties};
use talea_event::qos::Reliability;
use talea_time::{Duration, Instant};
use talea_wire::{Body, Encoding, Header, Message, Origin};

/// Names that live as long as the test.
const NAMES: [&str; 6] = ["", "a", "Robot", "Prüfstand", "battery.charge", "x y\n"];

const BODIES: [&[u8]; 4] = [b"", b"\0", b"\xff\x80abc", b"{\"a\":1}"];

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[..])
}

fn some_name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&NAMES[1..])
}

fn properties(values: impl Strategy<Value = OwnedValue>) -> impl Strategy<Value = Properties> {
    vec((name(), values), 0..4).prop_map(|pairs| pairs.into_iter().collect())
}

fn labels() -> impl Strategy<Value = OwnedValue> {
    (1..4usize, any::<prop::sample::Index>()).prop_map(|(count, place)| {
        let labels: Vec<String> = (0..count).map(|place| format!("label{place}")).collect();
        let label = labels[place.index(count)].clone();
        let of = OwnedEnumType { name: "Colour".into(), repository_id: "IDL:Colour:1.0".into(), labels };
        OwnedValue::Enum(OwnedEnum::new(Arc::new(of), &label).expect("it has it"))
    })
}

pub(crate) fn values() -> impl Strategy<Value = OwnedValue> {
    let float = any::<f64>().prop_filter("nothing equals that", |number| !number.is_nan());
    let leaf = prop_oneof![
        any::<bool>().prop_map(OwnedValue::Boolean),
        any::<i64>().prop_map(OwnedValue::Integer),
        any::<u64>().prop_map(OwnedValue::Unsigned),
        float.prop_map(OwnedValue::Float),
        ".{0,8}".prop_map(OwnedValue::Text),
        labels(),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let text = || option::of(name().prop_map(str::to_owned));
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(OwnedValue::Sequence),
            properties(inner.clone()).prop_map(OwnedValue::List),
            (text(), text(), properties(inner.clone())).prop_map(|(type_name, repository_id, members)| {
                OwnedValue::Struct(Box::new(OwnedStruct { type_name, repository_id, members }))
            }),
            (text(), inner.clone(), vec(inner.clone(), 0..3), name(), any::<bool>(), inner).prop_map(
                |(type_name, discriminator, selectors, member, is_default_arm, value)| {
                    OwnedValue::Union(Box::new(OwnedUnion {
                        type_name,
                        repository_id: None,
                        discriminator,
                        selectors,
                        member: member.to_owned(),
                        is_default_arm,
                        value,
                    }))
                }
            ),
        ]
    })
}

fn header() -> impl Strategy<Value = Header<'static>> {
    let reliability = prop::sample::select(&[Reliability::BestEffort, Reliability::Persistent][..]);
    let origin = (any::<u32>(), any::<u32>(), any::<u64>());
    let origin =
        origin.prop_map(|(publication, operation, instance)| Origin { publication, operation, instance });
    let instant = || option::of(any::<i64>().prop_map(Instant::from_nanos));
    let timeout = option::of((0..=i64::MAX).prop_map(Duration::from_nanos));
    let names = (name(), name(), name(), any::<u32>());
    (
        names,
        option::of(any::<i16>()),
        timeout,
        instant(),
        instant(),
        option::of(reliability),
        option::of(origin),
    )
        .prop_map(
            |(
                (domain, type_name, event_name, source),
                priority,
                timeout,
                start,
                stop,
                reliability,
                origin,
            )| {
                Header {
                    domain,
                    type_name,
                    event_name,
                    source,
                    priority,
                    timeout,
                    start,
                    stop,
                    reliability,
                    origin,
                }
            },
        )
}

fn body() -> impl Strategy<Value = Body<'static>> {
    let bytes = prop::sample::select(&BODIES[..]);
    let encodings = [Encoding::Raw, Encoding::Cdr, Encoding::Json, Encoding::Postcard];
    let encoding =
        prop_oneof![some_name().prop_map(Encoding::Named), prop::sample::select(encodings.to_vec()),];
    prop_oneof![Just(Body::NONE), (encoding, bytes).prop_map(|(encoding, bytes)| Body { encoding, bytes })]
}

/// An event, and a value beside it.
pub(crate) fn message() -> impl Strategy<Value = (Message<'static>, OwnedValue)> {
    (header(), properties(values()), properties(values()), body(), values()).prop_map(
        |(header, variable, filterable, body, remainder)| {
            let (variable_header, filterable_data) = (Cow::Owned(variable), Cow::Owned(filterable));
            (Message { header, variable_header, filterable_data, body }, remainder)
        },
    )
}
