//! Places as people write them: `BUCKET`, `BUCKET/PREFIX` and `BUCKET/KEY`.

use anabranch_model::Error;
use anabranch_model::blob::{BlobKey, BucketName};

use crate::failure::Failure;

/// A bucket and what stands behind the first slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) bucket: BucketName,
    /// A key or the beginning of keys; empty for the whole bucket.
    pub(super) rest: String,
}

impl Place {
    pub(super) fn parse(text: &str) -> Result<Self, Error> {
        let (bucket, rest) = text.split_once('/').unwrap_or((text, ""));
        Ok(Place { bucket: BucketName::new(bucket)?, rest: rest.to_owned() })
    }

    /// The key; a place without one is refused.
    pub(super) fn key(&self) -> Result<BlobKey, Failure> {
        if self.rest.is_empty() {
            return Err(Failure::usage(
                format!("`{}` is a bucket, not a blob", self.bucket),
                "write the bucket, a slash and the key, for instance photos/2026/sea.jpg",
            ));
        }
        Ok(BlobKey::new(&self.rest)?)
    }

    /// The key for a file of this name: a place that ends in a slash, or has no key, takes the name of the file.
    pub(super) fn key_for(&self, file_name: Option<&str>) -> Result<BlobKey, Failure> {
        match file_name {
            Some(name) if self.rest.is_empty() || self.rest.ends_with('/') => {
                Ok(BlobKey::new(&format!("{}{name}", self.rest))?)
            }
            _ => self.key(),
        }
    }
}

/// A blob as people write it, fit for a terminal.
pub(super) fn written(bucket: &BucketName, key: &BlobKey) -> String {
    format!("{bucket}/{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> Place {
        Place::parse(text).unwrap()
    }

    #[test]
    fn places_are_cut_at_the_first_slash() {
        assert_eq!(place("photos").rest, "");
        assert_eq!(place("photos/").rest, "");
        assert_eq!(place("photos/2026/a b.jpg").rest, "2026/a b.jpg");
        assert_eq!(place("photos//x").rest, "/x");
        assert_eq!(place("photos/../x").rest, "../x");
        for wrong in ["", "/", "/x", "Photos/x", "a/b", "s3://photos/x"] {
            assert!(Place::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_file_gives_its_name_to_a_place_without_one() {
        let key = |text: &str, name| place(text).key_for(name).map(|key| key.as_str().to_owned()).ok();
        assert_eq!(key("photos", Some("sea.jpg")).as_deref(), Some("sea.jpg"));
        assert_eq!(key("photos/2026/", Some("sea.jpg")).as_deref(), Some("2026/sea.jpg"));
        assert_eq!(key("photos/2026", Some("sea.jpg")).as_deref(), Some("2026"));
        assert_eq!(key("photos/x/", None).as_deref(), Some("x/"));
        assert_eq!(key("photos", None), None);
    }
}
