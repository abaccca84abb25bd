//! What is known about a blob, as headers.
//!
//! S3 keeps one checksum of an object. Further ones that a writer gave or asked for stand in the object's metadata, under
//! names that writers cannot use.

use std::collections::BTreeMap;

use anabranch_model::blob::{
    BlobMeta, Checksum, ChecksumAlgorithm, ChecksumScope, Checksums, ETag, Header, Properties,
};
use anabranch_model::{Error, Result, Timestamp, limits};
use aws_smithy_runtime_api::http::Headers;
use aws_smithy_types::DateTime;
use aws_smithy_types::base64;
use aws_smithy_types::date_time::Format;

use super::words;

const METADATA: &str = "x-amz-meta-";
/// What the names of further checksums begin with.
const FURTHER: &str = "anabranch-checksum-";
/// What S3 says of an object whose writer did not say what it contains.
const CONTENT_UNKNOWN: &str = "binary/octet-stream";

fn header_name(header: Header) -> &'static str {
    match header {
        Header::ContentType => "content-type",
        Header::ContentEncoding => "content-encoding",
        Header::ContentLanguage => "content-language",
        Header::ContentDisposition => "content-disposition",
        Header::CacheControl => "cache-control",
        Header::Expires => "expires",
    }
}

/// The header that carries a checksum.
pub(super) fn checksum_header(algorithm: ChecksumAlgorithm) -> String {
    format!("x-amz-checksum-{}", algorithm.name())
}

/// The name of an algorithm as a value.
pub(super) fn algorithm_value(algorithm: ChecksumAlgorithm) -> String {
    algorithm.name().to_ascii_uppercase()
}

pub(super) fn algorithm_of(value: &str) -> Option<ChecksumAlgorithm> {
    ChecksumAlgorithm::ALL.into_iter().find(|algorithm| value.eq_ignore_ascii_case(algorithm.name()))
}

/// Headers that carry a checksum of the body.
pub(super) fn checksum_headers(checksum: Checksum) -> [(String, String); 2] {
    let algorithm = checksum.algorithm();
    [
        ("x-amz-sdk-checksum-algorithm".to_string(), algorithm_value(algorithm)),
        (checksum_header(algorithm), base64::encode(checksum.value())),
    ]
}

/// Whether S3 can take them; the model allows more.
pub(super) fn check_properties(properties: &Properties) -> Result<()> {
    properties.check()?;
    let visible = |value: &String| value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if let Some((header, value)) = properties.headers.iter().find(|(_, value)| !visible(value)) {
        return Err(Error::Invalid(format!(
            "{} `{value}` cannot be a header on S3: use visible ASCII and spaces",
            header_name(*header)
        )));
    }
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    match properties.metadata.keys().find(|name| name.starts_with(FURTHER) || !name.bytes().all(token)) {
        Some(name) => Err(Error::Invalid(format!(
            "metadata name `{name}` cannot be a header on S3: use letters, digits and !#$%&'*+-.^_`|~, and do not begin \
             with `{FURTHER}`"
        ))),
        None => Ok(()),
    }
}

/// Headers that carry what the writer says, and the checksums for which S3 has no place.
pub(super) fn to_headers(properties: &Properties, further: &[Checksum]) -> Result<Vec<(String, String)>> {
    let mut headers: BTreeMap<String, String> = properties
        .headers
        .iter()
        .map(|(header, value)| (header_name(*header).to_string(), value.clone()))
        .collect();
    // Some servers guess from the key what an object contains, unless they are told.
    headers.entry("content-type".to_string()).or_insert_with(|| CONTENT_UNKNOWN.to_string());
    let mut bytes: usize = properties.metadata.iter().map(|(name, value)| name.len() + value.len()).sum();
    for (name, value) in &properties.metadata {
        headers.insert(format!("{METADATA}{name}"), words::encode(value));
    }
    for checksum in further {
        let (name, value) = (checksum.algorithm().name(), base64::encode(checksum.value()));
        bytes += FURTHER.len() + name.len() + value.len();
        headers.insert(format!("{METADATA}{FURTHER}{name}"), value);
    }
    if !further.is_empty() && bytes > limits::BLOB_METADATA_BYTES_MAX {
        return Err(Error::Invalid(format!(
            "metadata has {bytes} bytes with checksums that S3 keeps there: at most {} are allowed; give one checksum only",
            limits::BLOB_METADATA_BYTES_MAX
        )));
    }
    Ok(headers.into_iter().collect())
}

/// The checksum for which S3 has a place, and those for which it has none.
pub(super) fn place_checksums(checksums: &Checksums) -> (Option<Checksum>, Vec<Checksum>) {
    let mut all = checksums.iter();
    (all.next(), all.collect())
}

