//! What callers of queues see when SQS does a part, refuses, or does not answer; and what SQS is asked then.

mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_aws::Queues;
use anabranch_model::queue::{MoveId, MoveStatus, QueueSummary, ReceiveOptions, RedriveAllow};
use anabranch_model::{
    Error, NewMessage, NextMove, QueueName, QueueOptions, QueueStore, Receipt, Result, limits,
};
use peer::connect;
use peer::stub::{Answer, Stub};
use serde_json::{Value, json};

const ADDRESS: &str = r#"{"QueueUrl":"https://sqs.us-east-1.amazonaws.com/123456789012/q"}"#;

fn name(name: &str) -> QueueName {
    QueueName::new(name).expect("a name")
}

/// Queues on a server that knows every address and answers all else with what `script` makes of it.
async fn queues(script: impl FnMut(&str, Value) -> Answer + Send + 'static) -> (Queues, Stub) {
    let mut script = script;
    let stub = Stub::start(move |operation, body| match operation {
        "getqueueurl" => Answer::ok(ADDRESS),
        _ => script(operation, serde_json::from_str(body).expect("a body in JSON")),
    })
    .await;
    (Queues::new(&connect(&stub.endpoint()).await).purging_at_once(), stub)
}

/// What was asked beside addresses.
fn asked(stub: &Stub) -> Vec<String> {
    stub.asked().into_iter().filter(|operation| operation != "getqueueurl").collect()
}

fn ids(body: &Value) -> Vec<String> {
    let entries = body["Entries"].as_array().expect("entries").iter();
    entries.map(|entry| entry["Id"].as_str().expect("an id").to_string()).collect()
}

/// The answer to a batch in which the entries of `failed` failed with a code, by their own fault or not.
fn verdicts(body: &Value, failed: &[(&str, &str, bool)]) -> Answer {
    let failure = |id: &String| failed.iter().find(|(failed, ..)| failed == id);
    let done = ids(body).into_iter().filter(|id| failure(id).is_none());
    let done: Vec<_> = done
        .map(|id| json!({ "Id": id, "MessageId": format!("m-{id}"), "MD5OfMessageBody": "x", "SequenceNumber": "7" }))
        .collect();
    let failed: Vec<_> = ids(body).iter().filter_map(failure).collect();
    let failed: Vec<_> = failed
        .iter()
        .map(|(id, code, fault)| json!({ "Id": id, "Code": code, "SenderFault": fault, "Message": "why" }))
        .collect();
    Answer::ok(&json!({ "Successful": done, "Failed": failed }).to_string())
}

fn messages(count: usize) -> Vec<NewMessage> {
    (0..count).map(|number| NewMessage::new(format!("b-{number}"))).collect()
}

fn sent_ids<T>(results: Vec<Result<T>>, id: impl Fn(T) -> String) -> Vec<String> {
    results.into_iter().map(|result| id(result.expect("a sent message"))).collect()
}

#[tokio::test]
async fn a_missing_permission_has_the_name_that_policies_use() {
    let (queues, stub) = queues(|_, _| Answer::failure(403, "AccessDeniedException", "not authorized")).await;
    let error = queues.send(&name("q"), messages(1)).await.unwrap_err();
    assert!(matches!(&error, Error::Denied { action, .. } if action == "sqs:SendMessage"), "{error:?}");
    assert_eq!(asked(&stub), ["sendmessagebatch"]);
}

#[tokio::test]
async fn the_address_of_a_queue_that_is_gone_is_forgotten() {
    let gone = || Answer::failure(400, "com.amazonaws.sqs#QueueDoesNotExist", "gone");
    let old = || gone().with("x-amzn-query-error: AWS.SimpleQueueService.NonExistentQueue;Sender");
    for answer in [gone(), old()] {
        let (queues, stub) = queues(move |_, _| answer.clone()).await;
        for _ in 0..2 {
            let error = queues.send(&name("q"), messages(1)).await.unwrap_err();
            assert_eq!(error, Error::QueueNotFound(name("q")));
        }
        assert_eq!(stub.asked(), ["getqueueurl", "sendmessagebatch", "getqueueurl", "sendmessagebatch"]);
    }
}

