//! The least that a call can cost: the SDK alone, on the same connection. `anabranch bench aws` puts the stores beside it.
//!
//! Nothing is checked, translated or repeated here.

use std::collections::HashMap;
use std::error::Error as StdError;

use anabranch_model::{Error, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_kinesis::primitives::Blob;
use aws_sdk_kinesis::types::PutRecordsRequestEntry;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use aws_smithy_types::error::display::DisplayErrorContext;
use bytes::Bytes;

use crate::config::Aws;

/// Calls of the SDK, and nothing around them.
#[derive(Clone, Debug)]
pub struct Bare {
    kinesis: aws_sdk_kinesis::Client,
    sqs: aws_sdk_sqs::Client,
    dynamodb: aws_sdk_dynamodb::Client,
}

impl Bare {
    /// Calls on this connection.
    pub fn new(aws: &Aws) -> Self {
        Bare {
            kinesis: aws_sdk_kinesis::Client::new(&aws.config),
            sqs: aws_sdk_sqs::Client::new(&aws.config),
            dynamodb: aws_sdk_dynamodb::Client::new(&aws.config),
        }
    }

    /// PutRecords; returns how many were stored.
    pub async fn put_records(&self, stream: &str, records: &[(String, Bytes)]) -> Result<usize> {
        let entry = |(key, data): &(String, Bytes)| {
            PutRecordsRequestEntry::builder().partition_key(key).data(Blob::new(data.clone())).build()
        };
        let entries = records.iter().map(entry).collect::<std::result::Result<_, _>>().map_err(broken)?;
        let call = self.kinesis.put_records().stream_name(stream).set_records(Some(entries));
        Ok(call.send().await.map_err(broken)?.records.len())
    }

    /// GetRecords; returns how many came.
    pub async fn get_records(&self, iterator: &str, limit: i32) -> Result<usize> {
        let call = self.kinesis.get_records().shard_iterator(iterator).limit(limit);
        Ok(call.send().await.map_err(broken)?.records.len())
    }

    /// SendMessageBatch; returns how many were taken.
    pub async fn send_messages(&self, url: &str, bodies: &[String]) -> Result<usize> {
        let entry = |(place, body): (usize, &String)| {
            SendMessageBatchRequestEntry::builder().id(place.to_string()).message_body(body).build()
        };
        let entries = bodies.iter().enumerate().map(entry).collect::<std::result::Result<_, _>>();
        let call = self.sqs.send_message_batch().queue_url(url).set_entries(Some(entries.map_err(broken)?));
        Ok(call.send().await.map_err(broken)?.successful.len())
    }

    /// ReceiveMessage with all attributes; returns how many came.
    pub async fn receive_messages(&self, url: &str, messages_max: i32) -> Result<usize> {
        let call = self.sqs.receive_message().queue_url(url).max_number_of_messages(messages_max);
        let call = call
            .message_system_attribute_names(aws_sdk_sqs::types::MessageSystemAttributeName::All)
            .message_attribute_names("All");
        Ok(call.send().await.map_err(broken)?.messages.map_or(0, |messages| messages.len()))
    }

    /// PutItem of texts.
    pub async fn put_item(&self, table: &str, item: &[(&str, &str)]) -> Result<()> {
        let call = self.dynamodb.put_item().table_name(table).set_item(Some(texts(item)));
        call.send().await.map(drop).map_err(broken)
    }

    /// GetItem; returns how many attributes it has.
    pub async fn get_item(&self, table: &str, key: &[(&str, &str)]) -> Result<usize> {
        let call = self.dynamodb.get_item().table_name(table).set_key(Some(texts(key)));
        Ok(call.send().await.map_err(broken)?.item.map_or(0, |item| item.len()))
    }
}

fn texts(item: &[(&str, &str)]) -> HashMap<String, AttributeValue> {
    item.iter().map(|(name, text)| (name.to_string(), AttributeValue::S(text.to_string()))).collect()
}

fn broken(error: impl StdError + Send + Sync + 'static) -> Error {
    Error::Unavailable(DisplayErrorContext(&error).to_string())
}
