//! SQS: what a message is: bodies, attributes, traces, batches, and what is refused; in both languages.

mod harness;
mod sqs_client;

use anabranch_model::queue::{Attribute, AttributeValue};
use anabranch_model::{NewMessage, QueueName, QueueStore};
use harness::Harness;
use serde_json::json;
use sqs_client::{BOTH, Client, Reply, Speaks, post, post_json, receive};

const MISSING: &str = "AWS.SimpleQueueService.NonExistentQueue";

#[tokio::test]
async fn a_message_is_sent_received_and_deleted() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({})).await;
        let body = "a\r\nb\t<&>\"' ✓ 🦦 + %41";
        let sent = sqs
            .ok(
                "SendMessage",
                json!({
                    "QueueUrl": url, "MessageBody": body,
                    "MessageAttributes": {
                        "text": {"DataType": "String", "StringValue": "é\r"},
                        "bytes": {"DataType": "Binary.x", "BinaryValue": "AP8="},
                        "timestamp": {"DataType": "Number", "StringValue": "1493147359900"},
                    },
                    "MessageSystemAttributes": {
                        "AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1-5759e988"},
                    },
                }),
            )
            .await;
        let got = receive(&sqs, &url, 30).await;
        assert_eq!(got.get("Body"), body);
        assert_eq!(got.get("MD5OfBody"), sent.get("MD5OfMessageBody"));
        assert_eq!(got.get("MessageId"), sent.get("MessageId"));
        assert_eq!(got.get("MD5OfMessageAttributes"), sent.get("MD5OfMessageAttributes"));
        assert!(sent.get("MD5OfMessageSystemAttributes") != sent.get("MD5OfMessageAttributes"));
        assert!(sent.all("SequenceNumber").is_empty());
        assert_eq!(got.all("BinaryValue"), ["AP8="]);
        assert!(got.all("StringValue").contains(&"é\r".to_owned()));
        assert_eq!(got.all("StringValue").len(), 2, "the trace is no attribute of the sender");
        let counted = match speaks {
            Speaks::Json => got.get("ApproximateReceiveCount"),
            Speaks::Forms => {
                got.entries().iter().find(|(name, _)| name == "ApproximateReceiveCount").unwrap().1.clone()
            }
        };
        assert_eq!(counted, "1");
        let receipt = got.get("ReceiptHandle");
        assert!(receive(&sqs, &url, 30).await.all("Body").is_empty(), "it is hidden");
        sqs.ok("DeleteMessage", json!({"QueueUrl": url, "ReceiptHandle": receipt})).await;
        sqs.ok("DeleteMessage", json!({"QueueUrl": url, "ReceiptHandle": receipt})).await;
        let counts = json!({"QueueUrl": url, "AttributeNames": ["ApproximateNumberOfMessagesNotVisible"]});
        let counts = sqs.ok("GetQueueAttributes", counts).await;
        assert_eq!(counts.entry("ApproximateNumberOfMessagesNotVisible"), "0");
    }
}

#[tokio::test]
async fn receivers_get_the_attributes_that_they_name() {
    let server = Harness::start().await;
    let sqs = Client { server: &server, speaks: Speaks::Json };
    let url = sqs.queue("q", json!({})).await;
    let attribute = json!({"DataType": "String", "StringValue": "x"});
    let attributes = json!({"a.1": attribute, "a.2": attribute, "b": attribute});
    let trace = json!({"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=1"}});
    let message = json!({
        "QueueUrl": url, "MessageBody": "m", "MessageAttributes": attributes, "MessageSystemAttributes": trace,
    });
    let sent = sqs.ok("SendMessage", message).await;
    let message = async |names: serde_json::Value, system: serde_json::Value| {
        let request = json!({
            "QueueUrl": url, "VisibilityTimeout": 0, "MessageAttributeNames": names,
            "MessageSystemAttributeNames": system,
        });
        let Reply::Json(reply) = sqs.ok("ReceiveMessage", request).await else { unreachable!() };
        reply["Messages"][0].clone()
    };
    let plain = message(json!([]), json!([])).await;
    let names: Vec<_> = plain.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["Body", "MD5OfBody", "MessageId", "ReceiptHandle"]);
    for (wanted, expected) in [
        (json!(["All"]), &["a.1", "a.2", "b"][..]),
        (json!([".*"]), &["a.1", "a.2", "b"]),
        (json!(["a.*"]), &["a.1", "a.2"]),
        (json!(["b", "c"]), &["b"]),
    ] {
        let found = message(wanted, json!([])).await;
        let names: Vec<_> = found["MessageAttributes"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(names, expected);
        let whole = found["MD5OfMessageAttributes"] == sent.get("MD5OfMessageAttributes");
        assert_eq!(whole, expected.len() == 3, "the sum is that of what is given");
    }
    let traced = message(json!([]), json!(["AWSTraceHeader", "SenderId"])).await;
    assert_eq!(traced["Attributes"], json!({"AWSTraceHeader": "Root=1", "SenderId": "000000000000"}));
    let request = json!({"QueueUrl": url, "AttributeNames": ["Colour"]});
    assert_eq!(sqs.refused("ReceiveMessage", request).await, "InvalidAttributeName");
}

