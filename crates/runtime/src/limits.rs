//! What this machine's kernel keeps from real-time threads.

use talea_linux::throttling::{KeptFrom, kept_parts};
use talea_model::{Machine, Mechanism, Withheld};
use talea_time::Duration;

/// What this machine's kernel withholds from real-time threads, which is read and not measured; nothing is said of costs.
pub fn limits() -> Machine {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let withheld = kept_parts().into_iter().map(|(by, part)| Withheld {
        by: match by {
            KeptFrom::Throttling => Mechanism::Throttling,
            KeptFrom::FairServer => Mechanism::FairServer,
        },
        amount: part.amount,
        period: part.period,
    });
    let withheld = withheld.collect();
    Machine { kernel, real_time: true, costs: Vec::new(), withheld, longest_stall: Duration::ZERO }
}
