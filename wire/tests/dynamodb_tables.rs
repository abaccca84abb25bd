//! Tables, their indexes and the streams of their changes over HTTP: time, names and what is left behind.

mod harness;

use std::time::Duration;

use harness::Harness;
use http::StatusCode;
use serde_json::{Value, json};

fn target(operation: &str) -> String {
    let streams = ["ListStreams", "DescribeStream", "GetShardIterator", "GetRecords"].contains(&operation);
    let service = if streams { "DynamoDBStreams_20120810" } else { "DynamoDB_20120810" };
    format!("{service}.{operation}")
}

async fn done(harness: &Harness, operation: &str, body: Value) -> Value {
    harness.done(&target(operation), body).await
}

async fn refused(harness: &Harness, operation: &str, body: Value) -> (String, String) {
    let (code, message) = harness.refused(&target(operation), body).await;
    (code.rsplit('#').next().unwrap_or_default().to_owned(), message)
}

async fn make(harness: &Harness, table: &str, more: Value) -> Value {
    let mut body = json!({
        "TableName": table, "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    });
    for (name, value) in more.as_object().expect("an object") {
        body[name] = value.clone();
    }
    done(harness, "CreateTable", body).await["TableDescription"].clone()
}

fn stream_of(description: &Value) -> String {
    description["LatestStreamArn"].as_str().expect("a stream").to_owned()
}

async fn put(harness: &Harness, table: &str, item: Value) {
    done(harness, "PutItem", json!({"TableName": table, "Item": item})).await;
}

async fn iterators(harness: &Harness, arn: &str, kind: &str) -> Vec<String> {
    let described = done(harness, "DescribeStream", json!({"StreamArn": arn})).await;
    let mut iterators = Vec::new();
    for shard in described["StreamDescription"]["Shards"].as_array().expect("shards") {
        let body = json!({"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": kind});
        let answer = done(harness, "GetShardIterator", body).await;
        iterators.push(answer["ShardIterator"].as_str().expect("an iterator").to_owned());
    }
    iterators
}

/// The records behind iterators, and the iterators that follow.
async fn read(harness: &Harness, iterators: Vec<String>) -> (Vec<Value>, Vec<String>) {
    let (mut records, mut next) = (Vec::new(), Vec::new());
    for iterator in iterators {
        let answer = done(harness, "GetRecords", json!({"ShardIterator": iterator})).await;
        records.extend(answer["Records"].as_array().expect("records").clone());
        next.extend(answer["NextShardIterator"].as_str().map(str::to_owned));
    }
    (records, next)
}

const BOTH: &str = r#"{"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}"#;

fn with_stream() -> Value {
    json!({"StreamSpecification": serde_json::from_str::<Value>(BOTH).expect("JSON")})
}

#[tokio::test]
async fn identifiers_are_as_long_as_clients_demand() {
    let harness = Harness::start().await;
    let description = make(&harness, "orders", with_stream()).await;
    let arn = stream_of(&description);
    assert!((37..=1024).contains(&arn.len()));
    put(&harness, "orders", json!({"id": {"S": "a"}})).await;
    let (records, _) = read(&harness, iterators(&harness, &arn, "TRIM_HORIZON").await).await;
    let number = records[0]["dynamodb"]["SequenceNumber"].as_str().expect("a number");
    assert!((21..=40).contains(&number.len()), "{number}");
    let described = done(&harness, "DescribeStream", json!({"StreamArn": arn})).await;
    for shard in described["StreamDescription"]["Shards"].as_array().expect("shards") {
        let id = shard["ShardId"].as_str().expect("an id");
        assert!((28..=65).contains(&id.len()), "{id}");
        let first = shard["SequenceNumberRange"]["StartingSequenceNumber"].as_str().expect("a number");
        assert!((21..=40).contains(&first.len()), "{first}");
    }
}

#[tokio::test]
async fn the_latest_is_what_it_was_when_it_was_asked_for() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    put(&harness, "orders", json!({"id": {"S": "before"}})).await;
    let latest = iterators(&harness, &arn, "LATEST").await;
    put(&harness, "orders", json!({"id": {"S": "after"}})).await;
    let (records, next) = read(&harness, latest).await;
    assert_eq!(records.len(), 1, "{records:?}");
    assert_eq!(records[0]["dynamodb"]["Keys"], json!({"id": {"S": "after"}}));
    put(&harness, "orders", json!({"id": {"S": "later"}})).await;
    assert_eq!(read(&harness, next).await.0.len(), 1);
}

#[tokio::test]
async fn iterators_expire_and_cannot_be_forged() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    let iterator = iterators(&harness, &arn, "TRIM_HORIZON").await.remove(0);
    let harness = harness.crash().await;
    done(&harness, "GetRecords", json!({"ShardIterator": iterator})).await;
    let mut forged = iterator.clone().into_bytes();
    forged[20] ^= 1;
    for other in [String::from_utf8(forged).expect("text"), String::new(), "x".repeat(5_000)] {
        let (code, _) = refused(&harness, "GetRecords", json!({"ShardIterator": other})).await;
        assert_eq!(code, "ValidationException", "{other}");
    }
    harness.clock.advance(Duration::from_secs(15 * 60 + 1));
    let (code, _) = refused(&harness, "GetRecords", json!({"ShardIterator": iterator})).await;
    assert_eq!(code, "ExpiredIteratorException");
}

