//! Opaque tokens that clients hand back: iterators, and where a listing goes on. What they say is sealed, so that nobody
//! can make one or change one; the key is durable, so they outlive a restart. In a directory that cannot be written to, or has no
//! room left, a key that is not there yet is made for this process only.

use anabranch_model::{Admin, Clock, Document, Error, Owner, Result, Timestamp};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tokio::sync::OnceCell;

/// Where the key is kept.
const KIND: &str = "wire";
const NAME: &str = "token-key";
const KEY_BYTES: usize = 32;
/// Bytes of a seal: enough that nobody guesses one.
const SEAL_BYTES: usize = 16;
const TIME_BYTES: usize = 8;

/// Makes and opens tokens.
#[derive(Default)]
pub(crate) struct Tokens {
    key: OnceCell<[u8; KEY_BYTES]>,
}

/// A token whose seal is right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// When it was made.
    pub(crate) made_at: Timestamp,
    /// What it says.
    pub(crate) content: Bytes,
}

impl Tokens {
    /// A token for `purpose`, which no other purpose accepts.
    pub(crate) async fn seal(
        &self,
        admin: &dyn Admin,
        clock: &dyn Clock,
        purpose: &str,
        content: &[u8],
    ) -> Result<String> {
        let mut bytes = clock.now().as_millis().to_be_bytes().to_vec();
        bytes.extend_from_slice(content);
        let seal = self.mac(admin, purpose, &bytes).await?.finalize().into_bytes();
        bytes.extend_from_slice(&seal[..SEAL_BYTES]);
        Ok(BASE64_STANDARD.encode(bytes))
    }

    /// What a token says; none if it was not made here, or for another purpose.
    pub(crate) async fn open(&self, admin: &dyn Admin, purpose: &str, token: &str) -> Result<Option<Opened>> {
        let Ok(bytes) = BASE64_STANDARD.decode(token) else { return Ok(None) };
        let Some(sealed) = bytes.len().checked_sub(SEAL_BYTES).filter(|length| *length >= TIME_BYTES) else {
            return Ok(None);
        };
        let mac = self.mac(admin, purpose, &bytes[..sealed]).await?;
        if mac.verify_truncated_left(&bytes[sealed..]).is_err() {
            return Ok(None);
        }
        let mut millis = [0; TIME_BYTES];
        millis.copy_from_slice(&bytes[..TIME_BYTES]);
        let made_at = Timestamp::from_millis(u64::from_be_bytes(millis));
        Ok(Some(Opened { made_at, content: Bytes::from(bytes).slice(TIME_BYTES..sealed) }))
    }

    async fn mac(&self, admin: &dyn Admin, purpose: &str, bytes: &[u8]) -> Result<Hmac<Sha256>> {
        let key = self.key.get_or_try_init(|| load_key(admin)).await?;
        let mut mac = Hmac::<Sha256>::new_from_slice(key)
            .map_err(|_| Error::Corrupt("the key of tokens has a wrong length".into()))?;
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(bytes);
        Ok(mac)
    }
}

/// The key, which is made when it is needed for the first time.
async fn load_key(admin: &dyn Admin) -> Result<[u8; KEY_BYTES]> {
    if let Ok(Some(key)) = stored_key(admin).await {
        return Ok(key);
    }
    let mut key = [0; KEY_BYTES];
    getrandom::fill(&mut key)
        .map_err(|error| Error::Unavailable(format!("the system has no random numbers: {error}")))?;
    let document = Document::new(NAME, key.to_vec());
    match admin.put_document_if_absent(&Owner::Store, KIND, document).await {
        // Nothing is written here before the next restart, or before somebody gives room back, and readers need iterators
        // until then.
        Err(Error::Stopped(_) | Error::DiskFull) => return Ok(key),
        put => put?,
    };
    stored_key(admin).await?.ok_or_else(damaged)
}

/// The key that is kept, if there is one.
async fn stored_key(admin: &dyn Admin) -> Result<Option<[u8; KEY_BYTES]>> {
    let stored = admin.document(&Owner::Store, KIND, NAME).await?;
    stored.map(|bytes| <[u8; KEY_BYTES]>::try_from(&bytes[..]).map_err(|_| damaged())).transpose()
}

fn damaged() -> Error {
    Error::Corrupt("the key of tokens is damaged".into())
}

#[cfg(test)]
mod tests {
    use anabranch_engine::SystemClock;
    use anabranch_model::Page;
    use async_trait::async_trait;

    use super::*;

    /// Documents of which none is there, and none is taken.
    struct Refusing(Error);

    #[async_trait]
    impl Admin for Refusing {
        async fn put_documents(&self, _: &Owner, _: &str, _: Vec<Document>) -> Result<()> {
            Err(self.0.clone())
        }

        async fn put_document_if_absent(&self, _: &Owner, _: &str, _: Document) -> Result<bool> {
            Err(self.0.clone())
        }

        async fn document(&self, _: &Owner, _: &str, _: &str) -> Result<Option<Bytes>> {
            Ok(None)
        }

        async fn documents(&self, _: &Owner, _: &str, _: Option<&str>, _: usize) -> Result<Page<Document>> {
            Err(self.0.clone())
        }

        async fn delete_documents(&self, _: &Owner, _: &str, _: Vec<String>) -> Result<()> {
            Err(self.0.clone())
        }
    }

    #[tokio::test]
    async fn readers_get_their_tokens_where_nothing_can_be_written() {
        let clock = SystemClock::new();
        for error in [Error::DiskFull, Error::Stopped("it is".into())] {
            let (tokens, admin) = (Tokens::default(), Refusing(error));
            let token = tokens.seal(&admin, &clock, "purpose", b"content").await.unwrap();
            let opened = tokens.open(&admin, "purpose", &token).await.unwrap().unwrap();
            assert_eq!(&opened.content[..], b"content");
            assert_eq!(tokens.open(&admin, "another", &token).await, Ok(None));
        }
        let broken = Refusing(Error::Corrupt("it is".into()));
        assert!(Tokens::default().seal(&broken, &clock, "purpose", b"content").await.is_err());
    }
}
