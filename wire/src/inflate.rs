//! Bodies that clients compress: those of calls that report many figures or write many items.

use std::io::Read;

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, StatusCode, header};

use crate::dispatch::Service;
use crate::fault::Fault;
use crate::limits::{INFLATED_BYTES_MAX, INFLATED_BYTES_MAX_LARGE, INFLATION_MAX};

/// How a body was compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Gzip,
    /// The format of zlib.
    Deflate,
}

/// What may come of compressed bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Inflation {
    coding: Option<Coding>,
    service: Service,
}

impl Inflation {
    /// What the head of a call to a service says about its body.
    pub(crate) fn of(headers: &HeaderMap, service: Service) -> Result<Self, Fault> {
        let coding = match encoding(headers) {
            "gzip" => Some(Coding::Gzip),
            "deflate" if is_large(service) => Some(Coding::Deflate),
            "" | "identity" => None,
            // Signatures of chunks are no compression.
            other if other.contains("aws-chunked") => None,
            other => {
                let why = format!(
                    "the content encoding {other:?} is not supported: send the body as it is, or as gzip"
                );
                return Err(Fault::serialization(why).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
            }
        };
        Ok(Inflation { coding, service })
    }

    /// Most bytes that so many can become. Without compression there are no others.
    pub(crate) fn bytes_max(&self, compressed: usize) -> usize {
        match self.coding {
            Some(_) => compressed.saturating_mul(INFLATION_MAX).min(self.limit()),
            None => 0,
        }
    }

    fn limit(&self) -> usize {
        if is_large(self.service) { INFLATED_BYTES_MAX_LARGE } else { INFLATED_BYTES_MAX }
    }

    /// The body as it was before its compression, if there is one.
    pub(crate) fn inflated(&self, body: Bytes) -> Result<Bytes, Fault> {
        let (coding, whole) = match self.coding {
            None => return Ok(body),
            Some(Coding::Gzip) => ("gzip", self.read(MultiGzDecoder::new(&body[..]))),
            Some(Coding::Deflate) => ("deflate", self.read(ZlibDecoder::new(&body[..]))),
        };
        let whole =
            whole.map_err(|error| Fault::serialization(format!("the body is no {coding}: {error}")))?;
        let limit = self.limit();
        if whole.len() > limit {
            let message = format!("the request is too large: a compressed body may hold {limit} bytes");
            let fault = Fault::client("RequestEntityTooLargeException", message);
            return Err(fault.with_status(StatusCode::PAYLOAD_TOO_LARGE));
        }
        Ok(whole.into())
    }

    /// One byte more tells a body of the largest size from one that goes on.
    fn read(&self, from: impl Read) -> std::io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        from.take(self.limit() as u64 + 1).read_to_end(&mut whole)?;
        Ok(whole)
    }
}

/// Whether a service takes compressed bodies of any size, and of any coding.
fn is_large(service: Service) -> bool {
    matches!(service, Service::DynamoDb | Service::DynamoDbStreams)
}

fn encoding(headers: &HeaderMap) -> &str {
    headers.get(header::CONTENT_ENCODING).map_or("", |value| value.to_str().unwrap_or("?").trim())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn inflation(coding: &str, service: Service) -> Result<Inflation, Fault> {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_ENCODING, coding.parse().unwrap());
        Inflation::of(&headers, service)
    }

    fn inflate(service: Service, body: Vec<u8>) -> Result<Bytes, Fault> {
        inflation("gzip", service)?.inflated(body.into())
    }

    #[test]
    fn what_was_compressed_comes_back_within_the_limit_of_its_service() {
        let bomb = gzip(&vec![0; 64 << 20]);
        assert!(bomb.len() < 1 << 20);
        for (service, limit) in
            [(Service::CloudWatch, INFLATED_BYTES_MAX), (Service::DynamoDb, INFLATED_BYTES_MAX_LARGE)]
        {
            assert_eq!(inflate(service, gzip(b"{}")).unwrap(), "{}");
            let twice = [gzip(b"{"), gzip(b"}")].concat();
            assert_eq!(inflate(service, twice).unwrap(), "{}");
            assert_eq!(inflate(service, gzip(&vec![b' '; limit])).unwrap().len(), limit);
            let fault = inflate(service, gzip(&vec![b' '; limit + 1])).unwrap_err();
            assert_eq!(fault.status, StatusCode::PAYLOAD_TOO_LARGE);
            assert_eq!(inflate(service, bomb.clone()).unwrap_err().status, StatusCode::PAYLOAD_TOO_LARGE);
        }
        let deflate = inflation("deflate", Service::DynamoDb).unwrap();
        assert_eq!(deflate.inflated(zlib(b"{}").into()).unwrap(), "{}");
    }

    #[test]
    fn memory_is_bounded_by_what_can_come_of_so_many_bytes() {
        let gzip = inflation("gzip", Service::DynamoDb).unwrap();
        assert_eq!((gzip.bytes_max(100), gzip.bytes_max(1 << 20)), (103_200, INFLATED_BYTES_MAX_LARGE));
        let zeroes = vec![0; 8 << 20];
        assert!(zeroes.len() <= gzip.bytes_max(super::tests::gzip(&zeroes).len()));
        assert_eq!(Inflation::of(&HeaderMap::new(), Service::DynamoDb).unwrap().bytes_max(100), 0);
    }

    #[test]
    fn what_is_not_what_it_says_is_refused() {
        let whole = gzip(b"some words");
        for body in [b"{}".to_vec(), Vec::new(), whole[..whole.len() - 3].to_vec(), vec![0x1f, 0x8b]] {
            for service in [Service::Sqs, Service::DynamoDb] {
                let fault = inflate(service, body.clone()).unwrap_err();
                assert_eq!(fault.code, "SerializationException", "{body:?}");
            }
        }
        assert_eq!(inflation("br", Service::DynamoDb).unwrap_err().status.as_u16(), 415);
        assert_eq!(inflation("deflate", Service::Sqs).unwrap_err().status.as_u16(), 415);
    }
}