/// Whatever is known about the object from the head of an answer. `size` is that of the whole object.
pub(super) fn from_headers(headers: &Headers, size: u64) -> Result<BlobMeta> {
    let etag = etag(headers.get("etag").unwrap_or_default())?;
    let modified_at = headers
        .get("last-modified")
        .and_then(http_date)
        .ok_or_else(|| super::strange("an object without a date"))?;
    let given = |header: &Header| {
        let value = headers.get(header_name(*header))?;
        (*header != Header::ContentType || value != CONTENT_UNKNOWN).then(|| (*header, value.to_string()))
    };
    let mut properties =
        Properties { headers: Header::ALL.iter().filter_map(given).collect(), metadata: BTreeMap::new() };
    let mut further = Vec::new();
    for (name, value) in
        headers.iter().filter_map(|(name, value)| Some((name.strip_prefix(METADATA)?, value)))
    {
        let algorithm = name.strip_prefix(FURTHER).and_then(algorithm_of);
        match algorithm.and_then(|algorithm| checksum(algorithm, value)) {
            Some(checksum) => further.push(checksum),
            None => {
                properties.metadata.insert(name.to_string(), words::decode(value));
            }
        }
    }
    let checksums = checksums(headers, further);
    Ok(BlobMeta { size, parts: parts(&etag), etag, properties, checksums, modified_at })
}

fn checksums(headers: &Headers, further: Vec<Checksum>) -> Checksums {
    let values = |algorithm| Some((algorithm, headers.get(checksum_header(algorithm))?));
    let values: Vec<_> = ChecksumAlgorithm::ALL.into_iter().filter_map(values).collect();
    let of_parts = values.iter().any(|(_, value)| value.contains('-'))
        || headers.get("x-amz-checksum-type").is_some_and(|scope| scope == "COMPOSITE");
    let own = values.into_iter().filter_map(|(algorithm, value)| checksum(algorithm, value));
    if of_parts {
        let mut checksums = Checksums::empty(ChecksumScope::Parts);
        own.for_each(|checksum| checksums.insert(checksum));
        return checksums;
    }
    own.chain(further).collect()
}

/// The checksums of a body that was put, with the one that S3 makes by itself where it was given none.
pub(super) fn with_added(mut checksums: Checksums, headers: &Headers) -> Checksums {
    for algorithm in ChecksumAlgorithm::ALL {
        let value = headers.get(checksum_header(algorithm));
        let added = value.and_then(|value| checksum(algorithm, value));
        if let (None, Some(added)) = (checksums.get(algorithm), added) {
            checksums.insert(added);
        }
    }
    checksums
}

/// A checksum as headers and documents spell it; that of parts has their number behind it.
pub(super) fn checksum(algorithm: ChecksumAlgorithm, value: &str) -> Option<Checksum> {
    let value = value.split_once('-').map_or(value, |(value, _)| value);
    Checksum::new(algorithm, &base64::decode(value).ok()?).ok()
}

/// A tag as headers and documents spell it.
pub(super) fn etag(value: &str) -> Result<ETag> {
    ETag::new(value.trim().trim_start_matches("W/").trim_matches('"'))
        .map_err(|_| super::strange("an object without an etag"))
}

/// How many parts an object was put in: its tag says so.
fn parts(etag: &ETag) -> Option<u16> {
    etag.as_str().rsplit_once('-').and_then(|(_, count)| count.parse().ok())
}

/// The moment in a header, in whole seconds.
pub(super) fn http_date(value: &str) -> Option<Timestamp> {
    moment(DateTime::from_str(value, Format::HttpDate).ok()?)
}

/// The moment in a document.
pub(super) fn date(value: &str) -> Option<Timestamp> {
    moment(DateTime::from_str(value, Format::DateTimeWithOffset).ok()?)
}

/// The moment in a document, in whole seconds: a listing may be more exact than the head of an object.
pub(super) fn date_in_seconds(value: &str) -> Option<Timestamp> {
    date(value).map(|moment| Timestamp::from_millis(moment.as_millis() / 1_000 * 1_000))
}

fn moment(date: DateTime) -> Option<Timestamp> {
    date.to_millis().ok().and_then(|millis| u64::try_from(millis).ok()).map(Timestamp::from_millis)
}

/// A moment as a header.
pub(super) fn to_http_date(moment: Timestamp) -> Option<String> {
    DateTime::from_secs(i64::try_from(moment.as_millis() / 1_000).ok()?).fmt(Format::HttpDate).ok()
}
