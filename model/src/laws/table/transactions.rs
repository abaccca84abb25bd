//! Transactions: all or nothing, once.

use super::trial::{Trial, at, id};
use crate::laws::trial::NO_CLOCK;
use crate::limits::TRANSACTION_TOKEN_LIFE;
use crate::table::expression::{exists, missing};
use crate::table::{Get, Item, Projection, Token, Update, Value, Write, path};
use crate::{Cancelled, Error, TableName};

/// Everything in a transaction happens, across tables, and a transaction reads it.
pub async fn a_transaction_happens_as_a_whole(trial: Trial) {
    let (one, other) = (trial.simple().await, trial.grouped().await);
    trial.put_all(&one, [id("gone"), id("changed").with("n", 1), id("checked").with("n", 5)]).await;
    let mut writes: Vec<(TableName, Write)> = vec![
        (one.clone(), Write::delete(id("gone")).when(exists("id"))),
        (one.clone(), Write::update(id("changed"), Update::new().add("n", 1)).when(path("n").equals(1))),
        (one.clone(), Write::check_that(id("checked"), path("n").above(4))),
        (one.clone(), Write::check_that(id("nothing"), missing("id"))),
    ];
    writes.extend((0..96).map(|n| (other.clone(), Write::put(at("g", n)).when(missing("group")))));
    trial.ok("a transaction of 100", trial.store().transact_write(writes, None).await);
    let expected = vec![id("changed").with("n", 2), id("checked").with("n", 5)];
    trial.same(
        "the one table",
        super::trial::sorted(trial.contents(&one).await),
        super::trial::sorted(expected),
    );
    trial.same("the other table", trial.contents(&other).await.len(), 96);
    let gets = vec![
        (other.clone(), Get::new(at("g", 95)).only(Projection::of(["at"]))),
        (one.clone(), Get::new(id("gone"))),
        (one.clone(), Get::new(id("changed"))),
    ];
    let seen = trial.ok("a transaction of reads", trial.store().transact_get(gets).await);
    let expected = vec![Some(Item::new().with("at", 95)), None, Some(id("changed").with("n", 2))];
    trial.same("what a transaction reads", seen, expected);
}

/// A transaction with a part that cannot be done changes nothing, and says of each part what was in the way.
pub async fn a_cancelled_transaction_changes_nothing(trial: Trial) {
    let table = trial.simple().await;
    trial.put_all(&table, [id("a").with("n", 1), id("b").with("n", 2), id("t").with("n", "text")]).await;
    let before = trial.contents(&table).await;
    let never = || path("n").equals(77);
    let writes = vec![
        (table.clone(), Write::put(id("new"))),
        (table.clone(), Write::put(id("a")).when(never()).showing_item()),
        (table.clone(), Write::delete(id("b")).when(never())),
        (table.clone(), Write::check_that(id("missing"), exists("id")).showing_item()),
        (table.clone(), Write::update(id("t"), Update::new().add("n", 1))),
        (table.clone(), Write::check_that(id("fine"), missing("id"))),
    ];
    let error = trial.store().transact_write(writes, None).await.err();
    let Some(Error::TransactionCancelled { reasons }) = error else {
        trial.fail(format!("a transaction that cannot happen gave {error:?}"))
    };
    let shown = Cancelled::ConditionFailed { item: Some(id("a").with("n", 1)) };
    let hidden = Cancelled::ConditionFailed { item: None };
    trial.same("the number of reasons", reasons.len(), 6);
    trial.same(
        "the first reasons",
        &reasons[..4],
        &[None, Some(shown), Some(hidden.clone()), Some(hidden)][..],
    );
    trial.holds(
        matches!(reasons[4], Some(Cancelled::Invalid(_))),
        format!("a bad update gave {:?}", reasons[4]),
    );
    trial.same("the last reason", &reasons[5], &None);
    trial.same("the table", trial.contents(&table).await, before);
}

fn bump(table: &TableName, by: i32) -> Vec<(TableName, Write)> {
    vec![(table.clone(), Write::update(id("counter"), Update::new().add("n", by)))]
}

/// A transaction that is sent again with its token succeeds without effect; another one with that token is refused.
pub async fn a_token_makes_a_transaction_happen_once(trial: Trial) {
    let table = trial.with_tokens().await;
    let store = trial.store();
    let [first, second, third] = [
        trial.token(&table, "first").await,
        trial.token(&table, "second").await,
        trial.token(&table, "third").await,
    ];
    for _ in 0..3 {
        trial.ok("a transaction", store.transact_write(bump(&table, 1), Some(first.clone())).await);
    }
    let counter = |n: i32| Some(id("counter").with("n", n));
    trial.same("the counter", trial.get(&table, id("counter")).await, counter(1));
    let other = store.transact_write(bump(&table, 2), Some(first.clone())).await;
    trial.refused("another transaction with the token", other, |error| *error == Error::TokenReused);
    trial.ok("a transaction", store.transact_write(bump(&table, 1), Some(second.clone())).await);
    trial.ok("a transaction without token", store.transact_write(bump(&table, 1), None).await);
    trial.same("the counter", trial.get(&table, id("counter")).await, counter(3));
    // What did not happen can be tried again under its token.
    let guarded = |n: i32| vec![(table.clone(), bump(&table, 1).swap_remove(0).1.when(path("n").equals(n)))];
    let failed = store.transact_write(guarded(9), Some(third.clone())).await;
    trial.refused("a cancelled one", failed, |error| matches!(error, Error::TransactionCancelled { .. }));
    trial.put(&table, id("counter").with("n", 9)).await;
    trial.ok("the same again", store.transact_write(guarded(9), Some(third.clone())).await);
    trial.ok("and again", store.transact_write(guarded(9), Some(third.clone())).await);
    trial.same("the counter", trial.get(&table, id("counter")).await, counter(10));
    trial.refused("an empty token", Token::new(""), |error| matches!(error, Error::Invalid(_)));
    trial.refused("a long token", Token::new("x".repeat(37)), |error| matches!(error, Error::Invalid(_)));
}

/// After ten minutes a token is new again.
pub async fn a_token_is_forgotten(trial: Trial) {
    if !trial.can_advance() {
        return trial.skip(NO_CLOCK);
    }
    let table = trial.with_tokens().await;
    let (store, token) = (trial.store(), trial.token(&table, "token").await);
    trial.ok("a transaction", store.transact_write(bump(&table, 1), Some(token.clone())).await);
    trial.advance(TRANSACTION_TOKEN_LIFE - std::time::Duration::from_secs(60)).await;
    trial.ok("within ten minutes", store.transact_write(bump(&table, 1), Some(token.clone())).await);
    trial.advance(std::time::Duration::from_secs(120)).await;
    trial.ok("after ten minutes", store.transact_write(bump(&table, 5), Some(token.clone())).await);
    let seen = trial.get(&table, id("counter")).await.and_then(|item| item.get("n").cloned());
    trial.same("the counter", seen, Some(Value::from(6)));
}
