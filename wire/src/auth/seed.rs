//! A key for one day, region and service, and what is signed with it.
//!
//! A body that is sent in signed chunks is a chain: the signature of the head is the seed, and each chunk is signed
//! together with the signature before it.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::scope::Scope;

/// What the signature of the next piece is computed from.
#[derive(Clone)]
pub(crate) struct Seed {
    key: [u8; 32],
    date: String,
    scope: String,
    /// The signature of the piece before.
    previous: String,
}

impl Seed {
    /// The key of a scope, derived from a secret. Nothing is signed yet.
    pub(super) fn new(secret: &str, scope: &Scope, date: &str) -> Seed {
        let key = hmac(format!("AWS4{secret}").as_bytes(), scope.date.as_bytes());
        let key = hmac(&key, scope.region.as_bytes());
        let key = hmac(&key, scope.service.as_bytes());
        let key = hmac(&key, b"aws4_request");
        Seed { key, date: date.to_owned(), scope: scope.text(), previous: String::new() }
    }

    /// Whether this is the signature of a request, given in its canonical spelling.
    pub(super) fn admits(&mut self, canonical: &str, signature: &str) -> bool {
        let text = format!("AWS4-HMAC-SHA256\n{}\n{}\n{}", self.date, self.scope, hash(canonical.as_bytes()));
        self.compare(&text, signature)
    }

    /// Whether this is the signature of the next chunk, given by the hash of its bytes.
    pub(crate) fn admits_chunk(&mut self, chunk: Sha256, signature: &str) -> bool {
        let text = format!(
            "AWS4-HMAC-SHA256-PAYLOAD\n{}\n{}\n{}\n{}\n{}",
            self.date,
            self.scope,
            self.previous,
            hash(b""),
            hex::encode(chunk.finalize()),
        );
        self.compare(&text, signature)
    }

    /// Whether this is the signature of what follows the last chunk: `name:value` and an end of line each.
    pub(crate) fn admits_trailer(&mut self, trailer: &str, signature: &str) -> bool {
        let text = format!(
            "AWS4-HMAC-SHA256-TRAILER\n{}\n{}\n{}\n{}",
            self.date,
            self.scope,
            self.previous,
            hash(trailer.as_bytes()),
        );
        self.compare(&text, signature)
    }

    fn compare(&mut self, text: &str, signature: &str) -> bool {
        let expected = hex::encode(hmac(&self.key, text.as_bytes()));
        let same = expected.as_bytes().ct_eq(signature.as_bytes()).into();
        self.previous = expected;
        same
    }
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

fn hmac(key: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mac = Hmac::<Sha256>::new_from_slice(key);
    let mut mac = mac.unwrap_or_else(|error| unreachable!("a key may have any length: {error}"));
    mac.update(bytes);
    mac.finalize().into_bytes().into()
}
