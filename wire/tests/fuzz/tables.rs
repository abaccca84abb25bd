//! Requests to tables.

use serde_json::json;

use crate::sample::{Sample, of};

pub fn samples() -> Vec<Sample> {
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/items";
    let key = json!({"h": {"S": "a"}, "r": {"N": "1"}});
    let every = json!({"h": {"S": "b"}, "r": {"N": "-1.5e10"}, "b": {"B": "AAE="}, "t": {"BOOL": true},
        "n": {"NULL": true}, "l": {"L": [{"S": "x"}, {"L": []}]}, "m": {"M": {"a.b": {"N": "0"}}},
        "ss": {"SS": ["a", "b"]}, "ns": {"NS": ["1", "2.50"]}, "bs": {"BS": ["AA=="]}});
    let schema = json!([{"AttributeName": "h", "KeyType": "HASH"}]);
    let definitions = json!([{"AttributeName": "h", "AttributeType": "S"}]);
    let condition = "attribute_exists(#a.b[1].c) AND (size(l) >= :n OR NOT h IN (:s, :s)) AND r BETWEEN :n AND :n \
                     AND begins_with(g, :s) AND contains(ss, :s) AND attribute_type(l, :s) AND h <> :s";
    let values = json!({":n": {"N": "1"}, ":s": {"S": "x"}, ":l": {"L": []}});
    of(
        "dynamodb",
        vec![
            (
                "BatchGetItem",
                json!({"RequestItems": {"items": {"Keys": [key], "ProjectionExpression": "h, l[0].a"}}}),
            ),
            (
                "BatchWriteItem",
                json!({"RequestItems": {"items": [{"PutRequest": {"Item": every}},
                    {"DeleteRequest": {"Key": {"h": {"S": "z"}, "r": {"N": "9"}}}}]}}),
            ),
            (
                "CreateTable",
                json!({"TableName": "other", "KeySchema": schema, "AttributeDefinitions": definitions,
                    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
                    "Tags": [{"Key": "a", "Value": "b"}]}),
            ),
            (
                "DeleteItem",
                json!({"TableName": "items", "Key": {"h": {"S": "z"}, "r": {"N": "9"}}, "ReturnValues": "ALL_OLD",
                    "Expected": {"g": {"ComparisonOperator": "NULL"}}}),
            ),
            ("DeleteTable", json!({"TableName": "other"})),
            ("DescribeContinuousBackups", json!({"TableName": "items"})),
            ("DescribeEndpoints", json!({})),
            ("DescribeLimits", json!({})),
            ("DescribeTable", json!({"TableName": arn})),
            ("DescribeTimeToLive", json!({"TableName": "items"})),
            (
                "GetItem",
                json!({"TableName": "items", "Key": key, "ConsistentRead": true, "ProjectionExpression": "#a, l[1].x",
                    "ExpressionAttributeNames": {"#a": "g"}, "ReturnConsumedCapacity": "INDEXES"}),
            ),
            ("ListTables", json!({"Limit": 1, "ExclusiveStartTableName": "a"})),
            ("ListTagsOfResource", json!({"ResourceArn": arn})),
            (
                "PutItem",
                json!({"TableName": "items", "Item": every, "ConditionExpression": condition,
                    "ExpressionAttributeNames": {"#a": "m"},
                    "ExpressionAttributeValues": {":n": {"N": "1"}, ":s": {"S": "x"}},
                    "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}),
            ),
            (
                "Query",
                json!({"TableName": "items", "KeyConditionExpression": "h = :s AND r BETWEEN :n AND :m",
                    "FilterExpression": "NOT contains(l, :n)", "ScanIndexForward": false, "Limit": 1,
                    "ExpressionAttributeValues": {":s": {"S": "a"}, ":n": {"N": "0"}, ":m": {"N": "5"}},
                    "ExclusiveStartKey": key}),
            ),
            (
                "Query",
                json!({"TableName": "items", "IndexName": "by-g", "Select": "COUNT",
                    "KeyConditions": {"g": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "x"}]}},
                    "QueryFilter": {"l": {"ComparisonOperator": "NOT_NULL"}}}),
            ),
            (
                "Scan",
                json!({"TableName": "items", "Segment": 1, "TotalSegments": 2, "FilterExpression": "g = :s OR size(g) < :n",
                    "ExpressionAttributeValues": {":s": {"S": "x"}, ":n": {"N": "3"}}}),
            ),
            ("TagResource", json!({"ResourceArn": arn, "Tags": [{"Key": "a", "Value": "b"}]})),
            (
                "TransactGetItems",
                json!({"TransactItems": [{"Get": {"TableName": "items", "Key": key, "ProjectionExpression": "h"}}]}),
            ),
            (
                "TransactWriteItems",
                json!({"ClientRequestToken": "token", "TransactItems": [
                    {"ConditionCheck": {"TableName": "items", "Key": key, "ConditionExpression": "attribute_exists(h)"}},
                    {"Put": {"TableName": "items", "Item": every}},
                    {"Update": {"TableName": "items", "Key": {"h": {"S": "u"}, "r": {"N": "1"}},
                        "UpdateExpression": "SET a = :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}}]}),
            ),
            ("UntagResource", json!({"ResourceArn": arn, "TagKeys": ["a"]})),
            (
                "UpdateItem",
                json!({"TableName": "items", "Key": key, "ReturnValues": "UPDATED_NEW",
                    "UpdateExpression": "SET #a = if_not_exists(c, :n) + :n, l[0] = :s, x = list_append(:l, :l) \
                        REMOVE y[3].z ADD n :n DELETE ss :set",
                    "ConditionExpression": condition, "ExpressionAttributeNames": {"#a": "m"},
                    "ExpressionAttributeValues": {":set": {"SS": ["x"]}, ":n": values[":n"], ":s": values[":s"], ":l": values[":l"]}}),
            ),
            (
                "UpdateItem",
                json!({"TableName": "items", "Key": key,
                    "AttributeUpdates": {"a": {"Action": "ADD", "Value": {"N": "1"}}, "b": {"Action": "DELETE"}}}),
            ),
            (
                "UpdateTable",
                json!({"TableName": "items", "AttributeDefinitions": [{"AttributeName": "i", "AttributeType": "S"}],
                    "GlobalSecondaryIndexUpdates": [{"Create": {"IndexName": "by-i",
                        "KeySchema": [{"AttributeName": "i", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a"]}}}]}),
            ),
            (
                "UpdateTimeToLive",
                json!({"TableName": "items", "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": true}}),
            ),
        ],
    )
}
