//! Making, changing, emptying and removing queues.
//!
//! A call whose outcome nobody knows is followed by another, whose answer says what happened.

use anabranch_model::queue::RedriveAllow;
use anabranch_model::{Error, QueueName, QueueOptions, Result};

use super::options::{self, Arn, Attributes};
use super::{CHANGE_PATIENCE, Queues, action, refusal, strange};
use crate::backoff::pause;
use crate::call::Deadline;
use crate::failure::{Kind, Outcome};

impl Queues {
    pub(super) async fn make(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        options.check(queue)?;
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        let dead_letters = self.dead_letters(queue, &options, deadline).await?;
        // SQS says nothing against making a queue that exists, if it is to behave as it does.
        match self.look_up(queue, deadline).await {
            Ok(_) => return Err(Error::QueueExists(queue.clone())),
            Err(Error::QueueNotFound(_)) => {}
            Err(error) => return Err(error),
        }
        let attributes = options::of_new(&options, dead_letters.as_ref());
        let url = self.begin(queue, attributes, deadline).await?;
        self.addresses.remember(queue, url);
        let made = self.until_made(queue, deadline).await?;
        if let RedriveAllow::Queues(_) = options.redrive_allow {
            self.adapt(queue, &options, &made, dead_letters.as_ref(), deadline).await?;
        }
        Ok(())
    }

    /// Asks for a queue until its name is free, and returns its address.
    async fn begin(&self, queue: &QueueName, attributes: Attributes, deadline: Deadline) -> Result<String> {
        let mut rounds = 0;
        loop {
            let request = || {
                let attributes = Some(attributes.clone());
                self.client.create_queue().queue_name(queue.as_str()).set_attributes(attributes).send()
            };
            let failure = match self.caller.call(&action::CREATE_QUEUE, deadline, request).await {
                Ok(answer) => {
                    return answer.queue_url.ok_or_else(|| strange("a queue without an address"));
                }
                Err(failure) => failure,
            };
            rounds += 1;
            let passes = refusal::is(&failure, "QueueDeletedRecently");
            if !passes || !self.caller.back_off(rounds, deadline).await {
                return Err(self.refused(queue, None, failure));
            }
        }
    }

    /// Waits until a queue that was made can be seen, which takes about a second.
    async fn until_made(&self, queue: &QueueName, deadline: Deadline) -> Result<Attributes> {
        let mut rounds = 0;
        loop {
            let seen = self.describe(queue, deadline).await;
            if !matches!(seen, Err(Error::QueueNotFound(_))) {
                return seen;
            }
            rounds += 1;
            if !self.caller.back_off(rounds, deadline).await {
                return seen;
            }
        }
    }

    /// What SQS calls the queue for dead letters, if there is one and it takes them.
    async fn dead_letters(
        &self,
        queue: &QueueName,
        options: &QueueOptions,
        deadline: Deadline,
    ) -> Result<Option<Arn>> {
        let Some(policy) = &options.redrive else { return Ok(None) };
        let target = &policy.dead_letters;
        let attributes = self.describe(target, deadline).await?;
        if !options::read(target, &attributes)?.redrive_allow.allows(queue) {
            return Err(Error::Invalid(format!(
                "dead letters of `{queue}` cannot go to `{target}`: it does not allow them"
            )));
        }
        Arn::of(&attributes).map(Some)
    }

    pub(super) async fn change(&self, queue: &QueueName, options: QueueOptions) -> Result<()> {
        options.check(queue)?;
        let deadline = self.soon();
        let current = self.describe(queue, deadline).await?;
        let dead_letters = self.dead_letters(queue, &options, deadline).await?;
        self.adapt(queue, &options, &current, dead_letters.as_ref(), deadline).await
    }

    /// Lets a queue that is described by `current` behave like this.
    async fn adapt(
        &self,
        queue: &QueueName,
        options: &QueueOptions,
        current: &Attributes,
        dead_letters: Option<&Arn>,
        deadline: Deadline,
    ) -> Result<()> {
        let (own, before) = (Arn::of(current)?, options::read(queue, current)?);
        let attributes = options::of_existing(options, &before, dead_letters, &own);
        let address = self.address(queue, deadline).await?;
        let request = || {
            let attributes = Some(attributes.clone());
            self.client.set_queue_attributes().queue_url(address.url()).set_attributes(attributes).send()
        };
        let answer = self.caller.call(&action::SET_QUEUE_ATTRIBUTES, deadline, request).await;
        answer.map(drop).map_err(|failure| self.refused(queue, Some(&address), failure))
    }

    pub(super) async fn remove(&self, queue: &QueueName) -> Result<()> {
        let deadline = self.caller.deadline(CHANGE_PATIENCE);
        let mut in_doubt = false;
        let mut patience = deadline;
        let mut rounds = 0;
        loop {
            // SQS may say that it deletes a queue that there never was, so the queue is looked for first.
            let address = match self.look_up(queue, deadline).await {
                Err(Error::QueueNotFound(_)) if in_doubt => return Ok(()),
                found => found?,
            };
            let request = || self.client.delete_queue().queue_url(address.url()).send();
            let failure = match self.caller.call(&action::DELETE_QUEUE, deadline, request).await {
                Ok(_) => {
                    self.addresses.forget(queue, &address);
                    return self.until_gone(queue, deadline).await;
                }
                // The call that nobody knew the outcome of has deleted it, and that is seen only now.
                Err(failure) if failure.kind == Kind::NotFound && in_doubt => {
                    self.addresses.forget(queue, &address);
                    return Ok(());
                }
                Err(failure) => failure,
            };
            let unknown = failure.kind == Kind::Away && failure.outcome == Outcome::Unknown;
            if unknown {
                in_doubt = true;
                patience = patience.min(self.caller.absence());
            }
            rounds += 1;
            if !unknown || !self.caller.back_off(rounds, patience).await {
                return Err(self.refused(queue, Some(&address), failure));
            }
        }
    }

    /// Waits until a deleted queue cannot be found any more.
    async fn until_gone(&self, queue: &QueueName, deadline: Deadline) -> Result<()> {
        let mut rounds = 0;
        loop {
            match self.look_up(queue, deadline).await {
                Err(Error::QueueNotFound(_)) => return Ok(()),
                Err(error) => return Err(error),
                Ok(address) => self.addresses.forget(queue, &address),
            }
            rounds += 1;
            if !self.caller.back_off(rounds, deadline).await {
                return Err(Error::Unavailable(format!("SQS is still deleting queue `{queue}`")));
            }
        }
    }

    /// Purges a queue, and waits until that is done.
    pub(super) async fn empty(&self, queue: &QueueName) -> Result<()> {
        let deadline = self.soon();
        let address = self.address(queue, deadline).await?;
        let mut in_doubt = false;
        let mut patience = deadline;
        let mut rounds = 0;
        loop {
            let request = || self.client.purge_queue().queue_url(address.url()).send();
            let Err(failure) = self.caller.call(&action::PURGE_QUEUE, deadline, request).await else { break };
            // Another purge runs: the one that nobody knew the outcome of.
            if in_doubt && refusal::is(&failure, "PurgeQueueInProgress") {
                break;
            }
            let unknown = failure.kind == Kind::Away && failure.outcome == Outcome::Unknown;
            if unknown {
                in_doubt = true;
                patience = patience.min(self.caller.absence());
            }
            rounds += 1;
            if !unknown || !self.caller.back_off(rounds, patience).await {
                return Err(self.refused(queue, Some(&address), failure));
            }
        }
        pause(self.purge_duration).await;
        Ok(())
    }
}
