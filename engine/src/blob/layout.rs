//! The rows of blobs: every key and every value, byte for byte. `docs/on-disk.md` has them in one table.
//!
//! What must hold: keys of blobs stand in rows as they are, so rows sort as keys do. Keys of uploads have something
//! behind them, so each of their bytes is raised by one and a zero ends them; UTF-8 has no byte that is too large.

use std::collections::BTreeMap;

use anabranch_model::Timestamp;
use anabranch_model::blob::{
    BlobKey, BlobMeta, BucketName, Checksum, ChecksumAlgorithm, ChecksumScope, Checksums, ETag, Header, Part,
    PartNumber, Properties, UploadId, UploadOptions,
};

use crate::encoding::{Malformed, Put, Take};
use crate::rows::Space;
use crate::rows::change::place;

const BUCKET: u8 = 1;
const DEAD: u8 = 2;
const FILE: u8 = 3;

const BLOB: u8 = 1;
const INLINE: u8 = 2;
const UPLOAD: u8 = 3;
const PART: u8 = 4;

/// What the keys of all buckets begin with.
pub fn buckets() -> Vec<u8> {
    vec![Space::Buckets as u8, BUCKET]
}

/// The row of a bucket.
pub fn bucket_key(name: &BucketName) -> Vec<u8> {
    [&buckets(), name.as_str().as_bytes()].concat()
}

/// What the keys of everything that is dead and still has parts begin with.
pub fn dead() -> Vec<u8> {
    vec![Space::Buckets as u8, DEAD]
}

/// The row that says that a bucket, or one of its uploads, is dead.
pub fn dead_key(bucket: u64, upload: Option<u64>) -> Vec<u8> {
    let mut key = dead();
    key.put(&bucket.to_be_bytes());
    upload.into_iter().for_each(|upload| key.put(&upload.to_be_bytes()));
    key
}

/// What [`dead_key`] was made from.
pub fn read_dead_key(key: &[u8]) -> Result<(u64, Option<u64>), Malformed> {
    let number = |bytes: &[u8]| bytes.try_into().map(u64::from_be_bytes).map_err(|_| Malformed);
    let (bucket, upload) = key.get(2..).and_then(|numbers| numbers.split_at_checked(8)).ok_or(Malformed)?;
    Ok((number(bucket)?, if upload.is_empty() { None } else { Some(number(upload)?) }))
}

/// What the keys of all files begin with.
pub fn files() -> Vec<u8> {
    vec![Space::Buckets as u8, FILE]
}

/// The row that says that a file belongs to a blob or a part.
pub fn file_key(id: u64) -> Vec<u8> {
    let mut key = files();
    key.put(&id.to_be_bytes());
    key
}

/// The id that [`file_key`] was made from.
pub fn read_file_key(key: &[u8]) -> Result<u64, Malformed> {
    let id = key.get(2..).ok_or(Malformed)?;
    id.try_into().map(u64::from_be_bytes).map_err(|_| Malformed)
}

/// What the keys of everything in a bucket begin with.
pub fn bucket_rows(bucket: u64) -> Vec<u8> {
    let mut key = vec![Space::BucketRows as u8];
    key.put(&bucket.to_be_bytes());
    key
}

fn of_kind(bucket: u64, kind: u8) -> Vec<u8> {
    let mut key = bucket_rows(bucket);
    key.put_u8(kind);
    key
}

/// What the keys of all blobs of a bucket begin with.
pub fn blobs(bucket: u64) -> Vec<u8> {
    of_kind(bucket, BLOB)
}

/// The row of a blob.
pub fn blob_key(bucket: u64, key: &BlobKey) -> Vec<u8> {
    [&blobs(bucket), key.as_str().as_bytes()].concat()
}

/// The row of a body that is short enough for a row.
pub fn inline_key(bucket: u64, key: &BlobKey) -> Vec<u8> {
    [&of_kind(bucket, INLINE), key.as_str().as_bytes()].concat()
}