#[tokio::test]
async fn an_address_is_asked_for_once() {
    let (queues, stub) = queues(|_, body| verdicts(&body, &[])).await;
    for _ in 0..3 {
        queues.send(&name("q"), messages(1)).await.unwrap();
    }
    assert_eq!(stub.asked(), ["getqueueurl", "sendmessagebatch", "sendmessagebatch", "sendmessagebatch"]);
}

#[tokio::test]
async fn only_what_failed_is_sent_again() {
    let mut sends = 0;
    let (queues, stub) = queues(move |_, body| {
        sends += 1;
        match sends {
            1 => verdicts(&body, &[("1", "InternalError", false), ("2", "InvalidMessageContents", true)]),
            2 => {
                assert_eq!(ids(&body), ["1"]);
                verdicts(&body, &[("1", "RequestThrottled", true)])
            }
            _ => verdicts(&body, &[]),
        }
    })
    .await;
    let mut results = queues.send(&name("q"), messages(4)).await.unwrap();
    let refused = results.remove(2).unwrap_err();
    assert!(matches!(&refused, Error::Invalid(text) if text.contains("why")), "{refused:?}");
    assert_eq!(sent_ids(results, |sent| sent.id.to_string()), ["m-0", "m-1", "m-3"]);
    assert_eq!(asked(&stub).len(), 3);
}

#[tokio::test]
async fn nothing_is_put_behind_what_came_later_in_its_group() {
    let mut sends = 0;
    let (queues, _stub) = queues(move |_, body| {
        sends += 1;
        match sends {
            // `0` was overtaken by `2`, and `1` by nothing of its group.
            1 => verdicts(&body, &[("0", "InternalError", false), ("1", "InternalError", false)]),
            _ => {
                assert_eq!(ids(&body), ["1"]);
                verdicts(&body, &[])
            }
        }
    })
    .await;
    let grouped = ["a", "b", "a"].into_iter().enumerate();
    let grouped = grouped.map(|(id, group)| NewMessage::new("x").in_group(group).known_as(&id.to_string()));
    let results = queues.send(&name("q.fifo"), grouped.collect()).await.unwrap();
    assert!(matches!(&results[0], Err(error) if error.next_move() == NextMove::Retry), "{results:?}");
    assert!(results[1].is_ok() && results[2].is_ok(), "{results:?}");
}

#[tokio::test]
async fn a_send_in_doubt_is_repeated_only_where_duplicates_are_recognised() {
    for doubt in [Answer::Closed, Answer::Cut, Answer::failure(500, "InternalFailure", "oops")] {
        let fifo_doubt = doubt.clone();
        let answer = doubt.clone();
        let (standard, stub) = queues(move |_, _| answer.clone()).await;
        let error = standard.send(&name("q"), messages(2)).await.unwrap_err();
        assert!(error.to_string().contains("not known"), "{doubt:?}: {error}");
        assert_eq!((error.next_move(), asked(&stub).len()), (NextMove::Retry, 1), "{doubt:?}");

        let mut sends = 0;
        let (fifo, stub) = queues(move |_, body| {
            sends += 1;
            if sends == 1 { fifo_doubt.clone() } else { verdicts(&body, &[]) }
        })
        .await;
        let message = NewMessage::new("x").in_group("g");
        let results = fifo.send(&name("q.fifo"), vec![message]).await.unwrap();
        assert!(results[0].is_ok(), "{doubt:?}: {results:?}");
        assert_eq!(asked(&stub).len(), 2, "{doubt:?}");
    }
}

#[tokio::test]
async fn one_bad_message_that_is_held_against_all_is_found() {
    let (queues, stub) = queues(|_, body| match ids(&body).as_slice() {
        [one] if one != "1" => verdicts(&body, &[]),
        _ => Answer::failure(400, "InvalidParameterValue", "One message is too long"),
    })
    .await;
    let mut results = queues.send(&name("q"), messages(3)).await.unwrap();
    let error = results.remove(1).unwrap_err();
    assert!(matches!(&error, Error::Invalid(text) if text.contains("too long")), "{error:?}");
    assert_eq!(sent_ids(results, |sent| sent.id.to_string()), ["m-0", "m-2"]);
    assert_eq!(asked(&stub).len(), 4);
}

