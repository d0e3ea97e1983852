//! Observers of a channel, as gateways to other channels have them.

use crate::channel::EventChannel;
use crate::interest::Observed;
use crate::observing::{CalledBy, ObserverCode, Observing};
use crate::shared::Shared;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread;

/// Somebody who is told what is subscribed to and offered in a channel. Dropping it ends that: it is not called any
/// more, while a call that has begun ends by itself.
#[must_use = "dropping it ends the observation"]
pub struct Observer {
    shared: Arc<Shared>,
    number: u64,
    observing: Arc<Observing>,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("channel", &self.shared.name).finish_non_exhaustive()
    }
}

impl Observer {
    /// Whether it is told of changes: until it has panicked.
    pub fn is_connected(&self) -> bool {
        !self.observing.is_over()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.shared.observe_no_more(self.number);
        self.observing.end();
    }
}

impl EventChannel {
    /// Calls `observer`, by an ordinary thread of its own, with what consumers of the channel have subscribed to and
    /// suppliers offer, all together: first with what there is, and then whenever that has become something else, once
    /// for all that has changed until then (the real-time event channel's `Observer`). It is called without any lock
    /// and may connect, disconnect and change whom it wants, in this channel, too; of that it is told when it has
    /// returned. However long it takes, nobody waits for it. If it panics, it is called no more, and nobody else is
    /// concerned.
    ///
    /// What [gateways](crate::ConsumerBuilder::gateway) have subscribed to and offer is left out. Of a channel that is
    /// destroyed it is told that there is nothing.
    ///
    /// # Errors
    /// The thread cannot be made.
    pub fn observe(&self, observer: impl FnMut(&Observed) + Send + 'static) -> io::Result<Observer> {
        let observer = self.observer(CalledBy::ItsThread, Box::new(observer));
        let (shared, observing) = (Arc::clone(&self.0), Arc::clone(&observer.observing));
        let serve = move || observing.serve(|| shared.topology().observed());
        thread::Builder::new().name("talea-observer".into()).spawn(serve)?;
        Ok(observer)
    }

    /// The same, called by the thread that changes something, before it goes on: for simulations, in which everything
    /// is to happen at its instant. Of several that change something at once, one calls it, and none of the others
    /// waits; what the observer changes itself it is told of by the same thread when it has returned.
    pub fn observe_in_place(&self, observer: impl FnMut(&Observed) + Send + 'static) -> Observer {
        self.observer(CalledBy::WhoChanges, Box::new(observer))
    }

    fn observer(&self, called_by: CalledBy, code: ObserverCode) -> Observer {
        let observing = Arc::new(Observing::new(called_by, code));
        let number = self.0.observe(&observing);
        Observer { shared: Arc::clone(&self.0), number, observing }
    }
}
