//! Many at once: writers of one item, writers of one name, readers of transactions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;

use super::trial::{Trial, id};
use crate::laws::trial::give_way;
use crate::table::expression::missing;
use crate::table::{Get, Item, Returning, Update, Value, Write, path};
use crate::{Error, NextMove, TableName};

const WRITERS: usize = 64;
const ROUNDS: usize = 8;
/// How often a writer tries again before the law calls it stuck.
const TRIES_MAX: usize = 100_000;

fn count(trial: &Trial, item: Option<&Item>, name: &str) -> i128 {
    match item.and_then(|item| item.get(name)) {
        Some(Value::Number(number)) => number.as_i128().unwrap_or_else(|| trial.fail("a count is not whole")),
        other => trial.fail(format!("a count is {other:?}")),
    }
}

/// What 64 writers add, one by one, adds up; so does what they add only if nobody was faster.
pub async fn counters_of_many_writers_are_exact(trial: Trial) {
    let trial = Arc::new(trial);
    let table = trial.simple().await;
    trial.put(&table, id("counter").with("added", 0).with("compared", 0)).await;
    let writers = (0..WRITERS).map(|_| trial.spawn(count_up(trial.clone(), table.clone())));
    join_all(writers.collect::<Vec<_>>()).await;
    let item = trial.get(&table, id("counter")).await;
    let expected = (WRITERS * ROUNDS) as i128;
    trial.same("what was added", count(&trial, item.as_ref(), "added"), expected);
    trial.same("what was compared and set", count(&trial, item.as_ref(), "compared"), expected);
}

async fn count_up(trial: Arc<Trial>, table: TableName) {
    for _ in 0..ROUNDS {
        let add = Write::update(id("counter"), Update::new().add("added", 1)).returning(Returning::New);
        let mut item = trial.write(&table, add).await;
        for tries in 0.. {
            trial.holds(tries < TRIES_MAX, "a writer never wins");
            // Between looking and writing somebody else may come.
            give_way().await;
            let seen = count(&trial, item.as_ref(), "compared");
            let update = Update::new().set("compared", seen as i64 + 1);
            let write = Write::update(id("counter"), update).when(path("compared").equals(seen as i64));
            match trial.store().write(&table, write.showing_item()).await {
                Ok(_) => break,
                Err(Error::ConditionFailed { item: shown }) => item = shown,
                Err(error) => trial.fail(format!("a conditional write failed: {error}")),
            }
        }
    }
}

/// Of many who write what must not be there yet, one succeeds.
pub async fn one_of_many_conditional_writes_wins(trial: Trial) {
    let trial = Arc::new(trial);
    let table = trial.simple().await;
    for round in 0..5 {
        let won = Arc::new(AtomicUsize::new(0));
        let tasks = (0..16).map(|writer| {
            let (trial, table, won) = (trial.clone(), table.clone(), won.clone());
            trial.clone().spawn(async move {
                let item = id(&format!("lock-{round}")).with("owner", writer);
                let write = Write::put(item).when(missing("id"));
                match trial.store().write(&table, write).await {
                    Ok(_) => drop(won.fetch_add(1, Ordering::SeqCst)),
                    Err(Error::ConditionFailed { .. }) => {}
                    Err(error) => trial.fail(format!("a conditional write failed: {error}")),
                }
            })
        });
        join_all(tasks.collect::<Vec<_>>()).await;
        trial.same("how many succeeded", won.load(Ordering::SeqCst), 1);
    }
}

/// While money moves between accounts, whoever reads all of them in a transaction sees the same sum.
pub async fn readers_see_whole_transactions(trial: Trial) {
    const ACCOUNTS: usize = 5;
    const MONEY: i32 = 100;
    let trial = Arc::new(trial);
    let table = trial.simple().await;
    trial.put_all(&table, (0..ACCOUNTS).map(|n| account(n).with("money", MONEY))).await;
    let mut tasks = Vec::new();
    for writer in 0..4 {
        let (trial, table) = (trial.clone(), table.clone());
        tasks.push(trial.clone().spawn(async move {
            for step in 0..25 {
                let (from, to) = ((writer + step) % ACCOUNTS, (writer + step * 2 + 1) % ACCOUNTS);
                if from != to {
                    transfer(&trial, &table, from, to).await;
                }
                give_way().await;
            }
        }));
    }
    for _ in 0..2 {
        let (trial, table) = (trial.clone(), table.clone());
        tasks.push(trial.clone().spawn(async move {
            for _ in 0..50 {
                let sum = read_sum(&trial, &table, ACCOUNTS).await;
                trial.same("the sum of all accounts", sum, i128::from(MONEY) * ACCOUNTS as i128);
                give_way().await;
            }
        }));
    }
    join_all(tasks).await;
    let sum: i128 = trial.contents(&table).await.iter().map(|item| count(&trial, Some(item), "money")).sum();
    trial.same("the sum in the end", sum, i128::from(MONEY) * ACCOUNTS as i128);
}

fn account(number: usize) -> Item {
    id(&format!("account-{number}"))
}

async fn transfer(trial: &Trial, table: &TableName, from: usize, to: usize) {
    let take = Write::update(account(from), Update::new().add("money", -1)).when(path("money").above(0));
    let give = Write::update(account(to), Update::new().add("money", 1));
    let writes = vec![(table.clone(), take), (table.clone(), give)];
    for _ in 0..TRIES_MAX {
        match trial.store().transact_write(writes.clone(), None).await {
            Ok(()) => return,
            Err(error) if error.next_move() == NextMove::Retry => give_way().await,
            Err(Error::TransactionCancelled { .. }) => return,
            Err(error) => trial.fail(format!("a transaction failed: {error}")),
        }
    }
    trial.fail("a transaction never goes through")
}

async fn read_sum(trial: &Trial, table: &TableName, accounts: usize) -> i128 {
    let gets: Vec<_> = (0..accounts).map(|n| (table.clone(), Get::new(account(n)))).collect();
    for _ in 0..TRIES_MAX {
        match trial.store().transact_get(gets.clone()).await {
            Ok(items) => return items.iter().map(|item| count(trial, item.as_ref(), "money")).sum(),
            Err(error) if error.next_move() == NextMove::Retry => give_way().await,
            Err(error) => trial.fail(format!("a transaction of reads failed: {error}")),
        }
    }
    trial.fail("a transaction of reads never goes through")
}
