//! The tag that changes with the body of a blob.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use md5::{Digest, Md5};

use crate::error::{Error, Result};
use crate::limits::ETAG_CHARS_MAX;
use crate::name::excerpt;

/// What stands behind a hash that is no MD5: clients take such a tag for that of a body in one part.
const NO_MD5: &str = "-1";

/// What a body is compared by. Of a body that was put at once it is the MD5, in hexadecimal digits, where somebody asked
/// for that, and otherwise a faster hash with `-1` behind it; of one that was put in parts it is the MD5 of what the
/// tags of the parts say, a dash, and the number of parts. Clients of S3 take a tag without a dash for an MD5, and
/// compare it with nothing if it has one. A store that we did not write may give others, so it is a text without quotes,
/// and nobody reads a meaning into it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ETag(Arc<str>);

impl ETag {
    /// Checks a tag: 1 to 256 visible ASCII characters except quotes.
    pub fn new(tag: &str) -> Result<Self> {
        let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'"';
        if tag.is_empty() || tag.len() > ETAG_CHARS_MAX || !tag.bytes().all(allowed) {
            return Err(Error::Invalid(format!(
                "etag {} must have 1 to {ETAG_CHARS_MAX} visible ASCII characters except quotes",
                excerpt(tag)
            )));
        }
        Ok(ETag(tag.into()))
    }

    /// The tag of a body with this MD5 that was put at once.
    pub fn of_md5(md5: [u8; 16]) -> Self {
        ETag(hexadecimal(md5).into())
    }

    /// The tag of a body with this hash, which is no MD5, that was put at once.
    pub fn of_hash(hash: [u8; 16]) -> Self {
        ETag(format!("{}{NO_MD5}", hexadecimal(hash)).into())
    }

    /// The tag of a body whose parts have these MD5s or hashes, in the order of the parts.
    pub fn of_parts<'a>(digests: impl IntoIterator<Item = &'a [u8; 16]>) -> Self {
        let (mut md5, mut parts) = (Md5::new(), 0_usize);
        for part in digests {
            md5.update(part);
            parts += 1;
        }
        ETag(format!("{}-{parts}", hexadecimal(md5.finalize().into())).into())
    }

    /// The MD5 in the tag of a body that was put at once; none for any other.
    pub fn md5(&self) -> Option<[u8; 16]> {
        let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if self.0.len() != 32 || !self.0.bytes().all(lower) {
            return None;
        }
        u128::from_str_radix(&self.0, 16).ok().map(u128::to_be_bytes)
    }

    /// The MD5 or the hash in the tag of a part; none for a tag that is neither.
    pub fn digest(&self) -> Option<[u8; 16]> {
        match self.0.strip_suffix(NO_MD5) {
            Some(hash) => ETag(hash.into()).md5(),
            None => self.md5(),
        }
    }

    /// The tag as text, without quotes.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn hexadecimal(digest: [u8; 16]) -> String {
    format!("{:032x}", u128::from_be_bytes(digest))
}

impl fmt::Display for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ETag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl FromStr for ETag {
    type Err = Error;

    fn from_str(tag: &str) -> Result<Self> {
        ETag::new(tag)
    }
}
