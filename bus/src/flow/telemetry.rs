//! The telemetry bot in a file: what it is made of, what is checked before it starts, and what runs beside it.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_model::limits::{MESSAGE_BATCH_MAX, RECEIVE_WAIT_MAX, VISIBILITY_MAX};
use anabranch_model::{Error, QueueName, StreamName, TableName};
use anabranch_producer::scaler::{Scaler, ScalerSettings, ScalerTable, TABLE_DEFAULT, report};
use anabranch_producer::{Producer, Settings};
use serde::Deserialize;
use toml::Spanned;

use super::assemble::Ports;
use super::error::{FlowError, Text};
use crate::bot::BotBuilder;
use crate::pause::stopped;
use crate::source::Queue;
use crate::telemetry::{Explode, Exploder, SUBMISSION_SCHEMA, Samples, StreamRuns, Yield, waiting};

/// Of how many broken submissions one is kept, unless the file says otherwise.
const SAMPLES_ONE_IN: u64 = 10;
/// Submissions that are under way at the same time, unless the file says otherwise.
const IN_FLIGHT: usize = 400;

/// What makes a bot the telemetry bot.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySpec {
    /// A file with the schema of submissions; the usual one if there is none.
    pub schema: Option<Spanned<PathBuf>>,
    /// The queue in which a sample of broken submissions is kept.
    pub samples: Option<Spanned<String>>,
    /// One of so many is kept.
    pub samples_one_in: Option<Spanned<u64>>,
    /// How submissions are taken from the queue.
    pub submission_worker: Option<Spanned<SubmissionWorker>>,
    /// How the stream is scaled; it is not if this is missing.
    pub traffic_monitor: Option<Spanned<ScalerSettings>>,
    /// The table in which producers and scalers tell each other what they see.
    pub scaler_table: Option<Spanned<String>>,
}

/// How submissions are taken from the queue. Times are in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubmissionWorker {
    /// How long a message is hidden from others without a sign of life.
    pub visibility_timeout: u64,
    /// Messages that one receive asks for.
    pub max_number_of_messages: usize,
    /// How long one receive waits for the first message.
    pub polling_interval: u64,
    /// How often a submission is received before it becomes a dead letter.
    pub max_retry_attempts: u32,
    /// The longest pause before a record is sent for the second time; it doubles each time.
    pub retry_interval: f64,
}

impl Default for SubmissionWorker {
    fn default() -> Self {
        SubmissionWorker {
            visibility_timeout: 60,
            max_number_of_messages: 10,
            polling_interval: 1,
            max_retry_attempts: 3,
            retry_interval: 1.0,
        }
    }
}

impl SubmissionWorker {
    fn check(&self) -> Result<(), String> {
        let bounds = [
            ("visibility_timeout", self.visibility_timeout, 1, VISIBILITY_MAX.as_secs()),
            ("max_number_of_messages", self.max_number_of_messages as u64, 1, MESSAGE_BATCH_MAX as u64),
            ("polling_interval", self.polling_interval, 0, RECEIVE_WAIT_MAX.as_secs()),
            ("max_retry_attempts", u64::from(self.max_retry_attempts), 1, 1_000),
        ];
        for (name, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                return Err(format!("`{name}` is {value}: it must be {least} to {most}"));
            }
        }
        let longest = self.visibility_timeout as f64;
        if !(0.001..=longest).contains(&self.retry_interval) {
            return Err(format!(
                "`retry_interval` is {}: it must be more than 0.001 and not longer than `visibility_timeout` ({longest})",
                self.retry_interval
            ));
        }
        Ok(())
    }
}

impl TelemetrySpec {
    /// Refuses what no store can make right.
    pub(super) fn check(&self, text: &Text) -> Result<(), FlowError> {
        let hint = "README.md has a section on telemetry";
        if let Some(worker) = &self.submission_worker {
            worker.get_ref().check().map_err(|why| text.error(worker.span(), why, hint))?;
        }
        if let Some(monitor) = &self.traffic_monitor {
            monitor.get_ref().check().map_err(|error| text.error(monitor.span(), error, hint))?;
        }
        if let Some(one_in) = self.samples_one_in.as_ref().filter(|one_in| *one_in.get_ref() == 0) {
            return Err(text.error(one_in.span(), "one in 0 is nothing", "1 keeps every broken submission"));
        }
        Ok(())
    }

    pub(super) fn worker(&self) -> SubmissionWorker {
        self.submission_worker.as_ref().map_or_else(SubmissionWorker::default, |worker| *worker.get_ref())
    }

    /// The queue as the settings have it; what the source says itself counts more.
    pub(super) fn queue(&self, mut queue: Queue, in_flight: bool, messages: bool, visibility: bool) -> Queue {
        let worker = self.worker();
        if !in_flight {
            queue.in_flight = IN_FLIGHT;
        }
        if !messages {
            queue.batch = worker.max_number_of_messages;
        }
        if !visibility {
            queue.visibility = Duration::from_secs(worker.visibility_timeout);
        }
        queue.wait = Duration::from_secs(worker.polling_interval);
        queue
    }
}

/// What a telemetry bot is made of.
pub(super) struct Telemetry<'a> {
    pub(super) text: &'a Text,
    pub(super) spec: &'a TelemetrySpec,
    pub(super) ports: &'a Ports,
    /// Where submissions wait.
    pub(super) queue: QueueName,
    /// The bot, which names its process to the others.
    pub(super) bot: &'a str,
}

