//! Items of DynamoDB over HTTP: what clients cannot send, and what many clients do at once.

mod harness;

use harness::{Harness, json_request};
use http::StatusCode;
use serde_json::{Value, json};

async fn call(harness: &Harness, operation: &str, body: Value) -> (StatusCode, Value) {
    harness.call(&format!("DynamoDB_20120810.{operation}"), body).await
}

async fn done(harness: &Harness, operation: &str, body: Value) -> Value {
    harness.done(&format!("DynamoDB_20120810.{operation}"), body).await
}

/// The code and the message of a refusal.
async fn refused(harness: &Harness, operation: &str, body: Value) -> (String, String) {
    let (code, message) = harness.refused(&format!("DynamoDB_20120810.{operation}"), body).await;
    let (namespace, code) = code.split_once('#').expect("a namespace");
    let expected = match code {
        "ValidationException" => "com.amazon.coral.validate",
        "SerializationException" | "UnknownOperationException" => "com.amazon.coral.service",
        _ => "com.amazonaws.dynamodb.v20120810",
    };
    assert_eq!(namespace, expected, "{code}");
    (code.to_owned(), message)
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
    let index = "One or more parameter values were invalid: Type mismatch for Index Key x Expected: S Actual: N IndexName: by-x";
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
        "BatchGetItem",
        "BatchWriteItem",
        "TransactGetItems",
        "TransactWriteItems",
    ] {
        let message = invalid(&harness, operation, json!({})).await;
        assert!(message.contains("Member must not be null"), "{operation}: {message}");
    }
    for operation in ["Nothing", "", "putItem", "ExecuteStatement"] {
        assert_eq!(refused(&harness, operation, json!({})).await.0, "UnknownOperationException");
    }
}

/// A table with a range key and a local index that shows keys only.
async fn make_grouped(harness: &Harness, table: &str) {
    let attribute = |name: &str| json!({"AttributeName": name, "AttributeType": "S"});
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let body = json!({
        "TableName": table, "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [key("id", "HASH"), key("at", "RANGE")],
        "AttributeDefinitions": [attribute("id"), attribute("at"), attribute("x")],
        "LocalSecondaryIndexes": [{"IndexName": "by-x", "KeySchema": [key("id", "HASH"), key("x", "RANGE")],
            "Projection": {"ProjectionType": "KEYS_ONLY"}}],
        "GlobalSecondaryIndexes": [{"IndexName": "all-x", "KeySchema": [key("x", "HASH")],
            "Projection": {"ProjectionType": "ALL"}}],
    });
    done(harness, "CreateTable", body).await;
}

