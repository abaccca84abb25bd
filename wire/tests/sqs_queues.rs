//! SQS: queues, their attributes, tags and permissions, in both languages.

mod harness;
mod sqs_client;

use harness::Harness;
use serde_json::json;
use sqs_client::{BOTH, Client, Speaks, post, post_form};

const MISSING: &str = "AWS.SimpleQueueService.NonExistentQueue";

#[tokio::test]
async fn a_queue_is_made_once() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let name = format!("orders-{speaks:?}");
        let url = sqs.queue(&name, json!({"VisibilityTimeout": "7"})).await;
        assert_eq!(url, format!("http://{}/000000000000/{name}", server.address));
        for same in [json!({}), json!({"VisibilityTimeout": "7"}), json!({"DelaySeconds": "0"})] {
            assert_eq!(sqs.queue(&name, same).await, url);
        }
        let other = json!({"QueueName": name, "Attributes": {"VisibilityTimeout": "8"}});
        assert_eq!(sqs.refused("CreateQueue", other).await, "QueueAlreadyExists");
        let kept = json!({"QueueName": name, "Attributes": {"KmsMasterKeyId": "alias/k"}});
        assert_eq!(sqs.refused("CreateQueue", kept).await, "QueueAlreadyExists");
        assert_eq!(sqs.ok("GetQueueUrl", json!({"QueueName": name})).await.get("QueueUrl"), url);
        sqs.ok("DeleteQueue", json!({"QueueUrl": url})).await;
        assert_eq!(sqs.refused("GetQueueUrl", json!({"QueueName": name})).await, MISSING);
        assert_eq!(sqs.refused("DeleteQueue", json!({"QueueUrl": url})).await, MISSING);
    }
}

#[tokio::test]
async fn names_that_are_not_allowed_are_refused() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let long = "x".repeat(81);
        for name in ["", "a b", "ä", "a/b", "..", ".fifo", &long] {
            let request = json!({"QueueName": name});
            assert_eq!(sqs.refused("CreateQueue", request).await, "InvalidParameterValue", "{name}");
        }
        assert_eq!(sqs.refused("CreateQueue", json!({})).await, "MissingParameter");
        for request in [
            json!({"QueueName": "a.fifo"}),
            json!({"QueueName": "a", "Attributes": {"FifoQueue": "true"}}),
            json!({"QueueName": "a.fifo", "Attributes": {"FifoQueue": "false"}}),
        ] {
            assert_eq!(sqs.refused("CreateQueue", request).await, "InvalidParameterValue");
        }
        let attribute = json!({"QueueName": "a", "Attributes": {"Colour": "red"}});
        assert_eq!(sqs.refused("CreateQueue", attribute).await, "InvalidAttributeName");
        let value = json!({"QueueName": "a", "Attributes": {"DelaySeconds": "901"}});
        assert_eq!(sqs.refused("CreateQueue", value).await, "InvalidAttributeValue");
        for (name, value) in [
            ("FifoQueue", "false"),
            ("ContentBasedDeduplication", "false"),
            ("DeduplicationScope", "queue"),
            ("FifoThroughputLimit", "perQueue"),
        ] {
            let request = json!({"QueueName": "a", "Attributes": {name: value}});
            assert_eq!(sqs.refused("CreateQueue", request).await, "InvalidAttributeName", "{name}");
        }
        assert!(sqs.ok("ListQueues", json!({})).await.all("QueueUrl").is_empty(), "nothing was made");
    }
}

