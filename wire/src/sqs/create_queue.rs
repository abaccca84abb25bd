//! CreateQueue.

use std::collections::BTreeMap;

use anabranch_model::{Error, QueueName, QueueOptions};
use serde::{Deserialize, Serialize};

use super::attributes::{Attributes, Behaviour, check_encryption, check_kind};
use super::errors::{fault, invalid, refusal, required};
use super::queue::url;
use super::settings::Settings;
use crate::context::Context;
use crate::fault::Fault;
use crate::making::{Notes, to_its_end};

/// Queues that are being made with settings.
const NOTES: Notes = Notes("sqs-making");

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    queue_name: Option<String>,
    #[serde(alias = "Attribute")]
    attributes: Option<Attributes>,
    #[serde(rename = "tags", alias = "Tag", alias = "Tags")]
    tags: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    queue_url: String,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let name = required("QueueName", request.queue_name)?;
    let attributes = request.attributes.unwrap_or_default();
    let queue = QueueName::new(&name).map_err(|_| bad_name())?;
    check_kind(&queue, &attributes)?;
    check_encryption(&attributes)?;
    let mut behaviour = Behaviour { options: QueueOptions::default(), kept: Attributes::new() };
    for (name, value) in &attributes {
        behaviour.set(name, value)?;
    }
    if queue.is_fifo() != behaviour.options.fifo {
        return Err(if queue.is_fifo() { bad_name() } else { bad_fifo_name() });
    }
    let mut settings = Settings { attributes: behaviour.kept, ..Settings::default() };
    settings.tag(request.tags.unwrap_or_default())?;

    let context = context.clone();
    to_its_end(async move { make(&context, &queue, behaviour.options, &settings, &attributes).await }).await
}

async fn make(
    context: &Context,
    queue: &QueueName,
    options: QueueOptions,
    settings: &Settings,
    attributes: &Attributes,
) -> Result<Response, Fault> {
    let (name, note) = (queue.as_str(), settings.to_bytes()?);
    let is_plain = *settings == Settings::default();
    let _changing = context.sqs.changing().await;
    let unfinished = NOTES.unfinished(context, name).await.map_err(fault)?;
    match context.ports.queues.queue(queue).await {
        Ok(_) if unfinished.as_ref().is_some_and(|unfinished| *unfinished == note) => {}
        Ok(_) => {
            compare(context, queue, attributes).await?;
            return Ok(Response { queue_url: url(context, queue) });
        }
        Err(Error::QueueNotFound(_)) => {
            if !is_plain {
                NOTES.begin(context, name, note).await.map_err(fault)?;
            }
            if let Err(error) = context.ports.queues.create_queue(queue, options).await {
                NOTES.refused(context, name, &error).await;
                return Err(match error {
                    // Also the queue itself, which is not there yet.
                    Error::QueueNotFound(missing) => no_dead_letters(&missing),
                    error => fault(error),
                });
            }
            context.sqs.forget_purge(queue);
        }
        Err(error) => return Err(fault(error)),
    }
    if !is_plain {
        settings.keep(context, queue).await?;
    }
    if !is_plain || unfinished.is_some() {
        NOTES.end(context, name).await.map_err(fault)?;
    }
    Ok(Response { queue_url: url(context, queue) })
}

/// Gives the queues their settings that a server made which died before it could.
pub(crate) async fn finish_making(context: &Context) -> Result<(), Fault> {
    let _changing = context.sqs.changing().await;
    for (name, note) in NOTES.all(context).await.map_err(fault)? {
        let queue = QueueName::new(&name).map_err(fault)?;
        match context.ports.queues.queue(&queue).await {
            // Settings that somebody made since count.
            Ok(_) if Settings::of(context, &queue).await? == Settings::default() => {
                Settings::decode(&queue, &note)?.keep(context, &queue).await?;
            }
            // Or it was not made, and nobody was told that it was.
            Ok(_) | Err(Error::QueueNotFound(_)) => {}
            Err(error) => return Err(fault(error)),
        }
        NOTES.end(context, &name).await.map_err(fault)?;
    }
    Ok(())
}

/// A queue that exists is as good as a new one if it has the attributes that were asked for.
async fn compare(context: &Context, queue: &QueueName, attributes: &Attributes) -> Result<(), Fault> {
    let summary = context.ports.queues.queue(queue).await.map_err(fault)?;
    let settings = Settings::of(context, queue).await?;
    let existing = Behaviour { options: summary.options, kept: settings.attributes };
    for (name, value) in attributes {
        let mut asked = existing.clone();
        asked.set(name, value)?;
        if asked != existing {
            let message = format!(
                "A queue already exists with the same name and a different value for attribute {name}"
            );
            return Err(refusal("QueueNameExists", "QueueAlreadyExists", message));
        }
    }
    Ok(())
}

/// The queue for dead letters does not exist.
pub(super) fn no_dead_letters(queue: &QueueName) -> Fault {
    invalid(format!(
        "Value {queue} for parameter RedrivePolicy is invalid. Reason: Dead letter target does not exist."
    ))
}

fn bad_name() -> Fault {
    invalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
}

fn bad_fifo_name() -> Fault {
    invalid(
        "The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with \
         .fifo suffix and be 1 to 80 in length.",
    )
}
