//! What went wrong with a call, sorted by what to do about it.
//!
//! The one place that reads AWS's error codes. [`Failure`] keeps what a port needs to say it better (which stream it was
//! that does not exist, which item a condition found); what no port explains becomes an error of the model as it is.
//! The table of codes is in [`kind_of`].

use std::error::Error as StdError;
use std::time::Duration;

use anabranch_model::{Error, Timestamp};
use aws_credential_types::provider::error::CredentialsError;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::DateTime;
use aws_smithy_types::date_time::Format;
use aws_smithy_types::error::display::DisplayErrorContext;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::action::{Action, Service};

/// When a throttled call is likely to fit, unless the service says so itself: limits are counted by the second.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// A clock that is further off than this makes signatures invalid.
const SKEW_MAX: Duration = Duration::from_secs(5 * 60);
/// Most characters of a service's message that an error repeats.
const MESSAGE_CHARS_MAX: usize = 500;

/// What to do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// Call more slowly.
    Throttled,
    /// The thing exists already, or is being made, changed or removed: the port knows which.
    InUse,
    /// The thing does not exist.
    NotFound,
    /// The request is wrong, or says something that only the port understands: see the code.
    Invalid,
    /// Remove something first.
    Limit,
    /// Get the permission.
    Denied,
    /// Get other credentials.
    Credentials,
    /// Set the clock.
    Clock,
    /// Go to another region or account.
    Place,
    /// Try again: the service is away or has a problem.
    Away,
    /// Set another address: whoever answers is not AWS.
    Stranger,
    /// Do it another way: this endpoint does not know the operation.
    Unsupported,
}

impl Kind {
    /// The word for metrics.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Kind::Throttled => "throttled",
            Kind::InUse => "in_use",
            Kind::NotFound => "not_found",
            Kind::Invalid => "invalid",
            Kind::Limit => "limit",
            Kind::Denied => "denied",
            Kind::Credentials => "credentials",
            Kind::Clock => "clock",
            Kind::Place => "place",
            Kind::Away => "away",
            Kind::Stranger => "stranger",
            Kind::Unsupported => "unsupported",
        }
    }
}

/// Whether a failed call may have been carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Certainly not: the service refused, or was never reached.
    Refused,
    /// Nobody knows: the request was sent, and no answer came that says.
    Unknown,
}

/// A call that failed. `D` is the service's own error, with its details.
#[derive(Debug)]
pub(crate) struct Failure<D = ()> {
    pub(crate) action: Action,
    pub(crate) kind: Kind,
    pub(crate) outcome: Outcome,
    /// The service's own name for the error, if it gave one.
    pub(crate) code: Option<String>,
    /// What the service or the network says.
    pub(crate) message: String,
    /// When to come back, if the service said so.
    pub(crate) retry_after: Option<Duration>,
    /// The service's own error, if it answered with one.
    pub(crate) detail: Option<D>,
}

impl<D> Failure<D> {
    pub(crate) fn new(action: &Action, kind: Kind, outcome: Outcome, message: impl Into<String>) -> Self {
        let message = excerpt(&message.into());
        Failure { action: *action, kind, outcome, code: None, message, retry_after: None, detail: None }
    }

    /// Whether the service gave its error this name.
    pub(crate) fn is(&self, code: &str) -> bool {
        self.code.as_deref() == Some(code)
    }

    /// Whether the same call may be made again by whoever knows nothing but this failure.
    pub(crate) fn may_repeat(&self) -> bool {
        let passes = matches!(self.kind, Kind::Throttled | Kind::Away);
        passes && (self.outcome == Outcome::Refused || self.action.repeatable)
    }

    /// The same failure without the service's own error.
    pub(crate) fn without_detail(self) -> Failure {
        let Failure { action, kind, outcome, code, message, retry_after, .. } = self;
        Failure { action, kind, outcome, code, message, retry_after, detail: None }
    }