#[tokio::test]
async fn a_stream_outlives_its_table_for_a_day() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    put(&harness, "orders", json!({"id": {"S": "a"}})).await;
    done(&harness, "DeleteTable", json!({"TableName": "orders"})).await;
    // A younger table of the same name has another stream.
    let younger = stream_of(&make(&harness, "orders", with_stream()).await);
    assert_ne!(younger, arn);
    let (records, next) = read(&harness, iterators(&harness, &arn, "TRIM_HORIZON").await).await;
    assert_eq!(records.iter().map(|record| record["eventName"].clone()).collect::<Vec<_>>(), ["INSERT"]);
    assert_eq!(next, Vec::<String>::new(), "what has ended has no next iterator");
    let described =
        done(&harness, "DescribeStream", json!({"StreamArn": arn})).await["StreamDescription"].clone();
    assert_eq!(described["StreamStatus"], "DISABLED");
    assert_eq!(described["StreamViewType"], "NEW_AND_OLD_IMAGES");
    assert_eq!(described["KeySchema"], json!([{"AttributeName": "id", "KeyType": "HASH"}]));
    let listed = done(&harness, "ListStreams", json!({"TableName": "orders"})).await["Streams"].clone();
    let arns: Vec<_> =
        listed.as_array().expect("streams").iter().map(|stream| stream["StreamArn"].clone()).collect();
    assert_eq!(arns.len(), 2);
    assert!(arns.contains(&json!(arn)) && arns.contains(&json!(younger)));
    let one = done(&harness, "ListStreams", json!({"Limit": 1})).await;
    let more = json!({"ExclusiveStartStreamArn": one["LastEvaluatedStreamArn"]});
    let rest = done(&harness, "ListStreams", more).await;
    assert_eq!(rest["Streams"].as_array().map(Vec::len), Some(1));
    assert_eq!(rest["LastEvaluatedStreamArn"], Value::Null);
}

#[tokio::test]
async fn streams_that_never_were_are_not_found() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    make(&harness, "others", json!({})).await;
    for other in [arn.replace("orders", "others"), arn.replace("changes-", "changes-9"), format!("{arn}x")] {
        let (code, _) = refused(&harness, "DescribeStream", json!({"StreamArn": other})).await;
        assert_eq!(code, "ResourceNotFoundException", "{other}");
    }
    let body = json!({"StreamArn": arn, "ShardId": format!("shardId-{:020}-{:08x}", 77, 77), "ShardIteratorType": "LATEST"});
    assert_eq!(refused(&harness, "GetShardIterator", body).await.0, "ResourceNotFoundException");
    let described = done(&harness, "DescribeStream", json!({"StreamArn": arn})).await;
    let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
    for body in [
        json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "AT_TIMESTAMP"}),
        json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "AT_SEQUENCE_NUMBER"}),
        json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": "x"}),
        json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": "LATEST", "SequenceNumber": "1"}),
    ] {
        assert_eq!(refused(&harness, "GetShardIterator", body).await.0, "ValidationException");
    }
}

