//! Arrow tables, made of rows in JSON or of CSV files.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, Schema};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use pyo3_arrow::PyTable;
use serde_json::{Map, Value};

/// A table of columns in Arrow's memory. Anything that understands the Arrow PyCapsule interface takes it without a copy.
#[pyclass(frozen, module = "anabranch._core")]
pub(crate) struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// The columns, as a stream of Arrow's C data interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let table = PyTable::try_new(vec![self.batch.clone()], self.batch.schema())?;
        Bound::new(py, table)?.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The values of column `name`.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let column = self.batch.column_by_name(name).ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
        list(py, column, column.len())
    }

    /// By column, the first `rows` values.
    fn head<'py>(&self, py: Python<'py>, rows: usize) -> PyResult<Vec<Bound<'py, PyList>>> {
        let columns = self.batch.columns().iter();
        columns.map(|column| list(py, column, rows.min(column.len()))).collect()
    }
}

impl Table {
    /// A table of these columns, all equally long.
    pub(crate) fn of(columns: Vec<(String, ArrayRef)>) -> PyResult<Table> {
        let batch = match columns.is_empty() {
            true => Ok(RecordBatch::new_empty(Arc::new(Schema::empty()))),
            false => RecordBatch::try_from_iter_with_nullable(
                columns.into_iter().map(|(name, column)| (name, column, true)),
            ),
        };
        let failed = |error: ArrowError| PyValueError::new_err(error.to_string());
        Ok(Table { batch: batch.map_err(failed)? })
    }

    /// A table of objects. Objects within objects become columns `a.b`; lists and what is `null` everywhere are left
    /// out. The columns of the first row come first, sorted by name, then those that further rows add.
    pub(crate) fn of_rows(rows: &[Map<String, Value>]) -> PyResult<Table> {
        let mut names: Vec<String> = Vec::new();
        let mut columns: std::collections::BTreeMap<String, Vec<Option<Value>>> = Default::default();
        for (number, row) in rows.iter().enumerate() {
            for (name, value) in flat("", row) {
                let column = columns.entry(name.clone()).or_insert_with(|| {
                    names.push(name);
                    vec![None; rows.len()]
                });
                column[number] = Some(value);
            }
        }
        let column = |name: String| {
            let values = columns.remove(&name).unwrap_or_default();
            (name, column(&values))
        };
        Table::of(names.into_iter().map(column).collect())
    }

    /// A table of the CSV text `text`, whose first row names the columns. A column of numbers has numbers.
    pub(crate) fn of_csv(text: &[u8]) -> PyResult<Table> {
        let failed = |error: csv::Error| PyValueError::new_err(error.to_string());
        let mut reader = csv::Reader::from_reader(text);
        let names: Vec<String> = reader.headers().map_err(failed)?.iter().map(str::to_owned).collect();
        let mut columns = vec![Vec::new(); names.len()];
        for record in reader.into_records() {
            for (column, field) in columns.iter_mut().zip(record.map_err(failed)?.iter()) {
                column.push((!field.is_empty()).then(|| field.to_owned()));
            }
        }
        let columns = columns.iter().map(|column| numbers(column));
        Table::of(names.into_iter().zip(columns).collect())
    }
}

/// The entries of `row` with those of its objects in their place.
fn flat(prefix: &str, row: &Map<String, Value>) -> Vec<(String, Value)> {
    let mut entries = Vec::new();
    for (name, value) in row {
        match value {
            Value::Object(inner) => entries.extend(flat(&format!("{prefix}{name}."), inner)),
            Value::Array(_) | Value::Null => {}
            plain => entries.push((format!("{prefix}{name}"), plain.clone())),
        }
    }
    entries
}

/// Whole numbers if all are, else numbers, truths or texts.
fn column(values: &[Option<Value>]) -> ArrayRef {
    let all = |holds: fn(&Value) -> bool| values.iter().flatten().all(holds);
    let each = || values.iter().map(Option::as_ref);
    if all(Value::is_boolean) {
        Arc::new(BooleanArray::from_iter(each().map(|value| value?.as_bool())))
    } else if all(Value::is_i64) {
        Arc::new(Int64Array::from_iter(each().map(|value| value?.as_i64())))
    } else if all(Value::is_number) {
        Arc::new(Float64Array::from_iter(each().map(|value| value?.as_f64())))
    } else {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        Arc::new(StringArray::from_iter(each().map(|value| value.map(text))))
    }
}

fn numbers(fields: &[Option<String>]) -> ArrayRef {
    fn parsed<N: std::str::FromStr>(fields: &[Option<String>]) -> Option<Vec<Option<N>>> {
        fields
            .iter()
            .map(|field| field.as_ref().map(|field| field.parse().ok()).map_or(Some(None), |n| n.map(Some)))
            .collect()
    }
    if fields.iter().all(Option::is_none) {
        return Arc::new(Float64Array::from_iter(fields.iter().map(|_| None::<f64>)));
    }
    if let Some(whole) = parsed::<i64>(fields) {
        return Arc::new(Int64Array::from_iter(whole));
    }
    match parsed::<f64>(fields) {
        Some(numbers) => Arc::new(Float64Array::from_iter(numbers)),
        None => Arc::new(StringArray::from_iter(fields.iter())),
    }
}

fn list<'py>(py: Python<'py>, column: &ArrayRef, rows: usize) -> PyResult<Bound<'py, PyList>> {
    let any = column.as_any();
    if let Some(column) = any.downcast_ref::<Float64Array>() {
        return PyList::new(py, column.iter().take(rows).collect::<Vec<_>>());
    }
    if let Some(column) = any.downcast_ref::<Int64Array>() {
        return PyList::new(py, column.iter().take(rows).collect::<Vec<_>>());
    }
    if let Some(column) = any.downcast_ref::<UInt64Array>() {
        return PyList::new(py, column.iter().take(rows).collect::<Vec<_>>());
    }
    if let Some(column) = any.downcast_ref::<BooleanArray>() {
        return PyList::new(py, column.iter().take(rows).collect::<Vec<_>>());
    }
    match any.downcast_ref::<StringArray>() {
        Some(column) => PyList::new(py, column.iter().take(rows).collect::<Vec<_>>()),
        None => Err(PyValueError::new_err("a column of an unknown type")),
    }
}
