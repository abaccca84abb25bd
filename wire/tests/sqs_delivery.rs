//! SQS: when a message is received, and by whom: order, waiting, visibility, dead letters, purges; in both languages.

mod harness;
mod sqs_client;

use std::time::Duration;

use anabranch_model::{QueueName, QueueStore};
use harness::Harness;
use serde_json::json;
use sqs_client::{BOTH, Client, Reply, Speaks, receive};

#[tokio::test]
async fn order_and_duplicates_in_a_fifo_queue() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let attributes = json!({"FifoQueue": "true", "ContentBasedDeduplication": "true"});
        let url = sqs.queue(&format!("q-{speaks:?}.fifo"), attributes).await;
        let send = async |body: &str| {
            let message = json!({
                "QueueUrl": url, "MessageBody": body, "MessageGroupId": "g", "DelaySeconds": 0,
            });
            sqs.ok("SendMessage", message).await
        };
        let (first, second, twin) = (send("one").await, send("two").await, send("one").await);
        assert_eq!(first.get("SequenceNumber"), twin.get("SequenceNumber"));
        assert_eq!(first.get("MessageId"), twin.get("MessageId"));
        let number = |reply: &Reply| reply.get("SequenceNumber").parse::<u128>().unwrap();
        assert!(number(&first) < number(&second));

        let attempt = json!({
            "QueueUrl": url, "MaxNumberOfMessages": 1, "ReceiveRequestAttemptId": "a",
            "AttributeNames": ["MessageGroupId", "SequenceNumber", "MessageDeduplicationId"],
        });
        let got = sqs.ok("ReceiveMessage", attempt.clone()).await;
        assert_eq!(got.all("Body"), ["one"]);
        let entries = got.entries();
        let attribute = |name: &str| entries.iter().find(|(found, _)| found == name).unwrap().1.clone();
        assert_eq!(attribute("MessageGroupId"), "g");
        assert_eq!(attribute("SequenceNumber"), first.get("SequenceNumber"));
        assert_eq!(attribute("MessageDeduplicationId").len(), 64);
        let repeated = sqs.ok("ReceiveMessage", attempt).await;
        assert_eq!(repeated.get("ReceiptHandle"), got.get("ReceiptHandle"));
        assert!(receive(&sqs, &url, 30).await.all("Body").is_empty(), "the group waits");
        let receipt = got.get("ReceiptHandle");
        sqs.ok("DeleteMessage", json!({"QueueUrl": url, "ReceiptHandle": receipt})).await;
        assert_eq!(receive(&sqs, &url, 30).await.all("Body"), ["two"]);
    }
}

#[tokio::test]
async fn dead_letters_go_and_come_back() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let dead = sqs.queue(&format!("dead-{speaks:?}"), json!({})).await;
        let arn = |name: &str| format!("arn:aws:sqs:us-east-1:000000000000:{name}-{speaks:?}");
        let policy = json!({"deadLetterTargetArn": arn("dead"), "maxReceiveCount": 1}).to_string();
        let live = sqs.queue(&format!("live-{speaks:?}"), json!({"RedrivePolicy": policy})).await;
        sqs.ok("SendMessage", json!({"QueueUrl": live, "MessageBody": "poison"})).await;
        assert_eq!(receive(&sqs, &live, 0).await.all("Body"), ["poison"]);
        assert!(receive(&sqs, &live, 0).await.all("Body").is_empty());
        let buried = receive(&sqs, &dead, 0).await;
        assert_eq!(buried.all("Body"), ["poison"]);
        assert!(buried.entries().contains(&("DeadLetterQueueSourceArn".into(), arn("live"))), "{buried:?}");

        let unknown = json!({"SourceArn": arn("none")});
        for operation in ["StartMessageMoveTask", "ListMessageMoveTasks"] {
            let code = sqs.refused(operation, unknown.clone()).await;
            assert_eq!(code, "ResourceNotFoundException", "{operation}");
        }
        let wrong = json!({"SourceArn": arn("live")});
        assert_eq!(sqs.refused("StartMessageMoveTask", wrong).await, "InvalidParameterValue");
        for bad in [
            json!({}),
            json!({"SourceArn": "dead"}),
            json!({"SourceArn": arn("dead"), "MaxNumberOfMessagesPerSecond": 501}),
            json!({"SourceArn": arn("dead"), "DestinationArn": "live"}),
        ] {
            let code = sqs.refused("StartMessageMoveTask", bad).await;
            assert!(["MissingParameter", "InvalidParameterValue"].contains(&&*code), "{code}");
        }
        let task = sqs.ok("StartMessageMoveTask", json!({"SourceArn": arn("dead")})).await;
        let handle = task.get("TaskHandle");
        let wait = json!({"QueueUrl": live, "WaitTimeSeconds": 20});
        assert_eq!(sqs.ok("ReceiveMessage", wait).await.all("Body"), ["poison"]);
        let tasks = loop {
            let tasks = sqs.ok("ListMessageMoveTasks", json!({"SourceArn": arn("dead")})).await;
            if tasks.get("Status") != "RUNNING" {
                break tasks;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!(tasks.get("Status"), "COMPLETED");
        assert_eq!(tasks.get("ApproximateNumberOfMessagesMoved"), "1");
        assert_eq!(tasks.get("SourceArn"), arn("dead"));
        assert!(tasks.all("TaskHandle").is_empty(), "it has ended");
        let ended = json!({"TaskHandle": handle});
        assert_eq!(sqs.refused("CancelMessageMoveTask", ended).await, "ResourceNotFoundException");
        let none = json!({"TaskHandle": "foobared"});
        assert_eq!(sqs.refused("CancelMessageMoveTask", none).await, "InvalidParameterValue");
    }
}

