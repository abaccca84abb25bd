//! DescribeAccountSettings.

use anabranch_model::{Error, Owner};
use serde::{Deserialize, Serialize};

use super::errors::fault;
use crate::context::Context;
use crate::fault::Fault;
use crate::time::Time;

/// Where the settings of the account are kept.
pub(super) const KIND: &str = "kinesis";
pub(super) const NAME: &str = "account";

#[derive(Debug, Deserialize)]
pub(super) struct Request {}

/// What both operations on the account answer.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Response {
    minimum_throughput_billing_commitment: Commitment,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Commitment {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<Time>,
}

/// The settings of the account, as they are kept. Times are in milliseconds.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Account {
    pub(super) committed: bool,
    pub(super) started_at: Option<u64>,
    pub(super) ended_at: Option<u64>,
}

impl From<Account> for Response {
    fn from(account: Account) -> Self {
        let time = |millis: u64| Time(anabranch_model::Timestamp::from_millis(millis));
        let commitment = Commitment {
            status: if account.committed { "ENABLED" } else { "DISABLED" },
            started_at: account.started_at.map(time),
            ended_at: account.ended_at.map(time),
        };
        Response { minimum_throughput_billing_commitment: commitment }
    }
}

pub(super) async fn handle(context: &Context, Request {}: Request) -> Result<Response, Fault> {
    Ok(load(context).await?.into())
}

/// The settings of the account.
pub(super) async fn load(context: &Context) -> Result<Account, Fault> {
    let document = context.ports.admin.document(&Owner::Store, KIND, NAME).await.map_err(fault)?;
    match document {
        Some(bytes) => serde_json::from_slice(&bytes)
            .map_err(|error| fault(Error::Corrupt(format!("the settings of the account: {error}")))),
        None => Ok(Account::default()),
    }
}