    /// The error that `explain` gives for this kind of failure, or else the general one.
    pub(crate) fn explained(self, explain: impl FnOnce(Kind) -> Option<Error>) -> Error {
        explain(self.kind).unwrap_or_else(|| self.into())
    }
}

impl<D> From<Failure<D>> for Error {
    fn from(failure: Failure<D>) -> Error {
        let Failure { action, kind, outcome, code, message, retry_after, .. } = failure;
        let (service, name) = (action.service.name(), action.name);
        let doubt = match outcome {
            Outcome::Unknown if !action.repeatable => "; whether it was carried out is not known",
            Outcome::Unknown | Outcome::Refused => "",
        };
        let said = match code {
            Some(code) => format!("{code}: {message}"),
            None => message.clone(),
        };
        match kind {
            Kind::Throttled => Error::SlowDown {
                what: format!("{service} throttles `{name}` ({said}){doubt}"),
                retry_after: retry_after.unwrap_or(RETRY_AFTER),
            },
            Kind::InUse => Error::Unavailable(format!("{service} cannot do `{name}` at the moment ({said})")),
            Kind::NotFound | Kind::Invalid => Error::Invalid(format!("{service} refuses `{name}` ({said})")),
            Kind::Limit => {
                Error::LimitExceeded(format!("{service} refuses `{name}`: a quota is used up ({said})"))
            }
            Kind::Denied => Error::Denied { action: action.permission(), message },
            Kind::Credentials => Error::Unauthenticated(format!(
                "{service} does not accept the credentials ({said}): renew them, or set others with AWS_PROFILE or \
                 AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )),
            Kind::Clock => Error::Misconfigured(format!(
                "{message}: set the clock of this machine, for instance with NTP"
            )),
            Kind::Place => Error::Misconfigured(format!(
                "{service} answers from another region or account ({said}): set the right one with AWS_REGION or AWS_PROFILE"
            )),
            Kind::Away => Error::Unavailable(format!("{service} does not answer `{name}` ({said}){doubt}")),
            Kind::Stranger => Error::Misconfigured(format!(
                "what answers `{name}` is not {service} ({said}): check the endpoint (AWS_ENDPOINT_URL) and proxies"
            )),
            Kind::Unsupported => {
                Error::Misconfigured(format!("the endpoint of {service} does not know `{name}` ({said})"))
            }
        }
    }
}

/// Whatever a client gives back when a call fails.
pub(crate) trait IntoFailure {
    /// The service's own error.
    type Detail;

    /// Sorts it. `now` is what the clock of this machine shows.
    fn into_failure(self, action: &Action, now: Timestamp) -> Failure<Self::Detail>;
}

impl<E> IntoFailure for SdkError<E, HttpResponse>
where
    E: StdError + ProvideErrorMetadata + Send + Sync + 'static,
{
    type Detail = E;

    fn into_failure(self, action: &Action, now: Timestamp) -> Failure<E> {
        let told = DisplayErrorContext(&self).to_string();
        // An answer that began and did not end: the connection was cut in between.
        let cut = in_chain::<hyper::Error>(self.source()).is_some()
            || in_chain::<std::io::Error>(self.source()).is_some();
        match self {
            SdkError::ServiceError(answer) => {
                let reply = Reply::read(answer.raw(), now);
                let (code, message) = (answer.err().code(), answer.err().message());
                let mut failure = from_reply(action, code, message, &reply);
                failure.detail = Some(answer.into_err());
                failure
            }
            SdkError::ResponseError(answer) => {
                let reply = Reply::read(answer.raw(), now);
                if cut || reply.status >= 500 {
                    return Failure::new(action, Kind::Away, Outcome::Unknown, told);
                }
                Failure::new(
                    action,
                    Kind::Stranger,
                    Outcome::Unknown,
                    format!("{}: {told}", reply.describe()),
                )
            }
            SdkError::TimeoutError(_) => Failure::new(action, Kind::Away, Outcome::Unknown, told),
            SdkError::DispatchFailure(failure) => {
                let error = failure.as_connector_error();
                let source = error.and_then(StdError::source);
                if in_chain::<CredentialsError>(source).is_some() {
                    return Failure::new(action, Kind::Credentials, Outcome::Refused, told);
                }
                if failure.is_user() {
                    return Failure::new(action, Kind::Invalid, Outcome::Refused, told);
                }
                let unconnected = in_chain::<hyper_util::client::legacy::Error>(source)
                    .is_some_and(hyper_util::client::legacy::Error::is_connect);
                let outcome = if unconnected { Outcome::Refused } else { Outcome::Unknown };
                Failure::new(action, Kind::Away, outcome, told)
            }
            // The request could not even be written: a value is wrong, or the endpoint is no address.
            _ => Failure::new(action, Kind::Invalid, Outcome::Refused, told),
        }
    }
}

/// What an answer says beside its body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<Duration>,
    /// How far the clock of this machine is ahead of the service's, in seconds; negative if it is behind.
    pub(crate) ahead_seconds: Option<i64>,
}

impl Reply {
    fn read(response: &HttpResponse, now: Timestamp) -> Reply {
        let headers = response.headers();
        let millis = headers.get("x-amz-retry-after").and_then(|text| text.parse().ok());
        let seconds = headers.get("retry-after").and_then(|text| text.parse().ok());
        let date = headers.get("date").and_then(|text| DateTime::from_str(text, Format::HttpDate).ok());
        let now_seconds = i64::try_from(now.as_millis() / 1000).unwrap_or(i64::MAX);
        Reply {
            status: response.status().as_u16(),
            content_type: headers.get("content-type").unwrap_or_default().to_string(),
            retry_after: millis.map(Duration::from_millis).or(seconds.map(Duration::from_secs)),
            ahead_seconds: date.map(|date| now_seconds.saturating_sub(date.secs())),
        }
    }

