//! Telemetry on the real engine, in one process: a stream that grows with its load and shrinks behind it while somebody reads,
//! and every submission that is odd in its own way.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod stage;

use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_model::QueueStore;
use anabranch_model::limits::MESSAGE_BYTES_MAX;
use anabranch_model::queue::ReceiveOptions;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};
use stage::{Stage, eventually, queue, so};
use tokio::sync::watch;

/// Submissions a second, each with four events on average and a tenth of them broken: about 450 events.
const PER_SECOND: u64 = 125;
/// With events of this size they are ten times the MiB that a shard takes in a second.
const EVENT_BYTES: usize = 23_000;
/// Times in which a test can see what takes minutes elsewhere.
const QUICK: [(&str, &str); 3] = [
    ("observation_period = 10 ", "observation_period = 2 "),
    ("entry_lifetime = 60 ", "entry_lifetime = 4 "),
    ("merge_cooldown = 300 ", "merge_cooldown = 6 "),
];
/// A stream is wide enough when nothing was refused, and next to nothing waited, for so long.
const CALM: Duration = Duration::from_secs(3);

/// A fleet at ten times a shard's limit. The stream grows until nothing is refused and nothing waits, and shrinks when the
/// fleet is gone; a consumer reads all the while.
async fn ten_times_a_shard(spite: u64) {
    let stage = Stage::new(true, spite).await;
    let (reader, bot) = (stage.reader(), stage.telemetry(&QUICK).await);
    let (stop, stopping) = watch::channel(false);
    let sending = tokio::spawn({
        let stage = stage.clone();
        async move { stage.fleet(PER_SECOND, EVENT_BYTES, stopping).await }
    });

    let mut calm = 0;
    eventually("a stream that is wide enough", async || {
        let (shards, waits) = (stage.open_shards().await, stage.waiting("submissions").await);
        let (refused, sent) = (stage.streams.refused_within(CALM), stage.numbers.load(Ordering::SeqCst));
        let is_calm = waits < PER_SECOND && refused == 0 && sent >= PER_SECOND * CALM.as_secs();
        calm = if is_calm { calm + 1 } else { 0 };
        let read = stage.audit.count();
        let state = || format!("{shards} shards, {waits} of {sent} wait, {refused} refused, {read} read");
        let decisions = stage.decisions().await;
        so(calm >= 15, || format!("{} {decisions:#?}", state()))
    })
    .await;
    stop.send_replace(true);
    sending.await.unwrap();
    stage.drained().await;

    let peak = stage.peak.load(Ordering::SeqCst);
    let decisions = stage.decisions().await;
    // Thirteen for what comes, at most four fifths full. What waited while the stream was narrow has to be gone within a
    // `merge_cooldown`, which is six seconds here and takes as many again, and some more on a busy machine.
    assert!((11..=36).contains(&peak), "wide enough, and not wider and wider: {peak} {decisions:#?}");
    eventually("a narrow stream", async || {
        let shards = stage.open_shards().await;
        so(shards <= 3, || format!("{shards} shards"))
    })
    .await;
    bot.stop().await;
    reader.stop().await;
    let repeated = stage.audit.check(&stage.valid.lock());
    assert_eq!(repeated, 0, "a refusal is certain, so nothing is ever written twice");
    assert!(stage.waiting("submissions-broken").await > 0, "a sample of the broken ones is kept");
    assert_eq!(stage.waiting("submissions-dead").await, 0);
    stage.engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_ten_times_a_shards_limit_the_stream_grows_and_shrinks_and_nothing_is_lost() {
    ten_times_a_shard(0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenth_of_all_records_is_refused_and_nothing_is_lost() {
    ten_times_a_shard(10).await;
}

fn submission(number: u64, events: &Json) -> Json {
    json!({
        "submission_id": format!("00000000-0000-4000-8000-{number:012x}"),
        "device_id": "8c0b7e3e-3a80-45a5-8a3e-8b8f6a7cbb02",
        "time_created": "2021-03-28T15:44:18.592840",
        "events": {"new_process": events, "network_connection": []},
    })
}

/// The kinds and reasons of the broken submissions that were kept.
async fn kept(stage: &Stage) -> Vec<(String, String)> {
    let options = ReceiveOptions { messages_max: 10, ..ReceiveOptions::default() };
    let mut kept = Vec::new();
    loop {
        let messages = stage.engine.receive(&queue("submissions-broken"), options.clone()).await.unwrap();
        if messages.is_empty() {
            kept.sort();
            return kept;
        }
        for message in messages {
            let letter: Json = serde_json::from_slice(&message.body).unwrap();
            let text = |name: &str| letter[name].as_str().unwrap().to_owned();
            kept.push((text("kind"), text("error")));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_submissions_are_written_and_broken_ones_are_kept_with_the_reason() {
    let stage = Stage::new(false, 0).await;
    let one = json!([{"cmdl": "whoami", "user": "john"}]);
    let mut bodies = vec![
        "this is not base64!".to_owned(),
        STANDARD.encode(b"\xff\xfe{}"),
        STANDARD.encode("{\"submission_id\":"),
        STANDARD.encode("[]"),
        String::from(" "),
    ];
    let mut wrong = submission(100, &one);
    wrong["events"]["network_connection"] = json!([{"source_ip": "1.2.3.4", "destination_ip": "::1"}]);
    bodies.push(STANDARD.encode(wrong.to_string()));
    let broken = bodies.len();
    // One that fills a message is too long for a letter, and is left out of the sample.
    bodies.push("?".repeat(MESSAGE_BYTES_MAX));

    let valid = |number, events: &Json, change: fn(&mut Json)| {
        let mut submission = submission(number, events);
        change(&mut submission);
        let id = submission["submission_id"].as_str().unwrap().to_owned();
        stage.valid.lock().insert(id, events.as_array().unwrap().len() as u64);
        STANDARD.encode(submission.to_string())
    };
    // No events, which is valid; more than an append takes; a time that has not come; and the largest that a message holds.
    bodies.push(valid(1, &json!([]), |_| {}));
    bodies.push(valid(2, &json!(vec![one[0].clone(); 10_000]), |_| {}));
    bodies.push(valid(3, &one, |submission| submission["time_created"] = json!("2199-12-31T23:59:59")));
    bodies.push(valid(4, &json!([{"cmdl": "x".repeat(780_000), "user": "john"}]), |_| {}));
    // One that comes twice.
    let twice = valid(5, &json!([one[0], one[0], one[0]]), |_| {});
    bodies.extend([twice.clone(), twice]);

    let (reader, bot) =
        (stage.reader(), stage.telemetry(&[("samples_one_in = 10", "samples_one_in = 1")]).await);
    for body in &bodies {
        stage.send(std::slice::from_ref(body)).await;
    }
    stage.drained().await;
    // Both copies are in the stream; the second may still be on its way to the reader.
    bot.stop().await;
    reader.stop().await;
    assert!(stage.audit.check(&stage.valid.lock()) <= 3, "only the three events of the copy are there twice");

    let kept = kept(&stage).await;
    let kinds: Vec<_> = kept.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["base64", "json", "json", "schema", "schema", "utf8"], "{kept:?}");
    assert_eq!(kept.len(), broken);
    let place = |reason: &str| reason.contains("/events/network_connection/0");
    assert!(kept.iter().any(|(kind, reason)| kind == "schema" && place(reason)), "{kept:?}");
    assert_eq!(stage.waiting("submissions-dead").await, 0);
    stage.engine.close().await.unwrap();
}