/// What the keys of uploads begin with whose blobs have keys that begin with `prefix`.
pub fn uploads(bucket: u64, prefix: &str) -> Vec<u8> {
    let mut key = of_kind(bucket, UPLOAD);
    key.extend(prefix.bytes().map(|byte| byte + 1));
    key
}

/// What the keys of the uploads of one key begin with; the position of the frame that begins one completes it.
pub fn uploads_of(bucket: u64, key: &BlobKey) -> Vec<u8> {
    let mut prefix = uploads(bucket, key.as_str());
    prefix.put_u8(0);
    prefix
}

/// The row of an upload.
pub fn upload_key(bucket: u64, key: &BlobKey, upload: u64) -> Vec<u8> {
    place(&uploads_of(bucket, key), upload, 0)
}

/// The key of the blob and the number of the upload that a row is of.
pub fn read_upload_key(bucket: u64, row: &[u8]) -> Result<(BlobKey, u64), Malformed> {
    let rest = row.get(of_kind(bucket, UPLOAD).len()..).ok_or(Malformed)?;
    let end = rest.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
    let key: Vec<u8> = rest[..end].iter().map(|byte| byte - 1).collect();
    let key = String::from_utf8(key).map_err(|_| Malformed)?;
    let number = rest.get(end + 1..end + 9).ok_or(Malformed)?;
    let number = u64::from_be_bytes(number.try_into().map_err(|_| Malformed)?);
    Ok((BlobKey::new(&key).map_err(|_| Malformed)?, number))
}

/// What the keys of all parts of a bucket begin with, or of one of its uploads.
pub fn parts(bucket: u64, upload: Option<u64>) -> Vec<u8> {
    let mut key = of_kind(bucket, PART);
    upload.into_iter().for_each(|upload| key.put(&upload.to_be_bytes()));
    key
}

/// The row of a part.
pub fn part_key(bucket: u64, upload: u64, part: PartNumber) -> Vec<u8> {
    let mut key = parts(bucket, Some(upload));
    key.put(&part.get().to_be_bytes());
    key
}

/// The number of the part that a row is of.
pub fn read_part_key(row: &[u8]) -> Result<PartNumber, Malformed> {
    let number = row.last_chunk::<2>().ok_or(Malformed)?;
    PartNumber::new(u64::from(u16::from_be_bytes(*number))).map_err(|_| Malformed)
}

/// The first key behind all that begin with `prefix`. Its last byte is none that cannot be raised.
pub fn behind(mut prefix: Vec<u8>) -> Vec<u8> {
    if let Some(last) = prefix.last_mut() {
        *last += 1;
    }
    prefix
}

/// What an upload is called outside.
pub fn upload_id(upload: u64) -> String {
    format!("{upload:016x}")
}

/// The number of an upload that is called like this; none if no upload is.
pub fn read_upload_id(id: &UploadId) -> Option<u64> {
    u64::from_str_radix(id.as_str(), 16).ok().filter(|upload| upload_id(*upload) == id.as_str())
}

/// A bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredBucket {
    pub number: u64,
    pub created_ms: u64,
}

impl StoredBucket {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u64(self.number);
        bytes.put_u64(self.created_ms);
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<StoredBucket, Malformed> {
        let mut take = Take(bytes);
        let bucket = StoredBucket { number: take.u64()?, created_ms: take.u64()? };
        take.end().map(|()| bucket)
    }
}

/// A file with a body or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilePart {
    pub id: u64,
    /// Bytes of the body, without checksums.
    pub bytes: u64,
}

/// Where the bytes of a body are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoredBody {
    /// In a row of its own.
    Inline,
    /// In files, one behind the other.
    Files(Vec<FilePart>),
}

impl StoredBody {
    /// The files.
    pub fn files(&self) -> &[FilePart] {
        match self {
            StoredBody::Inline => &[],
            StoredBody::Files(files) => files,
        }
    }