    fn describe(&self) -> String {
        match self.content_type.as_str() {
            "" => format!("status {}", self.status),
            kind => format!("status {} with {kind}", self.status),
        }
    }

    fn is_skewed(&self) -> bool {
        self.ahead_seconds.is_some_and(|ahead| ahead.unsigned_abs() > SKEW_MAX.as_secs())
    }
}

/// Sorts the answer of a service by its code and status.
pub(crate) fn from_reply<D>(
    action: &Action,
    code: Option<&str>,
    message: Option<&str>,
    reply: &Reply,
) -> Failure<D> {
    // Older protocols put a namespace before the code or an address behind it.
    let code = code.map(|code| {
        let code = code.rsplit_once('#').map_or(code, |(_, code)| code);
        code.split_once(':').map_or(code, |(code, _)| code)
    });
    let text = message.unwrap_or_default();
    let kind = match code {
        Some(code) => kind_of(code, text, reply),
        // A code is what every error of AWS has; balancers before it have none.
        None if reply.status >= 500 => Kind::Away,
        None => Kind::Stranger,
    };
    let message = match kind {
        Kind::Clock => skew(reply, text),
        Kind::Stranger | Kind::Away if text.is_empty() => reply.describe(),
        _ if text.is_empty() => "no further word".to_string(),
        _ => text.to_string(),
    };
    let outcome = match kind {
        // A service that fails inside may have done it; one that is too busy to begin has not.
        Kind::Away if !matches!(code, Some("ServiceUnavailable" | "ServiceUnavailableException")) => {
            Outcome::Unknown
        }
        Kind::Stranger => Outcome::Unknown,
        _ => Outcome::Refused,
    };
    let code = code.map(str::to_string);
    Failure { code, retry_after: reply.retry_after, ..Failure::new(action, kind, outcome, message) }
}

/// What an answer of a service cannot be.
pub(crate) fn strange(service: Service, what: &str) -> Error {
    let service = service.name();
    Error::Misconfigured(format!(
        "{service} answers with {what}: check whether the endpoint (AWS_ENDPOINT_URL) is {service}"
    ))
}

/// The table of codes. What is not in it is about the request itself, and the port may know more.
fn kind_of(code: &str, message: &str, reply: &Reply) -> Kind {
    match code {
        "Throttling"
        | "ThrottlingException"
        | "ThrottledException"
        | "RequestThrottled"
        | "RequestThrottledException"
        | "TooManyRequestsException"
        | "ProvisionedThroughputExceededException"
        | "RequestLimitExceeded"
        | "BandwidthLimitExceeded"
        | "KMSThrottlingException"
        | "PriorRequestNotComplete"
        | "SlowDown" => Kind::Throttled,
        // One code for two things: too many calls a second, and too many things.
        "LimitExceededException" if speaks_of_rate(message) => Kind::Throttled,
        "LimitExceededException" | "ServiceQuotaExceededException" | "TooManyBuckets" => Kind::Limit,
        "ResourceInUseException" => Kind::InUse,
        "ResourceNotFoundException"
        | "TableNotFoundException"
        | "QueueDoesNotExist"
        | "AWS.SimpleQueueService.NonExistentQueue"
        | "NoSuchBucket"
        | "NoSuchKey"
        | "NoSuchUpload" => Kind::NotFound,
        "RequestTimeTooSkewed" | "RequestExpired" => Kind::Clock,
        "InvalidSignatureException" | "SignatureDoesNotMatch" | "AuthFailure"
            if reply.is_skewed()
                || message.contains("Signature expired")
                || message.contains("not yet current") =>
        {
            Kind::Clock
        }
        "AuthorizationHeaderMalformed" | "PermanentRedirect" | "IllegalLocationConstraintException" => {
            Kind::Place
        }
        "InvalidSignatureException" | "SignatureDoesNotMatch"
            if message.contains("scoped to a valid region") =>
        {
            Kind::Place
        }
        "InvalidSignatureException"
        | "SignatureDoesNotMatch"
        | "AuthFailure"
        | "ExpiredToken"
        | "ExpiredTokenException"
        | "TokenRefreshRequired"
        | "InvalidToken"
        | "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidAccessKeyId"
        | "IncompleteSignature"
        | "IncompleteSignatureException"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException"
        | "NotSignedUp"
        | "OptInRequired"
        | "SubscriptionRequiredException" => Kind::Credentials,
        "AccessDenied"
        | "AccessDeniedException"
        | "UnauthorizedOperation"
        | "KMSAccessDeniedException"
        | "AllAccessDisabled" => Kind::Denied,
        "UnknownOperationException"
        | "UnknownOperation"
        | "NotImplemented"
        | "MethodNotAllowed"
        | "UnsupportedOperationException" => Kind::Unsupported,
        "RequestTimeout" | "RequestTimeoutException" => Kind::Away,
        _ if reply.status == 429 => Kind::Throttled,
        _ if reply.status >= 500 => Kind::Away,
        _ => Kind::Invalid,
    }
}

fn speaks_of_rate(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    ["rate exceeded", "rate limit", "simultaneous", "per second"].iter().any(|word| message.contains(word))
}

fn skew(reply: &Reply, message: &str) -> String {
    match reply.ahead_seconds {
        Some(ahead) => {
            let (minutes, side) =
                (ahead.unsigned_abs().div_ceil(60), if ahead > 0 { "ahead of" } else { "behind" });
            format!("the clock of this machine is {minutes} minutes {side} the service's")
        }
        None => format!("the clock of this machine is not the service's ({message})"),
    }
}

/// The error of this type in a chain of causes.
fn in_chain<'a, T: StdError + 'static>(first: Option<&'a (dyn StdError + 'static)>) -> Option<&'a T> {
    let mut next = first;
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// A message of someone else, fit for ours: short, and without raw control characters.
fn excerpt(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let start: String = text.trim().chars().take(MESSAGE_CHARS_MAX).map(clean).collect();
    if text.trim().chars().nth(MESSAGE_CHARS_MAX).is_some() { format!("{start}…") } else { start }
}

