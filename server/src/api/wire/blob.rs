//! The calls on buckets and keys.

use anabranch_model::blob::{
    BlobKey, BlobSummary, BucketName, BucketSummary, ChecksumAlgorithm, ChecksumKinds, CopyOptions, ETag,
    GetOptions, ListAfter, ListOptions, ListPage, Properties, PutOptions, Range, WriteCondition,
};
use anabranch_model::limits::DELETE_KEYS_MAX;
use anabranch_model::{Error, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::super::text::{Number, Text, Verbatim};
use super::body::{AlgorithmBody, BodyOptionsBody, ChecksumScopeBody, ChecksumsBody};
use super::bounded::bounded;
use super::condition::{ReadConditionsBody, WriteConditionBody};
use super::meta::{BlobMetaBody, PropertiesBody};

/// Asks for one bucket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketRequest {
    /// Its name.
    pub bucket: Text<BucketName>,
}

/// Asks for a page of buckets.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketsRequest {
    /// The last bucket of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Text<BucketName>>,
    /// Most entries.
    pub limit: usize,
}

/// A bucket as a listing shows it.
#[derive(Debug, Serialize, Deserialize)]
pub struct BucketBody {
    /// Its name.
    pub name: Text<BucketName>,
    /// When it was made, in milliseconds since the Unix epoch.
    pub created_at_ms: u64,
}

impl From<BucketSummary> for BucketBody {
    fn from(summary: BucketSummary) -> Self {
        BucketBody { name: Text(summary.name), created_at_ms: summary.created_at.as_millis() }
    }
}

impl TryFrom<BucketBody> for BucketSummary {
    type Error = Error;

    fn try_from(body: BucketBody) -> Result<Self> {
        Ok(BucketSummary { name: body.name.0, created_at: Timestamp::from_millis(body.created_at_ms) })
    }
}

/// Where a blob is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobPlace {
    /// In this bucket.
    pub bucket: Text<BucketName>,
    /// Under this key.
    pub key: Verbatim<BlobKey>,
}

impl BlobPlace {
    /// The place with these names.
    pub fn new(bucket: &BucketName, key: &BlobKey) -> Self {
        BlobPlace { bucket: Text(bucket.clone()), key: Verbatim(key.clone()) }
    }
}

/// Stores a blob whose body follows as it is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PutBlobRequest {
    /// Where.
    pub place: BlobPlace,
    /// What the writer says about it.
    pub properties: PropertiesBody,
    /// What must be true of the blob that it replaces.
    pub condition: WriteConditionBody,
    /// How its body is verified.
    pub body: BodyOptionsBody,
}

impl PutBlobRequest {
    /// A put with these options.
    pub fn new(bucket: &BucketName, key: &BlobKey, options: PutOptions) -> Self {
        PutBlobRequest {
            place: BlobPlace::new(bucket, key),
            properties: options.properties.into(),
            condition: options.condition.into(),
            body: options.body.into(),
        }
    }

    /// What the store is asked for.
    pub fn options(self) -> Result<(BlobPlace, PutOptions)> {
        let options = PutOptions {
            properties: self.properties.into(),
            condition: self.condition.into(),
            body: self.body.try_into()?,
        };
        Ok((self.place, options))
    }
}

/// Opens a blob for reading.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GetBlobRequest {
    /// Where.
    pub place: BlobPlace,
    /// Which bytes; all if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<PieceBody>,
    /// What must be true of it.
    #[serde(default)]
    pub conditions: ReadConditionsBody,
}

impl GetBlobRequest {
    /// A read with these options.
    pub fn new(bucket: &BucketName, key: &BlobKey, options: GetOptions) -> Self {
        GetBlobRequest {
            place: BlobPlace::new(bucket, key),
            range: options.range.map(PieceBody::from),
            conditions: options.conditions.into(),
        }
    }

    /// What the store is asked for.
    pub fn options(self) -> (BlobPlace, GetOptions) {
        let options = GetOptions { range: self.range.map(Range::from), conditions: self.conditions.into() };
        (self.place, options)
    }
}

/// What stands before the bytes of a blob.
#[derive(Debug, Serialize, Deserialize)]
pub struct GetBlobReply {
    /// What is known about the whole blob.
    pub meta: BlobMetaBody,
    /// The first byte that follows.
    pub first: u64,
    /// The byte behind the last that follows.
    pub end: u64,
    /// The checksums of the part that follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<ChecksumsBody>,
}

/// Which bytes of a body are wanted.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceBody {
    /// From the first to the last of these, both included.
    FromTo(u64, u64),
    /// From this byte to the end.
    From(u64),
    /// This many bytes at the end.
    Last(u64),
    /// The part at this place.
    Part(Number),
}

impl From<Range> for PieceBody {
    fn from(range: Range) -> Self {
        match range {
            Range::FromTo(first, last) => PieceBody::FromTo(first, last),
            Range::From(first) => PieceBody::From(first),
            Range::Last(count) => PieceBody::Last(count),
            Range::Part(number) => PieceBody::Part(Number(number)),
        }
    }
}

impl From<PieceBody> for Range {
    fn from(body: PieceBody) -> Self {
        match body {
            PieceBody::FromTo(first, last) => Range::FromTo(first, last),
            PieceBody::From(first) => Range::From(first),
            PieceBody::Last(count) => Range::Last(count),
            PieceBody::Part(number) => Range::Part(number.0),
        }
    }
}

