//! What tasks of Copper hand on by: a list with room for the message of each task, which is written in place, read by the next, and used again.

use bincode::{Decode, Encode};
use cu29_runtime::copperlist::{CopperListState, CuListZeroedInit, CuListsManager};
use cu29_runtime::cutask::{CuMsg, CuMsgMetadata};
use cu29_traits::{ErasedCuStampedData, ErasedCuStampedDataSet, MatchingTasks};
use serde::{Deserialize, Serialize};
use std::hint::black_box;

/// The messages of a cycle in which one task hands 64 bytes to the next.
#[derive(Debug, Default, Encode, Decode, Serialize, Deserialize)]
struct Messages(CuMsg<[u64; 8]>);

impl ErasedCuStampedDataSet for Messages {
    fn cumsgs(&self) -> Vec<&dyn ErasedCuStampedData> {
        vec![&self.0]
    }
}

impl MatchingTasks for Messages {
    fn get_all_task_ids() -> &'static [&'static str] {
        &["first"]
    }
}

impl CuListZeroedInit for Messages {
    fn init_zeroed(&mut self) {
        self.0.metadata = CuMsgMetadata::default();
    }
}

/// As many lists as a runtime of Copper has by default.
#[derive(Default)]
pub struct CopperLists(CuListsManager<Messages, 2>);

impl CopperLists {
    /// A cycle: the first task writes, the second one reads a word.
    pub fn hand_over(&mut self, number: u64) {
        let CopperLists(lists) = self;
        let list = lists.create().expect("the one before was taken out");
        list.change_state(CopperListState::Processing);
        black_box(&mut list.msgs.0).set_payload([number; 8]);
        black_box(black_box(&list.msgs.0).payload().map(|words| words[0]));
        list.change_state(CopperListState::DoneProcessing);
        black_box(lists.pop().map(|list| list.id));
    }
}
