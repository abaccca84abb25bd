//! Tables that are made and changed by a server that dies at any step: afterwards all that was asked for is there, or nothing.

mod harness;

use std::collections::BTreeMap;

use anabranch_model::table::Alteration;
use anabranch_model::{Admin, Owner, TableName, TableStore};
use harness::{Death, Harness};
use http::StatusCode;
use serde_json::{Value, json};

fn target(operation: &str) -> String {
    format!("DynamoDB_20120810.{operation}")
}

async fn done(harness: &Harness, operation: &str, body: Value) -> Value {
    harness.done(&target(operation), body).await
}

fn things() -> TableName {
    TableName::new("things").expect("a name")
}

/// A table with everything that is kept beside it.
fn request() -> Value {
    json!({
        "TableName": "things", "BillingMode": "PROVISIONED",
        "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4},
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [
            {"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "team", "AttributeType": "S"},
        ],
        "GlobalSecondaryIndexes": [index("old")],
        "Tags": [{"Key": "team", "Value": "red"}, {"Key": "stage", "Value": "x"}],
        "TableClass": "STANDARD_INFREQUENT_ACCESS",
        "DeletionProtectionEnabled": true,
        "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_IMAGE"},
    })
}

fn index(name: &str) -> Value {
    json!({
        "IndexName": name, "KeySchema": [{"AttributeName": "team", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
        "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 2},
    })
}

/// What a table says about itself, without what is different in every one; none if it is not there.
async fn seen(harness: &Harness) -> Option<Value> {
    let (status, answer) = harness.call(&target("DescribeTable"), json!({"TableName": "things"})).await;
    if status != StatusCode::OK {
        assert_eq!(answer["__type"], "com.amazonaws.dynamodb.v20120810#ResourceNotFoundException");
        return None;
    }
    let table = &answer["Table"];
    let arn = &table["TableArn"];
    let tags = done(harness, "ListTagsOfResource", json!({"ResourceArn": arn})).await["Tags"].clone();
    let tags = tags.as_array().expect("tags").iter();
    let tags: BTreeMap<_, _> = tags.map(|tag| (tag["Key"].to_string(), tag["Value"].clone())).collect();
    let indexes = table["GlobalSecondaryIndexes"].as_array().into_iter().flatten();
    let indexes: Vec<_> =
        indexes.map(|index| json!([index["IndexName"], index["ProvisionedThroughput"]])).collect();
    Some(json!({
        "throughput": table["ProvisionedThroughput"], "class": table["TableClassSummary"],
        "protected": table["DeletionProtectionEnabled"], "stream": table["StreamSpecification"],
        "indexes": indexes, "tags": tags,
    }))
}

/// Whether a server that died left nothing to be done.
async fn nothing_is_noted(harness: &Harness) -> bool {
    let notes = harness.engine.documents(&Owner::Store, "table-making", None, 10).await.expect("documents");
    notes.entries.is_empty()
}

/// All the moments at which a server can die that makes so many writes at most.
fn deaths() -> impl Iterator<Item = Death> {
    (0..8).flat_map(|writes| [true, false].map(|behind| Death { writes, behind }))
}

#[tokio::test]
async fn a_table_is_made_as_a_whole_or_not_at_all() {
    let whole = {
        let harness = Harness::start().await;
        done(&harness, "CreateTable", request()).await;
        assert!(nothing_is_noted(&harness).await);
        seen(&harness).await.expect("the table is there")
    };
    let (mut unmade, mut finished, mut made) = (0, 0, 0);
    for death in deaths() {
        let harness = Harness::start().await;
        harness.dies(death);
        let (status, _) = harness.call(&target("CreateTable"), request()).await;
        let harness = harness.crash().await;
        match (status == StatusCode::OK, seen(&harness).await) {
            (false, None) => {
                unmade += 1;
                done(&harness, "CreateTable", request()).await;
                assert_eq!(seen(&harness).await.as_ref(), Some(&whole), "{death:?}");
            }
            (answered, seen) => {
                assert_eq!(seen.as_ref(), Some(&whole), "{death:?}");
                if answered { made += 1 } else { finished += 1 }
            }
        }
        assert!(nothing_is_noted(&harness).await, "{death:?}");
    }
    assert!(unmade >= 1 && finished >= 3 && made >= 1, "{unmade} {finished} {made}");
}

/// A change of all that there is.
fn change() -> Value {
    json!({
        "TableName": "things", "BillingMode": "PAY_PER_REQUEST", "DeletionProtectionEnabled": false,
        "TableClass": "STANDARD", "StreamSpecification": {"StreamEnabled": false},
        "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "old"}}],
    })
}

#[tokio::test]
async fn a_table_is_changed_as_a_whole_or_not_at_all() {
    let (before, after) = {
        let harness = Harness::start().await;
        done(&harness, "CreateTable", request()).await;
        let before = seen(&harness).await;
        done(&harness, "UpdateTable", change()).await;
        assert!(nothing_is_noted(&harness).await);
        (before, seen(&harness).await)
    };
    assert_ne!(before, after);
    let (mut unchanged, mut finished, mut changed) = (0, 0, 0);
    for death in deaths() {
        let harness = Harness::start().await;
        done(&harness, "CreateTable", request()).await;
        harness.dies(death);
        let (status, _) = harness.call(&target("UpdateTable"), change()).await;
        let harness = harness.crash().await;
        let seen = seen(&harness).await;
        if status != StatusCode::OK && seen == before {
            unchanged += 1;
        } else {
            assert_eq!(seen, after, "{death:?}");
            if status == StatusCode::OK { changed += 1 } else { finished += 1 }
        }
        assert!(nothing_is_noted(&harness).await, "{death:?}");
    }
    assert!(unchanged >= 1 && finished >= 3 && changed >= 1, "{unchanged} {finished} {changed}");
}

/// Steps of the store have no document between them.
#[tokio::test]
async fn a_change_goes_on_behind_the_steps_that_were_taken() {
    let harness = Harness::start().await;
    done(&harness, "CreateTable", request()).await;
    harness.dies(Death { writes: 0, behind: true });
    let mut request = change();
    let create = json!({"Create": {
        "IndexName": "new", "KeySchema": [{"AttributeName": "team", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    }});
    request["GlobalSecondaryIndexUpdates"] = json!([create]);
    request["AttributeDefinitions"] = json!([{"AttributeName": "team", "AttributeType": "S"}]);
    let (status, answer) = harness.call(&target("UpdateTable"), request).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    // What the server had done if it had died behind this step.
    harness.engine.alter(&things(), Alteration::Changes(None)).await.expect("it is altered");
    let harness = harness.crash().await;
    let seen = seen(&harness).await.expect("the table is there");
    assert_eq!((&seen["indexes"][0][0], &seen["indexes"][1][0]), (&json!("old"), &json!("new")));
    assert_eq!((&seen["stream"], &seen["protected"]), (&Value::Null, &json!(false)));
}

#[tokio::test]
async fn what_was_asked_of_a_table_that_is_gone_is_forgotten() {
    let harness = Harness::start().await;
    harness.dies(Death { writes: 0, behind: true });
    let (status, _) = harness.call(&target("CreateTable"), request()).await;
    assert_ne!(status, StatusCode::OK);
    let harness = harness.crash().await;
    let mut plain = request();
    for member in ["Tags", "TableClass", "DeletionProtectionEnabled", "StreamSpecification"] {
        plain.as_object_mut().expect("a map").remove(member);
    }
    done(&harness, "CreateTable", plain).await;
    let harness = harness.crash().await;
    let seen = seen(&harness).await.expect("the table is there");
    assert_eq!(
        (&seen["tags"], &seen["protected"], &seen["class"]),
        (&json!({}), &json!(false), &Value::Null)
    );
}
