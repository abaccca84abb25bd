//! The values of DynamoDB and of its streams as the model's, and back.
//!
//! The two services have one notion of a value, but two types for it in their clients, so the translation is written once
//! and made for both.

/// Makes the translation for the client with this name.
macro_rules! translation {
    ($client:ident, $service:expr) => {
        use std::collections::{BTreeSet, HashMap};

        use anabranch_model::Result;
        use anabranch_model::table::{Item, Value};
        use bytes::Bytes;
        use $client::types::AttributeValue;

        use crate::failure;

        /// An item that the service gave.
        pub(crate) fn item(attributes: HashMap<String, AttributeValue>) -> Result<Item> {
            attributes.into_iter().map(|(name, attribute)| Ok((name, value(attribute)?))).collect()
        }

        fn value(attribute: AttributeValue) -> Result<Value> {
            let number =
                |text: String| text.parse().map_err(|_| failure::strange($service, "a number that is none"));
            Ok(match attribute {
                AttributeValue::S(text) => Value::Text(text),
                AttributeValue::N(text) => Value::Number(number(text)?),
                AttributeValue::B(blob) => Value::Binary(blob.into_inner().into()),
                AttributeValue::Bool(value) => Value::Bool(value),
                AttributeValue::Null(_) => Value::Null,
                AttributeValue::L(list) => Value::List(list.into_iter().map(value).collect::<Result<_>>()?),
                AttributeValue::M(map) => Value::Map(item(map)?),
                AttributeValue::Ss(set) => Value::TextSet(set.into_iter().collect()),
                AttributeValue::Ns(set) => {
                    Value::NumberSet(set.into_iter().map(number).collect::<Result<_>>()?)
                }
                AttributeValue::Bs(set) => {
                    let bytes = |blob: aws_smithy_types::Blob| Bytes::from(blob.into_inner());
                    Value::BinarySet(set.into_iter().map(bytes).collect::<BTreeSet<_>>())
                }
                _ => return Err(failure::strange($service, "a value of no known kind")),
            })
        }
    };
}

/// Of the streams of tables.
pub(crate) mod streams {
    translation!(aws_sdk_dynamodbstreams, crate::action::Service::DynamodbStreams);
}

/// Of tables.
pub(crate) mod tables {
    translation!(aws_sdk_dynamodb, crate::action::Service::Dynamodb);

    use aws_smithy_types::Blob;

    /// An item as the service takes it.
    pub(crate) fn attributes(item: &Item) -> HashMap<String, AttributeValue> {
        item.iter().map(|(name, value)| (name.to_string(), attribute(value))).collect()
    }

    /// A value as the service takes it.
    pub(crate) fn attribute(value: &Value) -> AttributeValue {
        let blob = |bytes: &Bytes| Blob::new(bytes.to_vec());
        match value {
            Value::Text(text) => AttributeValue::S(text.clone()),
            Value::Number(number) => AttributeValue::N(number.to_string()),
            Value::Binary(bytes) => AttributeValue::B(blob(bytes)),
            Value::Bool(value) => AttributeValue::Bool(*value),
            Value::Null => AttributeValue::Null(true),
            Value::List(list) => AttributeValue::L(list.iter().map(attribute).collect()),
            Value::Map(map) => AttributeValue::M(attributes(map)),
            Value::TextSet(set) => AttributeValue::Ss(set.iter().cloned().collect()),
            Value::NumberSet(set) => AttributeValue::Ns(set.iter().map(ToString::to_string).collect()),
            Value::BinarySet(set) => AttributeValue::Bs(set.iter().map(blob).collect()),
        }
    }
}
