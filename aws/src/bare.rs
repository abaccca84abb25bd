//! The least that a call can cost: the SDK alone, on the same connection. `anabranch bench aws` puts the stores beside it.
//!
//! Nothing is checked, translated or repeated here. For S3, which no client of the SDK is built for, the least is a request
//! that is signed and sent.

use std::collections::HashMap;
use std::error::Error as StdError;

use anabranch_model::{BlobKey, BucketName, Error, Result};
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_kinesis::primitives::Blob;
use aws_sdk_kinesis::types::PutRecordsRequestEntry;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, SendMessageBatchRequestEntry};
use aws_smithy_types::error::display::DisplayErrorContext;
use bytes::Bytes;

use crate::config::Aws;
use crate::s3::Blobs;

/// Calls of the SDK, and nothing around them.
#[derive(Clone, Debug)]
pub struct Bare {
    kinesis: aws_sdk_kinesis::Client,
    sqs: aws_sdk_sqs::Client,
    dynamodb: aws_sdk_dynamodb::Client,
    blobs: Blobs,
}

impl Bare {
    /// Calls on this connection.
    pub fn new(aws: &Aws) -> Result<Self> {
        Ok(Bare {
            kinesis: aws_sdk_kinesis::Client::new(&aws.config),
            sqs: aws_sdk_sqs::Client::new(&aws.config),
            dynamodb: aws_sdk_dynamodb::Client::new(&aws.config),
            blobs: Blobs::new(aws)?,
        })
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

    /// DeleteMessageBatch; returns how many are gone.
    pub async fn delete_messages(&self, url: &str, handles: &[String]) -> Result<usize> {
        let entry = |(place, handle): (usize, &String)| {
            DeleteMessageBatchRequestEntry::builder().id(place.to_string()).receipt_handle(handle).build()
        };
        let entries = handles.iter().enumerate().map(entry).collect::<std::result::Result<_, _>>();
        let call = self.sqs.delete_message_batch().queue_url(url).set_entries(Some(entries.map_err(broken)?));
        Ok(call.send().await.map_err(broken)?.successful.len())
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

    /// Query of the items with one value of a key; returns how many came.
    pub async fn query(&self, table: &str, (name, text): (&str, &str)) -> Result<usize> {
        let call = self.dynamodb.query().table_name(table).key_condition_expression("#k = :v");
        let call = call
            .expression_attribute_names("#k", name)
            .expression_attribute_values(":v", AttributeValue::S(text.to_string()));
        Ok(call.send().await.map_err(broken)?.items.map_or(0, |items| items.len()))
    }

    /// PutObject, signed and sent as the stores do.
    pub async fn put_object(&self, bucket: &BucketName, key: &BlobKey, body: &Bytes) -> Result<()> {
        self.blobs.bare_put(bucket, key, body).await
    }

    /// GetObject, signed and sent as the stores do; returns how many bytes came.
    pub async fn get_object(&self, bucket: &BucketName, key: &BlobKey) -> Result<usize> {
        self.blobs.bare_get(bucket, key).await
    }
}

fn texts(item: &[(&str, &str)]) -> HashMap<String, AttributeValue> {
    item.iter().map(|(name, text)| (name.to_string(), AttributeValue::S(text.to_string()))).collect()
}

pub(crate) fn broken(error: impl StdError + Send + Sync + 'static) -> Error {
    Error::Unavailable(DisplayErrorContext(&error).to_string())
}
