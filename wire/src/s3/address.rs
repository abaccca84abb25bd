//! Which bucket and which object a request is about: by its path, or by its host and its path.
//!
//! ```text
//!   http://localhost:4566/photos/2026/a.jpg      the path has the bucket
//!   http://photos.localhost:4566/2026/a.jpg      the host has the bucket
//! ```

use anabranch_model::blob::{BlobKey, BucketName};
use anabranch_model::limits::BLOB_KEY_BYTES_MAX;
use http::header::HOST;
use http::request::Parts;

use super::errors::{invalid_version, not_implemented, with};
use super::query::decode;
use crate::fault::Fault;

const OBJECT_LAMBDA: &str = "WriteGetObjectResponse";

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// All buckets.
    Service,
    /// A bucket.
    Bucket(BucketName),
    /// An object in a bucket.
    Object(BucketName, BlobKey),
}

impl Target {
    /// What a request is about. `hosts` are the names whose subdomains are buckets.
    pub(super) fn of(parts: &Parts, hosts: &[String]) -> Result<Target, Fault> {
        let path = parts.uri.path();
        let path = path.strip_prefix('/').unwrap_or(path);
        let (bucket, key) = match bucket_in_host(parts, hosts) {
            Some(bucket) => (bucket, path),
            None => match path.split_once('/') {
                Some((bucket, key)) => (decode(bucket)?, key),
                None => (decode(path)?, ""),
            },
        };
        match (bucket.as_str(), key) {
            ("", "") => Ok(Target::Service),
            // The only operation that stands in the place of a bucket, which cannot have this name.
            (OBJECT_LAMBDA, "") => Err(not_implemented(OBJECT_LAMBDA)),
            (bucket, "") => Ok(Target::Bucket(bucket_name(bucket)?)),
            (bucket, key) => Ok(Target::Object(bucket_name(bucket)?, blob_key(&decode(key)?)?)),
        }
    }
}

/// The bucket and the key in the header of a copy: `bucket/key`, with a slash before it or not.
pub(super) fn copy_source(text: &str) -> Result<(BucketName, BlobKey), Fault> {
    let refused = || {
        let fault = Fault::client("InvalidArgument", "Invalid copy source object key");
        let header = "x-amz-copy-source".to_owned();
        with(with(fault, "ArgumentName", header.clone()), "ArgumentValue", header)
    };
    let (path, version) = match text.split_once("?versionId=") {
        Some((path, version)) => (path, Some(version)),
        None => (text, None),
    };
    if version.is_some_and(|version| version != "null") {
        return Err(invalid_version(version.unwrap_or("")));
    }
    // Unlike in an address, a plus sign is a space here, as in a form: some clients write it so.
    let path = decode(&path.replace('+', " "))?;
    let path = path.strip_prefix('/').unwrap_or(&path);
    let (bucket, key) = path
        .split_once('/')
        .filter(|(bucket, key)| !bucket.is_empty() && !key.is_empty())
        .ok_or_else(refused)?;
    Ok((bucket_name(bucket)?, blob_key(key)?))
}

/// The name of a bucket.
pub(super) fn bucket_name(name: &str) -> Result<BucketName, Fault> {
    BucketName::new(name).map_err(|_| {
        let shown: String = name.chars().take(128).collect();
        with(Fault::client("InvalidBucketName", "The specified bucket is not valid."), "BucketName", shown)
    })
}

/// The key of an object.
pub(super) fn blob_key(key: &str) -> Result<BlobKey, Fault> {
    BlobKey::new(key).map_err(|_| {
        let fault = Fault::client("KeyTooLongError", "Your key is too long");
        with(with(fault, "Size", key.len().to_string()), "MaxSizeAllowed", BLOB_KEY_BYTES_MAX.to_string())
    })
}

/// The host in lower case and without its port. HTTP/2 names it in place of the header.
fn host(parts: &Parts) -> Option<String> {
    let header = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = header.or_else(|| parts.uri.authority().map(|authority| authority.as_str()))?;
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    Some(name.to_ascii_lowercase())
}

/// The bucket that the host of a request names, if it does.
pub(super) fn bucket_in_host(parts: &Parts, hosts: &[String]) -> Option<String> {
    bucket_of_host(&host(parts)?, hosts)
}

