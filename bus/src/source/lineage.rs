//! Streams that follow one another: the changes of a table come in another stream when they were turned off and on again, or
//! when the table was made again under its name.
//!
//! ```text
//!   begun before and not at its end? ──▶ read to the end ──▶ ended, or gone ──▶ is there a younger one? ──▶ read from its beginning
//!                                              ▲                                        │ no: ask again        │
//!                                              └────────────────────────────────────────┴──────────────────────┘
//! ```
//!
//! What must hold: a stream is begun when everything of those before it is processed, so that the order of changes stays; and
//! its leases are its own, so that no checkpoint of an older stream counts for it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use anabranch_consumer::{Application, Checkpoint, Lease, StreamChoice, TableNames};
use anabranch_model::{Error, NextMove, Result, Shard, ShardId, ShardSource, StreamName, TableStore, limits};
use async_trait::async_trait;

use crate::pause::pause;

/// How long is waited before a younger stream is asked for again.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(5);

/// The streams of one origin.
#[async_trait]
pub trait Lineage: Send + Sync {
    /// Those that can be read and are known, the oldest first. The last one is written now, or was written last.
    async fn streams(&self) -> Result<Vec<StreamChoice>>;
}

/// What an application has read of a lineage.
pub(super) struct Past<'a> {
    pub(super) source: &'a Arc<dyn ShardSource>,
    pub(super) tables: &'a Arc<dyn TableStore>,
    pub(super) names: TableNames,
    pub(super) lineage: &'a dyn Lineage,
}

/// Where an application is with a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Untouched,
    Begun,
    /// Begun, and a shard of it is open.
    Written,
    Finished,
}