#[tokio::test]
async fn a_trace_takes_no_place_from_attributes_and_no_bytes_from_the_body() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({"MaximumMessageSize": "1024"})).await;
        let attributes: serde_json::Map<_, _> = (0..10)
            .map(|number| (format!("a{number}"), json!({"DataType": "String", "StringValue": "x"})))
            .collect();
        // Names of two bytes, kinds of six and values of one.
        let body = "b".repeat(1_024 - 10 * 9);
        let trace = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1";
        let system = json!({"AWSTraceHeader": {"DataType": "String", "StringValue": trace}});
        let message = json!({
            "QueueUrl": url, "MessageBody": body, "MessageAttributes": attributes, "MessageSystemAttributes": system,
        });
        sqs.ok("SendMessage", message).await;
        let names = json!({
            "QueueUrl": url, "MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["AWSTraceHeader"],
        });
        let got = sqs.ok("ReceiveMessage", names).await;
        assert_eq!(got.all("StringValue").len(), 10);
        assert!(got.entries().contains(&("AWSTraceHeader".to_owned(), trace.to_owned())), "{got:?}");
        let larger = json!({
            "QueueUrl": url, "MessageBody": format!("{body}b"), "MessageAttributes": attributes,
            "MessageSystemAttributes": system,
        });
        assert_eq!(sqs.refused("SendMessage", larger).await, "InvalidParameterValue");
    }
}

#[tokio::test]
async fn a_trace_that_was_kept_among_the_attributes_is_still_told() {
    let server = Harness::start().await;
    let sqs = Client { server: &server, speaks: Speaks::Json };
    let url = sqs.queue("q", json!({})).await;
    let trace = Attribute { kind: "String".into(), value: AttributeValue::Text("Root=1".into()) };
    let old =
        NewMessage { attributes: [("AWS.TraceHeader".to_owned(), trace)].into(), ..NewMessage::new("old") };
    server.engine.send(&QueueName::new("q").unwrap(), vec![old]).await.unwrap();
    let names = json!({
        "QueueUrl": url, "MessageAttributeNames": ["All"], "MessageSystemAttributeNames": ["AWSTraceHeader"],
    });
    let Reply::Json(got) = sqs.ok("ReceiveMessage", names).await else { unreachable!() };
    assert_eq!(got["Messages"][0]["Attributes"], json!({"AWSTraceHeader": "Root=1"}));
    assert_eq!(got["Messages"][0].get("MessageAttributes"), None);
}

