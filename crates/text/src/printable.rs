//! Text without characters that do something instead of being seen.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character does something to what shows it instead of being seen: control characters, of the first 32 and of the 32 from U+0080
/// (some terminals take U+009B for the beginning of a command), what turns the direction of writing, so that a text reads as another
/// one, ends of lines by other names, and what is not seen at all.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A name or another text of one line, with `\n`, `\t`, `\r` and `\u{1b}` for the characters that are [hidden](is_hidden).
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |_| false)
}

/// The same of text that may have several lines, and stops in them.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| matches!(c, '\n' | '\t'))
}

/// The same of lines that come with colours: sequences that set them (`ESC [ 1 ; 31 m`) stay, and nothing else that begins with ESC.
pub fn printable_styled(text: &str) -> Cow<'_, str> {
    if !text.contains('\u{1b}') {
        return printable_lines(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('\u{1b}') {
        shown.push_str(&printable_lines(&rest[..start]));
        let end = start + colour(&rest[start..]).unwrap_or(0);
        if end > start {
            shown.push_str(&rest[start..end]);
            rest = &rest[end..];
        } else {
            push_escaped(&mut shown, '\u{1b}');
            rest = &rest[start + 1..];
        }
    }
    shown.push_str(&printable_lines(rest));
    shown.into()
}

/// The length of the sequence with which the text begins, if it sets a colour.
fn colour(text: &str) -> Option<usize> {
    let parameters = text.strip_prefix("\u{1b}[")?;
    let length = parameters.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b';').count();
    (parameters.as_bytes().get(length) == Some(&b'm')).then_some(length + 3)
}

fn escaped(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    let changes = |c: char| is_hidden(c) && !stays(c);
    let Some(first) = text.find(changes) else { return text.into() };
    let mut shown = String::with_capacity(text.len() + 8);
    shown.push_str(&text[..first]);
    for c in text[first..].chars() {
        if changes(c) { push_escaped(&mut shown, c) } else { shown.push(c) }
    }
    shown.into()
}

fn push_escaped(shown: &mut String, c: char) {
    match c {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        c => write!(shown, "\\u{{{:x}}}", u32::from(c)).expect("text grows"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_stays_as_it_is() {
        for text in ["", "a b", "größe µs …", "日本語", "\\n"] {
            assert!(matches!(printable(text), Cow::Borrowed(_)), "{text}");
            assert_eq!(printable(text), text);
        }
        assert_eq!(printable_lines("a\n\tb"), "a\n\tb");
    }

    #[test]
    fn nothing_that_is_hidden_is_left() {
        let all: String = (0..0x11_0000).filter_map(char::from_u32).collect();
        assert!(!printable(&all).contains(is_hidden));
        assert!(!printable_lines(&all).contains(|c| is_hidden(c) && !matches!(c, '\n' | '\t')));
        assert_eq!(printable("a\u{1b}]0;title\u{7}\n\u{9b}2J"), "a\\u{1b}]0;title\\u{7}\\n\\u{9b}2J");
        assert_eq!(printable("abc\u{202e}txt.exe"), "abc\\u{202e}txt.exe");
    }

    #[test]
    fn colours_stay_and_nothing_else_that_begins_alike() {
        let colours = "\u{1b}[1m\u{1b}[38;5;9merror\u{1b}[0m: a";
        assert_eq!(printable_styled(colours), colours);
        assert_eq!(printable_styled("a\u{1b}[2Jb\u{1b}[31mc"), "a\\u{1b}[2Jb\u{1b}[31mc");
        assert_eq!(printable_styled("\u{1b}]0;t\u{7}\u{1b}"), "\\u{1b}]0;t\\u{7}\\u{1b}");
        assert_eq!(printable_styled("\u{1b}[31"), "\\u{1b}[31");
        assert_eq!(printable_styled("a\n\tb\u{1b}"), "a\n\tb\\u{1b}");
    }
}
