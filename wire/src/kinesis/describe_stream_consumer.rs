//! DescribeStreamConsumer.

use serde::{Deserialize, Serialize};

use super::consumer::{self, ConsumerShape};
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

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    consumer_description: ConsumerShape,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let (stream, consumer) = consumer::resolve(
        context,
        request.stream_arn.as_deref(),
        request.consumer_name.as_deref(),
        request.consumer_arn.as_deref(),
    )
    .await?;
    Ok(Response { consumer_description: consumer.shape(context, &stream).with_stream(context, &stream) })
}