#[tokio::test]
async fn batches_have_a_result_for_each_entry() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({})).await;
        let entries = json!([
            {"Id": "good", "MessageBody": "one"},
            {"Id": "control", "MessageBody": "\u{1}"},
            {"Id": "empty", "MessageBody": ""},
            {"Id": "late", "MessageBody": "two", "DelaySeconds": 901},
            {"Id": "also", "MessageBody": "three"},
        ]);
        let reply = sqs.ok("SendMessageBatch", json!({"QueueUrl": url, "Entries": entries})).await;
        let mut ids = reply.all("Id");
        ids.sort();
        assert_eq!(ids, ["also", "control", "empty", "good", "late"]);
        let codes = reply.all("Code");
        assert_eq!(codes, ["InvalidMessageContents", "MissingParameter", "InvalidParameterValue"]);
        assert_eq!(reply.all("SenderFault"), ["true", "true", "true"]);
        let got = receive(&sqs, &url, 30).await;
        assert_eq!(got.all("Body"), ["one", "three"]);

        let receipts = got.all("ReceiptHandle");
        let changes = json!([
            {"Id": "a", "ReceiptHandle": receipts[0], "VisibilityTimeout": 0},
            {"Id": "b", "ReceiptHandle": "nonsense", "VisibilityTimeout": 0},
            {"Id": "c", "ReceiptHandle": receipts[1], "VisibilityTimeout": 43201},
        ]);
        let request = json!({"QueueUrl": url, "Entries": changes});
        let reply = sqs.ok("ChangeMessageVisibilityBatch", request).await;
        assert_eq!(reply.all("Code"), ["ReceiptHandleIsInvalid", "InvalidParameterValue"]);
        let again = receive(&sqs, &url, 30).await;
        assert_eq!(again.all("Body"), ["one"], "only the first is visible again");

        let receipts = [again.get("ReceiptHandle"), receipts[1].clone()];
        let entries = json!([
            {"Id": "a", "ReceiptHandle": receipts[0]}, {"Id": "b", "ReceiptHandle": "x y"},
            {"Id": "c", "ReceiptHandle": receipts[1]},
        ]);
        let reply = sqs.ok("DeleteMessageBatch", json!({"QueueUrl": url, "Entries": entries})).await;
        assert_eq!(reply.all("Code"), ["ReceiptHandleIsInvalid"]);
        let counts = json!({"QueueUrl": url, "AttributeNames": ["All"]});
        let counts = sqs.ok("GetQueueAttributes", counts).await;
        assert_eq!(counts.entry("ApproximateNumberOfMessagesNotVisible"), "0");
        assert_eq!(counts.entry("ApproximateNumberOfMessages"), "0");
    }
}

#[tokio::test]
async fn batches_that_are_wrong_as_a_whole_are_refused() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({})).await;
        let entry =
            |id: &str| json!({"Id": id, "MessageBody": "b", "ReceiptHandle": "r", "VisibilityTimeout": 1});
        let eleven: Vec<_> = (0..11).map(|number| entry(&number.to_string())).collect();
        for operation in ["SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch"] {
            for (entries, code) in [
                (json!([]), "EmptyBatchRequest"),
                (json!(eleven), "TooManyEntriesInBatchRequest"),
                (json!([entry("a"), entry("a")]), "BatchEntryIdsNotDistinct"),
                (json!([entry("a b")]), "InvalidBatchEntryId"),
                (json!([entry(&"x".repeat(81))]), "InvalidBatchEntryId"),
            ] {
                let refused = sqs.refused(operation, json!({"QueueUrl": url, "Entries": entries})).await;
                assert_eq!(refused, format!("AWS.SimpleQueueService.{code}"), "{operation}");
            }
            let nowhere = json!({"QueueUrl": format!("{url}x"), "Entries": [entry("a")]});
            assert_eq!(sqs.refused(operation, nowhere).await, MISSING, "{operation}");
        }
        let half = "x".repeat((1 << 19) + 1);
        let entries = json!([{"Id": "a", "MessageBody": half}, {"Id": "b", "MessageBody": half}]);
        let long = sqs.refused("SendMessageBatch", json!({"QueueUrl": url, "Entries": entries})).await;
        assert_eq!(long, "AWS.SimpleQueueService.BatchRequestTooLong");
        assert!(receive(&sqs, &url, 30).await.all("Body").is_empty(), "nothing was sent");
    }
}