#[tokio::test]
async fn what_was_sent_is_reported_although_the_rest_fails() {
    let mut sends = 0;
    let (queues, _stub) = queues(move |_, body| {
        sends += 1;
        match sends {
            1 => verdicts(&body, &[("1", "InternalError", false)]),
            _ => Answer::failure(403, "AccessDeniedException", "not any more"),
        }
    })
    .await;
    let results = queues.send(&name("q"), messages(2)).await.unwrap();
    assert!(results[0].is_ok(), "{results:?}");
    assert!(matches!(&results[1], Err(Error::Denied { .. })), "{results:?}");
}

#[tokio::test]
async fn what_becomes_too_large_as_text_is_sent_in_parts_or_refused() {
    let (queues, stub) = queues(|_, body| {
        let entries = body["Entries"].as_array().unwrap();
        let bytes: usize = entries.iter().map(|entry| entry["MessageBody"].as_str().unwrap().len()).sum();
        assert!(bytes <= limits::MESSAGE_BYTES_MAX, "{bytes} bytes in one call");
        verdicts(&body, &[])
    })
    .await;
    // Together a mebibyte, and a third more as base64.
    let part = NewMessage::new(vec![0xff; limits::MESSAGE_BYTES_MAX / 4]);
    let results = queues.send(&name("q"), vec![part; 4]).await.unwrap();
    assert_eq!(sent_ids(results, |sent| sent.id.to_string()), ["m-0", "m-1", "m-2", "m-3"]);
    assert_eq!(asked(&stub).len(), 2);
    let whole = NewMessage::new(vec![0xff; limits::MESSAGE_BYTES_MAX]);
    let results = queues.send(&name("q"), vec![whole]).await.unwrap();
    assert!(matches!(&results[0], Err(Error::Invalid(text)) if text.contains("as text")), "{results:?}");
    assert_eq!(asked(&stub).len(), 2, "SQS was asked for what it cannot do");
}

#[tokio::test]
async fn receipts_are_sorted_one_by_one_and_tried_again() {
    let mut calls = 0;
    let (queues, stub) = queues(move |_, body| {
        calls += 1;
        match calls {
            1 => Answer::Closed,
            2 => verdicts(&body, &[("1", "ReceiptHandleIsInvalid", true), ("2", "InternalError", false)]),
            _ => {
                assert_eq!(ids(&body), ["2"]);
                verdicts(&body, &[])
            }
        }
    })
    .await;
    let receipts: Vec<_> = ["m0/h0", "m1/h1", "m2/h2", "nonsense"].map(|r| Receipt::new(r).unwrap()).into();
    let results = queues.delete(&name("q"), receipts.clone()).await.unwrap();
    let invalid = |place: usize| Err(Error::ReceiptInvalid(name("q"), receipts[place].clone()));
    assert_eq!(results, [Ok(()), invalid(1), Ok(()), invalid(3)]);
    assert_eq!(asked(&stub), ["deletemessagebatch"; 3]);
}

#[tokio::test]
async fn a_receipt_that_has_expired_names_its_message() {
    let words = "Value h for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.";
    let failed = json!({ "Id": "0", "Code": "InvalidParameterValue", "SenderFault": true, "Message": words });
    // In a batch it is the result of the entry, and some servers refuse the call.
    let entry = Answer::ok(&json!({ "Successful": [], "Failed": [failed] }).to_string());
    for answer in [entry, Answer::failure(400, "InvalidParameterValue", words)] {
        let (queues, stub) = queues(move |_, _| answer.clone()).await;
        let results = queues.delete(&name("q.fifo"), vec![Receipt::new("m0/h").unwrap()]).await.unwrap();
        assert!(matches!(&results[0], Err(Error::ReceiptExpired(id)) if id.as_str() == "m0"), "{results:?}");
        assert_eq!(asked(&stub).len(), 1);
    }
}

