//! What a request says about its signature: in the header `Authorization`, or in its query.

use std::time::Duration;

use anabranch_model::Timestamp;
use http::header::AUTHORIZATION;
use http::request::Parts;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::canonical::SIGNATURE;
use super::refusal::Refusal;
use super::scope::Scope;
use crate::protocol::Form;

/// The only way to sign that is understood.
const ALGORITHM: &str = "AWS4-HMAC-SHA256";
/// The longest life of a signature in a query.
const EXPIRES_SECONDS_MAX: u64 = 7 * 24 * 3600;
/// Seconds and days as they are signed.
const MOMENT: &str = "%Y%m%dT%H%M%SZ";

/// A signature, and what it is said to cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub(super) scope: Scope,
    /// The names of the headers, in lower case.
    pub(super) signed_headers: Vec<String>,
    pub(super) signature: String,
    /// The moment as it is spelled.
    pub(super) date: String,
    pub(super) moment: Timestamp,
    /// How long it holds, if it is in the query.
    pub(super) expires: Option<Duration>,
}

/// Whether the query carries a signature.
pub(crate) fn is_presigned(query: &str) -> bool {
    query.split('&').any(|pair| pair.starts_with("X-Amz-Signature=") || pair.starts_with("X-Amz-Algorithm="))
}

/// The signature of a request; none if it has none.
pub(super) fn of(parts: &Parts) -> Result<Option<Claim>, Refusal> {
    let query = parts.uri.query().unwrap_or("");
    match parts.headers.get(AUTHORIZATION) {
        Some(_) if is_presigned(query) => Err(Refusal::Twice),
        Some(header) => {
            let header = header.to_str().map_err(|_| malformed("it has characters other than ASCII"))?;
            of_header(parts, header).map(Some)
        }
        None if is_presigned(query) => of_query(&Form::parse(query)).map(Some),
        None => Ok(None),
    }
}

fn of_header(parts: &Parts, header: &str) -> Result<Claim, Refusal> {
    let (algorithm, fields) = header.split_once(' ').ok_or_else(|| malformed("it has no fields"))?;
    if algorithm != ALGORITHM {
        return Err(Refusal::Unsupported);
    }
    let field = |name: &'static str| {
        let fields = fields.split(',').map(str::trim);
        let mut values = fields.filter_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        values.next().ok_or_else(|| malformed(format!("it has no {name}")))
    };
    let scope = Scope::parse(field("Credential")?).ok_or_else(|| malformed("its Credential is no scope"))?;
    let dated = parts.headers.get("x-amz-date").and_then(|value| value.to_str().ok());
    let date = dated.ok_or_else(|| malformed("the header X-Amz-Date is missing"))?;
    let moment = moment(date).ok_or_else(|| malformed(format!("{date:?} is no moment")))?;
    Claim {
        signed_headers: names(field("SignedHeaders")?),
        signature: field("Signature")?.to_owned(),
        date: date.to_owned(),
        moment,
        expires: None,
        scope,
    }
    .dated(malformed)
}

fn of_query(form: &Form) -> Result<Claim, Refusal> {
    let field = |name: &'static str| {
        form.get(name).ok_or_else(|| {
            malformed_query(
                "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, \
                 X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires parameters.",
            )
        })
    };
    if field("X-Amz-Algorithm")? != ALGORITHM {
        return Err(malformed_query("X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\""));
    }
    let scope = Scope::parse(field("X-Amz-Credential")?).ok_or_else(|| {
        malformed_query(
            "Error parsing the X-Amz-Credential parameter; the Credential is mal-formed; expecting \
             \"<YOUR-AKID>/YYYYMMDD/REGION/SERVICE/aws4_request\".",
        )
    })?;
    let date = field("X-Amz-Date")?;
    let moment = moment(date).ok_or_else(|| malformed_query("X-Amz-Date must be in the ISO8601 format"))?;
    let life = |text: &str| {
        let seconds = text.parse::<u64>().ok().filter(|seconds| *seconds <= EXPIRES_SECONDS_MAX);
        seconds.map(Duration::from_secs).ok_or_else(|| {
            malformed_query(format!("X-Amz-Expires must be a number from 0 to {EXPIRES_SECONDS_MAX}"))
        })
    };
    let expires = match form.get("X-Amz-Expires") {
        // Only S3 demands it. Elsewhere a signature in the query lives as long as one in a header.
        None if scope.service != "s3" => None,
        _ => Some(life(field("X-Amz-Expires")?)?),
    };
    Claim {
        signed_headers: names(field("X-Amz-SignedHeaders")?),
        signature: field(SIGNATURE)?.to_owned(),
        date: date.to_owned(),
        moment,
        expires,
        scope,
    }
    .dated(malformed_query)
}