#[tokio::test]
async fn a_receive_waits_for_a_message() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({})).await;
        let wait = json!({"QueueUrl": url, "WaitTimeSeconds": 20});
        let send = async {
            // The receive is on its way first, most of the time; either order must do.
            tokio::task::yield_now().await;
            sqs.ok("SendMessage", json!({"QueueUrl": url, "MessageBody": "at last"})).await
        };
        let (got, _) = tokio::join!(sqs.ok("ReceiveMessage", wait), send);
        assert_eq!(got.all("Body"), ["at last"]);
    }
}

#[tokio::test]
async fn a_receive_does_not_outwait_the_server() {
    let server = Harness::start().await;
    let sqs = Client { server: &server, speaks: Speaks::Json };
    let url = sqs.queue("q", json!({"ReceiveMessageWaitTimeSeconds": "20"})).await;
    let stopped = async {
        tokio::task::yield_now().await;
        server.stop();
    };
    let (got, ()) = tokio::join!(sqs.ok("ReceiveMessage", json!({"QueueUrl": url})), stopped);
    assert!(got.all("Body").is_empty());
}

#[tokio::test]
async fn a_queue_is_purged_once_a_minute() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({})).await;
        sqs.ok("SendMessage", json!({"QueueUrl": url, "MessageBody": "gone"})).await;
        sqs.ok("PurgeQueue", json!({"QueueUrl": url})).await;
        assert!(receive(&sqs, &url, 30).await.all("Body").is_empty());
        let again = sqs.refused("PurgeQueue", json!({"QueueUrl": url})).await;
        assert_eq!(again, "AWS.SimpleQueueService.PurgeQueueInProgress");
        // A younger queue of the name is another one.
        sqs.ok("DeleteQueue", json!({"QueueUrl": url})).await;
        sqs.queue(&format!("q-{speaks:?}"), json!({})).await;
        sqs.ok("PurgeQueue", json!({"QueueUrl": url})).await;
    }
}

#[tokio::test]
async fn visibility_is_changed_while_the_message_is_there() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({})).await;
        sqs.ok("SendMessage", json!({"QueueUrl": url, "MessageBody": "m"})).await;
        let receipt = receive(&sqs, &url, 30).await.get("ReceiptHandle");
        let change =
            |seconds: u32| json!({"QueueUrl": url, "ReceiptHandle": receipt, "VisibilityTimeout": seconds});
        sqs.ok("ChangeMessageVisibility", change(60)).await;
        sqs.ok("ChangeMessageVisibility", change(0)).await;
        // Also when it is visible again, and not when somebody else has it.
        sqs.ok("ChangeMessageVisibility", change(60)).await;
        assert!(receive(&sqs, &url, 30).await.all("Body").is_empty());
        sqs.ok("ChangeMessageVisibility", change(0)).await;
        let second = receive(&sqs, &url, 30).await.get("ReceiptHandle");
        assert_eq!(sqs.refused("ChangeMessageVisibility", change(0)).await, "InvalidParameterValue");
        assert!(receive(&sqs, &url, 30).await.all("Body").is_empty());
        assert_eq!(sqs.refused("ChangeMessageVisibility", change(43_201)).await, "InvalidParameterValue");

        sqs.ok("DeleteMessage", json!({"QueueUrl": url, "ReceiptHandle": second})).await;
        let answer = sqs.send("ChangeMessageVisibility", &change(60)).await;
        let words = format!(
            "Value {receipt} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available \
             for visibility timeout change."
        );
        assert!(answer.status == 400 && answer.body.contains(&words), "{answer:?}");
        assert_eq!(sqs.refused("ChangeMessageVisibility", change(60)).await, "InvalidParameterValue");
    }
}