#[tokio::test]
async fn hiding_says_what_is_wrong_with_each_message() {
    let (queues, stub) = queues(|_, body| {
        assert_eq!(body["Entries"][0]["VisibilityTimeout"], 2);
        assert_eq!(body["Entries"][0]["ReceiptHandle"], "h0/with/slashes");
        verdicts(&body, &[("1", "AWS.SimpleQueueService.MessageNotInflight", true)])
    })
    .await;
    let change = |receipt: &str, millis| (Receipt::new(receipt).unwrap(), Duration::from_millis(millis));
    // A time between two seconds is the longer one.
    let changes = vec![change("m0/h0/with/slashes", 1_001), change("m1/h1", 0), change("m2/h2", 43_200_001)];
    let results = queues.change_visibility(&name("q"), changes).await.unwrap();
    assert_eq!(results[0], Ok(()));
    assert!(matches!(&results[1], Err(Error::NotInFlight(id)) if id.as_str() == "m1"), "{results:?}");
    assert!(matches!(&results[2], Err(Error::Invalid(_))), "{results:?}");
    assert_eq!(asked(&stub).len(), 1);
}

#[tokio::test]
async fn a_second_purge_within_a_minute_says_when_to_come_back() {
    for code in ["PurgeQueueInProgress", "AWS.SimpleQueueService.PurgeQueueInProgress"] {
        let (queues, stub) = queues(move |_, _| Answer::failure(403, code, "once in 60 seconds")).await;
        let error = queues.purge(&name("q")).await.unwrap_err();
        let minute = Duration::from_secs(60);
        assert!(
            matches!(&error, Error::SlowDown { retry_after, what } if *retry_after == minute && what.contains("purged")),
            "{error:?}"
        );
        assert_eq!(asked(&stub), ["purgequeue"]);
    }
}

#[tokio::test]
async fn a_purge_in_doubt_that_runs_is_the_one_that_was_asked_for() {
    let mut purges = 0;
    let (queues, stub) = queues(move |_, _| {
        purges += 1;
        match purges {
            1 => Answer::Closed,
            _ => Answer::failure(403, "PurgeQueueInProgress", "once in 60 seconds"),
        }
    })
    .await;
    queues.purge(&name("q")).await.unwrap();
    assert_eq!(asked(&stub), ["purgequeue", "purgequeue"]);
}

#[tokio::test]
async fn a_receive_asks_for_all_and_reads_all() {
    let mut receives = 0;
    let (queues, stub) = queues(move |_, body| {
        receives += 1;
        assert_eq!(body["ReceiveRequestAttemptId"], "attempt");
        assert_eq!(body["MaxNumberOfMessages"], 10);
        // A second attempt waits for what is left only.
        assert!(body["WaitTimeSeconds"].as_u64().is_some_and(|wait| (1..=20).contains(&wait)), "{body}");
        assert_eq!(body["VisibilityTimeout"], 8);
        assert_eq!(body["MessageSystemAttributeNames"], json!(["All"]));
        assert_eq!(body["MessageAttributeNames"], json!(["All"]));
        if receives == 1 {
            return Answer::Cut;
        }
        Answer::ok(
            &json!({ "Messages": [{
                "MessageId": "m", "ReceiptHandle": "a/b", "Body": "anabranch:base64:AP8=",
                "MessageAttributes": { "n": { "DataType": "Number", "StringValue": "42" } },
                "Attributes": {
                    "ApproximateReceiveCount": "3", "SentTimestamp": "1700000000123",
                    "ApproximateFirstReceiveTimestamp": "1700000000456", "SequenceNumber": "00018849496460467696128",
                    "MessageGroupId": "g", "MessageDeduplicationId": "d",
                    "DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:source.fifo",
                },
            }] })
            .to_string(),
        )
    })
    .await;
    let options = ReceiveOptions {
        wait: Some(limits::RECEIVE_WAIT_MAX),
        visibility: Some(Duration::from_millis(7_500)),
        attempt: Some("attempt".to_string()),
        ..ReceiveOptions::all()
    };
    let message = queues.receive(&name("q.fifo"), options).await.unwrap().swap_remove(0);
    assert_eq!(message.body.as_ref(), [0, 255]);
    assert_eq!(message.attributes["n"].kind, "Number");
    assert_eq!(message.receive_count, 3);
    let times = [message.sent_at, message.first_received_at].map(|time| time.as_millis());
    assert_eq!(times, [1_700_000_000_123, 1_700_000_000_456]);
    assert_eq!(message.sequence.and_then(|number| number.as_u128()), Some(18_849_496_460_467_696_128));
    assert_eq!((message.group.as_deref(), message.deduplication.as_deref()), (Some("g"), Some("d")));
    assert_eq!(message.dead_letter_source, Some(name("source.fifo")));
    assert_eq!(message.receipt.as_str(), "m/a/b");
    assert_eq!(asked(&stub).len(), 2, "an answer that was cut is asked for again");
}

