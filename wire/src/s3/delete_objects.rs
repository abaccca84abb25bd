//! DeleteObjects.

use anabranch_model::blob::{BlobKey, BucketName};
use anabranch_model::limits::DELETE_KEYS_MAX;
use http::Response;

use super::address::blob_key;
use super::answer::document;
use super::delete_object::{DeleteIf, delete};
use super::errors::{fault, not_implemented};
use super::rest::Rest;
use super::xml::{Element, malformed};
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

/// An object that is to be deleted, or why it cannot be.
struct Entry {
    key: String,
    /// A version that nobody has.
    version: Option<String>,
    wanted: Result<(BlobKey, DeleteIf), Fault>,
}

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let bucket = rest.bucket()?;
    let (body, _reservation) = rest.payload.collect(&*context.memory).await?;
    let request = Element::parse(&body, "Delete")?;
    let quiet = request.text("Quiet")?.is_some_and(|quiet| quiet.trim().eq_ignore_ascii_case("true"));
    let entries = request.all("Object").map(entry).collect::<Result<Vec<_>, _>>()?;
    if entries.is_empty() || entries.len() > DELETE_KEYS_MAX {
        return Err(malformed());
    }
    context.ports.blobs.bucket(bucket).await.map_err(fault)?;
    let results = delete_all(context, bucket, &entries).await?;
    Ok(document("DeleteResult", |xml| {
        for (entry, result) in entries.iter().zip(results) {
            match result {
                Ok(()) if quiet => {}
                Ok(()) => {
                    xml.nested("Deleted", "Key", &entry.key);
                }
                Err(fault) => {
                    xml.element("Error", |xml| {
                        xml.value("Key", &entry.key).optional("VersionId", entry.version.as_deref());
                        xml.value("Code", &fault.code);
                        xml.value("Message", &fault.message);
                    });
                }
            }
        }
    }))
}

fn entry(object: &Element) -> Result<Entry, Fault> {
    let key = object.required("Key")?.to_owned();
    if key.is_empty() {
        return Err(malformed());
    }
    for condition in ["LastModifiedTime", "Size"] {
        if object.text(condition)?.is_some() {
            return Err(not_implemented(condition));
        }
    }
    let version = object.text("VersionId")?.filter(|version| !["", "null"].contains(version));
    let tag = object.text("ETag")?;
    let wanted = match version {
        Some(_) => Err(Fault::client("NoSuchVersion", "The specified version does not exist.")),
        None => blob_key(&key).and_then(|key| Ok((key, DeleteIf::parse(tag)?))),
    };
    Ok(Entry { key, version: version.map(str::to_owned), wanted })
}

/// Those without a condition go together, the others one by one. The results are in the order of the entries.
async fn delete_all(
    context: &Context,
    bucket: &BucketName,
    entries: &[Entry],
) -> Result<Vec<Result<(), Fault>>, Fault> {
    let plain = |entry: &Entry| matches!(entry.wanted, Ok((_, DeleteIf::Always)));
    let together: Vec<BlobKey> = entries
        .iter()
        .filter(|entry| plain(entry))
        .filter_map(|entry| entry.wanted.as_ref().ok().map(|(key, _)| key.clone()))
        .collect();
    let mut done = match together.is_empty() {
        true => Vec::new(),
        false => context.ports.blobs.delete_many(bucket, &together).await.map_err(fault)?,
    }
    .into_iter();
    let mut results = Vec::with_capacity(entries.len());
    for entry in entries {
        results.push(match &entry.wanted {
            Err(fault) => Err(fault.clone()),
            // A store answers for each key, in order.
            Ok((_, DeleteIf::Always)) => done.next().unwrap_or(Ok(())).map_err(fault),
            Ok((key, condition)) => delete(context, bucket, key, condition).await.map_err(fault),
        });
    }
    Ok(results)
}
