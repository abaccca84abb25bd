//! The scope of a signature: `AKID/20261115/us-east-1/kinesis/aws4_request`.

use http::header::AUTHORIZATION;
use http::request::Parts;

use crate::protocol::Form;

/// What a caller says about himself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The name of the key.
    pub(crate) access_key: String,
    /// The day, in eight digits.
    pub(crate) date: String,
    /// The region.
    pub(crate) region: String,
    /// The service.
    pub(crate) service: String,
}

impl Scope {
    /// The scope of a request: in its header, or in its query where it is signed beforehand.
    pub(crate) fn of(parts: &Parts) -> Option<Scope> {
        if let Some(header) = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()) {
            let (_, rest) = header.split_once("Credential=")?;
            return Scope::parse(rest.split([',', ' ']).next()?);
        }
        let query = parts.uri.query().filter(|query| query.contains("X-Amz-Credential"))?;
        Scope::parse(Form::parse(query).get("X-Amz-Credential")?)
    }

    /// The parts of a scope. The name of the key may itself have slashes.
    pub(crate) fn parse(text: &str) -> Option<Scope> {
        let mut parts = text.rsplitn(5, '/');
        let ending = parts.next()?;
        let (service, region, date, access_key) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        (ending == "aws4_request" && !region.is_empty()).then(|| Scope {
            access_key: access_key.to_owned(),
            date: date.to_owned(),
            region: region.to_owned(),
            service: service.to_owned(),
        })
    }

    /// The scope without the key, as it is signed.
    pub(crate) fn text(&self) -> String {
        format!("{}/{}/{}/aws4_request", self.date, self.region, self.service)
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn the_scope_is_found_in_the_header_or_in_the_query() {
        let expected = Scope {
            access_key: "AKID".into(),
            date: "20261115".into(),
            region: "eu-west-1".into(),
            service: "kinesis".into(),
        };
        let header = "AWS4-HMAC-SHA256 Credential=AKID/20261115/eu-west-1/kinesis/aws4_request, SignedHeaders=host, \
                      Signature=00";
        let signed = Request::get("/").header("authorization", header).body(()).unwrap().into_parts().0;
        assert_eq!(Scope::of(&signed), Some(expected.clone()));
        assert_eq!(expected.text(), "20261115/eu-west-1/kinesis/aws4_request");
        let uri =
            "/b/k?X-Amz-Credential=AKID%2F20261115%2Feu-west-1%2Fkinesis%2Faws4_request&X-Amz-Signature=00";
        let presigned = Request::get(uri).body(()).unwrap().into_parts().0;
        assert_eq!(Scope::of(&presigned), Some(expected));
    }

    #[test]
    fn other_texts_are_no_scopes() {
        for text in [
            "",
            "AKID",
            "a/b/c/d/e",
            "AKID/20261115/eu-west-1/kinesis",
            "//// aws4_request",
            "AKID/1//s/aws4_request",
        ] {
            assert_eq!(Scope::parse(text), None, "{text}");
        }
        let unsigned =
            Request::get("/").header("authorization", "Basic xyz").body(()).unwrap().into_parts().0;
        assert_eq!(Scope::of(&unsigned), None);
    }
}