#[tokio::test]
async fn where_an_order_is_kept_a_receipt_ends_with_its_time() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}.fifo"), json!({"FifoQueue": "true"})).await;
        let message = json!({
            "QueueUrl": url, "MessageBody": "m", "MessageGroupId": "g", "MessageDeduplicationId": "d",
        });
        sqs.ok("SendMessage", message).await;
        let receipt = receive(&sqs, &url, 30).await.get("ReceiptHandle");
        let change =
            |seconds: u32| json!({"QueueUrl": url, "ReceiptHandle": receipt, "VisibilityTimeout": seconds});
        sqs.ok("ChangeMessageVisibility", change(0)).await;
        assert_eq!(sqs.refused("ChangeMessageVisibility", change(60)).await, "InvalidParameterValue");
        let answer = sqs.send("DeleteMessage", &json!({"QueueUrl": url, "ReceiptHandle": receipt})).await;
        let words = format!(
            "Value {receipt} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired."
        );
        assert!(answer.status == 400 && answer.body.contains(&words), "{answer:?}");
    }
}

#[tokio::test]
async fn a_purge_forgets_duplicates() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}.fifo"), json!({"FifoQueue": "true"})).await;
        let send = async |body: &str| {
            let message = json!({
                "QueueUrl": url, "MessageBody": body, "MessageGroupId": "g", "MessageDeduplicationId": "d",
            });
            sqs.ok("SendMessage", message).await.get("MessageId")
        };
        let first = send("before").await;
        assert_eq!(send("twin").await, first);
        sqs.ok("PurgeQueue", json!({"QueueUrl": url})).await;
        let second = send("after").await;
        assert!(second != first && send("twin").await == second);
        assert_eq!(receive(&sqs, &url, 30).await.all("Body"), ["after"]);
    }
}

#[tokio::test]
async fn a_delayed_message_is_counted_and_not_received() {
    let server = Harness::start().await;
    let sqs = Client { server: &server, speaks: Speaks::Forms };
    let url = sqs.queue("q", json!({"DelaySeconds": "900"})).await;
    sqs.ok("SendMessage", json!({"QueueUrl": url, "MessageBody": "later"})).await;
    sqs.ok("SendMessage", json!({"QueueUrl": url, "MessageBody": "now", "DelaySeconds": 0})).await;
    assert_eq!(receive(&sqs, &url, 30).await.all("Body"), ["now"]);
    let all = sqs.ok("GetQueueAttributes", json!({"QueueUrl": url, "AttributeNames": ["All"]})).await;
    assert_eq!(all.entry("ApproximateNumberOfMessagesDelayed"), "1");
    let summary = server.engine.queue(&QueueName::new("q").unwrap()).await.unwrap();
    assert_eq!(summary.options.delay, Duration::from_secs(900));
}

#[tokio::test]
async fn the_dead_letters_of_a_queue_may_stay_where_they_are() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let name = format!("q-{speaks:?}");
        let arn = format!("arn:aws:sqs:us-east-1:000000000000:{name}");
        let policy = json!({"deadLetterTargetArn": arn, "maxReceiveCount": 1}).to_string();
        let early = json!({"QueueName": name, "Attributes": {"RedrivePolicy": policy}});
        assert_eq!(sqs.refused("CreateQueue", early).await, "InvalidParameterValue", "it is not there yet");
        let url = sqs.queue(&name, json!({})).await;
        let attributes = json!({"QueueUrl": url, "Attributes": {"RedrivePolicy": policy}});
        sqs.ok("SetQueueAttributes", attributes).await;
        sqs.ok("SendMessage", json!({"QueueUrl": url, "MessageBody": "m"})).await;
        for _ in 0..3 {
            assert_eq!(receive(&sqs, &url, 0).await.all("Body"), ["m"]);
        }
    }
}
