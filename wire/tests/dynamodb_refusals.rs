//! What DynamoDB refuses, in which words, and which of several mistakes it tells of.

mod harness;

use std::time::Duration;

use harness::Harness;
use http::StatusCode;
use serde_json::{Value, json};

fn target(operation: &str) -> String {
    format!("DynamoDB_20120810.{operation}")
}

async fn refused(harness: &Harness, operation: &str, body: &Value) -> (String, String) {
    let (code, message) = harness.refused(&target(operation), body.clone()).await;
    (code.rsplit('#').next().unwrap_or_default().to_owned(), message)
}

/// Every call is refused as invalid, in these words.
async fn invalid(harness: &Harness, calls: &[(&str, Value, &str)]) {
    for (operation, body, words) in calls {
        let refusal = refused(harness, operation, body).await;
        assert_eq!(refusal, ("ValidationException".to_owned(), (*words).to_owned()), "{operation} {body}");
    }
}

/// Everything that is told at once about a call.
async fn findings(harness: &Harness, operation: &str, body: Value) -> Vec<String> {
    let (_, message) = refused(harness, operation, &body).await;
    let (count, findings) = message.split_once(" detected: ").unwrap_or_else(|| panic!("{message}"));
    let findings: Vec<_> = findings.split("; ").map(str::to_owned).collect();
    assert_eq!(count.split(' ').next(), Some(&*findings.len().to_string()), "{message}");
    findings
}

/// A table with a range key, a local index on `c` and a global one on `c` and `d`.
fn things() -> Value {
    let key = |names: &[&str]| {
        let kinds = ["HASH", "RANGE"];
        let elements =
            names.iter().zip(kinds).map(|(name, kind)| json!({"AttributeName": name, "KeyType": kind}));
        Value::Array(elements.collect())
    };
    let definitions = ["a", "b", "c", "d"].map(|name| json!({"AttributeName": name, "AttributeType": "S"}));
    json!({
        "TableName": "things", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": definitions, "KeySchema": key(&["a", "b"]),
        "LocalSecondaryIndexes": [
            {"IndexName": "local", "KeySchema": key(&["a", "c"]), "Projection": {"ProjectionType": "ALL"}},
        ],
        "GlobalSecondaryIndexes": [
            {"IndexName": "global", "KeySchema": key(&["c", "d"]), "Projection": {"ProjectionType": "KEYS_ONLY"}},
        ],
    })
}

async fn with_things() -> Harness {
    let harness = Harness::start().await;
    harness.done(&target("CreateTable"), things()).await;
    harness
}

/// The same with members that are other ones.
fn with(mut body: Value, members: Value) -> Value {
    for (name, value) in members.as_object().expect("members") {
        body[name] = value.clone();
    }
    body
}

const NO_NAME: &str = "The parameter 'TableName' is required but was not present in the request";
/// The refusal of a name that is too short or too long.
fn length(name: &str) -> String {
    let bound = if name.len() < 3 { "greater than or equal to 3" } else { "less than or equal to 255" };
    format!(
        "1 validation error detected: Value '{name}' at 'tableName' failed to satisfy constraint: Member must have length \
         {bound}"
    )
}

const PATTERN: &str = "1 validation error detected: Value 'abc;' at 'tableName' failed to satisfy constraint: Member must \
                       satisfy regular expression pattern: [a-zA-Z0-9_.-]+";

#[tokio::test]
async fn calls_about_tables_look_at_the_name_first() {
    let harness = Harness::start().await;
    for operation in ["DescribeTable", "DeleteTable", "DescribeTimeToLive"] {
        invalid(
            &harness,
            &[
                (operation, json!({}), NO_NAME),
                (operation, json!({"TableName": ""}), &length("")),
                (operation, json!({"TableName": "a;"}), &length("a;")),
                (operation, json!({"TableName": "a".repeat(256)}), &length(&"a".repeat(256))),
                (operation, json!({"TableName": "abc;"}), PATTERN),
            ],
        )
        .await;
    }
    for operation in ["CreateTable", "UpdateTable", "UpdateTimeToLive"] {
        invalid(
            &harness,
            &[(operation, json!({}), NO_NAME), (operation, json!({"TableName": "a;"}), &length("a;"))],
        )
        .await;
    }
    let found = findings(&harness, "CreateTable", json!({"TableName": "abc;"})).await;
    assert_eq!(found.len(), 3, "{found:?}");
    let found =
        findings(&harness, "ListTables", json!({"ExclusiveStartTableName": "a;", "Limit": 500})).await;
    assert_eq!(found.len(), 3, "{found:?}");
}

