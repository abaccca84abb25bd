//! Secrets Manager over HTTP.

mod harness;

use std::time::Duration;

use anabranch_model::{Admin, Owner};
use harness::Harness;
use serde_json::{Value, json};

async fn ok(server: &Harness, operation: &str, request: Value) -> Value {
    server.done(&format!("secretsmanager.{operation}"), request).await
}

/// How many values lie on the disk.
async fn values(server: &Harness) -> usize {
    let page = server.engine.documents(&Owner::Store, "secret-value", None, 100).await.expect("documents");
    page.entries.len()
}

async fn refused(server: &Harness, operation: &str, request: Value) -> String {
    let (code, message) = server.refused(&format!("secretsmanager.{operation}"), request).await;
    assert!(!message.is_empty(), "{operation}: {code}");
    code
}

#[tokio::test]
async fn values_follow_each_other() {
    let server = Harness::start().await;
    let token = "0123456789abcdef0123456789abcdef";
    let create = json!({
        "Name": "app/db", "SecretString": "one", "ClientRequestToken": token, "Description": "d",
        "Tags": [{"Key": "team", "Value": "red"}],
    });
    let made = ok(&server, "CreateSecret", create.clone()).await;
    let arn = made["ARN"].as_str().unwrap().to_owned();
    assert!(arn.starts_with("arn:aws:secretsmanager:us-east-1:000000000000:secret:app/db-"), "{arn}");
    assert_eq!(ok(&server, "CreateSecret", create).await, made, "the same call again");
    let other = json!({"Name": "app/db", "SecretString": "other"});
    assert_eq!(refused(&server, "CreateSecret", other).await, "ResourceExistsException");

    let put = json!({"SecretId": arn, "SecretBinary": "AP8="});
    let second = ok(&server, "PutSecretValue", put).await["VersionId"].clone();
    // A crash in between takes nothing away.
    let server = server.crash().await;
    let short = arn.rsplit_once('-').unwrap().0;
    for id in ["app/db", &arn, short] {
        let got = ok(&server, "GetSecretValue", json!({"SecretId": id})).await;
        assert_eq!((&got["SecretBinary"], &got["VersionId"]), (&json!("AP8="), &second), "{id}");
        assert_eq!(got["VersionStages"], json!(["AWSCURRENT"]));
        assert!(got.get("SecretString").is_none(), "{got}");
    }
    let previous = json!({"SecretId": "app/db", "VersionStage": "AWSPREVIOUS"});
    assert_eq!(ok(&server, "GetSecretValue", previous).await["SecretString"], "one");
    let by_id = json!({"SecretId": "app/db", "VersionId": token});
    assert_eq!(ok(&server, "GetSecretValue", by_id).await["SecretString"], "one");
    let reused = json!({"SecretId": "app/db", "SecretString": "x", "ClientRequestToken": token});
    assert_eq!(refused(&server, "PutSecretValue", reused).await, "ResourceExistsException");

    let described = ok(&server, "DescribeSecret", json!({"SecretId": "app/db"})).await;
    assert_eq!(described["VersionIdsToStages"][token], json!(["AWSPREVIOUS"]));
    assert_eq!((&described["Description"], &described["Tags"][0]["Value"]), (&json!("d"), &json!("red")));
    for (request, code) in [
        (json!({"SecretId": "nothing"}), "ResourceNotFoundException"),
        (json!({"SecretId": format!("{short}-000000")}), "ResourceNotFoundException"),
        (json!({}), "InvalidParameterException"),
        (json!({"SecretId": "app/db", "VersionStage": "mine"}), "ResourceNotFoundException"),
        (
            json!({"SecretId": "app/db", "VersionId": token, "VersionStage": "AWSCURRENT"}),
            "InvalidRequestException",
        ),
    ] {
        assert_eq!(refused(&server, "GetSecretValue", request.clone()).await, code, "{request}");
    }
}

