//! The Query protocol: forms in, XML out.

use std::collections::BTreeMap;

use crate::limits::FORM_FIELDS_MAX;

/// The fields of a form. Of two fields with one name the first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    fields: BTreeMap<String, String>,
}

impl Form {
    /// The fields of an encoded form. Anything is a form.
    pub(crate) fn parse(text: &str) -> Form {
        let mut fields = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(text.as_bytes()).take(FORM_FIELDS_MAX) {
            fields.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Form { fields }
    }

    /// All fields.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A field.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(String::as_str)
    }
}

/// The answer to an action. `result` is XML and empty where there is none.
pub(crate) fn document(action: &str, namespace: &str, result: &str, request_id: &str) -> String {
    let result = match result {
        "" => String::new(),
        result => format!("<{action}Result>{result}</{action}Result>"),
    };
    format!(
        "<{action}Response xmlns=\"{namespace}\">{result}<ResponseMetadata><RequestId>{request_id}</RequestId>\
         </ResponseMetadata></{action}Response>"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_the_first_of_two_counts() {
        let form = Form::parse("Action=Send+Message&Body=a%26b%3Dc&Body=x&Empty=&Broken=%zz&&=&Ä=ö");
        assert_eq!(form.get("Action"), Some("Send Message"));
        assert_eq!(form.get("Body"), Some("a&b=c"));
        assert_eq!(form.get("Empty"), Some(""));
        assert_eq!(form.get("Broken"), Some("%zz"));
        assert_eq!(form.get("Ä"), Some("ö"));
        assert_eq!(form.get("Missing"), None);
    }
}
