//! A body with all that its request says about it.

use std::sync::Arc;

use anabranch_model::blob::{self, BodyDigester, BodyOptions, ChecksumDigester, Checksums};
use anabranch_model::{Error, Result as ModelResult};
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{HeaderMap, StatusCode};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Mutex;

use super::chunks::Chunks;
use super::coding::Coding;
use super::incoming::Incoming;
use crate::auth::Seed;
use crate::context::{Memory, Reservation};
use crate::fault::Fault;
use crate::limits::BODY_BYTES_MAX;
use crate::s3::checksum;
use crate::s3::errors::{bad_digest, fault, incomplete_body, invalid_request};
use crate::s3::headers::text;
use crate::s3::xml::malformed;

/// The body of a request, of which a store may take a part only.
pub(crate) struct Payload {
    source: Arc<Mutex<Source>>,
    declared: BodyOptions,
}

/// Where the bytes come from.
struct Source {
    incoming: Incoming,
    /// How many decoded bytes are still to come, if that is known.
    left: Option<u64>,
    /// What came and is not decoded.
    pending: Bytes,
    chunks: Option<Chunks>,
    /// The hash so far, and what it must be.
    hash: Option<(Sha256, String)>,
    /// The checksum so far, and the trailer that it is compared with.
    trailer: Option<(ChecksumDigester, String)>,
    ended: bool,
    /// Why the body ended early, in the words of S3.
    fault: Option<Fault>,
}

impl Payload {
    /// The body of a request with these headers. With a seed the signatures of chunks are compared.
    pub(crate) fn new(headers: &HeaderMap, seed: Option<Seed>, incoming: Incoming) -> Result<Self, Fault> {
        let coding = Coding::of(headers)?;
        let trailer = trailer(headers, &coding)?;
        let mut declared = BodyOptions {
            size: size(headers, &coding, incoming.size)?,
            md5: checksum::md5(headers)?,
            // Clients compare the tag of what they put with the MD5 that they have made themselves.
            md5_tag: true,
            expected: checksum::given(headers)?.into_iter().collect(),
            ..BodyOptions::default()
        };
        declared.computed.extend(trailer.as_ref().map(|(algorithm, _)| *algorithm));
        check_algorithm(headers, &declared)?;
        let source = Source {
            incoming,
            left: declared.size,
            pending: Bytes::new(),
            chunks: match coding {
                Coding::Chunked { signed, .. } => Some(Chunks::new(signed, seed)),
                _ => None,
            },
            hash: match coding {
                Coding::Hashed(hash) => Some((Sha256::new(), hash)),
                _ => None,
            },
            trailer: trailer.map(|(algorithm, name)| (ChecksumDigester::new(algorithm), name)),
            ended: false,
            fault: None,
        };
        Ok(Payload { source: Arc::new(Mutex::new(source)), declared })
    }

    /// What the request says about its body.
    pub(crate) fn declared(&self) -> BodyOptions {
        self.declared.clone()
    }

    /// What the request says about its body, which is stored: so its size must be known.
    pub(crate) fn storable(&self) -> Result<BodyOptions, Fault> {
        if self.declared.size.is_none() {
            let message = "You must provide the Content-Length HTTP header.";
            return Err(
                Fault::client("MissingContentLength", message).with_status(StatusCode::LENGTH_REQUIRED)
            );
        }
        Ok(self.declared())
    }

    /// The body for a store. It ends with an error if it is not what the request says.
    pub(crate) fn stream(&self) -> blob::Body {
        Box::pin(stream::unfold(self.source.clone(), |source| async move {
            let piece = source.lock().await.next().await?;
            Some((piece, source))
        }))
    }

    /// What to answer when a store refused the body with this error.
    pub(crate) async fn blame(&self, error: Error) -> Fault {
        let recorded = self.source.lock().await.fault.clone();
        recorded.unwrap_or_else(|| fault(error))
    }

    /// A small body as a whole, compared with what was said about it. The reservation covers it and what is made of it.
    pub(crate) async fn collect(&self, memory: &dyn Memory) -> Result<(Bytes, Reservation), Fault> {
        self.collect_as(memory, self.declared()).await
    }

    /// The same for a request whose checksum is that of an object and not that of the body.
    pub(crate) async fn collect_without_checksum(
        &self,
        memory: &dyn Memory,
    ) -> Result<(Bytes, Reservation), Fault> {
        self.collect_as(memory, BodyOptions { expected: Checksums::default(), ..self.declared() }).await
    }

    async fn collect_as(
        &self,
        memory: &dyn Memory,
        declared: BodyOptions,
    ) -> Result<(Bytes, Reservation), Fault> {
        let announced = declared.size.unwrap_or(BODY_BYTES_MAX as u64);
        if announced > BODY_BYTES_MAX as u64 {
            return Err(malformed());
        }
        let reservation = memory.reserve(3 * announced).await.map_err(fault)?;
        let mut digester = BodyDigester::new(declared).map_err(fault)?;
        let mut collected = BytesMut::new();
        let mut source = self.source.lock().await;
        while let Some(piece) = source.next().await {
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => return Err(source.fault.clone().unwrap_or_else(|| fault(error))),
            };
            if collected.len() + piece.len() > BODY_BYTES_MAX {
                return Err(malformed());
            }
            digester.update(&piece).map_err(fault)?;
            collected.extend_from_slice(&piece);
        }
        digester.finish().map_err(fault)?;
        Ok((collected.freeze(), reservation))
    }
}

