//! The laws of blobs, on servers of S3's protocol that we did not write.

mod peer;

use std::time::Duration;

use anabranch_aws::Blobs;
use anabranch_model::laws::blob;
use anabranch_model::{BlobStore, Error};
use peer::Peer;
use peer::gaps::blobs::{MINISTACK, MOTO, SEAWEEDFS};
use peer::suite::{self, blob_cases};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_seaweedfs() {
    let seaweedfs = Peer::seaweedfs().await;
    let blobs = Blobs::new(&seaweedfs.connect().await).expect("an endpoint");
    // Most of its time it waits for a lock, a second at a time.
    suite::hold(blob_cases(&blobs, "weed"), SEAWEEDFS, 8).await;
    // It looks at signatures, so ours are right.
    let stranger = Blobs::new(&seaweedfs.connect_with_a_wrong_secret().await).expect("an endpoint");
    let refused = stranger.buckets(None, 10).await;
    assert!(matches!(refused, Err(Error::Unauthenticated(_))), "{refused:?}");
    // It looks at their dates, too.
    let late = Blobs::new(&seaweedfs.connect_late(Duration::from_secs(20 * 60)).await).expect("an endpoint");
    let refused = late.buckets(None, 10).await;
    let told = |text: &str| text.contains("minutes behind") && text.contains("NTP");
    assert!(matches!(&refused, Err(Error::Misconfigured(text)) if told(text)), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_moto() {
    let moto = Peer::moto().await;
    let blobs = Blobs::new(&moto.connect().await).expect("an endpoint");
    suite::hold(blob_cases(&blobs, "moto"), MOTO, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_ministack() {
    let ministack = Peer::ministack().await;
    let blobs = Blobs::new(&ministack.connect().await).expect("an endpoint");
    suite::hold(blob_cases(&blobs, "mini"), MINISTACK, 4).await;
}

#[test]
fn every_law_holds_on_some_server() {
    let laws = blob::all().iter().map(|law| law.name);
    suite::every_law_holds_somewhere(laws, &[SEAWEEDFS, MOTO, MINISTACK]);
}
