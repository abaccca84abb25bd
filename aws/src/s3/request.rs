//! A request before it is signed.
//!
//! What must hold: a key stands in the path byte for byte, with everything escaped but letters, digits, `-._~` and the
//! slash, which is how signatures spell it. Nothing tidies the path up: `..` and `//` are parts of keys.

use anabranch_model::{BlobKey, BucketName};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::place::Place;

/// What is escaped in the value of a query.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What is escaped in a path.
const IN_PATH: &AsciiSet = &IN_QUERY.remove(b'/');

/// A request. Cheap to clone: attempts send the same.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) method: &'static str,
    bucket: Option<BucketName>,
    key: Option<BlobKey>,
    query: Vec<(&'static str, String)>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
}

impl Request {
    /// To the service as a whole.
    pub(super) fn new(method: &'static str) -> Self {
        Request {
            method,
            bucket: None,
            key: None,
            query: Vec::new(),
            headers: Vec::new(),
            body: Bytes::new(),
        }
    }

    pub(super) fn bucket(method: &'static str, bucket: &BucketName) -> Self {
        Request { bucket: Some(bucket.clone()), ..Request::new(method) }
    }

    pub(super) fn blob(method: &'static str, bucket: &BucketName, key: &BlobKey) -> Self {
        Request { key: Some(key.clone()), ..Request::bucket(method, bucket) }
    }

    /// Adds a part of the query; one without a value is a name only.
    pub(super) fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((name, value.into()));
        self
    }

    /// Adds a part of the query if there is something to say.
    pub(super) fn query_if(self, name: &'static str, value: Option<String>) -> Self {
        match value.filter(|value| !value.is_empty()) {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    pub(super) fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(super) fn header_if(self, name: &str, value: Option<String>) -> Self {
        match value {
            Some(value) => self.header(name, value),
            None => self,
        }
    }

    pub(super) fn headers(mut self, headers: impl IntoIterator<Item = (String, String)>) -> Self {
        self.headers.extend(headers);
        self
    }

    pub(super) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// The whole address.
    pub(super) fn uri(&self, place: &Place) -> String {
        let mut uri = place.address(self.bucket.as_ref());
        uri.push('/');
        if let Some(key) = &self.key {
            uri.extend(utf8_percent_encode(key.as_str(), IN_PATH));
        }
        for (number, (name, value)) in self.query.iter().enumerate() {
            uri.push(if number == 0 { '?' } else { '&' });
            uri.push_str(name);
            if !value.is_empty() {
                uri.push('=');
                uri.extend(utf8_percent_encode(value, IN_QUERY));
            }
        }
        uri
    }
}

/// A blob as the header that names the source of a copy.
pub(super) fn copy_source(bucket: &BucketName, key: &BlobKey) -> String {
    format!("{}/{}", bucket.as_str(), utf8_percent_encode(key.as_str(), IN_PATH))
}