#[tokio::test]
async fn what_is_refused_leaves_no_value_behind() {
    let server = Harness::start().await;
    ok(&server, "CreateSecret", json!({"Name": "db", "SecretString": "first"})).await;
    // The first version has a stage of its own.
    for number in 1..20 {
        let put = json!({"SecretId": "db", "SecretString": "x", "VersionStages": [format!("mine-{number}")]});
        ok(&server, "PutSecretValue", put).await;
    }
    assert_eq!(values(&server).await, 20);
    let more = json!({"SecretId": "db", "SecretString": "x", "VersionStages": ["one-more"]});
    assert_eq!(refused(&server, "PutSecretValue", more).await, "LimitExceededException");
    assert_eq!(values(&server).await, 20);
    let moved = json!({"SecretId": "db", "SecretString": "moved", "VersionStages": ["mine-1"]});
    ok(&server, "PutSecretValue", moved).await;
    let got = ok(&server, "GetSecretValue", json!({"SecretId": "db", "VersionStage": "mine-1"})).await;
    assert_eq!(got["SecretString"], "moved");
}

#[tokio::test]
async fn refusals_are_spelled_as_the_service_spells_them() {
    let server = Harness::start().await;
    let (status, body) = server.call("secretsmanager.GetSecretValue", json!({"SecretId": "none"})).await;
    assert_eq!((status.as_u16(), &body["message"]), (400, &Value::Null));
    assert_eq!(body["Message"], "Secrets Manager can't find the specified secret.");
    for (operation, request) in [
        ("CreateSecret", json!({"Name": "a b", "SecretString": "s"})),
        ("DescribeSecret", json!({"SecretId": " a*"})),
        ("DeleteSecret", json!({"SecretId": "a b", "ForceDeleteWithoutRecovery": true})),
    ] {
        assert_eq!(refused(&server, operation, request).await, "ValidationException", "{operation}");
    }
    ok(&server, "CreateSecret", json!({"Name": "empty", "Description": ""})).await;
    let described = ok(&server, "DescribeSecret", json!({"SecretId": "empty"})).await;
    assert_eq!((&described["Description"], &described["VersionIdsToStages"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_deleted_secret_can_be_restored_for_a_while() {
    let server = Harness::start().await;
    ok(&server, "CreateSecret", json!({"Name": "s", "SecretString": "v"})).await;
    let id = json!({"SecretId": "s"});
    ok(&server, "DeleteSecret", json!({"SecretId": "s", "RecoveryWindowInDays": 7})).await;
    for operation in ["GetSecretValue", "DeleteSecret"] {
        assert_eq!(refused(&server, operation, id.clone()).await, "InvalidRequestException");
    }
    let again = json!({"Name": "s", "SecretString": "v"});
    assert_eq!(refused(&server, "CreateSecret", again.clone()).await, "InvalidRequestException");
    assert_eq!(ok(&server, "ListSecrets", json!({})).await["SecretList"], json!([]));
    let all = ok(&server, "ListSecrets", json!({"IncludePlannedDeletion": true})).await;
    assert!(all["SecretList"][0]["DeletedDate"].is_number(), "{all}");
    ok(&server, "RestoreSecret", id.clone()).await;
    assert_eq!(ok(&server, "GetSecretValue", id.clone()).await["SecretString"], "v");

    ok(&server, "DeleteSecret", json!({"SecretId": "s", "RecoveryWindowInDays": 7})).await;
    server.clock.advance(Duration::from_secs(7 * 86_400));
    assert_eq!(refused(&server, "RestoreSecret", id.clone()).await, "ResourceNotFoundException");
    ok(&server, "CreateSecret", again).await;
    ok(&server, "DeleteSecret", json!({"SecretId": "s", "ForceDeleteWithoutRecovery": true})).await;
    assert_eq!(refused(&server, "DescribeSecret", id).await, "ResourceNotFoundException");
    for bad in [
        json!({"SecretId": "s", "RecoveryWindowInDays": 6}),
        json!({"SecretId": "s", "RecoveryWindowInDays": 7, "ForceDeleteWithoutRecovery": true}),
    ] {
        assert_eq!(refused(&server, "DeleteSecret", bad).await, "InvalidParameterException");
    }
}

#[tokio::test]
async fn secrets_are_listed_in_pages() {
    let server = Harness::start().await;
    for name in ["a/1", "a/2", "a/3", "b/1"] {
        ok(&server, "CreateSecret", json!({"Name": name})).await;
    }
    let filter = json!([{"Key": "name", "Values": ["a/"]}]);
    let (mut names, mut token) = (Vec::new(), Value::Null);
    loop {
        let request = json!({"MaxResults": 2, "Filters": filter, "NextToken": token});
        let page = ok(&server, "ListSecrets", request).await;
        for secret in page["SecretList"].as_array().unwrap() {
            names.push(secret["Name"].as_str().unwrap().to_owned());
        }
        token = page["NextToken"].clone();
        if token.is_null() {
            break;
        }
    }
    assert_eq!(names, ["a/1", "a/2", "a/3"]);
    assert_eq!(refused(&server, "ListSecrets", json!({"NextToken": "?"})).await, "InvalidNextTokenException");
    assert_eq!(refused(&server, "ListSecrets", json!({"MaxResults": 0})).await, "InvalidParameterException");
    let empty = json!({"SecretId": "a/1"});
    assert_eq!(refused(&server, "GetSecretValue", empty).await, "ResourceNotFoundException");
    assert_eq!(refused(&server, "RotateSecret", json!({})).await, "UnknownOperationException");
    let big = json!({"Name": "big", "SecretString": "x".repeat(65_537)});
    assert_eq!(refused(&server, "CreateSecret", big).await, "InvalidParameterException");
    let both = json!({"Name": "both", "SecretString": "x", "SecretBinary": "eA=="});
    assert_eq!(refused(&server, "CreateSecret", both).await, "InvalidParameterException");
}

#[tokio::test]
async fn nothing_is_left_of_a_secret_whose_time_is_over() {
    let server = Harness::start().await;
    for name in ["got", "listed", "made"] {
        ok(&server, "CreateSecret", json!({"Name": name, "SecretString": "one"})).await;
        ok(&server, "PutSecretValue", json!({"SecretId": name, "SecretString": "two"})).await;
        ok(&server, "DeleteSecret", json!({"SecretId": name, "RecoveryWindowInDays": 7})).await;
    }
    ok(&server, "CreateSecret", json!({"Name": "stays", "SecretString": "three"})).await;
    server.clock.advance(Duration::from_secs(7 * 86_400 - 60));
    assert!(ok(&server, "DescribeSecret", json!({"SecretId": "got"})).await["DeletedDate"].is_number());
    assert_eq!(values(&server).await, 7, "they can still be restored");
    server.clock.advance(Duration::from_secs(60));
    let got = json!({"SecretId": "got"});
    assert_eq!(refused(&server, "DescribeSecret", got).await, "ResourceNotFoundException");
    assert_eq!(values(&server).await, 5);
    ok(&server, "CreateSecret", json!({"Name": "made", "SecretString": "four"})).await;
    assert_eq!(values(&server).await, 4);
    let listed = ok(&server, "ListSecrets", json!({"IncludePlannedDeletion": true})).await;
    assert_eq!(listed["SecretList"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(values(&server).await, 2);
    ok(&server, "DeleteSecret", json!({"SecretId": "stays", "ForceDeleteWithoutRecovery": true})).await;
    assert_eq!(values(&server).await, 1);
    assert_eq!(ok(&server, "GetSecretValue", json!({"SecretId": "made"})).await["SecretString"], "four");
}

#[tokio::test]
async fn a_secret_that_is_not_there_can_be_deleted_for_good() {
    let server = Harness::start().await;
    let arn = "arn:aws:secretsmanager:us-east-1:000000000000:secret:gone-AbCdEf";
    for (id, name) in [("gone", "gone"), (arn, "gone")] {
        let request = json!({"SecretId": id, "ForceDeleteWithoutRecovery": true});
        let deleted = ok(&server, "DeleteSecret", request).await;
        assert_eq!(deleted["Name"], name);
        assert!(deleted["ARN"].as_str().unwrap().contains(":secret:gone"), "{deleted}");
        assert!(deleted["DeletionDate"].is_number(), "{deleted}");
    }
    let kept = json!({"SecretId": "gone"});
    assert_eq!(refused(&server, "DeleteSecret", kept).await, "ResourceNotFoundException");
    let nameless = json!({"SecretId": "", "ForceDeleteWithoutRecovery": true});
    assert_eq!(refused(&server, "DeleteSecret", nameless).await, "InvalidParameterException");
}

#[tokio::test]
async fn secrets_are_listed_in_every_order() {
    let server = Harness::start().await;
    for name in ["c", "a", "d", "b"] {
        ok(&server, "CreateSecret", json!({"Name": name, "SecretString": name})).await;
        server.clock.advance(Duration::from_secs(1));
    }
    ok(&server, "PutSecretValue", json!({"SecretId": "a", "SecretString": "new"})).await;
    for (by, order, expected) in [
        (Value::Null, Value::Null, "cadb"),
        (json!("created-date"), json!("desc"), "bdac"),
        (json!("last-changed-date"), json!("asc"), "cdba"),
        (json!("last-changed-date"), json!("desc"), "abdc"),
        (json!("name"), json!("asc"), "abcd"),
        (json!("name"), json!("desc"), "dcba"),
    ] {
        for size in [1, 2, 3, 4, 100] {
            let (mut names, mut token) = (String::new(), Value::Null);
            loop {
                let request =
                    json!({"SortBy": by, "SortOrder": order, "MaxResults": size, "NextToken": token});
                let page = ok(&server, "ListSecrets", request).await;
                let secrets = page["SecretList"].as_array().unwrap();
                assert!((1..=size).contains(&secrets.len()), "{page}");
                names.extend(secrets.iter().map(|secret| secret["Name"].as_str().unwrap()));
                token = page["NextToken"].clone();
                if token.is_null() {
                    break;
                }
            }
            assert_eq!(names, expected, "{by} {order} {size}");
        }
    }
    let first = ok(&server, "ListSecrets", json!({"MaxResults": 1})).await;
    for other in [json!({"SortBy": "name"}), json!({"SortOrder": "desc"})] {
        let mut request = other;
        request["NextToken"] = first["NextToken"].clone();
        assert_eq!(refused(&server, "ListSecrets", request).await, "InvalidNextTokenException");
    }
    for bad in
        [json!({"SortBy": "colour"}), json!({"SortOrder": "up"}), json!({"SortBy": "last-accessed-date"})]
    {
        assert_eq!(refused(&server, "ListSecrets", bad).await, "InvalidParameterException");
    }
}

#[tokio::test]
async fn the_day_of_the_last_access_is_told() {
    let server = Harness::start().await;
    ok(&server, "CreateSecret", json!({"Name": "s", "SecretString": "one"})).await;
    let accessed = async |server: &Harness| {
        let described = ok(server, "DescribeSecret", json!({"SecretId": "s"})).await;
        let listed = ok(server, "ListSecrets", json!({})).await;
        assert_eq!(listed["SecretList"][0]["LastAccessedDate"], described["LastAccessedDate"]);
        described["LastAccessedDate"].as_f64()
    };
    assert_eq!(accessed(&server).await, None, "nobody has read it");
    ok(&server, "GetSecretValue", json!({"SecretId": "s"})).await;
    let first = accessed(&server).await.expect("a day");
    assert_eq!(first % 86_400.0, 0.0, "the day, and not the moment");
    let server = server.crash().await;
    assert_eq!(accessed(&server).await, Some(first));
    server.clock.advance(Duration::from_secs(86_400));
    ok(&server, "GetSecretValue", json!({"SecretId": "s"})).await;
    assert_eq!(accessed(&server).await, Some(first + 86_400.0));
}
