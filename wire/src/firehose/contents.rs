//! The records of one object, read and packed while they are stored.

use std::io::{self, Write};

use anabranch_model::blob::Body;
use anabranch_model::stream::{Next, ReadLimit};
use anabranch_model::{Error, Position};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::stream;

use super::definition::Definition;
use super::reading::Reader;

/// Bytes of one read. Where a shard has its limits it is read five times a second, which must be more than it takes.
const READ_BYTES: usize = 1 << 20;

/// What remains to be read of one object.
pub(super) struct Contents {
    reader: Reader,
    at: Position,
    /// Bytes that the object still takes.
    left: u64,
    packing: Packing,
}

/// How records lie in an object.
enum Packing {
    Plain,
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Contents {
    /// The records from a place on, as many as the object takes.
    pub(super) fn new(reader: Reader, at: Position, definition: &Definition) -> Self {
        let packing = match definition.gzip {
            true => Packing::Gzip(Box::new(GzEncoder::new(Vec::new(), Compression::default()))),
            false => Packing::Plain,
        };
        Contents { reader, at, left: definition.size_mib << 20, packing }
    }

    /// The same as the body of a blob.
    pub(super) fn into_body(self) -> Body {
        Box::pin(stream::try_unfold(Some(self), |contents| async {
            match contents {
                Some(contents) => contents.piece().await.map(Some),
                None => Ok(None),
            }
        }))
    }

    /// The next piece of the object, and what remains.
    async fn piece(mut self) -> Result<(Bytes, Option<Contents>), Error> {
        let bytes = usize::try_from(self.left).unwrap_or(usize::MAX).min(READ_BYTES);
        let limit = ReadLimit { bytes, ..ReadLimit::default() };
        let batch = self.reader.read(self.at, limit).await?;
        let mut data = Vec::with_capacity(batch.records.iter().map(|record| record.data.len()).sum());
        batch.records.iter().for_each(|record| data.extend_from_slice(&record.data));
        self.left = self.left.saturating_sub(data.len() as u64);
        match batch.next {
            Next::At(at) if self.left > 0 && !batch.records.is_empty() => {
                self.at = at;
                Ok((self.packing.pack(data).map_err(cannot_pack)?, Some(self)))
            }
            _ => Ok((self.packing.finish(data).map_err(cannot_pack)?, None)),
        }
    }
}

impl Packing {
    fn pack(&mut self, data: Vec<u8>) -> io::Result<Bytes> {
        match self {
            Packing::Plain => Ok(data.into()),
            Packing::Gzip(encoder) => {
                encoder.write_all(&data)?;
                Ok(std::mem::take(encoder.get_mut()).into())
            }
        }
    }

    fn finish(self, data: Vec<u8>) -> io::Result<Bytes> {
        match self {
            Packing::Plain => Ok(data.into()),
            Packing::Gzip(mut encoder) => {
                encoder.write_all(&data)?;
                encoder.finish().map(Bytes::from)
            }
        }
    }
}

fn cannot_pack(error: io::Error) -> Error {
    Error::Unavailable(format!("the records cannot be compressed: {error}"))
}
