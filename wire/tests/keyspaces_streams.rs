//! Keyspaces Streams over HTTP, on a table that was made as one of a keyspace.

mod harness;

use anabranch_model::table::{
    ChangeView, Clustering, Column, ColumnKind, Item, KeyKind, KeySchema, KeyspaceShape, TableOptions, Write,
};
use anabranch_model::{TableName, TableStore};
use harness::Harness;
use http::StatusCode;
use serde_json::{Value, json};

async fn call(harness: &Harness, operation: &str, body: Value) -> (StatusCode, Value) {
    harness.call(&format!("KeyspacesStreams.{operation}"), body).await
}

async fn done(harness: &Harness, operation: &str, body: Value) -> Value {
    harness.done(&format!("KeyspacesStreams.{operation}"), body).await
}

async fn make(harness: &Harness, table: &str) -> TableName {
    let column = |name: &str, kind| Column { name: name.to_owned(), kind, shared: false };
    let shape = KeyspaceShape {
        keyspace: "shop".to_owned(),
        columns: vec![
            column("customer", ColumnKind::Text),
            column("number", ColumnKind::Int),
            column("total", ColumnKind::Decimal),
        ],
        partition: vec!["customer".to_owned()],
        clustering: vec![Clustering { column: "number".to_owned(), descending: false }],
    };
    let key = KeySchema::hash("customer", KeyKind::Text).and_range("number", KeyKind::Number);
    let options =
        TableOptions { keyspace: Some(shape), ..TableOptions::new(key).with_changes(ChangeView::Both) };
    let name = TableName::new(table).expect("a name");
    harness.engine.create_table(&name, options).await.expect("a table");
    name
}

#[tokio::test]
async fn rows_are_told_with_the_types_of_their_columns() {
    let harness = Harness::start().await;
    let table = make(&harness, "orders").await;
    make(&harness, "others").await;
    let row = |total: i32| Item::new().with("customer", "ada").with("number", 7).with("total", total);
    for write in [
        Write::put(row(1)),
        Write::put(row(2)),
        Write::delete(Item::new().with("customer", "ada").with("number", 7)),
    ] {
        harness.engine.write(&table, write).await.expect("a write");
    }
    let first = done(&harness, "ListStreams", json!({"keyspaceName": "shop", "maxResults": 1})).await;
    let rest = done(&harness, "ListStreams", json!({"nextToken": first["nextToken"]})).await;
    assert_eq!(
        (&first["streams"][0]["tableName"], &rest["streams"][0]["tableName"]),
        (&json!("orders"), &json!("others"))
    );
    assert!(
        first["nextToken"].as_str().is_some_and(|token| token.len() >= 80),
        "clients refuse shorter tokens"
    );
    assert_eq!(done(&harness, "ListStreams", json!({"keyspaceName": "other"})).await["streams"], json!([]));

    let arn = &first["streams"][0]["streamArn"];
    let stream = done(&harness, "GetStream", json!({"streamArn": arn})).await;
    assert_eq!(stream["streamStatus"], "ENABLED");
    assert_eq!(stream["keyspaceName"], "shop");
    let mut records = Vec::new();
    for shard in stream["shards"].as_array().expect("shards") {
        let body =
            json!({"streamArn": arn, "shardId": shard["shardId"], "shardIteratorType": "TRIM_HORIZON"});
        let iterator = done(&harness, "GetShardIterator", body).await["shardIterator"].clone();
        let answer = done(&harness, "GetRecords", json!({"shardIterator": iterator})).await;
        assert!(answer["nextShardIterator"].is_string());
        records.extend(answer["changeRecords"].as_array().expect("records").clone());
    }
    assert_eq!(records.len(), 3);
    for record in &records {
        assert_eq!(record["partitionKeys"], json!({"customer": {"textT": "ada"}}));
        assert_eq!(record["clusteringKeys"], json!({"number": {"intT": "7"}}));
        assert_eq!(record["origin"], "USER");
    }
    let total = |text: &str| json!({"valueCells": {"total": {"value": {"decimalT": text}}}});
    let images = |record: &Value| (record["oldImage"].clone(), record["newImage"].clone());
    assert_eq!(images(&records[0]), (Value::Null, total("1")));
    assert_eq!(images(&records[1]), (total("1"), total("2")));
    assert_eq!(images(&records[2]), (total("2"), Value::Null));
}

#[tokio::test]
async fn refusals_say_what_kind_they_are() {
    let harness = Harness::start().await;
    make(&harness, "orders").await;
    let listed = done(&harness, "ListStreams", json!({"tableName": "orders"})).await;
    let arn = listed["streams"][0]["streamArn"].as_str().expect("an ARN").to_owned();
    let stream = done(&harness, "GetStream", json!({"streamArn": arn, "maxResults": 1})).await;
    let more = json!({"streamArn": arn, "nextToken": stream["nextToken"]});
    assert!(
        done(&harness, "GetStream", more).await["shards"].as_array().is_some_and(|shards| !shards.is_empty())
    );
    let body =
        json!({"streamArn": arn, "shardId": stream["shards"][0]["shardId"], "shardIteratorType": "LATEST"});
    let iterator = done(&harness, "GetShardIterator", body).await["shardIterator"].clone();
    // The iterators of the other service are not good here, nor ours there.
    let (status, value) =
        harness.call("DynamoDBStreams_20120810.GetRecords", json!({"ShardIterator": iterator})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{value}");
    harness.clock.advance(std::time::Duration::from_secs(16 * 60));
    for (operation, body, code) in [
        ("GetRecords", json!({"shardIterator": iterator}), "ExpiredIterator"),
        ("GetRecords", json!({"shardIterator": "x"}), "InvalidFormat"),
        ("GetRecords", json!({}), "InvalidFormat"),
        ("GetStream", json!({"streamArn": arn, "nextToken": "x"}), "InvalidFormat"),
        ("ListStreams", json!({"maxResults": 0}), "InvalidFormat"),
    ] {
        let (status, value) = call(&harness, operation, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{operation}: {value}");
        assert_eq!(value["errorCode"], code, "{operation}: {value}");
    }
    let (_, value) = call(&harness, "GetStream", json!({"streamArn": arn.replace("shop", "shed")})).await;
    assert!(
        value["__type"].as_str().is_some_and(|code| code.ends_with("ResourceNotFoundException")),
        "{value}"
    );
}
