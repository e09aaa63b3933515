//! Arrow tables, made of dicts or of CSV files.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, Schema};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString};
use pyo3_arrow::PyTable;

/// A table of columns in Arrow's memory. Anything that understands the Arrow PyCapsule interface takes it without a
/// copy.
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
        let column = self.batch.column_by_name(name).ok_or_else(|| {
            let known = self.columns().join(", ");
            PyKeyError::new_err(format!("{name}: there is no such column; there are: {known}"))
        })?;
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

    /// A table of dicts. Dicts within dicts become columns `a.b`; lists and what is None everywhere are left out. The
    /// columns are those of the first row in its order, then those that further rows add.
    pub(crate) fn of_rows(rows: &[Bound<'_, PyDict>]) -> PyResult<Table> {
        let mut columns: Vec<(String, Vec<Option<Bound<'_, PyAny>>>)> = Vec::new();
        let mut places: BTreeMap<String, usize> = BTreeMap::new();
        for (number, row) in rows.iter().enumerate() {
            for (name, value) in flat("", row)? {
                let place = *places.entry(name).or_insert_with_key(|name| {
                    columns.push((name.clone(), vec![None; rows.len()]));
                    columns.len() - 1
                });
                columns[place].1[number] = (!value.is_none()).then_some(value);
            }
        }
        columns.retain(|(_, values)| values.iter().any(Option::is_some));
        let made = columns.into_iter().map(|(name, values)| Ok((name, column(&values)?)));
        Table::of(made.collect::<PyResult<_>>()?)
    }

    /// A table of the CSV text `text`, whose first row names the columns. A column of numbers has numbers, but for
    /// those with the names `texts`.
    pub(crate) fn of_csv(text: &[u8], texts: &[&str]) -> PyResult<Table> {
        let failed = |error: csv::Error| PyValueError::new_err(error.to_string());
        let mut reader = csv::Reader::from_reader(text);
        let names: Vec<String> = reader.headers().map_err(failed)?.iter().map(str::to_owned).collect();
        let mut columns = vec![Vec::new(); names.len()];
        for record in reader.into_records() {
            for (column, field) in columns.iter_mut().zip(record.map_err(failed)?.iter()) {
                column.push((!field.is_empty()).then(|| field.to_owned()));
            }
        }
        let made = |(name, fields): (String, Vec<Option<String>>)| match texts.contains(&name.as_str()) {
            true => (name, Arc::new(StringArray::from_iter(fields)) as ArrayRef),
            false => (name, numbers(&fields)),
        };
        Table::of(names.into_iter().zip(columns).map(made).collect())
    }
}

/// The entries of `row` with those of its dicts in their place.
fn flat<'py>(prefix: &str, row: &Bound<'py, PyDict>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    let mut entries = Vec::new();
    for (name, value) in row.iter() {
        let name = format!("{prefix}{name}");
        match value.cast::<PyDict>() {
            Ok(inner) => entries.extend(flat(&format!("{name}."), inner)?),
            Err(_) if value.is_instance_of::<PyList>() => {}
            Err(_) => entries.push((name, value)),
        }
    }
    Ok(entries)
}

/// Whole numbers if all are, else numbers, truths or texts.
fn column(values: &[Option<Bound<'_, PyAny>>]) -> PyResult<ArrayRef> {
    let each = || values.iter().map(Option::as_ref);
    if let Some(truths) = all(each(), |value| Some(value.cast::<PyBool>().ok()?.is_true())) {
        return Ok(Arc::new(BooleanArray::from_iter(truths)));
    }
    let number =
        |value: &Bound<'_, PyAny>| !value.is_instance_of::<PyBool>() && !value.is_instance_of::<PyString>();
    let whole = |value: &Bound<'_, PyAny>| value.is_instance_of::<PyInt>() && number(value);
    if let Some(numbers) = all(each(), |value| whole(value).then(|| value.extract::<i64>().ok())?) {
        return Ok(Arc::new(Int64Array::from_iter(numbers)));
    }
    if let Some(numbers) = all(each(), |value| number(value).then(|| value.extract::<f64>().ok())?) {
        return Ok(Arc::new(Float64Array::from_iter(numbers)));
    }
    let texts: PyResult<Vec<Option<String>>> = each().map(|value| value.map(text).transpose()).collect();
    Ok(Arc::new(StringArray::from_iter(texts?)))
}

/// What `read` makes of each value that there is; `None` if it makes nothing of one.
fn all<'v, 'py: 'v, T>(
    values: impl Iterator<Item = Option<&'v Bound<'py, PyAny>>>,
    read: impl Fn(&Bound<'py, PyAny>) -> Option<T>,
) -> Option<Vec<Option<T>>> {
    values.map(|value| value.map_or(Some(None), |value| read(value).map(Some))).collect()
}

/// A text as it is; a truth or number as JSON writes it.
fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = value.extract::<String>() {
        return Ok(text);
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true().to_string());
    }
    match value.extract::<i64>() {
        Ok(whole) => Ok(whole.to_string()),
        Err(_) => Ok(serde_json::Value::from(value.extract::<f64>()?).to_string()),
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
