//! Every parser of the protocols under requests that somebody has damaged.
//!
//! The corpus holds a right request for every operation there is. Each case takes one, damages it, and sends it to the
//! protocols with an engine behind them. Whatever it was: nobody panics, the answer comes soon and in the language of the
//! call, and it blames the server only if the server is at fault. With keys configured nothing gets in, because no case is
//! signed.
//!
//! `FUZZ_CASES` says how many cases there are at most, `FUZZ_SECONDS` for how long, `FUZZ_SEED` which. A case that fails prints itself and its number:
//! `FUZZ_SEED=7 FUZZ_CASE=1234 cargo nextest run -p anabranch-wire --test fuzz` shows it alone.

#[path = "../harness/mod.rs"]
mod harness;

mod answer;
mod chance;
mod memory;
mod mutate;

mod corpus;
mod made;
mod sample;

mod around;
mod queues;
mod rest;
mod streams;
mod tables;

use std::alloc::System;
use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use anabranch_model::Clock as _;
use anabranch_wire::{Keys, Wire};
use cap::Cap;
use chance::Chance;
use corpus::Corpus;
use futures_util::FutureExt as _;
use harness::Harness;
use http_body_util::{BodyExt as _, Full};
use sample::Sample;

/// Counts what is taken, and lets nobody take more than it is told to.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Most memory that a request may take for each of its bytes. Twice its length is reserved for it before it comes; lists grow
/// by doubling, and while one moves there are two of it.
const MEMORY_PER_BYTE_MAX: usize = 32;
/// Most memory that a request may take beside that, and everybody else meanwhile.
const MEMORY_FREE: usize = 2 << 20;

/// Cases unless somebody says otherwise: a few seconds.
const CASES_DEFAULT: u64 = 4_000;
/// Seconds after which no further case is begun unless somebody says otherwise.
const SECONDS_DEFAULT: u64 = 120;
/// The longest that an answer may take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")))
}

/// What came back: status, content type, body.
struct Answered {
    status: u16,
    content_type: String,
    body: Vec<u8>,
}

/// Sends a request and waits for the whole answer. None if it is no request at all, which a port would refuse.
async fn send(wire: &Wire, sample: &Sample) -> Option<Result<Answered, String>> {
    let mut request = http::Request::builder().method(sample.method.as_str()).uri(&sample.uri);
    for (name, value) in &sample.headers {
        request = request.header(name, value.as_slice());
    }
    let request = request.body(Full::new(sample.body.clone().into())).ok()?;
    let answering = async {
        let (head, body) = wire.handle(request).await.into_parts();
        let body = body.collect().await.map_err(|error| format!("the answer broke off: {error}"))?;
        let content_type = head.headers.get("content-type").map_or(&b""[..], |value| value.as_bytes());
        Ok(Answered {
            status: head.status.as_u16(),
            content_type: String::from_utf8_lossy(content_type).into_owned(),
            body: body.to_bytes().to_vec(),
        })
    };
    let guarded = AssertUnwindSafe(tokio::time::timeout(PATIENCE, answering)).catch_unwind();
    Some(match guarded.await {
        Ok(Ok(answered)) => answered,
        Ok(Err(_)) => Err(format!("there is no answer after {PATIENCE:?}")),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(format!("it panicked: {}", words.unwrap_or_default()))
        }
    })
}

#[tokio::test]
async fn every_operation_is_in_the_corpus_and_answered() {
    let harness = Harness::start().await;
    let wire = harness.stopped_wire(&Keys::default());
    let corpus = Corpus::make(&harness, &wire).await;
    let mut missing: BTreeSet<(&str, &str)> = BTreeSet::new();
    for (service, operations) in anabranch_wire::operations() {
        missing.extend(operations.iter().map(|operation| (service, *operation)));
    }
    for sample in &corpus.samples {
        missing.remove(&(sample.service, sample.operation));
        let answered = send(&wire, sample).await.expect("a request").expect("an answer");
        let text = String::from_utf8_lossy(&answered.body).into_owned();
        assert!(answered.status < 500, "{sample}\n{} {text}", answered.status);
        for unknown in ["UnknownOperation", "InvalidAction", "SerializationException", "MalformedXML"] {
            assert!(!text.contains(unknown), "{sample}\n{text}");
        }
    }
    assert!(missing.is_empty(), "not in the corpus: {missing:?}");
}

#[tokio::test]
async fn long_requests_take_memory_in_proportion_to_their_length() {
    let harness = Harness::start().await;
    let corpus = Corpus::make(&harness, &harness.stopped_wire(&Keys::default())).await;
    // Whoever has nothing of what the requests are about stores nothing for them, and takes no memory for that.
    let other = Harness::start().await;
    let wire = other.stopped_wire(&Keys::default());
    let mut count = 0;
    for long in corpus.samples.iter().flat_map(memory::grown) {
        count += 1;
        // Whoever takes more ends the process: this line says for what.
        println!("{} {}: {} bytes, {}", long.service, long.operation, long.body.len(), ends(&long));
        let bytes_max = ALLOCATOR.allocated() + MEMORY_PER_BYTE_MAX * long.body.len() + MEMORY_FREE;
        ALLOCATOR.set_limit(bytes_max).expect("less is taken");
        let answered = send(&wire, &long).await.expect("a request").expect("an answer");
        assert!(answered.status < 500, "{}", String::from_utf8_lossy(&answered.body));
        drop(answered);
        ALLOCATOR.set_limit(usize::MAX).expect("there is no limit");
    }
    println!("{count} long requests were answered");
    assert!(count > 500, "most requests have a list or a map, and there are {count}");
}

/// The ends of a body.
fn ends(sample: &Sample) -> String {
    let (first, last) = (sample.body.len().min(200), sample.body.len().saturating_sub(40));
    format!("{} … {}", sample.body[..first].escape_ascii(), sample.body[last..].escape_ascii())
}

#[tokio::test]
async fn damaged_requests_are_answered_in_kind() {
    let harness = Harness::start().await;
    let open = harness.stopped_wire(&Keys::default());
    let closed = harness.stopped_wire(&Keys::new([("AKIDEXAMPLE".to_owned(), "secret".to_owned())]));
    let corpus = Corpus::make(&harness, &open).await;
    let seed = number("FUZZ_SEED").unwrap_or(1);
    let cases = match number("FUZZ_CASE") {
        Some(case) => case..case + 1,
        None => 0..number("FUZZ_CASES").unwrap_or(CASES_DEFAULT),
    };
    let end =
        harness.clock.elapsed() + Duration::from_secs(number("FUZZ_SECONDS").unwrap_or(SECONDS_DEFAULT));
    let mut answered = 0;
    for case in cases.take_while(|_| harness.clock.elapsed() < end) {
        let sample = mutate::damaged(&corpus, &mut Chance::new(seed, case));
        let failed = |why: String| {
            panic!("FUZZ_SEED={seed} FUZZ_CASE={case}: {why}\n{sample}");
        };
        match send(&open, &sample).await {
            Some(Ok(answer)) => {
                answered += 1;
                answer::check(&sample, &answer).unwrap_or_else(&failed);
            }
            Some(Err(why)) => failed(why),
            None => continue,
        }
        match send(&closed, &sample).await {
            Some(Ok(answer)) if answer.status >= 400 => {
                answer::check(&sample, &answer).unwrap_or_else(&failed);
            }
            Some(Ok(answer)) => failed(format!("nobody signed it, and the answer is {}", answer.status)),
            Some(Err(why)) => failed(why),
            None => {}
        }
    }
    println!("{answered} damaged requests were answered");
    assert!(answered > 0, "no case was a request");
}
