//! A second copy of the catalogue, beside `state.redb`: with it and the journal the state can be built again if that file is
//! damaged or lost.
//!
//! `catalogue` holds a tag, which says whether there are rows that it has not, the covered position, all streams and shards as rows, and
//! documents if these are the only rows; a CRC-32 ends it. It is written anew, under another name first, by the first
//! checkpoint of an opening and by every other that covers a change of what it holds, or the first other rows.
//!
//! What must hold: a segment is retired only when this copy contains every change of the catalogue that the segment
//! has; whatever is younger is still in the journal. Without other rows the same holds for documents.

use std::io::IoSlice;
use std::sync::Arc;

use anabranch_model::{Disk, Error, Open, Result};
use bytes::Bytes;

use super::catalogue::{ShardKey, ShardRow, StreamRow};
use super::{Covered, FILE, io_error};
use crate::encoding::{Malformed, Put, Take};

/// The file.
pub const COPY_FILE: &str = "catalogue";
const COPY_FILE_NEW: &str = "catalogue.new";
/// There are no rows.
const STREAMS_ONLY: u32 = 1;
/// There are rows, of which only `state.redb` has those that the journal forgot.
const WITH_ROWS: u32 = 2;
/// There are documents and no other rows.
const WITH_DOCUMENTS: u32 = 3;

/// Streams and shards at one position of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueCopy {
    /// How far it goes.
    pub covered: Covered,
    /// Streams by identifier.
    pub streams: Vec<(u64, StreamRow)>,
    /// Shards that are not doomed.
    pub shards: Vec<(ShardKey, ShardRow)>,
    /// Documents and dead prefixes; `None` if there are rows that this copy does not have.
    pub documents: Option<Vec<(Bytes, Bytes)>>,
}

impl CatalogueCopy {
    /// Replaces the copy on the disk.
    pub fn write(&self, disk: &Arc<dyn Disk>) -> Result<()> {
        let file = disk.open(COPY_FILE_NEW, Open::CreateIfMissing).map_err(io_error)?;
        let bytes = self.encode();
        file.set_len(0).map_err(io_error)?;
        file.write_all_at(0, &[IoSlice::new(&bytes)]).map_err(io_error)?;
        file.sync().map_err(io_error)?;
        disk.rename(COPY_FILE_NEW, COPY_FILE).map_err(io_error)?;
        disk.sync_directory("").map_err(io_error)
    }

    /// Reads the copy from the disk.
    pub fn read(disk: &Arc<dyn Disk>) -> Result<CatalogueCopy> {
        let damaged = || {
            Error::Corrupt(format!(
                "both `{FILE}` and `{COPY_FILE}` are damaged or missing: put the directory back from a backup"
            ))
        };
        let file = disk.open(COPY_FILE, Open::Existing).map_err(|_| damaged())?;
        let mut bytes = vec![0; file.len().map_err(io_error)? as usize];
        file.read_exact_at(0, &mut bytes).map_err(io_error)?;
        let (contents, checksum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if crc32fast::hash(contents) != u32::from_le_bytes(*checksum) {
            return Err(damaged());
        }
        CatalogueCopy::decode(contents).map_err(|_| damaged())
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u32(match self.documents.as_deref() {
            None => WITH_ROWS,
            Some([]) => STREAMS_ONLY,
            Some(_) => WITH_DOCUMENTS,
        });
        bytes.put(&self.covered.encode());
        bytes.put_u32(self.streams.len() as u32);
        for (stream, row) in &self.streams {
            bytes.put_u64(*stream);
            put_row(&mut bytes, &row.encode());
        }
        bytes.put_u32(self.shards.len() as u32);
        for (key, row) in &self.shards {
            bytes.put(&key.encode());
            put_row(&mut bytes, &row.encode());
        }
        if let Some(documents @ [_, ..]) = self.documents.as_deref() {
            bytes.put_u32(documents.len() as u32);
            for (key, value) in documents {
                put_row(&mut bytes, key);
                put_row(&mut bytes, value);
            }
        }
        let checksum = crc32fast::hash(&bytes);
        bytes.put_u32(checksum);
        bytes
    }

    fn decode(bytes: &[u8]) -> std::result::Result<CatalogueCopy, Malformed> {
        let mut take = Take(bytes);
        let tag = take.u32()?;
        let covered = Covered { position: take.u64()?, epoch: take.u32()?, last_state: take.u64()? };
        let streams = (0..take.u32()?)
            .map(|_| Ok((take.u64()?, StreamRow::decode(take_row(&mut take)?)?)))
            .collect::<std::result::Result<_, Malformed>>()?;
        let shards = (0..take.u32()?)
            .map(|_| Ok((ShardKey::decode(take.bytes(12)?)?, ShardRow::decode(take_row(&mut take)?)?)))
            .collect::<std::result::Result<_, Malformed>>()?;
        let documents = match tag {
            STREAMS_ONLY => Some(Vec::new()),
            WITH_ROWS => None,
            WITH_DOCUMENTS => {
                let count = take.u32()?;
                let mut row = || take_row(&mut take).map(Bytes::copy_from_slice);
                Some(
                    (0..count)
                        .map(|_| Ok((row()?, row()?)))
                        .collect::<std::result::Result<_, Malformed>>()?,
                )
            }
            _ => return Err(Malformed),
        };
        take.end().map(|()| CatalogueCopy { covered, streams, shards, documents })
    }
}

fn put_row(bytes: &mut Vec<u8>, row: &[u8]) {
    bytes.put_u32(row.len() as u32);
    bytes.put(row);
}

fn take_row<'a>(take: &mut Take<'a>) -> std::result::Result<&'a [u8], Malformed> {
    let length = take.u32()? as usize;
    take.bytes(length)
}
