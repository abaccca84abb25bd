//! Whether a request was signed by somebody who holds a key.

use std::time::Duration;

use anabranch_model::Timestamp;
use http::header::HOST;
use http::request::Parts;

use super::canonical::AUTHORITY;
use super::claim::{self, Claim};
use super::keys::Keys;
use super::refusal::Refusal;
use super::seed::Seed;
use super::{canonical, is_address, is_presigned};

/// How far the clocks of both sides may be apart.
const SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// Lets a request in, or says why not. `payload` is the hash of its body, or what stands for it. With keys, what the
/// chunks of the body are compared with comes back.
pub(crate) fn verify(
    keys: &Keys,
    now: Timestamp,
    parts: &Parts,
    service: &str,
    payload: &str,
) -> Result<Option<Seed>, Refusal> {
    if keys.is_empty() {
        return check_expiry(now, parts).map(|()| None);
    }
    let claim = claimed(now, parts)?;
    if claim.scope.service != service {
        return Err(Refusal::OtherService(claim.scope.service));
    }
    check_hash(parts, &claim, service)?;
    check_coverage(parts, &claim)?;
    let secret = secret(keys, &claim)?;
    let mut seed = Seed::new(secret, &claim.scope, &claim.date);
    let signed: Vec<&str> = claim.signed_headers.iter().map(String::as_str).collect();
    // Only S3 signs paths as they are sent.
    let canonical = canonical::request(parts, &signed, payload, service != "s3").ok_or(Refusal::Mismatch)?;
    if !seed.admits(&canonical, &claim.signature) {
        return Err(Refusal::Mismatch);
    }
    Ok(Some(seed))
}

/// Whether a request claims to come from somebody who holds a key, before its body has come.
pub(crate) fn check_head(keys: &Keys, now: Timestamp, parts: &Parts) -> Result<(), Refusal> {
    if keys.is_empty() {
        return Ok(());
    }
    secret(keys, &claimed(now, parts)?).map(drop)
}

/// What a request says about its signature, if it is not too old.
fn claimed(now: Timestamp, parts: &Parts) -> Result<Claim, Refusal> {
    let Some(claim) = claim::of(parts)? else {
        let legacy = is_address(parts.uri.query().unwrap_or(""));
        return Err(if legacy { Refusal::Unsupported } else { Refusal::Missing });
    };
    check_time(now, &claim)?;
    Ok(claim)
}

fn secret<'k>(keys: &'k Keys, claim: &Claim) -> Result<&'k str, Refusal> {
    let key = &claim.scope.access_key;
    keys.secret(key).ok_or_else(|| Refusal::UnknownKey(key.clone()))
}

/// An address that is good until a moment is so for those without keys, too.
fn check_expiry(now: Timestamp, parts: &Parts) -> Result<(), Refusal> {
    if !is_presigned(parts.uri.query().unwrap_or("")) {
        return Ok(());
    }
    claim::of(parts)?.map_or(Ok(()), |claim| check_time(now, &claim))
}

fn check_time(now: Timestamp, claim: &Claim) -> Result<(), Refusal> {
    if now.plus(SKEW_MAX) < claim.moment {
        return Err(Refusal::Skewed);
    }
    match claim.expires {
        Some(expires) if claim.moment.plus(expires) < now => Err(Refusal::Expired),
        None if claim.moment.plus(SKEW_MAX) < now => Err(Refusal::Skewed),
        _ => Ok(()),
    }
}

/// Whoever signs a header for S3 says what the body is. An address is signed before there is a body.
fn check_hash(parts: &Parts, claim: &Claim, service: &str) -> Result<(), Refusal> {
    let says = claim.expires.is_some() || parts.headers.contains_key("x-amz-content-sha256");
    if service == "s3" && !says { Err(Refusal::Unhashed) } else { Ok(()) }
}

