//! Where the services are and who calls them: the standard discovery of AWS, done once for all services.
//!
//! Region, credentials, profile and endpoint are looked for where every tool of AWS looks for them: in the environment,
//! in the files of the profile, and with the machine's role. What is missing is noticed when connecting, within seconds.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anabranch_model::{Clock, Error, Result};
use aws_config::retry::RetryConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{AppName, BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_credential_types::Credentials;
use aws_credential_types::provider::ProvideCredentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_async::time::TimeSource;
use aws_smithy_http_client::tls::Provider;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::{Builder, Connector};
use aws_smithy_runtime_api::client::http::{HttpConnectorSettings, SharedHttpClient};
use aws_smithy_runtime_api::client::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_types::service_config::ServiceConfigKey;

use crate::action::{Action, Service};
use crate::call::Caller;

/// What the calls say about who makes them.
const APP_NAME: &str = "anabranch";
/// How long the way to a service may take.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// How long the region may be looked for: nothing but the machine's own metadata has to be asked over the network.
const REGION_MAX: Duration = Duration::from_secs(5);
/// Longest region: a piece of the name of a host.
const REGION_CHARS_MAX: usize = 63;
/// How long credentials may be looked for.
const CREDENTIALS_MAX: Duration = Duration::from_secs(8);
/// Idle connections that are kept for one host.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// How long an idle connection is kept: less than the minute after which the far side closes it.
const IDLE_MAX: Duration = Duration::from_secs(50);

/// What a person may set beyond the standard discovery. What is none is discovered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AwsOptions {
    /// The address of every service, for instance `http://127.0.0.1:4566`.
    pub endpoint: Option<String>,
    /// The region, for instance `eu-central-1`.
    pub region: Option<String>,
    /// The profile in the files of AWS.
    pub profile: Option<String>,
    /// The key to sign with. Credentials are discovered without it, and renewed when they expire.
    pub key: Option<AccessKey>,
    /// How long one attempt of a call may take, if that is to be less than usual: for a server that is near. A receive that
    /// waits for messages must come to its end within it.
    pub attempt_max: Option<Duration>,
}

/// A key that does not expire.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessKey {
    /// Its public half.
    pub id: String,
    /// Its private half. It is never shown.
    pub secret: String,
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A connection to AWS: one configuration, one HTTP client and one way to call, for all services.
#[derive(Clone)]
pub struct Aws {
    pub(crate) config: SdkConfig,
    pub(crate) caller: Caller,
}

impl Aws {
    /// Finds out where to call and as whom. `seed` is the beginning of the chance in pauses; it should differ from
    /// process to process. No service is called, except those that give credentials.
    pub async fn connect(options: AwsOptions, clock: Arc<dyn Clock>, seed: u64) -> Result<Aws> {
        check_endpoint(options.endpoint.as_deref())?;
        let loader = loader(&options).time_source(CalendarOf(clock.clone()));
        let config = load(&options, loader).await?;
        let attempt_max = options.attempt_max.unwrap_or(Duration::MAX);
        let aws = Aws { config, caller: Caller::new(clock, seed, attempt_max) };
        for service in Service::ALL {
            check_endpoint(aws.endpoint(service.id()).as_deref())?;
        }
        check_credentials(&aws.config, &options).await?;
        Ok(aws)
    }

    /// The region that is called.
    pub fn region(&self) -> &str {
        self.config.region().map_or("", |region| region.as_ref())
    }

    /// The public half of the key that calls are signed with, shortened: enough to recognise it.
    pub async fn access_key(&self) -> Result<String> {
        let provider = self.config.credentials_provider();
        let provider =
            provider.ok_or_else(|| Error::Unauthenticated("no credentials were found".to_string()))?;
        let found = provider.provide_credentials().await;
        let found = found.map_err(|error| Error::Unauthenticated(DisplayErrorContext(&error).to_string()))?;
        let id = found.access_key_id();
        let shown: String = id.chars().rev().take(4).collect::<Vec<_>>().into_iter().rev().collect();
        Ok(format!("…{shown}"))
    }

    /// The actions that were asked for so far, by all stores on this connection.
    pub fn actions_made(&self) -> Vec<&'static Action> {
        self.caller.made()
    }

    /// The endpoint that was set for a service, for instance with `AWS_ENDPOINT_URL_S3`, in the profile or for all
    /// services; none if it is AWS's own. Clients of the SDK find it by themselves.
    pub fn endpoint(&self, service_id: &str) -> Option<String> {
        let key = ServiceConfigKey::builder()
            .service_id(service_id)
            .env("AWS_ENDPOINT_URL")
            .profile("endpoint_url");
        let of_service = || self.config.service_config()?.load_config(key.build().ok()?);
        // What was set on the command line is for all services.
        let origin = self.config.get_origin("endpoint_url");
        let general = self.config.endpoint_url().map(str::to_string);
        if origin.is_client_config() { general } else { of_service().or(general) }
    }
}

