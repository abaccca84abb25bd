//! S3: buckets and objects, over methods and paths instead of names of operations.
//!
//! ```text
//!   head ─▶ address, route ─▶ signature ─▶ operation, which takes the body in pieces ─▶ answer, or fault in XML
//! ```
//!
//! A file for each operation, and what they share: the request (`rest`, `address`, `query`, `route`, `headers`,
//! `checksum`), its body (`body`), and the answer (`answer`, `xml`, `moment`, `errors`).

mod address;
mod query;
mod route;

mod body;
mod checksum;
mod headers;
mod rest;

mod answer;
mod errors;
mod moment;
mod xml;

#[cfg(test)]
mod hostile;

mod listing;
mod settings;
mod uploading;

mod abort_multipart_upload;
mod complete_multipart_upload;
mod copy_object;
mod create_bucket;
mod create_multipart_upload;
mod delete_bucket;
mod delete_object;
mod delete_objects;
mod get_bucket_location;
mod get_object;
mod get_object_attributes;
mod head_bucket;
mod head_object;
mod list_buckets;
mod list_multipart_uploads;
mod list_object_versions;
mod list_objects;
mod list_objects_v2;
mod list_parts;
mod put_object;
mod upload_part;
mod upload_part_copy;

use http::header::{CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue, SERVER};
use http::request::Parts;
use http::{Method, Response, Version};
use http_body_util::{BodyExt, Empty};

use crate::auth::{Keys, Seed, is_address, is_presigned, verify, verify_address};
use crate::context::Context;
use crate::dispatch::Service;
use crate::fault::Fault;
use crate::protocol::{HOST_ID, HOST_NAME, Protocol, render_fault};
use crate::receive::Body;

use address::{Target, bucket_in_host};
use body::{Incoming, Payload};
use query::Query;
use rest::{Rest, forget_unsigned_hash, hoisted};

/// The table of the service: which operations it has, and who does them.
macro_rules! operations {
    ($($name:literal => $module:ident,)*) => {
        /// The names of the operations.
        pub(crate) const OPERATIONS: &[&str] = &[$($name),*];

        async fn call(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
            match rest.operation {
                // The futures of the operations differ much in size; only the one that runs is made.
                $($name => Box::pin($module::handle(context, rest)).await,)*
                other => Err(errors::not_implemented(other)),
            }
        }
    };
}

operations! {
    "AbortMultipartUpload" => abort_multipart_upload,
    "CompleteMultipartUpload" => complete_multipart_upload,
    "CopyObject" => copy_object,
    "CreateBucket" => create_bucket,
    "CreateMultipartUpload" => create_multipart_upload,
    "DeleteBucket" => delete_bucket,
    "DeleteObject" => delete_object,
    "DeleteObjects" => delete_objects,
    "GetBucketAccelerateConfiguration" => settings,
    "GetBucketAcl" => settings,
    "GetBucketCors" => settings,
    "GetBucketEncryption" => settings,
    "GetBucketLifecycleConfiguration" => settings,
    "GetBucketLocation" => get_bucket_location,
    "GetBucketLogging" => settings,
    "GetBucketNotificationConfiguration" => settings,
    "GetBucketOwnershipControls" => settings,
    "GetBucketPolicy" => settings,
    "GetBucketReplication" => settings,
    "GetBucketRequestPayment" => settings,
    "GetBucketTagging" => settings,
    "GetBucketVersioning" => settings,
    "GetBucketWebsite" => settings,
    "GetObject" => get_object,
    "GetObjectAcl" => settings,
    "GetObjectAttributes" => get_object_attributes,
    "GetObjectLockConfiguration" => settings,
    "GetObjectTagging" => settings,
    "GetPublicAccessBlock" => settings,
    "HeadBucket" => head_bucket,
    "HeadObject" => head_object,
    "ListBuckets" => list_buckets,
    "ListMultipartUploads" => list_multipart_uploads,
    "ListObjectVersions" => list_object_versions,
    "ListObjects" => list_objects,
    "ListObjectsV2" => list_objects_v2,
    "ListParts" => list_parts,
    "PutObject" => put_object,
    "UploadPart" => upload_part,
    "UploadPartCopy" => upload_part_copy,
}

/// What decides who is let in, and by which names.
pub(crate) struct Entrance<'e> {
    /// The keys that callers sign with.
    pub(crate) keys: &'e Keys,
    /// The names of this server, before which buckets may stand.
    pub(crate) hosts: &'e [String],
}

