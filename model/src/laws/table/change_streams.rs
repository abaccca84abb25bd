//! Streams of changes as streams: following them, and how long their records are kept.

use std::time::Duration;

use futures_util::future::join;
use futures_util::stream::{SelectAll, StreamExt, select_all};

use super::trial::{Trial, by_id, id};
use crate::laws::trial::NO_CLOCK;
use crate::table::{Alteration, Change, ChangeView, Event, Item, TableOptions, Update, Write};
use crate::{Error, Follow, Next, Position, ReadLimit, StreamName, TableName, limits};

/// Items that change; more than a store has shards.
const ITEMS: usize = 12;
const HOUR: Duration = Duration::from_secs(3600);

/// One follower of all shards of a stream.
struct Follower {
    shards: SelectAll<Follow>,
    ended: usize,
}

impl Follower {
    async fn new(trial: &Trial, stream: &StreamName, from: Position) -> Follower {
        let mut follows = Vec::new();
        for shard in trial.shards(stream).await {
            let follow = trial.store().changes().follow(stream, &shard.id, from).await;
            follows.push(trial.ok(format!("following {} from {from:?}", shard.id), follow));
        }
        Follower { shards: select_all(follows), ended: 0 }
    }

    /// The next changes; at least so many, as long as a shard is open.
    async fn take(&mut self, trial: &Trial, count: usize) -> Vec<Change> {
        let mut changes = Vec::new();
        while changes.len() < count {
            let Some(batch) = self.shards.next().await else { break };
            let batch = trial.ok("following changes", batch);
            self.ended += usize::from(matches!(batch.next, Next::Ended(_)));
            let decode = |data: &[u8]| trial.ok("decoding a change", Change::decode(data));
            changes.extend(batch.records.iter().map(|record| decode(&record.data)));
        }
        changes
    }
}

fn name(number: usize) -> Item {
    id(&format!("item {}", number % ITEMS))
}

/// Counts up `count` items from `first` on, one write each.
async fn count_up(trial: &Trial, table: &TableName, first: usize, count: usize) {
    for number in first..first + count {
        trial.write(table, Write::update(name(number), Update::new().add("n", 1))).await;
    }
}

/// What happened to each item, in its order.
fn stories(changes: &[Change]) -> Vec<Vec<Option<Item>>> {
    let story = |number: usize| {
        let mine = changes.iter().filter(|change| change.keys == name(number));
        mine.map(|change| change.new.clone()).collect()
    };
    (0..ITEMS).map(story).collect()
}

/// Followers get each change once and the changes of an item in their order: those that were there, those that come, and
/// then the end.
pub async fn following_changes_sees_each_once(trial: Trial) {
    let table = trial.table(TableOptions::new(by_id()).with_changes(ChangeView::New)).await;
    let stream = trial.stream(&table).await;
    count_up(&trial, &table, 0, 2 * ITEMS).await;
    let mut early = Follower::new(&trial, &stream, Position::TrimHorizon).await;
    let mut seen = early.take(&trial, 2 * ITEMS).await;
    let mut late = Follower::new(&trial, &stream, Position::Latest).await;
    let mut seen_late = Vec::new();
    // Both have caught up, so each write has to wake them.
    for round in 0..20 {
        let (first, count) = (round * 5, 1 + round % 3);
        let following = async { (early.take(&trial, count).await, late.take(&trial, count).await) };
        let (_, (some, the_same)) = join(count_up(&trial, &table, first, count), following).await;
        trial.same(format!("changes in round {round}"), some.len(), count);
        trial.same(format!("changes in round {round} for the late one"), the_same.len(), count);
        seen.extend(some);
        seen_late.extend(the_same);
    }
    trial.ok("turning off", trial.store().alter(&table, Alteration::Changes(None)).await);
    seen.extend(early.take(&trial, usize::MAX).await);
    seen_late.extend(late.take(&trial, usize::MAX).await);

    let all = trial.changes(&stream).await;
    trial.same("changes read", all.len(), seen.len());
    trial.same("changes followed", stories(&seen), stories(&all));
    let before = |story: &Vec<Option<Item>>| story[2..].to_vec();
    let later: Vec<_> = stories(&all).iter().map(before).collect();
    trial.same("changes followed from the latest", stories(&seen_late), later);
    let shards = trial.shards(&stream).await.len();
    trial.same("ends of shards", (early.ended, late.ended), (shards, shards));
}

