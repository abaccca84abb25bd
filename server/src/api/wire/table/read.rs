//! Reads of items.

use anabranch_model::IndexName;
use anabranch_model::table::{Get, Got, ItemPage, Query, Reading, Scan, Segment};

use super::super::super::text::Text;
use super::expression::{ConditionBody, KeyConditionBody, ProjectionBody};
use super::mirror::mirrored;
use super::value::ItemBody;

mirrored! {
    /// A read of one item.
    struct GetBody = Get {
        key: ItemBody,
        consistent: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        projection: Option<ProjectionBody>,
    }
}

mirrored! {
    /// What a batch of reads says about one of them.
    enum GotBody = Got { Item(item: ItemBody), Missing, NotRead, }
}

mirrored! {
    /// A read of the items of one hash value.
    struct QueryBody = Query { key: KeyConditionBody, backward: bool, reading: ReadingBody, }
}

mirrored! {
    /// A read of all items.
    struct ScanBody = Scan {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        segment: Option<SegmentBody>,
        reading: ReadingBody,
    }
}

mirrored! {
    /// What queries and scans share.
    struct ReadingBody = Reading {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        index: Option<Text<IndexName>>,
        #[serde(default)]
        consistent: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filter: Option<ConditionBody>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        projection: Option<ProjectionBody>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<usize>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        start: Option<ItemBody>,
        #[serde(default)]
        count_only: bool,
        #[serde(default)]
        whole: bool,
    }
}

mirrored! {
    /// One of several equal parts of a table.
    struct SegmentBody = Segment { number: u32, of: u32, }
}

mirrored! {
    /// A page of a query or scan.
    struct ItemPageBody = ItemPage {
        items: Vec<ItemBody>,
        returned: usize,
        evaluated: usize,
        #[serde(default)]
        bytes: usize,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        fetched: Vec<usize>,
        last: Option<ItemBody>,
    }
}
