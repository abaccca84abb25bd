//! The laws of blobs, on servers of S3's protocol that we did not write.

mod peer;

use std::sync::Arc;

use anabranch_aws::Blobs;
use anabranch_model::laws::blob::{self, BlobFixture};
use peer::Peer;
use peer::suite::{self, Case, Skipped};

/// SeaweedFS verifies signatures.
const SEAWEEDFS: Skipped = &[];

const MOTO: Skipped = &[];

/// What no server can show.
const NOWHERE: Skipped = &[];

fn cases(blobs: &Blobs, prefix: &str) -> Vec<Case> {
    let case = |law: &'static blob::BlobLaw| {
        let fixture =
            BlobFixture::new(Arc::new(blobs.clone())).with_prefix(prefix).with_spawn(suite::spawned);
        (law.name, law.check(fixture))
    };
    blob::all().iter().map(case).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_seaweedfs() {
    let seaweedfs = Peer::seaweedfs().await;
    let blobs = Blobs::new(&seaweedfs.connect().await).expect("an endpoint");
    suite::hold(cases(&blobs, "weed"), SEAWEEDFS, 4).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_laws_hold_on_moto() {
    let moto = Peer::moto().await;
    let blobs = Blobs::new(&moto.connect().await).expect("an endpoint");
    suite::hold(cases(&blobs, "moto"), MOTO, 4).await;
}

#[test]
fn every_law_holds_on_some_server() {
    let laws = blob::all().iter().map(|law| law.name);
    suite::every_law_holds_somewhere(laws, &[SEAWEEDFS, MOTO], NOWHERE);
}