impl Claim {
    /// The day of the scope is the day of the moment.
    fn dated(self, refuse: impl Fn(&'static str) -> Refusal) -> Result<Claim, Refusal> {
        let same = self.date.get(..8) == Some(self.scope.date.as_str());
        if same {
            Ok(self)
        } else {
            Err(refuse("the date of the Credential is another one than that of X-Amz-Date"))
        }
    }
}

fn names(text: &str) -> Vec<String> {
    text.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// `20261115T181500Z` as a moment.
fn moment(text: &str) -> Option<Timestamp> {
    let moment = DateTime::strptime(MOMENT, text).ok()?.to_zoned(TimeZone::UTC).ok()?;
    u64::try_from(moment.timestamp().as_millisecond()).ok().map(Timestamp::from_millis)
}

fn malformed(why: impl Into<String>) -> Refusal {
    Refusal::Malformed(why.into())
}

fn malformed_query(why: impl Into<String>) -> Refusal {
    Refusal::MalformedQuery(why.into())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn claim(uri: &str, headers: &[(&str, &str)]) -> Result<Option<Claim>, Refusal> {
        let mut request = Request::get(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        of(&request.body(()).unwrap().into_parts().0)
    }

    const DATE: (&str, &str) = ("x-amz-date", "20261115T181500Z");

    #[test]
    fn a_header_is_read_with_or_without_spaces() {
        for between in [", ", ",", "  ,  "] {
            let header = [
                "AWS4-HMAC-SHA256 Credential=AK/20261115/us-east-1/s3/aws4_request",
                "SignedHeaders=host;x-amz-date",
                "Signature=abc",
            ]
            .join(between);
            let claim = claim("/", &[("authorization", &header), DATE]).unwrap().unwrap();
            assert_eq!(claim.signed_headers, ["host", "x-amz-date"]);
            assert_eq!((claim.signature.as_str(), claim.moment.as_millis()), ("abc", 1_794_766_500_000));
        }
    }

    #[test]
    fn what_is_no_claim_is_refused() {
        assert_eq!(claim("/", &[]), Ok(None));
        let good = "AWS4-HMAC-SHA256 Credential=AK/20261115/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=a";
        let refused = |uri: &str, headers: &[(&str, &str)]| claim(uri, headers).unwrap_err();
        assert!(matches!(refused("/", &[("authorization", good)]), Refusal::Malformed(_)), "no date");
        let other_day = ("x-amz-date", "20261116T181500Z");
        assert!(matches!(refused("/", &[("authorization", good), other_day]), Refusal::Malformed(_)));
        assert_eq!(refused("/", &[("authorization", "AWS AK:signature"), DATE]), Refusal::Unsupported);
        assert_eq!(refused("/?X-Amz-Algorithm=x", &[("authorization", good), DATE]), Refusal::Twice);
        for missing in
            ["Credential=AK/20261115/us-east-1/s3/aws4_request, ", "SignedHeaders=host, ", ", Signature=a"]
        {
            let header = good.replace(missing, "");
            assert!(
                matches!(refused("/", &[("authorization", &header), DATE]), Refusal::Malformed(_)),
                "{missing}"
            );
        }
        let query = "/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AK/20261115/r/s3/aws4_request\
                     &X-Amz-Date=20261115T000000Z&X-Amz-SignedHeaders=host&X-Amz-Signature=a&X-Amz-Expires=";
        assert!(claim(&format!("{query}604800"), &[]).unwrap().is_some());
        for expires in ["604801", "-1", "", "x"] {
            assert!(
                matches!(refused(&format!("{query}{expires}"), &[]), Refusal::MalformedQuery(_)),
                "{expires}"
            );
        }
        let without = query.trim_end_matches("&X-Amz-Expires=");
        assert!(matches!(refused(without, &[]), Refusal::MalformedQuery(_)));
        let elsewhere = claim(&without.replace("/s3/", "/dynamodb/"), &[]).unwrap().expect("a signature");
        assert_eq!(elsewhere.expires, None);
    }
}
