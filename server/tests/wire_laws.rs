//! All laws once more, with nothing left out but what no protocol can carry: our stores on AWS, against our own server.
//!
//! What the laws demand goes through a client of AWS's SDK, the wire and the engine, and comes back.

mod harness;
#[path = "../../aws/tests/peer/mod.rs"]
mod peer;

use anabranch_aws::{Aws, Blobs, Queues, Streams, Tables};
use harness::{Data, Server};
use peer::suite::{self, blob_cases, queue_cases, stream_cases, table_cases};

/// A server of ours, and a connection to it.
async fn ours() -> (Data, Server, Aws) {
    let data = Data::new();
    let server = data.serve();
    let aws = peer::connect(&format!("http://{}", server.listen)).await;
    (data, server, aws)
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
