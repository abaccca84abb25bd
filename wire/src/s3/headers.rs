//! What the headers of a request say, and the headers of an answer.

use std::collections::BTreeMap;

use anabranch_model::blob::{ETag, ETagMatch, Header, Properties, Range, ReadConditions, WriteCondition};
use anabranch_model::limits::BLOB_METADATA_BYTES_MAX;
use anabranch_model::{Error, Timestamp};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderMap;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
    HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH, RANGE,
};

use super::errors::{invalid, precondition_failed, unaccepted, with};
use super::moment::parse_http_date;
use crate::fault::Fault;

/// What stands before the names of a writer's own words.
const METADATA: &str = "x-amz-meta-";
/// The coding that is about the transport and not about the object.
const CHUNKED: &str = "aws-chunked";

/// A header as text.
pub(super) fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Fault> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes());
    text.map(Some).map_err(|_| invalid(format!("The header {name} is not UTF-8")))
}

/// The headers that describe an object.
pub(super) fn name_of(header: Header) -> HeaderName {
    match header {
        Header::ContentType => CONTENT_TYPE,
        Header::ContentEncoding => CONTENT_ENCODING,
        Header::ContentLanguage => CONTENT_LANGUAGE,
        Header::ContentDisposition => CONTENT_DISPOSITION,
        Header::CacheControl => CACHE_CONTROL,
        Header::Expires => EXPIRES,
    }
}

/// What the writer says about an object.
pub(super) fn properties(headers: &HeaderMap) -> Result<Properties, Fault> {
    let mut properties = Properties::default();
    for header in Header::ALL {
        let Some(value) = text(headers, name_of(header).as_str())? else { continue };
        let value = match header {
            Header::ContentEncoding => without_chunked(value),
            _ => value.trim().to_owned(),
        };
        if !value.is_empty() {
            properties.headers.insert(header, value);
        }
    }
    properties.metadata = metadata(headers)?;
    if properties.metadata_bytes() > BLOB_METADATA_BYTES_MAX {
        let message = "Your metadata headers exceed the maximum allowed metadata size";
        return Err(Fault::client("MetadataTooLarge", message));
    }
    properties.check().map_err(|error| invalid(error.to_string()))?;
    Ok(properties)
}

/// Values of one name are joined, as everywhere in HTTP.
fn metadata(headers: &HeaderMap) -> Result<BTreeMap<String, String>, Fault> {
    let mut metadata = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let Some(own) = name.as_str().strip_prefix(METADATA) else { continue };
        let value = std::str::from_utf8(value.as_bytes());
        let value = value.map_err(|_| invalid(format!("The metadata {own} is not UTF-8")))?.trim();
        match metadata.get_mut(own) {
            Some(joined) => *joined = format!("{joined},{value}"),
            None => drop(metadata.insert(own.to_owned(), value.to_owned())),
        }
    }
    Ok(metadata)
}

/// What remains of the codings. Where none is about the transport, they stay as they are spelled.
fn without_chunked(value: &str) -> String {
    if !value.to_ascii_lowercase().contains(CHUNKED) {
        return value.trim().to_owned();
    }
    let codings = value.split(',').map(str::trim).filter(|coding| !coding.eq_ignore_ascii_case(CHUNKED));
    codings.collect::<Vec<_>>().join(", ")
}

/// Adds what is known about an object to an answer.
pub(super) fn describe(headers: &mut HeaderMap, properties: &Properties) {
    for (header, value) in &properties.headers {
        set(headers, name_of(*header), value);
    }
    for (name, value) in &properties.metadata {
        if let Ok(name) = HeaderName::try_from(format!("{METADATA}{name}")) {
            set(headers, name, &spelled(value));
        }
    }
}

/// A value that is no ASCII is spelled as mail does it, which clients of S3 know.
fn spelled(value: &str) -> String {
    let plain = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
    if plain { value.to_owned() } else { format!("=?UTF-8?B?{}?=", BASE64_STANDARD.encode(value)) }
}

