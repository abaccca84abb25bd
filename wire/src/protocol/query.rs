//! The Query protocol: forms in, XML out.

use std::collections::BTreeMap;

use crate::fault::Fault;
use crate::limits::FORM_FIELDS_MAX;

/// The fields of a form. Of two fields with one name the first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form {
    fields: BTreeMap<String, String>,
    /// Whether fields were left out because there are too many.
    cut: bool,
}

impl Form {
    /// The fields of an encoded form. Anything is a form; [`Form::check`] says whether all of it was read.
    pub(crate) fn parse(text: &str) -> Form {
        let mut fields = BTreeMap::new();
        let mut encoded = form_urlencoded::parse(text.as_bytes());
        for (name, value) in encoded.by_ref().take(FORM_FIELDS_MAX) {
            fields.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Form { fields, cut: encoded.next().is_some() }
    }

    /// Refuses a form with more fields than are read: what nobody looks at must not be answered.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        if !self.cut {
            return Ok(());
        }
        let message = format!("The request has more than {FORM_FIELDS_MAX} parameters.");
        Err(Fault::client("InvalidQueryParameter", message))
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

/// The answer to an action. `result` is XML; actions without any have none, those with an empty one do have it.
pub(crate) fn document(action: &str, namespace: &str, result: Option<&str>, request_id: &str) -> String {
    let result =
        result.map_or_else(String::new, |result| format!("<{action}Result>{result}</{action}Result>"));
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

    #[test]
    fn a_form_with_too_many_fields_is_refused() {
        let fields = |count: usize| (0..count).map(|number| format!("F.{number}=&")).collect::<String>();
        assert_eq!(Form::parse(&fields(FORM_FIELDS_MAX)).check(), Ok(()));
        let cut = Form::parse(&fields(FORM_FIELDS_MAX + 1));
        assert_eq!(cut.check().unwrap_err().code, "InvalidQueryParameter");
        assert_eq!(cut.fields().count(), FORM_FIELDS_MAX);
    }
}
