//! Bad input: it is refused with the error that says what is wrong, and nothing has changed.

use std::collections::BTreeMap;

use super::bytes::{some_bytes, whole};
use super::trial::Trial;
use crate::blob::{
    BodyOptions, CompleteOptions, GetOptions, Header, ListOptions, PartChoice, Properties, PutOptions,
    Upload, UploadId, UploadListOptions, UploadOptions,
};
use crate::{Error, limits};

fn invalid(error: &Error) -> bool {
    matches!(error, Error::Invalid(_))
}

/// Every call says whether it is the bucket, the blob or the upload that it does not know.
pub async fn unknown_names_are_refused(trial: Trial) {
    let (bucket, none) = (trial.bucket().await, trial.fresh_name());
    let (key, missing, store) = (trial.key("key"), trial.key("missing"), trial.store());
    trial.put(&bucket, &key, &some_bytes(1, 10)).await;
    let body = || whole(&some_bytes(2, 20));

    let unknown = |error: &Error| matches!(error, Error::BucketNotFound(_));
    let call = "a call on an unknown bucket";
    trial.refused_in(&bucket, call, unknown, store.bucket(&none)).await;
    trial.refused_in(&bucket, call, unknown, store.delete_bucket(&none)).await;
    trial.refused_in(&bucket, call, unknown, store.put(&none, &key, body(), PutOptions::default())).await;
    trial.refused_in(&bucket, call, unknown, store.get(&none, &key, GetOptions::default())).await;
    trial.refused_in(&bucket, call, unknown, store.head(&none, &key)).await;
    trial.refused_in(&bucket, call, unknown, store.delete(&none, &key, None)).await;
    trial.refused_in(&bucket, call, unknown, store.delete_many(&none, std::slice::from_ref(&key))).await;
    trial.refused_in(&bucket, call, unknown, store.list(&none, ListOptions::default())).await;
    trial.refused_in(&bucket, call, unknown, store.uploads(&none, UploadListOptions::default())).await;
    let begun = store.begin_upload(&none, &key, UploadOptions::default());
    trial.refused_in(&bucket, call, unknown, begun).await;

    let unknown = |error: &Error| matches!(error, Error::BlobNotFound(..));
    let call = "a call on an unknown blob";
    trial.refused_in(&bucket, call, unknown, store.head(&bucket, &missing)).await;
    trial.refused_in(&bucket, call, unknown, store.get(&bucket, &missing, GetOptions::default())).await;

    let unknown = |error: &Error| matches!(error, Error::UploadNotFound(_));
    let open = trial.begin(&bucket, &key).await;
    let part = trial.part(&open, 1, &some_bytes(3, 30)).await;
    let never = trial.ok("an identifier", UploadId::new("never-begun"));
    let choices = [PartChoice::from(&part)];
    // The key belongs to an upload as much as its identifier does.
    for upload in [Upload { id: never, ..open.clone() }, Upload { key: missing, ..open.clone() }] {
        let call = "a call on an unknown upload";
        trial.refused_in(&bucket, call, unknown, store.parts(&upload, None, 10)).await;
        trial.refused_in(&bucket, call, unknown, store.abort_upload(&upload)).await;
        let put = store.put_part(&upload, part.number, body(), BodyOptions::default());
        trial.refused_in(&bucket, call, unknown, put).await;
        let completed = store.complete_upload(&upload, &choices, CompleteOptions::default());
        trial.refused_in(&bucket, call, unknown, completed).await;
    }
}

/// Metadata and headers are within their limits and have allowed characters only, at puts and at uploads.
pub async fn bad_properties_are_refused(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    trial.put(&bucket, &key, &some_bytes(1, 10)).await;
    let metadata = |name: &str, value: String| Properties {
        metadata: BTreeMap::from([(name.to_string(), value)]),
        ..Properties::default()
    };
    let header = |value: String| Properties {
        headers: BTreeMap::from([(Header::ContentType, value)]),
        ..Properties::default()
    };
    for (what, properties) in [
        ("metadata that is too long", metadata("n", "v".repeat(limits::BLOB_METADATA_BYTES_MAX))),
        ("metadata without a name", metadata("", "v".to_string())),
        ("metadata with a capital", metadata("Name", "v".to_string())),
        ("metadata with a line break", metadata("name", "v\r\nx: y".to_string())),
        ("headers that are too long", header("t".repeat(limits::BLOB_HEADERS_BYTES_MAX + 1))),
        ("a header with a line break", header("text/plain\r\nx: y".to_string())),
    ] {
        let options = PutOptions { properties: properties.clone(), ..PutOptions::default() };
        let put = store.put(&bucket, &key, whole(&some_bytes(2, 20)), options);
        trial.refused_in(&bucket, &format!("a put with {what}"), invalid, put).await;
        let options = UploadOptions { properties, checksum: None };
        let begun = store.begin_upload(&bucket, &key, options);
        trial.refused_in(&bucket, &format!("an upload with {what}"), invalid, begun).await;
    }
}

/// A body that is declared larger than the limit is refused before it is sent.
pub async fn bodies_too_large_are_refused(trial: Trial) {
    let bucket = trial.bucket().await;
    let (key, store) = (trial.key("key"), trial.store());
    trial.put(&bucket, &key, &some_bytes(1, 10)).await;
    let too_large = |error: &Error| matches!(error, Error::BodyTooLarge { .. });
    let body = BodyOptions { size: Some(limits::BODY_BYTES_MAX + 1), ..BodyOptions::default() };
    let options = PutOptions { body: body.clone(), ..PutOptions::default() };
    let put = store.put(&bucket, &key, whole(&some_bytes(2, 20)), options);
    trial.refused_in(&bucket, "a body of more than 5 GiB", too_large, put).await;
    let upload = trial.begin(&bucket, &key).await;
    let part = trial.part(&upload, 1, &some_bytes(3, 30)).await;
    let put = store.put_part(&upload, part.number, whole(&some_bytes(2, 20)), body);
    trial.refused_in(&bucket, "a part of more than 5 GiB", too_large, put).await;
}
