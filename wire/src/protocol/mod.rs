//! How the protocols spell values and faults.

mod chunks;
mod fault;
mod form;
mod query;
mod shape;
mod strict;
mod xml;

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use http::header::{CONTENT_TYPE, HeaderName};
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) use fault::{HOST_ID, HOST_NAME, render as render_fault};
pub(crate) use form::parse as parse_form;
pub(crate) use query::{Form, document};
use strict::{Room, Strict};
pub(crate) use xml::{Spelling, is_allowed, members};

use crate::fault::Fault;
use crate::limits::{ENTRY_BYTES_FREE, ENTRY_BYTES_PER_BYTE, ENTRY_BYTES_PER_BYTE_OF_CBOR};
use crate::receive::{Body, BodyError};

/// The language of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// AWS JSON 1.0.
    Json10,
    /// AWS JSON 1.1.
    Json11,
    /// The CBOR of Kinesis.
    Cbor,
    /// Smithy's RPC in CBOR.
    RpcCbor,
    /// Forms, answered in XML.
    Query,
    /// The XML of S3.
    Xml,
}

impl Protocol {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Protocol::Json10 => "application/x-amz-json-1.0",
            Protocol::Json11 => "application/x-amz-json-1.1",
            Protocol::Cbor => "application/x-amz-cbor-1.1",
            Protocol::RpcCbor => "application/cbor",
            Protocol::Query => "text/xml",
            Protocol::Xml => "application/xml",
        }
    }

    /// The value of a request. No body at all counts as one without members.
    pub(crate) fn parse<T: DeserializeOwned>(self, body: &[u8]) -> Result<T, Fault> {
        self.parse_for("", body)
    }

    /// The value of a request to a service whose classes lie in a package, which some refusals name.
    pub(crate) fn parse_for<T: DeserializeOwned>(self, package: &str, body: &[u8]) -> Result<T, Fault> {
        match self {
            Protocol::Cbor | Protocol::RpcCbor => {
                let body = if body.is_empty() { &[0xa0] } else { body };
                // Few clients write texts in chunks, so the others do not pay for looking.
                parse_cbor(body).or_else(|fault| match chunks::joined(body) {
                    Ok(Some(joined)) => parse_cbor(&joined),
                    _ => Err(fault),
                })
            }
            Protocol::Json10 | Protocol::Json11 | Protocol::Query | Protocol::Xml => {
                let body = if body.is_empty() { b"{}" } else { body };
                let room = Room::new(ENTRY_BYTES_FREE + ENTRY_BYTES_PER_BYTE * body.len(), package);
                let mut deserializer = serde_json::Deserializer::from_slice(body);
                let value = T::deserialize(Strict::new(&mut deserializer, &room));
                value.and_then(|value| deserializer.end().map(|()| value)).map_err(|error| {
                    Fault::serialization(room.into_refusal().unwrap_or_else(|| error.to_string()))
                })
            }
        }
    }

    /// A value as bytes.
    pub(crate) fn encode<T: Serialize + ?Sized>(self, value: &T) -> Result<Vec<u8>, Fault> {
        let failed = |error: String| Fault::server("InternalFailure", error);
        match self {
            Protocol::Cbor | Protocol::RpcCbor => {
                minicbor_serde::to_vec(value).map_err(|error| failed(error.to_string()))
            }
            Protocol::Json10 | Protocol::Json11 | Protocol::Query | Protocol::Xml => {
                serde_json::to_vec(value).map_err(|error| failed(error.to_string()))
            }
        }
    }

    /// An answer whose body comes in pieces.
    pub(crate) fn streamed(self, pieces: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
        let frames = pieces.map(|piece| Ok::<_, BodyError>(Frame::data(piece)));
        let mut response = self.response(StatusCode::OK, Vec::new());
        *response.body_mut() = StreamBody::new(frames).boxed_unsync();
        response
    }

    /// An answer with this body.
    pub(crate) fn response(self, status: StatusCode, body: Vec<u8>) -> Response<Body> {
        let mut response = if body.is_empty() {
            Response::new(Empty::new().map_err(|never| match never {}).boxed_unsync())
        } else {
            Response::new(Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync())
        };
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.content_type()));
        if self == Protocol::RpcCbor {
            let name = HeaderName::from_static("smithy-protocol");
            headers.insert(name, HeaderValue::from_static("rpc-v2-cbor"));
        }
        response
    }
}