/// The bucket that a host names, if it does: what stands before the name of the service and the name of the server.
fn bucket_of_host(host: &str, hosts: &[String]) -> Option<String> {
    let before = hosts.iter().find_map(|own| host.strip_suffix(own.as_str())?.strip_suffix('.'))?;
    let mut labels: Vec<&str> = before.split('.').collect();
    // `s3` and `s3.eu-west-1` are the service, with or without a bucket before them.
    match labels.as_slice() {
        [.., "s3"] => labels.truncate(labels.len() - 1),
        [.., "s3", region] if region.contains('-') => labels.truncate(labels.len() - 2),
        _ => {}
    }
    (!labels.is_empty()).then(|| labels.join("."))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn target(host: &str, path: &str) -> Result<(String, String), String> {
        let parts = Request::get(path).header("host", host).body(()).unwrap().into_parts().0;
        match Target::of(&parts, &["localhost".to_owned()]) {
            Ok(Target::Service) => Ok(("".into(), "".into())),
            Ok(Target::Bucket(bucket)) => Ok((bucket.as_str().into(), "".into())),
            Ok(Target::Object(bucket, key)) => Ok((bucket.as_str().into(), key.as_str().into())),
            Err(fault) => Err(fault.code.into_owned()),
        }
    }

    fn pair(bucket: &str, key: &str) -> Result<(String, String), String> {
        Ok((bucket.into(), key.into()))
    }

    #[test]
    fn the_path_or_the_host_has_the_bucket() {
        for host in [
            "localhost:4566",
            "127.0.0.1:4566",
            "[::1]:4566",
            "LOCALHOST",
            "s3.localhost:1",
            "s3.eu-west-1.localhost",
        ] {
            assert_eq!(target(host, "/"), pair("", ""), "{host}");
            assert_eq!(target(host, "/photos"), pair("photos", ""), "{host}");
            assert_eq!(target(host, "/photos/"), pair("photos", ""), "{host}");
            assert_eq!(target(host, "/photos/a/b"), pair("photos", "a/b"), "{host}");
        }
        for host in [
            "photos.localhost:4566",
            "Photos.LocalHost",
            "photos.s3.localhost",
            "photos.s3.us-east-1.localhost:9",
        ] {
            assert_eq!(target(host, "/"), pair("photos", ""), "{host}");
            assert_eq!(target(host, "/a/b?x"), pair("photos", "a/b"), "{host}");
        }
        assert_eq!(target("my.dotted.bucket.localhost", "/k"), pair("my.dotted.bucket", "k"));
        let http2 = Request::get("http://photos.localhost:4566/k").body(()).unwrap().into_parts().0;
        assert!(matches!(Target::of(&http2, &["localhost".to_owned()]), Ok(Target::Object(..))));
    }

    #[test]
    fn keys_are_decoded_once_and_nothing_is_normalised() {
        for (path, key) in [
            ("/photos//", "/"),
            ("/photos//a", "/a"),
            ("/photos/a//b/", "a//b/"),
            ("/photos/../../etc/passwd", "../../etc/passwd"),
            ("/photos/%2e%2e/%2E", "../."),
            ("/photos/./a", "./a"),
            ("/photos/%2525", "%25"),
            ("/photos/a+b%20c%2Bd", "a+b c+d"),
            ("/photos/%00%0a%7f", "\0\n\u{7f}"),
            ("/photos/e%CC%81", "e\u{301}"),
            ("/photos/%C3%A9", "é"),
            ("/photos/a%2Fb%3F%23", "a/b?#"),
        ] {
            assert_eq!(target("localhost", path), pair("photos", key), "{path}");
        }
        let longest = format!("/photos/{}", "x".repeat(1_024));
        assert_eq!(target("localhost", &longest).unwrap().1.len(), 1_024);
        assert_eq!(target("localhost", &format!("{longest}x")), Err("KeyTooLongError".into()));
        for path in ["/photos/%ff", "/photos/%", "/photos/%e", "/photos/%c3", "/%ff/k"] {
            assert_eq!(target("localhost", path), Err("InvalidURI".into()), "{path}");
        }
        for path in ["/ab", "/UPPER/k", "/..", "/a_b/k", "//k", "/192.168.0.1/k", "/%2fbucket"] {
            assert_eq!(target("localhost", path), Err("InvalidBucketName".into()), "{path}");
        }
        assert_eq!(target("localhost", "/WriteGetObjectResponse"), Err("NotImplemented".into()));
    }

    #[test]
    fn the_source_of_a_copy_has_a_bucket_and_a_key() {
        for (text, key) in [
            ("photos/a/b", "a/b"),
            ("/photos/a%20b", "a b"),
            ("photos%2Fa%252F", "a%2F"),
            ("photos/a+b%2Bc", "a b+c"),
            ("photos//a", "/a"),
            ("/photos/a?versionId=null", "a"),
        ] {
            let (bucket, found) = copy_source(text).unwrap();
            assert_eq!((bucket.as_str(), found.as_str()), ("photos", key), "{text}");
        }
        for text in ["", "/", "photos", "photos/", "//a", "photos/a?versionId=3", "photos/%ff"] {
            assert!(copy_source(text).is_err(), "{text}");
        }
    }
}