    fn encode(&self, bytes: &mut Vec<u8>) {
        match self {
            StoredBody::Inline => bytes.put_u8(0),
            StoredBody::Files(files) => {
                bytes.put_u8(1);
                bytes.put_u32(files.len() as u32);
                for file in files {
                    bytes.put_u64(file.id);
                    bytes.put_u64(file.bytes);
                }
            }
        }
    }

    fn decode(take: &mut Take<'_>) -> Result<StoredBody, Malformed> {
        match take.u8()? {
            0 => Ok(StoredBody::Inline),
            1 => {
                let count = take.u32()?;
                let file = |_| Ok(FilePart { id: take.u64()?, bytes: take.u64()? });
                (0..count).map(file).collect::<Result<_, _>>().map(StoredBody::Files)
            }
            _ => Err(Malformed),
        }
    }
}

/// A blob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBlob {
    pub meta: BlobMeta,
    pub body: StoredBody,
    /// The checksums of its parts, where that of the whole is made of them. Rows of before have none.
    pub part_checksums: Vec<Checksums>,
}

impl StoredBlob {
    /// The sizes of the parts that it was put in; none if it was put at once. A part is a file, except the last if it
    /// has no bytes.
    pub fn part_sizes(&self) -> Vec<u64> {
        let Some(parts) = self.meta.parts else { return Vec::new() };
        let mut sizes: Vec<u64> = self.body.files().iter().map(|file| file.bytes).collect();
        sizes.resize(usize::from(parts), 0);
        sizes
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let BlobMeta { size, etag, properties, checksums, modified_at, parts } = &self.meta;
        bytes.put_u64(*size);
        bytes.put_text(etag.as_str());
        bytes.put_u64(modified_at.as_millis());
        bytes.put_u32(parts.map_or(0, u32::from));
        put_properties(&mut bytes, properties);
        put_checksums(&mut bytes, checksums);
        self.body.encode(&mut bytes);
        if !self.part_checksums.is_empty() {
            bytes.put_u32(self.part_checksums.len() as u32);
            self.part_checksums.iter().for_each(|checksums| put_checksums(&mut bytes, checksums));
        }
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<StoredBlob, Malformed> {
        let mut take = Take(bytes);
        let (size, etag) = (take.u64()?, take_etag(&mut take)?);
        let modified_at = Timestamp::from_millis(take.u64()?);
        let parts = u16::try_from(take.u32()?).map_err(|_| Malformed)?;
        let parts = Some(parts).filter(|parts| *parts > 0);
        let (properties, checksums) = (take_properties(&mut take)?, take_checksums(&mut take)?);
        let meta = BlobMeta { size, etag, properties, checksums, modified_at, parts };
        let body = StoredBody::decode(&mut take)?;
        let part_checksums = match take.0.is_empty() {
            true => Vec::new(),
            false => take_part_checksums(&mut take)?,
        };
        take.end().map(|()| StoredBlob { meta, body, part_checksums })
    }
}

/// What no part has is not written.
fn take_part_checksums(take: &mut Take<'_>) -> Result<Vec<Checksums>, Malformed> {
    match take.u32()? {
        0 => Err(Malformed),
        count => (0..count).map(|_| take_checksums(take)).collect(),
    }
}

/// An open upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredUpload {
    pub options: UploadOptions,
    pub begun_at: Timestamp,
}

impl StoredUpload {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u64(self.begun_at.as_millis());
        match self.options.checksum {
            None => bytes.put_u8(0),
            Some((algorithm, scope)) => {
                bytes.put_u8(tag_of(algorithm));
                bytes.put_u8(u8::from(scope == ChecksumScope::Parts));
            }
        }
        put_properties(&mut bytes, &self.options.properties);
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<StoredUpload, Malformed> {
        let mut take = Take(bytes);
        let begun_at = Timestamp::from_millis(take.u64()?);
        let checksum = match take.u8()? {
            0 => None,
            tag => Some((algorithm_of(tag)?, take_scope(&mut take)?)),
        };
        let options = UploadOptions { properties: take_properties(&mut take)?, checksum };
        take.end().map(|()| StoredUpload { options, begun_at })
    }
}

