//! Idle points: instants at which nothing that was released earlier on the node is unfinished.

use talea_record::JobId;
use talea_time::Instant;

/// What has to be known of a node's jobs to tell its idle points. Only nodes whose guards heed them keep it.
#[derive(Debug, Default)]
pub(super) struct IdleWatch {
    /// Released jobs that are unfinished.
    unfinished: usize,
    /// The instant of the latest release, and those of its jobs that are unfinished.
    latest: Instant,
    fresh: Vec<JobId>,
}

impl IdleWatch {
    pub fn released(&mut self, job: JobId, now: Instant) {
        if self.latest != now {
            self.latest = now;
            self.fresh.clear();
        }
        self.fresh.push(job);
        self.unfinished += 1;
    }

    pub fn ended(&mut self, job: JobId) {
        self.unfinished -= 1;
        self.fresh.retain(|fresh| *fresh != job);
    }

    pub fn is_idle_point(&self, now: Instant) -> bool {
        self.unfinished == if self.latest == now { self.fresh.len() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use talea_model::OperationId;

    #[test]
    fn what_is_released_at_the_very_instant_does_not_matter() {
        let job = |instance| JobId { operation: OperationId::from_index(0), instance };
        let at = Instant::from_nanos;
        let mut watch = IdleWatch::default();
        assert!(watch.is_idle_point(at(0)));
        watch.released(job(0), at(5));
        watch.released(job(1), at(5));
        assert!(watch.is_idle_point(at(5)) && !watch.is_idle_point(at(6)));
        watch.ended(job(1));
        assert!(watch.is_idle_point(at(5)), "also if one of them took no time");
        watch.released(job(2), at(9));
        assert!(!watch.is_idle_point(at(9)), "the first is unfinished");
        watch.ended(job(0));
        assert!(watch.is_idle_point(at(9)));
        watch.ended(job(2));
        assert!(watch.is_idle_point(at(10)));
    }
}