/// Answers a request. The name of its operation comes back with it; none if it names none.
pub(crate) async fn respond(
    context: &Context,
    entrance: &Entrance<'_>,
    parts: Parts,
    body: Body,
) -> (Option<&'static str>, Response<Body>) {
    let (operation, mut response) = respond_without_name(context, entrance, parts, body).await;
    for name in [HeaderName::from_static(HOST_ID), SERVER] {
        response.headers_mut().insert(name, HeaderValue::from_static(HOST_NAME));
    }
    (operation, response)
}

async fn respond_without_name(
    context: &Context,
    entrance: &Entrance<'_>,
    parts: Parts,
    body: Body,
) -> (Option<&'static str>, Response<Body>) {
    let (method, version) = (parts.method.clone(), parts.version);
    let incoming = Incoming::new(&parts.headers, body);
    let (operation, answered) = match rest(context, entrance, parts, incoming.clone()) {
        Ok(rest) => (Some(rest.operation), answer(context, &rest).await),
        Err(fault) => (None, Err(fault)),
    };
    match answered {
        Ok(response) => (operation, response),
        Err(fault) => {
            let mut response = refused(&fault, &method, &context.request_id);
            // HTTP/2 has no connection to close: it ends the stream.
            if !incoming.drain().await && version < Version::HTTP_2 {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            (operation, response)
        }
    }
}

async fn answer(context: &Context, rest: &Rest) -> Result<Response<Body>, Fault> {
    rest.check_demands()?;
    let mut response = call(context, rest).await?;
    rest.repeat_demands(response.headers_mut());
    Ok(response)
}

/// The head of a request becomes a request, if its signature lets it.
fn rest(
    context: &Context,
    entrance: &Entrance<'_>,
    mut parts: Parts,
    incoming: Incoming,
) -> Result<Rest, Fault> {
    let target = Target::of(&parts, entrance.hosts)?;
    let query = Query::parse(parts.uri.query().unwrap_or(""))?;
    if is_form(&parts, &target, &query) {
        return Err(errors::not_implemented("a form with a policy"));
    }
    let seed = admit(context, entrance, &mut parts, &query)?;
    let operation = route::operation(&parts.method, &target, &query, &parts.headers)?;
    let payload = Payload::new(&parts.headers, seed, incoming)?;
    Ok(Rest { operation, target, query, headers: parts.headers, payload })
}

/// Whether a request is a form that a web page sends, whose signature stands in its fields.
fn is_form(parts: &Parts, target: &Target, query: &Query) -> bool {
    let content_type = parts.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
    let kind = content_type.split(';').next().unwrap_or("").trim();
    let posted = parts.method == Method::POST && matches!(target, Target::Bucket(_)) && !query.has("delete");
    posted && kind.eq_ignore_ascii_case("multipart/form-data")
}

/// Lets a request in, and brings what an address says in its query to where operations look for it.
fn admit(
    context: &Context,
    entrance: &Entrance<'_>,
    parts: &mut Parts,
    query: &Query,
) -> Result<Option<Seed>, Fault> {
    let text = parts.uri.query().unwrap_or("");
    let (older, presigned) = (is_address(text), is_presigned(text));
    if presigned {
        forget_unsigned_hash(&mut parts.headers, query);
    }
    let now = context.clock.now();
    let admitted = if older {
        let bucket = bucket_in_host(parts, entrance.hosts);
        verify_address(entrance.keys, now, parts, bucket.as_deref()).map(|()| None)
    } else {
        let payload = headers::text(&parts.headers, "x-amz-content-sha256")?;
        let payload = payload.or_else(|| query.get("X-Amz-Content-Sha256")).unwrap_or("UNSIGNED-PAYLOAD");
        verify(entrance.keys, now, parts, "s3", payload)
    };
    let seed = admitted.map_err(|refusal| refusal.fault(Service::S3))?;
    if older || presigned {
        hoisted(&mut parts.headers, query);
    }
    Ok(seed)
}

/// A fault as S3 spells it. Answers to HEAD have no body, and neither has the one that nothing has changed.
fn refused(fault: &Fault, method: &Method, request_id: &str) -> Response<Body> {
    let response = render_fault(fault, Service::S3, Protocol::Xml, request_id);
    if method != Method::HEAD {
        return response;
    }
    let nothing = Empty::new().map_err(|never| match never {}).boxed_unsync();
    Response::from_parts(response.into_parts().0, nothing)
}
