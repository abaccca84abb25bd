//! DeleteStream. Tags, consumers and all other documents of the stream go with it.

use serde::Deserialize;

use super::consumer;
use super::errors::{fault, in_use};
use super::state::forget_update;
use super::stream::resolve;
use crate::answer::Nothing;
use crate::context::{ACCOUNT, Context};
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    stream_name: Option<String>,
    #[serde(rename = "StreamARN")]
    stream_arn: Option<String>,
    enforce_consumer_deletion: Option<bool>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let (name, arn) = (request.stream_name.as_deref(), request.stream_arn.as_deref());
    let stream = resolve(&mut Validation::default(), name, arn)?;
    let _changing = context.kinesis.changing().await;
    let kept = !request.enforce_consumer_deletion.unwrap_or(false);
    if kept && !consumer::all(context, &stream).await?.is_empty() {
        return Err(in_use(format!(
            "Stream {stream} under account {ACCOUNT} has registered consumers: deregister them, or set \
             EnforceConsumerDeletion."
        )));
    }
    context.ports.streams.delete_stream(&stream).await.map_err(fault)?;
    forget_update(context, &stream);
    Ok(Nothing)
}
