//! All laws once more, with nothing left out but what no protocol can carry: our stores on AWS, against our own server.
//!
//! What the laws demand goes through a client of AWS's SDK, the wire and the engine, and comes back. For the laws about
//! crashes the server is killed and started again.

mod harness;
#[path = "../../aws/tests/peer/mod.rs"]
mod peer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anabranch_aws::{Aws, Blobs, Queues, Streams, Tables};
use anabranch_model::laws::blob::{self, BlobFixture};
use anabranch_model::laws::queue::{self, QueueFixture};
use anabranch_model::laws::stream::{self, StreamFixture};
use anabranch_model::laws::table::{self, TableFixture};
use anabranch_model::laws::{Fixture, Law};
use futures_util::FutureExt as _;
use harness::laws::Killed;
use harness::{Data, Server};
use peer::suite::{self, Case, blob_cases, queue_cases, stream_cases, table_cases};

/// The laws about crashes are called so, except for these ...
const ALSO_CRASHING: [&str; 2] =
    ["unacknowledged_blobs_are_absent_or_whole", "indexes_and_changes_survive_with_their_table"];
/// ... and this one is about runs, of which Kinesis knows nothing.
const ABOUT_RUNS: &str = "a_crash_leaves_no_hole_in_a_run";

/// A server of ours, and a connection to it.
async fn ours() -> (Data, Server, Aws) {
    let data = Data::new();
    let server = data.serve();
    let aws = connect(server.listen).await;
    (data, server, aws)
}

async fn connect(address: SocketAddr) -> Aws {
    peer::connect(&format!("http://{address}")).await
}

/// The laws about crashes, each with a server of its own. Whoever asked it before a crash connects anew.
fn crash_cases<S: ?Sized + Send + Sync + 'static>(
    laws: &'static [Law<S>],
    fixture: fn(Arc<S>) -> Fixture<S>,
    open: fn(&Aws) -> Arc<S>,
) -> Vec<Case> {
    let crashes = |name: &str| name.contains("crash") && name != ABOUT_RUNS || ALSO_CRASHING.contains(&name);
    let case = |law: &'static Law<S>| {
        let check = async move {
            let (server, _) = Killed::start();
            let store = open(&connect(server.listen()).await);
            let crashes = Arc::new(AtomicUsize::new(0));
            let counted = crashes.clone();
            let fixture = fixture(store).with_spawn(suite::spawned).with_crash(move || {
                let (server, counted) = (server.clone(), counted.clone());
                async move {
                    counted.fetch_add(1, Ordering::Relaxed);
                    open(&connect(server.restart()).await)
                }
            });
            law.check(fixture).await;
            assert!(crashes.load(Ordering::Relaxed) > 0, "it was decided without a crash");
        };
        (law.name, check.boxed())
    };
    laws.iter().filter(|law| crashes(law.name)).map(case).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_streams_hold() {
    let (_data, _server, aws) = ours().await;
    suite::hold(stream_cases(&Streams::new(&aws), "wire"), &[], 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_streams_hold_with_fan_out() {
    let (_data, _server, aws) = ours().await;
    let mut cases = stream_cases(&Streams::new(&aws).with_fan_out("laws").expect("a name"), "fan");
    cases.retain(|(name, _)| name.starts_with("follow"));
    suite::hold(cases, &[], 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_queues_hold() {
    let (_data, _server, aws) = ours().await;
    suite::hold(queue_cases(&Queues::new(&aws).purging_at_once(), "wire"), &[], 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_tables_hold() {
    let (_data, _server, aws) = ours().await;
    suite::hold(table_cases(&Tables::new(&aws), "wire"), &[], 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_blobs_hold() {
    let (_data, _server, aws) = ours().await;
    let blobs = Blobs::new(&aws).expect("an endpoint");
    suite::hold(blob_cases(&blobs, "wire"), &[], 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_streams_hold_through_crashes() {
    let cases = crash_cases(stream::all(), StreamFixture::new, |aws| Arc::new(Streams::new(aws)));
    suite::hold(cases, &[], 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_queues_hold_through_crashes() {
    let fixture = |store| QueueFixture::new(store).without_ages();
    let cases = crash_cases(queue::all(), fixture, |aws| Arc::new(Queues::new(aws).purging_at_once()));
    suite::hold(cases, &[], 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_tables_hold_through_crashes() {
    let cases = crash_cases(table::all(), TableFixture::new, |aws| Arc::new(Tables::new(aws)));
    suite::hold(cases, &[], 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_of_blobs_hold_through_crashes() {
    let fixture = |store| BlobFixture::new(store).with_times_that_are_near();
    let cases = crash_cases(blob::all(), fixture, |aws| Arc::new(Blobs::new(aws).expect("an endpoint")));
    suite::hold(cases, &[], 2).await;
}

#[test]
fn the_laws_that_are_named_are_there() {
    let streams = stream::all().iter().map(|law| law.name);
    let tables = table::all().iter().map(|law| law.name);
    let blobs = blob::all().iter().map(|law| law.name);
    let laws: Vec<_> = streams.chain(tables).chain(blobs).collect();
    for name in ALSO_CRASHING.iter().chain([&ABOUT_RUNS]) {
        assert!(laws.contains(name), "there is no law `{name}`");
    }
}