/// A part of an open upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredPart {
    pub part: Part,
    pub body: StoredBody,
}

impl StoredPart {
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.put_u64(self.part.size);
        bytes.put_text(self.part.etag.as_str());
        bytes.put_u64(self.part.modified_at.as_millis());
        put_checksums(&mut bytes, &self.part.checksums);
        self.body.encode(&mut bytes);
        bytes
    }

    pub fn decode(number: PartNumber, bytes: &[u8]) -> Result<StoredPart, Malformed> {
        let mut take = Take(bytes);
        let (size, etag) = (take.u64()?, take_etag(&mut take)?);
        let modified_at = Timestamp::from_millis(take.u64()?);
        let part = Part { number, size, etag, modified_at, checksums: take_checksums(&mut take)? };
        let body = StoredBody::decode(&mut take)?;
        take.end().map(|()| StoredPart { part, body })
    }
}

fn take_etag(take: &mut Take<'_>) -> Result<ETag, Malformed> {
    ETag::new(take.text()?).map_err(|_| Malformed)
}

fn put_properties(bytes: &mut Vec<u8>, properties: &Properties) {
    bytes.put_u8(properties.headers.len() as u8);
    for (header, value) in &properties.headers {
        bytes.put_u8(Header::ALL.iter().position(|known| known == header).unwrap_or_default() as u8);
        bytes.put_text(value);
    }
    bytes.put_u32(properties.metadata.len() as u32);
    for (name, value) in &properties.metadata {
        bytes.put_text(name);
        bytes.put_text(value);
    }
}

fn take_properties(take: &mut Take<'_>) -> Result<Properties, Malformed> {
    let mut headers = BTreeMap::new();
    for _ in 0..take.u8()? {
        let header = *Header::ALL.get(usize::from(take.u8()?)).ok_or(Malformed)?;
        headers.insert(header, take.text()?.to_owned());
    }
    let mut metadata = BTreeMap::new();
    for _ in 0..take.u32()? {
        metadata.insert(take.text()?.to_owned(), take.text()?.to_owned());
    }
    Ok(Properties { headers, metadata })
}

/// Zero stands for none.
fn tag_of(algorithm: ChecksumAlgorithm) -> u8 {
    let place = ChecksumAlgorithm::ALL.iter().position(|known| *known == algorithm);
    place.unwrap_or_default() as u8 + 1
}

fn algorithm_of(tag: u8) -> Result<ChecksumAlgorithm, Malformed> {
    ChecksumAlgorithm::ALL.get(usize::from(tag).wrapping_sub(1)).copied().ok_or(Malformed)
}

fn take_scope(take: &mut Take<'_>) -> Result<ChecksumScope, Malformed> {
    match take.u8()? {
        0 => Ok(ChecksumScope::Body),
        1 => Ok(ChecksumScope::Parts),
        _ => Err(Malformed),
    }
}

fn put_checksums(bytes: &mut Vec<u8>, checksums: &Checksums) {
    bytes.put_u8(u8::from(checksums.scope() == ChecksumScope::Parts));
    bytes.put_u8(checksums.iter().count() as u8);
    for checksum in checksums.iter() {
        bytes.put_u8(tag_of(checksum.algorithm()));
        bytes.put(checksum.value());
    }
}

fn take_checksums(take: &mut Take<'_>) -> Result<Checksums, Malformed> {
    let mut checksums = Checksums::empty(take_scope(take)?);
    for _ in 0..take.u8()? {
        let algorithm = algorithm_of(take.u8()?)?;
        let value = take.bytes(algorithm.bytes())?;
        checksums.insert(Checksum::new(algorithm, value).map_err(|_| Malformed)?);
    }
    Ok(checksums)
}
