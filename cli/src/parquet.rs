//! `runs.parquet`: the rows of `runs.csv` with their types, for programs that read many of them.

use std::error::Error;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anabranch_lab::sweep::{Executed, Row, Sweep, rows};
use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

/// Writes the runs of a complete sweep to its directory, in one step: the varied keys as strings, `seed` as an
/// unsigned integer, and the measures as numbers that may be missing.
pub(crate) fn write(
    sweep: &Sweep,
    executed: &Executed,
    directory: &Path,
) -> std::result::Result<(), Box<dyn Error>> {
    let rows: Vec<_> = rows(sweep, executed).collect();
    let new = directory.join("runs.parquet.new");
    let properties = Arc::new(WriterProperties::builder().build());
    let mut file = SerializedFileWriter::new(File::create(&new)?, Arc::new(schema(sweep)?), properties)?;
    let mut group = file.next_row_group()?;
    columns(sweep, &rows, &mut group)?;
    group.close()?;
    file.close()?;
    std::fs::rename(&new, directory.join("runs.parquet"))?;
    Ok(())
}

fn schema(sweep: &Sweep) -> Result<Type> {
    let string = |name: &str| {
        let column = Type::primitive_type_builder(name, Physical::BYTE_ARRAY);
        column.with_logical_type(Some(LogicalType::String)).with_repetition(Repetition::REQUIRED).build()
    };
    let number = |name: &str| {
        Type::primitive_type_builder(name, Physical::DOUBLE).with_repetition(Repetition::OPTIONAL).build()
    };
    let unsigned = LogicalType::integer(64, false);
    let seed = Type::primitive_type_builder("seed", Physical::INT64)
        .with_logical_type(Some(unsigned))
        .with_repetition(Repetition::REQUIRED);
    let varied = sweep.vary.iter().map(|axis| string(&axis.key));
    let measures = sweep.measures.iter().map(|measure| number(&measure.name));
    let fields = varied.chain([seed.build()]).chain(measures);
    let fields = fields.map(|field| field.map(TypePtr::new)).collect::<Result<Vec<_>>>()?;
    Type::group_type_builder("run").with_fields(fields).build()
}

fn columns(sweep: &Sweep, rows: &[Row<'_>], group: &mut SerializedRowGroupWriter<'_, File>) -> Result<()> {
    for key in 0..sweep.vary.len() {
        let values: Vec<_> = rows.iter().map(|row| ByteArray::from(row.varied[key].as_str())).collect();
        if let Some(mut column) = group.next_column()? {
            column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
            column.close()?;
        }
    }
    // The bits of an unsigned number, as the logical type says.
    let seeds: Vec<_> = rows.iter().map(|row| row.seed.cast_signed()).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<Int64Type>().write_batch(&seeds, None, None)?;
        column.close()?;
    }
    for measure in 0..sweep.measures.len() {
        let values: Vec<_> = rows.iter().map(|row| row.values().nth(measure).flatten()).collect();
        let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
        let present: Vec<f64> = values.into_iter().flatten().collect();
        if let Some(mut column) = group.next_column()? {
            column.typed::<DoubleType>().write_batch(&present, Some(&levels), None)?;
            column.close()?;
        }
    }
    Ok(())
}