#[cfg(test)]
mod tests {
    use anabranch_model::NextMove;

    use super::*;
    use crate::kinesis::action::{LIST_SHARDS, PUT_RECORDS};

    fn reply(status: u16) -> Reply {
        Reply { status, ..Reply::default() }
    }

    fn sorted(code: &str, message: &str, status: u16) -> Kind {
        from_reply::<()>(&LIST_SHARDS, Some(code), Some(message), &reply(status)).kind
    }

    #[test]
    fn one_code_for_two_things_is_told_apart_by_its_words() {
        let rate = "Rate exceeded for stream clicks under account 1";
        assert_eq!(sorted("LimitExceededException", rate, 400), Kind::Throttled);
        let shards = "This request would exceed the shard limit for the account";
        assert_eq!(sorted("LimitExceededException", shards, 400), Kind::Limit);
        let busy =
            "Subscriber limit exceeded: only 5 tables can be created, updated, or deleted simultaneously";
        assert_eq!(sorted("LimitExceededException", busy, 400), Kind::Throttled);
    }

    #[test]
    fn codes_are_found_in_older_clothes() {
        assert_eq!(
            sorted("com.amazonaws.kinesis.v20131202#ResourceNotFoundException", "", 400),
            Kind::NotFound
        );
        assert_eq!(sorted("ThrottlingException:http://internal.amazon.com/x", "", 400), Kind::Throttled);
    }

