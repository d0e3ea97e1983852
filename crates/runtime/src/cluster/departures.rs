//! Members whose processes have ended without a word, as the others are told of them.

use rustix::io::Errno;
use std::path::Path;
use talea_transport::Peer;
use talea_transport::pipe::say_left;

/// What members that are left have yet to be told: to whom, and who has gone.
#[derive(Debug, Default)]
pub(super) struct Departures {
    to_tell: Vec<(usize, Peer)>,
}

impl Departures {
    /// The process of a peer has ended, and these nodes are left.
    pub fn add(&mut self, gone: Peer, left: impl Iterator<Item = usize>) {
        self.to_tell.extend(left.map(|node| (node, gone)));
    }

    /// Tells those whose pipes have room; the others are told later.
    pub fn tell(&mut self, directory: &Path) {
        self.to_tell.retain(|(to, gone)| say_left(directory, *to, *gone) == Err(Errno::AGAIN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_time::Duration;
    use talea_transport::{Arrived, Inbox, Pipes, Transport, pipe};

    /// A node that does not keep up hears of it when it has read what was before, and whoever says so does not wait.
    #[test]
    fn who_has_no_room_is_told_later() {
        let place = tempfile::tempdir().expect("a temporary directory");
        pipe::create(place.path(), 2).expect("pipes");
        let own = Pipes::open(place.path(), 2, Peer { node: 0, epoch: 3 }).expect("pipes");
        let gone = Peer { node: 1, epoch: 5 };
        let mut filled = 0;
        while pipe::say_left(place.path(), 0, Peer { epoch: 4, ..gone }).is_ok() {
            filled += 1;
        }
        let mut departures = Departures::default();
        departures.add(gone, [0].into_iter());
        departures.tell(place.path());
        assert_eq!(departures.to_tell, [(0, gone)], "there was no room behind {filled} others");
        let (mut inbox, mut heard) = (Inbox::new(2), Vec::new());
        let mut take = |arrived: Arrived<'_>| {
            if let Arrived::Left(peer) = arrived {
                heard.push(peer.epoch);
            }
        };
        for _ in 0..1_000 {
            let _ = own.receive(&mut inbox, Some(Duration::ZERO), &mut take).expect("it is readable");
            departures.tell(place.path());
        }
        assert_eq!((heard, departures.to_tell), (vec![4, 5], Vec::new()));
    }
}
