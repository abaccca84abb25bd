//! The keys that callers sign with.

use std::collections::BTreeMap;
use std::fmt;

/// Access keys with their secrets. Without any, every signature is accepted.
#[derive(Clone, Default)]
pub struct Keys {
    secrets: BTreeMap<String, String>,
}

impl Keys {
    /// Keys in pairs: the name and the secret.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Keys { secrets: pairs.into_iter().collect() }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.secrets.is_empty()
    }

    pub(crate) fn secret(&self, access_key: &str) -> Option<&str> {
        self.secrets.get(access_key).map(String::as_str)
    }
}

/// Names only: a secret has no business in a log.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.secrets.keys()).finish()
    }
}
