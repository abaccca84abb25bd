//! How a table looks as a table of a keyspace.

use anabranch_model::table::{Clustering, Column, ColumnKind, KeyspaceShape};

use super::mirror::mirrored;

mirrored! {
    /// A table of a keyspace.
    struct KeyspaceShapeBody = KeyspaceShape {
        keyspace: String,
        columns: Vec<ColumnBody>,
        partition: Vec<String>,
        clustering: Vec<ClusteringBody>,
    }
}

mirrored! {
    /// A column.
    struct ColumnBody = Column { name: String, kind: ColumnKindBody, shared: bool, }
}

mirrored! {
    /// A column that orders the rows of a partition.
    struct ClusteringBody = Clustering { column: String, descending: bool, }
}

mirrored! {
    /// What the values of a column are.
    enum ColumnKindBody = ColumnKind {
        Ascii,
        Bigint,
        Blob,
        Boolean,
        Counter,
        Date,
        Decimal,
        Double,
        Float,
        Inet,
        Int,
        Smallint,
        Text,
        Time,
        Timestamp,
        Timeuuid,
        Tinyint,
        Uuid,
        Varchar,
        Varint,
        List(element: Box<ColumnKindBody>),
        Set(element: Box<ColumnKindBody>),
        Map(key: Box<ColumnKindBody>, value: Box<ColumnKindBody>),
        Tuple(elements: Vec<ColumnKindBody>),
        Frozen(collection: Box<ColumnKindBody>),
        Defined(name: String),
    }
}
