//! Commands as a shell reads them.

/// A word of a command: between quotes if a shell would take it for several, or for something else.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_stays_one() {
        let words = ["a/b-1.toml", "a b", "IV-A/loss 5 %", "it's", ""].map(quoted);
        assert_eq!(words, ["a/b-1.toml", "'a b'", "'IV-A/loss 5 %'", "'it'\\''s'", "''"]);
    }
}