#[tokio::test]
async fn a_wait_of_the_queue_is_left_to_the_queue() {
    let (queues, _stub) = queues(|_, body| {
        assert!(body.get("WaitTimeSeconds").is_none() && body.get("VisibilityTimeout").is_none(), "{body}");
        Answer::ok("{}")
    })
    .await;
    assert_eq!(queues.receive(&name("q"), ReceiveOptions::default()).await.unwrap(), Vec::new());
}

#[tokio::test]
async fn too_many_messages_in_flight_are_told_apart() {
    let (queues, _stub) = queues(|_, _| Answer::failure(403, "OverLimit", "too many")).await;
    let error = queues.receive(&name("q"), ReceiveOptions::all()).await.unwrap_err();
    assert!(matches!(&error, Error::InFlightLimit { .. }), "{error:?}");
}

const ATTRIBUTES: &str = r#"{"Attributes":{"QueueArn":"arn:aws:sqs:us-east-1:123456789012:q"}}"#;

/// A server on which `q` does not exist until it is made.
async fn without_the_queue(script: impl FnMut(&str, Value) -> Answer + Send + 'static) -> (Queues, Stub) {
    let mut script = script;
    let stub = Stub::start(move |operation, body| match operation {
        "getqueueurl" => Answer::failure(400, "QueueDoesNotExist", "no"),
        "getqueueattributes" => Answer::ok(ATTRIBUTES),
        _ => script(operation, serde_json::from_str(body).expect("a body in JSON")),
    })
    .await;
    (Queues::new(&connect(&stub.endpoint()).await), stub)
}

#[tokio::test]
async fn a_name_that_is_not_free_yet_is_waited_for() {
    let mut made = 0;
    let (queues, stub) = without_the_queue(move |_, _| {
        made += 1;
        match made {
            1 => Answer::failure(400, "AWS.SimpleQueueService.QueueDeletedRecently", "wait 60 seconds"),
            // Made, and nobody heard of it: the same again gives the same queue.
            2 => Answer::Closed,
            _ => Answer::ok(ADDRESS),
        }
    })
    .await;
    queues.create_queue(&name("q"), QueueOptions::default()).await.unwrap();
    let all = ["getqueueurl", "createqueue", "createqueue", "createqueue", "getqueueattributes"];
    assert_eq!(stub.asked(), all);
}

#[tokio::test]
async fn a_queue_that_exists_is_not_made_again() {
    let (queues, stub) = queues(|_, _| Answer::ok(ADDRESS)).await;
    let error = queues.create_queue(&name("q"), QueueOptions::default()).await.unwrap_err();
    assert_eq!(error, Error::QueueExists(name("q")));
    assert_eq!(stub.asked(), ["getqueueurl"]);
    let raced = |_: &str, _| Answer::failure(400, "QueueNameExists", "with other attributes");
    let (queues, _stub) = without_the_queue(raced).await;
    let error = queues.create_queue(&name("q"), QueueOptions::default()).await.unwrap_err();
    assert_eq!(error, Error::QueueExists(name("q")));
}

