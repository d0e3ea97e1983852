//! How code opens what the description says that its operation publishes and takes.

use super::ends::Ends;
use crate::constraint::ConstraintError;
use crate::delivery::Delivery;
use crate::event::{Content, EventPool, EventType, Header, Origin};
use std::any::Any;
use std::cell::RefMut;
use std::marker::PhantomData;
use talea_etcl::Filterable;
use talea_model::OperationId;
use talea_operation::{EventEnds, JobContext, OutputKind, Ports};

/// Opens what operations publish into channels and take of them; for [`Ports`].
pub trait EventPorts {
    /// Opens the events of this type, `Domain/Name`, that the operation publishes: they carry a `T`. Filters of tasks that have subscribed to them are
    /// held against that type, when everything is known.
    fn publication<T: Content + Filterable + Default>(&mut self, event_type: &str) -> Publication<T> {
        self.publication_of(event_type, OutputKind::any())
    }

    /// The same with events of this kind: what they carry can be bytes, for one, so that they can be kept, and a job that took them replayed.
    fn publication_of<T: Content + Filterable + Default>(
        &mut self,
        event_type: &str,
        kind: OutputKind<T>,
    ) -> Publication<T>;

    /// Opens the events that release the operation's task, or that the operation has subscribed to itself, which a job [finds](JobEvents::event).
    fn subscription(&mut self);
}

/// The token of what an operation publishes, by which its jobs push events.
pub struct Publication<T> {
    operation: OperationId,
    /// Among those of the operation.
    place: usize,
    of: PhantomData<fn() -> T>,
}

impl<T> Clone for Publication<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Publication<T> {}

impl<T> std::fmt::Debug for Publication<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Publication<{}>({}, {})", std::any::type_name::<T>(), self.operation.index(), self.place)
    }
}

/// Stands for what there is not: the run is refused, so nobody uses the token.
const NOWHERE: usize = usize::MAX;

impl EventPorts for Ports<'_> {
    fn publication_of<T: Content + Filterable + Default>(
        &mut self,
        event_type: &str,
        kind: OutputKind<T>,
    ) -> Publication<T> {
        let operation = self.operation();
        if kind.compares() {
            self.refuse_events(format!("opens events {event_type} of a kind that is compared, and events are not: leave out `compared()`"));
        }
        let opened = match self.event_ends().map(own) {
            Some(ends) => ends.open::<T>(event_type, &kind),
            None => Err(format!(
                "opens events {event_type}, and does not publish them in the system; it publishes none"
            )),
        };
        let place = opened.unwrap_or_else(|problem| {
            self.refuse_events(problem);
            NOWHERE
        });
        Publication { operation, place, of: PhantomData }
    }

    fn subscription(&mut self) {
        let subscribed = self.event_ends().map(own).and_then(|ends| ends.subscribed.as_mut());
        match subscribed {
            Some(subscribed) => subscribed.is_opened = true,
            None => self.refuse_events(
                "opens a subscription, and the system describes none of it, nor of a task of which it is a first subtask".into(),
            ),
        }
    }
}

/// Events of a job, for [`JobContext`].
pub trait JobEvents {
    /// The first event that the job has taken when it began, or those of its conjunction; none if what had released it is not worth being delivered any more, or, of
    /// an operation that something else releases, if none waited.
    fn event(&self) -> Option<Delivery>;

    /// The events that the job has taken when it began, in their order: one at most, unless its operation takes all that wait (`take = "all"`).
    fn events(&self) -> impl Iterator<Item = Delivery>;

    /// Pushes an event of this publication: `write` fills in what it carries, which is as some event before has left it, and may change the
    /// header, of which priority, timeout and source are as described, and the rest, with its [fields](Header::fields), as some event before has left it. Neither
    /// allocates nor waits. False if as many events as the system has room for are under way, which somebody must have kept.
    ///
    /// # Panics
    /// If the token is another operation's.
    fn push<T: Content>(&self, publication: Publication<T>, write: impl FnOnce(&mut T, &mut Header)) -> bool;
}

impl JobEvents for JobContext<'_> {
    fn event(&self) -> Option<Delivery> {
        self.events().next()
    }

    fn events(&self) -> impl Iterator<Item = Delivery> {
        // The ends are free in between, for the code may push for each of them.
        (0..).map_while(|place| {
            let mut ends = self.event_ends()?;
            own(&mut *ends).subscribed.as_ref()?.taken().get(place).cloned()
        })
    }

    fn push<T: Content>(&self, publication: Publication<T>, write: impl FnOnce(&mut T, &mut Header)) -> bool {
        let ends = self.event_ends().expect("a publication's token is used by its own operation");
        let mut ends = RefMut::map(ends, own);
        let (place, is_refused) = ends.next_push(self.instance(), self.started());
        let published = ends.published.get_mut(publication.place);
        let published = published.filter(|published| published.origin.operation == publication.operation);
        let published = published.expect("a publication's token is used by its own operation");
        let origin = Origin { instance: self.instance(), ..published.origin };
        let stated = (published.priority, published.timeout);
        let number_of_source = published.number_of_source;
        let loan = if is_refused { None } else { published.pool_of::<T>().loan() };
        let Some(mut loan) = loan else {
            published.keep(self.services(), place, None);
            return false;
        };
        let (content, header) = loan.parts_mut();
        (header.priority, header.timeout) = stated;
        header.source = number_of_source;
        write(content, header);
        header.origin = Some(origin);
        let event = loan.done();
        published.push(self.services(), place, &event);
        ends.tell_losses(self.services());
        true
    }
}

/// The ends of a channel that a description declares.
fn own(ends: &mut dyn EventEnds) -> &mut Ends {
    ends.as_any().downcast_mut().expect("the channels of descriptions are made here")
}

impl Ends {
    /// Opens what it publishes of this type; says at which place it stands, or what is wrong.
    fn open<T: Content + Filterable + Default>(
        &mut self,
        event_type: &str,
        kind: &OutputKind<T>,
    ) -> Result<usize, String> {
        let is_it = |published: &super::ends::Published| published.event_type.to_string() == event_type;
        let known = || {
            let known: Vec<String> =
                self.published.iter().map(|published| published.event_type.to_string()).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            format!(
                "opens events {event_type}, and does not publish them in the system; it publishes {known}"
            )
        };
        let place = self.published.iter().position(is_it).ok_or_else(known)?;
        let published = &mut self.published[place];
        if published.source.take().is_none() {
            return Err(format!(
                "opens events {event_type} twice; keep the first token, which can be copied"
            ));
        }
        for filter in &published.filters {
            filter.open::<T>().map_err(|error: ConstraintError| {
                let (whose, content) = (&filter.subscriber, std::any::type_name::<T>());
                format!("publishes events {event_type} that carry {content}, of which the filter of {whose} cannot hold: {error}")
            })?;
        }
        let numbered = EventType::new(&published.event_type.domain, &published.event_type.name);
        let pool: Box<dyn Any + Send> =
            Box::new(EventPool::<T>::new(published.events, &numbered, T::default));
        published.pool = Some(pool);
        if let Some(codec) = kind.codec() {
            published.contents.set_codec(published.origin.publication, codec, T::default);
        }
        Ok(place)
    }
}
