//! DeregisterStreamConsumer. Its subscriptions end.

use serde::Deserialize;

use super::consumer;
use crate::answer::Nothing;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    consumer_name: Option<String>,
    #[serde(rename = "ConsumerARN")]
    consumer_arn: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    // Another one of the same name must not take its place in between.
    let _changing = context.kinesis.changing().await;
    let (stream, consumer) = consumer::resolve(
        context,
        request.stream_arn.as_deref(),
        request.consumer_name.as_deref(),
        request.consumer_arn.as_deref(),
    )
    .await?;
    consumer::remove(context, &stream, &consumer.name).await?;
    context.kinesis.subscriptions.end_all(&consumer.arn(context, &stream));
    Ok(Nothing)
}