#[tokio::test]
async fn messages_that_are_not_allowed_are_refused() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({"MaximumMessageSize": "1024"})).await;
        let fifo = json!({"FifoQueue": "true"});
        let fifo = sqs.queue(&format!("q-{speaks:?}.fifo"), fifo).await;
        let big = "x".repeat(1_025);
        for (request, code) in [
            (json!({"QueueUrl": url}), "MissingParameter"),
            (json!({"QueueUrl": url, "MessageBody": ""}), "MissingParameter"),
            (json!({"QueueUrl": url, "MessageBody": "\u{0}"}), "InvalidMessageContents"),
            (json!({"QueueUrl": url, "MessageBody": "\u{ffff}"}), "InvalidMessageContents"),
            (json!({"QueueUrl": url, "MessageBody": big}), "InvalidParameterValue"),
            (json!({"QueueUrl": url, "MessageBody": "b", "DelaySeconds": -1}), "InvalidParameterValue"),
            (
                json!({"QueueUrl": url, "MessageBody": "b", "MessageDeduplicationId": "d"}),
                "InvalidParameterValue",
            ),
            (json!({"QueueUrl": fifo, "MessageBody": "b"}), "MissingParameter"),
            (json!({"QueueUrl": fifo, "MessageBody": "b", "MessageGroupId": "g"}), "InvalidParameterValue"),
            (
                json!({"QueueUrl": fifo, "MessageBody": "b", "MessageGroupId": "g ", "MessageDeduplicationId": "d"}),
                "InvalidParameterValue",
            ),
            (json!({"QueueUrl": format!("{url}x"), "MessageBody": "b"}), MISSING),
        ] {
            assert_eq!(sqs.refused("SendMessage", request.clone()).await, code, "{request}");
        }
        for (request, code) in [
            (json!({"QueueUrl": url, "MaxNumberOfMessages": 11}), "InvalidParameterValue"),
            (json!({"QueueUrl": url, "MaxNumberOfMessages": 0}), "InvalidParameterValue"),
            (json!({"QueueUrl": url, "WaitTimeSeconds": 21}), "InvalidParameterValue"),
            (json!({"QueueUrl": url, "VisibilityTimeout": 43201}), "InvalidParameterValue"),
            (json!({"QueueUrl": url, "ReceiveRequestAttemptId": "a"}), "InvalidParameterValue"),
            (json!({"QueueUrl": format!("{url}x")}), MISSING),
        ] {
            assert_eq!(sqs.refused("ReceiveMessage", request.clone()).await, code, "{request}");
        }
        for (operation, more) in [("DeleteMessage", json!(null)), ("ChangeMessageVisibility", json!(5))] {
            for receipt in ["nonsense", "1.1.x", "", "ffffffffffffffff.1.m", "a b"] {
                let request = json!({"QueueUrl": url, "ReceiptHandle": receipt, "VisibilityTimeout": more});
                if more.is_null() && speaks == Speaks::Forms {
                    continue;
                }
                let code = sqs.refused(operation, request).await;
                assert_eq!(code, "ReceiptHandleIsInvalid", "{operation} {receipt:?}");
            }
            let request = json!({"QueueUrl": url, "VisibilityTimeout": 5});
            assert_eq!(sqs.refused(operation, request).await, "MissingParameter");
        }
        assert!(receive(&sqs, &url, 30).await.all("Body").is_empty(), "nothing was sent");
    }
}

#[tokio::test]
async fn a_batch_for_an_order_is_refused_as_a_whole_where_a_message_lacks_what_makes_one() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        // The service takes these words in any case.
        let url = sqs.queue(&format!("plain-{speaks:?}.fifo"), json!({"FifoQueue": "True"})).await;
        let whole =
            json!({"Id": "a", "MessageBody": "m", "MessageGroupId": "g", "MessageDeduplicationId": "d"});
        for lacking in [
            json!({"Id": "b", "MessageBody": "m", "MessageDeduplicationId": "e"}),
            json!({"Id": "b", "MessageBody": "m", "MessageGroupId": "g"}),
        ] {
            let batch = json!({"QueueUrl": url, "Entries": [whole, lacking]});
            assert_eq!(sqs.refused("SendMessageBatch", batch).await, "InvalidParameterValue");
        }
        assert!(receive(&sqs, &url, 0).await.all("Body").is_empty(), "nothing was sent");
        let sent = sqs.ok("SendMessageBatch", json!({"QueueUrl": url, "Entries": [whole]})).await;
        assert!(!format!("{sent:?}").contains("Failed"), "{sent:?}");
    }
}

#[tokio::test]
async fn refusals_of_messages_name_the_bound() {
    let server = Harness::start().await;
    let sqs = Client { server: &server, speaks: Speaks::Json };
    let url = sqs.queue("small", json!({"MaximumMessageSize": "1024"})).await;
    let long = json!({"QueueUrl": url, "MessageBody": "m".repeat(1_025)}).to_string();
    let answer = post_json(&server, "SendMessage", &long).await;
    assert!(answer.body.contains("Reason: Message must be shorter than 1024 bytes."), "{answer:?}");
    let fifo = sqs.queue("order.fifo", json!({"FifoQueue": "true"})).await;
    let unnamed = json!({"QueueUrl": fifo, "MessageBody": "m", "MessageGroupId": "g"}).to_string();
    let answer = post_json(&server, "SendMessage", &unnamed).await;
    assert!(answer.body.contains("The queue should either have ContentBasedDeduplication"), "{answer:?}");
    let gone = json!({"QueueUrl": "http://localhost/000000000000/none", "MessageBody": "m"});
    let answer = post_json(&server, "SendMessage", &gone.to_string()).await;
    assert!(answer.body.contains("The specified queue does not exist.\""), "{answer:?}");
}

