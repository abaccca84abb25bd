//! Addresses of S3 that are signed in the way before the present one, which boto3 and version 1 of the AWS CLI still take
//! where nobody tells them otherwise: `AWSAccessKeyId`, `Expires` and `Signature` in the query.
//!
//! What is signed is the method, the headers that say what a body is, every header of AWS, and the resource: the path as it
//! is sent, behind the bucket, with the names in the query that make another resource of it.

use anabranch_model::Timestamp;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::request::Parts;
use percent_encoding::percent_decode_str;
use sha1::Sha1;
use subtle::ConstantTimeEq;

use super::keys::Keys;
use super::refusal::Refusal;

/// The names in a query that are signed. Of all else in it the signer said nothing.
const SIGNED: &[&str] = &[
    "accelerate",
    "acl",
    "analytics",
    "cors",
    "defaultObjectAcl",
    "delete",
    "inventory",
    "lifecycle",
    "location",
    "logging",
    "metrics",
    "notification",
    "object-lock",
    "partNumber",
    "policy",
    "replication",
    "requestPayment",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "restore",
    "select",
    "select-type",
    "storageClass",
    "tagging",
    "torrent",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
    "website",
];

const KEY: &str = "AWSAccessKeyId";
const EXPIRES: &str = "Expires";
const SIGNATURE: &str = "Signature";

/// Whether the query carries such a signature, or a part of one.
pub(crate) fn is_address(query: &str) -> bool {
    pairs(query).any(|(name, _)| name == KEY || name == SIGNATURE)
}

/// Lets an address in, or says why not. `bucket` is the one that the host names.
pub(crate) fn verify_address(
    keys: &Keys,
    now: Timestamp,
    parts: &Parts,
    bucket: Option<&str>,
) -> Result<(), Refusal> {
    let query = parts.uri.query().unwrap_or("");
    if parts.headers.contains_key(AUTHORIZATION) || super::is_presigned(query) {
        return Err(Refusal::Twice);
    }
    let field = |wanted: &str| {
        let value = pairs(query).find(|(name, _)| *name == wanted).map(|(_, value)| decoded(value));
        value.ok_or_else(|| {
            denied(
                "Query-string authentication requires the Signature, Expires and AWSAccessKeyId parameters",
            )
        })
    };
    let (key, expires, signature) = (field(KEY)?, field(EXPIRES)?, field(SIGNATURE)?);
    let until = expires.parse::<u64>();
    let until =
        until.map_err(|_| denied(format!("Invalid date (should be seconds since epoch): {expires}")))?;
    if now.as_millis() / 1000 > until {
        return Err(Refusal::Expired);
    }
    if keys.is_empty() {
        return Ok(());
    }
    let secret = keys.secret(&key).ok_or_else(|| Refusal::UnknownKey(key.clone()))?;
    let admits = |path: &String| {
        let text = canonical(parts, &expires, path)?;
        let mac = Hmac::<Sha1>::new_from_slice(secret.as_bytes());
        let mut mac = mac.unwrap_or_else(|error| unreachable!("a key may have any length: {error}"));
        mac.update(text.as_bytes());
        let expected = STANDARD.encode(mac.finalize().into_bytes());
        bool::from(expected.as_bytes().ct_eq(signature.as_bytes())).then_some(())
    };
    paths(parts, bucket).iter().find_map(admits).ok_or(Refusal::Mismatch)
}

/// The path behind the bucket, as it may be signed. Behind a bucket alone some sign a slash that they do not send.
fn paths(parts: &Parts, bucket: Option<&str>) -> Vec<String> {
    let path = parts.uri.path();
    match bucket {
        Some(bucket) => vec![format!("/{bucket}{path}")],
        None if path.rfind('/') == Some(0) && path.len() > 1 => vec![format!("{path}/"), path.to_owned()],
        None => vec![path.to_owned()],
    }
}

