//! What the service says when it refuses.

use std::fmt;

use aws_smithy_types::error::ErrorMetadata;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use super::xml::Element;

/// The service's own error. Without a code it said nothing: it never does to a request for the head of something.
#[derive(Debug)]
pub(super) struct Refusal {
    meta: ErrorMetadata,
    pub(super) status: u16,
}

impl Refusal {
    /// `region` is where the service says that the bucket is.
    pub(super) fn read(status: u16, text: &str, region: Option<&str>) -> Refusal {
        let error = Element::parse(text).ok().filter(|root| root.name == "Error");
        let mut meta = ErrorMetadata::builder();
        if let Some(error) = &error {
            let said = error.text("Message");
            let region = region.or(Some(error.text("Region"))).filter(|region| !region.is_empty());
            let message = match region.filter(|_| status == 301 || status == 307 || status == 400) {
                Some(region) => format!("{said} The bucket is in region `{region}`."),
                None => said.to_string(),
            };
            meta = meta.code(error.text("Code")).message(message.trim());
        } else if let (301 | 307, Some(region)) = (status, region) {
            meta = meta.code("PermanentRedirect").message(format!("The bucket is in region `{region}`."));
        } else if let Some(code) = condition_code(status) {
            meta = meta.code(code);
        }
        Refusal { meta: meta.build(), status }
    }
}

/// What a status says without a word.
fn condition_code(status: u16) -> Option<&'static str> {
    match status {
        304 => Some("NotModified"),
        412 => Some("PreconditionFailed"),
        _ => None,
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.meta.code(), self.meta.message()) {
            (Some(code), Some(message)) => write!(f, "{code}: {message}"),
            (Some(code), None) => f.write_str(code),
            (None, _) => write!(f, "status {}", self.status),
        }
    }
}

impl std::error::Error for Refusal {}

impl ProvideErrorMetadata for Refusal {
    fn meta(&self) -> &ErrorMetadata {
        &self.meta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_region_of_the_bucket() {
        let text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AuthorizationHeaderMalformed</Code>\
                    <Message>the region 'us-east-1' is wrong</Message><Region>eu-west-1</Region></Error>";
        let refusal = Refusal::read(400, text, None);
        assert_eq!(refusal.code(), Some("AuthorizationHeaderMalformed"));
        assert!(refusal.message().is_some_and(|text| text.contains("`eu-west-1`")), "{refusal}");
        assert!(Refusal::read(301, "", Some("eu-west-1")).to_string().contains("`eu-west-1`"));
    }

    #[test]
    fn what_is_not_the_services_has_no_code() {
        for text in ["", "<html><body>403</body></html>", "{}", "<Error"] {
            assert_eq!(Refusal::read(403, text, None).code(), None, "{text}");
        }
        assert_eq!(Refusal::read(412, "", None).code(), Some("PreconditionFailed"));
    }
}
