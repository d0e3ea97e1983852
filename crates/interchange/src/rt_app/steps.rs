//! The events of a thread as steps.

use super::json::{Kind, Member, Value};
use super::keys::EventKey;
use super::thread::{Step, Threads, is_given};
use super::values::{duration, text, wrong};
use crate::Effect;
use crate::settings::task_label;
use talea_time::Duration;

impl<'t> Threads<'_, 't> {
    /// The steps of one round of events. What a description has no word for is lost, and whether the thread
    /// waits there is in `waits`.
    pub fn steps(
        &mut self,
        waits: &mut bool,
        thread: &str,
        instances: i64,
        events: &[(EventKey, &Member<'t>)],
    ) -> Vec<Step> {
        let label = task_label(thread);
        let mut steps = Vec::new();
        for (event, member) in events {
            let reading = &mut *self.reading;
            match event {
                EventKey::Run => {
                    steps.extend(duration(reading, &label, member).map(|time| Step::Run(time.as_work())));
                }
                EventKey::Sleep => {
                    steps.extend(duration(reading, &label, member).filter(is_given).map(Step::Sleep));
                }
                EventKey::Yield => steps.push(Step::Yield),
                EventKey::Resume => {
                    steps.extend(text(reading, &label, member).map(|name| Step::Resume(name.into())));
                }
                EventKey::Suspend => {
                    // Without a name the thread waits to be resumed under its own.
                    let name = match &member.value {
                        None => "",
                        Some(_) => text(reading, &label, member).unwrap_or_default(),
                    };
                    steps.push(Step::Suspend(if name.is_empty() { thread } else { name }.into()));
                }
                EventKey::Timer => steps.extend(self.timer(&label, thread, instances, member)),
                EventKey::Other(other) => {
                    *waits |= other.waits;
                    reading.lose(Effect::Lost, member.span(), &label, other.prefix, other.why);
                }
            }
        }
        steps
    }

    fn timer(&mut self, label: &str, thread: &str, instances: i64, member: &Member<'t>) -> Option<Step> {
        let Some(Value { kind: Kind::Object(members), .. }) = &member.value else {
            let example = "{ \"ref\" : \"unique\", \"period\" : 10000 }";
            wrong(self.reading, label, member, "an object", example);
            return None;
        };
        let mut period = Duration::ZERO;
        let (mut reference, mut mode) = ("unknown", "relative");
        for inside in members {
            match inside.key.as_ref() {
                "period" => period = duration(self.reading, label, inside).unwrap_or_default(),
                "ref" => reference = text(self.reading, label, inside).unwrap_or("unique"),
                "mode" => mode = text(self.reading, label, inside).unwrap_or("absolute"),
                other => {
                    self.reading.ignore(inside.span(), label, other, "rt-app", ["ref", "period", "mode"]);
                }
            }
        }
        let span = member.span();
        if period == Duration::ZERO {
            let what = "has no period, so it waits for nothing";
            self.reading.lose(Effect::Lost, span, label, "timer", what);
            return None;
        }
        if !mode.starts_with("absolute") {
            let what = "is relative: after an overrun rt-app counts the next period from the late end, \
                        a task from the arrival";
            self.reading.lose(Effect::Approximated, span.clone(), label, "timer", what);
        }
        if !reference.starts_with("unique") {
            let owner = self.timers.entry(reference.into()).or_insert_with(|| thread.into());
            if owner.as_str() != thread || instances > 1 {
                let what = "is shared with other threads, which disturb each other's period in rt-app";
                self.reading.lose(Effect::Approximated, span, label, "timer", what);
            }
        }
        Some(Step::Timer(period))
    }
}
