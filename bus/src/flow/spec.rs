//! Every word of a file with bots.

use std::collections::BTreeSet;
use std::time::Duration;

use anabranch_model::limits::{MESSAGE_BATCH_MAX, VISIBILITY_MAX};
use serde::Deserialize;
use toml::Spanned;

use super::error::{FlowError, Text};
use super::telemetry::TelemetrySpec;
use crate::archive::{
    KEY_DEFAULT, KeyTemplate, LINES_KEY_DEFAULT, NO_KEYSPACE, Names, PARQUET_KEY_DEFAULT, lease_table,
};
use crate::batcher::BatchLimits;

/// The table of leases of a bot on the changes of a table, unless somebody wants another.
const CHANGES_LEASES: &str = "keyspaces-streamer-{keyspace}-{table}";
/// The same for a bot on a stream.
const STREAM_LEASES: &str = "bot-{stream}";
/// Longest name of a bot.
const NAME_CHARS_MAX: usize = 64;
/// Most megabytes of a batch: it is in memory when it is written.
const BATCH_MEGABYTES_MAX: usize = 64;
/// Most events of a batch.
const BATCH_RECORDS_MAX: usize = 1_000_000;

/// The bots of a file.
#[derive(Clone, Debug)]
pub struct Flow {
    /// They, in their order.
    pub bots: Vec<BotSpec>,
    pub(super) text: Text,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    bot: Vec<BotSpec>,
}

/// A bot.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BotSpec {
    /// What it is called in logs, metrics and dead letters.
    pub name: Spanned<String>,
    /// What it reads.
    pub source: Spanned<SourceSpec>,
    /// What happens to events on their way, by name.
    #[serde(default)]
    pub steps: Vec<Spanned<String>>,
    /// Where they go.
    pub sink: Spanned<SinkSpec>,
    /// Many events in one write.
    pub batch: Option<Spanned<BatchSpec>>,
    /// What happens to events that cannot be processed.
    pub failure: Option<FailureSpec>,
    /// Who reads which shard.
    pub leases: Option<LeaseSpec>,
    /// Submissions of sensors: from a queue, taken apart, to a stream.
    pub telemetry: Option<Spanned<TelemetrySpec>>,
}

/// What a bot reads: the changes of a table, a stream, or a queue.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// The changes of this table.
    pub table: Option<Spanned<String>>,
    /// The keyspace of the table, if it is in one.
    pub keyspace: Option<Spanned<String>>,
    /// This stream.
    pub stream: Option<Spanned<String>>,
    /// This queue.
    pub queue: Option<Spanned<String>>,
    /// Where reading starts the first time; not of a queue.
    pub from: Option<Spanned<From>>,
    /// Messages of a queue that are under way at the same time.
    pub in_flight: Option<Spanned<usize>>,
    /// Messages that one receive asks for.
    pub messages: Option<Spanned<usize>>,
    /// How long a message is hidden from others without a sign of life.
    pub visibility_seconds: Option<Spanned<u64>>,
}

/// Where reading starts the first time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// With the oldest record.
    #[default]
    TrimHorizon,
    /// Behind the newest record.
    Latest,
}

/// Where events go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SinkSpec {
    /// To blobs in this bucket.
    pub blobs: Option<Spanned<String>>,
    /// Under these keys.
    pub key: Option<Spanned<String>>,
    /// To this stream; that is where telemetry goes.
    pub stream: Option<Spanned<String>>,
}

/// When a batch is complete, and what is made of it.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchSpec {
    /// A file of this format.
    #[serde(default)]
    pub format: FormatSpec,
    /// With this many events.
    pub records: Option<usize>,
    /// With this many megabytes.
    pub megabytes: Option<usize>,
    /// This long after the first event.
    pub seconds: Option<u64>,
}

/// What a batch becomes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FormatSpec {
    /// Compressed lines.
    #[default]
    Lines,
    /// A file of Parquet, with columns.
    Parquet,
}

/// What happens to events that cannot be processed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureSpec {
    /// How often one is tried.
    pub attempts: Option<Spanned<u32>>,
    /// Where it goes then; without it its shard stands still.
    pub dead_letters: Option<Spanned<DeadLetterSpec>>,
}

/// Where dead letters go: one of them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeadLetterSpec {
    /// To this queue.
    pub queue: Option<String>,
    /// To this stream.
    pub stream: Option<String>,
    /// To this bucket.
    pub blobs: Option<String>,
    /// Under keys that begin like this, in a bucket.
    pub prefix: Option<String>,
}

