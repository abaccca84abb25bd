//! DynamoDB over HTTP: global indexes whose hash and range have several attributes each.

mod harness;

use std::time::Duration;

use harness::Harness;
use serde_json::{Value, json};

async fn done(harness: &Harness, operation: &str, body: Value) -> Value {
    harness.done(&format!("DynamoDB_20120810.{operation}"), body).await
}

async fn invalid(harness: &Harness, operation: &str, body: Value) -> String {
    let (code, message) = harness.refused(&format!("DynamoDB_20120810.{operation}"), body).await;
    assert!(code.ends_with("#ValidationException"), "{code}: {message}");
    message
}

fn element(name: &str, kind: &str) -> Value {
    json!({"AttributeName": name, "KeyType": kind})
}

/// An index by country and town, within which items lie by year, month and name.
fn places() -> Value {
    json!({"IndexName": "places", "Projection": {"ProjectionType": "ALL"}, "KeySchema": [
        element("country", "HASH"), element("town", "HASH"),
        element("year", "RANGE"), element("month", "RANGE"), element("name", "RANGE"),
    ]})
}

fn definitions(names: &[&str]) -> Value {
    let kind = |name: &str| if ["year", "month"].contains(&name) { "N" } else { "S" };
    names.iter().map(|name| json!({"AttributeName": name, "AttributeType": kind(name)})).collect()
}

fn table(index: Value) -> Value {
    json!({
        "TableName": "events", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [element("id", "HASH")],
        "AttributeDefinitions": definitions(&["id", "country", "town", "year", "month", "name"]),
        "GlobalSecondaryIndexes": [index],
    })
}

fn event(id: &str, town: &str, year: i32, month: i32, name: &str) -> Value {
    json!({"id": {"S": id}, "country": {"S": "at"}, "town": {"S": town}, "year": {"N": year.to_string()},
        "month": {"N": month.to_string()}, "name": {"S": name}})
}

async fn fill(harness: &Harness) {
    for (id, town, year, month, name) in [
        ("1", "wien", 2026, 10, "b"),
        ("2", "wien", 2026, 9, "z"),
        ("3", "wien", 2026, 10, "a"),
        ("4", "wien", 2025, 12, "c"),
        ("5", "graz", 2026, 1, "d"),
    ] {
        let item = event(id, town, year, month, name);
        done(harness, "PutItem", json!({"TableName": "events", "Item": item})).await;
    }
    // An index holds what has every attribute of its key.
    let mut partial = event("6", "wien", 2026, 1, "x");
    partial.as_object_mut().expect("an item").remove("month");
    done(harness, "PutItem", json!({"TableName": "events", "Item": partial})).await;
}