#[tokio::test]
async fn a_page_of_a_local_index_counts_what_it_takes_from_the_table() {
    let harness = Harness::start().await;
    make_grouped(&harness, "items").await;
    for n in 0..8 {
        let item = json!({"id": {"S": "a"}, "at": {"S": n.to_string()}, "x": {"S": n.to_string()},
            "even": {"BOOL": n % 2 == 0}, "data": {"S": "y".repeat(300_000)}});
        done(&harness, "PutItem", json!({"TableName": "items", "Item": item})).await;
    }
    let query = |more: Value| {
        let mut body = json!({"TableName": "items", "IndexName": "by-x", "ReturnConsumedCapacity": "TOTAL",
            "KeyConditionExpression": "id = :a", "ExpressionAttributeValues": {":a": {"S": "a"}}});
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    for more in [json!({"Select": "ALL_ATTRIBUTES"}), json!({"ProjectionExpression": "even"})] {
        let page = done(&harness, "Query", query(more.clone())).await;
        assert_eq!(page["ScannedCount"], 4, "{more}");
        assert_ne!(page["LastEvaluatedKey"], Value::Null, "{more}");
        assert!(
            page["ConsumedCapacity"]["CapacityUnits"].as_f64().is_some_and(|units| units > 100.0),
            "{page}"
        );
    }
    // Each item that is taken from the table is paid for by itself, beside the entries of the index.
    for n in 0..3 {
        let item =
            json!({"id": {"S": "b"}, "at": {"S": n.to_string()}, "x": {"S": n.to_string()}, "y": {"S": "z"}});
        done(&harness, "PutItem", json!({"TableName": "items", "Item": item})).await;
    }
    for (consistent, table, index) in [(false, 1.5, 0.5), (true, 3.0, 1.0)] {
        let small =
            query(json!({"ExpressionAttributeValues": {":a": {"S": "b"}}, "ProjectionExpression": "y",
            "ReturnConsumedCapacity": "INDEXES", "ConsistentRead": consistent}));
        let cost = &done(&harness, "Query", small).await["ConsumedCapacity"];
        assert_eq!(cost["Table"]["CapacityUnits"], table, "{cost}");
        assert_eq!(cost["LocalSecondaryIndexes"]["by-x"]["CapacityUnits"], index, "{cost}");
        assert_eq!(cost["CapacityUnits"], table + index, "{cost}");
    }
    let entries = done(&harness, "Query", query(json!({}))).await;
    assert_eq!((&entries["Count"], &entries["LastEvaluatedKey"]), (&json!(8), &Value::Null));
    assert_eq!(entries["Items"][0].as_object().map(|item| item.len()), Some(3), "keys only: {entries}");
}

#[tokio::test]
async fn a_query_of_an_index_filters_by_what_the_index_shows() {
    let harness = Harness::start().await;
    make_grouped(&harness, "items").await;
    let item =
        json!({"id": {"S": "a"}, "at": {"S": "1"}, "x": {"S": "y"}, "b": {"M": {}}, "c": {"BOOL": true}});
    done(&harness, "PutItem", json!({"TableName": "items", "Item": item})).await;
    let values = json!({":a": {"S": "a"}, ":t": {"BOOL": true}});
    let query = |filter: &str, values: &Value| {
        json!({"TableName": "items", "IndexName": "by-x", "KeyConditionExpression": "id = :a",
            "FilterExpression": filter, "ExpressionAttributeValues": values})
    };
    let hidden = "One or more parameter values were invalid: Secondary index by-x does not project one or more filter \
                  attributes: [b, c]";
    assert_eq!(invalid(&harness, "Query", query("c = :t OR b.deep = :t OR c = :t", &values)).await, hidden);
    let older = json!({"TableName": "items", "IndexName": "by-x",
        "KeyConditions": {"id": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}},
        "QueryFilter": {"b": {"ComparisonOperator": "NOT_NULL"}, "c": {"ComparisonOperator": "NOT_NULL"}}});
    assert_eq!(invalid(&harness, "Query", older).await, hidden);
    // The key of the table is in every index, and may be filtered by where it is not the key of the index.
    let mut shown = query("#at = :one", &json!({":a": {"S": "a"}, ":one": {"S": "1"}}));
    shown["ExpressionAttributeNames"] = json!({"#at": "at"});
    assert_eq!(done(&harness, "Query", shown).await["Count"], 1);
}

#[tokio::test]
async fn a_scan_of_a_local_index_filters_by_what_the_index_shows() {
    let harness = Harness::start().await;
    make_grouped(&harness, "items").await;
    let item = json!({"id": {"S": "a"}, "at": {"S": "1"}, "x": {"S": "y"}, "c": {"BOOL": true}});
    done(&harness, "PutItem", json!({"TableName": "items", "Item": item})).await;
    let scan = |filter: &str, values: Option<Value>, more: Value| {
        let mut body = json!({"TableName": "items", "IndexName": "by-x", "FilterExpression": filter});
        body["ExpressionAttributeValues"] = values.unwrap_or_default();
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        body
    };
    // What is taken from the table for the answer is not there for the filter.
    for more in [json!({}), json!({"Select": "ALL_ATTRIBUTES"}), json!({"ProjectionExpression": "c"})] {
        let hidden = scan("c = :t", Some(json!({":t": {"BOOL": true}})), more.clone());
        let page = done(&harness, "Scan", hidden).await;
        assert_eq!((&page["Count"], &page["ScannedCount"]), (&json!(0), &json!(1)), "{more}");
        let page = done(&harness, "Scan", scan("attribute_not_exists(c)", None, more.clone())).await;
        assert_eq!(page["Count"], 1, "{more}");
    }
    let whole = scan("x = :y", Some(json!({":y": {"S": "y"}})), json!({"Select": "ALL_ATTRIBUTES"}));
    assert_eq!(done(&harness, "Scan", whole).await["Items"], json!([item]));
}