#[tokio::test]
async fn attributes_are_set_and_told() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let dead = sqs.queue(&format!("dead-{speaks:?}"), json!({})).await;
        let url = sqs.queue(&format!("live-{speaks:?}"), json!({})).await;
        let new = sqs.ok("GetQueueAttributes", json!({"QueueUrl": url, "AttributeNames": ["All"]})).await;
        for (name, value) in [
            ("DelaySeconds", "0"),
            ("MaximumMessageSize", "1048576"),
            ("MessageRetentionPeriod", "345600"),
            ("ReceiveMessageWaitTimeSeconds", "0"),
            ("SqsManagedSseEnabled", "true"),
            ("VisibilityTimeout", "30"),
        ] {
            assert_eq!(new.entry(name), value, "{name}");
        }
        assert_eq!(new.entries().len(), 12, "{new:?}");
        let arn = format!("arn:aws:sqs:us-east-1:000000000000:dead-{speaks:?}");
        let policy = json!({"deadLetterTargetArn": arn, "maxReceiveCount": 3}).to_string();
        let attributes = json!({
            "DelaySeconds": "1", "MaximumMessageSize": "2048", "MessageRetentionPeriod": "60",
            "ReceiveMessageWaitTimeSeconds": "2", "VisibilityTimeout": "3", "RedrivePolicy": policy,
            "KmsMasterKeyId": "alias/k", "Policy": "{\"Statement\":[]}",
        });
        sqs.ok("SetQueueAttributes", json!({"QueueUrl": url, "Attributes": attributes})).await;
        let all = sqs.ok("GetQueueAttributes", json!({"QueueUrl": url, "AttributeNames": ["All"]})).await;
        for (name, value) in attributes.as_object().unwrap() {
            assert_eq!(all.entry(name), value.as_str().unwrap());
        }
        assert_eq!(all.entry("SqsManagedSseEnabled"), "false", "there is a key instead");
        assert_eq!(all.entry("ApproximateNumberOfMessages"), "0");
        assert_eq!(all.entry("QueueArn"), format!("arn:aws:sqs:us-east-1:000000000000:live-{speaks:?}"));
        assert!(all.entry("CreatedTimestamp").parse::<u64>().unwrap() > 1_700_000_000);
        assert!(!all.entries().iter().any(|(name, _)| name == "FifoQueue"), "{all:?}");

        let some = json!({"QueueUrl": url, "AttributeNames": ["DelaySeconds", "QueueArn"]});
        assert_eq!(sqs.ok("GetQueueAttributes", some).await.entries().len(), 2);
        assert!(sqs.ok("GetQueueAttributes", json!({"QueueUrl": url})).await.entries().is_empty());
        let unknown = json!({"QueueUrl": url, "AttributeNames": ["Colour"]});
        assert_eq!(sqs.refused("GetQueueAttributes", unknown).await, "InvalidAttributeName");

        let sources = sqs.ok("ListDeadLetterSourceQueues", json!({"QueueUrl": dead})).await;
        assert_eq!(sources.all("QueueUrl"), std::slice::from_ref(&url));
        let removed = json!({"QueueUrl": url, "Attributes": {"RedrivePolicy": "", "KmsMasterKeyId": ""}});
        sqs.ok("SetQueueAttributes", removed).await;
        let left = sqs.ok("GetQueueAttributes", json!({"QueueUrl": url, "AttributeNames": ["All"]})).await;
        let names: Vec<_> = left.entries().into_iter().map(|(name, _)| name).collect();
        assert!(!names.iter().any(|name| name == "RedrivePolicy" || name == "KmsMasterKeyId"), "{names:?}");
        assert!(names.iter().any(|name| name == "Policy"), "{names:?}");
    }
}

#[tokio::test]
async fn a_refused_change_changes_nothing() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let url = sqs.queue(&format!("q-{speaks:?}"), json!({"DelaySeconds": "5"})).await;
        let nowhere =
            json!({"deadLetterTargetArn": "arn:aws:sqs:us-east-1:000000000000:no", "maxReceiveCount": 3});
        for (attributes, code) in [
            (json!({"DelaySeconds": "6", "VisibilityTimeout": "x"}), "InvalidAttributeValue"),
            (json!({"DelaySeconds": "6", "Colour": "red"}), "InvalidAttributeName"),
            (json!({"DelaySeconds": "6", "QueueArn": "x"}), "InvalidAttributeName"),
            (json!({"DelaySeconds": "6", "FifoQueue": "true"}), "InvalidAttributeName"),
            (json!({"DelaySeconds": "6", "FifoQueue": "false"}), "InvalidAttributeName"),
            (json!({"DelaySeconds": "6", "ContentBasedDeduplication": "false"}), "InvalidAttributeName"),
            (json!({"DelaySeconds": "6", "RedrivePolicy": nowhere.to_string()}), "InvalidParameterValue"),
            (json!({"DelaySeconds": "6", "RedrivePolicy": "{"}), "InvalidParameterValue"),
        ] {
            let request = json!({"QueueUrl": url, "Attributes": attributes});
            assert_eq!(sqs.refused("SetQueueAttributes", request).await, code, "{attributes}");
        }
        let all = sqs.ok("GetQueueAttributes", json!({"QueueUrl": url, "AttributeNames": ["All"]})).await;
        assert_eq!(all.entry("DelaySeconds"), "5");
        let ordered = sqs.queue(&format!("q-{speaks:?}.fifo"), json!({"FifoQueue": "true"})).await;
        let request = json!({"QueueUrl": ordered, "Attributes": {"FifoQueue": "false"}});
        assert_eq!(sqs.refused("SetQueueAttributes", request).await, "InvalidAttributeValue");
        let none = json!({"QueueUrl": format!("{url}x"), "Attributes": {"DelaySeconds": "6"}});
        assert_eq!(sqs.refused("SetQueueAttributes", none).await, MISSING);
    }
}

