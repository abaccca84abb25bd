//! Tables.

use std::collections::BTreeSet;
use std::sync::Mutex;

use anabranch_aws::Tables;
use anabranch_model::table::{
    Action, Alteration, ChangeView, Get, IndexOptions, Item, KeyKind, KeySchema, TableOptions, Token, Update,
    Value, Write, path,
};
use anabranch_model::{Error, IndexName, TableName, TableStore};
use futures_util::future::join_all;

use crate::peer::Peer;
use crate::peer::gaps::tables::DYNAMODB_LOCAL;
use crate::peer::plan::{chance, once_each};
use crate::peer::proxy::Fault::{self, *};
use crate::peer::proxy::Proxy;
use crate::peer::suite::{self, table_cases};
use crate::peer::wire::Request;
use crate::{ALL, AT_MOST_ONCE, ATTEMPT_MAX, CERTAIN, Fate, LOOKED_UP, OF_CHANGES, PERCENT, REPEATED};

/// The calls that change a table.
const CHANGES: &[&str] = &["CreateTable", "UpdateTimeToLive", "UpdateTable", "DeleteTable"];

/// Every fault. A put without a condition is spared the last: one that comes late undoes what was put since.
const WITH_LATE: &[Fault] = &[Delay, Throttle, Refuse, Drop, Fail, Cut, Double, Echo, Hang, Late];

fn name(name: &str) -> TableName {
    TableName::new(name).expect("a name")
}

fn options() -> TableOptions {
    TableOptions::new(KeySchema::hash("id", KeyKind::Text))
}

fn id(id: &str) -> Item {
    Item::new().with("id", id)
}

