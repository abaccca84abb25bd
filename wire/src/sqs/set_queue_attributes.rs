//! SetQueueAttributes.

use anabranch_model::Error;
use serde::Deserialize;

use super::Nothing;
use super::attributes::{Attributes, Behaviour, check_encryption, check_kind, kind_stays, unknown};
use super::create_queue::no_dead_letters;
use super::errors::{fault, required};
use super::queue::resolve;
use super::settings::Settings;
use crate::context::Context;
use crate::fault::Fault;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_url: Option<String>,
    #[serde(alias = "Attribute")]
    attributes: Option<Attributes>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Nothing, Fault> {
    let queue = resolve(context, request.queue_url.as_deref())?;
    let attributes = required("Attributes", request.attributes)?;
    let _changing = context.sqs.changing().await;
    let summary = context.ports.queues.queue(&queue).await.map_err(fault)?;
    let mut settings = Settings::of(context, &queue).await?;
    check_kind(&queue, &attributes)?;
    check_encryption(&attributes)?;
    let mut behaviour = Behaviour { options: summary.options, kept: settings.attributes.clone() };
    for (name, value) in &attributes {
        behaviour.set(name, value)?;
    }
    // A queue keeps its kind; one without an order does not even know the attribute.
    match (queue.is_fifo(), behaviour.options.fifo) {
        (false, true) => return Err(unknown("FifoQueue")),
        (true, false) => return Err(kind_stays()),
        _ => {}
    }
    // Also where the options stay: the queue was modified now.
    context.ports.queues.set_options(&queue, behaviour.options).await.map_err(|error| match error {
        Error::QueueNotFound(missing) if missing != queue => no_dead_letters(&missing),
        error => fault(error),
    })?;
    if behaviour.kept != settings.attributes {
        settings.attributes = behaviour.kept;
        settings.keep(context, &queue).await?;
    }
    Ok(Nothing {})
}
