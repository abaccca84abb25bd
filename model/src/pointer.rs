//! A pointer to a payload that was too large for a record: the payload lies in a blob, and this lies in the record.
//! Producers write it, consumers put the payload back.
//!
//! ```text
//!   AF 62 6C 6F 62 01 │ size: 8 │ MD5 of the payload: 16 │ bucket: 1 + n │ key: 2 + n │ MD5 of all before: 16
//! ```
//!
//! Numbers are big-endian. What must hold: whatever bytes come in, the answer is a pointer or none; and a payload is
//! taken for a pointer only if its digest says so, for anybody may begin with these six bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use md5::{Digest, Md5};

use crate::blob::{BlobKey, BucketName};
use crate::error::{Error, Result};

/// What a pointer begins with.
const MAGIC: [u8; 6] = [0xaf, b'b', b'l', b'o', b'b', 1];
const DIGEST_BYTES: usize = 16;

/// Where a payload lies, and how to recognise it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The bucket.
    pub bucket: BucketName,
    /// The key there.
    pub key: BlobKey,
    /// Bytes of the payload.
    pub size: u64,
    /// The MD5 of the payload.
    pub digest: [u8; DIGEST_BYTES],
}

impl Pointer {
    /// The pointer to this payload under a key.
    pub fn to(payload: &[u8], bucket: BucketName, key: BlobKey) -> Self {
        Pointer { bucket, key, size: payload.len() as u64, digest: Md5::digest(payload).into() }
    }

    /// The bytes that go into the record.
    pub fn encode(&self) -> Bytes {
        let (bucket, key) = (self.bucket.as_str().as_bytes(), self.key.as_str().as_bytes());
        let mut bytes = BytesMut::new();
        bytes.put_slice(&MAGIC);
        bytes.put_u64(self.size);
        bytes.put_slice(&self.digest);
        // Names of buckets and keys are checked, and shorter than what these numbers can say.
        bytes.put_u8(bucket.len() as u8);
        bytes.put_slice(bucket);
        bytes.put_u16(key.len() as u16);
        bytes.put_slice(key);
        let digest = Md5::digest(&bytes);
        bytes.put_slice(&digest);
        bytes.freeze()
    }

    /// The pointer in a payload; none if the payload is just a payload.
    pub fn decode(data: &[u8]) -> Option<Self> {
        if !data.starts_with(&MAGIC) || data.len() < MAGIC.len() + DIGEST_BYTES {
            return None;
        }
        let (message, digest) = data.split_at(data.len() - DIGEST_BYTES);
        if Md5::digest(message)[..] != *digest {
            return None;
        }
        let mut rest = &message[MAGIC.len()..];
        let size = rest.try_get_u64().ok()?;
        let mut digest = [0; DIGEST_BYTES];
        rest.try_copy_to_slice(&mut digest).ok()?;
        let length = usize::from(rest.try_get_u8().ok()?);
        let bucket = text(&mut rest, length)?;
        let length = usize::from(rest.try_get_u16().ok()?);
        let key = text(&mut rest, length)?;
        if !rest.is_empty() {
            return None;
        }
        Some(Pointer { bucket: BucketName::new(&bucket).ok()?, key: BlobKey::new(&key).ok()?, size, digest })
    }

    /// Whether these bytes are the payload.
    pub fn check(&self, payload: &[u8]) -> Result<()> {
        if payload.len() as u64 == self.size && Md5::digest(payload)[..] == self.digest {
            return Ok(());
        }
        Err(Error::Corrupt(format!(
            "blob `{}` of bucket `{}` is not the payload that its record points to",
            self.key, self.bucket
        )))
    }
}

fn text(rest: &mut &[u8], length: usize) -> Option<String> {
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pointer(payload: &[u8]) -> Pointer {
        Pointer::to(payload, BucketName::new("large").unwrap(), BlobKey::new("orders/7 ü").unwrap())
    }

    #[test]
    fn a_pointer_comes_back_and_knows_its_payload() {
        let pointer = pointer(b"a long story");
        assert_eq!(Pointer::decode(&pointer.encode()), Some(pointer.clone()));
        pointer.check(b"a long story").unwrap();
        pointer.check(b"a long stork").unwrap_err();
        pointer.check(b"a long stor").unwrap_err();
    }

    proptest! {
        #[test]
        fn a_damaged_pointer_is_a_payload(at in 0usize..80, change in 1u8..) {
            let mut bytes = pointer(b"x").encode().to_vec();
            let at = at % bytes.len();
            bytes[at] ^= change;
            prop_assert_eq!(Pointer::decode(&bytes), None);
            prop_assert_eq!(Pointer::decode(&bytes[..at]), None);
        }

        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut message = [&MAGIC[..], &bytes].concat();
            let digest = Md5::digest(&message);
            message.extend_from_slice(&digest);
            if let Some(pointer) = Pointer::decode(&message) {
                prop_assert_eq!(&pointer.encode()[..], &message[..]);
            }
            prop_assert_eq!(Pointer::decode(&bytes), None);
        }
    }
}
