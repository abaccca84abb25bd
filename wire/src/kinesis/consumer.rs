//! Registered consumers: one document each, which belongs to the stream.

use std::collections::BTreeMap;

use anabranch_model::limits::PAGE_ENTRIES_MAX;
use anabranch_model::{Document, Error, Owner, StreamName, Timestamp};
use serde::{Deserialize, Serialize};

use super::errors::{fault, invalid, not_found};
use super::stream::{self, of_arn};
use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;
use crate::time::Time;
use crate::validation::Validation;

const KIND: &str = "kinesis-consumer";
/// Most consumers of one stream.
pub(super) const CONSUMERS_MAX: usize = 20;

/// A consumer, as it is kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Consumer {
    pub(super) name: String,
    /// In milliseconds.
    pub(super) created_at: u64,
    #[serde(default)]
    pub(super) tags: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) policy: Option<String>,
}

/// A consumer as answers show it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct ConsumerShape {
    consumer_name: String,
    #[serde(rename = "ConsumerARN")]
    consumer_arn: String,
    consumer_status: &'static str,
    consumer_creation_timestamp: Time,
    #[serde(rename = "StreamARN", skip_serializing_if = "Option::is_none")]
    stream_arn: Option<String>,
}

impl Consumer {
    /// The ARN, which tells a consumer from an earlier one of the same name.
    pub(super) fn arn(&self, context: &Context, stream: &StreamName) -> String {
        let stream = stream::arn(context, stream);
        format!("{stream}/consumer/{}:{}", self.name, self.created_at / 1_000)
    }

    /// How it is shown.
    pub(super) fn shape(&self, context: &Context, stream: &StreamName) -> ConsumerShape {
        let created_at = Timestamp::from_millis(self.created_at);
        let creating = context.clock.now().since(created_at) < context.transition;
        ConsumerShape {
            consumer_name: self.name.clone(),
            consumer_arn: self.arn(context, stream),
            consumer_status: if creating { "CREATING" } else { "ACTIVE" },
            consumer_creation_timestamp: Time(created_at),
            stream_arn: None,
        }
    }
}

impl ConsumerShape {
    /// With the stream it belongs to.
    pub(super) fn with_stream(self, context: &Context, stream: &StreamName) -> Self {
        ConsumerShape { stream_arn: Some(stream::arn(context, stream)), ..self }
    }
}

/// All consumers of a stream, by name.
pub(super) async fn all(context: &Context, stream: &StreamName) -> Result<Vec<Consumer>, Fault> {
    let owner = Owner::Stream(stream.clone());
    let page = context.ports.admin.documents(&owner, KIND, None, PAGE_ENTRIES_MAX).await.map_err(fault)?;
    page.entries.iter().map(|document| parse(&document.value)).collect()
}

/// One consumer.
pub(super) async fn load(
    context: &Context,
    stream: &StreamName,
    name: &str,
) -> Result<Option<Consumer>, Fault> {
    let owner = Owner::Stream(stream.clone());
    let document = context.ports.admin.document(&owner, KIND, name).await.map_err(fault)?;
    document.map(|bytes| parse(&bytes)).transpose()
}

fn parse(bytes: &[u8]) -> Result<Consumer, Fault> {
    serde_json::from_slice(bytes)
        .map_err(|error| fault(Error::Corrupt(format!("a registered consumer is damaged: {error}"))))
}

/// Keeps a consumer.
pub(super) async fn store(context: &Context, stream: &StreamName, consumer: &Consumer) -> Result<(), Fault> {
    let bytes =
        serde_json::to_vec(consumer).map_err(|error| Fault::server("InternalFailure", error.to_string()))?;
    let owner = Owner::Stream(stream.clone());
    let document = vec![Document::new(consumer.name.clone(), bytes)];
    context.ports.admin.put_documents(&owner, KIND, document).await.map_err(fault)
}

/// Forgets a consumer.
pub(super) async fn remove(context: &Context, stream: &StreamName, name: &str) -> Result<(), Fault> {
    let owner = Owner::Stream(stream.clone());
    context.ports.admin.delete_documents(&owner, KIND, vec![name.to_owned()]).await.map_err(fault)
}

/// The consumer that a request means: by its ARN, or by its name and that of its stream.
pub(super) async fn resolve(
    context: &Context,
    stream_arn: Option<&str>,
    name: Option<&str>,
    arn: Option<&str>,
) -> Result<(StreamName, Consumer), Fault> {
    let mut validation = Validation::default();
    stream::check_name(&mut validation, "consumerName", name);
    validation.length("consumerARN", arn, 1..=2048).length("streamARN", stream_arn, 1..=2048).done()?;
    match (arn, stream_arn, name) {
        (Some(arn), ..) => of_consumer_arn(context, arn).await,
        (None, Some(stream_arn), Some(name)) => {
            let stream = of_arn(stream_arn)?;
            let consumer = load(context, &stream, name).await?;
            consumer.map(|consumer| (stream.clone(), consumer)).ok_or_else(|| {
                not_found(format!("Consumer {name} in stream {stream} under account {ACCOUNT} not found."))
            })
        }
        _ => Err(invalid("Specify either ConsumerARN, or StreamARN and ConsumerName.")),
    }
}

/// The consumer with this ARN: `…:stream/clicks/consumer/app:1763000000`.
pub(super) async fn of_consumer_arn(context: &Context, arn: &str) -> Result<(StreamName, Consumer), Fault> {
    let stream = of_arn(arn)?;
    let (_, rest) = arn
        .split_once("/consumer/")
        .ok_or_else(|| invalid(format!("{arn:?} is not the ARN of a consumer.")))?;
    let name = rest.rsplit_once(':').map_or(rest, |(name, _)| name);
    let mut validation = Validation::default();
    stream::check_name(&mut validation, "consumerARN", Some(name)).done()?;
    let found = load(context, &stream, name).await?;
    found
        .filter(|consumer| consumer.arn(context, &stream).rsplit('/').next() == arn.rsplit('/').next())
        .map(|consumer| (stream, consumer))
        .ok_or_else(|| not_found(format!("Consumer {arn} under account {ACCOUNT} not found.")))
}