fn of_laws(request: &Request) -> &'static [Fault] {
    let body = request.body();
    let blind = !body.contains("ConditionExpression") && body.contains(r#""ReturnValues":"NONE""#);
    match request.operation.as_str() {
        "UpdateItem" => CERTAIN,
        "PutItem" | "DeleteItem" if !blind => CERTAIN,
        operation if CHANGES.contains(&operation) => LOOKED_UP,
        _ => REPEATED,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_tables_hold() {
    let local = Peer::dynamodb_local().await;
    let proxy = Proxy::start(local.address(), chance(31, PERCENT, of_laws)).await;
    let tables = Tables::new(&proxy.connect(None).await);
    suite::hold(table_cases(&tables, "faulty"), DYNAMODB_LOCAL, 6).await;
    proxy.saw(REPEATED);
}

/// A table with a server of its own, and a faulty way to it.
struct Way {
    direct: Tables,
    faulty: Tables,
    proxy: Proxy,
    table: TableName,
    _local: Peer,
}

impl Way {
    async fn to(table: &str, plan: impl FnMut(&Request) -> Option<Fault> + Send + 'static) -> Way {
        let local = Peer::dynamodb_local().await;
        let (direct, table) = (Tables::new(&local.connect().await), name(table));
        direct.create_table(&table, options()).await.unwrap();
        let proxy = Proxy::start(local.address(), plan).await;
        let faulty = Tables::new(&proxy.connect(ATTEMPT_MAX).await);
        Way { direct, faulty, proxy, table, _local: local }
    }

    async fn number(&self, tables: &Tables, key: &str, attribute: &str) -> i64 {
        let item = tables.get(&self.table, Get::new(id(key)).consistent()).await.unwrap();
        match item.as_ref().and_then(|item| item.get(attribute)) {
            Some(Value::Number(number)) => number.as_i128().unwrap() as i64,
            other => panic!("`{attribute}` of `{key}` is {other:?}"),
        }
    }
}

/// What became of the steps of counters.
#[derive(Default)]
struct Tally {
    /// The values that were set for certain.
    won: Vec<i64>,
    compared_in_doubt: i64,
    added: i64,
    added_in_doubt: i64,
}

/// Counts up with a condition, and without one.
async fn count(way: &Way, tally: &Mutex<Tally>, steps: usize) {
    for _ in 0..steps {
        loop {
            let seen = way.number(&way.faulty, "counter", "compared").await;
            let update = Update::new().set("compared", seen + 1);
            let write = Write::update(id("counter"), update).when(path("compared").equals(seen));
            let result = way.faulty.write(&way.table, write).await;
            let refused = matches!(result, Err(Error::ConditionFailed { .. }));
            if refused {
                continue;
            }
            let mut tally = tally.lock().expect("the tally");
            match Fate::of(result) {
                Fate::Stored(_) => tally.won.push(seen + 1),
                Fate::InDoubt => tally.compared_in_doubt += 1,
                Fate::Refused => continue,
            }
            break;
        }
        let add = Write::update(id("counter"), Update::new().add("added", 1));
        let result = way.faulty.write(&way.table, add).await;
        let mut tally = tally.lock().expect("the tally");
        match Fate::of(result) {
            Fate::Stored(_) => tally.added += 1,
            Fate::InDoubt => tally.added_in_doubt += 1,
            Fate::Refused => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_lets_a_write_happen_once() {
    // What comes twice without a condition is done twice, and nobody could say so.
    let faults = |request: &Request| match request.operation.as_str() {
        "UpdateItem" if request.body().contains("ConditionExpression") => WITH_LATE,
        "UpdateItem" => AT_MOST_ONCE,
        _ => &[Delay, Throttle, Refuse, Drop, Fail, Cut, Double, Hang],
    };
    let way = Way::to("counters", chance(32, 20, faults)).await;
    way.direct
        .write(&way.table, Write::put(id("counter").with("compared", 0).with("added", 0)))
        .await
        .unwrap();
    let tally = Mutex::default();
    join_all((0..6).map(|_| count(&way, &tally, 20))).await;
    way.proxy.saw(WITH_LATE);

    let Tally { won, compared_in_doubt, added, added_in_doubt } = tally.into_inner().unwrap();
    let distinct: BTreeSet<_> = won.iter().collect();
    assert_eq!(distinct.len(), won.len(), "two writers have set the same value: {won:?}");
    let (sure, compared) = (won.len() as i64, way.number(&way.direct, "counter", "compared").await);
    // Of a write that came twice, the answer to the second says that the condition does not hold.
    let echoed = way.proxy.count(Echo) as i64;
    let most = sure + compared_in_doubt + echoed;
    assert!((sure..=most).contains(&compared), "{compared}, of which {sure} are certain, {most} possible");
    assert!(distinct.last().is_some_and(|last| **last <= compared), "{won:?}, {compared}");
    let sum = way.number(&way.direct, "counter", "added").await;
    assert!((added..=added + added_in_doubt).contains(&sum), "{sum}: {added} and {added_in_doubt} in doubt");
    assert!(compared_in_doubt > 0 && added_in_doubt > 0, "no doubt: {compared_in_doubt}, {added_in_doubt}");
}

/// Transactions that count up two numbers, with tokens and without.
async fn transact(way: &Way, worker: usize, count: usize) -> i64 {
    let mut done = 0;
    for number in 0..count {
        let step = |key: &str| (way.table.clone(), Write::update(id(key), Update::new().add("n", 1)));
        for round in 0.. {
            let token = (number % 2 == 0).then(|| Token::new(format!("{worker}-{number}-{round}")).unwrap());
            match way.faulty.transact_write(vec![step("one"), step("other")], token).await {
                Ok(()) => {
                    done += 1;
                    break;
                }
                // Others are at work on the same items.
                Err(Error::TransactionConflict | Error::TransactionCancelled { .. }) => {}
                Err(error) => panic!("a transaction that may be repeated failed: {error:?}"),
            }
        }
    }
    done
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_happens_once() {
    let way = Way::to("transactions", chance(33, 30, |_| WITH_LATE)).await;
    for key in ["one", "other"] {
        way.direct.write(&way.table, Write::put(id(key).with("n", 0))).await.unwrap();
    }
    let done: i64 = join_all((0..4).map(|worker| transact(&way, worker, 20))).await.into_iter().sum();
    way.proxy.saw(WITH_LATE);
    for key in ["one", "other"] {
        assert_eq!(way.number(&way.direct, key, "n").await, done, "{key}");
    }
}

/// Writes of one owner, of which each replaces the one before.
async fn replace(way: &Way, owner: usize, rounds: i64) {
    let keys: Vec<_> = (0..4).map(|place| format!("{owner}-{place}")).collect();
    for round in 0..rounds {
        let items = keys.iter().map(|key| (way.table.clone(), Action::Put(id(key).with("n", round))));
        let left = way.faulty.batch_write(items.collect()).await.unwrap();
        assert_eq!(left, [], "a batch was left undone");
        way.faulty.write(&way.table, Write::put(id(&keys[0]).with("n", -round))).await.unwrap();
        way.faulty
            .write(&way.table, Write::update(id(&keys[1]), Update::new().set("n", 2 * round)))
            .await
            .unwrap();
        way.faulty.write(&way.table, Write::delete(id(&keys[2]))).await.unwrap();
        let expected = [Some(-round), Some(2 * round), None, Some(round)];
        for (key, expected) in keys.iter().zip(expected) {
            let item = way.direct.get(&way.table, Get::new(id(key)).consistent()).await.unwrap();
            assert_eq!(item, expected.map(|n| id(key).with("n", n)), "{key} in round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_be_repeated_is_done_when_it_says_so() {
    let way = Way::to("replaced", chance(34, 30, |_| ALL)).await;
    join_all((0..4).map(|owner| replace(&way, owner, 12))).await;
    way.proxy.saw(ALL);
}

/// A table is made, changed and removed, and each of these calls has the fault once.
async fn live(local: &Peer, fault: Fault) {
    let proxy = Proxy::start(local.address(), once_each(fault, CHANGES)).await;
    let tables = Tables::new(&proxy.connect(ATTEMPT_MAX).await);
    let table = name(&format!("life-{fault:?}"));
    let made = options().with_time_to_live("ends");
    tables.create_table(&table, made.clone()).await.unwrap();
    assert_eq!(tables.create_table(&table, made).await, Err(Error::TableExists(table.clone())), "{fault:?}");
    assert_eq!(
        tables.table(&table).await.unwrap().options.time_to_live.as_deref(),
        Some("ends"),
        "{fault:?}"
    );
    tables.alter(&table, Alteration::Changes(Some(ChangeView::New))).await.unwrap();
    let key = KeySchema::hash("other", KeyKind::Text);
    let index = IndexName::new("by-other").unwrap();
    tables.alter(&table, Alteration::AddIndex(IndexOptions::global(index.clone(), key))).await.unwrap();
    let seen = tables.table(&table).await.unwrap().options;
    assert_eq!((seen.changes, seen.indexes.len()), (Some(ChangeView::New), 1), "{fault:?}");
    tables.delete_table(&table).await.unwrap();
    assert_eq!(tables.delete_table(&table).await, Err(Error::TableNotFound(table.clone())), "{fault:?}");
    assert_eq!(proxy.count(fault), CHANGES.len(), "{fault:?} did not happen to every change");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_change_as_they_should_behind_lost_answers() {
    let local = Peer::dynamodb_local().await;
    join_all(OF_CHANGES.iter().map(|fault| live(&local, *fault))).await;
}