impl Telemetry<'_> {
    /// The producer of the stream that the sink names.
    pub(super) async fn producer(&self, name: &str, at: Range<usize>) -> Result<Producer, FlowError> {
        let refuse = |error: Error| self.at(at.clone(), &error);
        let stream = StreamName::new(name).map_err(refuse)?;
        let monitor = self.spec.traffic_monitor.as_ref().map(|monitor| *monitor.get_ref());
        let capacity = monitor.unwrap_or_default().capacity();
        let usual = Settings::default();
        // A shard that is new and idle can be merged only once its traffic is told, and that begins when it is known.
        let known_within = monitor.map_or(usual.refresh_every, |monitor| monitor.merge_cooldown / 2);
        let settings = Settings {
            refresh_every: usual.refresh_every.min(known_within).max(Duration::from_secs(1)),
            linger: Duration::from_millis(1),
            retry_first: Duration::from_secs_f64(self.spec.worker().retry_interval),
            // A stream that is scaled is sent no more than it takes; what waits says how much more it should.
            pace: monitor.map(|_| capacity),
            capacity,
            ..usual
        };
        let (store, clock) = (self.ports.streams.clone(), self.ports.clock.clone());
        Producer::start(store, stream, clock, settings).await.map_err(refuse)
    }

    /// The sink, the step, and what runs beside the bot.
    pub(super) async fn equip(
        &self,
        builder: BotBuilder,
        producer: Producer,
    ) -> Result<BotBuilder, FlowError> {
        let step = Explode::new(self.exploder()?, self.samples().await?, self.ports.clock.clone());
        let yielded = step.yielded();
        let mut builder = builder.step(Arc::new(step));
        if let Some(monitor) = &self.spec.traffic_monitor {
            builder = self.scaled(builder, &producer, yielded, *monitor.get_ref(), monitor.span()).await?;
        }
        Ok(builder.beside(move |mut ended| async move {
            stopped(&mut ended).await;
            producer.close().await;
        }))
    }

    pub(super) fn sink(producer: &Producer) -> StreamRuns {
        StreamRuns::new(producer.clone())
    }

    fn exploder(&self) -> Result<Exploder, FlowError> {
        let Some(path) = &self.spec.schema else {
            return Exploder::new(SUBMISSION_SCHEMA, "built in").map_err(|error| self.at(0..0, &error));
        };
        let hint = "give it a JSON Schema of submissions, or leave `schema` out";
        let shown = path.get_ref().display().to_string();
        let read = std::fs::read_to_string(path.get_ref());
        let schema = read.map_err(|error| {
            self.text.error(path.span(), format!("the schema {shown} cannot be read: {error}"), hint)
        })?;
        Exploder::new(&schema, &shown).map_err(|error| self.text.error(path.span(), error, hint))
    }

    async fn samples(&self) -> Result<Option<Samples>, FlowError> {
        let Some(name) = &self.spec.samples else { return Ok(None) };
        let refuse = |error: Error| self.at(name.span(), &error);
        let queue = QueueName::new(name.get_ref()).map_err(refuse)?;
        self.ports.queues.queue(&queue).await.map_err(refuse)?;
        let one_in = self.spec.samples_one_in.as_ref().map_or(SAMPLES_ONE_IN, |one_in| *one_in.get_ref());
        Ok(Some(Samples { queues: self.ports.queues.clone(), queue, one_in }))
    }

    async fn scaled(
        &self,
        builder: BotBuilder,
        producer: &Producer,
        yielded: Arc<Yield>,
        settings: ScalerSettings,
        at: Range<usize>,
    ) -> Result<BotBuilder, FlowError> {
        let refuse = |error: Error| self.at(at.clone(), &error);
        let name = self.spec.scaler_table.as_ref().map_or(TABLE_DEFAULT, |name| name.get_ref().as_str());
        let table = TableName::new(name).map_err(refuse)?;
        let table = ScalerTable::open(self.ports.tables.clone(), table).await.map_err(refuse)?;
        let clock = self.ports.clock.clone();
        // Bots of one name in different processes must not tell over each other.
        let seed = u64::from(std::process::id()) << 32 ^ clock.now().as_millis();
        let process = format!("{}-{seed:x}", self.bot);
        let (streams, stream) = (self.ports.streams.clone(), producer.stream().clone());
        let scaler = Scaler::new(streams, table.clone(), stream, &process, settings, clock.clone(), seed);
        let (scaler, producer) = (scaler.map_err(refuse)?, producer.clone());
        let (queues, period) = (self.ports.queues.clone(), settings.observation_period);
        let waiting = Some(waiting(queues, self.queue.clone(), yielded, period));
        let builder = builder.beside(move |mut ended| async move {
            let stop = async move { stopped(&mut ended).await };
            report(producer, table, process, settings.interval_length, waiting, clock, stop).await;
        });
        Ok(builder.beside(move |mut ended| async move {
            scaler.run(async move { stopped(&mut ended).await }).await
        }))
    }

    fn at(&self, at: Range<usize>, error: &Error) -> FlowError {
        let hint = match error {
            Error::StreamNotFound(_) => "make it with `anabranch stream create NAME`",
            Error::QueueNotFound(_) => "make it with `anabranch queue create NAME`",
            _ => "change the file, or what it names",
        };
        self.text.error(at, error, hint)
    }
}
