//! Which stream a request means: by its name or by its ARN.

use anabranch_model::StreamName;
use anabranch_model::limits::STREAM_NAME_CHARS_MAX;

use super::errors::invalid;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::{Pattern, Validation};

/// What names of streams, shards and consumers look like.
pub(super) const NAME: Pattern = Pattern {
    text: "[a-zA-Z0-9_.-]+",
    matches: |text| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    },
};

/// Adds the checks of a name.
pub(super) fn check_name<'v>(
    validation: &'v mut Validation,
    field: &str,
    name: Option<&str>,
) -> &'v mut Validation {
    validation.length(field, name, 1..=STREAM_NAME_CHARS_MAX).pattern(field, name, NAME)
}

/// The stream that a request means. Its checks are told together with those that were made before.
pub(super) fn resolve(
    validation: &mut Validation,
    name: Option<&str>,
    arn: Option<&str>,
) -> Result<StreamName, Fault> {
    check_name(validation, "streamName", name).length("streamARN", arn, 1..=2048).done()?;
    let named = name.map(parse).transpose()?;
    let pointed = arn.map(of_arn).transpose()?;
    match (named, pointed) {
        (Some(named), Some(pointed)) if named != pointed => {
            Err(invalid(format!("StreamName {named} and StreamARN of {pointed} are not the same stream.")))
        }
        (Some(stream), _) | (None, Some(stream)) => Ok(stream),
        (None, None) => Err(invalid("Missing StreamARN or StreamName.")),
    }
}

/// The stream of an ARN: `arn:aws:kinesis:us-east-1:000000000000:stream/clicks`, or that of a consumer of the stream.
pub(super) fn of_arn(arn: &str) -> Result<StreamName, Fault> {
    let mut parts = arn.splitn(6, ':');
    let (scheme, _, service) = (parts.next(), parts.next(), parts.next());
    let resource = parts.nth(2).and_then(|resource| resource.strip_prefix("stream/"));
    match (scheme, service, resource) {
        (Some("arn"), Some("kinesis"), Some(resource)) => parse(resource.split('/').next().unwrap_or("")),
        _ => Err(invalid(format!("{arn:?} is not the ARN of a stream."))),
    }
}

/// The ARN of a stream.
pub(super) fn arn(context: &Context, stream: &StreamName) -> String {
    context.arn("kinesis", &format!("stream/{stream}"))
}

/// A name that was checked becomes a name of the model.
pub(super) fn parse(name: &str) -> Result<StreamName, Fault> {
    StreamName::new(name).map_err(|error| invalid(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:kinesis:us-east-1:000000000000:stream/clicks";

    fn resolved(name: Option<&str>, arn: Option<&str>) -> Result<String, String> {
        let resolved = resolve(&mut Validation::default(), name, arn);
        resolved.map(|stream| stream.to_string()).map_err(|fault| fault.code.into_owned())
    }

    #[test]
    fn a_stream_is_named_or_pointed_at() {
        for (name, arn) in [(Some("clicks"), None), (None, Some(ARN)), (Some("clicks"), Some(ARN))] {
            assert_eq!(resolved(name, arn), Ok("clicks".into()));
        }
        let consumer = format!("{ARN}/consumer/app:1763000000");
        assert_eq!(of_arn(&consumer).unwrap().as_str(), "clicks");
    }

    #[test]
    fn what_names_no_stream_is_refused() {
        assert_eq!(resolved(None, None), Err("InvalidArgumentException".into()));
        assert_eq!(resolved(Some("other"), Some(ARN)), Err("InvalidArgumentException".into()));
        for name in ["", "a/b", "ä", "a b", &"x".repeat(129)] {
            assert_eq!(resolved(Some(name), None), Err("ValidationException".into()), "{name}");
        }
        for arn in [
            "clicks",
            "arn:aws:sqs:us-east-1:0:stream/a",
            "arn:aws:kinesis:us-east-1:0:queue/a",
            "arn:aws:kinesis:r:0:stream/",
            "::::::",
        ] {
            assert_eq!(resolved(None, Some(arn)), Err("InvalidArgumentException".into()), "{arn}");
        }
    }
}