/// Who reads which shard.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseSpec {
    /// The table of the leases, in which `{keyspace}`, `{table}` and `{stream}` stand for the source.
    pub table: Option<Spanned<String>>,
    /// How long a lease holds without renewal.
    pub seconds: Option<Spanned<u64>>,
    /// How often progress is written down.
    pub checkpoint_seconds: Option<Spanned<u64>>,
    /// What this worker is called; unique. A name of its own if there is none.
    pub worker: Option<String>,
}

/// What a bot reads, of the three that there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reads<'a> {
    Table(&'a Spanned<String>),
    Stream(&'a Spanned<String>),
    Queue(&'a Spanned<String>),
}

impl Flow {
    /// Understands a file. What is wrong whatever the stores hold is refused here.
    pub fn parse(file: &str, text: &str) -> Result<Flow, FlowError> {
        let text = Text { file: file.to_owned(), text: text.to_owned() };
        let parsed: File = toml::from_str(&text.text).map_err(|error| {
            let hint = "a bot has name, source, sink, and if need be steps, batch, failure and leases; README.md has an \
                        example";
            text.error(error.span().unwrap_or(0..0), error.message().trim(), hint)
        })?;
        if parsed.bot.is_empty() {
            return Err(text.error(0..0, "it declares no bot", "begin one with [[bot]]"));
        }
        let mut names = BTreeSet::new();
        for bot in &parsed.bot {
            bot.check(&text)?;
            if !names.insert(bot.name.get_ref()) {
                let message = format!("two bots are called `{}`", bot.name.get_ref());
                return Err(text.error(bot.name.span(), message, "give one of them another name"));
            }
        }
        Ok(Flow { bots: parsed.bot, text })
    }

    /// The bot with this name; the only one without a name.
    pub fn bot(&self, name: Option<&str>) -> Result<&BotSpec, FlowError> {
        let known = || self.bots.iter().map(|bot| bot.name.get_ref().as_str()).collect::<Vec<_>>().join(", ");
        let found = match name {
            Some(name) => self.bots.iter().find(|bot| bot.name.get_ref() == name),
            None if self.bots.len() == 1 => self.bots.first(),
            None => None,
        };
        found.ok_or_else(|| {
            let message = match name {
                Some(name) => format!("it has no bot `{name}`"),
                None => "it has several bots".to_owned(),
            };
            self.text.error(0..0, message, format!("say which one with --bot; there are {}", known()))
        })
    }
}

impl BotSpec {
    fn check(&self, text: &Text) -> Result<(), FlowError> {
        let name = self.name.get_ref();
        let letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(letter) {
            let hint = format!("a name has 1 to {NAME_CHARS_MAX} of a-z, A-Z, 0-9, `_`, `.` and `-`");
            return Err(text.error(self.name.span(), format!("a bot cannot be called {name:?}"), hint));
        }
        let reads = self.reads(text)?;
        self.check_source(text, reads)?;
        self.check_failure(text)?;
        self.limits(text)?;
        self.check_format(text, reads)?;
        let names = self.static_names(reads);
        if let Some(telemetry) = &self.telemetry {
            return self.check_telemetry(text, reads, telemetry);
        }
        if let Some(stream) = &self.sink.get_ref().stream {
            let hint =
                "name a bucket: sink = { blobs = \"…\" }, or make it the telemetry bot with [bot.telemetry]";
            return Err(text.error(stream.span(), "only the telemetry bot writes to a stream", hint));
        }
        if let Reads::Queue(_) = reads {
            self.check_queue(text)?;
            return self.template(text, &names).map(drop);
        }
        self.check_names(text, &names)
    }

    fn check_telemetry(
        &self,
        text: &Text,
        reads: Reads<'_>,
        telemetry: &Spanned<TelemetrySpec>,
    ) -> Result<(), FlowError> {
        let Reads::Queue(_) = reads else {
            let message = "submissions come from a queue";
            return Err(text.error(self.source.span(), message, "name one: source = { queue = \"…\" }"));
        };
        let sink = self.sink.get_ref();
        if sink.stream.is_none() || sink.blobs.is_some() || sink.key.is_some() {
            let message = "the events of submissions go to a stream, and to nothing else";
            return Err(text.error(self.sink.span(), message, "name one: sink = { stream = \"…\" }"));
        }
        self.check_queue(text)?;
        telemetry.get_ref().check(text)
    }

    /// What a source with these names leads to.
    pub(super) fn check_names(&self, text: &Text, names: &Names) -> Result<(), FlowError> {
        self.template(text, names)?;
        self.lease_table(text, names).map(drop)
    }

    fn check_source(&self, text: &Text, reads: Reads<'_>) -> Result<(), FlowError> {
        let source = self.source.get_ref();
        let misplaced = |at: std::ops::Range<usize>, what: &str, of: &str| {
            Err(text.error(at, format!("`{what}` is about {of}, and this source is none"), "leave it out"))
        };
        if let (Reads::Stream(_) | Reads::Queue(_), Some(keyspace)) = (reads, &source.keyspace) {
            return misplaced(keyspace.span(), "keyspace", "a table");
        }
        if let Reads::Queue(_) = reads {
            return match &source.from {
                Some(from) => misplaced(from.span(), "from", "a stream or a table"),
                None => Ok(()),
            };
        }
        if let Some(value) = &source.in_flight {
            return misplaced(value.span(), "in_flight", "a queue");
        }
        if let Some(value) = &source.messages {
            return misplaced(value.span(), "messages", "a queue");
        }
        if let Some(value) = &source.visibility_seconds {
            return misplaced(value.span(), "visibility_seconds", "a queue");
        }
        Ok(())
    }

    fn check_queue(&self, text: &Text) -> Result<(), FlowError> {
        let source = self.source.get_ref();
        if let Some(leases) = self.leases.as_ref().and_then(|leases| leases.table.as_ref()) {
            return Err(text.error(leases.span(), "a bot on a queue needs no leases", "leave `leases` out"));
        }
        if let Some(batch) = &self.batch {
            let message = "a batch needs a source that keeps an order, and a queue keeps none";
            return Err(text.error(batch.span(), message, "leave `batch` out"));
        }
        if let Some(messages) = source.messages.as_ref()
            && !(1..=MESSAGE_BATCH_MAX).contains(messages.get_ref())
        {
            let hint = format!("it may be 1 to {MESSAGE_BATCH_MAX}");
            let message = format!("a receive cannot ask for {} messages", messages.get_ref());
            return Err(text.error(messages.span(), message, hint));
        }
        if let Some(in_flight) = source.in_flight.as_ref().filter(|value| *value.get_ref() == 0) {
            return Err(text.error(
                in_flight.span(),
                "with in_flight = 0 nothing is received",
                "give it at least 1",
            ));
        }
        if let Some(seconds) = source.visibility_seconds.as_ref()
            && !(1..=VISIBILITY_MAX.as_secs()).contains(seconds.get_ref())
        {
            let hint = format!("it may be 1 to {}", VISIBILITY_MAX.as_secs());
            let message = format!("a message cannot be hidden for {} seconds", seconds.get_ref());
            return Err(text.error(seconds.span(), message, hint));
        }
        Ok(())
    }

    fn check_format(&self, text: &Text, reads: Reads<'_>) -> Result<(), FlowError> {
        match (&self.batch, reads) {
            (Some(batch), Reads::Stream(_)) if batch.get_ref().format == FormatSpec::Parquet => {
                let message =
                    "only the changes of a table have columns, and the records of a stream may be anything";
                Err(text.error(batch.span(), message, "leave `format` out: then they are lines"))
            }
            _ => Ok(()),
        }
    }

    /// What batches become, if there are batches.
    pub(super) fn format(&self) -> Option<FormatSpec> {
        self.batch.as_ref().map(|batch| batch.get_ref().format)
    }

    fn check_failure(&self, text: &Text) -> Result<(), FlowError> {
        let Some(failure) = &self.failure else { return Ok(()) };
        if let Some(attempts) = failure.attempts.as_ref().filter(|attempts| *attempts.get_ref() == 0) {
            return Err(text.error(attempts.span(), "attempts = 0 tries nothing", "give it at least 1"));
        }
        let Some(letters) = &failure.dead_letters else { return Ok(()) };
        let spec = letters.get_ref();
        let places = [&spec.queue, &spec.stream, &spec.blobs];
        if places.iter().filter(|place| place.is_some()).count() != 1 {
            let message = "dead letters go to one place";
            return Err(text.error(letters.span(), message, "name one of queue, stream and blobs"));
        }
        if spec.prefix.is_some() && spec.blobs.is_none() {
            let message = "only dead letters in a bucket have a prefix";
            return Err(text.error(
                letters.span(),
                message,
                "leave `prefix` out, or name a bucket with blobs",
            ));
        }
        Ok(())
    }

    pub(super) fn reads(&self, text: &Text) -> Result<Reads<'_>, FlowError> {
        let source = self.source.get_ref();
        match (&source.table, &source.stream, &source.queue) {
            (Some(table), None, None) => Ok(Reads::Table(table)),
            (None, Some(stream), None) => Ok(Reads::Stream(stream)),
            (None, None, Some(queue)) => Ok(Reads::Queue(queue)),
            _ => Err(text.error(
                self.source.span(),
                "a bot reads from one source",
                "name one of table, stream and queue",
            )),
        }
    }

    /// What the source is called, as far as the file says it.
    fn static_names(&self, reads: Reads<'_>) -> Names {
        match reads {
            Reads::Table(table) => Names {
                keyspace: Some(match &self.source.get_ref().keyspace {
                    Some(keyspace) => keyspace.get_ref().clone(),
                    None => NO_KEYSPACE.to_owned(),
                }),
                table: Some(table.get_ref().clone()),
                ..Names::default()
            },
            Reads::Stream(stream) => Names { stream: Some(stream.get_ref().clone()), ..Names::default() },
            Reads::Queue(queue) => Names { queue: Some(queue.get_ref().clone()), ..Names::default() },
        }
    }

    /// The keys of blobs.
    pub(super) fn template(&self, text: &Text, names: &Names) -> Result<KeyTemplate, FlowError> {
        let sink = self.sink.get_ref();
        if sink.blobs.is_none() {
            return Err(text.error(
                self.sink.span(),
                "the sink is none",
                "name a bucket: sink = { blobs = \"…\" }",
            ));
        }
        let default = match (names, self.format()) {
            (Names { queue: Some(_), .. }, _) => "{queue}/{date}/{sequence}",
            (Names { stream: Some(_), .. }, None) => "{stream}/{date}/{sequence}",
            (Names { stream: Some(_), .. }, Some(_)) => "{stream}/{date}/{sequence}.gz",
            (_, None) => KEY_DEFAULT,
            (_, Some(FormatSpec::Lines)) => LINES_KEY_DEFAULT,
            (_, Some(FormatSpec::Parquet)) => PARQUET_KEY_DEFAULT,
        };
        let (key, at) = match &sink.key {
            Some(key) => (key.get_ref().as_str(), key.span()),
            None => (default, self.sink.span()),
        };
        // Tools choose how to read a file by the end of its name.
        match (self.format() == Some(FormatSpec::Parquet), key.ends_with(".parquet")) {
            (true, false) => {
                let message = "the name of a Parquet file ends in .parquet, or no tool takes it for one";
                return Err(text.error(at, message, format!("the usual one is {default}")));
            }
            (false, true) => {
                let message = "what lies under a name that ends in .parquet would be no Parquet file";
                let hint = "say batch = { format = \"parquet\" }, or end the name with .json or .jsonl.gz";
                return Err(text.error(at, message, hint));
            }
            _ => {}
        }
        KeyTemplate::new(key, names).map_err(|error| {
            text.error(at, error, format!("the usual one is {default}; each event needs a name of its own"))
        })
    }

    /// The table of the leases.
    pub(super) fn lease_table(&self, text: &Text, names: &Names) -> Result<String, FlowError> {
        let default = if names.stream.is_some() { STREAM_LEASES } else { CHANGES_LEASES };
        let (template, at) = match self.leases.as_ref().and_then(|leases| leases.table.as_ref()) {
            Some(table) => (table.get_ref().as_str(), table.span()),
            None => (default, self.source.span()),
        };
        let refuse = |error: anabranch_model::Error| {
            text.error(at.clone(), error, format!("the usual one is {default}"))
        };
        let name = lease_table(template, names).map_err(refuse)?;
        anabranch_model::TableName::new(&name).map_err(refuse)?;
        Ok(name)
    }

    /// When a batch is complete, if there are batches.
    pub(super) fn limits(&self, text: &Text) -> Result<Option<BatchLimits>, FlowError> {
        let Some(batch) = &self.batch else { return Ok(None) };
        let BatchSpec { records, megabytes, seconds, .. } = *batch.get_ref();
        let (records, megabytes) = (records.unwrap_or(10_000), megabytes.unwrap_or(8));
        if !(1..=BATCH_RECORDS_MAX).contains(&records) || !(1..=BATCH_MEGABYTES_MAX).contains(&megabytes) {
            let message = format!("a batch of {records} events or {megabytes} megabytes is not possible");
            let hint = format!("up to {BATCH_RECORDS_MAX} events and {BATCH_MEGABYTES_MAX} megabytes are");
            return Err(text.error(batch.span(), message, hint));
        }
        let age = Duration::from_secs(seconds.unwrap_or(60));
        Ok(Some(BatchLimits { records, bytes: megabytes << 20, age }))
    }
}