/// Removes a blob.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteBlobRequest {
    /// Where.
    pub place: BlobPlace,
    /// What it must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_match: Option<Text<ETag>>,
}

/// Removes blobs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeleteBlobsRequest {
    /// In this bucket.
    pub bucket: Text<BucketName>,
    /// Under these keys.
    #[serde(deserialize_with = "bounded::<_, _, DELETE_KEYS_MAX>")]
    pub keys: Vec<Verbatim<BlobKey>>,
}

/// Stores a blob with the body of another.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopyBlobRequest {
    /// The other.
    pub source: BlobPlace,
    /// Where.
    pub target: BlobPlace,
    /// What must be true of the source.
    pub source_conditions: ReadConditionsBody,
    /// What must be true of the blob that the copy replaces.
    pub condition: WriteConditionBody,
    /// What is said about the copy; what is said about the source if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub properties: Option<PropertiesBody>,
}

impl CopyBlobRequest {
    /// What the store is asked for.
    pub fn options(self) -> (BlobPlace, BlobPlace, CopyOptions) {
        let options = CopyOptions {
            source: self.source_conditions.into(),
            target: WriteCondition::from(self.condition),
            properties: self.properties.map(Properties::from),
        };
        (self.source, self.target, options)
    }
}

/// Asks for a page of keys.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlobsRequest {
    /// Of this bucket.
    pub bucket: Text<BucketName>,
    /// What keys begin with.
    #[serde(default)]
    pub prefix: String,
    /// Where keys are cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// Where the page before ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ListAfterBody>,
    /// Most entries.
    pub limit: usize,
}

impl BlobsRequest {
    /// A listing with these options.
    pub fn new(bucket: &BucketName, options: ListOptions) -> Self {
        BlobsRequest {
            bucket: Text(bucket.clone()),
            prefix: options.prefix,
            delimiter: options.delimiter,
            after: options.after.map(ListAfterBody::from),
            limit: options.limit,
        }
    }

    /// What the store is asked for.
    pub fn options(self) -> (BucketName, ListOptions) {
        let options = ListOptions {
            prefix: self.prefix,
            delimiter: self.delimiter,
            after: self.after.map(ListAfter::from),
            limit: self.limit,
        };
        (self.bucket.0, options)
    }
}

/// Where a listing goes on.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ListAfterBody {
    /// With the keys behind this one.
    Key(Verbatim<BlobKey>),
    /// With the keys behind all that begin like this.
    Prefix(String),
}

impl From<ListAfter> for ListAfterBody {
    fn from(after: ListAfter) -> Self {
        match after {
            ListAfter::Key(key) => ListAfterBody::Key(Verbatim(key)),
            ListAfter::Prefix(prefix) => ListAfterBody::Prefix(prefix),
        }
    }
}

impl From<ListAfterBody> for ListAfter {
    fn from(body: ListAfterBody) -> Self {
        match body {
            ListAfterBody::Key(key) => ListAfter::Key(key.0),
            ListAfterBody::Prefix(prefix) => ListAfter::Prefix(prefix),
        }
    }
}

/// A page of keys.
#[derive(Debug, Serialize, Deserialize)]
pub struct BlobsReply {
    /// The blobs.
    pub entries: Vec<BlobSummaryBody>,
    /// What stands for the keys that contain the delimiter.
    pub prefixes: Vec<String>,
    /// Where the next page starts.
    pub next: Option<ListAfterBody>,
}

/// A blob as a listing shows it.
#[derive(Debug, Serialize, Deserialize)]
pub struct BlobSummaryBody {
    /// Its key.
    pub key: Verbatim<BlobKey>,
    /// Bytes.
    pub size: u64,
    /// Changes with the body.
    pub etag: Text<ETag>,
    /// When it was put, in milliseconds since the Unix epoch.
    pub modified_at_ms: u64,
    /// Of which bytes its checksums are, and which there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<(ChecksumScopeBody, Vec<AlgorithmBody>)>,
}

impl From<ListPage> for BlobsReply {
    fn from(page: ListPage) -> Self {
        let entry = |blob: BlobSummary| BlobSummaryBody {
            key: Verbatim(blob.key),
            size: blob.size,
            etag: Text(blob.etag),
            modified_at_ms: blob.modified_at.as_millis(),
            checksums: blob.checksums.map(|kinds| {
                (kinds.scope.into(), kinds.algorithms.into_iter().map(AlgorithmBody::from).collect())
            }),
        };
        BlobsReply {
            entries: page.entries.into_iter().map(entry).collect(),
            prefixes: page.prefixes,
            next: page.next.map(ListAfterBody::from),
        }
    }
}

impl From<BlobsReply> for ListPage {
    fn from(reply: BlobsReply) -> Self {
        let entry = |body: BlobSummaryBody| BlobSummary {
            key: body.key.0,
            size: body.size,
            etag: body.etag.0,
            modified_at: Timestamp::from_millis(body.modified_at_ms),
            checksums: body.checksums.map(|(scope, algorithms)| ChecksumKinds {
                scope: scope.into(),
                algorithms: algorithms.into_iter().map(ChecksumAlgorithm::from).collect(),
            }),
        };
        ListPage {
            entries: reply.entries.into_iter().map(entry).collect(),
            prefixes: reply.prefixes,
            next: reply.next.map(ListAfter::from),
        }
    }
}
