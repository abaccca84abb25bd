//! Pages of keys and of uploads.

use super::meta::BlobSummary;
use super::name::{BlobKey, UploadId};
use crate::limits;

/// Where a listing goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListAfter {
    /// With the keys behind this one, whether or not it exists.
    Key(BlobKey),
    /// With the keys behind all that begin like this.
    Prefix(String),
}

/// Which keys are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// What keys begin with; empty for all.
    pub prefix: String,
    /// Keys that contain it behind the prefix are not shown: in their place stands, once, what they share up to and with
    /// the first delimiter. An empty one counts as none.
    pub delimiter: Option<String>,
    /// Where to start; at the first key if there is none.
    pub after: Option<ListAfter>,
    /// Most entries and prefixes together. Cut to [`limits::PAGE_ENTRIES_MAX`]; zero counts as one.
    pub limit: usize,
}

impl ListOptions {
    /// The limit brought into what is allowed.
    pub fn limit_clamped(&self) -> usize {
        self.limit.clamp(1, limits::PAGE_ENTRIES_MAX)
    }

    /// The delimiter, unless it is empty.
    pub fn delimiter(&self) -> Option<&str> {
        self.delimiter.as_deref().filter(|delimiter| !delimiter.is_empty())
    }
}

impl Default for ListOptions {
    fn default() -> Self {
        ListOptions { prefix: String::new(), delimiter: None, after: None, limit: limits::PAGE_ENTRIES_MAX }
    }
}

/// One page of a bucket. Entries and prefixes are each in the order of their bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListPage {
    /// The blobs.
    pub entries: Vec<BlobSummary>,
    /// What stands for the keys that contain the delimiter; each ends with it.
    pub prefixes: Vec<String>,
    /// Where the next page starts; none if this is the last.
    pub next: Option<ListAfter>,
}

/// Where a listing of uploads goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadAfter {
    /// With the uploads of this key behind `upload`, and of the keys behind it.
    pub key: BlobKey,
    /// Without it, with the keys behind `key`. It need not exist any more.
    pub upload: Option<UploadId>,
}

/// Which uploads are listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UploadListOptions {
    /// What keys begin with; empty for all.
    pub prefix: String,
    /// Where to start; at the first key if there is none.
    pub after: Option<UploadAfter>,
    /// Most uploads. Cut to [`limits::PAGE_ENTRIES_MAX`]; zero counts as one.
    pub limit: usize,
}

impl Default for UploadListOptions {
    fn default() -> Self {
        UploadListOptions { prefix: String::new(), after: None, limit: limits::PAGE_ENTRIES_MAX }
    }
}
