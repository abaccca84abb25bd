//! Things that are made in two steps: the thing itself, then its settings.
//!
//! A server may die between the two. So the settings are noted before the thing is made, and the server finishes the work when
//! it has started again. If only the call failed, whoever asks for the same thing again does:
//!
//! ```text
//!   note ─▶ make ─▶ keep the settings ─▶ no note any more
//! ```

use std::future::Future;

use std::sync::Arc;

use anabranch_model::{Document, Error, NextMove, Owner, Result};
use bytes::Bytes;
use tokio::sync::OnceCell;

use crate::context::{Context, Shared};
use crate::dispatch::Service;
use crate::fault::Fault;
use crate::{firehose, kinesis, sqs};

/// Notes that are read at once.
const PAGE: usize = 100;

/// The notes of one kind of things.
pub(crate) struct Notes(pub(crate) &'static str);

impl Notes {
    /// What was noted about a thing that was not finished.
    pub(crate) async fn unfinished(&self, context: &Context, name: &str) -> Result<Option<Bytes>> {
        context.ports.admin.document(&Owner::Store, self.0, name).await
    }

    /// All that was noted, by name.
    pub(crate) async fn all(&self, context: &Context) -> Result<Vec<(String, Bytes)>> {
        let mut all: Vec<(String, Bytes)> = Vec::new();
        loop {
            let after = all.last().map(|(name, _)| name.as_str());
            let page = context.ports.admin.documents(&Owner::Store, self.0, after, PAGE).await?;
            all.extend(page.entries.into_iter().map(|document| (document.name, document.value)));
            if !page.more {
                return Ok(all);
            }
        }
    }

    /// Notes the settings of a thing that is about to be made.
    pub(crate) async fn begin(&self, context: &Context, name: &str, settings: Vec<u8>) -> Result<()> {
        let note = vec![Document::new(name, settings)];
        context.ports.admin.put_documents(&Owner::Store, self.0, note).await
    }

    /// Forgets a thing that was refused. Whoever makes one of its name later makes another one.
    pub(crate) async fn refused(&self, context: &Context, name: &str, error: &Error) {
        if error.next_move() == NextMove::FixCall
            && let Err(error) = self.end(context, name).await
        {
            tracing::warn!(name, %error, "what was asked for and refused could not be crossed off");
        }
    }

    /// Forgets a thing that is finished.
    pub(crate) async fn end(&self, context: &Context, name: &str) -> Result<()> {
        context.ports.admin.delete_documents(&Owner::Store, self.0, vec![name.to_owned()]).await
    }
}

/// Services whose things are carried to their end before the first call.
const SERVICES: [Service; 3] = [Service::Firehose, Service::Kinesis, Service::Sqs];

/// Whether a service has carried to its end what was begun before the server started.
#[derive(Default)]
pub(crate) struct Settled(OnceCell<()>);

/// Carries to its end what was begun before the server started, so that nobody sees it by halves, or changes it before. What
/// fails is tried again by the next call, and keeps no call from being answered.
pub(crate) async fn settle(context: &Context, service: Service) -> std::result::Result<(), Fault> {
    let settled = match service {
        Service::Firehose => {
            context.firehose.settled.0.get_or_try_init(|| firehose::finish_making(context)).await
        }
        Service::Kinesis => {
            context.kinesis.settled.0.get_or_try_init(|| kinesis::finish_making(context)).await
        }
        Service::Sqs => context.sqs.settled.0.get_or_try_init(|| sqs::finish_making(context)).await,
        // The first look at tables, or change of one, does it.
        Service::DynamoDb
        | Service::CloudWatch
        | Service::DynamoDbStreams
        | Service::KeyspacesStreams
        | Service::S3
        | Service::SecretsManager
        | Service::Sts => return Ok(()),
    };
    settled.map(|_| ())
}

/// Does so whether or not anybody calls.
pub(crate) async fn settle_at_start(shared: Arc<Shared>) {
    let context = Context::of_server(shared);
    for service in SERVICES {
        if let Err(fault) = settle(&context, service).await {
            let (service, why) = (service.name(), fault.message);
            tracing::warn!(service, why, "what was being made is not whole yet");
        }
    }
}

/// Does something to its end, whether or not its caller is still there to hear about it.
pub(crate) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = std::result::Result<T, Fault>> + Send + 'static,
) -> std::result::Result<T, Fault> {
    match tokio::spawn(work).await {
        Ok(outcome) => outcome,
        Err(error) => {
            Err(Fault::server("InternalFailure", format!("the call did not come to its end: {error}")))
        }
    }
}
