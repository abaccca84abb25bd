//! Attributes of messages, on their way in and out.

use std::collections::BTreeMap;

use anabranch_model::limits::MESSAGE_ATTRIBUTES_MAX;
use anabranch_model::queue::{Attribute, AttributeValue};
use serde::{Deserialize, Serialize};

use super::errors::{invalid, unsupported};
use super::text;
use crate::binary::Binary;
use crate::fault::Fault;

/// Under which name traces were kept among the attributes of messages before they had a place of their own. Senders cannot
/// use names like this for their own.
pub(super) const TRACE: &str = "AWS.TraceHeader";
/// What SQS calls it.
pub(super) const TRACE_HEADER: &str = "AWSTraceHeader";
/// The largest number that an attribute can hold.
const NUMBER_MAX: f64 = 1e126;

/// An attribute as SQS spells it.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Value {
    #[serde(skip_serializing_if = "Option::is_none")]
    string_value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    binary_value: Option<Binary>,
    #[serde(skip_serializing, alias = "StringListValue")]
    string_list_values: Option<Vec<String>>,
    #[serde(skip_serializing, alias = "BinaryListValue")]
    binary_list_values: Option<Vec<Binary>>,
    data_type: Option<String>,
}

impl From<&Attribute> for Value {
    fn from(attribute: &Attribute) -> Self {
        let value = Value { data_type: Some(attribute.kind.clone()), ..Value::default() };
        match &attribute.value {
            AttributeValue::Text(text) => Value { string_value: Some(text.clone()), ..value },
            AttributeValue::Binary(bytes) => Value { binary_value: Some(Binary(bytes.clone())), ..value },
        }
    }
}

/// The attributes of a sender.
pub(super) fn of_sender(values: BTreeMap<String, Value>) -> Result<BTreeMap<String, Attribute>, Fault> {
    if values.len() > MESSAGE_ATTRIBUTES_MAX {
        let message = format!("Number of message attributes [{}] exceeds the allowed maximum", values.len());
        return Err(invalid(format!("{message} [{MESSAGE_ATTRIBUTES_MAX}].")));
    }
    let one = |(name, value): (String, Value)| {
        check_name(&name)?;
        let attribute = attribute(&name, value)?;
        Ok((name, attribute))
    };
    values.into_iter().map(one).collect()
}

/// What senders say to the service about a message: the trace that it belongs to, and nothing else.
pub(super) fn of_system(values: BTreeMap<String, Value>) -> Result<Option<String>, Fault> {
    let mut trace = None;
    for (name, value) in values {
        if name != TRACE_HEADER {
            return Err(invalid(format!("Message system attribute name '{name}' is invalid.")));
        }
        let Attribute { kind, value } = attribute(&name, value)?;
        match value {
            AttributeValue::Text(text) if kind == "String" => trace = Some(text),
            _ => {
                return Err(invalid(format!(
                    "The message system attribute '{name}' must be of type String."
                )));
            }
        }
    }
    Ok(trace)
}

fn check_name(name: &str) -> Result<(), Fault> {
    let begins = |prefix: &str| {
        name.get(..prefix.len()).is_some_and(|beginning| beginning.eq_ignore_ascii_case(prefix))
    };
    if begins("AWS.") || begins("Amazon.") {
        let message = format!("Message (user) attribute name '{name}' is reserved: it begins with AWS. or");
        return Err(invalid(format!("{message} Amazon.")));
    }
    Ok(())
}

fn attribute(name: &str, value: Value) -> Result<Attribute, Fault> {
    let listed = |list: &Option<Vec<_>>| list.as_ref().is_some_and(|list| !list.is_empty());
    if listed(&value.string_list_values) || value.binary_list_values.is_some_and(|list| !list.is_empty()) {
        return Err(unsupported("Message attribute list values in SendMessage operation are not supported."));
    }
    let kind = value.data_type.filter(|kind| !kind.is_empty()).ok_or_else(|| {
        invalid(format!("The message attribute '{name}' must contain a non-empty message attribute type."))
    })?;
    let empty = || {
        invalid(format!("Message (user) attribute '{name}' must contain a non-empty value of type '{kind}'."))
    };
    let content = match kind.split('.').next() {
        Some(base @ ("String" | "Number")) => {
            let content = value.string_value.filter(|text| !text.is_empty()).ok_or_else(empty)?;
            // The same character makes a body a wrong message, and an attribute a wrong parameter.
            text::check(&content).map_err(|fault| invalid(fault.message))?;
            if base == "Number" && !is_number(&content) {
                let message = "Can't cast the value of message (user) attribute";
                return Err(invalid(format!("{message} '{name}' to a number.")));
            }
            AttributeValue::Text(content)
        }
        Some("Binary") => {
            let bytes = value.binary_value.filter(|bytes| !bytes.0.is_empty()).ok_or_else(empty)?;
            AttributeValue::Binary(bytes.0)
        }
        _ => {
            return Err(invalid(format!(
                "The message attribute '{name}' has an invalid message attribute type, the set of supported type \
                 prefixes is Binary, Number, and String."
            )));
        }
    };
    Ok(Attribute { kind, value: content })
}

/// Digits with a sign, a point and an exponent, not larger than SQS takes. There are words for numbers that are none.
fn is_number(text: &str) -> bool {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    digits && text.parse::<f64>().is_ok_and(|number| number.abs() <= NUMBER_MAX)
}

