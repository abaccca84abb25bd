//! A bot: put together, run, stopped.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use anabranch_consumer::FailurePolicy;
use anabranch_model::{Clock, Error, Result};
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::batcher::BatchLimits;
use crate::line::Line;
use crate::sink::Sink;
use crate::source::Source;
use crate::step::Step;

/// Something that runs as long as a bot does; what it is given says when the bot has ended.
type Beside = Box<dyn FnOnce(watch::Receiver<bool>) -> BoxFuture<'static, ()> + Send>;

/// Puts a bot together.
pub struct BotBuilder {
    name: String,
    source: Source,
    steps: Vec<Arc<dyn Step>>,
    sink: Arc<dyn Sink>,
    clock: Arc<dyn Clock>,
    batch: Option<BatchLimits>,
    failure: FailurePolicy,
    beside: Vec<Beside>,
    seed: Option<u64>,
}

/// Reads from a source, through steps, into a sink.
pub struct Bot {
    name: String,
    source: Source,
    line: Arc<Line>,
    batch: Option<BatchLimits>,
    failure: FailurePolicy,
    beside: Vec<Beside>,
    stop: watch::Sender<bool>,
}

/// Stops a bot. Clones stop the same one.
#[derive(Clone, Debug)]
pub struct Handle {
    stop: watch::Sender<bool>,
}

impl Handle {
    /// Asks the bot to finish what is under way, write down how far it is, and let its leases go.
    pub fn stop(&self) {
        self.stop.send_replace(true);
    }
}

impl Bot {
    /// A bot without steps and batches, that halts its shard when an event cannot be processed.
    pub fn builder(name: &str, source: Source, sink: Arc<dyn Sink>, clock: Arc<dyn Clock>) -> BotBuilder {
        BotBuilder {
            name: name.to_owned(),
            source,
            steps: Vec::new(),
            sink,
            clock,
            batch: None,
            failure: FailurePolicy::default(),
            beside: Vec::new(),
            seed: None,
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What stops it.
    pub fn handle(&self) -> Handle {
        Handle { stop: self.stop.clone() }
    }

    /// Runs until it is stopped. An error means that it could not begin; afterwards it goes on whatever happens.
    pub async fn run(self) -> Result<()> {
        let Bot { name, source, line, batch, failure, beside, stop } = self;
        tracing::info!(bot = %name, "a bot begins");
        let (over, mut others) = (watch::Sender::new(false), JoinSet::new());
        beside.into_iter().for_each(|task| drop(others.spawn(task(over.subscribe()))));
        let listen = stop.subscribe();
        let ended = match source {
            Source::Shards(shards) => shards.run(line, batch, failure, listen).await,
            Source::Queue(queue) => queue.run(line, failure, listen).await,
        };
        over.send_replace(true);
        while others.join_next().await.is_some() {}
        match &ended {
            Ok(()) => tracing::info!(bot = %name, "a bot has ended"),
            Err(error) => tracing::error!(bot = %name, %error, "a bot cannot begin"),
        }
        ended
    }
}

impl BotBuilder {
    /// The bot with one step more, behind those that it has.
    pub fn step(mut self, step: Arc<dyn Step>) -> Self {
        self.steps.push(step);
        self
    }

    /// The bot with batches for its sink.
    pub fn batch(mut self, limits: BatchLimits) -> Self {
        self.batch = Some(limits);
        self
    }

    /// What happens to events that cannot be processed.
    pub fn failure(mut self, policy: FailurePolicy) -> Self {
        self.failure = policy;
        self
    }

    /// Runs something beside the bot, from its beginning to its end.
    pub fn beside<F: Future<Output = ()> + Send + 'static>(
        mut self,
        task: impl FnOnce(watch::Receiver<bool>) -> F + Send + 'static,
    ) -> Self {
        self.beside.push(Box::new(move |ended| Box::pin(task(ended))));
        self
    }

    /// The beginning of all chance, for runs that can be repeated.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The bot, if it can be one.
    pub fn build(mut self) -> Result<Bot> {
        if self.name.is_empty() {
            return Err(Error::Invalid("a bot needs a name".to_owned()));
        }
        if let Some(limits) = self.batch {
            if matches!(self.source, Source::Queue(_)) {
                return Err(Error::Invalid(
                    "batches need a source that keeps an order, and a queue keeps none: leave the batch out"
                        .to_owned(),
                ));
            }
            if limits.records == 0 || limits.bytes == 0 {
                return Err(Error::Invalid(
                    "a batch of nothing is none: its limits must be larger".to_owned(),
                ));
            }
        }
        self.failure.attempts = self.failure.attempts.max(1);
        // Pauses of bots that were started together must not fall together.
        let seed = self.seed.unwrap_or_else(|| RandomState::new().hash_one(&self.name));
        let line = Line::new(&self.name, self.steps, self.sink, self.clock, seed);
        Ok(Bot {
            name: self.name,
            source: self.source,
            line: Arc::new(line),
            batch: self.batch,
            failure: self.failure,
            beside: self.beside,
            stop: watch::Sender::new(false),
        })
    }
}
