//! Reads an archive back: which blobs it has, and what the documents in them say.

use std::io::{BufRead, BufReader, Read};

use anabranch_model::blob::{GetOptions, ListAfter, ListOptions};
use anabranch_model::table::Event as Happened;
use anabranch_model::{BlobKey, BlobStore, BucketName, Error, Result, SequenceNumber};
use bytes::{Bytes, BytesMut};
use flate2::read::MultiGzDecoder;
use futures_util::StreamExt;
use serde_json::Value as Json;

use super::document::key_text;
use super::manifest;
use super::template::KeyTemplate;

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
    pub(super) event: Happened,
    /// The JSON of the images.
    pub(super) new: Option<String>,
    pub(super) old: Option<String>,
}

/// One page of the blobs of an archive, and where the next one starts.
pub(super) async fn page(
    blobs: &dyn BlobStore,
    bucket: &BucketName,
    template: &KeyTemplate,
    after: Option<ListAfter>,
) -> Result<(Vec<BlobKey>, Option<ListAfter>)> {
    let prefix = template.prefix();
    let own = format!("{prefix}{}", manifest::FOLDER);
    let options = ListOptions { prefix: prefix.clone(), after, ..ListOptions::default() };
    let page = blobs.list(bucket, options).await?;
    let keys = page.entries.into_iter().map(|summary| summary.key).filter(|key| {
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

/// The documents of a blob, one after the other. What cannot be read is an error, and the last.
pub(super) fn documents(body: &[u8]) -> impl Iterator<Item = std::result::Result<Archived, String>> {
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
            Ok(_) => parse(&line),
            Err(error) => Err(error.to_string()),
        };
        if document.is_err() {
            lines = None;
        }
        Some(document)
    })
}

fn parse(line: &[u8]) -> std::result::Result<Archived, String> {
    let document: Json = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let event = match document["eventName"].as_str() {
        Some("INSERT") => Happened::Insert,
        Some("MODIFY") => Happened::Modify,
        Some("REMOVE") => Happened::Remove,
        _ => return Err("its `eventName` is none".to_owned()),
    };
    let image = |body: &Json, name: &str| body.get(name).map(Json::to_string);
    let (key, number, new, old) = if let Some(body) = document.get("dynamodb") {
        let key = body.get("Keys").ok_or("it has no `Keys`")?.to_string();
        (key, &body["SequenceNumber"], image(body, "NewImage"), image(body, "OldImage"))
    } else if let Some(body) = document.get("keyspaces") {
        let part = |name: &str| body.get(name).cloned().ok_or(format!("it has no `{name}`"));
        let key = key_text([part("partitionKeys")?, part("clusteringKeys")?]);
        (key, &body["sequenceNumber"], image(body, "newImage"), image(body, "oldImage"))
    } else {
        return Err("it is no change of a table".to_owned());
    };
    let number = number.as_str().ok_or("its sequence number is none")?;
    let sequence = number.parse().map_err(|error: Error| error.to_string())?;
    Ok(Archived { key, sequence, event, new, old })
}
