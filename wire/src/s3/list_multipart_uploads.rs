//! ListMultipartUploads.

use anabranch_model::blob::{BlobKey, UploadAfter, UploadId, UploadListOptions, UploadSummary};
use anabranch_model::limits::PAGE_ENTRIES_MAX;
use http::Response;

use super::answer::{document, owner};
use super::checksum;
use super::errors::{fault, invalid};
use super::listing::Shown;
use super::moment::iso;
use super::rest::Rest;
use crate::context::Context;
use crate::fault::Fault;
use crate::receive::Body;

/// Uploads and prefixes of one page.
#[derive(Default)]
struct Found {
    uploads: Vec<UploadSummary>,
    prefixes: Vec<String>,
    /// What was shown last, if there is more: the key or prefix, and the upload.
    next: Option<(String, String)>,
}

impl Found {
    /// Where a listing would go on: on the last page, too, that is behind the last upload.
    fn marker(&self) -> (&str, &str) {
        match (&self.next, self.uploads.last()) {
            (Some((key, id)), _) => (key, id),
            (None, Some(last)) => (last.upload.key.as_str(), last.upload.id.as_str()),
            (None, None) => ("", ""),
        }
    }
}

pub(super) async fn handle(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    let query = &rest.query;
    let bucket = rest.bucket()?;
    let shown = Shown::of(rest)?;
    let limit = query.limit("max-uploads", PAGE_ENTRIES_MAX)?;
    let delimiter = query.filled("delimiter");
    let found = match limit {
        0 => context.ports.blobs.bucket(bucket).await.map(|_| Found::default()).map_err(fault)?,
        limit => find(context, rest, delimiter, limit).await?,
    };
    Ok(document("ListMultipartUploadsResult", |xml| {
        xml.value("Bucket", bucket.as_str());
        xml.value("KeyMarker", shown.key(query.get("key-marker").unwrap_or("")));
        xml.value("UploadIdMarker", query.get("upload-id-marker").unwrap_or(""));
        let (key, id) = found.marker();
        xml.value("NextKeyMarker", shown.key(key)).value("NextUploadIdMarker", id);
        xml.optional("Prefix", query.filled("prefix").map(|prefix| shown.key(prefix)));
        xml.optional("Delimiter", delimiter.map(|delimiter| shown.key(delimiter)));
        xml.value("MaxUploads", limit).value("IsTruncated", found.next.is_some());
        shown.declare(xml);
        for entry in &found.uploads {
            xml.element("Upload", |xml| {
                xml.value("Key", shown.key(entry.upload.key.as_str()));
                xml.value("UploadId", entry.upload.id.as_str());
                owner(xml, "Initiator");
                owner(xml, "Owner");
                xml.value("StorageClass", "STANDARD").value("Initiated", iso(entry.begun_at));
                if let Some((algorithm, scope)) = entry.checksum {
                    xml.value("ChecksumAlgorithm", checksum::name(algorithm));
                    xml.value("ChecksumType", checksum::scope_name(scope));
                }
            });
        }
        for prefix in &found.prefixes {
            xml.nested("CommonPrefixes", "Prefix", shown.key(prefix));
        }
    }))
}

/// Goes through the uploads until there is enough to show. Those below one prefix count once.
async fn find(context: &Context, rest: &Rest, delimiter: Option<&str>, limit: usize) -> Result<Found, Fault> {
    let prefix = rest.query.get("prefix").unwrap_or("");
    let marker = rest.query.get("key-marker").unwrap_or("");
    let mut options =
        UploadListOptions { prefix: prefix.to_owned(), after: after(rest)?, ..UploadListOptions::default() };
    let mut found = Found::default();
    loop {
        let page = context.ports.blobs.uploads(rest.bucket()?, options.clone()).await.map_err(fault)?;
        let more = page.more;
        for entry in page.entries {
            let key = entry.upload.key.as_str().to_owned();
            let id = entry.upload.id.as_str().to_owned();
            options.after =
                Some(UploadAfter { key: entry.upload.key.clone(), upload: Some(entry.upload.id.clone()) });
            let shared = shared(&key, prefix, delimiter);
            // What the page before showed, or this one has shown already.
            if shared.is_some_and(|shared| {
                marker.starts_with(shared) || found.prefixes.last().is_some_and(|last| last == shared)
            }) {
                continue;
            }
            if found.uploads.len() + found.prefixes.len() == limit {
                return Ok(found);
            }
            match shared {
                Some(shared) => {
                    found.next = Some((shared.to_owned(), String::new()));
                    found.prefixes.push(shared.to_owned());
                }
                None => {
                    found.next = Some((key, id));
                    found.uploads.push(entry);
                }
            }
        }
        if !more {
            found.next = None;
            return Ok(found);
        }
    }
}

/// What a key shares with its neighbours, up to and with the first delimiter behind the prefix.
fn shared<'k>(key: &'k str, prefix: &str, delimiter: Option<&str>) -> Option<&'k str> {
    let delimiter = delimiter?;
    let at = key.get(prefix.len()..)?.find(delimiter)?;
    key.get(..prefix.len() + at + delimiter.len())
}

/// Where a listing goes on. The marker of an upload counts only beside that of a key.
fn after(rest: &Rest) -> Result<Option<UploadAfter>, Fault> {
    let Some(key) = rest.query.filled("key-marker") else { return Ok(None) };
    let key = BlobKey::new(key).map_err(|_| invalid("key-marker is too long"))?;
    let upload = rest.query.filled("upload-id-marker").map(UploadId::new).transpose();
    let upload = upload.map_err(|_| invalid("Invalid uploadId marker"))?;
    Ok(Some(UploadAfter { key, upload }))
}

#[cfg(test)]
mod tests {
    use super::shared;

    #[test]
    fn a_key_is_shared_up_to_the_first_delimiter_behind_the_prefix() {
        assert_eq!(shared("a/b/c", "", Some("/")), Some("a/"));
        assert_eq!(shared("a/b/c", "a/", Some("/")), Some("a/b/"));
        assert_eq!(shared("a/b/c", "a/b/", Some("/")), None);
        assert_eq!(shared("a/b/c", "", None), None);
        assert_eq!(shared("a--b", "", Some("--")), Some("a--"));
    }
}
