//! What a store computes while the bytes of a body go through its hands: size, etag and the checksums that were given
//! or asked for. Every implementation uses it, so that all refuse the same bodies.

use crc_fast::{CrcAlgorithm, checksum_combine};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::checksum::{Checksum, ChecksumAlgorithm, ChecksumScope, Checksums};
use super::etag::ETag;
use super::options::BodyOptions;
use crate::error::{Error, Result};
use crate::limits::BODY_BYTES_MAX;

/// One running checksum.
enum Running {
    Cyclic(ChecksumAlgorithm, crc_fast::Digest),
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Running {
    fn new(algorithm: ChecksumAlgorithm) -> Self {
        match (algorithm, cyclic(algorithm)) {
            (_, Some(cyclic)) => Running::Cyclic(algorithm, crc_fast::Digest::new(cyclic)),
            (ChecksumAlgorithm::Sha1, _) => Running::Sha1(Sha1::new()),
            (_, None) => Running::Sha256(Sha256::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Running::Cyclic(_, digest) => digest.update(bytes),
            Running::Sha1(digest) => digest.update(bytes),
            Running::Sha256(digest) => digest.update(bytes),
        }
    }

    fn finish(self) -> Checksum {
        match self {
            Running::Cyclic(algorithm, digest) => of_number(algorithm, digest.finalize()),
            Running::Sha1(digest) => of_bytes(ChecksumAlgorithm::Sha1, &digest.finalize()),
            Running::Sha256(digest) => of_bytes(ChecksumAlgorithm::Sha256, &digest.finalize()),
        }
    }
}

/// What `crc-fast` calls an algorithm; none for those that are not cyclic.
fn cyclic(algorithm: ChecksumAlgorithm) -> Option<CrcAlgorithm> {
    match algorithm {
        ChecksumAlgorithm::Crc32 => Some(CrcAlgorithm::Crc32IsoHdlc),
        ChecksumAlgorithm::Crc32c => Some(CrcAlgorithm::Crc32Iscsi),
        ChecksumAlgorithm::Crc64Nvme => Some(CrcAlgorithm::Crc64Nvme),
        ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => None,
    }
}

/// One checksum of bytes that go by, for those who compare it with what comes behind a body.
pub struct ChecksumDigester(Running);

impl ChecksumDigester {
    /// No byte yet.
    pub fn new(algorithm: ChecksumAlgorithm) -> Self {
        ChecksumDigester(Running::new(algorithm))
    }

    /// Takes the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// The checksum of all pieces.
    pub fn finish(self) -> Checksum {
        self.0.finish()
    }
}

fn of_number(algorithm: ChecksumAlgorithm, number: u64) -> Checksum {
    let bytes = number.to_be_bytes();
    of_bytes(algorithm, &bytes[bytes.len() - algorithm.bytes()..])
}

fn of_bytes(algorithm: ChecksumAlgorithm, bytes: &[u8]) -> Checksum {
    Checksum::new(algorithm, bytes).unwrap_or_else(|error| unreachable!("its own length: {error}"))
}

fn to_number(checksum: Checksum) -> u64 {
    checksum.value().iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The MD5 of a body that is at hand.
pub fn md5_of(body: &[u8]) -> [u8; 16] {
    Md5::digest(body).into()
}

/// Takes the pieces of a body in their order.
pub struct BodyDigester {
    options: BodyOptions,
    size: u64,
    tag: Tag,
    running: Vec<Running>,
}

/// What an etag is made of. MD5 is a chain of additions that no processor makes faster; most have instructions for
/// SHA-256, and then it takes a third of the time.
enum Tag {
    Md5(Md5),
    Hash(Sha256),
}

impl Tag {
    fn new(options: &BodyOptions) -> Self {
        match options.md5_tag || options.md5.is_some() {
            true => Tag::Md5(Md5::new()),
            false => Tag::Hash(Sha256::new()),
        }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Tag::Md5(md5) => md5.update(bytes),
            Tag::Hash(hash) => hash.update(bytes),
        }
    }

    fn finish(self) -> ETag {
        match self {
            Tag::Md5(md5) => ETag::of_md5(md5.finalize().into()),
            Tag::Hash(hash) => {
                let whole: [u8; 32] = hash.finalize().into();
                let (half, _) = whole.split_first_chunk().unwrap_or_else(|| unreachable!("it has 32 bytes"));
                ETag::of_hash(*half)
            }
        }
    }
}

/// What is known about a body once all of it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyDigest {
    /// Bytes.
    pub size: u64,
    /// Its tag.
    pub etag: ETag,
    /// Those that were given or asked for.
    pub checksums: Checksums,
}

impl BodyDigester {
    /// For a body that is declared like this. Refuses at once what is declared too large.
    pub fn new(options: BodyOptions) -> Result<Self> {
        if let Some(size) = options.size {
            check_size(size)?;
        }
        if options.expected.scope() != ChecksumScope::Body {
            return Err(Error::Invalid("a body is verified by checksums of its bytes only".to_string()));
        }
        let running = ChecksumAlgorithm::ALL
            .into_iter()
            .filter(|algorithm| {
                options.computed.contains(algorithm) || options.expected.get(*algorithm).is_some()
            })
            .map(Running::new)
            .collect();
        Ok(BodyDigester { tag: Tag::new(&options), options, size: 0, running })
    }

