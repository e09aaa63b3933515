//! What every TeX document of a chart has, whatever it draws: the packages, the colours of the series and the axis.

use std::fmt::Write as _;

/// A document with one axis: the colours (`#rrggbb`) of its series, `series1` and on; the options of the axis; what is drawn in it.
pub(super) fn document<'a>(colors: impl Iterator<Item = &'a str>, options: &str, drawn: &str) -> String {
    let mut text =
        String::from("\\documentclass{standalone}\n\\usepackage{pgfplots}\n\\pgfplotsset{compat=1.16}\n");
    for (i, color) in colors.enumerate() {
        let _ = writeln!(text, "\\definecolor{{series{}}}{{HTML}}{{{}}}", i + 1, color[1..].to_uppercase());
    }
    text + "\\begin{document}\n\\begin{tikzpicture}\n\\begin{axis}[width=15cm, height=7cm,\n"
        + options
        + "  unbounded coords=discard]\n"
        + drawn
        + "\\end{axis}\n\\end{tikzpicture}\n\\end{document}\n"
}

/// The option that puts names at the places 1, 2, … of an axis, `x` or `y`; nothing without names.
pub(super) fn ticks(axis: &str, names: &[String]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let places: Vec<String> = (1..=names.len()).map(|place| place.to_string()).collect();
    let names: Vec<String> = names.iter().map(|name| format!("{{{}}}", tex(name))).collect();
    format!("  {axis}tick={{{}}}, {axis}ticklabels={{{}}},\n", places.join(","), names.join(","))
}

/// Text with TeX's special characters escaped.
pub(super) fn tex(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '<' => escaped.push_str("\\textless{}"),
            '>' => escaped.push_str("\\textgreater{}"),
            '#' | '$' | '%' | '&' | '_' | '{' | '}' => escaped.extend(['\\', c]),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
