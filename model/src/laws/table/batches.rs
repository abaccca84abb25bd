//! Batches: many items in one call, each on its own.

use super::trial::{Trial, at, id, sorted};
use crate::TableName;
use crate::limits::BATCH_GET_BYTES_MAX;
use crate::table::{Action, Get, Got, Item, Projection};

/// The answers stand in the order of the questions, across tables, and say what is missing.
pub async fn a_batch_of_reads_answers_in_order(trial: Trial) {
    let (one, other) = (trial.simple().await, trial.grouped().await);
    trial.put_all(&one, (0..60).map(|n| id(&format!("{n}")).with("n", n))).await;
    trial.put_all(&other, (0..40).map(|n| at("g", n).with("n", n).with("more", true))).await;
    let mut gets = Vec::new();
    let mut expected = Vec::new();
    for n in (0..50).rev() {
        gets.push((one.clone(), Get::new(id(&format!("{}", n * 2))).consistent()));
        let item = id(&format!("{}", n * 2)).with("n", n * 2);
        expected.push(if n * 2 < 60 { Got::Item(item) } else { Got::Missing });
        gets.push((other.clone(), Get::new(at("g", n)).consistent().only(Projection::of(["n"]))));
        expected.push(if n < 40 { Got::Item(Item::new().with("n", n)) } else { Got::Missing });
    }
    trial.same("a batch of 100", trial.ok("a batch", trial.store().batch_get(gets).await), expected);
}

/// When 16 MiB are found, the rest is not read but named, and can be asked for again.
pub async fn a_batch_of_reads_leaves_the_rest(trial: Trial) {
    let table = trial.simple().await;
    let large = |n: usize| id(&format!("{n:03}")).with("data", "x".repeat(350 << 10));
    trial.put_all(&table, (0..60).map(large)).await;
    let mut left: Vec<usize> = (0..60).collect();
    let mut rounds = 0;
    while !left.is_empty() {
        let gets =
            left.iter().map(|n| (table.clone(), Get::new(id(&format!("{n:03}"))).consistent())).collect();
        let got = trial.ok("a batch", trial.store().batch_get(gets).await);
        trial.same("answers", got.len(), left.len());
        let bytes: usize =
            got.iter().map(|got| if let Got::Item(item) = got { item.size() } else { 0 }).sum();
        trial.holds(bytes <= BATCH_GET_BYTES_MAX, format!("a batch returned {bytes} bytes"));
        let mut rest = Vec::new();
        for (n, got) in left.iter().zip(&got) {
            match got {
                Got::Item(item) => trial.holds(*item == large(*n), format!("item {n} is not what it was")),
                Got::Missing => trial.fail(format!("item {n} is missing")),
                Got::NotRead => rest.push(*n),
            }
        }
        trial.holds(rest.len() < left.len(), "a batch read nothing");
        (left, rounds) = (rest, rounds + 1);
    }
    trial.holds(rounds > 1, "20 MiB came in one batch");
}

/// A batch puts and deletes across tables; what it leaves undone is done by sending it again.
pub async fn a_batch_writes_and_deletes(trial: Trial) {
    let (one, other) = (trial.simple().await, trial.grouped().await);
    trial.put_all(&one, (0..5).map(|n| id(&format!("old-{n}")))).await;
    trial.put(&other, at("g", 1).with("old", true)).await;
    let mut writes: Vec<(TableName, Action)> =
        (0..19).map(|n| (one.clone(), Action::Put(id(&format!("new-{n:02}"))))).collect();
    writes.extend((0..4).map(|n| (one.clone(), Action::Delete(id(&format!("old-{n}"))))));
    writes.push((one.clone(), Action::Delete(id("nothing"))));
    writes.push((other.clone(), Action::Put(at("g", 1).with("new", true))));
    trial.same("writes in the batch", writes.len(), 25);
    while !writes.is_empty() {
        let before = writes.len();
        writes = trial.ok("a batch", trial.store().batch_write(writes).await);
        trial.holds(writes.len() < before, "a batch did nothing");
    }
    let mut expected: Vec<_> = (0..19).map(|n| id(&format!("new-{n:02}"))).collect();
    expected.push(id("old-4"));
    trial.same("the one table", trial.contents(&one).await, sorted(expected));
    trial.same("the other table", trial.contents(&other).await, vec![at("g", 1).with("new", true)]);
}
