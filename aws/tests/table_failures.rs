//! What callers of tables see when DynamoDB answers late, in part, or not at all: nothing that a condition forbids happens
//! twice, and what was left undone is done or named.

mod peer;

use std::sync::{Arc, Mutex};

use anabranch_aws::Tables;
use anabranch_model::table::expression::{exists, missing};
use anabranch_model::table::{
    Action, Get, Got, Item, KeyKind, KeySchema, Projection, Returning, TableOptions, Token, Update, Write,
};
use anabranch_model::{Cancelled, Error, NextMove, TableName, TableStore};
use peer::connect;
use peer::stub::{Answer, Stub};

fn table() -> TableName {
    TableName::new("clicks").expect("a name")
}

fn id(id: &str) -> Item {
    Item::new().with("id", id)
}

/// A server with one table, which gives these answers one after the other, and the last one from then on; and what it was
/// asked beside how the table is made.
struct Scripted {
    stub: Stub,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    async fn start(answers: impl IntoIterator<Item = Answer>) -> Scripted {
        let answers: Vec<_> = answers.into_iter().collect();
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let noted = bodies.clone();
        let stub = Stub::start(move |operation, body| {
            if operation == "describetable" {
                return described("ACTIVE", 0);
            }
            let mut bodies = noted.lock().expect("the bodies");
            bodies.push(body.to_string());
            answers[(bodies.len() - 1).min(answers.len() - 1)].clone()
        })
        .await;
        Scripted { stub, bodies }
    }

    async fn tables(&self) -> Tables {
        Tables::new(&connect(&self.stub.endpoint()).await)
    }

    fn bodies(&self) -> Vec<String> {
        self.bodies.lock().expect("the bodies").clone()
    }
}

fn refused(code: &str, message: &str) -> Answer {
    Answer::failure(400, &format!("com.amazonaws.dynamodb.v20120810#{code}"), message)
}