impl Source {
    async fn next(&mut self) -> Option<ModelResult<Bytes>> {
        if self.ended {
            return None;
        }
        match self.piece().await {
            Ok(Some(piece)) => Some(Ok(piece)),
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(fault) => {
                self.ended = true;
                let error = Error::Invalid(fault.message.clone());
                self.fault = Some(fault);
                Some(Err(error))
            }
        }
    }

    /// The next decoded bytes; none at the end of a body that is what it should be.
    async fn piece(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            if let Some(piece) = self.decode()? {
                let beyond = |left: u64| left.checked_sub(piece.len() as u64).ok_or_else(incomplete_body);
                self.left = self.left.map(beyond).transpose()?;
                self.sum(&piece);
                return Ok(Some(piece));
            }
            match self.incoming.next().await? {
                Some(bytes) => self.pending = bytes,
                None => return self.finish().map(|()| None),
            }
        }
    }

    fn decode(&mut self) -> Result<Option<Bytes>, Fault> {
        match &mut self.chunks {
            Some(chunks) => chunks.next(&mut self.pending),
            None if self.pending.is_empty() => Ok(None),
            None => Ok(Some(std::mem::take(&mut self.pending))),
        }
    }

    fn sum(&mut self, piece: &[u8]) {
        if let Some((hash, _)) = &mut self.hash {
            hash.update(piece);
        }
        if let Some((checksum, _)) = &mut self.trailer {
            checksum.update(piece);
        }
    }

    fn finish(&mut self) -> Result<(), Fault> {
        if self.left.is_some_and(|left| left > 0) {
            return Err(incomplete_body());
        }
        if let Some((hash, expected)) = self.hash.take() {
            let computed = hex::encode(hash.finalize());
            if !bool::from(computed.as_bytes().ct_eq(expected.as_bytes())) {
                let message = "The provided 'x-amz-content-sha256' header does not match what was computed.";
                return Err(Fault::client("XAmzContentSHA256Mismatch", message));
            }
        }
        let Some(chunks) = &mut self.chunks else { return Ok(()) };
        let trailers = chunks.finish()?;
        let Some((checksum, name)) = self.trailer.take() else { return Ok(()) };
        let checksum = checksum.finish();
        let value = trailers.iter().find(|(found, _)| *found == name).map(|(_, value)| value);
        match value.map(|value| checksum::parse(checksum.algorithm(), value)) {
            Some(Some(given)) if given == checksum => Ok(()),
            Some(Some(_)) => Err(bad_digest(checksum::name(checksum.algorithm()))),
            Some(None) => Err(invalid_request(format!("Value for {name} trailing header is invalid."))),
            None => Err(Fault::client(
                "MalformedTrailerError",
                "The request contained trailing data that was not well-formed or did not conform to our published schema.",
            )),
        }
    }
}

/// How many bytes the decoded body has, if that is known.
fn size(headers: &HeaderMap, coding: &Coding, known: Option<u64>) -> Result<Option<u64>, Fault> {
    let name = match coding {
        Coding::Chunked { .. } => "x-amz-decoded-content-length",
        _ => "content-length",
    };
    match text(headers, name)? {
        Some(length) => {
            let refused = || invalid_request(format!("The header {name} is no number"));
            length.trim().parse().map(Some).map_err(|_| refused())
        }
        None if matches!(coding, Coding::Chunked { .. }) => Ok(None),
        None => Ok(known),
    }
}

/// The checksum that follows the body: its algorithm and the name of its trailer.
fn trailer(headers: &HeaderMap, coding: &Coding) -> Result<Option<(blob::ChecksumAlgorithm, String)>, Fault> {
    let Some(name) = text(headers, "x-amz-trailer")? else { return Ok(None) };
    let name = name.trim().to_ascii_lowercase();
    if !matches!(coding, Coding::Chunked { trailers: true, .. }) {
        return Err(invalid_request("x-amz-trailer is for bodies with trailing headers only"));
    }
    match checksum::of_header(&name) {
        Some(algorithm) => Ok(Some((algorithm?, name))),
        None => Err(invalid_request("The value specified in the x-amz-trailer header is not supported")),
    }
}

/// The algorithm that a client says it used is the one of the checksum that it sends.
fn check_algorithm(headers: &HeaderMap, declared: &BodyOptions) -> Result<(), Fault> {
    let Some(algorithm) = checksum::named(headers, "x-amz-sdk-checksum-algorithm")? else { return Ok(()) };
    if declared.computed.contains(&algorithm) || declared.expected.get(algorithm).is_some() {
        return Ok(());
    }
    Err(invalid_request(
        "x-amz-sdk-checksum-algorithm specified, but no corresponding x-amz-checksum-* or x-amz-trailer headers were found.",
    ))
}
