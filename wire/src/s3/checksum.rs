//! The checksums of S3: what they are called, and how they are spelled.

use anabranch_model::blob::{Checksum, ChecksumAlgorithm, ChecksumScope, Checksums};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderMap;

use super::errors::{invalid, invalid_request, not_implemented, with};
use super::headers::{set, text};
use super::xml::{Element, Xml};
use crate::fault::Fault;

/// The header that says what a checksum was computed from.
pub(super) const TYPE: http::HeaderName = http::HeaderName::from_static("x-amz-checksum-type");
/// What stands before the name of a checksum in a header.
const PREFIX: &str = "x-amz-checksum-";
/// Headers that begin like a checksum and are none.
const OTHERS: [&str; 3] = ["x-amz-checksum-algorithm", "x-amz-checksum-type", "x-amz-checksum-mode"];

/// The name in headers and documents.
pub(super) fn name(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "CRC32",
        ChecksumAlgorithm::Crc32c => "CRC32C",
        ChecksumAlgorithm::Crc64Nvme => "CRC64NVME",
        ChecksumAlgorithm::Sha1 => "SHA1",
        ChecksumAlgorithm::Sha256 => "SHA256",
    }
}

/// Algorithms of S3 that nobody computes here.
const UNKNOWN: [&str; 5] = ["MD5", "SHA512", "XXHASH128", "XXHASH3", "XXHASH64"];

/// The algorithm of this name.
pub(super) fn algorithm(text: &str) -> Result<ChecksumAlgorithm, Fault> {
    let found =
        ChecksumAlgorithm::ALL.into_iter().find(|algorithm| name(*algorithm).eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        if UNKNOWN.iter().any(|name| name.eq_ignore_ascii_case(text)) {
            return not_implemented(text);
        }
        invalid_request(
            "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, \
             CRC64NVME, SHA1, SHA256]",
        )
    })
}

/// The algorithm that a header of a request names.
pub(super) fn named(headers: &HeaderMap, header: &str) -> Result<Option<ChecksumAlgorithm>, Fault> {
    text(headers, header)?.filter(|name| !name.is_empty()).map(algorithm).transpose()
}

/// What the names of scopes are.
pub(super) fn scope_name(scope: ChecksumScope) -> &'static str {
    match scope {
        ChecksumScope::Body => "FULL_OBJECT",
        ChecksumScope::Parts => "COMPOSITE",
    }
}

/// What the checksum of an object in parts is computed from where nobody says it.
pub(super) fn usual_scope(algorithm: ChecksumAlgorithm) -> ChecksumScope {
    match algorithm {
        ChecksumAlgorithm::Crc64Nvme => ChecksumScope::Body,
        _ => ChecksumScope::Parts,
    }
}

/// The scope that a request asks for.
pub(super) fn scope(headers: &HeaderMap) -> Result<Option<ChecksumScope>, Fault> {
    match text(headers, "x-amz-checksum-type")? {
        None | Some("") => Ok(None),
        Some("FULL_OBJECT") => Ok(Some(ChecksumScope::Body)),
        Some("COMPOSITE") => Ok(Some(ChecksumScope::Parts)),
        Some(_) => Err(invalid_request("Value for x-amz-checksum-type header is invalid.")),
    }
}

/// The algorithm of a header or trailer that carries a checksum; none if it carries none.
pub(super) fn of_header(header: &str) -> Option<Result<ChecksumAlgorithm, Fault>> {
    let own = header.strip_prefix(PREFIX).filter(|_| !OTHERS.contains(&header))?;
    Some(algorithm(own))
}

/// The checksum that comes in the head of a request. Behind that of an upload in parts may stand their number.
pub(super) fn given(headers: &HeaderMap) -> Result<Option<Checksum>, Fault> {
    let mut found = headers.keys().filter_map(|header| Some((header.as_str(), of_header(header.as_str())?)));
    let Some((header, algorithm)) = found.next() else { return Ok(None) };
    if found.next().is_some() {
        return Err(invalid_request(
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        ));
    }
    let value = text(headers, header)?.unwrap_or("");
    let value = value.split_once('-').map_or(value, |(value, _)| value);
    let checksum = parse(algorithm?, value);
    checksum.map(Some).ok_or_else(|| invalid_request(format!("Value for {header} header is invalid.")))
}

/// The value of a checksum in base64.
pub(super) fn parse(algorithm: ChecksumAlgorithm, value: &str) -> Option<Checksum> {
    Checksum::new(algorithm, &BASE64_STANDARD.decode(value.trim()).ok()?).ok()
}