#[tokio::test]
async fn older_key_conditions_stand_beside_expressions() {
    let harness = Harness::start().await;
    make_grouped(&harness, "items").await;
    let item = json!({"id": {"S": "a"}, "at": {"S": "1"}, "n": {"N": "1"}});
    done(&harness, "PutItem", json!({"TableName": "items", "Item": item})).await;
    let old = json!({"id": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}});
    let body = json!({"TableName": "items", "KeyConditions": old, "FilterExpression": "n = :n",
        "ProjectionExpression": "n", "ExpressionAttributeValues": {":n": {"N": "1"}}});
    assert_eq!(done(&harness, "Query", body).await["Items"], json!([{"n": {"N": "1"}}]));
    let body = json!({"TableName": "items", "KeyConditions": old, "KeyConditionExpression": "id = :a",
        "ExpressionAttributeValues": {":a": {"S": "a"}}});
    assert!(invalid(&harness, "Query", body).await.contains("{KeyConditions}"));
}

#[tokio::test]
async fn pages_start_where_something_can_follow() {
    let harness = Harness::start().await;
    make(&harness, "single").await;
    make_grouped(&harness, "items").await;
    let query = |table: &str, start: Value| {
        json!({"TableName": table, "KeyConditionExpression": "id = :a", "ExclusiveStartKey": start,
            "ExpressionAttributeValues": {":a": {"S": "a"}}})
    };
    for (body, words) in [
        (query("single", key("a")), "The provided exclusive start key is invalid: ExclusiveStartKey"),
        (query("items", json!({"id": {"N": "1"}, "at": {"S": "1"}})), "does not match the schema"),
        (query("items", json!({"id": {"S": "a"}, "at": {"N": "1"}})), "does not match the schema"),
        (query("items", key("a")), "The provided starting key is invalid"),
    ] {
        let message = invalid(&harness, "Query", body).await;
        assert!(message.contains(words), "{message}");
    }
    let mut outside = 0;
    for segment in 0..2 {
        let body = json!({"TableName": "single", "ExclusiveStartKey": key("a"), "Segment": segment, "TotalSegments": 2});
        let (status, answer) = call(&harness, "Scan", body).await;
        if status != StatusCode::OK {
            outside += 1;
            assert!(
                answer["message"].as_str().is_some_and(|text| text.contains("ExclusiveStartKey")),
                "{answer}"
            );
        }
    }
    assert_eq!(outside, 1);
}

#[tokio::test]
async fn transactions_keep_their_size() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    let large = "x".repeat(390_000);
    let put = |n: usize| json!({"Put": {"TableName": "items", "Item": {"id": {"S": n.to_string()}, "d": {"S": large}}}});
    let update = |n: usize| {
        json!({"Update": {"TableName": "items", "Key": key(&n.to_string()), "UpdateExpression": "SET d = :d",
            "ExpressionAttributeValues": {":d": {"S": large}}}})
    };
    for parts in [(0..11).map(put).collect::<Vec<_>>(), (0..11).map(update).collect()] {
        let message = invalid(&harness, "TransactWriteItems", json!({"TransactItems": parts})).await;
        assert!(message.contains("size cannot exceed"), "{message}");
    }
    for n in 0..11 {
        let item = json!({"id": {"S": n.to_string()}, "d": {"S": large}});
        done(&harness, "PutItem", json!({"TableName": "items", "Item": item})).await;
    }
    let get = |n: usize| json!({"Get": {"TableName": "items", "Key": key(&n.to_string()), "ProjectionExpression": "id"}});
    let gets = |count: usize| json!({"TransactItems": (0..count).map(get).collect::<Vec<_>>()});
    assert!(invalid(&harness, "TransactGetItems", gets(11)).await.contains("cannot exceed"));
    assert_eq!(
        done(&harness, "TransactGetItems", gets(10)).await["Responses"].as_array().map(Vec::len),
        Some(10)
    );
}

#[tokio::test]
async fn only_the_first_part_that_cannot_be_is_told() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    let put = |value: Value| json!({"Put": {"TableName": "items", "Item": {"id": value}}});
    let parts = [put(json!({"S": "a"})), put(json!({"N": "1"})), put(json!({"N": "2"}))];
    let (status, answer) = call(&harness, "TransactWriteItems", json!({"TransactItems": parts})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let codes: Vec<_> = (0..3).map(|n| answer["CancellationReasons"][n]["Code"].clone()).collect();
    assert_eq!(codes, ["None", "ValidationError", "None"]);
}