#[tokio::test]
async fn a_younger_table_has_nothing_of_the_older_one() {
    let harness = Harness::start().await;
    let tags = json!({"Tags": [{"Key": "a", "Value": "1"}], "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}});
    let older = make(&harness, "orders", tags).await;
    assert_eq!(older["ProvisionedThroughput"]["WriteCapacityUnits"], 4);
    assert_eq!(older["BillingModeSummary"], Value::Null);
    done(&harness, "DeleteTable", json!({"TableName": "orders"})).await;
    harness.clock.advance(Duration::from_secs(1));
    let younger = make(&harness, "orders", json!({})).await;
    assert_ne!(younger["TableId"], older["TableId"]);
    assert_eq!(younger["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST");
    let tags = done(&harness, "ListTagsOfResource", json!({"ResourceArn": younger["TableArn"]})).await;
    assert_eq!(tags["Tags"], json!([]));
    let nothing = "arn:aws:dynamodb:us-east-1:000000000000:table/nothing";
    let (code, _) = refused(
        &harness,
        "TagResource",
        json!({"ResourceArn": nothing, "Tags": [{"Key": "a", "Value": ""}]}),
    )
    .await;
    assert_eq!(code, "ResourceNotFoundException");
}

#[tokio::test]
async fn what_cannot_be_altered_stays() {
    let harness = Harness::start().await;
    make(&harness, "orders", with_stream()).await;
    let before = done(&harness, "DescribeTable", json!({"TableName": "orders"})).await;
    let create = json!({"Create": {"IndexName": "by-x", "Projection": {"ProjectionType": "ALL"},
        "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}]}});
    for body in [
        json!({}),
        json!({"GlobalSecondaryIndexUpdates": [create]}),
        json!({"GlobalSecondaryIndexUpdates": [{}]}),
        json!({"StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}}),
        json!({"StreamSpecification": {"StreamEnabled": true}}),
        json!({"BillingMode": "PROVISIONED"}),
        json!({"BillingMode": "FREE"}),
        json!({"ProvisionedThroughput": {"ReadCapacityUnits": 0, "WriteCapacityUnits": 1}}),
    ] {
        let mut body = body;
        body["TableName"] = json!("orders");
        let (code, message) = refused(&harness, "UpdateTable", body.clone()).await;
        assert_eq!(code, "ValidationException", "{body}: {message}");
    }
    assert_eq!(done(&harness, "DescribeTable", json!({"TableName": "orders"})).await, before);
}

#[tokio::test]
async fn an_added_index_leaves_out_what_does_not_fit() {
    let harness = Harness::start().await;
    make(&harness, "orders", json!({})).await;
    put(&harness, "orders", json!({"id": {"S": "red"}, "color": {"S": "red"}})).await;
    put(&harness, "orders", json!({"id": {"S": "odd"}, "color": {"N": "7"}})).await;
    let create = json!({"Create": {"IndexName": "by-color", "Projection": {"ProjectionType": "ALL"},
        "KeySchema": [{"AttributeName": "color", "KeyType": "HASH"}]}});
    let body = json!({"TableName": "orders", "GlobalSecondaryIndexUpdates": [create],
        "AttributeDefinitions": [{"AttributeName": "color", "AttributeType": "S"}]});
    done(&harness, "UpdateTable", body).await;
    let filled = async {
        loop {
            let table = done(&harness, "DescribeTable", json!({"TableName": "orders"})).await;
            if table["Table"]["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE" {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), filled).await.expect("an index that is filled");
    let shown = done(&harness, "Scan", json!({"TableName": "orders", "IndexName": "by-color"})).await;
    assert_eq!(shown["Items"], json!([{"id": {"S": "red"}, "color": {"S": "red"}}]));
    assert_eq!(done(&harness, "Scan", json!({"TableName": "orders"})).await["Count"], 2);
}

#[tokio::test]
async fn changes_of_settings_at_once_lose_nothing() {
    let harness = Harness::start().await;
    make(&harness, "orders", json!({})).await;
    for round in 0..20 {
        let protected = round % 2 == 0;
        let class = ["STANDARD", "STANDARD_INFREQUENT_ACCESS"][round / 2 % 2];
        let (one, other) = tokio::join!(
            done(
                &harness,
                "UpdateTable",
                json!({"TableName": "orders", "DeletionProtectionEnabled": protected})
            ),
            done(&harness, "UpdateTable", json!({"TableName": "orders", "TableClass": class})),
        );
        drop((one, other));
        let table = done(&harness, "DescribeTable", json!({"TableName": "orders"})).await["Table"].clone();
        assert_eq!(table["DeletionProtectionEnabled"], json!(protected), "round {round}");
        assert_eq!(table["TableClassSummary"]["TableClass"], json!(class), "round {round}");
    }
}

#[tokio::test]
async fn tables_that_are_made_and_deleted_at_once_are_one_or_the_other() {
    let harness = Harness::start().await;
    let create = json!({
        "TableName": "orders", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    });
    for _ in 0..50 {
        let (made, _) = tokio::join!(
            harness.call("DynamoDB_20120810.CreateTable", create.clone()),
            harness.call("DynamoDB_20120810.DeleteTable", json!({"TableName": "orders"})),
        );
        let kind = made.1["__type"].as_str().unwrap_or_default();
        let there = kind.ends_with("#ResourceInUseException");
        assert!(made.0 == StatusCode::OK || there, "{}", made.1);
    }
}

#[tokio::test]
async fn a_position_that_is_trimmed_is_refused() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    for n in 0..3 {
        put(&harness, "orders", json!({"id": {"S": "a"}, "n": {"N": n.to_string()}})).await;
    }
    let (records, _) = read(&harness, iterators(&harness, &arn, "TRIM_HORIZON").await).await;
    let numbers: Vec<_> = records.iter().map(|r| r["dynamodb"]["SequenceNumber"].clone()).collect();
    assert_eq!(numbers.len(), 3);
    let described = done(&harness, "DescribeStream", json!({"StreamArn": arn})).await;
    let mut shard = Value::Null;
    for candidate in described["StreamDescription"]["Shards"].as_array().expect("shards") {
        let body =
            json!({"StreamArn": arn, "ShardId": candidate["ShardId"], "ShardIteratorType": "TRIM_HORIZON"});
        let iterator = done(&harness, "GetShardIterator", body).await["ShardIterator"].clone();
        let read = done(&harness, "GetRecords", json!({"ShardIterator": iterator})).await;
        if read["Records"].as_array().is_some_and(|records| !records.is_empty()) {
            shard = candidate["ShardId"].clone();
        }
    }
    let at = |kind: &str, number: &Value| json!({"StreamArn": arn, "ShardId": shard, "ShardIteratorType": kind, "SequenceNumber": number});
    let early = done(&harness, "GetShardIterator", at("AFTER_SEQUENCE_NUMBER", &numbers[0])).await;
    let early = early["ShardIterator"].clone();
    harness.clock.advance(Duration::from_secs(25 * 3600));
    // The last number stays known when the server starts again.
    let engine = harness.engine.clone();
    tokio::task::spawn_blocking(move || engine.upkeep()).await.expect("upkeep");
    let harness = harness.crash().await;
    put(&harness, "orders", json!({"id": {"S": "a"}, "n": {"N": "3"}})).await;
    for (kind, number) in [
        ("AT_SEQUENCE_NUMBER", &numbers[0]),
        ("AT_SEQUENCE_NUMBER", &numbers[2]),
        ("AFTER_SEQUENCE_NUMBER", &numbers[0]),
        ("AFTER_SEQUENCE_NUMBER", &numbers[1]),
    ] {
        let (code, message) = refused(&harness, "GetShardIterator", at(kind, number)).await;
        assert_eq!(code, "TrimmedDataAccessException", "{kind} {number}: {message}");
    }
    let (code, _) = refused(&harness, "GetRecords", json!({"ShardIterator": early})).await;
    assert_eq!(code, "ExpiredIteratorException");
    // Whoever has read the last one that is gone has missed nothing.
    let iterator = done(&harness, "GetShardIterator", at("AFTER_SEQUENCE_NUMBER", &numbers[2])).await;
    let iterator = iterator["ShardIterator"].as_str().expect("an iterator").to_owned();
    assert_eq!(read(&harness, vec![iterator]).await.0.len(), 1);
    let (records, next) = read(&harness, iterators(&harness, &arn, "TRIM_HORIZON").await).await;
    assert_eq!((records.len(), next.len()), (1, 4));
    assert_eq!(read(&harness, next).await.0.len(), 0);
}

#[tokio::test]
async fn streams_are_asked_for_in_the_right_form() {
    let harness = Harness::start().await;
    let arn = stream_of(&make(&harness, "orders", with_stream()).await);
    let described = done(&harness, "DescribeStream", json!({"StreamArn": arn})).await;
    let shard = described["StreamDescription"]["Shards"][0]["ShardId"].clone();
    let filter = |filter: Value| json!({"StreamArn": arn, "ShardFilter": filter});
    for (operation, body) in [
        ("DescribeStream", json!({"StreamArn": "nonsense, and long enough to be an address of a stream"})),
        ("ListStreams", json!({"ExclusiveStartStreamArn": "nonsense, and long enough to be an address"})),
        ("DescribeStream", filter(json!({"ShardId": shard}))),
        ("DescribeStream", filter(json!({"Type": "CHILD_SHARDS"}))),
        ("DescribeStream", filter(json!({"Type": "CHILD_SHARDS", "ShardId": "short"}))),
    ] {
        let (code, message) = refused(&harness, operation, body.clone()).await;
        assert_eq!(code, "ValidationException", "{body}: {message}");
    }
    let behind = json!({"StreamArn": arn, "ExclusiveStartShardId": "z".repeat(40)});
    let listed = done(&harness, "DescribeStream", behind).await;
    assert_eq!(listed["StreamDescription"]["Shards"], json!([]));
}

#[tokio::test]
async fn a_stream_is_as_old_as_it_is_and_not_as_its_table() {
    let harness = Harness::start().await;
    let table = make(&harness, "orders", json!({})).await;
    harness.clock.advance(Duration::from_secs(3600));
    let body = json!({"TableName": "orders", "StreamSpecification": with_stream()["StreamSpecification"]});
    let altered = done(&harness, "UpdateTable", body).await["TableDescription"].clone();
    let arn = stream_of(&altered);
    let described = done(&harness, "DescribeStream", json!({"StreamArn": arn})).await;
    let seconds = |value: &Value| value.as_f64().expect("a time");
    let begun = seconds(&described["StreamDescription"]["CreationRequestDateTime"]);
    assert!(begun - seconds(&table["CreationDateTime"]) >= 3600.0);
    let harness = harness.crash().await;
    assert_eq!(done(&harness, "DescribeStream", json!({"StreamArn": arn})).await, described);
}

#[tokio::test]
async fn a_deleted_table_says_little() {
    let harness = Harness::start().await;
    let index = json!([{"IndexName": "by-x", "Projection": {"ProjectionType": "ALL"},
        "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}]}]);
    let definitions =
        json!([{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "x", "AttributeType": "S"}]);
    let more = json!({"GlobalSecondaryIndexes": index, "AttributeDefinitions": definitions});
    let made = make(&harness, "orders", more).await;
    let gone =
        done(&harness, "DeleteTable", json!({"TableName": "orders"})).await["TableDescription"].clone();
    assert_eq!(gone["TableStatus"], "DELETING");
    assert_eq!(gone["TableId"], made["TableId"]);
    for member in ["KeySchema", "AttributeDefinitions", "CreationDateTime", "GlobalSecondaryIndexes"] {
        assert_ne!(made[member], Value::Null, "{member}");
        assert_eq!(gone[member], Value::Null, "{member}");
    }
}

#[tokio::test]
async fn tables_and_indexes_that_cannot_be_are_told_in_the_words_of_the_service() {
    let harness = Harness::start().await;
    let attribute = |name: &str, kind: &str| json!({"AttributeName": name, "AttributeType": kind});
    let key = |name: &str, kind: &str| json!({"AttributeName": name, "KeyType": kind});
    let index = |projection: Value| json!({"IndexName": "by-x", "KeySchema": [key("x", "HASH")], "Projection": projection});
    let base = json!({
        "TableName": "orders", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [key("id", "HASH"), key("at", "RANGE")],
        "AttributeDefinitions": [attribute("id", "S"), attribute("at", "S"), attribute("x", "S")],
    });
    let included = |names: Value| json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": names});
    let local = json!([{"IndexName": "own", "KeySchema": [key("x", "HASH"), key("at", "RANGE")],
        "Projection": {"ProjectionType": "ALL"}}]);
    for (more, words) in [
        (
            json!({"AttributeDefinitions": [attribute("id", "S"), attribute("id", "N")]}),
            "Duplicate AttributeName",
        ),
        (json!({"LocalSecondaryIndexes": local}), "same leading hash key"),
        (json!({"GlobalSecondaryIndexes": [index(included(json!(["a", "a"])))]}), "Duplicate value"),
        (
            json!({"GlobalSecondaryIndexes": [index(included(json!(["a".repeat(256)])))]}),
            "less than or equal to 255",
        ),
    ] {
        let mut body = base.clone();
        for (name, value) in more.as_object().expect("an object") {
            body[name] = value.clone();
        }
        let (code, message) = refused(&harness, "CreateTable", body).await;
        assert!(code == "ValidationException" && message.contains(words), "{code}: {message}");
    }
    let all = json!({"ProjectionType": "ALL"});
    let mut body = base.clone();
    body["GlobalSecondaryIndexes"] = json!([index(all.clone())]);
    done(&harness, "CreateTable", body).await;
    let mut second = index(all);
    second["IndexName"] = json!("again");
    let update = |definitions: Value, update: Value| json!({"TableName": "orders", "AttributeDefinitions": definitions, "GlobalSecondaryIndexUpdates": [update]});
    for (body, words) in [
        (update(json!([]), json!({"Create": second})), "AttributeDefinitions"),
        (update(json!([attribute("x", "N")]), json!({"Create": second})), "redefined"),
        (
            update(json!([attribute("x", "S")]), json!({"Create": second, "Delete": {"IndexName": "by-x"}})),
            "one of",
        ),
    ] {
        let (code, message) = refused(&harness, "UpdateTable", body).await;
        assert!(code == "ValidationException" && message.contains(words), "{code}: {message}");
    }
}

#[tokio::test]
async fn tags_are_for_tables_and_of_plain_characters() {
    let harness = Harness::start().await;
    let arn = make(&harness, "orders", json!({})).await["TableArn"].as_str().expect("an ARN").to_owned();
    let tag = |arn: &str, key: &str, value: &str| json!({"ResourceArn": arn, "Tags": [{"Key": key, "Value": value}]});
    done(&harness, "TagResource", tag(&arn, "owner", "a.b_c:d/e=f+g-h@i j ü")).await;
    for body in [
        tag(&arn, "owner!", "x"),
        tag(&arn, "owner", "\"x\""),
        tag(&format!("{arn}/index/by-x"), "owner", "x"),
        tag("orders", "owner", "x"),
    ] {
        let (code, message) = refused(&harness, "TagResource", body.clone()).await;
        assert_eq!(code, "ValidationException", "{body}: {message}");
    }
    let (_, message) = refused(&harness, "ListTagsOfResource", json!({"ResourceArn": "orders"})).await;
    assert_eq!(message, "Invalid TableArn: Invalid ResourceArn provided as input orders");
}

#[tokio::test]
async fn expiry_is_turned_off_by_its_own_name() {
    let harness = Harness::start().await;
    make(&harness, "orders", json!({})).await;
    let set = |enabled: bool, name: &str| json!({"TableName": "orders", "TimeToLiveSpecification": {"Enabled": enabled, "AttributeName": name}});
    done(&harness, "UpdateTimeToLive", set(true, "until")).await;
    let (code, message) = refused(&harness, "UpdateTimeToLive", set(false, "other")).await;
    assert!(
        code == "ValidationException" && message.contains("active on a different AttributeName"),
        "{message}"
    );
    done(&harness, "UpdateTimeToLive", set(false, "until")).await;
}

#[tokio::test]
async fn what_a_table_is_told_beside_its_keys_is_described() {
    let harness = Harness::start().await;
    let index = json!({
        "IndexName": "by-id", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"}, "OnDemandThroughput": {"MaxWriteRequestUnits": 9},
        "WarmThroughput": {"ReadUnitsPerSecond": 12_000},
    });
    let more = json!({
        "SSESpecification": {"Enabled": true, "SSEType": "KMS", "KMSMasterKeyId": "alias/mine"},
        "OnDemandThroughput": {"MaxReadRequestUnits": 5},
        "WarmThroughput": {"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 4_000},
        "GlobalSecondaryIndexes": [index],
    });
    let made = make(&harness, "orders", more).await;
    let described =
        async || done(&harness, "DescribeTable", json!({"TableName": "orders"})).await["Table"].clone();
    for table in [made, described().await] {
        let key = "arn:aws:kms:us-east-1:000000000000:alias/mine";
        let encryption = json!({"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key});
        assert_eq!(table["SSEDescription"], encryption);
        let limits = json!({"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": -1});
        assert_eq!(table["OnDemandThroughput"], limits);
        let warm = json!({"ReadUnitsPerSecond": 13_000, "WriteUnitsPerSecond": 4_000, "Status": "ACTIVE"});
        assert_eq!(table["WarmThroughput"], warm);
        let index = &table["GlobalSecondaryIndexes"][0];
        assert_eq!(
            index["OnDemandThroughput"],
            json!({"MaxReadRequestUnits": -1, "MaxWriteRequestUnits": 9})
        );
        assert_eq!(index["WarmThroughput"], json!({"ReadUnitsPerSecond": 12_000, "Status": "ACTIVE"}));
    }
    let update = async |more: Value| {
        let mut body = json!({"TableName": "orders"});
        body.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        done(&harness, "UpdateTable", body).await;
        described().await
    };
    let table = update(json!({"SSESpecification": {"Enabled": false}})).await;
    assert_eq!(table["SSEDescription"], Value::Null);
    let table = update(json!({"OnDemandThroughput": {"MaxWriteRequestUnits": 7}})).await;
    assert_eq!(table["OnDemandThroughput"], json!({"MaxReadRequestUnits": 5, "MaxWriteRequestUnits": 7}));
    let table = update(json!({"WarmThroughput": {"WriteUnitsPerSecond": 5_000}})).await;
    assert_eq!(table["WarmThroughput"]["ReadUnitsPerSecond"], 13_000);
    assert_eq!(table["WarmThroughput"]["WriteUnitsPerSecond"], 5_000);
    let limits = json!({"IndexName": "by-id", "OnDemandThroughput": {"MaxWriteRequestUnits": -1}});
    let table = update(json!({"GlobalSecondaryIndexUpdates": [{"Update": limits}]})).await;
    assert_eq!(table["GlobalSecondaryIndexes"][0]["OnDemandThroughput"], Value::Null);
    // Limits of what is paid for by use end with that.
    let ordered = json!({"ReadCapacityUnits": 1, "WriteCapacityUnits": 1});
    let table = update(json!({"BillingMode": "PROVISIONED", "ProvisionedThroughput": ordered})).await;
    assert_eq!(table["OnDemandThroughput"], Value::Null);
}

#[tokio::test]
async fn what_a_table_cannot_do_is_refused_and_not_passed_over() {
    let harness = Harness::start().await;
    make(&harness, "orders", json!({})).await;
    let of_both = [
        json!({"SSESpecification": {"Enabled": true, "SSEType": "AES256"}}),
        json!({"SSESpecification": {"Enabled": true, "SSEType": "ROT13"}}),
        json!({"SSESpecification": {"Enabled": false, "KMSMasterKeyId": "alias/mine"}}),
        json!({"OnDemandThroughput": {}}),
        json!({"OnDemandThroughput": {"MaxReadRequestUnits": 0}}),
        json!({"WarmThroughput": {"ReadUnitsPerSecond": 0}}),
        json!({"GlobalTableSettingsReplicationMode": "ENABLED"}),
    ];
    let of_one = [
        ("CreateTable", json!({"ResourcePolicy": "{}"})),
        ("CreateTable", json!({"GlobalTableSourceArn": "arn:aws:dynamodb:us-east-1:0:table/x"})),
        ("UpdateTable", json!({"ReplicaUpdates": [{"Create": {"RegionName": "eu-west-1"}}]})),
        ("UpdateTable", json!({"MultiRegionConsistency": "STRONG"})),
        ("UpdateTable", json!({"GlobalTableWitnessUpdates": [{"Delete": {"RegionName": "eu-west-1"}}]})),
    ];
    let both = of_both.iter().flat_map(|more| ["CreateTable", "UpdateTable"].map(|one| (one, more.clone())));
    for (operation, more) in both.chain(of_one) {
        let mut body = match operation {
            "CreateTable" => json!({
                "TableName": "others", "BillingMode": "PAY_PER_REQUEST",
                "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
            }),
            _ => json!({"TableName": "orders", "DeletionProtectionEnabled": false}),
        };
        body.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
        let (code, message) = refused(&harness, operation, body).await;
        assert_eq!(code, "ValidationException", "{operation} {more}: {message}");
    }
    let ordered = json!({
        "TableName": "others", "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "OnDemandThroughput": {"MaxReadRequestUnits": 5},
    });
    let (_, message) = refused(&harness, "CreateTable", ordered).await;
    assert!(message.contains("PAY_PER_REQUEST"), "{message}");
    assert_eq!(done(&harness, "ListTables", json!({})).await["TableNames"], json!(["orders"]));
}
