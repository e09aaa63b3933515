//! Scenarios as Python gives them, and their errors as exceptions.

use anabranch_sim::scenario::{Document, ScenarioError as Fault};
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

create_exception!(
    anabranch,
    ScenarioError,
    PyValueError,
    "A scenario, sweep or publication that cannot be read or run.\n\n\
     Its text shows the line with the place marked in it. `file`, `line` (from 1), `key`, `message` and `hint` (or None) \
     are its parts."
);

/// Raises the exception for an error in a document.
pub(crate) fn raise(py: Python<'_>, fault: &Fault) -> PyErr {
    let error = ScenarioError::new_err(fault.render(false));
    let value = error.value(py);
    let set = || -> PyResult<()> {
        value.setattr("file", fault.file())?;
        value.setattr("line", fault.line())?;
        value.setattr("key", fault.key())?;
        value.setattr("message", fault.message())?;
        value.setattr("hint", fault.likely_fix())
    };
    match set() {
        Ok(()) => error,
        Err(failed) => failed,
    }
}

/// The document `text` with the edits `set`, each `KEY=VALUE`.
pub(crate) fn read(py: Python<'_>, file: &str, text: &str, set: &[String]) -> PyResult<Document> {
    let mut document = Document::parse(file, text).map_err(|fault| raise(py, &fault))?;
    for edit in set {
        document.set("set", edit).map_err(|fault| raise(py, &fault))?;
    }
    Ok(document)
}

/// How deep lists and dicts may be nested: deeper than any scenario, and so that a dict that contains itself has an
/// end.
const DEPTH: usize = 32;

/// A dict as TOML text, in the dict's order. Values are str, bool, int, float, list, tuple and dict, and NumPy's scalars.
#[pyfunction]
pub(crate) fn to_toml(table: &Bound<'_, PyDict>) -> PyResult<String> {
    let mut text = String::new();
    write_table(&mut text, "", table, DEPTH)?;
    Ok(text)
}

/// A value on one line, as TOML text; errors name `key`. Values are those of [`to_toml`].
#[pyfunction]
pub(crate) fn to_toml_value(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    inline(value, key, DEPTH)
}

/// The levels that may be below a value at `key`, of which there are `levels` with its own.
fn below(levels: usize, key: &str) -> PyResult<usize> {
    levels.checked_sub(1).ok_or_else(|| {
        let key: String = key.chars().take(40).collect();
        PyValueError::new_err(format!("`{key}…`: this is nested more than {DEPTH} deep, or contains itself"))
    })
}

/// The entries of `table`, which is at `path`: plain ones first, as TOML wants it.
fn write_table(text: &mut String, path: &str, table: &Bound<'_, PyDict>, levels: usize) -> PyResult<()> {
    let levels = below(levels, path)?;
    let mut later = Vec::new();
    for (name, value) in table.iter() {
        let name = key_text(&name, path)?;
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        match tables(&value) {
            Some(tables) => later.push((path, value.is_instance_of::<PyDict>(), tables)),
            None => text.push_str(&format!("{name} = {}\n", inline(&value, &path, levels)?)),
        }
    }
    for (path, single, tables) in later {
        for table in tables {
            text.push_str(&if single { format!("\n[{path}]\n") } else { format!("\n[[{path}]]\n") });
            write_table(text, &path, &table, levels)?;
        }
    }
    Ok(())
}

/// A key of the dict at `path`, in quotes if it needs them.
fn key_text(name: &Bound<'_, PyAny>, path: &str) -> PyResult<String> {
    let name: String = name
        .extract()
        .map_err(|_| PyTypeError::new_err(format!("`{path}`: the keys of a dict must be strings")))?;
    Ok(if bare(&name) { name } else { toml::Value::String(name).to_string() })
}

/// Whether a key needs no quotes.
fn bare(key: &str) -> bool {
    !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// The dict, or the dicts of a list that has nothing else.
fn tables<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyDict>>> {
    if let Ok(table) = value.cast::<PyDict>() {
        return Some(vec![table.clone()]);
    }
    let items = items(value)?;
    let tables: Option<Vec<_>> = items.iter().map(|item| item.cast::<PyDict>().ok().cloned()).collect();
    tables.filter(|tables| !tables.is_empty())
}

fn items<'py>(value: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    match value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        true => value.try_iter().ok()?.collect::<PyResult<Vec<_>>>().ok(),
        false => None,
    }
}

/// A value on one line.
fn inline(value: &Bound<'_, PyAny>, key: &str, levels: usize) -> PyResult<String> {
    let levels = below(levels, key)?;
    if let Some(items) = items(value) {
        let items = items.iter().map(|item| inline(item, key, levels)).collect::<PyResult<Vec<_>>>()?;
        return Ok(format!("[{}]", items.join(", ")));
    }
    if let Ok(table) = value.cast::<PyDict>() {
        let entry = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok(format!("{} = {}", key_text(&name, key)?, inline(&value, key, levels)?))
        };
        let entries = table.iter().map(entry).collect::<PyResult<Vec<_>>>()?;
        return Ok(format!("{{ {} }}", entries.join(", ")));
    }
    if let Some(inner) = of_scalar(value) {
        return inline(&inner, key, levels);
    }
    let plain = if value.is_instance_of::<PyBool>() {
        toml::Value::Boolean(value.extract()?)
    } else if value.is_instance_of::<PyInt>() {
        return integer(value, key);
    } else if value.is_instance_of::<PyFloat>() {
        toml::Value::Float(value.extract()?)
    } else if value.is_instance_of::<PyString>() {
        toml::Value::String(value.extract()?)
    } else {
        let kind = value.get_type().name()?;
        let why = "use str, bool, int, float, list or dict, and leave out what is None";
        return Err(PyTypeError::new_err(format!("`{key}`: a scenario has no {kind}; {why}")));
    };
    Ok(plain.to_string())
}

/// The value in a scalar of NumPy, or of a package whose scalars look the same: no dimensions, and a method `item`.
fn of_scalar<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let dimensions: usize = value.getattr("ndim").ok()?.extract().ok()?;
    (dimensions == 0).then(|| value.call_method0("item").ok())?
}

/// A whole number. Seeds go up to 2^64 - 1.
fn integer(value: &Bound<'_, PyAny>, key: &str) -> PyResult<String> {
    let signed = value.extract::<i64>().map(|number| number.to_string());
    let number = signed.or_else(|_| value.extract::<u64>().map(|number| number.to_string()));
    number.map_err(|_| PyValueError::new_err(format!("`{key}`: {value} is beyond the numbers of a scenario")))
}

/// The string at `key` of the TOML `text`, if there is one.
#[pyfunction]
pub(crate) fn string_at(py: Python<'_>, file: &str, text: &str, key: &str) -> PyResult<Option<String>> {
    let document = Document::parse(file, text).map_err(|fault| raise(py, &fault))?;
    Ok(document.get(key).and_then(|value| value.as_str().map(str::to_owned)))
}
