//! Events as [`talea_wire`] has them: for who sends or keeps them.

use crate::event::{Content, Event, EventType, Header, Origin};
use crate::fields::HeaderFields;
use std::borrow::Cow;
use talea_model::{OperationId, PublicationId};
use talea_wire::{Body, Message, properties_len, value_len};

impl Event {
    /// The event as it is sent or kept, with its content in the encoding of `body`, which its maker knows. The fields of its header are the variable header
    /// of the message. A structured event brings its properties along; its remainder is [`Message::remainder`]. Does not allocate.
    pub fn message<'a>(&'a self, body: Body<'a>) -> Message<'a> {
        let Header {
            event_type,
            event_name,
            source,
            priority,
            timeout,
            start,
            stop,
            reliability,
            origin,
            fields,
        } = self.header();
        let number = |index: usize| u32::try_from(index).expect("systems have fewer operations");
        let origin = origin.map(|Origin { publication, operation, instance }| talea_wire::Origin {
            publication: number(publication.index()),
            operation: number(operation.index()),
            instance,
        });
        let header = talea_wire::Header {
            domain: event_type.domain(),
            type_name: event_type.name(),
            event_name: event_name.as_deref().unwrap_or_default(),
            source: *source,
            priority: *priority,
            timeout: *timeout,
            start: *start,
            stop: *stop,
            reliability: *reliability,
            origin,
        };
        let message = Message::new(header, body);
        match self.content::<talea_etcl::Event>() {
            None => Message { variable_header: Cow::Borrowed(fields.properties()), ..message },
            Some(event) => Message {
                variable_header: Cow::Borrowed(event.variable_header()),
                filterable_data: Cow::Borrowed(event.filterable_data()),
                ..message
            },
        }
    }

    /// The event that a message is, with what its body says as content. Its instants are on the clock of who sent it. Allocates.
    pub fn received(message: &Message<'_>, content: impl Content) -> Self {
        let talea_wire::Header { event_name, source, priority, timeout, start, stop, reliability, .. } =
            message.header;
        let event_type = EventType::new(message.header.domain, message.header.type_name);
        let origin = message.header.origin.map(|origin| Origin {
            publication: PublicationId::from_index(origin.publication as usize),
            operation: OperationId::from_index(origin.operation as usize),
            instance: origin.instance,
        });
        let event_name = Some(event_name).filter(|name| !name.is_empty()).map(Into::into);
        let fields = HeaderFields::received(&message.variable_header);
        let header = Header {
            event_type,
            event_name,
            source,
            priority,
            timeout,
            start,
            stop,
            reliability,
            origin,
            fields,
        };
        Event::new(header, content)
    }
}

/// Structured events are content like any other, and what is in them is found by the constraint language.
impl Content for talea_etcl::Event {
    /// As many as its properties and its remainder have when it is sent.
    fn bytes(&self) -> usize {
        let lists = [self.variable_header(), self.filterable_data()];
        let properties: usize = lists.into_iter().map(properties_len).sum();
        properties + self.remainder_of_body().map_or(0, value_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_etcl::{OwnedValue, Properties as List};
    use talea_time::{Duration, Instant};
    use talea_wire::{Encoding, Limits};

    /// What was written before there were fields in headers, and a field in the same version.
    #[test]
    fn fields_are_in_the_version_that_was() {
        struct Nothing;
        impl Content for Nothing {}

        let limits = Limits::default();
        let before = b"TE\x01\x04\x00\x0f\x05Robot\x07Battery\x0e\x01\x02\x0b\x05";
        let mut event = Event::received(&Message::decode(before, &limits).expect("an event"), Nothing);
        assert_eq!(event.message(Body::raw(&[11, 5])).encode(), before);
        assert!(event.header().fields.is_empty());
        let mut header = event.header().clone();
        header.fields.set("leg", 3).expect("sound");
        event = Event::new(header, Nothing);
        let with = b"TE\x01\x04\x01\x16\x05Robot\x07Battery\x0e\x01\x03leg\x02\x06\x01\x02\x0b\x05";
        assert_eq!(event.message(Body::raw(&[11, 5])).encode(), with);
        let later = [&with[..2], &[2], &with[3..]].concat();
        let refused = Message::decode(&later, &limits).unwrap_err().to_string();
        assert!(refused.contains("version 2"), "{refused}");
    }

    #[test]
    fn events_of_both_kinds_come_back_as_they_were() {
        struct Charge(u8);
        impl Content for Charge {}

        let mut header = Header::new(EventType::new("Robot", "Battery"));
        header.event_name = Some("left".into());
        (header.source, header.priority) = (7, Some(-3));
        (header.timeout, header.stop) = (Some(Duration::from_millis(2)), Some(Instant::from_nanos(9)));
        header.origin = Some(Origin {
            publication: PublicationId::from_index(1),
            operation: OperationId::from_index(2),
            instance: 3,
        });
        let event = Event::new(header, Charge(11));
        let bytes = event.message(Body::raw(&[11])).encode();
        let limits = Limits::default();
        let message = Message::decode(&bytes, &limits).expect("an event");
        let again = Event::received(&message, Charge(message.body.bytes[0]));
        assert_eq!(again.header(), event.header());
        assert_eq!(again.content::<Charge>().map(|charge| charge.0), Some(11));

        // The fields of the header go with it; what has a place of its own there does not come twice.
        let mut header = event.header().clone();
        header.fields.set("mission", "home").expect("sound");
        header.fields.set("leg", 3).expect("sound");
        let with_fields = Event::new(header, Charge(11));
        assert_eq!(with_fields.bytes(), event.bytes() + 1 + (8 + 1 + 1 + 4) + (4 + 2));
        let mut message = with_fields.message(Body::raw(&[11]));
        message.variable_header.to_mut().insert("Priority", 9);
        let bytes = message.encode();
        let message = Message::decode(&bytes, &limits).expect("an event");
        let again = Event::received(&message, Charge(11));
        assert_eq!(again.header(), with_fields.header());
        assert_eq!(again.variable_header(), with_fields.variable_header());

        let data: List = [("charge", 11.5)].into_iter().collect();
        let rest: OwnedValue = "rest".into();
        let structured = talea_etcl::Event::new("Robot", "Battery", "left")
            .with_variable_header([("Priority", 5i64)].into_iter().collect())
            .with_filterable_data(data.clone())
            .with_remainder_of_body(rest.clone());
        let event = Event::structured(structured).expect("sound");
        let content = event.content::<talea_etcl::Event>().expect("structured");
        let remainder = Message::remainder(content).expect("there is one");
        let bytes = event.message(Body { encoding: Encoding::Value, bytes: &remainder }).encode();
        let message = Message::decode(&bytes, &limits).expect("an event");
        let again = Event::received(&message, message.to_structured(&limits).expect("a value"));
        assert_eq!(again.header(), event.header());
        let back = again.content::<talea_etcl::Event>().expect("structured");
        assert_eq!((back.filterable_data(), back.remainder_of_body()), (&data, Some(&rest)));
        assert_eq!((again.variable_header(), again.header().fields.len()), (content.variable_header(), 0));
        assert_eq!(again.bytes(), 1 + (9 + 2) + 1 + (7 + 9) + 6, "two lists and a value");
    }
}
