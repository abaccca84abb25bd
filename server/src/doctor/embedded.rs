//! The data directory, whoever holds it, and whether it can be written.

use std::path::Path;

use anabranch_model::Error;

use super::check::{Check, Finding};
use super::{NamedArgs, named};
use crate::connect::{Missing, connect};

pub(super) async fn examine(data: &Path, wanted: &NamedArgs) -> Vec<Check> {
    let connection = match connect(data, "anabranch doctor", Missing::Refuse).await {
        Ok(connection) => connection,
        Err(failure) => return vec![Check::failed("data directory", &failure)],
    };
    let mut checks = vec![Check::ok("data directory", connection.describe())];
    match connection.status().await {
        Ok(status) => checks.push(match status {
            status if status.stopped.is_some() => {
                Check::of("writes", Err(Error::Stopped(status.stopped.unwrap_or_default())))
            }
            status if status.disk_full => Check {
                name: "writes".to_owned(),
                result: Finding::Failed,
                detail: "the disk is full: writes are refused until there is room".to_owned(),
                hint: Some("free some space; nothing that was acknowledged is lost".to_owned()),
            },
            status => {
                let last =
                    if status.opened_clean { "shut down in order" } else { "broke off, and was recovered" };
                Check::ok("writes", format!("possible; the process before this one {last}"))
            }
        }),
        Err(error) => checks.push(Check::of("server", Err(error))),
    }
    checks.extend(named::examine(connection.stores(), wanted).await);
    if let Err(failure) = connection.close().await {
        checks.push(Check::failed("closing", &failure));
    }
    checks
}