#[tokio::test]
async fn keys_of_indexes_are_told_in_the_words_of_the_service() {
    let harness = Harness::start().await;
    make_grouped(&harness, "items").await;
    let item = |x: Value| json!({"id": {"S": "a"}, "at": {"S": "1"}, "x": x});
    for (x, words) in [
        (json!({"NULL": true}), "Actual: NULL IndexName"),
        (json!({"N": "1"}), "Type mismatch for Index Key x Expected: S Actual: N"),
        (json!({"S": ""}), "cannot contain an empty string value"),
        (json!({"S": "x".repeat(1_025)}), "1024 bytes"),
    ] {
        let message =
            invalid(&harness, "PutItem", json!({"TableName": "items", "Item": item(x.clone())})).await;
        assert!(message.contains(words), "{message}");
        let body = json!({"TableName": "items", "Key": {"id": {"S": "a"}, "at": {"S": "1"}},
            "UpdateExpression": "SET x = :x", "ExpressionAttributeValues": {":x": x}});
        let message = invalid(&harness, "UpdateItem", body).await;
        assert!(message.contains(words), "{message}");
    }
}

#[tokio::test]
async fn a_transaction_is_told_of_an_empty_key_as_a_whole() {
    let harness = Harness::start().await;
    make_grouped(&harness, "items").await;
    let put = |item: Value| json!({"TransactItems": [{"Put": {"TableName": "items", "Item": item}}]});
    let update = |x: Value| {
        json!({"TransactItems": [{"Update": {"TableName": "items", "Key": {"id": {"S": "a"}, "at": {"S": "1"}},
            "UpdateExpression": "SET x = :x", "ExpressionAttributeValues": {":x": x}}}]})
    };
    let empty = "The AttributeValue for a key attribute cannot contain an empty string value.";
    let message = async |body| invalid(&harness, "TransactWriteItems", body).await;
    assert_eq!(
        message(put(json!({"id": {"S": ""}, "at": {"S": "1"}}))).await,
        format!("One or more parameter values are not valid. {empty} Key: id")
    );
    // Both indexes have it; the first by name is told of.
    assert_eq!(
        message(put(json!({"id": {"S": "a"}, "at": {"S": "1"}, "x": {"S": ""}}))).await,
        format!(
            "One or more parameter values are not valid. A value specified for a secondary index key is not supported. \
             {empty} IndexName: all-x, IndexKey: x"
        )
    );
    assert_eq!(
        message(update(json!({"S": ""}))).await,
        format!(
            "One or more parameter values are not valid. The update expression attempted to update a secondary index key \
             to a value that is not supported. {empty}"
        )
    );
    // A wrong kind is the reason of its part.
    let (status, answer) = call(&harness, "TransactWriteItems", update(json!({"N": "1"}))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(
        answer["CancellationReasons"][0],
        json!({"Code": "ValidationError", "Message": "One or more parameter values were invalid: Type mismatch for Index \
            Key x Expected: S Actual: N IndexName: all-x"})
    );
}

#[tokio::test]
async fn costs_are_those_of_what_is_read_and_written() {
    let harness = Harness::start().await;
    make_grouped(&harness, "items").await;
    let keys = json!({"id": {"S": "a"}, "at": {"S": "1"}});
    let item = |bytes: usize| json!({"id": {"S": "a"}, "at": {"S": "1"}, "x": {"S": "x"}, "d": {"S": "y".repeat(bytes)}});
    let units = |answer: &Value| answer["ConsumedCapacity"]["CapacityUnits"].as_f64().expect("units");
    let put = |bytes: usize| json!({"TableName": "items", "Item": item(bytes), "ReturnConsumedCapacity": "INDEXES"});
    // The table, the entry that shows all, and the entry that shows keys.
    assert_eq!(units(&done(&harness, "PutItem", put(9_000)).await), 9.0 + 9.0 + 1.0);
    let update = json!({"TableName": "items", "Key": keys, "UpdateExpression": "SET n = :n",
        "ExpressionAttributeValues": {":n": {"N": "1"}}, "ReturnConsumedCapacity": "INDEXES", "ReturnValues": "UPDATED_NEW"});
    let updated = done(&harness, "UpdateItem", update).await;
    assert_eq!(updated["Attributes"], json!({"n": {"N": "1"}}));
    let consumed = &updated["ConsumedCapacity"];
    assert_eq!(consumed["Table"]["CapacityUnits"], 9.0);
    assert_eq!(consumed["GlobalSecondaryIndexes"]["all-x"]["CapacityUnits"], 9.0);
    assert_eq!(consumed["LocalSecondaryIndexes"], Value::Null, "its entry stays as it is");
    let get = json!({"TableName": "items", "Key": keys, "ProjectionExpression": "n", "ConsistentRead": true,
        "ReturnConsumedCapacity": "TOTAL"});
    let got = done(&harness, "GetItem", get).await;
    assert_eq!((units(&got), &got["Item"]), (3.0, &json!({"n": {"N": "1"}})));
    let count = json!({"TableName": "items", "KeyConditionExpression": "id = :a", "Select": "COUNT",
        "ExpressionAttributeValues": {":a": {"S": "a"}}, "ConsistentRead": true, "ReturnConsumedCapacity": "TOTAL"});
    assert_eq!(units(&done(&harness, "Query", count).await), 3.0);
    assert_eq!(units(&done(&harness, "PutItem", put(10)).await), 9.0 + 9.0);
    let delete = json!({"TableName": "items", "Key": keys, "ReturnConsumedCapacity": "TOTAL"});
    assert_eq!(units(&done(&harness, "DeleteItem", delete).await), 3.0);
}

#[tokio::test]
async fn batches_and_names_have_their_limits() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    let put = |n: usize| json!({"PutRequest": {"Item": key(&n.to_string())}});
    let many: Vec<_> = (0..26).map(put).collect();
    let message = invalid(&harness, "BatchWriteItem", json!({"RequestItems": {"items": many}})).await;
    assert!(message.contains("length less than or equal to 25"), "{message}");
    let long = "n".repeat(65_536);
    for (more, words) in [
        (json!({"ProjectionExpression": "#n", "ExpressionAttributeNames": {"#n": long}}), "65535"),
        (json!({"AttributesToGet": [long]}), "65535"),
        (json!({"AttributesToGet": [""]}), "Empty attribute name"),
    ] {
        let mut body = more;
        body["TableName"] = json!("items");
        body["Key"] = key("a");
        let message = invalid(&harness, "GetItem", body).await;
        assert!(message.contains(words), "{message:.300}");
    }
}

