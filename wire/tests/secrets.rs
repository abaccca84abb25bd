//! Secrets Manager over HTTP.

mod harness;

use std::time::Duration;

use harness::Harness;
use http::StatusCode;
use serde_json::{Value, json};

async fn ok(server: &Harness, operation: &str, request: Value) -> Value {
    let (status, answer) = server.call(&format!("secretsmanager.{operation}"), request.clone()).await;
    assert_eq!(status, StatusCode::OK, "{operation} {request}: {answer}");
    answer
}

async fn refused(server: &Harness, operation: &str, request: Value) -> String {
    let (status, answer) = server.call(&format!("secretsmanager.{operation}"), request.clone()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{operation} {request}: {answer}");
    assert!(!answer["message"].as_str().unwrap_or_default().is_empty(), "{answer}");
    answer["__type"].as_str().unwrap_or_default().to_owned()
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
