//! Names of streams, shards, tables and indexes: short texts of harmless characters, cheap to clone.
//!
//! What must hold: a name that exists is valid, so that nobody behind the edge checks it again, and may be shown
//! in a terminal, a log or a path without escaping.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use smol_str::SmolStr;

use crate::error::{Error, Result};
use crate::limits::{SHARD_ID_CHARS_MAX, STREAM_NAME_CHARS_MAX, TABLE_NAME_CHARS_MAX, TABLE_NAME_CHARS_MIN};

/// Most characters of a refused text that an error message repeats.
const EXCERPT_CHARS_MAX: usize = 64;
/// What numbered shard identifiers begin with.
const SHARD_ID_PREFIX: &str = "shardId-";
/// Fewest digits in a numbered shard identifier; smaller numbers have leading zeros.
const SHARD_ID_DIGITS_MIN: usize = 12;

/// The name of a stream: 1 to 128 of `a-z A-Z 0-9 _ . -`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamName(Arc<str>);

impl StreamName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self> {
        check("stream name", name, STREAM_NAME_CHARS_MAX)?;
        Ok(StreamName(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The identifier of a shard within its stream: 1 to 128 of `a-z A-Z 0-9 _ . -`.
///
/// Every appended record gets a copy. Numbered ones lie in place: a shared count would be the one word that all writers
/// of a shard fight for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(SmolStr);

impl ShardId {
    /// Checks an identifier.
    pub fn new(id: &str) -> Result<Self> {
        check("shard id", id, SHARD_ID_CHARS_MAX)?;
        Ok(ShardId(id.into()))
    }

    /// The identifier with this number, for instance `shardId-000000000012`.
    pub fn numbered(number: u64) -> Self {
        ShardId(format!("{SHARD_ID_PREFIX}{number:0SHARD_ID_DIGITS_MIN$}").into())
    }

    /// The number of an identifier that [`ShardId::numbered`] made; none for any other.
    pub fn number(&self) -> Option<u64> {
        let digits = self.0.strip_prefix(SHARD_ID_PREFIX)?;
        // A text that is not canonical names another shard, whatever number it spells.
        let canonical = digits.len() == SHARD_ID_DIGITS_MIN
            || digits.len() > SHARD_ID_DIGITS_MIN && !digits.starts_with('0');
        (canonical && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok()).flatten()
    }

    /// The identifier as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of a table: 3 to 255 of `a-z A-Z 0-9 _ . -`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableName(Arc<str>);

impl TableName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self> {
        check_table_name("table name", name)?;
        Ok(TableName(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The name of an index within its table: 3 to 255 of `a-z A-Z 0-9 _ . -`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexName(Arc<str>);

impl IndexName {
    /// Checks a name.
    pub fn new(name: &str) -> Result<Self> {
        check_table_name("index name", name)?;
        Ok(IndexName(name.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What all kinds of names share.
macro_rules! text_traits {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
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

text_traits!(StreamName);
text_traits!(ShardId);
text_traits!(TableName);
text_traits!(IndexName);

fn check_table_name(what: &str, text: &str) -> Result<()> {
    check(what, text, TABLE_NAME_CHARS_MAX)?;
    if text.len() < TABLE_NAME_CHARS_MIN {
        return Err(Error::Invalid(format!(
            "{what} {} is too short: it must have {TABLE_NAME_CHARS_MIN} to {TABLE_NAME_CHARS_MAX} characters",
            excerpt(text)
        )));
    }
    Ok(())
}

fn check(what: &str, text: &str, chars_max: usize) -> Result<()> {
    if text.is_empty() {
        return Err(Error::Invalid(format!("{what} is empty: it must have 1 to {chars_max} characters")));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if let Some(bad) = text.chars().find(|&c| !allowed(c)) {
        return Err(Error::Invalid(format!(
            "{what} {} contains `{}`: only a-z, A-Z, 0-9, `_`, `.` and `-` are allowed",
            excerpt(text),
            escaped(bad)
        )));
    }
    // Allowed characters are one byte long, so the length in bytes is the length in characters.
    if text.len() > chars_max {
        return Err(Error::Invalid(format!(
            "{what} {} has {} characters: at most {chars_max} are allowed",
            excerpt(text),
            text.len()
        )));
    }
    Ok(())
}

/// A refused text in quotes, fit for a message: without raw control characters, and cut when it is long.
pub(crate) fn excerpt(text: &str) -> String {
    let start: String = text.chars().take(EXCERPT_CHARS_MAX).map(escaped).collect();
    let cut = if text.chars().nth(EXCERPT_CHARS_MAX).is_some() { "…" } else { "" };
    format!("`{start}{cut}`")
}

/// A character as it may be shown. Beyond ASCII everything is escaped: direction marks and look-alikes mislead.
pub(crate) fn escaped(c: char) -> String {
    if c == ' ' || c.is_ascii_graphic() { c.into() } else { c.escape_default().to_string() }
}
