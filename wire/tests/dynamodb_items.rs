//! Items of DynamoDB over HTTP: what clients cannot send, and what many clients do at once.

mod harness;

use harness::{Harness, json_request};
use http::StatusCode;
use serde_json::{Value, json};

async fn call(harness: &Harness, operation: &str, body: Value) -> (StatusCode, Value) {
    harness.call(&format!("DynamoDB_20120810.{operation}"), body).await
}

async fn done(harness: &Harness, operation: &str, body: Value) -> Value {
    let (status, value) = call(harness, operation, body).await;
    assert_eq!(status, StatusCode::OK, "{operation}: {value}");
    value
}

/// The code and the message of a refusal.
async fn refused(harness: &Harness, operation: &str, body: Value) -> (String, String) {
    let (status, value) = call(harness, operation, body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{operation}: {value}");
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let code = text("__type");
    let code = code.strip_prefix("com.amazonaws.dynamodb.v20120810#").expect("the namespace").to_owned();
    (code, text("message"))
}

async fn invalid(harness: &Harness, operation: &str, body: Value) -> String {
    let (code, message) = refused(harness, operation, body).await;
    assert_eq!(code, "ValidationException", "{message}");
    message
}

async fn make(harness: &Harness, table: &str) {
    let body = json!({
        "TableName": table, "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    });
    done(harness, "CreateTable", body).await;
}

fn key(id: &str) -> Value {
    json!({"id": {"S": id}})
}

async fn get(harness: &Harness, table: &str, id: &str) -> Value {
    done(harness, "GetItem", json!({"TableName": table, "Key": key(id), "ConsistentRead": true})).await["Item"].clone()
}

#[tokio::test]
async fn malformed_bodies_change_nothing() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    let item = |value: &str| format!(r#"{{"TableName":"items","Item":{{"id":{{"S":"a"}},"v":{value}}}}}"#);
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!("{}{}{}", r#"{"L":["#.repeat(70), r#"{"S":"x"}"#, "]}".repeat(70));
    let bodies = [
        "{".to_owned(),
        "null".to_owned(),
        "\"x\"".to_owned(),
        "{} {}".to_owned(),
        "\u{0}".to_owned(),
        deep.clone(),
        item("1"),
        item("null"),
        item(r#"{"S":1}"#),
        item(r#"{"N":1}"#),
        item(r#"{"B":"***"}"#),
        item(r#"{"L":{}}"#),
        item(r#"{"M":[]}"#),
        item(r#"{"S":"\ud800"}"#),
        item(&deep),
        item(&nested),
        r#"{"TableName":1,"Item":{}}"#.to_owned(),
        r#"{"TableName":"items","Item":[]}"#.to_owned(),
    ];
    for body in bodies {
        let shown: String = body.chars().take(80).collect();
        let (status, _, answer) = harness.exchange(json_request("DynamoDB_20120810.PutItem", body)).await;
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert_eq!(status, StatusCode::BAD_REQUEST, "{shown}: {answer}");
        assert!(
            answer["__type"].as_str().is_some_and(|code| code.ends_with("#SerializationException")),
            "{shown}: {answer}"
        );
    }
    let (status, _, _) = harness.exchange(json_request("DynamoDB_20120810.PutItem", vec![0xff, 0xfe])).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let count = done(&harness, "Scan", json!({"TableName": "items", "Select": "COUNT"})).await;
    assert_eq!(count["Count"], 0);
}

#[tokio::test]
async fn items_are_as_large_and_as_deep_as_the_service_allows() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    let put = |value: Value| json!({"TableName": "items", "Item": {"id": {"S": "a"}, "v": value}});
    let text = |bytes: usize| json!({"S": "x".repeat(bytes)});
    // The names and the key take four bytes.
    let largest = 400 * 1024 - 4;
    done(&harness, "PutItem", put(text(largest))).await;
    let message = invalid(&harness, "PutItem", put(text(largest + 1))).await;
    assert_eq!(message, "Item size has exceeded the maximum allowed size");
    let add = json!({"TableName": "items", "Key": key("a"), "UpdateExpression": "SET w = :w",
        "ExpressionAttributeValues": {":w": {"S": "x"}}});
    let message = invalid(&harness, "UpdateItem", add).await;
    assert_eq!(message, "Item size to update has exceeded the maximum allowed size");
    let nested = |levels: usize| (0..levels).fold(json!({"S": "x"}), |inner, _| json!({"L": [inner]}));
    done(&harness, "PutItem", put(nested(32))).await;
    assert!(invalid(&harness, "PutItem", put(nested(33))).await.starts_with("Nesting Levels have exceeded"));
    assert_eq!(get(&harness, "items", "a").await["v"], nested(32), "the refused ones changed nothing");
}

#[tokio::test]
async fn counters_that_many_raise_lose_nothing() {
    let harness = std::sync::Arc::new(Harness::start().await);
    make(&harness, "items").await;
    let mut tasks = tokio::task::JoinSet::new();
    for worker in 0..8 {
        let harness = harness.clone();
        tasks.spawn(async move {
            let mut won = 0;
            for _ in 0..25 {
                done(
                    &harness,
                    "UpdateItem",
                    json!({"TableName": "items", "Key": key("sum"),
                    "UpdateExpression": "ADD n :one SET w = if_not_exists(w, :w)",
                    "ExpressionAttributeValues": {":one": {"N": "1"}, ":w": {"N": worker.to_string()}}}),
                )
                .await;
                let (status, _) = call(
                    &harness,
                    "PutItem",
                    json!({"TableName": "items", "Item": key("lock"),
                    "ConditionExpression": "attribute_not_exists(id)"}),
                )
                .await;
                won += usize::from(status == StatusCode::OK);
            }
            won
        });
    }
    assert_eq!(tasks.join_all().await.into_iter().sum::<usize>(), 1, "one of two hundred gets the lock");
    assert_eq!(get(&harness, "items", "sum").await["n"], json!({"N": "200"}));
}

#[tokio::test]
async fn what_was_acknowledged_survives() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    for id in 0..20 {
        done(&harness, "PutItem", json!({"TableName": "items", "Item": key(&id.to_string())})).await;
    }
    let transaction = json!({"ClientRequestToken": "once", "TransactItems": [
        {"Put": {"TableName": "items", "Item": key("t"), "ConditionExpression": "attribute_not_exists(id)"}},
        {"Delete": {"TableName": "items", "Key": key("0")}}]});
    done(&harness, "TransactWriteItems", transaction.clone()).await;
    let harness = harness.crash().await;
    let count = done(&harness, "Scan", json!({"TableName": "items", "Select": "COUNT"})).await;
    assert_eq!(count["Count"], 20);
    done(&harness, "TransactWriteItems", transaction).await;
    let (code, _) = refused(
        &harness,
        "TransactWriteItems",
        json!({"ClientRequestToken": "once", "TransactItems": [
        {"Delete": {"TableName": "items", "Key": key("1")}}]}),
    )
    .await;
    assert_eq!(code, "IdempotentParameterMismatchException");
}

/// The words of the model become those of the service; should the model change its own, this is where it shows.
#[tokio::test]
async fn updates_that_do_not_fit_the_item_are_told_in_the_words_of_the_service() {
    let harness = Harness::start().await;
    let body = json!({
        "TableName": "items", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "x", "AttributeType": "S"}],
        "GlobalSecondaryIndexes": [{"IndexName": "by-x", "Projection": {"ProjectionType": "ALL"},
            "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}]}],
    });
    done(&harness, "CreateTable", body).await;
    let item =
        json!({"id": {"S": "a"}, "s": {"S": "x"}, "n": {"N": "9e125"}, "l": {"L": []}, "ss": {"SS": ["a"]}});
    done(&harness, "PutItem", json!({"TableName": "items", "Item": item})).await;
    let path = "The document path provided in the update expression is invalid for update";
    let missing = "The provided expression refers to an attribute that does not exist in the item";
    let kind = "An operand in the update expression has an incorrect data type";
    let overflow = "Number overflow. Attempting to store a number with magnitude larger than supported range";
    let index = "The update expression attempted to update the secondary index key to unsupported type";
    for (expression, value, words) in [
        ("SET q.r = :v", json!({"N": "1"}), path),
        ("SET s.r = :v", json!({"N": "1"}), path),
        ("SET l.r = :v", json!({"N": "1"}), path),
        ("SET s[0] = :v", json!({"N": "1"}), path),
        ("SET q = r, w = :v", json!({"N": "1"}), missing),
        ("SET q = r + :v", json!({"N": "1"}), missing),
        ("SET q = s + :v", json!({"N": "1"}), kind),
        ("SET q = list_append(s, :v)", json!({"L": []}), kind),
        ("ADD s :v", json!({"N": "1"}), kind),
        ("ADD ss :v", json!({"N": "1"}), kind),
        ("DELETE ss :v", json!({"NS": ["1"]}), kind),
        ("ADD n :v", json!({"N": "9e125"}), overflow),
        ("SET x = :v", json!({"N": "1"}), index),
    ] {
        let body = json!({"TableName": "items", "Key": key("a"), "UpdateExpression": expression,
            "ExpressionAttributeValues": {":v": value}});
        assert_eq!(invalid(&harness, "UpdateItem", body.clone()).await, words, "{expression}");
        let (status, value) =
            call(&harness, "TransactWriteItems", json!({"TransactItems": [{"Update": body}]})).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        let reason = &value["CancellationReasons"][0];
        assert_eq!(*reason, json!({"Code": "ValidationError", "Message": words}), "{expression}: {value}");
    }
    assert_eq!(get(&harness, "items", "a").await["s"], json!({"S": "x"}));
}

#[tokio::test]
async fn everything_wrong_with_a_call_is_told() {
    let harness = Harness::start().await;
    let message =
        invalid(&harness, "PutItem", json!({"ReturnValues": "X", "ReturnConsumedCapacity": "Y"})).await;
    assert!(message.starts_with("4 validation errors detected: Value null at 'tableName'"), "{message}");
    for operation in [
        "PutItem",
        "GetItem",
        "UpdateItem",
        "DeleteItem",
        "Query",
        "Scan",
        "DescribeTable",
        "DeleteTable",
        "UpdateTable",
        "CreateTable",
        "BatchGetItem",
        "BatchWriteItem",
        "TransactGetItems",
        "TransactWriteItems",
        "UpdateTimeToLive",
        "DescribeTimeToLive",
        "TagResource",
        "UntagResource",
        "ListTagsOfResource",
    ] {
        let message = invalid(&harness, operation, json!({})).await;
        assert!(message.contains("Member must not be null"), "{operation}: {message}");
    }
    for operation in ["Nothing", "", "putItem", "ExecuteStatement"] {
        assert_eq!(refused(&harness, operation, json!({})).await.0, "UnknownOperationException");
    }
}
