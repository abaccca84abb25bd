//! Bots of what a file says and the stores hold.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{DeadLetters, FailurePolicy, Finally, InitialPosition, StreamChoice};
use anabranch_model::table::{ChangeView, TableSummary};
use anabranch_model::{
    BlobStore, BucketName, Clock, Error, QueueName, QueueStore, ShardSource, StreamName, StreamStore,
    TableName, TableStore,
};
use futures_util::future::BoxFuture;

use super::error::{FlowError, Text};
use super::lineage::{self, Current, OfKeyspace, OfTable};
use super::spec::{BotSpec, Flow, FormatSpec, From, Reads};
use super::telemetry::{Telemetry, TelemetrySpec};
use crate::archive::{Batches, Blobs, Documents, Format, KeyTemplate, NO_KEYSPACE, Names, Shape};
use crate::bot::Bot;
use crate::sink::Sink;
use crate::source::{Changes, Lineage, Queue, Shards, Source};
use crate::step::Step;

/// Tables of keyspaces that nobody can read but by their changes.
#[derive(Clone)]
pub struct Keyspaces {
    /// Their changes.
    pub source: Arc<dyn ShardSource>,
    /// The streams of a table of a keyspace, the oldest first.
    pub streams_of: Arc<dyn Fn(String, String) -> Listing + Send + Sync>,
}

/// Streams that are being looked for.
pub type Listing = BoxFuture<'static, anabranch_model::Result<Vec<StreamName>>>;

/// What bots work on.
#[derive(Clone)]
pub struct Ports {
    /// Streams.
    pub streams: Arc<dyn StreamStore>,
    /// Queues.
    pub queues: Arc<dyn QueueStore>,
    /// Tables, and their changes.
    pub tables: Arc<dyn TableStore>,
    /// Blobs.
    pub blobs: Arc<dyn BlobStore>,
    /// Tables of keyspaces, where they are kept apart from others; otherwise they are tables like all.
    pub keyspaces: Option<Keyspaces>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What the documents of changes call the region.
    pub region: String,
    /// Steps that a file may name.
    pub steps: BTreeMap<String, Arc<dyn Step>>,
}

/// Where the changes of a table go, for those who compare both.
pub struct Archive {
    /// The table.
    pub table: TableName,
    /// The bucket.
    pub bucket: BucketName,
    /// The keys in it.
    pub template: KeyTemplate,
    /// What changes look like.
    pub documents: Documents,
}

/// The changes of a table, found.
struct Found {
    source: Arc<dyn ShardSource>,
    stream: StreamName,
    names: Names,
    documents: Documents,
    origin: Origin,
}

/// Where the streams of changes come from.
enum Origin {
    Table(TableName),
    Keyspace(Keyspaces, String, String),
}

impl Flow {
    /// Makes the bot that the file declares. What it names has to be there.
    pub async fn assemble(&self, bot: &BotSpec, ports: &Ports) -> Result<Bot, FlowError> {
        Assembly { text: &self.text, bot, ports }.bot().await
    }

    /// The table and the archive of a bot that writes the changes of the one to the other.
    pub async fn archive(&self, bot: &BotSpec, ports: &Ports) -> Result<Archive, FlowError> {
        Assembly { text: &self.text, bot, ports }.archive().await
    }
}

struct Assembly<'a> {
    text: &'a Text,
    bot: &'a BotSpec,
    ports: &'a Ports,
}