    #[test]
    fn a_signature_is_wrong_for_three_reasons() {
        let code = "InvalidSignatureException";
        let region = "Credential should be scoped to a valid region, not 'x'.";
        assert_eq!(
            sorted(code, "The request signature we calculated does not match", 403),
            Kind::Credentials
        );
        assert_eq!(sorted(code, "Signature not yet current: 2026 is still later", 403), Kind::Clock);
        assert_eq!(sorted(code, region, 403), Kind::Place);
        let skewed = Reply { ahead_seconds: Some(-1_200), ..reply(403) };
        let failure = from_reply::<()>(&LIST_SHARDS, Some(code), Some("does not match"), &skewed);
        assert_eq!(failure.kind, Kind::Clock);
        assert!(failure.message.contains("20 minutes behind"), "{}", failure.message);
    }

    #[test]
    fn what_may_have_been_done_is_repeated_only_where_that_is_harmless() {
        for (status, code, repeats_put) in [
            (500, "InternalFailure", false),
            (503, "ServiceUnavailable", true),
            (400, "ProvisionedThroughputExceededException", true),
        ] {
            let put = from_reply::<()>(&PUT_RECORDS, Some(code), None, &reply(status));
            let list = from_reply::<()>(&LIST_SHARDS, Some(code), None, &reply(status));
            assert_eq!((put.may_repeat(), list.may_repeat()), (repeats_put, true), "{code}");
            assert_eq!(Error::from(put).next_move(), NextMove::Retry, "{code}");
        }
        for code in
            ["AccessDeniedException", "ValidationException", "ResourceNotFoundException", "ExpiredToken"]
        {
            assert!(!from_reply::<()>(&LIST_SHARDS, Some(code), None, &reply(400)).may_repeat(), "{code}");
        }
    }

    #[test]
    fn an_error_says_what_to_do() {
        let text =
            |code| Error::from(from_reply::<()>(&PUT_RECORDS, code, Some("why"), &reply(400))).to_string();
        assert!(text(Some("AccessDeniedException")).contains("kinesis:PutRecords"));
        assert!(text(Some("ExpiredTokenException")).contains("AWS_PROFILE"));
        assert!(text(Some("RequestExpired")).contains("clock"));
        assert!(text(Some("PermanentRedirect")).contains("AWS_REGION"));
        assert!(text(None).contains("AWS_ENDPOINT_URL"));
    }

    #[test]
    fn messages_of_others_are_short_and_harmless() {
        let shown = excerpt(&format!("\u{1b}[31m{}\n", "x".repeat(1_000)));
        assert!(shown.chars().all(|c| !c.is_control()) && shown.chars().count() <= MESSAGE_CHARS_MAX + 1);
    }
}
