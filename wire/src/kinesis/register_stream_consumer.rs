//! RegisterStreamConsumer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::consumer::{self, CONSUMERS_MAX, Consumer, ConsumerShape};
use super::errors::{fault, in_use};
use super::stream::{check_name, of_arn};
use super::tags;
use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    consumer_name: Option<String>,
    tags: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    consumer: ConsumerShape,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let mut validation = Validation::default();
    validation.required("streamARN", &request.stream_arn).required("consumerName", &request.consumer_name);
    check_name(&mut validation, "consumerName", request.consumer_name.as_deref()).done()?;
    let stream = of_arn(&request.stream_arn.unwrap_or_default())?;
    let (name, tags) = (request.consumer_name.unwrap_or_default(), request.tags.unwrap_or_default());
    tags::check(&tags)?;
    let _changing = context.kinesis.changing().await;
    context.ports.streams.stream(&stream).await.map_err(fault)?;
    let others = consumer::all(context, &stream).await?;
    if others.iter().any(|other| other.name == name) {
        return Err(in_use(format!(
            "Consumer {name} in stream {stream} under account {ACCOUNT} already exists."
        )));
    }
    if others.len() >= CONSUMERS_MAX {
        let message = format!("Stream {stream} has {CONSUMERS_MAX} consumers, which is the limit.");
        return Err(Fault::client("LimitExceededException", message));
    }
    let created_at = context.clock.now().as_millis();
    let consumer = Consumer { name, created_at, tags, policy: None };
    consumer::store(context, &stream, &consumer).await?;
    Ok(Response { consumer: consumer.shape(context, &stream) })
}
