//! DescribeLimits: what the service grants a new account. Nothing is metered here.

use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::fault::Fault;

const ACCOUNT_UNITS_MAX: u64 = 80_000;
const TABLE_UNITS_MAX: u64 = 40_000;

#[derive(Debug, Deserialize)]
pub(super) struct Request {}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    account_max_read_capacity_units: u64,
    account_max_write_capacity_units: u64,
    table_max_read_capacity_units: u64,
    table_max_write_capacity_units: u64,
}

pub(super) async fn handle(_: &Context, _: Request) -> Result<Response, Fault> {
    Ok(Response {
        account_max_read_capacity_units: ACCOUNT_UNITS_MAX,
        account_max_write_capacity_units: ACCOUNT_UNITS_MAX,
        table_max_read_capacity_units: TABLE_UNITS_MAX,
        table_max_write_capacity_units: TABLE_UNITS_MAX,
    })
}