/// Sets a header, if the value can be one.
pub(super) fn set(headers: &mut HeaderMap, name: impl Into<HeaderName>, value: &str) {
    // What is no ASCII goes out as it came in: UTF-8, byte by byte.
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        headers.insert(name.into(), value);
    }
}

/// What must be true of an object to be read; behind `prefix` stand the conditions on the source of a copy.
pub(super) fn read_conditions(
    headers: &HeaderMap,
    prefix: &str,
    now: Timestamp,
) -> Result<ReadConditions, Fault> {
    let read = |name: &str| text(headers, &format!("{prefix}{name}"));
    let tags = |name: &str| Ok::<_, Fault>(read(name)?.map(etag_match));
    let moment = |name: &str| Ok::<_, Fault>(read(name)?.and_then(parse_http_date));
    Ok(ReadConditions {
        if_match: tags("if-match")?,
        if_none_match: tags("if-none-match")?,
        // A moment that is still to come says nothing.
        if_modified_since: moment("if-modified-since")?.filter(|moment| *moment <= now),
        if_unmodified_since: moment("if-unmodified-since")?,
    })
}

/// What must be true of the object that is replaced.
pub(super) fn write_condition(headers: &HeaderMap) -> Result<WriteCondition, Fault> {
    match (text(headers, IF_MATCH.as_str())?, text(headers, IF_NONE_MATCH.as_str())?) {
        (None, None) => Ok(WriteCondition::None),
        (None, Some("*")) => Ok(WriteCondition::IfAbsent),
        (None, Some(_)) => Err(unaccepted(
            "If-None-Match",
            "We don't accept the provided value of If-None-Match header for this API",
        )),
        (Some("*"), None) => Ok(WriteCondition::IfPresent),
        (Some(tag), None) => etag(tag).map(WriteCondition::IfMatch),
        (Some(_), Some(_)) => Err(unaccepted(
            "If-Match,If-None-Match",
            "Multiple conditional request headers present in the request",
        )),
    }
}

/// A fault that names the condition on a write which did not hold, if that is why.
pub(super) fn unmet(headers: &HeaderMap, fault: Fault) -> Fault {
    let name = if headers.contains_key(IF_MATCH) { "If-Match" } else { "If-None-Match" };
    if fault.code == "PreconditionFailed" { with(fault, "Condition", name) } else { fault }
}

/// The same for a condition on a read. Of those that ask whether a reader has the object already this is only about the
/// source of a copy: everybody else is told so.
pub(super) fn unmet_read(headers: &HeaderMap, prefix: &str, error: &Error) -> Fault {
    let given = |name: &str| headers.contains_key(format!("{prefix}{name}").to_ascii_lowercase());
    let name = match error {
        Error::NotModified(_) if given("If-None-Match") => "If-None-Match",
        Error::NotModified(_) => "If-Modified-Since",
        _ if given("If-Match") => "If-Match",
        _ => "If-Unmodified-Since",
    };
    with(precondition_failed(), "Condition", format!("{prefix}{name}"))
}

/// A tag, with quotes or without.
pub(super) fn etag(text: &str) -> Result<ETag, Fault> {
    let text = text.trim();
    let text = text.strip_prefix("W/").unwrap_or(text);
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    ETag::new(bare).map_err(|error| invalid(error.to_string()))
}

/// The tags that a reader names. What can be no tag is that of no object.
fn etag_match(text: &str) -> ETagMatch {
    if text.trim() == "*" {
        return ETagMatch::Any;
    }
    ETagMatch::OneOf(text.split(',').filter_map(|tag| etag(tag).ok()).collect())
}

/// The bytes that are wanted. A range that is not understood, or several, count as none, as HTTP has it.
pub(super) fn range(headers: &HeaderMap) -> Option<Range> {
    parse_range(headers.get(RANGE)?.to_str().ok()?)
}

