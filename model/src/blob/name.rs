//! Names of buckets, keys of blobs, and what numbers and names the parts of an upload.
//!
//! What must hold: a value that exists is valid, so that nobody behind the edge checks it again. A bucket's name may be
//! shown and used in a path as it is. A key may not: it is any text, and says nothing about files.

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::limits::{
    BLOB_KEY_BYTES_MAX, BUCKET_NAME_CHARS_MAX, BUCKET_NAME_CHARS_MIN, UPLOAD_ID_CHARS_MAX, UPLOAD_PARTS_MAX,
};
use crate::name::{escaped, excerpt};

/// The name of a bucket: 3 to 63 of `a-z 0-9 . -`, fit to be a host name, and not an address.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketName(Arc<str>);

impl BucketName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self> {
        match bucket_name_fault(name) {
            None => Ok(BucketName(name.into())),
            Some(fault) => Err(Error::Invalid(format!("bucket name {} {fault}", excerpt(name)))),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn bucket_name_fault(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
    if let Some(bad) = name.chars().find(|&c| !allowed(c)) {
        return Some(format!("contains `{}`: only a-z, 0-9, `.` and `-` are allowed", escaped(bad)));
    }
    // Allowed characters are one byte long, so the length in bytes is the length in characters.
    if !(BUCKET_NAME_CHARS_MIN..=BUCKET_NAME_CHARS_MAX).contains(&name.len()) {
        return Some(format!(
            "has {} characters: {BUCKET_NAME_CHARS_MIN} to {BUCKET_NAME_CHARS_MAX} are allowed",
            name.len()
        ));
    }
    let edges = [name.chars().next(), name.chars().next_back()];
    if edges.into_iter().flatten().any(|c| !c.is_ascii_alphanumeric()) {
        return Some("must begin and end with a letter or a digit".to_string());
    }
    if name.contains("..") {
        return Some("has two dots side by side".to_string());
    }
    if name.contains(".-") || name.contains("-.") {
        return Some("has a dot and a `-` side by side".to_string());
    }
    if name.starts_with("xn--") {
        return Some("begins with `xn--`, which host names keep for other alphabets".to_string());
    }
    name.parse::<Ipv4Addr>().is_ok().then(|| "has the form of an address".to_string())
}

/// The key of a blob in its bucket: 1 to 1,024 bytes of UTF-8, whatever the characters. Two keys are the same only if
/// their bytes are; a slash or `..` has no meaning. Keys are ordered by their bytes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobKey(Arc<str>);

impl BlobKey {
    /// Checks a key.
    pub fn new(key: &str) -> Result<Self> {
        let bytes = key.len();
        if bytes == 0 || bytes > BLOB_KEY_BYTES_MAX {
            return Err(Error::Invalid(format!(
                "key {} has {bytes} bytes: 1 to {BLOB_KEY_BYTES_MAX} are allowed",
                excerpt(key)
            )));
        }
        Ok(BlobKey(key.into()))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The identifier of an upload in parts: 1 to 1,024 visible ASCII characters that mean something to the store only.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(Arc<str>);

impl UploadId {
    /// Checks an identifier.
    pub fn new(id: &str) -> Result<Self> {
        let visible = id.bytes().all(|byte| byte.is_ascii_graphic());
        if id.is_empty() || id.len() > UPLOAD_ID_CHARS_MAX || !visible {
            return Err(Error::Invalid(format!(
                "upload id {} must have 1 to {UPLOAD_ID_CHARS_MAX} visible ASCII characters",
                excerpt(id)
            )));
        }
        Ok(UploadId(id.into()))
    }

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The place of a part in its upload: 1 to 10,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartNumber(u16);

impl PartNumber {
    /// Checks a number.
    pub fn new(number: u64) -> Result<Self> {
        match u16::try_from(number) {
            Ok(small) if (1..=UPLOAD_PARTS_MAX).contains(&usize::from(small)) => Ok(PartNumber(small)),
            _ => Err(Error::Invalid(format!(
                "part number {number} is not allowed: it must be 1 to {UPLOAD_PARTS_MAX}"
            ))),
        }
    }

    /// The number.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl fmt::Display for PartNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the kinds of texts share. They are shown with everything escaped that could mislead the reader of a log.
macro_rules! text_traits {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.chars().try_for_each(|c| f.write_str(&escaped(c)))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                $name::new(text)
            }
        }
    };
}

text_traits!(BucketName);
text_traits!(BlobKey);
text_traits!(UploadId);