impl Past<'_> {
    /// The stream with which reading goes on, and whether something of an older one was read before. Tried again for as long as
    /// that may help.
    pub(super) async fn resume(&self, newest: &StreamChoice) -> Result<(StreamChoice, bool)> {
        loop {
            match self.look(newest).await {
                Err(error) if error.next_move() == NextMove::Retry => {
                    tracing::warn!(%error, "what was read before cannot be seen yet");
                    pause(LOOK_EVERY).await;
                }
                found => return found,
            }
        }
    }

    async fn look(&self, newest: &StreamChoice) -> Result<(StreamChoice, bool)> {
        let leases = self.leases().await?;
        let mut streams = self.lineage.streams().await?;
        let listed: HashSet<_> = streams.iter().map(|stream| stream.name.clone()).collect();
        let known = leases.iter().filter_map(choice_of).chain([newest.clone()]);
        for choice in known {
            if streams.iter().all(|stream| stream.name != choice.name) {
                streams.push(choice);
            }
        }
        streams.retain(|stream| place(&stream.name) <= place(&newest.name));
        streams.sort_by(|one, other| place(&one.name).cmp(&place(&other.name)));
        let mut begun = false;
        for stream in streams {
            if stream.name == newest.name {
                break;
            }
            match self.standing(&stream, &leases).await {
                Ok(Standing::Untouched) if !begun => {}
                // Somebody keeps the leases of another table's stream there, too.
                Ok(Standing::Written) if !listed.contains(&stream.name) => {}
                Ok(Standing::Finished) => begun = true,
                Ok(_) => return Ok((stream, begun)),
                Err(Error::StreamNotFound(_)) => {
                    begun = true;
                    self.forget(&stream).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok((newest.clone(), begun))
    }

    async fn leases(&self) -> Result<Vec<Lease>> {
        match Application::open(self.tables.clone(), &self.names.leases).await {
            Ok(application) => application.leases().await,
            Err(Error::TableNotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn standing(&self, stream: &StreamChoice, leases: &[Lease]) -> Result<Standing> {
        if leases.is_empty() {
            return Ok(Standing::Untouched);
        }
        let shards = shards(self.source, &stream.name).await?;
        let lease = |shard: &Shard| leases.iter().find(|lease| lease.key == stream.lease_key(&shard.id));
        if !shards.iter().any(|shard| lease(shard).is_some()) {
            return Ok(Standing::Untouched);
        }
        if shards.iter().any(Shard::is_open) {
            return Ok(Standing::Written);
        }
        let parents: HashSet<&ShardId> = shards.iter().flat_map(|shard| &shard.parents).collect();
        let ended =
            |shard: &&Shard| lease(shard).is_some_and(|lease| lease.checkpoint == Checkpoint::ShardEnd);
        let mut last = shards.iter().filter(|shard| !parents.contains(&shard.id));
        Ok(if last.all(|shard| ended(&shard)) { Standing::Finished } else { Standing::Begun })
    }

    /// Removes what is left of a stream that is gone, and says what was lost with it.
    pub(super) async fn forget(&self, stream: &StreamChoice) {
        let Some(identifier) = &stream.identifier else { return };
        let forget = async {
            let application = Application::open(self.tables.clone(), &self.names.leases).await?;
            application.forget(identifier).await
        };
        match forget.await {
            Ok(unfinished) => {
                for lease in unfinished {
                    tracing::warn!(stream = %stream.name, shard = lease.shard(), checkpoint = %lease.checkpoint,
                        "a stream of changes is gone: what came behind the checkpoint was not read");
                }
            }
            // They are found again when the bot begins the next time.
            Err(error) => {
                tracing::warn!(stream = %stream.name, %error, "leases of a stream that is gone are left")
            }
        }
    }

    /// Says what retention has removed of a stream that nobody has begun. Whoever continues an older one wanted all of it.
    pub(super) async fn tell_removed(&self, stream: &StreamChoice) {
        let look = async {
            let leases = self.leases().await?;
            for shard in shards(self.source, &stream.name).await? {
                let key = stream.lease_key(&shard.id);
                if leases.iter().any(|lease| lease.key == key) {
                    continue;
                }
                if let Some(last) = self.source.trimmed(&stream.name, &shard.id).await? {
                    tracing::warn!(stream = %stream.name, shard = %shard.id, lost_to = %last,
                        "changes were removed by retention before their stream was begun");
                }
            }
            Ok::<_, Error>(())
        };
        if let Err(error) = look.await {
            tracing::warn!(stream = %stream.name, %error, "what was removed of a stream cannot be told");
        }
    }

    /// The stream that follows another one, as soon as there is one; or the same, if it is still written. An error that does
    /// not go away by itself is said, and somebody may do something about it.
    pub(super) async fn next(&self, ended: &StreamChoice) -> StreamChoice {
        let mut is_said = false;
        loop {
            match self.look_for_next(ended).await {
                Ok(Some(next)) => {
                    if next.name == ended.name {
                        pause(LOOK_EVERY).await;
                    }
                    return next;
                }
                Ok(None) if !std::mem::replace(&mut is_said, true) => {
                    tracing::info!(ended = %ended.name,
                        "a stream of changes has ended, and there is no other one yet");
                }
                Ok(None) => {}
                Err(error) if error.next_move() == NextMove::Retry => {
                    tracing::warn!(%error, "the next stream of changes cannot be looked for");
                }
                Err(error) => tracing::error!(%error, "the next stream of changes cannot be read"),
            }
            pause(LOOK_EVERY).await;
        }
    }

    async fn look_for_next(&self, ended: &StreamChoice) -> Result<Option<StreamChoice>> {
        let streams = self.lineage.streams().await?;
        let younger = streams.into_iter().filter(|stream| place(&stream.name) > place(&ended.name));
        let next = younger.min_by(|one, other| place(&one.name).cmp(&place(&other.name)));
        if next.is_some() {
            return Ok(next);
        }
        match shards(self.source, &ended.name).await {
            Ok(shards) => Ok(shards.iter().any(Shard::is_open).then(|| ended.clone())),
            Err(Error::StreamNotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Streams of a lineage sort as they followed one another: behind what is the same in their names stands a number that grows, or
/// a moment.
fn place(stream: &StreamName) -> (usize, &str) {
    (stream.as_str().len(), stream.as_str())
}

/// The stream that the key of a lease names, if it names one of these.
fn choice_of(lease: &Lease) -> Option<StreamChoice> {
    let identifier = lease.stream.clone()?;
    let name = StreamName::new(&identifier).ok()?;
    Some(StreamChoice { name, identifier: Some(identifier) })
}

async fn shards(source: &Arc<dyn ShardSource>, stream: &StreamName) -> Result<Vec<Shard>> {
    let (mut shards, mut after) = (Vec::<Shard>::new(), None);
    loop {
        let page = source.shards(stream, after.as_ref(), limits::PAGE_ENTRIES_MAX).await?;
        after = page.entries.last().map(|shard| shard.id.clone());
        shards.extend(page.entries);
        if !page.more || after.is_none() {
            return Ok(shards);
        }
    }
}
