//! The real process, killed again and again while items change, with the whole history checked.
//!
//! Counters count up on the condition that they are what was seen, and each step takes them to another part of an index; money
//! moves between accounts in transactions. Each process gets a few hundred answers and then SIGKILL in the middle of what
//! follows. What was answered is there, no transaction is half done, the index has what the table has, and the stream of
//! changes has every step once, in its order. Of a call without an answer either outcome is right.

mod harness;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use anabranch_model::table::{
    Change, ChangeView, Get, IndexOptions, Item, KeyKind, KeySchema, Scan, TableOptions, TableState, Update,
    Value, Write, path,
};
use anabranch_model::{Error, IndexName, Next, NextMove, Position, ReadLimit, TableName, TableStore};
use anabranch_server::Remote;
use harness::Data;
use tokio::sync::Notify;

const KILLS: usize = 60;
const COUNTERS: usize = 6;
const MOVERS: usize = 3;
const ACCOUNTS: usize = 5;
const MONEY: i128 = 1_000;
/// Every so many kills everything is looked at.
const CHECK_EVERY: usize = 15;

/// What the writers know.
#[derive(Default)]
struct History {
    /// By counter: the last step that was answered.
    answered: [AtomicU64; COUNTERS],
    /// By counter: the last step that was asked for.
    asked: [AtomicU64; COUNTERS],
    answers: AtomicUsize,
    /// Told of every answer, and when somebody gives up.
    changed: Notify,
}

impl History {
    fn note(&self) {
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.changed.notify_one();
    }
}

fn table() -> TableName {
    TableName::new("things").expect("a valid name")
}

fn by_team() -> IndexName {
    IndexName::new("by-team").expect("a valid name")
}

fn options() -> TableOptions {
    let index = KeySchema::hash("team", KeyKind::Text).and_range("step", KeyKind::Number);
    TableOptions::new(KeySchema::hash("id", KeyKind::Text))
        .with_index(IndexOptions::global(by_team(), index))
        .with_changes(ChangeView::Both)
}

fn counter(number: usize) -> Item {
    Item::new().with("id", format!("counter-{number}"))
}

fn account(number: usize) -> Item {
    Item::new().with("id", format!("account-{number}"))
}

/// A counter at a step. Every third step is in no team, and so not in the index.
fn at_step(number: usize, step: u64) -> Item {
    let item = counter(number).with("step", step).with("note", "n".repeat(step as usize % 700));
    if step.is_multiple_of(3) { item } else { item.with("team", format!("team-{}", step % 3)) }
}

fn whole(item: &Item, name: &str) -> i128 {
    match item.get(name) {
        Some(Value::Number(number)) => number.as_i128().expect("it is whole"),
        other => panic!("`{name}` is {other:?}"),
    }
}

/// Counts up until the server goes away. What became of a step that was not answered is seen first.
async fn count(store: Arc<Remote>, number: usize, history: Arc<History>) {
    let Ok(found) = store.get(&table(), Get::new(counter(number)).consistent()).await else {
        return history.changed.notify_one();
    };
    let mut step = whole(&found.expect("the counter is there"), "step") as u64;
    loop {
        history.asked[number].store(step + 1, Ordering::Relaxed);
        let write = Write::put(at_step(number, step + 1)).when(path("step").equals(step));
        match store.write(&table(), write).await {
            Ok(_) => {}
            Err(Error::ConditionFailed { item }) => panic!("counter {number} is not at {step}: {item:?}"),
            Err(_) => return history.changed.notify_one(),
        }
        step += 1;
        history.answered[number].store(step, Ordering::Relaxed);
        history.note();
    }
}

/// Moves money until the server goes away.
async fn transfer(store: Arc<Remote>, mover: usize, history: Arc<History>) {
    for round in 0.. {
        let (from, to) = ((mover + round) % ACCOUNTS, (mover + round * 2 + 1) % ACCOUNTS);
        if from == to {
            continue;
        }
        let take = Write::update(account(from), Update::new().add("money", -1)).when(path("money").above(0));
        let give = Write::update(account(to), Update::new().add("money", 1));
        match store.transact_write(vec![(table(), take), (table(), give)], None).await {
            Ok(()) | Err(Error::TransactionCancelled { .. }) => history.note(),
            Err(error) if error.next_move() == NextMove::Retry && !is_gone(&error) => {}
            Err(_) => return history.changed.notify_one(),
        }
    }
}

/// Whether an error comes from the way to the server.
fn is_gone(error: &Error) -> bool {
    matches!(error, Error::Unavailable(_))
}

/// All items of the table or of its index, in the order of their keys.
async fn contents(store: &Remote, index: Option<&IndexName>) -> Vec<Item> {
    let (mut items, mut start) = (Vec::new(), None);
    loop {
        let scan = match index {
            Some(index) => Scan::new().index(index),
            None => Scan::new().consistent(),
        };
        let page = store.scan(&table(), scan.start(start)).await.expect("a scan");
        items.extend(page.items);
        start = page.last;
        if start.is_none() {
            items.sort_by_key(|item| format!("{:?}", item.get("id")));
            return items;
        }
    }
}