/// The MD5 that comes in the head of a request.
pub(super) fn md5(headers: &HeaderMap) -> Result<Option<[u8; 16]>, Fault> {
    let Some(value) = text(headers, "content-md5")? else { return Ok(None) };
    let bytes = BASE64_STANDARD.decode(value.trim()).ok();
    let digest = bytes.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok());
    digest.map(Some).ok_or_else(|| {
        let fault = Fault::client("InvalidDigest", "The Content-MD5 you specified was invalid.");
        with(fault, "Content-MD5", value)
    })
}

/// A checksum as text. That of parts has their number behind it.
fn spelled(checksum: Checksum, scope: ChecksumScope, parts: Option<u16>) -> String {
    let value = BASE64_STANDARD.encode(checksum.value());
    match (scope, parts) {
        (ChecksumScope::Parts, Some(parts)) => format!("{value}-{parts}"),
        _ => value,
    }
}

/// Adds checksums to the head of an answer.
pub(super) fn describe(headers: &mut HeaderMap, checksums: &Checksums, parts: Option<u16>) {
    for checksum in checksums.iter() {
        let header = format!("{PREFIX}{}", name(checksum.algorithm()).to_ascii_lowercase());
        if let Ok(header) = http::HeaderName::try_from(header) {
            set(headers, header, &spelled(checksum, checksums.scope(), parts));
        }
    }
    if !checksums.is_empty() {
        set(headers, TYPE, scope_name(checksums.scope()));
    }
}

/// Adds checksums to a document.
pub(super) fn list(xml: &mut Xml, checksums: &Checksums, parts: Option<u16>) {
    for checksum in checksums.iter() {
        let element = format!("Checksum{}", name(checksum.algorithm()));
        xml.value(&element, spelled(checksum, checksums.scope(), parts));
    }
}

/// The checksums in an element of a document.
pub(super) fn in_element(element: &Element) -> Result<Vec<Checksum>, Fault> {
    let mut found = Vec::new();
    for algorithm in ChecksumAlgorithm::ALL {
        if let Some(value) = element.text(&format!("Checksum{}", name(algorithm)))? {
            let checksum = parse(algorithm, value);
            found.push(checksum.ok_or_else(|| invalid(format!("Checksum{} is invalid", name(algorithm))))?);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn one_checksum_is_given_or_none() {
        assert_eq!(
            given(&headers(&[("x-amz-checksum-algorithm", "CRC32"), ("x-amz-checksum-type", "COMPOSITE")])),
            Ok(None)
        );
        let crc = given(&headers(&[("x-amz-checksum-crc32", "AAAAAQ==")])).unwrap().unwrap();
        assert_eq!((crc.algorithm(), crc.value()), (ChecksumAlgorithm::Crc32, &[0, 0, 0, 1][..]));
        assert_eq!(given(&headers(&[("x-amz-checksum-crc32", "AAAAAQ==-3")])).unwrap(), Some(crc));
        for wrong in [
            &[("x-amz-checksum-crc32", "AAAAAQ")][..],
            &[("x-amz-checksum-crc32", "AAAA")],
            &[("x-amz-checksum-crc99", "AAAAAQ==")],
            &[("x-amz-checksum-crc32", "AAAAAQ=="), ("x-amz-checksum-crc32c", "AAAAAQ==")],
        ] {
            assert!(given(&headers(wrong)).is_err_and(|fault| fault.code == "InvalidRequest"), "{wrong:?}");
        }
        assert!(md5(&headers(&[("content-md5", "AAAA")])).is_err_and(|fault| fault.code == "InvalidDigest"));
    }

    #[test]
    fn the_number_of_parts_stands_behind_their_checksum() {
        let checksum = Checksum::new(ChecksumAlgorithm::Crc64Nvme, &[1; 8]).unwrap();
        assert_eq!(spelled(checksum, ChecksumScope::Parts, Some(3)), "AQEBAQEBAQE=-3");
        assert_eq!(spelled(checksum, ChecksumScope::Body, Some(3)), "AQEBAQEBAQE=");
        let mut out = HeaderMap::new();
        describe(&mut out, &Checksums::from_iter([checksum]), None);
        assert_eq!(out["x-amz-checksum-crc64nvme"], "AQEBAQEBAQE=");
        assert_eq!(out["x-amz-checksum-type"], "FULL_OBJECT");
    }
}
