//! SQS: what no client should send.

mod harness;
mod sqs_client;

use harness::Harness;
use serde_json::{Value, json};
use sqs_client::{Client, Speaks, post, post_form, post_json};

#[tokio::test]
async fn malformed_json_is_told_apart_from_wrong_values() {
    let server = Harness::start().await;
    for body in [
        "{",
        "[]",
        "null",
        "7",
        "{\"QueueName\":7}",
        "{\"QueueName\":\"a\",\"Attributes\":{\"DelaySeconds\":5}}",
    ] {
        let answer = post_json(&server, "CreateQueue", body).await;
        let value: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(value["__type"], "com.amazonaws.sqs#SerializationException", "{body}");
        assert_eq!(answer.status, 400);
    }
    let latin = b"{\"QueueName\":\"\xff\"}";
    let headers = [("x-amz-target", "AmazonSQS.CreateQueue"), ("content-type", "application/x-amz-json-1.0")];
    let answer = post(&server, "/", &headers, latin).await;
    assert!(answer.body.contains("SerializationException"), "{answer:?}");
}

#[tokio::test]
async fn unknown_operations_have_their_own_error() {
    let server = Harness::start().await;
    for operation in ["SendMessages", "", "sendmessage"] {
        let answer = post_json(&server, operation, "{}").await;
        let value: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(value["__type"], "com.amazonaws.sqs#UnknownOperationException");
        assert_eq!(answer.header("content-type"), Some("application/x-amz-json-1.0"));
        let form = [("Action", operation), ("Version", "2012-11-05")];
        let form = form.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let answer = post_form(&server, "/", &form).await;
        assert!(answer.body.contains("<Code>InvalidAction</Code>"), "{answer:?}");
        let said = format!("<Message>The action {operation} is not valid for this endpoint.</Message>");
        assert!(answer.body.contains(&said), "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("text/xml"));
    }
}

#[tokio::test]
async fn forms_that_make_no_sense_are_refused() {
    let server = Harness::start().await;
    for body in [
        "Action=CreateQueue&Version=2012-11-05",
        "Action=CreateQueue&Version=2012-11-05&QueueName=a&Attribute.1.Name=DelaySeconds",
        "Action=CreateQueue&Version=2012-11-05&QueueName=a&Attribute.x.Name=DelaySeconds&Attribute.x.Value=1",
        "Action=CreateQueue&Version=2012-11-05&QueueName.1=a",
        "Action=ListQueues&Version=2012-11-05&MaxResults=many",
        "Action=ReceiveMessage&Version=2012-11-05&QueueUrl=a&WaitTimeSeconds=99999999999999999999",
        "Version=2012-11-05",
        "Action=CreateQueue&Version=1999-01-01&QueueName=a",
    ] {
        let headers = [("content-type", "application/x-www-form-urlencoded")];
        let answer = post(&server, "/", &headers, body.as_bytes()).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.body.contains("<ErrorResponse>"), "{body}: {answer:?}");
    }
    let sqs = Client { server: &server, speaks: Speaks::Json };
    assert!(sqs.ok("ListQueues", json!({})).await.all("QueueUrl").is_empty(), "nothing was made");
}

#[tokio::test]
async fn hostile_text_in_a_fault_is_still_xml() {
    let server = Harness::start().await;
    let sqs = Client { server: &server, speaks: Speaks::Forms };
    let url = sqs.queue("q", json!({})).await;
    let receipt = "<a>&\u{1}\u{ffff}]]>\"";
    let code = sqs.refused("DeleteMessage", json!({"QueueUrl": url, "ReceiptHandle": receipt})).await;
    assert_eq!(code, "ReceiptHandleIsInvalid");
    let fields = [
        ("Action", "DeleteMessage"),
        ("Version", "2012-11-05"),
        ("QueueUrl", &*url),
        ("ReceiptHandle", receipt),
    ];
    let answer =
        post_form(&server, "/", &fields.map(|(name, value)| (name.to_owned(), value.to_owned()))).await;
    let mut reader = quick_xml::Reader::from_str(&answer.body);
    while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
    assert!(!answer.body.contains(['\u{1}', '\u{ffff}']), "{answer:?}");
}

#[tokio::test]
async fn deep_and_wide_requests_do_no_harm() {
    let server = Harness::start().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = post_json(&server, "SendMessage", &deep).await;
    assert_eq!(answer.status, 400);
    let wide: String = (0..50_000).map(|number| format!("&AttributeName.{number}=All")).collect();
    let body = format!("Action=GetQueueAttributes&Version=2012-11-05&QueueUrl=q{wide}");
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(post(&server, "/", &headers, body.as_bytes()).await.status, 400);
    // What stands behind the last field that is read must not be passed over.
    let many: String = (0..60_000).map(|number| format!("&Ignored.{number}=")).collect();
    let body =
        format!("Action=CreateQueue&Version=2012-11-05&QueueName=cut{many}&Attribute.1.Name=DelaySeconds");
    let answer = post(&server, "/", &headers, body.as_bytes()).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("<Code>InvalidQueryParameter</Code>"), "{}", answer.body);
    let names = format!("Action=ListQueues&Version=2012-11-05&{}=1", "a.".repeat(1 << 20));
    assert_eq!(post(&server, "/", &headers, names.as_bytes()).await.status, 200);
}
