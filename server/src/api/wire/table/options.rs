//! How a table is made, and what a store says about it.

use std::collections::BTreeSet;

use anabranch_model::table::{
    Alteration, ChangeView, IndexOptions, IndexProjection, IndexScope, IndexSummary, KeyAttribute, KeyKind,
    KeySchema, TableOptions, TableState, TableSummary,
};
use anabranch_model::{IndexName, StreamName, TableName};

use super::super::super::text::Text;
use super::keyspace::KeyspaceShapeBody;
use super::mirror::{Millis, mirrored};

mirrored! {
    /// What a value of a key can be.
    enum KeyKindBody = KeyKind {
        #[serde(rename = "S")]
        Text,
        #[serde(rename = "N")]
        Number,
        #[serde(rename = "B")]
        Binary,
    }
}

mirrored! {
    /// An attribute of a key.
    struct KeyAttributeBody = KeyAttribute { name: String, kind: KeyKindBody, }
}

mirrored! {
    /// Which attributes find an item.
    struct KeySchemaBody = KeySchema {
        hash: KeyAttributeBody,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        range: Option<KeyAttributeBody>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hash_rest: Vec<KeyAttributeBody>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        range_rest: Vec<KeyAttributeBody>,
    }
}

mirrored! {
    /// How a table is made.
    struct TableOptionsBody = TableOptions {
        key: KeySchemaBody,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        indexes: Vec<IndexOptionsBody>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        time_to_live: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changes: Option<ChangeViewBody>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keyspace: Option<KeyspaceShapeBody>,
    }
}

mirrored! {
    /// Another way to find the items of a table.
    struct IndexOptionsBody = IndexOptions {
        name: Text<IndexName>,
        scope: IndexScopeBody,
        key: KeySchemaBody,
        projection: IndexProjectionBody,
    }
}

mirrored! {
    /// What an index orders.
    enum IndexScopeBody = IndexScope { Global, Local, }
}

mirrored! {
    /// What an index shows of an item.
    enum IndexProjectionBody = IndexProjection { All, Keys, Include(attributes: BTreeSet<String>), }
}

mirrored! {
    /// What is written down about a change.
    enum ChangeViewBody = ChangeView { Keys, New, Old, Both, }
}

mirrored! {
    /// A change to a living table.
    enum AlterationBody = Alteration {
        AddIndex(index: IndexOptionsBody),
        DropIndex(name: Text<IndexName>),
        TimeToLive(attribute: Option<String>),
        Changes(view: Option<ChangeViewBody>),
    }
}

mirrored! {
    /// Where a table or an index stands.
    enum TableStateBody = TableState { Creating, Active, Updating, Deleting, }
}

mirrored! {
    /// A table as the store describes it.
    struct TableBody = TableSummary {
        name: Text<TableName>,
        state: TableStateBody,
        created_at: Millis,
        options: TableOptionsBody,
        items: u64,
        bytes: u64,
        indexes: Vec<IndexSummaryBody>,
        changes: Option<Text<StreamName>>,
        #[serde(default)]
        changes_since: Option<Millis>,
    }
}

mirrored! {
    /// An index as the store describes it.
    struct IndexSummaryBody = IndexSummary {
        name: Text<IndexName>,
        state: TableStateBody,
        items: u64,
        bytes: u64,
    }
}