#[tokio::test]
async fn calls_about_items_tell_all_that_is_wrong_with_their_shape() {
    let harness = Harness::start().await;
    let name = json!({"TableName": "a;"});
    for (operation, count) in
        [("GetItem", 3), ("PutItem", 3), ("UpdateItem", 3), ("DeleteItem", 3), ("Query", 2), ("Scan", 2)]
    {
        let found = findings(&harness, operation, name.clone()).await;
        assert_eq!(found.len(), count, "{operation} {found:?}");
    }
    let query = json!({
        "TableName": "abc;", "IndexName": "abc;", "Select": "hi", "Limit": -1, "AttributesToGet": [],
        "ReturnConsumedCapacity": "hi", "ConditionalOperator": "AN",
        "KeyConditions": {"a": {}}, "QueryFilter": {"a": {}, "b": {"ComparisonOperator": ""}},
    });
    let found = findings(&harness, "Query", query).await;
    assert_eq!(found.len(), 10, "{found:?}");
    assert!(
        found.iter().any(|finding| finding.contains("'queryFilter.a.member.comparisonOperator'")),
        "{found:?}"
    );
    let found = findings(
        &harness,
        "BatchWriteItem",
        json!({"RequestItems": {"aa;": [{"PutRequest": {}, "DeleteRequest": {}}]}}),
    )
    .await;
    assert!(
        found[0]
            .contains("Map keys must satisfy constraint: [Member must have length less than or equal to 255")
    );
    assert!(
        found[1].starts_with("Value null at 'requestItems.aa;.member.1.member.deleteRequest.key'"),
        "{found:?}"
    );
    let found = findings(&harness, "PutItem", json!({"TableName": "", "Item": {}})).await;
    let words = "Value '' at 'tableName' failed to satisfy constraint: Member must have length greater than or equal to 1";
    assert_eq!(found, [words]);
    for operation in ["BatchGetItem", "BatchWriteItem"] {
        let words = format!("The requestItems parameter is required for {operation}");
        invalid(&harness, &[(operation, json!({"RequestItems": {}}), &words)]).await;
    }
    let many = |count: usize, one: Value| -> Value { vec![one; count].into() };
    let found = findings(
        &harness,
        "BatchGetItem",
        json!({"RequestItems": {"abc": {"Keys": many(101, json!({"id": {"S": "x"}}))}}}),
    )
    .await;
    let words = "Value at 'RequestItems.abc.member.Keys' failed to satisfy constraint: Member must have length less than or \
                 equal to 100";
    assert_eq!(found, [words]);
    let put = json!({"PutRequest": {"Item": {"id": {"S": "x"}}}});
    let found = findings(&harness, "BatchWriteItem", json!({"RequestItems": {"abc": many(26, put)}})).await;
    assert!(found[0].starts_with("Value '{abc=[...]}' at 'requestItems' failed"), "{found:?}");
    let found = findings(&harness, "TransactGetItems", json!({"TransactItems": many(101, json!({}))})).await;
    assert!(found[0].starts_with("Value '[...]' at 'transactItems' failed"), "{found:?}");
    let found = findings(&harness, "Query", json!({"TableName": "abc", "Limit": 0})).await;
    let words =
        "Value at 'Limit' failed to satisfy constraint: Member must have value greater than or equal to 1";
    assert_eq!(found, [words]);
    let found = findings(&harness, "BatchWriteItem", json!({"RequestItems": {"abc": []}})).await;
    assert!(
        found[0].contains(
            "Map value must satisfy constraint: [Member must have length less than or equal to 25,"
        )
    );
    let found = findings(&harness, "BatchGetItem", json!({"RequestItems": {"abc": {"Keys": []}}})).await;
    assert!(found[0].starts_with("Value '[]' at 'requestItems.abc.member.keys'"), "{found:?}");
}

