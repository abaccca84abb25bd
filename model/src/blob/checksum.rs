//! Checksums by which a body is verified on its way in and on its way out.
//!
//! The three cyclic ones come from `crc-fast`: one crate for all of them, kept by the people whose code the common
//! client libraries use, two small dependencies, fast without special flags, and able to combine checksums of parts.
//! `sha1` and `sha2` are of the family and generation of `md-5`, so they share what it brings.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::{Error, Result};

/// How a checksum is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChecksumAlgorithm {
    /// The cyclic one of Ethernet and zip.
    Crc32,
    /// Castagnoli's polynomial.
    Crc32c,
    /// The 64 bits of NVMe.
    Crc64Nvme,
    /// SHA-1.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl ChecksumAlgorithm {
    /// All of them.
    pub const ALL: [ChecksumAlgorithm; 5] = [
        ChecksumAlgorithm::Crc32,
        ChecksumAlgorithm::Crc32c,
        ChecksumAlgorithm::Crc64Nvme,
        ChecksumAlgorithm::Sha1,
        ChecksumAlgorithm::Sha256,
    ];

    /// Length of a value.
    pub fn bytes(self) -> usize {
        match self {
            ChecksumAlgorithm::Crc32 | ChecksumAlgorithm::Crc32c => 4,
            ChecksumAlgorithm::Crc64Nvme => 8,
            ChecksumAlgorithm::Sha1 => 20,
            ChecksumAlgorithm::Sha256 => 32,
        }
    }

    /// The name that a message uses.
    pub fn name(self) -> &'static str {
        match self {
            ChecksumAlgorithm::Crc32 => "crc32",
            ChecksumAlgorithm::Crc32c => "crc32c",
            ChecksumAlgorithm::Crc64Nvme => "crc64nvme",
            ChecksumAlgorithm::Sha1 => "sha1",
            ChecksumAlgorithm::Sha256 => "sha256",
        }
    }

    /// Whether an upload in parts can have a checksum of this kind. Only cyclic ones of parts can be combined to that
    /// of the whole; and the one of 64 bits is wide enough that nobody takes it of parts.
    pub fn allows(self, scope: ChecksumScope) -> bool {
        match self {
            ChecksumAlgorithm::Crc32 | ChecksumAlgorithm::Crc32c => true,
            ChecksumAlgorithm::Crc64Nvme => scope == ChecksumScope::Body,
            ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => scope == ChecksumScope::Parts,
        }
    }
}

/// What a checksum was computed from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChecksumScope {
    /// The bytes of the body.
    #[default]
    Body,
    /// The checksums of the parts, one behind the other.
    Parts,
}

/// The value of a checksum, most significant byte first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Checksum {
    algorithm: ChecksumAlgorithm,
    /// Bytes behind the length of the algorithm are zero.
    value: [u8; 32],
}

impl Checksum {
    /// Checks the length of a value.
    pub fn new(algorithm: ChecksumAlgorithm, value: &[u8]) -> Result<Self> {
        if value.len() != algorithm.bytes() {
            return Err(Error::Invalid(format!(
                "a {} has {} bytes, not {}",
                algorithm.name(),
                algorithm.bytes(),
                value.len()
            )));
        }
        let mut padded = [0; 32];
        padded[..value.len()].copy_from_slice(value);
        Ok(Checksum { algorithm, value: padded })
    }

    /// How it was computed.
    pub fn algorithm(&self) -> ChecksumAlgorithm {
        self.algorithm
    }

    /// Its bytes.
    pub fn value(&self) -> &[u8] {
        &self.value[..self.algorithm.bytes()]
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.algorithm.name())?;
        self.value().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// At most one checksum of each algorithm, all of one scope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checksums {
    scope: ChecksumScope,
    values: BTreeMap<ChecksumAlgorithm, Checksum>,
}

/// Which checksums there are, without their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChecksumKinds {
    /// What they were computed from.
    pub scope: ChecksumScope,
    /// In the order of [`ChecksumAlgorithm::ALL`].
    pub algorithms: Vec<ChecksumAlgorithm>,
}

impl Checksums {
    /// No checksum yet, of this scope.
    pub fn empty(scope: ChecksumScope) -> Self {
        Checksums { scope, values: BTreeMap::new() }
    }

    /// Adds a checksum, in place of one of the same algorithm.
    pub fn insert(&mut self, checksum: Checksum) {
        self.values.insert(checksum.algorithm(), checksum);
    }

    /// The checksum of this algorithm.
    pub fn get(&self, algorithm: ChecksumAlgorithm) -> Option<Checksum> {
        self.values.get(&algorithm).copied()
    }

    /// What they were computed from.
    pub fn scope(&self) -> ChecksumScope {
        self.scope
    }

    /// Which of them there are.
    pub fn kinds(&self) -> ChecksumKinds {
        ChecksumKinds { scope: self.scope, algorithms: self.values.keys().copied().collect() }
    }

    /// All of them, in the order of [`ChecksumAlgorithm::ALL`].
    pub fn iter(&self) -> impl Iterator<Item = Checksum> + '_ {
        self.values.values().copied()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl FromIterator<Checksum> for Checksums {
    /// Checksums of a body.
    fn from_iter<I: IntoIterator<Item = Checksum>>(checksums: I) -> Self {
        let mut all = Checksums::default();
        checksums.into_iter().for_each(|checksum| all.insert(checksum));
        all
    }
}
