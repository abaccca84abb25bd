//! Reads of a file what is compared with the table, a few rows at a time.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anabranch_model::Timestamp;
use bytes::Bytes;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use crate::archive::read::{Archived, archived};

/// What a file begins and ends with.
pub(in crate::archive) const MAGIC: &[u8] = b"PAR1";
/// Rows that are in hand at a time; a page of each column is too.
const AT_ONCE: usize = 64;
/// Longest text of a column, as long as the longest line.
const TEXT_BYTES_MAX: usize = 8 << 20;

/// The columns that are compared.
const NAMES: [&str; 6] =
    ["event_name", "sequence_number", "keys", "clustering_keys", "new_image", "old_image"];
/// The column of times.
const TIME: &str = "event_time";

type Change = Result<Archived, String>;

/// The changes in a file, one after the other. What cannot be read is an error, and the last.
pub(in crate::archive) fn changes(body: &Bytes) -> impl Iterator<Item = Change> + use<> {
    let mut state = Some(guarded(|| Changes::open(body.clone())));
    std::iter::from_fn(move || {
        let next = match state.as_mut()? {
            Ok(changes) => guarded(|| changes.next()).transpose(),
            Err(error) => Some(Err(std::mem::take(error))),
        };
        if !matches!(next, Some(Ok(_))) {
            state = None;
        }
        next
    })
}

/// The library panics at some files that are damaged. Whatever it leaves behind then is dropped.
fn guarded<T>(read: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| Err("it is damaged".to_owned()))
}

struct Changes {
    file: SerializedFileReader<Bytes>,
    /// The group of rows that comes next.
    group: usize,
    /// The columns of the one that is being read.
    columns: Vec<Column<ByteArrayType>>,
    times: Option<Column<Int64Type>>,
    read: VecDeque<Archived>,
    /// How many were read.
    count: i64,
}

struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// The level of a value that is there.
    level: i16,
}

impl Changes {
    fn open(body: Bytes) -> Result<Self, String> {
        let file = SerializedFileReader::new(body).map_err(said)?;
        Ok(Changes { file, group: 0, columns: Vec::new(), times: None, read: VecDeque::new(), count: 0 })
    }

    fn next(&mut self) -> Result<Option<Archived>, String> {
        loop {
            if let Some(change) = self.read.pop_front() {
                self.count += 1;
                return Ok(Some(change));
            }
            if !self.columns.is_empty() && self.read_rows()? {
                continue;
            }
            if self.group == self.file.num_row_groups() {
                let all = self.file.metadata().file_metadata().num_rows();
                return match self.count == all {
                    true => Ok(None),
                    false => Err(format!("it has {} rows, and says that there are {all}", self.count)),
                };
            }
            let group = self.file.get_row_group(self.group).map_err(said)?;
            self.columns =
                NAMES.iter().map(|name| column(&*group, name, "texts")).collect::<Result<_, _>>()?;
            self.times = Some(column(&*group, TIME, "times")?);
            self.group += 1;
        }
    }

    /// Whether there were more rows in this group.
    fn read_rows(&mut self) -> Result<bool, String> {
        let mut columns = Vec::with_capacity(NAMES.len());
        for column in &mut self.columns {
            columns.push(column.read()?);
        }
        let times = self.times.as_mut().map(Column::read).transpose()?.unwrap_or_default();
        let count = columns[0].len();
        if times.len() != count || columns.iter().any(|column| column.len() != count) {
            return Err("its columns are not of one length".to_owned());
        }
        let mut columns: Vec<_> = columns.into_iter().map(Vec::into_iter).collect();
        for time in times {
            let row: Vec<_> = columns.iter_mut().map(|column| column.next().flatten()).collect();
            let text = |column: usize| row[column].as_ref().map(text).transpose();
            let there = |column: usize| text(column)?.ok_or(format!("a row has no `{}`", NAMES[column]));
            let images = [text(4)?, text(5)?];
            let at = time.and_then(|time| u64::try_from(time).ok()).map(Timestamp::from_millis);
            self.read.push_back(archived(there(0)?, there(1)?, at, there(2)?, text(3)?, images)?);
        }
        Ok(count > 0)
    }
}

impl<T: DataType> Column<T> {
    fn read(&mut self) -> Result<Vec<Option<T::T>>, String> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let (rows, ..) =
            self.reader.read_records(AT_ONCE, Some(&mut levels), None, &mut values).map_err(said)?;
        let mut values = values.into_iter();
        let there = |row: usize| self.level == 0 || levels.get(row) == Some(&self.level);
        Ok((0..rows).map(|row| if there(row) { values.next() } else { None }).collect())
    }
}

fn column<T: DataType>(group: &dyn RowGroupReader, name: &str, what: &str) -> Result<Column<T>, String> {
    let schema = group.metadata().schema_descr();
    let found = schema.columns().iter().position(|column| column.path().string() == name);
    let place = found.ok_or(format!("it has no column `{name}`"))?;
    let column = schema.column(place);
    if column.physical_type() != T::get_physical_type() || column.max_rep_level() != 0 {
        return Err(format!("its column `{name}` is none of {what}"));
    }
    let reader = get_typed_column_reader(group.get_column_reader(place).map_err(said)?);
    Ok(Column { reader, level: column.max_def_level() })
}

fn text(value: &ByteArray) -> Result<&str, String> {
    if value.len() > TEXT_BYTES_MAX {
        return Err(format!("a value is longer than {TEXT_BYTES_MAX} bytes"));
    }
    std::str::from_utf8(value.data()).map_err(|error| error.to_string())
}

fn said(error: ParquetError) -> String {
    error.to_string()
}
