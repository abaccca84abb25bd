//! The laws can be kept: a store that is obviously right passes every one of them.

use std::sync::Arc;

use anabranch_model::laws::reference::SimpleStreams;
use anabranch_model::laws::stream::{self, StreamFixture};

async fn fixture() -> StreamFixture {
    let store = SimpleStreams::new();
    store.fixture(Arc::new(store.clone()))
}

anabranch_model::stream_laws!(fixture());

/// Laws make streams of their own, need no runtime but a waker, and ask for no more than a store.
#[tokio::test]
async fn laws_share_a_store_whose_clock_and_end_are_out_of_reach() {
    let store = SimpleStreams::new();
    for law in stream::all() {
        law.check(StreamFixture::new(Arc::new(store.clone())).with_prefix("shared")).await;
    }
}

/// What an earlier run left behind does not disturb the next.
#[tokio::test]
async fn laws_run_twice_against_one_store() {
    let store = SimpleStreams::new();
    for law in stream::all().iter().chain(stream::all()) {
        law.check(store.fixture(Arc::new(store.clone()))).await;
    }
}