/// `bytes=0-9`, `bytes=10-` or `bytes=-5`.
pub(super) fn parse_range(text: &str) -> Option<Range> {
    let number = |digits: &str| {
        let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // What does not fit is behind the end of every object.
        plain.then(|| digits.parse().unwrap_or(u64::MAX))
    };
    let (first, last) = text.trim().strip_prefix("bytes=")?.split_once('-')?;
    match (first.trim(), last.trim()) {
        ("", last) => Some(Range::Last(number(last)?)),
        (first, "") => Some(Range::From(number(first)?)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Range::FromTo(first, last))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let pairs = pairs.iter().map(|(name, value)| {
            (
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_bytes(value.as_bytes()).unwrap(),
            )
        });
        let mut headers = HeaderMap::new();
        pairs.for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    }

    #[test]
    fn properties_survive_the_way_in_and_out() {
        let given = headers(&[
            ("content-type", "text/plain"),
            ("content-encoding", "deflate,aws-chunked , gzip"),
            ("x-amz-meta-one", "1"),
            ("x-amz-meta-one", "2"),
            ("x-amz-meta-ten", "zehn ä"),
            ("x-amz-date", "no property"),
        ]);
        let properties = properties(&given).unwrap();
        assert_eq!(properties.headers[&Header::ContentEncoding], "deflate, gzip");
        assert_eq!(without_chunked("deflate,gzip"), "deflate,gzip");
        assert_eq!(properties.metadata["one"], "1,2");
        let mut out = HeaderMap::new();
        describe(&mut out, &properties);
        assert_eq!(out["content-type"], "text/plain");
        assert_eq!(out["x-amz-meta-ten"], "=?UTF-8?B?emVobiDDpA==?=");
        assert_eq!(out.len(), 4);
        let only_transport = headers(&[("content-encoding", "aws-chunked")]);
        assert_eq!(super::properties(&only_transport), Ok(Properties::default()));
        let large = headers(&[("x-amz-meta-a", &"x".repeat(2_048))]);
        assert_eq!(super::properties(&large).unwrap_err().code, "MetadataTooLarge");
    }

    #[test]
    fn conditions_name_tags() {
        let tag = ETag::new("abc").unwrap();
        let one = etag_match;
        for text in ["abc", "\"abc\"", " W/\"abc\" "] {
            assert_eq!(one(text), ETagMatch::OneOf(vec![tag.clone()]), "{text}");
        }
        assert_eq!(one("*"), ETagMatch::Any);
        assert_eq!(one("\"abc\", \"abc\""), ETagMatch::OneOf(vec![tag.clone(), tag.clone()]));
        for none in ["", "\"a\"b\"", "no good tag"] {
            assert_eq!(one(none), ETagMatch::OneOf(vec![]), "{none}");
        }
        let write = |pairs: &[(&str, &str)]| {
            write_condition(&headers(pairs)).map_err(|fault| fault.code.into_owned())
        };
        assert_eq!(write(&[]), Ok(WriteCondition::None));
        assert_eq!(write(&[("if-none-match", "*")]), Ok(WriteCondition::IfAbsent));
        assert_eq!(write(&[("if-none-match", "\"abc\"")]), Err("NotImplemented".into()));
        assert_eq!(write(&[("if-match", "\"abc\"")]), Ok(WriteCondition::IfMatch(tag)));
        assert_eq!(write(&[("if-match", "*"), ("if-none-match", "*")]), Err("NotImplemented".into()));
    }

    #[test]
    fn ranges_are_understood_or_ignored() {
        assert_eq!(parse_range("bytes=0-9"), Some(Range::FromTo(0, 9)));
        assert_eq!(parse_range("bytes=10-"), Some(Range::From(10)));
        assert_eq!(parse_range("bytes=-5"), Some(Range::Last(5)));
        assert_eq!(parse_range("bytes=0-99999999999999999999"), Some(Range::FromTo(0, u64::MAX)));
        for text in
            ["", "bytes=", "bytes=-", "bytes=9-0", "bytes=a-b", "bytes=0-1,3-4", "bits=0-9", "bytes=+1-2"]
        {
            assert_eq!(parse_range(text), None, "{text}");
        }
    }
}
