//! Who signs: the credentials of the one configuration, kept as long as they are good.
//!
//! The clients of the SDK keep credentials by themselves; requests of our own have to.

use std::fmt;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use tokio::sync::Mutex;

/// How long before their end credentials are renewed.
const RENEWED_BEFORE: Duration = Duration::from_secs(5 * 60);

pub(super) struct Signer {
    provider: Option<SharedCredentialsProvider>,
    /// One caller renews while the others wait: the far side may count the requests.
    kept: Mutex<Option<Credentials>>,
}

impl Signer {
    pub(super) fn new(provider: Option<SharedCredentialsProvider>) -> Self {
        Signer { provider, kept: Mutex::default() }
    }

    /// Credentials that are good at `now`.
    pub(super) async fn credentials(&self, now: SystemTime) -> Result<Credentials, CredentialsError> {
        let mut kept = self.kept.lock().await;
        let good_for = |credentials: &Credentials, longer: Duration| {
            credentials.expiry().is_none_or(|end| end > now + longer)
        };
        if let Some(credentials) = kept.as_ref().filter(|it| good_for(it, RENEWED_BEFORE)) {
            return Ok(credentials.clone());
        }
        let Some(provider) = &self.provider else {
            return Err(CredentialsError::not_loaded("there is nowhere to look for them"));
        };
        match (provider.provide_credentials().await, kept.as_ref()) {
            (Ok(credentials), _) => {
                *kept = Some(credentials.clone());
                Ok(credentials)
            }
            // Whoever gives credentials may be away for a moment; the old ones are good until their end.
            (Err(_), Some(old)) if good_for(old, Duration::ZERO) => Ok(old.clone()),
            (Err(error), _) => Err(error),
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signer")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use aws_credential_types::provider::future;

    use super::*;

    /// Gives credentials that are good for an hour, twice; then it is away.
    #[derive(Clone, Debug, Default)]
    struct Twice(Arc<AtomicU32>);

    const HOUR: Duration = Duration::from_secs(3_600);

    impl ProvideCredentials for Twice {
        fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
        where
            Self: 'a,
        {
            let number = self.0.fetch_add(1, Ordering::SeqCst);
            let end = SystemTime::UNIX_EPOCH + HOUR * (number + 1);
            future::ProvideCredentials::ready(match number {
                0 | 1 => Ok(Credentials::new(format!("key-{number}"), "secret", None, Some(end), "test")),
                _ => Err(CredentialsError::provider_error("away")),
            })
        }
    }

    #[tokio::test]
    async fn credentials_are_renewed_before_their_end_and_used_until_it() {
        let provider = Twice::default();
        let signer = Signer::new(Some(SharedCredentialsProvider::new(provider.clone())));
        let at = |minutes: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(60 * minutes);
        let key = async |minutes| {
            let found = signer.credentials(at(minutes)).await;
            found.ok().map(|credentials| credentials.access_key_id().to_string())
        };
        assert_eq!(key(0).await.as_deref(), Some("key-0"));
        assert_eq!(key(54).await.as_deref(), Some("key-0"));
        assert_eq!(provider.0.load(Ordering::SeqCst), 1);
        assert_eq!(key(56).await.as_deref(), Some("key-1"));
        assert_eq!(key(119).await.as_deref(), Some("key-1"));
        assert_eq!(key(121).await, None);
    }
}