impl fmt::Debug for Aws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aws").field("region", &self.region()).finish_non_exhaustive()
    }
}

/// One pool of connections for everything.
fn http_client() -> SharedHttpClient {
    Builder::new()
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(IDLE_MAX)
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build_https()
}

/// A pool of the same kind for requests that no client of the SDK makes.
pub(crate) fn connector() -> Connector {
    Connector::builder()
        .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
        .pool_idle_timeout(IDLE_MAX)
        .connector_settings(HttpConnectorSettings::builder().connect_timeout(CONNECT_MAX).build())
        .tls_provider(Provider::Rustls(CryptoMode::Ring))
        .build()
}

fn loader(options: &AwsOptions) -> ConfigLoader {
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .http_client(http_client())
        // Attempts, pauses and time limits are the business of `Caller`.
        .retry_config(RetryConfig::disabled())
        .timeout_config(TimeoutConfig::builder().connect_timeout(CONNECT_MAX).build())
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        // A wrong clock is told to the person who can set it: everything else on the machine suffers from it too.
        .disable_clock_skew_correction(true);
    if let Ok(name) = AppName::new(APP_NAME) {
        loader = loader.app_name(name);
    }
    if let Some(key) = &options.key {
        let credentials = Credentials::new(&key.id, &key.secret, None, None, APP_NAME);
        loader = loader.credentials_provider(credentials);
    }
    if let Some(profile) = &options.profile {
        loader = loader.profile_name(profile);
    }
    if let Some(endpoint) = &options.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    loader
}

fn check_endpoint(endpoint: Option<&str>) -> Result<()> {
    let Some(endpoint) = endpoint else { return Ok(()) };
    let authority = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
    if authority.is_some_and(|authority| !authority.is_empty() && !authority.starts_with('/')) {
        return Ok(());
    }
    Err(Error::Misconfigured(format!(
        "endpoint `{}` is not an address: it must look like http://127.0.0.1:4566",
        endpoint.escape_debug()
    )))
}

/// The configuration with a region. Without one no service has an address.
async fn load(options: &AwsOptions, loader: ConfigLoader) -> Result<SdkConfig> {
    let loader = match &options.region {
        Some(region) => loader.region(Region::new(region.clone())),
        None => loader,
    };
    let config = tokio::time::timeout(REGION_MAX, loader.load()).await.ok();
    let config = config.filter(|config| config.region().is_some()).ok_or_else(|| {
        Error::Misconfigured(
            "no region is set: set AWS_REGION, or `region` in the profile of ~/.aws/config".to_string(),
        )
    })?;
    check_region(config.region().map_or("", |region| region.as_ref()))?;
    Ok(config)
}

/// A region is a part of the names of all hosts, so that one which cannot be leads nowhere, and slowly.
fn check_region(region: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let edges = region.starts_with('-') || region.ends_with('-');
    if !region.is_empty() && region.len() <= REGION_CHARS_MAX && region.chars().all(allowed) && !edges {
        return Ok(());
    }
    Err(Error::Misconfigured(format!(
        "`{}` is no region: it must look like eu-central-1 (AWS_REGION, or `region` in the profile of ~/.aws/config)",
        region.escape_debug()
    )))
}

async fn check_credentials(config: &SdkConfig, options: &AwsOptions) -> Result<()> {
    let missing = |why: String| {
        let whose = match &options.profile {
            Some(profile) => format!("profile `{profile}` gives no credentials"),
            None => "no credentials were found".to_string(),
        };
        Err(Error::Unauthenticated(format!(
            "{whose} ({why}): set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the machine a role"
        )))
    };
    let Some(provider) = config.credentials_provider() else {
        return missing("there is nowhere to look for them".to_string());
    };
    match tokio::time::timeout(CREDENTIALS_MAX, provider.provide_credentials()).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(CredentialsError::CredentialsNotLoaded(_))) => {
            missing("neither in the environment, nor in a profile, nor in a role".to_string())
        }
        Ok(Err(error)) => missing(DisplayErrorContext(&error).to_string()),
        Err(_) => missing(format!("looked for them for {} seconds", CREDENTIALS_MAX.as_secs())),
    }
}

/// The clock as the SDK wants it, for the dates in signatures.
struct CalendarOf(Arc<dyn Clock>);

impl TimeSource for CalendarOf {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_millis(self.0.now().as_millis())
    }
}

impl fmt::Debug for CalendarOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CalendarOf")
    }
}
