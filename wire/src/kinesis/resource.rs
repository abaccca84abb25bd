//! What an ARN points at: a stream or one of its consumers. Both have tags and a policy.

use std::collections::BTreeMap;

use anabranch_model::StreamName;

use super::consumer::{self, Consumer};
use super::errors::fault;
use super::settings;
use super::stream::of_arn;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

/// A stream or a consumer.
pub(super) enum Resource {
    Stream(StreamName),
    Consumer(StreamName, Box<Consumer>),
}

/// What both have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Labels {
    pub(super) tags: BTreeMap<String, String>,
    pub(super) policy: Option<String>,
}

impl Resource {
    /// What an ARN points at. It exists.
    pub(super) async fn of(context: &Context, arn: &Option<String>) -> Result<Resource, Fault> {
        Validation::default()
            .required("resourceARN", arn)
            .length("resourceARN", arn.as_deref(), 1..=2048)
            .done()?;
        let arn = arn.as_deref().unwrap_or_default();
        if arn.contains("/consumer/") {
            let (stream, consumer) = consumer::of_consumer_arn(context, arn).await?;
            return Ok(Resource::Consumer(stream, Box::new(consumer)));
        }
        let stream = of_arn(arn)?;
        context.ports.streams.stream(&stream).await.map_err(fault)?;
        Ok(Resource::Stream(stream))
    }

    /// Its tags and its policy.
    pub(super) async fn labels(&self, context: &Context) -> Result<Labels, Fault> {
        Ok(match self {
            Resource::Stream(stream) => {
                let settings = settings::load(context, stream).await?;
                Labels { tags: settings.tags, policy: settings.policy }
            }
            Resource::Consumer(_, consumer) => {
                Labels { tags: consumer.tags.clone(), policy: consumer.policy.clone() }
            }
        })
    }

    /// Changes its tags and its policy; no other change comes in between.
    pub(super) async fn change(
        self,
        context: &Context,
        change: impl FnOnce(&mut Labels) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        match self {
            Resource::Stream(stream) => {
                settings::change(context, &stream, |settings| {
                    let mut labels = Labels { tags: settings.tags.clone(), policy: settings.policy.clone() };
                    change(&mut labels)?;
                    (settings.tags, settings.policy) = (labels.tags, labels.policy);
                    Ok(())
                })
                .await
            }
            Resource::Consumer(stream, consumer) => {
                let _changing = context.kinesis.changing().await;
                // It may have been changed since it was looked at, or be gone.
                let arn = consumer.arn(context, &stream);
                let (stream, mut consumer) = consumer::of_consumer_arn(context, &arn).await?;
                let mut labels = Labels { tags: consumer.tags.clone(), policy: consumer.policy.clone() };
                change(&mut labels)?;
                (consumer.tags, consumer.policy) = (labels.tags, labels.policy);
                consumer::store(context, &stream, &consumer).await
            }
        }
    }
}
