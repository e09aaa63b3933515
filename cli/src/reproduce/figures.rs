//! The figures of papers: which there are, what each is drawn by, and the files that they are written to.

use std::path::{Path, PathBuf};

use anabranch_lab::claims::Paper;
use anabranch_lab::report::{Format, PaperFigure, PictureError, picture};

use super::means::Means;
use super::{bars, curve, exchange, map, transfer};
use crate::DONE;
use crate::output::{fail, refuse};
use crate::place::write_whole;

/// A file for a figure, of a format that its extension names.
pub(super) fn place(text: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(text);
    match format(&file) {
        Some(_) => Ok(file),
        None => Err("the extension must say which format: .svg, .png, .pdf, .csv or .tex".to_owned()),
    }
}

/// What a file of a figure holds.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Contents {
    Picture(Format),
    Csv,
    /// A document that draws the CSV of the same name.
    Tex,
}

fn format(file: &Path) -> Option<Contents> {
    let end = file.extension()?.to_str()?.to_ascii_lowercase();
    match end.as_str() {
        "csv" => Some(Contents::Csv),
        "tex" => Some(Contents::Tex),
        _ => Format::of(file).map(Contents::Picture),
    }
}

/// Draws the paper's figure and returns the exit status. If the paper has several figures, draws the one with the
/// file's name.
pub(super) fn write(paper: &Paper, means: Means<'_>, file: &Path) -> u8 {
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let names = names(paper);
    let wanted: &str = if let [only] = names.as_slice() { only } else { &name };
    let Some(figure) = named(paper, wanted, means) else {
        let names: Vec<_> = names.iter().map(|name| format!("{name}.svg")).collect();
        return refuse(format!("{name}: the paper's figures are: {}", names.join(", ")));
    };
    let contents = figure.and_then(|figure| contents(figure, file, &name).map_err(fail));
    match contents.map(|contents| write_whole(file, contents)) {
        Err(status) => status,
        Ok(Ok(())) => DONE,
        Ok(Err(error)) => fail(format!("{}: {error}", file.display())),
    }
}

/// The names of all figures of the paper.
fn names(paper: &Paper) -> Vec<&str> {
    let single = paper.figures.iter().map(|figure| figure.name.as_str());
    let maps = paper.maps.iter().map(|map| map.name.as_str());
    let exchanges = paper.exchanges.iter().map(|exchange| exchange.name.as_str());
    let curves = paper.curves.iter().map(|curve| curve.name.as_str());
    let bars = paper.bars.iter().map(|bars| bars.name.as_str());
    single.chain(maps).chain(exchanges).chain(curves).chain(bars).collect()
}

/// The figure with this name; `None` if the paper has no such figure.
fn named(paper: &Paper, name: &str, means: Means<'_>) -> Option<Result<PaperFigure, u8>> {
    if let Some(figure) = paper.figures.iter().find(|figure| figure.name == name) {
        return Some(transfer::drawn(paper, figure));
    }
    if let Some(figure) = paper.maps.iter().find(|map| map.name == name) {
        return Some(map::drawn(paper, figure));
    }
    if let Some(figure) = paper.exchanges.iter().find(|exchange| exchange.name == name) {
        return Some(exchange::drawn(paper, figure));
    }
    if let Some(figure) = paper.curves.iter().find(|curve| curve.name == name) {
        return Some(curve::run(paper, means, figure));
    }
    let figure = paper.bars.iter().find(|bars| bars.name == name)?;
    Some(bars::run(paper, figure, means))
}

/// The figures that need no runs with seeds: of single runs, maps and exchanges.
pub(super) fn of_single_runs(paper: &Paper) -> Result<Vec<PaperFigure>, u8> {
    let figures = paper.figures.iter().map(|figure| transfer::drawn(paper, figure));
    let maps = paper.maps.iter().map(|figure| map::drawn(paper, figure));
    let exchanges = paper.exchanges.iter().map(|figure| exchange::drawn(paper, figure));
    maps.chain(exchanges).chain(figures).collect()
}

/// What the figure's file holds. A TeX document draws the CSV of the same name.
fn contents(mut figure: PaperFigure, file: &Path, name: &str) -> Result<Vec<u8>, PictureError> {
    name.clone_into(&mut figure.name);
    match format(file).unwrap_or(Contents::Picture(Format::Svg)) {
        Contents::Picture(format) => picture(&figure.svg, format),
        Contents::Csv => figure.csv(),
        Contents::Tex => Ok(figure.pgfplots().into_bytes()),
    }
}
