//! A stream that takes seconds to split or merge a shard, refuses a change now and then, and is scaled by two bots at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::harness::bot::Bot;
use crate::harness::run;
use crate::harness::telemetry::{LOOKS, Place, complete, flow_with};
use crate::on;
use crate::peer::Peer;
use crate::peer::proxy::Fault::{self, *};
use crate::peer::proxy::Proxy;
use crate::peer::wire::{Answer, Request};

/// How long a change takes: several looks of a scaler.
const CHANGE: Duration = Duration::from_millis(2_500);
/// The fewest and the most shards, and how many there are at first.
const SHARDS: std::ops::RangeInclusive<usize> = 2..=5;
/// What goes wrong with a change.
const OF_CHANGES: &[Fault] = &[Busy, Throttle, Drop, Refuse, Fail];

/// What became of the changes that the stream was asked for.
struct Changes {
    open: AtomicUsize,
    /// How many shards were open after each change.
    counts: Mutex<Vec<usize>>,
    /// Changes that were refused because another was under way.
    early: AtomicUsize,
}

impl Changes {
    fn note(&self, request: &Request, answer: &Answer) {
        let more = match request.operation.as_str() {
            "SplitShard" => true,
            "MergeShards" => false,
            _ => return,
        };
        if String::from_utf8_lossy(&answer.body()).contains("ResourceInUse") {
            self.early.fetch_add(1, Ordering::SeqCst);
        }
        if answer.is_success() {
            let open = match more {
                true => self.open.fetch_add(1, Ordering::SeqCst) + 1,
                false => self.open.fetch_sub(1, Ordering::SeqCst) - 1,
            };
            self.counts.lock().expect("the counts").push(open);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_scalers_change_a_slow_stream_one_step_at_a_time_and_within_its_bounds() {
    let (moto, mock) = (Peer::moto().await, Peer::kinesis_mock_changing(CHANGE).await);
    let changes = Arc::new(Changes {
        open: AtomicUsize::new(*SHARDS.start()),
        counts: Mutex::default(),
        early: AtomicUsize::new(0),
    });
    let mut turns = 0..;
    let faults = move |request: &Request| {
        let is_change = ["SplitShard", "MergeShards"].contains(&request.operation.as_str());
        let turn: usize = is_change.then(|| turns.next()).flatten()?;
        turn.is_multiple_of(2).then_some(OF_CHANGES[turn / 2 % OF_CHANGES.len()])
    };
    let noted = changes.clone();
    let streams =
        Proxy::watched(mock.address(), faults, move |request, answer| noted.note(request, answer)).await;
    let [moto_url, streams_url] =
        [moto.address(), streams.address()].map(|address| format!("http://{address}"));
    let on = |arguments: &[&str]| on(&moto_url, &streams_url, arguments);
    for queue in ["submissions", "submissions-broken", "submissions-dead"] {
        run(on(&["queue", "create", queue])).succeeded();
    }
    run(on(&["stream", "create", "events", "--shards", "2"])).succeeded();

    let folder = tempfile::tempdir().expect("a folder");
    let flow = folder.path().join("flow.toml");
    let text = flow_with(&[
        ("max_records = 1_000.0 ", "max_records = 20.0 "),
        ("observation_period = 10 ", "observation_period = 2 "),
        ("entry_lifetime = 60 ", "entry_lifetime = 4 "),
        ("merge_cooldown = 300 ", "merge_cooldown = 6 "),
        ("min_shards = 1", "min_shards = 2"),
        ("max_shards = 200", "max_shards = 5"),
    ]);
    std::fs::write(&flow, text).expect("a file");
    let bot = || Bot::start(on(&["run", flow.to_str().expect("a path")]));
    let place = Place(&on);
    let bots = [bot(), bot()];
    let report = place.fleet("15", "25s", "9");
    place.drained();
    let mut looks = 0..LOOKS;
    while changes.open.load(Ordering::SeqCst) > *SHARDS.start() {
        assert!(looks.next().is_some(), "the stream stays wide: {:?}", changes.counts);
        place.left("submissions");
    }
    for bot in bots {
        bot.stop();
    }

    streams.saw(OF_CHANGES);
    let counts = changes.counts.lock().expect("the counts").clone();
    assert!(counts.contains(SHARDS.end()), "{counts:?}");
    assert!(counts.iter().all(|count| SHARDS.contains(count)), "{counts:?}");
    assert_eq!(changes.early.load(Ordering::SeqCst), 0, "a change was asked for while another was under way");
    // A run that meets a change is sent again from its first record on, and a slow machine shows a message twice.
    let (events, _) = place.events();
    complete(&events, std::slice::from_ref(&report));
    assert_eq!(place.left("submissions-dead"), 0);
}
