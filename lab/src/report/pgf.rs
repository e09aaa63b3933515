//! What every TeX document of a chart has, whatever it draws: the packages, the colours of the series and the axis.

use std::fmt::Write as _;

use plotters::style::RGBColor;

use super::draw::rgb;

/// A document with one axis: the colours (`#rrggbb`) of its series, `series1` and on; the options of the axis; what is
/// drawn in it.
pub(super) fn document<'a>(colors: impl Iterator<Item = &'a str>, options: &str, drawn: &str) -> String {
    let axis = format!(
        "\\begin{{axis}}[width=15cm, height=7cm,\n{options}  unbounded coords=jump]\n{drawn}\\end{{axis}}\n"
    );
    picture(colors, "", &axis)
}

/// A document with several axes below each other: the colours of all their series, and for each axis its options and
/// what is drawn in it. `above`: centimetres for what stands between a title and its axis.
pub(super) fn stacked<'a>(
    colors: impl Iterator<Item = &'a str>,
    axes: &[(String, String)],
    above: f64,
) -> String {
    let mut group = format!(
        "\\begin{{groupplot}}[group style={{group size=1 by {}, vertical sep={:.1}cm}}, width=15cm, height=7cm,\n  \
         legend pos=outer north east, legend cell align=left, unbounded coords=discard]\n",
        axes.len(),
        2.6 + above
    );
    for (options, drawn) in axes {
        let _ = write!(group, "\\nextgroupplot[\n{options}]\n{drawn}");
    }
    group += "\\end{groupplot}\n";
    picture(colors, "\\usepgfplotslibrary{groupplots}\n", &group)
}

/// A document with one picture; `library` is loaded before.
fn picture<'a>(colors: impl Iterator<Item = &'a str>, library: &str, drawn: &str) -> String {
    let mut text =
        String::from("\\documentclass{standalone}\n\\usepackage{pgfplots}\n\\pgfplotsset{compat=1.16}\n");
    text += library;
    for (i, color) in colors.enumerate() {
        let _ = writeln!(text, "\\definecolor{{series{}}}{{HTML}}{{{}}}", i + 1, color[1..].to_uppercase());
    }
    text + "\\begin{document}\n\\begin{tikzpicture}\n" + drawn + "\\end{tikzpicture}\n\\end{document}\n"
}

/// The color `#rrggbb` as an option takes it.
pub(super) fn color(text: &str) -> String {
    let RGBColor(red, green, blue) = rgb(text);
    format!("{{rgb,255:red,{red};green,{green};blue,{blue}}}")
}

/// The style of a line that is dashed as plotly.js calls it.
pub(super) fn dash(dash: &str) -> &'static str {
    match dash {
        "dot" => "dotted",
        "dash" => "dashed",
        "dashdot" => "dashdotted",
        _ => "solid",
    }
}

/// The options for the mark that is most like a symbol of plotly.js of so many pixels.
pub(super) fn mark(symbol: &str, size: f64, options: &str) -> String {
    let mark = match symbol {
        "x" => "x",
        "diamond" => "diamond*",
        "square" => "square*",
        "triangle-up" | "triangle-down" => "triangle*",
        "pentagon" => "pentagon*",
        "square-open" => "square",
        "diamond-open" => "diamond",
        "triangle-up-open" => "triangle",
        _ => "*",
    };
    format!("mark={mark}, mark size={}pt, mark options={{{options}}}", size / 4.0)
}

/// A cell of the CSV that a document reads. PGFPlots reads no quoted cells, and TeX's special characters as commands; a
/// percent sign would hide the row's rest.
pub(super) fn cell(text: &str) -> String {
    let special = [',', '"', '\n', '\\', '{', '}', '#', '$', '&', '~', '^'];
    text.replace(special, " ").replace('%', "percent")
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