#[tokio::test]
async fn tables_that_cannot_be_made_are_refused_in_order() {
    let harness = Harness::start().await;
    let invalid_parameter = |why: &str| format!("One or more parameter values were invalid: {why}");
    let indexes = |count: usize, kind: &str| -> Value {
        let one = &things()[kind][0];
        (0..count).map(|number| with(one.clone(), json!({"IndexName": format!("index{number}")}))).collect()
    };
    let capacity = json!({"ReadCapacityUnits": 1_000_000_000_001_i64, "WriteCapacityUnits": 1});
    let lacking = json!([{"AttributeName": "a", "AttributeType": "S"}]);
    let local = &things()["LocalSecondaryIndexes"][0];
    for (members, words) in [
        (
            json!({"BillingMode": "PROVISIONED", "AttributeDefinitions": lacking}),
            invalid_parameter(
                "ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED",
            ),
        ),
        (
            json!({"BillingMode": "PROVISIONED", "ProvisionedThroughput": capacity, "AttributeDefinitions": lacking}),
            "Given value 1000000000001 for ReadCapacityUnits is out of bounds".to_owned(),
        ),
        (
            json!({"AttributeDefinitions": lacking}),
            "Invalid KeySchema: Some index key attribute have no definition".to_owned(),
        ),
        (
            json!({"LocalSecondaryIndexes": indexes(6, "LocalSecondaryIndexes")}),
            invalid_parameter("Number of LocalSecondaryIndexes exceeds per-table limit of 5"),
        ),
        (
            json!({"GlobalSecondaryIndexes": indexes(21, "GlobalSecondaryIndexes")}),
            invalid_parameter("GlobalSecondaryIndex count exceeds the per-table limit of 20"),
        ),
        (
            json!({"LocalSecondaryIndexes": [with(local.clone(), json!({"KeySchema": [local["KeySchema"][0]]}))]}),
            invalid_parameter("Index KeySchema does not have a range key for index: local"),
        ),
    ] {
        let body = with(things(), members);
        invalid(&harness, &[("CreateTable", body, &*words)]).await;
    }
    // As many as there may be.
    let most = with(
        things(),
        json!({"LocalSecondaryIndexes": indexes(5, "LocalSecondaryIndexes"), "GlobalSecondaryIndexes": []}),
    );
    let words = invalid_parameter("List of GlobalSecondaryIndexes is empty");
    invalid(&harness, &[("CreateTable", most, &*words)]).await;
    let found = findings(
        &harness,
        "CreateTable",
        with(things(), json!({"KeySchema": [], "ProvisionedThroughput": {}})),
    )
    .await;
    assert_eq!(found.len(), 3, "{found:?}");
}

#[tokio::test]
async fn changes_to_tables_are_refused_in_order() {
    let harness = with_things().await;
    let update = |members: Value| with(json!({"TableName": "things"}), members);
    let delete = json!({"Delete": {"IndexName": "abc"}});
    let units = json!({"ReadCapacityUnits": 1, "WriteCapacityUnits": 1});
    invalid(
        &harness,
        &[
            (
                "UpdateTable",
                update(json!({"GlobalSecondaryIndexUpdates": [{}]})),
                "One or more parameter values were invalid: One of GlobalSecondaryIndexUpdate.Update, \
                 GlobalSecondaryIndexUpdate.Create, GlobalSecondaryIndexUpdate.Delete must not be null",
            ),
            (
                "UpdateTable",
                update(json!({"GlobalSecondaryIndexUpdates": [delete, delete]})),
                "One or more parameter values were invalid: Only one global secondary index update per index is allowed \
                 simultaneously. Index: abc",
            ),
            (
                "UpdateTable",
                update(json!({"ProvisionedThroughput": units})),
                "One or more parameter values were invalid: Neither ReadCapacityUnits nor WriteCapacityUnits can be \
                 specified when BillingMode is PAY_PER_REQUEST",
            ),
            (
                "UpdateTable",
                update(json!({"BillingMode": "PROVISIONED"})),
                "One or more parameter values were invalid: ProvisionedThroughput must be specified when BillingMode is \
                 PROVISIONED",
            ),
        ],
    )
    .await;
    let provisioned = update(json!({"BillingMode": "PROVISIONED", "ProvisionedThroughput": units}));
    harness.done(&target("UpdateTable"), provisioned).await;
    let (_, message) =
        refused(&harness, "UpdateTable", &update(json!({"ProvisionedThroughput": units}))).await;
    assert!(message.starts_with("The provisioned throughput for the table will not change."), "{message}");
    let found =
        findings(&harness, "UpdateTable", update(json!({"GlobalSecondaryIndexUpdates": [{"Update": {}}]})))
            .await;
    assert_eq!(found.len(), 2, "{found:?}");
}

