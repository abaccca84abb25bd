//! Every metric that the documentation names is there when a consumer runs.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::sync::Arc;

use anabranch_consumer::{Consumer, Delivery, Outcome, StreamChoice, process_fn};
use anabranch_model::{Dice, TableName, limits};
use parking_lot::Mutex;
use world::counts::counted;
use world::faulty::{Audit, Faulty, Weather};
use world::{World, pause, run, seconds};

mod world;

const DOCUMENT: &str = include_str!("../../docs/consumer.md");
const PREFIX: &str = "anabranch_consumer_";

/// The names in a text.
fn promised(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let names = text.match_indices(PREFIX).map(|(at, _)| {
        let rest = &text[at..];
        let end = rest.find(|letter| !is_part(letter)).unwrap_or(rest.len());
        rest[..end].to_owned()
    });
    names.collect()
}

#[test]
fn what_the_document_names_is_counted() {
    let promised = promised(DOCUMENT);
    assert!(promised.len() >= 6, "{promised:?}");
    counted(async |counts| {
        let world = World::new(1).await;
        world.put(0..20).await;
        let weather = Arc::new(Mutex::new(Weather::default()));
        let tables = Arc::new(Faulty {
            inner: world.tables.clone(),
            leases: TableName::new("app-1").unwrap(),
            worker: "one".to_owned(),
            weather: weather.clone(),
            dice: Arc::new(Dice::new(3)),
            audit: Audit::new(world.clock.clone(), seconds(10)),
        });
        // An acknowledgement is kept for ever the first time.
        let (seen, kept) = (world.seen.clone(), Arc::new(Mutex::new(Vec::new())));
        let process = process_fn(move |delivery: Delivery| {
            let outcomes = delivery.records.iter().map(|record| {
                let is_lost = record.data == "0005" && kept.lock().is_empty();
                if is_lost {
                    kept.lock().push(record.defer());
                }
                if is_lost { Outcome::Deferred } else { Outcome::Done }
            });
            let outcomes: Vec<_> = outcomes.collect();
            seen.note("one", &delivery);
            async move { outcomes }
        });
        let choice = [StreamChoice::only(world.stream.clone())];
        let (source, clock) = (Arc::new(world.streams.clone()), world.clock.clone());
        let builder = Consumer::builder("app-1", choice, source, tables, clock, process)
            .worker("one")
            .seed(9)
            .checkpoint_every(seconds(1))
            .stall_max(seconds(30));
        let one = run(builder);
        pause(seconds(60)).await;
        weather.lock().panics = 100;
        pause(seconds(5)).await;
        *weather.lock() = Weather::default();
        pause(seconds(10)).await;
        one.stop().await;
        world.put(20..30).await;
        world.streams.advance(limits::RETENTION_MIN + seconds(60));
        let two = run(world.builder("two"));
        pause(seconds(20)).await;
        two.stop().await;
        let there: BTreeSet<_> = counts.names().into_iter().collect();
        let missing: Vec<_> = promised.difference(&there).collect();
        assert!(missing.is_empty(), "{missing:?} of {there:?}");
    });
}
