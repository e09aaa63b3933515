//! Faults of scenarios, and their places.

use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet, renderer::DecorStyle};

/// A text that is part of a document: the file, or one `--set`.
#[derive(PartialEq, Eq, Debug)]
pub struct Source {
    /// The file, or the option.
    pub name: String,
    /// The text itself.
    pub text: String,
}

/// A scenario that cannot be read or run: one fault and its place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{}: {}{}", .0.place(), .0.title(), .0.hint.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
pub struct ScenarioError(Box<Fault>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Fault {
    message: String,
    key: String,
    hint: Option<String>,
    from: Arc<Source>,
    span: Range<usize>,
}

impl Fault {
    fn source_name(&self) -> &str {
        &self.from.name
    }

    /// The file and the line; the option alone, because its text is one line.
    fn place(&self) -> String {
        if self.is_option() { self.from.name.clone() } else { format!("{}:{}", self.from.name, self.line()) }
    }

    fn is_option(&self) -> bool {
        self.from.name.starts_with("--")
    }

    fn line(&self) -> usize {
        self.from.text[..self.span.start].matches('\n').count() + 1
    }

    fn title(&self) -> String {
        if self.key.is_empty() { self.message.clone() } else { format!("{}: {}", self.key, self.message) }
    }
}

impl ScenarioError {
    /// An error about `key`, at the bytes `span` of a text.
    pub fn new(from: &Arc<Source>, span: Range<usize>, key: &str, message: impl Into<String>) -> Self {
        let span = within(&from.text, span);
        let (message, key) = (message.into(), key.to_owned());
        ScenarioError(Box::new(Fault { message, key, hint: None, from: from.clone(), span }))
    }

    /// The same error with a hint: the nearest correct name, or the likely fix.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// The same error with a hint, if there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.0.hint = hint.or(self.0.hint);
        self
    }

    /// The message, without its place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The key at fault, in the spelling of `--set`; empty if the text is not TOML.
    pub fn key(&self) -> &str {
        &self.0.key
    }

    /// The likely fix, if there is a guess.
    pub fn likely_fix(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }

    /// The message, and the likely fix in parentheses.
    pub fn advice(&self) -> String {
        let fix = self.likely_fix().map(|fix| format!(" ({fix})")).unwrap_or_default();
        self.message().to_owned() + &fix
    }

    /// The file or the option at fault.
    pub fn file(&self) -> &str {
        self.0.source_name()
    }

    /// The line of the fault, from 1.
    pub fn line(&self) -> usize {
        self.0.line()
    }

    /// The message with an excerpt of the text in which the place is marked; `color` for a terminal.
    pub fn render(&self, color: bool) -> String {
        let fault = &self.0;
        let mark = AnnotationKind::Primary.span(fault.span.clone());
        let excerpt = Snippet::source(&fault.from.text).path(&fault.from.name).annotation(mark);
        let mut report = Level::ERROR.primary_title(fault.title()).element(excerpt);
        if let Some(hint) = &fault.hint {
            report = report.element(Level::HELP.message(hint));
        }
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let text = renderer.decor_style(DecorStyle::Ascii).render(&[report]);
        if fault.is_option() { without_line(&text, &fault.from.name) } else { text }
    }
}

/// The report without line and column behind the name of an option. The excerpt marks the place.
fn without_line(report: &str, option: &str) -> String {
    let arrow = report.find("--> ").map_or(0, |at| at + 4);
    let Some(begin) = report[arrow..].find(option).map(|at| arrow + at + option.len()) else {
        return report.to_owned();
    };
    let numbers = report[begin..].find(|c: char| !(c == ':' || c.is_ascii_digit()));
    let rest = numbers.map_or("", |end| &report[begin + end..]);
    format!("{}{rest}", &report[..begin])
}

/// `span` limited to `text` and to whole characters, so that an excerpt cannot fail.
fn within(text: &str, span: Range<usize>) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// The candidate nearest to `name`, if one is near enough to be a likely slip.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(name);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&folded, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The three candidates nearest to `name`.
pub fn three_nearest<'a>(name: &str, candidates: &[&'a str]) -> Vec<&'a str> {
    let folded = fold(name);
    let mut sorted = candidates.to_vec();
    sorted.sort_by_key(|candidate| strsim::damerau_levenshtein(&folded, &fold(candidate)));
    sorted.truncate(3);
    sorted
}

/// Differences in case and between `-` and `_` are the commonest slips. They do not count.
fn fold(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// `did you mean …?`, or the existing names.
pub fn did_you_mean<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(name, candidates.clone()) {
        Some(candidate) => format!("did you mean `{candidate}`?"),
        None => format!("there is {}", listed(candidates)),
    }
}

/// The names, each in backquotes.
pub fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<_> = names.into_iter().map(|name| format!("`{name}`")).collect();
    if quoted.is_empty() { "none".to_owned() } else { quoted.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_one_that_may_have_been_meant() {
        let keys = ["delay", "rate", "retransmit", "receive_buffer"];
        assert_eq!(nearest("dealy", keys), Some("delay"));
        assert_eq!(nearest("Receive-Buffer", keys), Some("receive_buffer"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(three_nearest("receive_buf", &keys), ["receive_buffer", "rate", "retransmit"]);
    }

    #[test]
    fn an_option_has_no_lines() {
        let place = |name: &str| {
            let source = Arc::new(Source { name: name.to_owned(), text: "link.x.rate=10".to_owned() });
            let error = ScenarioError::new(&source, 12..14, "link.x.rate", "no unit");
            (error.to_string(), error.render(false), error.render(true))
        };
        let (text, report, colored) = place("--set");
        assert_eq!(text, "--set: link.x.rate: no unit");
        assert!(report.contains("--> --set\n") && report.contains("^^"), "{report}");
        assert!(colored.contains("--set\n") && !colored.contains(":1:13"), "{colored}");
        let (text, report, _) = place("a.toml");
        assert!(text.starts_with("a.toml:1: ") && report.contains("--> a.toml:1:13\n"), "{report}");
    }

    #[test]
    fn a_span_is_cut_to_whole_characters() {
        assert_eq!(within("aé", 2..9), 1..3);
        assert_eq!(within("", 3..7), 0..0);
    }
}