#[tokio::test]
async fn tags_are_refused_in_order() {
    let harness = with_things().await;
    let nowhere = "arn:aws:dynamodb:us-east-1:000000000000:table/nothing";
    let short = "arn:aws:dynamodb:us-east-1:000000000000:table/ab";
    let tags = json!([{"Key": "k", "Value": "v"}]);
    let no_arn = "Invalid TableArn: Invalid ResourceArn provided as input a:b:c:d:e:f/g";
    let no_table = format!("Invalid TableArn: Invalid ResourceArn provided as input {short}");
    invalid(
        &harness,
        &[
            ("TagResource", json!({}), "Invalid TableArn"),
            ("TagResource", json!({"ResourceArn": "a:b:c:d:e:f/g", "Tags": []}), no_arn),
            ("TagResource", json!({"ResourceArn": short, "Tags": []}), &no_table),
            (
                "TagResource",
                json!({"ResourceArn": nowhere, "Tags": []}),
                "Atleast one Tag needs to be provided as Input.",
            ),
            (
                "UntagResource",
                json!({"ResourceArn": nowhere, "TagKeys": []}),
                "Atleast one Tag Key needs to be provided as Input.",
            ),
            ("ListTagsOfResource", json!({"ResourceArn": short}), &no_table),
        ],
    )
    .await;
    let not_found = format!("Requested resource not found: ResourcArn: {nowhere} not found");
    for (operation, body) in [
        ("TagResource", json!({"ResourceArn": nowhere, "Tags": tags})),
        ("ListTagsOfResource", json!({"ResourceArn": nowhere})),
    ] {
        let refusal = refused(&harness, operation, &body).await;
        assert_eq!(refusal, ("ResourceNotFoundException".to_owned(), not_found.clone()), "{operation}");
    }
}

#[tokio::test]
async fn values_of_the_wrong_type_are_told_in_the_words_of_the_service() {
    let harness = Harness::start().await;
    let package = "com.amazonaws.dynamodb.v20120810";
    for (operation, body, words) in [
        ("GetItem", json!({"TableName": 23}), "NUMBER_VALUE cannot be converted to String".to_owned()),
        ("GetItem", json!({"ConsistentRead": "23"}), "Unexpected token received from parser".to_owned()),
        ("Scan", json!({"Limit": "23"}), "STRING_VALUE cannot be converted to Integer".to_owned()),
        (
            "CreateTable",
            json!({"ProvisionedThroughput": {"ReadCapacityUnits": true}}),
            "TRUE_VALUE cannot be converted to Long".to_owned(),
        ),
        (
            "CreateTable",
            json!({"KeySchema": [[]]}),
            format!("Unrecognized collection type class {package}.KeySchemaElement"),
        ),
        (
            "CreateTable",
            json!({"KeySchema": {}}),
            "Start of structure or map found where not expected".to_owned(),
        ),
        (
            "PutItem",
            json!({"Item": {"a": {"S": []}}}),
            "Unrecognized collection type class java.lang.String".to_owned(),
        ),
        ("PutItem", json!({"Item": {"a": "b"}}), "Unexpected value type in payload".to_owned()),
        ("PutItem", json!({"Item": "a"}), "Unexpected field type".to_owned()),
        (
            "PutItem",
            json!({"Item": []}),
            format!("Unrecognized collection type java.util.Map<java.lang.String, {package}.AttributeValue>"),
        ),
        (
            "BatchWriteItem",
            json!({"RequestItems": []}),
            format!(
                "Unrecognized collection type java.util.Map<java.lang.String, java.util.List<{package}.WriteRequest>>"
            ),
        ),
        (
            "GetItem",
            json!({"ExpressionAttributeNames": []}),
            "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>".to_owned(),
        ),
        (
            "PutItem",
            json!({"Item": {"a": {"BS": ["12345"]}}}),
            "Base64 encoded length is expected a multiple of 4 bytes but found: 5".to_owned(),
        ),
    ] {
        let (status, answer) = harness.call(&target(operation), body.clone()).await;
        let expected = json!({"__type": "com.amazon.coral.service#SerializationException", "Message": words});
        assert_eq!((status, answer), (StatusCode::BAD_REQUEST, expected), "{operation} {body}");
    }
}

