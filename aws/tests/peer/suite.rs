//! All laws of a port in one test, put to one server.

use std::sync::Arc;
use std::time::Duration;

use anabranch_aws::{Blobs, Queues, Streams, Tables};
use anabranch_model::laws::blob::{self, BlobFixture};
use anabranch_model::laws::queue::{self, QueueFixture};
use anabranch_model::laws::stream::{self, StreamFixture};
use anabranch_model::laws::table::{self, TableFixture};
use anabranch_model::laws::{Fixture, Law};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt};

/// After which a law counts as hanging. The servers are slow, and share two cores.
const LAW_MAX: Duration = Duration::from_secs(150);
/// With it only the law of this name is put to the test, also if it is skipped.
const ONLY: &str = "ANABRANCH_LAW";

/// What a server gets wrong: the name of a law, and why the server does not keep it.
pub type Skipped = &'static [(&'static str, &'static str)];

/// A law and the store that it is put to.
pub type Case = (&'static str, BoxFuture<'static, ()>);

/// The laws of streams.
pub fn stream_cases(streams: &Streams, prefix: &str) -> Vec<Case> {
    cases(stream::all(), || StreamFixture::new(Arc::new(streams.clone())), prefix)
}

/// The laws of queues. SQS itself does not say how old the oldest message is; CloudWatch does.
pub fn queue_cases(queues: &Queues, prefix: &str) -> Vec<Case> {
    cases(queue::all(), || QueueFixture::new(Arc::new(queues.clone())).without_ages(), prefix)
}

/// The same on a server of before 2025, when a message had 256 KiB at most.
pub fn older_queue_cases(queues: &Queues, prefix: &str) -> Vec<Case> {
    let fixture =
        || QueueFixture::new(Arc::new(queues.clone())).without_ages().with_message_bytes_max(256 << 10);
    cases(queue::all(), fixture, prefix)
}

/// The laws of tables.
pub fn table_cases(tables: &Tables, prefix: &str) -> Vec<Case> {
    cases(table::all(), || TableFixture::new(Arc::new(tables.clone())), prefix)
}

/// The laws of blobs. S3 does not say in its answer to a put when that was.
pub fn blob_cases(blobs: &Blobs, prefix: &str) -> Vec<Case> {
    cases(blob::all(), || BlobFixture::new(Arc::new(blobs.clone())).with_times_that_are_near(), prefix)
}

fn cases<S: ?Sized>(laws: &[Law<S>], fixture: impl Fn() -> Fixture<S>, prefix: &str) -> Vec<Case> {
    let case = |law: &Law<S>| (law.name, law.check(fixture().with_prefix(prefix).with_spawn(spawned)));
    laws.iter().map(case).collect()
}

/// Puts the laws to the test, so many at the same time, except those that are skipped.
pub async fn hold(cases: Vec<Case>, skipped: Skipped, at_once: usize) {
    hold_beside(&[], cases, skipped, at_once).await;
}

/// The same on a slow server: what it need not show is what all the others keep, of which there are two at least.
pub async fn hold_beside(others: &[Skipped], cases: Vec<Case>, skipped: Skipped, at_once: usize) {
    assert!(others.len() != 1, "a law that one other server keeps is worth a second look");
    for (name, _) in skipped {
        assert!(cases.iter().any(|(law, _)| law == name), "there is no law `{name}` to skip");
    }
    let only = std::env::var(ONLY).ok();
    let skips = |skipped: &Skipped, name: &str| skipped.iter().any(|(skipped, _)| *skipped == name);
    let wanted = |name: &str| match &only {
        Some(only) => name == only,
        None if skips(&skipped, name) => false,
        None => others.is_empty() || others.iter().any(|other| skips(other, name)),
    };
    let running = cases.into_iter().filter(|(name, _)| wanted(name)).map(|(name, law)| async move {
        let law = tokio::time::timeout(LAW_MAX, tokio::spawn(law));
        match law.await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some((name, panic_text(error))),
            Err(_) => Some((name, format!("undecided after {LAW_MAX:?}"))),
        }
    });
    let broken: Vec<_> = futures_util::stream::iter(running)
        .buffer_unordered(at_once)
        .filter_map(|it| async { it })
        .collect()
        .await;
    let told: Vec<_> = broken.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    assert!(broken.is_empty(), "{} laws do not hold:\n{}", broken.len(), told.join("\n"));
}

fn panic_text(error: tokio::task::JoinError) -> String {
    let panic = match error.try_into_panic() {
        Ok(panic) => panic,
        Err(error) => return error.to_string(),
    };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string())).unwrap_or_default()
}

/// Checks that what one server gets wrong another gets right.
pub fn every_law_holds_somewhere(laws: impl IntoIterator<Item = &'static str>, servers: &[Skipped]) {
    for law in laws {
        let skips = |skipped: &Skipped| skipped.iter().any(|(name, _)| *name == law);
        assert!(!servers.iter().all(skips), "no server keeps the law `{law}`");
    }
}

/// A task of a law that runs by itself.
pub fn spawned(task: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
    let task = tokio::spawn(task);
    async move {
        if let Err(error) = task.await {
            std::panic::resume_unwind(error.into_panic());
        }
    }
    .boxed()
}
