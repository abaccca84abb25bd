//! The laws of tables can be kept: a store that is obviously right passes every one of them.

use std::sync::Arc;

use anabranch_model::laws::reference::ReferenceTables;
use anabranch_model::laws::table::{self, TableFixture};

async fn fixture() -> TableFixture {
    let store = ReferenceTables::new();
    store.fixture(Arc::new(store.clone()))
}

anabranch_model::table_laws!(fixture());

/// Laws make tables of their own, need no runtime but a waker, and ask for no more than a store.
#[tokio::test]
async fn laws_share_a_store_whose_clock_and_end_are_out_of_reach() {
    let store = ReferenceTables::new();
    for law in table::all() {
        law.check(TableFixture::new(Arc::new(store.clone())).with_prefix("shared")).await;
    }
}

/// What an earlier run left behind does not disturb the next.
#[tokio::test]
async fn laws_run_twice_against_one_store() {
    let store = ReferenceTables::new();
    for law in table::all().iter().chain(table::all()) {
        law.check(store.fixture(Arc::new(store.clone()))).await;
    }
}