#[tokio::test]
async fn conditions_that_nest_deep_are_read_or_refused() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    done(
        &harness,
        "PutItem",
        json!({"TableName": "items", "Item": {"id": {"S": "a"}, "a": {"N": "1"}, "b": {"N": "2"}}}),
    )
    .await;
    let nested = |depth: usize| format!("a<b {}{}", "or (a<b ".repeat(depth), ")".repeat(depth));
    let update = |condition: &str| {
        json!({"TableName": "items", "Key": key("a"), "UpdateExpression": "SET z = :z",
            "ConditionExpression": condition, "ExpressionAttributeValues": {":z": {"N": "1"}}})
    };
    // As many operators as there may be, half of them joints that nest.
    done(&harness, "UpdateItem", update(&nested(149))).await;
    done(&harness, "UpdateItem", update(&format!("{}(not a<b)", "not ".repeat(297)))).await;
    for condition in
        [nested(454), "(".repeat(4_096), format!("{}a<b{}", "(".repeat(2_046), ")".repeat(2_046))]
    {
        invalid(&harness, "UpdateItem", update(&condition)).await;
    }
    let typed = |value: Value| {
        json!({"TableName": "items", "Key": key("a"), "UpdateExpression": "SET z = :z",
            "ConditionExpression": "attribute_type(:z, :t)",
            "ExpressionAttributeValues": {":z": value, ":t": {"S": "N"}}})
    };
    done(&harness, "UpdateItem", typed(json!({"N": "2"}))).await;
    let (code, _) = refused(&harness, "UpdateItem", typed(json!({"S": "2"}))).await;
    assert_eq!(code, "ConditionalCheckFailedException");
}