/// A change can be read for a day, and is gone some time later. So is a stream that has ended.
pub async fn changes_are_kept_for_a_day(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let table = trial.table(TableOptions::new(by_id()).with_changes(ChangeView::Keys)).await;
    let stream = trial.stream(&table).await;
    trial.put(&table, id("item")).await;
    let old = trial.records(&stream).await;
    trial.advance(limits::CHANGES_RETENTION - HOUR).await;
    trial.same("changes within a day", trial.changes(&stream).await.len(), 1);
    trial.put(&table, id("item").with("n", 1)).await;
    trial.put(&table, id("item").with("n", 2)).await;
    trial.advance(2 * HOUR).await;
    let look = || async {
        let events: Vec<Event> = trial.changes(&stream).await.iter().map(|change| change.event).collect();
        if events == [Event::Modify, Event::Modify] { Ok(()) } else { Err(format!("saw {events:?}")) }
    };
    trial.eventually("a stream with the changes of a day", look).await;
    for (shard, record) in old {
        // Whoever had read only that one misses nothing that is left.
        for from in [Position::At(record.sequence), Position::After(record.sequence)] {
            let batch = trial.store().changes().read(&stream, &shard, from, ReadLimit::default()).await;
            trial.same("changes from one that is gone", trial.ok("a read", batch).records.len(), 2);
        }
    }
    trial.ok("turning off", trial.store().alter(&table, Alteration::Changes(None)).await);
    trial.advance(limits::CHANGES_RETENTION - 3 * HOUR).await;
    trial.same("changes of a stream that has ended", trial.changes(&stream).await.len(), 2);
    trial.same("streams of a table", trial.change_streams(&table).await.last(), Some(&stream));
    trial.advance(4 * HOUR).await;
    let look = || async {
        match trial.store().changes().shards(&stream, None, 1).await {
            Err(Error::StreamNotFound(_)) => Ok(()),
            other => Err(format!("saw {other:?}")),
        }
    };
    trial.eventually("a stream that is gone", look).await;
    let listed = trial.change_streams(&table).await.contains(&stream);
    trial.holds(!listed, "a stream that is gone is listed");
}

/// The streams of a table are listed, the oldest first and those that have ended too, and those of an older table of its
/// name before its own.
pub async fn the_streams_of_a_table_are_listed(trial: Trial) {
    let (table, other) = (trial.simple().await, trial.simple().await);
    let (store, options) = (trial.store(), TableOptions::new(by_id()).with_changes(ChangeView::Keys));
    // A store that was used before may still have streams of this name.
    let (before, before_other) = (trial.change_streams(&table).await, trial.change_streams(&other).await);
    let (mut streams, mut puts) = (before.clone(), 0);
    for _ in 0..2 {
        let turn = |view| store.alter(&table, Alteration::Changes(view));
        trial.ok("turning on", turn(Some(ChangeView::Keys)).await);
        streams.push(trial.stream(&table).await);
        puts += 1;
        trial.put(&table, id(&format!("{puts}"))).await;
        trial.same("streams with one that is written", trial.change_streams(&table).await, streams.clone());
        trial.ok("turning off", turn(None).await);
        trial.same("streams that have ended", trial.change_streams(&table).await, streams.clone());
    }
    for _ in 0..2 {
        trial.ok("deleting", store.delete_table(&table).await);
        trial.same("streams of a deleted table", trial.change_streams(&table).await, streams.clone());
        trial.ok("making it again", store.create_table(&table, options.clone()).await);
        streams.push(trial.stream(&table).await);
        puts += 1;
        trial.put(&table, id(&format!("{puts}"))).await;
        trial.same("streams of both tables", trial.change_streams(&table).await, streams.clone());
    }
    for (number, stream) in (1..).zip(&streams[before.len()..]) {
        let keys: Vec<Item> = trial.changes(stream).await.into_iter().map(|change| change.keys).collect();
        trial.same(format!("the changes of stream {number}"), keys, vec![id(&format!("{number}"))]);
    }
    trial.same("streams of another table", trial.change_streams(&other).await, before_other);
}