/// The host and every header of AWS are signed, so that nobody on the way can change what is done. Where there is no header
/// `Host`, which would say where the request goes, its other name in HTTP/2 will do.
fn check_coverage(parts: &Parts, claim: &Claim) -> Result<(), Refusal> {
    let signed = |name: &str| claim.signed_headers.iter().any(|signed| signed == name);
    let host = if !parts.headers.contains_key(HOST) && signed(AUTHORITY) { AUTHORITY } else { "host" };
    let own = parts.headers.keys().map(|name| name.as_str()).filter(|name| name.starts_with("x-amz-"));
    match std::iter::once(host).chain(own).find(|name| !signed(name)) {
        Some(name) => Err(Refusal::Unsigned(name.to_owned())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use sha2::{Digest, Sha256};

    use super::*;

    /// The examples that AWS publishes for S3.
    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
    const KEY: &str = "AKIAIOSFODNN7EXAMPLE";
    const NOON: u64 = 1_369_353_600_000; // 2013-05-24T00:00:00Z
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn keys() -> Keys {
        Keys::new([(KEY.to_owned(), SECRET.to_owned())])
    }

    fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap().into_parts().0
    }

    fn get_object(signature: &str) -> Parts {
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={KEY}/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature={signature}"
        );
        let headers = [
            ("host", "examplebucket.s3.amazonaws.com"),
            ("range", "bytes=0-9"),
            ("x-amz-content-sha256", EMPTY),
            ("x-amz-date", "20130524T000000Z"),
            ("authorization", &authorization),
        ];
        request("GET", "/test.txt", &headers)
    }

    const GOOD: &str = "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41";

    fn refusal(now: u64, parts: &Parts) -> Refusal {
        match verify(&keys(), Timestamp::from_millis(now), parts, "s3", EMPTY) {
            Err(refusal) => refusal,
            Ok(_) => panic!("it was let in"),
        }
    }

    #[test]
    fn the_published_example_of_a_header_is_let_in_and_nothing_else() {
        let good = get_object(GOOD);
        assert!(
            verify(&keys(), Timestamp::from_millis(NOON), &good, "s3", EMPTY)
                .is_ok_and(|seed| seed.is_some())
        );
        for signature in [&GOOD[1..], &GOOD.to_uppercase(), "", &format!("{GOOD}0")] {
            assert_eq!(refusal(NOON, &get_object(signature)), Refusal::Mismatch);
        }
        assert_eq!(refusal(NOON + 901_000, &good), Refusal::Skewed);
        assert_eq!(refusal(NOON - 901_000, &good), Refusal::Skewed);
        for (name, value) in [("range", "bytes=0-8"), ("x-amz-content-sha256", ""), ("host", "elsewhere")] {
            let mut changed = get_object(GOOD);
            changed.headers.insert(name, value.parse().unwrap());
            assert_eq!(refusal(NOON, &changed), Refusal::Mismatch, "{name}");
        }
        let mut added = get_object(GOOD);
        added.headers.insert("x-amz-acl", "public-read".parse().unwrap());
        assert_eq!(refusal(NOON, &added), Refusal::Unsigned("x-amz-acl".into()));
        let (mut unsigned, mut other) = (get_object(GOOD), get_object(GOOD));
        unsigned.headers.remove("authorization");
        assert_eq!(refusal(NOON, &unsigned), Refusal::Missing);
        let stranger = other.headers["authorization"].to_str().unwrap().replace(KEY, "AKIDOTHER");
        other.headers.insert("authorization", stranger.parse().unwrap());
        assert_eq!(refusal(NOON, &other), Refusal::UnknownKey("AKIDOTHER".into()));
        let mut silent = get_object(GOOD);
        silent.headers.remove("x-amz-content-sha256");
        assert_eq!(refusal(NOON, &silent), Refusal::Unhashed);
        let seed = verify(&keys(), Timestamp::from_millis(NOON), &good, "kinesis", EMPTY);
        assert!(matches!(seed, Err(Refusal::OtherService(_))));
    }

    fn presigned(expires: &str) -> Parts {
        let uri = format!(
            "/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={KEY}%2F20130524%2Fus-east-1%2Fs3%2F\
             aws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires={expires}&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        );
        request("GET", &uri, &[("host", "examplebucket.s3.amazonaws.com")])
    }

    #[test]
    fn the_published_example_of_an_address_is_let_in_until_it_expires() {
        let unsigned = "UNSIGNED-PAYLOAD";
        let at = |now: u64, keys: &Keys, parts: &Parts| {
            verify(keys, Timestamp::from_millis(now), parts, "s3", unsigned).map(|seed| seed.is_some())
        };
        let good = presigned("86400");
        assert_eq!(at(NOON, &keys(), &good), Ok(true));
        assert_eq!(at(NOON + 86_400_000, &keys(), &good), Ok(true));
        assert_eq!(at(NOON + 86_401_000, &keys(), &good), Err(Refusal::Expired));
        assert_eq!(
            at(NOON + 86_401_000, &Keys::default(), &good),
            Err(Refusal::Expired),
            "also without keys"
        );
        assert_eq!(at(NOON, &keys(), &presigned("86401")), Err(Refusal::Mismatch));
        assert_eq!(at(NOON, &Keys::default(), &presigned("86401")), Ok(false));
        let old = request("GET", "/b/k?AWSAccessKeyId=a&Signature=b&Expires=1369353600", &[]);
        assert_eq!(at(NOON, &keys(), &old), Err(Refusal::Unsupported));
    }

    #[test]
    fn the_published_example_of_chunks_is_a_chain() {
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={KEY}/20130524/us-east-1/s3/aws4_request,SignedHeaders=content-encoding;\
             content-length;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;x-amz-storage-class,\
             Signature=4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"
        );
        let payload = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
        let headers = [
            ("host", "s3.amazonaws.com"),
            ("x-amz-date", "20130524T000000Z"),
            ("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ("authorization", &authorization),
            ("x-amz-content-sha256", payload),
            ("content-encoding", "aws-chunked"),
            ("x-amz-decoded-content-length", "66560"),
            ("content-length", "66824"),
        ];
        let parts = request("PUT", "/examplebucket/chunkObject.txt", &headers);
        let seed = verify(&keys(), Timestamp::from_millis(NOON), &parts, "s3", payload);
        let Ok(Some(mut seed)) = seed else { panic!("the head is not let in") };
        let chunk = |bytes: usize| Sha256::new_with_prefix(vec![b'a'; bytes]);
        for (bytes, signature) in [
            (65_536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648"),
            (1_024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497"),
            (0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9"),
        ] {
            assert!(!seed.clone().admits_chunk(chunk(bytes + 1), signature));
            assert!(seed.admits_chunk(chunk(bytes), signature), "{bytes}");
        }
    }
}