#[tokio::test]
async fn removals_say_what_moved_up_and_miss_nothing() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    for text in ["REMOVE x.y", "REMOVE x[0]"] {
        done(
            &harness,
            "UpdateItem",
            json!({"TableName": "items", "Key": key("none"), "UpdateExpression": text}),
        )
        .await;
    }
    assert_eq!(get(&harness, "items", "none").await, Value::Null);
    let list = json!({"L": [{"N": "1"}, {"N": "2"}, {"N": "3"}]});
    done(&harness, "PutItem", json!({"TableName": "items", "Item": {"id": {"S": "a"}, "c": list}})).await;
    let body = json!({"TableName": "items", "Key": key("a"), "UpdateExpression": "REMOVE c[1]", "ReturnValues": "UPDATED_NEW"});
    assert_eq!(done(&harness, "UpdateItem", body).await["Attributes"], json!({"c": {"L": [{"N": "3"}]}}));
}

#[tokio::test]
async fn long_answers_are_compressed_for_those_who_take_them_so() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    let item = json!({"id": {"S": "a"}, "text": {"S": "words ".repeat(1_000)}});
    done(&harness, "PutItem", json!({"TableName": "items", "Item": item})).await;
    done(&harness, "PutItem", json!({"TableName": "items", "Item": {"id": {"S": "short"}}})).await;
    let ask = async |id: &str, encoding: &str| {
        let body = json!({"TableName": "items", "Key": key(id)}).to_string();
        let mut request = json_request("DynamoDB_20120810.GetItem", body);
        request.headers_mut().insert("accept-encoding", encoding.parse().unwrap());
        let (status, headers, body) = harness.exchange(request).await;
        assert_eq!(status, StatusCode::OK);
        (headers.get("content-encoding").map(|value| value.to_str().unwrap().to_owned()), body)
    };
    let (encoding, packed) = ask("a", "gzip, deflate").await;
    assert_eq!((encoding.as_deref(), packed.len() < 1_000), (Some("gzip"), true));
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed[..]), &mut text).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["Item"], item);
    for (id, encoding) in [("a", "identity"), ("short", "gzip")] {
        let (encoding, body) = ask(id, encoding).await;
        assert_eq!((encoding, serde_json::from_slice::<Value>(&body).is_ok()), (None, true), "{id}");
    }
}

#[tokio::test]
async fn large_calls_may_come_compressed() {
    let harness = Harness::start().await;
    make(&harness, "items").await;
    let compressed = async |body: String, coding: &str| {
        let mut packed = Vec::new();
        match coding {
            "deflate" => {
                let mut encoder = flate2::write::ZlibEncoder::new(&mut packed, flate2::Compression::fast());
                std::io::Write::write_all(&mut encoder, body.as_bytes()).unwrap();
            }
            _ => {
                let mut encoder = flate2::write::GzEncoder::new(&mut packed, flate2::Compression::fast());
                std::io::Write::write_all(&mut encoder, body.as_bytes()).unwrap();
            }
        }
        let mut request = json_request("DynamoDB_20120810.BatchWriteItem", packed);
        request.headers_mut().insert("content-encoding", coding.parse().unwrap());
        harness.exchange(request).await.0
    };
    let put = |n: usize| {
        let item = json!({"id": {"S": n.to_string()}, "text": {"S": "words ".repeat(60_000)}});
        json!({"PutRequest": {"Item": item}})
    };
    for coding in ["gzip", "deflate"] {
        let puts: Vec<Value> = (0..25).map(put).collect();
        let body = json!({"RequestItems": {"items": puts}}).to_string();
        assert!(body.len() > 8 << 20);
        assert_eq!(compressed(body, coding).await, StatusCode::OK, "{coding}");
        let there = done(&harness, "Scan", json!({"TableName": "items", "Select": "COUNT"})).await;
        assert_eq!(there["Count"], 3, "a page holds three: {there}");
        let mut body = json!({"RequestItems": {"items": [put(0)]}}).to_string();
        body.push_str(&" ".repeat(17 << 20));
        assert_eq!(compressed(body, coding).await, StatusCode::PAYLOAD_TOO_LARGE, "{coding}");
    }
}