#[tokio::test]
async fn an_item_that_is_too_large_is_refused_without_a_table() {
    let harness = Harness::start().await;
    // The name of the attribute is a part of the item.
    let item = |bytes: usize| json!({"a": {"S": "x".repeat(bytes - 1)}});
    let put = |bytes: usize| ("PutItem", json!({"TableName": "none", "Item": item(bytes)}));
    let batch = |bytes: usize| {
        ("BatchWriteItem", json!({"RequestItems": {"none": [{"PutRequest": {"Item": item(bytes)}}]}}))
    };
    for (operation, body) in [put(409_601), batch(409_601)] {
        let refusal = refused(&harness, operation, &body).await;
        let words = "Item size has exceeded the maximum allowed size".to_owned();
        assert_eq!(refusal, ("ValidationException".to_owned(), words), "{operation}");
    }
    for (operation, body) in [put(409_600), batch(409_600)] {
        assert_eq!(refused(&harness, operation, &body).await.0, "ResourceNotFoundException", "{operation}");
    }
}

#[tokio::test]
async fn batches_do_not_tell_what_is_wrong_with_a_key() {
    let harness = with_things().await;
    for item in [json!({}), json!({"a": {"S": "x"}}), json!({"a": {"N": "1"}, "b": {"S": "x"}})] {
        let body = json!({"RequestItems": {"things": [{"PutRequest": {"Item": item}}]}});
        invalid(&harness, &[("BatchWriteItem", body, "The provided key element does not match the schema")])
            .await;
    }
}

#[tokio::test]
async fn pages_start_where_there_can_be_an_item() {
    let harness = with_things().await;
    const INVALID: &str = "The provided starting key is invalid";
    const SCHEMA: &str = "The provided key element does not match the schema";
    let both = format!("{INVALID}: {SCHEMA}");
    let scan = |index: Option<&str>, start: Value| {
        let index = index.map_or_else(|| json!({}), |index| json!({"IndexName": index}));
        with(with(json!({"TableName": "things"}), index), json!({"ExclusiveStartKey": start}))
    };
    let query = |index: Option<&str>, condition: &str, start: Value| {
        let key = json!({
            "KeyConditionExpression": condition, "ExpressionAttributeValues": {":x": {"S": "x"}, ":y": {"S": "y"}},
        });
        with(scan(index, start), key)
    };
    let key = |a: &str, b: &str| json!({"a": {"S": a}, "b": {"S": b}});
    let empty = format!(
        "{INVALID}: Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
    );
    invalid(
        &harness,
        &[
            ("Scan", scan(None, json!({"a": {}})), &empty),
            (
                "Scan",
                scan(None, json!({"a": {"N": "x"}})),
                "The parameter cannot be converted to a numeric value: x",
            ),
            ("Scan", scan(None, json!({"a": {"S": "x"}})), &both),
            ("Scan", scan(Some("local"), key("x", "x")), INVALID),
            ("Scan", scan(Some("local"), with(key("x", "x"), json!({"c": {"N": "1"}}))), SCHEMA),
            ("Scan", scan(Some("local"), json!({"a": {"S": "x"}, "b": {"N": "1"}, "c": {"S": "x"}})), &both),
            ("Query", query(None, "a = :x and b = :y", json!({"a": {"S": "x"}})), INVALID),
            ("Query", query(None, "a = :x and b = :y", json!({"a": {"S": "x"}, "b": {"N": "1"}})), SCHEMA),
            (
                "Query",
                query(None, "a = :x and b < :y", key("x", "z")),
                "The provided starting key does not match the range key predicate",
            ),
            (
                "Query",
                query(None, "a = :x and b = :y", key("z", "y")),
                "The query can return at most one row and cannot be restarted",
            ),
        ],
    )
    .await;
    let outside = with(
        scan(None, key("z", "y")),
        json!({"KeyConditionExpression": "a = :x", "ExpressionAttributeValues": {":x": {"S": "x"}}}),
    );
    let words = "The provided starting key is outside query boundaries based on provided conditions";
    invalid(&harness, &[("Query", outside, words)]).await;
}

