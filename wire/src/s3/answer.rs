//! Answers: documents, objects, and those that say nothing.

use anabranch_model::blob::{self, BlobMeta, Header};
use bytes::Bytes;
use futures_util::StreamExt;
use http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LAST_MODIFIED,
};
use http::{HeaderMap, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, StreamBody};

use super::errors::invalid_argument;
use super::headers::{describe, name_of, set};
use super::moment::http_date;
use super::query::Query;
use super::xml::Xml;
use crate::context::ACCOUNT;
use crate::fault::Fault;
use crate::protocol::Protocol;
use crate::receive::{Body, BodyError};

/// What an object contains if its writer does not say.
const CONTENT_TYPE_DEFAULT: &str = "binary/octet-stream";

/// A document.
pub(super) fn document(name: &str, content: impl FnOnce(&mut Xml)) -> Response<Body> {
    Protocol::Xml.response(StatusCode::OK, Xml::document(name, content).into_bytes())
}

/// An answer without a body.
pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// An answer with a body in pieces. One that cannot be read to its end breaks the connection off.
pub(super) fn streamed(status: StatusCode, body: blob::Body) -> Response<Body> {
    let frames = body.map(|piece: anabranch_model::Result<Bytes>| {
        piece.map(Frame::data).map_err(|error| BodyError(Box::new(error)))
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// The header that tells the whole name of a bucket.
pub(super) const ARN: HeaderName = HeaderName::from_static("x-amz-bucket-arn");

/// The whole name of a bucket.
pub(super) fn arn(bucket: &blob::BucketName) -> String {
    format!("arn:aws:s3:::{bucket}")
}

/// A tag as headers and documents have it.
pub(super) fn quoted(etag: &blob::ETag) -> String {
    format!("\"{etag}\"")
}

/// Adds an object's tag and moment to an answer.
pub(super) fn identify(headers: &mut HeaderMap, meta: &BlobMeta) {
    set(headers, ETAG, &quoted(&meta.etag));
    set(headers, LAST_MODIFIED, &http_date(meta.modified_at));
}

/// The head of an answer about an object. What the query asks for stands in place of what the writer said.
pub(super) fn head(
    headers: &mut HeaderMap,
    meta: &BlobMeta,
    length: u64,
    query: &Query,
) -> Result<(), Fault> {
    identify(headers, meta);
    set(headers, CONTENT_TYPE, CONTENT_TYPE_DEFAULT);
    set(headers, ACCEPT_RANGES, "bytes");
    headers.insert(CONTENT_LENGTH, length.into());
    describe(headers, &meta.properties);
    let mut names = Header::ALL.map(name_of);
    names.sort_by(|one, other| one.as_str().cmp(other.as_str()));
    for name in names {
        let argument = format!("response-{name}");
        if let Some(text) = query.filled(&argument) {
            headers.insert(name, latin(&argument, text)?);
        }
    }
    Ok(())
}

/// A header that is asked for has one byte for each character.
fn latin(argument: &str, text: &str) -> Result<HeaderValue, Fault> {
    let bytes: Result<Vec<u8>, _> = text.chars().map(u8::try_from).collect();
    let value = bytes.ok().and_then(|bytes| HeaderValue::from_bytes(&bytes).ok());
    value.ok_or_else(|| {
        invalid_argument(argument, text, "Header value cannot be represented using ISO-8859-1.")
    })
}

/// The owner of everything.
pub(super) fn owner(xml: &mut Xml, element: &str) {
    xml.element(element, |xml| {
        xml.value("ID", ACCOUNT);
        // Names are told only of those who began an upload.
        if element == "Initiator" {
            xml.value("DisplayName", ACCOUNT);
        }
    });
}
