//! Bodies as laws make them.

use bytes::Bytes;
use futures_util::{StreamExt, stream};

use crate::blob::{Body, BodyDigest, BodyDigester, BodyOptions, ChecksumAlgorithm, PutOptions};
use crate::{Error, Result, limits};

/// The smallest part that need not be the last.
pub(super) const PART: usize = limits::PART_BYTES_MIN as usize;

/// Bytes that differ from those of another seed, and from themselves at another place.
pub(super) fn some_bytes(seed: u64, length: usize) -> Bytes {
    let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(length);
    bytes.into()
}

/// A body in one piece.
pub(super) fn whole(bytes: &Bytes) -> Body {
    in_pieces(bytes, bytes.len().max(1))
}

/// A body in pieces of this size, with empty ones between them.
pub(super) fn in_pieces(bytes: &Bytes, size: usize) -> Body {
    let mut pieces = Vec::new();
    let mut rest = bytes.clone();
    while !rest.is_empty() {
        pieces.push(Ok(rest.split_to(size.min(rest.len()))));
        pieces.push(Ok(Bytes::new()));
    }
    Box::pin(stream::iter(pieces))
}

/// A body that ends with an error behind these bytes.
pub(super) fn broken(bytes: &Bytes, error: Error) -> Body {
    Box::pin(whole(bytes).chain(stream::iter([Err(error)])))
}

/// A body that never ends behind these bytes.
pub(super) fn stalled(bytes: &Bytes) -> Body {
    Box::pin(whole(bytes).chain(stream::pending::<Result<Bytes>>()))
}

/// How a blob is put whose tag is to be its MD5.
pub(super) fn tagged_with_md5() -> PutOptions {
    PutOptions { body: BodyOptions { md5_tag: true, ..BodyOptions::default() }, ..PutOptions::default() }
}

/// What is known about a body, with every checksum.
pub(super) fn digest(bytes: &[u8]) -> BodyDigest {
    let options =
        BodyOptions { computed: ChecksumAlgorithm::ALL.into_iter().collect(), ..BodyOptions::default() };
    let digested = BodyDigester::new(options).and_then(|mut digester| {
        digester.update(bytes)?;
        digester.finish()
    });
    digested.unwrap_or_else(|error| unreachable!("nothing was declared: {error}"))
}
