//! What `talea ctl` is told of a lowered node: that it cannot be controlled, and why.

use talea_manage::control::CommandHandler;
use talea_manage::control::protocol::{Command, Force, Insistence, Outcome, Refusal};
use talea_policy::arrangement::ChangeAuthor;

/// Refuses everything: the kernel has the settings that the description gave, and there is no scheduler that could be asked.
pub(super) struct RefusingHandler {
    pub node: String,
}

impl CommandHandler for RefusingHandler {
    fn handle(&self, _command: Command, _insistence: Insistence, _author: ChangeAuthor) -> Outcome {
        let reason = format!(
            "node \"{}\" is lowered: the kernel schedules its threads by itself, and no scheduler runs that could be looked at or \
             changed",
            self.node
        );
        let remedy = "run the system with `talea run --no-lower`".to_owned();
        Outcome::Refused(Refusal { reasons: vec![reason], remedy: Some(remedy), force: Force::InVain })
    }
}
