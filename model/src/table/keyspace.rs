//! How a table looks as a table of a keyspace: columns with types, of which some make the key.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::limits::COLUMNS_MAX;
use crate::name::excerpt;

/// A table of a keyspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceShape {
    /// The name of the keyspace.
    pub keyspace: String,
    /// All columns, in their order.
    pub columns: Vec<Column>,
    /// The names of the columns that choose the partition, in their order.
    pub partition: Vec<String>,
    /// The columns that order the rows of a partition.
    pub clustering: Vec<Clustering>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: ColumnKind,
    /// Whether the rows of a partition share its value.
    pub shared: bool,
}

/// A column that orders the rows of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clustering {
    /// The name of the column.
    pub column: String,
    /// Whether the largest value comes first.
    pub descending: bool,
}

/// What the values of a column are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Text of ASCII characters.
    Ascii,
    /// A whole number of 64 bits.
    Bigint,
    /// Bytes.
    Blob,
    /// True or false.
    Boolean,
    /// A number of 64 bits that is only added to.
    Counter,
    /// A day.
    Date,
    /// A decimal of any length.
    Decimal,
    /// A binary fraction of 64 bits.
    Double,
    /// A binary fraction of 32 bits.
    Float,
    /// An address of the internet.
    Inet,
    /// A whole number of 32 bits.
    Int,
    /// A whole number of 16 bits.
    Smallint,
    /// Text.
    Text,
    /// A time of day.
    Time,
    /// A moment, in milliseconds.
    Timestamp,
    /// A unique identifier that holds a time.
    Timeuuid,
    /// A whole number of 8 bits.
    Tinyint,
    /// A unique identifier.
    Uuid,
    /// Text, by its other name.
    Varchar,
    /// A whole number of any length.
    Varint,
    /// Values in order.
    List(Box<ColumnKind>),
    /// Values without order, each once.
    Set(Box<ColumnKind>),
    /// Values by keys.
    Map(Box<ColumnKind>, Box<ColumnKind>),
    /// A fixed row of values.
    Tuple(Vec<ColumnKind>),
    /// A collection that is written as a whole.
    Frozen(Box<ColumnKind>),
    /// A kind that the keyspace defines, by its name.
    Defined(String),
}

impl KeyspaceShape {
    /// Whether a table may look like this.
    pub fn check(&self) -> Result<()> {
        let refuse = |why: String| Err(Error::Invalid(format!("the columns are not allowed: {why}")));
        if self.keyspace.is_empty() {
            return refuse("the keyspace has no name".to_string());
        }
        if self.columns.len() > COLUMNS_MAX {
            return refuse(format!("there are {}, and at most {COLUMNS_MAX} fit", self.columns.len()));
        }
        let mut names = BTreeSet::new();
        for column in &self.columns {
            if column.name.is_empty() || !names.insert(column.name.as_str()) {
                return refuse(format!("the name {} is empty or comes twice", excerpt(&column.name)));
            }
        }
        if self.partition.is_empty() {
            return refuse("none of them chooses the partition".to_string());
        }
        let key = self.partition.iter().chain(self.clustering.iter().map(|clustering| &clustering.column));
        for name in key {
            // A name that is gone already is part of the key a second time.
            if !names.remove(name.as_str()) {
                return refuse(format!(
                    "the key names {}, which is none of them or comes twice",
                    excerpt(name)
                ));
            }
        }
        Ok(())
    }
}
