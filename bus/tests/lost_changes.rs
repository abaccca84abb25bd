//! Changes that retention removes before the bot comes to their stream are told of.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[path = "../../consumer/tests/logs/mod.rs"]
mod logs;
mod world;

use std::time::Duration;

use anabranch_model::table::{Alteration, ChangeView};
use anabranch_model::{TableStore, limits};
use logs::Logs;
use world::{SINGLE, World};

const REMOVED: &str = "removed by retention before their stream was begun";

/// The bot had read the stream before to its end, so it wanted all of the next one.
#[tokio::test(start_paused = true)]
async fn what_was_removed_of_the_next_stream_is_said() {
    let logs = Logs::default();
    let _guard = logs.collect();
    let world = World::new().await;
    let turn = async |view| world.tables.alter(&world.table, Alteration::Changes(view)).await.unwrap();
    world.put(0..5).await;
    let bot = world.run(SINGLE).await;
    world.until("all", async || world.documents().await.len() == 5).await;
    turn(None).await;
    world.until("the end of the stream", async || logs.with("there is no other one yet").len() == 1).await;
    bot.stop().await;
    turn(Some(ChangeView::Both)).await;
    world.put(5..8).await;
    world.tables.advance(limits::CHANGES_RETENTION + Duration::from_secs(1));
    world.tables.tidy();
    world.put(8..10).await;
    let bot = world.run(SINGLE).await;
    world.until("what is left", async || world.documents().await.len() == 7).await;
    bot.stop().await;
    let said = logs.with(REMOVED);
    let stream = world.tables.table(&world.table).await.unwrap().changes.unwrap();
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].starts_with("WARN") && said[0].contains(&format!("stream={stream}")), "{said:?}");
    // It is said once.
    let bot = world.run(SINGLE).await;
    world.put(10..11).await;
    world.until("one more", async || world.documents().await.len() == 8).await;
    bot.stop().await;
    assert_eq!(logs.with(REMOVED).len(), 1);
}

/// Whoever begins has lost nothing: the oldest change is the oldest that is left.
#[tokio::test(start_paused = true)]
async fn what_was_removed_before_the_bot_began_is_not_lost() {
    let logs = Logs::default();
    let _guard = logs.collect();
    let world = World::new().await;
    world.put(0..5).await;
    world.tables.advance(limits::CHANGES_RETENTION + Duration::from_secs(1));
    world.tables.tidy();
    world.put(5..7).await;
    let bot = world.run(SINGLE).await;
    world.until("what is left", async || world.documents().await.len() == 2).await;
    bot.stop().await;
    assert_eq!(logs.with(REMOVED), Vec::<String>::new());
}
