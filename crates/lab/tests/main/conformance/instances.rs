//! Instance after instance of two tasks that share a lane and together want more than a processor.
//!
//! Under every discipline the key of an instance is less than that of any later one, and two of the same number
//! have the same key, which the file order decides. So the order does not depend on when the lane looks.

use super::{Case, DISPATCHES, conforms, ms, system, task};
use talea_model::{Late, Strategy};
use talea_time::Work;

#[test]
fn instances_run_in_their_order() {
    for strategy in Strategy::ALL {
        for dispatch in DISPATCHES {
            let half = |name: &str| task(name, 6).deadline(ms(9_000)).wcet(Work::from_millis(4));
            let system = system(*strategy, dispatch)
                .late(Late::None)
                .task(half("x"))
                .task(half("y"))
                .build()
                .expect("a system");
            let order: Vec<String> = (0..6).map(|number| format!("x#{number} y#{number}")).collect();
            conforms(&Case::in_order(format!("{strategy}, {dispatch}, instances"), system, &order.join(" ")));
        }
    }
}
