//! Making, describing, listing and deleting streams.

use std::collections::HashSet;

use super::trial::Trial;
use super::written::{gist, gist_written, placed, some_records};
use crate::{Error, Position, ReadLimit, StreamName, StreamOptions, limits};

/// A stream is described as it was made, and counts its open and closed shards.
pub async fn streams_are_described(trial: Trial) {
    let retention = limits::RETENTION_MIN * 3;
    let stream = trial.stream_with(StreamOptions { shards: 3, retention }).await;
    let described = trial.ok("describing a stream", trial.store().stream(&stream).await);
    trial.same("the name", &described.name, &stream);
    trial.same("the retention", described.retention, retention);
    trial.same("shards at the start", (described.open_shards, described.closed_shards), (3, 0));
    let open = trial.open_shards(&stream).await;
    // Closed shards without records may be gone at once, so each has one.
    trial.write(&stream, open.iter().map(|shard| placed(trial.range(shard).first(), "some")).collect()).await;
    trial.split(&stream, &open[0]).await;
    trial.merge(&stream, &open[1].id, &open[2].id).await;
    let later = trial.ok("describing a stream", trial.store().stream(&stream).await);
    trial.same("shards after a split and a merge", (later.open_shards, later.closed_shards), (3, 3));
    trial.same("whether it is active", (described.active, later.active), (true, true));
    trial.same("the time of creation", later.created_at, described.created_at);
}

/// Streams are listed in the order of their names, in pages of any size, and as they are described.
pub async fn streams_are_listed_by_name(trial: Trial) {
    let mut names = Vec::new();
    for shards in [2, 1, 3, 1, 1] {
        names.push(trial.stream(shards).await);
    }
    names.sort();
    for limit in [0, 1, 2, 4, limits::PAGE_ENTRIES_MAX, usize::MAX] {
        let listed = list(&trial, limit).await;
        // Other laws may use the same store, so only the streams of this one are looked at.
        let mine: Vec<_> = listed.iter().filter(|name| names.contains(name)).cloned().collect();
        trial.same(format!("streams in pages of {limit}"), mine, names.clone());
        trial.holds(listed.is_sorted(), format!("pages of {limit} are out of order: {listed:?}"));
    }
    // The name to go on from need not exist: the stream may have been deleted meanwhile.
    trial.ok("deleting a stream", trial.store().delete_stream(&names[1]).await);
    let page = trial.ok("listing streams", trial.store().streams(Some(&names[1]), 1).await);
    let first = page.entries.into_iter().next().unwrap_or_else(|| trial.fail("the page is empty"));
    trial.holds(first.name > names[1] && first.name <= names[2], format!("{first:?} follows {}", names[1]));
    let described = trial.ok("describing a stream", trial.store().stream(&first.name).await);
    trial.same("a stream listed and described", first, described);
}

async fn list(trial: &Trial, limit: usize) -> Vec<StreamName> {
    let mut names: Vec<StreamName> = Vec::new();
    for _ in 0..=limits::STREAMS_MAX {
        let page = trial.ok("listing streams", trial.store().streams(names.last(), limit).await);
        trial.holds(page.entries.len() <= limit.max(1), format!("a page of {limit} is too long"));
        trial.holds(!page.more || !page.entries.is_empty(), "an empty page says that there are more streams");
        names.extend(page.entries.into_iter().map(|summary| summary.name));
        if !page.more {
            return names;
        }
    }
    trial.fail("the listing of streams does not end")
}

/// When a deletion returns, the stream and its records are gone and the name is free.
pub async fn a_deleted_stream_is_gone(trial: Trial) {
    let (stream, shard) = trial.single_shard().await;
    trial.write(&stream, some_records("some", 10)).await;
    let store = trial.store();
    trial.ok("deleting a stream", store.delete_stream(&stream).await);
    let unknown = Error::StreamNotFound(stream.clone());
    trial.same("describing it", store.stream(&stream).await.err(), Some(unknown.clone()));
    let read = store.read(&stream, &shard, Position::TrimHorizon, ReadLimit::default()).await;
    trial.same("reading it", read.err(), Some(unknown.clone()));
    trial.same(
        "writing to it",
        store.append(&stream, some_records("more", 1)).await.err(),
        Some(unknown.clone()),
    );
    trial.same("deleting it again", store.delete_stream(&stream).await.err(), Some(unknown));
    trial.holds(!list(&trial, 100).await.contains(&stream), "it is still listed");
    trial.ok("making it again", store.create_stream(&stream, StreamOptions::default()).await);
    let shard = trial.open_shards(&stream).await.swap_remove(0).id;
    trial.same("records of the new stream", trial.read_all(&stream, &shard).await, Vec::new());
    let written = trial.write(&stream, some_records("new", 5)).await;
    trial.same(
        "records of the new stream",
        gist(&trial.read_all(&stream, &shard).await),
        gist_written(&written),
    );
}

/// A position that was kept from a deleted stream never shows a record of a younger stream of the same name as its own:
/// numbers are not given again.
pub async fn an_old_position_shows_no_younger_record(trial: Trial) {
    let (stream, _) = trial.single_shard().await;
    let old = trial.write(&stream, some_records("old", 10)).await;
    trial.ok("deleting the stream", trial.store().delete_stream(&stream).await);
    trial.ok("making it again", trial.store().create_stream(&stream, StreamOptions::default()).await);
    let young = trial.write(&stream, some_records("young", 20)).await;
    let numbers: HashSet<_> = old.iter().map(|written| written.sequence).collect();
    for written in &young {
        trial.holds(
            !numbers.contains(&written.sequence),
            format!("{written:?} has a number that was given before"),
        );
    }
    let shard = trial.open_shards(&stream).await.swap_remove(0).id;
    for written in &old {
        // A store may refuse the position or go on behind it; it may not show another record in its place.
        let read =
            trial.store().read(&stream, &shard, Position::At(written.sequence), ReadLimit::default()).await;
        match read {
            Ok(batch) => trial.holds(
                batch.records.iter().all(|record| record.sequence > written.sequence),
                format!("position {} shows {:?}", written.sequence, batch.records.first()),
            ),
            Err(Error::Invalid(_)) => {}
            Err(error) => trial.fail(format!("reading from an old position failed: {error}")),
        }
    }
}