#[tokio::test]
async fn sources_of_dead_letters_are_named_in_full() {
    let (queues, stub) = without_the_queue(|operation, body| {
        let allowed = &body["Attributes"]["RedriveAllowPolicy"];
        let allowed: Value = serde_json::from_str(allowed.as_str().expect("a policy")).unwrap();
        match operation {
            "createqueue" => {
                assert_eq!(allowed["redrivePermission"], "denyAll");
                Answer::ok(ADDRESS)
            }
            _ => {
                assert_eq!(allowed["redrivePermission"], "byQueue");
                assert_eq!(allowed["sourceQueueArns"], json!(["arn:aws:sqs:us-east-1:123456789012:source"]));
                Answer::ok("{}")
            }
        }
    })
    .await;
    let redrive_allow = RedriveAllow::Queues(vec![name("source")]);
    queues.create_queue(&name("q"), QueueOptions { redrive_allow, ..QueueOptions::default() }).await.unwrap();
    assert_eq!(asked(&stub), ["createqueue", "getqueueattributes", "setqueueattributes"]);
}

#[tokio::test]
async fn listings_are_read_to_their_end_and_put_in_order() {
    let url = |name: &str| format!("https://sqs.us-east-1.amazonaws.com/1/{name}");
    let (queues, stub) = queues(move |operation, body| match (operation, body["NextToken"].as_str()) {
        ("getqueueattributes", _) => Answer::ok(ATTRIBUTES),
        (_, None) => {
            Answer::ok(&json!({ "QueueUrls": [url("c"), url("a")], "NextToken": "two" }).to_string())
        }
        (_, Some("two")) => Answer::ok(&json!({ "QueueUrls": [], "NextToken": "three" }).to_string()),
        (_, Some(_)) => Answer::ok(&json!({ "QueueUrls": [url("b.fifo")] }).to_string()),
    })
    .await;
    let names = |entries: Vec<QueueSummary>| -> Vec<String> {
        entries.into_iter().map(|queue| queue.name.to_string()).collect()
    };
    let page = queues.queues(None, 2, "").await.unwrap();
    assert_eq!((names(page.entries), page.more), (vec!["a".to_string(), "b.fifo".to_string()], true));
    let page = queues.queues(Some(&name("b.fifo")), 2, "").await.unwrap();
    assert_eq!((names(page.entries), page.more), (vec!["c".to_string()], false));
    let lists = asked(&stub).into_iter().filter(|operation| operation == "listqueues").count();
    assert_eq!(lists, 6);
}