#[tokio::test]
async fn a_write_that_may_have_happened_is_repeated_only_if_that_changes_nothing() {
    let bump = || Write::update(id("a"), Update::new().add("n", 1));
    for (write, repeats) in [
        (Write::put(id("a")), true),
        (Write::delete(id("a")), true),
        (Write::update(id("a"), Update::new().set("n", 1)), true),
        (Write::put(id("a")).when(missing("id")), false),
        (Write::delete(id("a")).when(exists("id")), false),
        (Write::put(id("a")).returning(Returning::Old), false),
        (bump(), false),
        (bump().when(exists("id")), false),
    ] {
        for lost in [Answer::Closed, Answer::Cut, Answer::failure(500, "InternalServerError", "oops")] {
            let server = Scripted::start([lost.clone(), Answer::ok("{}")]).await;
            let written = server.tables().await.write(&table(), write.clone()).await;
            let calls = server.bodies().len();
            if repeats {
                assert_eq!((written, calls), (Ok(None), 2), "{write:?} after {lost:?}");
                continue;
            }
            let error = written.expect_err("nobody knows what happened");
            assert_eq!((error.next_move(), calls), (NextMove::Retry, 1), "{write:?} after {lost:?}: {error}");
            assert!(error.to_string().contains("is not known"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_write_that_was_not_begun_is_repeated_whatever_its_condition() {
    let busy = refused("ProvisionedThroughputExceededException", "slow down");
    let server = Scripted::start([busy.clone(), busy, Answer::ok("{}")]).await;
    let write = Write::put(id("a")).when(missing("id"));
    assert_eq!(server.tables().await.write(&table(), write).await, Ok(None));
    assert_eq!(server.bodies().len(), 3);
}

#[tokio::test]
async fn a_condition_that_does_not_hold_shows_what_was_found() {
    let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException",
        "message":"The conditional request failed","Item":{"id":{"S":"a"},"n":{"N":"1E1"}}}"#;
    let server = Scripted::start([Answer::Full(400, Vec::new(), body.to_string())]).await;
    let write = Write::delete(id("a")).when(missing("id")).showing_item();
    let expected = Error::ConditionFailed { item: Some(id("a").with("n", 10)) };
    assert_eq!(server.tables().await.write(&table(), write).await, Err(expected));
    assert!(server.bodies()[0].contains(r#""ReturnValuesOnConditionCheckFailure":"ALL_OLD""#));
}

/// The token in the body of a transaction.
fn token(body: &str) -> String {
    let (_, rest) = body.split_once(r#""ClientRequestToken":""#).expect("a token");
    rest.split_once('"').expect("its end").0.to_string()
}

#[tokio::test]
async fn a_transaction_is_repeated_under_one_token() {
    let busy = refused("TransactionInProgressException", "the transaction is in progress");
    let server = Scripted::start([Answer::Closed, busy, Answer::ok("{}")]).await;
    let tables = server.tables().await;
    let writes = || vec![(table(), Write::update(id("a"), Update::new().add("n", 1)).when(exists("id")))];
    tables.transact_write(writes(), None).await.expect("a success in the end");
    tables.transact_write(writes(), None).await.expect("another one");
    let tokens: Vec<_> = server.bodies().iter().map(|body| token(body)).collect();
    assert_eq!(tokens.len(), 4);
    assert!(tokens[0] == tokens[1] && tokens[1] == tokens[2], "{tokens:?}");
    assert_ne!(tokens[2], tokens[3], "two transactions have one token");
}

#[tokio::test]
async fn a_transaction_is_written_in_the_same_words_every_time() {
    let server = Scripted::start([Answer::ok("{}")]).await;
    let tables = server.tables().await;
    let token = || Some(Token::new("once").expect("a token"));
    for _ in 0..6 {
        let update =
            Update::new().set("one", "1/2 \u{7f} \"ö\"").set("two", 2).set("three", 3).remove("four");
        let put = id("b").with("five", 5).with("six", 6).with("seven", 7);
        let writes = vec![
            (table(), Write::update(id("a"), update).when(missing("eight"))),
            (table(), Write::put(put)),
        ];
        tables.transact_write(writes, token()).await.expect("the stub takes everything");
    }
    let bodies = server.bodies();
    assert!(bodies.iter().all(|body| *body == bodies[0]), "{bodies:#?}");
    assert!(bodies[0].contains("seven") && bodies[0].contains("1/2"), "{}", bodies[0]);
}

#[tokio::test]
async fn a_cancelled_transaction_tells_the_reason_of_each_part() {
    let body = r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
        "Message":"Transaction cancelled","CancellationReasons":[
        {"Code":"None"},
        {"Code":"ConditionalCheckFailed","Message":"failed","Item":{"id":{"S":"b"}}},
        {"Code":"ConditionalCheckFailed","Message":"failed"},
        {"Code":"TransactionConflict","Message":"busy"},
        {"Code":"ThrottlingError","Message":"slow"},
        {"Code":"ValidationError","Message":"no number"}]}"#;
    let server = Scripted::start([Answer::Full(400, Vec::new(), body.to_string())]).await;
    let tables = server.tables().await;
    let writes = |count: usize| (0..count).map(|n| (table(), Write::put(id(&n.to_string())))).collect();
    let reasons = vec![
        None,
        Some(Cancelled::ConditionFailed { item: Some(id("b")) }),
        Some(Cancelled::ConditionFailed { item: None }),
        Some(Cancelled::Conflict),
        Some(Cancelled::Throttled),
        Some(Cancelled::Invalid("no number".to_string())),
    ];
    let cancelled = tables.transact_write(writes(6), None).await;
    assert_eq!(cancelled, Err(Error::TransactionCancelled { reasons: reasons.clone() }));
    let gets = (0..6).map(|n| (table(), Get::new(id(&n.to_string())))).collect();
    assert_eq!(tables.transact_get(gets).await, Err(Error::TransactionCancelled { reasons }));
    // Reasons that belong to no part are not dealt out.
    let error = tables.transact_write(writes(5), None).await.expect_err("cancelled all the same");
    assert!(matches!(&error, Error::Invalid(text) if text.contains("Transaction cancelled")), "{error:?}");
}

#[tokio::test]
async fn a_token_of_another_transaction_is_told() {
    let server = Scripted::start([refused("IdempotentParameterMismatchException", "other content")]).await;
    let writes = vec![(table(), Write::put(id("a")))];
    assert_eq!(server.tables().await.transact_write(writes, None).await, Err(Error::TokenReused));
}

#[tokio::test]
async fn what_a_batch_of_writes_leaves_is_sent_again() {
    let left = r#"{"UnprocessedItems":{"clicks":[{"PutRequest":{"Item":{"id":{"S":"b"},"n":{"N":"7"}}}}]}}"#;
    let server = Scripted::start([Answer::ok(left), Answer::ok(left), Answer::ok("{}")]).await;
    let writes = vec![
        (table(), Action::Put(id("a"))),
        (table(), Action::Put(id("b").with("n", 7))),
        (table(), Action::Delete(id("c"))),
    ];
    assert_eq!(server.tables().await.batch_write(writes).await, Ok(vec![]));
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 3);
    assert!(bodies[0].contains("DeleteRequest") && !bodies[1].contains("DeleteRequest"), "{bodies:?}");
    assert!(bodies[2].contains(r#"{"S":"b"}"#), "{bodies:?}");
}

#[tokio::test]
async fn what_a_batch_of_reads_leaves_is_asked_for_again() {
    let first = r##"{"Responses":{"clicks":[{"id":{"S":"b"},"n":{"N":"2"}}]},
        "UnprocessedKeys":{"clicks":{"Keys":[{"id":{"S":"a"}}],"ProjectionExpression":"#n0"}}}"##;
    let second = r#"{"Responses":{"clicks":[{"id":{"S":"a"},"n":{"N":"1"}}]},"UnprocessedKeys":{}}"#;
    let server = Scripted::start([Answer::ok(first), Answer::ok(second)]).await;
    let get = |n: &str| (table(), Get::new(id(n)).only(Projection::of(["n"])));
    let got = server.tables().await.batch_get(vec![get("a"), get("missing"), get("b")]).await;
    let n = |n: i32| Got::Item(Item::new().with("n", n));
    assert_eq!(got, Ok(vec![n(1), Got::Missing, n(2)]));
    let bodies = server.bodies();
    assert_eq!(bodies.len(), 2);
    assert!(bodies[0].contains("missing") && !bodies[1].contains("missing"), "{bodies:?}");
}

#[tokio::test]
async fn reads_of_one_table_in_different_ways_are_not_mixed() {
    let stub = Stub::start(|operation, body| {
        if operation == "describetable" {
            return described("ACTIVE", 0);
        }
        let shown = if body.contains("ProjectionExpression") { "" } else { r#","more":{"BOOL":true}"# };
        let item = |id: &str| format!(r#"{{"id":{{"S":"{id}"}},"n":{{"N":"1"}}{shown}}}"#);
        let asked: Vec<_> =
            ["a", "b"].into_iter().filter(|id| body.contains(&format!(r#""{id}""#))).collect();
        let items: Vec<_> = asked.into_iter().map(item).collect();
        Answer::ok(&format!(r#"{{"Responses":{{"clicks":[{}]}},"UnprocessedKeys":{{}}}}"#, items.join(",")))
    })
    .await;
    let tables = Tables::new(&connect(&stub.endpoint()).await);
    let gets = vec![
        (table(), Get::new(id("a")).only(Projection::of(["n"]))),
        (table(), Get::new(id("b")).consistent()),
    ];
    let whole = id("b").with("n", 1).with("more", true);
    let expected = vec![Got::Item(Item::new().with("n", 1)), Got::Item(whole)];
    assert_eq!(tables.batch_get(gets).await, Ok(expected));
    assert_eq!(stub.asked(), ["describetable", "batchgetitem", "batchgetitem"]);
}

fn described(status: &str, created_seconds: u64) -> Answer {
    Answer::ok(&format!(
        r#"{{"Table":{{"TableName":"clicks","TableStatus":"{status}","CreationDateTime":{created_seconds},
        "KeySchema":[{{"AttributeName":"id","KeyType":"HASH"}}],
        "AttributeDefinitions":[{{"AttributeName":"id","AttributeType":"S"}}]}}}}"#
    ))
}

#[tokio::test]
async fn a_table_that_is_being_made_is_not_one_that_does_not_exist() {
    let absent = || refused("ResourceNotFoundException", "Requested resource not found");
    for (description, expected) in
        [(described("CREATING", 0), Error::TableBusy(table())), (absent(), Error::TableNotFound(table()))]
    {
        let stub = Stub::start(move |operation, _| match operation {
            "describetable" => description.clone(),
            _ => absent(),
        })
        .await;
        let tables = Tables::new(&connect(&stub.endpoint()).await);
        assert_eq!(tables.get(&table(), Get::new(id("a"))).await, Err(expected.clone()));
        assert_eq!(tables.batch_get(vec![(table(), Get::new(id("a")))]).await, Err(expected));
    }
}

#[tokio::test]
async fn a_table_that_may_have_been_made_is_ours_if_it_was_not_there_before() {
    for (there_before, expected, calls) in [(false, Ok(()), 2), (true, Err(Error::TableExists(table())), 0)] {
        let asked = Arc::new(Mutex::new(0));
        let count = asked.clone();
        let stub = Stub::start(move |operation, _| {
            let mut asked = count.lock().expect("the count");
            *asked += usize::from(operation == "createtable");
            match (operation, *asked) {
                ("createtable", 1) => Answer::Closed,
                ("createtable", _) => refused("ResourceInUseException", "it exists"),
                // It is not visible at once.
                ("describetable", 0 | 1) if !there_before => {
                    refused("ResourceNotFoundException", "Requested resource not found")
                }
                _ => described("ACTIVE", 0),
            }
        })
        .await;
        let tables = Tables::new(&connect(&stub.endpoint()).await);
        let options = TableOptions::new(KeySchema::hash("id", KeyKind::Text));
        assert_eq!(tables.create_table(&table(), options).await, expected);
        assert_eq!(*asked.lock().expect("the count"), calls, "there before: {there_before}");
    }
}

#[tokio::test]
async fn a_table_with_another_key_is_told_in_words() {
    let words = "The provided key element does not match the schema";
    let server = Scripted::start([refused("ValidationException", words)]).await;
    let error = server.tables().await.get(&table(), Get::new(id("a"))).await.expect_err("another key");
    assert!(matches!(&error, Error::Invalid(text) if text.contains(words)), "{error:?}");
    assert_eq!((error.next_move(), server.bodies().len()), (NextMove::FixCall, 1));
}

#[tokio::test]
async fn names_and_values_never_become_syntax() {
    let server = Scripted::start([Answer::ok("{}")]).await;
    let odd = r#"size) OR #n0 = :v0 --"#;
    let write = Write::put(id("a")).when(exists(odd).and(anabranch_model::table::path(odd).equals(odd)));
    server.tables().await.write(&table(), write).await.expect("the stub takes everything");
    let body = server.bodies().remove(0);
    let expression = r#""ConditionExpression":"attribute_exists(#n0) AND #n0 = :v0""#;
    assert!(body.contains(expression), "{body}");
    assert!(body.contains(&format!(r##""#n0":"{odd}""##)), "{body}");
}

#[tokio::test]
async fn a_table_is_described_once_and_again_before_a_refusal() {
    let stub = Stub::start(|operation, _| match operation {
        "describetable" => described("ACTIVE", 0),
        _ => Answer::ok("{}"),
    })
    .await;
    let tables = Tables::new(&connect(&stub.endpoint()).await);
    for _ in 0..2 {
        assert_eq!(tables.get(&table(), Get::new(id("a"))).await, Ok(None));
    }
    assert_eq!(stub.asked(), ["describetable", "getitem", "getitem"]);
    let other = tables.get(&table(), Get::new(Item::new().with("other", "a"))).await;
    assert!(matches!(other, Err(Error::Invalid(_))), "{other:?}");
    assert_eq!(stub.asked()[3..], ["describetable"], "a refusal needs a fresh look and no call");
}

#[tokio::test]
async fn who_may_not_describe_a_table_may_use_it() {
    let stub = Stub::start(|operation, _| match operation {
        "describetable" => refused("AccessDeniedException", "not authorized"),
        _ => Answer::ok("{}"),
    })
    .await;
    let tables = Tables::new(&connect(&stub.endpoint()).await);
    assert_eq!(tables.get(&table(), Get::new(id("a"))).await, Ok(None));
    assert_eq!(tables.write(&table(), Write::put(id("a"))).await, Ok(None));
}