impl Assembly<'_> {
    async fn bot(&self) -> Result<Bot, FlowError> {
        let reads = self.bot.reads(self.text)?;
        let failure = self.failure().await?;
        if let (Some(telemetry), Reads::Queue(queue)) = (&self.bot.telemetry, reads) {
            return self.telemetry(telemetry.get_ref(), queue, failure).await;
        }
        let (source, names, last): (Source, Names, Option<Arc<dyn Step>>) = match reads {
            Reads::Table(table) => {
                let found = self.changes(table.get_ref(), table.span()).await?;
                let choice = lineage::choice(&found.source, found.stream.clone()).await;
                let choice = choice.map_err(|error| self.at(self.bot.source.span(), &error))?;
                let mut shards = self.shards(found.source.clone(), choice, &found.names)?;
                let (lineage, documents) = self.lineage(&found);
                shards.lineage = Some(lineage);
                (Source::Shards(shards), found.names, Some(documents))
            }
            Reads::Stream(name) => {
                let refuse = |error: Error| self.at(name.span(), &error);
                let stream = StreamName::new(name.get_ref()).map_err(refuse)?;
                self.ports.streams.stream(&stream).await.map_err(refuse)?;
                let names = Names { stream: Some(name.get_ref().clone()), ..Names::default() };
                let shards = self.shards(self.ports.streams.clone(), StreamChoice::only(stream), &names)?;
                (Source::Shards(shards), names, None)
            }
            Reads::Queue(name) => {
                let names = Names { queue: Some(name.get_ref().clone()), ..Names::default() };
                (Source::Queue(self.queue(name.get_ref(), name.span()).await?), names, None)
            }
        };
        let sink = self.blobs(&names).await?;
        let mut builder = Bot::builder(self.bot.name.get_ref(), source, sink, self.ports.clock.clone());
        // What a file names works on events as they come; the document of a change is made of what comes out.
        for step in self.steps()?.into_iter().chain(last) {
            builder = builder.step(step);
        }
        if let Some(limits) = self.bot.limits(self.text)? {
            builder = builder.batch(limits);
        }
        builder.failure(failure).build().map_err(|error| self.at(self.bot.name.span(), &error))
    }

    async fn telemetry(
        &self,
        spec: &TelemetrySpec,
        queue: &toml::Spanned<String>,
        mut failure: FailurePolicy,
    ) -> Result<Bot, FlowError> {
        let name = self.bot.name.get_ref();
        let source = self.bot.source.get_ref();
        let (in_flight, messages) = (source.in_flight.is_some(), source.messages.is_some());
        let queue = self.queue(queue.get_ref(), queue.span()).await?;
        let queue = spec.queue(queue, in_flight, messages, source.visibility_seconds.is_some());
        if self.bot.failure.as_ref().is_none_or(|failure| failure.attempts.is_none()) {
            failure.attempts = spec.worker().max_retry_attempts;
        }
        let Some(stream) = &self.bot.sink.get_ref().stream else {
            return Err(self.text.error(self.bot.sink.span(), "the sink is none", "name a stream"));
        };
        let (text, ports, waits) = (self.text, self.ports, queue.name.clone());
        let telemetry = Telemetry { text, spec, ports, queue: waits, bot: name };
        let producer = telemetry.producer(stream.get_ref(), stream.span()).await?;
        let sink = Arc::new(Telemetry::sink(&producer));
        let mut builder = Bot::builder(name, Source::Queue(queue), sink, self.ports.clock.clone());
        for step in self.steps()? {
            builder = builder.step(step);
        }
        let builder = telemetry.equip(builder, producer).await?;
        builder.failure(failure).build().map_err(|error| self.at(self.bot.name.span(), &error))
    }

    async fn queue(&self, name: &str, at: Range<usize>) -> Result<Queue, FlowError> {
        let refuse = |error: Error| self.at(at.clone(), &error);
        let name = QueueName::new(name).map_err(refuse)?;
        self.ports.queues.queue(&name).await.map_err(refuse)?;
        let mut queue = Queue::new(self.ports.queues.clone(), name);
        let source = self.bot.source.get_ref();
        queue.in_flight = source.in_flight.as_ref().map_or(queue.in_flight, |value| *value.get_ref());
        queue.batch = source.messages.as_ref().map_or(queue.batch, |value| *value.get_ref());
        let visibility = source.visibility_seconds.as_ref();
        queue.visibility =
            visibility.map_or(queue.visibility, |seconds| Duration::from_secs(*seconds.get_ref()));
        Ok(queue)
    }

    async fn archive(&self) -> Result<Archive, FlowError> {
        let Reads::Table(table) = self.bot.reads(self.text)? else {
            let message = "only the archive of a table can be compared with it";
            return Err(self.text.error(self.bot.source.span(), message, "choose a bot that reads a table"));
        };
        let at = table.span();
        if self.is_keyspace_apart() {
            let message = "Keyspaces tells of changes, but its rows cannot be read here: that takes CQL";
            return Err(self.text.error(at, message, "compare tables of DynamoDB or of the embedded engine"));
        }
        let found = self.changes(table.get_ref(), at.clone()).await?;
        Ok(Archive {
            table: TableName::new(table.get_ref()).map_err(|error| self.at(at, &error))?,
            bucket: self.bucket().await?,
            template: self.bot.template(self.text, &found.names)?,
            documents: found.documents,
        })
    }

    /// The changes of a table.
    async fn changes(&self, table: &str, at: Range<usize>) -> Result<Found, FlowError> {
        let keyspace = self.bot.source.get_ref().keyspace.as_ref();
        if let (Some(keyspaces), Some(keyspace)) = (&self.ports.keyspaces, keyspace) {
            return self.keyspace_changes(keyspaces, keyspace.get_ref(), table, at).await;
        }
        let name = TableName::new(table).map_err(|error| self.at(at.clone(), &error))?;
        let summary = self.ports.tables.table(&name).await.map_err(|error| self.at(at.clone(), &error))?;
        let (Some(stream), Some(view)) = (summary.changes.clone(), summary.options.changes) else {
            let message = format!("the changes of table `{table}` are not written down");
            let hint = "make the table with --changes both, or turn its stream on";
            return Err(self.text.error(at, message, hint));
        };
        let names = self.names(&summary)?;
        self.bot.check_names(self.text, &names)?;
        let shape = lineage::shape(&summary);
        let documents = Documents { region: self.ports.region.clone(), view, shape };
        let source = Arc::new(Changes(self.ports.tables.clone()));
        Ok(Found { source, stream, names, documents, origin: Origin::Table(name) })
    }

    fn names(&self, summary: &TableSummary) -> Result<Names, FlowError> {
        let theirs = summary.options.keyspace.as_ref().map(|shape| shape.keyspace.as_str());
        let table = summary.name.as_str();
        if let Some(ours) = &self.bot.source.get_ref().keyspace
            && theirs != Some(ours.get_ref().as_str())
        {
            let (message, hint) = match theirs {
                Some(theirs) => (format!("table `{table}` is in the keyspace `{theirs}`"), "name that one"),
                None => (format!("table `{table}` is in no keyspace"), "leave `keyspace` out"),
            };
            return Err(self.text.error(ours.span(), message, hint));
        }
        let keyspace = theirs.unwrap_or(NO_KEYSPACE).to_owned();
        Ok(Names { keyspace: Some(keyspace), table: Some(table.to_owned()), ..Names::default() })
    }

    async fn keyspace_changes(
        &self,
        keyspaces: &Keyspaces,
        keyspace: &str,
        table: &str,
        at: Range<usize>,
    ) -> Result<Found, FlowError> {
        let streams = (keyspaces.streams_of)(keyspace.to_owned(), table.to_owned()).await;
        let streams = streams.map_err(|error| self.at(at.clone(), &error))?;
        let Some(stream) = streams.into_iter().next_back() else {
            let message = format!("table `{keyspace}.{table}` has no stream of changes");
            return Err(self.text.error(at, message, "turn it on with the property CDC of the table"));
        };
        // What a view leaves out is missing in the records; the documents of rows do not name it.
        let documents = Documents {
            region: self.ports.region.clone(),
            view: ChangeView::Both,
            shape: Shape::Cells(None),
        };
        let names =
            Names { keyspace: Some(keyspace.to_owned()), table: Some(table.to_owned()), ..Names::default() };
        let origin = Origin::Keyspace(keyspaces.clone(), keyspace.to_owned(), table.to_owned());
        Ok(Found { source: keyspaces.source.clone(), stream, names, documents, origin })
    }

    /// The streams before the one that was found and behind it, and the step that makes documents of their changes.
    fn lineage(&self, found: &Found) -> (Arc<dyn Lineage>, Arc<Current>) {
        let documents = Current::new(found.documents.clone());
        let lineage: Arc<dyn Lineage> = match &found.origin {
            Origin::Table(table) => Arc::new(OfTable {
                tables: self.ports.tables.clone(),
                source: found.source.clone(),
                table: table.clone(),
                keyspace: found.names.keyspace.clone().unwrap_or_default(),
                documents: documents.clone(),
            }),
            Origin::Keyspace(keyspaces, keyspace, table) => Arc::new(OfKeyspace {
                keyspaces: keyspaces.clone(),
                keyspace: keyspace.clone(),
                table: table.clone(),
            }),
        };
        (lineage, documents)
    }

    fn is_keyspace_apart(&self) -> bool {
        self.ports.keyspaces.is_some() && self.bot.source.get_ref().keyspace.is_some()
    }

    fn shards(
        &self,
        source: Arc<dyn ShardSource>,
        choice: StreamChoice,
        names: &Names,
    ) -> Result<Shards, FlowError> {
        let table = self.bot.lease_table(self.text, names)?;
        let mut shards = Shards::new(source, choice, self.ports.tables.clone(), &table);
        shards.initial = match self.bot.source.get_ref().from.as_ref().map(|from| *from.get_ref()) {
            Some(From::Latest) => InitialPosition::Latest,
            Some(From::TrimHorizon) | None => InitialPosition::TrimHorizon,
        };
        if let Some(leases) = &self.bot.leases {
            let seconds = |value: &Option<toml::Spanned<u64>>| {
                value.as_ref().map(|seconds| Duration::from_secs(*seconds.get_ref()))
            };
            shards.lease_time = seconds(&leases.seconds).unwrap_or(shards.lease_time);
            shards.checkpoint_every = seconds(&leases.checkpoint_seconds).unwrap_or(shards.checkpoint_every);
            shards.worker = leases.worker.clone();
            if let Some(time) = leases.seconds.as_ref().filter(|time| *time.get_ref() == 0) {
                return Err(self.text.error(
                    time.span(),
                    "a lease of 0 seconds is none",
                    "give it at least 1",
                ));
            }
        }
        Ok(shards)
    }

    async fn blobs(&self, names: &Names) -> Result<Arc<dyn Sink>, FlowError> {
        let (bucket, template) = (self.bucket().await?, self.bot.template(self.text, names)?);
        let blobs = self.ports.blobs.clone();
        let format = match self.bot.format() {
            Some(FormatSpec::Lines) => Format::Lines,
            Some(FormatSpec::Parquet) => Format::Parquet(names.clone()),
            None => return Ok(Arc::new(Blobs { blobs, bucket, template })),
        };
        Ok(Arc::new(Batches { blobs, bucket, template, format }))
    }

    async fn bucket(&self) -> Result<BucketName, FlowError> {
        let Some(name) = &self.bot.sink.get_ref().blobs else {
            return Err(self.text.error(
                self.bot.sink.span(),
                "the sink is none",
                "name a bucket with blobs",
            ));
        };
        let refuse = |error: Error| self.at(name.span(), &error);
        let bucket = BucketName::new(name.get_ref()).map_err(refuse)?;
        self.ports.blobs.bucket(&bucket).await.map_err(refuse)?;
        Ok(bucket)
    }

    fn steps(&self) -> Result<Vec<Arc<dyn Step>>, FlowError> {
        let find = |name: &toml::Spanned<String>| {
            self.ports.steps.get(name.get_ref()).cloned().ok_or_else(|| {
                let known: Vec<_> = self.ports.steps.keys().map(String::as_str).collect();
                let hint = match known.is_empty() {
                    true => "leave `steps` out: there are none to be named".to_owned(),
                    false => format!("there are {}", known.join(", ")),
                };
                self.text.error(name.span(), format!("there is no step `{}`", name.get_ref()), hint)
            })
        };
        self.bot.steps.iter().map(find).collect()
    }

    async fn failure(&self) -> Result<FailurePolicy, FlowError> {
        let mut policy = FailurePolicy::default();
        let Some(failure) = &self.bot.failure else { return Ok(policy) };
        if let Some(attempts) = &failure.attempts {
            policy.attempts = *attempts.get_ref();
        }
        if let Some(spec) = &failure.dead_letters {
            let refuse = |error: Error| self.at(spec.span(), &error);
            let (ports, spec) = (self.ports, spec.get_ref());
            let letters = if let Some(queue) = &spec.queue {
                let queue = QueueName::new(queue).map_err(refuse)?;
                let summary = ports.queues.queue(&queue).await.map_err(refuse)?;
                if summary.options.fifo {
                    let error =
                        format!("queue `{queue}` is FIFO: dead letters have no order, and it wants one");
                    return Err(refuse(Error::Invalid(error)));
                }
                DeadLetters::Queue(ports.queues.clone(), queue)
            } else if let Some(stream) = &spec.stream {
                let stream = StreamName::new(stream).map_err(refuse)?;
                ports.streams.stream(&stream).await.map_err(refuse)?;
                DeadLetters::Stream(ports.streams.clone(), stream)
            } else {
                let bucket = BucketName::new(spec.blobs.as_deref().unwrap_or_default()).map_err(refuse)?;
                ports.blobs.bucket(&bucket).await.map_err(refuse)?;
                let prefix = spec.prefix.clone().unwrap_or_else(|| "dead-letters/".to_owned());
                DeadLetters::Blobs(ports.blobs.clone(), bucket, prefix)
            };
            policy.finally = Finally::DeadLetter(letters);
        }
        Ok(policy)
    }

    /// An error of a store about something that the file names.
    fn at(&self, at: Range<usize>, error: &Error) -> FlowError {
        let hint = match error {
            Error::TableNotFound(_) => "make it with `anabranch table create NAME --key id:S --changes both`",
            Error::StreamNotFound(_) => "make it with `anabranch stream create NAME`",
            Error::QueueNotFound(_) => "make it with `anabranch queue create NAME`",
            Error::BucketNotFound(_) => "make it with `anabranch blob create BUCKET`",
            _ => "change the file, or what it names",
        };
        self.text.error(at, error, hint)
    }
}