fn query(condition: &str, values: Value) -> Value {
    let mut body = json!({"TableName": "events", "IndexName": "places", "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values, "ExpressionAttributeNames": {"#m": "month", "#n": "name", "#y": "year"}});
    let used = |name: &str| condition.contains(name);
    let names = body["ExpressionAttributeNames"].as_object_mut().expect("names");
    names.retain(|name, _| used(name));
    if names.is_empty() {
        body.as_object_mut().expect("a call").remove("ExpressionAttributeNames");
    }
    body
}

fn ids(page: &Value) -> String {
    let items = page["Items"].as_array().expect("items");
    items.iter().map(|item| item["id"]["S"].as_str().expect("an id")).collect()
}

const WIEN: &str = "country = :c AND town = :t";

fn wien(more: Value) -> Value {
    let mut values = json!({":c": {"S": "at"}, ":t": {"S": "wien"}});
    values.as_object_mut().expect("values").extend(more.as_object().expect("values").clone());
    values
}

#[tokio::test]
async fn items_are_found_from_the_first_range_attribute_on() {
    let harness = Harness::start().await;
    let made = done(&harness, "CreateTable", table(places())).await;
    let index = &made["TableDescription"]["GlobalSecondaryIndexes"][0];
    assert_eq!(index["KeySchema"], places()["KeySchema"]);
    fill(&harness).await;
    // What was made is there after a crash.
    let harness = harness.crash().await;
    let described = done(&harness, "DescribeTable", json!({"TableName": "events"})).await;
    let index = &described["Table"]["GlobalSecondaryIndexes"][0];
    assert_eq!((&index["KeySchema"], &index["ItemCount"]), (&places()["KeySchema"], &json!(5)));
    for (condition, more, expected) in [
        ("", json!({}), "4231"),
        (" AND #y = :y", json!({":y": {"N": "2026"}}), "231"),
        (" AND #y < :y", json!({":y": {"N": "2026"}}), "4"),
        (" AND #y = :y AND #m = :m", json!({":y": {"N": "2026"}, ":m": {"N": "10"}}), "31"),
        (
            " AND #y = :y AND #m BETWEEN :m AND :n",
            json!({":y": {"N": "2026"}, ":m": {"N": "1"}, ":n": {"N": "9"}}),
            "2",
        ),
        (
            " AND begins_with(#n, :n) AND #m = :m AND #y = :y",
            json!({":y": {"N": "2026"}, ":m": {"N": "10"}, ":n": {"S": "b"}}),
            "1",
        ),
        (
            " AND #y = :y AND #m = :m AND #n = :n",
            json!({":y": {"N": "2026"}, ":m": {"N": "10"}, ":n": {"S": "a"}}),
            "3",
        ),
    ] {
        let body = query(&format!("{WIEN}{condition}"), wien(more));
        assert_eq!(ids(&done(&harness, "Query", body.clone()).await), expected, "{condition}");
        let mut backward = body;
        backward["ScanIndexForward"] = json!(false);
        let reversed: String = expected.chars().rev().collect();
        assert_eq!(ids(&done(&harness, "Query", backward).await), reversed, "{condition}");
    }
    let graz = query(WIEN, json!({":c": {"S": "at"}, ":t": {"S": "graz"}}));
    assert_eq!(ids(&done(&harness, "Query", graz).await), "5");
    let older = |name: &str, operator: &str, value: Value| json!({name: {"ComparisonOperator": operator, "AttributeValueList": [value]}});
    let mut conditions = older("country", "EQ", json!({"S": "at"}));
    for more in [
        older("town", "EQ", json!({"S": "wien"})),
        older("year", "EQ", json!({"N": "2026"})),
        older("month", "GT", json!({"N": "9"})),
    ] {
        conditions.as_object_mut().expect("conditions").extend(more.as_object().expect("one").clone());
    }
    let body = json!({"TableName": "events", "IndexName": "places", "KeyConditions": conditions});
    assert_eq!(ids(&done(&harness, "Query", body).await), "31");
}

#[tokio::test]
async fn pages_go_on_behind_all_attributes() {
    let harness = Harness::start().await;
    done(&harness, "CreateTable", table(places())).await;
    fill(&harness).await;
    let mut body = query(WIEN, wien(json!({})));
    body["Limit"] = json!(1);
    let mut seen = String::new();
    loop {
        let page = done(&harness, "Query", body.clone()).await;
        seen += &ids(&page);
        let Some(last) = page["LastEvaluatedKey"].as_object() else { break };
        assert_eq!(last.len(), 6, "{last:?}");
        body["ExclusiveStartKey"] = page["LastEvaluatedKey"].clone();
    }
    assert_eq!(seen, "4231");
    let start = body["ExclusiveStartKey"].clone();
    for (name, value) in [("town", Value::Null), ("more", json!({"S": "x"})), ("town", json!({"S": "graz"}))]
    {
        let mut wrong = start.clone();
        match value {
            Value::Null => drop(wrong.as_object_mut().expect("a key").remove(name)),
            value => wrong[name] = value,
        }
        body["ExclusiveStartKey"] = wrong;
        let message = invalid(&harness, "Query", body.clone()).await;
        assert!(message.starts_with("The provided starting key is "), "{message}");
    }
    let scanned = done(&harness, "Scan", json!({"TableName": "events", "IndexName": "places"})).await;
    assert_eq!(scanned["Count"], 5);
}

#[tokio::test]
async fn what_an_index_cannot_find_is_refused() {
    let harness = Harness::start().await;
    done(&harness, "CreateTable", table(places())).await;
    let year = json!({":y": {"N": "1"}});
    for (condition, values, words) in [
        (
            "country = :c",
            json!({":c": {"S": "at"}}),
            "element: town: every HASH key attribute must have an equality",
        ),
        (
            "country = :c AND town > :t",
            wien(json!({})),
            "town: every HASH key attribute must have an equality",
        ),
        (
            "town = :t AND country = :c AND #m = :y",
            wien(year.clone()),
            "element: year: RANGE key attributes must",
        ),
        (
            "town = :t AND country = :c AND #y > :y AND #m = :y",
            wien(year.clone()),
            "year: RANGE key attributes must be asked for in their order, with an equality condition",
        ),
        ("town = :t AND country = :c AND id = :t", wien(json!({})), "Query key condition not supported"),
        (
            "country = :y AND town = :t",
            json!({":y": {"N": "1"}, ":t": {"S": "x"}}),
            "type does not match schema type",
        ),
    ] {
        let message = invalid(&harness, "Query", query(condition, values)).await;
        assert!(message.contains(words), "{condition}: {message}");
    }
    let mut filtered = query(WIEN, wien(year));
    filtered["FilterExpression"] = json!("#y = :y");
    filtered["ExpressionAttributeNames"] = json!({"#y": "year"});
    let message = invalid(&harness, "Query", filtered).await;
    assert!(message.contains("non-primary key attributes: Primary key attribute: year"), "{message}");
    let wrong = json!({"TableName": "events", "Item": {"id": {"S": "x"}, "month": {"S": "May"}}});
    let message = invalid(&harness, "PutItem", wrong).await;
    assert!(message.contains("Type mismatch for Index Key month Expected: N Actual: S"), "{message}");
}

#[tokio::test]
async fn keys_have_four_attributes_of_a_kind_and_hashes_first() {
    let harness = Harness::start().await;
    let letters = ["a", "b", "c", "d", "e"];
    let with = |elements: Vec<Value>, local: bool| {
        let index = json!({"IndexName": "by-letters", "KeySchema": elements, "Projection": {"ProjectionType": "ALL"}});
        let mut body = json!({"TableName": "letters", "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [element("id", "HASH"), element("at", "RANGE")],
            "AttributeDefinitions": definitions(&["id", "at", "a", "b", "c", "d", "e"])});
        body[if local { "LocalSecondaryIndexes" } else { "GlobalSecondaryIndexes" }] = json!([index]);
        body
    };
    let of = |kind: &str, count: usize| -> Vec<Value> {
        letters[..count].iter().map(|name| element(name, kind)).collect()
    };
    let exceeds = "Invalid KeySchema: The KeySchema exceeds the maximum allowed number of";
    for (elements, words) in [
        (of("HASH", 5), format!("{exceeds} HASH key attributes")),
        ([vec![element("id", "HASH")], of("RANGE", 5)].concat(), format!("{exceeds} RANGE key attributes")),
        (
            vec![element("a", "HASH"), element("b", "RANGE"), element("c", "HASH")],
            "Invalid KeySchema: All HASH key attributes must precede RANGE key attributes in the KeySchema"
                .into(),
        ),
        (of("RANGE", 1), "Invalid KeySchema: The first KeySchemaElement is not a HASH key type".into()),
        (
            vec![element("a", "HASH"), element("b", "HASH"), element("a", "RANGE")],
            "Invalid KeySchema: Several KeySchemaElements have the same name: a".into(),
        ),
    ] {
        assert_eq!(invalid(&harness, "CreateTable", with(elements, false)).await, words);
    }
    let local = [vec![element("id", "HASH")], of("RANGE", 2)].concat();
    assert!(invalid(&harness, "CreateTable", with(local, true)).await.contains("less than or equal to 2"));
    let mut wide = table(places());
    wide["KeySchema"] = places()["KeySchema"].clone();
    assert!(invalid(&harness, "CreateTable", wide).await.contains("less than or equal to 2"));
}

#[tokio::test]
async fn an_index_of_several_attributes_is_added_and_filled() {
    let harness = Harness::start().await;
    let mut bare = table(places());
    bare["AttributeDefinitions"] = definitions(&["id"]);
    bare.as_object_mut().expect("a call").remove("GlobalSecondaryIndexes");
    done(&harness, "CreateTable", bare).await;
    fill(&harness).await;
    let names = ["id", "country", "town", "year", "month", "name"];
    let update = json!({"TableName": "events", "AttributeDefinitions": definitions(&names),
        "GlobalSecondaryIndexUpdates": [{"Create": places()}]});
    done(&harness, "UpdateTable", update).await;
    let filled = async {
        loop {
            let table = done(&harness, "DescribeTable", json!({"TableName": "events"})).await;
            if table["Table"]["GlobalSecondaryIndexes"][0]["IndexStatus"] == "ACTIVE" {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), filled).await.expect("an index that is filled");
    assert_eq!(ids(&done(&harness, "Query", query(WIEN, wien(json!({})))).await), "4231");
    done(&harness, "DeleteItem", json!({"TableName": "events", "Key": {"id": {"S": "2"}}})).await;
    assert_eq!(ids(&done(&harness, "Query", query(WIEN, wien(json!({})))).await), "431");
}
