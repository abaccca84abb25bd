//! Why a signature is refused, in the words of each service.

use http::StatusCode;
use serde_json::Value;

use crate::dispatch::Service;
use crate::fault::Fault;

/// Why a request is not let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It is not signed.
    Missing,
    /// It is signed in a way that is not understood.
    Unsupported,
    /// It is signed in the header and in the query.
    Twice,
    /// The header is not what it should be.
    Malformed(String),
    /// The query is not what it should be.
    MalformedQuery(String),
    /// The query lacks what an address needs that is signed in the older way, or has it wrong.
    Denied(String),
    /// There is no such key.
    UnknownKey(String),
    /// It is signed for another service.
    OtherService(String),
    /// The clocks of both sides differ too much.
    Skewed,
    /// The signature in the query does not hold any more.
    Expired,
    /// It does not say what the hash of its body is.
    Unhashed,
    /// A header that changes what is done is not signed.
    Unsigned(String),
    /// The signature is another one.
    Mismatch,
}

impl Refusal {
    /// What a service says about it.
    pub(crate) fn fault(&self, service: Service) -> Fault {
        match service {
            Service::S3 => self.of_s3(),
            _ => {
                let (code, status) = self.in_query();
                Fault { query_code: Some(code), query_status: Some(status), ..self.of_others() }
            }
        }
    }

    /// What services say that are called by forms.
    fn in_query(&self) -> (&'static str, StatusCode) {
        match self {
            Refusal::Missing => ("MissingAuthenticationToken", StatusCode::FORBIDDEN),
            Refusal::Unsupported
            | Refusal::Twice
            | Refusal::Malformed(_)
            | Refusal::MalformedQuery(_)
            | Refusal::Unhashed
            | Refusal::Denied(_) => ("IncompleteSignature", StatusCode::BAD_REQUEST),
            Refusal::UnknownKey(_) => ("InvalidClientTokenId", StatusCode::FORBIDDEN),
            Refusal::OtherService(_)
            | Refusal::Skewed
            | Refusal::Expired
            | Refusal::Unsigned(_)
            | Refusal::Mismatch => ("SignatureDoesNotMatch", StatusCode::FORBIDDEN),
        }
    }

    fn of_s3(&self) -> Fault {
        let denied = |code: &'static str, message: &str| {
            Fault::client(code, message).with_status(StatusCode::FORBIDDEN)
        };
        match self {
            Refusal::Missing => denied("AccessDenied", "Access Denied"),
            Refusal::Unsupported => Fault::client(
                "InvalidRequest",
                "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
            ),
            Refusal::Twice => Fault::client("InvalidArgument", "Only one auth mechanism allowed"),
            Refusal::Malformed(why) => Fault::client(
                "AuthorizationHeaderMalformed",
                format!("The authorization header is malformed; {why}."),
            ),
            Refusal::MalformedQuery(why) => Fault::client("AuthorizationQueryParametersError", why.clone()),
            Refusal::Denied(why) => denied("AccessDenied", why),
            Refusal::UnknownKey(key) => {
                let message = "The AWS Access Key Id you provided does not exist in our records.";
                let mut fault = denied("InvalidAccessKeyId", message);
                fault.members.insert("AWSAccessKeyId".to_owned(), Value::String(key.clone()));
                fault
            }
            Refusal::OtherService(service) => Fault::client(
                "AuthorizationHeaderMalformed",
                format!(
                    "The authorization header is malformed; incorrect service {service:?}. Expecting \"s3\"."
                ),
            ),
            Refusal::Skewed => denied(
                "RequestTimeTooSkewed",
                "The difference between the request time and the current time is too large.",
            ),
            Refusal::Expired => denied("AccessDenied", "Request has expired"),
            Refusal::Unhashed => Fault::client(
                "InvalidRequest",
                "Missing required header for this request: x-amz-content-sha256",
            ),
            Refusal::Unsigned(header) => {
                let message = "There were headers present in the request which were not signed";
                let mut fault = denied("AccessDenied", message);
                fault.members.insert("HeadersNotSigned".to_owned(), Value::String(header.clone()));
                fault
            }
            Refusal::Mismatch => denied(
                "SignatureDoesNotMatch",
                "The request signature we calculated does not match the signature you provided. Check your key and \
                 signing method.",
            ),
        }
    }

    fn of_others(&self) -> Fault {
        let incomplete = |message: &str| Fault::client("IncompleteSignatureException", message);
        let invalid = |message: &str| Fault::client("InvalidSignatureException", message);
        match self {
            Refusal::Missing => {
                Fault::client("MissingAuthenticationTokenException", "Missing Authentication Token")
            }
            Refusal::Unsupported => incomplete("Only AWS4-HMAC-SHA256 is supported."),
            Refusal::Twice => incomplete("The request is signed twice."),
            Refusal::Malformed(why) | Refusal::MalformedQuery(why) | Refusal::Denied(why) => incomplete(why),
            Refusal::UnknownKey(_) => Fault::client(
                "UnrecognizedClientException",
                "The security token included in the request is invalid.",
            ),
            Refusal::OtherService(service) => {
                invalid(&format!("Credential should be scoped to the correct service, not {service:?}."))
            }
            Refusal::Skewed => invalid("Signature expired: the request was signed at another time."),
            Refusal::Expired => invalid("Signature expired."),
            Refusal::Unhashed => incomplete("The hash of the body is missing."),
            Refusal::Unsigned(header) => invalid(&format!("The header {header:?} is not signed.")),
            Refusal::Mismatch => invalid(
                "The request signature we calculated does not match the signature you provided. Check your AWS Secret \
                 Access Key and signing method.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Protocol, render_fault};

    #[test]
    fn forms_and_documents_have_refusals_of_their_own() {
        let key = || Refusal::UnknownKey("AK".into());
        for (refusal, query, status, json) in [
            (Refusal::Missing, "MissingAuthenticationToken", 403, "MissingAuthenticationTokenException"),
            (Refusal::Twice, "IncompleteSignature", 400, "IncompleteSignatureException"),
            (key(), "InvalidClientTokenId", 403, "UnrecognizedClientException"),
            (Refusal::Mismatch, "SignatureDoesNotMatch", 403, "InvalidSignatureException"),
            (Refusal::Skewed, "SignatureDoesNotMatch", 403, "InvalidSignatureException"),
        ] {
            for service in [Service::Sts, Service::Sqs, Service::CloudWatch] {
                let fault = refusal.fault(service);
                assert_eq!((fault.query_code, &*fault.code), (Some(query), json));
                let status_of = |protocol| render_fault(&fault, service, protocol, "id").status().as_u16();
                assert_eq!(
                    (status_of(Protocol::Query), status_of(Protocol::Json10)),
                    (status, 400),
                    "{query}"
                );
            }
        }
        assert_eq!(key().fault(Service::S3).code, "InvalidAccessKeyId");
    }
}