#[tokio::test]
async fn moves_are_started_listed_and_cancelled() {
    let (queues, _stub) = queues(|operation, body| {
        let arn = "arn:aws:sqs:us-east-1:123456789012:q";
        match operation {
            "getqueueattributes" => Answer::ok(ATTRIBUTES),
            "startmessagemovetask" => {
                assert_eq!(body["SourceArn"], arn);
                assert_eq!(body["MaxNumberOfMessagesPerSecond"], 5);
                Answer::ok(r#"{"TaskHandle":"handle=="}"#)
            }
            "listmessagemovetasks" => Answer::ok(
                &json!({ "Results": [
                    { "TaskHandle": "handle==", "Status": "RUNNING", "SourceArn": arn, "StartedTimestamp": 3_000,
                      "ApproximateNumberOfMessagesMoved": 2, "ApproximateNumberOfMessagesToMove": 9,
                      "MaxNumberOfMessagesPerSecond": 5 },
                    { "Status": "FAILED", "FailureReason": "CouldNotDetermineMessageSource", "SourceArn": arn,
                      "StartedTimestamp": 2_000 },
                    { "Status": "COMPLETED", "SourceArn": arn, "DestinationArn": "arn:aws:sqs:us-east-1:1:to",
                      "StartedTimestamp": 1_000 },
                ] })
                .to_string(),
            ),
            _ => {
                assert_eq!(body["TaskHandle"], "handle==");
                Answer::ok(r#"{"ApproximateNumberOfMessagesMoved":4}"#)
            }
        }
    })
    .await;
    let id = queues.start_move(&name("q"), None, Some(5)).await.unwrap();
    let moves = queues.moves(&name("q")).await.unwrap();
    let failed = MoveStatus::Failed("CouldNotDetermineMessageSource".to_string());
    let statuses: Vec<_> = moves.iter().map(|moving| moving.status.clone()).collect();
    assert_eq!(statuses, [MoveStatus::Running, failed, MoveStatus::Completed]);
    assert_eq!((&moves[0].id, moves[0].moved, moves[0].to_move), (&id, 2, 9));
    assert_eq!(moves[2].to, Some(name("to")));
    assert_eq!(queues.cancel_move(&id).await.unwrap(), 4);
}

#[tokio::test]
async fn what_is_wrong_with_a_move_is_told_apart() {
    let refusal = |code: &'static str, words: &'static str| {
        queues(move |operation, _| match operation {
            "getqueueattributes" => Answer::ok(ATTRIBUTES),
            _ => Answer::failure(400, code, words),
        })
    };
    let running = "There is already a task running. Only one active task is allowed for a source queue arn.";
    let (queues, _stub) = refusal("AWS.SimpleQueueService.UnsupportedOperation", running).await;
    let error = queues.start_move(&name("q"), None, None).await.unwrap_err();
    assert_eq!(error, Error::MoveRunning(name("q")));

    let (queues, _stub) =
        refusal("InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue.").await;
    let error = queues.start_move(&name("q"), None, None).await.unwrap_err();
    assert!(matches!(&error, Error::Invalid(text) if text.contains("Dead Letter Queue")), "{error:?}");

    let id = MoveId::new("ended-1").unwrap();
    for code in ["ResourceNotFoundException", "AWS.SimpleQueueService.UnsupportedOperation"] {
        let (queues, _stub) = refusal(code, "Only active tasks can be cancelled").await;
        assert_eq!(queues.cancel_move(&id).await.unwrap_err(), Error::MoveNotRunning(id.clone()));
    }

    let (queues, _stub) = refusal("InvalidAction", "Unknown action").await;
    let error = queues.moves(&name("q")).await.unwrap_err();
    assert!(
        matches!(&error, Error::Misconfigured(text) if text.contains("ListMessageMoveTasks")),
        "{error:?}"
    );
}

#[tokio::test]
async fn a_move_in_doubt_that_runs_is_the_one_that_was_asked_for() {
    let (queues, stub) = queues(|operation, _| match operation {
        "getqueueattributes" => Answer::ok(ATTRIBUTES),
        "startmessagemovetask" => Answer::Closed,
        _ => Answer::ok(
            &json!({ "Results": [{ "TaskHandle": "h", "Status": "RUNNING", "StartedTimestamp": i64::MAX }] })
                .to_string(),
        ),
    })
    .await;
    assert_eq!(queues.start_move(&name("q"), None, None).await.unwrap().as_str(), "h");
    assert_eq!(asked(&stub), ["getqueueattributes", "startmessagemovetask", "listmessagemovetasks"]);
}

/// As many receives of one process as wait at the same time.
const WAITING_MAX: usize = 256;

#[tokio::test]
async fn receives_that_are_dropped_make_room() {
    let receives = Arc::new(AtomicUsize::new(0));
    let seen = receives.clone();
    let (queues, _stub) = queues(move |operation, body| match operation {
        "receivemessage" if seen.fetch_add(1, Ordering::SeqCst) < WAITING_MAX => Answer::Never,
        "receivemessage" => Answer::ok("{}"),
        _ => verdicts(&body, &[]),
    })
    .await;
    let waiting = ReceiveOptions { wait: Some(limits::RECEIVE_WAIT_MAX), ..ReceiveOptions::all() };
    let tasks: Vec<_> = (0..WAITING_MAX)
        .map(|_| {
            let (queues, waiting) = (queues.clone(), waiting.clone());
            tokio::spawn(async move { queues.receive(&name("q"), waiting).await })
        })
        .collect();
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    while receives.load(Ordering::SeqCst) < WAITING_MAX {
        tick.tick().await;
    }
    // Those who wait do not hold up those who send.
    queues.send(&name("q"), messages(1)).await.unwrap();
    for task in &tasks {
        task.abort();
    }
    for task in tasks {
        assert!(task.await.expect_err("nothing was answered").is_cancelled());
    }
    let at_once = ReceiveOptions::all();
    assert_eq!(queues.receive(&name("q"), at_once).await.unwrap(), Vec::new());
}