#[tokio::test]
async fn queues_are_listed_in_pages() {
    let server = Harness::start().await;
    for name in ["a-1", "a-2", "a-3", "b-1"] {
        Client { server: &server, speaks: Speaks::Json }.queue(name, json!({})).await;
    }
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let names = |reply: &sqs_client::Reply| {
            let urls = reply.all("QueueUrl").into_iter();
            urls.map(|url| url.rsplit('/').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let all = sqs.ok("ListQueues", json!({})).await;
        assert_eq!(names(&all), ["a-1", "a-2", "a-3", "b-1"]);
        assert!(all.all("NextToken").is_empty());
        let first = sqs.ok("ListQueues", json!({"QueueNamePrefix": "a", "MaxResults": 2})).await;
        assert_eq!(names(&first), ["a-1", "a-2"]);
        let token = first.get("NextToken");
        let next = json!({"QueueNamePrefix": "a", "MaxResults": 2, "NextToken": token});
        let last = sqs.ok("ListQueues", next).await;
        assert_eq!(names(&last), ["a-3"]);
        assert!(last.all("NextToken").is_empty());
        for bad in [
            json!({"MaxResults": 0}),
            json!({"MaxResults": 1001}),
            json!({"NextToken": "?"}),
            json!({"NextToken": "YS0x", "MaxResults": 2}),
        ] {
            assert_eq!(sqs.refused("ListQueues", bad).await, "InvalidParameterValue");
        }
        let elsewhere = json!({"QueueUrl": all.all("QueueUrl")[0], "NextToken": token});
        assert_eq!(sqs.refused("ListDeadLetterSourceQueues", elsewhere).await, "InvalidParameterValue");
    }
}

#[tokio::test]
async fn tags_and_permissions_are_kept_and_go_with_the_queue() {
    let server = Harness::start().await;
    for speaks in BOTH {
        let sqs = Client { server: &server, speaks };
        let made = json!({"QueueName": "t", "tags": {"team": "red"}});
        let url = sqs.ok("CreateQueue", made).await.get("QueueUrl");
        sqs.ok("TagQueue", json!({"QueueUrl": url, "Tags": {"team": "blue", "cost": ""}})).await;
        let tags = sqs.ok("ListQueueTags", json!({"QueueUrl": url})).await;
        assert_eq!((tags.entry("team"), tags.entry("cost")), ("blue".into(), String::new()));
        sqs.ok("UntagQueue", json!({"QueueUrl": url, "TagKeys": ["team", "missing"]})).await;
        assert_eq!(sqs.ok("ListQueueTags", json!({"QueueUrl": url})).await.entries().len(), 1);

        let permission = json!({
            "QueueUrl": url, "Label": "send", "AWSAccountIds": ["111111111111"], "Actions": ["SendMessage"],
        });
        sqs.ok("AddPermission", permission.clone()).await;
        assert_eq!(sqs.refused("AddPermission", permission).await, "InvalidParameterValue");
        let policy = json!({"QueueUrl": url, "AttributeNames": ["Policy"]});
        let text = sqs.ok("GetQueueAttributes", policy.clone()).await.entry("Policy");
        let statement = &serde_json::from_str::<serde_json::Value>(&text).unwrap()["Statement"][0];
        assert_eq!(statement["Principal"]["AWS"], "arn:aws:iam::111111111111:root");
        assert_eq!((&statement["Sid"], &statement["Action"]), (&json!("send"), &json!("SQS:SendMessage")));
        sqs.ok("RemovePermission", json!({"QueueUrl": url, "Label": "send"})).await;
        assert!(sqs.ok("GetQueueAttributes", policy).await.entries().is_empty());
        let again = json!({"QueueUrl": url, "Label": "send"});
        assert_eq!(sqs.refused("RemovePermission", again).await, "InvalidParameterValue");

        sqs.ok("DeleteQueue", json!({"QueueUrl": url})).await;
        sqs.queue("t", json!({})).await;
        assert!(sqs.ok("ListQueueTags", json!({"QueueUrl": url})).await.entries().is_empty());
        sqs.ok("DeleteQueue", json!({"QueueUrl": url})).await;
        for (operation, request) in [
            ("TagQueue", json!({"QueueUrl": url, "Tags": {"a": "b"}})),
            ("UntagQueue", json!({"QueueUrl": url, "TagKeys": ["a"]})),
            ("ListQueueTags", json!({"QueueUrl": url})),
            ("RemovePermission", json!({"QueueUrl": url, "Label": "x"})),
            ("PurgeQueue", json!({"QueueUrl": url})),
            ("ListDeadLetterSourceQueues", json!({"QueueUrl": url})),
        ] {
            assert_eq!(sqs.refused(operation, request).await, MISSING, "{operation}");
        }
    }
}

#[tokio::test]
async fn queues_are_found_by_address_path_arn_and_name() {
    let server = Harness::start().await;
    let sqs = Client { server: &server, speaks: Speaks::Json };
    let url = sqs.queue("q", json!({})).await;
    for known in
        [&*url, "q", "arn:aws:sqs:us-east-1:000000000000:q", "https://sqs.eu-west-1.amazonaws.com/1/q"]
    {
        let request = json!({"QueueUrl": known, "AttributeNames": ["QueueArn"]});
        sqs.ok("GetQueueAttributes", request).await;
    }
    assert_eq!(sqs.refused("GetQueueAttributes", json!({})).await, "MissingParameter");
    // Old clients call the address of the queue.
    let fields =
        [("Action", "GetQueueAttributes"), ("Version", "2012-11-05"), ("AttributeName.1", "QueueArn")];
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let answer = post_form(&server, "/000000000000/q", &fields).await;
    assert!(answer.body.contains("<Value>arn:aws:sqs:us-east-1:000000000000:q</Value>"), "{answer:?}");
}

#[tokio::test]
async fn addresses_begin_as_the_caller_addresses_the_server() {
    let server = Harness::start().await;
    let headers = [
        ("host", "sqs.example.org:4566"),
        ("x-amz-target", "AmazonSQS.CreateQueue"),
        ("content-type", "application/x-amz-json-1.0"),
    ];
    let answer = post(&server, "/", &headers, br#"{"QueueName":"q"}"#).await;
    assert_eq!(answer.body, r#"{"QueueUrl":"http://sqs.example.org:4566/000000000000/q"}"#);
}

#[tokio::test]
async fn the_address_of_a_queue_knows_nothing_of_other_queues() {
    let server = Harness::start().await;
    let sqs = Client { server: &server, speaks: Speaks::Forms };
    let url = sqs.queue("q", json!({})).await;
    let fields = |fields: &[(&str, &str)]| {
        fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>()
    };
    for (action, name) in [("CreateQueue", "other"), ("ListQueues", "")] {
        let form = fields(&[("Action", action), ("Version", "2012-11-05"), ("QueueName", name)]);
        let answer = post_form(&server, "/000000000000/q", &form).await;
        let words = format!("The action {action} is not valid for this endpoint.");
        assert!(answer.status == 400 && answer.body.contains("<Code>InvalidAction</Code>"), "{answer:?}");
        assert!(answer.body.contains(&words), "{answer:?}");
    }
    let form = fields(&[("Action", "SendMessage"), ("Version", "2012-11-05"), ("MessageBody", "m")]);
    assert_eq!(post_form(&server, "/000000000000/q", &form).await.status, 200);
    assert_eq!(sqs.ok("ListQueues", json!({})).await.all("QueueUrl"), [url]);
}