fn parse_cbor<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    let room = Room::new(ENTRY_BYTES_FREE + ENTRY_BYTES_PER_BYTE_OF_CBOR * body.len(), "");
    let mut deserializer = minicbor_serde::Deserializer::new(body);
    let value = T::deserialize(Strict::new(&mut deserializer, &room))
        .map_err(|error| Fault::serialization(error.to_string()))?;
    if deserializer.decoder().position() < body.len() {
        return Err(Fault::serialization("something follows the value"));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Sample {
        name: Option<String>,
        limit: Option<i64>,
    }

    const BOTH: [Protocol; 2] = [Protocol::Json11, Protocol::Cbor];

    #[test]
    fn values_survive_either_spelling() {
        let sample = Sample { name: Some("a".into()), limit: Some(7) };
        for protocol in BOTH {
            let bytes = protocol.encode(&sample).unwrap();
            assert_eq!(protocol.parse::<Sample>(&bytes).unwrap(), sample);
            assert_eq!(protocol.parse::<Sample>(b"").unwrap(), Sample::default());
        }
        assert_eq!(
            Protocol::Json11.parse::<Sample>(br#"{"Name":null,"Other":{"x":[1]}}"#).unwrap(),
            Sample::default()
        );
    }

    #[test]
    fn maps_of_unknown_length_are_read() {
        let bytes = [0xbf, 0x64, b'N', b'a', b'm', b'e', 0x61, b'a', 0xff];
        let sample = Sample { name: Some("a".into()), limit: None };
        assert_eq!(Protocol::Cbor.parse::<Sample>(&bytes).unwrap(), sample);
    }

    #[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Nested {
        sample: Option<Sample>,
        samples: Option<Vec<Sample>>,
        by_name: Option<std::collections::BTreeMap<String, Sample>>,
    }

    #[test]
    fn a_list_is_no_structure() {
        let right = r#"{"Sample":{"Name":"a"},"Samples":[{"Limit":1}],"ByName":{"x":{"Limit":2}}}"#;
        let value: serde_json::Value = serde_json::from_str(right).unwrap();
        for protocol in BOTH {
            let nested: Nested = protocol.parse(&protocol.encode(&value).unwrap()).unwrap();
            assert_eq!(nested.by_name.as_ref().unwrap()["x"].limit, Some(2));
            for wrong in [
                r#"[]"#,
                r#"[{"Name":"a","Limit":1}]"#,
                r#"{"Sample":["a",1]}"#,
                r#"{"Samples":[["a",1]]}"#,
                r#"{"ByName":{"x":["a",1]}}"#,
            ] {
                let wrong: serde_json::Value = serde_json::from_str(wrong).unwrap();
                let body = protocol.encode(&wrong).unwrap();
                let fault = protocol.parse::<Nested>(&body).unwrap_err();
                assert_eq!(fault.code, "SerializationException", "{protocol:?} {wrong}");
            }
        }
    }

    #[test]
    fn the_memory_of_entries_is_bounded_by_the_length_of_the_request() {
        #[derive(Debug, Deserialize)]
        struct Wide {
            #[serde(default, rename = "Words")]
            _words: [u64; 16],
        }
        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Many {
            #[serde(default)]
            list: Vec<Wide>,
            #[serde(default)]
            map: std::collections::BTreeMap<String, Wide>,
        }
        let most = ENTRY_BYTES_FREE / size_of::<Wide>();
        let nothing = serde_json::json!({});
        let list = |count: usize| serde_json::json!({"List": vec![&nothing; count]});
        let map = |count: usize| {
            let entries = (0..count).map(|number| (number.to_string(), nothing.clone()));
            serde_json::json!({"Map": entries.collect::<serde_json::Map<_, _>>()})
        };
        for protocol in BOTH {
            let read = |value: &serde_json::Value| protocol.parse::<Many>(&protocol.encode(value).unwrap());
            assert_eq!(read(&list(most)).unwrap().list.len(), most);
            assert_eq!(read(&map(most / 2)).unwrap().map.len(), most / 2);
            for wrong in [list(10 * most), map(10 * most)] {
                let fault = read(&wrong).unwrap_err();
                assert!(fault.message.contains("too many entries"), "{protocol:?} {}", fault.message);
            }
        }
        // What nobody wants takes no memory.
        let other = serde_json::json!({"Other": vec![&nothing; 10 * most], "Name": "a"});
        assert!(Protocol::Json11.parse::<Sample>(&serde_json::to_vec(&other).unwrap()).is_ok());
    }

    #[test]
    fn deep_and_huge_values_are_refused() {
        let deep = |name: &str, open: &str, close: &str| {
            format!("{{\"{name}\":{}1{}}}", open.repeat(100_000), close.repeat(100_000))
        };
        // What nobody wants is passed over, however deep it is.
        assert!(Protocol::Json11.parse::<Sample>(deep("Other", "[", "]").as_bytes()).is_ok());
        for body in [
            deep("Name", "[", "]"),
            deep("Name", "{\"a\":", "}"),
            "{\"Limit\":1e400}".to_owned(),
            "{\"Limit\":99999999999999999999}".to_owned(),
            "{\"Limit\":NaN}".to_owned(),
            "{\"Limit\":1,\"Limit\":2}".to_owned(),
            "{\"Name\":\"\\ud800\"}".to_owned(),
        ] {
            let fault = Protocol::Json11.parse::<Sample>(body.as_bytes()).unwrap_err();
            assert_eq!(fault.code, "SerializationException", "{}", &body[..20]);
        }
        // Nested a million times, with a length that no memory has, and without an end.
        let name = [0xa1, 0x64, b'N', b'a', b'm', b'e'];
        for tail in [
            vec![0x81; 1_000_000],
            vec![0x9f; 1_000_000],
            vec![0x7b, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            vec![0x5b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            vec![0x9b, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            vec![0x7f],
        ] {
            for member in [&name[..], &[0xa1, 0x61, b'x']] {
                let fault = Protocol::Cbor.parse::<Sample>(&[member, &tail].concat()).unwrap_err();
                assert_eq!(fault.code, "SerializationException", "{:?}", &tail[..1]);
            }
        }
    }

    #[test]
    fn texts_in_chunks_are_read() {
        let bytes =
            [0xa1, 0x7f, 0x62, b'N', b'a', 0x62, b'm', b'e', 0xff, 0x7f, 0x61, b'a', 0x61, b'b', 0xff];
        let sample = Sample { name: Some("ab".into()), limit: None };
        for protocol in [Protocol::Cbor, Protocol::RpcCbor] {
            assert_eq!(protocol.parse::<Sample>(&bytes).unwrap(), sample);
            let longer = [&bytes[..], &[0xa0]].concat();
            assert_eq!(protocol.parse::<Sample>(&longer).unwrap_err().code, "SerializationException");
        }
    }

    #[test]
    fn what_is_malformed_is_a_serialization_exception() {
        let json: [&[u8]; 6] = [b"{", b"[]x", b"{\"Limit\":\"7\"}", b"{\"Name\":7}", b"\xff", b"{} {}"];
        let cbor: [&[u8]; 5] =
            [&[0xff], &[0xa1], &[0xa0, 0xa0], &[0xa1, 0x64, b'N', b'a', b'm', b'e', 1], &[0x5f]];
        for (protocol, bodies) in [(Protocol::Json11, &json[..]), (Protocol::Cbor, &cbor[..])] {
            for body in bodies {
                let fault = protocol.parse::<Sample>(body).unwrap_err();
                assert_eq!(fault.code, "SerializationException", "{body:?}");
            }
        }
    }
}