/// All changes, those of an item in their order.
async fn changes(store: &Remote) -> Vec<Change> {
    let stream = store.table(&table()).await.expect("a summary").changes.expect("changes are written down");
    let shards = store.changes().shards(&stream, None, 1_000).await.expect("shards").entries;
    let mut changes = Vec::new();
    for shard in shards {
        let mut at = Position::TrimHorizon;
        loop {
            let batch =
                store.changes().read(&stream, &shard.id, at, ReadLimit::default()).await.expect("a read");
            let empty = batch.records.is_empty();
            changes
                .extend(batch.records.iter().map(|record| Change::decode(&record.data).expect("a change")));
            match batch.next {
                Next::At(next) if !empty => at = next,
                _ => break,
            }
        }
    }
    changes
}

async fn check(store: &Remote, history: &History, kills: usize) {
    let items = contents(store, None).await;
    assert_eq!(items.len(), COUNTERS + ACCOUNTS, "after {kills} kills");
    for number in 0..COUNTERS {
        let id = counter(number);
        let item = items.iter().find(|item| item.get("id") == id.get("id")).expect("the counter is there");
        let step = whole(item, "step") as u64;
        let answered = history.answered[number].load(Ordering::Relaxed);
        let asked = history.asked[number].load(Ordering::Relaxed);
        assert!((answered..=asked).contains(&step), "{number} is at {step}, after {answered} of {asked}");
        assert_eq!(item, &at_step(number, step), "after {kills} kills");
    }
    let money: i128 =
        items.iter().filter(|item| item.get("money").is_some()).map(|item| whole(item, "money")).sum();
    assert_eq!(money, MONEY * ACCOUNTS as i128, "after {kills} kills");

    let in_teams: Vec<Item> = items.iter().filter(|item| item.get("team").is_some()).cloned().collect();
    assert_eq!(contents(store, Some(&by_team())).await, in_teams, "after {kills} kills");
    let summary = store.table(&table()).await.expect("a summary");
    assert_eq!((summary.state, summary.items), (TableState::Active, items.len() as u64));
    assert_eq!(summary.indexes[0].items, in_teams.len() as u64);

    let changes = changes(store).await;
    for item in &items {
        let mine = changes.iter().filter(|change| change.keys.get("id") == item.get("id"));
        // Each change begins where the one before it ended, and the last one ends at what is there.
        let mut now = None;
        for change in mine {
            assert_eq!(change.old, now, "after {kills} kills");
            now = change.new.clone();
        }
        assert_eq!(now.as_ref(), Some(item), "after {kills} kills");
    }
    let steps =
        changes.iter().filter(|change| change.new.as_ref().is_some_and(|new| new.get("step").is_some()));
    let expected: i128 = (0..COUNTERS).map(|number| whole(&items[ACCOUNTS + number], "step") + 1).sum();
    assert_eq!(steps.count() as i128, expected, "each step has one change, after {kills} kills");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_a_table_is_lost_or_half_done_over_many_kills() {
    let data = Data::new();
    let history = Arc::new(History::default());
    for kill in 0..KILLS {
        let server = data.serve();
        let store = Arc::new(Remote::new(server.listen));
        if kill == 0 {
            store.create_table(&table(), options()).await.expect("the table is made");
            let counters = (0..COUNTERS).map(|number| at_step(number, 0));
            let accounts = (0..ACCOUNTS).map(|number| account(number).with("money", MONEY as i64));
            for item in counters.chain(accounts) {
                store.write(&table(), Write::put(item)).await.expect("an item is put");
            }
        }
        if kill % CHECK_EVERY == CHECK_EVERY - 1 {
            check(&store, &history, kill).await;
        }
        let start = history.answers.load(Ordering::Relaxed);
        let mut tasks: Vec<_> =
            (0..COUNTERS).map(|number| tokio::spawn(count(store.clone(), number, history.clone()))).collect();
        tasks.extend((0..MOVERS).map(|mover| tokio::spawn(transfer(store.clone(), mover, history.clone()))));
        // A different moment each time: after 1 to 300 further answers.
        let enough = start + 1 + (kill * 37) % 300;
        while history.answers.load(Ordering::Relaxed) < enough && tasks.iter().any(|task| !task.is_finished())
        {
            history.changed.notified().await;
        }
        server.kill();
        for task in tasks {
            task.await.expect("everybody ends when the server is gone");
        }
    }
    let server = data.serve();
    let store = Remote::new(server.listen);
    check(&store, &history, KILLS).await;
    println!("{} answers over {KILLS} kills", history.answers.load(Ordering::Relaxed));
    server.stop().succeeded();
}
