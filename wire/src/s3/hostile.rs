//! Whatever comes over the wire, the parsers take it or refuse it, and what they take comes back as it was.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::collection::vec;
use proptest::prelude::*;

use super::address::{Target, copy_source};
use super::body::Chunks;
use super::headers::{etag, parse_range, properties, read_conditions, write_condition};
use super::moment::parse_http_date;
use super::query::Query;
use super::xml::{Element, Xml};
use super::{checksum, route};

/// The bytes and the trailers.
type Decoded = (Vec<u8>, Vec<(String, String)>);

/// Decodes a body that comes in pieces of these sizes, one after the other and again from the first.
fn decoded(body: &[u8], steps: &[usize]) -> Option<Decoded> {
    let (mut chunks, mut decoded, mut rest) = (Chunks::new(false, None), Vec::new(), body);
    for step in steps.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, behind) = rest.split_at((*step).min(rest.len()));
        rest = behind;
        let mut input = Bytes::copy_from_slice(piece);
        while let Some(bytes) = chunks.next(&mut input).ok()? {
            decoded.extend_from_slice(&bytes);
        }
    }
    let trailers = chunks.finish().ok()?.to_vec();
    Some((decoded, trailers))
}

proptest! {
    #[test]
    fn chunks_come_back_however_they_are_cut(
        chunks in vec(vec(any::<u8>(), 1..200), 0..6),
        steps in vec(1_usize..50, 1..8),
        value in "[a-zA-Z0-9+/=]{0,20}",
    ) {
        let mut body = Vec::new();
        for chunk in &chunks {
            body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            body.extend_from_slice(chunk);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("0\r\nx-a:{value}\r\n\r\n").as_bytes());
        prop_assert_eq!(decoded(&body, &steps), Some((chunks.concat(), vec![("x-a".to_owned(), value)])));
    }

    #[test]
    fn any_bytes_are_chunks_or_refused(body in vec(any::<u8>(), 0..300), steps in vec(1_usize..50, 1..8)) {
        if let Some((bytes, _)) = decoded(&body, &steps) {
            prop_assert!(bytes.len() < body.len());
            prop_assert_eq!(decoded(&body, &[body.len()]).map(|(bytes, _)| bytes), Some(bytes), "however it is cut");
        }
    }

    #[test]
    fn nearly_chunks_are_chunks_or_refused(body in "([0-9a-f]{1,2}(;[a-z=]{0,8})?\r?\n[a-z]{0,20}\r?\n){0,4}(0\r\n)?([a-z]:[a-z]\r\n)?(\r\n)?") {
        decoded(body.as_bytes(), &[3]);
    }

    #[test]
    fn texts_survive_as_xml(text in any::<String>()) {
        let held = |c: char| !c.is_control() && !matches!(c, '\u{fffe}' | '\u{ffff}') || matches!(c, '\t' | '\n');
        let text: String = text.chars().filter(|c| held(*c)).collect();
        let document = Xml::document("A", |xml| {
            xml.value("B", &text);
        });
        let root = Element::parse(document.as_bytes(), "A").unwrap();
        prop_assert_eq!(root.required("B").unwrap(), text);
    }

    #[test]
    fn any_bytes_are_xml_or_refused(bytes in vec(any::<u8>(), 0..200), text in "(<[/!?]?[A-Z&;#x0-9 ='\\[\\]-]{0,9}>?|&[a-z#0-9x]{0,6};){0,20}") {
        let _ = Element::parse(&bytes, "A");
        let _ = Element::parse(format!("<A>{text}</A>").as_bytes(), "A");
    }

    #[test]
    fn any_key_survives_its_address(key in any::<String>()) {
        prop_assume!((1..=1_024).contains(&key.len()));
        let encoded = utf8_percent_encode(&key, NON_ALPHANUMERIC).to_string();
        let parts = Request::get(format!("/photos/{encoded}?prefix={encoded}")).body(()).unwrap().into_parts().0;
        match Target::of(&parts, &[]) {
            Ok(Target::Object(_, found)) => prop_assert_eq!(found.as_str(), &key),
            other => prop_assert!(false, "{:?}", other),
        }
        let query = Query::parse(parts.uri.query().unwrap()).unwrap();
        prop_assert_eq!(query.get("prefix"), Some(key.as_str()));
        let source = copy_source(&format!("photos/{encoded}")).unwrap();
        prop_assert_eq!(source.1.as_str(), &key);
    }

    #[test]
    fn any_path_and_query_are_understood_or_refused(path in "/[!-~]{0,40}", query in "[!-~]{0,40}", host in "[!-~]{0,20}") {
        let Ok(request) = Request::get(format!("{path}?{query}")).header("host", host).body(()) else { return Ok(()) };
        let parts = request.into_parts().0;
        let target = Target::of(&parts, &["localhost".to_owned(), String::new()]);
        if let (Ok(target), Ok(query)) = (target, Query::parse(&query)) {
            let _ = query.limit("max-keys", 5);
            let _ = route::operation(&parts.method, &target, &query, &parts.headers);
        }
    }

    #[test]
    fn any_header_is_understood_or_refused(bytes in vec(any::<u8>(), 0..60), text in "[ -~]{0,40}") {
        for bytes in [bytes.as_slice(), text.as_bytes()] {
            let Ok(value) = HeaderValue::from_bytes(bytes) else { continue };
            let mut headers = HeaderMap::new();
            for name in ["if-match", "if-none-match", "if-modified-since", "content-md5", "x-amz-checksum-crc32", "x-amz-meta-a"] {
                headers.insert(name, value.clone());
            }
            let _ = (read_conditions(&headers, "", anabranch_model::Timestamp::EPOCH), write_condition(&headers), properties(&headers));
            let _ = (checksum::given(&headers), checksum::md5(&headers), checksum::scope(&headers));
        }
        let _ = (etag(&text), parse_range(&text), parse_range(&format!("bytes={text}")), parse_http_date(&text), copy_source(&text));
    }
}