#[tokio::test]
async fn older_conditions_on_keys_are_judged_by_the_key() {
    let harness = with_things().await;
    let equals = json!({"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]});
    let differs = json!({"ComparisonOperator": "NE", "AttributeValueList": [{"S": "x"}]});
    let query = |conditions: Value| json!({"TableName": "things", "KeyConditions": conditions});
    invalid(
        &harness,
        &[
            ("Query", query(json!({})), "Conditions can be of length 1 or 2 only"),
            ("Query", query(json!({"b": differs})), "Query condition missed key schema element: a"),
            ("Query", query(json!({"a": differs})), "Attempted conditional constraint is not an indexable operation"),
            ("Query", query(json!({"a": equals, "z": equals})), "Query condition missed key schema element: b"),
            (
                "Query",
                query(json!({"a": {"ComparisonOperator": "IN", "AttributeValueList": []}})),
                "One or more parameter values were invalid: Invalid number of argument(s) for the IN ComparisonOperator",
            ),
            (
                "Query",
                json!({"TableName": "things"}),
                "Either the KeyConditions or KeyConditionExpression parameter must be specified in the request.",
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn nobody_looks_into_the_parts_of_keys() {
    let harness = with_things().await;
    let scalars =
        "Key attributes must be scalars; list random access '[]' and map lookup '.' are not allowed";
    let (of_key, of_index) = (format!("{scalars}: Key: a"), format!("{scalars}: IndexKey: d"));
    let key = json!({"a": {"S": "x"}, "b": {"S": "x"}});
    let get = |path: &str| json!({"TableName": "things", "Key": key, "ProjectionExpression": path});
    let update = json!({
        "TableName": "things", "Key": key, "UpdateExpression": "set d.x = :v",
        "ExpressionAttributeValues": {":v": {"S": "x"}},
    });
    invalid(
        &harness,
        &[
            ("GetItem", get("a.x"), &*of_key),
            ("GetItem", get("d[0]"), &*of_index),
            ("Scan", json!({"TableName": "things", "FilterExpression": "attribute_exists(a.b)"}), &*of_key),
            ("UpdateItem", update, &*of_index),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_table_in_the_making_takes_neither_items_nor_changes() {
    let moment = Duration::from_secs(3_600);
    let harness = Harness::with_transition(moment).await;
    let made = harness.done(&target("CreateTable"), things()).await;
    assert_eq!(made["TableDescription"]["TableStatus"], "CREATING");
    assert_eq!(made["TableDescription"]["GlobalSecondaryIndexes"][0]["IndexStatus"], "CREATING");
    let name = json!({"TableName": "things"});
    let item = json!({"a": {"S": "x"}, "b": {"S": "x"}});
    for (operation, body) in [
        ("PutItem", with(name.clone(), json!({"Item": item}))),
        ("GetItem", with(name.clone(), json!({"Key": item}))),
        ("Scan", name.clone()),
        ("BatchGetItem", json!({"RequestItems": {"things": {"Keys": [item]}}})),
        ("BatchWriteItem", json!({"RequestItems": {"things": [{"PutRequest": {"Item": item}}]}})),
        ("TransactGetItems", json!({"TransactItems": [{"Get": with(name.clone(), json!({"Key": item}))}]})),
        (
            "TransactWriteItems",
            json!({"TransactItems": [{"Put": with(name.clone(), json!({"Item": item}))}]}),
        ),
    ] {
        let refusal = refused(&harness, operation, &body).await;
        let expected = ("ResourceNotFoundException".to_owned(), "Requested resource not found".to_owned());
        assert_eq!(refusal, expected, "{operation}");
    }
    let words = "Attempt to change a resource which is still in use: Table is being created: things";
    for (operation, body) in [
        ("DeleteTable", name.clone()),
        ("UpdateTable", with(name.clone(), json!({"DeletionProtectionEnabled": true}))),
    ] {
        let refusal = refused(&harness, operation, &body).await;
        assert_eq!(refusal, ("ResourceInUseException".to_owned(), words.to_owned()), "{operation}");
    }
    harness.clock.advance(moment);
    harness.done(&target("PutItem"), with(name.clone(), json!({"Item": item}))).await;
    let described = harness.done(&target("DescribeTable"), name).await;
    assert_eq!(described["Table"]["TableStatus"], "ACTIVE");
}
