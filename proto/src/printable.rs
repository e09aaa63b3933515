//! Makes text from a peer safe for a terminal and a log.

use std::borrow::Cow;

/// Whether `c` is displayed as itself and has no other effect. False for control characters (line ends included), for
/// characters that change the direction of text (U+202E and others), and for invisible characters.
pub fn is_printable(c: char) -> bool {
    // The standard library knows which characters are printable, but reveals it only through `escape_debug`. A letter
    // stands before `c`, because an accent alone would count as unprintable.
    matches!(c, ' '..='~') || (!c.is_ascii() && format!("a{c}").escape_debug().count() == 2)
}

/// `text` with every character that is not printable written as `\u{…}`.
///
/// Everything that a peer chose (file names, reasons, unknown fields) passes this function before it reaches a
/// terminal or a log. Otherwise it could clear the screen, forge a line or reverse a name.
pub fn printable(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_printable) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_printable(c) {
            true => shown.push(c),
            false => shown.extend(c.escape_unicode()),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_written_out() {
        for (raw, shown) in [
            ("\u{1b}[2J", "\\u{1b}[2J"),
            ("a\nb\r\tc", "a\\u{a}b\\u{d}\\u{9}c"),
            ("gpj.\u{202e}exe", "gpj.\\u{202e}exe"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("\u{200b}\u{2066}\u{feff}", "\\u{200b}\\u{2066}\\u{feff}"),
            ("\u{2028}\u{e0001}", "\\u{2028}\\u{e0001}"),
        ] {
            assert_eq!(printable(raw), shown);
            assert_eq!(printable(&printable(raw)), shown, "twice is the same");
        }
    }

    #[test]
    fn ordinary_text_of_any_script_stays_as_it_is() {
        for text in ["", "a file (1).tar.gz", "Übung.txt", "e\u{301}te\u{301}", "日本語", "a → b", "\\u{1b}"]
        {
            assert!(matches!(printable(text), Cow::Borrowed(same) if same == text), "{text:?}");
        }
    }
}
