//! Faulty ways to the servers, bursts, and a bot that is killed and stopped on the way.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use crate::harness::bot::Bot;
use crate::harness::run;
use crate::harness::telemetry::{LOOKS, Place, complete, flow_with};
use crate::ledger::Ledger;
use crate::on;
use crate::peer::Peer;
use crate::peer::plan::chance;
use crate::peer::proxy::Fault::{self, *};
use crate::peer::proxy::Proxy;
use crate::peer::wire::Request;

/// Requests in a hundred that something goes wrong with.
const PERCENT: u64 = 12;
/// What goes wrong with a request for records.
const OF_RECORDS: &[Fault] = &[Partly, Drop, Throttle, Refuse, Partly, Fail, Cut, Delay, Double];
/// What goes wrong with a request that is not made twice unless nobody knows what became of it.
const OF_MESSAGES: &[Fault] = &[Refuse, Drop, Throttle, Fail, Cut, Delay];
/// What goes wrong with all others.
const OF_OTHERS: &[Fault] = &[Refuse, Drop, Throttle, Fail, Cut, Delay, Double];

fn of(request: &Request) -> &'static [Fault] {
    match request.operation.as_str() {
        "PutRecords" => OF_RECORDS,
        "SendMessageBatch" | "ReceiveMessage" => OF_MESSAGES,
        _ => OF_OTHERS,
    }
}

/// A faulty way to a server, of which the ledger has everything.
async fn way(peer: &Peer, seed: u64, ledger: &Arc<Ledger>) -> Proxy {
    let (asked, answered) = (ledger.clone(), ledger.clone());
    let mut fault = chance(seed, PERCENT, of);
    let plan = move |request: &Request| {
        asked.asked(request);
        fault(request)
    };
    Proxy::watched(peer.address(), plan, move |request, answer| answered.answered(request, answer)).await
}

/// Waits until so many submissions are done with.
#[track_caller]
fn done(ledger: &Ledger, place: &Place<'_>, count: usize) {
    for _ in 0..LOOKS {
        if ledger.done() >= count {
            return;
        }
        // A look is a process, and takes its time.
        place.left("submissions");
    }
    panic!("{} of {count} submissions are done with", ledger.done());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_faults_kills_and_bursts_nothing_is_lost_and_nothing_is_deleted_early() {
    let (moto, mock) = (Peer::moto().await, Peer::kinesis_mock().await);
    let ledger = Arc::new(Ledger::new());
    let (queues, streams) = (way(&moto, 71, &ledger).await, way(&mock, 72, &ledger).await);
    let [moto_url, mock_url] = [moto.address(), mock.address()].map(|address| format!("http://{address}"));
    let [queues_url, streams_url] =
        [queues.address(), streams.address()].map(|address| format!("http://{address}"));
    let direct = |arguments: &[&str]| on(&moto_url, &mock_url, arguments);
    for queue in ["submissions", "submissions-broken", "submissions-dead"] {
        run(direct(&["queue", "create", queue])).succeeded();
    }
    run(direct(&["stream", "create", "events", "--shards", "2"])).succeeded();

    let folder = tempfile::tempdir().expect("a folder");
    let flow: PathBuf = folder.path().join("flow.toml");
    let text = flow_with(&[
        // Moto answers few at a time.
        ("in_flight = 400", "in_flight = 80"),
        // What a dead bot had in hand comes again soon.
        ("visibility_timeout = 60", "visibility_timeout = 4"),
        // A submission that met many faults is still none to give up.
        ("max_retry_attempts = 3", "max_retry_attempts = 1000"),
        ("samples_one_in = 10", "samples_one_in = 1"),
    ]);
    std::fs::write(&flow, text).expect("a file");
    let place = Place(&direct);
    let bot = || -> Command { on(&queues_url, &streams_url, &["run", flow.to_str().expect("a path")]) };

    let mut fleet =
        direct(&["fleet", "submissions", "--rate", "5", "--duration", "16s", "--seed", "7", "--json"]);
    fleet.args([
        "--burst",
        "2s:3s:10",
        "--burst",
        "9s:3s:10",
        "--broken",
        "json=0.05",
        "--broken",
        "address=0.05",
    ]);
    let fleet = std::thread::spawn(move || run(fleet).json());
    let killed = Bot::start(bot());
    done(&ledger, &place, 60);
    drop(killed);
    let stopped = Bot::start(bot());
    done(&ledger, &place, 160);
    stopped.stop();
    let last = Bot::start(bot());
    let report = fleet.join().expect("a report");
    place.drained();
    last.stop();

    ledger.is_clean();
    queues.saw(OF_OTHERS);
    streams.saw(OF_RECORDS);
    let (events, repeated) = place.events();
    complete(&events, std::slice::from_ref(&report));
    assert!(repeated > 0, "answers were lost, so something was written twice");
    let broken = report["broken"].as_u64().expect("a count");
    assert_eq!(ledger.aside() as u64, broken, "all broken ones are put aside, and nothing else: {report}");
    assert!(place.left("submissions-broken") >= broken, "{report}");
    assert_eq!(place.left("submissions-dead"), 0);
}