/// Which attributes a receiver wants.
#[derive(Debug)]
pub(super) struct Wanted(Vec<String>);

impl Wanted {
    /// `All`, `.*`, `*`, names, and beginnings of names with `.*` behind.
    pub(super) fn new(names: Option<Vec<String>>) -> Self {
        Wanted(names.unwrap_or_default())
    }

    fn has(&self, name: &str) -> bool {
        let matches = |wanted: &String| match wanted.strip_suffix(".*") {
            Some(beginning) => name.starts_with(beginning),
            None => wanted == "All" || wanted == "*" || wanted == name,
        };
        name != TRACE && self.0.iter().any(matches)
    }

    /// Those of a message that are wanted.
    pub(super) fn of<'a>(
        &self,
        attributes: &'a BTreeMap<String, Attribute>,
    ) -> Vec<(&'a str, &'a Attribute)> {
        let all = attributes.iter().map(|(name, attribute)| (name.as_str(), attribute));
        all.filter(|(name, _)| self.has(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(value: serde_json::Value) -> Result<BTreeMap<String, Attribute>, String> {
        of_sender(serde_json::from_value(value).unwrap()).map_err(|fault| fault.code.into_owned())
    }

    #[test]
    fn values_come_in_three_kinds() {
        let attributes = sent(json!({
            "a": {"DataType": "String.x", "StringValue": "✓"},
            "b": {"DataType": "Number", "StringValue": "-1.50"},
            "d": {"DataType": "Number.float", "StringValue": "+1.5E-7"},
            "c": {"DataType": "Binary", "BinaryValue": "AP8="},
        }))
        .unwrap();
        assert_eq!(attributes["a"].kind, "String.x");
        assert_eq!(attributes["b"].value, AttributeValue::Text("-1.50".into()));
        assert_eq!(attributes["c"].value, AttributeValue::Binary(vec![0, 255].into()));
        let back = serde_json::to_value(Value::from(&attributes["c"])).unwrap();
        assert_eq!(back, json!({"DataType": "Binary", "BinaryValue": "AP8="}));
    }

    #[test]
    fn what_is_no_attribute_is_refused() {
        for value in [
            json!({"a": {"StringValue": "x"}}),
            json!({"a": {"DataType": "", "StringValue": "x"}}),
            json!({"a": {"DataType": "Date", "StringValue": "x"}}),
            json!({"a": {"DataType": "String"}}),
            json!({"a": {"DataType": "String", "StringValue": ""}}),
            json!({"a": {"DataType": "String", "BinaryValue": "AA=="}}),
            json!({"a": {"DataType": "Number", "StringValue": "many"}}),
            json!({"a": {"DataType": "Number", "StringValue": "inf"}}),
            json!({"a": {"DataType": "Number", "StringValue": "-Infinity"}}),
            json!({"a": {"DataType": "Number.int", "StringValue": "NaN"}}),
            json!({"a": {"DataType": "Number", "StringValue": "1e999"}}),
            json!({"a": {"DataType": "Number", "StringValue": "1e127"}}),
            json!({"a": {"DataType": "Number", "StringValue": " 1"}}),
            json!({"a": {"DataType": "Binary", "StringValue": "x"}}),
            json!({"AWS.x": {"DataType": "String", "StringValue": "x"}}),
            json!({"amazon.x": {"DataType": "String", "StringValue": "x"}}),
        ] {
            assert_eq!(sent(value.clone()), Err("InvalidParameterValueException".into()), "{value}");
        }
        let listed = json!({"a": {"DataType": "String", "StringListValues": ["x"]}});
        assert_eq!(sent(listed), Err("UnsupportedOperation".into()));
        let control = json!({"a": {"DataType": "String", "StringValue": "\u{0}"}});
        assert_eq!(sent(control), Err("InvalidParameterValueException".into()));
    }

    #[test]
    fn receivers_choose_by_name_or_by_beginning() {
        let attribute = Attribute { kind: "String".into(), value: AttributeValue::Text("x".into()) };
        let names = ["a", "a.b", "b", TRACE];
        let attributes = names.map(|name| (name.to_owned(), attribute.clone())).into();
        for (wanted, expected) in [
            (&["All"][..], &["a", "a.b", "b"][..]),
            (&[".*"], &["a", "a.b", "b"]),
            (&["a.*"], &["a", "a.b"]),
            (&["b", "missing"], &["b"]),
            (&["*"], &["a", "a.b", "b"]),
            (&["A", "a*"], &[]),
            (&[TRACE], &[]),
            (&[], &[]),
        ] {
            let wanted = Wanted::new(Some(wanted.iter().map(|name| (*name).to_owned()).collect()));
            let found: Vec<_> = wanted.of(&attributes).into_iter().map(|(name, _)| name).collect();
            assert_eq!(found, expected, "{wanted:?}");
        }
    }

    #[test]
    fn the_service_is_told_of_traces_only() {
        let system = |value| of_system(serde_json::from_value(value).unwrap());
        let trace =
            system(json!({"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}})).unwrap();
        assert_eq!(trace.as_deref(), Some("Root=1"));
        assert_eq!(system(json!({})).unwrap(), None);
        assert!(system(json!({"Other": {"DataType": "String", "StringValue": "x"}})).is_err());
        assert!(system(json!({"AWSTraceHeader": {"DataType": "Number", "StringValue": "1"}})).is_err());
    }
}