/// The request as it is signed; none if one of its headers is no text.
fn canonical(parts: &Parts, expires: &str, path: &str) -> Option<String> {
    let header = |name: &str| match parts.headers.get(name) {
        Some(value) => std::str::from_utf8(value.as_bytes()).ok().map(str::trim),
        None => Some(""),
    };
    let (md5, content_type) = (header("content-md5")?, header(CONTENT_TYPE.as_str())?);
    let mut text = format!("{}\n{md5}\n{content_type}\n{expires}\n", parts.method);
    for (name, value) in headers_of_aws(parts)? {
        text.push_str(&format!("{name}:{value}\n"));
    }
    text.push_str(path);
    let mut signed: Vec<_> =
        pairs(parts.uri.query().unwrap_or("")).filter(|(name, _)| SIGNED.contains(name)).collect();
    signed.sort_by_key(|(name, _)| *name);
    for (number, (name, value)) in signed.into_iter().enumerate() {
        text.push(if number == 0 { '?' } else { '&' });
        text.push_str(name);
        if let Some(value) = value {
            text.push('=');
            text.push_str(&decoded(Some(value)));
        }
    }
    Some(text)
}

/// The headers of AWS with their values, in order. In an address they may stand in the query.
fn headers_of_aws(parts: &Parts) -> Option<Vec<(String, String)>> {
    let mut found: Vec<(String, String)> = Vec::new();
    for name in parts.headers.keys().map(|name| name.as_str()).filter(|name| name.starts_with("x-amz-")) {
        let values = parts.headers.get_all(name).iter();
        let values: Result<Vec<_>, _> = values.map(|value| std::str::from_utf8(value.as_bytes())).collect();
        let values: Vec<_> = values.ok()?.into_iter().map(str::trim).collect();
        found.push((name.to_owned(), values.join(",")));
    }
    for (name, value) in pairs(parts.uri.query().unwrap_or("")) {
        let name = name.to_ascii_lowercase();
        if name.starts_with("x-amz-") && !found.iter().any(|(known, _)| *known == name) {
            found.push((name, decoded(value).trim().to_owned()));
        }
    }
    found.sort();
    Some(found)
}

/// The names of a query with their values, as they are sent.
fn pairs(query: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    query.split('&').filter(|pair| !pair.is_empty()).map(|pair| match pair.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (pair, None),
    })
}

fn decoded(value: Option<&str>) -> String {
    let text = value.unwrap_or("").replace('+', " ");
    percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

fn denied(why: impl Into<String>) -> Refusal {
    Refusal::Denied(why.into())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    /// The example that AWS publishes.
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    const ADDRESS: &str = "/photos/puppy.jpg?AWSAccessKeyId=AKIAIOSFODNN7EXAMPLE\
                           &Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620";
    const UNTIL: u64 = 1_175_139_620;

    fn verified(secret: &str, now: u64, uri: &str, bucket: Option<&str>) -> Result<(), Refusal> {
        let keys = Keys::new([("AKIAIOSFODNN7EXAMPLE".to_owned(), secret.to_owned())]);
        let parts = Request::get(uri).body(()).unwrap().into_parts().0;
        verify_address(&keys, Timestamp::from_millis(now * 1_000), &parts, bucket)
    }

    #[test]
    fn the_published_example_is_let_in_until_its_time_is_over() {
        let bucket = Some("johnsmith");
        assert_eq!(verified(SECRET, UNTIL, ADDRESS, bucket), Ok(()));
        assert_eq!(verified(SECRET, UNTIL, &ADDRESS.replacen("/", "/johnsmith/", 1), None), Ok(()));
        assert_eq!(verified(SECRET, UNTIL + 1, ADDRESS, bucket), Err(Refusal::Expired));
        assert_eq!(verified("another", UNTIL, ADDRESS, bucket), Err(Refusal::Mismatch));
        assert_eq!(verified(SECRET, UNTIL, ADDRESS, Some("john")), Err(Refusal::Mismatch));
        let parts = Request::get(ADDRESS).body(()).unwrap().into_parts().0;
        let without_keys =
            |now: u64| verify_address(&Keys::default(), Timestamp::from_millis(now), &parts, None);
        assert_eq!(without_keys(UNTIL * 1_000), Ok(()));
        assert_eq!(without_keys(UNTIL * 1_000 + 1_000), Err(Refusal::Expired), "also without keys");
        for change in ["&acl", "&response-expires=x", "&x-amz-acl=private"] {
            let changed = format!("{ADDRESS}{change}");
            assert_eq!(verified(SECRET, UNTIL, &changed, bucket), Err(Refusal::Mismatch), "{change}");
        }
    }

    #[test]
    fn names_that_are_signed_stand_in_order() {
        assert!(SIGNED.is_sorted());
        for other in ["", "prefix=Signature", "X-Amz-Signature=a", "a=AWSAccessKeyId"] {
            assert!(!is_address(other), "{other}");
        }
    }
}
