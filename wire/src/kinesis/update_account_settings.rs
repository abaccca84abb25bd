//! UpdateAccountSettings. What is agreed is kept and shown; nobody is billed.

use anabranch_model::{Document, Owner};
use serde::Deserialize;

pub(super) use super::describe_account_settings::Response;
use super::describe_account_settings::{KIND, NAME, load};
use super::errors::fault;
use crate::context::Context;
use crate::fault::Fault;
use crate::validation::Validation;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Request {
    minimum_throughput_billing_commitment: Option<Commitment>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Commitment {
    status: Option<String>,
}

pub(super) async fn handle(context: &Context, request: Request) -> Result<Response, Fault> {
    let commitment = request.minimum_throughput_billing_commitment;
    let status = commitment.as_ref().and_then(|commitment| commitment.status.clone());
    Validation::default()
        .required("minimumThroughputBillingCommitment", &commitment)
        .required("minimumThroughputBillingCommitment.status", &status)
        .one_of("minimumThroughputBillingCommitment.status", status.as_deref(), &["ENABLED", "DISABLED"])
        .done()?;
    let _changing = context.kinesis.changing().await;
    let mut account = load(context).await?;
    let (committed, now) = (status.as_deref() == Some("ENABLED"), context.clock.now().as_millis());
    if committed && !account.committed {
        (account.started_at, account.ended_at) = (Some(now), None);
    } else if !committed && account.committed {
        account.ended_at = Some(now);
    }
    account.committed = committed;
    let bytes =
        serde_json::to_vec(&account).map_err(|error| Fault::server("InternalFailure", error.to_string()))?;
    let document = vec![Document::new(NAME, bytes)];
    context.ports.admin.put_documents(&Owner::Store, KIND, document).await.map_err(fault)?;
    Ok(account.into())
}
