//! What the edge of queues lets in, and what its refusals say.

use std::collections::BTreeMap;
use std::time::Duration;

use anabranch_model::queue::{
    Attribute, AttributeValue, DeduplicationScope, MessageId, NewMessage, QueueName, QueueOptions, Receipt,
    ReceiptParts, ReceiveOptions, RedriveAllow, RedrivePolicy, ThroughputLimit, check_batch, check_extension,
    check_rate, check_send,
};
use anabranch_model::{Error, Timestamp, limits};
use proptest::prelude::*;

fn refusal<T: std::fmt::Debug>(result: anabranch_model::Result<T>) -> String {
    match result {
        Err(Error::Invalid(text)) => text,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn name(text: &str) -> QueueName {
    QueueName::new(text).expect("allowed")
}

#[test]
fn names_are_measured_with_their_ending() {
    for allowed in ["a", "Orders_2-x", "a.fifo", &"x".repeat(80), &format!("{}.fifo", "x".repeat(75))] {
        assert_eq!(name(allowed).as_str(), allowed);
        assert_eq!(name(allowed).is_fifo(), allowed.ends_with(".fifo"));
    }
    for refused in ["", ".fifo", "a.b", "a.fifo.fifo", "a b", "ä", &"x".repeat(81)] {
        refusal(QueueName::new(refused));
    }
    let text = refusal(QueueName::new(&format!("{}.fifo", "x".repeat(76))));
    assert!(text.contains("has 81 characters") && text.contains("1 to 80"), "{text}");
}

#[test]
fn options_are_measured() {
    let (plain, fifo) = (name("plain"), name("ordered.fifo"));
    QueueOptions::default().check(&plain).expect("the default");
    QueueOptions::fifo().check(&fifo).expect("the default of the other kind");
    let text = refusal(QueueOptions::default().check(&fifo));
    assert!(text.contains("`ordered.fifo` cannot have `fifo` false"), "{text}");
    refusal(QueueOptions::fifo().check(&plain));
    let second = Duration::from_secs(1);
    let base = QueueOptions::default;
    for bad in [
        QueueOptions { delay: limits::MESSAGE_DELAY_MAX + second, ..base() },
        QueueOptions { visibility: limits::VISIBILITY_MAX + second, ..base() },
        QueueOptions { retention: limits::MESSAGE_RETENTION_MIN - second, ..base() },
        QueueOptions { retention: limits::MESSAGE_RETENTION_MAX + second, ..base() },
        QueueOptions { receive_wait: limits::RECEIVE_WAIT_MAX + second, ..base() },
        QueueOptions { message_bytes_max: 1_023, ..base() },
        QueueOptions { message_bytes_max: limits::MESSAGE_BYTES_MAX + 1, ..base() },
        QueueOptions { redrive_allow: RedriveAllow::Queues(Vec::new()), ..base() },
        QueueOptions { redrive_allow: RedriveAllow::Queues(vec![fifo.clone(); 11]), ..base() },
        QueueOptions { deduplicates_content: true, ..base() },
        QueueOptions { deduplication_scope: DeduplicationScope::Group, ..base() },
        QueueOptions { throughput_limit: ThroughputLimit::Group, ..base() },
    ] {
        refusal(bad.check(&plain));
    }
    for (target, receives_max) in [("dead.fifo", 3), ("dead", 0), ("dead", 1_001)] {
        let redrive = Some(RedrivePolicy { dead_letters: name(target), receives_max });
        refusal(QueueOptions { redrive, ..base() }.check(&plain));
    }
    refusal(QueueOptions { throughput_limit: ThroughputLimit::Group, ..QueueOptions::fifo() }.check(&fifo));
}

#[test]
fn messages_are_measured_with_their_attributes() {
    let options = QueueOptions::default();
    let text = |value: &str| Attribute { kind: "String".into(), value: AttributeValue::Text(value.into()) };
    let with = |attributes: Vec<(String, Attribute)>, bytes: usize| NewMessage {
        attributes: attributes.into_iter().collect(),
        ..NewMessage::new(vec![b'x'; bytes])
    };
    let one = || vec![("name".to_string(), text("v"))];
    with(one(), limits::MESSAGE_BYTES_MAX - 11).check(&options).expect("at the limit");
    let message = refusal(with(one(), limits::MESSAGE_BYTES_MAX - 10).check(&options));
    assert!(message.contains("1048577") && message.contains("1048576"), "{message}");
    refusal(NewMessage::new("").check(&options));
    let many = (0..11).map(|number| (format!("a{number}"), text("v"))).collect();
    refusal(with(many, 1).check(&options));
    for bad in ["", ".a", "a.", "a..b", "a b", &"x".repeat(257)] {
        refusal(with(vec![(bad.to_string(), text("v"))], 1).check(&options));
    }
    refusal(with(vec![("a".to_string(), text(""))], 1).check(&options));
    assert_eq!(NewMessage::new("abc").attributes, BTreeMap::new());
}

#[test]
fn a_trace_is_bounded_and_not_measured() {
    let options = QueueOptions::default();
    let traced = |chars: usize| NewMessage {
        trace: Some("ä".repeat(chars)),
        ..NewMessage::new(vec![b'x'; limits::MESSAGE_BYTES_MAX])
    };
    traced(1).check(&options).expect("one character");
    traced(limits::TRACE_CHARS_MAX).check(&options).expect("at the limit, beside the largest body");
    assert_eq!(traced(7).size(), limits::MESSAGE_BYTES_MAX);
    refusal(traced(0).check(&options));
    refusal(traced(limits::TRACE_CHARS_MAX + 1).check(&options));
}

#[test]
fn each_kind_of_queue_takes_its_own_messages() {
    let (plain, fifo) = (QueueOptions::default(), QueueOptions::fifo());
    let content = QueueOptions { deduplicates_content: true, ..QueueOptions::fifo() };
    let body = || NewMessage::new("body");
    body().in_group("g").known_as("d").check(&fifo).expect("complete");
    body().in_group("g").check(&content).expect("recognised by its body");
    body().in_group("g").after(limits::MESSAGE_DELAY_MAX).check(&plain).expect("a group does not hurt");
    assert!(refusal(body().known_as("d").check(&fifo)).contains("no group"));
    assert!(refusal(body().in_group("g").check(&fifo)).contains("no deduplication id"));
    assert!(refusal(body().in_group("g").after(Duration::ZERO).check(&content)).contains("delay"));
    refusal(body().known_as("d").check(&plain));
    refusal(body().after(limits::MESSAGE_DELAY_MAX + Duration::from_millis(1)).check(&plain));
    refusal(body().in_group(&"g".repeat(129)).check(&plain));
    refusal(body().in_group("a b").check(&plain));
}

#[test]
fn content_is_recognised_by_its_digest() {
    let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(NewMessage::new("abc").deduplication_id(), digest);
    assert_eq!(NewMessage::new("abc").known_as("mine").deduplication_id(), "mine");
}

#[test]
fn calls_are_measured_as_a_whole() {
    check_batch(10).expect("at the limit");
    refusal(check_batch(0));
    refusal(check_batch(11));
    let half = NewMessage::new(vec![0; limits::MESSAGE_BYTES_MAX / 2]);
    check_send(&[half.clone(), half.clone()]).expect("at the limit");
    refusal(check_send(&[half.clone(), half, NewMessage::new("x")]));
    for bad in [
        ReceiveOptions { messages_max: 0, ..ReceiveOptions::default() },
        ReceiveOptions { messages_max: 11, ..ReceiveOptions::default() },
        ReceiveOptions { wait: Some(Duration::from_secs(21)), ..ReceiveOptions::default() },
        ReceiveOptions { visibility: Some(Duration::from_secs(43_201)), ..ReceiveOptions::default() },
        ReceiveOptions { attempt: Some("a".into()), ..ReceiveOptions::default() },
    ] {
        refusal(bad.check(&QueueOptions::default()));
    }
    refusal(check_rate(Some(0)));
    refusal(check_rate(Some(501)));
    check_rate(None).expect("as fast as it goes");
}

#[test]
fn hiding_ends_twelve_hours_after_the_receive() {
    let received = Timestamp::from_millis(1_000_000);
    let hour = Duration::from_secs(3_600);
    check_extension(received, received, 12 * hour).expect("at the limit");
    check_extension(received, received.plus(hour), 11 * hour).expect("at the limit, later");
    refusal(check_extension(received, received.plus(hour), 11 * hour + Duration::from_millis(1)));
}

proptest! {
    #[test]
    fn receipts_have_one_spelling(queue in any::<u64>(), receive in any::<u64>(), id in "[!-~]{1,100}") {
        let parts = ReceiptParts { queue, receive, message: MessageId::new(&id).expect("visible") };
        let receipt = Receipt::from(&parts);
        prop_assert_eq!(receipt.parts(), Some(parts));
        prop_assert_eq!(&Receipt::new(receipt.as_str()).expect("allowed"), &receipt);
        let padded = Receipt::new(&format!("0{receipt}")).expect("allowed");
        prop_assert_eq!(padded.parts(), None);
    }

    #[test]
    fn no_text_makes_parsing_fail(text in any::<String>()) {
        let _ = QueueName::new(&text);
        if let Ok(receipt) = Receipt::new(&text) {
            let _ = receipt.parts();
        }
    }
}