#[tokio::test]
async fn a_call_that_belongs_to_a_trace_gives_it_to_its_messages() {
    let server = Harness::start().await;
    let sqs = Client { server: &server, speaks: Speaks::Json };
    let url = sqs.queue("q", json!({})).await;
    let trace = "Root=1-3152b799-8954dae64eda91bc9a23a7e8;Parent=7fa8c0f79203be72;Sampled=1";
    let own = json!({"AWSTraceHeader": {"DataType": "String", "StringValue": "Root=own"}});
    let entries = json!([
        {"Id": "a", "MessageBody": "m"},
        {"Id": "b", "MessageBody": "m", "MessageSystemAttributes": own},
    ]);
    let calls = [
        ("SendMessage", json!({"QueueUrl": url, "MessageBody": "m"})),
        ("SendMessageBatch", json!({"QueueUrl": url, "Entries": entries})),
    ];
    for (operation, call) in calls {
        let target = format!("AmazonSQS.{operation}");
        let headers = [
            ("x-amz-target", &*target),
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amzn-trace-id", trace),
        ];
        let answer = post(&server, "/", &headers, call.to_string().as_bytes()).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(
            answer.body.matches("MD5OfMessageSystemAttributes").count(),
            answer.body.matches("\"b\"").count()
        );
    }
    // What is no trace keeps nobody from sending.
    let long = "x".repeat(1_025);
    for odd in ["", &long] {
        let headers = [
            ("x-amz-target", "AmazonSQS.SendMessage"),
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amzn-trace-id", odd),
        ];
        let call = json!({"QueueUrl": url, "MessageBody": "m"}).to_string();
        assert_eq!(post(&server, "/", &headers, call.as_bytes()).await.status, 200);
    }
    sqs.ok("SendMessage", json!({"QueueUrl": url, "MessageBody": "m"})).await;
    let names = json!({
        "QueueUrl": url, "MaxNumberOfMessages": 10, "MessageSystemAttributeNames": ["AWSTraceHeader"],
    });
    let mut told = sqs.ok("ReceiveMessage", names).await.all("AWSTraceHeader");
    told.sort();
    assert_eq!(told, [trace, trace, "Root=own"]);
}

#[tokio::test]
async fn names_of_attributes_may_have_letters_of_any_script() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({})).await;
        let send = |name: &str| {
            let attributes = json!({name: {"DataType": "String", "StringValue": "x"}});
            json!({"QueueUrl": url, "MessageBody": "m", "MessageAttributes": attributes})
        };
        sqs.ok("SendMessage", send("attr.1øßä")).await;
        let got =
            sqs.ok("ReceiveMessage", json!({"QueueUrl": url, "MessageAttributeNames": ["attr.1øßä"]})).await;
        assert_eq!(got.all("StringValue"), ["x"]);
        for name in ["a-§-b", "a!b", "a b", ".a", "a.", "aWs.a", &"L".repeat(257)] {
            assert_eq!(sqs.refused("SendMessage", send(name)).await, "InvalidParameterValue", "{name}");
        }
    }
}

#[tokio::test]
async fn what_was_stored_by_other_means_can_be_received() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let name = format!("q-{speaks:?}");
        let url = sqs.queue(&name, json!({})).await;
        let queue = QueueName::new(&name).unwrap();
        let odd = Attribute { kind: "date".into(), value: AttributeValue::Text("\u{1}".into()) };
        let bytes =
            NewMessage { attributes: [("odd".to_owned(), odd)].into(), ..NewMessage::new(vec![0xff, 0x00]) };
        let messages = vec![bytes, NewMessage::new("\u{0}"), NewMessage::new("text")];
        for result in server.engine.send(&queue, messages).await.unwrap() {
            result.unwrap();
        }
        let got = receive(&sqs, &url, 30).await;
        let bodies = ["anabranch:base64:/wA=", "anabranch:base64:AA==", "text"];
        assert_eq!(got.all("Body"), bodies);
        assert_eq!(got.all("DataType"), ["date"]);
    }
}
