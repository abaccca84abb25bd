//! Reads an archive back: which blobs it has, and what the documents in them say.

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Read};

use anabranch_model::blob::{GetOptions, ListAfter, ListOptions};
use anabranch_model::table::Event as Happened;
use anabranch_model::{BlobKey, BlobStore, BucketName, Error, Result, SequenceNumber, Timestamp};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use super::document::key_text;
use super::template::KeyTemplate;
use super::{columns, manifest};

/// Largest blob that is read. Those that a bot writes are far smaller.
const BLOB_BYTES_MAX: usize = 256 << 20;
/// Longest line: a change with two images of the largest size, each byte of which may take six in JSON.
const LINE_BYTES_MAX: usize = 8 << 20;
/// What a gzip file begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// What a document says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Archived {
    /// The JSON of the key.
    pub(super) key: String,
    pub(super) sequence: SequenceNumber,
    /// When it happened, if the document says so.
    pub(super) at: Option<Timestamp>,
    pub(super) event: Happened,
    /// The JSON of the images.
    pub(super) new: Option<String>,
    pub(super) old: Option<String>,
}

/// One page of the blobs of an archive with their sizes, and where the next one starts.
pub(super) async fn page(
    blobs: &dyn BlobStore,
    bucket: &BucketName,
    template: &KeyTemplate,
    after: Option<ListAfter>,
) -> Result<(Vec<(BlobKey, u64)>, Option<ListAfter>)> {
    let prefix = template.prefix();
    let own = format!("{prefix}{}", manifest::FOLDER);
    let options = ListOptions { prefix: prefix.clone(), after, ..ListOptions::default() };
    let page = blobs.list(bucket, options).await?;
    let keys = page.entries.into_iter().map(|summary| (summary.key, summary.size)).filter(|(key, _)| {
        // Below folders of its own an archive is alone; otherwise only the keys tell what belongs to it.
        !key.as_str().starts_with(&own) && (!prefix.is_empty() || template.fits(key.as_str()))
    });
    Ok((keys.collect(), page.next))
}

/// The body of a blob.
pub(super) async fn whole(blobs: &dyn BlobStore, bucket: &BucketName, key: &BlobKey) -> Result<Bytes> {
    let mut blob = blobs.get(bucket, key, GetOptions::default()).await?;
    let mut bytes = BytesMut::new();
    while let Some(piece) = blob.body.next().await {
        bytes.extend_from_slice(&piece?);
        if bytes.len() > BLOB_BYTES_MAX {
            return Err(Error::Invalid(format!("`{key}` has more than {BLOB_BYTES_MAX} bytes")));
        }
    }
    Ok(bytes.freeze())
}

/// The changes in a blob, one after the other. What cannot be read is an error, and the last.
pub(super) fn documents(
    body: &Bytes,
) -> Box<dyn Iterator<Item = std::result::Result<Archived, String>> + '_> {
    match body.starts_with(columns::MAGIC) {
        true => Box::new(columns::changes(body)),
        false => Box::new(lines(body)),
    }
}

fn lines(body: &[u8]) -> impl Iterator<Item = std::result::Result<Archived, String>> {
    let text: Box<dyn Read + '_> =
        if body.starts_with(&GZIP) { Box::new(MultiGzDecoder::new(body)) } else { Box::new(body) };
    let mut lines = Some(BufReader::new(text));
    std::iter::from_fn(move || {
        let reader = lines.as_mut()?;
        let mut line = Vec::new();
        let read = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
        let document = match read {
            Ok(0) => return None,
            Ok(_) if line.len() > LINE_BYTES_MAX => {
                Err(format!("a line is longer than {LINE_BYTES_MAX} bytes"))
            }
            Ok(_) => Told::parse(&line).and_then(|told| told.archived()),
            Err(error) => Err(error.to_string()),
        };
        if document.is_err() {
            lines = None;
        }
        Some(document)
    })
}

/// A document taken apart: both services say the same under names of their own.
#[derive(Deserialize)]
pub(super) struct Told<'a> {
    #[serde(rename = "eventID", default, borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(rename = "eventName", borrow)]
    pub(super) name: Cow<'a, str>,
    #[serde(rename = "eventVersion", default, borrow)]
    pub(super) version: Cow<'a, str>,
    #[serde(rename = "eventSource", default, borrow)]
    pub(super) source: Cow<'a, str>,
    #[serde(rename = "awsRegion", default, borrow)]
    pub(super) region: Cow<'a, str>,
    #[serde(rename = "userIdentity", borrow)]
    pub(super) identity: Option<&'a RawValue>,
    #[serde(rename = "dynamodb", alias = "keyspaces", borrow)]
    pub(super) body: ToldOfRow<'a>,
}

/// What happened to a row.
#[derive(Deserialize)]
pub(super) struct ToldOfRow<'a> {
    #[serde(rename = "ApproximateCreationDateTime", alias = "createdAt")]
    seconds: Option<f64>,
    #[serde(rename = "Keys", alias = "partitionKeys", borrow)]
    pub(super) keys: &'a RawValue,
    #[serde(rename = "clusteringKeys", borrow)]
    pub(super) clustering: Option<&'a RawValue>,
    #[serde(rename = "NewImage", alias = "newImage", borrow)]
    pub(super) new: Option<&'a RawValue>,
    #[serde(rename = "OldImage", alias = "oldImage", borrow)]
    pub(super) old: Option<&'a RawValue>,
    #[serde(rename = "SequenceNumber", alias = "sequenceNumber", borrow)]
    pub(super) sequence: Cow<'a, str>,
    #[serde(rename = "SizeBytes")]
    pub(super) size: Option<i64>,
    #[serde(rename = "StreamViewType", borrow)]
    pub(super) view: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) origin: Option<Cow<'a, str>>,
}

impl<'a> Told<'a> {
    pub(super) fn parse(document: &'a [u8]) -> std::result::Result<Self, String> {
        serde_json::from_slice(document).map_err(|error| error.to_string())
    }

    fn archived(&self) -> std::result::Result<Archived, String> {
        let body = &self.body;
        let clustering = body.clustering.map(RawValue::get);
        let images = [body.new.map(RawValue::get), body.old.map(RawValue::get)];
        // What is not a time that there can be becomes the nearest one.
        let at = body.seconds.map(|seconds| Timestamp::from_millis((seconds * 1_000.0).round() as u64));
        archived(&self.name, &body.sequence, at, body.keys.get(), clustering, images)
    }
}

/// What is compared of a change. The same facts in another layout are the same.
pub(super) fn archived(
    name: &str,
    sequence: &str,
    at: Option<Timestamp>,
    keys: &str,
    clustering: Option<&str>,
    images: [Option<&str>; 2],
) -> std::result::Result<Archived, String> {
    let event = match name {
        "INSERT" => Happened::Insert,
        "MODIFY" => Happened::Modify,
        "REMOVE" => Happened::Remove,
        _ => return Err(format!("nothing is called {name:?} that happens to a row")),
    };
    let json =
        |text: &str| serde_json::from_str::<Json>(text).map_err(|error| format!("{error}: {text:.100}"));
    let image = |text: Option<&str>| text.map(|text| json(text).map(|json| json.to_string())).transpose();
    let [new, old] = images.map(image);
    Ok(Archived {
        key: match clustering {
            Some(clustering) => key_text([json(keys)?, json(clustering)?]),
            None => json(keys)?.to_string(),
        },
        sequence: sequence.parse().map_err(|error: Error| error.to_string())?,
        at,
        event,
        new: new?,
        old: old?,
    })
}
