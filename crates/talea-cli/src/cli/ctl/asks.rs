//! What is asked of a scheduler, on the command line: as options, or behind a name in the words of `talea ctl list`.

use clap::Args;
use std::num::NonZeroU32;
use talea_guarantee::guarantee::Guarantee;
use talea_manage::control::protocol::{Child, EdgeRequest};
use talea_time::Duration;

/// What is asked for; nothing if none of these is given.
#[derive(Args)]
pub struct Asked {
    /// Ask for a share of the processor time, in proportion to the shares of the other children; a whole number
    #[arg(long, value_name = "N", group = "asked", allow_negative_numbers = true, value_parser = share)]
    share: Option<NonZeroU32>,
    /// Be served earlier than the share alone would have it, by this much of virtual time (borrowed virtual time)
    #[arg(long, value_name = "TIME", requires = "share")]
    warp: Option<Duration>,
    /// Ask for a priority; a larger number is higher
    #[arg(long, value_name = "N", group = "asked", allow_negative_numbers = true)]
    priority: Option<i32>,
    /// Ask for a guarantee, such as "RESBH 5ms 33ms" (exactly 5 ms in every period of 33 ms)
    #[arg(long, value_name = "GUARANTEE", group = "asked")]
    guarantee: Option<Guarantee>,
}

impl Asked {
    pub fn is_anything(&self) -> bool {
        self.asks() != EdgeRequest::Nothing
    }

    pub fn asks(&self) -> EdgeRequest {
        match (self.share, self.priority, &self.guarantee) {
            (Some(weight), ..) => match self.warp {
                None => EdgeRequest::Share(weight),
                Some(warp) => EdgeRequest::WarpedShare { weight, warp },
            },
            (_, Some(priority), _) => EdgeRequest::Priority(priority),
            (.., Some(guarantee)) => EdgeRequest::Guarantee(guarantee.clone()),
            (None, None, None) => EdgeRequest::Nothing,
        }
    }
}

fn share(text: &str) -> Result<NonZeroU32, String> {
    text.parse().map_err(|_| format!("a share is a whole number from 1 to {}", u32::MAX))
}

/// Something that is asked for, from one text.
#[derive(Clone, Debug, PartialEq)]
pub struct Wish(pub EdgeRequest);

/// `nothing`, `share 4`, `priority 2`, or a guarantee.
pub fn wish(text: &str) -> Result<Wish, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let asks = match words[..] {
        ["nothing"] => EdgeRequest::Nothing,
        ["share", number] => {
            EdgeRequest::Share(share(number).map_err(|rule| format!("\"{number}\" is no share: {rule}"))?)
        }
        ["priority", number] => {
            EdgeRequest::Priority(number.parse().map_err(|_| format!("\"{number}\" is no priority"))?)
        }
        _ => EdgeRequest::Guarantee(text.parse().map_err(|error| {
            format!("{error}; write \"share 4\", \"priority 2\", \"nothing\" or a guarantee such as \"RESBH 5ms 33ms\"")
        })?),
    };
    Ok(Wish(asks))
}

/// `RES` or `RES=RESBH 5ms 33ms`.
pub fn tie(text: &str) -> Result<(String, Option<Wish>), String> {
    match text.split_once('=') {
        None => Ok((text.into(), None)),
        Some((scheduler, asked)) => Ok((scheduler.into(), Some(wish(asked)?))),
    }
}

/// `words=share 2`.
pub fn child(text: &str) -> Result<Child, String> {
    let (name, asked) = text.split_once('=').ok_or("write NAME=REQUEST, such as \"words=share 2\"")?;
    Ok(Child { name: name.into(), asks: wish(asked)?.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_read_as_they_are_listed() {
        let share = EdgeRequest::Share(NonZeroU32::new(4).unwrap());
        for (text, asks) in [
            ("nothing", EdgeRequest::Nothing),
            ("share 4", share),
            ("priority -2", EdgeRequest::Priority(-2)),
        ] {
            assert_eq!(wish(text), Ok(Wish(asks)), "{text}");
        }
        let guarantee: Guarantee = "RESBH 5ms 33ms".parse().unwrap();
        let tied = ("RES".to_owned(), Some(Wish(EdgeRequest::Guarantee(guarantee))));
        assert_eq!(tie("RES=RESBH 5ms 33ms"), Ok(tied));
        assert_eq!(tie("BG"), Ok(("BG".into(), None)));
        for text in ["share 0", "share -3", "share", "priority high", "RESBH 5ms", ""] {
            assert!(wish(text).is_err(), "{text}");
        }
        assert!(child("words").is_err());
    }
}