    /// Takes the next piece. Refuses it as soon as the body is longer than declared or allowed.
    pub fn update(&mut self, piece: &[u8]) -> Result<()> {
        self.size = self.size.saturating_add(piece.len() as u64);
        check_size(self.size)?;
        if let Some(declared) = self.options.size.filter(|declared| self.size > *declared) {
            return Err(Error::BodySizeMismatch { declared, received: self.size });
        }
        self.tag.update(piece);
        self.running.iter_mut().for_each(|running| running.update(piece));
        Ok(())
    }

    /// Compares what was seen with what was declared.
    pub fn finish(self) -> Result<BodyDigest> {
        if let Some(declared) = self.options.size.filter(|declared| self.size != *declared) {
            return Err(Error::BodySizeMismatch { declared, received: self.size });
        }
        let etag = self.tag.finish();
        if self.options.md5.is_some_and(|expected| etag != ETag::of_md5(expected)) {
            return Err(Error::ChecksumMismatch("md5"));
        }
        let checksums: Checksums = self.running.into_iter().map(Running::finish).collect();
        for expected in self.options.expected.iter() {
            if checksums.get(expected.algorithm()) != Some(expected) {
                return Err(Error::ChecksumMismatch(expected.algorithm().name()));
            }
        }
        Ok(BodyDigest { size: self.size, etag, checksums })
    }
}

fn check_size(size: u64) -> Result<()> {
    if size > BODY_BYTES_MAX {
        return Err(Error::BodyTooLarge { limit_bytes: BODY_BYTES_MAX });
    }
    Ok(())
}

/// Takes the digests of parts in their order, and makes what is known about the whole.
pub struct DigestOfParts {
    /// What the checksum of the whole is; none once nothing can be said about it.
    checksum: Option<(ChecksumAlgorithm, ChecksumScope)>,
    /// Whether the upload was begun with it: then no part may lack it.
    demanded: bool,
    size: u64,
    tags: Vec<[u8; 16]>,
    /// The checksum of the bytes up to here, where they are combined.
    combined: Option<u64>,
    /// The checksums of the parts, one behind the other, where they are not.
    running: Option<Running>,
}

/// What a blob is verified by whose upload was begun with nothing, if all its parts happen to have it.
const UNASKED: (ChecksumAlgorithm, ChecksumScope) = (ChecksumAlgorithm::Crc64Nvme, ChecksumScope::Body);

impl DigestOfParts {
    /// For an upload that was begun with this checksum.
    pub fn new(checksum: Option<(ChecksumAlgorithm, ChecksumScope)>) -> Self {
        let of_parts = checksum.filter(|(_, scope)| *scope == ChecksumScope::Parts);
        let running = of_parts.map(|(algorithm, _)| Running::new(algorithm));
        let (demanded, checksum) = (checksum.is_some(), checksum.or(Some(UNASKED)));
        DigestOfParts { checksum, demanded, size: 0, tags: Vec::new(), combined: None, running }
    }

    /// Takes the next part. A part without the checksum of the upload is refused. A tag that a store of others has made
    /// counts as none: then the tag of the whole is not the one that the store gives it.
    pub fn add(&mut self, size: u64, etag: &ETag, checksums: &Checksums) -> Result<()> {
        self.size += size;
        self.tags.push(etag.digest().unwrap_or_default());
        let Some((algorithm, _)) = self.checksum else { return Ok(()) };
        let Some(checksum) = checksums.get(algorithm) else {
            if !self.demanded {
                self.checksum = None;
                return Ok(());
            }
            return Err(Error::Invalid(format!(
                "part {} in the list has no {}",
                self.tags.len(),
                algorithm.name()
            )));
        };
        match (&mut self.running, cyclic(algorithm)) {
            (Some(running), _) => running.update(checksum.value()),
            (None, Some(cyclic)) => {
                let number = to_number(checksum);
                self.combined = Some(match self.combined {
                    None => number,
                    Some(before) => checksum_combine(cyclic, before, number, size),
                });
            }
            (None, None) => return Err(Error::Invalid(format!("a {} cannot be combined", algorithm.name()))),
        }
        Ok(())
    }

    /// Size, tag and checksums of the whole.
    pub fn finish(self) -> (u64, ETag, Checksums) {
        let etag = ETag::of_parts(&self.tags);
        let mut checksums = Checksums::empty(self.checksum.map_or(ChecksumScope::Body, |(_, scope)| scope));
        let combined =
            self.checksum.zip(self.combined).map(|((algorithm, _), number)| of_number(algorithm, number));
        let checksum = self.running.map(Running::finish).or(combined);
        checksum.into_iter().for_each(|checksum| checksums.insert(checksum));
        (self.size, etag, checksums)
    }
}
