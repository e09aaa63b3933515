//! Tables of published values: CSV with a header; comments begin with `#`.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::read::{PaperError, text_of};
use super::text::Fields;
use anabranch_sim::scenario::ScenarioError;
use anabranch_sim::scenario::error::{Source, did_you_mean};

/// A table whose rows know their lines.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) columns: Vec<String>,
    rows: Vec<Row>,
}

/// A row: its cells by column.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) cells: Fields,
    from: Arc<Source>,
    span: Range<usize>,
}

impl Row {
    /// An error `message` about this row.
    pub(super) fn error(&self, column: &str, message: impl Into<String>) -> ScenarioError {
        ScenarioError::new(&self.from, self.span.clone(), column, message)
    }
}

impl Table {
    pub(super) fn read(file: &Path) -> Result<Table, PaperError> {
        let source = Arc::new(Source { name: file.display().to_string(), text: text_of(file)? });
        let mut reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .from_reader(source.text.as_bytes());
        let wrong = |error: &csv::Error| {
            let start = error.position().map_or(0, |position| position.byte() as usize);
            ScenarioError::new(&source, line_from(&source.text, start), "", error.to_string())
        };
        let columns: Vec<String> = match reader.headers() {
            Ok(header) => header.iter().map(str::to_owned).collect(),
            Err(error) => return Err(wrong(&error).into()),
        };
        let twice = |(i, name): &(usize, &String)| columns[..*i].contains(name);
        if let Some((_, name)) = columns.iter().enumerate().find(twice) {
            let message = format!("there are two columns `{name}`");
            return Err(ScenarioError::new(&source, line_from(&source.text, 0), name, message).into());
        }
        let mut rows = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| wrong(&error))?;
            let start = record.position().map_or(0, |position| position.byte() as usize);
            let cells = columns.iter().cloned().zip(record.iter().map(str::to_owned)).collect();
            rows.push(Row { cells, from: source.clone(), span: line_from(&source.text, start) });
        }
        Ok(Table { columns, rows })
    }

    /// The rows whose cells are in the lists of `only`. The error is a message and a hint.
    pub(super) fn only(&self, only: &[(String, Vec<String>)]) -> Result<Vec<Row>, (String, String)> {
        let mut rows = self.rows.clone();
        for (column, values) in only {
            if !self.columns.contains(column) {
                let hint = did_you_mean(column, self.columns.iter().map(String::as_str));
                return Err((format!("there is no column `{column}`"), hint));
            }
            if let Some(missing) =
                values.iter().find(|v| self.rows.iter().all(|row| row.cells[column] != **v))
            {
                return Err((
                    format!("no row has `{missing}` for `{column}`"),
                    "cells are compared as they stand".to_owned(),
                ));
            }
            rows.retain(|row| values.contains(&row.cells[column]));
        }
        Ok(rows)
    }
}

fn line_from(text: &str, start: usize) -> Range<usize> {
    // The position of a record is the end of the previous one, so comments and a line end may precede it.
    let start = start.min(text.len());
    let mut at = start;
    for line in text.get(start..).unwrap_or_default().split_inclusive('\n') {
        if !line.trim().is_empty() && !line.starts_with('#') {
            return at..at + line.trim_end().len();
        }
        at += line.len();
    }
    start..start
}
